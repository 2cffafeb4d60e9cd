//! `sluice -c` and scripts, against the fake daemon.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Output, Stdio};

use api::{EventFilter, EventKind, Request, Severity, UnitMode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Daemon, eventually, sample, sluice};

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn interrupt(child: &std::process::Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn every_show_gives_text_and_one_json_document() {
    let daemon = Daemon::start();
    for (line, text) in [
        ("show version", "Version      0.1.0"),
        ("show ports", "p1-0  1/0    eth0"),
        ("show port p1-0 statistics", "1234567890123 packets"),
        ("show link", "link1      0  lan"),
        ("show ecofilter-balancer", "1 of 2 pairs up"),
        ("show ecofilter-balancer ecofilter-unit", "Liveness profile  default"),
        ("show ecofilter-balancer ecofilter-unit main", "Liveness profile  default"),
        ("show ecofilter-balancer flow", "mirror.tap"),
        ("show ecofilter-balancer flow bgp", "dst-port 179"),
        ("show ecofilter-balancer balancing-config-hash", "(device)"),
        ("show ecofilter-balancer lookup src 10.0.0.1 dst 10.0.0.2", "Core       12"),
        ("show liveness profile-status", "L>W"),
        ("show liveness profile-status default", "wrong-tag"),
        ("show counters drops", "no-pair-up"),
        ("show events", "f1-2 up -> down"),
        ("show configuration", "balancing-method layer-3;"),
        ("call ecofilter-balancer set-bypass-ecofilter-unit main bypass", "ecofilter-unit main: mode bypass"),
    ] {
        let output = daemon.once(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", err(&output));
        assert!(out(&output).contains(text), "{line}:\n{}", out(&output));
        assert!(!out(&output).contains('\x1b'), "{line}: colours in a pipe");
        assert_eq!(err(&output), "");
        let output = daemon.once(&format!("{line} | json"));
        let json: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(out(&output), format!("{json:#}\n"));
    }
    let last = daemon.once("show events last 1 | json");
    assert_eq!(serde_json::from_slice::<Value>(&last.stdout).unwrap()[0]["id"], 9);
}

#[test]
fn a_call_reaches_the_daemon() {
    let daemon = Daemon::start();
    daemon.once("call ecof set main p");
    assert_eq!(daemon.requests(), [Request::SetUnitMode { unit: "main".into(), mode: UnitMode::Primary }]);
}

#[test]
fn exit_status_tells_refused_from_usage() {
    let daemon = Daemon::start();
    let refused = daemon.once("show ecof flow nosuch");
    assert_eq!((refused.status.code(), out(&refused)), (Some(1), ""));
    assert_eq!(err(&refused), "there is no flow nosuch\n");
    for (line, said) in [
        ("show prots", "  show prots\n       ^^^^^\n"),
        ("show e", "\"e\" is ambiguous: ecofilter-balancer, events\n"),
        ("show port", "  show port\n            ^\n"),
        ("set port p1 mtu 9000", "; it belongs to configuration mode: \"configure\" goes there\n"),
    ] {
        let usage = daemon.once(line);
        assert_eq!((usage.status.code(), out(&usage)), (Some(2), ""), "{line}");
        assert!(err(&usage).contains(said), "{line}: {}", err(&usage));
    }
    assert_eq!(daemon.once("").status.code(), Some(0));
    assert_eq!(daemon.sluice().arg("show").output().unwrap().status.code(), Some(2));
}

#[test]
fn a_daemon_that_is_away_is_named_by_its_socket() {
    let away = sluice("/nonexistent/sluice.sock".as_ref()).args(["-c", "show version"]).output().unwrap();
    assert_eq!(away.status.code(), Some(1));
    assert!(err(&away).contains("cannot reach sluiced on /nonexistent/sluice.sock"), "{}", err(&away));
    // What needs no daemon works without one.
    assert_eq!(sluice("/nonexistent".as_ref()).args(["-c", "help"]).output().unwrap().status.code(), Some(0));
}

#[test]
fn the_environment_names_the_socket() {
    let daemon = Daemon::start();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sluice"));
    let output = command.env("SLUICE_SOCKET", &daemon.socket).args(["-c", "show version"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

#[test]
fn a_file_is_read_here_and_errors_name_it() {
    let daemon = Daemon::start();
    let file = daemon.directory.path().join("my site.json");
    std::fs::write(&file, "{}").unwrap();
    let line = format!("load replace \"{}\"", file.display());
    let output = daemon.once(&line);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("inserted 12, modified 3, deleted 0\nwarning: link2 has no rule\n"));
    let origin = file.display().to_string();
    assert_eq!(daemon.requests(), [Request::LoadReplace { text: "{}".into(), origin }]);

    std::fs::write(&file, "{\"sluice:port\": [").unwrap();
    let output = daemon.once(&line);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).starts_with(&format!("{}: refused, nothing was changed\nnot JSON", file.display())));
    assert!(err(&output).ends_with("\nsecond reason\n"));

    let output = daemon.once("load replace /nonexistent/site.json");
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).starts_with("cannot read /nonexistent/site.json: No such file"), "{}", err(&output));
}

