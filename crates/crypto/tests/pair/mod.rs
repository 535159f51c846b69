//! A garbler, an evaluator and an aggregator in one process, for tests of two-party sessions.
#![allow(dead_code, reason = "each test file uses a part")]

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use sottovoce_crypto::{
    Context,
    two_party::{
        Session,
        builder::Builder,
        circuit::Circuit,
        evaluator::{Evaluated, Evaluator, EvaluatorOpening},
        garbler::{Garbled, Garbler},
        inputs::Inputs,
        share::{Outputs, combine},
    },
};

pub const HERE: Context = Context { task: [1; 32], round: 7, sender: [2; 32], board: [3; 32] };

pub fn session(circuit: Circuit) -> Session {
    Session::new(&HERE, [4; 32], [5; 32], circuit).expect("two members")
}

pub fn build(make: impl FnOnce(&mut Builder)) -> Circuit {
    let mut builder = Builder::new();
    make(&mut builder);
    builder.build().expect("a circuit")
}

/// The numbers of one member in one instance, each with its width.
pub type Row = Vec<(u64, usize)>;

/// All messages of a batch.
#[derive(Default)]
pub struct Messages {
    pub request: Vec<u8>,
    pub tables: Vec<Vec<u8>>,
    pub shares: [Vec<u8>; 2],
}

/// Two members with an opened session.
pub struct Pair {
    pub session: Session,
    pub opening: Vec<u8>,
    pub choices: Vec<u8>,
    garbler: Option<Garbler>,
    evaluator: Option<Evaluator>,
    rngs: [ChaCha20Rng; 2],
}

impl Pair {
    pub fn open(session: &Session, seed: u64) -> Pair {
        let mut rngs = [2 * seed, 2 * seed + 1].map(ChaCha20Rng::seed_from_u64);
        let (waiting, opening) = EvaluatorOpening::new(session, &mut rngs[1]);
        let (garbler, choices) = Garbler::open(session, &opening, &mut rngs[0]).expect("an honest opening");
        let evaluator = waiting.receive(&choices).expect("honest choices");
        let (garbler, evaluator) = (Some(garbler), Some(evaluator));
        Pair { session: session.clone(), opening, choices, garbler, evaluator, rngs }
    }

    /// Computes a batch, and shows all its messages.
    pub fn run(&mut self, garbler: &[Row], evaluator: &[Row]) -> (Outputs, Messages) {
        let mut inputs = Inputs::for_evaluator(&self.session, evaluator.len()).expect("a batch");
        evaluator.iter().flatten().for_each(|(value, width)| inputs.push(*value, *width).expect("in range"));
        let next = self.evaluator.take().expect("a session").request(inputs, &mut self.rngs[1]);
        let (next, mut evaluation, request) = next.expect("a fine batch");
        self.evaluator = Some(next);
        let mut inputs = Inputs::for_garbler(&self.session, garbler.len()).expect("a batch");
        garbler.iter().flatten().for_each(|(value, width)| inputs.push(*value, *width).expect("in range"));
        let next = self.garbler.take().expect("a session").garble(&request, inputs, &mut self.rngs[0]);
        let (next, mut garbling) = next.expect("an honest request");
        self.garbler = Some(next);
        let mut messages = Messages { request, ..Messages::default() };
        loop {
            let (garbled, tables) = garbling.next();
            let evaluated = evaluation.receive(&tables).expect("honest tables");
            messages.tables.push(tables);
            match (garbled, evaluated) {
                (Garbled::Done(mine), Evaluated::Done(theirs)) => {
                    messages.shares = [mine.to_bytes(), theirs.to_bytes()];
                    let outputs = combine(&self.session, &messages.shares[0], &messages.shares[1]);
                    return (outputs.expect("honest shares"), messages);
                }
                (Garbled::More(more), Evaluated::More(rest)) => (garbling, evaluation) = (more, rest),
                _ => panic!("one of the two is done, the other is not"),
            }
        }
    }

    /// What comes out of many instances, in as many batches as it takes.
    pub fn numbers(&mut self, garbler: &[Row], evaluator: &[Row]) -> Vec<u64> {
        let most = self.session.circuit().batch_max();
        let batches = garbler.chunks(most).zip(evaluator.chunks(most));
        batches
            .flat_map(|(mine, theirs)| {
                let (outputs, _) = self.run(mine, theirs);
                (0..outputs.instances()).map(move |instance| outputs.number(instance)).collect::<Vec<_>>()
            })
            .collect()
    }
}
