//! Computes what a published case of two-party computation gives, with nothing but what stands in it.

use super::replay::{array, bytes, context, hex, integer, list};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sottovoce_crypto::{
    Flaw,
    two_party::{
        Session,
        base_transfer::{TransferKey, TransferSender, choose},
        builder::Builder,
        circuit::{Circuit, Gate, Literal, Output},
        evaluator::{Evaluated, EvaluatorOpening},
        extension::{COLUMNS, ExtensionReceiver, ExtensionSender},
        garbler::{Garbled, Garbler},
        half_gates::{TABLE_BYTES, evaluate_and, garble_and},
        hash::LabelHash,
        inputs::Inputs,
        kernel::{self, Larger},
        laplace::Laplace,
        response::RandomizedResponse,
        share::combine,
    },
};

fn label(value: &Value) -> u128 {
    u128::from_le_bytes(bytes(value).try_into().expect("16 bytes"))
}

fn key(value: &Value) -> [u8; 16] {
    bytes(value).try_into().expect("16 bytes")
}

fn labels(labels: &[u128]) -> Vec<String> {
    labels.iter().map(|label| hex(label.to_le_bytes())).collect()
}

fn rng(value: &Value) -> ChaCha20Rng {
    ChaCha20Rng::from_seed(array(value))
}

/// The answer to a case, or why it is refused.
pub fn answer(case: &Value) -> Result<Value, Flaw> {
    match case["kind"].as_str().expect("a kind") {
        "label-hash" => {
            let hash = LabelHash::new(&key(&case["key"])).hash(label(&case["label"]), label(&case["tweak"]));
            Ok(json!({"hash": hex(hash.to_le_bytes())}))
        }
        "gate" => Ok(gate(case)),
        "base-transfer" => base_transfer(case),
        "extension" => Ok(extension(case)),
        "session" => session(case),
        other => panic!("a case of the unknown kind {other}"),
    }
}

/// One AND gate in several lanes: garbled, and evaluated for the bits of each lane.
fn gate(case: &Value) -> Value {
    let lanes: Vec<[u128; 2]> = list(&case["labels"]).iter().map(|pair| [label(&pair[0]), label(&pair[1])]).collect();
    let column = |which: usize| lanes.iter().map(|pair| pair[which]).collect::<Vec<_>>();
    let (left, right, delta) = (column(0), column(1), label(&case["delta"]));
    let negated = [0, 1].map(|which| case["negated"][which].as_bool().expect("a flag"));
    let number = case["gate"].as_u64().expect("a number");
    let (mut zeros, mut tables) = (vec![0; lanes.len()], vec![0; TABLE_BYTES * lanes.len()]);
    let mut hash = LabelHash::new(&key(&case["key"]));
    let operands = [(&left[..], negated[0]), (&right[..], negated[1])];
    garble_and(&mut hash, delta, number, operands, &mut zeros, &mut tables);
    let bits = list(&case["bits"]);
    let held = |which: usize, of: &[u128]| -> Vec<u128> {
        of.iter().zip(bits).map(|(label, pair)| label ^ if pair[which] == 1 { delta } else { 0 }).collect()
    };
    let mut got = vec![0; lanes.len()];
    evaluate_and(&mut hash, number, [&held(0, &left), &held(1, &right)], &mut got, &tables);
    json!({"tables": hex(tables), "zeros": labels(&zeros), "got": labels(&got)})
}

fn base_transfer(case: &Value) -> Result<Value, Flaw> {
    let sender = TransferSender::new(array(&case["binding"]), &mut rng(&case["sender_seed"]));
    let opening = if case["opening"].is_null() { sender.opening() } else { array(&case["opening"]) };
    let choices: Vec<u8> = list(&case["choices"]).iter().map(|bit| integer(bit) as u8).collect();
    let (honest, chosen) = choose(array(&case["binding"]), opening, &choices, &mut rng(&case["receiver_seed"]))?;
    let points = if case["points"].is_null() { honest } else { bytes(&case["points"]) };
    let pairs = sender.receive(&points, choices.len())?;
    let both: Vec<[String; 2]> = pairs.iter().map(|pair| [hex(*pair[0]), hex(*pair[1])]).collect();
    let chosen: Vec<String> = chosen.iter().map(|key| hex(**key)).collect();
    Ok(json!({"opening": hex(opening), "points": hex(&points), "pairs": both, "chosen": chosen}))
}

