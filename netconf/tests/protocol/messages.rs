//! Messages, their attributes, and what is no message.

use std::collections::HashMap;

use api::Role;
use netconf::{Ending, Settings, XmlLimits};

use super::begin;
use super::store::Store;
use super::store::client::{BASE, Client, errors, get, server};
use super::store::schema::NS;

#[tokio::test]
async fn attributes_of_the_rpc_come_back() {
    let (_, _, mut client) = begin().await;
    client
        .send(&format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<nc:rpc xmlns:nc=\"{BASE}\" xmlns:u=\"urn:u\" u:user=\"a&lt;&quot;b&#10;\" nc:id=\"1\" message-id=\"&amp;5\"><nc:discard-changes/></nc:rpc>"
        ))
        .await;
    let reply = client.receive().await.unwrap();
    let document = roxmltree::Document::parse(&reply).unwrap();
    let root = document.root_element();
    assert!(root.has_tag_name((BASE, "rpc-reply")));
    assert_eq!(root.attribute("message-id"), Some("&5"));
    assert_eq!(root.attribute(("urn:u", "user")), Some("a<\"b\n"));
    assert_eq!(root.attribute((BASE, "id")), Some("1"));
    assert_eq!(root.attributes().len(), 3);
}

#[tokio::test]
async fn what_is_no_request_is_told_and_the_session_goes_on() {
    let (_, _, mut client) = begin().await;
    for (message, error) in [
        (
            format!("<rpc xmlns=\"{BASE}\"><get/></rpc>"),
            "missing-attribute bad-attribute=message-id bad-element=rpc",
        ),
        (format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"/>"), "missing-element bad-element=operation"),
        (format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get/><get/></rpc>"), "bad-element bad-element=get"),
        (
            format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><got/></rpc>"),
            "operation-not-supported bad-element=got",
        ),
        (
            format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get xmlns=\"urn:x\"/></rpc>"),
            "operation-not-supported bad-element=get",
        ),
        (format!("<hello xmlns=\"{BASE}\"/>"), "unknown-element bad-element=hello"),
        ("<rpc message-id=\"1\"><get/></rpc>".into(), "unknown-element bad-element=rpc"),
        ("<rpc".into(), "malformed-message"),
        ("\u{0}".into(), "malformed-message"),
        ("x".into(), "malformed-message"),
        (
            format!("<!DOCTYPE rpc [<!ENTITY a \"b\">]><rpc xmlns=\"{BASE}\" message-id=\"1\"><get/></rpc>"),
            "malformed-message",
        ),
        (
            format!(
                "<rpc xmlns=\"{BASE}\" message-id=\"1\">{}{}</rpc>",
                "<a>".repeat(300),
                "</a>".repeat(300)
            ),
            "too-big",
        ),
        (
            format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get-config/></rpc>"),
            "missing-element bad-element=source",
        ),
        (
            format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get-config><source/></get-config></rpc>"),
            "missing-element bad-element=running, candidate or startup",
        ),
        (
            format!(
                "<rpc xmlns=\"{BASE}\" message-id=\"1\"><get-config><source><operational/></source></get-config></rpc>"
            ),
            "unknown-element bad-element=operational",
        ),
        (
            format!(
                "<rpc xmlns=\"{BASE}\" message-id=\"1\"><get-config><source><running/><startup/></source></get-config></rpc>"
            ),
            "bad-element bad-element=startup",
        ),
        (
            format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get><x/></get></rpc>"),
            "unknown-element bad-element=x",
        ),
        (
            format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><close-session><x/></close-session></rpc>"),
            "unknown-element bad-element=x",
        ),
    ] {
        client.send(&message).await;
        let reply = client.receive().await.unwrap();
        assert_eq!(errors(&reply), [error], "{message}");
        assert_eq!(
            reply.contains("message-id=\"1\""),
            message.contains("message-id=\"1\"") && message.starts_with("<rpc x") && error != "too-big"
        );
    }
    client.write(b"\n#4\n\xff\xfe\xfd\xfc\n##\n").await.unwrap();
    assert_eq!(errors(&client.receive().await.unwrap()), ["malformed-message"]);
    client.ok("<discard-changes/>").await;
    let state = "<get><filter><netconf-state xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring\"><statistics/></netconf-state></filter></get>";
    let data = client.data(state).await;
    assert!(
        data.contains("<in-bad-rpcs>11</in-bad-rpcs>") && data.contains("<in-rpcs>10</in-rpcs>"),
        "{data}"
    );
}

#[tokio::test]
async fn a_client_out_of_step_is_told_why_it_goes() {
    for (wire, tag) in [
        (&b"<rpc/>"[..], "malformed-message"),
        (b"\n#0\n", "malformed-message"),
        (b"\n#4294967295\n", "too-big"),
        (b"]]>]]>", "malformed-message"),
    ] {
        let (store, _, mut client) = begin().await;
        client.write(wire).await.unwrap();
        assert_eq!(errors(&client.receive().await.unwrap()), [tag]);
        assert_eq!(client.receive().await, None);
        assert!(matches!(client.end().await, Ending::Dropped(_)));
        assert_eq!(store.endings().len(), 1);
    }
}

