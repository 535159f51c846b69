//! `ledger.jsonl`: one JSON object per line, a charge of an agent. Written by a run, read back by whoever wants to account for it.
//! Its schema is published as `docs/ledger.schema.json`.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sottovoce_algorithms::average::muffliato::mixing::ROUNDS_MAX;
use sottovoce_core::Graph;
use sottovoce_privacy::gopa::{Gopa, GopaConfig};
use sottovoce_privacy::network::{BadNetwork, Clones, Gossip, PAIRS_MEMBERS_MAX, Sampled, Walk, WorstPair};
use sottovoce_privacy::{Accountant, Charge, Ledger, Ring, Shares};
use sottovoce_task::error::Mistake;
use sottovoce_task::task::{Observer, Steps, Told, Unit};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A longer line is none of ours.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// More members than any sum under masks has: accounting for them would take long.
const MEMBERS_MAX: u32 = 1 << 22;

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    agent: &'a str,
    #[serde(flatten)]
    charge: Charge,
}

/// One line as it is read: whose charge, and its other keys, each of them once.
struct ReadLine {
    agent: String,
    charge: serde_json::Map<String, serde_json::Value>,
}

impl<'de> Deserialize<'de> for ReadLine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = ReadLine;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with an agent and a charge")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ReadLine, M::Error> {
                let (mut agent, mut charge) = (None, serde_json::Map::new());
                while let Some(key) = map.next_key::<String>()? {
                    let doubled = if key == "agent" {
                        agent.replace(map.next_value()?).is_some()
                    } else {
                        charge.insert(key.clone(), map.next_value()?).is_some()
                    };
                    if doubled {
                        return Err(M::Error::custom(format_args!("doubled key {key:?}")));
                    }
                }
                let agent = agent.ok_or_else(|| M::Error::missing_field("agent"))?;
                Ok(ReadLine { agent, charge })
            }
        }
        from.deserialize_map(Keys)
    }
}

/// The agent and the charge of a line; a key that no charge has is refused by name.
fn parsed(line: &[u8]) -> serde_json::Result<(String, Charge)> {
    let ReadLine { agent, charge } = serde_json::from_slice(line)?;
    Ok((agent, serde_json::from_value(charge.into())?))
}

/// The first line of a ledger whose guarantee is not for a record against everyone: for whom it is, and what anyone needs to account for the
/// charges again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Which form of ledger this is: 1.
    ledger: u32,
    unit: Unit,
    /// In words.
    observer: String,
    /// Where the observer is a member of a ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    ring: Option<RingContext>,
    /// Where the observer is a member whom a token passes that walks.
    #[serde(skip_serializing_if = "Option::is_none")]
    walk: Option<WalkContext>,
    /// Where a curator is trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    curator: Option<CuratorContext>,
    /// Where the observer is a member of a ring that counts answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<AnswersContext>,
    /// Where there is a guarantee for each pair of members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<PairsContext>,
    /// Where there is one for each pair of members between whom a token walks along edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    graph_walk: Option<GraphWalkContext>,
    /// Where some of the observers are members of a sum under masks.
    #[serde(skip_serializing_if = "Option::is_none")]
    gopa: Option<GopaContext>,
}

/// Members of a sum under masks, how many of them may collude, and who shares pads with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GopaContext {
    members: u32,
    colluders: u32,
    finishing: u32,
    neighbours: u32,
    threshold: u32,
    rounds: u32,
    numbers: u32,
}

impl GopaContext {
    fn of(gopa: &Gopa) -> GopaContext {
        let GopaConfig { members, colluders, finishing, neighbours, rounds, numbers } = gopa.config();
        GopaContext { members, colluders, finishing, neighbours, threshold: gopa.threshold(), rounds, numbers }
    }

    fn observer(self) -> Result<Observer, String> {
        let GopaContext { members, colluders, finishing, neighbours, threshold, rounds, numbers } = self;
        let config = GopaConfig { members, colluders, finishing, neighbours, rounds, numbers };
        if members > MEMBERS_MAX {
            return Err(format!("{members} members; accepted: at most {MEMBERS_MAX}"));
        }
        Gopa::with_threshold(config, threshold).map(Observer::Gopa).map_err(|error| error.to_string())
    }
}

