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

use crate::saved;
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::NUMBER_MAX;
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, Time, Wire};
use sottovoce_privacy::{Audience, Event, Exhausted, Public, Released, Track};
use thiserror::Error;

/// The grid is so much finer than the range of a contribution,
const GRID_BITS: i32 = 20;

/// and a token is at most so many ranges: sums on the grid are exact.
const RANGES_MAX: f64 = (1u64 << 31) as f64;

/// The least number of members: of two, each would see the other.
pub const MEMBERS_MIN: u32 = 3;

/// Who makes noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingNoise {
    /// One hop of every n - 1.
    One,
    /// Every hop, a share; Gaussian only.
    All,
}

/// Who learns the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reveal {
    /// Everyone.
    Broadcast,
    /// The last holder.
    Last,
}

/// The hyper-parameters, the same for all agents.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | members | n | 3 and above | everyone |
/// | rounds | K | 1 and above | 1 |
/// | range | Delta | low < high, finite | the task's |
/// | law | sigma_loc | Laplace or Gaussian; none without privacy | the plan's |
/// | noise | | one, all | one |
/// | reveal | | broadcast, last | broadcast |
/// | timeout | | above zero, in wake intervals | a guess: 20 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingConfig {
    /// How many members there are, numbered in the ring's order.
    pub members: u32,
    /// How often the token goes round.
    pub rounds: u32,
    /// Contributions are moved into this.
    pub range: (f64, f64),
    /// How one contribution is protected; none without privacy.
    pub law: Option<Event>,
    /// Who makes noise.
    pub noise: RingNoise,
    /// Who learns the sum.
    pub reveal: Reveal,
    /// After this time without a word from its successor a holder passes it over.
    pub timeout: f64,
}

/// Why there is no such ring.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadRing {
    /// Too few.
    #[error("a ring of {0} members; accepted: {MEMBERS_MIN} and more, since of two each would see the other's values")]
    Members(u32),
    /// No round.
    #[error("a ring of no rounds; accepted: 1 and more")]
    Rounds,
    /// Not a range.
    #[error("a range from {0} to {1}; accepted: two finite numbers, the first below the second")]
    Range(f64, f64),
    /// Noise that does not add up.
    #[error(
        "noise by all with a law that is not Gaussian; accepted: gaussian, since shares of Laplace noise do not add up to Laplace noise"
    )]
    Shares,
    /// A law that hides no size.
    #[error("noise of a law that a sum cannot have; accepted: laplace, gaussian")]
    Law,
    /// Not a time.
    #[error("a time-out of {0}; accepted: a finite number above zero")]
    Timeout(f64),
}

/// A checked ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    config: RingConfig,
    /// The distance of the grid's points: a power of two.
    grid: f64,
}

impl Ring {
    /// Checks the hyper-parameters.
    pub fn new(config: RingConfig) -> Result<Ring, BadRing> {
        let RingConfig { members, rounds, range: (low, high), law, noise, timeout, .. } = config;
        if members < MEMBERS_MIN {
            return Err(BadRing::Members(members));
        }
        if rounds == 0 {
            return Err(BadRing::Rounds);
        }
        let width = high - low;
        if !(low.is_finite() && high.is_finite() && width > 0.0 && low.abs().max(high.abs()) < NUMBER_MAX) {
            return Err(BadRing::Range(low, high));
        }
        match (law, noise) {
            (Some(Event::Gaussian { .. }) | None, _) | (Some(Event::Laplace { .. }), RingNoise::One) => {}
            (Some(Event::Laplace { .. }), RingNoise::All) => return Err(BadRing::Shares),
            _ => return Err(BadRing::Law),
        }
        if !(timeout.is_finite() && timeout > 0.0) {
            return Err(BadRing::Timeout(timeout));
        }
        let scale = width.max(low.abs()).max(high.abs());
        Ok(Ring { config, grid: libm::ldexp(1.0, libm::ilogb(scale) - GRID_BITS) })
    }

