//! A token that walks over the complete graph (thesis 4.2; Cyffers and Bellet 2022), Algorithm 4.4 and the way of Algorithm 4.5; or along the edges
//! of another graph (`way.rs`).
//!
//! ```text
//! hop t = 1..T: the holder u_t is uniform among all n members, the one before included;   tau <- step_u(tau) + noise of sigma
//! ```
//!
//! What a holder does to the token is a [`Movement`]: [`Sums`] adds to it, [`Gradient`](super::walk_sgd::Gradient) takes a step of stochastic gradient descent.
//! A holder that draws itself makes another step alone. After its last hop everyone is told the token.
//!
//! Differs from the paper:
//! - **Contributions are bounded** ([`WalkConfig::contributions`]). Beyond the bound a holder adds noise alone, which others rely on; so its visits
//!   stay what they were to everyone else.
//! - **The token counts its contributions.** Who contributes when follows from the path, so the count is public, and what is left out beyond the bound
//!   does not pull an estimate towards zero.
//! - **Several tokens** may walk at once, each as far and with a bound of its own; what they came to is put together by [`Movement::outcome`].
//! - **The path is drawn from secret bits** (`cx.secret`), holder by holder: a coin that others know would tell them the path before they choose what to do.
//! - **Who is gone is passed over** where there is a time-out ([`passing`]); else it keeps the token until it is back. Letters are durable.
//!
//! # Privacy
//! Against members who know the token's path and see the token whenever they hold it, and are told the outcome (`Audience::OneMember`): every hop has noise of
//! the law of one contribution, so that a contribution is hidden under the noise of all hops until an observer holds the token. See the
//! accountants `Cycle` for sums, `Iteration` for contractions, `GraphPairs` for those along edges, and `Reissued` where who is gone is passed over (`crates/privacy/src/account/network`).

mod config;
mod letter;
pub mod passing;
mod sums;
mod way;

pub use config::{BadWalk, Beyond, MEMBERS_MIN, TOKENS_MAX, WalkConfig};
pub(super) use letter::{HEAD_BYTES, WEIGHT_MAX};
pub use letter::{Token, WalkLetter, Word};
pub use sums::{BadSums, Goal, Sums, SumsConfig};

use super::epoch::Epoch;
use crate::saved;
use passing::Hand;
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::{NUMBER_MAX, Numbers};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Graph, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::{Event, Exhausted, Gate, Noise, Public, Receipt, Released, Track};
use way::Way;

/// After so many members who cannot be written to nobody can be.
const SENDS_MAX: u64 = 1 << 20;

/// What a holder does to the token.
pub trait Movement: Sync {
    /// What a holder has.
    type Data<'d>: Copy;

    /// Numbers on a token.
    fn numbers(&self) -> usize;

    /// Numbers of the outcome.
    fn outcome_len(&self) -> usize;

    /// How far one contribution can move the token, in the Euclidean norm, when what is protected is replaced.
    fn sensitivity(&self) -> f64;

    /// Moves the token by what the holder contributes, if there is a receipt for that, and by noise of this law. Returns the token and how much the
    /// contribution weighs in a mean.
    fn step<'m>(
        &self,
        receipt: Option<Receipt>,
        data: Self::Data<'_>,
        law: Option<Event>,
        gate: &mut Gate,
        token: Moving<'_, 'm>,
    ) -> (Released<&'m mut [f64]>, u64);

    /// Whether a token can hold this number.
    fn holds(&self, value: f64) -> bool;

    /// What the tokens came to.
    fn outcome(&self, tokens: &[Ended], out: &mut [f64]);
}

/// A token in its holder's hands.
pub struct Moving<'t, 'm> {
    /// As it came.
    pub received: &'t [f64],
    /// Where it is to be when it goes on. It may hold anything before.
    pub moved: &'m mut [f64],
}

impl<'m> Moving<'_, 'm> {
    /// The token as it came: others know it.
    pub fn untouched(self) -> Released<&'m mut [f64]> {
        self.moved.copy_from_slice(self.received);
        // PRIVACY: whoever sent it knows it; at the start it is zero.
        Public::declare(self.moved).into()
    }
}

/// A token after its last hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Which of those that were issued.
    pub epoch: Epoch,
    /// How often somebody has contributed.
    pub contributions: u64,
    /// How much that weighs in a mean.
    pub weight: u64,
    /// The numbers.
    pub values: Vec<f64>,
}

/// A token that walks.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk<M> {
    config: WalkConfig,
    movement: M,
    way: Way,
}

