//! `sottovoce demo`: what collaboration brings, on a task made up on the spot.

use crate::{Output, RunArguments, data::LinearArguments, screen, train::describe};
use sottovoce_core::PeerId;
use sottovoce_lab::error::Mistake;
use sottovoce_lab::folder::Folder;
use sottovoce_lab::generate;
use sottovoce_lab::load::{Loaded, load};
use sottovoce_lab::plot::number;
use sottovoce_lab::run_folder;
use sottovoce_lab::score::{gains_and_losses, mean_and_deviation};
use sottovoce_lab::task::{Algorithm, Task};
use sottovoce_lab::train::{Halt, Trained, train};
use std::path::PathBuf;

/// The trade-off of model propagation with the best accuracy on other seeds (101 to 103) of the same task. Coordinate
/// descent runs with the task's own, chosen in the same way.
const PROPAGATION_TRADE_OFF: f64 = 0.1;

#[derive(clap::Args)]
pub struct Arguments {
    /// The folder to write; one of an earlier demo is replaced
    #[arg(long, value_name = "DIR", default_value = "sottovoce-demo")]
    out: PathBuf,

    #[command(flatten)]
    size: LinearArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    screen::watch_for_stop();
    let LinearArguments { agents, dimension, seed } = arguments.size;
    let (task_folder, run_target) = (arguments.out.join("task"), arguments.out.join("run"));
    let folder = Folder::begin(&run_target, true, run_folder::FILES)?;
    generate::write(&arguments.size.options(), &task_folder, true)?;
    let mut task = Task::read(&task_folder.join("task.toml"))?;
    task.set_seed(seed)?;
    let loaded = load(&task)?;
    if !output.quiet && !output.json {
        screen::say(format!("{}\n", describe(&loaded)))?;
    }
    let mut softer = loaded.clone();
    softer.problem.trade_off = PROPAGATION_TRADE_OFF;
    softer.task.model.trade_off = PROPAGATION_TRADE_OFF;

    let mut runs = Vec::new();
    for (loaded, algorithm) in
        [(&loaded, Algorithm::Local), (&softer, Algorithm::ModelPropagation), (&loaded, Algorithm::CoordinateDescent)]
    {
        let bar = screen::Bar::new(output, algorithm.name());
        runs.push(train(loaded, algorithm, arguments.run.threads(), &mut |progress| bar.show(progress))?);
    }
    // Model propagation minimizes an objective of its own, and with another trade-off: its Q is not on the same scale.
    runs[1].samples.iter_mut().for_each(|sample| sample.objective = None);
    let commands = vec![format!("sottovoce demo --agents {agents} --dimension {dimension} --seed {seed}")];
    let runs_by_name: Vec<&Trained> = runs.iter().collect();
    let summary = run_folder::write(&folder, &loaded, &runs_by_name, commands)?;
    folder.finish()?;
    if output.json {
        screen::say(serde_json::to_string(&summary).expect("a summary is JSON"))?;
    } else if !output.quiet {
        by_algorithm(&runs)?;
        screen::say("")?;
        by_size(&loaded, &runs[0], &runs[2])?;
        screen::say(format!("\nReport: {}", run_target.join("report.html").display()))?;
        screen::say(format!("The task is in {}; change it and run `sottovoce train` on it.", task_folder.display()))?;
    }
    Ok(())
}

fn by_algorithm(runs: &[Trained]) -> Result<(), Mistake> {
    let header = ["algorithm", "test accuracy", "gain", "agents gain", "lose", "vectors sent", "time"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let alone = &runs[0];
    let local = mean_and_deviation(&alone.scores);
    for run in runs {
        let Some((mean, deviation)) = mean_and_deviation(&run.scores) else { continue };
        let (gain, lose) = gains_and_losses(&alone.scores, &run.scores, true);
        let is_alone = run.algorithm == alone.algorithm;
        let or_dash = |text: String| if is_alone { "-".to_owned() } else { text };
        rows.push(vec![
            run.algorithm.replace('-', " "),
            format!("{} ± {}", number::score(mean), number::score(deviation)),
            or_dash(local.map_or(String::new(), |(local, _)| number::change(mean - local))),
            or_dash(number::count(gain)),
            or_dash(number::count(lose)),
            number::count(run.counters.vectors_sent),
            number::seconds(run.seconds),
        ]);
    }
    screen::table(&rows)
}

/// Who gains: agents in four groups by how many points they have.
fn by_size(loaded: &Loaded, alone: &Trained, together: &Trained) -> Result<(), Mistake> {
    let size = |k: usize| loaded.problem.data.size(PeerId(k as u32));
    let sizes = || (0..loaded.problem.agents()).map(size);
    let (smallest, largest) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    let step = (largest - smallest + 1).div_ceil(4).max(1);
    let mut rows = vec![["training points", "agents", "alone", "together", "gain"].map(str::to_owned).to_vec()];
    for from in (smallest..=largest).step_by(step) {
        let to = (from + step - 1).min(largest);
        let of = |run: &Trained| {
            let scores: Vec<_> = run
                .scores
                .iter()
                .enumerate()
                .filter(|(k, _)| (from..=to).contains(&size(*k)))
                .map(|(_, s)| *s)
                .collect();
            (mean_and_deviation(&scores), scores.len() as u64)
        };
        let ((before, agents), (after, _)) = (of(alone), of(together));
        let (Some((before, _)), Some((after, _))) = (before, after) else { continue };
        rows.push(vec![
            format!("{from} to {to}"),
            number::count(agents),
            number::score(before),
            number::score(after),
            number::change(after - before),
        ]);
    }
    screen::table(&rows)
}
