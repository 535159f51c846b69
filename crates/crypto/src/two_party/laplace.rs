//! Discrete Laplace noise in a circuit, by independent bits.
//!
//! ```text
//! P[N = n] proportional to a^|n|,   a = e^-rate
//! G = sum_i 2^i b_i for i < k,  P[b_i = 1] = a^(2^i) / (1 + a^(2^i)):       G is geometric on 0 .. 2^k - 1      [Dwork et al. 2006]
//! N = G or -1 - G,  the second with probability a / (1 + a)
//! V = clamp(y + N, -B, D + B)
//! ```
//!
//! The value y is an integer from 0 to D = 2^width - 1; one record moves it by at most the sensitivity. -1 - G is G
//! with all bits flipped, so the sign costs one coin and no gate. Coins are dyadic, the geometric law ends at 2^k, and
//! the clamp keeps that end out of sight: all three are part of the privacy that is claimed, which is *pure*:
//!
//! ```text
//! epsilon = sensitivity x rate + sum over coins |error of the log odds| - ln(1 - a^W),   W = 2^k - D - B
//! ```
//!
//! The proof is in `proofs/two-party-noise.md`. The noise is at most 1/1024 larger than that of the ideal law. The
//! clamp is met with a probability below 2^-40, so the mean is y but for 2^-40 scales of the noise.
//!
//! **Differs from spec 03, section 8.1**, which has the difference of two geometric variables and 32 bits for each
//! coin: this takes half as many coins, and its epsilon is pure where truncating that difference costs a delta.

use super::{arithmetic::Number, builder::Builder, coin::Coin};
use crate::flaw::Unfit;
use rand_core::CryptoRng;

/// The share of epsilon that is left for dyadic coins and for the end of the geometric law: 2^-10.
const APPROXIMATION: f64 = 1.0 / 1024.0;
/// The logarithm of the probability of meeting the clamp: 2^-40.
const CLAMP_NATS: f64 = 40.0 * std::f64::consts::LN_2;
/// What computing the log odds of a coin in floating point may be wrong by: logarithms below 2^7 to two units in the
/// last place, twice.
const LOG_ODDS_ERROR: f64 = 1.0 / (1u64 << 42) as f64;
/// The most bits of the geometric variable: outputs are two bits wider, and fit into 62.
const MAGNITUDE_BITS_MAX: u32 = 60;

/// Discrete Laplace noise for integers of a declared width.
#[derive(Clone, Debug, PartialEq)]
pub struct Laplace {
    width: u32,
    sensitivity: u64,
    rate: f64,
    /// The coins of the magnitude's bits, the lowest first.
    magnitude: Vec<Coin>,
    sign: Coin,
    /// W: how far the clamp stays away from where the geometric law ends.
    distance: u64,
    epsilon: f64,
}

impl Laplace {
    /// The noise for integers below 2^width that one record moves by at most `sensitivity`.
    ///
    /// # Privacy
    ///
    /// The release is epsilon-differentially private, delta = 0, if the joint bits are fair:
    /// `proofs/two-party-noise.md`. That the sensitivity is right is the caller's claim.
    pub fn new(epsilon: f64, width: u32, sensitivity: u64) -> Result<Laplace, Unfit> {
        if !(EPSILON_MIN..=EPSILON_MAX).contains(&epsilon) {
            return Err(Unfit::Epsilon);
        }
        if !(1..=MAGNITUDE_BITS_MAX).contains(&width) || sensitivity == 0 || sensitivity > largest(width) {
            return Err(Unfit::Sensitivity);
        }
        let rate = epsilon * (1.0 - APPROXIMATION) / sensitivity as f64;
        // a^W is at most a quarter of what is left for approximations, and the coins together take at most half.
        let distance = libm::ceil(-libm::log(0.25 * APPROXIMATION * epsilon) / rate);
        let reach = largest(width) as f64 + libm::ceil(CLAMP_NATS / rate) + distance;
        let bits =
            (0..=MAGNITUDE_BITS_MAX).find(|bits| libm::ldexp(1.0, *bits as i32) >= reach).ok_or(Unfit::Sensitivity)?;
        let error = 0.5 * APPROXIMATION * epsilon / f64::from(bits + 1);
        let coin = |exponent: f64| Coin::near(1.0 / (1.0 + libm::exp(exponent)), error);
        let exponents: Vec<f64> = (0..bits).map(|i| libm::ldexp(rate, i as i32)).collect();
        let magnitude = exponents.iter().map(|exponent| coin(*exponent)).collect::<Result<Vec<_>, _>>()?;
        let sign = coin(rate)?;
        let off = |coin: &Coin, exponent: f64| (coin.log_odds() + exponent).abs() + LOG_ODDS_ERROR;
        let errors: f64 = magnitude.iter().zip(&exponents).map(|(coin, exponent)| off(coin, *exponent)).sum();
        let end = -libm::log1p(-libm::exp(-rate * distance));
        // The sum of at most 62 positive terms, each rounded: far less than 2^-45 of it is lost, and added here.
        let bound = (sensitivity as f64 * rate + errors + off(&sign, rate) + end) * (1.0 + libm::ldexp(1.0, -45));
        if bound > epsilon {
            return Err(Unfit::Epsilon);
        }
        Ok(Laplace { width, sensitivity, rate, magnitude, sign, distance: distance as u64, epsilon: bound })
    }

