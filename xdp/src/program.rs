//! Loaded programs.

use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::assembler::Instruction;
use crate::error::XdpError;
use crate::sys;

/// What a program says of a frame (`enum xdp_action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Action {
    /// Drop it, as a fault of the program.
    Aborted = 0,
    /// Drop it.
    Drop = 1,
    /// To the kernel's stack.
    Pass = 2,
    /// Out by the interface that it came in by.
    Transmit = 3,
    /// To what a redirect helper was told.
    Redirect = 4,
}

impl Action {
    const fn from_verdict(verdict: u32) -> Self {
        match verdict {
            1 => Action::Drop,
            2 => Action::Pass,
            3 => Action::Transmit,
            4 => Action::Redirect,
            // The kernel takes unknown ones as this too.
            _ => Action::Aborted,
        }
    }
}

/// What a trial run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What becomes of the frame.
    pub action: Action,
    /// The frame as the program left it.
    pub frame: Vec<u8>,
}

/// How often a program is run over a frame that is real then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRun {
    /// Frames.
    pub frames: u32,
    /// Frames at once, 1..=256; 0 is the kernel's default, 64.
    pub batch: u32,
    /// The interface that they seem to have come in by, of the calling thread's network namespace. It must be up.
    pub interface: NonZeroU32,
    /// Its queue likewise.
    pub queue: u32,
}

/// A program that the kernel has taken.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Program {
    /// Loads a program. The name is for messages and `ip link`; the kernel sees 15 bytes of it at most.
    ///
    /// # Errors
    /// [`XdpError::Rejected`] with the verifier's reasons, or no permission.
    pub fn load(name: &str, code: &[Instruction]) -> Result<Self, XdpError> {
        sys::load(name, code).map(Program)
    }

    /// Runs the program once over a copy of a frame, 14 bytes or more; nothing leaves.
    ///
    /// # Errors
    /// What the kernel says of the frame.
    pub fn run(&self, frame: &[u8]) -> Result<Verdict, XdpError> {
        let (verdict, frame) = sys::trial_run(self.0.as_fd(), frame)
            .map_err(|error| XdpError::from_system("run an XDP program on trial", error))?;
        Ok(Verdict { action: Action::from_verdict(verdict), frame })
    }

    /// Runs the program over copies of a frame, and the kernel does what it says with each: transmit, redirect, pass to
    /// the stack. Each copy is made once and its memory used again and again, so what the program writes
    /// into a frame may be there the next time. The calling thread does the work, and nothing else meanwhile.
    ///
    /// # Errors
    /// A frame that does not fit into a page with its head room, an interface that is down or has no such queue, a batch
    /// above 256.
    pub fn run_live(&self, frame: &[u8], how: LiveRun) -> Result<(), XdpError> {
        sys::live_run(self.0.as_fd(), frame, &how)
            .map_err(|error| XdpError::from_system("run an XDP program over live frames", error))
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
