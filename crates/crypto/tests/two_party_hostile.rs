//! What a hostile peer, or a bad line, can put into a two-party session: every malformed message is refused with a
//! reason, nothing panics, and what is well-formed but changed is noticed by the aggregator.

mod pair;

use pair::{HERE, Messages, Pair, Row, build, session};
use proptest::prelude::*;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_crypto::{
    Context, Flaw, Unfit,
    two_party::{
        Session,
        base_transfer::{TransferSender, choose},
        circuit::Circuit,
        evaluator::{Evaluated, Evaluation, Evaluator, EvaluatorOpening},
        garbler::{Garbled, Garbler, Garbling},
        inputs::Inputs,
        kernel::{self, Larger},
        message::{Choices, Opening, Request, ShareMessage, Tables},
        response::RandomizedResponse,
        share::{Share, combine},
    },
};

const BITS: usize = 8;
/// Instances of the batches in these tests.
const INSTANCES: usize = 3;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn circuit() -> Circuit {
    build(|builder| {
        let larger = kernel::comparison(BITS, Larger::Garbler, builder);
        let response = RandomizedResponse::new(1.0, 2).expect("fine");
        let told = response.answer(&larger, builder).expect("one bit");
        builder.output_number(&told);
    })
}

fn inputs(mut empty: Inputs) -> Inputs {
    (0..INSTANCES).for_each(|i| empty.push(i as u64 + 1, BITS).expect("in range"));
    empty
}

fn garblers(session: &Session) -> Inputs {
    inputs(Inputs::for_garbler(session, INSTANCES).expect("a batch"))
}

fn evaluators(session: &Session) -> Inputs {
    inputs(Inputs::for_evaluator(session, INSTANCES).expect("a batch"))
}

/// The same session again and again: all states follow from the seed.
fn opened(session: &Session) -> (Garbler, Evaluator) {
    let (waiting, opening) = EvaluatorOpening::new(session, &mut rng(1));
    let (garbler, choices) = Garbler::open(session, &opening, &mut rng(2)).expect("honest");
    (garbler, waiting.receive(&choices).expect("honest"))
}

/// A request, and the states that wait for its answer.
fn requested(session: &Session) -> (Garbler, Evaluation, Vec<u8>) {
    let (garbler, evaluator) = opened(session);
    let (_, evaluation, request) = evaluator.request(evaluators(session), &mut rng(3)).expect("a batch");
    (garbler, evaluation, request)
}

fn garbled(session: &Session, garbler: Garbler, request: &[u8]) -> Result<(Garbler, Garbling), Flaw> {
    garbler.garble(request, garblers(session), &mut rng(4))
}

/// Both shares, if the only message of tables is changed on its way.
fn finished(garbling: Garbling, evaluation: Evaluation, change: impl FnOnce(&mut Vec<u8>)) -> Result<[Share; 2], Flaw> {
    let (garbled, mut tables) = garbling.next();
    change(&mut tables);
    match (garbled, evaluation.receive(&tables)?) {
        (Garbled::Done(mine), Evaluated::Done(theirs)) => Ok([mine, theirs]),
        _ => panic!("more than one message"),
    }
}

fn combined(session: &Session, shares: &[Share; 2]) -> Result<Vec<u64>, Flaw> {
    let outputs = combine(session, &shares[0].to_bytes(), &shares[1].to_bytes())?;
    Ok((0..outputs.instances()).map(|instance| outputs.number(instance)).collect())
}

/// An honest message: refused by `read` at every other length, with the right reason.
fn refused_at_other_lengths(name: &str, message: &[u8], mut read: impl FnMut(&[u8]) -> Option<Flaw>, lengths: usize) {
    assert_eq!(read(message), None, "{name}: an honest message");
    let step = (message.len() / lengths).max(1);
    for length in (0..message.len()).step_by(step).chain([message.len() - 1]) {
        assert_eq!(read(&message[..length]), Some(Flaw::TooShort), "{name}: the first {length} bytes");
    }
    for extra in [&[0][..], &[1], &[0; 2048]] {
        let longer = [message, extra].concat();
        assert_eq!(read(&longer), Some(Flaw::TrailingBytes), "{name}: {} bytes more", extra.len());
    }
}

