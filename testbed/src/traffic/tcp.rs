//! TCP sessions in rounds: the client sends a header and its bytes, the server verifies them and answers with its
//! own, the client verifies those. A round with nothing in it says goodbye.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use super::pattern::Pattern;
use super::{Ends, PORT};
use crate::error::{Doing, Result};
use crate::rng::Rng;

const MAGIC: u32 = 0x534c_5442;
const HEADER: usize = 24;
/// A session that moves no byte for this long is broken; longer than any fault that a scenario makes.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a session does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// Rounds; none: until told to finish.
    pub rounds: Option<u32>,
    /// Bytes per round and direction, least and most.
    pub bytes: (u64, u64),
    /// Pause between rounds in ms.
    pub pause_ms: u64,
    /// Seed of the sizes, together with the session's number.
    pub seed: u64,
}

/// What became of a session, as its client saw it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionReport {
    /// The session.
    pub ends: Ends,
    /// Why it ended early.
    pub error: Option<String>,
    /// Rounds completed.
    pub rounds: u32,
    /// Bytes sent and verified by the server.
    pub up: u64,
    /// Bytes received and verified.
    pub down: u64,
    /// Longest round in ms.
    pub longest_round_ms: u64,
}

/// What the server saw.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Served {
    /// Sessions that said goodbye.
    pub completed: u64,
    /// Bytes verified.
    pub bytes: u64,
    /// What went wrong, with the session where known.
    pub errors: Vec<String>,
}

/// One client session.
pub async fn session(ends: Ends, work: Work, stop: watch::Receiver<bool>) -> SessionReport {
    let mut report = SessionReport { ends, error: None, rounds: 0, up: 0, down: 0, longest_round_ms: 0 };
    if let Err(error) = converse(&mut report, &work, stop).await {
        report.error = Some(error.to_string());
    }
    report
}

async fn converse(
    report: &mut SessionReport,
    work: &Work,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let ends = report.ends;
    let socket = match ends.client.ip() {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(ends.client)?;
    let mut stream = patient("connecting", socket.connect(ends.server)).await?;
    stream.set_nodelay(true)?;
    let mut rng = Rng::new(work.seed ^ ends.id);
    let mut buffer = vec![0; 16384];
    while work.rounds.is_none_or(|rounds| report.rounds < rounds) && !*stop.borrow() {
        let up = rng.between(work.bytes.0, work.bytes.1);
        let down = rng.between(work.bytes.0, work.bytes.1);
        let began = Instant::now();
        round(&mut stream, ends.id, report.rounds, up, down, &mut buffer).await?;
        report.longest_round_ms = report.longest_round_ms.max(began.elapsed().as_millis() as u64);
        report.rounds += 1;
        report.up += up;
        report.down += down;
        if work.pause_ms > 0 {
            let pause = tokio::time::sleep(Duration::from_millis(work.pause_ms));
            tokio::select! { () = pause => {}, _ = stop.changed() => {} }
        }
    }
    round(&mut stream, ends.id, report.rounds, 0, 0, &mut buffer).await?;
    stream.shutdown().await?;
    // The server's own FIN: only then has the session ended well on both sides.
    match patient("waiting for the end", stream.read(&mut buffer)).await? {
        0 => Ok(()),
        more => Err(io::Error::other(format!("{more} bytes came after the end"))),
    }
}

async fn patient<T>(what: &str, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(PATIENCE, step).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(io::Error::new(error.kind(), format!("{what}: {error}"))),
        Err(_) => Err(io::Error::other(format!("{what}: nothing moved for {} s", PATIENCE.as_secs()))),
    }
}

async fn round(
    stream: &mut TcpStream,
    session: u64,
    number: u32,
    up: u64,
    down: u64,
    buffer: &mut [u8],
) -> io::Result<()> {
    let mut header = [0; HEADER];
    header[0..4].copy_from_slice(&MAGIC.to_be_bytes());
    header[4..8].copy_from_slice(&number.to_be_bytes());
    header[8..16].copy_from_slice(&session.to_be_bytes());
    header[16..20].copy_from_slice(&(up as u32).to_be_bytes());
    header[20..24].copy_from_slice(&(down as u32).to_be_bytes());
    patient("sending a header", stream.write_all(&header)).await?;
    send(stream, Pattern::new(session, number, true), up, buffer).await?;
    let mut echoed = [0; HEADER];
    patient("waiting for an answer", stream.read_exact(&mut echoed)).await?;
    if echoed != header {
        return Err(io::Error::other(format!("round {number}: the answer's header is wrong")));
    }
    receive(stream, Pattern::new(session, number, false), down, buffer).await
}

async fn send(stream: &mut TcpStream, mut pattern: Pattern, total: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut left = total as usize;
    while left > 0 {
        let part = left.min(buffer.len());
        pattern.fill(&mut buffer[..part]);
        patient("sending", stream.write_all(&buffer[..part])).await?;
        left -= part;
    }
    Ok(())
}

async fn receive(
    stream: &mut TcpStream,
    mut pattern: Pattern,
    total: u64,
    buffer: &mut [u8],
) -> io::Result<()> {
    let mut left = total as usize;
    while left > 0 {
        let part = left.min(buffer.len());
        let got = patient("receiving", stream.read(&mut buffer[..part])).await?;
        if got == 0 {
            return Err(io::Error::other(format!("the other end closed with {left} bytes to come")));
        }
        if let Err(at) = pattern.verify(&buffer[..got]) {
            let place = total as usize - left + at;
            return Err(io::Error::other(format!("byte {place} of {total} is wrong")));
        }
        left -= got;
    }
    Ok(())
}

