//! The book of an odometer is never below what was sent, whatever happens to its disk.

mod support;

use sottovoce_core::Coin;
use sottovoce_net::book::{BookError, BookFile, SeatId, Stamp, look, record_id};
use sottovoce_privacy::odometer::TaskRows;
use sottovoce_privacy::{Charge, Event, Filter, Ledger};
use std::time::Duration;
use support::{CrashDisk, Tail};

/// The log and its end.
#[derive(Clone, Default)]
struct Folder(CrashDisk, CrashDisk);

impl Folder {
    fn open(&self) -> Result<BookFile<CrashDisk>, BookError> {
        BookFile::open_on(self.0.clone(), self.1.clone(), [7; 32])
    }

    fn reboot(&self, tail: Tail, coin: &mut Coin) {
        self.0.reboot(tail, coin);
        self.1.reboot(tail, coin);
    }
}

fn plan(k: u8) -> Ledger {
    Ledger::from_charges([Charge::new(Event::Gaussian { noise_multiplier: 1.0 / 3.0 + f64::from(k) }, 3)])
        .expect("valid")
}

fn rows(k: u8) -> TaskRows {
    if k.is_multiple_of(2) { TaskRows::Unnamed(9) } else { TaskRows::Named([([k; 16], 1), ([99; 16], 2)].into()) }
}

/// What the peer of instance k stamps.
fn stamp(k: u8) -> (SeatId, Stamp) {
    ([k; 16], Stamp { nonce: [k + 100; 16], releases: u64::from(k) })
}

/// Charges instances 0, 1, .. until something fails, and stamps every second one; the third action sets a limit. How many charges were
/// promised.
fn charge_all(folder: &Folder, count: u8) -> u8 {
    let Ok(mut book) = folder.open() else { return 0 };
    for k in 0..count {
        if k == 2 && book.limit(Filter::new(1e6, 1e-6).expect("a limit")).is_err() {
            return k;
        }
        if book.charge([k; 16], "t", plan(k), rows(1)).is_err() {
            assert!(matches!(book.charge([99; 16], "t", plan(9), rows(1)), Err(BookError::Failed)));
            return k;
        }
        let (seat, stamp) = stamp(k);
        if k % 2 == 1 && book.write_stamp(seat, stamp).is_err() {
            return k + 1;
        }
    }
    count
}

/// At boundaries of either file, with each thing that a power loss may leave: all that was promised is there, and at most one more.
fn power_losses(tasks: u8, losses_max: usize) -> usize {
    let whole = Folder::default();
    assert_eq!(charge_all(&whole, tasks), tasks);
    let mut losses = 0;
    for is_end in [false, true] {
        let boundaries = if is_end { &whole.1 } else { &whole.0 }.0.borrow().boundaries;
        for fails_at in 1..=boundaries {
            for tail in Tail::ALL {
                if losses == losses_max {
                    return losses;
                }
                let mut coin = Coin::new(fails_at, u32::from(is_end), tail as u64);
                let folder = Folder::default();
                if is_end { &folder.1 } else { &folder.0 }.0.borrow_mut().fails_at = Some(fails_at);
                let promised = charge_all(&folder, tasks);
                folder.reboot(tail, &mut coin);
                let mut book = folder.open().unwrap_or_else(|error| panic!("{is_end} {fails_at} {tail:?}: {error}"));
                let found = book.book().entries().len() as u8;
                assert!(found == promised || found == promised + 1, "{fails_at} {tail:?}: {found} of {promised}");
                for (entry, k) in book.book().entries().iter().zip(0..) {
                    assert_eq!((entry.instance, &entry.plan), ([k; 16], &plan(k)), "to the bit, in order");
                }
                // What was charged after it was stamped is promised with it.
                for (seat, stamp) in (0..promised.saturating_sub(1)).filter(|k| k % 2 == 1).map(stamp) {
                    assert_eq!(book.stamp(&seat), stamp, "{fails_at} {tail:?}");
                }
                // Started again, the instances that are there are not charged a second time, and the others are.
                for k in 0..tasks {
                    book.charge([k; 16], "t", plan(k), rows(1)).expect("it goes on");
                }
                drop(book);
                assert_eq!(folder.open().expect("a good book").book().entries().len() as u8, tasks);
                losses += 1;
            }
        }
    }
    losses
}

