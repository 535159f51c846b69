//! Model propagation by asynchronous gossip (Vanhaesebrouck et al. 2017; Bellet et al. 2018, supplement).
//!
//! Each agent has learned a solitary model theta_i^sol alone; together they smooth them over the graph:
//!
//! Q_MP(Theta) = 1/2 ( sum_{i<j} W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i |Theta_i - Theta_i^sol|^2 )
//!
//! An agent that wakes picks a neighbour at random and the two exchange their models; then each moves to the best
//! answer to the latest models it knows, with a = 1 / (1 + mu) and abar = 1 - a:
//!
//! Theta_i <- (a + abar c_i)^-1 ( a sum_j W_ij / D_ii Theta_i^j + abar c_i theta_i^sol )
//!
//! The update is a contraction in the largest coordinate, by a / (a + abar c_i) < 1, so models converge on every path on
//! which no edge falls silent for good, not only in expectation.
//!
//! | letter | when | answered |
//! |---|---|---|
//! | hello | once, at the start: the solitary model | no |
//! | request | at a wake: the model before the exchange | by a reply |
//! | reply | the model before the exchange | no |
//!
//! Lossy links: a letter carries its sender's version, which grows with each update of its model; a receiver keeps
//! the highest version of each neighbour and rejects lower ones, so neither doubled nor overtaken letters bring an old
//! model back. The update depends on nothing but the latest models known, so running it twice does no harm, and a lost
//! letter costs no more than the exchange it belonged to.
//!
//! Differs from the paper: the two updates of an exchange happen when the letters arrive rather than in one instant; a
//! neighbour that has not been heard yet counts as the zero vector.

