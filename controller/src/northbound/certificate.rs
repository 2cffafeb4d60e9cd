//! The certificate of servers that are given none: made here, kept in the state directory.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use x509_parser::prelude::{FromDer, X509Certificate};

/// File of certificate and key, PEM, in its directory.
pub const FILE: &str = "tls_self_signed.pem";

/// It is good for ten years: who trusts it was told so by hand.
const GOOD_FOR: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Clients whose clocks are behind by less than this trust it at once.
const CLOCKS_DIFFER: Duration = Duration::from_secs(86_400);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file or its directory.
    #[error("{what} {}: {error}", .path.display())]
    File {
        /// What was being done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Others may read it.
    #[error("{} has mode {mode:03o}: it has a private key, which must be its owner's alone (chmod 600)", .path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// None is in the file.
    #[error("{}: {reason}; without the file, a new one is made", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// None could be made.
    #[error("a self-signed certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// Certificate and key, PEM, of this directory; made, with mode 0600, where there is none or it has expired. A crash
/// leaves a whole file or none.
///
/// # Errors
/// Where it cannot be read or written, or others can read it.
pub fn load_or_make(directory: &Path, now: SystemTime) -> Result<String, CertificateError> {
    // Two servers may want it at the same time, and shall have the same.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = directory.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let mode = fs::metadata(&path).map_err(fault("reading the mode of", &path))?.mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(CertificateError::Mode { path, mode });
            }
            let expires =
                expires(&text).map_err(|reason| CertificateError::Content { path: path.clone(), reason })?;
            if now < expires { Ok(text) } else { make(directory, &path, now) }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => make(directory, &path, now),
        Err(error) => Err(fault("reading", &path)(error)),
    }
}

/// When the first certificate of a PEM text expires.
fn expires(text: &str) -> Result<SystemTime, String> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes())
        .map_err(|error| format!("no certificate: {error}"))?;
    let (_, certificate) =
        X509Certificate::from_der(&pem.contents).map_err(|error| format!("no certificate: {error}"))?;
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
    Ok(UNIX_EPOCH + Duration::from_secs(seconds))
}

fn make(directory: &Path, path: &Path, now: SystemTime) -> Result<String, CertificateError> {
    let host = rustix::system::uname().nodename().to_str().ok().map(str::to_owned);
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(host.clone().filter(|host| *host != "localhost"));
    // A host name that is none of the DNS.
    let mut parameters = CertificateParams::new(names.clone())
        .or_else(|_| CertificateParams::new(names.into_iter().take(3).collect::<Vec<_>>()))?;
    parameters.distinguished_name.push(DnType::CommonName, host.unwrap_or_else(|| "sluiced".to_owned()));
    parameters.distinguished_name.push(DnType::OrganizationName, "Sluice");
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    parameters.not_before = (now - CLOCKS_DIFFER).into();
    parameters.not_after = (now + GOOD_FOR).into();
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    let text = certificate.pem() + &key.serialize_pem();
    let write = || {
        // Its mode is 0600 from the first.
        let mut file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o600))
            .prefix(crate::state_dir::TEMPORARY)
            .tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(fault("writing", path))?;
    Ok(text)
}

fn fault(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CertificateError {
    move |error| CertificateError::File { what, path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_start_makes_one_that_later_starts_find_until_it_expires() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let made = load_or_make(directory.path(), now).unwrap();
        let path = directory.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let later = now + GOOD_FOR - Duration::from_secs(60);
        assert_eq!(load_or_make(directory.path(), later).unwrap(), made);

        let new = load_or_make(directory.path(), now + GOOD_FOR).unwrap();
        assert_ne!(new, made);
        assert_eq!(fs::read_to_string(&path).unwrap(), new);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn one_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        load_or_make(directory.path(), SystemTime::now()).unwrap();
        let path = directory.path().join(FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = load_or_make(directory.path(), SystemTime::now()).unwrap_err().to_string();
        assert!(error.contains("mode 640"), "{error}");
    }

    #[test]
    fn a_broken_one_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, "half a certificate").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let result = load_or_make(directory.path(), SystemTime::now());
        assert!(matches!(result, Err(CertificateError::Content { .. })), "{result:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "half a certificate");
    }
}
