//! XML, read and written.

mod support;

use proptest::prelude::*;
use support::{grown, keeps_its_rules, node, path, schema, tree};
use tree::{Defaults, FaultKind, Path, Tree, xml};

fn faults(text: &str) -> Vec<String> {
    let faults = xml::read(&schema(), text).unwrap_err();
    faults.into_iter().map(|fault| fault.to_string()).collect()
}

#[test]
fn elements_have_their_namespace_where_it_changes() {
    let tree = tree(
        "set port p1 number 1 optics power 1.50\nset route a&b 1 kind extra:learned blackhole\nset route c 1 hop [ z a ]",
    );
    let expected = "\
<port xmlns=\"urn:test:sluice\">
  <name>p1</name>
  <number>1</number>
  <optics xmlns=\"urn:test:extra\">
    <power>1.5</power>
  </optics>
</port>
<route xmlns=\"urn:test:sluice\">
  <prefix>a&amp;b</prefix>
  <table>1</table>
  <blackhole/>
  <kind xmlns:extra=\"urn:test:extra\">extra:learned</kind>
</route>
<route xmlns=\"urn:test:sluice\">
  <prefix>c</prefix>
  <table>1</table>
  <hop>z</hop>
  <hop>a</hop>
</route>
";
    assert_eq!(xml::write(&tree, &Path::default(), Defaults::Explicit), expected);
    assert_eq!(xml::read(&schema(), &format!("<config>{expected}</config>")), Ok(tree));
}

#[test]
fn what_people_write_is_taken() {
    let text = r#"<?xml version="1.0"?><!-- <x> -->
        <s:port xmlns:s="urn:test:sluice"><s:number> 07
        </s:number><s:name>p1</s:name><s:description><![CDATA[<a>]]> b</s:description></s:port>"#;
    let read = xml::read(&schema(), text).unwrap();
    assert_eq!(read, tree("set port p1 number 7 description \"<a> b\""));
    let text = r#"<data xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" xmlns:e="urn:test:extra">
        <route xmlns="urn:test:sluice"><table>main</table><prefix>x</prefix><kind>e:static</kind></route>
        <route xmlns="urn:test:sluice"><table>main</table><prefix>y</prefix><kind>static</kind></route>
        <e:hostname>h</e:hostname></data>"#;
    let expected = "set route x main kind extra:static\nset route y main kind sluice:static\nset hostname h";
    assert_eq!(xml::read(&schema(), text).unwrap(), tree(expected));
    assert_eq!(
        xml::read(&schema(), "<config><port><name>p1</name></port></config>").unwrap(),
        tree("set port p1")
    );
}

#[test]
fn faults_are_in_the_engineers_words() {
    let check = |inner: &str, said: &[&str]| {
        assert_eq!(
            faults(&format!(
                "<config xmlns='urn:test:none'><port xmlns='urn:test:sluice'>{inner}</port></config>"
            )),
            said
        );
    };
    check("<name>p1</name><number>70</number>", &["port p1 number: must be 1..65 (got 70)"]);
    check("<number>1</number>", &["port: an entry lacks its key name"]);
    check("<name>p1</name><lane>1</lane><lane>1</lane>", &["port p1 lane: is given twice"]);
    check("<name>p1</name><name>p1</name>", &["port p1 name: is given twice"]);
    check("<name>p1</name>text", &["port p1: must hold elements alone (got text)"]);
    check("<name>p1</name><lane><x/></lane>", &["port p1 lane: must be a value (got the element x)"]);
    check(
        "<name>p1</name><lane a='1'>1</lane>",
        &["port p1 lane: has the attribute a, which means nothing here"],
    );
    check(
        "<name>p1</name><lane xmlns='urn:x'>1</lane>",
        &["port p1 lane: is of the namespace urn:x, which no module has; expected urn:test:sluice"],
    );
    check(
        "<name>p1</name><colour>red</colour>",
        &[
            "port p1 colour: is not known; known here: colour, description, lane, mtu, name, number, optics, speed, state",
        ],
    );
    let twice = "<port><name>p1</name></port>".repeat(2);
    assert_eq!(faults(&format!("<config>{twice}</config>")), ["port p1: is given twice"]);
    assert_eq!(faults("<config><server>a</server><server>a</server></config>"), ["server: has a twice"]);
    let named = xml::read(&schema(), "<config><x xmlns='urn:y'/></config>").unwrap_err();
    assert_eq!((named[0].kind, named[0].path.is_empty()), (FaultKind::Namespace, true));
    assert!(faults("<a").first().unwrap().starts_with("is no XML: "));
    assert!(faults("<!DOCTYPE x [<!ENTITY a 'b'>]><config>&a;</config>")[0].starts_with("is no XML: "));
    let delete = "<config xmlns:nc='urn:ietf:params:xml:ns:netconf:base:1.0'>\
                  <port xmlns='urn:test:sluice' nc:operation='delete'><name>p1</name></port></config>";
    assert_eq!(faults(delete), ["port: has the attribute operation, which means nothing here"]);
}

