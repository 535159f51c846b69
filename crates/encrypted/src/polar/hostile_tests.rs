//! What servers and clients make of letters that come twice, late, at the wrong time or from someone who lies, and of restarts between any two letters.

use super::tests::{deliver, masked, polar, problem, server};
use super::*;
use sottovoce_algorithms::testing::{Mail, Network};
use sottovoce_core::{Reject, Wire};
use std::collections::BTreeMap;

/// What an agent would find on its disk.
fn disk(polar: &Polar, network: &Network<'_, Polar>, id: PeerId) -> Vec<u8> {
    let mut bytes = Vec::new();
    polar.save(&network.states[id.index()], &mut bytes);
    bytes
}

/// An agent ends and begins again from its disk.
fn restart(polar: &Polar, network: &mut Network<'_, Polar>, id: PeerId) {
    let state: State = saved::read(&disk(polar, network, id)).expect("its own bytes");
    network.states[id.index()] = match state {
        State::Server(server) => {
            let place = polar.server(id).expect("a server");
            State::Server(Box::new(server.resumed(polar, place).expect("its own bytes")))
        }
        State::Client(client) => State::Client(Box::new(client.resumed(polar).expect("its own bytes"))),
    };
}

fn mail(from: u32, to: u32, letter: PolarLetter<'_>) -> Mail {
    let mut bytes = Vec::new();
    letter.encode(&mut bytes);
    Mail { from: PeerId(from), to: PeerId(to), vectors: 0, bytes }
}

fn step_uploaded(mail: &Mail) -> Option<u32> {
    match PolarLetter::decode(&mail.bytes) {
        Ok(PolarLetter::Upload { step, .. }) => Some(step),
        _ => None,
    }
}

/// Everyone restarts after every letter it reads, and all letters are those of a run without restarts: the words of a server under its pads of a round are the same
/// whenever it dies, and so is every upload. One round, one model under a pad; one step, one upload for each server.
#[test]
fn no_pad_serves_two_models_and_no_choice_two_gradients_however_often_agents_restart() {
    let (problem, polar) = (problem(), polar(|config| config));
    let run = |restarts: bool| -> Vec<Mail> {
        let mut network = Network::start(&polar, &problem);
        let mut sent = Vec::new();
        while !network.mail.is_empty() {
            let mail = network.mail.remove(0);
            network.hand_over(&mail).expect("in turn");
            if restarts {
                restart(&polar, &mut network, mail.to);
            }
            sent.push(mail);
        }
        sent
    };
    let (calm, restless) = (run(false), run(true));
    assert_eq!(calm.len(), restless.len());
    for (a, b) in calm.iter().zip(&restless) {
        assert_eq!((a.from, a.to, &a.bytes), (b.from, b.to, &b.bytes));
    }
    let (mut words, mut uploads) = (BTreeMap::new(), BTreeMap::new());
    for mail in &restless {
        if let Some((round, sealed)) = masked(mail) {
            let first = words.entry((mail.from, round)).or_insert_with(|| sealed.clone());
            assert_eq!(*first, sealed, "a pad of round {round} has served two models");
        }
        if let Some(step) = step_uploaded(mail) {
            assert!(uploads.insert((mail.from, mail.to, step), ()).is_none(), "a second upload of step {step}");
        }
    }
    assert_eq!(
        (words.len(), uploads.len()),
        (4 * 5, 4 * 4 * 15),
        "four servers, four clients, five rounds of three steps"
    );
}

