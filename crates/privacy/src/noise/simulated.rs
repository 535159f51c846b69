//! Noise in a simulator: any kind, chosen when a run starts.
//!
//! Two kinds are for audits: noise that remembers, and noise that repeats what another run has drawn. A run that is repeated on other
//! data with every mechanism's output as it was shows what of the run depends on data other than through the mechanisms: whatever
//! is not the same. What does not depend on them is released for free by right.

use super::{DEVIATION_LOG2, Exact, Idealized, NoNoise, Noise, sealed::Sealed};
use crate::Event;
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;

/// The noise of a simulated agent. A real peer does not take it.
#[derive(Clone, Debug, PartialEq)]
pub enum Simulated {
    /// The run is not private.
    None,
    /// Fast, in floating point.
    Idealized(Idealized),
    /// Any, and every release is remembered: for audits.
    Recording(Box<Recording>),
    /// None: what comes out is what was recorded. For audits.
    Replaying(Box<Replaying>),
    /// What real peers use, but repeatable: for audits.
    Exact(Box<Exact<ChaCha20Rng>>),
}

impl Sealed for Simulated {}

impl Noise for Simulated {
    fn respond(&mut self, epsilon: f64, categories: u32, answers: &mut [f64]) {
        match self {
            Simulated::None => NoNoise.respond(epsilon, categories, answers),
            Simulated::Idealized(noise) => noise.respond(epsilon, categories, answers),
            Simulated::Exact(noise) => noise.respond(epsilon, categories, answers),
            Simulated::Recording(noise) => noise.respond(epsilon, categories, answers),
            Simulated::Replaying(noise) => noise.respond(epsilon, categories, answers),
        }
    }

    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {
        match self {
            Simulated::None => NoNoise.perturb(event, sensitivity, values),
            Simulated::Idealized(noise) => noise.perturb(event, sensitivity, values),
            Simulated::Exact(noise) => noise.perturb(event, sensitivity, values),
            Simulated::Recording(noise) => noise.perturb(event, sensitivity, values),
            Simulated::Replaying(noise) => noise.perturb(event, sensitivity, values),
        }
    }

    fn perturb_integers(&mut self, values: &mut [i64]) {
        match self {
            Simulated::None => NoNoise.perturb_integers(values),
            Simulated::Idealized(noise) => noise.perturb_integers(values),
            Simulated::Exact(noise) => noise.perturb_integers(values),
            Simulated::Recording(noise) => noise.perturb_integers(values),
            Simulated::Replaying(noise) => noise.perturb_integers(values),
        }
    }
}

/// One use of a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// The mechanism.
    pub event: Event,
    /// The sensitivity that its noise was scaled to.
    pub sensitivity: f64,
    /// What went in: exact values, which only an audit may see.
    pub input: Vec<f64>,
    /// What came out.
    pub output: Vec<f64>,
}

/// Noise that remembers every release.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    inner: Simulated,
    releases: Vec<Release>,
}

impl Recording {
    /// Remembers what this noise does.
    pub fn new(inner: Simulated) -> Self {
        Recording { inner, releases: Vec::new() }
    }

    /// What has been released, in its order.
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }
}

impl Sealed for Recording {}

impl Noise for Recording {
    fn respond(&mut self, epsilon: f64, categories: u32, answers: &mut [f64]) {
        let (event, input) = (Event::RandomizedResponse { epsilon }, answers.to_vec());
        self.inner.respond(epsilon, categories, answers);
        self.releases.push(Release { event, sensitivity: 1.0, input, output: answers.to_vec() });
    }

    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {
        let input = values.to_vec();
        self.inner.perturb(event, sensitivity, values);
        self.releases.push(Release { event, sensitivity, input, output: values.to_vec() });
    }

    fn perturb_integers(&mut self, values: &mut [i64]) {
        let input = as_numbers(values);
        self.inner.perturb_integers(values);
        self.releases.push(Release { event: SHARE, sensitivity: 1.0, input, output: as_numbers(values) });
    }
}