#[test]
fn only_regular_files_of_a_bounded_size_are_loaded() {
    let daemon = Daemon::start();
    let path = |name: &str| daemon.directory.path().join(name).display().to_string();
    rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RWXU).unwrap();
    std::fs::File::create(path("long")).unwrap().set_len((64 << 20) + 1).unwrap();
    for (file, said) in [
        ("/dev/zero".into(), "it is not a regular file"),
        (path(""), "it is not a regular file"),
        (path("fifo"), "it is not a regular file"),
        (path("long"), "it is longer than 64 MiB"),
    ] {
        let output = daemon.once(&format!("load replace {file}"));
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert_eq!(err(&output), format!("cannot read {file}: {said}\n"));
    }
    assert_eq!(daemon.requests(), []);
}

#[test]
fn a_daemon_that_does_not_answer_is_waited_for_5_seconds() {
    let daemon = Daemon::start();
    let since = std::time::Instant::now();
    let output = daemon.once("show target");
    assert!(since.elapsed().as_secs_f32() >= 5.0, "{:?}", since.elapsed());
    assert_eq!((output.status.code(), out(&output)), (Some(1), ""));
    let said = format!("no answer from sluiced on {} within 5 s: ", daemon.socket.display());
    assert!(err(&output).starts_with(&said), "{}", err(&output));
    // Not even the connection is accepted: the places of those that wait are taken too.
    let path = daemon.directory.path().join("full.sock");
    let kind = rustix::net::SocketType::STREAM;
    let listener = rustix::net::socket(rustix::net::AddressFamily::UNIX, kind, None).unwrap();
    rustix::net::bind(&listener, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _waiting = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let output = sluice(&path).args(["-c", "show version"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).starts_with("no answer from sluiced on "), "{}", err(&output));
}

#[test]
fn errors_that_nobody_can_read_change_no_exit_status() {
    let daemon = Daemon::start();
    for (line, status) in [("show nope", 2), ("show ecof flow nosuch", 1)] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = daemon.sluice().args(["-c", line]).stderr(full).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{line}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = daemon.sluice().args(["-c", line]).stderr(writer).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{line}");
    }
}

