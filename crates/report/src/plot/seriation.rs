//! In which order to write the agents of a graph, so that those with heavy edges between them stand side by side.
//!
//! Clusters are merged, always the two with the largest mean weight between them (average linkage), and written one after the
//! other, turned so that the ends that meet are those with the heavier edges. Pairs of equal weight are merged in the order of
//! their first agents: the same graph, the same order.

/// An order of `n` nodes for edges `(a, b, weight)` between them. O(n^2) memory and O(n^3) time: a few hundred nodes.
pub fn seriation(n: usize, edges: &[(u32, u32, f64)]) -> Vec<usize> {
    let mut weights = vec![0.0; n * n];
    for &(a, b, weight) in edges {
        let (a, b) = (a as usize, b as usize);
        if a != b && a < n && b < n && weight.is_finite() {
            weights[a * n + b] = weight;
            weights[b * n + a] = weight;
        }
    }
    let single = weights.clone();
    let mut clusters: Vec<Vec<usize>> = (0..n).map(|k| vec![k]).collect();
    let mut alive: Vec<usize> = (0..n).collect();
    while alive.len() > 1 {
        let mut best = (alive[0], alive[1]);
        for (k, &a) in alive.iter().enumerate() {
            for &b in &alive[k + 1..] {
                if weights[a * n + b] > weights[best.0 * n + best.1] {
                    best = (a, b);
                }
            }
        }
        let (a, b) = best;
        let (size_a, size_b) = (clusters[a].len() as f64, clusters[b].len() as f64);
        for &other in alive.iter().filter(|&&other| other != a && other != b) {
            let mean = (size_a * weights[a * n + other] + size_b * weights[b * n + other]) / (size_a + size_b);
            weights[a * n + other] = mean;
            weights[other * n + a] = mean;
        }
        let tail = std::mem::take(&mut clusters[b]);
        join(&mut clusters[a], tail, |x, y| single[x * n + y]);
        alive.retain(|&k| k != b);
    }
    alive.first().map_or(Vec::new(), |&last| std::mem::take(&mut clusters[last]))
}

/// Appends a cluster to another, both turned so that the ends with the heaviest edge meet.
fn join(head: &mut Vec<usize>, mut tail: Vec<usize>, weight: impl Fn(usize, usize) -> f64) {
    let ends = |list: &[usize]| [list[0], list[list.len() - 1]];
    let ([head_first, head_last], [tail_first, tail_last]) = (ends(head), ends(&tail));
    // As they are; the head turned; the tail turned; both.
    let meetings = [
        weight(head_last, tail_first),
        weight(head_first, tail_first),
        weight(head_last, tail_last),
        weight(head_first, tail_last),
    ];
    let best = (1..4).fold(0, |best, k| if meetings[k] > meetings[best] { k } else { best });
    if best % 2 == 1 {
        head.reverse();
    }
    if best >= 2 {
        tail.reverse();
    }
    head.append(&mut tail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_stand_together_whatever_their_numbers() {
        // Seven agents in two groups, odd and even, heavy within and light between.
        let edges: Vec<(u32, u32, f64)> = (0..7u32)
            .flat_map(|a| (a + 1..7).map(move |b| (a, b, if (a + b) % 2 == 0 { 1.0 + f64::from(a) } else { 0.1 })))
            .collect();
        let order = seriation(7, &edges);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
        let changes = order.windows(2).filter(|pair| (pair[0] + pair[1]) % 2 == 1).count();
        assert_eq!(changes, 1, "{order:?}");
    }

    #[test]
    fn a_path_is_written_from_end_to_end() {
        let edges = [(3, 0, 1.0), (0, 4, 1.0), (4, 1, 1.0), (1, 2, 1.0)];
        let order = seriation(5, &edges);
        let path = [3, 0, 4, 1, 2];
        let backwards: Vec<usize> = path.iter().rev().copied().collect();
        assert!(order == path || order == backwards, "{order:?}");
        assert_eq!((seriation(0, &[]), seriation(1, &[]), seriation(2, &[])), (vec![], vec![0], vec![0, 1]));
    }
}
