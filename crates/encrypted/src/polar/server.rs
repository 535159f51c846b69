//! What a server does: adds up uploads step by step, and comes together with the other servers after each round.
//!
//! ```text
//! x^J <- Proj_X(x^J - alpha_k sum_h y^{J,h})        after each step
//! x^J <- mean_I x^I   or   sum_I B_k[J,I] x^I       after each round
//! ```
//!
//! A round ends in three phases, each a wait for all other servers: *rosters* (who was left out), *shares* (models, under pads or in the clear), and
//! the next round. So servers are never a phase apart, and everyone counts the same clients.
//!
//! **Who is gone.** A client that does not upload within the time-out is left out of the round, and with it all it has uploaded in the round: servers take it back
//! before they come together, all of them, so that the weights of everyone who counts add up. A server that waits first asks the others whether they
//! have begun the step: while one of them is away no client is blamed. Servers themselves are waited for.

use super::config::{Consensus, FRACTION_BITS, Polar};
use super::letter::{PolarLetter, Words};
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::saved;
use sottovoce_algorithms::vector::{add_scaled, largest};
use sottovoce_core::wire::Numbers;
use sottovoce_core::{CannotResume, Cx, PeerId, Reject, Rows, Time};
use sottovoce_crypto::agreement::{TaskKey, TaskPublicKey};
use sottovoce_crypto::fixed_point::{Grid, from_ring, to_ring};
use sottovoce_crypto::masked;
use sottovoce_crypto::pad::{Direction, PairSecret};
use sottovoce_privacy::{Public, Released};

/// Keys are drawn for one run, so that this keeps them apart from other uses only.
const CONTEXT: [u8; 32] = *b"sottovoce/polar-sgd/servers/v1..";

/// No honest server comes near this.
const SAVED_MAX: f64 = 1e100;

/// What a server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// Uploads of a step.
    Uploads,
    /// The others' rosters.
    Rosters,
    /// The others' models.
    Shares,
    /// Nothing.
    Done,
}

/// How long it has waited for uploads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Patience {
    /// Not for the time-out.
    Fresh,
    /// It has asked the others whether they have begun the step.
    Asked,
    /// All others have, and it waits for the last time.
    Last,
}

/// Whether a client counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Standing {
    /// It has other servers.
    Elsewhere,
    /// It counts.
    Present,
    /// It was left out of this round.
    Left,
    /// It was left out of an earlier round, and has not been taken back.
    Gone,
}

/// What a server remembers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Server {
    x: Vec<f64>,
    round: u32,
    /// The step whose uploads it takes; between two rounds, the next one.
    step: u32,
    phase: Phase,
    patience: Patience,
    /// By server: whether it has answered the question.
    answered: Vec<bool>,
    /// By server: the step that it asks about, plus one.
    asked: Vec<u32>,
    /// Whether it has waited a time-out in a round without clients.
    idled: bool,
    /// By client.
    standing: Vec<Standing>,
    /// By client: whether it has said that it is there.
    here: Vec<bool>,
    /// For even and odd steps, by client: whether its upload is there.
    arrived: [Vec<bool>; 2],
    uploads: [Rows; 2],
    /// By client: the sum of its uploads in this round.
    block: Rows,
    /// By server: whether its roster is there.
    rosters: Vec<bool>,
    /// By client: whether another server has left it out.
    left: Vec<bool>,
    /// By client: how many servers say that it is back.
    back: Vec<u32>,
    /// By server: whether its share is there.
    shares: Vec<bool>,
    /// The sum of the shares under pads.
    sum: Vec<u64>,
    /// By server: its share in the clear.
    plain: Rows,
    /// Its own secret key, for its own disk.
    secret: [u8; 32],
    /// By server: its public key.
    keys: Vec<Option<[u8; 32]>>,
    #[serde(skip)]
    pairs: Vec<Option<PairSecret>>,
    #[serde(skip)]
    missing: usize,
}

/// What a server computes is made of what clients have uploaded, and paid for; it has no data of its own.
fn of_uploads<T>(value: T) -> Released<T> {
    // PRIVACY: post-processing of uploads, which their clients' ledgers hold.
    Public::declare(value).into()
}

