//! Accountants of networks against attacks on simulated walks: tokens that really walk, observers that write down what they see, and
//! the likelihood ratio of that.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_privacy::audit::{Worlds, epsilon_bound};
use sottovoce_privacy::gaussian_delta;
use sottovoce_privacy::network::{Cycle, Gossip, GraphPairs, Iteration, PaperGossip, Walk, staircase};

/// How the protected member moves the token.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    /// It adds its value: a sum.
    Adds,
    /// It sets the token to its value: a contraction too, and what others' noise hid before is gone.
    Sets,
}

struct Setting {
    agents: u64,
    colluders: u64,
    hops: u64,
    contributions: u64,
    told_outcome: bool,
    noise: f64,
    delta: f64,
}

struct Draws(ChaCha8Rng);

impl Draws {
    fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.unit() * n as f64) as u64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// What observers of one walk come to believe: ln of the likelihood of their view if the member's value is 1, over that if it is 0.
/// Member 0 is protected, members from 1 to `colluders` observe.
fn belief(setting: &Setting, moves: Move, value: f64, draws: &mut Draws) -> f64 {
    let (mut token, mut made, mut belief) = (0.0, 0, 0.0);
    // What observers know of the token since they last saw it: its value then, its shift between the worlds, and its noise.
    let (mut seen, mut shift, mut variance) = (0.0, 0.0, 0.0);
    let look = |token: f64, seen: f64, shift: f64, variance: f64| match variance > 0.0 {
        // N(seen + shift, variance) against N(seen, variance).
        true => shift * (token - seen - 0.5 * shift) / (variance * setting.noise * setting.noise),
        false => 0.0,
    };
    for _ in 0..setting.hops {
        let holder = draws.below(setting.agents);
        if holder > 0 && holder <= setting.colluders {
            belief += look(token, seen, shift, variance);
            // Its own noise is known to it: as good as none.
            (seen, shift, variance) = (token, 0.0, 0.0);
            continue;
        }
        if holder == 0 && made < setting.contributions {
            made += 1;
            match moves {
                Move::Adds => (token, shift) = (token + value, shift + 1.0),
                Move::Sets => (token, seen, shift, variance) = (value, 0.0, 1.0, 0.0),
            }
        }
        token += setting.noise * draws.normal();
        variance += 1.0;
    }
    if setting.told_outcome {
        belief += look(token, seen, shift, variance);
    }
    belief
}

#[test]
fn no_attack_on_simulated_walks_comes_above_what_is_claimed() {
    let mut draws = Draws(ChaCha8Rng::seed_from_u64(2024));
    let mut closest = 0.0f64;
    for index in 0..50 {
        let agents = 3 + draws.below(12);
        let setting = Setting {
            agents,
            colluders: 1 + draws.below((agents - 2).min(3)),
            hops: 1 + draws.below(30),
            contributions: 1 + draws.below(4),
            told_outcome: index % 5 != 0,
            noise: 0.4 + 2.0 * draws.unit(),
            delta: [1e-3, 0.01, 0.05][draws.below(3) as usize],
        };
        let Setting { colluders, hops, contributions, noise, delta, .. } = setting;
        let walk =
            Walk::new(agents, hops, contributions).and_then(|walk| walk.with_colluders(colluders)).expect("valid");
        let walk = if setting.told_outcome { walk } else { walk.untold() };
        let iteration = Iteration::new(walk);
        let (claimed, renyi) = (iteration.epsilon_at(noise, delta), iteration.epsilon_by_renyi(noise, delta));
        let sums = Cycle::new(walk).epsilon_at(noise, delta);
        assert!(sums <= claimed * (1.0 + 1e-4) + 1e-6 && claimed <= renyi * (1.0 + 1e-4), "{sums} {claimed} {renyi}");
        for (moves, claimed) in [(Move::Adds, sums), (Move::Sets, claimed)] {
            let mut world = |value: f64| (0..12_000).map(|_| belief(&setting, moves, value, &mut draws)).collect();
            let worlds = Worlds { first: world(1.0), second: world(0.0) };
            let found = epsilon_bound(&worlds, delta).likely;
            assert!(found <= claimed, "{index}, {moves:?}: {found} found, {claimed} claimed");
            closest = closest.max(found / claimed);
        }
    }
    assert!(closest > 0.6, "attacks that come nowhere near would show nothing: {closest}");
}

