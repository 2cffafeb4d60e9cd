//! Counters: each worker has a block of its own that it alone writes; a read sums the blocks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use dataplane::entry::P4Id;
use dataplane::schema::counters as schema;
use dataplane::{LinkIndex, PairId, PortId, Reason, Side, verdict::REASON_SLOTS};

use crate::tables::RuleSlot;

/// Rules that can be counted: both tables full.
pub const RULE_SLOTS: usize = 2 * 131_072;

/// Frames and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames.
    pub packets: u64,
    /// Bytes, as the frames were on the link, without FCS; by a port's own counter, as they came in.
    pub bytes: u64,
}

impl Count {
    fn plus(self, other: Count) -> Count {
        Count {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }

    fn minus(self, other: Count) -> Count {
        Count {
            packets: self.packets.wrapping_sub(other.packets),
            bytes: self.bytes.wrapping_sub(other.bytes),
        }
    }
}

#[derive(Default)]
struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Cell {
    /// One writer only: no locked instruction is needed.
    #[inline(always)]
    fn add(&self, sum: Sum) {
        self.packets.store(self.packets.load(Relaxed).wrapping_add(sum.frames), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed).wrapping_add(sum.bytes), Relaxed);
    }

    /// Frames whose bytes nobody saw.
    fn add_frames(&self, frames: u64) {
        self.packets.store(self.packets.load(Relaxed).wrapping_add(frames), Relaxed);
    }

