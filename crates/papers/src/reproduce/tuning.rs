//! Parameters are chosen on other instances than those that are reported.

use super::bench::Bench;
use super::calibration::{Calibration, Plans, Scored, Spending, Warm, instance, run};
use super::linear::Size;
use sottovoce_run::train::Halt;

/// 10^-3, 10^-2.5, .., 10^3.
pub fn half_decades() -> Vec<f64> {
    (-6..=6).map(|k| libm::pow(10.0, f64::from(k) / 2.0)).collect()
}

/// The item with the largest mean value, and that mean; the first of equals.
pub fn best<I: Copy>(items: &[I], values: impl Fn(I) -> Vec<f64>) -> (I, f64) {
    let mut found: Option<(I, f64)> = None;
    for &item in items {
        let values = values(item);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        if found.is_none_or(|(_, most)| mean > most) {
            found = Some((item, mean));
        }
    }
    found.expect("there is something to choose from")
}

/// The trade-offs with which coordinate descent without privacy is most accurate on the validation instances, one for each pair of calibration
/// and dimension. With sums of losses it is the paper's own, `sum_trade_off`.
pub fn trade_offs(
    bench: &mut Bench<'_>,
    cases: &[(Calibration, usize)],
    size: Size,
    seeds: &[u64],
    (wakes, sum_trade_off): (u64, f64),
) -> Result<Vec<f64>, Halt> {
    let grid = half_decades();
    let mut items = Vec::new();
    for &(calibration, dimension) in cases.iter().filter(|(calibration, _)| *calibration != Calibration::SumNotDp) {
        // Calibrations with the same points have the same trade-off.
        let scaling = first_of_scaling(calibration);
        for &trade_off in &grid {
            for &seed in seeds {
                let item = (scaling, dimension, trade_off, seed);
                if !items.contains(&item) {
                    items.push(item);
                }
            }
        }
    }
    let accuracy = bench.each("trade-off", &items, |&(calibration, dimension, trade_off, seed)| {
        let instance = instance(calibration, size, dimension, seed, trade_off);
        instance.accuracy(&instance.descend(wakes))
    })?;
    let choose = |&(calibration, dimension): &(Calibration, usize)| {
        if calibration == Calibration::SumNotDp {
            return sum_trade_off;
        }
        let scaling = first_of_scaling(calibration);
        let of = |trade_off: f64| {
            let of_it = |item: &&((Calibration, usize, f64, u64), f64)| {
                (item.0.0, item.0.1, item.0.2) == (scaling, dimension, trade_off)
            };
            let pairs: Vec<_> = items.iter().copied().zip(accuracy.iter().copied()).collect();
            pairs.iter().filter(of_it).map(|item| item.1).collect()
        };
        best(&grid, of).0
    };
    Ok(cases.iter().map(choose).collect())
}

fn first_of_scaling(calibration: Calibration) -> Calibration {
    match calibration {
        Calibration::LaplaceTight => Calibration::LaplaceTheorem1,
        other => other,
    }
}

/// One private run: where, with what, on which instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// How noise is calibrated.
    pub calibration: Calibration,
    /// p.
    pub dimension: usize,
    /// mu.
    pub trade_off: f64,
    /// The budget.
    pub spending: Spending,
    /// The instance.
    pub seed: u64,
}

/// Runs private cases.
pub fn private_runs(
    bench: &mut Bench<'_>,
    stage: &str,
    cases: &[Case],
    (size, delta, warm): (Size, f64, Warm),
    plans: &Plans,
) -> Result<Vec<Scored>, Halt> {
    bench.each(stage, cases, |case| {
        let instance = instance(case.calibration, size, case.dimension, case.seed, case.trade_off);
        run(case.calibration, &instance, size, case.spending, (delta, warm), plans)
    })
}

/// A calibration, a dimension and a budget, with the numbers of updates that validation chose and what came of them on fresh instances.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// How noise is calibrated.
    pub calibration: Calibration,
    /// p.
    pub dimension: usize,
    /// The budget, with the number of updates that is best for what is broadcast.
    pub spending: Spending,
    /// By seed: each agent's accuracy with what it broadcast last.
    pub broadcast: Vec<Vec<f64>>,
    /// The number of updates that is best at home, and by seed each agent's accuracy there.
    pub home: Option<(u64, Vec<Vec<f64>>)>,
}

