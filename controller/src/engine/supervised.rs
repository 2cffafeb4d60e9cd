//! What the liveness thread measures for a site, and by which ways.

use std::collections::{BTreeMap, BTreeSet};

use api::UnitMode;
use dataplane::PairId;
use dataplane::probe::Envelope;
use liveness::{
    Admin, HoldDown, Initial, PairConfig, PairKey, PerDirection, ProbeMode, Profile, ProfileSettings,
    ReferenceKey, Role, UnitConfig, UnitKey,
};
use site::{Ids, PairName, PairRole, ProfileConfig, Reference, Site, UdpProbe, Unit};

use super::EngineError;
use crate::keepalives::{Measured, PairWay};

/// What the liveness thread measures for a site; pairs in `up` start as up.
pub(super) fn supervised(
    site: &Site,
    ids: &Ids,
    modes: &BTreeMap<String, UnitMode>,
    up: &BTreeSet<PairName>,
) -> Result<Measured, EngineError> {
    let mut measured = Measured { steering: site.steering, probe: ids.probe, ..Measured::default() };
    for unit in site.units.values() {
        let Some(unit_id) = ids.units.get(&unit.name) else { continue };
        let config = site.profile_of(unit);
        let steered = site.is_probed_by_header(unit);
        let profile = profile(&config, steered, ids).map_err(|error| EngineError::Profile {
            profile: config.name.clone(),
            reason: error.to_string(),
        })?;
        reference(site, ids, &config.reference, &mut measured);
        let mut pairs = Vec::new();
        for pair in unit.pairs.values() {
            let name = PairName { unit: unit.name.clone(), pair: pair.name.clone() };
            let (Some(id), Some(lan), Some(wan)) =
                (ids.pairs.get(&name), site.ports.get(&pair.lan_port), site.ports.get(&pair.wan_port))
            else {
                continue; // the check has made sure of ports and numbers
            };
            let way = PairWay {
                ports: PerDirection { lan_to_wan: lan.id, wan_to_lan: wan.id },
                ip: envelopes(config.ip_probe),
                negative: envelopes(config.negative_probe),
            };
            measured.pairs.insert(*id, way);
            let mut pair_config = PairConfig::new(PairKey(id.0));
            pair_config.role = match pair.role {
                PairRole::Active => Role::Active,
                PairRole::Spare => Role::Spare,
            };
            pair_config.admin = match pair.admin {
                site::Admin::Up => Admin::Up,
                site::Admin::Down => Admin::Down,
                site::Admin::Drain => Admin::Drain,
            };
            pair_config.initial = if up.contains(&name) { Initial::AdoptedUp } else { Initial::Fresh };
            pairs.push(pair_config);
        }
        measured.units.push(unit_config(unit, UnitKey(unit_id.0.into()), profile, modes, pairs));
    }
    Ok(measured)
}

fn unit_config(
    unit: &Unit,
    key: UnitKey,
    profile: Profile,
    modes: &BTreeMap<String, UnitMode>,
    pairs: Vec<PairConfig>,
) -> UnitConfig {
    let mut config = UnitConfig::new(key, profile, pairs);
    config.cores = unit.cores;
    config.rebalance = unit.rebalance;
    config.mode = match modes.get(&unit.name) {
        Some(UnitMode::Bypass) => liveness::UnitMode::Bypass,
        Some(UnitMode::Primary) => liveness::UnitMode::Primary,
        Some(UnitMode::Auto) | None => liveness::UnitMode::Auto,
    };
    config
}

fn profile(config: &ProfileConfig, steered: bool, ids: &Ids) -> Result<Profile, liveness::ProfileError> {
    let reference = PairName::of_reference(&config.reference).and_then(|name| ids.pairs.get(&name));
    Profile::new(ProfileSettings {
        initial_delay_ms: config.initial_delay,
        interval_ms: config.interval,
        probes_down_count: config.probes_down_count,
        probes_up_count: config.probes_up_count,
        max_delay_us: config.max_delay,
        active_pairs: config.active_pairs as u16,
        sampling_count: config.sampling_count as u16,
        suspend_limit_ms: config.suspend_limit,
        mode: if config.burst { ProbeMode::Burst } else { ProbeMode::Standard },
        hold_down: config.hold_down.map(|hold| HoldDown {
            window_ms: hold.window * 1000,
            base_ms: hold.base * 1000,
            ceiling_ms: hold.ceiling * 1000,
        }),
        reference: reference.map(|id| ReferenceKey(id.0)),
        probe_cores: steered && config.probe_cores,
        ip: steered && config.ip_probe.is_some(),
        negative: steered && config.negative_probe.is_some(),
    })
}

/// The ways of a reference, by the number that it has among the pairs.
fn reference(site: &Site, ids: &Ids, reference: &Reference, measured: &mut Measured) {
    let Some(id) = PairName::of_reference(reference).and_then(|name| ids.pairs.get(&name)) else { return };
    let ports = match reference {
        Reference::None => return,
        // By the controller's own port, there and back.
        Reference::Controller => None,
        Reference::Ports { lan_port, wan_port } => match (site.ports.get(lan_port), site.ports.get(wan_port))
        {
            (Some(lan), Some(wan)) => Some(PerDirection { lan_to_wan: lan.id, wan_to_lan: wan.id }),
            _ => return, // the check has made sure of ports
        },
    };
    measured.references.insert(PairId(id.0), ports);
}

/// What is around a probe, by its direction.
fn envelopes(probe: Option<UdpProbe>) -> Option<PerDirection<Envelope>> {
    let UdpProbe { source, destination } = probe?;
    Some(PerDirection {
        lan_to_wan: Envelope::udp(source, destination)?,
        wan_to_lan: Envelope::udp(destination, source)?,
    })
}
