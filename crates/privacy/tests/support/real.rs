//! Real numbers of 400 bits, some 120 digits, with an exponent that never ends. Every operation errs by a few units of the last
//! bit. It shares nothing with the crate's arithmetic, which is the point.

use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::LazyLock;

/// Bits of a number that are kept.
pub const BITS: u64 = 400;

/// `whole` times 2^`exponent`.
#[derive(Clone, Debug)]
pub struct Real {
    whole: BigInt,
    exponent: i64,
}

impl Real {
    /// The double itself: every finite double is a whole number times a power of two.
    pub fn exactly(x: f64) -> Real {
        assert!(x.is_finite(), "{x}");
        let bits = x.to_bits();
        let (fraction, power) = (bits & ((1 << 52) - 1), (bits >> 52) & 0x7ff);
        let whole = BigInt::from(if power == 0 { fraction } else { fraction | 1 << 52 });
        let whole = if x < 0.0 { -whole } else { whole };
        Real { whole, exponent: power.max(1) as i64 - 1075 }
    }

    pub fn whole(n: impl Into<BigInt>) -> Real {
        Real { whole: n.into(), exponent: 0 }.cut()
    }

    fn cut(mut self) -> Real {
        let bits = self.whole.bits();
        if bits > BITS {
            self.whole >>= bits - BITS;
            self.exponent += (bits - BITS) as i64;
        }
        self
    }

    fn is_zero(&self) -> bool {
        self.whole.sign() == Sign::NoSign
    }

    /// The exponent of the leading bit.
    pub fn scale(&self) -> i64 {
        self.whole.bits() as i64 + self.exponent
    }

    /// The double nearest to it, but for a unit of the last place; 0 or infinite where it is too small or too large.
    pub fn to_f64(&self) -> f64 {
        let bits = self.whole.bits();
        let shift = bits.saturating_sub(64);
        let top = i128::try_from(&self.whole >> shift).expect("64 bits") as f64;
        let exponent = (self.exponent + shift as i64).clamp(-3000, 3000) as i32;
        // In two parts, so that a subnormal result is reached.
        libm::ldexp(libm::ldexp(top, exponent / 2), exponent - exponent / 2)
    }

    pub fn half(mut self) -> Real {
        self.exponent -= 1;
        self
    }

    pub fn sqrt(&self) -> Real {
        let mut shift = 2 * BITS as i64 - self.whole.bits() as i64;
        shift += (self.exponent - shift).rem_euclid(2);
        let whole = if shift >= 0 { &self.whole << shift as u64 } else { &self.whole >> (-shift) as u64 };
        Real { whole: whole.sqrt(), exponent: (self.exponent - shift) / 2 }.cut()
    }

    pub fn exp(&self) -> Real {
        // x = n ln 2 + r, and r over 2^16 has a short series.
        let n = if self.scale() < -2 { 0.0 } else { (self.to_f64() / std::f64::consts::LN_2).round() };
        assert!(n.abs() < 1e15, "exp of {}", self.to_f64());
        let mut r = self - &(&Real::whole(n as i64) * &LN_2);
        r.exponent -= 16;
        let (mut sum, mut term) = (Real::whole(1), Real::whole(1));
        for k in 1.. {
            term = &(&term * &r) / &Real::whole(k);
            if term.is_zero() || term.scale() < -(BITS as i64) - 8 {
                break;
            }
            sum = &sum + &term;
        }
        for _ in 0..16 {
            sum = &sum * &sum;
        }
        sum.exponent += n as i64;
        sum
    }

    /// For positive numbers, by Halley's steps, each of which triples the digits.
    pub fn ln(&self) -> Real {
        let power = self.scale();
        let part = Real { whole: self.whole.clone(), exponent: self.exponent - power };
        let mut y = Real::exactly(libm::log(part.to_f64()));
        for _ in 0..3 {
            let e = y.exp();
            y = &y + &(&(&Real::whole(2) * &(&part - &e)) / &(&part + &e));
        }
        &y + &(&Real::whole(power) * &LN_2)
    }
}

impl Add for &Real {
    type Output = Real;
    fn add(self, other: &Real) -> Real {
        let (high, low) = if self.scale() >= other.scale() { (self, other) } else { (other, self) };
        // What is far below the last bit does not matter, and must not be written out.
        if low.is_zero() || high.is_zero() || high.scale() - low.scale() > 2 * BITS as i64 {
            return if high.is_zero() { low.clone() } else { high.clone() };
        }
        let exponent = high.exponent.min(low.exponent);
        let at = |x: &Real| &x.whole << (x.exponent - exponent) as u64;
        Real { whole: at(high) + at(low), exponent }.cut()
    }
}

impl Neg for &Real {
    type Output = Real;
    fn neg(self) -> Real {
        Real { whole: -&self.whole, exponent: self.exponent }
    }
}

impl Sub for &Real {
    type Output = Real;
    fn sub(self, other: &Real) -> Real {
        self + &-other
    }
}

impl Mul for &Real {
    type Output = Real;
    fn mul(self, other: &Real) -> Real {
        Real { whole: &self.whole * &other.whole, exponent: self.exponent + other.exponent }.cut()
    }
}

impl Div for &Real {
    type Output = Real;
    fn div(self, other: &Real) -> Real {
        let shift = (BITS + 8 + other.whole.bits()).saturating_sub(self.whole.bits());
        let whole = (&self.whole << shift) / &other.whole;
        Real { whole, exponent: self.exponent - other.exponent - shift as i64 }.cut()
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Real) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Real) -> Option<Ordering> {
        Some((self - other).whole.sign().cmp(&Sign::NoSign))
    }
}

/// 2 artanh(1/3).
static LN_2: LazyLock<Real> = LazyLock::new(|| &Real::whole(2) * &inverse_series(3, 1));

/// 16 arctan(1/5) - 4 arctan(1/239).
pub static PI: LazyLock<Real> = LazyLock::new(|| {
    let part = |factor: i64, n: i64| &Real::whole(factor) * &inverse_series(n, -1);
    &part(16, 5) - &part(4, 239)
});

/// artanh(1/n) with the sign 1, arctan(1/n) with -1: sum of sign^k / ((2k + 1) n^(2k+1)).
fn inverse_series(n: i64, sign: i64) -> Real {
    let square = Real::whole(n * n * sign);
    let mut power = &Real::whole(1) / &Real::whole(n);
    let mut sum = power.clone();
    for k in 1.. {
        power = &power / &square;
        let term = &power / &Real::whole(2 * k + 1);
        if term.scale() < -(BITS as i64) - 8 {
            break;
        }
        sum = &sum + &term;
    }
    sum
}