#[test]
fn messages_of_other_lengths_are_refused_by_every_state() {
    let session = session(circuit());
    let (_, opening) = EvaluatorOpening::new(&session, &mut rng(1));
    refused_at_other_lengths("opening", &opening, |m| Garbler::open(&session, m, &mut rng(2)).err(), 65);
    let (_, choices) = Garbler::open(&session, &opening, &mut rng(2)).expect("honest");
    let read = |message: &[u8]| EvaluatorOpening::new(&session, &mut rng(1)).0.receive(message).err();
    refused_at_other_lengths("choices", &choices, read, 40);
    let (_, _, request) = requested(&session);
    let read = |message: &[u8]| garbled(&session, requested(&session).0, message).err();
    refused_at_other_lengths("request", &request, read, 15);
    let (garbler, evaluation, _) = requested(&session);
    let (_, tables) = garbled(&session, garbler, &request).expect("honest").1.next();
    drop(evaluation);
    let read = |message: &[u8]| requested(&session).1.receive(message).err();
    refused_at_other_lengths("tables", &tables, read, 15);
    let Messages { shares, .. } = honest_batch(&session);
    let read = |message: &[u8]| combine(&session, message, &shares[1]).err();
    refused_at_other_lengths("garbler's share", &shares[0], read, 100);
    let read = |message: &[u8]| combine(&session, &shares[0], message).err();
    refused_at_other_lengths("evaluator's share", &shares[1], read, 100);
}

fn honest_batch(session: &Session) -> Messages {
    let rows = |()| -> Vec<Row> { (0..INSTANCES).map(|i| vec![(i as u64 + 1, BITS)]).collect() };
    Pair::open(session, 7).run(&rows(()), &rows(())).1
}

/// Every byte of the head of a message is looked at where it arrives.
#[test]
fn a_changed_byte_in_the_head_of_a_message_is_refused_at_once() {
    let session = session(circuit());
    let (garbler, evaluation, request) = requested(&session);
    let (_, tables) = garbled(&session, garbler, &request).expect("honest").1.next();
    drop(evaluation);
    let flip = |message: &[u8], at: usize| {
        let mut changed = message.to_vec();
        changed[at] ^= 0x40;
        changed
    };
    let kinds = [(0, Flaw::UnknownTag), (1, Flaw::WrongSession), (32, Flaw::WrongSession)];
    for (at, flaw) in kinds.into_iter().chain([(33, Flaw::OutOfOrder), (40, Flaw::OutOfOrder)]) {
        let read = garbled(&session, requested(&session).0, &flip(&request, at));
        assert_eq!(read.err(), Some(flaw), "byte {at} of a request");
        assert_eq!(requested(&session).1.receive(&flip(&tables, at)).err(), Some(flaw), "byte {at} of tables");
    }
    assert!(garbled(&session, requested(&session).0, &flip(&request, 41)).is_err(), "the number of instances");
    assert!(requested(&session).1.receive(&flip(&tables, 41)).is_err(), "the number of the message");
    let (_, opening) = EvaluatorOpening::new(&session, &mut rng(1));
    let (_, choices) = Garbler::open(&session, &opening, &mut rng(2)).expect("honest");
    for (at, flaw) in kinds {
        assert_eq!(Garbler::open(&session, &flip(&opening, at), &mut rng(2)).err(), Some(flaw), "byte {at}");
        let waiting = EvaluatorOpening::new(&session, &mut rng(1)).0;
        assert_eq!(waiting.receive(&flip(&choices, at)).err(), Some(flaw), "byte {at} of choices");
    }
}

/// A bit that is flipped between the two, in what has no structure of its own.
#[test]
fn a_flipped_bit_in_columns_or_tables_is_noticed_by_the_aggregator() {
    let session = session(circuit());
    let (_, _, request) = requested(&session);
    for at in (45..request.len()).step_by(173) {
        let (garbler, evaluation, mut request) = requested(&session);
        request[at] ^= 1 << (at % 8);
        let (_, garbling) = garbled(&session, garbler, &request).expect("well-formed");
        let shares = finished(garbling, evaluation, |_| ()).expect("well-formed");
        assert_eq!(combined(&session, &shares), Err(Flaw::TranscriptsDiffer), "byte {at} of the request");
    }
    let (garbler, _, request) = requested(&session);
    let length = garbled(&session, garbler, &request).expect("honest").1.next().1.len();
    for at in (45..length).step_by(61) {
        let (garbler, evaluation, request) = requested(&session);
        let (_, garbling) = garbled(&session, garbler, &request).expect("honest");
        let shares = finished(garbling, evaluation, |tables| tables[at] ^= 1 << (at % 8)).expect("well-formed");
        assert_eq!(combined(&session, &shares), Err(Flaw::TranscriptsDiffer), "byte {at} of the tables");
    }
}

