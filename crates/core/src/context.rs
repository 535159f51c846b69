//! All that an agent can see or do besides its state and data.

use crate::{Coin, PeerId, Peers, Posts, Reject, Role, Time, Wire, wire::LETTER_BYTES_MAX};
use sottovoce_privacy::{Gate, Leaves, Released, Secrets};
use thiserror::Error;

/// One agent's view of the world during one event, and its way to speak.
pub struct Cx<'a> {
    /// Who this agent is.
    pub me: PeerId,
    /// What it is for, as the task says.
    pub role: Role,
    /// When it is.
    pub now: Time,
    /// Its neighbours, with weights: those that read its posts, and whose posts it reads.
    pub peers: Peers<'a>,
    /// Whom it can write to: its neighbours at least. Weights mean nothing here.
    pub reach: Peers<'a>,
    /// Choices that may be replayed.
    pub coin: Coin,
    /// Bits that nobody else may know: for keys, pads and salts, never for noise, which is the gate's.
    pub secret: Secrets<'a>,
    /// The way out: charges, then releases.
    pub gate: &'a mut Gate,
    /// The latest posts, its own and its neighbours'.
    pub posts: Posts<'a>,
    /// Working memory whose contents do not survive the event; kept by the driver so that no event allocates.
    pub scratch: &'a mut Vec<f64>,
    /// The way to speak; the driver carries it out after the event.
    pub outbox: &'a mut Outbox,
}

/// Durable letters that may wait for one peer, this event's included. A peer that is gone for long costs so many letters and no more.
pub const DURABLE_WAITING_MAX: usize = 64;

/// So many durable letters wait for a peer that another one is refused. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{DURABLE_WAITING_MAX} durable letters wait for this peer already; nothing was sent")]
pub struct Full;

impl From<Full> for Reject {
    fn from(_: Full) -> Self {
        Reject::Full
    }
}

/// Whether a letter may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It may be lost, doubled and overtaken.
    Lossy,
    /// It is kept by its sender until its receiver has it, and what it did there, on its own disk. It has its effect once, and after all
    /// durable letters that were sent to the same peer before it; when is for the network to say, and never where the peer is gone for good.
    Durable,
}

/// What one event wants done. It takes nothing but what may leave. Buffers are kept from event to event.
#[derive(Debug)]
pub struct Outbox {
    posted: bool,
    post: Vec<f64>,
    bytes: Vec<u8>,
    letters: Vec<Sent>,
    letter_bytes_max: usize,
    /// Durable letters that wait, by peer, in increasing order; nobody else has any. This event's are added as they are sent.
    waiting: Vec<(PeerId, usize)>,
    alarm: Option<Time>,
}

/// A letter in an outbox.
#[derive(Clone, Copy, Debug)]
struct Sent {
    to: PeerId,
    start: usize,
    end: usize,
    vectors: u64,
    delivery: Delivery,
}

/// A letter, as a driver takes it out of an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingLetter<'o> {
    /// To whom.
    pub to: PeerId,
    /// Whether it may be lost.
    pub delivery: Delivery,
    /// How many model-sized vectors it carries.
    pub vectors: u64,
    /// As it is sent.
    pub bytes: &'o [u8],
}

impl Default for Outbox {
    fn default() -> Self {
        Outbox::new(LETTER_BYTES_MAX)
    }
}

impl Outbox {
    /// For letters of at most so many bytes ([`Algorithm::letter_bytes_max`](crate::Algorithm::letter_bytes_max)).
    pub fn new(letter_bytes_max: usize) -> Self {
        let letter_bytes_max = letter_bytes_max.min(LETTER_BYTES_MAX);
        let (post, bytes, letters, waiting) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Outbox { posted: false, post, bytes, letters, letter_bytes_max, waiting, alarm: None }
    }

    /// Replaces this agent's post, for all neighbours.
    ///
    /// # Panics
    /// When a number is not finite: an algorithm must never come to that.
    pub fn post(&mut self, post: Released<&[f64]>) {
        let post = post.into_inner();
        let finite = post.iter().fold(true, |finite, value| finite & value.is_finite());
        assert!(finite, "a model must stay finite");
        self.posted = true;
        self.post.clear();
        self.post.extend_from_slice(post);
    }

