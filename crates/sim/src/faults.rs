//! What goes wrong, and when.

use sottovoce_core::{Coin, PeerId, Time};

/// The faults of a run, all drawn from its seed. Times are in mean wake intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplicate: f64,
    /// The mean delay of a message; delays are exponential, so messages overtake each other.
    pub delay_mean: f64,
    /// No delay is longer.
    pub delay_max: f64,
    /// The share of agents that leave once and come back.
    pub leave: f64,
    /// The share of agents that die for good.
    pub die: f64,
    /// Spans in which no message crosses between two groups.
    pub partitions: Vec<Partition>,
    /// After this time messages are neither lost, doubled nor delayed, and whoever left is back.
    pub until: f64,
}

/// A span in which the agents are in two groups that cannot hear each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partition {
    /// Begin.
    pub from: f64,
    /// End.
    pub to: f64,
    /// The share of agents in the first group.
    pub share: f64,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            loss: 0.0,
            duplicate: 0.0,
            delay_mean: 0.0,
            delay_max: 0.0,
            leave: 0.0,
            die: 0.0,
            partitions: Vec::new(),
            until: f64::INFINITY,
        }
    }
}

impl Faults {
    /// Whether nothing goes wrong at all.
    pub fn is_none(&self) -> bool {
        let Faults { loss, duplicate, delay_mean, delay_max, leave, die, ref partitions, until: _ } = *self;
        [loss, duplicate, delay_mean.min(delay_max), leave, die].iter().all(|&fault| fault == 0.0)
            && partitions.is_empty()
    }
}

/// The faults as they strike particular agents and messages.
pub(crate) struct Weather {
    faults: Faults,
    coin: Coin,
    /// By agent: when it is away.
    away: Vec<Option<(f64, f64)>>,
    /// By partition, by agent: whether it is in the first group.
    sides: Vec<Vec<bool>>,
}

/// The key under which faults are drawn; no agent has this number.
const FAULTS: u32 = u32::MAX - 1;

impl Weather {
    pub fn new(agents: usize, seed: u64, faults: Faults) -> Self {
        let mut coin = Coin::new(seed, FAULTS, 0);
        let away = (0..agents)
            .map(|_| {
                let (kind, a, b) = (coin.unit(), coin.unit() * faults.until, coin.unit() * faults.until);
                if kind < faults.die {
                    Some((a, f64::INFINITY))
                } else if kind < faults.die + faults.leave {
                    Some((a.min(b), a.max(b)))
                } else {
                    None
                }
            })
            .collect();
        let sides = faults
            .partitions
            .iter()
            .map(|partition| (0..agents).map(|_| coin.unit() < partition.share).collect())
            .collect();
        Weather { faults, coin, away, sides }
    }

    pub fn is_away(&self, agent: PeerId, now: Time) -> bool {
        self.away[agent.index()].is_some_and(|(from, to)| (from..to).contains(&now.0))
    }

    pub fn is_dead(&self, agent: PeerId, now: Time) -> bool {
        self.away[agent.index()].is_some_and(|(from, to)| from <= now.0 && to == f64::INFINITY)
    }

    /// When an agent that is away comes back; never, if it is dead.
    pub fn back_at(&self, agent: PeerId, now: Time) -> Option<Time> {
        self.away[agent.index()]
            .filter(|_| self.is_away(agent, now))
            .map(|(_, to)| Time(to))
            .filter(|to| to.0.is_finite())
    }

    /// Whether a partition keeps two agents apart.
    pub fn is_cut(&self, a: PeerId, b: PeerId, now: Time) -> bool {
        now.0 < self.faults.until
            && self.faults.partitions.iter().zip(&self.sides).any(|(partition, side)| {
                (partition.from..partition.to).contains(&now.0) && side[a.index()] != side[b.index()]
            })
    }

    /// When the copies of a message arrive; a lost copy never does.
    pub fn fates(&mut self, from: PeerId, to: PeerId, now: Time) -> [Option<Time>; 2] {
        if now.0 >= self.faults.until {
            return [Some(now), None];
        }
        let cut = self.is_cut(from, to, now);
        let copies = 1 + usize::from(self.coin.unit() < self.faults.duplicate);
        let mut fates = [None; 2];
        for fate in &mut fates[..copies] {
            let lost = self.coin.unit() < self.faults.loss;
            let delay = (-libm::log(1.0 - self.coin.unit()) * self.faults.delay_mean).min(self.faults.delay_max);
            *fate = (!lost && !cut).then(|| now.after(Time(delay)));
        }
        fates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_strike_as_often_as_asked_and_end_when_they_should() {
        let faults = Faults {
            loss: 0.3,
            duplicate: 0.1,
            delay_mean: 2.0,
            delay_max: 10.0,
            leave: 0.2,
            die: 0.1,
            partitions: vec![Partition { from: 5.0, to: 9.0, share: 0.5 }],
            until: 50.0,
        };
        let n = 10_000;
        let mut weather = Weather::new(n, 1, faults);
        let id = |k: usize| PeerId(k as u32);
        let dead = (0..n).filter(|&k| weather.is_dead(id(k), Time(50.0))).count() as f64 / n as f64;
        let left = weather.away.iter().flatten().filter(|(_, to)| to.is_finite()).count() as f64 / n as f64;
        assert!((dead - 0.1).abs() < 0.015 && (left - 0.2).abs() < 0.02, "{dead} {left}");
        assert!((0..n).all(|k| weather.is_dead(id(k), Time(50.0)) || !weather.is_away(id(k), Time(50.0))));

        let (mut arrived, mut twice, mut longest) = (0, 0, 0.0f64);
        for _ in 0..n {
            let fates = weather.fates(id(0), id(1), Time(0.0));
            arrived += usize::from(fates[0].is_some());
            twice += usize::from(fates[1].is_some());
            longest = fates.iter().flatten().map(|at| at.0).fold(longest, f64::max);
        }
        assert!((arrived as f64 / n as f64 - 0.7).abs() < 0.02, "{arrived}");
        assert!((twice as f64 / n as f64 - 0.07).abs() < 0.01, "{twice}");
        assert!(longest > 8.0 && longest <= 10.0, "{longest}");

        let across = (1..n).find(|&k| weather.sides[0][k] != weather.sides[0][0]).expect("two groups");
        assert!((0..100).all(|_| weather.fates(id(0), id(across), Time(6.0)) == [None; 2]));
        assert!((0..100).any(|_| weather.fates(id(0), id(across), Time(9.0))[0].is_some()));
        assert_eq!(weather.fates(id(0), id(1), Time(50.0)), [Some(Time(50.0)), None]);
    }
}
