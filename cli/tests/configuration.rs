//! Configuration mode in scripts, and what operational mode shows of the configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Output, Stdio};

use api::{Format, LoadMode, Request, Source};
use serde_json::Value;
use support::Daemon;

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

/// A script that must fail; its exit status and what it says.
fn fails(daemon: &Daemon, text: &str) -> (i32, String) {
    let output = script(daemon, text);
    (output.status.code().unwrap(), err(&output).into())
}

fn edits(daemon: &Daemon) -> Vec<Vec<String>> {
    let edits = daemon.requests().into_iter().filter_map(|request| match request {
        Request::Edit { lines } => Some(lines),
        _ => None,
    });
    edits.collect()
}

#[test]
fn every_command_does_the_same_in_full_and_short() {
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = files.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let merge = file("merge", "set port p10 mtu 1400\n");
    let early = file("early", "{}");
    let saved = files.path().join("saved.json").display().to_string();
    let load = [format!("load merge {merge}"), format!("l m {merge}")];
    let loads = [format!("load set {merge}"), format!("l s {merge}")];
    let replace = [format!("load replace {merge}"), format!("lo r {merge}")];
    let from_early = [format!("load early {early}"), format!("l e {early}")];
    let save = [format!("save {saved}"), format!("sa {saved}")];
    let steps: &[([&str; 2], &str)] = &[
        (["set port p10 mtu 1500", "se po p10 mt 1500"], ""),
        (["show port p10", "sh po p10"], "mtu 1500;"),
        (["show", "sh"], "balancing-method layer-3;"),
        (["show | set | match mtu", "sh|se|m mtu"], "set port p10 mtu 1500"),
        (["show port p10 | json", "sh po p10|j"], "\"mtu\": 1500"),
        (["show port p10 | xml", "sh po p10|x"], "1500</mtu>"),
        (["compare", "comp"], "+ set port p10 mtu 1500"),
        (["compare rollback 0", "co r 0"], "+ set port p10 mtu 1500"),
        (["compare startup", "co s"], "+ set port p10 mtu 1500"),
        (["compare | json", "co|j"], "\"+ set port p10 mtu 1500\""),
        (["check", "ch"], "1 change"),
        (["check | json", "ch|j"], "\"changes\": 1"),
        (["dir", "dir"], "port/"),
        (["dir port", "dir po"], "p10/"),
        (["edit port p10", "ed po p10"], ""),
        (["dir", "dir"], "mtu"),
        (["up", "u"], ""),
        (["edit ecofilter-balancer flow bgp match", "ed ec fl bgp ma"], ""),
        (["up 2", "u 2"], ""),
        (["top", "t"], ""),
        (["del port p10 mtu", "de po p10 mt"], ""),
        (["delete port p10 speed", "delete po p10 sp"], ""),
        (["rollback", "ro"], "1 change"),
        (["rollback 0", "ro 0"], "as it was"),
        ([&load[0], &load[1]], "1 change"),
        (["discard", "dis"], "1 change"),
        ([&loads[0], &loads[1]], "1 change"),
        ([&replace[0], &replace[1]], "changes"),
        (["discard", "dis"], "changes"),
        ([&from_early[0], &from_early[1]], "note: nat-unit-queues"),
        (["run show version", "ru sh ver"], "Uptime"),
        (["run show configuration port p10", "ru sh conf po p10"], "number 10;"),
        (["help", "h"], "apply [confirmed MINUTES] [comment TEXT]"),
        (["help compare", "h com"], "compare rollback NUMBER"),
        (["help set port p10 mtu 9", "h se po p10 mt 9"], "Takes 64..10240, octets."),
        (["help set port", "h se po"], "  mtu  "),
        (["set port p10 mtu 1500", "se po p10 mtu 1500"], ""),
        ([&save[0], &save[1]], ""),
        (["apply confirmed 3", "a conf 3"], "rolled back in 3 minutes"),
        (["apply comment \"a b\"", "a comm \"a b\""], "nothing to apply"),
        (["save", "sa"], ""),
        (["exit configuration-mode", "ex c"], ""),
        (["edit port p10", "ed po p10"], ""),
        (["exit", "ex"], ""),
        (["configure", "conf"], ""),
        (["quit", "q"], ""),
        (["show configuration", "sh conf"], "mtu 1500;"),
        (["show configuration port p10 | defaults", "sh conf po p10|d"], "lane 0;"),
        (["show configuration port p10 | defaults | json", "sh conf po p10|d|j"], "\"lane\": 0"),
        (["show configuration port p10 | set", "sh conf po p10|se"], "set port p10 mtu 1500"),
        (["show configuration port p10 | xml", "sh conf po p10|x"], "1500</mtu>"),
        (["show startup port p10", "sh s po p10"], "mtu 1500;"),
        (["show rollbacks", "sh rollbacks"], "eng   cli            0  a b"),
        (["show rollback 2 port p10", "sh rollback 2 po p10"], "speed 100g;"),
        (["call ecofilter-balancer clear-hold main f1-1", "ca ec c main f1-1"], "hold ended"),
        (["ping count 1", "pi c 1"], "sluiced: asked 1, answered 1"),
    ];
    let mut requests = Vec::new();
    for form in 0..2 {
        let daemon = Daemon::start();
        // A mark behind each command, so that its output can be told from the others'.
        let lines = steps.iter().map(|(forms, _)| format!("{}\nhelp exit | match \"exit: \"\n", forms[form]));
        let output = done(&daemon, &format!("configure\n{}", lines.collect::<String>()));
        let parts: Vec<&str> = output.split("exit: ").collect();
        assert_eq!(parts.len(), steps.len() + 1);
        for ((forms, wanted), part) in steps.iter().zip(&parts) {
            assert!(part.contains(wanted), "{}: {part}", forms[form]);
        }
        requests.push(daemon.requests());
        assert!(std::fs::read_to_string(&saved).unwrap().contains("\"mtu\": 1500"));
        std::fs::remove_file(&saved).unwrap();
    }
    assert_eq!(requests[0], requests[1]);
}

