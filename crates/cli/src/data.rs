//! `sottovoce data`: describe a data set, check that of a private task, or generate a task with one.

use crate::{OutArguments, Output, budget, screen};
use clap::Subcommand;
use sottovoce_report::plot::number;
use sottovoce_run::budget::{Void, void_in_words};
use sottovoce_run::peer::{PeerFile, load, own_task};
use sottovoce_run::train::Halt;
use sottovoce_task::data::moved;
use sottovoce_task::describe::describe;
use sottovoce_task::error::Mistake;
use sottovoce_task::generate::moons::{self, MoonsOptions};
use sottovoce_task::generate::{self, LinearOptions};
use sottovoce_task::private_rows::{Count, Ids, Moved, Rule};
use sottovoce_task::task::Task;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// The data set: .csv, .csv.gz, .libsvm or .svm
    file: Option<PathBuf>,

    /// For libsvm: the file with the agent of each line
    #[arg(long, value_name = "FILE")]
    agents: Option<PathBuf>,

    /// The column of ids of a csv file, as data.record of a task names it
    #[arg(long, value_name = "COLUMN")]
    record: Option<String>,

    #[command(subcommand)]
    command: Option<DataCommand>,
}

#[derive(Subcommand)]
enum DataCommand {
    /// Write a task with synthetic data and its graph
    Generate {
        #[command(subcommand)]
        kind: Generate,
    },

    /// Show what a private task makes of records that are out of its range, for the owner of the data alone
    ///
    /// A private task refuses nothing that a record holds, because a refusal would tell of it. This says which labels, features and
    /// points were moved, by which rule, and where first. It is made of exact data: do not show it.
    Check {
        /// A task file, or the folder of a peer
        path: PathBuf,
    },
}

#[derive(Subcommand)]
enum Generate {
    /// Linear classification: each agent's labels come from its own direction in a plane; agents with similar directions are
    /// neighbours (Bellet et al. 2018, section 5.1)
    Linear {
        #[command(flatten)]
        size: LinearArguments,

        /// Flip labels of test points too, so that accuracies cannot exceed 0.95
        #[arg(long)]
        flip_test: bool,

        /// Write a private task as well, on the same data: private.toml
        #[arg(long)]
        private: bool,

        #[command(flatten)]
        out: OutArguments,
    },

    /// Boosting with a learned graph: agents in four groups, each with two half moons turned by its own angle (thesis, section
    /// 2.5)
    Moons {
        /// How many agents: a tenth of them in the first group, four tenths in the last
        #[arg(long, value_name = "N", default_value_t = 100)]
        agents: usize,

        /// The seed from which everything is drawn
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,

        #[command(flatten)]
        out: OutArguments,
    },
}

/// The size of a synthetic linear task.
#[derive(clap::Args)]
pub struct LinearArguments {
    /// How many agents
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub agents: usize,

    /// How many features
    #[arg(long, value_name = "P", default_value_t = 50)]
    pub dimension: usize,

    /// The seed from which everything is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl LinearArguments {
    pub fn options(&self) -> LinearOptions {
        let Self { agents, dimension, seed } = *self;
        LinearOptions { agents, dimension, seed, ..LinearOptions::default() }
    }
}

/// The first line of a check.
const OWNER_ONLY: &str =
    "For the owner of the data only: this is made of exact data and protected by nothing. Do not show it.";

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    match (&arguments.command, &arguments.file) {
        (Some(DataCommand::Generate { kind: Generate::Linear { size, flip_test, private, out } }), _) => {
            let options = LinearOptions { flip_test: *flip_test, private: *private, ..size.options() };
            generate::write(&options, &out.out, out.force)?;
            let written = |file: &&&str| *private || **file != generate::PRIVATE_FILE;
            let files: Vec<&str> = generate::FILES.iter().filter(written).copied().collect();
            tell(out, &files, if *private { generate::PRIVATE_FILE } else { "task.toml" }, output)
        }
        (Some(DataCommand::Generate { kind: Generate::Moons { agents, seed, out } }), _) => {
            let options = MoonsOptions { seed: *seed, ..MoonsOptions::of_agents(*agents) };
            moons::write(&options, &out.out, out.force)?;
            tell(out, moons::FILES, "task.toml", output)
        }
        (Some(DataCommand::Check { path }), _) => check(path, output),
        (None, Some(file)) => {
            let summary = describe(file, arguments.agents.as_deref(), arguments.record.as_deref())?;
            if output.json {
                screen::say(serde_json::to_string_pretty(&summary).expect("a summary is JSON"))?;
            } else if !output.quiet {
                screen::say(&summary)?;
            }
            Ok(())
        }
        (None, None) => {
            Err(Mistake::new("accepted: `sottovoce data FILE`, `sottovoce data check` or `sottovoce data generate`")
                .into())
        }
    }
}

