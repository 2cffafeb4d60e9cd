//! What stands in the middle as the data plane.

use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;
use swpipe::io::Backend;

use crate::lab::Programs;
use crate::netns::Run;

/// BMv2's program.
pub const BMV2: &str = "simple_switch_grpc";
/// Where BMv2 serves P4Runtime, in the balancer's namespace.
pub const BMV2_ADDRESS: &str = "127.0.0.1:9559";
/// Port of the controller on targets that run the compiled program.
const CPU_PORT: &str = "510";

/// A data plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DataPlane {
    /// The software pipeline, in a process of its own.
    Swpipe,
    /// The software pipeline, within the controller.
    #[value(skip)]
    Embedded,
    /// The compiled P4 program in the reference interpreter.
    P4ref,
    /// The compiled P4 program on BMv2.
    Bmv2,
}

impl DataPlane {
    /// Its name in reports and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DataPlane::Swpipe => "swpipe",
            DataPlane::Embedded => "embedded swpipe",
            DataPlane::P4ref => "p4ref",
            DataPlane::Bmv2 => "bmv2",
        }
    }

    /// Runs the compiled program, frame by frame on one core: it gets fewer sessions and slower keep-alives.
    #[must_use]
    pub fn is_slow(self) -> bool {
        matches!(self, DataPlane::P4ref | DataPlane::Bmv2)
    }

    /// Its queues to ports are short (64 packets), and what they drop between ingress and egress no counter has.
    #[must_use]
    pub fn drops_unseen(self) -> bool {
        self == DataPlane::Bmv2
    }

    /// Why it cannot be run on this machine, if so.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        (self == DataPlane::Bmv2 && on_path(BMV2).is_none()).then(|| format!("{BMV2} is not on PATH"))
    }

    /// What the controller is told about it.
    #[must_use]
    pub fn controller_arguments(self, run: &Run, io: Backend) -> Vec<String> {
        let socket = || format!("unix:{}", self.socket(run).display());
        let words = match self {
            DataPlane::Embedded => ["--embedded", "--io", name(io).as_str()].map(str::to_owned).to_vec(),
            DataPlane::Swpipe => vec!["--target".to_owned(), socket()],
            DataPlane::P4ref => vec!["--target".to_owned(), socket()],
            DataPlane::Bmv2 => vec!["--target".to_owned(), format!("grpc://{BMV2_ADDRESS}")],
        };
        let profile = self.is_slow().then(|| ["--target-profile", "bmv2"].map(str::to_owned));
        words.into_iter().chain(profile.into_iter().flatten()).collect()
    }

    fn socket(self, run: &Run) -> PathBuf {
        run.directory().join(format!("{}.sock", self.name()))
    }

    /// The command that runs it in the balancer's namespace `space`, given the project's programs, the
    /// site's configuration, and its ports with their numbers; `None` where the controller runs it.
    #[must_use]
    pub fn command(
        self,
        run: &Run,
        space: &str,
        programs: &Programs,
        site: &std::path::Path,
        ports: &[(usize, String)],
    ) -> Option<Command> {
        let named = ports.iter().map(|(number, interface)| format!("{number}@{interface}"));
        let listen = format!("unix:{}", self.socket(run).display());
        match self {
            DataPlane::Embedded => None,
            DataPlane::Swpipe => {
                let mut command = run.command(space, programs.directory.join("swpipe"));
                command.arg("run").arg("--config").arg(site).args(["--listen", &listen]);
                command.args(["--io", &name(programs.io)]);
                Some(command)
            }
            DataPlane::P4ref => {
                let mut command = run.agent(space, "p4ref");
                command.args(["--listen", &listen, "--cpu-port", CPU_PORT, "--device-id", "1"]);
                for port in named {
                    command.args(["--interface", &port]);
                }
                Some(command)
            }
            DataPlane::Bmv2 => {
                let mut command = run.command(space, BMV2);
                command.args(["--no-p4", "--device-id", "1", "--log-level", "off"]);
                // Of the machine, not of the namespace, unless it is said.
                let notifications = run.directory().join("bmv2.ipc");
                command.args(["--notifications-addr", &format!("ipc://{}", notifications.display())]);
                for port in named {
                    command.args(["-i", &port]);
                }
                command.args(["--", "--grpc-server-addr", BMV2_ADDRESS, "--cpu-port", CPU_PORT]);
                Some(command)
            }
        }
    }
}

/// As the programs' `--io` has it.
fn name(io: Backend) -> String {
    io.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// A program that PATH has.
#[must_use]
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}
