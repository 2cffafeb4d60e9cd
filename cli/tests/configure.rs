//! Configuration mode on a pseudo terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use api::Request;
use support::Daemon;
use support::operator::Operator;

fn configure(daemon: &Daemon) -> Operator {
    let mut operator = Operator::sit_down(daemon, 60);
    operator.press("conf\r");
    operator.see("[edit]\r\n");
    operator.see("# ");
    operator
}

/// Types a line and waits for the next prompt; what was on the screen.
fn line(operator: &mut Operator, line: &str) -> String {
    operator.press(&format!("{line}\r"));
    operator.see("\n");
    operator.see("# ")
}

#[test]
fn a_question_mark_lists_what_can_be_configured() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    operator.press("set ?");
    operator.see("Possible completions:");
    let list = operator.see("# set ");
    for word in ["port", "liveness", "ecofilter-balancer", "access"] {
        assert!(list.contains(&format!("\n  {word} ")), "{word}: {list}");
    }
    assert!(!list.contains("clear-hold") && !list.contains("state"), "{list}");
    // Values: words with what they mean, ranges and units.
    operator.press("ecof balancing-m ?");
    operator.see("layer-3 ");
    operator.see("layer-4 ");
    operator.see("# set ecof balancing-m ");
    operator.press("\x15set port p4-2 mtu ?");
    operator.see("64..10240");
    operator.see("# set port p4-2 mtu ");
    operator.press("\x15set port ?");
    operator.see("p4-1");
    operator.see("p10");
    operator.see("# set port ");
    operator.press("\x15show ecof flow bgp ?");
    operator.see("<Enter>");
    operator.see("# show ecof flow bgp ");
    operator.press("\x15");
    // A wrong word before the question mark is pointed at.
    operator.press("set ecof flaw x ?");
    operator.see("^^^^");
    operator.see("# set ecof flaw x ");
    operator.press("\x03");
    operator.see("# ");
}

#[test]
fn tab_completes_names_of_the_candidate() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    line(&mut operator, "set port extra-1 number 20");
    operator.press("se\tecof\tli\tl9 lan\tex\t");
    operator.see("set ecofilter-balancer link l9 lan-port extra-1 ");
    operator.press("\r");
    operator.see("# ");
    let compare = line(&mut operator, "comp");
    assert!(compare.contains("set ecofilter-balancer link l9 lan-port extra-1"), "{compare}");
    operator.press("show po\tex\t");
    operator.see("show port extra-1 ");
    operator.press("\r");
    operator.see("number 20;");
    operator.see("# ");
    // Keys and values were asked for on the connection that has the candidate.
    assert!(daemon.count(|request| matches!(request, Request::Keys { .. })) >= 2);
    assert_eq!(daemon.device(|device| device.sessions), 1);
}

#[test]
fn a_fault_is_pointed_at_below_the_word() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    operator.press("set port p4-2 mtu 70000\r");
    let before = operator.see("^^^^^\r\n");
    let caret = before.trim_end().rsplit('\n').next().unwrap();
    let uname = rustix::system::uname();
    let host = uname.nodename().to_str().unwrap().split('.').next().unwrap();
    assert_eq!(caret.find('^'), Some(format!("eng@{host}# set port p4-2 mtu ").len()), "{before}");
    operator.see("64..10240");
    operator.see("# ");
    let said = line(&mut operator, "set port p4-2 sped 10g");
    assert!(said.contains("^^^^") && said.contains("sped"), "{said}");
    let said = line(&mut operator, "show version");
    assert!(said.contains("commands of operational mode go behind \"run\""), "{said}");
    assert_eq!(daemon.count(|request| matches!(request, Request::Edit { .. })), 0);
}

