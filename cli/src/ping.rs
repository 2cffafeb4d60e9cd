//! `ping`: how long sluiced and its data plane take to answer, and what comes back through a pair.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use api::{DirectionLiveness, PairLiveness, Request, Version};

use crate::execute::{Executor, Failure};
use crate::filter::Filters;
use crate::grammar::Command;
use crate::render::{harmless, time};
use crate::session::AskError;
use crate::terminal::{Key, Keys};

/// From one to the next.
const PACE: Duration = Duration::from_secs(1);
/// How often a wait looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);
/// How often without a number.
const TIMES: u64 = 5;

/// Prints line by line, through the filters of the command.
struct Printer(Filters);

impl Printer {
    fn line(&mut self, line: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if let Some(line) = self.0.line(line) {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        self.0.end().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        out.flush()
    }
}

/// Calls something once a second, so many times or until Ctrl-C or q.
fn paced(
    executor: &Executor,
    times: u64,
    mut round: impl FnMut(u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let keys = Keys::new(executor.interrupt.clone());
    for number in 1..=times {
        match round(number) {
            Err(Failure::Ask(AskError::Interrupted)) => break,
            done => done?,
        }
        if number < times && until(&keys, Instant::now() + PACE) == Key::Quit {
            break;
        }
    }
    // A Ctrl-C that ended it is done with.
    executor.interrupt.hold();
    Ok(())
}

/// Waits for a time, whatever keys are pressed but the one that ends it.
fn until(keys: &Keys, time: Instant) -> Key {
    // In a script what comes next is its next line, and its end is no key either.
    if !keys.are_there() {
        while Instant::now() < time && !keys.interrupted() {
            std::thread::sleep(LOOK.min(time.saturating_duration_since(Instant::now())));
        }
        return if keys.interrupted() { Key::Quit } else { Key::Nothing };
    }
    loop {
        let left = time.saturating_duration_since(Instant::now());
        match keys.wait(Some(left)) {
            Key::Quit => return Key::Quit,
            _ if time <= Instant::now() => return Key::Nothing,
            _ => {}
        }
    }
}

/// Shortest, average and longest of what was measured.
#[derive(Default)]
struct Times(Vec<u64>);

impl Times {
    /// Since when; as text.
    fn since(&mut self, begin: Instant) -> String {
        let taken = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.push(taken);
        time(taken)
    }

    fn summary(&self, what: &str, asked: u64) -> String {
        let (Some(min), Some(max)) = (self.0.iter().min(), self.0.iter().max()) else {
            return format!("{what}: asked {asked}, answered 0");
        };
        let average = self.0.iter().map(|ns| u128::from(*ns)).sum::<u128>() / self.0.len() as u128;
        let average = u64::try_from(average).unwrap_or(u64::MAX);
        let (min, average, max) = (time(*min), time(average), time(*max));
        let answered = self.0.len();
        format!("{what}: asked {asked}, answered {answered}, min/avg/max {min}/{average}/{max}")
    }
}

/// `ping`: asks sluiced for its version, which it has in memory, and for counters, which it reads from the data
/// plane.
///
/// # Errors
/// One of both answered not once; the output could not be written.
pub fn daemon(executor: &mut Executor, command: &Command) -> Result<(), Failure> {
    let times = command.args.number("count").unwrap_or(TIMES);
    let mut out = Printer(Filters::new(&command.filters));
    let (mut daemon, mut plane) = (Times::default(), Times::default());
    let (mut asked, mut reason) = (0, String::new());
    let mut answer = |request: &Request, times: &mut Times| {
        let begin = Instant::now();
        match executor.ask(request) {
            Ok(answer) => Ok((Some(answer), times.since(begin))),
            Err(error @ (AskError::Interrupted | AskError::CandidateLost)) => Err(error),
            Err(error) => {
                reason = error.to_string();
                Ok((None, reason.lines().next().unwrap_or_default().into()))
            }
        }
    };
    paced(executor, times, |number| {
        asked = number;
        let (version, line) = answer(&Request::ShowVersion, &mut daemon)?;
        let Some(version) = version else { return Ok(out.line(&format!("{number}: sluiced: {line}"))?) };
        let version: Version = serde_json::from_value(version)?;
        let (_, counters) = answer(&Request::ShowDrops, &mut plane)?;
        let (version, target) = (harmless(&version.version), harmless(&version.target));
        Ok(out.line(&format!(
            "{number}: sluiced {version} {line}, data plane {target} {}",
            harmless(&counters)
        ))?)
    })?;
    out.line(&daemon.summary("sluiced", asked))?;
    out.line(&plane.summary("data plane", asked))?;
    out.end()?;
    if daemon.0.is_empty() || plane.0.is_empty() { Err(Failure::Silent(reason)) } else { Ok(()) }
}

/// `ping pair`: keep-alives that the pair was sent and that came back, second by second.
///
/// # Errors
/// There is no such pair, nothing came back, or the output could not be written.
pub fn pair(executor: &mut Executor, command: &Command) -> Result<(), Failure> {
    let times = command.args.number("count").unwrap_or(TIMES);
    let name = |name| command.args.text(name).unwrap_or_default();
    let (unit, pair) = (name("unit"), name("pair"));
    let mut out = Printer(Filters::new(&command.filters));
    let now = || -> Result<PairLiveness, Failure> {
        let pairs: Vec<PairLiveness> =
            serde_json::from_value(executor.ask(&Request::ShowLiveness { profile: None })?)?;
        let found = pairs.into_iter().find(|one| one.unit == unit && one.pair == pair);
        found.ok_or_else(|| Failure::NoPair { unit: unit.clone(), pair: pair.clone() })
    };
    let first = now()?;
    let mut before = first.clone();
    // The first second passes before there is anything to count.
    paced(executor, times + 1, |number| {
        if number == 1 {
            return Ok(());
        }
        let after = now()?;
        out.line(&format!(
            "{}: {}; LAN>WAN {}; WAN>LAN {}",
            number - 1,
            harmless(&after.state),
            between(&before.lan_to_wan, &after.lan_to_wan),
            between(&before.wan_to_lan, &after.wan_to_lan),
        ))?;
        before = after;
        Ok(())
    })?;
    let last = before;
    for (way, from, to) in
        [("LAN>WAN", &first.lan_to_wan, &last.lan_to_wan), ("WAN>LAN", &first.wan_to_lan, &last.wan_to_lan)]
    {
        out.line(&format!("{way}: {}, {}", between(from, to), on_path(to)))?;
    }
    out.end()?;
    let back = |from: &DirectionLiveness, to: &DirectionLiveness| to.good.saturating_sub(from.good);
    if back(&first.lan_to_wan, &last.lan_to_wan) + back(&first.wan_to_lan, &last.wan_to_lan) > 0 {
        return Ok(());
    }
    let reason = last.last_reason.unwrap_or_else(|| "no keep-alive came back".into());
    Err(Failure::Silent(format!("pair {pair} of ecofilter-unit {unit} is {}: {reason}", last.state)))
}

/// What was sent, came back and was lost between two times.
fn between(before: &DirectionLiveness, after: &DirectionLiveness) -> String {
    // A pair that was configured anew counts from nothing.
    let since = |before: u64, after: u64| if after < before { after } else { after - before };
    format!(
        "sent {}, back {}, lost {}",
        since(before.sent, after.sent),
        since(before.good, after.good),
        since(before.lost, after.lost)
    )
}

/// Time on path over the window.
fn on_path(direction: &DirectionLiveness) -> String {
    match (direction.min_ns, direction.avg_ns, direction.max_ns) {
        (Some(min), Some(average), Some(max)) => {
            format!("on path min/avg/max {}/{}/{}", time(min), time(average), time(max))
        }
        _ => "no time on path".into(),
    }
}
