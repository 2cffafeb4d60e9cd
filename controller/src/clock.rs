//! Time: a monotonic clock for decisions, the calendar for people.

use std::time::{Duration, SystemTime};

use liveness::Nanos;
use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, the clock of the software pipeline's time stamps too.
#[must_use]
pub fn now() -> Nanos {
    // The clock exists on every Linux; a zero would only make deadlines late.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(|time| Nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64))
        .unwrap_or_default()
}

/// The calendar time of an instant of [`now`], RFC 3339 in UTC with microseconds.
#[must_use]
pub fn calendar(at: Nanos) -> String {
    let ago = Duration::from_nanos(now().since(at).0);
    let time = SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH);
    humantime::format_rfc3339_micros(time).to_string()
}

/// A calendar time, milliseconds since 1970, RFC 3339 in UTC.
#[must_use]
pub fn calendar_of(ms: u64) -> String {
    let time =
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap_or(SystemTime::UNIX_EPOCH);
    humantime::format_rfc3339_millis(time).to_string()
}