#[test]
fn lines_are_sent_in_full_from_the_top() {
    let daemon = Daemon::start();
    done(
        &daemon,
        "configure\nedit ecof ecofilter-unit main\nset pair f9-9 lan p3-2 weight 007\nset reb on\nup\n\
         set flow new apply-to-links [ link1 link2 ] act byp\nset flow \"x.y\" copy\ndel flow bgp match dst-port\n\
         discard\n",
    );
    let unit = "set ecofilter-balancer ecofilter-unit main";
    assert_eq!(
        edits(&daemon),
        [
            vec![
                format!("{unit} pair f9-9 lan-port p3-2"),
                format!("{unit} pair f9-9 weight 7"),
                format!("{unit} rebalance on"),
            ],
            vec![
                "set ecofilter-balancer flow new apply-to-links link1".into(),
                "set ecofilter-balancer flow new apply-to-links link2".into(),
                "set ecofilter-balancer flow new action bypass".into(),
                "set ecofilter-balancer flow x.y copy".into(),
                "del ecofilter-balancer flow bgp match dst-port".into(),
            ],
        ]
    );
}

#[test]
fn a_thousand_lines_are_one_question() {
    let daemon = Daemon::start();
    let mut text = String::from("configure\n");
    for number in 0..1000 {
        text += &format!("set ecofilter-balancer flow f{number} priority {}\n", number + 1);
    }
    let since = std::time::Instant::now();
    let output = done(&daemon, &format!("{text}compare | count\ndiscard\n"));
    assert!(output.starts_with("Count: 1000 lines\n"), "{output}");
    // A pipe gives what it has: the lines may come in a few parts.
    assert!(edits(&daemon).len() < 50, "{}", edits(&daemon).len());
    assert!(since.elapsed().as_secs() < 5, "{:?}", since.elapsed());
    // From a file they are all there.
    let daemon = Daemon::start();
    let file = daemon.directory.path().join("lines");
    std::fs::write(&file, format!("{text}discard\n")).unwrap();
    let mut command = daemon.sluice();
    let output = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(edits(&daemon).len(), 1);
}

