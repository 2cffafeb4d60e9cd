//! NETCONF over SSH (RFC 6242): connections, logins, and the subsystem `netconf`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey,
};
use russh::{
    Channel, ChannelId, ChannelMsg, ChannelOpenFailure, ChannelReadHalf, Disconnect, MethodKind, MethodSet,
    SshId,
};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::backend::{Backend, Ending, Login};
use crate::credentials::{Credentials, key_fits, password_fits};
use crate::server::{Inner, Server, Waiting};
use crate::session;
use crate::socket::Socket;

/// The subsystem's name (RFC 6242, 3).
pub const SUBSYSTEM: &str = "netconf";

/// Time that each refused login takes, whatever was wrong with it.
const REFUSAL: Duration = Duration::from_secs(1);

/// Logins that a connection may try.
const TRIES: usize = 6;

/// Channels of a connection at a time.
const CHANNELS: usize = 4;

/// Time in which a client closes a connection whose sessions are over.
const LINGER: Duration = Duration::from_secs(5);

impl<B: Backend> Server<B> {
    /// Takes connections until `until` is over; sessions that are there then stay.
    ///
    /// # Errors
    /// Where the socket takes no connections at all.
    pub async fn serve(&self, listener: TcpListener, until: impl Future<Output = ()>) -> std::io::Result<()> {
        tokio::pin!(until);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut until => return Ok(()),
                () = self.0.stopped() => return Ok(()),
            };
            match accepted {
                Ok((stream, from)) => {
                    let waiting = self.0.connecting.take(from.ip(), self.settings().max_connecting);
                    let (inner, config) = (Arc::clone(&self.0), Arc::new(self.config()));
                    match waiting {
                        Some(waiting) => drop(tokio::spawn(connection(inner, config, stream, from, waiting))),
                        None => drop(tokio::spawn(turn_away(stream, from))),
                    }
                }
                Err(error) if passing(&error) => {
                    warn!(%error, "a netconf connection was not taken");
                    // Out of files, most likely: nothing tells when there are some again.
                    sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn config(&self) -> Config {
        Config {
            server_id: SshId::Standard(Cow::Borrowed("SSH-2.0-sluice")),
            methods: methods(),
            auth_rejection_time: REFUSAL,
            auth_rejection_time_initial: Some(Duration::ZERO),
            max_auth_attempts: TRIES,
            keys: vec![self.0.host_key.clone()],
            inactivity_timeout: None,
            keepalive_interval: Some(self.settings().keepalive),
            keepalive_max: 3,
            nodelay: true,
            ..Config::default()
        }
    }
}

/// Errors of one connection, or of the moment, not of the listener.
fn passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput, Unsupported};
    !matches!(error.kind(), InvalidInput | Unsupported)
        || matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

fn methods() -> MethodSet {
    MethodSet::from(&[MethodKind::PublicKey, MethodKind::Password][..])
}

/// Says why, in a line before the protocol's version as RFC 4253 (4.2) allows, and closes.
async fn turn_away(mut stream: TcpStream, from: SocketAddr) {
    warn!(%from, "a netconf connection was turned away: too many wait to be let in");
    let reason = b"too many connections wait to be let in: try again later\r\n";
    // Whether the client takes it is its own affair.
    let _ = timeout(LINGER, async {
        stream.write_all(reason).await?;
        stream.shutdown().await
    })
    .await;
}

/// What a connection's two halves know of one another.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// A client has said hello.
    established: bool,
    /// Sessions that are there.
    sessions: usize,
}

/// A session of a connection, however it ends.
struct Counted(Arc<watch::Sender<Progress>>);

impl Counted {
    fn new(progress: &Arc<watch::Sender<Progress>>) -> Self {
        progress.send_modify(|progress| progress.sessions += 1);
        Self(Arc::clone(progress))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|progress| progress.sessions -= 1);
    }
}

type Channels = Arc<Mutex<HashMap<ChannelId, Channel<Msg>>>>;

/// One connection until its end.
async fn connection<B: Backend>(
    inner: Arc<Inner<B>>,
    config: Arc<Config>,
    stream: TcpStream,
    from: SocketAddr,
    waiting: Waiting,
) {
    let settings = inner.settings();
    // An error means that the connection is over already.
    let _ = stream.set_nodelay(true);
    let (end, ended) = oneshot::channel();
    let socket = Socket::new(stream, ended, settings.write_timeout);
    let progress = Arc::new(watch::Sender::new(Progress::default()));
    let channels = Channels::default();
    let handler = Connection {
        inner: Arc::clone(&inner),
        from,
        login: None,
        waiting: Some(waiting),
        channels: Arc::clone(&channels),
        progress: Arc::clone(&progress),
    };
    let running = async {
        match russh::server::run_stream(config, socket, handler).await {
            Ok(session) => session.await,
            Err(error) => Err(error),
        }
    };
    tokio::select! {
        result = running => match result {
            Ok(()) => debug!(%from, "netconf connection over"),
            Err(error) => debug!(%from, %error, "netconf connection over"),
        },
        () = outlived(&progress, settings.login_timeout) => {}
    }
    // The rest of the connection, if there is one, ends by its socket; nor does it wait for someone to read a channel.
    drop(end);
    channels.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Waits until the connection has nothing left to be there for.
async fn outlived(progress: &watch::Sender<Progress>, login_timeout: Duration) {
    let mut seen = progress.subscribe();
    let established = seen.wait_for(|progress| progress.established);
    if !matches!(timeout(login_timeout, established).await, Ok(Ok(_))) {
        return;
    }
    loop {
        if seen.wait_for(|progress| progress.sessions == 0).await.is_err() {
            return;
        }
        let another = seen.wait_for(|progress| progress.sessions > 0);
        if !matches!(timeout(LINGER, another).await, Ok(Ok(_))) {
            return;
        }
    }
}

/// What a channel receives. russh's own stream closes the channel when it goes, before the exit status is sent.
struct Reader {
    channel: ChannelReadHalf,
    /// Data, and how much of them was taken.
    rest: Option<(ChannelMsg, usize)>,
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        loop {
            if let Some((ChannelMsg::Data { data }, taken)) = &mut self.rest
                && let Some(rest) = data.get(*taken..).filter(|rest| !rest.is_empty())
            {
                let length = rest.len().min(buffer.remaining());
                buffer.put_slice(rest.get(..length).unwrap_or_default());
                *taken += length;
                return Poll::Ready(Ok(()));
            }
            // A message is either received whole or left where it is.
            let message = ready!(pin!(self.channel.wait()).poll(context));
            match message {
                Some(message @ ChannelMsg::Data { .. }) => self.rest = Some((message, 0)),
                Some(ChannelMsg::Eof | ChannelMsg::Close) | None => return Poll::Ready(Ok(())),
                Some(_) => {}
            }
        }
    }
}

