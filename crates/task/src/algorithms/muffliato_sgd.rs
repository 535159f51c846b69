//! One model for all by gradients that are averaged with noise once and gossip in rounds (Muffliato-SGD; Cyffers, Even, Bellet and Massoulie 2022), on any
//! connected graph.

use super::muffliato::{self, GAMMA, GAMMA_KEY, NOISE_KEY};
use super::walk_sgd::{check_steps, gradient};
use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::keys::{Key, Kind, key};
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Observer, OwnKeys, Privacy, Refusal, Sizes, Task, Told, Trust, Yields};
use sottovoce_algorithms::average::muffliato::mixing::ROUNDS_MAX;
use sottovoce_algorithms::average::muffliato_sgd::{MuffliatoSgd, MuffliatoSgdConfig, State};
use sottovoce_core::PeerId;
use sottovoce_privacy::Plan;
use sottovoce_privacy::calibrate::Uncalibrated;

/// The key of how often the model moves.
const STEPS: &str = "muffliato.steps";
/// The key of who tells the next model.
const SPEAKER: &str = "muffliato.speaker";

const STEPS_DEFAULT: i64 = 50;
const STEPS_MAX: i64 = 100_000;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "muffliato-sgd",
    sentence: "nothing: for each step it adds noise to a gradient once, and in each round sends its neighbours a mean of what they sent it",
    yields: Yields::OneModel,
    leaves: Leaves::Gradients,
    in_rounds: true,
    rounds: None,
    accelerates: true,
    by_pairs: true,
    takes_steps: true,
    keys: KEYS,
    own_defaults: |own| own.set(STEPS, own.get(STEPS).cloned().unwrap_or(STEPS_DEFAULT.into())),
    refuses_graph: muffliato::refuses_graph,
    check,
    observer: |task, _| {
        let (rounds, gamma) = (task.run.rounds.unwrap_or(ROUNDS_MAX), task.own.number(GAMMA).unwrap_or(1.0));
        Observer::Pairs { rounds, told: Some(Told { gamma }) }
    },
    complete: |task, graph, names| {
        let size = task.privacy.map_or(1.0, |privacy| privacy.clip);
        let noise = task.privacy.and_then(|privacy| against_everyone(task, &privacy).ok());
        let noise = noise.and_then(|plan| muffliato::multiplier(&plan)).map(|multiplier| multiplier * 2.0 * size);
        muffliato::complete_rounds(task, graph, (size, noise), steps(&task.own));
        // Whatever the task says: accountants count on the first one.
        names.first().into_iter().for_each(|name| task.own.set(SPEAKER, name.clone()));
    },
    plan: |task, privacy, _| match muffliato::with_noise_of_task(task, privacy, steps(&task.own)) {
        Some(plan) => plan,
        None => against_everyone(task, privacy),
    },
    on_peers: Some(|task| match task.own.get(SPEAKER) {
        None => Some(
            "muffliato.speaker is missing, and no peer knows everyone's names; accepted for peers: muffliato.speaker = the name that is first \
             in the order of all members' names",
        ),
        Some(_) => muffliato::missing_on_peers(task),
    }),
    ..Description::PLAIN
};

#[rustfmt::skip]
const KEYS: &[Key] = &[
    key("muffliato", Kind::Table, "all defaults", "Read when algorithm = \"muffliato\" or \"muffliato-sgd\"."),
    GAMMA_KEY,
    NOISE_KEY,
    key(STEPS, Kind::Integer(1, STEPS_MAX), "50", "muffliato-sgd: how often the model moves, each time by the mean of everybody's gradients. With [privacy] each step is charged."),
    key(SPEAKER, Kind::Text, "the first agent in the order of names; read by real peers alone", "muffliato-sgd: who tells everyone the next model after each step's rounds: the first of all members."),
];

fn steps(own: &OwnKeys) -> u32 {
    own.number(STEPS).map_or(STEPS_DEFAULT as u32, |steps| steps as u32)
}

/// One release for each step, with the least noise that keeps the budget against everyone.
fn against_everyone(task: &Task, privacy: &Privacy) -> Result<Plan, Uncalibrated> {
    let all = steps(&task.own) as usize;
    let releases = |noise| vec![privacy.event(noise); all];
    Plan::with_least_noise(releases, privacy.epsilon, privacy.delta, privacy.accountant.accountant())
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    if task.run.rounds.is_some_and(|rounds| rounds > ROUNDS_MAX) {
        let what = format!("run.rounds: more for each step than anybody waits for; accepted: at most {ROUNDS_MAX}");
        return Some(("run.rounds", what));
    }
    check_steps(task).or_else(|| {
        let privacy = task.privacy?;
        let about_tokens = privacy.contributions.is_some() || privacy.present != 1.0 || privacy.trust != Trust::Network;
        if about_tokens {
            let what = "privacy.contributions, privacy.present and privacy.trust are about members who hold a token; accepted with muffliato-sgd: \
                        none of them";
            return Some(("privacy", what.to_owned()));
        }
        muffliato::check(task, sizes)
    })
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let Loaded { task, problem, plan, names, .. } = loaded;
    // PRIVACY: figures for pairs count on the first of all members, whom no peer knows; but each knows its neighbours, and together they know everyone.
    let said = task.own.get(SPEAKER).and_then(|name| name.as_str());
    if let Some((first, said)) = names.iter().min().zip(said).filter(|(first, said)| first.as_str() < *said) {
        let what = format!(
            "muffliato.speaker is {said:?}, and {first:?} comes before it in the order of names; accepted: the first of all members"
        );
        return Err(Mistake::file(&task.source, what));
    }
    let gradient =
        gradient(task, problem.dimension()).map_err(|error| Mistake::file(&task.source, error.to_string()))?;
    let speaker = task.own.get(SPEAKER).and_then(|name| name.as_str());
    let config = MuffliatoSgdConfig {
        gradient,
        law: plan.as_ref().and_then(|plan| plan.steps().first().copied()),
        steps: steps(&task.own),
        rounds: task.run.rounds.unwrap_or(ROUNDS_MAX),
        acceleration: task.own.number(GAMMA).unwrap_or(1.0),
        speaker: names.iter().position(|name| Some(&**name) == speaker).map(|place| PeerId(place as u32)),
    };
    let descent = MuffliatoSgd::new(config).map_err(refused(loaded))?;
    let access = Access { steps: Some(|state: &State| u64::from(state.step())), ..Access::to_points() };
    Ok(visitor.visit(&descent, access))
}
