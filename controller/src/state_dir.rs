//! What must outlive the process: units' modes by hand, and a configuration that was loaded over the file.
//!
//! Files are written to a temporary name, synced and renamed: a crash leaves the old file or the new one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use api::UnitMode;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kept {
    /// Units whose mode is not `auto`.
    pub unit_modes: BTreeMap<String, UnitMode>,
    /// A configuration that was loaded, and the digest of the file's text that it replaced.
    pub loaded: Option<Loaded>,
}

/// A configuration that is in force instead of the file's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Loaded {
    /// SHA-256 of the file's text; once the file is another, it wins again.
    pub instead_of: String,
    /// RFC 7951 JSON.
    pub text: String,
}

/// The state directory.
#[derive(Clone, Debug)]
pub struct StateDir(PathBuf);

/// The directory or a file in it cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("state directory: {}: {source}", .path.display())]
pub struct StateDirError {
    path: PathBuf,
    source: io::Error,
}

impl StateDir {
    /// Makes the directory where it is not there.
    ///
    /// # Errors
    /// The path and what the system says.
    pub fn open(path: &Path) -> Result<Self, StateDirError> {
        fs::create_dir_all(path).map_err(|source| StateDirError { path: path.to_owned(), source })?;
        Ok(StateDir(path.to_owned()))
    }

    fn file(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// What was kept; nothing where there is no file yet.
    ///
    /// # Errors
    /// An unreadable file: it is not overwritten silently.
    pub fn load(&self) -> Result<Kept, StateDirError> {
        let path = self.file();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
            Err(source) => return Err(StateDirError { path, source }),
        };
        serde_json::from_slice(&text).map_err(|error| StateDirError { path, source: error.into() })
    }

    /// Keeps.
    ///
    /// # Errors
    /// The path and what the system says; then the old file stands.
    pub fn save(&self, kept: &Kept) -> Result<(), StateDirError> {
        let path = self.file();
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
            serde_json::to_writer_pretty(&mut file, kept)?;
            file.flush()?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            fs::File::open(&self.0)?.sync_all()
        };
        write().map_err(|source| StateDirError { path: path.clone(), source })
    }
}

/// SHA-256 of a configuration's text.
#[must_use]
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
