//! What must hold in every scenario: one appliance and core per session, no frame by another link, counters that
//! add up, and no loss of our own making.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::load::first_few;
use crate::appliance::Session;
use crate::check::Findings;
use crate::error::Result;
use crate::frame::SessionKey;
use crate::lab::Lab;
use crate::plan::{self, sides};
use crate::plane::DataPlane;
use crate::sluice::{Counters, Link, PortCounters};

/// The places (pair, core) of every session of our hosts.
pub(super) type Cells = BTreeMap<SessionKey, BTreeSet<(String, u8)>>;

/// Reads the places of all sessions from the emulated appliances. Garbage isn't a session of our hosts.
pub(super) fn cells(lab: &mut Lab) -> Result<Cells> {
    let mut cells = Cells::new();
    for Session { key, pair, core, .. } in lab.appliance_sessions()? {
        if key.proto == 6 || key.proto == 17 {
            cells.entry(key).or_default().insert((pair, core));
        }
    }
    Ok(cells)
}

/// Sessions at more than one place, in words.
pub(super) fn split(cells: &Cells) -> Vec<String> {
    let places = |set: &BTreeSet<(String, u8)>| {
        set.iter().map(|(pair, core)| format!("{pair} core {core}")).collect::<Vec<_>>().join(" and ")
    };
    cells
        .iter()
        .filter(|(_, set)| set.len() > 1)
        .map(|(key, set)| format!("{key}: {}", places(set)))
        .collect()
}

/// Both directions of every session on one appliance and core.
pub(super) fn check_one_place(lab: &mut Lab, findings: &mut Findings, both_seen: bool) -> Result<()> {
    if lab.emulated().is_empty() {
        findings.note("bridge appliances know no cores; connection tracking is their judge of directions");
        return Ok(());
    }
    let sessions = lab.appliance_sessions()?;
    let (mut lan, mut wan) = (BTreeSet::new(), BTreeSet::new());
    for session in &sessions {
        if session.lan_frames > 0 {
            lan.insert(session.key);
        }
        if session.wan_frames > 0 {
            wan.insert(session.key);
        }
    }
    let cells = cells(lab)?;
    let split = split(&cells);
    let one_way = lan.symmetric_difference(&wan).count();
    let good = split.is_empty() && !cells.is_empty() && (!both_seen || one_way == 0);
    findings.check(
        "both directions of every session on one appliance and core",
        good,
        if split.is_empty() {
            format!("{} sessions, {one_way} seen in one direction only", cells.len())
        } else {
            format!("{} of {} split: {}", split.len(), cells.len(), first_few(&split))
        },
    );
    let mut complaints = Vec::new();
    let mut count = 0;
    for name in lab.emulated() {
        let report = lab.appliance_report(&name)?;
        count += report.complaints;
        complaints.extend(report.listed.iter().map(|line| format!("{name}: {line}")));
    }
    findings.check(
        "appliances have nothing to complain about",
        count == 0,
        if count == 0 { "no complaint".into() } else { format!("{count}: {}", first_few(&complaints)) },
    );
    Ok(())
}

/// The same for the sessions of our hosts alone: what garbage says about sessions isn't evidence.
pub(super) fn check_own_sessions(lab: &mut Lab, findings: &mut Findings) -> Result<()> {
    let ours = |key: &SessionKey| [key.low.1, key.high.1].contains(&crate::traffic::PORT);
    let mut cells = cells(lab)?;
    cells.retain(|key, _| ours(key));
    let split = split(&cells);
    findings.check(
        "our sessions stayed on one appliance and core",
        split.is_empty() && (!cells.is_empty() || lab.emulated().is_empty()),
        if split.is_empty() { format!("{} sessions", cells.len()) } else { first_few(&split) },
    );
    Ok(())
}

/// No frame left by another link, none kept its steering header, and the test bed itself lost nothing.
pub(super) fn check_links_kept(lab: &mut Lab, findings: &mut Findings) -> Result<()> {
    let (mut own, mut foreign, mut leaked, mut overruns) = (0, 0, 0, 0);
    let mut listed = Vec::new();
    for side in sides() {
        let report = lab.edge_report(side)?;
        overruns += report.overruns;
        for uplink in report.uplinks {
            own += uplink.own + uplink.marked;
            foreign += uplink.foreign;
            leaked += uplink.leaked;
            listed.extend(uplink.listed);
        }
    }
    findings.check(
        "no frame left by another link",
        foreign == 0 && own > 0,
        if foreign == 0 {
            format!("{own} frames, all by their own link and the far side")
        } else {
            format!("{foreign} did: {}", first_few(&listed))
        },
    );
    findings.check("no steering header or keep-alive reached a host", leaked == 0, format!("{leaked} did"));
    for name in lab.emulated() {
        overruns += lab.appliance_report(&name)?.overruns;
    }
    findings.check("the test bed itself lost no frame", overruns == 0, format!("{overruns} overruns"));
    Ok(())
}

