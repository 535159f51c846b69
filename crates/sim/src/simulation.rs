//! A simulation from its start to its end.

use crate::{
    Clock, Counters, Faults, Schedule,
    agent::{Agent, Desk, STILL_WAKES, Stage, World},
    alarms::Alarms,
    instant::Board,
    post_office::PostOffice,
};
use rayon::prelude::*;
use sottovoce_core::{Algorithm, Graph, PeerId, Posts, Role, Rows, Time, wire::LETTER_BYTES_MAX};
use sottovoce_privacy::{Exhausted, Gate, Ledger, Simulated};

/// Agents started side by side before their posts are gathered.
const START_BATCH: usize = 4096;

/// How to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How time passes.
    pub clock: Clock,
    /// Decides the schedule, the agents' choices and the faults.
    pub seed: u64,
    /// Worker threads. They change the speed, never the result.
    pub threads: usize,
    /// End when every agent is quiet: in each of its last ten wakes it moved by at most a tenth of this in every coordinate,
    /// and so did its neighbours. Quiet is not stopped; whoever moves by more makes itself and its neighbours count again.
    pub tolerance: Option<f64>,
    /// What goes wrong.
    pub faults: Faults,
}

/// Whether there is anything left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Some agent may still move.
    Running,
    /// Every agent is quiet and nothing is in flight.
    Quiet,
    /// Every agent that lives has done all it is there for, or nothing will ever happen again.
    Done,
}

/// Who is there, and who can speak with whom.
#[derive(Clone, Copy, Debug)]
pub struct Society<'w> {
    /// Whose posts one reads.
    pub graph: &'w Graph,
    /// To whom one can write; `None`: to one's neighbours.
    pub reach: Option<&'w Graph>,
    /// What each is for; where there are none, all are members.
    pub roles: &'w [Role],
}

impl<'w> From<&'w Graph> for Society<'w> {
    fn from(graph: &'w Graph) -> Self {
        Society { graph, reach: None, roles: &[] }
    }
}

/// A running simulation. `D` lends each agent its data.
pub struct Simulation<'w, A: Algorithm, D> {
    stage: Stage<'w, A, D>,
    delivery: Delivery,
}

/// How messages travel.
enum Delivery {
    Instant(Board),
    Faulty(PostOffice),
}

