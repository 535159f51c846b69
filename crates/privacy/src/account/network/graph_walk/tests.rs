//! Walks over graphs against every path of small ones, and against dense matrices.

use super::super::{
    graph::WorstAndMean,
    iteration::Iteration,
    staircase::staircase,
    testing::{dense, random_graph},
    walk::Walk,
};
use super::pairs::{Order, SHORT};
use super::*;

/// E exp(lambda X) over every path, from any holder on.
fn every_path(graph: &Gossip, pair: (usize, usize), hops: usize, contributions: usize, lambda: f64) -> f64 {
    let (members, weights) = (graph.members(), dense(graph));
    let mut sum = 0.0;
    let mut path = vec![0; hops];
    for code in 0..members.pow(hops as u32) {
        let mut rest = code;
        path.iter_mut().for_each(|holder| (*holder, rest) = (rest % members, rest / members));
        let step = |pair: &[usize]| weights[pair[0]][pair[1]];
        let probability = path.windows(2).map(step).product::<f64>() / members as f64;
        if probability == 0.0 {
            continue;
        }
        let (mut cycle, mut length, mut made, mut cost) = (Vec::new(), 0, 0, 0.0);
        for &holder in &path {
            if holder == pair.1 {
                cost += staircase(&cycle, length);
                (cycle, length) = (Vec::new(), 0);
                continue;
            }
            length += 1;
            if holder == pair.0 && made < contributions {
                cycle.push(length);
                made += 1;
            }
        }
        sum += probability * libm::exp(lambda * (cost + staircase(&cycle, length)));
    }
    sum
}

#[test]
fn the_bound_is_above_the_sum_over_every_path() {
    let path: Vec<(usize, usize)> = vec![(0, 1), (1, 2), (2, 3), (3, 4)];
    let star: Vec<(usize, usize)> = vec![(0, 1), (0, 2), (0, 3), (3, 4), (1, 2)];
    for edges in [&path, &star] {
        let graph = Gossip::metropolis(5, edges).expect("valid");
        for pair in [(0, 1), (0, 4), (2, 3), (3, 0)] {
            for contributions in [1, 2, 3] {
                let accountant = GraphWalk::new(&graph, pair.0, pair.1, contributions).expect("valid");
                let all = GraphPairs::new(&graph, contributions, 2.0, 1e-6).expect("valid");
                for hops in [2, 5, 7] {
                    for lambda in [0.1, 1.0] {
                        let truth = libm::log(every_path(&graph, pair, hops, contributions as usize, lambda));
                        let found = accountant.log_moment(lambda);
                        assert!(found >= truth, "{pair:?} {contributions} {hops} {lambda}: {found} below {truth}");
                        let found = all.log_moment(&all.laws(pair.0)[pair.1], &Order::priced(1.0, lambda, 5));
                        assert!(found >= truth, "{pair:?} {contributions} {hops} {lambda}: {found} below {truth}");
                    }
                }
            }
        }
    }
}

#[test]
fn far_members_learn_less_and_nobody_more_than_locally() {
    let ring: Vec<(usize, usize)> = (0..30).map(|k| (k, (k + 1) % 30)).collect();
    let chords: Vec<(usize, usize)> = (0..15).map(|k| (k, k + 15)).collect();
    let graph = Gossip::metropolis(30, &[ring, chords].concat()).expect("valid");
    let at = |observer: usize| GraphWalk::new(&graph, 0, observer, 4).expect("valid").epsilon_at(3.0, 1e-6);
    let (near, far) = (at(1), at(8));
    let local = crate::gaussian_epsilon(2.0 / 3.0, 1e-6);
    assert!(far < 0.9 * near && near <= local, "{far} {near} {local}");
    let pairs = GraphPairs::new(&graph, 4, 3.0, 1e-6).expect("valid");
    let row = pairs.row(0);
    assert!(row[8] < row[1] && row.iter().all(|&epsilon| epsilon <= local) && row[0] == 0.0, "{row:?}");
    assert!(row[1] >= near * 0.9 && row[8] >= far * 0.9, "not far below what is composed jointly: {row:?}");
    let cut = Gossip::metropolis(4, &[(0, 1), (2, 3)]).expect("valid");
    let refused = GraphPairs::new(&cut, 4, 3.0, 1e-6).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("not connected"), "{refused}");
    assert!(GraphPairs::new(&graph, 0, 3.0, 1e-6).is_err() && GraphPairs::new(&graph, 4, 0.0, 1e-6).is_err());
    assert!(GraphPairs::new(&graph, 4, 3.0, 0.0).is_err());
    assert!(GraphWalk::new(&graph, 3, 3, 4).is_err() && GraphWalk::new(&graph, 3, 4, 0).is_err());
}

