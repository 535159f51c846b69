//! `sottovoce demo`: what collaboration brings, on a task made up on the spot.

use crate::train::spent;
use crate::{Output, RunArguments, data::LinearArguments, screen};
use sottovoce_core::PeerId;
use sottovoce_report::plot::number;
use sottovoce_report::training::Sweep;
use sottovoce_run::artefacts::{Command, names};
use sottovoce_run::facts::{Origin, PublicFacts};
use sottovoce_run::outlook::size_groups;
use sottovoce_run::run_folder::{self, Summary};
use sottovoce_run::score::{gains_and_losses, mean_and_deviation};
use sottovoce_run::sweep::sweep;
use sottovoce_run::train::{Halt, Trained, train};
use sottovoce_task::algorithms::{coordinate_descent, local, model_propagation};
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::generate::{self, LinearOptions};
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::{Description, Task};
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
    let place = |name: &str| arguments.out.join(name);
    let folder = Folder::begin(&place("run"), true, &names(Command::Train))?;
    let private_folder = Folder::begin(&place("private-run"), true, &names(Command::Train))?;
    generate::write(&LinearOptions { private: true, ..arguments.size.options() }, &place("task"), true)?;
    let read = |file: &str| {
        let mut task = Task::read(&place("task").join(file))?;
        task.set_seed(seed)?;
        load(&task)
    };
    let (loaded, private) = (read("task.toml")?, read(generate::PRIVATE_FILE)?);
    if !output.quiet && !output.json {
        screen::say(format!("{}\n", PublicFacts::of(&loaded).describe(Origin::Simulator)))?;
    }
    let mut softer = loaded.clone();
    softer.problem.trade_off = PROPAGATION_TRADE_OFF;
    softer.task.model.trade_off = PROPAGATION_TRADE_OFF;

    let threads = arguments.run.threads();
    let run = |loaded: &Loaded, algorithm: &'static Description| {
        let bar = screen::Bar::new(output, algorithm.name);
        train(loaded, algorithm, threads, &mut |progress| bar.show(progress))
    };
    let mut runs = [
        run(&loaded, &local::DESCRIPTION)?,
        run(&softer, &model_propagation::DESCRIPTION)?,
        run(&loaded, &coordinate_descent::DESCRIPTION)?,
    ];
    let private_runs = [run(&private, &local::DESCRIPTION)?, run(&private, &coordinate_descent::DESCRIPTION)?];
    // Model propagation minimizes an objective of its own, and with another trade-off: its Q is not on the same scale.
    runs[1].samples.iter_mut().for_each(|sample| sample.objective = None);
    let command = format!("sottovoce demo --agents {agents} --dimension {dimension} --seed {seed}");
    let summary = run_folder::write(&folder, &loaded, &runs.each_ref(), vec![command.clone()], None)?;
    let swept = swept(&private, &private_runs[1], threads, output)?;
    let private_summary = run_folder::write(&private_folder, &private, &private_runs.each_ref(), vec![command], swept)?;
    folder.finish()?;
    private_folder.finish()?;
    if output.json {
        let mut answer = serde_json::to_value(&summary).expect("a summary is JSON");
        answer["private_run"] = serde_json::to_value(&private_summary).expect("a summary is JSON");
        screen::say(answer)?;
    } else if !output.quiet {
        by_algorithm(&runs)?;
        screen::say("")?;
        by_size(&loaded, &runs[0], &runs[2].scores, "together")?;
        tell_private(&private, &private_summary, &private_runs)?;
        let report = |name: &str| place(name).join("report.html").display().to_string();
        screen::say(format!("\nReports: {} and {}", report("run"), report("private-run")))?;
        screen::say(format!("The tasks are in {}; change them and run `sottovoce train`.", place("task").display()))?;
    }
    Ok(())
}

/// The pictures of a private run that need more runs; none for others.
fn swept(loaded: &Loaded, trained: &Trained, threads: usize, output: Output) -> Result<Option<Sweep>, Halt> {
    if loaded.task.privacy.is_none() {
        return Ok(None);
    }
    let bar = screen::Bar::new(output, "other budgets");
    sweep(loaded, trained, threads, &mut |done, total| bar.count(done, total)).map(Some)
}

