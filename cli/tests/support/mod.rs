//! A sluiced that answers from fixed values, and the binary that asks it.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file is a crate that uses a part")]

pub mod device;
pub mod glass;
pub mod operator;
pub mod sample;
pub mod terminal;

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use api::{Event, NewEvents, Request, Response};
use serde_json::json;
use tempfile::TempDir;

use device::Device;

/// Longer than anything here takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    connections: Vec<UnixStream>,
    events: Vec<Event>,
    device: Device,
}

/// The fake daemon.
pub struct Daemon {
    pub directory: TempDir,
    pub socket: PathBuf,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Daemon {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("sluice.sock");
        let daemon = Daemon { directory, socket, state: Arc::default() };
        daemon.listen();
        daemon
    }

    /// Takes connections until [`Daemon::stop`].
    pub fn listen(&self) {
        let listener = UnixListener::bind(&self.socket).unwrap();
        let (state, socket) = (Arc::clone(&self.state), self.socket.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if !socket.exists() {
                    return;
                }
                let stream = stream.unwrap();
                let state = Arc::clone(&state);
                {
                    let mut state = state.0.lock().unwrap();
                    state.connections.push(stream.try_clone().unwrap());
                    state.device.sessions += 1;
                }
                thread::spawn(move || serve(stream, &state));
            }
        });
    }

    /// Closes all connections, as a restart does.
    pub fn break_connections(&self) {
        for stream in self.state.0.lock().unwrap().connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Is away: no connection, no socket.
    pub fn stop(&self) {
        std::fs::rename(&self.socket, self.directory.path().join("gone")).unwrap();
        // Wakes the listener, which then sees that it has no socket.
        UnixStream::connect(self.directory.path().join("gone")).unwrap();
        self.break_connections();
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.0.lock().unwrap().requests.clone()
    }

    /// Looks at, or changes, what is configured.
    pub fn device<T>(&self, work: impl FnOnce(&mut Device) -> T) -> T {
        let done = work(&mut self.state.0.lock().unwrap().device);
        self.state.1.notify_all();
        done
    }

    /// Requests of that kind.
    pub fn count(&self, wanted: impl Fn(&Request) -> bool) -> usize {
        self.requests().iter().filter(|request| wanted(request)).count()
    }

    pub fn happen(&self, event: Event) {
        self.state.0.lock().unwrap().events.push(event);
    }

    /// Waits until so many such requests have come.
    pub fn wait_for(&self, count: usize, wanted: impl Fn(&Request) -> bool) {
        let (state, changed) = &*self.state;
        let guard = state.lock().unwrap();
        let few = |state: &mut State| state.requests.iter().filter(|request| wanted(request)).count() < count;
        let waited = changed.wait_timeout_while(guard, DEADLINE, few).unwrap();
        assert!(!waited.1.timed_out(), "the requests did not come");
    }

    pub fn sluice(&self) -> Command {
        sluice(&self.socket)
    }

    /// `sluice -c LINE`.
    pub fn once(&self, line: &str) -> Output {
        self.sluice().arg("-c").arg(line).output().unwrap()
    }
}

/// The binary, with nothing of the environment that changes what it does.
pub fn sluice(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command
        .arg("--socket")
        .arg(socket)
        .stdin(Stdio::null())
        .env_remove("SLUICE_SOCKET")
        .env_remove("NO_COLOR");
    command
}

fn serve(stream: UnixStream, state: &(Mutex<State>, Condvar)) {
    let mut writer = stream.try_clone().unwrap();
    let mut candidate = None;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let request: Request = serde_json::from_str(&line).unwrap();
        let answer = {
            let state = &mut *state.0.lock().unwrap();
            state.requests.push(request.clone());
            match state.device.answer(&request, &mut candidate) {
                Some(answer) => or_refused(answer),
                None => answer(&request, &state.events, state.requests.len() as u64),
            }
        };
        state.1.notify_all();
        let stuck = |state: &mut State| state.device.stuck;
        let answer = match request {
            Request::ShowTarget if state.0.lock().unwrap().device.stuck => {
                drop(state.1.wait_while(state.0.lock().unwrap(), stuck).unwrap());
                ok(sample::target())
            }
            Request::Apply { .. } => {
                drop(state.1.wait_while(state.0.lock().unwrap(), stuck).unwrap());
                answer
            }
            _ => answer,
        };
        if matches!(request, Request::Apply { .. }) && state.0.lock().unwrap().device.vanish {
            let _ = writer.shutdown(Shutdown::Both);
            return;
        }
        // No answer: the daemon hangs.
        let Some(answer) = answer else { continue };
        let mut line = serde_json::to_vec(&answer).unwrap();
        line.push(b'\n');
        if writer.write_all(&line).is_err() {
            return;
        }
    }
}

