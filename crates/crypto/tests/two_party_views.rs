//! What each of the three sees can be made without the secrets of the others: a simulator for each role, and real
//! messages beside it.
//!
//! The proofs are in `proofs/two-party.md`; tests can look at lengths, counts and laws of bytes. Inputs are as
//! different as they can be.

mod pair;

use pair::{Messages, Pair, Row, build, session};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_crypto::two_party::{
    LANES_MAX, Session,
    base_transfer::TransferSender,
    evaluator::{Evaluated, EvaluatorOpening},
    garbler::{Garbled, Garbler},
    inputs::Inputs,
    kernel::{self, Larger},
    laplace::Laplace,
    message::Choices,
    response::RandomizedResponse,
    share::combine,
};

const BITS: usize = 8;
const MOST: u64 = 255;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Whose number is larger, without noise: the result is known, so that shares can be compared with it.
fn comparison() -> Session {
    session(build(|builder| {
        let larger = kernel::comparison(BITS, Larger::Garbler, builder);
        builder.output_number(&larger);
    }))
}

fn noisy() -> [Session; 2] {
    let told = build(|builder| {
        let larger = kernel::comparison(BITS, Larger::Garbler, builder);
        let told = RandomizedResponse::new(1.0, 2).expect("fine").answer(&larger, builder).expect("one bit");
        builder.output_number(&told);
    });
    let distance = build(|builder| {
        let value = kernel::gini(BITS, builder);
        let laplace = Laplace::new(1.0, BITS as u32, MOST).expect("fine");
        let noisy = laplace.add_to(&value, builder).expect("its width");
        builder.output_number(&noisy);
    });
    [session(told), session(distance)]
}

fn rows(value: u64, instances: usize) -> Vec<Row> {
    vec![vec![(value, BITS)]; instances]
}

/// The evaluator's bits for the largest batch.
fn evaluators(session: &Session, value: u64) -> Inputs {
    let most = session.circuit().batch_max();
    let mut inputs = Inputs::for_evaluator(session, most).expect("a batch");
    (0..most).for_each(|_| inputs.push(value, BITS).expect("in range"));
    inputs
}

/// The lengths of all messages of a batch, in their order.
fn lengths(messages: &Messages) -> Vec<usize> {
    let all = [&messages.request].into_iter().chain(&messages.tables).chain(&messages.shares);
    all.map(Vec::len).collect()
}

#[test]
fn lengths_and_counts_of_messages_do_not_depend_on_inputs() {
    for session in [vec![comparison()], noisy().into()].concat() {
        for instances in [1, LANES_MAX + 3] {
            let instances = instances.min(session.circuit().batch_max());
            let mut seen = Vec::new();
            for (seed, (x, y)) in [(0, 0), (MOST, 0), (0, MOST), (MOST, MOST), (1, 2)].into_iter().enumerate() {
                let mut pair = Pair::open(&session, seed as u64);
                let (_, messages) = pair.run(&rows(x, instances), &rows(y, instances));
                seen.push((pair.opening.len(), pair.choices.len(), lengths(&messages)));
            }
            assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:?}");
        }
    }
}

