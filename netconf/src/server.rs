//! The server: its settings, its sessions, and what it counts.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use russh::keys::PrivateKey;
use tokio::sync::{Semaphore, watch};

use crate::backend::{Backend, Caller, Ending, Login};
use crate::credentials::{Failures, network};
use crate::document::XmlLimits;
use crate::locks::Locks;
use crate::session;

/// What a server allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Sessions at a time.
    pub max_sessions: usize,
    /// Time without a request after which a session without a subscription ends.
    pub idle_timeout: Option<Duration>,
    /// Time from the connection to the client's hello.
    pub login_timeout: Duration,
    /// Connections at a time in which no session has begun; half of them from one address.
    pub max_connecting: usize,
    /// Time in which a client must take something of what it is sent.
    pub write_timeout: Duration,
    /// Time between questions to a silent client whether it is there; three without an answer end the connection.
    pub keepalive: Duration,
    /// Longest message, in bytes.
    pub max_message: usize,
    /// Of the XML in a message.
    pub xml: XmlLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_sessions: 32,
            idle_timeout: None,
            login_timeout: Duration::from_secs(30),
            max_connecting: 64,
            write_timeout: Duration::from_secs(30),
            keepalive: Duration::from_secs(15),
            max_message: 64 << 20,
            xml: XmlLimits::default(),
        }
    }
}

/// A NETCONF server over SSH; clones are the same server.
pub struct Server<B>(pub(crate) Arc<Inner<B>>);

impl<B> Clone for Server<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

pub(crate) struct Inner<B> {
    pub(crate) backend: Arc<B>,
    pub(crate) locks: Arc<Locks>,
    pub(crate) host_key: PrivateKey,
    settings: RwLock<Arc<Settings>>,
    pub(crate) sessions: Mutex<BTreeMap<u32, Arc<Live>>>,
    /// Sessions that are or are about to be.
    slots: Arc<AtomicUsize>,
    pub(crate) connecting: Connecting,
    /// Held while something changes that all sessions share.
    pub(crate) changes: tokio::sync::Mutex<()>,
    /// Long messages that are read at a time: each takes several times its length.
    pub(crate) long_messages: Semaphore,
    pub(crate) failures: Failures,
    pub(crate) since: SystemTime,
    pub(crate) counts: Counts,
    stopping: watch::Sender<bool>,
}

/// Counters of RFC 6022, 2.1.5.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) in_bad_hellos: AtomicU32,
    pub(crate) in_sessions: AtomicU32,
    pub(crate) dropped_sessions: AtomicU32,
    pub(crate) rpcs: RpcCounts,
}

/// Counters of the server or of a session.
#[derive(Debug, Default)]
pub(crate) struct RpcCounts {
    pub(crate) in_rpcs: AtomicU32,
    pub(crate) in_bad_rpcs: AtomicU32,
    pub(crate) out_rpc_errors: AtomicU32,
    pub(crate) out_notifications: AtomicU32,
}

/// A session as the others see it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) caller: Caller,
    pub(crate) since: SystemTime,
    pub(crate) counts: RpcCounts,
    /// Set where it shall end.
    end: watch::Sender<Option<Ending>>,
    /// Set when it has ended, with all that it held.
    ended: watch::Sender<bool>,
}

impl Live {
    pub(crate) fn new(caller: Caller) -> Self {
        Self {
            caller,
            since: SystemTime::now(),
            counts: RpcCounts::default(),
            end: watch::Sender::new(None),
            ended: watch::Sender::new(false),
        }
    }

