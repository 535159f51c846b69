//! Cholesky factors of small dense symmetric positive definite matrices.
//!
//! A matrix is n x n, row after row; only its lower triangle is read, and it is replaced by the factor L of
//! A = L L^T. The work is done in dot products of row pieces, a tile at a time, so that both pieces stay in cache.

use crate::vector::dot;

/// The matrix is not positive definite to working precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPositive;

/// Rows and columns of a tile.
const TILE: usize = 48;
/// Columns that one pass over a tile takes: two pieces of a tile's rows are 2 x 48 x 192 x 8 = 147 kB.
const DEPTH: usize = 192;
/// The smallest pivot, as a fraction of the diagonal entry it came from.
const PIVOT_MIN: f64 = 4.0 * f64::EPSILON;

/// Replaces the lower triangle of `a` by its Cholesky factor.
pub fn factor(a: &mut [f64], n: usize) -> Result<(), NotPositive> {
    assert_eq!(a.len(), n * n, "a square matrix");
    for rows in (0..n).step_by(TILE) {
        let rows_end = (rows + TILE).min(n);
        for columns in (0..=rows).step_by(TILE) {
            let columns_end = (columns + TILE).min(n);
            // A_IJ -= L_I,<J L_J,<J^T
            for depth in (0..columns).step_by(DEPTH) {
                let depth_end = (depth + DEPTH).min(columns);
                subtract_products(a, n, (rows, rows_end), (columns, columns_end), (depth, depth_end));
            }
            finish_tile(a, n, (rows, rows_end), (columns, columns_end))?;
        }
    }
    Ok(())
}

/// What is left inside the tile once everything to its left has been subtracted.
fn finish_tile(a: &mut [f64], n: usize, rows: (usize, usize), columns: (usize, usize)) -> Result<(), NotPositive> {
    for i in rows.0..rows.1 {
        for j in columns.0..columns.1.min(i + 1) {
            let inside = dot(&a[i * n + columns.0..i * n + j], &a[j * n + columns.0..j * n + j]);
            let rest = a[i * n + j] - inside;
            a[i * n + j] = if j < i {
                rest / a[j * n + j]
            } else {
                // The diagonal was rest + |L_i|^2; a pivot of its rounding error means singular. The comparison
                // refuses NaN too.
                let diagonal = rest + dot(&a[i * n..i * n + i], &a[i * n..i * n + i]);
                if !(rest > PIVOT_MIN * diagonal && rest.is_finite()) {
                    return Err(NotPositive);
                }
                rest.sqrt()
            };
        }
    }
    Ok(())
}

/// A[i][j] -= L[i][depth] . L[j][depth] for all i, j of the tile in the lower triangle, two rows by four at a time.
fn subtract_products(a: &mut [f64], n: usize, rows: (usize, usize), columns: (usize, usize), depth: (usize, usize)) {
    let piece = |a: &[f64], row: usize| -> [f64; DEPTH] {
        let mut out = [0.0; DEPTH];
        out[..depth.1 - depth.0].copy_from_slice(&a[row * n + depth.0..row * n + depth.1]);
        out
    };
    let mut i = rows.0;
    while i < rows.1 {
        let pair = i + 1 < rows.1;
        let left = [piece(a, i), piece(a, if pair { i + 1 } else { i })];
        let last = if pair { i + 1 } else { i };
        let mut j = columns.0;
        while j < columns.1.min(last + 1) {
            let count = (columns.1 - j).min(4);
            let right: [&[f64]; 4] =
                std::array::from_fn(|k| &a[(j + k.min(count - 1)) * n + depth.0..(j + k.min(count - 1)) * n + depth.1]);
            let products = products_2x4(&left, right);
            for (row, products) in products.iter().enumerate().take(1 + usize::from(pair)) {
                for (k, product) in products.iter().enumerate().take(count) {
                    if j + k <= i + row {
                        a[(i + row) * n + j + k] -= product;
                    }
                }
            }
            j += count;
        }
        i += 2;
    }
}

