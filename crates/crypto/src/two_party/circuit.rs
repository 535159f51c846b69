//! Circuits as data: inputs of three kinds, XOR and AND gates, outputs.
//!
//! A circuit is made by a [`Builder`](super::builder::Builder) and does not change after that. Its wires live in *slots*,
//! which are used again once nobody reads them: what a run holds in memory is the widest place of a circuit, not its length.
//! Negations are no gates: they stand where a bit is read ([`Literal`]).
//!
//! | inputs | brought by | for |
//! |---|---|---|
//! | garbler's | the garbler | its private number |
//! | evaluator's | the evaluator | its private number |
//! | joint | both, the wire is the XOR of the two | random bits that neither knows, if one of the two draws fairly |
//!
//! Slots begin with the inputs, in this order.

use super::{LABELS_MAX, LANES_MAX};
use sha2::{Digest, Sha512};

/// The most slots of a circuit: with one lane, all labels that a run may hold.
pub const SLOTS_MAX: usize = LABELS_MAX;

/// Where a bit is read, and whether its opposite is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The slot.
    pub slot: u32,
    /// Whether the bit that is meant is the opposite of the one in the slot.
    pub negated: bool,
}

/// One gate. It writes to a slot that it does not read, and reads two different slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The XOR of two slots; negations have been moved to where its result is read.
    Xor {
        /// One slot.
        left: u32,
        /// The other.
        right: u32,
        /// Where the result goes.
        out: u32,
    },
    /// The AND of two bits.
    And {
        /// One bit.
        left: Literal,
        /// The other.
        right: Literal,
        /// Where the result goes.
        out: u32,
    },
}

/// One bit of a circuit's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A bit that does not depend on any input.
    Constant(bool),
    /// A bit in a slot.
    Wire(Literal),
}

/// How many bits of each kind go into a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputCounts {
    /// Bits of the garbler.
    pub garbler: usize,
    /// Bits of the evaluator.
    pub evaluator: usize,
    /// Bits that both bring, XORed.
    pub joint: usize,
}

impl InputCounts {
    /// All bits together.
    pub fn total(&self) -> usize {
        self.garbler + self.evaluator + self.joint
    }

    /// Bits whose labels the evaluator gets by oblivious transfer.
    pub fn transferred(&self) -> usize {
        self.evaluator + self.joint
    }
}

/// A circuit: what two members compute together.
#[derive(Debug, PartialEq, Eq)]
pub struct Circuit {
    inputs: InputCounts,
    gates: Vec<Gate>,
    outputs: Vec<Output>,
    slots: usize,
    ands: usize,
    digest: [u8; 32],
}

impl Circuit {
    pub(super) fn new(inputs: InputCounts, gates: Vec<Gate>, outputs: Vec<Output>, slots: usize) -> Circuit {
        let ands = gates.iter().filter(|gate| matches!(gate, Gate::And { .. })).count();
        let digest = digest(&inputs, &gates, &outputs);
        Circuit { inputs, gates, outputs, slots, ands, digest }
    }

    /// How many bits of each kind go in.
    pub fn inputs(&self) -> InputCounts {
        self.inputs
    }

    /// The gates, in an order in which they can be computed.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// The bits that come out.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Slots in use at the widest place, inputs included.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// AND gates: 32 bytes each on the wire.
    pub fn ands(&self) -> usize {
        self.ands
    }

    /// A hash of everything that the circuit is; both members and the aggregator must mean the same one.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Instances that are computed side by side: as many as AES likes, fewer if a circuit is so wide that memory would grow.
    pub fn lanes(&self) -> usize {
        (LABELS_MAX / self.slots.max(1)).clamp(1, LANES_MAX)
    }

    /// What the circuit gives in the clear, for 64 instances at once: word i of each list holds the bits of input i,
    /// one instance in each bit of the word. For tests, for simulations of the ideal functionality, and for whoever
    /// wants to see what a circuit does.
    pub fn evaluate(&self, garbler: &[u64], evaluator: &[u64], joint: &[u64]) -> Vec<u64> {
        let given = InputCounts { garbler: garbler.len(), evaluator: evaluator.len(), joint: joint.len() };
        assert_eq!(given, self.inputs, "one word for each input bit");
        let mut slots = vec![0; self.slots];
        for (slot, input) in slots.iter_mut().zip(garbler.iter().chain(evaluator).chain(joint)) {
            *slot = *input;
        }
        let read = |slots: &[u64], literal: Literal| slots[literal.slot as usize] ^ word(literal.negated);
        for gate in &self.gates {
            match *gate {
                Gate::Xor { left, right, out } => slots[out as usize] = slots[left as usize] ^ slots[right as usize],
                Gate::And { left, right, out } => slots[out as usize] = read(&slots, left) & read(&slots, right),
            }
        }
        let output = |output: &Output| match *output {
            Output::Constant(bit) => word(bit),
            Output::Wire(literal) => read(&slots, literal),
        };
        self.outputs.iter().map(output).collect()
    }
}

/// The bit in all 64 instances.
fn word(bit: bool) -> u64 {
    u64::from(bit).wrapping_neg()
}

fn digest(inputs: &InputCounts, gates: &[Gate], outputs: &[Output]) -> [u8; 32] {
    let mut hash = Sha512::new().chain_update(b"sottovoce/circuit/v1");
    for count in [inputs.garbler, inputs.evaluator, inputs.joint, gates.len(), outputs.len()] {
        hash.update((count as u64).to_le_bytes());
    }
    let mut entry = |kind: u8, numbers: [u32; 3]| {
        hash.update([kind]);
        numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
    };
    let kind_of = |left: Literal, right: Literal| 2 + u8::from(left.negated) + 2 * u8::from(right.negated);
    for gate in gates {
        match *gate {
            Gate::Xor { left, right, out } => entry(1, [left, right, out]),
            Gate::And { left, right, out } => entry(kind_of(left, right), [left.slot, right.slot, out]),
        }
    }
    for output in outputs {
        match *output {
            Output::Constant(bit) => entry(6, [u32::from(bit), 0, 0]),
            Output::Wire(literal) => entry(7, [literal.slot, u32::from(literal.negated), 0]),
        }
    }
    let wide: [u8; 64] = hash.finalize().into();
    let (half, _) = wide.as_chunks::<32>();
    half[0]
}
