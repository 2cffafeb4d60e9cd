use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::inbox::{Feed, inbox};
use super::{Error, Inbox, Options, Session, Standing, Target};
use crate::ElectionId;

/// When to try again, and how to notice that a server is dead.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Wait after the first failure; doubled after each further one.
    pub first: Duration,
    /// Longest wait.
    pub most: Duration,
    /// Time between two probes of the server. One that does not answer a probe within the call deadline is
    /// given up.
    pub probe: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            most: Duration::from_secs(5),
            probe: Duration::from_secs(5),
        }
    }
}

impl Retry {
    /// Wait after `failures` failures in a row, at least 1.
    fn wait(&self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1)));
        doubled.min(self.most)
    }
}

/// How the connection to a device stands.
#[derive(Clone, Debug)]
pub enum State {
    /// A session is being opened.
    Connecting,
    /// This client may change the device.
    Primary(Session),
    /// This client may only read.
    Backup {
        /// The session.
        session: Session,
        /// Whether another client is primary.
        primary: bool,
        /// Highest election id the server has accepted; a claim must reach it.
        highest: Option<ElectionId>,
    },
    /// There is no session.
    Lost {
        /// Why.
        reason: String,
        /// Wait before the next try.
        retry_in: Duration,
    },
}

impl State {
    /// The session, if there is one.
    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::Primary(session) | Self::Backup { session, .. } => Some(session),
            Self::Connecting | Self::Lost { .. } => None,
        }
    }
}

/// Keeps a session with a device up: opens it, watches it, and opens another when it is lost.
#[derive(Debug)]
pub struct Supervisor {
    target: Target,
    options: Options,
    retry: Retry,
    feed: Feed,
    state: watch::Sender<State>,
    election_id: watch::Receiver<Option<ElectionId>>,
}

impl Supervisor {
    /// A supervisor to [`run`](Self::run), the handle to follow it with, and what the server sends in all
    /// its sessions.
    pub fn new(target: Target, options: Options, retry: Retry) -> (Self, Uplink, Inbox) {
        let (feed, inbox) = inbox(options.packets, options.notices);
        let (state, states) = watch::channel(State::Connecting);
        let (elect, election_id) = watch::channel(options.election_id);
        let uplink = Uplink { name: target.to_string(), states, elect };
        (Self { target, options, retry, feed, state, election_id }, uplink, inbox)
    }

    /// Runs until nobody follows any more: all handles and all receivers of the state are dropped.
    pub async fn run(mut self) {
        let state = self.state.clone();
        tokio::select! {
            () = state.closed() => {}
            () = self.keep() => {}
        }
    }

    async fn keep(&mut self) {
        let mut failures = 0;
        loop {
            self.state.send_replace(State::Connecting);
            let reason = match self.open().await {
                Ok(session) => {
                    failures = 0;
                    let reason = self.attend(&session).await;
                    // Clones out there must not hold the stream open: the next claim has the same id.
                    session.end(&reason);
                    reason
                }
                Err(error) => error.to_string(),
            };
            failures += 1;
            let retry_in = self.retry.wait(failures);
            tracing::warn!(target = %self.target, %reason, ?retry_in, "session lost");
            self.state.send_replace(State::Lost { reason, retry_in });
            sleep(retry_in).await;
        }
    }

    async fn open(&mut self) -> Result<Session, Error> {
        let mut options = self.options.clone();
        options.election_id = *self.election_id.borrow_and_update();
        let channel = self.target.connect(options.connect_deadline).await?;
        Session::feeding(channel, options, self.feed.clone()).await
    }

    /// Reports on a session until it is lost; says why it was.
    async fn attend(&mut self, session: &Session) -> String {
        let mut standing = session.watch();
        let silent = probe(session, self.retry.probe);
        tokio::pin!(silent);
        loop {
            let now = standing.borrow_and_update().clone();
            let state = match now {
                Standing::Lost { reason } => return reason,
                Standing::Primary => State::Primary(session.clone()),
                Standing::Backup { primary, highest } => {
                    State::Backup { session: session.clone(), primary, highest }
                }
            };
            tracing::info!(target = %self.target, standing = ?session.standing(), "session");
            self.state.send_replace(state);
            tokio::select! {
                changed = standing.changed() => {
                    if changed.is_err() {
                        return "the session was dropped".into();
                    }
                }
                Ok(()) = self.election_id.changed() => {
                    let election_id = *self.election_id.borrow_and_update();
                    if let Err(error) = session.claim(election_id).await {
                        return error.to_string();
                    }
                }
                reason = &mut silent => return reason,
            }
        }
    }
}

/// Asks the server something harmless from time to time; ends when it does not answer. A refusal, even
/// `UNIMPLEMENTED`, is an answer, and a broken connection shows on the stream.
async fn probe(session: &Session, every: Duration) -> String {
    loop {
        sleep(every).await;
        if let Err(error @ Error::Deadline { .. }) = session.api_version().await {
            return error.to_string();
        }
    }
}

/// Follows a [`Supervisor`] and gives its sessions. Clones follow the same one.
#[derive(Clone, Debug)]
pub struct Uplink {
    name: String,
    states: watch::Receiver<State>,
    elect: watch::Sender<Option<ElectionId>>,
}

impl Uplink {
    /// How the connection stands now.
    pub fn state(&self) -> State {
        self.states.borrow().clone()
    }

    /// Follows the state.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.states.clone()
    }

    /// The session, primary or backup, if there is one.
    pub fn session(&self) -> Option<Session> {
        self.states.borrow().session().cloned()
    }

    /// The session if this client is primary.
    pub fn primary(&self) -> Option<Session> {
        match &*self.states.borrow() {
            State::Primary(session) => Some(session.clone()),
            _ => None,
        }
    }

    /// Waits until this client is primary.
    ///
    /// # Errors
    /// It is not within `deadline`, or the supervisor does not run any more.
    pub async fn wait_primary(&self, deadline: Duration) -> Result<Session, Error> {
        let mut states = self.states.clone();
        let waiting = states.wait_for(|state| matches!(state, State::Primary(_)));
        if let Ok(Ok(state)) = timeout(deadline, waiting).await
            && let State::Primary(session) = &*state
        {
            return Ok(session.clone());
        }
        let reason = match self.state() {
            State::Lost { reason, .. } => reason,
            State::Backup { primary: true, .. } => "another client is primary".into(),
            State::Backup { .. } => "the election id is too low".into(),
            State::Connecting | State::Primary(_) => "no answer yet".into(),
        };
        Err(Error::StillNotPrimary { target: self.name.clone(), after: deadline, reason })
    }

    /// Claims the device with another election id, now and in later sessions; `None` to only stand by.
    pub fn claim(&self, election_id: Option<ElectionId>) {
        self.elect.send_replace(election_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let retry = Retry::default();
        let waits: Vec<u128> = (1..9).map(|failures| retry.wait(failures).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(retry.wait(u32::MAX), retry.most);
    }
}
