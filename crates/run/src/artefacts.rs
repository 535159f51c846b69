//! Every artefact that a command leaves: what it is made of, and whether it may be shown to somebody who must not see the data.
//!
//! [`ALL`] is the one source. `docs/run-directory.md` holds the tables that [`markdown`] makes of it, the commands replace a folder by
//! `--force` only when it holds nothing else ([`names`]), and `crates/cli/tests/artefacts.rs` runs the real commands and holds every
//! file that they write against it: a file that is not listed fails.
//!
//! The list is about tasks with `[privacy]`. Without it exact models leave every agent, so what is "released" here is exact there.
//! An audit compares, for neighbouring data sets, everything whose [`Artefact::shown`] is not [`Shown::No`].

/// Which command leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `sottovoce train`, and each of the two runs of `sottovoce demo`.
    Train,
    /// `sottovoce measure`.
    Measure,
    /// `sottovoce network` without `--reveal`.
    Network,
    /// `sottovoce network --reveal`.
    NetworkRevealed,
    /// `sottovoce peer`: the folder of one peer; `sottovoce network` makes one for each agent, below `peers`.
    Peer,
    /// All others, which leave no folder that outlives them, or one of their own data.
    Others,
}

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file of the folder.
    File,
    /// A folder inside the folder, with all that it holds.
    Folder,
    /// Something that a command gives besides: what it prints, how it ends.
    Console,
}

/// What it is computed from. The last word counts: what is made of exact data and public facts is made of exact data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeOf {
    /// The task, names, numbers of points, the graph, counters, clocks: what everyone may know before anything is released.
    PublicFacts,
    /// Public facts, and values that were charged before they left, and what follows from these.
    Released,
    /// The records themselves, or what was computed from them without noise.
    ExactData,
    /// A key or a token.
    Secret,
}

/// Whether it may be shown to somebody who must not see the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Yes.
    Yes,
    /// Its noise is simulated: whoever knows the seed takes it off again. The seed is in `task.toml` and easily guessed, so this
    /// is no protection; it says only that nothing but charged values is in it.
    UnlessSeedKnown,
    /// No.
    No,
}

/// One artefact.
#[derive(Clone, Copy, Debug)]
pub struct Artefact {
    /// Who leaves it.
    pub command: Command,
    /// Its name in the folder, or what it is called, where it is no file.
    pub name: &'static str,
    /// File, folder or word.
    pub kind: Kind,
    /// What it is computed from.
    pub made_of: MadeOf,
    /// Who may see it.
    pub shown: Shown,
    /// What is in it, in a few words.
    pub what: &'static str,
}

use Command::{Measure, Network, NetworkRevealed, Others, Peer, Train};
use Kind::{Console, File, Folder};
use MadeOf::{ExactData, PublicFacts, Released, Secret};
use Shown::{No, UnlessSeedKnown, Yes};

const fn one(
    command: Command,
    name: &'static str,
    kind: Kind,
    made_of: MadeOf,
    shown: Shown,
    what: &'static str,
) -> Artefact {
    Artefact { command, name, kind, made_of, shown, what }
}

