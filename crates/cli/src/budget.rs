//! The odometer of a data source: charged before a task begins, and shown by `sottovoce privacy budget`.

use crate::owner::owner;
use crate::{Output, screen};
use sottovoce_net::book::{self, BookError, BookFile, BookKey, Stamp, record_id};
use sottovoce_net::disk::{FileDisk, Glance};
use sottovoce_net::seat::{Beside, Seat, SeatError, instance, seat_id, write_instance};
use sottovoce_net::store::{Store, StoreError};
use sottovoce_net::transport::Identity;
use sottovoce_privacy::odometer::{Book, Entry, Instance, RecordId, TaskRows};
use sottovoce_privacy::{Accountant, Filter, Ledger, Tight, least_limit};
use sottovoce_report::plot::number;
use sottovoce_report::training::bound_or_infinity;
use sottovoce_run::budget::{ChargedRows, Void, void_of};
use sottovoce_run::epsilon::Epsilon;
use sottovoce_run::peer::{PeerFile, PeerTask, load_without};
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The delta at which a source without a limit is shown.
const DELTA: f64 = 1e-6;

/// What all tasks on a source of data have told about its records, and the limit that they keep
///
/// A source is a folder that the owner names: peers keep one beside their data, `train` and `network` use one with --budget. Each
/// task is charged with its whole plan before its first release; a restart is not charged again, a new store is.
///
/// What is shown is made of hashes of ids and of numbers of rows. It is for the owner's eyes.
#[derive(clap::Args)]
pub struct Arguments {
    /// The budget folder
    folder: PathBuf,

    /// Sets the limit, once; makes the folder where there is none
    #[arg(long, value_name = "E", requires = "limit_delta", allow_hyphen_values = true)]
    limit_epsilon: Option<f64>,

    /// The delta of the limit
    #[arg(long, value_name = "D", requires = "limit_epsilon", allow_hyphen_values = true)]
    limit_delta: Option<f64>,

    /// The delta at which to show a source without a limit
    #[arg(long, value_name = "D", default_value_t = DELTA)]
    delta: f64,
}

/// A task that was charged.
pub struct Charged {
    key: BookKey,
    entry: Entry,
    /// Records about which nothing is released.
    untold: BTreeSet<RecordId>,
    /// What the source has spent in all, in a line.
    pub said: String,
    /// That the folder is new, in a line: a name that is mistyped is a new folder too.
    pub news: Option<String>,
    /// The same for programs.
    pub source: serde_json::Value,
}

impl Charged {
    /// Whether records have ids, so that rows must be loaded again by what was charged.
    pub fn has_ids(&self) -> bool {
        matches!(self.entry.charged, TaskRows::Named(_))
    }

    /// What is over the limit in this task; none where nothing is. For the owner's eyes.
    pub fn void(&self, loaded: &Loaded) -> Option<Void> {
        void_of(loaded, |id| self.is_void(id))
    }

    /// Whether the record with this id is void in this task.
    pub fn is_void(&self, id: &[u8]) -> bool {
        match &self.entry.charged {
            TaskRows::Unnamed(_) => false,
            // PRIVACY: void unless it was charged, also where the book has never heard of the id: a file that has changed meanwhile, or an id
            // that was damaged on its way, gets nothing for nothing.
            TaskRows::Named(charged) => {
                let record = record_id(&self.key, id);
                !charged.contains_key(&record) && !self.untold.contains(&record)
            }
        }
    }
}

/// Random bytes: an instance, a key.
fn fresh<const N: usize>() -> Result<[u8; N], Mistake> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Mistake::new(format!("the system has no entropy: {error}")))?;
    Ok(bytes)
}

/// A new instance of a task.
pub fn new_instance() -> Result<Instance, Mistake> {
    fresh()
}

fn refused(folder: &Path) -> impl Fn(BookError) -> Mistake {
    move |error| Mistake::file(folder, error.to_string())
}

