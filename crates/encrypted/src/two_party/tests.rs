//! The protocol between a few members, with letters that get lost, doubled and overtaken, and members that crash at any moment.

use super::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use sottovoce_algorithms::Points;
use sottovoce_core::{Coin, Delivery, Outbox, Posts, Role, Wire};
use sottovoce_crypto::two_party::pair::Brought;
use sottovoce_crypto::two_party::share::combine;
use sottovoce_privacy::{Audience, Event, Gate, Idealized, Plan, Secrets, Sum};
use std::sync::Arc;

const RANGE: Bounds = Bounds { low: 0.0, high: 15.0 };

fn config(statistic: PairStatistic, members: u32, pairs: u32, epsilon: Option<f64>) -> TwoPartyConfig {
    TwoPartyConfig { members, aggregator: 1, statistic, range: RANGE, bits: 4, epsilon, pairs, timeout: 5.0 }
}

/// One row of two numbers for each member, and its class.
fn rows(members: u32) -> Vec<[f64; 3]> {
    (0..members).map(|k| [f64::from(k * 7 % 16), f64::from(k * 5 % 13), f64::from(k % 2)]).collect()
}

#[derive(Clone)]
struct Mail {
    from: u32,
    to: u32,
    delivery: Delivery,
    bytes: Vec<u8>,
}

/// What goes wrong.
#[derive(Clone, Copy, Default)]
struct Weather {
    loss: f64,
    doubling: f64,
    crash: f64,
    /// Says nothing from the beginning, or once it has committed.
    silent: Option<u32>,
    keeps_its_secret: Option<u32>,
}

struct World<'p, E: Engine> {
    protocol: &'p TwoParty<E>,
    rows: Vec<[f64; 3]>,
    states: Vec<State<E>>,
    gates: Vec<Gate<Idealized>>,
    alarms: Vec<Option<f64>>,
    mail: Vec<Mail>,
    /// Every share that left: its pair, the side, the attempt.
    shares: Vec<((u32, u32), bool, u32)>,
    /// Wakes at which the plan was done. Only a state that was damaged comes to that.
    exhausted: u32,
    now: f64,
    events: u64,
    coin: Coin,
    weather: Weather,
}

fn plan(protocol: &TwoParty<impl Engine>) -> Arc<Plan> {
    let epsilon = protocol.mechanism().epsilon().expect("a private one");
    let steps = vec![Event::RandomizedResponse { epsilon }; protocol.config().pairs as usize];
    Arc::new(Plan::new(steps, 1.0 + protocol.config().epsilon.expect("some"), 0.0, &Sum).expect("in the budget"))
}

impl<'p, E: Engine> World<'p, E> {
    fn start(protocol: &'p TwoParty<E>, seed: u64, weather: Weather) -> Self {
        let members = protocol.config().members;
        let gate = |id| match protocol.config().epsilon {
            None => Gate::unplanned(Idealized::new(seed, id)),
            Some(_) => Gate::planned(plan(protocol), Idealized::new(seed, id)),
        };
        let mut world = World {
            protocol,
            rows: rows(members),
            states: Vec::new(),
            gates: (0..members).map(gate).collect(),
            alarms: vec![None; members as usize],
            mail: Vec::new(),
            shares: Vec::new(),
            exhausted: 0,
            now: 0.0,
            events: seed << 32,
            coin: Coin::new(seed, 0, 0),
            weather,
        };
        for id in 0..members {
            let state = world.event(id, |protocol, data, cx| protocol.start(data, cx)).expect("in the plan");
            world.states.push(state);
        }
        world
    }