/// All artefacts.
pub const ALL: &[Artefact] = &[
    one(Train, "models.csv", File, Released, UnlessSeedKnown, "broadcast models"),
    one(Train, "model.csv", File, Released, UnlessSeedKnown, "the model, where all learn one"),
    one(Train, "home.csv", File, ExactData, No, "home models"),
    one(
        Train,
        "edges.csv",
        File,
        Released,
        UnlessSeedKnown,
        "the learned graph, from broadcast models and noisy losses",
    ),
    one(Train, "metrics.csv", File, ExactData, No, "objective and scores over time"),
    one(Train, "ledger.jsonl", File, PublicFacts, Yes, "charges: they follow from the plan and m_i"),
    one(Train, "summary.json", File, ExactData, No, "objective and scores; its digest holds no data"),
    one(Train, "report.html", File, ExactData, No, "objective, scores, losses, other budgets"),
    one(Train, "plots", Folder, ExactData, No, "the report's pictures"),
    one(
        Train,
        "task.toml",
        File,
        PublicFacts,
        Yes,
        "the task, with points-max from m_i, paths on this machine, the seed",
    ),
    one(Train, "standard output", Console, ExactData, No, "objective and scores"),
    one(Train, "standard error", Console, ExactData, No, "progress with the objective, warnings"),
    one(Train, "exit code", Console, PublicFacts, Yes, "0, or 2 for a mistake in task or files"),
    one(
        Measure,
        "estimates.csv",
        File,
        Released,
        UnlessSeedKnown,
        "each agent's estimate; on a ring with `release = \"last\"` it is for the last holder alone",
    ),
    one(
        Measure,
        "pairs.csv",
        File,
        PublicFacts,
        Yes,
        "what each learns of each, where a guarantee is by pairs: from graph and noise",
    ),
    one(Measure, "metrics.csv", File, ExactData, No, "counters and errors over time"),
    one(Measure, "ledger.jsonl", File, PublicFacts, Yes, "charges: they follow from the plan and m_i"),
    one(Measure, "summary.json", File, ExactData, No, "the estimate, the exact value and the error"),
    one(Measure, "report.html", File, ExactData, No, "the same figures, errors over time"),
    one(Measure, "plots", Folder, ExactData, No, "the report's pictures"),
    one(Measure, "task.toml", File, PublicFacts, Yes, "the task, paths on this machine, the seed"),
    one(Measure, "standard output", Console, ExactData, No, "the estimate, the exact value and the error"),
    one(Measure, "standard error", Console, ExactData, No, "progress with the error, warnings"),
    one(Measure, "exit code", Console, PublicFacts, Yes, "0, or 2 for a mistake in task or files"),
    one(Network, "models.csv", File, Released, Yes, "what peers told last"),
    one(Network, "model.csv", File, Released, Yes, "the model, where all learn one"),
    one(Network, "estimates.csv", File, Released, Yes, "each peer's estimate, where a statistic is measured"),
    one(
        Network,
        "pairs.csv",
        File,
        PublicFacts,
        Yes,
        "what each learns of each, where a guarantee is by pairs: from graph and noise",
    ),
    one(Network, "edges.csv", File, Released, Yes, "the learned graph, from released models and noisy losses"),
    one(Network, "metrics.csv", File, Released, Yes, "counters over time; no objective, no score"),
    one(Network, "ledger.jsonl", File, PublicFacts, Yes, "charges: they follow from the plan and m_i"),
    one(Network, "summary.json", File, Released, Yes, "counters, epsilon, and a digest of the other files here"),
    one(Network, "report.html", File, Released, Yes, "the same figures, the graph; no score, no loss"),
    one(Network, "plots", Folder, Released, Yes, "the report's pictures"),
    one(Network, "task.toml", File, PublicFacts, Yes, "the task, with points-max from m_i, paths on this machine"),
    one(Network, "peers", Folder, ExactData, No, "each peer's folder, and the task that all read"),
    one(Network, "standard output", Console, Released, Yes, "the plan, counters, epsilon"),
    one(Network, "standard error", Console, Released, Yes, "progress by counters, warnings"),
    one(Network, "exit code", Console, PublicFacts, Yes, "0, or 2 for a mistake in task or files"),
    one(NetworkRevealed, "models.csv", File, Released, Yes, "what peers told last"),
    one(NetworkRevealed, "model.csv", File, Released, Yes, "the model, where all learn one"),
    one(NetworkRevealed, "home.csv", File, ExactData, No, "home models"),
    one(NetworkRevealed, "edges.csv", File, Released, Yes, "the learned graph"),
    one(NetworkRevealed, "metrics.csv", File, ExactData, No, "counters; objective and score at the end"),
    one(NetworkRevealed, "ledger.jsonl", File, PublicFacts, Yes, "charges"),
    one(NetworkRevealed, "summary.json", File, ExactData, No, "objective and scores; its digest holds no data"),
    one(NetworkRevealed, "report.html", File, ExactData, No, "objective, scores, losses"),
    one(NetworkRevealed, "plots", Folder, ExactData, No, "the report's pictures"),
    one(NetworkRevealed, "task.toml", File, PublicFacts, Yes, "the task"),
    one(NetworkRevealed, "peers", Folder, ExactData, No, "each peer's folder"),
    one(NetworkRevealed, "standard output", Console, ExactData, No, "scores"),
    one(NetworkRevealed, "standard error", Console, Released, Yes, "progress by counters, warnings"),
    one(NetworkRevealed, "exit code", Console, PublicFacts, Yes, "0, or 2 for a mistake in task or files"),
    one(Peer, "card.toml", File, PublicFacts, Yes, "name, key and addresses, made to be given away"),
    one(Peer, "peer.toml", File, PublicFacts, No, "the same of this peer and its neighbours, and where its data lie"),
    one(Peer, "peer.key", File, Secret, No, "the secret key"),
    one(Peer, "admin.json", File, Secret, No, "address and token of a running peer"),
    one(Peer, "data.csv", File, ExactData, No, "the agent's points, where `network` put them"),
    one(Peer, "test.csv", File, ExactData, No, "its test points"),
    one(Peer, "store", Folder, ExactData, No, "ledger, released values, and a digest of the data, to know them again"),
    one(
        Peer,
        "sottovoce-budget",
        Folder,
        ExactData,
        No,
        "the odometer, beside the data: hashes of ids, numbers of rows, and the key of the hashes",
    ),
    one(Peer, "home.csv", File, ExactData, No, "the home model, written when the peer ends"),
    one(
        Peer,
        "log.txt",
        File,
        Released,
        No,
        "what `peer start` logs to standard error: counters, neighbours, addresses; a line that refuses a file may quote it",
    ),
    one(
        Peer,
        "messages",
        Console,
        Released,
        Yes,
        "hello, posts, letters, answers; see THREATS.md for what is in them uncharged",
    ),
    one(Peer, "GET /metrics", Console, Released, Yes, "counters and epsilon, for users of this machine"),
    one(
        Peer,
        "peer status",
        Console,
        ExactData,
        No,
        "counters, charges, neighbours, addresses, the last change of the model; what its source has spent, by rows of each id",
    ),
    one(Peer, "peer ledger", Console, PublicFacts, Yes, "charges, signed by the peer"),
    one(
        Peer,
        "peer predict",
        Console,
        ExactData,
        No,
        "labels and rounded values of the home model; rounding is no protection",
    ),
    one(Peer, "peer predict --broadcast", Console, Released, Yes, "predictions of what was sent"),
    one(
        Peer,
        "exit code",
        Console,
        PublicFacts,
        Yes,
        "of `peer start`: 0, or 2 for a mistake in files, a store or a budget",
    ),
    one(
        Peer,
        "list of processes",
        Console,
        PublicFacts,
        Yes,
        "words of the command, for users of this machine: paths, and where `network` charged its peers the random name of the charge",
    ),
    one(
        Others,
        "train --dry-run, measure --dry-run",
        Console,
        PublicFacts,
        Yes,
        "what would run: names, sizes, the plan",
    ),
    one(Others, "privacy plan", Console, PublicFacts, Yes, "what can be hoped for, from the task, m_i and the graph"),
    one(Others, "privacy epsilon, privacy noise", Console, PublicFacts, Yes, "arithmetic of budgets and ledgers"),
    one(
        Others,
        "privacy budget",
        Console,
        ExactData,
        No,
        "what a source has spent: numbers of tasks, of records by their ids, and of rows of each id",
    ),
    one(Others, "data FILE, data check", Console, ExactData, No, "what is in a file, and what of it was moved"),
    one(
        Others,
        "audit",
        Console,
        ExactData,
        No,
        "bounds from simulations on the task's own data; its copies of them are for its user alone, and are removed",
    ),
    one(Others, "peer init, add, remove, stop", Console, PublicFacts, Yes, "names, keys, addresses, the task's digest"),
];

