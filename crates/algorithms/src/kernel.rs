//! The hot loops, as free functions on slices that neither allocate nor know an algorithm.
//!
//! Results are the same to the bit on every machine, whatever instructions it has: sums run over four lanes in a fixed
//! order, a product and the sum it goes into are always fused, and the exponential is our own. What [`vectorized`] chooses is
//! only whether four lanes are one instruction. (Processors without a fused multiply-add, x86 before 2013, do it in software:
//! the same bits, slowly.)
//!
//! A gradient is computed in blocks of four rows: four dot products that share each load of the model, four slopes from
//! one vector exponential, then one pass over the gradient that adds all four rows while they are still in the first-level
//! cache. Every row is streamed from memory once, and while a block is on its way the one before the last is added.

use crate::{Loss, Points, loss::SMOOTHED_HINGE_WIDTH};
pub use pulp::Simd;
use pulp::{Scalar256b, WithSimd, cast};

/// Numbers added up side by side. Part of the result's definition: changing it changes digests.
const LANES: usize = 4;

/// A piece of arithmetic for [`vectorized`]. Its `run` must be `#[inline(always)]`, and so must all that it calls: what is
/// not inlined is compiled for the oldest machine. (That is why it is not a closure.)
pub trait Arithmetic {
    /// What it computes.
    type Output;

    /// Computes it, with instructions for four lanes.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `work` with the vector instructions of this machine, chosen at run time: AVX2 where there is one, else portable
/// code that does the same four lanes.
#[inline(always)]
pub fn vectorized<W: Arithmetic>(work: W) -> W::Output {
    struct Run<W>(W);
    impl<W: Arithmetic> WithSimd for Run<W> {
        type Output = W::Output;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> W::Output {
            const { assert!(S::F64_LANES == LANES) };
            self.0.run(simd)
        }
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Simd::vectorize(simd, Run(work));
    }
    Run(work).with_simd(Scalar256b)
}

/// out += sum_k l'(theta.x_k, y_k) x_k: the sum, not the mean, and without the regularizer.
pub fn add_gradient(loss: Loss, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    struct AddGradient<'a>(Loss, Points<'a>, &'a [f64], &'a mut [f64]);
    impl Arithmetic for AddGradient<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            add_gradient_inline(simd, self.0, self.1, self.2, self.3);
        }
    }
    vectorized(AddGradient(loss, points, theta, out));
}

/// [`add_gradient`], to be inlined into a caller that is vectorized already.
#[inline(always)]
pub fn add_gradient_inline<S: Simd>(simd: S, loss: Loss, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    add_cut_gradient(simd, loss, Uncut, points, theta, out);
}

/// Like [`add_gradient_inline`], with the slope of point k cut to [-limits_k, limits_k]; one that is no number counts as zero.
#[inline(always)]
pub fn add_clipped_gradient_inline<S: Simd>(
    simd: S,
    loss: Loss,
    limits: &[f64],
    points: Points<'_>,
    theta: &[f64],
    out: &mut [f64],
) {
    assert_eq!(limits.len(), points.len(), "one limit for each point");
    add_cut_gradient(simd, loss, Limits(limits), points, theta, out);
}

#[inline(always)]
fn add_cut_gradient<S: Simd, C: Cut>(simd: S, loss: Loss, cut: C, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    match loss {
        Loss::Logistic => add_gradient_of::<S, Logistic, C>(simd, cut, points, theta, out),
        Loss::Squared => add_gradient_of::<S, Squared, C>(simd, cut, points, theta, out),
        Loss::SmoothedHinge => add_gradient_of::<S, SmoothedHinge, C>(simd, cut, points, theta, out),
        Loss::Hinge => add_gradient_of::<S, Hinge, C>(simd, cut, points, theta, out),
    }
}

/// out += sum_k weight_k row_k over `count` rows.
#[inline(always)]
pub fn add_weighted_rows<'r, S: Simd>(simd: S, count: usize, row: impl Fn(usize) -> (f64, &'r [f64]), out: &mut [f64]) {
    let mut k = 0;
    while k + 4 <= count {
        add_block::<S, 4>(simd, &row, k, out);
        k += 4;
    }
    while k < count {
        add_block::<S, 1>(simd, &row, k, out);
        k += 1;
    }
}

