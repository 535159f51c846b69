//! Builds circuits: bits, gates, and slots for them.
//!
//! Constants never become wires: what does not depend on an input is folded away, so that comparing with a constant, or
//! adding one, costs what it must and no more. Gates that no output needs are left out.

use super::circuit::{Circuit, Gate, InputCounts, Literal, Output, SLOTS_MAX};
use crate::flaw::Unfit;

/// The most gates and inputs of a circuit while it is built.
pub const GATES_MAX: usize = 1 << 24;

/// A bit while a circuit is built: known, or the result of an input or a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit(Known);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Constant(bool),
    Node { index: u32, negated: bool },
}

impl Bit {
    /// The bit that is always zero.
    pub const ZERO: Bit = Bit(Known::Constant(false));
    /// The bit that is always one.
    pub const ONE: Bit = Bit(Known::Constant(true));

    /// The opposite bit. It costs nothing.
    #[expect(
        clippy::should_implement_trait,
        reason = "bits are handed to methods of a builder, and this reads like them"
    )]
    pub fn not(self) -> Bit {
        match self.0 {
            Known::Constant(bit) => Bit(Known::Constant(!bit)),
            Known::Node { index, negated } => Bit(Known::Node { index, negated: !negated }),
        }
    }
}

/// What a node of a circuit under construction is.
#[derive(Clone, Copy)]
enum Node {
    Garbler(u32),
    Evaluator(u32),
    Joint(u32),
    Xor(u32, u32),
    And((u32, bool), (u32, bool)),
}

/// A circuit under construction. Methods for numbers are in `arithmetic`, noise is in `coin`, `laplace` and `response`.
#[derive(Default)]
pub struct Builder {
    nodes: Vec<Node>,
    inputs: InputCounts,
    outputs: Vec<Bit>,
}

impl Builder {
    /// A circuit without inputs, gates or outputs.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A private bit of the garbler.
    pub fn garbler_bit(&mut self) -> Bit {
        self.inputs.garbler += 1;
        self.node(Node::Garbler(self.inputs.garbler as u32 - 1))
    }

    /// A private bit of the evaluator.
    pub fn evaluator_bit(&mut self) -> Bit {
        self.inputs.evaluator += 1;
        self.node(Node::Evaluator(self.inputs.evaluator as u32 - 1))
    }

    /// A random bit: the XOR of one that the garbler draws and one that the evaluator draws.
    pub fn joint_bit(&mut self) -> Bit {
        self.inputs.joint += 1;
        self.node(Node::Joint(self.inputs.joint as u32 - 1))
    }

    /// The XOR of two bits. It costs nothing on the wire.
    pub fn xor(&mut self, left: Bit, right: Bit) -> Bit {
        match (left.0, right.0) {
            (Known::Constant(constant), _) => flip(right, constant),
            (_, Known::Constant(constant)) => flip(left, constant),
            (Known::Node { index: a, negated: n }, Known::Node { index: b, negated: m }) if a == b => {
                Bit(Known::Constant(n != m))
            }
            (Known::Node { index: a, negated: n }, Known::Node { index: b, negated: m }) => {
                flip(self.node(Node::Xor(a, b)), n != m)
            }
        }
    }

    /// The AND of two bits: 32 bytes on the wire.
    pub fn and(&mut self, left: Bit, right: Bit) -> Bit {
        match (left.0, right.0) {
            (Known::Constant(false), _) | (_, Known::Constant(false)) => Bit::ZERO,
            (Known::Constant(true), _) => right,
            (_, Known::Constant(true)) => left,
            (Known::Node { index: a, negated: n }, Known::Node { index: b, negated: m }) if a == b => {
                if n == m {
                    left
                } else {
                    Bit::ZERO
                }
            }
            (Known::Node { index: a, negated: n }, Known::Node { index: b, negated: m }) => {
                self.node(Node::And((a, n), (b, m)))
            }
        }
    }

    /// The OR of two bits: one AND.
    pub fn or(&mut self, left: Bit, right: Bit) -> Bit {
        self.and(left.not(), right.not()).not()
    }

    /// `yes` if the condition is one, `no` if it is zero: one AND.
    pub fn select_bit(&mut self, condition: Bit, yes: Bit, no: Bit) -> Bit {
        if let Known::Constant(condition) = condition.0 {
            return if condition { yes } else { no };
        }
        let difference = self.xor(yes, no);
        let chosen = self.and(condition, difference);
        self.xor(chosen, no)
    }

