//! One peer, without sockets and without a clock: its agent, its store, what it heard and what it has to say.
//!
//! The order is always the same: the agent acts behind its gate, which charges; the charge, the agent's new state and the bytes to be
//! sent go into the store as one record; only then can [`Node::outgoing`] hand them out. Whoever moves bytes, and whatever breaks
//! between two calls, cannot change that order.
//!
//! A peer that starts says nothing new before some neighbours have told it the highest number they saw from it. A store that was
//! rolled back, copied or lost shows itself by that, and the peer refuses to go on ([`Fault::RolledBack`]).

use crate::disk::Disk;
use crate::frame::{ProcessNumber, Refusals, Seen};
use crate::group::Group;
use crate::store::{Mail, Owner, SavedLetter, Stamped, Store, StoreError, StoredStep};
use sottovoce_core::wire::LETTER_BYTES_MAX;
use sottovoce_core::{Activity, Algorithm, CannotResume, Coin, Cx, Neighbours, Outbox, Posts, Rows, Time, UNHEARD};
use sottovoce_privacy::{Entropy, Exhausted, Gate, NoEntropy, Noise, OtherPlan, Plan, Secret, Secrets};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use thiserror::Error;

mod conversation;
mod keeping;
mod view;

pub use conversation::{Afterwards, Outgoing};

/// Letters that may be lost and wait for one neighbour; of more, the oldest are lost. (Durable ones are bounded where they are made, by
/// [`DURABLE_WAITING_MAX`](sottovoce_core::DURABLE_WAITING_MAX).)
pub const LETTERS_MAX: usize = 64;

/// An agent is quiet after this many wakes in a row in which neither it nor a neighbour moved.
pub const STILL_WAKES: u32 = 10;

/// An own post beyond this is not believed: neighbours take no numbers beyond [`NUMBER_MAX`](sottovoce_core::wire::NUMBER_MAX), so no model comes near it.
const OWN_NUMBER_MAX: f64 = 1e100;

/// The row of an agent's own post among the versions; neighbours follow.
const MINE: u32 = UNHEARD + 1;

/// What a peer does, for whom, and how far it may go.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Keys the agent's coins.
    pub seed: u64,
    /// What it may release; `None`: everything, exactly.
    pub plan: Option<Arc<Plan>>,
    /// How many points it has, which is public.
    pub points: u64,
    /// How many neighbours must have told what they saw before anything new is said; all, where there are fewer.
    pub witnesses: usize,
    /// After this many wakes it only listens.
    pub wakes_max: Option<u64>,
    /// It is quiet when it and its neighbours move by at most a tenth of this.
    pub tolerance: Option<f64>,
    /// How far from its own model a neighbour's post counts; what is further away is moved to that distance.
    pub pull_limit: Option<f64>,
}

/// Why a peer cannot go on. Nothing has been sent that the store does not hold.
#[derive(Debug, Error)]
pub enum Fault {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody has seen more than the store knows of.
    #[error(
        "neighbour {neighbour:?} has seen message {seen} of this peer, and the store ends at {own}: it was rolled back, copied or lost, so \
         its budget cannot be trusted; accepted: the newest store of this peer, or a new task, whose budget ADDS to all that this one may have \
         spent on the same records"
    )]
    RolledBack {
        /// Who says so.
        neighbour: String,
        /// The highest number it saw.
        seen: u64,
        /// The highest number in the store.
        own: u64,
    },
    /// Somebody has seen another content under a number of this peer.
    #[error(
        "neighbour {neighbour:?} has seen another content of durable letter {turn} of this peer: the store was rolled back or copied, so its \
         budget cannot be trusted; accepted: the newest store of this peer, or a new task, whose budget ADDS to all that this one may have \
         spent on the same records"
    )]
    Forked {
        /// Who says so.
        neighbour: String,
        /// Which letter to it.
        turn: u64,
    },
    /// The saved state is of no use.
    #[error("the store cannot be resumed: {0}")]
    State(#[from] CannotResume),
    /// The ledger is not of this plan.
    #[error("the store cannot be resumed: {0}; accepted: the task as it was when the store was made")]
    Plan(#[from] OtherPlan),
    /// No noise.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The plan does not hold what the agent must release as it enters.
    #[error("the plan does not hold what the agent releases as it enters; nothing was sent")]
    Unplanned,
    /// It has failed before.
    #[error("the peer has failed before; nothing is sent any more")]
    Failed,
}

/// What a wake came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Woke {
    /// The agent acted.
    Acted,
    /// It waits for neighbours to tell what they have seen.
    Asking,
    /// It has had all its wakes, or has done all it is there for.
    Done,
    /// Its clock does not tick: it lives by letters and alarms.
    Idle,
}

