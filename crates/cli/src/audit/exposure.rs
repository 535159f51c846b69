//! What a server of a task without a claim learns, on the screen.

use crate::{Output, screen};
use sottovoce_report::plot::number;
use sottovoce_run::audit::{COSINE_ROUNDS, Exposure, MEMBERSHIP_ROUNDS, exposure};
use sottovoce_run::epsilon::Epsilon;
use sottovoce_run::facts::{Origin, PublicFacts};
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Leaves;
use std::ops::ControlFlow;

/// Whether there is no claim, and a server to look at.
pub fn applies(loaded: &Loaded) -> bool {
    loaded.task.privacy.is_none() && loaded.task.algorithm.leaves == Leaves::Obfuscated
}

/// Measures it, and says it.
pub fn run(loaded: &Loaded, trials: u64, seed: u64, output: Output) -> Result<(), Halt> {
    let bar = screen::Bar::new(output, "audit");
    let found = exposure(loaded, trials, seed, &mut |part, done, all| {
        bar.show_part(part, done, all);
        ControlFlow::Continue(())
    })?;
    drop(bar);
    if output.json {
        screen::say(json(&found))?;
    } else if !output.quiet {
        tell(loaded, &found)?;
    }
    Ok(())
}

fn json(found: &Exposure) -> serde_json::Value {
    let mut answer = serde_json::json!({
        "epsilon": Epsilon::from(found.epsilon),
        "audience": "servers",
        "observer": "one server",
        "verdict": "not differential privacy",
        "servers": found.servers,
        "clients": found.clients,
        "cosine_upload": found.cosine_upload,
        "membership_trials": found.trials,
    });
    for (rounds, cosine) in COSINE_ROUNDS.iter().zip(&found.cosines) {
        answer[format!("cosine_{rounds}")] = (*cosine).into();
    }
    for (rounds, area) in MEMBERSHIP_ROUNDS.iter().zip(&found.membership) {
        answer[format!("membership_auc_{rounds}")] = (*area).into();
    }
    answer
}

fn tell(loaded: &Loaded, found: &Exposure) -> Result<(), Mistake> {
    screen::say(PublicFacts::of(loaded).describe(Origin::Simulator))?;
    screen::say("")?;
    let head = ["rounds", "cosine with the gradient", "is it this record? (1/2: a guess)"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.push(vec!["one upload".to_owned(), number::significant(found.cosine_upload, 3), String::new()]);
    for (rounds, cosine) in COSINE_ROUNDS.iter().zip(&found.cosines) {
        let known = MEMBERSHIP_ROUNDS.iter().position(|other| other == rounds);
        let area = known.map_or(String::new(), |place| number::significant(found.membership[place], 3));
        rows.push(vec![number::count(u64::from(*rounds)), number::significant(*cosine, 3), area]);
    }
    screen::table(&rows)?;
    screen::say(format!(
        "\nWhat one of {} servers learns that keeps what it is sent, with models held where they start: the mean over {} clients of the size of the cosine \
         between the mean of all uploads and the client's gradient; and how well {} records are told from others by someone who knows the rest. \
         Other attacks may do better.\nNo claim was audited: this is NOT differential privacy, and the ledgers say epsilon = infinity, audience: the servers.",
        found.servers, found.clients, found.trials,
    ))
}
