//! What a peer makes of what it knows, for its owner: its model, what it told, the model it keeps at home.

use super::problem::{PeerTask, is_learned, lists_everyone};
use crate::{learned, private};
use sottovoce_algorithms::personal::{boosting::Bits, graph::Links};
use sottovoce_core::{Algorithm, CannotResume, Coin, Cx, Neighbours, Outbox, PeerId, Posts, Role, Rows, Time, UNHEARD};
use sottovoce_privacy::{Gate, Ledger, Secrets, Simulated};
use sottovoce_task::algorithms::{Access, Visitor, with_algorithm};
use sottovoce_task::error::Mistake;
use sottovoce_task::task::{Description, Leaves, Yields};

/// What a store holds of the agent itself.
#[derive(Clone, Copy, Debug)]
pub struct Saved<'s> {
    /// The agent's state, as its algorithm saved it.
    pub state: &'s [u8],
    /// Its neighbours at that time: name and weight.
    pub neighbours: &'s [(String, f64)],
    /// What it has released.
    pub ledger: &'s Ledger,
    /// What it posted last.
    pub post: Option<&'s [f64]>,
}

/// What a store says of the agent, for its owner.
#[derive(Clone, Debug)]
pub struct Recalled {
    /// The agent's own model, as it stood when its state was saved.
    pub model: Vec<f64>,
    /// Whether the agent knows what its model says: an estimate may be yet to come.
    pub knows: bool,
    /// How many contributions are missing in what it knows.
    pub passed_over: u32,
    /// How many steps its model has been through, where all learn one.
    pub steps: u64,
    /// The weights that it has learned, where the graph is.
    pub links: Option<Links>,
    /// Whom it works with, where letters tell models and home models need them.
    pub correspondents: Option<Vec<Correspondent>>,
    /// The bits that it has sent, where papers count bits.
    pub bits: Option<Bits>,
}

/// Somebody that an agent works with now.
#[derive(Clone, Debug)]
pub struct Correspondent {
    /// Who.
    pub peer: PeerId,
    /// Of the edge.
    pub weight: f64,
    /// As letters told it last.
    pub model: Option<Vec<f64>>,
}

/// What is known of a neighbour, in the order of the neighbours' names.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeardNeighbour<'s> {
    /// What it posted last.
    pub post: Option<&'s [f64]>,
    /// How many points it says it has.
    pub points: Option<u64>,
}

impl PeerTask {
    /// What this peer has told others last, so that everyone may have it; none if it told nothing. A private peer tells its posts, or, where the
    /// graph is learned, its model to whoever asks; without privacy letters tell the model, too. An estimate, and one model for all, is everyone's who
    /// knows it. Who learns alone tells nothing.
    pub fn told_model(&self, saved: Saved<'_>, heard: &[HeardNeighbour<'_>]) -> Result<Option<Vec<f64>>, Mistake> {
        let task = &self.loaded.task;
        if task.algorithm.leaves == Leaves::Nothing || !(task.algorithm.is_for_all)(task) {
            return Ok(None);
        }
        let personal = task.algorithm.yields == Yields::ModelPerAgent;
        if task.privacy.is_some() && personal && !lists_everyone(task) {
            return Ok(saved.post.map(<[f64]>::to_vec));
        }
        let recalled = self.recall(saved, heard)?;
        Ok(recalled.knows.then_some(recalled.model))
    }

    /// The model that the owner should use: the home model of a private peer, otherwise the agent's own.
    pub fn best_model(&self, saved: Saved<'_>, heard: &[HeardNeighbour<'_>]) -> Result<Vec<f64>, Mistake> {
        match self.home_model(saved, heard)? {
            Some(model) => Ok(model),
            None => Ok(self.recall(saved, heard)?.model),
        }
    }

    /// The home model, from exact data, what neighbours posted or wrote, and their numbers of points; none where the task has none.
    pub fn home_model(&self, saved: Saved<'_>, heard: &[HeardNeighbour<'_>]) -> Result<Option<Vec<f64>>, Mistake> {
        let loaded = &self.loaded;
        let home = loaded.task.privacy.and_then(|privacy| privacy.home);
        let Description { leaves, yields, .. } = *loaded.task.algorithm;
        let personal = leaves != Leaves::Nothing && yields == Yields::ModelPerAgent;
        let Some(home) = home.filter(|_| personal) else { return Ok(None) };
        let home = home.check().map_err(|error| Mistake::file(&loaded.task.source, error.to_string()))?;
        let peers = loaded.problem.graph.peers(self.me);
        let mut sizes = vec![0; loaded.names.len()];
        for (edge, heard) in peers.iter().zip(heard) {
            sizes[edge.peer.index()] = heard.points.map_or(0, |points| usize::try_from(points).unwrap_or(usize::MAX));
        }
        let known = private::broadcasts_by_size(loaded, &sizes)?;
        let known = |id: PeerId| known[id.index()];
        if is_learned(&loaded.task) {
            let all = self.recall(saved, heard)?.correspondents.unwrap_or_default();
            let told = all.iter().map(|one| (one.peer, one.weight, one.model.as_deref())).collect();
            return Ok(Some(learned::home_model(home, &self.shard(), &told, known)));
        }
        let (versions, seen) = board(loaded.problem.dimension(), None, heard);
        let posts = Posts::PerEdge { versions: &versions, mine: UNHEARD, seen: &seen };
        Ok(Some(home.model(&self.shard(), peers, posts, known)))
    }

    /// What the agent's saved state says.
    pub fn recall(&self, saved: Saved<'_>, heard: &[HeardNeighbour<'_>]) -> Result<Recalled, Mistake> {
        let recalled = with_algorithm(&self.loaded, self.loaded.task.algorithm, Recall { one: self, saved, heard })?;
        recalled.map_err(|error| Mistake::file(&self.loaded.task.source, format!("the store is of no use: {error}")))
    }

    /// The score of a model on this agent's test points, if it has any.
    pub fn score(&self, model: &[f64]) -> Option<f64> {
        let test = self.loaded.test.as_ref()?;
        let mut models = Rows::zeros(self.loaded.names.len(), model.len());
        models.row_mut(self.me.index()).copy_from_slice(model);
        crate::score::scores(self.loaded.problem.loss, test, &models)[self.me.index()]
    }
}

