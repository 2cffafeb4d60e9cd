//! Everything wired together: from the command line to a running controller, and its end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use dataplane::PortId;
use dataplane::target::{BMV2, TargetProfile};
use swpipe::io::link_watch::{LinkState, LinkWatch};
use swpipe::run::{Options as PipelineOptions, Pipeline, PortSpec};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::clock;
use crate::engine::{Command, Engine};
use crate::event::{Events, News};
use crate::keepalives::{Command as LivenessCommand, Keepalives};
use crate::show::{Carriers, Desk, Rates};
use crate::socket;
use crate::state_dir::{Kept, StateDir, digest};
use crate::target::{Chaos, P4rt, Program, ProgramError};
use crate::view::View;
use site::Site;

/// How long frames that are at an appliance get to come back before an embedded pipeline ends.
const DRAIN: Duration = Duration::from_millis(200);
/// How soon ports of another configuration are followed.
const CARRIERS_LOOK: Duration = Duration::from_millis(500);

/// Which data plane.
#[derive(Clone, Debug)]
pub enum Plane {
    /// Another process or machine, by its P4Runtime address.
    External(p4runtime::client::Target),
    /// The software pipeline in this process.
    Embedded(PipelineOptions),
}

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Configuration file.
    pub config: PathBuf,
    /// The data plane; embedded where the configuration names interfaces and nothing is said.
    pub plane: Option<Plane>,
    /// Of an embedded pipeline.
    pub pipeline: PipelineOptions,
    /// The target that the data plane is.
    pub profile: &'static TargetProfile,
    /// Folder with the pipeline compiled for it; the built-in one without it.
    pub compiled: Option<PathBuf>,
    /// The clients' socket.
    pub socket: PathBuf,
    /// State directory.
    pub state_dir: PathBuf,
    /// JSON lines of events.
    pub events: Option<PathBuf>,
    /// Of arbitration.
    pub device_id: u64,
    /// Of arbitration.
    pub election_id: u128,
    /// Probability that an operation of the data plane fails, for trials.
    pub chaos: f64,
}

