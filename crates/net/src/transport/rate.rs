//! How often: token buckets for what peers may do, and the growing pauses between dials.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use tokio::time::Instant;

/// A bucket that fills at a steady rate up to its depth. Each action takes one token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tokens: f64,
    depth: f64,
    per_second: f64,
    at: Instant,
}

impl Bucket {
    pub(super) fn full(per_second: f64, depth: f64, now: Instant) -> Self {
        Self { tokens: depth, depth, per_second, at: now }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.depth);
        self.at = now;
    }

    /// Takes this many tokens, or takes none and says no.
    pub(super) fn take(&mut self, tokens: f64, now: Instant) -> bool {
        self.refill(now);
        let enough = self.tokens >= tokens;
        if enough {
            self.tokens -= tokens;
        }
        enough
    }

    pub(super) fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.tokens >= self.depth
    }
}

/// The first pause before a dial is repeated.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// No pause is longer.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The pause after this many failures in a row: doubling, bounded, and shortened by up to a half at random, so that
/// peers that lost each other at the same moment do not dial at the same moment.
pub(super) fn pause(failures: u32) -> Duration {
    let longest = PAUSE_FIRST.saturating_mul(1_u32 << failures.min(16)).min(PAUSE_MAX);
    // A new `RandomState` has new keys; its hash of anything is a random number.
    let random = (RandomState::new().hash_one(failures) >> 11) as f64 / (1_u64 << 53) as f64;
    longest.mul_f64(1.0 - random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_depth_at_once_and_then_its_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::full(10.0, 5.0, start);
        let taken = (0..100).filter(|_| bucket.take(1.0, start)).count();
        assert_eq!(taken, 5);
        let mut taken = 0;
        for tick in 1..=200 {
            taken += u32::from(bucket.take(1.0, start + Duration::from_millis(10 * tick)));
        }
        assert!((19..=20).contains(&taken), "{taken} in two seconds at ten per second");
        assert!(!bucket.is_full(start + Duration::from_secs(2)));
        assert!(bucket.is_full(start + Duration::from_secs(3)));
        // Time that stands still or runs back adds nothing.
        assert!(bucket.take(5.0, start + Duration::from_secs(3)) && !bucket.take(1.0, start));
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        for failures in 0..100 {
            let longest = Duration::from_millis(50).saturating_mul(1 << failures.min(20)).min(PAUSE_MAX);
            let pause = pause(failures);
            assert!(pause <= longest && pause >= longest / 2, "{failures}: {pause:?}");
        }
        assert_ne!(pause(5), pause(5));
    }
}
