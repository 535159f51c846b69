//! Axes: from numbers to a place between 0 and 1, and the ticks a person would have chosen.

use super::number;

/// One tick of an axis; a tick without a label is a minor one.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value it marks.
    pub at: f64,
    /// What is written beside it.
    pub label: Option<String>,
}

/// A linear or logarithmic axis over a finite, non-empty range.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<Tick>,
}

/// At most this many labelled decades on a logarithmic axis.
const DECADES_MAX: i32 = 6;

impl Axis {
    /// A linear axis from `low` to `high`. A range that is empty or not finite is widened to one that can be drawn.
    pub fn linear(low: f64, high: f64) -> Axis {
        let (mut low, mut high) = if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
        // A range that only rounding separates would give ticks with equal labels.
        if high - low <= 1e-9 * low.abs().max(high.abs()) {
            let pad = if low == 0.0 && high == 0.0 { 0.5 } else { 0.05 * low.abs().max(high.abs()) };
            (low, high) = (low - pad, high + pad);
        }
        let step = nice_step((high - low) / 6.0);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let ticks = (first..=last)
            .map(|k| k as f64 * step)
            .map(|at| Tick { at, label: Some(linear_label(at, step)) })
            .collect();
        Axis { low, high, log: false, ticks }
    }

    /// A linear axis around the values, a little wider than they are.
    pub fn around(values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = range(values).unwrap_or((0.0, 1.0));
        let pad = 0.05 * (high - low);
        Axis::linear(low - pad, high + pad)
    }

    /// A linear axis of counts from zero to the largest value.
    pub fn from_zero(high: f64) -> Axis {
        Axis::linear(0.0, if high > 0.0 && high.is_finite() { high } else { 1.0 })
    }

    /// A logarithmic axis; linear where the values are not positive or span less than a factor of two.
    pub fn log(values: impl Iterator<Item = f64>) -> Axis {
        let Some((low, high)) = range(values) else { return Axis::linear(0.0, 1.0) };
        if low <= 0.0 || high < 2.0 * low {
            return Axis::around([low, high].into_iter());
        }
        let first = libm::floor(libm::log10(low) + 1e-9) as i32;
        let last = libm::ceil(libm::log10(high) - 1e-9) as i32;
        let ticks = if last - first <= 2 {
            narrow_log_ticks(first, last, low, high)
        } else {
            let every = (last - first + DECADES_MAX - 1) / DECADES_MAX;
            let powers = first < -3 || last > 4;
            (first..=last)
                .filter(|e| e.rem_euclid(every) == 0)
                .map(|e| Tick { at: power(e), label: Some(log_label(e, powers)) })
                .collect()
        };
        // Whole decades when there are many; the data's own ends, a little wider, when there are few.
        let (low, high) = if last - first <= 2 { (low / 1.15, high * 1.15) } else { (low / 1.6, high * 1.6) };
        let ticks = Vec::from_iter(ticks.into_iter().filter(|t: &Tick| low <= t.at && t.at <= high));
        Axis { low, high, log: true, ticks }
    }

    /// A logarithmic axis over these whole numbers, each with its label. They must be in order, above zero, and two at least.
    pub fn log_counts(values: &[u64]) -> Axis {
        let ends = values.first().zip(values.last()).filter(|(low, high)| 0 < **low && low < high);
        let Some((&low, &high)) = ends else { return Axis::around(values.iter().map(|&v| v as f64)) };
        let ticks = values.iter().map(|&v| Tick { at: v as f64, label: Some(number::count(v)) }).collect();
        Axis { low: low as f64 / 1.15, high: high as f64 * 1.15, log: true, ticks }
    }

    /// Whether equal distances are equal factors.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// The ends of the range.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The ticks, all within the range.
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// Where a value lies between the ends, 0 to 1; values outside are moved to the nearer end.
    pub fn place(&self, value: f64) -> f64 {
        let (low, high, value) = if self.log {
            (libm::log10(self.low), libm::log10(self.high), libm::log10(value.max(f64::MIN_POSITIVE)))
        } else {
            (self.low, self.high, value)
        };
        let place = (value - low) / (high - low);
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }
}

/// The smallest and the largest finite value.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| v.is_finite()).fold(None, |ends, v| match ends {
        None => Some((v, v)),
        Some((low, high)) => Some((f64::min(low, v), f64::max(high, v))),
    })
}

