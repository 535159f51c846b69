//! What a wake of graph learning costs through the contract, as a ratio against a bare loop that does the same arithmetic on plain
//! arrays, in the same process and run: 100,000 agents, samples of 10, p = 20.
//!
//! `cargo bench -p sottovoce-sim --bench graph` prints the case; `-- --json` prints a line for programs, and a number of agents may
//! be given.

use sottovoce_algorithms::{
    joint::{Joint, LogDegree},
    personal::graph::{GraphLearning, GraphLearningConfig, Placed},
};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_sim::{Clock, Faults, Settings, Simulation};
use std::time::Instant;

const DIMENSION: usize = 20;
const SAMPLE: usize = 10;
/// Wakes per agent in a round; agents have few neighbours in the first and many in the last.
const WAKES_PER_AGENT: u64 = 1;
const ROUNDS: usize = 9;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let json = words.iter().any(|word| word == "--json");
    let agents = words.iter().find_map(|word| word.parse().ok()).unwrap_or(100_000);
    report(agents, json);
}

/// Everyone's model, fixed, and its cost.
struct Case {
    models: Vec<f64>,
    costs: Vec<f64>,
}

impl Case {
    fn new(agents: usize) -> Self {
        let mut coin = Coin::new(1, 0, 0);
        let models = (0..agents * DIMENSION).map(|_| 2.0 * coin.unit() - 1.0).collect();
        Case { models, costs: (0..agents).map(|_| coin.unit()).collect() }
    }

    fn placed(&self, id: PeerId) -> Placed<'_> {
        let model = &self.models[id.index() * DIMENSION..][..DIMENSION];
        Placed { model, cost: self.costs[id.index()] }
    }
}

/// Runs both in turn, round after round. Lists grow from round to round, so each round is a ratio of its own; other programs slow
/// down either, so the middle one of all ratios stands for them.
fn report(agents: usize, json: bool) {
    let wakes = WAKES_PER_AGENT * agents as u64;
    let case = Case::new(agents);
    let regularizer = LogDegree { sparsity: 1.0, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: 1.0, strength: 1.0, regularizer };
    let algorithm = GraphLearning::new(GraphLearningConfig { joint, sample: SAMPLE }).expect("good parameters");
    let graph = Graph::Complete { n: agents as u32 };
    let settings = Settings { clock: Clock::Uniform, seed: 1, threads: 1, tolerance: None, faults: Faults::default() };
    let mut simulation =
        Simulation::start(&algorithm, &graph, |id| case.placed(id), &settings).expect("no budget is set");
    let mut bare = bare::Loop::new(&case, joint, agents);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let bare_time = seconds(|| bare.advance(wakes));
        let time = seconds(|| {
            simulation.advance(wakes);
        });
        times.push((time / bare_time, bare_time, time));
    }
    let mut links = 0;
    for id in (0..agents as u32).map(PeerId) {
        let theirs = simulation.state(id).links();
        assert_eq!(theirs.len(), bare.links(id).len(), "the bare loop must do the same arithmetic");
        for ((peer, weight), &(other, bare)) in theirs.iter().zip(bare.links(id)) {
            let same = peer.0 == other && (weight - bare).abs() < 1e-9 * bare.max(1.0);
            assert!(same, "{id:?} has {weight} to {peer:?}, and {bare} to {other} in the bare loop");
        }
        links += theirs.len();
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, bare_time, time) = times[ROUNDS / 2];
    let [bare_ns, ns] = [bare_time, time].map(|time| 1e9 * time / wakes as f64);
    if json {
        println!("{{\"case\": \"graph\", \"bare\": {bare_ns:.1}, \"threads_1\": {ns:.1}, \"ratio\": {ratio:.3}}}");
        return;
    }
    println!("graph: nanoseconds per wake, {ROUNDS} rounds of {wakes} wakes, the round with the middle ratio");
    println!("  bare loop            {bare_ns:10.1}");
    println!("  simulator, 1 thread  {ns:10.1}   {ratio:.2} x the bare loop");
    println!("  least and largest ratio {:.2} and {:.2}", times[0].0, times[ROUNDS - 1].0);
    println!("  neighbours at the end {:.1}", links as f64 / agents as f64);
}

/// How long the processor worked on it; where the system does not tell, how long it took.
fn seconds(work: impl FnOnce()) -> f64 {
    let (start, on_processor) = (Instant::now(), processor_seconds());
    work();
    match (on_processor, processor_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    }
}

/// Time on the processor so far, of the one thread there is; on Linux.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| 1e-9 * nanoseconds)
}

/// The same algorithm as a reader of the thesis would write it for speed: plain arrays, one loop, no agents, no gate, no messages.
/// A list of neighbours is sorted, as weights must be found from both ends, and searched by halving.
///
/// The agents' lists are laid out for fewer misses, and the simulator touches readers of letters ahead; this loop does neither. What is
/// gained there pays for letters, gate and counters. A bare loop with the same search takes about a fifth less time.
mod bare {
    use super::*;
    use sottovoce_core::Peers;
    use sottovoce_sim::Schedule;

