//! One peer as its owner runs it: two or three real processes on loopback.

mod support;

use sottovoce_algorithms::reference::central;
use sottovoce_task::{load::load, task::Task};
use std::fs;
use std::path::Path;
use support::{Peer, distance, done, json, ports, read, refused, sottovoce, until, until_quiet, write};

const TASK: &str = "name = \"three\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"all.csv\"\n[graph]\nedges = \"edges.csv\"\n\
                    [model]\npoints-max = 6\nregularization = 0.1\n[run]\ntolerance = 1e-7\n";

const PRIVATE: &str = "name = \"three\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"all.csv\"\nnormalize = \"l2\"\n\
                       [graph]\nedges = \"edges.csv\"\n[model]\npoints-max = 6\n[privacy]\nepsilon = 2.0\ndelta = 1e-3\nupdates = 3\n";

/// Points of some agents: two features, labels by the first.
fn rows(names: &[&str]) -> String {
    let mut text = "agent,label,x,y\n".to_owned();
    for (k, name) in names.iter().enumerate() {
        for j in 0..4 + k {
            let x = ((7 * k + 3 * j) % 11) as f64 / 5.0 - 1.0;
            let y = ((5 * k + 2 * j) % 7) as f64 / 3.0 - 1.0;
            text += &format!("{name},{},{x},{y}\n", if x + 0.3 * y > 0.1 { 1 } else { -1 });
        }
    }
    text
}

/// The rows of one agent, each as it stands among all.
fn own(all: &str, name: &str) -> String {
    let header = all.lines().take(1);
    let rows = all.lines().filter(|line| line.starts_with(&format!("{name},")));
    header.chain(rows).map(|line| format!("{line}\n")).collect()
}

/// A folder with a task and everyone's data, and a peer for each.
fn peers(task: &str, names: &[&str]) -> (tempfile::TempDir, Vec<Peer>) {
    let place = support::folder();
    let all = rows(names);
    write(place.path(), "task.toml", task);
    write(place.path(), "all.csv", &all);
    for name in names {
        write(place.path(), &format!("{name}.csv"), &own(&all, name));
    }
    let peer =
        |(name, port): (&&str, u16)| Peer::init(place.path(), "task.toml", name, &format!("{name}.csv"), port, 0.03);
    let peers = names.iter().zip(ports(names.len())).map(peer).collect();
    (place, peers)
}

/// The numbers of a column, without its header.
fn column(csv: &str, k: usize) -> Vec<f64> {
    let number = |line: &str| line.split(',').nth(k).expect("a column").parse().expect("a number");
    csv.lines().skip(1).map(number).collect()
}

/// The central optimum of the task over some edges.
fn optimum(place: &Path, task: &str, edges: &str) -> Vec<(String, Vec<f64>)> {
    write(place, "edges.csv", &format!("a,b,weight\n{edges}"));
    write(place, "central.toml", &task.replace("[model]", "allow-isolated = true\n[model]"));
    let loaded = load(&Task::read(&place.join("central.toml")).expect("a task")).expect("a problem");
    let minimum = central::minimum(&loaded.problem);
    loaded.names.iter().enumerate().map(|(k, name)| (name.clone(), minimum.row(k).to_vec())).collect()
}

fn check(place: &Path, task: &str, edges: &str, peers: &[&Peer]) {
    for (name, expected) in optimum(place, task, edges) {
        let Some(peer) = peers.iter().find(|peer| peer.name == name) else { continue };
        let error = distance(&peer.post(), &expected);
        assert!(error < 1e-5, "{name}: {error:e}");
    }
}

