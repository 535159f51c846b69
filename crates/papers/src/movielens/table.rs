//! The table: its cells, the paper's numbers beside ours, and what they come to.

use super::als::Als;
use super::method::Method;
use super::methods::{delta, error, plan};
use super::ratings::{MovieLens, Split};
use super::setting::{Instance, Setting};
use super::values::{PrivateValues, SettingValues, Values};
use crate::workers::{Watch, each};
use sottovoce_privacy::{Accountant, Plan, Tight};
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// The paper's budgets.
pub const EPSILONS: [f64; 3] = [1.0, 0.5, 0.1];

/// A delta that means something, to see the paper's beside it.
pub const SMALL_DELTA: f64 = 1e-6;

/// How much of the table to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Runs, with the seeds 1, 2, ..
    pub runs: u64,
    /// Only the first so many users, for a quicker look; all of them when this is not said.
    pub users: Option<usize>,
    /// Threads. They change the time, and no number.
    pub threads: usize,
}

impl Options {
    /// The paper's five runs with all users.
    pub fn full(threads: usize) -> Self {
        Options { runs: 5, users: None, threads }
    }

    /// One run with all users.
    pub fn quick(threads: usize) -> Self {
        Options { runs: 1, ..Options::full(threads) }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What is taken to be public.
    pub setting: Setting,
    /// How models are made.
    pub method: Method,
    /// The budget that it is made for, at the paper's delta.
    pub epsilon: Option<f64>,
    /// What it truly costs each user at the paper's delta, by the tight accountant, the setting's public facts being given.
    pub spent: Option<f64>,
    /// What it costs at [`SMALL_DELTA`].
    pub spent_small_delta: Option<f64>,
    /// The paper's number.
    pub paper: Option<f64>,
    /// The error of each run: the root mean squared error of each user, averaged over users.
    pub errors: Vec<f64>,
}

impl Cell {
    /// `<setting>/<method>` or `<setting>/<method>/epsilon-<epsilon>`.
    pub fn name(&self) -> String {
        let (setting, method) = (self.setting.name(), self.method.name());
        match self.epsilon {
            None => format!("{setting}/{method}"),
            Some(epsilon) => format!("{setting}/{method}/epsilon-{epsilon}"),
        }
    }

    /// The mean over runs.
    pub fn mean(&self) -> f64 {
        self.errors.iter().sum::<f64>() / self.errors.len() as f64
    }

    /// The standard deviation over runs; nothing for a single one.
    pub fn spread(&self) -> Option<f64> {
        let (mean, runs) = (self.mean(), self.errors.len());
        let squares: f64 = self.errors.iter().map(|error| (error - mean) * (error - mean)).sum();
        (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt())
    }
}

/// The table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table1 {
    /// How many users there were.
    pub users: usize,
    /// How many runs.
    pub runs: u64,
    /// The cells, by setting, method and falling epsilon.
    pub cells: Vec<Cell>,
}

/// Something that the table should show, and whether it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What should be.
    pub what: String,
    /// The number measured.
    pub measured: f64,
    /// What it is held against.
    pub bound: f64,
    /// Whether it is at most that.
    pub holds: bool,
}

/// The cells of a setting, in the order of the table.
fn methods(setting: Setting) -> &'static [Method] {
    use Method::*;
    match setting {
        Setting::Paper => &[LocalOneOverM, Local, Descent, PaperNoise, Laplace, Gaussian, GaussianHome],
        Setting::Sound => &[LocalOneOverM, Local, Descent, Gaussian, GaussianHome],
        // Local models do not hear of the graph.
        Setting::SoundRandomGraph => &[Descent, Gaussian, GaussianHome],
    }
}

/// What the paper prints for this cell.
fn paper(setting: Setting, method: Method, epsilon: Option<f64>) -> Option<f64> {
    let private = [0.9527, 0.9545, 0.9855];
    match (setting, method, epsilon) {
        (Setting::Paper, Method::LocalOneOverM, _) => Some(1.2834),
        (Setting::Paper, Method::Descent, _) => Some(0.9502),
        (Setting::Paper, Method::PaperNoise, Some(epsilon)) => {
            EPSILONS.iter().position(|&known| known == epsilon).map(|k| private[k])
        }
        _ => None,
    }
}

/// A cell before it is measured.
struct Open {
    cell: Cell,
    private: Option<(PrivateValues, Arc<Plan>)>,
}

