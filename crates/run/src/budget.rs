//! What a run of a task is charged to the source of its data: its plan, and the rows that are in it.

use sottovoce_core::PeerId;
use sottovoce_privacy::{Charge, Event, Ledger, odometer};
use sottovoce_report::plot::number::count;
use sottovoce_task::load::Loaded;
pub use sottovoce_task::loaded::Void;
use sottovoce_task::task::Leaves;
use std::collections::{BTreeMap, BTreeSet};

/// The rows about which a run may release something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargedRows {
    /// They have no ids; there are so many.
    Unnamed(u64),
    /// How many rows each id has. An id that is empty is one like others: all rows without an id are one record.
    Named(BTreeMap<Box<[u8]>, u64>),
}

/// The void records among the rows about which a run may release something; none where no record is void.
pub fn void_of(loaded: &Loaded, is_void: impl Fn(&[u8]) -> bool) -> Option<Void> {
    let (_, ChargedRows::Named(all)) = charge(loaded)? else { return None };
    let void: Vec<u64> = all.iter().filter(|(id, _)| is_void(id)).map(|(_, rows)| *rows).collect();
    (!void.is_empty()).then(|| Void {
        records: void.len() as u64,
        records_of: all.len() as u64,
        rows: void.iter().sum(),
        rows_of: all.values().sum(),
    })
}

/// Such as "3 of 12 records (7 rows) are over their limit and say nothing".
pub fn void_in_words(void: Void) -> String {
    let one = |number: u64, word: &str| if number == 1 { word.to_owned() } else { format!("{word}s") };
    let (are, say) = if void.records == 1 { ("is over its", "says") } else { ("are over their", "say") };
    let (records, rows) = (one(void.records_of, "record"), one(void.rows, "row"));
    let (some, all) = (count(void.records), count(void.records_of));
    format!("{some} of {all} {records} ({} {rows}) {are} limit and {say} nothing", count(void.rows))
}

/// What a run may release about each of its rows, all of it; and these rows: the training points of agents that have a neighbour.
/// None where nothing can be released.
pub fn charge(loaded: &Loaded) -> Option<(Ledger, ChargedRows)> {
    let plan = match (&loaded.plan, loaded.task.algorithm.leaves) {
        (_, Leaves::Nothing) => return None,
        (Some(plan), _) => odometer::bare(plan.ledger().charges().copied()).expect("a plan's charges are valid"),
        // PRIVACY: without [privacy] exact values leave: epsilon = infinity.
        (None, _) => Ledger::from_charges([Charge::new(Event::Reveal, 1)]).expect("a valid charge"),
    };
    let problem = &loaded.problem;
    let tells = |id: &PeerId| problem.data.size(*id) > 0 && !problem.graph.peers(*id).is_empty();
    let agents = (0..problem.agents() as u32).map(PeerId).filter(tells);
    let rows = match &loaded.records {
        None => ChargedRows::Unnamed(agents.map(|id| problem.data.size(id) as u64).sum()),
        Some(records) => {
            let mut named: BTreeMap<Box<[u8]>, u64> = BTreeMap::new();
            for id in agents.flat_map(|id| &records[id.index()]) {
                *named.entry(id.clone()).or_default() += 1;
            }
            ChargedRows::Named(named)
        }
    };
    let is_empty = match &rows {
        ChargedRows::Unnamed(rows) => *rows == 0,
        ChargedRows::Named(rows) => rows.is_empty(),
    };
    (plan.releases() > 0 && !is_empty).then_some((plan, rows))
}

