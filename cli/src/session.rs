//! Asking sluiced: a connection that comes back after a restart, and Ctrl-C that ends the waiting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use api::{Client, ClientError, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;
use signal_hook::consts::SIGINT;
use tree::Schema;

/// How often a wait looks whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);

/// How long a command waits for its answer.
fn patience(request: &Request) -> Duration {
    match request {
        // A full device takes long to check and to fill.
        Request::LoadReplace { .. }
        | Request::Load { .. }
        | Request::Edit { .. }
        | Request::Rollback { .. }
        | Request::Compare { .. }
        | Request::Check
        | Request::Apply { .. }
        | Request::Save
        | Request::Discard
        | Request::ShowTree { .. } => Duration::from_secs(120),
        _ => Duration::from_secs(5),
    }
}

/// How long an answer that nobody waits for any more is still taken, so that the candidate stays.
const LATEST: Duration = Duration::from_secs(600);

/// Whether Ctrl-C was pressed. While nobody is interested it ends the process, as it does by default.
#[derive(Clone, Debug)]
pub struct Interrupt {
    pressed: Arc<AtomicBool>,
    by_default: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes over SIGINT.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Self> {
        let interrupt = Interrupt {
            pressed: Arc::new(AtomicBool::new(false)),
            by_default: Arc::new(AtomicBool::new(true)),
        };
        signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&interrupt.by_default))?;
        signal_hook::flag::register(SIGINT, Arc::clone(&interrupt.pressed))?;
        Ok(interrupt)
    }

    /// From now until [`Interrupt::release`] it is only noted.
    pub fn hold(&self) {
        self.by_default.store(false, Ordering::SeqCst);
        self.pressed.store(false, Ordering::SeqCst);
    }

    /// From now on it ends the process.
    pub fn release(&self) {
        self.by_default.store(true, Ordering::SeqCst);
    }

    /// It was pressed since [`Interrupt::hold`].
    pub fn pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Refused, unreachable, or not understood.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The candidate went with its connection.
    #[error(
        "sluiced closed the connection, as it does when it restarts: the candidate with its changes is lost, \
         and this command was not carried out; the next one begins a new candidate from what runs"
    )]
    CandidateLost,
    /// The connection broke while the candidate was being put in force.
    #[error(
        "sluiced closed the connection before it answered: \"show rollbacks\" tells whether the candidate is \
         in force; the candidate itself is gone"
    )]
    ApplyUnknown,
    /// The caller's time is up.
    #[error(
        "no answer from sluiced on {} within {} s: it hangs, or all its connections are taken; \
         what was asked may still be done",
        .socket.display(),
        .patience.as_secs_f32()
    )]
    Late {
        /// The socket.
        socket: PathBuf,
        /// The time.
        patience: Duration,
    },
}

impl AskError {
    /// Nobody answers now; somebody may later.
    pub fn is_away(&self) -> bool {
        match self {
            AskError::Client(ClientError::Connect { .. }) | AskError::Late { .. } => true,
            AskError::Client(error) => broken(error),
            AskError::Interrupted | AskError::CandidateLost | AskError::ApplyUnknown => false,
        }
    }
}

/// The other end went away, as it does when sluiced restarts.
fn broken(error: &ClientError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    match error {
        ClientError::Io(error) => matches!(
            error.kind(),
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
        ),
        // The answer was cut in the middle.
        ClientError::Answer(error) => error.is_eof(),
        ClientError::Connect { .. } | ClientError::Refused(_) => false,
    }
}

/// The client's own wait for the answer ended.
fn timed_out(error: &ClientError) -> bool {
    use io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error, ClientError::Io(error) if matches!(error.kind(), TimedOut | WouldBlock))
}

/// [`AskError`] of one try.
enum Unanswered {
    Client(ClientError),
    Interrupted,
    Late,
}

/// An answer, and the client where it can be asked again.
type Answered = (Option<Client>, Result<Value, ClientError>);

/// A connection to sluiced that is made when it is needed. The candidate lives and dies with it.
#[derive(Debug)]
pub struct Session {
    socket: PathBuf,
    client: Option<Client>,
    interrupt: Interrupt,
    /// The candidate is other than what ran when it was made.
    changed: bool,
    /// A candidate with changes went with its connection, and nobody was told yet.
    lost: bool,
    /// Where an answer comes that nobody waits for any more, on the connection that has the candidate.
    late: Option<(Request, Receiver<Answered>)>,
    /// Of the sluiced at the other end.
    schema: Option<Arc<Schema>>,
}

impl Session {
    /// To the daemon on this socket; connects with the first question.
    pub fn new(socket: &Path, interrupt: Interrupt) -> Self {
        Session {
            socket: socket.into(),
            client: None,
            interrupt,
            changed: false,
            lost: false,
            late: None,
            schema: None,
        }
    }

    /// Where sluiced listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The candidate has changes that were not applied, as far as this session knows.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// There is a connection.
    pub fn is_open(&self) -> bool {
        self.client.is_some() || self.late.is_some()
    }

    /// Somebody was told that the candidate is lost: questions are asked again.
    pub fn forget_lost(&mut self) {
        self.lost = false;
    }

    /// Whether the connection was closed meanwhile, and a candidate with changes with it. Nothing is asked
    /// any more until somebody was told so.
    ///
    /// # Errors
    /// [`AskError::CandidateLost`].
    pub fn look(&mut self) -> Result<(), AskError> {
        if self.client.as_mut().is_some_and(Client::is_closed) {
            self.client = None;
            self.end();
        }
        if self.lost { Err(AskError::CandidateLost) } else { Ok(()) }
    }

