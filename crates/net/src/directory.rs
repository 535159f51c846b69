//! Where members may be found. Peers tell each other, so whoever knows one member comes to know all.
//!
//! The members themselves, by name and key, are agreed upon with the task. An address is a hint from whoever told it: a connection
//! proves by its key who is at the other end, so a wrong address costs a dial and nothing else.

use crate::frame::{CONTACTS_MAX, Contact, TEXT_BYTES_MAX};
use crate::group::Group;
use libp2p::{Multiaddr, PeerId as Key};
use sottovoce_core::{Coin, PeerId};
use std::collections::HashMap;

/// Addresses kept for one member; of more, the oldest are forgotten.
const ADDRESSES_MAX: usize = 4;

/// Where members may be found.
#[derive(Debug)]
pub struct Directory {
    me: PeerId,
    entries: Vec<Entry>,
    places: HashMap<Key, usize>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    key: Key,
    key_text: String,
    /// The latest last.
    addresses: Vec<(Multiaddr, String)>,
}

impl Directory {
    /// The members in the order of their names, with the addresses that are known from the start.
    pub fn new(group: &Group, keys: &[Key], known: &[(Key, Vec<Multiaddr>)]) -> Self {
        let entry = |(name, &key): (&String, &Key)| Entry {
            name: name.clone(),
            key,
            key_text: key.to_string(),
            addresses: Vec::new(),
        };
        let entries: Vec<Entry> = group.names.iter().zip(keys).map(entry).collect();
        let places = entries.iter().enumerate().map(|(k, entry)| (entry.key, k)).collect();
        let mut directory = Directory { me: group.me, entries, places };
        for (key, addresses) in known {
            addresses.iter().for_each(|address| directory.learn(*key, address.clone()));
        }
        directory
    }

    /// A member's key.
    pub fn key(&self, member: PeerId) -> Option<Key> {
        self.entries.get(member.index()).map(|entry| entry.key)
    }

    /// Whether an address of a member is known.
    pub fn knows(&self, member: PeerId) -> bool {
        self.entries.get(member.index()).is_some_and(|entry| !entry.addresses.is_empty())
    }

    /// A member may be found there. Others are nobody's business.
    pub fn learn(&mut self, key: Key, address: Multiaddr) {
        let Some(&place) = self.places.get(&key) else { return };
        let text = address.to_string();
        let addresses = &mut self.entries[place].addresses;
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        addresses.retain(|(known, _)| *known != address);
        if addresses.len() == ADDRESSES_MAX {
            addresses.remove(0);
        }
        addresses.push((address, text));
    }

    /// What another member told, as far as it is new.
    pub fn take(&mut self, contacts: &[Contact<'_>]) -> Vec<(Key, Multiaddr)> {
        let mut new = Vec::new();
        for contact in contacts {
            let (Ok(key), Ok(address)) = (contact.key.parse::<Key>(), contact.address.parse::<Multiaddr>()) else {
                continue;
            };
            let Some(&place) = self.places.get(&key).filter(|&&place| place != self.me.index()) else { continue };
            if !self.entries[place].addresses.iter().any(|(known, _)| *known == address) {
                self.learn(key, address.clone());
                new.push((key, address));
            }
        }
        new
    }

    /// Some members that are known, at most [`CONTACTS_MAX`], each set of that size equally likely.
    pub fn some(&self, coin: &mut Coin) -> Vec<Contact<'_>> {
        let known: Vec<&Entry> = self.entries.iter().filter(|entry| !entry.addresses.is_empty()).collect();
        let mut chosen: Vec<usize> = Vec::new();
        // Floyd's algorithm, as peers are sampled elsewhere.
        for last in known.len().saturating_sub(CONTACTS_MAX)..known.len() {
            let drawn = coin.below(last + 1);
            chosen.push(if chosen.contains(&drawn) { last } else { drawn });
        }
        let contact = |k: usize| {
            let Entry { name, key_text: key, addresses, .. } = known[k];
            addresses.last().map(|(_, address)| Contact { name, key, address })
        };
        chosen.into_iter().filter_map(contact).collect()
    }
}
