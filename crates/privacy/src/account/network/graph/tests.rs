//! Pairs of a graph against dense computations.

use super::super::testing::{dense, random_graph};
use super::*;

type Matrix = Vec<Vec<f64>>;

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let entry = |row: &Vec<f64>, column: usize| row.iter().zip(b).map(|(x, other)| x * other[column]).sum();
    a.iter().map(|row| (0..b[0].len()).map(|column| entry(row, column)).collect()).collect()
}

fn combined(a: f64, x: &Matrix, b: f64, y: &Matrix) -> Matrix {
    x.iter().zip(y).map(|(x, y)| x.iter().zip(y).map(|(x, y)| a * x + b * y).collect()).collect()
}

/// P_0 .. P_{T-1} of W, as dense matrices.
fn polynomials(gossip: &Gossip, rounds: usize, gamma: f64) -> Vec<Matrix> {
    let w = dense(gossip);
    let identity: Matrix =
        (0..w.len()).map(|a| (0..w.len()).map(|b| if a == b { 1.0 } else { 0.0 }).collect()).collect();
    let mut all = vec![identity, w.clone()];
    while all.len() < rounds {
        let (now, before) = (&all[all.len() - 1], &all[all.len() - 2]);
        all.push(combined(gamma, &product(&w, now), 1.0 - gamma, before));
    }
    all.truncate(rounds);
    all
}

/// The squared projections of unit vectors onto the span of rows, by elimination with the largest pivot.
fn projections(mut rows: Matrix) -> Vec<f64> {
    let norm = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>().sqrt();
    rows.iter_mut().for_each(|row| {
        let size = norm(row);
        row.iter_mut().for_each(|x| *x /= size);
    });
    let mut squares = vec![0.0; rows[0].len()];
    while let Some(place) = (0..rows.len()).max_by(|&a, &b| norm(&rows[a]).total_cmp(&norm(&rows[b]))) {
        let mut pivot = rows.swap_remove(place);
        let size = norm(&pivot);
        if size < 1e-9 {
            break;
        }
        pivot.iter_mut().for_each(|x| *x /= size);
        squares.iter_mut().zip(&pivot).for_each(|(square, x)| *square += x * x);
        for _ in 0..2 {
            for row in &mut rows {
                let part: f64 = row.iter().zip(&pivot).map(|(x, p)| x * p).sum();
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= part * p);
            }
        }
    }
    squares
}

#[test]
fn exposures_and_the_papers_formula_are_those_of_dense_matrices() {
    for seed in 0..50 {
        let members = 4 + seed as usize % 9;
        let rounds = 1 + seed as usize % 4;
        // Every other graph is mixed by Chebyshev's polynomials: the span does not change.
        let gamma = if seed % 2 == 0 { 1.0 } else { 1.3 };
        let gossip = random_graph(members, seed);
        let powers = polynomials(&gossip, rounds, gamma);
        let paper = PaperGossip::new(&gossip, rounds, gamma);
        let rows: Vec<Vec<f64>> = (0..members).map(|source| paper.row(source)).collect();
        for observer in 0..members {
            let mut seen = vec![powers[0][observer].clone()];
            let mut added = vec![0.0; members];
            for power in &powers {
                for neighbour in gossip.neighbours(observer) {
                    let row = &power[neighbour];
                    let square: f64 = row.iter().map(|x| x * x).sum();
                    added.iter_mut().zip(row).for_each(|(added, x)| *added += x * x / square);
                    seen.push(row.clone());
                }
            }
            let truth = projections(seen);
            let found = gossip.exposure(&[observer], rounds);
            for source in 0..members {
                let (found, truth) = (found[source], truth[source].min(1.0));
                assert!(
                    (found - truth).abs() < 1e-9 && found >= truth - 1e-13,
                    "{seed}: {source} to {observer}: {found} {truth}"
                );
                let (row, dense) = (rows[source][observer], added[source]);
                assert!((row - dense).abs() < 1e-9, "{seed}: {source} to {observer}: {row} {dense}");
            }
        }
    }
}

/// A neighbour's first message is its own noisy value, and its second an average with its other neighbour's: together they give that
/// one away, while the sum of what each tells alone says less.
#[test]
fn two_messages_tell_more_than_the_papers_sum() {
    let path = Gossip::new(3, &[(0, 1, 1.0 / 3.0), (1, 2, 1.0 / 3.0)]).expect("valid");
    let exact = path.exposure(&[0], 2)[2];
    let paper = PaperGossip::new(&path, 2, 1.0).row(2)[0];
    assert_eq!(exact, 1.0);
    assert!((paper - 1.0 / 3.0).abs() < 1e-12, "{paper}");
    // On a longer path everyone within reach is given away, and nobody beyond.
    let edges: Vec<(usize, usize)> = (1..40).map(|k| (k - 1, k)).collect();
    let exposure = Gossip::metropolis(40, &edges).expect("valid").exposure(&[0], 12);
    assert!(exposure[..=12].iter().all(|&x| x == 1.0) && exposure[13..].iter().all(|&x| x == 0.0), "{exposure:?}");
}

#[test]
fn on_the_mean_over_members_what_is_learned_is_one_for_each_message() {
    let gossip = random_graph(60, 3);
    for observer in [0, 17, 59] {
        let degree = gossip.neighbours(observer).count();
        for rounds in 1..5 {
            let total: f64 = gossip.exposure(&[observer], rounds).iter().sum();
            // Its own value, and a message from each neighbour in each round; no more, whatever the weights.
            let most = (1 + degree * rounds) as f64;
            assert!(total <= most + 1e-6, "{observer} {rounds}: {total} of {most}");
            assert!(
                rounds > 2 || (total - most).abs() < 1e-6 || total > 59.0,
                "{observer} {rounds}: {total} of {most}"
            );
        }
    }
}

/// The shape of the authors' figure: the further, the less.
#[test]
fn what_is_learned_falls_with_the_distance() {
    let gossip = random_graph(200, 11);
    let (observer, rounds) = (5, 6);
    let distances = gossip.distances(&[observer]);
    let exposure = gossip.exposure(&[observer], rounds);
    let paper = PaperGossip::new(&gossip, rounds, 1.0);
    let told: Vec<f64> = (0..200).map(|source| paper.row(source)[observer]).collect();
    let mean = |values: &[f64], distance: usize| {
        let at: Vec<f64> =
            (0..200).filter(|&member| distances[member] == Some(distance)).map(|member| values[member]).collect();
        at.iter().sum::<f64>() / at.len() as f64
    };
    for values in [&exposure, &told] {
        let means: Vec<f64> = (1..4).map(|distance| mean(values, distance)).collect();
        assert!(means.windows(2).all(|pair| pair[1] < pair[0]), "{means:?}");
    }
    let epsilons = gossip.epsilons(&[observer], rounds, 2.0, 1e-6);
    assert!(epsilons.iter().zip(&exposure).all(|(epsilon, square)| (*epsilon == 0.0) == (*square == 0.0)));
    let more = gossip.exposure(&[observer, 9], rounds);
    assert!(more.iter().zip(&exposure).all(|(more, one)| more >= &(one - 1e-9)), "two see no less than one");
}
