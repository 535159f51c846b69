//! Peers in one process, each with its own socket on loopback, its own key and its own store.
#![allow(dead_code, reason = "each test uses its part")]

use sottovoce_algorithms::personal::descent::{CoordinateDescent, CoordinateDescentConfig, Start};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, Shard};
use sottovoce_core::{Algorithm, Coin, Edge, Graph, PeerId};
use sottovoce_net::admin::Ask;
use sottovoce_net::disk::{FileDisk, Glance};
use sottovoce_net::group::Group;
use sottovoce_net::node::{Fault, Node, Rules};
use sottovoce_net::peer::{Peer, PeerError, PeerSettings};
use sottovoce_net::status::{PeerStatus, Phase};
use sottovoce_net::store::{Owner, Store, StoredStep};
use sottovoce_net::transport::{self, Identity, StartError};
use sottovoce_privacy::Plan;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A ring with a few chords; agents of points in general position.
pub fn problem(seed: u64, n: usize, p: usize) -> &'static Problem {
    let mut coin = Coin::new(seed, 0, 0);
    let mut data = Dataset::new(p);
    for _ in 0..n {
        let points = 3 + coin.below(10);
        let features: Vec<f64> = (0..points * p).map(|_| 2.0 * coin.unit() - 1.0).collect();
        let labels: Vec<f64> = (0..points).map(|_| if coin.unit() < 0.5 { 1.0 } else { -1.0 }).collect();
        data.push_agent(&features, &labels);
    }
    let mut edges: Vec<(u32, u32, f64)> = (0..n as u32).map(|a| (a, (a + 1) % n as u32, 0.5 + coin.unit())).collect();
    for a in (0..n as u32 / 2).step_by(3) {
        edges.push((a, a + n as u32 / 2, 0.5));
    }
    Box::leak(Box::new(Problem {
        data,
        graph: Graph::from_edges(n, &edges).expect("a graph"),
        loss: Loss::Logistic,
        regularization: Regularization::Constant(0.1),
        trade_off: 1.0,
        points_max: 12.0,
    }))
}

pub fn descent(problem: &Problem, start: Start) -> &'static CoordinateDescent {
    let (dimension, loss, trade_off) = (problem.dimension(), problem.loss, problem.trade_off);
    let config = CoordinateDescentConfig { dimension, loss, trade_off, start };
    Box::leak(Box::new(CoordinateDescent::new(config).expect("good parameters")))
}

/// Everything about the peers but the peers.
pub struct Town<A: 'static> {
    pub problem: &'static Problem,
    pub algorithm: &'static A,
    pub identities: Vec<Identity>,
    pub folder: tempfile::TempDir,
    pub plan: Option<Arc<Plan>>,
    pub tolerance: Option<f64>,
    pub interval: Duration,
    /// Once known: where each peer listens.
    pub addresses: Vec<Option<libp2p::Multiaddr>>,
    /// Whether peers know where the others are, or only where the first is.
    pub all_addresses: bool,
}

/// A running peer.
pub struct Running {
    pub owner: mpsc::Sender<Ask>,
    pub ended: JoinHandle<Result<(), PeerError>>,
}

pub fn town<A: Algorithm>(problem: &'static Problem, algorithm: &'static A) -> Town<A> {
    let n = problem.agents();
    Town {
        problem,
        algorithm,
        identities: (0..n).map(|_| Identity::generate()).collect(),
        folder: tempfile::tempdir().expect("a folder"),
        plan: None,
        tolerance: Some(1e-8),
        interval: Duration::from_millis(10),
        addresses: vec![None; n],
        all_addresses: true,
    }
}

impl<A: for<'d> Algorithm<Data<'d> = Shard<'d>> + 'static> Town<A> {
    pub fn store(&self, k: usize) -> PathBuf {
        self.folder.path().join(format!("{k:03}"))
    }

    fn owner(&self, k: usize) -> Owner {
        let key = self.identities[k].id().to_string();
        Owner { key, task: [1; 32], data: [k as u8; 32], algorithm: "test".to_owned() }
    }

