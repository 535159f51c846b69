//! Frames, before anyone acts on them.

use crate::Target;
use sottovoce_core::wire::Numbers;
use sottovoce_net::frame::{Answer, Card, Contact, Evidence, Post, Question, Refusal, Seen, Stamp};

const CARD: Card<'_> = Card { instance: [4; 16], name: "agent-1", points: 3 };

fn post(values: &[f64]) -> Post<'_> {
    Post { stamp: Stamp::numbered(7), values: Numbers::Plain(values) }
}

/// What one peer asks another.
pub struct Questions;

impl Target for Questions {
    fn name(&self) -> &str {
        "frames, questions"
    }

    fn share(&self) -> u64 {
        200
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        let values = [1.5, -2.0, 1e75];
        let stamp = Stamp { signature: &[7; 64], ..Stamp::numbered(9) };
        let letter = Question::Letter { stamp, bytes: b"\x01\x01........" };
        let durable = Question::Durable { stamp: Stamp::numbered(10), turn: 3, bytes: b"\x01\x01........" };
        let all = [Question::Hello(CARD), Question::Post(post(&values)), letter, Question::Who, durable];
        all.map(|question| question.encode()).into()
    }

    fn feed(&mut self, input: &[u8]) -> bool {
        let Ok(question) = Question::decode(input) else { return false };
        assert!(question.encode() == input, "what was read is not what was written");
        true
    }

    fn restart(&mut self) {}
}

/// What the other answers.
pub struct Answers;

impl Target for Answers {
    fn name(&self) -> &str {
        "frames, answers"
    }

    fn share(&self) -> u64 {
        200
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        let evidence = |number| Evidence { number, hash: [1; 32], ..Evidence::default() };
        let (values, seen) = ([1.5, -2.0], || Seen { post: evidence(3), letter: evidence(4), ..Seen::default() });
        let contact = Contact { name: "b", key: "12D3", address: "/ip4/127.0.0.1/tcp/1" };
        let all = [
            Answer::Welcome { card: CARD, seen: seen(), post: None },
            Answer::Welcome { card: CARD, seen: seen(), post: Some(post(&values)) },
            Answer::Taken,
            Answer::Refused(Refusal::OutOfTurn),
            Answer::These(vec![contact; 5]),
        ];
        all.iter().map(Answer::encode).collect()
    }

    fn feed(&mut self, input: &[u8]) -> bool {
        let Ok(answer) = Answer::decode(input) else { return false };
        assert!(answer.encode() == input, "what was read is not what was written");
        true
    }

    fn restart(&mut self) {}
}
