//! Numbers as a reader likes them: thousands separated, as many digits as matter, never `NaN`.

/// What stands in a cell that has no number.
pub const NONE: &str = "–";

/// A count with thousands separated: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes in decimal units: `1.54 MB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", significant(value, 3), UNITS[unit])
}

/// A duration: `0.42 s`, `12 ms`, `3 min 20 s`.
pub fn seconds(s: f64) -> String {
    if !s.is_finite() || s < 0.0 {
        return NONE.to_string();
    }
    if s >= 119.5 {
        let whole = s.round() as u64;
        return format!("{} min {} s", count(whole / 60), whole % 60);
    }
    if s >= 0.1 {
        return format!("{} s", significant(s, if s >= 10.0 { 3 } else { 2 }));
    }
    format!("{} ms", significant(s * 1000.0, 2))
}

/// A score such as an accuracy or an error: three decimals while they matter, else three significant digits.
pub fn score(x: f64) -> String {
    if !x.is_finite() {
        return NONE.to_string();
    }
    let size = x.abs();
    if size == 0.0 || (0.00995..=9.9995).contains(&size) { minus(format!("{x:.3}")) } else { significant(x, 3) }
}

/// A change of score, always with its sign.
pub fn change(x: f64) -> String {
    // Three decimals, unless all of them are zeros.
    let text = if (0.0005..0.00995).contains(&x.abs()) { minus(format!("{x:.3}")) } else { score(x) };
    if x > 0.0 && text != NONE { format!("+{text}") } else { text }
}

/// A number with so many significant digits, in plain notation between 0.001 and a million.
pub fn significant(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return NONE.to_string();
    }
    if x == 0.0 {
        return "0".to_string();
    }
    let digits = digits.max(1);
    // The exponent after rounding, so that 0.9996 with three digits is 1.00 and not 1.000.
    let scientific = format!("{:.*e}", digits - 1, x);
    let exponent: i32 = scientific.rsplit('e').next().and_then(|e| e.parse().ok()).unwrap_or(0);
    if (-4..=5).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        let text = format!("{x:.decimals$}");
        if decimals == 0 {
            let whole = count(text.trim_start_matches('-').parse().unwrap_or(0));
            return if x < 0.0 { format!("−{whole}") } else { whole };
        }
        return minus(text);
    }
    let mantissa = scientific.split('e').next().unwrap_or_default();
    minus(format!("{mantissa}×10{}", superscript(exponent)))
}

/// A bound with so many significant digits, rounded up: what is printed must hold too.
pub fn up(x: f64, digits: usize) -> String {
    if x <= 0.0 || !x.is_finite() {
        return significant(x, digits);
    }
    let unit = libm::pow(10.0, libm::floor(libm::log10(x)) + 1.0 - digits.max(1) as f64);
    let rounded = libm::ceil(x / unit - 1e-4) * unit;
    significant(if rounded.is_finite() { rounded } else { x }, digits)
}

/// A bound with at most four digits, rounded up, without zeros at the end: `1.05`, and not `1.050`.
pub fn bound(x: f64) -> String {
    let text = up(x, 4);
    if text.contains('.') && !text.contains('×') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

/// An integer in superscript characters.
pub fn superscript(n: i32) -> String {
    n.to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            c => c.to_digit(10).and_then(|d| char::from_u32('⁰' as u32 + d)).unwrap_or(c),
        })
        .collect()
}

/// A number written with a hyphen, with a real minus sign; and no "minus zero".
pub(crate) fn minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_string(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_thousands_separated() {
        let texts: Vec<_> = [0, 12, 999, 1000, 12_345, 1_234_567].into_iter().map(count).collect();
        assert_eq!(texts, ["0", "12", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn quantities_have_sensible_digits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_536_000), "1.54 MB");
        assert_eq!(bytes(999_700), "1.00 MB");
        assert_eq!(seconds(0.0123), "12 ms");
        assert_eq!(seconds(1.234), "1.2 s");
        assert_eq!(seconds(200.0), "3 min 20 s");
        assert_eq!(score(0.88449), "0.884");
        assert_eq!(change(-0.0123), "−0.012");
        assert_eq!(change(0.157), "+0.157");
        assert_eq!([change(0.0096), change(-0.0034), change(4e-5)], ["+0.010", "−0.003", "+4.00×10⁻⁵"]);
        assert_eq!(score(-0.0), "0.000");
        assert_eq!(score(1234.5), "1,234");
        assert_eq!(significant(123_456.0, 5), "123,456");
        assert_eq!(significant(0.9996, 3), "1.00");
        assert_eq!(significant(1.5e-9, 2), "1.5×10⁻⁹");
        assert_eq!(significant(-2.5e7, 3), "−2.50×10⁷");
        assert_eq!(significant(-1234.6, 2), "−1,235");
    }

    #[test]
    fn a_printed_bound_is_never_below_the_bound() {
        assert_eq!([up(0.123_456_1, 6), up(2.0, 6), up(0.0, 6)], ["0.123457", "2.00000", "0"]);
        assert_eq!([bound(1.049_999_999), bound(0.006_737_947), bound(12.0)], ["1.05", "0.006738", "12"]);
        assert_eq!([bound(1e-6), bound(f64::INFINITY), bound(3e7)], ["1.000×10⁻⁶", NONE, "3.000×10⁷"]);
    }

    #[test]
    fn what_is_not_a_number_is_a_dash() {
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!([score(x), change(x), significant(x, 3), seconds(x)], [NONE; 4]);
        }
    }
}