/// Keys of the columns are hashes of a seed and their place, so that the file stays short; the long message is told by
/// its hash.
fn extension(case: &Value) -> Value {
    let delta = label(&case["delta"]);
    let key = |column: usize, which: u8| -> TransferKey {
        let hash = Sha256::new().chain_update(bytes(&case["keys_seed"])).chain_update([column as u8, which]).finalize();
        TransferKey::new(hash[..16].try_into().expect("16 bytes"))
    };
    let pairs: Vec<[TransferKey; 2]> = (0..COLUMNS).map(|i| [key(i, 0), key(i, 1)]).collect();
    let chosen: Vec<TransferKey> = (0..COLUMNS).map(|i| key(i, (delta >> i & 1) as u8)).collect();
    let (mut receiver, mut sender) = (ExtensionReceiver::new(&pairs), ExtensionSender::new(&chosen, delta));
    let mut batches = Vec::new();
    for choices in list(&case["choices"]) {
        let choices: Vec<u128> = list(choices).iter().map(label).collect();
        let mut message = Vec::new();
        let got = receiver.extend(&choices, &mut message);
        if let Some(at) = case["flip"].as_u64() {
            message[at as usize] ^= 1;
        }
        let zeros = sender.extend(&message);
        let all = |of: &[u128]| hex(Sha256::digest(of.iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<u8>>()));
        let (first, last) = (labels(&got[..3]), labels(&zeros[zeros.len() - 3..]));
        batches.push(json!({"message": hex(Sha256::digest(&message)), "first_got": first, "last_zeros": last,
            "got": all(&got), "zeros": all(&zeros)}));
    }
    Value::from(batches)
}

/// The circuits of the published sessions, by name.
pub fn circuit(name: &str) -> Circuit {
    let mut builder = Builder::new();
    let value = match name {
        "larger of 4 bits" => kernel::comparison(4, Larger::Garbler, &mut builder),
        "smaller of 32 bits" => kernel::comparison(32, Larger::Evaluator, &mut builder),
        "Kendall of 3 bits, response of epsilon 1" => {
            let value = kernel::kendall(3, &mut builder);
            RandomizedResponse::new(1.0, 3).expect("fine").answer(&value, &mut builder).expect("two bits")
        }
        "Gini of 3 bits, Laplace of epsilon 1" => {
            let value = kernel::gini(3, &mut builder);
            Laplace::new(1.0, 3, 7).expect("fine").add_to(&value, &mut builder).expect("its width")
        }
        "squared difference of 4 bits" => kernel::squared_difference(4, 0, &mut builder),
        other => panic!("the unknown circuit {other}"),
    };
    builder.output_number(&value);
    builder.build().expect("a circuit")
}

/// A circuit as text: `x` and `a` for gates, slots, a `!` before a negated one.
pub fn rendered(circuit: &Circuit) -> Value {
    let literal = |literal: Literal| format!("{}{}", if literal.negated { "!" } else { "" }, literal.slot);
    let gate = |gate: &Gate| match *gate {
        Gate::Xor { left, right, out } => format!("x {left} {right} {out}"),
        Gate::And { left, right, out } => format!("a {} {} {out}", literal(left), literal(right)),
    };
    let output = |output: &Output| match *output {
        Output::Constant(bit) => format!("={}", u8::from(bit)),
        Output::Wire(wire) => literal(wire),
    };
    let (inputs, gates) = (circuit.inputs(), circuit.gates().iter().map(gate).collect::<Vec<_>>());
    json!({"garbler": inputs.garbler, "evaluator": inputs.evaluator, "joint": inputs.joint, "slots": circuit.slots(),
        "gates": gates.join("; "), "outputs": circuit.outputs().iter().map(output).collect::<Vec<_>>().join(" "),
        "digest": hex(circuit.digest())})
}

