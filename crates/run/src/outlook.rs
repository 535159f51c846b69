//! What a private task can hope for, before anyone looks at its data.
//!
//! Everything here follows from the task, the graph and the numbers of points, which are public. Agent i hears its neighbours'
//! mean A_i = sum_j w_ij Theta_j, w_ij proportional to W_ij m_j. With one update from zero, Theta_j = -a_j (g_j + eta_j),
//! a_j = mu c_j alpha_j, so
//!
//! signal <= sum_j w_ij a_j G,   noise = sqrt(p sum_j w_ij^2 a_j^2 sigma_j^2),   clearness_i = signal / noise
//!
//! with G the largest norm that a mean gradient can have and sigma_j the standard deviation of the noise on each coordinate.
//!
//! **A rule of thumb, no theorem.** Real gradients are shorter than G, most of all where agents disagree, and by how much
//! only the data know. With more updates both signal and noise grow in ways that depend on the data; here the noise of
//! the last update stands for all. The two limits were set on synthetic linear tasks ([`CLEARNESS_MIN`]).

use crate::epsilon::Epsilon;
use crate::private;
use crate::sweep::updates_to_try;
use serde::Serialize;
use sottovoce_core::PeerId;
use sottovoce_privacy::{Event, Plan, Track, sensitivity};
use sottovoce_report::plot::{Axis, Chart, Dot, Ink, Scene, Stroke, number};
use sottovoce_task::load::Loaded;
use sottovoce_task::plan;
use sottovoce_task::task::{Detail, Details, Leaves, Mechanism, Privacy};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Below this clearness with one update, home models of synthetic linear tasks gained less than 0.01 in accuracy.
///
/// 100 agents, p = 20, 50 and 100, epsilon from 0.15 to 10, 1 to 50 updates, seeds 101 to 103, home models without tuning: the table
/// is in `docs/privacy.md`.
pub const CLEARNESS_MIN: f64 = 5.8;

/// Without home models, or with tuned ones, updates are worth adding while the clearness stays above this. From tasks with scale
/// 1 and trade-off 3.
pub const CLEARNESS_FOR_UPDATES: f64 = 9.0;

/// More agents than this are not looked at one by one; every k-th stands for the others.
const AGENTS_MAX: usize = 2000;

/// The size of the picture.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 350.0;

/// Agents are shown in this many groups by their numbers of points.
const GROUPS: usize = 4;

/// What a private task can hope for.
#[derive(Clone, Debug, Serialize)]
pub struct Outlook {
    /// The task's name.
    pub name: String,
    /// The algorithm, as in the task.
    pub algorithm: &'static str,
    /// What others can see of an agent.
    #[serde(skip)]
    pub leaves: Leaves,
    /// The budget of each agent.
    pub epsilon: f64,
    /// At this delta.
    pub delta: f64,
    /// The accountant that the plan keeps its budget by.
    pub accountant: &'static str,
    /// The releases of each agent that has data and a neighbour: the steps of its plan.
    pub releases: Vec<Release>,
    /// The losses that it releases besides, where the graph is learned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Release>,
    /// What all releases cost together, by each accountant: a number, or the text "infinity".
    pub planned: BTreeMap<&'static str, Epsilon>,
    /// Agents by numbers of points.
    pub groups: Vec<Group>,
    /// The clearness of the agent in the middle; none where there is no rule for the algorithm.
    pub clearness: Option<f64>,
    /// Whether the limits were set for such a task: Gaussian noise, from zero. For others the clearness flatters: a warm start's
    /// noise is not in it, and gradients bounded in L1 are mostly far shorter than their bound.
    pub calibrated: bool,
    /// What the algorithm has to say besides, by name.
    #[serde(flatten)]
    pub details: serde_json::Map<String, serde_json::Value>,
    /// For whose replacement and against whom the budget holds.
    #[serde(skip)]
    pub guarantee: String,
    /// What a careful reader should know.
    pub warnings: Vec<String>,
}

/// Equal releases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Release {
    /// How it is made.
    #[serde(flatten)]
    pub event: Event,
    /// How many.
    pub count: u64,
}

