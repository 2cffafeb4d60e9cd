//! Random but valid contents of all tables: what a controller could write, right or odd.

use std::collections::BTreeSet;

use dataplane::entry::Entry;
use dataplane::frame::ETHERNET_HEADER;
use dataplane::tables::{
    BucketBypass, BucketEntry, BucketForwarding, CloneSessionEntry, FORBIDDEN_TPIDS, LinkEntry,
    LinkForwarding, PairForwarding, PairPortEntry, PairStateEntry, PortEntry, PortMtuEntry, PortRole,
    SteeringEntry, UnitEntry, UnitMode,
};
use dataplane::{
    BucketIndex, BucketTable, Core, LinkIndex, Method, PairId, PortId, Side, SteeringMode, UnitId, UnitShape,
    hash, parse,
};

use super::rules;
use crate::rng::Rng;

/// TPIDs that steering headers get: usual ones, and any other that is allowed.
const STEERING_TPIDS: [u16; 9] = [0x88b6, 0x88b6, 0x8100, 0x88a8, 0x9100, 0x9200, 0x0600, 0x88b7, 0xffff];

/// Contents of all tables, and what a sender of frames must know of them.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Format of steering headers.
    pub steering: SteeringMode,
    /// Ports of links.
    pub link_ports: Vec<PortId>,
    /// Ports of pairs.
    pub pair_ports: Vec<PortId>,
    /// Ports of pairs that only get copies.
    pub copy_ports: Vec<PortId>,
    /// Ports that serve nothing.
    pub unknown_ports: Vec<PortId>,
    /// Links that there are.
    pub links: Vec<LinkIndex>,
}

/// What the parts are drawn from.
struct Draw<'d> {
    rng: &'d mut Rng,
    free: Vec<PortId>,
    /// Buckets that have an entry.
    written: BTreeSet<(UnitId, u16)>,
    contents: Contents,
}

impl Contents {
    /// Draws contents whose ports are among `ports` (at least 8) and whose rules, buckets and MTUs suit `frames`.
    #[must_use]
    pub fn draw(rng: &mut Rng, ports: &[PortId], frames: &[Vec<u8>]) -> Self {
        let mut free = ports.to_vec();
        rng.shuffle(&mut free);
        let contents = Contents {
            entries: Vec::new(),
            steering: SteeringMode::default(),
            link_ports: Vec::new(),
            pair_ports: Vec::new(),
            copy_ports: Vec::new(),
            unknown_ports: Vec::new(),
            links: Vec::new(),
        };
        let mut draw = Draw { rng, free, written: BTreeSet::new(), contents };
        draw.steering();
        draw.links();
        let pairs = draw.pairs();
        let units = draw.units(&pairs, frames);
        draw.mtus(frames);
        let Draw { rng, free, mut contents, .. } = draw;
        contents.entries.extend(rules::draw(rng, &contents.links, &units, frames));
        contents.unknown_ports = free.into_iter().take(4).collect();
        contents
    }
}

fn distinct(rng: &mut Rng, count: u64, below: u64, always: &[u64]) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    for number in always {
        if rng.chance(1, 3) {
            seen.insert(*number);
        }
    }
    while (seen.len() as u64) < count {
        seen.insert(rng.below(below));
    }
    let mut numbers: Vec<u64> = seen.into_iter().collect();
    rng.shuffle(&mut numbers);
    numbers.truncate(count as usize);
    numbers
}

