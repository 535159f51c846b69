//! Swaps of observations between agents: what all gossip about pairs has in common.
//!
//! Each row of an agent is a *node* of its own (several rows of one agent are several nodes, and meet among themselves at home, free of charge). A node
//! holds a pair of observations, h of which is what it learns from. At a wake an agent
//!
//! 1. lets two of its own nodes meet, if it has two,
//! 2. offers an observation of one of its nodes to a random neighbour, one of whose nodes takes it and answers with its own.
//!
//! At a meeting observations change places, and a [`Rule`] says what becomes of the nodes' estimates. Any two nodes of two neighbours meet equally often
//! in both directions, so that an observation is in the long run equally often everywhere, however many rows the agents have.
//!
//! # All or nothing
//!
//! | letter | numbers | what became of it |
//! |---|---|---|
//! | offer | an observation, and what the rule shares | the node that offered it takes part in nothing until there is an answer |
//! | answer | an observation, and what the rule shares | the node that answered has taken the one that was offered |
//! | decline | none | all nodes of the receiver wait themselves; the offer is void |
//!
//! All are durable: read once, and in order. An agent has one offer open with a neighbour at most, and answers at once. So each observation is, at any
//! time, in exactly one place: with a node that does not wait, in a letter, or with a node whose offer is unread or was declined. What is slow, lost,
//! doubled or interrupted on the way decides when a meeting happens, never whether one half of it does; and at most two letters wait for one neighbour.
//!
//! Nobody waits for a neighbour but the node whose observation is with it. Where that neighbour is gone for good, the observation is gone with it, and the
//! node, which cannot know, keeps its last estimate; the agent's other nodes go on. An agent without rows declines everything.
//!
//! # Privacy
//! Without `[privacy]` none: observations leave as they are, and wander to everyone. The gate charges every letter epsilon = infinity.
//!
//! Where the kernel is one of answers (`answered.rs`), each row is told once by randomized response when its owner starts, for one charge, against everyone. All
//! that leaves after that is answers and what is computed from them.

use super::kernel::PairKernel;
use crate::config::{ConfigError, positive};
use crate::{Observations, saved};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sottovoce_core::{
    Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, Time, Wire, wire::Numbers,
};
use sottovoce_privacy::{Audience, Exhausted, Public, Track};
use std::fmt::Debug;

/// Larger values are moved to this, so that squares and sums of them may be sent.
pub const OBSERVATION_MAX: f64 = 1e30;

/// More rows than one agent has where answers carry numbers of their own.
const ROWS_MAX: f64 = 1_048_576.0;

/// What a meeting does to the estimates of the two nodes.
pub trait Rule: Copy + Debug + Send + Sync {
    /// What a node knows of the statistic.
    type Estimate: Clone + Debug + Default + Send + Serialize + DeserializeOwned;
    /// Whether both observations of a node wander. Else the first one is its own.
    const BOTH_WANDER: bool;
    /// Whether the two share a number.
    const SHARES: bool;

    /// Which of its two observations, 0 or 1, a node swaps at this time.
    fn side(&self, now: Time) -> usize;

    /// Brings an estimate up to date, before a meeting at this time; `h` is that of the pair that the node holds.
    fn accrue(&self, mine: &mut Self::Estimate, h: impl FnOnce() -> f64, now: Time);

    /// The number that is shared; the two go on with the mean of theirs.
    fn shared(&self, mine: &Self::Estimate) -> f64;

    /// The meeting; `h` is that of the pair that the node held before it.
    fn meet(&self, mine: &mut Self::Estimate, mean: f64, h: impl FnOnce() -> f64);

    /// The estimate of U2 when it was last up to date.
    fn value(&self, mine: &Self::Estimate) -> f64;

    /// Whether it can be one that was saved.
    fn is_sound(&self, mine: &Self::Estimate) -> bool;

    /// How often an agent's clock ticks.
    fn wake_rate(&self, peers: Peers<'_>) -> f64;
}

/// Gossip about pairs, by a rule: see `gosta`, `gosta_sync` and `u2_gossip`.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<K, R> {
    kernel: K,
    factor: f64,
    rule: R,
}

