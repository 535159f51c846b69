//! What members see of a token that goes round a ring, alone and in coalitions.
//!
//! Between two visits of a coalition the token moves by what others add: a *window*. One run is made with noise, and again without any, on the task's data and on neighbouring ones. Whatever
//! moves in a window must have noise in it that nobody of the coalition has drawn, move by no more than the sensitivity, and be charged. And whole runs, many times, on two neighbouring data
//! sets: how far each window is from what it would be in either world, weighed by its noise, for Gaussian noise the likelihood ratio.

use super::records::{extremes, replacements, with};
use super::replay::{ReplayAudit, check_books};
use super::runs::RunAudit;
use super::stage::{Altered, Witnessed, record, replay};
use super::views::coalitions_of;
use super::{Findings, Flaw};
use sottovoce_algorithms::token::ring::RingLetter;
use sottovoce_core::{Coin, PeerId, Wire};
use sottovoce_privacy::audit::{Worlds, epsilon_bound, noiseless};
use sottovoce_privacy::{Event, Shares, Track};
use sottovoce_sim::Faults;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Observer;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

/// Targets whose rows are replaced in each recorded run.
const TARGETS: usize = 6;

/// A ring without weather, as it is audited.
pub(super) struct Circle {
    loaded: Loaded,
    colluders: usize,
    shares: Shares,
    hops: usize,
}

/// What a coalition learns between two of its visits: the hops of others, how far the token moved, and whether it was told so.
struct Window {
    hops: RangeInclusive<usize>,
    moved: f64,
    is_told: bool,
}

impl Circle {
    /// Of a task with a ring that sums; none of others.
    pub fn of(loaded: &Loaded) -> Option<Circle> {
        let Observer::Ring(ring) = loaded.observer() else { return None };
        let (_, colluders, shares) = ring.context();
        let mut loaded = loaded.clone();
        // Members that are passed over are for the library's own tests, which look at every course of events.
        loaded.task.faults = Faults::default();
        let hops = loaded.problem.agents() * loaded.task.run.rounds.unwrap_or(1) as usize;
        Some(Circle { loaded, colluders: colluders as usize, shares, hops })
    }

    fn holder(&self, hop: usize) -> u32 {
        ((hop - 1) % self.loaded.problem.agents()) as u32
    }

    /// The token after each hop, from none on, and what was told at the end.
    fn tokens(&self, witnessed: &[Witnessed]) -> (Vec<Option<f64>>, Option<f64>) {
        let (mut tokens, mut told) = (vec![None; self.hops + 1], None);
        tokens[0] = Some(0.0);
        let letters = witnessed.iter().flat_map(|agent| &agent.said).flat_map(|utterance| &utterance.letters);
        for (_, bytes) in letters {
            match RingLetter::decode(bytes) {
                Ok(RingLetter::Token(token)) => tokens[token.hop as usize - 1] = Some(token.tau),
                Ok(RingLetter::Sum { sum, .. }) => told = Some(sum),
                _ => {}
            }
        }
        (tokens, told)
    }

    /// What a coalition learns, from visit to visit.
    fn windows(&self, witnessed: &[Witnessed], coalition: &[u32]) -> Vec<Window> {
        let (tokens, told) = self.tokens(witnessed);
        let (mut windows, mut last) = (Vec::new(), 0);
        let window = |hops: RangeInclusive<usize>, from: Option<f64>, to: Option<f64>, is_told| {
            Some(Window { moved: to? - from?, hops, is_told })
        };
        for hop in (1..=self.hops).filter(|&hop| coalition.contains(&self.holder(hop))) {
            if hop > last + 1 {
                windows.extend(window(last + 1..=hop - 1, tokens[last], tokens[hop - 1], false));
            }
            last = hop;
        }
        if last < self.hops {
            windows.extend(window(last + 1..=self.hops, tokens[last], told, true));
        }
        windows
    }

    /// The variance of a window's noise, in units of that of one noise.
    fn variance(&self, window: &Window) -> f64 {
        let others = self.loaded.problem.agents() - 1;
        let is_noisy = |hop: &usize| (*hop - 1).is_multiple_of(others);
        let told = f64::from(u8::from(window.is_told));
        match self.shares {
            Shares::One => window.hops.clone().filter(is_noisy).count() as f64 + told,
            Shares::All => {
                let first = f64::from(u8::from(window.hops.contains(&1)));
                window.hops.clone().count() as f64 / others as f64 + first + told
            }
        }
    }

