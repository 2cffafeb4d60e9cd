//! Numbers as people read them: three figures and a decimal prefix.

fn prefixed(value: f64, unit: &str) -> String {
    let mut value = value;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        // 999.5 would be printed as 1000.
        if value < 999.5 {
            let digits = match value {
                _ if prefix.is_empty() && value.fract() == 0.0 => 0,
                v if v < 9.995 => 2,
                v if v < 99.95 => 1,
                _ => 0,
            };
            return format!("{value:.digits$}{prefix}{unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.0}E{unit}")
}

/// Packets: exact up to 99,999, then `100k`, `1.23M`.
pub fn count(packets: u64) -> String {
    if packets < 100_000 { packets.to_string() } else { prefixed(packets as f64, "") }
}

/// Bytes: `512B`, `1.50kB` (1,500 bytes), `1.23GB`.
pub fn bytes(bytes: u64) -> String {
    prefixed(bytes as f64, "B")
}

/// Something a second, of whatever unit: `0`, `12.5`, `9.87G`.
pub fn rate(rate: f64) -> String {
    prefixed(rate.max(0.0), "")
}

/// A short time from ns: `850ns`, `12.3us`, `4.56ms`, `1.20s`.
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns}ns"),
        // From here on the next unit's rounding starts: 999,500 ns is 1.00 ms.
        1_000..999_500 => (ns as f64 / 1e3, "us"),
        999_500..999_500_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{unit}")
}

/// A long time from seconds: `4:05:06`, `3d 04:05:06`.
pub fn duration(seconds: u64) -> String {
    let (days, hours, minutes, seconds) =
        (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match days {
        0 => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}d {hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// A part in percent: `0%`, `<0.01%`, `0.78%`, `33.3%`, `100%`.
pub fn percent(percent: f64) -> String {
    match percent {
        0.0 => "0%".into(),
        p if p < 0.005 => "<0.01%".into(),
        p if p < 9.995 => format!("{p:.2}%"),
        p if p < 99.95 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_and_a_prefix() {
        for (packets, text) in [
            (0, "0"),
            (99_999, "99999"),
            (100_000, "100k"),
            (999_499, "999k"),
            (999_500, "1.00M"),
            (1_234_567, "1.23M"),
            (9_995_000, "10.0M"),
            (u64::MAX, "18E"),
        ] {
            assert_eq!(count(packets), text);
        }
        assert_eq!(bytes(999), "999B");
        assert_eq!(bytes(1500), "1.50kB");
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(9.87e9), "9.87G");
        assert_eq!(rate(0.5), "0.50");
    }

    #[test]
    fn times_change_unit_where_they_would_need_four_figures() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1.00us"),
            (12_345, "12.3us"),
            (999_499, "999us"),
            (999_500, "1.00ms"),
            (999_499_999, "999ms"),
            (999_500_000, "1.00s"),
            (61_000_000_000, "61.0s"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert_eq!(duration(59), "0:00:59");
        assert_eq!(duration(3 * 86400 + 4 * 3600 + 5 * 60 + 6), "3d 04:05:06");
    }

    #[test]
    fn parts_are_short_and_zero_is_only_zero() {
        for part in [0.0, 0.001, 0.78125, 9.994, 9.995, 33.333, 99.94, 99.95, 100.0] {
            assert!(percent(part).len() <= 6, "{part}");
        }
        assert_eq!(percent(0.001), "<0.01%");
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(0.78125), "0.78%");
        assert_eq!(percent(100.0), "100%");
    }
}
