//! Accountants of walks against every path of small ones.

use super::super::staircase::staircase;
use super::*;
use crate::account::{Gaussian, Rdp, gaussian_delta};
use crate::{Audience, Charge, Event};

/// A walk with any probabilities of small denominators, also where everyone else observes.
fn small(agents: u64, colluders: u64, hops: u64, contributions: u64) -> Walk {
    Walk { agents, hops, contributions, colluders, present: 1.0, told_outcome: true, tokens: 1, reissued: false }
}

const LAMBDAS: [f64; 3] = [0.1, 1.0, 2.5];

/// E exp(lambda X) over every path.
fn every_moment(walk: &Walk) -> [f64; 3] {
    let mut sums = [0.0; 3];
    every_path(walk, |probability, cost| {
        for (sum, lambda) in sums.iter_mut().zip(LAMBDAS) {
            *sum += probability * libm::exp(lambda * cost);
        }
    });
    sums
}

/// The probability of every path and its X: each hop is the member's, an observer's or another's.
fn every_path(walk: &Walk, each: impl FnMut(f64, f64)) {
    let members = walk.agents as f64;
    every_path_with(walk, |_| members, each);
}

/// The same where so many members are present at each hop.
fn every_path_with(walk: &Walk, members: impl Fn(u64) -> f64, mut each: impl FnMut(f64, f64)) {
    for code in 0..3u64.pow(walk.hops as u32) {
        let (mut rest, mut probability, mut made) = (code, 1.0, 0);
        let (mut cycle, mut length, mut cost) = (Vec::new(), 0, 0.0);
        for hop in 0..walk.hops {
            let (p, r) = (1.0 / members(hop), walk.colluders as f64 / members(hop));
            match rest % 3 {
                0 => {
                    probability *= p;
                    length += 1;
                    if made < walk.contributions {
                        cycle.push(length);
                        made += 1;
                    }
                }
                1 => {
                    probability *= r;
                    cost += staircase(&cycle, length);
                    (cycle, length) = (Vec::new(), 0);
                }
                _ => {
                    probability *= 1.0 - p - r;
                    length += 1;
                }
            }
            rest /= 3;
        }
        if walk.told_outcome {
            cost += staircase(&cycle, length);
        }
        each(probability, cost);
    }
}

/// What is claimed, against the exact mixture over paths, which is what a claim is about.
#[test]
fn the_exact_mixture_over_every_path_keeps_what_is_claimed() {
    for (agents, colluders, hops, contributions) in [(3, 1, 8, 3), (6, 2, 8, 2), (5, 1, 9, 9), (9, 1, 7, 1)] {
        for told_outcome in [true, false] {
            let walk = Walk { told_outcome, ..small(agents, colluders, hops, contributions) };
            let accountant = Iteration::new(walk);
            for (s, delta) in [(0.6, 1e-3), (1.5, 1e-6), (4.0, 0.01), (4.0, 1e-9)] {
                let (claimed, renyi) = (accountant.epsilon_at(s, delta), accountant.epsilon_by_renyi(s, delta));
                let mut exact = 0.0;
                every_path(&walk, |probability, cost| {
                    exact += if cost > 0.0 { probability * gaussian_delta(cost.sqrt() / s, claimed) } else { 0.0 };
                });
                assert!(exact <= delta, "{walk:?} {s}: {exact} at {claimed}, claimed {delta}");
                assert!(claimed == 0.0 || exact > 0.05 * delta, "{walk:?} {s}: {exact} far below {delta}");
                assert!(renyi >= claimed * (1.0 - 1e-6), "{walk:?} {s} {delta}: {renyi} below {claimed}");
            }
        }
    }
}

#[test]
fn the_sum_over_paths_is_that_of_every_path_and_never_below() {
    for (agents, colluders, hops) in [(3, 1, 8), (5, 1, 9), (4, 2, 8), (7, 1, 8), (2, 1, 6)] {
        for contributions in [1, 2, 3, 5, hops] {
            for told in [true, false] {
                let mut walk = small(agents, colluders, hops, contributions);
                walk.told_outcome = told;
                let accountant = Iteration::new(walk);
                for (lambda, truth) in LAMBDAS.into_iter().zip(every_moment(&walk).map(libm::log)) {
                    let found = accountant.faces.as_ref().expect("small").log_moment(lambda);
                    assert!(found >= truth - 1e-12, "{walk:?} {lambda}: {found} below {truth}");
                    // Exact where every visit contributes, or one does, but for what wraps around, which is more where each further hop
                    // multiplies the sum; else what follows the last contribution stands in any place.
                    let slack = if contributions == 1 || contributions == hops { 1e-6 } else { 0.15 };
                    let wrapped = if lambda > 2.0 { 1e-3 } else { 1e-6 };
                    assert!(found <= truth * (1.0 + slack) + wrapped, "{walk:?} {lambda}: {found} far above {truth}");
                    let endless = accountant.endless(lambda);
                    assert!(endless >= truth - 1e-12, "{walk:?} {lambda}: {endless} below {truth}");
                }
            }
        }
    }
}

