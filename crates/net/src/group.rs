//! Who is there.

use sottovoce_core::{Edge, PeerId, Peers, Role};

/// Who is there, and who this peer is among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The agents' names, in the order of their bytes.
    pub names: Vec<String>,
    /// Their public keys, as text. Whoever has a new key is somebody else.
    pub keys: Vec<String>,
    /// What they are for; where there are none, all are members.
    pub roles: Vec<Role>,
    /// This one.
    pub me: PeerId,
    /// Its neighbours, sorted; `None`: everyone.
    pub neighbours: Option<Vec<Edge>>,
    /// Whom it can write to, sorted, neighbours included; `None`: its neighbours.
    pub reach: Option<Vec<Edge>>,
}

impl Group {
    pub(crate) fn peers(&self) -> Peers<'_> {
        match &self.neighbours {
            Some(edges) => Peers::Listed(edges),
            None => Peers::Complete { me: self.me.0, n: self.names.len() as u32 },
        }
    }

    pub(crate) fn reach(&self) -> Peers<'_> {
        self.reach.as_deref().map_or_else(|| self.peers(), Peers::Listed)
    }

    pub(crate) fn role(&self) -> Role {
        self.roles.get(self.me.index()).copied().unwrap_or_default()
    }

    /// The name of the one at position `k` of those in reach.
    pub(crate) fn name(&self, k: usize) -> &str {
        &self.names[self.reach().edge(k).peer.index()]
    }

    /// Its key.
    pub(crate) fn key(&self, k: usize) -> &str {
        &self.keys[self.reach().edge(k).peer.index()]
    }

    /// Its position among the neighbours, if it is one.
    pub(crate) fn neighbour(&self, k: usize) -> Option<usize> {
        self.peers().position(self.reach().edge(k).peer)
    }

    pub(crate) fn weights(&self) -> Vec<(String, f64)> {
        let name = |edge: Edge| (self.names[edge.peer.index()].clone(), edge.weight);
        self.peers().iter().map(name).collect()
    }
}
