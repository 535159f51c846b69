//! The published cases of two-party computation: hashes, gates, transfers, extensions and whole sessions, honest and
//! tampered.

use super::{
    cases::{HERE, case, context},
    replay::hex,
    two_party_replay::answer,
};
use serde_json::{Value, json};

/// All files: name and cases.
pub fn files() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("label-hash.json", label_hash()),
        ("gates.json", gates()),
        ("base-transfer.json", base_transfer()),
        ("extension.json", extension()),
        ("session.json", session()),
    ]
}

/// A case with its answer, as it is computed now.
fn known(kind: &str, name: &str, mut fields: Value) -> Value {
    fields["kind"] = kind.into();
    fields["answer"] = answer(&fields).expect("an honest case");
    case(kind, name, true, fields)
}

/// The same case with some fields replaced: the answer is another one, or it is refused.
fn changed(honest: &Value, name: &str, fields: Value) -> Value {
    let mut other = honest.clone();
    for (field, value) in fields.as_object().expect("fields") {
        other[field] = value.clone();
    }
    let kind = honest["kind"].as_str().expect("a kind").to_owned();
    case(&kind, name, false, other)
}

fn label(byte: u8) -> String {
    hex((0..16_u8).map(|i| byte.wrapping_mul(17).wrapping_add(i.wrapping_mul(byte | 1))).collect::<Vec<u8>>())
}

fn label_hash() -> Vec<Value> {
    let of = |name: &str, key: u8, input: &str, tweak: &str| {
        known("label-hash", name, json!({"key": label(key), "label": input, "tweak": tweak}))
    };
    let zero = hex([0; 16]);
    let mut cases = vec![
        of("zeros", 0, &zero, &zero),
        of("a label", 1, &label(2), &zero),
        of("a label and a tweak", 1, &label(2), &label(3)),
        of("all ones", 1, &hex([0xff; 16]), &hex([0xff; 16])),
        of("another key", 9, &label(2), &label(3)),
    ];
    cases.push(changed(&cases[2], "another tweak", json!({"tweak": label(4)})));
    cases.push(changed(&cases[2], "another label", json!({"label": label(4)})));
    cases.push(changed(&cases[2], "another fixed key", json!({"key": label(4)})));
    cases
}

fn gates() -> Vec<Value> {
    let mut cases = Vec::new();
    for (number, negated) in [[false, false], [true, false], [false, true], [true, true]].into_iter().enumerate() {
        let labels: Vec<[String; 2]> = (0..8).map(|lane| [label(20 + lane), label(40 + 3 * lane)]).collect();
        let bits: Vec<[u8; 2]> = (0..8).map(|lane| [lane & 1, lane >> 1 & 1]).collect();
        // The lowest bit of Delta is one.
        let delta = format!("0{}{}", 2 * number + 1, &label(5)[2..]);
        let fields = json!({"key": label(6), "delta": delta, "gate": 1000 * number, "negated": negated,
            "labels": labels, "bits": bits});
        cases.push(known("gate", &format!("eight lanes, negated {negated:?}"), fields));
    }
    let honest = cases[0].clone();
    let mut other_bits = honest["bits"].clone();
    other_bits[3] = json!([0, 1]);
    for (name, fields) in [
        ("another number of the gate", json!({"gate": 1})),
        ("another Delta", json!({"delta": format!("03{}", &label(7)[2..])})),
        ("another bit in one lane", json!({"bits": other_bits})),
        ("one operand negated", json!({"negated": [true, false]})),
    ] {
        cases.push(changed(&honest, name, fields));
    }
    cases
}

