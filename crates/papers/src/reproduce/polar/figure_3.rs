//! Figure 3: how far iterates are from the minimum, for three numbers of steps between two times that servers average, in both readings of the weights.
//!
//! | reading | weights add up to M | steps |
//! |---|---|---|
//! | block | over all steps and servers of a round, as the conditions of the paper say | as large as curvature allows |
//! | iteration | over all servers at each step | half of that |

use super::super::bench::Bench;
use super::super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Series, Spread, Table};
use super::regression::{Regression, Size, Trace};
use serde::{Deserialize, Serialize};
use sottovoce_encrypted::polar::{PolarConfig, Scope, StepSize};
use sottovoce_run::train::Halt;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    seeds: Vec<u64>,
    size: Size,
    /// Gradient iterations.
    iterations: u32,
    /// Delta.
    consensus_every: Vec<u32>,
    /// Iterations between two points of a curve.
    every: usize,
}

/// How weights add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Reading {
    Exact,
    Block,
    Iteration,
}

impl Reading {
    fn name(self) -> &'static str {
        match self {
            Reading::Exact => "without privacy",
            Reading::Block => "block",
            Reading::Iteration => "iteration",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Reading::Iteration => "an iteration",
            _ => "a block",
        }
    }
}

/// What is run: a reading, Delta and a seed.
type Item = (Reading, u32, u64);

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Curve {
    gaps: Vec<f64>,
    end: f64,
}

fn run_one(parameters: &Parameters, &(reading, every, seed): &Item) -> Curve {
    let place = Regression::new(parameters.size, seed);
    if reading == Reading::Exact {
        let gaps = place.exact(parameters.iterations, seed);
        return Curve { end: gaps[gaps.len() - 1], gaps };
    }
    let config = place.config(every, parameters.iterations / every);
    let config = match reading {
        Reading::Iteration => {
            let step = StepSize { first: 0.5 * config.step.first, ..config.step };
            PolarConfig { scope: Scope::Iteration, step, ..config }
        }
        _ => config,
    };
    let Trace { gaps, end, .. } = place.trace(config, None, seed);
    Curve { gaps, end }
}

/// All runs of one curve.
struct Runs<'c>(Vec<&'c Curve>);

impl Runs<'_> {
    fn spread(&self, of: impl Fn(&Curve) -> f64) -> Spread {
        Spread::of(&self.0.iter().map(|curve| of(curve)).collect::<Vec<_>>())
    }

    fn at(&self, iteration: usize) -> Spread {
        self.spread(|curve| curve.gaps[iteration])
    }

    /// The largest gap of a run, over that at its start.
    fn rise(&self) -> Spread {
        self.spread(|curve| curve.gaps.iter().fold(0.0, |most: f64, gap| most.max(*gap)) / curve.gaps[0])
    }

    /// By which factor it is above another, in the geometric mean over iterations.
    fn above(&self, other: &Runs<'_>) -> f64 {
        let count = self.0[0].gaps.len();
        let logs = (1..count).map(|k| libm::log(self.at(k).mean / other.at(k).mean));
        libm::exp(logs.sum::<f64>() / (count - 1) as f64)
    }
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let mut kinds = vec![(Reading::Exact, 1)];
    for reading in [Reading::Block, Reading::Iteration] {
        kinds.extend(parameters.consensus_every.iter().map(|every| (reading, *every)));
    }
    let seeds = &parameters.seeds;
    let items: Vec<Item> =
        kinds.iter().flat_map(|&(reading, every)| seeds.iter().map(move |&seed| (reading, every, seed))).collect();
    let curves = bench.each("runs", &items, |item| run_one(&parameters, item))?;
    let of = |reading: Reading, every: u32| {
        let mine = items.iter().zip(&curves).filter(|(item, _)| (item.0, item.1) == (reading, every));
        Runs(mine.map(|(_, curve)| curve).collect())
    };
    let plots = [Reading::Block, Reading::Iteration].map(|reading| plot(&parameters, reading, &of)).to_vec();
    Ok(ExperimentOutcome { tables: vec![table(&parameters, &kinds, &of)], plots, claims: claims(&parameters, &of) })
}

type Of<'f, 'c> = &'f dyn Fn(Reading, u32) -> Runs<'c>;