/// Each letter of a whole run is handed over a second time, at once: nothing is answered, and nothing on the reader's disk changes. Letters of other rounds and
/// steps than the reader's, huge ones included, are refused.
#[test]
fn a_letter_that_comes_twice_or_out_of_turn_changes_nothing() {
    let (problem, polar) = (problem(), polar(|config| config));
    let mut network = Network::start(&polar, &problem);
    while !network.mail.is_empty() {
        let letter = network.mail.remove(0);
        network.hand_over(&letter).expect("in turn");
        let (before, waiting) = (disk(&polar, &network, letter.to), network.mail.len());
        assert_eq!(network.hand_over(&letter), Err(Reject::OutOfTurn), "{:?}", PolarLetter::decode(&letter.bytes));
        let is_server = polar.server(letter.to).is_some();
        let numbers = [9.0; 3];
        let huge = [1e70; 64];
        let values = sottovoce_core::wire::Numbers::Plain(&numbers);
        let many = sottovoce_core::wire::Numbers::Plain(&huge);
        let wrong: Vec<Mail> = if is_server {
            let to = letter.to.0;
            let other = if to == 1 { 3 } else { 1 };
            vec![
                mail(0, to, PolarLetter::Upload { step: u32::MAX, values }),
                mail(0, to, PolarLetter::Model { step: 0, values }),
                mail(other, to, PolarLetter::Upload { step: 0, values }),
                mail(other, to, PolarLetter::Masked { round: u32::MAX, words: Words::Own(&[1, 2, 3]) }),
                mail(other, to, PolarLetter::Plain { round: 0, values: many }),
                mail(other, to, PolarLetter::Key([7; 32])),
                mail(other, to, PolarLetter::Ask(u32::MAX)),
                mail(other, to, PolarLetter::Begun(u32::MAX)),
                mail(0, to, PolarLetter::Key([7; 32])),
                mail(0, to, PolarLetter::Masked { round: 0, words: Words::Own(&[0; 3]) }),
            ]
        } else {
            let to = letter.to.0;
            vec![
                mail(1, to, PolarLetter::Model { step: u32::MAX, values }),
                mail(1, to, PolarLetter::LeftOut(u32::MAX)),
                mail(1, to, PolarLetter::Upload { step: 0, values }),
                mail(if to == 0 { 2 } else { 0 }, to, PolarLetter::Model { step: 0, values }),
            ]
        };
        // A key is taken once, so that this one is refused only where the true one is there.
        let has_keys = server(&network, 1).progress().1 > 0;
        for wrong in wrong.iter().filter(|mail| has_keys || mail.bytes[0] != 5) {
            assert!(network.hand_over(wrong).is_err(), "{:?}", PolarLetter::decode(&wrong.bytes));
        }
        assert!(disk(&polar, &network, letter.to) == before && network.mail.len() == waiting);
    }
    assert!([1, 3, 4, 6].iter().all(|id| server(&network, *id).is_done()));
}

/// A client was left out at the time-out, and then its upload arrives: it is refused, kept nowhere, and moves no model.
#[test]
fn an_upload_that_comes_after_the_time_out_is_neither_counted_nor_kept() {
    let (problem, polar) = (problem(), polar(|config| config));
    let mut network = Network::start(&polar, &problem);
    let is_late = |mail: &Mail| mail.from == PeerId(7) && step_uploaded(mail) == Some(1);
    deliver(&mut network, is_late);
    let late: Vec<Mail> = network.mail.drain(..).collect();
    assert_eq!(late.len(), 4);
    for _ in 0..2 {
        [1, 3, 4, 6].iter().for_each(|id| _ = network.wake(PeerId(*id)));
        // The round waits before models are exchanged.
        deliver(&mut network, |mail| mail.to == PeerId(7) || masked(mail).is_some());
    }
    assert!([1, 3, 4, 6].iter().all(|id| server(&network, *id).absent() == 1));
    for late in &late {
        let (before, waiting) = (disk(&polar, &network, late.to), network.mail.len());
        assert_eq!(network.hand_over(late), Err(Reject::OutOfTurn));
        assert!(disk(&polar, &network, late.to) == before && network.mail.len() == waiting);
    }
}

/// A server that names a client twice, or one that is not its own, or one as left out and back, would have others count wrongly, and at worst leave them with a state
/// that they could not resume from.
#[test]
fn a_roster_names_each_client_of_its_sender_once() {
    let (problem, polar) = (problem(), polar(|config| PolarConfig { servers_each: 2, ..config }));
    let mut network = Network::start(&polar, &problem);
    let roster = |left: &[u32], back: &[u32]| {
        mail(1, 3, PolarLetter::Roster { round: 0, left: Words::Own(left), back: Words::Own(back) })
    };
    let before = disk(&polar, &network, PeerId(3));
    // Client 0 has the servers 0 and 1, client 3 the servers 3 and 0: the sender is server 0.
    for (left, back) in [
        (&[][..], &[0, 0, 0, 0, 0][..]),
        (&[0, 0], &[]),
        (&[3, 0], &[]),
        (&[], &[3, 0]),
        (&[1], &[]),
        (&[], &[2]),
        (&[4], &[]),
        (&[u32::MAX], &[]),
        (&[0], &[0]),
    ] {
        assert_eq!(network.hand_over(&roster(left, back)), Err(Reject::Malformed), "{left:?} {back:?}");
        assert!(disk(&polar, &network, PeerId(3)) == before);
    }
    assert_eq!(network.hand_over(&roster(&[0], &[3])), Ok(()));
    restart(&polar, &mut network, PeerId(3));
}
