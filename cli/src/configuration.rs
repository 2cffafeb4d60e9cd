//! Configuration mode: what its commands do.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path as FilePath;
use std::time::Duration;

use api::{Applied, ClientError, Format, LoadMode, Request, Source};
use serde_json::Value;
use tree::Path;

use crate::execute::{Executor, Failure, Next, read_file};
use crate::grammar::{Action, Args, Command, Filter, Names, Run};
use crate::render::{self, Style};
use crate::session::AskError;
use crate::terminal::say;
use crate::words;

/// How long leaving waits for sluiced.
const PATIENCE: Duration = Duration::from_secs(5);

impl Executor {
    /// Does what a command of configuration mode says.
    ///
    /// # Errors
    /// [`Failure`]; nothing was changed.
    pub(crate) fn configure(
        &mut self,
        action: Action,
        command: &Command,
        style: Style,
    ) -> Result<Next, Failure> {
        match action {
            Action::Enter => self.desk.enter(Vec::new()),
            Action::Edit => {
                let level = self.place(command)?.to_words(&*self.desk.session().schema()?);
                if self.desk.configuring() { self.desk.edit(level) } else { self.desk.enter(level) }
            }
            Action::Up => {
                let schema = self.desk.session().schema()?;
                let mut level = words::place(&schema, &self.desk.level())?;
                let levels = command.args.number("levels").unwrap_or(1);
                level.0.truncate(level.0.len().saturating_sub(levels));
                self.desk.up(level.to_words(&schema));
            }
            Action::Top => self.desk.up(Vec::new()),
            Action::Dir => {
                let level = self.place(command)?;
                let schema = self.desk.session().schema()?;
                let tree = self.candidate(&level)?;
                self.answer(command, tree, |tree| Ok(render::directory(&tree, &schema, &level, style)))?;
            }
            Action::Change => {
                let lines = self.changes(command)?;
                let deletes = lines.iter().all(|line| line.starts_with("del "));
                let changed: api::Changed = serde_json::from_value(self.ask(&Request::Edit { lines })?)?;
                if deletes && changed.changes == 0 {
                    say("nothing is deleted: it is not set");
                }
            }
            Action::Load(mode) => match command.args.text("file") {
                None => return Ok(Next::Paste),
                Some(file) => {
                    let text = read_file(FilePath::new(&file));
                    let text = text.map_err(|source| Failure::File { file: file.clone(), source })?;
                    self.load(mode, text, &file, command, style)?;
                }
            },
            Action::Apply => self.apply(command, style)?,
            Action::Save => self.save(&command.args)?,
            Action::Exit if self.desk.back() => {}
            Action::Exit | Action::Quit => return self.leave(),
        }
        Ok(Next::Go)
    }

    /// Where the words of a command lead, from the level where one is; there without any.
    fn place(&self, command: &Command) -> Result<Path, Failure> {
        let schema = self.desk.session().schema()?;
        let level = self.desk.level();
        match &command.tree {
            None => Ok(words::place(&schema, &level)?),
            Some(tree) => Ok(words::place_of(&schema, &level, tree)?),
        }
    }

    /// The lines from the top that a `set` or `del` means.
    pub(crate) fn changes(&self, command: &Command) -> Result<Vec<String>, Failure> {
        let schema = self.desk.session().schema()?;
        match &command.tree {
            None => Ok(Vec::new()),
            Some(tree) => Ok(words::changes(&schema, &self.desk.level(), tree)?),
        }
    }

    /// Below a level, as JSON.
    fn candidate(&self, level: &Path) -> Result<Value, Failure> {
        let text = self.text(Source::Candidate, level, Format::Json, false)?;
        Ok(serde_json::from_str(&text)?)
    }

    fn text(&self, source: Source, level: &Path, format: Format, defaults: bool) -> Result<String, Failure> {
        let mut session = self.desk.session();
        let path = if level.0.is_empty() { Vec::new() } else { level.to_words(&*session.schema()?) };
        Ok(session.ask_as(&Request::ShowTree { source, path, format, defaults })?)
    }

    /// `show` of a configuration, in the format that its filter says.
    pub(crate) fn show_tree(&self, source: Source, command: &Command) -> Result<(), Failure> {
        let level = match command.tree {
            None if source != Source::Candidate => Path::default(),
            _ => self.place(command)?,
        };
        let asked = command.filters.iter().find_map(|filter| match filter {
            Filter::Json => Some(Format::Json),
            Filter::Xml => Some(Format::Xml),
            Filter::Set => Some(Format::Set),
            _ => None,
        });
        let defaults = command.filters.iter().any(|filter| matches!(filter, Filter::Defaults));
        let text = self.text(source, &level, asked.unwrap_or(Format::Json), defaults)?;
        let text = match asked {
            None => {
                let schema = self.desk.session().schema()?;
                render::configuration(&serde_json::from_str(&text)?, &schema, &level)
            }
            Some(Format::Json) => render::json(&serde_json::from_str(&text)?),
            Some(Format::Set | Format::Xml) => text,
        };
        self.show(command, &text)
    }

