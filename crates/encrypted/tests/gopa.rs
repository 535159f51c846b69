//! A few members and a board, whose letters arrive in any order, and who die in any phase.

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::Goal;
use sottovoce_algorithms::{Bounds, Observations, Points};
use sottovoce_core::{Algorithm, Coin, Cx, Graph, Neighbours, Outbox, PeerId, Posts, Reject, Role, Rows, Time, Wire};
use sottovoce_crypto::fixed_point::{from_ring, to_ring};
use sottovoce_crypto::pad::RevealedPad;
use sottovoce_encrypted::gopa::{Gopa, GopaConfig, GopaLetter, Phase, State};
use sottovoce_privacy::audit::Recording;
use sottovoce_privacy::{Audience, Entropy, Event, Exact, Gate, Idealized, Plan, Secrets, Simulated, Sum, Track};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const NOISE: f64 = 3.0;

fn config(members: u32, noise: Option<f64>) -> GopaConfig {
    GopaConfig {
        members,
        finishing: members,
        others: members - 1,
        neighbours: (members - 1).min(4),
        threshold: 2,
        rounds: 1,
        board: PeerId(0),
        columns: 2,
        range: Bounds { low: -1.0, high: 3.0 },
        unit: RingUnit::Record,
        goal: Goal::Sum,
        learns: None,
        noise,
        timeout: 5.0,
    }
}

/// Two columns, one to three rows.
fn rows(members: u32, seed: u64) -> Vec<Vec<f64>> {
    let mut coin = Coin::new(seed, 1, 1);
    (0..members).map(|_| (0..2 * (1 + coin.below(3))).map(|_| 5.0 * coin.unit() - 1.5).collect()).collect()
}

fn observed(values: &[f64]) -> Observations<'_> {
    let labels = &values[..values.len() / 2];
    Observations { points: Points { dimension: 2, features: values, labels }, bounds: None }
}

/// Who dies after how many events of its own; the start is the first.
type Deaths = BTreeMap<u32, u32>;

/// What went over the wire, in its order.
type Wiretap = Vec<(u32, u32, GopaLetter)>;

struct Town<'g> {
    gopa: &'g Gopa,
    rows: &'g [Vec<f64>],
    states: Vec<State>,
    gates: Vec<Gate<Simulated>>,
    mail: BTreeMap<(u32, u32), VecDeque<Vec<u8>>>,
    wire: Wiretap,
    alarm: Option<Time>,
    now: Time,
    events: Vec<u32>,
    deaths: Deaths,
    seed: u64,
    rejects: Vec<Reject>,
    /// Whether somebody's state is not its own any more: then nobody is interrupted.
    is_damaged: bool,
    /// Where secrets are those of processes: then pairs agree as real peers do.
    entropies: Option<Vec<Entropy>>,
}

impl<'g> Town<'g> {
    /// Everyone has started, in a simulation.
    fn new(gopa: &'g Gopa, rows: &'g [Vec<f64>], deaths: Deaths, seed: u64) -> Self {
        Self::with_secrets(gopa, rows, deaths, seed, None)
    }

    /// Everyone has started, with keys that pairs agree on.
    fn agreeing(gopa: &'g Gopa, rows: &'g [Vec<f64>], deaths: Deaths, seed: u64) -> Self {
        let entropy = |id: u32| Entropy::beside(&mut Exact::seeded(seed, id), seed, id);
        let entropies = (0..gopa.config().members).map(entropy).collect();
        Self::with_secrets(gopa, rows, deaths, seed, Some(entropies))
    }

