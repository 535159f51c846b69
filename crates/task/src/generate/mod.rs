//! The synthetic linear task of Bellet et al. (2018), section 5.1: agents whose targets lie in a plane.
//!
//! Target models are theta*_i = (N(0, 1/2), N(0, 1/2), 0, .., 0); W_ij = exp((cos phi_ij - 1) / 0.1) with phi_ij
//! the angle between targets, without the weights that connectivity does not need; m_i is uniform in 10..=100;
//! x is uniform in [-1, 1]^p; y = sign(theta*_i . x), flipped with probability 0.05 in training.
//!
//! Differs from the authors' code: x is uniform (the text) rather than Gaussian, labels flip independently rather
//! than in a fixed number, and test labels are clean unless asked for. The trade-off of the generated task is 1,
//! as the local losses here are means over an agent's points; the paper's 0.04 fits sums.
//!
//! The numbers depend on the options alone, on every machine: ChaCha8 for the bits, one stream for each agent, and
//! `libm` for what is not exact in IEEE arithmetic.

pub mod moons;

use crate::data::below;
use crate::error::Mistake;
use crate::folder::Folder;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use sottovoce_algorithms::graphs::{self, Directions, Threshold};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization};
use sottovoce_core::{Graph, PeerId};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;

/// The width of the weights' exponential.
pub const WIDTH: f64 = 0.1;

/// The names of the files that [`write()`] makes.
pub const FILES: &[&str] = &["task.toml", "train.csv", "test.csv", "edges.csv", "private.toml"];

/// The file with the private task, which is written when it is asked for.
pub const PRIVATE_FILE: &str = "private.toml";

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearOptions {
    /// n, at least 2.
    pub agents: usize,
    /// p, at least 2.
    pub dimension: usize,
    /// Everything random follows from it.
    pub seed: u64,
    /// m_i is uniform in this range.
    pub points: RangeInclusive<usize>,
    /// Test points of each agent.
    pub test_points: usize,
    /// The probability with which a training label is flipped.
    pub flips: f64,
    /// Whether test labels are flipped as well; the best accuracy is then 1 - flips.
    pub flip_test: bool,
    /// Whether to write a private task on the same data as well.
    pub private: bool,
}

impl Default for LinearOptions {
    fn default() -> Self {
        LinearOptions {
            agents: 100,
            dimension: 50,
            seed: 1,
            points: 10..=100,
            test_points: 100,
            flips: 0.05,
            flip_test: false,
            private: false,
        }
    }
}

/// A generated task.
#[derive(Clone, Debug)]
pub struct Linear {
    /// `agent-000`, `agent-001`, ..: padded, so that their order is the numbers'.
    pub names: Vec<String>,
    /// Training points.
    pub train: Dataset,
    /// Test points.
    pub test: Dataset,
    /// The first two coordinates of each agent's target; the others are zero.
    pub targets: Vec<[f64; 2]>,
    /// W.
    pub graph: Graph,
}

impl Linear {
    /// The problem with the logistic loss, lambda_i = 1/m_i and the given trade-off.
    pub fn problem(&self, trade_off: f64) -> Problem {
        Problem {
            data: self.train.clone(),
            graph: self.graph.clone(),
            loss: Loss::Logistic,
            regularization: Regularization::OneOverPoints,
            trade_off,
            points_max: self.train.largest() as f64,
        }
    }
}

/// Generates a task in memory.
pub fn linear(options: &LinearOptions) -> Result<Linear, Mistake> {
    check(options)?;
    let LinearOptions { agents, dimension, .. } = *options;
    let width = (agents - 1).to_string().len().max(3);
    let key = Sha256::new().chain_update(b"sottovoce linear task").chain_update(options.seed.to_le_bytes()).finalize();
    let mut task = Linear {
        names: (0..agents).map(|k| format!("agent-{k:0width$}")).collect(),
        train: Dataset::new(dimension),
        test: Dataset::new(dimension),
        targets: Vec::with_capacity(agents),
        graph: Graph::Complete { n: 1 },
    };
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for agent in 0..agents {
        let mut rng = ChaCha8Rng::from_seed(key.into());
        rng.set_stream(agent as u64);
        let target = normal_pair(&mut rng).map(|z| z * 0.5f64.sqrt());
        task.targets.push(target);
        let (low, high) = (*options.points.start(), *options.points.end());
        let m = low + below(&mut rng, high - low + 1);
        let test_flips = if options.flip_test { options.flips } else { 0.0 };
        for (to, count, flips) in
            [(&mut task.train, m, options.flips), (&mut task.test, options.test_points, test_flips)]
        {
            features.clear();
            labels.clear();
            for _ in 0..count {
                let row = features.len();
                features.extend((0..dimension).map(|_| 2.0 * unit(&mut rng) - 1.0));
                let side = target[0] * features[row] + target[1] * features[row + 1];
                let flip = unit(&mut rng) < flips;
                labels.push(if (side >= 0.0) != flip { 1.0 } else { -1.0 });
            }
            to.push_agent(&features, &labels);
        }
    }
    let directions = Directions::new(2, task.targets.concat());
    task.graph = graphs::similar(&directions, WIDTH, Threshold::Connected)
        .map_err(|error| Mistake::new(error.to_string()))?
        .expect("weights are at least exp(-2 / 0.1), so a threshold connects them");
    Ok(task)
}

