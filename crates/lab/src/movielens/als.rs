//! Features of films by alternating least squares (Zhou et al. 2008), from ratings.
//!
//! min over U, V of sum over ratings (r_ij - u_i.v_j)^2 + rho ( sum_i m_i |u_i|^2 + sum_j n_j |v_j|^2 )
//!
//! m_i and n_j being the numbers of ratings of user i and of film j. In turn each u_i is solved for with V fixed, and each v_j with
//! U fixed. What is kept is V: the films' features. A film that nobody rated has the zero vector.
//!
//! # Privacy
//! None. V is made of everyone's training ratings; whoever calls it public assumes that, and must say so.

use serde::{Deserialize, Serialize};
use sottovoce_algorithms::reference::cholesky;
use sottovoce_core::{Coin, Rows};

/// | name | symbol | in the paper |
/// |---|---|---|
/// | rank | p | 20 |
/// | ridge | rho | not said |
/// | sweeps | | not said |
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Als {
    /// p.
    pub rank: usize,
    /// rho.
    pub ridge: f64,
    /// How often all of U, then all of V, is solved for.
    pub sweeps: usize,
}

/// The event of the coins that the features start from.
const START: u64 = 0x616c_73;

impl Als {
    /// V, one row for each of `items`, from each user's (film, label) pairs.
    pub fn features(&self, items: usize, ratings: &[Vec<(u32, f64)>], seed: u64) -> Rows {
        let mut by_item: Vec<Vec<(u32, f64)>> = vec![Vec::new(); items];
        for (user, own) in ratings.iter().enumerate() {
            own.iter().for_each(|&(item, label)| by_item[item as usize].push((user as u32, label)));
        }
        let mut of_items = Rows::zeros(items, self.rank);
        for item in 0..items {
            let mut coin = Coin::new(seed, item as u32, START);
            of_items.row_mut(item).iter_mut().for_each(|value| *value = coin.unit() - 0.5);
        }
        let mut of_users = Rows::zeros(ratings.len(), self.rank);
        for _ in 0..self.sweeps {
            self.solve(ratings, &of_items, &mut of_users);
            self.solve(&by_item, &of_users, &mut of_items);
        }
        of_items
    }

    /// Every row of `out` by least squares on the rows of `other` that it has ratings with.
    fn solve(&self, ratings: &[Vec<(u32, f64)>], other: &Rows, out: &mut Rows) {
        let p = self.rank;
        let mut gram = vec![0.0; p * p];
        for (k, own) in ratings.iter().enumerate() {
            let right = out.row_mut(k);
            right.fill(0.0);
            if own.is_empty() {
                continue;
            }
            gram.fill(0.0);
            for &(at, label) in own {
                let row = other.row(at as usize);
                for (a, line) in row.iter().zip(gram.chunks_exact_mut(p)) {
                    line.iter_mut().zip(row).for_each(|(entry, b)| *entry += a * b);
                }
                right.iter_mut().zip(row).for_each(|(sum, value)| *sum += label * value);
            }
            (0..p).for_each(|k| gram[k * p + k] += self.ridge * own.len() as f64);
            cholesky::factor(&mut gram, p).expect("a Gram matrix with a positive ridge");
            cholesky::solve(&gram, p, right);
        }
    }
}
