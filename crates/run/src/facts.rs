//! What a run directory may be made of without anybody's data: public facts of a task, and what its agents told.
//!
//! **Architecture invariant:** no field of [`PublicFacts`], [`Told`] or [`Traffic`] holds a record, a score, a loss, an objective, a home
//! model, or a path that could be read. Whoever writes the run directory of a network takes these types and nothing else, so that a
//! figure made of exact data does not compile. The one place that sees data is [`PublicFacts::of`]; a test holds two data sets with
//! the same public facts against it.

use crate::measure::Measured;
use crate::one_model::OneModel;
use crate::outlook::outlook;
use crate::private::{self, guarantee_in_words};
use crate::train::{self, Trained};
use sottovoce_algorithms::personal::boosting::Bits;
use sottovoce_core::{Graph, PeerId, Rows};
use sottovoce_privacy::Ledger;
use sottovoce_report::plot::number;
use sottovoce_report::statistic;
pub use sottovoce_report::training::Origin;
use sottovoce_report::training::Sample;
use sottovoce_sim::Counters;
use sottovoce_task::known::Groups;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{Description, Leaves, Observer, Pairs, Privacy, Statistic, Unit};

/// What everyone may know of a task before anything is released: names, numbers of points, the graph, the task without its files.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicFacts {
    /// The task's name.
    pub name: String,
    /// The algorithm, as in the task.
    pub algorithm: &'static Description,
    /// Whether everybody's neighbours are all others, which the algorithm says by itself.
    pub everyone: bool,
    /// What a report calls its run.
    pub run_name: String,
    /// The agents' names.
    pub names: Vec<String>,
    /// m_i of each.
    pub points: Vec<u64>,
    /// c_i of each, which follows from m_i and points-max.
    pub confidence: Vec<f64>,
    /// Numbers in a model, or in an estimate.
    pub dimension: usize,
    /// The names of its features, as the header of the data has them.
    pub feature_names: Vec<String>,
    /// The same in words.
    pub dimension_in_words: String,
    /// How many edges, in words.
    pub edges_in_words: String,
    /// Who works with whom; of no use where that is learned.
    pub graph: Graph,
    /// Whether agents find out by themselves who works with whom.
    pub learns_graph: bool,
    /// Who belongs together, where a file says so.
    pub groups: Option<Groups>,
    /// Whether labels are classes.
    pub is_classification: bool,
    /// What is measured, where no models are learned.
    pub statistic: Option<Statistic>,
    /// The budget.
    pub privacy: Option<Privacy>,
    /// Whose replacement its guarantee is about.
    pub unit: Unit,
    /// Against whom it holds.
    pub observer: Observer,
    /// The standard deviation of an estimate by the formula, where there is one.
    pub error_predicted: Option<f64>,
    /// The releases of a private task, in words.
    pub plan_in_words: Option<String>,
    /// What all of them cost against everyone, at most.
    pub epsilon_planned: Option<f64>,
    /// How many releases each agent of a private task has planned.
    pub releases: Option<u64>,
    /// What a careful reader should know about the budget.
    pub warnings: Vec<String>,
    /// What is allowed, but seldom meant.
    pub advice: Option<&'static str>,
    /// The seed.
    pub seed: u64,
    /// The resolved task as text. It names files and holds nothing of them.
    pub task: String,
    /// The same without the names of files.
    pub task_without_files: String,
}

