//! A task as an audit runs it: every message witnessed, every release recorded or repeated, one agent's data changed.

use crate::private;
use sottovoce_algorithms::{Dataset, Points, Problem};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Graph, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::audit::{Recording, Release, Replaying};
use sottovoce_privacy::{Exhausted, Ledger, Simulated};
use sottovoce_sim::{Settings, Simulation, Society};
use sottovoce_task::algorithms::{Access, Visitor, with_algorithm};
use sottovoce_task::load::Loaded;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What an agent said at one event, to the bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Utterance {
    /// When, as bits.
    pub at: u64,
    /// The post, as bits.
    pub post: Option<Vec<u64>>,
    /// To whom, and the bytes.
    pub letters: Vec<(u32, Vec<u8>)>,
    /// Whether its gate refused what it wanted to release.
    pub refused: bool,
}

impl Utterance {
    /// When, and how much; not what.
    pub fn outline(&self) -> (u64, Option<usize>, Vec<(u32, usize)>, bool) {
        let letters = self.letters.iter().map(|(to, bytes)| (*to, bytes.len())).collect();
        (self.at, self.post.as_ref().map(Vec::len), letters, self.refused)
    }
}

/// All that came of one agent.
#[derive(Clone, Debug)]
pub(super) struct Witnessed {
    pub said: Vec<Utterance>,
    pub releases: Arc<Vec<Release>>,
    pub ledger: Ledger,
}

/// A run, or why it did not come to its end.
pub(super) type Staged = Result<Vec<Witnessed>, String>;

/// One agent's points with one of them replaced.
#[derive(Clone, Debug)]
pub(super) struct Altered {
    pub agent: PeerId,
    features: Vec<f64>,
    labels: Vec<f64>,
}

impl Altered {
    pub fn new(problem: &Problem, agent: PeerId, record: usize, (x, y): (&[f64], f64)) -> Self {
        let Points { dimension, features, labels } = problem.data.points(agent);
        let (mut features, mut labels) = (features.to_vec(), labels.to_vec());
        features[record * dimension..][..dimension].copy_from_slice(x);
        labels[record] = y;
        Altered { agent, features, labels }
    }

    /// All of an agent's points replaced by one: where all of them are the unit.
    pub fn whole(problem: &Problem, agent: PeerId, (x, y): (&[f64], f64)) -> Self {
        let size = problem.data.size(agent);
        Altered { agent, features: x.repeat(size), labels: vec![y; size] }
    }

    /// The task with these points in the place of the agent's own.
    pub fn applied_to(&self, loaded: &Loaded) -> Loaded {
        let own = &loaded.problem.data;
        let mut data = Dataset::new(own.dimension());
        for id in (0..loaded.problem.agents() as u32).map(PeerId) {
            let points = own.points(id);
            match id == self.agent {
                true => data.push_agent(&self.features, &self.labels),
                false => data.push_agent(points.features, points.labels),
            }
        }
        Loaded { problem: Problem { data, ..loaded.problem.clone() }, ..loaded.clone() }
    }
}

/// Runs the task with this noise, and remembers everything.
pub(super) fn record(loaded: &Loaded, seed: u64, altered: Option<&Altered>) -> Staged {
    let privacy = loaded.task.privacy.expect("only private tasks are audited");
    run(loaded, altered, &|id| Simulated::Recording(Box::new(Recording::new(private::noise(&privacy, seed, id)))))
}

/// Runs it again with the outputs of all mechanisms as they were.
pub(super) fn replay(loaded: &Loaded, recorded: &[Witnessed], altered: Option<&Altered>) -> Staged {
    run(loaded, altered, &|id| Simulated::Replaying(Box::new(Replaying::new(recorded[id.index()].releases.clone()))))
}

fn run(loaded: &Loaded, altered: Option<&Altered>, noise: &(dyn Fn(PeerId) -> Simulated + Sync)) -> Staged {
    let altered = altered.map(|altered| altered.applied_to(loaded));
    let loaded = altered.as_ref().unwrap_or(loaded);
    let work = || with_algorithm(loaded, loaded.task.algorithm, Run { loaded, noise });
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(mistake)) => Err(mistake.to_string()),
        // An agent that gives up because of its data tells something about them.
        Err(panic) => Err(panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_else(|| "the program gave up".to_owned())),
    }
}

struct Run<'a> {
    loaded: &'a Loaded,
    noise: &'a (dyn Fn(PeerId) -> Simulated + Sync),
}

impl Visitor for Run<'_> {
    type Output = Staged;

    fn visit<A: Algorithm>(self, algorithm: &A, access: Access<A>) -> Staged {
        let Run { loaded, noise } = self;
        let (problem, task) = (&loaded.problem, &loaded.task);
        let settings = Settings {
            clock: task.run.clock,
            seed: task.run.seed,
            threads: 1,
            tolerance: task.run.tolerance,
            faults: task.faults.clone(),
        };
        let plan = loaded.plan.as_ref().expect("a private task has a plan");
        let gates = |id| private::gate_with(problem, plan, id, noise(id));
        let data = |id: PeerId| (access.data)(loaded, id);
        let witness = Witness(algorithm);
        let society = Society { graph: &problem.graph, reach: loaded.reach.as_ref(), roles: &[] };
        let mut simulation = Simulation::start_behind(gates, &witness, society, data, &settings)
            .map_err(|Exhausted| "an agent could not release what it starts with".to_owned())?;
        simulation.advance(crate::simulate::planned_wakes(loaded, task.algorithm));
        let witnessed = |id: PeerId| {
            let releases = match simulation.gate(id).noise() {
                Simulated::Recording(noise) => noise.releases().to_vec(),
                Simulated::Replaying(noise) => noise.releases().to_vec(),
                _ => Vec::new(),
            };
            let said = simulation.state(id).said.clone();
            Witnessed { said, releases: Arc::new(releases), ledger: simulation.ledger(id).clone() }
        };
        Ok((0..problem.agents() as u32).map(|id| witnessed(PeerId(id))).collect())
    }
}

