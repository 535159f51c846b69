//! What a peer says of itself to its owner.

use crate::frame::Refusals;
use serde::{Deserialize, Serialize};
use sottovoce_privacy::Charge;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How a peer is doing. For its owner: the model is not in it, but counts of wakes and neighbours are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// The agent's name.
    pub name: String,
    /// Its public key, as text.
    pub key: String,
    /// What it does.
    pub phase: Phase,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// Wakes so far, in all processes.
    pub wakes: u64,
    /// The highest number of a message.
    pub messages: u64,
    /// The number of its last post; zero before the first.
    pub post: u64,
    /// Seconds since its model last changed; none before it did, in this process.
    pub model_age: Option<f64>,
    /// The largest change of a coordinate at the last wake.
    pub moved: Option<f64>,
    /// Whether every neighbour has got everything.
    pub delivered: bool,
    /// What it has released so far.
    pub charges: Vec<Charge>,
    /// How many releases its plan has; none without privacy.
    pub planned: Option<u64>,
    /// Those it learns with.
    pub neighbours: Vec<NeighbourStatus>,
    /// What was counted since this process began, by name.
    pub counters: BTreeMap<String, u64>,
    /// What was refused since this process began, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Seconds since this process began.
    pub uptime: f64,
}

/// What a peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It asks its neighbours what they have seen of it, and says nothing new.
    Asking,
    /// It learns.
    Learning,
    /// It has nothing more to say unless others do; it answers and listens.
    Quiet,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourStatus {
    /// Its name.
    pub name: String,
    /// Whether there is a connection to it now.
    pub connected: bool,
    /// The number of its last post; zero before the first.
    pub post: u64,
    /// Seconds since it was last heard; none if not in this process.
    pub heard: Option<f64>,
    /// How many points it says it has.
    pub points: Option<u64>,
}

/// Adds what the node and the transport refused.
pub(crate) fn refusals(node: &Refusals, transport: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    let node = node.iter().map(|(reason, &count)| (reason.to_string().replace(' ', "_"), count));
    let transport = transport.filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.to_owned(), count));
    node.chain(transport).collect()
}

impl PeerStatus {
    /// In the text format of Prometheus. `epsilon` is what the releases come to, where someone has computed it.
    pub fn metrics(&self, epsilon: Option<f64>) -> String {
        let mut text = String::new();
        let mut one = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP sottovoce_{name} {help}\n# TYPE sottovoce_{name} {kind}");
            for (labels, value) in samples {
                let value = if value.is_infinite() { "+Inf".to_owned() } else { value.to_string() };
                let _ = writeln!(text, "sottovoce_{name}{labels} {value}");
            }
        };
        let plain = |value: f64| vec![(String::new(), value)];
        let releases: u64 = self.charges.iter().map(|charge| charge.count).sum();
        let connected = self.neighbours.iter().filter(|neighbour| neighbour.connected).count();
        let heard = self.neighbours.iter().filter(|neighbour| neighbour.post > 0).count();
        one("wakes_total", "counter", "Wakes of the agent, in all processes.", &plain(self.wakes as f64));
        one("messages_total", "counter", "Messages made, in all processes.", &plain(self.messages as f64));
        one("releases_total", "counter", "Values released, in all processes.", &plain(releases as f64));
        if let Some(planned) = self.planned {
            one("releases_planned", "gauge", "Releases that the plan has.", &plain(planned as f64));
        }
        if let Some(epsilon) = epsilon {
            one("epsilon_spent", "gauge", "What the releases so far come to.", &plain(epsilon));
        }
        one("neighbours", "gauge", "Neighbours.", &plain(self.neighbours.len() as f64));
        one("neighbours_connected", "gauge", "Neighbours with a connection.", &plain(connected as f64));
        one("neighbours_heard", "gauge", "Neighbours whose post is known.", &plain(heard as f64));
        if let Some(age) = self.model_age {
            one("model_age_seconds", "gauge", "Since the model last changed.", &plain(age));
        }
        one("uptime_seconds", "gauge", "Since this process began.", &plain(self.uptime));
        for (name, &count) in &self.counters {
            one(&format!("{name}_total"), "counter", "Since this process began.", &plain(count as f64));
        }
        let refused = |(reason, &count): (&String, &u64)| (format!("{{reason=\"{reason}\"}}"), count as f64);
        let refused: Vec<(String, f64)> = self.refused.iter().map(refused).collect();
        one("refused_total", "counter", "What others sent and was dropped, by reason.", &refused);
        text
    }
}
