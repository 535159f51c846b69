//! The hyper-parameters of a walk.

use sottovoce_core::DURABLE_WAITING_MAX;
use sottovoce_privacy::network::Spacing;
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
/// | timeout | | above zero, in wake intervals; none: nobody is passed over | a guess: 10 |
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
    /// After this time without a word from whom it handed a token a holder passes it over; none: the token waits for whoever has it.
    pub timeout: Option<f64>,
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
    /// Not a time.
    #[error("a time-out of {0}; accepted: a finite number above zero")]
    Timeout(f64),
    /// Nobody could contribute.
    #[error("a walk of {0} hops whose token may be issued again; accepted: 2 and more, or no reissues")]
    Short(u64),
    /// What is passed over on a graph.
    #[error(
        "a walk along the edges of a graph whose token may be issued again; accepted: no reissues, since their paths are not accounted for"
    )]
    Passed,
    /// Not the members' graph.
    #[error(
        "a walk along the edges of a graph that does not connect its members; accepted: a connected graph of all of them"
    )]
    Cut,
}

impl WalkConfig {
    /// Refuses what no walk has.
    pub fn check(&self) -> Result<(), BadWalk> {
        let WalkConfig { members, hops, tokens, contributions, law, timeout, .. } = *self;
        if members < MEMBERS_MIN {
            return Err(BadWalk::Members(members));
        }
        if hops == 0 {
            return Err(BadWalk::Hops);
        }
        if !(1..=TOKENS_MAX).contains(&tokens) {
            return Err(BadWalk::Tokens(tokens));
        }
        if let Some(timeout) = timeout.filter(|timeout| !(timeout.is_finite() && *timeout > 0.0)) {
            return Err(BadWalk::Timeout(timeout));
        }
        if self.hides_reissues() && self.spacing().is_none() {
            return Err(BadWalk::Short(hops));
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

    /// Whether a token that is issued again needs noise of its own: not where there is none, nor where each contribution has enough for everyone.
    fn hides_reissues(&self) -> bool {
        self.timeout.is_some() && self.law.is_some() && self.track == Track::Token
    }

    /// How contributions are spaced where tokens may be issued again under noise.
    pub fn spacing(&self) -> Option<Spacing> {
        Spacing::of(self.members.into(), self.hops).filter(|_| self.hides_reissues())
    }

    /// The law of a reissued token's own noise.
    pub(super) fn fresh(&self) -> Option<Event> {
        self.spacing().zip(self.law).map(|(spacing, law)| spacing.fresh(law))
    }

    /// Whether a member that has contributed `last` at this hop, or never, may contribute at another.
    pub fn is_spaced(&self, last: Option<u64>, hop: u64) -> bool {
        self.spacing().is_none_or(|spacing| {
            let apart = spacing.hops();
            hop + apart <= self.hops + 1 && last.is_none_or(|last| hop >= last.saturating_add(apart))
        })
    }

    /// How many of all hops are contributions, on average and when no token is issued again: n E min(visits, K) for each token.
    pub fn contributions_expected(&self) -> f64 {
        let (n, hops) = (f64::from(self.members), self.hops as f64);
        let Some(most) = self.contributions.filter(|_| self.law.is_some()) else {
            return hops * f64::from(self.tokens);
        };
        // Contributions are at least this far apart, and from the end.
        let apart = self.spacing().map_or(0.0, |spacing| spacing.hops() as f64 - 1.0);
        let mut sum = 0.0;
        for k in 0..most.min(self.hops.min(u64::from(u32::MAX)) as u32) {
            // The next one comes in time if k + 1 visits do in the hops that are left: P(Bin(T', 1/n) > k).
            let more = more_than(f64::from(k), hops - apart * (f64::from(k) + 1.0), n);
            sum += more;
            if more < 1e-12 {
                break;
            }
        }
        n * sum * f64::from(self.tokens)
    }
}

/// P(Bin(hops, 1/n) > k), by its masses from where they count on.
fn more_than(k: f64, hops: f64, n: f64) -> f64 {
    if hops <= k {
        return 0.0;
    }
    let (mean, deviation) = (hops / n, libm::sqrt(hops / n));
    let first = libm::floor(mean - 12.0 * deviation - 10.0).max(0.0);
    let choices = libm::lgamma(hops + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(hops - first + 1.0);
    let mut log_mass = choices - first * libm::log(n) + (hops - first) * libm::log1p(-1.0 / n);
    let (odds, mut below, mut j) = (1.0 / (n - 1.0), 0.0, first);
    while j <= k {
        below += libm::exp(log_mass);
        log_mass += libm::log((hops - j) / (j + 1.0) * odds);
        j += 1.0;
    }
    (1.0 - below).max(0.0)
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
        timeout: None,
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
            (WalkConfig { timeout: Some(0.0), ..FINE }, "a time-out of 0"),
            (WalkConfig { timeout: Some(1.0), hops: 1, ..FINE }, "2 and more, or no reissues"),
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
        // Spaced by two hops, one contribution at most: a visit in the first two of three hops.
        let spaced = WalkConfig { contributions: Some(1), hops: 3, timeout: Some(1.0), ..FINE };
        let found = spaced.contributions_expected();
        assert!((found - 10.0 * (1.0 - 0.9 * 0.9)).abs() < 1e-12, "{found}");
    }

    #[test]
    fn contributions_are_spaced_only_where_a_reissue_must_be_hidden() {
        let spaced = WalkConfig { members: 40, hops: 400, timeout: Some(1.0), ..FINE };
        assert_eq!(spaced.spacing().map(|spacing| spacing.hops()), Some(10));
        assert!(spaced.is_spaced(None, 391) && !spaced.is_spaced(None, 392), "not in the last ten hops");
        assert!(spaced.is_spaced(Some(20), 30) && !spaced.is_spaced(Some(20), 29) && !spaced.is_spaced(Some(20), 3));
        for free in [
            WalkConfig { timeout: None, ..spaced },
            WalkConfig { law: None, ..spaced },
            WalkConfig { track: Track::Models, ..spaced },
        ] {
            assert!(free.spacing().is_none() && free.fresh().is_none() && free.is_spaced(Some(20), 3));
        }
    }
}
