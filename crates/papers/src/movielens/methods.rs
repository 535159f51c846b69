//! The rows of the table: how each user's model is made.

use super::method::Method;
use super::setting::Instance;
use super::values::{PrivateValues, SettingValues};
use sottovoce_algorithms::Problem;
use sottovoce_algorithms::personal::{
    descent::{
        CoordinateDescent, CoordinateDescentConfig, PrivateCoordinateDescent, PrivateCoordinateDescentConfig, Start,
    },
    home::{Broadcast, Home},
};
use sottovoce_algorithms::reference::local::solitary_models;
use sottovoce_core::{PeerId, Posts, Rows};
use sottovoce_privacy::calibrate::{NoiseKind, noise_multiplier};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Gate, Idealized, Plan, Simulated, Theorem1, Tight};
use sottovoce_sim::{Clock, Faults, Settings, Simulation};
use std::sync::Arc;

/// Wakes per user of coordinate descent without privacy.
const WAKES: u64 = 300;

/// The paper's clip, "large enough that gradients are almost never clipped".
pub const PAPER_CLIP: f64 = 10.0;

/// delta of the paper's experiments.
pub fn delta() -> f64 {
    libm::exp(-5.0)
}

/// The error of local models.
pub fn local(instance: &Instance, feature_length: f64) -> f64 {
    instance.error(feature_length, &solitary_models(&instance.problem(feature_length, 1.0)))
}

/// The error of coordinate descent without privacy, from local models.
pub fn descent(instance: &Instance, feature_length: f64, trade_off: f64, seed: u64) -> f64 {
    let problem = instance.problem(feature_length, trade_off);
    let (dimension, loss) = (problem.dimension(), problem.loss);
    let config = CoordinateDescentConfig { dimension, loss, trade_off, start: Start::Local };
    let algorithm = CoordinateDescent::new(config).expect("values above zero");
    let mut simulation = Simulation::start(&algorithm, &problem.graph, |id| problem.shard(id), &settings(seed))
        .expect("without a plan nothing is refused");
    simulation.advance(WAKES * problem.agents() as u64);
    instance.error(feature_length, &simulation.models())
}

/// One thread: cells are what is shared out.
fn settings(seed: u64) -> Settings {
    Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() }
}

/// The releases of each user: the least noise that keeps the budget, by the tight accountant.
///
/// # Panics
/// When no noise keeps the budget.
pub fn sound_plan(noise: NoiseKind, epsilon: f64, updates: u64) -> Plan {
    let steps = |multiplier: f64| vec![noise.event(multiplier); updates as usize];
    Plan::with_least_noise(steps, epsilon, delta(), &Tight).expect("a budget that can be kept")
}

/// The releases with the paper's noise: Laplace of scale 2 C / (eps_t m_i), eps_t by Theorem 1.
///
/// Laplace noise needs a bound on gradients in L1; the paper's C is read as one in L2, the usual one, which in p dimensions allows
/// sqrt(p) times as much in L1. So its noise is that of a clip at sqrt(p) C in L1 with a multiplier sqrt(p) times too small. The
/// plan says so: its events carry the true multiplier, and the ledger of a run is what it truly costs.
///
/// # Panics
/// When no noise keeps the budget.
pub fn paper_plan(dimension: usize, epsilon: f64, updates: u64) -> Plan {
    let claimed = noise_multiplier(NoiseKind::Laplace, epsilon, delta(), updates, &Theorem1).expect("a budget to keep");
    let event = NoiseKind::Laplace.event(claimed / libm::sqrt(dimension as f64));
    Plan::new(vec![event; updates as usize], f64::INFINITY, delta(), &Tight).expect("noise of a finite cost")
}

/// What a private run is made with, budget apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivateRun {
    /// How long features are.
    pub feature_length: f64,
    /// mu.
    pub trade_off: f64,
    /// B.
    pub clip: f64,
    /// The noise, which says in which norm gradients are clipped.
    pub noise: NoiseKind,
}

/// What came of a private run.
#[derive(Debug)]
pub struct Posted {
    problem: Problem,
    /// What each user broadcast last.
    pub models: Rows,
}

