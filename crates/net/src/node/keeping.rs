//! What a peer keeps: everything goes into the store before it can leave, and comes back from it.

use super::{Fault, LETTERS_MAX, MINE, Node, OWN_NUMBER_MAX, Phase, Waiting};
use crate::disk::Disk;
use crate::frame::Seen;
use crate::store::{DurableLetter, HeardPeer, Mail, Posted, SavedLetter, Stamped, StoredStep};
use sottovoce_core::wire::NUMBER_MAX;
use sottovoce_core::{Algorithm, CannotResume, Delivery, Time, UNHEARD};
use sottovoce_privacy::{Noise, Secrets};
use std::collections::BTreeMap;

impl<A: Algorithm, D: Disk, N: Noise + 'static> Node<'_, A, D, N> {
    /// Puts back what the store holds, except the agent's state.
    pub(super) fn recall(&mut self, step: &StoredStep) -> Result<(), Fault> {
        let len = self.versions.row_len();
        let fits = |values: &[f64], most: f64| values.len() == len && values.iter().all(|value| value.abs() <= most);
        (self.wakes, self.events, self.time) = (step.wakes, step.events, Time(step.time));
        (self.alarm, self.epoch, self.last_number) = (step.alarm.map(Time), step.epoch, step.last_number);
        if let Some(post) = &step.post {
            if !fits(&post.values, OWN_NUMBER_MAX) {
                return Err(CannotResume::Malformed.into());
            }
            self.versions.row_mut(MINE as usize).copy_from_slice(&post.values);
            self.mine = MINE;
            self.post_stamp.clone_from(&post.stamped);
        }
        self.letters.clone_from(&step.letters);
        for k in 0..self.others.len() {
            let (name, key, neighbour) = (self.group.name(k), self.group.key(k), self.group.neighbour(k));
            let other = &mut self.others[k];
            let waiting = step.letters.iter().filter(|letter| letter.to == name);
            // How many vectors are in it was counted when it was written.
            let waiting = waiting.map(|letter| Waiting {
                stamped: letter.stamped.clone(),
                vectors: 0,
                bytes: letter.bytes.clone(),
            });
            other.letters = waiting.collect();
            other.wants_post = step.post.is_some() && neighbour.is_some();
            let mail = step.mail.get(name).filter(|mail| mail.key == key);
            other.mail = mail.cloned().unwrap_or_else(|| Mail { key: key.to_owned(), ..Mail::default() });
            other.stored = other.mail.last;
            let Some(heard) = step.heard.get(name).filter(|heard| heard.key == key) else { continue };
            other.points = heard.points;
            other.seen.letter.clone_from(&heard.letter);
            (other.seen.turn, other.seen.durable) = (heard.turn, heard.durable.clone());
            let post = heard.post.as_ref().filter(|(_, values)| fits(values, NUMBER_MAX));
            if let (Some((evidence, values)), Some(at)) = (post, neighbour) {
                other.seen.post.clone_from(evidence);
                self.versions.row_mut(MINE as usize + 1 + at).copy_from_slice(values);
                self.seen[at] = MINE + 1 + at as u32;
            }
        }
        Ok(())
    }

