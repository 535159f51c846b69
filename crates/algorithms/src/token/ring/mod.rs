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
//!   to what it had sent, puts the counter to zero so that the next holder makes such noise too, and sends it under a higher epoch. Sending the
//!   same bytes on would leak twice: the successor of a member that had passed on unheard would hold tau + x and tau; and with one member gone
//!   for good all noise would fall on one other, who would see exact sums. Of two tokens of one hop the one of a lower epoch is refused, and so is one of an earlier hop.
//!   With noise nobody passes over two members in a row.
//! - **What a member adds at a hop it adds to every token of that hop**: its contribution, its noise, and each fresh noise that it makes there are drawn once. So nobody
//!   contributes twice to a round, and of two tokens that meet at a reader nothing differs but the contribution of the one passed over, under fresh noise.
//! - **Noise falls on the hops 1 + j (n - 1) of every token**, whoever was passed over; fresh noise comes besides. The counter that travels says the same, and a token
//!   with another one is refused.
//! - **What may be seen again is charged beforehand**, with each contribution: nobody can know in time that a token was issued past it.
//!
//! # Privacy
//! Against any one other member, honest but curious, who sees what it is sent ([`Audience::OneMember`]): K contributions by the law of one noise, and with reissues
//! each of them twice more (once where all make noise) by the law of a fresh noise: `crates/privacy/proofs/ring.md`. Two members could stand on both sides of a third:
//! see the accountant (`crates/privacy/src/account/network/ring.rs`).

mod config;
mod letter;

pub use config::{BadRing, MEMBERS_MIN, Reveal, Ring, RingConfig, RingGoal, RingNoise, RingUnit, noisy_hops};
pub use letter::{RingLetter, Token};

use crate::token::epoch::Epoch;
use crate::{Observations, saved};
use letter::{LETTER_BYTES, WEIGHT_MAX};
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::NUMBER_MAX;
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, Time};
use sottovoce_privacy::{Audience, Event, Exhausted, Public, Receipt, Released, Track};

/// What a member adds at a hop, to every token of that hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Addition {
    hop: u64,
    /// Its contribution, and its noise where the hop has some.
    value: f64,
    /// What the contribution weighs in a mean.
    weight: u64,
    /// Fresh noise, once a token came past its predecessor.
    after: Option<f64>,
    /// Fresh noise, once it has passed its successor over.
    past: Option<f64>,
    /// Noise of the sum, once it has told it.
    told: Option<f64>,
}

/// Word that a member owes to whoever handed it a token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Owed {
    from: u32,
    epoch: Epoch,
    hop: u64,
}

/// What a member has sent, and waits to be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Sent {
    token: Token,
    /// There was no room for it; it has not left.
    is_kept: bool,
    /// Its reader has it.
    is_taken: bool,
}

impl Ring {
    /// One noise of a law, on the grid, so that sums stay exact; none without privacy.
    fn noise(&self, law: Option<Event>, cx: &mut Cx<'_>) -> f64 {
        match (law, self.grid) {
            (Some(law), Some(grid)) => {
                self.wrap(cx.gate.blur(law, self.sensitivity(), grid, Released::constant(|| 0.0)).into_inner())
            }
            _ => 0.0,
        }
    }

    /// A value that may leave anyway, under a noise that was drawn for it: post-processing.
    fn under(&self, tau: Released<f64>, noise: f64) -> Released<f64> {
        tau.with_public(Public::declare((*self, noise)), |(ring, noise), tau| ring.wrap(tau + noise))
    }

    /// What the agent adds at a hop that it has not held before, and what it paid for it. Beyond its plan a member adds noise only: others rely on it.
    fn addition(&self, observations: Observations<'_>, hop: u64, cx: &mut Cx<'_>) -> (Addition, Option<Receipt>) {
        // PRIVACY: x leaves under noise of sigma_loc that another member makes before the reader sees the token again, or that this one makes below. When tokens are
        // issued again it may be seen so much more often, under fresh noise; whoever was gone would hear of that too late, so it is charged here. Charged for one
        // other member as observer: proofs/ring.md.
        let mut charge = |track| cx.gate.charge(track, self.sensitivity(), Audience::OneMember).ok();
        let is_covered = (0..self.seen_again()).all(|_| charge(Track::Reissues).is_some());
        let receipt = if is_covered { charge(Track::Token) } else { None };
        let (value, weight) = receipt.as_ref().map_or((0.0, 0), |_| self.contribution(observations));
        let is_noisy = self.silent(hop) == 0 || receipt.is_none();
        let noise = if is_noisy { self.noise(self.config.law, cx) } else { 0.0 };
        let noise = noise + self.noise(self.share(), cx);
        (Addition { hop, value: self.wrap(self.wrap(value) + noise), weight, ..Addition::default() }, receipt)
    }

