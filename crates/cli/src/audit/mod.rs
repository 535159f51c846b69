//! `sottovoce audit`: tries to prove the privacy claim of a task wrong.

mod exposure;
mod frames;

use crate::{Output, screen};
use sottovoce_privacy::Event;
use sottovoce_privacy::audit::{ALARM, CONFIDENCE, MechanismAudit};
use sottovoce_report::plot::number;
use sottovoce_run::audit::{Audit, AuditSettings, Ended, audit, audit_artefacts, audit_frames};
use sottovoce_run::facts::{Origin, PublicFacts};
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use sottovoce_task::load::load;
use sottovoce_task::task::{Observer, Task};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Try to prove the privacy claim of a task wrong
///
/// Four levels. Mechanisms: how well two inputs can be told apart by what one release says of them. Whole runs: the same of all that an agent
/// ever releases. Record and replay: whether anything that is sent, or when, follows from a record past the noise. Artefacts: the real
/// commands on neighbouring files, hostile records among them: exit codes, output, files, frames.
///
/// A claim that is refuted is false. One that is not refuted is not proved.
///
/// A task of "polar-sgd" without a section for privacy claims nothing; what one of its servers learns of a client is measured instead.
#[derive(clap::Args)]
pub struct Arguments {
    /// The task file; it needs a section for privacy, unless gradients go to servers
    task: PathBuf,

    /// Runs in each of two worlds; each mechanism is used 250 times as often
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(20..=1_000_000))]
    trials: u64,

    /// Decides the noise and the records that are tried
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Leave out the level of artefacts, which runs the commands on neighbouring files
    #[arg(long)]
    skip_artefacts: bool,
}

/// What the exit code tells.
pub enum Verdict {
    NotRefuted,
    Refuted,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<Verdict, Halt> {
    screen::watch_for_stop();
    let loaded = load(&Task::read(&arguments.task)?)?;
    if !output.quiet && !output.json && loaded.task.privacy.is_some() {
        screen::say(PublicFacts::of(&loaded).describe(Origin::Simulator))?;
    }
    if exposure::applies(&loaded) {
        exposure::run(&loaded, arguments.trials, arguments.seed, output)?;
        return Ok(Verdict::NotRefuted);
    }
    let bar = screen::Bar::new(output, "audit");
    let settings = AuditSettings::for_trials(arguments.trials, arguments.seed);
    let mut audited = audit(&loaded, settings, &mut |part, done, all| {
        bar.show_part(part, done, all);
        ControlFlow::Continue(())
    })?;
    // Files and frames of tokens hold what only some members see.
    if !arguments.skip_artefacts && loaded.observer() == Observer::Everyone {
        let artefacts = audit_artefacts(&loaded, arguments.seed, &mut start, &mut |done, all| {
            bar.show_part("artefacts", done, all);
            ControlFlow::Continue(())
        })?;
        audited.add_artefacts(artefacts);
        let frames = audit_frames(&loaded, arguments.seed, &mut frames::InMemory, &mut |done, all| {
            bar.show_part("frames", done, all);
            ControlFlow::Continue(())
        })?;
        frames.into_iter().for_each(|frames| audited.add_frames(frames));
    }
    drop(bar);
    if output.json {
        screen::say(json(&audited))?;
    } else if !output.quiet {
        tell(&audited)?;
    }
    Ok(if audited.is_refuted() { Verdict::Refuted } else { Verdict::NotRefuted })
}

/// Runs this program with other words, and waits for it.
fn start(words: &[OsString]) -> Result<Ended, Mistake> {
    let cannot = |error: std::io::Error| Mistake::new(format!("this program cannot be started again: {error}"));
    let program = std::env::current_exe().map_err(cannot)?;
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().map_err(cannot)?;
    Ok(Ended { code: output.status.code(), out: output.stdout, err: output.stderr })
}

fn name(event: Event) -> &'static str {
    match event {
        Event::Reveal => "reveal",
        Event::Laplace { .. } => "laplace",
        Event::Gaussian { .. } => "gaussian",
        Event::GammaNorm { .. } => "gamma-norm",
        Event::RandomizedResponse { .. } => "randomized-response",
    }
}

