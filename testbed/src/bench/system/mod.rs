//! The systems that are compared. Each splits the link's frames over the pairs by a hash that is the same in both
//! directions, with what it has for a header.

mod kernel;
mod openvswitch;
mod process;
mod sluice;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use xdp::Attachment;

use super::yard::{Way, Yard};
use crate::error::{Doing, Result};
use process::Process;

/// A system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Sluice's software pipeline with AF_PACKET rings.
    SwpipeAfPacket,
    /// Sluice's software pipeline with AF_XDP sockets.
    SwpipeAfXdp,
    /// Open vSwitch in user space, ports by packet sockets.
    OvsSystem,
    /// Open vSwitch in user space, ports by AF_XDP sockets.
    OvsAfXdp,
    /// A program of the kernel's that redirects frames between drivers.
    XdpRedirect,
    /// The kernel's traffic control: filters that redirect packets.
    TcMirred,
    /// The compiled P4 program in BMv2.
    Bmv2,
}

impl System {
    /// All of them, in the order of the tables.
    pub const ALL: [System; 7] = [
        System::SwpipeAfPacket,
        System::SwpipeAfXdp,
        System::OvsSystem,
        System::OvsAfXdp,
        System::XdpRedirect,
        System::TcMirred,
        System::Bmv2,
    ];

    /// Its name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            System::SwpipeAfPacket => "swpipe, AF_PACKET",
            System::SwpipeAfXdp => "swpipe, AF_XDP",
            System::OvsSystem => "Open vSwitch, packet sockets",
            System::OvsAfXdp => "Open vSwitch, AF_XDP",
            System::XdpRedirect => "kernel, XDP redirect",
            System::TcMirred => "kernel, tc mirred",
            System::Bmv2 => "BMv2, our P4 program",
        }
    }

    /// What it does per frame, and what it doesn't.
    #[must_use]
    pub fn work(self) -> &'static str {
        match self {
            System::SwpipeAfPacket | System::SwpipeAfXdp | System::Bmv2 => {
                "flow rule, CRC-32 of both addresses, bucket table, pair state, steering header, counters"
            }
            System::OvsSystem | System::OvsAfXdp => {
                "megaflow, symmetric hash of addresses and ports, select group, VLAN tag, counters"
            }
            System::XdpRedirect => "symmetric hash of both addresses, 4-byte header, no counters",
            System::TcMirred => "low bits of the source address, no header, the filters' counters",
        }
    }
}

/// Where programs are.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Directory of swpipe.
    pub directory: PathBuf,
    /// Where Open vSwitch was unpacked, for when it isn't installed.
    pub openvswitch: PathBuf,
    /// The compiled P4 program.
    pub compiled: PathBuf,
}

/// A system at work. It ends when this is dropped.
#[derive(Debug, Default)]
pub struct Running {
    /// The process that forwards, where one does.
    forwarder: Option<Process>,
    /// What it needs beside it; ends after it.
    others: Vec<Process>,
    attachments: Vec<Attachment>,
    /// The kernel's threads that forward, where they do.
    port_threads: Vec<u32>,
    /// What it is, in its own words.
    version: String,
    /// Held open for programs that look into them.
    maps: Vec<xdp::DeviceMap>,
}

impl Running {
    /// Time on a core of what forwards, sends and the far ends of cables included: all threads of the process, or
    /// the kernel's.
    ///
    /// # Errors
    /// It has ended.
    pub fn core_time(&self) -> Result<Duration> {
        let own = self.forwarder.iter().map(|process| core_time(process.id()));
        own.chain(self.port_threads.iter().copied().map(core_time)).sum()
    }

    /// What it says of its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Fails when a process has ended by itself.
    ///
    /// # Errors
    /// [`crate::error::Error::Agent`] with the end of its log.
    pub fn check(&mut self) -> Result<()> {
        self.forwarder.iter_mut().chain(&mut self.others).try_for_each(Process::check)
    }
}

/// Time on a core of all threads of a process (first field of schedstat, ns).
fn core_time(process: u32) -> Result<Duration> {
    let folder = format!("/proc/{process}/task");
    let threads = std::fs::read_dir(&folder).doing(|| format!("reading {folder}"))?;
    let times = threads.filter_map(std::io::Result::ok).map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
    });
    Ok(Duration::from_nanos(times.sum()))
}

/// How a start went.
#[derive(Debug)]
pub enum Start {
    /// It is at work.
    Running(Box<Running>),
    /// It can't run here; why.
    Missing(String),
}

impl System {
    /// Starts the system between a yard's cables, our pipeline with so many workers.
    ///
    /// # Errors
    /// It is there, and does not start.
    pub fn start(self, yard: &Yard, programs: &Programs, workers: usize) -> Result<Start> {
        match self {
            System::SwpipeAfPacket => sluice::swpipe(yard, programs, workers, "af-packet"),
            System::SwpipeAfXdp => sluice::swpipe(yard, programs, workers, "af-xdp"),
            System::Bmv2 => sluice::bmv2(yard, programs),
            System::OvsSystem => openvswitch::start(yard, programs, "system"),
            System::OvsAfXdp => openvswitch::start(yard, programs, "afxdp"),
            System::XdpRedirect => kernel::redirect(yard),
            System::TcMirred => kernel::mirred(yard),
        }
    }

    /// Whether it is our software pipeline.
    #[must_use]
    pub fn is_swpipe(self) -> bool {
        matches!(self, System::SwpipeAfPacket | System::SwpipeAfXdp)
    }

    /// Whether a process of its own forwards, not the kernel.
    #[must_use]
    pub fn has_process(self) -> bool {
        !matches!(self, System::XdpRedirect | System::TcMirred)
    }

    /// Whether it can carry frames this way.
    #[must_use]
    pub fn does(self, way: Way) -> bool {
        self != System::TcMirred || way == Way::ToAppliance
    }
}
