//! POLAR-SGD, run by the simulator: CHECK 06.c to 06.h, the figures of its reference run, and what happens when clients or servers are gone.

use sottovoce_algorithms::cholesky;
use sottovoce_algorithms::{Dataset, Loss, Points, Shard};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_encrypted::polar::{
    CompactSet, Consensus, Polar, PolarConfig, Scope, Server, State, StepSize, Variant, Weights,
};
use sottovoce_privacy::{Audience, Event, Gate, Simulated};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Society, Status};

/// A standard normal number.
fn normal(coin: &mut Coin) -> f64 {
    let (radius, angle) = (1.0 - coin.unit(), coin.unit());
    (-2.0 * libm::log(radius)).sqrt() * libm::cos(2.0 * std::f64::consts::PI * angle)
}

/// Least squares with clients first and servers behind them, as in the paper's figure.
struct Place {
    data: Dataset,
    loss: Loss,
    clients: u32,
    servers: u32,
    graph: Graph,
    reach: Graph,
}

impl Place {
    fn new(seed: u64, clients: u32, servers: u32, points: usize, dimension: usize, loss: Loss) -> Place {
        let mut coin = Coin::new(seed, 0, 0);
        let truth: Vec<f64> = (0..dimension).map(|_| 2.0 * coin.unit() - 1.0).collect();
        let mut data = Dataset::new(dimension);
        for _ in 0..clients {
            let features: Vec<f64> = (0..points * dimension).map(|_| normal(&mut coin)).collect();
            let label = |row: &[f64]| {
                let dot: f64 = row.iter().zip(&truth).map(|(a, x)| a * x).sum();
                let label = dot + 0.1 * normal(&mut coin);
                if loss.is_classification() { label.signum() } else { label }
            };
            let labels: Vec<f64> = features.chunks_exact(dimension).map(label).collect();
            data.push_agent(&features, &labels);
        }
        (0..servers).for_each(|_| data.push_agent(&[], &[]));
        let agents = (clients + servers) as usize;
        let graph = Graph::from_edges(agents, &[]).expect("a graph");
        Place { data, loss, clients, servers, graph, reach: Graph::complete(agents).expect("a graph") }
    }

