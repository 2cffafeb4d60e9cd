//! Who may do what: the one place that CLI, NETCONF and gRPC ask.

use std::collections::BTreeMap;

use api::{Request, Role};
use nix::unistd::{Uid, User};
use serde::Deserialize;
use tree::{Tree, json};

use crate::datastore::{path_to, without};

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// State, counters, configuration.
    Look,
    /// `call` and `clear`.
    Call,
    /// Change the configuration, save it.
    Configure,
}

impl Action {
    /// The least role that may.
    #[must_use]
    pub fn least(self) -> Role {
        match self {
            Action::Look => Role::ReadOnly,
            Action::Call => Role::Operator,
            Action::Configure => Role::Admin,
        }
    }

    /// What a request is.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        match request {
            Request::SetUnitMode { .. } | Request::ClearHold { .. } => Action::Call,
            Request::Edit { .. }
            | Request::Load { .. }
            | Request::LoadReplace { .. }
            | Request::Rollback { .. }
            | Request::Discard
            | Request::Check
            | Request::Apply { .. }
            | Request::Save => Action::Configure,
            _ => Action::Look,
        }
    }
}

/// Somebody may not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The role is too low.
    #[error("user {user} is {}; this needs the role {}", name(*.role), name(*.needed))]
    Role {
        /// The user.
        user: String,
        /// What he is.
        role: Role,
        /// What he would have to be.
        needed: Role,
    },
    /// A certificate without a user's name.
    #[error("the certificate must have one common name (CN), which is that of a user of `access`")]
    Nameless,
    /// Not known here.
    #[error("user {user} has no role here; an admin gives one with `set access user {user} role read-only`")]
    Unknown {
        /// The name that the system has for the peer.
        user: String,
    },
}

/// The name of a role in the configuration.
#[must_use]
pub fn name(role: Role) -> &'static str {
    match role {
        Role::ReadOnly => "read-only",
        Role::Operator => "operator",
        Role::Admin => "admin",
    }
}

/// Whether a user of this role may.
///
/// # Errors
/// [`Denied::Role`].
pub fn permit(user: &str, role: Role, action: Action) -> Result<(), Denied> {
    let needed = action.least();
    if role >= needed { Ok(()) } else { Err(Denied::Role { user: user.to_owned(), role, needed }) }
}

/// A user of the configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Account {
    /// Login name.
    pub name: String,
    /// What he may do.
    pub role: Role,
    /// Public keys, OpenSSH format.
    #[serde(default)]
    pub ssh_key: Vec<String>,
    /// Argon2, PHC string format.
    pub password_hash: Option<String>,
}

/// Where NETCONF listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NetconfAccess {
    /// It listens.
    pub enabled: bool,
    /// Addresses; the loopback where none is set.
    pub listen_address: Vec<String>,
    /// TCP port.
    pub port: Option<u16>,
    /// Sessions at once.
    pub max_sessions: Option<u16>,
    /// Seconds; 0 for never.
    pub idle_timeout: Option<u32>,
}

/// The part `access` of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Users by name.
    pub accounts: BTreeMap<String, Account>,
    /// NETCONF.
    pub netconf: NetconfAccess,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessTree {
    user: Vec<Account>,
    netconf: NetconfAccess,
}

impl Access {
    /// Of a configuration that keeps the rules of the modules.
    #[must_use]
    pub fn of(tree: &Tree) -> Self {
        let Some(path) = path_to(tree.schema(), &["access"]).filter(|path| tree.contains(path)) else {
            return Access::default();
        };
        let part: AccessTree = serde_json::from_value(json::value(tree, &path)).unwrap_or_else(|error| {
            // Nobody but root gets in then.
            tracing::error!("access: {error}");
            AccessTree::default()
        });
        let accounts = part.user.into_iter().map(|account| (account.name.clone(), account)).collect();
        Access { accounts, netconf: part.netconf }
    }

    /// The user at the other end of the Unix socket, and his role: root and the user that sluiced runs as are admins,
    /// others are what the configuration says of their login name.
    ///
    /// # Errors
    /// [`Denied::Unknown`].
    pub fn of_peer(&self, uid: u32) -> Result<(String, Role), Denied> {
        let login = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
        let user = login.unwrap_or_else(|| format!("uid-{uid}"));
        if uid == 0 || uid == Uid::effective().as_raw() {
            return Ok((user, Role::Admin));
        }
        match self.accounts.get(&user) {
            Some(account) => Ok((user, account.role)),
            None => Err(Denied::Unknown { user }),
        }
    }

    /// The user whose name is in a certificate, and his role.
    ///
    /// # Errors
    /// [`Denied::Unknown`]; [`Denied::Nameless`] where no name is in it.
    pub fn of_certificate(&self, name: Option<&str>) -> Result<(String, Role), Denied> {
        let user = name.ok_or(Denied::Nameless)?.to_owned();
        match self.accounts.get(&user) {
            Some(account) => Ok((user, account.role)),
            None => Err(Denied::Unknown { user }),
        }
    }
}

/// What a user of this role gets to see of a configuration: keys and password hashes are for admins.
#[must_use]
pub fn visible(tree: &Tree, role: Role) -> Tree {
    match path_to(tree.schema(), &["access"]) {
        Some(access) if role < Role::Admin => without(tree, &access),
        _ => tree.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_what_it_may_and_no_more() {
        let table = [
            (Role::ReadOnly, [true, false, false]),
            (Role::Operator, [true, true, false]),
            (Role::Admin, [true, true, true]),
        ];
        for (role, may) in table {
            let found = [Action::Look, Action::Call, Action::Configure]
                .map(|action| permit("somebody", role, action).is_ok());
            assert_eq!(found, may, "{role:?}");
        }
    }
}
