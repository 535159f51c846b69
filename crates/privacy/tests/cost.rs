//! What an epsilon costs, in time and memory. One test alone in its binary, because it counts for the whole process.

use sottovoce_privacy::{Accountant, Charge, Event, Ledger, Pld, Rdp, Tight};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use std::alloc::System;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// 256 MB.
const BYTES_MAX: usize = 256_000_000;
/// Of the processor; where only the wall clock can be read, five times that, for other programs may run.
const SECONDS_MAX: f64 = 2.0;

fn held() -> usize {
    let Stats { bytes_allocated, bytes_deallocated, .. } = ALLOCATOR.stats();
    bytes_allocated.saturating_sub(bytes_deallocated)
}

/// What this thread has had of a processor, where the system tells.
fn busy() -> Option<f64> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| 1e-9 * nanoseconds)
}

/// The value, the time it took, and the most memory held meanwhile beyond what was held before, as a second thread sees it:
/// the large blocks live for milliseconds, and it looks every 20 microseconds.
fn measured(task: impl FnOnce() -> f64) -> (f64, f64, usize) {
    let before = held();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(held().saturating_sub(before));
                std::thread::sleep(Duration::from_micros(20));
            }
            most
        });
        let (began, clock) = (busy(), Instant::now());
        let value = task();
        let seconds = match (began, busy()) {
            (Some(began), Some(ended)) => ended - began,
            _ => clock.elapsed().as_secs_f64() / 5.0,
        };
        done.store(true, Ordering::Relaxed);
        (value, seconds, watch.join().expect("the watch ends"))
    })
}

/// The ledger whose steps' sizes are multiplied so that it has about this epsilon.
fn scaled(steps: &dyn Fn(f64) -> Vec<(Event, u64)>, epsilon: f64, delta: f64) -> Ledger {
    let ledger = |size: f64| {
        let charges = steps(size).into_iter().map(|(event, count)| Charge::new(event, count));
        Ledger::from_charges(charges).expect("valid charges")
    };
    let (mut low, mut high) = (1e-9, 1e6);
    for _ in 0..20 {
        let middle = libm::sqrt(low * high);
        if Rdp.epsilon(&ledger(middle), delta) > epsilon { high = middle } else { low = middle }
    }
    ledger(low)
}

#[test]
fn a_million_equal_steps_or_a_thousand_different_ones_cost_little() {
    type Steps<'a> = (&'a str, &'a dyn Fn(f64) -> Vec<(Event, u64)>);
    let laplace = |size: f64| Event::Laplace { noise_multiplier: 1.0 / size };
    let gaussian = |size: f64| Event::Gaussian { noise_multiplier: 1.0 / size };
    let response = |size: f64| Event::RandomizedResponse { epsilon: size };
    let thousand = |size: f64| (0..1000).map(move |k| size * (1.0 + 1e-3 * f64::from(k)));
    let all: [Steps; 6] = [
        ("a million of Laplace", &|size| vec![(laplace(size), 1_000_000)]),
        ("a million answers", &|size| vec![(response(size), 1_000_000)]),
        ("a million and a Gaussian", &|size| vec![(laplace(size), 1_000_000), (gaussian(300.0 * size), 1)]),
        ("a thousand of Laplace", &|size| thousand(size).map(|size| (laplace(size), 1)).collect()),
        ("a thousand answers", &|size| thousand(size).map(|size| (response(size), 1)).collect()),
        ("a thousand of all", &|size| {
            let each = |(k, size)| {
                (
                    if k % 3 == 0 {
                        laplace(size)
                    } else if k % 3 == 1 {
                        gaussian(size)
                    } else {
                        response(size)
                    },
                    1,
                )
            };
            thousand(size).enumerate().map(each).collect()
        }),
    ];
    let (mut seconds_most, mut bytes_most) = (0.0f64, 0);
    for (name, steps) in all {
        for (epsilon, delta) in [(1e-3, 1e-9), (1.0, 1e-6), (1.0, 0.1), (30.0, 1e-12), (1e3, 1e-12), (1e3, 0.1)] {
            let ledger = scaled(steps, epsilon, delta);
            // The tight accountant asks all others, but for equal answers it knows better.
            let accountant: &dyn Accountant = if name == "a million answers" { &Pld } else { &Tight };
            let (value, seconds, bytes) = measured(|| accountant.epsilon(&ledger, delta));
            let what = format!("{name}, epsilon {value:.4e}, delta {delta:e}: {seconds:.3} s, {bytes} bytes");
            println!("{what}");
            assert!(value <= epsilon * 1.01 && seconds <= SECONDS_MAX && bytes <= BYTES_MAX, "{what}");
            (seconds_most, bytes_most) = (seconds_most.max(seconds), bytes_most.max(bytes));
        }
    }
    println!("at most {seconds_most:.2} s and {} MB", bytes_most / 1_000_000);
}
