//! The letters of a swap, read by one agent without a driver.

use super::super::gosta::Gosta;
use super::super::kernel::{Auc, Gini};
use super::super::u2_gossip::U2Gossip;
use super::*;
use crate::{Bounds, Dataset, Survey};
use sottovoce_core::{Coin, Graph, Outbox, Posts, Role};
use sottovoce_privacy::{Gate, NoNoise, Secrets};

fn letter(kind: SwapKind, numbers: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    SwapLetter { kind, numbers: Numbers::Plain(numbers) }.encode(&mut bytes);
    bytes
}

#[test]
fn letters_are_read_as_they_were_written_and_nothing_else_is_a_letter() {
    for (kind, first) in [
        (SwapKind::Offer { side: 0 }, 0),
        (SwapKind::Offer { side: 1 }, 1),
        (SwapKind::Answer, 2),
        (SwapKind::Decline, 3),
    ] {
        let bytes = letter(kind, &[1.5, -0.0]);
        assert_eq!((bytes[0], bytes.len()), (first, 17));
        let read = SwapLetter::decode(&bytes).expect("a letter");
        assert_eq!((read.kind, read.numbers.iter().collect::<Vec<_>>()), (kind, vec![1.5, -0.0]));
        assert_eq!(read.vectors(), u64::from(first < 3));
    }
    for wrong in [&[][..], &[4], &[255, 0, 0, 0, 0, 0, 0, 0, 0], &[2, 0, 0, 0], &[0; 8]] {
        assert!(SwapLetter::decode(wrong).is_err(), "{wrong:?}");
    }
    let infinite = letter(SwapKind::Answer, &[f64::INFINITY]);
    assert!(SwapLetter::decode(&infinite).is_err(), "only finite numbers are believed");
}

/// The middle agent of three, without a driver.
struct Alone<'a, K, R: Rule> {
    algorithm: &'a Exchange<K, R>,
    survey: &'a Survey,
    state: State<R::Estimate>,
    gate: Gate<NoNoise>,
    outbox: Outbox,
    scratch: Vec<f64>,
    events: u64,
}

impl<'a, K: PairKernel, R: Rule> Alone<'a, K, R> {
    fn new(algorithm: &'a Exchange<K, R>, survey: &'a Survey) -> Self {
        let mut gate = Gate::without_privacy();
        let (mut outbox, mut scratch) = (Outbox::default(), Vec::new());
        let mut cx = Self::cx(survey, &mut gate, &mut outbox, &mut scratch, 0);
        let state = algorithm.start(survey.observations(PeerId(1)), &mut cx).expect("no budget");
        Alone { algorithm, survey, state, gate, outbox, scratch, events: 0 }
    }

    fn cx<'c>(
        survey: &'c Survey,
        gate: &'c mut Gate<NoNoise>,
        outbox: &'c mut Outbox,
        scratch: &'c mut Vec<f64>,
        event: u64,
    ) -> Cx<'c> {
        let peers = survey.graph.peers(PeerId(1));
        Cx {
            me: PeerId(1),
            role: Role::Member,
            now: Time(event as f64),
            peers,
            reach: peers,
            coin: Coin::new(1, 1, event),
            secret: Secrets::simulated(1, 1, event),
            gate,
            posts: Posts::Unheard { zero: &[] },
            scratch,
            outbox,
        }
    }

    fn wake(&mut self) {
        self.events += 1;
        self.outbox.clear();
        let data = self.survey.observations(PeerId(1));
        let mut cx = Self::cx(self.survey, &mut self.gate, &mut self.outbox, &mut self.scratch, self.events);
        self.algorithm.on_wake(&mut self.state, data, &mut cx).expect("no budget");
    }

    /// What it answers, or why it does not believe the letter.
    fn read(&mut self, from: u32, bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, Reject> {
        self.events += 1;
        self.outbox.clear();
        let data = self.survey.observations(PeerId(1));
        let mut cx = Self::cx(self.survey, &mut self.gate, &mut self.outbox, &mut self.scratch, self.events);
        let letter = SwapLetter::decode(bytes)?;
        self.algorithm.on_letter(&mut self.state, data, PeerId(from), letter, &mut cx)?;
        Ok(self.outbox.letters().map(|letter| (letter.to.0, letter.bytes.to_vec())).collect())
    }
}