#[test]
fn errors_repeat_little_and_nothing_that_acts_on_a_terminal() {
    let daemon = Daemon::start();
    let long = daemon.once(&format!("show {}", "x".repeat(100_000)));
    assert_eq!(long.status.code(), Some(2));
    assert!(err(&long).starts_with(&format!("\"{}\u{2026}\" is unknown here", "x".repeat(120))));
    assert!(err(&long).len() < 500, "{}", err(&long).len());
    let long = daemon.once(&format!("show events last {}", "9".repeat(100_000)));
    assert!(err(&long).contains("9\u{2026}\" is not a number from 1") && err(&long).len() < 500);
    let long = daemon.once(&format!("load replace {}", "x".repeat(100_000)));
    assert_eq!(long.status.code(), Some(1));
    assert!(err(&long).len() < 500, "{}", err(&long).len());

    let output = daemon.once("show \x1b[2Jx\t");
    assert!(err(&output).starts_with("\"\\u{1b}[2Jx\" is unknown here"), "{}", err(&output));
    assert!(err(&output).ends_with("\n  show \u{fffd}[2Jx \n       ^^^^^\n"), "{}", err(&output));
    let output = daemon.once("load replace /nonexistent/\x1b[2J");
    assert!(err(&output).starts_with("cannot read /nonexistent/\\u{1b}[2J: "), "{}", err(&output));
    let output = sluice("/nonexistent/\x1b[2J".as_ref()).args(["-c", "show version"]).output().unwrap();
    assert!(err(&output).contains("/nonexistent/\\u{1b}[2J: "), "{}", err(&output));
}

#[test]
fn reasons_of_the_daemon_keep_their_lines_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("sluice.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let daemon = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        stream.read_line(&mut String::new()).unwrap();
        let reason = api::Response::Error("first \x1b[2J\r\nsecond \u{9b}".into());
        writeln!(stream.get_mut(), "{}", serde_json::to_string(&reason).unwrap()).unwrap();
    });
    let output = sluice(&socket).args(["-c", "show version"]).output().unwrap();
    daemon.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err(&output), "first \\u{1b}[2J\\r\nsecond \\u{9b}\n");
}

#[test]
fn a_call_has_json_help_has_none_and_a_comment_does_nothing() {
    let daemon = Daemon::start();
    let call = daemon.once("call ecofilter-balancer set-bypass-ecofilter-unit main auto | json");
    assert_eq!((call.status.code(), out(&call)), (Some(0), "{\n  \"done\": true\n}\n"));
    let help = daemon.once("help show ports | json");
    assert_eq!((help.status.code(), out(&help)), (Some(2), ""));
    let comment = daemon.once("  # show prots");
    assert_eq!((comment.status.code(), out(&comment), err(&comment)), (Some(0), "", ""));
}

