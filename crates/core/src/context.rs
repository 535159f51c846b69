//! All that an agent can see or do besides its state and data.

use crate::{Coin, PeerId, Peers, Posts, Time, Wire, wire::LETTER_BYTES_MAX};
use sottovoce_privacy::{Gate, Released};

/// One agent's view of the world during one event, and its way to speak.
pub struct Cx<'a> {
    /// Who this agent is.
    pub me: PeerId,
    /// When it is.
    pub now: Time,
    /// Its neighbours.
    pub peers: Peers<'a>,
    /// Choices that may be replayed.
    pub coin: Coin,
    /// The way out: charges, then releases.
    pub gate: &'a mut Gate,
    /// The latest posts, its own and its neighbours'.
    pub posts: Posts<'a>,
    /// Working memory whose contents do not survive the event; kept by the driver so that no event allocates.
    pub scratch: &'a mut Vec<f64>,
    /// The way to speak; the driver carries it out after the event.
    pub outbox: &'a mut Outbox,
}

/// What one event wants done. It takes nothing but released values. Buffers are kept from event to event.
#[derive(Debug, Default)]
pub struct Outbox {
    posted: bool,
    post: Vec<f64>,
    bytes: Vec<u8>,
    letters: Vec<Sent>,
}

/// A letter in an outbox.
#[derive(Clone, Copy, Debug)]
struct Sent {
    to: PeerId,
    end: usize,
    vectors: u64,
}

impl Outbox {
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

    /// Sends a letter to one peer.
    ///
    /// # Panics
    /// When the letter is longer than [`LETTER_BYTES_MAX`].
    pub fn send<'l, L: Wire<'l>>(&mut self, to: PeerId, letter: Released<L>) {
        let letter = letter.into_inner();
        let start = self.bytes.len();
        letter.encode(&mut self.bytes);
        assert!(self.bytes.len() - start <= LETTER_BYTES_MAX, "a letter of {} bytes", self.bytes.len() - start);
        self.letters.push(Sent { to, end: self.bytes.len(), vectors: letter.vectors() });
    }

    /// The new post, if there is one.
    #[inline]
    pub fn posted(&self) -> Option<&[f64]> {
        self.posted.then_some(&self.post)
    }

    /// The letters in the order they were sent: to whom, how many vectors, the bytes.
    pub fn letters(&self) -> impl Iterator<Item = (PeerId, u64, &[u8])> {
        let mut start = 0;
        self.letters.iter().map(move |sent| {
            let bytes = &self.bytes[start..sent.end];
            start = sent.end;
            (sent.to, sent.vectors, bytes)
        })
    }

    /// Forgets everything, keeps the buffers.
    #[inline]
    pub fn clear(&mut self) {
        self.posted = false;
        self.bytes.clear();
        self.letters.clear();
    }
}
