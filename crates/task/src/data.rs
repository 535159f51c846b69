//! From rows of files to each agent's training and test points.

use crate::columns::{self, Wanted};
use crate::error::Mistake;
use crate::input::InputFile;
use crate::private_rows::{self, Moved, Rule};
use crate::rows::{self, At, Format, Missing, Names, Place, Rows};
use crate::task::{Mechanism, Model, Normalize, Points, Task, Test};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use sottovoce_algorithms::{Dataset, Loss};
use std::path::Path;

/// The rows of a task, their agents numbered as they were met.
#[derive(Debug)]
pub struct Raw {
    /// Training rows.
    pub train: Rows,
    /// Test rows, when they have a file of their own.
    pub test: Option<Rows>,
}

impl Raw {
    /// Marks the training rows of some records as void: public constants stand in their place before anything is computed from them.
    /// Test rows are part of no release.
    pub fn make_void(&mut self, is_void: &dyn Fn(&[u8]) -> bool) {
        self.train.make_void(is_void);
    }
}

/// Reads the rows of a task. Labels are checked against the loss, and 0 becomes -1 for a classification. With `[privacy]` nothing that a
/// record holds is refused ([`private_rows`]).
pub fn read(task: &Task, names: &mut Names) -> Result<Raw, Mistake> {
    if let Some(statistic) = &task.statistic {
        let (file, wanted) = (&task.data.train.file, Wanted::by(statistic, record(task)));
        let mut labels = Labels { loss: Loss::Logistic, low: None };
        let train = match task.privacy {
            None => columns::read(file, names, wanted, |y, at| labels.take(y, at))?,
            Some(_) => columns::read_private(file, names, wanted, |y, at| labels.take(y, at))?.0,
        };
        return Ok(Raw { train, test: None });
    }
    if task.privacy.is_some() {
        let train = with_rows(read_private(&task.data.train, task, names)?.0, &task.data.train.file)?;
        return with_private_test(train, task, names);
    }
    let mut labels = Labels { loss: task.model.loss, low: None };
    let train = &task.data.train;
    let Test::File(test) = &task.data.test else {
        return Ok(Raw { train: read_one(train, task, names, &mut labels)?, test: None });
    };
    let declared = task.data.dimension;
    if let (Some(train_agents), Some(test_agents)) = (&train.agents, &test.agents) {
        // A feature may occur in only one of two sparse files: the dimension is the larger one.
        let train_rows = rows::read_libsvm(&train.file, train_agents, names, declared, |y, at| labels.take(y, at))?;
        let test_rows = rows::read_libsvm(&test.file, test_agents, names, declared, |y, at| labels.take(y, at))?;
        let dimension = train_rows.dimension().max(test_rows.dimension());
        let train_rows = with_features(train_rows.dense(dimension, &train.file)?, &train.file)?;
        return Ok(Raw { train: train_rows, test: Some(test_rows.dense(dimension, &test.file)?) });
    }
    let train_rows = read_one(train, task, names, &mut labels)?;
    let test_rows = read_one(test, task, names, &mut labels)?;
    same_columns(&train_rows, train, &test_rows, test)?;
    Ok(Raw { train: train_rows, test: Some(test_rows) })
}

/// Reads what one agent has: csv files, of which the first may hold no row.
pub fn read_own(task: &Task, names: &mut Names) -> Result<Raw, Mistake> {
    if task.statistic.is_some() {
        return read(task, names);
    }
    if task.privacy.is_some() {
        let (train, _) = read_private(&task.data.train, task, names)?;
        return with_private_test(train, task, names);
    }
    let mut labels = Labels { loss: task.model.loss, low: None };
    let file = &task.data.train.file;
    let train = rows::read_any_points(file, names, Missing::Refuse, record(task), |y, at| labels.take(y, at))?;
    let Test::File(test) = &task.data.test else { return Ok(Raw { train, test: None }) };
    let test_rows = read_one(test, task, names, &mut labels)?;
    same_columns(&train, &task.data.train, &test_rows, test)?;
    Ok(Raw { train, test: Some(test_rows) })
}

/// The rows of a private task's file, and what was moved to read them.
pub(crate) fn read_private(points: &Points, task: &Task, names: &mut Names) -> Result<(Rows, Moved), Mistake> {
    let classification = task.model.loss.is_classification();
    match &points.agents {
        None => private_rows::read_csv(&points.file, names, record(task), classification),
        Some(agents) => {
            let dimension = task.data.dimension.expect("a private task of libsvm files declares it");
            private_rows::read_libsvm(&points.file, agents, names, dimension, classification)
        }
    }
}

