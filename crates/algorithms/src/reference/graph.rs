//! The best graph for given models, by someone who sees all of them: projected gradient steps with momentum over all pairs.

use crate::joint::{Joint, Pairs, Regularizer};

/// What the last step may have been for the answer to count, relative to the largest weight.
const STEP_MIN: f64 = 1e-14;

/// argmin over w >= 0 of J for these prices. Precise to about 1e-14 where g is strongly convex.
///
/// # Panics
/// When a million steps do not suffice.
pub fn minimum<R: Regularizer>(joint: &Joint<R>, prices: &Pairs) -> Pairs {
    let agents = prices.degrees().len();
    let mut at = Pairs::from_fn(agents, |_, _| 1.0);
    let (mut next, mut ahead) = (at.clone(), at.clone());
    let mut slopes = vec![0.0; at.values.len()];
    let mut new_slopes = slopes.clone();
    let (mut smoothness, mut momentum) = (1.0f64, 1.0f64);
    for _ in 0..1_000_000 {
        slopes_at(joint, prices, &ahead, &mut slopes);
        // The bound of a gradient step follows, by convexity, from <change of slope, step> <= L/2 |step|^2; and differences
        // of slopes stay meaningful where differences of J are rounding errors.
        loop {
            let (mut bent, mut length) = (0.0, 0.0);
            for (next, (ahead, slope)) in next.values.iter_mut().zip(ahead.values.iter().zip(&slopes)) {
                *next = (ahead - slope / smoothness).max(0.0);
            }
            slopes_at(joint, prices, &next, &mut new_slopes);
            for k in 0..slopes.len() {
                let step = next.values[k] - ahead.values[k];
                bent += (new_slopes[k] - slopes[k]) * step;
                length += step * step;
            }
            if bent <= 0.5 * smoothness * length || smoothness > 1e100 {
                break;
            }
            smoothness *= 2.0;
        }
        let (mut uphill, mut step, mut largest) = (0.0, 0.0f64, 0.0f64);
        for k in 0..slopes.len() {
            uphill += (ahead.values[k] - next.values[k]) * (next.values[k] - at.values[k]);
            step = step.max((next.values[k] - ahead.values[k]).abs()).max((next.values[k] - at.values[k]).abs());
            largest = largest.max(next.values[k]);
        }
        if step <= STEP_MIN * largest {
            return next;
        }
        let grown = if uphill > 0.0 { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
        let push = if uphill > 0.0 { 0.0 } else { (momentum - 1.0) / grown };
        for k in 0..slopes.len() {
            // Momentum must not leave w >= 0, where the logarithm may end.
            ahead.values[k] = (next.values[k] + push * (next.values[k] - at.values[k])).max(0.0);
        }
        momentum = grown;
        std::mem::swap(&mut at, &mut next);
        smoothness *= 0.95;
    }
    panic!("no best graph after a million steps");
}

/// dJ/dw of every pair, into `out`.
pub fn slopes_at<R: Regularizer>(joint: &Joint<R>, prices: &Pairs, weights: &Pairs, out: &mut [f64]) {
    let degrees = weights.degrees();
    for (out, ((u, v, weight), (_, _, price))) in out.iter_mut().zip(weights.iter().zip(prices.iter())) {
        *out = joint.slope(price, weight, [degrees[u], degrees[v]]);
    }
}

/// How far weights are from stationary: the largest |slope| where a weight is positive, and -slope where it is zero.
pub fn residual<R: Regularizer>(joint: &Joint<R>, prices: &Pairs, weights: &Pairs) -> f64 {
    let mut slopes = vec![0.0; weights.values.len()];
    slopes_at(joint, prices, weights, &mut slopes);
    let off = |(&weight, &slope): (&f64, &f64)| if weight > 0.0 { slope.abs() } else { -slope };
    weights.values.iter().zip(&slopes).map(off).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joint::{DegreeTarget, LogDegree};
    use sottovoce_core::Coin;

    #[test]
    fn the_best_graph_is_stationary() {
        for seed in 0..5 {
            let mut coin = Coin::new(seed, 0, 0);
            let prices = Pairs::from_fn(9, |_, _| 3.0 * coin.unit() - 0.5);
            let regularizer = LogDegree { sparsity: [0.01, 0.1, 1.0][seed as usize % 3], offset: LogDegree::OFFSET };
            let joint = Joint { trade_off: 1.0, strength: 0.5, regularizer };
            let best = minimum(&joint, &prices);
            assert!(residual(&joint, &prices, &best) < 1e-10, "{}", residual(&joint, &prices, &best));
            let regularizer = DegreeTarget { sparsity: 0.2, target: 2.0 };
            let joint = Joint { trade_off: 1.0, strength: 0.5, regularizer };
            let best = minimum(&joint, &prices);
            assert!(residual(&joint, &prices, &best) < 1e-10);
        }
    }

    /// One pair: w price + nu (lambda_3 w^2 - 2 log w) has its minimum where price + 2 nu lambda_3 w = 2 nu / w.
    #[test]
    fn two_agents_by_hand() {
        let (price, nu, sparsity) = (1.0, 0.5, 2.0);
        let joint = Joint { trade_off: 1.0, strength: nu, regularizer: LogDegree { sparsity, offset: 1e-12 } };
        let best = minimum(&joint, &Pairs::from_fn(2, |_, _| price));
        let (a, b, c) = (2.0 * nu * sparsity, price, -2.0 * nu);
        let exact = (-b + (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
        assert!((best.values[0] - exact).abs() < 1e-10, "{} {exact}", best.values[0]);
    }
}
