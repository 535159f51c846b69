//! What each member sees of each other when tokens of a walk are issued again, exactly; and that walks end.
//!
//! A token has a number for each contribution and for each noise, so that it says of what it is the sum. From that follows the joint law of all that a member was sent, refused tokens
//! included: the sensitivity of its view, whitened by the covariance of what it has not drawn itself. Holders run the real code, but for what they add.

use super::*;
use sottovoce_core::{Coin, DURABLE_WAITING_MAX, Graph, Outbox, Posts, Role, Rows, Time, Wire};
use sottovoce_privacy::{Idealized, Plan, Secrets, Simulated, Sum};
use std::cell::RefCell;
use std::sync::Arc;

const SIGMA: f64 = 3.0;
const GAUSSIAN: Event = Event::Gaussian { noise_multiplier: SIGMA };

/// Adds a number of its own for each contribution and each noise.
struct Symbols {
    len: usize,
}

/// What a number of the token stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Symbol {
    /// A contribution.
    Contribution { member: u32 },
    /// A noise, and who drew it.
    Noise { member: u32 },
}

/// Who holds the token, and what all numbers stand for.
#[derive(Clone, Copy)]
struct Holder<'d> {
    member: u32,
    symbols: &'d RefCell<Vec<Symbol>>,
}

impl Movement for Symbols {
    type Data<'d> = Holder<'d>;

    fn numbers(&self) -> usize {
        self.len
    }

    fn outcome_len(&self) -> usize {
        self.len
    }

    fn sensitivity(&self) -> f64 {
        1.0
    }

    fn step<'m>(
        &self,
        receipt: Option<Receipt>,
        holder: Holder<'_>,
        law: Option<Event>,
        _: &mut Gate,
        token: Moving<'_, 'm>,
    ) -> (Released<&'m mut [f64]>, u64) {
        let Holder { member, symbols } = holder;
        token.moved.copy_from_slice(token.received);
        let mut add = |symbol, value| {
            let mut symbols = symbols.borrow_mut();
            if let Some(number) = token.moved.get_mut(symbols.len()) {
                *number = value;
            }
            symbols.push(symbol);
        };
        let weight = u64::from(receipt.is_some());
        if receipt.is_some() {
            add(Symbol::Contribution { member }, 1.0);
        }
        if let Some(Event::Gaussian { noise_multiplier }) = law {
            add(Symbol::Noise { member }, noise_multiplier / SIGMA);
        }
        let free = || Gate::without_privacy().charge(Track::Models, 1.0, Track::Models.audience()).expect("free");
        (receipt.unwrap_or_else(free).release(token.moved), weight)
    }

    fn holds(&self, value: f64) -> bool {
        is_number(value)
    }

    fn outcome(&self, tokens: &[Ended], out: &mut [f64]) {
        out.copy_from_slice(&tokens[0].values);
    }
}

/// A contribution, and when it was made: of which token, at which hop.
#[derive(Clone, Copy, Debug)]
struct Made {
    member: u32,
    number: usize,
    epoch: Epoch,
    hop: u64,
}

/// Members round a table, their letters in one bag: any may be read next.
struct Table {
    walk: Walk<Symbols>,
    states: Vec<State>,
    gates: Vec<Gate<Simulated>>,
    bag: Vec<(PeerId, PeerId, Vec<u8>)>,
    /// By member: all tokens that it was sent, and for which hop of which of them.
    views: Vec<Vec<(Epoch, u64, Vec<f64>)>>,
    made: Vec<Made>,
    symbols: RefCell<Vec<Symbol>>,
    graph: Graph,
    versions: Rows,
    events: u32,
    reissues: u32,
    /// A member that has room for letters to one other alone.
    narrow: Option<(PeerId, PeerId)>,
}