#[test]
fn members_who_come_and_go_are_within_the_bound_for_the_least_number_of_them() {
    // All of 12 are there, or a quarter of them, by turns of several kinds.
    let schedules: [fn(u64) -> bool; 5] = [|_| true, |hop| hop % 2 == 0, |hop| hop > 5, |hop| hop < 3, |hop| hop == 4];
    for contributions in [1, 2, 4] {
        let walk = Walk { present: 0.25, ..small(12, 1, 8, contributions) };
        let accountant = Iteration::new(walk);
        for is_thin in schedules {
            let mut sums = [0.0; 3];
            let members = |hop| if is_thin(hop) { 3.0 } else { 12.0 };
            every_path_with(&walk, members, |probability, cost| {
                sums.iter_mut().zip(LAMBDAS).for_each(|(sum, lambda)| *sum += probability * libm::exp(lambda * cost));
            });
            for (lambda, truth) in LAMBDAS.into_iter().zip(sums.map(libm::log)) {
                let found = accountant.log_moment(lambda);
                assert!(found >= truth, "{contributions} {lambda}: {found} below {truth}");
            }
        }
    }
}

/// CHECK 05.h: where every contribution is seen at once, the cost is that of plain Gaussian composition.
#[test]
fn check_05_h_at_a_visit_probability_of_one_it_is_plain_composition() {
    for (agents, contributions) in [(1_000_000_000, 12), (1_000_000, 3)] {
        let accountant = Iteration::new(small(agents, agents - 1, 100 * agents * contributions, contributions));
        for lambda in [1e-3, 0.3, 4.0] {
            let plain = lambda * contributions as f64;
            let found = accountant.log_moment(lambda);
            assert!(found >= plain && found < plain + 1e-8, "{agents} {lambda}: {found} {plain}");
        }
        for noise_multiplier in [0.5, 3.0, 20.0] {
            let charge = Charge::new(Event::Gaussian { noise_multiplier }, contributions);
            let ledger = Ledger::from_charges([charge]).expect("valid");
            let (exact, renyi) = (Gaussian.epsilon(&ledger, 1e-6), Rdp.epsilon(&ledger, 1e-6));
            let to_members = Ledger::from_charges([Charge { audience: Audience::OneMember, ..charge }]).expect("valid");
            assert_eq!(accountant.epsilon(&to_members, 1e-6), exact, "{agents} {noise_multiplier}");
            let ours = accountant.epsilon_by_renyi(noise_multiplier, 1e-6);
            assert!(ours >= exact && ours <= renyi * (1.0 + 1e-5), "{agents} {noise_multiplier}: {ours} {renyi}");
        }
    }
    // Where members' own later visits, noise alone, still come between, a little is gained on the last contribution and no more.
    let accountant = Iteration::new(small(10, 9, 1000, 12));
    let found = accountant.log_moment(1.0);
    assert!(found < 12.0 && found > 11.9, "{found}");
}

/// CHECK 05.i: more members, more noise or more delta never cost more; more hops, contributions or colluders never less.
#[test]
fn check_05_i_it_is_monotone() {
    let at = |agents: u64, hops: u64, contributions: u64, colluders: u64| {
        let walk = Walk::new(agents, hops, contributions).and_then(|walk| walk.with_colluders(colluders));
        Iteration::new(walk.expect("valid"))
    };
    let not_above = |less: f64, more: f64, what: &str| {
        assert!(less <= more * (1.0 + 1e-6), "{what}: {less} above {more}");
    };
    let here = at(100, 500, 6, 1);
    for (s, delta) in [(0.7, 1e-6), (2.0, 1e-4), (6.0, 1e-6)] {
        let epsilon = here.epsilon_at(s, delta);
        not_above(epsilon, here.epsilon_by_renyi(s, delta), "Gaussian paths");
        not_above(here.epsilon_at(1.02 * s, delta), epsilon, "noise");
        not_above(here.epsilon_at(s, 1.1 * delta), epsilon, "delta");
        not_above(at(110, 500, 6, 1).epsilon_at(s, delta), epsilon, "members");
        not_above(epsilon, at(100, 550, 6, 1).epsilon_at(s, delta), "hops");
        not_above(epsilon, at(100, 5_000_000, 6, 1).epsilon_at(s, delta), "hops without end");
        not_above(epsilon, at(100, 500, 7, 1).epsilon_at(s, delta), "contributions");
        not_above(epsilon, at(100, 500, 6, 2).epsilon_at(s, delta), "colluders");
    }
    let walk = Walk::new(100, 500, 6).expect("valid");
    let away = Iteration::new(walk.with_present(0.5).expect("valid")).epsilon_at(2.0, 1e-6);
    not_above(here.epsilon_at(2.0, 1e-6), away, "members away");
    not_above(at(50, 500, 6, 1).epsilon_at(2.0, 1e-6), away, "always half of them");
    not_above(Iteration::new(walk.untold()).epsilon_at(2.0, 1e-6), here.epsilon_at(2.0, 1e-6), "an outcome not told");
}