/// A point that is exchanged in the base transfer: either no point, or the two sides no longer mean the same session.
#[test]
fn changed_points_of_the_base_transfer_end_the_session() {
    let session = session(circuit());
    let (_, opening) = EvaluatorOpening::new(&session, &mut rng(1));
    let (_, other) = EvaluatorOpening::new(&session, &mut rng(9));
    let (garbler, choices) = Garbler::open(&session, &other, &mut rng(2)).expect("a point");
    let evaluator = EvaluatorOpening::new(&session, &mut rng(1)).0.receive(&choices).expect("points");
    let (_, _, request) = evaluator.request(evaluators(&session), &mut rng(3)).expect("a batch");
    assert_eq!(garbled(&session, garbler, &request).err(), Some(Flaw::WrongSession), "another opening");
    let (garbler, choices) = Garbler::open(&session, &opening, &mut rng(2)).expect("honest");
    for (point, flaw) in [([0; 32], Flaw::IdentityPoint), ([0xff; 32], Flaw::PointNotCanonical)] {
        for i in [0, 64, 127] {
            let mut changed = choices.clone();
            changed[33 + 32 * i..][..32].copy_from_slice(&point);
            let waiting = EvaluatorOpening::new(&session, &mut rng(1)).0;
            assert_eq!(waiting.receive(&changed).err(), Some(flaw));
        }
        let mut changed = opening.clone();
        changed[33..].copy_from_slice(&point);
        assert_eq!(Garbler::open(&session, &changed, &mut rng(2)).err(), Some(flaw));
    }
    let mut changed = choices.clone();
    changed.copy_within(33..65, 65);
    let evaluator = EvaluatorOpening::new(&session, &mut rng(1)).0.receive(&changed).expect("points");
    let (_, _, request) = evaluator.request(evaluators(&session), &mut rng(3)).expect("a batch");
    assert_eq!(garbled(&session, garbler, &request).err(), Some(Flaw::WrongSession), "a point that comes twice");
}

#[test]
fn messages_of_other_sessions_members_rounds_and_circuits_are_refused() {
    let here = session(circuit());
    let contexts = [
        Context { task: [9; 32], ..HERE },
        Context { round: 8, ..HERE },
        Context { board: [9; 32], ..HERE },
        Context { sender: [9; 32], ..HERE },
    ];
    let mut others: Vec<Session> =
        contexts.iter().map(|context| Session::new(context, [4; 32], [5; 32], circuit()).expect("fine")).collect();
    others.push(Session::new(&HERE, [9; 32], [5; 32], circuit()).expect("another evaluator"));
    others.push(Session::new(&HERE, [4; 32], [9; 32], circuit()).expect("another aggregator"));
    others.push(session(build(|builder| {
        let larger = kernel::comparison(BITS, Larger::Evaluator, builder);
        builder.output_number(&larger);
    })));
    let (_, opening) = EvaluatorOpening::new(&here, &mut rng(1));
    let (_, choices) = Garbler::open(&here, &opening, &mut rng(2)).expect("honest");
    for other in &others {
        assert_ne!(other.digest(), here.digest());
        assert_eq!(Garbler::open(other, &opening, &mut rng(2)).err(), Some(Flaw::WrongSession));
        let waiting = EvaluatorOpening::new(other, &mut rng(1)).0;
        assert_eq!(waiting.receive(&choices).err(), Some(Flaw::WrongSession));
    }
    // A second run of the same session has another name.
    let (garbler, _, request) = requested(&here);
    let mut again = Pair::open(&here, 8);
    let rows: Vec<Row> = (0..INSTANCES).map(|_| vec![(1, BITS)]).collect();
    let (_, of_again) = again.run(&rows, &rows);
    assert_eq!(garbled(&here, garbler, &of_again.request).err(), Some(Flaw::WrongSession));
    assert_eq!(requested(&here).1.receive(&of_again.tables[0]).err(), Some(Flaw::WrongSession));
    let mine = honest_batch(&here);
    assert_eq!(combine(&here, &mine.shares[0], &of_again.shares[1]).err(), Some(Flaw::TranscriptsDiffer));
    assert_eq!(combine(&others[0], &mine.shares[0], &mine.shares[1]).err(), Some(Flaw::WrongSession));
    assert_eq!(Session::new(&HERE, HERE.sender, [5; 32], circuit()).err(), Some(Unfit::SameMember));
    drop(request);
}

