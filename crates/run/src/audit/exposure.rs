//! What one server learns of a client where gradients are weighted and shifted and nothing is promised: measured, not claimed.
//!
//! Models are held where they start, by steps that move nothing, so that a client's gradient is one vector, and the real clients and servers run. An honest but
//! curious server keeps all that one of its clients uploads.
//!
//! | question | answer |
//! |---|---|
//! | where does the gradient point? | the size of the cosine between it and the mean of the uploads, after 1, 10, 100 and 1,000 rounds |
//! | is a record among the client's? | the area under the curve of a test between the record and one of another client, by someone who knows all other records |
//!
//! The test looks at right angles to the gradient, where weights do not matter: u is the part of g_1 - g_0 that is orthogonal to their mean g, and the
//! server computes (y.u) / (y.g), which is positive in one world and negative in the other but for batches and added vectors. Other attacks may do better.

use super::Watch;
use crate::train::Halt;
use sottovoce_algorithms::vector::{add_scaled, dot, norm};
use sottovoce_algorithms::{Points, Problem, Shard};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_encrypted::polar::client::gradient;
use sottovoce_encrypted::polar::{Polar, PolarConfig, StepSize};
use sottovoce_privacy::{Accountant, Audience, Gate, Idealized, Ledger, Plan, Simulated, Tight};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use sottovoce_task::algorithms::polar_sgd;
use sottovoce_task::load::Loaded;
use std::ops::ControlFlow;
use std::sync::Arc;

/// After how many rounds the server looks at what it has of a gradient.
pub const COSINE_ROUNDS: [u32; 4] = [1, 10, 100, 1000];

/// After how many rounds it tells a record from another.
pub const MEMBERSHIP_ROUNDS: [u32; 3] = [1, 10, 100];

/// At most so many clients are looked at.
const CLIENTS_MAX: usize = 10;

/// At most so many records are told apart.
const TRIALS_MAX: usize = 100;

/// At most so many numbers of altered data are held.
const COPIES_MAX: usize = 12_500_000;

/// Steps so small that models stay where they are.
const STILL: f64 = 1e-30;

/// What one server learns.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposure {
    /// How many servers there are.
    pub servers: usize,
    /// Clients whose uploads were looked at.
    pub clients: usize,
    /// The mean size of the cosine between one upload and the client's gradient.
    pub cosine_upload: f64,
    /// The same for the mean of all uploads of so many rounds: [`COSINE_ROUNDS`].
    pub cosines: Vec<f64>,
    /// Records that were told from others.
    pub trials: usize,
    /// How well they were, after so many rounds: the probability that a client with the record looks more like it than one without. 1/2 is guessing:
    /// [`MEMBERSHIP_ROUNDS`].
    pub membership: Vec<f64>,
    /// What the ledger of a client comes to, against the servers.
    pub epsilon: f64,
}

/// Measures what a server of the task learns, with some trials at most.
pub fn exposure(loaded: &Loaded, trials: u64, seed: u64, watch: Watch<'_>) -> Result<Exposure, Halt> {
    let config = polar_sgd::polar(loaded)?.config().clone();
    let (problem, servers) = (&loaded.problem, config.servers.len());
    let one = OneServer { config, plan: None, seed };
    let shards: Vec<Shard<'_>> =
        with_points(problem).into_iter().take(CLIENTS_MAX).map(|id| problem.shard(id)).collect();
    let Cosines { single, means, ledger } = one.cosines(&shards, &COSINE_ROUNDS, watch)?;
    let trials = usize::try_from(trials).unwrap_or(usize::MAX);
    let (trials, membership) = one.membership(problem, &MEMBERSHIP_ROUNDS, trials, watch)?;
    assert!(ledger.charges().all(|charge| charge.audience == Audience::Servers), "uploads are for servers");
    Ok(Exposure {
        servers,
        clients: shards.len(),
        cosine_upload: single,
        cosines: means,
        trials,
        membership,
        epsilon: Tight.epsilon(&ledger, 0.5),
    })
}

/// Whoever has points.
fn with_points(problem: &Problem) -> Vec<PeerId> {
    (0..problem.agents() as u32).map(PeerId).filter(|id| problem.data.size(*id) > 0).collect()
}

/// What a server sees in one step of one client: whose, after how many steps, and what.
type Look<'a> = &'a mut dyn FnMut(usize, u32, &[f64]) -> ControlFlow<()>;

/// A server that keeps all that it is sent, with models held where they start.
#[derive(Clone, Debug)]
pub struct OneServer {
    /// The run that it is a server of.
    pub config: PolarConfig,
    /// What clients may release; `None`: everything.
    pub plan: Option<Arc<Plan>>,
    /// Decides all choices, and all noise.
    pub seed: u64,
}

