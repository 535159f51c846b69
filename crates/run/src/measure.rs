//! One run of a statistic in the simulator.

use crate::score::mean_and_deviation;
use crate::simulate::{Figure, Halt, Progress, Ran, Setup};
use sottovoce_algorithms::reference::statistic;
use sottovoce_core::{Algorithm, PeerId, Rows};
use sottovoce_privacy::Ledger;
use sottovoce_report::statistic::Sample;
use sottovoce_sim::{Counters, Simulation};
use sottovoce_task::algorithms::{Access, Visitor, pairs, with_algorithm};
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{Statistic, StatisticKind, Unit};
use std::ops::ControlFlow;

/// What a measurement came to.
#[derive(Clone, Debug)]
pub struct Measured {
    /// One row per agent: its estimate.
    pub estimates: Rows,
    /// Who knows an estimate. The rows of others hold nothing.
    pub is_told: Vec<bool>,
    /// How many contributions an estimate misses at most.
    pub passed_over: u32,
    /// What somebody who had all rows would compute.
    pub exact: Vec<f64>,
    /// One ledger per agent.
    pub ledgers: Vec<Ledger>,
    /// Errors, from the start to the end.
    pub samples: Vec<Sample>,
    /// By sample: what a theorem says that the error is at most, in the root mean square over agents of expected estimates; none where it says nothing.
    pub bound: Vec<f64>,
    /// Everything that happened.
    pub counters: Counters,
    /// What of it happened before the first wake.
    pub start: Counters,
    /// The run itself, without loading and measuring.
    pub seconds: f64,
    /// Whether every agent was quiet at the end.
    pub quiet: bool,
}

/// Runs a task that measures a statistic. `watch` is called a few times a second, and stops the run by breaking.
pub fn measure(
    loaded: &Loaded,
    statistic: &Statistic,
    threads: usize,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Measured, Halt> {
    let algorithm = loaded.task.algorithm;
    let measure = Measure { setup: Setup { loaded, algorithm, threads }, exact: exact(loaded, statistic), watch };
    with_algorithm(loaded, algorithm, measure)?
}

/// The statistic itself, from everybody's rows.
fn exact(loaded: &Loaded, statistic: &Statistic) -> Vec<f64> {
    let agents_alike = loaded.task.privacy.is_some_and(|privacy| privacy.unit == Unit::Agent);
    let everyone = (0..loaded.problem.agents() as u32).map(|agent| loaded.observations(PeerId(agent)));
    let bins = statistic.bins.filter(|_| statistic.kind == StatisticKind::Histogram);
    if let (Some(bins), Some(range)) = (bins, statistic.range) {
        return statistic::histogram(everyone, range, bins, agents_alike);
    }
    if agents_alike {
        return of_means(loaded, statistic);
    }
    match statistic.kind {
        StatisticKind::Mean => statistic::mean(everyone),
        StatisticKind::Sum => statistic::sum(everyone),
        kind if kind.is_of_pairs() => {
            vec![pairs::exact(&loaded.task, statistic, &loaded.problem).expect("loading has checked it")]
        }
        other => unreachable!("no algorithm measures {other:?}"),
    }
}

/// The same where agents count, and not rows: of everybody's means.
fn of_means(loaded: &Loaded, statistic: &Statistic) -> Vec<f64> {
    let agents = loaded.problem.agents() as u32;
    let means = (0..agents).map(|agent| statistic::mean([loaded.observations(PeerId(agent))].into_iter()));
    let mut sums = vec![0.0; loaded.problem.dimension()];
    means.for_each(|mean| sums.iter_mut().zip(mean).for_each(|(sum, mean)| *sum += mean));
    let count = if statistic.kind == StatisticKind::Mean { f64::from(agents) } else { 1.0 };
    sums.into_iter().map(|sum| sum / count).collect()
}

struct Measure<'a> {
    setup: Setup<'a>,
    exact: Vec<f64>,
    watch: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Visitor for Measure<'_> {
    type Output = Result<Measured, Halt>;

    fn visit<A: Algorithm>(self, algorithm: &A, access: Access<A>) -> Self::Output {
        let Measure { setup, exact, watch } = self;
        let loaded = setup.loaded;
        let ids = || (0..loaded.problem.agents() as u32).map(PeerId);
        let knows = |state: &A::State| access.knows.is_none_or(|knows| knows(state));
        let look = |estimates: &Rows, is_told: &[bool], counters: &Counters| {
            let error = mean_and_deviation(&errors(estimates, is_told, &exact));
            let sample = Sample {
                wakes: counters.wakes,
                letters_sent: counters.letters_sent,
                bytes_sent: counters.bytes_sent,
                error_mean: error.map(|(mean, _)| mean),
                error_std: error.map(|(_, deviation)| deviation),
            };
            (sample, sample.error_mean.map(Figure::Error))
        };
        let data = |id| (access.data)(loaded, id);
        let Ran { simulation, samples, start, seconds, quiet } = setup.run(
            algorithm,
            data,
            |run| {
                look(
                    &said(run, algorithm, &access),
                    &ids().map(|id| knows(run.state(id))).collect::<Vec<_>>(),
                    run.counters(),
                )
            },
            watch,
        )?;
        let bound = (setup.algorithm.bound)(&loaded.task, &loaded.problem);
        let at = |sample: &Sample| bound.map(|bound| bound.at(sample.wakes as f64));
        Ok(Measured {
            estimates: said(&simulation, algorithm, &access),
            bound: samples.iter().filter_map(at).collect(),
            is_told: ids().map(|id| knows(simulation.state(id))).collect(),
            passed_over: access.passed_over.map_or(0, |of| ids().map(|id| of(simulation.state(id))).max().unwrap_or(0)),
            ledgers: ids().map(|id| simulation.ledger(id).clone()).collect(),
            counters: simulation.counters().clone(),
            exact,
            samples,
            start,
            seconds,
            quiet,
        })
    }
}

/// What each agent says now.
fn said<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
    run: &Simulation<'w, A, D>,
    algorithm: &A,
    access: &Access<A>,
) -> Rows {
    let mut rows = run.models();
    if let Some(at) = access.at {
        for k in 0..rows.count() {
            rows.row_mut(k).copy_from_slice(&at(algorithm, run.state(PeerId(k as u32)), run.now()));
        }
    }
    rows
}

/// |estimate - exact| of each agent that knows an estimate, in the Euclidean norm where there are several numbers.
pub fn errors(estimates: &Rows, is_told: &[bool], exact: &[f64]) -> Vec<Option<f64>> {
    let error = |agent: usize| is_told[agent].then(|| distance(estimates.row(agent), exact));
    (0..estimates.count()).map(error).collect()
}

/// |a - b|.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
