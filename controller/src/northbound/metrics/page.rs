//! One reading as text, in either format that Prometheus reads.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use api::{DirectionLiveness, EventKind, Severity, UnitMode, VerdictCount, Version};
use dataplane::Reason;
use liveness::{BOUNDS, CoreState, Counters, Direction, Histogram, Nanos, PathStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::family::{self as f, Family, Kind};
use crate::telemetry::{FlowSnapshot, Snapshot};

const DATA_PLANE_STATES: [&str; 4] = ["primary", "backup", "lost", "unusable"];
const UNIT_STATES: [&str; 3] = ["up", "bypass", "primary"];
const UNIT_MODES: [UnitMode; 3] = [UnitMode::Auto, UnitMode::Bypass, UnitMode::Primary];
const PAIR_STATES: [&str; 6] = ["init", "up", "down", "admin-down", "draining", "held"];

/// A format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The older one of Prometheus, 0.0.4.
    Text,
}

impl Format {
    /// The better of those that an `Accept` header asks for; the older one without a preference.
    #[must_use]
    pub fn of(accept: &str) -> Self {
        let mut best = (0.0, Format::Text);
        for item in accept.split(',') {
            let mut parts = item.split(';').map(str::trim);
            let format = match parts.next().map(str::to_ascii_lowercase).as_deref() {
                Some("application/openmetrics-text") => Format::OpenMetrics,
                Some("text/plain" | "text/*" | "*/*") => Format::Text,
                _ => continue,
            };
            let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f64>);
            let quality = quality.unwrap_or(0.0);
            if quality > best.0 || (quality == best.0 && quality > 0.0 && format == Format::OpenMetrics) {
                best = (quality, format);
            }
        }
        best.1
    }

    /// The `Content-Type` of an answer.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// What a page shows.
#[derive(Clone, Debug)]
pub struct Page {
    /// Everything but flows.
    pub snapshot: Arc<Snapshot>,
    /// Flows; `None` where none are shown.
    pub flows: Option<Arc<FlowSnapshot>>,
    /// Flows with series of their own, at most.
    pub max_flows: usize,
    /// Flows in force.
    pub flow_count: usize,
    /// Of the controller.
    pub version: Version,
    /// Events since the start.
    pub events: Vec<(EventKind, Severity, u64)>,
}

impl Page {
    /// As text.
    ///
    /// # Errors
    /// Never, since a text takes everything.
    pub fn encode(&self, format: Format) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut page = String::new();
        match format {
            Format::OpenMetrics => text::encode(&mut page, &registry)?,
            Format::Text => prometheus_text::encode(&mut page, &registry)?,
        }
        Ok(page)
    }
}

/// What families are written to.
struct Writer<'a>(DescriptorEncoder<'a>);

/// What a series has.
#[derive(Clone, Copy)]
enum Sample<'v> {
    Count(u64),
    Value(f64),
    Times(&'v Histogram),
}

impl From<u64> for Sample<'_> {
    fn from(count: u64) -> Self {
        Sample::Count(count)
    }
}

impl From<f64> for Sample<'_> {
    fn from(value: f64) -> Self {
        Sample::Value(value)
    }
}

impl From<bool> for Sample<'_> {
    fn from(holds: bool) -> Self {
        Sample::Count(holds.into())
    }
}

impl From<usize> for Sample<'_> {
    fn from(count: usize) -> Self {
        Sample::Count(count as u64)
    }
}

impl<'v> From<&'v Histogram> for Sample<'v> {
    fn from(times: &'v Histogram) -> Self {
        Sample::Times(times)
    }
}

type NoLabels = [(&'static str, &'static str); 0];
/// None of the keep-alives is told of by itself.
const NO_EXEMPLARS: Option<&HashMap<usize, Exemplar<NoLabels, f64>>> = None;
const NO_EXEMPLAR: Option<&Exemplar<[(&str, &str); 0], f64>> = None;

