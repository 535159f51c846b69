//! The synthetic nonlinear task of the thesis, section 2.5: agents in groups, each with two interleaving half moons turned by an
//! angle of its own.
//!
//! Four groups of 10, 20, 30 and 40 agents have the centres (1, 1), (-1, 1), (1, -1) and (-1, -1); the axis of an agent is
//! its group's centre plus N(0, 0.3^2) in both coordinates. m_u is uniform in 3..=14. A point of class -1 lies on
//! (cos t, sin t), one of class 1 on (1 - cos t, 1/2 - sin t), t uniform in [0, pi], both with noise N(0, 0.05^2), turned by
//! the axis' angle, followed by zeros up to 20 features and a constant one. Of m labels floor(0.05 m) are
//! wrong: none in training, 5 of 100 in the test, so no accuracy is above 0.95. The oracle's graph has
//! W_uv = exp((cos phi_uv - 1) / 0.1), phi the angle between axes, without the weights that connectivity does not need.
//!
//! Differs from the authors' code: t is random instead of equally spaced, so that a larger sample holds a smaller one; the
//! class of a point is that of its position, even or odd, so that both classes have half of the points.

use super::{WIDTH, edges_text, normal_pair, points_text, unit};
use crate::data::below;
use crate::error::Mistake;
use crate::folder::Folder;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use sottovoce_algorithms::Dataset;
use sottovoce_algorithms::graphs::{self, Directions, Threshold};
use sottovoce_core::Graph;
use std::f64::consts::PI;
use std::ops::RangeInclusive;
use std::path::Path;

/// The names of the files that [`write()`] makes.
pub const FILES: &[&str] = &["task.toml", "train.csv", "test.csv", "oracle.csv", "groups.csv"];

/// The centres of the groups.
pub const CENTRES: [[f64; 2]; 4] = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]];

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct MoonsOptions {
    /// Agents in each group; at least two in all.
    pub groups: [usize; 4],
    /// Features before the constant one, at least 2.
    pub dimension: usize,
    /// Everything random follows from it.
    pub seed: u64,
    /// m_u is uniform in this range.
    pub points: RangeInclusive<usize>,
    /// Test points of each agent.
    pub test_points: usize,
    /// The share of wrong labels, rounded down to whole points.
    pub flips: f64,
}

impl MoonsOptions {
    /// So many agents in the four groups, as many in each as the thesis has of a hundred, rounded.
    pub fn of_agents(agents: usize) -> Self {
        let before = |tenths: usize| agents / 10 * tenths + agents % 10 * tenths / 10;
        let groups = [(0, 1), (1, 3), (3, 6), (6, 10)].map(|(from, to)| before(to) - before(from));
        MoonsOptions { groups, ..MoonsOptions::default() }
    }
}

impl Default for MoonsOptions {
    fn default() -> Self {
        MoonsOptions { groups: [10, 20, 30, 40], dimension: 20, seed: 1, points: 3..=14, test_points: 100, flips: 0.05 }
    }
}

/// A generated task.
#[derive(Clone, Debug)]
pub struct Moons {
    /// `agent-000`, `agent-001`, ..: padded, so that their order is the numbers'.
    pub names: Vec<String>,
    /// Training points.
    pub train: Dataset,
    /// Test points.
    pub test: Dataset,
    /// By agent: its group.
    pub groups: Vec<usize>,
    /// By agent: its axis.
    pub axes: Vec<[f64; 2]>,
    /// The oracle's graph, from the axes.
    pub oracle: Graph,
}