impl Server {
    /// Opens the first round.
    pub(super) fn start(polar: &Polar, me: usize, cx: &mut Cx<'_>) -> Self {
        let (config, clients) = (&polar.config, polar.clients());
        let (servers, dimension) = (config.servers.len(), config.dimension);
        let own = |client| if polar.place_of(me, client).is_some() { Standing::Present } else { Standing::Elsewhere };
        let is_secure = config.consensus == Consensus::Secure;
        let mut this = Server {
            x: vec![config.start; dimension],
            round: 0,
            step: 0,
            phase: Phase::Uploads,
            patience: Patience::Fresh,
            answered: vec![false; servers],
            asked: vec![0; servers],
            idled: false,
            standing: (0..clients).map(own).collect(),
            here: vec![false; clients],
            arrived: [vec![false; clients], vec![false; clients]],
            uploads: [Rows::zeros(clients, dimension), Rows::zeros(clients, dimension)],
            block: Rows::zeros(clients, dimension),
            rosters: vec![false; servers],
            left: vec![false; clients],
            back: vec![0; clients],
            shares: vec![false; servers],
            sum: vec![0; dimension],
            plain: Rows::zeros(if is_secure { 0 } else { servers }, dimension),
            secret: cx.secret.bytes(),
            keys: vec![None; servers],
            pairs: (0..servers).map(|_| None).collect(),
            missing: 0,
        };
        if is_secure {
            let public = this.key().public().to_bytes();
            // PRIVACY: a public key, drawn a moment ago.
            this.tell_servers(polar, me, PolarLetter::Key(public), cx);
        }
        this.begin(polar, me, cx);
        this
    }

    /// x^J.
    pub(super) fn model(&self) -> &[f64] {
        &self.x
    }

    /// Whether all rounds are over.
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// The round it is in, from zero, and the step within all rounds.
    pub fn progress(&self) -> (u32, u32) {
        (self.round, self.step)
    }

    /// The latest upload of a client, by its place among the clients, and of which step: what an honest but curious server sees of it.
    pub fn upload(&self, step: u32, client: usize) -> &[f64] {
        self.uploads[(step % 2) as usize].row(client)
    }

    /// How many of its clients do not count now.
    pub fn absent(&self) -> usize {
        self.standing.iter().filter(|standing| matches!(standing, Standing::Left | Standing::Gone)).count()
    }

    fn key(&self) -> TaskKey {
        TaskKey::from_secret(CONTEXT, &self.secret)
    }

    fn tell_servers(&self, polar: &Polar, me: usize, letter: PolarLetter<'_>, cx: &mut Cx<'_>) {
        // A server waits for all others at every phase, so that few letters of one can wait for another.
        cx.outbox.send_durable_to_all(others(polar, me).map(|(_, to)| to), of_uploads(letter));
    }

    /// Opens a step: its clients hear the model.
    fn begin(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        (self.phase, self.patience) = (Phase::Uploads, Patience::Fresh);
        self.count_missing();
        let present = |(standing, id): (&Standing, PeerId)| (*standing == Standing::Present).then_some(id);
        let present = self.standing.iter().zip(polar.client_ids()).filter_map(present);
        let letter = PolarLetter::Model { step: self.step, values: Numbers::Plain(&self.x) };
        // For whom so many letters wait has been gone for long, and is left out.
        cx.outbox.send_durable_to_all(present, of_uploads(letter));
        for (server, to) in others(polar, me) {
            if self.asked[server] == self.step + 1 {
                self.asked[server] = 0;
                let _ = cx.outbox.send_durable(to, of_uploads(PolarLetter::Begun(self.step)));
            }
        }
        cx.outbox.wake_at(cx.now.after(Time(polar.config.timeout)));
    }

    fn count_missing(&mut self) {
        let arrived = &self.arrived[(self.step % 2) as usize];
        let missing = |(standing, arrived): (&Standing, &bool)| *standing == Standing::Present && !arrived;
        self.missing = self.standing.iter().zip(arrived).filter(|pair| missing(*pair)).count();
    }