impl Draw<'_> {
    fn put(&mut self, entry: Entry) {
        self.contents.entries.push(entry);
    }

    fn steering(&mut self) {
        if self.rng.chance(1, 6) {
            return; // the default action as it is
        }
        let mut tpid = self.rng.any(STEERING_TPIDS);
        if self.rng.chance(1, 6) {
            tpid = self.rng.between(0x0600, 0xffff) as u16;
            if FORBIDDEN_TPIDS.contains(&tpid) {
                tpid = 0x88b6;
            }
        }
        let mode = if self.rng.chance(1, 2) {
            SteeringMode::Native { tpid }
        } else {
            let odd = self.rng.below(4096) as u16;
            let base_vid = self.rng.any([1, 100, 0, 3840, 4000, 4095, odd]);
            SteeringMode::Dot1q { tpid, base_vid }
        };
        self.contents.steering = mode;
        self.put(SteeringEntry { mode }.entry());
    }

    fn links(&mut self) {
        let room = (self.free.len() as u64 / 4).min(8);
        let count = self.rng.between(1, room.max(1));
        for link in distinct(self.rng, count, 256, &[0, 255]) {
            let link = LinkIndex(link as u8);
            let (Some(lan), Some(wan)) = (self.free.pop(), self.free.pop()) else { break };
            self.contents.links.push(link);
            for (side, port, peer) in [(Side::Lan, lan, wan), (Side::Wan, wan, lan)] {
                self.contents.link_ports.push(port);
                self.put(PortEntry { port, role: PortRole::Link { link, side, peer } }.entry());
                if !self.rng.chance(1, 15) {
                    let forwarding = LinkForwarding::Port(port);
                    self.put(LinkEntry { link, side, forwarding }.entry());
                }
            }
        }
        // Probes of the controller come back by an index that no link has; frames name it as they do a link's.
        let first = self.rng.any([255, 255, 0, 77]);
        let mut indices = (first..=255).chain(0..first).map(LinkIndex);
        let Some(probes) = indices.find(|index| !self.contents.links.contains(index)) else { return };
        self.contents.links.push(probes);
        for side in Side::BOTH {
            if !self.rng.chance(1, 15) {
                self.put(LinkEntry { link: probes, side, forwarding: LinkForwarding::Controller }.entry());
            }
        }
    }

    fn pairs(&mut self) -> Vec<PairId> {
        let room = (self.free.len() as u64).saturating_sub(1) / 2;
        let count = self.rng.between(1, room.clamp(1, 12));
        let mut pairs = Vec::new();
        for pair in distinct(self.rng, count, 512, &[0, 511]) {
            let pair = PairId(pair as u16);
            let copy = self.rng.chance(1, 4);
            for side in Side::BOTH {
                let Some(port) = self.free.pop() else { return pairs };
                let kind = if copy { &mut self.contents.copy_ports } else { &mut self.contents.pair_ports };
                kind.push(port);
                self.put(PortEntry { port, role: PortRole::Pair { pair, side, copy } }.entry());
                if !self.rng.chance(1, 12) {
                    self.put(PairPortEntry { pair, side, port }.entry());
                    self.clone_session(port);
                }
            }
            let forwarding = match self.rng.weighted(&[70, 10, 12, 8]) {
                0 => Some(PairForwarding::Up),
                1 => Some(PairForwarding::Bypass),
                2 => Some(PairForwarding::Drop),
                _ => None,
            };
            if let Some(forwarding) = forwarding {
                self.put(PairStateEntry { pair, forwarding }.entry());
            }
            pairs.push(pair);
        }
        pairs
    }

    /// Where copies by a port go: there, mostly.
    fn clone_session(&mut self, port: PortId) {
        let session = CloneSessionEntry::to(port);
        match self.rng.weighted(&[88, 8, 4]) {
            0 => self.put(session.entry()),
            1 => {} // no copy is made
            _ => {
                let other = self.rng.pick(&self.contents.link_ports).copied().unwrap_or(port);
                self.put(CloneSessionEntry { port: other, ..session }.entry());
            }
        }
    }

    fn units(&mut self, pairs: &[PairId], frames: &[Vec<u8>]) -> Vec<UnitId> {
        let count = self.rng.between(1, 6);
        let units: Vec<UnitId> =
            distinct(self.rng, count, 256, &[0, 255]).into_iter().map(|unit| UnitId(unit as u8)).collect();
        for unit in &units {
            let kind = self.rng.weighted(&[58, 16, 8, 8, 10]);
            let method = self.rng.any(Method::ALL);
            let bits = self.rng.weighted(&[1, 1, 2, 4, 8, 8, 8, 4, 3, 0, 2, 0, 0, 0, 0, 0, 2]);
            let bucket_mask = ((1u32 << bits) - 1) as u16;
            // Whose buckets: in a backup unit another's, its own among them, or one that nobody wrote.
            let other = UnitId(self.rng.next_u64() as u8);
            let known = self.rng.pick(&units).copied().filter(|_| !self.rng.chance(1, 8));
            let other = known.unwrap_or(other);
            let (mode, of) = match kind {
                0 | 1 => (UnitMode::Balance { method, bucket_mask, primary: kind == 1 }, Some(*unit)),
                2 => (UnitMode::Bypass, None),
                3 => continue, // a unit that nobody wrote
                _ => (UnitMode::Backup { method, bucket_mask, unit: other }, Some(other)),
            };
            self.put(UnitEntry { unit: *unit, mode }.entry());
            if let Some(of) = of {
                self.buckets(of, method, bucket_mask, pairs, frames);
            }
        }
        units
    }

    fn buckets(&mut self, unit: UnitId, method: Method, mask: u16, pairs: &[PairId], frames: &[Vec<u8>]) {
        if mask == 1023 {
            self.computed_buckets(unit, pairs);
            return;
        }
        let mut buckets: BTreeSet<u16> = BTreeSet::new();
        if mask < 256 {
            buckets.extend(0..=mask);
        } else {
            // Those that the frames hash to.
            let sessions = frames.iter().filter_map(|frame| parse(frame).session);
            buckets.extend(
                sessions
                    .flat_map(|session| Side::BOTH.map(|side| hash(&session, method, side) as u16 & mask)),
            );
            buckets.extend((0..16).map(|_| self.rng.next_u64() as u16 & mask));
        }
        for bucket in buckets {
            if self.rng.chance(1, 14) || !self.written.insert((unit, bucket)) {
                continue;
            }
            // A pair that has neither ports nor a state now and then.
            let odd = PairId(self.rng.below(512) as u16);
            let pair =
                if self.rng.chance(1, 40) { odd } else { self.rng.pick(pairs).copied().unwrap_or(odd) };
            let core = Core(self.rng.next_u64() as u8);
            let forwarding = match self.rng.weighted(&[84, 5, 5, 6]) {
                0 => BucketForwarding::Pair { pair, core },
                1 => BucketForwarding::Bypass(BucketBypass::CoreDown),
                2 => BucketForwarding::Bypass(BucketBypass::Shed),
                _ => BucketForwarding::Drop,
            };
            self.put(BucketEntry { unit, bucket: BucketIndex(bucket), forwarding }.entry());
        }
    }

    /// The table that the contract computes ("Buckets"), for pairs named by their numbers.
    fn computed_buckets(&mut self, unit: UnitId, pairs: &[PairId]) {
        let cores = self.rng.between(1, 4) as u16;
        let active = pairs.iter().map(|pair| (pair.to_string(), 1 + (pair.0 % 3) as u8)).collect();
        let shape = UnitShape { active, cores, buckets: Some(1024), ..UnitShape::default() };
        let Ok(table) = BucketTable::build(&shape) else { return };
        for (bucket, (pair, core)) in (0..).zip(table.home()) {
            let Ok(pair) = pair.parse().map(PairId) else { continue };
            if !self.written.insert((unit, bucket)) {
                continue;
            }
            let forwarding = BucketForwarding::Pair { pair, core };
            self.put(BucketEntry { unit, bucket: BucketIndex(bucket), forwarding }.entry());
        }
    }

    /// MTUs about the lengths of the frames, and none, and extremes.
    fn mtus(&mut self, frames: &[Vec<u8>]) {
        let ports = [&self.contents.link_ports, &self.contents.pair_ports, &self.contents.copy_ports];
        let ports: Vec<PortId> = ports.into_iter().flatten().copied().collect();
        for port in ports {
            let length = self.rng.pick(frames).map_or(60, Vec::len);
            let about = (length + 5).saturating_sub(ETHERNET_HEADER) as u64;
            let mtu = match self.rng.weighted(&[55, 16, 20, 2, 3, 4]) {
                0 => continue,
                1 => 1500,
                2 => self.rng.between(about.saturating_sub(10), about) as u16,
                3 => 0,
                4 => 65535,
                _ => self.rng.between(46, 200) as u16,
            };
            self.put(PortMtuEntry { port, mtu }.entry());
        }
    }
}

#[cfg(test)]
mod tests {
    use dataplane::tables::TableEntry;

    use super::*;
    use crate::differential::frames::generate;
    use crate::differential::plane::Plane as _;
    use crate::differential::software::Software;

    #[test]
    fn contents_are_what_the_schema_allows_and_a_device_takes() {
        let mut rng = Rng::new(21);
        let ports: Vec<PortId> = (0..40).map(PortId).collect();
        let mut software = Software::default();
        let mut rules = 0;
        for _ in 0..60 {
            let frames: Vec<_> = (0..40).map(|_| generate(&mut rng)).collect();
            let contents = Contents::draw(&mut rng, &ports, &frames);
            for entry in &contents.entries {
                let parsed = TableEntry::parse(entry).unwrap_or_else(|error| panic!("{error}: {entry:?}"));
                rules += u32::from(matches!(parsed, TableEntry::Rule(_)));
            }
            assert!(!contents.link_ports.is_empty() && !contents.unknown_ports.is_empty());
            software.load(&contents.entries).expect("valid tables");
        }
        assert!(rules > 600, "{rules}");
    }
}
