//! Where to draw the agents of a graph: a spectral start, then forces that pull neighbours together and push all apart.
//!
//! Forces of Fruchterman and Reingold (1991), with the pull of an edge divided by the geometric mean of the degrees of
//! its ends, so that dense graphs do not collapse. Only additions, products, quotients and roots that do not
//! depend on the machine: the same picture everywhere.

/// Steps of the spectral start: as many as this many products allow. A long ring needs thousands, and has few edges.
const POWER_PRODUCTS: usize = 20_000_000;
const POWER_STEPS: std::ops::RangeInclusive<usize> = 60..=20_000;
/// Steps of the forces; their reach shrinks to nothing over them.
const FORCE_STEPS: usize = 300;

/// Positions of `n` nodes in the unit square, for edges `(a, b, weight)` between them. O(n^2) per step: a few hundred
/// nodes. Edges that name no node, and weights that are not positive and finite, are ignored.
pub fn layout(n: usize, edges: &[(u32, u32, f64)]) -> Vec<(f64, f64)> {
    if n == 0 {
        return Vec::new();
    }
    let (edges, degree) = normalized(n, edges);
    let mut at = spectral(&degree, &edges);
    forces(&mut at, &edges);
    into_unit_square(&mut at);
    at
}

/// A connected-looking part of a large graph: nodes reached breadth first from a node that `seed` chooses, and from
/// another one where a component ends, up to `most` nodes. Returns their old numbers in ascending order.
pub fn neighbourhood(n: usize, edges: &[(u32, u32, f64)], most: usize, seed: u64) -> Vec<u32> {
    let mut starts = vec![0usize; n + 1];
    let valid = |&&(a, b, _): &&(u32, u32, f64)| a != b && (a as usize) < n && (b as usize) < n;
    for &(a, b, _) in edges.iter().filter(valid) {
        starts[a as usize + 1] += 1;
        starts[b as usize + 1] += 1;
    }
    for i in 0..n {
        starts[i + 1] += starts[i];
    }
    let mut fill = starts.clone();
    let mut ends = vec![0u32; starts[n]];
    for &(a, b, _) in edges.iter().filter(valid) {
        for (from, to) in [(a, b), (b, a)] {
            ends[fill[from as usize]] = to;
            fill[from as usize] += 1;
        }
    }
    let mut dice = Dice(seed);
    let mut seen = vec![false; n];
    let mut found: Vec<u32> = Vec::new();
    let mut next = 0;
    while found.len() < most.min(n) {
        if next == found.len() {
            let mut root = (dice.unit() * n as f64) as usize % n;
            while seen[root] {
                root = (root + 1) % n;
            }
            seen[root] = true;
            found.push(root as u32);
            continue;
        }
        let here = found[next] as usize;
        next += 1;
        for &to in &ends[starts[here]..starts[here + 1]] {
            if !seen[to as usize] && found.len() < most {
                seen[to as usize] = true;
                found.push(to);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Edges with weight / sqrt(degree of a * degree of b): the normalized adjacency matrix; and the degrees.
fn normalized(n: usize, edges: &[(u32, u32, f64)]) -> (Vec<(usize, usize, f64)>, Vec<f64>) {
    let kept = Vec::from_iter(edges.iter().filter_map(|&(a, b, w)| {
        let (a, b) = (a as usize, b as usize);
        (a != b && a < n && b < n && w > 0.0 && w.is_finite()).then_some((a, b, w))
    }));
    let mut degree = vec![0.0; n];
    for &(a, b, w) in &kept {
        degree[a] += w;
        degree[b] += w;
    }
    // A product of two degrees could overflow; the product of their roots cannot.
    let scaled = kept.into_iter().map(|(a, b, w)| (a, b, w / (f64::sqrt(degree[a]) * f64::sqrt(degree[b])))).collect();
    (scaled, degree)
}

/// The second and third eigenvectors of the normalized adjacency, by power iteration on (I + A) / 2 from fixed dice.
fn spectral(degree: &[f64], edges: &[(usize, usize, f64)]) -> Vec<(f64, f64)> {
    let n = degree.len();
    let steps = (POWER_PRODUCTS / (n + edges.len())).clamp(*POWER_STEPS.start(), *POWER_STEPS.end());
    let mut dice = Dice(1);
    // The first eigenvector is the square root of the degrees; relative to the largest, so that squares stay finite.
    let most = degree.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut first = Vec::from_iter(degree.iter().map(|d| f64::sqrt(d / most)));
    normalize(&mut first);
    let mut basis = vec![first];
    let mut next = vec![0.0; n];
    for _ in 0..2 {
        let mut v = Vec::from_iter((0..n).map(|_| dice.unit() - 0.5));
        for _ in 0..steps {
            for b in &basis {
                let along: f64 = v.iter().zip(b).map(|(x, y)| x * y).sum();
                v.iter_mut().zip(b).for_each(|(x, y)| *x -= along * y);
            }
            normalize(&mut v);
            half_step(&v, &mut next, edges);
            std::mem::swap(&mut v, &mut next);
        }
        normalize(&mut v);
        basis.push(v);
    }
    // Nodes that the eigenvectors cannot tell apart are set apart by a little noise.
    let spread = f64::sqrt(n as f64);
    let noise = |dice: &mut Dice| 0.02 * (dice.unit() - 0.5);
    (0..n).map(|i| (spread * basis[1][i] + noise(&mut dice), spread * basis[2][i] + noise(&mut dice))).collect()
}

/// next = (I + A) v.
fn half_step(v: &[f64], next: &mut [f64], edges: &[(usize, usize, f64)]) {
    next.copy_from_slice(v);
    for &(a, b, w) in edges {
        next[a] += w * v[b];
        next[b] += w * v[a];
    }
}

fn normalize(v: &mut [f64]) {
    let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    if norm > 1e-12 {
        v.iter_mut().for_each(|x| *x /= norm);
    }
}

/// A picture fills its frame, but a line of agents stays a line.
const STRETCH_MAX: f64 = 1.6;
/// How far nodes of one component, and of two, push each other: components lie side by side and not far away.
const FAR_INSIDE: f64 = 2.2;
const FAR_OUTSIDE: f64 = 0.9;

fn forces(at: &mut [(f64, f64)], edges: &[(usize, usize, f64)]) {
    let n = at.len();
    let component = components(n, edges);
    // In the scale of the start, n nodes cover a few units; `apart` is what a node likes to keep from the next one.
    let apart = 2.0 / f64::sqrt(n as f64);
    let pull = 0.5 * f64::sqrt(n as f64);
    let gravity = 0.6;
    // Gravity on each node keeps dense graphs compact; a ring or a path would crumple under it.
    let gravity_own = 0.12 * f64::min(1.0, 0.1 * edges.len() as f64 / n as f64);
    // Start at the size where edges neither push nor pull: a ring that has to grow buckles.
    let length = |&(a, b, _): &(usize, usize, f64)| {
        let (x, y) = (at[a].0 - at[b].0, at[a].1 - at[b].1);
        f64::sqrt(x * x + y * y)
    };
    let (mut now, mut rest) = (0.0, 0.0);
    for e in edges {
        now += length(e);
        rest += libm::cbrt(apart * apart / (pull * e.2));
    }
    let grow = if now > 0.0 { (1.6 * rest / now).clamp(1.0, 6.0) } else { 1.0 };
    at.iter_mut().for_each(|p| *p = (grow * p.0, grow * p.1));
    let inside = apart * apart / (FAR_INSIDE * FAR_INSIDE);
    let outside = apart * apart / (FAR_OUTSIDE * FAR_OUTSIDE);
    let mut push = vec![(0.0, 0.0); n];
    let mut centre = vec![(0.0, 0.0, 0.0); n];
    for step in 0..FORCE_STEPS {
        let reach = 0.25 * (1.0 - step as f64 / FORCE_STEPS as f64);
        push.fill((0.0, 0.0));
        for i in 0..n {
            for j in 0..i {
                let (dx, dy) = (at[i].0 - at[j].0, at[i].1 - at[j].1);
                let floor = if component[i] == component[j] { inside } else { outside };
                let force = f64::max(0.0, apart * apart / (dx * dx + dy * dy + 1e-6) - floor);
                push[i].0 += force * dx;
                push[i].1 += force * dy;
                push[j].0 -= force * dx;
                push[j].1 -= force * dy;
            }
        }
        for &(a, b, w) in edges {
            let (dx, dy) = (at[a].0 - at[b].0, at[a].1 - at[b].1);
            let force = pull * w * f64::sqrt(dx * dx + dy * dy);
            push[a].0 -= force * dx;
            push[a].1 -= force * dy;
            push[b].0 += force * dx;
            push[b].1 += force * dy;
        }
        // Gravity draws each component to the origin mostly as a whole: it brings them together without crumpling them.
        centre.fill((0.0, 0.0, 0.0));
        for (place, &c) in at.iter().zip(&component) {
            centre[c] = (centre[c].0 + place.0, centre[c].1 + place.1, centre[c].2 + 1.0);
        }
        for ((place, push), &c) in at.iter_mut().zip(&push).zip(&component) {
            let (sum_x, sum_y, size) = centre[c];
            let toward = |sum: f64, place: f64| gravity * sum / size + gravity_own * place;
            let (x, y) = (push.0 - toward(sum_x, place.0), push.1 - toward(sum_y, place.1));
            let length = f64::sqrt(x * x + y * y);
            if length > 0.0 {
                let part = f64::min(reach, 0.1 * length) / length;
                *place = (place.0 + part * x, place.1 + part * y);
            }
        }
    }
}

/// The component of each node, as the smallest number in it.
fn components(n: usize, edges: &[(usize, usize, f64)]) -> Vec<usize> {
    let mut parent = Vec::from_iter(0..n);
    let root = |parent: &[usize], mut i: usize| {
        while parent[i] != i {
            i = parent[i];
        }
        i
    };
    for &(a, b, _) in edges {
        let (a, b) = (root(&parent, a), root(&parent, b));
        parent[a.max(b)] = a.min(b);
    }
    // Parents are smaller than their children, so that one pass in ascending order finds every root.
    for i in 0..n {
        parent[i] = parent[parent[i]];
    }
    parent
}

/// Fills the unit square, but stretches one direction at most [`STRETCH_MAX`] times as much as the other.
fn into_unit_square(at: &mut [(f64, f64)]) {
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (left, right) = ends(&mut at.iter().map(|p| p.0));
    let (top, bottom) = ends(&mut at.iter().map(|p| p.1));
    let least = (right - left).max(bottom - top).max(1e-9) / STRETCH_MAX;
    let (width, height) = ((right - left).max(least), (bottom - top).max(least));
    for p in at {
        *p = (0.5 + (p.0 - 0.5 * (left + right)) / width, 0.5 + (p.1 - 0.5 * (top + bottom)) / height);
    }
}

/// A few fixed pseudo-random numbers (the finalizer of splitmix64 over a counter).
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
        f64::hypot(a.0 - b.0, a.1 - b.1)
    }

    #[test]
    fn neighbours_are_drawn_nearer_than_strangers() {
        let n = 30u32;
        let ring = Vec::from_iter((0..n).map(|i| (i, (i + 1) % n, 1.0)));
        let at = layout(n as usize, &ring);
        let near: f64 = ring.iter().map(|&(a, b, _)| distance(at[a as usize], at[b as usize])).sum::<f64>() / 30.0;
        let far: f64 = (0..15).map(|i| distance(at[i], at[i + 15])).sum::<f64>() / 15.0;
        assert!(far > 4.0 * near, "{far} {near}");
    }

    #[test]
    fn positions_are_in_the_unit_square_whatever_the_graph() {
        let cases = [
            (1, vec![]),
            (2, vec![(0, 1, 1.0)]),
            (5, vec![]),
            (3, vec![(0, 9, 1.0), (1, 1, 1.0), (0, 1, f64::NAN), (1, 2, -1.0), (0, 2, f64::INFINITY)]),
            (3, vec![(0, 1, 1e300), (1, 2, 1e300)]),
            (4, vec![(0, 1, 1.0), (2, 3, 1.0)]),
        ];
        for (n, edges) in cases {
            let at = layout(n, &edges);
            assert_eq!(at.len(), n);
            assert!(at.iter().all(|p| (-1e-9..=1.0 + 1e-9).contains(&p.0) && (-1e-9..=1.0 + 1e-9).contains(&p.1)));
            for i in 0..n {
                for j in 0..i {
                    assert!(distance(at[i], at[j]) > 0.02, "{n}: {i} and {j} lie on each other");
                }
            }
        }
        assert!(layout(0, &[]).is_empty());
    }

    #[test]
    fn a_neighbourhood_has_edges_and_the_asked_size() {
        let n = 10_000u32;
        let ring = Vec::from_iter((0..n).map(|i| (i, (i + 1) % n, 1.0)));
        let part = neighbourhood(n as usize, &ring, 500, 7);
        assert_eq!(part.len(), 500);
        let inside = part.windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!(inside >= 498);
        assert_eq!(neighbourhood(10, &[], 4, 7).len(), 4);
        assert_eq!(neighbourhood(3, &ring, 500, 7), [0, 1, 2]);
    }
}
