//! A tiny site without balancer: hosts, a bridge with connection tracking as the appliance, real traffic, and
//! nothing left afterwards. Needs root; says so when it can't run.

#![allow(clippy::expect_used, clippy::panic)] // helpers of tests fail by panicking too

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testbed::appliance::{Change, Side};
use testbed::lab::{Cabling, Lab, Middle};
use testbed::netns::{Run, feed, namespaces, remove_leftovers};
use testbed::rng::Rng;
use testbed::topology::Topology;
use testbed::traffic::{tcp, udp};

const TINY: &str = "
name: tiny
steering: dot1q
hosts: 4
links:
  - {name: link1, encapsulations: [untagged, vlan 100]}
units:
  - {name: main, pairs: [a]}
appliances:
  - {name: f1, kind: bridge, pairs: [a]}
";

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_testbed"))
}

fn can_run(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED {test}: network namespaces need root");
    }
    root
}

fn tiny() -> Lab {
    site(TINY)
}

fn site(text: &str) -> Lab {
    let topology = Topology::parse("tiny", text).expect("valid");
    let run = Run::start(program()).expect("run");
    Lab::build(run, topology, &Middle::Cables, &Cabling::default()).expect("site")
}

fn ping(lab: &Lab, path: usize, ipv6: bool) {
    let path = &lab.plan.paths[path];
    let (from, to) = (path.host(Side::Lan, 0, ipv6), path.host(Side::Wan, 1, ipv6));
    let mut command = lab.host_command(Side::Lan, "ping");
    command.args(["-n", "-q", "-c", "2", "-i", "0.05", "-W", "2", "-I", &from.to_string(), &to.to_string()]);
    feed(command, "").unwrap_or_else(|error| panic!("{}: {error}", path.name));
}

