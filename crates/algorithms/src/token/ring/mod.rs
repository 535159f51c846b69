//! A sum by a token that goes round a ring (thesis 4.2, Algorithm 4.2; Cyffers and Bellet 2022).
//!
//! ```text
//! hop h = 1..Kn: tau <- tau + x_u^k, and noise of sigma_loc where the counter is at zero; then a <- n - 2, else a <- a - 1
//! ```
//!
//! So noise falls on the hops 1, n, 2n - 1, ..: every n - 1 hops in a row hold it once (CHECK 05.b). A member sees the token K times; between two
//! of its visits lie n - 1 hops of others, and one of them made noise. Sums are exact: contributions and noise lie on a grid.
//!
//! Differs from the paper:
//! - **The sum is told with noise of its own** unless the last hop made some ([`Reveal::Broadcast`]): members after the last noise would else stand bare before
//!   those ahead of them.
//! - **Noise by all** ([`RingNoise::All`], Remark 4.2) is N(0, sigma_loc^2 / (n - 1)) at each hop, not sigma_loc^2 / n: between two visits only n - 1
//!   others add some. The first hop adds sigma_loc besides.
//! - **A member that is gone is passed over.** A holder hears that its successor has taken the token, and later that the next one has: until then the token may
//!   have gone with the successor. Its predecessor, when it does not hear the first within the time-out or the second within three, adds fresh noise
//!   of sigma_loc to what it had sent, puts the counter to zero so that the next holder makes noise too, and sends it under a higher epoch. Sending the
//!   same bytes on would leak twice: the successor of a member that had passed on unheard would hold tau + x and tau; and with one member gone
//!   for good all noise would fall on one other, who would see exact sums. A token of a lower epoch than the highest seen is refused, so that one lives.
//! - **A member that meets a new epoch in a round it has contributed to** contributes again, with noise of its own, if its plan has a reissue left; else it
//!   adds noise only. Whoever meets a higher epoch is charged one reissue: it may be the one that was passed over.
//!
//! # Privacy
//! Against any one other member, honest but curious, who sees what it is sent ([`Audience::OneMember`]): K contributions by the law of one noise, and the
//! reissues. Two members could stand on both sides of a third: see the accountant (`crates/privacy/src/account/network/ring.rs`).

mod config;
mod letter;

pub use config::{BadRing, MEMBERS_MIN, Reveal, Ring, RingConfig, RingGoal, RingNoise, RingUnit, noisy_hops};
pub use letter::{Epoch, RingLetter, Token};

use crate::{Observations, saved};
use config::{GRID_BITS, RANGES_MAX};
use letter::{LETTER_BYTES, WEIGHT_MAX};
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::NUMBER_MAX;
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, Time};
use sottovoce_privacy::{Audience, Event, Exhausted, Public, Released, Track};

impl Ring {
    /// Noise of a law on a value that may leave anyway: post-processing. On the grid, so that sums stay exact.
    fn blur(&self, law: Option<Event>, value: Released<f64>, cx: &mut Cx<'_>) -> Released<f64> {
        match (law, self.grid) {
            (Some(law), Some(grid)) => cx.gate.blur(law, self.sensitivity(), grid, value),
            _ => value,
        }
    }

    /// The agent holds the token: adds to it, and passes it on.
    fn hold(&self, me: &mut State, observations: Observations<'_>, token: Token, cx: &mut Cx<'_>) {
        let (round, audience) = (self.round(token.hop), Audience::OneMember);
        let again = round <= me.round;
        // PRIVACY: a higher epoch means that a token with this member's contribution may have been seen beside one without it, under one
        // noise: one charge, for this contribution or the last. A contribution that is made again is noisy by itself, and is that charge's.
        let reissued = token.epoch > me.epoch && me.round > 0;
        let reissue = if reissued { cx.gate.charge(Track::Reissues, self.sensitivity(), audience).ok() } else { None };
        me.epoch = me.epoch.max(token.epoch);
        // PRIVACY: tau is what was received. x leaves under noise of sigma_loc that another member makes before the reader sees the token again,
        // or that this one makes below. Charged for one other member as observer: proofs/ring.md.
        // Beyond its plan a member adds noise only: others rely on it.
        let receipt = if again { reissue } else { cx.gate.charge(Track::Token, self.sensitivity(), audience).ok() };
        let contributes = receipt.is_some();
        let (mut tau, weight) = match receipt {
            Some(receipt) => {
                let (value, weight) = self.contribution(observations);
                (receipt.release(token.tau + value), token.weight.saturating_add(weight).min(WEIGHT_MAX))
            }
            None => (known_to_others(token.tau), token.weight),
        };
        let noisy = token.silent == 0 || again || !contributes;
        if noisy {
            tau = self.blur(self.config.law, tau, cx);
        }
        tau = self.blur(self.share(), tau, cx);
        if contributes {
            me.round = me.round.max(round);
            me.contributions = me.contributions.saturating_add(1);
        }
        let silent =
            if noisy { self.config.members - 2 } else { token.silent - u32::from(self.config.noise == RingNoise::One) };
        self.pass_on(me, tau, Token { hop: token.hop + 1, silent, weight, tau: 0.0, ..token }, noisy, cx);
    }

