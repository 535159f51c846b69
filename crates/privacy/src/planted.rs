//! Mistakes that tests make on purpose, to see that they are found.
//!
//! Each place where a mistake would break privacy asks [`planted`] whether a test has planted it. Without the feature
//! `planted-bugs`, which only tests turn on, the answer is a constant `false` and the question costs nothing.

/// A mistake that breaks privacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The first coordinate gets no noise.
    NoNoiseOnOneCoordinate,
    /// Noise of half the scale.
    ScaleHalved,
    /// A sensitivity without the factor 2 of replacing a record.
    SensitivityWithoutFactorTwo,
    /// A step size from the measured smoothness of the data.
    StepSizeFromData,
    /// The last release again, with fresh noise, at no charge.
    FreshNoiseOnResend,
    /// The second release is not charged.
    UnchargedSecondRelease,
    /// Gradients are not clipped before the noise; the noisy mean is, after it.
    ClipAfterNoise,
    /// A slope that is no number goes into the sum.
    NanPoisoning,
    /// All agents draw the same noise.
    SeedReuse,
    /// One budget for the run: what one agent is charged for, the others do for free.
    BudgetPerRun,
    /// Labels are centred by the agent's own mean.
    CentringByOwnMean,
    /// An agent whose gradient is small stops early.
    StopWhenConverged,
    /// Models start at the local ones.
    LocalStart,
    /// The gradient is taken at the exact iterate, kept beside the noisy one, and the exact one is sent.
    ExactIterate,
}

#[cfg(not(feature = "planted-bugs"))]
mod switch {
    /// Whether a test has planted this mistake: never, here.
    #[inline(always)]
    pub const fn planted(_bug: super::Bug) -> bool {
        false
    }
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Whether a test has planted this mistake on this thread.
    pub fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    /// Runs `work` on this thread with a mistake planted.
    pub fn with_planted<T>(bug: Bug, work: impl FnOnce() -> T) -> T {
        struct Weed;
        impl Drop for Weed {
            fn drop(&mut self) {
                PLANTED.set(None);
            }
        }
        let _weed = Weed;
        PLANTED.set(Some(bug));
        work()
    }
}

pub use switch::*;