    fn event<R>(&mut self, id: u32, work: impl FnOnce(&TwoParty<E>, Observations<'_>, &mut Cx<'_>) -> R) -> R {
        self.events += 1;
        let (mut outbox, mut scratch) = (Outbox::new(1 << 24), Vec::new());
        let members = self.protocol.config().members;
        let peers = Peers::Complete { me: id, n: members };
        let row = self.rows[id as usize];
        let columns = if self.protocol.config().statistic == PairStatistic::Kendall { 2 } else { 1 };
        let points = Points { dimension: columns, features: &row[..columns], labels: &row[2..] };
        let data = Observations { points, bounds: Some(RANGE) };
        let mut cx = Cx {
            me: PeerId(id),
            role: Role::Member,
            now: Time(self.now),
            peers,
            reach: peers,
            coin: Coin::new(1, id, self.events),
            secret: Secrets::simulated(9, id, self.events),
            gate: &mut self.gates[id as usize],
            posts: Posts::Unheard { zero: &[] },
            scratch: &mut scratch,
            outbox: &mut outbox,
        };
        let result = work(self.protocol, data, &mut cx);
        if let Some(at) = outbox.alarm() {
            self.alarms[id as usize] = Some(at.0);
        }
        for letter in outbox.letters() {
            let mail = Mail { from: id, to: letter.to.0, delivery: letter.delivery, bytes: letter.bytes.to_vec() };
            let said = PairLetter::decode(&mail.bytes).expect("own encoding");
            assert!(mail.bytes.len() <= self.protocol.letter_bytes_max(data), "{:?} is too long", said.kind);
            if said.kind == Kind::Share {
                let pair = (id.min(said.other), id.max(said.other));
                self.shares.push((pair, pair.0 == id, said.number));
            }
            let is_silent = self.weather.silent == Some(id)
                || self.weather.keeps_its_secret == Some(id) && said.kind == Kind::Reveal;
            if !is_silent {
                self.mail.push(mail);
            }
        }
        result
    }

    /// One letter, a crash or an alarm; false when nothing will ever happen again.
    fn step(&mut self) -> bool {
        let members = self.states.len() as u32;
        if self.coin.unit() < self.weather.crash {
            let id = self.coin.below(members as usize) as u32;
            self.crash(id);
        }
        if self.mail.is_empty() {
            let next = self.alarms.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let Some(id) = self.alarms.iter().position(|at| *at == Some(next)) else { return false };
            self.now = self.now.max(next);
            self.alarms[id] = None;
            let mut states = std::mem::take(&mut self.states);
            let woke = self.event(id as u32, |protocol, data, cx| protocol.on_wake(&mut states[id], data, cx));
            self.states = states;
            self.exhausted += u32::from(woke.is_err());
            return true;
        }
        // Durable letters of one pair keep their order.
        let drawn = self.coin.below(self.mail.len());
        let (from, to) = (self.mail[drawn].from, self.mail[drawn].to);
        let is_durable = self.mail[drawn].delivery == Delivery::Durable;
        let first = |mail: &Mail| (mail.from, mail.to, mail.delivery) == (from, to, Delivery::Durable);
        let at = if is_durable { self.mail.iter().position(first).expect("this one") } else { drawn };
        let mail = self.mail.remove(at);
        if !is_durable {
            if self.coin.unit() < self.weather.loss {
                return true;
            }
            if self.coin.unit() < self.weather.doubling {
                self.mail.push(mail.clone());
            }
        }
        let _ = self.hand_over(mail.from, mail.to, &mail.bytes);
        true
    }

    fn hand_over(&mut self, from: u32, to: u32, bytes: &[u8]) -> Result<(), Reject> {
        let mut states = std::mem::take(&mut self.states);
        let result = self.event(to, |protocol, data, cx| {
            let letter = PairLetter::decode(bytes)?;
            protocol.on_letter(&mut states[to as usize], data, PeerId(from), letter, cx)
        });
        self.states = states;
        result
    }

    fn crash(&mut self, id: u32) {
        let mut bytes = Vec::new();
        self.protocol.save(&self.states[id as usize], &mut bytes);
        let back = self.event(id, |protocol, data, cx| protocol.resume(&bytes, Neighbours::Same, data, cx));
        self.states[id as usize] = back.expect("what was saved");
    }

    fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it does not end");
    }

    /// What the aggregator knows.
    fn estimate(&self) -> Option<f64> {
        let aggregator = &self.states[self.protocol.config().aggregator as usize];
        aggregator.knows().then(|| self.protocol.model(aggregator, &[])[0])
    }

    /// No pair has two shares of a side, or shares of two attempts.
    fn check_shares(&self) {
        for (pair, garbles, attempt) in &self.shares {
            let same: Vec<_> = self.shares.iter().filter(|(other, ..)| other == pair).collect();
            let sides = same.iter().filter(|(_, side, _)| side == garbles).count();
            assert_eq!(sides, 1, "{pair:?}: a side tells twice, {same:?}");
            assert!(same.iter().all(|(_, _, other)| other == attempt), "{pair:?}: two attempts, {same:?}");
        }
    }
}

/// The mean of h over the pairs that meet, from everyone's rows.
fn expected<E: Engine>(world: &World<'_, E>) -> f64 {
    let number = |id: u32, column: usize| world.rows[id as usize][column] as u64;
    let (mut sum, mut count) = (0.0, 0.0);
    for (id, state) in world.states.iter().enumerate() {
        for meeting in state.meetings().iter().filter(|meeting| meeting.garbles) {
            let (a, b) = (id as u32, meeting.other);
            let gap = number(a, 0) as f64 - number(b, 0) as f64;
            let h = match world.protocol.config().statistic {
                PairStatistic::Gini => gap.abs(),
                PairStatistic::Variance => gap * gap / 2.0,
                PairStatistic::Kendall => {
                    let second = number(a, 1) as f64 - number(b, 1) as f64;
                    if gap * second == 0.0 { 0.0 } else { (gap * second).signum() }
                }
                PairStatistic::Auc => {
                    let positive_is_first = world.rows[a as usize][2] > 0.0;
                    f64::from(u8::from(if positive_is_first { gap > 0.0 } else { gap < 0.0 }))
                }
            };
            sum += h * f64::from(meeting.pair.instances);
            count += f64::from(meeting.pair.instances);
        }
    }
    sum / count
}

const STATISTICS: [PairStatistic; 4] =
    [PairStatistic::Auc, PairStatistic::Kendall, PairStatistic::Gini, PairStatistic::Variance];

#[test]
fn without_noise_the_aggregator_alone_learns_exactly_the_mean_over_the_pairs() {
    for statistic in STATISTICS {
        let protocol = TwoParty::<Circuits>::new(config(statistic, 5, 3, None)).expect("fine");
        let mut world = World::start(&protocol, 1, Weather::default());
        world.run();
        let estimate = world.estimate().expect("it ended");
        assert!((estimate - expected(&world)).abs() < 1e-12, "{statistic:?}: {estimate} {}", expected(&world));
        let knows: Vec<bool> = world.states.iter().map(State::knows).collect();
        assert_eq!(knows, [false, true, false, false, false]);
        assert!(world.states.iter().all(|state| protocol.is_done(state)));
        world.check_shares();
    }
}

#[test]
fn in_any_storm_an_answer_leaves_once_and_is_charged_once_before_it() {
    let protocol = TwoParty::<Circuits>::new(config(PairStatistic::Kendall, 6, 2, Some(2.0))).expect("fine");
    let ideal = TwoParty::<Ideal>::new(config(PairStatistic::Kendall, 6, 2, Some(2.0))).expect("fine");
    for seed in 0..6 {
        storm(&protocol, seed);
    }
    let ended = (0..300).filter(|seed| storm(&ideal, *seed)).count();
    assert!(ended > 250, "{ended}");
}

