//! Who runs on which core.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::error::{Doing, Error, Result};

/// Of the generator, and with it of what a port does when frames arrive, as an interrupt would.
pub const GENERATOR: usize = 0;
/// Of the system under test.
pub const SYSTEM: usize = 1;

/// Fails on a machine without these two cores.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn check() -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > SYSTEM {
        return Ok(());
    }
    Err(Error::Unsupported(format!("the bench takes {} cores, this process may use {cores}", SYSTEM + 1)))
}

/// Binds the calling thread to a core.
///
/// # Errors
/// No such core.
pub fn pin_to(core: usize) -> Result<()> {
    pin(Pid::from_raw(0), core)
}

/// Binds a thread to a core.
///
/// # Errors
/// No such core, or no such thread.
pub fn pin(thread: Pid, core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core).doing(|| format!("naming core {core}"))?;
    sched_setaffinity(thread, &set).doing(|| format!("binding thread {thread} to core {core}"))
}

/// Binds the kernel threads that serve an interface (threaded NAPI) to a core; their ids.
///
/// # Errors
/// There is none of them.
pub fn pin_port_threads(interface: &str, core: usize) -> Result<Vec<u32>> {
    let prefix = format!("napi/{interface}-");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").doing(|| "reading /proc".into())?.filter_map(std::io::Result::ok)
    {
        let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with(&prefix) {
            pin(Pid::from_raw(thread), core)?;
            found.push(thread.unsigned_abs());
        }
    }
    if found.is_empty() {
        return Err(Error::Unsupported(format!(
            "the kernel has no thread for interface {interface}: threaded NAPI is off"
        )));
    }
    Ok(found)
}
