//! Bits that nobody else may know: for keys, pads and salts.
//!
//! Noise is not drawn from here: it is the gate's, behind its charge. Choices that may be replayed are a coin's.

use crate::noise::Noise;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use std::fmt;

/// The secret bits of one process. It is made from the process's noise ([`Entropy::beside`]) and is as secret as that: on a real peer,
/// whose noise is [`Secret`](crate::Secret) by its type, the operating system's entropy.
pub struct Entropy(ChaCha20Rng);

impl Entropy {
    /// A generator of its own beside this noise. Noise of simulations has no secrets: the bits then follow from `seed` and `agent`.
    pub fn beside(noise: &mut (impl Noise + ?Sized), seed: u64, agent: u32) -> Self {
        let mut key = keyed(seed, agent, u64::MAX);
        noise.draw_key(&mut key);
        Entropy(ChaCha20Rng::from_seed(key))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Entropy").finish_non_exhaustive()
    }
}

/// This is a simulation: what would have to be secret need not be. Only simulated secrets give one ([`Secrets::simulation`]).
///
/// ```compile_fail,E0423
/// let simulation = sottovoce_privacy::Simulation(());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Simulation(());

/// What one event of one agent can draw.
#[derive(Debug)]
pub struct Secrets<'a>(Source<'a>);

enum Source<'a> {
    Process(&'a mut Entropy),
    /// The parts of a key, so that an event that draws nothing pays for nothing.
    Seeded {
        seed: u64,
        agent: u32,
        event: u64,
        draws: u64,
    },
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Source::Process(_) => "Process",
            Source::Seeded { .. } => "Seeded",
        })
    }
}

impl<'a> Secrets<'a> {
    /// From a process's own secret bits.
    pub fn of(entropy: &'a mut Entropy) -> Self {
        Secrets(Source::Process(entropy))
    }

    /// For simulations and tests: whoever knows the seed can repeat it. It is keyed by (seed, agent, event), as a coin is.
    #[inline]
    pub fn simulated(seed: u64, agent: u32, event: u64) -> Self {
        Secrets(Source::Seeded { seed, agent, event, draws: 0 })
    }

    /// The proof that these secrets are none: whoever knows the seed can repeat them. A real peer has no such thing.
    pub fn simulation(&self) -> Option<Simulation> {
        match self.0 {
            Source::Process(_) => None,
            Source::Seeded { .. } => Some(Simulation(())),
        }
    }

    /// Fills `bytes` with bits that are uniform and independent of all others.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        match &mut self.0 {
            Source::Process(entropy) => entropy.0.fill_bytes(bytes),
            Source::Seeded { seed, agent, event, draws } => {
                let mut stream = ChaCha20Rng::from_seed(keyed(*seed, *agent, *event));
                stream.set_stream(*draws);
                *draws += 1;
                stream.fill_bytes(bytes);
            }
        }
    }

    /// Uniform in `0..n`; the bias is below n / 2^64. Simulated draws are those of a small generator: for many choices, and never for keys.
    ///
    /// # Panics
    /// When `n` is zero.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "nothing to choose from");
        let bits = match &mut self.0 {
            Source::Process(entropy) => entropy.0.next_u64(),
            Source::Seeded { seed, agent, event, draws } => {
                *draws += 1;
                let key = mix(*seed ^ 0x5ec2_e7c4_01ce).wrapping_add(mix(u64::from(*agent) + 1));
                mix(mix(key.wrapping_add(*event)).wrapping_add(*draws))
            }
        };
        ((u128::from(bits) * n as u128) >> 64) as usize
    }

    /// So many bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

/// The finalizer of SplitMix64.
fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The key of simulated secrets; its last bytes keep it apart from other uses of the seed.
fn keyed(seed: u64, agent: u32, event: u64) -> [u8; 32] {
    let mut key = *b"....................secrets, sim";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&agent.to_le_bytes());
    key[12..20].copy_from_slice(&event.to_le_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exact, Idealized, Secret, Simulated};
    use std::collections::BTreeSet;

    #[test]
    fn simulated_secrets_repeat_and_differ_between_seeds_agents_events_and_draws() {
        let mut all = BTreeSet::new();
        for (seed, agent, event) in (0..27).map(|k| (k / 9, (k / 3 % 3) as u32, k % 3)) {
            let mut secrets = Secrets::simulated(seed, agent, event);
            let drawn = [secrets.bytes::<16>(), secrets.bytes()];
            let mut again = Secrets::simulated(seed, agent, event);
            assert_eq!(drawn, [again.bytes(), again.bytes()]);
            assert!(drawn.into_iter().all(|bytes| all.insert(bytes)));
        }
    }

    #[test]
    fn choices_are_uniform_over_agents_events_and_draws() {
        let mut counts = [0u32; 10];
        for (agent, event) in (0..3000u32).map(|k| (k % 50, u64::from(k / 50))) {
            let mut secrets = Secrets::simulated(7, agent, event);
            (0..4).for_each(|_| counts[secrets.below(10)] += 1);
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 1200.0).powi(2) / 1200.0).sum();
        assert!(chi2 < 27.9, "chi-square {chi2} with 9 degrees of freedom, bound at 1e-3");
        let mut entropy = Entropy::beside(&mut Secret::from_os().expect("entropy"), 7, 1);
        assert!((0..100).all(|_| Secrets::of(&mut entropy).below(3) < 3));
    }

    #[test]
    fn a_real_peers_secrets_never_repeat_and_a_simulated_ones_do() {
        let draw = |noise: &mut dyn Noise| Secrets::of(&mut Entropy::beside(noise, 7, 1)).bytes::<32>();
        let mut entropy = Entropy::beside(&mut Secret::from_os().expect("entropy"), 7, 1);
        assert!(Secrets::of(&mut entropy).simulation().is_none(), "a real peer is no simulation");
        assert!(Secrets::simulated(7, 1, 0).simulation().is_some());
        let secret = || draw(&mut Secret::from_os().expect("entropy"));
        assert_ne!(secret(), secret());
        let idealized = || draw(&mut Simulated::Idealized(Idealized::new(7, 1)));
        assert_eq!(idealized(), idealized());
        assert_eq!(draw(&mut Exact::seeded(1, 0)), draw(&mut Exact::seeded(1, 0)));
        assert_ne!(draw(&mut Exact::seeded(1, 0)), draw(&mut Exact::seeded(2, 0)));
    }
}
