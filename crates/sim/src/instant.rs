//! Instant delivery: one shared board of posts, letters before the next wake.

use crate::{
    Counters,
    agent::{Agent, Desk, STILL_WAKES, Stage, World},
    levels::{Levels, Wake},
};
use rayon::prelude::*;
use sottovoce_core::{Algorithm, Delivery, Graph, Outbox, PeerId, Posts, Rows, Time, Wire};
use std::collections::VecDeque;

/// More letters than this in answer to one wake are an algorithm that never stops answering.
const LETTERS_PER_WAKE_MAX: u64 = 1 << 22;

/// Letters whose readers are touched at once before they are read: about as many lines of memory as can be under way together.
const READ_TOGETHER: usize = 16;

/// Bytes that were read are kept up to this many.
const FORGET_BYTES_MIN: usize = 1 << 16;

/// Below this many agents, levels are too thin for a second thread to help.
const PARALLEL_AGENTS_MIN: usize = 4096;

/// Ranges of agents for each thread: the thread that has planned meanwhile takes fewer of them, and nobody waits for it.
const RANGES_PER_THREAD: usize = 16;

/// At most this many wakes are planned at once, and half the number of agents: enough for broad levels, little to remember.
const PLANNED_MAX: usize = 1 << 15;

/// What all agents have said.
pub(crate) struct Board {
    rows: Rows,
    /// By agent: the number of the last wake in which it moved. Empty without a tolerance.
    moved_at: Vec<u64>,
    mailbag: Mailbag,
    /// Durable letters; each is read in an event of its own.
    durable: Mailbag,
    /// A wake that was drawn and has not come: something else happened before it.
    upcoming: Option<(PeerId, Time)>,
    wakes_run: u64,
    workers: Option<Workers>,
}

/// Letters on their way, in order. What many are told stands here once.
#[derive(Default)]
struct Mailbag {
    bytes: Vec<u8>,
    letters: VecDeque<Envelope>,
    /// So many bytes have been forgotten, before those that are kept.
    forgotten: usize,
}

struct Envelope {
    from: PeerId,
    to: PeerId,
    /// Where the letter begins, among all bytes there have been.
    start: usize,
    length: usize,
}

impl Mailbag {
    /// Adds a letter; `again` says that its bytes are those of the last one.
    #[inline]
    fn put(&mut self, from: PeerId, to: PeerId, bytes: &[u8], again: bool) {
        let start = match self.letters.back() {
            Some(last) if again => last.start,
            _ => self.write(bytes),
        };
        self.letters.push_back(Envelope { from, to, start, length: bytes.len() });
    }

    /// Adds bytes, and returns where they begin.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> usize {
        // What was read is forgotten when it is most of the bag, so that each byte is moved once at most on average.
        match self.letters.front() {
            None => {
                self.forgotten += self.bytes.len();
                self.bytes.clear();
            }
            Some(next) => {
                let read = next.start - self.forgotten;
                if read > FORGET_BYTES_MIN && 2 * read > self.bytes.len() {
                    self.bytes.drain(..read);
                    self.forgotten += read;
                }
            }
        }
        let start = self.forgotten + self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start
    }

    /// The first letter: from whom, to whom, and its bytes.
    #[inline]
    fn take(&mut self) -> Option<(PeerId, PeerId, &[u8])> {
        let Envelope { from, to, start, length } = self.letters.pop_front()?;
        Some((from, to, &self.bytes[start - self.forgotten..][..length]))
    }
}

impl Board {
    pub fn new(graph: &Graph, len: usize, threads: usize, tolerance: bool) -> Self {
        let n = graph.agents();
        let workers = (threads > 1 && n >= PARALLEL_AGENTS_MIN).then(|| Workers::new(n, threads));
        Board {
            rows: Rows::zeros(n, len),
            moved_at: if tolerance { vec![0; n] } else { Vec::new() },
            mailbag: Mailbag::default(),
            durable: Mailbag::default(),
            upcoming: None,
            wakes_run: 0,
            workers,
        }
    }

