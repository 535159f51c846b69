//! An agent's links by increasing peer, laid out for an agent that meets new peers all the time.
//!
//! With many agents each of these lists comes from memory, and what a letter costs is the lines of the cache that it touches. So the
//! sorted list has eight bytes for each link, a peer and a place; what is known of the link lies at that place, in no order. A new
//! link moves half of the short list and is appended to the long one.
//!
//! Peers are drawn uniformly ([`sottovoce_core::Peers::sample`]), so they lie about evenly below the highest. A search begins where
//! a peer would be if they lay exactly so, in a window that widens until it holds the place: two or three lines side by
//! side, where halving takes another one for each doubling of the list. Peers that lie otherwise are found as surely, with a few
//! more steps.

use serde::{Deserialize, Serialize, Serializer};
use sottovoce_core::PeerId;
use std::hint::black_box;

/// How far a search first looks to either side: as many entries as a line of the cache holds.
const WINDOW: usize = 8;

/// A pair of positive weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Link {
    pub peer: PeerId,
    pub weight: f64,
    /// The keeper's clock.
    pub as_of: u64,
}

/// Where a peer's link is in the order of peers, or would be.
pub(super) type Position = Result<usize, usize>;

/// Links, sorted by peer. Saved as a plain list of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<Link>")]
pub(super) struct SortedLinks {
    order: Vec<Entry>,
    /// Weight and clock, at the places that `order` names.
    known: Vec<(f64, u64)>,
    /// No peer here is above it. It decides where a search begins, and nothing else.
    highest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    peer: PeerId,
    place: u32,
}

impl SortedLinks {
    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The link at position `k < len()` in the order of peers.
    pub fn at(&self, k: usize) -> Link {
        let Entry { peer, place } = self.order[k];
        let (weight, as_of) = self.known[place as usize];
        Link { peer, weight, as_of }
    }

    /// By increasing peer.
    pub fn iter(&self) -> impl Iterator<Item = Link> + Clone + '_ {
        (0..self.len()).map(|k| self.at(k))
    }

    pub fn find(&self, peer: PeerId) -> Position {
        let below = |entry: &Entry| entry.peer < peer;
        let (guess, mut reach) = (self.guess(peer), WINDOW);
        let (from, to) = loop {
            let (from, to) = (guess.saturating_sub(reach), self.len().min(guess + reach));
            let holds = (from == 0 || below(&self.order[from - 1])) && !self.order.get(to).is_some_and(below);
            if holds {
                break (from, to);
            }
            reach *= 2;
        };
        let at = from + self.order[from..to].partition_point(below);
        if self.order.get(at).is_some_and(|entry| entry.peer == peer) { Ok(at) } else { Err(at) }
    }

    /// Reads a word of what a search for this peer, and a new link with it, will need.
    pub fn anticipate(&self, peer: PeerId) {
        let guess = self.guess(peer);
        for at in [guess.saturating_sub(WINDOW), guess, guess + WINDOW] {
            black_box(self.order.get(at).map(|entry| entry.peer));
        }
        black_box(self.known.last().copied());
    }

    /// The position of a peer among peers that lie evenly.
    fn guess(&self, peer: PeerId) -> usize {
        let position = u64::from(peer.0) * self.len() as u64 / (u64::from(self.highest) + 1);
        self.len().min(position as usize)
    }

    /// Takes in what is now known of a link, where [`SortedLinks::find`] found it. A weight of zero drops it.
    pub fn store(&mut self, position: Position, Link { peer, weight, as_of }: Link) {
        match position {
            Ok(at) if weight > 0.0 => self.known[self.order[at].place as usize] = (weight, as_of),
            Ok(at) => self.remove(at),
            Err(at) if weight > 0.0 => {
                self.order.insert(at, Entry { peer, place: self.known.len() as u32 });
                self.known.push((weight, as_of));
                self.highest = self.highest.max(peer.0);
            }
            Err(_) => {}
        }
    }

    /// What lay at the last place moves to the one that becomes free.
    fn remove(&mut self, at: usize) {
        let Entry { place, .. } = self.order.remove(at);
        self.known.swap_remove(place as usize);
        let last = self.known.len() as u32;
        if let Some(moved) = self.order.iter_mut().find(|entry| entry.place == last) {
            moved.place = place;
        }
    }
}

impl From<Vec<Link>> for SortedLinks {
    /// As they are: whoever reads them from bytes looks whether they are sorted.
    fn from(links: Vec<Link>) -> Self {
        SortedLinks {
            order: (0..).zip(&links).map(|(place, link)| Entry { peer: link.peer, place }).collect(),
            known: links.iter().map(|link| (link.weight, link.as_of)).collect(),
            highest: links.iter().map(|link| link.peer.0).max().unwrap_or_default(),
        }
    }
}

impl Serialize for SortedLinks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved;
    use proptest::prelude::*;
    use sottovoce_core::{Coin, Peers};
    use std::collections::BTreeMap;

    proptest! {
        /// Evenly or in heaps, among them the highest number there is; added, changed and dropped.
        #[test]
        fn links_are_found_however_their_peers_lie(
            changes in prop::collection::vec((0u32..300, 0u32..4, 0u64..9), 0..600),
            spread in prop::sample::select(vec![0u32, 1, 2]),
        ) {
            let peer_of = |k: u32| PeerId(match spread {
                0 => 1000 * k,
                1 => k * k * k,
                _ => u32::MAX - (k % 150) * (k / 150 * 1_000_000 + 1),
            });
            let (mut links, mut expected) = (SortedLinks::default(), BTreeMap::new());
            for (k, weight, as_of) in changes {
                let (peer, weight) = (peer_of(k), f64::from(weight));
                let position = links.find(peer);
                prop_assert_eq!(position.is_ok(), expected.contains_key(&peer));
                links.store(position, Link { peer, weight, as_of });
                if weight > 0.0 {
                    expected.insert(peer, Link { peer, weight, as_of });
                } else {
                    expected.remove(&peer);
                }
            }
            let mut bytes = Vec::new();
            saved::write(&links, &mut bytes);
            let back: SortedLinks = saved::read(&bytes).expect("own bytes");
            for links in [links, back] {
                prop_assert_eq!(links.is_empty(), expected.is_empty());
                prop_assert!(links.iter().eq(expected.values().copied()));
                for (k, link) in links.iter().enumerate() {
                    prop_assert_eq!(links.find(link.peer), Ok(k));
                    prop_assert_eq!(links.at(k), link);
                }
            }
        }
    }

    /// What a search costs rests on it: the place of one of two hundred peers, drawn from a hundred thousand, is off by seven at most,
    /// in the mean of squares.
    #[test]
    fn peers_that_were_drawn_lie_near_where_they_are_looked_for() {
        let mut drawn = Vec::new();
        Peers::Complete { me: 0, n: 100_000 }.sample(200, &mut Coin::new(1, 0, 0), &mut drawn);
        let mut links = SortedLinks::default();
        for &peer in &drawn {
            links.store(links.find(peer), Link { peer, weight: 1.0, as_of: 0 });
        }
        let off = |peer: PeerId| links.guess(peer).abs_diff(links.find(peer).expect("it is there")) as f64;
        let mean = drawn.iter().map(|peer| off(*peer) * off(*peer)).sum::<f64>() / 200.0;
        assert!(mean < 49.0, "{mean}");
    }
}
