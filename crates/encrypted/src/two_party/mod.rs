//! Statistics of pairs by two-party computation (thesis 3.3.4): pairs compute a noisy kernel that neither of them sees, and only the aggregator reads it.
//!
//! ```text
//! beacon     member: commitment -> aggregator: all commitments -> member: reveals -> aggregator: all secrets, and so P permutations
//! session    of each pair, the member with the larger number evaluates, the other garbles: opening, choices, request, tables
//! result     evaluator: its share to the aggregator, and word of it to the garbler -> garbler: its share to the aggregator
//! end        aggregator: the mean of what it decoded, when all are in or none has come for long; nobody else learns it
//! ```
//!
//! Members are **honest but curious**: they do what is written here, and look at all they see. Whoever neither commits nor reveals in time is left out; where
//! one has not revealed, the beacon is begun anew. What is durable: the beacon's letters, the word that a session is finished, and shares. What flows
//! between opening and tables may be lost: the evaluator then begins anew with the next number, and both with fresh labels. A
//! member that leaves: its pairs give no result. If who leaves has nothing to do with values, the mean of the others is still unbiased, with the variance of
//! fewer pairs.
//!
//! # Privacy
//! Against the aggregator, alone or with any other members: each answer has the epsilon of its circuit, and a member is in at most P of them. **An answer is told once**:
//! an evaluator sends one share for a pair in its life, and a garbler one, that of the same attempt; of every other attempt neither share leaves. So the
//! charge that stands before the first message of the first attempt covers all of them. The proof is in `crates/crypto/proofs/two-party-protocol.md`.
//!
//! Differs from the thesis: pairs that come up in several permutations meet once and compute as often; for AUC pairs of one class do not meet, since labels are public.

mod desk;
mod letter;
pub mod mechanism;
mod member;
pub mod pairing;

pub use desk::Desk;
pub use letter::{Kind, PairLetter};
pub use mechanism::{Mechanism, PAIRS_MAX, PairStatistic, Spread, best_pairs};
pub use member::{Meeting, State};
pub use sottovoce_crypto::two_party::ideal::Ideal;
pub use sottovoce_crypto::two_party::pair::{Circuits, Engine};

use letter::HEAD_BYTES;
use sottovoce_algorithms::config::{ConfigError, positive};
use sottovoce_algorithms::{Bounds, Observations, saved};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, Time};
use sottovoce_crypto::Context;
use sottovoce_crypto::two_party::Session;
use sottovoce_crypto::two_party::kernel::Larger;
use sottovoce_crypto::two_party::pair::{ANSWER_BYTES, request_bytes, tables_bytes};
use sottovoce_privacy::Exhausted;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// The most members: each looks at all of them.
pub const MEMBERS_MAX: u32 = 1 << 16;
/// The most members of a real beacon, in which each checks the commitments of all.
pub const BEACON_MEMBERS_MAX: u32 = 1 << 10;
/// An aggregator waits for shares so many time-outs.
const PATIENCE: f64 = 10.0;

/// The hyper-parameters, the same for all agents.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | members | n | 2 and above | everyone |
/// | aggregator | | a member | the first |
/// | statistic, range, bits | h | 1 to 32 bits | the task's; 32 |
/// | epsilon | | of each member, in all; none without privacy | the task's |
/// | pairs | P | 1 to 32 | by the formula |
/// | timeout | | above zero, in wake intervals | a guess: 20 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPartyConfig {
    /// How many members there are.
    pub members: u32,
    /// Who learns the statistic.
    pub aggregator: u32,
    /// What is measured.
    pub statistic: PairStatistic,
    /// Values are moved into this.
    pub range: Bounds,
    /// Bits of a value on the grid.
    pub bits: u32,
    /// What all answers of a member may cost together.
    pub epsilon: Option<f64>,
    /// P.
    pub pairs: u32,
    /// After this time without an answer something is done again, or without somebody.
    pub timeout: f64,
}

/// The protocol, checked. `E` is how a pair computes: [`Circuits`], or in simulations [`Ideal`], of which a real peer can send no message.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoParty<E> {
    config: TwoPartyConfig,
    mechanism: Mechanism,
    engine: PhantomData<E>,
}

impl<E: Engine> TwoParty<E> {
    /// Checks the hyper-parameters.
    pub fn new(config: TwoPartyConfig) -> Result<Self, ConfigError> {
        let TwoPartyConfig { members, aggregator, pairs, statistic, bits, range, epsilon, timeout } = config;
        let most = if E::IS_IDEAL { MEMBERS_MAX } else { BEACON_MEMBERS_MAX };
        if !(2..=most).contains(&members) {
            let accepted = if E::IS_IDEAL { "2 to 65,536" } else { "2 to 1,024 with real circuits" };
            return Err(ConfigError { field: "the number of members", value: members.to_string(), accepted });
        }
        if aggregator >= members {
            let (value, accepted) = (aggregator.to_string(), "a member");
            return Err(ConfigError { field: "aggregator", value, accepted });
        }
        if !(1..=PAIRS_MAX).contains(&pairs) {
            return Err(ConfigError { field: "pairs", value: pairs.to_string(), accepted: "1 to 32" });
        }
        positive("timeout", timeout)?;
        let epsilon = epsilon.map(|epsilon| epsilon / f64::from(pairs));
        Ok(TwoParty { config, mechanism: Mechanism::new(statistic, bits, range, epsilon)?, engine: PhantomData })
    }

    /// What each pair computes.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// What was agreed on.
    pub fn config(&self) -> &TwoPartyConfig {
        &self.config
    }

