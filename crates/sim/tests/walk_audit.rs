//! What members see of a token that walks, alone and in coalitions of two and five: record and replay, and lower bounds on epsilon from their views of whole
//! runs, beside what is claimed.

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::{Beyond, Goal, Movement, Sums, SumsConfig, Walk, WalkConfig};
use sottovoce_algorithms::token::walk_sgd::{Gradient, GradientConfig};
use sottovoce_algorithms::{Bounds, Loss, Observations, Points, Shard};
use sottovoce_core::{Coin, PeerId};
use sottovoce_privacy::audit::{Recording, Release, Replaying, Worlds, distance, epsilon_bound};
use sottovoce_privacy::network::{self, Cycle, Iteration};
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Simulated, Sum, Track};
use std::sync::Arc;

const MEMBERS: usize = 12;
const HOPS: u64 = 60;
const CONTRIBUTIONS: u32 = 6;
const LAW: Event = Event::Gaussian { noise_multiplier: 1.5 };

fn config() -> WalkConfig {
    WalkConfig {
        members: MEMBERS as u32,
        hops: HOPS,
        tokens: 1,
        contributions: Some(CONTRIBUTIONS),
        law: Some(LAW),
        beyond: Beyond::Noise,
        track: Track::Token,
        timeout: None,
    }
}

fn sums() -> Walk<Sums> {
    let range = Some(Bounds { low: 0.0, high: 1.0 });
    let sums = SumsConfig { columns: 1, range, unit: RingUnit::Agent, goal: Goal::Sum, private: true };
    Walk::new(config(), Sums::new(sums, MEMBERS as u32).expect("sums")).expect("a walk")
}

fn descent() -> Walk<Gradient> {
    let (dimension, loss, step) = (1, Loss::Squared, 0.4);
    let (radius, regularization, clip, bound) = (None, 0.0, Some(0.5), Some(1.0));
    let gradient = GradientConfig { dimension, loss, step, radius, regularization, clip, bound };
    Walk::new(config(), Gradient::new(gradient).expect("a step")).expect("a walk")
}

/// Everyone's value but that of member 0, which is this.
fn values(first: f64) -> Vec<f64> {
    (0..MEMBERS).map(|k| if k == 0 { first } else { 0.3 + 0.04 * k as f64 }).collect()
}

fn observations(value: &f64) -> Observations<'_> {
    let value = std::slice::from_ref(value);
    Observations { points: Points { dimension: 1, features: value, labels: value }, bounds: None }
}

fn shard(label: &f64) -> Shard<'_> {
    let points = Points { dimension: 1, features: &[1.0], labels: std::slice::from_ref(label) };
    Shard { points, loss: Loss::Squared, regularization: 0.0, confidence: 1.0 }
}

fn plan() -> Arc<Plan> {
    let tracks = vec![(Track::Token, vec![LAW; CONTRIBUTIONS as usize])];
    Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

/// One walk: who held the token at each hop, and the token after it.
struct Walked {
    holders: Vec<usize>,
    tokens: Vec<f64>,
    releases: Vec<Vec<Release>>,
    charged: Vec<u64>,
}

fn walked<M: Movement>(
    walk: &Walk<M>,
    data: impl for<'v> Fn(&'v f64) -> M::Data<'v>,
    values: &[f64],
    seed: u64,
    noise: impl Fn(u32) -> Simulated,
) -> Walked {
    let plan = plan();
    let mut gates: Vec<_> = (0..MEMBERS as u32).map(|id| Gate::planned(plan.clone(), noise(id))).collect();
    let (mut coin, mut holders, mut tokens) = (Coin::new(seed, 0, 0), Vec::new(), Vec::new());
    let draw = || {
        holders.push(coin.below(MEMBERS));
        PeerId(holders[holders.len() - 1] as u32)
    };
    walk.in_one_place(|id| data(&values[id.index()]), &mut gates, draw, |_, token| tokens.push(token[0]));
    let releases = |gate: &Gate<Simulated>| match gate.noise() {
        Simulated::Recording(noise) => noise.releases().to_vec(),
        Simulated::Replaying(noise) => noise.releases().to_vec(),
        _ => Vec::new(),
    };
    let charged = gates.iter().map(|gate| gate.ledger().releases()).collect();
    Walked { releases: gates.iter().map(releases).collect(), holders, tokens, charged }
}

/// What a coalition sees: the token whenever one of it has it, before and after, and what it came to.
fn view(walked: &Walked, coalition: &[usize]) -> Vec<(usize, u64)> {
    let before = |hop: usize| if hop == 0 { 0.0 } else { walked.tokens[hop - 1] };
    let seen = |hop: usize| coalition.contains(&walked.holders[hop]) || hop + 1 == walked.tokens.len();
    let hops = (0..walked.tokens.len()).filter(|&hop| seen(hop));
    hops.flat_map(|hop| [(hop, before(hop).to_bits()), (hop, walked.tokens[hop].to_bits())]).collect()
}

