//! Which wakes of a window can run side by side.
//!
//! The level of a wake is one more than the highest level of an earlier wake, in the same window, by the same agent or by a
//! neighbour. Two wakes of one level neither read what the other writes nor write what the other reads; so running
//! level after level, each in parallel, gives the sequential result to the bit.

use sottovoce_core::{Graph, PeerId, Time};
use std::hint::black_box;

/// A window is cut where a level would exceed this.
const LEVEL_MAX: u8 = u8::MAX;

/// How many wakes ahead edges are touched while planning.
const EDGES_AHEAD: usize = 6;

/// The wakes of a window, sorted by level and, within a level, by the worker that owns the agent.
#[derive(Default)]
pub(crate) struct Levels {
    /// By agent: the level of its last wake in this window, zero for none.
    level: Vec<u8>,
    wakes: Vec<Wake>,
    wake_level: Vec<u8>,
    sorted: Vec<Wake>,
    /// Where each (level, worker) begins in `sorted`.
    starts: Vec<u32>,
    workers: usize,
    highest: u8,
}

/// One wake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wake {
    pub agent: PeerId,
    pub now: Time,
    /// Its number in the whole run, from one.
    pub number: u64,
}

impl Levels {
    pub fn new(agents: usize, workers: usize) -> Self {
        Levels { level: vec![0; agents], workers, ..Levels::default() }
    }

    /// Sorts the next wakes into levels, as many as fit. Returns how many were taken; the rest must be offered
    /// again.
    pub fn plan(&mut self, graph: &Graph, wakes: &[Wake], owner: impl Fn(PeerId) -> usize) -> usize {
        for wake in &self.wakes {
            self.level[wake.agent.index()] = 0;
        }
        self.wakes.clear();
        self.wake_level.clear();
        self.highest = 0;
        for (k, &wake) in wakes.iter().enumerate() {
            // The edges of a wake a little later are on their way from memory meanwhile.
            if let Some(later) = wakes.get(k + EDGES_AHEAD) {
                black_box(graph.peers(later.agent).iter().next());
            }
            let mut before = self.level[wake.agent.index()];
            for edge in graph.peers(wake.agent).iter() {
                before = before.max(self.level[edge.peer.index()]);
            }
            if before == LEVEL_MAX {
                break;
            }
            self.level[wake.agent.index()] = before + 1;
            self.highest = self.highest.max(before + 1);
            self.wakes.push(wake);
            self.wake_level.push(before + 1);
        }
        self.sort(owner);
        self.wakes.len()
    }

    fn sort(&mut self, owner: impl Fn(PeerId) -> usize) {
        let buckets = usize::from(self.highest) * self.workers;
        let bucket = |level: u8, wake: &Wake| (usize::from(level) - 1) * self.workers + owner(wake.agent);
        self.starts.clear();
        self.starts.resize(buckets + 1, 0);
        for (wake, &level) in self.wakes.iter().zip(&self.wake_level) {
            self.starts[bucket(level, wake) + 1] += 1;
        }
        for k in 0..buckets {
            self.starts[k + 1] += self.starts[k];
        }
        self.sorted.clear();
        self.sorted.resize(self.wakes.len(), Wake { agent: PeerId(0), now: Time(0.0), number: 0 });
        for (wake, &level) in self.wakes.iter().zip(&self.wake_level) {
            let slot = &mut self.starts[bucket(level, wake)];
            self.sorted[*slot as usize] = *wake;
            *slot += 1;
        }
        // Every start has moved to its end, which is the next one's start.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }

    /// How many levels there are.
    pub fn count(&self) -> usize {
        usize::from(self.highest)
    }

    /// The wakes of one level that one worker runs, in the order of the schedule.
    pub fn of(&self, level: usize, worker: usize) -> &[Wake] {
        let bucket = level * self.workers + worker;
        &self.sorted[self.starts[bucket] as usize..self.starts[bucket + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Schedule};

    #[test]
    fn wakes_of_one_level_never_touch_and_order_is_kept_between_neighbours() {
        let n = 60u32;
        let list: Vec<_> = (0..n).flat_map(|a| [(a, (a + 1) % n, 1.0), (a, (a + 7) % n, 1.0)]).collect();
        let graph = Graph::from_edges(n as usize, &list).expect("a graph");
        let mut schedule = Schedule::new(3, Clock::Uniform, n as usize);
        let wakes: Vec<_> = (1..=400)
            .map(|number| {
                let (agent, now) = schedule.next_wake();
                Wake { agent, now, number }
            })
            .collect();
        let mut levels = Levels::new(n as usize, 3);
        for _ in 0..2 {
            let taken = levels.plan(&graph, &wakes, |agent| agent.index() / 20);
            assert_eq!(taken, 400);
            let mut done = Vec::new();
            for level in 0..levels.count() {
                let mut together = Vec::new();
                for worker in 0..3 {
                    for wake in levels.of(level, worker) {
                        assert_eq!(wake.agent.index() / 20, worker);
                        together.push(*wake);
                    }
                }
                for a in &together {
                    for b in &together {
                        let touch = a.agent == b.agent || graph.peers(a.agent).position(b.agent).is_some();
                        assert!(a.number == b.number || !touch);
                    }
                    for earlier in &done {
                        let earlier: &Wake = earlier;
                        let touch = a.agent == earlier.agent || graph.peers(a.agent).position(earlier.agent).is_some();
                        assert!(!touch || earlier.number < a.number);
                    }
                }
                done.extend(together);
            }
            assert_eq!(done.len(), 400);
        }
    }

    #[test]
    fn a_window_is_cut_where_levels_run_out() {
        let graph = Graph::Complete { n: 4 };
        let wakes: Vec<_> =
            (0..300).map(|k| Wake { agent: PeerId(k % 4), now: Time(0.0), number: u64::from(k) }).collect();
        let mut levels = Levels::new(4, 1);
        assert_eq!(levels.plan(&graph, &wakes, |_| 0), usize::from(LEVEL_MAX));
        assert_eq!(levels.plan(&graph, &wakes[255..], |_| 0), 45);
        assert_eq!(levels.count(), 45);
    }
}
