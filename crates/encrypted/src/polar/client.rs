//! What a client does: takes a gradient where its servers are, and shows each of them another part of it.
//!
//! ```text
//! y^{J,h} = W_i[J,h] g_h(u, xi) + d_i^{J,h}          g_h(u, xi) = (m_h / B) sum_{l in xi} grad l_l(u) + 2 m_h lambda_h u
//! ```
//!
//! f_h = sum_l l_l + m_h lambda_h |x|^2 is a sum over the client's points, so a batch counts m_h / B times. All choices of a round, batches
//! included, come from one secret seed, which is saved: a client that comes back uploads what it would have uploaded. With a plan the gradient leaves with
//! noise: [`super::private`].

use super::config::{Polar, Scope, Variant, Weights};
use super::letter::PolarLetter;
use super::perturbation::Choices;
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::kernel::dot;
use sottovoce_algorithms::vector::add_scaled;
use sottovoce_algorithms::{Shard, saved};
use sottovoce_core::wire::Numbers;
use sottovoce_core::{CannotResume, Cx, PeerId, Reject, Rows};
use sottovoce_privacy::{Audience, Public, Released, Track};

/// What a client remembers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    /// The step that it answers next.
    step: u32,
    /// Of all choices of the round.
    seed: [u8; 32],
    /// By place of a server: the step of its latest model, plus one; zero before the first.
    heard: Vec<u32>,
    /// By place of a server: its latest model.
    models: Rows,
    /// The last round that it was told it was left out of, plus one.
    left: u32,
    /// W of the round: by step, by place of a server, by coordinate where each has its own.
    #[serde(skip)]
    weights: Vec<f64>,
    /// By step of the round: the place of the server whose model counts, where one alone does.
    #[serde(skip)]
    drawn: Vec<u32>,
    /// The points of a batch.
    #[serde(skip)]
    batch: Vec<u32>,
}

/// The stream of a round's choices in which its weights are.
const WEIGHTS: u64 = 0;

impl Client {
    /// Before the first letter.
    pub(super) fn new(polar: &Polar, cx: &mut Cx<'_>) -> Self {
        let each = polar.config.servers_each;
        let mut me = Client {
            step: 0,
            seed: [0; 32],
            heard: vec![0; each],
            models: Rows::zeros(each, polar.config.dimension),
            left: 0,
            weights: Vec::new(),
            drawn: Vec::new(),
            batch: Vec::new(),
        };
        me.models.values_mut().fill(polar.config.start);
        me.begin(polar, 0, cx);
        me
    }

    /// The model that it would use.
    pub(super) fn model(&self) -> &[f64] {
        self.models.row(0)
    }

    /// How many steps that model has been through.
    pub(super) fn model_step(&self) -> u32 {
        self.heard[0].saturating_sub(1)
    }

    /// Whether it has the outcome.
    pub(super) fn is_done(&self, polar: &Polar) -> bool {
        self.heard[0] > polar.steps()
    }

    /// The weights of the round: by step, by place of a server, by coordinate where each has its own.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Turns to a step; with the first one of a round to fresh choices.
    fn begin(&mut self, polar: &Polar, step: u32, cx: &mut Cx<'_>) {
        self.step = step;
        if step.is_multiple_of(polar.config.consensus_every) && step < polar.steps() {
            self.seed = cx.secret.bytes();
            self.choose(polar);
        }
    }

    /// What follows from the seed for the whole round. The conditions of the paper are asserted on the way.
    fn choose(&mut self, polar: &Polar) {
        let config = &polar.config;
        let stride = if config.weights == Weights::PerCoordinate { config.dimension } else { 1 };
        let mut choices = Choices::new(&self.seed, WEIGHTS);
        let (each, steps) = (config.servers_each, config.consensus_every as usize);
        self.weights.resize(steps * each * stride, 0.0);
        let scope = if config.scope == Scope::Block { steps * each * stride } else { each * stride };
        for slots in self.weights.chunks_exact_mut(scope) {
            for coordinate in 0..stride {
                choices.weights(&mut slots[coordinate..], stride, config.weight, config.weight_bound);
            }
        }
        self.drawn.clear();
        self.drawn.extend((0..steps).map(|_| choices.below(each) as u32));
    }