fn coalitions() -> Vec<Vec<usize>> {
    let alone = (1..MEMBERS).map(|k| vec![k]);
    alone.chain([vec![1, 2], vec![3, 9], vec![1, 2, 3, 4, 5], vec![2, 4, 6, 8, 10]]).collect()
}

/// With every mechanism's output as it was, another value of one member changes nothing that any coalition sees, and moves what goes into noise by no more
/// than the sensitivity.
fn replays<M: Movement>(walk: &Walk<M>, data: impl for<'v> Fn(&'v f64) -> M::Data<'v> + Copy, name: &str) {
    for seed in 0..5 {
        let record = |id: u32| {
            let noise = Simulated::Idealized(Idealized::new(seed, id));
            Simulated::Recording(Box::new(Recording::new(noise)))
        };
        let one = walked(walk, data, &values(1.0), seed, record);
        let releases = one.releases.clone();
        let replay = |id: u32| Simulated::Replaying(Box::new(Replaying::new(Arc::new(releases[id as usize].clone()))));
        let other = walked(walk, data, &values(0.0), seed, replay);
        for coalition in coalitions() {
            assert_eq!(view(&one, &coalition), view(&other, &coalition), "{name}, {coalition:?}");
        }
        assert_eq!(one.charged, other.charged, "{name}: charges do not depend on data");
        assert_eq!(one.releases.iter().map(Vec::len).sum::<usize>(), HOPS as usize, "{name}: noise at every hop");
        let mut largest = 0.0f64;
        for (a, b) in one.releases.iter().flatten().zip(other.releases.iter().flatten()) {
            largest = largest.max(distance(a.event, &a.input, &b.input) / a.sensitivity);
        }
        assert!(largest <= 1.0 && largest > 0.2, "{name}: one value moves inputs by {largest} of the sensitivity");
    }
}

#[test]
fn views_depend_on_a_value_only_through_noise() {
    replays(&sums(), observations, "sums");
    replays(&descent(), shard, "descent");
}

/// ln of the likelihood of a coalition's view of a sum if member 0 has 1, over that if it has 0. It knows everything else.
fn belief(walk: &Walk<Sums>, walked: &Walked, coalition: &[usize], others: &[f64]) -> f64 {
    let sigma = 1.5 * walk.movement().sensitivity();
    let mut made = [0u32; MEMBERS];
    let (mut belief, mut from, mut known, mut own, mut hops) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (hop, &holder) in walked.holders.iter().enumerate() {
        let contributes = made[holder] < CONTRIBUTIONS;
        made[holder] += u32::from(contributes);
        if !coalition.contains(&holder) {
            hops += 1.0;
            match holder {
                0 => own += f64::from(u8::from(contributes)),
                _ if contributes => known += others[holder],
                _ => {}
            }
        }
        let (ends, is_last) = (coalition.contains(&holder), hop + 1 == walked.holders.len());
        if ends || is_last {
            // What was there when the coalition got it, or when everyone was told.
            let seen = if !ends {
                walked.tokens[hop]
            } else if hop == 0 {
                0.0
            } else {
                walked.tokens[hop - 1]
            };
            let rest: f64 = seen - from - known;
            if hops > 0.0 {
                belief += (rest * rest - (rest - own) * (rest - own)) / (2.0 * hops * sigma * sigma);
            }
            (from, known, own, hops) = (walked.tokens[hop], 0.0, 0.0, 0.0);
        }
    }
    belief
}

/// Attacks on whole runs of the algorithm itself stay below the claim for their observers, and come near it.
#[test]
fn no_coalition_finds_more_in_whole_runs_than_is_claimed() {
    let (walk, delta) = (sums(), 0.05);
    for coalition in [vec![3], vec![3, 7], vec![1, 3, 5, 7, 9]] {
        let public = network::Walk::new(MEMBERS as u64, HOPS, CONTRIBUTIONS.into())
            .and_then(|walk| walk.with_colluders(coalition.len() as u64))
            .expect("valid");
        let (claimed, iteration) =
            (Cycle::new(public).epsilon_at(1.5, delta), Iteration::new(public).epsilon_at(1.5, delta));
        assert!(claimed <= iteration * (1.0 + 1e-4));
        let mut seed = 0;
        let mut world = |first: f64| -> Vec<f64> {
            let values = values(first);
            (0..12_000)
                .map(|_| {
                    seed += 1;
                    let noise = |id: u32| Simulated::Idealized(Idealized::new(seed, id));
                    belief(&walk, &walked(&walk, observations, &values, seed, noise), &coalition, &values)
                })
                .collect()
        };
        let worlds = Worlds { first: world(1.0), second: world(0.0) };
        let found = epsilon_bound(&worlds, delta).likely;
        println!("{coalition:?}: at least {found:.3} with 95% confidence, claimed {claimed:.3}");
        assert!(found <= claimed && found > 0.5 * claimed, "{coalition:?}: {found} found, {claimed} claimed");
    }
}
