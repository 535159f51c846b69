//! What pads and proofs cost on this machine: bytes, milliseconds, and ratios in one run.
//!
//! `cargo run --release --package sottovoce-crypto --example costs`

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use sottovoce_crypto::{
    Context,
    commitment::Opening,
    contribution::{Contribution, ContributionBatch, Draft, Promise, Rules},
    generators::Generators,
    pad::{Direction, PairSecret, Sign},
    proofs::{
        antisymmetry,
        bit::BitProof,
        link::LinkProof,
        noise::{Beacon, NoiseLaw},
        opening::OpeningProof,
        sum::SumProof,
        value::{ValueProof, ValueRange},
    },
};
use std::{hint::black_box, time::Instant};

const BEACON: Beacon = Beacon([9; 32]);

fn context(sender: usize) -> Context {
    let mut name = [0; 32];
    name[..8].copy_from_slice(&(sender as u64).to_le_bytes());
    Context { task: [1; 32], round: 1, sender: name, board: [2; 32] }
}

/// The best of a few runs, in milliseconds.
fn milliseconds(runs: usize, mut work: impl FnMut()) -> f64 {
    let once = |()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    [(); 64].into_iter().take(runs).map(once).fold(f64::INFINITY, f64::min)
}

/// Keeps the compiler from leaving out what nobody reads.
fn keep<T>(result: T) {
    let _ = black_box(result);
}

/// Expansion of pads beside copying memory, for a vector that fits the cache and one that does not.
fn pads() {
    println!("pads in Z_2^64 (expand and add), one core");
    println!("{:>12} {:>10} {:>12} {:>14}", "numbers", "GB/s", "memcpy GB/s", "ns per stream");
    for numbers in [1_usize, 1_000, 1_000_000] {
        let repeats = (4_000_000 / numbers).clamp(4, 200_000);
        let (mut values, source) = (vec![1_u64; numbers], vec![2_u64; numbers]);
        let mut secret = PairSecret::from_bytes(&[3; 32], Sign::Adds, 0);
        let mut round = 0;
        let expand = milliseconds(5, || {
            for _ in 0..repeats {
                let stream = secret.stream(round, Direction::FromSmaller).expect("rounds go forward");
                black_box(stream.mask(&mut values).expect("few"));
                round += 1;
            }
        });
        let copy = milliseconds(5, || {
            for _ in 0..repeats {
                black_box(&mut values).copy_from_slice(black_box(&source));
            }
        });
        let gigabytes = (numbers * 8 * repeats) as f64 / 1e9;
        println!(
            "{numbers:>12} {:>10.2} {:>12.2} {:>14.0}",
            gigabytes / (expand / 1e3),
            gigabytes / (copy / 1e3),
            expand * 1e6 / repeats as f64
        );
    }
}

fn row(name: &str, bytes: usize, prove: f64, verify: f64) {
    println!("{name:<44} {bytes:>8} {prove:>10.3} {verify:>10.3}");
}

