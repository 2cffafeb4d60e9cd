//! edit-config, copy-config, delete-config and validate.

use super::begin;
use super::store::client::{edit, get};
use super::store::schema::{MORE, NS};

const NC: &str = "xmlns:nc=\"urn:ietf:params:xml:ns:netconf:base:1.0\"";

fn port(inner: &str) -> String {
    format!("<port xmlns=\"{NS}\" {NC}>{inner}</port>")
}

#[tokio::test]
async fn operations_do_what_rfc_6241_says() {
    let (_, _, mut client) = begin().await;
    let all = get("candidate", "");
    let op = |word: &str, inner: &str| {
        format!("<port xmlns=\"{NS}\" {NC} nc:operation=\"{word}\"><name>p1</name>{inner}</port>")
    };
    client.edit(&op("create", "<number>1</number><mtu>1500</mtu>")).await;
    let exists = "data-exists /pl:port[pl:name='p1']";
    assert_eq!(client.refused(&edit(&op("create", "<number>2</number>"))).await, [exists]);
    client.edit(&op("merge", "<number>02</number>")).await;
    let merged = format!("<port xmlns=\"{NS}\"><name>p1</name><number>2</number><mtu>1500</mtu></port>");
    assert_eq!(client.data(&all).await, merged);
    client.edit(&op("replace", "<lane>3</lane>")).await;
    let replaced = format!("<port xmlns=\"{NS}\"><name>p1</name><lane>3</lane></port>");
    assert_eq!(client.data(&all).await, replaced);
    client.edit(&op("delete", "<nonsense/>")).await;
    assert_eq!(client.data(&all).await, "");
    assert_eq!(client.refused(&edit(&op("delete", ""))).await, ["data-missing /pl:port[pl:name='p1']"]);
    client.edit(&op("remove", "")).await;
    // The same of a leaf, in an entry that is only gone through.
    let leaf = |word: &str, value: &str| {
        port(&format!("<name>p1</name><lane nc:operation=\"{word}\">{value}</lane>"))
    };
    client.edit(&leaf("create", "1")).await;
    let exists = "data-exists /pl:port[pl:name='p1']/pl:lane";
    assert_eq!(client.refused(&edit(&leaf("create", "2"))).await, [exists]);
    client.edit(&leaf("replace", " 3 ")).await;
    assert!(client.data(&all).await.contains("<lane>3</lane>"));
    client.edit(&leaf("delete", "")).await;
    let missing = "data-missing /pl:port[pl:name='p1']/pl:lane";
    assert_eq!(client.refused(&edit(&leaf("delete", ""))).await, [missing]);
    client.edit(&leaf("remove", "")).await;
}

#[tokio::test]
async fn the_prefix_of_the_operation_is_the_clients() {
    let (_, _, mut client) = begin().await;
    client.edit(&port("<name>p1</name><number>1</number>")).await;
    let base = super::store::client::BASE;
    let body = format!(
        "<x:rpc xmlns:x=\"{base}\" message-id=\"7\"><x:edit-config><x:target><x:candidate/></x:target><x:config>\
         <y:port xmlns:y=\"{NS}\" x:operation=\"delete\"><y:name>p1</y:name></y:port>\
         </x:config></x:edit-config></x:rpc>"
    );
    client.send(&body).await;
    let reply = client.receive().await.unwrap();
    assert!(reply.ends_with("<ok/></rpc-reply>"), "{reply}");
    assert_eq!(client.data(&get("candidate", "")).await, "");
    // Without a namespace it would be mistaken for a merge, and is refused.
    let bare = format!("<port xmlns=\"{NS}\" operation=\"delete\"><name>p1</name></port>");
    let refused = client.refused(&edit(&bare)).await;
    assert_eq!(refused, ["unknown-attribute /pl:port bad-attribute=operation bad-element=port"]);
}

