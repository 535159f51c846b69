//! One randomized answer for each row, told once to one member, who computes a statistic of pairs from all of them (thesis 3.3).
//!
//! A [`Question`] says what is asked of a row, and what the answers together are worth: see [`response`] and [`hierarchy`]. Each member answers when it
//! starts, in one durable letter to the aggregator, and is done. The aggregator, who answers as everybody does, is done when all have answered; before, it
//! knows an estimate from those who have.
//!
//! # Privacy
//! Each answer is randomized by its owner, so the guarantee is for one row and against everyone, the aggregator included; where a member has one row,
//! that is local differential privacy. Labels are public. What is computed from answers costs nothing more.

pub mod bins;
pub mod hierarchy;
pub mod response;

use crate::{Observations, saved};
use serde::{Deserialize, Serialize};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, Wire};
use sottovoce_privacy::{Audience, Exhausted, Public, Track};

/// The most rows of one member: its answers are one letter.
pub const ROWS_MAX: usize = 1 << 20;

/// Bytes of an answer in a letter.
const ANSWER_BYTES: usize = 2;
/// Set where the label of a row is positive.
const POSITIVE: u16 = 1 << 15;

/// Which row it is, of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowId {
    /// Whose.
    pub agent: PeerId,
    /// Which of its rows.
    pub row: u32,
}

/// What is asked of each row, and what all answers say together.
pub trait Question: Send + Sync {
    /// How many answers there are to choose from, [`bins::CATEGORIES_MAX`] at most.
    fn categories(&self) -> u32;

    /// The true answer of a row with these values.
    fn answer(&self, row: RowId, values: impl Iterator<Item = f64>) -> u32;

    /// Numbers that hold all answers.
    fn tally_len(&self) -> usize;

    /// Counts an answer.
    fn add(&self, tally: &mut [f64], row: RowId, is_positive: bool, answer: u32);

    /// The estimate; none where the answers are too few for one.
    fn conclude(&self, tally: &[f64]) -> Option<f64>;
}

/// A question that every member answers to one of them.
#[derive(Clone, Debug)]
pub struct Answers<Q> {
    question: Q,
    members: u32,
    aggregator: PeerId,
}

impl<Q: Question> Answers<Q> {
    /// Asked of so many members, by one of them.
    pub fn new(question: Q, members: u32, aggregator: PeerId) -> Self {
        assert!(aggregator.0 < members, "the aggregator is a member");
        Answers { question, members, aggregator }
    }

    /// What is asked.
    pub fn question(&self) -> &Q {
        &self.question
    }

    /// Counts the answers of a member. The estimate is made anew when an eighth more have answered, and when all have.
    fn count(&self, me: &mut State, from: PeerId, answers: impl Iterator<Item = (bool, u32)>) {
        for ((is_positive, answer), row) in answers.zip(0..) {
            self.question.add(&mut me.tally, RowId { agent: from, row }, is_positive, answer);
        }
        me.heard[from.index()] = true;
        me.reports += 1;
        if me.reports == self.members || me.reports > me.estimated + me.estimated / 8 {
            me.estimated = me.reports;
            self.estimate(me);
        }
    }

    fn estimate(&self, me: &mut State) {
        let estimate = self.question.conclude(&me.tally).filter(|estimate| estimate.is_finite());
        (me.knows, me.estimate) = (estimate.is_some(), [estimate.unwrap_or(0.0)]);
    }
}

/// What a member remembers: nothing, unless it is the aggregator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    tally: Vec<f64>,
    /// By member: whether it has answered.
    heard: Vec<bool>,
    /// How many have.
    reports: u32,
    /// How many had when the estimate was made.
    estimated: u32,
    knows: bool,
    estimate: [f64; 1],
}

impl State {
    /// Whether it knows an estimate.
    pub fn knows(&self) -> bool {
        self.knows
    }

    /// How many members have answered.
    pub fn reports(&self) -> u32 {
        self.reports
    }
}

/// All answers of a member, in the order of its rows.
///
/// | bytes | what |
/// |---|---|
/// | 2 each | the category, little-endian; its highest bit says whether the label is positive |
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnswerLetter<'a> {
    /// As the sender holds them.
    Plain {
        /// Categories.
        answers: &'a [f64],
        /// Positive or not.
        labels: &'a [f64],
    },
    /// As they arrived: one at least, and whole ones.
    Encoded(&'a [u8]),
}

