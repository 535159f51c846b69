//! Not in the paper: what real privacy costs with the same servers, messages and steps, beside the paper's weights and vectors.
//!
//! Whole batches, weights over a block, one plan for all steps of a run, unit: a record, against everyone, all servers together included.

use super::super::bench::Bench;
use super::super::outcome::{Claim, ExperimentOutcome, Spread, Table};
use super::regression::{Regression, Size};
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Shard;
use sottovoce_core::PeerId;
use sottovoce_encrypted::polar::{Polar, PolarConfig, PolarPrivacy};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Event, Plan, Tight};
use sottovoce_run::audit::{Cosines, OneServer};
use sottovoce_run::train::Halt;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    seeds: Vec<u64>,
    size: Size,
    consensus_every: u32,
    rounds: u32,
    epsilons: Vec<f64>,
    delta: f64,
    /// The largest norm of an example's gradient, with noise.
    clip: f64,
    /// Records that one server tells from others.
    trials: usize,
}

/// Clients at whose gradients one server looks.
const CLIENTS_SEEN: u32 = 10;

/// What hides gradients: which of the budgets, if any, and whether weights differ and vectors are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Method {
    budget: Option<usize>,
    obfuscates: bool,
}

/// What came of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Found {
    gap: f64,
    cosine: f64,
    membership: f64,
    vectors: u64,
}

fn run_one(parameters: &Parameters, method: Method, seed: u64) -> Found {
    let place = Regression::new(parameters.size, seed);
    let config = place.config(parameters.consensus_every, parameters.rounds);
    let config = match method.obfuscates {
        true => config,
        false => PolarConfig { weight_bound: config.weight, noise_bound: 0.0, ..config },
    };
    let private = method.budget.map(|_| PolarPrivacy { clip: parameters.clip, norm: Norm::L2 });
    let config = PolarConfig { batch: parameters.size.points_each, private, ..config };
    let plan = method.budget.map(|budget| {
        let gradients = Polar::new(config.clone()).expect("the parameters are tested").gradients() as usize;
        let steps = |noise_multiplier: f64| vec![Event::Gaussian { noise_multiplier }; gradients];
        let plan = Plan::with_least_noise(steps, parameters.epsilons[budget], parameters.delta, &Tight);
        Arc::new(plan.expect("a budget in reach"))
    });
    let trace = place.trace(config.clone(), plan.clone(), seed);
    let server = OneServer { config, plan, seed };
    let shards: Vec<Shard<'_>> = (0..CLIENTS_SEEN).map(|id| place.shard(PeerId(id))).collect();
    let rounds = [parameters.rounds];
    let mut go_on = |_: &'static str, _: u64, _: u64| ControlFlow::Continue(());
    let Cosines { means, .. } = server.cosines(&shards, &rounds, &mut go_on).expect("nobody stops it");
    let (_, areas) =
        server.membership(&place.problem, &rounds, parameters.trials, &mut go_on).expect("nobody stops it");
    Found { gap: trace.end, cosine: means[0], membership: areas[0], vectors: trace.vectors }
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let budgets = std::iter::once(None).chain((0..parameters.epsilons.len()).map(Some));
    let methods: Vec<Method> =
        budgets.flat_map(|budget| [false, true].map(|obfuscates| Method { budget, obfuscates })).collect();
    let items: Vec<(Method, u64)> =
        methods.iter().flat_map(|&method| parameters.seeds.iter().map(move |&seed| (method, seed))).collect();
    let found = bench.each("runs", &items, |&(method, seed)| run_one(&parameters, method, seed))?;
    let of =
        |method: Method| items.iter().zip(&found).filter(move |(item, _)| item.0 == method).map(|(_, found)| *found);
    let spread =
        |method: Method, what: fn(&Found) -> f64| Spread::of(&of(method).map(|found| what(&found)).collect::<Vec<_>>());
    let row = |&method: &Method| {
        let gap = spread(method, |found| found.gap);
        let vectors = of(method).next().map_or(0, |found| found.vectors);
        vec![
            method.budget.map_or("infinity".to_owned(), |budget| parameters.epsilons[budget].to_string()),
            if method.obfuscates { "yes" } else { "no" }.to_owned(),
            format!("{:.2e} ± {:.1e}", gap.mean, gap.deviation),
            spread(method, |found| found.cosine).to_string(),
            spread(method, |found| found.membership).to_string(),
            vectors.to_string(),
        ]
    };
    let columns = [
        "epsilon",
        "weights and vectors",
        "(f - f*) / f*",
        "cosine, one server",
        "record or another, one server",
        "vectors sent",
    ];
    let table = Table {
        name: "privacy".to_owned(),
        caption: format!(
            "{} rounds of {} steps, whole batches. epsilon: for a record, against all servers together, delta = {}",
            parameters.rounds, parameters.consensus_every, parameters.delta
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows: methods.iter().map(row).collect(),
    };
    let gap = |budget: Option<usize>, obfuscates: bool| spread(Method { budget, obfuscates }, |found| found.gap);
    let last = parameters.epsilons.len() - 1;
    let (noisy, both, obfuscated) = (gap(Some(last), false), gap(Some(last), true), gap(None, true));
    let claims = vec![
        Claim::new(
            "noise-converges",
            &format!("With epsilon = {} noise alone comes within 0.1 of the minimum", parameters.epsilons[last]),
            "not in the paper",
            format!("{:.1e}", noisy.mean),
            noisy.mean,
            noisy.mean < 0.1,
        ),
        Claim::new(
            "weights-amplify-noise",
            "On top of noise, weights that differ and vectors bring the outcome farther from the minimum",
            "not in the paper",
            format!("{:.1} times as far with both", both.mean / noisy.mean),
            both.mean / noisy.mean,
            both.mean > noisy.mean,
        ),
        Claim::new(
            "obfuscation-is-nearer",
            "Without a guarantee, weights and vectors alone come nearer than noise",
            "not in the paper",
            format!("{:.1e} against {:.1e}", obfuscated.mean, noisy.mean),
            obfuscated.mean,
            obfuscated.mean < noisy.mean,
        ),
    ];
    Ok(ExperimentOutcome { tables: vec![table], plots: Vec::new(), claims })
}
