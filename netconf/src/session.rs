//! A session, from hello to end.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};
use tracing::{info, warn};

use crate::backend::{Backend, Caller, Ending, Login};
use crate::framing::{self, Decoder, Framing, FramingFault};
use crate::hello;
use crate::request;
use crate::server::{Inner, Live, Slot};
use crate::subscription::Subscription;

/// Longest part of a message that is written at once, and longest chunk.
const PIECE: usize = 64 * 1024;

/// What a message costs of a session's budget besides its length.
const OVERHEAD: usize = 1024;

/// Messages longer than this are read few at a time.
pub(crate) const LONG: usize = 1 << 20;

/// One session until its end, then all that it held is free. `established` is called after the hellos.
///
/// # Errors
/// Where the backend takes no session now.
pub(crate) async fn serve<B, R, W>(
    inner: Arc<Inner<B>>,
    slot: Slot,
    login: Login,
    reader: R,
    writer: W,
    established: impl FnOnce() + Send + 'static,
) -> Result<Ending, String>
where
    B: Backend,
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let session = inner.backend.open(&login).await?;
    let caller = Caller { session, user: login.user, role: login.role, from: login.from };
    inner.counts.in_sessions.fetch_add(1, Relaxed);
    info!(session, user = caller.user, from = %caller.from, "netconf session begins");
    let listed = inner.list(caller.clone());
    if inner.stopping() {
        listed.live.end(&Ending::Shutdown);
    }
    let talk = Talk {
        inner: Arc::clone(&inner),
        live: Arc::clone(&listed.live),
        framing: Framing::EndOfMessage,
        writer,
    };
    // A task of its own, so that even a panic in it frees what it held.
    let ending = match tokio::spawn(talk.run(reader, established)).await {
        Ok(ending) => ending,
        Err(error) => Ending::Failed(error.to_string()),
    };
    inner.locks.release(session);
    inner.backend.close(&caller, &ending).await;
    drop(listed);
    drop(slot);
    if !matches!(ending, Ending::Closed) {
        inner.counts.dropped_sessions.fetch_add(1, Relaxed);
    }
    match &ending {
        Ending::Failed(why) => warn!(session, user = caller.user, why, "netconf session failed"),
        ending => info!(session, user = caller.user, %ending, "netconf session ends"),
    }
    Ok(ending)
}

/// What the reading half says to the other.
enum Incoming {
    /// A message, and its part of the budget.
    Message(Vec<u8>, OwnedSemaphorePermit),
    Fault(FramingFault),
    End(String),
}

struct Talk<B, W> {
    inner: Arc<Inner<B>>,
    live: Arc<Live>,
    framing: Framing,
    writer: W,
}

impl<B: Backend, W: AsyncWrite + Unpin + Send + 'static> Talk<B, W> {
    async fn run<R: AsyncRead + Unpin + Send + 'static>(
        mut self,
        mut reader: R,
        established: impl FnOnce(),
    ) -> Ending {
        let settings = self.inner.settings();
        let hello = hello::write(&*self.inner.backend, self.live.caller.session);
        if let Err(ending) = self.send(&hello).await {
            return ending;
        }
        let mut decoder = Decoder::new(settings.max_message);
        let greeting = tokio::select! {
            greeting = timeout(settings.login_timeout, receive_hello(&mut reader, &mut decoder)) => greeting,
            ending = self.live.told() => return ending,
        };
        let greeting = match greeting {
            Ok(Ok(text)) => hello::read(&text, &settings.xml),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(format!("no hello within {} s", settings.login_timeout.as_secs())),
        };
        match greeting {
            Ok(framing) => self.framing = framing,
            Err(why) => {
                self.inner.counts.in_bad_hellos.fetch_add(1, Relaxed);
                return Ending::Dropped(why);
            }
        }
        if self.framing == Framing::Chunked {
            decoder.switch_to_chunks();
        }
        established();
        let budget = settings.max_message + OVERHEAD;
        let (queue, incoming) = mpsc::unbounded_channel();
        // In a set, so that it ends with this, however this ends.
        let mut receiving = JoinSet::new();
        receiving.spawn(receive(reader, decoder, budget, queue));
        let ending = self.converse(incoming, settings.idle_timeout).await;
        // The end of the stream follows what was written; whether the client still takes it is its own affair.
        let _ = timeout(settings.write_timeout, self.writer.shutdown()).await;
        ending
    }

    async fn converse(
        &mut self,
        mut incoming: mpsc::UnboundedReceiver<Incoming>,
        idle_timeout: Option<Duration>,
    ) -> Ending {
        let mut subscription: Option<Subscription> = None;
        loop {
            let idle = idle_timeout.filter(|_| subscription.is_none());
            let message = tokio::select! {
                biased;
                ending = self.live.told() => return ending,
                message = incoming.recv() => message,
                event = next_event(&mut subscription) => {
                    if let Some(text) = event {
                        self.count(|counts| &counts.out_notifications);
                        if let Err(ending) = self.send(&text).await {
                            return ending;
                        }
                    }
                    continue;
                }
                () = pause(idle) => return Ending::Idle,
            };
            let (message, _share) = match message {
                Some(Incoming::Message(message, share)) => (message, share),
                Some(Incoming::Fault(fault)) => {
                    self.count(|counts| &counts.in_bad_rpcs);
                    let ending = Ending::Dropped(fault.to_string());
                    return match self.send(&request::framing_fault(&fault)).await {
                        Ok(()) => ending,
                        Err(earlier) => earlier,
                    };
                }
                Some(Incoming::End(why)) => return Ending::Dropped(why),
                None => return Ending::Dropped("the connection is over".to_owned()),
            };
            let answer =
                request::answer(&self.inner, &self.live, &mut subscription, self.framing, message).await;
            if let Err(ending) = self.send(&answer.text).await {
                return ending;
            }
            if answer.last {
                return Ending::Closed;
            }
        }
    }

    fn count(&self, which: impl Fn(&crate::server::RpcCounts) -> &AtomicU32) {
        which(&self.live.counts).fetch_add(1, Relaxed);
        which(&self.inner.counts.rpcs).fetch_add(1, Relaxed);
    }

    /// Writes a message; each part of it must be taken in time.
    async fn send(&mut self, text: &str) -> Result<(), Ending> {
        let limit = self.inner.settings().write_timeout;
        let mut rest = text.as_bytes();
        let mut buffer = Vec::with_capacity(PIECE.min(rest.len()) + 32);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(PIECE.min(rest.len()));
            rest = behind;
            buffer.clear();
            buffer.extend(framing::header(self.framing, piece.len()));
            buffer.extend(piece);
            if rest.is_empty() {
                buffer.extend(framing::trailer(self.framing));
            }
            tokio::select! {
                biased;
                written = timeout(limit, self.writer.write_all(&buffer)) => match written {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return Err(Ending::Dropped(format!("writing: {error}"))),
                    Err(_) => {
                        let why = format!("the client took nothing for {} s", limit.as_secs());
                        return Err(Ending::Dropped(why));
                    }
                },
                ending = self.live.told() => return Err(ending),
            }
        }
        match timeout(limit, self.writer.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Ending::Dropped(format!("writing: {error}"))),
            Err(_) => Err(Ending::Dropped(format!("the client took nothing for {} s", limit.as_secs()))),
        }
    }
}

