//! Real traffic between the host namespaces: TCP sessions whose every byte is verified at both ends, and UDP
//! sessions whose every datagram is accounted for. One agent per host namespace is client and server at once.

pub mod pattern;
pub mod tcp;
pub mod udp;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::agent;
use crate::error::{Doing, Result};
use crate::frame::SessionKey;

/// Both TCP and UDP servers listen here.
pub const PORT: u16 = 7000;

/// What the agent is told at its start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Setup {
    /// Addresses at which UDP is echoed; TCP is served on all.
    pub addresses: Vec<IpAddr>,
}

/// Who talks to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// Number of the session, unique in a run.
    pub id: u64,
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
}

impl Ends {
    /// The session's key at an appliance.
    pub fn key(&self, proto: u8) -> SessionKey {
        let end = |address: SocketAddr| (address.ip(), address.port());
        SessionKey::new(end(self.client), end(self.server), proto)
    }
}

/// Requests to a running agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Starts TCP sessions under a name.
    Tcp {
        /// For [`Request::Finish`].
        name: String,
        /// The sessions.
        sessions: Vec<Ends>,
        /// What each of them does.
        work: tcp::Work,
    },
    /// Starts UDP sessions under a name.
    Udp {
        /// For [`Request::Finish`].
        name: String,
        /// The sessions.
        sessions: Vec<Ends>,
        /// How they send.
        pace: udp::Pace,
    },
    /// Waits for the end of the sessions of that name and answers with their reports.
    Finish {
        /// As given at the start.
        name: String,
        /// End them before they are through: TCP after the current round, UDP at once.
        early: bool,
    },
    /// What the servers have seen, answered by [`Served`].
    Served,
}

/// Reports of the sessions under one name.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Finished {
    /// TCP sessions.
    pub tcp: Vec<tcp::SessionReport>,
    /// UDP sessions.
    pub udp: Vec<udp::SessionReport>,
}

/// What the servers have seen since the agent started.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Served {
    /// TCP.
    pub tcp: tcp::Served,
    /// UDP, by session.
    pub udp: HashMap<u64, udp::Served>,
}

enum Running {
    Tcp(Vec<JoinHandle<tcp::SessionReport>>),
    Udp(Vec<JoinHandle<udp::SessionReport>>),
}

/// Runs the agent until its input ends.
///
/// # Errors
/// When servers can't be started.
pub fn run() -> Result<()> {
    let setup: Setup = agent::read_setup("traffic")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .doing(|| "starting the traffic runtime".into())?;
    let tcp_served = Arc::new(Mutex::new(tcp::Served::default()));
    let udp_served = Arc::new(Mutex::new(HashMap::new()));
    let listening = runtime.block_on(async {
        tcp::listen(Arc::clone(&tcp_served)).await?;
        udp::listen(&setup.addresses, Arc::clone(&udp_served)).await
    });
    if let Err(error) = listening {
        agent::respond(Err::<(), _>(&error));
        return Err(error);
    }
    agent::respond(Ok::<_, String>(()));

    let mut batches: HashMap<String, (watch::Sender<bool>, Running)> = HashMap::new();
    agent::serve(|request: Request| -> std::result::Result<serde_json::Value, String> {
        let _guard = runtime.enter();
        let (stop, stopped) = watch::channel(false);
        match request {
            Request::Tcp { name, sessions, work } => {
                let started = sessions
                    .into_iter()
                    .map(|ends| runtime.spawn(tcp::session(ends, work.clone(), stopped.clone())));
                batches.insert(name, (stop, Running::Tcp(started.collect())));
                Ok(serde_json::Value::Null)
            }
            Request::Udp { name, sessions, pace } => {
                let total = sessions.len() as u64;
                let started = sessions.into_iter().enumerate().map(|(at, ends)| {
                    runtime.spawn(udp::session(ends, pace.clone(), (at as u64, total), stopped.clone()))
                });
                batches.insert(name, (stop, Running::Udp(started.collect())));
                Ok(serde_json::Value::Null)
            }
            Request::Finish { name, early } => {
                // A side that opened none has nothing to report.
                let Some((stop, running)) = batches.remove(&name) else {
                    return serde_json::to_value(Finished::default()).map_err(|error| error.to_string());
                };
                // All receivers gone means all sessions have ended.
                let _ = stop.send(early);
                let finished = runtime.block_on(async {
                    let mut finished = Finished::default();
                    match running {
                        Running::Tcp(sessions) => {
                            for session in sessions {
                                finished.tcp.push(session.await.map_err(|error| error.to_string())?);
                            }
                        }
                        Running::Udp(sessions) => {
                            for session in sessions {
                                finished.udp.push(session.await.map_err(|error| error.to_string())?);
                            }
                        }
                    }
                    Ok::<_, String>(finished)
                })?;
                serde_json::to_value(finished).map_err(|error| error.to_string())
            }
            Request::Served => {
                let served = Served { tcp: tcp::snapshot(&tcp_served), udp: udp::snapshot(&udp_served) };
                serde_json::to_value(served).map_err(|error| error.to_string())
            }
        }
    });
    Ok(())
}
