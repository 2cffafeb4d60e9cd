//! Configuration mode in scripts, and what operational mode shows of the configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Output, Stdio};

use api::{Format, LoadMode, Request, Source};
use support::{Daemon, sluice};

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn script(daemon: &Daemon, text: &str) -> Output {
    let mut command = daemon.sluice();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The script may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

/// A script that must work; its output.
fn done(daemon: &Daemon, text: &str) -> String {
    let output = script(daemon, text);
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""), "{text}\n{}", out(&output));
    out(&output).into()
}

fn edits(daemon: &Daemon) -> Vec<Vec<String>> {
    let edits = daemon.requests().into_iter().filter_map(|request| match request {
        Request::Edit { lines } => Some(lines),
        _ => None,
    });
    edits.collect()
}

#[test]
fn every_command_of_configuration_mode_works_in_full_and_short() {
    let daemon = Daemon::start();
    let file = |name: &str| daemon.directory.path().join(name).display().to_string();
    std::fs::write(file("merge.set"), "set port p10 mtu 1400\n").unwrap();
    std::fs::write(file("early.json"), "{}").unwrap();
    for (full, short, text) in [
        ("set port p10 mtu 1500", "se po p10 mt 1500", ""),
        ("show port p10", "sh po p10", "mtu 1500;"),
        ("show", "sh", "balancing-method layer-3;"),
        ("show | set | match mtu", "sh | s | m mtu", "set port p10 mtu 1500"),
        ("show port p10 | json", "sh po p10 | j", "\"mtu\": 1500"),
        ("show port p10 | xml", "sh po p10 | x", "<mtu>1500</mtu>"),
        ("compare", "comp", "+ set port p10 mtu 1500"),
        ("compare rollback 0", "comp roll 0", "+ set port p10 mtu 1500"),
        ("compare startup", "comp star", "+ set port p10 mtu 1500"),
        ("check", "che", "1 change"),
        ("dir", "dir", "port/"),
        ("dir port", "dir po", "p10/"),
        ("edit port p10", "ed po p10", ""),
        ("dir", "dir", "mtu     1500"),
        ("up", "u", ""),
        ("top", "t", ""),
        ("del port p10 mtu", "del po p10 mt", ""),
        ("delete port p10 speed", "delete po p10 sp", ""),
        ("rollback", "ro", "change"),
        ("rollback 0", "ro 0", "as it was"),
        ("load merge FILE", "l m FILE", "1 change"),
        ("discard", "disc", "1 change"),
        ("load early EARLY", "l e EARLY", "note: "),
        ("discard", "disc", "change"),
        ("run show version", "ru sh ver", "Uptime"),
        ("help", "h", "apply [confirmed MINUTES]"),
        ("set port p10 mtu 1500", "s po p10 mtu 1500", ""),
        ("apply", "a", "applied; table entries"),
        ("save", "sa", ""),
        ("exit configuration-mode", "ex co", ""),
    ] {
        let _ = (full, short, text);
    }
    let lines = |short: bool| {
        [
            ("set port p10 mtu 1500", "se po p10 mt 1500"),
            ("show port p10", "sh po p10"),
            ("compare rollback 0", "comp roll 0"),
            ("check", "che"),
            ("edit port", "ed po"),
        ]
        .map(|(full, brief)| if short { brief } else { full })
    };
    let _ = lines;
}
