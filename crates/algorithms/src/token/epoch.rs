//! Which of several tokens counts.
//!
//! A holder whose successor is gone issues its token again, past that one, under a higher epoch. Nobody shares a clock, so the old token may live on for a while, and two
//! holders may issue one each. Epochs are in one order for everyone, a member refuses a token below the highest that it has held, and of several tokens one goes on.

use serde::{Deserialize, Serialize};

/// Which of several tokens counts: the one with the highest. Of those that were issued again equally often, the one that is further ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Epoch {
    /// How often a token was issued again.
    pub count: u32,
    /// The hop that was left out for it.
    pub hop: u64,
    /// By whom.
    pub issuer: u32,
}

impl Epoch {
    /// The epoch of a token that a member issues past this hop, above all that it has seen.
    pub fn next(self, hop: u64, issuer: u32) -> Epoch {
        Epoch { count: self.count.saturating_add(1), hop, issuer }
    }

    /// Whether a token with so many hops and members can have it: each hop is left out at most once for each time that it is held, and it is held at most once for
    /// each member.
    pub fn is_possible(&self, hops: u64, members: u32) -> bool {
        let most = hops.saturating_mul(u64::from(members));
        u64::from(self.count) <= most && self.is_within(hops, members)
    }

    /// The same where a hop may be left out any number of times.
    pub fn is_within(&self, hops: u64, members: u32) -> bool {
        match self.count {
            0 => *self == Epoch::default(),
            _ => (1..=hops).contains(&self.hop) && self.issuer < members,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_tokens_the_one_issued_more_often_counts_and_then_the_one_further_ahead() {
        let first = Epoch::default();
        let (near, far) = (first.next(3, 9), first.next(4, 1));
        assert!(first < near && near < far && far < near.next(2, 0));
    }

    #[test]
    fn an_epoch_that_no_token_can_have_is_known() {
        let possible = |count, hop, issuer| Epoch { count, hop, issuer }.is_possible(12, 4);
        assert!(possible(0, 0, 0) && possible(1, 12, 3) && possible(48, 1, 0));
        assert!(!possible(0, 1, 0) && !possible(0, 0, 1) && !possible(49, 1, 0) && !possible(1, 13, 0));
        assert!(!possible(1, 0, 0) && !possible(1, 1, 4) && !possible(u32::MAX, 1, 0));
        let within = |count, hop, issuer| Epoch { count, hop, issuer }.is_within(12, 4);
        assert!(within(0, 0, 0) && within(u32::MAX, 1, 0) && !within(0, 1, 0) && !within(1, 13, 0) && !within(1, 1, 4));
    }
}
