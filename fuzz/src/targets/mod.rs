//! What reads bytes of a peer, or of a disk.

mod agent;
mod frames;
mod peer;
mod stored;
mod two_party;

use crate::Target;
use sottovoce_algorithms::joint::{Joint, LogDegree};
use sottovoce_algorithms::pairs::answered::Answered;
use sottovoce_algorithms::pairs::answers::{self, bins::Bins, response::Response};
use sottovoce_algorithms::pairs::kernel::{Auc, Kernel, Ties};
use sottovoce_algorithms::pairs::{gosta::Gosta, u2_gossip::U2Gossip};
use sottovoce_algorithms::personal::{
    admm::{Admm, AdmmConfig, Inner},
    boosting::{FrankWolfe, FrankWolfeConfig, StepSize},
    descent::{
        CoordinateDescent, CoordinateDescentConfig, DescentByLetters, PrivateCoordinateDescent,
        PrivateCoordinateDescentConfig, Start,
    },
    graph::{Alternating, GraphLearning, GraphLearningConfig, Placed, Turns},
    propagation::{ModelPropagation, ModelPropagationConfig},
};
use sottovoce_algorithms::{Bounds, Dataset, Loss, Observations, Problem, Regularization};
use sottovoce_core::{Graph, PeerId};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Event, Plan, Sum};
use std::sync::Arc;

use agent::{Agent, Letters, Resumed};
use frames::{Answers, Questions};
use peer::Peer;
use stored::Stores;

const P: usize = 3;

/// Four agents, all neighbours of each other, with three points each.
fn problem(loss: Loss) -> Problem {
    let mut data = Dataset::new(P);
    for agent in 0..4 {
        let a = f64::from(agent) / 4.0;
        let features = [1.0, a, 0.5, a - 0.5, 1.0, -1.0, -0.25, 0.75, a];
        data.push_agent(&features, &[1.0, -1.0, if agent % 2 == 0 { 1.0 } else { -1.0 }]);
    }
    let edges = [(0, 1, 1.0), (0, 2, 0.5), (0, 3, 0.25), (1, 2, 1.0), (1, 3, 0.5), (2, 3, 2.0)];
    let graph = Graph::from_edges(4, &edges).expect("a graph");
    let regularization = Regularization::Constant(0.05);
    Problem { points_max: 3.0, data, graph, loss, regularization, trade_off: 1.0 }
}