/// Agents with similar numbers of points.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// The fewest points.
    pub points_min: usize,
    /// The most.
    pub points_max: usize,
    /// How many agents with data and a neighbour.
    pub agents: usize,
    /// How far the mean gradient can move when one record is replaced, for the agent with the fewest points.
    pub sensitivity_max: Option<f64>,
    /// The same for the one with the most.
    pub sensitivity_min: Option<f64>,
    /// The standard deviation of the noise on each coordinate of the last release, for the agent with the fewest points.
    pub noise_max: Option<f64>,
    /// The same for the one with the most.
    pub noise_min: Option<f64>,
    /// The clearness of the agent in the middle.
    pub clearness: Option<f64>,
}

/// Sizes in at most four ranges of equal width.
pub fn size_groups(sizes: impl Iterator<Item = usize> + Clone) -> Vec<RangeInclusive<usize>> {
    let (Some(smallest), Some(largest)) = (sizes.clone().min(), sizes.max()) else { return Vec::new() };
    let step = (largest - smallest + 1).div_ceil(GROUPS).max(1);
    (smallest..=largest).step_by(step).map(|from| from..=(from + step - 1).min(largest)).collect()
}

/// The outlook of a private task; none without `[privacy]`.
pub fn outlook(loaded: &Loaded) -> Option<Outlook> {
    let (privacy, plan) = (loaded.task.privacy?, loaded.plan.as_ref()?);
    let problem = &loaded.problem;
    let speaks = |id: PeerId| problem.data.size(id) > 0 && !problem.graph.peers(id).is_empty();
    let sizes: Vec<(PeerId, usize)> = (0..problem.agents() as u32)
        .map(PeerId)
        .filter(|&id| speaks(id) && loaded.task.algorithm.leaves != Leaves::Nothing)
        .map(|id| (id, problem.data.size(id)))
        .collect();
    let factor = last_deviation(plan).filter(|_| loaded.task.algorithm.leaves == Leaves::Updates);
    let every = sizes.len().div_ceil(AGENTS_MAX).max(1);
    // A rule of thumb needs to know who hears whom.
    let known = loaded.edge_count().is_some();
    let clear: Vec<(usize, f64)> = match factor.filter(|_| known) {
        None => Vec::new(),
        Some(factor) => {
            let heard =
                sizes.iter().step_by(every).filter_map(|&(id, m)| Some((m, clearness(loaded, &privacy, factor, id)?)));
            heard.collect()
        }
    };
    let middle = |points: &RangeInclusive<usize>| {
        median(clear.iter().filter(|(m, _)| points.contains(m)).map(|&(_, clearness)| clearness).collect())
    };
    let groups = size_groups(sizes.iter().map(|&(_, m)| m))
        .into_iter()
        .map(|points| {
            let of_group = || sizes.iter().map(|&(_, m)| m).filter(|m| points.contains(m));
            let moves = |m: usize| factor.map(|_| sensitivity::of_clipped_mean(privacy.clip, m));
            let (least, most) = (of_group().min().map(moves), of_group().max().map(moves));
            let (sensitivity_max, sensitivity_min) = (least.flatten(), most.flatten());
            let noise = |sensitivity: Option<f64>| sensitivity.zip(factor).map(|(moves, factor)| moves * factor);
            Group {
                points_min: *points.start(),
                points_max: *points.end(),
                agents: of_group().count(),
                sensitivity_max,
                sensitivity_min,
                noise_max: noise(sensitivity_max),
                noise_min: noise(sensitivity_min),
                clearness: middle(&points),
            }
        })
        .filter(|group| group.agents > 0)
        .collect();
    let now = middle(&(0..=usize::MAX));
    Some(Outlook {
        name: loaded.task.name.clone(),
        algorithm: loaded.task.algorithm.name,
        leaves: loaded.task.algorithm.leaves,
        epsilon: privacy.epsilon,
        delta: privacy.delta,
        accountant: privacy.accountant.name(),
        releases: alike(
            &[Track::Models, Track::Token, Track::Reissues, Track::Sums].map(|track| plan.track(track)).concat(),
        ),
        losses: alike(plan.asides()),
        planned: private::spent(&privacy, &loaded.observer(), std::slice::from_ref(&plan.ledger()))
            .into_iter()
            .map(|(name, cost)| (name, cost.into()))
            .collect(),
        groups,
        clearness: now,
        calibrated: privacy.mechanism == Mechanism::Gaussian && privacy.warm.is_none(),
        details: json((loaded.task.algorithm.outlook)(&loaded.task, loaded.plan.as_deref(), problem)),
        guarantee: private::guarantee_in_words(privacy.unit, &loaded.observer()),
        warnings: private::warnings(&privacy, problem),
    })
}

