//! Garbled circuits give what the kernels give in the clear (CHECK 03.p), for one instance and for many, in any number
//! of lanes and messages.

mod pair;

use pair::{Pair, Row, build, session};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_crypto::two_party::{
    LABELS_MAX, LANES_MAX,
    arithmetic::Number,
    builder::{Bit, Builder},
    circuit::Circuit,
    kernel::{self, Larger, plain},
};

/// One of two inputs.
type Side = fn(&(Vec<u64>, Vec<u64>)) -> &Vec<u64>;

/// A kernel as a circuit and in the clear.
struct Case {
    name: &'static str,
    circuit: fn(usize, &mut Builder) -> Number,
    /// Numbers that each member brings.
    numbers: usize,
    plain: fn(&[u64], &[u64]) -> u64,
}

const CASES: [Case; 5] = [
    Case {
        name: "comparison, garbler",
        circuit: |bits, builder| kernel::comparison(bits, Larger::Garbler, builder),
        numbers: 1,
        plain: |x, y| plain::comparison(x[0], y[0], Larger::Garbler),
    },
    Case {
        name: "comparison, evaluator",
        circuit: |bits, builder| kernel::comparison(bits, Larger::Evaluator, builder),
        numbers: 1,
        plain: |x, y| plain::comparison(x[0], y[0], Larger::Evaluator),
    },
    Case {
        name: "Kendall",
        circuit: kernel::kendall,
        numbers: 2,
        plain: |x, y| plain::kendall((x[0], x[1]), (y[0], y[1])),
    },
    Case { name: "Gini", circuit: kernel::gini, numbers: 1, plain: |x, y| plain::gini(x[0], y[0]) },
    Case {
        name: "squared difference",
        circuit: |bits, builder| kernel::squared_difference(bits, 0, builder),
        numbers: 1,
        plain: |x, y| plain::squared_difference(x[0], y[0], 0) as u64,
    },
];

fn circuit(case: &Case, bits: usize) -> Circuit {
    build(|builder| {
        let value = (case.circuit)(bits, builder);
        builder.output_number(&value);
    })
}

fn row(numbers: &[u64], bits: usize) -> Row {
    numbers.iter().map(|number| (*number, bits)).collect()
}

/// Compares garbled results with the plain kernel.
fn compare(case: &Case, bits: usize, inputs: &[(Vec<u64>, Vec<u64>)], seed: u64) {
    let mut pair = Pair::open(&session(circuit(case, bits)), seed);
    let rows = |of: Side| inputs.iter().map(|both| row(of(both), bits)).collect();
    let (garbler, evaluator): (Vec<Row>, Vec<Row>) = (rows(|both| &both.0), rows(|both| &both.1));
    let results = pair.numbers(&garbler, &evaluator);
    assert_eq!(results.len(), inputs.len());
    for (result, (x, y)) in results.into_iter().zip(inputs) {
        assert_eq!(result, (case.plain)(x, y), "{} of {x:?} and {y:?}", case.name);
    }
}

/// All numbers of four bits, for as many numbers as a member brings.
fn all(numbers: usize) -> Vec<Vec<u64>> {
    let sixteen = (0..16).map(|x| vec![x]);
    if numbers == 1 { sixteen.collect() } else { (0..256).map(|x| vec![x / 16, x % 16]).collect() }
}

/// CHECK 03.p, first part: garbled circuits equal the plain kernels for all inputs at four bits.
#[test]
fn check_03_p_garbled_kernels_are_right_for_all_inputs_of_four_bits() {
    for (seed, case) in CASES.iter().enumerate() {
        let own = all(case.numbers);
        let both = own.iter().flat_map(|x| own.iter().map(|y| (x.clone(), y.clone())));
        compare(case, 4, &both.collect::<Vec<_>>(), seed as u64);
    }
}

fn random_inputs(case: &Case, bits: usize, count: usize, rng: &mut ChaCha20Rng) -> Vec<(Vec<u64>, Vec<u64>)> {
    let mut number = |near: u64| {
        // A third of all numbers are close to another one: equal, or one apart, or with equal high bits.
        let random = rng.next_u64();
        let value = match random % 6 {
            0 => near.wrapping_add(rng.next_u64() % 3).wrapping_sub(1),
            1 => near ^ (rng.next_u64() % (1 << (rng.next_u64() % bits as u64))),
            _ => rng.next_u64(),
        };
        value % (1 << bits)
    };
    let mut both = || {
        let x: Vec<u64> = (0..case.numbers).map(|_| number(0)).collect();
        let y = x.iter().map(|x| number(*x)).collect();
        (x, y)
    };
    (0..count).map(|_| both()).collect()
}

