//! How the values of the table were chosen. No test rating is ever read here.
//!
//! | what | tuned on |
//! |---|---|
//! | the paper's setting, everything | two 80/20 splits of the training ratings of run 1 |
//! | the sound settings, without privacy | the same |
//! | the sound settings, private | three sets of invented ratings: no real one is read |
//!
//! Tuning on private ratings would cost a budget of its own, which nobody has accounted for. In the paper's setting it is one more thing that
//! is taken as given. In the sound settings it would not be sound, so there the private methods are tuned on invented ratings.
//! Local models and coordinate descent without privacy make no promise, and get the best values that there are.

use super::als::Als;
use super::invent::invent;
use super::methods::{Method, PAPER_CLIP, Posted, PrivateRun, descent, local, paper_plan, private_run, sound_plan};
use super::parallel::{Watch, each};
use super::ratings::{MovieLens, Split};
use super::setting::{Instance, Setting};
use super::table::EPSILONS;
use super::values::{HomeValues, PrivateValues, SettingValues, Values};
use crate::error::Mistake;
use crate::train::Halt;
use sottovoce_algorithms::personal::home::Home;
use sottovoce_core::Rows;
use std::sync::Arc;

/// The run whose training ratings are split again.
const TRAINING_OF: u64 = 1;
/// The seeds of those splits.
const INNER: [u64; 2] = [11, 12];
/// The seeds of invented ratings.
const INVENTED: [u64; 3] = [21, 22, 23];

