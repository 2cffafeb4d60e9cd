//! The gRPC status service: on a Unix socket always, and on TCP where the configuration says so.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use api::{EventKind, Role, Severity};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use status::v1::status_service_server::StatusServiceServer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tower::ServiceExt;

use super::listeners::addresses;
use super::tls;
use crate::access::{self, Access, Action, Denied};
use crate::datastore::Datastores;
use crate::event::{Events, News};
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::Telemetry;

mod messages;
mod service;
mod watch;

use service::Service;

/// Name of the socket, beside that of the shell.
pub const SOCKET: &str = "status.sock";

const PORT: u16 = 9465;
/// Connections at once, on the Unix socket and on TCP each; more are closed.
const CONNECTIONS: usize = 64;
/// Requests of one connection at once.
const STREAMS: u32 = 32;
/// Longest request, bytes.
const LONGEST: usize = 64 * 1024;
/// Longest head of a request, bytes.
const LONGEST_HEAD: u32 = 16 * 1024;
/// Between questions whether a silent client is still there.
const PING: Duration = Duration::from_secs(30);
/// A client that does not answer them by then is gone.
const PONG: Duration = Duration::from_secs(20);
/// A client of the Unix socket that has said nothing by then is sent away.
const FIRST: Duration = Duration::from_secs(10);

/// Who is at the other end.
#[derive(Clone, Debug)]
enum Peer {
    /// By the kernel.
    Local { uid: u32 },
    /// By the common name of his certificate.
    Remote { name: Option<String>, from: SocketAddr },
}

/// Who asks.
#[derive(Clone, Debug)]
struct Caller {
    user: String,
    role: Role,
    origin: String,
}

impl Peer {
    /// Who it is, if he may look, as running has it now: who was taken out is out.
    fn permit(&self, datastores: &Datastores) -> Result<Caller, Denied> {
        let access = Access::of(&datastores.running().tree);
        let ((user, role), origin) = match self {
            Peer::Local { uid } => (access.of_peer(*uid)?, "grpc".to_owned()),
            Peer::Remote { name, from } => (access.of_certificate(name.as_deref())?, format!("grpc {from}")),
        };
        access::permit(&user, role, Action::Look)?;
        Ok(Caller { user, role, origin })
    }
}

/// Serves for as long as the process lives: local clients by `socket`, others where and as running says.
pub async fn serve<T: Target>(
    desk: Arc<Desk<T>>,
    telemetry: Telemetry<T>,
    socket: UnixListener,
    state_dir: PathBuf,
) {
    let routes = match routes(&desk, telemetry) {
        Ok(routes) => routes,
        Err(error) => {
            tracing::error!("gRPC: {error}");
            return;
        }
    };
    let server =
        Arc::new(Server { routes, datastores: desk.datastores.clone(), events: desk.events.clone() });
    tokio::spawn(serve_local(socket, server.clone()));
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let service = tls::Service {
        name: "grpc",
        at: &["access", "grpc"],
        protocol: b"h2",
        // Without client-ca nobody could be let in.
        addresses: |listening| match listening.tls.client_ca {
            Some(_) => addresses(&listening.listen_address, listening.port.unwrap_or(PORT)),
            None => Vec::new(),
        },
    };
    let serve = move |listener, credentials, closing| {
        let server = server.clone();
        let connection = move |stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>, from| {
            let peer = Peer::Remote { name: tls::common_name(&stream), from };
            server.clone().attend(stream, peer)
        };
        tls::accept(listener, credentials, room.clone(), closing, connection)
    };
    service.follow(&desk.datastores, &desk.events, &state_dir, serve).await;
}

/// The service, and what tells clients about it (gRPC server reflection, v1 and v1alpha).
fn routes<T: Target>(
    desk: &Arc<Desk<T>>,
    telemetry: Telemetry<T>,
) -> Result<Routes, tonic_reflection::server::Error> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(status::FILE_DESCRIPTOR_SET)
    };
    let service = StatusServiceServer::new(Service { desk: desk.clone(), telemetry });
    Ok(Routes::new(service.max_decoding_message_size(LONGEST))
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?)
        .prepare())
}

async fn serve_local(listener: UnixListener, server: Arc<Server>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a gRPC client could not be accepted: {error}");
                // Out of files, most likely: nothing tells when there are some again.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(place) = room.clone().try_acquire_owned() else {
            tracing::debug!("too many gRPC connections");
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            match stream.peer_cred() {
                Ok(peer) => {
                    if tokio::time::timeout(FIRST, stream.readable()).await.is_ok() {
                        server.attend(stream, Peer::Local { uid: peer.uid() }).await;
                    }
                }
                Err(error) => tracing::debug!("the system does not say who asks: {error}"),
            }
            drop(place);
        });
    }
}

struct Server {
    routes: Routes,
    datastores: Arc<Datastores>,
    events: Arc<Events>,
}

impl Server {
    /// Logs who was kept out.
    fn tell(&self, peer: &Peer, denied: &Denied) {
        let (user, from) = match peer {
            Peer::Local { uid } => (format!("uid-{uid}"), String::new()),
            // Whoever is kept out may call himself anything.
            Peer::Remote { name, from } => {
                (name.iter().flat_map(|name| name.chars().take(64)).collect(), format!(" {from}"))
            }
        };
        let reason = format!("gRPC{from}: {denied}");
        self.events.log(News::now(Severity::Warning, EventKind::Access, &user, reason));
    }

    /// One connection, to its end.
    async fn attend(self: Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer) {
        let said = Arc::new(AtomicBool::new(false));
        let answer = service_fn(move |mut request: Request<Incoming>| {
            let (server, peer, said) = (self.clone(), peer.clone(), said.clone());
            async move {
                let caller = match peer.permit(&server.datastores) {
                    Ok(caller) => caller,
                    Err(denied) => {
                        // Once a connection.
                        if !said.swap(true, Relaxed) {
                            server.tell(&peer, &denied);
                        }
                        let denied = Status::permission_denied(denied.to_string());
                        return Ok::<_, Infallible>(denied.into_http::<Body>());
                    }
                };
                request.extensions_mut().insert(caller);
                request.extensions_mut().insert(peer);
                server.routes.clone().oneshot(request).await
            }
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(LONGEST_HEAD)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .serve_connection(TokioIo::new(stream), answer);
        if let Err(error) = connection.await {
            tracing::debug!("gRPC: {error}");
        }
    }
}
