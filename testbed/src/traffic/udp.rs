//! UDP sessions with sequence numbers. The server echoes each datagram; the client knows of each one when it was
//! sent and whether its echo came, so that a loss has an instant.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Ends, PORT};
use crate::clock::now_ns;
use crate::error::{Doing, Result};

const MAGIC: u32 = 0x534c_5544;
const HEADER: usize = 20;
/// After the last datagram, how long echoes may still come: an overloaded machine delays them, which is no loss.
const LINGER: Duration = Duration::from_secs(3);
/// Room for the echoes of all sessions while the machine is busy elsewhere.
const RECEIVE_BUFFER: usize = 4 << 20;

/// How sessions send.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pace {
    /// Time between datagrams of one session in microseconds.
    pub interval_us: u64,
    /// UDP payload in bytes, 20 or more.
    pub payload: usize,
    /// Datagrams; none: until told to finish.
    pub count: Option<u64>,
}

/// What became of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionReport {
    /// The session.
    pub ends: Ends,
    /// Why it couldn't go on.
    pub error: Option<String>,
    /// Datagrams sent.
    pub sent: u64,
    /// Echoes that came back at least once.
    pub echoed: u64,
    /// Echoes that came again.
    pub duplicates: u64,
    /// Echoes that came after one sent later.
    pub reordered: u64,
    /// Echoes whose bytes were wrong.
    pub corrupt: u64,
    /// Sequence number and sending instant (ns) of each datagram whose echo never came.
    pub lost: Vec<(u64, u64)>,
}

/// What the server saw of a session.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Served {
    /// Datagrams.
    pub received: u64,
    /// Datagrams at or below the highest sequence number before: out of order or again.
    pub behind: u64,
    /// Highest sequence number.
    pub highest: u64,
}

/// Keeps account of echoes.
#[derive(Debug, Default)]
struct Account {
    sent_at: Vec<u64>,
    echoed: Vec<bool>,
    highest: Option<u64>,
    duplicates: u64,
    reordered: u64,
    corrupt: u64,
}

impl Account {
    fn echo(&mut self, sequence: u64) {
        let Some(slot) = self.echoed.get_mut(sequence as usize) else {
            self.corrupt += 1;
            return;
        };
        if *slot {
            self.duplicates += 1;
        } else if self.highest.is_some_and(|highest| sequence < highest) {
            self.reordered += 1;
        }
        *slot = true;
        self.highest = self.highest.max(Some(sequence));
    }

    fn into_report(self, ends: Ends, error: Option<String>) -> SessionReport {
        let lost = self.sent_at.iter().zip(&self.echoed).enumerate();
        let lost = lost.filter(|(_, (_, echoed))| !**echoed).map(|(at, (sent, _))| (at as u64, *sent));
        SessionReport {
            ends,
            error,
            sent: self.sent_at.len() as u64,
            echoed: self.echoed.iter().filter(|echoed| **echoed).count() as u64,
            duplicates: self.duplicates,
            reordered: self.reordered,
            corrupt: self.corrupt,
            lost: lost.collect(),
        }
    }
}

fn datagram(session: u64, sequence: u64, payload: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.max(HEADER));
    bytes.extend_from_slice(&MAGIC.to_be_bytes());
    bytes.extend_from_slice(&session.to_be_bytes());
    bytes.extend_from_slice(&sequence.to_be_bytes());
    let mut filler = session ^ sequence;
    while bytes.len() < payload {
        filler = filler.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        bytes.push((filler >> 32) as u8);
    }
    bytes
}

fn read(bytes: &[u8]) -> Option<(u64, u64)> {
    let long = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if bytes.get(0..4)? != MAGIC.to_be_bytes() {
        return None;
    }
    Some((long(4)?, long(12)?))
}

