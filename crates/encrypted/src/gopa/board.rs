//! What the board does: it keeps what members publish, names those who finished, and adds up what was opened.
//!
//! Its list only shrinks. Before any share is opened everyone on the list has opened its pads with all who are not; whoever does not is taken
//! off, and the others open their pads with it as well. So the sum is that of the list, to the last bit, and of nobody both pads and shares are open.

use super::{Gopa, GopaLetter, Keyed, Post, heard_from_members};
use serde::{Deserialize, Serialize};
use sottovoce_core::{Cx, PeerId, Reject, Time};
use sottovoce_crypto::agreement::TaskPublicKey;
use sottovoce_crypto::own_mask::{self, Share};
use sottovoce_crypto::pad::RevealedPad;
use std::collections::{BTreeMap, BTreeSet};

/// What the board waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Keys and picks.
    #[default]
    Enrolling,
    /// Contributions.
    Publishing,
    /// Pads with members that are gone.
    Opening,
    /// Shares of own masks.
    Revealing,
    /// Nothing.
    Over,
}

/// A member as it enrolled.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Enrolment {
    key: [u8; 32],
    picks: Vec<u32>,
}

/// A contribution as it was published.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Publication {
    weight: u64,
    masked: Vec<[u8; 8]>,
    shares: Vec<Keyed>,
}

/// What the board remembers.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Board {
    pub phase: Phase,
    round: u32,
    enrolled: BTreeMap<u32, Enrolment>,
    published: BTreeMap<u32, Publication>,
    /// Those who have finished, as far as is known.
    pub list: BTreeSet<u32>,
    /// Who was asked for what of whom, and has not answered.
    asked: BTreeMap<u32, Vec<u32>>,
    /// By opener and other end: the key of a pad, and whether the opener subtracts it.
    pads: BTreeMap<(u32, u32), ([u8; 32], bool)>,
    /// By dealer: opened shares.
    shares: BTreeMap<u32, Vec<Keyed>>,
    /// How many of the list have shares enough.
    complete: u32,
}

impl Gopa {
    /// A letter of a member.
    pub(super) fn hear(
        &self,
        board: &mut Board,
        from: PeerId,
        letter: GopaLetter,
        cx: &mut Cx<'_>,
        posts: &mut Vec<Post>,
    ) -> Result<(), Reject> {
        match letter {
            GopaLetter::Enrol { key, picks } => {
                if board.phase != Phase::Enrolling {
                    // Too late: it takes no part.
                    let round = self.config.rounds - 1;
                    posts.push((from, heard_from_members(GopaLetter::Void { round })));
                    return Ok(());
                }
                self.check_picks(from.0, &key, &picks)?;
                // A member that begins anew has another key, and pads of the first one may be in use: it is not let in twice.
                if board.enrolled.contains_key(&from.0) {
                    return Err(Reject::OutOfTurn);
                }
                board.enrolled.insert(from.0, Enrolment { key, picks });
                if board.enrolled.len() == self.config.members as usize {
                    self.call(board, cx, posts);
                }
                Ok(())
            }
            GopaLetter::Publish { round, weight, masked, shares } => {
                self.check_publication(board, from.0, round, &masked, &shares)?;
                board.published.insert(from.0, Publication { weight, masked, shares });
                if board.published.len() == board.enrolled.len() {
                    self.close(board, cx, posts);
                }
                Ok(())
            }
            GopaLetter::Pads { round, pads } => {
                let asked = expect(board, Phase::Opening, round, from.0, pads.iter().map(|(id, ..)| *id))?;
                for (id, key, subtracts) in pads {
                    board.pads.insert((from.0, id), (key, subtracts));
                }
                board.asked.remove(&asked);
                if board.asked.is_empty() {
                    self.settle(board, cx, posts);
                }
                Ok(())
            }
            // Others were faster, and enough.
            GopaLetter::Shares { round, .. } if round < board.round && board.enrolled.contains_key(&from.0) => Ok(()),
            GopaLetter::Shares { round, shares } => {
                let asked = expect(board, Phase::Revealing, round, from.0, shares.iter().map(|(id, _)| *id))?;
                if shares.iter().any(|(_, bytes)| Share::from_bytes(1, *bytes).is_err()) {
                    return Err(Reject::Malformed);
                }
                board.asked.remove(&asked);
                for (dealer, bytes) in shares {
                    let Some(index) = index_of(board, dealer, from.0) else { continue };
                    let known = board.shares.entry(dealer).or_default();
                    known.push((index, bytes));
                    board.complete += u32::from(known.len() == self.config.threshold as usize);
                }
                if board.complete as usize == board.list.len() {
                    self.add_up(board, cx, posts);
                }
                Ok(())
            }
            _ => Err(Reject::OutOfTurn),
        }
    }

