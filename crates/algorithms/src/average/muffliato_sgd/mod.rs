//! Gradient descent whose gradients are averaged by noise once and gossip afterwards (Muffliato-SGD: Cyffers, Even, Bellet and Massoulie, NeurIPS 2022,
//! Algorithm 3): one model for all, on any connected graph.
//!
//! ```text
//! in each of K steps, from a model theta that everyone has:
//!   x_u(0)  = (1/m_u) sum_k clip_L( grad l(theta; x_k, y_k) ) + N(0, sigma^2 I)
//!   x(T)    = P_T(W) x(0)                                                        by T rounds of gossip
//!   theta  <- Pi( theta - gamma [ x_s(T) + 2 lambda theta ] )                    of one member s, the speaker, who tells everyone
//! ```
//!
//! Rounds are those of [Muffliato](super::muffliato), K T of them in all. When its rounds of a step are over the speaker computes the next model and tells its
//! neighbours; everyone takes up the first next model that it hears, when its own rounds of the step are over, passes it on, and takes its next gradient. So nobody
//! is more than a round ahead of a neighbour, and **one that is gone is waited for**, as there. A model that differs from one that another neighbour told is rejected: the
//! members do not agree.
//!
//! Differs from the paper, where each member makes a step of its own and gossips models:
//! - **All gradients are taken at one model, which everyone is told.** Where members' models differ, those of others hold parts of earlier noise that an observer has
//!   not seen, so that what it is sent later is not private *given* what it was sent before, and steps do not add up. Where the model is one that every observer knows, they do.
//! - Chebyshev's gamma is that of Muffliato here; examples are clipped, not their mean; the step is constant.
//!
//! # Privacy
//! Gaussian noise once for each step, on two means of clipped gradients at most 2 L apart, before anything leaves: K charges against everyone. Against one other
//! member they are worth less the further away it is: in each step it sees what Muffliato shows it, and x_s(T) besides (`crates/privacy/proofs/gossip.md`).

mod letter;

pub use letter::SgdLetter;

use super::muffliato::{Exchange, known};
use crate::config::{ConfigError, at_least_one};
use crate::token::walk_sgd::Gradient;
use crate::{Shard, saved};
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::{NUMBER_MAX, Numbers};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::{Audience, Event, Exhausted, Public, Released, Track};

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | gradient | l, L, gamma, Pi, lambda | those of a [`Gradient`] | the task's |
/// | law | sigma | Gaussian; none without privacy | the plan's |
/// | steps | K | 1 and above | 50 |
/// | rounds | T | 1 and above | [`Mixing::rounds`](super::muffliato::mixing::Mixing::rounds) |
/// | acceleration | | from 1 to below 2 | [`Mixing::gamma`](super::muffliato::mixing::Mixing::gamma); 1 without acceleration |
/// | speaker | s | a member | the first one |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MuffliatoSgdConfig {
    /// What a member computes, and where it leads.
    pub gradient: Gradient,
    /// How a gradient is protected; none without privacy.
    pub law: Option<Event>,
    /// How often the model moves.
    pub steps: u32,
    /// How often everyone writes to its neighbours in a step.
    pub rounds: u32,
    /// 1, or more for Chebyshev's polynomials.
    pub acceleration: f64,
    /// Who tells the next model; none where that is nobody whom this member can see.
    pub speaker: Option<PeerId>,
}

/// Checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MuffliatoSgd {
    config: MuffliatoSgdConfig,
    rounds_in_all: u32,
}

impl MuffliatoSgd {
    /// Checks the hyper-parameters.
    pub fn new(config: MuffliatoSgdConfig) -> Result<Self, ConfigError> {
        let bad = |field, value: String, accepted| Err(ConfigError { field, value, accepted });
        at_least_one("rounds", config.rounds as usize)?;
        at_least_one("steps", config.steps as usize)?;
        if !(1.0..2.0).contains(&config.acceleration) {
            return bad("gamma", config.acceleration.to_string(), "a number from 1 to below 2");
        }
        if config.law.is_some_and(|law| !matches!(law, Event::Gaussian { .. })) {
            return bad("mechanism", "not Gaussian".to_owned(), "\"gaussian\"");
        }
        let Some(rounds_in_all) = config.rounds.checked_mul(config.steps) else {
            return bad("rounds", config.rounds.to_string(), "fewer than 2^32 rounds in all steps");
        };
        Ok(MuffliatoSgd { config, rounds_in_all })
    }

    fn len(&self) -> usize {
        self.config.gradient.dimension()
    }

    /// This member's gradient at the model, as it may leave: noise and its charge come first.
    fn gradient(&self, shard: Shard<'_>, theta: &[f64], cx: &mut Cx<'_>) -> Result<Released<Vec<f64>>, Exhausted> {
        let mut values = vec![0.0; self.len()];
        self.config.gradient.of(shard.points, theta, &mut values);
        let sensitivity = self.config.gradient.length();
        match self.config.law {
            // PRIVACY: no protection at all; the ledger says so.
            None => cx.gate.reveal(values),
            // PRIVACY: all of a member's examples replaced move the mean of their clipped gradients by at most the sensitivity, wherever the model is. Gaussian
            // noise of the plan, charged against everyone, once for each step: proofs/gossip.md.
            Some(law) => Ok(match cx.gate.release_on(Track::Models, &mut values, sensitivity, Audience::Everyone) {
                Ok(released) => released.map(|values| values.to_vec()),
                // PRIVACY: who has no data has no charge, and makes noise all the same: others rely on it.
                Err(Exhausted) => {
                    let nothing = Released::zeroed(&mut values);
                    cx.gate.blur_all(law, sensitivity, None, nothing).map(|values| values.to_vec())
                }
            }),
        }
    }

