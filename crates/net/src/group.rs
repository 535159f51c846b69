//! Who is there.

use sottovoce_core::{Edge, PeerId, Peers};

/// Who is there, and who this peer is among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The agents' names, in the order of their bytes.
    pub names: Vec<String>,
    /// Their public keys, as text. Whoever has a new key is somebody else.
    pub keys: Vec<String>,
    /// This one.
    pub me: PeerId,
    /// Whom it can reach: listed neighbours, sorted; `None`: everyone.
    pub neighbours: Option<Vec<Edge>>,
}

impl Group {
    pub(crate) fn peers(&self) -> Peers<'_> {
        match &self.neighbours {
            Some(edges) => Peers::Listed(edges),
            None => Peers::Complete { me: self.me.0, n: self.names.len() as u32 },
        }
    }

    pub(crate) fn name(&self, k: usize) -> &str {
        &self.names[self.peers().edge(k).peer.index()]
    }

    pub(crate) fn key(&self, k: usize) -> &str {
        &self.keys[self.peers().edge(k).peer.index()]
    }

    pub(crate) fn weights(&self) -> Vec<(String, f64)> {
        let name = |edge: Edge| (self.names[edge.peer.index()].clone(), edge.weight);
        self.peers().iter().map(name).collect()
    }
}
