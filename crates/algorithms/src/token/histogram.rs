//! A histogram by a token that goes round a ring (thesis 4.2, Algorithm 4.3; Cyffers and Bellet 2022).
//!
//! ```text
//! tau <- ceil(b n) uniform counts
//! hop h = 1..Kn: tau[c] <- tau[c] + 1 for each row, c its cell with probability 1 - b, any of d cells with probability b
//! tau <- tau + ceil(b n) uniform counts, and everyone is told
//! h_i = ( tau_i - (2 ceil(b n) + b A) / d ) / ((1 - b) K),   A the number of answers
//! ```
//!
//! Between two visits of a member the token grows by the answers of all others, of which the member sees the sum alone: amplification by shuffling.
//!
//! Differs from the paper:
//! - **What is subtracted** are all uniform counts, b A of them among the answers; the print subtracts b / d only, which is off by b n (K + 1) / d (CHECK 05.d).
//! - **b comes from the numerical clones bound**, with e0 as large as the budget allows; the printed exponent is upside down.
//! - **The last holder adds uniform counts too**, before everyone is told: members after an observer's last visit would else stand bare before it.
//!
//! Letters are durable, and nobody is passed over: a member that is gone keeps the token until it is back.
//!
//! # Privacy
//! Against any one other member (`Audience::OneMember`): `crates/privacy/proofs/clones.md`. Two could stand on both sides of a third.

use super::epoch::Epoch;
use super::walk::{HEAD_BYTES, Token, WEIGHT_MAX, WalkLetter};
use crate::{Bounds, Observations, saved};
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::Numbers;
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Full, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::{Audience, Exhausted, Public, Released, Track};
use thiserror::Error;

/// The hyper-parameters, the same for all agents.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | members | n | 3 and above | everyone |
/// | rounds | K | 1 and above | 1 |
/// | range | | low < high, finite | the task's |
/// | bins | d | 2 and above | the task's |
/// | local_epsilon | e0 | above 0; none without privacy | from the budget |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramConfig {
    /// How many members there are, numbered in the ring's order.
    pub members: u32,
    /// How often the token goes round.
    pub rounds: u32,
    /// Values are moved into this.
    pub range: Bounds,
    /// Into how many equal parts it is cut.
    pub bins: u32,
    /// By how much one answer is protected alone.
    pub local_epsilon: Option<f64>,
}

/// Why there is no such histogram.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadHistogram {
    /// Too few.
    #[error("a ring of {0} members; accepted: 3 and more, since of two each would see the other's values")]
    Members(u32),
    /// No round.
    #[error("a ring of no rounds; accepted: 1 and more")]
    Rounds,
    /// Not a range.
    #[error("a range from {0} to {1}; accepted: two finite numbers, the first below the second")]
    Range(f64, f64),
    /// No bin.
    #[error("{0} bins; accepted: 2 and more")]
    Bins(u32),
    /// Answers that say nothing.
    #[error("answers with an epsilon of {0}; accepted: above 0, since at 0 they say nothing")]
    Answers(f64),
}

/// No token counts further: counts below it are exact.
const COUNT_MAX: f64 = (1u64 << 53) as f64;

/// A checked histogram on a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingHistogram {
    config: HistogramConfig,
}

impl RingHistogram {
    /// Checks the hyper-parameters.
    pub fn new(config: HistogramConfig) -> Result<Self, BadHistogram> {
        let HistogramConfig { members, rounds, range: Bounds { low, high }, bins, local_epsilon } = config;
        match () {
            () if members < super::ring::MEMBERS_MIN => Err(BadHistogram::Members(members)),
            () if rounds == 0 => Err(BadHistogram::Rounds),
            () if !(low < high && (high - low).is_finite()) => Err(BadHistogram::Range(low, high)),
            () if bins < 2 => Err(BadHistogram::Bins(bins)),
            () => match local_epsilon {
                Some(epsilon) if !(epsilon > 0.0 && epsilon.is_finite()) => Err(BadHistogram::Answers(epsilon)),
                _ => Ok(RingHistogram { config }),
            },
        }
    }

    /// b: the probability of an answer that is any cell; zero without privacy.
    pub fn random_share(&self) -> f64 {
        let cells = f64::from(self.config.bins);
        self.config.local_epsilon.map_or(0.0, |epsilon| cells / (libm::expm1(epsilon) + cells))
    }

