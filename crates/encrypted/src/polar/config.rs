//! The hyper-parameters of POLAR-SGD, and what follows from them.

use super::private::PolarPrivacy;
use sottovoce_algorithms::Loss;
use sottovoce_core::PeerId;
use sottovoce_crypto::fixed_point::sum_fits;
use thiserror::Error;

/// Binary digits behind the point of what servers add up.
pub const FRACTION_BITS: u32 = 32;

/// The largest box: 2^20.
pub const BOX_MAX: f64 = (1 << 20) as f64;

/// The most servers.
pub const SERVERS_MAX: usize = 1 << 10;

/// The largest clip: what has noise of this size, and weights, is still a number that peers take.
pub const CLIP_MAX: f64 = 1e30;

/// Where a client takes its gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// At the model of one of its servers, drawn for each step.
    MinimumWait,
    /// At the mean of its servers' models.
    ClientAveraged,
    /// One gradient at each of its servers' models, on the same batch.
    Basic,
}

/// Over which slots weights add up to M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Over all steps and servers of a round: Theorem 1, for losses with a gradient.
    Block,
    /// Over all servers of each step: Theorem 2, for subgradients too, with minimum-wait and client-averaged.
    Iteration,
}

/// What has a weight of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// A whole gradient.
    PerNumber,
    /// Each coordinate.
    PerCoordinate,
}

/// X, around zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CompactSet {
    /// All coordinates within so much.
    Box(f64),
    /// The Euclidean norm within so much.
    Ball(f64),
}

/// How servers come together after each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consensus {
    /// All with all, under pads: nobody sees more than the mean.
    Secure,
    /// By neighbours' models in the clear, weighted by Metropolis, on a cycle.
    Cycle,
    /// By neighbours' models in the clear, in pairs that change from round to round: those of a path.
    Pairs,
    /// By neighbours' models in the clear, weighted by Metropolis, on any connected graph: [`PolarConfig::links`].
    Links,
    /// The same with one link in each round, in turn.
    Turns,
}

/// alpha_k = first / (offset + k)^power, k = 1, 2, ..
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSize {
    /// a0.
    pub first: f64,
    /// k0.
    pub offset: f64,
    /// q.
    pub power: f64,
}

/// The hyper-parameters, the same for all agents.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | servers | S | 2 to 1024, fewer than agents | the task's |
/// | servers each | abs(N_h) | 2 to S, above colluders | S |
/// | colluders | tau | 1 and above | 1 |
/// | consensus every | Delta | 1 and above | 10 |
/// | rounds | K | 1 and above | the task's |
/// | weight | M | above 0 | 5, as the paper's figure |
/// | weight bound | Mbar | M and above | 50, as the paper's figure |
/// | noise bound | Y | 0 and above | 1 |
/// | set | X | a box up to 2^20, or a ball | a box of 10 |
/// | start | x_0 | within X, the same for every coordinate | 0 |
/// | batch | B | 1 and above | 10, as the paper's figure |
/// | step | a0, k0, q | a0 > 0, k0 >= 0, 1/2 < q <= 1 | k0 = 10, q = 1 |
/// | timeout | | above zero, in wake intervals; on peers in seconds | a guess: 10 |
/// | private | clip | above 0, at most 1e30; none without a plan | none |
#[derive(Clone, Debug, PartialEq)]
pub struct PolarConfig {
    /// How many agents there are, clients and servers.
    pub agents: u32,
    /// The servers, in increasing order; everyone else is a client.
    pub servers: Vec<PeerId>,
    /// How many servers a client uploads to.
    pub servers_each: usize,
    /// How many servers may put together what they see, without seeing a client's whole upload.
    pub colluders: usize,
    /// D.
    pub dimension: usize,
    /// Where gradients are taken.
    pub variant: Variant,
    /// Over what weights add up.
    pub scope: Scope,
    /// What has a weight.
    pub weights: Weights,
    /// Steps in a round.
    pub consensus_every: u32,
    /// Rounds.
    pub rounds: u32,
    /// M: of a round with [`Scope::Block`], of a step with [`Scope::Iteration`].
    pub weight: f64,
    /// Mbar, of the same.
    pub weight_bound: f64,
    /// Y.
    pub noise_bound: f64,
    /// X.
    pub set: CompactSet,
    /// Every coordinate of x_0.
    pub start: f64,
    /// Points in a batch; all, where a client has no more.
    pub batch: usize,
    /// alpha_k.
    pub step: StepSize,
    /// How servers come together.
    pub consensus: Consensus,
    /// Which servers hear each other, by their places, for [`Consensus::Links`] and [`Consensus::Turns`]; none for others.
    pub links: Vec<(usize, usize)>,
    /// After so long without an upload a client is left out.
    pub timeout: f64,
    /// How gradients are made ready for the noise of a plan; `None`: there is none, and nothing is protected.
    pub private: Option<PolarPrivacy>,
}