fn with_private_test(train: Rows, task: &Task, names: &mut Names) -> Result<Raw, Mistake> {
    let Test::File(test) = &task.data.test else { return Ok(Raw { train, test: None }) };
    let test_rows = with_rows(read_private(test, task, names)?.0, &test.file)?;
    same_columns(&train, &task.data.train, &test_rows, test)?;
    Ok(Raw { train, test: Some(test_rows) })
}

fn with_rows(rows: Rows, file: &Path) -> Result<Rows, Mistake> {
    if rows.labels.is_empty() {
        return Err(Mistake::file(file, "no rows; accepted: at least one row after the header"));
    }
    Ok(rows)
}

/// What the rules of a private task moved in each of its files: made of exact data, for the owner alone.
pub fn moved(task: &Task) -> Result<Vec<Moved>, Mistake> {
    let mut names = Names::default();
    if let Some(statistic) = &task.statistic {
        let (file, wanted) = (&task.data.train.file, Wanted::by(statistic, record(task)));
        let mut labels = Labels { loss: Loss::Logistic, low: None };
        let (rows, mut moved) = columns::read_private(file, &mut names, wanted, |y, at| labels.take(y, at))?;
        let beyond = |x: &f64| statistic.range.is_some_and(|range| range.clip(*x) != *x);
        for (row, k) in rows.features.chunks_exact(rows.columns.len()).zip(0..) {
            if row.iter().any(beyond) {
                moved.note(Rule::Range, moved.lines[k]);
            }
        }
        return Ok(vec![moved]);
    }
    let files = [Some(&task.data.train), if let Test::File(test) = &task.data.test { Some(test) } else { None }];
    let mut all = Vec::new();
    for points in files.into_iter().flatten() {
        let (mut rows, mut moved) = read_private(points, task, &mut names)?;
        let p = rows.columns.len();
        for (x, k) in rows.features.chunks_exact_mut(p).zip(0..) {
            shrink(x, task.data.normalize);
            if Limit::of(task).is_some_and(|limit| limit.apply(x)) {
                moved.note(Rule::Bound, moved.lines[k]);
            }
        }
        all.push(moved);
    }
    Ok(all)
}

fn same_columns(train_rows: &Rows, train: &Points, test_rows: &Rows, test: &Points) -> Result<(), Mistake> {
    if train_rows.columns != test_rows.columns {
        let place = train_rows.columns.iter().zip(&test_rows.columns).position(|(a, b)| a != b);
        let what = match place {
            Some(k) => format!(
                "column {} is {:?} where {} has {:?}",
                k + 3,
                test_rows.columns[k],
                train.file.display(),
                train_rows.columns[k]
            ),
            None => format!(
                "{} features where {} has {}",
                test_rows.columns.len(),
                train.file.display(),
                train_rows.columns.len()
            ),
        };
        return Err(Mistake::line(&test.file, 1, format!("{what}; accepted: the same columns in the same order")));
    }
    Ok(())
}

fn record(task: &Task) -> Option<&str> {
    task.data.record.as_deref()
}

fn read_one(points: &Points, task: &Task, names: &mut Names, labels: &mut Labels) -> Result<Rows, Mistake> {
    let file = &points.file;
    match &points.agents {
        None => rows::read_points(file, names, Missing::Refuse, record(task), |y, at| labels.take(y, at)),
        Some(agents) => {
            let sparse = rows::read_libsvm(file, agents, names, task.data.dimension, |y, at| labels.take(y, at))?;
            let dimension = sparse.dimension();
            with_features(sparse.dense(dimension, file)?, file)
        }
    }
}

fn with_features(rows: Rows, file: &Path) -> Result<Rows, Mistake> {
    if rows.columns.is_empty() {
        return Err(Mistake::file(file, "no feature in any row; accepted: at least one index:value"));
    }
    Ok(rows)
}

/// Which labels are in use: a classification has -1 and 1, or 0 and 1, in all files alike.
struct Labels {
    loss: Loss,
    /// Where the class that is not 1 was first met, and how it is written.
    low: Option<(f64, InputFile, Place)>,
}

impl Labels {
    fn take(&mut self, label: f64, at: At<'_>) -> Result<f64, Mistake> {
        if !self.loss.is_classification() || label == 1.0 {
            return Ok(label);
        }
        if label != 0.0 && label != -1.0 {
            let what = format!("label is {label}; accepted by this loss: -1 and 1, or 0 and 1");
            return Err(at.mistake(what));
        }
        match self.low {
            None => self.low = Some((label, at.file.to_owned(), at.place)),
            Some((known, ref file, place)) if known != label => {
                let before = format!("{known} stands in {}, line {}", file.display(), At { file, place }.line());
                let what =
                    format!("label is {label}, but {before}; accepted: -1 and 1 everywhere, or 0 and 1 everywhere");
                return Err(at.mistake(what));
            }
            Some(_) => {}
        }
        Ok(-1.0)
    }
}

