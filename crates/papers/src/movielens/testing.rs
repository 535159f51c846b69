//! A small world for tests: as many films and users as asked for, and invented ratings.

use super::invent::invent;
use super::ratings::{Item, MovieLens, Rating, User};
use sottovoce_core::Coin;

/// Films of five genres, users of three occupations, and ten ratings or more of each user.
pub fn sample(users: usize, items: usize, seed: u64) -> MovieLens {
    let mut coin = Coin::new(seed, 0, 0);
    let item = |_| Item {
        year: (coin.below(10) > 0).then(|| 1920 + coin.below(79) as u16),
        genres: (0..5).map(|_| coin.below(3) == 0).collect(),
    };
    let items: Vec<Item> = (0..items).map(item).collect();
    let mut coin = Coin::new(seed, 1, 0);
    let people = (0..users).map(|_| User {
        age: 15.0 + coin.below(50) as f64,
        gender: ["F", "M"][coin.below(2)].to_owned(),
        occupation: ["writer", "doctor", "student"][coin.below(3)].to_owned(),
    });
    let people = people.collect();
    let mut coin = Coin::new(seed, 2, 0);
    let sizes = (0..users).map(|_| 10 + coin.below(items.len().min(40) - 10));
    let ratings = sizes.map(|size| vec![Rating { item: 0, stars: 3.0 }; size]).collect();
    invent(&MovieLens { items, users: people, ratings }, seed)
}
