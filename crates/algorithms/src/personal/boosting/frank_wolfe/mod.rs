//! Decentralized Frank-Wolfe: personalized boosting over a graph (thesis, section 2.2.2; Zantedeschi et al. 2020).
//!
//! The model of an agent is a combination of K base predictors with |theta_u|_1 <= beta; its points hold what they say
//! ([`crate::boosting`] has the loss and the objective Q). An agent that wakes moves towards the corner of the ball that the
//! gradient of its own block likes best:
//!
//! g = D_uu (theta_u - mu c_u A_u^T pi_u) - sum_v W_uv theta_v,   k = argmax |g_k|,   s = -beta sign(g_k) e_k
//!
//! theta_u <- (1 - gamma) theta_u + gamma s
//!
//! and tells its neighbours (k, sign, gamma), from which they repeat the step on their copies: ceil(log2 K) + 33 bits each,
//! where the vector has 64 K. gap_u = <theta_u - s, g> >= 0 comes with the gradient. Where the gaps of all agents sum up to
//! eps, Q is within eps of its minimum: an agent whose own gap is at most `gap_min` stays where it is.
//!
//! | step size | gamma |
//! |---|---|
//! | global clock | 2 n / (t + 2 n), t wakes of all n agents: 2 / (time + 2), time in mean wake intervals |
//! | local clock | 2 / (own wakes + 2) |
//! | descent | as far as Q falls on the way to s, found by a line search from the left |
//!
//! A wake reads the table A_u once: A_u theta_u is remembered and takes the same step as theta_u. The line search needs m_u
//! numbers, and is at least as good as gap_u / C_u with C_u = D_uu (mu c_u R^2 / 4 + |s - theta_u|^2), R the range of
//! A_u (s - theta_u). So with `Descent` and copies that are up to date no wake raises Q, and no clock is needed.
//!
//! Lossy links: a step carries its sender's version. The next version in turn is repeated, an older one is rejected, and a gap
//! makes the receiver ask for the whole model: at once, and again at each of its wakes until it comes. Who does not move at a
//! wake asks one neighbour whether there is news, so a lost last step is found out too; who has none to tell keeps silent.
//!
//! Differs from the paper: gamma(t) is printed with the wakes of everyone although no global clock is to be needed; both clocks
//! are offered, and `Descent`. gamma is rounded to the 32 bits that are sent before it is used. A whole model is sent with 64
//! bits a number, or a copy would not be exact. An isolated agent, for which Q is flat, boosts alone.

use super::letter::{BoostingLetter, Entries, PREDICTORS_MAX, Packed, SparseStep, model_bits, step_bits};
use super::sparse::{Sparse, move_towards};
use crate::boosting::{add_gradient, log_sum, softmax};
use crate::config::{ConfigError, positive};
use crate::personal::graph::Learner;
use crate::{Points, Shard, kernel::dot, saved, vector::largest};
use serde::{Deserialize, Serialize};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Edge, Neighbours, PeerId, Peers, Reject, Time};
use sottovoce_privacy::Exhausted;

/// Looks at the slope of Q in a line search.
const LINE_SEARCH_STEPS: usize = 8;

