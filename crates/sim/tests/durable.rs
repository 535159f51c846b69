//! Durable letters, alarms, rates and ends in the simulator: what a token needs of it.

mod support;

use sottovoce_algorithms::graphs;
use sottovoce_core::{
    Activity, Algorithm, CannotResume, Cx, DURABLE_WAITING_MAX, Full, Graph, Neighbours, PeerId, Peers, Reject, Role,
    Time, Wire,
};
use sottovoce_privacy::{Exhausted, Gate, Simulated};
use sottovoce_sim::{Clock, Faults, Partition, Settings, Simulation, Society, Status};
use std::collections::BTreeMap;
use support::settings;

/// A number.
#[derive(Clone, Copy)]
struct Number(u64);

impl Wire<'_> for Number {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, Reject> {
        bytes.try_into().map(|bytes| Number(u64::from_le_bytes(bytes))).map_err(|_| Reject::Malformed)
    }

    fn vectors(&self) -> u64 {
        1
    }
}

/// What the agents of these tests do.
#[derive(Clone, Copy, Default)]
struct Ways {
    /// At each wake, so many numbers to each neighbour, counting up to `most`.
    each: u64,
    most: u64,
    /// The first agent starts a token that makes so many hops around everyone in reach.
    hops: u64,
    /// Alarms after this span, again and again.
    alarm: Option<f64>,
    /// How often clocks tick; the agent with this number twice as often.
    rate: f64,
}

#[derive(Clone, Debug, Default)]
struct Diary {
    sent: BTreeMap<PeerId, u64>,
    full: u64,
    read: BTreeMap<PeerId, Vec<u64>>,
    rang: Vec<f64>,
    wakes: u64,
    role: Role,
    done: bool,
}

impl Algorithm for Ways {
    type Data<'d> = ();
    type State = Diary;
    type Letter<'a> = Number;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: ()) -> usize {
        8
    }

    fn wake_rate(&self, _: (), _: Peers<'_>) -> f64 {
        self.rate
    }

    fn start(&self, _: (), cx: &mut Cx<'_>) -> Result<Diary, Exhausted> {
        if let Some(span) = self.alarm {
            // The second one counts.
            cx.outbox.wake_at(Time(0.1));
            cx.outbox.wake_at(cx.now.after(Time(span)));
        }
        if self.hops > 0 && cx.me == PeerId(0) {
            self.pass_on(1, cx)?;
        }
        Ok(Diary { role: cx.role, ..Diary::default() })
    }

    fn on_wake(&self, me: &mut Diary, _: (), cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        me.wakes += 1;
        if let Some(span) = self.alarm {
            me.rang.push(cx.now.0);
            cx.outbox.wake_at(cx.now.after(Time(span)));
        }
        for peer in cx.peers.iter().map(|edge| edge.peer) {
            let sent = me.sent.entry(peer).or_default();
            for _ in 0..self.each.min(self.most - *sent) {
                let number = cx.gate.reveal(Number(*sent + 1))?;
                match cx.outbox.send_durable(peer, number) {
                    Ok(()) => *sent += 1,
                    Err(Full) => me.full += 1,
                }
            }
        }
        Ok(Activity { moved: 1.0 })
    }

    fn on_letter(&self, me: &mut Diary, _: (), from: PeerId, letter: Number, cx: &mut Cx<'_>) -> Result<(), Reject> {
        me.read.entry(from).or_default().push(letter.0);
        if self.hops > 0 {
            me.done = letter.0 + cx.reach.len() as u64 >= self.hops;
            if letter.0 < self.hops {
                self.pass_on(letter.0 + 1, cx)?;
            }
        }
        Ok(())
    }

    fn is_done(&self, me: &Diary) -> bool {
        me.done
    }

    fn save(&self, _: &Diary, _: &mut Vec<u8>) {}

    fn resume(&self, _: &[u8], _: Neighbours, _: (), _: &mut Cx<'_>) -> Result<Diary, CannotResume> {
        Err(CannotResume::Malformed)
    }

    fn model<'a>(&self, _: &'a Diary, _: &'a [f64]) -> &'a [f64] {
        &[]
    }
}

impl Ways {
    fn pass_on(&self, hop: u64, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        let next = PeerId((cx.me.0 + 1) % (cx.reach.len() as u32 + 1));
        let token = cx.gate.reveal(Number(hop))?;
        cx.outbox.send_durable(next, token).expect("one token");
        Ok(())
    }
}

const UNTIL: f64 = 40.0;

fn storm() -> Faults {
    let partitions = vec![Partition { from: 5.0, to: 15.0, share: 0.5 }];
    Faults {
        loss: 0.4,
        duplicate: 0.3,
        delay_mean: 2.0,
        delay_max: 9.0,
        leave: 0.3,
        die: 0.0,
        partitions,
        until: UNTIL,
    }
}

#[test]
fn durable_letters_are_read_once_and_in_order_in_any_storm() {
    let graph = graphs::circulant(9, 4).expect("a graph");
    let ways = Ways { each: 2, most: 60, rate: 1.0, ..Ways::default() };
    let mut late = 0;
    for seed in 0..20 {
        for faults in [Faults::default(), storm()] {
            let stormy = Settings { clock: Clock::Poisson, faults, ..settings(seed) };
            let mut run = Simulation::start(&ways, &graph, |_| (), &stormy).expect("an unlimited budget");
            let read = |run: &Simulation<'_, Ways, _>| {
                let mut all = 0;
                for agent in (0..9).map(PeerId) {
                    for (from, read) in &run.state(agent).read {
                        assert!(read.iter().copied().eq(1..=read.len() as u64), "{read:?}");
                        assert!(run.state(*from).sent[&agent] >= read.len() as u64);
                        all += read.len();
                    }
                }
                all
            };
            while run.now().0 < UNTIL {
                run.advance(50);
                read(&run);
            }
            let before = read(&run);
            run.advance(20_000);
            assert_eq!(read(&run), 9 * 4 * 60);
            late += 9 * 4 * 60 - before;
            assert_eq!(run.counters().durable_read, 9 * 4 * 60);
            assert!(run.counters().rejected.is_empty());
        }
    }
    assert!(late > 1000, "the storm delayed {late} letters beyond its end");
}