    pub fn node(&self, k: usize) -> Result<Node<'static, A, FileDisk>, Fault> {
        let me = PeerId(k as u32);
        let edges: Vec<Edge> = self.problem.graph.peers(me).iter().collect();
        let group = Group {
            names: (0..self.identities.len()).map(|k| format!("{k:03}")).collect(),
            keys: self.identities.iter().map(|identity| identity.id().to_string()).collect(),
            roles: Vec::new(),
            me,
            neighbours: Some(edges),
            reach: None,
        };
        let rules = Rules {
            seed: 1,
            plan: self.plan.clone(),
            points: self.problem.data.size(me) as u64,
            witnesses: 1,
            wakes_max: None,
            tolerance: self.tolerance,
            pull_limit: None,
        };
        let disk = FileDisk::open(&self.store(k)).expect("a folder of its own");
        Node::open(self.algorithm, self.problem.shard(me), group, rules, &self.owner(k), disk)
    }

    pub fn settings(&self, k: usize) -> PeerSettings {
        let mut transport = transport::TransportSettings::new("/sottovoce/2/test", 1 << 16);
        let listen = self.addresses[k].clone();
        transport.listen = vec![listen.unwrap_or_else(|| "/ip4/127.0.0.1/tcp/0".parse().expect("an address"))];
        for edge in self.problem.graph.peers(PeerId(k as u32)).iter() {
            let there = self.addresses[edge.peer.index()].iter().cloned().collect();
            transport.known.push((self.identities[edge.peer.index()].id(), there));
        }
        PeerSettings {
            identity: self.identities[k].clone(),
            transport,
            keys: self.identities.iter().map(Identity::id).collect(),
            interval: self.interval,
            frames_per_second: 500,
            seed: k as u64,
        }
    }

    /// Starts one peer. The first time it takes any port, later the same.
    pub async fn start(&mut self, k: usize) -> Running {
        let mut tries = 0;
        let mut peer = loop {
            match Peer::start(self.node(k).expect("a good store"), self.settings(k)).await {
                Ok(peer) => break peer,
                // A socket outlives the peer that was killed for a moment.
                Err(PeerError::Start(StartError::PortInUse { .. })) if tries < 100 => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        self.addresses[k] = peer.addresses().first().cloned();
        for (other, address) in self.addresses.iter().enumerate() {
            if let Some(address) = address.clone().filter(|_| other != k && (self.all_addresses || other == 0)) {
                peer.learn_address(self.identities[other].id(), address);
            }
        }
        let owner = peer.owner();
        Running { owner, ended: tokio::task::spawn_local(peer.run()) }
    }

    pub async fn start_all(&mut self) -> Vec<Running> {
        let mut running = Vec::new();
        for k in 0..self.identities.len() {
            running.push(self.start(k).await);
        }
        running
    }

    /// What a peer's store holds.
    pub fn step(&self, k: usize) -> StoredStep {
        let found = Store::look(&mut Glance::at(&self.store(k))).expect("a good store").expect("a store");
        found.1.expect("a step")
    }
}

impl Running {
    pub async fn status(&self) -> PeerStatus {
        let (reply, status) = oneshot::channel();
        self.owner.send(Ask::Status(reply)).await.expect("it runs");
        status.await.expect("it answers")
    }

    pub async fn stop(self) -> Result<(), PeerError> {
        let (reply, stopped) = oneshot::channel();
        if self.owner.send(Ask::Stop(reply)).await.is_ok() {
            let _ = stopped.await;
        }
        self.ended.await.expect("no panic")
    }

    /// As a crash: nothing is saved, nobody is told.
    pub async fn kill(self) {
        self.ended.abort();
        let _ = self.ended.await;
    }
}

/// Waits until every peer is quiet and all is delivered; how long it took.
pub async fn quiet(running: &[Running], patience: Duration) -> Duration {
    let began = Instant::now();
    loop {
        let mut waiting = 0;
        for peer in running {
            let status = peer.status().await;
            waiting += u32::from(status.phase != Phase::Quiet || !status.delivered);
        }
        if waiting == 0 {
            return began.elapsed();
        }
        assert!(began.elapsed() < patience, "{waiting} of {} are not quiet", running.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs a test's future, with peers on this thread and sockets on two others.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// Resident memory of this process, in bytes; `None` where the system does not tell.
pub fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}
