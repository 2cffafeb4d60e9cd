//! One session with a master agent, from Open to its end (RFC 2741 section 7).

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::outbox::Outbox;
use crate::subagent::{Settings, State};
use crate::{
    Body, ByteOrder, CloseReason, DecodeError, HEADER, Header, Notification, Objects, Pdu, Registration,
    ResponseError, SearchRange, View, answer,
};

/// For a response, and for the other end to take what it is sent.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so long without a word the master agent is pinged.
const QUIET: Duration = Duration::from_secs(15);
/// For a view; a master agent waits a second or so, five times.
const VIEW_PATIENCE: Duration = Duration::from_secs(4);
/// Requests that are worked on at once; others wait in the socket.
const REQUESTS: usize = 64;
/// Notifications without a response yet.
const NOTIFICATIONS: usize = 16;
/// Octets that wait to be taken, from which on no more requests are read.
const BACKLOG: usize = 1 << 20;
/// To say good-bye.
const FAREWELL: Duration = Duration::from_millis(500);

/// The clock of the master agent's sysUpTime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Master {
    /// When sysUpTime was 0, on this machine's monotonic clock.
    pub started: std::time::Instant,
}

impl Master {
    fn of(uptime: u32) -> Self {
        let now = std::time::Instant::now();
        Master { started: now.checked_sub(Duration::from_millis(u64::from(uptime) * 10)).unwrap_or(now) }
    }

    /// sysUpTime at that time in 10 ms, as a TimeStamp has it (RFC 2579): 0 where that was before the master agent
    /// began; after 497 days it begins again.
    #[must_use]
    pub fn stamp(&self, at: std::time::Instant) -> u32 {
        (at.saturating_duration_since(self.started).as_millis() / 10) as u32
    }
}

/// Where views come from.
pub trait Source: Send + Sync + 'static {
    /// A view that is fresh enough to read what is asked for; `None` where there is none, which managers see as
    /// genErr, as they do where it takes longer than four seconds.
    fn view(
        &self,
        master: Master,
        asked: &[SearchRange],
    ) -> impl Future<Output = Option<Arc<dyn View>>> + Send;
}

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The master agent closed the connection.
    #[error("the master agent closed the connection")]
    Eof,
    /// The master agent closed the session.
    #[error("the master agent closed the session: {0:?}")]
    Closed(CloseReason),
    /// What came is no AgentX.
    #[error("what came from the master agent is not AgentX: {0}")]
    Decode(#[from] DecodeError),
    /// The master agent refused.
    #[error("the master agent refused the {what}: {error}")]
    Refused {
        /// Open or Register.
        what: &'static str,
        /// Why.
        error: ResponseError,
    },
    /// The master agent does not answer.
    #[error("the master agent has not answered the {what} within {} s", PATIENCE.as_secs())]
    Silent {
        /// What it was sent.
        what: &'static str,
    },
    /// The master agent does not read.
    #[error("the master agent has read nothing for {} s", PATIENCE.as_secs())]
    Deaf,
    /// It was asked to end.
    #[error("stopped")]
    Stopped,
}

/// What was sent and has no response yet.
enum Sent {
    Open,
    Register,
    Ping,
    Notify(Notification),
}

impl Sent {
    fn name(&self) -> &'static str {
        match self {
            Sent::Open => "Open",
            Sent::Register => "Register",
            Sent::Ping => "Ping",
            Sent::Notify(_) => "Notify",
        }
    }
}

/// A session's state and what is to be sent.
struct Session<'a, S> {
    settings: &'a Settings,
    source: &'a Arc<S>,
    state: &'a watch::Sender<State>,
    id: u32,
    registered: bool,
    master: Master,
    packet: u32,
    sent: BTreeMap<u32, (Instant, Sent)>,
    requests: JoinSet<Pdu>,
    out: Vec<u8>,
    /// When the other end last took something, or had nothing to take.
    taken: Instant,
    heard: Instant,
}

