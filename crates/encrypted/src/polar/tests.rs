//! Sums of servers to the bit, what a coalition sees, conditions, and what becomes of a client that is gone: CHECK 06.a to 06.c; and what is made of letters
//! that come twice, late, at the wrong time or from someone who lies, and of restarts between any two letters.

use super::*;
use crate::testing::small_polar;
use proptest::prelude::*;
use sottovoce_algorithms::testing::{Mail, Network, random_problem};
use sottovoce_algorithms::{Loss, Problem, Regularization};
use sottovoce_core::wire::Numbers;
use sottovoce_core::{Graph, Reject, Wire};
use sottovoce_crypto::pad::Direction;
use sottovoce_privacy::sensitivity::Norm;
use std::collections::BTreeMap;

/// Eight agents; servers are numbers 1, 3, 4 and 6.
fn problem() -> Problem {
    let problem = random_problem(3, 8, 3, Loss::Squared);
    Problem { graph: Graph::Complete { n: 8 }, regularization: Regularization::Constant(0.0), ..problem }
}

fn polar(change: impl Fn(PolarConfig) -> PolarConfig) -> Polar {
    let config = PolarConfig { servers: [1, 3, 4, 6].map(PeerId).to_vec(), ..small_polar(8, 3).config().clone() };
    Polar::new(change(PolarConfig { servers_each: 4, ..config })).expect("good parameters")
}

fn masked(mail: &Mail) -> Option<(u32, Vec<u64>)> {
    match PolarLetter::decode(&mail.bytes) {
        Ok(PolarLetter::Masked { round, words }) => Some((round, words.iter().collect())),
        _ => None,
    }
}

/// Delivers all mail but what `keep` wants to hold back; returns every letter that was sent.
fn deliver(network: &mut Network<'_, Polar>, keep: impl Fn(&Mail) -> bool) -> Vec<Mail> {
    let (mut seen, mut kept) = (Vec::new(), Vec::new());
    while !network.mail.is_empty() {
        let mail = network.mail.remove(0);
        seen.push(mail.clone());
        if keep(&mail) {
            kept.push(mail);
        } else {
            network.hand_over(&mail).expect("a letter in turn");
        }
    }
    network.mail = kept;
    seen
}

fn server<'n>(network: &'n Network<'_, Polar>, id: u32) -> &'n Server {
    network.states[id as usize].server().expect("a server")
}

/// CHECK 06.a: the mean is that of the integers, to the bit, and within 2^-f of that of the models.
#[test]
fn what_servers_agree_on_is_the_mean_of_plain_integers_to_the_bit() {
    let (problem, polar) = (problem(), polar(|config| PolarConfig { rounds: 3, ..config }));
    let mut network = Network::start(&polar, &problem);
    for round in 0..3 {
        // Everything but models under pads, so that all servers stand before them.
        deliver(&mut network, |mail| masked(mail).is_some());
        let models: Vec<Vec<f64>> = [1, 3, 4, 6].map(|id| server(&network, id).model().to_vec()).to_vec();
        let integers =
            |c: usize| models.iter().map(move |x| i128::from((x[c] * 4294967296.0).round_ties_even() as i64));
        let exact: Vec<f64> = (0..3).map(|c| integers(c).sum::<i128>() as i64 as f64 / 4294967296.0 / 4.0).collect();
        // The four stand apart, or nothing would be tested.
        assert!((0..3).all(|c| models.iter().any(|x| x[c] != models[0][c])), "{models:?}");
        let sent: Vec<(u32, Vec<u64>)> = network.mail.iter().filter_map(masked).collect();
        assert_eq!(sent.len(), 12, "each of four to three others");
        // Each server says the same to all, and together they say the sum.
        let words: Vec<&Vec<u64>> = sent.chunks(3).map(|same| &same[0].1).collect();
        assert!(sent.chunks(3).all(|same| same.iter().all(|(of, w)| *of == round && *w == same[0].1)));
        for c in 0..3 {
            let sum = words.iter().fold(0_u64, |sum, words| sum.wrapping_add(words[c]));
            assert_eq!(i128::from(sum as i64), integers(c).sum::<i128>());
            assert!(words.iter().zip(&models).all(|(words, x)| words[c] != (x[c] * 4294967296.0) as i64 as u64));
        }
        let shares: Vec<Mail> = network.mail.drain(..).collect();
        shares.iter().for_each(|mail| network.hand_over(mail).expect("in turn"));
        for id in [1, 3, 4, 6] {
            assert_eq!(server(&network, id).model(), exact, "round {round}");
            let mean = |c: usize| models.iter().map(|x| x[c]).sum::<f64>() / 4.0;
            assert!((0..3).all(|c| (exact[c] - mean(c)).abs() <= 1.0 / 4294967296.0));
        }
    }
}