    fn shard(&self, id: PeerId) -> Shard<'_> {
        Shard { points: self.data.points(id), loss: self.loss, regularization: 0.0, confidence: 1.0 }
    }

    /// sum_h f_h.
    fn objective(&self, x: &[f64]) -> f64 {
        let points = |id| self.data.points(PeerId(id));
        let of = |points: Points<'_>| -> f64 { points.iter().map(|(a, b)| self.loss.value(dot(a, x), b)).sum() };
        (0..self.clients).map(|id| of(points(id))).sum()
    }

    /// The Hessian of f, least squares only: 2 sum a a^T.
    fn hessian(&self) -> Vec<f64> {
        let d = self.data.dimension();
        let mut hessian = vec![0.0; d * d];
        for id in 0..self.clients {
            for (a, _) in self.data.points(PeerId(id)).iter() {
                (0..d * d).for_each(|k| hessian[k] += 2.0 * a[k / d] * a[k % d]);
            }
        }
        hessian
    }

    /// argmin f by the normal equations.
    fn minimum(&self) -> Vec<f64> {
        let d = self.data.dimension();
        let mut right = vec![0.0; d];
        for id in 0..self.clients {
            for (a, b) in self.data.points(PeerId(id)).iter() {
                (0..d).for_each(|k| right[k] += 2.0 * a[k] * b);
            }
        }
        let mut hessian = self.hessian();
        cholesky::factor(&mut hessian, d).expect("more points than coordinates");
        cholesky::solve(&hessian, d, &mut right);
        right
    }

    /// lambda_max of the Hessian, by power iteration.
    fn curvature(&self) -> f64 {
        let (d, hessian) = (self.data.dimension(), self.hessian());
        let mut at = vec![1.0; d];
        let mut largest = 0.0;
        for _ in 0..500 {
            let image: Vec<f64> = hessian.chunks_exact(d).map(|row| dot(row, &at)).collect();
            largest = dot(&image, &image).sqrt();
            at = image.iter().map(|value| value / largest).collect();
        }
        largest
    }

    /// The gradient of one client at a point, of all its points.
    fn gradient(&self, id: u32, at: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; at.len()];
        for (a, b) in self.data.points(PeerId(id)).iter() {
            let slope = self.loss.slope(dot(a, at), b);
            gradient.iter_mut().zip(a).for_each(|(g, a)| *g += slope * a);
        }
        gradient
    }

    /// The mean norm of clients' gradients at zero.
    fn gradient_norm(&self) -> f64 {
        let zero = vec![0.0; self.data.dimension()];
        let norm = |id| dot(&self.gradient(id, &zero), &self.gradient(id, &zero)).sqrt();
        (0..self.clients).map(norm).sum::<f64>() / f64::from(self.clients)
    }

    /// The parameters of the reference run: 07, section 9. The first step follows from the curvature, Y from the gradients at the start.
    fn config(&self, every: u32, rounds: u32) -> PolarConfig {
        let servers = self.servers as usize;
        PolarConfig {
            agents: self.clients + self.servers,
            servers: (self.clients..self.clients + self.servers).map(PeerId).collect(),
            servers_each: servers,
            colluders: 1,
            dimension: self.data.dimension(),
            variant: Variant::MinimumWait,
            scope: Scope::Block,
            weights: Weights::PerNumber,
            consensus_every: every,
            rounds,
            weight: 5.0,
            weight_bound: 50.0,
            noise_bound: 0.1 * self.gradient_norm(),
            set: CompactSet::Box(10.0),
            start: 0.0,
            batch: 10,
            step: StepSize { first: 0.5 / self.curvature() * 10.0 * servers as f64 / 5.0, offset: 10.0, power: 1.0 },
            consensus: Consensus::Secure,
            links: Vec::new(),
            timeout: 20.0,
            private: None,
        }
    }

    fn start<'w>(
        &'w self,
        polar: &'w Polar,
        seed: u64,
        faults: Faults,
    ) -> Simulation<'w, Polar, impl Fn(PeerId) -> Shard<'w> + Sync> {
        let society = Society { graph: &self.graph, reach: Some(&self.reach), roles: &[] };
        let settings = Settings { clock: Clock::Poisson, seed, threads: 1, tolerance: None, faults };
        let exact = |_: PeerId| Gate::unplanned(Simulated::None);
        Simulation::start_behind(exact, polar, society, |id| self.shard(id), &settings).expect("it starts")
    }

    /// The model of the first server after all rounds.
    fn outcome(&self, config: PolarConfig, seed: u64) -> Vec<f64> {
        let polar = Polar::new(config).expect("good parameters");
        let mut run = self.start(&polar, seed, Faults::default());
        assert_eq!(run.advance(u64::MAX), Status::Done);
        assert!(run.counters().rejected.is_empty(), "{:?}", run.counters().rejected);
        run.model(PeerId(self.clients)).to_vec()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// f(x) - f* of least squares, over f*.
struct Gap {
    hessian: Vec<f64>,
    minimum: Vec<f64>,
    best: f64,
}

impl Gap {
    fn new(place: &Place) -> Gap {
        let minimum = place.minimum();
        Gap { hessian: place.hessian(), best: place.objective(&minimum), minimum }
    }

    fn of(&self, x: &[f64]) -> f64 {
        let off: Vec<f64> = x.iter().zip(&self.minimum).map(|(x, best)| x - best).collect();
        let rows = self.hessian.chunks_exact(x.len());
        0.5 * rows.zip(&off).map(|(row, off_k)| off_k * dot(row, &off)).sum::<f64>() / self.best
    }
}

/// By gradient iteration of the last rounds, from round `from` on: the gap, meant over the servers, before they come together; and the gap at the end.
fn trace(place: &Place, config: PolarConfig, from: u32, seed: u64) -> (Vec<f64>, f64) {
    let (gap, polar) = (Gap::new(place), Polar::new(config).expect("good parameters"));
    let mut run = place.start(&polar, seed, Faults::default());
    let servers = || (place.clients..place.clients + place.servers).map(PeerId);
    while servers().any(|server| progress(run.state(server)).0 < from) {
        run.advance(100);
    }
    let first = from * polar.config().consensus_every;
    let mut gaps = vec![0.0; (polar.steps() - first) as usize + 1];
    gaps[0] = gap.of(run.model(PeerId(place.clients)));
    let mut steps = vec![first; place.servers as usize];
    loop {
        let status = run.advance(1);
        for (server, last) in servers().zip(&mut steps) {
            let step = progress(run.state(server)).1;
            if step > *last {
                *last = step;
                gaps[(step - first) as usize] += gap.of(run.model(server)) / f64::from(place.servers);
            }
        }
        if status == Status::Done {
            return (gaps, gap.of(run.model(PeerId(place.clients))));
        }
    }
}

fn progress(state: &State) -> (u32, u32) {
    state.server().expect("a server").progress()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn near(value: f64, reference: f64) {
    assert!((value / reference - 1.0).abs() <= 0.2, "{value:e}, and {reference:e} in the reference run");
}

/// The data of the paper's figure.
fn figure(seed: u64) -> Place {
    Place::new(seed, 100, 5, 1000, 10, Loss::Squared)
}

/// Spec 06, section 9: the relative gap after 2000 gradient iterations, meant over the servers before they come together, and where they have.
#[test]
fn the_reference_run_is_met_within_a_fifth_with_weights_over_a_block() {
    for (every, inside) in [(10, 2.2e-4), (20, 7.0e-4), (50, 6.0e-3)] {
        let runs = (1..=5).map(|seed| {
            let place = figure(seed);
            trace(&place, place.config(every, 2000 / every), 2000 / every - 1, seed)
        });
        let (insides, ends): (Vec<f64>, Vec<f64>) = runs.map(|(gaps, end)| (gaps[every as usize], end)).unzip();
        near(median(insides), inside);
        assert!(ends.iter().all(|end| *end < 1e-3), "{ends:?}");
        if every == 50 {
            near(median(ends), 1.4e-4);
        }
    }
}

/// The same with weights that add up at each step: the start rises the more the longer a round is.
#[test]
fn the_reference_run_rises_at_first_with_weights_over_an_iteration() {
    for (every, rise) in [(10, 1.0), (20, 1.03), (50, 3.9)] {
        let rises = (1..=5).map(|seed| {
            let place = figure(seed);
            let config = place.config(every, 4);
            let step = StepSize { first: 0.5 * config.step.first, ..config.step };
            let (gaps, _) = trace(&place, PolarConfig { scope: Scope::Iteration, step, ..config }, 0, seed);
            gaps.iter().fold(0.0, |most: f64, gap| most.max(*gap)) / gaps[0]
        });
        near(median(rises.collect()), rise);
    }
}

/// x <- Proj(x - alpha_k sum_h g_h), with the exact gradients.
fn plain_descent(place: &Place, polar: &Polar, factor: f64) -> Vec<f64> {
    let mut x = vec![polar.config().start; place.data.dimension()];
    for round in 0..polar.config().rounds {
        let gradients: Vec<Vec<f64>> = (0..place.clients).map(|id| place.gradient(id, &x)).collect();
        for (k, x) in x.iter_mut().enumerate() {
            *x -= polar.step_size(round) * factor * gradients.iter().map(|gradient| gradient[k]).sum::<f64>();
        }
        polar.project(&mut x);
    }
    x
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()))
}

