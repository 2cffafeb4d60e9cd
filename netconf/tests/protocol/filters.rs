//! Subtree filters (RFC 6241, 6) and defaults (RFC 6243).

use api::Role;
use netconf::Server;

use super::begin;
use super::store::Shared;
use super::store::client::{Client, get};
use super::store::schema::{MORE, NS};

async fn filled() -> (Server<Shared>, Client) {
    let (_, server, mut client) = begin().await;
    let port = |name: &str, inner: &str| format!("<port xmlns=\"{NS}\"><name>{name}</name>{inner}</port>");
    let flow = |name: &str, inner: &str| format!("<flow><name>{name}</name><zone>1</zone>{inner}</flow>");
    let config = port("p1", "<number>1</number><lane>0</lane>")
        + &port("p2", &format!("<number>2</number><lane>0</lane><label xmlns=\"{MORE}\">left</label>"))
        + &port("p10", "<number>3</number><mtu>9000</mtu>")
        + &format!(
            "<balancer xmlns=\"{NS}\">{}{}</balancer>",
            flow("f1", "<priority>5</priority><tags>x</tags><tags>y</tags><match><text> a b </text></match>"),
            flow("f2", "<priority>6</priority>")
        )
        + &format!("<balancer xmlns=\"{MORE}\"><note>n</note></balancer>");
    client.edit(&config).await;
    client.ok("<commit/>").await;
    (server, client)
}

async fn select(client: &mut Client, filter: &str) -> String {
    let data = client.data(&get("running", &format!("<filter type=\"subtree\">{filter}</filter>"))).await;
    // For the eye.
    data.replace(&format!(" xmlns=\"{NS}\""), "")
}

fn of(inner: &str) -> String {
    inner.replacen('>', &format!(" xmlns=\"{NS}\">"), 1)
}

#[tokio::test]
async fn filters_select_as_rfc_6241_says() {
    let (_server, mut client) = filled().await;
    let p1 = "<port><name>p1</name><number>1</number><lane>0</lane></port>";
    let p10 = "<port><name>p10</name><number>3</number><mtu>9000</mtu></port>";
    let names = "<port><name>p1</name></port><port><name>p2</name></port><port><name>p10</name></port>";
    let f2 = "<flow><name>f2</name><zone>1</zone><priority>6</priority></flow>";
    let keys = "<name>f1</name><zone>1</zone>";
    for (filter, selected) in [
        // 6.4.2: an empty filter selects nothing.
        (String::new(), String::new()),
        // 6.2.5: content match alone selects the whole entry.
        (of("<port><name>p1</name></port>"), p1.into()),
        (of("<port><name> p1 </name></port>"), p1.into()),
        (of("<port><number>0001</number></port>"), p1.into()),
        (of("<port><number>1</number><name>p2</name></port>"), String::new()),
        (of("<port><name>p1</name></port>") + &of("<port><name>p10</name></port>"), format!("{p1}{p10}")),
        (
            of("<port><lane>0</lane><name/></port>"),
            "<port><name>p1</name><lane>0</lane></port><port><name>p2</name><lane>0</lane></port>".into(),
        ),
        // 6.2.4: selection; keys come with it.
        (of("<port><name/></port>"), names.into()),
        (of("<port><mtu/></port>"), "<port><name>p10</name><mtu>9000</mtu></port>".into()),
        (
            of("<port><name>p1</name><number/></port>"),
            "<port><name>p1</name><number>1</number></port>".into(),
        ),
        (of("<port><name>p1</name><mtu/></port>"), "<port><name>p1</name></port>".into()),
        (of("<port><name>p3</name></port>"), String::new()),
        // 6.2.3: containment, several levels.
        (of("<balancer><flow><name>f2</name></flow></balancer>"), format!("<balancer>{f2}</balancer>")),
        (
            of("<balancer><flow><match><text/></match></flow></balancer>"),
            format!("<balancer><flow>{keys}<match><text> a b </text></match></flow></balancer>"),
        ),
        (
            of("<balancer><flow><tags>y</tags><priority/></flow></balancer>"),
            format!("<balancer><flow>{keys}<priority>5</priority><tags>y</tags></flow></balancer>"),
        ),
        (of("<balancer><header/></balancer>"), String::new()),
        (
            of(
                "<balancer><flow><name>f1</name><zone>1</zone><match/></flow><flow><name>f2</name><zone>1</zone></flow></balancer>",
            ),
            format!("<balancer><flow>{keys}<match><text> a b </text></match></flow>{f2}</balancer>"),
        ),
        // 6.2.1: namespaces, and none for any.
        ("<port xmlns=\"urn:other\"/>".into(), String::new()),
        (
            format!("<balancer xmlns=\"{MORE}\"/>"),
            format!("<balancer xmlns=\"{MORE}\"><note>n</note></balancer>"),
        ),
        (
            "<balancer xmlns=\"\"><note/></balancer>".into(),
            format!("<balancer xmlns=\"{MORE}\"><note>n</note></balancer>"),
        ),
        (
            "<port xmlns=\"\"><label/></port>".into(),
            format!("<port><name>p2</name><label xmlns=\"{MORE}\">left</label></port>"),
        ),
        (of("<port><label/></port>"), String::new()),
        // 6.2.2: no data has attributes.
        (of("<port colour=\"red\"></port>"), String::new()),
        (of("<port><name colour=\"red\">p1</name></port>"), String::new()),
        // What is not in the schema selects nothing, and asks for the impossible.
        (of("<port><colour/></port>"), String::new()),
        (of("<port><colour>red</colour></port>"), String::new()),
        (of("<port><name>p1</name><colour>red</colour></port>"), String::new()),
        (of("<port>p1</port>"), String::new()),
        // Whole and part: whole.
        (
            of("<port><number/></port>")
                + &of("<port><name>p1</name></port>")
                + "<port xmlns=\"\"><name>p10</name></port>",
            format!("{p1}<port><name>p2</name><number>2</number></port>{p10}"),
        ),
    ] {
        assert_eq!(select(&mut client, &filter).await, selected, "{filter}");
    }
}