impl PrivateRun {
    /// Runs private coordinate descent from zero until everyone has followed the plan.
    pub fn run(&self, instance: &Instance, plan: &Arc<Plan>, seed: u64) -> Posted {
        let problem = instance.problem(self.feature_length, self.trade_off);
        let config = PrivateCoordinateDescentConfig {
            dimension: problem.dimension(),
            loss: problem.loss,
            trade_off: self.trade_off,
            clip: self.clip,
            norm: match self.noise {
                NoiseKind::Laplace => Norm::L1,
                NoiseKind::Gaussian => Norm::L2,
            },
            feature_bound: self.feature_length,
            l1_features: false,
            warm: None,
        };
        let algorithm = PrivateCoordinateDescent::new(config).expect("values above zero");
        let gates = |id: PeerId| {
            let silent = problem.graph.peers(id).is_empty();
            let plan = if silent { Arc::new(Plan::nothing()) } else { plan.clone() };
            Gate::planned(plan, Simulated::Idealized(Idealized::new(seed, id.0)))
        };
        let mut simulation =
            Simulation::start_behind(gates, &algorithm, &problem.graph, |id| problem.shard(id), &settings(seed))
                .expect("nothing is released at the start");
        simulation.advance((20 + 2 * plan.steps().len() as u64) * problem.agents() as u64);
        let models = simulation.models();
        drop(simulation);
        Posted { problem, models }
    }
}

impl Posted {
    /// What each user makes of its neighbours' last posts and its own exact ratings. It is never sent.
    pub fn home(&self, home: Home) -> Rows {
        let Posted { problem, models } = self;
        let mut at_home = Rows::zeros(problem.agents(), problem.dimension());
        // Of a neighbour's post a tuned home model reads nothing but the number of points.
        let known =
            |id| Broadcast { points: problem.data.size(id), scale: 1.0, variance: f64::INFINITY, length_squared: 1.0 };
        for me in (0..problem.agents() as u32).map(PeerId) {
            let posts = Posts::Board { rows: models, me };
            let model = home.model(&problem.shard(me), problem.graph.peers(me), posts, known);
            at_home.row_mut(me.index()).copy_from_slice(&model);
        }
        at_home
    }
}

/// The releases of each user in a private cell.
pub fn plan(dimension: usize, values: &PrivateValues) -> Plan {
    match values.method {
        Method::PaperNoise => paper_plan(dimension, values.epsilon, values.updates),
        _ => sound_plan(values.method.noise(), values.epsilon, values.updates),
    }
}

/// What a private cell's run is made with.
pub fn private_run(instance: &Instance, values: &PrivateValues) -> PrivateRun {
    let PrivateValues { method, feature_length, trade_off, clip, .. } = *values;
    let feature_length = feature_length.unwrap_or(instance.natural_length());
    let clip = match method {
        // Read as a bound in L2; see `paper_plan`.
        Method::PaperNoise => clip * libm::sqrt(instance.dimension() as f64),
        _ => clip,
    };
    PrivateRun { feature_length, trade_off, clip, noise: method.noise() }
}