    fn read(&self) -> Count {
        Count { packets: self.packets.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

/// Frames and bytes that are counted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

impl Sum {
    #[inline(always)]
    pub(crate) const fn of(bytes: usize) -> Self {
        Sum { frames: 1, bytes: bytes as u64 }
    }

    #[inline(always)]
    pub(crate) const fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

#[inline(always)]
fn add(cells: &[Cell], index: usize, sum: Sum) {
    if let Some(cell) = cells.get(index) {
        cell.add(sum);
    }
}

fn cells(count: usize) -> Box<[Cell]> {
    (0..count).map(|_| Cell::default()).collect()
}

/// One worker's counters.
pub struct Block {
    unknown_port: Cell,
    link_verdicts: Box<[Cell]>,
    pair_verdicts: Box<[Cell]>,
    pair_out: Box<[Cell]>,
    link_out: Box<[Cell]>,
    port_in: Box<[Cell]>,
    port_out: Box<[Cell]>,
    copies: Box<[Cell]>,
    port_missed: Box<[Cell]>,
    port_lost: Box<[Cell]>,
    probes_out: Box<[Cell]>,
    rules: Box<[Cell]>,
}

impl Block {
    fn new() -> Self {
        Block {
            unknown_port: Cell::default(),
            link_verdicts: cells(schema::LINK_VERDICTS.size),
            pair_verdicts: cells(schema::PAIR_VERDICTS.size),
            pair_out: cells(schema::PAIR_OUT.size),
            link_out: cells(schema::LINK_OUT.size),
            port_in: cells(schema::PORT_IN.size),
            port_out: cells(schema::PORT_OUT.size),
            copies: cells(schema::COPIES.size),
            port_missed: cells(schema::PORT_MISSED.size),
            port_lost: cells(schema::PORT_LOST.size),
            probes_out: cells(schema::PROBES_OUT.size),
            rules: cells(RULE_SLOTS),
        }
    }

    /// Counts what came in by a port.
    #[inline(always)]
    pub(crate) fn count_in(&self, port: PortId, sum: Sum) {
        add(&self.port_in, schema::port(port), sum);
    }

    /// Counts what came in by a port of nobody.
    pub(crate) fn count_unknown_port(&self, sum: Sum) {
        self.unknown_port.add(sum);
    }

    /// Counts frames of a link that ended alike.
    #[inline(always)]
    pub(crate) fn count_link_verdict(&self, link: LinkIndex, reason: Reason, sum: Sum) {
        add(&self.link_verdicts, schema::link_verdict(link, reason), sum);
    }

    /// Counts frames of a pair that ended alike.
    #[inline(always)]
    pub(crate) fn count_pair_verdict(&self, pair: PairId, reason: Reason, sum: Sum) {
        add(&self.pair_verdicts, schema::pair_verdict(pair, reason), sum);
    }

    /// Counts frames that matched a rule.
    #[inline(always)]
    pub(crate) fn count_rule(&self, rule: RuleSlot, sum: Sum) {
        add(&self.rules, rule.0 as usize, sum);
    }

    /// Counts a frame that was sent to a pair's appliance.
    #[inline(always)]
    pub(crate) fn count_forwarded(&self, pair: PairId, side: Side, bytes: usize) {
        add(&self.pair_out, schema::pair_out(pair, side), Sum::of(bytes));
    }

    /// Counts frames that were sent back to their link.
    #[inline(always)]
    pub(crate) fn count_returned(&self, link: LinkIndex, side: Side, sum: Sum) {
        add(&self.link_out, schema::link_out(link, side), sum);
    }

    /// Counts frames that were sent by a port.
    #[inline(always)]
    pub(crate) fn count_out(&self, port: PortId, sum: Sum) {
        add(&self.port_out, schema::port(port), sum);
    }

    /// Counts a copy that was sent, or lost.
    #[inline(always)]
    pub(crate) fn count_copy(&self, pair: PairId, bytes: usize, sent: bool) {
        add(&self.copies, schema::copies(pair, !sent), Sum::of(bytes));
    }

    /// Counts frames that a port's interface had for the pipeline and the pipeline had no room for.
    pub fn count_missed(&self, port: PortId, frames: u64) {
        if let Some(cell) = self.port_missed.get(schema::port(port)) {
            cell.add_frames(frames);
        }
    }

    /// Counts frames that a port's interface lost after they were sent.
    pub fn count_lost(&self, port: PortId, frames: u64) {
        if let Some(cell) = self.port_lost.get(schema::port(port)) {
            cell.add_frames(frames);
        }
    }

    /// Counts a packet of the controller that was sent.
    pub fn count_sent(&self, port: PortId, bytes: usize, is_keep_alive: bool) {
        let probes = is_keep_alive.then_some(&self.probes_out);
        for cells in [Some(&self.port_out), probes].into_iter().flatten() {
            if let Some(cell) = cells.get(schema::port(port)) {
                cell.add(Sum::of(bytes));
            }
        }
    }

    fn read(&self, place: Place) -> Count {
        let at = |cells: &[Cell], index: usize| cells.get(index).map(Cell::read).unwrap_or_default();
        let (array, index) = match place {
            Place::Rule(slot) => return at(&self.rules, slot.0 as usize),
            Place::Array(array, index) => (array, index),
        };
        match array {
            id if id == schema::VERDICTS.id => self.verdict(index),
            id if id == schema::LINK_VERDICTS.id => at(&self.link_verdicts, index),
            id if id == schema::PAIR_VERDICTS.id => at(&self.pair_verdicts, index),
            id if id == schema::PAIR_OUT.id => at(&self.pair_out, index),
            id if id == schema::LINK_OUT.id => at(&self.link_out, index),
            id if id == schema::PORT_IN.id => at(&self.port_in, index),
            id if id == schema::PORT_OUT.id => at(&self.port_out, index),
            id if id == schema::COPIES.id => at(&self.copies, index),
            id if id == schema::PORT_MISSED.id => at(&self.port_missed, index),
            id if id == schema::PORT_LOST.id => at(&self.port_lost, index),
            id if id == schema::PROBES_OUT.id => at(&self.probes_out, index),
            _ => Count::default(),
        }
    }

    /// Frames of a reason: the sum over links and pairs, so that the frame path need not count it again.
    fn verdict(&self, reason: usize) -> Count {
        let column = |cells: &[Cell]| {
            cells
                .chunks_exact(REASON_SLOTS)
                .filter_map(|row| row.get(reason))
                .fold(Count::default(), |sum, cell| sum.plus(cell.read()))
        };
        let sum = column(&self.link_verdicts).plus(column(&self.pair_verdicts));
        if reason == Reason::UnknownPort.slot() { sum.plus(self.unknown_port.read()) } else { sum }
    }
}

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A rule's direct counter.
    Rule(RuleSlot),
    /// A cell of a counter array.
    Array(P4Id, usize),
}

/// The counters of all workers.
#[derive(Default)]
pub struct Counters {
    blocks: Mutex<Vec<Arc<Block>>>,
    /// What a counter showed when it was last set, less what it was set to.
    bases: Mutex<HashMap<Place, Count>>,
}

impl Counters {
    /// A block for one more writer.
    #[must_use]
    pub fn block(&self) -> Arc<Block> {
        let block = Arc::new(Block::new());
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(block.clone());
        block
    }

    fn sum(&self, place: Place) -> Count {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.iter().fold(Count::default(), |sum, block| sum.plus(block.read(place)))
    }

    /// A counter's value.
    #[must_use]
    pub fn read(&self, place: Place) -> Count {
        let base = self.bases.lock().unwrap_or_else(PoisonError::into_inner).get(&place).copied();
        self.sum(place).minus(base.unwrap_or_default())
    }

    /// Sets a counter; workers go on counting meanwhile.
    pub fn set(&self, place: Place, value: Count) {
        let base = self.sum(place).minus(value);
        let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        if base == Count::default() {
            bases.remove(&place);
        } else {
            bases.insert(place, base);
        }
    }
}
