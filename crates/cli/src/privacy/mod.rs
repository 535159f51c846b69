//! `sottovoce privacy`: what a noise gives, and what noise a budget needs.

use crate::{Output, budget, plan, screen};
use clap::{Subcommand, ValueEnum};
use network::{NetworkArguments, Question};
use sottovoce_privacy::calibrate::{NoiseKind, noise_multiplier};
use sottovoce_privacy::network::WorstAndMean;
use sottovoce_privacy::{Accountant, Charge, Gaussian, Ledger, Optimal, Pld, Rdp, Sum, Theorem1, Tight};
use sottovoce_report::plot::number;
use sottovoce_report::training::bound_or_infinity;
use sottovoce_run::epsilon::Epsilon;
use sottovoce_run::ledger_file::{self, Header, Signature};
use sottovoce_run::pairs;
use sottovoce_run::private::guarantee_in_words;
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use sottovoce_task::task::{AccountantName, Observer};
use std::path::{Path, PathBuf};

mod network;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: PrivacyCommand,
}

#[derive(Subcommand)]
enum PrivacyCommand {
    /// What a private task will release and can hope for, from public facts alone
    Plan(plan::Arguments),
    /// The epsilon that a noise gives, that a token on a network gives, or that a run's ledger comes to
    #[command(after_help = EPSILON_EXAMPLES)]
    Epsilon(EpsilonArguments),
    Budget(budget::Arguments),
    /// The noise that a budget needs
    #[command(after_help = NOISE_EXAMPLES)]
    Noise(NoiseArguments),
}

const EPSILON_EXAMPLES: &str = "\
Examples:
  sottovoce privacy epsilon --mechanism gaussian --noise-multiplier 10 --steps 5 --delta 1e-6
  sottovoce privacy epsilon --ledger run/ledger.jsonl --delta 1e-6
  sottovoce privacy epsilon --network complete --agents 2000 --hops 20000 --contributions 12 --noise-multiplier 4 --delta 1e-6

A noise multiplier is the noise over the sensitivity of one release, or of one contribution to a token. What a member of a network can learn
depends on who it is and what it sees: every answer names the observer. docs/privacy.md says more.";

const NOISE_EXAMPLES: &str = "\
Examples:
  sottovoce privacy noise --mechanism gaussian --epsilon 1 --steps 10 --delta 1e-6
  sottovoce privacy noise --network complete --agents 2000 --hops 20000 --contributions 12 --epsilon 1 --delta 1e-6 --colluders 5
  sottovoce privacy noise --network ring --agents 50 --contributions 3 --epsilon 1 --delta 1e-6";

/// Releases, or a ledger of them.
#[derive(clap::Args)]
struct EpsilonArguments {
    /// A run's ledger.jsonl, instead of releases: the largest epsilon of any agent, and with --json each agent's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mechanism", "steps", "noise_multiplier", "network"])]
    ledger: Option<PathBuf>,

    /// The noise on each release
    #[arg(long, value_enum, required_unless_present_any = ["ledger", "network"])]
    mechanism: Option<Mechanism>,

    /// How many releases
    #[arg(long, value_name = "K", allow_hyphen_values = true, required_unless_present_any = ["ledger", "network"])]
    steps: Option<i128>,

    #[command(flatten)]
    network: NetworkArguments,

    /// The noise over the sensitivity: sigma / Delta_2 for gaussian and for tokens, scale / Delta_1 for laplace
    #[arg(long, value_name = "X", allow_hyphen_values = true, required_unless_present = "ledger")]
    noise_multiplier: Option<f64>,

    /// The probability left for the guarantee to fail, far below one over the number of records
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    delta: f64,

    /// Who computes
    #[arg(long, value_enum, default_value_t = Method::Tight)]
    accountant: Method,
}

/// What a noise is asked for.
#[derive(clap::Args)]
struct NoiseArguments {
    /// The noise on each release
    #[arg(long, value_enum, required_unless_present = "network")]
    mechanism: Option<Mechanism>,

    /// How many releases
    #[arg(long, value_name = "K", allow_hyphen_values = true, required_unless_present = "network")]
    steps: Option<i128>,

    #[command(flatten)]
    network: NetworkArguments,