/// The files and folders that a command writes.
pub fn names(command: Command) -> Vec<&'static str> {
    ALL.iter().filter(|one| one.command == command && one.kind != Console).map(|one| one.name).collect()
}

/// The entry of a file, a folder or a word.
pub fn find(command: Command, name: &str) -> Option<&'static Artefact> {
    ALL.iter().find(|one| one.command == command && one.name == name)
}

impl MadeOf {
    /// As the document says it.
    pub fn in_words(self) -> &'static str {
        match self {
            PublicFacts => "public facts",
            Released => "released values",
            ExactData => "**exact data**",
            Secret => "**a secret**",
        }
    }
}

impl Shown {
    /// As the document says it.
    pub fn in_words(self) -> &'static str {
        match self {
            Yes => "yes",
            UnlessSeedKnown => "not with the seed",
            No => "**no**",
        }
    }
}

/// The table of a command, as the document has it.
pub fn markdown(command: Command) -> String {
    let mut text = String::from("| artefact | made of | may be shown | what |\n|---|---|---|---|\n");
    for Artefact { name, made_of, shown, what, .. } in ALL.iter().filter(|one| one.command == command) {
        text += &format!("| `{name}` | {} | {} | {what} |\n", made_of.in_words(), shown.in_words());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_made_of_exact_data_or_a_secret_may_be_shown() {
        for artefact in ALL {
            let keep = matches!(artefact.made_of, ExactData | Secret);
            assert!(!keep || artefact.shown == No, "{artefact:?}");
            let twice = ALL.iter().filter(|other| (other.command, other.name) == (artefact.command, artefact.name));
            assert_eq!(twice.count(), 1, "{artefact:?}");
        }
    }

    #[test]
    fn the_document_holds_the_table_of_each_command() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-directory.md");
        let page = std::fs::read_to_string(page).expect("docs/run-directory.md");
        for command in [Train, Measure, Network, NetworkRevealed, Peer, Others] {
            let table = markdown(command);
            assert!(page.contains(&table), "docs/run-directory.md should hold, of {command:?}:\n{table}");
        }
    }
}
