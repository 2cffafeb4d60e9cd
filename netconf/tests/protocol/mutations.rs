//! 20,000 messages that somebody got wrong: each is answered, or ends its session with a reason.

use api::Role;
use netconf::Ending;

use super::begin;
use super::store::client::{BASE, Client};
use super::store::schema::{MORE, NS};

const MESSAGES: usize = 20_000;

/// xorshift64*: the same on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % most
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Requests that are right.
fn requests() -> Vec<String> {
    let nc = format!("xmlns:nc=\"{BASE}\" xmlns:yang=\"urn:ietf:params:xml:ns:yang:1\"");
    let edit = |inner: &str| {
        format!(
            "<edit-config><target><candidate/></target><default-operation>merge</default-operation><error-option>continue-on-error</error-option><config {nc}>{inner}</config></edit-config>"
        )
    };
    let with_defaults = "<with-defaults xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-with-defaults\">report-all-tagged</with-defaults>";
    vec![
        edit(&format!("<port xmlns=\"{NS}\"><name>p2</name><name>p1</name></port><port xmlns=\"{NS}\"><name>p2</name></port>")),
        edit(&format!("<port xmlns=\"{NS}\" nc:operation=\"create\"><name>p1</name><number>1</number><mtu>100</mtu><kind>copper</kind><up/><label xmlns=\"{MORE}\">x</label></port>")),
        edit(&format!("<link xmlns=\"{NS}\" xmlns:p=\"{NS}\" yang:insert=\"after\" yang:key=\"[p:name='a']\"><name>b</name><lan-port>p1</lan-port><stop yang:insert=\"first\">s</stop></link>")),
        edit(&format!("<balancer xmlns=\"{NS}\" nc:operation=\"replace\"><method>layer-4</method><header><tpid>1</tpid></header><flow><name>f</name><zone>1</zone><tags nc:operation=\"remove\">a</tags><match><vlan>5</vlan></match></flow></balancer>")),
        format!("<get-config><source><candidate/></source><filter type=\"subtree\"><balancer xmlns=\"{NS}\"><flow><name>f</name><match/></flow></balancer><port xmlns=\"\"><name>p1</name></port></filter>{with_defaults}</get-config>"),
        format!("<get><filter><port xmlns=\"{NS}\"><lane>0</lane><state/></port></filter></get>"),
        format!("<copy-config><target><candidate/></target><source><config><port xmlns=\"{NS}\"><name>p1</name></port></config></source></copy-config>"),
        "<commit><confirmed/><confirm-timeout>100</confirm-timeout><persist>t</persist></commit>".into(),
        "<commit><persist-id>t</persist-id></commit>".into(),
        "<cancel-commit><persist-id>t</persist-id></cancel-commit>".into(),
        "<lock><target><candidate/></target></lock>".into(),
        "<unlock><target><candidate/></target></unlock>".into(),
        "<validate><source><candidate/></source></validate>".into(),
        "<discard-changes/>".into(),
        "<kill-session><session-id>4294967295</session-id></kill-session>".into(),
        "<delete-config><target><startup/></target></delete-config>".into(),
        "<get-schema xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring\"><identifier>plant</identifier></get-schema>".into(),
        "<create-subscription xmlns=\"urn:ietf:params:xml:ns:netconf:notification:1.0\"><stream>NETCONF</stream></create-subscription>".into(),
        format!("<reset xmlns=\"{NS}\"><port>p1</port><mode>hard</mode><item><size>1</size></item></reset>"),
    ]
}

/// An element as it is written: tag with attributes, and what is in it.
#[derive(Clone)]
enum Part {
    Element { name: String, attributes: Vec<String>, inside: Vec<Part> },
    Text(String),
}

impl Part {
    fn of(node: roxmltree::Node<'_, '_>, source: &str) -> Self {
        if !node.is_element() {
            return Self::Text(node.text().unwrap_or_default().to_owned());
        }
        let tag = &source[node.range()];
        let tag = tag[1..tag.find('>').unwrap()].trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes: Vec<String> = attributes.split("\" ").map(|text| format!("{text}\"")).collect();
        if let Some(last) = attributes.last_mut() {
            *last = last.trim_end_matches('"').to_owned() + "\"";
        }
        attributes.retain(|text| text.contains('='));
        let inside = node.children().map(|child| Self::of(child, source)).collect();
        Self::Element { name: name.to_owned(), attributes, inside }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Element { name, attributes, inside } => {
                out.push_str(&format!("<{name}"));
                attributes.iter().for_each(|text| out.push_str(&format!(" {text}")));
                out.push('>');
                inside.iter().for_each(|part| part.write(out));
                out.push_str(&format!("</{name}>"));
            }
        }
    }

    /// Some element at or below this one.
    fn some(&mut self, dice: &mut Dice) -> &mut Self {
        let elements: Vec<usize> = match self {
            Self::Element { inside, .. } => {
                (0..inside.len()).filter(|at| matches!(inside[*at], Self::Element { .. })).collect()
            }
            Self::Text(_) => Vec::new(),
        };
        if elements.is_empty() || dice.below(4) == 0 {
            return self;
        }
        let at = *dice.of(&elements);
        match self {
            Self::Element { inside, .. } => inside[at].some(dice),
            Self::Text(_) => unreachable!("a text has no elements"),
        }
    }
}

