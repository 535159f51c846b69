//! The files of MovieLens-100K, and the split of each user's ratings.
//!
//! | file | columns that are read |
//! |---|---|
//! | `ratings.csv.gz` | user, item, rating |
//! | `items.csv.gz` | item, release, g_... (0 or 1, one for each genre) |
//! | `users.csv.gz` | user, age, gender, occupation |
//!
//! Each may also be there unpacked, as `.csv`. The licence of the data forbids to hand them on, so they are no part of this
//! project.

use sottovoce_core::Coin;
use sottovoce_task::error::{Mistake, quote};
use sottovoce_task::rows::{self, At, read_csv};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The folder that is read when the user names none, from the project's root.
pub const FOLDER: &str = "../shared/data/movielens_100k";

/// Stars lie between these.
pub const STARS: std::ops::RangeInclusive<f64> = 1.0..=5.0;

/// What one user said about one film.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// The film, by its place in [`MovieLens::items`].
    pub item: u32,
    /// From 1 to 5.
    pub stars: f64,
}

/// What everyone knows of a film.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The year in which it came out, where it is known.
    pub year: Option<u16>,
    /// Whether it is of each genre.
    pub genres: Vec<bool>,
}

/// What users told of themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// In years.
    pub age: f64,
    /// `M` or `F`.
    pub gender: String,
    /// One of some twenty words.
    pub occupation: String,
}

/// The data.
#[derive(Clone, Debug, PartialEq)]
pub struct MovieLens {
    /// The films, in the order of their file.
    pub items: Vec<Item>,
    /// The users, in the order of their file.
    pub users: Vec<User>,
    /// Each user's ratings, by film.
    pub ratings: Vec<Vec<Rating>>,
}

impl MovieLens {
    /// Reads the three files of a folder.
    pub fn read(folder: &Path) -> Result<Self, Mistake> {
        if !folder.is_dir() {
            let what = "no such folder; accepted: a folder with ratings.csv.gz, items.csv.gz and users.csv.gz of MovieLens-100K";
            return Err(Mistake::file(folder, what));
        }
        let (items, item_numbers) = read_items(&file(folder, "items"))?;
        let (users, user_numbers) = read_users(&file(folder, "users"))?;
        let path = file(folder, "ratings");
        let mut ratings = vec![Vec::new(); users.len()];
        read_csv(
            &path.as_path().into(),
            |header| has(header, &["user", "item", "rating"]),
            |header, record, at| {
                let known = |numbers: &Numbers, what: &str| {
                    let name = field(header, record, what);
                    numbers.get(name).copied().ok_or_else(|| {
                        at.mistake(format!("{what} {} is unknown; accepted: one of {what}s.csv", quote(name)))
                    })
                };
                let (user, item) = (known(&user_numbers, "user")?, known(&item_numbers, "item")?);
                let stars = number(field(header, record, "rating"), "rating", at)?;
                if !STARS.contains(&stars) {
                    return Err(at.mistake(format!("rating is {stars}; accepted: a number from 1 to 5")));
                }
                let own: &mut Vec<Rating> = &mut ratings[user as usize];
                own.push(Rating { item, stars });
                Ok(())
            },
        )?;
        for (user, own) in ratings.iter_mut().enumerate() {
            own.sort_unstable_by_key(|rating| rating.item);
            if own.len() < 2 {
                let what = format!("user {} of users.csv has {} ratings; accepted: at least 2", user + 1, own.len());
                return Err(Mistake::file(&path, what));
            }
            if own.windows(2).any(|pair| pair[0].item == pair[1].item) {
                let what = format!("user {} of users.csv rates a film twice; accepted: once", user + 1);
                return Err(Mistake::file(&path, what));
            }
        }
        Ok(MovieLens { items, users, ratings })
    }

    /// The first `users` of them, for a quick look.
    pub fn first(&self, users: usize) -> MovieLens {
        let users = users.min(self.users.len());
        MovieLens {
            items: self.items.clone(),
            users: self.users[..users].to_vec(),
            ratings: self.ratings[..users].to_vec(),
        }
    }
}

/// Each user's ratings, a part of them set aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// What is learned from, by user.
    pub train: Vec<Vec<Rating>>,
    /// What is set aside, by user.
    pub test: Vec<Vec<Rating>>,
}

