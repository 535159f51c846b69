//! The aggregator's desk: who takes part, the beacon, and the halves of answers.

use super::{Kind, PATIENCE, Pair, PairLetter, TwoParty, TwoPartyConfig, to_bitmap};
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::NUMBER_MAX;
use sottovoce_core::{Reject, Time};
use sottovoce_crypto::beacon::{BeaconSecret, beacon, commit};
use sottovoce_crypto::two_party::pair::Engine;
use sottovoce_crypto::two_party::share::combine;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    Committing,
    Revealing,
    Pairing,
    Ended,
}

/// What the aggregator knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Desk {
    phase: Phase,
    round: u32,
    deadline: Option<f64>,
    /// By member: whether it takes part, what it committed to, its label, what it revealed.
    present: Vec<bool>,
    commitments: Vec<Option<[u8; 32]>>,
    labels: Vec<bool>,
    secrets: Vec<Option<BeaconSecret>>,
    beacon: [u8; 32],
    pairs: BTreeMap<(u32, u32), Waiting>,
    /// Pairs whose answers are decoded, their answers, and the sum of these.
    decoded: u32,
    answers: u32,
    sum: f64,
}

/// A pair whose halves are waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Waiting {
    pair: Pair,
    /// The garbler's and the evaluator's, each with its attempt.
    halves: [Option<(u32, Vec<u8>)>; 2],
    is_done: bool,
}

/// What is to be said, to whom; and the estimate, where there is one now.
pub(super) struct Say {
    pub(super) kind: Kind,
    pub(super) number: u32,
    pub(super) body: Vec<u8>,
    pub(super) to: Vec<u32>,
    pub(super) estimate: Option<f64>,
}

impl Desk {
    pub(super) fn new(members: u32, deadline: f64) -> Desk {
        let members = members as usize;
        Desk {
            phase: Phase::Committing,
            round: 1,
            deadline: Some(deadline),
            present: vec![true; members],
            commitments: vec![None; members],
            labels: vec![false; members],
            secrets: vec![None; members],
            beacon: [0; 32],
            pairs: BTreeMap::new(),
            decoded: 0,
            answers: 0,
            sum: 0.0,
        }
    }

    pub(super) fn answers(&self) -> (u32, u32, u32) {
        (self.answers, self.decoded, self.pairs.len() as u32)
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.deadline.is_some_and(|at| at <= now.0)
    }

    pub(super) fn deadline(&self) -> Option<f64> {
        self.deadline
    }

    /// The clock of a phase starts when it is announced.
    pub(super) fn set_deadline(&mut self, now: Time, timeout: f64) {
        let timeouts = if self.phase == Phase::Pairing { PATIENCE } else { 1.0 };
        self.deadline = (self.phase != Phase::Ended).then(|| now.after(Time(timeouts * timeout)).0);
    }

    pub(super) fn is_sound(&self, config: &TwoPartyConfig) -> bool {
        let members = config.members as usize;
        let lists = [self.present.len(), self.commitments.len(), self.labels.len(), self.secrets.len()] == [members; 4];
        let pairs = self.pairs.iter().all(|((a, b), waiting)| {
            a < b && *b < config.members && (1..=config.pairs).contains(&waiting.pair.instances)
        });
        let numbers = self.sum.abs() <= NUMBER_MAX && self.deadline.is_none_or(f64::is_finite) && self.round < u32::MAX;
        let counts = self.decoded as usize <= self.pairs.len()
            && u64::from(self.answers) <= u64::from(self.decoded) * u64::from(config.pairs);
        lists && pairs && numbers && counts
    }

    fn members(&self) -> Vec<u32> {
        (0..self.present.len() as u32).filter(|&id| self.present[id as usize]).collect()
    }

    fn say(&self, kind: Kind, body: Vec<u8>) -> Option<Say> {
        Some(Say { kind, number: self.round, body, to: self.members(), estimate: None })
    }

    /// Reads what a member says; what is to be announced after it.
    pub(super) fn hear<E: Engine>(
        &mut self,
        protocol: &TwoParty<E>,
        from: u32,
        letter: &PairLetter<'_>,
    ) -> Result<Option<Say>, Reject> {
        let at = from as usize;
        if !self.present.get(at).is_some_and(|here| *here) {
            return Err(Reject::OutOfTurn);
        }
        match (letter.kind, self.phase) {
            (Kind::Commitment, Phase::Committing) if letter.number == self.round && self.commitments[at].is_none() => {
                match (letter.body.split_first_chunk::<32>(), letter.body.len()) {
                    (Some((commitment, [label @ (0 | 1)])), _) => {
                        (self.commitments[at], self.labels[at]) = (Some(*commitment), *label == 1);
                    }
                    (_, 0) => self.present[at] = false,
                    _ => return Err(Reject::Malformed),
                }
                Ok(self.all_committed::<E>())
            }
            (Kind::Reveal, Phase::Revealing) if letter.number == self.round && self.secrets[at].is_none() => {
                let secret: BeaconSecret = (&*letter.body).try_into().map_err(|_| Reject::Malformed)?;
                let context = protocol.beacon_context(self.round, from);
                if self.commitments[at] != Some(commit(&context, &secret)) {
                    return Err(Reject::Malformed);
                }
                self.secrets[at] = Some(secret);
                Ok(self.all_revealed(protocol))
            }
            (Kind::Share, Phase::Pairing) => self.take_half(protocol, from, letter),
            _ => Err(Reject::OutOfTurn),
        }
    }