    /// How far a contribution can move when a member's value is replaced by any other: the range, and what rounding to the grid adds.
    pub fn sensitivity(&self) -> f64 {
        self.config.range.1 - self.config.range.0 + self.grid
    }

    /// How many hops there are.
    pub fn hops(&self) -> u64 {
        u64::from(self.config.members) * u64::from(self.config.rounds)
    }

    /// Hops with noise of sigma_loc, when nobody is passed over: ceil(Kn / (n - 1)).
    pub fn noisy_hops(&self) -> u64 {
        noisy_hops(self.config.members, self.config.rounds)
    }

    /// Whether the last hop makes no noise of sigma_loc, so that a sum that is told to everyone has some added.
    fn is_topped_up(&self) -> bool {
        let is_bare = match self.config.noise {
            RingNoise::One => !(self.hops() - 1).is_multiple_of(u64::from(self.config.members) - 1),
            RingNoise::All => true,
        };
        self.config.reveal == Reveal::Broadcast && is_bare
    }

    /// The variance of the sum over that of one noise of sigma_loc, when nobody is passed over.
    pub fn variance(&self) -> f64 {
        let (hops, others) = (self.hops() as f64, f64::from(self.config.members) - 1.0);
        let along = match self.config.noise {
            RingNoise::One => self.noisy_hops() as f64,
            RingNoise::All => hops / others + 1.0,
        };
        along + f64::from(u8::from(self.is_topped_up()))
    }

    /// The contribution of a value in a round, on the grid.
    pub fn contribution(&self, values: &[f64], round: u32) -> f64 {
        let value = values.get(round as usize - 1).or(values.first()).copied().unwrap_or(0.0);
        let (low, high) = self.config.range;
        let value = if value.is_nan() { low } else { value.clamp(low, high) };
        self.snap(value)
    }

    fn snap(&self, value: f64) -> f64 {
        libm::rint(value / self.grid) * self.grid
    }

    fn position(&self, hop: u64) -> PeerId {
        PeerId(((hop - 1) % u64::from(self.config.members)) as u32)
    }

    fn round(&self, hop: u64) -> u32 {
        ((hop - 1) / u64::from(self.config.members)) as u32 + 1
    }

    /// The law of a share of noise by all.
    fn share(&self) -> Option<Event> {
        let others = f64::from(self.config.members) - 1.0;
        match (self.config.noise, self.config.law) {
            (RingNoise::All, Some(Event::Gaussian { noise_multiplier })) => {
                Some(Event::Gaussian { noise_multiplier: noise_multiplier / others.sqrt() })
            }
            _ => None,
        }
    }

    /// Noise of a law on a value that may leave anyway.
    fn blur(&self, law: Option<Event>, value: Released<f64>, cx: &mut Cx<'_>) -> Released<f64> {
        let Some(law) = law else { return value };
        let mut values = [value.into_inner()];
        // PRIVACY: `value` was released; noise on it is post-processing. On the grid, so that sums stay exact.
        let released = Released::from(Public::declare(&mut values[..]));
        let blurred = cx.gate.blur(law, self.sensitivity(), released).map(|values| values[0]);
        blurred.with_public(Public::declare(*self), |ring, value| ring.snap(value))
    }

