//! All pairs of a graph that a token walks over. Proof: `proofs/graph-walk.md`, all pairs.
//!
//! [`super::GraphWalk`] looks closely at one pair. For a matrix of them every visit of the source u counts as a look too: a contribution costs 1 / g, g the hops to
//! the next visit of u or of the observer v, and these g are independent, with one law h. With n members and K contributions
//! ```text
//! E exp(lambda X) <= m^K + m^{K-1} (1/n) sum_{g <= n} (e^{lambda / g} - 1),   m = sum_g h(g) e^{lambda / g}
//! ```
//! The probabilities p_t to be at a place after t hops give h by renewal, up to 64 hops; later p_t is itself a bound on h.

use super::super::convert::renyi;
use super::super::graph::Gossip;
use super::super::walk::{BadNetwork, Observer};
use crate::round::{div_up, mul_up, sqrt_up, widen};

/// Hops up to which the law of a gap is computed.
pub(super) const SHORT: usize = 64;
/// Hops up to which the places of the token are.
const LATER: usize = 512;
/// Where the last bin of gaps begins.
const LAST: usize = 1 << 24;
/// How far above its limit 1/n the likeliest place may still be when the token counts as lost.
const MIXED: f64 = 1.02;
/// What the differences of renewal round, at most.
const ROUNDING: f64 = 1e-13;
/// Observers whose laws are computed side by side.
const SIDE_BY_SIDE: usize = 64;

/// A Renyi order, and what gaps cost at it.
pub(super) struct Order {
    order: f64,
    /// (1/n) sum over g <= n of e^{lambda / g} - 1
    end: f64,
    /// e^{lambda / g} - 1 by place in a law.
    costs: Vec<f64>,
}

/// Privacy of each member's contributions to a token that walks over a graph, against each other member, who knows its path and is told the outcome.
///
/// # Privacy
/// Unit: all of the source's data. See `proofs/graph-walk.md`. Holds where [`super::GraphWalk`] does, and is a larger value.
pub struct GraphPairs<'g> {
    graph: &'g Gossip,
    contributions: u64,
    log_delta: f64,
    /// The epsilon of local composition.
    local: f64,
    orders: Vec<Order>,
    /// The probability to be back after t hops, by t from 0 on and member.
    loops: Vec<Vec<f64>>,
}

impl<'g> GraphPairs<'g> {
    /// Everyone contributes at its first `contributions` visits, with noise of `noise_multiplier` times the sensitivity of one. The number of hops
    /// does not matter.
    pub fn new(graph: &'g Gossip, contributions: u64, noise_multiplier: f64, delta: f64) -> Result<Self, BadNetwork> {
        let bad = |what, value: f64, accepted| Err(BadNetwork::OutOfRange { what, value, accepted });
        if graph.members() < 2 {
            return bad("number of members", graph.members() as f64, "at least 2");
        }
        if contributions == 0 {
            return bad("number of contributions", 0.0, "at least 1: without a bound there is no guarantee");
        }
        if !(noise_multiplier.is_finite() && noise_multiplier > 0.0) {
            return bad("noise multiplier", noise_multiplier, "a finite number above 0");
        }
        if !(delta > 0.0 && delta < 1.0) {
            return bad("delta", delta, "above 0 and below 1");
        }
        if graph.distances(&[0]).contains(&None) {
            return bad("number of paths between two members", 0.0, "at least 1: the graph is not connected");
        }
        // PRIVACY: whatever the path, the view is made of K Gaussian releases.
        let mu = mul_up(sqrt_up(contributions as f64), div_up(1.0, noise_multiplier));
        let local = crate::gaussian_epsilon(mu, delta);
        let orders =
            (-40..=120).map(|k| Order::new(1.0 + libm::exp(0.05 * f64::from(k)), noise_multiplier, graph.members()));
        Ok(GraphPairs {
            graph,
            contributions,
            log_delta: libm::log(delta),
            local,
            orders: orders.collect(),
            loops: loops(graph),
        })
    }