impl PublicFacts {
    /// What is public of a task. Everything here is a function of the task's text, the agents' names and numbers of points, the graph
    /// and the dimension. Only tasks without `[privacy]` have defaults that follow from records (`boosting.range`, edges of `knn`): all
    /// agents of such a task must know them, and exact models leave everyone anyway.
    pub fn of(loaded: &Loaded) -> Self {
        let problem = &loaded.problem;
        let ids = || (0..problem.agents() as u32).map(PeerId);
        let learns_graph = loaded.edge_count().is_none();
        PublicFacts {
            name: loaded.task.name.clone(),
            algorithm: loaded.task.algorithm,
            everyone: loaded.task.has_everyone(),
            run_name: train::name(loaded, loaded.task.algorithm, learns_graph),
            names: loaded.names.clone(),
            points: ids().map(|id| points(loaded, id)).collect(),
            confidence: ids().map(|id| problem.facts(problem.data.size(id)).1).collect(),
            dimension: loaded.number_names().len(),
            feature_names: loaded.feature_names.clone(),
            dimension_in_words: dimension_in_words(loaded),
            edges_in_words: edges_in_words(loaded),
            graph: problem.graph.clone(),
            learns_graph,
            groups: loaded.known.groups.clone(),
            is_classification: problem.loss.is_classification(),
            statistic: loaded.task.statistic.clone(),
            privacy: loaded.task.privacy,
            unit: loaded.task.privacy.map_or(Unit::Record, |privacy| privacy.unit),
            observer: loaded.observer(),
            error_predicted: loaded.deviation(),
            plan_in_words: outlook(loaded).map(|outlook| outlook.plan_in_words()),
            epsilon_planned: loaded.plan.as_ref().map(|plan| plan.epsilon()),
            releases: loaded.plan.as_ref().map(|plan| plan.releases()),
            warnings: loaded.task.privacy.map_or(Vec::new(), |privacy| {
                let worst = loaded.plan.as_ref().map(|plan| plan.epsilon());
                [private::warnings(&privacy, problem), private::warning_of_pairs(&privacy, worst)].concat()
            }),
            advice: loaded.warning(),
            seed: loaded.task.run.seed,
            task: loaded.task.to_toml(),
            task_without_files: loaded.task.without_files(),
        }
    }

    /// How many agents.
    pub fn agents(&self) -> usize {
        self.names.len()
    }

    /// For whose replacement and against whom its guarantee holds, in a sentence.
    pub fn guarantee(&self) -> String {
        guarantee_in_words(self.unit, &self.observer)
    }

    /// What is about to run, in a line or two.
    pub fn describe(&self, origin: Origin) -> String {
        let mut text = format!(
            "{}: {} agents, {}, {}, {}; {}\n{}",
            self.name,
            number::count(self.agents() as u64),
            self.dimension_in_words,
            self.rows_in_words(),
            self.edges_in_words,
            self.algorithm.name,
            self.privacy_line(origin)
        );
        text += &self.plan_in_words.as_ref().map_or(String::new(), |plan| format!("\n{plan}"));
        text + &self.advice.map_or(String::new(), |advice| format!("\nwarning: {advice}"))
    }

    /// How many rows there are, in words.
    pub fn rows_in_words(&self) -> String {
        let what = match (&self.statistic, self.unit) {
            (Some(_), Unit::Agent) => "means of rows",
            (Some(_), Unit::Record) => "rows",
            (None, _) => "training points",
        };
        format!("{} {what}", number::count(self.points.iter().sum()))
    }

    /// What a run means for privacy, in a line.
    pub fn privacy_line(&self, origin: Origin) -> String {
        let Some(Privacy { epsilon, delta, .. }) = self.privacy.filter(|_| self.algorithm.leaves != Leaves::Nothing)
        else {
            return match self.algorithm.leaves {
                Leaves::Nothing => "Nothing leaves any agent: epsilon = 0.".to_owned(),
                Leaves::Obfuscated => "This is NOT differential privacy: servers see weighted gradients with bounded vectors added, and the mean of \
                                       many rounds shows a client's own gradient; epsilon = infinity against the servers."
                    .to_owned(),
                _ => {
                    let what = match &self.statistic {
                        Some(statistic) if statistic.kind.is_of_pairs() => "rows",
                        Some(_) => "sums",
                        None => "models",
                    };
                    format!("No privacy: exact {what} leave every agent that has a neighbour, so epsilon = infinity.")
                }
            };
        };
        let promise =
            |epsilon: f64| format!("({}, {})-differentially private", number::bound(epsilon), number::bound(delta));
        let promise = match (self.privacy.map(|privacy| privacy.pairs), self.epsilon_planned) {
            (Some(Pairs::Mean), Some(worst)) => {
                format!(
                    "{} on the mean over pairs of members, and {} for the worst pair",
                    promise(epsilon),
                    promise(worst)
                )
            }
            _ => promise(epsilon),
        };
        let guarantee = self.guarantee();
        match origin {
            Origin::Simulator => format!(
                "SIMULATION: the noise comes from the seed, so whoever knows the seed takes it off, and nothing here is protected. \
                 With real peers (sottovoce peer), whose noise comes from their systems' entropy, everything that leaves an agent is \
                 {promise}, {guarantee}."
            ),
            Origin::Peers | Origin::Revealed => {
                let told = format!("Everything that leaves an agent in messages is {promise}, {guarantee}.");
                let revealed = " Revealed scores, losses and home models are made of exact data: they are NOT private.";
                if origin == Origin::Revealed { told + revealed } else { told }
            }
        }
    }
}