/// Why the controller does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration file.
    #[error("{}: {reason}", .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The state directory.
    #[error(transparent)]
    State(#[from] crate::state_dir::StateDirError),
    /// The event file.
    #[error("event file {}: {source}", .path.display())]
    Events {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The clients' socket.
    #[error(transparent)]
    Socket(#[from] socket::SocketError),
    /// The embedded pipeline.
    #[error("the embedded pipeline does not start: {0}")]
    Pipeline(#[from] swpipe::run::RunError),
    /// Neither interfaces nor an address.
    #[error(
        "no data plane: the configuration names no interface for an embedded pipeline, and no --target is given"
    )]
    NoPlane,
    /// An embedded pipeline that shall be a program of its own.
    #[error("--target-profile bmv2 is for BMv2 at a --target; the embedded pipeline is swpipe or tofino1")]
    Embedded,
    /// The target's pipeline.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A bug of ours.
    #[error(transparent)]
    Headers(#[from] p4runtime::metadata::MetadataError),
    /// The system gives no thread or no signal.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
}

/// Reads the configuration that is in force: the file's, or one that was loaded over this very file.
fn configuration(path: &Path, kept: &mut Kept) -> Result<Site, StartError> {
    let fault = |reason: String| StartError::Config { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    if let Some(loaded) = &kept.loaded {
        if loaded.instead_of == digest(&text) {
            return Site::from_json(&loaded.text).map_err(|error| {
                fault(format!("the configuration that was loaded over it is not usable any more: {error}"))
            });
        }
        kept.loaded = None;
    }
    Site::from_json(&text).map_err(|error| fault(error.to_string()))
}

/// Runs until a signal ends it.
///
/// # Errors
/// [`StartError`]; once it runs, it goes on.
pub async fn run(settings: Settings) -> Result<(), StartError> {
    let started = clock::now();
    let state_dir = StateDir::open(&settings.state_dir)?;
    // A start matters more than what was kept: an unreadable file is put aside and said.
    let mut unreadable = None;
    let mut kept = match state_dir.load() {
        Ok(kept) => kept,
        Err(error) => {
            let aside = state_dir.set_aside()?;
            unreadable = Some(format!(
                "{error}; it is now {}, units are in auto and the file's configuration is in force",
                aside.display()
            ));
            Kept::default()
        }
    };
    let site = configuration(&settings.config, &mut kept)?;
    site.fits(settings.profile)
        .map_err(|error| StartError::Config { path: settings.config.clone(), reason: error.to_string() })?;
    let program = Program::of(settings.profile, settings.compiled.as_deref())?;
    for warning in &site.warnings {
        tracing::warn!("{warning}");
    }
    // Numbers rise over restarts: milliseconds since the epoch, then one by one.
    let first = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |since| since.as_millis() as u64 * 1000);
    let events = Events::open(first, settings.events.as_deref())
        .map_err(|source| StartError::Events { path: settings.events.clone().unwrap_or_default(), source })?;
    let events = Arc::new(events);
    if let Some(reason) = unreadable {
        events.log(News::now("error", "configuration", "state", reason));
    }
    if kept.loaded.is_some() {
        let reason = format!(
            "the configuration that was loaded over {} is in force, until that file changes",
            settings.config.display()
        );
        events.log(News::now("info", "configuration", "running", reason));
    }
    let listener = socket::open(&settings.socket).await?;

    let plane = match settings.plane.clone() {
        Some(plane) => plane,
        None if site.ports.values().any(|port| port.interface.is_some()) => {
            Plane::Embedded(settings.pipeline.clone())
        }
        None => return Err(StartError::NoPlane),
    };
    let (pipeline, address, name) = match plane {
        Plane::External(address) => (None, address.clone(), address.to_string()),
        Plane::Embedded(_) if settings.profile == &BMV2 => return Err(StartError::Embedded),
        Plane::Embedded(options) => {
            let pipeline = Pipeline::start(&PortSpec::of_site(&site), &options)?;
            let address = p4runtime::client::Target::dial("embedded", pipeline.connector());
            (Some(pipeline), address, "embedded".to_owned())
        }
    };
    let (target, packets) = P4rt::start(address, name, settings.device_id, settings.election_id, program)?;
    let target = Arc::new(Chaos::new(target, settings.chaos));
    let (keepalives, changes) = Keepalives::start(target.clone(), packets)?;
    let carriers = Carriers::default();
    let engine = Engine::new(
        target.clone(),
        keepalives.clone(),
        events.clone(),
        state_dir,
        kept,
        site,
        pipeline.as_ref().map(|pipeline| pipeline.ports().clone()),
    );
    watch_carriers(engine.view(), &keepalives, &events, &carriers);
    let (commands, received) = mpsc::channel(64);
    let desk = Arc::new(Desk {
        target,
        view: engine.view(),
        keepalives,
        events: events.clone(),
        commands: commands.clone(),
        carriers,
        started,
        config_file: settings.config.clone(),
        device_id: settings.device_id,
        election_id: settings.election_id,
        rates: Mutex::new(Rates::default()),
        trouble: engine.trouble(),
    });
    let engine = tokio::spawn(engine.run(received, changes));
    tokio::spawn(socket::serve(listener, desk));
    tracing::info!("sluiced: ready, clients on {}", settings.socket.display());

    signals(&settings, &commands, &events).await?;
    if let Some(pipeline) = pipeline {
        let (answer, drained) = oneshot::channel();
        if commands.send(Command::Drain(answer)).await.is_ok() {
            match tokio::time::timeout(Duration::from_secs(2), drained).await {
                Ok(Ok(Ok(()))) => tokio::time::sleep(DRAIN).await,
                _ => tracing::warn!("the units could not be brought into bypass before the end"),
            }
        }
        pipeline.stop();
    }
    engine.abort();
    // The file alone goes; who is connected sees the end of the process.
    if let Err(error) = std::fs::remove_file(&settings.socket) {
        tracing::debug!("socket: {error}");
    }
    Ok(())
}

/// SIGHUP reads the configuration file again; SIGTERM and SIGINT end.
async fn signals(
    settings: &Settings,
    commands: &mpsc::Sender<Command>,
    events: &Events,
) -> Result<(), StartError> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = hangup.recv() => reload(&settings.config, commands, events).await,
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
}

async fn reload(path: &Path, commands: &mpsc::Sender<Command>, events: &Events) {
    let read = std::fs::read_to_string(path)
        .map_err(|error| error.to_string())
        .and_then(|text| Site::from_json(&text).map_err(|error| error.to_string()));
    match read {
        Ok(site) => {
            let (answer, applied) = oneshot::channel();
            let origin = format!("{} (SIGHUP)", path.display());
            let apply = Command::Apply { site: Box::new(site), loaded: None, origin, answer };
            if commands.send(apply).await.is_ok() {
                // The engine logs the outcome.
                let _ = applied.await;
            }
        }
        Err(reason) => {
            let mut news = News::now("error", "configuration", "running", "refused, nothing changed");
            news.detail = Some(format!("{}: {reason}", path.display()));
            events.log(news);
        }
    }
}

/// A port whose carrier is followed.
type WatchedPort = (String, PortId, String);

/// Ports of the configuration whose interfaces may be on this machine: interface, number, name.
fn watched_ports(site: &Site) -> Vec<WatchedPort> {
    site.ports
        .values()
        .filter_map(|port| Some((port.interface.clone()?, port.id, port.name.clone())))
        .collect()
}

/// Follows the carrier of the running configuration's ports, on a thread of its own.
fn watch_carriers(
    view: Arc<ArcSwap<View>>,
    keepalives: &Keepalives,
    events: &Arc<Events>,
    carriers: &Carriers,
) {
    let (keepalives, events, carriers) = (keepalives.clone(), events.clone(), carriers.clone());
    let spawned = thread::Builder::new().name("carriers".to_owned()).spawn(move || {
        let mut known: BTreeMap<WatchedPort, bool> = BTreeMap::new();
        let mut ended = false;
        while !ended {
            let ports = watched_ports(&view.load().site);
            // What is not followed any more is taken to be there, and keep-alives alone decide.
            known.retain(|port, present| {
                let (_, id, name) = port;
                if ports.contains(port) {
                    return true;
                }
                carriers.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
                if !*present {
                    ended |= keepalives.tell(LivenessCommand::Carrier { port: *id, present: true }).is_err();
                }
                false
            });
            let interfaces: Vec<&str> = ports.iter().map(|(interface, ..)| interface.as_str()).collect();
            let mut watch = match LinkWatch::open(&interfaces) {
                Ok(watch) => watch,
                Err(error) => {
                    tracing::warn!("carrier of ports is not watched, keep-alives alone decide: {error}");
                    return;
                }
            };
            while !ended && watched_ports(&view.load().site) == ports {
                let waited = watch.wait(Some(CARRIERS_LOOK), &mut |change| {
                    let present = change.state == LinkState::Up;
                    let Some(port) = ports.get(change.port) else { return };
                    let (interface, id, name) = port;
                    if known.insert(port.clone(), present) == Some(present) {
                        return;
                    }
                    carriers.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), present);
                    let words = |present| if present { "carrier" } else { "no-carrier" };
                    ended |= keepalives.tell(LivenessCommand::Carrier { port: *id, present }).is_err();
                    events.log(
                        News::now(
                            if present { "info" } else { "warning" },
                            "port",
                            name,
                            format!("interface {interface}: {:?}", change.state),
                        )
                        .change(words(!present), words(present)),
                    );
                });
                if let Err(error) = waited {
                    tracing::warn!("carrier of ports is not watched any more: {error}");
                    return;
                }
            }
        }
    });
    if let Err(error) = spawned {
        tracing::warn!("carrier of ports is not watched, keep-alives alone decide: {error}");
    }
}
