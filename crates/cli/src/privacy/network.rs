//! `sottovoce privacy epsilon --network ..` and `privacy noise --network ..`: what a token that walks gives, and what noise it needs.

use super::{Method, checked_delta, up};
use crate::{Output, screen};
use clap::ValueEnum;
use sottovoce_privacy::network::{Cycle, Iteration, PathMixture, Walk, paper::Paper};
use sottovoce_privacy::{Charge, Event, Ledger, calibrate};
use sottovoce_report::plot::number;
use sottovoce_task::error::Mistake;

/// A token's walk.
#[derive(clap::Args)]
pub struct NetworkArguments {
    /// Instead of releases that everyone sees: a token that passes members, each of whom adds noise, and what one of them can learn of
    /// another. On a `ring` it goes around; on the `complete` graph the next holder is drawn among all
    #[arg(long, value_enum, conflicts_with_all = ["mechanism", "steps"], requires_all = ["agents", "delta"])]
    pub network: Option<Network>,

    /// How many members the network has
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "network")]
    agents: Option<i128>,

    /// How many hops the token makes; on a ring members times contributions if it is not said
    #[arg(long, value_name = "T", allow_hyphen_values = true, requires = "network")]
    hops: Option<i128>,

    /// How often a member contributes at most; at later visits it adds noise alone. A usual bound is 1.2 T / N
    #[arg(long, value_name = "K", allow_hyphen_values = true, requires = "network")]
    contributions: Option<i128>,

    /// How many members pool what they see
    #[arg(long, value_name = "C", allow_hyphen_values = true, default_value_t = 1, requires = "network")]
    colluders: i128,

    /// The share of members that is present at every hop, at least
    #[arg(long, value_name = "P", allow_hyphen_values = true, default_value_t = 1.0, requires = "network")]
    present: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Network {
    Ring,
    Complete,
}

/// What is asked: the epsilon of a noise, or the noise of an epsilon.
#[derive(Clone, Copy)]
pub enum Question {
    Epsilon { noise_multiplier: f64 },
    Noise { epsilon: f64 },
}

/// A value, and whether it is a guarantee.
#[derive(Clone, Copy)]
enum Answer {
    Proven(f64),
    NoGuarantee(f64),
}

impl Answer {
    fn value(self) -> f64 {
        match self {
            Answer::Proven(value) | Answer::NoGuarantee(value) => value,
        }
    }
}

/// A network, checked.
struct Resolved {
    network: Network,
    walk: Walk,
    delta: f64,
}

impl NetworkArguments {
    fn resolve(&self, network: Network, delta: f64) -> Result<Resolved, Mistake> {
        checked_delta(delta)?;
        if delta == 0.0 {
            let why = "Gaussian noise has no guarantee without a delta";
            return Err(Mistake::new(format!("--delta is 0, but {why}; accepted: above 0 and below 1")));
        }
        let is_ring = network == Network::Ring;
        let agents = whole("--agents", self.agents.unwrap_or(0), 3)?;
        let Some(contributions) = self.contributions else {
            let what = "--contributions is not said, and without a bound on them nothing is guaranteed";
            return Err(Mistake::new(format!("{what}; accepted: a whole number from 1 up, such as 1.2 hops / agents")));
        };
        let contributions = whole("--contributions", contributions, 1)?;
        let around = i128::from(agents) * i128::from(contributions);
        let hops = match self.hops {
            Some(hops) => hops,
            None if is_ring => around,
            None => return Err(Mistake::new("--hops is not said; accepted: how many hops the walk makes".to_owned())),
        };
        if is_ring && hops > around {
            let what = format!("--hops is {hops}, but a ring makes {around} with so many contributions of each member");
            return Err(Mistake::new(format!("{what}; accepted: at most that")));
        }
        let colluders = whole("--colluders", self.colluders, 1)?;
        if is_ring && (colluders > 1 || self.present != 1.0) {
            let why = "two members of a ring can stand on both sides of a third, and one that is away is passed over";
            return Err(Mistake::new(format!("{why}; accepted with --network ring: --colluders 1 and --present 1")));
        }
        let walk = Walk::new(agents, whole("--hops", hops, 1)?, contributions)
            .and_then(|walk| walk.with_present(self.present))
            .and_then(|walk| walk.with_colluders(colluders))
            .map_err(|error| Mistake::new(error.to_string()))?;
        Ok(Resolved { network, walk, delta })
    }
}

