//! A unit: whether enough of its pairs are in service.

use crate::{
    Nanos, PairConfig, PairKey, PairState, Profile, Role, UnitKey, UnitReason, UnitTransition, matrix,
};

/// Who decides about a unit's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitMode {
    /// Its pairs do.
    #[default]
    Auto,
    /// Bypassed by hand.
    Bypass,
    /// In service by hand, whatever the states of its pairs.
    Primary,
}

/// State of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitState {
    /// Traffic visits the pairs.
    Up,
    /// Traffic leaves through the peer port.
    Bypass,
    /// Traffic visits the pairs whatever their states.
    Primary,
}

impl UnitState {
    /// Whether traffic visits the unit's pairs. A unit that does not hands its traffic to its backup, if that does.
    pub fn visits_pairs(self) -> bool {
        self != UnitState::Bypass
    }
}

/// A unit as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitConfig {
    /// The unit.
    pub key: UnitKey,
    /// Of all its pairs.
    pub profile: Profile,
    /// Cores of each of its appliances, probed where the profile says so. At most 256.
    pub cores: u16,
    /// Spares stand in for active pairs that are down.
    pub rebalance: bool,
    /// Who decides about its state.
    pub mode: UnitMode,
    /// Its pairs.
    pub pairs: Vec<PairConfig>,
}

impl UnitConfig {
    /// A unit in `auto` mode without rebalance, with appliances of one core.
    pub fn new(key: UnitKey, profile: Profile, pairs: Vec<PairConfig>) -> UnitConfig {
        UnitConfig { key, profile, cores: 1, rebalance: false, mode: UnitMode::default(), pairs }
    }
}

/// A unit, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitStatus {
    /// The unit.
    pub unit: UnitKey,
    /// State.
    pub state: UnitState,
    /// Who decides about it.
    pub mode: UnitMode,
    /// Pairs in service: active pairs that carry and, with rebalance, spares that can stand in for the others.
    pub in_service: u16,
    /// Pairs in service below which it is bypassed.
    pub needed: u16,
    /// Since when it is in this state.
    pub last_change: Nanos,
    /// Why it is in this state, by the figures of now.
    pub last_reason: UnitReason,
    /// How often it went from visiting its pairs to bypass, by its pairs or by hand.
    pub flaps: u64,
    /// Its pairs, in the order of the configuration.
    pub pairs: Vec<PairKey>,
}

#[derive(Clone, Debug)]
pub(crate) struct Unit {
    status: UnitStatus,
    rebalance: bool,
}

impl Unit {
    /// A unit whose state is yet to be settled from its pairs.
    pub(crate) fn new(config: &UnitConfig, now: Nanos) -> Unit {
        let needed = config.profile.active_pairs();
        let status = UnitStatus {
            unit: config.key,
            state: UnitState::Bypass,
            mode: config.mode,
            in_service: 0,
            needed,
            last_change: now,
            last_reason: UnitReason::PairsInService { in_service: 0, needed },
            flaps: 0,
            pairs: Vec::new(),
        };
        let mut unit = Unit { status, rebalance: config.rebalance };
        unit.reconfigure(config);
        unit
    }

    pub(crate) fn reconfigure(&mut self, config: &UnitConfig) {
        self.status.mode = config.mode;
        self.status.needed = config.profile.active_pairs();
        self.status.pairs = config.pairs.iter().map(|pair| pair.key).collect();
        self.rebalance = config.rebalance;
    }

    pub(crate) fn status(&self) -> &UnitStatus {
        &self.status
    }

    /// Works out the state from the roles and states of its pairs.
    pub(crate) fn settle(
        &mut self,
        pairs: impl Iterator<Item = (Role, PairState)>,
        now: Nanos,
    ) -> Option<UnitTransition> {
        let (mut active, mut in_service, mut spares) = (0u16, 0u16, 0u16);
        for (role, state) in pairs {
            match role {
                Role::Active => {
                    active += 1;
                    in_service += u16::from(state.carries());
                }
                // A draining spare takes no new buckets, so it cannot stand in.
                Role::Spare => spares += u16::from(state == PairState::Up),
            }
        }
        if self.rebalance {
            in_service = in_service.saturating_add(spares).min(active);
        }
        let status = &mut self.status;
        status.in_service = in_service;
        let needed = status.needed;
        let to = matrix::unit_state(status.mode, in_service >= needed);
        let reason = match status.mode {
            UnitMode::Auto => UnitReason::PairsInService { in_service, needed },
            by_hand => UnitReason::Manual(by_hand),
        };
        status.last_reason = reason;
        let from = std::mem::replace(&mut status.state, to);
        if from == to {
            return None;
        }
        status.last_change = now;
        status.flaps += u64::from(to == UnitState::Bypass);
        Some(UnitTransition { unit: status.unit, from, to, reason, at: now })
    }
}
