//! The ports of a pipeline, which come and go while it runs: their interfaces are opened and given up, workers
//! take new halves up between two batches, and ports that stay lose no frame.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataplane::PortId;

use crate::io::af_xdp::Share;
use crate::io::interface::Interface;
use crate::io::link_watch::{LinkChange, LinkWatch};
use crate::io::{Backend, Claim, IoError, Port, Sender, keep_alive, open_among};
use crate::packet_io::{InletPorts, PacketOut, Way};
use crate::run::{PortSpec, RunError};
use crate::worker::{Exchange, Inlet, Mailbox, OldHalves};

/// The ports of a running pipeline. Clones are of the same pipeline; they outlive it, and refuse then.
///
/// All that opens an interface does so in the network namespace of the calling thread, which is to be that of
/// [`Pipeline::start`](crate::run::Pipeline::start).
#[derive(Clone)]
pub struct PortSet(Arc<Shared>);

struct Shared {
    backend: Backend,
    /// Of all workers.
    mailboxes: Vec<Arc<Mailbox>>,
    /// Of all workers, what each one's ports have in common.
    shares: Vec<Share>,
    packet_out: PacketOut,
    inlet: InletPorts,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ports: BTreeMap<PortId, OpenPort>,
    /// By interface.
    claims: HashMap<String, Claim>,
    /// Workers that own a receiver: they alone have senders.
    busy: BTreeSet<usize>,
    /// For whoever follows the ports' interfaces: in place of the one it has.
    watch: Option<LinkWatch>,
    phase: Phase,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Ready,
    /// An [`Opening`] is out.
    Changing,
    Stopped,
}

struct OpenPort {
    spec: PortSpec,
    /// The worker that has its receiver.
    owner: usize,
    /// What its sockets are on; `None` while the interface is gone.
    port: Option<Port>,
    /// It is to be opened again: the interface was created anew. Why that failed when last tried.
    stale: Option<String>,
}

/// What is handed to every worker, by its number.
type Exchanges = BTreeMap<usize, Exchange>;

fn exchange_of(exchanges: &mut Exchanges, worker: usize) -> &mut Exchange {
    exchanges.entry(worker).or_insert_with(|| Exchange {
        inlets: Vec::new(),
        senders: Vec::new(),
        inlets_end: Vec::new(),
        senders_end: Vec::new(),
    })
}

impl PortSet {
    pub(crate) fn new(
        backend: Backend,
        mailboxes: Vec<Arc<Mailbox>>,
        packet_out: PacketOut,
        inlet: InletPorts,
    ) -> Self {
        let shares = mailboxes.iter().map(|_| Share::new(inlet.probe_pass(), mailboxes.len())).collect();
        PortSet(Arc::new(Shared { backend, mailboxes, shares, packet_out, inlet, state: Mutex::default() }))
    }

