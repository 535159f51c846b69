//! A member's part: the beacon, and its sessions.

use super::{Desk, Kind, Pair, PairLetter, TwoParty, TwoPartyConfig, desk::Say, from_bitmap};
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Observations;
use sottovoce_core::{Cx, PeerId, Reject, Time};
use sottovoce_crypto::Flaw;
use sottovoce_crypto::beacon::{BeaconSecret, beacon, commit};
use sottovoce_crypto::two_party::pair::{Brought, Engine};
use sottovoce_privacy::{Audience, Exhausted, Leaves, Public, Released, Sealed, Track};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What an agent remembers.
pub struct State<E: Engine> {
    pub(super) kept: Kept,
    /// Sessions under way, by the other one of the pair. They are gone after a crash, and never come back.
    live: BTreeMap<u32, (u32, Live<E>)>,
}

/// What of a session under way is in memory, with the attempt that it is.
enum Live<E: Engine> {
    Opened(E::Opened),
    Requested(E::Requested),
    Answered(E::Answered),
}

impl<E: Engine> Default for State<E> {
    fn default() -> Self {
        State::of(Kept::default())
    }
}

/// What survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The round of the beacon, and what was drawn for it.
    pub(super) round: u32,
    secret: BeaconSecret,
    /// Who takes part in it, and their commitments, once they are known.
    present: Vec<bool>,
    commitments: Vec<[u8; 32]>,
    beacon: Option<[u8; 32]>,
    pub(super) meetings: Vec<Meeting>,
    /// When sessions that are not settled begin anew.
    pub(super) retry: Option<f64>,
    pub(super) ended: bool,
    /// The aggregator's.
    pub(super) desk: Option<Desk>,
    pub(super) estimate: f64,
    known: bool,
}

/// A pair that this member is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meeting {
    /// The other one.
    pub other: u32,
    /// Whether this member garbles.
    pub garbles: bool,
    /// What they compute.
    pub pair: Pair,
    /// The last attempt that this member has begun, or has answered; zero: none.
    pub attempt: u32,
    /// Whether the answers are charged.
    pub charged: bool,
    /// The garbler's share of that attempt, once it has sent the tables.
    pub share: Vec<u8>,
    /// Whether this member's share has left. Nothing of this pair leaves after that.
    pub settled: bool,
}

impl<E: Engine> State<E> {
    pub(super) fn of(kept: Kept) -> Self {
        State { kept, live: BTreeMap::new() }
    }

    /// Whether it knows the estimate.
    pub fn knows(&self) -> bool {
        self.kept.known
    }

    /// The pairs that it is in.
    pub fn meetings(&self) -> &[Meeting] {
        &self.kept.meetings
    }

    /// How many answers the aggregator has, of how many pairs, and how many pairs there are.
    pub fn answers(&self) -> Option<(u32, u32, u32)> {
        self.kept.desk.as_ref().map(Desk::answers)
    }

    /// Who takes part, as far as it knows.
    pub fn present(&self) -> &[bool] {
        &self.kept.present
    }
}

impl Kept {
    /// Whether an agent of this protocol can have come to this.
    pub(super) fn is_sound(&self, config: &TwoPartyConfig, me: PeerId, has_row: bool) -> bool {
        let members = config.members as usize;
        let lists = [0, members].contains(&self.present.len())
            && (self.beacon.is_none() || self.present.len() == members)
            && self.commitments.len() <= members;
        let is_meeting = |meeting: &Meeting| {
            let other = meeting.other < config.members && meeting.other != me.0;
            other && (1..=config.pairs).contains(&meeting.pair.instances)
        };
        let meetings = self.meetings.len() <= config.pairs as usize
            && (self.meetings.is_empty() || self.beacon.is_some() && has_row)
            && self.meetings.iter().all(is_meeting);
        let times = self.retry.is_none_or(f64::is_finite) && self.estimate.is_finite();
        lists && meetings && times && self.desk.as_ref().is_none_or(|desk| desk.is_sound(config))
    }
}