/// Starts the servers for both IP versions.
///
/// # Errors
/// When the port is taken.
pub async fn listen(served: Arc<Mutex<Served>>) -> Result<()> {
    for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        let address = SocketAddr::new(any, PORT);
        // A plain listener on :: would claim IPv4 too.
        let listener = match address {
            SocketAddr::V4(_) => std::net::TcpListener::bind(address),
            SocketAddr::V6(address) => bind_v6_only(address),
        };
        let listener = listener.doing(|| format!("listening on {address}"))?;
        listener.set_nonblocking(true).doing(|| format!("listening on {address}"))?;
        let listener = TcpListener::from_std(listener).doing(|| format!("listening on {address}"))?;
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let served = Arc::clone(&served);
                tokio::spawn(async move {
                    let outcome = serve(stream, &served).await;
                    let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
                    match outcome {
                        Ok(()) => served.completed += 1,
                        Err(error) => served.errors.push(error.to_string()),
                    }
                });
            }
        });
    }
    Ok(())
}

fn bind_v6_only(address: SocketAddrV6) -> io::Result<std::net::TcpListener> {
    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrIn6, bind, listen, setsockopt, socket, sockopt,
    };
    let fd = socket(AddressFamily::Inet6, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, sockopt::Ipv6V6Only, &true)?;
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    bind(std::os::fd::AsRawFd::as_raw_fd(&fd), &SockaddrIn6::from(address))?;
    listen(&fd, Backlog::MAXCONN)?;
    Ok(fd.into())
}

async fn serve(mut stream: TcpStream, served: &Mutex<Served>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let peer = stream.peer_addr()?;
    let mut buffer = vec![0; 16384];
    let mut expected = 0u32;
    loop {
        let mut header = [0; HEADER];
        // A client may rest between rounds for as long as it likes.
        stream.read_exact(&mut header).await.map_err(|error| io::Error::other(format!("{peer}: {error}")))?;
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u32::from_be_bytes(bytes)
        };
        let session = (u64::from(word(8)) << 32) | u64::from(word(12));
        let named = |error: io::Error| io::Error::other(format!("session {session} from {peer}: {error}"));
        let (number, up, down) = (word(4), u64::from(word(16)), u64::from(word(20)));
        if word(0) != MAGIC || number != expected {
            return Err(named(io::Error::other(format!("round {expected} expected, header {header:02x?}"))));
        }
        receive(&mut stream, Pattern::new(session, number, true), up, &mut buffer).await.map_err(named)?;
        patient("answering", stream.write_all(&header)).await.map_err(named)?;
        send(&mut stream, Pattern::new(session, number, false), down, &mut buffer).await.map_err(named)?;
        served.lock().unwrap_or_else(PoisonError::into_inner).bytes += up;
        if up == 0 && down == 0 {
            let end = patient("waiting for the end", stream.read(&mut buffer)).await.map_err(named)?;
            return if end == 0 {
                stream.shutdown().await.map_err(named)
            } else {
                Err(named(io::Error::other("bytes after the goodbye")))
            };
        }
        expected += 1;
    }
}

/// A copy of what the server has seen.
pub fn snapshot(served: &Mutex<Served>) -> Served {
    served.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(server: SocketAddr) -> Ends {
        Ends { id: 9, client: SocketAddr::from(([127, 0, 0, 1], 0)), server }
    }

    fn work() -> Work {
        Work { rounds: Some(3), bytes: (1, 50_000), pause_ms: 0, seed: 1 }
    }

    #[tokio::test]
    async fn every_byte_is_verified_at_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
        let server = listener.local_addr().expect("address");
        let served = Arc::new(Mutex::new(Served::default()));
        let counted = Arc::clone(&served);
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("accept");
            serve(stream, &counted).await
        });
        let (_stop, stopped) = watch::channel(false);
        let report = session(ends(server), work(), stopped).await;
        assert_eq!(report.error, None);
        assert_eq!(report.rounds, 3);
        serving.await.expect("task").expect("served");
        assert_eq!(snapshot(&served).bytes, report.up);
    }

    #[tokio::test]
    async fn a_changed_byte_on_the_way_is_reported_with_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
        let server = listener.local_addr().expect("address");
        // A server that answers with the right header and one wrong byte.
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("accept");
            let mut header = [0; HEADER];
            stream.read_exact(&mut header).await.expect("header");
            let up = u32::from_be_bytes([header[16], header[17], header[18], header[19]]) as usize;
            let down = u32::from_be_bytes([header[20], header[21], header[22], header[23]]) as usize;
            stream.read_exact(&mut vec![0; up]).await.expect("body");
            stream.write_all(&header).await.expect("answer");
            let mut body = vec![0; down];
            Pattern::new(9, 0, false).fill(&mut body);
            body[down - 1] ^= 0x20;
            stream.write_all(&body).await.expect("answer");
        });
        let (_stop, stopped) = watch::channel(false);
        let report = session(ends(server), work(), stopped).await;
        let error = report.error.expect("noticed");
        assert!(error.starts_with("byte ") && error.ends_with(" is wrong"), "{error}");
    }

    #[tokio::test]
    async fn nobody_listening_is_an_error_that_names_the_step() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
        let server = listener.local_addr().expect("address");
        drop(listener);
        let (_stop, stopped) = watch::channel(false);
        let report = session(ends(server), work(), stopped).await;
        assert!(report.error.expect("refused").starts_with("connecting: "));
    }
}