#[test]
fn a_script_stops_at_the_line_that_is_wrong() {
    let daemon = Daemon::start();
    let (status, said) = fails(&daemon, "configure\nset port p10 mtu 1500\nset port p10 mtu 70000\nset x\n");
    assert_eq!(status, 2);
    assert!(said.starts_with("line 3: mtu must be 64..10240 (got 70000)"), "{said}");
    assert!(said.ends_with("\n  set port p10 mtu 70000\n                   ^^^^^\n"), "{said}");
    // What is missing is missing at the end.
    let (status, said) = fails(&daemon, "configure\nset port p10 mtu\n");
    assert_eq!(status, 2);
    assert!(said.ends_with("\n  set port p10 mtu\n                   ^\n"), "{said}");
    assert!(said.contains("64..10240"), "{said}");
    let (status, said) =
        fails(&daemon, "configure\nset ecof flow x act b\nset ecof flow x act byp\nset ecof prot 1\n");
    assert_eq!((status, &said[..8]), (2, "line 4: "), "{said}");
    // sluiced refuses what only it can know: the first of the lines that were sent together is named.
    daemon.device(|device| device.refuse = Some("flow 3".into()));
    let text: String = (0..9).map(|number| format!("set ecof flow {number} priority 5\n")).collect();
    let (status, said) = fails(&daemon, &format!("configure\n{text}"));
    assert_eq!((status, said.as_str()), (1, "line 5: flow 3 is refused\n"));
}

#[test]
fn a_script_must_say_what_becomes_of_its_changes() {
    let daemon = Daemon::start();
    for end in ["", "exit\n", "quit\nshow version\n"] {
        let (status, said) = fails(&daemon, &format!("configure\nset port p10 mtu 1500\n{end}"));
        assert_eq!(status, 1);
        assert!(said.starts_with("line 3: the candidate has changes that were not applied"), "{said}");
    }
    done(&daemon, "configure\nset port p10 mtu 1500\ndiscard\nexit\nshow version\n");
    done(&daemon, "configure\nset port p10 mtu 1500\ncheck\napply\n");
    assert_eq!(daemon.device(|device| device.revisions.len()), 2);
}

#[test]
fn what_is_refused_is_told_with_status_1() {
    let daemon = Daemon::start();
    let (status, said) = fails(&daemon, "configure\ndel port p9\ncheck\n");
    assert_eq!((status, &said[..8]), (1, "line 3: "), "{said}");
    assert!(said.contains("wan-port: \"p9\": there is no such port"), "{said}");
    let (status, _) = fails(&daemon, "configure\ndel port p9\napply\n");
    assert_eq!(status, 1);
    let (status, said) = fails(&daemon, "configure\nrollback 7\n");
    assert_eq!((status, said.as_str()), (1, "line 2: there is no revision 7\n"));
    assert_eq!(daemon.device(|device| device.revisions.len()), 1);
    let (status, said) = fails(&daemon, "set port p10 mtu 1500\n");
    assert_eq!(status, 2);
    assert!(said.starts_with("line 1: \"set\" is unknown here"), "{said}");
}

#[test]
fn a_text_is_loaded_from_the_script_itself() {
    let daemon = Daemon::start();
    let output = done(
        &daemon,
        "configure\nload merge terminal\nset port p10 mtu 1400\n\nset port p9 mtu 1400\n\u{4}\ncompare | count\ndiscard\n",
    );
    assert!(output.starts_with("2 changes in the candidate\nCount: 2 lines\n"), "{output}");
    let text = "set port p10 mtu 1400\n\nset port p9 mtu 1400\n".into();
    assert_eq!(
        daemon.requests().iter().find(|request| matches!(request, Request::Load { .. })),
        Some(&Request::Load { mode: LoadMode::Merge, text })
    );
    let (status, said) = fails(&daemon, "configure\nload replace terminal\n{\"sluice:port\": 5}\n");
    assert_eq!(status, 1);
    assert!(said.starts_with("line 2: terminal: refused, nothing was changed\n"), "{said}");
    let (status, said) = fails(&daemon, "configure\nload merge /nonexistent\n");
    assert_eq!((status, &said[..34]), (1, "line 2: cannot read /nonexistent: "), "{said}");
}

