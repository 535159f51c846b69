//! What private collaboration is worth on the synthetic task, with a sound calibration and parameters tuned on other instances.

use sottovoce_algorithms::personal::descent::WarmStart;
use sottovoce_run::outlook::outlook;
use sottovoce_run::score::mean_and_deviation;
use sottovoce_run::train::{Trained, train};
use sottovoce_task::algorithms::{coordinate_descent, local};
use sottovoce_task::generate::{LinearOptions, write};
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::plan;
use sottovoce_task::task::{AccountantName, Description, Home, Privacy, Task, Warm};
use std::ops::ControlFlow;
use std::sync::Arc;

/// One setting of the task.
#[derive(Clone, Copy, Debug)]
struct Setting {
    epsilon: f64,
    updates: u64,
    trade_off: f64,
    home: Home,
}

fn task(seed: u64, dimension: usize) -> Loaded {
    let place = tempfile::tempdir().expect("a folder");
    let out = place.path().join("task");
    write(&LinearOptions { dimension, seed, ..LinearOptions::default() }, &out, false).expect("written");
    let text = std::fs::read_to_string(out.join("task.toml")).expect("a task");
    let delta = libm::exp(-5.0);
    let text = text.replace("[data]", "[data]\nnormalize = \"l2\"").replace("wakes-per-agent = 200", "")
        + &format!("\n[privacy]\nepsilon = 1.0\ndelta = {delta}\nupdates = 1\n");
    let mut private = Task::parse(&text, &out.join("task.toml")).expect("a private task");
    // Other data, other noise.
    private.set_seed(seed).expect("a seed");
    load(&private).expect("its files")
}

fn with(loaded: &Loaded, setting: Setting) -> Loaded {
    let mut loaded = loaded.clone();
    loaded.problem.trade_off = setting.trade_off;
    loaded.task.model.trade_off = setting.trade_off;
    loaded.task.run.wakes_per_agent = 20 + 2 * setting.updates;
    let privacy = loaded.task.privacy.as_mut().expect("a private task");
    privacy.epsilon = setting.epsilon;
    privacy.updates = setting.updates;
    privacy.home = Some(setting.home);
    let plan = plan::plan(&loaded.task, &loaded.task.privacy.expect("private"), &loaded.problem).expect("a plan");
    loaded.plan = Some(Arc::new(plan));
    loaded
}

fn run(loaded: &Loaded, algorithm: &'static Description) -> Trained {
    train(loaded, algorithm, 1, &mut |_| ControlFlow::Continue(())).expect("a run")
}

fn mean(scores: &[Option<f64>]) -> f64 {
    mean_and_deviation(scores).expect("test points").0
}

/// Home and broadcast models against local ones: mean gains over instances, and the standard error of the first.
fn gains(instances: &[(Loaded, f64)], setting: Setting) -> (f64, f64, f64) {
    let mut home = Vec::new();
    let mut broadcast = 0.0;
    for (loaded, local) in instances {
        let trained = run(&with(loaded, setting), &coordinate_descent::DESCRIPTION);
        home.push(mean(&trained.home.expect("home models").scores) - local);
        broadcast += (mean(&trained.scores) - local) / instances.len() as f64;
    }
    let count = home.len() as f64;
    let average = home.iter().sum::<f64>() / count;
    let variance = home.iter().map(|gain| (gain - average) * (gain - average)).sum::<f64>() / (count - 1.0).max(1.0);
    (average, broadcast, (variance / count).sqrt())
}

fn instances(seeds: impl IntoIterator<Item = u64>, dimension: usize) -> Vec<(Loaded, f64)> {
    let one = |seed| {
        let loaded = task(seed, dimension);
        let local = mean(&run(&loaded, &local::DESCRIPTION).scores);
        (loaded, local)
    };
    seeds.into_iter().map(one).collect()
}

/// Parameters of home models come from public values alone; their two constants were chosen on seeds 101 to 103.
const HOME: Home = Home::Automatic;