    /// The agent holds the token: adds to it, and passes it on.
    fn hold(
        &self,
        me: &mut State,
        observations: Observations<'_>,
        token: Token,
        from: Option<PeerId>,
        cx: &mut Cx<'_>,
    ) {
        // Of a later hop, also one of a lower epoch: it is the one that goes on.
        me.epoch = token.epoch;
        let (mut added, receipt) = match me.added.filter(|added| added.hop == token.hop) {
            Some(added) => (added, None),
            None => self.addition(observations, token.hop, cx),
        };
        me.contributions += u32::from(receipt.is_some());
        let mut value = added.value;
        // PRIVACY: whoever issued the token past this one's predecessor knows its own fresh noise, and must not see the rest bare.
        if self.is_past_another(token.hop, from) {
            value = self.wrap(value + *added.after.get_or_insert_with(|| self.noise(self.reissue_law(), cx)));
        }
        me.added = Some(added);
        let weight = token.weight.saturating_add(added.weight).min(WEIGHT_MAX);
        let tau = self.wrap(token.tau + value);
        // What was added before was charged then, and what holds no contribution others know.
        let tau = receipt.map_or(known_to_others(tau), |receipt| receipt.release(tau));
        let next = Token { hop: token.hop + 1, silent: self.silent(token.hop + 1), weight, tau: 0.0, ..token };
        self.pass_on(me, tau, next, cx);
    }

    /// Sends a token to whoever is next, or ends.
    fn pass_on(&self, me: &mut State, tau: Released<f64>, token: Token, cx: &mut Cx<'_>) {
        if token.hop > self.hops() {
            return self.end(me, tau, token, cx);
        }
        let to = self.position(token.hop);
        let letter = tau.with_public(Public::declare(token), |token, tau| RingLetter::Token(Token { tau, ..token }));
        // Nobody writes to itself: everyone else was passed over. And where there is no room for it now, there is later.
        let is_kept = to == cx.me || cx.outbox.send_durable(to, letter).is_err();
        me.sent = Some(Sent { token: Token { tau: tau.into_inner(), ..token }, is_kept, is_taken: false });
        if is_kept || self.config.reissues > 0 {
            self.watch(1.0, cx);
        }
    }

