//! Figure 3 of the 2018 paper's supplement (figure 2.1b of the thesis): accuracy by the size of an agent's data set.

use super::bench::Bench;
use super::calibration::{Calibration, Warm, instance};
use super::linear::Size;
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Series, Spread, Table};
use super::tuning::{Grid, trade_offs, tuned};
use serde::Deserialize;
use sottovoce_core::PeerId;
use sottovoce_run::train::Halt;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    size: Size,
    dimension: usize,
    seeds: Vec<u64>,
    validation_seeds: Vec<u64>,
    tuning_wakes: u64,
    sum_trade_off: f64,
    delta: f64,
    epsilons: Vec<f64>,
    updates: Vec<u64>,
    calibrations: Vec<Calibration>,
    warm_epsilon: f64,
    warm: Warm,
    bin_width: usize,
}

/// Models whose gains over local ones on the same points are shown.
struct Shown {
    id: String,
    name: String,
    /// By seed, by agent.
    gains: Vec<Vec<f64>>,
    accuracies: Vec<Vec<f64>>,
    sound: bool,
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let Parameters { size, dimension, tuning_wakes, sum_trade_off, delta, warm, warm_epsilon, .. } = parameters;
    let kinds = &parameters.calibrations;
    let pairs: Vec<_> = kinds.iter().map(|&kind| (kind, dimension)).collect();
    let chosen = trade_offs(bench, &pairs, size, &parameters.validation_seeds, (tuning_wakes, sum_trade_off))?;
    let grid = Grid {
        calibrations: kinds,
        dimensions: &[dimension],
        epsilons: &parameters.epsilons,
        warm_epsilon,
        updates: &parameters.updates,
        validation_seeds: &parameters.validation_seeds,
        seeds: &parameters.seeds,
    };
    let runs = tuned(bench, &grid, &chosen, (size, delta, warm))?;
    let items: Vec<(Calibration, f64, u64)> = kinds
        .iter()
        .zip(&chosen)
        .flat_map(|(&kind, &trade_off)| parameters.seeds.iter().map(move |&seed| (kind, trade_off, seed)))
        .collect();
    let baselines = bench.each("local and not private", &items, |&(kind, trade_off, seed)| {
        let instance = instance(kind, size, dimension, seed, trade_off);
        let sizes: Vec<usize> = (0..size.agents as u32).map(|id| instance.problem.data.size(PeerId(id))).collect();
        (sizes, instance.accuracies(&instance.local()), instance.accuracies(&instance.descend(tuning_wakes)))
    })?;
    let of = |kind: Calibration, seed: usize| {
        let k = kinds.iter().position(|&other| other == kind).expect("a calibration of the list");
        &baselines[k * parameters.seeds.len() + seed]
    };
    let sizes: Vec<&Vec<usize>> = (0..parameters.seeds.len()).map(|seed| &of(kinds[0], seed).0).collect();
    let gains = |kind: Calibration, accuracies: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let gain = |(seed, after): (usize, &Vec<f64>)| {
            of(kind, seed).1.iter().zip(after).map(|(before, after)| after - before).collect()
        };
        accuracies.iter().enumerate().map(gain).collect()
    };
    let plain = kinds[0];
    let together: Vec<Vec<f64>> = (0..parameters.seeds.len()).map(|seed| of(plain, seed).2.clone()).collect();
    let mut shown = vec![Shown {
        id: "not-private".to_owned(),
        name: "not private".to_owned(),
        gains: gains(plain, &together),
        accuracies: together,
        sound: true,
    }];
    for run in &runs {
        let (kind, total) = (run.calibration, run.spending.total());
        let models = match &run.home {
            None => ("", &run.broadcast),
            Some((_, home)) => (", at home", home),
        };
        shown.push(Shown {
            id: format!("{}-{total:.2}", kind.slug()),
            name: format!("ε = {total:.2}{}, {}", models.0, kind.label()),
            gains: gains(kind, models.1),
            accuracies: models.1.clone(),
            sound: kind.is_sound(),
        });
    }
    let local: Vec<Vec<f64>> = (0..parameters.seeds.len()).map(|seed| of(plain, seed).1.clone()).collect();
    Ok(outcome(&parameters, &sizes, &local, &shown))
}

