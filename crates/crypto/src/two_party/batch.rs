//! How a batch is laid out: groups of lanes, their places among the transfers, and the walk through a circuit's gates.
//!
//! Transfers, labels of the garbler's inputs and gates are numbered group by group, in a group input by input (or gate
//! by gate), and for each of these lane by lane. Both sides compute the same numbers from the circuit and the number of
//! instances, which are public.

use super::{
    TABLE_GATES_MAX,
    circuit::{Circuit, Gate, Literal, Output},
    extension::BLOCK,
    half_gates::TABLE_BYTES,
};
use zeroize::Zeroizing;

/// The groups of a batch.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) instances: usize,
    lanes_max: usize,
}

impl Layout {
    pub(super) fn new(circuit: &Circuit, instances: usize) -> Layout {
        Layout { instances, lanes_max: circuit.lanes() }
    }

    pub(super) fn groups(&self) -> usize {
        self.instances.div_ceil(self.lanes_max)
    }

    /// The first instance of a group.
    pub(super) fn first(&self, group: usize) -> usize {
        group * self.lanes_max
    }

    /// How many instances it has.
    pub(super) fn lanes(&self, group: usize) -> usize {
        (self.instances - self.first(group)).min(self.lanes_max)
    }
}

/// Blocks of transfers of a batch.
pub(super) fn blocks(circuit: &Circuit, instances: usize) -> usize {
    (instances * circuit.inputs().transferred()).div_ceil(BLOCK)
}

/// A place in a batch: which group, which of its gates comes next, and the labels of its wires, a row of lanes for each
/// slot.
pub(super) struct Place {
    pub(super) group: usize,
    gate: usize,
    ands: usize,
    pub(super) lanes: usize,
    pub(super) labels: Zeroizing<Vec<u128>>,
}

impl Place {
    /// The beginning of a batch; labels of the first group's inputs are not there yet.
    pub(super) fn new(circuit: &Circuit, layout: &Layout) -> Place {
        let lanes = layout.lanes(0);
        Place { group: 0, gate: 0, ands: 0, lanes, labels: Zeroizing::new(vec![0; circuit.slots() * lanes]) }
    }

    /// Whether the group's inputs are to be set now.
    pub(super) fn is_fresh(&self) -> bool {
        self.gate == 0 && self.ands == 0
    }

    /// Bytes of the tables in the next message.
    pub(super) fn table_bytes(&self, circuit: &Circuit) -> usize {
        (circuit.ands() - self.ands).min(TABLE_GATES_MAX) * TABLE_BYTES * self.lanes
    }

    /// Goes through gates until the message is full or the circuit is done; returns whether it is done.
    ///
    /// `and` is given the number of the gate's first lane in its group, the two literals, their labels, where the
    /// results go, and where the gate's tables begin in the message.
    pub(super) fn walk(&mut self, circuit: &Circuit, mut and: impl FnMut(AndGate<'_>)) -> bool {
        let (lanes, first) = (self.lanes, self.ands);
        while let Some(gate) = circuit.gates().get(self.gate) {
            match *gate {
                Gate::Xor { left, right, out } => {
                    let [left, right, out] = self.rows([left, right, out]);
                    for ((out, left), right) in out.iter_mut().zip(&*left).zip(&*right) {
                        *out = left ^ right;
                    }
                }
                Gate::And { left, right, out } => {
                    if self.ands - first == TABLE_GATES_MAX {
                        return false;
                    }
                    let (number, at) = (self.ands * lanes, (self.ands - first) * lanes * TABLE_BYTES);
                    let tables = at..at + lanes * TABLE_BYTES;
                    let [left_labels, right_labels, out] = self.rows([left.slot, right.slot, out]);
                    and(AndGate {
                        number: number as u64,
                        literals: [left, right],
                        left: left_labels,
                        right: right_labels,
                        out,
                        tables,
                    });
                    self.ands += 1;
                }
            }
            self.gate += 1;
        }
        true
    }

    /// Moves on to the next group, if there is one.
    pub(super) fn next_group(&mut self, layout: &Layout) -> bool {
        (self.group, self.gate, self.ands) = (self.group + 1, 0, 0);
        if self.group == layout.groups() {
            return false;
        }
        self.lanes = layout.lanes(self.group);
        true
    }

    /// Hands out each output with the labels of its lanes.
    pub(super) fn outputs<'p>(&'p self, circuit: &'p Circuit) -> impl Iterator<Item = (usize, Option<Row<'p>>, bool)> {
        circuit.outputs().iter().enumerate().map(|(number, output)| match *output {
            Output::Constant(bit) => (number, None, bit),
            Output::Wire(Literal { slot, negated }) => (number, Some(self.row(slot as usize)), negated),
        })
    }

    fn row(&self, slot: usize) -> Row<'_> {
        &self.labels[slot * self.lanes..(slot + 1) * self.lanes]
    }

    fn rows(&mut self, slots: [u32; 3]) -> [&mut [u128]; 3] {
        let range = |slot: u32| slot as usize * self.lanes..(slot as usize + 1) * self.lanes;
        self.labels.get_disjoint_mut(slots.map(range)).expect("a gate reads two slots and writes a third")
    }
}

/// The labels of one wire in all lanes.
pub(super) type Row<'p> = &'p [u128];

/// An AND gate in all lanes of a group.
pub(super) struct AndGate<'p> {
    pub(super) number: u64,
    pub(super) literals: [Literal; 2],
    pub(super) left: &'p mut [u128],
    pub(super) right: &'p mut [u128],
    pub(super) out: &'p mut [u128],
    pub(super) tables: std::ops::Range<usize>,
}
