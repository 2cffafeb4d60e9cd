//! Everything wired together: from the command line to a running controller, and its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{EventKind, Severity};
use arc_swap::ArcSwap;
use dataplane::target::{BMV2, TargetProfile};
use swpipe::run::{Options as PipelineOptions, Pipeline, PortSpec};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, mpsc, oneshot};
use yang::Yang;

use crate::audit::Audit;
use crate::carriers::{self, Carriers};
use crate::clock;
use crate::datastore::{self, Beginning, BeginningError, Datastores, Who};
use crate::engine::{Command, Engine};
use crate::event::{EventFile, Events, News};
use crate::keepalives::Keepalives;
use crate::logging::{self, Log};
use crate::northbound;
use crate::show::{Desk, Rates};
use crate::socket;
use crate::state_dir::{Kept, StateDir};
use crate::target::{Chaos, P4rt, Program, ProgramError};
use crate::telemetry::Telemetry;
use crate::view::View;

/// How long frames that are at an appliance get to come back before an embedded pipeline ends.
const DRAIN: Duration = Duration::from_millis(200);

/// Startup file unless another is named.
pub const DEFAULT_CONFIG: &str = "/etc/sluice/site.json";

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
    /// Startup file; [`DEFAULT_CONFIG`] without it, which need not be there yet.
    pub config: Option<PathBuf>,
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
    /// The log of the process; without it nothing changes its looks.
    pub log: Option<Log>,
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
    /// The YANG modules.
    #[error(transparent)]
    Yang(#[from] yang::LoadError),
    /// The configuration, or what was kept of those before.
    #[error(transparent)]
    Beginning(#[from] BeginningError),
    /// The audit log.
    #[error("audit log in {}: {source}", .path.display())]
    Audit {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A bug of ours.
    #[error(transparent)]
    Headers(#[from] p4runtime::metadata::MetadataError),
    /// The system gives no thread or no signal.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
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
    let kept = match state_dir.load() {
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
    let yang = Arc::new(Yang::load()?);
    let beginning = Beginning::find(&yang, settings.config.as_deref(), &settings.state_dir)?;
    let site = beginning.site.clone();
    site.fits(settings.profile)
        .map_err(|error| StartError::Config { path: beginning.startup.clone(), reason: error.to_string() })?;
    let program = Program::of(settings.profile, settings.compiled.as_deref())?;
    for warning in site.warnings() {
        tracing::warn!("{warning}");
    }
    // Numbers rise over restarts: milliseconds since the epoch, then one by one.
    let first = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |since| since.as_millis() as u64 * 1000);
    let events = Arc::new(Events::new(first));
    let event_file = settings.events.map(logging::file_at);
    if let Some(file) = event_file.clone() {
        let path = file.path.clone();
        events.keep_in(Some(EventFile::open(file).map_err(|source| StartError::Events { path, source })?));
    }
    if let Some(reason) = unreadable {
        events.log(News::now(Severity::Error, EventKind::Configuration, "state", reason));
    }
    for (severity, reason) in &beginning.news {
        events.log(News::now(*severity, EventKind::Configuration, "running", reason));
    }
    let listener = socket::open(&settings.socket).await?;
    let status_socket = settings.socket.with_file_name(northbound::status::SOCKET);
    let status_listener = socket::open(&status_socket).await?;

    let plane = match settings.plane.clone() {
        Some(plane) => plane,
        None if site.ports.is_empty() || site.ports.values().any(|port| port.interface.is_some()) => {
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
    let known = carriers::Known::default();
    let carriers = Carriers::new(keepalives.clone(), events.clone(), known.clone());
    carriers.follow(&site);

    let mut engine = Engine::new(
        target.clone(),
        keepalives.clone(),
        events.clone(),
        state_dir,
        kept,
        site,
        pipeline.as_ref().map(|pipeline| pipeline.ports().clone()),
    );
    if let Some(reason) = &beginning.held {
        engine.hold(reason.clone());
    }
    let (commands, received) = mpsc::channel(64);
    let audit = Audit::open(&settings.state_dir)
        .map_err(|source| StartError::Audit { path: settings.state_dir.clone(), source })?;
    let audit = Arc::new(audit);
    let startup = beginning.startup.clone();
    let datastores = Datastores::new(yang, commands.clone(), events.clone(), audit.clone(), beginning);
    tokio::spawn(logging::follow(settings.log, datastores.clone(), events.clone(), event_file));
    tokio::spawn(follow_ports(carriers, engine.view(), datastores.changes()));
    let desk = Arc::new(Desk {
        target,
        view: engine.view(),
        keepalives,
        events: events.clone(),
        commands: commands.clone(),
        carriers: known,
        started,
        datastores: datastores.clone(),
        audit,
        device_id: settings.device_id,
        election_id: settings.election_id,
        rates: Mutex::new(Rates::default()),
        trouble: engine.trouble(),
    });
    let engine = tokio::spawn(engine.run(received, changes));
    let telemetry = Telemetry::new(desk.clone());
    let state_dir = settings.state_dir.clone();
    tokio::spawn(northbound::listen::serve(desk.clone(), telemetry.clone(), state_dir.clone()));
    tokio::spawn(northbound::snmp::serve(desk.clone(), telemetry.clone()));
    tokio::spawn(northbound::metrics::serve(desk.clone(), telemetry.clone(), state_dir.clone()));
    tokio::spawn(northbound::status::serve(desk.clone(), telemetry, status_listener, state_dir));
    tokio::spawn(socket::serve(listener, desk));
    tracing::info!("sluiced: ready, clients on {}", settings.socket.display());

    signals(&startup, &datastores).await?;
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
    // The files alone go; who is connected sees the end of the process.
    for socket in [&settings.socket, &status_socket] {
        if let Err(error) = std::fs::remove_file(socket) {
            tracing::debug!("socket {}: {error}", socket.display());
        }
    }
    Ok(())
}

/// SIGHUP reads the configuration file again; SIGTERM and SIGINT end.
async fn signals(startup: &Path, datastores: &Arc<Datastores>) -> Result<(), StartError> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = hangup.recv() => {
                let who = Who::sluiced(&format!("{} (SIGHUP)", startup.display()));
                // The event log has the outcome.
                let _ = datastores.reload(&who).await;
            }
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
}

/// Watches the carrier of the ports that running has.
async fn follow_ports(
    carriers: Carriers,
    view: Arc<ArcSwap<View>>,
    mut changes: broadcast::Receiver<datastore::Change>,
) {
    // One that was missed does not matter: the view has the latest.
    while !matches!(changes.recv().await, Err(broadcast::error::RecvError::Closed)) {
        let site = view.load().site.clone();
        tokio::task::block_in_place(|| carriers.follow(&site));
    }
}
