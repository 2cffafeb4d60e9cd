//! Clients from PyPI, in virtual environments of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python with these packages, made on first use under the target folder or `SLUICE_VENV_DIR`; why there is none
/// where `SLUICE_OFFLINE=1` goes without.
pub fn python(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let made = make(name, packages);
    if let Err(reason) = &made
        && std::env::var_os("SLUICE_OFFLINE").is_none_or(|value| value != "1")
    {
        panic!(
            "{reason}\nthis test needs python3 with venv and pip, and PyPI; set SLUICE_OFFLINE=1 to go without"
        );
    }
    made
}

fn make(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let root = std::env::var_os("SLUICE_VENV_DIR")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("venv"), PathBuf::from);
    let venv = root.join(name);
    let python = venv.join("bin/python");
    if !python.exists() {
        std::fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
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