#[tokio::test]
async fn default_operations() {
    let (_, _, mut client) = begin().await;
    client.edit(&(port("<name>p1</name>") + &port("<name>p2</name>"))).await;
    let edit = |default: &str, config: &str| {
        format!(
            "<edit-config><target><candidate/></target><default-operation>{default}</default-operation>\
             <config>{config}</config></edit-config>"
        )
    };
    // Nothing is made by going through it.
    let none = edit("none", &port("<name>p3</name><lane nc:operation=\"merge\">1</lane>"));
    assert_eq!(client.refused(&none).await, ["data-missing /pl:port[pl:name='p3']"]);
    client.ok(&edit("none", &port("<name>p2</name><lane nc:operation=\"merge\">1</lane>"))).await;
    let inner = "<method nc:operation=\"merge\">layer-4</method>";
    client.ok(&edit("none", &format!("<balancer xmlns=\"{NS}\" {NC}>{inner}</balancer>"))).await;
    client.ok(&edit("replace", &port("<name>p9</name>"))).await;
    let left = format!("<port xmlns=\"{NS}\"><name>p9</name></port>");
    assert_eq!(client.data(&get("candidate", "")).await, left);
    client.ok(&edit("replace", "")).await;
    assert_eq!(client.data(&get("candidate", "")).await, "");
    let wrong = client.refused(&edit("create", "")).await;
    assert_eq!(wrong, ["invalid-value bad-element=default-operation"]);
}

#[tokio::test]
async fn what_cannot_be_is_told_with_path_and_reason() {
    let (_, _, mut client) = begin().await;
    let entry = "/pl:port[pl:name='p1']";
    for (config, error) in [
        (
            port("<name>p1</name><number>66</number>"),
            format!("invalid-value {entry}/pl:number bad-element=number"),
        ),
        (
            port("<name>p1</name><number>1</number><number>2</number>"),
            format!("bad-element {entry}/pl:number bad-element=number"),
        ),
        (port("<name>p1</name><colour>red</colour>"), format!("unknown-element {entry} bad-element=colour")),
        (port("<number>1</number>"), "missing-element /pl:port bad-element=name".into()),
        (port("<name>p2</name><name>p1</name>"), "bad-element /pl:port bad-element=name".into()),
        (
            port("<name>p1</name><state><speed>1</speed></state>"),
            format!("unknown-element {entry}/pl:state bad-element=state"),
        ),
        (port("<name>p1</name>text"), format!("bad-element {entry} bad-element=port")),
        (port("<name>p1</name><lane><x/></lane>"), format!("unknown-element {entry}/pl:lane bad-element=x")),
        (
            port("<name>p1</name><lane nc:operation=\"change\">1</lane>"),
            format!("bad-attribute {entry}/pl:lane bad-attribute=operation bad-element=lane"),
        ),
        (
            port("<name nc:operation=\"delete\">p1</name>"),
            format!("bad-attribute {entry}/pl:name bad-attribute=operation bad-element=name"),
        ),
        (
            port("<name>p1</name><lane colour=\"red\">1</lane>"),
            format!("unknown-attribute {entry}/pl:lane bad-attribute=colour bad-element=lane"),
        ),
        ("<port xmlns=\"urn:x\"/>".into(), "unknown-namespace / bad-element=port bad-namespace=urn:x".into()),
        ("<port xmlns=\"\"/>".into(), "unknown-namespace / bad-element=port bad-namespace=".into()),
        (format!("<reset xmlns=\"{NS}\"/>"), "unknown-element / bad-element=reset".into()),
        (port("<name>p1</name><kind>wood</kind>"), format!("invalid-value {entry}/pl:kind bad-element=kind")),
    ] {
        assert_eq!(client.refused(&edit(&config)).await, [error], "{config}");
    }
    assert_eq!(client.data(&get("candidate", "")).await, "");
}

