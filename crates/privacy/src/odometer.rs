//! The odometer of a data source: what all tasks that ever used its rows have told about each of them. Proof: `proofs/odometer.md`.
//!
//! A [`Book`] has an entry for each instance of a task: a run of it that draws its own noise. The entry is the whole plan of the task,
//! written before the first release, and whom it is charged to: every row of the source, or the records that are in the task, by a name
//! that says nothing about them. A record that is several rows of a task is charged as one that moves so many times as far.
//!
//! With a limit, a [`Filter`] decides who may take part in the next task. Where rows have no names the task is refused; whether it is
//! follows from the tasks that were run. Where they have names the task always starts, and the records that it would bring over their
//! limit are *void*: whoever loads the data puts a public constant in their place.

use crate::{Accountant, BadCharge, Charge, Event, Filter, Ledger};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// The name of a record: a keyed hash of its id.
pub type RecordId = [u8; 16];

/// The name of an instance of a task: random.
pub type Instance = [u8; 16];

/// The rows of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRows {
    /// They have no names; there are so many.
    Unnamed(u64),
    /// How many rows each record has.
    Named(BTreeMap<RecordId, u64>),
}

/// One instance of a task, and to whom it is charged.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which.
    pub instance: Instance,
    /// The task's name, for the owner.
    pub task: String,
    /// Everything that the task may release about one row.
    pub plan: Ledger,
    /// The rows that are charged: all rows of the source, or these records.
    pub charged: TaskRows,
    /// The records of the task that are void: it would have brought them over their limit.
    pub void: BTreeSet<RecordId>,
}

impl Entry {
    /// Whether a task of this plan on these rows is what was charged. Void records are charged nothing, so their numbers of rows are not kept.
    pub fn is_of(&self, task: &str, plan: &Ledger, rows: &TaskRows) -> bool {
        let same_rows = match (&self.charged, rows) {
            (TaskRows::Unnamed(charged), TaskRows::Unnamed(rows)) => charged == rows,
            (TaskRows::Named(charged), TaskRows::Named(rows)) => {
                rows.len() == charged.len() + self.void.len()
                    && rows
                        .iter()
                        .all(|(id, rows)| charged.get(id).map_or(self.void.contains(id), |known| known == rows))
            }
            _ => false,
        };
        self.task == task && self.plan == *plan && same_rows
    }

    /// Whether a task of this plan, on some of these rows, is paid for by this charge: one for all agents, of which each has its part. (Of rows
    /// with names, those that were not charged are void.)
    pub fn covers(&self, task: &str, plan: &Ledger, rows: &TaskRows) -> bool {
        let some_rows = match (&self.charged, rows) {
            (TaskRows::Unnamed(charged), TaskRows::Unnamed(rows)) => rows <= charged,
            (TaskRows::Named(charged), TaskRows::Named(rows)) => {
                rows.iter().all(|(id, rows)| charged.get(id).is_none_or(|charged| rows <= charged))
            }
            _ => false,
        };
        self.task == task && self.plan == *plan && some_rows
    }
}

/// Why a task may not start. All of it follows from public facts.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refused {
    /// No limit survives an exact value.
    #[error(
        "the limit of the source is epsilon = {epsilon}, and the task has no [privacy]; accepted: a task with [privacy]"
    )]
    Exact {
        /// The limit.
        epsilon: f64,
    },
    /// The rows have been used up.
    #[error(
        "{tasks} {} used {} of the limit of epsilon = {epsilon} at delta = {delta}, and this one would bring it to {}; \
         accepted: a task with more noise, or rows that no task has seen, with a budget folder of their own",
        if *.tasks == 1 { "task has" } else { "tasks have" }, percent(*.before), percent(*.after)
    )]
    Spent {
        /// Tasks so far.
        tasks: usize,
        /// The share that they used.
        before: f64,
        /// The share with this one.
        after: f64,
        /// The limit.
        epsilon: f64,
        /// The limit.
        delta: f64,
    },
    /// How many rows of an unnamed task a record was cannot be told.
    #[error(
        "the source has a limit, and tasks without data.record were charged to it, in which a record may have had any number of rows; \
         accepted: a task without data.record, or a budget folder of its own"
    )]
    Named,
    /// What a row without a name has spent cannot be told from public facts.
    #[error("the source has a limit and knows its records by their ids; accepted: a task with data.record")]
    Unnamed,
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", (1000.0 * share).ceil() / 10.0) } else { "more than all".to_owned() }
}

/// All entries of a source, and its limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Book {
    entries: Vec<Entry>,
    filter: Option<Filter>,
    /// By record: the entries that it is in by name, and with how many rows.
    of: BTreeMap<RecordId, History>,
}