#[test]
fn messages_that_come_twice_or_in_another_order_are_refused() {
    let session = session(circuit());
    let (garbler, evaluator) = opened(&session);
    let (evaluator, first, request) = evaluator.request(evaluators(&session), &mut rng(3)).expect("a batch");
    let (_, second, next_request) = evaluator.request(evaluators(&session), &mut rng(5)).expect("a batch");
    assert_eq!(garbled(&session, opened(&session).0, &next_request).err(), Some(Flaw::OutOfOrder), "a batch too early");
    let (garbler, garbling) = garbled(&session, garbler, &request).expect("honest");
    let (garbled_first, tables) = garbling.next();
    let (garbler, garbling) = garbled(&session, garbler, &next_request).expect("honest");
    assert_eq!(garbled(&session, garbler, &request).err(), Some(Flaw::OutOfOrder), "a batch that comes twice");
    let (garbled_second, next_tables) = garbling.next();
    assert_eq!(second.receive(&tables).err(), Some(Flaw::OutOfOrder), "tables of another batch");
    let Ok(Evaluated::Done(theirs)) = first.receive(&tables) else { panic!("one message") };
    let (Garbled::Done(mine), Garbled::Done(of_next)) = (garbled_first, garbled_second) else { panic!("one message") };
    let [mine, of_next, theirs] = [mine, of_next, theirs].map(|share| share.to_bytes());
    assert!(combine(&session, &mine, &theirs).is_ok());
    assert_eq!(combine(&session, &of_next, &theirs).err(), Some(Flaw::OutOfOrder), "shares of two batches");
    assert_eq!(combine(&session, &theirs, &mine).err(), Some(Flaw::UnknownTag), "shares exchanged");
    assert_eq!(combine(&session, &mine, &mine).err(), Some(Flaw::UnknownTag), "one share twice");
    assert!(!next_tables.is_empty());
}

/// Several messages for a batch: each must be the next one.
#[test]
fn pieces_of_a_batch_come_in_their_order_or_not_at_all() {
    let long = build(|builder| {
        let value = kernel::squared_difference(16, 0, builder);
        builder.output_number(&value);
    });
    let session = session(long);
    let rows: Vec<Row> = vec![vec![(1000, 16)]];
    let (_, seen) = Pair::open(&session, 1).run(&rows, &rows);
    assert!(seen.tables.len() > 3);
    let begin = || {
        let mut rngs = [2, 3].map(rng);
        let (waiting, opening) = EvaluatorOpening::new(&session, &mut rngs[1]);
        let (_, choices) = Garbler::open(&session, &opening, &mut rngs[0]).expect("honest");
        let evaluator = waiting.receive(&choices).expect("honest");
        let mut inputs = Inputs::for_evaluator(&session, 1).expect("one");
        inputs.push(1000, 16).expect("in range");
        evaluator.request(inputs, &mut rngs[1]).expect("one").1
    };
    let Ok(Evaluated::More(after_one)) = begin().receive(&seen.tables[0]) else { panic!("more to come") };
    assert_eq!(after_one.receive(&seen.tables[2]).err(), Some(Flaw::OutOfOrder));
    let Ok(Evaluated::More(after_one)) = begin().receive(&seen.tables[0]) else { panic!("more to come") };
    // The first message has a seed, so it is longer than the second may be.
    assert_eq!(after_one.receive(&seen.tables[0]).err(), Some(Flaw::OutOfOrder));
    let err = begin().receive(&seen.tables[1]).err();
    assert_eq!(err, Some(Flaw::OutOfOrder), "the second message first");
}

/// Bits beyond the last result must be zero, and numbers of instances are bounded before anything is reserved for them.
#[test]
fn unused_bits_and_absurd_counts_are_refused() {
    let session = session(circuit());
    let [mine, theirs] = honest_batch(&session).shares;
    for bit in INSTANCES..8 {
        let mut changed = mine.clone();
        *changed.last_mut().expect("bits") |= 1 << bit;
        assert_eq!(combine(&session, &changed, &theirs).err(), Some(Flaw::TrailingBytes));
    }
    for count in [0, session.circuit().batch_max() as u32 + 1, u32::MAX] {
        let mut changed = mine.clone();
        changed[73..77].copy_from_slice(&count.to_le_bytes());
        assert_eq!(combine(&session, &changed, &theirs).err(), Some(Flaw::WrongLength));
        let (garbler, _, mut request) = requested(&session);
        request[41..45].copy_from_slice(&count.to_le_bytes());
        assert_eq!(garbled(&session, garbler, &request).err(), Some(Flaw::WrongLength));
    }
    // As many instances as asked for, but not as many as the garbler has numbers for.
    let (garbler, _, request) = requested(&session);
    let mut one = Inputs::for_garbler(&session, 1).expect("one");
    one.push(1, BITS).expect("in range");
    assert_eq!(garbler.garble(&request, one, &mut rng(4)).err(), Some(Flaw::WrongLength));
}

