//! What holds for the saved states of these algorithms, whoever is interrupted when, and whatever happens to the bytes.

use crate::testing::{small_gopa, small_polar};
use sottovoce_algorithms::saved::testing::{AGENTS, World, agents, survives_interruptions};
use sottovoce_algorithms::testing::random_problem;
use sottovoce_algorithms::{Loss, Observations, Problem};
use sottovoce_core::{Coin, Graph, Neighbours, PeerId};

fn open_problem(seed: u64, dimension: usize) -> Problem {
    Problem { graph: Graph::Complete { n: AGENTS as u32 }, ..random_problem(seed, AGENTS, dimension, Loss::Logistic) }
}

#[test]
fn an_interruption_does_not_change_a_bit() {
    for seed in 0..6 {
        let (problem, polar) = (open_problem(seed, 1 + seed as usize), small_polar(AGENTS as u32, 1 + seed as usize));
        let data = |id: PeerId| problem.shard(id);
        survives_interruptions("POLAR", seed, || World::start(&polar, &problem.graph, data, &[], seed));
        let gopa = small_gopa(AGENTS as u32, 1 + seed as u32);
        let rows = |id: PeerId| Observations { points: problem.data.points(id), bounds: None };
        survives_interruptions("GOPA", seed, || World::start(&gopa, &problem.graph, rows, &[], seed));
    }
}

/// Refused, or at least survived: a flipped bit of a number leaves a number.
#[test]
fn damaged_states_never_panic_then_or_later() {
    let (problem, polar) = (open_problem(1, 3), small_polar(AGENTS as u32, 3));
    let mut world = World::start(&polar, &problem.graph, |id| problem.shard(id), &[], 1);
    (0..300).for_each(|_| world.step());
    let saved: Vec<_> = agents().map(|id| world.saved(id)).collect();
    let (mut coin, mut refused) = (Coin::new(9, 0, 0), 0);
    for case in 0..600 {
        let id = PeerId(coin.below(AGENTS) as u32);
        let mut bytes = saved[id.index()].clone();
        let at = coin.below(bytes.len());
        match case % 3 {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << coin.below(8),
            _ => bytes.truncate(at.max(1)),
        }
        if case % 3 == 2 {
            bytes.extend((0..coin.below(60)).map(|_| coin.below(256) as u8).collect::<Vec<_>>());
        }
        match world.resume(id, &bytes, Neighbours::Same) {
            Err(_) => refused += 1,
            Ok(()) => {
                (0..60).for_each(|_| world.step());
                world.mail.clear();
                agents().for_each(|id| world.resume(id, &saved[id.index()], Neighbours::Same).expect("a good state"));
            }
        }
    }
    assert!(refused > 200, "{refused} refused");
}