#[test]
fn letters_to_the_dead_are_bounded_and_the_algorithm_is_told() {
    let graph = Graph::complete(8).expect("a graph");
    let ways = Ways { each: 3, most: 500, rate: 1.0, ..Ways::default() };
    let faults = Faults { die: 0.3, until: 10.0, ..Faults::default() };
    let mut run = Simulation::start(&ways, &graph, |_| (), &Settings { faults, ..settings(3) }).expect("no budget");
    run.advance(60_000);
    let (dead, living): (Vec<PeerId>, Vec<PeerId>) = (0..8).map(PeerId).partition(|id| run.is_dead(*id));
    assert!(!dead.is_empty() && living.len() > 1, "{dead:?}");
    for a in &living {
        for b in &living {
            assert!(a == b || run.state(*b).read[a].len() == 500);
        }
        for b in &dead {
            let read = run.state(*b).read.get(a).map_or(0, Vec::len) as u64;
            assert_eq!(run.state(*a).sent[b] - read, DURABLE_WAITING_MAX as u64, "so many wait for {b:?}");
        }
        assert!(run.state(*a).full > 0);
    }
}

/// A token needs no clock: its hops are events, as many as are asked for, and at the end the run is done.
#[test]
fn hops_of_a_token_are_events_of_their_own_and_the_run_ends_with_them() {
    let (graph, reach) = (Graph::from_edges(5, &[]).expect("a graph"), Graph::complete(5).expect("a graph"));
    let roles = [Role::Member, Role::Server, Role::Board, Role::Aggregator];
    let society = Society { graph: &graph, reach: Some(&reach), roles: &roles };
    let ways = Ways { hops: 100, ..Ways::default() };
    for faults in [Faults::default(), storm()] {
        let calm = faults.is_none();
        let gates = |_| Gate::unplanned(Simulated::None);
        let stormy = Settings { faults, ..settings(4) };
        let mut run = Simulation::start_behind(gates, &ways, society, |_| (), &stormy).expect("an unlimited budget");
        assert_eq!(run.advance(7), Status::Running);
        assert_eq!(run.counters().durable_read, 7);
        assert_eq!(run.advance(1_000), Status::Done);
        assert_eq!((run.counters().durable_read, run.counters().wakes), (100, 0));
        assert_eq!(run.now().0 == 0.0, calm, "{:?}", run.now());
        let roles: Vec<Role> = (0..5).map(|k| run.state(PeerId(k)).role).collect();
        assert_eq!(roles, [Role::Member, Role::Server, Role::Board, Role::Aggregator, Role::Member]);
    }
}

#[test]
fn an_alarm_rings_when_it_was_set_to_and_once() {
    let graph = Graph::ring(4).expect("a graph");
    for rate in [0.0, 1.0] {
        for faults in [Faults::default(), Faults { duplicate: 0.5, ..Faults::default() }] {
            let ways = Ways { alarm: Some(2.5), rate, ..Ways::default() };
            let mut run =
                Simulation::start(&ways, &graph, |_| (), &Settings { faults, ..settings(4) }).expect("no budget");
            assert_eq!(run.advance(40), Status::Running);
            for agent in (0..4).map(|k| run.state(PeerId(k))) {
                if rate == 0.0 {
                    let expected: Vec<f64> = (1..=10).map(|k| 2.5 * f64::from(k)).collect();
                    assert_eq!(agent.rang, expected);
                } else {
                    // Each wake sets it anew: no span without a wake is longer.
                    assert!(agent.rang.windows(2).all(|pair| pair[1] - pair[0] <= 2.5), "{:?}", agent.rang);
                }
            }
        }
    }
    // Whoever is away hears it when it is back.
    let faults = Faults { leave: 1.0, until: 50.0, ..Faults::default() };
    let ways = Ways { alarm: Some(1.0), ..Ways::default() };
    let mut run = Simulation::start(&ways, &graph, |_| (), &Settings { faults, ..settings(4) }).expect("no budget");
    run.advance(400);
    let mut longest = 0.0f64;
    for agent in (0..4).map(|k| run.state(PeerId(k))) {
        longest = agent.rang.windows(2).map(|pair| pair[1] - pair[0]).fold(longest, f64::max);
        assert!(agent.rang.last().is_some_and(|last| *last > 50.0), "{:?}", agent.rang);
    }
    assert!(longest > 1.5, "{longest}");
}

#[test]
fn a_run_with_durable_letters_is_repeated_to_the_bit() {
    let graph = graphs::circulant(9, 4).expect("a graph");
    let ways = Ways { each: 1, most: 50, alarm: Some(3.0), rate: 0.5, ..Ways::default() };
    let outcome = || {
        let stormy = Settings { clock: Clock::Poisson, faults: storm(), ..settings(9) };
        let mut run = Simulation::start(&ways, &graph, |_| (), &stormy).expect("an unlimited budget");
        run.advance(300);
        run.advance(700);
        (format!("{:?}", (0..9).map(|k| run.state(PeerId(k)).clone()).collect::<Vec<_>>()), run.counters().clone())
    };
    assert_eq!(outcome(), outcome());
}
