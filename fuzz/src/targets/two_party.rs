//! Messages of two-party sessions: what garbler, evaluator and aggregator read.

use crate::Target;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use sottovoce_crypto::{
    Context,
    two_party::{
        Session,
        builder::Builder,
        evaluator::{Evaluated, Evaluation, Evaluator, EvaluatorOpening},
        garbler::{Garbled, Garbler},
        inputs::Inputs,
        kernel::{self, Larger},
        message::{Choices, Opening, Request, ShareMessage, Tables},
        response::RandomizedResponse,
        share::combine,
    },
};

const BITS: usize = 4;
/// Where the name and the number of the batch stand in requests and tables.
const HEAD: std::ops::Range<usize> = 1..41;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn session() -> Session {
    let mut builder = Builder::new();
    let larger = kernel::comparison(BITS, Larger::Garbler, &mut builder);
    let response = RandomizedResponse::new(1.0, 2).expect("good parameters");
    let told = response.answer(&larger, &mut builder).expect("one bit");
    builder.output_number(&told);
    let here = Context { task: [1; 32], round: 0, sender: [2; 32], board: [3; 32] };
    Session::new(&here, [4; 32], [5; 32], builder.build().expect("a circuit")).expect("two members")
}

fn filled(mut inputs: Inputs) -> Inputs {
    inputs.push(9, BITS).expect("in range");
    inputs
}

fn opened(session: &Session) -> (Garbler, Evaluator) {
    let (waiting, opening) = EvaluatorOpening::new(session, &mut rng(1));
    let (garbler, choices) = Garbler::open(session, &opening, &mut rng(2)).expect("honest");
    (garbler, waiting.receive(&choices).expect("honest"))
}

fn requested(session: &Session, evaluator: Evaluator) -> (Evaluator, Evaluation, Vec<u8>) {
    let inputs = filled(Inputs::for_evaluator(session, 1).expect("one"));
    evaluator.request(inputs, &mut rng(3)).expect("room")
}

/// An honest message of each kind.
struct Honest {
    opening: Vec<u8>,
    choices: Vec<u8>,
    request: Vec<u8>,
    tables: Vec<u8>,
    shares: [Vec<u8>; 2],
}

impl Honest {
    fn new(session: &Session) -> Honest {
        let (waiting, opening) = EvaluatorOpening::new(session, &mut rng(1));
        let (garbler, choices) = Garbler::open(session, &opening, &mut rng(2)).expect("honest");
        let (_, evaluation, request) = requested(session, waiting.receive(&choices).expect("honest"));
        let inputs = filled(Inputs::for_garbler(session, 1).expect("one"));
        let (_, garbling) = garbler.garble(&request, inputs, &mut rng(4)).expect("honest");
        let (garbled, tables) = garbling.next();
        let evaluated = evaluation.receive(&tables).expect("honest");
        let (Garbled::Done(mine), Evaluated::Done(theirs)) = (garbled, evaluated) else { panic!("one message") };
        Honest { opening, choices, request, tables, shares: [mine.to_bytes(), theirs.to_bytes()] }
    }
}

/// All messages, before anyone acts on them; shares are put together too.
pub struct Messages {
    session: Session,
    honest: Honest,
}

impl Messages {
    /// Of one small session.
    pub fn new() -> Self {
        let session = session();
        Messages { honest: Honest::new(&session), session }
    }
}

impl Target for Messages {
    fn name(&self) -> &str {
        "two-party, messages"
    }

    fn share(&self) -> u64 {
        200
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        let Honest { opening, choices, request, tables, shares: [mine, theirs] } = &self.honest;
        [opening, choices, request, tables, mine, theirs].map(Vec::clone).into()
    }

    fn feed(&mut self, input: &[u8]) -> bool {
        let circuit = self.session.circuit();
        let gates = self.honest.tables.len() - 61;
        if let Ok(opening) = Opening::decode(input) {
            assert!(opening.encode() == input, "what was read is not what was written");
        }
        if let Ok(choices) = Choices::decode(input) {
            assert!(choices.encode() == input, "what was read is not what was written");
        }
        if let Ok(share) = ShareMessage::decode(input, circuit) {
            assert!(share.encode() == input, "what was read is not what was written");
            let _ = combine(&self.session, input, &self.honest.shares[1]);
            let _ = combine(&self.session, &self.honest.shares[0], input);
        }
        Opening::decode(input).is_ok()
            || Choices::decode(input).is_ok()
            || Request::decode(input, circuit).is_ok()
            || Tables::decode(input, gates).is_ok()
            || ShareMessage::decode(input, circuit).is_ok()
    }

    fn restart(&mut self) {}
}

/// The two members themselves, in all their states.
pub struct Members {
    session: Session,
    honest: Honest,
    opened: Option<(Garbler, Evaluator)>,
    fed: u64,
}

impl Members {
    /// Of one small session.
    pub fn new() -> Self {
        let session = session();
        Members { honest: Honest::new(&session), session, opened: None, fed: 0 }
    }
}

impl Target for Members {
    fn name(&self) -> &str {
        "two-party, members"
    }

    /// A session that is opened takes milliseconds, and a message that is refused ends one.
    fn share(&self) -> u64 {
        2
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        let Honest { opening, choices, request, tables, .. } = &self.honest;
        [opening, choices, request, tables].map(Vec::clone).into()
    }

    /// Each state in turn is given the input; requests and tables mostly with a head that is right, so that what
    /// follows is read.
    fn feed(&mut self, input: &[u8]) -> bool {
        self.fed += 1;
        let mut input = input.to_vec();
        let (garbler, evaluator) = self.opened.take().unwrap_or_else(|| opened(&self.session));
        let (evaluator, evaluation, request) = requested(&self.session, evaluator);
        if !self.fed.is_multiple_of(8) && input.len() >= HEAD.end {
            input[HEAD].copy_from_slice(&request[HEAD]);
        }
        match input.first() {
            Some(1) => Garbler::open(&self.session, &input, &mut rng(5)).is_ok(),
            Some(2) => EvaluatorOpening::new(&self.session, &mut rng(1)).0.receive(&input).is_ok(),
            Some(4) => {
                let inputs = filled(Inputs::for_garbler(&self.session, 1).expect("one"));
                let (garbler, _) = garbler.garble(&request, inputs, &mut rng(4)).expect("honest");
                self.opened = Some((garbler, evaluator));
                evaluation.receive(&input).is_ok()
            }
            _ => {
                let inputs = filled(Inputs::for_garbler(&self.session, 1).expect("one"));
                let Ok((garbler, garbling)) = garbler.garble(&input, inputs, &mut rng(4)) else { return false };
                let (_, tables) = garbling.next();
                self.opened = Some((garbler, evaluator));
                assert!(evaluation.receive(&tables).is_ok(), "tables are well-formed whatever was asked");
                true
            }
        }
    }

    fn restart(&mut self) {
        self.opened = None;
    }
}
