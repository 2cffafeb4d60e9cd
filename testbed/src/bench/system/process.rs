//! A program beside the bench, with its log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench::pin;
use crate::error::{Doing, Error, Result};
use crate::netns::Run;

const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// A running program. Dropping this ends it.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

/// A command that runs in a namespace on the core of the system under test.
pub(super) fn pinned(run: &Run, space: &str, program: &Path) -> Command {
    let mut command = run.command(space, "taskset");
    command.args(["--cpu-list", &pin::SYSTEM.to_string()]).arg(program);
    command
}

impl Process {
    /// Starts it; what it writes goes to a file of the run.
    pub(super) fn start(run: &Run, name: &str, mut command: Command) -> Result<Process> {
        let log = run.directory().join(format!("{name}.log"));
        let file = File::create(&log).doing(|| format!("making {}", log.display()))?;
        let again = file.try_clone().doing(|| format!("opening {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        let child = command.spawn().doing(|| format!("starting {name}"))?;
        Ok(Process { name: name.to_owned(), child, log })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails when it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait().doing(|| format!("asking after {}", self.name))? else {
            return Ok(());
        };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(6)..].join("\n");
        Err(Error::Agent {
            agent: self.name.clone(),
            reason: format!("ended with {status}; its log ends:\n{tail}"),
        })
    }

    /// Waits until `there`, while it runs.
    pub(super) fn await_that(&mut self, what: &str, mut there: impl FnMut(&str) -> bool) -> Result<()> {
        let began = Instant::now();
        loop {
            self.check()?;
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            if there(&log) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::Deadline {
                    what: format!("{} {what}", self.name),
                    seconds: PATIENCE.as_secs_f64(),
                    seen: log.lines().last().unwrap_or("nothing").to_owned(),
                });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