/// How many points of an agent count: where all of an agent may be replaced, how many rows it has is its own business.
fn points(loaded: &Loaded, id: PeerId) -> u64 {
    match loaded.task.privacy.map(|privacy| privacy.unit) {
        Some(Unit::Agent) => 1,
        _ => loaded.problem.data.size(id) as u64,
    }
}

/// How many coordinates a model has, in words.
fn dimension_in_words(loaded: &Loaded) -> String {
    let what = match &loaded.task.statistic {
        Some(statistic) => {
            return format!("{} of {}", statistic.kind.name(), loaded.feature_names.join(", "));
        }
        None if loaded.plain.is_some() => "base predictors",
        None => "features",
    };
    format!("{} {what}", number::count(loaded.problem.dimension() as u64))
}

/// How many edges there are, in words.
fn edges_in_words(loaded: &Loaded) -> String {
    match loaded.edge_count() {
        _ if loaded.task.has_everyone() => "each with all others".to_owned(),
        Some(edges) => format!("{} edges", number::count(edges as u64)),
        None => "a graph to be learned".to_owned(),
    }
}

/// What was sent up to some moment, by all agents together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Wakes.
    pub wakes: u64,
    /// Vectors.
    pub vectors_sent: u64,
    /// Letters.
    pub letters_sent: u64,
    /// Bytes.
    pub bytes_sent: u64,
}

impl From<Traffic> for Sample {
    fn from(Traffic { wakes, vectors_sent, bytes_sent, .. }: Traffic) -> Self {
        Sample { wakes, vectors_sent, bytes_sent, ..Sample::default() }
    }
}

/// What agents told each other, and what was counted meanwhile.
#[derive(Clone, Debug)]
pub struct Told<'r> {
    /// Where it comes from.
    pub origin: Origin,
    /// The algorithm that ran.
    pub algorithm: &'static str,
    /// One row per agent: what it told last.
    pub models: &'r Rows,
    /// Of whom there is such a model. The rows of others hold nothing that anybody saw.
    pub is_told: Vec<bool>,
    /// How many contributions an estimate misses at most, because their members were passed over.
    pub passed_over: u32,
    /// One ledger per agent.
    pub ledgers: &'r [Ledger],
    /// Over time.
    pub traffic: Vec<Traffic>,
    /// In all.
    pub counters: &'r Counters,
    /// Before the first wake.
    pub start: &'r Counters,
    /// Of the run.
    pub seconds: f64,
    /// Whether everyone was quiet at the end.
    pub quiet: bool,
    /// Bits as papers count them.
    pub bits: Option<Bits>,
    /// The graph, where it was learned from what was told.
    pub graph: Option<&'r Graph>,
    /// The model that they have in common, where all learn one and somebody told it.
    pub one: Option<OneModel>,
}

impl<'r> Told<'r> {
    /// What the agents of a simulated measurement told: their estimates.
    pub fn of_measured(facts: &PublicFacts, run: &'r Measured) -> Self {
        let traffic = |sample: &statistic::Sample| Traffic {
            wakes: sample.wakes,
            letters_sent: sample.letters_sent,
            bytes_sent: sample.bytes_sent,
            ..Traffic::default()
        };
        Told {
            origin: Origin::Simulator,
            algorithm: facts.algorithm.name,
            models: &run.estimates,
            is_told: run.is_told.clone(),
            passed_over: run.passed_over,
            ledgers: &run.ledgers,
            traffic: run.samples.iter().map(traffic).collect(),
            counters: &run.counters,
            start: &run.start,
            seconds: run.seconds,
            quiet: run.quiet,
            bits: None,
            graph: None,
            one: None,
        }
    }