    pub struct Loop<'c> {
        case: &'c Case,
        joint: Joint<LogDegree>,
        schedule: Schedule,
        links: Vec<Vec<(u32, f64)>>,
        degrees: Vec<f64>,
        smoothness: Vec<f64>,
        /// Wakes and letters of each agent: they key its coin, so that both draw the same samples.
        events: Vec<u64>,
        /// Whose weight an agent has last told again, which is a letter too.
        told: Vec<u32>,
        drawn: Vec<PeerId>,
        /// Price, degree, old weight, slope, new weight.
        block: Vec<[f64; 5]>,
    }

    impl<'c> Loop<'c> {
        pub fn new(case: &'c Case, joint: Joint<LogDegree>, agents: usize) -> Self {
            Loop {
                case,
                joint,
                schedule: Schedule::new(1, Clock::Uniform, agents),
                links: vec![Vec::new(); agents],
                degrees: vec![0.0; agents],
                smoothness: vec![1.0; agents],
                events: vec![0; agents],
                told: (0..agents as u32).collect(),
                drawn: Vec::new(),
                block: Vec::new(),
            }
        }

        pub fn links(&self, id: PeerId) -> &[(u32, f64)] {
            &self.links[id.index()]
        }

        pub fn advance(&mut self, wakes: u64) {
            for _ in 0..wakes {
                let (id, _) = self.schedule.next_wake();
                self.wake(id);
            }
        }

        fn wake(&mut self, id: PeerId) {
            let (u, n) = (id.index(), self.degrees.len() as u32);
            self.events[u] += 1;
            let mut coin = Coin::new(1, id.0, self.events[u]);
            Peers::Complete { me: id.0, n }.sample(SAMPLE, &mut coin, &mut self.drawn);
            self.count_letters_about_old_weights(u);
            let own = self.case.placed(id);
            self.block.clear();
            for &peer in &self.drawn {
                let other = self.case.placed(peer);
                let distance: f64 = own.model.iter().zip(other.model).map(|(a, b)| (a - b) * (a - b)).sum();
                let price = self.joint.price(own.cost + other.cost, distance);
                let degree = self.degrees[peer.index()];
                let weight = self.weight(u, peer.0);
                let slope = self.joint.slope(price, weight, [self.degrees[u], degree]);
                self.block.push([price, degree, weight, slope, weight]);
                self.events[peer.index()] += 1;
            }
            self.events[u] += self.drawn.len() as u64;
            if let Some(found) = self.descend(self.smoothness[u] / 2.0, self.degrees[u]) {
                self.smoothness[u] = found;
                for k in 0..self.drawn.len() {
                    let (v, [_, _, old, _, new]) = (self.drawn[k].index(), self.block[k]);
                    if new != old {
                        store(&mut self.links[u], v as u32, new);
                        store(&mut self.links[v], u as u32, new);
                        self.degrees[u] += new - old;
                        self.degrees[v] += new - old;
                        self.events[v] += 1;
                        // One who does not keep a pair proposes, and is told.
                        let keeps = if (u ^ v) & 1 == 0 { u < v } else { u > v };
                        self.events[u] += u64::from(!keeps);
                    }
                }
            }
        }

        fn count_letters_about_old_weights(&mut self, u: usize) {
            let (links, told) = (&self.links[u], self.told[u]);
            if !links.is_empty() {
                let at = links.partition_point(|link| link.0 <= told) % links.len();
                self.told[u] = links[at].0;
                self.events[links[at].0 as usize] += 1;
            }
        }

        fn weight(&self, u: usize, peer: u32) -> f64 {
            let links = &self.links[u];
            links.binary_search_by_key(&peer, |link| link.0).map_or(0.0, |at| links[at].1)
        }

        fn descend(&mut self, mut smoothness: f64, degree: f64) -> Option<f64> {
            for _ in 0..200 {
                let mut own = degree;
                for [_, _, old, slope, new] in &mut self.block {
                    *new = (*old - *slope / smoothness).max(0.0);
                    own += *new - *old;
                }
                let (mut bent, mut length) = (0.0, 0.0);
                for &[price, degree, old, slope, new] in &self.block {
                    let step = new - old;
                    let degrees = [own, degree + step].map(|degree| degree.max(0.0));
                    bent += (self.joint.slope(price, new, degrees) - slope) * step;
                    length += step * step;
                }
                if length == 0.0 {
                    return None;
                }
                if length.is_finite() && bent <= 0.5 * smoothness * length {
                    return Some(smoothness);
                }
                smoothness *= 2.0;
            }
            None
        }
    }

    fn store(links: &mut Vec<(u32, f64)>, peer: u32, weight: f64) {
        match links.binary_search_by_key(&peer, |link| link.0) {
            Ok(at) if weight > 0.0 => links[at].1 = weight,
            Ok(at) => {
                links.remove(at);
            }
            Err(at) if weight > 0.0 => links.insert(at, (peer, weight)),
            Err(_) => {}
        }
    }
}