/// Two of four servers put together all pads that they have, and take them off what the other two say: the sum of the two is left, to the bit, and each of them still
/// has the pad that these two share, so that any other two models with the same sum would have looked the same. Three see the fourth's model.
#[test]
fn a_coalition_of_all_but_two_servers_sees_only_the_sum_of_the_rest() {
    let (problem, polar) = (problem(), polar(|config| config));
    let mut network = Network::start(&polar, &problem);
    let seen = deliver(&mut network, |mail| masked(mail).is_some());
    let key = |of: u32| {
        let mut keys =
            seen.iter().filter(|mail| mail.from == PeerId(of)).filter_map(|mail| {
                match PolarLetter::decode(&mail.bytes) {
                    Ok(PolarLetter::Key(key)) => Some(key),
                    _ => None,
                }
            });
        keys.next_back().expect("a server tells its key")
    };
    let model = |of: u32| -> Vec<u64> {
        let grid = |x: &f64| (x * 4294967296.0).round_ties_even() as i64 as u64;
        server(&network, of).model().iter().map(grid).collect()
    };
    // What is left of a server's words when a coalition takes off all pads that it shares with it.
    let left = |of: u32, coalition: &[u32]| -> Vec<u64> {
        let sent = network.mail.iter().find(|mail| mail.from == PeerId(of)).and_then(masked).expect("its words").1;
        coalition.iter().fold(sent, |words, member| {
            let mut pair = server(&network, *member).pair(key(of), 0).expect("a key");
            let mut pad = vec![0; words.len()];
            pair.stream(0, Direction::FromSmaller).expect("fresh here").mask(&mut pad).expect("short");
            // Where one adds the pad the other subtracts it.
            words.iter().zip(pad).map(|(word, pad)| word.wrapping_add(pad)).collect()
        })
    };
    for [a, b, c, d] in [[1, 3, 4, 6], [4, 6, 1, 3], [1, 6, 3, 4]] {
        let (of_c, of_d) = (left(c, &[a, b]), left(d, &[a, b]));
        for k in 0..3 {
            let sum = model(c)[k].wrapping_add(model(d)[k]);
            assert_eq!(of_c[k].wrapping_add(of_d[k]), sum);
            assert_ne!(of_c[k], model(c)[k]);
            assert!((of_c[k].wrapping_sub(model(c)[k]) as i64).unsigned_abs() > 1 << 40, "a pad, not a small number");
        }
        assert_eq!(left(c, &[a, b, d]), model(c), "all others together see it");
    }
}

/// CHECK 06.a: given the models, what a server sends is uniform. Chi-square of the top four bits with 15 degrees of freedom, bound at 1e-3.
#[test]
fn what_a_server_sends_to_the_others_is_uniform() {
    let (problem, polar) = (problem(), polar(|config| PolarConfig { rounds: 400, step: still(), ..config }));
    let mut network = Network::start(&polar, &problem);
    let mut counts = [0.0_f64; 16];
    let mut seen = 0.0;
    for mail in deliver(&mut network, |_| false).iter().filter(|mail| mail.from == PeerId(3) && mail.to == PeerId(1)) {
        for word in masked(mail).map(|(_, words)| words).unwrap_or_default() {
            counts[(word >> 60) as usize] += 1.0;
            seen += 1.0;
        }
    }
    assert_eq!(seen, 1200.0);
    let chi2: f64 = counts.iter().map(|count| (count - seen / 16.0) * (count - seen / 16.0) / (seen / 16.0)).sum();
    assert!(chi2 < 37.7, "{chi2}");
}

