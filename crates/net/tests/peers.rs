//! Peers over real sockets reach what the central solver says, spend what was planned, and come back.

mod town;

use sottovoce_algorithms::personal::descent::Start;
use sottovoce_algorithms::personal::descent::{PrivateCoordinateDescent, PrivateCoordinateDescentConfig};
use sottovoce_algorithms::reference::central;
use sottovoce_core::PeerId;
use sottovoce_net::node::Fault;
use sottovoce_net::peer::PeerError;
use sottovoce_net::status::Phase;
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Event, Plan, Tight};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use town::{Running, Town, block_on, descent, problem, quiet, town};

const PATIENCE: Duration = Duration::from_secs(90);

fn plan(steps: usize) -> Option<Arc<Plan>> {
    let steps = |noise_multiplier| vec![Event::Gaussian { noise_multiplier }; steps];
    Some(Arc::new(Plan::with_least_noise(steps, 1.0, 1e-6, &Tight).expect("a budget")))
}

fn private_town(seed: u64, n: usize, updates: usize) -> Town<PrivateCoordinateDescent> {
    let problem = problem(seed, n, 3);
    let config = PrivateCoordinateDescentConfig {
        dimension: 3,
        loss: problem.loss,
        trade_off: problem.trade_off,
        clip: 1.0,
        norm: Norm::L2,
        feature_bound: 2.0,
        l1_features: false,
        warm: None,
    };
    let algorithm = Box::leak(Box::new(PrivateCoordinateDescent::new(config).expect("good parameters")));
    let mut town = town(problem, &*algorithm);
    (town.plan, town.tolerance) = (plan(updates), None);
    town
}

async fn stop_all(running: Vec<Running>) {
    for peer in running {
        peer.stop().await.expect("a clean end");
    }
}

#[test]
fn neighbours_over_real_sockets_reach_the_central_optimum() {
    block_on(async {
        for start in [Start::Zero, Start::Local] {
            let problem = problem(1, 12, 4);
            let mut town = town(problem, descent(problem, start));
            let running = town.start_all().await;
            quiet(&running, PATIENCE).await;
            stop_all(running).await;
            let optimum = central::minimum(problem);
            for k in 0..12 {
                let step = town.step(k);
                let post = step.post.expect("a post");
                for (found, best) in post.values.iter().zip(optimum.row(k)) {
                    assert!((found - best).abs() < 1e-5, "{start:?}, peer {k}: {found} {best}");
                }
                assert_eq!(step.heard.len(), problem.graph.peers(PeerId(k as u32)).len(), "all were heard");
            }
        }
    });
}

#[test]
fn a_private_network_spends_exactly_its_plan() {
    block_on(async {
        let mut town = private_town(2, 8, 4);
        let running = town.start_all().await;
        quiet(&running, PATIENCE).await;
        stop_all(running).await;
        let plan = town.plan.clone().expect("a plan");
        for k in 0..8 {
            let step = town.step(k);
            assert_eq!(step.ledger.releases(), plan.steps().len() as u64, "peer {k}");
            assert_eq!(
                step.post.expect("a post").stamped.number,
                plan.steps().len() as u64,
                "one message for each release"
            );
        }
    });
}

/// Peers crash in the middle of it, again and again; each comes back with its key and its store.
#[test]
fn crashes_in_a_running_network_cost_no_budget_and_no_release_happens_twice() {
    block_on(async {
        let mut town = private_town(3, 6, 8);
        let mut running: BTreeMap<usize, Running> = town.start_all().await.into_iter().enumerate().collect();
        let mut seen: BTreeMap<(usize, u64), Vec<f64>> = BTreeMap::new();
        for round in 0..24 {
            tokio::time::sleep(Duration::from_millis(15)).await;
            let victim = (round * 5) % 6;
            running.remove(&victim).expect("it runs").kill().await;
            for k in 0..6 {
                // What others heard is what the store of its sender holds, under the same number.
                let Ok(Some((_, Some(step)))) =
                    sottovoce_net::store::Store::look(&mut sottovoce_net::disk::Glance::at(&town.store(k)))
                else {
                    continue;
                };
                for post in step.post.iter().filter(|post| post.stamped.number > 0) {
                    let known = seen.entry((k, post.stamped.number)).or_insert_with(|| post.values.clone());
                    assert_eq!(*known, post.values, "message {} of peer {k} was made twice", post.stamped.number);
                }
                for (name, heard) in &step.heard {
                    let sender: usize = name.parse().expect("a number");
                    for (evidence, values) in heard.post.iter() {
                        let known = seen.entry((sender, evidence.number)).or_insert_with(|| values.clone());
                        assert_eq!(known, values, "peer {k} heard another message {}", evidence.number);
                    }
                }
            }
            let back = town.start(victim).await;
            running.insert(victim, back);
        }
        let running: Vec<Running> = running.into_values().collect();
        quiet(&running, PATIENCE).await;
        stop_all(running).await;
        for k in 0..6 {
            assert_eq!(town.step(k).ledger.releases(), 8, "peer {k} spends its plan, no more and no less");
        }
    });
}

