//! How contributions to a token that may be issued again are spaced, and what noise hides them then. Proof: `proofs/network-reissued.md`.

use crate::Event;

/// How far a member's contributions to a token that may be issued again are apart, and what follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing(u64);

impl Spacing {
    /// For so many members and hops of one token: a guess that leaves most visits a contribution, and makes fresh noise no louder than all hops' together. None where the
    /// walk is shorter than that.
    pub fn of(agents: u64, hops: u64) -> Option<Spacing> {
        let as_loud = (3.0 * hops as f64).sqrt() as u64;
        let spacing = as_loud.min(agents / 4).max(2);
        (spacing <= hops).then_some(Spacing(spacing))
    }

    /// Hops from one contribution to the next, and from the last one to the end, at least.
    pub fn hops(self) -> u64 {
        self.0
    }

    /// The law of fresh noise, for that of a hop: f times its variance.
    pub fn fresh(self, law: Event) -> Event {
        scaled(law, self.0 as f64 / 3f64.sqrt())
    }

    /// The law by which each contribution may be seen whatever the path, for that of a hop.
    pub fn again(self, law: Event) -> Event {
        scaled(law, 1.0 / self.cost(self.0).sqrt())
    }

    /// mu^2 of a contribution that an observer holds the token g hops after, in units of that of one noise.
    pub(super) fn cost(self, g: u64) -> f64 {
        let (g, spacing) = (g.min(self.0) as f64, self.0 as f64);
        1.0 / g + (g - 1.0) * (2.0 * g - 1.0) / (2.0 * g * spacing * spacing)
    }
}

fn scaled(law: Event, by: f64) -> Event {
    match law {
        Event::Gaussian { noise_multiplier } => Event::Gaussian { noise_multiplier: noise_multiplier * by },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAUSSIAN: Event = Event::Gaussian { noise_multiplier: 5.0 };

    #[test]
    fn the_spacing_is_within_the_walk_and_leaves_most_visits_a_contribution() {
        for (agents, hops, expected) in [(2000, 20_000, 244), (40, 400, 10), (20, 200, 5), (5, 20, 2), (3, 2, 2)] {
            assert_eq!(Spacing::of(agents, hops).map(Spacing::hops), Some(expected), "{agents} {hops}");
        }
        assert_eq!(Spacing::of(100, 1), None);
    }

    /// The cheapest way for the noises of g hops, and the fresh noise after each but the last, to make up for a change: z falls from 1 to 0, each hop's noise by its fall, fresh noise by what is left.
    #[test]
    fn the_cost_is_that_of_falling_evenly_and_no_more_than_once_for_the_whole_noise() {
        let spacing = Spacing::of(200, 2000).expect("long enough");
        let f = spacing.hops() as f64 * spacing.hops() as f64 / 3.0;
        for g in 1..=spacing.hops() {
            let left = |j: u64| 1.0 - j as f64 / g as f64;
            let direct: f64 = (1..=g)
                .map(|j| {
                    let fall = left(j - 1) - left(j);
                    fall * fall + left(j) * left(j) / f
                })
                .sum();
            assert!((spacing.cost(g) - direct).abs() < 1e-12, "{g}: {direct}");
            assert!(g == 1 || spacing.cost(g) < spacing.cost(g - 1), "{g}: later is less");
        }
        assert_eq!((spacing.cost(1), spacing.cost(1000)), (1.0, spacing.cost(spacing.hops())));
        let Event::Gaussian { noise_multiplier: again } = spacing.again(GAUSSIAN) else { panic!("Gaussian") };
        assert!((25.0 / (again * again) - spacing.cost(1000)).abs() < 1e-12);
        let Event::Gaussian { noise_multiplier: fresh } = spacing.fresh(GAUSSIAN) else { panic!("Gaussian") };
        assert!((fresh * fresh / 25.0 - f).abs() < 1e-9);
    }
}