#[test]
fn levels_are_gone_down_and_up() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    for (typed, banner) in [
        ("edit ecof", "[edit ecofilter-balancer]"),
        ("edit ecofilter-unit main pair f1-1", "[edit ecofilter-balancer ecofilter-unit main pair f1-1]"),
        ("up", "[edit ecofilter-balancer ecofilter-unit main]"),
        ("up 2", "[edit]"),
        ("edit ecof flow bgp match", "[edit ecofilter-balancer flow bgp match]"),
        ("top", "[edit]"),
        ("edit port p10", "[edit port p10]"),
        ("exit", "[edit]"),
        ("edit port p10", "[edit port p10]"),
    ] {
        let seen = line(&mut operator, typed);
        assert!(seen.contains(banner), "{typed}: {seen}");
    }
    let dir = line(&mut operator, "dir");
    assert!(dir.contains("number") && dir.contains("10"), "{dir}");
    line(&mut operator, "set mtu 1500");
    let show = line(&mut operator, "show");
    assert!(show.contains("mtu 1500;"), "{show}");
    operator.press("set mt ?");
    operator.see("64..10240");
    operator.see("# set mt ");
    operator.press("\x15quit\r");
    operator.see("not applied");
    operator.see("[edit port p10]");
    operator.see("# ");
    operator.press("quit\r");
    operator.see("> ");
    let edits = daemon.requests().into_iter().find(|request| matches!(request, Request::Edit { .. }));
    assert_eq!(edits, Some(Request::Edit { lines: vec!["set port p10 mtu 1500".into()] }));
}

#[test]
fn changes_are_compared_in_colour_checked_and_applied() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    line(&mut operator, "set port p10 mtu 1500");
    line(&mut operator, "del port p9");
    let compare = line(&mut operator, "compare");
    assert!(compare.contains("\x1b[32m+ set port p10 mtu 1500\x1b[0m"), "{compare}");
    assert!(compare.contains("\x1b[31m- set port p9 number 9"), "{compare}");
    let refused = line(&mut operator, "check");
    assert!(refused.contains("p9"), "{refused}");
    line(&mut operator, "rollback");
    line(&mut operator, "set port p10 mtu 1500");
    let checked = line(&mut operator, "check");
    assert!(checked.contains("1 change"), "{checked}");
    let applied = line(&mut operator, "apply confirmed 5 comment \"smaller frames\"");
    assert!(applied.contains("5 minutes"), "{applied}");
    line(&mut operator, "apply");
    line(&mut operator, "save");
    let rollbacks = line(&mut operator, "run show rollbacks");
    assert!(rollbacks.contains("smaller frames"), "{rollbacks}");
    // Nothing is left to warn of.
    operator.press("exit\r");
    operator.see("> ");
    operator.press("\x04");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn leaving_with_changes_is_warned_of_once() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    line(&mut operator, "set port p10 mtu 1500");
    let warned = line(&mut operator, "exit");
    assert!(warned.contains("the candidate has changes that were not applied"), "{warned}");
    // Anything else makes it forget that it warned.
    line(&mut operator, "compare");
    let warned = line(&mut operator, "\x04");
    assert!(warned.contains("the candidate has changes that were not applied"), "{warned}");
    operator.press("exit\r");
    operator.see("> ");
    operator.press("configure\r");
    operator.see("# ");
    let compare = line(&mut operator, "compare | count");
    assert!(compare.contains("Count: 0 lines"), "{compare}");
    // A change that was taken back is none.
    line(&mut operator, "set port p10 mtu 1500");
    line(&mut operator, "delete port p10 mtu");
    operator.press("exit\r");
    operator.see("> ");
}

#[test]
fn a_candidate_that_went_with_its_connection_is_told_and_not_replaced() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    line(&mut operator, "set port p10 mtu 1500");
    daemon.break_connections();
    let lost = line(&mut operator, "set port p10 description after");
    assert!(lost.contains("the candidate with its changes is lost"), "{lost}");
    assert_eq!(daemon.count(|request| matches!(request, Request::Edit { .. })), 1);
    let compare = line(&mut operator, "compare | count");
    assert!(compare.contains("Count: 0 lines"), "{compare}");
    // Nothing was lost with a candidate without changes.
    daemon.break_connections();
    let compare = line(&mut operator, "compare | count");
    assert!(compare.contains("Count: 0 lines"), "{compare}");
    // Completion may notice it first; it is told by the next command all the same.
    line(&mut operator, "set port p10 mtu 1500");
    daemon.break_connections();
    operator.press("set port ?");
    operator.see("# set port ");
    operator.press("p10 mtu 1600\r");
    operator.see("the candidate with its changes is lost");
    operator.see("# ");
}