    /// What is proved: at most what was asked for.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// How far one record may move the value.
    pub fn sensitivity(&self) -> u64 {
        self.sensitivity
    }

    /// The ideal law's variance, in units of the value: 2 a / (1 - a)^2.
    pub fn variance(&self) -> f64 {
        let one_minus = -libm::expm1(-self.rate);
        2.0 * libm::exp(-self.rate) / (one_minus * one_minus)
    }

    /// The probability that the ideal noise is n, before the clamp.
    pub fn probability(&self, n: i64) -> f64 {
        let a = libm::exp(-self.rate);
        -libm::expm1(-self.rate) / (1.0 + a) * libm::exp(-self.rate * n.unsigned_abs() as f64)
    }

    /// The coins, the sign's last.
    pub fn coins(&self) -> impl Iterator<Item = &Coin> {
        self.magnitude.iter().chain([&self.sign])
    }

    /// 2^k: magnitudes are below it, and outputs are larger by it than what they mean.
    pub fn offset(&self) -> u64 {
        1 << self.magnitude.len()
    }

    /// The least and the largest output.
    pub fn output_range(&self) -> (u64, u64) {
        (largest(self.width) + self.distance, 2 * self.offset() - self.distance)
    }

    /// Adds noise to a number of the declared width, in a circuit.
    pub fn add_to(&self, value: &Number, builder: &mut Builder) -> Result<Number, Unfit> {
        if value.width() != self.width as usize {
            return Err(Unfit::Lengths);
        }
        let magnitude: Vec<_> = self.magnitude.iter().map(|coin| coin.throw(builder)).collect();
        let sign = self.sign.throw(builder);
        // N + 2^k, where N is G or -1 - G: the bits of G, all flipped by the sign, below the sign's opposite.
        let mut noise: Vec<_> = magnitude.into_iter().map(|bit| builder.xor(bit, sign)).collect();
        noise.push(sign.not());
        let sum = builder.add(&Number(noise), value);
        let (low, high) = self.output_range();
        Ok(builder.clamp(&sum, low.into(), high.into()))
    }

    /// The number that an output of the circuit means: the value with its noise.
    pub fn decode(&self, output: u64) -> i64 {
        output as i64 - self.offset() as i64
    }

    /// A value with its noise, in the clear and by the same law: for simulations of the ideal functionality.
    pub fn draw(&self, value: u64, rng: &mut impl CryptoRng) -> i64 {
        assert!(value <= largest(self.width), "a value of the declared width");
        let magnitude = self.magnitude.iter().rev().fold(0, |sum, coin| 2 * sum + i64::from(coin.draw(rng)));
        let noise = if self.sign.draw(rng) { -1 - magnitude } else { magnitude };
        let (low, high) = self.output_range();
        (value as i64 + noise).clamp(self.decode(low), self.decode(high))
    }
}

/// The least epsilon: below it the arithmetic of the coins would have to be finer.
pub const EPSILON_MIN: f64 = 1.0 / (1u64 << 20) as f64;
/// The largest epsilon.
pub const EPSILON_MAX: f64 = 20.0;

