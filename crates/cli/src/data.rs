//! `sottovoce data`: describe a data set, or generate a task with one.

use crate::{OutArguments, Output, screen};
use clap::Subcommand;
use sottovoce_lab::describe::describe;
use sottovoce_lab::error::Mistake;
use sottovoce_lab::generate::moons::{self, MoonsOptions};
use sottovoce_lab::generate::{self, LinearOptions};
use sottovoce_lab::train::Halt;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// The data set: .csv, .csv.gz, .libsvm or .svm
    file: Option<PathBuf>,

    /// For libsvm: the file with the agent of each line
    #[arg(long, value_name = "FILE")]
    agents: Option<PathBuf>,

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
        (None, Some(file)) => {
            let summary = describe(file, arguments.agents.as_deref())?;
            if output.json {
                screen::say(serde_json::to_string_pretty(&summary).expect("a summary is JSON"))?;
            } else if !output.quiet {
                screen::say(&summary)?;
            }
            Ok(())
        }
        (None, None) => Err(Mistake::new("accepted: `sottovoce data FILE`, or `sottovoce data generate`").into()),
    }
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