/// Generates a task in memory.
///
/// # Panics
/// When there are fewer than two agents or two features, no points, or a share of flips outside [0, 1].
pub fn moons(options: &MoonsOptions) -> Moons {
    let MoonsOptions { dimension, test_points, flips, .. } = *options;
    let (low, high) = (*options.points.start(), *options.points.end());
    assert!(options.groups.iter().sum::<usize>() >= 2 && dimension >= 2, "{options:?}");
    assert!(1 <= low && low <= high && test_points >= 1 && (0.0..=1.0).contains(&flips), "{options:?}");
    let key = Sha256::new().chain_update(b"sottovoce moons task").chain_update(options.seed.to_le_bytes()).finalize();
    let (mut train, mut test) = (Dataset::new(dimension + 1), Dataset::new(dimension + 1));
    let (mut groups, mut axes) = (Vec::new(), Vec::new());
    for (group, &count) in options.groups.iter().enumerate() {
        for _ in 0..count {
            let mut rng = ChaCha8Rng::from_seed(key.into());
            rng.set_stream(groups.len() as u64);
            let noise = normal_pair(&mut rng);
            let axis = [0, 1].map(|k| CENTRES[group][k] + 0.3 * noise[k]);
            let m = low + below(&mut rng, high - low + 1);
            for (to, count) in [(&mut train, m), (&mut test, test_points)] {
                let (features, labels) = points(&mut rng, axis, count, dimension, flips);
                to.push_agent(&features, &labels);
            }
            groups.push(group);
            axes.push(axis);
        }
    }
    let width = (groups.len() - 1).to_string().len().max(3);
    let names = (0..groups.len()).map(|k| format!("agent-{k:0width$}")).collect();
    let directions = Directions::new(2, axes.concat());
    let oracle = graphs::similar(&directions, WIDTH, Threshold::Connected)
        .expect("agents can be numbered")
        .expect("weights are at least exp(-2 / 0.1), so a threshold connects them");
    Moons { names, train, test, groups, axes, oracle }
}

/// Generates a task and writes it into a new folder: `task.toml`, which learns the graph, `train.csv`, `test.csv`, the oracle's graph
/// and everyone's group.
pub fn write(options: &MoonsOptions, out: &Path, force: bool) -> Result<Moons, Mistake> {
    let agents: usize = options.groups.iter().sum();
    if !(2..=u32::MAX as usize).contains(&agents) {
        return Err(Mistake::new(format!("agents is {agents}; accepted: a whole number from 2 to {}", u32::MAX)));
    }
    let folder = Folder::begin(out, force, FILES)?;
    let task = moons(options);
    folder.write("task.toml", task_text(options, &task))?;
    folder.write("train.csv", points_text(&task.names, &task.train))?;
    folder.write("test.csv", points_text(&task.names, &task.test))?;
    folder.write("oracle.csv", edges_text(&task.names, &task.oracle))?;
    let group = |(name, group): (&String, &usize)| {
        let [x, y] = CENTRES[*group];
        format!("{name},({x}; {y})\n")
    };
    let groups: String = task.names.iter().zip(&task.groups).map(group).collect();
    folder.write("groups.csv", format!("agent,group\n{groups}"))?;
    folder.finish()?;
    Ok(task)
}

fn task_text(options: &MoonsOptions, task: &Moons) -> String {
    format!(
        "# {} agents with moons turned by four angles or so; generated with seed {}.\n\
         name = \"moons\"\n\
         algorithm = \"frank-wolfe\"\n\n\
         [data]\n\
         train = \"train.csv\"\n\
         test = \"test.csv\"         # five labels of a hundred are wrong\n\n\
         [graph]\n\
         kind = \"learned\"\n\
         sample = 10               # peers asked at a time\n\
         sparsity = 10.0           # lambda_3: less of it, fewer edges\n\
         oracle = \"oracle.csv\"     # to compare with\n\
         groups = \"groups.csv\"     # for the pictures\n\n\
         [model]\n\
         trade-off = 1.0           # 1 / lambda_1\n\n\
         [boosting]\n\
         predictors = 200          # decision stumps\n\
         radius = 10.0             # beta\n\n\
         [run]\n\
         wakes-per-agent = 320\n\
         seed = 1\n",
        task.names.len(),
        options.seed
    )
}

