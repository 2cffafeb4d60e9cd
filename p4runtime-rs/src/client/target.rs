use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::Error;

/// Largest status the client takes: it holds one error for every update of a batch.
const MAX_HEADER_BYTES: u32 = 4 << 20;

/// Both directions of a byte stream.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for T {}

type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;

/// Where a server is.
#[derive(Clone)]
pub enum Target {
    /// Host and port.
    Tcp(String),
    /// Path of a socket.
    Unix(PathBuf),
    /// Whatever a function opens; see [`Target::dial`].
    Dialled(Dialled),
}

/// A function that opens byte streams, with a name for messages.
#[derive(Clone)]
pub struct Dialled {
    name: String,
    dial: Arc<dyn Fn() -> Dialling + Send + Sync>,
}

impl Target {
    /// A server that `open` connects to, such as over a pipe in the same process. `name` is for messages.
    pub fn dial<F, Fut, S>(name: impl Into<String>, open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<S>> + Send + 'static,
        S: ByteStream,
    {
        let dial = move || -> Dialling {
            let opening = open();
            Box::pin(async move { Ok(Box::new(opening.await?) as Box<dyn ByteStream>) })
        };
        Self::Dialled(Dialled { name: name.into(), dial: Arc::new(dial) })
    }

    /// Connects, within `deadline`.
    ///
    /// # Errors
    /// The address is no URI, or there is no connection in time.
    pub async fn connect(&self, deadline: Duration) -> Result<Channel, Error> {
        let connecting = async {
            match self {
                Self::Tcp(authority) => {
                    let uri: Uri = format!("http://{authority}")
                        .parse()
                        .map_err(|_| Error::Address { address: self.to_string() })?;
                    // A peer that vanished is noticed in about 25 s even while nothing is sent.
                    let endpoint = endpoint(uri)
                        .tcp_nodelay(true)
                        .tcp_keepalive(Some(Duration::from_secs(10)))
                        .tcp_keepalive_interval(Some(Duration::from_secs(5)))
                        .tcp_keepalive_retries(Some(3));
                    endpoint.connect().await.map_err(|e| self.unreachable(&e))
                }
                Self::Unix(path) => {
                    let path = path.clone();
                    let dial = service_fn(move |_| {
                        let path = path.clone();
                        async move { UnixStream::connect(path).await.map(TokioIo::new) }
                    });
                    local().connect_with_connector(dial).await.map_err(|e| self.unreachable(&e))
                }
                Self::Dialled(dialled) => {
                    let open = Arc::clone(&dialled.dial);
                    let dial = service_fn(move |_| {
                        let opening = open();
                        async move { opening.await.map(TokioIo::new) }
                    });
                    local().connect_with_connector(dial).await.map_err(|e| self.unreachable(&e))
                }
            }
        };
        timeout(deadline, connecting).await.unwrap_or_else(|_| {
            let reason = format!("no connection within {deadline:?}");
            Err(Error::Connect { target: self.to_string(), reason })
        })
    }

    fn unreachable(&self, error: &dyn std::error::Error) -> Error {
        // Transport errors tell the cause only at the end of their chain.
        let mut cause = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        Error::Connect { target: self.to_string(), reason: cause.to_string() }
    }
}

fn endpoint(uri: Uri) -> Endpoint {
    Endpoint::from(uri).http2_max_header_list_size(MAX_HEADER_BYTES)
}

/// The endpoint of a connection that needs no name.
fn local() -> Endpoint {
    endpoint(Uri::from_static("http://localhost"))
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(address: &str) -> Result<Self, Error> {
        let wrong = || Error::Address { address: address.to_owned() };
        if let Some(path) = address.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.into())) };
        }
        let authority = address
            .strip_prefix("grpc://")
            .or_else(|| address.strip_prefix("http://"))
            .map(|rest| rest.strip_suffix('/').unwrap_or(rest))
            .ok_or_else(wrong)?;
        let parsed: tonic::codegen::http::uri::Authority = authority.parse().map_err(|_| wrong())?;
        if parsed.port_u16().is_none() || parsed.host().is_empty() {
            return Err(wrong());
        }
        Ok(Self::Tcp(authority.to_owned()))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(authority) => write!(f, "grpc://{authority}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Dialled(dialled) => f.write_str(&dialled.name),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (given, printed) in [
            ("grpc://device:9559", "grpc://device:9559"),
            ("http://[::1]:9559/", "grpc://[::1]:9559"),
            ("unix:/run/sluice/p4.sock", "unix:/run/sluice/p4.sock"),
            ("unix:///run/p4.sock", "unix:/run/p4.sock"),
        ] {
            assert_eq!(given.parse::<Target>().unwrap().to_string(), printed);
        }
        for wrong in
            ["", "device:9559", "grpc://device", "grpc://:1", "https://device:1", "unix:", "grpc://a b:1"]
        {
            let error = wrong.parse::<Target>().unwrap_err();
            assert!(error.to_string().contains("expected grpc://HOST:PORT"), "{wrong}: {error}");
        }
    }

    #[tokio::test]
    async fn refused_connection_names_the_target_and_the_cause() {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::Unix(directory.path().join("none.sock"));
        let error = target.connect(Duration::from_secs(5)).await.unwrap_err().to_string();
        assert!(error.contains("none.sock") && error.contains("No such file"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_hangs_ends_at_the_deadline() {
        let target = Target::dial("nowhere", std::future::pending::<io::Result<tokio::io::DuplexStream>>);
        let error = target.connect(Duration::from_secs(5)).await.unwrap_err().to_string();
        assert_eq!(error, "connect to nowhere: no connection within 5s");
    }
}