#[tokio::test]
async fn a_second_modules_nodes_need_its_namespace() {
    let (_, _, mut client) = begin().await;
    let label = format!("<label xmlns=\"{MORE}\">left</label>");
    client.edit(&port(&format!("<name>p1</name><kind xmlns:f=\"{MORE}\">f:fibre</kind>{label}"))).await;
    client.edit(&port("<name>p2</name><kind>copper</kind><up/>")).await;
    client.edit(&format!("<balancer xmlns=\"{MORE}\"><note>&lt;&amp;</note></balancer>")).await;
    let fibre = format!("<kind xmlns:more=\"{MORE}\">more:fibre</kind>");
    let expected = format!(
        "<port xmlns=\"{NS}\"><name>p1</name>{fibre}{label}</port>\
         <port xmlns=\"{NS}\"><name>p2</name><up/><kind>copper</kind></port>\
         <balancer xmlns=\"{MORE}\"><note>&lt;&amp;</note></balancer>"
    );
    assert_eq!(client.data(&get("candidate", "")).await, expected);
    // What was written can be read.
    client.ok("<discard-changes/>").await;
    client.edit(&expected).await;
    assert_eq!(client.data(&get("candidate", "")).await, expected);
    let wrong = client.refused(&edit(&port("<name>p1</name><label>left</label>"))).await;
    assert_eq!(wrong, ["unknown-element /pl:port[pl:name='p1'] bad-element=label"]);
}

#[tokio::test]
async fn the_users_order_is_kept_and_changed_by_insert() {
    let (_, _, mut client) = begin().await;
    let yang = "xmlns:yang=\"urn:ietf:params:xml:ns:yang:1\"";
    let link = |name: &str, attributes: &str| {
        format!("<link xmlns=\"{NS}\" xmlns:p=\"{NS}\" {yang} {NC} {attributes}><name>{name}</name></link>")
    };
    client.edit(&(link("b", "") + &link("a", "") + &link("c", "yang:insert=\"first\""))).await;
    client.edit(&link("d", "yang:insert=\"before\" yang:key=\"[p:name='a']\"")).await;
    client.edit(&link("c", "yang:insert=\"after\" yang:key='[p:name=\"b\"]'")).await;
    client.edit(&link("a", "nc:operation=\"replace\"")).await;
    let names =
        |data: String| data.split("<name>").skip(1).map(|rest| rest[..1].to_owned()).collect::<String>();
    assert_eq!(names(client.data(&get("candidate", "")).await), "bcda");
    let path = "/pl:link[pl:name='e']";
    for (attributes, error) in [
        (
            "yang:insert=\"after\" yang:key=\"[p:name='x']\"",
            format!("bad-attribute missing-instance {path} bad-attribute=key"),
        ),
        ("yang:insert=\"after\" yang:key=\"p:name='x'\"", format!("bad-attribute {path} bad-attribute=key")),
        (
            "yang:insert=\"after\" yang:key=\"[q:name='a']\"",
            format!("bad-attribute {path} bad-attribute=key"),
        ),
        ("yang:insert=\"after\" yang:key=\"[p:name='é\"", format!("bad-attribute {path} bad-attribute=key")),
        (
            "yang:insert=\"after\" yang:key=\"[p:name=é'a']\"",
            format!("bad-attribute {path} bad-attribute=key"),
        ),
        ("yang:insert=\"after\"", format!("missing-attribute {path} bad-attribute=key")),
        ("yang:insert=\"beside\"", format!("bad-attribute {path} bad-attribute=insert")),
    ] {
        let refused = client.refused(&edit(&link("e", attributes))).await;
        assert_eq!(refused, [format!("{error} bad-element=link")], "{attributes}");
    }
    let refused =
        client.refused(&edit(&format!("<port xmlns=\"{NS}\" {yang} yang:insert=\"first\"/>"))).await;
    assert_eq!(refused, ["unknown-attribute /pl:port bad-attribute=insert bad-element=port"]);
    let stop = |value: &str, attributes: &str| {
        format!("<link xmlns=\"{NS}\" {yang}><name>a</name><stop {attributes}>{value}</stop></link>")
    };
    client
        .edit(
            &(stop("one", "")
                + &stop("two", "")
                + &stop("three", "yang:insert=\"before\" yang:value=\"two\"")),
        )
        .await;
    let stops = "<stop>one</stop><stop>three</stop><stop>two</stop>";
    assert!(client.data(&get("candidate", "")).await.contains(stops));
}

