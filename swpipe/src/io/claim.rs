//! The claim on an interface: two pipelines on the same interfaces would each forward every frame.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};

use super::error::IoError;

/// An interface that no other pipeline of the network namespace can claim before this is dropped.
///
/// It is an abstract Unix socket (unix(7)) that nobody can connect to. Abstract names belong to a network
/// namespace, as interfaces do, and the kernel gives them back however the process ends.
#[derive(Debug)]
pub struct Claim {
    _socket: OwnedFd,
}

impl Claim {
    /// Claims an interface by its name, whether it exists or not.
    ///
    /// # Errors
    /// [`IoError::Claimed`] where another pipeline, or this one, has it; or what the kernel says.
    pub fn take(interface: &str) -> Result<Self, IoError> {
        let say = |error: Errno| match error {
            Errno::EADDRINUSE => IoError::Claimed { interface: interface.to_owned() },
            error => IoError::from_system(interface, "claim it", error.into()),
        };
        let address = UnixAddr::new_abstract(format!("sluice-port-{interface}").as_bytes()).map_err(say)?;
        let socket =
            socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).map_err(say)?;
        bind(socket.as_raw_fd(), &address).map_err(say)?;
        Ok(Claim { _socket: socket })
    }
}
