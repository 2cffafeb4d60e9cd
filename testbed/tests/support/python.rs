//! Clients from PyPI, in virtual environments of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python with ncclient and Ansible, and the folder of Ansible's collections; made on first use under the
/// target folder or `SLUICE_VENV_DIR`. Why there is none where `SLUICE_OFFLINE=1` goes without.
pub fn ansible() -> Result<(PathBuf, PathBuf), String> {
    or_offline(make_ansible())
}

fn or_offline<T>(made: Result<T, String>) -> Result<T, String> {
    if let Err(reason) = &made
        && std::env::var_os("SLUICE_OFFLINE").is_none_or(|value| value != "1")
    {
        panic!(
            "{reason}\nthis test needs python3 with venv and pip, and PyPI; set SLUICE_OFFLINE=1 to go without"
        );
    }
    made
}

/// The collections come in a package of all that there are, 50 MB, of which two are unpacked.
fn make_ansible() -> Result<(PathBuf, PathBuf), String> {
    let python = make("ansible", &["ansible-core==2.17.7", "ncclient==0.7.1"])?;
    let venv = python.parent().and_then(Path::parent).unwrap().to_owned();
    let collections = venv.join("collections");
    if !collections.join("complete").exists() {
        let wheel = venv.join("wheel");
        let download = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
        succeed(Command::new(&python).args(download).arg("--dest").arg(&wheel).arg("ansible==10.7.0"))?;
        succeed(Command::new(&python).args(["-c", UNPACK]).arg(&wheel).arg(&collections))?;
        std::fs::remove_dir_all(&wheel).map_err(|error| error.to_string())?;
        std::fs::write(collections.join("complete"), "").map_err(|error| error.to_string())?;
    }
    Ok((python, collections))
}

const UNPACK: &str = "
import pathlib, sys, zipfile
for wheel in pathlib.Path(sys.argv[1]).glob('*.whl'):
    with zipfile.ZipFile(wheel) as files:
        wanted = tuple(f'ansible_collections/ansible/{name}/' for name in ['netcommon', 'utils'])
        files.extractall(sys.argv[2], [name for name in files.namelist() if name.startswith(wanted)])
";

fn make(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let root = std::env::var_os("SLUICE_VENV_DIR")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("venv"), PathBuf::from);
    let venv = root.join(name);
    let python = venv.join("bin/python");
    // Tests of this program want it at the same time.
    static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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