    /// The time-out: the board goes on without those who are silent.
    pub(super) fn lose_patience(&self, board: &mut Board, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        match board.phase {
            Phase::Enrolling => self.call(board, cx, posts),
            Phase::Publishing => self.close(board, cx, posts),
            Phase::Opening => {
                let silent = std::mem::take(&mut board.asked);
                board.list.retain(|id| !silent.contains_key(id));
                self.settle(board, cx, posts);
            }
            Phase::Revealing => self.declare_void(board, cx, posts),
            Phase::Over => {}
        }
    }

    /// Tells everyone who enrolled with whom it shares pads.
    fn call(&self, board: &mut Board, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        // Whose picks are not there could not have its own mask opened.
        loop {
            let there: BTreeSet<u32> = board.enrolled.keys().copied().collect();
            let threshold = self.config.threshold as usize;
            board.enrolled.retain(|_, one| one.picks.iter().filter(|id| there.contains(id)).count() >= threshold);
            if board.enrolled.len() == there.len() {
                break;
            }
            for id in there.iter().filter(|id| !board.enrolled.contains_key(id)) {
                let round = self.config.rounds - 1;
                posts.push((PeerId(*id), heard_from_members(GopaLetter::Void { round })));
            }
        }
        if board.enrolled.len() < self.config.finishing as usize {
            board.round = self.config.rounds - 1;
            self.declare_void(board, cx, posts);
            return;
        }
        for (id, others) in adjacency(board) {
            let neighbours = others.iter().map(|other| (*other, board.enrolled[other].key)).collect();
            posts.push((PeerId(id), heard_from_members(GopaLetter::Roster { neighbours })));
        }
        self.wait(board, Phase::Publishing, cx);
    }

    /// No more contributions to this round.
    fn close(&self, board: &mut Board, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        board.list = board.published.keys().copied().collect();
        self.settle(board, cx, posts);
    }

    /// Asks for pads that are missing; if none are, for shares.
    fn settle(&self, board: &mut Board, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        self.keep_those_that_can_be_opened(board);
        if board.list.len() < self.config.finishing as usize {
            self.declare_void(board, cx, posts);
            return;
        }
        let adjacency = adjacency(board);
        for id in &board.list {
            let is_missing = |other: &&u32| !board.list.contains(other) && !board.pads.contains_key(&(*id, **other));
            let gone: Vec<u32> = adjacency[id].iter().filter(is_missing).copied().collect();
            if !gone.is_empty() {
                board.asked.insert(*id, gone.clone());
                let letter = GopaLetter::Gone { round: board.round, gone };
                posts.push((PeerId(*id), heard_from_members(letter)));
            }
        }
        if board.asked.is_empty() {
            self.reveal(board, cx, posts);
        } else {
            self.wait(board, Phase::Opening, cx);
        }
    }