/// Changes the message that the case tampers with: some bytes put in their place, or others XORed, a cut, or more of them.
fn on_the_way(case: &Value, name: &str, mut message: Vec<u8>) -> Vec<u8> {
    let tamper = &case["tamper"];
    if tamper["message"] == name {
        let at = tamper["at"].as_u64().unwrap_or(0) as usize;
        if !tamper["put"].is_null() {
            let put = bytes(&tamper["put"]);
            message[at..at + put.len()].copy_from_slice(&put);
        }
        if let Some(mask) = tamper["xor"].as_u64() {
            message[at] ^= mask as u8;
        }
        message.truncate(tamper["cut"].as_u64().map_or(usize::MAX, |cut| cut as usize));
        message.extend(tamper["append"].as_str().map_or(Vec::new(), |_| bytes(&tamper["append"])));
    }
    message
}

fn session(case: &Value) -> Result<Value, Flaw> {
    let circuit = circuit(case["circuit_name"].as_str().expect("a name"));
    let shown = rendered(&circuit);
    let session = Session::new(&context(case), array(&case["evaluator"]), array(&case["aggregator"]), circuit);
    let session = session.expect("two members");
    let (mut garblers, mut evaluators) = (rng(&case["garbler_seed"]), rng(&case["evaluator_seed"]));
    let told = |message: &[u8]| hex(Sha256::digest(message));
    let (waiting, opening) = EvaluatorOpening::new(&session, &mut evaluators);
    let opening = on_the_way(case, "opening", opening);
    let (mut garbler, choices) = Garbler::open(&session, &opening, &mut garblers)?;
    let choices = on_the_way(case, "choices", choices);
    let mut evaluator = waiting.receive(&choices)?;
    let mut batches = Vec::new();
    for batch in list(&case["batches"]) {
        let instances = list(&batch["garbler"]).len();
        let fill = |mut inputs: Inputs, rows: &Value| {
            for number in list(rows).iter().flat_map(list) {
                inputs.push(number[0].as_u64().expect("a number"), integer(&number[1]) as usize).expect("in range");
            }
            inputs
        };
        let theirs = fill(Inputs::for_evaluator(&session, instances).expect("a batch"), &batch["evaluator"]);
        let (next, mut evaluation, request) = evaluator.request(theirs, &mut evaluators).expect("room");
        evaluator = next;
        let request = on_the_way(case, "request", request);
        let mine = fill(Inputs::for_garbler(&session, instances).expect("a batch"), &batch["garbler"]);
        let (next, mut garbling) = garbler.garble(&request, mine, &mut garblers)?;
        garbler = next;
        let mut tables = Vec::new();
        let shares = loop {
            let (garbled, message) = garbling.next();
            let message = on_the_way(case, "tables", message);
            let evaluated = evaluation.receive(&message)?;
            tables.push(told(&message));
            match (garbled, evaluated) {
                (Garbled::Done(mine), Evaluated::Done(theirs)) => break [mine, theirs].map(|share| share.to_bytes()),
                (Garbled::More(more), Evaluated::More(rest)) => (garbling, evaluation) = (more, rest),
                _ => panic!("one of the two is done, the other is not"),
            }
        };
        let [mine, theirs] = shares;
        let mine = on_the_way(case, "garbler's share", mine);
        let theirs = on_the_way(case, "evaluator's share", theirs);
        let outputs = combine(&session, &mine, &theirs)?;
        let numbers: Vec<u64> = (0..outputs.instances()).map(|instance| outputs.number(instance)).collect();
        batches.push(json!({"request": told(&request), "tables": tables, "garblers_share": hex(&mine),
            "evaluators_share": hex(&theirs), "outputs": numbers}));
    }
    Ok(json!({"circuit": shown, "opening": hex(&opening), "choices": told(&choices), "batches": batches}))
}