    /// One more bit of the result.
    pub fn output(&mut self, bit: Bit) {
        self.outputs.push(bit);
    }

    /// The finished circuit.
    pub fn build(self) -> Result<Circuit, Unfit> {
        if self.outputs.is_empty() {
            return Err(Unfit::Lengths);
        }
        if self.nodes.len() > GATES_MAX {
            return Err(Unfit::TooMany);
        }
        let circuit = Slots::assign(&self);
        if circuit.slots() > SLOTS_MAX { Err(Unfit::TooMany) } else { Ok(circuit) }
    }

    fn node(&mut self, node: Node) -> Bit {
        // Beyond the bound nothing is kept, and `build` refuses.
        if self.nodes.len() <= GATES_MAX {
            self.nodes.push(node);
        }
        Bit(Known::Node { index: self.nodes.len() as u32 - 1, negated: false })
    }

    fn output_nodes(&self) -> impl Iterator<Item = u32> {
        self.outputs.iter().filter_map(|bit| match bit.0 {
            Known::Constant(_) => None,
            Known::Node { index, .. } => Some(index),
        })
    }
}

fn flip(bit: Bit, negated: bool) -> Bit {
    if negated { bit.not() } else { bit }
}

/// The nodes that a node reads.
fn operands(node: Node) -> Option<[u32; 2]> {
    match node {
        Node::Garbler(_) | Node::Evaluator(_) | Node::Joint(_) => None,
        Node::Xor(a, b) => Some([a, b]),
        Node::And((a, _), (b, _)) => Some([a, b]),
    }
}

/// Gives each needed node a slot, and takes it back after the last read.
struct Slots {
    of: Vec<u32>,
    free: Vec<u32>,
    used: u32,
}

impl Slots {
    fn assign(builder: &Builder) -> Circuit {
        let (needed, last_read) = needs(builder);
        let inputs = builder.inputs;
        let mut slots = Slots { of: vec![0; builder.nodes.len()], free: Vec::new(), used: inputs.total() as u32 };
        let mut gates = Vec::new();
        for (index, node) in builder.nodes.iter().enumerate() {
            let input = match *node {
                Node::Garbler(number) => Some(number),
                Node::Evaluator(number) => Some(inputs.garbler as u32 + number),
                Node::Joint(number) => Some((inputs.garbler + inputs.evaluator) as u32 + number),
                Node::Xor(..) | Node::And(..) => None,
            };
            if let Some(slot) = input {
                slots.of[index] = slot;
                continue;
            }
            if !needed[index] {
                continue;
            }
            // The result's slot is taken before those of the operands are given back: a gate never writes what it reads.
            slots.of[index] = slots.free.pop().unwrap_or_else(|| {
                slots.used += 1;
                slots.used - 1
            });
            gates.push(slots.gate(*node, slots.of[index]));
            for operand in operands(*node).into_iter().flatten() {
                if last_read[operand as usize] == index as u32 {
                    slots.free.push(slots.of[operand as usize]);
                }
            }
        }
        let output = |bit: &Bit| match bit.0 {
            Known::Constant(constant) => Output::Constant(constant),
            Known::Node { index, negated } => Output::Wire(Literal { slot: slots.of[index as usize], negated }),
        };
        let outputs = builder.outputs.iter().map(output).collect();
        Circuit::new(inputs, gates, outputs, slots.used as usize)
    }

    fn gate(&self, node: Node, out: u32) -> Gate {
        let slot = |index: u32| self.of[index as usize];
        match node {
            Node::Xor(a, b) => Gate::Xor { left: slot(a), right: slot(b), out },
            Node::And((a, n), (b, m)) => Gate::And {
                left: Literal { slot: slot(a), negated: n },
                right: Literal { slot: slot(b), negated: m },
                out,
            },
            Node::Garbler(_) | Node::Evaluator(_) | Node::Joint(_) => unreachable!("inputs are no gates"),
        }
    }
}

