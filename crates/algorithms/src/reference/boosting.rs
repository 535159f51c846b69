//! The minimum of Q for boosting over the product of L1 balls, by someone who sees everybody's data: projected gradient steps with
//! momentum, until the duality gap proves that the rest is small.

use crate::Problem;
use crate::boosting::{gap, gradient_block};
use crate::objective::agents;
use crate::vector::dot;
use sottovoce_core::Rows;

/// Steps between two looks at the gap.
const STEPS_PER_LOOK: usize = 20;

/// argmin Q over |Theta_u|_1 <= beta, one row per agent: Q is within `gap_max` of the minimum. Isolated agents, whose models Q does
/// not know, are at zero.
///
/// # Panics
/// When ten million steps do not suffice; `gap_max` is then below what rounding allows.
pub fn minimum(problem: &Problem, radius: f64, gap_max: f64) -> Rows {
    let (n, k) = (problem.agents(), problem.dimension());
    // D - W is at most 2 max D, and the Hessian of F at most max_i |a_i|^2.
    let smoothness = agents(problem).fold(0.0f64, |most, agent| {
        let shard = problem.shard(agent);
        let largest = shard.points.iter().fold(0.0f64, |most, (row, _)| most.max(dot(row, row)));
        most.max(problem.graph.peers(agent).weighted_degree() * (2.0 + problem.trade_off * shard.confidence * largest))
    });
    let mut at = Rows::zeros(n, k);
    if smoothness == 0.0 {
        return at;
    }
    let (mut next, mut ahead) = (at.clone(), at.clone());
    let (mut gradient, mut sorted) = (vec![0.0; k], Vec::new());
    let mut momentum = 1.0f64;
    for count in 0..10_000_000 {
        if count % STEPS_PER_LOOK == 0 && gap(problem, radius, &at) <= gap_max {
            return at;
        }
        for agent in agents(problem) {
            gradient_block(problem, agent, &ahead, &mut gradient);
            let row = next.row_mut(agent.index());
            for ((to, from), g) in row.iter_mut().zip(ahead.row(agent.index())).zip(&gradient) {
                *to = from - g / smoothness;
            }
            project(row, radius, &mut sorted);
        }
        // Momentum that points uphill is dropped (O'Donoghue and Candes 2015).
        let uphill: f64 =
            (0..n * k).map(|i| (ahead.values()[i] - next.values()[i]) * (next.values()[i] - at.values()[i])).sum();
        let grown = if uphill > 0.0 { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
        let push = if uphill > 0.0 { 0.0 } else { (momentum - 1.0) / grown };
        for i in 0..n * k {
            ahead.values_mut()[i] = next.values()[i] + push * (next.values()[i] - at.values()[i]);
        }
        momentum = grown;
        std::mem::swap(&mut at, &mut next);
    }
    panic!("a gap of {} after ten million steps", gap(problem, radius, &at));
}

/// The nearest point of the L1 ball.
pub fn project(v: &mut [f64], radius: f64, sorted: &mut Vec<f64>) {
    if v.iter().map(|v| v.abs()).sum::<f64>() <= radius {
        return;
    }
    sorted.clear();
    sorted.extend(v.iter().map(|v| v.abs()));
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut cut) = (0.0, 0.0);
    for (count, value) in (1..).zip(sorted.iter()) {
        sum += value;
        let candidate = (sum - radius) / f64::from(count);
        if *value <= candidate {
            break;
        }
        cut = candidate;
    }
    v.iter_mut().for_each(|v| *v = v.signum() * (v.abs() - cut).max(0.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boosting::value;
    use crate::testing::{boosting_problem, normals};
    use sottovoce_core::Coin;

    #[test]
    fn the_projection_is_the_nearest_point_of_the_ball() {
        let mut coin = Coin::new(1, 0, 0);
        let mut sorted = Vec::new();
        for _ in 0..200 {
            let far = normals(&mut coin, 6);
            let mut near = far.clone();
            project(&mut near, 1.5, &mut sorted);
            let length: f64 = near.iter().map(|v| v.abs()).sum();
            assert!(length <= 1.5 + 1e-12, "{length}");
            // <far - near, s - near> <= 0 for all corners s.
            for k in 0..6 {
                for corner in [1.5, -1.5] {
                    let s = |i: usize| if i == k { corner } else { 0.0 };
                    let angle: f64 = (0..6).map(|i| (far[i] - near[i]) * (s(i) - near[i])).sum();
                    assert!(angle <= 1e-12, "{angle}");
                }
            }
        }
        let mut inside = [0.5, -0.5];
        project(&mut inside, 1.5, &mut sorted);
        assert_eq!(inside, [0.5, -0.5]);
    }

    #[test]
    fn no_feasible_point_is_below_the_minimum() {
        let (problem, radius) = (boosting_problem(2, 7, 6), 2.0);
        let best = minimum(&problem, radius, 1e-9);
        let least = value(&problem, &best);
        let mut coin = Coin::new(2, 1, 0);
        let mut sorted = Vec::new();
        for scale in [1e-3, 1e-2, 0.1, 1.0] {
            for _ in 0..50 {
                let mut other = best.clone();
                for u in 0..7 {
                    let row = other.row_mut(u);
                    row.iter_mut().zip(normals(&mut coin, 6)).for_each(|(to, z)| *to += scale * z);
                    project(row, radius, &mut sorted);
                }
                assert!(value(&problem, &other) >= least - 1e-9);
            }
        }
        assert!(value(&problem, &Rows::zeros(7, 6)) > least + 0.1);
    }
}