impl<M: Movement> Walk<M> {
    /// Checks the hyper-parameters.
    pub fn new(config: WalkConfig, movement: M) -> Result<Self, BadWalk> {
        config.check()?;
        Ok(Walk { config, movement, way: Way::Everyone(config.members) })
    }

    /// The same along the edges of a graph, as `way.rs` says. The first holder is anyone, and everyone is told the outcome.
    pub fn along(self, graph: &Graph) -> Result<Self, BadWalk> {
        if self.config.timeout.is_some() {
            return Err(BadWalk::Passed);
        }
        if graph.agents() != self.config.members as usize || graph.components().iter().any(|&part| part > 0) {
            return Err(BadWalk::Cut);
        }
        Ok(Walk { way: Way::along(graph), ..self })
    }

    /// What a holder does.
    pub fn movement(&self) -> &M {
        &self.movement
    }

    /// The hyper-parameters.
    pub fn config(&self) -> &WalkConfig {
        &self.config
    }

    /// The agent holds a token: moves it, and passes it on. `cx.scratch` holds the token.
    fn hold(&self, me: &mut State, data: M::Data<'_>, mut head: Head, cx: &mut Cx<'_>) {
        let len = self.movement.numbers();
        let mut scratch = std::mem::take(cx.scratch);
        scratch.resize(2 * len, 0.0);
        let (received, moved) = scratch.split_at_mut(len);
        loop {
            let tau = self.visit(me, data, &mut head, Moving { received: &*received, moved: &mut *moved }, cx.gate);
            head.hop += 1;
            if head.hop > self.config.hops {
                self.end(me, head, tau, cx);
                break;
            }
            let to = self.way.draw(cx);
            if to == cx.me {
                received.copy_from_slice(tau.into_inner());
                continue;
            }
            self.send(me, to, head, &tau, cx);
            break;
        }
        *cx.scratch = scratch;
    }

    /// All of one token's walk in one place, as a trusted curator would make it: the same visits, without letters. `draw` says who is next, `look` sees the
    /// token after each hop. Returns the token.
    pub fn in_one_place<'d, N: Noise + 'static>(
        &self,
        data: impl Fn(PeerId) -> M::Data<'d>,
        gates: &mut [Gate<N>],
        mut draw: impl FnMut() -> PeerId,
        mut look: impl FnMut(u64, &[f64]),
    ) -> Ended {
        let mut states: Vec<State> = gates.iter().map(|_| State::new(self)).collect();
        let mut head = Head::first(0);
        let (mut values, mut moved) = (vec![0.0; self.movement.numbers()], vec![0.0; self.movement.numbers()]);
        while head.hop <= self.config.hops {
            let holder = draw();
            let token = Moving { received: &values, moved: &mut moved };
            self.visit(&mut states[holder.index()], data(holder), &mut head, token, &mut gates[holder.index()]);
            std::mem::swap(&mut values, &mut moved);
            look(head.hop, &values);
            head.hop += 1;
        }
        Ended { epoch: head.epoch, contributions: head.contributions, weight: head.weight, values }
    }