/// What happened so far, since this process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Frames that were dropped, by reason.
    pub refusals: Refusals,
    /// Frames of ours that others dropped.
    pub refused_by_others: u64,
    /// Wakes at which the plan had nothing left for what the agent wanted to say.
    pub exhausted: u64,
    /// Vectors delivered, as the papers count them.
    pub vectors_sent: u64,
    /// Letters delivered, whatever they hold.
    pub letters_sent: u64,
    /// Bytes of delivered posts and letters, as the simulator counts them.
    pub bytes_sent: u64,
    /// Letters that were given up; never a durable one.
    pub letters_lost: u64,
    /// Durable letters that were acknowledged.
    pub durable_delivered: u64,
    /// Durable letters that came again after they were taken, and were acknowledged once more.
    pub durable_repeated: u64,
}

/// One peer. Its noise is secret, unless an audit or a test opened it with other noise ([`Node::open_with`]).
///
/// **Architecture invariant:** a node with any noise but [`Secret`] is never on a network. [`Peer::start`](crate::peer::Peer::start) is the
/// only way from a node to sockets, and takes no other:
///
/// ```compile_fail
/// use sottovoce_core::Algorithm;
/// use sottovoce_net::{disk::FileDisk, node::Node, peer::{Peer, Settings}};
/// use sottovoce_privacy::Simulated;
///
/// async fn start<A: Algorithm>(node: Node<'_, A, FileDisk, Simulated>, settings: Settings) {
///     let _ = Peer::start(node, settings).await; // with `Node<'_, A, FileDisk>` this compiles
/// }
/// ```
pub struct Node<'d, A: Algorithm, D, N = Secret> {
    algorithm: &'d A,
    data: A::Data<'d>,
    group: Group,
    rules: Rules,
    store: Store<D>,
    gate: Gate<N>,
    /// Secret bits, as secret as the noise is.
    entropy: Entropy,
    /// Which process this is.
    instance: ProcessNumber,
    letter_bytes_max: usize,
    wake_rate: f64,
    phase: Phase<A::State>,
    /// By position among those in reach.
    others: Vec<Other>,
    /// The zero vector, its own post, then its neighbours' by position.
    versions: Rows,
    /// The same, with neighbours' posts within the pull limit.
    limited: Option<Rows>,
    seen: Vec<u32>,
    mine: u32,
    wakes: u64,
    events: u64,
    time: Time,
    alarm: Option<Time>,
    /// How often an alarm was set, in this process.
    alarms_set: u64,
    epoch: u64,
    last_number: u64,
    /// The stamp of its own last post; its number is zero before the first.
    post_stamp: Stamped,
    /// Positions of those who said something since the last record.
    news: BTreeSet<usize>,
    /// Positions of those to whom durable letters were sent, or who acknowledged some, since the last record.
    mail_news: BTreeSet<usize>,
    /// Letters of the last record, which may not have been delivered.
    letters: Vec<SavedLetter>,
    still: u32,
    moved: f64,
    counters: NodeCounters,
    outbox: Outbox,
    scratch: Vec<f64>,
}

/// How far a peer has come.
enum Phase<S> {
    /// It asks what others have seen.
    Asking(Option<Box<StoredStep>>),
    /// It is there.
    Awake(S),
    /// It goes no further.
    Failed,
}

/// What is known of a neighbour.
#[derive(Clone, Debug, Default)]
struct Other {
    seen: Seen,
    points: Option<u64>,
    /// It has told what it saw since this process began.
    is_witness: bool,
    /// It has not got the last post.
    wants_post: bool,
    letters: VecDeque<Waiting>,
    /// Durable letters to it.
    mail: Mail,
    /// Those up to this turn are in the store.
    stored: u64,
    /// It has said that it took fewer durable letters than it had acknowledged: it has lost what it had, and nothing can follow in order.
    is_torn: bool,
}

/// A letter on its way that may be lost.
#[derive(Clone, Debug)]
struct Waiting {
    stamped: Stamped,
    vectors: u64,
    bytes: Vec<u8>,
}

/// A neighbour, as its peer sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownNeighbour<'n> {
    /// Its name.
    pub name: &'n str,
    /// Durable letters that wait for it.
    pub waiting: usize,
    /// The weight of the edge.
    pub weight: f64,
    /// The number of its last post; zero before the first.
    pub post: u64,
    /// How many points it says it has.
    pub points: Option<u64>,
    /// What it posted last.
    pub values: Option<&'n [f64]>,
}

