//! Budgets over tasks: what a source has spent is what was charged, whatever happens to its peers, and a limit holds.

mod support;

use sottovoce_net::book::{look, record_id};
use sottovoce_net::seat::{Beside, instance};
use sottovoce_privacy::{Accountant, Charge, Filter, Ledger, Tight, least_limit};
use sottovoce_task::{load::load, task::Task};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use support::{Peer, done, json, ports, read, refused, sottovoce, until, until_quiet, write};

const BUDGET: &str = "sottovoce-budget";
const DELTA: f64 = 1e-6;

/// Rows of an agent, each of a record of its own; `shift` changes what a row says.
fn rows(agent: &str, ids: impl IntoIterator<Item = usize>, shift: impl Fn(usize) -> f64) -> String {
    let mut text = String::new();
    for k in ids {
        let x = (k as f64 * 0.7).sin() + shift(k);
        let _ =
            writeln!(text, "{agent},{agent}-{k},{},{x:.3},{:.3}", if k % 3 == 0 { 1 } else { -1 }, (k as f64).cos());
    }
    text
}

fn table(rows: &[String]) -> String {
    format!("agent,patient,label,x,y\n{}", rows.concat())
}

fn unnamed(table: &str) -> String {
    let without = |line: &str| {
        line.split(',').enumerate().filter(|(k, _)| *k != 1).map(|(_, field)| field).collect::<Vec<_>>().join(",")
    };
    table.lines().map(|line| without(line) + "\n").collect()
}

fn task(name: &str, train: &str, epsilon: f64) -> String {
    format!(
        "name = \"{name}\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"{train}\"\nrecord = \"patient\"\nnormalize = \"l2\"\n\
         [graph]\nkind = \"complete\"\n[model]\npoints-max = 40\nintercept = true\n\
         [privacy]\nepsilon = {epsilon}\ndelta = {DELTA}\nupdates = 8\nnoise = \"exact\"\n"
    )
}

/// The plan of a task, as anyone can compute it.
fn plan(place: &Path, file: &str) -> Vec<Charge> {
    let loaded = load(&Task::read(&place.join(file)).expect("a task")).expect("a problem");
    loaded.plan.expect("a plan").ledger().charges().map(|charge| Charge::new(charge.event, charge.count)).collect()
}

fn entries(place: &Path) -> usize {
    look(&place.join(BUDGET)).expect("a good book").map_or(0, |(book, _)| book.entries().len())
}

/// Two peers run a task on the rows of a.csv and b.csv, are killed in the middle of it, and come back.
fn killed_and_restarted(place: &Path, folder: &str, file: &str) -> [Peer; 2] {
    let inside = place.join(folder);
    std::fs::create_dir(&inside).expect("a folder");
    let ports = ports(2);
    let peer =
        |name: &str, port| Peer::init(&inside, &format!("../{file}"), name, &format!("../{name}.csv"), port, 0.05);
    let mut peers = [peer("a", ports[0]), peer("b", ports[1])];
    peers[0].meet(&peers[1], 1.0);
    peers[1].meet(&peers[0], 1.0);
    let before = entries(place);
    peers.iter_mut().for_each(Peer::start);
    until("both are charged", || entries(place) == before + 2);
    until("something is released", || {
        peers.iter().all(|peer| peer.step().is_some_and(|step| step.ledger.releases() > 0))
    });
    for round in 0..3 {
        peers.iter_mut().for_each(Peer::kill);
        assert_eq!(entries(place), before + 2, "round {round}");
        peers.iter_mut().for_each(Peer::start);
        std::thread::sleep(Duration::from_millis(40));
    }
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    let source = peers[0].status()["source"].clone();
    assert_eq!(source["tasks"], before + 2, "a restart is not charged again: {source}");
    peers.iter_mut().for_each(Peer::stop);
    let released = peers[0].step().expect("a step").ledger.releases();
    assert_eq!(released, 8, "the whole plan, once");
    peers
}

