//! pyang, a compiler that nobody here wrote, has nothing to say about the modules.
//!
//! It comes from PyPI into a virtual environment under the target folder, or under `SLUICE_VENV_DIR`;
//! `SLUICE_OFFLINE=1` goes without where PyPI is out of reach.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PYANG: &str = "pyang==2.7.1";

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let text =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    Err(format!("{command:?}: {}\n{text}", output.status))
}

/// The folder of the environment's programs.
fn programs() -> Result<PathBuf, String> {
    let root = std::env::var_os("SLUICE_VENV_DIR")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("venv"), PathBuf::from);
    let programs = root.join("pyang/bin");
    if !programs.join("python").exists() {
        std::fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        run(Command::new("python3").args(["-m", "venv"]).arg(root.join("pyang")))?;
    }
    // pip leaves a satisfied environment alone, without asking PyPI.
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYANG];
    run(Command::new(programs.join("python")).args(install))?;
    Ok(programs)
}

#[test]
fn pyang_has_nothing_to_say() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(reason) if std::env::var_os("SLUICE_OFFLINE").is_some_and(|value| value == "1") => {
            println!("skipped: SLUICE_OFFLINE=1 and pyang is not at hand: {reason}");
            return;
        }
        Err(reason) => panic!(
            "cannot install pyang: {reason}\nthis test needs python3 with venv and pip, and PyPI; set SLUICE_OFFLINE=1 to go without"
        ),
    };
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/yang");
    for module in yang::MODULES {
        let mut pyang = Command::new(programs.join("python"));
        pyang.arg(programs.join("pyang")).args(["--strict", "--lint"]);
        // RFC 8407 wishes for an organisation's prefix in a module's name; `sluice` is the suite's own.
        pyang.args(["--ignore-error", "LINT_NO_MODULENAME_PREFIX"]);
        pyang.arg("--path").arg(&modules).arg(modules.join(format!("{}.yang", module.name)));
        let output = run(&mut pyang).unwrap_or_else(|reason| panic!("{reason}"));
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert_eq!(said, "", "{}", module.name);
    }
}
