//! What a peer says and hears.

use super::{Fault, MINE, Node, Phase, STILL_WAKES, Waiting};
use crate::disk::Disk;
use crate::frame::{Answer, Card, Post, Question, Refusal};
use sottovoce_core::wire::{self, Numbers};
use sottovoce_core::{Algorithm, PeerId, Wire};
use sottovoce_privacy::Noise;

/// A frame for one neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The number of the message in it.
    pub number: u64,
    /// The bytes to send.
    pub frame: Vec<u8>,
}

impl<A: Algorithm, D: Disk, N: Noise + 'static> Node<'_, A, D, N> {
    /// What to ask a neighbour when a connection to it is made.
    pub fn hello(&self) -> Vec<u8> {
        Question::Hello(self.card()).encode()
    }

    fn card(&self) -> Card<'_> {
        Card { name: &self.group.names[self.group.me.index()], points: self.rules.points }
    }

    /// What a neighbour answered to [`Node::hello`].
    pub fn welcomed(&mut self, from: PeerId, answer: &[u8]) -> Result<(), Fault> {
        if let Err(refusal) = self.believe(from, answer)? {
            self.refuse(refusal);
        }
        Ok(())
    }

    fn believe(&mut self, from: PeerId, answer: &[u8]) -> Result<Result<(), Refusal>, Fault> {
        let Some(k) = self.group.peers().position(from) else { return Ok(Err(Refusal::NotANeighbour)) };
        let (card, seen, post) = match Answer::decode(answer) {
            Ok(Answer::Welcome { card, seen, post }) => (card, seen, post),
            Ok(Answer::Refused(_)) => {
                self.counters.refused_by_others += 1;
                return Ok(Ok(()));
            }
            Ok(_) => return Ok(Err(Refusal::Malformed)),
            Err(refusal) => return Ok(Err(refusal)),
        };
        if card.name != self.group.name(k) {
            return Ok(Err(Refusal::WrongName));
        }
        if seen.highest() > self.last_number {
            self.phase = Phase::Failed;
            let neighbour = card.name.to_owned();
            return Err(Fault::RolledBack { neighbour, seen: seen.highest(), own: self.last_number });
        }
        let other = &mut self.others[k];
        other.is_witness = true;
        other.wants_post = self.post_number > seen.post;
        other.letters.retain(|letter| letter.number > seen.letter);
        if other.points.replace(card.points) != Some(card.points) {
            self.news.insert(k);
        }
        Ok(match post {
            Some(post) if post.number > self.others[k].seen.post => self.hear(k, post),
            _ => Ok(()),
        })
    }

    /// A frame came; the answer to it. `from` is who the connection proves it to be; `None`: nobody of the group.
    pub fn receive(&mut self, from: Option<PeerId>, frame: &[u8]) -> Result<Vec<u8>, Fault> {
        if let Phase::Failed = self.phase {
            return Err(Fault::Failed);
        }
        let taken = match Question::decode(frame) {
            Err(refusal) => Err(refusal),
            Ok(question) => match from.and_then(|from| Some((from, self.group.peers().position(from)?))) {
                None => Err(Refusal::NotANeighbour),
                Some((from, k)) => self.take(from, k, question)?,
            },
        };
        Ok(match taken {
            Ok(answer) => answer,
            Err(refusal) => {
                self.refuse(refusal);
                Answer::Refused(refusal).encode()
            }
        })
    }

    fn take(&mut self, from: PeerId, k: usize, question: Question<'_>) -> Result<Result<Vec<u8>, Refusal>, Fault> {
        Ok(match question {
            Question::Hello(card) if card.name != self.group.name(k) => Err(Refusal::WrongName),
            Question::Hello(card) => {
                if self.others[k].points.replace(card.points) != Some(card.points) {
                    self.news.insert(k);
                }
                // Whoever asks asks again until it has the answer, so the post need not be sent besides.
                if std::mem::take(&mut self.others[k].wants_post) {
                    self.count_post();
                }
                let values = || Numbers::Plain(self.versions.row(MINE as usize));
                let post = (self.mine == MINE).then(|| Post { number: self.post_number, values: values() });
                Ok(Answer::Welcome { card: self.card(), seen: self.others[k].seen, post }.encode())
            }
            Question::Post(post) => self.hear(k, post).map(|()| Answer::Taken.encode()),
            Question::Letter { number, bytes } => self.read(from, k, number, bytes)?.map(|()| Answer::Taken.encode()),
            Question::Who => Err(Refusal::Malformed),
        })
    }

    /// A post: the highest number counts, never the last arrival.
    fn hear(&mut self, k: usize, post: Post<'_>) -> Result<(), Refusal> {
        if post.values.len() != self.versions.row_len() || self.versions.row_len() == 0 {
            return Err(Refusal::WrongDimension);
        }
        if post.number <= self.others[k].seen.post {
            return Err(Refusal::OutOfTurn);
        }
        let step = self.rules.tolerance.map_or(0.0, |tolerance| tolerance / f64::from(STILL_WAKES));
        let row = self.versions.row_mut(MINE as usize + 1 + k);
        let moved = row.iter().zip(post.values.iter()).fold(0.0f64, |most, (old, new)| most.max((old - new).abs()));
        post.values.copy_to(row)?;
        self.seen[k] = MINE + 1 + k as u32;
        self.others[k].seen.post = post.number;
        self.news.insert(k);
        if moved > step {
            self.still = 0;
        }
        Ok(())
    }

    fn read(&mut self, from: PeerId, k: usize, number: u64, bytes: &[u8]) -> Result<Result<(), Refusal>, Fault> {
        if let Phase::Asking(_) = self.phase {
            return Ok(Err(Refusal::NotReady));
        }
        if number <= self.others[k].seen.letter {
            return Ok(Err(Refusal::OutOfTurn));
        }
        let letter = match A::Letter::decode(bytes) {
            Ok(letter) => letter,
            Err(reject) => return Ok(Err(reject.into())),
        };
        self.others[k].seen.letter = number;
        self.news.insert(k);
        let read = self.act(|algorithm, state, data, cx| {
            let read = algorithm.on_letter(state, data, from, letter, cx);
            if read.is_err() {
                cx.outbox.clear();
            }
            read
        })?;
        Ok(read.map_err(Refusal::from))
    }

    fn refuse(&mut self, refusal: Refusal) {
        *self.counters.refusals.entry(refusal).or_default() += 1;
    }

    /// Whether [`Node::outgoing`] has something for a neighbour.
    pub fn has_outgoing(&self, to: PeerId) -> bool {
        let other = self.group.peers().position(to).map(|k| &self.others[k]);
        other.is_some_and(|other| !other.letters.is_empty() || other.wants_post && self.mine == MINE)
    }

    /// What to send to a neighbour next: its letters in order, then the last post, if it has not got it. The same again until
    /// [`Node::answered`] says that it arrived.
    pub fn outgoing(&self, to: PeerId) -> Option<Outgoing> {
        let other = &self.others[self.group.peers().position(to)?];
        if let Some(Waiting { number, bytes, .. }) = other.letters.front() {
            return Some(Outgoing { number: *number, frame: Question::Letter { number: *number, bytes }.encode() });
        }
        (other.wants_post && self.mine == MINE).then(|| {
            let (number, values) = (self.post_number, Numbers::Plain(self.versions.row(MINE as usize)));
            Outgoing { number, frame: Question::Post(Post { number, values }).encode() }
        })
    }

    /// A neighbour answered to the message with this number.
    pub fn answered(&mut self, from: PeerId, number: u64, answer: &[u8]) {
        let Some(k) = self.group.peers().position(from) else { return };
        let taken = match Answer::decode(answer) {
            Ok(Answer::Taken) => true,
            Ok(Answer::Refused(_)) => {
                self.counters.refused_by_others += 1;
                false
            }
            Ok(_) => return self.refuse(Refusal::Malformed),
            Err(refusal) => return self.refuse(refusal),
        };
        let other = &mut self.others[k];
        let is_letter = other.letters.front().is_some_and(|letter| letter.number == number);
        if let Some(letter) = is_letter.then(|| other.letters.pop_front()).flatten() {
            if taken {
                self.counters.vectors_sent += letter.vectors;
                self.counters.letters_sent += 1;
                self.counters.bytes_sent += letter.bytes.len() as u64;
            } else {
                self.counters.letters_lost += 1;
            }
        } else if number == self.post_number && std::mem::take(&mut other.wants_post) && taken {
            self.count_post();
        }
    }

    fn count_post(&mut self) {
        self.counters.vectors_sent += 1;
        self.counters.bytes_sent += wire::post_bytes(self.versions.row_len());
    }
}