/// A letter without anybody's data: numbers of rounds, attempts and members, random bits, and labels, which the task says are public.
fn public(kind: Kind, number: u32, other: u32, body: Vec<u8>) -> Released<PairLetter<'static>> {
    Public::declare(PairLetter { kind, number, other, body: Cow::Owned(body) }).into()
}

/// A sealed message in its letter.
fn enclosed(kind: Kind, number: u32, other: u32, message: Sealed<Vec<u8>>) -> Sealed<PairLetter<'static>> {
    let head: Released<(Kind, u32, u32)> = Public::declare((kind, number, other)).into();
    message.with_released(head).map(|(body, (kind, number, other))| PairLetter {
        kind,
        number,
        other,
        body: Cow::Owned(body),
    })
}

/// A peer's message that cryptography refuses: the attempt is over.
fn refused(_: Flaw) -> Reject {
    Reject::Malformed
}

impl<E: Engine> TwoParty<E> {
    /// Reads a letter, from another or from itself.
    pub(super) fn hear(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        from: PeerId,
        letter: PairLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let by_aggregator = from.0 == self.config.aggregator;
        let (number, body) = (letter.number, &*letter.body);
        match letter.kind {
            Kind::Commitment | Kind::Reveal | Kind::Share => {
                let mut desk = me.kept.desk.take().ok_or(Reject::Malformed)?;
                let say = desk.hear(self, from.0, &letter);
                me.kept.desk = Some(desk);
                let done = self.announce(me, data, say?, cx);
                self.set_alarm(me, cx);
                done
            }
            _ if me.kept.ended => Err(Reject::OutOfTurn),
            Kind::Begin if by_aggregator && number > me.kept.round && me.kept.beacon.is_none() => {
                self.commit(me, number, data, cx)
            }
            Kind::Commitments if by_aggregator && number == me.kept.round => self.reveal(me, data, body, cx),
            Kind::Beacon if by_aggregator && number == me.kept.round => {
                self.take_beacon(me, body, cx)?;
                self.open_all(me, cx)?;
                self.set_alarm(me, cx);
                Ok(())
            }
            Kind::Begin | Kind::Commitments | Kind::Beacon => Err(Reject::OutOfTurn),
            Kind::Opening => self.answer(me, from.0, number, body, cx),
            Kind::Choices => self.request(me, data, from.0, number, body, cx),
            Kind::Request => self.garble(me, data, from.0, number, body, cx),
            Kind::Tables => self.evaluate(me, data, from.0, number, body, cx),
            Kind::Finished => self.finish(me, data, from.0, number, cx),
            Kind::End if by_aggregator => {
                me.kept.ended = true;
                me.live.clear();
                Ok(())
            }
            Kind::End => Err(Reject::OutOfTurn),
        }
    }

