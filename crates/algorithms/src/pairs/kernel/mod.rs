//! Kernels of pairs, each with its range and with its exact sum over all pairs.
//!
//! | kernel | h(x, x') | range | the sum over n observations takes |
//! |---|---|---|---|
//! | [`Gini`] | abs(x - x') | from 0 to the width of the bounds | n log n |
//! | [`Variance`] | (x - x')^2 / 2 | from 0 to half the squared width | n |
//! | [`Kendall`] | sign(x - x') sign(y - y') | from -1 to 1 | n log n |
//! | [`Auc`] | 1 where the positive one of two classes has the higher score | from 0 to 1 | n log n |
//! | [`Scatter`] | the squared distance of two points of one cell, else 0 | from 0 to columns times the squared width | n |
//!
//! [`Kernel`] is any of them, chosen while a program runs. A kernel of one's own implements [`PairKernel`]: [`PairKernel::columns`], [`PairKernel::value`] and [`PairKernel::range`] are enough.

use crate::Bounds;
use crate::config::ConfigError;

/// A symmetric function of two observations that is zero for twice the same.
pub trait PairKernel: Send + Sync {
    /// Columns of an observation.
    fn columns(&self) -> usize;

    /// Whether the label follows the columns of an observation.
    fn has_label(&self) -> bool {
        false
    }

    /// Numbers in an observation: the columns, and the label if there is one.
    fn width(&self) -> usize {
        self.columns() + usize::from(self.has_label())
    }

    /// How many categories a row is told in, by randomized response; none where rows are told as they are.
    fn categories(&self) -> Option<u32> {
        None
    }

    /// The category of a row of these columns, where there are categories.
    fn category(&self, _row: &mut dyn Iterator<Item = f64>) -> u32 {
        0
    }

    /// h(x, x').
    fn value(&self, one: &[f64], other: &[f64]) -> f64;

    /// The smallest and the largest h, where the columns are within public bounds; `None` where h is not bounded without them.
    fn range(&self, bounds: Option<Bounds>) -> Option<Bounds>;

    /// The sum of h over all pairs u < v of observations, which stand one after another. By its definition, in time n^2, unless a kernel knows better.
    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        let width = self.width();
        let mut sum = 0.0;
        for (at, one) in observations.chunks_exact(width).enumerate() {
            let others = observations[(at + 1) * width..].chunks_exact(width);
            sum += others.map(|other| self.value(one, other)).sum::<f64>();
        }
        sum
    }
}

fn within(low: f64, high: f64) -> Option<Bounds> {
    Some(Bounds { low, high })
}

fn width_of(bounds: Bounds) -> f64 {
    bounds.high - bounds.low
}

/// Gini's mean difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gini;

impl PairKernel for Gini {
    fn columns(&self) -> usize {
        1
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        (one[0] - other[0]).abs()
    }

    fn range(&self, bounds: Option<Bounds>) -> Option<Bounds> {
        within(0.0, width_of(bounds?))
    }

    /// sum_{u<v} (x_(v) - x_(u)) = sum_u (2 u + 1 - n) x_(u) with u from 0, from the middle so that nothing large cancels.
    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        let mut sorted = observations.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(&middle) = sorted.get(sorted.len() / 2) else { return 0.0 };
        let above = 1.0 - sorted.len() as f64;
        sorted.iter().enumerate().map(|(rank, value)| (2.0 * rank as f64 + above) * (value - middle)).sum()
    }
}

/// The variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variance;

impl PairKernel for Variance {
    fn columns(&self) -> usize {
        1
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        let difference = one[0] - other[0];
        difference * difference / 2.0
    }

    fn range(&self, bounds: Option<Bounds>) -> Option<Bounds> {
        let width = width_of(bounds?);
        within(0.0, width * width / 2.0)
    }

    /// sum_{u<v} (x_u - x_v)^2 / 2 = n / 2 sum_u (x_u - mean)^2.
    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        squared_distances(observations.iter().map(std::slice::from_ref), 1) / 2.0
    }
}

/// sum_{u<v} |x_u - x_v|^2 = n sum_u |x_u - mean|^2.
fn squared_distances<'a>(points: impl Iterator<Item = &'a [f64]> + Clone, columns: usize) -> f64 {
    let mut mean = vec![0.0; columns];
    let mut count = 0.0;
    for point in points.clone() {
        count += 1.0;
        mean.iter_mut().zip(point).for_each(|(mean, value)| *mean += (value - *mean) / count);
    }
    count * points.map(|point| squared_distance(point, &mean)).sum::<f64>()
}

fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
}

/// Kendall's tau of two columns. Pairs with a tie count zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kendall;

impl PairKernel for Kendall {
    fn columns(&self) -> usize {
        2
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        sign(one[0], other[0]) * sign(one[1], other[1])
    }

    fn range(&self, _: Option<Bounds>) -> Option<Bounds> {
        within(-1.0, 1.0)
    }

    /// Knight (1966): with the observations sorted by both columns, pairs out of order in the second are the discordant ones; pairs that are
    /// neither these nor tied are concordant.
    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        let mut pairs: Vec<(f64, f64)> =
            observations.as_chunks::<2>().0.iter().map(|&[x, y]| (plain(x), plain(y))).collect();
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut second: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        let discordant = count_inversions(&mut second);
        let tied = tied_pairs(&pairs, |a, b| a.0 == b.0) + tied_pairs(&second, |a, b| a == b);
        let comparable = pairs_of(pairs.len()) + tied_pairs(&pairs, |a, b| a == b) - tied;
        comparable as f64 - 2.0 * discordant as f64
    }
}

fn sign(one: f64, other: f64) -> f64 {
    f64::from(i8::from(one > other) - i8::from(one < other))
}

/// Zero has one sign, so that sorting and comparing agree.
fn plain(value: f64) -> f64 {
    value + 0.0
}

fn pairs_of(n: usize) -> u64 {
    let n = n as u64;
    n * n.saturating_sub(1) / 2
}

/// Pairs within runs of equals.
fn tied_pairs<T>(sorted: &[T], equal: impl FnMut(&T, &T) -> bool) -> u64 {
    sorted.chunk_by(equal).map(|run| pairs_of(run.len())).sum()
}

/// Sorts, and counts the pairs that stood in the wrong order.
fn count_inversions(values: &mut [f64]) -> u64 {
    let mut merged = Vec::with_capacity(values.len());
    let (mut run, mut inversions) = (1, 0);
    while run < values.len() {
        for both in values.chunks_mut(2 * run).filter(|both| both.len() > run) {
            merged.clear();
            let (left, right) = both.split_at(run);
            let mut next = 0;
            for &value in right {
                while next < left.len() && left[next] <= value {
                    merged.push(left[next]);
                    next += 1;
                }
                inversions += (left.len() - next) as u64;
                merged.push(value);
            }
            merged.extend_from_slice(&left[next..]);
            both.copy_from_slice(&merged);
        }
        run *= 2;
    }
    inversions
}

/// What a pair of two classes with equal scores counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// Nothing, as in equation (3.11) of the thesis.
    #[default]
    Zero,
    /// One half, as Mann and Whitney.
    Half,
}

impl Ties {
    fn credit(self) -> f64 {
        match self {
            Ties::Zero => 0.0,
            Ties::Half => 0.5,
        }
    }
}

/// The area under the ROC curve: an observation is a score and a label, positive where it is above zero. The AUC is U2 times [`auc_factor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auc {
    /// What equal scores count.
    pub ties: Ties,
}

impl PairKernel for Auc {
    fn columns(&self) -> usize {
        1
    }

    fn has_label(&self) -> bool {
        true
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        let (positive, negative) = match (one[1] > 0.0, other[1] > 0.0) {
            (true, false) => (one[0], other[0]),
            (false, true) => (other[0], one[0]),
            _ => return 0.0,
        };
        if positive == negative { self.ties.credit() } else { f64::from(u8::from(positive > negative)) }
    }

    fn range(&self, _: Option<Bounds>) -> Option<Bounds> {
        within(0.0, 1.0)
    }

    /// By increasing score: each positive one is above the negative ones before it.
    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        let mut scored: Vec<(f64, bool)> =
            observations.as_chunks::<2>().0.iter().map(|&[score, label]| (plain(score), label > 0.0)).collect();
        scored.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (mut below, mut sum) = (0.0, 0.0);
        for equals in scored.chunk_by(|a, b| a.0 == b.0) {
            let positive = equals.iter().filter(|(_, positive)| *positive).count() as f64;
            let negative = equals.len() as f64 - positive;
            sum += positive * (below + self.ties.credit() * negative);
            below += negative;
        }
        sum
    }
}