/// Eight dot products at once, so that each number that is loaded is used several times.
fn products_2x4(left: &[[f64; DEPTH]; 2], right: [&[f64]; 4]) -> [[f64; 4]; 2] {
    let mut sums = [[[0.0; 2]; 4]; 2];
    let count = right[0].len() / 2;
    // Slices of one length, so that the loop needs no checks.
    let right_lanes = right.map(|row| &row.as_chunks::<2>().0[..count]);
    let left_lanes = left.each_ref().map(|row| &row.as_chunks::<2>().0[..count]);
    for at in 0..count {
        for row in 0..2 {
            for column in 0..4 {
                for lane in 0..2 {
                    sums[row][column][lane] += left_lanes[row][at][lane] * right_lanes[column][at][lane];
                }
            }
        }
    }
    std::array::from_fn(|row| {
        std::array::from_fn(|column| {
            let odd = right[column].get(2 * count).map_or(0.0, |last| left[row][2 * count] * last);
            sums[row][column][0] + sums[row][column][1] + odd
        })
    })
}

/// Replaces `b` by the solution of L L^T x = b.
pub fn solve(l: &[f64], n: usize, b: &mut [f64]) {
    assert_eq!((l.len(), b.len()), (n * n, n), "a factor and a vector of its size");
    for i in 0..n {
        b[i] = (b[i] - dot(&l[i * n..i * n + i], &b[..i])) / l[i * n + i];
    }
    // By rows of L from the last: what x_i contributes to the equations above is subtracted at once.
    for i in (0..n).rev() {
        let x = b[i] / l[i * n + i];
        b[i] = x;
        for (b, l) in b[..i].iter_mut().zip(&l[i * n..i * n + i]) {
            *b -= x * l;
        }
    }
}

/// Builds a matrix with `build` and factors it; as long as that fails, again with more added to the diagonal. A
/// singular positive semidefinite matrix thus costs a relative 1e-13 of its diagonal.
pub(crate) fn factor_regularized(a: &mut [f64], n: usize, build: impl Fn(&mut [f64])) {
    let mut added = 0.0;
    loop {
        build(a);
        let largest = (0..n).fold(f64::MIN_POSITIVE, |most: f64, k| most.max(a[k * n + k]));
        for k in 0..n {
            a[k * n + k] += added * largest;
        }
        // The last resort is diagonally dominant, so this ends.
        if factor(a, n).is_ok() || added > n as f64 {
            return;
        }
        added = if added == 0.0 { 1e-13 } else { added * 100.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::largest_difference;
    use sottovoce_core::Coin;

    fn random_spd(n: usize, seed: u64) -> Vec<f64> {
        let mut coin = Coin::new(seed, 0, 0);
        let rows: Vec<f64> = (0..n * n).map(|_| coin.unit() - 0.5).collect();
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                a[i * n + j] = dot(&rows[i * n..][..n], &rows[j * n..][..n]) + if i == j { 0.1 } else { 0.0 };
            }
        }
        a
    }

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix_and_solutions_solve() {
        for n in [1, 2, 3, 7, 47, 48, 49, 50, 97, 250, 301, 500] {
            let a = random_spd(n, n as u64);
            let mut l = a.clone();
            factor(&mut l, n).expect("positive definite");
            for i in 0..n {
                for j in 0..=i {
                    let product = dot(&l[i * n..][..=j], &l[j * n..][..=j]);
                    assert!((product - a[i * n + j]).abs() < 1e-11, "n {n} at {i},{j}");
                }
            }
            let truth: Vec<f64> = (0..n).map(|k| (k % 7) as f64 - 3.0).collect();
            let mut b: Vec<f64> = (0..n).map(|i| dot(&a[i * n..][..n], &truth)).collect();
            solve(&l, n, &mut b);
            assert!(largest_difference(&b, &truth) < 1e-8, "n {n}");
        }
    }

    #[test]
    fn what_is_not_positive_definite_is_refused() {
        assert_eq!(factor(&mut [1.0, 0.0, 2.0, 1.0], 2), Err(NotPositive));
        assert_eq!(factor(&mut [f64::NAN], 1), Err(NotPositive));
        assert_eq!(factor(&mut [0.0], 1), Err(NotPositive));
    }

    #[test]
    fn a_singular_matrix_is_solved_where_it_can_be() {
        let mut l = vec![0.0; 4];
        factor_regularized(&mut l, 2, |a| a.copy_from_slice(&[1.0, 1.0, 1.0, 1.0]));
        let mut b = [1.0, 1.0];
        solve(&l, 2, &mut b);
        assert!((b[0] + b[1] - 1.0).abs() < 1e-3, "{b:?}");
    }
}
