//! Who holds the token next.
//!
//! On the complete graph anyone, the holder included. On any other graph (Cyffers, Bellet and Upadhyay 2024) the holder's neighbours and itself, by
//! Metropolis' rule: it proposes one of them and itself alike, and a neighbour w is taken with probability min(1, (1 + d_u) / (1 + d_w)), else the holder
//! keeps the token for another hop. So
//! ```text
//! W_uw = 1 / (1 + max(d_u, d_w)) for neighbours,   W_uu = 1 - sum_w W_uw >= 1 / (1 + d_u)
//! ```
//! W is symmetric, as the accountants of graphs need it, and nobody passes the token on for sure: on a graph without odd cycles it gets everywhere at
//! every hop too.

use sottovoce_core::{Cx, Graph, PeerId};

/// Between whom a token walks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    /// So many members, each of whom passes it on to anyone.
    Everyone(u32),
    /// Neighbours: the degrees of all members, of which a holder reads its neighbours'.
    Edges(Vec<u32>),
}

impl Way {
    /// Along the edges of a graph.
    pub fn along(graph: &Graph) -> Way {
        Way::Edges((0..graph.agents() as u32).map(|id| graph.peers(PeerId(id)).len() as u32).collect())
    }

    /// Whether it goes along edges.
    pub fn has_edges(&self) -> bool {
        matches!(self, Way::Edges(_))
    }

    /// The next holder.
    pub fn draw(&self, cx: &mut Cx<'_>) -> PeerId {
        let degrees = match self {
            Way::Everyone(members) => return anyone(*members, cx),
            Way::Edges(degrees) => degrees,
        };
        // PRIVACY: the law that the pairs of members are accounted for, exactly: whole numbers alone are compared.
        let own = cx.peers.len();
        let place = cx.secret.below(own + 1);
        if place == own {
            return cx.me;
        }
        let proposed = cx.peers.edge(place).peer;
        let theirs = degrees[proposed.index()] as usize;
        if theirs <= own || cx.secret.below(theirs + 1) <= own { proposed } else { cx.me }
    }
}

/// Any of so many members.
pub(super) fn anyone(members: u32, cx: &mut Cx<'_>) -> PeerId {
    PeerId(cx.secret.below(members as usize) as u32)
}
