//! For tests: clients that nobody here wrote, from PyPI, each in a virtual environment of its own.
//!
//! They are made on first use under the target folder, or under `SLUICE_VENV_DIR`. `SLUICE_OFFLINE=1` goes without
//! where PyPI is out of reach.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

/// The Python of the environment with this name, which has these packages; `None`, and a line that says so, where it
/// cannot be made and `SLUICE_OFFLINE=1` is set.
///
/// # Panics
/// Where it cannot be made otherwise.
#[must_use]
#[allow(clippy::panic, reason = "a test that cannot be run fails")]
pub fn python(name: &str, packages: &[&str]) -> Option<PathBuf> {
    match make(name, packages) {
        Ok(python) => Some(python),
        Err(reason) if std::env::var_os("SLUICE_OFFLINE").is_some_and(|value| value == "1") => {
            println!("skipped: SLUICE_OFFLINE=1 and {name} is not at hand: {reason}");
            None
        }
        Err(reason) => panic!(
            "cannot install {name}: {reason}\n\
             this test needs python3 with venv and pip, and PyPI; set SLUICE_OFFLINE=1 to go without"
        ),
    }
}

/// Where environments are.
fn root() -> Result<PathBuf, String> {
    if let Some(root) = std::env::var_os("SLUICE_VENV_DIR") {
        return Ok(root.into());
    }
    // A test runs as target/PROFILE/deps/TEST.
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = test.ancestors().nth(3).ok_or("the test does not run from a target folder")?;
    Ok(target.join("tmp/venv"))
}

fn make(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let root = root()?;
    fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    // Other tests want it at the same time.
    let lock = root.join(format!("{name}.lock"));
    let file = File::create(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let _alone = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.to_string())?;
    let venv = root.join(name);
    let python = venv.join("bin/python");
    if !python.exists() {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    // pip leaves a satisfied environment alone, without asking PyPI.
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    succeed(Command::new(&python).args(install).args(packages))?;
    Ok(python)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
