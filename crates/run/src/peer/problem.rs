//! From a peer's file to a problem with one agent's data.

use super::file::{Neighbour, PeerFile};
use sha2::{Digest as _, Sha256};
use sottovoce_algorithms::{Problem, Shard};
use sottovoce_core::{Graph, PeerId};
use sottovoce_privacy::Plan;
use sottovoce_task::data;
use sottovoce_task::error::{Mistake, quote};
use sottovoce_task::known::Known;
use sottovoce_task::load::{Loaded, in_its_own_features};
use sottovoce_task::rows::{At, Names, Place};
use sottovoce_task::task::{GraphSource, Leaves, Points, Schedule, Task, Test, Unit, Yields};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A SHA-256.
pub type Digest = [u8; 32];

/// One agent of a task, and nobody else's data.
#[derive(Clone, Debug)]
pub struct PeerTask {
    /// The task, this agent's data and the star of its edges; all pairs, where the graph is learned. Its plan is this agent's.
    pub loaded: Loaded,
    /// This agent, among itself and its neighbours in the order of their names.
    pub me: PeerId,
    /// Of everything that the task has all peers agree on.
    pub task: Digest,
    /// Of the task and, where the graph is learned, of all members' names: who differs in it cannot talk with this peer.
    pub common: Digest,
    /// Of this agent's points.
    pub data: Digest,
}

impl PeerTask {
    /// What this agent has.
    pub fn shard(&self) -> Shard<'_> {
        self.loaded.problem.shard(self.me)
    }

    /// How many points it tells that it has. Where all of an agent may be replaced, how many rows it has is its own business.
    pub fn points(&self) -> u64 {
        match self.loaded.task.privacy.map(|privacy| privacy.unit) {
            Some(Unit::Agent) => 1,
            _ => self.shard().points.len() as u64,
        }
    }
}

/// A peer's task, with its own files of points.
pub fn own_task(file: &PeerFile) -> Result<Task, Mistake> {
    let mut task = Task::read(&file.task)?;
    check_task(&task)?;
    let points = |file: &Path| Points { file: file.into(), agents: None };
    task.data.train = points(&file.data);
    task.data.test = file.test.as_deref().map_or(Test::Absent, |test| Test::File(points(test)));
    Ok(task)
}

/// Reads a peer's task and its own data.
pub fn load(file: &PeerFile) -> Result<PeerTask, Mistake> {
    load_without(file, &|_| false)
}

/// The same without what the rows of some records say: their ids are told to be void.
pub fn load_without(file: &PeerFile, is_void: &dyn Fn(&[u8]) -> bool) -> Result<PeerTask, Mistake> {
    let task = own_task(file)?;
    let mut numbers = Names::default();
    let source = file.source.clone().into();
    let here = At { file: &source, place: Place::Line(1) };
    numbers.number(file.agent.as_bytes(), here)?;
    let mut raw = data::read_own(&task, &mut numbers)?;
    raw.make_void(is_void);
    if numbers.len() > 1 {
        let (own, other) = (quote(file.agent.as_bytes()), quote(numbers.name(1).as_bytes()));
        let what = format!("rows of agent {other}, which are not this peer's; accepted: rows of agent {own} only");
        let from = if raw.train.owners.contains(&1) { &file.data } else { file.test.as_ref().unwrap_or(&file.data) };
        return Err(Mistake::file(from, what));
    }
    let mut edges = Vec::new();
    for neighbour in &file.neighbours {
        edges.push((0, numbers.number(neighbour.agent.as_bytes(), here)?, neighbour.weight));
    }
    let (names, place) = numbers.sorted();
    let prepared = data::prepare(raw, &task, &names, &place);
    edges.iter_mut().for_each(|(a, b, _)| (*a, *b) = (place[*a as usize], place[*b as usize]));
    let refused = |error: &dyn std::fmt::Display| Mistake::file(&file.source, error.to_string());
    let graph = match lists_everyone(&task) {
        true => {
            check_roster(file, &task)?;
            Graph::complete(names.len()).map_err(|error| refused(&error))?
        }
        false => Graph::from_edges(names.len(), &edges).map_err(|error| refused(&error))?,
    };
    let me = PeerId(place[0]);
    let loaded = Loaded::assemble(task, names, prepared, graph, Known::default())?;
    // Of the points themselves: boosting puts what stumps say in their place.
    let own = digest_of_data(&loaded.problem, me);
    let agreed = digest_of_task(&loaded.task, &loaded.feature_names);
    let common = if lists_everyone(&loaded.task) { digest_of_members(&agreed, &loaded.names) } else { agreed };
    Ok(PeerTask { loaded: in_its_own_features(loaded), me, task: agreed, common, data: own })
}