/// The mean over agents in a range of sizes, by seed: mean and spread over the seeds that have such an agent.
fn in_bin(values: &[Vec<f64>], sizes: &[&Vec<usize>], low: usize, high: usize) -> Option<Spread> {
    let of_seed = |(values, sizes): (&Vec<f64>, &&Vec<usize>)| {
        let inside = values.iter().zip(sizes.iter()).filter(|(_, size)| (low..high).contains(*size)).map(|(v, _)| *v);
        let inside: Vec<f64> = inside.collect();
        (!inside.is_empty()).then(|| inside.iter().sum::<f64>() / inside.len() as f64)
    };
    let means: Vec<f64> = values.iter().zip(sizes).filter_map(of_seed).collect();
    (!means.is_empty()).then(|| Spread::of(&means))
}

fn outcome(parameters: &Parameters, sizes: &[&Vec<usize>], local: &[Vec<f64>], shown: &[Shown]) -> ExperimentOutcome {
    let width = parameters.bin_width;
    let most = sizes.iter().flat_map(|sizes| sizes.iter()).max().copied().unwrap_or(0);
    let bins: Vec<(usize, usize)> =
        (10..=most).step_by(width).map(|low| (low, low + width)).filter(|bin| bin.0 < most).collect();
    let curve = |values: &[Vec<f64>]| {
        let point =
            |&(low, high): &(usize, usize)| Some(in_bin(values, sizes, low, high)?.at((low + high) as f64 / 2.0));
        bins.iter().filter_map(point).collect::<Vec<_>>()
    };
    let caption = format!(
        "p = {}. Agents in bins of {width} training points. Mean and standard deviation of {} runs.",
        parameters.dimension,
        parameters.seeds.len()
    );
    let x = || Labelled::linear("training points of the agent, m_i");
    let mut accuracy = vec![Series { name: "local".to_owned(), ink: 4, dashed: true, points: curve(local) }];
    let mut gain = Vec::new();
    for (k, one) in shown.iter().enumerate() {
        let ink = if k == 0 { 5 } else { (k - 1) % 4 };
        let series =
            |values: &[Vec<f64>]| Series { name: one.name.clone(), ink, dashed: !one.sound, points: curve(values) };
        accuracy.push(series(&one.accuracies));
        gain.push(series(&one.gains));
    }
    let plots = vec![
        Plot {
            name: "accuracy-by-size".to_owned(),
            title: "Figure 3: accuracy by size of the data set".to_owned(),
            caption: caption.clone(),
            x: x(),
            y: Labelled::linear("test accuracy"),
            series: accuracy,
        },
        Plot {
            name: "gain-by-size".to_owned(),
            title: "Figure 3: gain over local models on the same points".to_owned(),
            caption,
            x: x(),
            y: Labelled::linear("gain in test accuracy"),
            series: gain,
        },
    ];
    let mut claims = Vec::new();
    for one in shown {
        let gains = curve(&one.gains);
        let worst = gains.iter().min_by(|a, b| a.mean.total_cmp(&b.mean)).expect("there are agents");
        claims.push(Claim::new(
            &format!("every-size-gains-{}", one.id),
            &format!("Agents of every size gain: {}", one.name),
            "all agents improve",
            format!("{:+.3} ± {:.3} in the worst bin (around {} points)", worst.mean, worst.spread, worst.x),
            worst.mean,
            worst.mean > 0.0,
        ));
        let (first, last) = (gains[0], gains[gains.len() - 1]);
        claims.push(Claim::new(
            &format!("small-gain-most-{}", one.id),
            &format!("Those with the least data gain more than those with the most: {}", one.name),
            "especially large for small data sets",
            format!("{:+.3} ± {:.3} against {:+.3} ± {:.3}", first.mean, first.spread, last.mean, last.spread),
            first.mean - last.mean,
            first.mean > last.mean,
        ));
    }
    let mut columns = vec!["training points".to_owned(), "local".to_owned()];
    columns.extend(shown.iter().map(|one| format!("gain, {}", one.name)));
    let cell = |values: &[Vec<f64>], bin: &(usize, usize)| {
        in_bin(values, sizes, bin.0, bin.1).map_or(String::new(), |spread| spread.to_string())
    };
    let row = |bin: &(usize, usize)| {
        let mut row = vec![format!("{} to {}", bin.0, bin.1 - 1), cell(local, bin)];
        row.extend(shown.iter().map(|one| cell(&one.gains, bin)));
        row
    };
    let caption = "Accuracy of local models and gains over local models on the same points, by size".to_owned();
    let table = Table { name: "by-size".to_owned(), caption, columns, rows: bins.iter().map(row).collect() };
    ExperimentOutcome { tables: vec![table], plots, claims }
}