    /// Sends a token to whoever is next, or ends. Who has been gone for so long that no more is kept for it is passed over at once.
    fn pass_on(&self, me: &mut State, mut tau: Released<f64>, mut token: Token, mut noisy: bool, cx: &mut Cx<'_>) {
        while token.hop <= self.hops() {
            let to = self.position(token.hop);
            let letter =
                tau.with_public(Public::declare(token), |token, tau| RingLetter::Token(Token { tau, ..token }));
            if to != cx.me && cx.outbox.send_durable(to, letter).is_ok() {
                token.tau = tau.into_inner();
                me.sent = Some(token);
                self.watch(1.0, cx);
                return;
            }
            (tau, token) = self.reissued(me, tau, token, cx);
            noisy = true;
        }
        me.sent = None;
        if self.config.reveal == Reveal::Last {
            self.tell_predecessor(me, cx);
        } else {
            if !noisy || self.config.noise == RingNoise::All {
                tau = self.blur(self.config.law, tau, cx);
            }
            for to in cx.reach.iter().map(|edge| edge.peer) {
                let public = Public::declare((token.epoch, token.weight));
                let letter = tau.with_public(public, |(epoch, weight), sum| RingLetter::Sum { epoch, weight, sum });
                // Whoever has been gone for so long does not learn it.
                let _ = cx.outbox.send_durable(to, letter);
            }
        }
        me.learns(self, token.epoch, token.weight, tau.into_inner());
    }

    /// The token is safe with another: whoever handed it to this member may forget it.
    fn tell_predecessor(&self, me: &mut State, cx: &mut Cx<'_>) {
        if let Some((from, hop)) = me.owes.take() {
            let passed = RingLetter::Passed { epoch: me.epoch, hop };
            // Whoever has been gone for so long forgets it by itself.
            let _ = cx.outbox.send_durable(PeerId(from), without_value(passed));
        }
    }

    /// Looks after so many time-outs whether the token is safe; never, where nobody may be passed over.
    fn watch(&self, timeouts: f64, cx: &mut Cx<'_>) {
        // PRIVACY: a token that is issued again shows a contribution once more, and without reissues no plan has a charge for that.
        if self.config.law.is_none() || self.config.reissues > 0 {
            cx.outbox.wake_at(cx.now.after(Time(timeouts * self.config.timeout)));
        }
    }

    /// The token for the member after the next, who is gone: fresh noise, and a higher epoch. It has no contribution of the one passed over.
    fn reissued(&self, me: &mut State, tau: Released<f64>, token: Token, cx: &mut Cx<'_>) -> (Released<f64>, Token) {
        // PRIVACY: the one passed over may have passed on tau + x. What goes out beside it must not be tau.
        let tau = self.blur(self.config.law, tau, cx);
        me.epoch = Epoch { count: me.epoch.count.saturating_add(1), issuer: cx.me.0 };
        me.reissues = me.reissues.saturating_add(1);
        (tau, Token { epoch: me.epoch, hop: token.hop + 1, silent: 0, ..token })
    }

    /// Refuses word of a token that was not sent, or not to that member.
    fn expect(&self, me: &State, from: PeerId, epoch: Epoch, hop: u64) -> Result<(), Reject> {
        let sent = me.sent.filter(|sent| sent.hop == hop && self.position(hop) == from);
        if sent.is_none() || epoch.issuer >= self.config.members { Err(Reject::OutOfTurn) } else { Ok(()) }
    }

    /// Whether a token is one that a member of this ring could have sent to this one.
    fn check(&self, token: &Token, me: PeerId) -> Result<(), Reject> {
        let fits = (1..=self.hops()).contains(&token.hop) && token.silent <= self.config.members - 2;
        let most = self.grid.map_or(NUMBER_MAX, |grid| RANGES_MAX * libm::ldexp(grid, GRID_BITS));
        if !fits || self.position(token.hop) != me || token.epoch.issuer >= self.config.members {
            Err(Reject::Malformed)
        } else if token.tau.abs() <= most && self.snap(token.tau) == token.tau {
            Ok(())
        } else {
            Err(Reject::NotFinite)
        }
    }
}

/// What an agent remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The highest epoch it has seen.
    epoch: Epoch,
    /// The highest round it has contributed to.
    round: u32,
    /// Contributions, those made again included.
    contributions: u32,
    /// Tokens it has issued again.
    reissues: u32,
    /// What it sent, until it hears that it was passed on.
    sent: Option<Token>,
    /// Who handed it the token, for which hop, until it has told that the token was passed on.
    owes: Option<(u32, u64)>,
    /// The sum, its weight, and its epoch.
    sum: Option<(Epoch, u64, f64)>,
    /// What the sum says of the statistic; zero before it is known.
    estimate: f64,
}

