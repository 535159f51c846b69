//! What a pair computes, with its noise; what an answer says of the kernel; and how far the estimate may be off.
//!
//! ```text
//! P permutations of n members, h + noise for each of their pairs, U = the mean:                                     (thesis 3.3.4)
//! Var U = 2/(Pn) (2 (P-1) (1 - 1/(n-1)) z1 + (1 + (P-1)/(n-1)) z2) + 2/(Pn) s^2        z1 = Var E[h | X], z2 = Var h, s^2: of one noise
//! ```
//!
//! With Laplace noise on a range of one, s^2 = 2 P^2/epsilon^2, and the last term is 4 P/(n epsilon^2); Theorem 3.7 prints 2 P/(n epsilon^2).
//! Around the statistic of the members' own values, and not of the law that they came from, it is
//!
//! ```text
//! Var(U | values) = 2/(Pn) (z2 - (z2 + 2 (n-2) z1)/(n-3)) + 2/(Pn) s^2
//! ```
//!
//! because deviations of all pairs add up to nothing, which says what two pairs without a common member share on average. Differs from the thesis: kernels of few values
//! have randomized response inside the circuit in the place of Laplace noise (spec 03, section 9).

use rand_chacha::ChaCha20Rng;
use sottovoce_algorithms::Bounds;
use sottovoce_algorithms::config::{ConfigError, positive};
use sottovoce_crypto::Unfit;
use sottovoce_crypto::two_party::builder::Builder;
use sottovoce_crypto::two_party::circuit::Circuit;
use sottovoce_crypto::two_party::kernel::{Larger, comparison, gini, kendall, plain, squared_difference};
use sottovoce_crypto::two_party::laplace::Laplace;
use sottovoce_crypto::two_party::response::RandomizedResponse;

/// Bits of a squared difference: those below are far below the noise.
const SQUARE_BITS: u32 = 24;

/// The most permutations: a member has as many releases, and as many letters may wait for the aggregator.
pub const PAIRS_MAX: u32 = 32;

/// Bits of a number on the grid.
pub const BITS: std::ops::RangeInclusive<u32> = 1..=32;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairStatistic {
    /// The area under the ROC curve; labels are public, and pairs of one class need not meet.
    Auc,
    /// Kendall's tau.
    Kendall,
    /// Gini's mean difference.
    Gini,
    /// The variance.
    Variance,
}

/// How an answer is protected.
#[derive(Clone, Debug, PartialEq)]
enum Law {
    Exact,
    Response(RandomizedResponse),
    Laplace(Laplace),
}

/// What each pair computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanism {
    statistic: PairStatistic,
    bits: u32,
    range: Bounds,
    law: Law,
}

impl Mechanism {
    /// With so much epsilon for one pair; none: exact.
    pub fn new(
        statistic: PairStatistic,
        bits: u32,
        range: Bounds,
        epsilon: Option<f64>,
    ) -> Result<Mechanism, ConfigError> {
        if !BITS.contains(&bits) {
            return Err(ConfigError { field: "bits", value: bits.to_string(), accepted: "1 to 32" });
        }
        let width = positive("the width of the range", range.high - range.low)?;
        if !(width.is_finite() && range.low.is_finite()) {
            return Err(ConfigError { field: "range", value: width.to_string(), accepted: "two finite numbers" });
        }
        let exact = Mechanism { statistic, bits, range, law: Law::Exact };
        let Some(epsilon) = epsilon else { return Ok(exact) };
        let refused = |_: Unfit| ConfigError {
            field: "epsilon of a pair",
            value: epsilon.to_string(),
            accepted: "2^-20 to 20, and with small ones fewer bits",
        };
        let law = match statistic {
            PairStatistic::Auc => Law::Response(RandomizedResponse::new(epsilon, 2).map_err(refused)?),
            PairStatistic::Kendall => Law::Response(RandomizedResponse::new(epsilon, 3).map_err(refused)?),
            PairStatistic::Gini | PairStatistic::Variance => {
                let (width, most) = exact.output();
                Law::Laplace(Laplace::new(epsilon, width, most).map_err(refused)?)
            }
        };
        Ok(Mechanism { law, ..exact })
    }

