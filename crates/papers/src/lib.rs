//! The papers' figures and tables, made again and held against what the papers say.
//!
//! [`reproduce`] is the list of experiments. Two of them are large enough to have folders of their own: [`movielens`] (table 1 of the 2018
//! paper) and [`thesis_table`] (table 2.1 of the thesis). All of them share one pool of [`workers`].

mod housing;
pub mod movielens;
pub mod reproduce;
mod svmguide3;
pub mod thesis_table;
pub mod workers;