impl Writer<'_> {
    /// A family with these series; one without series is left out.
    fn put<'v, const LABELS: usize, S: Into<Sample<'v>>>(
        &mut self,
        family: &Family,
        series: impl IntoIterator<Item = ([&'v str; LABELS], S)>,
    ) -> fmt::Result {
        let unit = family.unit();
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return Ok(());
        }
        let mut metric =
            self.0.encode_descriptor(family.stem(), family.help, unit.as_ref(), family.metric_type())?;
        for (values, sample) in series {
            let mut labels = [("", ""); LABELS];
            for (label, (name, value)) in labels.iter_mut().zip(family.labels.iter().zip(values)) {
                *label = (name, value);
            }
            let labels = &labels[..];
            if family.kind == Kind::Info {
                metric.encode_info(&labels)?;
                continue;
            }
            let mut series = metric.encode_family(&labels)?;
            match (family.kind, sample.into()) {
                (Kind::Counter, Sample::Count(count)) => series.encode_counter(&count, NO_EXEMPLAR)?,
                (Kind::Counter, Sample::Value(value)) => series.encode_counter(&value, NO_EXEMPLAR)?,
                (_, Sample::Count(count)) => series.encode_gauge(&count)?,
                (_, Sample::Value(value)) => series.encode_gauge(&value)?,
                (_, Sample::Times(times)) => {
                    let bounds = BOUNDS.iter().map(|bound| seconds(bound.0)).chain([f64::INFINITY]);
                    let steps: Vec<(f64, u64)> = bounds.zip(times.steps).collect();
                    series.encode_histogram(seconds(times.sum.0), times.count(), &steps, NO_EXEMPLARS)?;
                }
            }
        }
        Ok(())
    }

    fn one<'v>(&mut self, family: &Family, sample: impl Into<Sample<'v>>) -> fmt::Result {
        self.put(family, [([], sample)])
    }
}

/// One series for each state that there may be: 1 for the one that is.
fn states<'v>(known: &[&'v str], state: &'v str) -> Vec<(&'v str, bool)> {
    let mut states: Vec<_> = known.iter().map(|known| (*known, *known == state)).collect();
    if !known.contains(&state) {
        states.push((state, true));
    }
    states
}

