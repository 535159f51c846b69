//! Arithmetic that rounds up. A bound on epsilon may be a little too large, never too small.
//!
//! The error of one floating-point operation is itself a floating-point number (barring underflow), so whether the
//! nearest result lies below the exact one can be decided without changing the processor's mode.

/// The smallest double that is at least a + b, for a, b >= 0.
pub(crate) fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // Knuth's two-sum: a + b = sum + error exactly.
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    if error > 0.0 { sum.next_up() } else { sum }
}

/// A double that is at least a b, and the next one at most, for a, b >= 0.
pub(crate) fn mul_up(a: f64, b: f64) -> f64 {
    let product = a * b;
    if !product.is_finite() || a == 0.0 || b == 0.0 {
        return product;
    }
    // Below 1e-290 the error itself may underflow: step up without asking.
    if product < 1e-290 || libm::fma(a, b, -product) > 0.0 { product.next_up() } else { product }
}

/// A double that is at least a / b, and the next one at most, for a >= 0, b > 0.
pub(crate) fn div_up(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || a == 0.0 {
        return quotient;
    }
    if quotient < 1e-290 || b < 1e-290 || libm::fma(quotient, b, -a) < 0.0 { quotient.next_up() } else { quotient }
}

/// A double that is at least the root of x, and the next one at most, for x >= 0.
pub(crate) fn sqrt_up(x: f64) -> f64 {
    let root = x.sqrt();
    if !root.is_finite() || x == 0.0 {
        return root;
    }
    if x < 1e-290 || libm::fma(root, root, -x) < 0.0 { root.next_up() } else { root }
}

/// A count as a double that is at least the count: above 2^53 not every count is a double.
pub(crate) fn count_up(count: u64) -> f64 {
    if count < 1 << 53 { count as f64 } else { (count as f64).next_up() }
}

/// x (1 + error), up: covers a value computed with this relative error.
pub(crate) fn widen(x: f64, error: f64) -> f64 {
    add_up(x, mul_up(x, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_results_stay_and_others_go_up() {
        assert_eq!(add_up(1.0, 2.0), 3.0);
        assert_eq!(add_up(1.0, 1e-30), 1.0f64.next_up());
        assert_eq!(mul_up(3.0, 0.5), 1.5);
        assert_eq!(div_up(1.0, 4.0), 0.25);
        // The double nearest to 1/3 is below it, the one nearest to 1/10 above.
        assert_eq!(div_up(1.0, 3.0), (1.0f64 / 3.0).next_up());
        assert_eq!(div_up(1.0, 10.0), 0.1);
        assert_eq!(div_up(1.0, 1e-320), f64::INFINITY);
        assert_eq!((sqrt_up(2.25), sqrt_up(0.0)), (1.5, 0.0));
        // The double nearest to the root of 2 is above it, the one nearest to the root of 3 below.
        assert_eq!((sqrt_up(2.0), sqrt_up(3.0)), (2.0f64.sqrt(), 3.0f64.sqrt().next_up()));
        assert_eq!((count_up(7), count_up(u64::MAX)), (7.0, 18_446_744_073_709_551_616.0f64.next_up()));
    }

    proptest! {
        #[test]
        fn never_below_the_nearest_result_and_at_most_one_step_above(a in 1e-9..1e9f64, b in 1e-9..1e9f64) {
            for (up, near) in [(add_up(a, b), a + b), (mul_up(a, b), a * b), (div_up(a, b), a / b)] {
                prop_assert!(up == near || up == near.next_up());
            }
        }
    }
}
