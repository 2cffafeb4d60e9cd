//! Network namespaces of one run: made, found, and removed also when the run was killed.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::clock::now_ns;
use crate::error::{Doing, Error, Result};

const STATE: &str = "/run/sluice-testbed";
const MOUNTED: &str = "/run/netns";

/// The namespaces and files of one run. Dropping it removes everything.
#[derive(Debug)]
pub struct Run {
    id: String,
    directory: PathBuf,
    program: PathBuf,
    keep: AtomicBool,
}

impl Run {
    /// Registers a run of this process; removes leftovers of dead ones first. `program` is the `testbed` binary,
    /// which is started again inside the namespaces.
    ///
    /// # Errors
    /// When not root, or /run can't be written.
    pub fn start(program: PathBuf) -> Result<Self> {
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::Unsupported(
                "network namespaces need root: run the test bed as root (or with sudo)".into(),
            ));
        }
        remove_leftovers()?;
        let pid = std::process::id();
        let mut hasher = DefaultHasher::new();
        (pid, now_ns()).hash(&mut hasher);
        let id = format!("sl{:05x}", hasher.finish() & 0xf_ffff);
        let directory = Path::new(STATE).join(&id);
        fs::create_dir_all(&directory).doing(|| format!("making {}", directory.display()))?;
        let owner = format!("{pid} {}\n", start_time(pid).unwrap_or_default());
        fs::write(directory.join("owner"), owner).doing(|| format!("writing {}", directory.display()))?;
        Ok(Run { id, directory, program, keep: AtomicBool::new(false) })
    }

    /// Start of every namespace's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// For sockets, logs and configuration of this run.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Leaves the directory (logs, configuration) behind when the run ends; namespaces go all the same.
    pub fn keep_directory(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// Full name of one of the run's namespaces.
    pub fn name(&self, short: &str) -> String {
        format!("{}-{short}", self.id)
    }

    /// A command that runs in a namespace and dies with this process.
    pub fn command(&self, short: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["held", "ip", "netns", "exec", &self.name(short)]).arg(program);
        command
    }

    /// One of our own agents in a namespace.
    pub fn agent(&self, short: &str, subcommand: &str) -> Command {
        let mut command = self.command(short, &self.program);
        command.arg(subcommand);
        command
    }

    /// Runs a function in a namespace, on a thread of its own.
    ///
    /// # Errors
    /// The function's, or when the namespace can't be entered.
    pub fn inside<T: Send>(&self, short: &str, run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let name = self.name(short);
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                let file = Path::new(MOUNTED).join(&name);
                let namespace = fs::File::open(&file).doing(|| format!("opening {}", file.display()))?;
                setns(namespace, CloneFlags::CLONE_NEWNET).doing(|| format!("entering {name}"))?;
                run()
            });
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Sets kernel parameters of a namespace; a path is below /proc/sys.
    ///
    /// # Errors
    /// [`Error::Io`] names the parameter.
    pub fn set_parameters(&self, short: &str, parameters: &[(&str, &str)]) -> Result<()> {
        self.inside(short, || {
            for (path, value) in parameters {
                let file = Path::new("/proc/sys").join(path);
                fs::write(&file, value).doing(|| format!("writing {value} to {}", file.display()))?;
            }
            Ok(())
        })
    }

    /// Feeds lines to `ip -batch`, in a namespace or at the top.
    ///
    /// # Errors
    /// [`Error::Command`] with ip's message, which names the line.
    pub fn ip(&self, short: Option<&str>, lines: &[String]) -> Result<()> {
        let mut command = Command::new("ip");
        if let Some(short) = short {
            command.args(["-n", &self.name(short)]);
        }
        command.args(["-batch", "-"]);
        feed(command, &(lines.join("\n") + "\n")).map(drop)
    }

    /// Removes the namespaces, processes in them, and files of this run.
    pub fn remove(&self) {
        remove_namespaces(&self.id);
        if self.keep.load(Ordering::Relaxed) {
            // Without the owner's note nobody takes it for a leftover.
            let _ = fs::remove_file(self.directory.join("owner"));
        } else {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Removes the runs of this process when it gets SIGINT, SIGTERM or SIGHUP, and ends it. The first call counts and
/// must come before other threads start.
///
/// # Errors
/// When signals can't be blocked.
pub fn remove_on_signal() -> Result<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().doing(|| "blocking signals".into())?;
    std::thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            let own = std::process::id();
            for (id, directory, pid) in runs().into_iter().filter(|(_, _, pid)| *pid == Some(own)) {
                eprintln!("testbed: {signal}: removing {id} of process {}", pid.unwrap_or_default());
                remove_namespaces(&id);
                let _ = fs::remove_dir_all(directory);
            }
            std::process::exit(130);
        }
    });
    Ok(())
}

