//! A walk whose token may be issued again, past a member that is gone. Proof: `proofs/network-reissued.md`.
//!
//! Holders keep what they have sent until it is safe, and any of them may send it once more, under fresh noise: so observers may see the token after every hop, that
//! much less clearly, besides whenever they hold it. A member's contributions are at least [`Spacing::hops`] hops apart, none of them in the last so many hops; then each costs for itself
//! ```text
//! c(g) = 1/g + (g-1)(2g-1) / (6 g f)        g the hops until an observer holds the token, at most the spacing G;  f = G^2 / 3 the variance of fresh noise over a hop's
//! ```
//! c(G) of it whatever the path, which is charged without amplification, and the rest with the probability of the path.

use super::convert::{self, Conversion, Moments};
use super::spacing::Spacing;
use super::walk::{KnownEpsilon, Observer, Walk};
use crate::account::{Accountant, within};
use crate::{Audience, Charge, Event, Ledger};

/// Privacy of one member's contributions to a token on the complete graph that may be issued again, as often as anybody likes, against observers who know every path.
///
/// # Privacy
/// Unit: all of one member's data. See `proofs/network-reissued.md`. Holds for steps as [`Iteration`](super::Iteration) has them, sums among them, with contributions and fresh noise as
/// [`Spacing`] says.
pub struct Reissued {
    walk: Walk,
    spacing: Spacing,
    known: KnownEpsilon,
}

impl Reissued {
    /// The accountant of a walk; none where its tokens are not issued again.
    pub fn new(walk: Walk) -> Option<Self> {
        Some(Reissued { walk, spacing: walk.spacing()?, known: KnownEpsilon::default() })
    }

    /// Whom its guarantee is against.
    pub fn observer(&self) -> Observer {
        self.walk.observer()
    }

    /// How contributions are spaced.
    pub fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// The epsilon at `delta` of contributions with this noise multiplier, sigma / sensitivity; rounds up.
    pub fn epsilon_at(&self, noise_multiplier: f64, delta: f64) -> f64 {
        convert::epsilon(self, noise_multiplier, within(delta), Conversion::Gaussian)
    }

    /// The least noise multiplier, to a relative 1e-6, with which [`Reissued::epsilon_at`] is at most `epsilon`; none outside of
    /// epsilon > 0 and 0 < delta < 1.
    pub fn noise_multiplier(&self, epsilon: f64, delta: f64) -> Option<f64> {
        convert::noise_multiplier(self, epsilon, delta, Conversion::Gaussian)
    }

    fn contributions(&self) -> f64 {
        (self.walk.contributions() * self.walk.tokens()) as f64
    }
}

impl Moments for Reissued {
    fn most(&self) -> f64 {
        self.contributions() * self.spacing.cost(1)
    }

    fn rough(&self, lambda: f64) -> f64 {
        self.log_moment(lambda)
    }

    /// K times ln E exp(lambda c(g)), g geometric: windows after contributions hold hops of their own.
    fn log_moment(&self, lambda: f64) -> f64 {
        let (_, r) = self.walk.visits();
        let (mut sum, mut unseen) = (0.0, 1.0);
        // Over c(G), which would else be all of it.
        let least = self.spacing.cost(self.spacing.hops());
        for g in 1..self.spacing.hops() {
            sum += unseen * r * libm::exp(lambda * (self.spacing.cost(g) - least));
            unseen *= 1.0 - r;
        }
        // Positive terms, each right to a few units of its last place times g.
        let rounding = 1e-15 * (10.0 + self.spacing.hops() as f64);
        let moment = lambda * least + libm::log((sum + unseen) * (1.0 + rounding));
        if moment.is_nan() { f64::INFINITY } else { self.contributions() * moment * (1.0 + 1e-14) }
    }
}

impl Accountant for Reissued {
    /// The least noise says which charges are contributions. With each of them there must be one that is at least as well hidden as [`Spacing::again`] says.
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        let noise = |charge: &Charge| match charge.event {
            Event::Gaussian { noise_multiplier } if charge.audience == Audience::OneMember => noise_multiplier,
            // No guarantee: less noise than any.
            _ => 0.0,
        };
        if ledger.releases() == 0 {
            return 0.0;
        }
        let least = ledger.charges().map(noise).fold(f64::INFINITY, f64::min);
        let due = match self.spacing.again(Event::Gaussian { noise_multiplier: least }) {
            Event::Gaussian { noise_multiplier } => noise_multiplier * (1.0 - 1e-12),
            _ => f64::INFINITY,
        };
        let again: u64 = ledger.charges().filter(|charge| noise(charge) >= due).map(|charge| charge.count).sum();
        let (made, most) = (ledger.releases() - again, self.contributions() as u64);
        match least > 0.0 && (made..=most).contains(&again) {
            true => self.known.or(least, delta, || self.epsilon_at(least, delta)),
            false => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Cycle, Iteration};
    use crate::{Plan, Track, gaussian_epsilon};

    const GAUSSIAN: Event = Event::Gaussian { noise_multiplier: 5.0 };

