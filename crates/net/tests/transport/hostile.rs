//! Hostile peers: what they do is refused, counted, and does not hurt others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sottovoce_net::transport::{Limits, Reason, RequestError, TransportEvent, TransportSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::common::{FRAME_BYTES_MAX, PROTOCOL, Peer, settings, until};
use crate::raw::{Raw, SILENCE};

fn frame(length: u32, body: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes(), body].concat()
}

#[tokio::test]
async fn a_frame_that_lies_about_its_length_is_refused_and_counted_and_many_lead_to_a_ban() {
    let bob = Peer::start(settings()).await;
    let (to, address) = (bob.id(), bob.address());
    let bob = bob.echo();
    let mut liar = Raw::new(PROTOCOL);
    liar.connect(to, address.clone()).await;
    assert_eq!(liar.say(to, frame(5, b"hello")).await, Some(frame(5, b"hello")));

    // Announced over the cap: refused at the length, whatever follows.
    for length in [u32::MAX, FRAME_BYTES_MAX as u32 + 1] {
        assert_eq!(liar.say(to, frame(length, b"hello")).await, Some(vec![]));
    }
    assert_eq!(bob.counters().refused(Reason::FrameTooLong), 2);
    // More announced than sent, more sent than announced, and nothing.
    for lie in [frame(6, b"hello"), frame(4, b"hello"), vec![0, 0], vec![]] {
        assert_eq!(liar.say(to, lie).await, Some(vec![]));
    }
    assert_eq!(bob.counters().refused(Reason::FrameMalformed), 4);
    assert_eq!(bob.counters().requests_received, 1);

    for _ in 0..100 {
        if liar.say(to, frame(u32::MAX, b"")).await.is_none() {
            break;
        }
    }
    until("the liar is banned", || bob.counters().bans == 1).await;
    let lies = bob.counters().refused(Reason::FrameTooLong);
    assert!((20..=40).contains(&lies), "banned after {lies} lies");
    // It may knock again, and is not let in.
    liar.swarm.dial(address).expect("a dial begins");
    tokio::select! {
        () = until("it is turned away", || bob.counters().refused(Reason::Banned) > 0) => {}
        () = liar.idle() => {}
    }
}

#[tokio::test]
async fn a_frame_that_is_never_finished_is_given_up_and_counted() {
    let limits = Limits { request_timeout: Duration::from_millis(600), ..settings().limits };
    let bob = Peer::start(TransportSettings { limits, ..settings() }).await;
    let (to, address) = (bob.id(), bob.address());
    let bob = bob.echo();
    let mut slow = Raw::new(PROTOCOL);
    slow.connect(to, address).await;
    tokio::select! {
        () = until("it is given up", || bob.counters().refused(Reason::FrameSlow) > 0) => {}
        _ = slow.say(to, SILENCE.to_vec()) => panic!("the stack of the slow peer waits for ten seconds"),
    }
    assert_eq!(bob.counters().requests_received, 0);
}

#[tokio::test]
async fn an_answer_over_the_cap_is_refused_and_counted() {
    let mut liar = Raw::new(PROTOCOL);
    let (to, address) = (liar.id(), liar.listen().await);
    tokio::spawn(liar.answer(frame(u32::MAX, b"hello")));
    let mut alice = Peer::start(TransportSettings { known: vec![(to, vec![address])], ..settings() }).await;
    alice.wait_connected(to).await;
    let refused = alice.transport.request(to, vec![1]).await;
    assert_eq!(refused, Err(RequestError::Answer(Reason::FrameTooLong)));
    assert_eq!(alice.transport.counters().refused(Reason::FrameTooLong), 1);
}