    /// Makes an interface a port of this worker, one of so many ports.
    fn open_port(&self, spec: &PortSpec, owner: usize, ports: usize) -> Result<Port, IoError> {
        let share = self.0.shares.get(owner).cloned().unwrap_or_default();
        open_among(self.0.backend, &spec.interface, spec.mtu, &share, ports)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many ports there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state().ports.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ports as they are, in the order of their numbers.
    #[must_use]
    pub fn specs(&self) -> Vec<PortSpec> {
        self.state().ports.values().map(|port| port.spec.clone()).collect()
    }

    /// Makes these the ports: opens what is new, gives up what is gone. All or nothing.
    ///
    /// # Errors
    /// As [`PortSet::open`].
    pub fn set(&self, specs: &[PortSpec]) -> Result<(), RunError> {
        self.open(specs).map(Opening::commit)
    }

    /// Opens all that these ports have and the present ones have not. What is quite new is at work from now on;
    /// the rest of the change waits for [`Opening::commit`], so that tables can be written in between. Meanwhile
    /// a port whose interface is to be another one forwards nothing, lest frames take another link's way.
    ///
    /// The MTU of interfaces is raised where a port's is greater. Opened interfaces are up and without offloads,
    /// and stay so.
    ///
    /// # Errors
    /// Two ports share an interface or a number, an interface cannot be used (missing, another pipeline's, MTU),
    /// another change is under way, or the pipeline has stopped. Ports and MTUs are as they were then.
    pub fn open(&self, specs: &[PortSpec]) -> Result<Opening, RunError> {
        distinct(specs)?;
        let mut state = self.state();
        match state.phase {
            Phase::Ready => {}
            Phase::Changing => return Err(RunError::Changing),
            Phase::Stopped => return Err(RunError::Stopped),
        }
        let plan = self.plan(&state, specs)?;
        state.phase = Phase::Changing;
        Ok(self.begin(&mut state, plan))
    }

    /// Opens everything, and changes nothing but interfaces.
    fn plan(&self, state: &State, specs: &[PortSpec]) -> Result<Plan, RunError> {
        // Before an interface is touched: what another pipeline has stays as it is, and a missing one is found.
        let mut claims = HashMap::new();
        for spec in specs.iter().filter(|spec| !state.claims.contains_key(&spec.interface)) {
            let claim = Claim::take(&spec.interface).map_err(|source| of_port(spec, source))?;
            claims.insert(spec.interface.clone(), claim);
        }
        let changed: Vec<&PortSpec> = specs.iter().filter(|spec| !state.has(spec)).collect();
        for spec in &changed {
            Interface::find(&spec.interface).map_err(|source| of_port(spec, source))?;
        }
        let names: Vec<&str> = specs.iter().map(|spec| spec.interface.as_str()).collect();
        let watch = LinkWatch::open(&names).map_err(RunError::Links)?;

        let mut raised = RaisedMtus::default();
        let mut owners = Owners::of(state, specs, self.0.mailboxes.len());
        let mut opened = BTreeMap::new();
        for spec in changed {
            // An AF_XDP queue is one worker's: who has the interface keeps it.
            let old = state.ports.values().find(|old| old.spec.interface == spec.interface);
            let old = old.or_else(|| state.ports.get(&spec.id));
            let owner = old.map_or_else(|| owners.next(), |old| old.owner);
            let port = raised
                .raise(spec)
                .and_then(|()| self.open_port(spec, owner, specs.len()))
                .map_err(|source| of_port(spec, source))?;
            opened.insert(spec.id, OpenPort { spec: spec.clone(), owner, port: Some(port), stale: None });
        }
        let wanted: BTreeSet<PortId> = specs.iter().map(|spec| spec.id).collect();
        let staying: Vec<&OpenPort> = state
            .ports
            .values()
            .filter(|port| wanted.contains(&port.spec.id) && !opened.contains_key(&port.spec.id))
            .collect();
        let busy: BTreeSet<usize> =
            staying.iter().copied().chain(opened.values()).map(|port| port.owner).collect();

        let (mut first, mut then) = (Exchanges::new(), Exchanges::new());
        let (mut first_ways, mut then_ways) = (Vec::new(), Vec::new());
        for (id, port) in &opened {
            let is_new = !state.ports.contains_key(id) && !state.claims.contains_key(&port.spec.interface);
            let (exchanges, ways) =
                if is_new { (&mut first, &mut first_ways) } else { (&mut then, &mut then_ways) };
            exchange_of(exchanges, port.owner).inlets.extend(port.inlet()?);
            for worker in &busy {
                exchange_of(exchanges, *worker).senders.extend(port.sender_of(*worker)?);
            }
            ways.extend(port.way()?);
        }
        for worker in busy.difference(&state.busy) {
            for port in &staying {
                exchange_of(&mut first, *worker).senders.extend(port.sender_of(*worker)?);
            }
        }
        for (id, port) in &state.ports {
            let exchanges = match opened.get(id) {
                Some(new) if new.spec.interface != port.spec.interface => &mut first,
                None if !wanted.contains(id) => &mut then,
                // It stays, or its new halves take the place of the old ones.
                _ => continue,
            };
            exchange_of(exchanges, port.owner).inlets_end.push(*id);
            for worker in &state.busy {
                exchange_of(exchanges, *worker).senders_end.push(*id);
            }
        }
        for worker in state.busy.difference(&busy) {
            exchange_of(&mut then, *worker).senders_end.extend(state.ports.keys());
        }
        let specs = specs.to_vec();
        let rest = Rest { specs, opened, busy, then, then_ways, claims, raised, watch };
        Ok(Plan { first, first_ways, rest })
    }

    /// The part of a change that comes before the tables.
    fn begin(&self, state: &mut State, plan: Plan) -> Opening {
        let Plan { first, first_ways, rest } = plan;
        let opened = &rest.opened;
        let mut undo = Undo { busy: state.busy.clone(), ..Undo::default() };
        for (worker, exchange) in &first {
            let undone = exchange_of(&mut undo.exchanges, *worker);
            undone.inlets_end.extend(exchange.inlets.iter().map(|inlet| inlet.port));
            undone.senders_end.extend(exchange.senders.iter().map(|(port, _)| *port));
        }
        let moving = |port: &OpenPort| {
            opened.get(&port.spec.id).is_some_and(|new| new.spec.interface != port.spec.interface)
        };
        let mut heard: Vec<(PortId, String)> =
            state.ports.values().filter(|port| !moving(port)).map(OpenPort::named).collect();
        heard.extend(first_ways.iter().filter_map(|(id, _)| opened.get(id)).map(OpenPort::named));
        for port in state.ports.values().filter(|port| moving(port)) {
            undo.ways.extend(self.0.packet_out.take(port.spec.id).map(|way| (port.spec.id, way)));
        }
        for (worker, old) in self.exchange(first) {
            let undone = exchange_of(&mut undo.exchanges, worker);
            undone.inlets.extend(old.inlets);
            undone.senders.extend(old.senders);
        }
        for (id, way) in first_ways {
            self.0.packet_out.put(id, way);
            undo.ways_end.push(id);
        }
        self.0.inlet.set(heard);
        state.busy.extend(&rest.busy);
        Opening { set: self.clone(), rest: Some(rest), undo }
    }

    /// The part that comes after them.
    fn finish(&self, rest: Rest) {
        let Rest { specs, mut opened, busy, then, then_ways, claims, mut raised, watch } = rest;
        let mut state = self.state();
        if state.phase == Phase::Stopped {
            return;
        }
        let old = self.exchange(then);
        let mut before = std::mem::take(&mut state.ports);
        for spec in specs {
            let (now, was) = (opened.remove(&spec.id), before.remove(&spec.id));
            if let Some(OpenPort { port: Some(port), .. }) = &now {
                let io = port.describe();
                tracing::info!(port = %spec.name, interface = %spec.interface, mtu = spec.mtu, io, "the port is open");
            }
            // Names and smaller MTUs change without any opening.
            if let Some(port) = now.or(was) {
                state.ports.insert(spec.id, OpenPort { spec, ..port });
            }
        }
        let mut old_ways = Vec::new();
        for (id, gone) in before {
            tracing::info!(port = %gone.spec.name, interface = %gone.spec.interface, "the port is given up");
            old_ways.extend(self.0.packet_out.take(id));
        }
        for (id, way) in then_ways {
            old_ways.extend(self.0.packet_out.put(id, way));
        }
        self.0.inlet.set(state.ports.values().map(OpenPort::named).collect());
        state.busy = busy;
        state.watch = Some(watch);
        raised.keep();
        // Another pipeline may have the interfaces once nothing of them is open.
        drop((old, old_ways));
        self.reclaim();
        state.claims.extend(claims);
        let in_use: BTreeSet<String> = state.ports.values().map(|port| port.spec.interface.clone()).collect();
        state.claims.retain(|interface, _| in_use.contains(interface));
        state.phase = Phase::Ready;
    }

    /// Makes the memory of frames that closed sockets had free again.
    fn reclaim(&self) {
        self.0.shares.iter().for_each(Share::reclaim);
    }

    /// Puts everything back as it was before a change began.
    fn undo(&self, undo: &mut Undo) {
        let mut state = self.state();
        if state.phase == Phase::Stopped {
            return;
        }
        drop(self.exchange(std::mem::take(&mut undo.exchanges)));
        for id in undo.ways_end.drain(..) {
            self.0.packet_out.take(id);
        }
        for (id, way) in undo.ways.drain(..) {
            self.0.packet_out.put(id, way);
        }
        self.0.inlet.set(state.ports.values().map(OpenPort::named).collect());
        state.busy = std::mem::take(&mut undo.busy);
        state.phase = Phase::Ready;
    }

    /// Hands every worker its exchange, and waits until all have taken theirs up; what they gave back.
    fn exchange(&self, exchanges: Exchanges) -> Vec<(usize, OldHalves)> {
        let answers: Vec<_> = exchanges
            .into_iter()
            .filter_map(|(worker, exchange)| {
                self.0.mailboxes.get(worker).map(|mailbox| (worker, mailbox.put(exchange)))
            })
            .collect();
        // One that has ended answers with an error, and its sockets are closed.
        answers.into_iter().filter_map(|(worker, answer)| Some((worker, answer.recv().ok()?))).collect()
    }

    /// The watch that was opened with the present ports, once.
    pub(crate) fn take_watch(&self) -> Option<LinkWatch> {
        self.state().watch.take()
    }

    /// Takes note of what interfaces did, and opens ports again whose interface was created anew.
    pub(crate) fn follow(&self, changes: &[(String, LinkChange)]) {
        let mut state = self.state();
        for (interface, change) in changes {
            let port = state.ports.values_mut().find(|port| port.spec.interface == *interface);
            let Some(OpenPort { spec, port, stale, .. }) = port else { continue };
            match change.interface {
                None => {
                    (*port, *stale) = (None, None);
                    tracing::warn!(port = %spec.name, %interface, "the interface is gone");
                }
                now if now != port.as_ref().map(|port| port.interface().index) => {
                    stale.get_or_insert_default();
                }
                Some(_) => {}
            }
        }
        if state.phase != Phase::Ready {
            return;
        }
        let stale: Vec<PortId> =
            state.ports.iter().filter(|(_, port)| port.stale.is_some()).map(|(id, _)| *id).collect();
        for id in stale {
            let opened = self.reopen(&state, id);
            let Some(port) = state.ports.get_mut(&id) else { continue };
            match opened {
                Ok(opened) => {
                    let io = opened.describe();
                    (port.port, port.stale) = (Some(opened), None);
                    let (name, interface) = (&port.spec.name, &port.spec.interface);
                    tracing::info!(port = %name, %interface, io, "the interface is back");
                }
                Err(error) => {
                    let error = error.to_string();
                    if port.stale.as_ref() != Some(&error) {
                        tracing::warn!(error, "cannot open a port again; trying again");
                        port.stale = Some(error);
                    }
                }
            }
        }
    }

    /// New halves for a port, on the interface that now has its name.
    fn reopen(&self, state: &State, id: PortId) -> Result<Port, RunError> {
        let known = state.ports.get(&id).ok_or(RunError::Stopped)?;
        let spec = known.spec.clone();
        let opened = Interface::raise_mtu(&spec.interface, spec.mtu)
            .and_then(|_| self.open_port(&spec, known.owner, state.ports.len()))
            .map_err(|source| of_port(&spec, source))?;
        let port = OpenPort { spec, owner: known.owner, port: Some(opened.clone()), stale: None };
        let mut exchanges = Exchanges::new();
        exchange_of(&mut exchanges, port.owner).inlets.extend(port.inlet()?);
        for worker in &state.busy {
            exchange_of(&mut exchanges, *worker).senders.extend(port.sender_of(*worker)?);
        }
        let way = port.way()?;
        self.exchange(exchanges);
        if let Some((id, way)) = way {
            self.0.packet_out.put(id, way);
        }
        self.0.inlet.refresh();
        self.reclaim();
        Ok(opened)
    }

    /// The pipeline has stopped: no thread forwards any more, and others may have the interfaces.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        *state = State { phase: Phase::Stopped, ..State::default() };
    }
}