#[inline(always)]
fn add_block<'r, S: Simd, const R: usize>(
    simd: S,
    row: &impl Fn(usize) -> (f64, &'r [f64]),
    from: usize,
    out: &mut [f64],
) {
    let mut weights = [0.0; R];
    let mut rows: [&[f64]; R] = [&[]; R];
    for r in 0..R {
        (weights[r], rows[r]) = row(from + r);
    }
    add_rows(simd, weights, rows, out);
}

/// new <- keep old + follow new - descend gradient. Returns the largest change |new - old| of a coordinate.
#[inline(always)]
pub fn step<S: Simd>(
    simd: S,
    [keep, follow, descend]: [f64; 3],
    old: &[f64],
    gradient: &[f64],
    new: &mut [f64],
) -> f64 {
    let ([old_lanes, gradient_lanes], [old_rest, gradient_rest]) = split::<S, 2>([old, gradient], new.len());
    let (new_lanes, new_rest) = S::as_mut_simd_f64s(new);
    let [keeps, follows, descends] = [keep, follow, -descend].map(|factor| simd.splat_f64s(factor));
    let mut largest = simd.splat_f64s(0.0);
    for ((new, &old), &gradient) in new_lanes.iter_mut().zip(old_lanes).zip(gradient_lanes) {
        let moved = simd.mul_add_f64s(follows, *new, simd.mul_f64s(descends, gradient));
        *new = simd.mul_add_f64s(keeps, old, moved);
        largest = simd.max_f64s(largest, simd.abs_f64s(simd.sub_f64s(*new, old)));
    }
    let lanes: [f64; LANES] = cast(largest);
    let mut largest = lanes.into_iter().fold(0.0, f64::max);
    for ((new, &old), &gradient) in new_rest.iter_mut().zip(old_rest).zip(gradient_rest) {
        *new = keep.mul_add(old, follow.mul_add(*new, -descend * gradient));
        largest = largest.max((*new - old).abs());
    }
    largest
}

/// a.b
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    struct Dot<'a>(&'a [f64], &'a [f64]);
    impl Arithmetic for Dot<'_> {
        type Output = f64;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> f64 {
            dots(simd, [self.0], self.1)[0]
        }
    }
    assert_eq!(a.len(), b.len(), "vectors of one length");
    vectorized(Dot(a, b))
}

/// How a loss turns four dot products and labels into slopes.
trait Slopes {
    fn slopes<S: Simd>(simd: S, dots: S::f64s, labels: S::f64s) -> S::f64s;
}

struct Logistic;
struct Squared;
struct SmoothedHinge;
struct Hinge;

impl Slopes for Logistic {
    #[inline(always)]
    fn slopes<S: Simd>(simd: S, dots: S::f64s, labels: S::f64s) -> S::f64s {
        // -y / (1 + e^z), z = y theta.x. Where the exponential is clamped the slope is 0 or -y to the last digits.
        let e = exponentials(simd, simd.mul_f64s(labels, dots));
        simd.div_f64s(simd.neg_f64s(labels), simd.add_f64s(simd.splat_f64s(1.0), e))
    }
}

impl Slopes for Squared {
    #[inline(always)]
    fn slopes<S: Simd>(simd: S, dots: S::f64s, labels: S::f64s) -> S::f64s {
        simd.mul_f64s(simd.splat_f64s(2.0), simd.sub_f64s(dots, labels))
    }
}

impl Slopes for SmoothedHinge {
    #[inline(always)]
    fn slopes<S: Simd>(simd: S, dots: S::f64s, labels: S::f64s) -> S::f64s {
        let gap = simd.sub_f64s(simd.splat_f64s(1.0), simd.mul_f64s(labels, dots));
        let slope = simd.div_f64s(gap, simd.splat_f64s(SMOOTHED_HINGE_WIDTH));
        let slope = simd.min_f64s(simd.max_f64s(slope, simd.splat_f64s(0.0)), simd.splat_f64s(1.0));
        simd.mul_f64s(simd.neg_f64s(labels), slope)
    }
}

