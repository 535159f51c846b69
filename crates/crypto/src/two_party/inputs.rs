//! A member's private bits for a batch of instances.

use super::{Session, circuit::Circuit};
use crate::flaw::Unfit;
use zeroize::Zeroizing;

/// Whose bits they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Garbler,
    Evaluator,
}

/// Private bits, instance after instance, in the order in which the circuit's builder asked for them. Wiped when
/// dropped; neither cloned nor shown.
pub struct Inputs {
    role: Role,
    session: [u8; 32],
    instances: usize,
    per_instance: usize,
    bits: Zeroizing<Vec<u8>>,
}

impl Inputs {
    /// Bits of the garbler for so many instances.
    pub fn for_garbler(session: &Session, instances: usize) -> Result<Inputs, Unfit> {
        Inputs::new(Role::Garbler, session, instances, session.circuit().inputs().garbler)
    }

    /// Bits of the evaluator for so many instances.
    pub fn for_evaluator(session: &Session, instances: usize) -> Result<Inputs, Unfit> {
        Inputs::new(Role::Evaluator, session, instances, session.circuit().inputs().evaluator)
    }

    fn new(role: Role, session: &Session, instances: usize, per_instance: usize) -> Result<Inputs, Unfit> {
        if instances == 0 {
            return Err(Unfit::Lengths);
        }
        if instances > session.circuit().batch_max() {
            return Err(Unfit::TooMany);
        }
        let bits = Zeroizing::new(Vec::with_capacity(instances * per_instance));
        Ok(Inputs { role, session: session.digest(), instances, per_instance, bits })
    }

    /// The next number, of so many bits: the lowest first.
    pub fn push(&mut self, value: u64, width: usize) -> Result<(), Unfit> {
        // Compared by a shift that does not exist for 64 bits, and without looking at the value more than it must.
        let beyond = if width < 64 { value >> width } else { 0 };
        if beyond != 0 {
            return Err(Unfit::NumberOutOfRange);
        }
        // The capacity is never exceeded, so no copy of a secret is left behind by a list that grows.
        if self.bits.len() + width > self.instances * self.per_instance {
            return Err(Unfit::TooMany);
        }
        self.bits.extend((0..width).map(|i| if i < 64 { (value >> i & 1) as u8 } else { 0 }));
        Ok(())
    }

    pub(super) fn instances(&self) -> usize {
        self.instances
    }

    /// Whether all bits are there.
    pub(super) fn is_complete(&self) -> bool {
        self.bits.len() == self.instances * self.per_instance
    }

    /// Programs that mix up roles or sessions are wrong, whatever a peer does.
    pub(super) fn assert_for(&self, role: Role, session: &Session) {
        assert!(self.role == role && self.session == session.digest(), "inputs of this role and this session");
    }

    /// One bit, as 0 or 1.
    pub(super) fn bit(&self, instance: usize, number: usize) -> u128 {
        u128::from(self.bits[instance * self.per_instance + number])
    }
}

impl Circuit {
    /// The most instances of one batch.
    pub fn batch_max(&self) -> usize {
        let most = super::TRANSFERS_AIM / self.inputs().transferred().max(8);
        // Whole groups of lanes, where there is more than one.
        if most > self.lanes() { most / self.lanes() * self.lanes() } else { most.max(1) }
    }
}