/// The entries that a record is in by name, and with how many rows.
type History = Vec<(usize, u64)>;

/// Whether a record with such a history may take part with so many rows.
type Answers<'h> = BTreeMap<(&'h [(usize, u64)], u64), bool>;

impl Book {
    /// What was charged, in its order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of an instance.
    pub fn entry(&self, instance: &Instance) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.instance == *instance)
    }

    /// The limit.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Sets the limit. It is set once: a limit that moved with what was seen would be none.
    pub fn limit(&mut self, filter: Filter) {
        assert!(self.filter.is_none_or(|known| known == filter), "a limit is set once");
        self.filter = Some(filter);
    }

    /// Adds an entry, as [`Book::admit`] made it.
    pub fn push(&mut self, entry: Entry) {
        let at = self.entries.len();
        if let TaskRows::Named(records) = &entry.charged {
            for (record, &rows) in records {
                self.of.entry(*record).or_default().push((at, rows));
            }
        }
        self.entries.push(entry);
    }

    /// The entry of a task that wants to start: who is charged for it, and how many are void. It must be written down before the first
    /// release.
    pub fn admit(&self, instance: Instance, task: &str, plan: Ledger, rows: TaskRows) -> Result<Entry, Refused> {
        let entry = |charged, void| Entry { instance, task: task.to_owned(), plan: plan.clone(), charged, void };
        let Some(filter) = &self.filter else { return Ok(entry(rows, BTreeSet::new())) };
        let is_bare = |charge: &Charge| charge.event == Event::Reveal || charge.audience.is_named_by_its_accountant();
        if plan.charges().any(is_bare) {
            return Err(Refused::Exact { epsilon: filter.epsilon() });
        }
        match rows {
            TaskRows::Unnamed(_) => {
                if self.entries.iter().any(|entry| matches!(entry.charged, TaskRows::Named(_))) {
                    return Err(Refused::Unnamed);
                }
                // PRIVACY: every row may have been in every task before, so it has spent all that the source has. What was spent and what is
                // planned follow from the tasks alone.
                let with = self.of_history(&[], Some((&plan, 1)));
                if filter.allows(&with) {
                    return Ok(entry(rows, BTreeSet::new()));
                }
                let (before, after) = (filter.used(&self.of_history(&[], None)), filter.used(&with));
                let (tasks, epsilon, delta) = (self.entries.len(), filter.epsilon(), filter.delta());
                Err(Refused::Spent { tasks, before, after, epsilon, delta })
            }
            TaskRows::Named(records) => {
                if self.entries.iter().any(|entry| matches!(entry.charged, TaskRows::Unnamed(_))) {
                    return Err(Refused::Named);
                }
                let mut known = Answers::new();
                // PRIVACY: whether a record is void follows from the plans so far and from its own numbers of rows, never from what its rows
                // say; and it changes nothing for any other record.
                let mut allowed = |record: &RecordId, rows: u64| {
                    let history = self.of.get(record).map_or(&[][..], |history| history);
                    *known
                        .entry((history, rows))
                        .or_insert_with(|| filter.allows(&self.of_history(history, Some((&plan, rows)))))
                };
                let (charged, void): (BTreeMap<RecordId, u64>, BTreeMap<RecordId, u64>) =
                    records.into_iter().partition(|(record, rows)| allowed(record, *rows));
                let void = void.into_keys().collect();
                Ok(entry(TaskRows::Named(charged), void))
            }
        }
    }

    /// Everything that was ever charged to a record: where it was named, and every task without names.
    pub fn of_record(&self, record: &RecordId) -> Ledger {
        self.of_history(self.of.get(record).map_or(&[], |history| history), None)
    }

    /// The charges that different records have, and how many have them.
    pub fn distribution(&self) -> Vec<(Ledger, u64)> {
        let mut kinds: BTreeMap<&[(usize, u64)], u64> = BTreeMap::new();
        for history in self.of.values() {
            *kinds.entry(history).or_default() += 1;
        }
        kinds.into_iter().map(|(history, records)| (self.of_history(history, None), records)).collect()
    }

    /// The largest epsilon of any record by an accountant. Where no record was charged by name, what every row has spent: the tasks without
    /// names. Records that were void in all others were charged nothing for them.
    pub fn worst(&self, epsilon: impl Fn(&Ledger) -> f64) -> f64 {
        if self.of.is_empty() {
            return epsilon(&self.of_history(&[], None));
        }
        self.distribution().iter().map(|(ledger, _)| epsilon(ledger)).fold(0.0, f64::max)
    }

    /// The same by an accountant: what the tasks come to, had they been fixed beforehand.
    pub fn worst_by(&self, accountant: &dyn Accountant, delta: f64) -> f64 {
        self.worst(|ledger| accountant.epsilon(ledger, delta))
    }

    fn of_history(&self, history: &[(usize, u64)], more: Option<(&Ledger, u64)>) -> Ledger {
        let unnamed = self.entries.iter().filter(|entry| matches!(entry.charged, TaskRows::Unnamed(_)));
        let unnamed = unnamed.map(|entry| (&entry.plan, 1));
        let named = history.iter().map(|&(at, rows)| (&self.entries[at].plan, rows));
        let all = unnamed.chain(named).chain(more).flat_map(|(plan, rows)| charges(plan, rows));
        Ledger::from_charges(all).expect("sums of counts that were checked")
    }
}