fn open(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBuf, &RECEIVE_BUFFER)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// One client session; `turn` is its place among all, so that they don't all send at once.
pub async fn session(
    ends: Ends,
    pace: Pace,
    turn: (u64, u64),
    mut stop: watch::Receiver<bool>,
) -> SessionReport {
    let mut account = Account::default();
    let socket = match open(ends.client) {
        Ok(socket) => socket,
        Err(error) => return account.into_report(ends, Some(format!("binding {}: {error}", ends.client))),
    };
    if let Err(error) = socket.connect(ends.server).await {
        return account.into_report(ends, Some(format!("connecting to {}: {error}", ends.server)));
    }
    let interval = Duration::from_micros(pace.interval_us.max(1));
    let first = Instant::now() + interval.mul_f64(turn.0 as f64 / turn.1.max(1) as f64);
    let mut ticks = tokio::time::interval_at(first, interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut buffer = vec![0; 65536];
    let mut error = None;
    let mut until = None;
    loop {
        let sent = account.sent_at.len() as u64;
        if until.is_none() && (*stop.borrow() || pace.count.is_some_and(|count| sent >= count)) {
            until = Some(Instant::now() + LINGER);
        }
        if until.is_some() && account.echoed.iter().all(|echoed| *echoed) {
            break;
        }
        let deadline = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            received = socket.recv(&mut buffer) => match received {
                Ok(length) => match read(&buffer[..length]) {
                    Some((id, sequence))
                        if id == ends.id && buffer[..length] == datagram(id, sequence, pace.payload) =>
                    {
                        account.echo(sequence);
                    }
                    _ => account.corrupt += 1,
                },
                // A refusal by ICMP shows as loss; anything else does too.
                Err(failure) => error = Some(failure.to_string()),
            },
            _ = ticks.tick(), if until.is_none() => {
                let bytes = datagram(ends.id, sent, pace.payload);
                let now = now_ns();
                match socket.send(&bytes).await {
                    Ok(_) => {
                        account.sent_at.push(now);
                        account.echoed.push(false);
                    }
                    Err(failure) => error = Some(failure.to_string()),
                }
            }
            _ = stop.changed(), if until.is_none() => {}
            () = tokio::time::sleep_until(deadline), if until.is_some() => break,
        }
    }
    account.into_report(ends, error)
}

/// Starts an echo at each address.
///
/// # Errors
/// When an address can't be bound.
pub async fn listen(addresses: &[IpAddr], served: Arc<Mutex<HashMap<u64, Served>>>) -> Result<()> {
    for address in addresses {
        let address = SocketAddr::new(*address, PORT);
        let socket = open(address).doing(|| format!("binding {address}"))?;
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            let mut buffer = vec![0; 65536];
            loop {
                let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
                    continue;
                };
                if let Some((session, sequence)) = read(&buffer[..length]) {
                    note(&served, session, sequence);
                    // An echo that can't be sent is a loss that the client sees.
                    let _ = socket.send_to(&buffer[..length], from).await;
                }
            }
        });
    }
    Ok(())
}

fn note(served: &Mutex<HashMap<u64, Served>>, session: u64, sequence: u64) {
    let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = served.entry(session).or_default();
    if entry.received > 0 && sequence <= entry.highest {
        entry.behind += 1;
    }
    entry.received += 1;
    entry.highest = entry.highest.max(sequence);
}

/// A copy of what the server has seen.
pub fn snapshot(served: &Mutex<HashMap<u64, Served>>) -> HashMap<u64, Served> {
    served.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Ends { id: 4, client: nowhere, server: nowhere }
    }

    #[test]
    fn losses_duplicates_and_reordering_are_told_apart() {
        let sent_at = (0..6).map(|n| n * 100).collect();
        let mut account = Account { sent_at, echoed: vec![false; 6], ..Account::default() };
        for sequence in [0, 2, 1, 1, 5, 77] {
            account.echo(sequence);
        }
        let report = account.into_report(ends(), None);
        assert_eq!(report.lost, [(3, 300), (4, 400)]);
        assert_eq!((report.sent, report.echoed), (6, 4));
        assert_eq!((report.duplicates, report.reordered, report.corrupt), (1, 1, 1));
    }

    #[test]
    fn datagrams_read_back_and_strangers_do_not() {
        let bytes = datagram(7, 8, 100);
        assert_eq!(bytes.len(), 100);
        assert_eq!(read(&bytes), Some((7, 8)));
        assert_eq!(read(&bytes[..19]), None);
        assert_eq!(read(b"GET / HTTP/1.1 and more"), None);
    }

    #[test]
    fn the_server_counts_what_comes_out_of_order() {
        let served = Mutex::new(HashMap::new());
        for sequence in [0, 1, 3, 2, 3] {
            note(&served, 1, sequence);
        }
        let seen = snapshot(&served)[&1].clone();
        assert_eq!((seen.received, seen.behind, seen.highest), (5, 2, 3));
    }

    #[tokio::test]
    async fn echoes_are_accounted_for_over_loopback() {
        let served = Arc::new(Mutex::new(HashMap::new()));
        let home = IpAddr::from([127, 0, 0, 9]);
        listen(&[home], Arc::clone(&served)).await.expect("echo");
        let ends = Ends { id: 3, client: SocketAddr::from(([127, 0, 0, 8], 0)), server: (home, PORT).into() };
        let pace = Pace { interval_us: 500, payload: 200, count: Some(50) };
        let (_stop, stopped) = watch::channel(false);
        let report = session(ends, pace, (0, 1), stopped).await;
        assert_eq!((report.sent, report.echoed, report.lost.len()), (50, 50, 0));
        assert_eq!(snapshot(&served)[&3].received, 50);
    }
}