#[test]
fn three_tasks_two_of_them_killed_come_to_what_each_record_was_told_about() {
    let place = support::folder();
    let place = place.path();
    for agent in ["a", "b"] {
        write(place, &format!("{agent}.csv"), &table(&[rows(agent, 0..20, |_| 0.0)]));
    }
    // Half of the rows are new, and a tenth of the old ones edited: an edited row is no new record.
    let edited = |k: usize| if k == 10 || k == 11 { 0.3 } else { 0.0 };
    write(place, "copy.csv", &table(&["a", "b"].map(|agent| rows(agent, 10..30, edited))));
    write(place, "all.csv", &(read(place, "a.csv") + &rows("b", 0..20, |_| 0.0)));
    write(place, "first.toml", &task("first", "all.csv", 1.0));
    write(place, "second.toml", &task("second", "all.csv", 0.5));
    write(place, "third.toml", &task("third", "copy.csv", 0.7));
    let [mut first, _] = killed_and_restarted(place, "one", "first.toml");
    killed_and_restarted(place, "two", "second.toml");
    done(place, &format!("train third.toml --out run --no-sweep --budget {BUDGET}"));

    let (book, key) = look(&place.join(BUDGET)).expect("a good book").expect("a book");
    assert_eq!(book.entries().len(), 5, "two peers, twice, and one run");
    let [one, two, three] = ["first.toml", "second.toml", "third.toml"].map(|file| plan(place, file));
    for agent in ["a", "b"] {
        for k in 0..30 {
            let old = if k < 20 { [one.clone(), two.clone()].concat() } else { Vec::new() };
            let new = if k >= 10 { three.clone() } else { Vec::new() };
            let direct = Ledger::from_charges([old, new].concat()).expect("valid");
            let found = book.of_record(&record_id(&key, format!("{agent}-{k}").as_bytes()));
            for (found, direct) in [
                (Tight.epsilon(&found, DELTA), Tight.epsilon(&direct, DELTA)),
                (least_limit(&found, DELTA), least_limit(&direct, DELTA)),
            ] {
                assert!((found - direct).abs() < 1e-9 && direct > 0.0, "{agent}-{k}: {found} {direct}");
            }
        }
    }
    let shown = json(place, &format!("privacy budget {BUDGET} --delta {DELTA}"));
    let all = Ledger::from_charges([one, two, three].concat()).expect("valid");
    let most = shown["epsilon_tight"].as_f64().expect("a number");
    assert!((most - Tight.epsilon(&all, DELTA)).abs() < 1e-9, "{shown}");
    assert_eq!(shown["records"].as_array().map(Vec::len), Some(3), "old, in all, new: {shown}");
    let text = done(place, &format!("privacy budget {BUDGET} --delta {DELTA}"));
    assert!(
        text.contains("5 tasks in all") && text.contains("60 records") && text.contains("for the owner's eyes"),
        "{text}"
    );
    assert!(!first.log().contains("source: "), "what records with ids have spent is not for a log: {}", first.log());

    // A log of the store from before the last stamp is noticed, whatever stands beside it.
    let store = first.folder().join("store/store.log");
    let log = std::fs::read(&store).expect("a log");
    std::fs::write(&store, &log[..first_record(&log)]).expect("put back");
    let said = start_refused(&place.join("one"), "a");
    assert!(said.contains("the store was put back: it holds 0 releases, and had 8"), "{said}");
    std::fs::write(&store, &log).expect("as it was");
    // A store that is gone is a new instance, and so is one that lost its instance.
    std::fs::remove_file(first.folder().join("store/store.log")).expect("it was there");
    first.start();
    until("it is charged again", || entries(place) == 6);
    first.kill();
    signed_ledgers(place, &second_peer(place));
}

/// The length of a store's log that has only begun: its first record, and the seal of it.
fn first_record(log: &[u8]) -> usize {
    let payload = u32::from_le_bytes(log[4..8].try_into().expect("four bytes")) as usize;
    4 + 4 + 8 + payload + 32 + 32
}

