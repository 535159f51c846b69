//! What frames hold uncharged is in the threat model, word by word.

use sottovoce_core::wire::Numbers;
use sottovoce_net::frame::{Answer, Card, Contact, Evidence, Post, Question, Refusal, Seen, Stamp};

/// The section of THREATS.md about what leaves uncharged.
fn uncharged() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../THREATS.md");
    let text = std::fs::read_to_string(path).expect("THREATS.md");
    let (_, rest) = text.split_once("## What leaves uncharged").expect("the section");
    rest.split("\n## ").next().expect("its text").to_owned()
}

/// The words by which the section speaks of everything in a question. Whoever adds a field must add its word.
fn words_of_question(question: Question<'_>) -> Vec<&'static str> {
    match question {
        Question::Hello(card) => words_of_card(card),
        Question::Post(Post { stamp, values: _ }) => [words_of_stamp(stamp), vec!["posts"]].concat(),
        Question::Letter { stamp, bytes: _ } => [words_of_stamp(stamp), vec!["letters"]].concat(),
        Question::Durable { stamp, turn: _, bytes: _ } => [words_of_stamp(stamp), vec!["turns of durable"]].concat(),
        Question::Who => vec!["`who`"],
    }
}

fn words_of_answer(answer: &Answer<'_>) -> Vec<&'static str> {
    match answer {
        Answer::Welcome { card, seen, post: _ } => {
            let Seen { post, letter, turn: _, durable } = seen;
            let evidence = [post, letter, durable].map(words_of_evidence).concat();
            [words_of_card(*card), evidence, vec!["that there is a post"]].concat()
        }
        Answer::Taken => vec!["`taken`"],
        Answer::Refused(_) => vec!["refusal codes"],
        Answer::These(contacts) => contacts.iter().flat_map(words_of_contact).collect(),
    }
}

fn words_of_card(card: Card<'_>) -> Vec<&'static str> {
    let Card { instance: _, name: _, points: _ } = card;
    vec!["the number that a process draws", "the agent's name", "m_i, its number of points"]
}

fn words_of_stamp(stamp: Stamp<'_>) -> Vec<&'static str> {
    let Stamp { epoch: _, number: _, salt: _, signature } = stamp;
    assert!(signature.is_empty());
    vec!["epochs of posts", "sequence numbers", "salts of messages", "an empty signature"]
}

fn words_of_evidence(evidence: &Evidence) -> Vec<&'static str> {
    let Evidence { epoch: _, number: _, hash: _, signature: _ } = evidence;
    vec!["the highest seen from each other", "evidence: SHA-256 of the salt and the content"]
}

fn words_of_contact(contact: &Contact<'_>) -> [&'static str; 1] {
    let Contact { name: _, key: _, address: _ } = contact;
    ["names, keys and addresses of neighbours"]
}

#[test]
fn everything_in_a_frame_and_every_refusal_is_listed() {
    let listed = uncharged();
    let stamp = Stamp { epoch: 0, number: 1, salt: [0; 16], signature: &[] };
    let (card, bytes) = (Card { instance: [0; 16], name: "north", points: 3 }, &[][..]);
    let values = Numbers::decode(bytes).expect("no numbers");
    let questions = [
        Question::Hello(card),
        Question::Post(Post { stamp, values }),
        Question::Letter { stamp, bytes },
        Question::Durable { stamp, turn: 1, bytes },
        Question::Who,
    ];
    let evidence = Evidence::of(&stamp, bytes);
    let seen = Seen { post: evidence.clone(), letter: evidence.clone(), turn: 1, durable: evidence };
    let answers = [
        Answer::Welcome { card, seen, post: None },
        Answer::Taken,
        Answer::Refused(Refusal::Malformed),
        Answer::These(vec![Contact { name: "north", key: "", address: "" }]),
    ];
    let words = questions.into_iter().flat_map(words_of_question).chain(answers.iter().flat_map(words_of_answer));
    for word in words {
        assert!(listed.contains(word), "THREATS.md does not list: {word}");
    }
    let codes = listed.lines().find_map(|line| line.strip_prefix("| refusal codes (")?.split_once(')'));
    let codes: Vec<&str> = codes.expect("refusal codes").0.split(", ").collect();
    assert_eq!(codes, Refusal::ALL.map(|refusal| refusal.to_string()));
}