/// The private run, beside local models on the same scaled data.
fn tell_private(loaded: &Loaded, summary: &Summary, runs: &[Trained; 2]) -> Result<(), Mistake> {
    let [alone, private] = runs;
    screen::say(
        "\nPrivately, on the same points scaled to a length of at most 1, beside local models on these scaled points.",
    )?;
    screen::say(format!("{}\n", PublicFacts::of(loaded).privacy_line(Origin::Simulator)))?;
    let header = ["models", "test accuracy", "gain", "agents gain", "lose"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let home = private.home.as_ref().map(|home| ("home, kept", &home.scores));
    for (name, scores) in [("local", &alone.scores), ("broadcast, with noise", &private.scores)].into_iter().chain(home)
    {
        let of = DemoRow { name, scores, is_alone: name == "local" };
        rows.extend(of.cells(&alone.scores));
    }
    screen::table(&rows)?;
    if let Some(home) = &private.home {
        screen::say("")?;
        by_size(loaded, alone, &home.scores, "at home")?;
    }
    if let Some(accounting) = &summary.accounting {
        screen::say(format!("\n{}", spent(accounting, summary.delta, &PublicFacts::of(loaded).guarantee())))?;
    }
    Ok(())
}

/// Models beside local ones.
struct DemoRow<'a> {
    name: &'a str,
    scores: &'a [Option<f64>],
    is_alone: bool,
}

impl DemoRow<'_> {
    /// Name, accuracy, gain, how many gain and lose; none without scores.
    fn cells(&self, alone: &[Option<f64>]) -> Option<Vec<String>> {
        let (mean, deviation) = mean_and_deviation(self.scores)?;
        let (local, _) = mean_and_deviation(alone)?;
        let (gain, lose) = gains_and_losses(alone, self.scores, true);
        let or_dash = |text: String| if self.is_alone { "-".to_owned() } else { text };
        Some(vec![
            self.name.to_owned(),
            format!("{} ± {}", number::score(mean), number::score(deviation)),
            or_dash(number::change(mean - local)),
            or_dash(number::count(gain)),
            or_dash(number::count(lose)),
        ])
    }
}

fn by_algorithm(runs: &[Trained]) -> Result<(), Mistake> {
    let header = ["algorithm", "test accuracy", "gain", "agents gain", "lose", "vectors sent", "time"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let alone = &runs[0];
    for run in runs {
        let name = run.algorithm.in_words();
        let of = DemoRow { name: &name, scores: &run.scores, is_alone: run.algorithm == alone.algorithm };
        let rest = [number::count(run.counters.vectors_sent), number::seconds(run.seconds)];
        rows.extend(of.cells(&alone.scores).map(|cells| cells.into_iter().chain(rest).collect()));
    }
    screen::table(&rows)
}

/// Who gains: agents in groups by how many points they have.
fn by_size(loaded: &Loaded, alone: &Trained, scores: &[Option<f64>], together: &str) -> Result<(), Mistake> {
    let size = |k: usize| loaded.problem.data.size(PeerId(k as u32));
    let mut rows = vec![["training points", "agents", "alone", together, "gain"].map(str::to_owned).to_vec()];
    for sizes in size_groups((0..loaded.problem.agents()).map(size)) {
        let of = |scores: &[Option<f64>]| {
            let group = scores.iter().enumerate().filter(|(k, _)| sizes.contains(&size(*k))).map(|(_, score)| *score);
            let group: Vec<_> = group.collect();
            (mean_and_deviation(&group), group.len() as u64)
        };
        let ((before, agents), (after, _)) = (of(&alone.scores), of(scores));
        let (Some((before, _)), Some((after, _))) = (before, after) else { continue };
        rows.push(vec![
            format!("{} to {}", sizes.start(), sizes.end()),
            number::count(agents),
            number::score(before),
            number::score(after),
            number::change(after - before),
        ]);
    }
    screen::table(&rows)
}
