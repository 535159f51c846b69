//! Honest peers: frames arrive, peers come back, mistakes of operators are one clear error.

use std::time::Duration;

use libp2p::PeerId;
use sottovoce_net::transport::{
    Identity, Limits, Reason, RequestError, StartError, Transport, TransportEvent, TransportSettings,
};

use crate::common::{FRAME_BYTES_MAX, PATIENCE, Peer, settings, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_peers_exchange_a_thousand_frames() {
    let bob = Peer::start(settings()).await;
    let (to, contact) = (bob.id(), bob.contact());
    let bob = bob.echo();
    let mut alice = Peer::start(TransportSettings { known: vec![contact], ..settings() }).await;
    alice.wait_connected(to).await;

    let start = tokio::time::Instant::now();
    for round in 0_usize..1000 {
        let length = if round == 999 { FRAME_BYTES_MAX } else { round * 61 };
        let frame = vec![(round % 251) as u8; length];
        assert_eq!(alice.transport.request(to, frame.clone()).await, Ok(frame), "round {round}");
    }
    println!("1000 exchanges one after the other: {:?}", start.elapsed());
    let counts = bob.counters();
    assert_eq!((counts.requests_received, counts.refused_total()), (1000, 0));
    let sent = alice.transport.counters();
    assert_eq!((sent.requests_sent, sent.requests_failed), (1000, 0));
    assert_eq!((sent.bytes_sent, sent.bytes_received), (counts.bytes_received, counts.bytes_sent));
}

#[tokio::test]
async fn a_request_without_an_answer_fails_and_says_how() {
    let mut bob = Peer::start(settings()).await;
    let to = bob.id();
    let short = Limits { request_timeout: Duration::from_millis(500), ..settings().limits };
    let mut alice = Peer::start(TransportSettings { known: vec![bob.contact()], limits: short, ..settings() }).await;
    alice.wait_connected(to).await;

    let long = vec![0; FRAME_BYTES_MAX + 1];
    let error = alice.transport.request(to, long.clone()).await.expect_err("over the cap");
    assert!(matches!(error, RequestError::FrameTooLong(_)), "{error}");
    assert_eq!(alice.transport.request(PeerId::random(), vec![]).await, Err(RequestError::NotConnected));
    assert_eq!(alice.transport.request(alice.id(), vec![]).await, Err(RequestError::NotConnected));

    // A reply that is dropped, or over the cap, refuses the request.
    let question = tokio::spawn({
        let alice = alice.transport.clone();
        async move { (alice.request(to, vec![1]).await, alice.request(to, vec![2]).await) }
    });
    for oversized in [false, true] {
        let event = bob.wait_for(|event| matches!(event, TransportEvent::Request { .. })).await;
        let TransportEvent::Request { from, reply, .. } = event else { unreachable!() };
        assert_eq!(from, alice.id());
        if oversized {
            assert!(reply.send(long.clone()).is_err());
        } else {
            drop(reply);
        }
    }
    assert_eq!(question.await.expect("no panic"), (Err(RequestError::Refused), Err(RequestError::Refused)));

    // One that is never sent is waited for, but not for ever.
    let (answer, event) = tokio::join!(
        alice.transport.request(to, vec![3]),
        bob.wait_for(|event| matches!(event, TransportEvent::Request { .. }))
    );
    assert_eq!(answer, Err(RequestError::Timeout));
    drop(event);

    alice.transport.stop().await;
    assert_eq!(alice.transport.request(to, vec![]).await, Err(RequestError::Stopped));
    bob.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == alice.id())).await;
}

#[tokio::test]
async fn a_port_in_use_is_one_clear_error() {
    let bob = Peer::start(settings()).await;
    let plain = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let plain_port = plain.local_addr().expect("an address").port();
    for taken in [bob.address(), format!("/ip4/127.0.0.1/tcp/{plain_port}").parse().expect("an address")] {
        let settings = TransportSettings { listen: vec![taken.clone()], ..settings() };
        let error = Transport::start(&Identity::generate(), settings).await.expect_err("the port is taken");
        assert!(matches!(&error, StartError::PortInUse { address } if *address == taken), "{error}");
        assert!(error.to_string().contains(&taken.to_string()), "{error}");
    }
}

#[tokio::test]
async fn settings_of_no_use_are_errors() {
    async fn refused(settings: TransportSettings) -> String {
        Transport::start(&Identity::generate(), settings).await.expect_err("of no use").to_string()
    }
    let udp = vec!["/ip4/127.0.0.1/udp/0".parse().expect("an address")];
    assert!(refused(TransportSettings { listen: udp, ..settings() }).await.contains("/udp/0"));
    assert!(refused(TransportSettings { protocol: "sottovoce".into(), ..settings() }).await.contains("slash"));
    assert!(refused(TransportSettings { frame_bytes_max: 0, ..settings() }).await.contains("frame_bytes_max"));
    let nameless = vec!["/ip4/127.0.0.1/tcp/1".parse().expect("an address")];
    assert!(refused(TransportSettings { relays: nameless, ..settings() }).await.contains("/p2p/"));
}