fn open(values: &Values, dimension: impl Fn(Setting) -> usize) -> Vec<Open> {
    let mut cells = Vec::new();
    for setting in Setting::ALL {
        for &method in methods(setting) {
            let budgets: Vec<Option<f64>> = if method.is_private() { EPSILONS.map(Some).to_vec() } else { vec![None] };
            for epsilon in budgets {
                let mut cell = Cell {
                    setting,
                    method,
                    epsilon,
                    spent: None,
                    spent_small_delta: None,
                    paper: paper(setting, method, epsilon),
                    errors: Vec::new(),
                };
                let private = epsilon.map(|epsilon| {
                    let all = &values_of(values, setting).private;
                    let own = all.iter().find(|own| own.method == method && own.epsilon == epsilon);
                    let own = *own.expect("a test has looked for the values of every cell");
                    let plan = plan(dimension(setting), &own);
                    let ledger = plan.ledger();
                    cell.spent = Some(Tight.epsilon(&ledger, delta()));
                    cell.spent_small_delta = Some(Tight.epsilon(&ledger, SMALL_DELTA));
                    (own, Arc::new(plan))
                });
                cells.push(Open { cell, private });
            }
        }
    }
    cells
}

fn values_of(values: &Values, setting: Setting) -> &SettingValues {
    match setting {
        Setting::Paper => &values.paper,
        Setting::Sound | Setting::SoundRandomGraph => &values.sound,
    }
}

/// Makes the table from the files of a folder.
pub fn table_1(folder: &Path, options: &Options, watch: Watch<'_>) -> Result<Table1, Halt> {
    let data = MovieLens::read(folder)?;
    let data = options.users.map_or_else(|| data.clone(), |users| data.first(users));
    table_of(&data, &Values::tuned(), options, watch)
}

/// Makes the table from data and values.
pub fn table_of(data: &MovieLens, values: &Values, options: &Options, watch: Watch<'_>) -> Result<Table1, Halt> {
    let Options { runs, threads, .. } = *options;
    let als: Als = values.als;
    // Worlds first, then what is done in them; `watch` hears of both as one.
    let worlds: Vec<(Setting, u64)> =
        Setting::ALL.iter().flat_map(|&setting| (1..=runs).map(move |seed| (setting, seed))).collect();
    let dimension = |setting| match setting {
        Setting::Paper => als.rank,
        _ => super::setting::films(data).row_len(),
    };
    let cells = open(values, dimension);
    let total = worlds.len() as u64 + cells.len() as u64 * runs;
    let build = |k: usize| {
        let (setting, seed) = worlds[k];
        Instance::new(data, Split::new(&data.ratings, seed), setting, &als, seed)
    };
    let built = each(worlds.len(), threads, &mut |done, _| watch(done, total), build)?;
    let instances = built.into_iter().collect::<Result<Vec<_>, Mistake>>()?;
    let before = worlds.len() as u64;
    let measure = |k: usize| {
        let (open, seed) = (&cells[k / runs as usize], 1 + k as u64 % runs);
        let setting = open.cell.setting;
        let place = worlds.iter().position(|world| *world == (setting, seed)).expect("every world was built");
        let private = open.private.as_ref().map(|(values, plan)| (values, plan));
        error(open.cell.method, &instances[place], values_of(values, setting), private, seed)
    };
    let count = cells.len() * runs as usize;
    let errors = each(count, threads, &mut |done, _| watch(before + done, total), measure)?;
    let filled = cells.into_iter().zip(errors.chunks(runs as usize));
    let cells = filled.map(|(open, errors)| Cell { errors: errors.to_vec(), ..open.cell }).collect();
    Ok(Table1 { users: data.users.len(), runs, cells })
}

impl Table1 {
    /// The cell of these.
    pub fn cell(&self, setting: Setting, method: Method, epsilon: Option<f64>) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.setting, cell.method, cell.epsilon) == (setting, method, epsilon))
    }

    fn mean(&self, setting: Setting, method: Method, epsilon: Option<f64>) -> f64 {
        self.cell(setting, method, epsilon).expect("every cell is in the table").mean()
    }

    /// What the table was made to show, and whether it does.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let at_most =
            |what: String, measured: f64, bound: f64| Verdict { what, measured, bound, holds: measured <= bound };
        let below = |what: String, measured: f64, bound: f64| Verdict {
            holds: measured < bound,
            ..at_most(what, measured, bound)
        };
        let paper = Setting::Paper;
        let mut verdicts = vec![
            at_most(
                "paper's setting: coordinate descent, at most the paper's 0.9502".into(),
                self.mean(paper, Method::Descent, None),
                0.9502,
            ),
            at_most(
                "paper's setting: home models with sound noise at epsilon 1, at most 0.9600".into(),
                self.mean(paper, Method::GaussianHome, Some(1.0)),
                0.96,
            ),
        ];
        for setting in Setting::ALL {
            // Local models do not hear of the graph, so those of one sound setting serve both.
            let alone = if setting == paper { paper } else { Setting::Sound };
            let local = [Method::LocalOneOverM, Method::Local].map(|method| self.mean(alone, method, None));
            let local = local[0].min(local[1]);
            for epsilon in EPSILONS {
                let what =
                    format!("{}: home models at epsilon {epsilon}, below the better local models", setting.name());
                verdicts.push(below(what, self.mean(setting, Method::GaussianHome, Some(epsilon)), local));
            }
        }
        verdicts
    }

    /// The table as Markdown, one block for each setting: they are never mixed.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let runs = if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) };
        let number =
            |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        for setting in Setting::ALL {
            let _ = writeln!(text, "**{}** ({} users, {runs})\n", capitalized(setting.label()), self.users);
            text += "| method | epsilon | true epsilon | at delta 1e-6 | paper | ours | spread |\n";
            text += "|---|---|---|---|---|---|---|\n";
            for cell in self.cells.iter().filter(|cell| cell.setting == setting) {
                let epsilon = cell.epsilon.map_or("-".to_owned(), |epsilon| epsilon.to_string());
                let _ = writeln!(
                    text,
                    "| {} | {epsilon} | {} | {} | {} | {:.4} | {} |",
                    cell.method.label(),
                    number(cell.spent, 3),
                    number(cell.spent_small_delta, 2),
                    number(cell.paper, 4),
                    cell.mean(),
                    number(cell.spread(), 4),
                );
            }
            text += "\n";
        }
        text += "| what should be | measured | bound | holds |\n|---|---|---|---|\n";
        for Verdict { what, measured, bound, holds } in self.verdicts() {
            let holds = if holds { "yes" } else { "no" };
            let _ = writeln!(text, "| {what} | {measured:.4} | {bound:.4} | {holds} |");
        }
        text
    }
}

