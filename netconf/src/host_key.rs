//! The key by which clients know this server.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use russh::keys::key::safe_rng;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use thiserror::Error;

/// File of the key in its directory, in OpenSSH's format.
pub const FILE: &str = "ssh_host_ed25519_key";

/// Why there is no host key.
#[derive(Debug, Error)]
pub enum HostKeyError {
    /// The file or its directory.
    #[error("{what} {path}: {error}")]
    File {
        /// What was being done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Others may read it.
    #[error("{path} has mode {mode:03o}: a host key must be its owner's alone (chmod 600)")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// No key is in the file, or none could be made.
    #[error("{path}: {error}")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: russh::keys::ssh_key::Error,
    },
}

/// The key in this directory; made, with mode 0600, where there is none. A crash leaves a whole key or none.
///
/// # Errors
/// Where the key cannot be read or written, or others can read it.
pub fn load_or_make(directory: &Path) -> Result<PrivateKey, HostKeyError> {
    let path = directory.join(FILE);
    match fs::read(&path) {
        Ok(text) => {
            let mode = fs::metadata(&path).map_err(fault("reading the mode of", &path))?.mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(HostKeyError::Mode { path, mode });
            }
            PrivateKey::from_openssh(text).map_err(|error| HostKeyError::Key { path, error })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => make(directory, &path),
        Err(error) => Err(fault("reading", &path)(error)),
    }
}

fn make(directory: &Path, path: &Path) -> Result<PrivateKey, HostKeyError> {
    let wrong = |error| HostKeyError::Key { path: path.to_owned(), error };
    let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).map_err(wrong)?;
    let text = key.to_openssh(LineEnding::LF).map_err(wrong)?;
    let temporary = directory.join(format!(".{FILE}.{}", std::process::id()));
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(fault("removing", &temporary)(error));
        }
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(fault("making", &temporary))?;
    file.write_all(text.as_bytes()).map_err(fault("writing", &temporary))?;
    file.sync_all().map_err(fault("writing", &temporary))?;
    fs::rename(&temporary, path).map_err(fault("renaming a new key to", path))?;
    let opened = File::open(directory).map_err(fault("opening", directory))?;
    opened.sync_all().map_err(fault("writing", directory))?;
    Ok(key)
}

fn fault(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> HostKeyError {
    move |error| HostKeyError::File { what, path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_start_makes_a_key_that_later_starts_find() {
        let directory = tempfile::tempdir().unwrap();
        let made = load_or_make(directory.path()).unwrap();
        let path = directory.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let found = load_or_make(directory.path()).unwrap();
        assert_eq!(made.public_key(), found.public_key());
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        load_or_make(directory.path()).unwrap();
        let path = directory.path().join(FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = load_or_make(directory.path()).unwrap_err().to_string();
        assert!(error.contains("mode 640"), "{error}");
    }

    #[test]
    fn a_broken_key_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, "half a key").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(load_or_make(directory.path()), Err(HostKeyError::Key { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "half a key");
    }
}
