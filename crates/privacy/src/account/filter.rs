//! A limit on everything that will ever be told about a record, kept while tasks are chosen by what earlier ones said. Proof:
//! `proofs/odometer.md`.
//!
//! The order alpha = 1 + s is fixed when the limit is, from the limit alone. With K(s) = ln E e^{sL} added up over all charges, the
//! limit (epsilon, delta) is kept as long as
//! ```text
//! K(s) <= s (epsilon + ln((1 + s) / s)) + ln delta + ln(1 + s)
//! ```
//! which is the conversion of [`super::Rdp`] read backwards. With delta = 0 the order is infinite, and the pure epsilons are added up.

use super::{loss::Losses, settled};
use crate::round::widen;
use crate::{Event, Ledger};
use thiserror::Error;

/// A relative margin for the rounding of the right-hand side.
const MARGIN: f64 = 1e-14;

/// A privacy filter: it says whether charges keep a limit, also when each was chosen after seeing what the ones before it let out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    epsilon: f64,
    delta: f64,
    /// s = alpha - 1; infinite where delta is 0.
    order: f64,
}

/// A limit that is none.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("a limit of epsilon = {epsilon} at delta = {delta}; accepted: an epsilon above 0, a delta from 0 to below 1")]
pub struct BadLimit {
    /// As it was given.
    pub epsilon: f64,
    /// As it was given.
    pub delta: f64,
}

impl Filter {
    /// The filter of a limit. Its order is the one at which Gaussian noise may be used most.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, BadLimit> {
        let filter = Filter { epsilon, delta, order: f64::INFINITY };
        if !(epsilon.is_finite() && epsilon > 0.0 && (0.0..1.0).contains(&delta)) {
            return Err(BadLimit { epsilon, delta });
        }
        if delta == 0.0 {
            return Ok(filter);
        }
        // From s = 1e-13 to 1e13. K(s) = rho s (s + 1) for Gaussian noise, so capacity / (s (s + 1)) is how much rho may become.
        let orders = (-600..=600).map(|k| libm::exp(0.05 * f64::from(k)));
        let best = orders
            .map(|order| Filter { order, ..filter })
            .max_by(|a, b| a.gaussian_capacity().total_cmp(&b.gaussian_capacity()));
        best.filter(|best| best.capacity() > 0.0).ok_or(BadLimit { epsilon, delta })
    }

    /// The filter of a limit whose order was fixed before, as [`Filter::order`] told it.
    pub fn with_order(epsilon: f64, delta: f64, order: f64) -> Result<Self, BadLimit> {
        Filter::new(epsilon, delta)?;
        let filter = Filter { epsilon, delta, order };
        let fits = order > 0.0 && (order == f64::INFINITY) == (delta == 0.0) && filter.capacity() > 0.0;
        if fits { Ok(filter) } else { Err(BadLimit { epsilon, delta }) }
    }

    /// The limit.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The limit.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The order of the divergence, less 1; infinity where delta is 0.
    pub fn order(&self) -> f64 {
        self.order
    }

    /// Whether these charges all together keep the limit.
    pub fn allows(&self, ledger: &Ledger) -> bool {
        // PRIVACY: the cost is rounded up and the capacity down, so charges that are allowed keep the limit in exact arithmetic.
        self.cost(ledger) <= self.capacity()
    }

    /// The share of the limit that charges use, rounded up; above 1 for what is not allowed.
    pub fn used(&self, ledger: &Ledger) -> f64 {
        widen(self.cost(ledger) / self.capacity(), 1e-15)
    }

    /// K(s), rounded up.
    fn cost(&self, ledger: &Ledger) -> f64 {
        if let Some(cost) = settled(ledger) {
            return cost;
        }
        let losses = Losses::of(ledger);
        if self.order == f64::INFINITY {
            return losses.largest();
        }
        let cost = losses.log_moment(self.order) + losses.log_moment_error(self.order);
        if cost.is_nan() { f64::INFINITY } else { cost }
    }

    /// The largest K(s) that keeps the limit, rounded down.
    fn capacity(&self) -> f64 {
        let Filter { epsilon, delta, order: s } = *self;
        if s == f64::INFINITY {
            return epsilon;
        }
        let terms = [s * epsilon, s * libm::log1p(1.0 / s), libm::log(delta), libm::log1p(s)];
        let size: f64 = terms.iter().map(|term| term.abs()).sum();
        terms.iter().sum::<f64>() - MARGIN * size
    }

    fn gaussian_capacity(&self) -> f64 {
        self.capacity() / (self.order * (self.order + 1.0))
    }
}

