//! A spanning tree and the flow of the thesis's bound through it (spec 04, section 3.1).
//!
//! A unit that sits at the root is spread evenly over all members: the edge to a child whose subtree has s of n members carries s / n, and
//! ```text
//! theta_tree = 1 / (n sigma_eta^2) + tau / sigma_Delta^2,   tau = sum over edges of (s / n)^2
//! ```
//! is never below [`HonestGraph::theta`], which is the least over all flows. Breadth first; from the deepest level up, members by decreasing
//! subtrees choose the parent whose subtree is the smallest so far.

use super::HonestGraph;

/// A tree over all members.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanningTree {
    members: usize,
    tau: f64,
}

impl SpanningTree {
    /// A breadth-first tree from this root, with subtrees of even sizes; none where not everyone can be reached.
    pub fn balanced(graph: &HonestGraph, root: usize) -> Option<SpanningTree> {
        let n = graph.members();
        let mut depth = vec![usize::MAX; n];
        depth[root] = 0;
        let mut levels = vec![vec![root]];
        while let Some(level) = levels.last().filter(|level| !level.is_empty()) {
            let mut next = Vec::new();
            for &member in level {
                for &other in graph.neighbours(member) {
                    if depth[other as usize] == usize::MAX {
                        depth[other as usize] = levels.len();
                        next.push(other as usize);
                    }
                }
            }
            levels.push(next);
        }
        if depth.contains(&usize::MAX) {
            return None;
        }
        let mut sizes = vec![1u64; n];
        let mut squares = 0.0;
        for level in levels.iter_mut().skip(1).rev() {
            level.sort_by_key(|&member| (std::cmp::Reverse(sizes[member]), member));
            for &member in &*level {
                let parents = graph.neighbours(member).iter().map(|&other| other as usize);
                let above = parents.filter(|&other| depth[other] + 1 == depth[member]);
                let parent = above.min_by_key(|&other| (sizes[other], other))?;
                sizes[parent] += sizes[member];
                squares += (sizes[member] * sizes[member]) as f64;
            }
        }
        Some(SpanningTree { members: n, tau: squares / (n as f64 * n as f64) })
    }

    /// tau.
    pub fn tau(&self) -> f64 {
        self.tau
    }

    /// 1 / (n sigma_eta^2) + tau / sigma_Delta^2.
    pub fn theta(&self, noise_std: f64, mask_std: f64) -> f64 {
        1.0 / (self.members as f64 * noise_std * noise_std) + self.tau / (mask_std * mask_std)
    }
}