    fn with_secrets(
        gopa: &'g Gopa,
        rows: &'g [Vec<f64>],
        deaths: Deaths,
        seed: u64,
        entropies: Option<Vec<Entropy>>,
    ) -> Self {
        let n = gopa.config().members;
        let plan = gopa.config().noise.map(|noise_multiplier| {
            let steps = vec![Event::Gaussian { noise_multiplier }; gopa.config().rounds as usize];
            Arc::new(Plan::with_tracks(vec![(Track::Sums, steps)], f64::INFINITY, 0.5, &Sum).expect("any budget"))
        });
        let gate = |id: u32| match &plan {
            None => Gate::unplanned(Simulated::None),
            Some(plan) => {
                let inner = Simulated::Idealized(Idealized::new(seed, id));
                Gate::planned(plan.clone(), Simulated::Recording(Box::new(Recording::new(inner))))
            }
        };
        let mut town = Town {
            gopa,
            rows,
            states: Vec::new(),
            gates: (0..n).map(gate).collect(),
            mail: BTreeMap::new(),
            wire: Vec::new(),
            alarm: None,
            now: Time::default(),
            events: vec![0; n as usize],
            deaths,
            seed,
            rejects: Vec::new(),
            is_damaged: false,
            entropies,
        };
        for id in 0..n {
            let state = town.event(id, |gopa, data, cx| gopa.start(data, cx).expect("nothing is charged"));
            town.states.push(state);
        }
        town
    }

    fn is_dead(&self, id: u32) -> bool {
        self.deaths.get(&id).is_some_and(|&events| self.events[id as usize] >= events)
    }

    /// One event of one agent. What it says leaves unless it dies before: then nothing has happened.
    fn event<R>(&mut self, id: u32, work: impl FnOnce(&Gopa, Observations<'_>, &mut Cx<'_>) -> R) -> R {
        let graph = Graph::Complete { n: self.gopa.config().members };
        let peers = graph.peers(PeerId(id));
        let rows = Rows::zeros(self.gopa.config().members as usize, 0);
        let (mut outbox, mut scratch) = (Outbox::new(self.gopa.letter_bytes_max(observed(&self.rows[0]))), Vec::new());
        let number = u64::from(self.events[id as usize]);
        let mut cx = Cx {
            me: PeerId(id),
            role: Role::Member,
            now: self.now,
            peers,
            reach: peers,
            coin: Coin::new(self.seed, id, number),
            secret: match &mut self.entropies {
                Some(entropies) => Secrets::of(&mut entropies[id as usize]),
                None => Secrets::simulated(self.seed, id, number),
            },
            gate: &mut self.gates[id as usize],
            posts: Posts::Board { rows: &rows, me: PeerId(id) },
            scratch: &mut scratch,
            outbox: &mut outbox,
        };
        let result = work(self.gopa, observed(&self.rows[id as usize]), &mut cx);
        self.events[id as usize] += 1;
        self.alarm = outbox.alarm().or(self.alarm);
        for letter in outbox.letters() {
            self.wire.push((id, letter.to.0, GopaLetter::decode(letter.bytes).expect("own letter")));
            self.mail.entry((id, letter.to.0)).or_default().push_back(letter.bytes.to_vec());
        }
        result
    }

    /// Delivers the first letter of a pair.
    fn deliver(&mut self, from: u32, to: u32) {
        let queue = self.mail.get_mut(&(from, to)).expect("a pair with letters");
        let bytes = queue.pop_front().expect("a letter");
        if queue.is_empty() {
            self.mail.remove(&(from, to));
        }
        self.hand(from, to, GopaLetter::decode(&bytes).expect("own letter"));
    }

    fn hand(&mut self, from: u32, to: u32, letter: GopaLetter) {
        // An interruption before every event: what is saved is all that the agent has.
        let mut bytes = Vec::new();
        self.gopa.save(&self.states[to as usize], &mut bytes);
        let mut state = match self.is_damaged {
            true => self.states[to as usize].clone(),
            false => self.event_without_effect(to, &bytes),
        };
        let read = self.event(to, |gopa, data, cx| gopa.on_letter(&mut state, data, PeerId(from), letter, cx));
        self.states[to as usize] = state;
        self.rejects.extend(read.err());
    }

    fn event_without_effect(&mut self, id: u32, bytes: &[u8]) -> State {
        let state = self.event(id, |gopa, data, cx| gopa.resume(bytes, Neighbours::Same, data, cx).expect("own bytes"));
        self.events[id as usize] -= 1;
        state
    }

