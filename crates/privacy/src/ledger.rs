//! The append-only list of an agent's charges.

use crate::{Audience, BadCharge, Event, Track};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::num::NonZeroU64;

/// Equal releases, and how many of them there were.
///
/// One line of `ledger.jsonl` reads back as a charge; parameters that no mechanism has are refused then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Charge {
    /// Which list of the plan it belongs to; a file names it unless it is the first.
    #[serde(skip_serializing_if = "Track::is_models")]
    pub track: Track,
    /// How each value was made.
    #[serde(flatten)]
    pub event: Event,
    /// How far the value can move when one record is replaced, in the mechanism's norm. An exact value has none. Accountants do
    /// not read it: the noise multiplier says what it is worth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
    /// Who saw them.
    pub audience: Audience,
    /// How many equal releases this entry stands for.
    pub count: u64,
}

/// How far a value can move when one record is replaced: a finite number above zero. Its bits are never zero, so that no sensitivity at all takes no
/// room of its own.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "f64")]
pub struct Sensitivity(NonZeroU64);

impl Sensitivity {
    /// Refuses a number that no sensitivity is.
    pub fn new(value: f64) -> Result<Self, BadCharge> {
        let bits = NonZeroU64::new(value.to_bits()).filter(|_| value.is_finite() && value > 0.0);
        bits.map(Sensitivity).ok_or(BadCharge::Parameter { parameter: "sensitivity", value })
    }

    /// As a number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0.get())
    }
}

impl From<Sensitivity> for f64 {
    fn from(sensitivity: Sensitivity) -> f64 {
        sensitivity.get()
    }
}

impl fmt::Debug for Sensitivity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(formatter)
    }
}

/// A charge as it stands in a file. Other keys and doubled ones are refused: whoever reads a ledger must not take for granted what
/// this program does not read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    #[serde(default)]
    track: Track,
    mechanism: Mechanism,
    #[serde(default, deserialize_with = "given")]
    noise_multiplier: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    epsilon: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    sensitivity: Option<f64>,
    audience: Audience,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mechanism {
    Reveal,
    Laplace,
    Gaussian,
    GammaNorm,
    RandomizedResponse,
}

/// A number, where the key is there: `null` is none.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(from).map(Some)
}

impl Unchecked {
    /// The mechanism with its parameter, and no other.
    fn event(&self) -> Result<Event, BadCharge> {
        use Mechanism::{GammaNorm, Gaussian, Laplace, RandomizedResponse, Reveal};
        let mechanism = match self.mechanism {
            Reveal => "reveal",
            Laplace => "laplace",
            Gaussian => "gaussian",
            GammaNorm => "gamma-norm",
            RandomizedResponse => "randomized-response",
        };
        let wrong = |key, problem| BadCharge::Key { key, problem, mechanism };
        let noisy = matches!(self.mechanism, Laplace | Gaussian | GammaNorm);
        let has_epsilon = self.mechanism == RandomizedResponse;
        for (key, value, known) in [
            ("noise_multiplier", self.noise_multiplier, noisy),
            ("epsilon", self.epsilon, has_epsilon),
            ("sensitivity", self.sensitivity, self.mechanism != Reveal),
        ] {
            if value.is_some() && !known {
                return Err(wrong(key, "unknown"));
            }
        }
        let noise_multiplier = self.noise_multiplier.ok_or(wrong("noise_multiplier", "missing"));
        Ok(match self.mechanism {
            Reveal => Event::Reveal,
            Laplace => Event::Laplace { noise_multiplier: noise_multiplier? },
            Gaussian => Event::Gaussian { noise_multiplier: noise_multiplier? },
            GammaNorm => Event::GammaNorm { noise_multiplier: noise_multiplier? },
            RandomizedResponse => {
                Event::RandomizedResponse { epsilon: self.epsilon.ok_or(wrong("epsilon", "missing"))? }
            }
        })
    }
}

impl TryFrom<Unchecked> for Charge {
    type Error = BadCharge;

    fn try_from(read: Unchecked) -> Result<Self, BadCharge> {
        let event = read.event()?;
        let Unchecked { track, audience, count, .. } = read;
        let sensitivity = read.sensitivity.map(Sensitivity::new).transpose()?;
        Charge { track, event, sensitivity, audience, count }.check()
    }
}