    pub fn posts(&self, me: PeerId) -> Posts<'_> {
        Posts::Board { rows: &self.rows, me }
    }

    /// Takes in what an agent said: its post is there for all to read, its letters wait.
    #[inline]
    pub fn take(&mut self, graph: &Graph, from: PeerId, outbox: &Outbox, counters: &mut Counters) {
        if let Some(post) = outbox.posted() {
            self.rows.row_mut(from.index()).copy_from_slice(post);
            counters.count_post(graph.peers(from).len(), post.len());
        }
        // The letter before, where it was durable.
        let mut last: Option<*const [u8]> = None;
        for letter in outbox.letters() {
            counters.count_letter(letter.vectors, letter.bytes);
            let is_durable = letter.delivery == Delivery::Durable;
            let bag = if is_durable { &mut self.durable } else { &mut self.mailbag };
            let here = is_durable.then_some(std::ptr::from_ref(letter.bytes));
            bag.put(from, letter.to, letter.bytes, is_durable && here == last);
            last = here;
        }
    }

    /// Delivers letters, and the letters written in answer, until there are none.
    pub fn deliver<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        now: Time,
        stage: &mut Stage<'w, A, D>,
    ) {
        let mut delivered = 0u64;
        while !self.mailbag.letters.is_empty() {
            let together = self.mailbag.letters.len().min(READ_TOGETHER);
            stage.expect_letters(self.mailbag.letters.range(..together).map(|letter| (letter.from, letter.to)));
            for _ in 0..together {
                let Board { rows, mailbag, .. } = self;
                let Some((from, to, bytes)) = mailbag.take() else { break };
                stage.letter(from, to, now, Posts::Board { rows, me: to }, bytes);
                self.take(stage.world.graph, to, &stage.desk.outbox, &mut stage.counters);
                stage.set_alarm(to, now);
            }
            delivered += together as u64;
            assert!(delivered <= LETTERS_PER_WAKE_MAX, "{delivered} letters in answer to one wake");
        }
    }

    pub fn run<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        wakes: u64,
        stage: &mut Stage<'w, A, D>,
    ) {
        if !<A::Letter<'_> as Wire<'_>>::EXISTS
            && let Some(mut workers) = self.workers.take()
        {
            workers.run(wakes, self, stage);
            self.workers = Some(workers);
            return;
        }
        let mut left = wakes;
        let mut upcoming = self.upcoming.take();
        while left > 0 {
            if upcoming.is_none() && stage.schedule.ticks() {
                upcoming = Some(stage.schedule.next_wake());
            }
            if <A::Letter<'_> as Wire<'_>>::EXISTS && self.meanwhile(upcoming.map(|(_, at)| at), stage) {
                left -= 1;
                continue;
            }
            let Some((id, now)) = upcoming else { break };
            stage.now = now;
            let Stage { world, agents, schedule, counters, desk, still_step, .. } = stage;
            left -= 1;
            upcoming = (left > 0).then(|| schedule.next_wake());
            if let Some((soon, _)) = upcoming {
                world.anticipate(soon, &agents[soon.index()], &self.rows);
            }
            self.wakes_run += 1;
            counters.wakes += 1;
            let agent = &mut agents[id.index()];
            if world.algorithm.is_done(&agent.state) {
                continue;
            }
            match world.wake(id, now, agent, self.posts(id), desk) {
                Ok(activity) => {
                    if let Some(step) = *still_step {
                        let stirred = stirred(&self.moved_at, world.graph, id, agent.last_wake);
                        if agent.note_wake(self.wakes_run, activity.moved > step, stirred) {
                            self.moved_at[id.index()] = self.wakes_run;
                        }
                    }
                    self.take(world.graph, id, &desk.outbox, counters);
                    if <A::Letter<'_> as Wire<'_>>::EXISTS {
                        stage.set_alarm(id, now);
                        self.deliver(now, stage);
                    } else {
                        assert_no_alarm(&desk.outbox);
                    }
                }
                Err(_) => counters.refused += 1,
            }
        }
        self.upcoming = upcoming;
    }

    /// What comes before the next wake, if anything does: one durable letter, or one alarm.
    fn meanwhile<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        next_wake: Option<Time>,
        stage: &mut Stage<'w, A, D>,
    ) -> bool {
        let Board { rows, durable, .. } = self;
        if let Some((from, to, bytes)) = durable.take() {
            let now = stage.now;
            stage.letter(from, to, now, Posts::Board { rows, me: to }, bytes);
            stage.counters.durable_read += 1;
            self.take(stage.world.graph, to, &stage.desk.outbox, &mut stage.counters);
            stage.set_alarm(to, now);
            if !self.mailbag.letters.is_empty() {
                self.deliver(now, stage);
            }
            return true;
        }
        if stage.alarms.is_empty() {
            return false;
        }
        let until = next_wake.unwrap_or(Time(f64::INFINITY));
        let Some((id, now)) = stage.alarms.take(until) else { return false };
        stage.pass_to(now);
        let Stage { world, agents, counters, desk, .. } = stage;
        counters.wakes += 1;
        match world.wake(id, now, &mut agents[id.index()], self.posts(id), desk) {
            Ok(_) => {
                self.take(world.graph, id, &desk.outbox, counters);
                stage.set_alarm(id, now);
                self.deliver(now, stage);
            }
            Err(_) => counters.refused += 1,
        }
        true
    }

    /// Whether no durable letter is on its way.
    pub fn is_empty(&self) -> bool {
        self.durable.letters.is_empty()
    }

    /// Whether every agent has been still long enough, since the last move of every neighbour.
    pub fn is_quiet<S>(&self, graph: &Graph, agents: &[Agent<S>]) -> bool {
        agents.iter().all(|agent| agent.still >= STILL_WAKES)
            && (0u32..).map(PeerId).zip(agents).all(|(id, agent)| !stirred(&self.moved_at, graph, id, agent.last_wake))
    }
}

