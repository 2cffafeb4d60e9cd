//! Answers to clients: what they look at, and what they ask the engine to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use api::{
    Balancer, ConfigHash, Count, Drops, EventKind, Flow, Link, NamedVerdicts, PairLiveness, Port, PortLosses,
    Request, Response, Severity, SideCounts, TableUsage, UnitHash, VerdictCount, Version,
};
use arc_swap::ArcSwap;
use dataplane::entry::Entry;
use dataplane::schema::counters as cells;
use dataplane::{LinkIndex, PairId, PortId, Reason, Side, SteeringMode};
use liveness::{Nanos, Suspicion};
use serde_json::Value;
use site::{PairName, Site};
use tokio::sync::{mpsc, oneshot, watch};

use crate::access::{self, Action};
use crate::audit::Audit;
use crate::carriers;
use crate::clock;
use crate::counted::{LinkPorts, cells_for, correct};
use crate::datastore::Datastores;
use crate::engine::Command;
use crate::event::{Events, News};
use crate::keepalives::{Command as KeepaliveCommand, Keepalives, Status};
use crate::lookup::lookup;
use crate::session::Session;
use crate::target::{Standing, Target, TargetError};
use crate::view::View;

mod measured;

use measured::buckets_served;
pub(crate) use measured::{liveness_of, references_of, unit_of};

/// Digits of a digest that screens show.
const SHOWN_DIGITS: usize = 16;

/// What answering needs.
pub struct Desk<T> {
    /// The data plane, for counters.
    pub target: Arc<T>,
    /// What is known.
    pub view: Arc<ArcSwap<View>>,
    /// Measurements.
    pub keepalives: Keepalives,
    /// The event log.
    pub events: Arc<Events>,
    /// The engine.
    pub commands: mpsc::Sender<Command>,
    /// Carrier of ports.
    pub carriers: carriers::Known,
    /// Since when the process runs.
    pub started: Nanos,
    /// Configurations.
    pub datastores: Arc<Datastores>,
    /// What was done by whom.
    pub audit: Arc<Audit>,
    /// Of arbitration.
    pub device_id: u64,
    /// Of arbitration.
    pub election_id: u128,
    /// Flow counters of the previous reading.
    pub rates: Mutex<Rates>,
    /// Why the data plane, although it is connected, cannot be brought to what is wanted.
    pub trouble: watch::Receiver<Option<String>>,
}

/// Flow counters of the previous reading and the rates since the one before.
#[derive(Default)]
pub struct Rates {
    at: Option<Nanos>,
    counts: BTreeMap<String, Count>,
    rates: BTreeMap<String, (f64, f64)>,
}

