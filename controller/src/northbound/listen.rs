//! Where NETCONF listens: as running says, from the moment that it says so.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::{EventKind, Severity};
use netconf::{Server, Settings, host_key};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, oneshot};

use super::backend::Northbound;
use super::notifications;
use crate::access::{Access, NetconfAccess};
use crate::event::News;
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::Telemetry;

/// Between tries to listen on an address that is not to be had.
const AGAIN: Duration = Duration::from_secs(5);
const PORT: u16 = 830;

/// Serves NETCONF for as long as the process lives; host keys are made in the state directory when they are first
/// needed.
pub async fn serve<T: Target>(desk: Arc<Desk<T>>, telemetry: Telemetry<T>, state_dir: PathBuf) {
    let datastores = desk.datastores.clone();
    let mut changes = datastores.changes();
    let backend = Northbound::new(desk.clone(), telemetry);
    tokio::spawn(notifications::forward(
        datastores.schema().clone(),
        desk.events.follow(),
        datastores.changes(),
        backend.notifications(),
    ));
    let mut server: Option<Server<Northbound<T>>> = None;
    // Dropping the sender ends the listening.
    let mut listening: BTreeMap<SocketAddr, oneshot::Sender<()>> = BTreeMap::new();
    loop {
        let wanted = Access::of(&datastores.running().tree).netconf;
        let failed = match open(&wanted, &mut server, &backend, &desk, &state_dir) {
            Ok(server) => listen(&wanted, server, &mut listening, &desk).await,
            Err(reason) => {
                desk.events.log(News::now(Severity::Error, EventKind::Configuration, "netconf", reason));
                listening.clear();
                true
            }
        };
        tokio::select! {
            change = changes.recv() => {
                if matches!(change, Err(broadcast::error::RecvError::Closed)) {
                    return;
                }
            }
            () = tokio::time::sleep(AGAIN), if failed => {}
        }
    }
}

/// The server with the settings that are wanted; made, with its host key, where there is none yet.
fn open<T: Target>(
    wanted: &NetconfAccess,
    server: &mut Option<Server<Northbound<T>>>,
    backend: &Arc<Northbound<T>>,
    desk: &Desk<T>,
    state_dir: &std::path::Path,
) -> Result<Option<Server<Northbound<T>>>, String> {
    if !wanted.enabled {
        return Ok(server.clone());
    }
    let mut settings = Settings::default();
    if let Some(sessions) = wanted.max_sessions {
        settings.max_sessions = usize::from(sessions);
    }
    settings.idle_timeout =
        wanted.idle_timeout.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()));
    if let Some(server) = server {
        server.set(settings);
    } else {
        let key =
            host_key::load_or_make(state_dir).map_err(|error| format!("NETCONF does not listen: {error}"))?;
        *server = Some(Server::new(backend.clone(), desk.datastores.locks().clone(), key, settings));
    }
    Ok(server.clone())
}

/// Listens where it is wanted and nowhere else; whether an address is not to be had.
async fn listen<T: Target>(
    wanted: &NetconfAccess,
    server: Option<Server<Northbound<T>>>,
    listening: &mut BTreeMap<SocketAddr, oneshot::Sender<()>>,
    desk: &Desk<T>,
) -> bool {
    let addresses = if wanted.enabled { addresses(wanted) } else { Vec::new() };
    listening.retain(|address, open| addresses.contains(address) && !open.is_closed());
    let mut failed = false;
    let Some(server) = server else { return false };
    for address in addresses {
        if listening.contains_key(&address) {
            continue;
        }
        match TcpListener::bind(address).await {
            Ok(listener) => {
                let (open, closed) = oneshot::channel::<()>();
                let server = server.clone();
                tokio::spawn(async move {
                    let until = async move {
                        // Either way it is over.
                        let _ = closed.await;
                    };
                    if let Err(error) = server.serve(listener, until).await {
                        tracing::error!("NETCONF on {address}: {error}");
                    }
                });
                listening.insert(address, open);
                desk.events.log(News::now(
                    Severity::Info,
                    EventKind::Configuration,
                    "netconf",
                    format!("listens on {address}"),
                ));
            }
            Err(error) => {
                failed = true;
                let reason = format!("cannot listen on {address}: {error}; trying again");
                desk.events.log(News::now(Severity::Error, EventKind::Configuration, "netconf", reason));
            }
        }
    }
    failed
}

fn addresses(wanted: &NetconfAccess) -> Vec<SocketAddr> {
    let port = wanted.port.unwrap_or(PORT);
    if wanted.listen_address.is_empty() {
        return vec![SocketAddr::from(([127, 0, 0, 1], port))];
    }
    // The modules let addresses alone through.
    wanted
        .listen_address
        .iter()
        .filter_map(|address| Some(SocketAddr::new(address.parse().ok()?, port)))
        .collect()
}
