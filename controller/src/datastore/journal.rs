//! What was applied, on disk: a snapshot of running, and one small file for each change since and before.
//!
//! `running.json` has a whole configuration and the number of the change that made it. `NNNNNNNNNN.json` has one
//! change: who made it, and the way there and back. A change is in force once its file has its name; so a crash at any
//! instant leaves the configuration before it or the one after, and a change of one node costs a file of its size,
//! however large the rest is.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tree::{Change, Content, Defaults, Schema, Tree, json, set_lines, words};

/// Earlier configurations that are kept.
pub const KEPT: usize = 50;
/// Beginning of temporary names; what a crash left of them is removed at the next start.
const TEMPORARY: &str = ".journal-";
/// Bytes of changes after which a snapshot is due, where the last one was not larger.
const DUE: u64 = 1 << 20;
/// Changes of one apply that are kept line by line; of more the whole configuration is kept.
const MOST_LINES: usize = 10_000;
/// Changes after which a snapshot is due.
const DUE_CHANGES: u64 = 25;

/// Who changed the configuration, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Authorship {
    /// User.
    pub user: String,
    /// From where.
    pub origin: String,
    /// RFC 3339.
    pub time: String,
    /// As given.
    pub comment: Option<String>,
}

/// A configuration that is or was in force.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Rises by one with every change.
    pub sequence: u64,
    /// Who made it.
    pub by: Authorship,
    /// All of it.
    pub tree: Tree,
    /// It is rolled back unless it is confirmed.
    pub unconfirmed: Option<Unconfirmed>,
}

/// What becomes of a change that nobody confirms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unconfirmed {
    /// Milliseconds since 1970.
    pub deadline: u64,
    /// Sequence of the change that is rolled back to.
    pub back_to: u64,
    /// It outlives its session, and this names it.
    pub persist: Option<String>,
    /// It ends with the session that made it (NETCONF without `persist`).
    pub of_session: bool,
}

/// From one configuration to another.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    /// `set` and `del` lines.
    Lines(Vec<String>),
    /// All of the other one, a text in RFC 7951 JSON.
    Whole(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ChangeFile {
    sequence: u64,
    by: Authorship,
    /// Of the configuration before.
    before_by: Authorship,
    redo: Way,
    undo: Way,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unconfirmed: Option<Unconfirmed>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SnapshotFile {
    sequence: u64,
    by: Authorship,
    /// SHA-256 of the startup file's text under which this configuration is in force; two while a save replaces the
    /// file.
    startup: Vec<String>,
    /// Of the kernel: a machine that was started again begins with startup.
    boot: String,
    /// A text in RFC 7951 JSON.
    configuration: String,
}

/// The journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("journal: {}: {source}", .path.display())]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

/// What was found at a start.
#[derive(Debug, Default)]
pub struct Found {
    /// Newest last; empty where there is nothing, or nothing that can be used.
    pub revisions: Vec<Revision>,
    /// Files that could not be used, and why; they are put aside.
    pub unreadable: Vec<String>,
    /// The newest one is in force: the machine was not started again since, and the startup file is the same one.
    pub resume: bool,
}

/// The journal.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    /// Number of the change in the snapshot, and its bytes.
    snapshot: (u64, u64),
    /// Bytes of changes since.
    since: u64,
    startup: Vec<String>,
    boot: String,
}

/// A name for the kernel's present run.
#[must_use]
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// The `set` and `del` lines of a difference.
pub(super) fn lines_of<'c>(
    schema: &Schema,
    changes: impl IntoIterator<Item = &'c Change>,
) -> impl Iterator<Item = String> {
    let mut gone: Option<tree::Path> = None;
    changes.into_iter().filter_map(move |change| {
        // What is below something that goes, goes with it.
        if gone.as_ref().is_some_and(|gone| change.path.is_within(gone)) {
            return None;
        }
        let path = change.path.words(schema);
        match &change.after {
            None => {
                gone = Some(change.path.clone());
                Some(format!("del {path}"))
            }
            Some(Content::Value(value)) => Some(format!("set {path} {}", words::quote(value))),
            Some(Content::There) => Some(format!("set {path}")),
            Some(Content::Order(_)) => None,
        }
    })
}

fn way(from: &Tree, to: &Tree) -> Way {
    let whole = || Way::Whole(text_of(to));
    let changes = tree::diff(from, to);
    if changes.len() > MOST_LINES {
        return whole();
    }
    let lines: Vec<String> = lines_of(from.schema(), &changes).collect();
    let mut there = from.clone();
    // Lines cannot say everything, such as another order of entries; then all of it is kept.
    let said = set_lines::read(&mut there, &lines.join("\n")).is_ok() && there == *to;
    if said { Way::Lines(lines) } else { whole() }
}