/// Home models against purely local ones, over 20 fresh seeds: what is asked is 0.02, 0.01 and -0.005.
#[test]
fn home_models_gain_at_a_sound_budget_and_do_not_lose_at_a_tiny_one() {
    for (dimension, epsilon, asked) in [(20, 1.05, 0.02), (50, 1.05, 0.01), (100, 0.15, -0.005)] {
        let fresh = instances(1..=20, dimension);
        let setting = Setting { epsilon, updates: 1, trade_off: 1.0, home: HOME };
        let (home, broadcast, error) = gains(&fresh, setting);
        println!("p = {dimension}, epsilon = {epsilon}: home {home:+.4} (+-{error:.4}), broadcast {broadcast:+.4}");
        assert!(home >= asked, "p = {dimension}, epsilon = {epsilon}: {home:+.4}, asked {asked:+.4}");
    }
}

/// The table from which the defaults of home models and the limits of `privacy plan` were chosen (`docs/privacy.md`).
#[test]
#[ignore = "the table for the record; `cargo xtask soak` makes it"]
fn home_models_by_dimension_budget_and_updates() {
    let rows: [(usize, f64, &[u64]); 13] = [
        (100, 0.15, &[1, 5]),
        (20, 0.15, &[1, 5]),
        (50, 0.3, &[1]),
        (20, 0.3, &[1]),
        (100, 1.05, &[1, 5]),
        (50, 0.7, &[1]),
        (20, 0.5, &[1]),
        (50, 1.05, &[1, 5]),
        (20, 0.7, &[1]),
        (20, 1.05, &[1, 5]),
        (50, 3.0, &[1, 5, 20]),
        (20, 3.0, &[1, 5, 20]),
        (50, 10.0, &[1, 5, 20, 50]),
    ];
    for (dimension, epsilon, tried) in rows {
        let tuning = instances(101..=103, dimension);
        for &updates in tried {
            let setting = Setting { epsilon, updates, trade_off: 1.0, home: HOME };
            let outlook = outlook(&with(&tuning[0].0, setting)).and_then(|outlook| outlook.clearness);
            let (gain, _, error) = gains(&tuning, setting);
            println!(
                "| {dimension} | {epsilon} | {updates} | {:.1} | {gain:+.3} (+-{error:.3}) |",
                outlook.unwrap_or(f64::NAN)
            );
            assert!(gain > -0.01, "little is lost at any budget: {gain}");
        }
    }
}

/// CHECK 02.g, figure 2(b): with a warm start the objective is lower after few updates than from a constant, with the same
/// budget for the updates. With a sound calibration the paper's epsilon of 0.05 is too little for that from p = 5 on (printed).
#[test]
fn check_02_g_a_warm_start_is_lower_after_few_updates() {
    let tasks: Vec<_> = (1..=5).map(|seed| task(seed, 5)).collect();
    let objective = |updates: u64, warm: Option<f64>| -> f64 {
        let one = |loaded: &Loaded| {
            let mut loaded = loaded.clone();
            let start = WarmStart { regularization: 0.1, radius: 2.6, trade_off: 1.0, wakes: 10 };
            let privacy = Privacy {
                epsilon: 1.0 + warm.unwrap_or(0.0),
                updates,
                warm: warm.map(|epsilon| Warm { epsilon, start }),
                accountant: AccountantName::Sum,
                ..loaded.task.privacy.expect("a private task")
            };
            loaded.task.privacy = Some(privacy);
            loaded.task.run.wakes_per_agent = 40;
            loaded.plan = Some(Arc::new(plan::plan(&loaded.task, &privacy, &loaded.problem).expect("a plan")));
            let trained = run(&loaded, &coordinate_descent::DESCRIPTION);
            trained.samples.last().and_then(|sample| sample.objective).expect("an objective")
        };
        tasks.iter().map(one).sum::<f64>() / tasks.len() as f64
    };
    for updates in [1, 2, 5] {
        let [cold, small, warm] = [None, Some(0.05), Some(0.5)].map(|warm| objective(updates, warm));
        println!("{updates} updates: {cold:.1} from zero, {small:.1} with 0.05 for a warm start, {warm:.1} with 0.5");
        assert!(warm < cold, "{updates} updates: {warm} {cold}");
    }
}