    /// Uniform counts at the start, and as many at the end: ceil(b n).
    pub fn blanket(&self) -> u64 {
        (self.random_share() * f64::from(self.config.members)).ceil() as u64
    }

    /// What counts with so many answers say of one round.
    pub fn estimate(&self, counts: &[f64], answers: u64, out: &mut [f64]) {
        let (b, cells) = (self.random_share(), f64::from(self.config.bins));
        let uniform = (2 * self.blanket()) as f64 + b * answers as f64;
        for (out, count) in out.iter_mut().zip(counts) {
            *out = (count - uniform / cells) / ((1.0 - b) * f64::from(self.config.rounds));
        }
    }

    /// The variance of the estimate of a cell that holds `truth` of all `answers` of all rounds, which are to be counted K times (CHECK 05.e).
    pub fn variance(&self, truth: f64, answers: f64) -> f64 {
        let (b, cells, rounds) = (self.random_share(), f64::from(self.config.bins), f64::from(self.config.rounds));
        let (kept, other, uniform) = (1.0 - b + b / cells, b / cells, 1.0 / cells);
        let blanket = (2 * self.blanket()) as f64;
        let sum = truth * kept * (1.0 - kept)
            + (answers - truth) * other * (1.0 - other)
            + blanket * uniform * (1.0 - uniform);
        sum / ((1.0 - b) * rounds * (1.0 - b) * rounds)
    }

    /// The standard deviation of the whole estimate, Euclidean, with so many rows in all: whatever cells they are in.
    pub fn deviation(&self, rows: u64) -> f64 {
        let answers = rows as f64 * f64::from(self.config.rounds);
        let (full, empty) = (self.variance(answers, answers), self.variance(0.0, answers));
        (full + (f64::from(self.config.bins) - 1.0) * empty).max(0.0).sqrt()
    }

    fn hops(&self) -> u64 {
        u64::from(self.config.members) * u64::from(self.config.rounds)
    }

    fn position(&self, hop: u64) -> PeerId {
        PeerId(((hop - 1) % u64::from(self.config.members)) as u32)
    }

    /// Adds uniform counts, from bits that nobody else knows.
    fn strew(&self, tau: Released<Vec<f64>>, count: u64, cx: &mut Cx<'_>) -> Released<Vec<f64>> {
        let mut strewn = vec![0.0; self.config.bins as usize];
        for _ in 0..count {
            let cell = cx.secret.below(strewn.len());
            strewn[cell] += 1.0;
        }
        // PRIVACY: they have nothing to do with anybody's data.
        tau.with_public(Public::declare(strewn), |strewn, mut tau| {
            tau.iter_mut().zip(strewn).for_each(|(count, more)| *count += more);
            tau
        })
    }

    /// The agent holds the token: answers, and passes it on.
    fn hold(&self, me: &mut State, observations: Observations<'_>, token: Held, cx: &mut Cx<'_>) -> Result<(), Full> {
        let HistogramConfig { range, bins, local_epsilon, .. } = self.config;
        let mut answers: Vec<f64> = observations.rows().flatten().map(|value| range.cell(bins, value) as f64).collect();
        let rows = answers.len() as u64;
        // PRIVACY: each row is answered by randomized response; of the sum of all answers in a window an observer sees no more. One record moves one
        // answer: one charge for all. Charged for one other member as observer: proofs/clones.md.
        let answered = match local_epsilon {
            Some(_) => cx.gate.respond(Track::Token, bins, &mut answers, Audience::OneMember),
            None => cx.gate.reveal(&mut answers[..]),
        };
        let mut tau = match answered {
            // PRIVACY: whoever sent the counts knows them.
            Ok(answered) => answered.with_public(Public::declare(token.counts), |mut counts, answers| {
                for answer in answers.iter() {
                    if let Some(count) = counts.get_mut(*answer as usize) {
                        *count += 1.0;
                    }
                }
                counts
            }),
            // Beyond its plan a member makes uniform counts alone: others rely on them.
            Err(Exhausted) => self.strew(Public::declare(token.counts).into(), rows, cx),
        };
        me.hop = token.hop;
        if token.hop == 1 {
            tau = self.strew(tau, self.blanket(), cx);
        }
        let (hop, answers) = (token.hop + 1, token.answers + rows);
        if hop <= self.hops() {
            return cx.outbox.send_durable(self.position(hop), letter(hop, answers, &tau, WalkLetter::Token));
        }
        let tau = self.strew(tau, self.blanket(), cx);
        for to in cx.reach.iter().map(|edge| edge.peer) {
            // Whoever has been gone for so long does not learn it.
            let _ = cx.outbox.send_durable(to, letter(hop, answers, &tau, WalkLetter::Outcome));
        }
        me.learns(self, answers, tau.into_inner());
        Ok(())
    }
}