impl<'d, A: Algorithm, D: Disk> Node<'d, A, D> {
    /// Opens a peer's store, or begins one. Nothing is computed and nothing can be said before [`Node::wake`]. Noise comes from the
    /// system's entropy.
    pub fn open(
        algorithm: &'d A,
        data: A::Data<'d>,
        group: Group,
        rules: Rules,
        owner: &Owner,
        disk: D,
    ) -> Result<Self, Fault> {
        Node::open_with(Secret::from_os()?, algorithm, data, group, rules, owner, disk)
    }
}

impl<'d, A: Algorithm, D: Disk, N: Noise + 'static> Node<'d, A, D, N> {
    /// The same as [`Node::open`] with noise that may be known or repeated, for audits and tests. No such node reaches a network: the
    /// type of its noise says what it is.
    pub fn open_with(
        noise: N,
        algorithm: &'d A,
        data: A::Data<'d>,
        group: Group,
        rules: Rules,
        owner: &Owner,
        disk: D,
    ) -> Result<Self, Fault> {
        let (store, saved) = Store::open(disk, owner)?;
        let (count, len) = (group.peers().len(), algorithm.post_len());
        let in_reach = group.reach().len();
        assert!(
            group.peers().iter().all(|edge| group.reach().position(edge.peer).is_some()),
            "neighbours are in reach"
        );
        let mut noise = noise;
        let mut entropy = Entropy::beside(&mut noise, rules.seed, group.me.0);
        let instance = Secrets::of(&mut entropy).bytes();
        let letter_bytes_max = algorithm.letter_bytes_max(data).min(LETTER_BYTES_MAX);
        let ledger = saved.as_ref().map(|step| step.ledger.clone()).unwrap_or_default();
        let gate = Gate::resumed(rules.plan.clone(), ledger, noise)?;
        let mut node = Node {
            algorithm,
            data,
            store,
            gate,
            entropy,
            instance,
            letter_bytes_max,
            wake_rate: algorithm.wake_rate(data, group.peers()),
            phase: Phase::Failed,
            others: vec![Other::default(); in_reach],
            versions: Rows::zeros(if len == 0 { 0 } else { 2 + count }, len),
            limited: None,
            seen: vec![UNHEARD; count],
            mine: UNHEARD,
            wakes: 0,
            events: 0,
            time: Time::default(),
            alarm: None,
            alarms_set: 0,
            epoch: 0,
            last_number: 0,
            post_stamp: Stamped::default(),
            news: BTreeSet::new(),
            mail_news: BTreeSet::new(),
            letters: Vec::new(),
            still: 0,
            moved: f64::INFINITY,
            counters: NodeCounters::default(),
            outbox: Outbox::new(letter_bytes_max),
            scratch: Vec::new(),
            group,
            rules,
        };
        if let Some(step) = &saved {
            node.recall(step)?;
        }
        node.phase = Phase::Asking(saved.map(Box::new));
        Ok(node)
    }

    /// The agent's clock ticks. Time does not run backwards, whatever `now` says.
    pub fn wake(&mut self, now: Time) -> Result<Woke, Fault> {
        if let Some(woke) = self.ready()? {
            return Ok(woke);
        }
        if self.rules.wakes_max.is_some_and(|most| self.wakes >= most) {
            return Ok(Woke::Done);
        }
        if self.wake_rate == 0.0 {
            return Ok(Woke::Idle);
        }
        self.wakes += 1;
        self.time = Time(self.time.0.max(now.0));
        self.on_wake()
    }

    /// The time has come for which the agent set its alarm.
    pub fn alarm_rings(&mut self) -> Result<Woke, Fault> {
        if let Some(woke) = self.ready()? {
            return Ok(woke);
        }
        let Some(at) = self.alarm.take() else { return Ok(Woke::Idle) };
        self.time = Time(self.time.0.max(at.0));
        self.on_wake()
    }

    /// Lets the agent enter when enough neighbours have told what they saw; why it cannot act now, if it cannot.
    fn ready(&mut self) -> Result<Option<Woke>, Fault> {
        match &self.phase {
            Phase::Failed => return Err(Fault::Failed),
            Phase::Asking(_) if !self.has_witnesses() => return Ok(Some(Woke::Asking)),
            Phase::Asking(_) => self.enter()?,
            Phase::Awake(_) => {}
        }
        Ok(self.is_done().then_some(Woke::Done))
    }

    fn on_wake(&mut self) -> Result<Woke, Fault> {
        let activity: Result<Activity, Exhausted> =
            self.act(false, |algorithm, state, data, cx| algorithm.on_wake(state, data, cx))?;
        match activity {
            Ok(activity) => {
                self.moved = activity.moved;
                let step = self.rules.tolerance.map_or(0.0, |tolerance| tolerance / f64::from(STILL_WAKES));
                self.still = if activity.moved <= step { self.still.saturating_add(1) } else { 0 };
            }
            Err(_) => self.counters.exhausted += 1,
        }
        Ok(Woke::Acted)
    }

    fn has_witnesses(&self) -> bool {
        let wanted = self.rules.witnesses.min(self.others.len());
        self.others.iter().filter(|other| other.is_witness).count() >= wanted
    }

    /// The agent enters, or comes back.
    fn enter(&mut self) -> Result<(), Fault> {
        let Phase::Asking(saved) = std::mem::replace(&mut self.phase, Phase::Failed) else { return Ok(()) };
        self.outbox.clear();
        let (algorithm, data) = (self.algorithm, self.data);
        let is_new = saved.is_none();
        let neighbours = match &saved {
            Some(step) if step.neighbours == self.group.weights() => Neighbours::Same,
            _ => Neighbours::Changed,
        };
        let mut cx = Cx {
            me: self.group.me,
            role: self.group.role(),
            now: self.time,
            peers: self.group.peers(),
            reach: self.group.reach(),
            coin: Coin::new(self.rules.seed, self.group.me.0, self.events),
            secret: Secrets::of(&mut self.entropy),
            gate: &mut self.gate,
            posts: Posts::PerEdge { versions: &self.versions, mine: self.mine, seen: &self.seen },
            scratch: &mut self.scratch,
            outbox: &mut self.outbox,
        };
        let state = match &saved {
            None => algorithm.start(data, &mut cx).map_err(|_| Fault::Unplanned)?,
            Some(step) => algorithm.resume(&step.state, neighbours, data, &mut cx)?,
        };
        if !is_new {
            // Coming back releases nothing.
            self.outbox.clear();
        }
        self.phase = Phase::Awake(state);
        self.finish(false, is_new)
    }

    /// Lets the agent act, then makes safe what it did and queues what it said. With `always`, also where it said nothing.
    fn act<R>(
        &mut self,
        always: bool,
        event: impl FnOnce(&A, &mut A::State, A::Data<'d>, &mut Cx<'_>) -> R,
    ) -> Result<R, Fault> {
        let Phase::Awake(state) = &mut self.phase else { return Err(Fault::Failed) };
        self.events += 1;
        self.outbox.clear();
        let reach = self.group.reach();
        let waiting = self.others.iter().enumerate().filter(|(_, other)| !other.mail.waiting.is_empty());
        self.outbox.set_waiting(waiting.map(|(k, other)| (reach.edge(k).peer, other.mail.waiting.len())));
        let before = self.gate.ledger().releases();
        let versions = match self.rules.pull_limit {
            None => &self.versions,
            Some(limit) => within(limit, &self.versions, self.mine, &self.seen, &mut self.limited),
        };
        let mut cx = Cx {
            me: self.group.me,
            role: self.group.role(),
            now: self.time,
            peers: self.group.peers(),
            reach: self.group.reach(),
            coin: Coin::new(self.rules.seed, self.group.me.0, self.events),
            secret: Secrets::of(&mut self.entropy),
            gate: &mut self.gate,
            posts: Posts::PerEdge { versions, mine: self.mine, seen: &self.seen },
            scratch: &mut self.scratch,
            outbox: &mut self.outbox,
        };
        let result = event(self.algorithm, state, self.data, &mut cx);
        let charged = self.gate.ledger().releases() != before;
        self.finish(always, charged)?;
        Ok(result)
    }
}

/// The versions, with neighbours' posts moved to within `limit` of the agent's own.
fn within<'r>(limit: f64, versions: &Rows, mine: u32, seen: &[u32], out: &'r mut Option<Rows>) -> &'r Rows {
    let out = out.get_or_insert_with(|| versions.clone());
    out.values_mut().copy_from_slice(versions.values());
    for &version in seen.iter().filter(|&&version| version != UNHEARD) {
        let own = versions.row(mine as usize);
        let row = out.row_mut(version as usize);
        let distance = row.iter().zip(own).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        if distance > limit {
            let share = limit / distance;
            row.iter_mut().zip(own).for_each(|(value, own)| *value = own + share * (*value - own));
        }
    }
    out
}
