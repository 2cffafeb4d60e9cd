//! Times as a DateAndTime (RFC 2579).

use agentx::Value;

/// Of a text as the controller's answers have it: RFC 3339 in UTC, such as `2026-11-30T11:38:16.123456Z`. `None` for
/// any other text.
pub(super) fn date(text: &str) -> Option<Value> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut day = day.splitn(3, '-');
    let year: u16 = day.next()?.parse().ok()?;
    let mut octets = year.to_be_bytes().to_vec();
    octets.extend([day.next()?.parse::<u8>().ok()?, day.next()?.parse::<u8>().ok()?]);
    let mut time = time.splitn(3, ':');
    octets.extend([time.next()?.parse::<u8>().ok()?, time.next()?.parse::<u8>().ok()?]);
    let (seconds, fraction) = time.next().map(|rest| rest.split_once('.').unwrap_or((rest, "0")))?;
    let tenths = fraction.get(..1)?.parse::<u8>().ok()?;
    octets.extend([seconds.parse::<u8>().ok()?, tenths, b'+', 0, 0]);
    Some(Value::OctetString(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_eleven_octets() {
        let octets = |octets: [u8; 11]| Some(Value::OctetString(octets.to_vec()));
        assert_eq!(date("2026-11-30T11:38:16.923456Z"), octets([7, 234, 11, 30, 11, 38, 16, 9, b'+', 0, 0]));
        assert_eq!(date("1970-01-01T00:00:00Z"), octets([7, 178, 1, 1, 0, 0, 0, 0, b'+', 0, 0]));
        for wrong in
            ["", "Z", "2026-11-30", "2026-11-30T11:38Z", "2026-11-30T11:38:16.Z", "2026-11-30T11:38:16+01:00"]
        {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }
}