/// CHECK 06.d.
#[test]
fn equal_weights_and_whole_batches_are_projected_gradient_descent() {
    let place = Place::new(7, 8, 4, 30, 3, Loss::Squared);
    for (set, start) in [(CompactSet::Box(10.0), 0.5), (CompactSet::Box(0.2), 0.1), (CompactSet::Ball(0.4), 0.1)] {
        for variant in [Variant::MinimumWait, Variant::ClientAveraged, Variant::Basic] {
            for rounds in [1, 2, 40] {
                let config = place.config(1, rounds);
                let config =
                    PolarConfig { weight_bound: 5.0, noise_bound: 0.0, batch: 30, set, start, variant, ..config };
                let polar = Polar::new(config.clone()).expect("good parameters");
                let exact = plain_descent(&place, &polar, 5.0 / 4.0);
                let off = largest_difference(&place.outcome(config, 3), &exact);
                // Servers add up multiples of 2^-32.
                assert!(off < 1e-8, "{set:?} {variant:?} after {rounds}: {off:e}");
            }
        }
    }
}

/// CHECK 06.e, where servers have come together; each variant, scope, kind of weights and way to come together.
#[test]
fn every_variant_comes_to_the_minimum() {
    let place = Place::new(11, 20, 5, 300, 5, Loss::Squared);
    let gap = Gap::new(&place);
    let base = PolarConfig { batch: 40, ..place.config(5, 120) };
    let cases = [
        PolarConfig { variant: Variant::MinimumWait, ..base.clone() },
        PolarConfig { variant: Variant::ClientAveraged, ..base.clone() },
        PolarConfig { variant: Variant::Basic, ..base.clone() },
        PolarConfig { variant: Variant::ClientAveraged, weights: Weights::PerCoordinate, ..base.clone() },
        PolarConfig { variant: Variant::Basic, servers_each: 3, colluders: 2, ..base.clone() },
        PolarConfig { variant: Variant::MinimumWait, servers_each: 2, set: CompactSet::Ball(4.0), ..base.clone() },
        PolarConfig { consensus: Consensus::Cycle, ..base.clone() },
        PolarConfig { consensus: Consensus::Pairs, variant: Variant::ClientAveraged, ..base.clone() },
        // A star with a tail, and the same one link after another: a graph that changes from round to round and is never connected.
        PolarConfig { consensus: Consensus::Links, links: vec![(0, 1), (0, 2), (0, 3), (3, 4)], ..base.clone() },
        PolarConfig { consensus: Consensus::Turns, links: vec![(0, 1), (2, 0), (0, 3), (3, 4)], ..base.clone() },
    ];
    let halved = StepSize { first: 0.2 * base.step.first, ..base.step };
    let each_step = [Variant::MinimumWait, Variant::ClientAveraged].map(|variant| PolarConfig {
        variant,
        scope: Scope::Iteration,
        step: halved,
        ..base.clone()
    });
    for config in cases.into_iter().chain(each_step) {
        let off = gap.of(&place.outcome(config.clone(), 5));
        assert!(off < 1e-3, "{off:e} with {config:?}");
    }
}