/// How far outside their bounds rounding may have carried saved numbers, relatively: by 2^-52 in each of 2^32 steps.
const SAVED_SLACK: f64 = 1e-6;

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | predictors | K | 1 to 2^31 | 200 in the thesis |
/// | trade-off | mu = 1 / lambda_1 | above 0 | 1, as everywhere |
/// | radius | beta | above 0 | tuned in {1, 10, 100} in the thesis |
/// | step size | gamma | one of three | the global clock, as in the authors' code |
/// | gap-min | | 0 and above | 0: never stay |
/// | local-rounds | | 0 and above | steps alone before the graph is learned; not used on a known graph |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrankWolfeConfig {
    /// K.
    pub predictors: usize,
    /// mu.
    pub trade_off: f64,
    /// beta.
    pub radius: f64,
    /// gamma.
    pub step_size: StepSize,
    /// An agent whose part of the duality gap is at most this does not move.
    pub gap_min: f64,
    /// Where neighbours are not known yet: how many steps an agent takes alone when it enters.
    pub local_rounds: usize,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepSize {
    /// Shrinks with the time of the whole network.
    #[default]
    GlobalClock,
    /// Shrinks with the agent's own wakes.
    LocalClock,
    /// As far as Q surely falls.
    Descent,
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct FrankWolfe {
    predictors: usize,
    trade_off: f64,
    radius: f64,
    step_size: StepSize,
    gap_min: f64,
    local_rounds: usize,
}

impl FrankWolfe {
    /// Checks the hyper-parameters.
    pub fn new(config: FrankWolfeConfig) -> Result<Self, ConfigError> {
        let FrankWolfeConfig { predictors, step_size, gap_min, local_rounds, .. } = config;
        if !(1..=PREDICTORS_MAX).contains(&predictors) {
            let accepted = "a whole number from 1 to 2147483648";
            return Err(ConfigError { field: "predictors", value: predictors.to_string(), accepted });
        }
        if !(gap_min >= 0.0 && gap_min.is_finite()) {
            let accepted = "a finite number of at least zero";
            return Err(ConfigError { field: "gap-min", value: gap_min.to_string(), accepted });
        }
        let (trade_off, radius) = (positive("trade-off", config.trade_off)?, positive("radius", config.radius)?);
        Ok(FrankWolfe { predictors, trade_off, radius, step_size, gap_min, local_rounds })
    }
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State {
    /// theta_u.
    model: Vec<f64>,
    /// A_u theta_u.
    margins: Vec<f64>,
    /// Steps taken.
    version: u32,
    wakes: u64,
    gap: f64,
    /// Sorted by peer.
    neighbours: Vec<Neighbour>,
    /// D_uu.
    degree: f64,
    bits: Bits,
}

/// What an agent knows of a neighbour.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Neighbour {
    peer: PeerId,
    weight: f64,
    copy: Sparse,
    /// One more than the version of the copy; zero while nothing is known.
    heard: u32,
    /// A later version exists; the copy waits for a whole model.
    behind: bool,
}

/// Bits sent, as the papers count them: without version numbers and without filling up bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    /// In steps: ceil(log2 K) + 33 for each neighbour.
    pub steps: u64,
    /// In whole models: nnz (ceil(log2 K) + 64).
    pub models: u64,
}

impl State {
    /// The agent's part of the duality gap at its last wake, before it moved.
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// Bits sent so far.
    pub fn bits(&self) -> Bits {
        self.bits
    }

    /// Steps taken so far.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// What it knows of a neighbour: the version, and the numbers that are not zero. For tests and reports.
    pub fn copy_of(&self, peer: PeerId) -> Option<(u32, impl Iterator<Item = (u32, f64)> + '_)> {
        let known = self.neighbours.iter().find(|neighbour| neighbour.peer == peer && neighbour.heard > 0)?;
        Some((known.heard - 1, known.copy.iter()))
    }

    fn position(&self, peer: PeerId) -> Result<usize, usize> {
        self.neighbours.binary_search_by_key(&peer, |neighbour| neighbour.peer)
    }
}

impl FrankWolfe {
    fn at_zero(&self, points: Points<'_>) -> State {
        State {
            model: vec![0.0; self.predictors],
            margins: vec![0.0; points.len()],
            version: 0,
            wakes: 0,
            gap: f64::INFINITY,
            neighbours: Vec::new(),
            degree: 0.0,
            bits: Bits::default(),
        }
    }

    /// The step an agent would take, and its part of the gap. `work` is overwritten.
    fn find_step(&self, me: &State, shard: Shard<'_>, time: Time, work: &mut Vec<f64>) -> (Option<SparseStep>, f64) {
        // An isolated agent has no graph term; its own loss then counts as if its degree were one.
        let alone = me.neighbours.is_empty();
        let (graph, loss) = if alone { (0.0, 1.0) } else { (me.degree, me.degree) };
        let loss = self.trade_off * shard.confidence * loss;
        work.clear();
        work.extend(me.model.iter().map(|theta| graph * theta));
        for neighbour in &me.neighbours {
            if neighbour.heard > 0 {
                neighbour.copy.add_to(-neighbour.weight, work);
            } else {
                // Nothing is known of it: it does not pull.
                work.iter_mut().zip(&me.model).for_each(|(work, theta)| *work -= neighbour.weight * theta);
            }
        }
        work.resize(self.predictors + me.margins.len(), 0.0);
        let (gradient, shares) = work.split_at_mut(self.predictors);
        softmax(&me.margins, shares);
        add_gradient(shard.points, loss, shares, gradient);
        let (index, steepest) = steepest(gradient);
        let gap = dot(&me.model, gradient) + self.radius * steepest.abs();
        if steepest == 0.0 || gap <= self.gap_min {
            return (None, gap.max(0.0));
        }
        let positive = steepest < 0.0;
        let size = match self.step_size {
            StepSize::GlobalClock => (2.0 / (time.0 + 2.0)) as f32,
            StepSize::LocalClock => (2.0 / (me.wakes as f64 + 2.0)) as f32,
            StepSize::Descent => {
                let corner = if positive { self.radius } else { -self.radius };
                for ((change, margin), (answers, label)) in shares.iter_mut().zip(&me.margins).zip(shard.points.iter())
                {
                    *change = corner * label * answers[index] - margin;
                }
                let bend = graph * distance_to_corner(&me.model, index, corner);
                towards_zero(farthest_descent(gap, bend, loss, &me.margins, shares))
            }
        };
        ((size > 0.0).then_some(SparseStep { index: index as u32, positive, size }), gap)
    }