/// Whether the aggregator came to know something.
fn storm<E: Engine>(protocol: &TwoParty<E>, seed: u64) -> bool {
    let weather = Weather { loss: 0.15, doubling: 0.3, crash: 0.05, ..Weather::default() };
    let mut world = World::start(protocol, seed, weather);
    world.run();
    world.check_shares();
    assert_eq!(world.exhausted, 0);
    for (id, (state, gate)) in world.states.iter().zip(&world.gates).enumerate() {
        let begun = state.meetings().iter().filter(|meeting| meeting.charged);
        let answers: u32 = begun.map(|meeting| meeting.pair.instances).sum();
        assert_eq!(gate.ledger().releases(), u64::from(answers), "{seed}: {id}");
        assert!(answers <= 2);
        assert!(gate.ledger().charges().all(|charge| charge.audience == Audience::Aggregator));
    }
    // Whoever sent a share is charged for it.
    for ((a, b), garbles, _) in &world.shares {
        let (own, other) = if *garbles { (a, b) } else { (b, a) };
        let meeting = world.states[*own as usize].meetings().iter().find(|meeting| meeting.other == *other);
        assert!(meeting.is_some_and(|meeting| meeting.charged && meeting.settled));
    }
    world.estimate().is_some()
}

#[test]
fn who_is_gone_or_keeps_its_secret_is_left_out_and_the_beacon_begun_anew() {
    let protocol = TwoParty::<Circuits>::new(config(PairStatistic::Gini, 5, 1, None)).expect("fine");
    let gone = Weather { silent: Some(3), ..Weather::default() };
    let keeps = Weather { keeps_its_secret: Some(0), ..Weather::default() };
    for (weather, who, rounds) in [(gone, 3, 1), (keeps, 0, 2)] {
        let mut world = World::start(&protocol, 3, weather);
        world.run();
        let estimate = world.estimate().expect("it ended");
        assert!((estimate - expected(&world)).abs() < 1e-12);
        let meets = |state: &State<Circuits>| state.meetings().iter().any(|meeting| meeting.other == who);
        assert!(!world.states.iter().any(meets) && world.states[who as usize].meetings().is_empty());
        assert!(world.states.iter().filter(|state| !state.meetings().is_empty()).count() == 4);
        assert_eq!(world.states[1].kept.desk.as_ref().map(|_| world.states[2].kept.round), Some(rounds));
    }
}

#[test]
fn a_member_that_leaves_takes_its_pairs_along_and_no_others() {
    let protocol = TwoParty::<Ideal>::new(config(PairStatistic::Gini, 8, 3, None)).expect("fine");
    let mut world = World::start(&protocol, 3, Weather::default());
    while !world.mail.iter().any(|mail| mail.bytes[0] == Kind::Beacon as u8) {
        assert!(world.step());
    }
    // It has revealed, and is never heard of again.
    world.weather.silent = Some(6);
    world.run();
    let (answers, decoded, pairs) = world.states[1].answers().expect("the aggregator");
    let lost = world.states[6].meetings().len() as u32;
    assert!(lost > 0 && decoded == pairs - lost && answers > 0, "{answers} {decoded} {pairs} {lost}");
    world.states[6] = State::default();
    for state in &mut world.states {
        state.kept.meetings.retain(|meeting| meeting.other != 6);
    }
    assert!((world.estimate().expect("an estimate") - expected(&world)).abs() < 1e-12);
}

#[test]
fn a_beacon_that_does_not_fit_its_commitments_is_refused() {
    let protocol = TwoParty::<Circuits>::new(config(PairStatistic::Gini, 4, 1, None)).expect("fine");
    let mut world = World::start(&protocol, 3, Weather::default());
    let is_beacon = |mail: &Mail| mail.bytes[0] == Kind::Beacon as u8;
    while !world.mail.iter().any(is_beacon) {
        assert!(world.step());
    }
    let mail = world.mail.iter().find(|mail| is_beacon(mail)).expect("one").clone();
    for at in 9..mail.bytes.len() {
        let mut bytes = mail.bytes.clone();
        bytes[at] ^= 1;
        assert_eq!(world.hand_over(1, mail.to, &bytes), Err(Reject::Malformed), "byte {at}");
    }
    assert_eq!(world.hand_over(2, mail.to, &mail.bytes), Err(Reject::OutOfTurn), "by somebody else");
    assert_eq!(world.hand_over(1, mail.to, &mail.bytes), Ok(()));
    assert_eq!(world.hand_over(1, mail.to, &mail.bytes), Err(Reject::OutOfTurn), "again");
}

