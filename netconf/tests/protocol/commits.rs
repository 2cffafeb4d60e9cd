//! Commits, confirmed commits and locks.

use api::Role;
use netconf::Server;
use std::sync::Arc;

use super::begin;
use super::store::client::{Client, edit, get};
use super::store::schema::NS;
use super::store::{Shared, Store};

fn port(name: &str) -> String {
    format!("<port xmlns=\"{NS}\"><name>{name}</name></port>")
}

fn lock(datastore: &str) -> String {
    format!("<lock><target><{datastore}/></target></lock>")
}

fn unlock(datastore: &str) -> String {
    format!("<unlock><target><{datastore}/></target></unlock>")
}

async fn two() -> (Arc<Store>, Server<Shared>, Client, Client) {
    let (store, server, one) = begin().await;
    let two = Client::new(&server, "admin", Role::Admin).await;
    (store, server, one, two)
}

/// How many ports are in force.
fn ports(store: &Store) -> usize {
    store.running().entries(&store.path("/plant:port")).count()
}

#[tokio::test]
async fn candidates_are_private_until_they_are_committed() {
    let (_, _, mut one, mut two) = two().await;
    one.edit(&port("p1")).await;
    assert_eq!(two.data(&get("candidate", "")).await, "");
    one.ok("<commit/>").await;
    assert!(two.data(&get("candidate", "")).await.contains("p1"));
    two.edit(&port("p2")).await;
    two.ok("<discard-changes/>").await;
    assert!(!two.data(&get("candidate", "")).await.contains("p2"));
}

#[tokio::test]
async fn two_that_edit_the_same_hear_of_it_and_others_do_not() {
    let (store, _, mut one, mut two) = two().await;
    let mtu =
        |name: &str, mtu: u32| format!("<port xmlns=\"{NS}\"><name>{name}</name><mtu>{mtu}</mtu></port>");
    one.edit(&(mtu("p1", 100) + &mtu("p2", 100))).await;
    one.ok("<commit/>").await;
    one.edit(&mtu("p1", 200)).await;
    two.edit(&mtu("p2", 200)).await;
    one.ok("<commit/>").await;
    two.ok("<commit/>").await;
    one.edit(&mtu("p1", 300)).await;
    two.edit(&mtu("p1", 400)).await;
    two.ok("<commit/>").await;
    assert_eq!(one.refused("<commit/>").await, ["operation-failed /pl:port[pl:name='p1']/pl:mtu"]);
    assert_eq!(store.running().value(&store.path("/plant:port[name='p1']/mtu")), Some("400"));
}

#[tokio::test]
async fn locks_keep_others_out() {
    let (store, _, mut one, mut two) = two().await;
    let holder = one.session;
    one.ok(&lock("candidate")).await;
    let in_use = format!("in-use session-id={holder}");
    assert_eq!(two.refused(&lock("candidate")).await, [format!("lock-denied session-id={holder}")]);
    assert_eq!(one.refused(&lock("candidate")).await, [format!("lock-denied session-id={holder}")]);
    let copy = "<copy-config><target><candidate/></target><source><startup/></source></copy-config>";
    for operation in [&edit(&port("p2")), "<commit/>", "<discard-changes/>", copy] {
        assert_eq!(two.refused(operation).await, std::slice::from_ref(&in_use), "{operation}");
    }
    assert_eq!(two.refused(&unlock("candidate")).await, [format!("operation-failed session-id={holder}")]);
    one.edit(&port("p1")).await;
    one.ok("<commit/>").await;
    one.ok(&unlock("candidate")).await;
    assert_eq!(one.refused(&unlock("candidate")).await, ["operation-failed"]);
    two.ok(&lock("running")).await;
    one.edit(&port("p3")).await;
    assert_eq!(one.refused("<commit/>").await, [format!("in-use session-id={}", two.session)]);
    two.ok(&lock("startup")).await;
    let save = "<copy-config><target><startup/></target><source><running/></source></copy-config>";
    let delete = "<delete-config><target><startup/></target></delete-config>";
    for operation in [save, delete] {
        assert_eq!(one.refused(operation).await, [format!("in-use session-id={}", two.session)]);
    }
    // The locks go with their session.
    two.gone().await;
    one.ok("<commit/>").await;
    one.ok(save).await;
    assert_eq!(ports(&store), 2);
}

#[tokio::test]
async fn a_candidate_with_changes_is_not_locked() {
    let (_, _, mut one, _two) = two().await;
    one.edit(&port("p1")).await;
    assert_eq!(one.refused(&lock("candidate")).await, [format!("lock-denied session-id={}", one.session)]);
    one.ok("<discard-changes/>").await;
    one.ok(&lock("candidate")).await;
}

