//! Noise inside circuits is its law: garbled and in the clear (CHECK 03.p), with one member that draws badly, and in
//! the estimate of a whole protocol (CHECK 03.q).

mod pair;

use pair::{Row, build, session};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{CryptoRng, Infallible, Rng, SeedableRng, TryCryptoRng, TryRng},
};
use sottovoce_crypto::two_party::{
    Session,
    arithmetic::Number,
    circuit::Circuit,
    evaluator::{Evaluated, EvaluatorOpening},
    garbler::{Garbled, Garbler},
    inputs::Inputs,
    kernel,
    laplace::Laplace,
    response::RandomizedResponse,
    share::combine,
};

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// A member that draws nothing but zeros.
struct Zeros;

impl TryRng for Zeros {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

impl TryCryptoRng for Zeros {}

/// The Gini kernel on numbers of so many bits with Laplace noise.
fn gini(bits: u32, epsilon: f64) -> (Circuit, Laplace) {
    let laplace = Laplace::new(epsilon, bits, (1 << bits) - 1).expect("fine");
    let circuit = build(|builder| {
        let value = kernel::gini(bits as usize, builder);
        let noisy = laplace.add_to(&value, builder).expect("its width");
        builder.output_number(&noisy);
    });
    (circuit, laplace)
}

/// Results of many garbled instances with the same inputs; the session is opened with fair bits, the batches with the
/// given ones.
fn garbled<G: CryptoRng, E: CryptoRng>(
    session: &Session,
    (mine, theirs): (&Row, &Row),
    instances: usize,
    (mut garblers, mut evaluators): (G, E),
) -> Vec<u64> {
    let (waiting, opening) = EvaluatorOpening::new(session, &mut rng(100));
    let (mut garbler, choices) = Garbler::open(session, &opening, &mut rng(101)).expect("honest");
    let mut evaluator = waiting.receive(&choices).expect("honest");
    let (mut results, most) = (Vec::new(), session.circuit().batch_max());
    while results.len() < instances {
        let mut inputs = Inputs::for_evaluator(session, most).expect("a batch");
        (0..most).flat_map(|_| theirs).for_each(|(value, width)| inputs.push(*value, *width).expect("in range"));
        let (next, mut evaluation, request) = evaluator.request(inputs, &mut evaluators).expect("room");
        evaluator = next;
        let mut inputs = Inputs::for_garbler(session, most).expect("a batch");
        (0..most).flat_map(|_| mine).for_each(|(value, width)| inputs.push(*value, *width).expect("in range"));
        let (next, mut garbling) = garbler.garble(&request, inputs, &mut garblers).expect("honest");
        garbler = next;
        let (one, other) = loop {
            let (garbled, tables) = garbling.next();
            match (garbled, evaluation.receive(&tables).expect("honest")) {
                (Garbled::Done(one), Evaluated::Done(other)) => break (one, other),
                (Garbled::More(more), Evaluated::More(rest)) => (garbling, evaluation) = (more, rest),
                _ => panic!("one of the two is done, the other is not"),
            }
        };
        let outputs = combine(session, &one.to_bytes(), &other.to_bytes()).expect("honest");
        results.extend((0..most).map(|instance| outputs.number(instance)));
    }
    results
}

/// Results of a circuit in the clear for the same inputs and fair joint bits.
fn plain(circuit: &Circuit, mine: &[u64], theirs: &[u64], instances: usize, rng: &mut ChaCha20Rng) -> Vec<u64> {
    let words = |bits: &[u64]| bits.iter().map(|bit| bit.wrapping_neg()).collect::<Vec<u64>>();
    let (mine, theirs) = (words(mine), words(theirs));
    let sixty_four = |_| {
        let joint: Vec<u64> = (0..circuit.inputs().joint).map(|_| rng.next_u64()).collect();
        let outputs = circuit.evaluate(&mine, &theirs, &joint);
        let read = move |at: u32| outputs.iter().rev().fold(0, |sum, word| sum << 1 | word >> at & 1);
        (0..64).map(read).collect::<Vec<u64>>()
    };
    (0..instances.div_ceil(64)).flat_map(sixty_four).collect()
}

/// Chi-square of counts against their expectation, cells below ten thrown together, in deviations from its mean.
fn score(counts: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (mut chi_square, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
    let mut add = |(count, expected): (f64, f64)| {
        chi_square += (count - expected) * (count - expected) / expected;
        cells += 1.0;
    };
    for (count, expected) in counts {
        if expected < 10.0 { rest = (rest.0 + count, rest.1 + expected) } else { add((count, expected)) }
    }
    if rest.1 >= 10.0 {
        add(rest);
    }
    assert!(cells > 1.0, "several cells");
    let degrees: f64 = cells - 1.0;
    (chi_square - degrees) / (2.0 * degrees).sqrt()
}

/// The score of noisy values against the discrete Laplace law around a value.
fn laplace_score(laplace: &Laplace, value: i64, results: &[u64]) -> f64 {
    let most = 40 * (laplace.sensitivity() as i64 + 1);
    let mut counts = vec![0.0; 2 * most as usize + 1];
    for result in results {
        counts[(laplace.decode(*result) - value + most).clamp(0, 2 * most) as usize] += 1.0;
    }
    let total = results.len() as f64;
    score(counts.into_iter().zip(-most..=most).map(|(count, n)| (count, total * laplace.probability(n))))
}

/// CHECK 03.p, third part: what comes out of garbled circuits has the law of discrete Laplace noise, and of randomized
/// response.
#[test]
fn check_03_p_garbled_noise_is_its_law() {
    let (circuit, laplace) = gini(2, 1.0);
    let results = garbled(&session(circuit), (&vec![(3, 2)], &vec![(1, 2)]), 30_000, (rng(1), rng(2)));
    let found = laplace_score(&laplace, 2, &results);
    assert!(found.abs() < 5.0, "Laplace: {found}");

    let response = RandomizedResponse::new(1.0, 3).expect("fine");
    let circuit = build(|builder| {
        let value = kernel::kendall(4, builder);
        let told = response.answer(&value, builder).expect("two bits");
        builder.output_number(&told);
    });
    let inputs = (&vec![(9, 4), (2, 4)], &vec![(1, 4), (1, 4)]);
    let results = garbled(&session(circuit), inputs, 30_000, (rng(3), rng(4)));
    let (total, other) = (results.len() as f64, response.probability_of_each_other());
    let count = |told| results.iter().filter(|result| **result == told).count() as f64;
    let expected = [other, other, 1.0 - 2.0 * other].map(|probability| total * probability);
    let found = score([0, 1, 2].map(count).into_iter().zip(expected));
    assert!(found.abs() < 5.0, "randomized response on a concordant pair: {found}");
}

/// The same circuits in the clear, with a million draws.
#[test]
fn check_03_p_noise_in_the_clear_is_its_law_for_a_million_draws() {
    for (bits, epsilon) in [(1, 0.5), (2, 1.0), (3, 4.0)] {
        let (circuit, laplace) = gini(bits, epsilon);
        let (mine, theirs) = (vec![1; bits as usize], vec![0; bits as usize]);
        let results = plain(&circuit, &mine, &theirs, 1_000_000, &mut rng(5));
        let found = laplace_score(&laplace, (1 << bits) - 1, &results);
        assert!(found.abs() < 5.0, "{bits} bits, epsilon {epsilon}: {found}");
        let mut ideal = rng(6);
        let drawn: Vec<u64> = (0..300_000)
            .map(|_| (laplace.draw((1 << bits) - 1, &mut ideal) + laplace.offset() as i64) as u64)
            .collect();
        let found = laplace_score(&laplace, (1 << bits) - 1, &drawn);
        assert!(found.abs() < 5.0, "the ideal functionality: {bits} bits, epsilon {epsilon}: {found}");
    }
}

/// The XOR of both members' bits is fair if one of them is; if neither is, there is no noise, and no protocol could help.
#[test]
fn one_member_that_draws_badly_does_not_spoil_the_noise() {
    let (circuit, laplace) = gini(2, 1.0);
    let session = session(circuit);
    let inputs = (&vec![(3, 2)], &vec![(1, 2)]);
    for (name, results) in [
        ("garbler draws zeros", garbled(&session, inputs, 10_000, (Zeros, rng(8)))),
        ("evaluator draws zeros", garbled(&session, inputs, 10_000, (rng(9), Zeros))),
    ] {
        let found = laplace_score(&laplace, 2, &results);
        assert!(found.abs() < 5.0, "{name}: {found}");
    }
    let results = garbled(&session, inputs, 100, (Zeros, Zeros));
    assert!(results.iter().all(|result| *result == results[0]), "both draw zeros");
}

/// How a kernel and its noise look to the protocol of spec 03, section 8: pairs go in, unbiased values come out.
struct Noisy<'c> {
    circuit: &'c Circuit,
    bits: usize,
    unbias: &'c dyn Fn(u64) -> f64,
}

/// The variance of the estimate over many runs of P permutations of n members with random numbers.
fn simulated_variance(
    noisy: &Noisy<'_>,
    members: usize,
    permutations: usize,
    runs: usize,
    rng: &mut ChaCha20Rng,
) -> f64 {
    let pairs = permutations * members / 2;
    let mut queue: Vec<(u64, u64)> = Vec::new();
    for _ in 0..runs {
        let data: Vec<u64> = (0..members).map(|_| rng.next_u64() % (1 << noisy.bits)).collect();
        for _ in 0..permutations {
            let mut order: Vec<usize> = (0..members).collect();
            for i in (1..members).rev() {
                order.swap(i, rng.next_u64() as usize % (i + 1));
            }
            queue.extend(order.chunks_exact(2).map(|pair| (data[pair[0]], data[pair[1]])));
        }
    }
    let mut values = Vec::with_capacity(queue.len());
    for sixty_four in queue.chunks(64) {
        let words = |of: fn(&(u64, u64)) -> u64| -> Vec<u64> {
            let bit = |i: usize| sixty_four.iter().enumerate().map(|(at, pair)| (of(pair) >> i & 1) << at).sum();
            (0..noisy.bits).map(bit).collect()
        };
        let joint: Vec<u64> = (0..noisy.circuit.inputs().joint).map(|_| rng.next_u64()).collect();
        let outputs = noisy.circuit.evaluate(&words(|pair| pair.0), &words(|pair| pair.1), &joint);
        for at in 0..sixty_four.len() {
            values.push((noisy.unbias)(outputs.iter().rev().fold(0, |sum, word| sum << 1 | word >> at & 1)));
        }
    }
    let estimates: Vec<f64> = values.chunks_exact(pairs).map(|run| run.iter().sum::<f64>() / pairs as f64).collect();
    let mean = estimates.iter().sum::<f64>() / runs as f64;
    estimates.iter().map(|estimate| (estimate - mean) * (estimate - mean)).sum::<f64>() / (runs - 1) as f64
}

/// Spec 03, section 8: the variance of sampling pairs, from a kernel on uniform numbers of so many bits.
fn sampling_variance(bits: usize, h: impl Fn(u64, u64) -> f64, members: f64, permutations: f64) -> f64 {
    let (values, count) = (0..1_u64 << bits, (1_u64 << bits) as f64);
    let given: Vec<f64> = values.clone().map(|x| values.clone().map(|y| h(x, y)).sum::<f64>() / count).collect();
    let mean = given.iter().sum::<f64>() / count;
    let of_one = given.iter().map(|mean_of| (mean_of - mean) * (mean_of - mean)).sum::<f64>() / count;
    let all = values.clone().flat_map(|x| values.clone().map(move |y| (x, y)));
    let of_both = all.map(|(x, y)| (h(x, y) - mean) * (h(x, y) - mean)).sum::<f64>() / (count * count);
    let shared = 2.0 * (permutations - 1.0) * (1.0 - 1.0 / (members - 1.0)) * of_one;
    2.0 / (permutations * members) * (shared + (1.0 + (permutations - 1.0) / (members - 1.0)) * of_both)
}

/// CHECK 03.q: the variance of the estimate is the formula's, within 5%, with Laplace noise and with randomized response.
#[test]
fn check_03_q_the_variance_of_the_estimate_is_the_formulas() {
    let (members, bits, runs, mut rng) = (20, 4, 12_000, rng(7));
    for (permutations, epsilon) in [(1, 8.0), (3, 12.0)] {
        let each = epsilon / f64::from(permutations);
        let (n, p) = (members as f64, f64::from(permutations));
        let (circuit, laplace) = gini(bits as u32, each);
        let unbias = |output| laplace.decode(output) as f64 / 15.0;
        let noisy = Noisy { circuit: &circuit, bits, unbias: &unbias };
        let found = simulated_variance(&noisy, members, permutations as usize, runs, &mut rng);
        let h = |x: u64, y: u64| x.abs_diff(y) as f64 / 15.0;
        let expected = sampling_variance(bits, h, n, p) + 4.0 * p / (n * epsilon * epsilon);
        assert!((found / expected - 1.0).abs() < 0.05, "Laplace, P = {permutations}: {found} {expected}");

        // A kernel of two values, and a circuit of one's own: whether two numbers differ.
        let response = RandomizedResponse::new(each, 2).expect("fine");
        let circuit = build(|builder| {
            let (mine, theirs) = (builder.garbler_number(bits), builder.evaluator_number(bits));
            let differ = builder.equal(&mine, &theirs).not();
            let told = response.answer(&Number(vec![differ]), builder).expect("one bit");
            builder.output_number(&told);
        });
        let flip = response.probability_of_each_other();
        let unbias = |told: u64| (told as f64 - flip) / (1.0 - 2.0 * flip);
        let noisy = Noisy { circuit: &circuit, bits, unbias: &unbias };
        let found = simulated_variance(&noisy, members, permutations as usize, runs, &mut rng);
        let odds = each.exp();
        let of_answers = odds / ((odds - 1.0) * (odds - 1.0)) * 2.0 / (p * n);
        let expected = sampling_variance(bits, |x, y| f64::from(u8::from(x != y)), n, p) + of_answers;
        assert!((found / expected - 1.0).abs() < 0.05, "response, P = {permutations}: {found} {expected}");
    }
}
