//! A biased coin in a circuit: heads with a probability that is a declared fraction of 2^bits.
//!
//! ```text
//! U = XOR of t random bits of the garbler and t of the evaluator;     heads if U < threshold,  P = threshold / 2^t exactly
//! ```
//!
//! U is uniform, and unknown to both, as soon as one of the two draws its bits fairly and keeps them to itself (spec
//! 03, section 8.1). The coin costs t - 1 AND gates, or fewer where the threshold ends in zeros.

use super::{
    arithmetic::Number,
    builder::{Bit, Builder},
};
use crate::flaw::Unfit;
use rand_core::CryptoRng;

/// The most random bits of a coin.
pub const COIN_BITS_MAX: u32 = 120;

/// A coin that shows heads with probability `threshold / 2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coin {
    threshold: u128,
    bits: u32,
}

impl Coin {
    /// A coin. Its probability lies strictly between zero and one: anything else is no coin.
    pub fn new(threshold: u128, bits: u32) -> Result<Coin, Unfit> {
        let fits = (1..=COIN_BITS_MAX).contains(&bits) && threshold > 0 && threshold < 1 << bits;
        if fits { Ok(Coin { threshold, bits }) } else { Err(Unfit::Probability) }
    }

    /// The coin whose log odds are nearest to those of `probability` (at most 1/2), with as few bits as keep them
    /// within `error`: by at most 2^-bits / probability, since the log odds change by dp / (p (1 - p)).
    pub(super) fn near(probability: f64, error: f64) -> Result<Coin, Unfit> {
        if !(probability > 0.0 && probability <= 0.5 && error > 0.0) {
            return Err(Unfit::Probability);
        }
        let bits = libm::ceil(-libm::log2(probability * error)).clamp(1.0, 1000.0) as u32;
        if bits > COIN_BITS_MAX {
            return Err(Unfit::Probability);
        }
        Coin::new(libm::round(libm::ldexp(probability, bits as i32)) as u128, bits)
    }

    /// The probability of heads. Exact for coins of at most 53 significant bits.
    pub fn probability(&self) -> f64 {
        libm::ldexp(self.threshold as f64, -(self.bits as i32))
    }

    /// The logarithm of the odds of heads, to about 2^-46.
    pub fn log_odds(&self) -> f64 {
        libm::log(self.probability()) - libm::log1p(-self.probability())
    }

    /// Random bits that each of the two brings.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// How many of the 2^bits draws show heads.
    pub fn threshold(&self) -> u128 {
        self.threshold
    }

    /// Throws the coin in a circuit.
    pub fn throw(&self, builder: &mut Builder) -> Bit {
        let uniform = builder.joint_number(self.bits as usize);
        builder.greater(&Number::constant(self.threshold, self.bits as usize), &uniform)
    }

    /// Throws the coin in the clear: the same law, for simulations of the ideal functionality.
    pub fn draw(&self, rng: &mut impl CryptoRng) -> bool {
        let wide = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        wide >> (128 - self.bits) < self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;

    /// All draws of small coins: exactly the declared share shows heads, in the circuit and in the clear.
    #[test]
    fn a_coin_shows_heads_for_exactly_its_share_of_all_draws() {
        for bits in 1..=6 {
            for threshold in 1..1_u128 << bits {
                let coin = Coin::new(threshold, bits).expect("a probability");
                let mut builder = Builder::new();
                let heads = coin.throw(&mut builder);
                builder.output(heads);
                let circuit = builder.build().expect("a circuit");
                assert!(circuit.ands() < bits as usize);
                // Instance u of the 64 draws u.
                let words: Vec<u64> =
                    (0..bits).map(|i| (0..64).map(|draw: u64| (draw >> i & 1) << draw).sum()).collect();
                let heads = circuit.evaluate(&[], &[], &words)[0];
                for draw in 0..64_u128 {
                    let expected = draw % (1 << bits) < threshold;
                    assert_eq!(heads >> draw & 1 == 1, expected, "{threshold} of 2^{bits}, draw {draw}");
                }
            }
        }
    }

    #[test]
    fn certainties_and_coins_of_too_many_bits_are_refused() {
        for (threshold, bits) in [(0, 5), (32, 5), (33, 5), (1, 0), (1, 121)] {
            assert_eq!(Coin::new(threshold, bits), Err(Unfit::Probability), "{threshold} {bits}");
        }
        for (probability, error) in [(0.0, 0.1), (0.6, 0.1), (f64::NAN, 0.1), (0.1, 0.0), (1e-300, 1e-300)] {
            assert_eq!(Coin::near(probability, error), Err(Unfit::Probability), "{probability} {error}");
        }
    }

    #[test]
    fn a_near_coin_has_the_odds_it_was_asked_for() {
        for exponent in 1..200 {
            let probability = libm::exp(-0.25 * f64::from(exponent)) / 2.0;
            for error in [1e-3, 1e-6, 1e-9] {
                let Ok(coin) = Coin::near(probability, error) else { continue };
                let exact = libm::log(probability) - libm::log1p(-probability);
                assert!((coin.log_odds() - exact).abs() <= error + 1e-13, "{probability} {error}");
            }
        }
    }

    #[test]
    fn draws_in_the_clear_have_the_coins_probability() {
        let (coin, mut rng) = (Coin::new(3, 4).expect("a probability"), rng(1));
        let heads = (0..100_000).filter(|_| coin.draw(&mut rng)).count() as f64;
        assert!((heads - 18_750.0).abs() < 5.0 * (100_000.0 * 0.1875 * 0.8125_f64).sqrt(), "{heads}");
    }
}
