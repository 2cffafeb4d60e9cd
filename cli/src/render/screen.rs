//! One function a screen.

use std::fmt::Write as _;

use api::{
    Applied, Balancer, ConfigHash, DirectionLiveness, Drops, Event, Flow, Link, Lookup, NamedVerdicts, Pair,
    PairLiveness, Port, Severity, SideCounts, Target, Unit, UnitMode, VerdictCount, Version,
};
use serde_json::Value;

use super::{Cell, Fields, Style, Table, Tone, bytes, count, duration, harmless, percent, rate, time};

/// Pairs that are not up are named above the table, so many at most.
const NAMED_PAIRS: usize = 8;

fn state(state: &str) -> Cell {
    let tone = match state {
        "up" | "primary" => Tone::Good,
        "down" | "lost" | "unusable" => Tone::Bad,
        _ => Tone::Warning,
    };
    Cell::new(tone, state)
}

fn carrier(carrier: Option<bool>) -> Cell {
    match carrier {
        Some(true) => Cell::new(Tone::Good, "up"),
        Some(false) => Cell::new(Tone::Bad, "down"),
        None => "".into(),
    }
}

fn mode(mode: UnitMode) -> &'static str {
    match mode {
        UnitMode::Auto => "auto",
        UnitMode::Bypass => "bypass",
        UnitMode::Primary => "primary",
    }
}

fn maybe(value: Option<impl ToString>) -> Cell {
    value.map_or_else(String::new, |value| value.to_string()).into()
}

/// Of packets and bytes, exact and readable.
fn exact(packets: u64, size: u64) -> String {
    format!("{packets} packets, {size} bytes ({})", bytes(size))
}

/// `show version`.
pub fn version(version: &Version, style: Style) -> String {
    let mut fields = Fields::new();
    fields.field("Version", &version.version);
    fields.field("Started", &version.started);
    fields.field("Uptime", duration(version.uptime));
    fields.field("Target", &version.target);
    fields.field("Config hash", &version.config_hash);
    fields.render(0, style)
}

/// `show ports`.
pub fn ports(ports: &[Port], style: Style) -> String {
    let mut table = Table::new(&[
        "Port",
        "Place",
        "Interface",
        "Speed",
        ">MTU",
        "Carrier",
        ">Received",
        ">Sent",
        "Serves",
    ]);
    for port in ports {
        table.row([
            (&port.name).into(),
            format!("{}/{}", port.number, port.lane).into(),
            maybe(port.interface.as_ref()),
            maybe(port.speed.as_ref()),
            port.mtu.into(),
            carrier(port.carrier),
            count(port.rx.packets).into(),
            count(port.tx.packets).into(),
            maybe(port.role.as_ref()),
        ]);
    }
    table.render(0, style)
}

/// `show port NAME statistics`.
pub fn port(port: &Port, style: Style) -> String {
    let mut fields = Fields::new();
    fields.field("Port", &port.name);
    fields.maybe("Description", port.description.as_ref());
    fields.maybe("Serves", port.role.as_ref());
    fields.field(
        "Place",
        format!("connector {} lane {}, id {} in the data plane", port.number, port.lane, port.port_id),
    );
    fields.maybe("Interface", port.interface.as_ref());
    fields.field("Carrier", carrier(port.carrier));
    fields.maybe("Speed", port.speed.as_ref());
    fields.field("MTU", port.mtu);
    fields.field("Received", exact(port.rx.packets, port.rx.bytes));
    fields.field("Sent", exact(port.tx.packets, port.tx.bytes));
    fields.render(0, style)
}

/// `show link`.
pub fn links(links: &[Link], style: Style) -> String {
    let mut sides = Table::new(&["Link", ">Index", "Side", "Port", ">Received", ">Bytes", ">Sent", ">Bytes"]);
    let mut descriptions = Table::new(&["Link", "Description"]);
    for link in links {
        for (side, port, counts) in [("lan", &link.lan_port, link.lan), ("wan", &link.wan_port, link.wan)] {
            let SideCounts { rx_packets, rx_bytes, tx_packets, tx_bytes } = counts;
            sides.row([
                (&link.name).into(),
                link.index.into(),
                side.into(),
                port.into(),
                count(rx_packets).into(),
                bytes(rx_bytes).into(),
                count(tx_packets).into(),
                bytes(tx_bytes).into(),
            ]);
        }
        if let Some(description) = &link.description {
            descriptions.row([(&link.name).into(), description.into()]);
        }
    }
    let mut text = sides.render(0, style);
    if links.iter().any(|link| link.description.is_some()) {
        let _ = write!(text, "\n{}", descriptions.render(0, style));
    }
    if links.iter().any(|link| !link.verdicts.is_empty()) {
        let named: Vec<(&str, &[VerdictCount])> =
            links.iter().map(|link| (link.name.as_str(), &link.verdicts[..])).collect();
        let _ = write!(text, "\nFrames that came in by the link\n{}", verdicts("Link", &named, style));
    }
    text
}