#[test]
fn damaged_letters_and_states_never_panic() {
    let protocol = TwoParty::<Circuits>::new(config(PairStatistic::Kendall, 4, 1, Some(1.0))).expect("fine");
    let mut coin = Coin::new(5, 0, 0);
    for seed in 0..3 {
        let mut world = World::start(&protocol, seed, Weather::default());
        for _ in 0..60 {
            if let Some(mail) = world.mail.first().cloned() {
                for _ in 0..20 {
                    let mut bytes = mail.bytes.clone();
                    let at = coin.below(bytes.len());
                    bytes[at] ^= 1 << coin.below(8);
                    if coin.below(4) == 0 {
                        bytes.truncate(at);
                    }
                    let _ = world.hand_over(coin.below(4) as u32, mail.to, &bytes);
                }
            }
            let mut saved = Vec::new();
            protocol.save(&world.states[1], &mut saved);
            let at = coin.below(saved.len());
            saved[at] ^= 1 << coin.below(8);
            let back = world.event(1, |protocol, data, cx| protocol.resume(&saved, Neighbours::Same, data, cx));
            if let Ok(state) = back {
                world.states[1] = state;
            }
            world.step();
        }
    }
}

/// What the aggregator reads of a pair, by an engine.
fn answers<E: Engine>(protocol: &TwoParty<E>, numbers: [&[u64]; 2], instances: usize, event: u64) -> Vec<u64> {
    let pair = Pair { instances: instances as u32, garbler_larger: true };
    let session = protocol.session([7; 32], (0, 1), pair, 1);
    let [mine, theirs] = numbers.map(|numbers| Brought { numbers, width: protocol.mechanism.bits(), instances });
    let secret = |id| Secrets::simulated(11, id, event);
    let (opened, opening) = E::open(&session, &mut secret(0)).expect("simulated");
    let (answered, choices) = E::answer(&session, &opening.into_inner(), &mut secret(1)).expect("honest");
    let (requested, request) = E::request(opened, &choices.into_inner(), theirs, &mut secret(2)).expect("honest");
    let (tables, garbler) = E::garble(answered, &request.into_inner(), mine, &mut secret(3)).expect("honest");
    let evaluator = E::evaluate(requested, &tables.into_inner()).expect("honest");
    let outputs = combine(&session, &garbler.to_bytes(), &evaluator.to_bytes()).expect("of one attempt");
    (0..instances).map(|instance| outputs.number(instance)).collect()
}

