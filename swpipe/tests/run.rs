//! The whole pipeline over veth pairs: what goes in by one port comes out as `replay` says, byte for byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod io_wire;
mod site_file;

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use dataplane::entry::Update;
use dataplane::keepalive::{KEEP_ALIVE_ETHERTYPE, TRANSMIT_TIME_OFFSET};
use dataplane::schema::counters;
use dataplane::{PortId, Reason};
use io_wire::{DEADLINE, Host, SILENCE, backend, frame, great_mtu, in_namespace, run, settle, tagged, wire};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use p4runtime::ElectionId;
use p4runtime::client::{Atomicity, Inbox, Options as ClientOptions, PipelineAction, Session, Target};
use p4runtime::entry::{p4info, update_to_wire};
use p4runtime::metadata::{PACKET_IN, PACKET_OUT, PacketLayout};
use p4runtime::proto::p4::v1::{ForwardingPipelineConfig, PacketOut};
use site::Site;
use swpipe::counters::Place;
use swpipe::edit::edited;
use swpipe::io::{Backend, IoError};
use swpipe::pipeline::{Decision, decide};
use swpipe::replay::Programmed;
use swpipe::run::{Options, Pipeline, PortSpec, RunError};

fn options() -> Options {
    Options { backend: backend(), ..Options::default() }
}

fn host_of(port: &str) -> String {
    format!("h{port}")
}

/// A veth pair for each port of the site; hosts by port.
fn wire_up(site: &Site) -> HashMap<PortId, Host> {
    for port in site.ports.keys() {
        wire(&host_of(port), port, 1500);
        run(&format!("ip link set {} mtu {}", host_of(port), great_mtu()));
    }
    site.ports.values().map(|port| (port.id, Host::on(&host_of(&port.name)))).collect()
}

async fn programmed(target: Target, site: &Site) -> (Session, Inbox) {
    let (session, inbox) =
        Session::connect(&target, ClientOptions::new(1, Some(ElectionId(1)))).await.unwrap();
    let program = ForwardingPipelineConfig::new(p4info(), vec![], 1);
    session.set_pipeline(PipelineAction::VerifyAndCommit, Some(program)).await.unwrap();
    let updates = site_file::entries_of(site).into_iter().map(|entry| {
        update_to_wire(&if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
    });
    session.write(updates.collect(), Atomicity::ContinueOnError).await.unwrap();
    (session, inbox)
}

fn captured(side: &str) -> Vec<Vec<u8>> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/vectors");
    let frames = swpipe::capture::read(&vectors.join(format!("link1-{side}.pcap"))).unwrap();
    frames.into_iter().map(|frame| frame.bytes).collect()
}

/// Sends frames by ports of the site, and sees to it that each comes out where and as it should.
struct Wires {
    hosts: HashMap<PortId, Host>,
    expected: Programmed,
    sent: u64,
}

impl Wires {
    fn pass(&mut self, port: PortId, bytes: &[u8]) -> (Decision, Option<Vec<u8>>) {
        let tables = self.expected.device.snapshot().load_full();
        let decision = decide(&tables, port, bytes);
        self.hosts[&port].send(bytes);
        self.sent += 1;
        let out = decision.exit.map(|exit| {
            let out = self.hosts[&exit.port].receive(DEADLINE);
            let out =
                out.unwrap_or_else(|| panic!("{} bytes by {port}: nothing came: {decision:?}", bytes.len()));
            assert_eq!(out, edited(bytes, exit.edit), "by {port}: {decision:?}");
            out
        });
        (decision, out)
    }
}