    /// The token has been round. Whoever has passed the last one over has made noise by that.
    fn end(&self, me: &mut State, mut tau: Released<f64>, token: Token, cx: &mut Cx<'_>) {
        me.sent = None;
        self.tell_predecessors(me, cx);
        if self.config.reveal == Reveal::Broadcast {
            if let Some(added) = me.added.as_mut().filter(|added| self.is_topped_up() && added.hop == self.hops()) {
                let told = *added.told.get_or_insert_with(|| self.noise(self.config.law, cx));
                tau = self.under(tau, told);
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
    fn tell_predecessors(&self, me: &mut State, cx: &mut Cx<'_>) {
        for Owed { from, epoch, hop } in std::mem::take(&mut me.owes) {
            let passed = RingLetter::Passed { epoch, hop };
            // Whoever has been gone for so long forgets it by itself.
            let _ = cx.outbox.send_durable(PeerId(from), without_value(passed));
        }
    }

    /// Looks after so many time-outs whether the token is safe.
    fn watch(&self, timeouts: f64, cx: &mut Cx<'_>) {
        cx.outbox.wake_at(cx.now.after(Time(timeouts * self.config.timeout)));
    }

    /// Whether the next reader of what was sent may be passed over. With noise, only the one after who holds it.
    fn may_pass_over(&self, me: &State, sent: &Token) -> bool {
        let is_next = me.added.is_some_and(|added| added.hop + 1 == sent.hop);
        self.config.reissues > 0 && (self.config.law.is_none() || is_next)
    }

    /// Sends the token to the member after the next, who is gone: with fresh noise, under a higher epoch. It has no contribution of the one passed over.
    fn pass_over(&self, me: &mut State, sent: Token, cx: &mut Cx<'_>) {
        let Some(added) = &mut me.added else { return };
        // PRIVACY: the one passed over may have passed on tau + x. What goes out beside it must not be tau.
        let past = *added.past.get_or_insert_with(|| self.noise(self.reissue_law(), cx));
        me.epoch = me.epoch.next(sent.hop, cx.me.0);
        me.reissues = me.reissues.saturating_add(1);
        // It was released when it was sent.
        let tau = self.under(known_to_others(sent.tau), past);
        self.pass_on(me, tau, Token { epoch: me.epoch, hop: sent.hop + 1, silent: 0, ..sent }, cx);
    }

    /// Whether a token of this hop was issued past another member: who is before the hop did not send it.
    fn is_past_another(&self, hop: u64, from: Option<PeerId>) -> bool {
        from.is_some_and(|from| self.position(hop - 1) != from)
    }

    /// Whether a token is one that a member of this ring could have sent to this one.
    fn check(&self, token: &Token, from: PeerId, me: PeerId) -> Result<(), Reject> {
        let Token { epoch, hop, silent, .. } = *token;
        if !(2..=self.hops()).contains(&hop) || self.position(hop) != me || !self.is_epoch(epoch) {
            return Err(Reject::Malformed);
        }
        let is_due = if self.is_past_another(hop, Some(from)) {
            let is_one = self.config.law.is_none() || hop > 2 && self.position(hop - 2) == from;
            is_one && silent == 0 && epoch.issuer == from.0 && epoch.hop + 1 == hop && epoch.count > 0
        } else {
            silent == self.silent(hop)
        };
        if is_due { self.check_sum(token.tau) } else { Err(Reject::OutOfTurn) }
    }

    fn check_sum(&self, tau: f64) -> Result<(), Reject> {
        if tau.abs() <= self.most() && self.snap(tau) == tau { Ok(()) } else { Err(Reject::NotFinite) }
    }

    fn is_epoch(&self, epoch: Epoch) -> bool {
        epoch.is_possible(self.hops(), self.config.members)
    }

    /// A token comes. One of a hop below the last that was held is refused, and one of the same hop and no higher epoch: it has been overtaken. Epochs of other hops are not
    /// compared: a token that is ahead must not wait for one whose next reader is gone. Word is of the token that came, and of no newer one.
    fn on_token(&self, me: &mut State, observations: Observations<'_>, from: PeerId, token: Token, cx: &mut Cx<'_>) {
        let (hop, held) = (token.hop, me.added.map_or(0, |added| added.hop));
        let is_refused = hop < held || hop == held && token.epoch <= me.epoch;
        let epoch = token.epoch;
        let answer = if is_refused { RingLetter::Passed { epoch, hop } } else { RingLetter::Taken { epoch, hop } };
        // Whoever has been gone for so long forgets it by itself.
        let _ = cx.outbox.send_durable(from, without_value(answer));
        if !is_refused {
            me.owes.retain(|owed| owed.from != from.0);
            me.owes.push(Owed { from: from.0, epoch, hop });
            self.hold(me, observations, token, Some(from), cx);
        }
    }

    /// Word of a token that was sent: taken, or safe. Word of an older one comes late, and says nothing.
    fn on_word(&self, me: &mut State, from: PeerId, letter: RingLetter, cx: &mut Cx<'_>) -> Result<(), Reject> {
        let (RingLetter::Taken { epoch, hop } | RingLetter::Passed { epoch, hop }) = letter else {
            return Err(Reject::Malformed);
        };
        if !(2..=self.hops()).contains(&hop) || self.position(hop) != from || !self.is_epoch(epoch) {
            return Err(Reject::OutOfTurn);
        }
        let Some(sent) = me.sent.as_mut().filter(|sent| sent.token.hop == hop && sent.token.epoch <= epoch) else {
            return Ok(());
        };
        match letter {
            RingLetter::Taken { .. } if sent.is_taken => return Err(Reject::OutOfTurn),
            RingLetter::Taken { .. } => {
                sent.is_taken = true;
                if self.config.reissues > 0 {
                    self.watch(3.0, cx);
                }
            }
            _ => me.sent = None,
        }
        self.tell_predecessors(me, cx);
        Ok(())
    }

    /// The sum, from the last holder or from who passed that one over.
    fn on_sum(&self, me: &mut State, from: PeerId, epoch: Epoch, sum: (u64, f64)) -> Result<(), Reject> {
        let is_last = self.position(self.hops()) == from || epoch.issuer == from.0 && epoch.hop == self.hops();
        if !is_last || !self.is_epoch(epoch) || self.config.reveal == Reveal::Last {
            return Err(Reject::OutOfTurn);
        }
        self.check_sum(sum.1)?;
        me.learns(self, epoch, sum.0, sum.1);
        // The last holder has ended: what was sent to it, or towards it, need not be watched.
        me.sent = me.sent.filter(|sent| sent.token.epoch > epoch);
        Ok(())
    }
}

/// What an agent remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The epoch of the token that it held last.
    epoch: Epoch,
    /// What it added at the highest hop it has held.
    added: Option<Addition>,
    /// Contributions, each to a round of its own.
    contributions: u32,
    /// Tokens it has issued again.
    reissues: u32,
    /// What it sent, until it hears that it was passed on.
    sent: Option<Sent>,
    /// Who handed it a token, until it has told that it was passed on.
    owes: Vec<Owed>,
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

    /// How many contributions the sum misses, since their members were passed over: each epoch has left out one.
    pub fn passed_over(&self) -> u32 {
        self.sum.map_or(0, |(epoch, ..)| epoch.count)
    }

    fn learns(&mut self, ring: &Ring, epoch: Epoch, weight: u64, sum: f64) {
        if self.sum.is_none_or(|(known, ..)| known < epoch) {
            self.sum = Some((epoch, weight, sum));
            self.estimate = ring.estimate(sum, weight);
        }
    }

    /// How often it has contributed, and issued the token again.
    pub fn counts(&self) -> (u32, u32) {
        (self.contributions, self.reissues)
    }

    /// The token that it waits for to be passed on.
    pub fn waits_for(&self) -> Option<Token> {
        self.sent.map(|sent| sent.token)
    }

    /// The epoch of the token that it held last, and its hop.
    pub fn held(&self) -> (Epoch, u64) {
        (self.epoch, self.added.map_or(0, |added| added.hop))
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
            self.hold(&mut me, observations, first, None, cx);
        }
        Ok(me)
    }

    /// The time-out: nobody has said that the token was passed on.
    fn on_wake(&self, me: &mut State, _: Observations<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        match me.sent {
            // All is over, and whoever should read it is gone.
            Some(_) if me.sum.is_some() => me.sent = None,
            Some(sent) if self.may_pass_over(me, &sent.token) => self.pass_over(me, sent.token, cx),
            Some(Sent { token, is_kept: true, .. }) => self.pass_on(me, known_to_others(token.tau), token, cx),
            _ => {}
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
                self.check(&token, from, cx.me)?;
                self.on_token(me, observations, from, token, cx);
                Ok(())
            }
            RingLetter::Sum { epoch, weight, sum } => self.on_sum(me, from, epoch, (weight, sum)),
            word => self.on_word(me, from, word, cx),
        }
    }

