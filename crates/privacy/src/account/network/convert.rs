//! From the moments of X to an epsilon, or to a noise.
//!
//! Given a path the view is mu-Gaussian with mu^2 = X / s^2, s the noise multiplier, and delta(eps) = E delta_mu(eps). For every
//! lambda >= 0, with L(lambda) = ln E exp(lambda X),
//! ```text
//! ln delta(eps) <= L(lambda) + max over 0 < X <= K of ( ln delta_mu(eps) - lambda X )
//! ```
//! Renyi divergences give the same with exp((alpha-1)(alpha X / 2s^2 - eps)) / alpha (1 - 1/alpha)^(alpha-1), which is above delta_mu(eps),
//! in its place, lambda = alpha (alpha-1) / 2s^2. Every lambda gives a valid value: a search that misses the best returns a larger one.

use crate::account::{gaussian_delta, gaussian_epsilon};
use crate::normal::density;
use crate::round::{div_up, mul_up, sqrt_up, widen};

/// The law of X = mu^2 s^2 over paths, by its moments.
pub(super) trait Moments {
    /// The largest X.
    fn most(&self) -> f64;

    /// ln E exp(lambda X), rounded up.
    fn log_moment(&self, lambda: f64) -> f64;

    /// A value of about that size that costs little: where a search looks.
    fn rough(&self, lambda: f64) -> f64;
}

/// What is used of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// That it is mu-Gaussian.
    Gaussian,
    /// Its Renyi divergences alone, with the conversion of Canonne, Kamath and Steinke (2020).
    Renyi,
}

/// The search over ln lambda: from, to, in steps of one.
const LAMBDAS: std::ops::RangeInclusive<i32> = -14..=8;
/// How close to a solution a search ends, relatively; and what is added for it.
const CLOSE: f64 = 1e-7;
/// The same while a lambda is looked for.
const NEAR: f64 = 2e-5;

/// The least epsilon that is found at `delta`; rounds up.
pub(super) fn epsilon(moments: &impl Moments, multiplier: f64, delta: f64, conversion: Conversion) -> f64 {
    // PRIVACY: whatever the path, the view is made of K Gaussian releases: local composition always holds.
    let mu = mul_up(sqrt_up(moments.most()), div_up(1.0, multiplier));
    let local = gaussian_epsilon(mu, delta);
    if delta == 0.0 || !local.is_finite() || local == 0.0 {
        return local;
    }
    let log_delta = libm::log(delta);
    best(moments, local, |lambda, log_moment, close| {
        let solution = match conversion {
            Conversion::Renyi => renyi(log_moment, log_delta, order(lambda, multiplier)),
            Conversion::Gaussian => {
                let path = Path { lambda, multiplier, most: moments.most(), close };
                least(0.0, local, close, |epsilon| log_moment + path.peak(epsilon) <= log_delta)
            }
        };
        widen(solution.max(0.0), CLOSE)
    })
}

/// The least noise multiplier that is found for (`epsilon`, `delta`); none outside of epsilon > 0 and 0 < delta < 1.
pub(super) fn noise_multiplier(
    moments: &impl Moments,
    epsilon: f64,
    delta: f64,
    conversion: Conversion,
) -> Option<f64> {
    if !(epsilon.is_finite() && epsilon > 0.0 && delta > 0.0 && delta < 1.0) {
        return None;
    }
    // PRIVACY: local composition always holds, and is where the search begins.
    let alone = |log: f64| gaussian_epsilon(mul_up(sqrt_up(moments.most()), libm::exp(-log)), delta) <= epsilon;
    let local = libm::exp(least(-40.0, 40.0, CLOSE, alone)) * (1.0 + CLOSE);
    let (log_delta, target) = (libm::log(delta), epsilon * (1.0 - 2.0 * CLOSE));
    let found = best(moments, local, |lambda, log_moment, close| match conversion {
        Conversion::Renyi => {
            let keeps = |log_s: f64| renyi(log_moment, log_delta, 1.0 + libm::exp(log_s)) <= target;
            let order = 1.0 + libm::exp(least(-20.0, 60.0, close, keeps));
            (order * (order - 1.0) / (2.0 * lambda)).sqrt()
        }
        Conversion::Gaussian => {
            let keeps = |log_multiplier: f64| {
                let path = Path { lambda, multiplier: libm::exp(log_multiplier), most: moments.most(), close };
                log_moment + path.peak(target) <= log_delta
            };
            libm::exp(least(libm::log(local) - 14.0, libm::log(local), close, keeps))
        }
    });
    // Seen to be accepted: the other search may have ended at another lambda.
    let (mut multiplier, mut step) = (found.min(local), CLOSE);
    while multiplier < local && self::epsilon(moments, multiplier, delta, conversion) > epsilon {
        multiplier = widen(multiplier, step).min(local);
        step *= 4.0;
    }
    multiplier.is_finite().then_some(multiplier)
}