/// Chi-square of the bytes against the uniform law, in deviations from its mean: 255 degrees of freedom.
fn byte_score(bytes: &[u8]) -> f64 {
    let mut counts = [0.0; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
    let expected = bytes.len() as f64 / 256.0;
    assert!(expected > 20.0, "enough bytes for a test");
    let chi_square: f64 = counts.iter().map(|count| (count - expected) * (count - expected) / expected).sum();
    (chi_square - 255.0) / 510.0_f64.sqrt()
}

/// The largest deviation of the 128 bits of labels from a fair coin.
fn bit_score(labels: &[u8]) -> f64 {
    let (labels, _) = labels.as_chunks::<16>();
    let mut ones = [0.0; 128];
    for label in labels {
        let label = u128::from_le_bytes(*label);
        (0..128).for_each(|i| ones[i] += (label >> i & 1) as f64);
    }
    let half = labels.len() as f64 / 2.0;
    ones.iter().map(|ones| (ones - half).abs() / (half / 2.0).sqrt()).fold(0.0, f64::max)
}

/// The deviation of so many ones among so many bits from a fair coin.
fn fair_score(ones: usize, bits: usize) -> f64 {
    (ones as f64 - bits as f64 / 2.0).abs() / (bits as f64 / 4.0).sqrt()
}

fn looks_uniform(name: &str, bytes: &[u8]) {
    let (score, bits) = (byte_score(bytes), bit_score(bytes));
    assert!(score.abs() < 6.0 && bits < 6.0, "{name}: bytes {score:.1}, bits {bits:.1}");
}

/// The evaluator's view: points, seeds and tables. The simulator knows the session, the numbers of instances and the
/// name, and nothing of anybody's bits.
#[test]
fn what_the_evaluator_sees_is_made_by_a_simulator_without_the_garblers_bits() {
    let session = comparison();
    let most = session.circuit().batch_max();
    let mut share_bits = Vec::new();
    for (x, y) in [(0, 0), (MOST, 0), (0, MOST)] {
        let mut pair = Pair::open(&session, x + 2 * y);
        let (mut tables, mut ones, mut bits) = (Vec::new(), 0, 0);
        for _ in 0..4 {
            let (outputs, messages) = pair.run(&rows(x, most), &rows(y, most));
            assert!((0..most).all(|i| (outputs.number(i) == 1) == (x > y)), "results are not at chance");
            for (number, message) in messages.tables.iter().enumerate() {
                tables.extend_from_slice(&message[if number == 0 { 61 } else { 45 }..]);
            }
            ones += messages.shares[1][77..].iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
            bits += most;
        }
        looks_uniform("tables", &tables);
        share_bits.push(fair_score(ones, bits));
    }
    assert!(share_bits.iter().all(|score| *score < 5.0), "what the evaluator ends with: {share_bits:?}");

    // The simulator in the garbler's place: uniform points, a uniform seed, uniform tables. The evaluator goes through
    // all its states.
    let (mut rng, (_, real)) = (rng(20), Pair::open(&session, 1).run(&rows(7, most), &rows(7, most)));
    let (waiting, _) = EvaluatorOpening::new(&session, &mut rng);
    let points: Vec<u8> = (0..128).flat_map(|_| TransferSender::new([0; 32], &mut rng).opening()).collect();
    let choices = Choices { session: session.digest(), points: &points }.encode();
    let evaluator = waiting.receive(&choices).expect("well-formed");
    let (_, mut evaluation, request) = evaluator.request(evaluators(&session, 7), &mut rng).expect("a batch");
    assert_eq!(request.len(), real.request.len());
    let mut simulated = real.tables;
    for message in &mut simulated {
        rng.fill_bytes(&mut message[45..]);
        message[1..33].copy_from_slice(&request[1..33]);
    }
    let (last, first) = simulated.split_last().expect("tables");
    for message in first {
        let Ok(Evaluated::More(more)) = evaluation.receive(message) else { panic!("more to come") };
        evaluation = more;
    }
    let Ok(Evaluated::Done(share)) = evaluation.receive(last) else { panic!("as many messages") };
    let ones: u32 = share.to_bytes()[77..].iter().map(|byte| byte.count_ones()).sum();
    assert!(fair_score(ones as usize, most) < 5.0);
}

/// The garbler's view: a point and columns. The simulator sends uniform columns, and the garbler goes through all its
/// states.
#[test]
fn what_the_garbler_sees_is_made_by_a_simulator_without_the_evaluators_bits() {
    let session = comparison();
    let most = session.circuit().batch_max();
    for y in [0, MOST] {
        let mut pair = Pair::open(&session, 30 + y);
        let columns: Vec<u8> =
            (0..2).flat_map(|_| pair.run(&rows(1, most), &rows(y, most)).1.request[45..].to_vec()).collect();
        looks_uniform("columns", &columns);
    }
    let mut rng = rng(31);
    let (_, opening) = EvaluatorOpening::new(&session, &mut rng);
    let (garbler, choices) = Garbler::open(&session, &opening, &mut rng).expect("a point");
    // The name follows from what was said in public: an evaluator with other secrets than those of the opening would
    // read it off the garbler's answer. Here one with the same does.
    let evaluator = EvaluatorOpening::new(&session, &mut self::rng(31)).0.receive(&choices).expect("the same opening");
    let (_, _, mut request) = evaluator.request(evaluators(&session, 0), &mut rng).expect("a batch");
    rng.fill_bytes(&mut request[45..]);
    let mut inputs = Inputs::for_garbler(&session, most).expect("a batch");
    (0..most).for_each(|_| inputs.push(9, BITS).expect("in range"));
    let (_, mut garbling) = garbler.garble(&request, inputs, &mut rng).expect("well-formed");
    let share = loop {
        match garbling.next().0 {
            Garbled::More(more) => garbling = more,
            Garbled::Done(share) => break share.to_bytes(),
        }
    };
    let ones: u32 = share[77..].iter().map(|byte| byte.count_ones()).sum();
    assert!(fair_score(ones as usize, most) < 5.0, "what the garbler ends with");
}

/// The aggregator's view: two shares. The simulator draws one at random and gets the other from the result.
#[test]
fn what_the_aggregator_sees_is_made_from_the_results_alone() {
    let session = comparison();
    let most = session.circuit().batch_max();
    let mut pair = Pair::open(&session, 40);
    // Half of the results are one.
    let (mine, theirs) = (rows(5, most), (0..most).map(|i| vec![(i as u64 % 2 * 9, BITS)]).collect::<Vec<Row>>());
    let mut counts = [[0_usize; 2]; 2];
    let mut last = None;
    for _ in 0..4 {
        let (outputs, messages) = pair.run(&mine, &theirs);
        for instance in 0..most {
            let share = messages.shares[1][77 + instance / 8] >> (instance % 8) & 1;
            counts[usize::from(outputs.bit(instance, 0))][usize::from(share)] += 1;
        }
        last = Some((outputs, messages.shares));
    }
    for of_result in counts {
        assert!(fair_score(of_result[1], of_result[0] + of_result[1]) < 5.0, "{counts:?}");
    }
    let (outputs, [real, other]) = last.expect("four batches");
    let (mut rng, mut simulated) = (rng(41), [real, other]);
    for at in 77..simulated[0].len() {
        let result = simulated[0][at] ^ simulated[1][at];
        simulated[1][at] = rng.next_u64() as u8;
        simulated[0][at] = simulated[1][at] ^ result;
    }
    assert_eq!(combine(&session, &simulated[0], &simulated[1]).expect("well-formed"), outputs);
}
