//! The mean, or the sum, of everybody's rows by noise once and gossip afterwards (Muffliato: Cyffers, Even, Bellet and Massoulie,
//! *Muffliato: Peer-to-Peer Privacy Amplification for Decentralized Optimization and Averaging*, NeurIPS 2022, Algorithm 1).
//!
//! ```text
//! x(0)   = what a member contributes, and noise of sigma
//! x(1)   = W x(0)
//! x(t+1) = gamma W x(t) + (1 - gamma) x(t-1)                          t = 1..T-1
//! ```
//!
//! In round t = 0..T-1 everyone sends x(t) to its neighbours; x(T) is what a member ends with. W has Metropolis' weights, W_vw =
//! 1 / (1 + the larger of the two degrees), so that sums never change and something always stays at home: a graph without odd cycles
//! mixes too. gamma = 1 is plain gossip; another makes Chebyshev's polynomials of W ([`mixing`]).
//!
//! A member holds a *mass*: the sum of each of its columns, and a weight that is averaged with them, without noise. For a mean over rows the
//! weight is its number of rows, which is public; else it is one.
//!
//! Rounds go by durable letters: a member goes on when it has heard round t of all its neighbours. So a neighbour is at most one round ahead, and
//! **one that is gone is waited for**: nothing more leaves its neighbours, and in the end nobody's, until it is back. Going on without it would be
//! another W, for which nobody has accounted.
//!
//! Differs from the paper: gamma is the best one for the second largest eigenvalue in size, where the paper's is that of (I + W) / 2.
//!
//! # Privacy
//! Gaussian noise once, on what a member contributes, before anything leaves: charged once, against everyone. All later letters are computed
//! from what was released or heard. Against one other member the same charge is worth more the further away it is, and that is for the
//! accountant to say (`crates/privacy/src/account/network/graph`, `crates/privacy/proofs/gossip.md`).

mod contribution;
mod letter;
pub mod mixing;
mod rounds;

pub use contribution::{Contribution, ContributionUnit};
pub use letter::MuffliatoLetter;
pub(crate) use rounds::Exchange;

use crate::config::{ConfigError, at_least_one};
use crate::{Bounds, Observations, saved};
use serde::{Deserialize, Serialize};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::{Audience, Event, Exhausted, Public, Released, Track};

pub use super::gossip::Goal;

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | columns | | 1 and above | the task's columns |
/// | goal | | mean, sum | the task's statistic |
/// | unit | | rows, means | rows |
/// | range | | low < high, finite; none without privacy | the task's |
/// | law | sigma | Gaussian; none without privacy | the plan's |
/// | rounds | T | 1 and above | [`mixing::Mixing::rounds`] |
/// | gamma | gamma | from 1 to below 2 | [`mixing::Mixing::gamma`]; 1 without acceleration |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MuffliatoConfig {
    /// Numbers in a row.
    pub columns: usize,
    /// Mean or sum.
    pub goal: Goal,
    /// What a member contributes.
    pub unit: ContributionUnit,
    /// Values are moved into this.
    pub range: Option<Bounds>,
    /// How a contribution is protected; none without privacy.
    pub law: Option<Event>,
    /// How often everyone writes to its neighbours.
    pub rounds: u32,
    /// 1, or more for Chebyshev's polynomials.
    pub gamma: f64,
}

/// A checked protocol, the same for all agents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Muffliato {
    contribution: Contribution,
    goal: Goal,
    law: Option<Event>,
    rounds: u32,
    gamma: f64,
}

impl Muffliato {
    /// Checks the hyper-parameters.
    pub fn new(config: MuffliatoConfig) -> Result<Self, ConfigError> {
        let MuffliatoConfig { columns, goal, unit, range, law, rounds, gamma } = config;
        let bad = |field, value: String, accepted| Err(ConfigError { field, value, accepted });
        at_least_one("rounds", rounds as usize)?;
        if let Goal::Sum { agents } = goal {
            at_least_one("agents", agents)?;
        }
        if !(1.0..2.0).contains(&gamma) {
            return bad("gamma", gamma.to_string(), "a number from 1 to below 2");
        }
        if law.is_some_and(|law| !matches!(law, Event::Gaussian { .. })) {
            return bad("mechanism", "not Gaussian".to_owned(), "\"gaussian\"");
        }
        let contribution = Contribution::new(columns, unit, range, law.is_some())?;
        Ok(Muffliato { contribution, goal, law, rounds, gamma })
    }

    /// How far a contribution can move, in L2.
    pub fn sensitivity(&self) -> f64 {
        self.contribution.sensitivity()
    }

    /// The standard deviation of the mean of all agents' estimates, over so many agents that weigh this together; zero without noise.
    ///
    /// The mean of all masses never changes, so this does not depend on the graph or on the rounds.
    pub fn deviation(&self, agents: usize, weight: u64) -> f64 {
        let Some(Event::Gaussian { noise_multiplier }) = self.law else { return 0.0 };
        let of_sum = libm::sqrt(agents as f64) * noise_multiplier * self.sensitivity();
        match self.goal {
            Goal::Mean => of_sum / weight.max(1) as f64,
            Goal::Sum { .. } => of_sum,
        }
    }

