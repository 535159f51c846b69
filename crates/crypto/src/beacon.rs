//! Randomness that all members make together: each commits, and when all commitments are known each reveals.
//!
//! ```text
//! c_u = H(round, u, s_u) with s_u of 256 random bits;     beacon = H(round, public facts, s_1, .., s_n)
//! ```
//!
//! **Guarantee**, hashes being random oracles: whoever has seen all commitments before it reveals, and finds that what is revealed fits them, knows that the beacon is
//! uniform if one member's bits are. **Not guaranteed**: that there is a beacon. Who does not like what it would be can keep its secret back; a
//! round without it is a fresh draw, so each member that is given up has a choice of one from two.

use crate::transcript::{Context, Transcript};

/// What a member has drawn.
pub type BeaconSecret = [u8; 32];

/// What a member says before it reveals. The context's sender is this member.
pub fn commit(context: &Context, secret: &BeaconSecret) -> [u8; 32] {
    let mut transcript = Transcript::new("beacon commitment", context);
    transcript.append("secret", secret);
    half(&transcript)
}

/// The beacon: of all secrets in their order, and of what else all must have heard alike. The context's sender is whoever collects.
pub fn beacon<'s>(
    context: &Context,
    public: &[u8],
    secrets: impl ExactSizeIterator<Item = &'s BeaconSecret>,
) -> [u8; 32] {
    let mut transcript = Transcript::new("beacon", context);
    transcript.append("public", public);
    transcript.append_number("members", secrets.len() as u64);
    secrets.for_each(|secret| transcript.append("secret", secret));
    half(&transcript)
}

fn half(transcript: &Transcript) -> [u8; 32] {
    let digest = transcript.digest();
    let (halves, _) = digest.as_chunks::<32>();
    halves[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_what_is_committed_to_counts() {
        let context = Context { task: [1; 32], round: 2, sender: [3; 32], board: [4; 32] };
        let (mine, other) = (commit(&context, &[5; 32]), commit(&context, &[6; 32]));
        assert_ne!(mine, other);
        assert_ne!(mine, commit(&Context { round: 3, ..context }, &[5; 32]), "of another round");
        assert_ne!(mine, commit(&Context { sender: [4; 32], ..context }, &[5; 32]), "of another member");
        let both = [[5; 32], [6; 32]];
        let value = beacon(&context, b"public", both.iter());
        assert_ne!(value, beacon(&context, b"public", both.iter().rev().collect::<Vec<_>>().into_iter()));
        assert_ne!(value, beacon(&context, b"other", both.iter()));
        assert_ne!(value, beacon(&context, b"public", both[..1].iter()));
        assert_ne!(value, commit(&context, &[5; 32]));
    }
}
