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
    /// One budget for the run instead of one for each agent: each spends what all may spend together.
    BudgetPerRun,
    /// Labels are centred by the agent's own mean.
    CentringByOwnMean,
    /// An agent whose gradient is small stops early.
    StopWhenConverged,
    /// Models start at the local ones.
    LocalStart,
    /// The exact gradient moves the iterate, and the exact iterate is sent.
    ExactIterate,
    /// Gradients are clipped in L2 where the mechanism measures in L1.
    WrongNorm,
    /// Points are not held to the bound that a warm start's sensitivity takes for granted.
    WarmStartOfAnyPoint,
    /// Losses are not cut to their bound before they are averaged.
    UnboundedLoss,
    /// The loss is released again and again in one turn of the graph, at no charge.
    LossTwiceInATurn,
    /// The graph is learned from local models, which nobody has charged for.
    GraphOfLocalModels,
    /// The loss leaves as it is.
    ExactLoss,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 20] = [
        Bug::NoNoiseOnOneCoordinate,
        Bug::ScaleHalved,
        Bug::SensitivityWithoutFactorTwo,
        Bug::StepSizeFromData,
        Bug::FreshNoiseOnResend,
        Bug::UnchargedSecondRelease,
        Bug::ClipAfterNoise,
        Bug::NanPoisoning,
        Bug::SeedReuse,
        Bug::BudgetPerRun,
        Bug::CentringByOwnMean,
        Bug::StopWhenConverged,
        Bug::LocalStart,
        Bug::ExactIterate,
        Bug::WrongNorm,
        Bug::WarmStartOfAnyPoint,
        Bug::UnboundedLoss,
        Bug::LossTwiceInATurn,
        Bug::GraphOfLocalModels,
        Bug::ExactLoss,
    ];
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
