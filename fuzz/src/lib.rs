//! Damaged input for everything that reads what a peer or a disk says.
//!
//! No coverage feedback and no special compiler: a seeded mutator ([`mutate`]) takes valid messages, and what the agents under test
//! answer, and damages them with their structure in mind. A target must not panic, and must not take more memory for one input
//! than [`ALLOCATED_MAX`].
//!
//! ```text
//! cargo run --release -p sottovoce-fuzz -- --inputs 10000000
//! ```

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub mod mutate;
pub mod targets;

use mutate::Mutator;

/// Counts what every input costs. Here and not in the programs, so that all of them count.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The most bytes that one input may have allocated, all in all. Serde takes up to a megabyte on trust for one list.
pub const ALLOCATED_MAX: usize = 4 << 20;

/// Something that reads bytes.
pub trait Target {
    /// Its name.
    fn name(&self) -> &str;

    /// Its share of all inputs: slow ones get less.
    fn share(&self) -> u64;

    /// Valid inputs, as they are now; they may change with what was fed.
    fn valid(&mut self) -> Vec<Vec<u8>>;

    /// Reads the bytes. Returns whether it believed them.
    fn feed(&mut self, input: &[u8]) -> bool;

    /// Begins anew, as after a panic.
    fn restart(&mut self);
}

/// What came of feeding one target.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The target.
    pub name: String,
    /// Inputs fed.
    pub inputs: u64,
    /// Inputs that were believed.
    pub believed: u64,
    /// The most bytes that one input allocated.
    pub allocated_max: usize,
    /// How long it took, mutations included.
    pub time: Duration,
    /// Inputs that panicked or took too much memory, as hexadecimal digits, and why; ten at most.
    pub failures: Vec<String>,
}

/// Inputs between two looks at what is valid now.
const REFRESH: u64 = 256;

/// Inputs between two new beginnings.
const RESTART: u64 = 1_000;

/// Feeds damaged input to a target.
pub fn fuzz(target: &mut dyn Target, inputs: u64, seed: u64) -> Report {
    let mut report = Report { name: target.name().to_owned(), ..Report::default() };
    let mut mutator = Mutator::new(seed);
    let (start, mut input) = (Instant::now(), Vec::new());
    for k in 0..inputs {
        if k % RESTART == 0 {
            target.restart();
        }
        if k % REFRESH == 0 {
            mutator.learn(target.valid());
        }
        mutator.next(&mut input);
        let region = Region::new(ALLOCATOR);
        let fed = catch_unwind(AssertUnwindSafe(|| target.feed(&input)));
        let change = region.change();
        let allocated = change.bytes_allocated + change.bytes_reallocated.max(0) as usize;
        report.inputs += 1;
        report.allocated_max = report.allocated_max.max(allocated);
        let why = match fed {
            Ok(believed) => {
                report.believed += u64::from(believed);
                (allocated > ALLOCATED_MAX).then(|| format!("allocated {allocated} bytes"))
            }
            Err(_) => {
                target.restart();
                Some("panicked".to_owned())
            }
        };
        if let Some(why) = why.filter(|_| report.failures.len() < 10) {
            report.failures.push(format!("{why}: {}", hexadecimal(&input)));
        }
    }
    report.time = start.elapsed();
    report
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Feeds all targets, each its share.
pub fn fuzz_all(inputs: u64, seed: u64, mut each: impl FnMut(&Report)) {
    targets::with_all(|targets| {
        let shares: u64 = targets.iter().map(|target| target.share()).sum();
        for target in targets {
            let inputs = (inputs * target.share()).div_ceil(shares);
            each(&fuzz(&mut **target, inputs, seed));
        }
    });
}
