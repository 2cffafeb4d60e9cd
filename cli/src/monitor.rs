//! What is watched until somebody has seen enough.

use std::io::{self, Write};
use std::time::Duration;

use api::{Balancer, Event, EventFilter, NewEvents, Request};
use serde_json::Value;

use crate::commands::event_filter;
use crate::execute::{Executor, Failure};
use crate::filter::Filters;
use crate::grammar::{Command, Filter};
use crate::render::{self, Style};
use crate::screen;
use crate::session::AskError;
use crate::terminal::{Key, Keys, say};

/// How often new events are asked for.
const POLL: Duration = Duration::from_millis(200);
/// How often the balancer is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// sluiced, which may go away and come back while it is being watched.
#[derive(Debug, Default)]
struct Watched {
    away: bool,
}

impl Watched {
    /// The answer; none while sluiced is away, which is said once.
    fn answer(&mut self, answer: Result<Value, AskError>) -> Result<Option<Value>, Failure> {
        match answer {
            Ok(answer) => {
                if std::mem::take(&mut self.away) {
                    say("sluiced is back");
                }
                Ok(Some(answer))
            }
            Err(error) if error.is_away() => {
                if !std::mem::replace(&mut self.away, true) {
                    say(&format!("{error}; waiting for it"));
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Ctrl-C ends a watch; that is no failure.
fn ended(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(Failure::Ask(AskError::Interrupted)) => Ok(()),
        result => result,
    }
}

/// `monitor events`: prints events as they come, until Ctrl-C, q, or standard input is closed.
/// With `| json`, one document a line.
///
/// # Errors
/// sluiced was away from the start or refused; the output could not be written.
pub fn events(executor: &mut Executor, command: &Command) -> Result<(), Failure> {
    let keys = Keys::new(executor.interrupt.clone());
    ended(follow_events(executor, command, &keys))
}

/// Events as lines, or as documents.
struct Printer {
    chain: Filters,
    style: Style,
    json: bool,
}

impl Printer {
    fn print(&mut self, out: &mut impl Write, events: &[Event]) -> Result<(), Failure> {
        for event in events {
            let text =
                if self.json { serde_json::to_string(event)? } else { render::event(event, self.style) };
            if let Some(line) = self.chain.line(text.trim_end()) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}

fn follow_events(executor: &mut Executor, command: &Command, keys: &Keys) -> Result<(), Failure> {
    let mut printer = Printer {
        chain: Filters::new(&command.filters),
        style: if command.filters.is_empty() { executor.terminal.style() } else { Style::default() },
        json: command.filters.iter().any(|filter| matches!(filter, Filter::Json)),
    };
    let filter = event_filter(&command.args);
    let newest = Request::ShowEvents { after: 0, last: Some(1), filter: EventFilter::default() };
    let newest: Vec<Event> = serde_json::from_value(executor.ask(&newest)?)?;
    let mut after = newest.last().map_or(0, |event| event.id);
    if let Some(last) = command.args.number("last") {
        let before = Request::ShowEvents { after: 0, last: Some(last), filter: filter.clone() };
        let before: Vec<Event> = serde_json::from_value(executor.ask(&before)?)?;
        after = before.last().map_or(after, |event| after.max(event.id));
        printer.print(&mut io::stdout(), &before)?;
        io::stdout().flush()?;
    }
    let mut watched = Watched::default();
    loop {
        // What happened before the end is still shown: so ask once more after it.
        let last = keys.wait(Some(POLL)) == Key::Quit;
        if last && executor.interrupt.pressed() {
            executor.interrupt.hold();
        }
        let answer = executor.ask(&Request::FollowEvents { after, filter: filter.clone() });
        let mut out = io::stdout().lock();
        if let Some(answer) = watched.answer(answer)? {
            let new: NewEvents = serde_json::from_value(answer)?;
            after = new.newest;
            if new.missed > 0 {
                say(&missed(new.missed));
            }
            printer.print(&mut out, &new.events)?;
        }
        if last {
            printer.chain.end().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        out.flush()?;
        if last {
            return Ok(());
        }
    }
}

/// Events that a follower never saw.
pub(crate) fn missed(events: u64) -> String {
    let s = if events == 1 { "" } else { "s" };
    format!("{events} event{s} missed: sluiced keeps the newest only, and had to forget the older")
}

/// `monitor ecofilter-balancer`: on a terminal [`screen`]; else, and behind a bar, one screen after the other,
/// once a second, until standard input is closed. With `| json`, one document a line.
///
/// # Errors
/// sluiced was away from the start or refused; the output could not be written.
pub fn balancer(executor: &mut Executor, filters: &[Filter]) -> Result<(), Failure> {
    if executor.terminal.full_screen && filters.is_empty() {
        return ended(screen::run(executor));
    }
    let keys = Keys::new(executor.interrupt.clone());
    ended(repeat_balancer(executor, filters, &keys))
}

fn repeat_balancer(executor: &mut Executor, filters: &[Filter], keys: &Keys) -> Result<(), Failure> {
    let json = filters.iter().any(|filter| matches!(filter, Filter::Json));
    let style = if filters.is_empty() { executor.terminal.style() } else { Style::default() };
    let mut chain = Filters::new(filters);
    let mut watched = Watched::default();
    let mut answer = Some(executor.ask(&Request::ShowBalancer)?);
    loop {
        if let Some(answer) = answer {
            let text = if json {
                format!("{answer}\n")
            } else {
                let balancer: Balancer = serde_json::from_value(answer)?;
                render::balancer(&balancer, style) + "\n"
            };
            let mut out = io::stdout().lock();
            text.lines().filter_map(|line| chain.line(line)).try_for_each(|line| writeln!(out, "{line}"))?;
            out.flush()?;
        }
        loop {
            match keys.wait(Some(LOOK)) {
                Key::Quit => {
                    let mut out = io::stdout().lock();
                    chain.end().iter().try_for_each(|line| writeln!(out, "{line}"))?;
                    return Ok(out.flush()?);
                }
                Key::Nothing => break,
                _ => {}
            }
        }
        answer = watched.answer(executor.ask(&Request::ShowBalancer))?;
    }
}