/// Whether the members find out by themselves who learns with whom.
pub fn is_learned(task: &Task) -> bool {
    matches!(task.graph.source, GraphSource::Learned(_))
}

/// Whether each peer lists all members: they find out by themselves who learns with whom, or each of them writes to all.
pub fn lists_everyone(task: &Task) -> bool {
    is_learned(task) || task.algorithm.everyone
}

/// Where everyone is listed, a peer file lists all members, and weights are not its business.
fn check_roster(file: &PeerFile, task: &Task) -> Result<(), Mistake> {
    match file.neighbours.iter().find(|member| member.weight != 1.0) {
        None => Ok(()),
        Some(Neighbour { agent, weight, .. }) => {
            let what = format!(
                "neighbours.weight of {} is {weight}, and {}: 1, or no weight",
                quote(agent.as_bytes()),
                match task.algorithm.everyone {
                    true => format!("{} has no weights; accepted", task.algorithm.name),
                    false => "the task learns its weights; accepted with kind = \"learned\"".to_owned(),
                }
            );
            Err(Mistake::file(&file.source, what))
        }
    }
}

/// What a peer needs to know that a simulator finds out by looking at everyone.
pub fn check_task(task: &Task) -> Result<(), Mistake> {
    let refuse = |what: &str| Err(Mistake::file(&task.source, what));
    if !task.faults.is_none() {
        return refuse("[faults] is for the simulator; accepted for peers: a task without [faults]");
    }
    if task.privacy.is_some_and(|privacy| privacy.schedule != Schedule::Uniform) {
        return refuse(
            "privacy.schedule needs to know everyone's data sizes and edges, which no peer does; accepted for peers: \
             schedule = \"uniform\"",
        );
    }
    let Some(refuses) = task.algorithm.on_peers else {
        return refuse(&format!("{} runs in the simulator alone", task.algorithm.name));
    };
    if let Some(what) = refuses(task) {
        return refuse(what);
    }
    if task.model.points_max.is_none() && task.algorithm.yields == Yields::ModelPerAgent {
        return refuse(
            "model.points-max is missing, and no peer knows the largest number of points; accepted for peers: \
             model.points-max = a number that all agree on",
        );
    }
    Ok(())
}

fn digest_of_task(task: &Task, feature_names: &[String]) -> Digest {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(b"sottovoce task 1");
    part(task.agreed().as_bytes());
    feature_names.iter().for_each(|name| part(name.as_bytes()));
    hash.finalize().into()
}

/// Members are numbered in the order of their names, so all must list the same.
fn digest_of_members(task: &Digest, names: &[String]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(task);
    for name in names {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
    }
    hash.finalize().into()
}

fn digest_of_data(problem: &Problem, me: PeerId) -> Digest {
    let mut hash = Sha256::new();
    hash.update((problem.dimension() as u64).to_le_bytes());
    for (x, y) in problem.data.points(me).iter() {
        hash.update(y.to_le_bytes());
        x.iter().for_each(|x| hash.update(x.to_le_bytes()));
    }
    hash.finalize().into()
}