impl Charge {
    /// Equal releases that everyone sees, of values whose sensitivity is not said.
    pub fn new(event: Event, count: u64) -> Self {
        Charge { track: Track::Models, event, sensitivity: None, audience: Audience::Everyone, count }
    }

    /// Whether they may share an entry: they differ in their counts alone.
    fn is_like(&self, other: &Charge) -> bool {
        let kind = |charge: &Charge| (charge.track, charge.event, charge.sensitivity, charge.audience);
        kind(self) == kind(other)
    }

    /// Refuses parameters that no mechanism has, and a count of zero.
    pub fn check(self) -> Result<Self, BadCharge> {
        self.event.check()?;
        if self.count == 0 { Err(BadCharge::Count { count: 0 }) } else { Ok(self) }
    }
}

/// Every charge of one agent. It only grows; equal charges share an entry that carries their count, so a
/// plan of 200 equal steps is one entry. The first entry is stored in place: a million agents with one
/// kind of release each own no heap memory here.
///
/// Anyone can build a ledger to ask an accountant about it ([`Ledger::from_charges`]); a [`crate::Gate`] starts with an
/// empty one of its own and takes none from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    first: Option<Charge>,
    /// Further entries, behind one pointer: few agents have any.
    #[expect(clippy::box_collection, reason = "an empty `Vec` would cost a million agents 16 bytes each")]
    rest: Option<Box<Vec<Charge>>>,
}

impl Ledger {
    /// A ledger to account for: one that was planned, or one that was read back from a file.
    pub fn from_charges(charges: impl IntoIterator<Item = Charge>) -> Result<Self, BadCharge> {
        let mut ledger = Ledger::default();
        let mut releases = 0u64;
        for charge in charges {
            let count = charge.check()?.count;
            releases = releases.checked_add(count).ok_or(BadCharge::Count { count })?;
            ledger.record(charge);
        }
        Ok(ledger)
    }

    /// Adds releases. Only the gate may add to a ledger of its own.
    pub(crate) fn record(&mut self, charge: Charge) {
        for known in self.first.iter_mut().chain(self.rest.iter_mut().flat_map(|rest| rest.iter_mut())) {
            if known.is_like(&charge) {
                known.count += charge.count;
                return;
            }
        }
        match self.first {
            None => self.first = Some(charge),
            Some(_) => self.rest.get_or_insert_default().push(charge),
        }
    }