fn script(daemon: &Daemon, text: &str) -> Output {
    let mut command = daemon.sluice();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The script may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_script_stops_at_the_first_error_and_names_its_line() {
    let daemon = Daemon::start();
    let output = script(&daemon, "# what we have\nshow version\n\nshow prots\nshow link\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).contains("Version") && !out(&output).contains("link1"));
    assert!(err(&output).starts_with("line 4: \"prots\" is unknown here; expected one of: version, "));
    assert!(err(&output).ends_with("\n  show prots\n       ^^^^^\n"), "{}", err(&output));
    assert_eq!(daemon.requests(), [Request::ShowVersion]);

    let output = script(&daemon, "show ecof flow nosuch\nshow version\n");
    assert_eq!((output.status.code(), err(&output)), (Some(1), "line 1: there is no flow nosuch\n"));

    let output = script(&daemon, "show version | match Version\nexit\nshow prots\n");
    assert_eq!((output.status.code(), out(&output), err(&output)), (Some(0), "Version      0.1.0\n", ""));
    // No newline at the end of the last line.
    assert_eq!(out(&script(&daemon, "show ports | count")), "Count: 5 lines\n");
}

#[test]
fn a_broken_connection_is_made_anew_once() {
    let daemon = Daemon::start();
    let mut command = daemon.sluice();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..2 {
        writeln!(stdin, "show version | match Version").unwrap();
        line.clear();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "Version      0.1.0\n");
        daemon.break_connections();
    }
    daemon.stop();
    writeln!(stdin, "show version").unwrap();
    drop(stdin);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.starts_with("line 3: cannot reach sluiced on "), "{said}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn an_interrupt_ends_the_wait_for_an_answer() {
    let daemon = Daemon::start();
    let mut command = daemon.sluice();
    let child = command.args(["-c", "show target"]).stderr(Stdio::piped()).spawn().unwrap();
    daemon.wait_for(1, |request| *request == Request::ShowTarget);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output)), (Some(130), ""));
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let daemon = Daemon::start();
    let mut command = daemon.sluice();
    command.args(["-c", "help"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
}

/// A watch that prints new events.
fn monitor(daemon: &Daemon, line: &str) -> std::process::Child {
    let mut command = daemon.sluice();
    command.args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // The first asks where to begin.
    daemon.wait_for(1, |request| matches!(request, Request::FollowEvents { .. }));
    child
}

#[test]
fn new_events_are_printed_until_standard_input_closes() {
    let daemon = Daemon::start();
    let mut child = monitor(&daemon, "monitor events | except f9-9");
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    daemon.happen(sample::event(10, "f1-1", "up", "down"));
    daemon.happen(sample::event(11, "f9-9", "up", "down"));
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("f1-1 up -> down"), "{line}");
    daemon.happen(sample::event(12, "f1-1", "down", "up"));
    drop(child.stdin.take());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("f1-1 down -> up") && rest.lines().count() == 1, "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn events_are_filtered_by_sluiced() {
    let daemon = Daemon::start();
    let output = daemon.once("show events severity warning subject f1 kind pair last 3");
    assert_eq!(out(&output).lines().count(), 1, "{}", out(&output));
    assert!(out(&output).contains("warning pair f1-2 up -> down"));
    let filter = EventFilter {
        kind: Some(EventKind::Pair),
        severity: Some(Severity::Warning),
        subject: Some("f1".into()),
    };
    assert_eq!(daemon.requests(), [Request::ShowEvents { after: 0, last: Some(3), filter: filter.clone() }]);
    assert!(out(&daemon.once("show events severity error")).contains("primary -> lost"));
    let mut child = monitor(&daemon, "monitor events last 5 sev w kind pair subj f1");
    let wanted = |request: &Request| *request == Request::FollowEvents { after: 9, filter: filter.clone() };
    daemon.wait_for(1, wanted);
    daemon.happen(sample::event(10, "f2-1", "up", "down"));
    daemon.happen(sample::event(11, "f1-1", "up", "down"));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line
    };
    // What happened before, then what happens.
    assert!(line().contains("f1-2 up -> down"));
    assert!(line().contains("f1-1 up -> down"));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_follower_is_told_how_many_events_it_missed() {
    let daemon = Daemon::start();
    let mut child = monitor(&daemon, "monitor events");
    daemon.happen(sample::event(20, "f1-1", "up", "down"));
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("10 events missed: "), "{line}");
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert!(out(&output).contains("f1-1 up -> down"));
}

#[test]
fn a_watch_outlives_a_restart_and_ends_with_an_interrupt() {
    let daemon = Daemon::start();
    let mut child = monitor(&daemon, "monitor events | json");
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    daemon.stop();
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert!(said.contains("cannot reach sluiced") && said.ends_with("; waiting for it\n"), "{said}");
    daemon.happen(sample::event(10, "f1-1", "up", "down"));
    daemon.listen();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], 10);
    interrupt(&child);
    eventually("sluice ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_watch_that_nobody_reads_ends() {
    let daemon = Daemon::start();
    let mut child = monitor(&daemon, "monitor events");
    drop(child.stdout.take());
    eventually("sluice ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn screens_follow_one_another_where_there_is_no_terminal() {
    let daemon = Daemon::start();
    let mut command = daemon.sluice();
    command.args(["-c", "monitor ecof"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    daemon.wait_for(2, |request| *request == Request::ShowBalancer);
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(out(&output).contains("ecofilter-unit main: up") && !out(&output).contains('\x1b'));
}

#[test]
fn the_balancer_is_a_document_a_line_behind_a_bar() {
    let daemon = Daemon::start();
    let mut command = daemon.sluice();
    command.args(["-c", "monitor ecof | json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    daemon.wait_for(2, |request| *request == Request::ShowBalancer);
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    for line in out(&output).lines() {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["units"][0]["name"], "main");
    }
    assert!(!output.stdout.is_empty());
}
