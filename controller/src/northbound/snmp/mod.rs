//! SNMP: a subagent of net-snmp's snmpd with the objects and notifications of `configs/mib/SLUICE-MIB.txt`.
//!
//! Requests are answered from readings that telemetry makes apart from everything else; notifications are the event
//! log's. Neither waits for snmpd, and nothing here holds anything up.

mod date;
mod events;
mod objects;
mod reading;
mod tables;

use std::sync::Arc;

use agentx::{Address, Settings, State, Subagent};
use api::{EventKind, Severity};
use serde::Deserialize;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tree::{Tree, json};

use self::events::Cursor;
use self::reading::Readings;
use crate::datastore::path_to;
use crate::event::News;
use crate::show::Desk;
use crate::target::Target;
use crate::telemetry::Telemetry;

/// The part `snmp` of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Wanted {
    enabled: bool,
    agentx_address: Option<String>,
}

/// Debian's and everybody's.
const MASTER: &str = "unix:/var/agentx/master";

impl Wanted {
    fn of(tree: &Tree) -> Self {
        let Some(path) = path_to(tree.schema(), &["snmp"]).filter(|path| tree.contains(path)) else {
            return Wanted::default();
        };
        serde_json::from_value(json::value(tree, &path)).unwrap_or_else(|error| {
            tracing::error!("snmp: {error}");
            Wanted::default()
        })
    }
}

/// A subagent that runs.
struct Running<T> {
    subagent: Subagent,
    readings: Arc<Readings<T>>,
    state: watch::Receiver<State>,
    /// Keeps readings fresh while they are asked for; ends with this.
    _fresh: JoinSet<()>,
}

/// Tells snmpd what running says that it is told, for as long as the process lives.
pub async fn serve<T: Target>(desk: Arc<Desk<T>>, telemetry: Telemetry<T>) {
    let mut changes = desk.datastores.changes();
    let mut events = Cursor::new(desk.events.clone());
    let mut wanted = Wanted::default();
    let mut running: Option<Running<T>> = None;
    loop {
        let now = Wanted::of(&desk.datastores.running().tree);
        if now != wanted {
            // One session says good-bye before the next one registers the same subtree.
            if let Some(Running { subagent, .. }) = running.take() {
                subagent.close().await;
            }
            running = start(&now, &desk, &telemetry);
            wanted = now;
        }
        tokio::select! {
            change = changes.recv() => {
                if matches!(change, Err(broadcast::error::RecvError::Closed)) {
                    return;
                }
            }
            event = events.next() => {
                let Some(event) = event else { return };
                if let Some(running) = &running
                    && let Some(notification) = events::notification(&event, &desk.view.load())
                {
                    running.readings.outdate();
                    running.subagent.notify(notification);
                }
            }
            state = next_state(&mut running) => {
                let (severity, reason) = match state {
                    State::Up => (Severity::Info, "snmpd takes the objects of this controller".to_owned()),
                    State::Down(reason) => (Severity::Warning, format!("{reason}; trying again")),
                };
                desk.events.log(News::now(severity, EventKind::Configuration, "snmp", reason));
            }
        }
    }
}

fn start<T: Target>(wanted: &Wanted, desk: &Arc<Desk<T>>, telemetry: &Telemetry<T>) -> Option<Running<T>> {
    if !wanted.enabled {
        return None;
    }
    let address: Address = match wanted.agentx_address.as_deref().unwrap_or(MASTER).parse() {
        Ok(address) => address,
        Err(error) => {
            let reason = format!("snmp agentx-address: {error}");
            desk.events.log(News::now(Severity::Error, EventKind::Configuration, "snmp", reason));
            return None;
        }
    };
    let readings = Arc::new(Readings::new(desk.clone(), telemetry.clone()));
    let mut fresh = JoinSet::new();
    let kept = readings.clone();
    fresh.spawn(async move { kept.keep_fresh().await });
    let settings = Settings {
        address,
        subtree: objects::root(),
        description: concat!("Sluice ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let subagent = Subagent::start(settings, readings.clone());
    let state = subagent.state();
    Some(Running { subagent, readings, state, _fresh: fresh })
}

/// How the session stands, once that is news.
async fn next_state<T>(running: &mut Option<Running<T>>) -> State {
    match running {
        Some(running) => match running.state.changed().await {
            Ok(()) => running.state.borrow_and_update().clone(),
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}
