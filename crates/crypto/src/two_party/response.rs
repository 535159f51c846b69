//! Randomized response on few values, in a circuit.
//!
//! ```text
//! U uniform below 2^t;   R = j if (v - 1 - j) m <= U < (v - j) m for j = 1 .. v - 1,  and 0 if U >= (v - 1) m
//! told = (true value + R) mod v:     the truth with probability 1 - (v - 1) m / 2^t,  each other value with m / 2^t
//! ```
//!
//! This is v-ary randomized response with e^epsilon = (2^t - (v - 1) m) / m, exactly: m is rounded up, so that epsilon
//! is at most what was asked for, and nothing is left to approximate. The proof is in `proofs/two-party-noise.md`.

use super::{
    arithmetic::Number,
    builder::{Bit, Builder},
    laplace::{EPSILON_MAX, EPSILON_MIN},
};
use crate::flaw::Unfit;
use rand_core::CryptoRng;

/// The most values: each costs a comparison.
pub const VALUES_MAX: u64 = 64;

/// Randomized response on the values 0 .. values - 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomizedResponse {
    values: u64,
    /// m: how many of the 2^bits draws lead to any one wrong value.
    each: u64,
    bits: u32,
}

impl RandomizedResponse {
    /// The response on so many values; epsilon is kept to at least 1023/1024 of what is asked for.
    ///
    /// # Privacy
    ///
    /// Epsilon-differentially private, delta = 0, whatever the value depends on, if the joint bits are fair.
    pub fn new(epsilon: f64, values: u64) -> Result<RandomizedResponse, Unfit> {
        if !(EPSILON_MIN..=EPSILON_MAX).contains(&epsilon) {
            return Err(Unfit::Epsilon);
        }
        if !(2..=VALUES_MAX).contains(&values) {
            return Err(Unfit::TooMany);
        }
        let others = (values - 1) as f64;
        let with_bits = |bits: u32| {
            // A hair more than the quotient, so that rounding errors of the quotient cannot make m too small.
            let quotient = libm::ldexp(1.0 + libm::ldexp(1.0, -45), bits as i32) / (libm::exp(epsilon) + others);
            RandomizedResponse { values, each: libm::ceil(quotient) as u64, bits }
        };
        let fine = |response: &RandomizedResponse| {
            // The truth must stay the likeliest answer.
            (values * response.each) >> response.bits == 0 && response.epsilon() >= epsilon * (1.0 - 1.0 / 1024.0)
        };
        (1..=52).map(with_bits).find(fine).ok_or(Unfit::Epsilon)
    }

    /// The privacy of one answer, rounded up.
    pub fn epsilon(&self) -> f64 {
        // ln(truth / each), by what the two differ: exact integers below 2^53, and then two roundings of at most a unit
        // in the last place.
        let excess = (1u64 << self.bits) - self.values * self.each;
        libm::log1p(excess as f64 / self.each as f64) * (1.0 + libm::ldexp(1.0, -50))
    }

    /// How many values there are.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// The probability that the answer is any one value that is not true: exact. The truth has the rest.
    pub fn probability_of_each_other(&self) -> f64 {
        libm::ldexp(self.each as f64, -(self.bits as i32))
    }

    /// Bits of a value.
    pub fn width(&self) -> usize {
        (64 - (self.values - 1).leading_zeros()) as usize
    }

    /// Answers for a number below `values`, in a circuit.
    pub fn answer(&self, value: &Number, builder: &mut Builder) -> Result<Number, Unfit> {
        if value.width() != self.width() {
            return Err(Unfit::Lengths);
        }
        let bits = self.bits as usize;
        let uniform = builder.joint_number(bits);
        // at_least[j] says that R is at least j: U < (values - j) m.
        let threshold = |j: u64| Number::constant(u128::from((self.values - j) * self.each), bits);
        let at_least: Vec<Bit> = (1..self.values).map(|j| builder.greater(&threshold(j), &uniform)).collect();
        let shift = from_unary(&at_least, self.width(), builder);
        let sum = builder.add(value, &shift);
        let wrapped = builder.greater(&sum, &Number::constant(u128::from(self.values - 1), sum.width()));
        let (reduced, _) = builder.subtract(&sum, &Number::constant(self.values.into(), sum.width()));
        let mut answer = builder.select(wrapped, &reduced, &sum);
        answer.0.truncate(self.width());
        Ok(answer)
    }