/// On the complete graph the other accountant composes the last contribution with those before it, and is below.
#[test]
fn on_the_complete_graph_it_is_above_the_accountant_of_that() {
    let members = 40;
    let weights: Vec<(usize, usize, f64)> =
        (0..members).flat_map(|a| (0..a).map(move |b| (a, b, 1.0 / members as f64))).collect();
    let graph = Gossip::new(members, &weights).expect("valid");
    let any = GraphWalk::new(&graph, 0, 1, 5).expect("valid").epsilon_at(4.0, 1e-6);
    let complete = Iteration::new(Walk::new(40, 1_000_000_000, 5).expect("valid")).epsilon_at(4.0, 1e-6);
    assert!(any >= complete && any < 1.6 * complete, "{any} {complete}");
}

/// First visits of u or v from u on, with a dense matrix that has neither.
fn dense_law(graph: &Gossip, pair: (usize, usize)) -> Vec<f64> {
    let (members, weights) = (graph.members(), dense(graph));
    let is_other = |member: &usize| *member != pair.0 && *member != pair.1;
    let mut law = vec![weights[pair.0][pair.0] + weights[pair.0][pair.1]];
    let mut unseen: Vec<f64> = (0..members).map(|w| if is_other(&w) { weights[pair.0][w] } else { 0.0 }).collect();
    for _ in 1..SHORT {
        let to = |end: usize| unseen.iter().enumerate().map(|(w, mass)| mass * weights[w][end]).sum::<f64>();
        law.push(to(pair.0) + to(pair.1));
        unseen = (0..members).map(|w| if is_other(&w) { to(w) } else { 0.0 }).collect();
    }
    law
}

#[test]
fn laws_of_all_pairs_are_those_of_dense_matrices_on_50_graphs() {
    for seed in 0..50 {
        let graph = random_graph(4 + seed as usize % 9, 100 + seed);
        let pairs = GraphPairs::new(&graph, 3, 2.0, 1e-6).expect("connected");
        for source in 0..graph.members() {
            for (observer, law) in pairs.laws(source).iter().enumerate().filter(|(observer, _)| *observer != source) {
                let dense = dense_law(&graph, (source, observer));
                let total: f64 = law.iter().sum();
                assert!((1.0..1.0 + 1e-9).contains(&total), "{seed}: {source} to {observer}: {total}");
                for (hop, (found, truth)) in law.iter().zip(&dense).enumerate() {
                    assert!(
                        (found - truth).abs() < 1e-9 && found >= truth,
                        "{seed}: {source} to {observer}, hop {hop}: {found} {truth}"
                    );
                }
            }
        }
    }
}

/// Noise for the worst pair and for the mean: it keeps the budget, less of it does not, and the mean needs less.
#[test]
fn noise_of_a_walk_is_the_least_that_keeps_the_worst_pair_or_the_mean() {
    let ring: Vec<(usize, usize)> = (0..40).map(|k| (k, (k + 1) % 40)).collect();
    let chords: Vec<(usize, usize)> = (0..20).map(|k| (k, k + 20)).collect();
    let graph = Gossip::metropolis(40, &[ring, chords].concat()).expect("valid");
    let (contributions, delta) = (4, 1e-6);
    let matrix = |pairs: &GraphPairs<'_>| (0..40).map(|source| pairs.row(source)).collect::<Vec<_>>();
    let both =
        |noise: f64| WorstAndMean::of(&matrix(&GraphPairs::new(&graph, contributions, noise, delta).expect("valid")));
    let local = crate::calibrate::noise_multiplier(
        crate::calibrate::NoiseKind::Gaussian,
        1.0,
        delta,
        contributions,
        &crate::Gaussian,
    );
    let find = |of: fn(WorstAndMean) -> f64| {
        let found = crate::calibrate::noise_of_graph_walk(&graph, contributions, (1.0, delta), of, matrix);
        found.expect("a graph").expect("in range")
    };
    let (worst, mean) = (find(|both| both.worst), find(|both| both.mean));
    assert!(both(worst).worst <= 1.0 && both(0.985 * worst).worst > 1.0, "{worst}: {:?}", both(worst));
    assert!(both(mean).mean <= 1.0 && both(0.985 * mean).mean > 1.0, "{mean}: {:?}", both(mean));
    assert!(mean < 0.95 * worst && worst <= local.expect("in range"), "{mean} {worst}");
    for (epsilon, delta) in [(0.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (f64::NAN, 0.1)] {
        let none =
            crate::calibrate::noise_of_graph_walk(&graph, contributions, (epsilon, delta), |both| both.mean, matrix);
        assert_eq!(none.expect("a graph"), None, "{epsilon} {delta}");
    }
    let cut = Gossip::metropolis(4, &[(0, 1), (2, 3)]).expect("valid");
    assert!(crate::calibrate::noise_of_graph_walk(&cut, 1, (1.0, 1e-6), |both| both.mean, |_| Vec::new()).is_err());
}