#[test]
fn two_peers_learn_and_their_owners_ask_predict_and_stop() {
    let (place, mut peers) = peers(TASK, &["ann", "bob"]);
    let place = place.path();
    let [ann, bob] = &mut peers[..] else { unreachable!() };
    ann.meet(bob, 1.0);
    bob.meet(ann, 1.0);
    assert!(refused(place, "peer predict ann ann.csv").contains("learned nothing yet"));
    assert!(refused(place, "peer stop ann").contains("does not run"));
    ann.start();
    bob.start();
    until_quiet(&mut [ann, bob]);
    // It goes on waking while it is quiet, so something may be under way when it is asked.
    let mut said = String::new();
    until("all is delivered", || {
        said = done(place, "peer status ann");
        said.contains("all delivered")
    });
    for words in ["ann, running as process", "quiet", "epsilon = infinity", "bob"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(refused(place, "peer start ann").contains("another process uses this store"));
    let while_running = done(place, "peer predict ann ann.csv");
    assert_eq!(while_running.lines().next(), Some("prediction,probability,margin"));
    ann.stop();
    // What is within the tolerance may still have moved.
    let stopped = done(place, "peer predict ann ann.csv");
    assert!(distance(&column(&stopped, 2), &column(&while_running, 2)) < 1e-5, "{stopped}");
    let status = ann.status();
    assert_eq!((&status["running"], status["epsilon_spent"].as_str()), (&false.into(), Some("infinity")));
    assert!(!ann.folder().join("admin.json").exists());
    // Predictions are those of the model, by name of the feature and not by place.
    let model = ann.post();
    let first = column(&stopped, 2)[0];
    let data = read(place, "ann.csv");
    let point = [column(&data, 2)[0], column(&data, 3)[0]];
    assert!((first - point[0] * model[0] - point[1] * model[1]).abs() < 1e-12);
    write(place, "turned.csv", "y,x\n0.5,-1\n");
    let turned = json(place, "peer predict ann turned.csv");
    let margin = turned[0]["margin"].as_f64().expect("a margin");
    assert!((margin - (0.5 * model[1] - model[0])).abs() < 1e-12, "{turned}");
    write(place, "other.csv", "x,z\n1,2\n");
    assert!(refused(place, "peer predict ann other.csv").contains("\"z\""));
    check(place, TASK, "ann,bob,1\n", &[ann, bob]);
    // A signal is as good as the owner's word, and a stale admin.json is seen through.
    ann.start();
    until("ann is back", || ann.status()["phase"] == "quiet");
    let stale = read(place, "ann/admin.json");
    assert_eq!(ann.signal("TERM"), Some(0), "{}", ann.log());
    write(place, "ann/admin.json", &stale);
    assert_eq!(ann.status()["running"], false);
    assert!(refused(place, "peer stop ann").contains("does not run"));
}

const MEETING: &str = "name = \"meeting\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"all.csv\"\n[graph]\nkind = \"learned\"\n\
                       first-wakes = 10\nmodel-wakes = 5\ngraph-wakes = 5\n[model]\npoints-max = 8\n[run]\nwakes-per-agent = 150\n";

/// Members of a learned graph: all know where one of them is, and one dies on the way.
#[test]
fn members_meet_through_one_address_and_agree_on_weights_though_one_dies() {
    let (place, mut peers) = peers(MEETING, &["ann", "bob", "cid", "dan"]);
    let place = place.path();
    for k in 0..4 {
        for other in (0..4).filter(|&other| other != k) {
            let card = read(place, &format!("{}/card.toml", peers[other].name));
            let lines = card.lines().filter(|line| other == 0 || !line.starts_with("addresses"));
            write(place, "card.toml", &lines.map(|line| format!("{line}\n")).collect::<String>());
            let said = done(place, &format!("peer add {} card.toml", peers[k].name));
            assert!(said.contains("as closely as they find out"), "{said}");
        }
    }
    let line = refused(place, "peer add ann card.toml --weight 2");
    assert!(line.contains("listed twice"), "{line}");
    done(place, "peer remove ann dan");
    let line = refused(place, "peer add ann dan/card.toml --weight 2");
    assert!(line.contains("learns its weights"), "{line}");
    done(place, "peer add ann dan/card.toml");
    peers.iter_mut().for_each(Peer::start);
    until("bob has begun", || peers[1].status()["wakes"].as_u64() > Some(30));
    peers[1].kill();
    peers[1].start();
    until("all have had their wakes", || {
        let mut rest = peers.iter_mut().map(|peer| peer.status());
        rest.all(|status| status["phase"] == "quiet" && status["delivered"] == true)
    });
    assert!(done(place, "peer predict bob bob.csv").lines().count() > 4);
    peers.iter_mut().for_each(Peer::stop);
    let learned: Vec<_> = peers.iter().map(|peer| support::learned(&peer.folder())).collect();
    let (agree, edges) = support::agree(&learned);
    assert!(agree && edges >= 3, "{edges} edges: {learned:?}");
    // Members cannot change on the way: all would have to count them anew.
    done(place, "peer remove ann dan");
    let line = refused(place, "peer predict ann ann.csv");
    assert!(line.contains("cannot change during a task"), "{line}");
}

#[test]
fn private_peers_spend_their_plan_and_keep_a_home_model() {
    let (place, mut peers) = peers(PRIVATE, &["ann", "bob"]);
    let place = place.path();
    let [ann, bob] = &mut peers[..] else { unreachable!() };
    ann.meet(bob, 1.0);
    bob.meet(ann, 1.0);
    ann.start();
    bob.start();
    until_quiet(&mut [ann, bob]);
    let status = ann.status();
    let spent = status["epsilon_spent"].as_f64().expect("a number");
    assert!(spent > 1.9 && spent <= 2.0, "{status}");
    assert!(status["epsilon_left"].as_f64().expect("a number") < 0.1, "{status}");
    done(place, "peer predict ann ann.csv");
    ann.stop();
    bob.stop();
    let predicted = done(place, "peer predict ann ann.csv");
    // The home model and not the broadcast, which is mostly noise.
    let home = read(place, "ann/home.csv");
    let home = [column(&home, 0)[0], column(&home, 1)[0]];
    assert_eq!(predicted.lines().next(), Some("prediction,probability"), "no margin of a home model");
    let probability = column(&predicted, 1)[0];
    let data = read(place, "ann.csv");
    let point = [column(&data, 2)[0], column(&data, 3)[0]];
    let length = point[0].hypot(point[1]).max(1.0);
    let margin = (point[0] * home[0] + point[1] * home[1]) / length;
    assert!((probability - 1.0 / (1.0 + (-margin).exp())).abs() <= 0.005 + 1e-12, "{predicted}");
    let releases: u64 = ann.step().expect("a step").ledger.releases();
    assert_eq!(releases, 3, "the plan and nothing else");
    // Nothing more is ever said.
    ann.start();
    bob.start();
    until_quiet(&mut [ann, bob]);
    assert_eq!(ann.step().expect("a step").ledger.releases(), 3);
}

#[test]
fn a_member_leaves_and_another_comes() {
    let (place, mut peers) = peers(TASK, &["ann", "bob", "cid", "dan"]);
    let place = place.path();
    let [ann, bob, cid, dan] = &mut peers[..] else { unreachable!() };
    for (a, b, weight) in [(&*ann, &*bob, 1.0), (ann, cid, 2.0), (bob, cid, 0.5)] {
        a.meet(b, weight);
        b.meet(a, weight);
    }
    [&mut *ann, bob, cid].into_iter().for_each(Peer::start);
    until_quiet(&mut [ann, bob, cid]);
    check(place, TASK, "ann,bob,1\nann,cid,2\nbob,cid,0.5\n", &[ann, bob, cid]);
    cid.stop();
    // Everyone who knew cid takes it out, and lets dan in.
    for peer in [&mut *ann, bob] {
        peer.stop();
        let file = format!("{}/peer.toml", peer.name);
        let text = read(place, &file);
        let (head, tables) = text.split_once("\n[[neighbours]]").expect("a neighbour");
        let kept = tables.split("\n[[neighbours]]").filter(|table| !table.contains("\"cid\""));
        let kept: String = kept.map(|table| format!("\n[[neighbours]]{table}")).collect();
        write(place, &file, &format!("{head}{kept}"));
        peer.meet(dan, 1.5);
        dan.meet(peer, 1.5);
    }
    [&mut *ann, bob, dan].into_iter().for_each(Peer::start);
    until_quiet(&mut [ann, bob, dan]);
    let all = read(place, "all.csv");
    let left: String = all.lines().filter(|line| !line.starts_with("cid,")).map(|line| format!("{line}\n")).collect();
    write(place, "all.csv", &left);
    check(place, TASK, "ann,bob,1\nann,dan,1.5\nbob,dan,1.5\n", &[ann, bob, dan]);
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    let (folder, mut peers) = peers(TASK, &["ann", "bob"]);
    let place = folder.path();
    let [ann, bob] = &mut peers[..] else { unreachable!() };
    ann.meet(bob, 1.0);
    bob.meet(ann, 1.0);
    let says = |words: &str, expected: &str| {
        let line = refused(place, words);
        assert!(line.contains(expected), "{words}: {line}");
    };
    // At init: nothing is left behind.
    says("peer init new --task absent.toml --agent new --data ann.csv", "absent.toml");
    says("peer init new --task task.toml --agent new --data ann.csv", "rows of agent \"ann\"");
    says("peer init new --task task.toml --agent ann --data ann.csv --listen here", "multiaddress");
    assert!(!place.join("new").exists());
    says("peer init ann --task task.toml --agent ann --data ann.csv", "holds a peer already");
    says("peer start nowhere", "nowhere");
    // The key.
    let secret = ann.folder().join("peer.key");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(secret.metadata().expect("a key").permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).expect("ours");
        says("peer start ann", "chmod 600");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("ours");
    }
    // The port.
    let held = std::net::TcpListener::bind(("127.0.0.1", ann.port())).expect("a free port");
    says("peer start ann", "in use");
    drop(held);
    // The file.
    let good = read(place, "ann/peer.toml");
    for (from, to, expected) in [
        ("agent = \"ann\"", "agnet = \"ann\"", "nearest known key is agent"),
        ("agent = \"ann\"", "agent = \"eve\"", "rows of agent \"ann\""),
        (bob.id.as_str(), "nobody", "the id that its `peer init` prints"),
        (bob.id.as_str(), ann.id.as_str(), "this peer's own"),
        ("ann.csv", "absent.csv", "absent.csv"),
        ("task.toml", "absent.toml", "absent.toml"),
        ("interval = 0.03", "admin = \"0.0.0.0:9\"", "loopback"),
    ] {
        assert!(good.contains(from), "{from}");
        write(place, "ann/peer.toml", &good.replace(from, to));
        says("peer start ann", expected);
    }
    write(place, "ann/peer.toml", &good.replace("interval = 0.03", "pull-limit = 1.0\ninterval = 0.03"));
    write(place, "task.toml", &TASK.replace("coordinate-descent", "model-propagation"));
    says("peer start ann", "pull-limit");
    write(place, "task.toml", &TASK.replace("points-max = 6\n", ""));
    says("peer start ann", "points-max");
    write(place, "task.toml", TASK);
    write(place, "ann/peer.toml", good.split("\n[[neighbours]]").next().expect("a head"));
    says("peer start ann", "nobody to learn with");
    write(place, "ann/peer.toml", &good);
    says("peer remove ann eve", "accepted: bob");
    says("peer add ann bob/card.toml", "listed twice");
    // Now there is a store.
    ann.start();
    bob.start();
    until_quiet(&mut [ann, bob]);
    ann.stop();
    write(place, "task.toml", &TASK.replace("regularization = 0.1", "regularization = 0.2"));
    says("peer start ann", "another task");
    says("peer predict ann ann.csv", "another task");
    write(place, "task.toml", TASK);
    let data = read(place, "ann.csv");
    write(place, "ann.csv", &data.replacen("ann,1", "ann,-1", 1));
    says("peer start ann", "the data have changed");
    write(place, "ann.csv", &data);
    let key = fs::read(&secret).expect("a key");
    fs::copy(bob.folder().join("peer.key"), place.join("other.key")).expect("copied");
    fs::copy(place.join("other.key"), &secret).expect("copied");
    write(place, "ann/peer.toml", &good.replace(&bob.id, &ann.id));
    says("peer start ann", "another key");
    write(place, "ann/peer.toml", &good);
    fs::write(&secret, key).expect("written");
    let log = ann.folder().join("store/store.log");
    let bytes = fs::read(&log).expect("a store");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    fs::write(&log, damaged).expect("written");
    says("peer start ann", "damaged");
    says("peer status ann", "damaged");
    fs::write(&log, &bytes).expect("written");
    // An old backup: the budget knows that the store held more, before anyone is asked.
    ann.start();
    until("ann is back", || {
        let status = ann.status();
        // One that does not run yet is in no phase.
        status["running"] == true && status["phase"] != "asking"
    });
    ann.stop();
    let first = bytes.iter().position(|_| true).map(|_| cut(&bytes)).expect("a store");
    fs::write(&log, first).expect("written");
    let output = sottovoce(place, "peer start ann");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the store was put back"), "{said}");
}

/// The first two records of a store, which is how it looked after its first step: each is followed by its seal.
fn cut(bytes: &[u8]) -> &[u8] {
    let mut end = 0;
    for _ in 0..2 {
        let length = u32::from_le_bytes(bytes[end + 4..end + 8].try_into().expect("four bytes")) as usize;
        end += 16 + length + 32 + 32;
    }
    &bytes[..end]
}
