//! The protocol over a pipe: what is asked, and what is answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod store;

#[path = "protocol/commits.rs"]
mod commits;
#[path = "protocol/edits.rs"]
mod edits;
#[path = "protocol/filters.rs"]
mod filters;
#[path = "protocol/messages.rs"]
mod messages;
#[path = "protocol/mutations.rs"]
mod mutations;
#[path = "protocol/sessions.rs"]
mod sessions;

use std::collections::HashMap;
use std::sync::Arc;

use api::Role;
use netconf::{Server, Settings};
use store::client::{Client, server};
use store::{Shared, Store};

/// A store, a server and an administrator's session.
async fn begin() -> (Arc<Store>, Server<Shared>, Client) {
    let store = Store::new(HashMap::new());
    let server = server(&store, Settings::default());
    let client = Client::new(&server, "admin", Role::Admin).await;
    (store, server, client)
}
