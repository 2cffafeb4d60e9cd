//! A subagent that keeps a session, and begins another where one ends.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::outbox::Outbox;
use crate::session::{Ended, hold};
use crate::{Notification, Oid, Source};

/// Before the first try again; each further one waits twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Between tries at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// To connect.
const CONNECT: Duration = Duration::from_secs(5);

/// Where a master agent listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A port of this machine.
    Tcp(SocketAddr),
}

/// A text that is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no AgentX address: /PATH or unix:/PATH, or tcp:127.0.0.1:PORT or tcp:[::1]:PORT on this machine, since AgentX \
     knows neither keys nor ciphers"
)]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let tcp = || text.strip_prefix("tcp:")?.parse::<SocketAddr>().ok().filter(|at| at.ip().is_loopback());
        match text.strip_prefix("unix:").unwrap_or(text) {
            path if path.starts_with('/') => Ok(Address::Unix(path.into())),
            _ => tcp().map(Address::Tcp).ok_or_else(|| AddressError(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// What a subagent needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the master agent.
    pub address: Address,
    /// The subtree of all objects; names the subagent too.
    pub subtree: Oid,
    /// Who it is, in words.
    pub description: String,
}

/// How the session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is registered with the master agent.
    Up,
    /// It is not, and why. It tries again by itself.
    Down(String),
}

/// A running subagent; it says good-bye to the master agent when it is dropped.
pub struct Subagent {
    outbox: Arc<Outbox>,
    state: watch::Receiver<State>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Subagent {
    /// Starts one on the present runtime.
    #[must_use]
    pub fn start<S: Source>(settings: Settings, source: Arc<S>) -> Self {
        let outbox = Arc::new(Outbox::default());
        let (state, follower) = watch::channel(State::Down("not connected yet".to_owned()));
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(run(settings, source, outbox.clone(), state, stopped));
        Subagent { outbox, state: follower, stop: Some(stop), running }
    }

    /// Sends a notification, once the session is up where it is not. Never waits. While it is down the newest 1024
    /// are kept; one that may have been sent just when the session ended is sent again.
    pub fn notify(&self, notification: Notification) {
        self.outbox.put(notification);
    }

    /// Notifications that nobody got, because there was no room for them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.outbox.dropped()
    }

    /// Follows how the session stands.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Ends it and waits until it has.
    pub async fn close(mut self) {
        drop(self.stop.take());
        // A task that panicked has ended too.
        let _ = (&mut self.running).await;
    }
}

async fn run<S: Source>(
    settings: Settings,
    source: Arc<S>,
    outbox: Arc<Outbox>,
    state: watch::Sender<State>,
    mut stop: oneshot::Receiver<()>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let reason = match session(&settings, &source, &outbox, &state, &mut stop).await {
            Ended::Stopped => return,
            ended => format!("{}: {ended}", settings.address),
        };
        let was_up = *state.borrow() == State::Up;
        if was_up {
            pause = FIRST_PAUSE;
        }
        let down = State::Down(reason);
        state.send_if_modified(|state| {
            let news = *state != down;
            *state = down;
            news
        });
        tokio::select! {
            _ = &mut stop => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn session<S: Source>(
    settings: &Settings,
    source: &Arc<S>,
    outbox: &Outbox,
    state: &watch::Sender<State>,
    stop: &mut oneshot::Receiver<()>,
) -> Ended {
    let late = || Ended::Io(std::io::ErrorKind::TimedOut.into());
    match &settings.address {
        Address::Unix(path) => match tokio::time::timeout(CONNECT, UnixStream::connect(path)).await {
            Ok(Ok(stream)) => hold(stream, settings, source, outbox, state, stop).await,
            Ok(Err(error)) => error.into(),
            Err(_) => late(),
        },
        Address::Tcp(address) => match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small answers must not wait for each other; without it they are only later.
                let _ = stream.set_nodelay(true);
                hold(stream, settings, source, outbox, state, stop).await
            }
            Ok(Err(error)) => error.into(),
            Err(_) => late(),
        },
    }
}