#[test]
fn frames_leave_as_replay_says_and_come_back_to_their_link() {
    in_namespace(|| {
        let site = site_file::wired();
        let hosts = wire_up(&site);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let pipeline = Pipeline::start(&PortSpec::of_site(&site), &options()).unwrap();
        let target = runtime.block_on(async { Target::dial("test", pipeline.connector()) });
        let (_session, _inbox) = runtime.block_on(programmed(target, &site));
        let expected = Programmed::with_down(&site, &BTreeSet::new(), &dataplane::target::SWPIPE).unwrap();
        let mut wires = Wires { hosts, expected, sent: 0 };

        let id = |name: &str| site.ports[name].id;
        let pair_ends: HashMap<PortId, PortId> = site
            .units
            .values()
            .flat_map(|unit| unit.pairs.values())
            .flat_map(|pair| {
                let (lan, wan) = (id(&pair.lan_port), id(&pair.wan_port));
                [(lan, wan), (wan, lan)]
            })
            .collect();
        let peers: HashMap<PortId, PortId> = site
            .links
            .iter()
            .flat_map(|link| {
                let (lan, wan) = (id(&link.lan_port), id(&link.wan_port));
                [(lan, wan), (wan, lan)]
            })
            .collect();
        let mut reasons: HashMap<Reason, u64> = HashMap::new();
        for (side, ports) in [("lan", ["p4-2", "p10"]), ("wan", ["p4-1", "p9"])] {
            let plain = captured(side);
            let tags = [
                vec![(0x8100, 7)],
                vec![(0x88a8, 100), (0x8100, 200)],
                vec![(0x8100, 1), (0x8100, 2), (0x8100, 3)],
            ];
            let with_tags =
                plain.iter().take(60).flat_map(|frame| tags.iter().map(|tags| tagged(frame, tags)));
            let frames: Vec<Vec<u8>> =
                plain.iter().cloned().chain(with_tags).filter(|f| f.len() <= 1518).collect();
            assert!(frames.len() > 100);
            for (number, bytes) in frames.iter().enumerate() {
                let port = id(ports[number % 2]);
                let (decision, out) = wires.pass(port, bytes);
                *reasons.entry(decision.reason).or_default() += 1;
                if decision.reason != Reason::Forwarded {
                    continue;
                }
                // The appliance passes it on, by its other port; it leaves by the link it came from.
                let back_by = pair_ends[&decision.exit.unwrap().port];
                let (back, out) = wires.pass(back_by, &out.unwrap());
                *reasons.entry(back.reason).or_default() += 1;
                assert_eq!(back.reason, Reason::Returned);
                assert_eq!(back.exit.unwrap().port, peers[&port]);
                assert_eq!(out.unwrap(), *bytes);
            }
        }
        assert!(reasons[&Reason::Forwarded] > 100 && reasons.len() > 3, "{reasons:?}");
        for (port, host) in &wires.hosts {
            assert_eq!(host.receive(SILENCE), None, "port {port} sent more than it should");
        }
        // Each frame in one counter, and only there.
        let device = pipeline.device();
        let count = |array, index| device.counters().read(Place::Array(array, index)).packets;
        for (reason, frames) in &reasons {
            assert_eq!(count(counters::VERDICTS.id, reason.slot()), *frames, "{reason:?}");
        }
        let received: u64 = (0..counters::PORTS).map(|port| count(counters::PORT_IN.id, port)).sum();
        assert_eq!(received, wires.sent);

        pipeline.stop();
        for port in site.ports.keys() {
            let shown = run(&format!("ip -d link show {port}"));
            assert!(shown.contains("promiscuity 0"), "{port} is still promiscuous: {shown}");
        }
    });
}