/// A process that is started again is a new transport with the same identity.
#[tokio::test]
async fn a_peer_that_comes_back_is_talked_to_again() {
    let identity = Identity::generate();
    let bob = Peer::start_as(&identity, settings()).await;
    let (to, address) = (bob.id(), bob.address());
    let mut alice = Peer::start(TransportSettings { known: vec![bob.contact()], ..settings() }).await;
    alice.wait_connected(to).await;

    // At the same port.
    bob.transport.stop().await;
    alice.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == to)).await;
    let listen = vec![address.clone()];
    let bob = Peer::start_as(&identity, TransportSettings { listen, ..settings() }).await;
    assert_eq!(bob.address(), address);
    let bob = bob.echo();
    alice.wait_connected(to).await;
    assert_eq!(alice.transport.request(to, vec![1]).await, Ok(vec![1]));

    // At another port, which someone tells us. The handle is dropped this time.
    drop(bob);
    alice.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == to)).await;
    let bob = Peer::start_as(&identity, settings()).await;
    let address_now = bob.address();
    assert_ne!(address_now, address);
    let _bob = bob.echo();
    alice.transport.learn_address(to, address_now).expect("taken");
    alice.wait_connected(to).await;
    assert_eq!(alice.transport.request(to, vec![2]).await, Ok(vec![2]));
}

#[tokio::test]
async fn peers_that_dial_each_other_at_once_tolerate_two_connections() {
    let (one, two) = (Identity::generate(), Identity::generate());
    let mut alice = Peer::start_as(&one, TransportSettings { known: vec![(two.id(), vec![])], ..settings() }).await;
    let mut bob = Peer::start_as(&two, TransportSettings { known: vec![(one.id(), vec![])], ..settings() }).await;
    assert_eq!(alice.transport.request(two.id(), vec![]).await, Err(RequestError::NotConnected));
    bob.transport.learn_address(alice.id(), alice.address()).expect("taken");
    alice.transport.learn_address(bob.id(), bob.address()).expect("taken");
    tokio::join!(alice.wait_connected(two.id()), bob.wait_connected(one.id()));
    let (alice, bob) = (alice.echo(), bob.echo());
    for round in 0..20 {
        assert_eq!(alice.request(two.id(), vec![round]).await, Ok(vec![round]));
        assert_eq!(bob.request(one.id(), vec![round]).await, Ok(vec![round]));
    }
}

/// A peer that is not listed is found by its address, and dialled when there is something to say.
#[tokio::test]
async fn a_request_dials_a_peer_whose_address_is_known() {
    let bob = Peer::start(settings()).await;
    let (to, address) = (bob.id(), bob.address());
    let _bob = bob.echo();
    let alice = Peer::start(settings()).await;
    alice.transport.learn_address(to, address).expect("taken");
    assert_eq!(alice.transport.request(to, vec![1]).await, Ok(vec![1]));
}

#[tokio::test]
async fn identify_tells_addresses() {
    let mut bob = Peer::start(settings()).await;
    let alice = Peer::start(TransportSettings { known: vec![bob.contact()], ..settings() }).await;
    let (id, expected) = (alice.id(), alice.address());
    bob.wait_for(
        |event| matches!(event, TransportEvent::Discovered { peer, address } if *peer == id && *address == expected),
    )
    .await;
}

/// Needs multicast, which not every machine has: then it says that it was skipped.
#[tokio::test]
async fn peers_of_one_local_network_find_each_other_by_mdns() {
    let (one, two) = (Identity::generate(), Identity::generate());
    let listen = vec!["/ip4/0.0.0.0/tcp/0".parse().expect("an address")];
    let near = TransportSettings { listen, mdns: true, ..settings() };
    let started = Transport::start(&one, TransportSettings { known: vec![(two.id(), vec![])], ..near.clone() }).await;
    let (alice, events) = match started {
        Ok(started) => started,
        Err(error) => {
            eprintln!("SKIPPED peers_of_one_local_network_find_each_other_by_mdns: {error}");
            return;
        }
    };
    let mut alice = Peer { transport: alice, events };
    let bob = Peer::start_as(&two, TransportSettings { known: vec![(one.id(), vec![])], ..near }).await;
    let (to, _bob) = (bob.id(), bob.echo());
    let found = tokio::time::timeout(Duration::from_secs(8), alice.wait_connected(to)).await;
    if found.is_err() {
        eprintln!("SKIPPED peers_of_one_local_network_find_each_other_by_mdns: no multicast here");
        return;
    }
    assert_eq!(alice.transport.request(to, vec![1]).await, Ok(vec![1]));
    println!("mDNS works here");
}

#[tokio::test]
async fn a_node_that_does_not_listen_refuses_requests_and_still_hears_who_came_and_went() {
    let generous = Limits {
        requests_unanswered_per_peer: 10_000,
        requests_under_way_per_peer: 100,
        request_timeout: Duration::from_millis(300),
        ..settings().limits
    };
    let mut bob = Peer::start(TransportSettings { limits: generous.clone(), ..settings() }).await;
    let to = bob.id();
    let asking = TransportSettings { known: vec![bob.contact()], limits: generous, ..settings() };
    let mut alice = Peer::start(asking.clone()).await;
    let first = alice.id();
    alice.wait_connected(to).await;
    let refused = || bob.transport.counters().refused(Reason::QueueFull);
    let flood = async {
        while refused() == 0 {
            let requests = (0..50).map(|_| alice.transport.request(to, vec![0; 100]));
            futures::future::join_all(requests).await;
        }
    };
    tokio::time::timeout(PATIENCE, flood).await.expect("the queue is bounded");
    alice.transport.stop().await;
    let mut alice = Peer::start(asking).await;
    let second = alice.id();
    alice.wait_connected(to).await;
    bob.wait_connected(first).await;
    bob.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == first)).await;
    until("the second is known", || bob.transport.counters().connections >= 2).await;
    alice.transport.stop().await;
    bob.wait_for(|event| matches!(event, TransportEvent::Disconnected(peer) if *peer == second)).await;
}