impl<K: PairKernel, R: Rule> Exchange<K, R> {
    /// Checks the hyper-parameters: what the statistic is U2 times of is a finite number above zero.
    pub(super) fn with_rule(kernel: K, factor: f64, rule: R) -> Result<Self, ConfigError> {
        Ok(Exchange { kernel, factor: positive("factor", factor)?, rule })
    }

    /// What each of an agent's nodes would estimate at this time.
    pub fn estimates_at(&self, me: &State<R::Estimate>, now: Time) -> impl Iterator<Item = f64> {
        (0..me.estimates.len()).map(move |node| {
            let mut estimate = me.estimates[node].clone();
            self.rule.accrue(&mut estimate, || self.h(me, node), now);
            self.factor * self.rule.value(&estimate)
        })
    }

    /// What an agent would estimate at this time: the mean of its nodes.
    pub fn estimate_at(&self, me: &State<R::Estimate>, now: Time) -> f64 {
        self.estimates_at(me, now).sum::<f64>() / me.estimates.len().max(1) as f64
    }

    fn h(&self, me: &State<R::Estimate>, node: usize) -> f64 {
        let (one, other) = me.pair(node).split_at(me.width);
        self.kernel.value(one, other)
    }

    /// An agent's nodes before any meeting: each holds its own row twice.
    fn nodes(&self, observations: Observations<'_>) -> Vec<f64> {
        assert_eq!(observations.points.dimension, self.kernel.columns(), "as many columns as the kernel has");
        let moderate =
            |value: f64| if value.is_finite() { value.clamp(-OBSERVATION_MAX, OBSERVATION_MAX) } else { 0.0 };
        let mut pairs = Vec::with_capacity(2 * self.kernel.width() * observations.points.len());
        for (row, label) in observations.rows().zip(observations.points.labels) {
            let start = pairs.len();
            pairs.extend(row.map(moderate));
            pairs.extend(self.kernel.has_label().then_some(moderate(*label)));
            pairs.extend_from_within(start..);
        }
        pairs
    }

