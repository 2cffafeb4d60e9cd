//! The interactive shell.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::Request;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    Helper, Highlighter, Hinter, KeyEvent, RepeatCount, Validator,
};
use serde_json::Value;

use crate::execute::{Executor, Failure, Next};
use crate::grammar::{Names, Source, following, list, question_mark_is_literal};
use crate::session::{Interrupt, Session};
use crate::terminal::{self, Terminal, say, show};
use crate::token::quote;

/// Names older than this are asked for anew.
const FRESH: Duration = Duration::from_secs(2);
/// Completion does without names that take longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Why the shell ended.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The terminal.
    #[error("cannot read commands from the terminal: {0}")]
    Terminal(#[from] ReadlineError),
    /// The output.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Names of the daemon's things, for a short while.
struct DaemonNames {
    session: RefCell<Session>,
    known: RefCell<HashMap<Source, (Instant, Vec<String>)>>,
}

impl Names for DaemonNames {
    fn names(&self, source: Source) -> Vec<String> {
        let mut known = self.known.borrow_mut();
        if let Some((since, names)) = known.get(&source)
            && since.elapsed() < FRESH
        {
            return names.clone();
        }
        let (request, field) = match source {
            Source::Units => (Request::ShowUnit { unit: None }, "name"),
            Source::Ports => (Request::ShowPorts, "name"),
            Source::Flows => (Request::ShowFlow { flow: None }, "name"),
            Source::Profiles => (Request::ShowLiveness { profile: None }, "profile"),
            Source::Links => (Request::ShowLink, "name"),
        };
        let Ok(Value::Array(things)) = self.session.borrow_mut().ask_within(&request, PATIENCE) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            things.iter().filter_map(|thing| thing[field].as_str().map(String::from)).collect();
        names.sort();
        names.dedup();
        known.insert(source, (Instant::now(), names.clone()));
        names
    }
}

#[derive(Helper, Highlighter, Hinter, Validator)]
struct Completion {
    names: DaemonNames,
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Ok(following) = following(&line[..pos], &self.names) else { return Ok((pos, Vec::new())) };
        let start = following.start;
        let items: Vec<_> = following.items.into_iter().filter(|item| item.literal).collect();
        let rows = list(&items);
        // One candidate a row: a cell wider than half a screen leaves no room beside it.
        let (columns, _) = terminal::size();
        let pairs = items.iter().zip(rows.lines()).map(|(item, row)| {
            let blank = if items.len() == 1 && !item.text.ends_with('/') { " " } else { "" };
            let text = quote(&item.text);
            Pair {
                display: format!("{row:width$}", width = columns / 2),
                replacement: format!("{text}{blank}"),
            }
        });
        Ok((start, pairs.collect()))
    }
}

/// `?` ends the editing for a moment, so that the list can be printed. It accepts the line rather than
/// interrupts it, since then the editor keeps what was typed ahead.
struct QuestionMark {
    /// Cursor where it was pressed.
    asked: Arc<Mutex<Option<usize>>>,
}

impl ConditionalEventHandler for QuestionMark {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        if question_mark_is_literal(&context.line()[..context.pos()]) {
            return None;
        }
        *lock(&self.asked) = Some(context.pos());
        Some(Cmd::AcceptLine)
    }
}

/// The lock's holders cannot leave anything half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of a user of this machine, passwd(5).
fn login_name(uid: &str) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    users.find(|fields| fields.get(2) == Some(&uid)).map(|fields| fields[0].into())
}

/// `user@host> `.
fn prompt() -> String {
    let set = |name: &&str| std::env::var(name).ok().filter(|user| !user.is_empty());
    let uid = rustix::process::getuid().as_raw().to_string();
    let user = ["USER", "LOGNAME"].iter().find_map(set).or_else(|| login_name(&uid)).unwrap_or(uid);
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy();
    format!("{user}@{}> ", host.split('.').next().unwrap_or(&host))
}

/// Where the history is kept, if anywhere.
fn history_file() -> Option<PathBuf> {
    Some(Path::new(&std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(".sluice_history"))
}

/// Reads commands from the terminal until `exit` or Ctrl-D.
///
/// # Errors
/// The terminal cannot be used, or the output cannot be written.
pub fn run(socket: &Path, interrupt: Interrupt, terminal: Terminal) -> Result<(), ShellError> {
    // Ctrl-C ends what runs, never the shell.
    interrupt.hold();
    let config = Config::builder()
        .auto_add_history(false)
        .history_ignore_dups(true)?
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .completion_prompt_limit(500)
        // Pasted lines run as if they were typed.
        .bracketed_paste(false)
        .build();
    let mut editor: Editor<Completion, FileHistory> = Editor::with_config(config)?;
    let session = RefCell::new(Session::new(socket, interrupt.clone()));
    editor.set_helper(Some(Completion { names: DaemonNames { session, known: RefCell::default() } }));
    let asked = Arc::new(Mutex::new(None));
    let question_mark = QuestionMark { asked: Arc::clone(&asked) };
    editor.bind_sequence(KeyEvent::from('?'), EventHandler::Conditional(Box::new(question_mark)));
    let history = history_file();
    // A history that cannot be read or written is no reason not to work.
    let _ = history.as_ref().map(|file| editor.load_history(file));

    let mut executor = Executor::new(socket, interrupt, terminal);
    let prompt = prompt();
    let mut kept = (String::new(), String::new());
    loop {
        let (left, right) = std::mem::take(&mut kept);
        // A Ctrl-C that ended the last command is done with.
        executor.interrupt.hold();
        let line = match editor.readline_with_initial(&prompt, (&left, &right)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if let Some(cursor) = lock(&asked).take() {
            let (left, right) = line.split_at(cursor.min(line.len()));
            kept = (left.into(), right.into());
            if let Some(completion) = editor.helper() {
                question(left, &completion.names, &prompt, &executor)?;
            }
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(&line);
        let _ = history.as_ref().map(|file| editor.append_history(file));
        match executor.line(&line) {
            Ok(Next::Go) => {}
            Ok(Next::Leave) => return Ok(()),
            Err(Failure::Output(error)) => return Err(error.into()),
            Err(failure) => report(&failure, &line, &prompt),
        }
    }
}

/// Lists what can follow.
fn question(line: &str, names: &dyn Names, prompt: &str, executor: &Executor) -> io::Result<()> {
    match following(line, names) {
        Ok(following) if following.items.is_empty() => writeln!(io::stdout(), "Nothing can follow here."),
        Ok(following) => {
            let text = format!("Possible completions:\n{}", list(&following.items));
            let lines: Vec<String> = text.lines().map(String::from).collect();
            show(&lines, executor.terminal.pages(), &executor.interrupt)
        }
        Err(fault) => {
            report(&fault.into(), line, prompt);
            Ok(())
        }
    }
}

/// Says what was wrong, with a caret below the line as it was typed.
fn report(failure: &Failure, line: &str, prompt: &str) {
    match failure {
        Failure::Usage(fault) => {
            let (columns, _) = terminal::size();
            let indent = prompt.chars().count();
            // A line that was wrapped cannot be pointed at.
            if indent + line.chars().count() < columns {
                say(&fault.caret(line, indent));
            }
            say(&fault.to_string());
        }
        failure if failure.is_quiet() => {}
        failure => say(&failure.to_string()),
    }
}