/// By agent: the ids of its training rows, as they stand in the file.
pub type RecordNames = Vec<Vec<Box<[u8]>>>;

/// Everyone's points, agents in the order of their names.
#[derive(Debug)]
pub struct Prepared {
    /// What models are trained on.
    pub train: Dataset,
    /// What they are tested on.
    pub test: Option<Dataset>,
    /// One name for each coordinate of a model.
    pub feature_names: Vec<String>,
    /// The ids of each agent's training rows, where the task names a column of ids.
    pub records: Option<RecordNames>,
}

/// Groups rows by agent, normalizes, shrinks to the bound of a private task, splits and appends the intercept. `place` gives each
/// number's place.
pub fn prepare(raw: Raw, task: &Task, names: &[String], place: &[u32]) -> Prepared {
    let shape = Shape { normalize: task.data.normalize, limit: Limit::of(task) };
    let mut feature_names = raw.train.columns.clone();
    if task.model.intercept.is_some() {
        feature_names.push("intercept".to_owned());
    }
    let mut train = Dataset::new(feature_names.len());
    let mut test = match task.data.test {
        Test::Absent => None,
        _ => Some(Dataset::new(feature_names.len())),
    };
    let grouped = Grouped::new(&raw.train, place, names.len());
    let mut scratch = Scratch::default();
    let mut records = raw.train.records.as_ref().map(|_| Vec::new());
    for (agent, name) in names.iter().enumerate() {
        let rows = grouped.of(agent);
        let mut note = |rows: &[usize]| {
            if let (Some(records), Some(ids)) = (&mut records, &raw.train.records) {
                records.push(rows.iter().map(|&row| ids[row].clone()).collect());
            }
        };
        let Test::Split { share, seed } = task.data.test else {
            scratch.push_training(&mut train, &raw.train, rows, shape, &task.model);
            note(rows);
            continue;
        };
        let (kept, aside) = split(rows, share, seed, name);
        note(&kept);
        scratch.push_training(&mut train, &raw.train, &kept, shape, &task.model);
        if let Some(test) = &mut test {
            scratch.push(test, &raw.train, &aside, shape, &task.model);
        }
    }
    if let (Some(rows), Some(test)) = (&raw.test, &mut test) {
        let grouped = Grouped::new(rows, place, names.len());
        for agent in 0..names.len() {
            scratch.push(test, rows, grouped.of(agent), shape, &task.model);
        }
    }
    Prepared { train, test, feature_names, records }
}

/// The rows of each agent, in the order of the file.
pub struct Grouped {
    offsets: Vec<usize>,
    rows: Vec<usize>,
}

impl Grouped {
    /// Groups the rows of a table; `place` says which agent each number is.
    pub fn new(table: &Rows, place: &[u32], agents: usize) -> Self {
        let mut offsets = vec![0; agents + 1];
        for &owner in &table.owners {
            offsets[place[owner as usize] as usize + 1] += 1;
        }
        for k in 0..agents {
            offsets[k + 1] += offsets[k];
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; table.owners.len()];
        for (row, &owner) in table.owners.iter().enumerate() {
            let slot = &mut next[place[owner as usize] as usize];
            rows[*slot] = row;
            *slot += 1;
        }
        Grouped { offsets, rows }
    }

    /// The rows of one agent.
    pub fn of(&self, agent: usize) -> &[usize] {
        &self.rows[self.offsets[agent]..self.offsets[agent + 1]]
    }
}

#[derive(Default)]
struct Scratch {
    features: Vec<f64>,
    labels: Vec<f64>,
}

impl Scratch {
    /// Adds an agent's test points.
    fn push(&mut self, to: &mut Dataset, from: &Rows, rows: &[usize], shape: Shape, model: &Model) {
        self.gather(from, rows, shape, model);
        to.push_agent(&self.features, &self.labels);
    }

    /// Adds an agent's training points. A void row says nothing, not even the constant of the intercept.
    fn push_training(&mut self, to: &mut Dataset, from: &Rows, rows: &[usize], shape: Shape, model: &Model) {
        self.gather(from, rows, shape, model);
        let width = to.dimension();
        let label = if model.loss.is_classification() { 1.0 } else { 0.0 };
        // PRIVACY: nothing has been computed from these rows together with others, and nothing that they say is left.
        for (k, _) in rows.iter().enumerate().filter(|(_, row)| from.is_void(**row)) {
            self.features[k * width..(k + 1) * width].fill(0.0);
            self.labels[k] = label;
        }
        to.push_agent(&self.features, &self.labels);
    }

