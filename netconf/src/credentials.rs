//! What a user proves to be that user with.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::Role;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use russh::keys::PublicKey;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::warn;

/// What is known of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// What the user may do.
    pub role: Role,
    /// Public keys, each a line of `authorized_keys` without options: `ssh-ed25519 AAAA... comment`.
    pub keys: Vec<String>,
    /// Argon2 hash of the password in PHC format, `$argon2id$v=19$...`; without one, keys alone let in.
    pub password_hash: Option<String>,
}

/// Why a password was not hashed.
#[derive(Debug, Error)]
#[error("hashing a password: {0}")]
pub struct HashError(String);

/// The hash of a password as [`Credentials`] wants it, with a salt of its own.
///
/// # Errors
/// Where the system gives no random bytes.
pub fn hash(password: &str) -> Result<String, HashError> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string()).map_err(|error| HashError(error.to_string()))
}

/// Hash of no password, to spend the same time on users that there are not.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c2x1aWNlLW5vYm9keS0wMA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Passwords that are being hashed at a time: each takes a core and 19 MiB.
static HASHING: Semaphore = Semaphore::const_new(2);

/// Whether it is this user's password. Takes as long for a user that there is not.
pub(crate) async fn password_fits(credentials: Option<&Credentials>, password: &str) -> bool {
    let known = credentials.and_then(|credentials| credentials.password_hash.clone());
    let exists = known.is_some();
    let hash = known.unwrap_or_else(|| NOBODY.to_owned());
    let password = password.to_owned();
    let Ok(_permit) = HASHING.acquire().await else { return false };
    let fits = tokio::task::spawn_blocking(move || match PasswordHash::new(&hash) {
        Ok(hash) => Argon2::default().verify_password(password.as_bytes(), &hash).is_ok(),
        Err(error) => {
            warn!(%error, "a user's password-hash is no argon2 hash in PHC format: nobody gets in with it");
            false
        }
    });
    fits.await.unwrap_or(false) && exists
}

/// Whether a line is a public key as in OpenSSH's `authorized_keys`.
///
/// # Errors
/// Why not.
pub fn check_key(line: &str) -> Result<(), String> {
    PublicKey::from_openssh(line.trim()).map(drop).map_err(|error| error.to_string())
}

/// Whether it is one of this user's keys.
pub(crate) fn key_fits(credentials: Option<&Credentials>, offered: &PublicKey) -> bool {
    let keys = credentials.map_or(&[][..], |credentials| &credentials.keys);
    // All are looked at, so that the time tells nothing about which one it is.
    keys.iter().fold(false, |fits, line| match PublicKey::from_openssh(line.trim()) {
        Ok(key) => fits | (key.key_data() == offered.key_data()),
        Err(error) => {
            warn!(%error, "an ssh-key of a user is no public key: nobody gets in with it");
            fits
        }
    })
}

/// Failed logins by address, to slow down who guesses.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl Failures {
    /// Addresses that are remembered.
    const REMEMBERED: usize = 4096;
    /// Time without a failure after which an address is as good as new.
    const FORGOTTEN: Duration = Duration::from_secs(120);
    /// Longest delay.
    const LONGEST: Duration = Duration::from_secs(10);

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, (u32, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a failure down. How long to wait before telling: nothing for the first few, then twice as long each time.
    pub(crate) fn failed(&self, address: IpAddr) -> Duration {
        let now = Instant::now();
        let mut failures = self.lock();
        if failures.len() >= Self::REMEMBERED {
            failures.retain(|_, (_, last)| now.duration_since(*last) < Self::FORGOTTEN);
            if failures.len() >= Self::REMEMBERED {
                return Self::LONGEST;
            }
        }
        let (count, last) = failures.entry(network(address)).or_insert((0, now));
        if now.duration_since(*last) >= Self::FORGOTTEN {
            *count = 0;
        }
        *count = count.saturating_add(1);
        *last = now;
        match *count {
            0..=3 => Duration::ZERO,
            count => Duration::from_millis(500).saturating_mul(1 << (count - 4).min(10)).min(Self::LONGEST),
        }
    }

    /// Forgets an address that knows a way in.
    pub(crate) fn succeeded(&self, address: IpAddr) {
        self.lock().remove(&network(address));
    }
}

/// An address of version 6 by its /64, which one host has all of.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_none() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(keys: &[&str], password: Option<&str>) -> Credentials {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        Credentials { role: Role::Admin, keys, password_hash: password.map(|text| hash(text).unwrap()) }
    }

    #[tokio::test]
    async fn only_the_users_own_password_fits() {
        let user = credentials(&[], Some("secret"));
        assert!(password_fits(Some(&user), "secret").await);
        assert!(!password_fits(Some(&user), "Secret").await);
        assert!(!password_fits(None, "secret").await);
        assert!(!password_fits(Some(&credentials(&[], None)), "").await);
        let broken = Credentials { password_hash: Some("plain".to_owned()), ..user };
        assert!(!password_fits(Some(&broken), "plain").await);
    }

    #[test]
    fn the_hash_of_nobody_is_one_that_costs_as_much() {
        let made = hash("x").unwrap();
        let (made, nobody) = (PasswordHash::new(&made).unwrap(), PasswordHash::new(NOBODY).unwrap());
        assert_eq!((made.algorithm, made.params.to_string()), (nobody.algorithm, nobody.params.to_string()));
    }

    #[test]
    fn a_key_fits_whatever_its_comment_and_the_keys_beside_it() {
        let one = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
        let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
        let offered = PublicKey::from_openssh(&format!("{one} laptop")).unwrap();
        assert!(key_fits(Some(&credentials(&["broken", other, one], None)), &offered));
        assert!(!key_fits(Some(&credentials(&["broken", other], None)), &offered));
        assert!(!key_fits(None, &offered));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_guesses_waits_longer_each_time() {
        let failures = Failures::default();
        let (one, near, far) = ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1");
        let failed = |address: &str| failures.failed(address.parse().unwrap()).as_millis();
        assert_eq!([failed(one), failed(near), failed(one)], [0, 0, 0]);
        assert_eq!([failed(one), failed(near), failed(one)], [500, 1000, 2000]);
        assert_eq!(failed(far), 0);
        for _ in 0..40 {
            failed(one);
        }
        assert_eq!(failed(one), 10_000);
        tokio::time::advance(Failures::FORGOTTEN).await;
        assert_eq!(failed(one), 0);
        failed(one);
        failed(one);
        failures.succeeded(one.parse().unwrap());
        assert_eq!(failed(one), 0);
    }
}