    /// Takes a step; returns the largest change of a coordinate.
    fn take(&self, me: &mut State, points: Points<'_>, step: SparseStep) -> f64 {
        let SparseStep { index, positive, size } = step;
        let (keep, add) = self.factors(step);
        let at = index as usize;
        let old = me.model[at];
        let shrunk = largest(&me.model) * f64::from(size);
        move_towards(&mut me.model, keep, index, add);
        for (margin, (answers, label)) in me.margins.iter_mut().zip(points.iter()) {
            *margin = keep * *margin + add * label * answers[at];
        }
        debug_assert!(positive == (add > 0.0));
        me.version = me.version.checked_add(1).expect("four thousand million steps of one agent");
        shrunk.max((me.model[at] - old).abs())
    }

    /// theta <- keep theta + add e_k.
    fn factors(&self, step: SparseStep) -> (f64, f64) {
        let size = f64::from(step.size);
        (1.0 - size, if step.positive { size * self.radius } else { -size * self.radius })
    }
}

impl Learner for FrankWolfe {
    type State = State;
    type Letter<'a> = BoostingLetter<'a>;

    fn enter(&self, shard: Shard<'_>) -> State {
        let mut me = self.at_zero(shard.points);
        let mut work = Vec::new();
        for round in 1..=self.local_rounds {
            let (step, gap) = self.find_step(&me, shard, Time(round as f64), &mut work);
            me.gap = gap;
            let Some(step) = step else { break };
            me.wakes += 1;
            self.take(&mut me, shard.points, step);
        }
        // What was done alone was told to nobody, and does not count.
        (me.version, me.wakes) = (0, 0);
        me
    }

    fn learn(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        me.wakes += 1;
        for neighbour in me.neighbours.iter().filter(|neighbour| neighbour.behind) {
            ask(neighbour.peer, neighbour.heard, cx)?;
        }
        let (step, gap) = self.find_step(me, shard, cx.now, cx.scratch);
        me.gap = gap;
        let Some(step) = step else {
            if !me.neighbours.is_empty() {
                let neighbour = &me.neighbours[cx.coin.below(me.neighbours.len())];
                ask(neighbour.peer, neighbour.heard, cx)?;
            }
            return Ok(Activity { moved: 0.0 });
        };
        if !me.neighbours.is_empty() {
            let step = Packed::new(step, self.predictors);
            // PRIVACY: the exact step, chosen by the gradient of the exact loss, to all neighbours: epsilon = infinity.
            let letter = cx.gate.reveal(BoostingLetter::Step { version: me.version + 1, step })?;
            me.neighbours.iter().for_each(|neighbour| cx.outbox.send(neighbour.peer, letter));
            me.bits.steps += me.neighbours.len() as u64 * step_bits(self.predictors);
        }
        Ok(Activity { moved: self.take(me, shard.points, step) })
    }

