//! A peer's owner asks from another terminal: status, metrics, stop. HTTP on loopback, a few requests at a time, nothing else.
//!
//! | request | answer | token |
//! |---|---|---|
//! | `GET /metrics` | counters in the text format of Prometheus | no |
//! | `GET /status` | a [`PeerStatus`] as JSON | yes |
//! | `POST /stop` | the peer saves, says goodbye and ends | yes |
//!
//! The token is sent as `authorization: Bearer TOKEN`. It keeps other users of the machine, and pages in a browser, from asking.

use crate::status::PeerStatus;
use sottovoce_privacy::Ledger;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The longest request.
const REQUEST_BYTES_MAX: usize = 4096;

/// Requests at a time; more wait.
const REQUESTS_MAX: usize = 8;

/// How long a request may take to arrive, and its answer to leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the owner wants of a running peer.
#[derive(Debug)]
pub enum Ask {
    /// How it is doing.
    Status(oneshot::Sender<PeerStatus>),
    /// That it ends. Answered when everything is saved.
    Stop(oneshot::Sender<()>),
}

/// What releases come to, by the task's accountant.
pub type Account = Arc<dyn Fn(&Ledger) -> f64 + Send + Sync>;

/// Why there is no way to ask.
#[derive(Debug, Error)]
pub enum AdminError {
    /// It would be open to other machines.
    #[error("admin = {0} is not on loopback; accepted: an address like 127.0.0.1:0")]
    NotLoopback(SocketAddr),
    /// The system says no.
    #[error("admin = {address} cannot be used: {error}; accepted: a free port, or 0 for any")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
}

/// Waits for the owner.
pub struct AdminServer {
    listener: TcpListener,
    token: String,
    account: Option<Account>,
}

impl AdminServer {
    /// Listens on loopback.
    pub async fn bind(address: SocketAddr, token: String, account: Option<Account>) -> Result<Self, AdminError> {
        if !address.ip().is_loopback() {
            return Err(AdminError::NotLoopback(address));
        }
        let listener = TcpListener::bind(address).await.map_err(|error| AdminError::Bind { address, error })?;
        Ok(AdminServer { listener, token, account })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the peer is gone.
    pub async fn serve(self, asks: mpsc::Sender<Ask>) {
        let (token, account) = (Arc::new(self.token), self.account);
        let room = Arc::new(Semaphore::new(REQUESTS_MAX));
        while let Ok(place) = room.clone().acquire_owned().await {
            let stream = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // Out of files, most likely: wait for some to be closed.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
                () = asks.closed() => return,
            };
            let (token, account, asks) = (token.clone(), account.clone(), asks.clone());
            tokio::spawn(async move {
                // Whoever does not read its answer does not get it.
                let _ = tokio::time::timeout(PATIENCE + PATIENCE, answer(stream, &token, account, &asks)).await;
                drop(place);
            });
        }
    }
}

async fn answer(
    mut stream: TcpStream,
    token: &str,
    account: Option<Account>,
    asks: &mpsc::Sender<Ask>,
) -> io::Result<()> {
    let Ok(request) = tokio::time::timeout(PATIENCE, read(&mut stream)).await else { return Ok(()) };
    let (code, kind, body) = match request? {
        None => ("400 Bad Request", "text/plain", "not a request\n".to_owned()),
        Some(request) => respond(&request, token, account, asks).await,
    };
    let head = format!(
        "HTTP/1.1 {code}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// The head of a request; `None` when it is too long or no text.
async fn read(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        let count = stream.read(&mut part).await?;
        if count == 0 || bytes.len() + count > REQUEST_BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&part[..count]);
    }
    Ok(String::from_utf8(bytes).ok())
}

async fn respond(
    request: &str,
    token: &str,
    account: Option<Account>,
    asks: &mpsc::Sender<Ask>,
) -> (&'static str, &'static str, String) {
    const TEXT: &str = "text/plain; charset=utf-8";
    const GONE: (&str, &str, &str) = ("503 Service Unavailable", TEXT, "the peer is ending\n");
    let gone = || (GONE.0, GONE.1, GONE.2.to_owned());
    let mut lines = request.lines();
    let line = lines.next().unwrap_or_default();
    let (method_and_path, _) = line.rsplit_once(' ').unwrap_or((line, ""));
    let status = async || {
        let (reply, status) = oneshot::channel();
        asks.send(Ask::Status(reply)).await.ok()?;
        status.await.ok()
    };
    match method_and_path {
        "GET /metrics" => {
            let Some(status) = status().await else { return gone() };
            let epsilon = match account {
                None => None,
                Some(account) => {
                    let charges = status.charges.clone();
                    let computed = move || Ledger::from_charges(charges).ok().map(|ledger| account(&ledger));
                    tokio::task::spawn_blocking(computed).await.ok().flatten()
                }
            };
            ("200 OK", "text/plain; version=0.0.4", status.metrics(epsilon))
        }
        "GET /status" | "POST /stop" if !is_authorized(&mut lines, token) => {
            ("403 Forbidden", TEXT, "the token of this peer is needed\n".to_owned())
        }
        "GET /status" => match status().await {
            None => gone(),
            Some(status) => ("200 OK", "application/json", serde_json::to_string(&status).expect("a status is JSON")),
        },
        "POST /stop" => {
            let (reply, stopped) = oneshot::channel();
            if asks.send(Ask::Stop(reply)).await.is_err() || stopped.await.is_err() {
                return gone();
            }
            ("200 OK", TEXT, "stopped\n".to_owned())
        }
        _ => ("404 Not Found", TEXT, "there are GET /metrics, GET /status and POST /stop\n".to_owned()),
    }
}

/// Whether a header has the token. The comparison takes the same time wherever they differ.
fn is_authorized<'l>(headers: impl Iterator<Item = &'l str>, token: &str) -> bool {
    let mut values = headers.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("authorization").then(|| value.trim().strip_prefix("Bearer "))?
    });
    values.any(|value| {
        let differing = value.bytes().zip(token.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
        differing == 0 && value.len() == token.len() && !token.is_empty()
    })
}
