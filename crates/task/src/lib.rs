//! Tasks, and what they name: files of points and graphs, read, checked and resolved into a problem that is ready to run.
//!
//! | step | where |
//! |---|---|
//! | the keys of a task file, and their table | [`keys`] |
//! | a task: typed, checked, defaults filled in | [`task`] |
//! | every algorithm, described once | [`algorithms`] |
//! | reading a task by these two tables | [`read`] |
//! | the files that a task names, on disk or in memory | [`input`] |
//! | rows of points, of exact and of private tasks | [`rows`], [`private_rows`], [`columns`], [`data`] |
//! | edges, and what is known of a graph that is learned | [`graph`], [`known`] |
//! | the releases of a private task | [`plan`] |
//! | all of it | [`load`], [`loaded`], [`boosted`] |
//! | invented tasks | [`generate`], into a [`folder`] |
//! | what a file of points holds | [`describe`] |
//! | a user's mistake, in one line | [`error`] |

pub mod algorithms;
pub mod boosted;
pub mod columns;
pub mod data;
pub mod describe;
pub mod error;
pub mod folder;
pub mod generate;
pub mod graph;
pub mod input;
pub mod keys;
pub mod known;
pub mod load;
pub mod loaded;
pub mod plan;
pub mod private_rows;
pub mod read;
pub mod rows;
pub mod task;