/// Maps that do not expand.
const CONTRACTIONS: [fn(f64) -> f64; 6] = [|x| x, |x| -x, |x| 0.5 * x, |x| x.clamp(-1.0, 1.0), |x| x.abs(), |_| 0.0];

/// A law on a grid, after a map and a step of noise of one.
fn moved(law: &[f64], grid: &[f64], map: impl Fn(f64) -> f64) -> Vec<f64> {
    let width = grid[1] - grid[0];
    let images: Vec<f64> = grid.iter().map(|&x| map(x)).collect();
    let normal = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt() * width;
    let at = |y: f64| law.iter().zip(&images).map(|(mass, image)| mass * normal(y - image)).sum();
    grid.iter().map(|&y| at(y)).collect()
}

/// Lemma 1 of `proofs/network-iteration.md`, by the densities themselves.
#[test]
fn contractions_never_tell_more_than_the_staircase() {
    let mut draws = Draws(ChaCha8Rng::seed_from_u64(9));
    let grid: Vec<f64> = (-360..=360).map(|k| 0.03 * f64::from(k)).collect();
    let mut closest = 0.0f64;
    for _ in 0..40 {
        let hops = 1 + draws.below(6);
        let contributions: Vec<u64> = (1..=hops).filter(|_| draws.unit() < 0.5).collect();
        let square = staircase(&contributions, hops);
        // Both begin at 0: one step of noise from there.
        let mut start = vec![0.0; grid.len()];
        start[360] = 1.0;
        let mut worlds = [start.clone(), start];
        for hop in 1..=hops {
            let map = CONTRACTIONS[draws.below(6) as usize];
            // Where they differ it is by a shift of one, or by the distance of x from a band of that width.
            let shift = if contributions.contains(&hop) { 1.0 } else { 0.0 };
            let banded = draws.unit() < 0.3;
            let differ = |x: f64| if banded { x.clamp(0.0, shift) } else { shift };
            let [one, other] = &worlds;
            worlds = match banded {
                // The identity less a clamp is a contraction, and so is the identity.
                true => [moved(one, &grid, |x| x), moved(other, &grid, |x| x - differ(x))],
                false => [moved(one, &grid, |x| map(x) + differ(x)), moved(other, &grid, map)],
            };
        }
        let [one, other] = &worlds;
        for epsilon in [0.0f64, 0.5, 1.0, 2.0] {
            let distance =
                |p: &[f64], q: &[f64]| p.iter().zip(q).map(|(p, q)| (p - epsilon.exp() * q).max(0.0)).sum::<f64>();
            let (there, back) = (distance(one, other), distance(other, one));
            let bound = if square > 0.0 { gaussian_delta(square.sqrt(), epsilon) } else { 0.0 };
            assert!(there.max(back) <= bound + 2e-5, "{contributions:?} of {hops}: {there} {back} {bound}");
            closest = closest.max(there.max(back) / bound.max(1e-3));
        }
    }
    assert!(closest > 0.9, "{closest}");
}

/// A ring with chords: every member has six neighbours.
fn large_graph(members: usize, seed: u64) -> Gossip {
    let mut draws = Draws(ChaCha8Rng::seed_from_u64(seed));
    let mut edges: Vec<(usize, usize)> = (0..members).map(|k| (k, (k + 1) % members)).collect();
    while edges.len() < 3 * members {
        let (a, b) = (draws.below(members as u64) as usize, draws.below(members as u64) as usize);
        if a != b && !edges.contains(&(a, b)) && !edges.contains(&(b, a)) {
            edges.push((a, b));
        }
    }
    Gossip::metropolis(members, &edges).expect("valid")
}

