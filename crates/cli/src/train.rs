//! `sottovoce train`.

use crate::budget::{charge, check_outside, new_instance};
use crate::{OutArguments, Output, RunArguments, screen};
use sottovoce_report::plot::number;
use sottovoce_report::training::bound_or_infinity;
use sottovoce_run::budget::void_in_words;
use sottovoce_run::facts::{Origin, PublicFacts};
use sottovoce_run::outlook::outlook;
use sottovoce_run::pipeline::{Directory, Outcome, Request};
use sottovoce_run::run_folder::{Accounting, ModelFigures, Summary};
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use sottovoce_task::load::{Loaded, load, load_without};
use sottovoce_task::task::{AccountantName, Task, Yields};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// The task file
    task: PathBuf,

    #[command(flatten)]
    out: OutArguments,

    /// Another seed than the task's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    run: RunArguments,

    /// Leave out what is run for comparison only: of a private task other budgets and numbers of updates, a dozen runs; of boosting
    /// and learned graphs other models
    #[arg(long)]
    no_sweep: bool,

    /// Charge every row of the task to the odometer in this folder before it runs; see `privacy budget`
    #[arg(long, value_name = "DIR")]
    budget: Option<PathBuf>,

    /// Check the task and its files, say what would run and, if it is private, the plan; write nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    screen::watch_for_stop();
    let mut task = Task::read(&arguments.task)?;
    crate::expect(&task, &[Yields::ModelPerAgent, Yields::OneModel], "train")?;
    if let Some(seed) = arguments.seed {
        task.set_seed(seed)?;
    }
    if arguments.dry_run {
        let loaded = load(&task)?;
        let facts = PublicFacts::of(&loaded);
        screen::warn(output, &facts.warnings);
        if output.json {
            screen::say(sizes(&loaded))?;
        } else if !output.quiet {
            screen::say(format!("{}\nNothing was run: --dry-run.", facts.describe(Origin::Simulator)))?;
        }
        return Ok(());
    }
    arguments.budget.iter().try_for_each(|budget| check_outside(budget, &arguments.out.out))?;
    let out = &arguments.out.out;
    let command =
        format!("sottovoce train {} --seed {} --out {}", arguments.task.display(), task.run.seed, out.display());
    let mut source = None;
    let request = Request {
        task: &task,
        directory: Some(Directory { path: out, force: arguments.out.force, commands: vec![command] }),
        threads: arguments.run.threads(),
        comparisons: !arguments.no_sweep,
        charge: &mut |loaded| charged(loaded, &task, arguments, output, &mut source),
    };
    let mut shown = screen::Shown::new(output);
    let Outcome { loaded, summary, .. } = sottovoce_run::pipeline::run(request, &mut |news| shown.tell(news))?;
    drop(shown);
    if output.json {
        let mut answer = serde_json::to_value(&summary).expect("a summary is JSON");
        if let Some(source) = source {
            answer["source"] = source;
        }
        screen::say(answer)?;
    } else if !output.quiet {
        if let Some(figures) = summary.models() {
            let guarantee = PublicFacts::of(&loaded).guarantee();
            screen::say(tell(&summary, figures, &guarantee, loaded.task.run.tolerance.is_some()))?;
        }
        screen::say(format!("Report: {}", out.join("report.html").display()))?;
    }
    Ok(())
}

/// With --budget, charges the run to a source, and leaves out what records over their limit say. `source` becomes what the source has
/// spent, for programs.
fn charged(
    loaded: Loaded,
    task: &Task,
    arguments: &Arguments,
    output: Output,
    source: &mut Option<serde_json::Value>,
) -> Result<Loaded, Mistake> {
    let Some(folder) = &arguments.budget else { return Ok(loaded) };
    // PRIVACY: the whole plan is charged, and safe, before the run begins. A run that is repeated is charged again, also with its old seed.
    let charged = charge(folder, new_instance()?, &loaded, output, |charged| {
        charged.has_ids().then(|| load_without(task, &|id| charged.is_void(id))).transpose()
    })?;
    let Some((charged, without)) = charged else { return Ok(loaded) };
    if !output.quiet && !output.json {
        screen::say(format!("Source: {}.", charged.said))?;
    }
    // PRIVACY: what is void follows from ids. The simulator's files and words are for whoever has all data; peers say nothing of it.
    let void = charged.void(&loaded);
    screen::warn(output, void.map(void_in_words).as_slice());
    *source = Some(charged.source);
    Ok(Loaded { void, ..without.unwrap_or(loaded) })
}

