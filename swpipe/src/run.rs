//! The pipeline at work: ports, workers, keep-alives and the P4Runtime server, put together.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dataplane::PortId;
use dataplane::entry::Entry;
use dataplane::target::{SWPIPE, TargetProfile};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use site::Site;

use crate::device::Device;
use crate::io::link_watch::LinkWatch;
use crate::io::{Backend, IoError};
use crate::packet_io::{InletPorts, KeepAliveInlet, PacketOut};
use crate::port_links::PortLinks;
use crate::port_set::PortSet;
use crate::priority;
use crate::server::{Listen, Server, Serving};
use crate::worker::{Mailbox, Outlets, Worker};

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

/// How long a start waits for interfaces that another pipeline has.
const LEFT_BY_THE_KILLED: Duration = Duration::from_secs(2);

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How interfaces are read and written.
    pub backend: Backend,
    /// Workers; by default one per core. Those without a port wait for one.
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

/// Why the pipeline does not run, or does not get other ports.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
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
    /// Ports change one after the other.
    #[error("another change of the ports is under way; try again when it is done")]
    Changing,
    /// It has no ports any more.
    #[error("the pipeline has stopped")]
    Stopped,
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
    mailboxes: Vec<Arc<Mailbox>>,
    ports: PortSet,
}

impl Pipeline {
    /// Starts workers and opens the ports, of which there may be none yet. Nothing is forwarded before tables
    /// are written.
    ///
    /// # Errors
    /// See [`RunError`]; no thread is left running then.
    pub fn start(ports: &[PortSpec], options: &Options) -> Result<Pipeline, RunError> {
        if options.device_id == 0 {
            return Err(RunError::DeviceId);
        }
        let device = Arc::new(Device::new(options.profile));
        let cores = sched_getaffinity(Pid::from_raw(0)).map(|cores| cores_of(&cores)).unwrap_or_default();
        let started = (0..options.workers.unwrap_or(cores.len()).max(1))
            .map(|_| Worker::new(Arc::clone(&device), Vec::new(), Outlets::new(Vec::new())))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|source| start_error("a worker", source))?;
        let mailboxes: Vec<Arc<Mailbox>> = started.iter().map(Worker::mailbox).collect();
        let packet_out = PacketOut::new(Arc::clone(&device));
        let server = Server::new(Arc::clone(&device), options.device_id, Some(packet_out.clone()));
        let inlet_ports = InletPorts::default();
        let inlet = KeepAliveInlet::new(Arc::clone(&device), inlet_ports.clone(), server.deliver());
        let set = PortSet::new(options.backend, mailboxes.clone(), packet_out, inlet_ports);
        let watch = LinkWatch::open::<&str>(&[]).map_err(RunError::Links)?;
        let links = PortLinks { ports: set.clone(), watch };
        let mut pipeline = Pipeline {
            device,
            server,
            stop: Arc::default(),
            threads: Vec::with_capacity(started.len() + 2),
            mailboxes,
            ports: set,
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
        // One that was killed a moment ago may still hold them: the kernel takes its time to give rings and programs back.
        let until = Instant::now() + LEFT_BY_THE_KILLED;
        loop {
            match pipeline.set_ports(ports) {
                Err(RunError::Port { source: IoError::Claimed { .. }, .. }) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                set => return set.map(|()| pipeline),
            }
        }
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

    /// The ports, to be changed while it runs.
    #[must_use]
    pub fn ports(&self) -> &PortSet {
        &self.ports
    }

    /// Makes these the ports while it runs: opens what is new, gives up what is gone, all or nothing. Workers go
    /// on meanwhile, and the ports that stay lose no frame.
    ///
    /// # Errors
    /// As [`PortSet::open`], which is for tables that change with the ports.
    pub fn set_ports(&self, ports: &[PortSpec]) -> Result<(), RunError> {
        self.ports.set(ports)
    }

    /// Puts these entries in the place of all there are, unless a controller has set the pipeline; whether it did.
    pub fn set_initial_tables(&self, entries: &[Entry]) -> bool {
        self.server.set_initial_tables(entries)
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
        for mailbox in &self.mailboxes {
            mailbox.ring();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
        self.ports.stop();
    }
}

fn start_error(what: &str, source: io::Error) -> RunError {
    RunError::Start { what: what.to_owned(), source }
}

fn cores_of(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

fn pin_to(core: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}