    /// The budget for all releases, or contributions, together
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    epsilon: f64,

    /// The probability left for the guarantee to fail, far below one over the number of records
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    delta: f64,

    /// Who computes
    #[arg(long, value_enum, default_value_t = Method::Tight)]
    accountant: Method,
}

/// Releases that everyone sees.
struct Releases {
    mechanism: Mechanism,
    steps: i128,
    delta: f64,
    accountant: Method,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mechanism {
    Gaussian,
    Laplace,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Method {
    /// The least of all that follow
    Tight,
    /// The papers' Theorem 1
    #[value(name = "theorem-1")]
    Theorem1,
    /// The epsilons added up
    Sum,
    /// Exact for the worst pure mechanism
    Optimal,
    /// Exact for Gaussian noise
    Gaussian,
    /// Renyi divergences
    Rdp,
    /// The privacy loss distribution
    Pld,
    /// Of the complete graph: contributions amplified by the steps that follow, for contractions and sums
    Iteration,
    /// The same by Renyi divergences alone
    IterationRenyi,
    /// Of the complete graph: sums alone
    Cycle,
    /// Of the complete graph: over drawn paths, no guarantee
    Estimate,
    /// Of the complete graph: the thesis' conditions for a hidden path, no guarantee
    Paper,
    /// The same with the path known, as the thesis lifts it, no guarantee
    PaperLifted,
}

impl Method {
    /// Those of releases that everyone sees.
    const OF_RELEASES: [Method; 7] =
        [Method::Tight, Method::Theorem1, Method::Sum, Method::Optimal, Method::Gaussian, Method::Rdp, Method::Pld];

    fn name(self) -> &'static str {
        match self {
            Method::Iteration => "iteration",
            Method::IterationRenyi => "iteration-renyi",
            Method::Cycle => "cycle",
            Method::Estimate => "estimate",
            Method::Paper => "paper",
            Method::PaperLifted => "paper-lifted",
            Method::Tight => "tight",
            Method::Theorem1 => "theorem-1",
            Method::Sum => "sum",
            Method::Optimal => "optimal",
            Method::Gaussian => "gaussian",
            Method::Rdp => "rdp",
            Method::Pld => "pld",
        }
    }

    /// The accountant of releases; none for those of networks.
    fn accountant(self) -> Option<&'static dyn Accountant> {
        Some(match self {
            Method::Tight => &Tight,
            Method::Theorem1 => &Theorem1,
            Method::Sum => &Sum,
            Method::Optimal => &Optimal,
            Method::Gaussian => &Gaussian,
            Method::Rdp => &Rdp,
            Method::Pld => &Pld,
            _ => return None,
        })
    }

    /// The same, or a mistake that names what would be accepted.
    fn of_releases(self) -> Result<&'static dyn Accountant, Mistake> {
        let accepted = Method::OF_RELEASES.map(Method::name).join(", ");
        let what = format!("the accountant {} is one of --network", self.name());
        self.accountant().ok_or_else(|| Mistake::new(format!("{what}; accepted without it: {accepted}")))
    }

    fn covers(self, noise: NoiseKind) -> bool {
        !matches!((self, noise), (Method::Gaussian, NoiseKind::Laplace) | (Method::Optimal, NoiseKind::Gaussian))
    }
}

/// The arguments, checked.
struct Resolved {
    noise: NoiseKind,
    steps: u64,
    delta: f64,
    method: Method,
}

impl Releases {
    fn resolve(&self) -> Result<Resolved, Mistake> {
        let noise = match self.mechanism {
            Mechanism::Gaussian => NoiseKind::Gaussian,
            Mechanism::Laplace => NoiseKind::Laplace,
        };
        let (steps, delta, method) = (self.steps, self.delta, self.accountant);
        let steps = u64::try_from(steps)
            .ok()
            .filter(|&steps| steps > 0)
            .ok_or_else(|| Mistake::new(format!("--steps is {steps}; accepted: a whole number from 1 to 2^64 - 1")))?;
        checked_delta(delta)?;
        if noise == NoiseKind::Gaussian && delta == 0.0 {
            let why = "Gaussian noise has no guarantee without a delta";
            return Err(Mistake::new(format!("--delta is 0, but {why}; accepted: above 0 and below 1, or laplace")));
        }
        method.of_releases()?;
        if !method.covers(noise) {
            let (name, mechanism) = (method.name(), self.mechanism.name());
            let what = format!("the accountant {name} does not cover {mechanism} noise");
            return Err(Mistake::new(format!(
                "{what}; accepted: tight, theorem-1, sum, rdp, pld or {mechanism}'s own"
            )));
        }
        Ok(Resolved { noise, steps, delta, method })
    }
}