    /// Letters in any order, pair by pair; when none is left that can arrive, the board's alarm rings.
    fn run(&mut self) {
        let mut coin = Coin::new(self.seed, 2, 2);
        for _ in 0..100_000 {
            let ready: Vec<(u32, u32)> = self.mail.keys().filter(|(_, to)| !self.is_dead(*to)).copied().collect();
            if !ready.is_empty() {
                let (from, to) = ready[coin.below(ready.len())];
                self.deliver(from, to);
            } else if let Some(at) = self.alarm.take().filter(|_| !self.gopa.is_done(&self.states[0])) {
                self.now = at;
                let mut state = self.states[0].clone();
                self.event(0, |gopa, data, cx| gopa.on_wake(&mut state, data, cx).expect("nothing is charged"));
                self.states[0] = state;
            } else {
                return;
            }
        }
        panic!("it never ends");
    }

    /// What a member has contributed, noise included, in steps.
    fn contributed(&self, id: u32) -> Vec<i64> {
        match self.gates[id as usize].noise() {
            Simulated::Recording(noise) => noise.releases()[0].output.iter().map(|&value| value as i64).collect(),
            _ => self.gopa.contribution(observed(&self.rows[id as usize]), &[]).0,
        }
    }

    fn list(&self) -> Vec<u32> {
        self.states[0].list().expect("the board").1
    }

    fn estimate(&self, id: u32) -> &[f64] {
        self.gopa.model(&self.states[id as usize], &[])
    }

    /// The sum over some members, as the estimate would say it.
    fn sum_of(&self, list: &[u32]) -> Vec<f64> {
        let mut sums = [0i64; 2];
        for &id in list {
            sums.iter_mut().zip(self.contributed(id)).for_each(|(sum, value)| *sum += value);
        }
        sums.iter().map(|&sum| self.gopa.value(to_ring(sum))).collect()
    }
}

/// Of each opener, other member and round: whether its pad and whether its share was opened.
fn opened(wire: &Wiretap) -> BTreeMap<(u32, u32, u32), (bool, bool)> {
    let mut found: BTreeMap<(u32, u32, u32), (bool, bool)> = BTreeMap::new();
    for (from, _, letter) in wire {
        match letter {
            GopaLetter::Pads { round, pads } => {
                pads.iter().for_each(|(id, ..)| found.entry((*from, *id, *round)).or_default().0 = true);
            }
            GopaLetter::Shares { round, shares } => {
                shares.iter().for_each(|(id, _)| found.entry((*from, *id, *round)).or_default().1 = true);
            }
            _ => {}
        }
    }
    found
}

#[test]
fn check_04_e_the_sum_is_that_of_values_and_shares_of_noise_to_the_last_bit() {
    for (members, noise) in [(3, None), (8, None), (8, Some(NOISE)), (15, Some(NOISE))] {
        let config = GopaConfig { threshold: 2.min(members - 1), ..config(members, noise) };
        let (gopa, rows) = (Gopa::new(config).expect("good parameters"), rows(members, 1));
        assert!(gopa.holds(3));
        let mut town = match members {
            15 => Town::agreeing(&gopa, &rows, Deaths::new(), 7),
            _ => Town::new(&gopa, &rows, Deaths::new(), 7),
        };
        town.run();
        assert_eq!((town.list().len() as u32, town.rejects.len()), (members, 0));
        let all: Vec<u32> = (0..members).collect();
        for id in 0..members {
            assert!(gopa.is_done(&town.states[id as usize]) && town.states[id as usize].knows());
            assert_eq!(town.estimate(id), town.sum_of(&all));
            let ledger = town.gates[id as usize].ledger();
            assert_eq!(ledger.releases(), 1, "charged once");
            let charge = ledger.charges().next().expect("a charge");
            assert_eq!((charge.audience, charge.track), (Audience::Coalition, Track::Sums));
        }
        if noise.is_none() {
            let exact = rows
                .iter()
                .flat_map(|rows| rows.chunks(2))
                .fold([0.0, 0.0], |sum, row| [sum[0] + row[0].clamp(-1.0, 3.0), sum[1] + row[1].clamp(-1.0, 3.0)]);
            assert!(town.estimate(1).iter().zip(exact).all(|(found, exact)| (found - exact).abs() < 1e-6));
        }
        let masked = |id: u32| {
            town.wire.iter().find_map(|(from, _, letter)| match letter {
                GopaLetter::Publish { masked, .. } if *from == id => Some(from_ring(u64::from_le_bytes(masked[0]))),
                _ => None,
            })
        };
        assert!((1..members).all(|id| masked(id).is_some_and(|masked| masked != town.contributed(id)[0])));
    }
}