/// The squared distances within the cells of a public partition (Colin, Bellet, Salmon and Clemencon 2015): a point is in the cell of the
/// nearest of some centres, the first where several are.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    columns: usize,
    centres: Box<[f64]>,
}

impl Scatter {
    /// Centres of so many columns, one after another.
    pub fn new(columns: usize, centres: &[f64]) -> Result<Self, ConfigError> {
        crate::config::at_least_one("columns", columns)?;
        if centres.is_empty()
            || !centres.len().is_multiple_of(columns)
            || !centres.iter().all(|value| value.is_finite())
        {
            let value = format!("{} numbers for {columns} columns", centres.len());
            return Err(ConfigError { field: "centres", value, accepted: "one or more whole rows of finite numbers" });
        }
        Ok(Scatter { columns, centres: centres.into() })
    }

    fn cell(&self, point: &[f64]) -> usize {
        let distances = self.centres.chunks_exact(self.columns).map(|centre| squared_distance(point, centre));
        distances
            .enumerate()
            .fold((0, f64::INFINITY), |best, (cell, far)| if far < best.1 { (cell, far) } else { best })
            .0
    }
}

impl PairKernel for Scatter {
    fn columns(&self) -> usize {
        self.columns
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        if self.cell(one) == self.cell(other) { squared_distance(one, other) } else { 0.0 }
    }

    fn range(&self, bounds: Option<Bounds>) -> Option<Bounds> {
        let width = width_of(bounds?);
        within(0.0, self.columns as f64 * width * width)
    }

    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        let mut points: Vec<(usize, &[f64])> =
            observations.chunks_exact(self.columns).map(|point| (self.cell(point), point)).collect();
        points.sort_by_key(|(cell, _)| *cell);
        let cells = points.chunk_by(|a, b| a.0 == b.0);
        cells.map(|cell| squared_distances(cell.iter().map(|(_, point)| *point), self.columns)).sum()
    }
}

/// One of the kernels here.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// Gini's mean difference.
    Gini(Gini),
    /// The variance.
    Variance(Variance),
    /// Kendall's tau.
    Kendall(Kendall),
    /// The area under the ROC curve.
    Auc(Auc),
    /// The scatter within cells.
    Scatter(Scatter),
}

/// The same of whichever kernel it is.
macro_rules! of_any {
    ($kernel:expr, $inner:ident => $what:expr) => {
        match $kernel {
            Kernel::Gini($inner) => $what,
            Kernel::Variance($inner) => $what,
            Kernel::Kendall($inner) => $what,
            Kernel::Auc($inner) => $what,
            Kernel::Scatter($inner) => $what,
        }
    };
}

impl PairKernel for Kernel {
    fn columns(&self) -> usize {
        of_any!(self, kernel => kernel.columns())
    }

    fn has_label(&self) -> bool {
        of_any!(self, kernel => kernel.has_label())
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        of_any!(self, kernel => kernel.value(one, other))
    }

    fn range(&self, bounds: Option<Bounds>) -> Option<Bounds> {
        of_any!(self, kernel => kernel.range(bounds))
    }

    fn sum_over_pairs(&self, observations: &[f64]) -> f64 {
        of_any!(self, kernel => kernel.sum_over_pairs(observations))
    }
}

/// What U2 of n observations is multiplied by to get the usual U, the mean over pairs of two different ones: n / (n - 1).
pub fn usual_factor(observations: usize) -> Result<f64, ConfigError> {
    if observations < 2 {
        let value = observations.to_string();
        return Err(ConfigError { field: "observations", value, accepted: "two or more, so that there is a pair," });
    }
    Ok(observations as f64 / (observations as f64 - 1.0))
}

/// What U2 is multiplied by to get the AUC: n^2 / (2 n+ n-).
pub fn auc_factor(positives: usize, negatives: usize) -> Result<f64, ConfigError> {
    if positives == 0 || negatives == 0 {
        let value = format!("{positives} positive and {negatives} negative");
        return Err(ConfigError { field: "labels", value, accepted: "at least one of each class" });
    }
    let (positives, negatives) = (positives as f64, negatives as f64);
    let all = positives + negatives;
    Ok(all * all / (2.0 * positives * negatives))
}

#[cfg(test)]
mod tests;
