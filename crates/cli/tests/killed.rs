//! Peers that are killed at any moment, as a power loss would, and started again.

mod support;

use sottovoce_algorithms::reference::central;
use sottovoce_core::Coin;
use sottovoce_run::peer;
use sottovoce_task::{load::load, task::Task};
use std::path::Path;
use std::time::Duration;
use support::{Peer, done, ports, read, until_quiet, write};

const AGENTS: usize = 6;

/// A task, and a peer for each agent with all its neighbours.
fn peers(place: &Path, change: impl Fn(String) -> String, file: &str, interval: f64) -> Vec<Peer> {
    done(place, &format!("data generate linear --agents {AGENTS} --dimension 3 --private --out task"));
    let text = read(place, &format!("task/{file}")).replace("trade-off = 1.0", "trade-off = 5.0\npoints-max = 100");
    write(place, "task/shared.toml", &change(text));
    let task = Task::read(&place.join("task/shared.toml")).expect("a task");
    let loaded = load(&task).expect("a problem");
    let shares = peer::shares(&task, &loaded).expect("shares");
    let mut peers = Vec::new();
    for ((name, share), port) in loaded.names.iter().zip(&shares).zip(ports(AGENTS)) {
        write(place, &format!("{name}.csv"), &share.data);
        peers.push(Peer::init(place, "task/shared.toml", name, &format!("{name}.csv"), port, interval));
    }
    for (a, b, weight) in loaded.problem.graph.edges() {
        peers[a.index()].meet(&peers[b.index()], weight);
        peers[b.index()].meet(&peers[a.index()], weight);
    }
    peers
}

/// Kills random peers at random times and starts them again after a while. At each kill, and at the end, nobody has seen more of the
/// victim than its store accounts for. Returns how many wakes each victim had had.
fn storm(peers: &mut [Peer], kills: usize, seed: u64) -> Vec<u64> {
    let mut coin = Coin::new(seed, 0, 0);
    peers.iter_mut().for_each(Peer::start);
    let mut killed = Vec::new();
    while killed.len() < kills {
        std::thread::sleep(Duration::from_millis(10 + coin.below(150) as u64));
        let k = coin.below(peers.len());
        if peers[k].is_running() {
            peers[k].kill();
            killed.push(peers[k].step().map_or(0, |step| step.wakes));
            accounted_for(peers, k);
        } else {
            peers[k].start();
        }
    }
    peers.iter_mut().filter(|peer| !peer.is_running()).for_each(Peer::start);
    killed
}

/// What others have seen of a peer that does not run is in its store. Others write down what they hear before long, not at once: they
/// are asked where they run.
fn accounted_for(peers: &mut [Peer], k: usize) {
    let step = peers[k].step().unwrap_or_default();
    let name = peers[k].name.clone();
    for other in peers.iter_mut().enumerate().filter(|(j, _)| *j != k).map(|(_, other)| other) {
        if !other.is_running() {
            continue;
        }
        let status = other.status();
        let neighbour =
            status["neighbours"].as_array().expect("neighbours").iter().find(|it| it["name"] == name.as_str());
        let seen = neighbour.map_or(0, |neighbour| neighbour["post"].as_u64().expect("a number"));
        assert!(seen <= step.last_number, "{name}: {} saw {seen}, its store has {}", other.name, step.last_number);
        let post = step.post.as_ref().map_or(0, |post| post.stamped.number);
        assert!(post <= step.ledger.releases(), "{name}: post {post}, charged {}", step.ledger.releases());
    }
}

fn without_privacy(kills: usize, seed: u64) {
    let place = support::folder();
    let place = place.path();
    let change = |text: String| text.replace("wakes-per-agent = 200", "tolerance = 1e-6");
    let mut peers = peers(place, change, "task.toml", 0.05);
    storm(&mut peers, kills, seed);
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    let loaded = load(&Task::read(&place.join("task/shared.toml")).expect("a task")).expect("a problem");
    let minimum = central::minimum(&loaded.problem);
    for (k, peer) in peers.iter_mut().enumerate() {
        let error = support::distance(&peer.post(), minimum.row(k));
        assert!(error < 1e-5, "{}: {error:e}", peer.name);
        peer.stop();
    }
}

