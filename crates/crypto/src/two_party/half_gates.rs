//! Half gates with free XOR: an AND gate in two ciphertexts of 16 bytes.
//!
//! Every wire has a label for zero, A, and one for one, A xor Delta, with the same secret Delta for all wires of a
//! session (Kolesnikov and Schneider 2008). The garbler knows A and Delta, the evaluator one of the two labels and not
//! which. So an XOR gate is an XOR of labels, a negation is a matter of the garbler's bookkeeping, and an AND gate
//! takes (Zahur, Rosulek and Evans 2015), with p the lowest bit of a label of the garbler and s that of the
//! evaluator's; the lowest bit of Delta is 1:
//!
//! ```text
//! garbler     T_G = H(A, i) xor H(A xor Delta, i) xor p_B Delta          T_E = H(B, j) xor H(B xor Delta, j) xor A
//!             C   = H(A, i) xor p_A T_G xor H(B, j) xor p_B (T_E xor A)
//! evaluator   W   = H(W_A, i) xor s_A T_G xor H(W_B, j) xor s_B (T_E xor W_A)
//! ```
//!
//! A gate is done for many instances of one circuit at once, its *lanes*, so that AES has enough to do. The tweaks i =
//! 2 g and j = 2 g + 1 belong to one gate of one lane: g only goes forward in a session.
//!
//! **Guarantee**, against an honest-but-curious evaluator: labels and tables look uniform, whatever the inputs are
//! (privacy and obliviousness), by the robustness of the hash (`hash`). **Not guaranteed**: anything against a garbler
//! who garbles another circuit.
//!
//! **Time.** No branch and no address depends on a label: choices by a bit are masks.

use super::hash::LabelHash;

/// Bytes of a garbled AND gate.
pub const TABLE_BYTES: usize = 32;

/// All ones if the lowest bit is one, all zeros if not.
pub(super) fn mask(bit: u128) -> u128 {
    (bit & 1).wrapping_neg()
}

/// Garbles an AND gate in every lane. `left` and `right` are labels for zero, and so is what is written to `out`; the
/// opposite of an operand is meant where its flag says so, and then its label for zero is the one for one.
pub fn garble_and(
    hash: &mut LabelHash,
    delta: u128,
    first_gate: u64,
    [left, right]: [(&[u128], bool); 2],
    out: &mut [u128],
    tables: &mut [u8],
) {
    let lanes = out.len();
    let [flip_left, flip_right] = [left.1, right.1].map(|negated| if negated { delta } else { 0 });
    let (left, right) = (&left.0[..lanes], &right.0[..lanes]);
    for lane in 0..lanes {
        let (a, b) = (left[lane] ^ flip_left, right[lane] ^ flip_right);
        hash.set(lane, a);
        hash.set(lanes + lane, a ^ delta);
        hash.set(2 * lanes + lane, b);
        hash.set(3 * lanes + lane, b ^ delta);
    }
    hash.run(4, lanes, first_gate);
    let (tables, _) = tables.as_chunks_mut::<TABLE_BYTES>();
    for (lane, (out, table)) in out.iter_mut().zip(tables).enumerate() {
        let (a, b) = (left[lane] ^ flip_left, right[lane] ^ flip_right);
        let [a0, a1, b0, b1] = [0, 1, 2, 3].map(|which| hash.get(which * lanes + lane));
        let table_g = a0 ^ a1 ^ (mask(b) & delta);
        let both = b0 ^ b1;
        let table_e = both ^ a;
        *out = a0 ^ (mask(a) & table_g) ^ b0 ^ (mask(b) & both);
        table[..16].copy_from_slice(&table_g.to_le_bytes());
        table[16..].copy_from_slice(&table_e.to_le_bytes());
    }
}