fn base_transfer() -> Vec<Value> {
    let of = |name: &str, binding: u8, seeds: [u8; 2], choices: &[u8]| {
        let fields = json!({"binding": hex([binding; 32]), "sender_seed": hex([seeds[0]; 32]),
            "receiver_seed": hex([seeds[1]; 32]), "choices": choices});
        known("base-transfer", name, fields)
    };
    let mut cases = vec![
        of("one transfer, zero chosen", 1, [2, 3], &[0]),
        of("one transfer, one chosen", 1, [2, 3], &[1]),
        of("five transfers", 1, [2, 3], &[1, 0, 0, 1, 1]),
        of("another session", 9, [2, 3], &[1, 0, 0, 1, 1]),
    ];
    let honest = cases[2].clone();
    let points = honest["answer"]["points"].as_str().expect("points").to_owned();
    let replaced = |at: usize, by: &str| format!("{}{by}{}", &points[..64 * at], &points[64 * (at + 1)..]);
    for (name, fields) in [
        ("another binding", json!({"binding": hex([8; 32])})),
        ("another choice", json!({"choices": [1, 0, 0, 1, 0]})),
        ("the identity as opening", json!({"opening": hex([0; 32])})),
        ("no canonical point as opening", json!({"opening": hex([0xff; 32])})),
        ("another opening", json!({"opening": &points[..64]})),
        ("the identity as a choice", json!({"points": replaced(2, &hex([0; 32]))})),
        ("no canonical point as a choice", json!({"points": replaced(4, &hex([0xff; 32]))})),
        ("a choice that comes twice", json!({"points": replaced(1, &points[..64])})),
        ("a choice too few", json!({"points": &points[64..]})),
        ("a byte too many", json!({"points": format!("{points}00")})),
    ] {
        cases.push(changed(&honest, name, fields));
    }
    cases
}

fn extension() -> Vec<Value> {
    let of = |name: &str, choices: Value| {
        let fields = json!({"keys_seed": hex([7; 32]), "delta": format!("01{}", &label(8)[2..]), "choices": choices});
        known("extension", name, fields)
    };
    let (zeros, ones) = (hex([0; 16]), hex([0xff; 16]));
    let mut cases = vec![
        of("zeros", json!([[zeros]])),
        of("ones", json!([[ones]])),
        of("three blocks, then one", json!([[label(1), label(2), zeros], [label(3)]])),
    ];
    let honest = cases[2].clone();
    for (name, fields) in [
        ("another choice", json!({"choices": [[label(1), label(2), ones], [label(3)]]})),
        ("the batches exchanged", json!({"choices": [[label(3)], [label(1), label(2), zeros]]})),
        ("another Delta", json!({"delta": format!("01{}", &label(9)[2..])})),
        ("other keys", json!({"keys_seed": hex([6; 32])})),
        ("a flipped bit in the message", json!({"flip": 100})),
    ] {
        cases.push(changed(&honest, name, fields));
    }
    cases
}

