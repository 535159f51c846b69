//! The store keeps what it promised to keep, or says that it cannot.

mod support;

use sha2::{Digest as _, Sha256};
use sottovoce_core::Coin;
use sottovoce_net::disk::{Disk, FileDisk};
use sottovoce_net::frame::Evidence;
use sottovoce_net::node::Fault;
use sottovoce_net::store::{
    DurableLetter, HeardPeer, Mail, Owner, Posted, SavedLetter, Stamped, Store, StoreError, StoredStep,
};
use sottovoce_privacy::{Charge, Event, Ledger, Sensitivity};
use std::io;
use support::{CrashDisk, Tail};

fn owner() -> Owner {
    Owner { key: "12D3".into(), task: [1; 32], data: [2; 32], algorithm: "coordinate-descent".into() }
}

/// Letter `turn` to somebody who has acknowledged all but the last five.
fn mail(turn: u64, first: u64) -> Mail {
    let letter = |turn| {
        let stamped = Stamped { number: turn, ..Stamped::default() };
        DurableLetter { turn, stamped, vectors: 1, bytes: vec![turn as u8; 3] }
    };
    let waiting = (first.max(1)..=turn).map(letter).collect();
    Mail { key: "12D5".into(), last: turn, acknowledged: turn.saturating_sub(5), waiting }
}

fn step(k: u64) -> StoredStep {
    let charge = Charge {
        sensitivity: Sensitivity::new(0.1 + 0.2).ok(),
        ..Charge::new(Event::Gaussian { noise_multiplier: 1.0 / 3.0 }, k + 1)
    };
    let heard = HeardPeer {
        key: "12D4".into(),
        post: Some((Evidence { number: k, hash: [k as u8; 32], ..Evidence::default() }, vec![k as f64; 5])),
        letter: Evidence { number: k, ..Evidence::default() },
        turn: k / 2,
        durable: Evidence { number: k, signature: vec![1; 64], ..Evidence::default() },
        points: Some(9),
    };
    let stamped = || Stamped { epoch: 1, number: k, salt: [k as u8; 16], signature: Vec::new() };
    StoredStep {
        wakes: k,
        events: 2 * k,
        time: k as f64 / 3.0,
        alarm: k.is_multiple_of(2).then_some(k as f64),
        epoch: k / 5,
        last_number: 3 * k,
        ledger: Ledger::from_charges([charge]).expect("valid"),
        post: Some(Posted { stamped: stamped(), values: vec![-0.0, f64::MIN_POSITIVE, k as f64] }),
        letters: vec![SavedLetter { to: "b".into(), stamped: stamped(), bytes: vec![k as u8; 7] }],
        mail: [("b".to_owned(), mail(k, k))].into(),
        state: vec![k as u8; 11],
        neighbours: vec![("b".into(), 0.5)],
        heard: [(format!("n{}", k % 3), heard)].into(),
    }
}

fn opened(disk: CrashDisk) -> Result<(Store<CrashDisk>, Option<StoredStep>), StoreError> {
    Store::open(disk, &owner())
}

fn filled(steps: u64) -> CrashDisk {
    let disk = CrashDisk::default();
    let (mut store, found) = opened(disk.clone()).expect("a new store");
    assert_eq!(found, None);
    (0..steps).for_each(|k| store.commit(&step(k)).expect("written"));
    disk
}

/// Everything but mail and what was heard, which gather.
fn bare(step: Option<StoredStep>) -> Option<StoredStep> {
    step.map(|step| StoredStep { mail: Default::default(), heard: Default::default(), ..step })
}

#[test]
fn what_was_committed_is_found_again() {
    let disk = filled(7);
    let (_, found) = opened(disk).expect("a good store");
    let found = found.expect("a step");
    assert_eq!(found.heard.keys().collect::<Vec<_>>(), ["n0", "n1", "n2"]);
    assert_eq!(found.heard["n0"], step(6).heard["n0"], "the last word counts");
    assert_eq!(found.mail["b"], mail(6, 2), "what was not acknowledged waits, in order");
    assert_eq!(bare(Some(found)), bare(Some(step(6))));
}

