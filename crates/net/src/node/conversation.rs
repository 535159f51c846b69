//! What a peer says and hears.

use super::{Fault, MINE, Node, Phase, STILL_WAKES};
use crate::disk::Disk;
use crate::frame::{Answer, Card, Evidence, Post, Question, Refusal, Stamp};
use crate::store::DurableLetter;
use sottovoce_core::wire::{self, Numbers};
use sottovoce_core::{Algorithm, PeerId, Reject, Wire};
use sottovoce_privacy::Noise;

/// A frame for one neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The number of the message in it.
    pub number: u64,
    /// The bytes to send.
    pub frame: Vec<u8>,
}

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// What waits next can go at once.
    Next,
    /// The same message waits still, and goes again after a pause.
    Again,
}

impl<A: Algorithm, D: Disk, N: Noise + 'static> Node<'_, A, D, N> {
    /// What to ask a neighbour when a connection to it is made.
    pub fn hello(&self) -> Vec<u8> {
        Question::Hello(self.card()).encode()
    }

    fn card(&self) -> Card<'_> {
        let (instance, name) = (self.instance, &self.group.names[self.group.me.index()]);
        Card { instance, name, points: self.rules.points }
    }

    /// What a neighbour answered to [`Node::hello`].
    pub fn welcomed(&mut self, from: PeerId, answer: &[u8]) -> Result<(), Fault> {
        if let Err(refusal) = self.believe(from, answer)? {
            self.refuse(refusal);
        }
        Ok(())
    }

    fn believe(&mut self, from: PeerId, answer: &[u8]) -> Result<Result<(), Refusal>, Fault> {
        let Some(k) = self.group.reach().position(from) else { return Ok(Err(Refusal::NotANeighbour)) };
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
        if seen.highest() > self.last_number || seen.turn > self.others[k].mail.last {
            self.phase = Phase::Failed;
            let neighbour = card.name.to_owned();
            return Err(Fault::RolledBack { neighbour, seen: seen.highest(), own: self.last_number });
        }
        let other = &mut self.others[k];
        let kept = other.mail.waiting.iter().find(|letter| letter.turn == seen.turn);
        if kept.is_some_and(|letter| Evidence::of(&letter.stamped.stamp(), &letter.bytes).hash != seen.durable.hash) {
            self.phase = Phase::Failed;
            return Err(Fault::Forked { neighbour: card.name.to_owned(), turn: seen.turn });
        }
        other.is_witness = true;
        other.is_torn = seen.turn < other.mail.acknowledged;
        other.wants_post = self.group.neighbour(k).is_some() && self.post_stamp.number > seen.post.number;
        other.letters.retain(|letter| letter.stamped.number > seen.letter.number);
        if other.points.replace(card.points) != Some(card.points) {
            self.news.insert(k);
        }
        self.acknowledge(k, seen.turn);
        Ok(match post {
            Some(post) if post.stamp.number > self.others[k].seen.post.number => self.hear(k, post),
            _ => Ok(()),
        })
    }

    /// Durable letters up to this turn are on their receiver's disk.
    fn acknowledge(&mut self, k: usize, turn: u64) {
        let mail = &mut self.others[k].mail;
        if turn <= mail.acknowledged {
            return;
        }
        mail.acknowledged = turn;
        let (done, waiting) = std::mem::take(&mut mail.waiting).into_iter().partition(|letter| letter.turn <= turn);
        mail.waiting = waiting;
        // It is known again from the receiver if this process forgets it, so it goes into the next record, whenever that is.
        self.mail_news.insert(k);
        let done: Vec<DurableLetter> = done;
        for letter in done {
            self.counters.durable_delivered += 1;
            self.count_letter(letter.vectors, &letter.bytes);
        }
    }

    /// A frame came; the answer to it. `from` is who the connection proves it to be; `None`: nobody of the group.
    pub fn receive(&mut self, from: Option<PeerId>, frame: &[u8]) -> Result<Vec<u8>, Fault> {
        if let Phase::Failed = self.phase {
            return Err(Fault::Failed);
        }
        let taken = match Question::decode(frame) {
            Err(refusal) => Err(refusal),
            Ok(question) => match from.and_then(|from| Some((from, self.group.reach().position(from)?))) {
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
                let is_reader = self.mine == MINE && self.group.neighbour(k).is_some();
                let post = is_reader.then(|| Post { stamp: self.post_stamp.stamp(), values: values() });
                Ok(Answer::Welcome { card: self.card(), seen: self.others[k].seen.clone(), post }.encode())
            }
            Question::Post(post) => self.hear(k, post).map(|()| Answer::Taken.encode()),
            Question::Letter { stamp, bytes } => self.read(from, k, stamp, bytes)?.map(|()| Answer::Taken.encode()),
            Question::Durable { stamp, turn, bytes } => {
                self.read_durable(from, k, stamp, turn, bytes)?.map(|()| Answer::Taken.encode())
            }
            Question::Who => Err(Refusal::Malformed),
        })
    }

    /// A post: the highest number counts, never the last arrival.
    fn hear(&mut self, k: usize, post: Post<'_>) -> Result<(), Refusal> {
        let at = self.group.neighbour(k).ok_or(Refusal::NotANeighbour)?;
        if post.values.len() != self.versions.row_len() || self.versions.row_len() == 0 {
            return Err(Refusal::WrongDimension);
        }
        if post.stamp.number <= self.others[k].seen.post.number {
            return Err(Refusal::OutOfTurn);
        }
        let step = self.rules.tolerance.map_or(0.0, |tolerance| tolerance / f64::from(STILL_WAKES));
        let row = self.versions.row_mut(MINE as usize + 1 + at);
        let moved = row.iter().zip(post.values.iter()).fold(0.0f64, |most, (old, new)| most.max((old - new).abs()));
        post.values.copy_to(row)?;
        let mut content = Vec::with_capacity(8 * row.len());
        post.values.encode(&mut content);
        self.seen[at] = MINE + 1 + at as u32;
        self.others[k].seen.post = Evidence::of(&post.stamp, &content);
        self.news.insert(k);
        if moved > step {
            self.still = 0;
        }
        Ok(())
    }

    fn read(&mut self, from: PeerId, k: usize, stamp: Stamp<'_>, bytes: &[u8]) -> Result<Result<(), Refusal>, Fault> {
        if let Phase::Asking(_) = self.phase {
            return Ok(Err(Refusal::NotReady));
        }
        if stamp.number <= self.others[k].seen.letter.number {
            return Ok(Err(Refusal::OutOfTurn));
        }
        let letter = match self.decode(bytes) {
            Ok(letter) => letter,
            Err(reject) => return Ok(Err(reject.into())),
        };
        self.others[k].seen.letter = Evidence::of(&stamp, bytes);
        self.news.insert(k);
        Ok(self.act_on(false, from, letter)?.map_err(Refusal::from))
    }

    /// A durable letter. It is taken once, in its turn, and what it did is on the disk before the answer says so; whoever sends it again is
    /// told the same without anything being done. What the algorithm rejects was taken too: there is nothing to send again.
    fn read_durable(
        &mut self,
        from: PeerId,
        k: usize,
        stamp: Stamp<'_>,
        turn: u64,
        bytes: &[u8],
    ) -> Result<Result<(), Refusal>, Fault> {
        if let Phase::Asking(_) = self.phase {
            return Ok(Err(Refusal::NotReady));
        }
        let (evidence, seen) = (Evidence::of(&stamp, bytes), &mut self.others[k].seen);
        if turn == seen.turn && evidence.hash != seen.durable.hash {
            return Ok(Err(Refusal::Forked));
        }
        if turn <= seen.turn {
            self.counters.durable_repeated += 1;
            return Ok(Ok(()));
        }
        // Its sender sends them one by one. A gap means that one of the two has lost what it had; nothing follows before that is known.
        if turn != seen.turn + 1 {
            return Ok(Err(Refusal::OutOfTurn));
        }
        (seen.turn, seen.durable) = (turn, evidence);
        self.news.insert(k);
        let read = match self.decode(bytes) {
            Ok(letter) => self.act_on(true, from, letter)?,
            Err(reject) => {
                // Nothing but the turn has changed.
                self.save()?;
                Err(reject)
            }
        };
        if let Err(reject) = read {
            self.refuse(reject.into());
        }
        Ok(Ok(()))
    }

    fn decode<'b>(&self, bytes: &'b [u8]) -> Result<A::Letter<'b>, Reject> {
        if bytes.len() > self.letter_bytes_max { Err(Reject::Malformed) } else { A::Letter::decode(bytes) }
    }

    fn act_on(&mut self, always: bool, from: PeerId, letter: A::Letter<'_>) -> Result<Result<(), Reject>, Fault> {
        self.act(always, |algorithm, state, data, cx| {
            let read = algorithm.on_letter(state, data, from, letter, cx);
            if read.is_err() {
                cx.outbox.clear();
            }
            read
        })
    }

    fn refuse(&mut self, refusal: Refusal) {
        *self.counters.refusals.entry(refusal).or_default() += 1;
    }

    /// Whether [`Node::outgoing`] has something for a neighbour.
    pub fn has_outgoing(&self, to: PeerId) -> bool {
        let Some(k) = self.group.reach().position(to) else { return false };
        let other = &self.others[k];
        self.next_durable(k).is_some() || !other.letters.is_empty() || other.wants_post && self.mine == MINE
    }

    /// The first durable letter that was not acknowledged, if it may be sent: it is in the store, and its receiver has all before it.
    fn next_durable(&self, k: usize) -> Option<&DurableLetter> {
        let other = &self.others[k];
        other.mail.waiting.first().filter(|letter| letter.turn <= other.stored && !other.is_torn)
    }

    /// What to send to a neighbour next: its durable letters in order, its other letters in order, then the last post, if it has not got
    /// it. The same again until [`Node::answered`] says that it arrived.
    pub fn outgoing(&self, to: PeerId) -> Option<Outgoing> {
        let k = self.group.reach().position(to)?;
        let other = &self.others[k];
        if let Some(DurableLetter { turn, stamped, bytes, .. }) = self.next_durable(k) {
            let question = Question::Durable { stamp: stamped.stamp(), turn: *turn, bytes };
            return Some(Outgoing { number: stamped.number, frame: question.encode() });
        }
        if let Some(letter) = other.letters.front() {
            let (stamp, bytes) = (letter.stamped.stamp(), &letter.bytes);
            return Some(Outgoing { number: stamp.number, frame: Question::Letter { stamp, bytes }.encode() });
        }
        (other.wants_post && self.mine == MINE).then(|| {
            let (stamp, values) = (self.post_stamp.stamp(), Numbers::Plain(self.versions.row(MINE as usize)));
            Outgoing { number: stamp.number, frame: Question::Post(Post { stamp, values }).encode() }
        })
    }

    /// A neighbour answered to the message with this number. Only what must not be lost is sent again; whatever else was refused is gone.
    pub fn answered(&mut self, from: PeerId, number: u64, answer: &[u8]) -> Afterwards {
        let Some(k) = self.group.reach().position(from) else { return Afterwards::Next };
        let taken = match Answer::decode(answer) {
            Ok(Answer::Taken) => true,
            Ok(Answer::Refused(_)) => {
                self.counters.refused_by_others += 1;
                false
            }
            Ok(_) => {
                self.refuse(Refusal::Malformed);
                return Afterwards::Again;
            }
            Err(refusal) => {
                self.refuse(refusal);
                return Afterwards::Again;
            }
        };
        let durable = self.next_durable(k).filter(|letter| letter.stamped.number == number);
        if let Some(turn) = durable.map(|letter| letter.turn) {
            // Whoever has not taken it is sent it again, whatever it says.
            if !taken {
                return Afterwards::Again;
            }
            self.acknowledge(k, turn);
            return Afterwards::Next;
        }
        let other = &mut self.others[k];
        let is_letter = other.letters.front().is_some_and(|letter| letter.stamped.number == number);
        if let Some(letter) = is_letter.then(|| other.letters.pop_front()).flatten() {
            if taken {
                self.count_letter(letter.vectors, &letter.bytes);
            } else {
                self.counters.letters_lost += 1;
            }
        } else if number == self.post_stamp.number && std::mem::take(&mut other.wants_post) && taken {
            self.count_post();
        }
        Afterwards::Next
    }

    fn count_letter(&mut self, vectors: u64, bytes: &[u8]) {
        self.counters.vectors_sent += vectors;
        self.counters.letters_sent += 1;
        self.counters.bytes_sent += bytes.len() as u64;
    }

    fn count_post(&mut self) {
        self.counters.vectors_sent += 1;
        self.counters.bytes_sent += wire::post_bytes(self.versions.row_len());
    }
}