    /// The agent holds the token: adds to it, and passes it on.
    fn hold(&self, me: &mut State, values: &[f64], token: Token, cx: &mut Cx<'_>) {
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
        let mut tau = match receipt {
            Some(receipt) => receipt.release(token.tau + self.contribution(values, round)),
            None => Public::declare(token.tau).into(),
        };
        let noisy = token.silent == 0 || again || !contributes;
        if noisy {
            tau = self.blur(self.config.law, tau, cx);
        }
        tau = self.blur(self.share(), tau, cx);
        if contributes {
            me.round = me.round.max(round);
            me.contributions += 1;
        }
        let silent =
            if noisy { self.config.members - 2 } else { token.silent - u32::from(self.config.noise == RingNoise::One) };
        self.pass_on(me, tau, Token { hop: token.hop + 1, silent, tau: 0.0, ..token }, noisy, cx);
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
                cx.outbox.wake_at(cx.now.after(Time(self.config.timeout)));
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
                let letter = tau.with_public(Public::declare(token.epoch), |epoch, sum| RingLetter::Sum { epoch, sum });
                // Whoever has been gone for so long does not learn it.
                let _ = cx.outbox.send_durable(to, letter);
            }
        }
        me.sum = Some((token.epoch, tau.into_inner()));
    }

    /// The token is safe with another: whoever handed it to this member may forget it.
    fn tell_predecessor(&self, me: &mut State, cx: &mut Cx<'_>) {
        if let Some((from, hop)) = me.owes.take() {
            let passed = RingLetter::Passed { epoch: me.epoch, hop };
            // Whoever has been gone for so long forgets it by itself.
            let _ = cx.outbox.send_durable(PeerId(from), Released::from(Public::declare(passed)));
        }
    }

    /// The token for the member after the next, who is gone: fresh noise, and a higher epoch. It has no contribution of the one passed over.
    fn reissued(&self, me: &mut State, tau: Released<f64>, token: Token, cx: &mut Cx<'_>) -> (Released<f64>, Token) {
        // PRIVACY: the one passed over may have passed on tau + x. What goes out beside it must not be tau.
        let tau = self.blur(self.config.law, tau, cx);
        me.epoch = Epoch { count: me.epoch.count + 1, issuer: cx.me.0 };
        me.reissues += 1;
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
        let most = RANGES_MAX * libm::ldexp(self.grid, GRID_BITS);
        if !fits || self.position(token.hop) != me || token.epoch.issuer >= self.config.members {
            Err(Reject::Malformed)
        } else if token.tau.abs() <= most && self.snap(token.tau) == token.tau {
            Ok(())
        } else {
            Err(Reject::NotFinite)
        }
    }
}

/// ceil(Kn / (n - 1)) = floor((Kn - 1) / (n - 1)) + 1.
pub fn noisy_hops(members: u32, rounds: u32) -> u64 {
    (u64::from(members) * u64::from(rounds)).div_ceil(u64::from(members) - 1)
}

/// Which of several tokens counts: the one with the highest. Two that are issued for one loss differ in their issuers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Epoch {
    /// How often a token was issued again.
    pub count: u32,
    /// By whom.
    pub issuer: u32,
}

/// The token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Which one.
    pub epoch: Epoch,
    /// The hop of whoever it is sent to.
    pub hop: u64,
    /// Hops until the next noise: a.
    pub silent: u32,
    /// The sum so far.
    pub tau: f64,
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
    /// The sum, and its epoch.
    sum: Option<(Epoch, f64)>,
}