impl Mechanism {
    fn name(self) -> &'static str {
        match self {
            Mechanism::Gaussian => "gaussian",
            Mechanism::Laplace => "laplace",
        }
    }
}

impl Resolved {
    fn epsilon(&self, multiplier: f64, method: Method) -> Result<f64, Mistake> {
        let ledger = Ledger::from_charges([Charge::new(self.noise.event(multiplier), self.steps)])
            .map_err(|error| Mistake::new(error.to_string()))?;
        Ok(method.of_releases()?.epsilon(&ledger, self.delta))
    }

    fn multiplier(&self, epsilon: f64, method: Method) -> Result<f64, Mistake> {
        noise_multiplier(self.noise, epsilon, self.delta, self.steps, method.of_releases()?)
            .map_err(|error| Mistake::new(error.to_string()))
    }

    /// Prints the chosen accountant's value and, beside it, what the others say.
    fn print(
        &self,
        sentence: &str,
        column: &str,
        chosen: f64,
        value: impl Fn(Method) -> Result<f64, Mistake>,
    ) -> Result<(), Mistake> {
        screen::say(sentence)?;
        screen::say("For one record replaced by another, against someone who sees every release.\n")?;
        let mut rows = vec![vec!["accountant".to_owned(), column.to_owned()]];
        for method in Method::OF_RELEASES {
            let cell = match value(method) {
                _ if method == self.method => up(chosen),
                Ok(value) if value.is_finite() && method.covers(self.noise) => up(value),
                _ => "-".to_owned(),
            };
            rows.push(vec![method.name().to_owned(), cell]);
        }
        screen::table(&rows)
    }

    /// "1 000 releases with Laplace noise".
    fn releases(&self) -> String {
        let noise = if self.noise == NoiseKind::Gaussian { "Gaussian" } else { "Laplace" };
        let plural = if self.steps == 1 { "" } else { "s" };
        format!("{} release{plural} with {noise} noise", number::count(self.steps))
    }

    fn sensitivity(&self) -> &'static str {
        if self.noise == NoiseKind::Gaussian {
            "L2 sensitivity (sigma / Delta_2)"
        } else {
            "L1 sensitivity (scale / Delta_1)"
        }
    }
}

/// Six digits, rounded up: a printed bound must hold too.
fn up(x: f64) -> String {
    number::up(x, 6)
}