/// The minimum on a box that keeps it away from the least squares solution: found by projected descent with exact gradients.
#[test]
fn where_the_box_is_active_the_projected_minimum_is_found() {
    let place = Place::new(12, 20, 5, 300, 5, Loss::Squared);
    let set = CompactSet::Box(0.3);
    let config =
        PolarConfig { set, noise_bound: 0.01 * place.gradient_norm(), weight_bound: 8.0, ..place.config(2, 300) };
    let long = PolarConfig { rounds: 3000, step: StepSize { power: 0.6, ..config.step }, ..config.clone() };
    let exact = plain_descent(&place, &Polar::new(long).expect("good parameters"), 1.0);
    let best = place.objective(&exact);
    assert!(exact.iter().any(|value| value.abs() == 0.3) && best > 1.01 * place.objective(&place.minimum()));
    let off = place.objective(&place.outcome(config, 2)) / best - 1.0;
    assert!(off < 1e-3, "{off:e}");
}

/// CHECK 06.f: subgradients, with weights that add up at each step. (Over a block nothing is claimed for the hinge.)
#[test]
fn hinge_regression_converges_with_weights_over_an_iteration() {
    let place = Place::new(13, 10, 3, 100, 4, Loss::Hinge);
    let step = StepSize { first: 0.02, offset: 10.0, power: 0.75 };
    let base = PolarConfig {
        scope: Scope::Iteration,
        weight: 3.0,
        weight_bound: 9.0,
        noise_bound: 0.1 * place.gradient_norm(),
        batch: 20,
        step,
        ..place.config(3, 800)
    };
    let long = PolarConfig { rounds: 6000, ..base.clone() };
    let best = place.objective(&plain_descent(&place, &Polar::new(long).expect("good parameters"), 1.0));
    for variant in [Variant::MinimumWait, Variant::ClientAveraged] {
        let off = place.objective(&place.outcome(PolarConfig { variant, ..base.clone() }, 4)) / best - 1.0;
        assert!(off.abs() < 0.01, "{variant:?}: {off:e}");
    }
}

