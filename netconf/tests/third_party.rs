//! Clients that nobody here wrote: ncclient from PyPI and OpenSSH's `ssh`, over TCP.
//!
//! ncclient has a virtual environment of its own, made on first use under the target folder, or under
//! `SLUICE_VENV_DIR`. `SLUICE_OFFLINE=1` goes without where PyPI is out of reach.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod store;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use api::Role;
use netconf::{Credentials, Locks, PrivateKey, Server, Settings, credentials, host_key};
use russh::keys::Algorithm;
use russh::keys::key::safe_rng;
use russh::keys::ssh_key::LineEnding;
use store::{Shared, Store};
use tokio::net::TcpListener;

/// How long a client may take.
const DEADLINE: Duration = Duration::from_secs(300);

const NCCLIENT: [&str; 1] = ["ncclient==0.7.1"];

/// The Python with these packages, or why there is none.
fn python(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
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

/// A server that listens, and what a client needs.
struct Listening {
    store: Arc<Store>,
    server: Server<Shared>,
    address: SocketAddr,
    /// The administrator's private key, and its directory.
    key: PathBuf,
    directory: tempfile::TempDir,
}

impl Listening {
    async fn new(settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap();
        let path = directory.path().join("id");
        key.write_openssh_file(&path, LineEnding::LF).unwrap();
        let keys = vec!["broken".to_owned(), key.public_key().to_openssh().unwrap()];
        let user = |role, password| Credentials {
            role,
            keys: keys.clone(),
            password_hash: Some(credentials::hash(password).unwrap()),
        };
        let users = HashMap::from([
            ("admin".to_owned(), user(Role::Admin, "secret")),
            ("guest".to_owned(), user(Role::ReadOnly, "guess")),
            ("late".to_owned(), user(Role::Admin, "late")),
        ]);
        let store = Store::new(users);
        let host_key = host_key::load_or_make(directory.path()).unwrap();
        let server =
            Server::new(Arc::new(Shared(Arc::clone(&store))), Arc::new(Locks::default()), host_key, settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, std::future::pending()).await });
        Self { store, server, address, key: path, directory }
    }

    /// Runs a part of the script.
    async fn python(&self, part: &str) {
        let python = match python("ncclient", &NCCLIENT) {
            Ok(python) => python,
            Err(reason) if std::env::var_os("SLUICE_OFFLINE").is_some() => {
                eprintln!("without ncclient: {reason}");
                return;
            }
            Err(reason) => panic!("{reason}"),
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party/life.py");
        let mut command = tokio::process::Command::new(python);
        command.arg(script).arg(self.address.port().to_string()).arg(&self.key).arg(part);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(DEADLINE, command.output()).await.expect("in time").unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.ends_with("ok\n"), "{part}: {out}\n{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ncclient_edits_and_commits() {
    Listening::new(Settings::default()).await.python("thin").await;
}
