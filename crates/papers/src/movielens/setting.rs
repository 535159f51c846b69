//! What is taken to be public: the two settings of the table, which are never mixed.

use super::als::Als;
use super::ratings::{MovieLens, Rating, STARS, Split, User};
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::graphs::{self, Directions};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, kernel::dot};
use sottovoce_core::{Coin, Graph, Rows};
use sottovoce_task::error::Mistake;

/// Neighbours that each user chooses.
pub const NEIGHBOURS: usize = 10;

/// The centre of the sound setting, between the middle of the scale and its upper part. It is a constant.
pub const CENTRE: f64 = 3.5;

/// Users are told apart by age in units of so many years; gender and occupation weigh as much as some seven of them. Guesses.
const YEARS: f64 = 15.0;

/// The year in which the last ratings were collected.
const LAST_YEAR: u16 = 1998;

/// The event of the coins of a random graph.
const GRAPH: u64 = 0x0067_7261_7068;

/// Which facts everyone is taken to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// The paper's: films' features and the graph are made of training ratings, and each user's ratings are centred by their mean.
    /// All three are taken as given: what is private is so conditional on them, and not from end to end.
    Paper,
    /// Sound: films' genres and years, the centre 3.5, and a graph of age, gender and occupation. No rating is in any of them.
    Sound,
    /// As sound, with a graph that nobody's facts are in: each user chooses ten others at random.
    SoundRandomGraph,
}

impl Setting {
    /// All of them, in the order of the table.
    pub const ALL: [Setting; 3] = [Setting::Paper, Setting::Sound, Setting::SoundRandomGraph];

    /// As in the names of cells.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Paper => "paper",
            Setting::Sound => "sound",
            Setting::SoundRandomGraph => "sound-random-graph",
        }
    }

    /// What stands above its numbers, wherever they are shown.
    pub fn label(self) -> &'static str {
        match self {
            Setting::Paper => "conditional on public features, graph and user means; not DP end to end",
            Setting::Sound => {
                "sound: public genres and years of films, centre 3.5, graph of age, gender and occupation"
            }
            Setting::SoundRandomGraph => "sound: public genres and years of films, centre 3.5, random graph",
        }
    }
}

/// One split of the data in one setting.
#[derive(Clone, Debug)]
pub struct Instance {
    /// One row for each film; the longest has length one.
    features: Rows,
    /// How long the longest was before that.
    natural_length: f64,
    /// What is subtracted from each user's stars.
    centres: Vec<f64>,
    graph: Graph,
    split: Split,
}

impl Instance {
    /// Builds what the setting takes for public, from the training ratings only where the setting says so.
    pub fn new(data: &MovieLens, split: Split, setting: Setting, als: &Als, seed: u64) -> Result<Self, Mistake> {
        let refused =
            |error: graphs::ShapeError| Mistake::new(format!("{error}; accepted: more than {NEIGHBOURS} users"));
        let (mut features, centres, graph) = match setting {
            Setting::Paper => {
                let mean = |own: &Vec<Rating>| own.iter().map(|r| r.stars).sum::<f64>() / own.len() as f64;
                let centres: Vec<f64> = split.train.iter().map(mean).collect();
                let labels = |(own, centre): (&Vec<Rating>, &f64)| {
                    own.iter().map(|r| (r.item, r.stars - centre)).collect::<Vec<_>>()
                };
                let labels: Vec<_> = split.train.iter().zip(&centres).map(labels).collect();
                let features = als.features(data.items.len(), &labels, seed);
                let graph = graphs::nearest_neighbours(&stars(&split.train, data.items.len()), NEIGHBOURS);
                (features, centres, graph.map_err(refused)?)
            }
            Setting::Sound | Setting::SoundRandomGraph => {
                let graph = match setting {
                    Setting::SoundRandomGraph => random_graph(data.users.len(), seed),
                    _ => graphs::nearest_neighbours(&demographics(&data.users), NEIGHBOURS).map_err(refused)?,
                };
                (films(data), vec![CENTRE; data.users.len()], graph)
            }
        };
        let longest = (0..features.count()).map(|k| dot(features.row(k), features.row(k))).fold(0.0, f64::max).sqrt();
        if longest > 0.0 {
            features.values_mut().iter_mut().for_each(|value| *value /= longest);
        }
        Ok(Instance { features, natural_length: longest, centres, graph, split })
    }

    /// p.
    pub fn dimension(&self) -> usize {
        self.features.row_len()
    }