/// CHECK 04.f, with members that die before they enrol, publish, open pads or open shares; letters in any order.
#[test]
fn check_04_f_whoever_leaves_in_any_phase_the_sum_is_exactly_that_of_those_who_finished() {
    let (mut sums, mut voids, mut phases) = (0, 0, BTreeSet::new());
    for seed in 0..1_000 {
        let mut coin = Coin::new(seed, 3, 3);
        let members = 6 + coin.below(9) as u32;
        let deaths: Deaths =
            (1..members).filter(|_| coin.unit() < 0.25).map(|id| (id, [1, 2, 3, 4][id as usize % 4])).collect();
        let config =
            GopaConfig { finishing: 3, others: 2, neighbours: 5, threshold: 2, ..config(members, Some(NOISE)) };
        let (gopa, rows) = (Gopa::new(config).expect("good parameters"), rows(members, seed));
        // Keys are agreed on in one run of twenty.
        let begin = if seed % 20 == 0 { Town::agreeing } else { Town::new };
        let mut town = begin(&gopa, &rows, deaths.clone(), seed);
        town.run();
        assert_eq!(town.states[0].list().map(|(phase, _)| phase), Some(Phase::Over), "seed {seed}");
        let list = town.list();
        for (key, both) in opened(&town.wire) {
            assert_ne!(both, (true, true), "seed {seed}: {key:?} opened its pad and its share");
        }
        if list.is_empty() {
            voids += 1;
            assert!(!town.states.iter().any(State::knows), "seed {seed}");
            continue;
        }
        sums += 1;
        assert!(list.len() >= 3, "seed {seed}");
        let expected = town.sum_of(&list);
        for id in (0..members).filter(|id| !town.is_dead(*id)) {
            assert_eq!(town.estimate(id), expected, "seed {seed}, member {id}, list {list:?}");
        }
        // Who lives finishes, unless too few of its picks do; and who dies may have.
        for (from, _, letter) in &town.wire {
            if let GopaLetter::Enrol { picks, .. } = letter {
                let opens = picks.iter().filter(|id| list.contains(id)).count() >= 2;
                assert!(deaths.contains_key(from) || list.contains(from) == opens, "seed {seed}: {from} of {list:?}");
            }
        }
        phases.extend(deaths.iter().map(|(id, events)| (*events, list.contains(id))));
    }
    assert!(sums > 10 * voids, "{sums} sums, {voids} void");
    // Dead before the roster, after publishing, after opening pads.
    assert!(phases.is_superset(&BTreeSet::from([(1, false), (2, false), (3, false), (4, true)])), "{phases:?}");
}

/// Member 6 publishes, and the letter does not arrive.
fn withheld<'g>(gopa: &'g Gopa, rows: &'g [Vec<f64>], seed: u64) -> (Town<'g>, Vec<u8>) {
    let mut town = Town::new(gopa, rows, Deaths::from([(6, 2)]), seed);
    while town.states[6].published() == 0 {
        let ready: Vec<(u32, u32)> = town.mail.keys().copied().collect();
        let (from, to) = *ready.iter().find(|(from, to)| *to == 6 || *from != 6).or(ready.first()).expect("letters");
        town.deliver(from, to);
    }
    let mut held = town.mail.remove(&(6, 0)).expect("it has published");
    (town, held.pop_back().expect("a letter"))
}

