//! Who wakes when.

use serde::{Deserialize, Serialize};
use sottovoce_core::{Coin, PeerId, Time};

/// How time passes between two wakes. Both clocks wake a uniformly random agent each time: n independent Poisson clocks of
/// rate one are one clock of rate n that picks an agent at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Exactly n wakes in each unit of time.
    #[default]
    Uniform,
    /// Exponential times between wakes, n of them in a unit of time on average.
    Poisson,
}

/// The sequence of wakes, endless, from a seed.
#[derive(Clone, Debug)]
pub struct Schedule {
    coin: Coin,
    clock: Clock,
    agents: usize,
    /// Where agents wake at different rates: the sums of the rates up to each agent.
    rates: Option<Vec<f64>>,
    wakes: u64,
    now: f64,
}

/// The key under which the schedule draws; no agent has this number.
const SCHEDULE: u32 = u32::MAX;

impl Schedule {
    /// The wakes of `agents` agents.
    pub fn new(seed: u64, clock: Clock, agents: usize) -> Self {
        Schedule { coin: Coin::new(seed, SCHEDULE, 0), clock, agents, rates: None, wakes: 0, now: 0.0 }
    }

    /// The wakes of agents with these rates, each a finite number from zero.
    pub(crate) fn with_rates(seed: u64, clock: Clock, rates: impl Iterator<Item = f64> + Clone) -> Self {
        let plain = Schedule::new(seed, clock, rates.clone().count());
        if rates.clone().all(|rate| rate == 1.0) {
            return plain;
        }
        let mut sum = 0.0;
        let sums = rates.map(|rate| {
            assert!(rate.is_finite() && rate >= 0.0, "a wake rate of {rate}");
            sum += rate;
            sum
        });
        Schedule { rates: Some(sums.collect()), ..plain }
    }

    /// Whether anybody's clock ticks.
    #[inline]
    pub(crate) fn ticks(&self) -> bool {
        self.total() > 0.0
    }

    /// Wakes in a unit of time.
    #[inline]
    fn total(&self) -> f64 {
        self.rates.as_ref().map_or(self.agents as f64, |rates| rates.last().copied().unwrap_or(0.0))
    }

    /// Time has come to this at least: something happened besides the wakes.
    pub(crate) fn advance_to(&mut self, now: Time) {
        self.now = self.now.max(now.0);
    }

    /// The next wake.
    pub fn next_wake(&mut self) -> (PeerId, Time) {
        self.wakes += 1;
        let total = self.total();
        self.now = match self.clock {
            Clock::Uniform => self.wakes as f64 / total,
            Clock::Poisson => self.now - libm::log(1.0 - self.coin.unit()) / total,
        };
        let agent = match &self.rates {
            None => self.coin.below(self.agents),
            Some(rates) => {
                let drawn = self.coin.unit() * total;
                rates.partition_point(|&sum| sum <= drawn).min(self.agents - 1)
            }
        };
        (PeerId(agent as u32), Time(self.now))
    }

    /// The time of the last wake.
    pub fn now(&self) -> Time {
        Time(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(clock: Clock, agents: usize, wakes: u64) -> (Vec<f64>, f64) {
        let mut schedule = Schedule::new(11, clock, agents);
        let mut counts = vec![0.0; agents];
        for _ in 0..wakes {
            counts[schedule.next_wake().0.index()] += 1.0;
        }
        (counts, schedule.now().0)
    }

    /// With 99 degrees of freedom chi-square exceeds 148.2 with probability 1e-3.
    #[test]
    fn check_00_d_poisson_and_uniform_clocks_wake_agents_alike() {
        let (agents, wakes) = (100, 100_000);
        let (uniform, _) = counts(Clock::Uniform, agents, wakes);
        let (poisson, now) = counts(Clock::Poisson, agents, wakes);
        let expected = wakes as f64 / agents as f64;
        for sample in [&uniform, &poisson] {
            let chi2: f64 = sample.iter().map(|c| (c - expected).powi(2) / expected).sum();
            assert!(chi2 < 148.2, "against uniform: {chi2}");
        }
        let two_sample: f64 = uniform.iter().zip(&poisson).map(|(a, b)| (a - b).powi(2) / (a + b)).sum();
        assert!(two_sample < 148.2, "against each other: {two_sample}");
        // The mean of 100,000 exponential gaps is within 4 standard errors of its expectation.
        assert!((now / expected - 1.0).abs() < 4.0 / (wakes as f64).sqrt(), "{now}");
    }

    /// With 2 degrees of freedom chi-square exceeds 13.8 with probability 1e-3.
    #[test]
    fn agents_wake_as_often_as_their_rates_say() {
        let rates = [0.0, 0.5, 2.0, 1.5, 0.0];
        let mut schedule = Schedule::with_rates(3, Clock::Poisson, rates.into_iter());
        let mut counts = [0.0; 5];
        (0..40_000).for_each(|_| counts[schedule.next_wake().0.index()] += 1.0);
        assert!((schedule.now().0 / 10_000.0 - 1.0).abs() < 0.02, "four wakes in a unit of time: {:?}", schedule.now());
        assert_eq!((counts[0], counts[4]), (0.0, 0.0));
        let chi2: f64 = (1..4).map(|k| (counts[k] - 1e4 * rates[k]).powi(2) / (1e4 * rates[k])).sum();
        assert!(chi2 < 13.8, "{chi2}: {counts:?}");
        assert!(!Schedule::with_rates(3, Clock::Uniform, [0.0, 0.0].into_iter()).ticks());
    }

    /// Each agent's own gaps are exponential of rate one: their mean and their variance are both one.
    #[test]
    fn check_00_d_an_agents_own_clock_is_poisson_of_rate_one() {
        let mut schedule = Schedule::new(5, Clock::Poisson, 50);
        let mut last = vec![0.0; 50];
        let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
        for _ in 0..200_000 {
            let (agent, now) = schedule.next_wake();
            let gap = now.0 - last[agent.index()];
            last[agent.index()] = now.0;
            (sum, squares, n) = (sum + gap, squares + gap * gap, n + 1.0);
        }
        let mean = sum / n;
        assert!((mean - 1.0).abs() < 0.01, "mean gap {mean}");
        assert!((squares / n - mean * mean - 1.0).abs() < 0.03, "variance of gaps {}", squares / n - mean * mean);
    }
}
