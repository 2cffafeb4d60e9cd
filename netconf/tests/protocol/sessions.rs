//! Sessions: their number, their end, and what is told to them.

use std::collections::HashMap;
use std::time::Duration;

use api::Role;
use netconf::{Ending, Settings};
use tokio::time::{sleep, timeout};

use super::begin;
use super::store::Store;
use super::store::client::{BASE, Client, DEADLINE, get, server};
use super::store::schema::NS;

fn port(name: &str) -> String {
    format!("<port xmlns=\"{NS}\"><name>{name}</name></port>")
}

const SUBSCRIBE: &str = "urn:ietf:params:xml:ns:netconf:notification:1.0";

fn subscribe(inner: &str) -> String {
    format!("<create-subscription xmlns=\"{SUBSCRIBE}\">{inner}</create-subscription>")
}

#[tokio::test]
async fn the_hello_tells_what_there_is() {
    let (_, _, client) = begin().await;
    for capability in [
        "urn:ietf:params:netconf:base:1.0",
        "urn:ietf:params:netconf:base:1.1",
        "urn:ietf:params:netconf:capability:candidate:1.0",
        "urn:ietf:params:netconf:capability:confirmed-commit:1.1",
        "urn:ietf:params:netconf:capability:rollback-on-error:1.0",
        "urn:ietf:params:netconf:capability:validate:1.1",
        "urn:ietf:params:netconf:capability:startup:1.0",
        "urn:ietf:params:netconf:capability:notification:1.0",
    ] {
        assert!(client.hello.contains(&format!("<capability>{capability}</capability>")), "{capability}");
    }
    assert!(!client.hello.contains("writable-running") && !client.hello.contains("xpath"));
    assert!(client.hello.contains("with-defaults:1.0?basic-mode=explicit&amp;also-supported="));
}

#[tokio::test]
async fn close_session_ends_it() {
    let (store, _, mut client) = begin().await;
    client.edit(&port("p1")).await;
    client.ok("<close-session/>").await;
    assert_eq!(client.receive().await, None);
    let session = client.session;
    assert_eq!(client.end().await, Ending::Closed);
    assert_eq!(store.endings(), [(session, Ending::Closed)]);
    assert_eq!(store.candidates(), 0);
}

#[tokio::test]
async fn a_killed_session_holds_nothing_any_more() {
    let (store, server, mut one) = begin().await;
    let mut two = Client::new(&server, "admin", Role::Admin).await;
    two.ok("<lock><target><candidate/></target></lock>").await;
    two.edit(&port("p1")).await;
    two.ok("<commit><confirmed/></commit>").await;
    let kill = |session: u32| format!("<kill-session><session-id>{session}</session-id></kill-session>");
    one.ok(&kill(two.session)).await;
    one.ok("<lock><target><candidate/></target></lock>").await;
    one.ok("<lock><target><running/></target></lock>").await;
    assert_eq!(one.data(&get("running", "")).await, "");
    assert_eq!(store.endings(), [(two.session, Ending::Killed(one.session))]);
    for session in [two.session, one.session, 12345] {
        assert_eq!(one.refused(&kill(session)).await, ["invalid-value bad-element=session-id"]);
    }
    assert_eq!(one.refused(&kill(0)).await, ["invalid-value bad-element=session-id"]);
    assert_eq!(one.refused("<kill-session/>").await, ["missing-element bad-element=session-id"]);
    assert_eq!(two.end().await, Ending::Killed(one.session));
}

#[tokio::test]
async fn a_client_that_goes_takes_its_candidate_along() {
    let (store, _, mut client) = begin().await;
    client.edit(&port("p1")).await;
    assert_eq!(store.candidates(), 1);
    assert!(matches!(client.gone().await, Ending::Dropped(_)));
    assert_eq!(store.candidates(), 0);
}

#[tokio::test]
async fn a_fault_of_the_backend_costs_its_session_only() {
    let (store, server, mut one) = begin().await;
    let mut two = Client::new(&server, "admin", Role::Admin).await;
    two.ok("<lock><target><running/></target></lock>").await;
    two.send(&format!(
        "<rpc xmlns=\"{BASE}\" message-id=\"1\"><reset xmlns=\"{NS}\"><port>fault</port></reset></rpc>"
    ))
    .await;
    assert_eq!(two.receive().await, None);
    let session = two.session;
    assert!(matches!(two.end().await, Ending::Failed(_)));
    assert!(matches!(&store.endings()[..], [(number, Ending::Failed(_))] if *number == session));
    one.ok("<lock><target><running/></target></lock>").await;
}