/// What a change needs, open and ready.
struct Plan {
    /// Before the tables.
    first: Exchanges,
    first_ways: Vec<(PortId, Way)>,
    rest: Rest,
}

/// What of it is left for after the tables.
struct Rest {
    specs: Vec<PortSpec>,
    /// New, or on another interface than before, or with a greater MTU.
    opened: BTreeMap<PortId, OpenPort>,
    /// Workers that will own a receiver.
    busy: BTreeSet<usize>,
    then: Exchanges,
    then_ways: Vec<(PortId, Way)>,
    /// Of interfaces that were not in use.
    claims: HashMap<String, Claim>,
    raised: RaisedMtus,
    watch: LinkWatch,
}

/// How the first part is taken back.
#[derive(Default)]
struct Undo {
    exchanges: Exchanges,
    ways: Vec<(PortId, Way)>,
    ways_end: Vec<PortId>,
    busy: BTreeSet<usize>,
}

/// A change of the ports that has begun. Dropped, it is taken back: ports and MTUs are as they were.
#[must_use = "dropping it takes the change back"]
pub struct Opening {
    set: PortSet,
    rest: Option<Rest>,
    undo: Undo,
}

impl Opening {
    /// Brings the change to its end: gives up what is gone, and puts moved and widened ports to work.
    pub fn commit(mut self) {
        if let Some(rest) = self.rest.take() {
            self.set.finish(rest);
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if self.rest.is_some() {
            self.set.undo(&mut self.undo);
        }
    }
}

impl State {
    /// Whether there is nothing to open for a port. One whose interface is gone is opened when that is back.
    fn has(&self, spec: &PortSpec) -> bool {
        self.ports.get(&spec.id).is_some_and(|old| {
            old.spec.interface == spec.interface
                && old.port.as_ref().is_none_or(|port| port.mtu() >= spec.mtu)
        })
    }
}

/// A port and what sends by it.
type PortSender = (PortId, Box<dyn Sender>);

impl OpenPort {
    fn named(&self) -> (PortId, String) {
        (self.spec.id, self.spec.interface.clone())
    }

