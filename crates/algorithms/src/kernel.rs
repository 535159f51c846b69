//! The hot loops, as free functions on slices that neither allocate nor know an algorithm.
//!
//! Results are the same to the bit on every x86-64 machine, whatever instructions it has: sums run over a fixed
//! number of lanes in a fixed order, a product and a sum are never fused, and the exponential is our own. What
//! [`vectorized`] changes is only how wide the instructions are.
//!
//! A gradient is computed in blocks of eight rows: eight dot products that share each load of the model, eight
//! slopes from one vector exponential, then one pass over the gradient that adds all eight rows while they are
//! still in the first-level cache. Every row is streamed from memory once.

use crate::{Loss, Points, loss::SMOOTHED_HINGE_WIDTH};

/// Numbers added up side by side. Part of the result's definition: changing it changes digests.
const LANES: usize = 4;

/// Runs `work` compiled for the widest vector instructions of this machine, chosen at run time.
#[inline(always)]
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// out += sum_k l'(theta.x_k, y_k) x_k: the sum, not the mean, and without the regularizer.
pub fn add_gradient(loss: Loss, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    vectorized(|| add_gradient_inline(loss, points, theta, out));
}

/// [`add_gradient`], to be inlined into a caller that is vectorized already.
#[inline(always)]
pub(crate) fn add_gradient_inline(loss: Loss, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    match loss {
        Loss::Logistic => add_gradient_of::<Logistic>(points, theta, out),
        Loss::Squared => add_gradient_of::<Squared>(points, theta, out),
        Loss::SmoothedHinge => add_gradient_of::<SmoothedHinge>(points, theta, out),
        Loss::Hinge => add_gradient_of::<Hinge>(points, theta, out),
    }
}

/// out += sum_k weight_k row_k over `count` rows.
#[inline(always)]
pub(crate) fn add_weighted_rows<'r>(count: usize, row: impl Fn(usize) -> (f64, &'r [f64]), out: &mut [f64]) {
    let mut k = 0;
    while k + 8 <= count {
        add_block::<8>(&row, k, out);
        k += 8;
    }
    while k + 2 <= count {
        add_block::<2>(&row, k, out);
        k += 2;
    }
    if k < count {
        add_block::<1>(&row, k, out);
    }
}

#[inline(always)]
fn add_block<'r, const R: usize>(row: &impl Fn(usize) -> (f64, &'r [f64]), from: usize, out: &mut [f64]) {
    let mut weights = [0.0; R];
    let mut rows: [&[f64]; R] = [&[]; R];
    for r in 0..R {
        (weights[r], rows[r]) = row(from + r);
    }
    add_rows(weights, rows, out);
}

/// a.b
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    vectorized(|| dots([a], b)[0])
}

/// How a loss turns dot products into slopes, a block at a time.
trait Slopes {
    fn slopes<const R: usize>(dots: [f64; R], labels: [f64; R]) -> [f64; R];
}

struct Logistic;
struct Squared;
struct SmoothedHinge;
struct Hinge;

impl Slopes for Logistic {
    #[inline(always)]
    fn slopes<const R: usize>(dots: [f64; R], labels: [f64; R]) -> [f64; R] {
        // -y / (1 + e^z), z = y theta.x; at the clamp of the exponential the slope is 0 or -y to the last bit but one.
        let mut z = [0.0; R];
        for r in 0..R {
            z[r] = labels[r] * dots[r];
        }
        let e = exponentials(z);
        let mut slopes = [0.0; R];
        for r in 0..R {
            slopes[r] = -labels[r] / (1.0 + e[r]);
        }
        slopes
    }
}

impl Slopes for Squared {
    #[inline(always)]
    fn slopes<const R: usize>(dots: [f64; R], labels: [f64; R]) -> [f64; R] {
        let mut slopes = [0.0; R];
        for r in 0..R {
            slopes[r] = 2.0 * (dots[r] - labels[r]);
        }
        slopes
    }
}

