//! Counters as a target has them, made to count what the contract counts: the frame as it is on the link.
//!
//! See [`CountedBytes`] for what targets are off by.

use std::collections::BTreeMap;

use dataplane::entry::P4Id;
use dataplane::schema::{Counter, counters};
use dataplane::tables::{LINKS, TableEntry};
use dataplane::target::CountedBytes;
use dataplane::verdict::REASON_SLOTS;
use dataplane::{LinkIndex, PairId, PortId, Reason, Side};
use swpipe::counters::Count;

use crate::difference::Tables;

/// A cell of a counter array.
pub type Cell = (P4Id, usize);

/// Reasons that only a frame with a steering header ends in.
const WITH_HEADER: [Reason; 2] = [Reason::Returned, Reason::UnknownLink];

/// Which link's side a port is.
#[derive(Clone, Debug, Default)]
pub struct LinkPorts(BTreeMap<PortId, (LinkIndex, Side)>);

impl LinkPorts {
    /// By the tables of the data plane.
    #[must_use]
    pub fn of(tables: &Tables) -> Self {
        let links = tables.rest.values().filter(|entry| entry.table == LINKS.id);
        LinkPorts(
            links
                .filter_map(|entry| match TableEntry::parse(entry) {
                    Ok(TableEntry::Link(link)) => Some((link.forwarding.port()?, (link.link, link.side))),
                    _ => None,
                })
                .collect(),
        )
    }

    fn returned(&self, port: PortId) -> Option<Cell> {
        let (link, side) = self.0.get(&port)?;
        Some((counters::LINK_OUT.id, counters::link_out(*link, *side)))
    }
}

fn port_of(index: usize) -> PortId {
    PortId(u16::try_from(index).unwrap_or(u16::MAX))
}

fn is(cell: Cell, counter: &Counter) -> bool {
    cell.0 == counter.id
}

/// Frames from pairs, longer than the MTU of the port that they would have left by, by pair.
fn too_long(pair: usize) -> Cell {
    let pair = PairId(u16::try_from(pair).unwrap_or(u16::MAX));
    (counters::PAIR_VERDICTS.id, counters::pair_verdict(pair, Reason::MtuExceeded))
}

/// Cells whose frames say how many bytes too many `cell` has, with the bytes for each of those frames.
fn excess(counted: CountedBytes, links: &LinkPorts, cell: Cell) -> Vec<(Cell, u64)> {
    let (_, index) = cell;
    let reason =
        |index: usize| Reason::ALL.iter().find(|reason| reason.slot() == index % REASON_SLOTS).copied();
    let returned = |cells: Vec<Cell>| cells.into_iter().map(|cell| (cell, counted.returned)).collect();
    if is(cell, &counters::VERDICTS) {
        return match reason(index) {
            Some(reason) if WITH_HEADER.contains(&reason) => returned(vec![cell]),
            // Frames from links end there too.
            Some(Reason::MtuExceeded) => returned((0..counters::PAIRS).map(too_long).collect()),
            _ => Vec::new(),
        };
    }
    if is(cell, &counters::PAIR_VERDICTS) {
        let has = |reason| WITH_HEADER.contains(&reason) || reason == Reason::MtuExceeded;
        return if reason(index).is_some_and(has) { returned(vec![cell]) } else { Vec::new() };
    }
    if is(cell, &counters::LINK_OUT) {
        return returned(vec![cell]);
    }
    if is(cell, &counters::PROBES_OUT) {
        return vec![(cell, counted.packet_out)];
    }
    if is(cell, &counters::PORT_OUT) {
        let mut cells: Vec<(Cell, u64)> = returned(links.returned(port_of(index)).into_iter().collect());
        cells.push(((counters::PROBES_OUT.id, index), counted.packet_out));
        return cells;
    }
    Vec::new()
}

fn exact(counted: CountedBytes) -> bool {
    counted.returned == 0 && counted.packet_out == 0
}

/// What must be read to have `wanted`, those first, each cell once.
#[must_use]
pub fn cells_for(counted: CountedBytes, links: &LinkPorts, mut wanted: Vec<Cell>) -> Vec<Cell> {
    let mut seen: std::collections::BTreeSet<Cell> = wanted.iter().copied().collect();
    if !exact(counted) {
        let needed: Vec<Cell> = wanted
            .iter()
            .flat_map(|cell| excess(counted, links, *cell))
            .map(|(cell, _)| cell)
            .filter(|cell| seen.insert(*cell))
            .collect();
        wanted.extend(needed);
    }
    wanted
}

