//! Carrying out a command.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use api::{ClientError, Request};
use serde_json::Value;

use crate::commands::{CONFIGURE, ROOT};
use crate::desk::Desk;
use crate::filter::Filters;
use crate::grammar::{Command, Fault, Filter, Names, Run, parse};
use crate::help::help;
use crate::render::{self, Style, brief};
use crate::session::{AskError, Interrupt};
use crate::terminal::{Terminal, show};
use crate::words;

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
    /// A file of this machine.
    #[error("cannot write {}: {source}", brief(.file))]
    Write {
        /// As it was typed.
        file: String,
        /// What the system says, or why it is not written.
        source: io::Error,
    },
    /// Changes would be forgotten.
    #[error(
        "the candidate has changes that were not applied: apply or discard them; the same again forgets them"
    )]
    Unapplied,
    /// Changes would be forgotten, and there is nobody to ask.
    #[error("the candidate has changes that were not applied: apply or discard them before the end")]
    Forgotten,
    /// There is no such pair.
    #[error("there is no pair {pair} with keep-alives in ecofilter-unit {unit}")]
    NoPair {
        /// The unit.
        unit: String,
        /// The pair.
        pair: String,
    },
    /// A ping that was never answered.
    #[error("{0}")]
    Silent(String),
    /// Nobody waits for the apply any more.
    #[error("interrupted; sluiced may still apply it: \"show rollbacks\" tells")]
    Applying,
    /// sluiced refused a file.
    #[error("{}: refused, nothing was changed\n{reason}", brief(.file))]
    Refused {
        /// As it was typed.
        file: String,
        /// A reason a line.
        reason: String,
    },
    /// Nothing more can be read.
    #[error("cannot read standard input: {0}")]
    Input(#[source] io::Error),
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
            Failure::Ask(AskError::Interrupted) | Failure::Applying => 130,
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
    /// A text, for [`Executor::pasted`].
    Paste,
}

/// Where commands are carried out.
#[derive(Debug)]
pub struct Executor {
    /// The session, and where one is in the configuration.
    pub desk: Rc<Desk>,
    /// Ctrl-C.
    pub interrupt: Interrupt,
    /// Where the output goes.
    pub terminal: Terminal,
    /// It was said that leaving forgets changes.
    pub(crate) warned: bool,
}

impl Executor {
    /// Commands for the daemon on this socket, output to standard output.
    pub fn new(socket: &Path, interrupt: Interrupt, terminal: Terminal) -> Self {
        let desk = Rc::new(Desk::new(socket, interrupt.clone()));
        Executor { desk, interrupt, terminal, warned: false }
    }