/// CHECK 03.p: garbled circuits, the ideal functionality and the formula have one law.
#[test]
fn check_03_p_circuits_and_the_ideal_functionality_tell_by_the_same_law() {
    for (statistic, numbers, epsilon) in [
        (PairStatistic::Kendall, [[3, 9], [5, 11]], 1.0),
        (PairStatistic::Auc, [[9, 0], [5, 0]], 0.5),
        (PairStatistic::Gini, [[3, 0], [12, 0]], 4.0),
        (PairStatistic::Variance, [[3, 0], [12, 0]], 8.0),
    ] {
        let config = config(statistic, 2, 1, Some(epsilon));
        let (real, ideal) = (TwoParty::<Circuits>::new(config), TwoParty::<Ideal>::new(config));
        let (real, ideal) = (real.expect("fine"), ideal.expect("fine"));
        let columns = if statistic == PairStatistic::Kendall { 2 } else { 1 };
        let numbers = [&numbers[0][..columns], &numbers[1][..columns]];
        let batch = real.batch_max().min(96) as usize;
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mechanism = real.mechanism();
        let mut told: [Vec<f64>; 3] = Default::default();
        for event in 0..1920u64.div_ceil(batch as u64) {
            told[0].extend(answers(&real, numbers, batch, event).iter().map(|told| mechanism.decode(*told)));
            told[1].extend(answers(&ideal, numbers, batch, event).iter().map(|told| mechanism.decode(*told)));
        }
        let draw = |_| mechanism.decode(mechanism.draw(numbers[0], numbers[1], Larger::Garbler, &mut rng));
        told[2] = (0..told[0].len() * 10).map(draw).collect();
        // Bins at quantiles of the third; two samples at a time.
        let mut sorted = told[2].clone();
        sorted.sort_by(f64::total_cmp);
        let mut edges: Vec<f64> = (1..8).map(|k| sorted[k * sorted.len() / 8]).collect();
        edges.dedup();
        let count = |told: &[f64]| {
            let mut counts = vec![0.0; edges.len() + 1];
            told.iter().for_each(|value| counts[edges.partition_point(|edge| edge <= value)] += 1.0);
            counts
        };
        let law: Vec<f64> = count(&told[2]).iter().map(|count| count / told[2].len() as f64).collect();
        for (name, told) in [("circuits", &told[0]), ("ideal", &told[1])] {
            let size = told.len() as f64;
            let terms = count(told).into_iter().zip(&law).filter(|(_, share)| **share > 0.0);
            let chi2: f64 = terms.map(|(count, share)| square(count - size * share) / (size * share)).sum();
            assert!(chi2 < 28.0, "{statistic:?} by {name}: {chi2}, of at most 7 degrees of freedom");
        }
    }
}

/// CHECK 03.q: the variance by the formula, around the law of values and around the values themselves.
#[test]
fn check_03_q_the_variance_is_that_of_the_formula() {
    let (members, permutations) = (20_u32, 3_u32);
    let range = Bounds { low: 0.0, high: 1.0 };
    for (statistic, epsilon) in [(PairStatistic::Gini, 4.0), (PairStatistic::Gini, 40.0), (PairStatistic::Kendall, 6.0)]
    {
        let mechanism = Mechanism::new(statistic, 16, range, Some(epsilon / f64::from(permutations))).expect("fine");
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut coin = Coin::new(2, 0, 0);
        let mut row = || [0; 2].map(|_: u64| mechanism.number(coin.unit()));
        let fixed: Vec<[u64; 2]> = (0..members).map(|_| row()).collect();
        let mut moments = [[0.0; 2]; 2];
        let rounds = 40_000;
        let mut order: Vec<u32> = (0..members).collect();
        for _ in 0..rounds {
            let fresh: Vec<[u64; 2]> = (0..members).map(|_| row()).collect();
            for (rows, moments) in [&fresh, &fixed].into_iter().zip(&mut moments) {
                let mut sum = 0.0;
                for _ in 0..permutations {
                    let mut met = Vec::new();
                    pairing::matching(&mut order, &mut rng, |a, b| met.push((a as usize, b as usize)));
                    for (a, b) in met {
                        sum += mechanism.decode(mechanism.draw(&rows[a], &rows[b], Larger::Garbler, &mut rng));
                    }
                }
                let estimate = sum / f64::from(permutations * members / 2);
                moments[0] += estimate;
                moments[1] += estimate * estimate;
            }
        }
        let variance = |moments: [f64; 2]| moments[1] / f64::from(rounds) - square(moments[0] / f64::from(rounds));
        let noise = mechanism.noise_variance();
        let law = mechanism.guess().around_the_law(members, permutations, noise);
        let ratio = variance(moments[0]) / law;
        assert!((ratio - 1.0).abs() < 0.05, "{statistic:?} {epsilon}: {ratio}");
        // z1 and z2 of the fixed values, over pairs of different members.
        let exact = Mechanism::new(statistic, 16, range, None).expect("fine");
        let mut h = |a: usize, b: usize| exact.decode(exact.draw(&fixed[a], &fixed[b], Larger::Garbler, &mut rng));
        let all: Vec<Vec<f64>> =
            (0..20).map(|a| (0..20).map(|b| if a == b { 0.0 } else { h(a, b) }).collect()).collect();
        let n = f64::from(members);
        let mean = all.iter().flatten().sum::<f64>() / (n * (n - 1.0));
        let gaps = |a: usize| (0..20).filter(move |b| *b != a).map(move |b| (a, b));
        let pairs = (0..20).flat_map(gaps).map(|(a, b)| square(all[a][b] - mean)).sum::<f64>() / (n * (n - 1.0));
        let by_member = |a: usize| gaps(a).map(|(a, b)| all[a][b] - mean).sum::<f64>();
        let squares = |a: usize| gaps(a).map(|(a, b)| square(all[a][b] - mean)).sum::<f64>();
        let means = (0..20).map(|a| square(by_member(a)) - squares(a)).sum::<f64>() / (n * (n - 1.0) * (n - 2.0));
        let own = Spread { means, pairs }.around_the_values(members, permutations, noise);
        let ratio = variance(moments[1]) / own;
        assert!((ratio - 1.0).abs() < 0.05, "{statistic:?} {epsilon}, around the values: {ratio}");
    }
}

