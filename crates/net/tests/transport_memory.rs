//! What a transport costs in memory. In a process of its own, because it looks at the process.

use sottovoce_net::transport::{Identity, Transport, TransportSettings};

const TRANSPORTS: usize = 100;
/// Generous: the measured value is printed.
const BYTES_PER_TRANSPORT_MAX: usize = 1 << 20;

fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

fn settings() -> TransportSettings {
    let mut settings = TransportSettings::new("/sottovoce/2/memory", 64 * 1024);
    settings.listen = vec!["/ip4/127.0.0.1/tcp/0".parse().expect("an address")];
    settings
}

/// Each of a chain is connected with its predecessor and its successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_transports_fit_in_one_process() {
    let first = Transport::start(&Identity::generate(), settings()).await.expect("a transport");
    let Some(before) = resident_bytes() else {
        eprintln!("SKIPPED a_hundred_transports_fit_in_one_process: no /proc here");
        return;
    };
    let mut chain = vec![first];
    for _ in 0..TRANSPORTS {
        let (last, _) = chain.last().expect("one");
        let known = vec![(last.id(), last.listening())];
        chain.push(
            Transport::start(&Identity::generate(), TransportSettings { known, ..settings() })
                .await
                .expect("a transport"),
        );
    }
    let idle = resident_bytes().expect("as before");
    for (_, events) in &mut chain[1..] {
        while let Some(event) = events.recv().await {
            if matches!(event, sottovoce_net::transport::TransportEvent::Connected(_)) {
                break;
            }
        }
    }
    let after = resident_bytes().expect("as before");
    let (idle, each) = (idle.saturating_sub(before) / TRANSPORTS, after.saturating_sub(before) / TRANSPORTS);
    println!(
        "{each} bytes per transport with two connections ({idle} just started), {before} for the process with one"
    );
    assert!(each < BYTES_PER_TRANSPORT_MAX, "{each} bytes per transport");
}
