//! Open vSwitch with its datapath in user space, from a database and sockets of its own: a select group with a
//! symmetric hash splits the link's frames over the pairs, a VLAN tag stands in for the steering header.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::{Process, pinned};
use super::{Programs, Running, Start};
use crate::appliance::Side;
use crate::bench::pin;
use crate::bench::yard::{BOX, Yard, link_port, pair_port};
use crate::error::{Doing, Result};
use crate::netns::feed;
use crate::plane::on_path;

/// Where Debian has the switch itself; its other programs are on PATH.
const SWITCH: &str = "/usr/lib/openvswitch-switch/ovs-vswitchd";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
/// VID of the tag: `dot1q` steering has a base and the link's number too.
const VID: u16 = 101;
/// The symmetric hash of addresses and ports (`OVS_HASH_ALG_SYM_L4`), in the upper half of the method's parameter.
const SYMMETRIC_L4: u64 = 1 << 32;
/// For the switch to do what the database says.
const SECONDS: &str = "--timeout=20";

/// What an installation has, whether it is the system's or unpacked in a directory.
struct Installation {
    /// The directory that stands for `/`, if it isn't that.
    root: Option<PathBuf>,
}

impl Installation {
    fn find(unpacked: &Path) -> Option<Installation> {
        if Path::new(SWITCH).is_file() && on_path("ovsdb-server").is_some() {
            return Some(Installation { root: None });
        }
        let root = unpacked.canonicalize().ok()?;
        root.join(&SWITCH[1..]).is_file().then_some(Installation { root: Some(root) })
    }

    fn path(&self, absolute: &str) -> PathBuf {
        match &self.root {
            Some(root) => root.join(&absolute[1..]),
            None => absolute.into(),
        }
    }

    fn program(&self, absolute: &str) -> PathBuf {
        match absolute.rsplit_once('/') {
            Some((_, name)) if self.root.is_none() && absolute != SWITCH => name.into(),
            _ => self.path(absolute),
        }
    }

    /// Tells a program where everything is.
    fn equip(&self, command: &mut Command, directory: &Path) {
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, directory);
        }
        if let Some(root) = &self.root {
            let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
            command.env("LIBXDP_OBJECT_PATH", libraries.join("bpf"));
            command.env("LD_LIBRARY_PATH", libraries);
        }
    }

    /// Runs one of the programs to its end.
    fn call(&self, yard: &Yard, absolute: &str, words: &[String]) -> Result<String> {
        let mut command = yard.run().command(BOX, self.program(absolute));
        self.equip(&mut command, yard.run().directory());
        command.args(words);
        feed(command, "")
    }
}

