//! What a member does: picks, publishes, and opens of each other member its pad or its share.

use super::{Gopa, GopaLetter, Keyed, Post, random_bits};
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Observations;
use sottovoce_core::{Cx, Reject};
use sottovoce_crypto::agreement::{TaskKey, TaskPublicKey};
use sottovoce_crypto::fixed_point::to_ring;
use sottovoce_crypto::own_mask::{OwnMask, Share, seal};
use sottovoce_crypto::pad::{Direction, PadStream, PairSecret, RevealedPad};
use sottovoce_privacy::{Audience, Secrets, Simulation, Track};
use std::collections::BTreeMap;

/// A member draws a key for each task, so keys of different tasks are never agreed on together.
const TASK: [u8; 32] = *b"sottovoce/gopa, a key for a task";

/// What a member has opened of another, in this round. It is in the member's store before the letter leaves.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Opened {
    Pad,
    Share,
}

/// What a member remembers. It holds a secret key, so it is not shown.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Member {
    key: [u8; 32],
    picks: Vec<u32>,
    neighbours: Vec<Keyed>,
    /// The first round that it has not published for: pads of rounds below are used.
    pub next_round: u32,
    opened: BTreeMap<u32, Opened>,
    /// Whether it has opened shares in this round: then it opens nothing more.
    has_revealed: bool,
    /// The first round that it has heard no outcome of.
    pub heard: u32,
    /// How many of them came to a sum, what these add up to and weigh, and the estimate.
    pub sums: u32,
    totals: Vec<f64>,
    weight: u64,
    /// How many contributions these sums miss.
    pub missing: u32,
    pub estimate: Vec<f64>,
}

impl Gopa {
    /// Draws a key and picks, from the member's own entropy.
    pub(super) fn enrol(&self, cx: &mut Cx<'_>) -> (Member, Post) {
        let (key, picks) = (cx.secret.bytes(), self.picks(cx.me.0, &mut cx.secret));
        let public = Keys::of(&key, cx.secret.simulation()).public();
        let columns = self.config.numbers() as usize;
        let me = Member {
            key,
            picks: picks.clone(),
            neighbours: Vec::new(),
            next_round: 0,
            opened: BTreeMap::new(),
            has_revealed: false,
            heard: 0,
            sums: 0,
            totals: vec![0.0; columns],
            weight: 0,
            missing: 0,
            estimate: vec![0.0; columns],
        };
        (me, (self.config.board, random_bits(GopaLetter::Enrol { key: public, picks })))
    }

    /// k of the others, uniformly, in the order of their numbers.
    fn picks(&self, me: u32, secret: &mut Secrets<'_>) -> Vec<u32> {
        let (members, wanted) = (self.config.members, self.config.neighbours as usize);
        // Whoever wants most of them draws those that it leaves out.
        let others = members as usize - 1;
        let (drawn, leaves_out) = if 2 * wanted > others { (others - wanted, true) } else { (wanted, false) };
        let mut is_drawn = vec![false; members as usize];
        is_drawn[me as usize] = true;
        let bound = (u32::MAX / members) * members;
        let mut left = drawn;
        while left > 0 {
            let bytes: [u8; 256] = secret.bytes();
            for word in bytes.as_chunks::<4>().0 {
                let word = u32::from_le_bytes(*word);
                if left > 0 && word < bound && !std::mem::replace(&mut is_drawn[(word % members) as usize], true) {
                    left -= 1;
                }
            }
        }
        (0..members).filter(|&other| other != me && is_drawn[other as usize] != leaves_out).collect()
    }