/// Refuses a budget folder inside a folder that is about to be replaced, or that appears only at the end: it would be deleted.
pub fn check_outside(folder: &Path, out: &Path) -> Result<(), Mistake> {
    let cannot = |error: std::io::Error| Mistake::io(folder, "used", &error);
    if !resolved(folder).map_err(cannot)?.starts_with(resolved(out).map_err(cannot)?) {
        return Ok(());
    }
    let what = format!(
        "is inside the output folder {}, which is replaced as a whole, so the budget would be lost; accepted: a budget folder elsewhere",
        out.display()
    );
    Err(Mistake::file(folder, what))
}

/// A path as the system follows it, also where its end does not exist yet.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            std::path::Component::ParentDir => drop(resolved.pop()),
            part => resolved.push(part),
        }
        // Follows a link; what is not there yet is none.
        resolved = resolved.canonicalize().unwrap_or(resolved);
    }
    Ok(resolved)
}

fn open(folder: &Path, waits: impl FnOnce(String)) -> Result<BookFile<FileDisk>, Mistake> {
    let waits = || waits(format!("waiting for another process that uses the budget {}", folder.display()));
    BookFile::open_waiting(folder, fresh()?, book::PATIENCE, waits).map_err(refused(folder))
}

/// Rows by the names that a book has for their ids.
fn named(key: &BookKey, rows: ChargedRows) -> TaskRows {
    match rows {
        ChargedRows::Unnamed(rows) => TaskRows::Unnamed(rows),
        ChargedRows::Named(ids) => {
            let mut records = BTreeMap::new();
            for (id, rows) in ids {
                *records.entry(record_id(key, &id)).or_default() += rows;
            }
            TaskRows::Named(records)
        }
    }
}

/// Charges an instance of a task to an open book, unless it was charged before. What else can fail is done by `prepare`, before that.
/// Returns when the charge is safe.
fn charge_to<T>(
    (folder, file): (&Path, &mut BookFile<FileDisk>),
    instance: Instance,
    loaded: &Loaded,
    (plan, rows): (Ledger, TaskRows),
    prepare: impl FnOnce(&Charged) -> Result<T, Mistake>,
) -> Result<(Charged, T), Mistake> {
    let known = file.book().entry(&instance).cloned();
    let is_known = known.is_some();
    let admit = || file.book().admit(instance, &loaded.task.name, plan, rows);
    let entry = known.map_or_else(admit, Ok).map_err(|error| refused(folder)(error.into()))?;
    let news = file.is_new().then(|| format!("new budget folder {}", folder.display()));
    let key = *file.key();
    let untold = sottovoce_run::budget::untold(loaded).iter().map(|id| record_id(&key, id)).collect();
    let mut charged = Charged { key, entry, untold, said: String::new(), source: serde_json::Value::Null, news };
    let prepared = prepare(&charged)?;
    if !is_known {
        file.write(charged.entry.clone()).map_err(refused(folder))?;
    }
    let delta = loaded.task.privacy.map_or(DELTA, |privacy| privacy.delta);
    let spent = Spent::of(file.book(), delta);
    charged.said = spent.in_words(file.book());
    charged.source = spent.json(file.book());
    Ok((charged, prepared))
}

/// Charges a new instance of a task to a source with its whole plan; none where it can release nothing. What else can fail is done by
/// `prepare`, before that. Returns when the charge is safe.
pub fn charge<T>(
    folder: &Path,
    instance: Instance,
    loaded: &Loaded,
    output: Output,
    prepare: impl FnOnce(&Charged) -> Result<T, Mistake>,
) -> Result<Option<(Charged, T)>, Mistake> {
    let Some((plan, rows)) = sottovoce_run::budget::charge(loaded) else { return Ok(None) };
    let mut file = open(folder, |line| screen::warn(output, &[line]))?;
    let rows = named(file.key(), rows);
    let (charged, prepared) = charge_to((folder, &mut file), instance, loaded, (plan, rows), prepare)?;
    if !output.quiet && !output.json {
        charged.news.iter().try_for_each(|news| screen::say(format!("Source: {news}.")))?;
    }
    Ok(Some((charged, prepared)))
}

