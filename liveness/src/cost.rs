//! What an exchange through a pair would take.

use crate::{Nanos, PerDirection, Statistics};

/// Frames of an exchange of 64 KiB, at 1448 bytes each.
const FRAMES: u128 = 46;

/// Round trips in which they go out, with a window that starts at ten frames and doubles (RFC 6928): 10, 20, 16.
const ROUNDS: u128 = 3;

/// Shortest time after which a sender repeats a lost frame. RFC 6298 has a second; common stacks use this.
const SHORTEST_REPEAT: u128 = 200_000_000;

/// What an exchange of 64 KiB through a pair would take by the figures over its last keep-alives:
///
/// `rounds x (rtt + deviation) + frames x loss x max(200 ms, rtt + 4 x deviation)`
///
/// where rtt and deviation are the sums of both directions, and loss is how many frames are lost for each that gets
/// through both ways. It grows with the times, with their spread, and with every loss. `None` while a direction has no
/// good keep-alive.
#[must_use]
pub fn cost(paths: &PerDirection<Statistics>) -> Option<Nanos> {
    let (there, back) = (paths.lan_to_wan, paths.wan_to_lan);
    let (there_delay, back_delay) = (there.delay?, back.delay?);
    let rtt = u128::from(there_delay.average.0) + u128::from(back_delay.average.0);
    let deviation = u128::from(there_delay.deviation.0) + u128::from(back_delay.deviation.0);
    let sent = u128::from(there.all) * u128::from(back.all);
    let passed =
        u128::from(there.all.saturating_sub(there.fail)) * u128::from(back.all.saturating_sub(back.fail));
    let smooth = ROUNDS * (rtt + deviation);
    let repeat = SHORTEST_REPEAT.max(rtt + 4 * deviation);
    let lossy = (FRAMES * (sent - passed)).saturating_mul(repeat).checked_div(passed)?;
    Some(Nanos(u64::try_from(smooth.saturating_add(lossy)).unwrap_or(u64::MAX)))
}
