//! Who looks at a token, and what they see.

use super::stage::Witnessed;
use sottovoce_core::Coin;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Observer;

/// Coalitions of each size that are tried, besides every member alone.
const COALITIONS: usize = 10;

/// Every member alone, and some coalitions of two and of five; nobody where a task protects from everyone.
pub(super) fn coalitions(loaded: &Loaded, coin: &mut Coin) -> Vec<Vec<u32>> {
    match loaded.observer() {
        Observer::Walk(..) => coalitions_of(loaded.problem.agents(), coin),
        _ => Vec::new(),
    }
}

/// Every one of so many members alone, and some coalitions of two and of five.
pub(super) fn coalitions_of(members: usize, coin: &mut Coin) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = (0..members as u32).map(|k| vec![k]).collect();
    for size in [2, 5].into_iter().filter(|size| *size < members) {
        for _ in 0..COALITIONS {
            let mut people: Vec<u32> = (0..members as u32).collect();
            for k in 0..size {
                people.swap(k, k + coin.below(members - k));
            }
            people.truncate(size);
            all.push(people);
        }
    }
    all
}

/// What a coalition sees: when each letter to one of them, or from one, was written, and its bytes.
pub(super) fn view<'w>(witnessed: &'w [Witnessed], coalition: &[u32]) -> Vec<(u64, usize, u32, &'w [u8])> {
    let mut seen = Vec::new();
    for (from, agent) in witnessed.iter().enumerate() {
        let own = coalition.contains(&(from as u32));
        for utterance in &agent.said {
            let letters = utterance.letters.iter().filter(|(to, _)| own || coalition.contains(to));
            seen.extend(letters.map(|(to, bytes)| (utterance.at, from, *to, &bytes[..])));
        }
    }
    seen
}