/// A peer of the second task, as it was left.
fn second_peer(place: &Path) -> String {
    json(&place.join("two"), "peer status a")["key"].as_str().expect("an id").to_owned()
}

fn signed_ledgers(place: &Path, id: &str) {
    done(place, "peer ledger two/a --out signed.jsonl");
    let epsilon = |file: &str| done(place, &format!("privacy epsilon --ledger {file} --delta {DELTA}"));
    assert!(epsilon("signed.jsonl").contains(&format!("Signed by {id}")), "{}", epsilon("signed.jsonl"));
    let shown = json(place, &format!("privacy epsilon --ledger signed.jsonl --delta {DELTA}"));
    assert_eq!(shown["signature"]["key"], *id);
    let text = read(place, "signed.jsonl");
    let (charge, signature) = text.trim_end().rsplit_once('\n').expect("two lines");
    write(place, "bare.jsonl", charge);
    assert!(epsilon("bare.jsonl").contains("Unsigned"));
    for (name, spoiled) in [
        ("less", text.replacen("\"count\":8", "\"count\":7", 1)),
        ("more", format!("{charge}\n{charge}\n{signature}\n")),
        ("none", signature.to_owned()),
        ("task", format!("{charge}\n{}\n", signature.replacen("\"task\":\"", "\"task\":\"0", 1))),
        ("after", format!("{text}{charge}\n")),
    ] {
        assert_ne!(spoiled, text, "{name}");
        write(place, "spoiled.jsonl", &spoiled);
        let said = refused(place, &format!("privacy epsilon --ledger spoiled.jsonl --delta {DELTA}"));
        assert!(said.contains("signature"), "{name}: {said}");
    }
}

/// How many times a limit allows a plan, by the filter alone.
fn allowed(filter: &Filter, plan: &[Charge]) -> usize {
    let ledger = |times| Ledger::from_charges(std::iter::repeat_n(plan, times).flatten().copied()).expect("valid");
    (1..).take_while(|&times| filter.allows(&ledger(times))).last().unwrap_or(0)
}

#[test]
fn at_the_limit_a_task_without_ids_is_refused_and_releases_nothing() {
    let place = support::folder();
    let place = place.path();
    write(place, "all.csv", &unnamed(&table(&["a", "b", "c"].map(|agent| rows(agent, 0..9, |_| 0.0)))));
    write(place, "task.toml", &task("t", "all.csv", 1.0).replace("record = \"patient\"\n", ""));
    done(place, "privacy budget limited --limit-epsilon 2.2 --limit-delta 1e-6");
    let times = allowed(&Filter::new(2.2, 1e-6).expect("a limit"), &plan(place, "task.toml"));
    assert!(times >= 3, "{times}");
    for k in 0..times {
        done(place, &format!("train task.toml --out run-{k} --no-sweep --budget limited"));
    }
    let said = refused(place, "train task.toml --out over --no-sweep --budget limited");
    assert!(said.contains(&format!("{times} tasks have used")) && said.contains("limit of epsilon = 2.2"), "{said}");
    assert!(!place.join("over").exists());
    assert!(refused(place, "network task.toml --out over --budget limited").contains("tasks have used"));
    let shown = json(place, "privacy budget limited");
    assert!(shown["used"].as_f64().is_some_and(|used| used > 0.5 && used <= 1.0), "{shown}");
    assert_eq!(shown["tasks"], times, "who was refused is not charged");
    // Whatever else would go around it.
    let open = task("open", "all.csv", 1.0).replace("record = \"patient\"\n", "");
    write(place, "open.toml", open.split("[privacy]").next().expect("a head"));
    assert!(refused(place, "train open.toml --out over --budget limited").contains("no [privacy]"));
    let other = refused(place, "privacy budget limited --limit-epsilon 9 --limit-delta 1e-6");
    assert!(other.contains("stays"), "{other}");
    assert!(refused(place, "privacy budget nowhere").contains("holds no budget"));
    // A folder that cannot be used.
    write(place, "file", "");
    assert!(refused(place, "train task.toml --out over --budget file").contains("nothing is released"));
    let log = place.join("limited/budget.log");
    let bytes = std::fs::read(&log).expect("a log");
    std::fs::write(&log, &bytes[..bytes.len() / 2]).expect("cut");
    let said = refused(place, "train task.toml --out over --no-sweep --budget limited");
    assert!(said.contains("nothing is released"), "{said}");
}