/// Holds a session until it ends. Nothing that waits to be notified is lost with it.
pub(crate) async fn hold<S: Source, C: AsyncRead + AsyncWrite>(
    stream: C,
    settings: &Settings,
    source: &Arc<S>,
    outbox: &Outbox,
    state: &watch::Sender<State>,
    stop: &mut oneshot::Receiver<()>,
) -> Ended {
    let now = Instant::now();
    let mut session = Session {
        settings,
        source,
        state,
        id: 0,
        registered: false,
        master: Master::of(0),
        packet: 0,
        sent: BTreeMap::new(),
        requests: JoinSet::new(),
        out: Vec::new(),
        taken: now,
        heard: now,
    };
    let (mut from, mut to) = tokio::io::split(stream);
    let ended = match session.run(&mut from, &mut to, outbox, stop).await {
        Ok(()) => Ended::Stopped,
        Err(ended) => ended,
    };
    let reason = match &ended {
        Ended::Stopped => Some(CloseReason::Shutdown),
        Ended::Decode(_) => Some(CloseReason::ParseError),
        Ended::Silent { .. } => Some(CloseReason::Timeouts),
        Ended::Refused { what: "Register", .. } => Some(CloseReason::Other),
        _ => None,
    };
    if let Some(reason) = reason.filter(|_| session.id != 0) {
        session.send(Body::Close { reason });
        // Whether it is heard or not, it is over.
        let _ = tokio::time::timeout(FAREWELL, to.write_all(&session.out)).await;
    }
    let unsaid = session.sent.into_values().filter_map(|(_, sent)| match sent {
        Sent::Notify(notification) => Some(notification),
        _ => None,
    });
    outbox.give_back(unsaid.collect());
    ended
}