impl Slopes for SmoothedHinge {
    #[inline(always)]
    fn slopes<const R: usize>(dots: [f64; R], labels: [f64; R]) -> [f64; R] {
        let mut slopes = [0.0; R];
        for r in 0..R {
            slopes[r] = -labels[r] * ((1.0 - labels[r] * dots[r]) / SMOOTHED_HINGE_WIDTH).clamp(0.0, 1.0);
        }
        slopes
    }
}

impl Slopes for Hinge {
    #[inline(always)]
    fn slopes<const R: usize>(dots: [f64; R], labels: [f64; R]) -> [f64; R] {
        let mut slopes = [0.0; R];
        for r in 0..R {
            slopes[r] = if labels[r] * dots[r] < 1.0 { -labels[r] } else { 0.0 };
        }
        slopes
    }
}

#[inline(always)]
fn add_gradient_of<S: Slopes>(points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    let p = points.dimension;
    assert!(theta.len() == p && out.len() == p, "model and gradient have the data's dimension");
    let mut k = 0;
    let m = points.len();
    while k + 8 <= m {
        gradient_block::<S, 8>(points, k, theta, out);
        k += 8;
    }
    while k + 2 <= m {
        gradient_block::<S, 2>(points, k, theta, out);
        k += 2;
    }
    if k < m {
        gradient_block::<S, 1>(points, k, theta, out);
    }
}

#[inline(always)]
fn gradient_block<S: Slopes, const R: usize>(points: Points<'_>, from: usize, theta: &[f64], out: &mut [f64]) {
    let p = points.dimension;
    let block = &points.features[from * p..(from + R) * p];
    let mut rows: [&[f64]; R] = [&[]; R];
    let mut labels = [0.0; R];
    for r in 0..R {
        rows[r] = &block[r * p..(r + 1) * p];
        labels[r] = points.labels[from + r];
    }
    add_rows(S::slopes(dots(rows, theta), labels), rows, out);
}

/// R dot products with one vector.
#[inline(always)]
fn dots<const R: usize>(rows: [&[f64]; R], theta: &[f64]) -> [f64; R] {
    let (theta_lanes, theta_rest) = theta.as_chunks::<LANES>();
    let mut lanes: [&[[f64; LANES]]; R] = [&[]; R];
    let mut rest: [&[f64]; R] = [&[]; R];
    for r in 0..R {
        let (row_lanes, row_rest) = rows[r][..theta.len()].as_chunks::<LANES>();
        lanes[r] = &row_lanes[..theta_lanes.len()];
        rest[r] = &row_rest[..theta_rest.len()];
    }
    let mut sums = [[0.0; LANES]; R];
    for (k, t) in theta_lanes.iter().enumerate() {
        for r in 0..R {
            let x = lanes[r][k];
            for l in 0..LANES {
                sums[r][l] += x[l] * t[l];
            }
        }
    }
    let mut out = [0.0; R];
    for r in 0..R {
        out[r] = (sums[r][0] + sums[r][2]) + (sums[r][1] + sums[r][3]);
        for (x, t) in rest[r].iter().zip(theta_rest) {
            out[r] += x * t;
        }
    }
    out
}

/// out += sum_r weight_r row_r, each coordinate summed in the order of the rows, then added.
#[inline(always)]
fn add_rows<const R: usize>(weights: [f64; R], rows: [&[f64]; R], out: &mut [f64]) {
    let len = out.len();
    let (out_lanes, out_rest) = out.as_chunks_mut::<LANES>();
    let mut lanes: [&[[f64; LANES]]; R] = [&[]; R];
    let mut rest: [&[f64]; R] = [&[]; R];
    for r in 0..R {
        let (row_lanes, row_rest) = rows[r][..len].as_chunks::<LANES>();
        lanes[r] = &row_lanes[..out_lanes.len()];
        rest[r] = &row_rest[..out_rest.len()];
    }
    for (k, o) in out_lanes.iter_mut().enumerate() {
        let mut sum = [0.0; LANES];
        for r in 0..R {
            let x = lanes[r][k];
            for l in 0..LANES {
                sum[l] += weights[r] * x[l];
            }
        }
        for l in 0..LANES {
            o[l] += sum[l];
        }
    }
    for (k, o) in out_rest.iter_mut().enumerate() {
        let mut sum = 0.0;
        for r in 0..R {
            sum += weights[r] * rest[r][k];
        }
        *o += sum;
    }
}

