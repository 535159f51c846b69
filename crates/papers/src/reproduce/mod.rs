//! The figures and tables of the papers, run again, each with what the paper says beside what we find.
//!
//! An [`Experiment`] is a file that turns parameters into an [`ExperimentOutcome`], a TOML file with its parameters and seeds in the folder of its paper,
//! and one line of [`EXPERIMENTS`]. What is expected of its claims is in the paper's `expected.toml`.

mod bench;
mod calibration;
mod figure_1;
mod figure_2ab;
mod figure_2c;
mod figure_3;
mod figure_4;
mod folder;
mod hinge;
mod linear;
mod moons;
mod not_dp;
mod outcome;
mod page;
mod picture;
mod polar;
mod results;
mod sound;
mod table_1;
mod table_2_1;
mod thesis;
mod tuning;
mod verdict;

pub use bench::{Bench, Settings, Watch, parameters};
pub use folder::{all_in, run_one};
pub use outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
pub use results::{Report, Results};
pub use verdict::{Expected, Judged, Verdict, judge};

use sottovoce_run::train::Halt;
use std::path::{Path, PathBuf};

/// One figure or table.
pub struct Experiment {
    /// On the command line.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Whose claims it checks.
    pub paper: &'static Paper,
    /// Its parameters and seeds.
    pub toml: &'static str,
    /// The folders of the data sets that it needs, below the one for data sets.
    pub data: &'static [&'static str],
    /// Runs it.
    pub run: fn(&mut Bench<'_>) -> Result<ExperimentOutcome, Halt>,
}

/// A paper.
pub struct Paper {
    /// Its folder below `papers`.
    pub folder: &'static str,
    /// Who wrote it, and when.
    pub title: &'static str,
    /// What is expected of its claims.
    pub expected: &'static str,
}

static AISTATS_2018: Paper = Paper {
    folder: "2018-aistats",
    title: "Bellet, Guerraoui, Taziki, Tommasi: Personalized and Private Peer-to-Peer Machine Learning (AISTATS 2018)",
    expected: include_str!("../../../../papers/2018-aistats/expected.toml"),
};

static SLIDES: Paper = Paper {
    folder: "slides",
    title: "Bellet: Privacy-Preserving Algorithms for Decentralized Collaborative Machine Learning (slides, 2018)",
    expected: include_str!("../../../../papers/slides/expected.toml"),
};

static THESIS_2: Paper = Paper {
    folder: "thesis-chapter-2",
    title: "Bellet: Contributions to Decentralized and Privacy-Preserving Machine Learning (thesis, 2021), chapter 2",
    expected: include_str!("../../../../papers/thesis-chapter-2/expected.toml"),
};

static THESIS_3: Paper = Paper {
    folder: "thesis-chapter-3",
    title: "Bellet: Contributions to Decentralized and Privacy-Preserving Machine Learning (thesis, 2021), chapter 3",
    expected: include_str!("../../../../papers/thesis-chapter-3/expected.toml"),
};

static THESIS_4: Paper = Paper {
    folder: "thesis-chapter-4",
    title: "Bellet: Contributions to Decentralized and Privacy-Preserving Machine Learning (thesis, 2021), chapter 4",
    expected: include_str!("../../../../papers/thesis-chapter-4/expected.toml"),
};

static POLAR: Paper = Paper {
    folder: "2018-polar-sgd",
    title: "Gade, Vaidya: Privacy-Preserving Distributed Learning via Obfuscated Stochastic Gradients (CDC 2018)",
    expected: include_str!("../../../../papers/2018-polar-sgd/expected.toml"),
};

