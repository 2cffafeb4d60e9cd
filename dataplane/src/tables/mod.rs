//! The tables in the order in which a frame meets them, one file each: schema and typed entry.

mod buckets;
mod clone_sessions;
mod links;
mod pair_ports;
mod pair_state;
mod port_mtu;
mod ports;
mod rules;
mod steering;
mod units;

pub use buckets::{BucketBypass, BucketEntry, BucketForwarding, TABLE as BUCKETS};
pub use clone_sessions::{CloneSessionEntry, CloneSessionId, TABLE as CLONE_SESSIONS};
pub use links::{LinkEntry, LinkForwarding, TABLE as LINKS};
pub use pair_ports::{PairPortEntry, TABLE as PAIR_PORTS};
pub use pair_state::{PairForwarding, PairStateEntry};
pub use port_mtu::PortMtuEntry;
pub use ports::{PortEntry, PortRole};
pub use rules::{
    Family, LLC_PRESENT, Masked, PortRange, RuleAction, RuleEntry, RuleField, RuleMatch, VLAN_PRESENT,
};
pub use steering::{FORBIDDEN_TPIDS, SteeringEntry};
pub use units::{UnitEntry, UnitMode};

use crate::entry::{Condition, Entry, EntryError, P4Id};
use crate::ids::PairId;
use crate::schema::counters::PAIRS;
use crate::schema::{Action, Table};

/// The tables of the program, in the order in which a frame meets them: those of the P4Info.
pub static PROGRAM: &[&Table] = match ALL.split_last() {
    Some((_clone_sessions, program)) => program,
    None => &[],
};

/// The tables of the program, and last what is written like a table but stands outside of it: the clone sessions of
/// the packet replication engine, which P4Runtime carries as entries of their own.
pub static ALL: [&Table; 11] = [
    &steering::TABLE,
    &ports::TABLE,
    &rules::TABLE_V4,
    &rules::TABLE_V6,
    &units::TABLE,
    &buckets::TABLE,
    &pair_state::TABLE,
    &pair_ports::TABLE,
    &links::TABLE,
    &port_mtu::TABLE,
    &clone_sessions::TABLE,
];

/// All actions of the program, each once.
#[must_use]
pub fn actions() -> Vec<&'static Action> {
    let mut actions: Vec<&'static Action> = PROGRAM
        .iter()
        .flat_map(|table| table.actions.iter().copied().chain([table.default_action]))
        .collect();
    actions.sort_by_key(|action| action.id);
    actions.dedup_by_key(|action| action.id);
    actions
}

/// The table of this id.
#[must_use]
pub fn by_id(id: P4Id) -> Option<&'static Table> {
    ALL.iter().find(|table| table.id == id).copied()
}

/// The table of this id, if it is one of the program.
#[must_use]
pub fn of_program(id: P4Id) -> Option<&'static Table> {
    PROGRAM.iter().find(|table| table.id == id).copied()
}

/// An entry with its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableEntry {
    /// How steering headers look.
    Steering(SteeringEntry),
    /// What a port is for.
    Port(PortEntry),
    /// A flow rule.
    Rule(Box<RuleEntry>),
    /// A unit.
    Unit(UnitEntry),
    /// What becomes of a bucket's share.
    Bucket(BucketEntry),
    /// Whether a pair carries traffic.
    PairState(PairStateEntry),
    /// The port of one side of a pair.
    PairPort(PairPortEntry),
    /// Where frames of one side of a link go when they come back.
    Link(LinkEntry),
    /// The MTU of a port.
    PortMtu(PortMtuEntry),
    /// Where copies of a clone session go.
    CloneSession(CloneSessionEntry),
}

