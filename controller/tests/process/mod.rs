//! `sluiced` as a program, and a data plane for it: tables behind a P4Runtime server.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Client, Request};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use swpipe::device::Device;
use swpipe::server::{Listen, Server, Serving};

pub(crate) const SITE: &str = include_str!("../../../configs/examples/site.json");

/// A running sluiced; it is killed when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) socket: PathBuf,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluiced"));
    command
        .arg("--config")
        .arg(dir.join("site.json"))
        .arg("--socket")
        .arg(dir.join("sluice.sock"))
        .arg("--state-dir")
        .arg(dir.join("state"))
        .stderr(Stdio::piped());
    command
}

impl Daemon {
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = command(dir)
            .arg("--target")
            .arg(format!("unix:{}", dir.join("p4rt.sock").display()))
            .spawn()
            .unwrap();
        // Its log must not fill the pipe.
        let mut log = child.stderr.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let daemon = Daemon { child, socket: dir.join("sluice.sock") };
        until("the socket", || Client::connect(&daemon.socket).is_ok());
        daemon
    }

    pub(crate) fn ask(&self, request: &Request) -> Result<Value, String> {
        let mut client = Client::connect(&self.socket).map_err(|error| error.to_string())?;
        client.ask(request).map_err(|error| error.to_string())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub(crate) fn target(&self) -> Value {
        self.ask(&Request::ShowTarget).unwrap()
    }

    pub(crate) fn cores(&self) -> Value {
        self.ask(&Request::ShowConfiguration).unwrap()["sluice:ecofilter-balancer"]["ecofilter-unit"][0]["cores"]
            .clone()
    }

    pub(crate) fn events(&self) -> String {
        self.ask(&Request::ShowEvents { after: 0, last: None, filter: api::EventFilter::default() })
            .unwrap()
            .to_string()
    }
}

/// Waits for an event, twenty seconds at most.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A data plane: tables behind a P4Runtime server.
pub(crate) struct Plane {
    pub(crate) device: Arc<Device>,
    _serving: Serving,
    _server: Server,
    runtime: tokio::runtime::Runtime,
}

impl Plane {
    pub(crate) fn start(dir: &Path, device: Arc<Device>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = Server::new(device.clone(), 1, None);
        let listen: Listen = format!("unix:{}", dir.join("p4rt.sock").display()).parse().unwrap();
        let serving = runtime.block_on(server.listen(&listen)).unwrap();
        Plane { device, _serving: serving, _server: server, runtime }
    }

    pub(crate) fn entries(&self) -> usize {
        self.device.entries(None).len()
    }

    /// Ends it, with everything that is connected.
    pub(crate) fn stop(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(2));
    }
}

pub(crate) fn site_dir(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("site.json"), text).unwrap();
    dir
}