    /// A letter of the board.
    pub(super) fn told(
        &self,
        me: &mut Member,
        observations: Observations<'_>,
        letter: GopaLetter,
        cx: &mut Cx<'_>,
        posts: &mut Vec<Post>,
    ) -> Result<(), Reject> {
        match letter {
            GopaLetter::Roster { neighbours } => {
                self.accept(me, neighbours, cx.me.0, cx.secret.simulation())?;
                self.publish(me, observations, cx, posts)
            }
            GopaLetter::Gone { round, gone } => {
                posts.push(self.open_pads(me, round, &gone, cx.secret.simulation())?);
                Ok(())
            }
            GopaLetter::Reveal { round, finished, shares } => {
                posts.push(self.open_shares(me, round, finished, &shares, cx.secret.simulation())?);
                Ok(())
            }
            GopaLetter::Sum { round, finished, weight, sum } => {
                self.expect_outcome(me, round)?;
                if sum.len() != self.config.numbers() as usize {
                    return Err(Reject::WrongDimension);
                }
                // A model moves by the mean of its updates.
                let over = if self.config.learns.is_some() { f64::from(finished.max(1)) } else { 1.0 };
                let values = sum.iter().map(|bytes| self.value(u64::from_le_bytes(*bytes)) / over);
                me.totals.iter_mut().zip(values).for_each(|(total, value)| *total += value);
                me.weight = me.weight.saturating_add(weight);
                me.missing = me.missing.saturating_add(self.config.members.saturating_sub(finished));
                me.sums += 1;
                me.estimate = self.estimate(&me.totals, me.weight, me.sums);
                self.go_on(me, round, observations, cx, posts)
            }
            GopaLetter::Void { round } => {
                self.expect_outcome(me, round)?;
                self.go_on(me, round, observations, cx, posts)
            }
            _ => Err(Reject::OutOfTurn),
        }
    }

    fn expect_outcome(&self, me: &Member, round: u32) -> Result<(), Reject> {
        if round >= me.heard && round < self.config.rounds { Ok(()) } else { Err(Reject::OutOfTurn) }
    }

    /// The next round, if there is one.
    fn go_on(
        &self,
        me: &mut Member,
        round: u32,
        observations: Observations<'_>,
        cx: &mut Cx<'_>,
        posts: &mut Vec<Post>,
    ) -> Result<(), Reject> {
        me.heard = round + 1;
        me.next_round = me.next_round.max(me.heard);
        let is_over = me.heard == self.config.rounds || me.neighbours.is_empty();
        if is_over { Ok(()) } else { self.publish(me, observations, cx, posts) }
    }

    /// Takes a list of neighbours, once.
    fn accept(
        &self,
        me: &mut Member,
        neighbours: Vec<Keyed>,
        own: u32,
        simulation: Option<Simulation>,
    ) -> Result<(), Reject> {
        if !me.neighbours.is_empty() || me.next_round > 0 {
            return Err(Reject::OutOfTurn);
        }
        let ordered = neighbours.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let known = neighbours.iter().all(|(id, _)| *id < self.config.members && *id != own);
        // PRIVACY: whoever has too few picks there could not have its own mask opened by enough of them; isolated, it would stand bare.
        let dealt_to = neighbours.iter().filter(|(id, _)| me.picks.binary_search(id).is_ok()).count();
        if !ordered || !known || dealt_to < self.config.threshold as usize {
            return Err(Reject::Malformed);
        }
        let keys = Keys::of(&me.key, simulation);
        for (_, theirs) in &neighbours {
            keys.agree(theirs)?;
        }
        me.neighbours = neighbours;
        Ok(())
    }