    /// Whether all of its clients are gone. Such a round lasts a time-out, so that not all rounds are over before anyone is back.
    fn is_deserted(&self) -> bool {
        let (mut own, mut present) = (false, false);
        for standing in &self.standing {
            own |= *standing != Standing::Elsewhere;
            present |= *standing == Standing::Present;
        }
        own && !present
    }

    /// Goes on as far as what has arrived allows.
    fn advance(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        // What is true of most uploads.
        while self.phase != Phase::Uploads || self.missing == 0 {
            let all = |heard: &[bool]| heard.iter().enumerate().all(|(server, heard)| server == me || *heard);
            let has_keys = polar.config.consensus != Consensus::Secure
                || self.pairs.iter().enumerate().all(|(server, pair)| server == me || pair.is_some());
            match self.phase {
                Phase::Uploads if self.idled || !self.is_deserted() => {
                    self.finish_step(polar, me, cx);
                }
                Phase::Rosters if all(&self.rosters) && has_keys => self.share(polar, me, cx),
                Phase::Shares if all(&self.shares) => self.finish_round(polar, me, cx),
                _ => return,
            }
        }
    }

    /// x^J <- Proj_X(x^J - alpha_k sum_h y^{J,h}).
    fn finish_step(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        let dimension = self.x.len();
        let parity = (self.step % 2) as usize;
        let scratch = &mut *cx.scratch;
        scratch.clear();
        scratch.resize(dimension, 0.0);
        // In the order of clients, whoever came first: the same sum to the bit.
        for (client, arrived) in self.arrived[parity].iter_mut().enumerate() {
            if *arrived && self.standing[client] == Standing::Present {
                let upload = self.uploads[parity].row(client);
                let totals = scratch.iter_mut().zip(self.block.row_mut(client));
                totals.zip(upload).for_each(|((total, block), y)| {
                    *total += y;
                    *block += y;
                });
            }
            *arrived = false;
        }
        add_scaled(&mut self.x, -polar.step_size(self.round), scratch);
        polar.project(&mut self.x);
        self.step += 1;
        if self.step.is_multiple_of(polar.config.consensus_every) {
            self.call_the_roll(polar, me, cx);
        } else {
            self.begin(polar, me, cx);
        }
    }

    /// Tells the others whom it has left out, and who is back.
    fn call_the_roll(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        self.phase = Phase::Rosters;
        let places = |which: &dyn Fn(usize) -> bool| -> Vec<u32> {
            (0..self.standing.len()).filter(|client| which(*client)).map(|client| client as u32).collect()
        };
        let left = places(&|client| self.standing[client] == Standing::Left);
        let back = places(&|client| self.standing[client] == Standing::Gone && self.here[client]);
        back.iter().for_each(|client| self.back[*client as usize] += 1);
        let letter = PolarLetter::Roster { round: self.round, left: Words::Own(&left), back: Words::Own(&back) };
        self.tell_servers(polar, me, letter, cx);
    }

    /// Takes back what those left out have uploaded, and tells the others its model.
    fn share(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        self.phase = Phase::Shares;
        let step_size = polar.step_size(self.round);
        let mut took_back = false;
        for client in 0..self.standing.len() {
            let standing = &mut self.standing[client];
            if *standing == Standing::Present && self.left[client] {
                *standing = Standing::Left;
            }
            if *standing == Standing::Left {
                add_scaled(&mut self.x, step_size, self.block.row(client));
                took_back = true;
            }
        }
        if took_back {
            polar.project(&mut self.x);
        }
        if polar.config.consensus == Consensus::Secure {
            self.share_under_pads(polar, me, cx);
        } else {
            let (_, neighbours) = polar.averaging_weights(self.round, me);
            for (server, to) in others(polar, me) {
                let is_neighbour = neighbours.iter().any(|(other, _)| *other == server);
                let values: &[f64] = if is_neighbour { &self.x } else { &[] };
                let letter = PolarLetter::Plain { round: self.round, values: Numbers::Plain(values) };
                let _ = cx.outbox.send_durable(to, of_uploads(letter));
            }
        }
    }