/// A table of verdicts by name.
fn verdicts(heading: &'static str, named: &[(&str, &[VerdictCount])], style: Style) -> String {
    let mut table = Table::new(&[heading, "Verdict", "Reason", ">Packets", ">Bytes"]);
    for (name, verdicts) in named {
        for verdict in *verdicts {
            table.row([
                name.into(),
                self::verdict(&verdict.verdict),
                maybe(verdict.reason.as_ref()),
                verdict.packets.into(),
                bytes(verdict.bytes).into(),
            ]);
        }
    }
    table.render(0, style)
}

fn verdict(verdict: &str) -> Cell {
    let tone = match verdict {
        "drop" => Tone::Bad,
        "bypass" => Tone::Warning,
        _ => Tone::Plain,
    };
    Cell::new(tone, verdict)
}

/// `show ecofilter-balancer`.
pub fn balancer(balancer: &Balancer, style: Style) -> String {
    let mut fields = Fields::new();
    if balancer.data_plane != "primary" {
        let reason = balancer.data_plane_reason.as_deref().unwrap_or("no reason is known");
        let text = format!(
            "{}: {reason}; what follows is what was known before",
            balancer.data_plane.to_uppercase()
        );
        fields.field("Data plane", Cell::new(Tone::Bad, text));
    }
    fields.field("Balancing method", &balancer.balancing_method);
    fields.field("Steering header", &balancer.steering_mode);
    fields.field("Config hash", &balancer.config_hash);
    fields.field(
        "Liveness",
        if balancer.liveness_suspended {
            Cell::new(Tone::Warning, "suspended: every pair fails at once, losses do not count yet")
        } else {
            "running".into()
        },
    );
    let mut text = fields.render(0, style);
    for unit in &balancer.units {
        text.push('\n');
        unit_heading(&mut text, unit, style);
        let mut table = Table::new(&[
            "Pair", "State", "Role", ">Share", ">Buckets", ">Sent", ">Back", ">LAN>WAN", ">WAN>LAN",
        ]);
        for pair in &unit.pairs {
            table.row([
                (&pair.name).into(),
                state(&pair.state),
                (&pair.role).into(),
                percent(pair.share_percent).into(),
                format!("{}/{}", pair.buckets_now, pair.buckets_home).into(),
                count(pair.tx_packets).into(),
                count(pair.rx_packets).into(),
                maybe(pair.lan_to_wan_ns.map(time)),
                maybe(pair.wan_to_lan_ns.map(time)),
            ]);
        }
        text.push_str(&table.render(2, style));
    }
    text
}

fn unit_heading(text: &mut String, unit: &Unit, style: Style) {
    let tone = if unit.state == "up" { Tone::Good } else { Tone::Bad };
    let _ = writeln!(
        text,
        "{} {}, mode {}, {} of {} pairs up, {} needed",
        style.paint(Tone::Heading, &format!("ecofilter-unit {}:", unit.name)),
        style.paint(tone, &unit.state),
        mode(unit.mode),
        unit.pairs_up,
        unit.pairs_total,
        unit.active_pairs,
    );
    if !unit.reason.is_empty() {
        let _ = writeln!(text, "  reason: {}", harmless(&unit.reason));
    }
    let mut not_up = unit.pairs.iter().filter(|pair| pair.state != "up");
    for pair in not_up.by_ref().take(NAMED_PAIRS) {
        let _ = writeln!(text, "  {}", not_up_line(pair, style));
    }
    match not_up.count() {
        0 => {}
        rest => {
            let _ = writeln!(text, "  and {rest} more pairs that are not up");
        }
    }
}

fn not_up_line(pair: &Pair, style: Style) -> String {
    let tone = if pair.state == "down" { Tone::Bad } else { Tone::Warning };
    let mut line = format!("{} is {}", pair.name, style.paint(tone, &pair.state));
    if let Some(reason) = &pair.last_reason {
        let _ = write!(line, ": {}", harmless(reason));
    }
    if let Some(spare) = &pair.stands_with {
        let _ = write!(line, ", {spare} stands in");
    }
    line
}