    /// One visit: the holder moves the token.
    fn visit<'m>(
        &self,
        me: &mut State,
        data: M::Data<'_>,
        head: &mut Head,
        token: Moving<'_, 'm>,
        gate: &mut Gate,
    ) -> Released<&'m mut [f64]> {
        let hand = &mut me.hands[head.number as usize];
        let may = self.config.contributions.is_none_or(|most| hand.made < most);
        if !may && self.config.beyond == Beyond::Untouched {
            return token.untouched();
        }
        // PRIVACY: the contribution leaves under the noise of this hop and of all others until an observer holds the token; charged for the observer that
        // the accountant names. Beyond the bound, too near to another one, and for who has nothing to tell, noise alone leaves: others rely on it. Where tokens may be
        // issued again, what may be seen of it whatever the path is charged too: proofs/network-reissued.md.
        let mut charge = |track: Track| gate.charge(track, self.movement.sensitivity(), track.audience()).ok();
        let may = may && self.config.is_spaced(hand.last, head.hop);
        let is_covered = may && (self.config.spacing().is_none() || charge(Track::Reissues).is_some());
        let receipt = if is_covered { charge(self.config.track) } else { None };
        let contributes = receipt.is_some();
        let (tau, weight) = self.movement.step(receipt, data, self.config.law, gate, token);
        if contributes {
            (hand.made, hand.last) = (hand.made + 1, Some(head.hop));
            head.contributions += 1;
            head.weight = head.weight.saturating_add(weight).min(WEIGHT_MAX);
        }
        tau
    }

    /// Sends the token to this member. Without a time-out one that has been gone for so long that no more is kept for it is passed over, and somebody else is drawn.
    fn send(&self, me: &mut State, mut to: PeerId, head: Head, tau: &Released<&mut [f64]>, cx: &mut Cx<'_>) {
        let letter = || head.with(tau.as_ref().map(|values| &**values), WalkLetter::Token);
        if self.config.timeout.is_some() {
            // PRIVACY: whether there is room for it or not, nobody else is drawn: whoever can be reached would be sent the token as it is more often than the path is
            // accounted for. Where there is none it is issued again after the time-out, under fresh noise.
            let _ = cx.outbox.send_durable(to, letter());
            let values = tau.as_ref().map(|values| values.to_vec()).into_inner();
            self.keep(me, head, values, to, cx);
            return;
        }
        if self.way.has_edges() {
            // PRIVACY: as above, and it waits for room.
            if cx.outbox.send_durable(to, letter()).is_err() {
                let values = tau.as_ref().map(|values| values.to_vec()).into_inner();
                self.keep(me, head, values, to, cx);
            }
            return;
        }
        let mut tries = 0u64;
        while to == cx.me || cx.outbox.send_durable(to, letter()).is_err() {
            to = self.way.draw(cx);
            tries += 1;
            assert!(tries < SENDS_MAX, "nobody can be written to");
        }
    }

    /// Tells everyone what the token came to.
    fn end(&self, me: &mut State, head: Head, tau: Released<&mut [f64]>, cx: &mut Cx<'_>) {
        let tau = tau.map(|values| &*values);
        for to in cx.reach.iter().map(|edge| edge.peer) {
            // Whoever has been gone for so long does not learn it.
            let _ = cx.outbox.send_durable(to, head.with(tau, WalkLetter::Outcome));
        }
        me.learns(self, head, tau.into_inner());
    }

    /// Whether a token is one that a member could have sent.
    fn check(&self, head: &Head, values: &[f64], hops: std::ops::RangeInclusive<u64>) -> Result<(), Reject> {
        let counts = head.contributions <= self.config.hops && head.weight <= WEIGHT_MAX;
        if head.number >= self.config.tokens || !hops.contains(&head.hop) || !counts || !self.is_epoch(head.epoch) {
            Err(Reject::Malformed)
        } else if values.iter().all(|&value| self.movement.holds(value)) {
            Ok(())
        } else {
            Err(Reject::NotFinite)
        }
    }
}

/// What is public about a token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    number: u32,
    epoch: Epoch,
    hop: u64,
    contributions: u64,
    weight: u64,
}

impl Head {
    /// Of a token before its first hop.
    fn first(number: u32) -> Head {
        Head { number, epoch: Epoch::default(), hop: 1, contributions: 0, weight: 0 }
    }

    /// A letter with these values.
    fn with<'a>(
        self,
        values: Released<&'a [f64]>,
        letter: fn(Token<'a>) -> WalkLetter<'a>,
    ) -> Released<WalkLetter<'a>> {
        // PRIVACY: hops, contributions and weights follow from the path and from public numbers of rows.
        values.with_public(Public::declare((self, letter)), |(head, letter), values| {
            let Head { number, epoch, hop, contributions, weight } = head;
            letter(Token { number, epoch, hop, contributions, weight, values: Numbers::Plain(values) })
        })
    }
}

/// What an agent remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// By token: what it did with it.
    hands: Vec<Hand>,
    /// By token: what it came to.
    ended: Vec<Option<Ended>>,
    /// What all tokens together came to; zero before it is known.
    outcome: Vec<f64>,
    /// Whether an alarm is set.
    is_watched: bool,
}

impl State {
    fn new<M: Movement>(walk: &Walk<M>) -> State {
        let tokens = walk.config.tokens as usize;
        let outcome = vec![0.0; walk.movement.outcome_len()];
        State { hands: vec![Hand::default(); tokens], ended: vec![None; tokens], outcome, is_watched: false }
    }

    /// Whether it knows what all tokens came to.
    pub fn knows(&self) -> bool {
        self.ended.iter().all(Option::is_some)
    }

    /// How often it has contributed.
    pub fn contributions(&self) -> u32 {
        self.hands.iter().map(|hand| hand.made).sum()
    }

    /// What the tokens came to that it knows of.
    pub fn ended(&self) -> impl Iterator<Item = &Ended> {
        self.ended.iter().flatten()
    }

