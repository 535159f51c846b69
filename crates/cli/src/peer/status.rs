//! `sottovoce peer status`.

use super::admin::{Admin, Asked};
use super::folder::{kept, load_peer, look, read_key};
use crate::{Output, screen};
use sottovoce_net::status::{NeighbourStatus, PeerStatus, Phase};
use sottovoce_net::store::StoredStep;
use sottovoce_privacy::{Accountant, Ledger, Sum};
use sottovoce_report::plot::number;
use sottovoce_report::statistic::missing_in_words;
use sottovoce_report::training::bound_or_infinity;
use sottovoce_run::budget::void_in_words;
use sottovoce_run::peer::{PeerFile, PeerTask};
use sottovoce_run::private::guarantee_in_words;
use sottovoce_run::run_folder::OneOrMany;
use sottovoce_task::error::Mistake;
use sottovoce_task::task::{Observer, Unit};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// The peer's folder
    folder: PathBuf,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let file = PeerFile::read(&arguments.folder)?;
    let one = load_peer(&file)?;
    let identity = read_key(&file.key)?;
    let asked = Admin::read(&arguments.folder).map(|admin| (admin.process, admin.status()));
    let (process, status) = match asked {
        Some((process, Asked::Answered(status))) => (Some(process), status),
        _ => (None, from_store(&file, &identity.id().to_string(), look(&file, &one, &identity)?)),
    };
    let ledger = Ledger::from_charges(status.charges.iter().copied())
        .map_err(|error| Mistake::file(&arguments.folder, format!("the ledger is of no use: {error}")))?;
    let budget = Budget::of(&one, &ledger);
    let delta = one.loaded.task.privacy.map_or(1e-6, |privacy| privacy.delta);
    let source = crate::budget::source(&file, delta)?;
    // PRIVACY: it follows from ids, and is for the owner, who asks.
    let void = crate::budget::recorded(&file, &one)?.and_then(|charged| charged.void(&one.loaded));
    // What the owner runs such a task for.
    let kept = if one.loaded.task.statistic.is_some() { kept(&file, false)? } else { None };
    let passed_over = kept.as_ref().map_or(0, |kept| kept.recalled.passed_over);
    let estimate = kept.filter(|kept| kept.recalled.knows).map(|kept| kept.recalled.model);
    if output.json {
        let mut answer = serde_json::to_value(&status).expect("a status is JSON");
        answer["running"] = serde_json::json!(process.is_some());
        answer["process"] = serde_json::json!(process);
        if process.is_none() {
            answer["phase"] = serde_json::Value::Null;
        }
        answer["epsilon_spent"] = json_bound(budget.spent);
        answer["epsilon_left"] = budget.left.map_or(serde_json::Value::Null, json_bound);
        answer["epsilon"] = budget.epsilon.map_or(serde_json::Value::Null, json_bound);
        answer["delta"] = serde_json::json!(budget.delta);
        if budget.epsilon.is_some() {
            answer["unit"] = serde_json::json!(budget.unit.name());
            answer["observer"] = serde_json::json!(budget.observer.name());
        }
        answer["source"] = source.map_or(serde_json::Value::Null, |(_, source)| source);
        answer["budget"] = serde_json::json!(file.budget);
        answer["void"] = serde_json::json!(void);
        if one.loaded.task.statistic.is_some() {
            answer["estimate"] = serde_json::json!(estimate.map(OneOrMany));
            answer["passed_over"] = serde_json::json!(passed_over);
        }
        screen::say(answer)
    } else if output.quiet {
        Ok(())
    } else {
        let mut lines = Vec::new();
        if let Some((said, _)) = source {
            lines = vec![format!("source      {said}"), format!("odometer    {}", file.budget.display())];
        }
        lines.extend(estimate.map(|estimate| estimate_in_words(&one, &estimate)));
        lines.extend((passed_over > 0).then(|| format!("missing     {}", missing_in_words(passed_over))));
        lines.extend(void.map(|void| format!("void        {}", void_in_words(void))));
        tell(&status, process, &budget, &lines)
    }
}

/// What the peer measures, and what it knows of it.
fn estimate_in_words(one: &PeerTask, estimate: &[f64]) -> String {
    let kind = one.loaded.task.statistic.as_ref().map_or("", |statistic| statistic.kind.name());
    let value = |(column, value): (&String, &f64)| format!("{kind} of {column} {}", number::significant(*value, 9));
    let values: Vec<String> = one.loaded.number_names().iter().zip(estimate).map(value).collect();
    format!("estimate    {}", values.join(", "))
}

