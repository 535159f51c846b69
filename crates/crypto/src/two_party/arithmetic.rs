//! Numbers in circuits: comparing, adding, subtracting, multiplying, choosing.
//!
//! A [`Number`] is a list of bits, the lowest first, and means a non-negative integer. Costs are AND gates, for numbers
//! of b bits (Kolesnikov, Sadeghi and Schneider 2009; spec 03, section 8.1):
//!
//! | operation | AND gates |
//! |---|---|
//! | greater than, add, subtract | b |
//! | equal | b - 1 |
//! | choose one of two | b |
//! | absolute difference | 2 b - 1 |
//! | square | about b^2 |
//!
//! All three chains rest on one formula: with a, b and c bits, c xor ((a xor c) and (b xor c)) is the majority of the three.

use super::builder::{Bit, Builder};

/// A non-negative integer, as bits from the lowest to the highest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(pub Vec<Bit>);

impl Number {
    /// A number that is known.
    pub fn constant(value: u128, width: usize) -> Number {
        Number((0..width).map(|i| if i < 128 && value >> i & 1 == 1 { Bit::ONE } else { Bit::ZERO }).collect())
    }

    /// How many bits.
    pub fn width(&self) -> usize {
        self.0.len()
    }

    /// The bit at this place; zero beyond the highest.
    pub fn bit(&self, at: usize) -> Bit {
        self.0.get(at).copied().unwrap_or(Bit::ZERO)
    }

    /// The number divided by 2^bits, rounded down.
    pub fn shifted_down(&self, bits: usize) -> Number {
        Number(self.0.iter().skip(bits).copied().collect())
    }
}

impl Builder {
    /// A private number of the garbler.
    pub fn garbler_number(&mut self, width: usize) -> Number {
        Number((0..width).map(|_| self.garbler_bit()).collect())
    }

    /// A private number of the evaluator.
    pub fn evaluator_number(&mut self, width: usize) -> Number {
        Number((0..width).map(|_| self.evaluator_bit()).collect())
    }

    /// A uniform number that neither of the two knows.
    pub fn joint_number(&mut self, width: usize) -> Number {
        Number((0..width).map(|_| self.joint_bit()).collect())
    }

    /// All bits of the number, as results.
    pub fn output_number(&mut self, number: &Number) {
        number.0.iter().for_each(|bit| self.output(*bit));
    }

    /// Whether the first is larger.
    pub fn greater(&mut self, left: &Number, right: &Number) -> Bit {
        // The carry into the highest place of left + (2^b - 1 - right) is one exactly if left > right.
        let mut carry = Bit::ZERO;
        for i in 0..left.width().max(right.width()) {
            carry = self.majority(left.bit(i), right.bit(i).not(), carry);
        }
        carry
    }

    /// Whether the two are equal.
    pub fn equal(&mut self, left: &Number, right: &Number) -> Bit {
        let mut same = Bit::ONE;
        for i in 0..left.width().max(right.width()) {
            let differs = self.xor(left.bit(i), right.bit(i));
            same = self.and(same, differs.not());
        }
        same
    }

    /// The sum, one bit wider than the wider of the two.
    pub fn add(&mut self, left: &Number, right: &Number) -> Number {
        self.add_with_carry(left, right, Bit::ZERO)
    }

    /// `left - right` modulo 2^b, and whether that is negative.
    pub fn subtract(&mut self, left: &Number, right: &Number) -> (Number, Bit) {
        let width = left.width().max(right.width());
        let complement = Number((0..width).map(|i| right.bit(i).not()).collect());
        let mut sum = self.add_with_carry(left, &complement, Bit::ONE);
        let no_borrow = sum.0.pop().unwrap_or(Bit::ONE);
        (sum, no_borrow.not())
    }

    /// The distance of the two.
    pub fn absolute_difference(&mut self, left: &Number, right: &Number) -> Number {
        let (difference, negative) = self.subtract(left, right);
        // -d = (not d) + 1, and the flips are free.
        let flipped = Number(difference.0.iter().map(|bit| self.xor(*bit, negative)).collect());
        let mut distance = self.add_with_carry(&flipped, &Number::constant(0, 0), negative);
        distance.0.truncate(difference.width());
        distance
    }

    /// `yes` if the condition is one, `no` if it is zero.
    pub fn select(&mut self, condition: Bit, yes: &Number, no: &Number) -> Number {
        let width = yes.width().max(no.width());
        Number((0..width).map(|i| self.select_bit(condition, yes.bit(i), no.bit(i))).collect())
    }

    /// The square, twice as wide.
    pub fn square(&mut self, number: &Number) -> Number {
        let width = number.width();
        let mut sum = Number::constant(0, 0);
        // x^2 = sum_i x_i 2^(2 i) + sum_i x_i 2^(i + 1) (x_(i+1) 2^(i+1) + ...): the row of bit i begins at place 2 i.
        for i in 0..width {
            let mut row = vec![Bit::ZERO; 2 * i];
            row.push(number.bit(i));
            row.push(Bit::ZERO);
            row.extend((i + 1..width).map(|j| self.and(number.bit(i), number.bit(j))));
            sum = self.add(&sum, &Number(row));
            // Squares of numbers below 2^b are below 2^(2 b): what lies beyond is always zero.
            sum.0.truncate(2 * width);
        }
        sum
    }

