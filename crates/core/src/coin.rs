//! Random choices that may be replayed.

/// Randomness for choices (whom to call), never for noise: anyone who knows the seed can replay it.
///
/// A coin is keyed by (seed, agent, event), so neither the order in which a driver runs agents nor the
/// number of its threads changes what an agent draws. Two rounds of the SplitMix64 finalizer separate keys and
/// draws.
#[derive(Clone, Copy, Debug)]
pub struct Coin {
    state: u64,
}

impl Coin {
    /// The coin of one event of one agent.
    #[inline]
    pub fn new(seed: u64, agent: u32, event: u64) -> Self {
        Coin { state: mix(mix(seed ^ 0x50_77_0f_0c_e5).wrapping_add(mix(u64::from(agent) + 1)).wrapping_add(event)) }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in `0..n`. The bias is below n / 2^64.
    ///
    /// # Panics
    /// When `n` is zero.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "nothing to choose from");
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_over_agents_and_events() {
        let n = 10;
        let mut counts = [0u32; 10];
        for agent in 0..100 {
            for event in 0..100 {
                counts[Coin::new(7, agent, event).below(n)] += 1;
            }
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 27.9, "chi-square {chi2} with 9 degrees of freedom, bound at 1e-3");
    }

    #[test]
    fn unit_stays_below_one_and_keys_do_not_collide() {
        let mut seen = std::collections::HashSet::new();
        for agent in 0..64 {
            for event in 0..64 {
                let mut coin = Coin::new(1, agent, event);
                assert!(seen.insert(coin.bits()));
                assert!((0.0..1.0).contains(&coin.unit()));
            }
        }
    }
}