/// Which nodes some output needs, and the last node that reads each; outputs are read at the end, after all nodes.
fn needs(builder: &Builder) -> (Vec<bool>, Vec<u32>) {
    let (mut needed, mut last_read) = (vec![false; builder.nodes.len()], vec![0; builder.nodes.len()]);
    for index in builder.output_nodes() {
        needed[index as usize] = true;
        last_read[index as usize] = u32::MAX;
    }
    for (index, node) in builder.nodes.iter().enumerate().rev() {
        if needed[index] {
            for operand in operands(*node).into_iter().flatten() {
                needed[operand as usize] = true;
                last_read[operand as usize] = last_read[operand as usize].max(index as u32);
            }
        }
    }
    (needed, last_read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_equal_operands_need_no_gates() {
        let mut builder = Builder::new();
        let (x, y) = (builder.garbler_bit(), builder.evaluator_bit());
        assert_eq!(builder.xor(x, Bit::ZERO), x);
        assert_eq!(builder.xor(Bit::ONE, x), x.not());
        assert_eq!(builder.xor(x, x), Bit::ZERO);
        assert_eq!(builder.xor(x, x.not()), Bit::ONE);
        assert_eq!(builder.and(x, Bit::ONE), x);
        assert_eq!(builder.and(Bit::ZERO, x), Bit::ZERO);
        assert_eq!(builder.and(x.not(), x.not()), x.not());
        assert_eq!(builder.and(x, x.not()), Bit::ZERO);
        assert_eq!(builder.or(x, Bit::ONE), Bit::ONE);
        assert_eq!(builder.select_bit(Bit::ONE, x, y), x);
        assert_eq!(x.not().not(), x);
        builder.output(x);
        assert!(builder.build().expect("a circuit").gates().is_empty());
    }

    #[test]
    fn gates_that_no_output_needs_are_left_out() {
        let mut builder = Builder::new();
        let (x, y) = (builder.garbler_bit(), builder.evaluator_bit());
        let used = builder.and(x, y);
        let unused = builder.and(used, x.not());
        let _ = builder.xor(unused, y);
        builder.output(used);
        let circuit = builder.build().expect("a circuit");
        assert_eq!((circuit.gates().len(), circuit.ands()), (1, 1));
    }

    /// A long chain needs as many slots as a short one: memory follows the width.
    #[test]
    fn slots_are_used_again_and_no_gate_writes_what_it_reads() {
        let slots = [10, 10_000].map(|length| {
            let mut builder = Builder::new();
            let (x, y) = (builder.garbler_bit(), builder.evaluator_bit());
            let mut bit = builder.and(x, y);
            for i in 0..length {
                let other = builder.xor(bit, if i % 2 == 0 { x } else { y });
                bit = builder.and(bit.not(), other);
            }
            builder.output(bit);
            let circuit = builder.build().expect("a circuit");
            for gate in circuit.gates() {
                let (left, right, out) = match *gate {
                    Gate::Xor { left, right, out } => (left, right, out),
                    Gate::And { left, right, out } => (left.slot, right.slot, out),
                };
                assert!(left != right && left != out && right != out);
            }
            circuit.slots()
        });
        assert_eq!(slots[0], slots[1]);
    }

    #[test]
    fn circuits_differ_in_their_digest_and_empty_ones_are_refused() {
        let digest = |make: fn(&mut Builder, Bit, Bit) -> Bit| {
            let mut builder = Builder::new();
            let (x, y) = (builder.garbler_bit(), builder.evaluator_bit());
            let bit = make(&mut builder, x, y);
            builder.output(bit);
            builder.build().expect("a circuit").digest()
        };
        let digests = [
            digest(|b, x, y| b.and(x, y)),
            digest(|b, x, y| b.and(x.not(), y)),
            digest(|b, x, y| b.and(x, y.not())),
            digest(|b, x, y| b.and(x, y).not()),
            digest(|b, x, y| b.xor(x, y)),
            digest(|_, x, _| x),
            digest(|_, _, y| y),
            digest(|_, _, _| Bit::ONE),
        ];
        for (i, digest) in digests.iter().enumerate() {
            assert!(!digests[..i].contains(digest), "circuit {i}");
        }
        assert_eq!(Builder::new().build().err(), Some(Unfit::Lengths));
    }

    #[test]
    fn circuits_beyond_the_bounds_are_refused_and_never_built() {
        let mut builder = Builder::new();
        let mut bit = builder.garbler_bit();
        for _ in 0..SLOTS_MAX {
            let next = builder.evaluator_bit();
            bit = builder.xor(bit, next);
        }
        builder.output(bit);
        assert_eq!(builder.build().err(), Some(Unfit::TooMany));
    }
}