    fn hear(&self, me: &mut State, from: PeerId, letter: BoostingLetter<'_>, cx: &mut Cx<'_>) -> Result<(), Reject> {
        let at = me.position(from).map_err(|_| Reject::NotANeighbour)?;
        let neighbour = &mut me.neighbours[at];
        match letter {
            BoostingLetter::Step { version, step } => {
                let step = step.unpack(self.predictors)?;
                if version < neighbour.heard {
                    return Err(Reject::OutOfTurn);
                }
                let heard = version.checked_add(1).ok_or(Reject::Malformed)?;
                if version == neighbour.heard && version > 0 {
                    let (keep, add) = self.factors(step);
                    neighbour.copy.move_towards(keep, step.index, add);
                    neighbour.heard = heard;
                } else if !neighbour.behind {
                    neighbour.behind = true;
                    ask(from, neighbour.heard, cx)?;
                }
            }
            BoostingLetter::Ask { heard } if heard <= me.version => {
                // PRIVACY: the exact model, to a neighbour and whoever listens: epsilon = infinity.
                let entries = Entries::Dense(&me.model);
                let letter = cx.gate.reveal(BoostingLetter::Model { version: me.version, entries })?;
                cx.outbox.send(from, letter);
                let nonzero = me.model.iter().filter(|value| **value != 0.0).count();
                me.bits.models += model_bits(self.predictors, nonzero);
            }
            BoostingLetter::Ask { .. } => {}
            BoostingLetter::Model { version, entries } => {
                let heard = version.checked_add(1).ok_or(Reject::Malformed)?;
                if heard <= neighbour.heard {
                    return Err(Reject::OutOfTurn);
                }
                entries.copy_to(self.predictors, self.radius, &mut neighbour.copy)?;
                (neighbour.heard, neighbour.behind) = (heard, false);
            }
        }
        Ok(())
    }

    fn relink(&self, me: &mut State, peer: PeerId, weight: f64, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        match me.position(peer) {
            Ok(at) if weight > 0.0 => me.neighbours[at].weight = weight,
            Ok(at) => drop(me.neighbours.remove(at)),
            Err(at) if weight > 0.0 => {
                ask(peer, 0, cx)?;
                let copy = Sparse::default();
                me.neighbours.insert(at, Neighbour { peer, weight, copy, heard: 0, behind: true });
            }
            Err(_) => {}
        }
        me.degree = me.neighbours.iter().map(|neighbour| neighbour.weight).sum();
        Ok(())
    }

    fn cost(&self, me: &mut State, shard: Shard<'_>) -> f64 {
        shard.confidence * log_sum(&me.margins)
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        // The margins as well: they have taken the steps one by one, and A_u theta_u rounds differently.
        let counts = (me.version, me.wakes, me.bits.steps, me.bits.models);
        saved::write(&(&me.model, &me.margins, counts, me.gap, &me.neighbours), out);
    }

    fn resume(&self, saved: &[u8], shard: Shard<'_>, peers: Peers<'_>) -> Result<State, CannotResume> {
        type Saved = (Vec<f64>, Vec<f64>, (u32, u64, u64, u64), f64, Vec<Neighbour>);
        let (model, margins, counts, gap, neighbours): Saved = saved::read(saved)?;
        let (version, wakes, steps, models) = counts;
        saved::check([wakes, steps, models].into_iter().all(saved::is_count) && u64::from(version) <= wakes)?;
        let radius = self.radius * (1.0 + SAVED_SLACK);
        saved::check(saved::is_vector(&model, self.predictors) && sum_of_sizes(&model) <= radius)?;
        let margin_max = radius * largest(shard.points.features) * largest(shard.points.labels) * (1.0 + SAVED_SLACK);
        saved::check(saved::is_vector(&margins, shard.points.len()) && largest(&margins) <= margin_max)?;
        let known = |neighbour: &Neighbour| {
            saved::is_weight(neighbour.weight) && neighbour.copy.is_inside(self.predictors, radius)
        };
        saved::check(gap >= 0.0 && neighbours.iter().all(known))?;
        saved::check(saved::are_neighbours(peers, neighbours.iter().map(|neighbour| neighbour.peer)))?;
        let degree = neighbours.iter().map(|neighbour| neighbour.weight).sum();
        Ok(State { model, margins, version, wakes, gap, neighbours, degree, bits: Bits { steps, models } })
    }

    fn model<'a>(&self, me: &'a State) -> &'a [f64] {
        &me.model
    }
}