    /// The same run without noise.
    fn exact(&self, recorded: &[Witnessed], altered: Option<&Altered>) -> Result<Vec<Witnessed>, String> {
        let silent = recorded.iter().map(|agent| {
            let mut releases = agent.releases.to_vec();
            releases.iter_mut().for_each(|release| release.output.clone_from(&release.input));
            Witnessed { releases: Arc::new(releases), ..agent.clone() }
        });
        replay(&self.loaded, &silent.collect::<Vec<_>>(), altered)
    }

    /// Record and replay, from the view of each member, and of coalitions that the claim covers.
    pub fn replays(
        &self,
        runs: u64,
        seed: u64,
        findings: &mut Findings,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> ControlFlow<(), ReplayAudit> {
        let (loaded, mut audit) = (&self.loaded, ReplayAudit::default());
        for run in 0..runs {
            let mut coin = Coin::new(seed, u32::MAX, run);
            let staged = record(loaded, coin.bits(), None);
            let staged = staged.and_then(|recorded| Ok((self.exact(&recorded, None)?, recorded)));
            let (exact, recorded) = match staged {
                Ok(staged) => staged,
                Err(why) => {
                    findings.add(Flaw::GivesUp, format!("a run on the task's own data did not come to its end: {why}"));
                    return ControlFlow::Continue(audit);
                }
            };
            audit.runs += 1;
            audit.releases += recorded.iter().map(|agent| agent.releases.len() as u64).sum::<u64>();
            check_books(loaded, &recorded, findings);
            if recorded.iter().flat_map(|agent| &**agent.releases).any(|release| noiseless(release).is_some()) {
                findings.add(Flaw::NoNoise, "a noise is zero".to_owned());
            }
            let coalitions = coalitions_of(loaded.problem.agents(), &mut coin);
            for _ in 0..TARGETS.min(loaded.problem.agents()) {
                let target = PeerId(coin.below(loaded.problem.agents()) as u32);
                let points = loaded.problem.data.points(target);
                let Some(own) = points.iter().next() else { continue };
                for new in replacements(loaded, own, &mut coin) {
                    audit.neighbours += 1;
                    let given = format!("with {} in the place of one of {:?}", new.what, loaded.names[target.index()]);
                    match self.exact(&recorded, Some(&with(loaded, target, 0, &new))) {
                        Ok(moved) => {
                            let all = [&recorded[..], &exact[..], &moved[..]];
                            self.judge(all, target, &coalitions, &given, findings, &mut audit);
                        }
                        Err(why) => findings.add(Flaw::GivesUp, format!("{given}, the program gives up: {why}")),
                    }
                }
            }
            watch(run + 1, runs)?;
        }
        ControlFlow::Continue(audit)
    }

    /// Compares a run, and the same without noise, with one on neighbouring data.
    fn judge(
        &self,
        [recorded, exact, moved]: [&[Witnessed]; 3],
        target: PeerId,
        coalitions: &[Vec<u32>],
        given: &str,
        findings: &mut Findings,
        audit: &mut ReplayAudit,
    ) {
        let agent = &recorded[target.index()];
        if agent.ledger != moved[target.index()].ledger {
            findings.add(Flaw::ChargesMove, format!("{given}, it is charged otherwise"));
        }
        let outlines = |all: &[Witnessed]| -> Vec<_> {
            all.iter().flat_map(|agent| agent.said.iter().map(|one| one.outline())).collect()
        };
        if outlines(recorded) != outlines(moved) {
            findings.add(Flaw::ControlFlow, format!("{given}, members speak at other times, or more, or less"));
        }
        let charged: u64 = agent.ledger.charges().filter(|one| one.track == Track::Token).map(|one| one.count).sum();
        let sensitivity = agent.ledger.charges().find_map(|one| one.sensitivity).map_or(f64::INFINITY, f64::from);
        for coalition in coalitions.iter().filter(|all| all.len() <= self.colluders && !all.contains(&target.0)) {
            audit.views += 1;
            let windows = [recorded, exact, moved].map(|run| self.windows(run, coalition));
            let mut moves = 0;
            for ((noisy, exact), moved) in windows[0].iter().zip(&windows[1]).zip(&windows[2]) {
                let shift = (moved.moved - exact.moved).abs();
                if shift == 0.0 {
                    continue;
                }
                moves += 1;
                audit.largest_move = audit.largest_move.max(shift / sensitivity);
                if shift > sensitivity * (1.0 + 1e-12) {
                    findings.add(Flaw::Sensitivity, format!("{given}, a token moves by {shift}"));
                }
                if noisy.moved == exact.moved {
                    let who: Vec<&str> = coalition.iter().map(|&k| &*self.loaded.names[k as usize]).collect();
                    findings
                        .add(Flaw::NoNoise, format!("{given}, {who:?} see the token move by {shift} without noise"));
                }
            }
            if moves > charged {
                let what = format!("{given}, {moves} windows of a member move, and it is charged for {charged}");
                findings.add(Flaw::Uncharged, what);
            }
        }
    }

    /// Whole runs in two worlds, seen by as many members as the claim names.
    pub fn runs(
        &self,
        trials: u64,
        seed: u64,
        findings: &mut Findings,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<RunAudit>> {
        let (loaded, target) = (&self.loaded, PeerId(0));
        let privacy = loaded.task.privacy.expect("only private tasks are audited");
        let observers: Vec<u32> = (1..=self.colluders as u32).collect();
        let pairs = extremes(loaded);
        let Some([one, other]) = pairs.first() else { return ControlFlow::Continue(None) };
        let worlds = [one, other].map(|row| with(loaded, target, 0, row));
        let is_laplace = loaded
            .plan
            .as_ref()
            .is_some_and(|plan| plan.track(Track::Token).iter().any(|event| matches!(event, Event::Laplace { .. })));
        let staged = (|| -> Result<[Vec<Window>; 2], String> {
            let recorded = record(loaded, Coin::new(seed, 3, 0).bits(), Some(&worlds[0]))?;
            let exact = |world: &Altered| -> Result<Vec<Window>, String> {
                Ok(self.windows(&self.exact(&recorded, Some(world))?, &observers))
            };
            Ok([exact(&worlds[0])?, exact(&worlds[1])?])
        })();
        let (mut found, mut releases) = (Worlds::default(), 0);
        for trial in 0..trials {
            for (world, altered) in worlds.iter().enumerate() {
                let belief = staged.as_ref().map_err(String::clone).and_then(|exact| {
                    let recorded = record(loaded, Coin::new(seed, world as u32, trial).bits(), Some(altered))?;
                    releases = recorded[target.index()].ledger.releases() as usize;
                    let seen = self.windows(&recorded, &observers);
                    let far = |seen: &Window, exact: &Window| {
                        let far = (seen.moved - exact.moved).abs();
                        if is_laplace { far } else { far * far }
                    };
                    let all = seen.iter().zip(&exact[0]).zip(&exact[1]);
                    Ok(all.map(|((seen, a), b)| (far(seen, b) - far(seen, a)) / self.variance(seen)).sum::<f64>())
                });
                match belief {
                    Ok(belief) if world == 0 => found.first.push(belief),
                    Ok(belief) => found.second.push(belief),
                    Err(why) => {
                        findings.add(Flaw::GivesUp, format!("two runs on neighbouring data cannot be compared: {why}"));
                        return ControlFlow::Continue(None);
                    }
                }
            }
            watch(trial + 1, trials)?;
        }
        let epsilon = epsilon_bound(&found, privacy.delta);
        if epsilon.certain > privacy.epsilon {
            let what = format!("whole runs need epsilon >= {}, and {} is promised", epsilon.certain, privacy.epsilon);
            findings.add(Flaw::WholeRun, what);
        }
        let name = |id: u32| loaded.names[id as usize].clone();
        let (target, seen_by) = (name(target.0), observers.into_iter().map(name).collect());
        let (records, agents) = (one.what, loaded.problem.agents());
        let through_mu = false;
        ControlFlow::Continue(Some(RunAudit {
            target,
            records,
            agents,
            releases,
            trials,
            epsilon,
            through_mu,
            seen_by,
        }))
    }
}
