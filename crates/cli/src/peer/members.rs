//! `sottovoce peer add` and `sottovoce peer remove`: who is a neighbour. The rest of the file, with its comments, stays as it is.

use super::folder::replace;
use super::init::parse_address;
use crate::{Output, screen};
use sottovoce_net::Key;
use sottovoce_run::peer::{PEER_FILE, PeerFile, lists_everyone};
use sottovoce_task::error::Mistake;
use sottovoce_task::task::Task;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct AddArguments {
    /// The peer's folder
    folder: PathBuf,

    /// The card of the neighbour, as its `peer init` wrote it
    card: PathBuf,

    /// The weight of the edge, the same on both sides [default: as on the card]
    #[arg(long, value_name = "WEIGHT")]
    weight: Option<f64>,
}

#[derive(clap::Args)]
pub struct RemoveArguments {
    /// The peer's folder
    folder: PathBuf,

    /// The neighbour's name
    agent: String,
}

/// Where a neighbour's table begins.
const TABLE: &str = "[[neighbours]]";

pub fn add(arguments: &AddArguments, output: Output) -> Result<(), Mistake> {
    let (text, file) = read(&arguments.folder)?;
    let card =
        std::fs::read_to_string(&arguments.card).map_err(|error| Mistake::io(&arguments.card, "read", &error))?;
    let weighed = |line: &str| match arguments.weight {
        Some(weight) if line.trim_start().starts_with("weight") => format!("weight = {weight:?}\n"),
        _ => format!("{line}\n"),
    };
    let card: String = card.lines().map(weighed).collect();
    let before = PeerFile::parse(&text, &file)?;
    // A card says who it is, and nothing of this peer.
    if !card.trim_start().starts_with(TABLE) || card.matches(TABLE).count() != 1 {
        let what = "is no card; accepted: a file that begins with [[neighbours]], as `sottovoce peer init` writes it";
        return Err(Mistake::file(&arguments.card, what));
    }
    let text = format!("{}\n\n{}", text.trim_end(), card.trim_start());
    let after = PeerFile::parse(&text, &file)?;
    let new = after.neighbours.iter().find(|now| !before.neighbours.contains(now));
    let Some(new) = new else { return Err(Mistake::file(&arguments.card, "names nobody new")) };
    if new.key.parse::<Key>().is_err() {
        return Err(Mistake::file(&arguments.card, format!("key is {:?}; accepted: the id of a peer", new.key)));
    }
    new.addresses.iter().try_for_each(|text| parse_address(text, "addresses", Some(&arguments.card)).map(drop))?;
    // What is wrong with the task itself is said when the peer starts.
    let task = Task::read(&after.task).ok().filter(lists_everyone);
    if let Some(task) = task.as_ref().filter(|_| new.weight != 1.0) {
        let why = if task.algorithm.everyone { "has no use for it" } else { "learns its weights" };
        let what = format!("weight is {}, and the task {why}; accepted: no weight, or 1", new.weight);
        return Err(Mistake::file(&arguments.card, what));
    }
    replace(&file, &text)?;
    if !output.quiet {
        let how = match task {
            Some(task) if task.algorithm.everyone => "as all members do".to_owned(),
            Some(_) => "as closely as they find out".to_owned(),
            None => format!("weight {}", new.weight),
        };
        screen::say(format!(
            "{} learns with {}, {how}. A running peer notices when it is started again.",
            after.agent, new.agent
        ))?;
    }
    Ok(())
}

pub fn remove(arguments: &RemoveArguments, output: Output) -> Result<(), Mistake> {
    let (text, file) = read(&arguments.folder)?;
    let before = PeerFile::parse(&text, &file)?;
    let mut parts: Vec<String> = vec![String::new()];
    for line in text.lines() {
        if line.trim_start().starts_with(TABLE) {
            parts.push(String::new());
        }
        let last = parts.last_mut().expect("there is a first part");
        *last += line;
        last.push('\n');
    }
    let head = parts.remove(0);
    for k in 0..parts.len() {
        let rest: String = parts.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, part)| part.as_str()).collect();
        let text = format!("{head}{rest}");
        // The part whose absence makes the neighbour disappear, and nothing else.
        let Ok(after) = PeerFile::parse(&text, &file) else { continue };
        let gone: Vec<_> = before.neighbours.iter().filter(|was| !after.neighbours.contains(was)).collect();
        if gone.len() == 1 && gone[0].agent == arguments.agent {
            replace(&file, &text)?;
            if !output.quiet {
                let what = "A running peer notices when it is started again.";
                screen::say(format!("{} learns without {}. {what}", before.agent, arguments.agent))?;
            }
            return Ok(());
        }
    }
    let known: Vec<&str> = before.neighbours.iter().map(|neighbour| neighbour.agent.as_str()).collect();
    let what = format!("{:?} is no neighbour; accepted: {}", arguments.agent, known.join(", "));
    Err(Mistake::file(&file, what))
}

fn read(folder: &Path) -> Result<(String, PathBuf), Mistake> {
    // The whole check comes first, with its messages.
    PeerFile::read(folder)?;
    let file = folder.join(PEER_FILE);
    let text = std::fs::read_to_string(&file).map_err(|error| Mistake::io(&file, "read", &error))?;
    Ok((text, file))
}
