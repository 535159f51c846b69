//! A token is handed on, and past whoever is gone.
//!
//! A holder hears that whom it handed the token has taken it, and later that the next one has: until then it may have gone with the first. When it does not hear the one within the
//! time-out, or the other within three, it draws somebody else and sends the token there, under a higher epoch. A member refuses a token below the highest epoch that it has held of it,
//! so that of several tokens one goes on; where more than one comes to its end, the highest counts, for everyone.
//!
//! Sending the same bytes past a member would leak: whoever holds both tokens sees what was added between, with the noise of no hop behind it. So
//! - the issuer adds **fresh noise**, drawn once for what it holds: however often it passes on, those are the same bytes ([`Spacing::fresh`](sottovoce_privacy::network::Spacing::fresh));
//! - a visit by any token is a visit: a member contributes, with noise of its own, and is charged, or it adds noise alone. Nothing of one visit is used in another;
//! - a member contributes only so many hops after its last contribution, whatever the token, and not so shortly before the end, so that what it shows through fresh noise does not add up;
//! - what may be seen whatever the path is charged **beforehand, without amplification**, with each contribution: nobody can know in time that a token was issued past it.
//!
//! The argument, for sums and for gradient steps: `crates/privacy/proofs/network-reissued.md`. A gradient on a token that was issued again is another function of the data, and
//! so another contribution: charged as one.

use super::{Head, Movement, Moving, State, Walk, WalkLetter, Word};
use crate::saved;
use crate::token::epoch::Epoch;
use serde::{Deserialize, Serialize};
use sottovoce_core::{Cx, PeerId, Reject, Time};
use sottovoce_privacy::{Public, Released};

/// Time-outs from word that a token was taken until it counts as lost.
const TAKEN: u32 = 3;
/// After so many wake intervals a holder that nobody passes over looks again whether there is room on an edge.
const ROOM: f64 = 1.0;
/// A holder that passes on and on waits so often twice as long each time.
const PATIENCE_MAX: usize = 5;

/// What a member did with a token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Hand {
    /// Contributions.
    pub made: u32,
    /// The hop of the last one.
    pub last: Option<u64>,
    /// The highest epoch that it has held, or issued.
    epoch: Epoch,
    /// The last hop that it held of it.
    held: u64,
    /// What it sent, until it hears that it is safe.
    sent: Option<Box<Sent>>,
    /// Who handed it a token, until it has told that it is safe.
    owes: Vec<Owed>,
}

/// A token that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sent {
    head: Head,
    /// With fresh noise, once it was issued again.
    values: Vec<f64>,
    to: u32,
    /// To whom it was sent before.
    past: Vec<u32>,
    /// How often the alarm rings before it counts as lost.
    rings: u32,
}

/// Word that a member owes to whoever handed it a token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Owed {
    from: u32,
    epoch: Epoch,
    hop: u64,
}

impl Hand {
    /// All is over.
    pub fn forget(&mut self) {
        (self.sent, self.owes) = (None, Vec::new());
    }

    /// Whether it waits for nobody.
    pub fn is_free(&self) -> bool {
        self.sent.is_none()
    }
}

impl State {
    /// Whether it waits for word of this token.
    pub fn waits(&self, number: u32) -> bool {
        !self.hands[number as usize].is_free()
    }

    /// The highest epoch of this token that it has held, or issued.
    pub fn epoch(&self, number: u32) -> Epoch {
        self.hands[number as usize].epoch
    }
}

impl<M: Movement> Walk<M> {
    /// Keeps what was sent, until it is safe.
    pub(super) fn keep(&self, me: &mut State, head: Head, values: Vec<f64>, to: PeerId, cx: &mut Cx<'_>) {
        let rings = self.watch(me, 1, cx);
        let hand = &mut me.hands[head.number as usize];
        hand.held = head.hop - 1;
        hand.sent = Some(Box::new(Sent { head, values, to: to.0, past: Vec::new(), rings }));
    }

