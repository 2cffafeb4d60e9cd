//! What must outlive the process: units' modes by hand, a configuration that was loaded over the file, and numbers
//! that the data plane does not tell.
//!
//! Files are written to a temporary name, synced and renamed: a crash leaves the old file or the new one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use api::UnitMode;
use dataplane::{LinkIndex, PairId, UnitId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use site::Ids;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kept {
    /// Units whose mode is not `auto`.
    pub unit_modes: BTreeMap<String, UnitMode>,
    /// Numbers in force, where the data plane does not keep the names that go with them.
    pub numbers: Option<Numbers>,
}

/// Numbers of links, units, pairs and flows by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Numbers {
    links: BTreeMap<String, LinkIndex>,
    units: BTreeMap<String, UnitId>,
    /// By `UNIT/PAIR`.
    pairs: BTreeMap<String, PairId>,
    flows: BTreeMap<String, i32>,
    /// The index in the headers of probes.
    probe: Option<LinkIndex>,
}

impl From<&Ids> for Numbers {
    fn from(ids: &Ids) -> Self {
        Numbers {
            links: ids.links.clone(),
            units: ids.units.clone(),
            pairs: ids.pairs.iter().map(|(name, id)| (name.to_string(), *id)).collect(),
            flows: ids.flows.clone(),
            probe: ids.probe,
        }
    }
}

impl From<Numbers> for Ids {
    fn from(numbers: Numbers) -> Self {
        Ids {
            links: numbers.links,
            units: numbers.units,
            pairs: numbers
                .pairs
                .into_iter()
                .filter_map(|(name, id)| Some((name.parse().ok()?, id)))
                .collect(),
            flows: numbers.flows,
            probe: numbers.probe,
        }
    }
}

/// Beginning of temporary names; what a crash left of them is removed at the next start.
pub(crate) const TEMPORARY: &str = ".state-";

/// The state directory; one process has it at a time.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// The kernel gives it back when the process ends, however it ends.
    _lock: Flock<fs::File>,
}

/// The directory or a file in it cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("state directory: {}: {source}", .path.display())]
pub struct StateDirError {
    path: PathBuf,
    source: io::Error,
}

impl StateDir {
    /// Makes the directory where it is not there, and takes it.
    ///
    /// # Errors
    /// The path and what the system says; another process that has it.
    pub fn open(path: &Path) -> Result<Self, StateDirError> {
        let fault = |source| StateDirError { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(fault)?;
        let file = fs::File::create(path.join("lock")).map_err(fault)?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
            fault(match errno {
                nix::errno::Errno::EWOULDBLOCK => {
                    io::Error::other("another sluiced has it; give each its own --state-dir")
                }
                errno => errno.into(),
            })
        })?;
        for entry in fs::read_dir(path).map_err(fault)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                // One that cannot be removed does no harm.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(StateDir { path: path.to_owned(), _lock: lock })
    }

    fn file(&self) -> PathBuf {
        self.path.join("state.json")
    }

    /// Puts an unreadable file aside, so that a start is possible; where to.
    ///
    /// # Errors
    /// The path and what the system says.
    pub fn set_aside(&self) -> Result<PathBuf, StateDirError> {
        let aside = self.path.join("state.json.unreadable");
        fs::rename(self.file(), &aside).map_err(|source| StateDirError { path: self.file(), source })?;
        Ok(aside)
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
            let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.path)?;
            serde_json::to_writer_pretty(&mut file, kept)?;
            file.flush()?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            fs::File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| StateDirError { path: path.clone(), source })
    }
}

/// SHA-256 of a configuration's text.
#[must_use]
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