    /// Reads a letter of a server.
    pub(super) fn on_letter(
        &mut self,
        polar: &Polar,
        shard: Shard<'_>,
        from: PeerId,
        letter: PolarLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let client = polar.client(cx.me).ok_or(Reject::NotANeighbour)?;
        let server = polar.server(from).ok_or(Reject::NotANeighbour)?;
        let place = polar.place_of(server, client).ok_or(Reject::NotANeighbour)?;
        match letter {
            PolarLetter::Model { step, values } => {
                // Whoever was left out is asked again at the beginning of a round.
                let is_next =
                    step == self.step || step > self.step && step.is_multiple_of(polar.config.consensus_every);
                let is_late = step + 1 == self.step && polar.config.variant == Variant::MinimumWait;
                if step > polar.steps() || step < self.heard[place] || !(is_next || is_late) {
                    return Err(Reject::OutOfTurn);
                }
                values.copy_to(self.models.row_mut(place))?;
                self.heard[place] = step + 1;
                if step > self.step {
                    self.begin(polar, step, cx);
                }
                if self.is_ready(polar) { self.answer(polar, shard, client, cx) } else { Ok(()) }
            }
            PolarLetter::LeftOut(round) if round >= self.left && round < polar.config.rounds => {
                self.left = round + 1;
                for server in polar.servers_of(client) {
                    // PRIVACY: it follows from a server's letter and says nothing else.
                    let letter: Released<PolarLetter<'_>> = Public::declare(PolarLetter::Here(round)).into();
                    cx.outbox.send_durable(polar.config.servers[server], letter)?;
                }
                Ok(())
            }
            // Another server has said so already.
            PolarLetter::LeftOut(round) if round < self.left => Ok(()),
            _ => Err(Reject::OutOfTurn),
        }
    }

    /// Whether all models are there that the answer to this step needs.
    fn is_ready(&self, polar: &Polar) -> bool {
        if self.step >= polar.steps() {
            return false;
        }
        let within = self.step % polar.config.consensus_every;
        match polar.config.variant {
            // No server may fall behind by more than a step, or uploads would pile up there.
            Variant::MinimumWait => {
                let near = within == 0 || self.heard.iter().all(|heard| *heard >= self.step);
                near && self.heard[self.drawn[within as usize] as usize] == self.step + 1
            }
            Variant::ClientAveraged | Variant::Basic => self.heard.iter().all(|heard| *heard == self.step + 1),
        }
    }