impl Slopes for Hinge {
    #[inline(always)]
    fn slopes<S: Simd>(simd: S, dots: S::f64s, labels: S::f64s) -> S::f64s {
        let inside = simd.less_than_f64s(simd.mul_f64s(labels, dots), simd.splat_f64s(1.0));
        simd.select_f64s(inside, simd.neg_f64s(labels), simd.splat_f64s(0.0))
    }
}

/// What is done to slopes before they are used; `first` is the number of the point that the first one belongs to.
trait Cut: Copy {
    fn cut(self, first: usize, slopes: [f64; LANES]) -> [f64; LANES];
}

#[derive(Clone, Copy)]
struct Uncut;

impl Cut for Uncut {
    #[inline(always)]
    fn cut(self, _first: usize, slopes: [f64; LANES]) -> [f64; LANES] {
        slopes
    }
}

#[derive(Clone, Copy)]
struct Limits<'a>(&'a [f64]);

impl Cut for Limits<'_> {
    #[inline(always)]
    fn cut(self, first: usize, mut slopes: [f64; LANES]) -> [f64; LANES] {
        for (slope, &limit) in slopes.iter_mut().zip(&self.0[first..]) {
            // Each comparison fails for a slope that is no number.
            *slope = if *slope > limit {
                limit
            } else if *slope < -limit {
                -limit
            } else if slope.is_nan() {
                0.0
            } else {
                *slope
            };
        }
        slopes
    }
}

#[inline(always)]
fn add_gradient_of<S: Simd, L: Slopes, C: Cut>(simd: S, cut: C, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    let p = points.dimension;
    assert!(theta.len() == p && out.len() == p, "model and gradient have the data's dimension");
    let (features, rest) = points.features.split_at(points.len() / LANES * LANES * p);
    let (labels, rest_labels) = points.labels.as_chunks::<LANES>();
    let slopes = |first, along, labels| cut.cut(first, slopes::<S, L>(simd, along, labels));
    let mut blocks = features.chunks_exact(LANES * p).map(|block| block_rows(block, p)).zip(labels);
    // Three blocks are on their way: dots of the newest, slopes of the middle one, rows of the oldest added.
    let mut middle = blocks.next().map(|(rows, &labels)| (rows, labels, dots(simd, rows, theta)));
    let mut oldest = None;
    // The first point of the middle block.
    let mut first = 0;
    for (rows, &labels) in blocks {
        let along = match oldest {
            None => dots(simd, rows, theta),
            Some((weights, added)) => dots_and_add(simd, rows, theta, weights, added, out),
        };
        oldest = middle.map(|(rows, labels, along)| (slopes(first, along, labels), rows));
        middle = Some((rows, labels, along));
        first += LANES;
    }
    let last = middle.map(|(rows, labels, along)| (slopes(first, along, labels), rows));
    for (weights, rows) in oldest.into_iter().chain(last) {
        add_rows(simd, weights, rows, out);
    }
    // Fewer than four rows are left.
    let (mut along, mut labels) = ([0.0; LANES], [0.0; LANES]);
    for (k, row) in rest.chunks_exact(p).enumerate() {
        [along[k]] = dots(simd, [row], theta);
        labels[k] = rest_labels[k];
    }
    let weights = slopes(points.len() - rest_labels.len(), along, labels);
    for (weight, row) in weights.into_iter().zip(rest.chunks_exact(p)) {
        add_rows(simd, [weight], [row], out);
    }
}

#[inline(always)]
fn block_rows(block: &[f64], p: usize) -> [&[f64]; LANES] {
    let (first, second) = block.split_at(2 * p);
    let ((a, b), (c, d)) = (first.split_at(p), second.split_at(p));
    [a, b, c, d]
}

#[inline(always)]
fn slopes<S: Simd, L: Slopes>(simd: S, along: [f64; LANES], labels: [f64; LANES]) -> [f64; LANES] {
    cast(L::slopes(simd, cast(along), cast(labels)))
}