impl<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync> Simulation<'w, A, D> {
    /// Lets every agent enter and delivers what they say first. Nobody is private.
    pub fn start(algorithm: &'w A, graph: &'w Graph, data: D, settings: &Settings) -> Result<Self, Exhausted> {
        Self::start_behind(|_| Gate::unplanned(Simulated::None), algorithm, graph, data, settings)
    }

    /// Like [`Simulation::start`], each agent behind its own gate.
    pub fn start_behind(
        gates: impl Fn(PeerId) -> Gate<Simulated> + Sync,
        algorithm: &'w A,
        society: impl Into<Society<'w>>,
        data: D,
        settings: &Settings,
    ) -> Result<Self, Exhausted> {
        let Society { graph, reach, roles } = society.into();
        let n = graph.agents();
        let len = algorithm.post_len();
        let letter_bytes_max =
            if n > 0 { algorithm.letter_bytes_max(data(PeerId(0))).min(LETTER_BYTES_MAX) } else { 0 };
        let world = World { algorithm, graph, reach, roles, data, seed: settings.seed, letter_bytes_max };
        let mut counters = Counters::default();
        let still_step = settings.tolerance.map(|tolerance| tolerance / f64::from(STILL_WAKES));
        let mut delivery = if settings.faults.is_none() {
            Delivery::Instant(Board::new(graph, len, settings.threads, settings.tolerance.is_some()))
        } else {
            Delivery::Faulty(PostOffice::new(graph, len, settings.seed, settings.faults.clone()))
        };
        let zero = vec![0.0; len];
        let mut agents = Vec::with_capacity(n);
        let mut alarms = Alarms::default();
        // Nobody hears anything before all have entered, so they may enter side by side.
        let mut desks: Vec<Desk> = Vec::new();
        for from in (0..n).step_by(START_BATCH) {
            let batch = from..n.min(from + START_BATCH);
            desks.resize_with(batch.len(), || Desk::new(letter_bytes_max));
            let enter = |(k, desk): (usize, &mut Desk)| {
                let id = PeerId((from + k) as u32);
                world.start(id, gates(id), &zero, desk)
            };
            let started: Result<Vec<_>, _> = if settings.threads > 1 {
                desks.par_iter_mut().enumerate().map(enter).collect()
            } else {
                desks.iter_mut().enumerate().map(enter).collect()
            };
            agents.extend(started?);
            for (id, desk) in batch.map(|id| PeerId(id as u32)).zip(&desks) {
                if let Some(at) = desk.outbox.alarm() {
                    alarms.set(id, at, Time::default());
                }
                match &mut delivery {
                    Delivery::Instant(board) => board.take(graph, id, &desk.outbox, &mut counters),
                    Delivery::Faulty(office) => {
                        office.take(graph, id, Time::default(), &desk.outbox, &mut counters);
                    }
                }
            }
        }
        let rate = |id: u32| algorithm.wake_rate((world.data)(PeerId(id)), graph.peers(PeerId(id)));
        let schedule = Schedule::with_rates(settings.seed, settings.clock, (0..n as u32).map(rate));
        let (desk, now) = (Desk::new(letter_bytes_max), Time::default());
        let mut stage = Stage { world, agents, schedule, alarms, counters, desk, now, still_step };
        match &mut delivery {
            Delivery::Instant(board) => board.deliver(Time::default(), &mut stage),
            Delivery::Faulty(office) => office.deliver(Time::default(), &mut stage),
        }
        Ok(Simulation { stage, delivery })
    }

    /// Runs the next `wakes` events, or fewer if every agent turns quiet or is done: wakes of the schedule, alarms, and durable letters.
    pub fn advance(&mut self, wakes: u64) -> Status {
        let window = self.window();
        let mut left = wakes;
        while left > 0 {
            if self.is_quiet() {
                return Status::Quiet;
            }
            if self.is_done() {
                return Status::Done;
            }
            let batch = left.min(window);
            match &mut self.delivery {
                Delivery::Instant(board) => board.run(batch, &mut self.stage),
                Delivery::Faulty(office) => office.run(batch, &mut self.stage),
            }
            left -= batch;
        }
        match (self.is_quiet(), self.is_done()) {
            (true, _) => Status::Quiet,
            (false, true) => Status::Done,
            (false, false) => Status::Running,
        }
    }

    /// Whether nothing is left to do: all who live are done and no durable letter is on its way; or no clock ticks, no alarm is set, and nothing
    /// is on its way.
    fn is_done(&self) -> bool {
        let Stage { world, agents, schedule, alarms, now, .. } = &self.stage;
        let (delivered, still) = match &self.delivery {
            Delivery::Instant(board) => (board.is_empty(), board.is_empty()),
            Delivery::Faulty(office) => (office.is_empty(*now), office.is_still()),
        };
        let is_done =
            |(id, agent): (PeerId, &Agent<A::State>)| self.is_dead(id) || world.algorithm.is_done(&agent.state);
        let numbered = || (0u32..).map(PeerId).zip(agents);
        delivered && numbered().next().is_some() && numbered().all(is_done)
            || still && !schedule.ticks() && alarms.is_empty()
    }

    /// Events between two looks at whether all is quiet or done; without a tolerance nobody looks for quiet, and where clocks tick nobody is
    /// ever done. It depends on the graph alone, so
    /// that a run ends at the same wake for any number of threads.
    fn window(&self) -> u64 {
        if self.stage.still_step.is_none() && self.stage.schedule.ticks() {
            return u64::MAX;
        }
        (self.stage.agents.len() as u64 / 8).clamp(1, 1 << 17)
    }

    fn is_quiet(&self) -> bool {
        let Stage { world, agents, schedule, still_step, .. } = &self.stage;
        still_step.is_some_and(|step| match &self.delivery {
            Delivery::Instant(board) => board.is_quiet(world.graph, agents),
            Delivery::Faulty(office) => office.is_quiet(step, world.graph, schedule.now(), agents),
        })
    }

    /// What has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.stage.counters
    }

    /// The time of the last wake, or of what came after it.
    pub fn now(&self) -> Time {
        self.stage.schedule.now()
    }

    /// An agent's model, for its owner.
    pub fn model(&self, agent: PeerId) -> &[f64] {
        self.stage.world.algorithm.model(&self.stage.agents[agent.index()].state, self.posts(agent).mine())
    }

    /// An agent's state, for tests of its algorithm.
    pub fn state(&self, agent: PeerId) -> &A::State {
        &self.stage.agents[agent.index()].state
    }

    /// What an agent has released.
    pub fn ledger(&self, agent: PeerId) -> &Ledger {
        self.gate(agent).ledger()
    }

    /// An agent's gate, for those who audit it.
    pub fn gate(&self, agent: PeerId) -> &Gate<Simulated> {
        &self.stage.agents[agent.index()].gate
    }

    /// The posts that an agent knows.
    pub fn posts(&self, agent: PeerId) -> Posts<'_> {
        match &self.delivery {
            Delivery::Instant(board) => board.posts(agent),
            Delivery::Faulty(office) => office.posts(agent),
        }
    }

    /// Whether an agent has died for good.
    pub fn is_dead(&self, agent: PeerId) -> bool {
        match &self.delivery {
            Delivery::Instant(_) => false,
            Delivery::Faulty(office) => office.is_dead(agent, self.stage.schedule.now()),
        }
    }

    /// All models, one row each.
    pub fn models(&self) -> Rows {
        let ids = || (0..self.stage.agents.len() as u32).map(PeerId);
        let len = ids().next().map_or(0, |first| self.model(first).len());
        let mut rows = Rows::zeros(self.stage.agents.len(), len);
        for id in ids() {
            rows.row_mut(id.index()).copy_from_slice(self.model(id));
        }
        rows
    }
}