fn plot(parameters: &Parameters, reading: Reading, of: Of<'_, '_>) -> Plot {
    let curve = |name: String, ink: usize, dashed: bool, runs: &Runs<'_>| {
        let places = (0..=parameters.iterations as usize).step_by(parameters.every);
        Series { name, ink, dashed, points: places.map(|k| runs.at(k).at(k as f64)).collect() }
    };
    let exact = of(Reading::Exact, 1);
    let mut series = vec![curve("without privacy".to_owned(), 4, true, &exact)];
    for (k, every) in parameters.consensus_every.iter().enumerate() {
        series.push(curve(format!("Δ = {every}"), k, false, &of(reading, *every)));
    }
    let (name, title) = match reading {
        Reading::Iteration => ("gap-iteration", "Figure 3, weights that add up at each step"),
        _ => ("gap-block", "Figure 3, weights that add up over a round"),
    };
    Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: format!(
            "Relative distance to the minimum, mean over the servers before they average, every {} iterations. Mean and standard deviation of {} runs. Not \
             differential privacy.",
            parameters.every,
            parameters.seeds.len()
        ),
        x: Labelled::linear("gradient iterations"),
        y: Labelled::log("(f(x) - f*) / f*"),
        series,
    }
}

fn table(parameters: &Parameters, kinds: &[(Reading, u32)], of: Of<'_, '_>) -> Table {
    let row = |&(reading, every): &(Reading, u32)| {
        let runs = of(reading, every);
        let last = parameters.iterations as usize;
        let number = |spread: Spread| format!("{:.2e} ± {:.1e}", spread.mean, spread.deviation);
        let delta = if reading == Reading::Exact { String::new() } else { every.to_string() };
        let end = runs.spread(|curve| curve.end);
        vec![reading.name().to_owned(), delta, number(runs.at(last)), number(end), runs.rise().to_string()]
    };
    Table {
        name: "gaps".to_owned(),
        caption: format!(
            "(f(x) - f*) / f* after {} gradient iterations, before and after the servers average, and the largest over that at the start",
            parameters.iterations
        ),
        columns: ["weights add up over", "Δ", "before", "after", "largest over first"].map(str::to_owned).to_vec(),
        rows: kinds.iter().map(row).collect(),
    }
}

fn claims(parameters: &Parameters, of: Of<'_, '_>) -> Vec<Claim> {
    let last = parameters.iterations as usize;
    let deltas = &parameters.consensus_every;
    let longest = deltas[deltas.len() - 1];
    let exact = of(Reading::Exact, 1).at(last).mean;
    let mut claims = Vec::new();
    for reading in [Reading::Block, Reading::Iteration] {
        let id = |name: &str| format!("{name}-{}", reading.name());
        let of_delta = |every: &u32| of(reading, *every);
        let words = |value: &dyn Fn(&u32) -> String| deltas.iter().map(value).collect::<Vec<_>>().join(", ");
        let ends: Vec<f64> = deltas.iter().map(|every| of_delta(every).spread(|curve| curve.end).mean).collect();
        let most = ends.iter().fold(0.0, |most: f64, end| most.max(*end));
        claims.push(Claim::new(
            &id("converges"),
            &format!(
                "All come to the minimum, weights over {}: within 1e-3 where servers have averaged",
                reading.in_words()
            ),
            "converge in function value for each Δ",
            ends.iter().map(|end| format!("{end:.1e}")).collect::<Vec<_>>().join(", "),
            most,
            most < 1e-3,
        ));
        let before: Vec<f64> = deltas.iter().map(|every| of_delta(every).at(last).mean).collect();
        let least = before.iter().fold(f64::INFINITY, |least: f64, gap| least.min(*gap)) / exact;
        claims.push(Claim::new(
            &id("exact-is-faster"),
            "The loop without privacy is nearest at the end",
            "converges much faster",
            format!("the nearest other is {least:.1} times as far"),
            least,
            least > 1.0,
        ));
        let growth = before.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::INFINITY, f64::min);
        claims.push(Claim::new(
            &id("longer-rounds-are-slower"),
            "The larger Δ, the farther at the end",
            "takes longer to converge",
            words(&|every| format!("{:.1e}", of_delta(every).at(last).mean)),
            growth,
            growth > 1.0,
        ));
        let rise = of_delta(&longest).rise();
        claims.push(Claim::new(
            &id("rises-at-first"),
            &format!("With Δ = {longest} the distance grows at first"),
            "may increase as compared to the start for few iterations",
            format!("{rise} times the start"),
            rise.mean,
            rise.mean > 1.05,
        ));
        let above = deltas[..deltas.len() - 1]
            .iter()
            .map(|every| of_delta(every).above(&of(Reading::Exact, 1)))
            .fold(0.0, f64::max);
        claims.push(Claim::new(
            &id("short-rounds-follow"),
            "The smaller Δ follow the loop without privacy: within a factor of 2 on average",
            "follow the general trend of the non-private algorithm very closely",
            format!("{above:.0} times as far, in the geometric mean over iterations"),
            above,
            above <= 2.0,
        ));
    }
    claims
}
