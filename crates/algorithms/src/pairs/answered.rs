//! Gossip about pairs of randomized answers (thesis, Remark 3.5): a kernel for `exchange.rs`.
//!
//! Each row is told once by randomized response, when its owner starts; after that its answer wanders in the place of the row, for free. With r the answers, A the
//! kernel of the middles of categories, b = beta / k in each place and e_r a one in place r (see `answers/response.rs`),
//!
//! hhat(r, r') = (1 - beta)^-2 (e_r - b)^T A (e_{r'} - b)
//!
//! is h in expectation, for two different rows. For one and the same row it is not zero: an answer carries a number of its own, and a row that holds its own answer
//! counts zero. So n / (n - 1) U2 is the mean over pairs of two different rows, which `answers/response.rs` computes from all answers.
//!
//! An observation is the answer, the label where there is one, and the number.

use super::answers::response::Response;
use super::kernel::{Kernel, PairKernel};
use crate::Bounds;

/// A kernel of rows, or of their randomized answers.
#[derive(Clone, Debug, PartialEq)]
pub enum RowsOrAnswers {
    /// Rows leave as they are.
    Rows(Kernel),
    /// Answers leave in their place.
    Answers(Answered),
}

/// hhat.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    columns: usize,
    has_label: bool,
    response: Response,
    /// hhat of all pairs of answers; of two classes, the positive one first.
    values: Box<[f64]>,
    range: Option<Bounds>,
}

impl Answered {
    /// Of a kernel of so many columns.
    pub fn new(kernel: &Kernel, response: Response) -> Self {
        let values = response.debiased();
        let (low, high) =
            values.iter().fold((0.0f64, 0.0f64), |(low, high), value| (low.min(*value), high.max(*value)));
        let range = Some(Bounds { low, high });
        Answered { columns: kernel.columns(), has_label: kernel.has_label(), response, values, range }
    }

    /// What all answers together are worth.
    pub fn response(&self) -> &Response {
        &self.response
    }
}

impl PairKernel for Answered {
    fn columns(&self) -> usize {
        self.columns
    }

    fn has_label(&self) -> bool {
        self.has_label
    }

    fn width(&self) -> usize {
        2 + usize::from(self.has_label)
    }

    fn categories(&self) -> Option<u32> {
        Some(self.response.categories())
    }

    fn category(&self, row: &mut dyn Iterator<Item = f64>) -> u32 {
        self.response.category(row)
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        let is_same = one[one.len() - 1] == other[other.len() - 1];
        let at =
            |one: f64, other: f64| self.values[one as usize * self.response.categories() as usize + other as usize];
        match (self.has_label, one[1] > 0.0, other[1] > 0.0) {
            _ if is_same => 0.0,
            (true, true, true) | (true, false, false) => 0.0,
            (true, false, true) => at(other[0], one[0]),
            _ => at(one[0], other[0]),
        }
    }

    fn range(&self, _: Option<Bounds>) -> Option<Bounds> {
        self.range
    }
}

/// The same of whichever it is.
macro_rules! of_either {
    ($kernel:expr, $inner:ident => $what:expr) => {
        match $kernel {
            RowsOrAnswers::Rows($inner) => $what,
            RowsOrAnswers::Answers($inner) => $what,
        }
    };
}

impl PairKernel for RowsOrAnswers {
    fn columns(&self) -> usize {
        of_either!(self, kernel => kernel.columns())
    }

    fn has_label(&self) -> bool {
        of_either!(self, kernel => kernel.has_label())
    }

    fn width(&self) -> usize {
        of_either!(self, kernel => kernel.width())
    }

    fn categories(&self) -> Option<u32> {
        of_either!(self, kernel => kernel.categories())
    }

    fn category(&self, row: &mut dyn Iterator<Item = f64>) -> u32 {
        of_either!(self, kernel => kernel.category(row))
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        of_either!(self, kernel => kernel.value(one, other))
    }

    fn range(&self, bounds: Option<Bounds>) -> Option<Bounds> {
        of_either!(self, kernel => kernel.range(bounds))
    }

    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        of_either!(self, kernel => kernel.sum_over_pairs(observations))
    }
}