fn still() -> StepSize {
    StepSize { first: 1e-30, offset: 0.0, power: 1.0 }
}

/// CHECK 06.b: with the printed modulus, the width 2B of the range, the sum of three servers wraps and its third is no mean.
#[test]
fn the_printed_modulus_destroys_the_sum() {
    let bound = 1.0_f64;
    let shifted: f64 = [0.9, 0.9, 0.9].iter().map(|x| x * bound + bound).sum();
    let printed = shifted % (2.0 * bound) / 3.0 - bound;
    assert!((printed - 0.9).abs() > 0.5, "{printed}");
    let wide = shifted % (2.0 * 3.0 * bound + 1.0) / 3.0 - bound;
    assert!((wide - 0.9).abs() < 1e-12, "{wide}");
}

/// CHECK 06.c: weights of clients of a run add up, and so do the vectors: all servers' uploads of a step together are the weighted gradient.
#[test]
fn weights_and_vectors_meet_their_conditions_in_a_run() {
    let problem = problem();
    for (scope, weights) in [
        (Scope::Block, Weights::PerNumber),
        (Scope::Iteration, Weights::PerNumber),
        (Scope::Block, Weights::PerCoordinate),
        (Scope::Iteration, Weights::PerCoordinate),
    ] {
        let polar = polar(|config| PolarConfig { scope, weights, batch: 100, ..config });
        let mut network = Network::start(&polar, &problem);
        let (config, stride) = (polar.config(), if weights == Weights::PerNumber { 1 } else { 3 });
        let slots = if scope == Scope::Block { 12 * stride } else { 4 * stride };
        for _ in 0..4 {
            for client in [0, 2, 5, 7] {
                let all = network.states[client].client().expect("a client").weights();
                assert_eq!(all.len(), 12 * stride);
                for coordinate in 0..stride {
                    for scope in all.chunks_exact(slots) {
                        let one = || scope.iter().skip(coordinate).step_by(stride).copied();
                        assert!((one().sum::<f64>() - config.weight).abs() < 1e-12 * config.weight_bound);
                        assert!(one().map(f64::abs).sum::<f64>() <= config.weight_bound * (1.0 + 1e-12));
                        assert!(one().any(|weight| weight < 0.0), "some are negative");
                    }
                }
            }
            let first: Vec<f64> = network.states[0].client().expect("a client").weights().to_vec();
            let at = server(&network, 1).model().to_vec();
            // Client 0 answers: its four uploads.
            let (own, others): (Vec<Mail>, Vec<Mail>) = network.mail.drain(..).partition(|mail| mail.to == PeerId(0));
            own.iter().for_each(|mail| network.hand_over(mail).expect("in turn"));
            let uploads: Vec<Vec<f64>> = network.mail.iter().filter_map(upload).collect();
            assert_eq!(uploads.len(), 4);
            network.mail.extend(others);
            let mut gradient = [0.0; 3];
            for (a, b) in problem.data.points(PeerId(0)).iter() {
                let slope = 2.0 * (sottovoce_algorithms::vector::dot(a, &at) - b);
                (0..3).for_each(|c| gradient[c] += slope * a[c]);
            }
            for c in 0..3 {
                let place = if stride == 1 { 0 } else { c };
                let weight: f64 = first[..4 * stride].iter().skip(place).step_by(stride).sum();
                let sum: f64 = uploads.iter().map(|upload| upload[c]).sum();
                assert!((sum - weight * gradient[c]).abs() < 1e-9, "{sum} {}", weight * gradient[c]);
            }
            // To the beginning of the next round.
            let round = server(&network, 1).progress().0;
            while server(&network, 1).progress().0 == round || server(&network, 6).progress().0 == round {
                let mail = network.mail.remove(0);
                network.hand_over(&mail).expect("in turn");
            }
            deliver(&mut network, |mail| matches!(PolarLetter::decode(&mail.bytes), Ok(PolarLetter::Model { .. })));
        }
    }
}