/// All rows of a matrix, by two threads.
fn rows(members: usize, row: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<Vec<f64>> {
    let half = |first: usize| (first..members).step_by(2).map(&row).collect::<Vec<_>>();
    let (even, odd) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        (half(0), other.join().expect("rows"))
    });
    let (mut even, mut odd) = (even.into_iter(), odd.into_iter());
    (0..members).filter_map(|member| if member % 2 == 0 { even.next() } else { odd.next() }).collect()
}

/// Pairwise accounting of 2,000 members takes at most 30 s on two processors.
fn within_half_a_minute(what: &str, matrix: impl FnOnce(&Gossip) -> Vec<Vec<f64>>) {
    let graph = large_graph(2000, 5);
    let start = std::time::Instant::now();
    let matrix = matrix(&graph);
    let seconds = start.elapsed().as_secs_f64();
    let most = matrix.iter().flatten().copied().fold(0.0, f64::max);
    let mean = matrix.iter().flatten().sum::<f64>() / matrix.iter().map(Vec::len).sum::<usize>() as f64;
    println!("{what}: {seconds:.1} s, largest {most:.4}, mean {mean:.4}");
    assert!(seconds <= 30.0, "{what}: {seconds} s");
}

#[test]
#[ignore = "ten seconds on two processors that are free: cargo xtask soak"]
fn token_walks_of_2000_members_take_at_most_half_a_minute() {
    within_half_a_minute("token walk", |graph| {
        let pairs = GraphPairs::new(graph, 12, 4.0, 1e-6).expect("valid");
        rows(graph.members(), |source| pairs.row(source))
    });
}

#[test]
#[ignore = "ten seconds on two processors that are free: cargo xtask soak"]
fn gossip_of_2000_members_takes_at_most_half_a_minute() {
    within_half_a_minute("gossip", |graph| rows(graph.members(), |observer| graph.exposure(&[observer], 12)));
}

/// As many products and sums as orthogonalizing 73 vectors of 2,000 numbers takes, without anything around them: each vector against all before it.
fn bare_loop(vectors: &mut [Vec<f64>]) -> f64 {
    for k in 1..vectors.len() {
        let (before, rest) = vectors.split_at_mut(k);
        for other in before.iter() {
            let part: f64 = rest[0].iter().zip(other).map(|(x, v)| x * v).sum();
            rest[0].iter_mut().zip(other).for_each(|(x, v)| *x -= 1e-6 * part * v);
        }
    }
    vectors.iter().map(|vector| vector[0]).sum()
}

/// One row of a matrix of pairs against the bare loop, on one processor: what was large before is taken from each vector twice, so at most twice as long.
#[test]
#[ignore = "a ratio of times: cargo xtask soak"]
fn a_row_of_pairs_takes_at_most_twice_as_long_as_a_bare_loop() {
    let graph = large_graph(2000, 5);
    let time = |work: &mut dyn FnMut() -> f64| {
        let start = std::time::Instant::now();
        let sum: f64 = (0..20).map(|_| work()).sum();
        (start.elapsed().as_secs_f64() / 20.0, sum)
    };
    let mut draws = Draws(ChaCha8Rng::seed_from_u64(8));
    let mut vectors: Vec<Vec<f64>> = (0..73).map(|_| (0..2000).map(|_| draws.normal()).collect()).collect();
    // The best of several, so that whatever else the machine does counts little.
    let (mut row, mut bare) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..5 {
        let mut observer = 0;
        row = row.min(
            time(&mut || {
                observer += 97;
                graph.exposure(&[observer % 2000], 12)[0]
            })
            .0,
        );
        bare = bare.min(time(&mut || bare_loop(&mut vectors)).0);
    }
    println!("a row {:.2} ms, a bare loop {:.2} ms: {:.2}", 1e3 * row, 1e3 * bare, row / bare);
    assert!(row <= 2.0 * bare, "{row} {bare}");
}

#[test]
#[ignore = "seconds on two processors that are free: cargo xtask soak"]
fn the_papers_formula_for_2000_members_takes_at_most_half_a_minute() {
    for gamma in [1.0, 1.3] {
        within_half_a_minute("Muffliato's formula", |graph| {
            let paper = PaperGossip::new(graph, 12, gamma);
            rows(graph.members(), |source| paper.row(source))
        });
    }
}
