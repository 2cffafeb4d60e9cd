//! The Unix socket: one JSON object a line, each answered by one.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::{Request, Response, Role, Severity};
use nix::unistd::{Group, chown};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::session::Session;
use crate::show::Desk;
use crate::target::Target;

/// Group of the system whose members may connect, where it has one of this name.
const GROUP: &str = "sluice";
/// Clients at once; more are refused.
const CLIENTS: usize = 64;
/// Longest request: a configuration of 100,000 flows is below 32 MiB.
const LONGEST: u64 = 64 << 20;
/// A client that says nothing for so long is sent away.
const IDLE: Duration = Duration::from_secs(3600);

/// The socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The system says no.
    #[error("socket {}: {source}", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody answers there.
    #[error("socket {}: another sluiced serves it already", .path.display())]
    Taken {
        /// The socket.
        path: PathBuf,
    },
}

/// Opens the socket for its owner and group; a socket file that nobody serves is replaced.
///
/// # Errors
/// [`SocketError`].
pub async fn open(path: &Path) -> Result<UnixListener, SocketError> {
    if UnixStream::connect(path).await.is_ok() {
        return Err(SocketError::Taken { path: path.to_owned() });
    }
    let open = || {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent)?;
        }
        match fs::symlink_metadata(path) {
            Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
                fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "is a file, not a socket")),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        // Users with a role are let in by group; who they are, and what they may, is asked of the kernel and the
        // configuration.
        if let Ok(Some(group)) = Group::from_name(GROUP) {
            chown(path, None, Some(group.gid)).or_else(|errno| match errno {
                // An unprivileged one serves its own group.
                nix::errno::Errno::EPERM => Ok(()),
                errno => Err(errno),
            })?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
        Ok(listener)
    };
    open().map_err(|source| SocketError::Io { path: path.to_owned(), source })
}

/// Serves clients for as long as the process lives.
pub async fn serve<T: Target>(listener: UnixListener, desk: Arc<Desk<T>>) {
    let room = Arc::new(Semaphore::new(CLIENTS));
    loop {
        match listener.accept().await {
            Ok((mut stream, _)) => {
                let Ok(place) = room.clone().try_acquire_owned() else {
                    refuse(&mut stream, format!("sluiced serves {CLIENTS} clients already; try again later"))
                        .await;
                    continue;
                };
                let desk = desk.clone();
                tokio::spawn(async move {
                    let (user, role) = match peer(&stream, &desk) {
                        Ok(peer) => peer,
                        Err(reason) => {
                            desk.access_event(Severity::Warning, "socket", reason.clone());
                            refuse(&mut stream, reason).await;
                            return;
                        }
                    };
                    let mut session = Session::new(user, role, "cli");
                    if let Err(error) = attend(stream, &desk, &mut session).await {
                        tracing::debug!("client: {error}");
                    }
                    desk.datastores.session_ended(&session.who).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("a client could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Tells a client why it is not served.
async fn refuse(stream: &mut UnixStream, reason: String) {
    if let Ok(mut answer) = serde_json::to_vec(&Response::Error(reason)) {
        answer.push(b'\n');
        // Its buffer is empty, so this does not wait.
        let _ = stream.write_all(&answer).await;
    }
}

/// Who is at the other end, and what he may do.
fn peer<T: Target>(stream: &UnixStream, desk: &Desk<T>) -> Result<(String, Role), String> {
    let peer = stream.peer_cred().map_err(|error| format!("the system does not say who asks: {error}"))?;
    Access::of(&desk.datastores.running().tree).of_peer(peer.uid()).map_err(|denied| denied.to_string())
}

async fn attend<T: Target>(stream: UnixStream, desk: &Desk<T>, session: &mut Session) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut read).take(LONGEST);
        let reading = bounded.read_until(b'\n', &mut line);
        let length = match tokio::time::timeout(IDLE, reading).await {
            Ok(length) => length?,
            Err(_) => return Ok(()),
        };
        if length == 0 {
            return Ok(());
        }
        let response = if line.last() == Some(&b'\n') {
            match serde_json::from_slice::<Request>(&line) {
                Ok(request) => desk.answer(session, request).await,
                Err(error) => Response::Error(format!("the request is not understood: {error}")),
            }
        } else {
            Response::Error(format!("the request is cut, or longer than {LONGEST} bytes"))
        };
        let mut answer = serde_json::to_vec(&response)?;
        answer.push(b'\n');
        write.write_all(&answer).await?;
        if length as u64 == LONGEST {
            return Ok(());
        }
    }
}