    /// Masks this round's contribution and publishes it. It happens once for each round.
    fn publish(
        &self,
        me: &mut Member,
        observations: Observations<'_>,
        cx: &mut Cx<'_>,
        posts: &mut Vec<Post>,
    ) -> Result<(), Reject> {
        let round = me.next_round;
        if round >= self.config.rounds || me.neighbours.is_empty() {
            return Err(Reject::OutOfTurn);
        }
        let keys = Keys::of(&me.key, cx.secret.simulation());
        let mine = keys.public();
        let own = OwnMask::from_seed(&cx.secret.bytes(), self.config.threshold).map_err(|_| Reject::Malformed)?;
        let mut pads: Vec<PadStream> = Vec::with_capacity(me.neighbours.len());
        let mut shares = Vec::new();
        for (id, theirs) in &me.neighbours {
            let mut pair = keys.agree(theirs)?;
            pads.push(stream(&mut pair, Use::Pad, round)?);
            if let Ok(place) = me.picks.binary_search(id) {
                let share = own.share(place as u32 + 1).map_err(|_| Reject::Malformed)?;
                let dealt = Use::Share { from_smaller: mine < *theirs };
                let sealed = seal(stream(&mut pair, dealt, round)?, share.to_bytes());
                shares.push((*id, sealed.map_err(|_| Reject::Malformed)?));
            }
        }
        let (mut values, weight) = self.contribution(observations, &me.totals);
        // PRIVACY: charged for one contribution to a sum whose noise `others` honest members make, this one among them, against everyone and a coalition. What leaves
        // is under this member's own mask and its pads: crates/privacy/proofs/gopa.md.
        let receipt = cx.gate.contribute(Track::Sums, self.sensitivity(), Audience::Coalition, &mut values)?;
        let mut masked: Vec<u64> = values.into_iter().map(to_ring).collect();
        own.mask(&mut masked).map_err(|_| Reject::Malformed)?;
        for pad in pads {
            let _opened_if_the_other_leaves = pad.mask(&mut masked).map_err(|_| Reject::Malformed)?;
        }
        (me.next_round, me.has_revealed) = (round + 1, false);
        me.opened.clear();
        let masked = masked.into_iter().map(u64::to_le_bytes).collect();
        posts.push((self.config.board, receipt.release(GopaLetter::Publish { round, weight, masked, shares })));
        Ok(())
    }

    /// Opens the pads with these neighbours, who did not finish.
    fn open_pads(
        &self,
        me: &mut Member,
        round: u32,
        gone: &[u32],
        simulation: Option<Simulation>,
    ) -> Result<Post, Reject> {
        expect_round(me, round)?;
        // PRIVACY: the pad or the share, never both; and no pad once shares were opened.
        if me.has_revealed || gone.iter().any(|id| me.opened.get(id) == Some(&Opened::Share)) {
            return Err(Reject::OutOfTurn);
        }
        let keys = Keys::of(&me.key, simulation);
        let mut pads = Vec::with_capacity(gone.len());
        for id in gone {
            let theirs = key_of(me, *id)?;
            let spent = stream(&mut keys.agree(&theirs)?, Use::Pad, round)?.mask(&mut []);
            let bytes = spent.map_err(|_| Reject::Malformed)?.reveal().to_bytes();
            let (head, sign) = bytes.split_at(RevealedPad::BYTES - 1);
            pads.push((*id, head.try_into().map_err(|_| Reject::Malformed)?, sign == [1]));
        }
        me.opened.extend(gone.iter().map(|id| (*id, Opened::Pad)));
        Ok((self.config.board, random_bits(GopaLetter::Pads { round, pads })))
    }

    /// Opens its shares of the own masks of these, who finished.
    fn open_shares(
        &self,
        me: &mut Member,
        round: u32,
        finished: u32,
        sealed: &[Keyed],
        simulation: Option<Simulation>,
    ) -> Result<Post, Reject> {
        expect_round(me, round)?;
        // PRIVACY: with fewer that finish there is less noise than was promised: nobody opens anything.
        if finished < self.config.finishing || me.has_revealed {
            return Err(Reject::OutOfTurn);
        }
        // PRIVACY: the pad or the share, never both.
        if sealed.iter().any(|(id, _)| me.opened.get(id) == Some(&Opened::Pad)) {
            return Err(Reject::OutOfTurn);
        }
        let keys = Keys::of(&me.key, simulation);
        let mine = keys.public();
        let mut shares = Vec::with_capacity(sealed.len());
        for (id, bytes) in sealed {
            let theirs = key_of(me, *id)?;
            let dealers = Use::Share { from_smaller: theirs < mine };
            let pad = stream(&mut keys.agree(&theirs)?, dealers, round)?;
            let share = seal(pad, *bytes).map_err(|_| Reject::Malformed)?;
            Share::from_bytes(1, share).map_err(|_| Reject::Malformed)?;
            shares.push((*id, share));
        }
        me.opened.extend(sealed.iter().map(|(id, _)| (*id, Opened::Share)));
        me.has_revealed = true;
        Ok((self.config.board, random_bits(GopaLetter::Shares { round, shares })))
    }

