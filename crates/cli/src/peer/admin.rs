//! How the owner asks a running peer: through `admin.json` in its folder, which holds an address on loopback and a token.

use super::folder::replace;
use serde::{Deserialize, Serialize};
use sottovoce_net::status::PeerStatus;
use sottovoce_task::error::Mistake;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ADMIN_FILE: &str = "admin.json";

/// How long a running peer may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a peer may take to end.
const STOP_TIME_MAX: Duration = Duration::from_secs(20);

/// The longest answer.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// How to ask a running peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Admin {
    pub address: SocketAddr,
    pub token: String,
    pub process: u32,
}

/// What came of asking.
pub enum Asked<T> {
    Answered(T),
    /// There is no such file, or nobody answers to it: the peer does not run, whatever the file says.
    NotRunning,
}

/// `admin.json` while it is there. Dropped, it is gone.
pub struct AdminFile(PathBuf);

impl AdminFile {
    /// Writes it, for the owner alone. Whoever holds the store may replace what a dead process left.
    pub fn write(folder: &Path, admin: &Admin) -> Result<Self, Mistake> {
        let file = folder.join(ADMIN_FILE);
        replace(&file, &(serde_json::to_string(admin).expect("it is JSON") + "\n"))?;
        Ok(AdminFile(file))
    }
}

impl Drop for AdminFile {
    fn drop(&mut self) {
        // A file that stays is found stale by whoever reads it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Admin {
    /// A token that nobody can guess.
    pub fn token() -> Result<String, Mistake> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| Mistake::new(format!("the system has no entropy: {error}")))?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// As a folder tells; none when the peer was never started or has ended.
    pub fn read(folder: &Path) -> Option<Admin> {
        serde_json::from_slice(&std::fs::read(folder.join(ADMIN_FILE)).ok()?).ok()
    }

    /// How the peer is doing.
    pub fn status(&self) -> Asked<PeerStatus> {
        match self.ask("GET /status").and_then(|body| serde_json::from_slice(&body).ok()) {
            Some(status) => Asked::Answered(status),
            None => Asked::NotRunning,
        }
    }

    /// Asks it to end. True when it has saved everything.
    pub fn stop(&self) -> bool {
        self.ask("POST /stop").is_some()
    }

    /// The body of an answer with code 200. Somebody else at this port answers something else, or nothing.
    fn ask(&self, what: &str) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let request = format!("{what} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n", self.token);
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).ok()?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
        answer.starts_with(b"HTTP/1.1 200 ").then(|| answer[end + 4..].to_vec())
    }
}

/// Ends the peer of a folder. Returns when it has ended.
pub fn stop(folder: &Path) -> Result<(), Mistake> {
    let not_running =
        || Mistake::file(folder, "the peer does not run; accepted: a peer that `sottovoce peer start` runs");
    let admin = Admin::read(folder).ok_or_else(not_running)?;
    if let Asked::NotRunning = admin.status() {
        return Err(not_running());
    }
    if !admin.stop() {
        return Err(Mistake::file(folder, format!("process {} was asked to end and has not answered", admin.process)));
    }
    let began = Instant::now();
    while Admin::read(folder).is_some_and(|now| now.token == admin.token) {
        if began.elapsed() > STOP_TIME_MAX {
            let what = format!("process {} has saved everything, but has not ended", admin.process);
            return Err(Mistake::file(folder, what));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
