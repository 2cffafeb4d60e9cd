//! The pipeline at work: ports, workers, keep-alives and the P4Runtime server, put together.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use dataplane::PortId;
use dataplane::target::{SWPIPE, TargetProfile};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use site::Site;

use crate::device::Device;
use crate::io::interface::Interface;
use crate::io::link_watch::LinkWatch;
use crate::io::{Backend, Claim, IoError, KeepAliveSender, Port, keep_alive, open};
use crate::packet_io::{KeepAliveInlet, PacketOut};
use crate::port_links::PortLinks;
use crate::priority;
use crate::server::{Listen, Server, Serving};
use crate::worker::{Inlet, Outlets, PortSenders, Worker};

/// A port of the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// In the data plane.
    pub id: PortId,
    /// Name in the configuration.
    pub name: String,
    /// Linux interface.
    pub interface: String,
    /// Bytes after the Ethernet header, tags and steering header included.
    pub mtu: u32,
}

impl PortSpec {
    /// The ports of a configuration that have an interface, in the order of their numbers.
    #[must_use]
    pub fn of_site(site: &Site) -> Vec<PortSpec> {
        let mut ports: Vec<PortSpec> = site
            .ports
            .values()
            .filter_map(|port| {
                let interface = port.interface.clone()?;
                Some(PortSpec { id: port.id, name: port.name.clone(), interface, mtu: port.mtu.into() })
            })
            .collect();
        ports.sort_by_key(|port| port.id);
        ports
    }
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How interfaces are read and written.
    pub backend: Backend,
    /// Workers; by default one per core, and no more than ports.
    pub workers: Option<usize>,
    /// Bind each worker to a core of its own.
    pub pin: bool,
    /// The device's number in P4Runtime; not 0.
    pub device_id: u64,
    /// The target whose limits it has.
    pub profile: &'static TargetProfile,
}

impl Default for Options {
    fn default() -> Self {
        Options { backend: Backend::default(), workers: None, pin: false, device_id: 1, profile: &SWPIPE }
    }
}

/// Why the pipeline does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing to forward between.
    #[error("no port of the configuration has an `interface`; give each port of the software pipeline one")]
    NoPorts,
    /// Device id 0 names no device in P4Runtime.
    #[error("device id 0 names no device; give 1 or more")]
    DeviceId,
    /// Two ports by one interface, or one port number twice.
    #[error("ports {first} and {second} both have {what}; each port needs its own")]
    Shared {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// What both have.
        what: String,
    },
    /// A port's interface cannot be used.
    #[error("port {port}: {source}")]
    Port {
        /// The port's name.
        port: String,
        /// The reason, and the interface.
        source: IoError,
    },
    /// The ports' interfaces cannot be watched.
    #[error("links: {0}")]
    Links(IoError),
    /// The keep-alive path cannot be opened.
    #[error("keep-alives: {0}")]
    KeepAlives(IoError),
    /// The system has no thread or descriptor left.
    #[error("cannot start {what}: {source}")]
    Start {
        /// What was being started.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// The server's address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
}

/// A running pipeline. Dropping it stops it: workers end, ports are given back as they are.
///
/// ```no_run
/// use p4runtime::client::Target;
/// use swpipe::run::{Options, Pipeline, PortSpec};
///
/// # async fn example(ports: Vec<PortSpec>) -> Result<(), swpipe::run::RunError> {
/// let pipeline = Pipeline::start(&ports, &Options::default())?;
/// let target = Target::dial("embedded pipeline", pipeline.connector());
/// # drop(target);
/// pipeline.stop();
/// # Ok(())
/// # }
/// ```
pub struct Pipeline {
    device: Arc<Device>,
    server: Server,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// One a port, held until no thread forwards any more.
    claims: Vec<Claim>,
}