    /// Goes on when everyone who takes part has committed.
    fn all_committed<E: Engine>(&mut self) -> Option<Say> {
        let members = self.members();
        if members.iter().any(|&id| self.commitments[id as usize].is_none()) {
            return None;
        }
        if members.len() < 2 {
            return self.end();
        }
        self.phase = Phase::Revealing;
        let mut body = to_bitmap(&self.present);
        if !E::IS_IDEAL {
            members.iter().filter_map(|&id| self.commitments[id as usize]).for_each(|one| body.extend(one));
        }
        self.say(Kind::Commitments, body)
    }

    /// Goes on when everyone who takes part has revealed.
    fn all_revealed<E: Engine>(&mut self, protocol: &TwoParty<E>) -> Option<Say> {
        let members = self.members();
        let secrets: Option<Vec<BeaconSecret>> = members.iter().map(|&id| self.secrets[id as usize]).collect();
        let secrets = secrets?;
        let mut body = [to_bitmap(&self.present), to_bitmap(&self.labels)].concat();
        let context = protocol.beacon_context(self.round, protocol.config.aggregator);
        self.beacon = beacon(&context, &body, secrets.iter());
        body.extend(self.beacon);
        if !E::IS_IDEAL {
            secrets.iter().for_each(|secret| body.extend(secret));
        }
        let wait = |pair| Waiting { pair, halves: [None, None], is_done: false };
        let pairs = protocol.meetings(self.beacon, &self.present, &self.labels).into_iter();
        self.pairs = pairs.map(|(members, pair)| (members, wait(pair))).collect();
        if self.pairs.is_empty() {
            return self.end();
        }
        self.phase = Phase::Pairing;
        self.say(Kind::Beacon, body)
    }

    /// Half of an answer. Two halves of one attempt are decoded.
    fn take_half<E: Engine>(
        &mut self,
        protocol: &TwoParty<E>,
        from: u32,
        letter: &PairLetter<'_>,
    ) -> Result<Option<Say>, Reject> {
        let members = (from.min(letter.other), from.max(letter.other));
        let waiting = self.pairs.get_mut(&members).ok_or(Reject::NotANeighbour)?;
        let side = usize::from(from == members.1);
        if waiting.is_done || waiting.halves[side].is_some() {
            return Err(Reject::OutOfTurn);
        }
        waiting.halves[side] = Some((letter.number, letter.body.to_vec()));
        let [Some((attempt, garbler)), Some((other, evaluator))] = &waiting.halves else { return Ok(None) };
        // A pair whose halves do not fit has told nothing, and counts nothing.
        let session = protocol.session(self.beacon, members, waiting.pair, *attempt);
        let outputs = if attempt == other { combine(&session, garbler, evaluator).ok() } else { None };
        waiting.is_done = true;
        waiting.halves = [None, None];
        self.decoded += 1;
        if let Some(outputs) = outputs.filter(|outputs| outputs.instances() == waiting.pair.instances as usize) {
            for instance in 0..outputs.instances() {
                self.sum += protocol.mechanism.decode(outputs.number(instance));
                self.answers += 1;
            }
        }
        Ok(if self.decoded as usize == self.pairs.len() { self.end() } else { None })
    }

    /// Some did not answer in time.
    pub(super) fn time_out<E: Engine>(&mut self) -> Option<Say> {
        match self.phase {
            Phase::Committing => {
                let committed = self.commitments.iter().map(Option::is_some);
                self.present.iter_mut().zip(committed).for_each(|(present, committed)| *present &= committed);
                self.all_committed::<E>()
            }
            Phase::Revealing => {
                // Who has not revealed knows what the beacon would be, and may not like it: without it, from the beginning.
                let revealed = self.secrets.iter().map(Option::is_some);
                self.present.iter_mut().zip(revealed).for_each(|(present, revealed)| *present &= revealed);
                self.commitments.fill(None);
                self.secrets.fill(None);
                (self.phase, self.round) = (Phase::Committing, self.round + 1);
                if self.members().len() < 2 { self.end() } else { self.say(Kind::Begin, Vec::new()) }
            }
            Phase::Pairing => self.end(),
            Phase::Ended => None,
        }
    }

    /// The mean of what has come, for the aggregator; word of the end, for all.
    fn end(&mut self) -> Option<Say> {
        self.phase = Phase::Ended;
        let estimate = (self.answers > 0).then(|| self.sum / f64::from(self.answers));
        let to = (0..self.present.len() as u32).collect();
        Some(Say { kind: Kind::End, number: self.round, body: Vec::new(), to, estimate })
    }
}
