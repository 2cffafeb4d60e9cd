//! A port: an interface that has been made a wire, and the halves that workers take from it.

use super::interface::Interface;
use super::{IoError, Receiver, Sender, af_packet, offload};

/// Ways to a Linux interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backend {
    /// `AF_PACKET` with mmap rings; sees every tag.
    #[default]
    AfPacket,
}

/// An interface that is ready to be a port.
#[derive(Clone, Debug)]
pub struct Port {
    interface: Interface,
    backend: Backend,
    mtu: u32,
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
    Ok(Port { interface, backend, mtu })
}

impl Port {
    /// The interface.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The receiving half. It sees the frames from now on; take one per port.
    ///
    /// # Errors
    /// No permission, no memory, interface gone.
    pub fn receiver(&self) -> Result<Box<dyn Receiver>, IoError> {
        match self.backend {
            Backend::AfPacket => Ok(Box::new(af_packet::receiver(&self.interface, self.mtu)?)),
        }
    }

    /// A sending half, one for each worker.
    ///
    /// # Errors
    /// No permission, no memory, interface gone.
    pub fn sender(&self) -> Result<Box<dyn Sender>, IoError> {
        match self.backend {
            Backend::AfPacket => Ok(Box::new(af_packet::sender(&self.interface, self.mtu)?)),
        }
    }
}