/// Why there is no such run.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadPolar {
    /// Too few servers, or too many.
    #[error("{0} servers; accepted: 2 to {SERVERS_MAX}, since a single server would see every gradient")]
    Servers(usize),
    /// Nobody to learn from.
    #[error("no clients beside {0} servers; accepted: at least one agent that is no server")]
    Clients(usize),
    /// Too few or too many for a client.
    #[error(
        "a client with {each} of {servers} servers; accepted: 2 to {servers}, since a single server would see its gradients"
    )]
    ServersEach {
        /// |N_h|.
        each: usize,
        /// S.
        servers: usize,
    },
    /// They would see all of an upload together.
    #[error("{colluders} servers that may collude, and a client has {each}; accepted: 1 to {}", each - 1)]
    Colluders {
        /// tau.
        colluders: usize,
        /// |N_h|.
        each: usize,
    },
    /// No steps or no rounds.
    #[error("{0} rounds of {1} steps; accepted: at least one of each, and at most 2^31 steps in all")]
    Steps(u32, u32),
    /// No batch.
    #[error("a batch of no points; accepted: 1 and more")]
    Batch,
    /// M.
    #[error("a weight of {0}; accepted: a finite number above 0")]
    Weight(f64),
    /// Mbar.
    #[error("a bound of {bound} on weights that add up to {weight}; accepted: a finite number from {weight}")]
    WeightBound {
        /// Mbar.
        bound: f64,
        /// M.
        weight: f64,
    },
    /// Y.
    #[error("a bound of {0} on what is added to gradients; accepted: a finite number from 0")]
    NoiseBound(f64),
    /// X.
    #[error("a compact set of size {0}; accepted: a finite number above 0")]
    Set(f64),
    /// Sums would overflow.
    #[error(
        "{servers} servers and a compact set of size {size}: sums with {FRACTION_BITS} binary digits behind the point would overflow 64 bits; \
         accepted: at most {BOX_MAX} for up to {SERVERS_MAX} servers"
    )]
    Overflow {
        /// S.
        servers: usize,
        /// B or R.
        size: f64,
    },
    /// x_0 is not in X.
    #[error(
        "a start at {start} in every coordinate, which is not in the compact set of size {size}; accepted: a start inside"
    )]
    Start {
        /// Every coordinate of x_0.
        start: f64,
        /// B or R.
        size: f64,
    },
    /// alpha_k.
    #[error(
        "steps of {}/({} + k)^{}; accepted: a finite first step above 0, an offset from 0, and a power above 0.5 and at most 1, so that steps end \
         nowhere and their squares do", .0.first, .0.offset, .0.power
    )]
    Step(StepSize),
    /// Theorem 2 has no such case.
    #[error(
        "scope \"iteration\" with the variant \"basic\"; accepted: \"minimum-wait\", \"client-averaged\", or scope \"block\""
    )]
    Basic,
    /// Not a time.
    #[error("a time-out of {0}; accepted: a finite number above zero")]
    Timeout(f64),
    /// Servers that do not come together.
    #[error("links between servers that {0}; accepted: different pairs of servers, by which each reaches all others")]
    Links(&'static str),
    /// Not a clip.
    #[error("a clip of {0}; accepted: a number above 0 and at most {CLIP_MAX:e}")]
    Clip(f64),
}

/// A checked run.
#[derive(Clone, Debug, PartialEq)]
pub struct Polar {
    pub(super) config: PolarConfig,
    /// The first server, where all have numbers in a row.
    first: Option<u32>,
}

