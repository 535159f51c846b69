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
use sottovoce_algorithms::cholesky;
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
const START: u64 = 0x0061_6c73;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratings that are exactly u_i.v_j in three dimensions, seen in part: the features explain the others too.
    #[test]
    fn features_explain_ratings_that_they_were_not_made_of() {
        let (users, items, rank) = (60, 50, 3);
        let mut coin = Coin::new(1, 0, 0);
        let mut vectors =
            |count: usize| (0..count).map(|_| [0; 3].map(|_| 2.0 * coin.unit() - 1.0)).collect::<Vec<_>>();
        let (of_users, of_items) = (vectors(users), vectors(items));
        let exact = |i: usize, j: usize| (0..3).map(|k| of_users[i][k] * of_items[j][k]).sum::<f64>();
        let mut coin = Coin::new(2, 0, 0);
        let mut seen = vec![vec![false; items]; users];
        seen.iter_mut().flatten().for_each(|seen| *seen = coin.below(2) == 0);
        // Nobody has seen the last film.
        seen.iter_mut().for_each(|seen| seen[items - 1] = false);
        let ratings: Vec<Vec<(u32, f64)>> =
            (0..users).map(|i| (0..items).filter(|&j| seen[i][j]).map(|j| (j as u32, exact(i, j))).collect()).collect();
        let als = Als { rank, ridge: 1e-6, sweeps: 100 };
        let features = als.features(items, &ratings, 1);
        assert_eq!(features.row(items - 1), [0.0; 3]);
        assert_eq!(features.values(), als.features(items, &ratings, 1).values(), "the seed says it all");
        // Each user's model by least squares on the films it has seen, and its error on the others.
        let mut models = Rows::zeros(users, rank);
        als.solve(&ratings, &features, &mut models);
        for (i, seen) in seen.iter().enumerate() {
            for j in (0..items - 1).filter(|&j| !seen[j]) {
                let guess: f64 = (0..3).map(|k| models.row(i)[k] * features.row(j)[k]).sum();
                assert!((guess - exact(i, j)).abs() < 0.02, "{i} {j}: {guess} for {}", exact(i, j));
            }
        }
    }

    /// One user, one film: (r - u v)^2 + rho (u^2 + v^2) is least at u = v, u^2 = r - rho.
    #[test]
    fn one_rating_by_hand() {
        let features = Als { rank: 1, ridge: 0.1, sweeps: 200 }.features(1, &[vec![(0, 2.0)]], 5);
        assert!((features.row(0)[0].abs() - 1.9f64.sqrt()).abs() < 1e-9, "{:?}", features.row(0));
    }
}