/// CHECK 06.g: inside of a round no server is further from their mean than 2 i alpha_k C (Mbar L + Y).
#[test]
fn servers_stay_together_inside_of_a_round() {
    let place = Place::new(17, 6, 4, 40, 3, Loss::Squared);
    let config = PolarConfig { batch: 40, ..place.config(8, 6) };
    let polar = Polar::new(config.clone()).expect("good parameters");
    let mut run = place.start(&polar, 1, Faults::default());
    let servers: Vec<PeerId> = config.servers.clone();
    let (mut steps, mut models) = (vec![0; 4], vec![vec![0.0; 3]; 4]);
    let (mut slope, mut seen, mut furthest) = (0.0_f64, 0, 0.0_f64);
    while run.advance(1) != Status::Done {
        for (k, server) in servers.iter().enumerate() {
            let (round, step) = progress(run.state(*server));
            for id in 0..place.clients {
                let gradient = place.gradient(id, run.model(*server));
                slope = slope.max(dot(&gradient, &gradient).sqrt());
            }
            if step > steps[k] {
                (steps[k], models[k]) = (step, run.model(*server).to_vec());
            }
            if k == 3 && steps.iter().all(|other| *other == step) && step > seen {
                seen = step;
                let mean: Vec<f64> = (0..3).map(|c| models.iter().map(|x| x[c]).sum::<f64>() / 4.0).collect();
                let inner = f64::from(step - round * 8);
                let bound = 2.0 * inner * polar.step_size(round) * 6.0 * (50.0 * slope + config.noise_bound);
                for x in &models {
                    let off: Vec<f64> = x.iter().zip(&mean).map(|(x, mean)| x - mean).collect();
                    let off = dot(&off, &off).sqrt();
                    assert!(off <= bound, "{off} above {bound} at {step}");
                    furthest = furthest.max(off);
                }
            }
        }
    }
    assert_eq!(seen, polar.steps(), "every step was looked at");
    assert!(furthest > 1e-3, "they do part: {furthest}");
}