#[tokio::test]
async fn a_filter_without_type_is_a_subtree_and_others_are_told() {
    let (_server, mut client) = filled().await;
    let data = client.data(&get("running", &format!("<filter>{}</filter>", of("<port><mtu/></port>")))).await;
    assert!(data.contains("9000"));
    let xpath = get("running", "<filter type=\"xpath\" select=\"/port\"/>");
    assert_eq!(
        client.refused(&xpath).await,
        ["operation-not-supported bad-attribute=type bad-element=filter"]
    );
    let other = get("running", "<filter type=\"regex\"/>");
    assert_eq!(client.refused(&other).await, ["bad-attribute bad-attribute=type bad-element=filter"]);
}

#[tokio::test]
async fn a_filter_that_would_take_too_long_is_refused() {
    let (_server, mut client) = filled().await;
    let searches = of("<port><lane>0</lane><number/></port>").repeat(65);
    let filter = get("running", &format!("<filter>{searches}</filter>"));
    assert_eq!(client.refused(&filter).await, ["too-big bad-element=filter"]);
    let many = of("<port><name>p1</name><number/></port>").repeat(7000);
    let filter = get("running", &format!("<filter>{many}</filter>"));
    assert_eq!(client.refused(&filter).await, ["too-big bad-element=filter"]);
    // Entries by their keys may be many.
    let named: String = (0..6000).map(|n| of(&format!("<port><name>p{n}</name></port>"))).collect();
    assert_eq!(select(&mut client, &named).await.matches("<port>").count(), 3);
}

#[tokio::test]
async fn defaults_are_told_as_asked_for() {
    let (_server, mut client) = filled().await;
    let told = async |client: &mut Client, mode: &str, filter: &str| {
        let mode = if mode.is_empty() {
            String::new()
        } else {
            format!(
                "<with-defaults xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-with-defaults\">{mode}</with-defaults>"
            )
        };
        let data = client.data(&get("running", &format!("<filter>{filter}</filter>{mode}"))).await;
        data.replace(&format!(" xmlns=\"{NS}\""), "")
            .replace(" xmlns:wd=\"urn:ietf:params:xml:ns:netconf:default:1.0\"", "")
    };
    let (mtu, flow, method) = (
        of("<port><mtu/></port>"),
        of("<balancer><flow><name>f2</name></flow></balancer>"),
        of("<balancer><method/></balancer>"),
    );
    let explicit = "<port><name>p10</name><mtu>9000</mtu></port>";
    let f2 = "<name>f2</name><zone>1</zone><priority>6</priority>";
    for mode in ["", "explicit"] {
        assert_eq!(told(&mut client, mode, &mtu).await, explicit);
        assert_eq!(told(&mut client, mode, &method).await, "");
    }
    assert_eq!(told(&mut client, "trim", &mtu).await, "");
    assert_eq!(
        told(&mut client, "trim", &of("<port><name>p10</name></port>")).await,
        "<port><name>p10</name><number>3</number></port>"
    );
    let all = ["p1", "p2", "p10"].map(|name| format!("<port><name>{name}</name><mtu>9000</mtu></port>"));
    assert_eq!(told(&mut client, "report-all", &mtu).await, all.concat());
    assert_eq!(
        told(&mut client, "report-all", &method).await,
        "<balancer><method>layer-3</method></balancer>"
    );
    let rest = "<tags>a</tags><tags>b</tags><match><vlan>1</vlan></match>";
    assert_eq!(
        told(&mut client, "report-all", &flow).await,
        format!("<balancer><flow>{f2}{rest}</flow></balancer>")
    );
    let tagged =
        rest.replace("<tags>", "<tags wd:default=\"true\">").replace("<vlan>", "<vlan wd:default=\"true\">");
    assert_eq!(
        told(&mut client, "report-all-tagged", &flow).await,
        format!("<balancer><flow>{f2}{tagged}</flow></balancer>")
    );
    // A default can be asked for by its value.
    let by_value = of("<balancer><flow><name>f2</name><match><vlan>1</vlan></match></flow></balancer>");
    assert!(told(&mut client, "report-all", &by_value).await.contains("<vlan>1</vlan>"));
    assert!(!told(&mut client, "explicit", &by_value).await.contains("vlan"));
    let wrong = get("running", "<with-defaults>trim</with-defaults>");
    assert_eq!(client.refused(&wrong).await, ["unknown-element bad-element=with-defaults"]);
}