/// All experiments, in the order in which `all` runs them.
pub static EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "figure-1",
        title: "Coordinate descent against ADMM, without privacy",
        paper: &AISTATS_2018,
        toml: include_str!("../../../../papers/2018-aistats/figure-1.toml"),
        data: &[],
        run: figure_1::run,
    },
    Experiment {
        name: "figure-2a",
        title: "Private coordinate descent from a constant, by number of updates",
        paper: &AISTATS_2018,
        toml: include_str!("../../../../papers/2018-aistats/figure-2a.toml"),
        data: &[],
        run: figure_2ab::constant_start,
    },
    Experiment {
        name: "figure-2b",
        title: "The same from a private warm start",
        paper: &AISTATS_2018,
        toml: include_str!("../../../../papers/2018-aistats/figure-2b.toml"),
        data: &[],
        run: figure_2ab::warm_start,
    },
    Experiment {
        name: "figure-2c",
        title: "Accuracy by dimension and budget",
        paper: &AISTATS_2018,
        toml: include_str!("../../../../papers/2018-aistats/figure-2c.toml"),
        data: &[],
        run: figure_2c::run,
    },
    Experiment {
        name: "figure-3",
        title: "Accuracy by size of an agent's data set",
        paper: &AISTATS_2018,
        toml: include_str!("../../../../papers/2018-aistats/figure-3.toml"),
        data: &[],
        run: figure_3::run,
    },
    Experiment {
        name: "figure-4",
        title: "Local differential privacy: noisy copies of the data",
        paper: &AISTATS_2018,
        toml: include_str!("../../../../papers/2018-aistats/figure-4.toml"),
        data: &[],
        run: figure_4::run,
    },
    Experiment {
        name: "table-1",
        title: "MovieLens-100K, in the paper's setting and in a sound one",
        paper: &AISTATS_2018,
        toml: include_str!("../../../../papers/2018-aistats/table-1.toml"),
        data: &["movielens_100k"],
        run: table_1::run,
    },
    Experiment {
        name: "slides-hinge",
        title: "Model propagation against collaborative learning, hinge loss",
        paper: &SLIDES,
        toml: include_str!("../../../../papers/slides/slides-hinge.toml"),
        data: &[],
        run: hinge::run,
    },
    Experiment {
        name: "moons",
        title: "Boosting on moons, the graph being learned",
        paper: &THESIS_2,
        toml: include_str!("../../../../papers/thesis-chapter-2/moons.toml"),
        data: &[],
        run: moons::run,
    },
    Experiment {
        name: "table-2.1",
        title: "Personalized models and a learned graph on four real data sets",
        paper: &THESIS_2,
        toml: include_str!("../../../../papers/thesis-chapter-2/table-2.1.toml"),
        data: &["har", "vehicle", "computer_buyers", "school"],
        run: table_2_1::run,
    },
    Experiment {
        name: "figure-3.4",
        title: "The AUC of a score by gossip, on three graphs",
        paper: &THESIS_3,
        toml: include_str!("../../../../papers/thesis-chapter-3/figure-3.4.toml"),
        data: &["svmguide3"],
        run: thesis::figure_3_4::run,
    },
    Experiment {
        name: "figure-4.1",
        title: "Private SGD by a token, between a trusted curator and local differential privacy",
        paper: &THESIS_4,
        toml: include_str!("../../../../papers/thesis-chapter-4/figure-4.1.toml"),
        data: &["california_housing"],
        run: thesis::figure_4_1::run,
    },
    Experiment {
        name: "polar-figure-3",
        title: "POLAR-SGD by number of steps between two averages, in both readings of its weights",
        paper: &POLAR,
        toml: include_str!("../../../../papers/2018-polar-sgd/polar-figure-3.toml"),
        data: &[],
        run: polar::figure_3::run,
    },
    Experiment {
        name: "polar-privacy",
        title: "Not in the paper: noise that is charged, beside the paper's weights and vectors",
        paper: &POLAR,
        toml: include_str!("../../../../papers/2018-polar-sgd/polar-privacy.toml"),
        data: &[],
        run: polar::privacy::run,
    },
    Experiment {
        name: "table-4.1",
        title: "Masks and noise of private averages, by each reading of the theorem and exactly",
        paper: &THESIS_4,
        toml: include_str!("../../../../papers/thesis-chapter-4/table-4.1.toml"),
        data: &[],
        run: thesis::table_4_1::run,
    },
];

impl Experiment {
    /// The first folder that it needs and that is not there, below the one for data sets.
    pub fn missing(&self, data: &Path) -> Option<PathBuf> {
        self.data.iter().map(|folder| data.join(folder)).find(|folder| !folder.is_dir())
    }
}

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}
