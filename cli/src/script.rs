//! Commands that nobody types: `-c`, and lines of standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use api::ClientError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdin;

use crate::execute::{Executor, Failure, Next};
use crate::grammar::{Action, Command, Fault, Run};
use crate::session::AskError;
use crate::terminal::say;

/// Columns of a line that is shown with carets below; a longer one would be wrapped.
const POINTED: usize = 120;
/// Changes that are sent at once, at most.
const BATCH: usize = 5000;
/// Ends a text for `load ... terminal` where more commands follow it, as Ctrl-D does at a terminal.
const END_OF_TEXT: &str = "\x04";

/// Where lines come from.
struct Input {
    reader: BufReader<Box<dyn Read>>,
    /// It may be long until the next one comes.
    waits: bool,
    /// Of the line read last.
    number: usize,
}

impl Input {
    fn stdin() -> io::Result<Self> {
        let stdin: Box<dyn Read> = Box::new(File::from(rustix::io::dup(stdin())?));
        Ok(Input { reader: BufReader::new(stdin), waits: true, number: 0 })
    }

    fn text(text: &str) -> Self {
        let text: Box<dyn Read> = Box::new(Cursor::new(text.as_bytes().to_vec()));
        Input { reader: BufReader::new(text), waits: false, number: 0 }
    }

    /// The next line without its end; `None` after the last.
    fn line(&mut self) -> io::Result<Option<String>> {
        self.number += 1;
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        line.truncate(line.trim_end_matches(['\n', '\r']).len());
        Ok(Some(line))
    }

    /// The next line is here, or will never come.
    fn ready(&self) -> bool {
        if !self.waits || !self.reader.buffer().is_empty() {
            return true;
        }
        let input = stdin();
        let mut fds = [PollFd::new(&input, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

/// Runs one command, or the lines of a text; says on standard error what failed. Returns the exit status.
pub fn once(executor: &mut Executor, line: &str) -> u8 {
    if line.trim().contains('\n') {
        return run(executor, Input::text(line));
    }
    let done = match executor.read(line) {
        Ok(command) => command.map_or(Ok(Next::Go), |command| executor.run(&command)),
        Err(fault) => Err(fault.into()),
    };
    match done {
        Ok(_) => 0,
        Err(failure) => {
            let failure = executor.with_hint(failure, line);
            report(&failure, line, "");
            failure.status()
        }
    }
}

/// Runs the lines of standard input up to the first that fails. Returns the exit status.
pub fn lines(executor: &mut Executor) -> u8 {
    match Input::stdin() {
        Ok(input) => run(executor, input),
        Err(error) => {
            say(&format!("cannot read standard input: {error}"));
            1
        }
    }
}

/// A line that failed.
struct Stopped {
    number: usize,
    line: String,
    failure: Failure,
}

fn run(executor: &mut Executor, mut input: Input) -> u8 {
    let done = run_lines(executor, &mut input);
    executor.interrupt.release();
    match done {
        Ok(()) => 0,
        Err(Stopped { number, line, failure }) => {
            let failure = executor.with_hint(failure, &line);
            report(&failure, &line, &format!("line {number}: "));
            failure.status()
        }
    }
}

fn run_lines(executor: &mut Executor, input: &mut Input) -> Result<(), Stopped> {
    let mut batch = Batch::default();
    loop {
        if batch.0.len() >= BATCH || !input.ready() {
            batch.send(executor)?;
        }
        executor.interrupt.release();
        let read = input.line();
        let number = input.number;
        let stopped = |line: &str, failure| Stopped { number, line: line.into(), failure };
        let Some(line) = read.map_err(|error| stopped("", Failure::Input(error)))? else { break };
        let command = match executor.read(&line) {
            Ok(Some(command)) => command,
            Ok(None) => continue,
            Err(fault) => {
                batch.send(executor)?;
                return Err(stopped(&line, fault.into()));
            }
        };
        if is_change(&command) {
            match executor.changes(&command) {
                Ok(changes) => {
                    batch.0.push(Changes { number, line, changes });
                    continue;
                }
                Err(failure) => {
                    batch.send(executor)?;
                    return Err(stopped(&line, failure));
                }
            }
        }
        batch.send(executor)?;
        match executor.run(&command) {
            Ok(Next::Go) => {}
            Ok(Next::Leave) => return Ok(()),
            Ok(Next::Paste) => {
                let text = text(input).map_err(|error| stopped(&line, Failure::Input(error)))?;
                executor.pasted(&command, text).map_err(|failure| stopped(&line, failure))?;
            }
            Err(failure) => return Err(stopped(&line, failure)),
        }
    }
    batch.send(executor)?;
    if executor.desk.configuring() {
        let left = executor.leave();
        left.map_err(|failure| Stopped { number: input.number, line: String::new(), failure })?;
    }
    Ok(())
}

/// Up to the end, or to a line with nothing but Ctrl-D.
fn text(input: &mut Input) -> io::Result<String> {
    let mut text = String::new();
    while let Some(line) = input.line()?
        && line != END_OF_TEXT
    {
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

fn is_change(command: &Command) -> bool {
    matches!(command.run, Run::Configure(Action::Change))
}

/// A line of `set` or `del`.
struct Changes {
    number: usize,
    line: String,
    changes: Vec<String>,
}

/// Lines of `set` and `del` that follow one another are sent together: a paste of a thousand is one question.
#[derive(Default)]
struct Batch(Vec<Changes>);

impl Batch {
    fn send(&mut self, executor: &mut Executor) -> Result<(), Stopped> {
        let batch = std::mem::take(&mut self.0);
        let all: Vec<String> = batch.iter().flat_map(|one| one.changes.iter().cloned()).collect();
        if all.is_empty() {
            return Ok(());
        }
        match executor.change(all) {
            Err(Failure::Ask(AskError::Client(ClientError::Refused(_)))) if batch.len() > 1 => {
                // Nothing of it was done: one by one, to know which it was.
                batch.into_iter().try_for_each(|one| send(executor, one))
            }
            Ok(()) => Ok(()),
            Err(failure) => match batch.into_iter().next() {
                Some(Changes { number, line, .. }) => Err(Stopped { number, line, failure }),
                None => Ok(()),
            },
        }
    }
}

fn send(executor: &mut Executor, Changes { number, line, changes }: Changes) -> Result<(), Stopped> {
    executor.change(changes).map_err(|failure| Stopped { number, line, failure })
}

fn report(failure: &Failure, line: &str, prefix: &str) {
    match failure {
        Failure::Usage(fault) if line.chars().count() <= POINTED => {
            say(&format!("{prefix}{fault}\n  {}\n{}", Fault::shown(line), fault.caret(line, 2)));
        }
        failure if failure.is_quiet() => {}
        failure => say(&format!("{prefix}{failure}")),
    }
}