/// The error of one cell in one run. A private method needs its values and its plan.
pub fn error(
    method: Method,
    instance: &Instance,
    setting: &SettingValues,
    private: Option<(&PrivateValues, &Arc<Plan>)>,
    seed: u64,
) -> f64 {
    match method {
        Method::LocalOneOverM => local(instance, instance.natural_length()),
        Method::Local => local(instance, setting.local_feature_length),
        Method::Descent => descent(instance, setting.feature_length, setting.trade_off, seed),
        _ => {
            let (values, plan) = private.expect("a private method has a plan");
            let run = private_run(instance, values);
            let posted = run.run(instance, plan, seed);
            match values.home.filter(|_| method == Method::GaussianHome) {
                Some(home) => instance.error(run.feature_length, &posted.home(home.into())),
                None => instance.error(run.feature_length, &posted.models),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::als::Als;
    use super::super::ratings::Split;
    use super::super::setting::Setting;
    use super::super::testing::sample;
    use super::super::values::HomeValues;
    use super::*;
    use sottovoce_privacy::sensitivity::of_clipped_mean;
    use sottovoce_privacy::{Accountant, Event};

    fn instance(setting: Setting) -> Instance {
        let data = sample(60, 80, 2);
        let als = Als { rank: 4, ridge: 0.1, sweeps: 5 };
        Instance::new(&data, Split::new(&data.ratings, 1), setting, &als, 1).expect("enough users")
    }

    /// The scale that the paper's text gives, for m_i = 50, and eps_t by Theorem 1 as tabulated for ten updates.
    #[test]
    fn the_papers_noise_is_the_papers_and_costs_more_than_it_says() {
        for (epsilon, each) in [(1.0, 0.106046), (0.5, 0.058500), (0.1, 0.014702)] {
            let plan = paper_plan(20, epsilon, 10);
            let Event::Laplace { noise_multiplier } = plan.steps()[0] else { panic!("Laplace noise") };
            let scale = noise_multiplier * of_clipped_mean(PAPER_CLIP * 20f64.sqrt(), 50);
            let printed = 2.0 * PAPER_CLIP / (each * 50.0);
            assert!((scale / printed - 1.0).abs() < 1e-4, "{scale} {printed}");
            let cost = Tight.epsilon(&plan.ledger(), delta());
            assert!(cost > 2.0 * epsilon, "claimed {epsilon}, true {cost}");
        }
    }

    #[test]
    fn sound_plans_keep_their_budget_and_use_it() {
        for noise in [NoiseKind::Laplace, NoiseKind::Gaussian] {
            for updates in [1, 30] {
                let cost = Tight.epsilon(&sound_plan(noise, 0.5, updates).ledger(), delta());
                assert!(cost <= 0.5 && cost > 0.49, "{noise:?} {updates}: {cost}");
            }
        }
    }

    #[test]
    fn at_home_all_the_weight_on_own_ratings_is_the_local_model() {
        let instance = instance(Setting::Paper);
        let run = PrivateRun { feature_length: 2.0, trade_off: 1.0, clip: 1.0, noise: NoiseKind::Gaussian };
        let posted = run.run(&instance, &Arc::new(sound_plan(NoiseKind::Gaussian, 1.0, 3)), 1);
        let error = |trade_off| instance.error(2.0, &posted.home(Home::Tuned { scale: 1.0, trade_off }));
        assert!((error(1e9) - local(&instance, 2.0)).abs() < 1e-4);
        assert!((error(1.0) - local(&instance, 2.0)).abs() > 1e-3, "neighbours have a say");
        // And a cell of home models is scored by them.
        let values = PrivateValues {
            method: Method::GaussianHome,
            epsilon: 1.0,
            feature_length: Some(2.0),
            trade_off: 1.0,
            clip: 1.0,
            updates: 3,
            home: Some(HomeValues { scale: 1.0, trade_off: 1.0 }),
        };
        let plan = Arc::new(plan(4, &values));
        let none =
            SettingValues { local_feature_length: 1.0, feature_length: 1.0, trade_off: 1.0, private: Vec::new() };
        let cell = super::error(Method::GaussianHome, &instance, &none, Some((&values, &plan)), 1);
        assert_eq!(cell, error(1.0));
    }

    #[test]
    fn noise_follows_from_the_seed_and_shrinks_with_the_budget() {
        let instance = instance(Setting::Sound);
        let run = PrivateRun { feature_length: 1.0, trade_off: 30.0, clip: 1.0, noise: NoiseKind::Gaussian };
        let models = |epsilon: f64, seed: u64| {
            let posted = run.run(&instance, &Arc::new(sound_plan(NoiseKind::Gaussian, epsilon, 5)), seed);
            posted.models.values().to_vec()
        };
        assert_eq!(models(1.0, 1), models(1.0, 1));
        assert_ne!(models(1.0, 1), models(1.0, 2));
        let far = |epsilon: f64| {
            // Same wakes, so what differs is the noise.
            let exact = models(1e6, 1);
            models(epsilon, 1).iter().zip(&exact).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
        };
        assert!(far(0.1) > 10.0 * far(1.0) && far(1.0) > 0.0);
    }
}