    /// Goes on for as many rounds as all neighbours have been heard of, and for as many steps as there are models.
    fn go_on(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) {
        let MuffliatoSgdConfig { rounds, acceleration, steps, speaker, .. } = self.config;
        while me.step < steps {
            while me.exchange.mixes(rounds, acceleration) {
                if !me.exchange.round().is_multiple_of(rounds) {
                    tell(me, cx);
                }
            }
            if me.exchange.round() != (me.step + 1) * rounds {
                return;
            }
            if speaker == Some(cx.me) {
                let mut next = me.exchange.mass().to_vec();
                self.config.gradient.lead(&me.theta, &mut next);
                me.next = Some(next);
            }
            let Some(next) = me.next.take() else { return };
            me.theta = next;
            me.step += 1;
            tell_model(me, cx);
            if me.step < steps {
                let Ok(first) = self.gradient(shard, &me.theta, cx) else { return };
                me.exchange.begin(first);
                tell(me, cx);
            }
        }
    }
}

/// Sends x(t) to all neighbours.
fn tell(me: &State, cx: &mut Cx<'_>) {
    me.exchange.tell(cx, |outbox, to, letter| {
        // At most three wait for an honest neighbour, with a model. One that acknowledges nothing misses what it does not take.
        let _ = outbox.send_durable(to, letter.map(SgdLetter::Mass));
    });
}

/// Sends the model of this step to all neighbours.
fn tell_model(me: &State, cx: &mut Cx<'_>) {
    // PRIVACY: computed by the speaker from what it released and heard, or heard from a neighbour: post-processing.
    let theta = known(me.theta.clone());
    for to in cx.peers.iter().map(|edge| edge.peer) {
        let letter = theta.as_ref().with_public(Public::declare(me.step), |step, theta| SgdLetter::Model {
            step,
            theta: Numbers::Plain(theta),
        });
        let _ = cx.outbox.send_durable(to, letter);
    }
}

/// What an agent remembers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    exchange: Exchange,
    /// How many steps its model has been through.
    step: u32,
    /// The model.
    theta: Vec<f64>,
    /// The next one, if it came before the rounds of this step were over.
    next: Option<Vec<f64>>,
}

impl State {
    /// How many steps its model has been through.
    pub fn step(&self) -> u32 {
        self.step
    }
}

impl Algorithm for MuffliatoSgd {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = SgdLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Shard<'_>) -> usize {
        SgdLetter::bytes(self.len())
    }

    fn wake_rate(&self, _: Shard<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let (theta, next) = (vec![0.0; self.len()], None);
        let mut me = State { exchange: Exchange::new(cx.peers), step: 0, theta, next };
        if !me.exchange.is_alone() {
            let first = self.gradient(shard, &me.theta, cx)?;
            me.exchange.begin(first);
            tell(&me, cx);
        }
        Ok(me)
    }

    /// Its clock never ticks.
    fn on_wake(&self, _: &mut State, _: Shard<'_>, _: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        shard: Shard<'_>,
        from: PeerId,
        letter: SgdLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        match letter {
            SgdLetter::Mass(letter) => me.exchange.hear(from, letter, self.len(), self.rounds_in_all)?,
            SgdLetter::Model { step, theta } => {
                if theta.len() != self.len() {
                    return Err(Reject::WrongDimension);
                }
                let known = match step.checked_sub(me.step) {
                    Some(0) => Some(&me.theta),
                    Some(1) if step <= self.config.steps => me.next.as_ref(),
                    _ => return Err(Reject::OutOfTurn),
                };
                match known {
                    // It comes from each neighbour once.
                    Some(known) if theta.iter().eq(known.iter().copied()) => return Ok(()),
                    Some(_) => return Err(Reject::Malformed),
                    None => me.next = Some(theta.iter().collect()),
                }
            }
        }
        self.go_on(me, shard, cx);
        Ok(())
    }

    fn is_done(&self, me: &State) -> bool {
        me.step == self.config.steps || me.exchange.is_alone()
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        _: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        let me: State = saved::read(saved)?;
        let MuffliatoSgdConfig { rounds, steps, .. } = self.config;
        me.exchange.check(cx.peers, self.len(), rounds, self.rounds_in_all)?;
        let is_model =
            |theta: &Vec<f64>| saved::is_vector(theta, self.len()) && theta.iter().all(|x| x.abs() <= NUMBER_MAX);
        saved::check(is_model(&me.theta) && me.next.as_ref().is_none_or(is_model))?;
        saved::check(me.step <= steps && (me.next.is_none() || me.step < steps))?;
        // The rounds of the steps that are over, and some of this one.
        let (least, most) =
            (me.step * rounds, me.step.saturating_add(1).saturating_mul(rounds).min(self.rounds_in_all));
        saved::check((least..=most).contains(&me.exchange.round()))?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        &me.theta
    }
}

#[cfg(test)]
mod tests;
