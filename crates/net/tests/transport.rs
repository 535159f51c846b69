//! Honest peers: frames arrive, peers come back, mistakes of operators are one clear error.

mod common;

use std::time::Duration;

use common::{FRAME_BYTES_MAX, Peer, settings, until};
use libp2p::PeerId;
use sottovoce_net::transport::{Event, Identity, RequestError, Settings, StartError, Transport};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_peers_exchange_a_thousand_frames() {
    let bob = Peer::start(settings()).await;
    let (to, contact) = (bob.id(), bob.contact());
    let (bob, _echo) = bob.echo();
    let mut alice = Peer::start(Settings { known: vec![contact], ..settings() }).await;
    alice.wait_connected(to).await;

    let start = tokio::time::Instant::now();
    for round in 0_u32..1000 {
        let mut frame = vec![round as u8; (round as usize * 61) % (FRAME_BYTES_MAX + 1)];
        if round == 999 {
            frame = vec![7; FRAME_BYTES_MAX];
        }
        assert_eq!(alice.transport.request(to, frame.clone()).await, Ok(frame), "round {round}");
    }
    println!("1000 exchanges one after the other: {:?}", start.elapsed());
    let counts = bob.counters();
    assert_eq!((counts.requests_received, counts.refused_total()), (1000, 0));
    let sent = alice.transport.counters();
    assert_eq!((sent.requests_sent, sent.requests_failed), (1000, 0));
    assert_eq!((sent.bytes_sent, sent.bytes_received), (counts.bytes_received, counts.bytes_sent));
}