    /// Sends a letter to one peer; it may be lost.
    ///
    /// # Panics
    /// When the letter is longer than the algorithm says its letters are.
    pub fn send<'l, L: Wire<'l>>(&mut self, to: PeerId, letter: impl Leaves<L>) {
        self.enclose(to, Delivery::Lossy, &letter.into_inner());
    }

    /// Sends a letter to one peer that is neither lost nor doubled nor overtaken by another durable one ([`Delivery::Durable`]).
    ///
    /// # Errors
    /// [`Full`], when too many wait for this peer: it has been gone for long. The rest of the event stands.
    ///
    /// # Panics
    /// When the letter is longer than the algorithm says its letters are.
    #[inline]
    pub fn send_durable<'l, L: Wire<'l>>(&mut self, to: PeerId, letter: impl Leaves<L>) -> Result<(), Full> {
        self.take_room(to)?;
        self.enclose(to, Delivery::Durable, &letter.into_inner());
        Ok(())
    }

    /// Sends the same letter to each of these peers, as [`Outbox::send_durable`] would one after another, and writes it once. Whoever has no room
    /// for it gets none.
    ///
    /// # Panics
    /// When the letter is longer than the algorithm says its letters are.
    pub fn send_durable_to_all<'l, L: Wire<'l>>(
        &mut self,
        to: impl IntoIterator<Item = PeerId>,
        letter: impl Leaves<L>,
    ) {
        let letter = letter.into_inner();
        let mut written = None;
        for to in to {
            if self.take_room(to).is_err() {
                continue;
            }
            match written {
                Some(sent) => self.letters.push(Sent { to, ..sent }),
                None => {
                    self.enclose(to, Delivery::Durable, &letter);
                    written = self.letters.last().copied();
                }
            }
        }
    }

    /// One more durable letter waits for this peer, if it may.
    #[inline]
    fn take_room(&mut self, to: PeerId) -> Result<(), Full> {
        // Whoever writes to many does so in their order.
        let known = match self.waiting.last() {
            Some((last, _)) if *last >= to => self.waiting.binary_search_by_key(&to, |(peer, _)| *peer),
            _ => Err(self.waiting.len()),
        };
        match known {
            Err(place) if place == self.waiting.len() => self.waiting.push((to, 1)),
            Err(place) => self.waiting.insert(place, (to, 1)),
            Ok(known) if self.waiting[known].1 >= DURABLE_WAITING_MAX => return Err(Full),
            Ok(known) => self.waiting[known].1 += 1,
        }
        Ok(())
    }

    #[inline]
    fn enclose<'l, L: Wire<'l>>(&mut self, to: PeerId, delivery: Delivery, letter: &L) {
        let start = self.bytes.len();
        letter.encode(&mut self.bytes);
        let (length, most) = (self.bytes.len() - start, self.letter_bytes_max);
        assert!(length <= most, "a letter of {length} bytes, where the algorithm's have at most {most}");
        self.letters.push(Sent { to, start, end: self.bytes.len(), vectors: letter.vectors(), delivery });
    }

    /// Wakes this agent at `at`, besides its clock. An agent has one alarm: this one replaces any that was set before. It outlives a
    /// crash. A time that is not after now is the next moment.
    pub fn wake_at(&mut self, at: Time) {
        self.alarm = Some(at);
    }

    /// The new post, if there is one.
    #[inline]
    pub fn posted(&self) -> Option<&[f64]> {
        self.posted.then_some(&self.post)
    }

