//! The kernels of pair statistics, as circuits (spec 03, sections 1 and 8.1).
//!
//! The garbler brings the first record of a pair, the evaluator the second; both as integers on a public grid, so a
//! circuit is exact. AND gates, for b bits:
//!
//! | kernel | h(x, x') | values | AND gates |
//! |---|---|---|---|
//! | [`comparison`]: AUC, where public labels say who should be larger | 1[x > x'] or 1[x' > x] | 0, 1 | b |
//! | [`kendall`] | sign(x - x') sign(y - y') + 1 | 0, 1, 2 | 4 b |
//! | [`gini`] | abs(x - x') | 0 .. 2^b - 1 | 2 b - 1 |
//! | [`squared_difference`]: variance | (x - x')^2 / 2^dropped, rounded down | below 2^(2 b - dropped) | about b^2 |
//!
//! A circuit of one's own is built in the same way.

use super::{arithmetic::Number, builder::Builder};

/// Who of the two should have the larger number, by public labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Larger {
    /// The garbler's number counts if it is larger.
    Garbler,
    /// The evaluator's.
    Evaluator,
}

/// One if the right one of two private numbers of b bits is larger; ties count zero. One bit.
pub fn comparison(bits: usize, larger: Larger, builder: &mut Builder) -> Number {
    let (mine, theirs) = (builder.garbler_number(bits), builder.evaluator_number(bits));
    let counts = match larger {
        Larger::Garbler => builder.greater(&mine, &theirs),
        Larger::Evaluator => builder.greater(&theirs, &mine),
    };
    Number(vec![counts])
}

/// 2 for a concordant pair, 0 for a discordant one, 1 for a tie in either of the two columns. Each member brings its
/// first number, then its second. Two bits.
pub fn kendall(bits: usize, builder: &mut Builder) -> Number {
    let [first, second] = [(); 2].map(|()| (builder.garbler_number(bits), builder.evaluator_number(bits)));
    let [first, second] = [first, second].map(|(x, other)| (builder.greater(&x, &other), builder.equal(&x, &other)));
    let differ = builder.and(first.1.not(), second.1.not());
    let opposed = builder.xor(first.0, second.0);
    let concordant = builder.and(differ, opposed.not());
    Number(vec![differ.not(), concordant])
}

/// The distance of two private numbers of b bits. As many bits.
pub fn gini(bits: usize, builder: &mut Builder) -> Number {
    let (mine, theirs) = (builder.garbler_number(bits), builder.evaluator_number(bits));
    builder.absolute_difference(&mine, &theirs)
}

/// The squared difference of two private numbers of b bits without its lowest bits: those far below the noise cost
/// coins and tell nothing.
pub fn squared_difference(bits: usize, dropped: usize, builder: &mut Builder) -> Number {
    let (mine, theirs) = (builder.garbler_number(bits), builder.evaluator_number(bits));
    let distance = builder.absolute_difference(&mine, &theirs);
    builder.square(&distance).shifted_down(dropped)
}

/// The same kernels in the clear, for tests and simulations.
pub mod plain {
    use super::Larger;

    /// One if the right one is larger.
    pub fn comparison(garbler: u64, evaluator: u64, larger: Larger) -> u64 {
        match larger {
            Larger::Garbler => u64::from(garbler > evaluator),
            Larger::Evaluator => u64::from(evaluator > garbler),
        }
    }

    /// 2 for a concordant pair, 0 for a discordant one, 1 for a tie.
    pub fn kendall(garbler: (u64, u64), evaluator: (u64, u64)) -> u64 {
        let sign = |a: u64, b: u64| i64::from(a > b) - i64::from(a < b);
        (sign(garbler.0, evaluator.0) * sign(garbler.1, evaluator.1) + 1) as u64
    }

    /// The distance.
    pub fn gini(garbler: u64, evaluator: u64) -> u64 {
        garbler.abs_diff(evaluator)
    }

    /// The squared difference without its lowest bits.
    pub fn squared_difference(garbler: u64, evaluator: u64, dropped: usize) -> u128 {
        u128::from(garbler.abs_diff(evaluator)).pow(2) >> dropped
    }
}