    /// Sends what had no room on its edge, as it is and to whom it was drawn for: another would be drawn by another law.
    fn send_again(&self, me: &mut State, cx: &mut Cx<'_>) {
        for hand in &mut me.hands {
            // PRIVACY: what would have been sent before, once.
            hand.sent.take_if(|sent| {
                let values: Released<&[f64]> = Public::declare(&sent.values[..]).into();
                cx.outbox.send_durable(PeerId(sent.to), sent.head.with(values, WalkLetter::Token)).is_ok()
            });
        }
        if me.hands.iter().any(|hand| hand.sent.is_some()) {
            self.watch(me, 1, cx);
        }
    }

    /// Has the alarm ring; how often until so many time-outs are over. Where it is set already, for another token, a part of the first has passed.
    fn watch(&self, me: &mut State, timeouts: u32, cx: &mut Cx<'_>) -> u32 {
        let timeout = self.config.timeout.unwrap_or(ROOM);
        if std::mem::replace(&mut me.is_watched, true) {
            return timeouts + 1;
        }
        cx.outbox.wake_at(cx.now.after(Time(timeout)));
        timeouts
    }

    /// The alarm rings. Tokens that nobody has called safe for too long are issued again.
    pub(super) fn ring(&self, me: &mut State, data: M::Data<'_>, cx: &mut Cx<'_>) {
        me.is_watched = false;
        if self.config.timeout.is_none() {
            return self.send_again(me, cx);
        }
        for number in 0..self.config.tokens as usize {
            let Some(mut sent) = me.hands[number].sent.take() else { continue };
            sent.rings = sent.rings.saturating_sub(1);
            if sent.rings == 0 {
                self.pass_over(me, &mut sent, data, cx);
            }
            me.hands[number].sent = Some(sent);
        }
        if me.hands.iter().any(|hand| hand.sent.is_some()) {
            self.watch(me, 1, cx);
        }
    }

    /// Sends a token to somebody else, with fresh noise, under a higher epoch.
    fn pass_over(&self, me: &mut State, sent: &mut Sent, data: M::Data<'_>, cx: &mut Cx<'_>) {
        // PRIVACY: the one passed over may have passed the token on. What goes out beside it must not show what was added since; drawn once, and kept for as long as it
        // may be sent. Before the first hop there is nothing to hide.
        let is_first = sent.past.is_empty() && sent.head.hop > 1;
        if let Some(fresh) = self.config.fresh().filter(|_| is_first) {
            let mut moved = vec![0.0; sent.values.len()];
            let token = Moving { received: &sent.values, moved: &mut moved };
            self.movement.step(None, data, Some(fresh), cx.gate, token);
            sent.values = moved;
        }
        let hand = &mut me.hands[sent.head.number as usize];
        hand.epoch = hand.epoch.max(sent.head.epoch).next(sent.head.hop, cx.me.0);
        sent.head.epoch = hand.epoch;
        self.send_past(sent, cx);
        sent.rings = 1 << sent.past.len().min(PATIENCE_MAX);
    }

    /// Sends it to somebody to whom it was not sent, if there is anybody.
    fn send_past(&self, sent: &mut Sent, cx: &mut Cx<'_>) {
        sent.past.push(sent.to);
        // Everyone once, and then everyone again. Who has no room for it is gone too.
        for _ in 0..self.config.members {
            if sent.past.len() + 1 >= self.config.members as usize {
                sent.past.clear();
                sent.past.push(sent.to);
            }
            let to = loop {
                let to = self.way.draw(cx);
                if to != cx.me && !sent.past.contains(&to.0) {
                    break to;
                }
            };
            sent.to = to.0;
            // PRIVACY: under fresh noise, or what was sent before.
            let values: Released<&[f64]> = Public::declare(&sent.values[..]).into();
            if cx.outbox.send_durable(to, sent.head.with(values, WalkLetter::Token)).is_ok() {
                return;
            }
            sent.past.push(to.0);
        }
    }