/// `show ecofilter-balancer ecofilter-unit`.
pub fn units(units: &[Unit], style: Style) -> String {
    let mut text = String::new();
    for unit in units {
        if !text.is_empty() {
            text.push('\n');
        }
        unit_heading(&mut text, unit, style);
        let mut fields = Fields::new();
        fields.field("Cores", unit.cores);
        fields.field("Buckets", unit.buckets);
        fields.field("Rebalance", &unit.rebalance);
        fields.field("Fail action", &unit.fail_action);
        fields.field("Liveness profile", &unit.liveness_profile);
        fields.field("Config hash", &unit.config_hash);
        text.push_str(&fields.render(2, style));
        let mut place =
            Table::new(&["Pair", "State", "Role", ">Weight", "LAN-port", "WAN-port", "Stands-with"]);
        let mut load = Table::new(&["Pair", ">Share", ">Now", ">Home", ">Sent", ">Bytes", ">Back", ">Bytes"]);
        let mut time = Table::new(&["Pair", ">LAN>WAN", ">WAN>LAN", ">Flaps", "Last-change"]);
        for pair in &unit.pairs {
            place.row([
                (&pair.name).into(),
                state(&pair.state),
                (&pair.role).into(),
                pair.weight.into(),
                (&pair.lan_port).into(),
                (&pair.wan_port).into(),
                maybe(pair.stands_with.as_ref()),
            ]);
            load.row([
                (&pair.name).into(),
                percent(pair.share_percent).into(),
                pair.buckets_now.into(),
                pair.buckets_home.into(),
                count(pair.tx_packets).into(),
                bytes(pair.tx_bytes).into(),
                count(pair.rx_packets).into(),
                bytes(pair.rx_bytes).into(),
            ]);
            time.row([
                (&pair.name).into(),
                maybe(pair.lan_to_wan_ns.map(super::time)),
                maybe(pair.wan_to_lan_ns.map(super::time)),
                pair.flaps.into(),
                maybe(pair.last_change.as_ref()),
            ]);
        }
        for (title, table) in
            [("Pairs", place), ("Load: buckets and frames", load), ("Time-on-path and changes", time)]
        {
            let _ = write!(text, "\n  {}\n{}", style.paint(Tone::Heading, title), table.render(2, style));
        }
    }
    text
}

/// `show ecofilter-balancer flow`.
pub fn flows(flows: &[Flow], style: Style) -> String {
    let mut table =
        Table::new(&[">Priority", "Flow", "Action", "Unit", ">Packets", ">Bytes", ">Packets/s", ">Bits/s"]);
    for flow in flows {
        table.row([
            flow.priority.into(),
            (&flow.name).into(),
            if flow.copy { "copy".into() } else { (&flow.action).into() },
            maybe(flow.unit.as_ref()),
            count(flow.packets).into(),
            bytes(flow.bytes).into(),
            rate(flow.packets_per_second).into(),
            rate(flow.bits_per_second).into(),
        ]);
    }
    table.render(0, style)
}

/// `show ecofilter-balancer flow NAME`.
pub fn flow(flow: &Flow, style: Style) -> String {
    let mut fields = Fields::new();
    fields.field("Flow", &flow.name);
    fields.field("Priority", format!("{} (the higher wins)", flow.priority));
    let copy = if flow.copy { " copy" } else { "" };
    let unit = flow.unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
    fields.field("Action", format!("{}{unit}{copy}", flow.action));
    fields.field("Links", if flow.links.is_empty() { "all".into() } else { flow.links.join(" ") });
    match flow.matches.as_object().filter(|matches| !matches.is_empty()) {
        None => fields.field("Match", "every frame"),
        Some(matches) => {
            for (index, (name, value)) in matches.iter().enumerate() {
                let value = value.as_str().map_or_else(|| value.to_string(), Into::into);
                fields.field(if index == 0 { "Match" } else { "" }, format!("{name} {value}"));
            }
        }
    }
    fields.field("Decided about", exact(flow.packets, flow.bytes));
    let rates = (rate(flow.packets_per_second), rate(flow.bits_per_second));
    fields.field("Rate", format!("{} packets/s, {}bit/s", rates.0, rates.1));
    fields.render(0, style)
}

