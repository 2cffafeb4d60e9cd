//! What can go wrong while a test bed is built, run or read.

use std::io;
use std::path::PathBuf;

/// An error of the test bed itself. A check that fails is not an error: it is a line of the report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, and to what.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A program that was run to its end reported a failure.
    #[error("`{command}` ended with {status}: {stderr}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status.
        status: String,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// A topology or scenario file is wrong.
    #[error("{file}: {reason}")]
    Input {
        /// The file, or the name of the shipped one.
        file: String,
        /// Which element is wrong, its value, and what would be right.
        reason: String,
    },
    /// A process of the test bed answered with an error or went away.
    #[error("{agent}: {reason}")]
    Agent {
        /// Which process.
        agent: String,
        /// What it said.
        reason: String,
    },
    /// Something awaited did not happen in time.
    #[error("waited {seconds:.1} s for {what}; last seen: {seen}")]
    Deadline {
        /// What was awaited.
        what: String,
        /// How long, in seconds.
        seconds: f64,
        /// The last observation.
        seen: String,
    },
    /// A program under test isn't where it was looked for.
    #[error("{program} is not in {}: build it, or name its directory with --bin-dir", dir.display())]
    MissingProgram {
        /// The program.
        program: String,
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// The CLI of the balancer refused a command or answered something else than expected.
    #[error("sluice -c {command:?}: {reason}")]
    Sluice {
        /// The command.
        command: String,
        /// What was wrong with the answer.
        reason: String,
    },
    /// A data plane under test refused its tables, or broke.
    #[error("{plane}: {reason}")]
    Plane {
        /// Which data plane.
        plane: String,
        /// What it said.
        reason: String,
    },
    /// The kernel does not take an XDP program, or what belongs to it.
    #[error(transparent)]
    Xdp(#[from] xdp::XdpError),
    /// The machine can't do what the test needs.
    #[error("{0}")]
    Unsupported(String),
}

/// Result of the test bed.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds what was being done to an I/O result.
pub trait Doing<T> {
    /// Names the operation for the error message.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Io { doing: what(), source: source.into() })
    }
}
