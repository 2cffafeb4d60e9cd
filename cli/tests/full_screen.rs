//! `monitor ecofilter-balancer` on the whole screen: as it is drawn, and at a pseudo terminal.
//! `UPDATE_SCREENS=1 cargo test -p cli --test full_screen` writes the expected screens anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use api::Request;
use cli::screen::{Figures, Key, Looks, Stage, Then, View, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rustix::process::{Signal, kill_process};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};
use support::glass::Glass;
use support::operator::Operator;
use support::{Daemon, eventually, sample, terminal};

const PLAIN: Looks = Looks { colour: false, unicode: true };

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_000 + second)
}

/// A minute and a half of watching.
fn figures(pairs: usize) -> Figures {
    let mut figures = Figures::default();
    for second in 0..90 {
        figures.read(sample::reading(pairs, second));
    }
    figures
}

fn drawn(figures: &Figures, view: &mut View, (columns, rows): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, figures, view, PLAIN, at(90))).unwrap();
    let buffer = terminal.backend().buffer();
    let line =
        |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..rows).map(line).collect()
}

fn recorded(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap(), "{}", file.display());
}

fn press(view: &mut View, figures: &Figures, keys: &str) {
    for key in keys.chars() {
        assert_eq!(view.press(Key::Char(key), figures), Then::Draw);
    }
}

#[test]
fn every_size_is_as_recorded() {
    for pairs in [2, 128] {
        let figures = figures(pairs);
        for size in [(80, 24), (120, 40), (200, 60)] {
            let name = format!("monitor-{pairs}-{}x{}", size.0, size.1);
            recorded(&name, &drawn(&figures, &mut View::default(), size));
        }
    }
}

#[test]
fn trouble_is_as_recorded() {
    let mut figures = figures(3);
    let mut reading = sample::reading(3, 90);
    reading.balancer = sample::troubled();
    reading.balancer.data_plane = "lost".into();
    reading.balancer.data_plane_reason = Some("connection refused".into());
    reading.balancer.units[0].pairs[1].state = "held".into();
    let hold = |until: &str, trial| Some(api::Hold { until: until.into(), down: 2, trial });
    reading.balancer.units[0].pairs[1].hold = hold("2026-11-30T00:55:32Z", false);
    reading.balancer.units[0].pairs[1].cores_down = vec![3, 5];
    reading.balancer.units[0].pairs[0].state = "held".into();
    reading.balancer.units[0].pairs[0].hold = hold("2026-11-30T00:54:00Z", true);
    reading.balancer.units[0].served_by = Some("spare-unit".into());
    reading.balancer.units[0].shed = 10;
    reading.news.missed = 7;
    figures.read(reading);
    figures.lose(at(91), "cannot reach sluiced".into());
    figures.lose(at(92), "cannot reach sluiced".into());
    let mut view = View::default();
    recorded("monitor-troubled", &drawn(&figures, &mut view, (80, 24)));
    view.press(Key::End, &figures);
    let text = drawn(&figures, &mut view, (120, 24));
    assert!(text.contains("main/f1-2: held 42s, cores 3,5 down, "), "{text}");
}

#[test]
fn help_and_filter_are_as_recorded() {
    let figures = figures(128);
    let mut view = View::default();
    press(&mut view, &figures, "?");
    recorded("monitor-help", &drawn(&figures, &mut view, (80, 24)));
    press(&mut view, &figures, "x/f3-");
    recorded("monitor-filter", &drawn(&figures, &mut view, (80, 24)));
    view.press(Key::Enter, &figures);
    let kept = drawn(&figures, &mut view, (80, 24));
    assert!(kept.contains("filter \"f3-\", 1-9 of 9"), "{kept}");
    view.press(Key::Escape, &figures);
    assert!(drawn(&figures, &mut view, (80, 24)).contains("of 129, by state"));
}

#[test]
fn no_size_is_too_small_or_too_large() {
    for pairs in [1, 2, 128] {
        let figures = figures(pairs);
        for columns in [1, 10, 39, 40, 41, 60, 79, 81, 100, 133, 300] {
            for rows in [1, 7, 8, 9, 15, 16, 29, 30, 44, 45, 100] {
                let mut view = View::default();
                let text = drawn(&figures, &mut view, (columns, rows));
                if columns >= 40 && rows >= 8 {
                    assert!(text.starts_with("ecofilter-balancer"), "{columns}x{rows}\n{text}");
                    assert!(text.contains("- main  up"), "{columns}x{rows}\n{text}");
                    assert!(text.trim_end().ends_with("by state"), "{columns}x{rows}\n{text}");
                }
            }
        }
    }
}

#[test]
fn what_sluiced_said_without_a_reading_is_said() {
    let mut figures = Figures::default();
    let text = drawn(&figures, &mut View::default(), (80, 24));
    assert!(text.contains("Waiting for the first answer"), "{text}");
    figures.lose(at(0), "nobody\x1b[2J".into());
    let text = drawn(&figures, &mut View::default(), (80, 24));
    assert!(
        text.contains("sluiced is away since 2026-11-30T") && text.contains("nobody\\u{1b}[2J"),
        "{text}"
    );
}

