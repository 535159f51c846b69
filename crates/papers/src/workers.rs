//! The same work many times over, on a few threads.

use sottovoce_run::train::Halt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Told how many pieces of work are done and how many there are; stops by breaking.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Does `work(0), work(1), ..` up to `count` on a few threads. Each result is handed over as it comes, in any order; breaking stops
/// the others after what they have under way.
pub fn as_they_come<T: Send, B>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            let sender = sender.clone();
            let (next, stopped, work) = (&next, &stopped, &work);
            scope.spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody listens any more when the work was stopped.
                    if k >= count || sender.send((k, work(k))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (k, result) in receiver {
            if let ControlFlow::Break(why) = take(k, result) {
                stopped.store(true, Ordering::Relaxed);
                return ControlFlow::Break(why);
            }
        }
        ControlFlow::Continue(())
    })
}

/// `work(0), work(1), ..`, in this order whatever the number of threads.
pub fn each<T: Send>(
    count: usize,
    threads: usize,
    watch: Watch<'_>,
    work: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, Halt> {
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let mut done = 0;
    let ended = as_they_come(count, threads, work, |k, result| {
        results[k] = Some(result);
        done += 1;
        watch(done, count as u64)
    });
    if ended.is_break() {
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