impl Table {
    fn start(members: u32, hops: u64, contributions: u32, len: usize) -> Table {
        let config = WalkConfig {
            members,
            hops,
            tokens: 1,
            contributions: Some(contributions),
            law: Some(GAUSSIAN),
            beyond: Beyond::Noise,
            track: Track::Token,
            timeout: Some(1.0),
        };
        let again = config.spacing().expect("spaced").again(GAUSSIAN);
        let tracks = [(Track::Token, GAUSSIAN), (Track::Reissues, again)];
        let tracks = tracks.map(|(track, law)| (track, vec![law; contributions as usize])).to_vec();
        let plan = Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"));
        let gate = |k| Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(1, k)));
        let mut table = Table {
            walk: Walk::new(config, Symbols { len }).expect("a walk"),
            states: Vec::new(),
            gates: (0..members).map(gate).collect(),
            bag: Vec::new(),
            views: vec![Vec::new(); members as usize],
            made: Vec::new(),
            symbols: RefCell::default(),
            graph: Graph::complete(members as usize).expect("a graph"),
            versions: Rows::zeros(1, 0),
            events: 0,
            reissues: 0,
            narrow: None,
        };
        table.states = (0..members).map(|_| State::new(&table.walk)).collect();
        for k in 0..members {
            let state = table.event(PeerId(k), |walk, _, data, cx| walk.start(data, cx).expect("planned"));
            table.states[k as usize] = state;
        }
        table
    }

    fn event<R>(
        &mut self,
        me: PeerId,
        work: impl FnOnce(&Walk<Symbols>, &mut State, Holder<'_>, &mut Cx<'_>) -> R,
    ) -> R {
        let mut outbox = Outbox::default();
        let peers = self.graph.peers(me);
        if let Some((_, open)) = self.narrow.filter(|(narrow, _)| *narrow == me) {
            let others = peers.iter().map(|edge| edge.peer).filter(|peer| *peer != open);
            outbox.set_waiting(others.map(|peer| (peer, DURABLE_WAITING_MAX)));
        }
        self.events += 1;
        let result = work(
            &self.walk,
            &mut self.states[me.index()],
            Holder { member: me.0, symbols: &self.symbols },
            &mut Cx {
                me,
                role: Role::Member,
                now: Time(0.0),
                peers,
                reach: peers,
                coin: Coin::new(1, me.0, 0),
                secret: Secrets::simulated(1, me.0, u64::from(self.events)),
                gate: &mut self.gates[me.index()],
                posts: Posts::PerEdge { versions: &self.versions, mine: 0, seen: &[] },
                scratch: &mut Vec::new(),
                outbox: &mut outbox,
            },
        );
        self.bag.extend(outbox.letters().map(|letter| (me, letter.to, letter.bytes.to_vec())));
        result
    }

    /// The letter at this place of the bag is read.
    fn read(&mut self, place: usize) {
        let (from, to, bytes) = self.bag.remove(place);
        let letter = WalkLetter::decode(&bytes).expect("a letter");
        let mut came = None;
        if let WalkLetter::Token(token) | WalkLetter::Outcome(token) = letter {
            let values = token.values.iter().collect();
            self.views[to.index()].push((token.epoch, token.hop, values));
            came = Some(token);
        }
        let (before, made) = (self.symbols.borrow().len(), self.states[to.index()].contributions());
        let read = self.event(to, |walk, me, data, cx| walk.on_letter(me, data, from, letter, cx));
        assert_eq!(read, Ok(()), "everyone is honest: {letter:?} from {from:?} to {to:?}");
        if self.states[to.index()].contributions() > made {
            let token = came.expect("a token came");
            self.note(to.0, before, token.epoch, token.hop);
        }
    }

    /// Who has contributed to which token, at which hop: at the first of those that it made alone. Contributions are spaced, so that there is one.
    fn note(&mut self, member: u32, before: usize, epoch: Epoch, hop: u64) {
        let symbols = self.symbols.borrow();
        let is_contribution = |symbol: &Symbol| matches!(symbol, Symbol::Contribution { .. });
        let new: Vec<usize> = (before..symbols.len()).filter(|k| is_contribution(&symbols[*k])).collect();
        for number in new {
            // Each hop before it has made a noise.
            let hop = hop + (number - before) as u64;
            self.made.push(Made { member, number, epoch, hop });
        }
    }

    /// A member's alarm rings.
    fn wake(&mut self, k: u32) {
        let before = self.states[k as usize].epoch(0);
        self.event(PeerId(k), |walk, me, data, cx| walk.on_wake(me, data, cx)).expect("planned");
        self.reissues += u32::from(self.states[k as usize].epoch(0) > before);
    }

    fn waiting(&self) -> Vec<u32> {
        (0..self.states.len() as u32).filter(|k| self.states[*k as usize].waits(0)).collect()
    }

    /// The first letter of the same pair as the one at this place.
    fn first_of_pair(&self, place: usize) -> usize {
        let (from, to, _) = self.bag[place];
        self.bag.iter().position(|(a, b, _)| (*a, *b) == (from, to)).unwrap_or(place)
    }

    /// mu^2 of the worst change of a member's contributions, each by 1 in either direction, in what another was sent, and what the path allows.
    fn seen(&self, reader: u32, member: u32) -> (f64, f64) {
        let own: Vec<Made> = self.made.iter().copied().filter(|made| made.member == member).collect();
        let symbols = self.symbols.borrow();
        let hidden: Vec<usize> = (0..symbols.len())
            .filter(|k| matches!(symbols[*k], Symbol::Noise { member } if member != reader))
            .collect();
        let spacing = self.walk.config.spacing().expect("spaced").hops();
        let allowed = own.iter().map(|made| {
            let looks =
                self.views[reader as usize].iter().filter(|(epoch, hop, _)| *epoch == made.epoch && *hop > made.hop);
            let gap = looks.map(|(_, hop, _)| hop - made.hop).min().unwrap_or(spacing);
            cost(gap.min(spacing), spacing)
        });
        let worst = (0..1u32 << own.len()).map(|corner| {
            let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
            for (_, _, values) in &self.views[reader as usize] {
                let mut noise: Vec<f64> = hidden.iter().map(|k| values[*k]).collect();
                let sign = |k: usize| if corner >> k & 1 == 1 { -1.0 } else { 1.0 };
                let mut moved: f64 = own.iter().enumerate().map(|(k, made)| sign(k) * values[made.number]).sum();
                for (other, shift) in &rows {
                    let share = dot(&noise, other) / dot(other, other);
                    noise.iter_mut().zip(other).for_each(|(a, b)| *a -= share * b);
                    moved -= share * shift;
                }
                match (dot(&noise, &noise) < 1e-9, moved.abs() > 1e-6) {
                    (true, true) => return f64::INFINITY,
                    (true, false) => {}
                    (false, _) => rows.push((noise, moved)),
                }
            }
            rows.iter().map(|(noise, moved)| moved * moved / dot(noise, noise)).sum()
        });
        (worst.fold(0.0, f64::max), allowed.sum())
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What proofs/network-reissued.md allows for a contribution that is held g hops later: a change that falls evenly over g hops, seen after each through fresh noise.
fn cost(g: u64, spacing: u64) -> f64 {
    let fresh = spacing as f64 * spacing as f64 / 3.0;
    let left = |j: u64| 1.0 - j as f64 / g as f64;
    (1..=g).map(|j| (left(j - 1) - left(j)) * (left(j - 1) - left(j)) + left(j) * left(j) / fresh).sum()
}

/// Letters in any order, and alarms that ring for no reason, as often as they like.
#[test]
fn no_member_sees_more_of_another_than_was_charged_for_in_any_storm() {
    let (mut storms, mut reissues, mut views, mut most) = (0, 0, 0, [0.0f64; 3]);
    for seed in 0..2_000u32 {
        let mut coin = Coin::new(21, seed, 0);
        let members = [3, 4, 5, 12, 16][coin.below(5)];
        let hops = 4 + coin.below(14) as u64;
        let mut table = Table::start(members, hops, 1 + coin.below(3) as u32, 160);
        let alarms = [0.05, 0.2, 0.5][coin.below(3)];
        for _ in 0..150 {
            let waiting = table.waiting();
            if !waiting.is_empty() && (table.bag.is_empty() || coin.unit() < alarms) {
                table.wake(waiting[coin.below(waiting.len())]);
            } else if !table.bag.is_empty() {
                let place = coin.below(table.bag.len());
                table.read(place);
            } else {
                break;
            }
        }
        if table.symbols.borrow().len() > 160 {
            continue;
        }
        for member in 0..members {
            let ledger = table.gates[member as usize].ledger();
            let charged = |track| ledger.charges().filter(|one| one.track == track).map(|one| one.count).sum::<u64>();
            let made = u64::from(table.states[member as usize].contributions());
            assert_eq!(
                (charged(Track::Token), charged(Track::Reissues)),
                (made, made),
                "each contribution, beforehand"
            );
            for reader in (0..members).filter(|reader| *reader != member) {
                let (seen, allowed) = table.seen(reader, member);
                assert!(seen <= allowed + 1e-9, "storm {seed}, {members} members, {hops} hops: {seen} of {allowed}");
                let kind = (table.walk.config.spacing().expect("spaced").hops() as usize).min(4) - 2;
                most[kind] = most[kind].max(if allowed > 0.0 { seen / allowed } else { 0.0 });
                views += 1;
            }
        }
        storms += 1;
        reissues += table.reissues;
    }
    assert!(storms > 1_500 && reissues > 4 * storms && views > 100_000, "{storms} {reissues} {views}");
    assert!(most.iter().all(|most| *most > 0.85), "{most:?}");
}

/// Of a member that has room for letters to one other alone, that one is sent tokens as they are by chance, one visit in as many as there are members, and else under fresh noise.
#[test]
fn full_boxes_lead_no_more_tokens_as_they_are_to_who_has_room() {
    let (narrow, open, members) = (PeerId(2), PeerId(5), 8);
    let (mut visits, mut direct, mut coin) = (0, 0, Coin::new(23, 0, 0));
    for seed in 0..200 {
        let mut table = Table::start(members, 60, 1, 400);
        (table.narrow, table.events) = (Some((narrow, open)), 1000 * seed);
        for _ in 0..400 {
            if table.symbols.borrow().len() > 350 {
                break;
            }
            if let Some(place) = (!table.bag.is_empty()).then(|| coin.below(table.bag.len())) {
                let place = table.first_of_pair(place);
                let (_, to, bytes) = &table.bag[place];
                let token = match WalkLetter::decode(bytes) {
                    Ok(WalkLetter::Token(token)) if *to == narrow => Some(token.epoch),
                    _ => None,
                };
                let before = table.bag.len() - 1;
                table.read(place);
                if let Some(epoch) = token.filter(|epoch| table.states[narrow.index()].epoch(0) == *epoch) {
                    visits += u32::from(table.states[narrow.index()].waits(0));
                    let is_direct = |(from, to, bytes): &(PeerId, PeerId, Vec<u8>)| {
                        let is_token =
                            matches!(WalkLetter::decode(bytes), Ok(WalkLetter::Token(sent)) if sent.epoch == epoch);
                        (*from, *to) == (narrow, open) && is_token
                    };
                    direct += u32::from(table.bag[before..].iter().any(is_direct));
                }
            } else if let Some(&waits) = table.waiting().first() {
                table.wake(waits);
            } else {
                break;
            }
        }
    }
    let share = f64::from(direct) / f64::from(visits);
    // One in seven of those that do not draw themselves.
    assert!(visits > 500 && (share - 1.0 / 7.0).abs() < 0.05, "{direct} of {visits}");
}

/// Alarms that ring for no reason, and then one member is gone for good: all others come to the end, and to the same. Letters of a pair are read in their order.
#[test]
fn whoever_is_gone_after_whatever_storm_the_others_end_and_agree() {
    let (mut deaths, mut reissues) = (0, 0);
    for seed in 0..3_000u32 {
        let mut coin = Coin::new(22, seed, 0);
        let members = 3 + coin.below(6) as u32;
        let mut table = Table::start(members, 5 + coin.below(20) as u64, 2, 2);
        let alarms = [0.02, 0.1, 0.3][coin.below(3)];
        for _ in 0..coin.below(120) {
            let waiting = table.waiting();
            if !waiting.is_empty() && (table.bag.is_empty() || coin.unit() < alarms) {
                table.wake(waiting[coin.below(waiting.len())]);
            } else if !table.bag.is_empty() {
                let place = table.first_of_pair(coin.below(table.bag.len()));
                table.read(place);
            }
        }
        let gone = coin.below(members as usize + 1) as u32;
        for _ in 0..400 {
            while let Some(place) = table.bag.iter().position(|(_, to, _)| to.0 != gone) {
                table.read(place);
            }
            let waiting: Vec<u32> = table.waiting().into_iter().filter(|k| *k != gone).collect();
            if waiting.is_empty() {
                break;
            }
            waiting.into_iter().for_each(|k| table.wake(k));
        }
        let alive = || (0..members).filter(|k| *k != gone).map(|k| &table.states[k as usize]);
        let ended: Vec<Option<&Ended>> = alive().map(|state| state.ended().next()).collect();
        assert!(ended.iter().all(|one| one.is_some() && *one == ended[0]), "storm {seed} without {gone}: {ended:?}");
        assert!(alive().all(|state| table.walk.is_done(state)), "storm {seed} without {gone}");
        deaths += u32::from(gone < members);
        reissues += table.reissues;
    }
    assert!(deaths > 2_000 && reissues > deaths, "{deaths} {reissues}");
}
