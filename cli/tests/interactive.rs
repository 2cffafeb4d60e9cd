//! The shell on a pseudo terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::PermissionsExt;

use rustix::termios::{Winsize, tcsetwinsize};
use support::Daemon;
use support::operator::Operator;

#[test]
fn a_question_mark_lists_at_once_and_keeps_the_line() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("sh ?");
    let list = operator.see("sh ");
    assert!(!list.contains("Possible"), "the line itself comes first: {list}");
    operator.see("Possible completions:");
    operator.see("version             Version, time since start and data plane of sluiced");
    // The line is there again, and goes on.
    operator.see("> sh ");
    operator.press("ver\r");
    operator.see("Uptime       3d 04:05:06");
    operator.see("> ");
    operator.press("show pots ?");
    operator.see("^^^^");
    operator.see("\"pots\" is unknown here");
    operator.see("show pots ");
    operator.press("\x03");
    operator.see("> ");
    operator.press("exit\r");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn tab_completes_keywords_and_names_of_the_daemon() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("sh\tecof\tfl\tmi\t\r");
    operator.see("show ecofilter-balancer flow mirror.tap");
    operator.see("Match          vlan0-tag 4000");
    operator.see("> ");
    // Several: the common beginning, and a list with what each means.
    operator.press("show l\t");
    operator.see("link");
    operator.see("Links with the frames of both sides");
    operator.see("liveness  Keep-alives through the appliances");
    operator.press("\x15show port p1-\t");
    operator.see("p1-3");
    operator.see("> show port p1-");
    operator.press("\x03");
    operator.see("> ");
    operator.press("\x04");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn a_fault_is_pointed_at_below_the_line_as_typed() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("show prots\r");
    let before = operator.see("^^^^^\r\n");
    let caret = before.trim_end().rsplit('\n').next().unwrap();
    let prompt =
        format!("eng@{}> ", rustix::system::uname().nodename().to_str().unwrap().split('.').next().unwrap());
    assert_eq!(caret.find('^'), Some(prompt.len() + "show ".len()));
    operator.see("\"prots\" is unknown here; expected one of: version,");
    operator.see("> ");
}

#[test]
fn a_regular_expression_may_hold_a_question_mark() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("show version | match Versions?\r");
    operator.see("Version      0.1.0");
    operator.see("> ");
    operator.press("show version | match \"x? ?Uptime\"\r");
    operator.see("Uptime       3d");
    operator.see("> ");
}

#[test]
fn long_output_comes_in_pages_with_colours() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 10);
    operator.press("show ecof ecof\r");
    let page = operator.see("--More--");
    assert!(page.contains("\x1b[32mup\x1b[0m"), "{page}");
    assert!(!page.contains("Load:"));
    operator.press(" ");
    operator.see("--More--");
    operator.press("\r");
    operator.see("--More--");
    // Back to the top.
    operator.press("g");
    operator.see("1 of 2 pairs up");
    operator.see("--More--");
    operator.press("q");
    operator.see("> ");
    // To the end; then the prompt comes without another key.
    operator.press("show ecof ecof\r");
    operator.see("--More--");
    operator.press("G");
    operator.see("Last-change");
    operator.see("> ");
    operator.press("show ecof ecof | no-more\r");
    let all = operator.see("> ");
    assert!(all.contains("Last-change") && !all.contains("--More--"), "{all}");
}

#[test]
fn colours_can_be_refused() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down_with(&daemon, 60, "1");
    operator.press("show ecof\r");
    operator.see("ecofilter-unit main: up, mode auto");
    operator.see("> ");
}

#[test]
fn a_window_that_changes_its_size_disturbs_nothing() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("show ver");
    operator.see("show ver");
    tcsetwinsize(&operator.keys, Winsize { ws_row: 8, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    operator.press("sion\r");
    operator.see("Uptime");
    operator.see("> ");
    operator.press("show ecof ecof\r");
    operator.see("--More--");
    operator.press("q");
    operator.see("> ");
}

#[test]
fn an_interrupt_ends_the_command_and_not_the_shell() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("show target\r");
    daemon.wait_for(1, |request| *request == api::Request::ShowTarget);
    operator.press("\x03");
    operator.see("> ");
    operator.press("half a line\x03");
    operator.see("> ");
    operator.press("show version\r");
    operator.see("Uptime");
    operator.see("> ");
    operator.press("\x04");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn the_shell_outlives_the_daemon() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("show version\r");
    operator.see("Uptime");
    operator.see("> ");
    daemon.stop();
    operator.press("show version\r");
    operator.see("cannot reach sluiced on ");
    operator.see("> ");
    daemon.listen();
    operator.press("show version\r");
    operator.see("Uptime");
    operator.see("> ");
    daemon.break_connections();
    operator.press("show version\r");
    operator.see("Uptime");
    operator.see("> ");
}

#[test]
fn the_balancer_is_drawn_again_until_q() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("monitor ecof\r");
    operator.see("\x1b[?1049h");
    daemon.wait_for(3, |request| *request == api::Request::ShowBalancer);
    operator.press("q");
    operator.see("\x1b[?1049l");
    operator.see("> ");
    operator.press("monitor events\r");
    daemon.wait_for(
        2,
        |request| matches!(request, api::Request::FollowEvents { filter, .. } if filter.is_open()),
    );
    operator.press("\x03");
    operator.see("> ");
    operator.press("exit\r");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn the_history_is_kept_for_its_owner_alone() {
    let daemon = Daemon::start();
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("show version\r");
    operator.see("Uptime");
    operator.see("> ");
    operator.press("exit\r");
    operator.leave();
    let file = daemon.directory.path().join(".sluice_history");
    assert!(std::fs::read_to_string(&file).unwrap().contains("show version"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut operator = Operator::sit_down(&daemon, 60);
    operator.press("\x1b[A\x1b[A\r");
    operator.see("Uptime");
    // Nowhere to write it is no reason not to work.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    operator.see("> ");
    operator.press("show link\r");
    operator.see("Description");
    operator.see("> ");
}

#[test]
fn a_single_command_on_a_terminal_has_colours_and_pages() {
    let daemon = Daemon::start();
    let mut operator = Operator::start(&daemon, 10, "", &["-c", "show ecof ecof"]);
    let page = operator.see("--More--");
    assert!(page.contains("\x1b[32mup\x1b[0m"), "{page}");
    operator.press("q");
    assert_eq!(operator.leave(), 0);
    let operator = Operator::start(&daemon, 10, "", &["-c", "show nothing"]);
    assert_eq!(operator.leave(), 2);
}