/// The same three tasks, then a fourth on other data; what it sends, to the bit.
fn fourth(place: &Path, budget: &str, data: &str) -> String {
    done(place, &format!("privacy budget {budget} --limit-epsilon 2.2 --limit-delta 1e-6"));
    for k in 0..3 {
        done(place, &format!("train task.toml --out {budget}-{k} --no-sweep --budget {budget} --force"));
    }
    write(place, "fourth.csv", data);
    write(place, "fourth.toml", &task("fourth", "fourth.csv", 1.0));
    let output = sottovoce(place, &format!("train fourth.toml --out {budget}-4 --no-sweep --budget {budget}"));
    assert!(output.status.success(), "it always starts: {}", String::from_utf8_lossy(&output.stderr));
    read(place, &format!("{budget}-4/models.csv")) + &read(place, &format!("{budget}-4/home.csv"))
}

#[test]
fn rows_over_their_limit_count_and_contribute_nothing() {
    let place = support::folder();
    let place = place.path();
    let agents = ["a", "b", "c"];
    write(place, "all.csv", &table(&agents.map(|agent| rows(agent, 0..9, |_| 0.0))));
    write(place, "task.toml", &task("t", "all.csv", 1.0));
    let filter = Filter::new(2.2, 1e-6).expect("a limit");
    assert_eq!(allowed(&filter, &plan(place, "task.toml")), 3, "the fourth is too much");
    // Five of nine rows are new, four are used up.
    let data = |old: f64, new: f64| table(&agents.map(|agent| rows(agent, 5..14, |k| if k < 9 { old } else { new })));
    let base = fourth(place, "base", &data(0.0, 0.0));
    assert_eq!(fourth(place, "old", &data(0.6, 0.0)), base, "rows that are used up say nothing");
    assert_ne!(fourth(place, "new", &data(0.0, 0.6)), base, "others do");
    let shown = json(place, "privacy budget base");
    assert_eq!((&shown["charged"][3]["void"], &shown["charged"][3]["records"]), (&12.into(), &15.into()), "{shown}");
    assert!(shown["used"].as_f64().is_some_and(|used| used <= 1.0), "{shown}");
}

/// The line with which a peer that may not start ends.
fn start_refused(place: &Path, name: &str) -> String {
    let output = sottovoce(place, &format!("peer start {name}"));
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    said.lines().last().unwrap_or_default().to_owned()
}

/// A peer whose neighbour never answers, on rows without ids.
fn lonely(place: &Path) -> Peer {
    for agent in ["a", "b"] {
        write(place, &format!("{agent}.csv"), &unnamed(&table(&[rows(agent, 0..9, |_| 0.0)])));
    }
    write(place, "task.toml", &task("t", "a.csv", 1.0).replace("record = \"patient\"\n", ""));
    let ports = ports(2);
    let [peer, other] = [("a", 0), ("b", 1)]
        .map(|(name, k)| Peer::init(place, "task.toml", name, &format!("{name}.csv"), ports[k], 0.05));
    peer.meet(&other, 1.0);
    peer
}

fn beside(peer: &Peer) -> Option<Beside> {
    instance(&peer.folder().join("store")).expect("readable")
}

/// Starts it, and waits until it may release something.
fn start(peer: &mut Peer) {
    let door = peer.folder().join("admin.json");
    // Of a process that was killed.
    drop(std::fs::remove_file(&door));
    peer.start();
    until("it runs", || door.exists());
    assert!(matches!(beside(peer), Some(Beside::Bound(_))));
}

