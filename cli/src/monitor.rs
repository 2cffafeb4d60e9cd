//! What is watched until somebody has seen enough.

use std::io::{self, Write};
use std::time::Duration;

use api::{Balancer, Event, Request};
use serde_json::Value;

use crate::execute::{Executor, Failure};
use crate::filter::Filters;
use crate::grammar::Filter;
use crate::render::{self, Style};
use crate::session::AskError;
use crate::terminal::{Key, Keys, say, size};

/// How often new events are asked for.
const POLL: Duration = Duration::from_millis(200);
/// How often the balancer's screen is drawn.
const REDRAW: Duration = Duration::from_secs(1);

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
pub fn events(executor: &mut Executor, filters: &[Filter]) -> Result<(), Failure> {
    let keys = Keys::new(executor.interrupt.clone());
    ended(follow_events(executor, filters, &keys))
}

fn follow_events(executor: &mut Executor, filters: &[Filter], keys: &Keys) -> Result<(), Failure> {
    let json = filters.iter().any(|filter| matches!(filter, Filter::Json));
    let style = if filters.is_empty() { executor.terminal.style() } else { Style::default() };
    let mut chain = Filters::new(filters);
    let newest = executor.ask(&Request::ShowEvents { after: 0, last: Some(1) })?;
    let newest: Vec<Event> = serde_json::from_value(newest)?;
    let mut after = newest.last().map_or(0, |event| event.id);
    let mut watched = Watched::default();
    loop {
        // What happened before the end is still shown: so ask once more after it.
        let last = keys.wait(Some(POLL)) == Key::Quit;
        if last && executor.interrupt.pressed() {
            executor.interrupt.hold();
        }
        let answer = executor.ask(&Request::ShowEvents { after, last: None });
        let mut out = io::stdout().lock();
        if let Some(Value::Array(new)) = watched.answer(answer)? {
            for value in new {
                let document = json.then(|| value.to_string());
                let event: Event = serde_json::from_value(value)?;
                after = after.max(event.id);
                let text = document.unwrap_or_else(|| render::event(&event, style));
                if let Some(line) = chain.line(text.trim_end()) {
                    writeln!(out, "{line}")?;
                }
            }
        }
        if last {
            chain.end().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        out.flush()?;
        if last {
            return Ok(());
        }
    }
}

/// `monitor ecofilter-balancer`: draws the screen once a second, until q, Ctrl-C, or standard input is
/// closed. Where the output is no terminal, one screen after the other.
///
/// # Errors
/// sluiced was away from the start or refused; the output could not be written.
pub fn balancer(executor: &mut Executor) -> Result<(), Failure> {
    let keys = Keys::new(executor.interrupt.clone());
    ended(draw_balancer(executor, &keys))
}

fn draw_balancer(executor: &mut Executor, keys: &Keys) -> Result<(), Failure> {
    let terminal = executor.terminal;
    let mut watched = Watched::default();
    let mut answer = Some(executor.ask(&Request::ShowBalancer)?);
    if terminal.screen {
        write!(io::stdout(), "\x1b[2J")?;
    }
    loop {
        if let Some(answer) = answer {
            let screen: Balancer = serde_json::from_value(answer)?;
            draw(&render::balancer(&screen, terminal.style()), terminal.screen)?;
        }
        loop {
            match keys.wait(Some(REDRAW)) {
                Key::Quit => return Ok(()),
                Key::Nothing => break,
                _ => {}
            }
        }
        answer = watched.answer(executor.ask(&Request::ShowBalancer))?;
    }
}

/// Draws over the last screen, without a flicker; lines below the last row are left out.
fn draw(text: &str, screen: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if !screen {
        writeln!(out, "{text}")?;
        return out.flush();
    }
    let (_, rows) = size();
    write!(out, "\x1b[H")?;
    for line in text.lines().take(rows.saturating_sub(1)) {
        write!(out, "{line}\x1b[K\r\n")?;
    }
    write!(out, "\x1b[J")?;
    out.flush()
}
