//! Tables of keys: every key, its type, default and range.
//!
//! A table checks files and renders the documentation, so the two cannot disagree. That of task files is [`shared`] with the algorithms' own
//! keys behind it ([`crate::read::KEYS`]).

use crate::rows::LIBSVM_INDEX_MAX;
use std::fmt;

/// The largest number of stumps: a whole model with all of them still fits into a letter.
pub const STUMPS_MAX: i64 = 1_000_000;

/// The most rounds of a token: their charges are planned one by one.
const ROUNDS_MAX: i64 = 1_000_000;
/// The most contributions to tokens, for the same reason.
pub const CHARGES_MAX: i64 = 1_000_000;
/// The most hops of tokens in a run.
const HOPS_MAX: i64 = 1 << 40;

/// A set of finite numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    low: f64,
    low_included: bool,
    high: f64,
    high_included: bool,
}

/// Positive and finite.
pub const ABOVE_0: Range = Range { low: 0.0, low_included: false, high: f64::INFINITY, high_included: false };
/// From 1 to below 2.
pub const FROM_1_BELOW_2: Range = Range { low: 1.0, low_included: true, high: 2.0, high_included: false };
/// From zero on, finite.
pub const FROM_0: Range = Range { low_included: true, ..ABOVE_0 };
const BELOW_1: Range = Range { high: 1.0, ..FROM_0 };
const SHARE: Range = Range { high_included: true, ..INSIDE_0_1 };
const PROBABILITY: Range = Range { high_included: true, ..BELOW_1 };
/// The most of anything that is counted.
pub const COUNT: i64 = u32::MAX as i64;
const INSIDE_0_1: Range = Range { low_included: false, ..BELOW_1 };

impl Range {
    /// Any finite number.
    pub const ANY: Range =
        Range { low: f64::NEG_INFINITY, low_included: false, high: f64::INFINITY, high_included: false };

    /// Above one number, up to another.
    pub const fn above_up_to(low: f64, high: f64) -> Self {
        Range { low, low_included: false, high, high_included: true }
    }

    /// Whether `x` is finite and in the range.
    pub fn contains(&self, x: f64) -> bool {
        x.is_finite()
            && (if self.low_included { x >= self.low } else { x > self.low })
            && (if self.high_included { x <= self.high } else { x < self.high })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = if self.low_included { "from" } else { "above" };
        match (self.high == f64::INFINITY, self.high_included) {
            (true, _) if self.low == f64::NEG_INFINITY => write!(f, "a finite number"),
            (true, _) => write!(f, "a finite number {low} {}", self.low),
            (false, true) => write!(f, "a number {low} {} to {}", self.low, self.high),
            (false, false) => write!(f, "a number {low} {} to below {}", self.low, self.high),
        }
    }
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A section such as `[data]`, or an inline table.
    Table,
    /// An inline table, or false.
    TableOrFalse,
    /// An array of inline tables.
    Tables,
    /// Any text.
    Text,
    /// An array of texts.
    Texts,
    /// A path, relative to the task file.
    File,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// true or false.
    Switch,
    /// A whole number between two.
    Integer(i64, i64),
    /// A whole number between two, or one of these words.
    IntegerOr(i64, i64, &'static [&'static str]),
    /// A number.
    Number(Range),
    /// A number or a word.
    NumberOr(Range, &'static str),
    /// An array of two finite numbers, the larger one last.
    Interval,
    /// An array of arrays of finite numbers, all of the same length.
    Points,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Table => write!(f, "a table"),
            Kind::TableOrFalse => write!(f, "a table, or false"),
            Kind::Tables => write!(f, "an array of tables"),
            Kind::Text => write!(f, "text"),
            Kind::Texts => write!(f, "an array of texts"),
            Kind::File => write!(f, "a path"),
            Kind::Choice(words) => {
                for (k, word) in words.iter().enumerate() {
                    let join = if k == 0 { "" } else { [", ", " or "][usize::from(k + 1 == words.len())] };
                    write!(f, "{join}\"{word}\"")?;
                }
                Ok(())
            }
            Kind::Switch => write!(f, "true or false"),
            Kind::Integer(low, i64::MAX) => write!(f, "a whole number from {low}"),
            Kind::Integer(low, high) => write!(f, "a whole number from {low} to {high}"),
            Kind::IntegerOr(low, high, words) => {
                write!(f, "a whole number from {low} to {high}, or {}", Kind::Choice(words))
            }
            Kind::Number(range) => write!(f, "{range}"),
            Kind::NumberOr(range, word) => write!(f, "{range}, or \"{word}\""),
            Kind::Interval => write!(f, "two finite numbers, the larger one last"),
            Kind::Points => write!(f, "arrays of finite numbers, as many in each"),
        }
    }
}