/// What the agents of a run have spent, from its ledger alone.
fn account(path: &Path, delta: f64, method: Method, output: Output) -> Result<(), Mistake> {
    checked_delta(delta)?;
    let (header, ledgers) = ledger_file::read_with_header(path)?;
    let (unit, mut observer) = Header::guarantee(header.as_ref()).map_err(|what| Mistake::file(path, what))?;
    let both = both_over_pairs(path, header.as_ref(), &ledgers, delta)?;
    if let (Observer::GraphWalk(worst), Some(both)) = (&mut observer, both) {
        let noise = worst.noise_of(ledgers.iter().map(|(_, ledger)| ledger)).unwrap_or(f64::INFINITY);
        *worst = worst.with_known(noise, delta, both.worst);
    }
    let signed = signature(path)?;
    let by = |method: Method| {
        let accountant = method.of_releases()?;
        let ledgers = ledgers.iter().map(|(_, ledger)| ledger);
        Ok::<_, Mistake>(match observer {
            Observer::Everyone | Observer::Pairs { .. } | Observer::Aggregator => {
                ledger_file::epsilons(ledgers, delta, accountant)
            }
            Observer::Ring(ring) => ledger_file::epsilons(ledgers, delta, &ring.by(accountant)),
            Observer::Gopa(gopa) => ledger_file::epsilons(ledgers, delta, &gopa.by(accountant)),
            Observer::Walk(..) | Observer::GraphWalk(_) | Observer::Curator(_) | Observer::Answers(_) => {
                ledger_file::epsilons(ledgers, delta, &*observer.accountant(AccountantName::Tight))
            }
        })
    };
    let each = by(method)?;
    let mean = both.map(|both| both.mean);
    let most = |epsilons: &[f64]| epsilons.iter().copied().fold(0.0, f64::max);
    let name = method.name();
    if output.json {
        let json = |epsilon: f64| serde_json::to_value(Epsilon::from(epsilon)).expect("an epsilon is JSON");
        let agents = ledgers.iter().zip(&each).map(|((agent, _), &epsilon)| (agent.clone(), json(epsilon)));
        let agents: serde_json::Map<_, _> = agents.collect();
        let epsilon = json(most(&each));
        let mut answer = serde_json::json!({ "epsilon": epsilon, "delta": delta, "accountant": name, "agents": agents, "signature": signed, "unit": unit.name(), "observer": observer.name() });
        if let Some(mean) = mean {
            answer["epsilon_mean"] = json(mean);
        }
        return screen::say(answer);
    }
    if output.quiet {
        return Ok(());
    }
    let releases: u64 = ledgers.iter().map(|(_, ledger)| ledger.releases()).fold(0, u64::saturating_add);
    screen::say(format!(
        "{} agent{} made {} release{}. The one that spent most spent epsilon = {} at delta = {delta} ({name}).",
        number::count(ledgers.len() as u64),
        if ledgers.len() == 1 { "" } else { "s" },
        number::count(releases),
        if releases == 1 { "" } else { "s" },
        bound_or_infinity(most(&each)),
    ))?;
    screen::say(match &signed {
        Some(signed) => format!("Signed by {}, task digest {}.", signed.key, signed.task),
        None => "Unsigned: it is as good as whoever gave it to you.".to_owned(),
    })?;
    screen::say(match observer {
        Observer::Everyone => {
            "For one record replaced by another, against someone who sees every release.\n".to_owned()
        }
        Observer::Ring(_)
        | Observer::Gopa(_)
        | Observer::Pairs { .. }
        | Observer::Walk(..)
        | Observer::GraphWalk(_)
        | Observer::Curator(_)
        | Observer::Answers(_)
        | Observer::Aggregator => {
            format!("The ledger says {}.\n", guarantee_in_words(unit, &observer))
        }
    })?;
    if let Some(mean) = mean {
        screen::say(format!("On the mean over all pairs of members epsilon = {}.\n", up(mean)))?;
    }
    let mut rows = vec![vec!["accountant".to_owned(), "epsilon".to_owned()]];
    for method in Method::OF_RELEASES {
        let epsilon = most(&by(method)?);
        rows.push(vec![method.name().to_owned(), if epsilon.is_finite() { up(epsilon) } else { "-".to_owned() }]);
    }
    screen::table(&rows)
}

/// The worst pair of members and the mean over all, where the header has the graph that they are of.
fn both_over_pairs(
    path: &Path,
    header: Option<&Header>,
    ledgers: &ledger_file::Ledgers,
    delta: f64,
) -> Result<Option<WorstAndMean>, Mistake> {
    let Some(gossip) = header.and_then(Header::gossip) else { return Ok(None) };
    let gossip = gossip.map_err(|what| Mistake::line(path, 1, what))?;
    let (_, observer) = Header::guarantee(header).map_err(|what| Mistake::line(path, 1, what))?;
    let both = pairs::worst_and_mean(&gossip, &observer, ledgers.iter().map(|(_, ledger)| ledger), delta);
    Ok(Some(both.unwrap_or(WorstAndMean { worst: f64::INFINITY, mean: f64::INFINITY })))
}

/// The signature of a ledger, verified; none if it has none.
fn signature(path: &Path) -> Result<Option<Signature>, Mistake> {
    let bytes = std::fs::read(path).map_err(|error| Mistake::io(path, "read", &error))?;
    let (lines, Some(signature)) = Signature::split(&bytes) else { return Ok(None) };
    let Signature { signature: hex, key, task } = &signature;
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let signed: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(digits).collect();
    let is_good = signed.zip(key.parse().ok()).is_some_and(|(signed, id)| {
        sottovoce_net::transport::is_signed_by(&id, &Signature::message(key, task, lines), &signed)
    });
    match is_good {
        true => Ok(Some(signature)),
        false => Err(Mistake::file(
            path,
            "the signature is not that of these lines; accepted: the file as `peer ledger` wrote it",
        )),
    }
}

