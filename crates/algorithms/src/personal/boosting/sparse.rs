//! A vector of few numbers, as an agent keeps it of a neighbour.

use serde::{Deserialize, Serialize};

/// Numbers that are not zero, by increasing index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sparse {
    entries: Vec<(u32, f64)>,
}

impl Sparse {
    /// The zero vector. Keeps its memory.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds a number behind all others.
    ///
    /// # Panics
    /// When its index is not the largest.
    pub fn push(&mut self, index: u32, value: f64) {
        assert!(self.entries.last().is_none_or(|last| last.0 < index), "by increasing index");
        self.entries.push((index, value));
    }

    /// What is stored.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.entries.iter().copied()
    }

    /// Whether it can be the model of one of `predictors` predictors with at most this |.|_1.
    pub(crate) fn is_inside(&self, predictors: usize, radius: f64) -> bool {
        let sorted = self.entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        sorted
            && self.entries.last().is_none_or(|last| (last.0 as usize) < predictors)
            && self.entries.iter().map(|entry| entry.1.abs()).sum::<f64>() <= radius
    }

    /// self <- keep self + add e_index, with the arithmetic of [`move_towards`], so that both end with the same bits.
    pub fn move_towards(&mut self, keep: f64, index: u32, add: f64) {
        self.entries.iter_mut().for_each(|entry| entry.1 *= keep);
        match self.entries.binary_search_by_key(&index, |entry| entry.0) {
            Ok(at) => self.entries[at].1 += add,
            Err(at) => self.entries.insert(at, (index, add)),
        }
    }

    /// out += factor self.
    pub fn add_to(&self, factor: f64, out: &mut [f64]) {
        for &(index, value) in &self.entries {
            out[index as usize] += factor * value;
        }
    }
}

/// theta <- keep theta + add e_index.
pub fn move_towards(theta: &mut [f64], keep: f64, index: u32, add: f64) {
    theta.iter_mut().for_each(|value| *value *= keep);
    theta[index as usize] += add;
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_core::Coin;

    #[test]
    fn few_numbers_follow_all_numbers_to_the_bit() {
        let mut coin = Coin::new(1, 0, 0);
        let (mut sparse, mut dense) = (Sparse::default(), vec![0.0; 30]);
        for _ in 0..2000 {
            let (keep, index, add) = (coin.unit(), coin.below(30) as u32, coin.unit() - 0.5);
            sparse.move_towards(keep, index, add);
            move_towards(&mut dense, keep, index, add);
        }
        let mut back = vec![0.0; 30];
        sparse.add_to(1.0, &mut back);
        assert_eq!(back, dense);
        assert!(sparse.iter().map(|entry| entry.0).is_sorted());
    }
}