    fn len(&self) -> usize {
        self.contribution.columns() + 1
    }

    /// What a member starts with, as it may leave: noise and its charge come first. The weight is public.
    fn first(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<Released<Vec<f64>>, Exhausted> {
        let (mut values, rows) = self.contribution.of(observations);
        let weight = match (self.goal, self.contribution.unit()) {
            (Goal::Mean, ContributionUnit::Rows) => rows as f64,
            _ => 1.0,
        };
        let released = match self.law {
            // PRIVACY: no protection at all; the ledger says so.
            None => cx.gate.reveal(values)?,
            // PRIVACY: a row that is replaced moves the values by at most the sensitivity in L2, and so do all rows of a member that
            // contributes their mean. Gaussian noise of the plan, charged against everyone: proofs/gossip.md.
            Some(law) => match cx.gate.release_on(Track::Models, &mut values, self.sensitivity(), Audience::Everyone) {
                Ok(released) => released.map(|values| values.to_vec()),
                // PRIVACY: who has no data has no charge, and makes noise all the same: others rely on it.
                Err(Exhausted) => self.noise_alone(law, cx),
            },
        };
        Ok(released.with_public(Public::declare(weight), |weight, mut values| {
            values.push(weight);
            values
        }))
    }

    fn noise_alone(&self, law: Event, cx: &mut Cx<'_>) -> Released<Vec<f64>> {
        let (columns, sensitivity, grid) = (self.contribution.columns(), self.sensitivity(), self.contribution.grid());
        let values =
            (0..columns).map(|_| cx.gate.blur(law, sensitivity, grid, Released::constant(|| 0.0)).into_inner());
        known(values.collect())
    }

    /// What a mass says of the statistic. One without weight says nothing.
    fn estimate(&self, mass: &[f64], estimate: &mut [f64]) {
        let (sums, weight) = mass.split_at(self.contribution.columns());
        let scale = match self.goal {
            Goal::Mean => 1.0 / weight[0],
            Goal::Sum { agents } => agents as f64,
        };
        let values = sums.iter().map(|sum| scale * sum);
        if values.clone().all(f64::is_finite) {
            estimate.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        }
    }

    /// Goes on for as many rounds as all neighbours have been heard of.
    fn go_on(&self, me: &mut State, cx: &mut Cx<'_>) {
        while me.exchange.mixes(self.rounds, self.gamma) {
            if me.round() < self.rounds {
                tell(me, cx);
            } else {
                me.is_over = true;
                self.estimate(me.exchange.mass(), &mut me.estimate);
            }
        }
    }
}

/// Numbers that were released before, or computed from what was released and heard.
pub(crate) fn known(values: Vec<f64>) -> Released<Vec<f64>> {
    Public::declare(values).into()
}

/// Sends x(t) to all neighbours.
fn tell(me: &State, cx: &mut Cx<'_>) {
    me.exchange.tell(cx, |outbox, to, letter| {
        // At most two wait for an honest neighbour. One that acknowledges nothing misses what it does not take.
        let _ = outbox.send_durable(to, letter);
    });
}

/// What an agent remembers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    exchange: Exchange,
    /// What it knows when all rounds are over; zero before.
    estimate: Vec<f64>,
    is_over: bool,
}

impl State {
    /// How many rounds it has mixed.
    pub fn round(&self) -> u32 {
        self.exchange.round()
    }

    /// What it holds: the sum of each column, and the weight.
    pub fn mass(&self) -> &[f64] {
        self.exchange.mass()
    }

    /// Whether all rounds are over. Who has no neighbour never knows anything of others.
    pub fn knows(&self) -> bool {
        self.is_over
    }
}

impl Algorithm for Muffliato {
    type Data<'d> = Observations<'d>;
    type State = State;
    type Letter<'a> = MuffliatoLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Observations<'_>) -> usize {
        MuffliatoLetter::bytes(self.contribution.columns())
    }

    fn wake_rate(&self, _: Observations<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let mut me = State {
            exchange: Exchange::new(cx.peers),
            estimate: vec![0.0; self.contribution.columns()],
            is_over: false,
        };
        if !me.exchange.is_alone() {
            let first = self.first(observations, cx)?;
            me.exchange.begin(first);
            tell(&me, cx);
        }
        Ok(me)
    }

    /// Its clock never ticks.
    fn on_wake(&self, _: &mut State, _: Observations<'_>, _: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        _: Observations<'_>,
        from: PeerId,
        letter: MuffliatoLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        me.exchange.hear(from, letter, self.len(), self.rounds)?;
        self.go_on(me, cx);
        Ok(())
    }

    fn is_done(&self, me: &State) -> bool {
        me.is_over || me.exchange.is_alone()
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        _: Observations<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        let me: State = saved::read(saved)?;
        me.exchange.check(cx.peers, self.len(), self.rounds, self.rounds)?;
        saved::check(saved::is_vector(&me.estimate, self.contribution.columns()))?;
        saved::check(me.is_over == (me.round() == self.rounds))?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        &me.estimate
    }
}

#[cfg(test)]
mod tests;
