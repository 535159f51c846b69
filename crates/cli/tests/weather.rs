//! Real peers on machines of their own, which are network namespaces, in bad weather: packets are lost, a line is slow, the network falls
//! into two halves for a while, one peer is gone for good. Nobody stalls.
//!
//! It needs Linux, root and the programs `ip` and `tc`; elsewhere it says that it was skipped. With `SOTTOVOCE_SOAK` set, the halves are
//! apart for a minute.

mod support;

use sottovoce_algorithms::reference::central;
use sottovoce_run::peer;
use sottovoce_task::{load::load, task::Task};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Peer, distance, done, until, write};

const AGENTS: usize = 6;
const SLOW: usize = 5;
const GONE: usize = 4;
/// Seconds between two wakes of a peer.
const INTERVAL: f64 = 0.1;

const TASK: &str = "
name = 'weather'
algorithm = 'coordinate-descent'
[data]
train = 'task/train.csv'
[graph]
kind = 'complete'
[model]
points-max = 100
regularization = '1/m'
trade-off = 5.0
[run]
wakes-per-agent = 1000000
";

/// A classic BPF program that drops a tenth of the packets: load a random word; above a tenth of 2^32 pass, else drop.
const LOSE_A_TENTH: &str = "4,32 0 0 4294963256,37 0 1 429496729,6 0 0 0,6 0 0 2";

/// Namespaces with a cable each to a hub, which has two bridges.
struct Machines {
    tag: String,
}