/// What to tune, and over what.
#[derive(Clone, Debug)]
pub struct Grid<'p> {
    /// How noise is calibrated.
    pub calibrations: &'p [Calibration],
    /// p.
    pub dimensions: &'p [usize],
    /// For the updates.
    pub epsilons: &'p [f64],
    /// For the warm start.
    pub warm_epsilon: f64,
    /// T_i.
    pub updates: &'p [u64],
    /// Instances to choose on.
    pub validation_seeds: &'p [u64],
    /// Instances to report.
    pub seeds: &'p [u64],
}

/// Calibration, dimension, trade-off, epsilon for the updates.
type Head = (Calibration, usize, f64, f64);

/// Chooses the number of updates for each calibration, dimension and budget on validation instances, then runs fresh ones.
/// `trade_offs` are those of each pair of calibration and dimension, calibrations first.
pub fn tuned(
    bench: &mut Bench<'_>,
    grid: &Grid<'_>,
    trade_offs: &[f64],
    setting: (Size, f64, Warm),
) -> Result<Vec<Tuned>, Halt> {
    let plans = Plans::default();
    let mut heads = Vec::new();
    for (k, &calibration) in grid.calibrations.iter().enumerate() {
        for (l, &dimension) in grid.dimensions.iter().enumerate() {
            let trade_off = trade_offs[k * grid.dimensions.len() + l];
            heads.extend(grid.epsilons.iter().map(|&epsilon| (calibration, dimension, trade_off, epsilon)));
        }
    }
    let case = |head: &Head, updates: u64, seed: u64| {
        let (calibration, dimension, trade_off, epsilon) = *head;
        let spending = Spending { epsilon, warm_epsilon: Some(grid.warm_epsilon), updates };
        Case { calibration, dimension, trade_off, spending, seed }
    };
    let mut cases = Vec::new();
    for head in &heads {
        for &updates in grid.updates {
            cases.extend(grid.validation_seeds.iter().map(|&seed| case(head, updates, seed)));
        }
    }
    let tried = private_runs(bench, "number of updates", &cases, setting, &plans)?;
    let mean = |accuracy: &Vec<f64>| accuracy.iter().sum::<f64>() / accuracy.len() as f64;
    let chosen = |head: &Head, score: &dyn Fn(&Scored) -> Option<f64>| {
        let of = |updates: u64| -> Vec<f64> {
            let wanted: Vec<Case> = grid.validation_seeds.iter().map(|&seed| case(head, updates, seed)).collect();
            cases.iter().zip(&tried).filter(|(case, _)| wanted.contains(case)).filter_map(|(_, s)| score(s)).collect()
        };
        (!of(grid.updates[0]).is_empty()).then(|| best(grid.updates, of).0)
    };
    let mut finals = Vec::new();
    let mut picks = Vec::new();
    for head in &heads {
        let broadcast = chosen(head, &|scored| Some(mean(&scored.broadcast))).expect("everyone broadcasts");
        let home = chosen(head, &|scored| scored.home.as_ref().map(mean));
        picks.push((broadcast, home));
        for updates in std::iter::once(broadcast).chain(home) {
            for &seed in grid.seeds {
                let case = case(head, updates, seed);
                if !finals.contains(&case) {
                    finals.push(case);
                }
            }
        }
    }
    let scored = private_runs(bench, "fresh instances", &finals, setting, &plans)?;
    let find = |case: Case| {
        let k = finals.iter().position(|found| *found == case).expect("it was run");
        &scored[k]
    };
    let one = |(head, (broadcast, home)): (&Head, (u64, Option<u64>))| {
        let runs = |updates: u64| grid.seeds.iter().map(move |&seed| find(case(head, updates, seed)));
        Tuned {
            calibration: head.0,
            dimension: head.1,
            spending: case(head, broadcast, 0).spending,
            broadcast: runs(broadcast).map(|scored| scored.broadcast.clone()).collect(),
            home: home.map(|updates| (updates, runs(updates).filter_map(|scored| scored.home.clone()).collect())),
        }
    };
    Ok(heads.iter().zip(picks).map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_the_first_of_the_largest_means() {
        let values = |item: usize| [vec![0.1, 0.3], vec![0.5, 0.1], vec![0.3, 0.3]][item].clone();
        assert_eq!(best(&[0, 1, 2], values).0, 1);
        assert_eq!(half_decades().len(), 13);
        assert!((half_decades()[8] - 10.0).abs() < 1e-12);
    }
}