/// At each boundary, with each thing that a power loss may leave: either the step before, of which nothing was sent, or the step.
#[test]
fn a_power_loss_at_any_boundary_leaves_a_whole_step() {
    let boundaries = filled(5).0.borrow().boundaries;
    let mut losses = 0;
    for fails_at in 1..=boundaries {
        for tail in Tail::ALL {
            let mut coin = Coin::new(fails_at, 0, tail as u64);
            let disk = CrashDisk::default();
            disk.0.borrow_mut().fails_at = Some(fails_at);
            let mut committed = 0;
            if let Ok((mut store, _)) = opened(disk.clone()) {
                while store.commit(&step(committed)).is_ok() {
                    committed += 1;
                }
                assert!(matches!(store.commit(&step(99)), Err(StoreError::Failed)), "nothing after a failure");
            }
            disk.reboot(tail, &mut coin);
            let (mut store, found) = opened(disk.clone()).expect("a crash damages nothing");
            let wakes = found.as_ref().map(|step| step.wakes);
            // `committed` steps are certain; one more may have become safe without anyone hearing of it.
            let certain = committed.checked_sub(1);
            assert!(wakes == certain || wakes == Some(committed), "{fails_at} {tail:?}: {wakes:?} of {certain:?}");
            if let Some(k) = wakes {
                assert_eq!(bare(found), bare(Some(step(k))));
            }
            store.commit(&step(50)).expect("it goes on");
            let (_, found) = opened(disk).expect("a good store");
            assert_eq!(found.map(|step| step.wakes), Some(50));
            losses += 1;
        }
    }
    assert!(losses > 100, "{losses}");
}

/// Every byte of a finished store counts: none may change without being noticed.
#[test]
fn a_flipped_bit_anywhere_is_noticed_or_changes_nothing() {
    let whole = filled(4).0.borrow().bytes.clone();
    let (_, good) = opened(filled(4)).expect("a good store");
    let mut unnoticed = 0;
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let disk = CrashDisk::default();
            disk.0.borrow_mut().bytes = whole.clone();
            disk.0.borrow_mut().bytes[at] ^= 1 << bit;
            match opened(disk) {
                Err(StoreError::Damaged { .. }) => {}
                Err(other) => panic!("byte {at}: {other}"),
                Ok((_, found)) => {
                    assert_eq!(found, good, "byte {at} was changed and not noticed");
                    unnoticed += 1;
                }
            }
        }
    }
    // The mark of the last seal: without it the record is merely one that was not sealed yet.
    assert!(unnoticed <= 3 * 8, "{unnoticed}");
}

#[test]
fn a_store_of_somebody_else_is_refused_by_name() {
    let disk = filled(1);
    let refused = |owner: Owner| Store::open(disk.clone(), &owner).map(|_| ()).expect_err("foreign").to_string();
    assert!(refused(Owner { key: "other".into(), ..owner() }).contains("another key"));
    assert!(refused(Owner { task: [9; 32], ..owner() }).contains("another task"));
    assert!(refused(Owner { algorithm: "admm".into(), ..owner() }).contains("another algorithm"));
    assert!(refused(Owner { data: [9; 32], ..owner() }).contains("data have changed"));
}