#[tokio::test]
async fn peers_of_different_tasks_cannot_talk() {
    // One that says nothing about itself: found out when the protocol is negotiated.
    let mut other = Raw::new("/sottovoce/2/other");
    let (to, address) = (other.id(), other.listen().await);
    tokio::spawn(other.answer(vec![]));
    let mut alice = Peer::start(TransportSettings { known: vec![(to, vec![address])], ..settings() }).await;
    alice.wait_connected(to).await;
    assert_eq!(alice.transport.request(to, vec![1]).await, Err(RequestError::WrongTask));
    assert_eq!(alice.transport.counters().refused(Reason::WrongTask), 1);
    alice.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == to)).await;

    // One of ours, which says which task it learns: found out at once, by both, and nobody need ask.
    let bob = Peer::start(settings()).await;
    let other = TransportSettings { protocol: "/sottovoce/2/other".into(), known: vec![bob.contact()], ..settings() };
    let mut carol = Peer::start(other).await;
    for one in [&bob, &carol] {
        until("both count", || one.transport.counters().refused(Reason::WrongTask) > 0).await;
    }
    carol.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == bob.id())).await;
    let error = carol.transport.request(bob.id(), vec![1]).await.expect_err("of another task");
    assert!(matches!(error, RequestError::WrongTask | RequestError::NotConnected), "{error}");
    assert_eq!(bob.transport.counters().requests_received, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flooding_peer_is_banned_and_an_honest_one_keeps_half_its_rate() {
    const PERIOD: Duration = Duration::from_millis(1500);
    let limits = Limits { requests_per_second: 100, ..Limits::default() };
    let bob = Peer::start(TransportSettings { limits, ..settings() }).await;
    let (to, contact) = (bob.id(), bob.contact());
    let bob = bob.echo();
    let asking = TransportSettings { known: vec![contact], ..settings() };
    let mut honest = Peer::start(asking.clone()).await;
    honest.wait_connected(to).await;

    // Answers within a period, asking 60 times per second.
    let ask = async || {
        let end = Instant::now() + PERIOD;
        let mut answers = 0;
        while Instant::now() < end {
            answers += u32::from(honest.transport.request(to, vec![1; 1000]).await.is_ok());
            tokio::time::sleep(Duration::from_micros(16_667)).await;
        }
        answers
    };
    let alone = ask().await;

    let patient = Limits { requests_under_way_per_peer: 64, ..asking.limits.clone() };
    let mut flooder = Peer::start(TransportSettings { limits: patient, ..asking }).await;
    flooder.wait_connected(to).await;
    let flooding = Arc::new(AtomicBool::new(true));
    for _ in 0..64 {
        let (flooder, flooding) = (flooder.transport.clone(), Arc::clone(&flooding));
        tokio::spawn(async move {
            while flooding.load(Ordering::Relaxed) {
                if flooder.request(to, vec![0; 1000]).await.is_err() {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    let beside = ask().await;
    flooding.store(false, Ordering::Relaxed);
    let counts = bob.counters();
    println!("honest answers: {alone} alone, {beside} beside a flood; {counts:?}");
    assert!(2 * beside >= alone, "{beside} of {alone}");
    assert!(counts.refused(Reason::RequestRate) > 100, "{counts:?}");
    assert_eq!(counts.bans, 1);
    flooder.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == to)).await;
    until("the flooder is turned away", || bob.counters().refused(Reason::Banned) > 0).await;
    assert_eq!(honest.transport.request(to, vec![2]).await, Ok(vec![2]));
}

#[tokio::test]
async fn a_ban_ends() {
    let mut bob = Peer::start(settings()).await;
    let to = bob.id();
    let mut alice = Peer::start(TransportSettings { known: vec![bob.contact()], ..settings() }).await;
    bob.wait_connected(alice.id()).await;
    alice.wait_connected(to).await;
    bob.transport.ban(alice.id(), Duration::from_millis(500)).expect("taken");
    bob.wait_for(|event| matches!(event, TransportEvent::Disconnected(_))).await;
    until("she is turned away", || bob.transport.counters().refused(Reason::Banned) > 0).await;
    let _bob = bob.echo();
    let answered = async {
        while alice.transport.request(to, vec![1]).await != Ok(vec![1]) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::common::PATIENCE, answered).await.expect("the ban ends");
}

#[tokio::test]
async fn strangers_are_refused_where_only_listed_peers_may_connect() {
    let mut friend = Peer::start(settings()).await;
    let bob = Peer::start(TransportSettings { known: vec![friend.contact()], listed_only: true, ..settings() }).await;
    let (to, contact) = (bob.id(), bob.contact());
    let bob = bob.echo();
    let stranger = Peer::start(TransportSettings { known: vec![contact], ..settings() }).await;
    until("the stranger is turned away", || bob.counters().refused(Reason::Stranger) > 0).await;
    assert!(stranger.transport.request(to, vec![1]).await.is_err());
    friend.wait_connected(to).await;
    assert_eq!(friend.transport.request(to, vec![1]).await, Ok(vec![1]));
    assert_eq!(bob.counters().requests_received, 1);
}

#[tokio::test]
async fn connections_are_limited_and_listed_peers_are_exempt() {
    let mut friend = Peer::start(settings()).await;
    let limits = Limits { connections_incoming: 2, ..settings().limits };
    let bob = Peer::start(TransportSettings { known: vec![(friend.id(), vec![])], limits, ..settings() }).await;
    let (to, contact) = (bob.id(), bob.contact());
    let bob = bob.echo();
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(Peer::start(TransportSettings { known: vec![contact.clone()], ..settings() }).await);
    }
    until("two are too many", || bob.counters().refused(Reason::ConnectionsIncoming) > 1).await;
    friend.transport.learn_address(to, contact.1[0].clone()).expect("taken");
    assert_eq!(friend.transport.request(to, vec![1]).await, Ok(vec![1]));
    friend.wait_connected(to).await;
}

#[tokio::test]
async fn no_connections_are_made_while_the_process_uses_too_much_memory() {
    let limits = Limits { memory_bytes: 1, ..settings().limits };
    let bob = Peer::start(TransportSettings { limits, ..settings() }).await;
    let _alice = Peer::start(TransportSettings { known: vec![bob.contact()], ..settings() }).await;
    until("she is refused", || bob.transport.counters().refused(Reason::Memory) > 0).await;
    assert_eq!(bob.transport.counters().connections, 0);
}

#[tokio::test]
async fn an_address_that_connects_too_often_is_refused() {
    let limits = Limits { handshakes_at_once: 10, handshakes_per_second: 1, ..settings().limits };
    let bob = Peer::start(TransportSettings { limits, ..settings() }).await;
    let port = port_of(&bob);
    for _ in 0..30 {
        let _ = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("a socket");
    }
    until("most are refused", || bob.transport.counters().refused(Reason::HandshakeRate) >= 18).await;
}

fn port_of(peer: &Peer) -> u16 {
    let address = peer.address().to_string();
    address.rsplit('/').next().expect("a port").parse().expect("a number")
}

#[tokio::test]
async fn junk_on_the_port_does_no_harm() {
    let bob = Peer::start(settings()).await;
    let (to, contact, port) = (bob.id(), bob.contact(), port_of(&bob));
    let bob = bob.echo();
    let junk: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let header = b"\x13/multistream/1.0.0\n\x07/noise\n";
    let openings: [&[u8]; 5] = [b"", b"GET / HTTP/1.1\r\n\r\n", header, &[0xff; 64], b"\x13/multistream/1.0.0\n"];
    for opening in openings {
        let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("a socket");
        // It may be closed under our hands, which is fine.
        let _ = socket.write_all(opening).await;
        let _ = socket.write_all(&junk).await;
        let _ = socket.shutdown().await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut answer)).await;
    }
    until("all are counted", || bob.counters().refused(Reason::Handshake) == 5).await;
    let mut alice = Peer::start(TransportSettings { known: vec![contact], ..settings() }).await;
    alice.wait_connected(to).await;
    assert_eq!(alice.transport.request(to, vec![1]).await, Ok(vec![1]));
}