/// The least value over lambda, at most `limit`; rough moments say where to look for it.
fn best(moments: &impl Moments, limit: f64, value: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let rough = |log_lambda: f64| {
        let lambda = libm::exp(log_lambda);
        value(lambda, moments.rough(lambda), NEAR)
    };
    let grid = LAMBDAS.map(|k| (f64::from(k), rough(f64::from(k))));
    let Some((middle, _)) = grid.min_by(|a, b| a.1.total_cmp(&b.1)) else { return limit };
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut low, mut high) = (middle - 1.0, middle + 1.0);
    let mut points = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
    let mut values = points.map(rough);
    for _ in 0..12 {
        if values[0] <= values[1] {
            high = points[1];
            points = [high - GOLDEN * (high - low), points[0]];
            values = [rough(points[0]), values[0]];
        } else {
            low = points[0];
            points = [points[1], low + GOLDEN * (high - low)];
            values = [values[1], rough(points[1])];
        }
    }
    let centre = 0.5 * (low + high);
    let near = [centre, centre + 0.1, centre - 0.1].map(libm::exp);
    near.into_iter().map(|lambda| value(lambda, moments.log_moment(lambda), CLOSE)).fold(limit, f64::min)
}

/// The least number of [low, high] that `holds`, for what holds from some number on, or a little more; infinity if none does.
fn least(mut low: f64, mut high: f64, close: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if !holds(high) {
        return f64::INFINITY;
    }
    while high - low > (0.2 * close * high.abs().max(low.abs())).max(1e-12) {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The alpha with alpha (alpha - 1) = 2 lambda s^2.
fn order(lambda: f64, multiplier: f64) -> f64 {
    0.5 + (0.25 + 2.0 * lambda * multiplier * multiplier).sqrt()
}

/// The epsilon of Renyi divergences: see `proofs/rdp.md`.
pub(super) fn renyi(log_moment: f64, log_delta: f64, order: f64) -> f64 {
    let s = order - 1.0;
    let epsilon = (log_moment - log_delta - libm::log(order)) / s - libm::log1p(1.0 / s);
    if epsilon.is_nan() { f64::INFINITY } else { epsilon }
}

/// A line that touches ln delta_mu(eps) - lambda X.
struct Tangent {
    at: f64,
    value: f64,
    slope: f64,
}

/// The Gaussian views of paths, at one noise and one lambda.
struct Path {
    lambda: f64,
    multiplier: f64,
    most: f64,
    /// How close to the top a tangent touches.
    close: f64,
}

impl Path {
    /// An upper bound on the largest ln delta_mu(eps) - lambda X over 0 < X <= K, for eps > 0.
    ///
    /// With x = X / s^2 = mu^2 the derivative of delta in mu is phi(mu/2 - eps/mu), that in x is log-concave for x <= 2 eps^2, and so is
    /// its integral delta: up to there a tangent is above. Beyond, delta rises and lambda X does too: interval by interval.
    fn peak(&self, epsilon: f64) -> f64 {
        let Path { lambda, multiplier, most, close } = *self;
        let bend = most.min(2.0 * (epsilon * multiplier) * (epsilon * multiplier));
        if bend == 0.0 {
            // Without an epsilon there is nothing to be concave: every path at once.
            return self.beyond(0.0, -f64::INFINITY, epsilon);
        }
        let Some(mut touched) = self.tangent(bend, epsilon) else {
            // Too small to have a logarithm worth the name, and smaller below.
            return self.beyond(bend, libm::log(gaussian_delta(self.mu(bend), epsilon)), epsilon);
        };
        // Where the slope changes its sign, in ln X.
        let (mut low, mut high) = (libm::log(bend) - 9.0, libm::log(bend));
        for _ in 0..60 {
            if touched.slope >= 0.0 && touched.at == bend || touched.slope.abs() * bend < 1e-3 * close {
                break;
            }
            let middle = 0.5 * (low + high);
            match self.tangent(libm::exp(middle), epsilon) {
                Some(tangent) if tangent.slope <= 0.0 => (touched, high) = (tangent, middle),
                Some(tangent) => (touched, low) = (tangent, middle),
                None => low = middle,
            }
        }
        let Tangent { at, value, slope } = touched;
        let top = value + (slope * (bend - at)).max(-slope * at) + 1e-12 * (1.0 + lambda * bend);
        self.beyond(bend, top, epsilon)
    }

    /// The tangent at X; none where delta is so small that it has lost its digits.
    fn tangent(&self, at: f64, epsilon: f64) -> Option<Tangent> {
        let mu = self.mu(at);
        let delta = gaussian_delta(mu, epsilon);
        let rise = density(epsilon / mu - 0.5 * mu) / (2.0 * mu * self.multiplier * self.multiplier);
        let tangent = Tangent { at, value: libm::log(delta) - self.lambda * at, slope: rise / delta - self.lambda };
        (delta > 1e-290).then_some(tangent)
    }

    /// The mu of a path with this X, rounded up.
    fn mu(&self, x: f64) -> f64 {
        mul_up(sqrt_up(x), div_up(1.0, self.multiplier))
    }

    /// The largest of `top` and what is from `from` on.
    fn beyond(&self, from: f64, mut top: f64, epsilon: f64) -> f64 {
        let fine = 0.05 / self.lambda;
        let (mut low, mut width) = (from, fine);
        // delta is at most 1.
        while low < self.most && -self.lambda * low > top {
            let high = (low + width).min(self.most);
            let bound = libm::log(gaussian_delta(self.mu(high), epsilon)) - self.lambda * low;
            if bound > top && width > fine {
                width = fine.max(0.25 * width);
                continue;
            }
            top = top.max(bound);
            low = high;
            width *= 1.5;
        }
        top
    }
}
