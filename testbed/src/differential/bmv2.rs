//! The compiled P4 program in BMv2's `simple_switch_grpc`, over P4Runtime and virtual cables, as a data plane under
//! test. In a network namespace of its own; needs root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dataplane::PortId;
use dataplane::entry::Entry;
use dataplane::schema::counters;
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Inbox, Options, PipelineAction, Session, Target};
use p4runtime::proto::p4::v1::{Entity, ForwardingPipelineConfig, Update};
use swpipe::counters::Count;
use tokio::runtime::Runtime;

use super::plane::{Counts, Ending, Outcome, Plane, ending};
use super::reference::Compiled;
use super::wire::{self, CPU_PORT, PacketIns};
use crate::error::{Doing, Error, Result};
use crate::netns::Run;
use crate::p4ref::read_info;
use crate::raw::{Batch, PacketSocket, offloads_off};

const PROGRAM: &str = "simple_switch_grpc";
const DEVICE: u64 = 1;
const ADDRESS: &str = "127.0.0.1:9559";
const MTU: u32 = 9500;
/// For the process to answer, and a frame to be counted.
const PATIENCE: Duration = Duration::from_secs(20);
/// For what is expected to leave after it was counted.
const LATE: Duration = Duration::from_secs(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_micros(100);

/// Enough ports for random tables.
#[must_use]
pub fn ports() -> Vec<PortId> {
    (1..=22).map(PortId).collect()
}

/// BMv2 on this machine; else why it cannot run.
///
/// # Errors
/// In words: not root, or no such program on PATH.
pub fn find() -> std::result::Result<PathBuf, String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("network namespaces need root".into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(PROGRAM))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{PROGRAM} is not on PATH"))
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts BMv2 with cables to these ports, and hands it over as a data plane. `testbed` is the test bed's own
/// program, `switch` what [`find`] found.
///
/// # Errors
/// It does not start, or what `then` says.
pub fn within<T: Send>(
    testbed: &Path,
    switch: &Path,
    compiled: &Compiled,
    ports: &[PortId],
    then: impl FnOnce(&mut dyn Plane) -> Result<T> + Send,
) -> Result<T> {
    const NAMESPACE: &str = "sw";
    let run = Run::start(testbed.to_owned())?;
    run.ip(None, &[format!("netns add {}", run.name(NAMESPACE))])?;
    let quiet = ["net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"];
    run.set_parameters(NAMESPACE, &quiet.map(|path| (path, "1")))?;
    let mut lines = vec!["link set lo up".to_owned()];
    for port in ports {
        let (inner, outer) = (inside(*port), outside(*port));
        lines.push(format!("link add {inner} mtu {MTU} type veth peer name {outer} mtu {MTU}"));
        lines.push(format!("link set {inner} up"));
        lines.push(format!("link set {outer} up"));
    }
    run.ip(Some(NAMESPACE), &lines)?;
    let mut command = run.command(NAMESPACE, switch);
    for port in ports {
        command.args(["-i", &format!("{port}@{}", inside(*port))]);
    }
    // A file, which namespaces do not tell apart.
    let notifications = format!("ipc://{}", run.directory().join("notifications").display());
    command.args(["--device-id", &DEVICE.to_string(), "--no-p4", "--log-level", "off"]);
    command.args(["--notifications-addr", &notifications, "--"]);
    command.args(["--grpc-server-addr", ADDRESS, "--cpu-port", &CPU_PORT.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process(command.spawn().doing(|| format!("starting {}", switch.display()))?);
    let result = run.inside(NAMESPACE, || then(&mut Bmv2::connect(compiled, ports)?));
    drop(process);
    result
}

fn inside(port: PortId) -> String {
    format!("p{port}")
}

/// The other end of a port's cable.
fn outside(port: PortId) -> String {
    format!("x{port}")
}

fn broke(reason: impl ToString) -> Error {
    Error::Plane { plane: "bmv2".into(), reason: reason.to_string() }
}

struct Bmv2 {
    runtime: Runtime,
    session: Session,
    inbox: Inbox,
    config: ForwardingPipelineConfig,
    packet_ins: PacketIns,
    sockets: BTreeMap<PortId, PacketSocket>,
    batch: Batch,
    entries: Vec<Entry>,
    verdicts: Vec<Count>,
    /// Frames that the next outcome is expected to have.
    expected: usize,
}

impl Bmv2 {
    fn connect(compiled: &Compiled, ports: &[PortId]) -> Result<Self> {
        let mut sockets = BTreeMap::new();
        for port in ports {
            offloads_off(&inside(*port))?;
            offloads_off(&outside(*port))?;
            sockets.insert(*port, PacketSocket::open(&outside(*port))?);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .doing(|| "starting a runtime".into())?;
        let target: Target = format!("grpc://{ADDRESS}").parse().map_err(broke)?;
        let begin = Instant::now();
        let (session, inbox) = loop {
            let options = Options::new(DEVICE, Some(ElectionId(1)));
            match runtime.block_on(Session::connect(&target, options)) {
                Ok(connected) => break connected,
                Err(error) if begin.elapsed() > PATIENCE => return Err(broke(error)),
                Err(_) => std::thread::sleep(PAUSE * 100),
            }
        };
        let info = read_info(&compiled.p4info).map_err(broke)?;
        Ok(Bmv2 {
            runtime,
            session,
            inbox,
            packet_ins: PacketIns::of(&info).map_err(broke)?,
            config: ForwardingPipelineConfig::new(info, compiled.json.clone().into_bytes(), 1),
            sockets,
            batch: Batch::default(),
            entries: Vec::new(),
            verdicts: Vec::new(),
            expected: 0,
        })
    }

    fn read(&self, filters: Vec<Entity>) -> Result<Vec<Entity>> {
        self.runtime.block_on(self.session.read(filters)).map_err(broke)
    }

    fn write(&self, updates: Vec<Update>) -> Result<()> {
        let written = self.runtime.block_on(self.session.write(updates, Atomicity::ContinueOnError));
        written.map_err(|error| broke(format!("{error}: {:?}", error.rejections.first())))
    }

    fn verdicts(&self) -> Result<Vec<Count>> {
        self.read(vec![wire::array(counters::VERDICTS.id)]).map(wire::cells)
    }

    /// Takes what has left into the outcome.
    fn collect(&mut self, outcome: &mut Outcome) -> Result<()> {
        for (port, socket) in &self.sockets {
            socket.receive(&mut self.batch)?;
            outcome.sent.extend(self.batch.iter().map(|frame| (*port, frame.to_vec())));
        }
        // The stream's reader runs only while the runtime does.
        self.runtime.block_on(tokio::task::yield_now());
        while let Ok(packet) = self.inbox.packets.try_recv() {
            let received = self.packet_ins.read(&packet).map_err(broke)?;
            if outcome.to_controller.replace(received).is_some() {
                outcome.ending = Ending::Odd("several packet-ins".into());
            }
        }
        Ok(())
    }
}

fn total(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.packets).sum()
}

impl Plane for Bmv2 {
    fn name(&self) -> &str {
        "bmv2"
    }

    fn load(&mut self, entries: &[Entry]) -> Result<()> {
        // Clone sessions outlive a pipeline.
        let sessions: Vec<Update> = wire::sessions(&self.entries).into_iter().map(Update::delete).collect();
        self.entries.clear();
        if !sessions.is_empty() {
            self.write(sessions)?;
        }
        let config = Some(self.config.clone());
        let set = self.session.set_pipeline(PipelineAction::VerifyAndCommit, config);
        self.runtime.block_on(set).map_err(broke)?;
        self.write(wire::updates(entries))?;
        self.entries = entries.to_vec();
        self.verdicts = self.verdicts()?;
        Ok(())
    }

    fn frame(&mut self, port: PortId, bytes: &[u8]) -> Result<Outcome> {
        let expected = std::mem::take(&mut self.expected);
        let mut outcome = Outcome { sent: vec![], to_controller: None, ending: Ending::Odd(String::new()) };
        let socket = self.sockets.get(&port).ok_or_else(|| broke(format!("it has no port {port} here")))?;
        if socket.send(&[bytes])? != 1 {
            return Err(broke(format!("the kernel does not send {} bytes", bytes.len())));
        }
        let begin = Instant::now();
        let verdicts = loop {
            let verdicts = self.verdicts()?;
            if total(&verdicts) != total(&self.verdicts) || begin.elapsed() > PATIENCE {
                break verdicts;
            }
        };
        let begin = Instant::now();
        loop {
            self.collect(&mut outcome)?;
            let found = outcome.sent.len() + usize::from(outcome.to_controller.is_some());
            if found >= expected || begin.elapsed() > LATE {
                break;
            }
            self.runtime.block_on(async { tokio::time::sleep(PAUSE).await });
        }
        outcome.sent.sort();
        if outcome.ending == Ending::Odd(String::new()) {
            outcome.ending = ending(&self.verdicts, &verdicts);
        }
        self.verdicts = verdicts;
        Ok(outcome)
    }

    fn counts(&mut self) -> Result<Counts> {
        wire::counts(self.read(wire::all_counters())?, &self.entries).map_err(broke)
    }

    fn expect(&mut self, outcome: &Outcome) {
        self.expected = outcome.sent.len() + usize::from(outcome.to_controller.is_some());
    }

    /// Linux neither sends less than an Ethernet header by a packet socket, nor hands over a tag with less than two
    /// bytes behind it, be it the frame's own or one that is pushed or bared on the way.
    fn takes(&self, frame: &[u8]) -> bool {
        let tag = |at: usize| matches!(frame.get(at..at + 2), Some([0x81, 0] | [0x88, 0xa8]));
        let shortest = if tag(12) || tag(16) { 24 } else { 18 };
        (shortest..=MTU as usize).contains(&frame.len())
    }
}
