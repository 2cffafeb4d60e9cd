//! Wall-clock time in nanoseconds: the one clock that every process and the event log share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
pub fn now_ns() -> u64 {
    since_epoch(SystemTime::now())
}

fn since_epoch(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos() as u64
}

/// An RFC 3339 time stamp in UTC as nanoseconds since 1970.
pub fn from_rfc3339(text: &str) -> Option<u64> {
    let text = text.strip_suffix("+00:00").map_or_else(|| text.to_string(), |plain| format!("{plain}Z"));
    humantime::parse_rfc3339_weak(&text).ok().map(since_epoch)
}

/// Milliseconds from one instant to another, negative when it was before.
pub fn ms_between(from: u64, to: u64) -> f64 {
    (to as f64 - from as f64) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_utc_are_read() {
        assert_eq!(from_rfc3339("1970-01-01T00:00:01.000000002Z"), Some(1_000_000_002));
        assert_eq!(from_rfc3339("1970-01-01T00:00:01.5+00:00"), Some(1_500_000_000));
        assert_eq!(from_rfc3339("yesterday"), None);
    }
}