    fn walk(agents: u64, hops: u64, contributions: u64) -> Walk {
        Walk::new(agents, hops, contributions).and_then(Walk::with_reissues).expect("valid")
    }

    /// E exp(lambda X) of every path of a short walk in which the token is watched as closely as can be.
    #[test]
    fn the_moment_is_that_of_every_sequence_of_gaps() {
        let accountant = Reissued::new(walk(12, 50, 3)).expect("issued again");
        let (r, spacing) = (1.0 / 12.0, accountant.spacing);
        for lambda in [0.1, 1.0, 3.0] {
            // Gaps of three contributions one by one: 1, 2, .., G or more.
            let most = spacing.hops();
            let weight = |g: u64| {
                let before = (1..g).fold(1.0, |unseen, _| unseen * (1.0 - r));
                if g == most { before } else { before * r }
            };
            let mut sum = 0.0;
            for a in 1..=most {
                for b in 1..=most {
                    for c in 1..=most {
                        let cost: f64 = [a, b, c].iter().map(|g| spacing.cost(*g)).sum();
                        sum += weight(a) * weight(b) * weight(c) * libm::exp(lambda * cost);
                    }
                }
            }
            let found = accountant.log_moment(lambda);
            assert!(found >= libm::log(sum) && found < libm::log(sum) + 1e-9, "{lambda}: {found} {}", libm::log(sum));
        }
    }

    #[test]
    fn it_costs_more_than_a_walk_that_waits_and_less_than_locally() {
        for (agents, hops, contributions) in [(2000, 20_000, 12), (400, 4000, 12), (40, 400, 12)] {
            let walk = walk(agents, hops, contributions);
            let again = Reissued::new(walk).expect("issued again").noise_multiplier(1.0, 1e-6).expect("in reach");
            let waits = Iteration::new(walk).noise_multiplier(1.0, 1e-6).expect("in reach");
            let mu = (contributions as f64).sqrt() / again;
            assert!(again > waits && again < 2.5 * waits, "{agents}: {again} {waits}");
            assert!(gaussian_epsilon(mu, 1e-6) > 1.0, "{agents}: less noise than alone");
            let sums = Cycle::new(walk).noise_multiplier(1.0, 1e-6).expect("in reach");
            assert!(again > sums);
        }
    }

    #[test]
    fn it_grows_with_colluders_and_with_members_away_and_tokens_add_up() {
        let walk = walk(200, 2000, 12);
        let at = |walk| Reissued::new(walk).expect("issued again").epsilon_at(5.0, 1e-6);
        let one = at(walk);
        assert!(at(walk.with_colluders(5).expect("few")) > 1.1 * one);
        assert!(at(walk.with_present(0.5).expect("most")) > 1.02 * one);
        assert!(at(walk.with_tokens(2).expect("two")) > 1.2 * one);
    }

    #[test]
    fn a_ledger_counts_only_with_what_may_be_seen_whatever_the_path() {
        let accountant = Reissued::new(walk(40, 400, 12)).expect("issued again");
        let charge = |track, event, count| Charge { track, audience: Audience::OneMember, ..Charge::new(event, count) };
        let epsilon = |charges: Vec<Charge>| accountant.epsilon(&Ledger::from_charges(charges).expect("valid"), 1e-6);
        let again = accountant.spacing().again(GAUSSIAN);
        let found = epsilon(vec![charge(Track::Reissues, again, 3), charge(Track::Token, GAUSSIAN, 3)]);
        assert_eq!(found, accountant.epsilon_at(5.0, 1e-6), "for all that it may make");
        assert_eq!(epsilon(vec![]), 0.0);
        // A plan is counted by its events, whichever tracks they are on.
        let tracks = vec![(Track::Token, vec![GAUSSIAN; 12]), (Track::Reissues, vec![again; 12])];
        assert!(Plan::with_tracks(tracks.clone(), found, 1e-6, &accountant).is_ok());
        assert!(Plan::with_tracks(tracks, found * (1.0 - 1e-9), 1e-6, &accountant).is_err());
        let noise = accountant.noise_multiplier(1.0, 1e-6).expect("in reach");
        let law = Event::Gaussian { noise_multiplier: noise };
        let again_of = accountant.spacing().again(law);
        let tracks = vec![(Track::Token, vec![law; 12]), (Track::Reissues, vec![again_of; 12])];
        assert!(Plan::with_tracks(tracks, 1.0, 1e-6, &accountant).is_ok(), "what is calibrated is kept");
        assert!(epsilon(vec![charge(Track::Token, GAUSSIAN, 3)]).is_infinite());
        assert!(epsilon(vec![charge(Track::Reissues, GAUSSIAN, 3), charge(Track::Token, GAUSSIAN, 3)]).is_infinite());
        assert!(epsilon(vec![charge(Track::Reissues, again, 13), charge(Track::Token, GAUSSIAN, 13)]).is_infinite());
        let everyone = Charge { audience: Audience::Everyone, ..charge(Track::Reissues, again, 3) };
        assert!(epsilon(vec![everyone, charge(Track::Token, GAUSSIAN, 3)]).is_infinite());
    }
}