/// One key of a task file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it stands, like `model.trade-off`.
    pub path: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What holds when it is absent, in words.
    pub default: &'static str,
    /// What it means, in one line.
    pub doc: &'static str,
}

/// One line of a table of keys.
pub const fn key(path: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { path, kind, default, doc }
}

/// What `graph.kind` can be.
pub const GRAPH_KINDS: &[&str] =
    &["ring", "complete", "torus", "watts-strogatz", "erdos-renyi", "knn", "similarity", "learned"];

/// What `statistic.kind` can be.
pub const STATISTICS: &[&str] = &["mean", "sum", "histogram", "variance", "gini", "kendall", "auc", "scatter"];

/// The keys that are not one algorithm's own, in the order of the documentation; `algorithms` are the names there are.
#[rustfmt::skip]
pub fn shared(algorithms: &'static [&'static str]) -> Vec<Key> { vec![
    key("name", Kind::Text, "`\"task\"`", "What the report calls the task."),
    key("algorithm", Kind::Choice(algorithms), "required", "What the agents run."),

    key("data", Kind::Table, "required", "Whose points, and how they are prepared."),
    key("data.train", Kind::File, "required", "Training points: `.csv` with the header `agent,label,<feature>...`, or `.libsvm` / `.svm`; each also with `.gz`. Of a statistic: `.csv` with the header `agent,<column>...`."),
    key("data.test", Kind::File, "no test points", "Test points, in the same format and with the same columns. Not together with `split`."),
    key("data.split", Kind::Number(BELOW_1), "no test points", "The share of each agent's training points set aside for testing; one point at least stays for training."),
    key("data.split-seed", Kind::Integer(0, i64::MAX), "1", "The seed of that split. An agent's split depends on the seed and its name alone."),
    key("data.agents", Kind::File, "required for libsvm", "The agent of each line of a libsvm training file, one name per line."),
    key("data.test-agents", Kind::File, "required for libsvm", "The same for a libsvm test file."),
    key("data.dimension", Kind::Integer(1, LIBSVM_INDEX_MAX as i64), "the largest index; required for libsvm with [privacy]", "How many features a libsvm file has. A larger index is a mistake; with [privacy] its entry is dropped."),
    key("data.record", Kind::Text, "none", "The column with the id of each row's record, for [budgets over tasks](privacy.md#budgets-over-tasks): the second one of csv files, `agent,<record>,label,<feature>...`. It is no feature, and never leaves. Empty ids are one record together."),
    key("data.normalize", Kind::Choice(&["none", "l1", "l2"]), "`\"none\"`", "Divides each x by max(1, \\|x\\|) in this norm."),
    key("data.feature-bound", Kind::Number(ABOVE_0), "1 with `normalize`, else none", "A public bound on \\|x\\|, before an intercept: in L2 for Gaussian noise and with `normalize = \"l2\"`, else in L1. Points beyond it are shrunk to it. A private task without one is refused; not used without privacy."),

    key("statistic", Kind::Table, "none", "What is measured of everybody's data, by an algorithm that yields an estimate; then there is no model, and no test data."),
    key("statistic.kind", Kind::Choice(STATISTICS), "required", "What is measured. Means and sums are over all rows; variance, gini, kendall, auc and scatter are means over all pairs of two different rows. Not every algorithm measures every statistic."),
    key("statistic.columns", Kind::Texts, "all but `agent`, `label` and the column of `data.record`", "The columns it is measured of, one after another. variance and gini have one, kendall two, scatter one or more; auc one, the score, besides the column `label` of -1 and 1 (or 0 and 1), which is public."),
    key("statistic.range", Kind::Interval, "none", "Public bounds of all values; a value outside is moved to the bound."),
    key("statistic.rows", Kind::Integer(1, COUNT), "as many as there are", "Of pairs: how many rows all agents have together. Real peers must agree on it, for none of them knows all others."),
    key("statistic.positives", Kind::Integer(1, COUNT), "as many as there are", "auc: how many of all rows have the label 1. Real peers must agree on it."),
    key("statistic.ties", Kind::Choice(&["zero", "half"]), "`\"zero\"`; `\"half\"` where rows are told in bins", "auc: what a pair of two classes with equal scores counts."),
    key("statistic.bins", Kind::Integer(2, 1 << 20), "required for a histogram; round(rows^(1/4) sqrt(epsilon)), at least 2, for pairs; hierarchical-auc: 1024", "histogram: into how many equal bins `range` is cut, at most 65536; the last one holds its end. randomized-response: equal bins of each column over `range`; at most 4096 of all columns together. hierarchical-auc: leaves of its tree, a power of two."),
    key("statistic.consistent", Kind::Switch, "`true`", "hierarchical-auc: whether the counts of the tree are made to add up."),
    key("statistic.bits", Kind::Integer(1, 32), "32", "two-party: bits of a value on the grid that circuits compute on, between the bounds of `range`."),
    key("statistic.centres", Kind::Points, "one cell", "scatter: public points, each the middle of a cell; a row belongs to the nearest, and pairs of two cells count zero."),
    key("statistic.agents", Kind::Integer(1, COUNT), "as many as have rows", "How many agents there are, for a sum. Real peers must agree on it, for none of them knows all others."),

    key("graph", Kind::Table, "required; for ring, gopa, federated-averaging, randomized-response, hierarchical-auc and two-party none is accepted", "Who works with whom: `edges` or `kind`, not both. Members of a ring are all members, in the order of their names."),
    key("graph.edges", Kind::File, "none", "A `.csv` or `.csv.gz` with the header `a,b,weight`: undirected, each pair once, weights above 0."),
    key("graph.kind", Kind::Choice(GRAPH_KINDS), "none", "A graph made here, with the agents in the order of their names. \"learned\": together with the models, with algorithm = \"coordinate-descent\" or \"frank-wolfe\"; with [privacy] the first only."),
    key("graph.allow-isolated", Kind::Switch, "`false`", "Whether an agent with data may have no edge; it then learns alone."),
    key("graph.rows", Kind::Integer(1, COUNT), "required for torus", "torus: rows; rows x columns is the number of agents."),
    key("graph.columns", Kind::Integer(1, COUNT), "required for torus", "torus: columns."),
    key("graph.neighbours", Kind::Integer(1, COUNT), "10; for knn all others if they are fewer", "knn: how many nearest agents each one chooses, by the cosine of the agents' means of label times x over the training points. watts-strogatz: neighbours in the lattice before rewiring, rounded down to even."),
    key("graph.rewire", Kind::Number(PROBABILITY), "0.1", "watts-strogatz: the probability that an edge is rewired."),
    key("graph.probability", Kind::Number(PROBABILITY), "required for erdos-renyi", "erdos-renyi: the probability of each edge."),
    key("graph.vectors", Kind::File, "required for similarity", "similarity: a `.csv` or `.csv.gz` with the header `agent,<coordinate>...` and one row for each agent."),
    key("graph.width", Kind::Number(ABOVE_0), "0.1", "similarity: W_ij = exp((cos phi_ij - 1) / width), phi_ij the angle between the two agents' vectors."),
    key("graph.threshold", Kind::NumberOr(BELOW_1, "connected"), "`\"connected\"`", "similarity: drops W_ij <= threshold. \"connected\" takes the largest max(W) 10^(-j/2), j = 1, 2, .., that leaves the graph connected."),
    key("graph.seed", Kind::Integer(0, i64::MAX), "1", "watts-strogatz and erdos-renyi: the seed."),

    key("graph.sample", Kind::Integer(1, COUNT), "10", "learned: how many peers, drawn at random, an agent asks at each wake of a graph turn."),
    key("graph.sparsity", Kind::Number(ABOVE_0), "10 for frank-wolfe, 0.1 for coordinate-descent", "learned: lambda_3. With less of it an agent has fewer and heavier edges."),
    key("graph.strength", Kind::Number(ABOVE_0), "1.0; 0.1 with [privacy]", "learned: nu, the weight of the graph's own part of the objective, against losses and differences."),
    key("graph.first-wakes", Kind::Number(FROM_0), "20", "learned: wakes per agent on the first graph, from purely local models; with [privacy] from models of zeros, or from the warm start."),
    key("graph.model-wakes", Kind::Number(ABOVE_0), "20; 20 + 2 x updates + warm.wakes with [privacy]", "learned: wakes per agent on models before the graph is refreshed."),
    key("graph.graph-wakes", Kind::Number(ABOVE_0), "10; 100 with [privacy]", "learned: wakes per agent on the graph each time that it is refreshed."),
    key("graph.model-step", Kind::Choice(&["gradient", "newton"]), "`\"gradient\"`", "learned, coordinate-descent: what an agent does at a wake on its model. \"newton\" needs far fewer wakes and messages where features go together, and solves a system of equations each time. Not with [privacy]."),
    key("graph.oracle", Kind::File, "none", "learned: a graph to compare with, like `edges`. Nobody learns from it."),
    key("graph.groups", Kind::File, "none", "learned: a `.csv` or `.csv.gz` with the header `agent,group`, one row for each agent, for pictures and figures only."),

    key("model", Kind::Table, "all defaults", "The objective."),
    key("model.loss", Kind::Choice(&["logistic", "squared", "smoothed-hinge", "hinge"]), "`\"logistic\"`", "Labels are -1 and 1 (or 0 and 1), for the squared loss any number. \"hinge\" is not smooth: not with coordinate-descent."),
    key("model.regularization", Kind::NumberOr(FROM_0, "1/m"), "`\"1/m\"`; 0 where all learn one model", "lambda_i: a number, or one over the agent's number of points."),
    key("model.trade-off", Kind::Number(ABOVE_0), "1.0; 5.0 for coordinate-descent with a learned graph", "mu: the weight of the agents' own losses against the agreement with their neighbours."),
    key("model.intercept", Kind::Switch, "`false`", "Appends a constant feature, after normalizing."),
    key("model.constant", Kind::Number(ABOVE_0), "1", "That feature, with intercept = true. The larger, the less regularization and differences between neighbours weigh on intercepts: for agents that differ most in how many of their labels are 1."),
    key("model.points-max", Kind::Integer(1, COUNT), "the largest m_i", "Confidence is min(1, m_i / points-max)."),
    key("model.step", Kind::Number(ABOVE_0), "required for gradient steps", "walk-sgd, muffliato-sgd, federated-averaging: gamma, the constant size of a gradient step. But for federated-averaging, with [privacy] at most 2 / s, s the largest second derivative of the loss times the bound on the features squared: then a step is a contraction, which the guarantee of walk-sgd needs."),
    key("model.radius", Kind::Number(ABOVE_0), "none", "walk-sgd, muffliato-sgd: after each step the model is brought back to this norm."),
    key("model.local-steps", Kind::Integer(1, COUNT), "1", "federated-averaging: how many steps a member takes on its own points in a round."),
    key("model.start", Kind::Choice(&["local", "zero", "warm"]), "`\"local\"`; `\"zero\"` with [privacy]", "The first models. \"warm\" needs [privacy] and privacy.warm; \"local\" is refused with it."),

    key("boosting", Kind::Table, "all defaults", "Read when algorithm = \"frank-wolfe\"; and for the comparison, when the graph is learned."),
    key("boosting.predictors", Kind::IntegerOr(1, STUMPS_MAX, &["columns"]), "200", "How many decision stumps at least, as many for each feature, with thresholds over `range`. \"columns\": none; each column of the data is what one base predictor says."),
    key("boosting.range", Kind::Interval, "from the smallest to the largest number in anybody's training points", "Where the thresholds of stumps lie. Real peers must agree on it, for none of them knows the others' points."),
    key("boosting.radius", Kind::Number(ABOVE_0), "10", "beta: the weights of an agent's base predictors have at most this sum of sizes."),
    key("boosting.step", Kind::Choice(&["global-clock", "local-clock", "descent"]), "`\"local-clock\"`", "gamma: 2 / (time + 2), 2 / (own wakes + 2), or as far as the objective surely falls."),
    key("boosting.local-rounds", Kind::Integer(1, COUNT), "1000", "Rounds of boosting alone and of all points as one, for the comparison; and alone before the first graph is learned."),

    key("run", Kind::Table, "all defaults", "How long, and with which clock."),
    key("run.wakes-per-agent", Kind::Integer(1, COUNT), "200; 200000 with `tolerance`; 20 + 2 x updates + warm.wakes with [privacy], and with a learned graph too first-wakes + 2 x model-wakes + graph-wakes", "Mean wakes per agent: the schedule has agents x this many. With `tolerance`, the most there can be."),
    key("run.tolerance", Kind::Number(ABOVE_0), "none", "Ends the run when no agent moves by more than this in ten wakes (a tenth in each) and nothing is in flight. For frank-wolfe: when the duality gap, which bounds the distance from the minimum, is at most this. Not with a learned graph."),
    key("run.rounds", Kind::Integer(1, ROUNDS_MAX), "1; from the graph's second eigenvalue and the noise for muffliato and muffliato-sgd; 100 for polar-sgd; 10 for federated-averaging", "ring: how often the token goes round; gopa: how many sums there are. The estimate is over all rounds. muffliato: how often everyone writes to its neighbours, muffliato-sgd: in each step; by default until what mixing leaves is a tenth of the noise of an estimate, or a billionth without noise. polar-sgd: how often servers average their models; federated-averaging: how often updates are summed."),
    key("run.accelerated", Kind::Switch, "true", "muffliato, muffliato-sgd: whether rounds mix by Chebyshev's polynomials, which takes about the square root of the rounds."),
    key("run.hops", Kind::Integer(1, HOPS_MAX), "required for walks", "walk, walk-sgd: how many hops all tokens make together. Each hop is a visit of a member that is drawn anew among all."),
    key("run.clock", Kind::Choice(&["uniform", "poisson"]), "`\"uniform\"`", "How wakes follow each other: a uniform agent at each tick, or a Poisson clock for each agent."),
    key("run.seed", Kind::Integer(0, i64::MAX), "1", "The seed of the run."),

    key("faults", Kind::Table, "no faults", "Faults of the simulated network. Times are in mean intervals between two wakes of one agent."),
    key("faults.loss", Kind::Number(BELOW_1), "0", "The probability that a message is lost."),
    key("faults.duplicate", Kind::Number(BELOW_1), "0", "The probability that a message arrives twice."),
    key("faults.delay", Kind::Table, "none", "How long messages travel; unequal delays reorder them."),
    key("faults.delay.mean", Kind::Number(FROM_0), "0", "The mean delay."),
    key("faults.delay.max", Kind::Number(FROM_0), "10 x mean", "The longest delay; at least the mean."),
    key("faults.leave", Kind::Number(BELOW_1), "0", "The share of agents that leave for a while and return."),
    key("faults.die", Kind::Number(BELOW_1), "0", "The share of agents that leave for good."),
    key("faults.partitions", Kind::Tables, "none", "Times at which the network is cut in two."),
    key("faults.partitions.from", Kind::Number(FROM_0), "required", "When the cut begins."),
    key("faults.partitions.to", Kind::Number(ABOVE_0), "required", "When it heals; after `from`."),
    key("faults.partitions.share", Kind::Number(INSIDE_0_1), "0.5", "The share of agents on one side."),
    key("faults.until", Kind::Number(FROM_0), "the end of the run", "When all faults end."),

    key("privacy", Kind::Table, "epsilon = infinity", "What each agent may give away, with an algorithm that can be private: see the table of algorithms."),
    key("privacy.epsilon", Kind::Number(ABOVE_0), "required", "The budget of each agent."),
    key("privacy.delta", Kind::Number(BELOW_1), "required; 0 for a statistic with Laplace noise or randomized response, and for two-party", "The probability with which the guarantee may fail; above 0 for Gaussian noise. Well below 1 / points."),
    key("privacy.mechanism", Kind::Choice(&["gaussian", "laplace"]), "`\"gaussian\"`", "The noise of each update, or of each noisy hop of a token."),
    key("privacy.unit", Kind::Choice(&["record", "agent"]), "`\"record\"`", "ring, walk, muffliato, gopa: whose replacement the guarantee is about, of one row or of all rows of an agent. With \"agent\" an agent contributes the mean of its rows, and means and sums are over agents."),
    key("privacy.colluders", Kind::Integer(1, COUNT), "1", "ring, walk, walk-sgd: how many members may put together what they see. On a ring more than one needs token.noise = \"all\"."),
    key("privacy.contributions", Kind::Integer(1, CHARGES_MAX), "ceil(1.2 x hops / agents)", "walk, walk-sgd: at how many visits a member contributes, to all tokens together. Beyond them it adds noise alone."),
    key("privacy.present", Kind::Number(SHARE), "1", "walk, walk-sgd: the least share of the members that is present at every hop. With fewer members an observer sees the token more often, and the noise is made for that. gopa, federated-averaging: the least share that finishes. Noise is planned for them; with fewer the sum is void, and nobody opens anything."),
    key("privacy.honest", Kind::Number(SHARE), "1", "gopa, federated-averaging: the least share of the members that does not collude. Members declare it: what is promised holds against everyone and the others together."),
    key("privacy.neighbours", Kind::Integer(1, COUNT), "as many as it takes", "gopa, federated-averaging: how many others each member picks, to share pads with. Too few for a proof are refused."),
    key("privacy.masks", Kind::Choice(&["pads", "gaussian"]), "`\"pads\"`", "gopa, federated-averaging: what hides contributions. Gaussian masks are refused: what they hide depends on the graph, which nobody knows before the run."),
    key("privacy.verify", Kind::Switch, "`false`", "gopa, federated-averaging: whether members prove what they publish. This version proves nothing, so `true` is refused."),
    key("privacy.trust", Kind::Choice(&["network", "curator", "nobody"]), "`\"network\"`", "walk-sgd: \"network\": members see the token when they hold it. To compare with: \"curator\", who is trusted with all data and makes the same steps; \"nobody\": each contribution is protected from everyone by its own noise."),
    key("privacy.pairs", Kind::IntegerOr(1, 32, &["worst", "mean"]), "`\"worst\"`; for two-party by the formula of the variance, for values that are uniform on the range", "muffliato, muffliato-sgd: which pairs of members keep the budget, all of them (\"worst\") or all of them on average; with \"mean\" the summary has the epsilon of the worst pair besides. two-party: P, how often each agent meets another; each meeting has a P-th of epsilon."),
    key("privacy.clip", Kind::Number(ABOVE_0), "the largest there can be, from `feature-bound`; required for the squared loss", "The largest norm of one example's gradient: L2 for Gaussian noise, L1 for Laplace. federated-averaging: of a member's update; step x local-steps x the largest gradient by default."),
    key("privacy.updates", Kind::Integer(1, COUNT), "1", "T_i: updates per agent; wakes beyond them only listen. With a learned graph the turns of the models share them."),
    key("privacy.schedule", Kind::Choice(&["uniform", "proposition-2", "corrected", "clock-free"]), "`\"uniform\"`", "How the budget is divided over the updates; only \"uniform\" with a learned graph. \"proposition-2\" is as the 2018 paper prints it: valid, not optimal."),
    key("privacy.warm", Kind::Table, "none", "The private first model, with start = \"warm\": a local model with noise, then model propagation."),
    key("privacy.warm.epsilon", Kind::Number(ABOVE_0), "required", "Its part of epsilon."),
    key("privacy.warm.regularization", Kind::Number(ABOVE_0), "1.0", "Its lambda; more of it needs less noise."),
    key("privacy.warm.radius", Kind::Number(ABOVE_0), "sqrt(l(0) / regularization)", "Noisy first models are brought back to this norm."),
    key("privacy.warm.trade-off", Kind::Number(ABOVE_0), "model.trade-off", "mu of the propagation."),
    key("privacy.warm.wakes", Kind::Integer(0, COUNT), "10", "Wakes of propagation before the first update."),
    key("privacy.losses", Kind::TableOrFalse, "on with a learned graph", "The losses that learning a graph needs: each agent releases its own, with noise, once in each turn of the graph after the first. With false none is released, and the graph is learned from models alone."),
    key("privacy.losses.bound", Kind::Number(ABOVE_0), "2 l(0); required for the squared loss", "B: the loss of one point is cut to this. Choose it without the private data."),
    key("privacy.losses.share", Kind::Number(INSIDE_0_1), "0.1", "The part of the budget that all losses have together: of epsilon for Laplace noise, of mu^2 for Gaussian noise."),
    key("privacy.home", Kind::TableOrFalse, "on, its parameters from the plan's noise and public sizes", "The model an agent keeps for itself, from its exact data and what its neighbours sent; false turns it off."),
    key("privacy.home.scale", Kind::Number(ABOVE_0), "required with home", "s: what the neighbours' mean is multiplied by. Tune it on other data."),
    key("privacy.home.trade-off", Kind::Number(ABOVE_0), "required with home", "Its mu: the weight of the agent's own data against that mean. Tune it on other data."),
    key("privacy.accountant", Kind::Choice(&["tight", "theorem-1", "sum"]), "`\"tight\"`", "How epsilon is counted."),
    key("privacy.noise", Kind::Choice(&["idealized", "exact"]), "`\"idealized\"`", "How the simulator makes noise: in floating point, or by the exact samplers that real peers always use."),
]}

