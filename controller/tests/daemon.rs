//! `sluiced` as a program, with the software pipeline's P4Runtime server as its data plane.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

mod process;

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Client, Request};
use dataplane::target::TOFINO1;
use nix::sys::signal::Signal;
use swpipe::device::Device;

use process::{Daemon, Plane, SITE, command, site_dir, until};

#[test]
fn a_data_plane_that_comes_goes_and_comes_back_empty_gets_its_tables_each_time() {
    let dir = site_dir(SITE);
    let daemon = Daemon::start(dir.path());
    until("the loss is known", || {
        daemon.target()["reason"].as_str().is_some_and(|r| r.contains("p4rt.sock"))
    });
    let refused = daemon
        .ask(&Request::SetUnitMode { unit: "main".to_owned(), mode: api::UnitMode::Bypass })
        .unwrap_err();
    assert!(refused.contains("p4rt.sock"), "{refused}");
    for _ in 0..2 {
        let plane = Plane::start(dir.path(), Arc::default());
        until("primary", || daemon.target()["state"] == "primary");
        until("tables", || plane.entries() > 2048);
        plane.stop();
        until("lost", || daemon.target()["state"] == "lost");
        assert_eq!(daemon.ask(&Request::ShowBalancer).unwrap()["units"][0]["name"], "main");
    }
}

#[test]
fn a_hangup_reads_the_file_again_and_a_broken_file_changes_nothing() {
    let dir = site_dir(SITE);
    let plane = Plane::start(dir.path(), Arc::default());
    let daemon = Daemon::start(dir.path());
    until("tables", || plane.entries() > 2048);
    let file = dir.path().join("site.json");
    std::fs::write(&file, SITE.replace("\"cores\": 17", "\"cores\": 0")).unwrap();
    daemon.signal(Signal::SIGHUP);
    until("refused", || daemon.events().contains("ecofilter-unit main cores"));
    assert_eq!(daemon.cores(), 17);
    std::fs::write(&file, SITE.replace("\"cores\": 17", "\"cores\": 5")).unwrap();
    daemon.signal(Signal::SIGHUP);
    until("applied", || daemon.cores() == 5);
}

#[test]
fn a_loaded_configuration_survives_a_kill_until_the_file_changes() {
    let dir = site_dir(SITE);
    let plane = Plane::start(dir.path(), Arc::default());
    let daemon = Daemon::start(dir.path());
    until("tables", || plane.entries() > 2048);
    let text = SITE.replace("\"cores\": 17", "\"cores\": 3");
    let load = |text: &str| Request::LoadReplace { text: text.to_owned(), origin: "test".to_owned() };
    for broken in ["", "{", &text[..text.len() / 2], &text.replace("\"cores\": 3", "\"cores\": 300")] {
        assert!(daemon.ask(&load(broken)).is_err());
        assert_eq!(daemon.cores(), 17);
    }
    daemon.ask(&load(&text)).unwrap();
    assert_eq!(daemon.cores(), 3);
    drop(daemon);
    let before = plane.device.entries(None);
    let daemon = Daemon::start(dir.path());
    assert_eq!(daemon.cores(), 3);
    until("primary", || daemon.target()["state"] == "primary" && daemon.target()["epoch"] != 0);
    assert_eq!(plane.device.entries(None), before, "a restart moves nothing");
    drop(daemon);
    std::fs::write(dir.path().join("site.json"), SITE.replace("\"cores\": 17", "\"cores\": 9")).unwrap();
    let daemon = Daemon::start(dir.path());
    assert_eq!(daemon.cores(), 9);
}

#[test]
fn a_request_that_is_rubbish_is_answered_and_the_daemon_goes_on() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let dir = site_dir(SITE);
    let daemon = Daemon::start(dir.path());
    for rubbish in ["{}\n", "nonsense\n", "{\"request\":\"show-nothing\"}\n", "\u{0}\n", "[1,2]\n"] {
        let mut stream = UnixStream::connect(&daemon.socket).unwrap();
        stream.write_all(rubbish.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert!(answer.contains("not understood"), "{answer}");
    }
    assert_eq!(daemon.target()["state"], "lost");
}