impl<'a> Wire<'a> for AnswerLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            AnswerLetter::Plain { answers, labels } => {
                let bits = |(answer, label): (&f64, &f64)| *answer as u16 | if *label > 0.0 { POSITIVE } else { 0 };
                out.extend(answers.iter().zip(labels).flat_map(|both| bits(both).to_le_bytes()));
            }
            AnswerLetter::Encoded(bytes) => out.extend_from_slice(bytes),
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let fits = !bytes.is_empty() && bytes.len().is_multiple_of(ANSWER_BYTES);
        if fits && bytes.len() <= ANSWER_BYTES * ROWS_MAX {
            Ok(AnswerLetter::Encoded(bytes))
        } else {
            Err(Reject::Malformed)
        }
    }

    fn vectors(&self) -> u64 {
        1
    }
}

fn decoded(bytes: &[u8]) -> impl Iterator<Item = (bool, u32)> + Clone {
    let answers = bytes.as_chunks::<ANSWER_BYTES>().0.iter().map(|&bytes| u16::from_le_bytes(bytes));
    answers.map(|bits| (bits & POSITIVE != 0, u32::from(bits & !POSITIVE)))
}

impl<Q: Question> Algorithm for Answers<Q> {
    type Data<'d> = Observations<'d>;
    type State = State;
    type Letter<'a> = AnswerLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Observations<'_>) -> usize {
        ANSWER_BYTES * ROWS_MAX
    }

    fn wake_rate(&self, _: Observations<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let mut me = State::default();
        let agent = cx.me;
        cx.scratch.clear();
        let rows = observations.rows().zip(0..);
        cx.scratch.extend(rows.map(|(values, row)| f64::from(self.question.answer(RowId { agent, row }, values))));
        // PRIVACY: one answer for each row, which one row moves, to everyone; the plan has one step of randomized response for all of them.
        let answers = cx.gate.respond(Track::Models, self.question.categories(), cx.scratch, Audience::Everyone)?;
        let labels = observations.points.labels;
        if agent == self.aggregator {
            (me.tally, me.heard) = (vec![0.0; self.question.tally_len()], vec![false; self.members as usize]);
            let answers = answers.into_inner();
            self.count(
                &mut me,
                agent,
                answers.iter().zip(labels).map(|(answer, label)| (*label > 0.0, *answer as u32)),
            );
            return Ok(me);
        }
        let letter = answers.with_public(Public::declare(labels), plain);
        // The first letter of all: there is room.
        let _ = cx.outbox.send_durable(self.aggregator, letter);
        Ok(me)
    }

    /// Nobody's clock ticks.
    fn on_wake(&self, _: &mut State, _: Observations<'_>, _: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        _: Observations<'_>,
        from: PeerId,
        letter: AnswerLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let AnswerLetter::Encoded(bytes) = letter else { return Err(Reject::Malformed) };
        if cx.me != self.aggregator || me.heard.get(from.index()) != Some(&false) {
            return Err(Reject::OutOfTurn);
        }
        if decoded(bytes).any(|(_, answer)| answer >= self.question.categories()) {
            return Err(Reject::Malformed);
        }
        self.count(me, from, decoded(bytes));
        Ok(())
    }

    fn is_done(&self, me: &State) -> bool {
        me.heard.is_empty() || me.reports == self.members
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        _: Observations<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        let mut me: State = saved::read(saved)?;
        let aggregates = cx.me == self.aggregator;
        let (tally, members) = if aggregates { (self.question.tally_len(), self.members as usize) } else { (0, 0) };
        saved::check(me.tally.len() == tally && me.heard.len() == members)?;
        // As many as could be counted one by one.
        saved::check(me.tally.iter().all(|count| count.abs() <= libm::ldexp(1.0, 52)))?;
        let heard = me.heard.iter().filter(|heard| **heard).count();
        saved::check(heard as u32 == me.reports && me.estimated <= me.reports)?;
        match aggregates {
            true => self.estimate(&mut me),
            false => saved::check(me == State::default())?,
        }
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _posted: &'a [f64]) -> &'a [f64] {
        &me.estimate
    }
}

fn plain<'v>(labels: &'v [f64], answers: &'v mut [f64]) -> AnswerLetter<'v> {
    AnswerLetter::Plain { answers, labels }
}
