//! What two-party computation costs: garbling against a bare AES loop, the opening of a session, and comparisons
//! between two threads over a plain loopback socket.
//!
//! `cargo bench -p sottovoce-crypto --bench two_party`; a number of comparisons may be given. Times are processor times
//! of the thread, where the system tells them, so that other programs disturb little; the rate over the socket is by
//! the clock.

use aes::{
    Aes128Enc, Block,
    cipher::{BlockCipherEncrypt, KeyInit},
};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_crypto::{
    Context,
    two_party::{
        LANES_MAX, Session,
        arithmetic::Number,
        builder::Builder,
        evaluator::{Evaluated, Evaluation, Evaluator, EvaluatorOpening},
        garbler::{Garbled, Garbler},
        half_gates::{TABLE_BYTES, evaluate_and, garble_and},
        hash::LabelHash,
        inputs::Inputs,
        kernel::{self, Larger, plain},
        laplace::Laplace,
        response::RandomizedResponse,
        share::combine,
    },
};
use std::{
    collections::VecDeque,
    hint::black_box,
    io::{BufReader, BufWriter, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Instant,
};

/// Seconds that this thread has had a processor; by the clock where the system does not tell.
fn seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let clock = START.get_or_init(Instant::now).elapsed().as_secs_f64();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or(clock, |nanoseconds| nanoseconds * 1e-9)
}

/// The shortest of several runs, in seconds.
fn best(runs: usize, mut work: impl FnMut()) -> f64 {
    let time = |_| {
        let start = seconds();
        work();
        seconds() - start
    };
    (0..runs).map(time).fold(f64::INFINITY, f64::min)
}

fn session(bits: usize) -> Session {
    let mut builder = Builder::new();
    let larger = kernel::comparison(bits, Larger::Garbler, &mut builder);
    builder.output_number(&larger);
    open(builder)
}

fn open(builder: Builder) -> Session {
    let here = Context { task: [1; 32], round: 0, sender: [2; 32], board: [3; 32] };
    Session::new(&here, [4; 32], [5; 32], builder.build().expect("a circuit")).expect("two members")
}

/// AND gates a second, garbled and evaluated, beside a loop that does nothing but their AES blocks.
fn gates() {
    const GATES: usize = 20_000;
    let blocks = 8 * LANES_MAX;
    let cipher = Aes128Enc::new(&[1; 16].into());
    // The faster of two sizes of buffer.
    let bare = [blocks / 4, blocks / 2].map(|at_once| {
        let mut buffer = vec![Block::default(); at_once];
        best(15, || {
            for _ in 0..GATES * blocks / at_once {
                cipher.encrypt_blocks(black_box(&mut buffer));
            }
        })
    });
    let bare = bare[0].min(bare[1]);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut labels = || -> Vec<u128> { (0..LANES_MAX).map(|_| u128::from(rng.next_u64()) << 64 | 1).collect() };
    let (left, mut right, mut out) = (labels(), labels(), labels());
    let mut tables = vec![0; TABLE_BYTES * LANES_MAX];
    let mut hash = LabelHash::new(&[1; 16]);
    let garble = best(15, || {
        for gate in 0..GATES as u64 {
            garble_and(&mut hash, 7, gate, [(&left, false), (&right, false)], &mut out, black_box(&mut tables));
            std::mem::swap(&mut right, &mut out);
        }
    });
    let evaluate = best(15, || {
        for gate in 0..GATES as u64 {
            evaluate_and(&mut hash, gate, [&left, &right], &mut out, black_box(&tables));
            std::mem::swap(&mut right, &mut out);
        }
    });
    let million = |time: f64| (GATES * LANES_MAX) as f64 / time / 1e6;
    println!(
        "one core, AND gates in millions a second ({LANES_MAX} lanes, 8 AES blocks to garble one, 4 to evaluate it)"
    );
    println!("  bare AES loop, 8 blocks a gate {:>8.1}", million(bare));
    println!("  garbled                        {:>8.1}   {:.2} x the bare loop's time", million(garble), garble / bare);
    println!(
        "  evaluated                      {:>8.1}   {:.2} x the time of half of it",
        million(evaluate),
        2.0 * evaluate / bare
    );
}