/// Standard error of a start that must fail.
fn refused(command: &mut Command) -> String {
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it started");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    text
}

#[test]
fn what_cannot_start_says_why_and_ends_with_1() {
    let cases = [
        (SITE.replace("\"cores\": 17", "\"cores\": 300"), "cores: must be 1..256 (got 300)"),
        (SITE.replace("\"p4-1\", \"description\"", "\"p4-2\", \"description\""), "p4-2"),
        (SITE[..500].to_owned(), "EOF"),
        (SITE.to_owned(), "names no interface"),
        (
            SITE.replace(
                "\"speed\": \"10g\", \"description\"",
                "\"interface\": \"nosuch0\", \"description\"",
            ),
            "nosuch0",
        ),
    ];
    for (text, expected) in cases {
        let dir = site_dir(&text);
        let message = refused(&mut command(dir.path()));
        assert!(message.contains(expected), "{message}");
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(refused(&mut command(empty.path())).contains("site.json"));
}

#[test]
fn a_second_daemon_on_the_same_socket_is_refused() {
    let dir = site_dir(SITE);
    let daemon = Daemon::start(dir.path());
    let message = refused(command(dir.path()).arg("--target").arg("grpc://127.0.0.1:1"));
    assert!(message.contains("another sluiced"), "{message}");
    assert_eq!(daemon.target()["state"], "lost");
}

#[test]
fn a_controller_takes_the_device_back_when_the_one_that_took_it_dies() {
    let dir = site_dir(SITE);
    let plane = Plane::start(dir.path(), Arc::default());
    let first = Daemon::start(dir.path());
    until("primary", || first.target()["state"] == "primary");
    let other = site_dir(SITE);
    let address = format!("unix:{}", dir.path().join("p4rt.sock").display());
    let mut second = command(other.path());
    second.args(["--target", &address, "--election-id", "99999999999999"]).stderr(Stdio::null());
    let second = Daemon { child: second.spawn().unwrap(), socket: other.path().join("sluice.sock") };
    until("backup", || first.target()["state"] == "backup");
    let balancer = first.ask(&Request::ShowBalancer).unwrap();
    assert_eq!(balancer["data-plane"], "backup", "the screen says that it is not in charge");
    let query = api::LookupQuery { src: "10.0.0.1".into(), dst: "10.0.0.2".into(), ..Default::default() };
    assert!(first.ask(&Request::Lookup(query.clone())).is_err(), "its tables may not be the device's");
    drop(second);
    until("primary again", || first.target()["state"] == "primary");
    until("tables known", || first.ask(&Request::Lookup(query.clone())).is_ok());
    until("tables written", || plane.entries() > 2048);
}

#[test]
fn an_unreadable_state_is_put_aside_and_said() {
    let dir = site_dir(SITE);
    std::fs::create_dir(dir.path().join("state")).unwrap();
    std::fs::write(dir.path().join("state/state.json"), "{\"unit-modes\"").unwrap();
    let daemon = Daemon::start(dir.path());
    assert!(daemon.events().contains("state.json.unreadable"), "{}", daemon.events());
    assert!(dir.path().join("state/state.json.unreadable").exists());
}

#[test]
fn a_state_directory_is_for_one_daemon() {
    let dir = site_dir(SITE);
    let _daemon = Daemon::start(dir.path());
    let mut second = Command::new(env!("CARGO_BIN_EXE_sluiced"));
    second
        .arg("--config")
        .arg(dir.path().join("site.json"))
        .arg("--socket")
        .arg(dir.path().join("other.sock"))
        .arg("--state-dir")
        .arg(dir.path().join("state"))
        .args(["--target", "grpc://127.0.0.1:1"])
        .stderr(Stdio::piped());
    assert!(refused(&mut second).contains("another sluiced has it"));
}

#[test]
fn a_unit_is_bypassed_although_the_disk_is_gone() {
    let dir = site_dir(SITE);
    let plane = Plane::start(dir.path(), Arc::default());
    let daemon = Daemon::start(dir.path());
    until("tables", || plane.entries() > 2048 && daemon.target()["epoch"] != 0);
    std::fs::remove_dir_all(dir.path().join("state")).unwrap();
    daemon.ask(&Request::SetUnitMode { unit: "main".to_owned(), mode: api::UnitMode::Primary }).unwrap();
    assert!(daemon.events().contains("a restart would not find it"));
    let text = SITE.replace("\"cores\": 17", "\"cores\": 3");
    let applied = daemon.ask(&Request::LoadReplace { text, origin: "test".to_owned() }).unwrap();
    assert!(applied["warnings"].to_string().contains("a restart would not find it"), "{applied}");
}

#[test]
fn a_link_that_goes_is_said() {
    let dir = site_dir(SITE);
    let plane = Plane::start(dir.path(), Arc::default());
    let daemon = Daemon::start(dir.path());
    until("tables", || plane.entries() > 2048 && daemon.target()["epoch"] != 0);
    let load = Request::LoadReplace { text: "{}".to_owned(), origin: "test".to_owned() };
    let applied = daemon.ask(&load).unwrap();
    assert!(applied["warnings"].to_string().contains("link link1 is gone"), "{applied}");
}

#[test]
fn a_data_plane_of_another_target_says_what_to_do() {
    let dir = site_dir(SITE);
    let plane = Plane::start(dir.path(), Arc::new(Device::new(&TOFINO1)));
    let daemon = Daemon::start(dir.path());
    until("unusable", || daemon.target()["state"] == "unusable");
    let target = daemon.target();
    let reason = target["reason"].as_str().unwrap();
    for part in [target["pipeline"].as_str().unwrap(), "rules_v4", "tofino1", "--target-profile"] {
        assert!(reason.contains(part), "{part} is not in: {reason}");
    }
    let balancer = daemon.ask(&Request::ShowBalancer).unwrap();
    assert_eq!(balancer["data-plane"], "unusable");
    assert_eq!(balancer["data-plane-reason"], target["reason"]);
    assert_eq!(plane.entries(), 0);
    drop(daemon);
    let mut right = command(dir.path());
    right.args(["--target", &format!("unix:{}", dir.path().join("p4rt.sock").display())]);
    right.args(["--target-profile", "tofino1"]).stderr(Stdio::null());
    let right = Daemon { child: right.spawn().unwrap(), socket: dir.path().join("sluice.sock") };
    until("the socket", || Client::connect(&right.socket).is_ok());
    until("tables", || plane.entries() > 2048);
    until("primary", || right.target()["state"] == "primary");
    assert_eq!(right.target()["profile"], "tofino1");
}

#[test]
fn a_start_that_the_target_does_not_allow_says_why() {
    let wired = SITE.replacen(
        "\"speed\": \"10g\", \"description\"",
        "\"interface\": \"nosuch0\", \"description\"",
        1,
    );
    let cases: [(&str, &[&str], &str); 3] = [
        (&wired, &["--target-profile", "bmv2"], "--target"),
        (&wired, &["--pipeline", "/nonexistent"], "--target-profile bmv2"),
        (
            SITE,
            &["--target", "grpc://127.0.0.1:1", "--target-profile", "bmv2", "--pipeline", "/nonexistent"],
            "sluice.bmv2.json",
        ),
    ];
    for (text, arguments, expected) in cases {
        let dir = site_dir(text);
        let message = refused(command(dir.path()).args(arguments));
        assert!(message.contains(expected), "{message}");
    }
}