/// Evaluates an AND gate in every lane: from the labels that the evaluator has to the one that it gets.
pub fn evaluate_and(
    hash: &mut LabelHash,
    first_gate: u64,
    [left, right]: [&[u128]; 2],
    out: &mut [u128],
    tables: &[u8],
) {
    let lanes = out.len();
    let (left, right) = (&left[..lanes], &right[..lanes]);
    for lane in 0..lanes {
        hash.set(lane, left[lane]);
        hash.set(lanes + lane, right[lane]);
    }
    hash.run(2, lanes, first_gate);
    let (tables, _) = tables.as_chunks::<TABLE_BYTES>();
    for (lane, (out, table)) in out.iter_mut().zip(tables).enumerate() {
        let (a, b) = (left[lane], right[lane]);
        let (halves, _) = table.as_chunks::<16>();
        let [table_g, table_e] = [0, 1].map(|half| u128::from_le_bytes(halves[half]));
        *out = hash.get(lane) ^ (mask(a) & table_g) ^ hash.get(lanes + lane) ^ (mask(b) & (table_e ^ a));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;
    use rand_core::Rng;

    const KEY: [u8; 16] = [9; 16];

    /// The paper's two half gates for one gate, written with bits and branches: tables and the label for zero of the result.
    fn plain_garble(a: u128, b: u128, delta: u128, gate: u128) -> ([u128; 2], u128) {
        let mut hash = LabelHash::new(&KEY);
        let (p_a, p_b) = (a & 1 == 1, b & 1 == 1);
        let (mut generator, mut evaluator) = (0, 0);
        // The generator's half: T_G = H(A0) + H(A1) + p_b Delta; W_G = H(A0), and T_G besides if p_a.
        let table_g = hash.hash(a, 2 * gate) ^ hash.hash(a ^ delta, 2 * gate) ^ if p_b { delta } else { 0 };
        generator ^= hash.hash(a, 2 * gate);
        if p_a {
            generator ^= table_g;
        }
        // The evaluator's half: T_E = H(B0) + H(B1) + A0; W_E = H(B0), and T_E + A0 besides if p_b.
        let table_e = hash.hash(b, 2 * gate + 1) ^ hash.hash(b ^ delta, 2 * gate + 1) ^ a;
        evaluator ^= hash.hash(b, 2 * gate + 1);
        if p_b {
            evaluator ^= table_e ^ a;
        }
        ([table_g, table_e], generator ^ evaluator)
    }

    fn label(rng: &mut impl Rng) -> u128 {
        u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())
    }

    #[test]
    fn gates_are_those_of_the_paper_in_every_lane() {
        let mut rng = rng(1);
        let delta = label(&mut rng) | 1;
        for lanes in [1, 3, 32] {
            for negated in [[false, false], [true, false], [false, true], [true, true]] {
                let [left, right] = [(); 2].map(|()| (0..lanes).map(|_| label(&mut rng)).collect::<Vec<_>>());
                let (mut out, mut tables) = (vec![0; lanes], vec![0; TABLE_BYTES * lanes]);
                let operands = [(&left[..], negated[0]), (&right[..], negated[1])];
                garble_and(&mut LabelHash::new(&KEY), delta, 77, operands, &mut out, &mut tables);
                for lane in 0..lanes {
                    let flip = |label: u128, negated: bool| if negated { label ^ delta } else { label };
                    let (a, b) = (flip(left[lane], negated[0]), flip(right[lane], negated[1]));
                    let (expected, zero) = plain_garble(a, b, delta, 77 + lane as u128);
                    let bytes: Vec<u8> = expected.iter().flat_map(|table| table.to_le_bytes()).collect();
                    assert_eq!(tables[TABLE_BYTES * lane..][..TABLE_BYTES], bytes);
                    assert_eq!(out[lane], zero);
                }
            }
        }
    }

    /// All four pairs of bits, all combinations of the labels' lowest bits: the evaluator ends with the label of the AND.
    #[test]
    fn the_evaluator_gets_the_label_of_the_and_and_never_the_other() {
        let mut rng = rng(2);
        for case in 0..256_u128 {
            let delta = label(&mut rng) | 1;
            let (a, b) = (label(&mut rng) & !1 | case >> 2 & 1, label(&mut rng) & !1 | case >> 3 & 1);
            let (x, y) = (case & 1, case >> 1 & 1);
            let negated = [case >> 4 & 1 == 1, case >> 5 & 1 == 1];
            let (mut zero, mut got, mut tables) = ([0], [0], [0; TABLE_BYTES]);
            let mut hash = LabelHash::new(&KEY);
            garble_and(&mut hash, delta, 5, [(&[a], negated[0]), (&[b], negated[1])], &mut zero, &mut tables);
            let active = [[a ^ (mask(x) & delta)], [b ^ (mask(y) & delta)]];
            evaluate_and(&mut hash, 5, [&active[0], &active[1]], &mut got, &tables);
            let and = (x ^ u128::from(negated[0])) & (y ^ u128::from(negated[1]));
            assert_eq!(got[0], zero[0] ^ (mask(and) & delta), "case {case}");
        }
    }

    #[test]
    fn another_gate_number_gives_other_tables() {
        let tables = [1, 2].map(|gate| {
            let (mut out, mut tables) = ([0], [0; TABLE_BYTES]);
            garble_and(&mut LabelHash::new(&KEY), 1, gate, [(&[4], false), (&[8], false)], &mut out, &mut tables);
            (out, tables)
        });
        assert_ne!(tables[0], tables[1]);
    }
}
