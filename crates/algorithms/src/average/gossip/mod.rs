//! The mean, or the sum, of everybody's rows by pairwise averaging (Boyd, Ghosh, Prabhakar and Shah, *Randomized Gossip
//! Algorithms*, IEEE Transactions on Information Theory 52(6), 2006).
//!
//! An agent that wakes picks one of its neighbours at random and both move to the mean of what they hold:
//!
//! v_i, v_j <- (v_i + v_j) / 2
//!
//! The sum over all agents never changes, so what everyone comes to hold is the mean. With P_ij = 1 / |N_i| and
//!
//! W = I - 1/n sum_i sum_j P_ij (e_i - e_j)(e_i - e_j)^T / 2
//!
//! one exchange multiplies the expected squared distance to the mean by lambda_2(W) at most, the second largest eigenvalue
//! (their Theorem 3). On the complete graph it is exactly 1 - 1 / (n - 1); on a ring it is 1 - O(1 / n^3).
//!
//! What an agent holds is a *mass*: the sum of each of its columns, and a weight. Both are averaged, and the agent's estimate is
//! sums / weight. For a mean the weight begins as the agent's number of rows, so the limit is the mean over all rows, whoever has
//! how many; for a sum it begins as one, and the limit is n times the mean of the agents' sums.
//!
//! # Lossy links
//!
//! Letters are lost, doubled and overtaken, agents crash, and no mass may be lost or doubled with them. An exchange is:
//!
//! | letter | from | what it says | numbers |
//! |---|---|---|---|
//! | invite | host | let us meet for the k-th time | none |
//! | bring | guest | everything that the guest holds; it holds nothing now | columns + 1 |
//! | return | host | half of what the two had; the host keeps the other half | columns + 1 |
//!
//! Host and guest of an ordered pair number their meetings 1, 2, ... The guest brings once for each number, keeps a copy until the
//! return of that number has come, and until then answers any invitation of this host with the copy. The host takes a bring
//! once, keeps what it returned, and answers the same bring again with the same return. It invites for k + 1 only after the bring of
//! k. So at any time a mass is in exactly one place:
//!
//! - the guest holds it (its k-th bring has not been made, or the k-th return was added),
//! - it is on its way to the host (the guest has made its k-th bring, the host has not taken it),
//! - the host holds half of it, and half is on its way to the guest (the host has taken it, the guest has no return yet),
//!
//! and the sum over agents and ways is what it was at the start, up to one rounding of each number in each exchange. Which letters
//! arrive, in which order and how often, decides only how long a mass is on its way. Both ends save their state before a
//! letter leaves, so an agent that crashes finds its copies again.
//!
//! Nothing waits: who holds nothing may invite and be invited all the same, and a silent neighbour costs one exchange. Nobody gives
//! anything to a neighbour that has never spoken. Weights are never negative, and a mass of weight w holds sums of w times a weighted
//! mean of rows; so every estimate lies between the smallest and the largest row at any time, however long letters take. (Two
//! agents that applied half their difference when the letters arrive would conserve the sum too, but with letters slower than wakes
//! they overshoot.) In the limit all masses have one ratio (this is the convergence of ratios of Kempe, Dobra and Gehrke, *Gossip-based
//! computation of aggregate information*, FOCS 2003, whose matrices also hold ways of letters, here as rows of their own).
//!
//! Differs from the paper: three letters instead of two, for the sake of the above; an agent that still waits for returns asks for one
//! of them at every other wake instead of inviting; weights of edges do not matter; each component of a graph that is not connected finds its own mean.
//!
//! # Privacy
//! None: what an agent brings first is made of its exact rows. The gate charges every letter epsilon = infinity.

use crate::config::{ConfigError, at_least_one};
use crate::vector::largest_difference;
use crate::{Observations, saved};
use serde::{Deserialize, Serialize};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Reject, Wire, wire::Numbers};
use sottovoce_privacy::Exhausted;

/// What the agents want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The mean of each column over all rows.
    Mean,
    /// The sum of each column over all rows, of so many agents.
    Sum {
        /// n.
        agents: usize,
    },
}