    /// What is measured.
    pub fn statistic(&self) -> PairStatistic {
        self.statistic
    }

    /// The epsilon that one answer is proven to have; none where it is exact.
    pub fn epsilon(&self) -> Option<f64> {
        match &self.law {
            Law::Exact => None,
            Law::Response(response) => Some(response.epsilon()),
            Law::Laplace(laplace) => Some(laplace.epsilon()),
        }
    }

    /// Bits of a member's number.
    pub fn bits(&self) -> usize {
        self.bits as usize
    }

    fn largest(&self) -> u64 {
        (1 << self.bits) - 1
    }

    fn dropped(&self) -> u32 {
        (2 * self.bits).saturating_sub(SQUARE_BITS)
    }

    /// Bits of the kernel's integer, and the most that one record can move it.
    fn output(&self) -> (u32, u64) {
        match self.statistic {
            PairStatistic::Auc => (1, 1),
            PairStatistic::Kendall => (2, 2),
            PairStatistic::Gini => (self.bits, self.largest()),
            PairStatistic::Variance => {
                (2 * self.bits - self.dropped(), (u128::from(self.largest()).pow(2) >> self.dropped()) as u64)
            }
        }
    }

    /// A value as a number of the grid: the nearest one. It is a function of one record.
    pub fn number(&self, value: f64) -> u64 {
        let Bounds { low, high } = self.range;
        let place = (self.range.clip(value) - low) / (high - low) * self.largest() as f64;
        (libm::rint(place) as u64).min(self.largest())
    }

    /// The circuit of a pair; for AUC, who of the two should have the larger number.
    pub fn circuit(&self, larger: Larger) -> Circuit {
        let (mut builder, bits) = (Builder::new(), self.bits());
        let value = match self.statistic {
            PairStatistic::Auc => comparison(bits, larger, &mut builder),
            PairStatistic::Kendall => kendall(bits, &mut builder),
            PairStatistic::Gini => gini(bits, &mut builder),
            PairStatistic::Variance => squared_difference(bits, self.dropped() as usize, &mut builder),
        };
        let told = match &self.law {
            Law::Exact => value,
            Law::Response(response) => response.answer(&value, &mut builder).expect("values of its width"),
            Law::Laplace(laplace) => laplace.add_to(&value, &mut builder).expect("a value of its width"),
        };
        builder.output_number(&told);
        builder.build().expect("small circuits")
    }

    /// What the circuit would tell of two members' numbers, in the clear and by the same law: the ideal functionality, for simulations.
    pub fn draw(&self, garbler: &[u64], evaluator: &[u64], larger: Larger, rng: &mut ChaCha20Rng) -> u64 {
        let value = match self.statistic {
            PairStatistic::Auc => plain::comparison(garbler[0], evaluator[0], larger),
            PairStatistic::Kendall => plain::kendall((garbler[0], garbler[1]), (evaluator[0], evaluator[1])),
            PairStatistic::Gini => plain::gini(garbler[0], evaluator[0]),
            PairStatistic::Variance => {
                plain::squared_difference(garbler[0], evaluator[0], self.dropped() as usize) as u64
            }
        };
        match &self.law {
            Law::Exact => value,
            Law::Response(response) => response.draw(value, rng),
            Law::Laplace(laplace) => (laplace.draw(value, rng) + laplace.offset() as i64) as u64,
        }
    }

    /// What one step of the integer kernel is in the statistic's own unit.
    fn unit(&self) -> f64 {
        let step = (self.range.high - self.range.low) / self.largest() as f64;
        match self.statistic {
            PairStatistic::Auc | PairStatistic::Kendall => 1.0,
            PairStatistic::Gini => step,
            PairStatistic::Variance => 0.5 * libm::ldexp(step * step, self.dropped() as i32),
        }
    }

