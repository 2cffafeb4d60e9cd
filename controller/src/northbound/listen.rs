//! Where NETCONF listens: as running says, from the moment that it says so.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::{EventKind, Severity};
use netconf::{Server, Settings, host_key};
use tokio::sync::broadcast;

use super::backend::Northbound;
use super::listeners::{AGAIN, Closing, Listeners, addresses};
use super::notifications;
use crate::access::{Access, NetconfAccess};
use crate::event::News;
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::Telemetry;

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
    let mut listeners = Listeners::new("netconf");
    loop {
        let wanted = Access::of(&datastores.running().tree).netconf;
        let failed = match open(&wanted, &mut server, &backend, &desk, &state_dir) {
            Ok(Some(server)) if wanted.enabled => {
                let addresses = addresses(&wanted.listen_address, wanted.port.unwrap_or(PORT));
                let serve = |listener, closing: Closing| {
                    let server = server.clone();
                    async move {
                        if let Err(error) = server.serve(listener, closing.closed()).await {
                            tracing::error!("NETCONF: {error}");
                        }
                    }
                };
                listeners.follow(&addresses, &desk.events, serve).await
            }
            Ok(_) => {
                listeners.close_all().await;
                false
            }
            Err(reason) => {
                desk.events.log(News::now(Severity::Error, EventKind::Configuration, "netconf", reason));
                listeners.close_all().await;
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