/// The hyper-parameters, before they are checked.
///
/// | name | range | default |
/// |---|---|---|
/// | columns | at least 1 | the task's columns |
/// | goal | | the task's statistic |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GossipConfig {
    /// Numbers in a row.
    pub columns: usize,
    /// Mean or sum.
    pub goal: Goal,
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct Gossip {
    columns: usize,
    goal: Goal,
}

impl Gossip {
    /// Checks the hyper-parameters.
    pub fn new(GossipConfig { columns, goal }: GossipConfig) -> Result<Self, ConfigError> {
        at_least_one("columns", columns)?;
        if let Goal::Sum { agents } = goal {
            at_least_one("agents", agents)?;
        }
        Ok(Gossip { columns, goal })
    }

    /// What an agent holds at the start: the sums of its columns, and its weight.
    fn first_mass(&self, observations: Observations<'_>) -> Vec<f64> {
        assert_eq!(observations.points.dimension, self.columns, "as many columns as in the task");
        let mut mass = vec![0.0; self.columns + 1];
        for row in observations.rows() {
            mass.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        mass[self.columns] = match self.goal {
            Goal::Mean => observations.points.len() as f64,
            Goal::Sum { .. } => 1.0,
        };
        mass
    }

    /// What a mass says of the statistic. One without weight, and one that only a liar can have made, say nothing.
    fn estimate(&self, mass: &[f64], estimate: &mut [f64]) {
        let factor = match self.goal {
            Goal::Mean => 1.0,
            Goal::Sum { agents } => agents as f64,
        };
        let (sums, weight) = (&mass[..self.columns], mass[self.columns]);
        let values = sums.iter().map(|sum| factor * (sum / weight));
        if weight > 0.0 && values.clone().all(f64::is_finite) {
            estimate.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        }
    }
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State {
    /// The sums of the columns, and the weight.
    mass: Vec<f64>,
    /// How many neighbours it has. It is saved, so that the state of an agent with fewer or more is refused.
    degree: usize,
    /// Those it has met, by increasing peer.
    links: Vec<Link>,
    /// How many links wait for a return.
    unreturned: usize,
    /// What the mass said when it last had a weight.
    estimate: Vec<f64>,
    /// The estimate at the last wake.
    before: Vec<f64>,
}

/// What an agent remembers of one neighbour, of the meetings it hosts and of those it is a guest at.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Link {
    peer: PeerId,
    /// As host: the number of the last invitation.
    invited: u64,
    /// As host: the number of the last bring; `invited`, or one less.
    returned: u64,
    /// As host: what was returned for it; empty before the first.
    back: Vec<f64>,
    /// As guest: the number of the last bring.
    brought: u64,
    /// As guest: what was brought, until its return has come; empty then.
    copy: Vec<f64>,
}

impl Link {
    fn new(peer: PeerId) -> Self {
        Link { peer, invited: 0, returned: 0, back: Vec::new(), brought: 0, copy: Vec::new() }
    }

    /// Whether the return of the last bring has not come yet.
    fn waits(&self) -> bool {
        !self.copy.is_empty()
    }

    /// Whether it can be saved by an agent whose masses have so many numbers.
    fn is_sound(&self, len: usize) -> bool {
        let Link { peer: _, invited, returned, back, brought, copy } = self;
        saved::is_count(*invited)
            && saved::is_count(*brought)
            && (*returned == *invited || returned.checked_add(1) == Some(*invited))
            && if *returned == 0 { back.is_empty() } else { is_mass(back, len) }
            && (copy.is_empty() || *brought > 0 && is_mass(copy, len))
    }
}

/// Whether these can be sums and a weight.
fn is_mass(values: &[f64], len: usize) -> bool {
    saved::is_vector(values, len) && values[len - 1] >= 0.0
}

impl State {
    /// What the agent holds: the sum of each column, and the weight.
    pub fn mass(&self) -> &[f64] {
        &self.mass
    }

