//! Pictures from plain numbers: a small scene of marks, written as SVG for screens and rasterized as PNG for papers.
//!
//! A [`Scene`] is a list of marks with colours that are named by their role ([`Ink`]). The same scene becomes an SVG
//! string and PNG bytes, so that both show the same picture. In SVG every mark carries its light colour as an attribute
//! and its role as a class: the file alone prints as it is, and a page that includes [`dark_style`] shows it in dark.
//!
//! Everything here is a pure function: the same numbers give the same bytes.

mod axis;
mod chart;
mod layout;
pub mod number;
mod raster;
mod scene;
mod seriation;

pub use axis::{Axis, Tick};
pub(crate) use chart::shortened;
pub use chart::{Chart, Dot, Stroke};
pub use layout::{layout, neighbourhood};
pub use raster::text_width;
pub use scene::{Anchor, GAIN_STEPS, Ink, Mark, SERIES, Scene, dark_style, escape};
pub use seriation::seriation;