    /// Asks sluiced.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn ask(&self, request: &Request) -> Result<Value, AskError> {
        self.desk.session().ask(request)
    }

    /// Reads a line of the mode. `None` for an empty one, or one that begins with `#`.
    ///
    /// # Errors
    /// The line is not a command.
    pub fn read(&self, line: &str) -> Result<Option<Command>, Fault> {
        if line.trim_start().starts_with('#') { Ok(None) } else { parse(self.desk.root(), line) }
    }

    /// A failure, with a word on the other mode where the line would be right there.
    pub fn with_hint(&self, failure: Failure, line: &str) -> Failure {
        let Failure::Usage(mut fault) = failure else { return failure };
        let word = line.len() - line.trim_start().len();
        let is_command = |root| matches!(parse(root, line), Ok(Some(_)));
        if self.desk.configuring() && is_command(&ROOT) && is_command(self.desk.root()) {
            fault.message.push_str("; commands of operational mode go behind \"run\"");
        } else if self.desk.configuring() && is_command(&ROOT) {
            fault.message.push_str("; in configuration mode it goes behind \"run\"");
        } else if !self.desk.configuring() && fault.at.start == word && is_command(&CONFIGURE) {
            fault.message.push_str("; it belongs to configuration mode: \"configure\" goes there");
        }
        Failure::Usage(fault)
    }

    /// Carries out a command. Ctrl-C ends it, and is held from then on.
    ///
    /// # Errors
    /// [`Failure`]. Nothing was changed, except where a connection broke after the request was sent.
    pub fn run(&mut self, command: &Command) -> Result<Next, Failure> {
        let done = self.noticing(|executor| executor.command(command));
        self.warned &= matches!(done, Err(Failure::Unapplied));
        done
    }

    /// Changes the candidate by lines from the top.
    ///
    /// # Errors
    /// [`Failure`]; nothing was changed.
    pub fn change(&mut self, lines: Vec<String>) -> Result<(), Failure> {
        self.noticing(|executor| Ok(executor.ask(&Request::Edit { lines }).map(|_| ())?))
    }

    /// A candidate that is lost is noticed before anything is done to another one, and told once.
    fn noticing<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        self.interrupt.hold();
        let here = self.desk.session().look();
        let done = here.map_err(Failure::from).and_then(|()| work(self));
        if matches!(done, Err(Failure::Ask(AskError::CandidateLost))) {
            self.desk.session().forget_lost();
        }
        done
    }

    pub(crate) fn style(&self, command: &Command) -> Style {
        let plain =
            command.filters.iter().any(|filter| filter.is_textual() || matches!(filter, Filter::Json));
        if plain { Style::default() } else { self.terminal.style() }
    }

    fn command(&mut self, command: &Command) -> Result<Next, Failure> {
        let style = self.style(command);
        match command.run {
            Run::Exit => return Ok(Next::Leave),
            Run::Help => self.show(command, &self.help(command)?)?,
            Run::MonitorEvents => crate::monitor::events(self, command)?,
            Run::MonitorBalancer => crate::monitor::balancer(self, &command.filters)?,
            Run::Ping => crate::ping::daemon(self, command)?,
            Run::PingPair => crate::ping::pair(self, command)?,
            Run::LoadReplace => {
                let file = command.args.text("file").unwrap_or_default();
                let answer = self.load_replace(&file)?;
                self.answer(command, answer, |answer| {
                    Ok(render::applied(&serde_json::from_value(answer)?, &file, style))
                })?;
            }
            Run::ShowTree(source) => self.show_tree(source(&command.args), command)?,
            Run::Configure(action) => return self.configure(*action, command, style),
            Run::Ask { request, render } => {
                let answer = self.ask(&request(&command.args))?;
                self.answer(command, answer, |answer| render(answer, &command.args, style))?;
            }
        }
        Ok(Next::Go)
    }

    fn help(&self, command: &Command) -> Result<String, Failure> {
        let Some(tree) = &command.tree else { return Ok(help(self.desk.root(), &command.topic)) };
        let schema = self.desk.session().schema()?;
        Ok(words::explained(&schema, &self.desk.level(), tree)?)
    }

    /// Asks sluiced to run what is in a file here: it may not see the same files.
    fn load_replace(&self, file: &str) -> Result<Value, Failure> {
        let text =
            read_file(Path::new(file)).map_err(|source| Failure::File { file: file.into(), source })?;
        let origin =
            std::path::absolute(file).map_or_else(|_| file.into(), |path| path.display().to_string());
        self.ask(&Request::LoadReplace { text, origin }).map_err(|error| match error {
            AskError::Client(ClientError::Refused(reason)) => Failure::Refused { file: file.into(), reason },
            error => error.into(),
        })
    }

    /// Shows an answer: as JSON where that was asked for, else as text.
    pub(crate) fn answer(
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

    pub(crate) fn show(&self, command: &Command, text: &str) -> Result<(), Failure> {
        let lines = Filters::new(&command.filters).text(text);
        let no_more = command.filters.iter().any(|filter| matches!(filter, Filter::NoMore));
        Ok(show(&lines, self.terminal.pages() && !no_more, &self.interrupt)?)
    }
}

/// The text of a regular file: a device or a pipe may never end, or never begin.
pub(crate) fn read_file(file: &Path) -> io::Result<String> {
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
