//! Whether secrets can be told from time: the test of Reparaz, Balasch and Verbauwhede 2017 ("dudect"). Two classes of
//! secrets, one fixed and one random, in random order; if the mean times of the two differ, Welch's t grows with the
//! number of samples. Only in the long version: it takes minutes, and a quiet machine is better.

mod pair;

use pair::{build, session};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_crypto::two_party::{
    Session,
    base_transfer::{TransferSender, choose},
    evaluator::{Evaluated, EvaluatorOpening},
    garbler::{Garbled, Garbler},
    inputs::Inputs,
    kernel::{self, Larger},
    response::RandomizedResponse,
};
use std::{hint::black_box, time::Instant};

const SAMPLES: usize = 1_000_000;
/// Beyond this the two classes are told apart.
const T_MAX: f64 = 4.5;
const BITS: usize = 16;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Times in nanoseconds, of the fixed class and of the random one.
#[derive(Default)]
struct Times([Vec<f64>; 2]);

impl Times {
    /// Measures one run.
    fn measure<R>(&mut self, class: usize, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = black_box(work());
        self.0[class].push(start.elapsed().as_nanos() as f64);
        result
    }

    /// The largest |t| over several cuts: interrupts make long tails, which hide what happens below them.
    fn t(&self) -> f64 {
        let mut all: Vec<f64> = self.0.iter().flatten().copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        let cut = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
        [0.5, 0.75, 0.9, 0.99].map(|share| self.t_below(cut(share))).into_iter().fold(0.0, f64::max)
    }

    fn t_below(&self, cut: f64) -> f64 {
        let moments = |times: &Vec<f64>| {
            let kept: Vec<f64> = times.iter().copied().filter(|time| *time <= cut).collect();
            let count = kept.len() as f64;
            let mean = kept.iter().sum::<f64>() / count;
            (mean, kept.iter().map(|time| (time - mean) * (time - mean)).sum::<f64>() / (count - 1.0) / count)
        };
        let [(a, of_a), (b, of_b)] = [&self.0[0], &self.0[1]].map(moments);
        (a - b).abs() / (of_a + of_b).sqrt()
    }

    fn assert_constant(&self, name: &str) {
        let found = self.t();
        println!("{name}: |t| = {found:.2} over {} samples", self.0[0].len() + self.0[1].len());
        assert!(found < T_MAX, "{name}: |t| = {found}");
    }
}

/// The next class and the secret of it: zero, or random. Both are drawn, so that drawing takes the same time.
fn secret(rng: &mut ChaCha20Rng) -> (usize, u64) {
    let (class, random) = ((rng.next_u64() & 1) as usize, rng.next_u64() % (1 << BITS));
    (class, random * class as u64)
}

fn told() -> Session {
    session(build(|builder| {
        let larger = kernel::comparison(BITS, Larger::Garbler, builder);
        let told = RandomizedResponse::new(1.0, 2).expect("fine").answer(&larger, builder).expect("one bit");
        builder.output_number(&told);
    }))
}

/// The method itself finds what it must: a comparison that stops at the first difference.
#[test]
#[ignore = "a million samples: cargo xtask soak"]
fn a_comparison_that_stops_early_is_told_by_its_time() {
    let (mut rng, mut times, zeros) = (rng(1), Times::default(), [0_u8; 256]);
    for _ in 0..SAMPLES / 10 {
        let (class, _) = secret(&mut rng);
        let mut other = [0_u8; 256];
        other[3] = class as u8;
        times.measure(class, || black_box(&zeros).iter().zip(black_box(&other)).all(|(a, b)| a == b));
    }
    assert!(times.t() > T_MAX, "|t| = {}", times.t());
}

/// Everything that the two do with their numbers in a batch: inputs, choices and columns of the evaluator; labels and
/// tables of the garbler; and the evaluation.
#[test]
#[ignore = "a million samples: cargo xtask soak"]
fn time_does_not_tell_the_numbers_of_either_member() {
    let (session, mut rng) = (told(), rng(2));
    let (waiting, opening) = EvaluatorOpening::new(&session, &mut rng);
    let (mut garbler, choices) = Garbler::open(&session, &opening, &mut rng).expect("honest");
    let mut evaluator = waiting.receive(&choices).expect("honest");
    let [mut requests, mut tables, mut evaluations] = [(); 3].map(|()| Times::default());
    for _ in 0..SAMPLES {
        let (class, number) = secret(&mut rng);
        let (next, evaluation, request) = requests.measure(class, || {
            let mut inputs = Inputs::for_evaluator(&session, 1).expect("one");
            inputs.push(number, BITS).expect("in range");
            evaluator.request(inputs, &mut rng).expect("room")
        });
        evaluator = next;
        let (class, number) = secret(&mut rng);
        let (next, garbled, message) = tables.measure(class, || {
            let mut inputs = Inputs::for_garbler(&session, 1).expect("one");
            inputs.push(number, BITS).expect("in range");
            let (next, garbling) = garbler.garble(&request, inputs, &mut rng).expect("honest");
            let (garbled, message) = garbling.next();
            (next, garbled, message)
        });
        garbler = next;
        let evaluated = evaluations.measure(class, || evaluation.receive(&message).expect("honest"));
        assert!(matches!((garbled, evaluated), (Garbled::Done(_), Evaluated::Done(_))));
    }
    requests.assert_constant("the evaluator's request, by its number");
    tables.assert_constant("the garbler's tables, by its number");
    evaluations.assert_constant("evaluation, by the garbler's number");
}

/// The choices of the base transfer are the bits of Delta.
#[test]
#[ignore = "a million samples: cargo xtask soak"]
fn time_does_not_tell_the_choices_of_the_base_transfer() {
    let (mut rng, mut times) = (rng(3), Times::default());
    let opening = TransferSender::new([1; 32], &mut rng).opening();
    for _ in 0..SAMPLES {
        let (class, number) = secret(&mut rng);
        let choice = [(number & 1) as u8];
        times.measure(class, || choose([1; 32], opening, &choice, &mut rng).expect("honest"));
    }
    times.assert_constant("a choice of the base transfer");
}