fn text_of(tree: &Tree) -> String {
    json::write(tree, &tree::Path::default(), Defaults::Explicit)
}

fn go(from: &Tree, way: &Way) -> Result<Tree, String> {
    match way {
        Way::Lines(lines) => {
            let mut to = from.clone();
            set_lines::read(&mut to, &lines.join("\n")).map_err(|fault| fault.to_string())?;
            Ok(to)
        }
        Way::Whole(text) => whole(from.schema(), text),
    }
}

fn whole(schema: &Arc<Schema>, text: &str) -> Result<Tree, String> {
    json::read(schema, text)
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

impl Journal {
    /// Opens the journal in a directory, which is made; `startup` is the digest of the startup file's text.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn open(
        directory: &Path,
        schema: &Arc<Schema>,
        startup: &str,
    ) -> Result<(Self, Found), JournalError> {
        let fault = |source| JournalError { path: directory.to_owned(), source };
        fs::create_dir_all(directory).map_err(fault)?;
        let mut changes = Vec::new();
        for entry in fs::read_dir(directory).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with(TEMPORARY) {
                // One that cannot be removed does no harm.
                let _ = fs::remove_file(&path);
            } else if let Some(sequence) =
                name.strip_suffix(".json").and_then(|stem| stem.parse::<u64>().ok())
            {
                changes.push((sequence, path));
            }
        }
        changes.sort();
        let mut journal = Journal {
            directory: directory.to_owned(),
            snapshot: (0, 0),
            since: 0,
            startup: vec![startup.to_owned()],
            boot: boot_id(),
        };
        let mut found = Found::default();
        journal.restore(&changes, schema, &mut found);
        Ok((journal, found))
    }

    fn restore(&mut self, changes: &[(u64, PathBuf)], schema: &Arc<Schema>, found: &mut Found) {
        let path = self.directory.join("running.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                found.unreadable.push(format!("{}: {error}", path.display()));
                return;
            }
        };
        let snapshot: Result<SnapshotFile, String> =
            serde_json::from_slice(&text).map_err(|error| error.to_string());
        let (snapshot, tree) = match snapshot.and_then(|snapshot| {
            let tree = whole(schema, &snapshot.configuration)?;
            Ok((snapshot, tree))
        }) {
            Ok(read) => read,
            Err(reason) => {
                found.unreadable.push(format!("{}: {reason}", path.display()));
                set_aside(&path);
                return;
            }
        };
        let same = snapshot.startup.iter().any(|startup| self.startup.contains(startup));
        found.resume = same && snapshot.boot == self.boot;
        self.snapshot = (snapshot.sequence, text.len() as u64);
        let mut newest = tree.clone();
        let mut later = Vec::new();
        let mut earlier = Vec::new();
        for (sequence, path) in changes {
            let file: ChangeFile = match fs::read(path).map_err(|error| error.to_string()).and_then(|text| {
                self.since += if *sequence > snapshot.sequence { text.len() as u64 } else { 0 };
                serde_json::from_slice(&text).map_err(|error| error.to_string())
            }) {
                Ok(file) => file,
                Err(reason) => {
                    found.unreadable.push(format!("{}: {reason}", path.display()));
                    set_aside(path);
                    if *sequence > snapshot.sequence {
                        break;
                    }
                    earlier.clear();
                    continue;
                }
            };
            if *sequence <= snapshot.sequence {
                earlier.push(file);
                continue;
            }
            match go(&newest, &file.redo) {
                Ok(next) => {
                    newest = next.clone();
                    later.push(Revision {
                        sequence: file.sequence,
                        by: file.by,
                        tree: next,
                        unconfirmed: file.unconfirmed,
                    });
                }
                Err(reason) => {
                    found.unreadable.push(format!("{}: {reason}", path.display()));
                    set_aside(path);
                    break;
                }
            }
        }
        // Back from the snapshot: the change that made it says how it was before.
        let mut back = Vec::new();
        let mut at = tree.clone();
        let mut by = snapshot.by;
        let mut sequence = snapshot.sequence;
        let mut unconfirmed = None;
        for file in earlier.into_iter().rev() {
            if file.sequence != sequence {
                break;
            }
            unconfirmed = if sequence == snapshot.sequence { file.unconfirmed.clone() } else { unconfirmed };
            back.push(Revision {
                sequence,
                by: file.by.clone(),
                tree: at.clone(),
                unconfirmed: file.unconfirmed,
            });
            let Ok(before) = go(&at, &file.undo) else { break };
            at = before;
            sequence -= 1;
            by = file.before_by;
        }
        if back.is_empty() || back.last().is_some_and(|oldest| oldest.sequence != sequence) {
            back.push(Revision { sequence, by, tree: at, unconfirmed: None });
        }
        back.reverse();
        found.revisions = back;
        found.revisions.extend(later);
    }

    /// The startup file has a text of this digest, and running is in force under it.
    ///
    /// # Errors
    /// The path and what the system says.
    pub fn saved(&mut self, running: &Revision, startup: &str) -> Result<(), JournalError> {
        self.startup = vec![startup.to_owned()];
        self.write_snapshot(running)
    }

    /// The startup file is about to get a text of this digest: running is in force under the old one and the new one,
    /// so that it does not matter when a crash comes.
    ///
    /// # Errors
    /// The path and what the system says; then the file must stay as it is.
    pub fn saving(&mut self, running: &Revision, startup: &str) -> Result<(), JournalError> {
        let before = self.startup.clone();
        self.startup.push(startup.to_owned());
        self.write_snapshot(running).inspect_err(|_| self.startup = before)
    }

    /// The startup file has got that text.
    pub fn has_saved(&mut self, startup: &str) {
        self.startup = vec![startup.to_owned()];
    }

    /// Writes a change. Once this returns, a crash does not lose it.
    ///
    /// # Errors
    /// The path and what the system says; then it is not in force for the next start.
    pub fn change(&mut self, before: &Revision, after: &Revision) -> Result<(), JournalError> {
        let file = ChangeFile {
            sequence: after.sequence,
            by: after.by.clone(),
            before_by: before.by.clone(),
            redo: way(&before.tree, &after.tree),
            undo: way(&after.tree, &before.tree),
            unconfirmed: after.unconfirmed.clone(),
        };
        self.since += self.write_file(&self.path_of(after.sequence), &file)?;
        let (sequence, size) = self.snapshot;
        if self.since > size.max(DUE) || after.sequence - sequence >= DUE_CHANGES {
            self.write_snapshot(after)?;
        }
        self.forget(|sequence| sequence + KEPT as u64 <= after.sequence);
        Ok(())
    }

    /// Writes that a change is confirmed.
    ///
    /// # Errors
    /// The path and what the system says.
    pub fn confirm(&mut self, sequence: u64) -> Result<(), JournalError> {
        let path = self.path_of(sequence);
        let fault = |source| JournalError { path: path.clone(), source };
        let text = fs::read(&path).map_err(fault)?;
        let mut file: ChangeFile = serde_json::from_slice(&text).map_err(|error| fault(error.into()))?;
        file.unconfirmed = None;
        self.write_file(&path, &file)?;
        Ok(())
    }

    fn path_of(&self, sequence: u64) -> PathBuf {
        self.directory.join(format!("{sequence:010}.json"))
    }

    fn forget(&self, is_old: impl Fn(u64) -> bool) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let sequence = name.to_string_lossy().strip_suffix(".json").and_then(|stem| stem.parse().ok());
            if sequence.is_some_and(&is_old) {
                // One that cannot be removed is tried again with the next change.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn write_snapshot(&mut self, revision: &Revision) -> Result<(), JournalError> {
        let file = SnapshotFile {
            sequence: revision.sequence,
            by: revision.by.clone(),
            startup: self.startup.clone(),
            boot: self.boot.clone(),
            configuration: text_of(&revision.tree),
        };
        let size = self.write_file(&self.directory.join("running.json"), &file)?;
        self.snapshot = (revision.sequence, size);
        self.since = 0;
        Ok(())
    }

    fn write_file(&self, path: &Path, content: &impl Serialize) -> Result<u64, JournalError> {
        let write = || {
            let text = serde_json::to_vec(content)?;
            write_whole(path, TEMPORARY, &text)?;
            Ok(text.len() as u64)
        };
        write().map_err(|source| JournalError { path: path.to_owned(), source })
    }
}

fn set_aside(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".unreadable");
    // Where that fails it is found unreadable at the next start again.
    let _ = fs::rename(path, aside);
}

/// Writes a file so that a crash at any instant leaves the old one or the new one, with the mode of the old one.
///
/// # Errors
/// What the system says; then the old file stands.
pub fn write_whole(path: &Path, temporary: &str, text: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Through a link, so that the link stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().unwrap_or(directory);
    let mut file = tempfile::Builder::new().prefix(temporary).tempfile_in(directory)?;
    file.write_all(text)?;
    if let Ok(old) = fs::metadata(&target) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    fs::File::open(directory)?.sync_all()
}
