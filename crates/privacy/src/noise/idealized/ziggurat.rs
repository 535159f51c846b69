//! Marsaglia and Tsang's ziggurat (2000, "The ziggurat method for generating random variables"): a decreasing density is covered
//! by 256 layers of equal area, and a point in a layer is nearly always below the density without computing it.
//!
//! Differs from the paper: layer and position come from different bits of one number (Doornik 2005), and the tables are computed
//! when first used, by `libm`, so they are the same on every machine.

use std::sync::LazyLock;

const LAYERS: usize = 256;

/// The layers under one density f, of which f(0) = 1. Layer i has the width `x[i]` and the heights `y[i]` to `y[i + 1]`; the lowest one
/// stands for the tail beyond `x[1]` too.
pub(super) struct Ziggurat {
    x: [f64; LAYERS + 1],
    y: [f64; LAYERS + 1],
    density: fn(f64) -> f64,
}

impl Ziggurat {
    /// `start` is where the tail begins, and each layer has the area `start` f(`start`) + `tail`.
    fn new(start: f64, tail: f64, density: fn(f64) -> f64, inverse: fn(f64) -> f64) -> Self {
        let area = start * density(start) + tail;
        let (mut x, mut y) = ([0.0; LAYERS + 1], [1.0; LAYERS + 1]);
        x[0] = area / density(start);
        y[0] = 0.0;
        x[1] = start;
        for i in 1..LAYERS {
            y[i] = density(x[i]);
            if i + 1 < LAYERS {
                x[i + 1] = inverse(y[i] + area / x[i]);
            }
        }
        Ziggurat { x, y, density }
    }

    /// The standard normal density on x >= 0.
    pub fn normal() -> &'static Ziggurat {
        static NORMAL: LazyLock<Ziggurat> = LazyLock::new(|| {
            let start = NORMAL_START;
            let tail = libm::sqrt(std::f64::consts::FRAC_PI_2) * libm::erfc(start * std::f64::consts::FRAC_1_SQRT_2);
            Ziggurat::new(start, tail, |x| libm::exp(-0.5 * x * x), |y| libm::sqrt(-2.0 * libm::log(y)))
        });
        &NORMAL
    }

    /// The exponential density with mean 1.
    pub fn exponential() -> &'static Ziggurat {
        static EXPONENTIAL: LazyLock<Ziggurat> = LazyLock::new(|| {
            let tail = libm::exp(-EXPONENTIAL_START);
            Ziggurat::new(EXPONENTIAL_START, tail, |x| libm::exp(-x), |y| -libm::log(y))
        });
        &EXPONENTIAL
    }

    /// A sample on x >= 0 made of `bits` of the source, and an independent fair bit; `beyond` samples the tail.
    #[inline]
    pub fn sample<S>(
        &self,
        source: &mut S,
        bits: impl Fn(&mut S) -> u64 + Copy,
        beyond: impl Fn(&mut S, f64) -> f64 + Copy,
    ) -> (f64, bool) {
        loop {
            let word = bits(source);
            let layer = (word & 255) as usize;
            let x = unit(word) * self.x[layer];
            // A bit that neither the layer nor the position uses.
            let is_negative = word & 256 != 0;
            if x < self.x[layer + 1] {
                return (x, is_negative);
            }
            if let Some(x) = self.at_the_edge(layer, x, source, bits, beyond) {
                return (x, is_negative);
            }
        }
    }

    #[cold]
    fn at_the_edge<S>(
        &self,
        layer: usize,
        x: f64,
        source: &mut S,
        bits: impl Fn(&mut S) -> u64,
        beyond: impl Fn(&mut S, f64) -> f64,
    ) -> Option<f64> {
        if layer == 0 {
            return Some(beyond(source, self.x[1]));
        }
        let y = self.y[layer] + (self.y[layer + 1] - self.y[layer]) * unit(bits(source));
        (y < (self.density)(x)).then_some(x)
    }
}

/// Where the tails begin so that 256 layers fit (Marsaglia and Tsang 2000; more digits from Doornik 2005).
const NORMAL_START: f64 = 3.654_152_885_361_009;
const EXPONENTIAL_START: f64 = 7.697_117_470_131_05;

/// Uniform in (0, 1), from the upper 52 bits.
#[inline]
pub(super) fn unit(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last layer must close the figure: its area is that of all others.
    #[test]
    fn the_layers_cover_the_density_and_end_at_its_top() {
        for ziggurat in [Ziggurat::normal(), Ziggurat::exponential()] {
            let area = ziggurat.x[1] * (ziggurat.y[2] - ziggurat.y[1]);
            for i in 1..LAYERS {
                assert!(ziggurat.x[i + 1] < ziggurat.x[i] && ziggurat.y[i + 1] > ziggurat.y[i], "{i}");
                let found = ziggurat.x[i] * (ziggurat.y[i + 1] - ziggurat.y[i]);
                assert!((found / area - 1.0).abs() < 1e-11, "{i}: {found} {area}");
            }
            assert!((ziggurat.x[0] * ziggurat.y[1] / area - 1.0).abs() < 1e-11);
            assert_eq!((ziggurat.x[LAYERS], ziggurat.y[LAYERS]), (0.0, 1.0));
        }
    }
}
