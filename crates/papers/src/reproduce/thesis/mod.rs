//! Figures of the thesis, chapter by chapter.

pub mod figure_3_4;
pub mod figure_4_1;
pub mod table_4_1;