#[tokio::test]
async fn version_1_0_is_spoken_with_those_who_speak_it() {
    let (_, server, _client) = begin().await;
    let mut old = Client::speaking(&server, "admin", Role::Admin, "1.0").await;
    old.edit(&format!("<port xmlns=\"{NS}\"><name>p1</name><description>]]&gt;]]&gt;</description></port>"))
        .await;
    let data = old.data(&get("candidate", "")).await;
    assert!(data.contains("<description>]]&gt;]]&gt;</description>"), "{data}");
    old.send("<rpc").await;
    assert_eq!(errors(&old.receive().await.unwrap()), ["operation-failed"]);
    // Two in one packet, the second in two.
    let rpc = format!("<rpc xmlns=\"{BASE}\" message-id=\"9\"><discard-changes/></rpc>]]>]]>");
    old.write(format!("{rpc}{}", &rpc[..30]).as_bytes()).await.unwrap();
    assert!(old.receive().await.unwrap().contains("<ok/>"));
    old.write(&rpc.as_bytes()[30..]).await.unwrap();
    assert!(old.receive().await.unwrap().contains("<ok/>"));
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order() {
    let (_, _, mut client) = begin().await;
    for number in 0..500 {
        client.send(&format!("<rpc xmlns=\"{BASE}\" message-id=\"{number}\"><discard-changes/></rpc>")).await;
    }
    for number in 0..500 {
        assert!(client.receive().await.unwrap().contains(&format!("message-id=\"{number}\"")));
    }
}

#[tokio::test]
async fn limits_of_a_message_are_the_settings() {
    let store = Store::new(HashMap::new());
    let xml = XmlLimits { nodes: 20, ..XmlLimits::default() };
    let server = server(&store, Settings { max_message: 2000, xml, ..Settings::default() });
    let mut client = Client::new(&server, "admin", Role::Admin).await;
    let many = "<a/>".repeat(20);
    assert_eq!(client.refused(&format!("<get>{many}</get>")).await, ["too-big"]);
    client
        .send(&format!("<rpc xmlns=\"{BASE}\" message-id=\"1\"><get>{}</get></rpc>", " ".repeat(2000)))
        .await;
    assert_eq!(errors(&client.receive().await.unwrap()), ["too-big"]);
    assert!(client.end().await.to_string().contains("longer than 2000 bytes"));
}

#[tokio::test]
async fn rpcs_of_the_schema_go_to_the_backend() {
    let (_, server, mut client) = begin().await;
    let reset = |inner: &str| format!("<reset xmlns=\"{NS}\">{inner}</reset>");
    let reply =
        client.rpc(&reset("<port>p1</port><mode>hard</mode><item><size>1</size></item><item/>")).await;
    let output = format!("<was xmlns=\"{NS}\">p1 2</was><done xmlns=\"{NS}\"/></rpc-reply>");
    assert!(reply.ends_with(&output), "{reply}");
    client.ok(&reset("<port>quiet</port>")).await;
    assert_eq!(client.refused(&reset("")).await, ["missing-element bad-element=port"]);
    assert_eq!(
        client.refused(&reset("<mode>loud</mode>")).await,
        ["invalid-value /pl:reset/pl:mode bad-element=mode"]
    );
    assert_eq!(client.refused(&reset("<x/>")).await, ["unknown-element /pl:reset bad-element=x"]);
    let mut guest = Client::new(&server, "guest", Role::ReadOnly).await;
    assert_eq!(guest.refused(&reset("<port>p1</port>")).await, ["access-denied"]);
    let mut operator = Client::new(&server, "operator", Role::Operator).await;
    operator.ok(&reset("<port>quiet</port>")).await;
}

#[tokio::test]
async fn a_reader_may_look_and_nothing_else() {
    let (_, server, _admin) = begin().await;
    let mut guest = Client::new(&server, "guest", Role::ReadOnly).await;
    for operation in [
        "<edit-config><target><candidate/></target><config/></edit-config>",
        "<copy-config><target><startup/></target><source><running/></source></copy-config>",
        "<delete-config><target><startup/></target></delete-config>",
        "<lock><target><running/></target></lock>",
        "<unlock><target><running/></target></unlock>",
        "<commit/>",
        "<cancel-commit/>",
        "<discard-changes/>",
        "<kill-session><session-id>1</session-id></kill-session>",
    ] {
        assert_eq!(guest.refused(operation).await, ["access-denied"], "{operation}");
    }
    guest.data("<get/>").await;
    guest.data(&get("startup", "")).await;
    guest.ok("<validate><source><running/></source></validate>").await;
    guest.ok("<close-session/>").await;
    assert_eq!(guest.end().await, Ending::Closed);
}
