//! Task files, data, metrics, run directories and reports: everything between a user's files and a run.

pub mod audit;
pub mod baselines;
pub mod data;
pub mod describe;
pub mod error;
pub mod folder;
pub mod generate;
pub mod graph;
pub mod keys;
pub mod learned;
pub mod ledger_file;
pub mod load;
pub mod movielens;
pub mod outlook;
pub mod peer;
pub mod plot;
pub mod private;
pub mod registry;
pub mod report;
pub mod reproduce;
pub mod rows;
pub mod run_folder;
pub mod score;
pub mod sweep;
pub mod task;
pub mod train;