/// Spec 05 section 5: at most 3.02 and 0.445, where Monte Carlo of the joint cycle gives 3.004 and 0.436.
#[test]
fn the_noise_of_the_thesis_example_is_within_the_bar() {
    let accountant = Iteration::new(Walk::new(2000, 20_000, 12).expect("valid"));
    for (epsilon, bar, by_renyi, by_paths) in [(1.0, 3.02, 2.9997, 2.7147), (10.0, 0.445, 0.4388, 0.4061)] {
        let renyi = 0.8 * accountant.noise_multiplier_by_renyi(epsilon, 1e-6).expect("found");
        assert!(renyi <= bar && (renyi / by_renyi - 1.0).abs() < 1e-3, "epsilon {epsilon}: {renyi}");
        let multiplier = accountant.noise_multiplier(epsilon, 1e-6).expect("found");
        assert!((0.8 * multiplier / by_paths - 1.0).abs() < 1e-3, "epsilon {epsilon}: {}", 0.8 * multiplier);
        assert!(accountant.epsilon_at(multiplier, 1e-6) <= epsilon);
    }
}

#[test]
fn a_ledger_is_read_as_the_contributions_of_the_walk() {
    let accountant = Iteration::new(Walk::new(50, 300, 4).expect("valid"));
    let seen = |event, count, audience| {
        Ledger::from_charges([Charge { audience, ..Charge::new(event, count) }]).expect("valid")
    };
    let ledger = |event, count| seen(event, count, Audience::OneMember);
    let gaussian = Event::Gaussian { noise_multiplier: 2.0 };
    assert_eq!(accountant.epsilon(&seen(gaussian, 1, Audience::Everyone), 1e-5), f64::INFINITY, "others see it too");
    let full = accountant.epsilon(&ledger(gaussian, 4), 1e-5);
    assert_eq!(full, accountant.epsilon_at(2.0, 1e-5));
    assert_eq!(
        accountant.epsilon(&ledger(gaussian, 1), 1e-5),
        full,
        "what was planned counts, not what the path came to"
    );
    assert_eq!(accountant.epsilon(&ledger(gaussian, 5), 1e-5), f64::INFINITY, "more than the plan");
    assert_eq!(accountant.epsilon(&ledger(Event::Laplace { noise_multiplier: 2.0 }, 1), 1e-5), f64::INFINITY);
    assert_eq!(accountant.epsilon(&ledger(Event::Reveal, 1), 1e-5), f64::INFINITY);
    assert_eq!(accountant.epsilon(&Ledger::default(), 1e-5), 0.0);
    assert_eq!(accountant.epsilon(&ledger(gaussian, 4), 0.0), f64::INFINITY, "Gaussian noise needs a delta");
    assert_eq!(accountant.observer().to_string(), "any one other member, knowing the token's path, told the outcome");
}

/// The coefficients of z^0 .. z^T of a product.
fn times(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len()).map(|hop| (0..=hop).map(|k| a[k] * b[hop - k]).sum()).collect()
}