    /// What came by `load ... terminal`.
    ///
    /// # Errors
    /// As of any other command.
    pub fn pasted(&mut self, command: &Command, text: String) -> Result<(), Failure> {
        match command.run {
            Run::Configure(Action::Load(mode)) => {
                self.load(*mode, text, "terminal", command, self.style(command))
            }
            _ => Ok(()),
        }
    }

    fn load(
        &self,
        mode: LoadMode,
        text: String,
        from: &str,
        command: &Command,
        style: Style,
    ) -> Result<(), Failure> {
        let answer = self.desk.session().ask(&Request::Load { mode, text }).map_err(|error| match error {
            AskError::Client(ClientError::Refused(reason)) => Failure::Refused { file: from.into(), reason },
            error => error.into(),
        })?;
        self.answer(command, answer, |answer| Ok(render::changed(&serde_json::from_value(answer)?, style)))
    }

    fn apply(&self, command: &Command, style: Style) -> Result<(), Failure> {
        let confirmed = command.args.number("confirmed");
        let request = Request::Apply { confirmed, comment: command.args.text("comment") };
        let answer = self.ask(&request).map_err(|error| match error {
            AskError::Interrupted => Failure::Applying,
            error => error.into(),
        })?;
        self.desk.await_confirmation(confirmed.map(|minutes| Duration::from_secs(60 * u64::from(minutes))));
        self.answer(command, answer, |answer| {
            let applied: Applied = serde_json::from_value(answer)?;
            Ok(render::in_force(&applied, confirmed, style))
        })
    }

    /// Running to startup, or the whole candidate, of which a level could not be loaded again as a whole, to a
    /// file.
    fn save(&self, args: &Args) -> Result<(), Failure> {
        let Some(file) = args.text("file") else {
            self.desk.session().ask(&Request::Save)?;
            if self.differs()? {
                say("what runs was saved; the changes of the candidate were not: apply comes first");
            }
            return Ok(());
        };
        let format = match FilePath::new(&file).extension().and_then(|suffix| suffix.to_str()) {
            Some("json") => Format::Json,
            Some("xml") => Format::Xml,
            _ => Format::Set,
        };
        let mut text = self.text(Source::Candidate, &Path::default(), format, false)?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        write_file(FilePath::new(&file), &text).map_err(|source| Failure::Write { file, source })
    }

    /// The candidate is other than what runs.
    fn differs(&self) -> Result<bool, Failure> {
        let mut session = self.desk.session();
        if !session.changed() {
            return Ok(false);
        }
        let lines: Vec<String> = session.ask_as(&Request::Compare { with: Source::Running })?;
        Ok(!lines.is_empty())
    }

    /// Out of configuration mode. Changes that would be forgotten are pointed out once; a script must say
    /// what is to become of them.
    ///
    /// # Errors
    /// There are such changes.
    pub(crate) fn leave(&mut self) -> Result<Next, Failure> {
        // Who cannot be asked has no candidate worth staying for.
        if !std::mem::take(&mut self.warned) && self.differs().unwrap_or(self.desk.session().changed()) {
            self.warned = self.terminal.keys;
            return Err(if self.warned { Failure::Unapplied } else { Failure::Forgotten });
        }
        // The next candidate begins with what runs then. It would end with the connection anyway.
        let mut session = self.desk.session();
        if session.is_open() {
            let _ = session.ask_within(&Request::Discard, PATIENCE);
        }
        drop(session);
        if let Some(left) = self.desk.unconfirmed() {
            let left = match left.as_secs() {
                seconds @ 0..120 => format!("{seconds} seconds"),
                seconds => format!("{} minutes", seconds / 60),
            };
            say(&format!(
                "what was applied is rolled back in {left} unless \"apply\" in configuration mode \
                 confirms it"
            ));
        }
        self.desk.leave();
        Ok(Next::Go)
    }
}

/// Writes a text to a file: a crash at any instant leaves the old file or the new one.
fn write_file(file: &FilePath, text: &str) -> io::Result<()> {
    // A link stays a link; what it leads to is written.
    let file = match fs::canonicalize(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => file.to_owned(),
        Err(error) => return Err(error),
    };
    let before = fs::metadata(&file).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let directory = match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => FilePath::new("."),
    };
    let name = file.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let new = directory.join(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        // It holds digests of passwords: for its owner alone, unless the file is there and says otherwise.
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        if let Some(before) = before {
            out.set_permissions(fs::Permissions::from_mode(before.permissions().mode() & 0o777))?;
        }
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&new, &file)
    })();
    if let Err(error) = written {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    File::open(directory)?.sync_all()
}