    /// A^J = X_int + pads, in Z_2^64.
    fn share_under_pads(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        let mut words: Vec<u64> = to_integers(&self.x).map(to_ring).collect();
        let round = u64::from(self.round);
        let pads = self.pairs.iter_mut().flatten().map(|pair| {
            // The round and the share are one step of the disk, so that no pad serves two values.
            pair.stream(round, Direction::FromSmaller).expect("a round's pads are used once")
        });
        let pads: Vec<_> = pads.collect();
        let is_sealed = pads.len() > 1;
        let letter = |words, round| PolarLetter::Masked { round, words: Words::Own(words) };
        if is_sealed {
            // PRIVACY: any S - 2 servers together see only the sum of the rest.
            let sealed = masked::seal(&mut words, pads).expect("a model is shorter than a stream");
            for (_, to) in others(polar, me) {
                let letter = sealed
                    .with_released(of_uploads(self.round))
                    .map(|(words, round)| PolarLetter::Masked { round, words: Words::Own(words) });
                let _ = cx.outbox.send_durable(to, letter);
            }
        } else {
            // Of two servers each can subtract its own model from the sum: the pad is against others only.
            for pad in pads {
                pad.mask(&mut words).expect("a model is shorter than a stream");
            }
            self.tell_servers(polar, me, letter(&words, self.round), cx);
        }
        self.sum.iter_mut().zip(&words).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }

    /// All models are there: the servers come together, and the next round begins.
    fn finish_round(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        if polar.config.consensus == Consensus::Secure {
            let servers = polar.config.servers.len();
            self.x.iter_mut().zip(&self.sum).for_each(|(x, sum)| *x = mean(*sum, servers));
        } else {
            let (own, neighbours) = polar.averaging_weights(self.round, me);
            self.x.iter_mut().for_each(|x| *x *= own);
            for (server, weight) in neighbours {
                add_scaled(&mut self.x, weight, self.plain.row(server));
            }
        }
        // It changes nothing but the last digit.
        polar.project(&mut self.x);
        for (client, id) in polar.client_ids().enumerate() {
            match self.standing[client] {
                Standing::Left => {
                    self.standing[client] = Standing::Gone;
                    let _ = cx.outbox.send_durable(id, of_uploads(PolarLetter::LeftOut(self.round)));
                }
                Standing::Gone if self.back[client] as usize == polar.config.servers_each => {
                    self.standing[client] = Standing::Present;
                    self.here[client] = false;
                }
                _ => {}
            }
        }
        self.block.values_mut().fill(0.0);
        [&mut self.rosters, &mut self.shares, &mut self.left].into_iter().for_each(|heard| heard.fill(false));
        self.back.fill(0);
        self.sum.fill(0);
        self.idled = false;
        self.round += 1;
        if self.round < polar.config.rounds {
            self.begin(polar, me, cx);
            return;
        }
        self.phase = Phase::Done;
        let own = |(standing, id): (&Standing, PeerId)| (*standing != Standing::Elsewhere).then_some(id);
        let own = self.standing.iter().zip(polar.client_ids()).filter_map(own);
        let letter = PolarLetter::Model { step: self.step, values: Numbers::Plain(&self.x) };
        cx.outbox.send_durable_to_all(own, of_uploads(letter));
    }

    /// The time-out.
    pub(super) fn on_wake(&mut self, polar: &Polar, me: usize, cx: &mut Cx<'_>) {
        if self.phase != Phase::Uploads {
            return;
        }
        if self.is_deserted() {
            self.idled = true;
        } else {
            match self.patience {
                Patience::Fresh => {
                    self.patience = Patience::Asked;
                    self.answered.fill(false);
                    self.tell_servers(polar, me, PolarLetter::Ask(self.step), cx);
                }
                Patience::Asked => {}
                Patience::Last => {
                    let arrived = &self.arrived[(self.step % 2) as usize];
                    for (standing, arrived) in self.standing.iter_mut().zip(arrived) {
                        if *standing == Standing::Present && !arrived {
                            *standing = Standing::Left;
                        }
                    }
                    self.missing = 0;
                    // The rest of the round needs no waiting, should nobody be left.
                    self.idled = true;
                }
            }
        }
        self.advance(polar, me, cx);
    }

