//! Invented users for the tests of this folder.

use super::methods::Pace;
use super::users::Users;
use sottovoce_algorithms::Dataset;
use sottovoce_core::Coin;

/// Users in two groups, with opposite tastes along the first of three features, and the same along the second.
pub fn neighbourly(seed: u64, users: u32, points: usize) -> Users {
    let mut data = Dataset::new(4);
    for user in 0..users {
        let mut coin = Coin::new(seed, user, 0);
        let taste = if user % 2 == 0 { 1.0 } else { -1.0 };
        let (mut features, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..points {
            let x = [0; 3].map(|_| 2.0 * coin.unit() - 1.0);
            labels.push(if taste * x[0] + 0.3 * x[1] >= 0.0 { 1.0 } else { -1.0 });
            features.extend(x.into_iter().chain([1.0]));
        }
        data.push_agent(&features, &labels);
    }
    Users { points: data, published: None }
}

pub fn quick_pace() -> Pace {
    Pace { sample: 3, first_wakes: 60, model_wakes: 10, graph_wakes: 20, turns: 3, turns_in_folds: 1, local_rounds: 30 }
}