#[test]
fn a_file_is_written_whole_in_the_format_of_its_name() {
    let daemon = Daemon::start();
    let path = |name: &str| daemon.directory.path().join(name);
    for (name, format, begins) in [
        ("site.json", Format::Json, "{\n"),
        ("site.xml", Format::Xml, "<"),
        ("site.set", Format::Set, "set port "),
        ("site", Format::Set, "set port "),
    ] {
        done(&daemon, &format!("configure\nedit port p10\nsave \"{}\"\n", path(name).display()));
        let text = std::fs::read_to_string(path(name)).unwrap();
        assert!(text.starts_with(begins) && text.ends_with('\n'), "{name}: {text}");
        let mode = std::fs::metadata(path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        // Whatever the level: what is not all of it must not be loaded in the place of all.
        let whole = |request: &Request| match request {
            Request::ShowTree { source: Source::Candidate, path, format: asked, .. } => {
                path.is_empty() && *asked == format
            }
            _ => false,
        };
        assert!(daemon.count(whole) > 0, "{name}");
    }
    // A file that is there keeps its permissions; a link stays a link.
    std::fs::set_permissions(path("site"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(path("site"), path("link")).unwrap();
    done(&daemon, &format!("configure\nset port p10 mtu 1500\nsave {}\ndiscard\n", path("link").display()));
    assert!(std::fs::read_to_string(path("site")).unwrap().contains("mtu 1500"));
    assert_eq!(std::fs::metadata(path("site")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(std::fs::symlink_metadata(path("link")).unwrap().is_symlink());
    for file in ["/dev/null", "/nonexistent/file", daemon.directory.path().to_str().unwrap()] {
        let (status, said) = fails(&daemon, &format!("configure\nsave {file}\n"));
        assert_eq!(status, 1);
        assert!(said.starts_with(&format!("line 2: cannot write {file}: ")), "{said}");
    }
    let left: Vec<_> = std::fs::read_dir(daemon.directory.path()).unwrap().flatten().collect();
    let hidden = left.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0);
    // What runs goes to startup, and only that.
    let output = script(&daemon, "configure\nset port p10 mtu 1400\nsave\ndiscard\n");
    assert_eq!(output.status.code(), Some(0));
    assert!(err(&output).contains("the changes of the candidate were not"), "{}", err(&output));
    assert_eq!(
        daemon.device(|device| device.startup.clone()),
        daemon.device(|device| device.running.clone())
    );
}

#[test]
fn a_lost_candidate_ends_a_script() {
    let daemon = Daemon::start();
    let mut command = daemon.sluice();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "configure\nset port p10 mtu 1500\ncompare").unwrap();
    let mut difference = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut difference).unwrap();
    assert_eq!(difference, "+ set port p10 mtu 1500\n");
    daemon.break_connections();
    writeln!(stdin, "apply").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).starts_with("line 4: sluiced closed the connection"), "{}", err(&output));
    assert_eq!(daemon.count(|request| matches!(request, Request::Apply { .. })), 0);
}

#[test]
fn an_apply_without_its_answer_is_not_repeated() {
    let daemon = Daemon::start();
    daemon.device(|device| device.vanish = true);
    let (status, said) = fails(&daemon, "configure\nset port p10 mtu 1500\napply\n");
    assert_eq!(status, 1);
    assert!(said.starts_with("line 3: sluiced closed the connection before it answered: "), "{said}");
    assert!(said.contains("show rollbacks"), "{said}");
    // Nor where it could only confirm what waits: it may have been confirmed, or rolled back.
    let (status, said) = fails(&daemon, "configure\napply\n");
    assert_eq!((status, &said[..29]), (1, "line 2: sluiced closed the co"), "{said}");
    assert_eq!(daemon.count(|request| matches!(request, Request::Apply { .. })), 2);
}

