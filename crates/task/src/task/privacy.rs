//! The `[privacy]` section: what it may say, and what it may not be combined with.

use serde::{Deserialize, Serialize};
use sottovoce_algorithms::personal::descent::WarmStart;
pub use sottovoce_algorithms::personal::home::Home;
use sottovoce_privacy::gopa::Gopa;
use sottovoce_privacy::network::{Clones, Cycle, Gossip, Iteration, Reissued, Sampled, Walk, WorstPair};
use sottovoce_privacy::{Accountant, Ring, Sum, Theorem1, Tight, sensitivity::Norm};

/// The budget of each agent, and how it is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Privacy {
    /// Epsilon.
    pub epsilon: f64,
    /// Delta.
    pub delta: f64,
    /// The noise of each update.
    pub mechanism: Mechanism,
    /// Whose replacement the guarantee is about.
    pub unit: Unit,
    /// How many members may put together what they see, where noise protects from members and not from everyone.
    pub colluders: u32,
    /// Which of all pairs of members the budget is kept for, where a guarantee is by pairs.
    pub pairs: Pairs,
    /// At how many visits a member contributes to the tokens that walk; `None`: ceil(1.2 hops / agents), filled in by [`crate::load::load`].
    pub contributions: Option<u32>,
    /// The least share of the members that is present while a token walks, or that finishes a sum under masks.
    pub present: f64,
    /// The least share of the members of a sum under masks that does not collude.
    pub honest: f64,
    /// How many others each member of such a sum picks; `None`: as many as it takes.
    pub neighbours: Option<u32>,
    /// Who may see what, where a token walks.
    pub trust: Trust,
    /// B: the largest norm of one example's gradient, in the mechanism's norm.
    pub clip: f64,
    /// T_i.
    pub updates: u64,
    /// How the budget is divided over the updates.
    pub schedule: Schedule,
    /// The private warm start: its part of epsilon, and how it is made.
    pub warm: Option<Warm>,
    /// The losses that learning a graph needs; `None`: none is released, because the graph is known or does without.
    pub losses: Option<Losses>,
    /// The home models' parameters; `None`: there are none.
    pub home: Option<Home>,
    /// What epsilon is counted with.
    pub accountant: AccountantName,
    /// How the simulator makes noise.
    pub noise: NoiseKind,
}

/// The private warm start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warm {
    /// Its part of epsilon.
    pub epsilon: f64,
    /// How it is made.
    pub start: WarmStart,
}

/// The losses that agents release where the graph is learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// B: a point's loss is cut to [0, B].
    pub bound: f64,
    /// The part of the budget that all losses have together.
    pub share: f64,
}

/// Whose replacement a guarantee is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// One record.
    Record,
    /// All records of an agent.
    Agent,
}

impl Unit {
    /// As it is written in a task file.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Record => "record",
            Unit::Agent => "agent",
        }
    }
}

/// Which pairs of members keep a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// All of them.
    Worst,
    /// All of them on average: some have more.
    Mean,
}

/// Against whom a guarantee holds. What a ledger is worth depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observer {
    /// Whoever sees every message, other members included.
    Everyone,
    /// Members of a ring, who see what they are sent.
    Ring(Ring),
    /// Each one other member, from what its neighbours send it in so many rounds: one guarantee for each pair. That of the worst pair is that against
    /// everyone, because neighbours are sent the noisy value itself.
    Pairs {
        /// How often everyone writes to its neighbours.
        rounds: u32,
        /// What everyone is told besides.
        told: Option<Told>,
    },
    /// Members whom a token passes that walks over the complete graph.
    Walk(Walk, Steps),
    /// Each one other member whom a token passes that walks along the edges of a graph: one guarantee for each pair, and that of the worst.
    GraphWalk(WorstPair),
    /// Members of a ring, who see what others have answered together.
    Answers(Clones),
    /// Everyone but a curator, who is trusted with all data and makes the steps of a walk in one place.
    Curator(Sampled),
    /// The aggregator, alone or with other members, all of them honest but curious.
    Aggregator,
    /// Everyone, with some members of a sum under masks.
    Gopa(Gopa),
}

/// What the first of all members holds after the rounds, which everyone is told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// 1, or more for rounds by Chebyshev's polynomials.
    pub gamma: f64,
}

