//! Figures of the thesis, chapter by chapter.

pub mod figure_4_1;