/// Says what was moved in the files of a private task. Whatever that is, the command succeeds.
fn check(path: &Path, output: Output) -> Result<(), Halt> {
    let peer = if path.is_dir() { Some(PeerFile::read(path)?) } else { None };
    let task = peer.as_ref().map_or_else(|| Task::read(path), own_task)?;
    if task.privacy.is_none() {
        let what = "a task without [privacy] moves nothing, and refuses what is out of range; accepted: a private task";
        return Err(Mistake::file(path, what).into());
    }
    let files = moved(&task)?;
    let void = peer.as_ref().map(void_of).transpose()?.flatten();
    if output.json {
        let count = |(rule, count): (Rule, Count)| serde_json::json!({ "rule": rule, "times": count.times, "first_line": count.line });
        let file = |file: &Moved| {
            let counts: Vec<serde_json::Value> = file.counts().map(count).collect();
            serde_json::json!({ "file": file.file, "rows": file.lines.len(), "moved": counts, "ids": file.ids })
        };
        let files: Vec<serde_json::Value> = files.iter().map(file).collect();
        screen::say(serde_json::json!({ "note": OWNER_ONLY, "files": files, "void": void }))?;
    } else if !output.quiet {
        let mut text = OWNER_ONLY.to_owned();
        for (file, what) in files.iter().zip(["training", "test"]) {
            let name = file.file.file_name().unwrap_or_default().to_string_lossy();
            text += &format!("\n{name}: {} {what} rows", number::count(file.lines.len() as u64));
            if file.counts().next().is_none() {
                text += ", nothing was moved";
            }
            for (rule, Count { times, line }) in file.counts() {
                text += &format!("\n  {} {} (first in line {line})", number::count(times), rule.in_words());
            }
            text += &file.ids.map_or(String::new(), ids_in_words);
        }
        text += &void.map_or(String::new(), |void| format!("\n{}.", void_in_words(void)));
        screen::say(text)?;
    }
    Ok(())
}

/// What of a peer's rows is over the limit of their source, if the peer was started; none otherwise.
fn void_of(file: &PeerFile) -> Result<Option<Void>, Mistake> {
    let one = load(file)?;
    Ok(budget::recorded(file, &one)?.and_then(|charged| charged.void(&one.loaded)))
}

/// The lines about ids.
fn ids_in_words(ids: Ids) -> String {
    let Ids { records, rows_without_id, rows_max } = ids;
    let [s, rows] = [records, rows_max].map(|number| if number == 1 { "" } else { "s" });
    let mut text = format!(
        "\n  {} record{s} by their ids, of at most {} row{rows}",
        number::count(records),
        number::count(rows_max)
    );
    if rows_without_id > 0 {
        let are = if rows_without_id == 1 { "row without an id is" } else { "rows without an id are" };
        text += &format!("\n  {} {are} one record", number::count(rows_without_id));
    }
    text
}

/// What was written, and what to do with it.
fn tell(out: &OutArguments, files: &[&str], task: &str, output: Output) -> Result<(), Halt> {
    if output.json {
        screen::say(serde_json::json!({ "out": out.out, "files": files }))?;
    } else if !output.quiet {
        screen::say(format!("Wrote {}: {}", out.out.display(), files.join(", ")))?;
        screen::say(format!("Next: sottovoce train {} --out run", out.out.join(task).display()))?;
    }
    Ok(())
}