    /// Tells it to end; the first reason is the one that counts.
    pub(crate) fn end(&self, why: &Ending) {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            end.get_or_insert_with(|| why.clone());
            first
        });
    }

    /// Waits until it is told to end.
    pub(crate) async fn told(&self) -> Ending {
        let mut told = self.end.subscribe();
        match told.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            // The sender is in `self`.
            _ => Ending::Shutdown,
        }
    }

    /// Waits until it holds nothing any more.
    pub(crate) async fn gone(&self) {
        // An error means that it was dropped, which is as good.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

/// Counts something for as long as it is there.
#[derive(Debug)]
pub(crate) struct Slot(Arc<AtomicUsize>);

impl Slot {
    /// One more, unless there are `most` already.
    pub(crate) fn take(counter: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |count: usize| (count < most).then_some(count + 1);
        counter.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Self(Arc::clone(counter)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Connections in which no session has begun, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connecting(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Waiting {
    connecting: Connecting,
    network: IpAddr,
}

impl Connecting {
    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, unless there are `most` already, or half as many from its address.
    pub(crate) fn take(&self, from: IpAddr, most: usize) -> Option<Waiting> {
        let network = network(from);
        let mut counts = self.counts();
        let own = counts.get(&network).copied().unwrap_or(0);
        if counts.values().sum::<usize>() >= most || own >= most.div_ceil(2) {
            return None;
        }
        counts.insert(network, own + 1);
        Some(Waiting { connecting: self.clone(), network })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut counts = self.connecting.counts();
        if let Some(count) = counts.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.network);
            }
        }
    }
}

/// A session in the list of the sessions, while it is there.
pub(crate) struct Listed<B> {
    inner: Arc<Inner<B>>,
    pub(crate) live: Arc<Live>,
}

impl<B> Drop for Listed<B> {
    fn drop(&mut self) {
        let session = self.live.caller.session;
        self.inner.locks.release(session);
        self.inner.lock_sessions().remove(&session);
        self.live.ended.send_replace(true);
    }
}

impl<B> Inner<B> {
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn lock_sessions(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Live>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sessions in the order of their numbers.
    pub(crate) fn sessions(&self) -> Vec<Arc<Live>> {
        self.lock_sessions().values().cloned().collect()
    }

    pub(crate) fn session(&self, number: u32) -> Option<Arc<Live>> {
        self.lock_sessions().get(&number).cloned()
    }

    pub(crate) fn list(self: &Arc<Self>, caller: Caller) -> Listed<B> {
        let live = Arc::new(Live::new(caller));
        self.lock_sessions().insert(live.caller.session, Arc::clone(&live));
        Listed { inner: Arc::clone(self), live }
    }

    /// Room for a session.
    pub(crate) fn slot(&self) -> Option<Slot> {
        Slot::take(&self.slots, self.settings().max_sessions)
    }

    /// Why there is no room.
    pub(crate) fn full(&self) -> String {
        format!("all {} NETCONF sessions are in use", self.settings().max_sessions)
    }

    /// Whether no session may begin any more.
    pub(crate) fn stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until the server stops.
    pub(crate) async fn stopped(&self) {
        // The sender is in `self`.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

impl<B: Backend> Server<B> {
    /// A server that listens nowhere yet. The locks may be shared with sessions of other kinds.
    #[must_use]
    pub fn new(backend: Arc<B>, locks: Arc<Locks>, host_key: PrivateKey, settings: Settings) -> Self {
        Self(Arc::new(Inner {
            backend,
            locks,
            host_key,
            settings: RwLock::new(Arc::new(settings)),
            sessions: Mutex::default(),
            slots: Arc::default(),
            connecting: Connecting::default(),
            changes: tokio::sync::Mutex::default(),
            long_messages: Semaphore::new(2),
            failures: Failures::default(),
            since: SystemTime::now(),
            counts: Counts::default(),
            stopping: watch::Sender::new(false),
        }))
    }

    /// What is allowed now.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.0.settings()
    }

    /// Other settings, for what begins from now on; sessions that are there stay, be they too many.
    pub fn set(&self, settings: Settings) {
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// The sessions that are there.
    #[must_use]
    pub fn callers(&self) -> Vec<Caller> {
        self.0.sessions().iter().map(|live| live.caller.clone()).collect()
    }

    /// Ends a session, as `kill-session` does, in the name of session `by`, and waits until it holds nothing any
    /// more. Whether there was one.
    pub async fn end(&self, session: u32, by: u32) -> bool {
        let Some(live) = self.0.session(session) else { return false };
        live.end(&Ending::Killed(by));
        live.gone().await;
        true
    }

    /// Ends all sessions and lets no other begin. Waits until the last holds nothing any more.
    pub async fn stop(&self) {
        self.0.stopping.send_replace(true);
        loop {
            let sessions = self.0.sessions();
            if sessions.is_empty() {
                return;
            }
            for live in sessions {
                live.end(&Ending::Shutdown);
                live.gone().await;
            }
        }
    }

    /// One session over a transport that has found out who it is, until its end.
    ///
    /// # Errors
    /// Where there can be no session now, and why.
    pub async fn serve_stream<R, W>(&self, login: Login, reader: R, writer: W) -> Result<Ending, String>
    where
        R: tokio::io::AsyncRead + Unpin + Send + 'static,
        W: tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let slot = self.0.slot().ok_or_else(|| self.0.full())?;
        // A task of its own, which goes on to the end should nobody wait for it any more.
        let serving = tokio::spawn(session::serve(Arc::clone(&self.0), slot, login, reader, writer, || {}));
        serving.await.unwrap_or_else(|error| Ok(Ending::Failed(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_takes_half_of_the_connections_at_most() {
        let connecting = Connecting::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let take = |text: &str| connecting.take(address(text), 4);
        let one = [take("192.0.2.1"), take("192.0.2.1")];
        assert!(one.iter().all(Option::is_some) && take("192.0.2.1").is_none());
        let other = [take("192.0.2.2"), take("192.0.2.3")];
        assert!(other.iter().all(Option::is_some) && take("192.0.2.4").is_none());
        drop(one);
        assert!(take("192.0.2.4").is_some() && take("192.0.2.1").is_some());
        drop(other);
        assert!(connecting.counts().is_empty());
    }
}
