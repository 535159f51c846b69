//! Replays one published case with nothing but what stands in it.

use serde_json::Value;
use sottovoce_crypto::{
    Context, Flaw, Scalar,
    agreement::{TaskKey, TaskPublicKey},
    bits::BitsCommitment,
    commitment::Commitment,
    fixed_point::{Grid, to_ring, to_scalar},
    generators::{Generators, generator},
    pad::{Direction, RevealedPad},
    proofs::{
        antisymmetry,
        bit::BitProof,
        link::LinkProof,
        noise::{Beacon, NoiseLaw, NoiseProof, NoiseStatement},
        opening::OpeningProof,
        sum::SumProof,
        value::{ValueProof, ValueRange},
    },
};

/// Bytes as they stand in the files.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("a string of hexadecimal digits");
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("digits")).collect()
}

pub fn array(value: &Value) -> [u8; 32] {
    bytes(value).try_into().expect("32 bytes")
}

pub fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn commitment(value: &Value) -> Result<Commitment, Flaw> {
    Commitment::from_bytes(array(value))
}

fn commitments(value: &Value) -> Result<Vec<Commitment>, Flaw> {
    list(value).iter().map(commitment).collect()
}

fn scalar(value: &Value) -> Result<Scalar, Flaw> {
    Option::from(Scalar::from_canonical_bytes(array(value))).ok_or(Flaw::ScalarNotReduced)
}

fn scalars(value: &Value) -> Result<Vec<Scalar>, Flaw> {
    list(value).iter().map(scalar).collect()
}

pub fn integer(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

pub fn context(case: &Value) -> Context {
    let context = &case["context"];
    Context {
        task: array(&context["task"]),
        round: context["round"].as_u64().expect("a round"),
        sender: array(&context["sender"]),
        board: array(&context["board"]),
    }
}

/// What the case gives: `accept`, `differs` for a known answer that is another one, or the name of a reason.
pub fn outcome(case: &Value) -> String {
    match run(case) {
        Ok(true) => "accept".to_owned(),
        Ok(false) => "differs".to_owned(),
        Err(flaw) => format!("{flaw:?}"),
    }
}

fn run(case: &Value) -> Result<bool, Flaw> {
    let kind = case["kind"].as_str().expect("a kind");
    match kind {
        "generator" => {
            let point =
                generator(case["family"].as_str().expect("a family"), case["index"].as_u64().expect("an index"));
            Ok(hex(point.compress().as_bytes()) == case["point"])
        }
        "fixed-point" => Ok(fixed_point(case)),
        "pad" => pad(case),
        "label-hash" | "gate" | "base-transfer" | "extension" | "session" => {
            super::two_party_replay::answer(case).map(|answer| answer == case["answer"])
        }
        _ => proof(kind, case).map(|()| true),
    }
}

fn fixed_point(case: &Value) -> bool {
    let grid = Grid::new(case["step"].as_f64().expect("a step")).expect("a fine step");
    match grid.nearest(case["value"].as_f64().expect("a number")) {
        Ok(integer) => {
            case["integer"] == integer
                && case["ring"] == hex(to_ring(integer).to_le_bytes())
                && case["scalar"] == hex(to_scalar(integer).as_bytes())
        }
        Err(_) => case["integer"].is_null(),
    }
}

fn pad(case: &Value) -> Result<bool, Flaw> {
    let key = TaskKey::from_secret(array(&case["task"]), &array(&case["secret"]));
    let theirs = TaskPublicKey::from_bytes(array(&case["other_public"]))?;
    let mut secret = key.agree(theirs, 0)?;
    let direction = if case["direction"] == "up" { Direction::FromSmaller } else { Direction::FromLarger };
    let round = case["round"].as_u64().expect("a round");
    let mut values = vec![0; list(&case["pad"]).len()];
    let revealed = secret.stream(round, direction).expect("unused").mask(&mut values).expect("few").reveal();
    let opened = RevealedPad::from_bytes(&bytes(&case["revealed"]))?;
    let shown: Vec<String> = values.iter().map(|value| hex(value.to_le_bytes())).collect();
    Ok(case["public"] == hex(key.public().to_bytes()) && case["pad"] == Value::from(shown) && opened == revealed)
}

fn proof(kind: &str, case: &Value) -> Result<(), Flaw> {
    let generators = Generators::new(8, 64);
    if kind == "commitment" {
        return commitment(&case["commitment"])?.opens_to(
            &scalars(&case["values"])?,
            &scalar(&case["blinding"])?,
            &generators,
        );
    }
    if kind == "antisymmetry" {
        return antisymmetry::verify(&commitment(&case["one"])?, &commitment(&case["other"])?);
    }
    let (here, proof) = (context(case), bytes(&case["proof"]));
    match kind {
        "opening" => {
            let dimension = case["dimension"].as_u64().expect("a dimension") as usize;
            let commitments = commitments(&case["commitments"])?;
            OpeningProof::from_bytes(&proof, dimension)?.verify(&commitments, &generators, &here)
        }
        "bit" => BitProof::from_bytes(&proof)?.verify(&commitment(&case["commitment"])?, &generators, &here),
        "sum" => {
            let (commitments, published) = (commitments(&case["commitments"])?, scalars(&case["published"])?);
            SumProof::from_bytes(&proof)?.verify(&commitments, &published, &generators, &here)
        }
        "link" => {
            let (vector, coordinates) = (commitment(&case["vector"])?, commitments(&case["coordinates"])?);
            LinkProof::from_bytes(&proof, coordinates.len())?.verify(&vector, &coordinates, &generators, &here)
        }
        "noise" => {
            let law = NoiseLaw::new(integer(&case["bits"]) as usize).expect("an even number");
            let (bits, share) =
                (BitsCommitment::from_bytes(array(&case["bits_commitment"]))?, commitment(&case["share"])?);
            let beacon = Beacon(array(&case["beacon"]));
            let statement = NoiseStatement { law, bits: &bits, beacon: &beacon, share: &share };
            NoiseProof::from_bytes(&proof, law)?.verify(&statement, &generators, &here)
        }
        "value" => {
            let commitments = commitments(&case["commitments"])?;
            let range = ValueRange::new(integer(&case["low"]), integer(&case["high"]), 4).expect("a range");
            ValueProof::from_bytes(&proof, &range, commitments.len())?.verify(&range, &commitments, &here)
        }
        other => panic!("a case of the unknown kind {other}"),
    }
}