/// What pairs of members see of each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PairsContext {
    /// How often everyone writes to its neighbours.
    rounds: u32,
    /// Where the first member tells everyone what it holds after the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<Told>,
    /// Where a mean over pairs was promised: how many members there are, and who is whose neighbour, numbered in the order of their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edges: Vec<(usize, usize)>,
}

/// A walk along the edges of a graph, whose members are numbered in the order of their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphWalkContext {
    /// Of each member, at most.
    contributions: u64,
    members: usize,
    edges: Vec<(usize, usize)>,
}

/// Whom a ring's noise protects from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RingContext {
    members: u32,
    colluders: u32,
    noise: WhoMakesNoise,
}

/// A walk over the complete graph, and what its holders do to the token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WalkContext {
    members: u64,
    /// Of each token.
    hops: u64,
    /// To each token, at most.
    contributions: u64,
    colluders: u64,
    present: f64,
    tokens: u64,
    steps: Steps,
    /// Whether tokens may be issued again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    reissues: bool,
}

/// The steps of a trusted curator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CuratorContext {
    members: u64,
    hops: u64,
}

/// A ring on which each member answers once in each round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswersContext {
    members: u64,
    rounds: u64,
    cells: u64,
}

impl WalkContext {
    fn of(walk: &Walk, steps: Steps) -> Self {
        let (members, hops, contributions, tokens) = (walk.agents(), walk.hops(), walk.contributions(), walk.tokens());
        let (colluders, present, reissues) = (walk.observer().colluders, walk.present(), walk.spacing().is_some());
        WalkContext { members, hops, contributions, colluders, present, tokens, steps, reissues }
    }

