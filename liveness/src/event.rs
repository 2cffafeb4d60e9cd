//! What a poll answers: keep-alives to send and news in the order in which they came about.

use std::fmt;

use crate::{
    Admin, CoreState, Direction, Nanos, PairKey, PairState, PerDirection, ReferenceKey, Side, Tally, UnitKey,
    UnitMode, UnitState,
};

/// The answer to a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Send these now.
    pub probes: Vec<Probe>,
    /// Send these now, by the references.
    pub references: Vec<ReferenceProbe>,
    /// What changed since the last poll, in order.
    pub events: Vec<Event>,
}

/// What a keep-alive asks the appliance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// Whether its ports turn a plain keep-alive round.
    Pair,
    /// Whether this core works: it carries the steering header of the core. Numbered from 0.
    Core(u8),
    /// Whether its real processing works: a UDP frame between two configured addresses.
    Ip,
    /// Whether it lets through what it must not: one that comes back counts against the pair.
    Negative,
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeKind::Pair => f.write_str("pair"),
            ProbeKind::Core(core) => write!(f, "core {core}"),
            ProbeKind::Ip => f.write_str("ip"),
            ProbeKind::Negative => f.write_str("negative"),
        }
    }
}

/// A keep-alive to send; it is also the name by which it is told that it came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Through which pair.
    pub pair: PairKey,
    /// What it asks.
    pub kind: ProbeKind,
    /// Which way.
    pub direction: Direction,
    /// Never used twice for a pair, kind and direction, not even when the pair is removed and added again.
    pub sequence: u64,
}

/// A keep-alive to send by a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReferenceProbe {
    /// By which.
    pub reference: ReferenceKey,
    /// Which way. Of a loop-back port pair: `LanToWan` leaves by the first port. The controller's packet path takes
    /// both the same way.
    pub direction: Direction,
    /// Never used twice for a reference and direction.
    pub sequence: u64,
}

/// A piece of news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A pair changed state.
    Pair(PairTransition),
    /// A core of a pair changed state.
    Core(CoreTransition),
    /// The damping of a pair's flaps began, went on, or was ended by hand.
    Hold(HoldNotice),
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
            Event::Core(transition) => transition.at,
            Event::Hold(notice) => notice.at,
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

/// A change of a core's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreTransition {
    /// Its pair.
    pub pair: PairKey,
    /// The unit of the pair.
    pub unit: UnitKey,
    /// The core, from 0.
    pub core: u8,
    /// State before.
    pub from: CoreState,
    /// State after.
    pub to: CoreState,
    /// Why: [`Reason::Good`] or [`Reason::Losses`] of its own keep-alives.
    pub reason: Reason,
    /// Counters of its own keep-alives at the moment.
    pub tallies: PerDirection<Tally>,
    /// When.
    pub at: Nanos,
}

/// Something about the damping of a pair's flaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldNotice {
    /// The pair.
    pub pair: PairKey,
    /// Its unit.
    pub unit: UnitKey,
    /// What.
    pub change: HoldChange,
    /// When.
    pub at: Nanos,
}

/// What happened to the damping of a pair's flaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldChange {
    /// It is held down from now on.
    Started {
        /// Which down this is, from 1; each doubles the hold.
        down: u32,
        /// When the trial begins.
        until: Nanos,
        /// A failed trial, not a fall from service, is the cause.
        trial_failed: bool,
    },
    /// The hold is over: the next probes-up-count keep-alives decide.
    Trial,
    /// The trial succeeded.
    Passed,
    /// Ended by hand, by the configuration, or because the down was not believed after all.
    Cleared,
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
    /// So many consecutive losses of the `ip` probe, while the plain keep-alives may be good.
    IpLosses {
        /// The direction that lost them.
        direction: Direction,
        /// How many in a row.
        count: u32,
    },
    /// So many consecutive `negative` probes that should not have come back did.
    NegativeReturned {
        /// Their direction.
        direction: Direction,
        /// How many in a row.
        count: u32,
    },
    /// Every core is down, though the pair's plain keep-alives may be good.
    AllCoresDown {
        /// How many.
        cores: u16,
    },
    /// Its hold was ended by hand or by the configuration, and its keep-alives are good.
    HoldCleared,
    /// A port lost carrier.
    CarrierLost {
        /// Which one.
        side: Side,
    },
    /// The configuration says so.
    Admin(Admin),
    /// Its losses are not believed any more: every other pair or its reference lost as well, so that the controller's
    /// own path is the suspect.
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
    /// `liveness-suspended`: this reference fails; the states of the pairs whose profile names it stand until then.
    ReferenceFailed {
        /// Which one.
        reference: ReferenceKey,
        /// When losses will be believed although it fails.
        until: Nanos,
    },
    /// The suspend-limit has passed and this reference still fails: losses are believed.
    ReferenceBelieved {
        /// Which one.
        reference: ReferenceKey,
    },
    /// This reference comes back: losses count again, from zero.
    ReferenceReturned {
        /// Which one.
        reference: ReferenceKey,
    },
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