fn private(kills: usize, seed: u64, updates: u64) {
    let place = support::folder();
    let place = place.path();
    let change = |text: String| text.replace("updates = 1 ", &format!("updates = {updates} "));
    let mut peers = peers(place, change, "private.toml", 0.05);
    storm(&mut peers, kills, seed);
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    for k in 0..peers.len() {
        let status = peers[k].status();
        let spent = status["epsilon_spent"].as_f64().expect("a number");
        assert!(spent <= 1.05 && spent > 1.0, "{status}");
        peers[k].stop();
        accounted_for(&mut peers, k);
        let step = peers[k].step().expect("a step");
        assert_eq!(step.ledger.releases(), updates, "{}: the plan, to the last release", peers[k].name);
    }
}

/// A few wakes, few enough that a storm is over in half of a life: turns of the models begin at 10, 30 and 50, of the graph at 20 and 40.
const LEARNED: &str = "kind = \"learned\"\nsample = 2\nfirst-wakes = 10\nmodel-wakes = 10\ngraph-wakes = 10 #";

fn private_learned(kills: usize, seed: u64) {
    let place = support::folder();
    let place = place.path();
    let change = |text: String| {
        let text = text.replace("updates = 1 ", "updates = 6 ").replace("edges = \"edges.csv\"", LEARNED);
        text.replace("seed = 1\n", "seed = 1\nwakes-per-agent = 60\n")
    };
    let mut peers = peers(place, change, "private.toml", 0.05);
    for peer in &peers {
        // With all as witnesses nobody would learn while anyone is away.
        let file = format!("{}/peer.toml", peer.name);
        write(place, &file, &format!("witnesses = 1\n{}", read(place, &file)));
    }
    let killed = storm(&mut peers, kills, seed);
    println!("killed after {killed:?} wakes");
    assert!(killed.iter().filter(|wakes| (1..60).contains(*wakes)).count() * 2 > kills, "{killed:?}");
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    let plan = load(&Task::read(&place.join("task/shared.toml")).expect("a task")).expect("a problem").plan;
    let plan = plan.expect("a plan");
    assert_eq!((plan.steps().len(), plan.asides().len()), (6, 2));
    for k in 0..peers.len() {
        let status = peers[k].status();
        let spent = status["epsilon_spent"].as_f64().expect("a number");
        assert!(spent <= 1.05 && spent > 1.049 && status["wakes"] == 60, "{status}");
        peers[k].stop();
        accounted_for(&mut peers, k);
        let step = peers[k].step().expect("a step");
        let count = |event| step.ledger.charges().filter(|it| it.event == event).map(|it| it.count).sum::<u64>();
        let released = (count(plan.steps()[0]), count(plan.asides()[0]), step.ledger.releases());
        assert_eq!(released, (6, 2, 8), "{}: the plan, to the last release", peers[k].name);
        assert!(peers[k].folder().join("home.csv").exists());
    }
    // Nothing more is ever said.
    peers.iter_mut().for_each(Peer::start);
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    for peer in &mut peers {
        assert_eq!(peer.status()["epsilon_left"].as_f64().map(|left| left < 0.001), Some(true));
        peer.stop();
        assert_eq!(peer.step().map(|step| step.ledger.releases()), Some(8), "{}", peer.name);
    }
}

#[test]
fn killed_peers_come_back_and_end_at_the_optimum() {
    without_privacy(24, 1);
}

#[test]
fn killed_private_peers_spend_exactly_their_plan() {
    private(24, 2, 40);
}

#[test]
fn killed_private_peers_that_learn_their_graph_spend_exactly_their_plan() {
    private_learned(24, 3);
}

/// `cargo xtask soak` runs this.
#[test]
#[ignore = "takes minutes; part of the soak"]
fn peers_survive_hundreds_of_kills() {
    for seed in 0..4 {
        without_privacy(150, 10 + seed);
        private(150, 20 + seed, 200);
        private_learned(60, 30 + seed);
    }
}