    /// Whom its guarantees are against.
    pub fn observer(&self) -> Observer {
        Observer { colluders: 1, knows_path: true, told_outcome: true }
    }

    /// The epsilon of this source against each member, rounded up; 0 against itself. Rows are independent: whoever has several processors
    /// calls from each.
    pub fn row(&self, source: usize) -> Vec<f64> {
        let mut place = self.orders.len() / 2;
        let laws = self.laws(source).into_iter().enumerate();
        laws.map(|(observer, law)| if observer == source { 0.0 } else { self.epsilon(&law, &mut place) }).collect()
    }

    /// The least value over orders, from a place on downhill. Every order is valid: whoever stops too early returns more.
    fn epsilon(&self, law: &[f64], place: &mut usize) -> f64 {
        let at = |place: usize| {
            let order = &self.orders[place];
            renyi(self.log_moment(law, order), self.log_delta, order.order)
        };
        let mut least = at(*place);
        for up in [true, false] {
            loop {
                let next = if up { *place + 1 } else { place.wrapping_sub(1) };
                let value = if next < self.orders.len() { at(next) } else { f64::INFINITY };
                if value >= least {
                    break;
                }
                (least, *place) = (value, next);
            }
        }
        widen(least.max(0.0), 1e-9).min(self.local)
    }

    /// ln of the bound on E exp(lambda X) of a pair with this law.
    pub(super) fn log_moment(&self, law: &[f64], order: &Order) -> f64 {
        let excess: f64 = law.iter().zip(&order.costs).map(|(mass, cost)| mass * cost).sum();
        self.contributions as f64 * libm::log1p(excess) + libm::log1p(order.end / (1.0 + excess))
    }

    /// The law h of each observer, rounded up: hop by hop, then bins, each as full as the places of the token allow.
    pub(super) fn laws(&self, source: usize) -> Vec<Vec<f64>> {
        let (rows, likeliest) = places(self.graph, source);
        let mut laws: Vec<Vec<f64>> = Vec::with_capacity(self.graph.members());
        for first in (0..self.graph.members()).step_by(SIDE_BY_SIDE) {
            let last = (first + SIDE_BY_SIDE).min(self.graph.members());
            self.short_laws(&rows, source, first..last, &mut laws);
        }
        let starts: Vec<usize> = starts().skip(SHORT).collect();
        let mut later = vec![0.0; self.graph.members()];
        for (bin, &start) in starts.iter().enumerate() {
            let end = starts.get(bin + 1).copied();
            // The hops whose places are known, and how many others there are.
            let known = start..end.map_or(rows.len(), |end| end.min(rows.len()));
            let others = end.map_or(f64::INFINITY, |end| (end - start - known.len()) as f64);
            later.fill(if others > 0.0 { 2.0 * likeliest * others } else { 0.0 });
            for row in &rows[known.start.min(known.end)..known.end] {
                later.iter_mut().zip(row).for_each(|(later, there)| *later += row[source] + there);
            }
            for (law, later) in laws.iter_mut().zip(&later) {
                let left = law[0];
                let mass = left.min(*later);
                law[0] = left - mass;
                law.push(mass);
            }
        }
        // The first number was what is left to be placed; nothing is left now.
        laws.iter_mut().for_each(|law| {
            law.remove(0);
        });
        laws
    }