    /// The number, moved into the range from `low` to `high`.
    pub fn clamp(&mut self, number: &Number, low: u128, high: u128) -> Number {
        let width = number.width();
        let (low, high) = (Number::constant(low, width), Number::constant(high, width));
        let below = self.greater(&low, number);
        let above = self.greater(number, &high);
        let inside = self.and(below.not(), above.not());
        let bit = |builder: &mut Builder, i: usize| {
            let kept = builder.and(inside, number.bit(i));
            let lowest = builder.and(below, low.bit(i));
            let highest = builder.and(above, high.bit(i));
            let end = builder.xor(lowest, highest);
            builder.xor(kept, end)
        };
        Number((0..width).map(|i| bit(self, i)).collect())
    }

    fn add_with_carry(&mut self, left: &Number, right: &Number, mut carry: Bit) -> Number {
        let mut bits = Vec::new();
        for i in 0..left.width().max(right.width()) {
            let half = self.xor(left.bit(i), right.bit(i));
            bits.push(self.xor(half, carry));
            carry = self.majority(left.bit(i), right.bit(i), carry);
        }
        bits.push(carry);
        Number(bits)
    }

    fn majority(&mut self, a: Bit, b: Bit, c: Bit) -> Bit {
        let (with_a, with_b) = (self.xor(a, c), self.xor(b, c));
        let both = self.and(with_a, with_b);
        self.xor(both, c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing::rng, two_party::circuit::Circuit};
    use rand_core::Rng;

    /// A circuit on two numbers of the garbler, and its AND gates.
    fn circuit(width: usize, make: impl FnOnce(&mut Builder, &Number, &Number) -> Number) -> Circuit {
        let mut builder = Builder::new();
        let (left, right) = (builder.garbler_number(width), builder.garbler_number(width));
        let result = make(&mut builder, &left, &right);
        builder.output_number(&result);
        builder.build().expect("a circuit")
    }

    /// What the circuit gives for all pairs of numbers of five bits, 64 pairs at a time.
    fn check(circuit: &Circuit, expected: impl Fn(u64, u64) -> u64) {
        for base in (0..1024_u64).step_by(64) {
            let words: Vec<u64> =
                (0..10).map(|i| (0..64).map(|instance| ((base + instance) >> i & 1) << instance).sum()).collect();
            let outputs = circuit.evaluate(&words, &[], &[]);
            for instance in 0..64 {
                let (left, right) = ((base + instance) % 32, (base + instance) / 32);
                let result = outputs.iter().rev().fold(0, |sum, word| sum << 1 | word >> instance & 1);
                assert_eq!(result, expected(left, right), "{left} and {right}");
            }
        }
    }

    #[test]
    fn operations_are_right_for_all_numbers_of_five_bits_and_cost_what_is_said() {
        let bit = |bit: Bit| Number(vec![bit]);
        let greater = circuit(5, |b, x, y| bit(b.greater(x, y)));
        check(&greater, |x, y| u64::from(x > y));
        let equal = circuit(5, |b, x, y| bit(b.equal(x, y)));
        check(&equal, |x, y| u64::from(x == y));
        let add = circuit(5, |b, x, y| b.add(x, y));
        check(&add, |x, y| x + y);
        let subtract = circuit(5, |b, x, y| {
            let (mut difference, negative) = b.subtract(x, y);
            difference.0.push(negative);
            difference
        });
        check(&subtract, |x, y| x.wrapping_sub(y) % 32 + 32 * u64::from(x < y));
        let distance = circuit(5, |b, x, y| b.absolute_difference(x, y));
        check(&distance, |x, y| x.abs_diff(y));
        let select = circuit(5, |b, x, y| b.select(x.bit(0), x, y));
        check(&select, |x, y| if x % 2 == 1 { x } else { y });
        let square = circuit(5, |b, x, _| b.square(x));
        check(&square, |x, _| x * x);
        let clamp = circuit(5, |b, x, _| b.clamp(x, 3, 20));
        check(&clamp, |x, _| x.clamp(3, 20));
        let costs = [&greater, &equal, &add, &subtract, &distance, &select].map(Circuit::ands);
        assert_eq!(costs, [5, 4, 5, 5, 9, 5]);
        assert!(square.ands() <= 25, "{}", square.ands());
    }

    /// Numbers of different widths, and constants on either side.
    #[test]
    fn widths_and_constants_mix() {
        for constant in 0..64 {
            let number = Number::constant(constant, 6);
            let greater =
                circuit(5, |b, x, _| Number(vec![b.greater(&number, x), b.greater(x, &number), b.equal(x, &number)]));
            check(&greater, |x, _| {
                u64::from(constant as u64 > x)
                    + 2 * u64::from(x > constant as u64)
                    + 4 * u64::from(x == constant as u64)
            });
            let sum = circuit(5, |b, x, _| b.add(x, &number));
            check(&sum, |x, _| x + constant as u64);
        }
    }

    /// A comparison with 2^i 's multiple costs as many gates as there are bits above the i-th.
    #[test]
    fn zeros_at_the_end_of_a_constant_cost_nothing() {
        let costs = [1, 2, 8, 16]
            .map(|constant| circuit(5, |b, x, _| Number(vec![b.greater(&Number::constant(constant, 5), x)])).ands());
        assert_eq!(costs, [4, 3, 1, 0]);
    }

    #[test]
    fn squares_of_wide_numbers_are_right() {
        let square = circuit(32, |b, x, _| b.square(x));
        let mut rng = rng(1);
        let words: Vec<u64> = (0..64).map(|_| rng.next_u64()).collect();
        let outputs = square.evaluate(&words, &[], &[]);
        for instance in 0..64 {
            let read = |words: &[u64]| words.iter().rev().fold(0_u64, |sum, word| sum << 1 | word >> instance & 1);
            assert_eq!(read(&outputs), read(&words[..32]).pow(2));
        }
    }
}
