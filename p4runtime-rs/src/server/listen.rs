//! Where a server is reached: a TCP or Unix address, or a pipe within the process.

use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::io::DuplexStream;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream, UnixListenerStream};
use tonic::transport::server::Router;

use super::{P4Runtime, service};

/// Bytes that wait in a pipe within the process, each way.
const PIPE: usize = 256 << 10;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `tcp://IP:PORT` or `IP:PORT`; port 0 takes a free one.
    Tcp(SocketAddr),
    /// `unix:/PATH`.
    Unix(PathBuf),
}

/// No address that a server can listen on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address to listen on; give unix:/PATH, tcp://IP:PORT or IP:PORT")]
pub struct ListenError(String);

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let wrong = || ListenError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(wrong()) } else { Ok(Listen::Unix(path.into())) };
        }
        let address = text.strip_prefix("tcp://").unwrap_or(text);
        address.parse().map(Listen::Tcp).map_err(|_| wrong())
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp(address) => write!(f, "tcp://{address}"),
            Listen::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An address that is being served. Dropping it takes no more clients and removes the socket's file.
#[derive(Debug)]
pub struct Serving {
    address: Listen,
    task: JoinHandle<()>,
}

impl Serving {
    /// The address, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> &Listen {
        &self.address
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
        if let Listen::Unix(path) = &self.address {
            // Gone already is as good.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listen {
    /// Serves this address until the answer is dropped.
    ///
    /// # Errors
    /// The address is in use, not of this host, or not permitted. A Unix socket's file that nobody listens on
    /// any more is replaced; any other file stays and is an error.
    pub async fn serve<T: P4Runtime>(&self, implementation: T) -> io::Result<Serving> {
        match self {
            Listen::Tcp(address) => {
                let listener = TcpListener::bind(address).await?;
                let address = Listen::Tcp(listener.local_addr()?);
                let incoming = TcpListenerStream::new(listener);
                // Keep-alives are small and must not wait for more.
                let incoming = tokio_stream::StreamExt::map(incoming, |stream| {
                    stream.inspect(|stream| {
                        if let Err(error) = stream.set_nodelay(true) {
                            tracing::debug!(%error, "a client's small messages may wait");
                        }
                    })
                });
                let serving = router(implementation).serve_with_incoming(incoming);
                Ok(Serving { address, task: tokio::spawn(ended(serving)) })
            }
            Listen::Unix(path) => {
                remove_stale(path).await?;
                let incoming = UnixListenerStream::new(UnixListener::bind(path)?);
                let serving = router(implementation).serve_with_incoming(incoming);
                Ok(Serving { address: self.clone(), task: tokio::spawn(ended(serving)) })
            }
        }
    }
}

/// What opens streams to a server within the process. Call within a Tokio runtime, which serves them.
pub fn connector<T: P4Runtime>(
    implementation: T,
) -> impl Fn() -> Ready<io::Result<DuplexStream>> + Send + Sync + 'static {
    let (dialled, incoming) = mpsc::unbounded_channel::<io::Result<DuplexStream>>();
    let serving = router(implementation).serve_with_incoming(UnboundedReceiverStream::new(incoming));
    tokio::spawn(ended(serving));
    move || {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        ready(match dialled.send(Ok(theirs)) {
            Ok(()) => Ok(ours),
            Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        })
    }
}

fn router<T: P4Runtime>(implementation: T) -> Router {
    tonic::transport::Server::builder().add_service(service(implementation))
}

async fn ended(serving: impl Future<Output = Result<(), tonic::transport::Error>>) {
    if let Err(error) = serving.await {
        tracing::error!(%error, "the P4Runtime server ended");
    }
}

/// Removes a socket's file that nobody listens on.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let in_use = |what: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, what.to_owned()));
    if !metadata.file_type().is_socket() {
        return in_use("a file that is no socket is there; remove it or choose another path");
    }
    match UnixStream::connect(path).await {
        Ok(_) => in_use("another process listens there"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (given, printed) in [
            ("unix:/run/p4.sock", "unix:/run/p4.sock"),
            ("unix:///run/p4.sock", "unix:/run/p4.sock"),
            ("tcp://127.0.0.1:9559", "tcp://127.0.0.1:9559"),
            ("[::1]:0", "tcp://[::1]:0"),
        ] {
            assert_eq!(given.parse::<Listen>().unwrap().to_string(), printed);
        }
        for wrong in ["", "unix:", "localhost", "127.0.0.1", "tcp://host:1"] {
            assert!(wrong.parse::<Listen>().unwrap_err().to_string().contains("unix:/PATH"), "{wrong}");
        }
    }
}