    /// The laws up to [`SHORT`] hops of some observers, each behind what it leaves:
    /// f_t = p_t(u,u) - sum_s f_s p_{t-s}(u,u) + e_s p_{t-s}(v,u), and e_t = p_t(u,v) - sum_s f_s p_{t-s}(u,v) + e_s p_{t-s}(v,v).
    fn short_laws(
        &self,
        rows: &[Vec<f64>],
        source: usize,
        observers: std::ops::Range<usize>,
        laws: &mut Vec<Vec<f64>>,
    ) {
        let mut back = vec![[0.0; SIDE_BY_SIDE]; SHORT + 1];
        let mut met = vec![[0.0; SIDE_BY_SIDE]; SHORT + 1];
        for t in 1..=SHORT {
            let (mut back_now, mut met_now) = ([rows[t][source]; SIDE_BY_SIDE], [0.0; SIDE_BY_SIDE]);
            met_now.iter_mut().zip(&rows[t][observers.clone()]).for_each(|(met, there)| *met = *there);
            for s in 1..t {
                let home = rows[t - s][source];
                let (across, looped) = (&rows[t - s][observers.clone()], &self.loops[t - s][observers.clone()]);
                let places = across.iter().zip(looped).zip(back[s].iter().zip(&met[s]));
                for ((back_now, met_now), ((across, looped), (back, met))) in
                    back_now.iter_mut().zip(&mut met_now).zip(places)
                {
                    *back_now -= back * home + met * across;
                    *met_now -= back * across + met * looped;
                }
            }
            back[t] = back_now.map(|mass| mass.max(0.0));
            met[t] = met_now.map(|mass| mass.max(0.0));
        }
        for index in 0..observers.len() {
            let mut law = vec![0.0];
            law.extend((1..=SHORT).map(|t| back[t][index] + met[t][index] + ROUNDING));
            law[0] = (1.0 - law.iter().sum::<f64>()).max(0.0) + SHORT as f64 * ROUNDING;
            laws.push(law);
        }
    }
}

impl Order {
    fn new(order: f64, noise_multiplier: f64, members: usize) -> Self {
        Order::priced(order, order * (order - 1.0) / (2.0 * noise_multiplier * noise_multiplier), members)
    }

    pub(super) fn priced(order: f64, lambda: f64, members: usize) -> Self {
        let cost = |g: usize| libm::expm1(lambda / g as f64) * (1.0 + 1e-14);
        let end = (1..=members).map(cost).sum::<f64>() / members as f64;
        Order { order, end: end * (1.0 + 1e-11), costs: starts().map(cost).collect() }
    }
}

/// The least number of hops at each place of a law: 1, 2, .. 64, then bins as wide as an eighth of that.
fn starts() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |&g| (g < LAST).then(|| if g <= SHORT { g + 1 } else { g + g / 8 }))
}

/// Where the token is t hops after a member, by t from 0 on; and a bound on each of these probabilities afterwards. The likeliest place never gets
/// likelier, because rows of W are means.
fn places(graph: &Gossip, source: usize) -> (Vec<Vec<f64>>, f64) {
    let mut unit = vec![0.0; graph.members()];
    unit[source] = 1.0;
    let mut rows = vec![unit];
    let mut likeliest = 1.0;
    while rows.len() <= SHORT || (rows.len() <= LATER && likeliest * graph.members() as f64 > MIXED) {
        let row = graph.moved(&rows[rows.len() - 1]);
        likeliest = row.iter().copied().fold(0.0, f64::max) * (1.0 + 1e-12);
        rows.push(row);
    }
    (rows, likeliest)
}

/// p_t(v,v) by t up to [`SHORT`] and member. W is symmetric: p_{2t}(v,v) is the square of the row of t hops, p_{2t+1}(v,v) its product with the next.
fn loops(graph: &Gossip) -> Vec<Vec<f64>> {
    let members = graph.members();
    let mut loops = vec![vec![0.0; members]; SHORT + 1];
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (mut row, mut next) = (vec![0.0; members], vec![0.0; members]);
    for member in 0..members {
        row.fill(0.0);
        row[member] = 1.0;
        for half in 0..=SHORT / 2 {
            loops[2 * half][member] = product(&row, &row);
            graph.times(&row, &mut next);
            if 2 * half < SHORT {
                loops[2 * half + 1][member] = product(&row, &next);
            }
            std::mem::swap(&mut row, &mut next);
        }
    }
    loops
}