impl Polar {
    /// Checks the hyper-parameters.
    ///
    /// # Panics
    /// When the servers are not among the agents, in increasing order, or there is no coordinate.
    pub fn new(config: PolarConfig) -> Result<Polar, BadPolar> {
        let servers = config.servers.len();
        assert!(config.servers.windows(2).all(|pair| pair[0] < pair[1]), "servers in increasing order");
        assert!(config.servers.iter().all(|id| id.0 < config.agents) && config.dimension > 0, "servers are agents");
        if !(2..=SERVERS_MAX).contains(&servers) {
            return Err(BadPolar::Servers(servers));
        }
        if config.agents as usize == servers {
            return Err(BadPolar::Clients(servers));
        }
        let each = config.servers_each;
        if !(2..=servers).contains(&each) {
            return Err(BadPolar::ServersEach { each, servers });
        }
        if !(1..each).contains(&config.colluders) {
            return Err(BadPolar::Colluders { colluders: config.colluders, each });
        }
        let (rounds, steps) = (config.rounds, config.consensus_every);
        if u64::from(rounds) * u64::from(steps) == 0 || u64::from(rounds) * u64::from(steps) > 1 << 31 {
            return Err(BadPolar::Steps(rounds, steps));
        }
        if config.batch == 0 {
            return Err(BadPolar::Batch);
        }
        config.check_numbers()?;
        config.check_links()?;
        let (first, last) = (config.servers[0].0, config.servers[servers - 1].0);
        let first = ((last - first) as usize == servers - 1).then_some(first);
        Ok(Polar { config, first })
    }

    /// alpha_k of the round with this number, from zero.
    pub fn step_size(&self, round: u32) -> f64 {
        let StepSize { first, offset, power } = self.config.step;
        first / libm::pow(offset + f64::from(round) + 1.0, power)
    }

    /// Proj_X, in place.
    pub fn project(&self, x: &mut [f64]) {
        match self.config.set {
            CompactSet::Box(side) => x.iter_mut().for_each(|value| *value = value.clamp(-side, side)),
            CompactSet::Ball(radius) => {
                let norm = sottovoce_algorithms::vector::norm(x);
                if norm > radius {
                    x.iter_mut().for_each(|value| *value *= radius / norm);
                }
            }
        }
    }

    /// The hyper-parameters.
    pub fn config(&self) -> &PolarConfig {
        &self.config
    }

    /// Steps in all.
    pub fn steps(&self) -> u32 {
        self.config.rounds * self.config.consensus_every
    }

    /// How many gradients a client takes in all: the steps of its plan, where it has one.
    pub fn gradients(&self) -> u64 {
        let each_step = if self.config.variant == Variant::Basic { self.config.servers_each as u64 } else { 1 };
        u64::from(self.steps()) * each_step
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.config.agents as usize - self.config.servers.len()
    }

    /// The place of an agent among the servers.
    #[inline]
    pub fn server(&self, id: PeerId) -> Option<usize> {
        match self.first {
            Some(first) => Some(id.0.wrapping_sub(first) as usize).filter(|place| *place < self.config.servers.len()),
            None => self.config.servers.binary_search(&id).ok(),
        }
    }

    /// The place of an agent among the clients.
    #[inline]
    pub fn client(&self, id: PeerId) -> Option<usize> {
        let servers = self.config.servers.len();
        let before = match self.first {
            Some(first) if id.0 < first => 0,
            Some(first) if id.index() >= first as usize + servers => servers,
            Some(_) => return None,
            None => self.config.servers.binary_search(&id).err()?,
        };
        (id.0 < self.config.agents).then(|| id.index() - before)
    }

    /// The clients, in increasing order.
    pub(super) fn client_ids(&self) -> impl Iterator<Item = PeerId> + use<'_> {
        (0..self.config.agents).map(PeerId).filter(|id| self.server(*id).is_none())
    }

    /// The places of a client's servers, N_h: as many as each has, from its own place on.
    pub fn servers_of(&self, client: usize) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.config.servers_each).map(move |place| self.server_at(client, place))
    }

    /// The server at one of these places.
    pub(super) fn server_at(&self, client: usize, place: usize) -> usize {
        (client + place) % self.config.servers.len()
    }

    /// The place of a server among those of a client.
    pub(super) fn place_of(&self, server: usize, client: usize) -> Option<usize> {
        let servers = self.config.servers.len();
        let place = (server + servers - client % servers) % servers;
        (place < self.config.servers_each).then_some(place)
    }

    /// The row of B_k of a server: its own weight first, then those of the servers whose models it hears. Each other weight is 1 / (1 + the larger
    /// degree), so rows and columns add up to one.
    pub fn averaging_weights(&self, round: u32, server: usize) -> (f64, Vec<(usize, f64)>) {
        let servers = self.config.servers.len();
        let neighbours: Vec<usize> = match self.config.consensus {
            Consensus::Secure => (0..servers).filter(|other| *other != server).collect(),
            Consensus::Cycle if servers == 2 => vec![1 - server],
            Consensus::Cycle => vec![(server + servers - 1) % servers, (server + 1) % servers],
            Consensus::Pairs => {
                let first = (server + round as usize).is_multiple_of(2);
                let other = if first { server + 1 } else { server.wrapping_sub(1) };
                if other < servers { vec![other] } else { Vec::new() }
            }
            Consensus::Links => self.linked(server).collect(),
            Consensus::Turns => {
                let (a, b) = self.config.links[round as usize % self.config.links.len()];
                [(a, b), (b, a)].into_iter().filter(|(one, _)| *one == server).map(|(_, other)| other).collect()
            }
        };
        let degree = |other: usize| match self.config.consensus {
            Consensus::Links => self.linked(other).count(),
            // Neighbours have equal degrees in all others.
            _ => neighbours.len(),
        };
        let weight = |other: usize| 1.0 / (1.0 + neighbours.len().max(degree(other)) as f64);
        let others: Vec<(usize, f64)> = neighbours.iter().map(|other| (*other, weight(*other))).collect();
        (1.0 - others.iter().map(|(_, weight)| weight).sum::<f64>(), others)
    }

    /// The servers that have a link with this one.
    fn linked(&self, server: usize) -> impl Iterator<Item = usize> + use<'_> {
        let ends = self.config.links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        ends.filter(move |(one, _)| *one == server).map(|(_, other)| other)
    }

    /// Whether a theorem says that it converges with this loss: subgradients need weights that add up at every step.
    pub fn is_claimed_for(&self, loss: Loss) -> bool {
        loss.smoothness().is_some() || self.config.scope == Scope::Iteration
    }
}