#[test]
fn an_apply_that_waits_is_recalled_when_configuration_mode_is_left() {
    let daemon = Daemon::start();
    let output = script(&daemon, "configure\nset port p10 mtu 1500\napply confirmed 9\nexit\n");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        err(&output).starts_with("what was applied is rolled back in 8 minutes unless"),
        "{}",
        err(&output)
    );
    done(&daemon, "configure\nset port p10 mtu 1400\napply confirmed 9\napply\nexit\n");
}

#[test]
fn operational_mode_shows_configurations() {
    let daemon = Daemon::start();
    let output = daemon.once("show configuration port p4-2");
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
    assert!(out(&output).starts_with("number 4;\nlane 2;\nspeed 10g;\n"), "{}", out(&output));
    let output = daemon.once("show configuration ecofilter-balancer flow bgp priority");
    assert_eq!(out(&output), "priority 200;\n");
    let json = daemon.once("show configuration port p4-2 | json");
    assert_eq!(serde_json::from_slice::<Value>(&json.stdout).unwrap()["speed"], "10g");
    let set = daemon.once("show configuration port p4-2 | set | match speed");
    assert_eq!(out(&set), "set port p4-2 speed 10g\n");
    let output = daemon.once("show configuration prot p4-2");
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).ends_with("\n  show configuration prot p4-2\n                     ^^^^\n"));
    let output = daemon.once("show ports | xml");
    assert_eq!(output.status.code(), Some(2));
    let output = daemon.once("show rollback 3");
    assert_eq!((output.status.code(), err(&output)), (Some(1), "there is no revision 3\n"));
    let output = daemon.once("call ecofilter-balancer clear-hold main f1-9");
    assert_eq!((output.status.code(), err(&output)), (Some(1), "pair f1-9 of unit main is not held\n"));
}

#[test]
fn ping_measures_round_trips_and_keep_alives() {
    let daemon = Daemon::start();
    let output = daemon.once("ping count 2");
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
    let lines: Vec<&str> = out(&output).lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[1].starts_with("2: sluiced 0.1.0 ") && lines[1].contains("data plane"), "{lines:?}");
    assert!(lines[3].starts_with("data plane: asked 2, answered 2, min/avg/max "), "{lines:?}");
    let none = support::sluice("/nonexistent".as_ref()).args(["-c", "ping count 1"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(out(&none).ends_with("sluiced: asked 1, answered 0\ndata plane: asked 1, answered 0\n"));
    let output = daemon.once("ping pair main f1-1 count 1");
    assert_eq!(output.status.code(), Some(0), "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("1: up; LAN>WAN sent "), "{}", out(&output));
    let output = daemon.once("ping pair main nosuch");
    assert_eq!((output.status.code(), out(&output)), (Some(1), ""));
    assert!(err(&output).starts_with("there is no pair nosuch"), "{}", err(&output));
}

#[test]
fn a_login_shell_reads_lines_and_runs_commands() {
    let daemon = Daemon::start();
    let login = || {
        let mut command = daemon.sluice();
        command.arg0("-sluice");
        command
    };
    let output = login().args(["-c", "show version"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("Uptime"));
    // Several lines, as a client may send them in one command.
    let lines = "configure\nset port p10 mtu 1500\ncompare\ndiscard\nexit\nshow version | match Version";
    let output = login().args(["-c", lines]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(
        out(&output).contains("+ set port p10 mtu 1500\n") && out(&output).ends_with("Version      0.1.0\n")
    );
    let mut child = login().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "configure\nset port p10 mtu 1500\ndiscard\nexit").unwrap();
    drop(stdin);
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(said, "1 change in the candidate\n");
}

#[test]
fn a_role_that_may_not_configure_is_told_by_sluiced() {
    let daemon = Daemon::start();
    daemon.device(|device| device.refuse = Some("port".into()));
    let (status, said) = fails(&daemon, "configure\nshow port p10\nset port p10 mtu 1500\n");
    assert_eq!((status, said.as_str()), (1, "line 3: port is refused\n"));
}
