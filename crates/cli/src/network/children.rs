//! The peers' processes. Whatever happens to this one, they end.

use crate::peer::{Admin, Asked};
use sottovoce_net::status::{PeerStatus, Phase};
use sottovoce_privacy::odometer::Instance;
use sottovoce_run::facts::Traffic;
use sottovoce_task::error::Mistake;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a peer says to its log.
const LOG_FILE: &str = "log.txt";

/// How long peers may take to end before they are ended.
const END_TIME_MAX: Duration = Duration::from_secs(15);

/// A longer line of a log is cut.
const LINE_MAX: usize = 300;

/// The peers' processes. Dropped, they end: each sees that its standard input is closed, also when this process was killed.
pub struct Children(Vec<Running>);

struct Running {
    name: String,
    folder: PathBuf,
    process: Child,
    admin: Option<Admin>,
}

/// What peers said when they were asked in turn.
pub struct Round(pub Vec<(String, Option<PeerStatus>)>);

impl Children {
    pub fn start(names: &[String], folders: &[PathBuf], charged: Option<Instance>) -> Result<Self, Mistake> {
        let program =
            std::env::current_exe().map_err(|error| Mistake::new(format!("this program cannot be found: {error}")))?;
        let mut children = Children(Vec::new());
        for (name, folder) in names.iter().zip(folders) {
            let log = folder.join(LOG_FILE);
            let log = File::create(&log).map_err(|error| Mistake::io(&log, "written", &error))?;
            let process = Command::new(&program)
                .args(["peer", "start", "--with-parent"])
                .args(charged.map(|instance| format!("--charged={:032x}", u128::from_be_bytes(instance))))
                .arg(folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .map_err(|error| Mistake::new(format!("peer {name:?} cannot be started: {error}")))?;
            children.0.push(Running { name: name.clone(), folder: folder.clone(), process, admin: None });
        }
        Ok(children)
    }

    /// Asks all peers how they are doing.
    pub fn look(&mut self) -> Result<Round, Mistake> {
        let mut round = Vec::new();
        for child in &mut self.0 {
            if let Ok(Some(code)) = child.process.try_wait() {
                let said = last_line(&child.folder);
                return Err(Mistake::new(format!("peer {:?} has ended ({code}): {said}", child.name)));
            }
            if child.admin.is_none() {
                child.admin = Admin::read(&child.folder);
            }
            let status = match child.admin.as_ref().map(Admin::status) {
                Some(Asked::Answered(status)) => Some(status),
                _ => None,
            };
            round.push((child.name.clone(), status));
        }
        Ok(Round(round))
    }

    /// Ends all peers through their owners' door, and waits for them.
    pub fn stop(mut self) -> Result<(), Mistake> {
        for child in &mut self.0 {
            // One that has just been started has no door yet.
            if !child.admin.as_ref().is_some_and(Admin::stop) {
                drop(child.process.stdin.take());
            }
        }
        let until = Instant::now() + END_TIME_MAX;
        for child in &mut self.0 {
            match end(&mut child.process, until) {
                Some(code) if code.success() => {}
                other => {
                    let code = other.map_or("it had to be killed".to_owned(), |code| code.to_string());
                    let said = last_line(&child.folder);
                    return Err(Mistake::new(format!("peer {:?} did not end well ({code}): {said}", child.name)));
                }
            }
        }
        Ok(())
    }
}

/// Waits for a process; none when it took too long and was killed.
fn end(process: &mut Child, until: Instant) -> Option<std::process::ExitStatus> {
    loop {
        match process.try_wait() {
            Ok(Some(code)) => return Some(code),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                // It may have ended just now.
                let _ = process.kill();
                let _ = process.wait();
                return None;
            }
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| drop(child.process.stdin.take()));
        let until = Instant::now() + END_TIME_MAX;
        for child in &mut self.0 {
            end(&mut child.process, until);
        }
    }
}

/// The last thing that a peer said.
fn last_line(folder: &Path) -> String {
    let text = std::fs::read(folder.join(LOG_FILE)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    line.trim_start_matches("error: ").chars().take(LINE_MAX).collect()
}

/// Who has been seen with everything delivered since all were quiet. A quiet peer may go on to say what is within the tolerance, so
/// they need not all be seen so at once: what each had said by then has arrived, and if it had mattered to anyone, not all would be
/// quiet at the next look.
pub struct Settled(pub Vec<bool>);

impl Settled {
    /// Whether the network has come to rest.
    pub fn look(&mut self, round: &Round) -> bool {
        if !round.is_quiet() {
            self.0.fill(false);
            return false;
        }
        let at_rest = self.0.iter().all(|settled| *settled);
        for (settled, status) in self.0.iter_mut().zip(round.statuses()) {
            *settled |= status.delivered;
        }
        at_rest
    }
}

impl Round {
    fn statuses(&self) -> impl Iterator<Item = &PeerStatus> {
        self.0.iter().filter_map(|(_, status)| status.as_ref())
    }

    /// Whether everyone answered and has nothing to do.
    fn is_quiet(&self) -> bool {
        let quiet = |status: &PeerStatus| status.phase == Phase::Quiet;
        self.0.iter().all(|(_, status)| status.as_ref().is_some_and(quiet))
    }

    /// A counter, added up.
    pub fn sum(&self, counter: &str) -> u64 {
        self.statuses().filter_map(|status| status.counters.get(counter)).sum()
    }

    /// What was refused, by reason, added up.
    pub fn refused(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (reason, count) in self.statuses().flat_map(|status| &status.refused) {
            *all.entry(reason.clone()).or_default() += count;
        }
        all
    }

    pub fn traffic(&self) -> Traffic {
        Traffic {
            wakes: self.statuses().map(|status| status.wakes).sum(),
            vectors_sent: self.sum("vectors_sent"),
            letters_sent: self.sum("letters_sent"),
            bytes_sent: self.sum("bytes_sent"),
        }
    }
}