/// A request that cannot be answered.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each says itself what it is")]
pub enum Refusal {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Engine(#[from] crate::engine::EngineError),
    #[error(transparent)]
    Lookup(#[from] crate::lookup::LookupError),
    #[error(transparent)]
    Denied(#[from] access::Denied),
    #[error(transparent)]
    Configuration(#[from] crate::configuration::ConfigurationError),
    #[error("{0}")]
    NotHeld(String),
    #[error("the state does not follow the model: {0}")]
    State(String),
    #[error(transparent)]
    Liveness(#[from] crate::keepalives::Ended),
    #[error("{what} {name:?} does not exist; there are: {known}")]
    Unknown { what: &'static str, name: String, known: String },
    #[error("the data plane is not under this controller ({state}: {reason}), so its tables are not known")]
    Stale { state: String, reason: String },
    #[error("sluiced is shutting down")]
    Ending,
    #[error("the answer cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

fn unknown(what: &'static str, name: &str, known: impl Iterator<Item = String>) -> Refusal {
    Refusal::Unknown { what, name: name.to_owned(), known: known.collect::<Vec<_>>().join(", ") }
}

fn counted(count: swpipe::counters::Count) -> Count {
    Count { packets: count.packets, bytes: count.bytes }
}

/// A cell of a counter array, as it is asked for.
type Cell = (&'static dataplane::schema::Counter, usize);

/// Cells that were read, to be taken by the same number.
#[derive(Default)]
pub(crate) struct Cells(BTreeMap<(u32, usize), Count>);

impl Cells {
    fn get(&self, counter: &dataplane::schema::Counter, index: usize) -> Count {
        self.0.get(&(counter.id, index)).copied().unwrap_or_default()
    }

    fn verdicts(
        &self,
        counter: &dataplane::schema::Counter,
        cell: impl Fn(Reason) -> usize,
    ) -> Vec<VerdictCount> {
        Reason::ALL
            .iter()
            .map(|reason| (reason, self.get(counter, cell(*reason))))
            .filter(|(_, count)| count.packets > 0)
            .map(|(reason, count)| VerdictCount {
                verdict: reason.verdict().as_str().to_owned(),
                reason: reason.as_str().map(str::to_owned),
                packets: count.packets,
                bytes: count.bytes,
            })
            .collect()
    }
}

impl<T: Target> Desk<T> {
    /// Answers a request of a session.
    pub async fn answer(&self, session: &mut Session, request: Request) -> Response {
        let call = (Action::of(&request) == Action::Call).then(|| format!("{request:?}"));
        let result = self.try_answer(session, request).await;
        if let Err(Refusal::Denied(denied)) = &result {
            self.access_event(Severity::Warning, &session.who.user, denied.to_string());
        }
        if let Some(call) = call {
            let said = result.as_ref().map(drop).map_err(ToString::to_string);
            self.audit.record(&session.who, &call, None, said.as_ref().copied().map_err(String::as_str));
        }
        match result {
            Ok(value) => Response::Ok(value),
            Err(refusal) => Response::Error(refusal.to_string()),
        }
    }

    /// Logs who came in, or was kept out.
    pub(crate) fn access_event(&self, severity: Severity, user: &str, reason: String) {
        // Whoever is kept out may have called himself anything.
        let user: String = user.chars().take(64).collect();
        self.events.log(News::now(severity, EventKind::Access, &user, reason));
    }

    async fn try_answer(&self, session: &mut Session, request: Request) -> Result<Value, Refusal> {
        access::permit(&session.who.user, session.role, Action::of(&request))?;
        let view = self.view.load_full();
        Ok(match request {
            Request::ShowVersion => serde_json::to_value(self.version(&view))?,
            Request::ShowPorts => serde_json::to_value(self.ports(&view, None).await?)?,
            Request::ShowPortStatistics { port } => {
                let ports = self.ports(&view, Some(&port)).await?;
                serde_json::to_value(
                    ports.first().ok_or_else(|| unknown("port", &port, view.site.ports.keys().cloned()))?,
                )?
            }
            Request::ShowLink => serde_json::to_value(self.links(&view).await?)?,
            Request::ShowBalancer => serde_json::to_value(self.balancer(&view).await?)?,
            Request::ShowUnit { unit } => {
                if let Some(name) = unit.as_ref().filter(|name| !view.site.units.contains_key(*name)) {
                    return Err(unknown("ecofilter-unit", name, view.site.units.keys().cloned()));
                }
                let mut units = self.balancer(&view).await?.units;
                units.retain(|shown| unit.as_ref().is_none_or(|name| *name == shown.name));
                serde_json::to_value(units)?
            }
            Request::ShowFlow { flow } => {
                let mut flows = self.flows(&view).await?;
                if let Some(name) = flow {
                    flows.retain(|shown| shown.name == name);
                    if flows.is_empty() {
                        let known = view.site.flows.keys().take(20).cloned();
                        return Err(unknown("flow", &name, known));
                    }
                }
                serde_json::to_value(flows)?
            }
            Request::ShowConfigHash => serde_json::to_value(config_hash(&view.site))?,
            Request::ShowLiveness { profile } => {
                if let Some(name) = profile.as_ref().filter(|name| !view.site.profiles.contains_key(*name)) {
                    return Err(unknown("liveness profile", name, view.site.profiles.keys().cloned()));
                }
                serde_json::to_value(self.liveness(&view, profile.as_deref()).await?)?
            }
            Request::ShowDrops => serde_json::to_value(self.drops(&view).await?)?,
            Request::ShowEvents { after, last, filter } => {
                serde_json::to_value(self.events.select(after, last, &filter))?
            }
            Request::FollowEvents { after, filter } => {
                serde_json::to_value(self.events.since(after, &filter))?
            }
            Request::ShowTarget => serde_json::to_value(self.target_of(&view))?,
            Request::Lookup(query) => {
                // Tables that are not known to be the device's would give an answer that may be wrong.
                if let (state, Some(reason)) = self.standing() {
                    return Err(Refusal::Stale { state, reason });
                }
                serde_json::to_value(lookup(&view, &query)?)?
            }
            Request::SetUnitMode { unit, mode } => {
                self.command(|answer| Command::SetUnitMode { unit, mode, answer }).await??;
                Value::Null
            }
            Request::ClearHold { unit, pair } => {
                let name = PairName { unit, pair };
                if view.site.pair(&name).is_none() {
                    return Err(unknown(
                        "pair",
                        &name.to_string(),
                        view.site.pair_names().map(|name| name.to_string()),
                    ));
                }
                let (answer, cleared) = oneshot::channel();
                if let Some(id) = view.ids.pairs.get(&name) {
                    self.keepalives.tell(KeepaliveCommand::ClearHold { pair: *id, answer })?;
                }
                if !cleared.await.unwrap_or_default() {
                    return Err(Refusal::NotHeld(format!("pair {name} is not held")));
                }
                Value::Null
            }
            Request::WhoAmI => serde_json::to_value(api::WhoAmI {
                user: session.who.user.clone(),
                role: session.role,
                session: session.who.session,
            })?,
            request => {
                crate::configuration::answer(&self.datastores, session, request).await?.unwrap_or_default()
            }
        })
    }

    async fn command<R>(&self, command: impl FnOnce(oneshot::Sender<R>) -> Command) -> Result<R, Refusal> {
        let (answer, result) = oneshot::channel();
        self.commands.send(command(answer)).await.map_err(|_| Refusal::Ending)?;
        result.await.map_err(|_| Refusal::Ending)
    }

    async fn read(&self, view: &View, wanted: Vec<Cell>) -> Result<Cells, Refusal> {
        let wanted = wanted.into_iter().map(|(counter, index)| (counter.id, index)).collect();
        let (bytes, links) = (self.target.profile().counted, LinkPorts::of(&view.tables));
        let asked = cells_for(bytes, &links, wanted);
        let counts = self.target.counters(asked.clone()).await?;
        let mut read = asked.into_iter().zip(counts).collect();
        correct(bytes, &links, &mut read);
        Ok(Cells(read.into_iter().map(|(cell, count)| (cell, counted(count))).collect()))
    }

    /// Every cell that ports, links, drops and the balancer are made of, at one time.
    pub(crate) async fn read_all(&self, view: &View) -> Result<Cells, Refusal> {
        let mut wanted = port_cells(view, None);
        wanted.extend(link_cells(view));
        wanted.extend(drop_cells(view));
        wanted.extend(balancer_cells(view));
        let mut seen = BTreeSet::new();
        wanted.retain(|(counter, index)| seen.insert((counter.id, *index)));
        self.read(view, wanted).await
    }

    pub(crate) fn version(&self, view: &View) -> Version {
        let (_, device) = view.site.config_hashes();
        Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: clock::calendar(self.started),
            uptime: clock::now().since(self.started).0 / 1_000_000_000,
            target: self.target.address(),
            config_hash: shown(&device),
        }
    }

    async fn ports(&self, view: &View, only: Option<&str>) -> Result<Vec<Port>, Refusal> {
        let read = self.read(view, port_cells(view, only)).await?;
        Ok(self.ports_of(view, only, &read))
    }

    pub(crate) fn ports_of(&self, view: &View, only: Option<&str>, read: &Cells) -> Vec<Port> {
        let roles = roles(&view.site);
        let carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ports_named(view, only)
            .map(|port| Port {
                name: port.name.clone(),
                port_id: port.id.0,
                number: port.number,
                lane: port.lane,
                interface: port.interface.clone(),
                speed: port.speed.clone(),
                mtu: port.mtu,
                description: port.description.clone(),
                role: roles.get(port.name.as_str()).cloned(),
                carrier: carriers.get(&port.name).map(|carrier| carrier.present),
                flaps: carriers.get(&port.name).map_or(0, |carrier| carrier.flaps),
                last_change: carriers
                    .get(&port.name)
                    .and_then(|carrier| carrier.changed)
                    .map(clock::calendar),
                rx: read.get(&cells::PORT_IN, cells::port(port.id)),
                tx: read.get(&cells::PORT_OUT, cells::port(port.id)),
            })
            .collect()
    }

    async fn links(&self, view: &View) -> Result<Vec<Link>, Refusal> {
        Ok(links_of(view, &self.read(view, link_cells(view)).await?))
    }

    async fn drops(&self, view: &View) -> Result<Drops, Refusal> {
        Ok(drops_of(view, &self.read(view, drop_cells(view)).await?))
    }

    async fn balancer(&self, view: &View) -> Result<Balancer, Refusal> {
        let status = self.keepalives.status().await?;
        // The screen must be there when the data plane is not.
        let read = match self.read(view, balancer_cells(view)).await {
            Ok(read) => read,
            Err(Refusal::Target(_)) => Cells::default(),
            Err(refusal) => return Err(refusal),
        };
        Ok(self.balancer_of(view, &status, &read))
    }

    pub(crate) fn balancer_of(&self, view: &View, status: &Status, read: &Cells) -> Balancer {
        let (hashes, device) = view.site.config_hashes();
        let served = buckets_served(view);
        let units = view
            .site
            .units
            .values()
            .map(|unit| {
                let digest = hashes.get(&unit.name).map(String::as_str).unwrap_or_default();
                unit_of(view, unit, digest, status, read, &served)
            })
            .collect();
        let (data_plane, data_plane_reason) = self.standing();
        Balancer {
            data_plane,
            data_plane_reason,
            balancing_method: view.site.method.as_str().to_owned(),
            steering_mode: match view.site.steering {
                SteeringMode::Native { .. } => "native".to_owned(),
                SteeringMode::Dot1q { .. } => "dot1q".to_owned(),
            },
            config_hash: shown(&device),
            liveness_suspended: is_suspended(status),
            references: references_of(view, status),
            units,
        }
    }

    async fn liveness(&self, view: &View, profile: Option<&str>) -> Result<Vec<PairLiveness>, Refusal> {
        Ok(liveness_of(view, &self.keepalives.status().await?, profile))
    }

    pub(crate) async fn flows(&self, view: &View) -> Result<Vec<Flow>, Refusal> {
        let read = self.target.rule_counters().await?;
        // 100,000 of them take a while: other tasks go on meanwhile.
        Ok(tokio::task::block_in_place(|| self.flows_of(view, read)))
    }

    fn flows_of(&self, view: &View, read: Vec<(Entry, swpipe::counters::Count)>) -> Vec<Flow> {
        let mut counts: BTreeMap<String, Count> = BTreeMap::new();
        for (entry, count) in read {
            // By our own books: a device may not keep names.
            let metadata = view.tables.get(&entry.place()).map_or(&entry.metadata, |known| &known.metadata);
            let name = String::from_utf8_lossy(metadata).into_owned();
            let sum = counts.entry(name).or_default();
            sum.packets += count.packets;
            sum.bytes += count.bytes;
        }
        let rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner).update(&counts);
        let mut flows: Vec<Flow> = view
            .site
            .flows
            .values()
            .map(|flow| {
                let count = counts.get(&flow.name).copied().unwrap_or_default();
                let (packets_per_second, bits_per_second) =
                    rates.get(&flow.name).copied().unwrap_or_default();
                let (unit, copy) = match &flow.action {
                    site::FlowAction::ToUnit { unit, copy } => (Some(unit.clone()), *copy),
                    _ => (None, false),
                };
                Flow {
                    name: flow.name.clone(),
                    priority: flow.priority,
                    action: flow.action.as_str().to_owned(),
                    unit,
                    copy,
                    links: flow.links.clone(),
                    matches: flow.written.clone(),
                    packets: count.packets,
                    bytes: count.bytes,
                    packets_per_second,
                    bits_per_second,
                }
            })
            .collect();
        flows.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.name.cmp(&b.name)));
        flows
    }

    /// How the connection to the data plane stands, and why.
    fn standing(&self) -> (String, Option<String>) {
        match self.target.standing().borrow().clone() {
            Standing::Primary(_) => match self.trouble.borrow().clone() {
                None => ("primary".to_owned(), None),
                trouble => ("unusable".to_owned(), trouble),
            },
            Standing::Backup => ("backup".to_owned(), Some("another controller programs it".to_owned())),
            Standing::Lost(reason) => ("lost".to_owned(), Some(reason)),
        }
    }

    /// The data plane is under this controller, and what is known of its tables is true.
    pub(crate) fn is_current(&self) -> bool {
        self.standing().1.is_none()
    }

    pub(crate) fn target_of(&self, view: &View) -> api::Target {
        let (state, reason) = self.standing();
        let mut used: BTreeMap<u32, usize> = BTreeMap::new();
        for entry in view.tables.values() {
            *used.entry(entry.table).or_default() += 1;
        }
        let profile = self.target.profile();
        api::Target {
            address: self.target.address(),
            profile: profile.name.to_owned(),
            pipeline: self.target.pipeline(),
            state,
            reason,
            device_id: self.device_id,
            election_id: self.election_id.to_string(),
            epoch: view.epoch,
            tables: dataplane::tables::ALL
                .iter()
                .map(|table| TableUsage {
                    name: table.name.to_owned(),
                    entries: used.get(&table.id).copied().unwrap_or_default(),
                    size: profile.table_size(table),
                })
                .collect(),
        }
    }
}

impl Rates {
    /// Takes a reading; rates change when at least a second has passed.
    fn update(&mut self, counts: &BTreeMap<String, Count>) -> BTreeMap<String, (f64, f64)> {
        let now = clock::now();
        let Some(at) = self.at else {
            self.at = Some(now);
            self.counts = counts.clone();
            return BTreeMap::new();
        };
        let seconds = now.since(at).0 as f64 / 1e9;
        if seconds >= 1.0 {
            self.rates = counts
                .iter()
                .map(|(name, count)| {
                    let before = self.counts.get(name).copied().unwrap_or_default();
                    let packets = count.packets.saturating_sub(before.packets) as f64 / seconds;
                    let bits = count.bytes.saturating_sub(before.bytes) as f64 * 8.0 / seconds;
                    (name.clone(), (packets, bits))
                })
                .collect();
            self.at = Some(now);
            self.counts = counts.clone();
        }
        self.rates.clone()
    }
}

/// Losses of some pairs do not count for now.
fn is_suspended(status: &Status) -> bool {
    let suspicions = status.references.iter().map(|reference| reference.suspicion);
    suspicions.chain([status.suspicion]).any(|suspicion| matches!(suspicion, Suspicion::Suspended { .. }))
}

fn shown(digest: &str) -> String {
    digest.chars().take(SHOWN_DIGITS).collect()
}

fn ports_named<'a>(view: &'a View, only: Option<&'a str>) -> impl Iterator<Item = &'a site::Port> {
    view.site.ports.values().filter(move |port| only.is_none_or(|name| name == port.name))
}

fn port_cells(view: &View, only: Option<&str>) -> Vec<Cell> {
    ports_named(view, only)
        .flat_map(|port| [(&cells::PORT_IN, cells::port(port.id)), (&cells::PORT_OUT, cells::port(port.id))])
        .collect()
}

fn port_id(view: &View, name: &str) -> PortId {
    view.site.ports.get(name).map(|port| port.id).unwrap_or_default()
}

fn link_index(view: &View, link: &site::Link) -> LinkIndex {
    view.ids.links.get(&link.name).copied().unwrap_or_default()
}

fn link_cells(view: &View) -> Vec<Cell> {
    let mut wanted: Vec<Cell> = Vec::new();
    for link in &view.site.links {
        for port in [&link.lan_port, &link.wan_port] {
            wanted.extend(port_cells(view, Some(port)));
        }
        wanted.extend(link_verdict_cells(link_index(view, link)));
    }
    wanted
}

pub(crate) fn links_of(view: &View, read: &Cells) -> Vec<Link> {
    let side = |name: &str| {
        let rx = read.get(&cells::PORT_IN, cells::port(port_id(view, name)));
        let tx = read.get(&cells::PORT_OUT, cells::port(port_id(view, name)));
        SideCounts { rx_packets: rx.packets, rx_bytes: rx.bytes, tx_packets: tx.packets, tx_bytes: tx.bytes }
    };
    let verdicts = |link: &site::Link| {
        let index = link_index(view, link);
        read.verdicts(&cells::LINK_VERDICTS, |reason| cells::link_verdict(index, reason))
    };
    view.site
        .links
        .iter()
        .map(|link| Link {
            name: link.name.clone(),
            index: link_index(view, link).0,
            description: link.description.clone(),
            lan_port: link.lan_port.clone(),
            wan_port: link.wan_port.clone(),
            lan: side(&link.lan_port),
            wan: side(&link.wan_port),
            verdicts: verdicts(link),
        })
        .collect()
}

fn drop_cells(view: &View) -> Vec<Cell> {
    let mut wanted: Vec<Cell> = Reason::ALL.iter().map(|reason| (&cells::VERDICTS, reason.slot())).collect();
    // All ports of the data plane: frames came in by ports that the configuration does not have any more.
    wanted.extend((0..cells::PORTS).map(|port| (&cells::PORT_IN, port)));
    for counter in [&cells::PORT_MISSED, &cells::PORT_LOST] {
        wanted.extend(view.site.ports.values().map(|port| (counter, cells::port(port.id))));
    }
    wanted.extend(view.ids.links.values().flat_map(|link| link_verdict_cells(*link)));
    wanted.extend(view.ids.pairs.values().flat_map(|pair| pair_verdict_cells(*pair)));
    wanted
}

pub(crate) fn drops_of(view: &View, read: &Cells) -> Drops {
    Drops {
        frames_in: (0..cells::PORTS).map(|port| read.get(&cells::PORT_IN, port).packets).sum(),
        verdicts: read.verdicts(&cells::VERDICTS, Reason::slot),
        outside: view
            .site
            .ports
            .values()
            .map(|port| PortLosses {
                port: port.name.clone(),
                missed: read.get(&cells::PORT_MISSED, cells::port(port.id)).packets,
                lost: read.get(&cells::PORT_LOST, cells::port(port.id)).packets,
            })
            .filter(|losses| losses.missed + losses.lost > 0)
            .collect(),
        links: view
            .ids
            .links
            .iter()
            .map(|(name, link)| NamedVerdicts {
                name: name.clone(),
                verdicts: read.verdicts(&cells::LINK_VERDICTS, |reason| cells::link_verdict(*link, reason)),
            })
            .collect(),
        pairs: view
            .ids
            .pairs
            .iter()
            .map(|(name, pair)| NamedVerdicts {
                name: name.to_string(),
                verdicts: read.verdicts(&cells::PAIR_VERDICTS, |reason| cells::pair_verdict(*pair, reason)),
            })
            .collect(),
    }
}

fn balancer_cells(view: &View) -> Vec<Cell> {
    let mut wanted: Vec<Cell> = Vec::new();
    for pair in view.ids.pairs.values() {
        wanted.extend(Side::BOTH.map(|side| (&cells::PAIR_OUT, cells::pair_out(*pair, side))));
        wanted.push((&cells::PAIR_VERDICTS, cells::pair_verdict(*pair, Reason::Returned)));
    }
    wanted
}

fn link_verdict_cells(link: LinkIndex) -> impl Iterator<Item = Cell> {
    Reason::ALL.iter().map(move |reason| (&cells::LINK_VERDICTS, cells::link_verdict(link, *reason)))
}

fn pair_verdict_cells(pair: PairId) -> impl Iterator<Item = Cell> {
    Reason::ALL.iter().map(move |reason| (&cells::PAIR_VERDICTS, cells::pair_verdict(pair, *reason)))
}

fn config_hash(site: &Site) -> ConfigHash {
    let (units, device) = site.config_hashes();
    ConfigHash {
        device,
        units: units
            .into_iter()
            .map(|(name, config_hash)| UnitHash {
                buckets: site.units.get(&name).map_or(0, |unit| unit.shape().bucket_count()),
                name,
                config_hash,
            })
            .collect(),
    }
}

/// What each port serves.
fn roles(site: &Site) -> BTreeMap<&str, String> {
    let mut roles = BTreeMap::new();
    for link in &site.links {
        roles.insert(link.lan_port.as_str(), format!("link {} lan", link.name));
        roles.insert(link.wan_port.as_str(), format!("link {} wan", link.name));
    }
    for unit in site.units.values() {
        for pair in unit.pairs.values() {
            roles.insert(pair.lan_port.as_str(), format!("pair {} lan", pair.name));
            roles.insert(pair.wan_port.as_str(), format!("pair {} wan", pair.name));
        }
    }
    roles
}