/// Posts as an agent reads them: zeros, its own, its neighbours'. And whom it has heard.
fn board(len: usize, own: Option<&[f64]>, heard: &[HeardNeighbour<'_>]) -> (Rows, Vec<u32>) {
    let mut versions = Rows::zeros(if len == 0 { 0 } else { 2 + heard.len() }, len);
    let fits = |post: &&[f64]| len > 0 && post.len() == len && post.iter().all(|value| value.is_finite());
    if let Some(own) = own.filter(fits) {
        versions.row_mut(1).copy_from_slice(own);
    }
    let mut seen = vec![UNHEARD; heard.len()];
    for (k, post) in heard.iter().enumerate().filter_map(|(k, heard)| Some((k, heard.post.filter(fits)?))) {
        versions.row_mut(2 + k).copy_from_slice(post);
        seen[k] = 2 + k as u32;
    }
    (versions, seen)
}

/// Brings an agent back to read what it knows. It sends nothing.
struct Recall<'a> {
    one: &'a PeerTask,
    saved: Saved<'a>,
    heard: &'a [HeardNeighbour<'a>],
}

impl Visitor for Recall<'_> {
    type Output = Result<Recalled, CannotResume>;

    fn visit<A: Algorithm>(self, algorithm: &A, access: Access<A>) -> Self::Output {
        let Recall { one, saved, heard } = self;
        let peers = one.loaded.problem.graph.peers(one.me);
        let names = &one.loaded.names;
        let same = peers.iter().map(|edge| (&names[edge.peer.index()], edge.weight));
        let same = same.eq(saved.neighbours.iter().map(|(name, weight)| (name, *weight)));
        let (versions, seen) = board(algorithm.post_len(), saved.post, heard);
        let mine = if saved.post.is_some() && versions.count() > 0 { 1 } else { UNHEARD };
        let mut gate =
            Gate::resumed(one.plan(), saved.ledger.clone(), Simulated::None).map_err(|_| CannotResume::Malformed)?;
        let (mut scratch, mut outbox) = (Vec::new(), Outbox::default());
        let mut cx = Cx {
            me: one.me,
            role: Role::Member,
            now: Time::default(),
            peers,
            reach: peers,
            coin: Coin::new(0, one.me.0, 0),
            secret: Secrets::simulated(0, one.me.0, 0),
            gate: &mut gate,
            posts: Posts::PerEdge { versions: &versions, mine, seen: &seen },
            scratch: &mut scratch,
            outbox: &mut outbox,
        };
        let neighbours = if same { Neighbours::Same } else { Neighbours::Changed };
        let state = algorithm.resume(saved.state, neighbours, (access.data)(&one.loaded, one.me), &mut cx)?;
        let owned = |(peer, weight, model): (PeerId, f64, Option<&[f64]>)| {
            let model = model.map(<[f64]>::to_vec);
            Correspondent { peer, weight, model }
        };
        let posted: &[f64] = if versions.count() > 0 { versions.row(mine as usize) } else { &[] };
        Ok(Recalled {
            model: algorithm.model(&state, posted).to_vec(),
            knows: access.knows.is_none_or(|knows| knows(&state)),
            passed_over: access.passed_over.map_or(0, |passed_over| passed_over(&state)),
            steps: access.steps_of(&state).unwrap_or(0),
            links: access.links.map(|links| links(&state).clone()),
            correspondents: access.heard.map(|heard| heard(&state).into_iter().map(owned).collect()),
            bits: access.bits.map(|bits| bits(&state)),
        })
    }
}
