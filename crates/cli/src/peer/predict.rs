//! `sottovoce peer predict`.

use super::folder::{heard, look, read_key, saved};
use crate::{Output, screen};
use sottovoce_lab::error::Mistake;
use sottovoce_lab::peer::{PeerFile, load};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// The peer's folder
    folder: PathBuf,

    /// A csv file with the task's features by name; columns agent and label are not looked at
    data: PathBuf,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let file = PeerFile::read(&arguments.folder)?;
    let one = load(&file)?;
    let Some(step) = look(&file, &one, &read_key(&file.key)?)? else {
        let what = "the peer has learned nothing yet; accepted: a peer that was started and has met its neighbours";
        return Err(Mistake::file(&arguments.folder, what));
    };
    let model = one.best_model(saved(&step), &heard(&step, &file))?;
    let text = one.predictions(&model, &arguments.data)?;
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