fn power(exponent: i32) -> f64 {
    libm::pow(10.0, f64::from(exponent))
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `raw`.
pub(super) fn nice_step(raw: f64) -> f64 {
    if !(raw > 0.0 && raw.is_finite()) {
        return 1.0;
    }
    let base = power(libm::floor(libm::log10(raw)) as i32);
    let step = [1.0, 2.0, 5.0].into_iter().find(|m| m * base >= raw * (1.0 - 1e-9)).unwrap_or(10.0) * base;
    if step > 0.0 { step } else { raw }
}

/// Ticks at 1, 2 and 5 of each decade, with minor ones between.
fn narrow_log_ticks(first: i32, last: i32, low: f64, high: f64) -> Vec<Tick> {
    let labelled: &[u8] = if high / low < 30.0 { &[1, 2, 5] } else { &[1] };
    let powers = first < -4 || last > 5;
    let mut ticks = Vec::new();
    for e in first..=last {
        for m in 1..=9u8 {
            let at = f64::from(m) * power(e);
            let label = labelled.contains(&m).then(|| match (powers, m) {
                (true, 1) => log_label(e, true),
                (true, m) => format!("{m}×{}", log_label(e, true)),
                (false, m) if e < 0 => format!("{:.*}", (-e) as usize, f64::from(m) * power(e)),
                (false, m) => number::count(u64::from(m) * 10u64.pow(e as u32)),
            });
            ticks.push(Tick { at, label });
        }
    }
    ticks
}

fn log_label(exponent: i32, powers: bool) -> String {
    if powers {
        format!("10{}", number::superscript(exponent))
    } else if exponent < 0 {
        format!("{:.*}", (-exponent) as usize, power(exponent))
    } else {
        number::count(10u64.pow(exponent.clamp(0, 18) as u32))
    }
}

fn linear_label(at: f64, step: f64) -> String {
    let size = at.abs();
    // The unit follows the step, so that 500,000 is 0.5M beside 1.0M.
    for (unit, suffix) in [(1e9, "G"), (1e6, "M")] {
        if step >= unit / 10.0 && size >= unit / 10.0 {
            let decimals = decimals_of(step / unit);
            return number::minus(format!("{:.decimals$}{suffix}", at / unit));
        }
    }
    if step >= 1.0 {
        let whole = number::count(size.round() as u64);
        return if at < 0.0 { format!("−{whole}") } else { whole };
    }
    if step < 1e-6 {
        return number::significant(at, 3);
    }
    number::minus(format!("{at:.*}", decimals_of(step)))
}

fn decimals_of(step: f64) -> usize {
    (-libm::floor(libm::log10(step) + 1e-9)).clamp(0.0, 9.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().iter().filter_map(|t| t.label.clone()).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(&Axis::linear(0.0, 200.0)), ["0", "50", "100", "150", "200"]);
        assert_eq!(labels(&Axis::linear(0.68, 0.93)), ["0.70", "0.75", "0.80", "0.85", "0.90"]);
        assert_eq!(labels(&Axis::linear(0.0, 760_000.0)), ["0", "0.2M", "0.4M", "0.6M"]);
        assert_eq!(labels(&Axis::linear(0.0, 90_000.0)), ["0", "20,000", "40,000", "60,000", "80,000"]);
        assert_eq!(labels(&Axis::linear(-1.0, 1.0)), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
    }

    #[test]
    fn log_ticks_are_decades() {
        let wide = Axis::log([3e-9, 40.0].into_iter());
        assert_eq!(labels(&wide), ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]);
        let narrow = Axis::log([0.2, 3.0].into_iter());
        assert_eq!(labels(&narrow), ["0.2", "0.5", "1", "2"]);
        assert!(!Axis::log([1.0, 1.5].into_iter()).is_log());
        assert!(!Axis::log([0.0, 1.5].into_iter()).is_log());
    }

    #[test]
    fn a_degenerate_range_can_still_be_drawn() {
        for axis in [
            Axis::linear(0.0, 0.0),
            Axis::linear(0.7, 0.7),
            Axis::linear(1.0, 1.0 + 1e-16),
            Axis::linear(f64::NAN, 1.0),
            Axis::around(std::iter::empty()),
            Axis::around([1e-300, 1e-300].into_iter()),
            Axis::log([f64::INFINITY, f64::NAN].into_iter()),
            Axis::from_zero(0.0),
            Axis::linear(1e18, 1e18 + 4096.0),
            Axis::log_counts(&[]),
            Axis::log_counts(&[0, 5]),
            Axis::log_counts(&[7]),
            Axis::log_counts(&[1, 2, 5, 10]),
        ] {
            assert!(axis.low < axis.high, "{axis:?}");
            assert!(axis.ticks().len() < 20, "{axis:?}");
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.7] {
                assert!((0.0..=1.0).contains(&axis.place(value)));
            }
        }
    }
}