#[tokio::test]
async fn leaf_lists_take_one_value_at_a_time() {
    let (_, _, mut client) = begin().await;
    let flow = |inner: &str| {
        format!("<balancer xmlns=\"{NS}\" {NC}><flow><name>f</name><zone>1</zone>{inner}</flow></balancer>")
    };
    client.edit(&flow("<tags>x</tags><tags>y</tags><tags nc:operation=\"create\">z</tags>")).await;
    client.edit(&flow("<tags nc:operation=\"delete\">x</tags><tags>y</tags>")).await;
    let at = "/pl:balancer/pl:flow[pl:name='f'][pl:zone='1']/pl:tags";
    let refused = client.refused(&edit(&flow("<tags nc:operation=\"delete\">x</tags>"))).await;
    assert_eq!(refused, [format!("data-missing {at}[.='x']")]);
    let refused = client.refused(&edit(&flow("<tags nc:operation=\"create\">y</tags>"))).await;
    assert_eq!(refused, [format!("data-exists {at}[.='y']")]);
    assert!(client.data(&get("candidate", "")).await.contains("<tags>y</tags><tags>z</tags>"));
}

#[tokio::test]
async fn presence_containers_are_there_by_themselves() {
    let (_, _, mut client) = begin().await;
    let header =
        |attributes: &str| format!("<balancer xmlns=\"{NS}\" {NC}><header {attributes}/></balancer>");
    client.edit(&header("")).await;
    let there = format!("<balancer xmlns=\"{NS}\"><header/></balancer>");
    assert_eq!(client.data(&get("candidate", "")).await, there);
    let refused = client.refused(&edit(&header("nc:operation=\"create\""))).await;
    assert_eq!(refused, ["data-exists /pl:balancer/pl:header"]);
    client.edit(&header("nc:operation=\"delete\"")).await;
    assert_eq!(client.data(&get("candidate", "")).await, "");
}

#[tokio::test]
async fn error_options() {
    let (_, _, mut client) = begin().await;
    let edit = |option: &str| {
        format!(
            "<edit-config><target><candidate/></target><error-option>{option}</error-option><config>{}{}{}</config></edit-config>",
            port("<name>p1</name><lane>9</lane><mtu>100</mtu>"),
            port("<name>p2</name>"),
            port("<name>p3</name><lane>9</lane>"),
        )
    };
    let lane = |name: &str| format!("invalid-value /pl:port[pl:name='{name}']/pl:lane bad-element=lane");
    for option in ["stop-on-error", "rollback-on-error"] {
        assert_eq!(client.refused(&edit(option)).await, [lane("p1")]);
        assert_eq!(client.data(&get("candidate", "")).await, "");
    }
    assert_eq!(client.refused(&edit("continue-on-error")).await, [lane("p1"), lane("p3")]);
    let data = client.data(&get("candidate", "")).await;
    assert!(data.contains("<mtu>100</mtu>") && data.contains("p2"), "{data}");
}