    /// Takes off the list whose own mask too few on the list have shares of.
    fn keep_those_that_can_be_opened(&self, board: &mut Board) {
        loop {
            let before = board.list.clone();
            let can = |id: &u32| {
                let picks = board.enrolled.get(id).map_or(&[][..], |one| &one.picks);
                picks.iter().filter(|pick| before.contains(pick)).count() >= self.config.threshold as usize
            };
            let after: BTreeSet<u32> = before.iter().filter(|id| can(id)).copied().collect();
            let is_stable = after.len() == before.len();
            board.list = after;
            if is_stable {
                return;
            }
        }
    }

    /// Asks for the shares of everyone on the list. From here on nobody is taken off it.
    fn reveal(&self, board: &mut Board, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        let mut held: BTreeMap<u32, Vec<Keyed>> = BTreeMap::new();
        for dealer in &board.list {
            for (holder, sealed) in &board.published[dealer].shares {
                if board.list.contains(holder) {
                    held.entry(*holder).or_default().push((*dealer, *sealed));
                }
            }
        }
        (board.complete, board.shares) = (0, BTreeMap::new());
        for (holder, shares) in held {
            board.asked.insert(holder, shares.iter().map(|(dealer, _)| *dealer).collect());
            let (round, finished) = (board.round, board.list.len() as u32);
            posts.push((PeerId(holder), heard_from_members(GopaLetter::Reveal { round, finished, shares })));
        }
        self.wait(board, Phase::Revealing, cx);
    }

    /// Everything is open that has to be: the sum of the list.
    fn add_up(&self, board: &mut Board, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        let mut sum = vec![0u64; self.config.numbers() as usize];
        let mut weight = 0u64;
        for id in &board.list {
            let publication = &board.published[id];
            weight = weight.saturating_add(publication.weight);
            for (sum, masked) in sum.iter_mut().zip(&publication.masked) {
                *sum = sum.wrapping_add(u64::from_le_bytes(*masked));
            }
        }
        let mut fits = true;
        for (_, (key, subtracts)) in board.pads.iter().filter(|((id, _), _)| board.list.contains(id)) {
            let mut bytes = [0; RevealedPad::BYTES];
            bytes[..32].copy_from_slice(key);
            bytes[32] = u8::from(*subtracts);
            fits &= RevealedPad::from_bytes(&bytes).is_ok_and(|pad| pad.remove(&mut sum).is_ok());
        }
        for id in &board.list {
            let known = board.shares.get(id).map_or(&[][..], |known| known);
            let shares: Result<Vec<Share>, _> = known
                .iter()
                .take(self.config.threshold as usize)
                .map(|(index, bytes)| Share::from_bytes(*index, *bytes))
                .collect();
            fits &= shares.is_ok_and(|shares| own_mask::remove(&shares, &mut sum).is_ok());
        }
        if !fits {
            self.declare_void(board, cx, posts);
            return;
        }
        let (round, finished) = (board.round, board.list.len() as u32);
        let sum: Vec<[u8; 8]> = sum.into_iter().map(u64::to_le_bytes).collect();
        self.tell_all(board, GopaLetter::Sum { round, finished, weight, sum }, cx, posts);
    }

    /// There will be no sum of this round.
    fn declare_void(&self, board: &mut Board, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        board.list.clear();
        self.tell_all(board, GopaLetter::Void { round: board.round }, cx, posts);
    }

    /// The outcome of a round, to everyone who enrolled; then the next.
    fn tell_all(&self, board: &mut Board, letter: GopaLetter, cx: &mut Cx<'_>, posts: &mut Vec<Post>) {
        posts.extend(board.enrolled.keys().map(|id| (PeerId(*id), heard_from_members(letter.clone()))));
        board.published.clear();
        board.asked.clear();
        board.pads.clear();
        board.shares.clear();
        board.complete = 0;
        board.round += 1;
        if board.round < self.config.rounds {
            self.wait(board, Phase::Publishing, cx);
        } else {
            board.phase = Phase::Over;
        }
    }

    fn wait(&self, board: &mut Board, phase: Phase, cx: &mut Cx<'_>) {
        board.phase = phase;
        self.set_alarm(cx);
    }