fn start_and_kill(peer: &mut Peer) {
    start(peer);
    peer.kill();
}

#[test]
fn a_start_that_fails_after_its_charge_is_not_charged_again_and_a_deleted_store_is() {
    let place = support::folder();
    let place = place.path();
    let mut peer = lonely(place);
    let store = peer.folder().join("store");
    // One task is within the limit, two are not.
    let plan = plan_of_peer(&peer);
    let limit = least_limit(&Ledger::from_charges(plan.clone()).expect("valid"), DELTA) * 1.1;
    assert_eq!(allowed(&Filter::new(limit, DELTA).expect("a limit"), &plan), 1);
    done(place, &format!("privacy budget {BUDGET} --limit-epsilon {limit} --limit-delta {DELTA}"));
    // The charge is safe, and the store's first record cannot be.
    std::fs::create_dir_all(store.join("store.log.new")).expect("a folder");
    for round in 0..2 {
        let said = start_refused(place, "a");
        assert!(said.contains("store"), "{said}");
        assert_eq!(entries(place), 1, "round {round}: charged once");
        assert!(matches!(beside(&peer), Some(Beside::Pending(_))), "nothing was released");
    }
    std::fs::remove_dir(store.join("store.log.new")).expect("it is empty");
    for _ in 0..2 {
        start_and_kill(&mut peer);
        assert_eq!(entries(place), 1, "{}", peer.log());
    }
    // Whoever deletes the store of an instance that may have released something begins a new one.
    std::fs::remove_file(store.join("store.log")).expect("it was there");
    let said = start_refused(place, "a");
    assert!(said.contains("1 tasks have used") || said.contains("1 task has used"), "{said}");
}

/// Copies the folder of a peer, as `cp -r` does.
fn copy(place: &Path, from: &str, to: &str) {
    let copied = std::process::Command::new("cp").current_dir(place).args(["-r", from, to]).status();
    assert!(copied.expect("cp runs").success());
}

/// Store and instance are copied together, and both copies draw noise of their own: of all of them one alone may go on.
#[test]
fn a_copied_folder_releases_nothing_under_the_charge_of_the_original() {
    let place = support::folder();
    let place = place.path();
    let mut peer = lonely(place);
    start(&mut peer);
    copy(place, "a", "beside");
    let said = start_refused(place, "beside");
    assert!(said.contains("another process runs this peer, or a copy of its folder"), "{said}");
    // It was killed: it goes on, and what was copied before does not.
    peer.kill();
    start_and_kill(&mut peer);
    let said = start_refused(place, "beside");
    assert!(said.contains("is a copy, or was put back") && said.contains("accepted"), "{said}");
    // Ended as it should be: also a copy from before its end is an old one.
    start(&mut peer);
    copy(place, "a", "running");
    peer.stop();
    assert!(start_refused(place, "running").contains("is a copy, or was put back"));
    // Whoever is moved, or comes back from a backup that is as new, goes on; then it is the original.
    copy(place, "a", "moved");
    let mut moved = peer.copied("moved");
    start(&mut moved);
    moved.stop();
    assert!(start_refused(place, "a").contains("is a copy, or was put back"));
    assert_eq!(entries(place), 1, "charged once, and nobody else has released anything");
}

/// The plan of a peer's task, as it charges it.
fn plan_of_peer(peer: &Peer) -> Vec<Charge> {
    let file = sottovoce_run::peer::PeerFile::read(&peer.folder()).expect("a peer file");
    let one = sottovoce_run::peer::load(&file).expect("a peer");
    let (plan, _) = sottovoce_run::budget::charge(&one.loaded).expect("something to tell");
    plan.charges().copied().collect()
}