/// Agents whose algorithm has no letters may run side by side, and an alarm would have to come between them.
#[inline]
fn assert_no_alarm(outbox: &Outbox) {
    assert!(outbox.alarm().is_none(), "alarms are for algorithms with letters");
}

/// Whether a neighbour has moved since wake number `since`.
fn stirred(moved_at: &[u64], graph: &Graph, id: PeerId, since: u64) -> bool {
    graph.peers(id).iter().any(|edge| moved_at[edge.peer.index()] > since)
}

impl<S> Agent<S> {
    /// Keeps count of still wakes. Returns whether the agent moved.
    pub fn note_wake(&mut self, number: u64, moved: bool, stirred: bool) -> bool {
        self.last_wake = number;
        self.still = match (moved, stirred) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => self.still.saturating_add(1),
        };
        moved
    }
}

/// Threads that share out ranges of agents: only who has a range changes its agents, and their rows between two levels.
struct Workers {
    pool: rayon::ThreadPool,
    /// The wakes that run, and those after them.
    plans: [Levels; 2],
    /// Drawn from the schedule, not yet planned.
    ahead: Vec<Wake>,
    agents_each: usize,
    ranges: Vec<Range>,
}

/// What the agents of one range did in a level, to be published after it.
#[derive(Default)]
struct Range {
    desk: Desk,
    posted: Vec<PeerId>,
    rows: Vec<f64>,
    moved: Vec<Wake>,
    counters: Counters,
}

