//! Invented ratings, to tune on where no real rating may be looked at.
//!
//! stars = 3.5 + level_i + x_j.(g + t_i) + quality_j + noise, rounded to 1, 2, .., 5
//!
//! x_j being what everyone knows of film j, and everything else drawn at random. Films, users and how many films each user rates are
//! those of the data; which films, and how many stars, are not. The spreads are what one would guess of a scale from 1 to 5; no rating
//! was asked for them.

use super::ratings::{MovieLens, Rating, STARS};
use super::setting::{CENTRE, films};
use sottovoce_algorithms::kernel::dot;
use sottovoce_core::Coin;

/// How far apart users' levels are.
const LEVEL: f64 = 0.45;
/// How far apart films are that look alike.
const QUALITY: f64 = 0.5;
/// How much everyone likes or dislikes something of a film.
const COMMON_TASTE: f64 = 0.3;
/// How far apart users' tastes are in each of these.
const TASTE: f64 = 0.3;
/// What nothing explains.
const NOISE: f64 = 0.9;

/// The data with other ratings.
pub fn invent(data: &MovieLens, seed: u64) -> MovieLens {
    let known = films(data);
    let films = data.items.len();
    let mut coin = Coin::new(seed, u32::MAX, EVENT);
    let quality: Vec<f64> = (0..films).map(|_| QUALITY * normal(&mut coin)).collect();
    // The first of what is known is a constant; users have a level instead.
    let common: Vec<f64> = (1..known.row_len()).map(|_| COMMON_TASTE * normal(&mut coin)).collect();
    let one = |(user, own): (usize, &Vec<Rating>)| {
        let mut coin = Coin::new(seed, user as u32, EVENT);
        let level = LEVEL * normal(&mut coin);
        let taste: Vec<f64> = common.iter().map(|common| common + TASTE * normal(&mut coin)).collect();
        let mut order: Vec<u32> = (0..films as u32).collect();
        for k in 0..own.len() {
            let other = k + coin.below(films - k);
            order.swap(k, other);
        }
        order.truncate(own.len());
        order.sort_unstable();
        let rate = |item: u32| {
            let row = &known.row(item as usize)[1..];
            let stars = CENTRE + level + dot(row, &taste) + quality[item as usize] + NOISE * normal(&mut coin);
            Rating { item, stars: stars.round().clamp(*STARS.start(), *STARS.end()) }
        };
        order.into_iter().map(rate).collect()
    };
    let ratings = data.ratings.iter().enumerate().map(one).collect();
    MovieLens { items: data.items.clone(), users: data.users.clone(), ratings }
}

const EVENT: u64 = 0x696e_7665_6e74;

/// By Box and Muller.
fn normal(coin: &mut Coin) -> f64 {
    let length = libm::sqrt(-2.0 * libm::log(1.0 - coin.unit()));
    length * libm::cos(2.0 * std::f64::consts::PI * coin.unit())
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;

    #[test]
    fn nothing_of_the_real_ratings_is_in_them_but_how_many_there_are() {
        let data = sample(30, 60, 1);
        let mut other = data.clone();
        for own in &mut other.ratings {
            own.iter_mut().for_each(|rating| *rating = Rating { item: rating.item / 2, stars: 6.0 - rating.stars });
        }
        let invented = invent(&data, 5);
        assert_eq!(invented, invent(&other, 5));
        assert_ne!(invented, invent(&data, 6));
        assert!(invented.ratings.iter().zip(&data.ratings).all(|(new, old)| new.len() == old.len()));
        for own in &invented.ratings {
            assert!(own.windows(2).all(|pair| pair[0].item < pair[1].item), "each film once, in order");
            assert!(own.iter().all(|rating| STARS.contains(&rating.stars) && rating.stars.fract() == 0.0));
        }
    }
}