/// The ids of records about which a run releases nothing, because none of their agents has a neighbour. They are not charged, and not void.
pub fn untold(loaded: &Loaded) -> BTreeSet<Box<[u8]>> {
    let mut untold: BTreeSet<Box<[u8]>> =
        loaded.records.iter().flat_map(|records| records.iter().flatten()).cloned().collect();
    if let Some((_, ChargedRows::Named(told))) = charge(loaded) {
        untold.retain(|id| !told.contains_key(id));
    }
    untold
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_task::load::{load, load_without};
    use sottovoce_task::task::Task;
    use std::fs;

    const TASK: &str = "name = \"t\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\n\
                        record = \"patient\"\nnormalize = \"l2\"\n[graph]\nkind = \"ring\"\n[model]\nintercept = true\n\
                        [privacy]\nepsilon = 1\ndelta = 1e-6\nupdates = 3\n";
    const ROWS: &str = "agent,patient,label,x,y\na,p1,1,0.5,0.25\na,p2,-1,0.5,0\nb,p3,1,0,0.125\nb,p1,-1,0.25,0.5\nc,,1,1,0\nc,,-1,0,1\n";

    fn loaded(task: &str, train: &str, void: &[&str]) -> Result<Loaded, sottovoce_task::error::Mistake> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("task.toml", task), ("train.csv", train), ("test.csv", train)] {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let task = Task::read(&folder.path().join("task.toml"))?;
        load_without(&task, &|id| void.iter().any(|void| void.as_bytes() == id))
    }

    #[test]
    fn ids_are_no_features_and_rows_are_charged_to_them() {
        let loaded = loaded(TASK, ROWS, &[]).expect("good");
        assert_eq!(loaded.feature_names, ["x", "y", "intercept"]);
        let (plan, rows) = charge(&loaded).expect("something to tell");
        assert_eq!(plan.releases(), 3);
        let expected = [("", 2), ("p1", 2), ("p2", 1), ("p3", 1)];
        let expected = expected.map(|(id, rows)| (Box::from(id.as_bytes()), rows));
        assert_eq!(rows, ChargedRows::Named(expected.into()), "also where one id is with two agents");
        let exact = TASK.split("[privacy]").next().expect("a head");
        let (plan, _) = charge(&self::loaded(exact, ROWS, &[]).expect("good")).expect("something to tell");
        assert_eq!(plan.charges().next().map(|charge| charge.event), Some(Event::Reveal));
        let unnamed = |text: &str| text.replace("patient,", "").replace(",p1,", ",").replace(",p2,", ",");
        let unnamed = unnamed(ROWS).replace(",p3,", ",").replace(",,", ",");
        let task = TASK.replace("record = \"patient\"\n", "");
        let (_, rows) = charge(&self::loaded(&task, &unnamed, &[]).expect("good")).expect("something to tell");
        assert_eq!(rows, ChargedRows::Unnamed(6));
        let alone = TASK.replace("coordinate-descent", "local").split("[privacy]").next().expect("a head").to_owned();
        assert_eq!(charge(&self::loaded(&alone, ROWS, &[]).expect("good")), None, "whoever is alone tells nothing");
    }

    /// Whatever the rows of a void record say, all that is learned from is the same to the bit: training points, the constant of the
    /// intercept, and all that is computed from them. Test points are scored as they are.
    #[test]
    fn what_a_void_record_says_changes_nothing() {
        let edited = ROWS.replace("p1,1,0.5,0.25", "p1,-1,0.75,-0.5").replace("p1,-1,0.25,0.5", "p1,1,0,0.0625");
        assert_ne!(edited, ROWS);
        let of = |rows: &str, void: &[&str]| {
            let loaded = loaded(TASK, rows, void).expect("good");
            (format!("{:?} {:?}", loaded.problem, loaded.plan), loaded)
        };
        assert_ne!(of(ROWS, &[]).0, of(&edited, &[]).0);
        assert_eq!(of(ROWS, &["p1"]).0, of(&edited, &["p1"]).0);
        let (_, loaded) = of(ROWS, &["p1"]);
        let points: Vec<_> = loaded.problem.data.points(PeerId(0)).iter().map(|(x, y)| (x.to_vec(), y)).collect();
        assert_eq!(points[0], (vec![0.0; 3], 1.0));
        assert_eq!(points.len(), 2, "it counts in m_i");
        assert_eq!(points[1].0[2], 1.0, "others keep their constant");
        // A regression has another constant.
        let squared = TASK.replace("intercept = true\n", "intercept = true\nloss = \"squared\"\n") + "clip = 1\n";
        let loaded = self::loaded(&squared, ROWS, &["p1"]).expect("good");
        assert_eq!(loaded.problem.data.points(PeerId(0)).iter().next().map(|(_, y)| y), Some(0.0));
    }

    #[test]
    fn a_column_of_ids_is_where_the_task_says() {
        for (from, to, says) in [
            ("record = \"patient\"", "record = \"person\"", "column 2 is \"patient\", not \"person\""),
            ("record = \"patient\"", "record = \"label\"", "data.record"),
            ("record = \"patient\"", "record = \" \"", "data.record"),
        ] {
            let said = loaded(&TASK.replace(from, to), ROWS, &[]).expect_err(to).to_string();
            assert!(said.contains(says) && said.contains("accepted") && said.lines().count() == 1, "{said}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let sparse = TASK.replace("train.csv", "t.svm\"\nagents = \"a.txt").replace("test = \"test.csv\"\n", "");
        fs::write(folder.path().join("task.toml"), sparse).expect("written");
        let said = Task::read(&folder.path().join("task.toml")).and_then(|task| load(&task)).expect_err("libsvm");
        assert!(said.to_string().contains("data.record"), "{said}");
    }
}