    /// The letters in the order they were sent.
    #[inline]
    pub fn letters(&self) -> impl Iterator<Item = OutgoingLetter<'_>> {
        self.letters.iter().map(|sent| OutgoingLetter {
            to: sent.to,
            delivery: sent.delivery,
            vectors: sent.vectors,
            bytes: &self.bytes[sent.start..sent.end],
        })
    }

    /// When the agent wants to be woken, if it said so in this event.
    #[inline]
    pub fn alarm(&self) -> Option<Time> {
        self.alarm
    }

    /// Forgets everything, keeps the buffers.
    #[inline]
    pub fn clear(&mut self) {
        self.posted = false;
        self.bytes.clear();
        self.letters.clear();
        self.waiting.clear();
        self.alarm = None;
    }

    /// Says how many durable letters of this agent wait, by peer. For drivers, after [`Outbox::clear`] and before an event.
    pub fn set_waiting(&mut self, waiting: impl Iterator<Item = (PeerId, usize)>) {
        self.waiting.clear();
        self.waiting.extend(waiting);
        self.waiting.sort_unstable_by_key(|(peer, _)| *peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many bytes.
    struct Long(usize);

    impl Wire<'_> for Long {
        fn encode(&self, out: &mut Vec<u8>) {
            out.resize(out.len() + self.0, 0);
        }

        fn decode(bytes: &[u8]) -> Result<Self, Reject> {
            Ok(Long(bytes.len()))
        }

        fn vectors(&self) -> u64 {
            1
        }
    }

    fn letter(bytes: usize) -> Released<Long> {
        Gate::without_privacy().reveal(Long(bytes)).expect("no plan")
    }

    #[test]
    fn a_letter_of_the_longest_length_may_be_sent() {
        let mut outbox = Outbox::new(10);
        outbox.send(PeerId(1), letter(10));
        outbox.send_durable(PeerId(2), letter(10)).expect("room");
        let sent: Vec<_> = outbox.letters().map(|letter| (letter.to.0, letter.delivery, letter.bytes.len())).collect();
        assert_eq!(sent, [(1, Delivery::Lossy, 10), (2, Delivery::Durable, 10)]);
    }

    #[test]
    #[should_panic(expected = "a letter of 11 bytes, where the algorithm's have at most 10")]
    fn a_letter_above_its_bound_is_refused_where_it_is_made() {
        Outbox::new(10).send(PeerId(1), letter(11));
    }

    #[test]
    #[should_panic(expected = "a letter of 11 bytes")]
    fn a_durable_letter_above_its_bound_is_refused_where_it_is_made() {
        let _ = Outbox::new(10).send_durable(PeerId(1), letter(11));
    }

    #[test]
    fn a_letter_to_all_is_for_each_what_a_letter_of_its_own_would_be() {
        let full = |outbox: &mut Outbox| outbox.set_waiting([(PeerId(4), DURABLE_WAITING_MAX)].into_iter());
        let (mut one, mut many) = (Outbox::new(10), Outbox::new(10));
        [&mut one, &mut many].into_iter().for_each(full);
        for to in [3, 4, 1, 3] {
            let _ = one.send_durable(PeerId(to), letter(7));
        }
        let _ = one.send_durable(PeerId(2), letter(2));
        many.send_durable_to_all([3, 4, 1, 3].map(PeerId), letter(7));
        many.send_durable_to_all([PeerId(2)], letter(2));
        assert_eq!(one.letters().collect::<Vec<_>>(), many.letters().collect::<Vec<_>>());
        assert_eq!((one.waiting, many.letters.len()), (many.waiting, 4), "three are written, and one has no room");
        assert_eq!(many.bytes.len(), 9, "each letter is written once");
    }

    #[test]
    fn what_waits_for_one_peer_is_bounded_and_others_do_not_count() {
        let mut outbox = Outbox::new(10);
        outbox.set_waiting([(PeerId(1), DURABLE_WAITING_MAX - 1)].into_iter());
        assert_eq!(outbox.send_durable(PeerId(1), letter(1)), Ok(()));
        assert_eq!(outbox.send_durable(PeerId(1), letter(1)), Err(Full));
        assert_eq!(outbox.send_durable(PeerId(2), letter(1)), Ok(()));
        assert_eq!(outbox.letters().count(), 2);
        outbox.clear();
        assert_eq!(outbox.send_durable(PeerId(1), letter(1)), Ok(()));
    }
}