impl Told {
    /// How much of each member's first value is in it.
    pub fn row(&self, weights: &Gossip, rounds: u32) -> Vec<f64> {
        weights.share_of_each(0, rounds as usize, self.gamma)
    }
}

impl Observer {
    /// In words.
    pub fn name(&self) -> String {
        match self {
            Observer::Everyone => "everyone".to_owned(),
            Observer::Ring(ring) => ring.observer(),
            Observer::Answers(_) => "any one other member".to_owned(),
            Observer::Pairs { .. } | Observer::GraphWalk(_) => "each one other member, by pair".to_owned(),
            Observer::Curator(_) => "everyone but a trusted curator".to_owned(),
            Observer::Walk(walk, _) => match walk.observer().colluders {
                1 => "any one other member".to_owned(),
                colluders => format!("at most {colluders} colluding members"),
            },
            Observer::Aggregator => "the aggregator".to_owned(),
            Observer::Gopa(gopa) => gopa.observer(),
        }
    }

    /// What counts epsilon for this observer.
    pub fn accountant(&self, name: AccountantName) -> Box<dyn Accountant> {
        let plain = name.accountant();
        match self {
            Observer::Everyone | Observer::Pairs { .. } | Observer::Aggregator => Box::new(plain),
            Observer::Ring(ring) => Box::new(ring.by(plain)),
            Observer::Gopa(gopa) => Box::new(gopa.by(plain)),
            Observer::Answers(clones) => Box::new(*clones),
            Observer::GraphWalk(worst) => Box::new(*worst),
            // There is one way to count along a path, whatever the task's name for others.
            Observer::Curator(sampled) => Box::new(*sampled),
            Observer::Walk(walk, steps) => match (Reissued::new(*walk), steps) {
                (Some(reissued), _) => Box::new(reissued),
                (None, Steps::Sums) => Box::new(Cycle::new(*walk)),
                (None, Steps::Contractions) => Box::new(Iteration::new(*walk)),
            },
        }
    }
}

/// What holders do to a token that walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Steps {
    /// They add to it.
    Sums,
    /// They move it by contractions: gradient steps.
    Contractions,
}

/// What hides contributions to a sum from its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Masks {
    /// Uniform numbers.
    Pads,
    /// Gaussian ones, as the thesis has it.
    Gaussian,
}

/// Who may see what, where a token walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// Members see the token when they hold it, and nothing else.
    Network,
    /// A curator whom all trust holds everybody's data: the same walk in one place.
    Curator,
    /// Everyone sees everything: each contribution is protected by its own noise alone.
    Nobody,
}

/// Which noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Sensitivity in L2; needs a delta.
    Gaussian,
    /// Sensitivity in L1.
    Laplace,
}

impl Mechanism {
    /// The norm of its sensitivity.
    pub fn norm(self) -> Norm {
        match self {
            Mechanism::Gaussian => Norm::L2,
            Mechanism::Laplace => Norm::L1,
        }
    }
}

/// How a budget is divided over updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Equally.
    Uniform,
    /// As the 2018 paper's Proposition 2 prints it. A valid split, and not optimal.
    #[serde(rename = "proposition-2")]
    Proposition2,
    /// The corrected proposition.
    Corrected,
    /// The corrected proposition, from an agent's own count of wakes.
    ClockFree,
}

/// An accountant, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccountantName {
    /// The best valid one.
    Tight,
    /// The 2018 paper's Theorem 1, corrected.
    #[serde(rename = "theorem-1")]
    Theorem1,
    /// Basic composition.
    Sum,
}

impl AccountantName {
    /// All of them.
    pub const ALL: [AccountantName; 3] = [AccountantName::Tight, AccountantName::Theorem1, AccountantName::Sum];

    /// As a task writes it.
    pub fn name(self) -> &'static str {
        match self {
            AccountantName::Tight => "tight",
            AccountantName::Theorem1 => "theorem-1",
            AccountantName::Sum => "sum",
        }
    }

    /// The accountant itself.
    pub fn accountant(self) -> &'static dyn Accountant {
        match self {
            AccountantName::Tight => &Tight,
            AccountantName::Theorem1 => &Theorem1,
            AccountantName::Sum => &Sum,
        }
    }
}

/// How the simulator makes noise. Real peers have no choice: exact, from the system's entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    /// In floating point: fast.
    Idealized,
    /// The samplers of real peers, seeded.
    Exact,
}