    /// Whether saved bytes are a member's.
    pub(super) fn is_member(&self, me: &Member) -> bool {
        let (members, columns) = (self.config.members, self.config.numbers() as usize);
        let ordered =
            |list: &[u32]| list.windows(2).all(|pair| pair[0] < pair[1]) && list.iter().all(|id| *id < members);
        let ids: Vec<u32> = me.neighbours.iter().map(|(id, _)| *id).collect();
        ordered(&me.picks)
            && ordered(&ids)
            && me.picks.len() == self.config.neighbours as usize
            && me.next_round <= self.config.rounds
            && me.heard <= self.config.rounds
            && me.sums <= me.heard
            && me.totals.len() == columns
            && me.totals.iter().all(|total| total.is_finite())
            && me.estimate
                == if me.sums == 0 { vec![0.0; columns] } else { self.estimate(&me.totals, me.weight, me.sums) }
    }
}

/// Refuses what is not about the round that the member has published for last and heard no outcome of.
fn expect_round(me: &Member, round: u32) -> Result<(), Reject> {
    if Some(round) == me.next_round.checked_sub(1) && round >= me.heard { Ok(()) } else { Err(Reject::OutOfTurn) }
}

fn key_of(me: &Member, id: u32) -> Result<[u8; 32], Reject> {
    let found = me.neighbours.binary_search_by_key(&id, |(other, _)| *other);
    found.map(|place| me.neighbours[place].1).map_err(|_| Reject::NotANeighbour)
}

/// A member's key for a task: that of an agreement, or of a simulation, where what is published is what a pair's secret is made of.
enum Keys {
    Agreed(TaskKey),
    Simulated([u8; 32], Simulation),
}

impl Keys {
    /// From what was drawn for the task. Only simulated secrets give a [`Simulation`]: a real peer agrees.
    fn of(drawn: &[u8; 32], simulation: Option<Simulation>) -> Keys {
        match simulation {
            None => Keys::Agreed(TaskKey::from_secret(TASK, drawn)),
            Some(simulation) => {
                let mut public = *drawn;
                // In the form of a key: below 2^254.
                public[31] &= 0x3f;
                Keys::Simulated(public, simulation)
            }
        }
    }

    fn public(&self) -> [u8; 32] {
        match self {
            Keys::Agreed(key) => key.public().to_bytes(),
            Keys::Simulated(public, _) => *public,
        }
    }

    fn agree(&self, theirs: &[u8; 32]) -> Result<PairSecret, Reject> {
        match self {
            Keys::Agreed(key) => {
                let theirs = TaskPublicKey::from_bytes(*theirs).map_err(|_| Reject::Malformed)?;
                key.agree(theirs, 0).map_err(|_| Reject::Malformed)
            }
            Keys::Simulated(mine, _) if mine == theirs => Err(Reject::Malformed),
            Keys::Simulated(mine, simulation) => Ok(PairSecret::simulated(*simulation, mine, theirs)),
        }
    }
}

/// What a stream of a pair is for.
#[derive(Clone, Copy)]
enum Use {
    Pad,
    Share { from_smaller: bool },
}

/// Three streams for each pair and round: the pad, and what seals a share in either direction.
fn stream(pair: &mut PairSecret, what: Use, round: u32) -> Result<PadStream, Reject> {
    let (round, direction) = match what {
        Use::Pad => (2 * u64::from(round), Direction::FromSmaller),
        Use::Share { from_smaller: true } => (2 * u64::from(round) + 1, Direction::FromSmaller),
        Use::Share { from_smaller: false } => (2 * u64::from(round) + 1, Direction::FromLarger),
    };
    pair.stream(round, direction).map_err(|_| Reject::OutOfTurn)
}
