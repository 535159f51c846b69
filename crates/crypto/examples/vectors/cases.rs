//! The published cases, made from seeds: honest ones, and each of them tampered with in many ways.

use super::replay::{hex, outcome};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde_json::{Value, json};
use sottovoce_crypto::{
    Context, Scalar,
    agreement::TaskKey,
    commitment::{Commitment, Opening},
    fixed_point::{Grid, to_ring, to_scalar},
    generators::{Generators, generator},
    pad::Direction,
    proofs::{
        bit::BitProof,
        link::LinkProof,
        noise::{Beacon, NoiseBits, NoiseLaw},
        opening::OpeningProof,
        sum::SumProof,
        value::{ValueProof, ValueRange},
    },
};

pub const HERE: Context = Context { task: [1; 32], round: 7, sender: [2; 32], board: [3; 32] };

/// The order of the group: the least number that is no reduced scalar.
const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// All files: name and text.
pub fn files() -> Vec<(&'static str, String)> {
    let file = |cases: Vec<Value>| serde_json::to_string_pretty(&cases).expect("plain values") + "\n";
    let mut files = vec![
        ("generators.json", file(generators())),
        ("fixed-point.json", file(fixed_point())),
        ("pads.json", file(pads())),
        ("commitments.json", file(commitments())),
        ("opening.json", file(opening())),
        ("bit.json", file(bit())),
        ("sum.json", file(sum())),
        ("antisymmetry.json", file(antisymmetry())),
        ("noise.json", file(noise())),
        ("value.json", file(value())),
        ("link.json", file(link())),
    ];
    files.extend(super::two_party_cases::files().into_iter().map(|(name, cases)| (name, file(cases))));
    files
}

/// Names a case and writes down what it gives; an honest one must be accepted, a tampered one must not.
pub fn case(kind: &str, name: &str, honest: bool, mut fields: Value) -> Value {
    fields["kind"] = kind.into();
    fields["name"] = name.into();
    let outcome = outcome(&fields);
    assert_eq!(outcome == "accept", honest, "{kind}, {name}: {outcome}");
    fields["expect"] = outcome.into();
    fields
}

pub fn context(of: &Context) -> Value {
    json!({"task": hex(of.task), "round": of.round, "sender": hex(of.sender), "board": hex(of.board)})
}

/// An honest proof, and what everybody may try with it: another context, other bytes. `points` and `scalars` are where 32-byte parts of the proof begin.
fn with_tampered(kind: &str, statement: Value, proof: &[u8], points: &[usize], scalars: &[usize]) -> Vec<Value> {
    let mut honest = statement;
    honest["context"] = context(&HERE);
    honest["proof"] = hex(proof).into();
    let mut cases = vec![case(kind, "honest", true, honest.clone())];
    for (name, other) in [
        ("replayed in another task", Context { task: [9; 32], ..HERE }),
        ("replayed in another round", Context { round: 8, ..HERE }),
        ("replayed by another sender", Context { sender: [9; 32], ..HERE }),
        ("replayed on another board", Context { board: [9; 32], ..HERE }),
    ] {
        let mut fields = honest.clone();
        fields["context"] = context(&other);
        cases.push(case(kind, name, false, fields));
    }
    let mut changed = |name: String, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = proof.to_vec();
        change(&mut bytes);
        let mut fields = honest.clone();
        fields["proof"] = hex(bytes).into();
        cases.push(case(kind, &name, false, fields));
    };
    changed("a byte too few".into(), &|bytes| bytes.truncate(bytes.len() - 1));
    changed("a byte too many".into(), &|bytes| bytes.push(0));
    changed("no bytes".into(), &Vec::clear);
    for at in points {
        changed(format!("the identity at byte {at}"), &|bytes| bytes[*at..at + 32].fill(0));
        changed(format!("no canonical point at byte {at}"), &|bytes| bytes[*at..at + 32].fill(0xff));
        changed(format!("another generator at byte {at}"), &|bytes| {
            bytes[*at..at + 32].copy_from_slice(generator("value", 1).compress().as_bytes());
        });
    }
    for at in scalars {
        changed(format!("a flipped bit in the scalar at byte {at}"), &|bytes| bytes[*at] ^= 1);
        changed(format!("the order of the group at byte {at}"), &|bytes| {
            let order = (0..32).map(|i| u8::from_str_radix(&ORDER[2 * i..2 * i + 2], 16).expect("digits"));
            bytes.splice(*at..at + 32, order);
        });
        changed(format!("the scalar plus the order at byte {at}"), &|bytes| {
            // A second encoding of the same scalar, if it fits into 32 bytes: it always does.
            let mut carry = 0_u16;
            for i in 0..32 {
                let order = u8::from_str_radix(&ORDER[2 * i..2 * i + 2], 16).expect("digits");
                carry += u16::from(bytes[at + i]) + u16::from(order);
                bytes[at + i] = carry as u8;
                carry >>= 8;
            }
        });
    }
    cases
}

