//! The normal law, accurate to a few units in the last place in both tails.

use std::f64::consts::{PI, SQRT_2};

/// The density phi(x) = exp(-x^2 / 2) / sqrt(2 pi).
pub(crate) fn density(x: f64) -> f64 {
    libm::exp(-0.5 * x * x) / (2.0 * PI).sqrt()
}

/// The upper tail Q(x) = 1 - Phi(x).
pub(crate) fn tail(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// Mills' ratio M(x) = Q(x) / phi(x) = integral of exp(-x y - y^2/2) over y > 0, for x >= -1/2. Relative error: [`ERROR`].
pub(crate) fn mills(x: f64) -> f64 {
    let mut sum = 0.0;
    over_half_line(x, |_, mass| [mass, 0.0], |[mass, _]| sum += mass);
    sum
}

/// (M(a) - M(a + mu), M(a + mu)), for a >= -1/2 and mu up to 1: the integrals over y > 0 of exp(-a y - y^2/2) times
/// 1 - exp(-mu y) and times exp(-mu y). Both integrands are positive, so nothing cancels, however small mu is. Relative error:
/// [`ERROR`].
pub(crate) fn mills_apart(a: f64, mu: f64) -> (f64, f64) {
    let (mut apart, mut far) = (0.0, 0.0);
    let parts = |y: f64, mass: f64| {
        let below_one = libm::expm1(-mu * y);
        [-mass * below_one, mass * (1.0 + below_one)]
    };
    over_half_line(a, parts, |sums| {
        apart += sums[0];
        far += sums[1];
    });
    (apart, far)
}

/// The relative error of [`mills`] and of [`mills_apart`], rule, end and rounding together: `proofs/gaussian.md`.
pub(crate) const ERROR: f64 = 1e-14;

/// Where exp(-a y - y^2/2) has fallen to e^-48 the rest is below 1e-18 of the integral.
const DEPTH: f64 = 48.0;
const PANELS: u32 = 8;
/// Gauss and Legendre's rule of 16 points on [0, 2]: two points, 1 - x and 1 + x, and their weight.
const RULE: [(f64, f64, f64); 8] = [
    (0.010599065008350067, 1.98940093499165, 0.027152459411754096),
    (0.05542497692676742, 1.9445750230732326, 0.062253523938647894),
    (0.13436879761216827, 1.8656312023878316, 0.09515851168249279),
    (0.24459559164499697, 1.755404408355003, 0.12462897125553388),
    (0.38212375559735623, 1.6178762444026438, 0.14959598881657674),
    (0.5419832223427726, 1.4580167776572275, 0.16915651939500254),
    (0.7183964492207411, 1.281603550779259, 0.18260341504492358),
    (0.9049874901623626, 1.0950125098376373, 0.1894506104550685),
];

/// Integrates over y > 0, panel by panel: `parts` gets y and exp(-a y - y^2/2) and says what to integrate, `add` gets what a
/// panel adds.
#[inline(always)]
fn over_half_line(a: f64, parts: impl Fn(f64, f64) -> [f64; 2], mut add: impl FnMut([f64; 2])) {
    // The end solves a y + y^2/2 = DEPTH.
    let end = 2.0 * DEPTH / (a + (a * a + 2.0 * DEPTH).sqrt());
    let half = end / f64::from(2 * PANELS);
    for panel in 0..PANELS {
        let before = f64::from(2 * panel);
        let mut sums = [0.0; 2];
        for (left, right, weight) in RULE {
            for point in [left, right] {
                let y = half * (before + point);
                let parts = parts(y, libm::exp(-y * (a + 0.5 * y)));
                sums[0] += weight * parts[0];
                sums[1] += weight * parts[1];
            }
        }
        add(sums.map(|sum| half * sum));
    }
}

/// Gauss and Legendre's rule of 5 points on [from, to].
pub(crate) fn integrate(from: f64, to: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    const POINTS: [(f64, f64); 2] =
        [(0.538_469_310_105_683_1, 0.478_628_670_499_366_5), (0.906_179_845_938_664, 0.236_926_885_056_189_08)];
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    let mut sum = 0.568_888_888_888_888_9 * f(middle);
    for (point, weight) in POINTS {
        sum += weight * (f(middle - half * point) + f(middle + half * point));
    }
    half * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_accurate_on_both_sides() {
        // Computed to 50 digits.
        for (x, q) in [(0.0, 0.5), (1.0, 0.158_655_253_931_457_05), (10.0, 7.619_853_024_160_527e-24)] {
            assert!((tail(x) / q - 1.0).abs() < 4e-16 * (1.0 + x * x), "{x}");
        }
    }

    #[test]
    fn mills_ratio_is_the_tail_over_the_density() {
        // Computed to 60 digits.
        for (x, ratio) in [
            (-0.5, 1.964_017_495_357_993_7),
            (0.0, 1.253_314_137_315_500_3),
            (0.3, 1.001_837_400_992_155_7),
            (7.0, 0.140_104_183_453_050_24),
            (38.0, 0.026_297_602_974_252_964),
            (1e6, 9.999_999_999_99e-7),
        ] {
            assert!((mills(x) / ratio - 1.0).abs() < ERROR, "{x}: {} {ratio}", mills(x));
        }
        for k in 0..20 {
            let x = -0.5 + 0.5 * f64::from(k);
            assert!((mills(x) * density(x) / tail(x) - 1.0).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn the_two_parts_of_mills_ratio_are_positive_and_add_up() {
        for k in 0..60 {
            let a = -0.5 + 0.7 * f64::from(k);
            for mu in [1.0, 0.3, 1e-3, 1e-9, 1e-18, 1e-150] {
                let (apart, far) = mills_apart(a, mu);
                assert!(apart > 0.0 && far > 0.0, "{a} {mu}");
                assert!(((apart + far) / mills(a) - 1.0).abs() < 2.0 * ERROR, "{a} {mu}");
                assert!((far / mills(a + mu) - 1.0).abs() < 2.0 * ERROR, "{a} {mu}");
                // 1 - a M(a), the slope, for small mu; to first order.
                let slope = apart / mu;
                let (low, high) = (1.0 / (3.0 + a * a), 1.0 / (1.0 + a.max(0.0) * a.max(0.0)));
                assert!(a < 0.0 || mu > 1e-9 || (slope > low && slope < high), "{a} {mu}: {slope}");
            }
        }
    }
}
