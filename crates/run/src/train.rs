//! One run of a task in the simulator.

use crate::learned;
use crate::one_model::OneModel;
use crate::private;
use crate::score::{mean_and_deviation, scores};
pub use crate::simulate::{Figure, Halt, Progress};
use crate::simulate::{Ran, Setup};
use sottovoce_algorithms::personal::boosting::Bits;
use sottovoce_algorithms::{Problem, boosting, objective};
use sottovoce_core::{Algorithm, Graph, PeerId, Rows};
use sottovoce_privacy::Ledger;
use sottovoce_report::training::Sample;
use sottovoce_sim::{Counters, Simulation};
use sottovoce_task::algorithms::{self, Access, Visitor, with_algorithm};
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{Description, GraphSource, Learned, Leaves, Yields};
use std::ops::ControlFlow;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The algorithm.
    pub algorithm: &'static Description,
    /// What a report calls the run.
    pub name: String,
    /// One row per agent: what it broadcast last, or would.
    pub models: Rows,
    /// The model that they have in common, where the algorithm yields one and somebody holds it.
    pub one: Option<OneModel>,
    /// One ledger per agent.
    pub ledgers: Vec<Ledger>,
    /// Measurements, from the start to the end.
    pub samples: Vec<Sample>,
    /// Everything that happened.
    pub counters: Counters,
    /// What of it happened before the first wake.
    pub start: Counters,
    /// The run itself, without loading and measuring.
    pub seconds: f64,
    /// Whether every agent was quiet at the end.
    pub quiet: bool,
    /// Each agent's score on its test points.
    pub scores: Vec<Option<f64>>,
    /// The models that agents keep for themselves, in a private run that has them.
    pub home: Option<HomeModels>,
    /// The graph, where it was learned.
    pub graph: Option<Graph>,
    /// An upper bound on how far the objective is from its minimum, for boosting over a known graph.
    pub gap: Option<f64>,
    /// The bits of all agents' letters as papers count them, for boosting.
    pub bits: Option<Bits>,
}

/// What agents keep for themselves.
#[derive(Clone, Debug)]
pub struct HomeModels {
    /// One row per agent.
    pub models: Rows,
    /// Each agent's score on its test points.
    pub scores: Vec<Option<f64>>,
}

/// Runs a task with an algorithm, its own or another to compare with. `watch` is called a few times a second, and stops the
/// run by breaking.
pub fn train(
    loaded: &Loaded,
    algorithm: &'static Description,
    threads: usize,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Trained, Halt> {
    with_algorithm(loaded, algorithm, Train { setup: Setup { loaded, algorithm, threads }, watch })?
}

struct Train<'a> {
    setup: Setup<'a>,
    watch: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Visitor for Train<'_> {
    type Output = Result<Trained, Halt>;

    fn visit<A: Algorithm>(self, algorithm: &A, access: Access<A>) -> Self::Output {
        let Train { setup, watch } = self;
        let (loaded, which) = (setup.loaded, setup.algorithm);
        let (problem, task) = (&loaded.problem, &loaded.task);
        let agents = problem.agents() as u64;
        let ids = || (0..agents as u32).map(PeerId);
        let mut ruler = Ruler::new(loaded);
        let data = |id| (access.data)(loaded, id);
        let Ran { simulation, samples, start, seconds, quiet } =
            setup.run(algorithm, data, |simulation| ruler.measure(simulation, &access, which), watch)?;
        let models = simulation.models();
        let one = one_model(&simulation, &access, which);
        let scores_of = |models: &Rows| match &loaded.test {
            None => vec![None; problem.agents()],
            Some(test) => scores(problem.loss, test, models),
        };
        let personal = which.yields == Yields::ModelPerAgent && which.leaves != Leaves::Nothing;
        let home = task.privacy.and_then(|privacy| privacy.home).filter(|_| personal);
        let home = match home {
            None => None,
            Some(home) => {
                let home = home.check().map_err(|error| Mistake::file(&task.source, error.to_string()))?;
                let known = private::broadcasts(loaded)?;
                let mut models = Rows::zeros(problem.agents(), problem.dimension());
                for id in (0..agents as u32).map(PeerId) {
                    let (shard, known) = (problem.shard(id), |id: PeerId| known[id.index()]);
                    let model = match access.heard {
                        None => home.model(&shard, problem.graph.peers(id), simulation.posts(id), known),
                        Some(heard) => learned::home_model(home, &shard, &heard(simulation.state(id)), known),
                    };
                    models.row_mut(id.index()).copy_from_slice(&model);
                }
                Some(HomeModels { scores: scores_of(&models), models })
            }
        };
        let mut scores = match &one {
            Some(one) => scores_of(&one.for_everyone()),
            None => scores_of(&models),
        };
        if task.privacy.is_some() && personal {
            // An agent that sends nothing has no model that others could see.
            for id in (0..agents as u32).map(PeerId).filter(|&id| problem.graph.peers(id).is_empty()) {
                scores[id.index()] = None;
            }
        }
        let graph = learned_graph(&simulation, &access, agents as usize);
        let certified = which.boosts && graph.is_none();
        let radius = task.boosting.map_or(0.0, |boosting| boosting.radius);
        Ok(Trained {
            algorithm: which,
            name: name(loaded, which, graph.is_some()),
            gap: certified.then(|| boosting::gap(problem, radius, &models)),
            bits: sum_of_bits(ids().map(|id| access.bits.map(|bits| bits(simulation.state(id))))),
            graph,
            home,
            scores,
            models,
            one,
            ledgers: (0..agents as u32).map(|id| simulation.ledger(PeerId(id)).clone()).collect(),
            samples,
            counters: simulation.counters().clone(),
            start,
            seconds,
            quiet,
        })
    }
}

