//! A sum under masks that cancel (GOPA: Sabater, Bellet and Ramon; thesis 4.1), with pads and second masks.
//!
//! ```text
//! y_u = x_u + eta_u + B_u + sum over neighbours v of D_uv   in Z_2^64,   D_uv = -D_vu,   eta_u: a discrete Gaussian of variance sigma^2 / (n_H - 1)
//! sum over those who finished of y_u - B_u, less the pads with those who did not  =  sum of x_u + eta_u, to the last bit
//! ```
//!
//! 1. Each member draws a key and k others, and enrols with the board. The board tells each with whom it shares pads: whom it picked, and who picked it.
//! 2. Each publishes y_u, and shares of its own mask's key, sealed for its picks.
//! 3. The board names to each who has published the neighbours that have not: the pads with them are opened. Whoever does not answer in time is taken off
//!    the list, and the pads with it are opened too.
//! 4. When no pad is missing and enough have finished, the picks on the list open their shares of the own masks of those on the list; any t are enough.
//!
//! A publication that comes late, or again after a restart, is still under its author's own mask, whose shares nobody opens who has opened its pad. The board
//! waits for nobody longer than its time-out; members wait for the board. Later rounds use the keys and the graph of the first.
//!
//! Differs from the thesis:
//! - **Pads** are uniform in Z_2^64 instead of Gaussian: only that honest members are connected matters. Their price is that every dropout must be rolled back.
//! - **Own masks** (Bonawitz et al. 2017; Bell et al. 2020): without them a late publication would show x + eta.
//! - **Noise** is for n_H - 1 members: whoever is curious knows its own share.
//! - **Simulations** agree on nothing: secrets of pairs follow from what is published, since whoever knows the seed knows them anyway (`Simulation`). All else is the same.
//! - **Members follow the protocol.** Nothing is proved to anyone: a wrong contribution, share or pad makes a wrong sum.
//!
//! # Privacy
//! Against everyone, any one member and as many colluding ones as the accountant says, all of whom follow the protocol: `crates/privacy/proofs/gopa.md`.

mod board;
mod config;
mod letter;
mod local_steps;
mod member;

pub use board::Phase;
pub use config::{BadGopa, Gopa, GopaConfig, MEMBERS_MIN};
pub use letter::{GopaLetter, Keyed};
pub use local_steps::LocalSteps;

use board::Board;
use member::Member;
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::{Observations, saved};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::{Exhausted, Public, Released};

/// A letter, and to whom.
type Post = (PeerId, Released<GopaLetter>);

/// What an agent remembers. It holds secrets, so it is not shown.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    member: Member,
    /// Of the board.
    board: Option<Board>,
}

impl State {
    /// Whether it knows an estimate.
    pub fn knows(&self) -> bool {
        self.member.sums > 0
    }

    /// How many sums it knows.
    pub fn sums(&self) -> u32 {
        self.member.sums
    }

    /// How many rounds the model that it knows has been through.
    pub fn rounds(&self) -> u64 {
        self.member.sums.into()
    }

    /// How many contributions the sums that it knows miss, because their members had gone.
    pub fn missing(&self) -> u32 {
        self.member.missing
    }

    /// How many rounds it has published for.
    pub fn published(&self) -> u32 {
        self.member.next_round
    }

    /// What the board waits for, and who is on its list; none of another member.
    pub fn list(&self) -> Option<(Phase, Vec<u32>)> {
        self.board.as_ref().map(|board| (board.phase, board.list.iter().copied().collect()))
    }
}

/// Keys, picks, opened pads and opened shares: bits that were drawn without looking at any data.
fn random_bits(letter: GopaLetter) -> Released<GopaLetter> {
    Public::declare(letter).into()
}

/// What the board says follows from what members have published and opened.
fn heard_from_members(letter: GopaLetter) -> Released<GopaLetter> {
    Public::declare(letter).into()
}

impl Gopa {
    /// Sends what is for others, and does at once what the board says to itself.
    fn carry_out(&self, me: &mut State, observations: Observations<'_>, mut posts: Vec<Post>, cx: &mut Cx<'_>) {
        while !posts.is_empty() {
            for (to, letter) in std::mem::take(&mut posts) {
                if to == cx.me {
                    // Its own letters fit, but for a budget that is spent: then it does not take part.
                    let _ = self.read(me, observations, cx.me, letter.into_inner(), cx, &mut posts);
                } else {
                    // Whoever has been gone for so long is not told.
                    let _ = cx.outbox.send_durable(to, letter);
                }
            }
        }
    }

    fn read(
        &self,
        me: &mut State,
        observations: Observations<'_>,
        from: PeerId,
        letter: GopaLetter,
        cx: &mut Cx<'_>,
        posts: &mut Vec<Post>,
    ) -> Result<(), Reject> {
        let for_board = matches!(
            letter,
            GopaLetter::Enrol { .. } | GopaLetter::Publish { .. } | GopaLetter::Pads { .. } | GopaLetter::Shares { .. }
        );
        match (&mut me.board, for_board) {
            (Some(board), true) => self.hear(board, from, letter, cx, posts),
            (None, true) => Err(Reject::OutOfTurn),
            (_, false) if from != self.config.board => Err(Reject::OutOfTurn),
            (_, false) => self.told(&mut me.member, observations, letter, cx, posts),
        }
    }
}

impl Algorithm for Gopa {
    type Data<'d> = Observations<'d>;
    type State = State;
    type Letter<'a> = GopaLetter;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Observations<'_>) -> usize {
        letter::bytes_max(self.config.members, self.config.numbers())
    }

    fn wake_rate(&self, _: Observations<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let (member, enrol) = self.enrol(cx);
        let board = (cx.me == self.config.board).then(Board::default);
        if board.is_some() {
            self.set_alarm(cx);
        }
        let mut me = State { member, board };
        self.carry_out(&mut me, observations, vec![enrol], cx);
        Ok(me)
    }

    /// The board's time-out.
    fn on_wake(&self, me: &mut State, observations: Observations<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        if let Some(board) = &mut me.board {
            let mut posts = Vec::new();
            self.lose_patience(board, cx, &mut posts);
            self.carry_out(me, observations, posts, cx);
        }
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        observations: Observations<'_>,
        from: PeerId,
        letter: GopaLetter,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let mut posts = Vec::new();
        self.read(me, observations, from, letter, cx, &mut posts)?;
        self.carry_out(me, observations, posts, cx);
        Ok(())
    }

    fn is_done(&self, me: &State) -> bool {
        me.member.heard == self.config.rounds && me.board.as_ref().is_none_or(|board| board.phase == Phase::Over)
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
        let me: State = saved::read(saved)?;
        // Numbers of members are those of the roster.
        saved::expect_same(neighbours)?;
        let is_board = me.board.is_some() == (cx.me == self.config.board);
        saved::check(is_board && self.is_member(&me.member))?;
        saved::check(me.board.as_ref().is_none_or(|board| self.is_board(board)))?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        &me.member.estimate
    }
}