/// The statement with one field replaced, under the honest proof and context.
fn with_field(honest: &Value, name: &str, field: &str, value: Value) -> Value {
    let mut fields = honest.clone();
    fields[field] = value;
    let kind = honest["kind"].as_str().expect("a kind").to_owned();
    case(&kind, name, false, fields)
}

fn points(commitments: &[Commitment]) -> Value {
    commitments.iter().map(|commitment| hex(commitment.to_bytes())).collect::<Vec<_>>().into()
}

fn generators() -> Vec<Value> {
    let names =
        [("value", 0), ("value", 1), ("value", 999), ("blinding", 0), ("left", 0), ("right", 63), ("product", 0)];
    let of = |(family, index): (&str, u64)| {
        let point = hex(generator(family, index).compress().as_bytes());
        case("generator", &format!("{family} {index}"), true, json!({"family": family, "index": index, "point": point}))
    };
    names.into_iter().map(of).collect()
}

fn fixed_point() -> Vec<Value> {
    let numbers = [
        (0.5, 0.75, "a tie goes to the even integer"),
        (0.5, 1.25, "a tie goes to the even integer, upwards"),
        (1.0 / 4294967296.0, -0.333, "a negative number"),
        (0.1, 0.3, "a step that is no power of two"),
        (1.0, 4611686018427387904.0, "the first integer that is refused"),
        (1.0, -4611686018427386880.0, "the last double that is not"),
    ];
    let of = |(step, value, name): (f64, f64, &str)| {
        let integer = Grid::new(step).expect("a fine step").nearest(value).ok();
        let fields = json!({"step": step, "value": value, "integer": integer,
            "ring": integer.map(|integer| hex(to_ring(integer).to_le_bytes())),
            "scalar": integer.map(|integer| hex(to_scalar(integer).as_bytes()))});
        case("fixed-point", name, true, fields)
    };
    numbers.into_iter().map(of).collect()
}

fn pads() -> Vec<Value> {
    let keys = [[11; 32], [12; 32]].map(|secret| (TaskKey::from_secret([1; 32], &secret), secret));
    let mut cases = Vec::new();
    for ((own, secret), (other, _)) in [(&keys[0], &keys[1]), (&keys[1], &keys[0])] {
        for (round, direction, name) in [(0, Direction::FromSmaller, "up"), (7, Direction::FromLarger, "down")] {
            let mut values = [0; 5];
            let mut pair = own.agree(other.public(), 0).expect("fine keys");
            let stream = pair.stream(round, direction).expect("unused");
            let revealed = stream.mask(&mut values).expect("few").reveal();
            let fields = json!({"task": hex([1; 32]), "secret": hex(secret), "public": hex(own.public().to_bytes()),
                "other_public": hex(other.public().to_bytes()), "round": round, "direction": name,
                "pad": values.map(|value| hex(value.to_le_bytes())), "revealed": hex(revealed.to_bytes())});
            cases.push(case("pad", &format!("round {round}, {name}, key {}", secret[0]), true, fields));
        }
    }
    let honest = cases[0].clone();
    let mut high = keys[1].0.public().to_bytes();
    high[31] |= 0x80;
    let mut one = [0; 32];
    one[0] = 1;
    for (name, public) in [
        ("small order: zero", [0; 32]),
        ("small order: one", one),
        ("a second encoding", high),
        ("one's own key", keys[0].0.public().to_bytes()),
    ] {
        cases.push(with_field(&honest, name, "other_public", hex(public).into()));
    }
    cases.push(with_field(&honest, "another task", "task", hex([2; 32]).into()));
    cases.push(with_field(&honest, "another round", "round", 1.into()));
    cases
}