    /// Reads a letter of a client or of another server.
    pub(super) fn on_letter(
        &mut self,
        polar: &Polar,
        me: usize,
        from: PeerId,
        letter: PolarLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        match polar.server(from) {
            Some(server) => self.on_servers_letter(polar, me, server, letter, cx)?,
            None => self.on_clients_letter(polar.client(from).ok_or(Reject::NotANeighbour)?, letter)?,
        }
        self.advance(polar, me, cx);
        Ok(())
    }

    fn on_clients_letter(&mut self, client: usize, letter: PolarLetter<'_>) -> Result<(), Reject> {
        match letter {
            _ if self.standing[client] == Standing::Elsewhere => Err(Reject::NotANeighbour),
            PolarLetter::Upload { step, values } => {
                let parity = (step % 2) as usize;
                let is_due = step == self.step || step == self.step + 1;
                if !is_due || self.standing[client] != Standing::Present || self.arrived[parity][client] {
                    return Err(Reject::OutOfTurn);
                }
                values.copy_to(self.uploads[parity].row_mut(client))?;
                self.arrived[parity][client] = true;
                self.missing -= usize::from(step == self.step && self.phase == Phase::Uploads);
                Ok(())
            }
            PolarLetter::Here(_) => {
                self.here[client] = true;
                Ok(())
            }
            _ => Err(Reject::OutOfTurn),
        }
    }

    fn on_servers_letter(
        &mut self,
        polar: &Polar,
        me: usize,
        server: usize,
        letter: PolarLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let is_secure = polar.config.consensus == Consensus::Secure;
        match letter {
            PolarLetter::Key(bytes) if is_secure && self.keys[server].is_none() => {
                self.pairs[server] = Some(self.pair(bytes, self.round)?);
                self.keys[server] = Some(bytes);
            }
            PolarLetter::Roster { round, left, back } if round == self.round && !self.rosters[server] => {
                // Each client of the sender once: whoever is counted twice would be back too early here, and be gone elsewhere.
                let is_own = |client: u32| {
                    (client as usize) < self.standing.len() && polar.place_of(server, client as usize).is_some()
                };
                if ![left, back]
                    .iter()
                    .all(|places| places.iter().is_sorted_by(|a, b| a < b) && places.iter().all(is_own))
                    || left.iter().any(|client| back.iter().any(|other| other == client))
                {
                    return Err(Reject::Malformed);
                }
                left.iter().for_each(|client| self.left[client as usize] = true);
                back.iter().for_each(|client| self.back[client as usize] += 1);
                self.rosters[server] = true;
            }
            PolarLetter::Masked { round, words } if is_secure && round == self.round && !self.shares[server] => {
                if words.len() != self.x.len() {
                    return Err(Reject::WrongDimension);
                }
                self.sum.iter_mut().zip(words.iter()).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
                self.shares[server] = true;
            }
            PolarLetter::Plain { round, values } if !is_secure && round == self.round && !self.shares[server] => {
                let is_neighbour =
                    polar.averaging_weights(round, me).1.iter().any(|(neighbour, _)| *neighbour == server);
                if is_neighbour {
                    values.copy_to(self.plain.row_mut(server))?;
                } else if !values.is_empty() {
                    return Err(Reject::WrongDimension);
                }
                self.shares[server] = true;
            }
            PolarLetter::Ask(step) if step < polar.steps() => {
                let begun = self.step + u32::from(self.phase == Phase::Uploads);
                if step < begun {
                    cx.outbox.send_durable(polar.config.servers[server], of_uploads(PolarLetter::Begun(step)))?;
                } else {
                    self.asked[server] = step + 1;
                }
            }
            PolarLetter::Begun(step) if step == self.step && self.patience == Patience::Asked => {
                self.answered[server] = true;
                if self.answered.iter().enumerate().all(|(other, answered)| other == me || *answered) {
                    self.patience = Patience::Last;
                    cx.outbox.wake_at(cx.now.after(Time(polar.config.timeout)));
                }
            }
            // The step has ended while the answer was on its way.
            PolarLetter::Begun(step) if step < self.step => {}
            _ => return Err(Reject::OutOfTurn),
        }
        Ok(())
    }