    /// An unbiased estimate of h from what the circuit told.
    pub fn decode(&self, told: u64) -> f64 {
        // Kendall's three values are told as 0, 1 and 2. The sum of all values that can be told is 0 then, and 1 for AUC.
        let (centre, sum) = if self.statistic == PairStatistic::Kendall { (1.0, 0.0) } else { (0.0, 1.0) };
        let value = match &self.law {
            Law::Exact => told as f64 - centre,
            Law::Response(response) => {
                let each = response.probability_of_each_other();
                (told as f64 - centre - each * sum) / (1.0 - response.values() as f64 * each)
            }
            Law::Laplace(laplace) => laplace.decode(told) as f64,
        };
        // Half of what was dropped comes back.
        let half = if self.statistic == PairStatistic::Variance && self.dropped() > 0 { 0.5 } else { 0.0 };
        (value + half) * self.unit()
    }

    /// The variance of one estimate around h; for Kendall around an h that is not zero.
    pub fn noise_variance(&self) -> f64 {
        match &self.law {
            Law::Exact => 0.0,
            Law::Response(response) => {
                let each = response.probability_of_each_other();
                let keep = 1.0 - response.values() as f64 * each;
                match self.statistic {
                    PairStatistic::Kendall => (keep + 2.0 * each) / (keep * keep) - 1.0,
                    _ => each * (1.0 - each) / (keep * keep),
                }
            }
            Law::Laplace(laplace) => laplace.variance() * self.unit() * self.unit(),
        }
    }

    /// z1 and z2 of values that are uniform on the range and independent: a public guess, where nobody may look.
    pub fn guess(&self) -> Spread {
        let width = self.range.high - self.range.low;
        let (means, pairs) = match self.statistic {
            PairStatistic::Auc => (1.0 / 12.0, 0.25),
            PairStatistic::Kendall => (1.0 / 9.0, 1.0),
            PairStatistic::Gini => (width * width / 180.0, width * width / 18.0),
            PairStatistic::Variance => (libm::pow(width, 4.0) / 720.0, 7.0 * libm::pow(width, 4.0) / 720.0),
        };
        Spread { means, pairs }
    }
}

/// z1 and z2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// z1: the variance of the mean of h over the other one of a pair.
    pub means: f64,
    /// z2: the variance of h.
    pub pairs: f64,
}

impl Spread {
    /// The variance of the estimate around the mean of the law that members' values come from; `noise` is that of one pair.
    pub fn around_the_law(&self, members: u32, permutations: u32, noise: f64) -> f64 {
        let (n, p) = (f64::from(members), f64::from(permutations));
        let several = 2.0 * (p - 1.0) * (1.0 - 1.0 / (n - 1.0)) * self.means;
        (several + (1.0 + (p - 1.0) / (n - 1.0)) * self.pairs + noise) / answers(members, permutations)
    }

    /// The same around the statistic of the members' own values; z1 and z2 are then theirs, over pairs of different members.
    pub fn around_the_values(&self, members: u32, permutations: u32, noise: f64) -> f64 {
        let n = f64::from(members);
        let shared = if members > 3 { (self.pairs + 2.0 * (n - 2.0) * self.means) / (n - 3.0) } else { 0.0 };
        ((self.pairs - shared).max(0.0) + noise) / answers(members, permutations)
    }
}

/// How many pairs there are in all.
pub fn answers(members: u32, permutations: u32) -> f64 {
    f64::from(members / 2) * f64::from(permutations)
}

/// The number of permutations with the least variance at this epsilon, by the formula, for values that are uniform on the range: a public guess.
pub fn best_pairs(
    statistic: PairStatistic,
    bits: u32,
    range: Bounds,
    epsilon: f64,
    members: u32,
) -> Result<u32, ConfigError> {
    let mut best = (f64::INFINITY, 1);
    for permutations in 1..=PAIRS_MAX {
        let Ok(mechanism) = Mechanism::new(statistic, bits, range, Some(epsilon / f64::from(permutations))) else {
            continue;
        };
        let variance = mechanism.guess().around_the_law(members.max(4), permutations, mechanism.noise_variance());
        if variance < best.0 {
            best = (variance, permutations);
        }
    }
    // Says what is wrong with it, where there is none.
    Mechanism::new(statistic, bits, range, Some(epsilon / f64::from(best.1))).map(|_| best.1)
}