#[test]
fn no_more_than_twenty_faults() {
    let ports: String = (0..100).map(|n| format!("<port><name>p{n}</name><lane>9</lane></port>")).collect();
    assert_eq!(faults(&format!("<config>{ports}</config>")).len(), 20);
}

#[test]
fn nesting_has_an_end() {
    let deep = |n: usize| format!("{}{}", "<a x='>'>".repeat(n), "</a>".repeat(n));
    assert!(faults(&deep(64))[0].contains("which means nothing"));
    for text in [deep(66), "<a>".repeat(2_000_000), format!("<config>{}</config>", "<a>".repeat(100_000))] {
        assert_eq!(faults(&text)[0], "is nested deeper than 64 levels");
    }
    // Neither what is in comments and texts, nor elements that end at once.
    let flat = format!(
        "<config><!-- {0} --><![CDATA[ ]]>{1}</config>",
        "<a>".repeat(100),
        "<hostname/>".repeat(100)
    );
    assert_eq!(faults(&flat)[0], "hostname: is given twice");
}

#[test]
fn part_of_a_tree() {
    let whole =
        tree("set port p1 number 1\nset port p2\nset ecof flow f apply [ a b ] match ip-proto 6 copy");
    let at = path("ecof flow f");
    let inner = xml::write(&whole, &at, Defaults::Explicit);
    assert_eq!(
        inner,
        "<name xmlns=\"urn:test:sluice\">f</name>\n\
         <apply-to-links xmlns=\"urn:test:sluice\">a</apply-to-links>\n\
         <apply-to-links xmlns=\"urn:test:sluice\">b</apply-to-links>\n\
         <match xmlns=\"urn:test:sluice\">\n  <ip-proto>6</ip-proto>\n</match>\n\
         <copy xmlns=\"urn:test:sluice\"/>\n"
    );
    let document = format!("<flow a='left to the caller'>{inner}</flow>");
    let document = roxmltree::Document::parse(&document).unwrap();
    assert_eq!(xml::read_at(&schema(), &at, document.root_element()), Ok(whole.only(&at)));
    let leaf = roxmltree::Document::parse("<n>1</n>").unwrap();
    let at = path("port p1 number");
    assert_eq!(xml::read_at(&schema(), &at, leaf.root_element()), Ok(whole.only(&at)));
    xml::read_at(&schema(), &path("port"), leaf.root_element()).unwrap_err();
    let list = xml::write(&whole, &path("port"), Defaults::Explicit);
    assert_eq!(list.matches("<port xmlns").count(), 2);
}

#[test]
fn what_a_call_answers() {
    let output = Path::default().child(node("lookup")).child(node("lookup output"));
    let mut tree = Tree::new(schema());
    tree.set(&output.child(node("lookup output unit")), Some("u1")).unwrap();
    let written = xml::write(&tree, &output, Defaults::Explicit);
    assert_eq!(written, "<unit xmlns=\"urn:test:sluice\">u1</unit>\n");
    let input = Path::default().child(node("lookup")).child(node("lookup input"));
    let call =
        roxmltree::Document::parse("<lookup xmlns='urn:test:sluice'><src>1.2.3.4</src></lookup>").unwrap();
    let given = xml::read_at(&schema(), &input, call.root_element()).unwrap();
    assert_eq!(given.value(&input.child(node("lookup input src"))), Some("1.2.3.4"));
}

#[test]
fn defaults_are_marked_where_asked() {
    let tree = tree("set port p1 mtu 9000");
    let tagged = xml::write(&tree, &Path::default(), Defaults::Tagged);
    assert!(tagged.contains(
        "<lane xmlns:wd=\"urn:ietf:params:xml:ns:netconf:default:1.0\" wd:default=\"true\">0</lane>\n  <mtu>9000</mtu>"
    ));
    assert!(xml::read(&schema(), &format!("<config>{tagged}</config>")).is_ok());
    assert!(!xml::write(&tree, &Path::default(), Defaults::Trim).contains("mtu"));
}

proptest! {
    #[test]
    fn xml_makes_the_same_tree_again(numbers in prop::collection::vec(any::<u64>(), 0..60)) {
        let tree = grown(&numbers, false);
        let text = format!("<config>{}</config>", xml::write(&tree, &Path::default(), Defaults::Explicit));
        let again = xml::read(&schema(), &text);
        prop_assert!(again.is_ok(), "{}: {:?}", text, again);
        prop_assert_eq!(again.unwrap(), tree);
    }

    #[test]
    fn any_text_is_a_tree_or_a_fault(
        text in "(<config>|</config>|<port>|</port>|<name>|</name>|<x/>|a|<match>|<!--|-->|<|>|/|\"|&lt;| ){0,30}"
    ) {
        for text in [format!("<config>{text}</config>"), text] {
            if let Ok(tree) = xml::read(&schema(), &text) {
                keeps_its_rules(&tree);
            }
        }
    }
}