fn check(options: &LinearOptions) -> Result<(), Mistake> {
    let refuse = |what: String| Err(Mistake::new(what));
    if options.agents < 2 || u32::try_from(options.agents).is_err() {
        return refuse(format!("agents is {}; accepted: a whole number from 2 to {}", options.agents, u32::MAX));
    }
    if options.dimension < 2 {
        return refuse(format!("dimension is {}; accepted: at least 2, as targets lie in a plane", options.dimension));
    }
    if *options.points.start() < 1 || options.points.is_empty() {
        return refuse(format!("points are {:?}; accepted: a range from at least 1", options.points));
    }
    if options.test_points < 1 {
        return refuse("test points are 0; accepted: at least 1".to_owned());
    }
    if !(0.0..1.0).contains(&options.flips) {
        return refuse(format!("flips is {}; accepted: a number from 0 to below 1", options.flips));
    }
    Ok(())
}

/// Generates a task and writes `task.toml`, `train.csv`, `test.csv` and `edges.csv` into a new folder, and `private.toml` if that
/// is asked for.
pub fn write(options: &LinearOptions, out: &Path, force: bool) -> Result<Linear, Mistake> {
    check(options)?;
    let folder = Folder::begin(out, force, FILES)?;
    let task = linear(options)?;
    folder.write("task.toml", task_text(options))?;
    folder.write("train.csv", points_text(&task.names, &task.train))?;
    folder.write("test.csv", points_text(&task.names, &task.test))?;
    folder.write("edges.csv", edges_text(&task.names, &task.graph))?;
    if options.private {
        folder.write(PRIVATE_FILE, private_text(options))?;
    }
    folder.finish()?;
    Ok(task)
}

fn task_text(options: &LinearOptions) -> String {
    let LinearOptions { agents, dimension, seed, .. } = options;
    format!(
        "# {agents} agents, targets in a plane of R^{dimension}; generated with seed {seed}.\n\
         name = \"linear-{dimension}\"\n\
         algorithm = \"coordinate-descent\"\n\n\
         [data]\n\
         train = \"train.csv\"\n\
         test = \"test.csv\"\n\n\
         [graph]\n\
         edges = \"edges.csv\"\n\n\
         [model]\n\
         loss = \"logistic\"\n\
         regularization = \"1/m\"\n\
         trade-off = 1.0\n\n\
         [run]\n\
         wakes-per-agent = 200\n\
         seed = 1\n"
    )
}

fn private_text(options: &LinearOptions) -> String {
    let LinearOptions { agents, dimension, seed, .. } = options;
    format!(
        "# {agents} agents, targets in a plane of R^{dimension}; generated with seed {seed}. The same data as in task.toml, scaled.\n\
         name = \"linear-{dimension}-private\"\n\
         algorithm = \"coordinate-descent\"\n\n\
         [data]\n\
         train = \"train.csv\"\n\
         test = \"test.csv\"\n\
         normalize = \"l2\"           # x / max(1, |x|): the bound on features that step sizes need\n\n\
         [graph]\n\
         edges = \"edges.csv\"        # taken to be public\n\n\
         [model]\n\
         loss = \"logistic\"\n\
         regularization = \"1/m\"\n\
         trade-off = 1.0\n\n\
         [privacy]\n\
         epsilon = 1.05               # of each agent, for all it ever sends\n\
         delta = {delta}   # e^-5, as in the paper; choose yours well below 1 / points\n\
         mechanism = \"gaussian\"\n\
         updates = 1                  # releases per agent\n\
         \n\
         [run]\n\
         seed = 1\n",
        delta = libm::exp(-5.0),
    )
}

fn points_text(names: &[String], data: &Dataset) -> String {
    let mut text = String::from("agent,label");
    for k in 0..data.dimension() {
        text += &format!(",x{k}");
    }
    text.push('\n');
    for (k, name) in names.iter().enumerate() {
        for (x, y) in data.points(PeerId(k as u32)).iter() {
            // The shortest decimal that reads back as the same number.
            write!(text, "{name},{y}").expect("text grows");
            x.iter().for_each(|x| write!(text, ",{x:?}").expect("text grows"));
            text.push('\n');
        }
    }
    text
}