/// The names of pairs from the top of the table.
fn order(figures: &Figures, view: &mut View) -> Vec<String> {
    let text = drawn(figures, view, (80, 24));
    let rows = text.lines().skip_while(|line| !line.starts_with("- main")).skip(1);
    let rows = rows.take_while(|line| line.starts_with("  f"));
    rows.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn pairs_are_sorted_by_what_matters() {
    let figures = figures(128);
    let mut view = View::default();
    // The one that is down first.
    assert_eq!(order(&figures, &mut view)[..2], ["f16-8", "f1-1"]);
    press(&mut view, &figures, "s");
    assert_eq!(order(&figures, &mut view)[..2], ["f1-1", "f1-2"]);
    // The sample's pairs have the more frames the later they come.
    press(&mut view, &figures, "s");
    assert_eq!(order(&figures, &mut view)[..2], ["f16-8", "f16-7"]);
    press(&mut view, &figures, "s");
    let slowest = order(&figures, &mut view)[0].clone();
    let last = figures.units()[0].pairs.iter().max_by_key(|pair| pair.lan_to_wan_ns).unwrap();
    let same = figures.units()[0].pairs.iter().find(|pair| pair.name == slowest).unwrap();
    assert_eq!(same.lan_to_wan_ns, last.lan_to_wan_ns);
    press(&mut view, &figures, "s");
    assert_eq!(order(&figures, &mut view)[0], "f16-8");
}

#[test]
fn the_bar_stays_on_its_pair_and_scrolls() {
    let figures = figures(128);
    let mut view = View::default();
    order(&figures, &mut view);
    view.press(Key::Down, &figures);
    let full = |view: &mut View| drawn(&figures, view, (80, 24));
    assert!(full(&mut view).contains("main/f16-8: down, 5 keep-alives lost"), "{}", full(&mut view));
    // By name it is the last of all.
    press(&mut view, &figures, "s");
    let text = full(&mut view);
    assert!(text.contains("main/f16-8: down") && text.contains("-129 of 129, by name"), "{text}");
    view.press(Key::Home, &figures);
    assert!(full(&mut view).contains("main: 1 of 128 pairs needed"));
    view.press(Key::PageDown, &figures);
    view.press(Key::End, &figures);
    assert!(full(&mut view).contains("main/f16-8: down"));
    // Without its pairs the unit is all there is.
    press(&mut view, &figures, "c");
    let text = full(&mut view);
    assert!(text.contains("+ main  up") && text.contains("1-1 of 1"), "{text}");
    press(&mut view, &figures, "C");
    assert!(full(&mut view).contains("of 129"));
}

#[test]
fn rates_and_history_survive_what_sluiced_does_not() {
    let mut figures = figures(2);
    let up = |figures: &Figures| figures.track("main", "f1-1").unwrap().up().map(|rate| rate.packets.round());
    assert_eq!(up(&figures), Some(1000.0));
    figures.lose(at(91), "away".into());
    assert_eq!(up(&figures), Some(1000.0), "the last figures stay");
    // Half a minute later it is back: a rate over all that time, and a gap in the history.
    figures.read(sample::reading(2, 120));
    assert!(figures.away().is_none());
    assert_eq!(up(&figures), Some(1000.0));
    let history = figures.history("main", "f1-1", 60);
    assert_eq!(history.iter().filter(|part| part.is_some()).count(), 30);
    assert!(history[59].is_some() && history[58].is_none() && history[28].is_some());
    // Counters that began anew have no rate until the next reading.
    let mut anew = sample::reading(2, 121);
    anew.balancer.units[0].pairs[0].up = Some(api::Count { packets: 5, bytes: 5 });
    figures.read(anew);
    assert_eq!(up(&figures), None);
}

/// Somebody who watches at a terminal of 80 by 24.
fn watching(daemon: &Daemon, no_color: &str) -> (Operator, Glass) {
    let mut operator = Operator::start(daemon, 24, no_color, &["-c", "monitor ecofilter-balancer"]);
    let mut glass = Glass::new(80, 24);
    operator.watch(&mut glass, "the pairs are shown", |glass| glass.alternate && glass.has("- main  up"));
    (operator, glass)
}

/// The terminal is as a shell wants it.
fn restored(operator: &mut Operator, glass: &mut Glass) {
    operator.watch(glass, "the screen is left", |glass| !glass.alternate && glass.cursor);
    eventually("the terminal is as before", || {
        let modes = tcgetattr(&operator.keys).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    });
}

#[test]
fn keys_and_sizes_change_the_screen_and_q_restores_the_terminal() {
    let daemon = Daemon::start();
    let (mut operator, mut glass) = watching(&daemon, "");
    operator.watch(&mut glass, "rates are known", |glass| glass.has("Frames/s  in 0"));
    assert!(!glass.cursor && glass.colours > 0);
    operator.press("?");
    operator.watch(&mut glass, "help", |glass| glass.has("Any key goes back."));
    operator.press("x");
    operator.watch(&mut glass, "no help", |glass| glass.has("of 3, by state"));
    operator.press("/f1-2");
    operator.watch(&mut glass, "one pair", |glass| glass.has("Filter: f1-2") && !glass.has("  f1-1 "));
    operator.press("\x1b");
    operator.watch(&mut glass, "all pairs", |glass| glass.has("of 3, by state") && glass.has("  f1-1 "));
    operator.press("\x1b[B\x1b[B");
    operator.watch(&mut glass, "the bar has moved", |glass| glass.has("main/f1-1: up"));
    for (columns, rows) in [(120, 40), (60, 12), (30, 5), (80, 24)] {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        glass.resize(columns.into(), rows.into());
        tcsetwinsize(&operator.keys, size).unwrap();
        operator.watch(&mut glass, "the whole window is used", |glass| {
            let bottom = glass.line(usize::from(rows) - 1);
            if columns < 40 {
                glass.has("Too small")
            } else {
                bottom.trim_end().len() == usize::from(columns)
            }
        });
    }
    operator.press("q");
    restored(&mut operator, &mut glass);
    assert_eq!(operator.leave(), 0);
}

#[test]
fn the_last_figures_stay_while_sluiced_is_away() {
    let daemon = Daemon::start();
    let (mut operator, mut glass) = watching(&daemon, "");
    daemon.stop();
    operator.watch(&mut glass, "it is away", |glass| glass.has("sluiced is away since "));
    assert!(glass.has("- main  up") && glass.has("f1-1"), "{}", glass.text());
    operator.press("s");
    operator.watch(&mut glass, "keys work", |glass| glass.has("by name"));
    daemon.happen(sample::event(10, "f1-1", "up", "admin-down"));
    daemon.listen();
    operator.watch(&mut glass, "it is back", |glass| !glass.has("away") && glass.has("up -> admin-down"));
    operator.press("\x03");
    restored(&mut operator, &mut glass);
    assert_eq!(operator.leave(), 0);
}

#[test]
fn signals_end_it_and_restore_the_terminal() {
    let daemon = Daemon::start();
    for (signal, status) in [(Signal::INT, 0), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (mut operator, mut glass) = watching(&daemon, "");
        kill_process(tcgetpgrp(&operator.keys).unwrap(), signal).unwrap();
        restored(&mut operator, &mut glass);
        assert_eq!(operator.leave(), status, "{signal:?}");
    }
}

#[test]
fn a_process_that_was_stopped_draws_everything_anew() {
    let daemon = Daemon::start();
    let (mut operator, mut glass) = watching(&daemon, "");
    let process = tcgetpgrp(&operator.keys).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    operator.press("s");
    glass.resize(0, 0);
    glass.resize(80, 24);
    kill_process(process, Signal::CONT).unwrap();
    operator.watch(&mut glass, "all of it", |glass| glass.has("- main  up") && glass.has("by name"));
    operator.press("q");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn colours_can_be_refused_on_the_whole_screen() {
    let daemon = Daemon::start();
    let (mut operator, mut glass) = watching(&daemon, "1");
    operator.press("s");
    operator.watch(&mut glass, "keys work", |glass| glass.has("by name"));
    assert_eq!(glass.colours, 0);
    operator.press("q");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn sluiced_is_asked_three_things_a_second_at_most() {
    let daemon = Daemon::start();
    let began = Instant::now();
    let (mut operator, mut glass) = watching(&daemon, "");
    // Keys ask nothing.
    for number in 0..200 {
        operator.press(if number % 2 == 0 { "\x1b[B" } else { "\x1b[A" });
    }
    operator.press("s");
    operator.watch(&mut glass, "all keys were taken", |glass| glass.has("by name"));
    daemon.wait_for(4, |request| *request == Request::ShowBalancer);
    let most = 3 * (began.elapsed().as_secs() as usize + 2) + 1;
    assert!(daemon.requests().len() <= most, "{} requests, {most} are enough", daemon.requests().len());
    operator.press("q");
    assert_eq!(operator.leave(), 0);
}

#[test]
fn sluiced_that_is_away_from_the_start_is_named() {
    let daemon = Daemon::start();
    daemon.stop();
    let mut operator = Operator::start(&daemon, 24, "", &["-c", "monitor ecof"]);
    let said = operator.see("is it running?");
    assert!(said.contains("cannot reach sluiced on") && !said.contains("1049"), "{said}");
    assert_eq!(operator.leave(), 1);
}

/// Not a test: what the next one runs at a terminal of its own.
#[test]
#[ignore = "it panics, which is what the next one is about"]
fn somebody_panics_on_the_stage() {
    let _stage = Stage::enter().unwrap();
    panic!("the show is over");
}

#[test]
fn a_panic_is_said_on_a_terminal_that_is_restored() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "somebody_panics_on_the_stage", "--nocapture", "--test-threads=1"]);
    let mut program = terminal::Terminal::start(&command, 24);
    program.see("\x1b[?1049h");
    program.see("\x1b[?1049l");
    program.see("the show is over");
    eventually("the terminal is as before", || {
        let modes = tcgetattr(&program.keys).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    });
    assert_eq!(program.leave(), 101);
}