    fn observer(&self) -> Result<Observer, BadNetwork> {
        let walk = Walk::new(self.members, self.hops, self.contributions)?.with_present(self.present)?;
        let walk = walk.with_colluders(self.colluders)?.with_tokens(self.tokens)?;
        Ok(Observer::Walk(if self.reissues { walk.with_reissues()? } else { walk }, self.steps))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WhoMakesNoise {
    One,
    All,
}

impl Header {
    /// Of a guarantee; none where it is for a record, against everyone.
    pub fn of(unit: Unit, observer: &Observer) -> Option<Header> {
        let context = |ring: &Ring| {
            let (members, colluders, shares) = ring.context();
            let noise = if shares == Shares::All { WhoMakesNoise::All } else { WhoMakesNoise::One };
            RingContext { members, colluders, noise }
        };
        let (ring, pairs) = match observer {
            Observer::Everyone if unit == Unit::Record => return None,
            Observer::Everyone
            | Observer::Walk(..)
            | Observer::GraphWalk(_)
            | Observer::Curator(_)
            | Observer::Answers(_)
            | Observer::Gopa(_)
            | Observer::Aggregator => (None, None),
            Observer::Ring(ring) => (Some(context(ring)), None),
            Observer::Pairs { rounds, told } => {
                (None, Some(PairsContext { rounds: *rounds, told: *told, members: None, edges: Vec::new() }))
            }
        };
        let walk = match observer {
            Observer::Walk(walk, steps) => Some(WalkContext::of(walk, *steps)),
            _ => None,
        };
        let curator = match observer {
            Observer::Curator(sampled) => Some(CuratorContext { members: sampled.agents(), hops: sampled.hops() }),
            _ => None,
        };
        let answers = match observer {
            Observer::Answers(clones) => {
                let (members, rounds, cells) = clones.context();
                Some(AnswersContext { members, rounds, cells })
            }
            _ => None,
        };
        let gopa = match observer {
            Observer::Gopa(gopa) => Some(GopaContext::of(gopa)),
            _ => None,
        };
        let graph_walk = match observer {
            Observer::GraphWalk(worst) => {
                Some(GraphWalkContext { contributions: worst.contributions(), members: 0, edges: Vec::new() })
            }
            _ => None,
        };
        let observer = observer.name();
        Some(Header { ledger: 1, unit, observer, ring, pairs, graph_walk, walk, curator, answers, gopa })
    }

    /// With the graph that a mean over pairs is of.
    pub fn with_graph(mut self, graph: &Graph) -> Header {
        let edges = || graph.edges().map(|(a, b, _)| (a.index(), b.index())).collect();
        if let Some(pairs) = &mut self.pairs {
            (pairs.members, pairs.edges) = (Some(graph.agents()), edges());
        }
        if let Some(walk) = &mut self.graph_walk {
            (walk.members, walk.edges) = (graph.agents(), edges());
        }
        self
    }

    /// The weights of gossip, or of a walk, on the graph that a mean over pairs is of; none where none was promised.
    pub fn gossip(&self) -> Option<Result<Gossip, String>> {
        let (members, edges) = match (&self.pairs, &self.graph_walk) {
            (Some(pairs), _) => (pairs.members?, &pairs.edges),
            (None, walk) => walk.as_ref().map(|walk| (walk.members, &walk.edges))?,
        };
        if members > PAIRS_MEMBERS_MAX {
            return Some(Err(format!("{members} members; accepted: at most {PAIRS_MEMBERS_MAX}")));
        }
        Some(Gossip::metropolis(members, edges).map_err(|error| error.to_string()))
    }

    /// What a header says; without one a ledger is for a record, against everyone. A header that no run writes is refused, with the reason.
    pub fn guarantee(header: Option<&Header>) -> Result<(Unit, Observer), String> {
        let Some(header) = header else { return Ok((Unit::Record, Observer::Everyone)) };
        let of_members = u32::from(header.ring.is_some()) + u32::from(header.answers.is_some());
        let of_sums = u32::from(header.pairs.is_some()) + u32::from(header.gopa.is_some());
        let of_sums = of_sums + u32::from(header.graph_walk.is_some());
        if of_members + of_sums + u32::from(header.walk.is_some()) + u32::from(header.curator.is_some()) > 1 {
            return Err("a header of several observers at once".to_owned());
        }
        let observer = if let Some(RingContext { members, colluders, noise }) = header.ring {
            let shares = if noise == WhoMakesNoise::All { Shares::All } else { Shares::One };
            Observer::Ring(Ring::new(members, colluders, shares).map_err(|error| error.to_string())?)
        } else if let Some(PairsContext { rounds, told, .. }) = &header.pairs {
            let is_sound = |told: Told| (1.0..2.0).contains(&told.gamma) && *rounds <= ROUNDS_MAX;
            if !told.is_none_or(is_sound) {
                return Err(format!("a gamma from 1 to below 2 and at most {ROUNDS_MAX} rounds are accepted"));
            }
            Observer::Pairs { rounds: *rounds, told: *told }
        } else if let Some(GraphWalkContext { contributions, .. }) = header.graph_walk {
            Observer::GraphWalk(WorstPair::local(contributions).map_err(|error| error.to_string())?)
        } else if let Some(walk) = header.walk {
            walk.observer().map_err(|error| error.to_string())?
        } else if let Some(CuratorContext { members, hops }) = header.curator {
            Observer::Curator(Sampled::new(members, hops).map_err(|error| error.to_string())?)
        } else if let Some(AnswersContext { members, rounds, cells }) = header.answers {
            Observer::Answers(Clones::new(members, rounds, cells).map_err(|error| error.to_string())?)
        } else if let Some(gopa) = header.gopa {
            gopa.observer()?
        } else if header.observer == Observer::Aggregator.name() {
            Observer::Aggregator
        } else {
            Observer::Everyone
        };
        if header.ledger != 1 {
            return Err(format!("a header of a ledger of form {}; accepted: 1", header.ledger));
        }
        match header.observer == observer.name() {
            true => Ok((header.unit, observer)),
            false => Err(format!(
                "a header whose observer is {:?}, and the rest of it says {:?}; accepted: the same in both",
                header.observer,
                observer.name()
            )),
        }
    }
}

/// The last line of a ledger that a peer has signed: an object of its own kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// By Ed25519, in hexadecimal digits.
    pub signature: String,
    /// The id of the peer that signed: its public key.
    pub key: String,
    /// The digest of the peer's task, in hexadecimal digits.
    pub task: String,
}

impl Signature {
    /// Of a line, if it is one.
    pub fn of(line: &[u8]) -> Option<Signature> {
        serde_json::from_slice(line).ok()
    }

    /// What is signed: key, task, and the lines before the signature, to the byte.
    pub fn message(key: &str, task: &str, lines: &[u8]) -> Vec<u8> {
        [format!("sottovoce ledger 1\n{key}\n{task}\n").as_bytes(), lines].concat()
    }

