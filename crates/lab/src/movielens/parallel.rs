//! The same work many times over, on a few threads.

use crate::train::Halt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Told how many pieces of work are done and how many there are; stops by breaking.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// `work(0), work(1), ..`, in this order whatever the number of threads.
pub fn each<T: Send>(
    count: usize,
    threads: usize,
    watch: Watch<'_>,
    work: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, Halt> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            let sender = sender.clone();
            let (next, stop, work) = (&next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= count || sender.send((k, work(k))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (done, (k, result)) in receiver.iter().enumerate() {
            results[k] = Some(result);
            if watch(done as u64 + 1, count as u64).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    if stop.into_inner() {
        return Err(Halt::Interrupted);
    }
    Ok(results.into_iter().map(|result| result.expect("every piece was done")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_every_piece_is_counted() {
        for threads in [1, 3, 50] {
            let mut seen = Vec::new();
            let watch = &mut |done, total| {
                seen.push((done, total));
                ControlFlow::Continue(())
            };
            // The first pieces take longest, so that on several threads they are not done first.
            let square = |k: usize| {
                let idle = (0..(20 - k) * 100_000).fold(0u64, |sum, step| std::hint::black_box(sum ^ step as u64));
                std::hint::black_box(idle);
                k * k
            };
            let squares = each(20, threads, watch, square).expect("nobody stops it");
            assert_eq!(squares, (0..20).map(|k| k * k).collect::<Vec<_>>());
            assert_eq!(seen, (1..=20).map(|done| (done, 20)).collect::<Vec<_>>());
        }
        assert!(each(0, 2, &mut |_, _| ControlFlow::Break(()), |k| k).expect("nothing to stop").is_empty());
    }

    #[test]
    fn who_breaks_is_obeyed() {
        let stopped = each(1000, 2, &mut |_, _| ControlFlow::Break(()), |k| k);
        assert!(matches!(stopped, Err(Halt::Interrupted)));
    }
}