/// A digest as text.
pub fn hex(digest: &Digest) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl PeerTask {
    /// What this agent may release; none without privacy. One that has nothing to tell, or nobody to tell it to, releases nothing.
    pub fn plan(&self) -> Option<Arc<Plan>> {
        let problem = &self.loaded.problem;
        let silent = problem.data.size(self.me) == 0 || problem.graph.peers(self.me).is_empty();
        self.loaded.plan.as_ref().map(|plan| if silent { Arc::new(Plan::nothing()) } else { plan.clone() })
    }

    /// After how many wakes it only listens. With a tolerance it stays awake; a private peer follows its plan, and where the graph is
    /// learned too, the turns that the plan is made for.
    pub fn wakes_max(&self) -> Option<u64> {
        let task = &self.loaded.task;
        task.counts_wakes().then_some(task.run.wakes_per_agent)
    }

    /// How many neighbours must tell what they saw before anything new is said, where its file does not say. A post is told to all
    /// neighbours, so any of them can tell whether a store is old. A letter is known to one: a private peer that writes them asks all.
    pub fn witnesses(&self, file: &PeerFile) -> usize {
        let task = &self.loaded.task;
        let algorithm = task.algorithm;
        let writes = lists_everyone(task) || algorithm.in_rounds || algorithm.leaves == Leaves::Rows;
        let by_letters = task.privacy.is_some() && writes;
        file.witnesses.unwrap_or(if by_letters { file.neighbours.len() } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Detail;
    use sottovoce_task::private_rows::Rule;
    use std::fs;

    const TASK: &str = "name = \"t\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"nowhere.csv\"\n[graph]\nkind = \"ring\"\n\
                        [model]\npoints-max = 5\n[run]\ntolerance = 1e-6\n";
    const PEER: &str = "task = \"task.toml\"\nagent = \"bob\"\ndata = \"data.csv\"\n[[neighbours]]\nagent = \"cid\"\nkey = \"c\"\n\
                        [[neighbours]]\nagent = \"ann\"\nkey = \"a\"\nweight = 3\n";
    const DATA: &str = "agent,label,x,y\nbob,1,0.5,1\nbob,-1,0.25,0\n";

    fn loaded(task: &str, peer: &str, data: &str) -> Result<PeerTask, Mistake> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("task.toml", task), ("peer.toml", peer), ("data.csv", data)] {
            fs::write(folder.path().join(name), text).expect("written");
        }
        load(&PeerFile::read(folder.path())?)
    }

    #[test]
    fn a_peer_is_the_middle_of_a_star_and_has_its_own_rows_only() {
        let one = loaded(TASK, PEER, DATA).expect("good");
        assert_eq!((one.loaded.names.join(" ").as_str(), one.me), ("ann bob cid", PeerId(1)));
        let edges: Vec<_> = one.loaded.problem.graph.peers(one.me).iter().map(|e| (e.peer.0, e.weight)).collect();
        assert_eq!(edges, [(0, 3.0), (2, 1.0)]);
        assert_eq!(one.shard().points.len(), 2);
        let empty = loaded(TASK, PEER, "agent,label,x,y\n").expect("an agent may have no data");
        assert_eq!((empty.shard().points.len(), empty.task), (0, one.task));
        let said = loaded(TASK, PEER, &DATA.replace("bob,-1", "ann,-1")).expect_err("foreign rows").to_string();
        assert!(said.contains("rows of agent \"ann\"") && said.contains("\"bob\" only"), "{said}");
    }

    #[test]
    fn the_digest_of_a_task_is_about_what_all_agree_on_and_nothing_else() {
        let digest = |task: &str, peer: &str, data: &str| loaded(task, peer, data).expect("good").task;
        let base = digest(TASK, PEER, DATA);
        for (from, to) in [
            ("nowhere.csv", "elsewhere.csv"),
            ("kind = \"ring\"", "kind = \"complete\"\nallow-isolated = true"),
            ("tolerance = 1e-6", "tolerance = 1e-6\nseed = 7\nwakes-per-agent = 9\nclock = \"poisson\""),
        ] {
            assert_eq!(digest(&TASK.replace(from, to), PEER, DATA), base, "{to} is local");
        }
        assert_eq!(digest(TASK, &PEER.replace("weight = 3", "weight = 4"), &DATA.replace("0.25", "0.5")), base);
        for (from, to) in [
            ("name = \"t\"", "name = \"u\""),
            ("points-max = 5", "points-max = 6"),
            ("points-max = 5", "points-max = 5\ntrade-off = 2"),
            ("points-max = 5", "points-max = 5\nintercept = true"),
            ("points-max = 5", "points-max = 5\nstart = \"zero\""),
            ("tolerance = 1e-6", "tolerance = 1e-7"),
            ("train = ", "normalize = \"l2\"\ntrain = "),
            ("coordinate-descent", "model-propagation"),
        ] {
            assert!(TASK.contains(from), "{from}");
            assert_ne!(digest(&TASK.replace(from, to), PEER, DATA), base, "{to} is agreed");
        }
        assert_ne!(digest(TASK, PEER, &DATA.replace("x,y", "y,x")), base, "features have their order");
        let private = TASK.replace("tolerance = 1e-6", "") + "[privacy]\nepsilon = 1\ndelta = 1e-6\n";
        let private = private.replace("train = ", "normalize = \"l2\"\ntrain = ");
        let with = |line: &str| digest(&format!("{private}{line}\n"), PEER, DATA);
        assert_eq!(with("noise = \"exact\""), with(""), "a peer's noise is always exact");
        assert_ne!(with("updates = 2"), with(""));
    }

    /// The same peer in a network whose graph is learned.
    fn meeting() -> (String, String) {
        let task =
            TASK.replace("kind = \"ring\"", "kind = \"learned\"").replace("tolerance = 1e-6", "wakes-per-agent = 9");
        (task, PEER.replace("weight = 3\n", ""))
    }

    #[test]
    fn where_the_graph_is_learned_everyone_is_a_neighbour_and_all_list_the_same_members() {
        let (task, peer) = meeting();
        let one = loaded(&task, &peer, DATA).expect("good");
        assert!(matches!(one.loaded.problem.graph, Graph::Complete { n: 3 }));
        assert_eq!(one.me, PeerId(1), "numbered by name");
        let fewer = loaded(&task, peer.split("[[").next().expect("a head"), DATA).expect("alone");
        assert_eq!(fewer.task, one.task, "the task is the same");
        assert_ne!(fewer.common, one.common, "the members are not");
        let other = loaded(&task, &peer.replace("\"cid\"", "\"dan\""), DATA).expect("good");
        assert_ne!(other.common, one.common);
        // Another member lists this one, and has the same in common.
        let ann = peer.replace("agent = \"ann\"", "agent = \"?\"").replace("bob", "ann").replace('?', "bob");
        let ann = loaded(&task, &ann, &DATA.replace("bob", "ann")).expect("good");
        assert_eq!((ann.common, ann.me), (one.common, PeerId(0)));
        let said = loaded(&task, PEER, DATA).expect_err("a weight").to_string();
        assert!(said.contains("neighbours.weight of \"ann\" is 3") && said.contains("accepted"), "{said}");
        let known = loaded(TASK, PEER, DATA).expect("good");
        assert_eq!(known.common, known.task, "neighbours that are agreed pairwise are nobody else's business");
    }

    #[test]
    fn how_a_graph_is_learned_is_agreed_and_what_it_is_compared_with_is_not() {
        let (task, peer) = meeting();
        let digest = |kind: &str| {
            let task = task.replace("kind = \"learned\"", &format!("kind = \"learned\"\n{kind}"));
            loaded(&task, &peer, DATA).expect("good").task
        };
        for local in ["oracle = \"o.csv\"", "groups = \"g.csv\"", "allow-isolated = true"] {
            assert_eq!(digest(local), digest(""), "{local}");
        }
        for agreed in [
            "sample = 3",
            "sparsity = 2",
            "strength = 2",
            "first-wakes = 1",
            "model-wakes = 1",
            "graph-wakes = 1",
            "model-step = \"newton\"",
        ] {
            assert_ne!(digest(agreed), digest(""), "{agreed}");
        }
    }

    /// The same peer where models and graph are learned together, privately.
    fn private_meeting(graph: &str, privacy: &str) -> (String, String) {
        let (task, peer) = meeting();
        let task = task.replace("kind = \"learned\"", &format!("kind = \"learned\"\n{graph}"));
        let task = task.replace("train = ", "normalize = \"l2\"\ntrain = ");
        (task.replace("-agent = 9", "-agent = 900") + "[privacy]\nepsilon = 1\ndelta = 1e-6\n" + privacy, peer)
    }

    /// What `crates/privacy/proofs/private-graph.md` takes to be public is the same for everyone who can talk with this peer, and for
    /// every store that it can use.
    #[test]
    fn everything_public_of_a_private_graph_is_agreed() {
        let load = |task: &str, peer: &str| loaded(task, peer, DATA).unwrap_or_else(|mistake| panic!("{mistake}"));
        let digest = |graph: &str, privacy: &str| {
            let (task, peer) = private_meeting(graph, privacy);
            load(&task, &peer).task
        };
        let base = digest("", "");
        for agreed in
            ["sample = 3", "sparsity = 2", "strength = 2", "first-wakes = 1", "model-wakes = 9", "graph-wakes = 9"]
        {
            assert_ne!(digest(agreed, ""), base, "{agreed}");
        }
        for agreed in [
            "losses = false",
            "losses = { bound = 3 }",
            "losses = { share = 0.3 }",
            "mechanism = \"laplace\"",
            "updates = 2",
            "clip = 0.5",
            "accountant = \"sum\"",
        ] {
            assert_ne!(digest("", agreed), base, "{agreed}");
        }
        for (from, to) in [("epsilon = 1\n", "epsilon = 2\n"), ("1e-6", "1e-7"), ("-agent = 900", "-agent = 901")] {
            let (task, peer) = private_meeting("", "");
            assert!(task.contains(from), "{from}");
            assert_ne!(load(&task.replace(from, to), &peer).task, base, "{to}");
        }
        assert_eq!(digest("", "noise = \"exact\""), base, "a peer's noise is always exact");
    }

    #[test]
    fn a_private_peer_that_learns_its_graph_follows_its_turns_and_asks_all_who_may_have_seen_more() {
        let (task, peer) = private_meeting("", "");
        let one = loaded(&task, &peer, DATA).expect("good");
        assert_eq!(one.wakes_max(), Some(900));
        let (steps, asides) = one.plan().map(|plan| (plan.steps().len(), plan.asides().len())).expect("a plan");
        // 20, then 22 and 100 by turns: turns of the graph begin at 42, 164, .., 896.
        assert_eq!((steps, asides), (1, 8));
        let empty = loaded(&task, &peer, "agent,label,x,y\n").expect("good");
        assert_eq!(empty.plan().map(|plan| plan.releases()), Some(0), "without data there is nothing to tell");
        let file = |text: &str| PeerFile::parse(text, Path::new("/p/peer.toml")).expect("a peer file");
        assert_eq!((one.witnesses(&file(&peer)), one.witnesses(&file(&format!("witnesses = 1\n{peer}")))), (2, 1));
        let known = loaded(TASK, PEER, DATA).expect("good");
        assert_eq!((known.witnesses(&file(PEER)), known.wakes_max()), (1, None));
    }

    #[test]
    fn boosting_over_an_agreed_range_says_what_everyones_stumps_would() {
        let (task, peer) = meeting();
        let task = task.replace("coordinate-descent", "frank-wolfe") + "[boosting]\npredictors = 4\nrange = [-1, 1]\n";
        let one = loaded(&task, &peer, DATA).expect("good");
        assert_eq!(one.loaded.problem.dimension(), 4);
        let said = |row: usize| one.shard().points.iter().nth(row).expect("a row").0.to_vec();
        // Thresholds 0 and 1 of each feature; x = 0.5, y = 1, then x = 0.25, y = 0.
        assert_eq!((said(0), said(1)), (vec![-1.0, 1.0, -1.0, 1.0], vec![-1.0, 1.0, 1.0, 1.0]));
        let folder = tempfile::tempdir().expect("a folder");
        let rows = folder.path().join("rows.csv");
        fs::write(&rows, "y,x\n1,0.5\n0,0.25\n").expect("written");
        let (text, _) = one.predictions(&[1.0, 2.0, 4.0, 8.0], one.detail(), &rows).expect("predictions");
        assert_eq!(text, "prediction,probability,margin\n1,0.99,5\n1,1.00,13\n", "through the same stumps");
        let wider = loaded(&task.replace("[-1, 1]", "[-1, 2]"), &peer, DATA).expect("good");
        assert_ne!(wider.task, one.task, "the range is agreed");
    }

    #[test]
    fn a_private_model_answers_every_row_that_it_could_have_been_trained_on() {
        let private = TASK.replace("tolerance = 1e-6", "").replace("train = ", "normalize = \"l2\"\ntrain = ")
            + "[privacy]\nepsilon = 1\ndelta = 1e-6\n";
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("rows.csv");
        fs::write(&file, "y,x\n1,NA\n1,0\ntext,\n0,0\n1\n1,0,9\n1e999,0\n").expect("written");
        let one = loaded(&private, PEER, DATA).expect("good");
        let model = [4.0, -2.0];
        let (text, moved) = one.predictions(&model, Detail::Exact, &file).expect("predictions");
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines.len(), 7, "{text}");
        // What is no number is 0, as in training, and so is what is missing.
        assert_eq!([lines[0], lines[4], lines[5]], [lines[1]; 3], "{text}");
        assert_eq!([lines[2], lines[6]], [lines[3]; 2], "{text}");
        let rules: Vec<Rule> = moved.expect("a private task").counts().map(|(rule, _)| rule).collect();
        assert_eq!(rules, [Rule::Feature, Rule::Short, Rule::Long]);
        let open = loaded(TASK, PEER, DATA).expect("good");
        let said = open.predictions(&model, Detail::Exact, &file).expect_err("a strict reader").to_string();
        assert!(said.contains("accepted: a finite number"), "{said}");
        fs::write(&file, "y,z\n1,1\n").expect("written");
        let said = one.predictions(&model, Detail::Exact, &file).expect_err("another feature").to_string();
        assert!(said.contains("line 1: column \"z\" is no feature of the task"), "{said}");
    }

    #[test]
    fn other_data_have_another_digest() {
        let base = loaded(TASK, PEER, DATA).expect("good").data;
        assert_ne!(loaded(TASK, PEER, &DATA.replace("0.25", "0.26")).expect("good").data, base);
        assert_ne!(loaded(TASK, PEER, &DATA.replace("bob,1", "bob,-1")).expect("good").data, base);
    }

    #[test]
    fn what_no_peer_can_know_must_be_said() {
        let boosted = TASK.replace("coordinate-descent", "frank-wolfe").replace("tolerance = 1e-6", "");
        let range = "[boosting]\nrange = [0, 1]\n";
        loaded(&format!("{boosted}{range}"), PEER, DATA).expect("boosting over a known graph");
        loaded(&format!("{boosted}[boosting]\npredictors = \"columns\"\n"), PEER, DATA).expect("columns need no range");
        for (task, says) in [
            (boosted.clone(), "boosting.range"),
            (format!("{boosted}{range}step = \"global-clock\"\n"), "local-clock"),
            (boosted.replace("[run]\n", "[run]\ntolerance = 1e-3\n") + range, "wakes-per-agent"),
        ] {
            let said = loaded(&task, PEER, DATA).expect_err(says).to_string();
            assert!(said.contains(says) && said.contains("accepted for peers"), "{said}");
        }
        for (from, to, says) in [
            ("points-max = 5", "", "points-max"),
            ("[run]\n", "[faults]\nloss = 0.1\n[run]\n", "[faults]"),
            ("coordinate-descent", "admm", "admm.penalty"),
            (
                "[run]\ntolerance = 1e-6\n",
                "[privacy]\nepsilon = 1\ndelta = 1e-6\nschedule = \"corrected\"\nupdates = 3\n",
                "uniform",
            ),
        ] {
            let task = TASK.replace(from, to).replace("train = ", "normalize = \"l2\"\ntrain = ");
            let said = loaded(&task, PEER, DATA).expect_err(to).to_string();
            assert!(said.contains(says) && said.contains("accepted for peers"), "{said}");
        }
    }
}
