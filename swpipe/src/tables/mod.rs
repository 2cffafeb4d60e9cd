//! The tables as the frame path reads them, in the order in which a frame meets them, one file each.

mod buckets;
mod clone_sessions;
mod links;
mod pair_ports;
mod pair_state;
mod port_mtu;
mod ports;
mod rules;
mod units;

use std::sync::Arc;

use dataplane::SteeringMode;
use dataplane::frame::ParseLimits;
use dataplane::tables::TableEntry;

pub use buckets::Buckets;
pub use clone_sessions::CloneSessions;
pub use links::Links;
pub use pair_ports::PairPorts;
pub use pair_state::PairStates;
pub use port_mtu::PortMtus;
pub use ports::Ports;
pub use rules::{RuleSlot, Rules, Seat};
pub use units::Units;

/// All tables at one instant. A worker sees one snapshot for a whole batch; a change makes the next one,
/// which shares what did not change.
#[derive(Clone)]
pub struct Snapshot {
    /// How far frames are parsed; of the target, not of any table.
    pub limits: ParseLimits,
    /// Format of steering headers.
    pub steering: SteeringMode,
    /// What a port is for.
    pub ports: Arc<Ports>,
    /// Flow rules.
    pub rules: Arc<Rules>,
    /// Method, bucket mask and state of units.
    pub units: Arc<Units>,
    /// Pair and core of buckets, or what else becomes of them.
    pub buckets: Arc<Buckets>,
    /// Whether pairs carry traffic.
    pub pair_states: Arc<PairStates>,
    /// Ports of pairs.
    pub pair_ports: Arc<PairPorts>,
    /// Where frames of links go when they come back.
    pub links: Arc<Links>,
    /// Longest frames.
    pub mtus: Arc<PortMtus>,
    /// Where copies go.
    pub clones: Arc<CloneSessions>,
}

impl Snapshot {
    /// Of a target whose tables are empty.
    #[must_use]
    pub fn empty(limits: ParseLimits) -> Self {
        Snapshot {
            limits,
            steering: SteeringMode::default(),
            ports: Arc::default(),
            rules: Arc::default(),
            units: Arc::default(),
            buckets: Arc::default(),
            pair_states: Arc::default(),
            pair_ports: Arc::default(),
            links: Arc::default(),
            mtus: Arc::default(),
            clones: Arc::default(),
        }
    }

    /// Puts an entry in; `seat` is that of a rule.
    pub(crate) fn set(&mut self, entry: &TableEntry, seat: Seat) {
        match entry {
            TableEntry::Steering(steering) => self.steering = steering.mode,
            TableEntry::Port(port) => Arc::make_mut(&mut self.ports).set(port),
            TableEntry::Rule(rule) => Arc::make_mut(&mut self.rules).set(rule, seat),
            TableEntry::Unit(unit) => Arc::make_mut(&mut self.units).set(unit),
            TableEntry::Bucket(bucket) => Arc::make_mut(&mut self.buckets).set(bucket),
            TableEntry::PairState(state) => Arc::make_mut(&mut self.pair_states).set(state),
            TableEntry::PairPort(port) => Arc::make_mut(&mut self.pair_ports).set(port),
            TableEntry::Link(link) => Arc::make_mut(&mut self.links).set(link),
            TableEntry::PortMtu(mtu) => Arc::make_mut(&mut self.mtus).set(mtu),
            TableEntry::CloneSession(session) => Arc::make_mut(&mut self.clones).set(session),
        }
    }

    /// Takes an entry out.
    pub(crate) fn clear(&mut self, entry: &TableEntry, seat: Seat) {
        match entry {
            TableEntry::Steering(_) => self.steering = SteeringMode::default(),
            TableEntry::Port(port) => Arc::make_mut(&mut self.ports).clear(port),
            TableEntry::Rule(rule) => Arc::make_mut(&mut self.rules).clear(rule, seat),
            TableEntry::Unit(unit) => Arc::make_mut(&mut self.units).clear(unit),
            TableEntry::Bucket(bucket) => Arc::make_mut(&mut self.buckets).clear(bucket),
            TableEntry::PairState(state) => Arc::make_mut(&mut self.pair_states).clear(state),
            TableEntry::PairPort(port) => Arc::make_mut(&mut self.pair_ports).clear(port),
            TableEntry::Link(link) => Arc::make_mut(&mut self.links).clear(link),
            TableEntry::PortMtu(mtu) => Arc::make_mut(&mut self.mtus).clear(mtu),
            TableEntry::CloneSession(session) => Arc::make_mut(&mut self.clones).clear(session),
        }
    }
}