fn mode(mode: UnitMode) -> &'static str {
    match mode {
        UnitMode::Auto => "auto",
        UnitMode::Bypass => "bypass",
        UnitMode::Primary => "primary",
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn since_1970(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Of a time as answers have it.
fn calendar(time: &str) -> Option<f64> {
    humantime::parse_rfc3339(time).ok().map(since_1970)
}

fn text_of(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::LanToWan => "lan-to-wan",
        Direction::WanToLan => "wan-to-lan",
    }
}

type Verdicts = [(&'static str, fn(&Counters) -> u64); 10];

const KEEPALIVE_VERDICTS: Verdicts = [
    ("good", |counters| counters.good),
    ("lost", |counters| counters.lost),
    ("late", |counters| counters.late),
    ("duplicate", |counters| counters.duplicate),
    ("stale", |counters| counters.stale),
    ("voided", |counters| counters.voided),
    ("wrong-tag", |counters| counters.wrong_tag),
    ("wrong-instance", |counters| counters.wrong_instance),
    ("looped", |counters| counters.looped),
    ("wrong-pair", |counters| counters.wrong_pair),
];

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        self.controller(&mut writer)?;
        self.data_plane(&mut writer)?;
        self.units(&mut writer)?;
        self.pairs(&mut writer)?;
        self.cores(&mut writer)?;
        self.keepalives(&mut writer)?;
        self.links(&mut writer)?;
        self.ports(&mut writer)?;
        self.flows(&mut writer)
    }
}

impl Page {
    /// Counters that were never read are not there: a 0 would look like a restart later on.
    fn is_counted(&self) -> bool {
        self.snapshot.counted.is_some()
    }

    /// An instant of the monotonic clock, in seconds since 1970.
    fn instant(&self, at: Nanos) -> f64 {
        since_1970(self.snapshot.time) + (at.0 as f64 - self.snapshot.at.0 as f64) / 1e9
    }

    fn controller(&self, to: &mut Writer<'_>) -> fmt::Result {
        let Snapshot { balancer, target, .. } = &*self.snapshot;
        let build = [self.version.version.as_str(), &target.address, &target.profile, &target.pipeline];
        to.put(&f::BUILD, [(build, true)])?;
        let configuration =
            [balancer.config_hash.as_str(), &balancer.balancing_method, &balancer.steering_mode];
        to.put(&f::CONFIGURATION, [(configuration, true)])?;
        to.put(&f::START, calendar(&self.version.started).map(|started| ([], started)))?;
        to.one(&f::READING, since_1970(self.snapshot.time))?;
        to.one(&f::COUNTERS_STALE, self.snapshot.stale.is_some())?;
        to.put(
            &f::EVENTS,
            self.events.iter().map(|(kind, severity, count)| ([kind.as_str(), severity.as_str()], *count)),
        )
    }

    fn data_plane(&self, to: &mut Writer<'_>) -> fmt::Result {
        let Snapshot { balancer, target, drops, .. } = &*self.snapshot;
        to.one(&f::DATA_PLANE_UP, balancer.data_plane == "primary")?;
        let states = states(&DATA_PLANE_STATES, &balancer.data_plane);
        to.put(&f::DATA_PLANE_STATE, states.into_iter().map(|(state, is)| ([state], is)))?;
        to.one(&f::DATA_PLANE_WRITES, target.epoch)?;
        to.put(&f::TABLE_ENTRIES, target.tables.iter().map(|table| ([table.name.as_str()], table.entries)))?;
        to.put(&f::TABLE_SIZE, target.tables.iter().map(|table| ([table.name.as_str()], table.size)))?;
        to.one(&f::LIVENESS_SUSPENDED, balancer.liveness_suspended)?;
        if !self.is_counted() {
            return Ok(());
        }
        // All that there may be, so that the first one is an increase from 0.
        let reasons: Vec<(&str, &str, (u64, u64))> = Reason::ALL
            .iter()
            .map(|reason| {
                let (verdict, reason) = (reason.verdict().as_str(), reason.as_str());
                let same =
                    |count: &&VerdictCount| count.verdict == verdict && count.reason.as_deref() == reason;
                let count = drops.verdicts.iter().find(same);
                (
                    verdict,
                    reason.unwrap_or_default(),
                    count.map_or((0, 0), |count| (count.packets, count.bytes)),
                )
            })
            .collect();
        to.put(
            &f::VERDICT_PACKETS,
            reasons.iter().map(|(verdict, reason, (packets, _))| ([*verdict, *reason], *packets)),
        )?;
        to.put(
            &f::VERDICT_BYTES,
            reasons.iter().map(|(verdict, reason, (_, bytes))| ([*verdict, *reason], *bytes)),
        )?;
        to.one(&f::RECEIVED, drops.frames_in)
    }

    fn units(&self, to: &mut Writer<'_>) -> fmt::Result {
        let units = &self.snapshot.balancer.units;
        let states_of = units.iter().flat_map(|unit| {
            states(&UNIT_STATES, &unit.state).into_iter().map(|(state, is)| ([unit.name.as_str(), state], is))
        });
        to.put(&f::UNIT_STATE, states_of)?;
        let modes = units
            .iter()
            .flat_map(|unit| UNIT_MODES.map(|known| ([unit.name.as_str(), mode(known)], known == unit.mode)));
        to.put(&f::UNIT_MODE, modes)?;
        let info = units.iter().map(|unit| {
            let labels = [
                unit.name.as_str(),
                &unit.liveness_profile,
                &unit.fail_action,
                &unit.rebalance,
                &unit.config_hash,
            ];
            (labels, true)
        });
        to.put(&f::UNIT_INFO, info)?;
        let known = &self.snapshot.unit_status;
        to.put(&f::UNIT_FLAPS, known.iter().map(|(name, unit)| ([name.as_str()], unit.flaps)))?;
        let changes = known.iter().map(|(name, unit)| ([name.as_str()], self.instant(unit.last_change)));
        to.put(&f::UNIT_LAST_CHANGE, changes)?;
        to.put(&f::UNIT_PAIRS, units.iter().map(|unit| ([unit.name.as_str()], unit.pairs_total)))?;
        to.put(&f::UNIT_PAIRS_UP, units.iter().map(|unit| ([unit.name.as_str()], unit.pairs_up)))?;
        to.put(&f::UNIT_ACTIVE_PAIRS, units.iter().map(|unit| ([unit.name.as_str()], unit.active_pairs)))?;
        to.put(&f::UNIT_BUCKETS, units.iter().map(|unit| ([unit.name.as_str()], f64::from(unit.buckets))))?;
        to.put(&f::UNIT_CORES, units.iter().map(|unit| ([unit.name.as_str()], f64::from(unit.cores))))
    }

    fn pairs(&self, to: &mut Writer<'_>) -> fmt::Result {
        let pairs: Vec<([&str; 2], &api::Unit, &api::Pair)> = self
            .snapshot
            .balancer
            .units
            .iter()
            .flat_map(|unit| {
                unit.pairs.iter().map(move |pair| ([unit.name.as_str(), pair.name.as_str()], unit, pair))
            })
            .collect();
        let of_each = |value: fn(&api::Pair) -> Sample<'static>| {
            pairs.iter().map(move |(name, _, pair)| (*name, value(pair))).collect::<Vec<_>>()
        };
        let states_of = pairs.iter().flat_map(|([unit, name], _, pair)| {
            states(&PAIR_STATES, &pair.state).into_iter().map(move |(state, is)| ([*unit, *name, state], is))
        });
        to.put(&f::PAIR_STATE, states_of)?;
        let info = pairs.iter().map(|([unit, name], of, pair)| {
            ([*unit, *name, &pair.lan_port, &pair.wan_port, &pair.role, &of.liveness_profile], true)
        });
        to.put(&f::PAIR_INFO, info)?;
        to.put(&f::PAIR_FLAPS, of_each(|pair| pair.flaps.into()))?;
        let changes =
            pairs.iter().filter_map(|(name, _, pair)| Some((*name, calendar(pair.last_change.as_deref()?)?)));
        to.put(&f::PAIR_LAST_CHANGE, changes)?;
        let known = &self.snapshot.pair_status;
        let holds = known.iter().filter_map(|(name, pair)| {
            Some(([name.unit.as_str(), &name.pair], self.instant(pair.hold?.until)))
        });
        to.put(&f::PAIR_HOLD_END, holds)?;
        let costs = known
            .iter()
            .filter_map(|(name, pair)| Some(([name.unit.as_str(), &name.pair], seconds(pair.cost?.0))));
        to.put(&f::PAIR_COST, costs)?;
        to.put(&f::PAIR_WEIGHT, of_each(|pair| f64::from(pair.weight).into()))?;
        to.put(&f::PAIR_HOME_BUCKETS, of_each(|pair| pair.buckets_home.into()))?;
        to.put(&f::PAIR_BUCKETS, of_each(|pair| pair.buckets_now.into()))?;
        if !self.is_counted() {
            return Ok(());
        }
        to.put(&f::PAIR_SENT_PACKETS, of_each(|pair| pair.tx_packets.into()))?;
        to.put(&f::PAIR_SENT_BYTES, of_each(|pair| pair.tx_bytes.into()))?;
        to.put(&f::PAIR_RETURNED_PACKETS, of_each(|pair| pair.rx_packets.into()))?;
        to.put(&f::PAIR_RETURNED_BYTES, of_each(|pair| pair.rx_bytes.into()))?;
        let verdicts: Vec<([&str; 4], &VerdictCount)> = self
            .snapshot
            .drops
            .pairs
            .iter()
            .filter_map(|named| Some((named.name.split_once('/')?, &named.verdicts)))
            .flat_map(|((unit, pair), verdicts)| {
                verdicts
                    .iter()
                    .map(move |count| ([unit, pair, count.verdict.as_str(), text_of(&count.reason)], count))
            })
            .collect();
        to.put(&f::PAIR_VERDICT_PACKETS, verdicts.iter().map(|(labels, count)| (*labels, count.packets)))?;
        to.put(&f::PAIR_VERDICT_BYTES, verdicts.iter().map(|(labels, count)| (*labels, count.bytes)))
    }

    fn cores(&self, to: &mut Writer<'_>) -> fmt::Result {
        let cores: Vec<([&str; 2], String, &liveness::CoreStatus)> = self
            .snapshot
            .pair_status
            .iter()
            .flat_map(|(name, pair)| {
                let name = [name.unit.as_str(), &name.pair];
                pair.cores.iter().map(move |core| (name, core.core.to_string(), core))
            })
            .collect();
        let up = cores
            .iter()
            .map(|([unit, pair], number, core)| ([*unit, *pair, number], core.state == CoreState::Up));
        to.put(&f::CORE_UP, up)?;
        let flaps = cores.iter().map(|([unit, pair], number, core)| ([*unit, *pair, number], core.flaps));
        to.put(&f::CORE_FLAPS, flaps)
    }

    fn keepalives(&self, to: &mut Writer<'_>) -> fmt::Result {
        let paths: Vec<([&str; 3], &DirectionLiveness)> = self
            .snapshot
            .liveness
            .iter()
            .flat_map(|pair| {
                [("lan-to-wan", &pair.lan_to_wan), ("wan-to-lan", &pair.wan_to_lan)]
                    .map(|(direction, path)| ([pair.unit.as_str(), pair.pair.as_str(), direction], path))
            })
            .collect();
        let count = |value: fn(&DirectionLiveness) -> u64| {
            paths.iter().map(move |(labels, path)| (*labels, value(path))).collect::<Vec<_>>()
        };
        let probes: Vec<([&str; 4], &PathStatus)> = self
            .snapshot
            .pair_status
            .iter()
            .flat_map(|(name, pair)| {
                [("pair", Some(&pair.paths)), ("ip", pair.ip.as_ref())]
                    .into_iter()
                    .filter_map(|(probe, paths)| Some((probe, paths?)))
                    .flat_map(move |(probe, paths)| {
                        Direction::BOTH.map(|direction| {
                            let labels = [name.unit.as_str(), &name.pair, way(direction), probe];
                            (labels, &paths[direction])
                        })
                    })
            })
            .collect();
        let sent = probes.iter().map(|(labels, path)| (*labels, path.tally.counters.sent));
        to.put(&f::KEEPALIVES_SENT, sent)?;
        let verdicts = probes.iter().flat_map(|([unit, pair, direction, probe], path)| {
            KEEPALIVE_VERDICTS.map(|(verdict, value)| {
                ([*unit, *pair, *direction, *probe, verdict], value(&path.tally.counters))
            })
        });
        to.put(&f::KEEPALIVES, verdicts)?;
        let negative = self.snapshot.pair_status.iter().flat_map(|(name, pair)| {
            pair.negative.iter().flat_map(move |negative| {
                Direction::BOTH.into_iter().flat_map(move |direction| {
                    let probes = &negative[direction];
                    [
                        ("silent", probes.silent),
                        ("returned", probes.returned),
                        ("late", probes.late),
                        ("voided", probes.voided),
                    ]
                    .map(|(verdict, count)| {
                        ([name.unit.as_str(), &name.pair, way(direction), verdict], count)
                    })
                })
            })
        });
        to.put(&f::NEGATIVE, negative)?;
        to.put(&f::KEEPALIVES_CONSECUTIVE_GOOD, count(|path| path.consecutive_good))?;
        to.put(&f::KEEPALIVES_CONSECUTIVE_LOST, count(|path| path.consecutive_lost))?;
        let losses =
            paths.iter().filter_map(|(labels, path)| Some((*labels, calendar(path.last_loss.as_deref()?)?)));
        to.put(&f::KEEPALIVE_LAST_LOSS, losses)?;
        let times = probes
            .iter()
            .filter(|([.., probe], _)| *probe == "pair")
            .map(|([unit, pair, direction, _], path)| ([*unit, *pair, *direction], &path.histogram));
        to.put(&f::TIME_ON_PATH, times)?;
        to.put(&f::WINDOW_SAMPLES, count(|path| path.samples))?;
        to.put(&f::WINDOW_FAILED, count(|path| path.samples_failed))?;
        let mut time = |family, value: fn(&DirectionLiveness) -> Option<u64>| {
            to.put(family, paths.iter().filter_map(|(labels, path)| Some((*labels, seconds(value(path)?)))))
        };
        time(&f::WINDOW_MIN, |path| path.min_ns)?;
        time(&f::WINDOW_MEAN, |path| path.avg_ns)?;
        time(&f::WINDOW_MAX, |path| path.max_ns)?;
        time(&f::WINDOW_DEVIATION, |path| path.stddev_ns)?;
        time(&f::WINDOW_MEDIAN, |path| path.p50_ns)?;
        time(&f::WINDOW_P99, |path| path.p99_ns)
    }

    fn links(&self, to: &mut Writer<'_>) -> fmt::Result {
        let links = &self.snapshot.links;
        let info = links.iter().map(|link| {
            ([link.name.as_str(), &link.lan_port, &link.wan_port, text_of(&link.description)], true)
        });
        to.put(&f::LINK_INFO, info)?;
        if !self.is_counted() {
            return Ok(());
        }
        let mut sides = |family, value: fn(&api::SideCounts) -> u64| {
            let series = links.iter().flat_map(|link| {
                [("lan", &link.lan), ("wan", &link.wan)]
                    .map(|(side, counts)| ([link.name.as_str(), side], value(counts)))
            });
            to.put(family, series)
        };
        sides(&f::LINK_RECEIVED_PACKETS, |side| side.rx_packets)?;
        sides(&f::LINK_RECEIVED_BYTES, |side| side.rx_bytes)?;
        sides(&f::LINK_SENT_PACKETS, |side| side.tx_packets)?;
        sides(&f::LINK_SENT_BYTES, |side| side.tx_bytes)?;
        let verdicts: Vec<([&str; 3], &VerdictCount)> = links
            .iter()
            .flat_map(|link| {
                link.verdicts
                    .iter()
                    .map(|count| ([link.name.as_str(), &count.verdict, text_of(&count.reason)], count))
            })
            .collect();
        to.put(&f::LINK_VERDICT_PACKETS, verdicts.iter().map(|(labels, count)| (*labels, count.packets)))?;
        to.put(&f::LINK_VERDICT_BYTES, verdicts.iter().map(|(labels, count)| (*labels, count.bytes)))
    }

    fn ports(&self, to: &mut Writer<'_>) -> fmt::Result {
        let ports = &self.snapshot.ports;
        let numbers: Vec<(String, String)> =
            ports.iter().map(|port| (port.number.to_string(), port.lane.to_string())).collect();
        let info = ports.iter().zip(&numbers).map(|(port, (number, lane))| {
            let labels = [
                port.name.as_str(),
                number,
                lane,
                text_of(&port.interface),
                text_of(&port.speed),
                text_of(&port.role),
                text_of(&port.description),
            ];
            (labels, true)
        });
        to.put(&f::PORT_INFO, info)?;
        let carriers = ports.iter().filter_map(|port| Some(([port.name.as_str()], port.carrier?)));
        to.put(&f::PORT_CARRIER, carriers)?;
        to.put(&f::PORT_MTU, ports.iter().map(|port| ([port.name.as_str()], f64::from(port.mtu))))?;
        if !self.is_counted() {
            return Ok(());
        }
        let mut count = |family, value: fn(&api::Port) -> u64| {
            to.put(family, ports.iter().map(|port| ([port.name.as_str()], value(port))))
        };
        count(&f::PORT_RECEIVED_PACKETS, |port| port.rx.packets)?;
        count(&f::PORT_RECEIVED_BYTES, |port| port.rx.bytes)?;
        count(&f::PORT_SENT_PACKETS, |port| port.tx.packets)?;
        count(&f::PORT_SENT_BYTES, |port| port.tx.bytes)?;
        let outside = &self.snapshot.drops.outside;
        let mut losses = |family, value: fn(&api::PortLosses) -> u64| {
            let series = ports.iter().map(|port| {
                let losses = outside.iter().find(|losses| losses.port == port.name);
                ([port.name.as_str()], losses.map_or(0, value))
            });
            to.put(family, series)
        };
        losses(&f::PORT_MISSED, |losses| losses.missed)?;
        losses(&f::PORT_LOST, |losses| losses.lost)
    }

    fn flows(&self, to: &mut Writer<'_>) -> fmt::Result {
        to.one(&f::FLOWS, self.flow_count)?;
        let counted = self.flows.as_ref().filter(|flows| flows.counted.is_some());
        let mut flows: Vec<&api::Flow> = counted.iter().flat_map(|flows| &flows.flows).collect();
        flows.sort_by(|a, b| a.name.cmp(&b.name));
        flows.truncate(self.max_flows);
        to.one(&f::FLOWS_OMITTED, self.flow_count.saturating_sub(self.max_flows))?;
        let priorities: Vec<String> = flows.iter().map(|flow| flow.priority.to_string()).collect();
        let info = flows.iter().zip(&priorities).map(|(flow, priority)| {
            ([flow.name.as_str(), priority, &flow.action, text_of(&flow.unit)], true)
        });
        to.put(&f::FLOW_INFO, info)?;
        to.put(&f::FLOW_PACKETS, flows.iter().map(|flow| ([flow.name.as_str()], flow.packets)))?;
        to.put(&f::FLOW_BYTES, flows.iter().map(|flow| ([flow.name.as_str()], flow.bytes)))
    }
}