#[test]
fn an_instance_of_other_rows_is_charged_and_changed_data_are_refused_before_it_is() {
    let place = support::folder();
    let place = place.path();
    let mut peer = lonely(place);
    let store = peer.folder().join("store");
    std::fs::create_dir_all(store.join("store.log.new")).expect("a folder");
    start_refused(place, "a");
    let data = read(place, "a.csv");
    write(place, "a.csv", &(data.clone() + "a,1,0.5,0.5\n"));
    start_refused(place, "a");
    assert_eq!(entries(place), 2, "one more row is another charge");
    std::fs::remove_dir(store.join("store.log.new")).expect("it is empty");
    start_and_kill(&mut peer);
    assert_eq!(entries(place), 2);
    // A store that has lost its instance is charged again, but not for data with which it does not start.
    std::fs::remove_file(store.join("instance")).expect("it was there");
    write(place, "a.csv", &data);
    assert!(start_refused(place, "a").contains("the data have changed"));
    assert_eq!(entries(place), 2, "who is refused is not charged");
    write(place, "a.csv", &(data + "a,1,0.5,0.5\n"));
    start_and_kill(&mut peer);
    assert_eq!(entries(place), 3);
}

#[test]
fn a_store_whose_budget_is_gone_is_refused_for_what_it_is() {
    let place = support::folder();
    let place = place.path();
    let mut peer = lonely(place);
    start_and_kill(&mut peer);
    std::fs::rename(place.join(BUDGET), place.join("moved")).expect("it was there");
    let both = |said: String| {
        assert!(said.contains("charged to a budget that is not in") && said.contains("accepted"), "{said}");
        assert!(said.contains(BUDGET) && !said.contains("the data have changed"), "{said}");
    };
    both(start_refused(place, "a"));
    both(refused(place, "peer status a"));
    both(refused(place, "peer predict a a.csv"));
    assert!(!place.join(BUDGET).exists(), "no new one is made");
    // Nor does another one do.
    done(place, &format!("privacy budget {BUDGET} --limit-epsilon 1 --limit-delta 1e-6"));
    both(start_refused(place, "a"));
    assert_eq!(entries(place), 0);
    let file = read(place, "a/peer.toml");
    write(place, "a/peer.toml", &format!("budget = \"../moved\"\n{file}"));
    start_and_kill(&mut peer);
    assert_eq!(look(&place.join("moved")).expect("good").map(|(book, _)| book.entries().len()), Some(1));
}

#[test]
fn a_budget_is_not_inside_what_is_replaced_and_one_beside_the_data_is_charged() {
    let place = support::folder();
    let place = place.path();
    write(place, "all.csv", &table(&["a", "b"].map(|agent| rows(agent, 0..9, |_| 0.0))));
    write(place, "task.toml", &task("t", "all.csv", 1.0));
    std::fs::create_dir(place.join("there")).expect("a folder");
    std::os::unix::fs::symlink("net", place.join("link")).expect("a link");
    for (command, budget) in
        [("train", "net"), ("train", "there/../net/x"), ("network", "net/peers/x"), ("network", "net/no/../y")]
    {
        let said = refused(place, &format!("{command} task.toml --out net --force --budget {budget}"));
        assert!(said.contains("inside the output folder net") && said.contains("accepted"), "{said}");
        assert!(!place.join("net").exists(), "nothing was charged");
    }
    let run = "network task.toml --out net --force --interval 0.05 --time-limit 1";
    let said = done(place, run);
    assert!(said.contains("Source: not charged") && said.contains("net/peers"), "{said}");
    let said = refused(place, "network task.toml --out net --force --budget link/peers/x");
    assert!(said.contains("inside the output folder"), "{said}");
    let said = done(place, &format!("train task.toml --out run --no-sweep --budget {BUDGET}"));
    assert!(said.contains(&format!("new budget folder {BUDGET}")), "{said}");
    let said = done(place, &format!("train task.toml --out run --no-sweep --force --budget {BUDGET}"));
    assert!(!said.contains("new budget folder"), "{said}");
    let said = done(place, run);
    assert!(said.contains("the budget folder beside the data"), "{said}");
    assert_eq!(entries(place), 3, "the source is charged once for all peers");
}