#[tokio::test]
async fn one_session_more_than_allowed_is_refused_with_the_reason() {
    let store = Store::new(HashMap::new());
    let server = server(&store, Settings { max_sessions: 2, ..Settings::default() });
    let mut one = Client::new(&server, "admin", Role::Admin).await;
    let two = Client::new(&server, "admin", Role::Admin).await;
    let three = Client::silent(&server, "admin", Role::Admin).await;
    assert_eq!(three.ended.await.unwrap().unwrap_err(), "all 2 NETCONF sessions are in use");
    two.gone().await;
    let four = Client::new(&server, "admin", Role::Admin).await;
    // Fewer than there are: those that are there stay.
    server.set(Settings { max_sessions: 1, ..Settings::default() });
    one.ok("<discard-changes/>").await;
    four.gone().await;
    assert!(Client::silent(&server, "admin", Role::Admin).await.ended.await.unwrap().is_err());
    let late = Client::silent(&server, "late", Role::Admin).await;
    assert!(late.ended.await.unwrap().is_err());
    assert_eq!(server.callers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_end_unless_they_listen() {
    let store = Store::new(HashMap::new());
    let idle_timeout = Some(Duration::from_secs(300));
    let server = server(&store, Settings { idle_timeout, ..Settings::default() });
    let mut idle = Client::new(&server, "admin", Role::Admin).await;
    let mut listening = Client::new(&server, "admin", Role::Admin).await;
    listening.ok(&subscribe("")).await;
    sleep(Duration::from_secs(299)).await;
    idle.ok("<discard-changes/>").await;
    sleep(Duration::from_secs(299)).await;
    idle.ok("<discard-changes/>").await;
    sleep(Duration::from_secs(301)).await;
    assert_eq!(idle.end().await, Ending::Idle);
    sleep(Duration::from_secs(3000)).await;
    listening.ok("<discard-changes/>").await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_no_hello_goes() {
    let (_, server, _client) = begin().await;
    let silent = Client::silent(&server, "admin", Role::Admin).await;
    assert!(silent.end().await.to_string().contains("no hello within 30 s"));
    let mut wrong = Client::silent(&server, "admin", Role::Admin).await;
    wrong.greet("2.0").await;
    assert!(wrong.end().await.to_string().contains("speaks neither"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_goes_and_frees_what_it_held() {
    let (store, server, mut one) = begin().await;
    let ports: String = (0..2000).map(|number| port(&format!("port{number}"))).collect();
    one.edit(&ports).await;
    one.ok("<commit/>").await;
    let mut slow = Client::new(&server, "admin", Role::Admin).await;
    slow.ok("<lock><target><running/></target></lock>").await;
    slow.send(&format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get/></rpc>")).await;
    // It has a pipe of 64 KiB and reads nothing of it.
    let session = slow.session;
    while store.endings().is_empty() {
        sleep(Duration::from_secs(1)).await;
    }
    let endings = store.endings();
    assert!(
        matches!(&endings[..], [(number, Ending::Dropped(why))] if *number == session && why.contains("took nothing"))
    );
    one.ok("<lock><target><running/></target></lock>").await;
    drop(slow);
}

#[tokio::test]
async fn a_session_that_reads_slowly_is_killed_at_once() {
    let (_, server, mut one) = begin().await;
    let ports: String = (0..2000).map(|number| port(&format!("port{number}"))).collect();
    one.edit(&ports).await;
    one.ok("<commit/>").await;
    let mut slow = Client::new(&server, "admin", Role::Admin).await;
    slow.send(&format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get/></rpc>")).await;
    let kill = format!("<kill-session><session-id>{}</session-id></kill-session>", slow.session);
    timeout(Duration::from_secs(10), one.ok(&kill)).await.unwrap();
    drop(slow);
}

#[tokio::test]
async fn the_server_stops_with_all_sessions() {
    let (store, server, client) = begin().await;
    let other = Client::new(&server, "admin", Role::Admin).await;
    timeout(DEADLINE, server.stop()).await.unwrap();
    assert_eq!(store.endings().len(), 2);
    assert_eq!(client.end().await, Ending::Shutdown);
    assert_eq!(other.end().await, Ending::Shutdown);
    let late = Client::silent(&server, "admin", Role::Admin).await;
    assert_eq!(late.end().await, Ending::Shutdown);
}

#[tokio::test]
async fn two_sessions_that_kill_one_another_both_end() {
    let (_, server, mut one) = begin().await;
    let mut two = Client::new(&server, "admin", Role::Admin).await;
    let kill = |session: u32| {
        format!(
            "<rpc xmlns=\"{BASE}\" message-id=\"1\"><kill-session><session-id>{session}</session-id></kill-session></rpc>"
        )
    };
    let (first, second) = (kill(two.session), kill(one.session));
    tokio::join!(one.send(&first), two.send(&second));
    let ended = async |mut client: Client| {
        while client.receive().await.is_some() {}
        client.end().await
    };
    let one = tokio::spawn(ended(one));
    let two = tokio::spawn(ended(two));
    tokio::select! {
        one = one => assert!(matches!(one.unwrap(), Ending::Killed(_))),
        two = two => assert!(matches!(two.unwrap(), Ending::Killed(_))),
    }
}

#[tokio::test]
async fn notifications_come_between_replies() {
    let (store, server, mut client) = begin().await;
    client.ok(&subscribe("<stream>NETCONF</stream>")).await;
    let filter = format!("<filter><moved xmlns=\"{NS}\"><port>p2</port></moved></filter>");
    let mut choosy = Client::new(&server, "guest", Role::ReadOnly).await;
    choosy.ok(&subscribe(&filter)).await;
    store.moved("p1");
    store.moved("p2");
    let told = |port: &str| {
        format!(
            "<notification xmlns=\"{SUBSCRIBE}\"><eventTime>1970-01-01T00:00:00.000Z</eventTime>\
             <moved xmlns=\"{NS}\"><port>{port}</port><up>true</up></moved></notification>"
        )
    };
    assert_eq!(client.receive().await.unwrap(), told("p1"));
    assert_eq!(client.receive().await.unwrap(), told("p2"));
    assert_eq!(choosy.receive().await.unwrap(), told("p2"));
    // Interleaved (RFC 5277, 6).
    client.ok("<discard-changes/>").await;
    assert_eq!(client.refused(&subscribe("")).await, ["operation-failed"]);
    client.gone().await;
    choosy.gone().await;
    assert_eq!(store.subscribers(), 0);
}

#[tokio::test]
async fn what_a_subscription_cannot_have_is_told() {
    let (_, _, mut client) = begin().await;
    for (inner, error) in [
        ("<startTime>2024-01-01T00:00:00Z</startTime>", "operation-not-supported bad-element=startTime"),
        ("<stopTime>2024-01-01T00:00:00Z</stopTime>", "missing-element bad-element=startTime"),
        ("<stream>SNMP</stream>", "invalid-value bad-element=stream"),
        ("<x/>", "unknown-element bad-element=x"),
    ] {
        assert_eq!(client.refused(&subscribe(inner)).await, [error]);
    }
    client.ok(&subscribe("")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thirteen_megabytes_go_both_ways() {
    let (_, _, mut client) = begin().await;
    let flows: String = (0..100_000)
        .map(|number| {
            format!(
                "<flow><name>flow{number}</name><zone>z</zone><priority>{}</priority><tags>all</tags>\
                 <match><vlan>{}</vlan><text>number {number}</text></match></flow>",
                number % 65535 + 1,
                number % 4096
            )
        })
        .collect();
    let config = format!("<balancer xmlns=\"{NS}\">{flows}</balancer>");
    assert!(config.len() > 13_000_000);
    client.edit(&config).await;
    client.ok("<commit/>").await;
    let data = client.data(&get("running", "")).await;
    assert_eq!(data.len(), config.len());
    assert!(data == config, "in natural order, as it was sent");
    let filter =
        format!("<filter><balancer xmlns=\"{NS}\"><flow><name>flow77777</name></flow></balancer></filter>");
    assert!(client.data(&get("running", &filter)).await.contains("number 77777"));
}