    /// The same where rows are told by randomized response: each node holds its own answer twice.
    fn answering_nodes(
        &self,
        categories: u32,
        observations: Observations<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Vec<f64>, Exhausted> {
        cx.scratch.clear();
        cx.scratch.extend(observations.rows().map(|mut row| f64::from(self.kernel.category(&mut row))));
        // PRIVACY: one answer for each row, which one row moves, to everyone; the plan has one step of randomized response for all of them.
        let answers = cx.gate.respond(Track::Models, categories, cx.scratch, Audience::Everyone)?;
        let mut pairs = Vec::with_capacity(2 * self.kernel.width() * observations.points.len());
        for ((answer, label), row) in answers.into_inner().iter().zip(observations.points.labels).zip(0u32..) {
            let start = pairs.len();
            pairs.push(*answer);
            pairs.extend(self.kernel.has_label().then_some(*label));
            // Whose answer it is, so that nobody pairs it with itself.
            pairs.push(f64::from(cx.me.0) * ROWS_MAX + f64::from(row));
            pairs.extend_from_within(start..);
        }
        Ok(pairs)
    }

    fn accrue(&self, me: &mut State<R::Estimate>, node: usize, now: Time) {
        let (one, other) = me.pairs[2 * me.width * node..][..2 * me.width].split_at(me.width);
        self.rule.accrue(&mut me.estimates[node], || self.kernel.value(one, other), now);
    }

    fn meet(&self, me: &mut State<R::Estimate>, node: usize, mean: f64) {
        let (one, other) = me.pairs[2 * me.width * node..][..2 * me.width].split_at(me.width);
        self.rule.meet(&mut me.estimates[node], mean, || self.kernel.value(one, other));
    }

    /// Two of the agent's own nodes meet.
    fn meet_at_home(&self, me: &mut State<R::Estimate>, side: usize, cx: &mut Cx<'_>) {
        if me.free() < 2 {
            return;
        }
        let one = me.free_node(cx);
        let other = loop {
            let other = me.free_node(cx);
            if other != one {
                break other;
            }
        };
        [one, other].iter().for_each(|&node| self.accrue(me, node, cx.now));
        let mean = (self.rule.shared(&me.estimates[one]) + self.rule.shared(&me.estimates[other])) / 2.0;
        [one, other].iter().for_each(|&node| self.meet(me, node, mean));
        let (first, second) = (me.place(one.min(other), side), me.place(one.max(other), side));
        let (front, back) = me.pairs.split_at_mut(second);
        front[first..first + me.width].swap_with_slice(&mut back[..me.width]);
    }

    /// Offers an observation of a random node to a random neighbour.
    fn offer(&self, me: &mut State<R::Estimate>, side: usize, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        if cx.peers.is_empty() {
            return Ok(());
        }
        let peer = cx.peers.edge(cx.coin.below(cx.peers.len())).peer;
        let Err(at) = me.find(peer) else { return Ok(()) };
        if me.free() == 0 {
            return Ok(());
        }
        let node = me.free_node(cx);
        self.accrue(me, node, cx.now);
        let kind = SwapKind::Offer { side };
        let mean = self.rule.shared(&me.estimates[node]);
        let offered = &me.pairs[me.place(node, side)..][..me.width];
        match self.send(kind, offered, mean, peer, cx) {
            Ok(()) => me.open.insert(at, Open { peer, node, side }),
            Err(Reject::Exhausted) => return Err(Exhausted),
            // Too many letters wait for this neighbour: there is no meeting.
            Err(_) => {}
        }
        Ok(())
    }

    /// Takes what was offered for one of the agent's nodes, and answers with what that had.
    fn take(
        &self,
        me: &mut State<R::Estimate>,
        side: usize,
        letter: &SwapLetter<'_>,
        from: PeerId,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        if me.free() == 0 {
            return self.send(SwapKind::Decline, &[], 0.0, from, cx);
        }
        let node = me.free_node(cx);
        self.accrue(me, node, cx.now);
        let mean = match letter.numbers.iter().nth(me.width) {
            Some(theirs) => (self.rule.shared(&me.estimates[node]) + theirs) / 2.0,
            None => 0.0,
        };
        let place = me.place(node, side);
        self.send(SwapKind::Answer, &me.pairs[place..place + me.width], mean, from, cx)?;
        self.meet(me, node, mean);
        me.pairs[place..place + me.width]
            .iter_mut()
            .zip(letter.numbers.iter())
            .for_each(|(mine, theirs)| *mine = theirs);
        Ok(())
    }

    /// The other half of a meeting: the answer to an offer.
    fn finish(&self, me: &mut State<R::Estimate>, open: Open, letter: &SwapLetter<'_>) {
        self.meet(me, open.node, letter.numbers.iter().nth(me.width).unwrap_or(0.0));
        let place = me.place(open.node, open.side);
        me.pairs[place..place + me.width]
            .iter_mut()
            .zip(letter.numbers.iter())
            .for_each(|(mine, theirs)| *mine = theirs);
    }

    fn send(
        &self,
        kind: SwapKind,
        observation: &[f64],
        shared: f64,
        to: PeerId,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        cx.scratch.clear();
        cx.scratch.extend_from_slice(observation);
        cx.scratch.extend((R::SHARES && kind != SwapKind::Decline).then_some(shared));
        let letter = SwapLetter { kind, numbers: Numbers::Plain(cx.scratch) };
        let letter = match self.kernel.categories() {
            // PRIVACY: an exact observation leaves, and will be passed on to anyone: epsilon = infinity. That all nodes wait is no data, and costs the
            // same.
            None => cx.gate.reveal(letter)?,
            // PRIVACY: answers of this agent and of others, each charged when its owner started, and means of what is computed from them.
            Some(_) => Public::declare(letter).into(),
        };
        Ok(cx.outbox.send_durable(to, letter)?)
    }

    /// Whether the letter has the numbers that its kind has, and an observation that a row could be.
    fn check(&self, letter: &SwapLetter<'_>, observations: Observations<'_>) -> Result<(), Reject> {
        let width = self.kernel.width();
        let numbers = if letter.kind == SwapKind::Decline { 0 } else { width + usize::from(R::SHARES) };
        if letter.numbers.len() != numbers {
            return Err(Reject::WrongDimension);
        }
        if matches!(letter.kind, SwapKind::Offer { side: 0 }) && !R::BOTH_WANDER {
            return Err(Reject::Malformed);
        }
        if let Some(categories) = self.kernel.categories() {
            let is_answer = letter.numbers.iter().next().is_none_or(|answer| is_category(answer, categories));
            let is_finite = letter.numbers.iter().take(width).all(|value| value.abs() <= OBSERVATION_MAX);
            return if is_answer && is_finite { Ok(()) } else { Err(Reject::NotFinite) };
        }
        let fits = |(column, value): (usize, f64)| {
            let bounds = observations.bounds.filter(|_| column < self.kernel.columns());
            value.abs() <= OBSERVATION_MAX && bounds.is_none_or(|bounds| bounds.clip(value) == value)
        };
        if letter.numbers.iter().take(width).enumerate().all(fits) { Ok(()) } else { Err(Reject::NotFinite) }
    }

    /// The agent's estimate: the mean of its nodes'.
    fn conclude(&self, me: &mut State<R::Estimate>) {
        // From zero: the sum of no numbers at all would be minus zero.
        let sum = me.estimates.iter().fold(0.0, |sum, estimate| sum + self.rule.value(estimate));
        me.estimate = [self.factor * sum / me.estimates.len().max(1) as f64];
    }
}

/// Whether it is one of so many, counted from 0.
fn is_category(answer: f64, categories: u32) -> bool {
    answer >= 0.0 && answer < f64::from(categories) && libm::trunc(answer) == answer
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State<E> {
    /// Numbers in an observation.
    width: usize,
    /// By node: its pair of observations.
    pairs: Vec<f64>,
    /// By node: what it knows of the statistic.
    estimates: Vec<E>,
    /// Offers without an answer, by increasing peer.
    open: Vec<Open>,
    /// How many neighbours it has. It is saved, so that the state of an agent with fewer or more is refused.
    degree: usize,
    estimate: [f64; 1],
    /// The estimate at the last wake.
    before: f64,
}

/// An offer without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// To whom.
    pub peer: PeerId,
    /// The node that waits.
    pub node: usize,
    /// Which of its two observations was offered.
    pub side: usize,
}

impl<E> State<E> {
    /// The two observations of a node, one after the other.
    pub fn pair(&self, node: usize) -> &[f64] {
        &self.pairs[2 * self.width * node..][..2 * self.width]
    }