fn run(words: &str) -> Result<(), String> {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().expect("a program"));
    // One argument holds blanks: the program that loses packets.
    command.args(words.map(|word| if word == "LOSE" { LOSE_A_TENTH } else { word })).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Machines {
    /// One for each agent. `Err`: why this machine cannot have them.
    fn new() -> Result<Self, String> {
        let machines = Machines { tag: format!("svw{}", std::process::id()) };
        let tag = &machines.tag;
        run(&format!("ip netns add {tag}-hub"))?;
        for bridge in ["here", "there"] {
            run(&format!("ip -n {tag}-hub link add {bridge} type bridge"))?;
            run(&format!("ip -n {tag}-hub link set {bridge} up"))?;
        }
        for k in 0..AGENTS {
            let machine = machines.name(k);
            run(&format!("ip netns add {machine}"))?;
            run(&format!("ip -n {machine} link set lo up"))?;
            run(&format!("ip -n {machine} link add eth0 type veth peer name port{k} netns {tag}-hub"))?;
            run(&format!("ip -n {machine} address add 10.78.0.{}/24 dev eth0", k + 1))?;
            run(&format!("ip -n {machine} link set eth0 up"))?;
            run(&format!("ip -n {tag}-hub link set port{k} master here up"))?;
            for (machine, device) in [(machine, "eth0".to_owned()), (format!("{tag}-hub"), format!("port{k}"))] {
                run(&format!("tc -n {machine} qdisc add dev {device} clsact"))?;
                run(&format!("tc -n {machine} filter add dev {device} egress bpf da bytecode LOSE"))?;
                if k == SLOW {
                    // 128 kbit a second: a full packet takes a tenth of a second, and the handshakes wait for each other.
                    run(&format!("tc -n {machine} qdisc add dev {device} root tbf rate 128kbit burst 2kb latency 4s"))?;
                }
            }
        }
        Ok(machines)
    }

    fn name(&self, k: usize) -> String {
        format!("{}-{k}", self.tag)
    }

    /// Plugs the second half into a bridge.
    fn plug_second_half(&self, bridge: &str) {
        for k in AGENTS / 2..AGENTS {
            run(&format!("ip -n {}-hub link set port{k} master {bridge}", self.tag)).expect("a cable is moved");
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for k in 0..AGENTS {
            let _ = run(&format!("ip netns delete {}", self.name(k)));
        }
        let _ = run(&format!("ip netns delete {}-hub", self.tag));
    }
}

/// Wakes of a peer, and by neighbour the number of the newest post it has from there.
type Progress = (u64, Vec<u64>);

fn progress(peer: &mut Peer) -> Progress {
    let status = peer.status();
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let neighbours = status["neighbours"].as_array().expect("a list");
    (number(&status["wakes"]), neighbours.iter().map(|neighbour| number(&neighbour["post"])).collect())
}

/// What each of some peers has of another among all, itself left out of its list.
fn heard_of(progress: &Progress, me: usize, other: usize) -> u64 {
    progress.1[if other < me { other } else { other - 1 }]
}

/// Lets time pass and checks that each of these peers goes on waking meanwhile, and hears of all others that it can reach before long.
fn nobody_stalls(
    what: &str,
    peers: &mut [Peer],
    living: &[usize],
    reach: impl Fn(usize, usize) -> bool,
    time: Duration,
) {
    let before: Vec<Progress> = living.iter().map(|&k| progress(&mut peers[k])).collect();
    let began = Instant::now();
    std::thread::sleep(time);
    let due = began.elapsed().as_secs_f64() / INTERVAL;
    let after: Vec<Progress> = living.iter().map(|&k| progress(&mut peers[k])).collect();
    let mut least = u64::MAX;
    for ((&k, before), after) in living.iter().zip(&before).zip(&after) {
        let wakes = after.0 - before.0;
        least = least.min(wakes);
        // A machine that is busy makes fewer than are due.
        assert!(wakes as f64 > 0.3 * due, "{what}: peer {k} made {wakes} wakes of {due:.0}");
    }
    // A line that is slow and loses packets may be silent for some seconds: TCP waits ever longer before it tries again.
    for (&k, before) in living.iter().zip(&before) {
        until(&format!("{what}: peer {k} hears all that it can reach"), || {
            let now = progress(&mut peers[k]);
            let mut others = living.iter().filter(|&&other| other != k && reach(k, other));
            others.all(|&other| heard_of(&now, k, other) > heard_of(before, k, other))
        });
    }
    let heard = began.elapsed().as_secs_f64();
    println!("{what}: at least {least} wakes of {due:.0} at every peer; all heard of all within {heard:.0} s");
}

/// How far the furthest of some peers is from a minimum.
fn error(peers: &[Peer], living: &[usize], minimum: &sottovoce_core::Rows) -> f64 {
    living.iter().map(|&k| distance(&peers[k].post(), minimum.row(k))).fold(0.0, f64::max)
}

#[test]
fn nobody_stalls_when_packets_are_lost_lines_are_slow_halves_are_apart_and_a_peer_is_gone() {
    let machines = match Machines::new() {
        Ok(machines) => machines,
        Err(why) => return println!("SKIPPED: no network namespaces with lossy lines here ({why})"),
    };
    let soak = std::env::var_os("SOTTOVOCE_SOAK").is_some();
    let place = support::folder();
    let place = place.path();
    done(place, &format!("data generate linear --agents {AGENTS} --dimension 3 --out task"));
    write(place, "task.toml", TASK);
    let task = Task::read(&place.join("task.toml")).expect("a task");
    let loaded = load(&task).expect("a problem");
    let mut peers = Vec::new();
    for (k, (name, share)) in loaded.names.iter().zip(&peer::shares(&task, &loaded).expect("shares")).enumerate() {
        write(place, &format!("{name}.csv"), &share.data);
        let (data, address) = (format!("{name}.csv"), format!("/ip4/10.78.0.{}/tcp/4001", k + 1));
        peers.push(Peer::init_on(Some(&machines.name(k)), place, "task.toml", name, &data, &address, INTERVAL));
    }
    for (a, b, weight) in loaded.problem.graph.edges() {
        peers[a.index()].meet(&peers[b.index()], weight);
        peers[b.index()].meet(&peers[a.index()], weight);
    }
    let minimum = central::minimum(&loaded.problem);
    let all: Vec<usize> = (0..AGENTS).collect();
    let seconds = |short, long| Duration::from_secs(if soak { long } else { short });

    peers.iter_mut().for_each(Peer::start);
    until("everyone heard everyone", || {
        peers.iter_mut().all(|peer| peer.status()["running"] == true && !progress(peer).1.contains(&0))
    });
    nobody_stalls("a tenth of the packets lost", &mut peers, &all, |_, _| true, seconds(8, 60));

    machines.plug_second_half("there");
    let same_side = |a: usize, b: usize| (a < AGENTS / 2) == (b < AGENTS / 2);
    // What was under way when the cables were moved.
    std::thread::sleep(Duration::from_secs(1));
    let apart: Vec<Progress> = peers.iter_mut().map(progress).collect();
    nobody_stalls("two halves", &mut peers, &all, same_side, seconds(8, 60));
    let later: Vec<Progress> = peers.iter_mut().map(progress).collect();
    for (a, b) in all.iter().flat_map(|&a| all.iter().map(move |&b| (a, b))).filter(|&(a, b)| !same_side(a, b)) {
        assert_eq!(heard_of(&later[a], a, b), heard_of(&apart[a], a, b), "{a} and {b} are apart");
    }

    machines.plug_second_half("here");
    let healed = Instant::now();
    until("everyone hears everyone again", || {
        let now: Vec<Progress> = peers.iter_mut().map(progress).collect();
        all.iter().all(|&a| all.iter().all(|&b| a == b || heard_of(&now[a], a, b) > heard_of(&later[a], a, b)))
    });
    println!("together again after {:.1} s", healed.elapsed().as_secs_f64());
    until("everyone is at the central minimum", || error(&peers, &all, &minimum) < 1e-5);

    peers[GONE].kill();
    let rest: Vec<usize> = all.iter().copied().filter(|&k| k != GONE).collect();
    nobody_stalls("one is gone for good", &mut peers, &rest, |_, _| true, seconds(8, 60));
    let error = error(&peers, &rest, &minimum);
    println!("the others are {error:.1e} from the minimum");
    assert!(error < 1e-5, "{error:e}");
    peers.iter_mut().filter(|peer| peer.is_running()).for_each(Peer::stop);
}