    /// Commits what the outbox holds, then queues it.
    pub(super) fn finish(&mut self, always: bool, charged: bool) -> Result<(), Fault> {
        let has_letters = self.outbox.letters().next().is_some();
        let posted = self.outbox.posted().filter(|post| {
            // An exact post that says what the last one said need not be said again. A private one was charged.
            let same = || self.mine == MINE && bits_equal(post, self.versions.row(MINE as usize));
            !(self.gate.is_without_privacy() && same())
        });
        let spoke = posted.is_some() || has_letters || self.outbox.alarm().is_some();
        if !always && !spoke && (self.gate.is_without_privacy() || !charged) && !self.is_first() {
            return Ok(());
        }
        if let Some(at) = self.outbox.alarm() {
            self.alarm = Some(at);
            self.alarms_set += 1;
        }
        let (mut last_number, epoch) = (self.last_number, self.epoch);
        let entropy = &mut self.entropy;
        let mut stamp = || {
            last_number += 1;
            let salt = Secrets::of(entropy).bytes();
            Stamped { epoch, number: last_number, salt, signature: Vec::new() }
        };
        let post = posted.map(|values| Posted { stamped: stamp(), values: values.to_vec() });
        let mut letters = Vec::new();
        self.letters.clear();
        for letter in self.outbox.letters() {
            let (stamped, vectors, bytes) = (stamp(), letter.vectors, letter.bytes.to_vec());
            let position = self.group.reach().position(letter.to);
            match (letter.delivery, position) {
                (Delivery::Lossy, _) => {
                    let to = self.group.names[letter.to.index()].clone();
                    self.letters.push(SavedLetter { to, stamped: stamped.clone(), bytes: bytes.clone() });
                    letters.extend(position.map(|k| (k, Waiting { stamped, vectors, bytes })));
                }
                (Delivery::Durable, Some(k)) => {
                    let mail = &mut self.others[k].mail;
                    mail.last += 1;
                    mail.waiting.push(DurableLetter { turn: mail.last, stamped, vectors, bytes });
                    self.mail_news.insert(k);
                }
                (Delivery::Durable, None) => panic!("a durable letter to {:?}, which is out of reach", letter.to),
            }
        }
        self.last_number = last_number;
        let step = self.step(post.as_ref());
        self.commit(&step)?;
        if let Some(post) = post {
            self.versions.row_mut(MINE as usize).copy_from_slice(&post.values);
            (self.mine, self.post_stamp) = (MINE, post.stamped);
            for (k, other) in self.others.iter_mut().enumerate() {
                other.wants_post = self.group.neighbour(k).is_some();
            }
        }
        for (k, letter) in letters {
            let queue = &mut self.others[k].letters;
            if queue.len() == LETTERS_MAX {
                queue.pop_front();
                self.counters.letters_lost += 1;
            }
            queue.push_back(letter);
        }
        Ok(())
    }

    /// Whether nothing has been committed yet.
    fn is_first(&self) -> bool {
        self.events == 0 && self.last_number == 0
    }

    fn step(&self, post: Option<&Posted>) -> StoredStep {
        let mut state = Vec::new();
        if let Phase::Awake(agent) = &self.phase {
            self.algorithm.save(agent, &mut state);
        }
        let own = || Posted { stamped: self.post_stamp.clone(), values: self.versions.row(MINE as usize).to_vec() };
        let heard = |&k: &usize| {
            let Seen { post, letter, turn, durable } = self.others[k].seen.clone();
            let at = self.group.neighbour(k).filter(|&at| self.seen[at] != UNHEARD);
            let post = at.map(|at| (post, self.versions.row(self.seen[at] as usize).to_vec()));
            let key = self.group.key(k).to_owned();
            (
                self.group.name(k).to_owned(),
                HeardPeer { key, post, letter, turn, durable, points: self.others[k].points },
            )
        };
        let mail = |&k: &usize| {
            let (Mail { last, acknowledged, waiting, .. }, stored) = (&self.others[k].mail, self.others[k].stored);
            let waiting = waiting.iter().filter(|letter| letter.turn > stored).cloned().collect();
            let (key, last, acknowledged) = (self.group.key(k).to_owned(), *last, *acknowledged);
            (self.group.name(k).to_owned(), Mail { key, last, acknowledged, waiting })
        };
        StoredStep {
            wakes: self.wakes,
            events: self.events,
            time: self.time.0,
            alarm: self.alarm.map(|at| at.0),
            epoch: self.epoch,
            last_number: self.last_number,
            ledger: self.gate.ledger().clone(),
            post: post.cloned().or_else(|| (self.mine == MINE).then(own)),
            letters: self.letters.clone(),
            mail: self.mail_news.iter().map(mail).collect::<BTreeMap<_, _>>(),
            state,
            neighbours: self.group.weights(),
            heard: self.news.iter().map(heard).collect(),
        }
    }

    fn commit(&mut self, step: &StoredStep) -> Result<(), Fault> {
        if let Err(error) = self.store.commit(step) {
            self.phase = Phase::Failed;
            return Err(error.into());
        }
        self.news.clear();
        for k in std::mem::take(&mut self.mail_news) {
            self.others[k].stored = self.others[k].mail.last;
        }
        Ok(())
    }

    /// Makes safe what was heard since the last record, if anything was. For quiet moments, and before a stop.
    pub fn save(&mut self) -> Result<(), Fault> {
        match self.phase {
            Phase::Failed => Err(Fault::Failed),
            Phase::Awake(_) if !self.news.is_empty() || !self.mail_news.is_empty() => {
                let step = self.step(None);
                self.commit(&step)
            }
            _ => Ok(()),
        }
    }
}

fn bits_equal(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
