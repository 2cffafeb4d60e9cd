//! Asking sluiced: a connection that comes back after a restart, and Ctrl-C that ends the waiting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use api::{Client, ClientError, Request};
use serde_json::Value;
use signal_hook::consts::SIGINT;

/// How often a wait looks whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);

/// How long a command waits for its answer.
fn patience(request: &Request) -> Duration {
    match request {
        // A full device takes long to fill.
        Request::LoadReplace { .. } => Duration::from_secs(120),
        _ => Duration::from_secs(5),
    }
}

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
            AskError::Interrupted => false,
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

/// A connection to sluiced that is made when it is needed.
#[derive(Debug)]
pub struct Session {
    socket: PathBuf,
    client: Option<Client>,
    interrupt: Interrupt,
}

impl Session {
    /// To the daemon on this socket; connects with the first question.
    pub fn new(socket: &Path, interrupt: Interrupt) -> Self {
        Session { socket: socket.into(), client: None, interrupt }
    }

    /// Asks, and waits for 5 s, for a configuration to be loaded 120 s. A connection that broke is made
    /// anew, once.
    ///
    /// # Errors
    /// [`AskError`]; the next question starts afresh.
    pub fn ask(&mut self, request: &Request) -> Result<Value, AskError> {
        self.ask_within(request, patience(request))
    }

    /// [`Session::ask`] that gives up after a while of the caller's choice.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub fn ask_within(&mut self, request: &Request, patience: Duration) -> Result<Value, AskError> {
        let deadline = Instant::now() + patience;
        let answer = match self.ask_once(request, deadline) {
            Err(Unanswered::Client(error)) if broken(&error) => self.ask_once(request, deadline),
            answer => answer,
        };
        answer.map_err(|error| match error {
            Unanswered::Client(error) if !timed_out(&error) => error.into(),
            Unanswered::Interrupted => AskError::Interrupted,
            Unanswered::Client(_) | Unanswered::Late => {
                AskError::Late { socket: self.socket.clone(), patience }
            }
        })
    }

    /// The blocking client works in a thread of its own: a wait can be given up, and the client with it.
    fn ask_once(&mut self, request: &Request, deadline: Instant) -> Result<Value, Unanswered> {
        let (client, socket, request) = (self.client.take(), self.socket.clone(), request.clone());
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let answer = match client.map_or_else(|| Client::connect(&socket), Ok) {
                Ok(mut client) => {
                    // A wait that was given up must neither hold the connection nor ask after all.
                    let left = deadline.saturating_duration_since(Instant::now());
                    let answer = match left {
                        Duration::ZERO => Err(ClientError::Io(io::ErrorKind::TimedOut.into())),
                        left => client.set_patience(left).and_then(|()| client.ask(&request)),
                    };
                    (Some(client), answer)
                }
                Err(error) => (None, Err(error)),
            };
            // Nobody listens any more when the wait was given up.
            let _ = send.send(answer);
        });
        loop {
            match receive.recv_timeout(LOOK) {
                Ok((client, answer)) => {
                    let reusable = matches!(answer, Ok(_) | Err(ClientError::Refused(_)));
                    self.client = client.filter(|_| reusable);
                    return answer.map_err(Unanswered::Client);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Unanswered::Client(ClientError::Io(io::ErrorKind::Other.into())));
                }
                Err(RecvTimeoutError::Timeout) if self.interrupt.pressed() => {
                    return Err(Unanswered::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(Unanswered::Late);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