/// A peer that was charged.
pub struct ChargedPeer {
    /// To what.
    pub charged: Charged,
    /// Its data again, if records have ids.
    pub without: Option<PeerTask>,
    /// Its place in the book, while it runs.
    pub seat: Seat,
}

/// The same for a peer, whose store's lock is held. A store and its instance belong together. None where it can release nothing.
pub fn charge_peer(
    file: &PeerFile,
    one: &PeerTask,
    identity: &Identity,
    disk: &mut FileDisk,
    given: Option<Instance>,
) -> Result<Option<ChargedPeer>, Mistake> {
    let broken = |error: StoreError| Mistake::file(&file.store, error.to_string());
    let (found, step) = Store::look(disk).map_err(broken)?.unzip();
    let key = identity.id().to_string();
    if found.as_ref().is_some_and(|found| (&found.key, found.task) != (&key, one.task)) {
        // It will be refused, and releases nothing.
        return Ok(None);
    }
    let Some((plan, rows)) = sottovoce_run::budget::charge(&one.loaded) else { return Ok(None) };
    // Says so before a new book is made where the store's own is gone.
    recorded(file, one)?;
    let mut book = open(&file.budget, |line| tracing::info!("{line}"))?;
    let rows = named(book.key(), rows);
    // PRIVACY: the order is the one of the proof page: pending instance, charge, store, bound instance, stamp, releases. Whatever stops in
    // between, what may have been released was charged.
    let releases = step.flatten().map_or(0, |step| step.ledger.releases());
    let asks = Asks { file, key: &key, task: &one.loaded.task.name, plan: &plan, rows: &rows };
    let (instance, seat) = asks.take_seat(&book, found.as_ref().map(|_| releases), given)?;
    let (charged, without) =
        charge_to((&file.budget, &mut book), instance, &one.loaded, (plan, rows), |charged: &Charged| {
            let load = || load_without(file, &|id| charged.is_void(id));
            let without = charged.has_ids().then(load).transpose()?;
            if let Some(found) = &found {
                let expected = owner(without.as_ref().unwrap_or(one), identity);
                Store::<FileDisk>::check(&expected, found).map_err(broken)?;
            }
            Ok(without)
        })?;
    Ok(Some(ChargedPeer { charged, without, seat }))
}

/// A peer that wants to be charged.
struct Asks<'a> {
    file: &'a PeerFile,
    key: &'a str,
    task: &'a str,
    plan: &'a Ledger,
    rows: &'a TaskRows,
}

impl Asks<'_> {
    /// The instance that the peer goes on with, or a new one, and its seat. `releases` are those of its store; none where that is empty.
    fn take_seat(
        &self,
        book: &BookFile<FileDisk>,
        releases: Option<u64>,
        given: Option<Instance>,
    ) -> Result<(Instance, Seat), Mistake> {
        let Asks { file, key, task, plan, rows } = *self;
        let cannot = |error: std::io::Error| Mistake::io(&file.store, "used", &error);
        let entry = |instance: &Instance| book.book().entry(instance);
        let last = |instance: &Instance| book.stamp(&seat_id(instance, key));
        // Under which this peer has never been bound to a store.
        let is_unused = |instance: &Instance| last(instance) == Stamp::default();
        let take = |instance| Seat::take(&file.budget, &file.store, instance, key).map_err(unseated(file));
        match (instance(&file.store).map_err(cannot)?, releases) {
            (Some(Beside::Bound(bound)), Some(_)) if entry(&bound.instance).is_none() => Err(elsewhere(file)),
            (Some(Beside::Bound(bound)), Some(releases)) => {
                let seat = take(bound.instance)?;
                // PRIVACY: a charge is for the folder that ran last, and not for its copies.
                seat.check(&bound, &last(&bound.instance), releases).map_err(unseated(file))?;
                Ok((bound.instance, seat))
            }
            // Nothing was released under a pending instance, so it is as good as a new one for the same plan and rows.
            (Some(Beside::Pending(known)), _)
                if given.is_none()
                    && is_unused(&known)
                    && entry(&known).is_none_or(|entry| entry.is_of(task, plan, rows)) =>
            {
                Ok((known, take(known)?))
            }
            // A store that is gone, or has lost its instance, is a new one; whoever started this peer can speak for an empty store only, and
            // for a charge of this task.
            _ => {
                let covers = |given: &Instance| entry(given).is_some_and(|entry| entry.covers(task, plan, rows));
                let given = given.filter(|given| releases.is_none() && is_unused(given) && covers(given));
                let new = given.map_or_else(new_instance, Ok)?;
                let seat = take(new)?;
                write_instance(&file.store, Beside::Pending(new)).map_err(cannot)?;
                Ok((new, seat))
            }
        }
    }
}

