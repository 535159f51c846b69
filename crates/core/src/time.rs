//! Time, in mean wake intervals.

/// A moment, or a span, in mean wake intervals of one agent: at time 10 every agent has woken ten times on
/// average. In a simulation this is the parallel time of the papers (ticks divided by agents).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Time(pub f64);

impl Time {
    /// This moment plus a span.
    pub fn after(self, span: Time) -> Time {
        Time(self.0 + span.0)
    }
}