fn commitments() -> Vec<Value> {
    let (generators, mut rng) = (Generators::new(8, 0), rng(1));
    let mut cases = Vec::new();
    for integers in [&[0][..], &[-5], &[1, -2, 3, 1 << 61]] {
        let opening = Opening::of_integers(integers, &mut rng);
        let values: Vec<String> = opening.values().iter().map(|value| hex(value.as_bytes())).collect();
        let commitment = opening.commit(&generators).expect("few");
        let fields = json!({"values": values, "blinding": hex(opening.blinding().as_bytes()), "commitment": hex(commitment.to_bytes())});
        let honest = case("commitment", &format!("{integers:?}"), true, fields);
        let other = opening.blinding() + Scalar::ONE;
        cases.push(with_field(&honest, "another blinding", "blinding", hex(other.as_bytes()).into()));
        cases.push(with_field(&honest, "an unreduced blinding", "blinding", ORDER.into()));
        cases.push(with_field(&honest, "the identity", "commitment", hex([0; 32]).into()));
        cases.push(with_field(&honest, "no point", "commitment", hex([0xff; 32]).into()));
        cases.push(honest);
    }
    cases
}

fn openings(integers: &[i64], seed: u64) -> (Vec<Opening>, Vec<Commitment>) {
    let mut rng = rng(seed);
    let openings: Vec<Opening> = integers.iter().map(|integer| Opening::of_integer(*integer, &mut rng)).collect();
    let commitments = openings.iter().map(|o| o.commit(&Generators::new(1, 0)).expect("one")).collect();
    (openings, commitments)
}

fn opening() -> Vec<Value> {
    let generators = Generators::new(8, 0);
    let (openings, commitments) = openings(&[4, -7, 1000], 2);
    let lent: Vec<&Opening> = openings.iter().collect();
    let proof = OpeningProof::prove(&commitments, &lent, &generators, &HERE, &mut rng(3)).expect("lengths").to_bytes();
    let statement = json!({"dimension": 1, "commitments": points(&commitments)});
    let mut cases = with_tampered("opening", statement, &proof, &[0], &[32, 64]);
    let honest = cases[0].clone();
    let swapped = [commitments[1], commitments[0], commitments[2]];
    cases.push(with_field(&honest, "commitments in another order", "commitments", points(&swapped)));
    cases.push(with_field(&honest, "a commitment less", "commitments", points(&commitments[..2])));
    let vector = Opening::of_integers(&[1, 2, 3], &mut rng(4));
    let commitment = [vector.commit(&generators).expect("few")];
    let proof =
        OpeningProof::prove(&commitment, &[&vector], &generators, &HERE, &mut rng(5)).expect("lengths").to_bytes();
    let statement =
        json!({"dimension": 3, "commitments": points(&commitment), "context": context(&HERE), "proof": hex(proof)});
    cases.push(case("opening", "an honest vector", true, statement));
    cases
}

fn bit() -> Vec<Value> {
    let mut cases = Vec::new();
    for bit in [0_u8, 1] {
        let (commitment, proof) = BitProof::prove(bit.into(), &Scalar::from(77_u64), &HERE, &mut rng(6));
        let statement = json!({"commitment": hex(commitment.to_bytes()), "bit": bit});
        cases.extend(with_tampered("bit", statement, &proof.to_bytes(), &[0, 32], &[64, 96, 128]));
    }
    let (_, commitments) = openings(&[2], 7);
    cases.push(with_field(&cases[0], "a commitment to two", "commitment", hex(commitments[0].to_bytes()).into()));
    cases
}

fn sum() -> Vec<Value> {
    let (openings, commitments) = openings(&[40, -7, 9], 8);
    let sum = Opening::sum(&openings).expect("one dimension");
    let proof = SumProof::prove(&commitments, sum.values(), sum.blinding(), &HERE, &mut rng(9)).expect("lengths");
    let statement = json!({"commitments": points(&commitments), "published": [hex(sum.values()[0].as_bytes())]});
    let mut cases = with_tampered("sum", statement, &proof.to_bytes(), &[0], &[32]);
    let honest = cases[0].clone();
    cases.push(with_field(&honest, "one more", "published", json!([hex(to_scalar(43).as_bytes())])));
    cases.push(with_field(&honest, "an unreduced sum", "published", json!([ORDER])));
    let merged = [Commitment::sum(&commitments[..2]), commitments[2]];
    cases.push(with_field(&honest, "two terms as one", "commitments", points(&merged)));
    cases
}

