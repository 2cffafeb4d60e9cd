//! What a poll answers: keep-alives to send and news in the order in which they came about.

use crate::{
    Admin, Direction, Nanos, PairKey, PairState, PerDirection, Side, Tally, UnitKey, UnitMode, UnitState,
};

/// The answer to a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Send these now.
    pub probes: Vec<Probe>,
    /// What changed since the last poll, in order.
    pub events: Vec<Event>,
}

/// A keep-alive to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Through which pair.
    pub pair: PairKey,
    /// Which way.
    pub direction: Direction,
    /// Never used twice for a pair and direction, not even when the pair is removed and added again.
    pub sequence: u64,
}

/// A piece of news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A pair changed state.
    Pair(PairTransition),
    /// A unit changed state.
    Unit(UnitTransition),
    /// The controller's own path came under suspicion, or left it.
    Suspicion(SuspicionNotice),
    /// A keep-alive came back where it must not.
    Cabling(CablingFault),
}

impl Event {
    /// When it came about.
    pub fn at(&self) -> Nanos {
        match self {
            Event::Pair(transition) => transition.at,
            Event::Unit(transition) => transition.at,
            Event::Suspicion(notice) => notice.at,
            Event::Cabling(fault) => fault.at,
        }
    }
}

/// A change of a pair's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairTransition {
    /// The pair.
    pub pair: PairKey,
    /// Its unit.
    pub unit: UnitKey,
    /// State before.
    pub from: PairState,
    /// State after.
    pub to: PairState,
    /// Why.
    pub reason: Reason,
    /// Counters at the moment.
    pub tallies: PerDirection<Tally>,
    /// When.
    pub at: Nanos,
}

/// Why a pair is in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was added.
    Added,
    /// It was added in the state that the data plane already had.
    Adopted,
    /// So many consecutive good keep-alives in both directions.
    Good {
        /// The smaller of both directions' counts.
        count: u32,
    },
    /// So many consecutive losses.
    Losses {
        /// The direction that lost them.
        direction: Direction,
        /// How many in a row.
        count: u32,
    },
    /// A port lost carrier.
    CarrierLost {
        /// Which one.
        side: Side,
    },
    /// The configuration says so.
    Admin(Admin),
    /// Its losses are not believed any more: every other pair lost as well, so that the controller's own path is the
    /// suspect.
    Suspended,
}

/// A change of a unit's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitTransition {
    /// The unit.
    pub unit: UnitKey,
    /// State before.
    pub from: UnitState,
    /// State after.
    pub to: UnitState,
    /// Why.
    pub reason: UnitReason,
    /// When.
    pub at: Nanos,
}

/// Why a unit is in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitReason {
    /// So many pairs are in service, against so many needed.
    PairsInService {
        /// In service now.
        in_service: u16,
        /// The profile's active-pairs.
        needed: u16,
    },
    /// Set by hand.
    Manual(UnitMode),
}

/// The rule about faults of our own changed its mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspicionNotice {
    /// What it says now.
    pub change: SuspicionChange,
    /// When.
    pub at: Nanos,
}

/// How the rule about faults of our own changed its mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspicionChange {
    /// `liveness-suspended`: every pair that was up fails at once; their states stand until then.
    LivenessSuspended {
        /// Pairs that fail.
        pairs: u16,
        /// When the losses will be believed.
        until: Nanos,
    },
    /// Keep-alives come back, or no pair is left to suspect: losses count again, from zero.
    Resumed,
    /// The suspend-limit has passed: the losses are believed.
    Believed,
}

/// A keep-alive came back where it must not. Reported once, and again only after a good one or when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CablingFault {
    /// The pair through which it was sent.
    pub pair: PairKey,
    /// Which way.
    pub direction: Direction,
    /// What is wrong.
    pub fault: Fault,
    /// When.
    pub at: Nanos,
}

/// What is wrong with the cabling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A loop: it came back on the port that it left by.
    Looped,
    /// It came back on this pair.
    OtherPair(PairKey),
}