/// An algorithm, and someone who writes down all it says.
struct Witness<'a, A>(&'a A);

/// An agent's state, and what it has said.
struct Watched<S> {
    state: S,
    said: Vec<Utterance>,
}

fn hear(said: &mut Vec<Utterance>, cx: &Cx<'_>, refused: bool) {
    let post = cx.outbox.posted().map(|post| post.iter().map(|value| value.to_bits()).collect());
    let letters: Vec<_> = cx.outbox.letters().map(|letter| (letter.to.0, letter.bytes.to_vec())).collect();
    if refused || post.is_some() || !letters.is_empty() {
        said.push(Utterance { at: cx.now.0.to_bits(), post, letters, refused });
    }
}

impl<A: Algorithm> Algorithm for Witness<'_, A> {
    type Data<'d> = A::Data<'d>;
    type State = Watched<A::State>;
    type Letter<'l> = A::Letter<'l>;

    fn post_len(&self) -> usize {
        self.0.post_len()
    }

    fn letter_bytes_max(&self, data: A::Data<'_>) -> usize {
        self.0.letter_bytes_max(data)
    }

    fn wake_rate(&self, data: A::Data<'_>, peers: Peers<'_>) -> f64 {
        self.0.wake_rate(data, peers)
    }

    fn is_done(&self, me: &Self::State) -> bool {
        self.0.is_done(&me.state)
    }

    fn start(&self, data: A::Data<'_>, cx: &mut Cx<'_>) -> Result<Self::State, Exhausted> {
        let state = self.0.start(data, cx)?;
        let mut said = Vec::new();
        hear(&mut said, cx, false);
        Ok(Watched { state, said })
    }

    fn on_wake(&self, me: &mut Self::State, data: A::Data<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let activity = self.0.on_wake(&mut me.state, data, cx);
        hear(&mut me.said, cx, activity.is_err());
        activity
    }

    fn on_letter(
        &self,
        me: &mut Self::State,
        data: A::Data<'_>,
        from: PeerId,
        letter: A::Letter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let read = self.0.on_letter(&mut me.state, data, from, letter, cx);
        hear(&mut me.said, cx, read.is_err());
        read
    }

    fn save(&self, me: &Self::State, out: &mut Vec<u8>) {
        self.0.save(&me.state, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        data: A::Data<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Self::State, CannotResume> {
        Ok(Watched { state: self.0.resume(saved, neighbours, data, cx)?, said: Vec::new() })
    }

    fn model<'a>(&self, me: &'a Self::State, posted: &'a [f64]) -> &'a [f64] {
        self.0.model(&me.state, posted)
    }
}

/// The task of an agent and its neighbours alone, at most `agents` of them, and whom the task itself names; and who the agent is there. The plan stays what it
/// was.
pub(super) fn neighbourhood(loaded: &Loaded, target: PeerId, agents: usize) -> (Loaded, PeerId) {
    let problem = &loaded.problem;
    let named = (loaded.task.algorithm.without_data)(&loaded.task.own);
    let is_named = |id: &PeerId| named.contains(&loaded.names[id.index()]);
    let neighbours = || problem.graph.peers(target).iter().map(|edge| edge.peer);
    let others = neighbours().filter(|id| !is_named(id)).take((agents - 1).saturating_sub(named.len()));
    let mut kept: Vec<PeerId> = neighbours().filter(is_named).chain(others).collect();
    kept.push(target);
    kept.sort();
    let place = |id: PeerId| kept.binary_search(&id).ok().map(|k| k as u32);
    let mut data = Dataset::new(problem.dimension());
    let mut edges = Vec::new();
    for (k, &id) in kept.iter().enumerate() {
        let points = problem.data.points(id);
        data.push_agent(points.features, points.labels);
        let later = problem.graph.peers(id).iter().filter_map(|edge| Some((place(edge.peer)?, edge.weight)));
        edges.extend(later.filter(|&(other, _)| other > k as u32).map(|(other, weight)| (k as u32, other, weight)));
    }
    let graph = Graph::from_edges(kept.len(), &edges).expect("edges of a graph");
    let names = kept.iter().map(|id| loaded.names[id.index()].clone()).collect();
    let problem = Problem { data, graph, ..problem.clone() };
    let reach = loaded.reach.as_ref().and_then(|_| Graph::complete(kept.len()).ok());
    let part = Loaded { problem, names, reach, test: None, ..loaded.clone() };
    (part, PeerId(place(target).expect("the target was kept")))
}