    /// Uploads to all of its servers, and turns to the next step.
    fn answer(&mut self, polar: &Polar, shard: Shard<'_>, client: usize, cx: &mut Cx<'_>) -> Result<(), Reject> {
        let (config, within) = (&polar.config, (self.step % polar.config.consensus_every) as usize);
        let (each, dimension) = (config.servers_each, config.dimension);
        let mut choices = Choices::new(&self.seed, WEIGHTS + 1 + within as u64);
        if config.batch < shard.points.len() {
            choices.sample(config.batch, shard.points.len(), &mut self.batch);
        }
        let batch = (config.batch < shard.points.len()).then_some(&self.batch[..]);
        let Cx { gate, outbox, scratch, .. } = cx;
        scratch.resize((each + 2) * dimension, 0.0);
        let (uploads, rest) = scratch.split_at_mut(each * dimension);
        let (slope, mean) = rest.split_at_mut(dimension);
        choices.vectors(uploads, dimension, config.noise_bound);
        if config.variant == Variant::ClientAveraged {
            mean.fill(0.0);
            (0..each).for_each(|place| add_scaled(mean, 1.0, self.models.row(place)));
            mean.iter_mut().for_each(|value| *value /= each as f64);
        }
        // How many servers see parts of one gradient.
        let alike = if config.variant == Variant::Basic { 1 } else { each };
        for (first, uploads) in (0..each).step_by(alike).zip(uploads.chunks_exact_mut(alike * dimension)) {
            let at = match config.variant {
                Variant::Basic => self.models.row(first),
                Variant::MinimumWait => self.models.row(self.drawn[within] as usize),
                Variant::ClientAveraged => &*mean,
            };
            let taken = match config.private {
                None => {
                    gradient(&shard, batch, at, slope);
                    Taken::Exact(slope)
                }
                Some(private) => Taken::Noisy(private.release(&shard, batch, at, slope, gate)?),
            };
            for (place, upload) in (first..).zip(uploads.chunks_exact_mut(dimension)) {
                let slot = within * each + place;
                let weights = match config.weights {
                    Weights::PerNumber => &self.weights[slot..=slot],
                    Weights::PerCoordinate => &self.weights[slot * dimension..][..dimension],
                };
                let shown = Shown { step: self.step, weights, upload };
                let letter = match &taken {
                    // PRIVACY: the gradient has its noise; the rest is the client's own choices, which know nothing of its data.
                    Taken::Noisy(noisy) => {
                        noisy.as_ref().with_public(Public::declare(shown), |shown, slope| shown.of(slope))
                    }
                    // PRIVACY: not differentially private. A weighted gradient with a bounded vector added, to one server: an exact value as far
                    // as any accountant is concerned, epsilon = infinity against the servers.
                    Taken::Exact(slope) => gate.charge(Track::Models, 1.0, Audience::Servers)?.release(shown.of(slope)),
                };
                outbox.send_durable(config.servers[polar.server_at(client, place)], letter)?;
            }
        }
        self.begin(polar, self.step + 1, cx);
        Ok(())
    }

    /// Makes what is not saved, of bytes that were.
    pub(super) fn resumed(mut self, polar: &Polar) -> Result<Self, CannotResume> {
        let config = &polar.config;
        let steps = polar.steps();
        saved::check(self.heard.len() == config.servers_each && self.heard.iter().all(|heard| *heard <= steps + 1))?;
        saved::check(saved::are_vectors(&self.models, config.servers_each, config.dimension))?;
        saved::check(self.step <= steps && self.left <= config.rounds)?;
        if self.step < steps {
            self.choose(polar);
        }
        Ok(self)
    }
}

/// A gradient: as it is, or with the noise that was charged for it.
enum Taken<'s> {
    Exact(&'s [f64]),
    Noisy(Released<&'s mut [f64]>),
}

/// What becomes of a gradient on its way to one server.
struct Shown<'u> {
    step: u32,
    /// One, or one for each coordinate.
    weights: &'u [f64],
    /// d, and then W g + d.
    upload: &'u mut [f64],
}

impl<'u> Shown<'u> {
    fn of(self, slope: &[f64]) -> PolarLetter<'u> {
        let Shown { step, weights, upload } = self;
        match weights {
            [weight] => add_scaled(upload, *weight, slope),
            weights => upload.iter_mut().zip(weights).zip(slope).for_each(|((y, weight), g)| *y += weight * g),
        }
        PolarLetter::Upload { step, values: Numbers::Plain(upload) }
    }
}

/// g_h at a point, of these points or of all, into `out`.
pub fn gradient(shard: &Shard<'_>, batch: Option<&[u32]>, at: &[f64], out: &mut [f64]) {
    let (points, dimension) = (shard.points, shard.points.dimension);
    out.fill(0.0);
    let mut add = |k: usize| {
        let row = &points.features[k * dimension..][..dimension];
        add_scaled(out, shard.loss.slope(dot(row, at), points.labels[k]), row);
    };
    let scale = match batch {
        None => {
            (0..points.len()).for_each(add);
            1.0
        }
        Some(batch) => {
            batch.iter().for_each(|&k| add(k as usize));
            points.len() as f64 / batch.len() as f64
        }
    };
    let shrink = 2.0 * points.len() as f64 * shard.regularization;
    out.iter_mut().zip(at).for_each(|(out, at)| *out = scale * *out + shrink * at);
}
