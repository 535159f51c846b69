//! One run in the simulator, measured as it goes, whatever it yields.

use crate::private;
use sottovoce_core::{Algorithm, PeerId};
use sottovoce_sim::{Counters, Settings, Simulation, Society, Status};
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Description;
use std::ops::ControlFlow;
use std::time::Instant;

/// Wakes between two looks at whether the user wants to stop; a fraction of a second.
const SLICE_WAKES: u64 = 1 << 16;

/// Measurements follow each other at this ratio of wakes, a round of wakes apart at least.
const MEASURE_RATIO: f64 = 1.12;

/// With more numbers to read than this at each measurement, measurements are rarer.
const MEASURE_NUMBERS_MANY: usize = 20_000_000;

/// The ratio between measurements then.
const MEASURE_RATIO_MANY: f64 = 1.6;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Wakes done.
    pub wakes: u64,
    /// Wakes planned; with a tolerance, the most there can be.
    pub planned: u64,
    /// What the last measurement says, in one figure.
    pub figure: Option<Figure>,
}

/// How good things are, in one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// The mean score of models.
    Score(f64),
    /// The objective of models.
    Objective(f64),
    /// The mean error of estimates.
    Error(f64),
}

/// Why a run did not end.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The user got something wrong.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// The user stopped it.
    #[error("stopped; nothing was written")]
    Interrupted,
}

/// A run that has ended. `S` is what a measurement says.
pub(crate) struct Ran<'w, A: Algorithm, D, S> {
    pub simulation: Simulation<'w, A, D>,
    /// Measurements, from the start to the end.
    pub samples: Vec<S>,
    /// What happened before the first wake.
    pub start: Counters,
    /// The run itself, without loading and measuring.
    pub seconds: f64,
    /// Whether every agent was quiet at the end.
    pub quiet: bool,
}

/// What is the same for all runs of a task.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub loaded: &'a Loaded,
    /// The algorithm, the task's own or another to compare with.
    pub algorithm: &'static Description,
    pub threads: usize,
}

impl<'a> Setup<'a> {
    /// Runs it to its end. `measure` looks at it from time to time, and `watch` is told a few times a second; it stops the run by breaking.
    pub fn run<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync, S>(
        self,
        algorithm: &'w A,
        data: D,
        mut measure: impl FnMut(&Simulation<'w, A, D>) -> (S, Option<Figure>),
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Ran<'w, A, D, S>, Halt>
    where
        'a: 'w,
    {
        let Setup { loaded, algorithm: which, threads } = self;
        let (problem, task) = (&loaded.problem, &loaded.task);
        let agents = problem.agents() as u64;
        let settings = Settings {
            clock: task.run.clock,
            seed: task.run.seed,
            threads,
            tolerance: match which.boosts {
                // Its tolerance is about the gap: it moves while that is larger, however little.
                true => task.run.tolerance.map(|_| f64::MIN_POSITIVE),
                false => task.run.tolerance,
            },
            faults: task.faults.clone(),
        };
        let began = Instant::now();
        let gates = |id| private::gate(loaded, loaded.plan.as_ref(), id);
        let society = Society { graph: &problem.graph, reach: loaded.reach.as_ref(), roles: &[] };
        let mut simulation = Simulation::start_behind(gates, algorithm, society, data, &settings)
            .expect("the plan holds what agents release as they enter");
        let mut seconds = began.elapsed().as_secs_f64();
        let start = simulation.counters().clone();
        let planned = planned_wakes(loaded, which);
        let many = problem.data.len() * problem.dimension() > MEASURE_NUMBERS_MANY;
        let ratio = if many { MEASURE_RATIO_MANY } else { MEASURE_RATIO };
        let (first, mut figure) = measure(&simulation);
        let mut samples = vec![first];
        let (mut done, mut durable_read) = (0, start.durable_read);
        let mut status = Status::Running;
        while done < planned && status == Status::Running {
            let next = ((done as f64 * ratio) as u64).max(done + agents).min(planned);
            while done < next && status == Status::Running {
                let slice = SLICE_WAKES.min(next - done);
                let began = Instant::now();
                status = simulation.advance(slice);
                seconds += began.elapsed().as_secs_f64();
                // To read a durable letter is an event too. Where there is nothing else it is counted, so that there is an end.
                let read = simulation.counters().durable_read;
                done += if which.in_rounds { slice } else { slice - (read - durable_read) };
                durable_read = read;
                if watch(Progress { wakes: done, planned, figure }).is_break() {
                    return Err(Halt::Interrupted);
                }
            }
            let (sample, latest) = measure(&simulation);
            samples.push(sample);
            figure = latest;
        }
        Ok(Ran { simulation, samples, start, seconds, quiet: status != Status::Running })
    }
}

/// How many wakes a run has; with a tolerance, at most.
pub(crate) fn planned_wakes(loaded: &Loaded, algorithm: &Description) -> u64 {
    match algorithm.acts {
        false => 0,
        true => (loaded.problem.agents() as u64).saturating_mul(loaded.task.run.wakes_per_agent),
    }
}
