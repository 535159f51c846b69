//! Members of a statistic, in a world of labelled points: labels are rows of one number.

use sottovoce_algorithms::{Dataset, Loss, Observations, Points, Problem, Regularization, Shard};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Graph, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::Exhausted;

/// Labels as rows of one number.
fn labels(shard: Shard<'_>) -> Observations<'_> {
    let values = shard.points.labels;
    Observations { points: Points { dimension: 1, features: values, labels: values }, bounds: None }
}

/// An algorithm for rows, with labels as values.
pub struct OfLabels<A>(pub A);

impl<A: for<'d> Algorithm<Data<'d> = Observations<'d>>> Algorithm for OfLabels<A> {
    type Data<'d> = Shard<'d>;
    type State = A::State;
    type Letter<'a> = A::Letter<'a>;

    fn post_len(&self) -> usize {
        self.0.post_len()
    }

    fn letter_bytes_max(&self, shard: Shard<'_>) -> usize {
        self.0.letter_bytes_max(labels(shard))
    }

    fn wake_rate(&self, shard: Shard<'_>, peers: Peers<'_>) -> f64 {
        self.0.wake_rate(labels(shard), peers)
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<A::State, Exhausted> {
        self.0.start(labels(shard), cx)
    }

    fn on_wake(&self, me: &mut A::State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        self.0.on_wake(me, labels(shard), cx)
    }

    fn on_letter(
        &self,
        me: &mut A::State,
        shard: Shard<'_>,
        from: PeerId,
        letter: A::Letter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        self.0.on_letter(me, labels(shard), from, letter, cx)
    }

    fn is_done(&self, me: &A::State) -> bool {
        self.0.is_done(me)
    }

    fn save(&self, me: &A::State, out: &mut Vec<u8>) {
        self.0.save(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<A::State, CannotResume> {
        self.0.resume(saved, neighbours, labels(shard), cx)
    }

    fn model<'a>(&self, me: &'a A::State, posted: &'a [f64]) -> &'a [f64] {
        self.0.model(me, posted)
    }
}

/// Members that all reach each other, with values whose sum tells how often each contributed.
pub fn members_of(count: u32) -> Problem {
    let mut data = Dataset::new(1);
    (0..count).for_each(|k| data.push_agent(&[0.0], &[f64::from(16u32.pow(k))]));
    Problem {
        data,
        graph: Graph::complete(count as usize).expect("a graph"),
        loss: Loss::Squared,
        regularization: Regularization::Constant(0.1),
        trade_off: 1.0,
        points_max: 1.0,
    }
}

/// How often each of them is in a sum.
pub fn digits(sum: f64, count: u32) -> Vec<u32> {
    (0..count).map(|k| (sum as u64 / 16u64.pow(k) % 16) as u32).collect()
}