fn survey(columns: usize, values: &[f64], labels: &[f64]) -> Survey {
    let mut data = Dataset::new(columns);
    data.push_agent(&[0.25], &[1.0]);
    data.push_agent(values, labels);
    data.push_agent(&[0.75], &[-1.0]);
    let bounds = Some(Bounds { low: 0.0, high: 1.0 });
    let edges = [(0, 1, 1.0), (1, 2, 1.0)];
    Survey { data, graph: Graph::from_edges(3, &edges).expect("a graph"), bounds }
}

#[test]
fn an_offer_is_answered_at_once_and_a_node_that_waits_declines() {
    let survey = survey(1, &[0.5], &[1.0]);
    let gosta = Gosta::new(Gini, 1.0).expect("good parameters");
    let mut one = Alone::new(&gosta, &survey);
    // Its own observation for another one, and the mean of both estimates.
    let answers = one.read(2, &letter(SwapKind::Offer { side: 1 }, &[0.75, 0.4])).expect("believed");
    assert_eq!(answers, [(2, letter(SwapKind::Answer, &[0.5, 0.2]))]);
    assert_eq!(one.state.pair(0), [0.5, 0.75]);
    // At its first meeting a node knows its own h alone.
    assert_eq!(one.state.estimates()[0].estimate(), 0.0);
    one.wake();
    let to = one.state.open()[0].peer.0;
    let other = 2 - to;
    let declined = one.read(other, &letter(SwapKind::Offer { side: 1 }, &[0.25, 0.0])).expect("believed");
    assert_eq!(declined, [(other, letter(SwapKind::Decline, &[]))]);
    assert_eq!(one.state.pair(0), [0.5, 0.75], "what it offered is still with it");
    // The answer ends the meeting: half of the mean, half of |0.5 - 0.75|.
    assert_eq!(one.read(to, &letter(SwapKind::Answer, &[1.0, 0.05])).expect("believed"), []);
    assert_eq!((one.state.pair(0), one.state.open().len()), (&[0.5, 1.0][..], 0));
    assert!((one.state.estimates()[0].estimate() - (0.05 + 0.25) / 2.0).abs() < 1e-15);
    // A decline ends it too, and leaves everything.
    one.wake();
    let to = one.state.open()[0].peer.0;
    assert_eq!(one.read(to, &letter(SwapKind::Decline, &[])).expect("believed"), []);
    assert_eq!((one.state.pair(0), one.state.open().len()), (&[0.5, 1.0][..], 0));
}

#[test]
fn what_no_row_could_be_or_nobody_asked_for_is_rejected_and_changes_nothing() {
    let labelled = survey(1, &[0.5, 0.125], &[1.0, -1.0]);
    let gosta = Gosta::new(Auc::default(), 1.0).expect("good parameters");
    let mut one = Alone::new(&gosta, &labelled);
    let before = one.state.pairs.clone();
    for (from, bytes, reason) in [
        (1, letter(SwapKind::Offer { side: 1 }, &[0.5, 1.0, 0.0]), Reject::NotANeighbour),
        (7, letter(SwapKind::Offer { side: 1 }, &[0.5, 1.0, 0.0]), Reject::NotANeighbour),
        (0, letter(SwapKind::Offer { side: 1 }, &[0.5, 1.0]), Reject::WrongDimension),
        (0, letter(SwapKind::Offer { side: 1 }, &[0.5, 1.0, 0.0, 0.0]), Reject::WrongDimension),
        (0, letter(SwapKind::Decline, &[0.5]), Reject::WrongDimension),
        // The first observation of a node is its own, for ever.
        (0, letter(SwapKind::Offer { side: 0 }, &[0.5, 1.0, 0.0]), Reject::Malformed),
        // Beyond the bounds of all rows, or too large to compute with.
        (0, letter(SwapKind::Offer { side: 1 }, &[1.5, 1.0, 0.0]), Reject::NotFinite),
        (0, letter(SwapKind::Offer { side: 1 }, &[0.5, 1e31, 0.0]), Reject::NotFinite),
        (0, letter(SwapKind::Answer, &[0.5, 1.0, 0.0]), Reject::OutOfTurn),
        (0, letter(SwapKind::Decline, &[]), Reject::OutOfTurn),
    ] {
        assert_eq!(one.read(from, &bytes).expect_err("not believed"), reason, "{bytes:?}");
        assert_eq!(one.state.pairs, before);
    }
    let u2 = U2Gossip::new(Gini, 1.0, 2).expect("good parameters");
    let plain = survey(1, &[0.5], &[1.0]);
    let mut one = Alone::new(&u2, &plain);
    assert!(one.read(0, &letter(SwapKind::Offer { side: 0 }, &[0.25])).is_ok(), "there both wander");
    assert_eq!(one.state.pair(0), [0.25, 0.5]);
}