impl PolarConfig {
    fn check_links(&self) -> Result<(), BadPolar> {
        let (servers, links) = (self.servers.len(), &self.links);
        if !matches!(self.consensus, Consensus::Links | Consensus::Turns) {
            return if links.is_empty() { Ok(()) } else { Err(BadPolar::Links("nobody uses")) };
        }
        let is_same = |one: (usize, usize), other: (usize, usize)| one == other || one == (other.1, other.0);
        for (k, &(a, b)) in links.iter().enumerate() {
            if a == b || a >= servers || b >= servers || links[..k].iter().any(|other| is_same((a, b), *other)) {
                return Err(BadPolar::Links("lead nowhere new"));
            }
        }
        let mut reached = vec![false; servers];
        reached[0] = true;
        for _ in 0..servers {
            for &(a, b) in links {
                (reached[a], reached[b]) = (reached[a] | reached[b], reached[a] | reached[b]);
            }
        }
        if reached.iter().all(|reached| *reached) { Ok(()) } else { Err(BadPolar::Links("do not join all")) }
    }

    fn check_numbers(&self) -> Result<(), BadPolar> {
        let &PolarConfig { weight, weight_bound, noise_bound, start, step, timeout, .. } = self;
        if !(weight.is_finite() && weight > 0.0) {
            return Err(BadPolar::Weight(weight));
        }
        if !(weight_bound.is_finite() && weight_bound >= weight) {
            return Err(BadPolar::WeightBound { bound: weight_bound, weight });
        }
        if !(noise_bound.is_finite() && noise_bound >= 0.0) {
            return Err(BadPolar::NoiseBound(noise_bound));
        }
        let (size, reach) = match self.set {
            CompactSet::Box(side) => (side, start.abs()),
            CompactSet::Ball(radius) => (radius, start.abs() * libm::sqrt(self.dimension as f64)),
        };
        if !(size.is_finite() && size > 0.0) {
            return Err(BadPolar::Set(size));
        }
        let servers = self.servers.len();
        let largest = libm::ceil(libm::ldexp(size, FRACTION_BITS as i32));
        if size > BOX_MAX || sum_fits(servers as u64, largest as u64).is_err() {
            return Err(BadPolar::Overflow { servers, size });
        }
        if reach.is_nan() || reach > size {
            return Err(BadPolar::Start { start, size });
        }
        let StepSize { first, offset, power } = step;
        let fits = first.is_finite() && first > 0.0 && offset.is_finite() && offset >= 0.0;
        if !(fits && power > 0.5 && power <= 1.0) {
            return Err(BadPolar::Step(step));
        }
        if self.variant == Variant::Basic && self.scope == Scope::Iteration {
            return Err(BadPolar::Basic);
        }
        if !(timeout.is_finite() && timeout > 0.0) {
            return Err(BadPolar::Timeout(timeout));
        }
        if let Some(PolarPrivacy { clip, .. }) = self.private
            && !(clip > 0.0 && clip <= CLIP_MAX)
        {
            return Err(BadPolar::Clip(clip));
        }
        Ok(())
    }
}