impl Pipeline {
    /// Opens the ports and starts workers. Nothing is forwarded before tables are written.
    ///
    /// # Errors
    /// See [`RunError`]; no thread is left running then.
    pub fn start(ports: &[PortSpec], options: &Options) -> Result<Pipeline, RunError> {
        if options.device_id == 0 {
            return Err(RunError::DeviceId);
        }
        distinct(ports)?;
        // Before an interface is touched: what another pipeline has stays as it is.
        let claims = ports
            .iter()
            .map(|port| Claim::take(&port.interface).map_err(|source| of_port(port, source)))
            .collect::<Result<Vec<_>, _>>()?;
        let opened =
            ports.iter().map(|port| open_port(port, options.backend)).collect::<Result<Vec<_>, _>>()?;
        let device = Arc::new(Device::new(options.profile));

        let cores = sched_getaffinity(Pid::from_raw(0)).map(|cores| cores_of(&cores)).unwrap_or_default();
        let workers = options.workers.unwrap_or(cores.len()).clamp(1, ports.len());
        let mut started = Vec::with_capacity(workers);
        for worker in 0..workers {
            let mut inlets = Vec::new();
            for (spec, port) in ports.iter().zip(&opened).skip(worker).step_by(workers) {
                let receiver = port.receiver().map_err(|source| of_port(spec, source))?;
                inlets.push(Inlet { port: spec.id, interface: spec.interface.clone(), receiver });
            }
            let out = Outlets::new(senders(ports, &opened)?);
            started.push(
                Worker::new(Arc::clone(&device), inlets, out)
                    .map_err(|source| start_error("a worker", source))?,
            );
        }
        let interfaces: Vec<&str> = ports.iter().map(|port| port.interface.as_str()).collect();
        // Listening follows the tables (see KeepAliveInlet); sending works by every port.
        let (sender, _) = keep_alive::open(&interfaces).map_err(RunError::KeepAlives)?;
        let sender: Box<dyn KeepAliveSender> = Box::new(sender);
        let packet_out = PacketOut::new(Arc::clone(&device), Some(sender), senders(ports, &opened)?);

        let server = Server::new(Arc::clone(&device), options.device_id, Some(packet_out.clone()));
        let inlet = KeepAliveInlet::new(
            Arc::clone(&device),
            ports.iter().map(|port| (port.id, port.interface.clone())).collect(),
            server.deliver(),
        );
        let links = PortLinks {
            watch: LinkWatch::open(&interfaces).map_err(RunError::Links)?,
            ports: ports
                .iter()
                .cloned()
                .zip(opened.iter().map(|port| Some(port.interface().index)))
                .collect(),
            backend: options.backend,
            mailboxes: started.iter().map(Worker::mailbox).collect(),
            packet_out,
            keep_alives: inlet.stale(),
        };
        let mut pipeline = Pipeline {
            device,
            server,
            stop: Arc::default(),
            threads: Vec::with_capacity(workers + 2),
            claims,
        };
        pipeline.spawn("keep-alives".to_owned(), move |stop| {
            priority::urgent();
            inlet.run(stop);
        })?;
        pipeline.spawn("links".to_owned(), move |stop| links.run(stop))?;
        for (number, worker) in started.into_iter().enumerate() {
            let core = if options.pin && !cores.is_empty() {
                cores.get(number % cores.len()).copied()
            } else {
                None
            };
            pipeline.spawn(format!("worker-{number}"), move |stop| {
                priority::ordinary();
                if let Some(core) = core
                    && let Err(error) = pin_to(core)
                {
                    tracing::warn!(worker = number, core, %error, "cannot bind a worker to its core");
                }
                worker.run(stop);
            })?;
        }
        Ok(pipeline)
    }

    fn spawn(
        &mut self,
        name: String,
        body: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), RunError> {
        let stop = Arc::clone(&self.stop);
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || body(&stop))
            .map_err(|source| start_error(&name, source))?;
        self.threads.push(thread);
        Ok(())
    }

    /// The device: tables and counters.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// How many ports it has.
    #[must_use]
    pub fn ports(&self) -> usize {
        self.claims.len()
    }

    /// Serves P4Runtime on an address until the answer is stopped or dropped. Call within a Tokio runtime.
    ///
    /// # Errors
    /// [`RunError::Listen`].
    pub async fn serve(&self, address: &Listen) -> Result<Serving, RunError> {
        self.server
            .listen(address)
            .await
            .map_err(|source| RunError::Listen { address: address.to_string(), source })
    }

    /// What opens streams to the P4Runtime server within the process, for `p4runtime::client::Target::dial`.
    /// Call within a Tokio runtime, which serves them.
    pub fn connector(
        &self,
    ) -> impl Fn() -> std::future::Ready<io::Result<tokio::io::DuplexStream>> + Send + Sync + 'static {
        self.server.connector()
    }

    /// Stops: workers end after their batch, then the ports are closed, which ends promiscuous mode.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

fn start_error(what: &str, source: io::Error) -> RunError {
    RunError::Start { what: what.to_owned(), source }
}

fn of_port(spec: &PortSpec, source: IoError) -> RunError {
    RunError::Port { port: spec.name.clone(), source }
}

/// No interface and no number is two ports'.
fn distinct(ports: &[PortSpec]) -> Result<(), RunError> {
    if ports.is_empty() {
        return Err(RunError::NoPorts);
    }
    let mut interfaces: HashMap<&str, &PortSpec> = HashMap::new();
    let mut ids: HashMap<PortId, &PortSpec> = HashMap::new();
    for port in ports {
        let shared = |other: &PortSpec, what: String| RunError::Shared {
            first: other.name.clone(),
            second: port.name.clone(),
            what,
        };
        if let Some(other) = interfaces.insert(&port.interface, port) {
            return Err(shared(other, format!("interface {}", port.interface)));
        }
        if let Some(other) = ids.insert(port.id, port) {
            return Err(shared(other, format!("number {}", port.id)));
        }
    }
    Ok(())
}

fn open_port(spec: &PortSpec, backend: Backend) -> Result<Port, RunError> {
    Interface::raise_mtu(&spec.interface, spec.mtu)
        .and_then(|()| open(backend, &spec.interface, spec.mtu))
        .map_err(|source| of_port(spec, source))
}

fn senders(ports: &[PortSpec], opened: &[Port]) -> Result<PortSenders, RunError> {
    ports
        .iter()
        .zip(opened)
        .map(|(spec, port)| Ok((spec.id, port.sender().map_err(|source| of_port(spec, source))?)))
        .collect()
}

fn cores_of(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

fn pin_to(core: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}
