//! Many peers, and hostile ones: what it costs the others.

mod town;

use futures::future::join_all;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use sottovoce_algorithms::personal::descent::Start;
use sottovoce_net::transport::{Identity, Transport, TransportSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use town::{Running, block_on, descent, memory, problem, town};

/// Seconds of a case: a few in the tests, all of them in the soak.
fn seconds(short: u64, long: u64) -> Duration {
    Duration::from_secs(if std::env::var_os("SOTTOVOCE_SOAK").is_some() { long } else { short })
}

async fn wakes(running: &[Running]) -> u64 {
    join_all(running.iter().map(Running::status)).await.iter().map(|status| status.wakes).sum()
}

/// Posts that were heard, all over the network.
async fn heard(running: &[Running]) -> u64 {
    let statuses = join_all(running.iter().map(Running::status)).await;
    statuses.iter().flat_map(|status| &status.neighbours).map(|neighbour| neighbour.post).sum()
}

#[test]
fn a_hundred_peers_run_in_one_process() {
    block_on(async {
        let problem = problem(1, 100, 5);
        let mut town = town(problem, descent(problem, Start::Zero));
        (town.interval, town.tolerance) = (Duration::from_millis(500), None);
        let before = memory();
        let running = town.start_all().await;
        let began = Instant::now();
        while wakes(&running).await == 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody wakes");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (first, time) = (wakes(&running).await, seconds(8, 300));
        tokio::time::sleep(time).await;
        let made = wakes(&running).await - first;
        let due = 100.0 * time.as_secs_f64() / town.interval.as_secs_f64();
        println!("{made} wakes of {due}, memory {:?} -> {:?} bytes", before, memory());
        assert!(made as f64 > 0.5 * due, "{made} wakes of {due}");
        assert!(memory().is_none_or(|bytes| bytes < 2 << 30), "{:?}", memory());
        for status in join_all(running.iter().map(Running::status)).await {
            assert!(status.neighbours.iter().all(|neighbour| neighbour.post > 0), "{} hears all", status.name);
        }
        for peer in running {
            peer.stop().await.expect("a clean end");
        }
    });
}

/// Strangers with keys of their own, members' ports full of junk: honest peers go on, and memory stays.
#[test]
fn a_flood_of_junk_slows_nobody_to_half_and_fills_no_memory() {
    block_on(async {
        let problem = problem(2, 4, 5);
        let mut town = town(problem, descent(problem, Start::Zero));
        // A step each twentieth of a second, of which none is alike, since nobody is quiet before the end of it.
        (town.interval, town.tolerance) = (Duration::from_millis(50), None);
        let running = town.start_all().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let time = seconds(8, 60);
        let rate = async |running: &[Running]| {
            let (first, began) = (wakes(running).await, Instant::now());
            tokio::time::sleep(time).await;
            (wakes(running).await - first) as f64 / began.elapsed().as_secs_f64()
        };
        let alone = rate(&running).await;
        let before = memory();
        let over = Arc::new(AtomicBool::new(false));
        let junk = Arc::new(AtomicU64::new(0));
        for (address, identity) in town.addresses.iter().flatten().cloned().zip(&town.identities) {
            tokio::spawn(raw_junk(address.clone(), over.clone(), junk.clone()));
            tokio::spawn(strangers(identity.id(), address, over.clone(), junk.clone()));
        }
        let flooded = rate(&running).await;
        let after = memory();
        over.store(true, Ordering::Relaxed);
        let sent = junk.load(Ordering::Relaxed);
        println!(
            "{alone:.1} wakes a second alone, {flooded:.1} under {sent} pieces of junk, memory {before:?} -> {after:?}"
        );
        assert!(flooded > 0.5 * alone, "{flooded} of {alone} wakes a second");
        assert!(sent > 1000, "{sent} pieces of junk are no flood");
        if let (Some(before), Some(after)) = (before, after) {
            // The flooders live in this process too, so this bounds them and the peers together.
            assert!(after < before + (64 << 20), "{before} -> {after} bytes");
        }
        let refused: u64 =
            join_all(running.iter().map(Running::status)).await.iter().flat_map(|status| status.refused.values()).sum();
        assert!(refused > 100, "{refused} refusals were counted");
        for peer in running {
            peer.stop().await.expect("a clean end");
        }
    });
}

fn socket(address: &Multiaddr) -> std::net::SocketAddr {
    let mut parts = address.iter();
    match (parts.next(), parts.next()) {
        (Some(Protocol::Ip4(ip)), Some(Protocol::Tcp(port))) => (ip, port).into(),
        other => panic!("{other:?} is no address of ours"),
    }
}

/// Bytes that mean nothing, over new connections.
async fn raw_junk(address: Multiaddr, over: Arc<AtomicBool>, sent: Arc<AtomicU64>) {
    let bytes = [0x5a; 4096];
    while !over.load(Ordering::Relaxed) {
        if let Ok(mut stream) = TcpStream::connect(socket(&address)).await {
            for _ in 0..16 {
                if stream.write_all(&bytes).await.is_err() {
                    break;
                }
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Peers with a good key and nothing good to say.
async fn strangers(there: PeerId, address: Multiaddr, over: Arc<AtomicBool>, sent: Arc<AtomicU64>) {
    while !over.load(Ordering::Relaxed) {
        let settings = TransportSettings::new("/sottovoce/2/test", 1 << 16);
        let Ok((transport, mut events)) = Transport::start(&Identity::generate(), settings).await else { continue };
        let _ = transport.learn_address(there, address.clone());
        for k in 0..400u32 {
            let frame = vec![k as u8; 1 + (k as usize * 97) % 60_000];
            let asked = tokio::time::timeout(Duration::from_millis(200), transport.request(there, frame));
            if !matches!(asked.await, Ok(Ok(_))) {
                break;
            }
            sent.fetch_add(1, Ordering::Relaxed);
            while events.try_recv().is_ok() {}
        }
        transport.stop().await;
    }
}

/// A line with a delay, between a peer and all others.
async fn slow_line(target: std::net::SocketAddr, delay: Duration) -> std::net::SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(target).await else { continue };
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            for (mut from, mut to) in [(near_in, far_out), (far_in, near_out)] {
                tokio::spawn(async move {
                    let mut bytes = vec![0; 1 << 14];
                    while let Ok(count) = from.read(&mut bytes).await {
                        tokio::time::sleep(delay).await;
                        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    address
}

#[test]
fn a_slow_neighbour_slows_nobody_else() {
    block_on(async {
        let problem = problem(3, 6, 3);
        let mut town = town(problem, descent(problem, Start::Zero));
        (town.interval, town.tolerance) = (Duration::from_millis(20), None);
        // The first peer is reached through a line on which everything takes 300 ms; it dials nobody itself.
        let mut running = vec![town.start(0).await];
        let there = town.addresses[0].clone().expect("it listens");
        let line = slow_line(socket(&there), Duration::from_millis(300)).await;
        let mut slow = Multiaddr::empty();
        slow.push(Protocol::Ip4("127.0.0.1".parse().expect("an address")));
        slow.push(Protocol::Tcp(line.port()));
        town.addresses[0] = Some(slow);
        for k in 1..6 {
            running.push(town.start(k).await);
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (first, posts) = (join_all(running.iter().map(Running::status)).await, heard(&running).await);
        tokio::time::sleep(Duration::from_secs(4)).await;
        let last = join_all(running.iter().map(Running::status)).await;
        for (first, last) in first.iter().zip(&last) {
            assert!(last.wakes - first.wakes > 50, "{} made {} wakes", last.name, last.wakes - first.wakes);
        }
        let between_fast = |statuses: &[sottovoce_net::status::PeerStatus]| -> u64 {
            let fast = statuses[1..].iter().flat_map(|status| &status.neighbours);
            fast.filter(|neighbour| neighbour.name != "000").map(|neighbour| neighbour.post).sum()
        };
        assert!(between_fast(&last) > between_fast(&first) + 100, "fast neighbours hear each other");
        assert!(heard(&running).await > posts, "and the slow one is heard in its time");
        for peer in running {
            peer.stop().await.expect("a clean end");
        }
    });
}