#[test]
fn inputs_that_do_not_fit_are_refused_before_anything_is_sent() {
    let session = session(circuit());
    assert_eq!(Inputs::for_garbler(&session, 0).err(), Some(Unfit::Lengths));
    let too_many = session.circuit().batch_max() + 1;
    assert_eq!(Inputs::for_evaluator(&session, too_many).err(), Some(Unfit::TooMany));
    let mut inputs = Inputs::for_garbler(&session, 1).expect("one");
    assert_eq!(inputs.push(256, BITS), Err(Unfit::NumberOutOfRange));
    assert_eq!(inputs.push(255, BITS), Ok(()));
    assert_eq!(inputs.push(0, 1), Err(Unfit::TooMany));
}

/// Reads bytes as every message, and what can be read as the next state would.
fn read_everything(bytes: &[u8], circuit: &Circuit) {
    let _ = Opening::decode(bytes);
    let _ = Choices::decode(bytes);
    let _ = Request::decode(bytes, circuit);
    for expected in [0, 32, 4096] {
        let _ = Tables::decode(bytes, expected);
    }
    let _ = ShareMessage::decode(bytes, circuit);
    if let Some(point) = bytes.first_chunk::<32>() {
        let _ = choose([1; 32], *point, &[], &mut rng(1));
    }
    for count in [0, 1] {
        let _ = TransferSender::new([1; 32], &mut rng(1)).receive(bytes, count);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..8_u8) {
        let circuit = circuit();
        read_everything(&bytes, &circuit);
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        read_everything(&bytes, &circuit);
    }
}

/// Damages a message: some bits, a cut, a tail, a count.
fn damage(message: &[u8], rng: &mut ChaCha20Rng, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(message);
    for _ in 0..1 + rng.next_u64() % 3 {
        let at = rng.next_u64() as usize % out.len().max(1);
        match rng.next_u64() % 6 {
            0 if !out.is_empty() => out.truncate(at),
            1 => out.extend_from_slice(&rng.next_u64().to_le_bytes()[..1 + at % 8]),
            2 if out.len() >= 4 => {
                let at = at.min(out.len() - 4);
                let count = [0, 1, u32::MAX, 256, 257][rng.next_u64() as usize % 5];
                out[at..at + 4].copy_from_slice(&count.to_le_bytes());
            }
            3 if !out.is_empty() => out[0] = rng.next_u64() as u8 % 8,
            _ if !out.is_empty() => out[at] ^= 1 << (rng.next_u64() % 8),
            _ => {}
        }
    }
}

/// So many damaged inputs to each decoder; returns how many were believed, for a decoder that believes nothing was not
/// tried.
fn damaged_inputs(inputs: usize) {
    let session = session(circuit());
    let (waiting, opening) = EvaluatorOpening::new(&session, &mut rng(1));
    let (_, choices) = Garbler::open(&session, &opening, &mut rng(2)).expect("honest");
    drop(waiting);
    let Messages { request, tables, shares } = honest_batch(&session);
    let circuit = session.circuit();
    let expected = tables[0].len() - 61;
    type Read<'r> = Box<dyn Fn(&[u8]) -> bool + 'r>;
    let decoders: [(&str, &[u8], Read<'_>); 6] = [
        ("opening", &opening, Box::new(|bytes| Opening::decode(bytes).is_ok_and(|m| m.encode() == bytes))),
        ("choices", &choices, Box::new(|bytes| Choices::decode(bytes).is_ok_and(|m| m.encode() == bytes))),
        ("request", &request, Box::new(|bytes| Request::decode(bytes, circuit).is_ok())),
        ("tables", &tables[0], Box::new(|bytes| Tables::decode(bytes, expected).is_ok())),
        (
            "share",
            &shares[0],
            Box::new(|bytes| ShareMessage::decode(bytes, circuit).is_ok_and(|m| m.encode() == bytes)),
        ),
        ("both shares", &shares[1], Box::new(|bytes| combine(&session, &shares[0], bytes).is_ok())),
    ];
    let mut damaged = Vec::new();
    for (name, honest, read) in &decoders {
        let mut rng = rng(11);
        let mut believed = 0;
        assert!(read(honest), "{name}: an honest message");
        for _ in 0..inputs {
            damage(honest, &mut rng, &mut damaged);
            believed += usize::from(read(&damaged));
        }
        println!("{name}: {believed} of {inputs} believed");
        assert!(believed > 0 && believed < inputs, "{name}: {believed} of {inputs}");
    }
}

#[test]
fn damaged_messages_never_panic() {
    damaged_inputs(20_000);
}

#[test]
#[ignore = "ten million damaged inputs to each decoder: cargo xtask soak"]
fn ten_million_damaged_messages_never_panic() {
    damaged_inputs(10_000_000);
}