    /// Answers in the clear and by the same law: for simulations of the ideal functionality.
    pub fn draw(&self, value: u64, rng: &mut impl CryptoRng) -> u64 {
        assert!(value < self.values, "one of the values");
        let uniform = rng.next_u64() >> (64 - self.bits);
        let shift = (1..self.values).filter(|j| uniform < (self.values - j) * self.each).count() as u64;
        (value + shift) % self.values
    }
}

/// How many of the bits are one, where no bit is one unless all before it are. Bit b of that number changes with every
/// 2^b-th: no AND.
fn from_unary(bits: &[Bit], width: usize, builder: &mut Builder) -> Number {
    let digit = |place: usize, builder: &mut Builder| {
        let every = bits.iter().skip((1 << place) - 1).step_by(1 << place);
        every.fold(Bit::ZERO, |sum, bit| builder.xor(sum, *bit))
    };
    Number((0..width).map(|place| digit(place, builder)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;

    /// Counts the answers of all draws, in the circuit and in the clear: each wrong value has exactly m of them.
    #[test]
    fn answers_have_exactly_their_share_of_all_draws() {
        for (values, each, bits) in
            [(2, 3, 4), (3, 2, 4), (3, 5, 4), (4, 1, 6), (5, 7, 6), (7, 9, 6), (8, 1, 5), (2, 1, 1)]
        {
            let response = RandomizedResponse { values, each, bits };
            let mut builder = Builder::new();
            let value = builder.evaluator_number(response.width());
            let answer = response.answer(&value, &mut builder).expect("its width");
            builder.output_number(&answer);
            let circuit = builder.build().expect("a circuit");
            let draws = 1 << bits;
            // Instance u of the 64 draws u.
            let words: Vec<u64> = (0..bits).map(|i| (0..64).map(|draw: u64| (draw >> i & 1) << draw).sum()).collect();
            for truth in 0..values {
                let constant: Vec<u64> = (0..response.width()).map(|i| (truth >> i & 1).wrapping_neg()).collect();
                let outputs = circuit.evaluate(&[], &constant, &words);
                let mut counts = vec![0; values as usize];
                for draw in 0..draws {
                    let told = outputs.iter().rev().fold(0, |sum, word| sum << 1 | word >> draw & 1);
                    counts[told as usize] += 1;
                }
                for (told, count) in counts.into_iter().enumerate() {
                    let expected = if told as u64 == truth { draws - (values - 1) * each } else { each };
                    assert_eq!(count, expected, "{values} values, {truth} told as {told}");
                }
            }
        }
    }

    #[test]
    fn epsilon_is_kept_and_hardly_wasted() {
        for values in [2, 3, 5, 36, 64] {
            for epsilon in [1e-5, 0.01, 0.25, 1.0, 2.0, 8.0, 20.0] {
                let response = RandomizedResponse::new(epsilon, values).expect("fine");
                let other = response.probability_of_each_other();
                let truth = 1.0 - (values - 1) as f64 * other;
                assert!(response.epsilon() <= epsilon && response.epsilon() > 0.999 * epsilon, "{values} {epsilon}");
                assert!(libm::log(truth / other) <= response.epsilon() + 1e-10, "{values} {epsilon}");
            }
        }
        for (epsilon, values) in [(0.0, 2), (f64::NAN, 2), (21.0, 2)] {
            assert_eq!(RandomizedResponse::new(epsilon, values), Err(Unfit::Epsilon));
        }
        for values in [0, 1, 65] {
            assert_eq!(RandomizedResponse::new(1.0, values), Err(Unfit::TooMany));
        }
    }

    #[test]
    fn draws_in_the_clear_have_the_same_law() {
        let (response, mut rng) = (RandomizedResponse::new(1.0, 3).expect("fine"), rng(1));
        let mut counts = [0.0; 3];
        (0..90_000).for_each(|_| counts[response.draw(1, &mut rng) as usize] += 1.0);
        let other = 90_000.0 * response.probability_of_each_other();
        let chi_square: f64 = [other, 90_000.0 - 2.0 * other, other]
            .iter()
            .zip(counts)
            .map(|(expected, count)| (count - expected) * (count - expected) / expected)
            .sum();
        assert!(chi_square < 20.0, "{counts:?}");
    }
}