/// A letter with these counts.
fn letter<'a>(
    hop: u64,
    answers: u64,
    tau: &'a Released<Vec<f64>>,
    kind: fn(Token<'a>) -> WalkLetter<'a>,
) -> Released<WalkLetter<'a>> {
    // PRIVACY: hops follow from the task, answers from numbers of rows.
    tau.as_ref().with_public(Public::declare((hop, answers, kind)), |(hop, answers, kind), counts| {
        let (number, epoch, contributions) = (0, Epoch::default(), hop - 1);
        kind(Token { number, epoch, hop, contributions, weight: answers, values: Numbers::Plain(counts) })
    })
}

/// The token in its holder's hands.
struct Held {
    hop: u64,
    answers: u64,
    counts: Vec<f64>,
}

/// What an agent remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The last hop that it made.
    hop: u64,
    /// How many answers there were, and the counts.
    outcome: Option<(u64, Vec<f64>)>,
    estimate: Vec<f64>,
}

impl State {
    /// Whether it knows the histogram.
    pub fn knows(&self) -> bool {
        self.outcome.is_some()
    }

    fn learns(&mut self, histogram: &RingHistogram, answers: u64, counts: Vec<f64>) {
        histogram.estimate(&counts, answers, &mut self.estimate);
        self.outcome = Some((answers, counts));
    }
}

impl Algorithm for RingHistogram {
    /// One column.
    type Data<'d> = Observations<'d>;
    type State = State;
    type Letter<'a> = WalkLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Observations<'_>) -> usize {
        HEAD_BYTES + 8 * self.config.bins as usize
    }

    fn wake_rate(&self, _: Observations<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let bins = self.config.bins as usize;
        let mut me = State { estimate: vec![0.0; bins], ..State::default() };
        if cx.me == self.position(1) {
            let first = Held { hop: 1, answers: 0, counts: vec![0.0; bins] };
            self.hold(&mut me, observations, first, cx).expect("nothing waits for anybody yet");
        }
        Ok(me)
    }

    /// Nobody is waited for.
    fn on_wake(&self, _: &mut State, _: Observations<'_>, _: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        observations: Observations<'_>,
        _: PeerId,
        letter: WalkLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let (WalkLetter::Token(token) | WalkLetter::Outcome(token)) = letter else { return Err(Reject::Malformed) };
        let Token { hop, weight: answers, values, .. } = token;
        let mut counts = vec![0.0; self.config.bins as usize];
        values.copy_to(&mut counts)?;
        if !counts.iter().all(|count| *count >= 0.0 && *count <= COUNT_MAX && libm::trunc(*count) == *count) {
            return Err(Reject::NotFinite);
        }
        if me.knows() {
            return Err(Reject::OutOfTurn);
        }
        match letter {
            WalkLetter::Outcome(_) if hop == self.hops() + 1 => me.learns(self, answers, counts),
            WalkLetter::Token(_) if (1..=self.hops()).contains(&hop) && self.position(hop) == cx.me => {
                if hop <= me.hop {
                    return Err(Reject::OutOfTurn);
                }
                self.hold(me, observations, Held { hop, answers, counts }, cx)?;
            }
            _ => return Err(Reject::Malformed),
        }
        Ok(())
    }

    fn is_done(&self, me: &State) -> bool {
        me.knows()
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
        let bins = self.config.bins as usize;
        saved::check(me.hop <= self.hops() && saved::is_vector(&me.estimate, bins))?;
        let mut estimate = vec![0.0; bins];
        if let Some((answers, counts)) = &me.outcome {
            saved::check(saved::is_vector(counts, bins) && *answers <= WEIGHT_MAX)?;
            self.estimate(counts, *answers, &mut estimate);
        }
        saved::check(estimate == me.estimate)?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        &me.estimate
    }
}