#[test]
fn an_interrupt_ends_the_line_and_not_the_candidate() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    line(&mut operator, "set port p10 mtu 1500");
    operator.press("del port\x03");
    operator.see("# ");
    // The data plane that does not answer is given up; the connection and its candidate stay.
    daemon.device(|device| device.stuck = true);
    operator.press("run show target\r");
    daemon.wait_for(1, |request| *request == Request::ShowTarget);
    operator.press("\x03");
    operator.see("# ");
    daemon.device(|device| device.stuck = false);
    let compare = line(&mut operator, "compare");
    assert!(compare.contains("+ set port p10 mtu 1500"), "{compare}");
    assert_eq!(daemon.device(|device| device.sessions), 1);
}

#[test]
fn an_apply_that_is_not_waited_for_goes_on() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    line(&mut operator, "set port p10 mtu 1500");
    daemon.device(|device| device.stuck = true);
    operator.press("apply\r");
    daemon.wait_for(1, |request| matches!(request, Request::Apply { .. }));
    operator.press("\x03");
    operator.see("interrupted; sluiced may still apply it: \"show rollbacks\" tells");
    operator.see("# ");
    daemon.device(|device| device.stuck = false);
    let compare = line(&mut operator, "compare | count");
    assert!(compare.contains("Count: 0 lines"), "{compare}");
    let rollbacks = line(&mut operator, "run show rollbacks | count");
    assert!(rollbacks.contains("Count: 3 lines"), "{rollbacks}");
    operator.press("exit\r");
    operator.see("> ");
    assert_eq!(daemon.device(|device| device.sessions), 1);
}

#[test]
fn a_text_is_pasted_up_to_control_d() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    operator.press("load merge terminal\r");
    operator.see("Ctrl-D");
    operator.press("set port p10 description \"who?\tme\"\rset port p10 mtu 1400\r");
    operator.see("mtu 1400");
    // Between two lines the terminal is not the editor's, and would take Ctrl-D for its own.
    let seen = operator.press_until("\x04", "in the candidate");
    assert!(!seen.contains("Possible"), "{seen}");
    operator.see("# ");
    let compare = line(&mut operator, "compare");
    assert!(compare.contains("mtu 1400") && compare.contains("who?"), "{compare}");
    operator.press("load replace terminal\r");
    operator.see("Ctrl-D");
    operator.press("set port p1\r\x03");
    operator.see("# ");
    assert_eq!(daemon.count(|request| matches!(request, Request::Load { .. })), 1);
}

#[test]
fn a_thousand_lines_can_be_pasted() {
    let daemon = Daemon::start();
    let mut operator = configure(&daemon);
    let text: String = (0..1000).map(|n| format!("set ecof flow f{n} priority {}\r", n + 1)).collect();
    let before = std::time::Instant::now();
    let mut keys = operator.keys.try_clone().unwrap();
    let paste = std::thread::spawn(move || std::io::Write::write_all(&mut keys, text.as_bytes()).unwrap());
    daemon.wait_for(1000, |request| matches!(request, Request::Edit { .. }));
    paste.join().unwrap();
    println!("a thousand lines pasted: {:?}", before.elapsed());
    operator.press("compare | count\r");
    operator.see("Count: 1000 lines");
}

#[test]
fn edit_goes_to_a_level_at_once() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("edit ecof fl\tbgp\r");
    operator.see("[edit ecofilter-balancer flow bgp]");
    operator.see("# ");
    operator.press("exit\r");
    operator.see("> ");
}