impl Split {
    /// Sets a fifth of each user's ratings aside, at random by the seed; one at least.
    pub fn new(ratings: &[Vec<Rating>], seed: u64) -> Self {
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (user, own) in ratings.iter().enumerate() {
            let count = ((own.len() as f64 / 5.0).round() as usize).max(1);
            let mut coin = Coin::new(seed, user as u32, SPLIT);
            let mut order: Vec<usize> = (0..own.len()).collect();
            for k in 0..count {
                let other = k + coin.below(own.len() - k);
                order.swap(k, other);
            }
            let mut aside = order[..count].to_vec();
            let mut stay = order[count..].to_vec();
            aside.sort_unstable();
            stay.sort_unstable();
            test.push(aside.into_iter().map(|k| own[k]).collect());
            train.push(stay.into_iter().map(|k| own[k]).collect());
        }
        Split { train, test }
    }
}

/// The event of a split's coins.
const SPLIT: u64 = 0x0073_706c_6974;

type Numbers = HashMap<Box<[u8]>, u32>;

fn file(folder: &Path, name: &str) -> PathBuf {
    let plain = folder.join(format!("{name}.csv"));
    if plain.exists() { plain } else { folder.join(format!("{name}.csv.gz")) }
}

/// The place of a column.
fn column(header: &csv::ByteRecord, name: &str) -> Option<usize> {
    header.iter().position(|field| field.trim_ascii() == name.as_bytes())
}

/// The header must have these columns.
fn has(header: &csv::ByteRecord, names: &[&str]) -> Result<(), String> {
    match names.iter().find(|name| column(header, name).is_none()) {
        None => Ok(()),
        Some(missing) => Err(format!("no column {missing:?}; accepted: a header with {}", names.join(","))),
    }
}

/// The field of a column that the header has.
fn field<'r>(header: &csv::ByteRecord, record: &'r csv::ByteRecord, name: &str) -> &'r [u8] {
    &record[column(header, name).expect("the header was checked")]
}

fn number(field: &[u8], name: &str, at: At<'_>) -> Result<f64, Mistake> {
    rows::number(field).filter(|value| value.is_finite()).ok_or_else(|| {
        let what = format!("{name} is {}; accepted: a number", quote(field));
        at.mistake(what)
    })
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).trim().to_owned()
}

fn enter(numbers: &mut Numbers, field: &[u8], at: At<'_>) -> Result<(), Mistake> {
    let next = numbers.len() as u32;
    match numbers.insert(field.into(), next) {
        None => Ok(()),
        Some(_) => Err(at.mistake(format!("{} is there twice; accepted: once", quote(field)))),
    }
}

fn read_items(file: &Path) -> Result<(Vec<Item>, Numbers), Mistake> {
    let (mut items, mut numbers) = (Vec::new(), Numbers::new());
    let is_genre = |name: &[u8]| name.starts_with(b"g_");
    read_csv(
        &file.into(),
        |header| {
            has(header, &["item", "release"])?;
            let any = header.iter().any(is_genre);
            if any { Ok(()) } else { Err("no column of a genre; accepted: g_<genre>".to_owned()) }
        },
        |header, record, at| {
            enter(&mut numbers, field(header, record, "item"), at)?;
            // 01-Jan-1995
            let release = text(field(header, record, "release"));
            let year = release.rsplit('-').next().and_then(|year| year.parse().ok());
            let genres = header.iter().zip(record).filter(|(name, _)| is_genre(name));
            let flags = genres.map(|(_, flag)| number(flag, "a genre", at).map(|flag| flag > 0.0));
            items.push(Item { year, genres: flags.collect::<Result<_, _>>()? });
            Ok(())
        },
    )?;
    Ok((items, numbers))
}