impl State {
    /// The sum, where it is known.
    pub fn sum(&self) -> Option<f64> {
        self.sum.map(|(_, sum)| sum)
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

/// A letter of the ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RingLetter {
    /// The token.
    Token(Token),
    /// The token of this hop was taken.
    Taken {
        /// Its epoch.
        epoch: Epoch,
        /// Which hop.
        hop: u64,
    },
    /// The token of this hop was passed on and taken, or was refused because there is one of this higher epoch.
    Passed {
        /// The highest epoch seen.
        epoch: Epoch,
        /// Which hop.
        hop: u64,
    },
    /// The sum.
    Sum {
        /// Of which token.
        epoch: Epoch,
        /// The sum.
        sum: f64,
    },
}

const LETTER_BYTES: usize = 29;

impl Wire<'_> for RingLetter {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, epoch, hop, silent, tau) = match *self {
            RingLetter::Token(Token { epoch, hop, silent, tau }) => (0u8, epoch, hop, silent, tau),
            RingLetter::Passed { epoch, hop } => (1, epoch, hop, 0, 0.0),
            RingLetter::Sum { epoch, sum } => (2, epoch, 0, 0, sum),
            RingLetter::Taken { epoch, hop } => (3, epoch, hop, 0, 0.0),
        };
        out.push(kind);
        out.extend(epoch.count.to_le_bytes());
        out.extend(epoch.issuer.to_le_bytes());
        out.extend(hop.to_le_bytes());
        out.extend(silent.to_le_bytes());
        out.extend(tau.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, Reject> {
        let bytes: &[u8; LETTER_BYTES] = bytes.try_into().map_err(|_| Reject::Malformed)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (epoch, hop, silent) = (Epoch { count: word(1), issuer: word(5) }, long(9), word(17));
        let tau = f64::from_bits(long(21));
        if tau.is_nan() || tau.abs() > NUMBER_MAX {
            return Err(Reject::NotFinite);
        }
        match (bytes[0], hop, silent, tau.to_bits()) {
            (0, ..) => Ok(RingLetter::Token(Token { epoch, hop, silent, tau })),
            (1, _, 0, 0) => Ok(RingLetter::Passed { epoch, hop }),
            (2, 0, 0, _) => Ok(RingLetter::Sum { epoch, sum: tau }),
            (3, _, 0, 0) => Ok(RingLetter::Taken { epoch, hop }),
            _ => Err(Reject::Malformed),
        }
    }

    fn vectors(&self) -> u64 {
        1
    }
}

impl Algorithm for Ring {
    /// What the member contributes: one number for all rounds, or one for each.
    type Data<'d> = &'d [f64];
    type State = State;
    type Letter<'a> = RingLetter;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: &[f64]) -> usize {
        LETTER_BYTES
    }

    fn wake_rate(&self, _: &[f64], _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, values: &[f64], cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let mut me = State::default();
        if cx.me == self.position(1) {
            let first = Token { epoch: Epoch::default(), hop: 1, silent: 0, tau: 0.0 };
            self.hold(&mut me, values, first, cx);
        }
        Ok(me)
    }

    /// The time-out: nobody has said that the token was passed on.
    fn on_wake(&self, me: &mut State, _: &[f64], cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        if let Some(token) = me.sent.take() {
            // It was released when it was sent.
            let (tau, token) = self.reissued(me, Public::declare(token.tau).into(), token, cx);
            self.pass_on(me, tau, token, true, cx);
        }
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        values: &[f64],
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
                cx.outbox.send_durable(from, Released::from(Public::declare(answer)))?;
                if !is_refused {
                    me.owes = Some((from.0, hop));
                    self.hold(me, values, token, cx);
                }
            }
            RingLetter::Taken { epoch, hop } => {
                self.expect(me, from, epoch, hop)?;
                cx.outbox.wake_at(cx.now.after(Time(3.0 * self.config.timeout)));
                self.tell_predecessor(me, cx);
            }
            RingLetter::Passed { epoch, hop } => {
                self.expect(me, from, epoch, hop)?;
                me.sent = None;
                self.tell_predecessor(me, cx);
            }
            RingLetter::Sum { epoch, sum } => {
                if me.sum.is_some_and(|(known, _)| known >= epoch) {
                    return Err(Reject::OutOfTurn);
                }
                me.sum = Some((epoch, sum));
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

    fn resume(&self, saved: &[u8], _: Neighbours, _: &[f64], _: &mut Cx<'_>) -> Result<State, CannotResume> {
        let me: State = saved::read(saved)?;
        let sent = me.sent.is_none_or(|token| self.check(&token, self.position(token.hop.max(1))).is_ok());
        let sum = me.sum.is_none_or(|(_, sum)| sum.abs() <= NUMBER_MAX);
        if sent && sum && me.round <= self.config.rounds { Ok(me) } else { Err(CannotResume::Malformed) }
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        me.sum.as_ref().map_or(&[], |(_, sum)| std::slice::from_ref(sum))
    }
}