#[tokio::test]
async fn get_tells_state_and_the_server_itself() {
    let (server, mut client) = filled().await;
    let other = Client::speaking(&server, "guest", Role::ReadOnly, "1.0").await;
    client.ok("<lock><target><running/></target></lock>").await;
    let get = |filter: &str| format!("<get><filter>{filter}</filter></get>");
    let state = client.data(&get(&of("<port><name>p1</name><state/></port>"))).await;
    assert!(
        state.ends_with("<name>p1</name><state><speed>10g</speed><packets>7</packets></state></port>"),
        "{state}"
    );
    let monitoring = "xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring\"";
    let sessions =
        client.data(&get(&format!("<netconf-state {monitoring}><sessions/></netconf-state>"))).await;
    for (session, user) in [(client.session, "admin"), (other.session, "guest")] {
        let entry = format!(
            "<session><session-id>{session}</session-id><transport>netconf-ssh</transport><username>{user}</username><source-host>127.0.0.1</source-host><login-time>"
        );
        assert!(sessions.contains(&entry), "{sessions}");
    }
    let locks =
        client.data(&get(&format!("<netconf-state {monitoring}><datastores/></netconf-state>"))).await;
    let lock = format!(
        "<datastore><name>running</name><locks><global-lock><locked-by-session>{}</locked-by-session>",
        client.session
    );
    assert!(
        locks.contains(&lock) && locks.contains("<datastore><name>startup</name></datastore>"),
        "{locks}"
    );
    let capabilities =
        client.data(&get(&format!("<netconf-state {monitoring}><capabilities/></netconf-state>"))).await;
    assert!(capabilities.contains("<capability>urn:ietf:params:netconf:base:1.1</capability>"));
    assert!(capabilities.contains(&format!(
        "<capability>{MORE}?module=more&amp;revision=2024-01-01&amp;features=fast</capability>"
    )));
    let schemas = client.data(&get(&format!("<netconf-state {monitoring}><schemas><schema><identifier>plant</identifier></schema></schemas></netconf-state>"))).await;
    assert!(schemas.contains(&format!("<version>2024-01-01</version><format>yang</format><namespace>{NS}</namespace><location>NETCONF</location>")), "{schemas}");
    let streams = client.data(&get("<netconf xmlns=\"urn:ietf:params:xml:ns:netmod:notification\"/>")).await;
    assert!(
        streams.contains("<name>NETCONF</name>") && streams.contains("<replaySupport>false</replaySupport>")
    );
    let library =
        client.data(&get("<modules-state xmlns=\"urn:ietf:params:xml:ns:yang:ietf-yang-library\"/>")).await;
    let id = library.split("<module-set-id>").nth(1).unwrap().split('<').next().unwrap();
    assert!(client.hello.contains(&format!("module-set-id={id}")));
    assert!(library.contains("<module><name>more</name>"));
    let all = client.data("<get/>").await;
    assert!(all.contains("<netconf-state ") && all.contains("<modules-state ") && all.contains("p10"));
}

#[tokio::test]
async fn schemas_are_given_as_they_are() {
    let (_server, mut client) = filled().await;
    let get = |inner: &str| {
        format!(
            "<get-schema xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring\">{inner}</get-schema>"
        )
    };
    for inner in [
        "<identifier>plant</identifier>",
        "<identifier>plant</identifier><version>2024-01-01</version><format>yang</format>",
    ] {
        let reply = client.rpc(&get(inner)).await;
        assert!(reply.contains(">module plant { /* &lt;&amp;&gt; */ }</data></rpc-reply>"), "{reply}");
    }
    let refused = client.refused(&get("<identifier>x</identifier>")).await;
    assert_eq!(refused, ["invalid-value bad-element=identifier"]);
    let refused = client.refused(&get("<identifier>plant</identifier><version>2000-01-01</version>")).await;
    assert_eq!(refused, ["invalid-value bad-element=identifier"]);
    let refused = client.refused(&get("<identifier>plant</identifier><format>yin</format>")).await;
    assert_eq!(refused, ["invalid-value bad-element=format"]);
    assert_eq!(client.refused(&get("")).await, ["missing-element bad-element=identifier"]);
}