const NAMES: [&str; 24] = [
    "name",
    "port",
    "link",
    "flow",
    "balancer",
    "match",
    "state",
    "header",
    "lane",
    "tags",
    "config",
    "target",
    "source",
    "candidate",
    "running",
    "startup",
    "filter",
    "confirmed",
    "persist",
    "get",
    "commit",
    "url",
    "item",
    "nc:port",
];
const TEXTS: [&str; 16] = [
    "p1",
    "p2",
    "0",
    "-1",
    "99999999999999999999",
    " ",
    "",
    "&lt;",
    "<![CDATA[<]]>",
    "<!-- -->",
    "t",
    "a",
    "x<y/>z",
    "&#9;",
    "none",
    "replace",
];
const ATTRIBUTES: [&str; 12] = [
    "nc:operation=\"delete\"",
    "nc:operation=\"remove\"",
    "nc:operation=\"replace\"",
    "nc:operation=\"x\"",
    "operation=\"delete\"",
    "yang:insert=\"before\"",
    "yang:key=\"[name='\"",
    "yang:value=\"s\"",
    "xmlns=\"\"",
    "xmlns=\"urn:test:more\"",
    "xmlns=\"urn:test:plant\"",
    "type=\"xpath\"",
];

/// A message with a few things wrong; mostly it stays XML.
fn mutate(dice: &mut Dice, requests: &[String]) -> Vec<u8> {
    let request = format!(
        "<rpc xmlns=\"{BASE}\" xmlns:nc=\"{BASE}\" xmlns:yang=\"urn:ietf:params:xml:ns:yang:1\" message-id=\"1\">{}</rpc>",
        dice.of(requests)
    );
    let document = roxmltree::Document::parse(&request).unwrap();
    let mut message = Part::of(document.root_element(), &request);
    for _ in 0..dice.below(4) {
        let donor = message.some(dice).clone();
        let Part::Element { name, attributes, inside } = message.some(dice) else { continue };
        match dice.below(9) {
            0 => *name = (*dice.of(&NAMES)).to_owned(),
            1 => *inside = vec![Part::Text((*dice.of(&TEXTS)).to_owned())],
            2 => attributes.push((*dice.of(&ATTRIBUTES)).to_owned()),
            3 => attributes.clear(),
            4 if !inside.is_empty() => drop(inside.remove(dice.below(inside.len()))),
            5 if !inside.is_empty() => inside.push(dice.of(inside).clone()),
            6 => inside.insert(dice.below(inside.len() + 1), donor),
            7 => inside.reverse(),
            _ => inside.clear(),
        }
    }
    let mut text = String::new();
    message.write(&mut text);
    let mut bytes = text.into_bytes();
    match dice.below(10) {
        0 => bytes.truncate(dice.below(bytes.len()).max(1)),
        1 => {
            let at = dice.below(bytes.len());
            bytes[at] = u8::try_from(dice.below(256)).unwrap();
        }
        _ => {}
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_is_answered() {
    let (store, server, mut client) = begin().await;
    let requests = requests();
    let mut dice = Dice(0x5eed_5eed_5eed_5eed);
    let mut tags = std::collections::BTreeMap::new();
    let (mut done, mut refused, mut ended) = (0, 0, 0);
    for number in 0..MESSAGES {
        let message = mutate(&mut dice, &requests);
        let shown = || format!("message {number}: {}", String::from_utf8_lossy(&message));
        let mut wire = netconf::framing::header(netconf::framing::Framing::Chunked, message.len());
        wire.extend(&message);
        wire.extend(netconf::framing::trailer(netconf::framing::Framing::Chunked));
        client.write(&wire).await.unwrap_or_else(|error| panic!("{error}: {}", shown()));
        let Some(reply) = client.receive().await else { panic!("no answer to {}", shown()) };
        let document = roxmltree::Document::parse(&reply);
        let document = document.unwrap_or_else(|error| panic!("{error}: {reply} to {}", shown()));
        let root = document.root_element();
        assert!(
            root.has_tag_name((BASE, "rpc-reply")) && root.first_child().is_some(),
            "{reply} to {}",
            shown()
        );
        if reply.contains("<rpc-error>") {
            refused += 1;
            *tags
                .entry(super::store::client::errors(&reply)[0].split(' ').next().unwrap().to_owned())
                .or_insert(0_usize) += 1;
        } else {
            done += 1;
        }
        // The candidate must be what it can be at all times.
        if number % 1000 == 0 {
            client.data(&super::store::client::get("candidate", "")).await;
        }
    }
    // And so with the framing broken: the session ends with a reason.
    for _ in 0..200 {
        let mut other = Client::new(&server, "admin", Role::Admin).await;
        let mut wire = format!("\n#{}\n<rpc>\n##\n", dice.below(20)).into_bytes();
        let at = dice.below(wire.len());
        wire[at] = *dice.of(b"#\n0x<");
        other.write(&wire).await.unwrap();
        other.shut().await;
        while other.receive().await.is_some() {}
        assert!(matches!(other.end().await, Ending::Dropped(why) if !why.is_empty()));
        ended += 1;
    }
    let told = format!("{done} done, {refused} refused, {ended} ended: {tags:?}");
    assert!(done > MESSAGES / 10 && refused > MESSAGES / 10 && tags.len() > 12, "{told}");
    assert_eq!(store.endings().len(), 200);
}
