//! The startup file, and texts of configurations in any of the three formats.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::{EventKind, Format, Severity};
use netconf::Datastore;
use tree::{Defaults, Schema, Tree, json, set_lines, xml};

use super::journal::write_whole;
use super::{ApplyError, Datastores, Options, Who};
use crate::event::News;
use crate::state_dir::digest;

/// Beginning of temporary names beside the startup file.
const TEMPORARY: &str = ".sluice-startup-";

/// The startup file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", .path.display())]
pub struct StartupError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// What a text looks like: JSON and XML begin with a bracket of theirs, everything else is `set` lines.
fn format_of(text: &str) -> Format {
    match text.trim_start_matches('\u{feff}').trim_start().chars().next() {
        Some('{' | '[') => Format::Json,
        Some('<') => Format::Xml,
        _ => Format::Set,
    }
}

/// Reads a whole configuration in whichever format it is.
///
/// # Errors
/// What is wrong with it, a fault a line.
pub fn read_text(schema: &Arc<Schema>, text: &str) -> Result<Tree, String> {
    let lines =
        |faults: Vec<tree::ReadFault>| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    match format_of(text) {
        Format::Json => json::read(schema, text).map_err(lines),
        Format::Xml => xml::read(schema, text).map_err(lines),
        Format::Set => {
            let mut tree = Tree::new(schema.clone());
            set_lines::read(&mut tree, text).map_err(|fault| fault.to_string())?;
            if tree.is_empty() {
                // A file that lost its content must not cut every link.
                return Err("there is no configuration in it; an empty one is written {}".to_owned());
            }
            Ok(tree)
        }
    }
}

/// A configuration as one XML document: its top-level elements in the `config` of NETCONF (RFC 6241).
#[must_use]
pub fn xml_document(tree: &Tree, defaults: Defaults) -> String {
    let inside = xml::write(tree, &tree::Path::default(), defaults);
    format!("<config xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n{}\n</config>\n", inside.trim_end())
}

/// A configuration as a file of this name has it: JSON, XML by their suffixes, else `set` lines.
fn write_text(tree: &Tree, path: &Path) -> String {
    let whole = tree::Path::default();
    let explicit = Defaults::Explicit;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => json::write(tree, &whole, explicit),
        Some("xml") => xml_document(tree, explicit),
        _ => set_lines::write(tree, &whole),
    }
}

impl Datastores {
    /// Reads the startup file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn startup(&self) -> Result<Tree, StartupError> {
        let fault = |reason| StartupError { path: self.startup.clone(), reason };
        let text = match fs::read_to_string(&self.startup) {
            Ok(text) => text,
            // Nothing was saved yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Tree::new(self.schema.clone()));
            }
            Err(error) => return Err(fault(error.to_string())),
        };
        read_text(&self.schema, &text).map_err(fault)
    }

    /// Running becomes startup; the file is the old one or the new one at any instant.
    ///
    /// # Errors
    /// The file, or a lock of another session.
    pub async fn save(self: &Arc<Self>, who: &Who) -> Result<(), ApplyError> {
        let running = self.running();
        self.save_tree(who, running.tree.clone()).await
    }

    /// A configuration becomes startup (`copy-config` into it, `delete-config` with an empty one).
    ///
    /// # Errors
    /// As [`Datastores::save`].
    pub async fn save_tree(self: &Arc<Self>, who: &Who, tree: Tree) -> Result<(), ApplyError> {
        let mut journal = self.applying.lock().await;
        self.unlocked(Datastore::Startup, who)?;
        let running = self.running();
        let result = tokio::task::block_in_place(|| {
            let text = write_text(&tree, &self.startup);
            let fault = |source: io::Error| StartupError {
                path: self.startup.clone(),
                reason: format!("cannot be written: {source}"),
            };
            let digest = digest(&text);
            // What is in force is in force for a controller that comes back, whatever startup has then.
            journal.saving(&running, &digest)?;
            write_whole(&self.startup, TEMPORARY, text.as_bytes()).map_err(fault)?;
            journal.has_saved(&digest);
            Ok(())
        });
        let said = result.as_ref().copied().map_err(|error: &ApplyError| error.to_string());
        self.audit.record(who, "save", None, said.as_ref().copied().map_err(String::as_str));
        result
    }

    /// Reads the startup file again and puts it in force.
    ///
    /// # Errors
    /// As [`Datastores::apply`]; the event log has it too.
    pub async fn reload(self: &Arc<Self>, who: &Who) -> Result<(), ApplyError> {
        let result = self.try_reload(who).await;
        if let Err(error) = &result {
            let mut news =
                News::now(Severity::Error, EventKind::Configuration, "running", "refused, nothing changed");
            news.detail = Some(format!("{}: {error}", self.startup.display()));
            self.events.log(news);
        }
        result
    }

    async fn try_reload(self: &Arc<Self>, who: &Who) -> Result<(), ApplyError> {
        let text = fs::read_to_string(&self.startup)
            .map_err(|error| StartupError { path: self.startup.clone(), reason: error.to_string() })?;
        let fault = |reason| StartupError { path: self.startup.clone(), reason };
        let mut candidate = self.candidate();
        candidate.replace(read_text(&self.schema, &text).map_err(fault)?);
        self.apply(who, &mut candidate, Options::default()).await?;
        let mut journal = self.applying.lock().await;
        tokio::task::block_in_place(|| journal.saved(&self.running(), &digest(&text)))?;
        Ok(())
    }
}