/// Takes off what the target counted too much; `read` has what [`cells_for`] asked for.
pub fn correct(counted: CountedBytes, links: &LinkPorts, read: &mut BTreeMap<Cell, Count>) {
    if exact(counted) {
        return;
    }
    // Frames are right in every cell, so the order does not matter.
    let frames: BTreeMap<Cell, u64> = read.iter().map(|(cell, count)| (*cell, count.packets)).collect();
    for (cell, count) in read {
        let excess: u64 = excess(counted, links, *cell)
            .into_iter()
            .map(|(of, bytes)| frames.get(&of).copied().unwrap_or(0).saturating_mul(bytes))
            .fold(0, u64::saturating_add);
        // Cells are read one after the other: a frame in between must not bring a count below 0.
        count.bytes = count.bytes.saturating_sub(excess);
    }
}

#[cfg(test)]
mod tests {
    use dataplane::tables::{LinkEntry, LinkForwarding};
    use dataplane::target::{BMV2, SWPIPE};

    use super::*;

    fn links() -> LinkPorts {
        let entry = |side, port| {
            let forwarding = LinkForwarding::Port(PortId(port));
            LinkEntry { link: LinkIndex(3), side, forwarding }.entry()
        };
        LinkPorts::of(&Tables::of(vec![entry(Side::Lan, 8), entry(Side::Wan, 9)]))
    }

    /// Reads `wanted` from a device whose cells have these counts, all others none.
    fn read(counted: CountedBytes, wanted: &[Cell], device: &[(Cell, u64, u64)]) -> Vec<u64> {
        let asked = cells_for(counted, &links(), wanted.to_vec());
        assert_eq!(asked[..wanted.len()], *wanted);
        let value = |cell: &Cell| {
            let found = device.iter().find(|(of, ..)| of == cell);
            found.map_or(Count::default(), |(_, packets, bytes)| Count { packets: *packets, bytes: *bytes })
        };
        let mut read = asked.iter().map(|cell| (*cell, value(cell))).collect();
        correct(counted, &links(), &mut read);
        wanted.iter().map(|cell| read[cell].bytes).collect()
    }

    fn verdict(reason: Reason) -> Cell {
        (counters::VERDICTS.id, reason.slot())
    }

    fn of_pair(pair: u16, reason: Reason) -> Cell {
        (counters::PAIR_VERDICTS.id, counters::pair_verdict(PairId(pair), reason))
    }

    #[test]
    fn frames_that_return_are_counted_without_their_header() {
        let link_out = (counters::LINK_OUT.id, counters::link_out(LinkIndex(3), Side::Wan));
        let port_out = (counters::PORT_OUT.id, 9);
        let device = [
            (verdict(Reason::Returned), 10, 1040),
            (verdict(Reason::UnknownLink), 2, 208),
            (verdict(Reason::NoFlow), 5, 500),
            (of_pair(7, Reason::Returned), 10, 1040),
            (of_pair(7, Reason::CopyReturn), 1, 104),
            (link_out, 10, 1040),
            // With 5 frames of other links' traffic that was bypassed.
            (port_out, 15, 1540),
        ];
        let wanted: Vec<Cell> = device.iter().map(|(cell, ..)| *cell).collect();
        assert_eq!(read(BMV2.counted, &wanted, &device), [1000, 200, 500, 1000, 104, 1000, 1500]);
        let as_counted: Vec<u64> = device.iter().map(|(.., bytes)| *bytes).collect();
        assert_eq!(read(SWPIPE.counted, &wanted, &device), as_counted);
        assert_eq!(read(BMV2.counted, &[port_out], &device), [1500], "whatever else is asked for");
    }

    #[test]
    fn frames_that_are_too_long_are_told_apart_by_where_they_came_from() {
        let device = [
            (verdict(Reason::MtuExceeded), 6, 6 * 2000 + 4 * 4),
            (of_pair(0, Reason::MtuExceeded), 3, 3 * 2004),
            (of_pair(511, Reason::MtuExceeded), 1, 2004),
        ];
        let wanted: Vec<Cell> = device.iter().map(|(cell, ..)| *cell).collect();
        assert_eq!(read(BMV2.counted, &wanted, &device), [12_000, 6000, 2000]);
        assert_eq!(read(BMV2.counted, &wanted[..1], &device), [12_000]);
    }

    #[test]
    fn keep_alives_are_counted_without_the_controllers_header() {
        let (probes, out, other) =
            ((counters::PROBES_OUT.id, 20), (counters::PORT_OUT.id, 20), (counters::PORT_OUT.id, 21));
        let device = [(probes, 100, 6200), (out, 103, 6500), (other, 4, 400)];
        assert_eq!(read(BMV2.counted, &[probes, out, other], &device), [6000, 6300, 400]);
    }

    #[test]
    fn a_frame_between_two_reads_brings_no_count_below_zero() {
        let cell = of_pair(0, Reason::Returned);
        assert_eq!(read(BMV2.counted, &[cell], &[(cell, 1, 0)]), [0]);
    }
}