#[tokio::test]
async fn test_options() {
    let (_, _, mut client) = begin().await;
    let link = format!("<link xmlns=\"{NS}\"><name>l1</name><lan-port>p1</lan-port></link>");
    let edit = |option: &str, config: &str| {
        format!(
            "<edit-config><target><candidate/></target><test-option>{option}</test-option>\
             <config>{config}</config></edit-config>"
        )
    };
    let invalid = "data-missing instance-required /pl:link[pl:name='l1']/pl:lan-port";
    for option in ["test-then-set", "test-only"] {
        assert_eq!(client.refused(&edit(option, &link)).await, [invalid]);
        assert_eq!(client.data(&get("candidate", "")).await, "");
    }
    client.ok(&edit("test-only", &port("<name>p1</name>"))).await;
    assert_eq!(client.data(&get("candidate", "")).await, "");
    client.ok(&edit("set", &link)).await;
    assert_eq!(client.refused("<validate><source><candidate/></source></validate>").await, [invalid]);
    assert_eq!(client.refused("<commit/>").await, [invalid]);
    client.ok(&edit("test-then-set", &port("<name>p1</name>"))).await;
    client.ok("<validate><source><candidate/></source></validate>").await;
    let inline = format!("<validate><source><config>{link}</config></source></validate>");
    assert_eq!(client.refused(&inline).await, [invalid]);
}

#[tokio::test]
async fn only_the_candidate_is_edited() {
    let (_, _, mut client) = begin().await;
    for target in ["running", "startup"] {
        let edit = format!("<edit-config><target><{target}/></target><config/></edit-config>");
        let refused = client.refused(&edit).await;
        assert_eq!(refused, [format!("operation-not-supported bad-element={target}")]);
    }
    let copy = "<copy-config><target><running/></target><source><startup/></source></copy-config>";
    assert_eq!(client.refused(copy).await, ["operation-not-supported bad-element=running"]);
    let url = "<edit-config><target><candidate/></target><url>ftp://x</url></edit-config>";
    assert_eq!(client.refused(url).await, ["operation-not-supported bad-element=url"]);
}

#[tokio::test]
async fn configurations_are_copied_and_deleted() {
    let (_, _, mut client) = begin().await;
    client.edit(&port("<name>p1</name>")).await;
    client.ok("<commit/>").await;
    client.ok("<copy-config><target><startup/></target><source><running/></source></copy-config>").await;
    let startup = client.data(&get("startup", "")).await;
    assert!(startup.contains("p1"));
    let inline = port("<name>p2</name><mtu>9000</mtu>");
    client.ok(&format!("<copy-config><target><candidate/></target><source><config>{inline}</config></source></copy-config>")).await;
    let data = client.data(&get("candidate", "")).await;
    assert_eq!(data, format!("<port xmlns=\"{NS}\"><name>p2</name><mtu>9000</mtu></port>"));
    let same = "<copy-config><target><startup/></target><source><startup/></source></copy-config>";
    assert_eq!(client.refused(same).await, ["invalid-value bad-element=source"]);
    let operation = format!("<port xmlns=\"{NS}\" {NC} nc:operation=\"merge\"><name>p2</name></port>");
    let copy = format!(
        "<copy-config><target><candidate/></target><source><config>{operation}</config></source></copy-config>"
    );
    assert_eq!(
        client.refused(&copy).await,
        ["unknown-attribute /pl:port bad-attribute=operation bad-element=port"]
    );
    client.ok("<delete-config><target><startup/></target></delete-config>").await;
    assert_eq!(client.refused(&get("startup", "")).await, ["data-missing"]);
    let running = "<delete-config><target><running/></target></delete-config>";
    assert_eq!(client.refused(running).await, ["operation-not-supported bad-element=running"]);
}

#[tokio::test]
async fn a_value_said_to_be_the_default_is_not_kept() {
    let (_, _, mut client) = begin().await;
    let mtu = |value: &str| {
        port(&format!(
            "<name>p1</name><mtu xmlns:wd=\"urn:ietf:params:xml:ns:netconf:default:1.0\" wd:default=\"true\">{value}</mtu>"
        ))
    };
    client.edit(&port("<name>p1</name><mtu>100</mtu>")).await;
    let refused = client.refused(&edit(&mtu("100"))).await;
    assert_eq!(refused, ["invalid-value /pl:port[pl:name='p1']/pl:mtu"]);
    client.edit(&mtu("9000")).await;
    assert_eq!(
        client.data(&get("candidate", "")).await,
        format!("<port xmlns=\"{NS}\"><name>p1</name></port>")
    );
}