/// CHECK 03.p, second part, as far as a few seconds go: garbled comparisons of 100,000 random numbers of 32 bits, and
/// fewer of what takes longer.
#[test]
fn check_03_p_garbled_kernels_are_right_for_random_inputs_of_32_bits() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for (case, count) in CASES.iter().zip([100_000, 10_000, 30_000, 30_000, 1_500]) {
        compare(case, 32, &random_inputs(case, 32, count, &mut rng), 10);
    }
}

/// CHECK 03.p, second part.
#[test]
#[ignore = "a million garbled instances of each kernel: cargo xtask soak"]
fn check_03_p_garbled_kernels_are_right_for_a_million_random_inputs_of_32_bits() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for case in &CASES {
        for part in 0..20 {
            compare(case, 32, &random_inputs(case, 32, 50_000, &mut rng), 20 + part);
        }
    }
}

/// The circuits themselves, without garbling, for 100,000 random inputs each.
#[test]
fn kernels_in_the_clear_are_right_for_random_inputs_of_32_bits() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for case in &CASES {
        let circuit = circuit(case, 32);
        for _ in 0..100_000 / 64 {
            let inputs = random_inputs(case, 32, 64, &mut rng);
            let words = |of: Side| -> Vec<u64> {
                let bit = |number: usize, i: u64| {
                    inputs.iter().enumerate().map(|(at, both)| (of(both)[number] >> i & 1) << at).sum()
                };
                (0..case.numbers).flat_map(|number| (0..32).map(move |i| (number, i))).map(|(n, i)| bit(n, i)).collect()
            };
            let outputs = circuit.evaluate(&words(|both| &both.0), &words(|both| &both.1), &[]);
            for (at, (x, y)) in inputs.iter().enumerate() {
                let result = outputs.iter().rev().fold(0, |sum, word| sum << 1 | word >> at & 1);
                assert_eq!(result, (case.plain)(x, y), "{} of {x:?} and {y:?}", case.name);
            }
        }
    }
}

#[test]
fn kernels_cost_what_their_table_says() {
    let ands = CASES.each_ref().map(|case| circuit(case, 32).ands());
    assert_eq!(ands[..4], [32, 32, 128, 63]);
    assert!(ands[4] < 32 * 32 + 63, "{}", ands[4]);
    // Bits that are dropped afterwards save their noise, not their product.
    let dropped = build(|builder| {
        let value = kernel::squared_difference(32, 40, builder);
        assert_eq!(value.width(), 24);
        builder.output_number(&value);
    });
    assert_eq!(dropped.outputs().len(), 24);
}

/// A circuit of random gates on all kinds of inputs, with constants, negations, outputs that are inputs, and outputs
/// that come twice.
fn random_circuit(gates: usize, joint: bool, rng: &mut ChaCha20Rng) -> Circuit {
    build(|builder| {
        let mut bits = vec![Bit::ZERO, Bit::ONE];
        for _ in 0..1 + rng.next_u64() % 9 {
            bits.push(builder.garbler_bit());
            bits.push(builder.evaluator_bit());
            if joint {
                bits.push(builder.joint_bit());
            }
        }
        let inputs = bits.len();
        for _ in 0..gates {
            let mut pick = || {
                // Mostly one of the last bits, so that few gates are left out.
                let near = bits.len().saturating_sub(if rng.next_u64().is_multiple_of(4) { bits.len() } else { 8 });
                let bit = bits[near + rng.next_u64() as usize % (bits.len() - near)];
                if rng.next_u64().is_multiple_of(4) { bit.not() } else { bit }
            };
            let (left, right) = (pick(), pick());
            bits.push(if rng.next_u64().is_multiple_of(2) {
                builder.xor(left, right)
            } else {
                builder.and(left, right)
            });
        }
        let outputs = 1 + rng.next_u64() as usize % 20;
        for i in 0..outputs {
            let from = if i % 5 == 0 { inputs } else { bits.len() };
            let bit = bits[rng.next_u64() as usize % from];
            builder.output(if rng.next_u64().is_multiple_of(3) { bit.not() } else { bit });
        }
    })
}