/// One agent's points.
fn points(rng: &mut ChaCha8Rng, axis: [f64; 2], count: usize, dimension: usize, flips: f64) -> (Vec<f64>, Vec<f64>) {
    let length = (axis[0] * axis[0] + axis[1] * axis[1]).sqrt();
    let (cos, sin) = if length > 0.0 { (axis[0] / length, axis[1] / length) } else { (1.0, 0.0) };
    let (mut features, mut labels) = (Vec::with_capacity(count * (dimension + 1)), Vec::with_capacity(count));
    for k in 0..count {
        let t = PI * unit(rng);
        let noise = normal_pair(rng);
        let inner = k % 2 == 1;
        let on = if inner { [1.0 - libm::cos(t), 0.5 - libm::sin(t)] } else { [libm::cos(t), libm::sin(t)] };
        let [x, y] = [0, 1].map(|k| on[k] + 0.05 * noise[k]);
        features.extend([cos * x - sin * y, sin * x + cos * y]);
        features.extend(std::iter::repeat_n(0.0, dimension - 2));
        features.push(1.0);
        labels.push(if inner { 1.0 } else { -1.0 });
    }
    // Distinct points: the first of a shuffle.
    let wrong = (flips * count as f64) as usize;
    let mut order: Vec<usize> = (0..count).collect();
    for k in 0..wrong {
        order.swap(k, k + below(rng, count - k));
        labels[order[k]] *= -1.0;
    }
    (features, labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_core::PeerId;

    #[test]
    fn any_number_of_agents_falls_into_the_groups_of_the_thesis() {
        assert_eq!(MoonsOptions::of_agents(100), MoonsOptions::default());
        assert_eq!(MoonsOptions::of_agents(30).groups, [3, 6, 9, 12]);
        for agents in [2, 7, 11, 99, 12345] {
            assert_eq!(MoonsOptions::of_agents(agents).groups.iter().sum::<usize>(), agents);
        }
        let few = MoonsOptions { groups: [0, 0, 1, 0], ..MoonsOptions::default() };
        let said = write(&few, Path::new("nowhere"), false).expect_err("one agent").to_string();
        assert!(said.contains("from 2"), "{said}");
    }

    #[test]
    fn the_task_has_the_statistics_of_the_thesis() {
        let made = moons(&MoonsOptions::default());
        assert_eq!((made.train.agents(), made.train.dimension(), made.test.len()), (100, 21, 10_000));
        assert_eq!(made.groups.iter().filter(|group| **group == 2).count(), 30);
        assert!(made.oracle.components().iter().all(|component| *component == 0));
        for (agent, axis) in (0..100).map(PeerId).zip(&made.axes) {
            assert!((3..=14).contains(&made.train.size(agent)));
            // Turned back, points of even number lie on the upper half circle around 0, the others on the lower one around (1, 1/2).
            let length = (axis[0] * axis[0] + axis[1] * axis[1]).sqrt();
            let (cos, sin) = (axis[0] / length, axis[1] / length);
            for (data, wrong_expected) in [(&made.train, 0), (&made.test, 5)] {
                let mut wrong = 0;
                for (k, (x, label)) in data.points(agent).iter().enumerate() {
                    assert!(x[2..20].iter().all(|x| *x == 0.0) && x[20] == 1.0);
                    let (a, b) = (cos * x[0] + sin * x[1], cos * x[1] - sin * x[0]);
                    let (a, b) = if k % 2 == 0 { (a, b) } else { (1.0 - a, 0.5 - b) };
                    assert!(((a * a + b * b).sqrt() - 1.0).abs() < 0.3 && b > -0.3, "{a} {b}");
                    wrong += usize::from((k % 2 == 1) != (label > 0.0));
                }
                assert_eq!(wrong, wrong_expected);
            }
        }
        assert_eq!(moons(&MoonsOptions::default()).train, made.train, "the same seed, the same numbers");
        assert_ne!(moons(&MoonsOptions { seed: 2, ..MoonsOptions::default() }).train, made.train);
    }
}