#[test]
fn a_store_that_was_rolled_back_is_refused_by_its_neighbours_words() {
    block_on(async {
        let mut town = private_town(4, 4, 6);
        let running = town.start_all().await;
        // An image from before the last releases.
        let image = loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let bytes = std::fs::read(town.store(2).join("store.log")).unwrap_or_default();
            if running[2].status().await.messages >= 1 {
                break bytes;
            }
        };
        quiet(&running, PATIENCE).await;
        let mut running: BTreeMap<usize, Running> = running.into_iter().enumerate().collect();
        running.remove(&2).expect("it runs").stop().await.expect("a clean end");
        std::fs::write(town.store(2).join("store.log"), image).expect("written");
        let back = town.start(2).await;
        let ended = tokio::time::timeout(PATIENCE, back.ended).await.expect("it ends by itself").expect("no panic");
        let Err(PeerError::Fault(fault @ Fault::RolledBack { .. })) = ended else { panic!("{ended:?}") };
        assert!(fault.to_string().contains("rolled back, copied or lost"), "{fault}");
        let others: Vec<Running> = running.into_values().collect();
        for peer in &others {
            let status = peer.status().await;
            for neighbour in status.neighbours.iter().filter(|neighbour| neighbour.name == "002") {
                assert_eq!(neighbour.post, 6, "{} heard nothing new from it", status.name);
            }
        }
        stop_all(others).await;
    });
}

#[test]
fn a_peer_that_is_gone_for_good_stops_nobody() {
    block_on(async {
        let problem = problem(5, 10, 3);
        let mut town = town(problem, descent(problem, Start::Zero));
        let mut running: BTreeMap<usize, Running> = town.start_all().await.into_iter().enumerate().collect();
        let all: Vec<Running> = std::mem::take(&mut running).into_values().collect();
        quiet(&all, PATIENCE).await;
        running.extend(all.into_iter().enumerate());
        running.remove(&4).expect("it runs").kill().await;
        let before = wakes(&running).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let after = wakes(&running).await;
        for (k, wakes) in &after {
            // Two hundred wakes are due; a machine that is busy makes fewer.
            assert!(wakes - before[k] > 30, "peer {k} stalls: {} wakes", wakes - before[k]);
        }
        // Its last post stays with those who heard it, so they stay where they are.
        let rest: Vec<Running> = running.into_values().collect();
        let phases: Vec<Phase> = futures::future::join_all(rest.iter().map(Running::status))
            .await
            .iter()
            .map(|status| status.phase)
            .collect();
        assert_eq!(phases, vec![Phase::Quiet; 9]);
        stop_all(rest).await;
        let optimum = central::minimum(problem);
        for k in (0..10).filter(|&k| k != 4) {
            let post = town.step(k).post.expect("a post");
            for (found, best) in post.values.iter().zip(optimum.row(k)) {
                assert!((found - best).abs() < 1e-5, "peer {k}: {found} {best}");
            }
        }
    });
}

async fn wakes(running: &BTreeMap<usize, Running>) -> BTreeMap<usize, u64> {
    let mut wakes = BTreeMap::new();
    for (&k, peer) in running {
        wakes.insert(k, peer.status().await.wakes);
    }
    wakes
}

#[test]
fn whoever_knows_one_member_comes_to_know_all_of_them() {
    block_on(async {
        let problem = problem(6, 10, 2);
        let mut town = town(problem, descent(problem, Start::Zero));
        // A star around the first member would do; here all neighbours of others are found through it.
        town.all_addresses = false;
        let running = town.start_all().await;
        let began = Instant::now();
        loop {
            let statuses = futures::future::join_all(running.iter().map(Running::status)).await;
            let missing: usize =
                statuses.iter().flat_map(|status| &status.neighbours).filter(|neighbour| !neighbour.connected).count();
            if missing == 0 {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{missing} connections are missing");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stop_all(running).await;
    });
}