/// Where a client's gradient points, as one server sees it.
#[derive(Clone, Debug)]
pub struct Cosines {
    /// The mean size of the cosine between one upload of the first round and the client's gradient.
    pub single: f64,
    /// The same for the mean of all uploads, by numbers of rounds.
    pub means: Vec<f64>,
    /// What one of the clients was charged.
    pub ledger: Ledger,
}

impl OneServer {
    /// Runs these clients with all servers. `look` is shown each upload to the first server of each client; returns a client's ledger.
    fn run(&self, shards: &[Shard<'_>], rounds: u32, look: Look<'_>) -> Result<Ledger, Halt> {
        let (clients, servers) = (shards.len() as u32, self.config.servers.len() as u32);
        let polar = Polar::new(PolarConfig {
            agents: clients + servers,
            servers: (clients..clients + servers).map(PeerId).collect(),
            rounds,
            step: StepSize { first: STILL, ..self.config.step },
            ..self.config.clone()
        });
        let polar = polar.expect("rounds of a run that was accepted");
        let nothing = Points { features: &[], labels: &[], dimension: self.config.dimension };
        let data = |id: PeerId| match shards.get(id.index()) {
            Some(shard) => *shard,
            None => Shard { points: nothing, ..shards[0] },
        };
        let gates = |id: PeerId| match &self.plan {
            None => Gate::unplanned(Simulated::None),
            Some(plan) => Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(self.seed, id.0))),
        };
        let graph = Graph::Complete { n: clients + servers };
        let settings =
            Settings { clock: Clock::Poisson, seed: self.seed, threads: 1, tolerance: None, faults: Faults::default() };
        let mut run = Simulation::start_behind(gates, &polar, &graph, data, &settings).expect("nobody speaks first");
        let mut steps = vec![0; servers as usize];
        loop {
            let status = run.advance(1);
            for (place, last) in steps.iter_mut().enumerate() {
                let server = run.state(PeerId(clients + place as u32)).server().expect("servers are the last agents");
                let (_, step) = server.progress();
                if step > *last {
                    *last = step;
                    // The first server of a client is the one at its own place.
                    for client in (place..shards.len()).step_by(servers as usize) {
                        if look(client, step, server.upload(step - 1, client)).is_break() {
                            return Err(Halt::Interrupted);
                        }
                    }
                }
            }
            if status == Status::Done {
                return Ok(run.ledger(PeerId(0)).clone());
            }
        }
    }

    /// The gradient at the start, of all points.
    fn gradient(&self, shard: &Shard<'_>) -> Vec<f64> {
        let mut out = vec![0.0; self.config.dimension];
        gradient(shard, None, &vec![self.config.start; self.config.dimension], &mut out);
        out
    }

    /// Where the gradients of these clients point, after so many rounds, the most of them last.
    pub fn cosines(&self, shards: &[Shard<'_>], rounds: &[u32], watch: Watch<'_>) -> Result<Cosines, Halt> {
        let (every, last) = (self.config.consensus_every, rounds[rounds.len() - 1]);
        let gradients: Vec<Vec<f64>> = shards.iter().map(|shard| self.gradient(shard)).collect();
        let mut sums = vec![vec![0.0; self.config.dimension]; shards.len()];
        let (mut single, mut means, clients) = (0.0, vec![0.0; rounds.len()], shards.len() as f64);
        let ledger = self.run(shards, last, &mut |client, step, upload| {
            add_scaled(&mut sums[client], 1.0, upload);
            if step <= every {
                single += cosine(upload, &gradients[client]) / (clients * f64::from(every));
            }
            if !step.is_multiple_of(every) {
                return ControlFlow::Continue(());
            }
            if let Some(place) = rounds.iter().position(|rounds| *rounds == step / every) {
                means[place] += cosine(&sums[client], &gradients[client]) / clients;
            }
            watch("what a server sees of gradients", u64::from(step / every), u64::from(last))
        })?;
        Ok(Cosines { single, means, ledger })
    }

    /// How well records are told from others after so many rounds, the most of them last; and how many were.
    pub fn membership(
        &self,
        problem: &Problem,
        rounds: &[u32],
        trials: usize,
        watch: Watch<'_>,
    ) -> Result<(usize, Vec<f64>), Halt> {
        let (every, last, clients) = (self.config.consensus_every, rounds[rounds.len() - 1], with_points(problem));
        let room = COPIES_MAX / (problem.data.largest() * self.config.dimension).max(1);
        let trials = TRIALS_MAX.min(room.max(4)).min(trials);
        let mut coin = Coin::new(self.seed, u32::MAX, 7);
        let pairs: Vec<Replaced> = (0..trials).map(|_| Replaced::draw(problem, &clients, &mut coin)).collect();
        // The client with its own record, then the same client with another's in its place.
        let worlds = pairs.iter().flat_map(|pair| {
            let own = problem.shard(pair.client);
            [own, Shard { points: pair.points(own.points.dimension), ..own }]
        });
        let worlds: Vec<Shard<'_>> = worlds.collect();
        let tests: Vec<Test> =
            worlds.chunks_exact(2).map(|pair| Test::new(&self.gradient(&pair[0]), &self.gradient(&pair[1]))).collect();
        let mut sums = vec![vec![0.0; self.config.dimension]; worlds.len()];
        let mut favours = vec![[Vec::new(), Vec::new()]; rounds.len()];
        self.run(&worlds, last, &mut |client, step, upload| {
            add_scaled(&mut sums[client], 1.0, upload);
            if !step.is_multiple_of(every) {
                return ControlFlow::Continue(());
            }
            if let Some(place) = rounds.iter().position(|rounds| *rounds == step / every) {
                favours[place][client % 2].push(tests[client / 2].favour(&sums[client]));
            }
            watch("what a server sees of records", u64::from(step / every), u64::from(last))
        })?;
        Ok((trials, favours.iter().map(|[with, without]| area(with, without)).collect()))
    }
}