    /// The lines of a file, and its signature if the last of them is one.
    pub fn split(bytes: &[u8]) -> (&[u8], Option<Signature>) {
        let whole = bytes.trim_ascii_end();
        let start = whole.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        (&bytes[..start], Signature::of(&whole[start..]))
    }
}

/// The lines of agents' ledgers, in the order given, behind the header if there is one.
pub fn lines<'a>(header: Option<&Header>, ledgers: impl Iterator<Item = (&'a str, &'a Ledger)>) -> String {
    let mut text =
        header.map_or(String::new(), |header| serde_json::to_string(header).expect("a header is JSON") + "\n");
    for (agent, ledger) in ledgers {
        for &charge in ledger.charges() {
            text += &serde_json::to_string(&Line { agent, charge }).expect("a charge is JSON");
            text.push('\n');
        }
    }
    text
}

/// Each agent's name and ledger.
pub type Ledgers = Vec<(String, Ledger)>;

/// Each agent's ledger, agents in the order of their first lines. Agents that released nothing have no line, so they are not in
/// it.
pub fn read(path: &Path) -> Result<Ledgers, Mistake> {
    read_with_header(path).map(|(_, ledgers)| ledgers)
}

/// The same, and the header if there is one.
pub fn read_with_header(path: &Path) -> Result<(Option<Header>, Ledgers), Mistake> {
    let file = File::open(path).map_err(|error| Mistake::io(path, "read", &error))?;
    let mut file = BufReader::new(file);
    let mut found: Vec<(String, Vec<Charge>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let mut text = Vec::new();
    let (mut is_signed, mut header) = (false, None);
    for number in 1u64.. {
        text.clear();
        let read = file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
        if read.map_err(|error| Mistake::io(path, "read", &error))? == 0 {
            break;
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        if is_signed {
            return Err(Mistake::line(
                path,
                number,
                "stands after the signature; accepted: a signature as the last line",
            ));
        }
        if number == 1 {
            let found = serde_json::from_slice::<Header>(&text);
            if let (Err(error), true) = (&found, text.starts_with(b"{\"ledger\"")) {
                let what =
                    format!("is no header: {error}; accepted: the first line of a ledger.jsonl, as a run writes it");
                return Err(Mistake::line(path, number, what));
            }
            header = found.ok();
            if header.is_some() {
                Header::guarantee(header.as_ref()).map_err(|what| Mistake::line(path, number, what))?;
                continue;
            }
        }
        is_signed = Signature::of(&text).is_some();
        if is_signed {
            continue;
        }
        let (agent, charge) = parsed(&text).map_err(|error| {
            let what = format!("is no charge: {error}; accepted: a line of ledger.jsonl, as a run writes it");
            Mistake::line(path, number, what)
        })?;
        let place = *places.entry(agent.clone()).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, charges)) => charges.push(charge),
            None => found.push((agent, vec![charge])),
        }
    }
    let ledger = |(agent, charges): (String, Vec<Charge>)| match Ledger::from_charges(charges) {
        Ok(ledger) => Ok((agent, ledger)),
        Err(error) => Err(Mistake::file(path, format!("agent {agent:?}: {error}"))),
    };
    Ok((header, found.into_iter().map(ledger).collect::<Result<_, _>>()?))
}

/// Each ledger's epsilon by an accountant. Agents with one plan are one case, which is computed once.
pub fn epsilons<'a>(ledgers: impl Iterator<Item = &'a Ledger>, delta: f64, accountant: &dyn Accountant) -> Vec<f64> {
    let mut known: Vec<(Ledger, f64)> = Vec::new();
    let mut of = |ledger: &Ledger| {
        // What accountants read does not depend on the sensitivity.
        let bare = ledger.charges().map(|charge| Charge { sensitivity: None, ..*charge });
        let bare = Ledger::from_charges(bare).expect("a ledger's charges are valid");
        match known.iter().find(|(other, _)| *other == bare) {
            Some((_, epsilon)) => *epsilon,
            None => {
                let epsilon = accountant.epsilon(&bare, delta);
                known.push((bare, epsilon));
                epsilon
            }
        }
    };
    ledgers.map(&mut of).collect()
}

#[cfg(test)]
mod tests;