    /// What each node knows of the statistic.
    pub fn estimates(&self) -> &[E] {
        &self.estimates
    }

    /// Offers without an answer, by increasing peer.
    pub fn open(&self) -> &[Open] {
        &self.open
    }

    fn place(&self, node: usize, side: usize) -> usize {
        self.width * (2 * node + side)
    }

    fn find(&self, peer: PeerId) -> Result<usize, usize> {
        self.open.binary_search_by_key(&peer, |open| open.peer)
    }

    /// How many nodes wait for nothing.
    fn free(&self) -> usize {
        self.estimates.len() - self.open.len()
    }

    /// One of them; there must be one.
    fn free_node(&self, cx: &mut Cx<'_>) -> usize {
        assert!(self.free() > 0, "a node that waits for nothing");
        loop {
            let node = cx.coin.below(self.estimates.len());
            if self.open.iter().all(|open| open.node != node) {
                break node;
            }
        }
    }
}

/// What a letter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapKind {
    /// An observation, for another one.
    Offer {
        /// Which of a node's two observations it is.
        side: usize,
    },
    /// The other one.
    Answer,
    /// No node is free.
    Decline,
}

/// A letter of a swap.
///
/// | bytes | what |
/// |---|---|
/// | 1 | kind: 0 and 1 an offer of the first and of the second observation, 2 an answer, 3 a decline |
/// | 8 each | the observation, and what the rule shares, little-endian; none in a decline |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwapLetter<'a> {
    /// What it says.
    pub kind: SwapKind,
    /// The observation, and what the rule shares.
    pub numbers: Numbers<'a>,
}

impl<'a> Wire<'a> for SwapLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            SwapKind::Offer { side } => side as u8,
            SwapKind::Answer => 2,
            SwapKind::Decline => 3,
        });
        self.numbers.encode(out);
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let ([kind], numbers) = bytes.split_first_chunk().ok_or(Reject::Malformed)?;
        let kind = match kind {
            0 | 1 => SwapKind::Offer { side: usize::from(*kind) },
            2 => SwapKind::Answer,
            3 => SwapKind::Decline,
            _ => return Err(Reject::Malformed),
        };
        Ok(SwapLetter { kind, numbers: Numbers::decode(numbers)? })
    }

    fn vectors(&self) -> u64 {
        u64::from(self.kind != SwapKind::Decline)
    }
}