/// What one server sees of client 0 at a model that stays where it is: for each round the uploads of its steps.
fn seen_by_one_server(place: &Place, config: PolarConfig, seed: u64) -> Vec<Vec<f64>> {
    let still = StepSize { first: 1e-30, ..config.step };
    let polar = Polar::new(PolarConfig { step: still, ..config }).expect("good parameters");
    let mut run = place.start(&polar, seed, Faults::default());
    let server = PeerId(place.clients);
    let mut uploads: Vec<Vec<f64>> = Vec::new();
    loop {
        let status = run.advance(1);
        let state = run.state(server).server().expect("a server");
        let step = state.progress().1;
        if step as usize > uploads.len() {
            uploads.push(state.upload(step - 1, 0).to_vec());
        }
        if status == Status::Done {
            return uploads;
        }
    }
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// CHECK 06.h, the first half, and section 9: an upload points elsewhere than the gradient, and the mean of many does not.
#[test]
fn one_upload_hides_a_gradient_and_a_hundred_rounds_do_not() {
    let place = Place::new(19, 2, 5, 1000, 10, Loss::Squared);
    let gradient = place.gradient(0, &[0.0; 10]);
    let config = PolarConfig { batch: 1000, ..place.config(50, 100) };
    let uploads = seen_by_one_server(&place, config.clone(), 3);
    let single = uploads.iter().map(|upload| cosine(upload, &gradient).abs()).sum::<f64>() / uploads.len() as f64;
    let bare = PolarConfig { noise_bound: 0.0, weight_bound: config.weight, rounds: 1, ..config.clone() };
    let unperturbed = cosine(&seen_by_one_server(&place, bare, 3)[0], &gradient);
    assert!(unperturbed > 1.0 - 1e-12, "{unperturbed}");
    near(single, 0.84);
    let batches = PolarConfig { batch: 10, ..config.clone() };
    let mean_of = |uploads: &[Vec<f64>]| -> Vec<f64> { (0..10).map(|c| uploads.iter().map(|y| y[c]).sum()).collect() };
    let after_100 = cosine(&mean_of(&seen_by_one_server(&place, batches.clone(), 3)), &gradient);
    let loud = PolarConfig { noise_bound: 10.0 * config.noise_bound, ..batches };
    let loud = cosine(&mean_of(&seen_by_one_server(&place, loud, 3)), &gradient);
    assert!(after_100 > 0.98, "{after_100}");
    assert!(loud < after_100 && loud > 0.6, "{loud}");
}

/// CHECK 06.h, the second half: who holds which points does not show in what servers agree on.
#[test]
fn data_with_the_same_sum_give_the_same_trajectory() {
    let place = Place::new(23, 6, 3, 20, 3, Loss::Squared);
    let mut moved = Place::new(23, 6, 3, 20, 3, Loss::Squared);
    moved.data = Dataset::new(3);
    for id in 0..6 {
        // Every client has half of its points, and half of the next one's.
        let (own, next) = (place.data.points(PeerId(id)), place.data.points(PeerId((id + 1) % 6)));
        let features = [&own.features[..30], &next.features[30..]].concat();
        let labels = [&own.labels[..10], &next.labels[10..]].concat();
        moved.data.push_agent(&features, &labels);
    }
    (0..3).for_each(|_| moved.data.push_agent(&[], &[]));
    for rounds in [1, 5, 30] {
        let config = PolarConfig { batch: 20, variant: Variant::ClientAveraged, ..place.config(1, rounds) };
        let [a, b] = [(&place, 1), (&moved, 2)].map(|(place, seed)| place.outcome(config.clone(), seed));
        assert!(largest_difference(&a, &b) < 1e-8, "after {rounds}: {a:?} {b:?}");
    }
}

#[test]
fn a_clients_ledger_says_infinity_against_the_servers_and_a_server_is_charged_nothing() {
    let place = Place::new(29, 4, 3, 10, 2, Loss::Logistic);
    let polar = Polar::new(place.config(3, 2)).expect("good parameters");
    let mut run = place.start(&polar, 1, Faults::default());
    assert_eq!(run.advance(u64::MAX), Status::Done);
    for id in 0..4 {
        let ledger = run.ledger(PeerId(id));
        assert_eq!(ledger.releases(), 3 * 2 * 3, "one upload to each server at every step");
        assert!(ledger.charges().all(|charge| charge.event == Event::Reveal && charge.audience == Audience::Servers));
        assert_eq!(run.model(PeerId(id)), run.model(PeerId(4)), "everyone has the outcome");
    }
    assert!((4..7).all(|id| run.ledger(PeerId(id)).releases() == 0));
}

/// Everyone is away now and then, servers included, and letters are late: nobody is left out for good, and the minimum is found.
#[test]
fn a_storm_delays_the_minimum_and_does_not_move_it() {
    let place = Place::new(31, 10, 3, 200, 3, Loss::Squared);
    let gap = Gap::new(&place);
    let polar = Polar::new(PolarConfig { batch: 50, ..place.config(4, 120) }).expect("good parameters");
    let faults = Faults {
        loss: 0.2,
        duplicate: 0.1,
        delay_mean: 1.0,
        delay_max: 5.0,
        leave: 0.3,
        until: 400.0,
        ..Faults::default()
    };
    let mut run = place.start(&polar, 1, faults);
    assert_eq!(run.advance(u64::MAX), Status::Done);
    let off = gap.of(run.model(PeerId(10)));
    assert!(off < 1e-3, "{off:e}");
    assert!((0..13).all(|id| run.model(PeerId(id)) == run.model(PeerId(10))));
}

/// Clients that die for good are left out, and the others come to their own minimum.
#[test]
fn clients_that_are_gone_are_left_out_and_the_others_come_to_their_minimum() {
    let mut tried = 0;
    for seed in 1..40 {
        let place = Place::new(37, 12, 3, 200, 3, Loss::Squared);
        let polar = Polar::new(PolarConfig { batch: 50, ..place.config(3, 100) }).expect("good parameters");
        let faults = Faults { die: 0.15, delay_mean: 0.1, delay_max: 1.0, until: 30.0, ..Faults::default() };
        let mut run = place.start(&polar, seed, faults);
        let status = run.advance(400_000);
        // A server that never comes back is waited for.
        let gone: Vec<u32> = (0..15).filter(|id| run.is_dead(PeerId(*id))).collect();
        if gone.is_empty() || gone.iter().any(|id| *id >= 12) {
            continue;
        }
        assert_eq!(status, Status::Done);
        let mut left = Place::new(37, 12, 3, 200, 3, Loss::Squared);
        left.data = Dataset::new(3);
        for id in 0..15 {
            let points = place.data.points(PeerId(id));
            if gone.contains(&id) {
                left.data.push_agent(&[], &[])
            } else {
                left.data.push_agent(points.features, points.labels)
            }
        }
        let off = Gap::new(&left).of(run.model(PeerId(12)));
        assert!(off < 1e-3, "{off:e} without {gone:?}");
        assert_eq!(run.state(PeerId(13)).server().map(Server::absent), Some(gone.len()));
        tried += 1;
        if tried == 3 {
            return;
        }
    }
    panic!("{tried} runs in which only clients died");
}
