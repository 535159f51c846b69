//! What members see of a token that walks, alone and in coalitions: whole runs, many times, on two neighbouring data sets, from the view of as many members as the
//! claim names.
//!
//! They know the path, everybody's data but the target's, and the two that it may have; they see the token whenever one of them holds it, and what it comes to. From each look to the
//! next they compute, with the algorithm's own steps and no noise, where the token would come to with the one and with the other, and weigh how far it is from both by the number of noises
//! between. For sums that is the likelihood ratio; for gradient steps, which do not take noise along as sums do, it is close to it. Any statistic bounds epsilon from below.

use super::records::{Record, extremes, with};
use super::runs::RunAudit;
use super::{Findings, Flaw};
use crate::private;
use sottovoce_algorithms::token::walk::{Movement, Moving, Walk};
use sottovoce_core::{Coin, PeerId};
use sottovoce_privacy::audit::{Worlds, epsilon_bound};
use sottovoce_privacy::{Gate, Simulated};
use sottovoce_task::algorithms::{TokenWalk, token_walk};
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Privacy;
use std::ops::ControlFlow;

/// Runs the task `trials` times in each of two worlds. Nothing where no member has data.
pub(super) fn runs(
    loaded: &Loaded,
    trials: u64,
    seed: u64,
    findings: &mut Findings,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> ControlFlow<(), Option<RunAudit>> {
    let mut everyone = (0..loaded.problem.agents() as u32).map(PeerId);
    let Some(target) = everyone.find(|&id| loaded.problem.data.size(id) > 0) else {
        return ControlFlow::Continue(None);
    };
    let colluders = loaded.task.privacy.map_or(1, |privacy| privacy.colluders);
    let observers: Vec<u32> =
        (0..loaded.problem.agents() as u32).filter(|k| *k != target.0).take(colluders as usize).collect();
    // The pair that most can be told of: the last is beyond the bound.
    let pairs = extremes(loaded);
    let Some([one, other]) = pairs.first() else { return ControlFlow::Continue(None) };
    let altered = |record: &Record| with(loaded, target, 0, record).applied_to(loaded);
    let stage = Stage { worlds: &[altered(one), altered(other)], observers: &observers, target, trials, seed };
    let found = match token_walk(loaded) {
        Some(Ok(TokenWalk::Sums(walk))) => stage.beliefs(&walk, |loaded, id| loaded.observations(id), watch)?,
        Some(Ok(TokenWalk::Descent(walk))) => stage.beliefs(&walk, |loaded, id| loaded.problem.shard(id), watch)?,
        _ => return ControlFlow::Continue(None),
    };
    let privacy = loaded.task.privacy.expect("only private tasks are audited");
    let epsilon = epsilon_bound(&found.0, privacy.delta);
    if epsilon.certain > privacy.epsilon {
        let what = format!(
            "whole runs need epsilon >= {} at delta = {} against {}, and {} is promised",
            epsilon.certain,
            privacy.delta,
            loaded.observer().name(),
            privacy.epsilon
        );
        findings.add(Flaw::WholeRun, what);
    }
    let name = |id: u32| loaded.names[id as usize].clone();
    ControlFlow::Continue(Some(RunAudit {
        target: name(target.0),
        records: one.what,
        agents: loaded.problem.agents(),
        releases: found.1,
        trials,
        epsilon,
        through_mu: false,
        seen_by: observers.into_iter().map(name).collect(),
    }))
}

/// Two worlds, and who looks.
struct Stage<'a> {
    worlds: &'a [Loaded; 2],
    observers: &'a [u32],
    target: PeerId,
    trials: u64,
    seed: u64,
}

/// One token's way.
struct Way {
    holders: Vec<PeerId>,
    /// After each hop.
    tokens: Vec<Vec<f64>>,
}