    /// The entries, in the order of their first release.
    pub fn charges(&self) -> impl Iterator<Item = &Charge> {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    /// How many values were released in all.
    pub fn releases(&self) -> u64 {
        self.charges().map(|charge| charge.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_charges_share_an_entry_and_none_is_lost() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.releases(), 0);
        for _ in 0..200 {
            ledger.record(Charge::new(Event::Reveal, 1));
        }
        assert_eq!(ledger.charges().count(), 1);
        assert_eq!(ledger.releases(), 200);
    }

    #[test]
    fn a_line_of_the_ledger_reads_back_as_it_was_written() {
        let lines = [
            (Event::Reveal, r#"{"mechanism":"reveal","audience":"everyone","count":7}"#),
            (
                Event::Laplace { noise_multiplier: 0.1 },
                r#"{"mechanism":"laplace","noise_multiplier":0.1,"audience":"everyone","count":7}"#,
            ),
            (
                Event::Gaussian { noise_multiplier: 2.5 },
                r#"{"mechanism":"gaussian","noise_multiplier":2.5,"audience":"everyone","count":7}"#,
            ),
            (
                Event::GammaNorm { noise_multiplier: 20.0 },
                r#"{"mechanism":"gamma-norm","noise_multiplier":20.0,"audience":"everyone","count":7}"#,
            ),
            (
                Event::RandomizedResponse { epsilon: 1.5 },
                r#"{"mechanism":"randomized-response","epsilon":1.5,"audience":"everyone","count":7}"#,
            ),
        ];
        for (event, line) in lines {
            let charge = Charge::new(event, 7);
            let bounded = Charge { sensitivity: Sensitivity::new(0.5).ok(), ..charge };
            let bounded_line = line.replace(r#""audience""#, r#""sensitivity":0.5,"audience""#);
            assert_eq!(serde_json::to_string(&bounded).expect("valid"), bounded_line);
            let token = Charge { track: Track::Token, audience: Audience::OneMember, ..charge };
            let token_line = line.replace("everyone", "one-member").replace('{', r#"{"track":"token","#);
            assert_eq!(serde_json::to_string(&token).expect("valid"), token_line);
            assert_eq!(serde_json::from_str::<Charge>(&token_line).expect("valid"), token);
            // An exact value has no sensitivity.
            let read = serde_json::from_str::<Charge>(&bounded_line).ok();
            assert_eq!(read, (event != Event::Reveal).then_some(bounded));
            assert_eq!(serde_json::to_string(&charge).expect("valid"), line);
            assert_eq!(serde_json::from_str::<Charge>(line).expect("valid"), charge);
        }
    }

    #[test]
    fn a_line_that_no_mechanism_writes_is_refused() {
        for line in [
            r#"{"mechanism":"laplace","noise_multiplier":0.0,"audience":"everyone","count":1}"#,
            r#"{"mechanism":"laplace","noise_multiplier":-1.0,"audience":"everyone","count":1}"#,
            r#"{"mechanism":"gaussian","noise_multiplier":1e999,"audience":"everyone","count":1}"#,
            r#"{"mechanism":"gaussian","noise_multiplier":null,"audience":"everyone","count":1}"#,
            r#"{"mechanism":"gaussian","audience":"everyone","count":1}"#,
            r#"{"mechanism":"randomized-response","epsilon":-0.0,"audience":"everyone","count":1}"#,
            r#"{"mechanism":"laplace","noise_multiplier":1.0,"audience":"everyone","count":0}"#,
            r#"{"mechanism":"laplace","noise_multiplier":1.0,"audience":"everyone","count":-3}"#,
            r#"{"mechanism":"laplace","noise_multiplier":1.0,"sensitivity":0.0,"audience":"everyone","count":1}"#,
            r#"{"mechanism":"hope","audience":"everyone","count":1}"#,
            r#"{"mechanism":"laplace","noise_multiplier":1.0,"epsilon":null,"audience":"everyone","count":1}"#,
        ] {
            assert!(serde_json::from_str::<Charge>(line).is_err(), "{line}");
        }
        for (line, key) in [
            (r#"{"mechanism":"laplace","noise_multiplier":1.0,"audience":"everyone","count":1,"delta":0.1}"#, "delta"),
            (
                r#"{"mechanism":"laplace","noise_multiplier":1.0,"audience":"everyone","count":1,"epsilon":1}"#,
                "epsilon",
            ),
            (r#"{"mechanism":"laplace","epsilon":1.0,"audience":"everyone","count":1}"#, "epsilon"),
            (r#"{"mechanism":"randomized-response","audience":"everyone","count":1}"#, "epsilon"),
            (r#"{"mechanism":"reveal","noise_multiplier":1.0,"audience":"everyone","count":1}"#, "noise_multiplier"),
            (r#"{"mechanism":"gaussian","audience":"everyone","count":1}"#, "noise_multiplier"),
            (r#"{"mechanism":"reveal","audience":"everyone","count":9,"count":1}"#, "count"),
            (r#"{"mechanism":"reveal","mechanism":"reveal","audience":"everyone","count":1}"#, "mechanism"),
            (r#"{"mechanism":"reveal","sensitivity":1.0,"audience":"everyone","count":1}"#, "sensitivity"),
        ] {
            let said = serde_json::from_str::<Charge>(line).expect_err(line).to_string();
            assert!(said.contains(key), "{line}: {said}");
        }
        let charge = |noise_multiplier, count| Charge::new(Event::Laplace { noise_multiplier }, count);
        assert!(Ledger::from_charges([charge(f64::NAN, 1)]).is_err());
        assert!(Ledger::from_charges([charge(f64::INFINITY, 1)]).is_err());
        assert!(Ledger::from_charges([charge(1.0, 0)]).is_err());
        assert!(Ledger::from_charges([charge(1.0, u64::MAX), charge(2.0, 1)]).is_err());
    }

    #[test]
    fn a_million_agents_can_afford_a_gate_each() {
        let bytes = size_of::<crate::Gate<crate::Idealized>>();
        assert!(bytes <= 112, "{bytes} bytes");
    }
}
