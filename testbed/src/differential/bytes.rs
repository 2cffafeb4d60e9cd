//! What counters of bytes on BMv2 have too many. It counts a frame's length at ingress, steering header included; the
//! contract's counters have the frame as it is on the link.

use std::collections::BTreeMap;

use dataplane::entry::Entry;
use dataplane::schema::counters;
use dataplane::steering::STEERING_HEADER;
use dataplane::tables::TableEntry;
use dataplane::verdict::REASON_SLOTS;
use dataplane::{PortId, Reason};

use super::plane::Counts;

/// Reasons that only a frame from a pair with a steering header ends in; `mtu-exceeded` is one among pairs.
const OF_STEERED: [Reason; 2] = [Reason::Returned, Reason::UnknownLink];

/// The port of each link's side, by the cell of `link_out`.
#[must_use]
pub fn links_of(entries: &[Entry]) -> BTreeMap<usize, PortId> {
    entries
        .iter()
        .filter_map(|entry| match TableEntry::parse(entry) {
            Ok(TableEntry::Link(link)) => {
                Some((counters::link_out(link.link, link.side), link.forwarding.port()?))
            }
            _ => None,
        })
        .collect()
}

/// Takes the steering header of frames that came back out of the bytes that BMv2 counted.
#[must_use]
pub fn without_steering_header(mut counts: Counts, links: &BTreeMap<usize, PortId>) -> Counts {
    let mut frames: BTreeMap<(u32, usize), u64> = BTreeMap::new();
    let mut steered = |array: u32, cell: usize, packets: u64| {
        *frames.entry((array, cell)).or_default() += packets;
    };
    for (&(array, cell), count) in &counts.cells {
        if array == counters::PAIR_VERDICTS.id {
            let slot = cell % REASON_SLOTS;
            let mtu_exceeded = slot == Reason::MtuExceeded.slot();
            if mtu_exceeded || OF_STEERED.iter().any(|reason| reason.slot() == slot) {
                steered(array, cell, count.packets);
                steered(counters::VERDICTS.id, slot, count.packets);
            }
        } else if array == counters::LINK_OUT.id {
            steered(array, cell, count.packets);
            if let Some(port) = links.get(&cell) {
                steered(counters::PORT_OUT.id, counters::port(*port), count.packets);
            }
        }
    }
    for (cell, packets) in frames {
        if let Some(count) = counts.cells.get_mut(&cell) {
            count.bytes = count.bytes.wrapping_sub(packets * STEERING_HEADER as u64);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use dataplane::tables::{LinkEntry, LinkForwarding};
    use dataplane::{LinkIndex, PairId, Side};
    use swpipe::counters::Count;

    use super::*;

    #[test]
    fn a_frame_that_came_back_is_counted_as_it_is_on_the_link() {
        let port = PortId(8);
        let forwarding = LinkForwarding::Port(port);
        let entries = [LinkEntry { link: LinkIndex(3), side: Side::Wan, forwarding }.entry()];
        let returned = counters::pair_verdict(PairId(2), Reason::Returned);
        let cells = [
            (counters::VERDICTS.id, Reason::Returned.slot()),
            (counters::PAIR_VERDICTS.id, returned),
            (counters::LINK_OUT.id, counters::link_out(LinkIndex(3), Side::Wan)),
        ];
        let mut counts = Counts::default();
        for cell in cells {
            counts.cells.insert(cell, Count { packets: 2, bytes: 128 });
        }
        // One more frame left by the port that did not come back from a pair.
        let port_out = (counters::PORT_OUT.id, counters::port(port));
        counts.cells.insert(port_out, Count { packets: 3, bytes: 188 });
        let port_in = (counters::PORT_IN.id, 40);
        counts.cells.insert(port_in, Count { packets: 2, bytes: 128 });
        let corrected = without_steering_header(counts, &links_of(&entries));
        for cell in cells {
            assert_eq!(corrected.cells[&cell], Count { packets: 2, bytes: 120 });
        }
        assert_eq!(corrected.cells[&port_out], Count { packets: 3, bytes: 180 });
        assert_eq!(corrected.cells[&port_in], Count { packets: 2, bytes: 128 });
    }
}