impl Workers {
    fn new(agents: usize, threads: usize) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
        let agents_each = agents.div_ceil(threads * RANGES_PER_THREAD);
        let ranges = agents.div_ceil(agents_each);
        Workers {
            pool,
            plans: [Levels::new(agents, ranges), Levels::new(agents, ranges)],
            ahead: Vec::new(),
            agents_each,
            ranges: (0..ranges).map(|_| Range::default()).collect(),
        }
    }

    fn run<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        wakes: u64,
        board: &mut Board,
        stage: &mut Stage<'w, A, D>,
    ) {
        let Workers { pool, plans, ahead, agents_each, ranges } = self;
        let Stage { world, agents, schedule, counters, still_step, .. } = stage;
        let (world, first, agents_each) = (&*world, board.wakes_run, *agents_each);
        let at_once = (agents.len() / 2).min(PLANNED_MAX);
        let mut drawn = 0;
        let mut plan = |levels: &mut Levels| {
            while ahead.len() < at_once && drawn < wakes {
                let (agent, now) = schedule.next_wake();
                drawn += 1;
                ahead.push(Wake { agent, now, number: first + drawn });
            }
            let taken = levels.plan(world.graph, ahead, |agent| agent.index() / agents_each);
            ahead.drain(..taken);
        };
        plan(&mut plans[0]);
        while plans[0].count() > 0 {
            let [current, upcoming] = &mut *plans;
            // Planning takes one thread and an eighth of the time of running, so it is done beside it.
            let run = || run_levels(current, agents_each, ranges, board, world, agents, *still_step);
            pool.install(|| rayon::join(run, || plan(upcoming)));
            plans.swap(0, 1);
        }
        board.wakes_run += wakes;
        counters.wakes += wakes;
        for range in ranges {
            let done = std::mem::take(&mut range.counters);
            counters.vectors_sent += done.vectors_sent;
            counters.bytes_sent += done.bytes_sent;
            counters.refused += done.refused;
        }
    }
}

/// Runs planned wakes, level after level; between two levels posts are published.
fn run_levels<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
    levels: &Levels,
    agents_each: usize,
    ranges: &mut [Range],
    board: &mut Board,
    world: &World<'w, A, D>,
    agents: &mut [Agent<A::State>],
    still_step: Option<f64>,
) {
    let len = board.rows.row_len();
    for level in 0..levels.count() {
        let (rows, moved_at) = (&board.rows, &board.moved_at);
        let lots = agents.par_chunks_mut(agents_each).zip(ranges.par_iter_mut()).enumerate();
        lots.with_max_len(1).for_each(|(k, (agents, range))| {
            range.run_level(world, levels.of(level, k), k * agents_each, agents, rows, moved_at, still_step);
        });
        if len > 0 {
            let chunks = board.rows.values_mut().par_chunks_mut(agents_each * len);
            chunks.zip(ranges.par_iter()).enumerate().for_each(|(k, (rows, range))| {
                range.publish(k * agents_each, len, rows);
            });
        }
        for range in &mut *ranges {
            for wake in range.moved.drain(..) {
                board.moved_at[wake.agent.index()] = wake.number;
            }
        }
    }
}

impl Range {
    #[expect(clippy::too_many_arguments, reason = "the parts of a simulation, lent apart")]
    fn run_level<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        world: &World<'w, A, D>,
        wakes: &[Wake],
        first: usize,
        agents: &mut [Agent<A::State>],
        rows: &Rows,
        moved_at: &[u64],
        still_step: Option<f64>,
    ) {
        self.posted.clear();
        self.rows.clear();
        for (k, wake) in wakes.iter().enumerate() {
            if let Some(soon) = wakes.get(k + 1).map(|wake| wake.agent) {
                world.anticipate(soon, &agents[soon.index() - first], rows);
            }
            let id = wake.agent;
            let agent = &mut agents[id.index() - first];
            let peers = world.graph.peers(id);
            let posts = Posts::Board { rows, me: id };
            match world.wake(id, wake.now, agent, posts, &mut self.desk) {
                Ok(activity) => {
                    if let Some(step) = still_step {
                        let stirred = stirred(moved_at, world.graph, id, agent.last_wake);
                        if agent.note_wake(wake.number, activity.moved > step, stirred) {
                            self.moved.push(*wake);
                        }
                    }
                    assert_no_alarm(&self.desk.outbox);
                    if let Some(post) = self.desk.outbox.posted() {
                        self.counters.count_post(peers.len(), post.len());
                        self.posted.push(id);
                        self.rows.extend_from_slice(post);
                    }
                }
                Err(_) => self.counters.refused += 1,
            }
        }
    }

    fn publish(&self, first: usize, len: usize, rows: &mut [f64]) {
        for (id, post) in self.posted.iter().zip(self.rows.chunks_exact(len)) {
            rows[(id.index() - first) * len..][..len].copy_from_slice(post);
        }
    }
}
