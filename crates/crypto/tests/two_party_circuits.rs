//! Garbled circuits give what the kernels give in the clear (CHECK 03.p), for one instance and for many, in any number of lanes and messages.

mod pair;

use pair::{Pair, Row, build, session};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_crypto::two_party::{
    arithmetic::Number,
    builder::{Bit, Builder},
    circuit::Circuit,
    kernel::{self, Larger, plain},
};

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
    let rows = |of: fn(&(Vec<u64>, Vec<u64>)) -> &Vec<u64>| inputs.iter().map(|both| row(of(both), bits)).collect();
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
