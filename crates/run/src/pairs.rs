//! What each member of a private gossip, or of a private walk along edges, learns of each other: the matrix of epsilons, its worst pair, its mean, and how it falls with the distance.
//!
//! All of it follows from the graph, the rounds and the noise in the ledgers, which are public.

use crate::facts::PublicFacts;
use sottovoce_algorithms::average::muffliato::mixing::weights;
use sottovoce_core::Graph;
use sottovoce_privacy::network::{Gossip, GossipPairs, GraphPairs, PAIRS_MEMBERS_MAX, WorstAndMean, WorstPair};
use sottovoce_privacy::{Event, Ledger};
use sottovoce_report::pairs::{AtDistance, ByDistance};
use sottovoce_task::algorithms::graph_walk::matrix;
use sottovoce_task::task::{Observer, Pairs};

/// The matrix of a run, in figures.
#[derive(Clone, Debug)]
pub struct PairFigures {
    /// By source, then by observer; 0 against itself.
    pub epsilons: Vec<Vec<f64>>,
    /// The worst pair and the mean.
    pub both: WorstAndMean,
    /// By distance in the graph, from 1 on.
    pub by_distance: Vec<AtDistance>,
}

impl PairFigures {
    /// Of a run whose guarantee is by pairs, and of not too many members; none of others, and none where exact values left.
    pub fn of(facts: &PublicFacts, ledgers: &[Ledger]) -> Option<Self> {
        let gossip = gossip_of(facts)?;
        let privacy = facts.privacy?;
        let (epsilons, both) = match &facts.observer {
            Observer::GraphWalk(worst) => {
                let epsilons = of_walk(&gossip, worst, ledgers.iter(), privacy.delta)?;
                let both = WorstAndMean::of(&epsilons);
                (epsilons, both)
            }
            observer => {
                let (pairs, noise) = (exposures(&gossip, observer)?, noise_of(ledgers.iter())?);
                (pairs.matrix(noise, privacy.delta), pairs.epsilons(noise, privacy.delta))
            }
        };
        Some(PairFigures { both, by_distance: by_distance(&gossip, &epsilons), epsilons })
    }

    /// For a report.
    pub fn by_distance(&self) -> ByDistance {
        ByDistance { worst: self.both.worst, mean: self.both.mean, distances: self.by_distance.clone() }
    }

    /// `u,v,epsilon`: what is learned of u by v.
    pub fn csv(&self, names: &[String]) -> Vec<u8> {
        let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
        let written = (|| {
            csv.write_record(["u", "v", "epsilon"])?;
            for (source, row) in self.epsilons.iter().enumerate() {
                for (observer, epsilon) in row.iter().enumerate().filter(|(observer, _)| *observer != source) {
                    csv.write_record([&*names[source], &*names[observer], &epsilon.to_string()])?;
                }
            }
            csv.flush()?;
            Ok::<_, csv::Error>(())
        })();
        written.expect("memory can be written");
        csv.into_inner().expect("memory can be written")
    }
}

/// The worst pair and the mean alone, where the task's budget is for the mean.
pub fn mean_of(facts: &PublicFacts, ledgers: &[Ledger]) -> Option<WorstAndMean> {
    let privacy = facts.privacy.filter(|privacy| privacy.pairs == Pairs::Mean)?;
    worst_and_mean(&gossip_of(facts)?, &facts.observer, ledgers.iter(), privacy.delta)
}

/// The worst pair and the mean of what these ledgers hold, on a graph with these weights; none where a guarantee is not by pairs.
pub fn worst_and_mean<'l>(
    gossip: &Gossip,
    observer: &Observer,
    ledgers: impl Iterator<Item = &'l Ledger>,
    delta: f64,
) -> Option<WorstAndMean> {
    match observer {
        Observer::GraphWalk(worst) => of_walk(gossip, worst, ledgers, delta).map(|matrix| WorstAndMean::of(&matrix)),
        observer => Some(exposures(gossip, observer)?.epsilons(noise_of(ledgers)?, delta)),
    }
}

/// The matrix of a walk along edges, with the least noise in these ledgers; none where anything else is in one.
fn of_walk<'l>(
    gossip: &Gossip,
    worst: &WorstPair,
    ledgers: impl Iterator<Item = &'l Ledger>,
    delta: f64,
) -> Option<Vec<Vec<f64>>> {
    let pairs = GraphPairs::new(gossip, worst.contributions(), worst.noise_of(ledgers)?, delta).ok()?;
    Some(matrix(&pairs, gossip.members()))
}

fn gossip_of(facts: &PublicFacts) -> Option<Gossip> {
    let of = |graph: &Graph| weights(graph).ok();
    let is_by_pairs = matches!(facts.observer, Observer::Pairs { .. } | Observer::GraphWalk(_));
    (is_by_pairs && facts.agents() <= PAIRS_MEMBERS_MAX).then(|| of(&facts.graph))?
}

/// What each learns of each, computed by all processors; none where a guarantee is not by pairs.
pub fn exposures(gossip: &Gossip, observer: &Observer) -> Option<GossipPairs> {
    let Observer::Pairs { rounds, told } = *observer else { return None };
    let (members, told) = (gossip.members(), told.map_or(Vec::new(), |told| told.row(gossip, rounds)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(members.max(1));
    let row = |observer: usize| gossip.pair_row(observer, rounds as usize, &told);
    let of = |first: usize| (first..members).step_by(threads).map(row).collect::<Vec<_>>();
    let mut parts: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || of(first))).collect();
        workers.into_iter().map(|worker| worker.join().expect("rows of a matrix").into_iter()).collect()
    });
    Some(GossipPairs::from_rows((0..members).filter_map(|observer| parts[observer % threads].next())))
}

/// sigma over the sensitivity of one release that is worth as much as the largest ledger; none where anything but Gaussian noise is in one.
pub fn noise_of<'l>(ledgers: impl Iterator<Item = &'l Ledger>) -> Option<f64> {
    let square = |ledger: &Ledger| {
        ledger.charges().try_fold(0.0, |square, charge| match charge.event {
            Event::Gaussian { noise_multiplier } => {
                Some(square + charge.count as f64 / (noise_multiplier * noise_multiplier))
            }
            _ => None,
        })
    };
    let largest = ledgers.map(square).try_fold(0.0, |most: f64, square| Some(most.max(square?)))?;
    // Squares of mu add up; one release gives back its own noise.
    (largest > 0.0).then(|| (1.0 / largest.sqrt()).next_down())
}

fn by_distance(gossip: &Gossip, epsilons: &[Vec<f64>]) -> Vec<AtDistance> {
    let mut found: Vec<AtDistance> = Vec::new();
    for (source, row) in epsilons.iter().enumerate() {
        for (distance, &epsilon) in gossip.distances(&[source]).into_iter().zip(row) {
            let Some(distance) = distance.filter(|distance| *distance > 0) else { continue };
            let empty = AtDistance { least: f64::INFINITY, ..AtDistance::default() };
            while found.len() < distance {
                found.push(AtDistance { distance: found.len() as u64 + 1, ..empty });
            }
            let at = &mut found[distance - 1];
            (at.least, at.most) = (at.least.min(epsilon), at.most.max(epsilon));
            // The sum, until all are there.
            (at.mean, at.pairs) = (at.mean + epsilon, at.pairs + 1);
        }
    }
    found.iter_mut().for_each(|at| at.mean /= at.pairs.max(1) as f64);
    found
}
