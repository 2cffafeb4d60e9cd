//! A program on an interface.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::XdpError;
use crate::program::Program;
use crate::sys;

/// Where a program stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel makes a packet of the frame.
    Native,
    /// In the kernel's stack, with every driver: slower, and frames are copied.
    Generic,
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::Generic => "generic",
        }
    }
}

/// A program at work on an interface. It goes when this is dropped, when the process ends, in whatever way, and with
/// the interface.
#[derive(Debug)]
pub struct Attachment {
    link: OwnedFd,
    mode: Mode,
}

impl Attachment {
    /// Attaches to the interface of this index, of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`XdpError::Unsupported`] where the driver has no XDP of this mode, or not as the interface is set up;
    /// [`XdpError::Occupied`]; no such interface; no permission.
    pub fn to(program: &Program, interface: NonZeroU32, mode: Mode) -> Result<Self, XdpError> {
        let flags = match mode {
            Mode::Native => sys::NATIVE,
            Mode::Generic => sys::GENERIC,
        };
        let doing = || format!("attach {} XDP to interface {interface}", mode.as_str());
        let link = sys::link(program.as_fd(), interface.get(), flags).map_err(|source: io::Error| {
            match source.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => XdpError::Occupied { doing: doing() },
                Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE | libc::ENOSPC | libc::E2BIG) => {
                    XdpError::Unsupported { doing: doing(), source }
                }
                _ => XdpError::from_system(doing(), source),
            }
        })?;
        Ok(Attachment { link, mode })
    }

    /// Where the program stands.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Puts another program in the place of this one; no frame falls between them.
    ///
    /// # Errors
    /// The interface is gone, or what the kernel says.
    pub fn replace(&self, program: &Program) -> Result<(), XdpError> {
        sys::replace(self.link.as_fd(), program.as_fd())
            .map_err(|error| XdpError::from_system("replace an attached program", error))
    }
}

impl AsFd for Attachment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}