/// The largest integer of so many bits.
fn largest(width: u32) -> u64 {
    (1 << width) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;
    use rand_core::Rng;

    /// The law of the outputs for a value, from the coins' own probabilities: nothing is assumed of the ideal law.
    fn law(laplace: &Laplace, value: u64) -> Vec<f64> {
        let (low, high) = laplace.output_range();
        let mut law = vec![0.0; (high - low + 1) as usize];
        let choose = |coin: &Coin, heads: bool| if heads { coin.probability() } else { 1.0 - coin.probability() };
        for magnitude in 0..laplace.offset() {
            let coins = laplace.magnitude.iter().enumerate();
            let weight: f64 = coins.map(|(i, coin)| choose(coin, magnitude >> i & 1 == 1)).product();
            for negative in [false, true] {
                let noise = if negative { -1 - magnitude as i64 } else { magnitude as i64 };
                let output = (value as i64 + noise + laplace.offset() as i64).clamp(low as i64, high as i64) as u64;
                law[(output - low) as usize] += weight * choose(&laplace.sign, negative);
            }
        }
        law
    }

    /// The proof's bound against the law itself, for all values and all outputs, ends included.
    #[test]
    fn no_output_tells_more_than_the_proven_epsilon() {
        for (epsilon, width, sensitivity) in
            [(1.0, 2, 3), (0.1, 1, 1), (8.0, 3, 7), (20.0, 2, 3), (0.01, 1, 1), (2.0, 4, 5), (0.5, 6, 63), (1e-4, 1, 1)]
        {
            let laplace = Laplace::new(epsilon, width, sensitivity).expect("fine");
            let laws: Vec<Vec<f64>> = (0..=largest(width)).map(|value| law(&laplace, value)).collect();
            let mut worst: f64 = 0.0;
            for (y, a) in laws.iter().enumerate() {
                for b in laws.iter().skip(y).take(sensitivity as usize + 1) {
                    for (p, q) in a.iter().zip(b) {
                        worst = worst.max(libm::log(p / q).abs());
                    }
                }
            }
            assert!(worst <= laplace.epsilon() && laplace.epsilon() <= epsilon, "{worst} of {}", laplace.epsilon());
            assert!(worst >= 0.998 * epsilon, "{worst} of {epsilon}: more noise than needed");
        }
    }

    /// Mean and variance of the law itself.
    #[test]
    fn the_noise_is_centred_and_has_the_declared_variance() {
        for (epsilon, width) in [(1.0, 3), (0.1, 1), (4.0, 5)] {
            let laplace = Laplace::new(epsilon, width, largest(width)).expect("fine");
            for value in [0, largest(width)] {
                let law = law(&laplace, value);
                let low = laplace.decode(laplace.output_range().0);
                let moment = |power: i32| {
                    let terms = law.iter().enumerate();
                    terms.map(|(i, p)| p * libm::pow((low + i as i64 - value as i64) as f64, power.into())).sum::<f64>()
                };
                let deviation = laplace.variance().sqrt();
                assert!(moment(1).abs() < 2e-3 * epsilon * deviation, "mean {} of {deviation}", moment(1));
                assert!((moment(2) / laplace.variance() - 1.0).abs() < 2e-3, "{} {}", moment(2), laplace.variance());
                assert!(law[0] + law[law.len() - 1] < 1e-11, "the clamp is met too often");
            }
        }
    }

    /// The circuit against the formula for the same bits. In every other round half of all coins get zeros, which is
    /// heads, so that the clamp is met.
    #[test]
    fn the_circuit_computes_the_formula_for_any_bits() {
        let mut rng = rng(1);
        for (epsilon, width, sensitivity) in [(1.0, 4, 15), (0.2, 8, 200), (8.0, 1, 1), (1.0, 16, 65_535)] {
            let laplace = Laplace::new(epsilon, width, sensitivity).expect("fine");
            let mut builder = Builder::new();
            let value = builder.garbler_number(width as usize);
            let noisy = laplace.add_to(&value, &mut builder).expect("the declared width");
            builder.output_number(&noisy);
            let circuit = builder.build().expect("a circuit");
            let (low, high) = laplace.output_range();
            let mut ends = 0;
            for round in 0..200 {
                let values: Vec<u64> = (0..width).map(|_| rng.next_u64()).collect();
                let mut bits: Vec<u64> = Vec::new();
                for coin in laplace.coins() {
                    let drawn = if round % 2 == 1 { rng.next_u64() } else { u64::MAX };
                    bits.extend((0..coin.bits()).map(|_| drawn & rng.next_u64()));
                }
                let outputs = circuit.evaluate(&values, &[], &bits);
                for instance in 0..64 {
                    let read = |words: &[u64]| {
                        words.iter().rev().fold(0_u128, |sum, word| sum << 1 | u128::from(word >> instance & 1))
                    };
                    let mut rest = &bits[..];
                    let mut throw = |coin: &Coin| {
                        let (own, others) = rest.split_at(coin.bits() as usize);
                        rest = others;
                        read(own) < coin.threshold()
                    };
                    let magnitude: i64 =
                        laplace.magnitude.iter().enumerate().map(|(i, coin)| i64::from(throw(coin)) << i).sum();
                    let noise = if throw(&laplace.sign) { -1 - magnitude } else { magnitude };
                    let expected = (read(&values) as i64 + noise).clamp(laplace.decode(low), laplace.decode(high));
                    assert_eq!(laplace.decode(read(&outputs) as u64), expected);
                    ends += u32::from([low, high].contains(&(read(&outputs) as u64)));
                }
            }
            assert!(ends > 0, "the clamp was never met: this test looks at too little");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY, 21.0, 1e-7] {
            assert_eq!(Laplace::new(epsilon, 4, 15), Err(Unfit::Epsilon), "{epsilon}");
        }
        for (width, sensitivity) in [(0, 1), (61, 1), (4, 0), (4, 16), (58, (1 << 58) - 1)] {
            assert_eq!(Laplace::new(1.0, width, sensitivity), Err(Unfit::Sensitivity), "{width} {sensitivity}");
        }
        let laplace = Laplace::new(1.0, 4, 15).expect("fine");
        let mut builder = Builder::new();
        let value = builder.garbler_number(5);
        assert_eq!(laplace.add_to(&value, &mut builder), Err(Unfit::Lengths));
    }
}