    fn gather(&mut self, from: &Rows, rows: &[usize], shape: Shape, model: &Model) {
        let p = from.columns.len();
        self.features.clear();
        self.labels.clear();
        for &row in rows {
            let start = self.features.len();
            self.features.extend_from_slice(&from.features[row * p..(row + 1) * p]);
            let x = &mut self.features[start..];
            shrink(x, shape.normalize);
            shape.limit.map(|limit| limit.apply(x));
            self.features.extend(model.intercept);
            self.labels.push(from.labels[row]);
        }
    }
}

/// What is done to every x.
#[derive(Clone, Copy)]
struct Shape {
    normalize: Normalize,
    limit: Option<Limit>,
}

/// The feature bound of a private task, in the norm of its mechanism.
#[derive(Clone, Copy)]
pub struct Limit {
    norm: Normalize,
    bound: f64,
}

/// A relative margin for the rounding of a norm: what is beyond the bound by no more is left as it is.
const BOUND_MARGIN: f64 = 1e-9;

impl Limit {
    /// None without privacy. Laplace noise needs the L1 norm, unless points are normalized in L2, which says nothing of it.
    pub fn of(task: &Task) -> Option<Limit> {
        let (privacy, bound) = (task.privacy?, task.data.feature_bound?);
        let norm = match (privacy.mechanism, task.data.normalize) {
            (Mechanism::Gaussian, _) | (_, Normalize::L2) => Normalize::L2,
            (Mechanism::Laplace, _) => Normalize::L1,
        };
        Some(Limit { norm, bound })
    }

    /// Shrinks a point that is beyond the bound to it, and says whether it was. Nobody else may know.
    pub fn apply(self, x: &mut [f64]) -> bool {
        let length = norm(x, self.norm);
        let is_beyond = length > self.bound * (1.0 + BOUND_MARGIN);
        if is_beyond {
            let factor = self.bound / length;
            x.iter_mut().for_each(|value| *value *= factor);
        }
        is_beyond
    }
}

/// |x| in a norm.
pub(crate) fn norm(x: &[f64], normalize: Normalize) -> f64 {
    match normalize {
        Normalize::None => 0.0,
        Normalize::L1 => x.iter().map(|v| v.abs()).sum(),
        Normalize::L2 => x.iter().map(|v| v * v).sum::<f64>().sqrt(),
    }
}

/// x <- x / max(1, |x|).
pub fn shrink(x: &mut [f64], normalize: Normalize) {
    let length = norm(x, normalize);
    if length > 1.0 {
        x.iter_mut().for_each(|v| *v /= length);
    }
}

/// Sets a share of the rows aside, rounded to the nearest count; one stays at least. Both parts keep their order.
pub fn split(rows: &[usize], share: f64, seed: u64, name: &str) -> (Vec<usize>, Vec<usize>) {
    let m = rows.len();
    let count = ((share * m as f64).round() as usize).min(m.saturating_sub(1));
    let mut rng = ChaCha8Rng::from_seed(
        Sha256::new().chain_update(seed.to_le_bytes()).chain_update(name.as_bytes()).finalize().into(),
    );
    // The first `count` places of a shuffle.
    let mut order: Vec<usize> = (0..m).collect();
    for k in 0..count {
        let other = k + below(&mut rng, m - k);
        order.swap(k, other);
    }
    let mut is_aside = vec![false; m];
    order[..count].iter().for_each(|&k| is_aside[k] = true);
    let pick = |aside: bool| rows.iter().zip(&is_aside).filter(|(_, is)| **is == aside).map(|(row, _)| *row).collect();
    (pick(false), pick(true))
}

/// Uniform in 0..n, up to a bias of n / 2^64.
pub(crate) fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// Reads a file of points for a summary: any label, missing features counted.
pub(crate) fn read_leniently(
    file: &InputFile,
    agents: Option<&InputFile>,
    record: Option<&str>,
    names: &mut Names,
) -> Result<Rows, Mistake> {
    match (Format::of(file), agents) {
        (None, _) => Err(Mistake::file(file, format!("accepted: a file named {}", Format::ACCEPTED))),
        (Some(Format { libsvm: true, .. }), None) => {
            Err(Mistake::file(file, "a libsvm file names no agents; accepted: with a file of one agent per line"))
        }
        (Some(Format { libsvm: true, .. }), Some(_)) if record.is_some() => {
            Err(Mistake::file(file, "a libsvm file has no column of ids; accepted: a csv file, or no --record"))
        }
        (Some(Format { libsvm: true, .. }), Some(agents)) => {
            let sparse = rows::read_libsvm(file, agents, names, None, |y, _| Ok(y))?;
            let dimension = sparse.dimension();
            with_features(sparse.dense(dimension, file)?, file)
        }
        (Some(_), Some(agents)) => Err(Mistake::file(agents, "a csv file names its agents in its first column")),
        (Some(_), None) => rows::read_points(file, names, Missing::Count, record, |y, _| Ok(y)),
    }
}
