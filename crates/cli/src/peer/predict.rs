//! `sottovoce peer predict`.

use super::folder::{heard, load_peer, look, read_key, saved};
use crate::{Output, screen};
use sottovoce_report::plot::number;
use sottovoce_run::peer::{Detail, PeerFile, STAY_AT_HOME};
use sottovoce_task::error::Mistake;
use sottovoce_task::private_rows::{Count, Moved, Rule};
use std::path::PathBuf;

/// Predict with the peer's best model, also while it runs; predictions of a private peer must stay with its owner
///
/// Of a private peer that is its home model, which is made of its exact data: the label and a probability with two decimals are printed,
/// for the squared loss a number with two significant digits, and rows beyond the task's feature bound are shrunk to it. THIS IS NO PROTECTION:
/// nobody is charged for predictions, and whoever may ask for many of them learns the model, and from it about records. Predictions of a
/// home model must stay with its owner; use --broadcast for those that others may see.
///
/// In a task without privacy exact models leave the peer anyway, and the exact margin is printed, too.
#[derive(clap::Args)]
pub struct Arguments {
    /// The peer's folder
    folder: PathBuf,

    /// A csv file with the task's features by name; columns agent, label and data.record are not looked at. In a private task nothing
    /// that a row holds is refused: features are read by the rules of training rows, as `data check` lists them
    data: PathBuf,

    /// Use what the peer has sent to others last, noise and all: it was charged, so its predictions may be shown, and are exact
    #[arg(long)]
    broadcast: bool,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let file = PeerFile::read(&arguments.folder)?;
    let one = load_peer(&file)?;
    if one.loaded.task.statistic.is_some() {
        let what = "the task measures a statistic, so there is no model; accepted: `sottovoce peer status`, which shows the estimate";
        return Err(Mistake::file(&arguments.folder, what));
    }
    let Some(step) = look(&file, &one, &read_key(&file.key)?)? else {
        let what = "the peer has learned nothing yet; accepted: a peer that was started and has met its neighbours";
        return Err(Mistake::file(&arguments.folder, what));
    };
    let heard = heard(&step, &file);
    let (model, detail) = match arguments.broadcast {
        // PRIVACY: post-processing of what was charged and sent.
        true => match one.told_model(saved(&step), &heard)? {
            Some(model) => (model, Detail::Exact),
            None => {
                let what = "the peer has sent no model yet; accepted with --broadcast: a peer that has";
                return Err(Mistake::file(&arguments.folder, what));
            }
        },
        // PRIVACY: made of exact data and charged to nobody. It is for the owner, who is told so.
        false => (one.best_model(saved(&step), &heard)?, one.detail()),
    };
    let (text, moved) = one.predictions(&model, detail, &arguments.data)?;
    let words = |(rule, count): (Rule, Count)| {
        format!("{} {} (first in line {})", number::count(count.times), rule.in_words(), count.line)
    };
    let moved: Vec<String> = moved.iter().flat_map(Moved::counts).map(words).collect();
    screen::warn(output, &moved);
    if detail == Detail::Coarse {
        screen::warn(output, &[STAY_AT_HOME.to_owned()]);
    }
    if output.json {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let row = |line: &str| -> serde_json::Value {
            let values = line.split(',').map(|value| value.parse::<f64>().unwrap_or(f64::NAN));
            names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), serde_json::json!(value))).collect()
        };
        screen::say(serde_json::Value::Array(lines.map(row).collect()))
    } else {
        screen::say(text.trim_end())
    }
}