    /// What is on its way between this agent, as a guest, and a host: to the host, or back from it.
    pub fn on_its_way<'a>(&'a self, me: PeerId, host: PeerId, hosts: &'a State) -> Option<&'a [f64]> {
        let mine = self.link(host).filter(|link| link.waits())?;
        match hosts.link(me) {
            Some(theirs) if theirs.returned == mine.brought => Some(&theirs.back),
            _ => Some(&mine.copy),
        }
    }

    fn link(&self, peer: PeerId) -> Option<&Link> {
        self.links.binary_search_by_key(&peer, |link| link.peer).ok().map(|at| &self.links[at])
    }

    /// Where the link to a neighbour is; a new one if they have never met.
    fn met(&mut self, peer: PeerId) -> usize {
        self.links.binary_search_by_key(&peer, |link| link.peer).unwrap_or_else(|at| {
            self.links.insert(at, Link::new(peer));
            at
        })
    }
}

/// What a letter of gossip says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GossipKind {
    /// A host wants to meet.
    Invite,
    /// A guest brings what it holds.
    Bring,
    /// The host returns half of what the two had.
    Return,
}

/// A letter of gossip.
///
/// | bytes | what |
/// |---|---|
/// | 1 | kind: 0 invite, 1 bring, 2 return |
/// | 8 | the number of the meeting, little-endian |
/// | 8 each | a mass, little-endian; none in an invitation |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GossipLetter<'a> {
    /// What it says.
    pub kind: GossipKind,
    /// The number of the meeting.
    pub number: u64,
    /// The mass.
    pub mass: Numbers<'a>,
}

impl<'a> Wire<'a> for GossipLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            GossipKind::Invite => 0,
            GossipKind::Bring => 1,
            GossipKind::Return => 2,
        });
        out.extend_from_slice(&self.number.to_le_bytes());
        self.mass.encode(out);
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let ([kind], rest) = bytes.split_first_chunk().ok_or(Reject::Malformed)?;
        let (number, mass) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
        let kind = match kind {
            0 => GossipKind::Invite,
            1 => GossipKind::Bring,
            2 => GossipKind::Return,
            _ => return Err(Reject::Malformed),
        };
        Ok(GossipLetter { kind, number: u64::from_le_bytes(*number), mass: Numbers::decode(mass)? })
    }

    fn vectors(&self) -> u64 {
        u64::from(self.kind != GossipKind::Invite)
    }
}