fn whole(option: &str, value: i128, least: u64) -> Result<u64, Mistake> {
    let accepted = || Mistake::new(format!("{option} is {value}; accepted: a whole number from {least} to 2^53"));
    u64::try_from(value).ok().filter(|value| (least..=1 << 53).contains(value)).ok_or_else(accepted)
}

impl Resolved {
    fn methods(&self) -> &'static [Method] {
        match self.network {
            Network::Ring => &[Method::Tight, Method::Gaussian, Method::Rdp],
            Network::Complete => &[
                Method::Tight,
                Method::Iteration,
                Method::IterationRenyi,
                Method::Cycle,
                Method::Gaussian,
                Method::Estimate,
                Method::Paper,
                Method::PaperLifted,
            ],
        }
    }

    fn observer(&self, method: Method) -> String {
        match method {
            Method::Paper => Paper::new(self.walk).observer().to_string(),
            // Local composition does not ask who looks.
            Method::Gaussian if self.network == Network::Complete => "whoever sees every hop of the token".to_owned(),
            _ => self.walk.observer().to_string(),
        }
    }

    fn answer(&self, question: Question, method: Method) -> Option<Answer> {
        let (walk, delta) = (self.walk, self.delta);
        let proven = |value: Option<f64>| value.map(Answer::Proven);
        match (method, question) {
            (Method::Gaussian | Method::Rdp, _) => proven(self.composed(question, method)),
            (Method::Tight, _) if self.network == Network::Ring => proven(self.composed(question, Method::Gaussian)),
            (Method::Tight | Method::Iteration, Question::Epsilon { noise_multiplier }) => {
                proven(Some(Iteration::new(walk).epsilon_at(noise_multiplier, delta)))
            }
            (Method::Tight | Method::Iteration, Question::Noise { epsilon }) => {
                proven(Iteration::new(walk).noise_multiplier(epsilon, delta))
            }
            (Method::IterationRenyi, Question::Epsilon { noise_multiplier }) => {
                proven(Some(Iteration::new(walk).epsilon_by_renyi(noise_multiplier, delta)))
            }
            (Method::IterationRenyi, Question::Noise { epsilon }) => {
                proven(Iteration::new(walk).noise_multiplier_by_renyi(epsilon, delta))
            }
            (Method::Cycle, Question::Epsilon { noise_multiplier }) => {
                proven(Some(Cycle::new(walk).epsilon_at(noise_multiplier, delta)))
            }
            (Method::Cycle, Question::Noise { epsilon }) => proven(Cycle::new(walk).noise_multiplier(epsilon, delta)),
            (Method::Estimate, _) => {
                let drawn = PathMixture::drawn(walk, PATHS, 1);
                let about = match question {
                    Question::Epsilon { noise_multiplier } => drawn.epsilon_at(noise_multiplier, delta),
                    Question::Noise { epsilon } => drawn.noise_multiplier(epsilon, delta),
                };
                Some(Answer::NoGuarantee(about.about()))
            }
            (Method::Paper | Method::PaperLifted, _) => {
                let (paper, is_lifted) = (Paper::new(walk), method == Method::PaperLifted);
                Some(Answer::NoGuarantee(match question {
                    Question::Epsilon { noise_multiplier } if is_lifted => {
                        paper.epsilon_lifted(noise_multiplier, delta)
                    }
                    Question::Epsilon { noise_multiplier } => paper.epsilon_at(noise_multiplier, delta),
                    Question::Noise { epsilon } if is_lifted => paper.noise_multiplier_lifted(epsilon, delta),
                    Question::Noise { epsilon } => paper.noise_multiplier(epsilon, delta),
                }))
            }
            _ => None,
        }
    }

    /// Every contribution as a release of its own: on a ring that is what a member sees.
    fn composed(&self, question: Question, method: Method) -> Option<f64> {
        let contributions = self.walk.contributions();
        match question {
            Question::Epsilon { noise_multiplier } => {
                let charge = Charge::new(Event::Gaussian { noise_multiplier }, contributions);
                Some(method.accountant()?.epsilon(&Ledger::from_charges([charge]).ok()?, self.delta))
            }
            Question::Noise { epsilon } => {
                let noise = calibrate::NoiseKind::Gaussian;
                calibrate::noise_multiplier(noise, epsilon, self.delta, contributions, method.accountant()?).ok()
            }
        }
    }

    fn sentence(&self, question: Question, value: f64, name: &str) -> String {
        let walk = &self.walk;
        let where_to = if self.network == Network::Ring { "around a ring" } else { "from anyone to anyone" };
        let token = format!(
            "A token that {} members pass {where_to}, {} contribution{} each at most",
            number::count(walk.agents()),
            number::count(walk.contributions()),
            if walk.contributions() == 1 { "" } else { "s" },
        );
        let delta = self.delta;
        match question {
            Question::Epsilon { noise_multiplier } => format!(
                "{token}, noise of {noise_multiplier} times the sensitivity of one: epsilon = {} at delta = {delta} ({name}).",
                up(value)
            ),
            Question::Noise { epsilon } => format!(
                "{token}: epsilon = {epsilon} at delta = {delta} takes noise of {} times the sensitivity of one ({name}).",
                up(value)
            ),
        }
    }
}