fn unseated(file: &PeerFile) -> impl Fn(SeatError) -> Mistake {
    |error| Mistake::file(&file.store, error.to_string())
}

/// Says in the book and beside the store that a peer has started, when its store has begun, or that it has ended. Nothing may be released
/// before this returns.
pub fn stamp_peer(file: &PeerFile, seat: &Seat) -> Result<(), Mistake> {
    let looked = Store::look(&mut Glance::at(&file.store));
    let (_, step) = looked.map_err(|error| Mistake::file(&file.store, error.to_string()))?.unzip();
    let releases = step.flatten().map_or(0, |step| step.ledger.releases());
    let mut book = open(&file.budget, |line| tracing::info!("{line}"))?;
    // PRIVACY: from here on an empty store beside this instance is one that was deleted, and is charged again; and a copy of this folder
    // that was made before is refused.
    seat.stamp(&mut book, Stamp { nonce: fresh()?, releases }).map_err(unseated(file))
}

/// A store that may have released something is charged to another book than this one.
fn elsewhere(file: &PeerFile) -> Mistake {
    let what = format!(
        "this store was charged to a budget that is not in {}: deleted, put back or moved, so what its data have spent is not known and \
         nothing is released; accepted: that folder as it was, at its old place or as `budget` in peer.toml, or a new task, whose budget \
         ADDS to all that this one may have spent on the same records",
        file.budget.display()
    );
    Mistake::file(&file.store, what)
}

/// The charge of a peer's instance, if there is one, for its owner to look at.
pub fn recorded(file: &PeerFile, one: &PeerTask) -> Result<Option<Charged>, Mistake> {
    let cannot = |error: std::io::Error| Mistake::io(&file.store, "read", &error);
    let Some(beside) = instance(&file.store).map_err(cannot)? else { return Ok(None) };
    let instance = beside.instance();
    let looked = book::look(&file.budget).map_err(refused(&file.budget))?;
    let known = looked.as_ref().and_then(|(book, key)| Some((book.entry(&instance)?.clone(), *key)));
    if let Some((entry, key)) = known {
        return Ok(Some(Charged {
            key,
            entry,
            untold: BTreeSet::new(),
            said: String::new(),
            source: serde_json::Value::Null,
            news: None,
        }));
    }
    let found =
        Store::look(&mut Glance::at(&file.store)).map_err(|error| Mistake::file(&file.store, error.to_string()))?;
    let is_ours = found.is_some_and(|(found, _)| found.task == one.task);
    match beside {
        Beside::Bound(_) if is_ours && sottovoce_run::budget::charge(&one.loaded).is_some() => Err(elsewhere(file)),
        _ => Ok(None),
    }
}