    /// How often tokens were issued again before they came to what it knows.
    pub fn passed_over(&self) -> u32 {
        self.ended().map(|ended| ended.epoch.count).sum()
    }

    fn learns<M: Movement>(&mut self, walk: &Walk<M>, head: Head, values: &[f64]) {
        let Head { number, epoch, contributions, weight, .. } = head;
        self.ended[number as usize] = Some(Ended { epoch, contributions, weight, values: values.to_vec() });
        self.hands[number as usize].forget();
        self.conclude(walk);
    }

    fn conclude<M: Movement>(&mut self, walk: &Walk<M>) {
        if let Some(tokens) = self.ended.iter().cloned().collect::<Option<Vec<Ended>>>() {
            walk.movement.outcome(&tokens, &mut self.outcome);
        }
    }
}

impl<M: Movement> Algorithm for Walk<M> {
    type Data<'d> = M::Data<'d>;
    type State = State;
    type Letter<'a> = WalkLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: M::Data<'_>) -> usize {
        HEAD_BYTES + 8 * self.movement.numbers()
    }

    fn wake_rate(&self, _: M::Data<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    /// The first member draws who holds each token first.
    fn start(&self, data: M::Data<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let mut me = State::new(self);
        if cx.me == PeerId(0) {
            for number in 0..self.config.tokens {
                let (head, to) = (Head::first(number), way::anyone(self.config.members, cx));
                cx.scratch.clear();
                cx.scratch.resize(self.movement.numbers(), 0.0);
                if to == cx.me {
                    self.hold(&mut me, data, head, cx);
                } else {
                    self.send(&mut me, to, head, &Released::zeroed(&mut vec![0.0; self.movement.numbers()]), cx);
                }
            }
        }
        Ok(me)
    }

    /// The time-out: nobody has said that a token is safe.
    fn on_wake(&self, me: &mut State, data: M::Data<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        self.ring(me, data, cx);
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        data: M::Data<'_>,
        from: PeerId,
        letter: WalkLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let (token, hops) = match letter {
            WalkLetter::Token(token) => (token, 1..=self.config.hops),
            WalkLetter::Outcome(token) => (token, self.config.hops + 1..=self.config.hops + 1),
            WalkLetter::Taken(word) => return self.on_word(me, from, word, true, cx),
            WalkLetter::Passed(word) => return self.on_word(me, from, word, false, cx),
        };
        let Token { number, epoch, hop, contributions, weight, values } = token;
        let head = Head { number, epoch, hop, contributions, weight };
        cx.scratch.resize(self.movement.numbers(), 0.0);
        values.copy_to(cx.scratch)?;
        self.check(&head, cx.scratch, hops)?;
        let known = me.ended[number as usize].as_ref().map(|ended| ended.epoch);
        match letter {
            WalkLetter::Outcome(_) if known.is_none_or(|known| known < epoch) => me.learns(self, head, cx.scratch),
            WalkLetter::Token(_) if self.config.timeout.is_some() => self.on_token(me, data, from, head, cx),
            WalkLetter::Token(_) if known.is_none() => self.hold(me, data, head, cx),
            // What is known already says nothing where tokens may be issued again.
            _ if self.config.timeout.is_some() => {}
            _ => return Err(Reject::OutOfTurn),
        }
        Ok(())
    }

    fn is_done(&self, me: &State) -> bool {
        me.knows() && me.hands.iter().all(Hand::is_free)
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        _: M::Data<'_>,
        _: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        let me: State = saved::read(saved)?;
        // The path goes over all members.
        saved::expect_same(neighbours)?;
        let tokens = self.config.tokens as usize;
        saved::check(me.hands.len() == tokens && me.ended.len() == tokens)?;
        saved::check((0..).zip(&me.hands).all(|(number, hand)| self.is_hand(number, hand)))?;
        let fine = |ended: &Ended| {
            let Ended { epoch, contributions, weight, .. } = *ended;
            let head = Head { number: 0, epoch, hop: 1, contributions, weight };
            saved::is_vector(&ended.values, self.movement.numbers()) && self.check(&head, &ended.values, 1..=1).is_ok()
        };
        saved::check(me.ended.iter().flatten().all(fine))?;
        let mut concluded = State { outcome: vec![0.0; self.movement.outcome_len()], ..me.clone() };
        concluded.conclude(self);
        saved::check(concluded.outcome == me.outcome)?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        &me.outcome
    }
}

/// Whether any token can hold this number.
pub(super) fn is_number(value: f64) -> bool {
    value.abs() <= NUMBER_MAX
}

#[cfg(test)]
mod tests;