/// Whoever is told to begin again is told that what was spent stays spent.
#[test]
fn advice_to_begin_anew_says_that_budgets_add() {
    let neighbour = || "north".to_owned();
    let told = [
        Fault::from(StoreError::Damaged { record: 3 }),
        StoreError::Version { found: 1 }.into(),
        StoreError::Foreign { what: "task" }.into(),
        StoreError::OtherData.into(),
        Fault::RolledBack { neighbour: neighbour(), seen: 9, own: 4 },
        Fault::Forked { neighbour: neighbour(), turn: 2 },
    ];
    for said in told.map(|fault| fault.to_string()) {
        let (_, advice) = said.split_once("; accepted: ").expect("advice");
        assert!(advice.contains("a new task") || advice.contains("an empty folder"), "{said}");
        assert!(advice.contains("whose budget ADDS to "), "{said}");
        assert!(!said.contains('\n') && !said.contains("  "), "{said}");
    }
}

/// The first record of a store, as another version of the program would have written it.
#[test]
fn a_store_of_another_version_is_refused_in_one_line() {
    let own = filled(1).0.borrow().bytes.clone();
    let length = u32::from_le_bytes(own[4..8].try_into().expect("four bytes")) as usize;
    for version in [1, 3] {
        let mut payload = own[16..16 + length].to_vec();
        payload[0] = version;
        // Whatever else it holds is none of this version's business.
        payload.truncate(9);
        let digest =
            Sha256::new().chain_update([0; 32]).chain_update(0u64.to_le_bytes()).chain_update(&payload).finalize();
        let head = [b"SVO1".as_slice(), &(payload.len() as u32).to_le_bytes(), &0u64.to_le_bytes()].concat();
        let seal = [&digest[..8], &0u64.to_le_bytes(), &digest[..16]].concat();
        let old = CrashDisk::holding(&[&head[..], &payload, &digest, &seal].concat());
        let said = opened(old).map(|_| ()).expect_err("another version").to_string();
        assert!(said.contains(&format!("format {version}")) && said.contains("this one writes 2"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let full = filled(3).0.borrow().bytes.len();
    for room in full..full + 400 {
        let disk = filled(3);
        disk.0.borrow_mut().room = Some(room);
        let (mut store, _) = opened(disk.clone()).expect("a good store");
        let mut committed = 3;
        let said = loop {
            match store.commit(&step(committed)) {
                Ok(()) => committed += 1,
                Err(error) => break error.to_string(),
            }
        };
        assert!(said.contains("no space left") && said.contains("nothing was sent"), "{said}");
        assert!(matches!(store.commit(&step(committed)), Err(StoreError::Failed)));
        disk.0.borrow_mut().room = None;
        let (_, found) = opened(disk).expect("a good store");
        let wakes = found.map(|step| step.wakes).expect("a step");
        assert!(wakes == committed - 1 || wakes == committed, "{room}: {wakes} of {committed}");
    }
}

#[test]
fn a_long_log_is_written_anew_and_forgets_nothing() {
    let disk = CrashDisk::default();
    let (mut store, _) = opened(disk.clone()).expect("a new store");
    let mut longest = 0;
    for k in 0..6000 {
        store.commit(&step(k)).expect("written");
        longest = longest.max(disk.0.borrow().bytes.len());
    }
    assert!(longest < 2 << 20, "{longest} bytes");
    let (_, found) = opened(disk).expect("a good store");
    let found = found.expect("a step");
    assert_eq!((found.wakes, found.heard.len()), (5999, 3));
    assert_eq!(found.mail["b"], mail(5999, 5995));
}

#[test]
fn a_file_serves_one_process_and_survives_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/store");
    let mut disk = FileDisk::open(&path).expect("a new folder");
    assert_eq!(FileDisk::open(&path).expect_err("in use").kind(), io::ErrorKind::WouldBlock);
    assert_eq!(disk.read().expect("readable"), b"");
    let (mut store, _) = Store::open(disk, &owner()).expect("a new store");
    (0..3).for_each(|k| store.commit(&step(k)).expect("written"));
    drop(store);
    let (_, found) = Store::open(FileDisk::open(&path).expect("free again"), &owner()).expect("a good store");
    assert_eq!(found.map(|step| step.wakes), Some(2));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("store.log"))), (0o700, 0o600));
    }
}