impl Algorithm for Gossip {
    type Data<'d> = Observations<'d>;
    type State = State;
    type Letter<'a> = GossipLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, observations: Observations<'_>) -> usize {
        crate::problem::letter_bytes_max(observations.points.dimension)
    }

    fn start(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let mass = self.first_mass(observations);
        let mut estimate = vec![0.0; self.columns];
        self.estimate(&mass, &mut estimate);
        let degree = cx.peers.len();
        Ok(State { mass, degree, links: Vec::new(), unreturned: 0, before: estimate.clone(), estimate })
    }

    fn on_wake(&self, me: &mut State, _: Observations<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let moved = largest_difference(&me.estimate, &me.before);
        me.before.copy_from_slice(&me.estimate);
        if cx.peers.is_empty() {
            return Ok(Activity { moved });
        }
        if me.unreturned > 0 && cx.coin.below(2) == 0 {
            let which = cx.coin.below(me.unreturned);
            if let Some(link) = me.links.iter().filter(|link| link.waits()).nth(which) {
                send(GossipKind::Bring, link.brought, &link.copy, link.peer, cx)?;
            }
            return Ok(Activity { moved });
        }
        let to = cx.peers.edge(cx.coin.below(cx.peers.len())).peer;
        let at = me.met(to);
        let link = &mut me.links[at];
        // An invitation that was not taken up stands, with its number.
        link.invited = link.returned + 1;
        send(GossipKind::Invite, link.invited, &[], to, cx)?;
        Ok(Activity { moved })
    }

    fn on_letter(
        &self,
        me: &mut State,
        _: Observations<'_>,
        from: PeerId,
        letter: GossipLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        cx.peers.position(from).ok_or(Reject::NotANeighbour)?;
        let numbers = if letter.kind == GossipKind::Invite { 0 } else { self.columns + 1 };
        if letter.mass.len() != numbers {
            return Err(Reject::WrongDimension);
        }
        if letter.mass.iter().last().is_some_and(|weight| weight < 0.0) {
            return Err(Reject::Malformed);
        }
        let at = me.met(from);
        match letter.kind {
            GossipKind::Invite => accept(me, at, letter.number, cx),
            GossipKind::Bring => {
                share(me, at, &letter, cx)?;
                self.estimate(&me.mass, &mut me.estimate);
                Ok(())
            }
            GossipKind::Return => {
                let link = &mut me.links[at];
                if !link.waits() || link.brought != letter.number {
                    return Err(Reject::OutOfTurn);
                }
                link.copy.clear();
                me.unreturned -= 1;
                me.mass.iter_mut().zip(letter.mass.iter()).for_each(|(mine, back)| *mine += back);
                self.estimate(&me.mass, &mut me.estimate);
                Ok(())
            }
        }
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(&(&me.mass, me.degree, &me.links, &me.estimate, &me.before), out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        _: Observations<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        type Saved = (Vec<f64>, usize, Vec<Link>, Vec<f64>, Vec<f64>);
        let (mass, degree, links, estimate, before): Saved = saved::read(saved)?;
        let len = self.columns + 1;
        saved::check(is_mass(&mass, len) && links.iter().all(|link| link.is_sound(len)))?;
        saved::check(saved::is_vector(&estimate, self.columns) && saved::is_vector(&before, self.columns))?;
        saved::check(degree == cx.peers.len() && saved::are_neighbours(cx.peers, links.iter().map(|link| link.peer)))?;
        let unreturned = links.iter().filter(|link| link.waits()).count();
        Ok(State { mass, degree, links, unreturned, estimate, before })
    }

    fn model<'a>(&self, me: &'a State, _posted: &'a [f64]) -> &'a [f64] {
        &me.estimate
    }
}

/// The guest brings all it holds, once for each invitation; again what it brought, while the return has not come.
fn accept(me: &mut State, at: usize, number: u64, cx: &mut Cx<'_>) -> Result<(), Reject> {
    let link = &mut me.links[at];
    if link.waits() {
        // The number may be the next one already: the host has taken what was brought, and its return was lost.
        send(GossipKind::Bring, link.brought, &link.copy, link.peer, cx)?;
        return Ok(());
    }
    if number.checked_sub(1) != Some(link.brought) {
        return Err(Reject::OutOfTurn);
    }
    send(GossipKind::Bring, number, &me.mass, link.peer, cx)?;
    link.brought = number;
    link.copy.extend_from_slice(&me.mass);
    me.mass.fill(0.0);
    me.unreturned += 1;
    Ok(())
}

/// The host takes what was brought, once, keeps half of what the two had, and returns the other half.
fn share(me: &mut State, at: usize, letter: &GossipLetter<'_>, cx: &mut Cx<'_>) -> Result<(), Reject> {
    let link = &mut me.links[at];
    if letter.number == link.returned && link.returned > 0 {
        send(GossipKind::Return, link.returned, &link.back, link.peer, cx)?;
        return Ok(());
    }
    if letter.number != link.invited || link.invited == link.returned {
        return Err(Reject::OutOfTurn);
    }
    cx.scratch.clear();
    cx.scratch.extend(me.mass.iter().zip(letter.mass.iter()).map(|(mine, theirs)| (mine + theirs) / 2.0));
    link.back.clear();
    link.back.extend_from_slice(cx.scratch);
    link.returned = link.invited;
    me.mass.copy_from_slice(cx.scratch);
    send(GossipKind::Return, link.returned, &link.back, link.peer, cx)?;
    Ok(())
}

fn send(kind: GossipKind, number: u64, mass: &[f64], to: PeerId, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
    // PRIVACY: exact sums leave, visible to everyone on the way: epsilon = infinity. Invitations hold no data, and cost the same.
    let letter = cx.gate.reveal(GossipLetter { kind, number, mass: Numbers::Plain(mass) })?;
    cx.outbox.send(to, letter);
    Ok(())
}

#[cfg(test)]
mod tests;