/// [`dots`] of four rows and [`add_rows`] of four others in one pass: the loads of the first hide behind the arithmetic of
/// the second. The result of each is the same to the bit as alone.
#[inline(always)]
fn dots_and_add<S: Simd>(
    simd: S,
    rows: [&[f64]; LANES],
    theta: &[f64],
    weights: [f64; LANES],
    added: [&[f64]; LANES],
    out: &mut [f64],
) -> [f64; LANES] {
    let (theta_lanes, theta_rest) = S::as_simd_f64s(theta);
    let (pairs, last) = theta_lanes.as_chunks::<2>();
    let (lanes, rest) = split::<S, LANES>(rows, theta.len());
    let (added_lanes, added_rest) = split::<S, LANES>(added, theta.len());
    let (out_lanes, out_rest) = S::as_mut_simd_f64s(&mut out[..theta.len()]);
    let splats = weights.map(|weight| simd.splat_f64s(weight));
    let (mut even, mut odd) = ([simd.splat_f64s(0.0); LANES], [simd.splat_f64s(0.0); LANES]);
    let (out_pairs, out_last) = out_lanes.as_chunks_mut::<2>();
    for (k, ([t, u], [o, q])) in pairs.iter().zip(out_pairs).enumerate() {
        for r in 0..LANES {
            even[r] = simd.mul_add_f64s(lanes[r][2 * k], *t, even[r]);
            odd[r] = simd.mul_add_f64s(lanes[r][2 * k + 1], *u, odd[r]);
            *o = simd.mul_add_f64s(splats[r], added_lanes[r][2 * k], *o);
            *q = simd.mul_add_f64s(splats[r], added_lanes[r][2 * k + 1], *q);
        }
    }
    if let ([t], [o]) = (last, out_last) {
        let k = theta_lanes.len() - 1;
        for r in 0..LANES {
            even[r] = simd.mul_add_f64s(lanes[r][k], *t, even[r]);
            *o = simd.mul_add_f64s(splats[r], added_lanes[r][k], *o);
        }
    }
    for (k, o) in out_rest.iter_mut().enumerate() {
        for r in 0..LANES {
            *o = weights[r].mul_add(added_rest[r][k], *o);
        }
    }
    let mut along = [0.0; LANES];
    for r in 0..LANES {
        along[r] = total(simd, even[r], odd[r], rest[r], theta_rest);
    }
    along
}

/// R dot products with one vector, each over two sums of four lanes.
#[inline(always)]
fn dots<S: Simd, const R: usize>(simd: S, rows: [&[f64]; R], theta: &[f64]) -> [f64; R] {
    let (theta_lanes, theta_rest) = S::as_simd_f64s(theta);
    let (lanes, rest) = split::<S, R>(rows, theta.len());
    let (mut even, mut odd) = ([simd.splat_f64s(0.0); R], [simd.splat_f64s(0.0); R]);
    let (pairs, last) = theta_lanes.as_chunks::<2>();
    for (k, &[t, u]) in pairs.iter().enumerate() {
        for r in 0..R {
            even[r] = simd.mul_add_f64s(lanes[r][2 * k], t, even[r]);
            odd[r] = simd.mul_add_f64s(lanes[r][2 * k + 1], u, odd[r]);
        }
    }
    if let [t] = *last {
        for r in 0..R {
            even[r] = simd.mul_add_f64s(lanes[r][theta_lanes.len() - 1], t, even[r]);
        }
    }
    let mut out = [0.0; R];
    for r in 0..R {
        out[r] = total(simd, even[r], odd[r], rest[r], theta_rest);
    }
    out
}

/// The end of a dot product: its two sums of four lanes, and the numbers that fill no lane.
#[inline(always)]
fn total<S: Simd>(simd: S, even: S::f64s, odd: S::f64s, row_rest: &[f64], theta_rest: &[f64]) -> f64 {
    let sum: [f64; LANES] = cast(simd.add_f64s(even, odd));
    let mut total = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (x, t) in row_rest.iter().zip(theta_rest) {
        total = x.mul_add(*t, total);
    }
    total
}