impl<K: PairKernel, R: Rule> Algorithm for Exchange<K, R> {
    type Data<'d> = Observations<'d>;
    type State = State<R::Estimate>;
    type Letter<'a> = SwapLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, observations: Observations<'_>) -> usize {
        crate::problem::letter_bytes_max(observations.points.dimension)
    }

    fn wake_rate(&self, _: Observations<'_>, peers: Peers<'_>) -> f64 {
        self.rule.wake_rate(peers)
    }

    fn start(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<Self::State, Exhausted> {
        let pairs = match self.kernel.categories() {
            None => self.nodes(observations),
            Some(categories) => self.answering_nodes(categories, observations, cx)?,
        };
        Ok(State {
            width: self.kernel.width(),
            pairs,
            estimates: vec![R::Estimate::default(); observations.points.len()],
            open: Vec::new(),
            degree: cx.peers.len(),
            estimate: [0.0],
            before: 0.0,
        })
    }

    fn on_wake(&self, me: &mut Self::State, _: Observations<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let moved = (me.estimate[0] - me.before).abs();
        me.before = me.estimate[0];
        let side = self.rule.side(cx.now);
        self.meet_at_home(me, side, cx);
        self.offer(me, side, cx)?;
        self.conclude(me);
        Ok(Activity { moved })
    }

    fn on_letter(
        &self,
        me: &mut Self::State,
        observations: Observations<'_>,
        from: PeerId,
        letter: SwapLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        cx.peers.position(from).ok_or(Reject::NotANeighbour)?;
        self.check(&letter, observations)?;
        if let SwapKind::Offer { side } = letter.kind {
            self.take(me, side, &letter, from, cx)?;
        } else {
            let open = me.find(from).map(|at| me.open.remove(at)).map_err(|_| Reject::OutOfTurn)?;
            if letter.kind == SwapKind::Answer {
                self.finish(me, open, &letter);
            }
        }
        self.conclude(me);
        Ok(())
    }

    fn save(&self, me: &Self::State, out: &mut Vec<u8>) {
        saved::write(&(me.width, &me.pairs, &me.estimates, &me.open, me.degree, me.before), out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        observations: Observations<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Self::State, CannotResume> {
        saved::expect_same(neighbours)?;
        type Saved<E> = (usize, Vec<f64>, Vec<E>, Vec<Open>, usize, f64);
        let (width, pairs, estimates, open, degree, before): Saved<R::Estimate> = saved::read(saved)?;
        let nodes = observations.points.len();
        saved::check(width == self.kernel.width() && pairs.iter().all(|value| value.abs() <= OBSERVATION_MAX))?;
        saved::check(pairs.len() == 2 * width * nodes && estimates.len() == nodes && before.is_finite())?;
        saved::check(estimates.iter().all(|estimate| self.rule.is_sound(estimate)))?;
        saved::check(degree == cx.peers.len() && saved::are_neighbours(cx.peers, open.iter().map(|open| open.peer)))?;
        let is_known = |open: &Open| open.node < nodes && open.side < 2 && (R::BOTH_WANDER || open.side == 1);
        let mut waiting: Vec<usize> = open.iter().map(|open| open.node).collect();
        waiting.sort_unstable();
        saved::check(open.iter().all(is_known) && waiting.windows(2).all(|two| two[0] < two[1]))?;
        let mut me = State { width, pairs, estimates, open, degree, estimate: [0.0], before };
        if let Some(categories) = self.kernel.categories() {
            saved::check(me.pairs.chunks_exact(width).all(|one| is_category(one[0], categories)))?;
        } else if !R::BOTH_WANDER {
            // A node's own row follows from the data.
            let own = self.nodes(observations);
            let nodes = me.pairs.chunks_exact_mut(2 * width).zip(own.chunks_exact(2 * width));
            nodes.for_each(|(pair, own)| pair[..width].copy_from_slice(&own[..width]));
        }
        self.conclude(&mut me);
        saved::check(me.estimate[0].is_finite())?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a Self::State, _posted: &'a [f64]) -> &'a [f64] {
        &me.estimate
    }
}

#[cfg(test)]
mod tests;