    /// What the agents of a simulated run told.
    pub fn of(facts: &PublicFacts, run: &'r Trained) -> Self {
        let ids = (0..facts.agents() as u32).map(PeerId);
        // What an agent without a neighbour would broadcast is nobody's business in a private run: it sends nothing.
        let told = |id: PeerId| match &run.one {
            Some(one) => one.is_holder[id.index()],
            None => facts.privacy.is_none() || !facts.graph.peers(id).is_empty(),
        };
        let traffic = |sample: &Sample| Traffic {
            wakes: sample.wakes,
            vectors_sent: sample.vectors_sent,
            bytes_sent: sample.bytes_sent,
            ..Traffic::default()
        };
        Told {
            origin: Origin::Simulator,
            algorithm: run.algorithm.name,
            models: &run.models,
            is_told: ids.map(told).collect(),
            passed_over: 0,
            ledgers: &run.ledgers,
            traffic: run.samples.iter().map(traffic).collect(),
            counters: &run.counters,
            start: &run.start,
            seconds: run.seconds,
            quiet: run.quiet,
            bits: run.bits,
            graph: run.graph.as_ref(),
            one: run.one.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_task::{load::load, task::Task};

    const TASK: &str = "name = \"t\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\nnormalize = \"l2\"\n[graph]\nGRAPH\n[run]\nwakes-per-agent = 40\n\
                        [privacy]\nepsilon = 1.0\ndelta = 1e-6\n";

    fn facts(graph: &str, rows: &str) -> PublicFacts {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("train.csv"), format!("agent,label,x,y\n{rows}")).expect("written");
        let file = folder.path().join("task.toml");
        std::fs::write(&file, TASK.replace("GRAPH", graph)).expect("written");
        let mut facts = PublicFacts::of(&load(&Task::read(&file).expect("a task")).expect("a problem"));
        // Where the files lie is not what they hold.
        facts.task = facts.task.replace(&*folder.path().to_string_lossy(), "");
        facts
    }

    #[test]
    fn public_facts_of_a_private_task_do_not_depend_on_any_record() {
        for graph in ["kind = \"ring\"", "kind = \"learned\"\nfirst-wakes = 5\nmodel-wakes = 5\ngraph-wakes = 5"] {
            let base = facts(graph, "a,1,0.5,0.25\na,-1,0.5,1\nb,1,1,0\nc,1,0,0\nd,-1,0,0.1\n");
            let other = facts(graph, "a,-1,-0.1,0.75\na,1,0.001,-1\nb,-1,0.5,0.5\nc,1,1,1\nd,1,0.3,0.1\n");
            assert_eq!(base, other, "{graph}");
            let more = facts(graph, "a,1,0.5,0.25\nb,1,1,0\nc,1,0,0\nd,-1,0,0.1\n");
            assert_ne!(base, more, "numbers of points are public: {graph}");
        }
    }

    /// Where all of an agent may be replaced, how many rows it has is nobody's business; where one row may be, it is public.
    #[test]
    fn public_facts_depend_on_numbers_of_rows_only_where_a_row_is_the_unit() {
        let facts = |unit: &str, rows: &str| {
            let task = format!(
                "algorithm = \"ring\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\nkind = \"mean\"\nrange = [0, 1]\n\
                 [privacy]\nepsilon = 1\ndelta = 0.2\nunit = \"{unit}\"\n"
            );
            let rows = format!("agent,x\n{rows}").into_bytes();
            let memory = sottovoce_task::input::Memory::default().with("rows.csv", rows);
            let task = Task::parse_with(&task, std::path::Path::new("task.toml"), &memory).expect("a task");
            PublicFacts::of(&load(&task).expect("a problem"))
        };
        let (few, many) = ("a,0.5\nb,1\nc,0\n", "a,0.25\na,7\na,no\na,0\na,0\na,0\na,1\nb,1\nc,0.75\n");
        assert_eq!(facts("agent", few), facts("agent", many));
        assert_ne!(facts("record", few), facts("record", many));
        let said = facts("agent", few).describe(Origin::Peers);
        assert!(said.contains("any one other member") && said.contains("all records of one agent"), "{said}");
    }

    #[test]
    fn a_promise_is_never_made_of_simulated_noise_without_saying_so() {
        let facts = facts("kind = \"ring\"", "a,1,0.5,0.25\nb,1,1,0\nc,1,0,0\n");
        let line = facts.describe(Origin::Simulator);
        assert!(line.contains("SIMULATION") && line.contains("nothing here is protected"), "{line}");
        for origin in [Origin::Simulator, Origin::Peers, Origin::Revealed] {
            let line = facts.privacy_line(origin);
            assert!(line.contains("one record") && line.contains("against everyone"), "{line}");
            assert_eq!(line.contains("NOT private"), origin == Origin::Revealed, "{line}");
        }
    }
}