fn edges_text(names: &[String], graph: &Graph) -> String {
    let mut text = String::from("a,b,weight\n");
    for (a, b, weight) in graph.edges() {
        writeln!(text, "{},{},{weight:?}", names[a.index()], names[b.index()]).expect("text grows");
    }
    text
}

/// Uniform in [0, 1).
fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Two independent standard Gaussians (Box and Muller).
fn normal_pair(rng: &mut ChaCha8Rng) -> [f64; 2] {
    let radius = (-2.0 * libm::log(1.0 - unit(rng))).sqrt();
    let angle = std::f64::consts::TAU * unit(rng);
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;
    use crate::task::Task;

    #[test]
    fn the_files_load_back_to_the_same_numbers() {
        let place = tempfile::tempdir().expect("a folder");
        let out = place.path().join("task");
        let options = LinearOptions { agents: 12, dimension: 5, seed: 7, test_points: 9, ..Default::default() };
        let made = write(&options, &out, false).expect("written");
        let loaded = load(&Task::read(&out.join("task.toml")).expect("a task")).expect("loaded");
        assert_eq!(loaded.names, made.names);
        // `Dataset` and `Graph` compare every number; none is NaN or -0, so equal is equal to the bit.
        assert_eq!(loaded.problem.data, made.train);
        assert_eq!(loaded.test.as_ref(), Some(&made.test));
        assert_eq!(loaded.problem.graph, made.graph);
        assert_eq!(loaded.problem.points_max, made.problem(1.0).points_max);
        let refused = write(&options, &out, false).expect_err("exists").to_string();
        assert!(refused.contains("exists already"), "{refused}");
        write(&options, &out, true).expect("replaced");
    }

    #[test]
    fn the_task_has_the_statistics_of_the_paper() {
        let made = linear(&LinearOptions { dimension: 10, ..Default::default() }).expect("made");
        assert_eq!((made.train.agents(), made.names[7].as_str()), (100, "agent-007"));
        assert!(made.graph.components().iter().all(|&c| c == 0));
        let (mut flipped, mut square, mut sizes) = (0, 0.0, Vec::new());
        for (k, target) in made.targets.iter().enumerate() {
            let agent = PeerId(k as u32);
            sizes.push(made.train.size(agent));
            square += (target[0] * target[0] + target[1] * target[1]) / 100.0;
            let wrong = |data: &Dataset| {
                data.points(agent).iter().filter(|(x, y)| y * (target[0] * x[0] + target[1] * x[1]) < 0.0).count()
            };
            flipped += wrong(&made.train);
            assert_eq!(wrong(&made.test), 0);
        }
        assert!((0.7..1.4).contains(&square), "mean of |theta|^2 is {square}, expected 1");
        assert!(sizes.iter().all(|m| (10..=100).contains(m)));
        let (mean, total) = (sizes.iter().sum::<usize>() as f64 / 100.0, sizes.iter().sum::<usize>() as f64);
        assert!((45.0..65.0).contains(&mean), "{mean}");
        assert!((0.035..0.065).contains(&(flipped as f64 / total)), "{flipped} of {total}");
        assert!(made.train.points(PeerId(0)).features.iter().all(|x| (-1.0..1.0).contains(x)));
    }

    #[test]
    fn a_seed_gives_the_same_numbers_on_every_machine() {
        let made = linear(&LinearOptions { agents: 3, dimension: 2, ..Default::default() }).expect("made");
        let x = made.train.points(PeerId(2)).features[3];
        assert_eq!((made.train.len(), made.targets[1], x), GOLDEN);
        let other = linear(&LinearOptions { agents: 3, dimension: 2, seed: 2, ..Default::default() }).expect("made");
        assert_ne!(made.targets, other.targets);
    }

    const GOLDEN: (usize, [f64; 2], f64) = (145, [-0.5032381626225937, 0.13633620563721838], -0.5213615741498157);

    #[test]
    fn options_out_of_range_are_refused_by_name() {
        let base = LinearOptions::default();
        for (options, named) in [
            (LinearOptions { agents: 1, ..base.clone() }, "agents"),
            (LinearOptions { dimension: 1, ..base.clone() }, "dimension"),
            (LinearOptions { points: 0..=3, ..base.clone() }, "points"),
            (LinearOptions { points: RangeInclusive::new(5, 3), ..base.clone() }, "points"),
            (LinearOptions { test_points: 0, ..base.clone() }, "test points"),
            (LinearOptions { flips: f64::NAN, ..base.clone() }, "flips"),
        ] {
            let refused = linear(&options).expect_err(named).to_string();
            assert!(refused.starts_with(named) && refused.contains("accepted"), "{refused}");
        }
    }
}