impl TableEntry {
    /// Checks an entry against the schema and reads it.
    ///
    /// # Errors
    /// What the schema does not allow, or a parameter without meaning.
    pub fn parse(entry: &Entry) -> Result<Self, EntryError> {
        let table = by_id(entry.table).ok_or(EntryError::UnknownTable(entry.table))?;
        table.check(entry)?;
        let reader = EntryReader { entry, table };
        match entry.table {
            id if id == steering::TABLE.id => SteeringEntry::read(&reader).map(Self::Steering),
            id if id == ports::TABLE.id => PortEntry::read(&reader).map(Self::Port),
            id if id == rules::TABLE_V4.id => {
                RuleEntry::read(&reader, Family::V4).map(|rule| Self::Rule(Box::new(rule)))
            }
            id if id == rules::TABLE_V6.id => {
                RuleEntry::read(&reader, Family::V6).map(|rule| Self::Rule(Box::new(rule)))
            }
            id if id == units::TABLE.id => UnitEntry::read(&reader).map(Self::Unit),
            id if id == buckets::TABLE.id => BucketEntry::read(&reader).map(Self::Bucket),
            id if id == pair_state::TABLE.id => PairStateEntry::read(&reader).map(Self::PairState),
            id if id == pair_ports::TABLE.id => PairPortEntry::read(&reader).map(Self::PairPort),
            id if id == links::TABLE.id => LinkEntry::read(&reader).map(Self::Link),
            id if id == port_mtu::TABLE.id => Ok(Self::PortMtu(PortMtuEntry::read(&reader))),
            id if id == clone_sessions::TABLE.id => CloneSessionEntry::read(&reader).map(Self::CloneSession),
            id => Err(EntryError::UnknownTable(id)),
        }
    }
}

/// Reads the numbers of an entry that the schema has accepted.
struct EntryReader<'e> {
    entry: &'e Entry,
    table: &'static Table,
}

impl EntryReader<'_> {
    /// Value of an exact field.
    fn exact(&self, field: P4Id) -> u128 {
        match self.condition(field) {
            Some(Condition::Exact(value)) => value,
            _ => 0,
        }
    }

    fn condition(&self, field: P4Id) -> Option<Condition> {
        self.entry.key.iter().find(|(id, _)| *id == field).map(|(_, condition)| *condition)
    }

    /// Parameter at `index`, from 0.
    fn param(&self, index: usize) -> u128 {
        self.entry.params.get(index).copied().unwrap_or(0)
    }

    /// Pair in an exact field: one that the counters have room for.
    fn pair_key(&self, field: P4Id) -> Result<PairId, EntryError> {
        let pair = PairId(self.exact(field) as u16);
        if pair.index() < PAIRS { Ok(pair) } else { Err(self.bad_key(field, "0..511")) }
    }

    fn bad_key(&self, id: P4Id, wanted: &'static str) -> EntryError {
        let field = self.table.field(id).map_or("", |(field, _)| field.name);
        EntryError::Key { table: self.table.name, field, value: self.exact(id), wanted }
    }

    /// Pair in a parameter: one that the counters have room for.
    fn pair_param(&self, index: usize) -> Result<PairId, EntryError> {
        let pair = PairId(self.param(index) as u16);
        if pair.index() < PAIRS { Ok(pair) } else { Err(self.bad_param(index, "0..511")) }
    }

    fn bad_param(&self, index: usize, wanted: &'static str) -> EntryError {
        let action = self
            .table
            .actions
            .iter()
            .copied()
            .chain([self.table.default_action])
            .find(|action| action.id == self.entry.action);
        EntryError::Param {
            action: action.map_or("", |action| action.name),
            param: action.and_then(|action| action.params.get(index)).map_or("", |param| param.name),
            value: self.param(index),
            wanted,
        }
    }

    fn unknown_action(&self) -> EntryError {
        EntryError::UnknownAction { table: self.table.name, action: self.entry.action }
    }
}

/// An entry of a table whose fields are exact.
fn exact_entry(table: &Table, key: &[(P4Id, u128)], action: &Action, params: &[u128]) -> Entry {
    Entry {
        table: table.id,
        key: key.iter().map(|(field, value)| (*field, Condition::Exact(*value))).collect(),
        priority: 0,
        action: action.id,
        params: params.to_vec(),
        metadata: Vec::new(),
        is_default: false,
    }
}