    /// A durable letter to any member, this one included.
    fn tell(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        to: u32,
        letter: impl Leaves<PairLetter<'static>>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        if PeerId(to) == cx.me {
            return self.hear(me, data, cx.me, letter.into_inner(), cx);
        }
        Ok(cx.outbox.send_durable(PeerId(to), letter)?)
    }

    /// Says to all who take part what the desk has decided.
    pub(super) fn announce(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        say: Option<Say>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let Some(Say { kind, number, body, to, estimate }) = say else { return Ok(()) };
        if let Some(estimate) = estimate {
            (me.kept.estimate, me.kept.known) = (estimate, true);
        }
        if kind == Kind::End {
            me.kept.ended = true;
            me.live.clear();
        }
        if let Some(desk) = &mut me.kept.desk {
            desk.set_deadline(cx.now, self.config.timeout);
        }
        for &id in to.iter().filter(|id| PeerId(**id) != cx.me) {
            // Whoever has been gone for so long is left out when its time is over.
            let _ = cx.outbox.send_durable(PeerId(id), public(kind, number, 0, body.clone()));
        }
        self.set_alarm(me, cx);
        // The aggregator is a member like others.
        if to.contains(&cx.me.0) && kind != Kind::End {
            return self.tell(me, data, cx.me.0, public(kind, number, 0, body), cx);
        }
        Ok(())
    }

    /// An agent has one alarm: for whatever comes first.
    pub(super) fn set_alarm(&self, me: &State<E>, cx: &mut Cx<'_>) {
        let deadline = me.kept.desk.as_ref().and_then(Desk::deadline);
        let next = [me.kept.retry, deadline].into_iter().flatten().fold(f64::INFINITY, f64::min);
        if next.is_finite() && !me.kept.ended {
            cx.outbox.wake_at(Time(next));
        }
    }

    /// Commits in a round of the beacon; who has no row says so.
    pub(super) fn commit(
        &self,
        me: &mut State<E>,
        round: u32,
        data: Observations<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        me.kept.round = round;
        me.kept.secret = cx.secret.bytes();
        (me.kept.present, me.kept.commitments) = (Vec::new(), Vec::new());
        let mut body = Vec::new();
        if let Some(label) = data.points.labels.first() {
            body.extend(commit(&self.beacon_context(round, cx.me.0), &me.kept.secret));
            body.push(u8::from(*label > 0.0));
        }
        self.tell(me, data, self.config.aggregator, public(Kind::Commitment, round, 0, body), cx)
    }

    /// All commitments are known: reveals, once.
    fn reveal(&self, me: &mut State<E>, data: Observations<'_>, body: &[u8], cx: &mut Cx<'_>) -> Result<(), Reject> {
        if !me.kept.present.is_empty() {
            return Err(Reject::OutOfTurn);
        }
        let map = (self.config.members as usize).div_ceil(8);
        let (map, rest) = body.split_at_checked(map).ok_or(Reject::Malformed)?;
        let present = from_bitmap(map, self.config.members)?;
        let (commitments, rest) = rest.as_chunks::<32>();
        let place = present[..cx.me.index()].iter().filter(|here| **here).count();
        let own = commit(&self.beacon_context(me.kept.round, cx.me.0), &me.kept.secret);
        let is_whole = E::IS_IDEAL && commitments.is_empty()
            || commitments.len() == present.iter().filter(|here| **here).count() && commitments[place] == own;
        if !rest.is_empty() || !present[cx.me.index()] || !is_whole {
            return Err(Reject::Malformed);
        }
        me.kept.present = present;
        me.kept.commitments = commitments.to_vec();
        let secret = me.kept.secret.to_vec();
        self.tell(me, data, self.config.aggregator, public(Kind::Reveal, me.kept.round, 0, secret), cx)
    }

    /// All secrets are known: sees that they fit the commitments, and whom it meets.
    fn take_beacon(&self, me: &mut State<E>, body: &[u8], cx: &mut Cx<'_>) -> Result<(), Reject> {
        if me.kept.beacon.is_some() || me.kept.present.is_empty() {
            return Err(Reject::OutOfTurn);
        }
        let map = (self.config.members as usize).div_ceil(8);
        let (public, rest) = body.split_at_checked(2 * map).ok_or(Reject::Malformed)?;
        let (present, labels) = public.split_at(map);
        let (present, labels) = (from_bitmap(present, self.config.members)?, from_bitmap(labels, self.config.members)?);
        let (value, rest) = rest.split_first_chunk::<32>().ok_or(Reject::Malformed)?;
        let (secrets, rest) = rest.as_chunks::<32>();
        if !rest.is_empty() || present != me.kept.present || secrets.len() != me.kept.commitments.len() {
            return Err(Reject::Malformed);
        }
        let ids = (0..self.config.members).filter(|&id| present[id as usize]);
        let round = me.kept.round;
        let fits = ids
            .zip(secrets)
            .zip(&me.kept.commitments)
            .all(|((id, secret), commitment)| commit(&self.beacon_context(round, id), secret) == *commitment);
        let context = self.beacon_context(round, self.config.aggregator);
        if !fits || !E::IS_IDEAL && beacon(&context, public, secrets.iter()) != *value {
            return Err(Reject::Malformed);
        }
        me.kept.beacon = Some(*value);
        let own = cx.me.0;
        let meetings = self.meetings(*value, &present, &labels).into_iter();
        let mine = meetings.filter(|((a, b), _)| [*a, *b].contains(&own)).map(|((a, b), pair)| Meeting {
            other: if a == own { b } else { a },
            garbles: a == own,
            pair,
            attempt: 0,
            charged: false,
            share: Vec::new(),
            settled: false,
        });
        me.kept.meetings = mine.collect();
        Ok(())
    }

    /// Begins every session anew that this member evaluates and that is not settled.
    pub(super) fn open_all(&self, me: &mut State<E>, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        let Some(beacon) = me.kept.beacon.filter(|_| !me.kept.ended) else { return Ok(()) };
        let mut waits = false;
        for meeting in me.kept.meetings.iter_mut().filter(|meeting| !meeting.garbles && !meeting.settled) {
            pay(meeting, cx)?;
            meeting.attempt = meeting.attempt.saturating_add(1);
            let session = self.session(beacon, (meeting.other, cx.me.0), meeting.pair, meeting.attempt);
            // An attempt before this one is gone, with its labels.
            me.live.remove(&meeting.other);
            // Only an ideal functionality outside of a simulation is refused.
            let Ok((opened, message)) = E::open(&session, &mut cx.secret) else { continue };
            me.live.insert(meeting.other, (meeting.attempt, Live::Opened(opened)));
            cx.outbox.send(PeerId(meeting.other), enclosed(Kind::Opening, meeting.attempt, 0, message));
            waits = true;
        }
        me.kept.retry = waits.then(|| cx.now.after(Time(self.config.timeout)).0);
        Ok(())
    }

    /// The pair with this member, where it has the side that reads such a letter, and something is left to do.
    fn meeting(kept: &mut Kept, with: u32, garbles: bool) -> Result<(&mut Meeting, [u8; 32]), Reject> {
        let beacon = kept.beacon.ok_or(Reject::OutOfTurn)?;
        let meeting = kept.meetings.iter_mut().find(|meeting| meeting.other == with && meeting.garbles == garbles);
        let meeting = meeting.ok_or(Reject::NotANeighbour)?;
        if meeting.settled { Err(Reject::OutOfTurn) } else { Ok((meeting, beacon)) }
    }

    /// The garbler answers an opening of an attempt that is newer than all before.
    fn answer(&self, me: &mut State<E>, from: u32, attempt: u32, body: &[u8], cx: &mut Cx<'_>) -> Result<(), Reject> {
        let (meeting, beacon) = Self::meeting(&mut me.kept, from, true)?;
        if attempt <= meeting.attempt {
            return Err(Reject::OutOfTurn);
        }
        let session = self.session(beacon, (cx.me.0, from), meeting.pair, attempt);
        let (answered, message) = E::answer(&session, body, &mut cx.secret).map_err(refused)?;
        pay(meeting, cx)?;
        // PRIVACY: the share of the attempt before is forgotten: its evaluator has begun anew, and will never say that it finished.
        (meeting.attempt, meeting.share) = (attempt, Vec::new());
        me.live.insert(from, (attempt, Live::Answered(answered)));
        cx.outbox.send(PeerId(from), enclosed(Kind::Choices, attempt, 0, message));
        Ok(())
    }

    /// The evaluator asks for its instances.
    fn request(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        from: u32,
        attempt: u32,
        body: &[u8],
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let (meeting, _) = Self::meeting(&mut me.kept, from, false)?;
        let Some((_, Live::Opened(opened))) = take(&mut me.live, from, attempt, |live| matches!(live, Live::Opened(_)))
        else {
            return Err(Reject::OutOfTurn);
        };
        let numbers = self.numbers(data);
        let own = self.brought(&numbers, meeting.pair);
        let (requested, message) = E::request(opened, body, own, &mut cx.secret).map_err(refused)?;
        me.live.insert(from, (attempt, Live::Requested(requested)));
        cx.outbox.send(PeerId(from), enclosed(Kind::Request, attempt, 0, message));
        Ok(())
    }

    /// The garbler garbles, keeps its share, and sends the tables.
    fn garble(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        from: u32,
        attempt: u32,
        body: &[u8],
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let (meeting, _) = Self::meeting(&mut me.kept, from, true)?;
        let Some((_, Live::Answered(answered))) =
            take(&mut me.live, from, attempt, |live| matches!(live, Live::Answered(_)))
        else {
            return Err(Reject::OutOfTurn);
        };
        let numbers = self.numbers(data);
        let own = self.brought(&numbers, meeting.pair);
        let (message, share) = E::garble(answered, body, own, &mut cx.secret).map_err(refused)?;
        meeting.share = share.to_bytes();
        cx.outbox.send(PeerId(from), enclosed(Kind::Tables, attempt, 0, message));
        Ok(())
    }

    /// The evaluator has its share: it leaves, once, and the garbler hears for which attempt.
    fn evaluate(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        from: u32,
        attempt: u32,
        body: &[u8],
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let (meeting, _) = Self::meeting(&mut me.kept, from, false)?;
        let Some((_, Live::Requested(requested))) =
            take(&mut me.live, from, attempt, |live| matches!(live, Live::Requested(_)))
        else {
            return Err(Reject::OutOfTurn);
        };
        let share = E::evaluate(requested, body).map_err(refused)?;
        // PRIVACY: from here on this member begins no other attempt of this pair. Charged before the first one's first message.
        meeting.settled = true;
        cx.outbox.send_durable(PeerId(from), public(Kind::Finished, attempt, 0, Vec::new()))?;
        self.tell(me, data, self.config.aggregator, enclosed(Kind::Share, attempt, from, share.seal()), cx)
    }

    /// The garbler hears that the evaluator has its share of this attempt: its own leaves, once.
    fn finish(
        &self,
        me: &mut State<E>,
        data: Observations<'_>,
        from: u32,
        attempt: u32,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let (meeting, _) = Self::meeting(&mut me.kept, from, true)?;
        if meeting.attempt != attempt || meeting.share.is_empty() {
            return Err(Reject::OutOfTurn);
        }
        meeting.settled = true;
        let share = std::mem::take(&mut meeting.share);
        me.live.remove(&from);
        // PRIVACY: this member's half of an answer that was charged before the session's first message; it was written down then, and leaves once.
        let share = Released::found_again(share);
        let head: Public<(u32, u32)> = Public::declare((attempt, from));
        let letter = share.with_public(head, |(number, other), body| PairLetter {
            kind: Kind::Share,
            number,
            other,
            body: Cow::Owned(body),
        });
        self.tell(me, data, self.config.aggregator, letter, cx)
    }

    /// This member's row, on the grid.
    fn numbers(&self, data: Observations<'_>) -> Vec<u64> {
        data.rows().next().into_iter().flatten().map(|value| self.mechanism.number(value)).collect()
    }

    fn brought<'n>(&self, numbers: &'n [u64], pair: Pair) -> Brought<'n> {
        Brought { numbers, width: self.mechanism.bits(), instances: pair.instances as usize }
    }
}

/// Charges all answers of a pair, once, before the first message of its first attempt.
fn pay(meeting: &mut Meeting, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
    if !meeting.charged {
        for _ in 0..meeting.pair.instances {
            // PRIVACY: one answer that the circuit's own noise protects, made by both together, for the aggregator. Of all attempts at this pair one
            // can lead to it: proofs/two-party-protocol.md.
            let _receipt = cx.gate.charge(Track::Models, 1.0, Audience::Aggregator)?;
        }
        meeting.charged = true;
    }
    Ok(())
}

/// Takes what is under way with a member out of memory, if it is of this attempt and of this kind.
fn take<E: Engine>(
    live: &mut BTreeMap<u32, (u32, Live<E>)>,
    with: u32,
    attempt: u32,
    is_kind: impl Fn(&Live<E>) -> bool,
) -> Option<(u32, Live<E>)> {
    let fits = live.get(&with).is_some_and(|(number, live)| *number == attempt && is_kind(live));
    if fits { live.remove(&with) } else { None }
}