/// The least epsilon, to a relative 1e-9, at which a limit that had been fixed beforehand would have allowed these charges.
pub fn least_limit(ledger: &Ledger, delta: f64) -> f64 {
    if let Some(epsilon) = settled(ledger) {
        return epsilon;
    }
    let allows = |epsilon: f64| Filter::new(epsilon, delta).is_ok_and(|filter| filter.allows(ledger));
    let (mut low, mut high) = (1e-12, 1.0);
    while !allows(high) {
        (low, high) = (high, 2.0 * high);
        if high > 1e12 {
            return f64::INFINITY;
        }
    }
    while high - low > 1e-9 * high {
        let middle = low + 0.5 * (high - low);
        if allows(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

impl Event {
    /// The same release as it looks to somebody of whom `rows` records are in the data: all of them may be replaced at once, so
    /// the value moves `rows` times as far, in any norm.
    pub fn for_rows(self, rows: u64) -> Event {
        let times = rows as f64;
        // Rounded down: a smaller multiplier is a larger charge.
        let less = |noise_multiplier: f64| (noise_multiplier / times).next_down().max(f64::MIN_POSITIVE);
        match self {
            _ if rows == 1 => self,
            Event::Reveal => Event::Reveal,
            Event::Laplace { noise_multiplier } => Event::Laplace { noise_multiplier: less(noise_multiplier) },
            Event::Gaussian { noise_multiplier } => Event::Gaussian { noise_multiplier: less(noise_multiplier) },
            Event::GammaNorm { noise_multiplier } => Event::GammaNorm { noise_multiplier: less(noise_multiplier) },
            Event::RandomizedResponse { epsilon } => {
                Event::RandomizedResponse { epsilon: (epsilon * times).next_up().min(f64::MAX) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accountant, Charge, Rdp, Tight};

    fn ledger(charges: &[(Event, u64)]) -> Ledger {
        Ledger::from_charges(charges.iter().map(|&(event, count)| Charge::new(event, count))).expect("valid")
    }

    #[test]
    fn what_a_filter_allows_keeps_its_limit_by_the_accountant_of_the_same_theorem() {
        let gaussian = |noise_multiplier: f64| Event::Gaussian { noise_multiplier };
        for (epsilon, delta) in [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3), (50.0, 1e-12)] {
            let filter = Filter::new(epsilon, delta).expect("a limit");
            let most = (1..100_000).take_while(|&count| filter.allows(&ledger(&[(gaussian(60.0 / epsilon), count)])));
            let most = most.last().expect("one at least");
            let full = ledger(&[(gaussian(60.0 / epsilon), most)]);
            let best = Rdp.epsilon(&full, delta);
            // The order is the best one for a limit that is used up by Gaussian noise.
            assert!(best <= epsilon && best > 0.95 * epsilon, "{epsilon} {delta}: {most} come to {best}");
            assert!(filter.used(&full) <= 1.0 && filter.used(&full) > 0.95);
            assert!(least_limit(&full, delta) <= epsilon * (1.0 + 1e-6) && Tight.epsilon(&full, delta) <= epsilon);
        }
    }

    #[test]
    fn without_delta_pure_epsilons_are_added_up() {
        let filter = Filter::new(1.0, 0.0).expect("a limit");
        let laplace = Event::Laplace { noise_multiplier: 8.0 };
        assert!(filter.allows(&ledger(&[(laplace, 8)])) && !filter.allows(&ledger(&[(laplace, 9)])));
        assert!(!filter.allows(&ledger(&[(Event::Gaussian { noise_multiplier: 1e6 }, 1)])));
        assert!((least_limit(&ledger(&[(laplace, 8)]), 0.0) - 1.0).abs() < 1e-8);
    }

    #[test]
    fn an_exact_value_is_never_allowed_and_nothing_always_is() {
        for delta in [0.0, 1e-6, 0.5] {
            let filter = Filter::new(1e6, delta).expect("a limit");
            assert!(!filter.allows(&ledger(&[(Event::Reveal, 1)])) && filter.allows(&Ledger::default()));
            assert_eq!(least_limit(&ledger(&[(Event::Reveal, 1)]), delta), f64::INFINITY);
        }
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for (epsilon, delta) in
            [(0.0, 0.1), (-1.0, 0.1), (f64::NAN, 0.1), (f64::INFINITY, 0.1), (1.0, 1.0), (1.0, -0.1)]
        {
            assert!(Filter::new(epsilon, delta).is_err(), "{epsilon} {delta}");
        }
        let order = Filter::new(1.0, 1e-6).expect("a limit").order();
        assert!(Filter::with_order(1.0, 1e-6, order).is_ok());
        for order in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
            assert!(Filter::with_order(1.0, 1e-6, order).is_err(), "{order}");
        }
    }

    /// Randomized response of the strength that an adversary chooses after each answer, by a rule drawn at random, as long as the
    /// filter allows: over all answers, the exact delta at the limit's epsilon is at most the limit's.
    #[test]
    fn strengths_chosen_after_each_answer_never_break_the_limit() {
        let mut state = 1u64;
        let mut coin = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let mut largest = 0.0f64;
        for (epsilon, delta) in [(1.0, 0.05), (0.5, 0.2), (3.0, 0.01), (2.0, 0.0)] {
            let filter = Filter::new(epsilon, delta).expect("a limit");
            for _ in 0..40 {
                // The adversary gains by strong questions when it is ahead, and may do anything.
                let greed = coin();
                let found = exact_delta(&filter, &mut Vec::new(), 1.0, 1.0, greed, &mut coin);
                assert!(found <= delta + 1e-12, "{epsilon} {delta}: {found}");
                largest = largest.max(if delta > 0.0 { found / delta } else { 0.0 });
            }
        }
        assert!(largest > 0.01, "adversaries that try: {largest}");
    }

    /// sum over transcripts of (P - e^epsilon Q)_+, where the next strength is drawn anew in each branch.
    fn exact_delta(
        filter: &Filter,
        past: &mut Vec<(Event, u64)>,
        p: f64,
        q: f64,
        greed: f64,
        coin: &mut impl FnMut() -> f64,
    ) -> f64 {
        let ahead = if p > q { 1.0 + greed } else { 0.5 };
        let strength = ahead * filter.epsilon() * (0.02 + 0.6 * coin());
        past.push((Event::RandomizedResponse { epsilon: strength }, 1));
        let allowed = past.len() <= 9 && filter.allows(&ledger(past));
        let found = if allowed {
            let truth = 1.0 / (1.0 + libm::exp(-strength));
            exact_delta(filter, past, p * truth, q * (1.0 - truth), greed, coin)
                + exact_delta(filter, past, p * (1.0 - truth), q * truth, greed, coin)
        } else {
            (p - libm::exp(filter.epsilon()) * q).max(0.0)
        };
        past.pop();
        found
    }

    #[test]
    fn many_rows_of_one_record_cost_as_one_row_that_moves_as_far() {
        let charge = |event: Event, rows| ledger(&[(event.for_rows(rows), 1)]);
        let pure = Event::RandomizedResponse { epsilon: 0.5 };
        assert!((Tight.epsilon(&charge(pure, 3), 0.0) - 1.5).abs() < 1e-12);
        let gaussian = Event::Gaussian { noise_multiplier: 6.0 };
        let (three, direct) = (charge(gaussian, 3), ledger(&[(Event::Gaussian { noise_multiplier: 2.0 }, 1)]));
        assert!((Tight.epsilon(&three, 1e-6) - Tight.epsilon(&direct, 1e-6)).abs() < 1e-9);
        // Nine releases about one row cost what one about three rows does: the square counts, not the number of rows.
        let nine = ledger(&[(gaussian, 9)]);
        assert!((Tight.epsilon(&three, 1e-6) - Tight.epsilon(&nine, 1e-6)).abs() < 1e-9);
        assert_eq!(gaussian.for_rows(1), gaussian);
        assert_eq!(Event::Reveal.for_rows(7), Event::Reveal);
    }
}