    /// Who meets whom, how often, and for AUC who should have the larger number.
    fn meetings(&self, beacon: [u8; 32], present: &[bool], labels: &[bool]) -> BTreeMap<(u32, u32), Pair> {
        let members: Vec<u32> = (0..self.config.members).filter(|&id| present[id as usize]).collect();
        let is_auc = self.config.statistic == PairStatistic::Auc;
        let most = self.batch_max();
        let pairs = pairing::pairs(beacon, &members, self.config.pairs).into_iter();
        let meets = |((a, b), count): ((u32, u32), u32)| {
            let classes = (labels[a as usize], labels[b as usize]);
            let pair = Pair { instances: count.min(most), garbler_larger: classes.0 };
            (!is_auc || classes.0 != classes.1).then_some(((a, b), pair))
        };
        pairs.filter_map(meets).collect()
    }

    /// Instances that a session computes at most.
    fn batch_max(&self) -> u32 {
        self.mechanism.circuit(Larger::Garbler).batch_max() as u32
    }

    /// What an attempt of a pair is about: another attempt is another session.
    fn session(&self, beacon: [u8; 32], (garbler, evaluator): (u32, u32), pair: Pair, attempt: u32) -> Session {
        let larger = if pair.garbler_larger { Larger::Garbler } else { Larger::Evaluator };
        let context = Context { round: u64::from(attempt), sender: key(garbler), task: [0; 32], board: beacon };
        let session =
            Session::new(&context, key(evaluator), key(self.config.aggregator), self.mechanism.circuit(larger));
        session.expect("a pair of two")
    }

    /// The context of a round of the beacon.
    fn beacon_context(&self, round: u32, sender: u32) -> Context {
        Context { task: [0; 32], round: u64::from(round), sender: key(sender), board: key(self.config.aggregator) }
    }
}

/// What a pair has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pair {
    /// How often they compute.
    pub instances: u32,
    /// For AUC: whether the garbler's number should be the larger one.
    pub garbler_larger: bool,
}

/// A member's name in transcripts. The task's digest is in the name of the network's protocol, and so in none of them.
fn key(member: u32) -> [u8; 32] {
    let mut key = *b"....two-party member of the task";
    key[..4].copy_from_slice(&member.to_le_bytes());
    key
}

/// As many bits, eight to a byte.
fn to_bitmap(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|eight| eight.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit))).collect()
}

/// So many bits; none beyond them may be set.
fn from_bitmap(bytes: &[u8], count: u32) -> Result<Vec<bool>, Reject> {
    let bits: Vec<bool> = bytes.iter().flat_map(|byte| (0..8).map(move |at| byte >> at & 1 == 1)).collect();
    let (bits, rest) = bits.split_at_checked(count as usize).ok_or(Reject::Malformed)?;
    if rest.len() < 8 && !rest.contains(&true) { Ok(bits.to_vec()) } else { Err(Reject::Malformed) }
}

impl<E: Engine> Algorithm for TwoParty<E> {
    /// One row.
    type Data<'d> = Observations<'d>;
    type State = State<E>;
    type Letter<'a> = PairLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Observations<'_>) -> usize {
        let instances = self.config.pairs.min(self.batch_max());
        let pair = Pair { instances, garbler_larger: true };
        let session = self.session([0; 32], (0, 1), pair, 0);
        let instances = instances as usize;
        let lists = if E::IS_IDEAL { 0 } else { 32 * self.config.members as usize };
        let beacon = 32 + lists + 2 * (self.config.members as usize).div_ceil(8);
        // The longest of what is not a list.
        let flow = ANSWER_BYTES.max(request_bytes(&session, instances)).max(tables_bytes(&session, instances));
        HEAD_BYTES + flow.max(beacon)
    }

    fn wake_rate(&self, _: Observations<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, data: Observations<'_>, cx: &mut Cx<'_>) -> Result<State<E>, Exhausted> {
        let mut me = State::default();
        if cx.me == PeerId(self.config.aggregator) {
            let deadline = cx.now.after(Time(self.config.timeout));
            me.kept.desk = Some(Desk::new(self.config.members, deadline.0));
            cx.outbox.wake_at(deadline);
        }
        // Nothing waits for the aggregator yet.
        let _ = self.commit(&mut me, 1, data, cx);
        Ok(me)
    }

    /// A time-out: of the aggregator, or of an evaluator.
    fn on_wake(&self, me: &mut State<E>, data: Observations<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let before = me.kept.estimate;
        if me.kept.desk.as_ref().is_some_and(|desk| desk.is_due(cx.now)) {
            let say = me.kept.desk.as_mut().and_then(Desk::time_out::<E>);
            // Whoever has been gone for so long that no letter is kept for it is left out when its time is over.
            let _ = self.announce(me, data, say, cx);
        }
        if me.kept.retry.is_some_and(|at| at <= cx.now.0) {
            self.open_all(me, cx)?;
        }
        self.set_alarm(me, cx);
        Ok(Activity { moved: (me.kept.estimate - before).abs() })
    }

    fn on_letter(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        from: PeerId,
        letter: PairLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        self.hear(me, data, from, letter, cx)
    }

    fn is_done(&self, me: &State<E>) -> bool {
        me.kept.ended
    }

    fn save(&self, me: &State<E>, out: &mut Vec<u8>) {
        // PRIVACY: labels and halves of sessions under way are not written down: an attempt that breaks is never resumed.
        saved::write(&me.kept, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        data: Observations<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State<E>, CannotResume> {
        let me = State::of(saved::read(saved)?);
        saved::expect_same(neighbours)?;
        saved::check(me.kept.is_sound(&self.config, cx.me, !data.points.labels.is_empty()))?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State<E>, _: &'a [f64]) -> &'a [f64] {
        std::slice::from_ref(&me.kept.estimate)
    }
}

#[cfg(test)]
mod tests;