    /// A token comes. It is refused where it has been overtaken, and where all is over.
    pub(super) fn on_token(&self, me: &mut State, data: M::Data<'_>, from: PeerId, head: Head, cx: &mut Cx<'_>) {
        let Head { number, epoch, hop, .. } = head;
        let word = Word { number, epoch, hop };
        if let Some(ended) = &me.ended[number as usize] {
            let known = Head {
                epoch: ended.epoch,
                hop: self.config.hops + 1,
                contributions: ended.contributions,
                weight: ended.weight,
                number,
            };
            // PRIVACY: everyone is told it.
            let values: Released<&[f64]> = Public::declare(&ended.values[..]).into();
            let _ = cx.outbox.send_durable(from, known.with(values, WalkLetter::Outcome));
            return;
        }
        let hand = &mut me.hands[number as usize];
        let is_refused = epoch < hand.epoch || epoch == hand.epoch && hop <= hand.held;
        let answer = if is_refused { WalkLetter::Passed(word) } else { WalkLetter::Taken(word) };
        // Whoever has been gone for so long forgets it by itself.
        let _ = cx.outbox.send_durable(from, without_value(answer));
        if !is_refused {
            (hand.epoch, hand.held, hand.sent) = (epoch, hop, None);
            hand.owes.retain(|owed| owed.from != from.0);
            hand.owes.push(Owed { from: from.0, epoch, hop });
            self.hold(me, data, head, cx);
        }
    }

    /// Word of a token that was sent: taken, or safe. Word of an older one comes late, and says nothing.
    pub(super) fn on_word(
        &self,
        me: &mut State,
        from: PeerId,
        word: Word,
        is_taken: bool,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let Word { number, epoch, hop } = word;
        let is_word = number < self.config.tokens && (1..=self.config.hops).contains(&hop) && self.is_epoch(epoch);
        if !is_word || self.config.timeout.is_none() {
            return Err(Reject::OutOfTurn);
        }
        let is_its = |sent: &Sent| (sent.to, sent.head.epoch, sent.head.hop) == (from.0, epoch, hop);
        let Some(mut sent) = me.hands[number as usize].sent.take_if(|sent| is_its(sent)) else { return Ok(()) };
        if is_taken {
            sent.rings = self.watch(me, TAKEN, cx);
            me.hands[number as usize].sent = Some(sent);
        }
        // The token is safe with another: whoever handed it to this member may forget it.
        for Owed { from, epoch, hop } in std::mem::take(&mut me.hands[number as usize].owes) {
            let _ =
                cx.outbox.send_durable(PeerId(from), without_value(WalkLetter::Passed(Word { number, epoch, hop })));
        }
        Ok(())
    }

    /// Whether a token can have this epoch.
    pub(super) fn is_epoch(&self, epoch: Epoch) -> bool {
        let is_first = epoch == Epoch::default();
        is_first || self.config.timeout.is_some() && epoch.is_within(self.config.hops, self.config.members)
    }

    /// Whether a member can remember this of a token.
    pub(super) fn is_hand(&self, number: u32, hand: &Hand) -> bool {
        let Hand { last, epoch, held, sent, owes, .. } = hand;
        let (hops, members) = (self.config.hops, self.config.members);
        let is_sent = |sent: &Sent| {
            let people = sent.past.len() <= members as usize && sent.past.iter().all(|past| *past < members);
            people
                && sent.to < members
                && sent.head.number == number
                && saved::is_vector(&sent.values, self.movement.numbers())
                && self.check(&sent.head, &sent.values, 1..=hops).is_ok()
        };
        let is_owed = |owed: &Owed| owed.from < members && owed.hop <= hops && self.is_epoch(owed.epoch);
        self.is_epoch(*epoch)
            && *held <= hops
            && last.is_none_or(|last| last <= hops)
            && sent.as_deref().is_none_or(is_sent)
            && owes.len() <= members as usize
            && owes.iter().all(is_owed)
    }
}

/// A letter about a token that holds none.
fn without_value<'a>(letter: WalkLetter<'a>) -> Released<WalkLetter<'a>> {
    // PRIVACY: which hop of which token, and no number of it.
    Public::declare(letter).into()
}
