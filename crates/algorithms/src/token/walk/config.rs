//! The hyper-parameters of a walk.

use sottovoce_core::DURABLE_WAITING_MAX;
use sottovoce_privacy::{Event, Track};
use thiserror::Error;

/// The least number of members: of two, each would see the other.
pub const MEMBERS_MIN: u32 = 3;

/// The most tokens at once: as many letters as may wait for one member.
pub const TOKENS_MAX: u32 = DURABLE_WAITING_MAX as u32;

/// Noise of more times the sensitivity than this is none that a task wants.
const NOISE_MAX: f64 = 1e6;

/// What a holder does beyond its bound on contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It adds noise: others rely on it.
    Noise,
    /// It passes the token on as it is: where each contribution has noise enough by itself.
    Untouched,
}

/// The hyper-parameters, the same for all agents.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | members | n | 3 and above | everyone |
/// | hops | T | 1 and above, of each token | the task's |
/// | tokens | | 1 to 64 | 1 |
/// | contributions | K_u | 1 and above, to each token; none without privacy | ceil(1.2 T / n) |
/// | law | sigma | Gaussian; none without privacy | the plan's |
/// | beyond | | noise, untouched | noise |
/// | track | | token; models, where each contribution has noise enough for everyone | token |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkConfig {
    /// How many members there are.
    pub members: u32,
    /// Hops of each token.
    pub hops: u64,
    /// How many tokens walk at once.
    pub tokens: u32,
    /// At how many visits of each token a member contributes.
    pub contributions: Option<u32>,
    /// How one contribution is protected.
    pub law: Option<Event>,
    /// What a holder does beyond its bound.
    pub beyond: Beyond,
    /// Where contributions are charged, which says whom their noise protects from.
    pub track: Track,
}

/// Why there is no such walk.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadWalk {
    /// Too few.
    #[error(
        "a walk over {0} members; accepted: {MEMBERS_MIN} and more, since of two each would see the other's values"
    )]
    Members(u32),
    /// No hop, or none for some token.
    #[error("a walk of no hops; accepted: 1 and more for each token")]
    Hops,
    /// None, or too many.
    #[error("{0} tokens at once; accepted: 1 to {TOKENS_MAX}")]
    Tokens(u32),
    /// No bound where there must be one.
    #[error("a private walk without a bound on contributions has no guarantee; accepted: 1 and more")]
    Contributions,
    /// A law that does not add up.
    #[error("noise of a law that does not add up along a walk; accepted: gaussian")]
    Law,
    /// More noise than anybody wants.
    #[error("noise of {0} times the sensitivity; accepted: at most {NOISE_MAX}, that is a larger epsilon")]
    Loud(f64),
}

impl WalkConfig {
    /// Refuses what no walk has.
    pub fn check(&self) -> Result<(), BadWalk> {
        let WalkConfig { members, hops, tokens, contributions, law, .. } = *self;
        if members < MEMBERS_MIN {
            return Err(BadWalk::Members(members));
        }
        if hops == 0 {
            return Err(BadWalk::Hops);
        }
        if !(1..=TOKENS_MAX).contains(&tokens) {
            return Err(BadWalk::Tokens(tokens));
        }
        match law {
            None => Ok(()),
            Some(_) if contributions == Some(0) => Err(BadWalk::Contributions),
            Some(Event::Gaussian { noise_multiplier }) if noise_multiplier > NOISE_MAX => {
                Err(BadWalk::Loud(noise_multiplier))
            }
            Some(Event::Gaussian { .. }) => Ok(()),
            Some(_) => Err(BadWalk::Law),
        }
    }

    /// How many of all hops are contributions, on average: n E min(visits, K) for each token.
    pub fn contributions_expected(&self) -> f64 {
        let (n, hops) = (f64::from(self.members), self.hops as f64);
        let Some(most) = self.contributions.filter(|_| self.law.is_some()) else {
            return hops * f64::from(self.tokens);
        };
        // E min(N, K) = sum over k < K of P(N > k), N ~ Bin(T, 1/n), by its masses one after another.
        let odds = 1.0 / (n - 1.0);
        let mut log_mass = hops * libm::log1p(-1.0 / n);
        let (mut below, mut sum) = (0.0, 0.0);
        for k in 0..most.min(self.hops.min(u64::from(u32::MAX)) as u32) {
            below += libm::exp(log_mass);
            sum += (1.0 - below).max(0.0);
            let k = f64::from(k);
            log_mass += libm::log((hops - k) / (k + 1.0) * odds);
        }
        n * sum * f64::from(self.tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: WalkConfig = WalkConfig {
        members: 10,
        hops: 100,
        tokens: 1,
        contributions: Some(12),
        law: Some(Event::Gaussian { noise_multiplier: 2.0 }),
        beyond: Beyond::Noise,
        track: Track::Token,
    };

    #[test]
    fn what_no_walk_has_is_refused_in_words() {
        assert_eq!(FINE.check(), Ok(()));
        let refused = [
            (WalkConfig { members: 2, ..FINE }, "2 members"),
            (WalkConfig { hops: 0, ..FINE }, "no hops"),
            (WalkConfig { tokens: 0, ..FINE }, "1 to 64"),
            (WalkConfig { tokens: 65, ..FINE }, "1 to 64"),
            (WalkConfig { contributions: Some(0), ..FINE }, "without a bound"),
            (WalkConfig { law: Some(Event::Laplace { noise_multiplier: 1.0 }), ..FINE }, "accepted: gaussian"),
            (WalkConfig { law: Some(Event::Gaussian { noise_multiplier: 1e9 }), ..FINE }, "a larger epsilon"),
        ];
        for (config, says) in refused {
            let error = config.check().expect_err("refused").to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn expected_contributions_are_hops_less_those_beyond_the_bound() {
        assert_eq!(WalkConfig { law: None, ..FINE }.contributions_expected(), 100.0);
        let all = WalkConfig { contributions: Some(100), ..FINE }.contributions_expected();
        assert!((all - 100.0).abs() < 1e-9, "{all}");
        // One visit at most: n (1 - (1 - 1/n)^T).
        let one = WalkConfig { contributions: Some(1), hops: 3, ..FINE }.contributions_expected();
        assert!((one - 10.0 * (1.0 - 0.9 * 0.9 * 0.9)).abs() < 1e-12, "{one}");
        let twelve = FINE.contributions_expected();
        assert!(twelve > 90.0 && twelve < 97.0, "{twelve}");
        assert_eq!(WalkConfig { tokens: 2, ..FINE }.contributions_expected(), 2.0 * twelve);
    }
}