/// Any circuit, any number of instances: garbling gives what the circuit gives in the clear. Joint bits are drawn
/// inside; where there are some, one of their few values must explain all bits of the result.
#[test]
fn any_circuit_in_any_number_of_lanes_and_messages_is_garbled_rightly() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut messages = 0;
    for round in 0..60 {
        let gates = [3, 20, 200, 1_000][round % 4];
        let circuit = random_circuit(gates, round % 3 == 0, &mut rng);
        let (inputs, session) = (circuit.inputs(), session(circuit));
        let most = session.circuit().batch_max();
        let instances = [1, 2, LANES_MAX - 1, LANES_MAX, LANES_MAX + 1, most.min(100)][round % 6].min(most);
        let mut rows = |bits: usize| -> Vec<Row> {
            (0..instances).map(|_| (0..bits).map(|_| (rng.next_u64() & 1, 1)).collect()).collect()
        };
        let (mine, theirs) = (rows(inputs.garbler), rows(inputs.evaluator));
        let (outputs, seen) = Pair::open(&session, round as u64).run(&mine, &theirs);
        messages = messages.max(seen.tables.len());
        assert!(seen.tables.iter().all(|tables| tables.len() <= 61 + (64 << 10)), "no message grows with the circuit");
        for instance in 0..instances {
            let words = |row: &Row| row.iter().map(|(bit, _)| *bit).collect::<Vec<u64>>();
            let (mine, theirs) = (words(&mine[instance]), words(&theirs[instance]));
            let explained = (0..1_u64 << inputs.joint).any(|joint| {
                let joint: Vec<u64> = (0..inputs.joint).map(|i| joint >> i & 1).collect();
                let plain = session.circuit().evaluate(&mine, &theirs, &joint);
                plain.iter().enumerate().all(|(i, word)| (word & 1 == 1) == outputs.bit(instance, i))
            });
            assert!(explained, "round {round}, instance {instance}");
        }
    }
    assert!(messages > 4, "several messages for a group: {messages}");
}

/// Circuits in which one of the three kinds of inputs, or all but one, are missing; and one that needs no AND at all.
#[test]
fn circuits_without_some_kinds_of_inputs_work() {
    for kinds in 1..8_u32 {
        let circuit = build(|builder| {
            let mut sum = Bit::ZERO;
            for i in 0..5 {
                let mut product = Bit::ONE;
                for (kind, has) in [kinds & 1 != 0, kinds & 2 != 0, kinds & 4 != 0].into_iter().enumerate() {
                    if has {
                        let bit = [Builder::garbler_bit, Builder::evaluator_bit, Builder::joint_bit][kind](builder);
                        product = if i < 3 { builder.and(product, bit) } else { builder.xor(product, bit) };
                    }
                }
                sum = builder.xor(sum, product);
            }
            builder.output(sum);
            builder.output(Bit::ONE);
        });
        let (inputs, session) = (circuit.inputs(), session(circuit));
        let row = |bits: usize| -> Vec<Row> { vec![(0..bits).map(|i| (i as u64 & 1, 1)).collect(); 40] };
        let (mine, theirs) = (row(inputs.garbler), row(inputs.evaluator));
        let (outputs, _) = Pair::open(&session, kinds.into()).run(&mine, &theirs);
        let words = |row: &Row| row.iter().map(|(bit, _)| *bit).collect::<Vec<u64>>();
        for instance in 0..40 {
            assert!(outputs.bit(instance, 1));
            if inputs.joint == 0 {
                let plain = session.circuit().evaluate(&words(&mine[instance]), &words(&theirs[instance]), &[]);
                assert_eq!(outputs.bit(instance, 0), plain[0] & 1 == 1, "kinds {kinds}");
            }
        }
    }
}

/// A circuit that is wider than memory allows for many lanes takes fewer; the labels of a run stay below their bound.
#[test]
fn wide_circuits_take_fewer_lanes() {
    let wide = build(|builder| {
        let (mine, theirs) = (builder.garbler_number(10_000), builder.evaluator_number(10_000));
        let equal = builder.equal(&mine, &theirs);
        builder.output(equal);
    });
    assert!(wide.lanes() < LANES_MAX && wide.lanes() * wide.slots() <= LABELS_MAX, "{}", wide.lanes());
    assert_eq!(wide.batch_max(), 1);
    let (session, row) = (session(wide), vec![(1, 64); 156].into_iter().chain([(1, 16)]).collect::<Row>());
    let mut other = row.clone();
    let (same, _) = Pair::open(&session, 1).run(std::slice::from_ref(&row), std::slice::from_ref(&row));
    other[100].0 = 3;
    let (different, _) = Pair::open(&session, 2).run(&[row], &[other]);
    assert_eq!((same.number(0), different.number(0)), (1, 0));
}