#[test]
fn a_power_loss_at_any_boundary_forgets_no_charge() {
    let soak = std::env::var_os("SOTTOVOCE_SOAK").is_some();
    let losses = if soak { power_losses(40, 1_500) } else { power_losses(3, 200) };
    println!("{losses} losses of power");
    assert!(losses >= if soak { 1_000 } else { 100 }, "{losses}");
}

#[test]
fn what_was_charged_is_found_again_to_the_bit() {
    let folder = Folder::default();
    let mut book = folder.open().expect("new");
    for k in 0..4 {
        book.charge([k; 16], &format!("task {k}"), plan(k), rows(k)).expect("no limit");
    }
    let filter = Filter::new(1.0, 1e-6).expect("a limit");
    book.limit(filter).expect("set");
    book.limit(filter).expect("the same again");
    let before = book.book().clone();
    assert!(matches!(book.limit(Filter::new(2.0, 1e-6).expect("a limit")), Err(BookError::OtherLimit { .. })));
    assert!(matches!(book.charge([8; 16], "t", plan(1), rows(0)), Err(BookError::Refused(_))));
    let again = folder.open().expect("a good book");
    assert_eq!((again.book(), again.key()), (&before, &[7; 32]));
    assert_eq!(again.book().filter(), Some(&filter), "with its order");
}

/// Every byte of a finished book counts.
#[test]
fn a_flipped_bit_anywhere_is_noticed_or_changes_nothing() {
    let folder = Folder::default();
    charge_all(&folder, 3);
    let good = folder.open().expect("good").book().clone();
    for is_end in [false, true] {
        let whole = if is_end { &folder.1 } else { &folder.0 }.0.borrow().bytes.clone();
        for at in 0..whole.len() {
            let disk = CrashDisk::default();
            disk.0.borrow_mut().bytes = whole.clone();
            disk.0.borrow_mut().bytes[at] ^= 1 << (at % 8);
            let other = CrashDisk::default();
            other.0.borrow_mut().bytes = if is_end { &folder.0 } else { &folder.1 }.0.borrow().bytes.clone();
            let spoiled = if is_end { Folder(other, disk) } else { Folder(disk, other) };
            match spoiled.open() {
                Ok(book) => assert_eq!(*book.book(), good, "byte {at} of {is_end} was changed and not noticed"),
                Err(error @ BookError::RolledBack { found, ended }) => assert!(ended > found, "{error}"),
                Err(BookError::OtherEnd { .. }) => assert!(is_end, "byte {at}: the end is as it was"),
                Err(BookError::Damaged { .. }) => assert!(!is_end, "byte {at}: the log is as it was"),
                Err(other) => panic!("byte {at}: {other}"),
            }
        }
    }
}

/// A log that ends early, at whatever byte, or that is gone, is not taken for a whole one.
#[test]
fn a_log_that_was_cut_or_put_back_is_refused() {
    let folder = Folder::default();
    charge_all(&folder, 3);
    let (log, end) = (folder.0.0.borrow().bytes.clone(), folder.1.0.borrow().bytes.clone());
    // Without its last seal the log is still whole.
    for length in 0..log.len() - 32 {
        let cut = Folder::default();
        cut.0.0.borrow_mut().bytes = log[..length].to_vec();
        cut.1.0.borrow_mut().bytes.clone_from(&end);
        assert!(cut.open().is_err(), "{length} of {} bytes", log.len());
    }
    // Another book with as many records.
    let other = Folder::default();
    let mut book = other.open().expect("new");
    (0..5).for_each(|k| drop(book.charge([k + 50; 16], "t", plan(k), rows(1)).expect("no limit").clone()));
    other.1.0.borrow_mut().bytes = end;
    assert!(matches!(other.open(), Err(BookError::OtherEnd { .. })));
    // The end alone is gone.
    folder.1.0.borrow_mut().bytes.clear();
    let said = folder.open().expect_err("it cannot be told").to_string();
    assert!(
        said.contains("budget.end is missing") && said.contains("accepted") && !said.contains("record 5"),
        "{said}"
    );
}

