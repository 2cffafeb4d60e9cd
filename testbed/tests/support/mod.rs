//! A machine of one's own for a test: namespaces for network, mounts and processes, in which sluiced runs as on a device.
//! Needs root.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file is a crate that uses a part, and fails by panicking"
)]

#[path = "../../../cli/tests/support/glass.rs"]
mod glass;
#[path = "../../../cli/tests/support/terminal.rs"]
pub mod terminal;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Home of root on the machine.
pub const HOME: &str = "/run/home/root";

/// Whether tests with namespaces can run here; says so where they cannot.
pub fn can_run(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED {test}: namespaces need root");
    }
    root
}

/// The repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Where the binaries are.
pub fn binaries() -> PathBuf {
    let directory = Path::new(env!("CARGO_BIN_EXE_testbed")).parent().unwrap().to_owned();
    for program in ["sluiced", "sluice", "swpipe"] {
        let path = directory.join(program);
        assert!(path.exists(), "{} is not there: cargo build --workspace --bins", path.display());
    }
    directory
}

/// The machine. Dropping it ends everything on it.
pub struct Machine {
    holder: Child,
    pid: u32,
}

impl Machine {
    /// Starts it: interfaces eth1 to eth10, hosts at the links' ends, an appliance's cable at the pairs', no
    /// configuration, sluiced as its unit file has it.
    pub fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testbed"));
        command
            .args([
                "held",
                "unshare",
                "--net",
                "--mount",
                "--uts",
                "--ipc",
                "--pid",
                "--fork",
                "--mount-proc",
            ])
            .args(["--kill-child=KILL", "bash"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/machine.sh"))
            .env("BINARIES", binaries())
            .env("REPOSITORY", repository())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut holder = command.spawn().unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let ready = lines.next().transpose().unwrap();
        assert_eq!(ready.as_deref(), Some("ready"), "the machine does not start");
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let pid = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
        Machine { holder, pid }
    }

    /// A command on the machine, as root in his home.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.pid.to_string()])
            .args(["--net", "--mount", "--uts", "--ipc", "--pid", "--"])
            .args([
                "env",
                "-C",
                HOME,
                "-i",
                &format!("HOME={HOME}"),
                "USER=root",
                "LANG=C.UTF-8",
                "TERM=xterm",
            ])
            .arg("PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .arg(program);
        command
    }

    /// Runs a shell's lines up to the first that fails.
    pub fn shell(&self, lines: &str) -> Said {
        let mut command = self.command("bash");
        command.args(["-e", "-o", "pipefail", "-c", lines]);
        Said::of(command, "")
    }

    /// Puts a program, a line for sh, onto the machine.
    pub fn program(&self, name: &str, line: &str) {
        let mut tee = self.command("tee");
        tee.arg(format!("/run/bin/{name}"));
        assert_eq!(Said::of(tee, &format!("#!/bin/sh\n{line}\n")).status, Some(0));
        assert_eq!(self.shell(&format!("chmod +x /run/bin/{name}")).status, Some(0));
    }

    /// Gives lines to `sluice` on standard input.
    pub fn sluice(&self, lines: &str) -> Said {
        Said::of(self.command("sluice"), lines)
    }

    /// One command of the shell `sluice`, which must succeed.
    pub fn ask(&self, line: &str) -> String {
        let mut command = self.command("sluice");
        command.args(["-c", line]);
        let said = Said::of(command, "");
        assert_eq!(said.status, Some(0), "{line}: {}", said.text);
        said.text
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// Both outputs, in the order in which they came.
    pub text: String,
    /// Exit status; none after [`DEADLINE`] or a signal.
    pub status: Option<i32>,
}

impl Said {
    /// Of a command with this input.
    pub fn of(mut command: Command, input: &str) -> Self {
        let (mut output, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::piped()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        // Its copies of the pipe's end would keep it open.
        drop(command);
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let feeding = std::thread::spawn(move || {
            // One that ends early explains itself.
            let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
        });
        let reading = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = output.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let status = wait(&mut child);
        feeding.join().unwrap();
        Said { text: reading.join().unwrap(), status }
    }
}

/// Waits until something is so.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn wait(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + DEADLINE;
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status.code(),
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