    /// How long the longest film's features are as they were made.
    pub fn natural_length(&self) -> f64 {
        self.natural_length
    }

    /// The learning problem, features being this long at most. lambda_i = 1 / m_i, so the longer they are, the less it weighs.
    pub fn problem(&self, feature_length: f64, trade_off: f64) -> Problem {
        let mut data = Dataset::new(self.dimension());
        let (mut features, mut labels) = (Vec::new(), Vec::new());
        for (own, centre) in self.split.train.iter().zip(&self.centres) {
            features.clear();
            labels.clear();
            for rating in own {
                features.extend(self.features.row(rating.item as usize).iter().map(|x| x * feature_length));
                labels.push(rating.stars - centre);
            }
            data.push_agent(&features, &labels);
        }
        let points_max = data.largest() as f64;
        Problem {
            data,
            graph: self.graph.clone(),
            loss: Loss::Squared,
            regularization: Regularization::OneOverPoints,
            trade_off,
            points_max,
        }
    }

    /// Each user's root mean squared error on the ratings set aside, averaged over users. Predictions are brought into 1 to 5.
    pub fn error(&self, feature_length: f64, models: &Rows) -> f64 {
        let one = |user: usize| {
            let own = &self.split.test[user];
            let squared = |rating: &Rating| {
                let along = feature_length * dot(self.features.row(rating.item as usize), models.row(user));
                let off = (self.centres[user] + along).clamp(*STARS.start(), *STARS.end()) - rating.stars;
                off * off
            };
            (own.iter().map(squared).sum::<f64>() / own.len() as f64).sqrt()
        };
        let users = self.split.test.len();
        (0..users).map(one).sum::<f64>() / users as f64
    }
}

/// Each user's training stars, zero where there are none: what the paper compares users by.
fn stars(train: &[Vec<Rating>], items: usize) -> Directions {
    let mut rows = vec![0.0; train.len() * items];
    for (own, row) in train.iter().zip(rows.chunks_exact_mut(items)) {
        own.iter().for_each(|rating| row[rating.item as usize] = rating.stars);
    }
    Directions::new(items, rows)
}

/// What everyone knows of the films: a constant for the user's own level, genres as a vector of length one, and two numbers up to one
/// that grow with the film's age: over sixty years, the recent ones counting more, and over the last six.
pub(super) fn films(data: &MovieLens) -> Rows {
    let genres = data.items.first().map_or(0, |item| item.genres.len());
    let mut rows = Rows::zeros(data.items.len(), 1 + genres + 2);
    for (k, item) in data.items.iter().enumerate() {
        let row = rows.row_mut(k);
        row[0] = 1.0;
        let count = item.genres.iter().filter(|is| **is).count().max(1) as f64;
        for (value, is) in row[1..].iter_mut().zip(&item.genres) {
            *value = if *is { 1.0 / count.sqrt() } else { 0.0 };
        }
        if let Some(year) = item.year {
            let age = |years: u16| f64::from(LAST_YEAR - year.clamp(LAST_YEAR - years, LAST_YEAR)) / f64::from(years);
            row[1 + genres] = age(60).sqrt();
            row[2 + genres] = age(6);
        }
    }
    rows
}

/// Age, gender and occupation as one vector. The constant in front makes the cosine fall with the difference of ages.
fn demographics(users: &[User]) -> Directions {
    let mut occupations: Vec<&str> = users.iter().map(|user| &*user.occupation).collect();
    occupations.sort_unstable();
    occupations.dedup();
    let dimension = 4 + occupations.len();
    let mut rows = vec![0.0; users.len() * dimension];
    for (user, row) in users.iter().zip(rows.chunks_exact_mut(dimension)) {
        row[0] = 3.0;
        row[1] = (user.age - 35.0) / YEARS;
        row[if user.gender == "F" { 2 } else { 3 }] = 0.5;
        let place = occupations.binary_search(&&*user.occupation).expect("every occupation is in the list");
        row[4 + place] = 0.5;
    }
    Directions::new(dimension, rows)
}