/// What the source of a peer has spent, for its owner: in words, and as JSON. None where nothing was ever charged.
pub fn source(file: &PeerFile, delta: f64) -> Result<Option<(String, serde_json::Value)>, Mistake> {
    let looked = book::look(&file.budget).map_err(refused(&file.budget))?;
    Ok(looked.map(|(book, _)| {
        let spent = Spent::of(&book, delta);
        (spent.in_words(&book), spent.json(&book))
    }))
}

/// What the record that has spent most has spent; without ids, the source.
struct Spent {
    delta: f64,
    /// The least limit that would have allowed it.
    filter: f64,
    /// Had the tasks been fixed beforehand.
    tight: f64,
    /// The share of the limit.
    used: Option<f64>,
}

impl Spent {
    fn of(book: &Book, delta: f64) -> Self {
        let delta = book.filter().map_or(delta, Filter::delta);
        Spent {
            delta,
            filter: book.worst(|ledger| least_limit(ledger, delta)),
            tight: book.worst_by(&Tight, delta),
            used: book.filter().map(|filter| book.worst(|ledger| filter.used(ledger))),
        }
    }

    fn in_words(&self, book: &Book) -> String {
        let tasks = book.entries().len();
        let limit = match (book.filter(), self.used) {
            (Some(filter), Some(used)) => {
                format!("; {} of the limit of epsilon = {} are used", percent(used), number::bound(filter.epsilon()))
            }
            _ => String::new(),
        };
        format!(
            "{} task{} in all{}: epsilon = {} by the filter, {} had the tasks been fixed beforehand, at delta = {}{limit}",
            number::count(tasks as u64),
            if tasks == 1 { "" } else { "s" },
            // With ids, other records have spent less.
            if book.distribution().is_empty() { "" } else { "; the record charged most" },
            bound_or_infinity(self.filter),
            bound_or_infinity(self.tight),
            number::bound(self.delta),
        )
    }

    fn json(&self, book: &Book) -> serde_json::Value {
        serde_json::json!({
            "tasks": book.entries().len(),
            "epsilon_filter": json(self.filter),
            "epsilon_tight": json(self.tight),
            "delta": self.delta,
            "limit": book.filter().map(|filter| serde_json::json!({
                "epsilon": filter.epsilon(), "delta": filter.delta(), "order": json(filter.order() + 1.0)
            })),
            "used": self.used.map(json),
        })
    }
}

fn json(epsilon: f64) -> serde_json::Value {
    serde_json::to_value(Epsilon::from(epsilon)).expect("an epsilon is JSON")
}

/// Rounded up.
fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", (1000.0 * share).ceil() / 10.0) } else { "more than all".to_owned() }
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let folder = &arguments.folder;
    if !(0.0..1.0).contains(&arguments.delta) {
        return Err(Mistake::new(format!("--delta is {}; accepted: at least 0 and below 1", arguments.delta)));
    }
    if let (Some(epsilon), Some(delta)) = (arguments.limit_epsilon, arguments.limit_delta) {
        let filter = Filter::new(epsilon, delta).map_err(|error| Mistake::new(error.to_string()))?;
        let mut file = BookFile::open(folder, fresh()?).map_err(refused(folder))?;
        let tasks = file.book().entries().len();
        if tasks > 0 && file.book().filter().is_none() {
            let line = format!(
                "{tasks} task{} run: this limit is one only if it was not chosen for what they said, and it does not take back what \
                 they spent",
                if tasks == 1 { " has" } else { "s have" }
            );
            screen::warn(output, &[line]);
        }
        file.limit(filter).map_err(refused(folder))?;
    }
    let Some((book, _)) = book::look(folder).map_err(refused(folder))? else {
        let what =
            "holds no budget; accepted: a folder that a peer or --budget has used, or --limit-epsilon to make one";
        return Err(Mistake::file(folder, what));
    };
    let spent = Spent::of(&book, arguments.delta);
    if output.json {
        return screen::say(answer(&book, &spent));
    }
    if output.quiet { Ok(()) } else { tell(&book, &spent) }
}

