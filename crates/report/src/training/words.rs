//! The answer first: one sentence that says what collaboration brought.

use super::{Origin, PrivateRun, Report, Sample, finite};
use crate::plot::number::{count, score, significant};

/// How the agents fared against their purely local models.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Comparison {
    pub compared: u64,
    pub gain: u64,
    pub lose: u64,
    pub local_mean: f64,
    pub model_mean: f64,
}

/// Compares over the agents that have both scores; `None` if there is no such agent.
pub(super) fn outcome(report: &Report) -> Option<Comparison> {
    let mut o = Comparison::default();
    for agent in &report.agents {
        let (Some(gain), Some(local), Some(model)) =
            (agent.gain(report.higher_is_better), finite(agent.local), finite(agent.model))
        else {
            continue;
        };
        o.compared += 1;
        o.gain += u64::from(gain > 0.0);
        o.lose += u64::from(gain < 0.0);
        o.local_mean += local;
        o.model_mean += model;
    }
    if o.compared == 0 {
        return None;
    }
    o.local_mean /= o.compared as f64;
    o.model_mean /= o.compared as f64;
    Some(o)
}

/// The sentence a report opens with, such as "Collaboration raises mean test accuracy from 0.727 to 0.884: 97 of 100
/// agents gain, 3 lose."
pub fn headline(report: &Report) -> String {
    let result = match outcome(report) {
        // Scores of models that nobody has trained are no gain and no loss.
        _ if report.void.as_ref().is_some_and(|void| void.is_all) => "Nobody learned from any row".to_owned(),
        Some(o) => with_scores(report, &o),
        None => without_scores(report),
    };
    match &report.void {
        Some(void) if void.is_all => format!("{result}: {}. So there are no scores.", void.words),
        Some(void) => format!("{result} {}, also not to the models that agents are compared with.", void.words),
        None => result,
    }
}

fn with_scores(report: &Report, o: &Comparison) -> String {
    let name = &report.score_name;
    let subject = subject(report);
    let (from, to) = (score(o.local_mean), score(o.model_mean));
    if o.compared == 1 {
        return match (o.gain, o.lose) {
            (1, _) => format!("{subject} improves the one agent's {name} from {from} to {to}."),
            (_, 1) => format!("{subject} worsens the one agent's {name} from {from} to {to}."),
            _ => format!("The one agent's {name} is {to}, the same as that of its local model."),
        };
    }
    if o.gain == 0 && o.lose == 0 {
        return format!("Mean {name} is {to}; every agent does exactly as well as alone.");
    }
    let verb = |n: u64, verb: &str| if n == 1 { format!("{verb}s") } else { verb.to_string() };
    let (gain, lose) = (verb(o.gain, "gain"), verb(o.lose, "lose"));
    let who = format!("{} of {} agents {gain}, {} {lose}", count(o.gain), count(o.compared), count(o.lose));
    if from == to {
        return format!("{subject} leaves mean {name} at {to}: {who}.");
    }
    let verb = if o.model_mean > o.local_mean { "raises" } else { "lowers" };
    let better = (o.model_mean > o.local_mean) == report.higher_is_better;
    let verdict = if better { "" } else { ", which is worse" };
    format!("{subject} {verb} mean {name} from {from} to {to}{verdict}: {who}.")
}

/// Who acts in the sentence.
fn subject(report: &Report) -> &'static str {
    match &report.private {
        None => "Collaboration",
        Some(PrivateRun { origin: Origin::Simulator, home: true, .. }) => {
            "In this simulation, private collaboration with home models"
        }
        Some(PrivateRun { origin: Origin::Simulator, .. }) => "In this simulation, private collaboration",
        Some(private) if private.home => "With home models, private collaboration",
        Some(_) => "Private collaboration",
    }
}

fn without_scores(report: &Report) -> String {
    let agents = match report.agents.len() {
        1 => "One agent".to_string(),
        n => format!("{} agents", count(n as u64)),
    };
    let samples: &[Sample] = report.runs.last().map_or(&[], |run| &run.points);
    let mut objectives = samples.iter().filter_map(|s| finite(s.objective));
    let (wakes, vectors) = samples.last().map_or((0, 0), |s| (s.wakes, s.vectors_sent));
    // Where letters alone make agents act, nobody wakes.
    let effort =
        if wakes == 0 { format!("with {} vectors", count(vectors)) } else { format!("in {} wakes", count(wakes)) };
    match (objectives.next(), objectives.next_back()) {
        (Some(first), Some(last)) => format!(
            "{agents} brought the objective from {} to {} {effort}; without test data there is no score.",
            significant(first, 4),
            significant(last, 4),
        ),
        _ if wakes == 0 && vectors > 0 => {
            format!("{agents} sent {} vectors in all; what they gained, their owners know.", count(vectors))
        }
        _ if wakes == 0 => format!("{agents}, and nobody woke: there is nothing to compare."),
        // Of real peers nothing is known that needs everyone's data.
        _ => format!("{agents} woke {} times in all; what they gained, their owners know.", count(wakes)),
    }
}
