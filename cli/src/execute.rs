//! Carrying out a command.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use api::{ClientError, Request};
use serde_json::Value;

use crate::filter::Filters;
use crate::grammar::{Command, Fault, Filter, Run, parse};
use crate::help::help;
use crate::render::{self, Style, brief};
use crate::session::{AskError, Interrupt, Session};
use crate::terminal::{Terminal, show};

/// Longest file that is loaded, in bytes: sluiced takes no longer request.
const LONGEST: u64 = 64 << 20;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The line is not a command.
    #[error(transparent)]
    Usage(#[from] Fault),
    /// sluiced refused, or cannot be reached.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// An answer of another version's schema.
    #[error("sluiced gave an answer that this client does not understand: {0}")]
    Answer(#[from] serde_json::Error),
    /// A file of this machine.
    #[error("cannot read {}: {source}", brief(.file))]
    File {
        /// As it was typed.
        file: String,
        /// What the system says, or why it is not read.
        source: io::Error,
    },
    /// sluiced refused a file.
    #[error("{}: refused, nothing was changed\n{reason}", brief(.file))]
    Refused {
        /// As it was typed.
        file: String,
        /// A reason a line.
        reason: String,
    },
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// Exit status of a process that ends because of it: 2 for a line that is no command, 130 after
    /// Ctrl-C, 0 where the reader of the output has had enough, else 1.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Ask(AskError::Interrupted) => 130,
            _ if self.is_quiet() => 0,
            _ => 1,
        }
    }

    /// There is nobody to tell, or nothing to tell.
    pub fn is_quiet(&self) -> bool {
        match self {
            Failure::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Failure::Ask(AskError::Interrupted) => true,
            _ => false,
        }
    }
}

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next one.
    Go,
    /// The end of the session.
    Leave,
}

/// Where commands are carried out.
#[derive(Debug)]
pub struct Executor {
    /// The daemon.
    pub session: Session,
    /// Ctrl-C.
    pub interrupt: Interrupt,
    /// Where the output goes.
    pub terminal: Terminal,
}

impl Executor {
    /// Commands for the daemon on this socket, output to standard output.
    pub fn new(socket: &Path, interrupt: Interrupt, terminal: Terminal) -> Self {
        Executor { session: Session::new(socket, interrupt.clone()), interrupt, terminal }
    }

    /// Reads a line and does what it says; an empty line, or one that begins with `#`, is nothing. Ctrl-C ends the command, and is
    /// held from then on.
    ///
    /// # Errors
    /// [`Failure`]. Nothing was changed, except where a connection broke after the request was sent.
    pub fn line(&mut self, line: &str) -> Result<Next, Failure> {
        if line.trim_start().starts_with('#') {
            return Ok(Next::Go);
        }
        match parse(line)? {
            None => Ok(Next::Go),
            Some(command) => {
                self.interrupt.hold();
                self.command(&command)
            }
        }
    }

    fn command(&mut self, command: &Command) -> Result<Next, Failure> {
        let plain = command.filters.iter().any(|filter| !matches!(filter, Filter::NoMore));
        let style = if plain { Style::default() } else { self.terminal.style() };
        match command.run {
            Run::Exit => return Ok(Next::Leave),
            Run::Help => self.show(command, &help(&command.topic))?,
            Run::MonitorEvents => crate::monitor::events(self, &command.filters)?,
            Run::MonitorBalancer => crate::monitor::balancer(self)?,
            Run::Load => {
                let file = command.args.text("file").unwrap_or_default();
                let answer = self.load(&file)?;
                self.answer(command, answer, |answer| {
                    Ok(render::applied(&serde_json::from_value(answer)?, &file, style))
                })?;
            }
            Run::Ask { request, render } => {
                let answer = self.session.ask(&request(&command.args))?;
                self.answer(command, answer, |answer| render(answer, &command.args, style))?;
            }
        }
        Ok(Next::Go)
    }

    /// Asks sluiced to run what is in a file here: it may not see the same files.
    fn load(&mut self, file: &str) -> Result<Value, Failure> {
        let text = read(Path::new(file)).map_err(|source| Failure::File { file: file.into(), source })?;
        let origin =
            std::path::absolute(file).map_or_else(|_| file.into(), |path| path.display().to_string());
        self.session.ask(&Request::LoadReplace { text, origin }).map_err(|error| match error {
            AskError::Client(ClientError::Refused(reason)) => Failure::Refused { file: file.into(), reason },
            error => error.into(),
        })
    }

    /// Shows an answer: as JSON where that was asked for, else as text.
    fn answer(
        &self,
        command: &Command,
        answer: Value,
        text: impl FnOnce(Value) -> serde_json::Result<String>,
    ) -> Result<(), Failure> {
        let json = command.filters.iter().any(|filter| matches!(filter, Filter::Json));
        // A call is answered by nothing; a script gets something to look for.
        let text = match answer {
            Value::Null if json => render::json(&serde_json::json!({"done": true})),
            answer if json => render::json(&answer),
            answer => text(answer)?,
        };
        self.show(command, &text)
    }

    fn show(&self, command: &Command, text: &str) -> Result<(), Failure> {
        let lines = Filters::new(&command.filters).text(text);
        let no_more = command.filters.iter().any(|filter| matches!(filter, Filter::NoMore));
        Ok(show(&lines, self.terminal.pages() && !no_more, &self.interrupt)?)
    }
}

/// The text of a regular file: a device or a pipe may never end, or never begin.
fn read(file: &Path) -> io::Result<String> {
    let refused = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let too_long = || refused(format!("it is longer than {} MiB", LONGEST >> 20));
    let metadata = std::fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file".into()));
    }
    if metadata.len() > LONGEST {
        return Err(too_long());
    }
    let mut text = String::new();
    // It may grow, and some of /proc are longer than they say.
    File::open(file)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST { Err(too_long()) } else { Ok(text) }
}
