//! Changes of pairs and units in words.

use api::{EventKind, Severity};
use liveness::{
    CablingFault, CoreState, Event, Fault, HoldChange, PairKey, PairTransition, Reason, ReferenceKey,
    SuspicionChange, UnitReason,
};
use site::Ids;

use super::{pair_state_name, unit_id, unit_state_name};
use crate::event::News;

/// The log's entry for a change; `None` where the thing was removed meanwhile.
pub(super) fn of(event: &Event, ids: &Ids) -> Option<News> {
    let news = |severity, kind, subject: String, reason: String| News {
        at: event.at(),
        severity,
        kind,
        subject,
        before: None,
        after: None,
        reason,
        detail: None,
        written: None,
    };
    match event {
        Event::Pair(transition) => {
            let name = pair(ids, transition.pair)?;
            let severity = if transition.to.carries() { Severity::Info } else { Severity::Warning };
            let mut entry = news(severity, EventKind::Pair, name, reason(transition))
                .change(pair_state_name(transition.from), pair_state_name(transition.to));
            entry.detail = Some(counters(transition));
            Some(entry)
        }
        Event::Core(transition) => {
            let name = format!("{}/{}", pair(ids, transition.pair)?, transition.core);
            let severity = if transition.to.carries() { Severity::Info } else { Severity::Warning };
            let text = match transition.reason {
                Reason::Good { count } => format!("good: {count} keep-alives in a row in both directions"),
                _ => format!(
                    "losses: {} keep-alives in a row, those of the pair come back",
                    transition
                        .tallies
                        .lan_to_wan
                        .consecutive_lost
                        .max(transition.tallies.wan_to_lan.consecutive_lost)
                ),
            };
            Some(
                news(severity, EventKind::Core, name, text)
                    .change(core_state_name(transition.from), core_state_name(transition.to)),
            )
        }
        Event::Hold(notice) => {
            let name = pair(ids, notice.pair)?;
            let (severity, text) = match notice.change {
                HoldChange::Started { down, until, trial_failed } => {
                    let cause = if trial_failed { "the trial failed" } else { "it went down" };
                    let seconds = until.since(notice.at).0 / 1_000_000_000;
                    (Severity::Warning, format!("held: {cause}, number {down}, for {seconds} s"))
                }
                HoldChange::Trial => (Severity::Info, "trial: the hold is over".to_owned()),
                HoldChange::Passed => (Severity::Info, "trial-passed".to_owned()),
                HoldChange::Cleared => (Severity::Info, "hold-cleared".to_owned()),
            };
            Some(news(severity, EventKind::Pair, name, text))
        }
        Event::Unit(transition) => {
            let id = unit_id(transition.unit);
            let name = ids.units.iter().find(|(_, other)| **other == id)?.0.clone();
            let severity =
                if transition.to == liveness::UnitState::Up { Severity::Info } else { Severity::Warning };
            let text = match transition.reason {
                UnitReason::PairsInService { in_service, needed } => {
                    format!("pairs-in-service: {in_service}, active-pairs {needed}")
                }
                UnitReason::Manual(_) => "by hand".to_owned(),
            };
            Some(
                news(severity, EventKind::Unit, name, text)
                    .change(unit_state_name(transition.from), unit_state_name(transition.to)),
            )
        }
        Event::Suspicion(notice) => {
            let (severity, text) = match notice.change {
                SuspicionChange::LivenessSuspended { pairs, .. } => (
                    Severity::Error,
                    format!("liveness-suspended: all {pairs} pairs fail at once, their states are kept"),
                ),
                SuspicionChange::Resumed => (Severity::Info, "liveness-resumed".to_owned()),
                SuspicionChange::ReferenceFailed { reference, .. } => (
                    Severity::Error,
                    format!(
                        "liveness-suspended: the reference {} fails, states are kept",
                        of_ours(ids, reference)
                    ),
                ),
                SuspicionChange::ReferenceBelieved { reference } => (
                    Severity::Error,
                    format!(
                        "liveness-believed: the reference {} still fails, the losses count now",
                        of_ours(ids, reference)
                    ),
                ),
                SuspicionChange::ReferenceReturned { reference } => (
                    Severity::Info,
                    format!("liveness-resumed: the reference {} comes back", of_ours(ids, reference)),
                ),
                SuspicionChange::Believed => {
                    (Severity::Error, "liveness-believed: the losses count now".to_owned())
                }
            };
            Some(news(severity, EventKind::Liveness, "controller".to_owned(), text))
        }
        Event::Cabling(fault) => {
            let name = pair(ids, fault.pair)?;
            Some(news(Severity::Error, EventKind::Pair, name.clone(), cabling(&name, fault, ids)))
        }
    }
}

/// The name of a reference.
fn of_ours(ids: &Ids, reference: ReferenceKey) -> &str {
    let found = ids.pairs.iter().find(|(_, id)| id.0 == reference.0);
    found.map_or("that was removed", |(name, _)| name.pair.as_str())
}

fn pair(ids: &Ids, key: PairKey) -> Option<String> {
    ids.pairs.iter().find(|(_, id)| id.0 == key.0).map(|(name, _)| name.to_string())
}

fn reason(transition: &PairTransition) -> String {
    match transition.reason {
        Reason::Added => "added".to_owned(),
        Reason::Adopted => "adopted: the data plane has it so".to_owned(),
        Reason::Good { count } => format!("good: {count} keep-alives in a row in both directions"),
        Reason::Losses { direction, count } => {
            format!("losses: {count} keep-alives in a row {direction}")
        }
        Reason::IpLosses { direction, count } => {
            format!("ip-losses: {count} ip probes in a row {direction}")
        }
        Reason::NegativeReturned { direction, count } => {
            format!("negative-returned: {count} negative probes in a row came back {direction}")
        }
        Reason::AllCoresDown { cores } => format!("all-cores-down: {cores}"),
        Reason::HoldCleared => "hold-cleared".to_owned(),
        Reason::CarrierLost { side } => format!("carrier-lost: {side} port"),
        Reason::Admin(admin) => format!("admin {}", format!("{admin:?}").to_lowercase()),
        Reason::Suspended => "liveness-suspended: its losses are not believed".to_owned(),
    }
}

fn counters(transition: &PairTransition) -> String {
    let one = |name: &str, tally: &liveness::Tally| {
        let counters = &tally.counters;
        format!(
            "{name} sent {} good {} lost {} late {}",
            counters.sent, counters.good, counters.lost, counters.late
        )
    };
    format!(
        "{}; {}",
        one("lan-to-wan", &transition.tallies.lan_to_wan),
        one("wan-to-lan", &transition.tallies.wan_to_lan)
    )
}

fn core_state_name(state: CoreState) -> &'static str {
    match state {
        CoreState::Init => "init",
        CoreState::Up => "up",
        CoreState::Down => "down",
    }
}

fn cabling(name: &str, fault: &CablingFault, ids: &Ids) -> String {
    match fault.fault {
        Fault::Looped => format!(
            "looped: a keep-alive of {name} {} came back on the port that it left by",
            fault.direction
        ),
        Fault::OtherPair(other) => {
            let other = pair(ids, other).unwrap_or_else(|| other.to_string());
            format!(
                "miscabled: a keep-alive of {name} {} came back on pair {other}; check the cables of both",
                fault.direction
            )
        }
    }
}
