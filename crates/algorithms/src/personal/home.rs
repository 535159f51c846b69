//! The home model: what an agent keeps for itself, from its exact data and what its neighbours released.
//!
//! home_i = argmin over theta of 1/2 |theta - s A_i|^2 + mu_h c_i L_i(theta),
//! A_i = sum_j W_ij m_j Theta_j / sum_j W_ij m_j
//!
//! Theta_j being the last post heard of neighbour j, and s, mu_h public parameters tuned on other instances. The smaller mu_h,
//! the more the neighbours say; mu_h = infinity is the local model.
//!
//! # Privacy
//! It is never sent, so it costs nothing; and it must never be sent, because it is made of exact data.
//!
//! Differs from the papers: they have no such model. What a private run broadcasts carries the noise of its last update, which
//! nobody has averaged; what an agent uses at home need not.

use super::config::{ConfigError, positive};
use crate::{
    Shard,
    reference::local::{Proximal, solitary_model},
    vector::add_scaled,
};
use sottovoce_core::{PeerId, Peers, Posts};

/// How much the neighbours say. Part of the plan, tuned on other instances, never on the private data of the run.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | scale | s | above 0 | 1 |
/// | trade-off | mu_h | above 0 | 3 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HomeConfig {
    /// s.
    pub scale: f64,
    /// mu_h.
    pub trade_off: f64,
}

/// Checked parameters of home models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Home {
    config: HomeConfig,
}

impl Home {
    /// Checks the parameters.
    pub fn new(config: HomeConfig) -> Result<Self, ConfigError> {
        positive("home.scale", config.scale)?;
        positive("home.trade-off", config.trade_off)?;
        Ok(Home { config })
    }

    /// home_i, for the agent's owner alone. `points` tells m_j. Where no neighbour has data or a word, it is the local model.
    pub fn model(
        &self,
        shard: &Shard<'_>,
        peers: Peers<'_>,
        posts: Posts<'_>,
        points: impl Fn(PeerId) -> usize,
    ) -> Vec<f64> {
        let mut centre = vec![0.0; shard.points.dimension];
        let mut total = 0.0;
        for (k, edge) in peers.iter().enumerate() {
            let weight = edge.weight * points(edge.peer) as f64;
            if weight > 0.0 && posts.heard(k) {
                add_scaled(&mut centre, weight, posts.last(peers, k).1);
                total += weight;
            }
        }
        if total <= 0.0 {
            return solitary_model(shard);
        }
        centre.iter_mut().for_each(|value| *value *= self.config.scale / total);
        let mut model = centre.clone();
        let mut solver = Proximal::new(shard, self.config.trade_off * shard.confidence, 1.0);
        solver.solve(shard, &centre, &mut model, &mut Vec::new());
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::local_gradient;
    use crate::testing::{SMOOTH, everyone, normals, random_problem};
    use crate::vector::largest_difference;
    use sottovoce_core::{Coin, Rows};

    #[test]
    fn it_is_the_minimum_that_the_formula_asks_for() {
        for loss in SMOOTH {
            let problem = random_problem(3, 9, 4, loss);
            let mut rows = Rows::zeros(9, 4);
            rows.values_mut().copy_from_slice(&normals(&mut Coin::new(9, 0, 0), 36));
            let config = HomeConfig { scale: 0.7, trade_off: 2.0 };
            let home = Home::new(config).expect("good parameters");
            for me in everyone(&problem) {
                let (shard, peers) = (problem.shard(me), problem.graph.peers(me));
                let posts = Posts::Board { rows: &rows, me };
                let size = |id: PeerId| problem.data.size(id);
                let model = home.model(&shard, peers, posts, size);
                let total: f64 = peers.iter().map(|edge| edge.weight * size(edge.peer) as f64).sum();
                if total == 0.0 {
                    assert_eq!(model, solitary_model(&shard));
                    continue;
                }
                // 0 = theta - s A + mu_h c grad L(theta)
                let mut gradient = vec![0.0; 4];
                local_gradient(&shard, &model, &mut gradient);
                for k in 0..4 {
                    let mean: f64 = peers
                        .iter()
                        .map(|edge| edge.weight * size(edge.peer) as f64 / total * rows.row(edge.peer.index())[k])
                        .sum();
                    let slope = model[k] - 0.7 * mean + 2.0 * shard.confidence * gradient[k];
                    assert!(slope.abs() < 1e-9, "{loss:?} {me:?} {k}: {slope:e}");
                }
            }
        }
    }

    #[test]
    fn with_all_the_weight_on_its_own_data_it_is_the_local_model() {
        let problem = random_problem(4, 9, 4, crate::Loss::Logistic);
        let rows = Rows::zeros(9, 4);
        let home = Home::new(HomeConfig { scale: 1.0, trade_off: 1e9 }).expect("good parameters");
        let me = PeerId(0);
        let shard = problem.shard(me);
        let posts = Posts::Board { rows: &rows, me };
        let model = home.model(&shard, problem.graph.peers(me), posts, |id| problem.data.size(id));
        assert!(largest_difference(&model, &solitary_model(&shard)) < 1e-5);
    }

    #[test]
    fn parameters_out_of_range_are_refused_by_name() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let scale = Home::new(HomeConfig { scale: bad, trade_off: 1.0 });
            assert_eq!(scale.expect_err("bad").field, "home.scale");
            let trade_off = Home::new(HomeConfig { scale: 1.0, trade_off: bad });
            assert_eq!(trade_off.expect_err("bad").field, "home.trade-off");
        }
    }
}