#[test]
fn more_pairs_are_worth_their_noise_only_at_a_large_epsilon() {
    let best = |epsilon| best_pairs(PairStatistic::Kendall, 8, RANGE, epsilon, 1000).expect("fine");
    assert_eq!([best(0.25), best(1.0), best(2.0)], [1, 1, 1]);
    assert!(best(20.0) > 2, "{}", best(20.0));
    assert!(best_pairs(PairStatistic::Gini, 32, RANGE, 1e-9, 10).is_err());
}

#[test]
fn answers_are_unbiased() {
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    for statistic in STATISTICS {
        for bits in [1, 4, 16, 32] {
            let mechanism = Mechanism::new(statistic, bits, RANGE, Some(2.0)).expect("fine");
            let exact = Mechanism::new(statistic, bits, RANGE, None).expect("fine");
            let numbers = [[3.0, 1.0], [11.0, 8.0]].map(|row: [f64; 2]| row.map(|value| mechanism.number(value)));
            let truth = exact.decode(exact.draw(&numbers[0], &numbers[1], Larger::Evaluator, &mut rng));
            let mut mean = 0.0;
            for _ in 0..40_000 {
                let told = mechanism.draw(&numbers[0], &numbers[1], Larger::Evaluator, &mut rng);
                mean += mechanism.decode(told) / 40_000.0;
            }
            let error = libm::sqrt(mechanism.noise_variance() / 40_000.0);
            assert!((mean - truth).abs() < 4.5 * error.max(1e-3), "{statistic:?} {bits}: {mean} {truth} {error}");
        }
    }
}

#[test]
fn an_ideal_functionality_has_no_message_outside_of_a_simulation() {
    let protocol = TwoParty::<Ideal>::new(config(PairStatistic::Gini, 2, 1, None)).expect("fine");
    let session = protocol.session([0; 32], (0, 1), Pair { instances: 1, garbler_larger: true }, 1);
    let mut noise = sottovoce_privacy::Secret::from_os().expect("entropy");
    let mut entropy = sottovoce_privacy::Entropy::beside(&mut noise, 0, 0);
    let mut real = Secrets::of(&mut entropy);
    assert_eq!(Ideal::open(&session, &mut real).map(drop), Err(sottovoce_crypto::Flaw::NotSimulated));
    let opening = Ideal::open(&session, &mut Secrets::simulated(0, 0, 0)).expect("simulated").1.into_inner();
    assert_eq!(Ideal::answer(&session, &opening, &mut real).map(drop), Err(sottovoce_crypto::Flaw::NotSimulated));
    assert!(Circuits::open(&session, &mut real).is_ok());
}

fn square(x: f64) -> f64 {
    x * x
}