/// Each user chooses [`NEIGHBOURS`] others; an edge is there when one of its ends chose the other.
fn random_graph(users: usize, seed: u64) -> Graph {
    let mut pairs = Vec::new();
    for user in 0..users {
        let mut coin = Coin::new(seed, user as u32, GRAPH);
        let mut chosen = std::collections::BTreeSet::new();
        while chosen.len() < NEIGHBOURS.min(users - 1) {
            let other = coin.below(users);
            if other != user {
                chosen.insert(other);
            }
        }
        pairs.extend(chosen.into_iter().map(|other| (user.min(other) as u32, user.max(other) as u32)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let edges: Vec<_> = pairs.into_iter().map(|(a, b)| (a, b, 1.0)).collect();
    Graph::from_edges(users, &edges).expect("sorted pairs without repetition")
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use sottovoce_core::PeerId;

    const ALS: Als = Als { rank: 4, ridge: 0.1, sweeps: 5 };

    fn instance(data: &MovieLens, setting: Setting) -> Instance {
        Instance::new(data, Split::new(&data.ratings, 1), setting, &ALS, 1).expect("enough users")
    }

    /// Two sets of ratings that have nothing in common but their numbers.
    #[test]
    fn no_rating_is_in_what_a_sound_setting_takes_for_public() {
        let data = sample(40, 60, 1);
        let other = super::super::invent::invent(&data, 99);
        assert_ne!(data.ratings, other.ratings);
        for setting in Setting::ALL {
            let (one, two) = (instance(&data, setting), instance(&other, setting));
            let same = one.features == two.features && one.centres == two.centres;
            let same = same && one.graph.edges().eq(two.graph.edges()) && one.natural_length == two.natural_length;
            assert_eq!(same, setting != Setting::Paper, "{setting:?}");
        }
    }

    #[test]
    fn the_papers_setting_centres_by_training_means_and_joins_who_rates_alike() {
        let data = sample(40, 60, 1);
        let built = instance(&data, Setting::Paper);
        let problem = built.problem(2.0, 1.0);
        let longest = problem.data.points(PeerId(0)).iter().map(|(x, _)| dot(x, x)).fold(0.0, f64::max);
        assert!(longest <= 4.0 * (1.0 + 1e-12));
        for user in 0..40 {
            let points = problem.data.points(PeerId(user));
            let sum: f64 = points.labels.iter().sum();
            assert!(sum.abs() < 1e-9, "labels of a centred user sum to zero: {sum}");
            assert!(built.graph.peers(PeerId(user)).len() >= NEIGHBOURS);
        }
        // A user that rates as another does is its neighbour.
        let mut twins = data.clone();
        twins.ratings[7] = twins.ratings[30].clone();
        let split = Split { train: twins.ratings.clone(), test: twins.ratings.clone() };
        let built = Instance::new(&twins, split, Setting::Paper, &ALS, 1).expect("enough users");
        assert!(built.graph.peers(PeerId(7)).iter().any(|edge| edge.peer == PeerId(30)));
    }

    #[test]
    fn demographics_join_who_is_alike_and_chance_joins_anyone() {
        let mut data = sample(40, 60, 1);
        data.users[3] = data.users[20].clone();
        let joined = |graph: &Graph| graph.peers(PeerId(3)).iter().any(|edge| edge.peer == PeerId(20));
        assert!(joined(&instance(&data, Setting::Sound).graph));
        let random = random_graph(40, 1);
        assert!((0..40).all(|user| random.peers(PeerId(user)).len() >= NEIGHBOURS));
        assert!(!random.edges().eq(random_graph(40, 2).edges()));
    }

    #[test]
    fn an_error_by_hand() {
        let built = Instance {
            features: {
                let mut rows = Rows::zeros(2, 1);
                rows.row_mut(0)[0] = 1.0;
                rows.row_mut(1)[0] = -0.5;
                rows
            },
            natural_length: 1.0,
            centres: vec![3.0, 4.0],
            graph: Graph::ring(3).expect("a ring"),
            split: Split {
                train: vec![Vec::new(), Vec::new()],
                test: vec![
                    vec![Rating { item: 0, stars: 5.0 }, Rating { item: 1, stars: 1.0 }],
                    vec![Rating { item: 0, stars: 2.0 }],
                ],
            },
        };
        let mut models = Rows::zeros(2, 1);
        models.row_mut(0)[0] = 0.5;
        models.row_mut(1)[0] = 100.0;
        // Features twice as long: user 0 guesses 4 and 2.5 for 5 and 1; user 1 guesses 5, not 204, for 2.
        let (first, second) = (((1.0 + 2.25) / 2.0f64).sqrt(), 3.0);
        assert!((built.error(2.0, &models) - (first + second) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn too_few_users_are_a_mistake() {
        let data = sample(8, 60, 1);
        let refused = Instance::new(&data, Split::new(&data.ratings, 1), Setting::Paper, &ALS, 1);
        assert!(refused.expect_err("too few").to_string().contains("accepted: more than 10 users"));
    }
}
