//! What can go wrong when a port is opened.

use std::io;

use super::af_xdp::AfXdpFault;
use super::offload::OffloadError;

/// Why a port cannot be used. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// No interface of this name in the network namespace.
    #[error(
        "interface {interface}: there is no such interface here; create it or correct the name (`ip link` lists what is there)"
    )]
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// Another pipeline forwards by it; two would multiply every frame.
    #[error(
        "interface {interface}: another pipeline in this network namespace has it; stop that one, or give this port another interface"
    )]
    Claimed {
        /// Name of the interface.
        interface: String,
    },
    /// The process may not do this.
    #[error(
        "interface {interface}: no permission to {doing}; run as root or with the capabilities CAP_NET_RAW and CAP_NET_ADMIN"
    )]
    Permission {
        /// Name of the interface.
        interface: String,
        /// What was being done.
        doing: &'static str,
    },
    /// Loopback, tunnels and other interfaces whose frames have no Ethernet header.
    #[error(
        "interface {interface}: not an Ethernet interface (ARPHRD type {kind}); ports are Ethernet interfaces"
    )]
    NotEthernet {
        /// Name of the interface.
        interface: String,
        /// Its ARPHRD type.
        kind: u16,
    },
    /// The interface carries less than the port is configured for.
    #[error(
        "interface {interface}: its MTU is {actual}, but the port's is {wanted}; `ip link set dev {interface} mtu {wanted}`, or configure {actual} or less"
    )]
    InterfaceMtu {
        /// Name of the interface.
        interface: String,
        /// Its MTU.
        actual: u32,
        /// The port's configured MTU.
        wanted: u32,
    },
    /// A port MTU that no ring is laid out for.
    #[error("interface {interface}: mtu {mtu} is outside of {min}..={max}", min = super::MTU_MIN, max = super::MTU_MAX)]
    MtuRange {
        /// Name of the interface.
        interface: String,
        /// The MTU asked for.
        mtu: u32,
    },
    /// An offload that alters frames is on and stays on.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// AF_XDP was asked for by name.
    #[error("interface {interface}: no AF_XDP: {source}; or use the back end auto or af-packet")]
    AfXdp {
        /// Name of the interface.
        interface: String,
        /// The reason.
        source: Box<AfXdpFault>,
    },
    /// Anything else that the kernel refuses.
    #[error("interface {interface}: cannot {doing}: {source}")]
    System {
        /// Name of the interface.
        interface: String,
        /// What was being done.
        doing: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

impl IoError {
    /// Sorts what the kernel said while `doing` something to `interface`.
    pub(super) fn from_system(interface: &str, doing: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => IoError::Permission { interface, doing },
            Some(libc::ENODEV | libc::ENXIO) => IoError::NoInterface { interface },
            _ => IoError::System { interface, doing, source },
        }
    }
}
