//! A private task with other budgets and other numbers of updates: what a report shows of it.

/// What came of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// By epsilon, in order.
    pub epsilons: Vec<Point>,
    /// By number of updates, in order.
    pub updates: Vec<Point>,
    /// Why there are no points.
    pub skipped: Option<String>,
}

/// One run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The epsilon, or the number of updates.
    pub at: f64,
    /// Whether this is the task's own setting.
    pub own: bool,
    /// The mean score of what agents broadcast.
    pub broadcast: Option<f64>,
    /// The mean score of their home models.
    pub home: Option<f64>,
}

impl Sweep {
    /// A sweep without points, and why it has none.
    pub fn skipped(why: impl Into<String>) -> Self {
        Sweep { skipped: Some(why.into()), ..Sweep::default() }
    }

    /// A sweep that the user did not want.
    pub fn not_wanted() -> Self {
        Sweep::skipped("It was turned off.")
    }

    /// Of real peers there is none.
    pub fn of_peers() -> Self {
        Sweep::skipped("Scores of real peers are known to their owners alone.")
    }
}