fn ok(value: impl serde::Serialize) -> Option<Response> {
    Some(Response::Ok(serde_json::to_value(value).unwrap()))
}

fn named<T: Clone>(
    all: &[T],
    wanted: Option<&String>,
    name: impl Fn(&T) -> &str,
    kind: &str,
) -> Result<Vec<T>, String> {
    let some: Vec<T> = all.iter().filter(|one| wanted.is_none_or(|w| w == name(one))).cloned().collect();
    match wanted {
        Some(wanted) if some.is_empty() => Err(format!("there is no {kind} {wanted}")),
        _ => Ok(some),
    }
}

fn or_refused<T: serde::Serialize>(result: Result<T, String>) -> Option<Response> {
    match result {
        Ok(value) => ok(value),
        Err(reason) => Some(Response::Error(reason)),
    }
}

fn answer(request: &Request, events: &[Event], asked: u64) -> Option<Response> {
    let balancer = sample::balancer(2);
    match request {
        Request::ShowVersion => ok(sample::version()),
        Request::ShowPorts => ok(sample::ports(2)),
        Request::ShowPortStatistics { port } => or_refused(
            named(&sample::ports(2), Some(port), |p| &p.name, "port").map(|ports| ports[0].clone()),
        ),
        Request::ShowLink => ok(sample::links()),
        Request::ShowBalancer => ok(balancer),
        Request::ShowUnit { unit } => {
            or_refused(named(&balancer.units, unit.as_ref(), |u| &u.name, "ecofilter-unit"))
        }
        Request::ShowFlow { flow } => or_refused(named(&sample::flows(), flow.as_ref(), |f| &f.name, "flow")),
        Request::ShowConfigHash => ok(sample::config_hash()),
        Request::ShowLiveness { profile } => {
            let mut pairs = sample::liveness(2);
            // Keep-alives go on.
            for direction in pairs.iter_mut().flat_map(|pair| [&mut pair.lan_to_wan, &mut pair.wan_to_lan]) {
                direction.sent += asked;
                direction.good += asked;
            }
            or_refused(named(&pairs, profile.as_ref(), |p| &p.profile, "liveness profile"))
        }
        Request::ShowDrops => ok(sample::drops()),
        Request::ShowEvents { after, last, filter } => {
            let mut all = sample::events();
            all.extend_from_slice(events);
            all.retain(|event| event.id > *after && filter.admits(event));
            ok(&all[last.map_or(0, |last| all.len().saturating_sub(last))..])
        }
        Request::FollowEvents { after, filter } => {
            let mut all = sample::events();
            all.extend_from_slice(events);
            all.retain(|event| event.id > *after);
            let newest = all.last().map_or(*after, |event| event.id);
            // Ids without an event are events that were forgotten.
            let missed = all.first().map_or(0, |event| event.id - after - 1);
            all.retain(|event| filter.admits(event));
            ok(NewEvents { events: all, newest, missed })
        }
        Request::ShowConfiguration => ok(sample::configuration()),
        // Asked when a test wants to see what happens while there is no answer.
        Request::ShowTarget => None,
        Request::Lookup(_) => ok(sample::lookup()),
        Request::SetUnitMode { unit, .. } => {
            or_refused(named(&balancer.units, Some(unit), |u| &u.name, "ecofilter-unit").map(|_| json!(null)))
        }
        Request::ClearHold { pair, .. } if pair == "f1-1" => ok(json!(null)),
        Request::ClearHold { unit, pair } => {
            Some(Response::Error(format!("pair {pair} of unit {unit} is not held")))
        }
        Request::LoadReplace { text, .. } => {
            or_refused(match serde_json::from_str::<serde_json::Value>(text) {
                Ok(_) => Ok(sample::applied()),
                Err(error) => Err(format!("not JSON: {error}\nsecond reason")),
            })
        }
        other => panic!("{other:?} is about the configuration"),
    }
}

/// What a process must have done before the deadline.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::sleep(Duration::from_millis(5));
    }
}
