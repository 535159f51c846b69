//! From a loaded task to a run directory: algorithms and their runs, scores, what may be told, one peer's part, audits.
//!
//! | step | where |
//! |---|---|
//! | all of a run in the simulator, for commands and other programs | [`pipeline`] |
//! | what a private task and a learned graph add | [`private`], [`learned`] |
//! | one run in the simulator, and what it is compared with | [`simulate`], [`train`], [`measure`], [`one_model`], [`score`], [`baselines`], [`sweep`] |
//! | what is known before a run | [`outlook`], [`budget`] |
//! | what may be told of a run, and what it leaves | [`facts`], [`artefacts`], [`run_folder`], [`ledger_file`], [`epsilon`], [`pairs`] |
//! | one agent of a task on a real network | [`peer`] |
//! | whether all of it keeps what it promises | [`audit`] |

pub mod artefacts;
pub mod audit;
pub mod baselines;
pub mod budget;
pub mod epsilon;
pub mod facts;
pub mod learned;
pub mod ledger_file;
pub mod measure;
pub mod one_model;
pub mod outlook;
pub mod pairs;
pub mod peer;
pub mod pipeline;
pub mod private;
pub mod run_folder;
pub mod score;
pub mod simulate;
pub mod sweep;
pub mod train;