impl Algorithm for FrankWolfe {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = BoostingLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, shard: Shard<'_>) -> usize {
        shard.letter_bytes_max()
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        // Everyone starts at zero and knows it: version 0 of every neighbour has been heard.
        let known = |peer, weight| Neighbour { peer, weight, copy: Sparse::default(), heard: 1, behind: false };
        let neighbours = cx.peers.iter().map(|edge| known(edge.peer, edge.weight)).collect();
        Ok(State { neighbours, degree: cx.peers.weighted_degree(), ..self.at_zero(shard.points) })
    }

    fn on_wake(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        self.learn(me, shard, cx)
    }

    fn on_letter(
        &self,
        me: &mut State,
        _shard: Shard<'_>,
        from: PeerId,
        letter: BoostingLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        self.hear(me, from, letter, cx)
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        Learner::save(self, me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        let me = Learner::resume(self, saved, shard, cx.peers)?;
        let as_told = |(known, edge): (&Neighbour, Edge)| known.peer == edge.peer && known.weight == edge.weight;
        saved::check(me.neighbours.len() == cx.peers.len() && me.neighbours.iter().zip(cx.peers.iter()).all(as_told))?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _posted: &'a [f64]) -> &'a [f64] {
        &me.model
    }
}

fn ask(peer: PeerId, heard: u32, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
    // PRIVACY: how much has been heard of someone else; charged like everything that leaves.
    let letter = cx.gate.reveal(BoostingLetter::Ask { heard })?;
    cx.outbox.send(peer, letter);
    Ok(())
}

/// |a|_1.
fn sum_of_sizes(a: &[f64]) -> f64 {
    a.iter().map(|value| value.abs()).sum()
}

/// The coordinate of largest size, the first of equals.
fn steepest(gradient: &[f64]) -> (usize, f64) {
    let mut best = (0, 0.0f64);
    for (k, &value) in gradient.iter().enumerate() {
        if value.abs() > best.1.abs() {
            best = (k, value);
        }
    }
    best
}

/// |s - theta|^2 with s = corner e_k.
fn distance_to_corner(theta: &[f64], index: usize, corner: f64) -> f64 {
    let at = theta[index];
    dot(theta, theta) - at * at + (corner - at) * (corner - at)
}

/// How far Q falls along a step, from the left and at most to one: Q'(x) = -gap + x bend + loss (mean(0) - mean(x)), where mean(x)
/// is that of the changes, weighted by exp(-margin - x change). Q' grows with x, so wherever it is not positive Q has fallen
/// all the way.
fn farthest_descent(gap: f64, bend: f64, loss: f64, margins: &[f64], changes: &[f64]) -> f64 {
    let first = weighted_mean(margins, changes, 0.0);
    let slope = |x: f64| x * bend + loss * (first - weighted_mean(margins, changes, x)) - gap;
    let (least, most) =
        changes.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), c| (least.min(*c), most.max(*c)));
    let range = if least <= most { most - least } else { 0.0 };
    // A variance over numbers in a range is at most a quarter of its square, so Q'(low) <= 0 without looking.
    let mut low = (gap / (bend + loss * range * range / 4.0)).min(1.0);
    let (mut high, mut slope_low, mut slope_high) = (1.0, slope(low), slope(1.0));
    if slope_high <= 0.0 {
        return 1.0;
    }
    // Regula falsi; an end that stays twice counts half (Illinois).
    for _ in 0..LINE_SEARCH_STEPS {
        if slope_low >= 0.0 {
            break;
        }
        let x = low + (high - low) * slope_low / (slope_low - slope_high);
        let at = slope(x);
        if at <= 0.0 {
            (low, slope_low, slope_high) = (x, at, 0.5 * slope_high);
        } else {
            (high, slope_high, slope_low) = (x, at, 0.5 * slope_low);
        }
    }
    low
}

/// The mean of the changes, weighted by exp(-margin - x change); zero without data.
fn weighted_mean(margins: &[f64], changes: &[f64], x: f64) -> f64 {
    let at = |(margin, change): (&f64, &f64)| margin + x * change;
    let least = margins.iter().zip(changes).map(at).fold(f64::INFINITY, f64::min);
    let (mut sum, mut weights) = (0.0, 0.0);
    for pair in margins.iter().zip(changes) {
        let weight = libm::exp(least - at(pair));
        weights += weight;
        sum += weight * pair.1;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// The largest single-precision number that is not above a number in [0, 1].
fn towards_zero(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value { f32::from_bits(near.to_bits() - 1) } else { near }
}

#[cfg(test)]
mod tests;