    /// The board's one alarm.
    pub(super) fn set_alarm(&self, cx: &mut Cx<'_>) {
        cx.outbox.wake_at(cx.now.after(Time(self.config.timeout)));
    }

    fn check_picks(&self, from: u32, key: &[u8; 32], picks: &[u32]) -> Result<(), Reject> {
        let ordered = picks.windows(2).all(|pair| pair[0] < pair[1]);
        let known = picks.iter().all(|id| *id < self.config.members && *id != from);
        let fits = ordered && known && picks.len() == self.config.neighbours as usize && from < self.config.members;
        if fits && TaskPublicKey::from_bytes(*key).is_ok() { Ok(()) } else { Err(Reject::Malformed) }
    }

    fn check_publication(
        &self,
        board: &Board,
        from: u32,
        round: u32,
        masked: &[[u8; 8]],
        shares: &[Keyed],
    ) -> Result<(), Reject> {
        if board.phase != Phase::Publishing || round != board.round || board.published.contains_key(&from) {
            return Err(Reject::OutOfTurn);
        }
        if masked.len() != self.config.numbers() as usize {
            return Err(Reject::WrongDimension);
        }
        let enrolment = board.enrolled.get(&from).ok_or(Reject::NotANeighbour)?;
        let there = enrolment.picks.iter().filter(|id| board.enrolled.contains_key(id));
        if there.eq(shares.iter().map(|(id, _)| id)) { Ok(()) } else { Err(Reject::Malformed) }
    }

    /// Whether saved bytes are a board's.
    pub(super) fn is_board(&self, board: &Board) -> bool {
        let columns = self.config.numbers() as usize;
        let enrolled = board.enrolled.iter().all(|(id, one)| self.check_picks(*id, &one.key, &one.picks).is_ok());
        let there = |id: &u32| board.enrolled.contains_key(id);
        let published = board.published.iter().all(|(id, one)| there(id) && one.masked.len() == columns);
        let (asked, opened) =
            (board.asked.keys().all(there), board.pads.keys().all(|(id, other)| there(id) && there(other)));
        let is_over = board.phase == Phase::Over;
        let listed = board.list.iter().all(|id| there(id) && (is_over || board.published.contains_key(id)));
        let rounds = board.round <= self.config.rounds && (is_over || board.round < self.config.rounds);
        let counted = board.complete as usize <= board.list.len();
        enrolled && published && asked && opened && rounds && counted && (listed || board.phase == Phase::Publishing)
    }
}

/// Who shares pads with whom, of those who enrolled: there is an edge where one picked the other.
fn adjacency(board: &Board) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut all: BTreeMap<u32, BTreeSet<u32>> = board.enrolled.keys().map(|id| (*id, BTreeSet::new())).collect();
    for (id, one) in &board.enrolled {
        for pick in one.picks.iter().filter(|pick| board.enrolled.contains_key(pick)) {
            all.entry(*id).or_default().insert(*pick);
            all.entry(*pick).or_default().insert(*id);
        }
    }
    all
}

/// Which share of a dealer's a holder has: its place among the dealer's picks, from 1.
fn index_of(board: &Board, dealer: u32, holder: u32) -> Option<u32> {
    let place = board.enrolled.get(&dealer)?.picks.binary_search(&holder).ok()?;
    Some(place as u32 + 1)
}

/// Refuses an answer that was not asked for, or answers something else.
fn expect(board: &Board, phase: Phase, round: u32, from: u32, about: impl Iterator<Item = u32>) -> Result<u32, Reject> {
    let asked = board.asked.get(&from).filter(|_| board.phase == phase && board.round == round);
    match asked {
        None => Err(Reject::OutOfTurn),
        Some(asked) if asked.iter().copied().eq(about) => Ok(from),
        Some(_) => Err(Reject::Malformed),
    }
}