/// Records with the same charges: how many, and what they come to.
fn kinds(book: &Book, spent: &Spent) -> Vec<(f64, f64, Option<f64>, u64)> {
    let of = |(ledger, records): (Ledger, u64)| {
        let used = book.filter().map(|filter| filter.used(&ledger));
        (least_limit(&ledger, spent.delta), Tight.epsilon(&ledger, spent.delta), used, records)
    };
    let mut kinds: Vec<_> = book.distribution().into_iter().map(of).collect();
    kinds.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // Records that were in other tasks can have spent the same.
    kinds.dedup_by(|next, kept| {
        let same = (next.0, next.1, next.2) == (kept.0, kept.1, kept.2);
        kept.3 += if same { next.3 } else { 0 };
        same
    });
    kinds
}

fn answer(book: &Book, spent: &Spent) -> serde_json::Value {
    let task = |(entry, order): (&Entry, usize)| {
        let (rows, records) = charged(entry);
        serde_json::json!({
            "order": order, "task": entry.task, "releases": entry.plan.releases(),
            "rows": rows, "records": records, "void": entry.void.len(),
        })
    };
    let kind = |(filter, tight, used, records): (f64, f64, Option<f64>, u64)| {
        serde_json::json!({
            "records": records, "epsilon_filter": json(filter), "epsilon_tight": json(tight), "used": used.map(json)
        })
    };
    let mut answer = spent.json(book);
    answer["charged"] = book.entries().iter().zip(1..).map(task).collect();
    answer["records"] = kinds(book, spent).into_iter().map(kind).collect();
    answer
}

/// Rows, and records if they have names.
fn charged(entry: &Entry) -> (u64, Option<usize>) {
    match &entry.charged {
        TaskRows::Unnamed(rows) => (*rows, None),
        TaskRows::Named(records) => (records.values().sum(), Some(records.len())),
    }
}

fn tell(book: &Book, spent: &Spent) -> Result<(), Mistake> {
    screen::say(format!("{}.", spent.in_words(book)))?;
    let kinds = kinds(book, spent);
    let records: u64 = kinds.iter().map(|kind| kind.3).sum();
    screen::say(match (kinds.first(), kinds.last()) {
        (Some(least), Some(most)) => {
            let mut before = 0;
            let middle = kinds.iter().find(|kind| {
                before += kind.3;
                2 * before >= records
            });
            format!(
                "{} records by their ids: epsilon from {} over {} in the middle to {}, by the filter.",
                number::count(records),
                bound_or_infinity(least.0),
                bound_or_infinity(middle.map_or(0.0, |kind| kind.0)),
                bound_or_infinity(most.0)
            )
        }
        _ if book.entries().is_empty() => "No task has been charged.".to_owned(),
        _ => "No ids: every row is charged all that the source has spent.".to_owned(),
    })?;
    if let (Some(filter), Some(used)) = (book.filter(), spent.used) {
        screen::say(format!(
            "Limit: epsilon = {} at delta = {}, kept also by tasks that are chosen along the way; {} left.",
            number::bound(filter.epsilon()),
            number::bound(filter.delta()),
            percent((1.0 - used).max(0.0))
        ))?;
    } else {
        screen::say("No limit: the odometer only counts.")?;
    }
    screen::say("Made of hashes of ids and of numbers of rows: for the owner's eyes.\n")?;
    let mut rows = vec![["", "task", "releases", "rows", "records", "void records"].map(str::to_owned).to_vec()];
    for (entry, order) in book.entries().iter().zip(1u64..) {
        let (count, records) = charged(entry);
        rows.push(vec![
            order.to_string(),
            entry.task.clone(),
            number::count(entry.plan.releases()),
            number::count(count),
            records.map_or("-".to_owned(), |records| number::count(records as u64)),
            number::count(entry.void.len() as u64),
        ]);
    }
    screen::table(&rows)
}
