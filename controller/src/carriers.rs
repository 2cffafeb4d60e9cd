//! Carrier of ports whose interfaces are on this machine: to liveness, to the event log, to screens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use api::{EventKind, Severity};
use dataplane::PortId;
use liveness::Nanos;
use site::Site;
use swpipe::io::link_watch::{LinkState, LinkWatch};

use crate::clock;
use crate::event::{Events, News};
use crate::keepalives::{Command, Keepalives};

/// A watch that was replaced ends within this time.
const LOOK: Duration = Duration::from_secs(1);

/// Carrier of ports by name, where the machine tells.
pub type Known = Arc<Mutex<BTreeMap<String, Carrier>>>;

/// Carrier of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// It is there.
    pub present: bool,
    /// Times it went.
    pub flaps: u64,
    /// When it came or went last, while it was watched.
    pub changed: Option<Nanos>,
}

/// Interface, number and name of a port.
type Watched = (String, PortId, String);

/// Follows carriers on a thread of its own.
pub struct Carriers {
    keepalives: Keepalives,
    events: Arc<Events>,
    known: Known,
    /// Which watch is in force.
    generation: Arc<AtomicU64>,
    watched: Mutex<Vec<Watched>>,
}

impl Carriers {
    /// Follows nothing yet.
    #[must_use]
    pub fn new(keepalives: Keepalives, events: Arc<Events>, known: Known) -> Self {
        Carriers { keepalives, events, known, generation: Arc::default(), watched: Mutex::default() }
    }

    /// Follows the ports of a site from now on.
    pub fn follow(&self, site: &Site) {
        let ports: Vec<Watched> = site
            .ports
            .values()
            .filter_map(|port| Some((port.interface.clone()?, port.id, port.name.clone())))
            .collect();
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if *watched == ports {
                return;
            }
            // What is not followed any more is taken to be there, and keep-alives alone decide.
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, port, name) in watched.iter().filter(|port| !ports.contains(port)) {
                if known.remove(name).is_some_and(|carrier| !carrier.present) {
                    // It ends with the process alone.
                    let _ = self.keepalives.tell(Command::Carrier { port: *port, present: true });
                }
            }
            watched.clone_from(&ports);
        }
        let generation = self.generation.fetch_add(1, SeqCst) + 1;
        if ports.is_empty() {
            return;
        }
        let interfaces: Vec<&str> = ports.iter().map(|(interface, ..)| interface.as_str()).collect();
        let spawned = LinkWatch::open(&interfaces).map_err(|error| error.to_string()).and_then(|watch| {
            let watch = Watch {
                watch,
                ports,
                keepalives: self.keepalives.clone(),
                events: self.events.clone(),
                known: self.known.clone(),
                generation: (self.generation.clone(), generation),
            };
            let thread = thread::Builder::new().name("carriers".to_owned()).spawn(move || watch.run());
            thread.map(drop).map_err(|error| error.to_string())
        });
        if let Err(error) = spawned {
            tracing::warn!("carrier of ports is not watched, keep-alives alone decide: {error}");
        }
    }
}

struct Watch {
    watch: LinkWatch,
    ports: Vec<Watched>,
    keepalives: Keepalives,
    events: Arc<Events>,
    known: Known,
    generation: (Arc<AtomicU64>, u64),
}

impl Watch {
    fn run(mut self) {
        let mut seen: BTreeMap<usize, bool> = BTreeMap::new();
        let (current, mine) = self.generation;
        let mut ended = false;
        while !ended && current.load(SeqCst) == mine {
            let waited = self.watch.wait(Some(LOOK), &mut |change| {
                let present = change.state == LinkState::Up;
                let Some((interface, id, name)) = self.ports.get(change.port) else { return };
                if seen.insert(change.port, present) == Some(present) || current.load(SeqCst) != mine {
                    return;
                }
                // A port that the watch before this one knew as it is now is no news.
                let before = {
                    let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = known.get(name).copied();
                    let after = match before {
                        Some(carrier) if carrier.present == present => carrier,
                        Some(Carrier { flaps, .. }) => Carrier {
                            present,
                            flaps: flaps + u64::from(!present),
                            changed: Some(clock::now()),
                        },
                        None => Carrier { present, flaps: 0, changed: None },
                    };
                    known.insert(name.clone(), after);
                    before.map(|carrier| carrier.present)
                };
                ended |= self.keepalives.tell(Command::Carrier { port: *id, present }).is_err();
                if before == Some(present) {
                    return;
                }
                let words = |present| if present { "carrier" } else { "no-carrier" };
                let severity = if present { Severity::Info } else { Severity::Warning };
                let reason = format!("interface {interface}: {:?}", change.state);
                let news = News::now(severity, EventKind::Port, name, reason);
                self.events.log(news.change(words(!present), words(present)));
            });
            if let Err(error) = waited {
                tracing::warn!("carrier of ports is not watched any more: {error}");
                return;
            }
        }
    }
}