/// Paths that an estimate draws.
const PATHS: u32 = 100_000;

/// Answers a question about a network.
pub fn run(
    arguments: &NetworkArguments,
    network: Network,
    question: Question,
    delta: f64,
    method: Method,
    output: Output,
) -> Result<(), Mistake> {
    let (option, asked) = match question {
        Question::Epsilon { noise_multiplier } => ("--noise-multiplier", noise_multiplier),
        Question::Noise { epsilon } => ("--epsilon", epsilon),
    };
    if !(asked.is_finite() && asked > 0.0) {
        return Err(Mistake::new(format!("{option} is {asked}; accepted: a number above 0")));
    }
    let resolved = arguments.resolve(network, delta)?;
    let (name, methods) = (method.name(), resolved.methods());
    if !methods.contains(&method) {
        let accepted: Vec<&str> = methods.iter().map(|method| method.name()).collect();
        let what = format!("the accountant {name} does not cover this network");
        return Err(Mistake::new(format!("{what}; accepted: {}", accepted.join(", "))));
    }
    let answer = resolved.answer(question, method).filter(|answer| answer.value().is_finite());
    let Some(answer) = answer else {
        return Err(Mistake::new(format!("{option} {asked} gives nothing finite by {name}; accepted: more noise")));
    };
    let observer = resolved.observer(method);
    if output.json {
        let (epsilon, noise) = match question {
            Question::Epsilon { .. } => (answer.value(), None),
            Question::Noise { epsilon } => (epsilon, Some(answer.value())),
        };
        let mut json =
            serde_json::json!({ "epsilon": epsilon, "delta": delta, "accountant": name, "observer": observer });
        if let Some(noise) = noise {
            json["noise_multiplier"] = noise.into();
        }
        if matches!(answer, Answer::NoGuarantee(_)) {
            json["guarantee"] = false.into();
        }
        return screen::say(json);
    }
    if output.quiet {
        return Ok(());
    }
    screen::say(resolved.sentence(question, answer.value(), name))?;
    screen::say(match answer {
        Answer::Proven(_) => format!("For all data of one member, against {observer}.\n"),
        Answer::NoGuarantee(_) => {
            format!("This is no guarantee. It is about all data of one member, and {observer}.\n")
        }
    })?;
    let column = if matches!(question, Question::Epsilon { .. }) { "epsilon" } else { "noise multiplier" };
    let mut rows = vec![["accountant", column, "holds for"].map(str::to_owned).to_vec()];
    for &other in methods {
        let value = if other == method { Some(answer) } else { resolved.answer(question, other) };
        let cell = value.map(|value| value.value()).filter(|value| value.is_finite()).map_or("-".to_owned(), up);
        rows.push(vec![other.name().to_owned(), cell, resolved.holds_for(other).to_owned()]);
    }
    screen::table(&rows)
}

impl Resolved {
    fn holds_for(&self, method: Method) -> &'static str {
        match (method, self.network) {
            (Method::Tight | Method::Gaussian | Method::Rdp, Network::Ring) => "sums with noise once every N - 1 hops",
            (Method::Tight | Method::Iteration, _) => "steps that are contractions, and sums",
            (Method::IterationRenyi, _) => "the same, by Renyi divergences alone",
            (Method::Cycle, _) => "sums alone",
            (Method::Gaussian, _) => "everything, against whoever sees every hop",
            (Method::Estimate, _) => "nothing: an estimate over drawn paths",
            (Method::Paper, _) => "nothing: the thesis, for a hidden path",
            (Method::PaperLifted, _) => "nothing: the thesis, for a known path",
            _ => "",
        }
    }
}
