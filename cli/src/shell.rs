//! The interactive shell.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    Helper, Highlighter, Hinter, KeyCode, KeyEvent, Modifiers, RepeatCount, Validator,
};

use crate::desk::Desk;
use crate::execute::{Executor, Failure, Next};
use crate::grammar::{Step, following, list, question_mark_is_literal, rows};
use crate::render::harmless;
use crate::session::Interrupt;
use crate::terminal::{self, Terminal, say, show};
use crate::token::quote;

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

/// What the keys mean at the moment.
struct Keyboard {
    /// The commands of the mode.
    root: &'static Step,
    /// A text is being pasted: no key means anything but itself.
    text: bool,
    /// Cursor where `?` was pressed.
    asked: Option<usize>,
}

#[derive(Helper, Highlighter, Hinter, Validator)]
struct Completion {
    desk: Rc<Desk>,
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let desk = &*self.desk;
        let Ok(following) = following(desk.root(), &line[..pos], desk) else { return Ok((pos, Vec::new())) };
        let start = following.start;
        let items: Vec<_> = following.items.into_iter().filter(|item| item.literal).collect();
        // One candidate a row: a cell wider than half a screen leaves no room beside it.
        let (columns, _) = terminal::size();
        let pairs = items.iter().zip(rows(&items, columns)).map(|(item, row)| {
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
struct QuestionMark(Arc<Mutex<Keyboard>>);

impl ConditionalEventHandler for QuestionMark {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let mut keyboard = lock(&self.0);
        let line = &context.line()[..context.pos()];
        if keyboard.text || question_mark_is_literal(keyboard.root, line) {
            return None;
        }
        keyboard.asked = Some(context.pos());
        Some(Cmd::AcceptLine)
    }
}

/// In a text it is a blank.
struct Tab(Arc<Mutex<Keyboard>>);

impl ConditionalEventHandler for Tab {
    fn handle(&self, _: &Event, count: RepeatCount, _: bool, _: &EventContext) -> Option<Cmd> {
        lock(&self.0).text.then_some(Cmd::SelfInsert(count, '\t'))
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

/// `user@host`.
fn place() -> String {
    let set = |name: &&str| std::env::var(name).ok().filter(|user| !user.is_empty());
    let uid = rustix::process::getuid().as_raw().to_string();
    let user = ["USER", "LOGNAME"].iter().find_map(set).or_else(|| login_name(&uid)).unwrap_or(uid);
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy();
    format!("{user}@{}", host.split('.').next().unwrap_or(&host))
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
    let mut executor = Executor::new(socket, interrupt, terminal);
    let desk = Rc::clone(&executor.desk);
    editor.set_helper(Some(Completion { desk: Rc::clone(&desk) }));
    let keyboard = Arc::new(Mutex::new(Keyboard { root: desk.root(), text: false, asked: None }));
    let question_mark = QuestionMark(Arc::clone(&keyboard));
    editor.bind_sequence(KeyEvent::from('?'), EventHandler::Conditional(Box::new(question_mark)));
    let tab = EventHandler::Conditional(Box::new(Tab(Arc::clone(&keyboard))));
    editor.bind_sequence(KeyEvent(KeyCode::Tab, Modifiers::NONE), tab);
    let history = history_file();
    // A history that cannot be read or written is no reason not to work.
    let _ = history.as_ref().map(|file| editor.load_history(file));

    let place = place();
    let mut kept = (String::new(), String::new());
    // `[edit ...]` stands above every prompt but one that goes on with a line.
    let mut fresh = true;
    loop {
        let prompt = format!("{place}{} ", if desk.configuring() { '#' } else { '>' });
        if std::mem::replace(&mut fresh, true)
            && let Some(banner) = desk.banner()
        {
            writeln!(io::stdout(), "{}", harmless(&banner))?;
        }
        lock(&keyboard).root = desk.root();
        let (left, right) = std::mem::take(&mut kept);
        // A Ctrl-C that ended the last command is done with.
        executor.interrupt.hold();
        let line = match editor.readline_with_initial(&prompt, (&left, &right)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) if desk.configuring() => "quit".into(),
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if let Some(cursor) = lock(&keyboard).asked.take() {
            let (left, right) = line.split_at(cursor.min(line.len()));
            question(left, &prompt, &executor)?;
            kept = (left.into(), right.into());
            fresh = false;
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(&line);
        let _ = history.as_ref().map(|file| editor.append_history(file));
        let done = match executor.read(&line) {
            Ok(None) => continue,
            Ok(Some(command)) => match executor.run(&command) {
                Ok(Next::Go) => Ok(()),
                Ok(Next::Leave) => return Ok(()),
                Ok(Next::Paste) => match pasted(&mut editor, &keyboard)? {
                    Some(text) => executor.pasted(&command, text),
                    None => Ok(()),
                },
                Err(failure) => Err(failure),
            },
            Err(fault) => Err(fault.into()),
        };
        match done {
            Ok(()) => {}
            Err(Failure::Output(error)) => return Err(error.into()),
            Err(failure) => report(&executor.with_hint(failure, &line), &line, &prompt),
        }
    }
}

/// A text up to Ctrl-D. The editor reads it, since what was typed ahead is there already. `None` after Ctrl-C.
fn pasted(
    editor: &mut Editor<Completion, FileHistory>,
    keyboard: &Mutex<Keyboard>,
) -> Result<Option<String>, ShellError> {
    writeln!(io::stdout(), "Type or paste the text. Ctrl-D on a line of its own ends it, Ctrl-C cancels.")?;
    lock(keyboard).text = true;
    let mut text = String::new();
    let ended = loop {
        match editor.readline("") {
            Ok(line) => text = text + &line + "\n",
            Err(ReadlineError::Eof) => break Ok(Some(text)),
            Err(ReadlineError::Interrupted) => break Ok(None),
            Err(error) => break Err(error.into()),
        }
    };
    lock(keyboard).text = false;
    ended
}

/// Lists what can follow.
fn question(line: &str, prompt: &str, executor: &Executor) -> io::Result<()> {
    let desk = &*executor.desk;
    match following(desk.root(), line, desk) {
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
