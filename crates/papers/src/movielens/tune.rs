//! How the values of the table were chosen. No test rating of run 1 is ever read here.
//!
//! | what | tuned on |
//! |---|---|
//! | the paper's setting, everything | two 80/20 splits of the training ratings of run 1 |
//! | the sound settings, without privacy | the same |
//! | the sound settings, private | two sets of invented ratings: no real one is read |
//!
//! Tuning on private ratings would cost a budget of its own, which nobody has accounted for. In the paper's setting it is one more thing
//! that is taken as given. In the sound settings it would not be sound, so there the private methods are tuned on invented
//! ratings. Local models and coordinate descent without privacy make no promise, and get the best values that there are.
//!
//! Each search goes over its grid one value at a time, the others staying where they are, until nothing gets better.

use super::als::Als;
use super::invent::invent;
use super::method::Method;
use super::methods::{PAPER_CLIP, Posted, descent, local, plan, private_run};
use super::ratings::{MovieLens, Split};
use super::setting::{Instance, Setting};
use super::table::EPSILONS;
use super::values::{HomeValues, PrivateValues, SettingValues, Values};
use crate::workers::{Watch, each};
use sottovoce_algorithms::personal::home::Home;
use sottovoce_core::Rows;
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The run whose training ratings are split again.
const TRAINING_OF: u64 = 1;
/// The seeds of those splits.
const INNER: [u64; 2] = [11, 12];
/// The seeds of invented ratings.
const INVENTED: [u64; 2] = [21, 22];
/// The seed of noise and schedules while tuning.
const SEED: u64 = 7;

const RANK: usize = 20;
const SWEEPS: usize = 20;
const RIDGES: [f64; 4] = [0.05, 0.1, 0.15, 0.2];
const LOCAL_LENGTHS: [f64; 10] = [0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0];
const LENGTHS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Trade-offs and clips are for features of length one: a feature of length l wants mu / l^2, and B l.
const TRADE_OFFS: [f64; 6] = [3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
/// T_i; the noise of the plan follows from it.
const UPDATES: [u64; 5] = [1, 3, 10, 30, 100];
const PRIVATE_TRADE_OFFS: [f64; 8] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];
const CLIPS: [f64; 5] = [0.03, 0.1, 0.3, 1.0, 3.0];
const HOME_SCALES: [f64; 12] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
const HOME_TRADE_OFFS: [f64; 5] = [30.0, 100.0, 300.0, 1000.0, 3000.0];
/// The length of features in private runs. A home model does not need another: what its ridge takes, its scale gives.
const PRIVATE_LENGTH: f64 = 4.0;

/// Chooses all values anew. `watch` is told how far each part is.
pub fn tune(data: &MovieLens, threads: usize, watch: Watch<'_>) -> Result<Values, Halt> {
    let training = MovieLens { ratings: Split::new(&data.ratings, TRAINING_OF).train, ..data.clone() };
    let mut tuner = Tuner { threads, watch };

    let mut worlds = Vec::new();
    for ridge in RIDGES {
        let als = Als { rank: RANK, ridge, sweeps: SWEEPS };
        worlds.push(tuner.instances(&training, &INNER, Setting::Paper, &als)?);
    }
    let (ridge, feature_length, trade_off) = tuner.descent(&worlds)?;
    let als = Als { rank: RANK, ridge: RIDGES[ridge], sweeps: SWEEPS };
    let instances = worlds.swap_remove(ridge);
    let local_feature_length = tuner.local(&instances)?;
    let mut private = Vec::new();
    for epsilon in EPSILONS {
        for method in [Method::PaperNoise, Method::Laplace, Method::Gaussian, Method::GaussianHome] {
            private.push(tuner.private(&instances, method, epsilon)?);
        }
    }
    let paper = SettingValues { local_feature_length, feature_length, trade_off, private };

    let instances = tuner.instances(&training, &INNER, Setting::Sound, &als)?;
    let local_feature_length = tuner.local(&instances)?;
    let (_, feature_length, trade_off) = tuner.descent(&[instances])?;
    let mut invented = Vec::new();
    for seed in INVENTED {
        invented.extend(tuner.instances(&invent(data, seed), &[seed], Setting::Sound, &als)?);
    }
    let mut private = Vec::new();
    for epsilon in EPSILONS {
        for method in [Method::Gaussian, Method::GaussianHome] {
            private.push(tuner.private(&invented, method, epsilon)?);
        }
    }
    let sound = SettingValues { local_feature_length, feature_length, trade_off, private };
    Ok(Values { als, paper, sound })
}

struct Tuner<'w> {
    threads: usize,
    watch: Watch<'w>,
}

/// A place in a grid: one index for each value.
type Place<const N: usize> = [usize; N];

