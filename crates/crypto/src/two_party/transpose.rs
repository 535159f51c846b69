//! Turns a square of 128 x 128 bits: rows become columns.

/// Exchanges bit j of row i and bit i of row j, for all i and j, by exchanging ever smaller blocks (Warren, Hacker's
/// Delight, section 7-3). Constant time.
pub(super) fn transpose(rows: &mut [u128; 128]) {
    let mut width = 64;
    let mut low = u128::MAX >> 64;
    while width > 0 {
        let mut top = 0;
        while top < 128 {
            for i in top..top + width {
                let exchange = (rows[i] >> width ^ rows[i + width]) & low;
                rows[i + width] ^= exchange;
                rows[i] ^= exchange << width;
            }
            top += 2 * width;
        }
        width /= 2;
        low ^= low << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;
    use rand_core::Rng;

    #[test]
    fn every_bit_changes_its_row_for_its_column() {
        let mut rng = rng(1);
        let before: [u128; 128] =
            std::array::from_fn(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()));
        let mut after = before;
        transpose(&mut after);
        for (i, row) in before.iter().enumerate() {
            for (j, column) in after.iter().enumerate() {
                assert_eq!(row >> j & 1, column >> i & 1, "row {i}, column {j}");
            }
        }
    }
}