    fn half<T>(&self, take: impl FnOnce(&Port) -> Result<T, IoError>) -> Result<Option<T>, RunError> {
        self.port.as_ref().map(take).transpose().map_err(|source| of_port(&self.spec, source))
    }

    fn inlet(&self) -> Result<Option<Inlet>, RunError> {
        let receiver = self.half(Port::held_receiver)?;
        let (port, interface) = self.named();
        Ok(receiver.map(|receiver| Inlet { port, interface, receiver }))
    }

    fn sender_of(&self, worker: usize) -> Result<Option<PortSender>, RunError> {
        let take = if worker == self.owner { Port::owner_sender } else { Port::sender };
        Ok(self.half(take)?.map(|sender| (self.spec.id, sender)))
    }

    fn way(&self) -> Result<Option<(PortId, Way)>, RunError> {
        let way = self.half(|port| {
            let keep_alives = keep_alive::sender(&[&port.interface().name])?;
            Ok(Way { keep_alives: Some(Box::new(keep_alives)), sender: port.sender()? })
        })?;
        Ok(way.map(|way| (self.spec.id, way)))
    }
}

/// Spreads receivers over workers.
struct Owners(Vec<usize>);

impl Owners {
    /// Receivers that each of `workers` keeps under these ports.
    fn of(state: &State, specs: &[PortSpec], workers: usize) -> Self {
        let mut counts = vec![0; workers];
        for port in specs.iter().filter_map(|spec| state.ports.get(&spec.id)) {
            if let Some(count) = counts.get_mut(port.owner) {
                *count += 1;
            }
        }
        Owners(counts)
    }