/// The key at a path of a table, if there is one.
pub fn find_in(keys: &'static [Key], path: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.path == path)
}

/// The key of a table nearest to an unknown one: by the spelling of its last part, then by its section.
pub fn nearest_in(keys: &'static [Key], path: &str) -> &'static Key {
    let (section, leaf) = parts(path);
    keys.iter()
        .min_by_key(|key| {
            let (known_section, known_leaf) = parts(key.path);
            let spelling = strsim::damerau_levenshtein(leaf, known_leaf);
            (2 * spelling + strsim::damerau_levenshtein(section, known_section).min(1), key.path)
        })
        .expect("the table is not empty")
}

fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// A table as the documentation shows it.
pub fn markdown(keys: &[Key]) -> String {
    let mut text = String::from("| key | accepts | default | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let accepts = if matches!(key.kind, Kind::Table) { "a table".to_owned() } else { key.kind.to_string() };
        text += &format!("| `{}` | {accepts} | {} | {} |\n", key.path, key.default, key.doc);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_refuse_their_open_ends_and_what_is_not_finite() {
        assert!(!ABOVE_0.contains(0.0) && ABOVE_0.contains(1e-300) && !ABOVE_0.contains(f64::INFINITY));
        assert!(BELOW_1.contains(0.0) && !BELOW_1.contains(1.0) && PROBABILITY.contains(1.0));
        assert!(!INSIDE_0_1.contains(0.0) && !FROM_0.contains(f64::NAN) && !FROM_0.contains(-1.0));
    }
}