fn single_proofs() {
    println!("\n{:<44} {:>8} {:>10} {:>10}", "proof, by itself", "bytes", "prove ms", "verify ms");
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let here = context(0);
    let generators = Generators::new(1000, 0);
    let openings: Vec<Opening> = (0..22).map(|i| Opening::of_integer(i, &mut rng)).collect();
    let lent: Vec<&Opening> = openings.iter().collect();
    let commitments: Vec<_> = openings.iter().map(|opening| opening.commit(&generators).expect("one")).collect();
    let commit = milliseconds(20, || keep(openings[0].commit(&generators)));
    row("commitment to one number", 32, commit, 0.0);

    let mut prove = || OpeningProof::prove(&commitments, &lent, &generators, &here, &mut rng).expect("lengths");
    let (proof, time) = (prove(), milliseconds(20, || keep(prove())));
    let verify = milliseconds(20, || proof.verify(&commitments, &generators, &here).expect("true"));
    row("openings of 22 commitments", proof.to_bytes().len(), time, verify);

    let sum = Opening::sum(&openings).expect("one dimension");
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut prove = || SumProof::prove(&commitments, sum.values(), sum.blinding(), &here, &mut rng).expect("lengths");
    let (proof, time) = (prove(), milliseconds(20, || keep(prove())));
    let verify = milliseconds(20, || proof.verify(&commitments, sum.values(), &generators, &here).expect("true"));
    row("sum relation of 22 commitments (4.4)", SumProof::BYTES, time, verify);

    let verify = milliseconds(20, || keep(antisymmetry::verify(&commitments[0], &commitments[1])));
    row("antisymmetry of an edge (4.5)", 0, 0.0, verify);

    let mut prove = || BitProof::prove(1.into(), sum.blinding(), &here, &mut rng);
    let ((commitment, proof), time) = (prove(), milliseconds(20, || keep(prove())));
    let verify = milliseconds(20, || proof.verify(&commitment, &generators, &here).expect("true"));
    row("bit", BitProof::BYTES, time, verify);

    for (high, name) in [(1000, "value in 0 to 1000 (4.7)"), (1 << 32, "value in 0 to 2^32 (4.7)")] {
        let range = ValueRange::new(0, high, 1).expect("a range");
        let mut prove =
            || ValueProof::prove(&range, &commitments[5..6], &lent[5..6], &here, &mut rng).expect("in range");
        let (proof, time) = (prove(), milliseconds(10, || keep(prove())));
        let verify = milliseconds(10, || proof.verify(&range, &commitments[5..6], &here).expect("true"));
        row(name, proof.to_bytes().len(), time, verify);
    }

    let numbers: Vec<i64> = (0..1000).collect();
    let vector = Opening::of_integers(&numbers, &mut rng);
    let time = milliseconds(5, || keep(vector.commit(&generators)));
    row("commitment to a vector of 1000", 32, time, 0.0);
    let commitment = vector.commit(&generators).expect("a thousand");
    let openings: Vec<Opening> = numbers.iter().map(|number| Opening::of_integer(*number, &mut rng)).collect();
    let lent: Vec<&Opening> = openings.iter().collect();
    let coordinates: Vec<_> = openings.iter().map(|opening| opening.commit(&generators).expect("one")).collect();
    let mut prove = || {
        LinkProof::prove((&commitment, &vector), (&coordinates, &lent), &generators, &here, &mut rng).expect("lengths")
    };
    let (proof, time) = (prove(), milliseconds(5, || keep(prove())));
    let verify = milliseconds(5, || proof.verify(&commitment, &coordinates, &generators, &here).expect("true"));
    row("link of a vector of 1000 to its coordinates", proof.to_bytes().len(), time, verify);
}

fn masks(degree: usize, rng: &mut ChaCha20Rng) -> Vec<Opening> {
    (0..degree).map(|_| Opening::of_integer(7, rng)).collect()
}

/// All proofs of a member with 20 neighbours, by itself and in a batch of 100.
fn members() {
    println!("\na member with 20 neighbours: all proofs of its contribution");
    println!(
        "{:>6} {:>10} {:>10} {:>12} {:>10} {:>10} {:>10} {:>18}",
        "bits", "promise B", "proofs B", "promise ms", "prove ms", "read ms", "verify ms", "in a batch of 100"
    );
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for bits in [64, 256, 1024] {
        let rules = Rules::new(0, 1000, NoiseLaw::new(bits).expect("even")).expect("a range");
        let mut all: Vec<(Promise, Contribution)> = Vec::new();
        let (mut promise_time, mut prove_time) = (f64::INFINITY, f64::INFINITY);
        for member in 0..if bits == 1024 { 20 } else { 100 } {
            let masks = masks(20, &mut rng);
            let start = Instant::now();
            let draft = Draft::new(&rules, member as i64, masks, &mut rng).expect("in range");
            promise_time = promise_time.min(start.elapsed().as_secs_f64() * 1e3);
            let promise = draft.promise().clone();
            let start = Instant::now();
            let contribution = draft.finish(&rules, &BEACON, &context(member), &mut rng).expect("in range");
            prove_time = prove_time.min(start.elapsed().as_secs_f64() * 1e3);
            all.push((promise, contribution));
        }
        let entry = (all[0].0.to_bytes(), all[0].1.to_bytes());
        let read = milliseconds(20, || {
            keep((Promise::from_bytes(&entry.0), Contribution::from_bytes(&entry.1, &rules)));
        });
        let verify = milliseconds(5, || all[0].1.verify(&rules, &all[0].0, &BEACON, &context(0)).expect("honest"));
        let batch_time = milliseconds(3, || {
            let mut batch = ContributionBatch::new(&rules);
            for member in 0..100 {
                // With 1024 bits, 20 contributions five times over: proving all hundred would take longer than all the rest.
                let (promise, contribution) = &all[member % all.len()];
                batch.member(member);
                contribution.verify_in(promise, &BEACON, &context(member % all.len()), &mut batch).expect("lengths");
            }
            batch.finish(&mut rng).expect("all honest");
        });
        let (promise, contribution) = (entry.0.len(), entry.1.len());
        println!(
            "{bits:>6} {promise:>10} {contribution:>10} {promise_time:>12.2} {prove_time:>10.2} {read:>10.2} {verify:>10.2} {:>10.2} ms each",
            batch_time / 100.0
        );
    }
}

fn main() {
    pads();
    single_proofs();
    members();
}