/// Counters of the balancer and of the kernel, taken while nothing but keep-alives moves.
pub(super) struct Snapshot {
    links: Vec<Link>,
    kernel: BTreeMap<String, PortCounters>,
}

/// Waits for quiet on the links and takes a snapshot.
pub(super) fn snapshot(lab: &mut Lab) -> Result<Snapshot> {
    let ports: Vec<String> = (0..lab.topology.links.len())
        .flat_map(|link| sides().map(move |side| (link, side)))
        .map(|(link, side)| plan::link_port(&lab.topology, link, side).name)
        .collect();
    let on_links = move |mut all: BTreeMap<String, PortCounters>| {
        all.retain(|name, _| ports.contains(name));
        all
    };
    let patience = Duration::from_secs(10);
    let mut before = on_links(lab.kernel_counters()?);
    lab.wait_until("the links to be quiet", patience, |lab| {
        // Long enough for a frame that is still on its way through a slow appliance.
        std::thread::sleep(Duration::from_millis(250));
        let links = lab.links()?;
        let kernel = on_links(lab.kernel_counters()?);
        let quiet = kernel == std::mem::replace(&mut before, kernel.clone());
        Ok(if quiet { Ok(Snapshot { links, kernel }) } else { Err("frames still moving".into()) })
    })
}

/// Frames in equal the sum of verdicts, and the links' counters equal the kernel's.
pub(super) fn check_counters(lab: &mut Lab, findings: &mut Findings, before: &Snapshot) -> Result<()> {
    let after = snapshot(lab)?;
    let counters: Counters = lab.sluice()?.show("counters drops")?;
    // The program counts verdicts behind the queue to the port.
    let queued_away = counters.frames_in.saturating_sub(counters.total());
    let drops_unseen = lab.plane().is_some_and(DataPlane::drops_unseen);
    if drops_unseen && queued_away > 0 {
        findings.note(format!(
            "{queued_away} frames found the queue to their port full, which BMv2 does not count: the next check fails for them"
        ));
    }
    findings.check(
        "frames in = sum of verdicts",
        counters.frames_in == counters.total() && counters.frames_in > 0,
        format!(
            "{} in; {} to appliances, {} returned, {} bypassed, {} dropped, {} to the controller",
            counters.frames_in,
            counters.of("to-ecofilter"),
            counters.of("return"),
            counters.of("bypass"),
            counters.of("drop"),
            counters.of("to-controller")
        ),
    );
    let mut wrong = Vec::new();
    let mut frames = 0;
    for (index, (now, then)) in after.links.iter().zip(&before.links).enumerate() {
        for (side, now, then) in
            sides().zip([&now.lan, &now.wan]).zip([&then.lan, &then.wan]).map(|((s, n), t)| (s, n, t))
        {
            let port = plan::link_port(&lab.topology, index, side).name;
            let kernel = |snapshot: &Snapshot| snapshot.kernel.get(&port).copied();
            let (Some(kernel_now), Some(kernel_then)) = (kernel(&after), kernel(before)) else {
                wrong.push(format!("{port}: the kernel knows no such interface"));
                continue;
            };
            let ours = (now.rx_packets - then.rx_packets, now.tx_packets - then.tx_packets);
            let theirs = (
                kernel_now.rx_packets - kernel_then.rx_packets,
                kernel_now.tx_packets - kernel_then.tx_packets,
            );
            frames += ours.0 + ours.1;
            if ours != theirs {
                wrong.push(format!("{port}: balancer in/out {ours:?}, kernel {theirs:?}"));
            }
        }
    }
    findings.check(
        "link counters = the kernel's interface counters",
        wrong.is_empty() && frames > 0,
        if wrong.is_empty() { format!("equal, {frames} frames in and out") } else { first_few(&wrong) },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_at_two_places_is_split() {
        let key = SessionKey::new(([10, 1, 0, 1].into(), 1), ([10, 129, 0, 1].into(), 2), 6);
        let mut cells = Cells::new();
        cells.entry(key).or_default().insert(("a".into(), 0));
        assert!(split(&cells).is_empty());
        cells.entry(key).or_default().insert(("a".into(), 1));
        assert_eq!(split(&cells).len(), 1);
        assert!(split(&cells)[0].ends_with("a core 0 and a core 1"));
    }
}