impl Tuner<'_> {
    fn instances(
        &mut self,
        data: &MovieLens,
        seeds: &[u64],
        setting: Setting,
        als: &Als,
    ) -> Result<Vec<Instance>, Halt> {
        let one = |k: usize| Instance::new(data, Split::new(&data.ratings, seeds[k]), setting, als, seeds[k]);
        let built: Result<Vec<_>, Mistake> = each(seeds.len(), self.threads, self.watch, one)?.into_iter().collect();
        Ok(built?)
    }

    /// Looks for the place with the least of the errors that `errors` finds on average over `count` instances. Some values come
    /// for free with the others: `errors` gives one error for each of them, and their best is found as well.
    fn search<const N: usize>(
        &mut self,
        sizes: Place<N>,
        start: Place<N>,
        count: usize,
        errors: impl Fn(usize, Place<N>) -> Vec<f64> + Sync,
    ) -> Result<(Place<N>, usize), Halt> {
        let mut known: BTreeMap<Place<N>, (f64, usize)> = BTreeMap::new();
        let mut at = start;
        loop {
            let before = at;
            for axis in 0..N {
                let line = (0..sizes[axis]).map(|k| {
                    let mut place = at;
                    place[axis] = k;
                    place
                });
                let line: Vec<Place<N>> = line.collect();
                let unknown: Vec<Place<N>> = line.iter().filter(|place| !known.contains_key(*place)).copied().collect();
                let one = |k: usize| errors(k % count, unknown[k / count]);
                let found = each(unknown.len() * count, self.threads, self.watch, one)?;
                for (place, found) in unknown.iter().zip(found.chunks_exact(count)) {
                    let mean = |e: usize| found.iter().map(|errors| errors[e]).sum::<f64>() / count as f64;
                    let free = (0..found[0].len()).map(|e| (mean(e), e));
                    let best = free.min_by(|a, b| a.0.total_cmp(&b.0)).expect("an error");
                    known.insert(*place, best);
                }
                at = line.into_iter().min_by(|a, b| known[a].0.total_cmp(&known[b].0)).expect("a value");
            }
            if at == before {
                return Ok((at, known[&at].1));
            }
        }
    }

    fn local(&mut self, instances: &[Instance]) -> Result<f64, Halt> {
        let errors = |k: usize, [length]: Place<1>| vec![local(&instances[k], LOCAL_LENGTHS[length])];
        let ([best], _) = self.search([LOCAL_LENGTHS.len()], [0], instances.len(), errors)?;
        Ok(LOCAL_LENGTHS[best])
    }

    /// Which of the worlds, and the length and the trade-off, serve coordinate descent best.
    fn descent(&mut self, worlds: &[Vec<Instance>]) -> Result<(usize, f64, f64), Halt> {
        let values = |[world, length, trade_off]: Place<3>| {
            let length = LENGTHS[length];
            (world, length, TRADE_OFFS[trade_off] / (length * length))
        };
        let errors = |k: usize, place: Place<3>| {
            let (world, length, trade_off) = values(place);
            vec![descent(&worlds[world][k], length, trade_off, SEED)]
        };
        let sizes = [worlds.len(), LENGTHS.len(), TRADE_OFFS.len()];
        let (best, _) = self.search(sizes, [worlds.len() / 2, 2, 3], worlds[0].len(), errors)?;
        Ok(values(best))
    }

    /// mu, B, T_i and, for home models, s and mu_h. The paper's noise keeps the paper's clip and takes features as they come.
    fn private(&mut self, instances: &[Instance], method: Method, epsilon: f64) -> Result<PrivateValues, Halt> {
        let is_paper = method == Method::PaperNoise;
        let square = PRIVATE_LENGTH * PRIVATE_LENGTH;
        let homes: Vec<HomeValues> = HOME_TRADE_OFFS
            .iter()
            .flat_map(|mu| HOME_SCALES.map(|scale| HomeValues { scale, trade_off: mu / square }))
            .collect();
        let values = |[updates, trade_off, clip]: Place<3>| PrivateValues {
            method,
            epsilon,
            feature_length: (!is_paper).then_some(PRIVATE_LENGTH),
            trade_off: PRIVATE_TRADE_OFFS[trade_off] / square,
            clip: if is_paper { PAPER_CLIP } else { CLIPS[clip] * PRIVATE_LENGTH },
            updates: UPDATES[updates],
            home: None,
        };
        let dimension = instances[0].dimension();
        let plans: Vec<_> =
            (0..UPDATES.len()).map(|updates| Arc::new(plan(dimension, &values([updates, 0, 0])))).collect();
        let errors = |k: usize, place: Place<3>| {
            let (instance, run) = (&instances[k], private_run(&instances[k], &values(place)));
            let posted = run.run(instance, &plans[place[0]], SEED);
            match method {
                Method::GaussianHome => home_errors(instance, run.feature_length, &posted, &homes),
                _ => vec![instance.error(run.feature_length, &posted.models)],
            }
        };
        let sizes = [UPDATES.len(), PRIVATE_TRADE_OFFS.len(), if is_paper { 1 } else { CLIPS.len() }];
        let start = if is_paper { [3, 2, 0] } else { [3, 4, 2] };
        let (best, home) = self.search(sizes, start, instances.len(), errors)?;
        let home = (method == Method::GaussianHome).then(|| homes[home]);
        Ok(PrivateValues { home, ..values(best) })
    }
}

/// The errors of all these home models. With the squared loss a home model is affine in the scale, so two scales give all.
fn home_errors(instance: &Instance, feature_length: f64, posted: &Posted, homes: &[HomeValues]) -> Vec<f64> {
    let mut errors = Vec::with_capacity(homes.len());
    for same in homes.chunk_by(|a, b| a.trade_off == b.trade_off) {
        let at = |scale| posted.home(Home::Tuned { scale, trade_off: same[0].trade_off });
        let (one, two) = (at(1.0), at(2.0));
        let mut models = Rows::zeros(one.count(), one.row_len());
        for home in same {
            for ((out, one), two) in models.values_mut().iter_mut().zip(one.values()).zip(two.values()) {
                *out = one + (home.scale - 1.0) * (two - one);
            }
            errors.push(instance.error(feature_length, &models));
        }
    }
    errors
}
