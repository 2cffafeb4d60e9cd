//! The state matrix: admin x carrier x probes x hold x unit mode -> state of the pair, and what happens to its frames.
//!
//! Everything that decides about a state asks these functions; the table on the page *Liveness* is written by them.

use std::fmt;

use crate::{Admin, PairState, UnitMode, UnitState};

/// What the keep-alives of a pair alone say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Probes {
    /// Neither count has been reached yet.
    #[default]
    Unknown,
    /// probes-up-count good ones in a row, and not probes-down-count bad ones since.
    Good,
    /// probes-down-count bad ones in a row, and not probes-up-count good ones since.
    Bad,
}

/// What happens to the frames whose buckets belong to a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frames {
    /// Through the pair's appliance.
    Appliance,
    /// Where the unit rebalances: through the pairs that stand in. Else its fail-action: to the peer port, or dropped.
    FailAction,
    /// To the peer port, by no appliance; through the backup unit where there is one.
    Bypass,
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Frames::Appliance => "appliance",
            Frames::FailAction => "fail-action",
            Frames::Bypass => "bypass",
        })
    }
}

/// State of a pair: by the configuration, the carrier of both ports, the keep-alives, and whether a hold (or its trial)
/// runs.
#[must_use]
pub fn pair_state(admin: Admin, carrier: bool, probes: Probes, held: bool) -> PairState {
    match (admin, carrier, probes, held) {
        (Admin::Down, ..) => PairState::AdminDown,
        (_, false, ..) | (_, true, Probes::Bad, _) => PairState::Down,
        (_, true, Probes::Unknown, _) => PairState::Init,
        (_, true, Probes::Good, true) => PairState::Held,
        (Admin::Up, true, Probes::Good, false) => PairState::Up,
        (Admin::Drain, true, Probes::Good, false) => PairState::Draining,
    }
}

/// State of a unit: by who decides, and whether active-pairs are in service.
#[must_use]
pub fn unit_state(mode: UnitMode, enough: bool) -> UnitState {
    match (mode, enough) {
        (UnitMode::Primary, _) => UnitState::Primary,
        (UnitMode::Auto, true) => UnitState::Up,
        (UnitMode::Auto, false) | (UnitMode::Bypass, _) => UnitState::Bypass,
    }
}

/// What happens to the frames of a pair's buckets.
#[must_use]
pub fn frames(unit: UnitState, pair: PairState) -> Frames {
    match unit {
        UnitState::Bypass => Frames::Bypass,
        UnitState::Primary => Frames::Appliance,
        UnitState::Up if pair.carries() => Frames::Appliance,
        UnitState::Up => Frames::FailAction,
    }
}
