//! What can go wrong.

use std::io;

/// Why the kernel, or the assembler, does not take something.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The process may not do this.
    #[error("no permission to {doing}; run as root or with the capabilities CAP_BPF and CAP_NET_ADMIN")]
    Permission {
        /// What was being done.
        doing: String,
    },
    /// The driver, or the interface as it is set up, has no place for a program of this mode.
    #[error(
        "cannot {doing}: {source}; the driver has no XDP of this mode, or not with the interface's MTU and queues"
    )]
    Unsupported {
        /// What was being done.
        doing: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// Another program is there.
    #[error(
        "cannot {doing}: another XDP program is attached; `ip link show` names it, `ip link set dev IF xdp off` takes it away"
    )]
    Occupied {
        /// What was being done.
        doing: String,
    },
    /// The verifier does not take the program.
    #[error("the kernel does not take the program {program}: {source}; the end of its reasons:\n{log}")]
    Rejected {
        /// Name of the program.
        program: String,
        /// What the kernel says.
        source: io::Error,
        /// The verifier's last lines.
        log: String,
    },
    /// A jump to a label that was never placed, or too far.
    #[error("instruction {at} jumps to a label that {fault}")]
    Jump {
        /// Position of the jump.
        at: usize,
        /// What is wrong.
        fault: &'static str,
    },
    /// A value that the call cannot take.
    #[error("cannot {doing}: {what} is {actual}, must be {right}")]
    Value {
        /// What was being done.
        doing: String,
        /// What has the value.
        what: &'static str,
        /// The value.
        actual: usize,
        /// What would be right.
        right: String,
    },
    /// Anything else that the kernel refuses.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// What the kernel says.
        source: io::Error,
    },
}

impl XdpError {
    /// Sorts what the kernel said.
    pub(crate) fn from_system(doing: impl Into<String>, source: io::Error) -> Self {
        let doing = doing.into();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => XdpError::Permission { doing },
            _ => XdpError::System { doing, source },
        }
    }
}