fn json(audit: &Audit) -> serde_json::Value {
    let mechanism = |mechanism: &MechanismAudit| {
        serde_json::json!({
            "mechanism": name(mechanism.event),
            "dimension": mechanism.dimension,
            "trials": mechanism.trials,
            "epsilon": mechanism.claim,
            "delta": mechanism.delta,
            "lower_bound": mechanism.epsilon.likely,
            "lower_bound_certain": mechanism.epsilon.certain,
            "refuted": mechanism.is_refuted(),
        })
    };
    let run = audit.run.as_ref().map(|run| {
        serde_json::json!({
            "target": run.target,
            "records": run.records,
            "agents": run.agents,
            "releases": run.releases,
            "seen_by": run.seen_by,
            "trials": run.trials,
            "lower_bound": run.epsilon.likely,
            "lower_bound_certain": run.epsilon.certain,
        })
    });
    serde_json::json!({
        "epsilon": audit.epsilon,
        "delta": audit.delta,
        "observer": audit.observer,
        "lower_bound": audit.run.as_ref().map_or(0.0, |run| run.epsilon.likely),
        "lower_bound_confidence": 1.0 - CONFIDENCE,
        "lower_bound_certain": audit.run.as_ref().map_or(0.0, |run| run.epsilon.certain),
        "lower_bound_certain_confidence": 1.0 - ALARM,
        "verdict": audit.verdict(),
        "findings": audit.findings,
        "mechanisms": audit.mechanisms.iter().map(mechanism).collect::<Vec<_>>(),
        "runs": run,
        "replay": audit.replay,
        "artefacts": audit.artefacts,
        "frames": audit.frames,
    })
}

fn tell(audit: &Audit) -> Result<(), Mistake> {
    let digits = |x: f64| number::significant(x, 4);
    let head = ["part", "trials", "claimed epsilon", "at least", "95% bound"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for mechanism in &audit.mechanisms {
        let numbers = if mechanism.dimension == 1 { "number" } else { "numbers" };
        rows.push(vec![
            format!("one release, {}, {} {numbers}", name(mechanism.event), mechanism.dimension),
            number::count(mechanism.trials as u64),
            digits(mechanism.claim),
            digits(mechanism.epsilon.certain),
            digits(mechanism.epsilon.likely),
        ]);
    }
    match &audit.run {
        Some(run) => {
            let s = if run.releases == 1 { "" } else { "s" };
            rows.push(vec![
                match &run.seen_by[..] {
                    [] => format!("a whole run, {} release{s} of agent {}", run.releases, run.target),
                    seen_by => {
                        format!(
                            "a whole run, {} charge{s} of agent {} seen by {}",
                            run.releases,
                            run.target,
                            seen_by.join(", ")
                        )
                    }
                },
                number::count(run.trials),
                digits(audit.epsilon),
                digits(run.epsilon.certain),
                digits(run.epsilon.likely),
            ]);
        }
        None => screen::say("No agent releases anything.")?,
    }
    if rows.len() > 1 {
        screen::say("")?;
        screen::table(&rows)?;
        screen::say(
            "\n\"At least\" is wrong once in a million audits, and the verdict rests on it. The 95% bound is wrong once in twenty: \
             where a claim is tight, one audit in twenty puts it above the claim by chance.",
        )?;
    }
    let replay = &audit.replay;
    screen::say(format!(
        "\nRecord and replay: {} runs, {} neighbouring data sets, {} releases compared; no input moved by more than {} of its \
         sensitivity.",
        number::count(replay.runs),
        number::count(replay.neighbours),
        number::count(replay.releases),
        number::significant(replay.largest_move, 4),
    ))?;
    if replay.views > 0 {
        let views = number::count(replay.views);
        screen::say(format!(
            "Views of each member, and of coalitions of two and of five: {views} compared. Left out, artefacts and frames: they hold what only \
             some members see."
        ))?;
    }
    if let Some(artefacts) = &audit.artefacts {
        screen::say(format!(
            "Artefacts: {} neighbouring files, {} runs in the simulator and {} of real peers; {} things compared.",
            number::count(artefacts.neighbours),
            number::count(artefacts.trained),
            number::count(artefacts.networks),
            number::count(artefacts.compared),
        ))?;
        for skipped in &artefacts.skipped {
            screen::say(format!("Left out, {skipped}."))?;
        }
    }
    if audit.artefacts.is_some() && audit.frames.is_none() {
        screen::say("Left out, frames: real peers cannot run this task, or no agent has two records and a neighbour.")?;
    }
    if let Some(frames) = &audit.frames {
        screen::say(format!(
            "Frames of {} real peers: {} neighbouring files; {} frames compared, {}.",
            number::count(frames.peers),
            number::count(frames.neighbours),
            number::count(frames.frames),
            number::bytes(frames.bytes),
        ))?;
    }
    for finding in &audit.findings {
        let more = match finding.count {
            1 => String::new(),
            count => format!(" ({} times)", number::count(count)),
        };
        screen::say(format!("REFUTED: {}{more}.", finding.what))?;
    }
    if !audit.is_refuted() {
        let (epsilon, delta) = (audit.epsilon, audit.delta);
        screen::say(format!(
            "Not refuted: nothing was found that ({epsilon}, {delta})-differential privacy does not allow. That is no proof."
        ))?;
    }
    Ok(())
}