/// A publication that comes when its pads are open, or again after a restart, is refused, and stays closed.
#[test]
fn a_publication_that_comes_late_shows_nothing() {
    let config = GopaConfig { finishing: 5, others: 4, ..config(7, Some(NOISE)) };
    let (gopa, rows) = (Gopa::new(config).expect("good parameters"), rows(7, 5));
    // A graph in which member 6 shares no pad with the board, whose letters to itself nobody sees.
    let apart = |town: &Town<'_>| {
        let roster = town.wire.iter().find_map(|(_, to, letter)| match letter {
            GopaLetter::Roster { neighbours } if *to == 6 => Some(neighbours.iter().all(|(id, _)| *id != 0)),
            _ => None,
        });
        roster.expect("member 6 has enrolled")
    };
    let (mut town, held) =
        (0..100).map(|seed| withheld(&gopa, &rows, seed)).find(|(town, _)| apart(town)).expect("one of a hundred");
    town.run();
    assert_eq!(town.list(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(town.estimate(2), town.sum_of(&town.list()));
    let late = GopaLetter::decode(&held).expect("own letter");
    let GopaLetter::Publish { masked, .. } = &late else { panic!("a publication") };
    // With every pad that was opened, it is not what it hides.
    let mut values: Vec<u64> = masked.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let mut count = 0;
    for (_, _, letter) in &town.wire {
        if let GopaLetter::Pads { pads, .. } = letter {
            for (_, key, subtracts) in pads.iter().filter(|(id, ..)| *id == 6) {
                let mut bytes = [0; RevealedPad::BYTES];
                bytes[..32].copy_from_slice(key);
                // The other end's sign.
                bytes[32] = u8::from(!subtracts);
                RevealedPad::from_bytes(&bytes).expect("a pad").remove(&mut values).expect("few");
                count += 1;
            }
        }
    }
    assert!(count >= 4, "all pads with member 6 are open: it picked four");
    let hidden: Vec<u64> = town.contributed(6).into_iter().map(to_ring).collect();
    assert!(values.iter().zip(&hidden).all(|(found, hidden)| found != hidden));
    assert!(!town.wire.iter().any(
        |(_, _, letter)| matches!(letter, GopaLetter::Shares { shares, .. } if shares.iter().any(|(id, _)| *id == 6))
    ));
    town.rejects.clear();
    town.hand(6, 0, late.clone());
    town.hand(6, 0, late);
    assert_eq!(town.rejects, [Reject::OutOfTurn; 2]);
}

#[test]
fn a_neighbour_opens_its_pad_or_its_share_whatever_the_board_asks_for_and_whenever() {
    let config = GopaConfig { finishing: 5, others: 4, ..config(6, Some(NOISE)) };
    let (gopa, rows) = (Gopa::new(config).expect("good parameters"), rows(6, 6));
    let mut town = Town::new(&gopa, &rows, Deaths::new(), 6);
    // Until all have published, and before the board answers.
    while (0..6).any(|id| town.states[id].published() == 0) {
        let (from, to) = *town.mail.keys().find(|(_, to)| *to != 0).or(town.mail.keys().next()).expect("letters");
        town.deliver(from, to);
    }
    let sealed = |wire: &Wiretap, dealer: u32, holder: u32| {
        wire.iter().find_map(|(from, _, letter)| match letter {
            GopaLetter::Publish { shares, .. } if *from == dealer => {
                shares.iter().find(|(id, _)| *id == holder).map(|(_, bytes)| (dealer, *bytes))
            }
            _ => None,
        })
    };
    let (dealer, holder) = (1..6)
        .flat_map(|dealer| (1..6).map(move |holder| (dealer, holder)))
        .find(|&(dealer, holder)| sealed(&town.wire, dealer, holder).is_some())
        .expect("somebody picked another");
    let share = sealed(&town.wire, dealer, holder).expect("found");
    town.rejects.clear();
    // Too few have finished; another round; somebody who is not the board.
    town.hand(0, holder, GopaLetter::Reveal { round: 0, finished: 4, shares: vec![share] });
    town.hand(0, holder, GopaLetter::Reveal { round: 1, finished: 6, shares: vec![share] });
    town.hand(dealer, holder, GopaLetter::Reveal { round: 0, finished: 6, shares: vec![share] });
    town.hand(0, holder, GopaLetter::Gone { round: 0, gone: vec![holder] });
    assert_eq!(town.rejects.len(), 4, "{:?}", town.rejects);
    assert!(opened(&town.wire).is_empty());
    // The pad first: the share stays closed. In a copy of the same member the share first: the pad stays closed.
    let before = town.states[holder as usize].clone();
    town.rejects.clear();
    town.hand(0, holder, GopaLetter::Gone { round: 0, gone: vec![dealer] });
    assert!(town.rejects.is_empty(), "{:?}", town.rejects);
    town.hand(0, holder, GopaLetter::Reveal { round: 0, finished: 6, shares: vec![share] });
    assert_eq!(town.rejects, [Reject::OutOfTurn]);
    assert_eq!(opened(&town.wire), BTreeMap::from([((holder, dealer, 0), (true, false))]));
    town.states[holder as usize] = before;
    town.wire.clear();
    town.rejects.clear();
    town.hand(0, holder, GopaLetter::Reveal { round: 0, finished: 6, shares: vec![share] });
    town.hand(0, holder, GopaLetter::Gone { round: 0, gone: vec![dealer] });
    town.hand(0, holder, GopaLetter::Reveal { round: 0, finished: 6, shares: vec![share] });
    assert_eq!(town.rejects, [Reject::OutOfTurn; 2]);
    assert_eq!(opened(&town.wire), BTreeMap::from([((holder, dealer, 0), (false, true))]));
}

#[test]
fn with_fewer_than_promised_nobody_opens_anything_and_there_is_no_sum() {
    let config = GopaConfig { finishing: 6, others: 5, neighbours: 6, ..config(7, Some(NOISE)) };
    let (gopa, rows) = (Gopa::new(config).expect("good parameters"), rows(7, 8));
    for (events, published) in [(1, false), (2, true)] {
        // Dead before they publish, or after they did and before the board has asked; then pads are opened, and the round is void.
        let mut town = Town::new(&gopa, &rows, Deaths::from([(3, events), (5, 1)]), 8);
        town.run();
        assert_eq!(town.states[3].published() == 1, published);
        assert!(town.list().is_empty() && !town.states.iter().any(State::knows));
        assert!(opened(&town.wire).values().all(|(_, share)| !share));
        assert!((0..7).filter(|id| ![3, 5].contains(id)).all(|id| gopa.is_done(&town.states[id])));
    }
    // Two of seven are missing when members enrol: nobody publishes.
    let mut town = Town::new(&gopa, &rows, Deaths::new(), 9);
    town.mail.remove(&(3, 0));
    town.mail.remove(&(5, 0));
    town.run();
    assert!(!town.wire.iter().any(|(_, _, letter)| matches!(letter, GopaLetter::Publish { .. })));
    assert!((0..7).all(|id| town.gates[id].ledger().releases() == 0), "and nobody is charged");
}

/// Several sums with one agreement: pads and sealed shares never repeat, and somebody who was away for a round is back for the next.
#[test]
fn later_rounds_have_pads_of_their_own() {
    let config = GopaConfig { rounds: 3, finishing: 4, others: 3, goal: Goal::Mean, ..config(6, None) };
    let (gopa, rows) = (Gopa::new(config).expect("good parameters"), rows(6, 10));
    let mut town = Town::new(&gopa, &rows, Deaths::new(), 10);
    town.run();
    assert!((0..6).all(|id| gopa.is_done(&town.states[id]) && town.gates[id].ledger().releases() == 3));
    let weight = rows.iter().map(|rows| rows.len() / 2).sum::<usize>() as f64;
    let all: Vec<u32> = (0..6).collect();
    let mean: Vec<f64> = town.sum_of(&all).iter().map(|sum| sum / weight).collect();
    assert!(town.estimate(4).iter().zip(&mean).all(|(found, mean)| (found - mean).abs() < 1e-12));
    let mut seen = BTreeSet::new();
    for (from, _, letter) in &town.wire {
        if let GopaLetter::Publish { masked, shares, .. } = letter {
            assert!(masked.iter().all(|word| seen.insert(word.to_vec())), "{from}: the same data under the same pads");
            assert!(shares.iter().all(|(_, bytes)| seen.insert(bytes.to_vec())), "{from}: the same shares");
        }
    }
}

/// The same secrets, and an amount moved from one member to a neighbour: everything that anyone can see is the same but the two masked values, and
/// these differ by the amount alone. The pad between the two, which nobody opens, is uniform, so both worlds have this view equally often.
#[test]
fn data_with_the_same_honest_sum_are_seen_alike_but_for_what_one_pad_hides() {
    let config = GopaConfig { finishing: 4, others: 3, ..config(6, None) };
    let gopa = Gopa::new(config).expect("good parameters");
    let mut first = rows(6, 11);
    (first[1][0], first[2][0]) = (0.5, 1.0);
    let mut second = first.clone();
    (second[1][0], second[2][0]) = (0.75, 0.75);
    let wires = [&first, &second].map(|rows| {
        let mut town = Town::new(&gopa, rows, Deaths::from([(5, 1)]), 11);
        town.run();
        // All that the others know when it is over, keys and pads included: the board, two members, and one that has gone.
        let known = [0, 3, 4, 5].map(|id| {
            let mut bytes = Vec::new();
            gopa.save(&town.states[id], &mut bytes);
            bytes
        });
        (town.wire, [1, 2].map(|id| gopa.contribution(observed(&rows[id]), &[]).0[0]), known)
    });
    let [(wire, before, known), (other, after, known_too)] = wires;
    assert!(known == known_too, "a coalition of all others knows the same in both worlds, to the bit");
    assert_eq!(wire.len(), other.len());
    assert_eq!(after[0] - before[0], before[1] - after[1], "the same sum");
    assert_ne!(after[0], before[0]);
    let mut moved = [0i64; 6];
    for ((from, to, letter), (from_too, to_too, other)) in wire.iter().zip(&other) {
        assert_eq!((from, to), (from_too, to_too));
        let (mut letter, mut other) = (letter.clone(), other.clone());
        if let (GopaLetter::Publish { masked, .. }, GopaLetter::Publish { masked: masked_too, .. }) =
            (&mut letter, &mut other)
        {
            let [one, two] = [masked[0], masked_too[0]].map(u64::from_le_bytes);
            moved[*from as usize] = from_ring(two.wrapping_sub(one));
            masked[0] = masked_too[0];
        }
        assert_eq!(letter, other);
    }
    assert_eq!(moved, [0, after[0] - before[0], after[1] - before[1], 0, 0, 0]);
    let is_shared = |letter: &GopaLetter| matches!(letter, GopaLetter::Roster { neighbours } if neighbours.iter().any(|(id, _)| *id == 2));
    assert!(wire.iter().any(|(_, to, letter)| *to == 1 && is_shared(letter)), "they share a pad");
    assert!(
        !opened(&wire).keys().any(|key| [(1, 2, 0), (2, 1, 0)].contains(key) && opened(&wire)[key].0),
        "and nobody opens it"
    );
}

/// Damaged bytes are refused, or lead on to whatever they say: never to a panic.
#[test]
fn damaged_states_never_panic() {
    let config = GopaConfig { finishing: 4, others: 3, rounds: 2, ..config(6, None) };
    let (gopa, rows) = (Gopa::new(config).expect("good parameters"), rows(6, 12));
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..200 {
        let mut coin = Coin::new(seed, 4, 4);
        let mut town = Town::new(&gopa, &rows, Deaths::from([(5, 2)]), seed);
        for _ in 0..coin.below(40) {
            let Some(&(from, to)) = town.mail.keys().find(|(_, to)| !town.is_dead(*to)) else { break };
            town.deliver(from, to);
        }
        let victim = if coin.unit() < 0.6 { 0 } else { 1 };
        let mut bytes = Vec::new();
        gopa.save(&town.states[victim as usize], &mut bytes);
        let place = coin.below(bytes.len());
        bytes[place] ^= 1 << coin.below(8);
        let back = town.event(victim, |gopa, data, cx| gopa.resume(&bytes, Neighbours::Same, data, cx));
        town.events[victim as usize] -= 1;
        match back {
            Err(_) => refused += 1,
            Ok(state) => {
                taken += 1;
                (town.states[victim as usize], town.is_damaged) = (state, true);
                town.run();
            }
        }
    }
    assert!(refused > 10 && taken > 10, "{refused} refused, {taken} taken");
    let changed = Town::new(&gopa, &rows, Deaths::new(), 1).event(1, |gopa, data, cx| {
        let mut bytes = Vec::new();
        let state = gopa.start(data, cx).expect("nothing is charged");
        gopa.save(&state, &mut bytes);
        gopa.resume(&bytes, Neighbours::Changed, data, cx).is_err()
    });
    assert!(changed, "other members than those it enrolled with");
}
