//! A port: an interface that has been made a wire, and the halves that workers take from it.

use super::af_packet::Rings;
use super::interface::Interface;
use super::{IoError, Receiver, Sender, af_packet, datalink, offload};

/// Ways to a Linux interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Backend {
    /// `AF_PACKET` with mmap rings; sees every tag.
    #[default]
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
}

/// An interface that is ready to be a port.
#[derive(Clone, Debug)]
pub struct Port {
    interface: Interface,
    backend: Backend,
    mtu: u32,
    rings: Rings,
}

/// Makes `interface` a port for frames of `mtu` bytes after the Ethernet header: offloads that alter frames go
/// off, the interface comes up, the host's own stack keeps silent on it.
///
/// # Errors
/// See [`IoError`]. The interface may be left changed; nothing else is held.
pub fn open(backend: Backend, interface: &str, mtu: u32) -> Result<Port, IoError> {
    let interface = Interface::find_with_mtu(interface, mtu)?;
    offload::turn_off(&interface.name)?;
    interface.bring_up()?;
    let port = Port { interface, backend, mtu, rings: Rings::among(1) };
    for notice in port.notices() {
        tracing::warn!(interface = %port.interface.name, "{notice}");
    }
    Ok(port)
}

impl Port {
    /// The same, as one of so many that share the memory for rings.
    #[must_use]
    pub fn among(self, ports: usize) -> Self {
        Port { rings: Rings::among(ports), ..self }
    }

    /// The interface.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// What to know about this port, also written to the log when it was opened.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        match self.backend {
            Backend::AfPacket => Vec::new(),
            Backend::Datalink => vec![Notice::TagsUnseen { interface: self.interface.name.clone() }],
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
        match self.backend {
            Backend::AfPacket => Ok(Box::new(af_packet::receiver(&self.interface, self.mtu, self.rings)?)),
            Backend::Datalink => Ok(Box::new(datalink::receiver(&self.interface)?)),
        }
    }

    /// A sending half, one for each worker.
    ///
    /// # Errors
    /// No permission, no memory, interface gone.
    pub fn sender(&self) -> Result<Box<dyn Sender>, IoError> {
        match self.backend {
            Backend::AfPacket => Ok(Box::new(af_packet::sender(&self.interface, self.mtu, self.rings)?)),
            Backend::Datalink => Ok(Box::new(datalink::sender(&self.interface, self.mtu)?)),
        }
    }
}