struct Connection<B> {
    inner: Arc<Inner<B>>,
    from: SocketAddr,
    login: Option<Login>,
    /// Held until the first session.
    waiting: Option<Waiting>,
    /// Channels in which no session has begun.
    channels: Channels,
    progress: Arc<watch::Sender<Progress>>,
}

impl<B: Backend> Connection<B> {
    async fn credentials(&self, user: &str) -> Option<Credentials> {
        self.inner.backend.credentials(user).await
    }

    fn accept(&mut self, user: &str, credentials: Option<Credentials>, method: &str) -> Auth {
        let Some(credentials) = credentials else { return self.refusal() };
        self.inner.failures.succeeded(self.from.ip());
        info!(user, from = %self.from, method, "netconf login");
        self.login = Some(Login { user: user.to_owned(), role: credentials.role, from: self.from.ip() });
        Auth::Accept
    }

    async fn refuse(&self, user: &str, method: &str) -> Auth {
        warn!(user, from = %self.from, method, "netconf login refused");
        self.inner.backend.turned_away(user, self.from.ip(), method);
        sleep(self.inner.failures.failed(self.from.ip())).await;
        self.refusal()
    }

    fn refusal(&self) -> Auth {
        Auth::Reject { proceed_with_methods: Some(methods()), partial_success: false }
    }

    fn channels(&self) -> std::sync::MutexGuard<'_, HashMap<ChannelId, Channel<Msg>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Backend> Handler for Connection<B> {
    type Error = russh::Error;

    async fn auth_none(&mut self, _user: &str) -> Result<Auth, Self::Error> {
        Ok(self.refusal())
    }

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Self::Error> {
        let credentials = self.credentials(user).await;
        if password_fits(credentials.as_ref(), password).await {
            return Ok(self.accept(user, credentials, "password"));
        }
        Ok(self.refuse(user, "password").await)
    }

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        let credentials = self.credentials(user).await;
        // A client may have many keys: one that does not fit is no guess, and the time of a refusal passes anyway.
        Ok(if key_fits(credentials.as_ref(), offer.public_key) { Auth::Accept } else { self.refusal() })
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        let credentials = self.credentials(user).await;
        if key_fits(credentials.as_ref(), key.public_key) {
            return Ok(self.accept(user, credentials, "public key"));
        }
        Ok(self.refuse(user, "public key").await)
    }

    async fn auth_succeeded(&mut self, session: &mut Session) -> Result<(), Self::Error> {
        if self.inner.stopping() {
            session.disconnect(Disconnect::ByApplication, "the server stops", "en")?;
        }
        Ok(())
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        let open = self.channels().len() + self.progress.borrow().sessions;
        if open >= CHANNELS {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        }
        self.channels().insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn channel_close(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.channels().remove(&channel);
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let opened = if name == SUBSYSTEM { self.channels().remove(&channel) } else { None };
        let (Some(opened), Some(login)) = (opened, self.login.clone()) else {
            return session.channel_failure(channel);
        };
        let Some(slot) = self.inner.slot() else {
            // No failure of the channel before it, or clients go without having read why.
            warn!(from = %self.from, "a netconf session was refused: {}", self.inner.full());
            return session.disconnect(Disconnect::TooManyConnections, &self.inner.full(), "en");
        };
        session.channel_success(channel)?;
        self.waiting = None;
        let handle = session.handle();
        let (inner, progress) = (Arc::clone(&self.inner), Arc::clone(&self.progress));
        let counted = Counted::new(&progress);
        tokio::spawn(async move {
            let (reading, writing) = opened.split();
            let (reader, writer) = (Reader { channel: reading, rest: None }, writing.make_writer());
            let established = {
                let progress = Arc::clone(&progress);
                move || progress.send_modify(|progress| progress.established = true)
            };
            let ended = session::serve(inner, slot, login, reader, writer, established).await;
            if let Err(reason) = &ended {
                warn!(reason, "a netconf session was refused");
                // The connection may be over.
                let _ = handle.disconnect(Disconnect::ByApplication, reason.clone(), "en".to_owned()).await;
            }
            let status = u32::from(ended != Ok(Ending::Closed));
            // Nor does it matter here.
            let _ = timeout(LINGER, async {
                handle.exit_status_request(channel, status).await?;
                handle.close(channel).await
            })
            .await;
            drop(counted);
        });
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn shell_request(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(russh::Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        _name: &str,
        _value: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn x11_request(
        &mut self,
        channel: ChannelId,
        _single: bool,
        _protocol: &str,
        _cookie: &str,
        _screen: u32,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }
}