    /// The worker with the fewest, the first of them; it gets one more.
    fn next(&mut self) -> usize {
        let fewest = self.0.iter_mut().enumerate().min_by_key(|(_, count)| **count);
        fewest.map_or(0, |(worker, count)| {
            *count += 1;
            worker
        })
    }
}

/// MTUs of interfaces before they were raised; put back where the change does not come to its end.
#[derive(Default)]
struct RaisedMtus(Vec<(String, u32)>);

impl RaisedMtus {
    fn raise(&mut self, spec: &PortSpec) -> Result<(), IoError> {
        let before = Interface::raise_mtu(&spec.interface, spec.mtu)?;
        if before < spec.mtu {
            self.0.push((spec.interface.clone(), before));
        }
        Ok(())
    }

    fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for RaisedMtus {
    fn drop(&mut self) {
        for (interface, mtu) in self.0.drain(..) {
            if let Err(error) = Interface::set_mtu(&interface, mtu) {
                tracing::warn!(%interface, mtu, %error, "the MTU stays raised");
            }
        }
    }
}

fn of_port(spec: &PortSpec, source: IoError) -> RunError {
    RunError::Port { port: spec.name.clone(), source }
}

/// No interface and no number is two ports'.
fn distinct(specs: &[PortSpec]) -> Result<(), RunError> {
    let mut interfaces: HashMap<&str, &PortSpec> = HashMap::new();
    let mut ids: HashMap<PortId, &PortSpec> = HashMap::new();
    for spec in specs {
        let shared = |other: &PortSpec, what: String| RunError::Shared {
            first: other.name.clone(),
            second: spec.name.clone(),
            what,
        };
        if let Some(other) = interfaces.insert(&spec.interface, spec) {
            return Err(shared(other, format!("interface {}", spec.interface)));
        }
        if let Some(other) = ids.insert(spec.id, spec) {
            return Err(shared(other, format!("number {}", spec.id)));
        }
    }
    Ok(())
}