/// Every registered run with its directory, and its owner's process if that is alive.
fn runs() -> Vec<(String, PathBuf, Option<u32>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(STATE).into_iter().flatten().filter_map(std::io::Result::ok) {
        // Without an owner's note it is a directory of logs that somebody asked to keep.
        let Ok(owner) = fs::read_to_string(entry.path().join("owner")) else {
            continue;
        };
        let mut words = owner.split_whitespace();
        let pid = words.next().and_then(|word| word.parse().ok());
        let started = words.next();
        let alive = pid.filter(|pid| start_time(*pid).as_deref() == started && started.is_some());
        found.push((entry.file_name().to_string_lossy().into_owned(), entry.path(), alive));
    }
    found
}

impl Drop for Run {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Runs a command to its end with this input.
///
/// # Errors
/// [`Error::Command`] with what it wrote to standard error.
pub fn feed(mut command: Command, input: &str) -> Result<String> {
    let shown = format!("{command:?}").replace('"', "");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().doing(|| format!("starting `{shown}`"))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A child that ends early explains itself on standard error.
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().doing(|| format!("waiting for `{shown}`"))?;
    if !output.status.success() {
        return Err(Error::Command {
            command: shown,
            status: output.status.to_string(),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Removes what runs left behind whose process is gone; returns their ids.
///
/// # Errors
/// When a directory can't be removed.
pub fn remove_leftovers() -> Result<Vec<String>> {
    let mut removed = Vec::new();
    for (id, directory, _) in runs().into_iter().filter(|(_, _, alive)| alive.is_none()) {
        remove_namespaces(&id);
        fs::remove_dir_all(&directory).doing(|| format!("removing {}", directory.display()))?;
        removed.push(id);
    }
    Ok(removed)
}

/// Names of namespaces that belong to a run.
pub fn namespaces(id: &str) -> Vec<String> {
    let prefix = format!("{id}-");
    let entries = fs::read_dir(MOUNTED).into_iter().flatten().filter_map(std::io::Result::ok);
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

fn remove_namespaces(id: &str) {
    for name in namespaces(id) {
        let listed = Command::new("ip").args(["netns", "pids", &name]).output();
        let pids =
            listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        for pid in pids.split_whitespace().filter_map(|word| word.parse().ok()) {
            if pid != std::process::id() as i32 {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        let _ = Command::new("ip").args(["netns", "del", &name]).status();
    }
}

/// When a process started (field 22 of /proc/PID/stat), which tells a reused number from the old process.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(19).map(str::to_string)
}

/// Becomes `command`, with default signals, in a process group of its own, ending when the parent does.
///
/// # Errors
/// Only returns when that failed.
pub fn hold(command: &[String]) -> Result<()> {
    use std::os::unix::process::CommandExt;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::Unsupported("held: no command given".into()));
    };
    let parent = std::os::unix::process::parent_id();
    SigSet::all().thread_unblock().doing(|| "unblocking signals".into())?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).doing(|| "asking to die with the parent".into())?;
    if std::os::unix::process::parent_id() != parent {
        return Err(Error::Unsupported("held: the parent is gone already".into()));
    }
    nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0)).doing(|| "leaving the process group".into())?;
    Err(Command::new(program).args(arguments).exec()).doing(|| format!("starting {program}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_known_for_us_and_not_for_nobody() {
        assert!(start_time(std::process::id()).is_some());
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn a_failing_command_is_quoted_with_its_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat >&2; exit 3"]);
        let error = feed(command, "no such thing").expect_err("fails").to_string();
        assert!(error.contains("exit status: 3") && error.contains("no such thing"), "{error}");
    }
}