/// What would run, for programs.
fn sizes(loaded: &Loaded) -> serde_json::Value {
    let problem = &loaded.problem;
    let mut sizes = serde_json::json!({
        "name": loaded.task.name,
        "algorithm": loaded.task.algorithm.name,
        "agents": problem.agents(),
        "dimension": problem.dimension(),
        "points": problem.data.len(),
        "edges": loaded.edge_count(),
    });
    if let Some(outlook) = outlook(loaded) {
        sizes["privacy"] = serde_json::to_value(outlook).expect("an outlook is JSON");
    }
    sizes
}

/// What was spent, in a line.
pub fn spent(accounting: &Accounting, delta: f64, guarantee: &str) -> String {
    let by = |name: &str| bound_or_infinity(accounting.epsilon[name].into());
    let others = AccountantName::ALL.iter().map(|other| other.name()).filter(|&name| name != accounting.accountant);
    let others: Vec<String> = others.map(|name| format!("{} by {name}", by(name))).collect();
    format!(
        "Spent: epsilon = {} of {} at delta = {}, by {} ({}), {guarantee}; simulated.",
        by(accounting.accountant),
        number::bound(accounting.budget),
        number::bound(delta),
        accounting.accountant,
        others.join(", ")
    )
}

fn tell(summary: &Summary, figures: &ModelFigures, guarantee: &str, tolerance: bool) -> String {
    let what = if figures.accuracy.is_some() { "Mean test accuracy" } else { "Mean test RMSE" };
    let mut text = match figures.accuracy.or(figures.rmse) {
        None if figures.void.is_some_and(|void| void.is_all()) => {
            "Nobody learned from any row, so no scores.".to_owned()
        }
        Some(scores) => {
            let alone = scores.local_mean.map_or("-".to_owned(), number::score);
            let mean = number::score(scores.mean);
            let count = |agents: Option<u64>| number::count(agents.unwrap_or(0));
            match scores.home_mean {
                Some(home) => format!(
                    "{what}: {alone} alone, {mean} as broadcast, {} at home; {} agents gain with their home model, {} lose.",
                    number::score(home),
                    count(scores.home_agents_gain),
                    count(scores.home_agents_lose)
                ),
                None if figures.holders.is_some() => format!("{what}: {mean} with one model for all."),
                None => format!(
                    "{what}: {alone} alone, {mean} together; {} agents gain, {} lose.",
                    number::count(scores.agents_gain),
                    number::count(scores.agents_lose)
                ),
            }
        }
        None => "No test points, so no scores.".to_owned(),
    };
    if let Some(void) = figures.void {
        text += &format!("\n{}.", void_in_words(void));
    }
    if let Some(accounting) = &summary.accounting {
        text += &format!("\n{}", spent(accounting, summary.delta, guarantee));
    }
    text += &format!(
        "\n{} wakes, {} vectors, {} sent, {}{}; objective {}.",
        number::count(summary.wakes),
        number::count(figures.vectors_sent),
        number::bytes(summary.bytes_sent),
        number::seconds(summary.seconds),
        screen::ends(summary.quiet, tolerance),
        figures.objective.map_or("-".to_owned(), |objective| number::significant(objective, 6))
    );
    if let Some(gap) = figures.duality_gap() {
        text += &format!(" It is at most {} above its minimum.", number::significant(gap, 3));
    }
    if let Some(graph) = figures.learned_graph() {
        text += &format!("\nLearned {} edges", number::count(graph.edges as u64));
        if let (Some(within), Some(between)) = (graph.within_mean, graph.between_mean) {
            let [within, between] = [within, between].map(|weight| number::significant(weight, 2));
            text += &format!(", of weight {within} within groups and {between} between them, in the mean");
        }
        text += ".";
    }
    text
}