fn upload(mail: &Mail) -> Option<Vec<f64>> {
    match PolarLetter::decode(&mail.bytes) {
        Ok(PolarLetter::Upload { values, .. }) => Some(values.iter().collect()),
        _ => None,
    }
}

fn opens(mail: &Mail, step: u32) -> bool {
    matches!(PolarLetter::decode(&mail.bytes), Ok(PolarLetter::Model { step: of, .. }) if of == step)
}

/// Client 7 stops in the middle of a round: one server gets its second upload, the others do not. All servers take back all that it has uploaded in
/// the round, so that they come to the same mean as without it; it is told, says that it is there, and counts again.
#[test]
fn a_client_that_is_gone_counts_nothing_of_its_round_and_is_taken_back_when_it_is_there() {
    let problem = problem();
    // Gradients are constant: batches are whole, and the models hardly move.
    let polar = polar(|config| PolarConfig { batch: 100, step: StepSize { first: 1e-6, ..still() }, ..config });
    let mut network = Network::start(&polar, &problem);
    let is_from = |mail: &Mail, step: u32| {
        let of = matches!(PolarLetter::decode(&mail.bytes), Ok(PolarLetter::Upload { step: of, .. }) if of == step);
        mail.from == PeerId(7) && of
    };
    deliver(&mut network, |mail| is_from(mail, 1) && mail.to != PeerId(1));
    assert_eq!(server(&network, 1).progress(), (0, 2), "it has everything");
    assert_eq!(server(&network, 3).progress(), (0, 1), "it waits");
    network.mail.clear();
    // The first time-out asks the others, the second leaves the client out: at three servers in step 1, at the first in step 2.
    for _ in 0..2 {
        for id in [3, 4, 6] {
            network.wake(PeerId(id));
        }
        deliver(&mut network, |mail| mail.to == PeerId(7));
    }
    assert!([3, 4, 6].iter().all(|id| server(&network, *id).absent() == 1));
    for _ in 0..2 {
        network.wake(PeerId(1));
        deliver(&mut network, |mail| mail.to == PeerId(7) || opens(mail, 3));
    }
    assert_eq!(server(&network, 1).progress().0, 1, "the round has ended");
    // sum over steps, servers and those who count of W g = M g each; the step's size is that of the first round.
    let mut expected = [0.0; 3];
    for client in [0, 2, 5] {
        for (a, b) in problem.data.points(PeerId(client)).iter() {
            (0..3).for_each(|c| expected[c] += -2.0 * b * a[c]);
        }
    }
    let config = polar.config();
    for (c, expected) in expected.iter().enumerate() {
        let moved = server(&network, 3).model()[c];
        let exact = -polar.step_size(0) * config.weight / 4.0 * expected;
        assert!((moved - exact).abs() < 1e-3 * exact.abs() + 1e-9, "{moved} {exact}");
    }
    // It comes back: is told, answers, and after a round counts again.
    deliver(&mut network, |_| false);
    assert!([1, 3, 4, 6].iter().all(|id| server(&network, *id).absent() == 0), "taken back");
}