/// How a share of noise on integers is remembered.
const SHARE: Event = Event::Gaussian { noise_multiplier: (1u64 << DEVIATION_LOG2) as f64 };

/// Integers as an audit remembers them: exact up to 2^53.
fn as_numbers(values: &[i64]) -> Vec<f64> {
    values.iter().map(|&value| value as f64).collect()
}

/// Noise that lets out what was recorded, whatever goes in, and remembers that.
#[derive(Clone, Debug, PartialEq)]
pub struct Replaying {
    recorded: Arc<Vec<Release>>,
    releases: Vec<Release>,
}

impl Replaying {
    /// Repeats these releases.
    pub fn new(recorded: Arc<Vec<Release>>) -> Self {
        Replaying { recorded, releases: Vec::new() }
    }

    /// What has been released, in its order. A release that was not recorded, or with another mechanism or size, has an output of
    /// zeros.
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }
}

impl Sealed for Replaying {}

impl Noise for Replaying {
    /// Whatever comes out is an answer: where nothing was recorded, that is the first category.
    fn respond(&mut self, epsilon: f64, _categories: u32, answers: &mut [f64]) {
        self.perturb(Event::RandomizedResponse { epsilon }, 1.0, answers);
    }

    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {
        let input = values.to_vec();
        match self.recorded.get(self.releases.len()) {
            Some(known) if known.output.len() == values.len() && known.event == event => {
                values.copy_from_slice(&known.output);
            }
            // Another course of events than was recorded; the comparison of the two says so.
            _ => values.fill(0.0),
        }
        self.releases.push(Release { event, sensitivity, input, output: values.to_vec() });
    }

    fn perturb_integers(&mut self, values: &mut [i64]) {
        let mut numbers = as_numbers(values);
        self.perturb(SHARE, 1.0, &mut numbers);
        values.iter_mut().zip(numbers).for_each(|(value, number)| *value = number as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gate, Plan, Sum};

    const LAPLACE: Event = Event::Laplace { noise_multiplier: 2.0 };

    fn gate(noise: Simulated) -> Gate<Simulated> {
        let plan = Plan::new(vec![LAPLACE; 2], 1.0, 0.0, &Sum).expect("cheap");
        Gate::planned(Arc::new(plan), noise)
    }

    #[test]
    fn what_is_recorded_comes_out_again_for_any_input() {
        let mut gate_one =
            gate(Simulated::Recording(Box::new(Recording::new(Simulated::Idealized(Idealized::new(1, 2))))));
        let mut plain = gate(Simulated::Idealized(Idealized::new(1, 2)));
        let (mut values, mut expected) = ([1.0, 2.0], [1.0, 2.0]);
        gate_one.release(&mut values, 0.5).expect("planned");
        plain.release(&mut expected, 0.5).expect("planned");
        assert_eq!(values, expected, "recording changes nothing");
        let Simulated::Recording(recording) = gate_one.noise() else { panic!("it records") };
        let release = Release { event: LAPLACE, sensitivity: 0.5, input: vec![1.0, 2.0], output: values.to_vec() };
        assert_eq!(recording.releases(), std::slice::from_ref(&release));

        let recorded = Arc::new(recording.releases().to_vec());
        let mut gate_two = gate(Simulated::Replaying(Box::new(Replaying::new(recorded))));
        let mut other = [-7.0, 9.0];
        gate_two.release(&mut other, 0.5).expect("planned");
        assert_eq!(other, values);
        let mut more = [1.0];
        gate_two.release(&mut more, 0.5).expect("planned");
        assert_eq!(more, [0.0], "it was not recorded");
        let Simulated::Replaying(replaying) = gate_two.noise() else { panic!("it replays") };
        assert_eq!(replaying.releases()[0], Release { input: vec![-7.0, 9.0], ..release });
    }

    #[test]
    fn an_agents_noise_stays_small() {
        assert!(size_of::<Simulated>() <= 16, "{} bytes", size_of::<Simulated>());
    }
}
