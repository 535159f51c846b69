//! Frames, before anyone acts on them.

use crate::Target;
use sottovoce_core::wire::Numbers;
use sottovoce_net::frame::{Answer, Card, Contact, Post, Question, Refusal, Seen};

const CARD: Card<'_> = Card { name: "agent-1", points: 3 };

fn post(values: &[f64]) -> Post<'_> {
    Post { number: 7, values: Numbers::Plain(values) }
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
        let letter = Question::Letter { number: 9, bytes: b"\x01\x01........" };
        [Question::Hello(CARD), Question::Post(post(&values)), letter, Question::Who].map(|q| q.encode()).into()
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
        let (values, seen) = ([1.5, -2.0], Seen { post: 3, letter: 4 });
        let contact = Contact { name: "b", key: "12D3", address: "/ip4/127.0.0.1/tcp/1" };
        let all = [
            Answer::Welcome { card: CARD, seen, post: None },
            Answer::Welcome { card: CARD, seen, post: Some(post(&values)) },
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