fn verified_sessions(lab: &mut Lab) {
    let paths = lab.plan.paths.clone();
    let mut rng = Rng::new(1);
    let sessions = lab.draw_sessions(&mut rng, 8, Side::Lan, &paths);
    let work = tcp::Work { rounds: Some(2), bytes: (1, 30_000), pause_ms: 0, seed: 1 };
    lab.start_tcp(Side::Lan, "t", &sessions, work).expect("started");
    let sessions = lab.draw_sessions(&mut rng, 8, Side::Wan, &paths);
    let pace = udp::Pace { interval_us: 2000, payload: 1400, count: Some(30) };
    lab.start_udp(Side::Wan, "u", &sessions, pace).expect("started");
    let tcp = lab.finish_all(&["t"]).expect("finished").tcp;
    assert_eq!(
        tcp.iter().filter_map(|report| report.error.clone()).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    let udp = lab.finish_all(&["u"]).expect("finished").udp;
    assert!(udp.iter().all(|report| report.sent == 30 && report.lost.is_empty()), "{udp:?}");
}

#[test]
fn real_traffic_passes_a_tracking_bridge_and_nothing_stays() {
    if !can_run("real_traffic_passes_a_tracking_bridge_and_nothing_stays") {
        return;
    }
    let mut lab = tiny();
    let (id, directory) = (lab.run().id().to_string(), lab.run().directory().to_path_buf());
    for path in 0..2 {
        for ipv6 in [false, true] {
            ping(&lab, path, ipv6);
        }
    }
    verified_sessions(&mut lab);
    let counted = lab.bridge_counted("f1").expect("counters");
    assert!(counted.begun >= 16 && counted.established > 100, "{counted:?}");
    assert_eq!(counted.dropped, 0);
    let edge = lab.edge_report(Side::Wan).expect("report");
    assert!(edge.uplinks[0].own > 100 && edge.uplinks[0].foreign == 0, "{edge:?}");
    assert!(namespaces(&id).len() >= 3);
    drop(lab);
    assert_eq!(namespaces(&id), Vec::<String>::new());
    assert!(!directory.exists());
}

#[test]
fn the_bridge_refuses_a_session_that_it_did_not_see_begin() {
    if !can_run("the_bridge_refuses_a_session_that_it_did_not_see_begin") {
        return;
    }
    let lab = tiny();
    let path = lab.plan.paths[0].clone();
    let (from, to) = (path.host(Side::Lan, 0, false), path.host(Side::Wan, 0, false));
    // A lone segment in the middle of a session, past the hosts' own stacks.
    let script = format!(
        "import socket,struct\n\
         s=socket.socket(socket.AF_INET,socket.SOCK_RAW,socket.IPPROTO_TCP)\n\
         s.bind(('{from}',0))\n\
         s.sendto(struct.pack('!HHIIBBHHH',4000,7000,1,1,0x50,0x10,1000,0,0),('{to}',0))\n"
    );
    let mut command = lab.host_command(Side::Lan, "python3");
    command.arg("-c").arg(script);
    feed(command, "").expect("sent");
    let deadline = Instant::now() + Duration::from_secs(5);
    while lab.bridge_counted("f1").expect("counters").dropped == 0 {
        assert!(Instant::now() < deadline, "the segment was let through");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_emulated_appliance_carries_hangs_and_complains() {
    if !can_run("the_emulated_appliance_carries_hangs_and_complains") {
        return;
    }
    let mut lab = site(&TINY.replace("kind: bridge", "kind: emulated").replace("steering: dot1q\n", ""));
    ping(&lab, 0, false);
    ping(&lab, 1, true);
    verified_sessions(&mut lab);
    let report = lab.appliance_report("f1").expect("report");
    // Nobody put a steering header on: all of it is complained about, and carried.
    assert!(report.pairs[0].unsteered > 100 && report.complaints == report.pairs[0].unsteered, "{report:?}");
    assert_eq!(report.overruns, 0);

    let paths = lab.plan.paths.clone();
    let mut rng = Rng::new(2);
    let sessions = lab.draw_sessions(&mut rng, 32, Side::Lan, &paths);
    let pace = udp::Pace { interval_us: 2000, payload: 100, count: Some(500) };
    let began = Instant::now();
    lab.start_udp(Side::Lan, "many", &sessions, pace).expect("started");
    let udp = lab.finish_all(&["many"]).expect("finished").udp;
    let sent: u64 = udp.iter().map(|report| report.sent).sum();
    let lost: usize = udp.iter().map(|report| report.lost.len()).sum();
    let rate = 2.0 * sent as f64 / began.elapsed().as_secs_f64();
    println!("{sent} datagrams echoed, {rate:.0} frames/s through one appliance, {lost} lost");
    assert_eq!(lost, 0);

    let hang = |frozen| Change { frozen: Some(frozen), ..Change::default() };
    lab.change("f1", hang(true)).expect("frozen");
    let sessions = lab.draw_sessions(&mut rng, 2, Side::Lan, &paths);
    let pace = udp::Pace { interval_us: 1000, payload: 100, count: Some(20) };
    lab.start_udp(Side::Lan, "frozen", &sessions, pace.clone()).expect("started");
    let udp = lab.finish_all(&["frozen"]).expect("finished").udp;
    assert!(udp.iter().all(|report| report.lost.len() == 20), "{udp:?}");
    lab.change("f1", hang(false)).expect("awake");
    let slow = Change { delay_us: Some(30_000), ..Change::default() };
    lab.change("f1", slow).expect("slow");
    let began = Instant::now();
    ping(&lab, 0, false);
    assert!(began.elapsed() >= Duration::from_millis(60), "a ping there and back takes twice the delay");
}

#[test]
fn two_sites_stand_side_by_side() {
    if !can_run("two_sites_stand_side_by_side") {
        return;
    }
    let (mut one, mut other) = (tiny(), tiny());
    assert_ne!(one.run().id(), other.run().id());
    verified_sessions(&mut one);
    verified_sessions(&mut other);
    drop(one);
    verified_sessions(&mut other);
}

#[test]
fn a_killed_run_is_cleaned_up_by_the_next() {
    if !can_run("a_killed_run_is_cleaned_up_by_the_next") {
        return;
    }
    // A run whose programs under test only sleep: it stands until it is killed.
    let directory = tempfile::tempdir().expect("directory");
    for name in ["swpipe", "sluiced", "sluice"] {
        let file = directory.path().join(name);
        std::fs::write(&file, "#!/bin/sh\necho ready\nexec sleep 60\n").expect("script");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).expect("mode");
    }
    let mut run = Command::new(program())
        .args(["run", "jumbo", "--scenario", "baseline", "--bin-dir"])
        .arg(directory.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("run");
    let pid = run.id();
    let state = Path::new("/run/sluice-testbed");
    let deadline = Instant::now() + Duration::from_secs(30);
    let id = loop {
        let entries = std::fs::read_dir(state).into_iter().flatten().filter_map(Result::ok);
        let mine = entries.map(|entry| entry.path()).find(|path| {
            let owner = std::fs::read_to_string(path.join("owner")).unwrap_or_default();
            owner.starts_with(&format!("{pid} ")) && path.join("sluiced.log").exists()
        });
        if let Some(path) = mine {
            break path.file_name().expect("name").to_string_lossy().into_owned();
        }
        assert!(Instant::now() < deadline, "the run never came up");
        std::thread::sleep(Duration::from_millis(20));
    };
    run.kill().expect("killed");
    run.wait().expect("ended");
    assert!(!namespaces(&id).is_empty(), "SIGKILL gives no chance to clean up");
    let others_too = remove_leftovers().expect("cleaned");
    // Another test's start may have been faster.
    assert!(others_too.contains(&id) || namespaces(&id).is_empty());
    assert_eq!(namespaces(&id), Vec::<String>::new());
}