/// `show ecofilter-balancer balancing-config-hash`.
pub fn config_hash(hash: &ConfigHash, style: Style) -> String {
    let mut table = Table::new(&["Unit", "Config-hash"]);
    // The contract shows 16 digits ("Buckets"); `| json` has all of them.
    let shown = |digest: &str| digest.chars().take(16).collect::<String>();
    table.row(["(device)".into(), shown(&hash.device).into()]);
    for unit in &hash.units {
        table.row([(&unit.name).into(), shown(&unit.config_hash).into()]);
    }
    table.render(0, style)
}

/// `show ecofilter-balancer lookup`.
pub fn lookup(lookup: &Lookup, style: Style) -> String {
    let mut fields = Fields::new();
    fields.field("Flow", lookup.flow.as_deref().unwrap_or("no rule matches"));
    let reason = lookup.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    fields.field("Verdict", format!("{}{reason}", lookup.verdict));
    fields.maybe("Unit", lookup.unit.as_ref());
    fields.maybe("Hash", lookup.hash.as_ref());
    fields.maybe("Bucket", lookup.bucket);
    fields.maybe("Pair", lookup.pair.as_ref());
    fields.maybe("Core", lookup.core);
    fields.maybe("Leaves by", lookup.out_port.as_ref());
    fields.render(0, style)
}

/// `show liveness profile-status`.
pub fn liveness(pairs: &[PairLiveness], style: Style) -> String {
    let mut table = Table::new(&[
        "Profile", "Unit", "Pair", "State", ">Flaps", "Dir", ">Sent", ">Lost", ">Window", ">Avg", ">p99",
    ]);
    for pair in pairs {
        for (name, direction) in [("L>W", &pair.lan_to_wan), ("W>L", &pair.wan_to_lan)] {
            table.row([
                (&pair.profile).into(),
                (&pair.unit).into(),
                (&pair.pair).into(),
                state(&pair.state),
                pair.flaps.into(),
                name.into(),
                count(direction.sent).into(),
                count(direction.lost).into(),
                format!("{}/{}", direction.samples_failed, direction.samples).into(),
                maybe(direction.avg_ns.map(time)),
                maybe(direction.p99_ns.map(time)),
            ]);
        }
    }
    table.render(0, style)
}

/// `show liveness profile-status NAME`.
pub fn liveness_in_detail(pairs: &[PairLiveness], style: Style) -> String {
    let mut text = String::new();
    for pair in pairs {
        if !text.is_empty() {
            text.push('\n');
        }
        let mut fields = Fields::new();
        fields.field("Pair", format!("{} of unit {}, profile {}", pair.pair, pair.unit, pair.profile));
        fields.field("State", state(&pair.state));
        fields.field("Flaps", pair.flaps);
        fields.maybe("Last change", pair.last_change.as_ref());
        fields.maybe("Reason", pair.last_reason.as_ref());
        text.push_str(&fields.render(0, style));
        let mut table = Table::new(&["Keep-alives", ">LAN>WAN", ">WAN>LAN"]);
        let columns = direction(&pair.lan_to_wan).into_iter().zip(direction(&pair.wan_to_lan));
        for ((name, lan), (_, wan)) in columns {
            table.row([name.into(), lan.into(), wan.into()]);
        }
        text.push_str(&table.render(2, style));
    }
    text
}

fn direction(d: &DirectionLiveness) -> Vec<(&'static str, String)> {
    let short = |ns: Option<u64>| ns.map_or_else(String::new, time);
    vec![
        ("sent", d.sent.to_string()),
        ("good", d.good.to_string()),
        ("lost", d.lost.to_string()),
        ("late", d.late.to_string()),
        ("duplicate", d.duplicate.to_string()),
        ("stale", d.stale.to_string()),
        ("voided", d.voided.to_string()),
        ("wrong-tag", d.wrong_tag.to_string()),
        ("wrong-instance", d.wrong_instance.to_string()),
        ("looped", d.looped.to_string()),
        ("wrong-pair", d.wrong_pair.to_string()),
        ("consecutive-good", d.consecutive_good.to_string()),
        ("consecutive-lost", d.consecutive_lost.to_string()),
        ("window-failed", format!("{}/{}", d.samples_failed, d.samples)),
        ("minimum", short(d.min_ns)),
        ("average", short(d.avg_ns)),
        ("maximum", short(d.max_ns)),
        ("deviation", short(d.stddev_ns)),
        ("median", short(d.p50_ns)),
        ("p99", short(d.p99_ns)),
        ("last-loss", d.last_loss.clone().unwrap_or_default()),
    ]
}

