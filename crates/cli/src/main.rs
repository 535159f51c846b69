//! The `sottovoce` program: typed arguments, resolved, then run.

mod audit;
mod budget;
mod data;
mod demo;
mod measure;
mod network;
mod owner;
mod peer;
mod plan;
mod privacy;
mod reproduce;
mod screen;
mod train;

use clap::{CommandFactory, Parser, Subcommand};
use sottovoce_run::train::Halt;
use sottovoce_task::algorithms;
use sottovoce_task::algorithms::TABLE;
use sottovoce_task::error::Mistake;
use sottovoce_task::task::{Task, Yields, names_of};
use std::path::PathBuf;
use std::process::ExitCode;

/// Learn together, in a low voice: peer-to-peer machine learning without a server.
///
/// Many people or institutions, each with a small private data set, learn better personal models together. One task file
/// says what all agents agreed to learn; `train` shows on one machine what collaboration would bring to each of them.
///
/// With `[privacy]` in the task, everything that leaves a real peer is differentially private; `train` simulates that with noise from a
/// seed, which protects nobody. Without it epsilon = infinity, and every
/// ledger says so.
#[derive(Parser)]
#[command(name = "sottovoce", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Print nothing but mistakes
    #[arg(long, global = true)]
    quiet: bool,

    /// Print the result as JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sottovoce demo
  sottovoce train task.toml --out run
  sottovoce measure statistic.toml --out run
  sottovoce data train.csv
  sottovoce data generate linear --private --out example
  sottovoce privacy plan example/private.toml
  sottovoce train example/private.toml --out private-run
  sottovoce privacy noise --mechanism gaussian --epsilon 1 --steps 10 --delta 1e-6
  sottovoce audit private/task.toml
  sottovoce reproduce figure-1 --quick

Exit codes: 0 done, 1 an audit refuted a claim or a paper's claim came out otherwise than expected, 2 a mistake in the arguments, the task or its files, 130 stopped.";

#[derive(Subcommand)]
enum Command {
    /// See it work: a synthetic task, learned alone, together and privately, with tables and reports; needs nothing
    Demo(demo::Arguments),
    /// Run a task in the simulator and write a run directory with a report
    #[command(after_help = algorithms::help(&[Yields::ModelPerAgent, Yields::OneModel]))]
    Train(train::Arguments),
    Measure(measure::Arguments),
    Network(network::Arguments),
    Peer(peer::Arguments),
    /// Describe a data set, or generate a task with one
    Data(data::Arguments),
    /// Plan a private task; what epsilon a noise or a ledger comes to, and what noise a budget needs
    Privacy(privacy::Arguments),
    Audit(audit::Arguments),
    /// Run the papers' figures and tables again, and see each paper's claims beside what is found
    Reproduce(reproduce::Arguments),
    /// Print completions for a shell
    ///
    /// For bash: sottovoce completions bash > /etc/bash_completion.d/sottovoce
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Where a command's result goes.
#[derive(Clone, Copy)]
struct Output {
    quiet: bool,
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output { quiet: arguments.quiet, json: arguments.json };
    let done = match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments, output),
        Command::Train(arguments) => train::run(&arguments, output),
        Command::Measure(arguments) => measure::run(&arguments, output),
        Command::Network(arguments) => network::run(&arguments, output),
        Command::Peer(arguments) => peer::run(&arguments, output),
        Command::Data(arguments) => data::run(&arguments, output),
        Command::Privacy(arguments) => privacy::run(&arguments, output),
        Command::Audit(arguments) => match audit::run(&arguments, output) {
            Ok(audit::Verdict::Refuted) => return ExitCode::from(1),
            other => other.map(|_| ()),
        },
        Command::Reproduce(arguments) => match reproduce::run(&arguments, output) {
            Ok(false) => return ExitCode::from(1),
            other => other.map(|_| ()),
        },
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "sottovoce", &mut std::io::stdout());
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Halt::Mistake(mistake)) => {
            eprintln!("error: {mistake}");
            ExitCode::from(2)
        }
        Err(Halt::Interrupted) => {
            eprintln!("stopped");
            ExitCode::from(130)
        }
    }
}

/// Refuses a task for another command, in a line that says which.
fn expect(task: &Task, yields: &[Yields], verb: &str) -> Result<(), Mistake> {
    if yields.contains(&task.algorithm.yields) {
        return Ok(());
    }
    let (name, accepted) = (task.algorithm.name, names_of(TABLE, |one| yields.contains(&one.yields)));
    let other = if verb == "train" {
        "measures a statistic, by `sottovoce measure`"
    } else {
        "learns models, by `sottovoce train`"
    };
    let what = format!("{name} {other}; accepted by `sottovoce {verb}`: algorithm = {accepted}");
    Err(Mistake::file(&task.source, what))
}

/// The arguments that all runs share.
#[derive(clap::Args)]
struct RunArguments {
    /// Worker threads; they change the speed, never the result [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl RunArguments {
    fn threads(&self) -> usize {
        self.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }
}

/// The folder to make, and whether it may replace one.
#[derive(clap::Args)]
struct OutArguments {
    /// The folder to write; it appears whole or not at all
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Replace the folder if it exists and holds nothing else
    #[arg(long)]
    force: bool,
}
