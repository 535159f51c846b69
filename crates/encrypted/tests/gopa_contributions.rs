//! What members contribute to a sum under masks, and the noise of all.

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::Goal;
use sottovoce_algorithms::{Bounds, Observations, Points};
use sottovoce_core::{Coin, PeerId};
use sottovoce_crypto::fixed_point::to_ring;
use sottovoce_encrypted::gopa::{Gopa, GopaConfig};
use sottovoce_privacy::Exact;

const NOISE: f64 = 3.0;

fn config(members: u32) -> GopaConfig {
    GopaConfig {
        members,
        finishing: members,
        others: members - 1,
        neighbours: 4,
        threshold: 2,
        rounds: 1,
        board: PeerId(0),
        columns: 2,
        range: Bounds { low: -1.0, high: 3.0 },
        unit: RingUnit::Record,
        goal: Goal::Sum,
        learns: None,
        noise: Some(NOISE),
        timeout: 5.0,
    }
}

/// The noise of the sum is that of the plan, for n_H - 1 members; the empirical variance is the formula's.
#[test]
fn shares_of_noise_make_up_what_was_charged_for() {
    let config = GopaConfig { finishing: 8, others: 5, columns: 2, ..config(10) };
    let gopa = Gopa::new(config).expect("good parameters");
    let promised = NOISE * gopa.sensitivity();
    assert!(gopa.share() * 5f64.sqrt() >= promised && gopa.share() * 5f64.sqrt() < promised * (1.0 + 1e-9));
    assert!((gopa.sensitivity() - 4.0 * 2f64.sqrt()).abs() < 1e-5);
    // Ten shares in each of two numbers.
    assert!((gopa.deviation(100) - gopa.share() * 20f64.sqrt()).abs() < 1e-9 * promised);
    let runs = 40_000;
    let mut square = 0.0;
    let mut noise = Exact::seeded(3, 0);
    for _ in 0..runs {
        let mut shares = [0i64; 10];
        sottovoce_privacy::Noise::perturb_integers(&mut noise, &mut shares);
        let sum = gopa.value(to_ring(shares.iter().sum()));
        square += sum * sum / f64::from(runs);
    }
    // Four standard errors of a variance: 4 sqrt(2 / 40000) = 2.8%.
    let formula = gopa.deviation(100) * gopa.deviation(100) / 2.0;
    assert!((square / formula - 1.0).abs() < 0.03, "{square} {formula}");
}

/// What replacing a row moves, and all of a member, is at most the sensitivity, whatever the statistic; and contributions add up to it.
#[test]
fn contributions_move_by_no_more_than_the_sensitivity() {
    let goals = [(Goal::Sum, 2), (Goal::Mean, 2), (Goal::Histogram { bins: 5 }, 1)];
    let mut coin = Coin::new(5, 5, 5);
    for ((goal, columns), unit) in
        goals.into_iter().flat_map(|goal| [(goal, RingUnit::Record), (goal, RingUnit::Agent)])
    {
        let gopa = Gopa::new(GopaConfig { goal, columns, unit, ..config(8) }).expect("good parameters");
        let mut farthest = 0.0f64;
        for _ in 0..20_000 {
            let mut row =
                || (0..columns).map(|_| [-9.0, 9.0, 4.0 * coin.unit() - 1.0][coin.below(3)]).collect::<Vec<f64>>();
            let (first, mut second) = ([row(), row()].concat(), Vec::new());
            second.extend(row());
            second.extend(if unit == RingUnit::Record { first[columns as usize..].to_vec() } else { row() });
            let of = |values: &[f64]| {
                let labels = &values[..values.len() / columns as usize];
                let points = Points { dimension: columns as usize, features: values, labels };
                gopa.contribution(Observations { points, bounds: None }, &[])
            };
            let ((a, weight), (b, _)) = (of(&first), of(&second));
            assert_eq!(weight, if unit == RingUnit::Record { 2 } else { 1 });
            let apart = a.iter().zip(&b).map(|(a, b)| gopa.value(to_ring(a - b)));
            farthest = farthest.max(apart.map(|apart| apart * apart).sum::<f64>().sqrt());
        }
        assert!(
            farthest <= gopa.sensitivity() && farthest > 0.99 * gopa.sensitivity(),
            "{goal:?} {unit:?}: {farthest}"
        );
    }
}