impl State {
    /// The sum, where it is known.
    pub fn sum(&self) -> Option<f64> {
        self.sum.map(|(_, _, sum)| sum)
    }

    /// Whether it knows an estimate.
    pub fn knows(&self) -> bool {
        self.sum.is_some()
    }

    fn learns(&mut self, ring: &Ring, epoch: Epoch, weight: u64, sum: f64) {
        self.sum = Some((epoch, weight, sum));
        self.estimate = ring.estimate(sum, weight);
    }

    /// How often it has contributed, and issued the token again.
    pub fn counts(&self) -> (u32, u32) {
        (self.contributions, self.reissues)
    }

    /// The token that it waits for to be passed on.
    pub fn waits_for(&self) -> Option<Token> {
        self.sent
    }
}

/// A token as it was received, or as it was sent before: others know it.
fn known_to_others(tau: f64) -> Released<f64> {
    Public::declare(tau).into()
}

/// A letter about a token that holds none.
fn without_value(letter: RingLetter) -> Released<RingLetter> {
    Public::declare(letter).into()
}

impl Algorithm for Ring {
    /// One column.
    type Data<'d> = Observations<'d>;
    type State = State;
    type Letter<'a> = RingLetter;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Observations<'_>) -> usize {
        LETTER_BYTES
    }

    fn wake_rate(&self, _: Observations<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let mut me = State::default();
        if cx.me == self.position(1) {
            let first = Token { epoch: Epoch::default(), hop: 1, silent: 0, weight: 0, tau: 0.0 };
            self.hold(&mut me, observations, first, cx);
        }
        Ok(me)
    }

    /// The time-out: nobody has said that the token was passed on.
    fn on_wake(&self, me: &mut State, _: Observations<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        if let Some(token) = me.sent.take() {
            // It was released when it was sent.
            let (tau, token) = self.reissued(me, known_to_others(token.tau), token, cx);
            self.pass_on(me, tau, token, true, cx);
        }
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        observations: Observations<'_>,
        from: PeerId,
        letter: RingLetter,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        match letter {
            RingLetter::Token(token) => {
                self.check(&token, cx.me)?;
                let (epoch, hop) = (me.epoch.max(token.epoch), token.hop);
                let is_refused = token.epoch < me.epoch;
                let answer =
                    if is_refused { RingLetter::Passed { epoch, hop } } else { RingLetter::Taken { epoch, hop } };
                cx.outbox.send_durable(from, without_value(answer))?;
                if !is_refused {
                    me.owes = Some((from.0, hop));
                    self.hold(me, observations, token, cx);
                }
            }
            // The sum was faster than word of the last hops.
            RingLetter::Taken { .. } | RingLetter::Passed { .. } if me.sum.is_some() && me.sent.is_none() => {}
            RingLetter::Taken { epoch, hop } => {
                self.expect(me, from, epoch, hop)?;
                self.watch(3.0, cx);
                self.tell_predecessor(me, cx);
            }
            RingLetter::Passed { epoch, hop } => {
                self.expect(me, from, epoch, hop)?;
                me.sent = None;
                self.tell_predecessor(me, cx);
            }
            RingLetter::Sum { epoch, weight, sum } => {
                if me.sum.is_some_and(|(known, ..)| known >= epoch) {
                    return Err(Reject::OutOfTurn);
                }
                me.learns(self, epoch, weight, sum);
                // The last holder has ended: what was sent to it, or towards it, need not be watched.
                me.sent = me.sent.filter(|sent| sent.epoch > epoch);
            }
        }
        Ok(())
    }

    fn is_done(&self, me: &State) -> bool {
        let has_ended = match self.config.reveal {
            Reveal::Broadcast => me.sum.is_some(),
            Reveal::Last => me.round == self.config.rounds,
        };
        has_ended && me.sent.is_none()
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        _: Observations<'_>,
        _: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        let me: State = saved::read(saved)?;
        // Positions on the ring are those of all members.
        saved::expect_same(neighbours)?;
        let sent = me.sent.is_none_or(|token| self.check(&token, self.position(token.hop.max(1))).is_ok());
        let sum = me.sum.is_none_or(|(_, weight, sum)| sum.abs() <= NUMBER_MAX && weight <= WEIGHT_MAX)
            && me.estimate == me.sum.map_or(0.0, |(_, weight, sum)| self.estimate(sum, weight));
        let owes = me.owes.is_none_or(|(from, _)| from < self.config.members);
        if sent && sum && owes && me.round <= self.config.rounds { Ok(me) } else { Err(CannotResume::Malformed) }
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        std::slice::from_ref(&me.estimate)
    }
}