fn antisymmetry() -> Vec<Value> {
    let generators = Generators::new(1, 0);
    let keys = [[11; 32], [12; 32]].map(|secret| TaskKey::from_secret([1; 32], &secret));
    let commit = |own: usize, round| {
        let mut pair = keys[own].agree(keys[1 - own].public(), 0).expect("fine keys");
        let stream = pair.stream(round, Direction::FromSmaller).expect("unused");
        Opening::from(stream.scalars(1).expect("one").0).commit(&generators).expect("one")
    };
    let fields = json!({"one": hex(commit(0, 1).to_bytes()), "other": hex(commit(1, 1).to_bytes())});
    let honest = case("antisymmetry", "honest", true, fields);
    vec![
        with_field(&honest, "of another round", "other", hex(commit(1, 2).to_bytes()).into()),
        with_field(&honest, "the same sign", "other", honest["one"].clone()),
        with_field(&honest, "the identity", "other", hex([0; 32]).into()),
        honest,
    ]
}

fn noise() -> Vec<Value> {
    let (generators, mut rng) = (Generators::new(1, 64), rng(10));
    let bits = NoiseBits::draw(NoiseLaw::new(20).expect("even"), &mut rng).expect("few");
    let commitment = bits.commit(&generators).expect("few");
    let share = bits.finish(&commitment, &Beacon([5; 32]), &generators, &HERE, &mut rng).expect("few");
    let statement = json!({"bits": 20, "bits_commitment": hex(commitment.to_bytes()), "beacon": hex([5; 32]),
        "share": hex(share.commitment.to_bytes())});
    let proof = share.proof.to_bytes();
    let mut cases = with_tampered(
        "noise",
        statement,
        &proof,
        &[0, 32, 64, 192, 224],
        &[96, 128, 160, proof.len() - 64, proof.len() - 32],
    );
    let honest = cases[0].clone();
    cases.push(with_field(&honest, "another beacon", "beacon", hex([6; 32]).into()));
    cases.push(with_field(&honest, "another number of bits", "bits", 22.into()));
    cases.push(with_field(&honest, "another number of rounds", "bits", 64.into()));
    cases.push(with_field(&honest, "another share", "share", honest["bits_commitment"].clone()));
    cases.push(with_field(&honest, "other bits", "bits_commitment", honest["share"].clone()));
    cases
}

fn value() -> Vec<Value> {
    let mut cases = Vec::new();
    for (low, high, values) in [(0, 255, &[255][..]), (-10, 1000, &[1000, -10])] {
        let (openings, commitments) = openings(values, 11);
        let range = ValueRange::new(low, high, 4).expect("a range");
        let lent: Vec<&Opening> = openings.iter().collect();
        let proof = ValueProof::prove(&range, &commitments, &lent, &HERE, &mut rng(12)).expect("in range").to_bytes();
        let statement = json!({"low": low, "high": high, "commitments": points(&commitments)});
        let first = cases.len();
        cases.extend(with_tampered("value", statement, &proof, &[33, 65, 97, 193], &[1, 129, 161]));
        let honest = cases[first].clone();
        cases.push(with_field(&honest, "a narrower range", "high", (high - 1).into()));
        cases.push(with_field(&honest, "a shifted range", "low", (low - 1).into()));
    }
    cases
}

fn link() -> Vec<Value> {
    let (generators, mut rng) = (Generators::new(8, 0), rng(13));
    let numbers = [3, -1, 4];
    let (openings, commitments) = openings(&numbers, 14);
    let lent: Vec<&Opening> = openings.iter().collect();
    let vector = Opening::of_integers(&numbers, &mut rng);
    let commitment = vector.commit(&generators).expect("few");
    let proof = LinkProof::prove((&commitment, &vector), (&commitments, &lent), &generators, &HERE, &mut rng);
    let proof = proof.expect("lengths").to_bytes();
    let statement = json!({"vector": hex(commitment.to_bytes()), "coordinates": points(&commitments)});
    let mut cases = with_tampered("link", statement, &proof, &[0, 32], &[64, 96, 128]);
    let swapped = [commitments[1], commitments[0], commitments[2]];
    cases.push(with_field(&cases[0], "coordinates in another order", "coordinates", points(&swapped)));
    cases.push(with_field(&cases[0], "a coordinate less", "coordinates", points(&commitments[..2])));
    cases
}
