//! Real peers as their owners run them, for tests. Whatever a test does, its processes end with it.
#![allow(dead_code, reason = "each test uses its part")]

use serde_json::Value;
use sottovoce_algorithms::personal::graph::Links;
use sottovoce_core::PeerId;
use sottovoce_net::disk::Glance;
use sottovoce_net::store::{Store, StoredStep};
use sottovoce_run::peer::{HeardNeighbour, PeerFile, Saved, load};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(100);

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sottovoce"))
}

/// Runs the program. It prints little, and ends in time or is ended.
pub fn sottovoce(folder: &Path, words: &str) -> Output {
    finish(program(), folder, words)
}

fn finish(mut command: Command, folder: &Path, words: &str) -> Output {
    command.current_dir(folder).args(words.split_whitespace()).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let began = Instant::now();
    while child.try_wait().expect("it is ours").is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().expect("it is ours");
            let output = child.wait_with_output().expect("it is ours");
            panic!("{words}: does not end: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it is ours")
}

pub fn done(folder: &Path, words: &str) -> String {
    text_of(sottovoce(folder, words), words)
}

fn text_of(output: Output, words: &str) -> String {
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

pub fn json(folder: &Path, words: &str) -> Value {
    serde_json::from_str(&done(folder, &format!("{words} --json"))).expect("JSON")
}

/// The one line with which the program refuses.
pub fn refused(folder: &Path, words: &str) -> String {
    let output = sottovoce(folder, words);
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{words}: {line}");
    assert_eq!(line.lines().count(), 1, "one line: {line}");
    line
}

pub fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub fn write(folder: &Path, file: &str, text: &(impl AsRef<[u8]> + ?Sized)) {
    fs::write(folder.join(file), text).unwrap_or_else(|error| panic!("{file}: {error}"));
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Free ports below those that the system gives to outgoing connections.
pub fn ports(count: usize) -> Vec<u16> {
    // Tests of one file run side by side in one process, those of others in others.
    let start = 10_000 + (std::process::id() % 150) as u16 * 128;
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let next = || start + NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    std::iter::repeat_with(next).filter(free).take(count).collect()
}

/// A peer's folder, below the folder of a test, and its process while there is one.
pub struct Peer {
    pub place: PathBuf,
    pub name: String,
    pub id: String,
    /// Where it listens.
    pub address: String,
    /// The network namespace that it lives in; `None`: this machine's own.
    machine: Option<String>,
    process: Option<Child>,
}

impl Peer {
    /// Makes a peer with `peer init`.
    pub fn init(place: &Path, task: &str, name: &str, data: &str, port: u16, interval: f64) -> Self {
        Self::init_on(None, place, task, name, data, &format!("/ip4/127.0.0.1/tcp/{port}"), interval)
    }

    /// Makes a peer in a network namespace.
    pub fn init_on(
        machine: Option<&str>,
        place: &Path,
        task: &str,
        name: &str,
        data: &str,
        address: &str,
        interval: f64,
    ) -> Self {
        let words = format!(
            "peer init {name} --task {task} --agent {name} --data {data} --listen {address} --interval {interval}"
        );
        let made = json(place, &words);
        let peer = Peer {
            place: place.to_owned(),
            name: name.to_owned(),
            id: made["id"].as_str().expect("an id").to_owned(),
            address: address.to_owned(),
            machine: machine.map(str::to_owned),
            process: None,
        };
        peer.append("frames-per-second = 500\n");
        peer
    }

    /// A copy of its folder, which is there already.
    pub fn copied(&self, name: &str) -> Self {
        let (place, id, address) = (self.place.clone(), self.id.clone(), self.address.clone());
        Peer { place, name: name.to_owned(), id, address, machine: self.machine.clone(), process: None }
    }

    /// The program, where this peer lives.
    fn program(&self) -> Command {
        match &self.machine {
            None => program(),
            Some(machine) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", machine, env!("CARGO_BIN_EXE_sottovoce")]);
                command
            }
        }
    }

    fn done(&self, words: &str) -> String {
        text_of(finish(self.program(), &self.place, words), words)
    }

    pub fn port(&self) -> u16 {
        self.address.rsplit('/').next().and_then(|port| port.parse().ok()).expect("an address ends in its port")
    }

    pub fn folder(&self) -> PathBuf {
        self.place.join(&self.name)
    }

    pub fn append(&self, text: &str) {
        let file = format!("{}/peer.toml", self.name);
        let before = read(&self.place, &file);
        write(&self.place, &file, &format!("{before}{text}"));
    }

    /// Lists another peer as a neighbour.
    pub fn meet(&self, other: &Peer, weight: f64) {
        let Peer { name, id, address, .. } = other;
        let table = format!("agent = {name:?}\nkey = {id:?}\nweight = {weight:?}\naddresses = [{address:?}]");
        self.append(&format!("\n[[neighbours]]\n{table}\n"));
    }

    pub fn start(&mut self) {
        assert!(self.process.is_none(), "{} runs", self.name);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder().join("log.txt")).expect("a log");
        let started = self
            .program()
            .current_dir(&self.place)
            .args(["peer", "start", &self.name, "--with-parent"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.process = Some(started.expect("the program starts"));
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// As a power loss would, for this process alone.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().expect("it is ours");
        process.wait().expect("it is ours");
    }

    pub fn signal(&mut self, name: &str) -> Option<i32> {
        let mut process = self.process.take().expect("it runs");
        let id = process.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().expect("kill runs").success());
        process.wait().expect("it ends").code()
    }

    /// By its owner.
    pub fn stop(&mut self) {
        self.done(&format!("peer stop {}", self.name));
        let code = self.process.take().expect("it runs").wait().expect("it ends");
        assert!(code.success(), "{}: {code}: {}", self.name, self.log());
    }

    pub fn log(&self) -> String {
        read(&self.folder(), "log.txt")
    }

    pub fn status(&mut self) -> Value {
        if let Some(process) = &mut self.process
            && let Some(code) = process.try_wait().expect("it is ours")
        {
            panic!("{} has ended ({code}): {}", self.name, self.log());
        }
        serde_json::from_str(&self.done(&format!("peer status {} --json", self.name))).expect("JSON")
    }

    /// What its store holds, whether it runs or not.
    pub fn step(&self) -> Option<StoredStep> {
        let looked = Store::look(&mut Glance::at(&self.folder().join("store")));
        looked.expect("a good store").and_then(|(_, step)| step)
    }

    pub fn post(&self) -> Vec<f64> {
        self.step().expect("a step").post.expect("a post").values
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Waits until all have nothing left to say that matters: all quiet, each seen with everything delivered since, and all quiet still.
pub fn until_quiet(peers: &mut [&mut Peer]) {
    let mut settled = vec![false; peers.len()];
    until("all quiet", || {
        let statuses: Vec<Value> = peers.iter_mut().map(|peer| peer.status()).collect();
        if !statuses.iter().all(|status| status["running"] == true && status["phase"] == "quiet") {
            settled.fill(false);
            return false;
        }
        let at_rest = settled.iter().all(|settled| *settled);
        settled.iter_mut().zip(&statuses).for_each(|(settled, status)| *settled |= status["delivered"] == true);
        at_rest
    });
}

/// Who a peer is, and the weights that its store says it has learned.
pub fn learned(folder: &Path) -> (PeerId, Links) {
    let one = load(&PeerFile::read(folder).expect("a peer file")).expect("a peer");
    let looked = Store::look(&mut Glance::at(&folder.join("store"))).expect("a good store");
    let StoredStep { state, neighbours, ledger, .. } = looked.and_then(|(_, step)| step).expect("a step");
    let saved = Saved { state: &state, neighbours: &neighbours, ledger: &ledger, post: None };
    let recalled = one.recall(saved, &vec![HeardNeighbour::default(); neighbours.len()]).expect("its state");
    (one.me, recalled.links.expect("a learned graph"))
}

/// Whether both ends of every pair hold the same weight, to the bit; and how many pairs have one.
pub fn agree(all: &[(PeerId, Links)]) -> (bool, usize) {
    let pairs = || all.iter().flat_map(|a| all.iter().filter(move |b| b.0 > a.0).map(move |b| (a, b)));
    let same = |((a, of_a), (b, of_b)): (&(PeerId, Links), &(PeerId, Links))| {
        of_a.weight(*b).to_bits() == of_b.weight(*a).to_bits()
    };
    (pairs().all(same), pairs().filter(|((_, of_a), (b, _))| of_a.weight(*b) > 0.0).count())
}

/// A folder for a test: in memory where that is possible, because a disk makes a few hundred things safe in a second, and thirty peers
/// want more.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// The largest difference between two vectors.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |most, (a, b)| f64::max(most, (a - b).abs()))
}