impl Stage<'_> {
    /// The beliefs of the observers in both worlds, and the most contributions of the target in a run.
    fn beliefs<M: Movement>(
        &self,
        walk: &Walk<M>,
        data: for<'d> fn(&'d Loaded, PeerId) -> M::Data<'d>,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> ControlFlow<(), (Worlds, usize)> {
        let (mut found, mut most) = (Worlds::default(), 0);
        for trial in 0..self.trials {
            for world in 0..2 {
                let loaded = &self.worlds[world];
                let privacy = loaded.task.privacy.expect("only private tasks are audited");
                let mut coin = Coin::new(self.seed, world as u32, trial);
                let mut gates = gates(loaded, &privacy, coin.bits());
                let mut belief = 0.0;
                for _ in 0..walk.config().tokens {
                    let mut way = Way { holders: Vec::new(), tokens: Vec::new() };
                    let draw = || {
                        way.holders.push(PeerId(coin.below(loaded.problem.agents()) as u32));
                        way.holders[way.holders.len() - 1]
                    };
                    walk.in_one_place(
                        |id| data(loaded, id),
                        &mut gates,
                        draw,
                        |_, token| way.tokens.push(token.to_vec()),
                    );
                    belief += self.belief(walk, data, &way);
                }
                most = most.max(gates[self.target.index()].ledger().releases() as usize);
                if world == 0 { found.first.push(belief) } else { found.second.push(belief) }
            }
            watch(trial + 1, self.trials)?;
        }
        ControlFlow::Continue((found, most))
    }

    /// How much what the observers saw of a token speaks for the first world.
    fn belief<M: Movement>(
        &self,
        walk: &Walk<M>,
        data: for<'d> fn(&'d Loaded, PeerId) -> M::Data<'d>,
        way: &Way,
    ) -> f64 {
        let (config, numbers) = (walk.config(), walk.movement().numbers());
        let mut gate = Gate::without_privacy();
        let mut made = vec![(0, None); self.worlds[0].problem.agents()];
        // Where the token would be in either world, from what was seen of it last.
        let mut expected = [vec![0.0; numbers], vec![0.0; numbers]];
        let (mut belief, mut noises, mut moved) = (0.0, 0.0, vec![0.0; numbers]);
        let mut weigh = |seen: &[f64], expected: &[Vec<f64>; 2], noises: f64| {
            let far = expected
                .each_ref()
                .map(|from| seen.iter().zip(from).map(|(seen, from)| (seen - from) * (seen - from)).sum::<f64>());
            if noises > 0.0 {
                belief += (far[1] - far[0]) / noises
            }
        };
        for (hop, &holder) in (1..).zip(&way.holders) {
            let (count, last) = &mut made[holder.index()];
            let has_data = self.worlds[0].problem.data.size(holder) > 0;
            let contributes =
                has_data && config.contributions.is_none_or(|most| *count < most) && config.is_spaced(*last, hop);
            if contributes {
                (*count, *last) = (*count + 1, Some(hop));
            }
            let token = &way.tokens[hop as usize - 1];
            if self.observers.contains(&holder.0) {
                if hop > 1 {
                    weigh(&way.tokens[hop as usize - 2], &expected, noises);
                }
                // What it does to the token itself it knows.
                expected.iter_mut().for_each(|expected| expected.copy_from_slice(token));
                noises = 0.0;
                continue;
            }
            for (loaded, expected) in self.worlds.iter().zip(&mut expected) {
                let receipt =
                    contributes.then(|| gate.charge(config.track, 1.0, config.track.audience()).ok()).flatten();
                let token = Moving { received: &expected[..], moved: &mut moved };
                walk.movement().step(receipt, data(loaded, holder), None, &mut gate, token);
                expected.copy_from_slice(&moved);
            }
            noises += 1.0;
        }
        if let Some(told) = way.tokens.last() {
            weigh(told, &expected, noises);
        }
        belief
    }
}

fn gates(loaded: &Loaded, privacy: &Privacy, seed: u64) -> Vec<Gate<Simulated>> {
    let plan = loaded.plan.as_ref().expect("a private task has a plan");
    let gate = |id| private::gate_with(&loaded.problem, plan, id, private::noise(privacy, seed, id));
    (0..loaded.problem.agents() as u32).map(PeerId).map(gate).collect()
}