/// What an algorithm has to say of its plan.
fn json(details: Details) -> serde_json::Map<String, serde_json::Value> {
    let one = |detail: Detail| match detail {
        Detail::Count(count) => count.into(),
        Detail::Number(number) => number.into(),
        Detail::Word(word) => word.into(),
        Detail::Epsilon(epsilon) => serde_json::to_value(Epsilon::from(epsilon)).expect("an epsilon is JSON"),
        Detail::Group(group) => json(group).into(),
    };
    details.into_iter().map(|(name, detail)| (name.to_owned(), one(detail))).collect()
}

/// The clearness in the middle for other numbers of updates and this epsilon; the plan is all that changes.
pub fn by_updates(loaded: &Loaded, outlook: &Outlook, epsilon: f64) -> Vec<(u64, f64)> {
    let (Some(now), Some(privacy), Some(plan)) = (outlook.clearness, loaded.task.privacy, &loaded.plan) else {
        return Vec::new();
    };
    let with = |updates: u64| {
        let other = Privacy { updates, epsilon, ..privacy };
        let other = plan::plan(&loaded.task, &other, &loaded.problem).ok()?;
        Some((updates, now * last_deviation(plan)? / last_deviation(&other)?))
    };
    updates_to_try(privacy.updates).into_iter().filter_map(with).collect()
}

/// Whether collaboration is worth it, by the rule of thumb: whether one update is heard. A figure that flatters can say no, and
/// cannot say yes.
pub fn worth_it(by_updates: &[(u64, f64)], calibrated: bool) -> Option<bool> {
    let heard = by_updates.first().map(|&(_, clearness)| clearness >= CLEARNESS_MIN);
    heard.filter(|heard| calibrated || !heard)
}

/// For home models without tuning a single update, which was best at every budget. Else the largest number of updates that keeps what is
/// heard clear; 1 where none does, and none where there is nothing to choose.
pub fn suggested_updates(by_updates: &[(u64, f64)], untuned_home: bool) -> Option<u64> {
    let clear = by_updates.iter().filter(|(_, clearness)| *clearness >= CLEARNESS_FOR_UPDATES && !untuned_home);
    clear.map(|&(updates, _)| updates).max().or(by_updates.first().map(|_| 1))
}

/// Equal releases together, in the order of their first.
fn alike(steps: &[Event]) -> Vec<Release> {
    let mut alike: Vec<Release> = Vec::new();
    for &event in steps {
        match alike.iter_mut().find(|known| known.event == event) {
            Some(known) => known.count += 1,
            None => alike.push(Release { event, count: 1 }),
        }
    }
    alike
}

/// The standard deviation of the last update's noise, over its sensitivity.
fn last_deviation(plan: &Plan) -> Option<f64> {
    match *plan.steps().last()? {
        Event::Gaussian { noise_multiplier } => Some(noise_multiplier),
        Event::Laplace { noise_multiplier } => Some(std::f64::consts::SQRT_2 * noise_multiplier),
        _ => None,
    }
}