#[tokio::test]
async fn a_lock_of_another_kind_of_session_is_told_as_session_0() {
    let (store, _, _) = begin().await;
    let locks = Arc::new(netconf::Locks::default());
    let key = super::store::client::key();
    let server = Server::new(Arc::new(Shared(store)), Arc::clone(&locks), key, netconf::Settings::default());
    let mut client = Client::new(&server, "admin", Role::Admin).await;
    locks.lock(netconf::Datastore::Running, 4000).unwrap();
    assert_eq!(client.refused(&lock("running")).await, ["lock-denied session-id=0"]);
    assert_eq!(client.refused("<commit/>").await, ["in-use session-id=0"]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_nobody_confirms_is_undone() {
    let (store, _, mut one, mut two) = two().await;
    one.edit(&port("p1")).await;
    one.ok("<commit><confirmed/><confirm-timeout>30</confirm-timeout></commit>").await;
    assert_eq!(ports(&store), 1);
    let denied = format!("lock-denied session-id={}", one.session);
    assert_eq!(two.refused(&lock("running")).await, [denied]);
    two.edit(&port("p2")).await;
    assert_eq!(two.refused("<commit/>").await, [format!("in-use session-id={}", one.session)]);
    tokio::time::sleep(std::time::Duration::from_secs(31)).await;
    assert_eq!(ports(&store), 0);
    // The default is ten minutes.
    one.edit(&port("p1")).await;
    one.ok("<commit><confirmed/></commit>").await;
    tokio::time::sleep(std::time::Duration::from_secs(599)).await;
    assert_eq!(ports(&store), 1);
    one.ok("<commit/>").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(ports(&store), 1);
}

#[tokio::test]
async fn a_commit_that_waits_is_cancelled_or_goes_with_its_session() {
    let (store, _, mut one, mut two) = two().await;
    assert_eq!(one.refused("<cancel-commit/>").await, ["operation-failed"]);
    one.edit(&port("p1")).await;
    one.ok("<commit><confirmed/></commit>").await;
    assert_eq!(two.refused("<cancel-commit/>").await, [format!("in-use session-id={}", one.session)]);
    one.ok("<cancel-commit/>").await;
    assert_eq!(ports(&store), 0);
    one.edit(&port("p1")).await;
    one.ok("<commit><confirmed/></commit>").await;
    // A second one carries it on.
    one.edit(&port("p2")).await;
    one.ok("<commit><confirmed/></commit>").await;
    assert_eq!(ports(&store), 2);
    one.gone().await;
    assert_eq!(ports(&store), 0);
}

#[tokio::test]
async fn a_commit_that_persists_is_confirmed_by_whoever_has_the_token() {
    let (store, _, mut one, mut two) = two().await;
    one.edit(&port("p1")).await;
    assert_eq!(
        one.refused("<commit><persist-id>t</persist-id></commit>").await,
        ["invalid-value bad-element=persist-id"]
    );
    assert_eq!(
        one.refused("<commit><persist>t</persist></commit>").await,
        ["missing-element bad-element=confirmed"]
    );
    one.ok("<commit><confirmed/><persist>t</persist></commit>").await;
    one.gone().await;
    assert_eq!(ports(&store), 1);
    for commit in ["<commit/>", "<commit><persist-id>u</persist-id></commit>"] {
        assert_eq!(two.refused(commit).await, ["invalid-value bad-element=persist-id"]);
    }
    assert_eq!(two.refused("<cancel-commit/>").await, ["invalid-value bad-element=persist-id"]);
    assert_eq!(two.refused(&lock("running")).await, ["lock-denied session-id=0"]);
    two.ok("<commit><persist-id>t</persist-id></commit>").await;
    two.edit(&port("p2")).await;
    two.ok("<commit><confirmed/><persist>v</persist></commit>").await;
    two.ok("<cancel-commit><persist-id>v</persist-id></cancel-commit>").await;
    assert_eq!(ports(&store), 1);
}

#[tokio::test]
async fn parameters_of_a_commit_are_checked() {
    let (_, _, mut one) = begin().await;
    for (inner, error) in [
        ("<confirmed/><confirm-timeout>0</confirm-timeout>", "invalid-value bad-element=confirm-timeout"),
        (
            "<confirmed/><confirm-timeout>4294967296</confirm-timeout>",
            "invalid-value bad-element=confirm-timeout",
        ),
        ("<confirmed>yes</confirmed>", "bad-element bad-element=confirmed"),
        ("<confirmed/><confirmed/>", "bad-element bad-element=confirmed"),
        ("<confirm-timeout>9</confirm-timeout>", "missing-element bad-element=confirmed"),
        ("<comment>x</comment>", "unknown-element bad-element=comment"),
    ] {
        assert_eq!(one.refused(&format!("<commit>{inner}</commit>")).await, [error]);
    }
}