const RANK: usize = 20;
const SWEEPS: usize = 20;
const RIDGES: [f64; 4] = [0.05, 0.1, 0.15, 0.2];
const LOCAL_LENGTHS: [f64; 10] = [0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0];
const LENGTHS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Trade-offs and clips are for features of length one: a feature of length l wants mu / l^2, and B l.
const TRADE_OFFS: [f64; 5] = [10.0, 30.0, 100.0, 300.0, 1000.0];
const UPDATES: [u64; 5] = [1, 3, 10, 30, 100];
const PRIVATE_TRADE_OFFS: [f64; 7] = [0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];
const CLIPS: [f64; 4] = [0.1, 0.3, 1.0, 3.0];
const HOME_SCALES: [f64; 10] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const HOME_TRADE_OFFS: [f64; 6] = [10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

/// Chooses all values anew. `watch` is told how far each part is.
pub fn tune(data: &MovieLens, threads: usize, watch: Watch<'_>) -> Result<Values, Halt> {
    let training = MovieLens { ratings: Split::new(&data.ratings, TRAINING_OF).train, ..data.clone() };
    let mut tuner = Tuner { threads, watch };

    // The paper's setting: the features that serve coordinate descent best.
    let mut found = Vec::new();
    for ridge in RIDGES {
        let als = Als { rank: RANK, ridge, sweeps: SWEEPS };
        let instances = tuner.instances(&training, &INNER, Setting::Paper, &als)?;
        let (error, length, trade_off) = tuner.descent(&instances)?;
        found.push((error, als, instances, length, trade_off));
    }
    let (_, als, instances, feature_length, trade_off) =
        found.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("a ridge");
    let local_feature_length = tuner.local(&instances)?;
    let mut private = Vec::new();
    for epsilon in EPSILONS {
        private.push(tuner.paper_noise(&instances, epsilon)?);
        private.extend(tuner.sound(&instances, epsilon, feature_length, &[Method::Laplace])?);
        let methods = [Method::Gaussian, Method::GaussianHome];
        private.extend(tuner.sound(&instances, epsilon, feature_length, &methods)?);
    }
    let paper = SettingValues { local_feature_length, feature_length, trade_off, private };

    let instances = tuner.instances(&training, &INNER, Setting::Sound, &als)?;
    let (_, feature_length, trade_off) = tuner.descent(&instances)?;
    let local_feature_length = tuner.local(&instances)?;
    let mut invented = Vec::new();
    for seed in INVENTED {
        invented.extend(tuner.instances(&invent(data, seed), &[seed], Setting::Sound, &als)?);
    }
    let mut private = Vec::new();
    for epsilon in EPSILONS {
        let methods = [Method::Gaussian, Method::GaussianHome];
        private.extend(tuner.sound(&invented, epsilon, SOUND_LENGTH, &methods)?);
    }
    let sound = SettingValues { local_feature_length, feature_length, trade_off, private };
    Ok(Values { als, paper, sound })
}

struct Tuner<'w> {
    threads: usize,
    watch: Watch<'w>,
}

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

    /// For each candidate the errors that `errors` finds, each averaged over the instances.
    fn means<C: Sync>(
        &mut self,
        instances: &[Instance],
        candidates: &[C],
        errors: impl Fn(&Instance, &C) -> Vec<f64> + Sync,
    ) -> Result<Vec<Vec<f64>>, Halt> {
        let count = instances.len();
        let one = |k: usize| errors(&instances[k % count], &candidates[k / count]);
        let found = each(candidates.len() * count, self.threads, self.watch, one)?;
        let mean = |of: &[Vec<f64>]| {
            (0..of[0].len()).map(|e| of.iter().map(|errors| errors[e]).sum::<f64>() / count as f64).collect()
        };
        Ok(found.chunks_exact(count).map(mean).collect())
    }

    fn local(&mut self, instances: &[Instance]) -> Result<f64, Halt> {
        let means = self.means(instances, &LOCAL_LENGTHS, |instance, &length| vec![local(instance, length)])?;
        Ok(LOCAL_LENGTHS[least(&means, 0).1])
    }

    /// The least error, and the length and the trade-off that it has.
    fn descent(&mut self, instances: &[Instance]) -> Result<(f64, f64, f64), Halt> {
        let candidates: Vec<(f64, f64)> =
            LENGTHS.iter().flat_map(|&length| TRADE_OFFS.map(|mu| (length, mu / (length * length)))).collect();
        let errors = |instance: &Instance, &(length, mu): &(f64, f64)| vec![descent(instance, length, mu, SEED)];
        let (error, best) = least(&self.means(instances, &candidates, errors)?, 0);
        Ok((error, candidates[best].0, candidates[best].1))
    }

    /// mu and T_i for the paper's noise, which has the paper's clip.
    fn paper_noise(&mut self, instances: &[Instance], epsilon: f64) -> Result<PrivateValues, Halt> {
        let plans = UPDATES.map(|updates| Arc::new(paper_plan(RANK, epsilon, updates)));
        let candidates: Vec<(usize, f64)> =
            (0..UPDATES.len()).flat_map(|k| PRIVATE_TRADE_OFFS.map(|mu| (k, mu))).collect();
        let values = |&(k, trade_off): &(usize, f64)| PrivateValues {
            method: Method::PaperNoise,
            epsilon,
            feature_length: None,
            trade_off,
            clip: PAPER_CLIP,
            updates: UPDATES[k],
            home: None,
        };
        let errors = |instance: &Instance, candidate: &(usize, f64)| {
            let run = private_run(instance, &values(candidate));
            vec![instance.error(run.feature_length, &run.run(instance, &plans[candidate.0], SEED).models)]
        };
        let (_, best) = least(&self.means(instances, &candidates, errors)?, 0);
        Ok(values(&candidates[best]))
    }

    /// mu, B, T_i and, for home models, s and mu_h, by the same runs for each of `methods`, which have one kind of noise.
    fn sound(
        &mut self,
        instances: &[Instance],
        epsilon: f64,
        feature_length: f64,
        methods: &[Method],
    ) -> Result<Vec<PrivateValues>, Halt> {
        let noise = methods[0].noise();
        let plans = UPDATES.map(|updates| Arc::new(sound_plan(noise, epsilon, updates)));
        let square = feature_length * feature_length;
        let runs = PRIVATE_TRADE_OFFS.iter().flat_map(|mu| {
            CLIPS.map(|clip| PrivateRun { feature_length, trade_off: mu / square, clip: clip * feature_length, noise })
        });
        let candidates: Vec<(usize, PrivateRun)> =
            runs.flat_map(|run| (0..UPDATES.len()).map(move |k| (k, run))).collect();
        let at_home = methods.contains(&Method::GaussianHome);
        let homes: Vec<HomeValues> = HOME_TRADE_OFFS
            .iter()
            .flat_map(|mu| HOME_SCALES.map(|scale| HomeValues { scale, trade_off: mu / square }))
            .collect();
        let errors = |instance: &Instance, (k, run): &(usize, PrivateRun)| {
            let posted = run.run(instance, &plans[*k], SEED);
            let mut errors = vec![instance.error(feature_length, &posted.models)];
            if at_home {
                errors.extend(home_errors(instance, feature_length, &posted, &homes));
            }
            errors
        };
        let means = self.means(instances, &candidates, errors)?;
        let choose = |&method: &Method| {
            let places = if method == Method::GaussianHome { 1..1 + homes.len() } else { 0..1 };
            let (_, best, place) = places
                .map(|place| (least(&means, place), place))
                .map(|((error, best), place)| (error, best, place))
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .expect("a candidate");
            let (k, PrivateRun { trade_off, clip, .. }) = candidates[best];
            let home = (place > 0).then(|| homes[place - 1]);
            let feature_length = Some(feature_length);
            PrivateValues { method, epsilon, feature_length, trade_off, clip, updates: UPDATES[k], home }
        };
        Ok(methods.iter().map(choose).collect())
    }
}

/// The seed of noise and schedules while tuning.
const SEED: u64 = 7;

/// The length of the sound settings' private runs. Home models do not need a ridge of their own, and the choice must not come from
/// real ratings.
const SOUND_LENGTH: f64 = 4.0;

/// The least of the errors at one place, and whose it is: the first's.
fn least(means: &[Vec<f64>], place: usize) -> (f64, usize) {
    let errors = means.iter().enumerate().map(|(k, errors)| (errors[place], k));
    errors.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a candidate")
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
