//! Sluice's own data planes, programmed over P4Runtime as a controller does, with every pair up.

use std::process::Command;
use std::time::{Duration, Instant};

use dataplane::entry::{Entry, Update as Change};
use dataplane::target::SWPIPE;
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Options, PipelineAction, Session, Target};
use p4runtime::entry::{p4info_of, update_to_wire};
use p4runtime::proto::p4::v1::ForwardingPipelineConfig;
use serde_json::{Value, json};
use site::Site;

use super::process::{Process, pinned};
use super::{Programs, Running, Start};
use crate::appliance::Side;
use crate::bench::yard::{BOX, Yard, link_port, pair_port};
use crate::differential::reference::Compiled;
use crate::error::{Doing, Error, Result};
use crate::netns::feed;
use crate::p4ref::read_info;
use crate::plan::LANES;
use crate::plane::{BMV2, BMV2_ADDRESS, on_path};

const DEVICE: u64 = 1;
/// For a server to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// The software pipeline by one of its back ends.
pub(super) fn swpipe(yard: &Yard, programs: &Programs, workers: usize, io: &str) -> Result<Start> {
    let program = programs.directory.join("swpipe");
    if !program.is_file() {
        return Err(Error::MissingProgram { program: "swpipe".into(), dir: programs.directory.clone() });
    }
    let ask = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words);
        feed(command, "")
    };
    let (version, usage) = (ask(&["--version"])?, ask(&["run", "--help"])?);
    if !usage.contains(io) {
        return Ok(Start::Missing(format!("this swpipe has no --io {io}")));
    }
    let directory = yard.run().directory();
    let file = directory.join("site.json");
    let (site, text) = site(yard)?;
    std::fs::write(&file, text).doing(|| format!("writing {}", file.display()))?;
    // AF_XDP ports have a program of their own.
    let attachments = if io == "af-packet" { yard.let_ports_poll()? } else { Vec::new() };
    let socket = format!("unix:{}", directory.join("swpipe.sock").display());
    let mut command =
        if workers == 1 { pinned(yard.run(), BOX, &program) } else { yard.run().command(BOX, &program) };
    command.arg("run").arg("--config").arg(&file).args(["--listen", &socket, "--io", io]);
    command.args(["--workers", &workers.to_string()]);
    if workers > 1 {
        command.arg("--pin");
    }
    let mut process = Process::start(yard.run(), "swpipe", command)?;
    process.await_that("to be ready", |log| log.contains("ready"))?;
    let config = ForwardingPipelineConfig::new(p4info_of(&SWPIPE), Vec::new(), 1);
    yard.run().inside(BOX, || write_tables(&socket, config, &entries(&site)))?;
    Ok(Start::Running(Box::new(Running {
        forwarder: Some(process),
        attachments,
        version: version.trim().to_owned(),
        ..Running::default()
    })))
}

/// The compiled program in BMv2.
pub(super) fn bmv2(yard: &Yard, programs: &Programs) -> Result<Start> {
    let Some(program) = on_path(BMV2) else {
        return Ok(Start::Missing(format!("{BMV2} is not on PATH")));
    };
    let compiled = Compiled::load(&programs.compiled)?;
    let (site, _) = site(yard)?;
    let attachments = yard.let_ports_poll()?;
    yard.run().ip(Some(BOX), &["link set dev lo up".to_owned()])?;
    let mut command = pinned(yard.run(), BOX, &program);
    let notifications = yard.run().directory().join("bmv2.ipc");
    command.args(["--no-p4", "--device-id", &DEVICE.to_string(), "--log-level", "off"]);
    command.args(["--notifications-addr", &format!("ipc://{}", notifications.display())]);
    for (number, port) in yard.ports().iter().enumerate() {
        command.args(["-i", &format!("{}@{port}", number + LANES)]);
    }
    command.args(["--", "--grpc-server-addr", BMV2_ADDRESS, "--cpu-port", "510"]);
    let process = Process::start(yard.run(), "bmv2", command)?;
    let info = read_info(&compiled.p4info).map_err(|error| refused(BMV2, error))?;
    let config = ForwardingPipelineConfig::new(info, compiled.json.into_bytes(), 1);
    let address = format!("grpc://{BMV2_ADDRESS}");
    yard.run().inside(BOX, || write_tables(&address, config, &entries(&site)))?;
    Ok(Start::Running(Box::new(Running {
        forwarder: Some(process),
        attachments,
        version: BMV2.to_owned(),
        ..Running::default()
    })))
}

fn refused(plane: &str, reason: impl ToString) -> Error {
    Error::Plane { plane: plane.to_owned(), reason: reason.to_string() }
}

/// The configuration: one link, one unit with all pairs, one rule that sends everything to it.
fn site(yard: &Yard) -> Result<(Site, String)> {
    let ports: Vec<Value> = yard
        .ports()
        .iter()
        .enumerate()
        .map(|(at, port)| {
            json!({"name": port, "number": at / LANES + 1, "lane": at % LANES, "speed": "10g",
                   "mtu": if at < 2 { 1508 } else { 1512 }, "interface": port})
        })
        .collect();
    let pairs: Vec<Value> = (1..=yard.pairs())
        .map(|pair| {
            json!({"name": format!("pair{pair:03}"), "lan-port": pair_port(pair, Side::Lan),
                   "wan-port": pair_port(pair, Side::Wan)})
        })
        .collect();
    let text = json!({
        "sluice:port": ports,
        "sluice:liveness": {"profile": [{"name": "default"}]},
        "sluice:ecofilter-balancer": {
            "link": [{"name": "link1", "lan-port": link_port(Side::Lan), "wan-port": link_port(Side::Wan)}],
            "ecofilter-unit": [{"name": "main", "liveness-profile": "default", "pair": pairs}],
            "flow": [{"name": "rest", "priority": 1, "action": "to-ecofilter", "ecofilter-unit": "main"}],
        },
    })
    .to_string();
    let site = Site::from_json(&text).map_err(|error| refused("the bench's configuration", error))?;
    Ok((site, text))
}

fn entries(site: &Site) -> Vec<Entry> {
    swpipe::replay::entries(site, |_| true).1
}

/// Waits for the server and writes the tables. In the network namespace of the calling thread.
fn write_tables(address: &str, config: ForwardingPipelineConfig, entries: &[Entry]) -> Result<()> {
    let wrong = |error: &dyn std::fmt::Display| refused(address, error);
    let target: Target = address.parse().map_err(|error| wrong(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing(|| "starting a runtime".into())?;
    let updates = entries
        .iter()
        .cloned()
        .map(|entry| if entry.is_default { Change::Modify(entry) } else { Change::Insert(entry) })
        .map(|change| update_to_wire(&change))
        .collect();
    runtime.block_on(async {
        let began = Instant::now();
        let (session, _inbox) = loop {
            match Session::connect(&target, Options::new(DEVICE, Some(ElectionId(1)))).await {
                Ok(connected) => break connected,
                Err(error) if began.elapsed() > PATIENCE => return Err(wrong(&error)),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        let set = session.set_pipeline(PipelineAction::VerifyAndCommit, Some(config)).await;
        set.map_err(|error| wrong(&error))?;
        let written = session.write(updates, Atomicity::ContinueOnError).await;
        written.map_err(|error| refused(address, format!("{error}: {:?}", error.rejections.first())))
    })
}
