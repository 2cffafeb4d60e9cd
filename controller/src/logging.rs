//! The log of the process and the file of events, as `logger` of the running configuration says.

use std::path::PathBuf;
use std::sync::Arc;

use api::{EventKind, Severity};
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};
use tree::{Tree, json};

use crate::datastore::{Datastores, path_to};
use crate::event::{EventFile, Events, FileSettings, News};

/// `logger` of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct LoggerSettings {
    format: Format,
    level: Level,
    event_file: Option<EventFileSettings>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Format {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    Error,
    Warning,
    #[default]
    Info,
    Debug,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct EventFileSettings {
    path: PathBuf,
    #[serde(default = "default_size")]
    max_size: u32,
    #[serde(default = "default_files")]
    files: u8,
}

/// MiB, as the modules have it.
fn default_size() -> u32 {
    16
}

/// As the modules have it.
fn default_files() -> u8 {
    5
}

impl LoggerSettings {
    /// Of a configuration that keeps the rules of the modules.
    #[must_use]
    pub fn of(tree: &Tree) -> Self {
        let Some(path) = path_to(tree.schema(), &["logger"]).filter(|path| tree.contains(path)) else {
            return LoggerSettings::default();
        };
        serde_json::from_value(json::value(tree, &path)).unwrap_or_else(|error| {
            tracing::error!("logger: {error}");
            LoggerSettings::default()
        })
    }

    fn file(&self) -> Option<FileSettings> {
        self.event_file.as_ref().map(|file| FileSettings {
            path: file.path.clone(),
            max_size: file.max_size,
            files: file.files,
        })
    }
}

/// A file of events by its path alone.
#[must_use]
pub fn file_at(path: PathBuf) -> FileSettings {
    FileSettings { path, max_size: default_size(), files: default_files() }
}

type Lines = Box<dyn Layer<Registry> + Send + Sync>;
/// What the filter stands on.
type Beneath = tracing_subscriber::layer::Layered<reload::Layer<Lines, Registry>, Registry>;

/// The log of the process, whose looks may change.
#[derive(Clone)]
pub struct Log {
    lines: reload::Handle<Lines, Registry>,
    /// `None` where the environment (`RUST_LOG`) decides.
    level: Option<reload::Handle<EnvFilter, Beneath>>,
    /// systemd takes our output to its journal, where text and JSON mean nothing.
    journal: bool,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("journal", &self.journal).finish_non_exhaustive()
    }
}

impl Log {
    /// Logs from now on: to the journal where systemd reads our output, else lines on standard error.
    ///
    /// # Errors
    /// Something logs already.
    pub fn start() -> Result<Self, TryInitError> {
        let from_environment = EnvFilter::try_from_default_env().ok();
        let fixed = from_environment.is_some();
        let filter = from_environment.unwrap_or_else(|| filter(Level::default()));
        let journal = std::env::var_os("JOURNAL_STREAM")
            .and_then(|_| tracing_journald::layer().ok())
            .map(|layer| layer.boxed());
        let is_journal = journal.is_some();
        let (lines_layer, lines_handle) = reload::Layer::new(journal.unwrap_or_else(|| lines(Format::Text)));
        let (filter_layer, filter_handle) = reload::Layer::new(filter);
        tracing_subscriber::registry().with(lines_layer).with(filter_layer).try_init()?;
        Ok(Log { lines: lines_handle, level: (!fixed).then_some(filter_handle), journal: is_journal })
    }

    fn set(&self, settings: &LoggerSettings) -> Result<(), reload::Error> {
        if !self.journal {
            self.lines.reload(lines(settings.format))?;
        }
        match &self.level {
            Some(level) => level.reload(filter(settings.level)),
            None => Ok(()),
        }
    }
}

fn lines(format: Format) -> Lines {
    let layer = fmt::layer().with_writer(std::io::stderr);
    match format {
        Format::Text => layer.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        Format::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    }
}

fn filter(level: Level) -> EnvFilter {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warning => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    };
    EnvFilter::new(level.to_string())
}

/// Does what running says, for as long as the process lives. `fixed` is a file of events that the command line asked
/// for; it stands where the configuration names none.
pub async fn follow(
    log: Option<Log>,
    datastores: Arc<Datastores>,
    events: Arc<Events>,
    fixed: Option<FileSettings>,
) {
    let mut changes = datastores.changes();
    let mut file = fixed.clone();
    let mut set = LoggerSettings::default();
    loop {
        let wanted = LoggerSettings::of(&datastores.running().tree);
        if let Some(log) = log.as_ref().filter(|_| wanted != set)
            && let Err(error) = log.set(&wanted)
        {
            tracing::error!("the log does not take its new looks: {error}");
        }
        let wanted_file = wanted.file().or_else(|| fixed.clone());
        if wanted_file != file {
            match wanted_file.clone().map(EventFile::open).transpose() {
                Ok(opened) => {
                    events.keep_in(opened);
                    file = wanted_file;
                }
                Err(error) => {
                    let path = wanted_file.map(|file| file.path.display().to_string()).unwrap_or_default();
                    let reason = format!("event file {path}: {error}; events go on where they went before");
                    events.log(News::now(Severity::Error, EventKind::Configuration, "logger", reason));
                }
            }
        }
        set = wanted;
        if matches!(changes.recv().await, Err(RecvError::Closed)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_as_the_modules_have_it() {
        let yang = yang::Yang::load().unwrap();
        let schema = yang.schema();
        let default = |names: &[&str]| {
            let path = path_to(schema, names).unwrap();
            let node = schema.node(path.node().unwrap());
            match &node.kind {
                tree::Kind::Leaf { default: Some(default), .. } => default.to_string(),
                other => panic!("{names:?}: {other:?}"),
            }
        };
        assert_eq!(default(&["logger", "event-file", "max-size"]), default_size().to_string());
        assert_eq!(default(&["logger", "event-file", "files"]), default_files().to_string());
        assert_eq!(default(&["logger", "format"]), "text");
        assert_eq!(default(&["logger", "level"]), "info");
    }
}