/// ln of the sum over paths that `Faces` reads off a circle, by the coefficients themselves: sums of positive numbers.
fn coefficient_by_coefficient(walk: &Walk, lambda: f64) -> f64 {
    let (p, r) = walk.visits();
    let (hops, most) = (walk.hops as usize, walk.contributions as usize);
    let stay = 1.0 - p - r;
    let series = |at: &dyn Fn(usize) -> f64| (0..=hops).map(at).collect::<Vec<f64>>();
    let sum = |parts: Vec<Vec<f64>>| series(&|hop| parts.iter().map(|part| part[hop]).sum());
    let cost = |b: usize, g: usize| libm::exp(lambda * (b * b) as f64 / g.max(b) as f64);
    let gap = series(&|g| if g == 0 { 0.0 } else { p * libm::pow(stay, g as f64 - 1.0) });
    let free = series(&|g| if g == 0 { 0.0 } else { p * libm::pow(1.0 - r, g as f64 - 1.0) });
    let mut gaps = vec![series(&|g| if g == 0 { 1.0 } else { 0.0 })];
    (1..=most).for_each(|b| gaps.push(times(&gaps[b - 1], &gap)));
    let face = |b: usize| series(&|g| gaps[b][g] * cost(b, g));
    let last_face = |b: usize| {
        let weights = times(&gaps[b - 1], &free);
        series(&|g| weights[g] * cost(b, g))
    };
    let mut cycles = vec![gaps[0].clone()];
    for k in 1..=most {
        let parts = sum((1..=k).map(|b| times(&face(b), &cycles[k - b])).collect());
        cycles.push(series(&|hop| parts[hop] / k as f64));
    }
    let idle = series(&|g| libm::pow(stay, g as f64));
    let whole: Vec<Vec<f64>> = cycles.iter().map(|cycle| times(cycle, &idle)).collect();
    let last = |k: usize| {
        let parts = sum((1..=k).map(|b| times(&last_face(b), &cycles[k - b])).collect());
        times(&series(&|hop| parts[hop] / k as f64), &idle)
    };
    // Sequences of whole cycles, each with a look after it: hop by hop, since the look is one.
    let mut between = vec![vec![0.0; hops + 1]; most + 1];
    between[0][0] = 1.0;
    for hop in 1..=hops {
        for k in 0..=most {
            let before = (0..=k).map(|j| (0..hop).map(|g| whole[j][g] * between[k - j][hop - 1 - g]).sum::<f64>());
            between[k][hop] += r * before.sum::<f64>();
        }
    }
    let fewer = (0..most).map(|k| (0..=k).map(|j| times(&whole[j], &between[k - j])[hops]).sum::<f64>()).sum::<f64>();
    let on = series(&|g| if g == 0 { 1.0 } else { r });
    libm::log(fewer + (1..=most).map(|k| times(&times(&last(k), &on), &between[most - k])[hops]).sum::<f64>())
}

/// Where the sum over paths is made by paths that hardly ever happen, the circle still does not lose them.
#[test]
fn what_is_read_off_a_circle_is_never_below_the_coefficient() {
    for (agents, hops, contributions) in [(10, 40, 3), (1000, 60, 4), (100_000, 80, 2), (30, 25, 6)] {
        for lambda in [0.01, 1.0, 5.0, 20.0, 60.0] {
            let walk = small(agents, 1, hops, contributions);
            let truth = coefficient_by_coefficient(&walk, lambda);
            let found = Iteration::new(walk).faces.as_ref().expect("small").log_moment(lambda);
            assert!(found >= truth - 1e-11 * (1.0 + truth), "{walk:?} {lambda}: {found} below {truth}");
            assert!(found < truth + 0.05 * truth + 1e-6, "{walk:?} {lambda}: {found} far above {truth}");
        }
    }
}

/// The costs of independent paths add up: against the paths of both tokens.
#[test]
fn tokens_cost_what_all_pairs_of_their_paths_do() {
    let walk = small(4, 2, 3, 2);
    let two = Iteration::new(walk.with_tokens(2).expect("valid"));
    let mut costs = Vec::new();
    every_path(&walk, |probability, cost| costs.push((probability, cost)));
    for lambda in LAMBDAS {
        let pairs = costs.iter().flat_map(|a| costs.iter().map(move |b| (a.0 * b.0, a.1 + b.1)));
        let truth = libm::log(pairs.map(|(probability, cost)| probability * libm::exp(lambda * cost)).sum());
        let found = two.log_moment(lambda);
        assert!(found >= truth - 1e-12 && found < truth + 0.4, "{lambda}: {found} {truth}");
    }
    let one = Iteration::new(Walk::new(50, 300, 4).expect("valid"));
    let two = Iteration::new(Walk::new(50, 300, 4).and_then(|walk| walk.with_tokens(2)).expect("valid"));
    let both = Iteration::new(Walk::new(50, 600, 8).expect("valid"));
    let [one, two, both] = [one, two, both].map(|accountant| accountant.epsilon_at(2.0, 1e-5));
    assert!(two > one && (two / both - 1.0).abs() < 0.25, "{one} {two} {both}");
    let spent = Charge { audience: Audience::OneMember, ..Charge::new(Event::Gaussian { noise_multiplier: 2.0 }, 8) };
    let ledger = Ledger::from_charges([spent]).expect("valid");
    let accountant =
        |tokens| Iteration::new(Walk::new(50, 300, 4).and_then(|walk| walk.with_tokens(tokens)).expect("valid"));
    assert!(accountant(2).epsilon(&ledger, 1e-5).is_finite() && accountant(1).epsilon(&ledger, 1e-5).is_infinite());
}