/// What the store of a peer that does not run tells.
fn from_store(file: &PeerFile, id: &str, step: Option<StoredStep>) -> PeerStatus {
    let step = step.unwrap_or_default();
    let neighbour = |neighbour: &sottovoce_run::peer::Neighbour| {
        let heard = step.heard.get(&neighbour.agent).filter(|heard| heard.key == neighbour.key);
        NeighbourStatus {
            name: neighbour.agent.clone(),
            connected: false,
            post: heard.and_then(|heard| heard.post.as_ref()).map_or(0, |(evidence, _)| evidence.number),
            heard: None,
            points: heard.and_then(|heard| heard.points),
        }
    };
    PeerStatus {
        name: file.agent.clone(),
        key: id.to_owned(),
        phase: Phase::Asking,
        addresses: Vec::new(),
        wakes: step.wakes,
        messages: step.last_number,
        post: step.post.as_ref().map_or(0, |post| post.stamped.number),
        model_age: None,
        moved: None,
        delivered: false,
        charges: step.ledger.charges().copied().collect(),
        planned: None,
        neighbours: file.neighbours.iter().map(neighbour).collect(),
        counters: BTreeMap::new(),
        refused: BTreeMap::new(),
        uptime: 0.0,
    }
}

/// What releases have cost, and what is left.
struct Budget {
    /// None without privacy.
    epsilon: Option<f64>,
    delta: f64,
    accountant: &'static str,
    spent: f64,
    left: Option<f64>,
    releases: u64,
    planned: Option<u64>,
    unit: Unit,
    observer: Observer,
}

impl Budget {
    fn of(one: &PeerTask, ledger: &Ledger) -> Self {
        let observer = one.loaded.observer();
        let (releases, planned) = (ledger.releases(), one.plan().map(|plan| plan.releases()));
        match one.loaded.task.privacy {
            None => Budget {
                epsilon: None,
                delta: 0.0,
                accountant: "sum",
                spent: Sum.epsilon(ledger, 0.0),
                left: None,
                releases,
                planned,
                unit: Unit::Record,
                observer,
            },
            Some(privacy) => {
                let spent = observer.accountant(privacy.accountant).epsilon(ledger, privacy.delta);
                Budget {
                    epsilon: Some(privacy.epsilon),
                    delta: privacy.delta,
                    accountant: privacy.accountant.name(),
                    spent,
                    left: Some((privacy.epsilon - spent).max(0.0)),
                    releases,
                    planned,
                    unit: privacy.unit,
                    observer,
                }
            }
        }
    }
}

fn json_bound(value: f64) -> serde_json::Value {
    if value.is_finite() { serde_json::json!(value) } else { serde_json::json!("infinity") }
}

fn tell(status: &PeerStatus, process: Option<u32>, budget: &Budget, source: &[String]) -> Result<(), Mistake> {
    let phase = match (process, status.phase) {
        (None, _) => "not running; this is what its store holds".to_owned(),
        (Some(process), Phase::Asking) => {
            format!("running as process {process}; waits for neighbours to tell what they have seen of it")
        }
        (Some(process), Phase::Learning) => format!("running as process {process}; learning"),
        (Some(process), Phase::Quiet) => format!("running as process {process}; quiet"),
    };
    screen::say(format!("{}, {phase}", status.name))?;
    screen::say(format!("id          {}", status.key))?;
    if !status.addresses.is_empty() {
        screen::say(format!("listens at  {}", status.addresses.join(", ")))?;
    }
    let age = status.model_age.map_or("-".to_owned(), |age| format!("{} ago", number::seconds(age)));
    screen::say(format!("model       post {}, changed {age}, {} wakes", status.post, number::count(status.wakes)))?;
    let planned = budget.planned.map_or(String::new(), |planned| format!(" of {} planned", number::count(planned)));
    screen::say(format!("released    {}{planned}", number::count(budget.releases)))?;
    screen::say(match (budget.epsilon, budget.left) {
        (Some(epsilon), Some(left)) => format!(
            "budget      epsilon = {} spent of {}, {} left, at delta = {}, by {}, {}",
            number::bound(budget.spent),
            number::bound(epsilon),
            number::significant(left, 4),
            number::bound(budget.delta),
            budget.accountant,
            guarantee_in_words(budget.unit, &budget.observer)
        ),
        _ => format!("budget      none: no privacy, epsilon = {}", bound_or_infinity(budget.spent)),
    })?;
    source.iter().try_for_each(screen::say)?;
    if let (Some(sent), Some(received)) =
        (status.counters.get("frame_bytes_sent"), status.counters.get("frame_bytes_received"))
    {
        let delivered = if status.delivered { "all delivered" } else { "some not delivered yet" };
        screen::say(format!(
            "traffic     {} sent, {} received, {delivered}",
            number::bytes(*sent),
            number::bytes(*received)
        ))?;
    }
    let refused: u64 = status.refused.values().sum();
    if refused > 0 {
        let reasons: Vec<String> = status.refused.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        screen::say(format!("refused     {} from others: {}", number::count(refused), reasons.join(", ")))?;
    }
    screen::say("")?;
    let mut rows = vec![["neighbour", "connected", "post", "heard", "points"].map(str::to_owned).to_vec()];
    for neighbour in &status.neighbours {
        rows.push(vec![
            neighbour.name.clone(),
            if neighbour.connected { "yes" } else { "no" }.to_owned(),
            if neighbour.post > 0 { neighbour.post.to_string() } else { "-".to_owned() },
            neighbour.heard.map_or("-".to_owned(), |heard| format!("{} ago", number::seconds(heard))),
            neighbour.points.map_or("-".to_owned(), number::count),
        ]);
    }
    screen::table(&rows)
}