fn session() -> Vec<Value> {
    let of = |name: &str, batches: Value| {
        let fields = json!({"context": context(&HERE), "evaluator": hex([4; 32]), "aggregator": hex([5; 32]),
            "circuit_name": name, "garbler_seed": hex([21; 32]), "evaluator_seed": hex([22; 32]), "batches": batches});
        known("session", name, fields)
    };
    let numbers = |of: &[u64], bits: u64| of.iter().map(|number| json!([[number, bits]])).collect::<Vec<Value>>();
    let kendall = |of: &[[u64; 2]]| of.iter().map(|two| json!([[two[0], 3], [two[1], 3]])).collect::<Vec<Value>>();
    let many = |step: u64| numbers(&(0..33).map(|i| i * step % 16).collect::<Vec<_>>(), 4);
    let mut cases = vec![
        of(
            "larger of 4 bits",
            json!([{"garbler": numbers(&[9, 3, 3], 4), "evaluator": numbers(&[2, 3, 15], 4)}, {"garbler": numbers(&[1], 4), "evaluator": numbers(&[0], 4)}]),
        ),
        of("smaller of 32 bits", json!([{"garbler": numbers(&[77], 32), "evaluator": numbers(&[4_000_000_000], 32)}])),
        of(
            "Kendall of 3 bits, response of epsilon 1",
            json!([{"garbler": kendall(&[[1, 2], [7, 0]]), "evaluator": kendall(&[[3, 4], [1, 1]])}]),
        ),
        of(
            "Gini of 3 bits, Laplace of epsilon 1",
            json!([{"garbler": numbers(&[7, 0], 3), "evaluator": numbers(&[1, 0], 3)}]),
        ),
        of("squared difference of 4 bits", json!([{"garbler": many(5), "evaluator": many(3)}])),
    ];
    let honest = cases[0].clone();
    let point = honest["answer"]["opening"].as_str().expect("an opening")[66..].to_owned();
    for (name, tamper) in [
        ("another kind of message for the opening", json!({"message": "opening", "at": 0, "xor": 3})),
        ("an opening of another session", json!({"message": "opening", "at": 5, "xor": 1})),
        ("the identity in the opening", json!({"message": "opening", "at": 33, "put": hex([0; 32])})),
        ("no canonical point in the opening", json!({"message": "opening", "at": 33, "put": hex([0xff; 32])})),
        ("an opening cut short", json!({"message": "opening", "cut": 64})),
        ("an opening with a byte more", json!({"message": "opening", "append": "00"})),
        ("choices of another session", json!({"message": "choices", "at": 1, "xor": 128})),
        ("the identity among the choices", json!({"message": "choices", "at": 33 + 32 * 127, "put": hex([0; 32])})),
        ("no canonical point among the choices", json!({"message": "choices", "at": 33, "put": hex([0xff; 32])})),
        ("another point among the choices", json!({"message": "choices", "at": 33 + 32 * 50, "put": point})),
        ("choices cut short", json!({"message": "choices", "cut": 4000})),
        ("choices with more points", json!({"message": "choices", "append": point})),
        ("a request of another kind", json!({"message": "request", "at": 0, "xor": 1})),
        ("a request of another run", json!({"message": "request", "at": 32, "xor": 1})),
        ("a request of another batch", json!({"message": "request", "at": 33, "xor": 1})),
        ("a request for no instance", json!({"message": "request", "at": 41, "put": "00000000"})),
        ("a request for too many", json!({"message": "request", "at": 41, "put": "ffffffff"})),
        ("a request cut short", json!({"message": "request", "cut": 2000})),
        ("a request with a byte more", json!({"message": "request", "append": "00"})),
        ("a flipped bit in the request's columns", json!({"message": "request", "at": 45, "xor": 1})),
        ("tables of another kind", json!({"message": "tables", "at": 0, "xor": 1})),
        ("tables of another run", json!({"message": "tables", "at": 1, "xor": 1})),
        ("tables of another batch", json!({"message": "tables", "at": 40, "xor": 1})),
        ("tables out of their order", json!({"message": "tables", "at": 41, "put": "01000000"})),
        ("tables cut short", json!({"message": "tables", "cut": 100})),
        ("tables with a gate more", json!({"message": "tables", "append": hex([0; 32])})),
        ("a flipped bit in the seed", json!({"message": "tables", "at": 45, "xor": 1})),
        ("a flipped bit in a table", json!({"message": "tables", "at": 61, "xor": 1})),
        ("the evaluator's share as the garbler's", json!({"message": "garbler's share", "at": 0, "put": "06"})),
        ("a share of another session", json!({"message": "garbler's share", "at": 1, "xor": 1})),
        ("a share of another transcript", json!({"message": "evaluator's share", "at": 33, "xor": 1})),
        ("a share of another batch", json!({"message": "evaluator's share", "at": 65, "xor": 1})),
        ("a share of fewer instances", json!({"message": "evaluator's share", "at": 73, "put": "02000000"})),
        ("a share with bits beyond the last", json!({"message": "evaluator's share", "at": 77, "xor": 8})),
        ("a share cut short", json!({"message": "evaluator's share", "cut": 77})),
        ("a flipped bit in a share", json!({"message": "evaluator's share", "at": 77, "xor": 1})),
    ] {
        // The answer of the honest session would only make the file long.
        cases.push(changed(&honest, name, json!({"tamper": tamper, "answer": null})));
    }
    for (name, fields) in [
        (
            "another round",
            json!({"context": {"task": hex([1; 32]), "round": 8, "sender": hex([2; 32]), "board": hex([3; 32])}}),
        ),
        ("another evaluator", json!({"evaluator": hex([9; 32])})),
        ("another aggregator", json!({"aggregator": hex([9; 32])})),
        ("other randomness of the garbler", json!({"garbler_seed": hex([23; 32])})),
        ("other randomness of the evaluator", json!({"evaluator_seed": hex([23; 32])})),
    ] {
        cases.push(changed(&honest, name, fields));
    }
    cases
}