/// out += sum_r weight_r row_r, in the order of the rows.
#[inline(always)]
fn add_rows<S: Simd, const R: usize>(simd: S, weights: [f64; R], rows: [&[f64]; R], out: &mut [f64]) {
    let (lanes, rest) = split::<S, R>(rows, out.len());
    let (out_lanes, out_rest) = S::as_mut_simd_f64s(out);
    let mut splats = [simd.splat_f64s(0.0); R];
    for r in 0..R {
        splats[r] = simd.splat_f64s(weights[r]);
    }
    for (k, o) in out_lanes.iter_mut().enumerate() {
        let mut sum = *o;
        for r in 0..R {
            sum = simd.mul_add_f64s(splats[r], lanes[r][k], sum);
        }
        *o = sum;
    }
    for (k, o) in out_rest.iter_mut().enumerate() {
        for r in 0..R {
            *o = weights[r].mul_add(rest[r][k], *o);
        }
    }
}

/// The first `len` numbers of each row: whole lanes, and the rest.
#[inline(always)]
fn split<S: Simd, const R: usize>(rows: [&[f64]; R], len: usize) -> ([&[S::f64s]; R], [&[f64]; R]) {
    let mut lanes: [&[S::f64s]; R] = [&[]; R];
    let mut rest: [&[f64]; R] = [&[]; R];
    for r in 0..R {
        let (row_lanes, row_rest) = S::as_simd_f64s(&rows[r][..len]);
        lanes[r] = &row_lanes[..len / LANES];
        rest[r] = &row_rest[..len % LANES];
    }
    (lanes, rest)
}

/// e^x side by side, within two units in the last place; arguments beyond +-708 count as +-708.
#[inline(always)]
fn exponentials<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
    // Adding 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts; the first has trailing zeros, so that its product with a small integer is exact.
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let splat = |value| simd.splat_f64s(value);
    let x = simd.min_f64s(simd.max_f64s(x, splat(-708.0)), splat(708.0));
    let rounded = simd.mul_add_f64s(x, splat(std::f64::consts::LOG2_E), splat(ROUND));
    let n = simd.sub_f64s(rounded, splat(ROUND));
    let f = simd.mul_add_f64s(n, splat(-LN_2_LOW), simd.mul_add_f64s(n, splat(-LN_2_HIGH), x));
    // The Taylor series of e^f on |f| <= ln(2)/2 to degree 13, where the next term is below 5e-18; paired up (Estrin) so that
    // it is four products deep instead of thirteen.
    let line = |low: f64, high: f64| simd.mul_add_f64s(splat(1.0 / high), f, splat(1.0 / low));
    let f2 = simd.mul_f64s(f, f);
    let f4 = simd.mul_f64s(f2, f2);
    let f8 = simd.mul_f64s(f4, f4);
    let join = |low, high, power| simd.mul_add_f64s(high, power, low);
    let to_3 = join(line(1.0, 1.0), line(2.0, 6.0), f2);
    let to_7 = join(line(24.0, 120.0), line(720.0, 5_040.0), f2);
    let to_11 = join(line(40_320.0, 362_880.0), line(3_628_800.0, 39_916_800.0), f2);
    let to_13 = line(479_001_600.0, 6_227_020_800.0);
    let sum = join(join(to_3, to_7, f4), join(to_11, to_13, f4), f8);
    // 2^n from the integer in the low bits of `rounded`.
    let bits: [u64; LANES] = cast(rounded);
    let scale: S::f64s = cast(bits.map(|bits| (bits << 52).wrapping_add(1023 << 52)));
    simd.mul_f64s(sum, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(x: f64) -> f64 {
        let four: [f64; LANES] = cast(exponentials(Scalar256b, cast([x, 0.0, 0.0, 0.0])));
        four[0]
    }

    #[test]
    fn the_exponential_is_right_to_two_units_in_the_last_place() {
        let mut worst = 0.0f64;
        for k in -70_800..70_800 {
            let x = f64::from(k) * 0.01 + 0.001_234;
            let exact = libm::exp(x);
            worst = worst.max(((exponential(x) - exact) / exact).abs());
        }
        assert!(worst <= 2.0 * f64::EPSILON, "relative error {worst:e}");
        assert_eq!(exponential(0.0), 1.0);
        assert_eq!(exponential(-1e300), exponential(-708.0));
        assert!(exponential(1e300).is_finite());
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
        add_gradient_inline(Scalar256b, Loss::Logistic, points, &theta, &mut narrow);
        assert_eq!(wide, narrow);
    }
}