/// What a plan costs somebody with so many rows.
fn charges(plan: &Ledger, rows: u64) -> impl Iterator<Item = Charge> {
    let charged = move |charge: &Charge| Charge::new(charge.event.for_rows(rows), charge.count);
    plan.charges().map(move |charge| Charge { audience: charge.audience, ..charged(charge) })
}

/// A plan as one ledger, without what accountants do not read.
pub fn bare(charges: impl IntoIterator<Item = Charge>) -> Result<Ledger, BadCharge> {
    let bare = |charge: Charge| Charge { audience: charge.audience, ..Charge::new(charge.event, charge.count) };
    Ledger::from_charges(charges.into_iter().map(bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tight, least_limit};

    fn plan(noise_multiplier: f64, count: u64) -> Ledger {
        Ledger::from_charges([Charge::new(Event::Gaussian { noise_multiplier }, count)]).expect("valid")
    }

    fn named(records: impl IntoIterator<Item = (u8, u64)>) -> TaskRows {
        TaskRows::Named(records.into_iter().map(|(record, rows)| ([record; 16], rows)).collect())
    }

    fn run(book: &mut Book, instance: u8, plan: Ledger, rows: TaskRows) -> Result<Entry, Refused> {
        let entry = book.admit([instance; 16], "t", plan, rows)?;
        book.push(entry.clone());
        Ok(entry)
    }

    #[test]
    fn a_record_is_charged_for_the_tasks_it_was_in_and_for_all_without_names() {
        let mut book = Book::default();
        run(&mut book, 1, plan(10.0, 4), named([(1, 1), (2, 1)])).expect("no limit");
        run(&mut book, 2, plan(20.0, 1), TaskRows::Unnamed(7)).expect("no limit");
        run(&mut book, 3, plan(5.0, 1), named([(2, 2), (3, 1)])).expect("no limit");
        let epsilon = |charges: &[(f64, u64)]| {
            let events = charges.iter().map(|&(noise_multiplier, count)| (Event::Gaussian { noise_multiplier }, count));
            let charges = events.map(|(event, count)| Charge::new(event, count));
            Tight.epsilon(&Ledger::from_charges(charges).expect("valid"), 1e-6)
        };
        let of = |record: u8| Tight.epsilon(&book.of_record(&[record; 16]), 1e-6);
        for (record, charges) in [
            (1, &[(10.0, 4), (20.0, 1)][..]),
            (2, &[(10.0, 4), (20.0, 1), (2.5, 1)]),
            (3, &[(20.0, 1), (5.0, 1)]),
            (9, &[(20.0, 1)]),
        ] {
            assert!((of(record) - epsilon(charges)).abs() < 1e-9, "{record}");
        }
        assert_eq!(book.worst_by(&Tight, 1e-6), of(2));
        assert_eq!(book.distribution().iter().map(|(_, records)| records).sum::<u64>(), 3);
    }

    #[test]
    fn at_the_limit_rows_without_names_are_refused_and_named_ones_are_void() {
        let filter = Filter::new(1.0, 1e-6).expect("a limit");
        // Each task uses a third of the limit, and a little less.
        let third = (1..).map(|k| plan(200.0, k)).take_while(|plan| 3.0 * filter.used(plan) <= 1.0).last();
        let third = third.expect("one");
        let mut unnamed = Book::default();
        unnamed.limit(filter);
        let mut with_names = unnamed.clone();
        for k in 1..=3 {
            run(&mut unnamed, k, third.clone(), TaskRows::Unnamed(4)).expect("within the limit");
            let entry = run(&mut with_names, k, third.clone(), named([(1, 1), (2, 1)])).expect("it always starts");
            assert_eq!(entry.void.len(), 0);
        }
        let said = run(&mut unnamed, 4, third.clone(), TaskRows::Unnamed(4)).expect_err("spent").to_string();
        assert!(said.contains("3 tasks have used") && said.lines().count() == 1, "{said}");
        let entry = run(&mut with_names, 4, third.clone(), named([(1, 1), (2, 1), (3, 1)])).expect("it always starts");
        assert_eq!((entry.charged.clone(), entry.void.len()), (named([(3, 1)]), 2));
        assert!(least_limit(&with_names.of_record(&[1; 16]), 1e-6) <= 1.0 + 1e-9);
        // Who was void is not charged, and stays within the limit.
        assert_eq!(with_names.of_record(&[1; 16]).releases(), 3 * third.releases());
        assert_eq!(with_names.admit([9; 16], "t", third.clone(), TaskRows::Unnamed(1)), Err(Refused::Unnamed));
        // A record may have been any number of the rows of a task without names.
        assert_eq!(unnamed.admit([9; 16], "t", plan(1e6, 1), named([(1, 1)])), Err(Refused::Named));
        let exact = Ledger::from_charges([Charge::new(Event::Reveal, 1)]).expect("valid");
        assert!(matches!(with_names.admit([9; 16], "t", exact, named([(1, 1)])), Err(Refused::Exact { .. })));
    }

    #[test]
    fn a_charge_for_all_agents_covers_each_of_them_and_no_other_task() {
        let mut book = Book::default();
        let named_entry = run(&mut book, 1, plan(10.0, 4), named([(1, 2), (2, 1)])).expect("no limit");
        let entry = run(&mut book, 2, plan(10.0, 4), TaskRows::Unnamed(7)).expect("no limit");
        for (entry, rows, covers) in [
            (&entry, TaskRows::Unnamed(7), true),
            (&entry, TaskRows::Unnamed(3), true),
            (&entry, TaskRows::Unnamed(8), false),
            (&entry, named([(1, 1)]), false),
            (&named_entry, named([(1, 1)]), true),
            // Whoever was not charged is void.
            (&named_entry, named([(1, 2), (9, 5)]), true),
            (&named_entry, named([(1, 3)]), false),
            (&named_entry, TaskRows::Unnamed(1), false),
        ] {
            assert_eq!(entry.covers("t", &plan(10.0, 4), &rows), covers, "{rows:?}");
        }
        assert!(!entry.covers("u", &plan(10.0, 4), &TaskRows::Unnamed(7)), "another task");
        assert!(!entry.covers("t", &plan(10.0, 5), &TaskRows::Unnamed(7)), "another plan");
    }

    #[test]
    fn a_source_whose_records_were_all_void_has_spent_nothing() {
        let mut book = Book::default();
        book.limit(Filter::new(1.0, 1e-6).expect("a limit"));
        let entry = run(&mut book, 1, plan(0.5, 9), named([(1, 1), (2, 1)])).expect("it always starts");
        assert_eq!((entry.charged, entry.void.len()), (named([]), 2));
        let filter = *book.filter().expect("a limit");
        assert_eq!(book.worst(|ledger| filter.used(ledger)), 0.0);
    }

    #[test]
    fn an_entry_is_of_its_plan_and_rows_alone() {
        let mut book = Book::default();
        book.limit(Filter::new(1.0, 1e-6).expect("a limit"));
        let rows = named([(1, 1), (2, 30)]);
        let entry = run(&mut book, 1, plan(20.0, 1), rows.clone()).expect("it always starts");
        assert_eq!((entry.charged.clone(), entry.void.len()), (named([(1, 1)]), 1));
        assert!(entry.is_of("t", &plan(20.0, 1), &rows));
        for (task, plan, rows) in [
            ("u", plan(20.0, 1), rows.clone()),
            ("t", plan(20.0, 2), rows),
            ("t", plan(20.0, 1), named([(1, 2), (2, 30)])),
            ("t", plan(20.0, 1), named([(1, 1)])),
            ("t", plan(20.0, 1), named([(1, 1), (3, 30)])),
            ("t", plan(20.0, 1), named([(1, 1), (2, 30), (3, 1)])),
            ("t", plan(20.0, 1), TaskRows::Unnamed(31)),
        ] {
            assert!(!entry.is_of(task, &plan, &rows), "{task} {plan:?} {rows:?}");
        }
    }

    /// Two rows of one record, replaced together, move a value twice as far: four times the divergence under Gaussian noise.
    #[test]
    fn rows_of_one_record_count_together() {
        let mut book = Book::default();
        book.limit(Filter::new(1.0, 1e-6).expect("a limit"));
        let half = plan(10.0, 1);
        let share = book.filter().expect("a limit").used(&half);
        assert!(share > 0.1 && share < 0.25, "{share}");
        let entry = run(&mut book, 1, half, named([(1, 1), (2, 2), (3, 3)])).expect("it always starts");
        assert_eq!((entry.charged, entry.void), (named([(1, 1), (2, 2)]), [[3; 16]].into()));
    }
}