/// `show counters drops`.
pub fn drops(drops: &Drops, style: Style) -> String {
    let sum: u64 = drops.verdicts.iter().map(|verdict| verdict.packets).sum();
    let mut table = Table::new(&["Verdict", "Reason", ">Packets", ">Bytes", ">Part"]);
    for verdict in &drops.verdicts {
        let part = verdict.packets as f64 * 100.0 / sum.max(1) as f64;
        table.row([
            self::verdict(&verdict.verdict),
            maybe(verdict.reason.as_ref()),
            verdict.packets.into(),
            bytes(verdict.bytes).into(),
            percent(part).into(),
        ]);
    }
    let mut fields = Fields::new();
    fields.field("Frames in", drops.frames_in);
    let tone = if sum == drops.frames_in { Tone::Plain } else { Tone::Bad };
    fields.field("Verdicts", Cell::new(tone, sum.to_string()));
    let mut text = format!("{}\n{}", fields.render(0, style), table.render(0, style));
    if !drops.outside.is_empty() {
        let mut table = Table::new(&["Port", ">Missed before", ">Lost after"]);
        for losses in &drops.outside {
            table.row([
                (&losses.port).into(),
                Cell::new(Tone::Bad, losses.missed.to_string()),
                Cell::new(Tone::Bad, losses.lost.to_string()),
            ]);
        }
        let _ = write!(text, "\nFrames outside of the pipeline\n{}", table.render(0, style));
    }
    for (heading, named) in [("Link", &drops.links), ("Pair", &drops.pairs)] {
        let named: Vec<(&str, &[VerdictCount])> =
            named.iter().map(|NamedVerdicts { name, verdicts }| (name.as_str(), &verdicts[..])).collect();
        if named.iter().any(|(_, verdicts)| !verdicts.is_empty()) {
            let _ = write!(text, "\n{}", verdicts(heading, &named, style));
        }
    }
    text
}

/// A line of `show events` and `monitor events`.
pub fn event(event: &Event, style: Style) -> String {
    let tone = match event.severity {
        Severity::Warning => Tone::Warning,
        Severity::Error => Tone::Bad,
        Severity::Info => Tone::Plain,
    };
    let mut line = format!(
        "{} {} {} {}",
        event.time,
        style.paint(tone, &format!("{:7}", event.severity)),
        event.kind,
        harmless(&event.subject)
    );
    match (&event.before, &event.after) {
        (Some(before), Some(after)) => {
            let _ = write!(line, " {before} -> {after}");
        }
        (None, Some(after)) => {
            let _ = write!(line, " -> {after}");
        }
        (Some(before), None) => {
            let _ = write!(line, " {before} ->");
        }
        (None, None) => {}
    }
    let _ = write!(line, ": {}", harmless(&event.reason));
    if let Some(detail) = &event.detail {
        let _ = write!(line, " ({})", harmless(detail));
    }
    if let Some(ns) = event.data_plane_ns {
        let _ = write!(line, " [data plane after {}]", time(ns));
    }
    line.push('\n');
    line
}

/// `show target`.
pub fn target(target: &Target, style: Style) -> String {
    let mut fields = Fields::new();
    fields.field("Address", &target.address);
    fields.field("Profile", &target.profile);
    fields.field("Pipeline", &target.pipeline);
    fields.field("State", state(&target.state));
    if let Some(reason) = &target.reason {
        fields.field("Reason", reason);
    }
    fields.field("Device id", target.device_id);
    fields.field("Election id", &target.election_id);
    fields.field("Epoch", target.epoch);
    let mut table = Table::new(&["Table", ">Entries", ">Size", ">Used"]);
    for usage in &target.tables {
        let part = usage.entries as f64 * 100.0 / usage.size.max(1) as f64;
        let tone = if usage.entries > usage.size { Tone::Bad } else { Tone::Plain };
        table.row([
            (&usage.name).into(),
            usage.entries.into(),
            usage.size.into(),
            Cell::new(tone, percent(part)),
        ]);
    }
    format!("{}\n{}", fields.render(0, style), table.render(0, style))
}

/// What `load replace FILE` did.
pub fn applied(applied: &Applied, file: &str, style: Style) -> String {
    let mut text = format!(
        "{}: applied; table entries inserted {}, modified {}, deleted {}\n",
        harmless(file),
        applied.inserted,
        applied.modified,
        applied.deleted
    );
    for warning in &applied.warnings {
        let _ = writeln!(text, "{} {}", style.paint(Tone::Warning, "warning:"), harmless(warning));
    }
    text
}

/// The answer pretty printed, for `| json`.
pub fn json(answer: &Value) -> String {
    format!("{answer:#}\n")
}
