//! Training points, test points, and three folds of the training points.
//!
//! | data set | training points |
//! |---|---|
//! | `computer_buyers` | of each buyer the first 5 to 10 computers, in one random order of computers for all |
//! | `school` | a published split |
//! | `har`, `vehicle` | of each user a share at random |
//!
//! Folds are made as the test set is: where no buyer has seen a test computer, no buyer has seen one of the fold that is held out. Elsewhere
//! each user's points go to the folds by turns, in random order.

use super::users::Users;
use sottovoce_algorithms::Dataset;
use sottovoce_core::{Coin, PeerId};

/// Folds of a cross-validation.
pub const FOLDS: usize = 3;

/// How points are divided into training and test points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The first few in an order that all users share; how many is drawn for each user, ends included.
    SameOrder {
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// A published split, counted from 1.
    Published(usize),
    /// Of each user this share, one point at least.
    Share(f64),
}

/// Points to learn from and points to be judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// To learn from.
    pub train: Dataset,
    /// To be judged by.
    pub test: Dataset,
}

/// A split with its folds.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Training and test points.
    pub parts: Parts,
    /// By fold: the other training points, and those of the fold.
    pub folds: Vec<Parts>,
}

/// The events of the coins.
const ORDER: u64 = 0x006f_7264_6572;
const SIZE: u64 = 0x7369_7a65;
const FOLD: u64 = 0x666f_6c64;

impl Split {
    /// The split of a seed. A published split does not depend on it, but its folds do.
    pub fn new(users: &Users, rule: Rule, seed: u64) -> Self {
        let points = &users.points;
        let sizes: Vec<usize> = (0..points.agents() as u32).map(|id| points.size(PeerId(id))).collect();
        // By user: its training points with the fold of each, and its test points.
        let mut train: Vec<Vec<(usize, usize)>> = Vec::new();
        let mut test: Vec<Vec<usize>> = Vec::new();
        let everyone = Coin::new(seed, u32::MAX, ORDER);
        for (user, &size) in sizes.iter().enumerate() {
            let mut own = Coin::new(seed, user as u32, FOLD);
            let by_turns = |chosen: Vec<usize>, coin: &mut Coin| {
                let order = shuffled(chosen.len(), coin);
                order.into_iter().enumerate().map(|(turn, k)| (chosen[k], (turn + user) % FOLDS)).collect()
            };
            let (mut chosen, rest): (Vec<(usize, usize)>, Vec<usize>) = match rule {
                Rule::SameOrder { least, most } => {
                    let order = shuffled(size, &mut everyone.clone());
                    let count = least + Coin::new(seed, user as u32, SIZE).below(most - least + 1);
                    let count = count.min(size);
                    let chosen = order[..count].iter().enumerate().map(|(turn, &k)| (k, turn % FOLDS)).collect();
                    (chosen, order[count..].to_vec())
                }
                Rule::Published(number) => {
                    let published = users.published.as_ref().expect("splits are published for this data set");
                    let is_train = |k: &usize| published[user][*k][number - 1];
                    let (chosen, rest): (Vec<usize>, Vec<usize>) = (0..size).partition(is_train);
                    (by_turns(chosen, &mut own), rest)
                }
                Rule::Share(share) => {
                    let order = shuffled(size, &mut Coin::new(seed, user as u32, ORDER));
                    let count = ((share * size as f64).round() as usize).clamp(1.min(size), size);
                    (by_turns(order[..count].to_vec(), &mut own), order[count..].to_vec())
                }
            };
            chosen.sort_unstable();
            train.push(chosen);
            test.push(rest);
        }
        let of_train = |keep: &dyn Fn(usize) -> bool| {
            let of_user = |own: &Vec<(usize, usize)>| own.iter().filter(|(_, f)| keep(*f)).map(|(k, _)| *k).collect();
            subset(points, &train.iter().map(of_user).collect::<Vec<Vec<usize>>>())
        };
        let fold = |fold: usize| Parts { train: of_train(&|f| f != fold), test: of_train(&|f| f == fold) };
        Split {
            parts: Parts { train: of_train(&|_| true), test: subset(points, &test) },
            folds: (0..FOLDS).map(fold).collect(),
        }
    }
}

/// 0, 1, .. in random order.
fn shuffled(count: usize, coin: &mut Coin) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for k in 0..count {
        let other = k + coin.below(count - k);
        order.swap(k, other);
    }
    order
}