impl<S: Source> Session<'_, S> {
    async fn run(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        outbox: &Outbox,
        stop: &mut oneshot::Receiver<()>,
    ) -> Result<(), Ended> {
        let open = Body::Open {
            timeout: 0,
            id: self.settings.subtree.clone(),
            description: self.settings.description.clone().into_bytes(),
        };
        self.ask(open, Sent::Open);
        let mut input = Vec::new();
        loop {
            let room = self.requests.len() < REQUESTS && self.out.len() < BACKLOG;
            let notifying = self.sent.values().filter(|(_, sent)| matches!(sent, Sent::Notify(_))).count();
            let deadline = self.deadline();
            tokio::select! {
                biased;
                // The other end of the channel is dropped or says so: either way it is over.
                _ = &mut *stop => return Ok(()),
                written = to.write(&self.out), if !self.out.is_empty() => {
                    self.out.drain(..written?);
                    self.taken = Instant::now();
                }
                read = from.read_buf(&mut input), if room => {
                    if read? == 0 {
                        return Err(Ended::Eof);
                    }
                    self.heard = Instant::now();
                    self.take(&mut input)?;
                }
                Some(response) = self.requests.join_next() => {
                    // A request that could not be worked on is one that the master agent gives up by itself.
                    if let Ok(response) = response {
                        self.put(&response);
                    }
                }
                notification = outbox.take(), if self.registered && notifying < NOTIFICATIONS => {
                    let bindings = notification.bindings();
                    self.ask(Body::Notify { context: None, bindings }, Sent::Notify(notification));
                }
                () = tokio::time::sleep_until(deadline) => self.wake()?,
            }
        }
    }

    /// When something is due.
    fn deadline(&self) -> Instant {
        let unanswered = self.sent.values().map(|(at, _)| *at + PATIENCE).min();
        let deaf = (!self.out.is_empty()).then_some(self.taken + PATIENCE);
        [unanswered, deaf].into_iter().flatten().fold(self.heard + QUIET, Instant::min)
    }

    fn wake(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        if !self.out.is_empty() && now >= self.taken + PATIENCE {
            return Err(Ended::Deaf);
        }
        if let Some((_, sent)) = self.sent.values().find(|(at, _)| now >= *at + PATIENCE) {
            return Err(Ended::Silent { what: sent.name() });
        }
        if now >= self.heard + QUIET {
            self.heard = now;
            self.ask(Body::Ping { context: None }, Sent::Ping);
        }
        Ok(())
    }

    fn put(&mut self, pdu: &Pdu) {
        if self.out.is_empty() {
            self.taken = Instant::now();
        }
        self.out.extend(pdu.encode());
    }

    fn send(&mut self, body: Body) {
        self.packet = self.packet.wrapping_add(1);
        let (session, packet) = (self.id, self.packet);
        self.put(&Pdu { order: ByteOrder::Network, session, transaction: packet, packet, body });
    }

    fn ask(&mut self, body: Body, sent: Sent) {
        self.send(body);
        self.sent.insert(self.packet, (Instant::now(), sent));
    }

    /// Takes the PDUs that have come whole.
    fn take(&mut self, input: &mut Vec<u8>) -> Result<(), Ended> {
        let mut at = 0;
        while let Some((header, rest)) = input[at..].split_first_chunk::<HEADER>() {
            let header = Header::decode(header)?;
            let Some(payload) = rest.get(..header.payload) else { break };
            match header.body(payload) {
                Ok(Body::Response { uptime, error, .. }) => self.response(&header, uptime, error)?,
                Ok(Body::Close { reason }) => return Err(Ended::Closed(reason)),
                Ok(body) => self.request(&header, body),
                Err(error) if header.kind == crate::Kind::Response => return Err(error.into()),
                Err(error) => {
                    tracing::warn!("AgentX: a request is not understood: {error}");
                    self.put(&response(&header, ResponseError::PARSE_ERROR, 0));
                }
            }
            at += HEADER + header.payload;
        }
        input.drain(..at);
        Ok(())
    }

    /// Works on a request.
    fn request(&mut self, header: &Header, body: Body) {
        if header.session != self.id {
            self.put(&response(header, ResponseError::NOT_OPEN, 0));
            return;
        }
        let (header, master) = (*header, self.master);
        let answered = move |view: &dyn View, body: &Body| {
            let body = answer(view, body)?;
            Some(Pdu { body, ..response(&header, ResponseError::NONE, 0) })
        };
        if body.asked().is_none() {
            if let Some(pdu) = answered(&Objects::default(), &body) {
                self.put(&pdu);
            }
            return;
        }
        let source = self.source.clone();
        self.requests.spawn(async move {
            let asked = body.asked().unwrap_or_default();
            let failed = response(&header, ResponseError::GENERAL, 1);
            match tokio::time::timeout(VIEW_PATIENCE, source.view(master, asked)).await {
                Ok(Some(view)) => answered(&*view, &body).unwrap_or(failed),
                Ok(None) | Err(_) => failed,
            }
        });
    }

    fn response(&mut self, header: &Header, uptime: u32, error: ResponseError) -> Result<(), Ended> {
        let packet = header.packet;
        let Some((_, sent)) = self.sent.remove(&packet) else { return Ok(()) };
        let refused = |what| Err(Ended::Refused { what, error });
        match sent {
            Sent::Open => {
                if error != ResponseError::NONE {
                    return refused("Open");
                }
                self.id = header.session;
                self.register();
                Ok(())
            }
            Sent::Register => {
                if error != ResponseError::NONE {
                    return refused("Register");
                }
                self.registered = true;
                self.master = Master::of(uptime);
                self.state.send_replace(State::Up);
                Ok(())
            }
            Sent::Ping if error == ResponseError::NOT_OPEN => Err(Ended::Closed(CloseReason::Other)),
            Sent::Ping => Ok(()),
            Sent::Notify(notification) => {
                if error == ResponseError::NOT_OPEN {
                    self.sent.insert(packet, (Instant::now(), Sent::Notify(notification)));
                    return Err(Ended::Closed(CloseReason::Other));
                }
                if error != ResponseError::NONE {
                    tracing::warn!("AgentX: the master agent does not send {}: {error}", notification.kind);
                }
                Ok(())
            }
        }
    }

    fn register(&mut self) {
        let registration = Registration {
            context: None,
            timeout: 0,
            priority: 127,
            subtree: self.settings.subtree.clone(),
            range: None,
            instance: false,
        };
        self.ask(Body::Register(registration), Sent::Register);
    }
}

/// A response to the PDU with this header.
fn response(header: &Header, error: ResponseError, index: u16) -> Pdu {
    Pdu {
        order: header.order(),
        session: header.session,
        transaction: header.transaction,
        packet: header.packet,
        body: Body::Response { uptime: 0, error, index, bindings: Vec::new() },
    }
}

#[cfg(test)]
mod tests;