/// The size of the cosine; zero where there is no direction.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let lengths = norm(a) * norm(b);
    if lengths > 0.0 { (dot(a, b) / lengths).abs() } else { 0.0 }
}

/// The share of pairs in which the first is above the second; equal ones count half.
fn area(above: &[f64], below: &[f64]) -> f64 {
    let score = |a: f64, b: f64| 0.5 * (f64::from(u8::from(a > b)) + f64::from(u8::from(a >= b)));
    let total: f64 = above.iter().flat_map(|a| below.iter().map(move |b| score(*a, *b))).sum();
    total / (above.len() * below.len()) as f64
}

/// A client's points with one of them replaced by a point of another client.
struct Replaced {
    client: PeerId,
    features: Vec<f64>,
    labels: Vec<f64>,
}

impl Replaced {
    fn draw(problem: &Problem, clients: &[PeerId], coin: &mut Coin) -> Replaced {
        let data = &problem.data;
        let place = coin.below(clients.len());
        // Another client; the same one where there is no other.
        let step = if clients.len() > 1 { 1 + coin.below(clients.len() - 1) } else { 0 };
        let (client, other) = (clients[place], clients[(place + step) % clients.len()]);
        let (own, theirs) = (data.points(client), data.points(other));
        let (record, with) = (coin.below(own.len()), coin.below(theirs.len()));
        let (mut features, mut labels) = (own.features.to_vec(), own.labels.to_vec());
        let dimension = own.dimension;
        features[record * dimension..][..dimension].copy_from_slice(&theirs.features[with * dimension..][..dimension]);
        labels[record] = theirs.labels[with];
        Replaced { client, features, labels }
    }

    fn points(&self, dimension: usize) -> Points<'_> {
        Points { features: &self.features, labels: &self.labels, dimension }
    }
}

/// How a server tells two gradients apart.
struct Test {
    /// Their mean.
    mean: Vec<f64>,
    /// What tells them apart, at right angles to the mean.
    apart: Vec<f64>,
}

impl Test {
    fn new(with: &[f64], without: &[f64]) -> Test {
        let mean: Vec<f64> = with.iter().zip(without).map(|(a, b)| 0.5 * (a + b)).collect();
        let mut apart: Vec<f64> = with.iter().zip(without).map(|(a, b)| a - b).collect();
        let square = dot(&mean, &mean);
        if square > 0.0 {
            let along = dot(&apart, &mean) / square;
            add_scaled(&mut apart, -along, &mean);
        }
        Test { mean, apart }
    }

    /// How much a sum of uploads speaks for the first.
    fn favour(&self, sum: &[f64]) -> f64 {
        let (weight, size) = (dot(sum, &self.mean), dot(&self.apart, &self.apart));
        if weight == 0.0 || size == 0.0 {
            0.0
        } else {
            dot(sum, &self.apart) * dot(&self.mean, &self.mean) / (weight * size)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_a_half_for_equals_and_one_for_what_is_always_above() {
        assert_eq!(area(&[1.0, 2.0], &[1.0, 2.0]), 0.5);
        assert_eq!(area(&[3.0, 4.0], &[1.0, 2.0]), 1.0);
        assert_eq!(area(&[1.0], &[1.0]), 0.5);
    }

    /// Whatever the weight of an upload, also a negative one, the test tells the two gradients apart.
    #[test]
    fn weights_do_not_hide_which_of_two_gradients_it_is() {
        let (with, without) = ([3.0, 1.0, 0.5], [3.0, 1.2, 0.1]);
        let test = Test::new(&with, &without);
        for weight in [-7.0, 0.01, 1.0, 40.0] {
            let upload = |gradient: &[f64]| gradient.iter().map(|g| weight * g).collect::<Vec<f64>>();
            assert!(test.favour(&upload(&with)) > 0.0 && test.favour(&upload(&without)) < 0.0);
        }
        assert_eq!(Test::new(&with, &with).favour(&with), 0.0, "nothing to tell apart");
    }
}
