//! Peers that can reach each other only through a third.

use libp2p::multiaddr::Protocol;
use sottovoce_net::transport::{TransportEvent, TransportSettings};

use crate::common::{Peer, settings};

#[tokio::test]
async fn two_peers_behind_a_relay_exchange_a_frame() {
    let relay = Peer::start(TransportSettings { serve_relay: true, ..settings() }).await;
    let slot = relay.address().with(Protocol::P2p(relay.id()));
    // Bob listens nowhere but at the relay.
    let mut bob = Peer::start(TransportSettings { listen: vec![], relays: vec![slot.clone()], ..settings() }).await;
    let event = bob.wait_for(|event| matches!(event, TransportEvent::Listening(_))).await;
    let TransportEvent::Listening(address) = event else { unreachable!() };
    assert!(address.iter().any(|part| part == Protocol::P2pCircuit), "{address}");
    assert_eq!(bob.transport.listening(), std::slice::from_ref(&address));

    let (to, contact) = (bob.id(), (bob.id(), vec![slot.with(Protocol::P2pCircuit)]));
    let _bob = bob.echo();
    // Alice talks with listed peers only; the relay on the way to one is no stranger.
    let alice = TransportSettings { listen: vec![], known: vec![contact], listed_only: true, ..settings() };
    let mut alice = Peer::start(alice).await;
    alice.wait_connected(to).await;
    assert_eq!(alice.transport.request(to, b"through the relay".to_vec()).await, Ok(b"through the relay".to_vec()));
    assert_eq!(relay.transport.counters().requests_received, 0);
}