/// The bits of all agents, where they are counted.
pub(crate) fn sum_of_bits(all: impl Iterator<Item = Option<Bits>>) -> Option<Bits> {
    all.flatten().reduce(|sum, one| Bits { steps: sum.steps + one.steps, models: sum.models + one.models })
}

/// What a report calls a run.
pub(crate) fn name(loaded: &Loaded, algorithm: &Description, learned: bool) -> String {
    match (learned, loaded.plain.is_some()) {
        (true, true) => "boosting, learned graph".to_owned(),
        (true, false) => "linear, learned graph".to_owned(),
        _ => algorithm.in_words(),
    }
}

/// What a run is measured with.
pub(crate) struct Ruler<'a> {
    loaded: &'a Loaded,
    /// The problem over the graph that is learned, as it is at the time.
    learned: Option<(&'a Learned, Problem)>,
}

impl<'a> Ruler<'a> {
    pub(crate) fn new(loaded: &'a Loaded) -> Self {
        let learned = match &loaded.task.graph.source {
            GraphSource::Learned(learned) => Some((learned, loaded.problem.clone())),
            _ => None,
        };
        Ruler { loaded, learned }
    }

    /// The objective: Q, or J where the graph is learned; none for those who learn alone although there is no graph yet.
    pub(crate) fn objective(&mut self, models: &Rows, graph: Option<Graph>) -> Option<f64> {
        match (&mut self.learned, graph) {
            (None, _) => Some(learned::objective(self.loaded, &self.loaded.problem, models)),
            (Some(_), None) => None,
            (Some((how, problem)), Some(graph)) => {
                problem.graph = graph;
                let joint = algorithms::joint(how, problem.trade_off);
                Some(learned::objective(self.loaded, problem, models) + joint.of_graph(&problem.graph))
            }
        }
    }

    fn measure<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        simulation: &Simulation<'w, A, D>,
        access: &Access<A>,
        which: &Description,
    ) -> (Sample, Option<Figure>) {
        let (loaded, counters) = (self.loaded, simulation.counters());
        let (models, one) = (simulation.models(), one_model(simulation, access, which));
        let everyones = one.as_ref().map(OneModel::for_everyone);
        let of_test =
            |test| mean_and_deviation(&scores(loaded.problem.loss, test, everyones.as_ref().unwrap_or(&models)));
        let score = loaded.test.as_ref().and_then(of_test);
        let objective = match (&one, which.yields) {
            (one, Yields::OneModel) => one.as_ref().map(|one| objective::common_value(&loaded.problem, &one.model)),
            _ => self.objective(&models, learned_graph(simulation, access, loaded.problem.agents())),
        };
        let sample = Sample {
            wakes: counters.wakes,
            vectors_sent: counters.vectors_sent,
            bytes_sent: counters.bytes_sent,
            objective,
            score_mean: score.map(|(mean, _)| mean),
            score_std: score.map(|(_, deviation)| deviation),
        };
        let figure = sample.score_mean.map(Figure::Score).or(sample.objective.map(Figure::Objective));
        (sample, figure)
    }
}

/// The model that agents have in common at the moment, where the algorithm yields one.
fn one_model<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
    simulation: &Simulation<'w, A, D>,
    access: &Access<A>,
    which: &Description,
) -> Option<OneModel> {
    if which.yields != Yields::OneModel {
        return None;
    }
    let models = simulation.models();
    let steps = |id: u32| access.steps_of(simulation.state(PeerId(id)));
    OneModel::of(&models, &(0..models.count() as u32).map(steps).collect::<Vec<_>>())
}

/// The graph of the moment, where it is learned.
fn learned_graph<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
    simulation: &Simulation<'w, A, D>,
    access: &Access<A>,
    agents: usize,
) -> Option<Graph> {
    access.links.map(|links| learned::graph_of(agents, |id| links(simulation.state(id))))
}