/// A server that waits for a client asks the others first: while one of them has not begun the step, nobody is left out.
#[test]
fn no_client_is_blamed_while_a_server_is_away() {
    let (problem, polar) = (problem(), polar(|config| config));
    let mut network = Network::start(&polar, &problem);
    // Server 6 is away: nothing reaches it, and its models reach nobody.
    let away = |mail: &Mail| mail.to == PeerId(6) || mail.from == PeerId(6);
    deliver(&mut network, away);
    for _ in 0..5 {
        for id in [1, 3, 4] {
            network.wake(PeerId(id));
        }
        deliver(&mut network, away);
    }
    assert!(
        [1, 3, 4].iter().all(|id| server(&network, *id).absent() == 0 && server(&network, *id).progress() == (0, 0))
    );
    // It comes back, and all rounds happen.
    deliver(&mut network, |_| false);
    assert!([1, 3, 4, 6].iter().all(|id| server(&network, *id).is_done()));
    assert!((0..8).all(|id| network.model(id) == network.model(1)), "everyone has the outcome");
}

#[test]
fn averaging_weights_are_doubly_stochastic() {
    for consensus in [Consensus::Secure, Consensus::Cycle, Consensus::Pairs, Consensus::Links, Consensus::Turns] {
        for servers in 2..7_u32 {
            let config = small_polar(9, 2).config().clone();
            // A star with a ring around it, open at one place.
            let star = (1..servers as usize).map(|k| (k, 0)).chain((2..servers as usize).map(|k| (k - 1, k)));
            let links =
                if matches!(consensus, Consensus::Links | Consensus::Turns) { star.collect() } else { Vec::new() };
            let config = PolarConfig { servers: (0..servers).map(PeerId).collect(), consensus, links, ..config };
            let polar = Polar::new(PolarConfig { servers_each: 2, ..config }).expect("good parameters");
            for round in 0..3 {
                let mut columns = vec![0.0; servers as usize];
                for server in 0..servers as usize {
                    let (own, others) = polar.averaging_weights(round, server);
                    assert!(
                        own > 0.0 && (own + others.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12
                    );
                    columns[server] += own;
                    others.iter().for_each(|(other, weight)| columns[*other] += weight);
                }
                assert!(columns.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{consensus:?} {columns:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_run_is_refused_in_a_line_that_says_what_can() {
    let refused = |change: &dyn Fn(PolarConfig) -> PolarConfig| {
        let error = Polar::new(change(small_polar(8, 3).config().clone())).expect_err("refused").to_string();
        assert!(error.contains("accepted: ") && !error.contains('\n'), "{error}");
        error
    };
    assert!(refused(&|config| PolarConfig { servers_each: 1, ..config }).contains("a single server would see"));
    assert!(refused(&|config| PolarConfig { servers: vec![PeerId(0)], ..config }).starts_with("1 servers"));
    assert!(
        refused(&|config| PolarConfig { agents: 3, servers: vec![PeerId(0), PeerId(1), PeerId(2)], ..config })
            .starts_with("no clients")
    );
    assert!(refused(&|config| PolarConfig { colluders: 3, ..config }).starts_with("3 servers that may collude"));
    assert!(refused(&|config| PolarConfig { weight: 0.0, ..config }).starts_with("a weight of 0"));
    assert!(refused(&|config| PolarConfig { weight: f64::NAN, ..config }).starts_with("a weight of NaN"));
    assert!(refused(&|config| PolarConfig { weight_bound: 1.0, ..config }).starts_with("a bound of 1 on weights"));
    assert!(refused(&|config| PolarConfig { noise_bound: -1.0, ..config }).starts_with("a bound of -1 on what"));
    assert!(refused(&|config| PolarConfig { start: 11.0, ..config }).contains("not in the compact set"));
    assert!(refused(&|config| PolarConfig { set: CompactSet::Ball(1.0), start: 0.9, ..config }).contains("not in the"));
    assert!(refused(&|config| PolarConfig { set: CompactSet::Box(2e6), ..config }).contains("would overflow"));
    assert!(refused(&|config| PolarConfig { set: CompactSet::Box(0.0), ..config }).contains("size 0"));
    assert!(refused(&|config| PolarConfig { batch: 0, ..config }).starts_with("a batch of no points"));
    assert!(refused(&|config| PolarConfig { rounds: 0, ..config }).starts_with("0 rounds"));
    assert!(refused(&|config| PolarConfig { timeout: 0.0, ..config }).starts_with("a time-out"));
    for (consensus, links, says) in [
        (Consensus::Links, vec![], "do not join all"),
        (Consensus::Turns, vec![(0, 1)], "do not join all"),
        (Consensus::Links, vec![(0, 1), (1, 2), (1, 0)], "lead nowhere new"),
        (Consensus::Links, vec![(0, 1), (2, 2)], "lead nowhere new"),
        (Consensus::Links, vec![(0, 1), (1, 3)], "lead nowhere new"),
        (Consensus::Secure, vec![(0, 1), (1, 2)], "nobody uses"),
    ] {
        let said = refused(&|config| PolarConfig { consensus, links: links.clone(), ..config });
        assert!(said.contains(says), "{said}");
    }
    let clip = |clip| Some(PolarPrivacy { clip, norm: Norm::L2 });
    assert!(refused(&|config| PolarConfig { private: clip(0.0), ..config }).starts_with("a clip of 0"));
    assert!(refused(&|config| PolarConfig { private: clip(f64::INFINITY), ..config }).starts_with("a clip of inf"));
    let step = StepSize { power: 0.5, ..still() };
    assert!(refused(&|config| PolarConfig { step, ..config }).contains("^0.5"));
    let basic = |config| PolarConfig { variant: Variant::Basic, scope: Scope::Iteration, ..config };
    assert!(refused(&basic).contains("\"basic\""));
}

proptest! {
    #[test]
    fn letters_come_back_to_the_bit(
        kind in 0usize..10,
        number: u32,
        values in prop::collection::vec(-1e75f64..1e75, 0..20),
        words in prop::collection::vec(any::<u64>(), 0..20),
        ids in prop::collection::vec(any::<u32>(), 0..20),
        key: [u8; 32],
    ) {
        let half = ids.len() / 2;
        let letter = [
            PolarLetter::Model { step: number, values: Numbers::Plain(&values) },
            PolarLetter::Upload { step: number, values: Numbers::Plain(&values) },
            PolarLetter::Roster { round: number, left: Words::Own(&ids[..half]), back: Words::Own(&ids[half..]) },
            PolarLetter::Masked { round: number, words: Words::Own(&words) },
            PolarLetter::Plain { round: number, values: Numbers::Plain(&values) },
            PolarLetter::Key(key),
            PolarLetter::Ask(number),
            PolarLetter::Begun(number),
            PolarLetter::LeftOut(number),
            PolarLetter::Here(number),
        ][kind];
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        letter.encode(&mut bytes);
        let back = PolarLetter::decode(&bytes).expect("own encoding");
        back.encode(&mut again);
        prop_assert_eq!(&bytes, &again);
        prop_assert_eq!(letter.vectors(), back.vectors());
        bytes.push(0);
        prop_assert!(PolarLetter::decode(&bytes).is_err());
    }

    /// Random bytes are letters or refused; and what they say to agents of a run never panics.
    #[test]
    fn random_bytes_never_panic(letters in prop::collection::vec((0u32..8, 0u32..8, 0u8..11, prop::collection::vec(any::<u8>(), 0..60)), 0..40)) {
        let (problem, polar) = (problem(), polar(|config| config));
        let mut network = Network::start(&polar, &problem);
        for (from, to, kind, mut bytes) in letters {
            bytes.insert(0, kind);
            // Steps and rounds that exist.
            bytes.iter_mut().skip(2).take(3).for_each(|byte| *byte = 0);
            let _ = network.hand_over(&Mail { from: PeerId(from), to: PeerId(to), vectors: 1, bytes });
        }
        network.mail.truncate(200);
        while !network.mail.is_empty() {
            let mail = network.mail.remove(0);
            let _ = network.hand_over(&mail);
            network.mail.truncate(200);
        }
    }
}

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