use super::exchange::{ExchangeKind, ExchangeLetter};
use crate::Shard;
use crate::config::{ConfigError, positive};
use crate::reference::{local::solitary_model, propagation::neighbours_share};
use crate::saved;
use crate::vector::{add_scaled, largest_difference};
use serde::{Deserialize, Serialize};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, Rows, wire::Numbers};
use sottovoce_privacy::Exhausted;

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | trade-off | mu = (1 - a) / a | above 0 | 1, as everywhere |
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelPropagationConfig {
    /// mu.
    pub trade_off: f64,
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct ModelPropagation {
    trade_off: f64,
}

impl ModelPropagation {
    /// Checks the hyper-parameters.
    pub fn new(config: ModelPropagationConfig) -> Result<Self, ConfigError> {
        Ok(ModelPropagation { trade_off: positive("trade-off", config.trade_off)? })
    }
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State {
    /// Theta_i^i.
    model: Vec<f64>,
    /// How often the model was updated.
    version: u64,
    solitary: Box<[f64]>,
    /// Theta_i^j, by position of the neighbour.
    neighbours: Rows,
    /// By position of the neighbour: one more than the version known of it; zero before the first word.
    heard: Vec<u64>,
    /// The model at the last wake.
    before: Vec<f64>,
}

impl Algorithm for ModelPropagation {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = ExchangeLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, shard: Shard<'_>) -> usize {
        shard.letter_bytes_max()
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let model = solitary_model(&shard);
        for edge in cx.peers.iter() {
            send(ExchangeKind::Hello, 0, &model, edge.peer, cx)?;
        }
        Ok(State {
            version: 0,
            solitary: model.clone().into(),
            neighbours: Rows::zeros(cx.peers.len(), model.len()),
            heard: vec![0; cx.peers.len()],
            before: model.clone(),
            model,
        })
    }

    fn on_wake(&self, me: &mut State, _shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let moved = largest_difference(&me.model, &me.before);
        me.before.copy_from_slice(&me.model);
        if !cx.peers.is_empty() {
            let to = cx.peers.edge(cx.coin.below(cx.peers.len())).peer;
            send(ExchangeKind::Request, me.version, &me.model, to, cx)?;
        }
        Ok(Activity { moved })
    }

    fn on_letter(
        &self,
        me: &mut State,
        shard: Shard<'_>,
        from: PeerId,
        letter: ExchangeLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let at = cx.peers.position(from).ok_or(Reject::NotANeighbour)?;
        letter.expect_vectors(1, me.model.len())?;
        // The version that is known may come again: whoever asks twice without an update in between says the same.
        let heard = letter.number.checked_add(1).ok_or(Reject::Malformed)?;
        if heard < me.heard[at] {
            return Err(Reject::OutOfTurn);
        }
        if letter.kind == ExchangeKind::Request {
            // Both sides send their models from before the exchange, so the reply leaves first.
            send(ExchangeKind::Reply, me.version, &me.model, from, cx)?;
        }
        letter.body.copy_to(me.neighbours.row_mut(at))?;
        me.heard[at] = heard;
        if letter.kind != ExchangeKind::Hello {
            let share = neighbours_share(self.trade_off, shard.confidence);
            update(share, cx.peers, &me.neighbours, &me.solitary, &mut me.model);
            me.version += 1;
        }
        Ok(())
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(&(&me.model, me.version, &me.neighbours, &me.heard, &me.before), out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        type Saved = (Vec<f64>, u64, Rows, Vec<u64>, Vec<f64>);
        let (model, version, neighbours, heard, before): Saved = saved::read(saved)?;
        let (p, degree) = (shard.points.dimension, cx.peers.len());
        saved::check(saved::is_vector(&model, p) && saved::is_vector(&before, p) && saved::is_count(version))?;
        saved::check(saved::are_vectors(&neighbours, degree, p) && heard.len() == degree)?;
        Ok(State { model, version, solitary: solitary_model(&shard).into(), neighbours, heard, before })
    }

    fn model<'a>(&self, me: &'a State, _posted: &'a [f64]) -> &'a [f64] {
        &me.model
    }
}

fn send(kind: ExchangeKind, number: u64, model: &[f64], to: PeerId, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
    // PRIVACY: the exact model leaves, visible to everyone on the way: epsilon = infinity.
    let letter = cx.gate.reveal(ExchangeLetter { kind, vectors: 1, number, body: Numbers::Plain(model) })?;
    cx.outbox.send(to, letter);
    Ok(())
}

/// Theta_i <- share sum_j W_ij / D_ii Theta_i^j + (1 - share) theta_i^sol, share = a / (a + abar c_i).
fn update(share: f64, peers: Peers<'_>, neighbours: &Rows, solitary: &[f64], model: &mut [f64]) {
    let scale = share / peers.weighted_degree();
    model.iter_mut().zip(solitary).for_each(|(model, solitary)| *model = (1.0 - share) * solitary);
    for (k, edge) in peers.iter().enumerate() {
        add_scaled(model, scale * edge.weight, neighbours.row(k));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loss;
    use crate::reference::{local::solitary_models, propagation::closed_form};
    use crate::testing::{Mail, Network, means_on_a_path, random_problem};
    use sottovoce_core::{Coin, Wire};

    fn algorithm(trade_off: f64) -> ModelPropagation {
        ModelPropagation::new(ModelPropagationConfig { trade_off }).expect("a fine trade-off")
    }

    #[test]
    fn two_exchanges_on_a_path_by_hand() {
        // mu = 1 and c = 1: a = 1/2, so a model is the mean of its solitary model and its neighbours' mean.
        let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
        let algorithm = algorithm(1.0);
        let mut net = Network::start(&algorithm, &problem);
        assert_eq!(net.mail.len(), 4, "everyone greets each neighbour once");
        assert!(net.mail.iter().all(|mail| mail.vectors == 1 && mail.bytes.len() == 2 + 8 + 8));
        net.deliver_all();
        let near = |net: &Network<'_, _>, expected: [f64; 3]| {
            let models = [0, 1, 2].map(|agent| net.model(agent)[0]);
            assert!(
                models.iter().zip(expected).all(|(model, expected)| (model - expected).abs() < 1e-12),
                "{models:?}"
            );
        };
        near(&net, [0.0, 4.0, 8.0]);
        net.wake_towards(PeerId(0), PeerId(1));
        net.deliver_all();
        // Old values both ways: 0 hears 4, 1 hears 0 and remembers 8. (0 + 4)/2, (4 + (0 + 3 x 8)/4)/2.
        near(&net, [2.0, 5.0, 8.0]);
        net.wake_towards(PeerId(2), PeerId(1));
        net.deliver_all();
        // 1 still remembers 0 for agent 0.
        near(&net, [2.0, 5.0, 6.5]);
        assert_eq!(net.wake(PeerId(2)), 1.5, "moved since its last wake");
    }

    #[test]
    fn an_old_model_never_comes_back() {
        let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
        let algorithm = algorithm(1.0);
        let mut net = Network::start(&algorithm, &problem);
        let hello = net.mail[0].clone();
        net.deliver_all();
        for _ in 0..3 {
            net.wake_towards(PeerId(0), PeerId(1));
            net.deliver_all();
        }
        let known = net.states[1].neighbours.row(0)[0];
        assert_eq!(net.hand_over(&hello), Err(Reject::OutOfTurn));
        assert_eq!(net.states[1].neighbours.row(0)[0], known);
        // A request that comes twice is answered twice, and changes nothing the second time.
        net.wake_towards(PeerId(0), PeerId(1));
        let request = net.mail[0].clone();
        net.hand_over(&request).expect("in turn");
        let model = net.model(1)[0];
        net.hand_over(&request).expect("again");
        assert_eq!(net.model(1)[0], model);
    }

    #[test]
    fn what_a_neighbour_could_not_have_sent_is_rejected() {
        let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
        let algorithm = algorithm(1.0);
        let mut net = Network::start(&algorithm, &problem);
        let mail = |from, vectors, body: &[f64]| {
            let mut bytes = Vec::new();
            ExchangeLetter { kind: ExchangeKind::Request, vectors, number: 0, body: Numbers::Plain(body) }
                .encode(&mut bytes);
            Mail { from: PeerId(from), to: PeerId(0), vectors: 1, bytes }
        };
        assert_eq!(net.hand_over(&mail(2, 1, &[1.0])), Err(Reject::NotANeighbour));
        assert_eq!(net.hand_over(&mail(9, 1, &[1.0])), Err(Reject::NotANeighbour));
        assert_eq!(net.hand_over(&mail(1, 1, &[1.0, 2.0])), Err(Reject::WrongDimension));
        assert_eq!(net.hand_over(&mail(1, 2, &[1.0, 2.0])), Err(Reject::WrongDimension));
        assert_eq!(net.hand_over(&mail(1, 1, &[f64::NAN])), Err(Reject::NotFinite));
        assert_eq!(net.hand_over(&mail(1, 1, &[1.0])), Ok(()));
    }

    #[test]
    fn lost_doubled_and_overtaken_letters_delay_the_limit_but_do_not_change_it() {
        let problem = random_problem(2, 8, 3, Loss::Logistic);
        let algorithm = algorithm(problem.trade_off);
        let mut net = Network::start(&algorithm, &problem);
        let mut coin = Coin::new(5, 0, 0);
        for step in 0..30_000 {
            net.wake(PeerId(coin.below(8) as u32));
            while net.mail.len() > 5 || (step > 20_000 && !net.mail.is_empty()) {
                let mail = net.mail.swap_remove(coin.below(net.mail.len()));
                let fate = coin.unit();
                if fate < 0.1 && step <= 20_000 {
                    net.mail.push(mail.clone());
                }
                if fate < 0.7 || step > 20_000 {
                    let _ = net.hand_over(&mail);
                }
            }
        }
        let expected = closed_form(&problem, &solitary_models(&problem));
        for agent in 0..8 {
            let error = largest_difference(net.model(agent), expected.row(agent as usize));
            assert!(error < 1e-8, "{agent}: {error}");
        }
    }

    #[test]
    fn a_trade_off_must_be_above_zero() {
        for trade_off in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ModelPropagation::new(ModelPropagationConfig { trade_off }).is_err(), "{trade_off}");
        }
    }
}