fn capitalized(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use sottovoce_privacy::calibrate::NoiseKind;
    use std::ops::ControlFlow;

    fn made(threads: usize) -> Table1 {
        let options = Options { runs: 2, users: None, threads };
        let mut last = (0, 1);
        let watch = &mut |done, total| {
            assert!(done > 0 && done <= total);
            last = (done, total);
            ControlFlow::Continue(())
        };
        let table = table_of(&sample(50, 80, 3), &Values::tuned(), &options, watch).expect("a small world");
        assert_eq!(last.0, last.1, "all of it is counted");
        table
    }

    #[test]
    fn every_cell_has_a_name_of_its_own_and_a_number_of_each_run_whatever_the_threads() {
        let table = made(1);
        assert_eq!(table, made(3));
        assert_eq!(table.cells.len(), 15 + 9 + 7);
        let mut names: Vec<String> = table.cells.iter().map(Cell::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.cells.len());
        for cell in &table.cells {
            assert!(cell.errors.len() == 2 && cell.errors.iter().all(|error| *error > 0.0 && *error < 4.0), "{cell:?}");
            assert_ne!(cell.errors[0], cell.errors[1], "two runs are two splits: {}", cell.name());
        }
    }

    #[test]
    fn sound_cells_keep_their_budget_and_the_papers_noise_does_not() {
        for cell in made(2).cells {
            match (cell.epsilon, cell.spent) {
                (None, None) => assert!(!cell.method.is_private()),
                (Some(claimed), Some(spent)) => {
                    let keeps = spent <= claimed;
                    assert_eq!(keeps, cell.method != Method::PaperNoise, "{}: {spent}", cell.name());
                    let small = cell.spent_small_delta.expect("a private cell");
                    let hidden = if cell.method.noise() == NoiseKind::Gaussian { 2.0 * spent } else { spent };
                    assert!(small > hidden, "{}: a delta of exp(-5) hides {small} behind {spent}", cell.name());
                }
                half => panic!("{}: {half:?}", cell.name()),
            }
        }
    }

    #[test]
    fn means_spreads_and_verdicts_by_hand() {
        let mut table = made(2);
        for cell in &mut table.cells {
            cell.errors = vec![0.9, 1.0, 1.1];
        }
        assert!((table.cells[0].mean() - 1.0).abs() < 1e-12);
        assert!((table.cells[0].spread().expect("three runs") - 0.1).abs() < 1e-12);
        assert!(table.verdicts().iter().all(|verdict| !verdict.holds), "1.0 is neither small nor below 1.0");
        for cell in table.cells.iter_mut().filter(|cell| cell.method == Method::GaussianHome) {
            cell.errors = vec![0.95];
        }
        assert_eq!(table.cells.last().expect("cells").spread(), None);
        let verdicts = table.verdicts();
        assert_eq!(verdicts.len(), 2 + 9);
        assert!(!verdicts[0].holds && verdicts[1..].iter().all(|verdict| verdict.holds));
        let text = table.markdown();
        for setting in Setting::ALL {
            assert_eq!(text.matches(&capitalized(setting.label())).count(), 1);
        }
    }

    #[test]
    fn who_breaks_is_obeyed() {
        let options = Options { runs: 1, users: None, threads: 1 };
        let stopped = table_of(&sample(50, 80, 3), &Values::tuned(), &options, &mut |_, _| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(Halt::Interrupted)));
    }
}