#[test]
fn keep_alives_go_out_by_pair_ports_and_come_in_by_them_alone() {
    in_namespace(|| {
        let site = site_file::wired();
        let mut hosts = wire_up(&site);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // The ports of the pair come later.
        let all = PortSpec::of_site(&site);
        let first: Vec<PortSpec> =
            all.iter().filter(|port| !["p1-1", "p1-2"].contains(&&*port.name)).cloned().collect();
        let pipeline = Pipeline::start(&first, &options()).unwrap();
        let target = runtime.block_on(async { Target::dial("test", pipeline.connector()) });
        let (session, mut inbox) = runtime.block_on(programmed(target, &site));
        let (out_layout, in_layout) = (
            PacketLayout::of(&p4info(), PACKET_OUT).unwrap(),
            PacketLayout::of(&p4info(), PACKET_IN).unwrap(),
        );
        let (lan, wan) = (site.ports["p1-2"].id, site.ports["p1-1"].id);
        let mut keep_alive = frame(60, 1);
        keep_alive[12..14].copy_from_slice(&KEEP_ALIVE_ETHERTYPE.to_be_bytes());

        pipeline.set_ports(&all).unwrap();
        let metadata = out_layout.encode(&[("egress_port", lan.0.into())]).unwrap();
        let packet = PacketOut { payload: keep_alive.clone(), metadata };
        runtime.block_on(session.send_packet(packet)).unwrap();
        let sent = hosts[&lan].receive(DEADLINE).unwrap();
        let stamp = TRANSMIT_TIME_OFFSET..TRANSMIT_TIME_OFFSET + 8;
        let transmit = u64::from_be_bytes(sent[stamp.clone()].try_into().unwrap());
        keep_alive[stamp].copy_from_slice(&transmit.to_be_bytes());
        assert_eq!(sent, keep_alive);

        // The path follows the tables, so the first ones may come before it listens: one a round.
        let mut next = || {
            runtime.block_on(async {
                let wait = tokio::time::timeout(Duration::from_millis(200), inbox.packets.recv());
                wait.await.ok().flatten()
            })
        };
        let packet = (0..50).find_map(|_| {
            hosts[&wan].send(&sent);
            next()
        });
        let packet = packet.expect("a packet-in");
        assert_eq!(packet.payload, sent);
        let values = in_layout.decode(&packet.metadata).unwrap();
        assert_eq!(values["ingress_port"], u128::from(wan.0));
        let receive = u64::try_from(values["receive_time"]).unwrap();
        assert!(receive > transmit, "received {receive}, sent {transmit}");

        // An interface that is created anew hears and says them again.
        run("ip link del p1-1");
        wire(&host_of("p1-1"), "p1-1", 1500);
        hosts.insert(wan, Host::on(&host_of("p1-1")));
        while next().is_some() {}
        let again = (0..50).find_map(|_| {
            hosts[&wan].send(&sent);
            next()
        });
        assert_eq!(again.expect("a packet-in by the new interface").payload, sent);
        let metadata = out_layout.encode(&[("egress_port", wan.0.into())]).unwrap();
        let packet = PacketOut { payload: keep_alive.clone(), metadata };
        runtime.block_on(session.send_packet(packet)).unwrap();
        assert!(hosts[&wan].receive(DEADLINE).is_some(), "no packet-out by the new interface");

        // By a link it is an ordinary frame.
        let (link, peer) = (site.ports["p4-2"].id, site.ports["p4-1"].id);
        hosts[&link].send(&sent);
        assert_eq!(hosts[&peer].receive(DEADLINE), Some(sent));
        while let Some(packet) = next() {
            let values = in_layout.decode(&packet.metadata).unwrap();
            assert_eq!(values["ingress_port"], u128::from(wan.0), "a keep-alive from a link was accepted");
        }
    });
}

/// Starts a pipeline on interfaces that no other has any more. A process that another test starts meanwhile holds what
/// this one had open until it runs its program.
fn start_unclaimed(ports: &[PortSpec]) -> Result<Pipeline, RunError> {
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        match Pipeline::start(ports, &options()) {
            Err(RunError::Port { source: IoError::Claimed { .. }, .. })
                if std::time::Instant::now() < until => {}
            started => return started,
        }
    }
}