fn read_users(file: &Path) -> Result<(Vec<User>, Numbers), Mistake> {
    let (mut users, mut numbers) = (Vec::new(), Numbers::new());
    read_csv(
        &file.into(),
        |header| has(header, &["user", "age", "gender", "occupation"]),
        |header, record, at| {
            let field = |name| field(header, record, name);
            enter(&mut numbers, field("user"), at)?;
            users.push(User {
                age: number(field("age"), "age", at)?,
                gender: text(field("gender")),
                occupation: text(field("occupation")),
            });
            Ok(())
        },
    )?;
    Ok((users, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: &str =
        "item,title,release,g_Action,g_Drama\n7,\"A, B\",01-Jan-1995,1,0\n9,C,,0,1\n3,D,05-May-1960,1,1\n";
    const USERS: &str = "user,age,gender,occupation,zip\n2,53,F,other,94043\n1,24,M,writer,85711\n";
    const RATINGS: &str = "user,item,rating,timestamp\n1,7,3,1\n2,9,5,2\n1,3,4,3\n2,7,1,4\n";

    fn folder(ratings: &str, items: &str, users: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("ratings", ratings), ("items", items), ("users", users)] {
            std::fs::write(folder.path().join(name).with_extension("csv"), text).expect("a file");
        }
        folder
    }

    #[test]
    fn users_and_films_are_numbered_as_in_their_files() {
        let data = MovieLens::read(folder(RATINGS, ITEMS, USERS).path()).expect("good files");
        assert_eq!(data.items[0], Item { year: Some(1995), genres: vec![true, false] });
        assert_eq!((data.items[1].year, data.items[2].year), (None, Some(1960)));
        assert_eq!(data.users[0], User { age: 53.0, gender: "F".into(), occupation: "other".into() });
        let stars = |user: usize| data.ratings[user].iter().map(|r| (r.item, r.stars)).collect::<Vec<_>>();
        assert_eq!((stars(0), stars(1)), (vec![(0, 1.0), (1, 5.0)], vec![(0, 3.0), (2, 4.0)]));
        assert_eq!(data.first(1).ratings.len(), 1);
    }

    #[test]
    fn mistakes_are_one_line_that_says_what_is_accepted() {
        let refused = |ratings: &str, items: &str, users: &str| {
            let text = MovieLens::read(folder(ratings, items, users).path()).expect_err("a mistake").to_string();
            assert!(text.contains("accepted: ") && !text.contains('\n'), "{text}");
            text
        };
        let rate = |row: &str| refused(&format!("{RATINGS}{row}\n"), ITEMS, USERS);
        assert!(rate("3,7,3,1").contains("line 6: user \"3\" is unknown"));
        assert!(rate("1,8,3,1").contains("item \"8\" is unknown"));
        assert!(rate("1,9,6,1").contains("rating is 6"));
        assert!(rate("1,9,x,1").contains("rating is \"x\""));
        assert!(rate("1,9,NaN,1").contains("rating is \"NaN\""));
        assert!(rate("1,7,2,1").contains("rates a film twice"));
        assert!(refused("user,item,rating\n1,7,3\n", ITEMS, USERS).contains("0 ratings"));
        assert!(refused("user,item,stars\n1,7,3\n", ITEMS, USERS).contains("no column \"rating\""));
        assert!(refused(RATINGS, "item,release\n7,x\n", USERS).contains("no column of a genre"));
        assert!(refused(RATINGS, ITEMS, &format!("{USERS}2,1,M,x,y\n")).contains("\"2\" is there twice"));
        let missing = MovieLens::read(Path::new("no/such/folder")).expect_err("no folder").to_string();
        assert!(missing.starts_with("no/such/folder: no such folder; accepted: "), "{missing}");
    }

    #[test]
    fn a_fifth_of_each_users_ratings_is_set_aside_by_the_seed_alone() {
        let own = |count: u32| (0..count).map(|item| Rating { item, stars: 1.0 }).collect::<Vec<_>>();
        let ratings: Vec<_> = [2, 4, 20, 101, 737].map(own).to_vec();
        let split = Split::new(&ratings, 3);
        assert_eq!(split.test.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 4, 20, 147]);
        for (user, own) in ratings.iter().enumerate() {
            let mut all = [&*split.train[user], &*split.test[user]].concat();
            all.sort_unstable_by_key(|rating| rating.item);
            assert_eq!(all, *own, "each rating is on one side");
        }
        assert_eq!(split, Split::new(&ratings, 3));
        assert_ne!(split, Split::new(&ratings, 4));
        // Where every rating may go: over many seeds each is set aside about as often.
        let mut counts = [0u32; 20];
        for seed in 0..2000 {
            Split::new(&ratings[2..3], seed).test[0].iter().for_each(|rating| counts[rating.item as usize] += 1);
        }
        assert!(counts.iter().all(|&count| (320..480).contains(&count)), "{counts:?}");
    }
}
