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
pub(crate) use buckets::BucketsView;
pub use clone_sessions::CloneSessions;
pub use links::Links;
pub(crate) use links::LinksView;
pub use pair_ports::PairPorts;
pub(crate) use pair_ports::PairPortsView;
pub use pair_state::PairStates;
pub(crate) use pair_state::PairStatesView;
pub use port_mtu::PortMtus;
pub(crate) use port_mtu::PortMtusView;
pub use ports::Ports;
pub use rules::{Matched, Ordered, RuleSlot, Rules, Seat};
pub use units::Units;
pub(crate) use units::UnitsView;

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

/// The tables behind the rules, as one batch after the other reads them: no pointer between a frame and a cell.
#[derive(Clone, Copy)]
pub(crate) struct View<'t> {
    pub(crate) steering: SteeringMode,
    pub(crate) units: UnitsView<'t>,
    pub(crate) buckets: BucketsView<'t>,
    pub(crate) pair_states: PairStatesView<'t>,
    pub(crate) pair_ports: PairPortsView<'t>,
    pub(crate) mtus: PortMtusView<'t>,
    pub(crate) links: LinksView<'t>,
    pub(crate) clones: &'t CloneSessions,
}

impl Snapshot {
    pub(crate) fn view(&self) -> View<'_> {
        View {
            steering: self.steering,
            units: self.units.view(),
            buckets: self.buckets.view(),
            pair_states: self.pair_states.view(),
            pair_ports: self.pair_ports.view(),
            mtus: self.mtus.view(),
            links: self.links.view(),
            clones: &self.clones,
        }
    }

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