/// Of each user some points, in the order of the data.
fn subset(points: &Dataset, chosen: &[Vec<usize>]) -> Dataset {
    let mut data = Dataset::new(points.dimension());
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for (user, chosen) in chosen.iter().enumerate() {
        let own = points.points(PeerId(user as u32));
        features.clear();
        labels.clear();
        let mut chosen = chosen.clone();
        chosen.sort_unstable();
        for k in chosen {
            features.extend_from_slice(&own.features[k * own.dimension..][..own.dimension]);
            labels.push(own.labels[k]);
        }
        data.push_agent(&features, &labels);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Users with `sizes` points, the feature of which is their number; one published split that keeps even points.
    fn users(sizes: &[usize]) -> Users {
        let mut points = Dataset::new(1);
        for &size in sizes {
            let features: Vec<f64> = (0..size).map(|k| k as f64).collect();
            points.push_agent(&features, &vec![1.0; size]);
        }
        let published = sizes.iter().map(|&size| (0..size).map(|k| vec![k % 2 == 1, k % 2 == 0]).collect()).collect();
        Users { points, published: Some(published) }
    }

    fn of(data: &Dataset, user: u32) -> Vec<usize> {
        data.points(PeerId(user)).features.iter().map(|x| *x as usize).collect()
    }

    const RULES: [Rule; 3] = [Rule::SameOrder { least: 5, most: 10 }, Rule::Published(2), Rule::Share(0.2)];

    #[test]
    fn every_point_is_in_one_part_and_every_training_point_is_held_out_once() {
        let users = users(&[20, 20, 20, 20]);
        for rule in RULES {
            let split = Split::new(&users, rule, 3);
            assert_ne!(split.parts.train, Split::new(&users, Rule::Share(0.5), 4).parts.train);
            for user in 0..4 {
                let sorted = |mut all: Vec<usize>| {
                    all.sort_unstable();
                    all
                };
                let (train, test) = (of(&split.parts.train, user), of(&split.parts.test, user));
                assert_eq!(sorted([&train[..], &test[..]].concat()), (0..20).collect::<Vec<_>>(), "{rule:?}");
                let held_out: Vec<Vec<usize>> = split.folds.iter().map(|fold| of(&fold.test, user)).collect();
                assert_eq!(sorted(held_out.concat()), train, "{rule:?}");
                for (fold, held_out) in split.folds.iter().zip(held_out) {
                    assert_eq!(sorted([of(&fold.train, user), held_out].concat()), train, "{rule:?}");
                }
            }
        }
        assert_eq!(
            of(&Split::new(&users, Rule::Published(2), 1).parts.train, 1),
            (0..20).step_by(2).collect::<Vec<_>>()
        );
        assert_eq!(Split::new(&users, Rule::Share(0.2), 1).parts.train.len(), 4 * 4);
    }

    #[test]
    fn a_user_with_few_points_learns_from_one_at_least() {
        let split = Split::new(&users(&[1, 2, 0, 40]), Rule::Share(0.1), 1);
        let sizes: Vec<usize> = (0..4).map(|user| split.parts.train.size(PeerId(user))).collect();
        assert_eq!(sizes, [1, 1, 0, 4]);
    }

    /// The computers of a buyer are the first ones of an order that all share, and what is held out in a fold has been seen by nobody there.
    #[test]
    fn buyers_share_one_order_and_nobody_has_seen_a_computer_that_is_held_out() {
        let users = users(&[20; 60]);
        let split = Split::new(&users, RULES[0], 7);
        let mut seen: Vec<BTreeSet<usize>> =
            (0..60).map(|user| of(&split.parts.train, user).into_iter().collect()).collect();
        seen.sort_by_key(BTreeSet::len);
        assert!(seen.windows(2).all(|pair| pair[0].is_subset(&pair[1])));
        let sizes: BTreeSet<usize> = seen.iter().map(BTreeSet::len).collect();
        assert_eq!(sizes, (5..=10).collect());
        for fold in &split.folds {
            let all = |data: &Dataset| (0..60).flat_map(|user| of(data, user)).collect::<BTreeSet<usize>>();
            assert!(all(&fold.train).is_disjoint(&all(&fold.test)) && !fold.test.is_empty());
        }
    }
}