async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// The next notification that the subscription lets through; `None` where one was left out or lost.
async fn next_event(subscription: &mut Option<Subscription>) -> Option<String> {
    let Some(subscribed) = subscription else { return std::future::pending().await };
    match subscribed.events.recv().await {
        Ok(event) => subscribed.write(&event),
        Err(broadcast::error::RecvError::Lagged(lost)) => {
            warn!(lost, "a netconf client is too slow for its notifications");
            None
        }
        Err(broadcast::error::RecvError::Closed) => {
            *subscription = None;
            None
        }
    }
}

/// The client's hello.
async fn receive_hello<R: AsyncRead + Unpin>(
    reader: &mut R,
    decoder: &mut Decoder,
) -> Result<String, String> {
    let mut buffer = vec![0; PIECE];
    loop {
        match decoder.take() {
            Ok(Some(message)) => {
                return String::from_utf8(message).map_err(|_| "the hello is not UTF-8".to_owned());
            }
            Ok(None) => {}
            Err(fault) => return Err(fault.to_string()),
        }
        match reader.read(&mut buffer).await {
            Ok(0) => return Err("the connection ended before a hello".to_owned()),
            Ok(length) => decoder.push(buffer.get(..length).unwrap_or_default()),
            Err(error) => return Err(format!("reading: {error}")),
        }
    }
}

/// Takes messages from the wire while the session works, so that window updates and the end are seen. Stops where
/// the client sends ahead more than the budget, until something of it has been answered.
async fn receive<R: AsyncRead + Unpin>(
    mut reader: R,
    mut decoder: Decoder,
    budget: usize,
    queue: mpsc::UnboundedSender<Incoming>,
) {
    let shares = Arc::new(Semaphore::new(budget.min(Semaphore::MAX_PERMITS)));
    let mut buffer = vec![0; PIECE];
    loop {
        let last = loop {
            match decoder.take() {
                Ok(None) => break None,
                Ok(Some(message)) => {
                    let share = u32::try_from((message.len() + OVERHEAD).min(budget)).unwrap_or(u32::MAX);
                    let Ok(share) = Arc::clone(&shares).acquire_many_owned(share).await else { return };
                    if queue.send(Incoming::Message(message, share)).is_err() {
                        return;
                    }
                }
                Err(fault) => break Some(Incoming::Fault(fault)),
            }
        };
        let last = match last {
            Some(last) => Some(last),
            None => match reader.read(&mut buffer).await {
                Ok(0) => Some(Incoming::End("the client closed the connection".to_owned())),
                Ok(length) => {
                    decoder.push(buffer.get(..length).unwrap_or_default());
                    None
                }
                Err(error) => Some(Incoming::End(format!("reading: {error}"))),
            },
        };
        if let Some(last) = last {
            // Nobody listens where the session is over.
            let _ = queue.send(last);
            return;
        }
    }
}
