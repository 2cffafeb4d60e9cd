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
    #[error("no answer from sluiced in time")]
    Late,
}

impl AskError {
    /// Nobody answers now; somebody may later.
    pub fn is_away(&self) -> bool {
        matches!(self, AskError::Client(error) if matches!(error, ClientError::Connect { .. }) || broken(error))
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

    /// Asks. A connection that broke is made anew, once.
    ///
    /// # Errors
    /// [`AskError`]; the next question starts afresh.
    pub fn ask(&mut self, request: &Request) -> Result<Value, AskError> {
        self.ask_before(request, None)
    }

    /// [`Session::ask`] that gives up after a while.
    ///
    /// # Errors
    /// [`AskError::Late`], or as [`Session::ask`].
    pub fn ask_within(&mut self, request: &Request, patience: Duration) -> Result<Value, AskError> {
        self.ask_before(request, Some(Instant::now() + patience))
    }

    fn ask_before(&mut self, request: &Request, deadline: Option<Instant>) -> Result<Value, AskError> {
        match self.ask_once(request, deadline) {
            Err(AskError::Client(error)) if broken(&error) => self.ask_once(request, deadline),
            answer => answer,
        }
    }

    /// The blocking client works in a thread of its own: a wait can be given up, and the client with it.
    fn ask_once(&mut self, request: &Request, deadline: Option<Instant>) -> Result<Value, AskError> {
        let (client, socket, request) = (self.client.take(), self.socket.clone(), request.clone());
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let answer = match client.map_or_else(|| Client::connect(&socket), Ok) {
                Ok(mut client) => {
                    let answer = client.ask(&request);
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
                    return Ok(answer?);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ClientError::Io(io::ErrorKind::Other.into()).into());
                }
                Err(RecvTimeoutError::Timeout) if self.interrupt.pressed() => {
                    return Err(AskError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout)
                    if deadline.is_some_and(|deadline| Instant::now() > deadline) =>
                {
                    return Err(AskError::Late);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