#[test]
fn an_interface_is_one_pipelines_at_a_time() {
    in_namespace(|| {
        for (host, port) in [("h1", "p1"), ("h2", "p2"), ("h3", "p3")] {
            wire(host, port, 1500);
        }
        let spec = |id, interface: &str, mtu| PortSpec {
            id: PortId(id),
            name: format!("port-{id}"),
            interface: interface.to_owned(),
            mtu,
        };
        let start = |ports: &[PortSpec]| Pipeline::start(ports, &options());
        let first = start(&[spec(1, "p1", 1500), spec(2, "p2", 1500)]).unwrap();
        let both = [spec(3, "p3", 3000), spec(4, "p2", 3000)];
        let refused = start(&both).err().unwrap().to_string();
        for part in ["port-4", "p2", "another pipeline"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        // Refused before anything was touched, and what it had claimed by then is free.
        assert!(run("ip link show p3").contains("mtu 1500"));
        let other = start(&[spec(3, "p3", 1500)]).unwrap();
        // The same name elsewhere is another interface.
        in_namespace(move || {
            wire("h1", "p1", 1500);
            start(&[spec(1, "p1", 1500)]).unwrap().stop();
        });
        other.stop();
        first.stop();
        start_unclaimed(&both).unwrap().stop();
    });
}

#[test]
fn a_port_whose_interface_is_created_anew_forwards_again_and_others_never_stop() {
    in_namespace(|| {
        let site = site_file::wired();
        let mut hosts = wire_up(&site);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let pipeline = Pipeline::start(&PortSpec::of_site(&site), &options()).unwrap();
        let target = runtime.block_on(async { Target::dial("test", pipeline.connector()) });
        let (_session, _inbox) = runtime.block_on(programmed(target, &site));
        let id = |name: &str| site.ports[name].id;
        let [(lan, wan), (other_lan, other_wan)] =
            [("p4-2", "p4-1"), ("p10", "p9")].map(|(lan, wan)| (id(lan), id(wan)));
        // Of an EtherType that no flow takes: from side to side.
        let bytes = frame(100, 1);
        let passes = |hosts: &HashMap<PortId, Host>, from: PortId, to: PortId, within| {
            let _ = hosts[&from].try_send(&bytes);
            hosts[&to].receive(within).is_some_and(|out| out == bytes)
        };
        assert!(passes(&hosts, lan, wan, DEADLINE) && passes(&hosts, wan, lan, DEADLINE));
        for _ in 0..2 {
            run("ip link del p4-2");
            assert!(passes(&hosts, other_lan, other_wan, DEADLINE));
            wire(&host_of("p4-2"), "p4-2", 1500);
            run(&format!("ip link set {} mtu {}", host_of("p4-2"), great_mtu()));
            hosts.insert(lan, Host::on(&host_of("p4-2")));
            let until = std::time::Instant::now() + Duration::from_secs(2);
            for (from, to) in [(lan, wan), (wan, lan)] {
                while !passes(&hosts, from, to, SILENCE) {
                    assert!(std::time::Instant::now() < until, "nothing from {from} to {to}");
                    assert!(passes(&hosts, other_lan, other_wan, DEADLINE));
                }
            }
            assert!(passes(&hosts, other_wan, other_lan, DEADLINE));
        }
    });
}

#[test]
fn ports_get_their_mtu_or_the_pipeline_says_which_does_not() {
    in_namespace(|| {
        run("ip link add h1 type veth peer name p1");
        // A macvlan goes no further than the interface below it.
        run("ip link add link h1 name m0 type macvlan");
        let spec = |id, interface: &str, mtu| PortSpec {
            id: PortId(id),
            name: format!("port-{id}"),
            interface: interface.to_owned(),
            mtu,
        };
        let start = start_unclaimed;
        drop(start(&[spec(1, "p1", great_mtu())]).unwrap());
        assert!(run("ip link show p1").contains(&format!("mtu {}", great_mtu())));
        let message = |result: Result<Pipeline, RunError>| result.err().unwrap().to_string();
        let refused = message(start(&[spec(1, "p1", 1500), spec(2, "m0", 9000)]));
        assert!(
            refused.contains("port-2") && refused.contains("m0") && refused.contains("9000"),
            "{refused}"
        );
        let missing = message(start(&[spec(1, "p1", 1500), spec(2, "nowhere", 1500)]));
        assert!(missing.contains("port-2") && missing.contains("nowhere"), "{missing}");
        let shared = message(start(&[spec(1, "p1", 1500), spec(2, "p1", 1500)]));
        assert!(shared.contains("port-1") && shared.contains("port-2") && shared.contains("p1"), "{shared}");
        let twice = message(start(&[spec(1, "p1", 1500), spec(1, "h1", 1500)]));
        assert!(twice.contains("number 1"), "{twice}");
    });
}

fn io_name() -> String {
    clap::ValueEnum::to_possible_value(&backend()).unwrap().get_name().to_owned()
}

struct Process(Child);

impl Process {
    fn start(arguments: &[&str]) -> Process {
        let child = Command::new(env!("CARGO_BIN_EXE_swpipe"))
            .args(arguments)
            .args(if arguments.contains(&"--io") { vec![] } else { vec!["--io".to_owned(), io_name()] })
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    fn until_ready(&mut self) -> String {
        let lines = self.lines();
        let ready = said(&lines, "ready");
        // What follows must find a reader.
        std::thread::spawn(move || lines.iter().for_each(drop));
        ready
    }

    /// What it says, as it says it.
    fn lines(&mut self) -> mpsc::Receiver<String> {
        let (said, lines) = mpsc::channel();
        let stderr = BufReader::new(self.0.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        lines
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    fn failure(mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(1), "{text}");
        text
    }
}

/// The next line with `what` in it.
fn said(lines: &mpsc::Receiver<String>, what: &str) -> String {
    let mut passed = Vec::new();
    loop {
        match lines.recv_timeout(4 * DEADLINE) {
            Ok(line) if line.contains(what) => return line,
            Ok(line) => passed.push(line),
            Err(error) => panic!("{error}: no line says {what}, but {passed:#?}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_program_says_when_it_is_ready_and_why_it_is_not() {
    in_namespace(|| {
        let site = site_file::wired();
        for port in site.ports.keys() {
            run(&format!("ip link add {} type veth peer name {port}", host_of(port)));
        }
        run("ip link set lo up");
        settle_up(&site);
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("site.json");
        std::fs::write(&config, site_file::wired_json().to_string()).unwrap();
        let config = config.to_str().unwrap();
        let socket = format!("unix:{}", folder.path().join("p4.sock").display());

        let mut process = Process::start(&["run", "--config", config, "--listen", &socket]);
        let ready = process.until_ready();
        assert!(ready.ends_with(&format!("swpipe: ready, 10 ports, P4Runtime on {socket}")), "{ready}");
        let second = Process::start(&["run", "--config", config, "--listen", "127.0.0.1:0"]).failure();
        assert!(second.contains("port p") && second.contains("another pipeline"), "{second}");
        process.signal(Signal::SIGTERM);
        assert_eq!(process.0.wait().unwrap().code(), Some(0));
        assert!(!folder.path().join("p4.sock").exists());
        let listener = std::os::unix::net::UnixListener::bind(folder.path().join("p4.sock")).unwrap();
        let in_use = Process::start(&["run", "--config", config, "--listen", &socket]).failure();
        assert!(in_use.contains("cannot listen") && in_use.contains(&socket), "{in_use}");
        drop(listener);
        let mut killed = Process::start(&["run", "--config", config, "--listen", &socket]);
        killed.until_ready();
        let has_program = || run("ip link show p4-1").contains("xdp");
        assert_eq!(has_program(), backend() == Backend::AfXdp);
        killed.signal(Signal::SIGKILL);
        killed.0.wait().unwrap();
        assert!(!has_program());

        let mut process = Process::start(&[
            "run",
            "--config",
            config,
            "--listen",
            "127.0.0.1:0",
            "--io",
            "datalink",
            "--workers",
            "1",
        ]);
        process.until_ready();
        process.signal(Signal::SIGINT);
        assert_eq!(process.0.wait().unwrap().code(), Some(0));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let taken = Process::start(&["run", "--config", config, "--listen", &address]).failure();
        assert!(taken.contains(&address), "{taken}");

        run("ip link del p4-2");
        let missing = Process::start(&["run", "--config", config, "--listen", &socket]).failure();
        let lines: Vec<&str> = missing.lines().filter(|line| !line.starts_with("warning")).collect();
        assert!(matches!(lines[..], [line] if line.contains("port p4-2")), "{missing}");
        let without = site_file::example_path();
        let mut none = Process::start(&["run", "--config", without.to_str().unwrap(), "--listen", &socket]);
        assert!(none.until_ready().contains("ready, 0 ports"));
    });
}

#[test]
fn the_program_reads_its_configuration_again_on_a_hangup() {
    in_namespace(|| {
        let site = site_file::wired();
        let hosts = wire_up(&site);
        let id = |name: &str| site.ports[name].id;
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("site.json");
        let write = |json: &serde_json::Value| std::fs::write(&config, json.to_string()).unwrap();
        // Only the first link has interfaces.
        let all = site_file::wired_json();
        let mut first = all.clone();
        for port in first["sluice:port"].as_array_mut().unwrap() {
            if port["name"] != "p4-1" && port["name"] != "p4-2" {
                port.as_object_mut().unwrap().remove("interface");
            }
        }
        write(&first);
        let arguments = ["run", "--config", config.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        let mut process = Process::start(&arguments);
        let lines = process.lines();
        assert!(said(&lines, "ready").contains("2 ports"));
        let bytes = frame(100, 1);
        // No controller has set anything: links are bypassed as the configuration has them.
        let passes = |from: &str, to: &str, within| {
            hosts[&id(from)].send(&bytes);
            hosts[&id(to)].receive(within).is_some_and(|out| out == bytes)
        };
        assert!(passes("p4-2", "p4-1", DEADLINE));
        assert!(!passes("p10", "p9", SILENCE));

        write(&all);
        process.signal(Signal::SIGHUP);
        assert!(said(&lines, "site.json read").contains("10 ports"));
        assert!(passes("p10", "p9", DEADLINE) && passes("p4-1", "p4-2", DEADLINE));

        std::fs::write(&config, "{").unwrap();
        process.signal(Signal::SIGHUP);
        assert!(said(&lines, "refused").contains("site.json"));
        // Nobody means to cut every link by an empty file.
        std::fs::write(&config, "{}").unwrap();
        process.signal(Signal::SIGHUP);
        assert!(said(&lines, "refused").contains("no port in it has an interface"));
        let mut missing = all.clone();
        missing["sluice:port"][0]["interface"] = "nowhere".into();
        write(&missing);
        process.signal(Signal::SIGHUP);
        assert!(said(&lines, "refused").contains("nowhere"));
        assert!(passes("p10", "p9", DEADLINE) && passes("p4-2", "p4-1", DEADLINE));

        write(&first);
        process.signal(Signal::SIGHUP);
        assert!(said(&lines, "site.json read").contains("2 ports"));
        assert!(!passes("p10", "p9", SILENCE) && passes("p4-2", "p4-1", DEADLINE));
    });
}

fn settle_up(site: &Site) {
    for port in site.ports.keys() {
        run(&format!("ip link set {} up", host_of(port)));
        run(&format!("ip link set {port} up"));
        settle(port);
    }
}

#[test]
fn a_start_waits_for_a_pipeline_that_is_about_to_end() {
    in_namespace(|| {
        wire("ha", "pa", 1500);
        // As a killed one has it until the kernel is done with its rings.
        let claim = swpipe::io::Claim::take("pa").unwrap();
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(claim);
        });
        let spec = PortSpec { id: PortId(1), name: "a".to_owned(), interface: "pa".to_owned(), mtu: 1500 };
        let pipeline = Pipeline::start(&[spec], &options()).unwrap();
        assert_eq!(pipeline.ports().len(), 1);
        ending.join().unwrap();
    });
}