    fn is_done(&self, me: &State) -> bool {
        let has_ended = match self.config.reveal {
            Reveal::Broadcast => me.sum.is_some(),
            Reveal::Last => me.added.is_some_and(|added| self.round(added.hop) == self.config.rounds),
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
        let is_token = |token: &Token| {
            (2..=self.hops()).contains(&token.hop) && self.is_epoch(token.epoch) && self.check_sum(token.tau).is_ok()
        };
        let sent = me.sent.is_none_or(|sent| is_token(&sent.token)) && self.is_epoch(me.epoch);
        let sum = me.sum.is_none_or(|(_, weight, sum)| sum.abs() <= NUMBER_MAX && weight <= WEIGHT_MAX)
            && me.estimate == me.sum.map_or(0.0, |(_, weight, sum)| self.estimate(sum, weight));
        let most = self.most();
        let added = me.added.is_none_or(|added| {
            let noises = [added.after, added.past, added.told].into_iter().flatten();
            (1..=self.hops()).contains(&added.hop)
                && added.weight <= WEIGHT_MAX
                && noises.chain([added.value]).all(|value| value.abs() <= most)
        });
        let owes = me.owes.len() <= self.config.members as usize
            && me
                .owes
                .iter()
                .all(|owed| owed.from < self.config.members && owed.hop <= self.hops() && self.is_epoch(owed.epoch));
        if sent && sum && added && owes { Ok(me) } else { Err(CannotResume::Malformed) }
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        std::slice::from_ref(&me.estimate)
    }
}

#[cfg(test)]
mod tests;
