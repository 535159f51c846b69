//! POLAR-SGD (Gade and Vaidya 2018): one model for all by several parameter servers, none of which sees a client's gradient as it is.
//!
//! ```text
//! min_{x in X} sum_h f_h(x)
//! round k, step i:  client h takes a gradient g at its servers' models, and uploads W_i[J,h] g + d_i^{J,h} to each server J of its N_h
//!                   server J: x^J <- Proj_X(x^J - alpha_k sum_h y^{J,h})
//! after Delta steps the servers average their models, under pads that cancel (Algorithm 2, lines 7 to 12)
//! weights:          sum_J sum_i W = M for all clients alike, sum |W| <= Mbar;  sum_J d = 0, |d| <= Y
//! ```
//!
//! Every message is a durable letter, so that rounds are the same whoever restarts when; a server's alarm is for those who are gone.
//!
//! Differs from the paper:
//! - **The modulus** of the secure sum is 2^64, above S times the range. The printed one, the range, destroys the sum as soon as it wraps. Numbers are fixed
//!   point, so that pads cancel to the bit; pads come from a key agreement of each pair of servers.
//! - **Minimum-wait** takes the model of a server that is drawn for each step, not of the fastest: what is simulated is what is deployed.
//! - **Faults**, which the paper assumes away: see [`server`]. A round counts all of a client or nothing of it. A server is waited for, and a server that
//!   never comes back ends the run for all.
//! - **Delta steps, one step size**: alpha changes from round to round. The mean of the servers moves by alpha_k M / S times the gradient in a round.
//!
//! # Privacy
//! **This is not differential privacy.** A server sees W g + d and not g; at a model that stays where it is, the mean of a hundred such uploads points
//! nearly where the client's gradient does (docs/polar.md). The ledger says epsilon = infinity, audience: the servers. With a plan each gradient has noise before it is
//! weighted, and that is local differential privacy: [`private`].

pub mod client;
pub mod config;
mod letter;
pub mod perturbation;
pub mod private;
pub mod server;

pub use client::Client;
pub use config::{BadPolar, CompactSet, Consensus, Polar, PolarConfig, Scope, StepSize, Variant, Weights};
pub use letter::{PolarLetter, Words};
pub use private::PolarPrivacy;
pub use server::Server;

use letter::HEAD_BYTES;
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::{Shard, saved};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::Exhausted;

/// What an agent remembers.
#[derive(Debug, Serialize, Deserialize)]
pub enum State {
    /// It has data.
    Client(Box<Client>),
    /// It has a model.
    Server(Box<Server>),
}

impl State {
    /// The server, where the agent is one.
    pub fn server(&self) -> Option<&Server> {
        match self {
            State::Server(server) => Some(server),
            State::Client(_) => None,
        }
    }

    /// How many steps its model has been through.
    pub fn steps(&self) -> u64 {
        u64::from(match self {
            State::Client(client) => client.model_step(),
            State::Server(server) => server.progress().1,
        })
    }

    /// The client, where the agent is one.
    pub fn client(&self) -> Option<&Client> {
        match self {
            State::Client(client) => Some(client),
            State::Server(_) => None,
        }
    }
}

impl Algorithm for Polar {
    /// Servers have no points.
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = PolarLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Shard<'_>) -> usize {
        HEAD_BYTES + (8 * self.config.dimension).max(8 * self.clients())
    }

    fn wake_rate(&self, _: Shard<'_>, _: Peers<'_>) -> f64 {
        0.0
    }

    fn start(&self, _: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        Ok(match self.server(cx.me) {
            Some(place) => State::Server(Box::new(Server::start(self, place, cx))),
            None => State::Client(Box::new(Client::new(self, cx))),
        })
    }

    /// The time-out of a server.
    fn on_wake(&self, me: &mut State, _: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        if let (State::Server(server), Some(place)) = (me, self.server(cx.me)) {
            server.on_wake(self, place, cx);
        }
        Ok(Activity { moved: 0.0 })
    }

    fn on_letter(
        &self,
        me: &mut State,
        shard: Shard<'_>,
        from: PeerId,
        letter: PolarLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        match (me, self.server(cx.me)) {
            (State::Server(server), Some(place)) => server.on_letter(self, place, from, letter, cx),
            (State::Client(client), None) => client.on_letter(self, shard, from, letter, cx),
            _ => unreachable!("a state is checked against the roster when it is made"),
        }
    }

    fn is_done(&self, me: &State) -> bool {
        match me {
            State::Client(client) => client.is_done(self),
            State::Server(server) => server.is_done(),
        }
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        _: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        let me: State = saved::read(saved)?;
        // Places are among all clients and all servers.
        saved::expect_same(neighbours)?;
        match (me, self.server(cx.me)) {
            (State::Server(server), Some(place)) => Ok(State::Server(Box::new(server.resumed(self, place)?))),
            (State::Client(client), None) => Ok(State::Client(Box::new(client.resumed(self)?))),
            _ => Err(CannotResume::Malformed),
        }
    }

    fn model<'a>(&self, me: &'a State, _: &'a [f64]) -> &'a [f64] {
        match me {
            State::Client(client) => client.model(),
            State::Server(server) => server.model(),
        }
    }
}

#[cfg(test)]
mod tests;