#[test]
fn a_full_disk_is_told_and_nothing_is_promised() {
    let folder = Folder::default();
    charge_all(&folder, 2);
    let full = folder.0.0.borrow().bytes.len();
    for room in (full..full + 160).step_by(7) {
        let folder = Folder::default();
        charge_all(&folder, 2);
        folder.0.0.borrow_mut().room = Some(room);
        let mut book = folder.open().expect("it can be read");
        let told = book.charge([5; 16], "t", plan(5), rows(1)).map(|_| ());
        let promised = told.is_ok();
        let stays = told.err().map(|error| error.to_string()).is_some_and(|said| {
            assert!(said.contains("stay") && said.contains("accepted"), "{said}");
            said.contains("the task stays charged")
        });
        drop(book);
        folder.0.0.borrow_mut().room = None;
        let found = folder.open().expect("a full disk damages nothing").book().entries().len();
        assert!(found >= 2 + usize::from(promised || stays), "{room}: {found}");
    }
}

#[test]
fn a_book_that_is_held_is_waited_for_and_then_told() {
    let place = tempfile::tempdir().expect("a folder");
    let held = BookFile::open(place.path(), [1; 32]).expect("new");
    assert!(held.is_new());
    let told = std::cell::Cell::new(0);
    let open = |patience| {
        let opened = BookFile::open_waiting(place.path(), [2; 32], patience, || told.set(told.get() + 1));
        opened.map(|book| book.is_new())
    };
    let said = open(Duration::from_millis(30)).expect_err("held").to_string();
    assert!(said.contains("this budget") && said.contains("accepted") && !said.contains("store"), "{said}");
    assert_eq!(told.get(), 0, "a moment");
    open(Duration::from_millis(1100)).expect_err("held");
    assert_eq!(told.get(), 1, "once");
    drop(held);
    assert!(!open(Duration::ZERO).expect("free"));
}

/// A lock that was deleted keeps nobody out any more, so whoever held it does not write.
#[test]
#[cfg(unix)]
fn whoever_lost_the_lock_writes_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let mut first = BookFile::open(place.path(), [1; 32]).expect("new");
    std::fs::remove_file(place.path().join("budget.lock")).expect("it was there");
    let mut second = BookFile::open(place.path(), [2; 32]).expect("it locks a new file");
    second.charge([2; 16], "t", plan(2), rows(1)).expect("no limit");
    let said = first.charge([1; 16], "t", plan(1), rows(1)).expect_err("it has read another book").to_string();
    assert!(said.contains("budget.lock was deleted"), "{said}");
    drop((first, second));
    let (book, _) = look(place.path()).expect("a good book").expect("a book");
    assert_eq!(book.entries().len(), 1, "of the one that was promised");
}

#[test]
fn a_folder_is_for_its_owner_alone_and_for_one_process_at_a_time() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("budget");
    assert!(look(&folder).expect("nothing is there").is_none());
    let threads: Vec<_> = (0..8u8)
        .map(|k| {
            let folder = folder.clone();
            std::thread::spawn(move || {
                let mut book = BookFile::open(&folder, [k; 32]).expect("it waits");
                book.charge([k; 16], "t", plan(k), rows(k)).expect("no limit");
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("charged"));
    let (book, key) = look(&folder).expect("readable").expect("a book");
    assert_eq!(book.entries().len(), 8, "all of them");
    assert_ne!(record_id(&key, b"a"), record_id(&key, b"b"));
    assert_ne!(record_id(&key, b"a"), record_id(&[9; 32], b"a"), "another source names it otherwise");
    #[cfg(unix)]
    for file in std::fs::read_dir(&folder).expect("a folder") {
        use std::os::unix::fs::PermissionsExt;
        let file = file.expect("a file");
        assert_eq!(file.metadata().expect("there").permissions().mode() & 0o077, 0, "{:?}", file.path());
    }
}