    pub(super) fn pair(&self, bytes: [u8; 32], first_round: u32) -> Result<PairSecret, Reject> {
        let theirs = TaskPublicKey::from_bytes(bytes).map_err(|_| Reject::Malformed)?;
        self.key().agree(theirs, u64::from(first_round)).map_err(|_| Reject::Malformed)
    }

    /// Makes what is not saved, of bytes that were.
    pub(super) fn resumed(mut self, polar: &Polar, me: usize) -> Result<Self, CannotResume> {
        let (config, clients) = (&polar.config, polar.clients());
        let (servers, dimension, every) = (config.servers.len(), config.dimension, config.consensus_every);
        let is_secure = config.consensus == Consensus::Secure;
        saved::check(saved::is_vector(&self.x, dimension) && largest(&self.x) <= super::config::BOX_MAX)?;
        let in_round = self.round < config.rounds;
        let fits = match self.phase {
            Phase::Uploads => in_round && self.step / every == self.round,
            Phase::Rosters | Phase::Shares => in_round && self.step == (self.round + 1) * every,
            Phase::Done => self.round == config.rounds && self.step == polar.steps(),
        };
        saved::check(fits)?;
        let per_server =
            [self.answered.len(), self.asked.len(), self.rosters.len(), self.shares.len(), self.keys.len()];
        let [even, odd] = &self.arrived;
        let per_client =
            [self.standing.len(), self.here.len(), even.len(), odd.len(), self.left.len(), self.back.len()];
        saved::check(per_server == [servers; 5] && per_client == [clients; 6] && self.sum.len() == dimension)?;
        saved::check(self.back.iter().all(|back| *back as usize <= servers))?;
        let plain = if is_secure { 0 } else { servers };
        saved::check(saved::are_vectors(&self.plain, plain, dimension))?;
        for rows in [&self.uploads[0], &self.uploads[1], &self.block, &self.plain] {
            saved::check(largest(rows.values()) <= SAVED_MAX)?;
        }
        for rows in [&self.uploads[0], &self.uploads[1], &self.block] {
            saved::check(saved::are_vectors(rows, clients, dimension))?;
        }
        let own = |client: usize| polar.place_of(me, client).is_some();
        let standing = |(client, standing): (usize, &Standing)| own(client) == (*standing != Standing::Elsewhere);
        saved::check(self.standing.iter().enumerate().all(standing))?;
        // The pads of this round are used where the share is on its way.
        let first_round = self.round + u32::from(self.phase == Phase::Shares);
        let pair = |key: &Option<[u8; 32]>| key.map(|bytes| self.pair(bytes, first_round)).transpose();
        let pairs = self.keys.iter().map(pair).collect::<Result<Vec<_>, _>>();
        self.pairs = pairs.map_err(|_| CannotResume::Malformed)?;
        self.count_missing();
        Ok(self)
    }
}

/// The other servers: their places, and who they are.
fn others(polar: &Polar, me: usize) -> impl Iterator<Item = (usize, PeerId)> + use<'_> {
    polar.config.servers.iter().copied().enumerate().filter(move |(server, _)| *server != me)
}

/// round(x 2^f).
fn to_integers(x: &[f64]) -> impl Iterator<Item = i64> + use<'_> {
    let grid = Grid::binary(FRACTION_BITS).expect("a grid");
    x.iter().map(move |value| grid.nearest(*value).expect("a model stays within its compact set"))
}

/// s / (S 2^f).
fn mean(sum: u64, servers: usize) -> f64 {
    let grid = Grid::binary(FRACTION_BITS).expect("a grid");
    grid.value(from_ring(sum)) / servers as f64
}