/// The whole of a first comparison of a new pair, a side at a time.
fn first_comparison() {
    let (session, mut rng) = (session(32), ChaCha20Rng::seed_from_u64(2));
    let (mut evaluator_time, mut garbler_time) = (f64::INFINITY, f64::INFINITY);
    let mut bytes = 0;
    for _ in 0..15 {
        let start = seconds();
        let (opening, hello) = EvaluatorOpening::new(&session, &mut rng);
        let mut theirs = seconds() - start;
        let start = seconds();
        let (garbler, choices) = Garbler::open(&session, &hello, &mut rng).expect("honest");
        let mut mine = seconds() - start;
        let start = seconds();
        let evaluator = opening.receive(&choices).expect("honest");
        let mut inputs = Inputs::for_evaluator(&session, 1).expect("one");
        inputs.push(5, 32).expect("in range");
        let (_, evaluation, request) = evaluator.request(inputs, &mut rng).expect("one");
        theirs += seconds() - start;
        let start = seconds();
        let mut inputs = Inputs::for_garbler(&session, 1).expect("one");
        inputs.push(6, 32).expect("in range");
        let (_, garbling) = garbler.garble(&request, inputs, &mut rng).expect("honest");
        let (garbled, tables) = garbling.next();
        mine += seconds() - start;
        let start = seconds();
        let evaluated = evaluation.receive(&tables).expect("honest");
        theirs += seconds() - start;
        let (Garbled::Done(one), Evaluated::Done(other)) = (garbled, evaluated) else { panic!("one message") };
        let shares = [one, other].map(|share| share.to_bytes());
        assert_eq!(combine(&session, &shares[0], &shares[1]).expect("honest").number(0), 1);
        bytes = hello.len() + choices.len() + request.len() + tables.len() + shares[0].len() + shares[1].len();
        (evaluator_time, garbler_time) = (evaluator_time.min(theirs), garbler_time.min(mine));
    }
    println!("\nfirst 32-bit comparison of a new pair, opening included: {bytes} bytes in all");
    println!("  garbler   {:>6.2} ms\n  evaluator {:>6.2} ms", garbler_time * 1e3, evaluator_time * 1e3);
}

fn send(stream: &mut impl Write, message: &[u8]) {
    stream.write_all(&(message.len() as u32).to_le_bytes()).and_then(|()| stream.write_all(message)).expect("a socket");
}

fn receive(stream: &mut impl Read, message: &mut Vec<u8>) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("a socket");
    message.resize(u32::from_le_bytes(length) as usize, 0);
    stream.read_exact(message).expect("a socket");
}

fn numbers(seed: u64, count: usize) -> Vec<u32> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.next_u64() as u32).collect()
}

/// The garbler, in a thread of its own: answers requests until all comparisons are done; its shares, and its processor time.
fn garble_all(stream: TcpStream, session: &Session, own: &[u32]) -> (Vec<Vec<u8>>, f64) {
    let mut reader = BufReader::with_capacity(1 << 18, stream.try_clone().expect("a socket"));
    let mut writer = BufWriter::with_capacity(1 << 18, stream);
    let (mut rng, mut message, mut shares) = (ChaCha20Rng::seed_from_u64(3), Vec::new(), Vec::new());
    let start = seconds();
    receive(&mut reader, &mut message);
    let (mut garbler, choices) = Garbler::open(session, &message, &mut rng).expect("honest");
    send(&mut writer, &choices);
    writer.flush().expect("a socket");
    for own in own.chunks(session.circuit().batch_max()) {
        receive(&mut reader, &mut message);
        let mut inputs = Inputs::for_garbler(session, own.len()).expect("a batch");
        own.iter().for_each(|number| inputs.push((*number).into(), 32).expect("in range"));
        let (next, mut garbling) = garbler.garble(&message, inputs, &mut rng).expect("honest");
        garbler = next;
        loop {
            let (garbled, tables) = garbling.next();
            send(&mut writer, &tables);
            match garbled {
                Garbled::More(more) => garbling = more,
                Garbled::Done(share) => break shares.push(share.to_bytes()),
            }
        }
        writer.flush().expect("a socket");
    }
    (shares, seconds() - start)
}

/// Requests that are under way at once: enough that neither side waits for the other.
const AHEAD: usize = 8;

/// The evaluator: its shares, the bytes that went both ways, and its processor time.
fn evaluate_all(stream: TcpStream, session: &Session, own: &[u32]) -> (Vec<Vec<u8>>, usize, f64) {
    let mut reader = BufReader::with_capacity(1 << 18, stream.try_clone().expect("a socket"));
    let mut writer = BufWriter::with_capacity(1 << 18, stream);
    let (mut rng, mut message, mut shares) = (ChaCha20Rng::seed_from_u64(4), Vec::new(), Vec::new());
    let start = seconds();
    let (opening, hello) = EvaluatorOpening::new(session, &mut rng);
    send(&mut writer, &hello);
    writer.flush().expect("a socket");
    receive(&mut reader, &mut message);
    let mut bytes = hello.len() + message.len();
    let mut evaluator: Evaluator = opening.receive(&message).expect("honest");
    let mut batches = own.chunks(session.circuit().batch_max());
    let mut under_way: VecDeque<Evaluation> = VecDeque::new();
    loop {
        while under_way.len() < AHEAD {
            let Some(own) = batches.next() else { break };
            let mut inputs = Inputs::for_evaluator(session, own.len()).expect("a batch");
            own.iter().for_each(|number| inputs.push((*number).into(), 32).expect("in range"));
            let (next, evaluation, request) = evaluator.request(inputs, &mut rng).expect("room");
            evaluator = next;
            under_way.push_back(evaluation);
            bytes += request.len();
            send(&mut writer, &request);
        }
        writer.flush().expect("a socket");
        let Some(mut evaluation) = under_way.pop_front() else { break };
        loop {
            receive(&mut reader, &mut message);
            bytes += message.len();
            match evaluation.receive(&message).expect("honest") {
                Evaluated::More(more) => evaluation = more,
                Evaluated::Done(share) => break shares.push(share.to_bytes()),
            }
        }
    }
    (shares, bytes, seconds() - start)
}