/// How clearly an agent hears its neighbours, at best; none if it hears nobody.
fn clearness(loaded: &Loaded, privacy: &Privacy, deviation: f64, id: PeerId) -> Option<f64> {
    let problem = &loaded.problem;
    let bound = privacy.feature_bound(&loaded.task);
    // The clip is in L1 for Laplace noise, and no L2 norm exceeds the L1 norm.
    let longest = problem.loss.slope_bound().map_or(privacy.clip, |slope| privacy.clip.min(slope * bound));
    let curvature = problem.loss.smoothness()? * bound * bound;
    let (mut signal, mut variance) = (0.0, 0.0);
    for edge in problem.graph.peers(id).iter() {
        let shard = problem.shard(edge.peer);
        let m = shard.points.len();
        if m > 0 {
            let pull = problem.trade_off * shard.confidence;
            let step = edge.weight * m as f64 * pull / (1.0 + pull * (curvature + 2.0 * shard.regularization));
            let noise = step * deviation * sensitivity::of_clipped_mean(privacy.clip, m);
            signal += step * longest;
            variance += noise * noise;
        }
    }
    (variance > 0.0).then(|| signal / libm::sqrt(problem.dimension() as f64 * variance))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Outlook {
    /// What each agent with data and a neighbour is going to release, in a sentence.
    pub fn plan_in_words(&self) -> String {
        if self.releases.is_empty() {
            return "No agent releases anything.".to_owned();
        }
        let mut kinds: Vec<(Event, u64, f64, f64)> = Vec::new();
        for Release { event, count } in &self.releases {
            let noise = size(event);
            match kinds.last_mut() {
                Some((known, total, least, most)) if std::mem::discriminant(known) == std::mem::discriminant(event) => {
                    (*total, *least, *most) = (*total + count, least.min(noise), most.max(noise));
                }
                _ => kinds.push((*event, *count, noise, noise)),
            }
        }
        let released: Vec<String> = kinds.into_iter().map(|kind| self.in_words(kind)).collect();
        let smallest = self.groups.first().and_then(|group| Some((group.points_min, group.noise_max?)));
        let largest = self.groups.last().and_then(|group| Some((group.points_max, group.noise_min?)));
        let scale = match (smallest, largest) {
            (Some((few, loud)), Some((many, quiet))) => format!(
                "; on each coordinate that is {} with {} points and {} with {}",
                number::significant(loud, 2),
                number::count(few as u64),
                number::significant(quiet, 2),
                number::count(many as u64)
            ),
            _ => String::new(),
        };
        format!("Each agent releases {}{scale}.{}", released.join(", and "), self.losses_in_words())
    }

    fn losses_in_words(&self) -> String {
        let Some(Release { event, count }) = self.losses.first() else { return String::new() };
        let often = if *count == 1 { "once".to_owned() } else { format!("{} times", number::count(*count)) };
        let law = if matches!(event, Event::Laplace { .. }) { "Laplace" } else { "Gaussian" };
        let noise = number::significant(size(event), 3);
        format!(" Its loss it releases {often}, with {law} noise of {noise} times the sensitivity.")
    }

    fn in_words(&self, (event, count, least, most): (Event, u64, f64, f64)) -> String {
        let [low, high] = [least, most].map(|noise| number::significant(noise, 3));
        let noise = if low == high { low } else { format!("{low} to {high}") };
        let count = number::count(count);
        let what = match (self.leaves, &*count) {
            (Leaves::NoisyData, _) => "a copy of its points".to_owned(),
            (Leaves::NoisyOnce, _) => "its contribution, once,".to_owned(),
            (Leaves::Gradients, _) => format!("{count} gradients, each once,"),
            (Leaves::Obfuscated, _) => format!("{count} gradients, to its servers,"),
            (Leaves::MaskedSums, "1") => "1 contribution to a sum under masks".to_owned(),
            (Leaves::MaskedSums, _) => format!("{count} contributions to sums under masks"),
            (Leaves::Token, _) => {
                format!("at most {count} contributions to the token, those that are seen once more included,")
            }
            (_, "1") => "1 update".to_owned(),
            _ => format!("{count} updates"),
        };
        match event {
            Event::Gaussian { .. } => format!("{what} with Gaussian noise of {noise} times the sensitivity"),
            Event::Laplace { .. } => format!("{what} with Laplace noise of {noise} times the sensitivity"),
            Event::GammaNorm { .. } => format!("a first model with noise of {noise} times the sensitivity"),
            Event::RandomizedResponse { .. } if self.leaves.tells_answers() => {
                format!("an answer for each of its rows, once, by randomized response with epsilon = {noise}")
            }
            Event::RandomizedResponse { .. } if self.leaves == Leaves::Halves => {
                format!(
                    "{count} answers that it computes with others, each with epsilon = {noise} by noise inside the circuit"
                )
            }
            Event::RandomizedResponse { .. } => format!("its labels by randomized response with epsilon = {noise}"),
            Event::Reveal => format!("{count} exact values"),
        }
    }
}

/// The parameter of an event.
fn size(event: &Event) -> f64 {
    match *event {
        Event::Gaussian { noise_multiplier }
        | Event::Laplace { noise_multiplier }
        | Event::GammaNorm { noise_multiplier } => noise_multiplier,
        Event::RandomizedResponse { epsilon } => epsilon,
        Event::Reveal => 0.0,
    }
}

/// Clearness against updates for some budgets, as (epsilon, points); the task's own is the one in the middle, with `updates`.
pub fn picture(curves: &[(f64, Vec<(u64, f64)>)], updates: u64) -> Option<Scene> {
    let (_, own) = curves.get(curves.len() / 2).filter(|(_, own)| own.len() > 1)?;
    let values = curves.iter().flat_map(|(_, points)| points).map(|&(_, clearness)| clearness);
    let y = Axis::log(values.chain([CLEARNESS_MIN, CLEARNESS_FOR_UPDATES]));
    let ticks: Vec<u64> = own.iter().map(|&(updates, _)| updates).collect();
    let labels =
        ("updates per agent, the budget being the same", "clearness: largest signal over noise in what an agent hears");
    let mut chart =
        Chart::new("How clearly agents hear each other", (Axis::log_counts(&ticks), labels.0), (y, labels.1));
    chart.level("least to be worth it, at 1 update", Ink::Axis, Stroke::Dashed, CLEARNESS_MIN);
    for (k, (epsilon, points)) in curves.iter().enumerate() {
        let is_own = k == curves.len() / 2;
        let ink = Ink::Series(if is_own { 0 } else { k + 1 });
        let line: Vec<(f64, f64)> = points.iter().map(|&(updates, clearness)| (updates as f64, clearness)).collect();
        let stroke = if is_own { Stroke::Strong } else { Stroke::Thin };
        chart.line(Some(&format!("epsilon {}", number::bound(*epsilon))), ink, stroke, &line);
    }
    let here = own.iter().filter(|(count, _)| *count == updates);
    let dots = here.map(|&(count, clearness)| Dot { x: count as f64, y: clearness, tip: None }).collect();
    chart.dots("this task", Ink::Series(0), false, dots);
    Some(chart.scene(WIDTH, HEIGHT))
}

/// How clear something is, in plain words.
pub fn in_words(clearness: f64) -> &'static str {
    match clearness {
        c if c < 1.0 => "noise alone",
        c if c < CLEARNESS_MIN => "mostly noise",
        c if c < 20.0 => "faint",
        c if c < 60.0 => "clear",
        _ => "very clear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_suggested_while_they_can_be_heard() {
        let loud = [(1, 40.0), (2, 28.0), (5, 18.0), (10, 12.0), (20, 8.9)];
        assert_eq!((suggested_updates(&loud, false), worth_it(&loud, true)), (Some(10), Some(true)));
        assert_eq!(suggested_updates(&loud, true), Some(1));
        let quiet = [(1, 3.0), (2, 2.0)];
        assert_eq!((suggested_updates(&quiet, false), worth_it(&quiet, true)), (Some(1), Some(false)));
        assert_eq!([worth_it(&loud, false), worth_it(&quiet, false)], [None, Some(false)], "no yes without grounds");
        assert_eq!((suggested_updates(&[], false), worth_it(&[], true)), (None, None));
    }

    #[test]
    fn groups_cover_every_size_once() {
        for (least, most) in [(10, 100), (1, 2), (7, 7), (0, 1000)] {
            let groups = size_groups(least..=most);
            assert!(groups.len() <= GROUPS);
            for size in least..=most {
                assert_eq!(groups.iter().filter(|group| group.contains(&size)).count(), 1, "{size}");
            }
        }
        assert!(size_groups(0..0).is_empty());
    }
}
