//! The audit log: who changed or called what, when, from where, and how it ended; one JSON object a line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::clock;
use crate::datastore::Who;

/// Bytes after which the file is put aside as `audit.log.1`, the one before it is dropped.
const LARGEST: u64 = 16 << 20;
/// Lines of a change that are written.
pub(crate) const LINES: usize = 1000;

/// The file, and whether its last line was written in part.
#[derive(Debug)]
struct Slot {
    file: Option<File>,
    torn: bool,
}

/// The audit log.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    file: Mutex<Slot>,
}

impl Audit {
    /// Opens the log in a directory.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join("audit.log");
        let file = append(&path)?;
        Ok(Audit { path, file: Mutex::new(Slot { file: Some(file), torn: false }) })
    }

    /// Writes a change of the configuration: its first lines, and of how many nodes it was.
    pub fn changed(&self, who: &Who, comment: Option<&str>, lines: &[String], nodes: usize) {
        self.line(who, "apply", comment, Ok(json!({"changes": lines, "changed-nodes": nodes})));
    }

    /// Writes what somebody did, or why it was refused.
    pub fn record(&self, who: &Who, action: &str, comment: Option<&str>, result: Result<(), &str>) {
        self.line(who, action, comment, result.map(|()| json!({})));
    }

    fn line(&self, who: &Who, action: &str, comment: Option<&str>, result: Result<serde_json::Value, &str>) {
        let mut line = json!({
            "time": clock::calendar(clock::now()),
            "user": who.user,
            "origin": who.origin,
            "session": who.session,
            "action": action,
        });
        if let Some(comment) = comment {
            line["comment"] = comment.into();
        }
        match result {
            Ok(more) => {
                line["result"] = "done".into();
                if let (Some(line), serde_json::Value::Object(more)) = (line.as_object_mut(), more) {
                    line.extend(more);
                }
            }
            Err(reason) => {
                line["result"] = "refused".into();
                line["reason"] = reason.into();
            }
        }
        tracing::info!(
            target: "audit",
            user = who.user,
            origin = who.origin,
            session = who.session,
            result = %line["result"],
            "{action}"
        );
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.write(&mut file, &line) {
            // It is in the log of the process all the same; the file is tried again with the next line.
            tracing::error!("audit log {}: {error}", self.path.display());
            *file = Slot { file: None, torn: true };
        }
    }

    fn write(&self, slot: &mut Slot, line: &serde_json::Value) -> io::Result<()> {
        if let Some(file) = &slot.file
            && file.metadata()?.len() > LARGEST
        {
            slot.file = None;
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        let file = match &mut slot.file {
            Some(file) => file,
            none => none.insert(append(&self.path)?),
        };
        // What a full disk has cut stays a line of its own.
        let mut text = if slot.torn { b"\n".to_vec() } else { Vec::new() };
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
        file.write_all(&text)?;
        slot.torn = false;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