fn comparisons(count: usize) {
    let (session, mine, theirs) = (session(32), numbers(5, count), numbers(6, count));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let start = Instant::now();
    let ((shares, garbler_time), (others, bytes, evaluator_time)) = thread::scope(|scope| {
        let garbler = scope.spawn(|| {
            let (stream, _) = listener.accept().expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            garble_all(stream, &session, &mine)
        });
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let evaluated = evaluate_all(stream, &session, &theirs);
        (garbler.join().expect("a garbler"), evaluated)
    });
    let time = start.elapsed().as_secs_f64();
    let mut results = Vec::with_capacity(count);
    for (one, other) in shares.iter().zip(&others) {
        let outputs = combine(&session, one, other).expect("honest shares");
        results.extend((0..outputs.instances()).map(|instance| outputs.number(instance)));
    }
    let expected = mine.iter().zip(&theirs).map(|(x, y)| plain::comparison((*x).into(), (*y).into(), Larger::Garbler));
    assert!(results.into_iter().eq(expected), "all comparisons are right");
    let each = |time: f64| time / count as f64 * 1e6;
    println!("\n{count} comparisons of 32 bits between two threads over a loopback socket, opening included");
    println!("  {:>9.0} a second by the clock, {:.0} bytes each", count as f64 / time, bytes as f64 / count as f64);
    println!(
        "  processor time: garbler {:.2}, evaluator {:.2} microseconds each",
        each(garbler_time),
        each(evaluator_time)
    );
    println!("  {:>9.0} a second if each had a core of its own", 1e6 / each(garbler_time).max(each(evaluator_time)));
}

/// Gates and bytes of one instance of a circuit.
fn sizes() {
    println!("\nAND gates and bytes of one instance");
    let print = |name: &str, make: &dyn Fn(&mut Builder) -> Number| {
        let mut builder = Builder::new();
        let value = make(&mut builder);
        builder.output_number(&value);
        let circuit = builder.build().expect("a circuit");
        let bytes = TABLE_BYTES * circuit.ands() + 16 * circuit.inputs().transferred();
        println!("  {:<56} {:>6} gates {:>7} bytes", name, circuit.ands(), bytes);
    };
    let told = |epsilon: f64, value: Number, builder: &mut Builder| {
        let values = if value.width() == 1 { 2 } else { 3 };
        RandomizedResponse::new(epsilon, values).expect("fine").answer(&value, builder).expect("its width")
    };
    let noisy = |epsilon: f64, value: Number, builder: &mut Builder| {
        let width = value.width() as u32;
        Laplace::new(epsilon, width, (1 << width) - 1).expect("fine").add_to(&value, builder).expect("its width")
    };
    print("comparison of 32 bits", &|builder| kernel::comparison(32, Larger::Garbler, builder));
    print("the same, randomized response, epsilon 1", &|builder| {
        let value = kernel::comparison(32, Larger::Garbler, builder);
        told(1.0, value, builder)
    });
    print("Kendall of 8 bits, randomized response, epsilon 1", &|builder| {
        let value = kernel::kendall(8, builder);
        told(1.0, value, builder)
    });
    for (bits, epsilon) in [(16, 1.0), (16, 0.1), (32, 1.0)] {
        print(&format!("Gini of {bits} bits, Laplace, epsilon {epsilon}"), &|builder| {
            let value = kernel::gini(bits, builder);
            noisy(epsilon, value, builder)
        });
    }
    print("squared difference of 16 bits, Laplace, epsilon 1", &|builder| {
        let value = kernel::squared_difference(16, 16, builder);
        noisy(1.0, value, builder)
    });
}

fn main() {
    let count = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    println!("AES in hardware: {}", aes::hardware_accelerated());
    gates();
    first_comparison();
    comparisons(count);
    sizes();
}