fn checked_delta(delta: f64) -> Result<(), Mistake> {
    match (0.0..1.0).contains(&delta) {
        true => Ok(()),
        false => Err(Mistake::new(format!("--delta is {delta}; accepted: at least 0 and below 1"))),
    }
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    match &arguments.command {
        PrivacyCommand::Plan(arguments) => plan::run(arguments, output)?,
        PrivacyCommand::Budget(arguments) => budget::run(arguments, output)?,
        PrivacyCommand::Epsilon(arguments) => {
            let EpsilonArguments { delta, accountant, .. } = *arguments;
            if let Some(ledger) = &arguments.ledger {
                return Ok(account(ledger, delta, accountant, output)?);
            }
            let multiplier = arguments.noise_multiplier.unwrap_or(f64::NAN);
            if let Some(network) = arguments.network.network {
                let question = Question::Epsilon { noise_multiplier: multiplier };
                return Ok(network::run(&arguments.network, network, question, delta, accountant, output)?);
            }
            let (Some(mechanism), Some(steps)) = (arguments.mechanism, arguments.steps) else {
                unreachable!("required without a ledger and without a network");
            };
            let releases = Releases { mechanism, steps, delta, accountant };
            if !(multiplier.is_finite() && multiplier > 0.0) {
                let accepted = "accepted: a number above 0";
                return Err(Mistake::new(format!("--noise-multiplier is {multiplier}; {accepted}")).into());
            }
            let resolved = releases.resolve()?;
            let (delta, name) = (resolved.delta, resolved.method.name());
            let epsilon = resolved.epsilon(multiplier, resolved.method)?;
            if !epsilon.is_finite() {
                let what = format!("--noise-multiplier {multiplier} gives no finite epsilon by {name}");
                return Err(Mistake::new(format!("{what}; accepted: more noise")).into());
            }
            if output.json {
                screen::say(serde_json::json!({ "epsilon": epsilon, "delta": delta, "accountant": name }))?;
            } else if !output.quiet {
                let sentence = format!(
                    "{} of {multiplier} times the {}: epsilon = {} at delta = {delta} ({name}).",
                    resolved.releases(),
                    resolved.sensitivity(),
                    up(epsilon),
                );
                resolved.print(&sentence, "epsilon", epsilon, |method| resolved.epsilon(multiplier, method))?;
            }
        }
        PrivacyCommand::Noise(arguments) => {
            let NoiseArguments { epsilon, delta, accountant, .. } = *arguments;
            if let Some(network) = arguments.network.network {
                let question = Question::Noise { epsilon };
                return Ok(network::run(&arguments.network, network, question, delta, accountant, output)?);
            }
            let (Some(mechanism), Some(steps)) = (arguments.mechanism, arguments.steps) else {
                unreachable!("required without a network");
            };
            let releases = Releases { mechanism, steps, delta, accountant };
            if !(epsilon.is_finite() && epsilon > 0.0) {
                return Err(Mistake::new(format!("--epsilon is {epsilon}; accepted: a number above 0")).into());
            }
            let resolved = releases.resolve()?;
            let (delta, name) = (resolved.delta, resolved.method.name());
            let multiplier = resolved.multiplier(epsilon, resolved.method)?;
            if output.json {
                let answer = serde_json::json!({
                    "noise_multiplier": multiplier, "epsilon": epsilon, "delta": delta, "accountant": name
                });
                screen::say(&answer)?;
            } else if !output.quiet {
                let sentence = format!(
                    "{}: epsilon = {epsilon} at delta = {delta} takes {} times the {} ({name}).",
                    resolved.releases(),
                    up(multiplier),
                    resolved.sensitivity(),
                );
                resolved
                    .print(&sentence, "noise multiplier", multiplier, |method| resolved.multiplier(epsilon, method))?;
            }
        }
    }
    Ok(())
}
