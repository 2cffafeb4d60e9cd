//! A port: an interface that has been made a wire, and the halves that workers take from it.

use std::sync::Arc;

use super::af_packet::Rings;
use super::af_xdp::{AfXdpFault, Share, Wire};
use super::ethtool::Ethtool;
use super::interface::Interface;
use super::{IoError, Receiver, Sender, af_packet, datalink, offload};

/// The driver of virtual wires between network namespaces.
const VETH: &str = "veth";

/// Ways to a Linux interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Backend {
    /// `AF_XDP` where the driver has XDP and all that it takes is there, else `AF_PACKET`.
    #[default]
    Auto,
    /// `AF_XDP`: frames before the kernel makes packets of them, without a copy between a worker's ports.
    AfXdp,
    /// `AF_PACKET` with mmap rings; sees every tag.
    AfPacket,
    /// pnet's portable datalink; does not see tagged frames.
    Datalink,
}

/// What whoever starts a port should know about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// The back end cannot see tags.
    #[error(
        "interface {interface}: the datalink back end cannot see VLAN tags, which Linux takes out of every frame (0x8100 and 0x88a8) before this back end reads it; tagged frames are not received on this port and are lost; use the AF_PACKET back end where there are any"
    )]
    TagsUnseen {
        /// Name of the interface.
        interface: String,
    },
    /// XDP sees what is in a frame, and a peer's stack leaves work to offloads that a veth does not do.
    #[error(
        "interface {interface}: a veth port with AF_XDP does not see VLAN tags and finished checksums that its peer's stack leaves to offloads; turn them off on the peer (`ethtool -K PEER txvlan off tx off`), or use the AF_PACKET back end"
    )]
    PeerOffloads {
        /// Name of the interface.
        interface: String,
    },
}

/// An interface that is ready to be a port.
#[derive(Clone, Debug)]
pub struct Port {
    interface: Interface,
    backend: Backend,
    mtu: u32,
    rings: Rings,
    is_veth: bool,
    /// Of an AF_XDP port.
    wire: Option<Arc<Wire>>,
}

/// Makes `interface` a port for frames of `mtu` bytes after the Ethernet header: offloads that alter frames go
/// off, the interface comes up, the host's own stack keeps silent on it.
///
/// # Errors
/// See [`IoError`]. The interface may be left changed; nothing else is held.
pub fn open(backend: Backend, interface: &str, mtu: u32) -> Result<Port, IoError> {
    open_among(backend, interface, mtu, &Share::default(), 1)
}

/// The same, as one of so many ports that share the memory for rings; `share` is that of the worker that will have the
/// receiver.
///
/// # Errors
/// As [`open`].
pub fn open_among(
    backend: Backend,
    interface: &str,
    mtu: u32,
    share: &Share,
    ports: usize,
) -> Result<Port, IoError> {
    let interface = Interface::find_with_mtu(interface, mtu)?;
    offload::turn_off(&interface.name)?;
    interface.bring_up()?;
    // Not every driver has a name.
    let driver = Ethtool::open(&interface.name)?.driver().unwrap_or_default();
    let is_veth = driver == VETH;
    let wire = |may_be_generic| Wire::open(&interface, mtu, ports, share, may_be_generic);
    let (backend, wire) = match backend {
        Backend::AfXdp => {
            let wire = wire(true).map_err(|fault| of_af_xdp(&interface.name, fault))?;
            (backend, Some(wire))
        }
        Backend::Auto => match (!is_veth).then(|| wire(false)) {
            Some(Ok(wire)) => (Backend::AfXdp, Some(wire)),
            Some(Err(fault)) => {
                tracing::info!(interface = %interface.name, driver, %fault, "AF_PACKET, not AF_XDP");
                (Backend::AfPacket, None)
            }
            None => {
                let reason = "a veth's peer may leave tags to offloads, which XDP does not see";
                tracing::info!(interface = %interface.name, driver, reason, "AF_PACKET, not AF_XDP");
                (Backend::AfPacket, None)
            }
        },
        Backend::AfPacket | Backend::Datalink => (backend, None),
    };
    let port = Port { interface, backend, mtu, rings: Rings::among(ports), is_veth, wire };
    for notice in port.notices() {
        tracing::warn!(interface = %port.interface.name, "{notice}");
    }
    Ok(port)
}

fn of_af_xdp(interface: &str, fault: AfXdpFault) -> IoError {
    match fault {
        AfXdpFault::Interface(error) => error,
        fault => IoError::AfXdp { interface: interface.to_owned(), source: Box::new(fault) },
    }
}

impl Port {
    /// The interface.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// What to know about this port, also written to the log when it was opened.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        let interface = || self.interface.name.clone();
        match self.backend {
            Backend::AfXdp if self.is_veth => vec![Notice::PeerOffloads { interface: interface() }],
            Backend::Auto | Backend::AfXdp | Backend::AfPacket => Vec::new(),
            Backend::Datalink => vec![Notice::TagsUnseen { interface: interface() }],
        }
    }

    /// The back end that it has, for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.wire, self.backend) {
            (Some(wire), _) => wire.describe(),
            (None, Backend::Datalink) => "datalink".to_owned(),
            (None, _) => "AF_PACKET".to_owned(),
        }
    }

    /// Longest frame that its halves are laid out for, in bytes after the Ethernet header.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// The receiving half. It sees the frames from now on; take one per port.
    ///
    /// # Errors
    /// No permission, no memory, interface gone.
    pub fn receiver(&self) -> Result<Box<dyn Receiver>, IoError> {
        let mut receiver = self.held_receiver()?;
        receiver
            .release()
            .map_err(|error| IoError::from_system(&self.interface.name, "take frames", error))?;
        Ok(receiver)
    }

    /// A receiving half that sees the frames from its [`Receiver::release`] on.
    ///
    /// # Errors
    /// No permission, no memory, interface gone.
    pub fn held_receiver(&self) -> Result<Box<dyn Receiver>, IoError> {
        match (&self.wire, self.backend) {
            (Some(wire), _) => Ok(Box::new(wire.receiver(self.mtu)?)),
            (None, Backend::Datalink) => Ok(Box::new(datalink::receiver(&self.interface)?)),
            (None, _) => Ok(Box::new(af_packet::receiver(&self.interface, self.mtu, self.rings)?)),
        }
    }

    /// A sending half for the worker that has the receiver, and whose frames therefore need not be copied; as
    /// [`Port::sender`] where there is nothing to gain.
    ///
    /// # Errors
    /// As [`Port::sender`].
    pub fn owner_sender(&self) -> Result<Box<dyn Sender>, IoError> {
        match &self.wire {
            Some(wire) => Ok(Box::new(wire.sender())),
            None => self.sender(),
        }
    }

    /// A sending half, one for each worker.
    ///
    /// # Errors
    /// No permission, no memory, interface gone.
    pub fn sender(&self) -> Result<Box<dyn Sender>, IoError> {
        match self.backend {
            Backend::Datalink => Ok(Box::new(datalink::sender(&self.interface, self.mtu)?)),
            // A queue of AF_XDP is one worker's; the others are beside it.
            _ => Ok(Box::new(af_packet::sender(&self.interface, self.mtu, self.rings)?)),
        }
    }
}