/// The switch with ports of this type.
pub(super) fn start(yard: &Yard, programs: &Programs, kind: &str) -> Result<Start> {
    let Some(installation) = Installation::find(&programs.openvswitch) else {
        let place = programs.openvswitch.display();
        return Ok(Start::Missing(format!(
            "Open vSwitch is neither installed nor in {place}; `make bench` gets it"
        )));
    };
    let directory = yard.run().directory();
    let file = |name: &str| directory.join(name).display().to_string();
    let (database, socket) = (file("ovs.db"), format!("unix:{}", file("ovsdb.sock")));
    let schema = installation.path(SCHEMA).display().to_string();
    installation.call(yard, "/usr/bin/ovsdb-tool", &["create".into(), database.clone(), schema])?;

    let mut command = yard.run().command(BOX, installation.program("/usr/sbin/ovsdb-server"));
    installation.equip(&mut command, directory);
    command.arg(&database).arg(format!("--remote=p{socket}")).arg(format!("--unixctl={}", file("ovsdb.ctl")));
    let mut server = Process::start(yard.run(), "ovsdb-server", command)?;
    let listening = directory.join("ovsdb.sock");
    server.await_that("to listen", |_| listening.exists())?;
    let configure = |words: Vec<String>| {
        let begin = [format!("--db={socket}"), SECONDS.to_owned()];
        installation.call(yard, "/usr/bin/ovs-vsctl", &begin.into_iter().chain(words).collect::<Vec<_>>())
    };
    configure(vec!["--no-wait".into(), "init".into()])?;

    // Its thread for packet sockets is the main one; those for AF_XDP go where the mask says.
    let polls = kind == "afxdp";
    let mut command = match polls {
        true => yard.run().command(BOX, installation.program(SWITCH)),
        false => pinned(yard.run(), BOX, &installation.program(SWITCH)),
    };
    installation.equip(&mut command, directory);
    command.arg(&socket).arg(format!("--unixctl={}", file("vswitchd.ctl")));
    let mut switch = Process::start(yard.run(), "ovs-vswitchd", command)?;
    let ready = directory.join("vswitchd.ctl");
    switch.await_that("to answer", |_| ready.exists())?;

    let attachments = if polls { Vec::new() } else { yard.let_ports_poll()? };
    configure(bridge(yard, kind))?;
    let faults = configure(
        ["--columns=error", "--format=csv", "--no-headings", "list", "interface"].map(str::to_owned).into(),
    )?;
    if let Some(fault) = faults.lines().find(|line| line.len() > 2) {
        return Ok(Start::Missing(format!("it does not take veth as {kind}: {fault}")));
    }
    let control = format!("unix:{}", file("bench.mgmt"));
    let ofctl = |words: Vec<String>| {
        let begin = ["-O".to_owned(), "OpenFlow15".to_owned()];
        installation.call(yard, "/usr/bin/ovs-ofctl", &begin.into_iter().chain(words).collect::<Vec<_>>())
    };
    for (group, side) in [(1, Side::Lan), (2, Side::Wan)] {
        ofctl(vec!["add-group".into(), control.clone(), self::group(yard, group, side)])?;
    }
    let file = directory.join("flows");
    std::fs::write(&file, flows(yard).join("\n")).doing(|| format!("writing {}", file.display()))?;
    ofctl(vec!["add-flows".into(), control, file.display().to_string()])?;
    let version = installation.call(yard, SWITCH, &["--version".into()])?;
    switch.check()?;
    Ok(Start::Running(Box::new(Running {
        forwarder: Some(switch),
        others: vec![server],
        attachments,
        version: version.lines().next().unwrap_or_default().to_owned(),
        ..Running::default()
    })))
}

/// Number of a port of the yard in OpenFlow.
fn number(at: usize) -> usize {
    at + 1
}

fn bridge(yard: &Yard, kind: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![];
    if kind == "afxdp" {
        let mask = format!("other_config:pmd-cpu-mask={:#x}", 1 << pin::SYSTEM);
        words.extend(["set", "Open_vSwitch", ".", &mask, "--"].map(str::to_owned));
    }
    let bridge = "add-br bench -- set bridge bench datapath_type=netdev fail-mode=secure protocols=OpenFlow10,OpenFlow15";
    words.extend(bridge.split(' ').map(str::to_owned));
    for (at, port) in yard.ports().iter().enumerate() {
        let line = format!(
            "-- add-port bench {port} -- set interface {port} type={kind} ofport_request={}",
            number(at)
        );
        words.extend(line.split(' ').map(str::to_owned));
    }
    words
}

/// The pairs' ports of a side, each with the same share.
fn group(yard: &Yard, group: u32, side: Side) -> String {
    let ports = yard.ports();
    let mut text = format!(
        "group_id={group},type=select,selection_method=dp_hash,selection_method_param={SYMMETRIC_L4}"
    );
    for pair in 1..=yard.pairs() {
        let at = ports.iter().position(|port| *port == pair_port(pair, side)).unwrap_or_default();
        text.push_str(&format!(
            ",bucket=bucket_id:{pair},actions=push_vlan:0x8100,set_field:{}->vlan_vid,output:{}",
            0x1000 | VID,
            number(at)
        ));
    }
    text
}

fn flows(yard: &Yard) -> Vec<String> {
    let at = |port: String| number(yard.ports().iter().position(|other| *other == port).unwrap_or_default());
    let (lan, wan) = (at(link_port(Side::Lan)), at(link_port(Side::Wan)));
    let mut flows = vec![format!("in_port={lan},actions=group:1"), format!("in_port={wan},actions=group:2")];
    for pair in 1..=yard.pairs() {
        for (side, link) in [(Side::Lan, lan), (Side::Wan, wan)] {
            let port = at(pair_port(pair, side));
            flows.push(format!("in_port={port},dl_vlan={VID},actions=pop_vlan,output:{link}"));
        }
    }
    flows
}