/// e^x side by side, within two units in the last place; arguments beyond +-708 count as +-708.
#[inline(always)]
fn exponentials<const R: usize>(x: [f64; R]) -> [f64; R] {
    // Adding 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts; the first has trailing zeros, so that its product with a small integer is exact.
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let mut out = [0.0; R];
    for r in 0..R {
        let x = x[r].clamp(-708.0, 708.0);
        let rounded = x * std::f64::consts::LOG2_E + ROUND;
        let n = rounded - ROUND;
        let f = (x - n * LN_2_HIGH) - n * LN_2_LOW;
        // The Taylor series of e^f on |f| <= ln(2)/2 to degree 13, where the next term is below 5e-18.
        let mut sum = 1.0 / 6_227_020_800.0;
        for factorial in [
            479_001_600.0,
            39_916_800.0,
            3_628_800.0,
            362_880.0,
            40_320.0,
            5_040.0,
            720.0,
            120.0,
            24.0,
            6.0,
            2.0,
            1.0,
            1.0,
        ] {
            sum = sum * f + 1.0 / factorial;
        }
        let scale = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
        out[r] = sum * scale;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_two_units_in_the_last_place() {
        let mut worst = 0.0f64;
        for k in -70_800..=70_800 {
            let x = f64::from(k) * 0.01 + 0.001_234;
            let x = x.clamp(-708.0, 708.0);
            let exact = libm::exp(x);
            worst = worst.max(((exponentials([x])[0] - exact) / exact).abs());
        }
        assert!(worst <= 2.0 * f64::EPSILON, "relative error {worst:e}");
        assert_eq!(
            exponentials([0.0, -800.0, 800.0]),
            [1.0, libm::exp(-708.0), libm::exp(708.0)].map(|e| { exponentials([libm::log(e)])[0] })
        );
    }

    #[test]
    fn blocks_and_lanes_add_up_to_the_plain_sum() {
        for p in [1, 2, 3, 4, 5, 8, 13, 20] {
            for m in [0, 1, 2, 3, 7, 8, 9, 10, 17, 26] {
                let features: Vec<f64> = (0..p * m).map(|k| libm::sin(k as f64 * 0.7 + 1.0)).collect();
                let theta: Vec<f64> = (0..p).map(|k| libm::cos(k as f64)).collect();
                for loss in [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge, Loss::Hinge] {
                    let labels: Vec<f64> = (0..m).map(|k| if k % 3 == 0 { 1.0 } else { -1.0 }).collect();
                    let points = Points { dimension: p, features: &features, labels: &labels };
                    let mut fast = vec![0.5; p];
                    add_gradient(loss, points, &theta, &mut fast);
                    let mut plain = vec![0.5; p];
                    for (x, y) in points.iter() {
                        let along: f64 = x.iter().zip(&theta).map(|(a, b)| a * b).sum();
                        for (out, x) in plain.iter_mut().zip(x) {
                            *out += loss.slope(along, y) * x;
                        }
                    }
                    for (a, b) in fast.iter().zip(&plain) {
                        assert!((a - b).abs() < 1e-12, "{loss:?} p={p} m={m}: {a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn wider_instructions_do_not_change_a_bit() {
        let (p, m) = (37, 29);
        let features: Vec<f64> = (0..p * m).map(|k| libm::sin(k as f64 * 1.3)).collect();
        let labels: Vec<f64> = (0..m).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let theta: Vec<f64> = (0..p).map(|k| libm::cos(k as f64 * 0.3)).collect();
        let points = Points { dimension: p, features: &features, labels: &labels };
        let (mut wide, mut narrow) = (vec![0.0; p], vec![0.0; p]);
        add_gradient(Loss::Logistic, points, &theta, &mut wide);
        add_gradient_inline(Loss::Logistic, points, &theta, &mut narrow);
        assert_eq!(wide, narrow);
    }
}