    /// The connection has ended, and all that was with it.
    fn end(&mut self) {
        self.schema = None;
        self.lost |= std::mem::take(&mut self.changed);
    }

    /// [`Session::schema`] where it was asked for already.
    pub fn known_schema(&self) -> Option<Arc<Schema>> {
        self.schema.clone()
    }

    /// Everything that can be configured; asked for once a connection.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub fn schema(&mut self) -> Result<Arc<Schema>, AskError> {
        self.look()?;
        if let Some(schema) = &self.schema {
            return Ok(Arc::clone(schema));
        }
        let schema = serde_json::from_value(self.ask(&Request::Schema)?).map_err(ClientError::Answer)?;
        Ok(Arc::clone(self.schema.insert(Arc::new(schema))))
    }

    /// Asks, and waits for 5 s, for what takes long 120 s. A connection that broke is made anew, once, unless
    /// a candidate with changes went with it.
    ///
    /// # Errors
    /// [`AskError`]; the next question starts afresh.
    pub fn ask(&mut self, request: &Request) -> Result<Value, AskError> {
        self.ask_within(request, patience(request))
    }

    /// [`Session::ask`] with the answer's type.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub fn ask_as<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, AskError> {
        Ok(serde_json::from_value(self.ask(request)?).map_err(ClientError::Answer)?)
    }

    /// [`Session::ask`] that gives up after a while of the caller's choice.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub fn ask_within(&mut self, request: &Request, patience: Duration) -> Result<Value, AskError> {
        let deadline = Instant::now() + patience;
        if let Some((late, receive)) = self.late.take() {
            // What it was is of no interest any more, but it is not to be taken for the answer to come.
            match self.wait(&late, receive, deadline) {
                Ok(_) | Err(Unanswered::Client(ClientError::Refused(_))) => {}
                Err(error) => return self.refused(&late, error, patience),
            }
        }
        self.look()?;
        let answer = match self.ask_once(request, deadline) {
            Err(Unanswered::Client(error)) if broken(&error) && self.may_repeat(request) => {
                self.schema = None;
                self.ask_once(request, deadline)
            }
            answer => answer,
        };
        answer.or_else(|error| self.refused(request, error, patience))
    }

    /// On another connection it would mean the same: an apply might confirm what it should not.
    fn may_repeat(&self, request: &Request) -> bool {
        !self.changed && !matches!(request, Request::Apply { .. })
    }

    /// What the failure means to the caller.
    fn refused(
        &mut self,
        request: &Request,
        error: Unanswered,
        patience: Duration,
    ) -> Result<Value, AskError> {
        let late = || AskError::Late { socket: self.socket.clone(), patience };
        let gone = self.client.is_none() && self.late.is_none();
        match error {
            Unanswered::Interrupted => Err(AskError::Interrupted),
            Unanswered::Client(error) if broken(&error) && matches!(request, Request::Apply { .. }) => {
                self.changed = false;
                self.end();
                Err(AskError::ApplyUnknown)
            }
            Unanswered::Client(_) if gone && self.changed => {
                self.end();
                Err(AskError::CandidateLost)
            }
            Unanswered::Client(error) if timed_out(&error) => Err(late()),
            Unanswered::Client(error) => Err(error.into()),
            Unanswered::Late => Err(late()),
        }
    }

    /// The blocking client works in a thread of its own: a wait can be given up, and the client with it.
    fn ask_once(&mut self, request: &Request, deadline: Instant) -> Result<Value, Unanswered> {
        let (client, socket, sent) = (self.client.take(), self.socket.clone(), request.clone());
        // An answer that comes late is still taken where the candidate would be lost else.
        let until = if self.changed { Instant::now() + LATEST } else { deadline };
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let answer = match client.map_or_else(|| Client::connect(&socket), Ok) {
                Ok(mut client) => {
                    // A wait that was given up must neither hold the connection nor ask after all.
                    let left = until.saturating_duration_since(Instant::now());
                    let answer = match left {
                        Duration::ZERO => Err(ClientError::Io(io::ErrorKind::TimedOut.into())),
                        left => client.set_patience(left).and_then(|()| client.ask(&sent)),
                    };
                    (Some(client), answer)
                }
                Err(error) => (None, Err(error)),
            };
            // Nobody listens any more when the wait was given up.
            let _ = send.send(answer);
        });
        self.wait(request, receive, deadline)
    }

    fn wait(
        &mut self,
        request: &Request,
        receive: Receiver<Answered>,
        deadline: Instant,
    ) -> Result<Value, Unanswered> {
        let given_up = loop {
            match receive.recv_timeout(LOOK) {
                Ok((client, answer)) => {
                    let reusable = matches!(answer, Ok(_) | Err(ClientError::Refused(_)));
                    self.client = client.filter(|_| reusable);
                    if let Ok(answer) = &answer {
                        self.note(request, answer);
                    }
                    return answer.map_err(Unanswered::Client);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Unanswered::Client(ClientError::Io(io::ErrorKind::Other.into())));
                }
                Err(RecvTimeoutError::Timeout) if self.interrupt.pressed() => break Unanswered::Interrupted,
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => break Unanswered::Late,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        if self.changed {
            self.late = Some((request.clone(), receive));
        }
        Err(given_up)
    }

    /// What an answer says about the candidate.
    fn note(&mut self, request: &Request, answer: &Value) {
        match request {
            Request::Edit { .. } | Request::Load { .. } | Request::Rollback { .. } => {
                self.changed |= answer["changes"].as_u64().is_none_or(|changes| changes > 0);
            }
            Request::Discard | Request::Apply { .. } => self.changed = false,
            _ => {}
        }
    }
}