/// Builds everything, and lends it.
pub fn with_all<R>(work: impl FnOnce(&mut [Box<dyn Target + '_>]) -> R) -> R {
    let (squared, logistic) = (problem(Loss::Squared), problem(Loss::Logistic));
    let complete = Graph::Complete { n: 4 };
    let me = PeerId(0);
    let good = "good parameters";
    let propagation = ModelPropagation::new(ModelPropagationConfig { trade_off: 1.0 }).expect(good);
    let admm = Admm::new(AdmmConfig { trade_off: 1.0, penalty: 0.5, inner: Inner::Exact }).expect(good);
    let config = |step_size| FrankWolfeConfig {
        predictors: P,
        trade_off: 1.0,
        radius: 2.0,
        step_size,
        gap_min: 0.0,
        local_rounds: 3,
    };
    let boosting = FrankWolfe::new(config(StepSize::Descent)).expect(good);
    let graph = || {
        let regularizer = LogDegree { sparsity: 0.1, offset: LogDegree::OFFSET };
        let joint = Joint { trade_off: 1.0, strength: 1.0, regularizer };
        GraphLearning::new(GraphLearningConfig { joint, sample: 2 }).expect(good)
    };
    let learning = graph();
    let turns = Turns { graph_first: 3.0, models: 2.0, graph: 2.0 };
    let learner = DescentByLetters::new(Loss::Logistic, 1.0).expect(good);
    let descent_and_graph = Alternating::new(learner, graph(), turns).expect(good);
    let boosting_and_graph = Alternating::new(boosting, graph(), turns).expect(good);
    let start = Start::Local;
    let config = CoordinateDescentConfig { dimension: P, loss: Loss::Logistic, trade_off: 1.0, start };
    let descent = CoordinateDescent::new(config).expect(good);
    let private = PrivateCoordinateDescent::new(PrivateCoordinateDescentConfig {
        dimension: P,
        loss: Loss::Logistic,
        trade_off: 1.0,
        clip: 1.0,
        norm: Norm::L1,
        feature_bound: 2.0,
        l1_features: false,
        warm: None,
    })
    .expect(good);

    let kernel = || Kernel::Auc(Auc { ties: Ties::Half });
    let gosta = Gosta::new(kernel(), 2.0).expect(good);
    let u2_gossip = U2Gossip::new(kernel(), 2.0, logistic.graph.edge_count()).expect(good);
    let bins = Bins::new(Bounds { low: -1.0, high: 1.0 }, 8, 1).expect(good);
    let response = Response::new(&kernel(), bins, 2.0).expect(good);
    let answers = answers::Answers::new(response.clone(), 4, me);
    let answered = Gosta::new(Answered::new(&kernel(), response), 2.0).expect(good);
    let answer = vec![Event::RandomizedResponse { epsilon: 2.0 }; 1 << 16];
    let answer = Arc::new(Plan::new(answer, f64::INFINITY, 0.5, &Sum).expect(good));
    let mut scores = Dataset::new(1);
    scores.push_agent(&[0.25, -0.5, 0.75], &[1.0, -1.0, 1.0]);
    let bounds = Some(Bounds { low: -1.0, high: 1.0 });
    let observed = Observations { points: scores.points(me), bounds };

    let listed = logistic.graph.peers(me);
    let everyone = complete.peers(me);
    let (shard, squares) = (logistic.shard(me), squared.shard(me));
    let placed = Placed { model: &[0.5, -0.5, 0.0], cost: -1.0 };
    let mut all: Vec<Box<dyn Target + '_>> = vec![
        Box::new(Questions),
        Box::new(Answers),
        Box::new(Letters::new("letters, propagation", Agent::new(&propagation, shard, listed))),
        Box::new(Letters::new("letters, ADMM", Agent::new(&admm, squares, listed))),
        Box::new(Letters::new("letters, boosting", Agent::new(&boosting, shard, listed))),
        Box::new(Letters::new("letters, graph", Agent::new(&learning, placed, everyone))),
        Box::new(Letters::new("letters, descent and graph", Agent::new(&descent_and_graph, shard, everyone))),
        Box::new(Letters::new("letters, boosting and graph", Agent::new(&boosting_and_graph, shard, everyone))),
        Box::new(Letters::new("letters, gosta", Agent::new(&gosta, observed, listed))),
        Box::new(Letters::new("letters, u2-gossip", Agent::new(&u2_gossip, observed, listed))),
        Box::new(Letters::new(
            "letters, answers",
            // Categories 3 and 2, the second one's label positive.
            Agent::private(&answers, observed, listed, answer.clone()).with_letter(&[3, 0, 2, 0x80]),
        )),
        Box::new(Letters::new(
            "letters, gosta about answers",
            Agent::private(&answered, observed, listed, answer.clone()),
        )),
        Box::new(Resumed::new("resume, answers", Agent::private(&answers, observed, listed, answer.clone()))),
        Box::new(Resumed::new("resume, gosta about answers", Agent::private(&answered, observed, listed, answer))),
        Box::new(Resumed::new("resume, gosta", Agent::new(&gosta, observed, listed))),
        Box::new(Resumed::new("resume, propagation", Agent::new(&propagation, shard, listed))),
        Box::new(Resumed::new("resume, ADMM", Agent::new(&admm, squares, listed))),
        Box::new(Resumed::new("resume, boosting", Agent::new(&boosting, shard, listed))),
        Box::new(Resumed::new("resume, graph", Agent::new(&learning, placed, everyone))),
        Box::new(Resumed::new("resume, descent and graph", Agent::new(&descent_and_graph, shard, everyone))),
        Box::new(Resumed::new("resume, boosting and graph", Agent::new(&boosting_and_graph, shard, everyone))),
        Box::new(Peer::new("peer, descent", &descent, shard, &logistic, false)),
        Box::new(Peer::new("peer, private descent", &private, shard, &logistic, true)),
        Box::new(Peer::new("peer, ADMM", &admm, squares, &squared, false)),
        Box::new(Peer::new("peer, propagation", &propagation, shard, &logistic, false)),
        Box::new(Stores::new("store, descent", &descent, shard, &logistic, false)),
        Box::new(Stores::new("store, private descent", &private, shard, &logistic, true)),
        Box::new(Stores::new("store, ADMM", &admm, squares, &squared, false)),
        Box::new(two_party::Messages::new()),
        Box::new(two_party::Members::new()),
    ];
    work(&mut all)
}
