//! Devices with a site on them.

use std::path::Path;

use dataplane::entry::Update;
use dataplane::tables::{Family, PortRange, RuleAction, RuleEntry, RuleField, RuleMatch};
use dataplane::{Method, PortId, UnitId};
use serde_json::{Value, json};
use site::{Condition, Ids, Site};
use swpipe::device::{Atomicity, Device};

fn example() -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("../configs/examples/site.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// With all pairs up.
fn device_of(tree: &Value) -> Device {
    let site = Site::from_json(&tree.to_string()).unwrap();
    let device = Device::default();
    let ids = Ids::allocate(&site, &Ids::default());
    let entries = site::desired(&site, &ids, &Condition::with_up(&site, |_| true));
    let updates: Vec<Update> = entries
        .into_iter()
        .map(|entry| if entry.is_default { Update::Modify(entry) } else { Update::Insert(entry) })
        .collect();
    device.write(&updates, Atomicity::AllOrNothing).unwrap();
    device
}

/// The example site with eight flows, the last of which balances.
pub(crate) fn of_eight_flows(method: Method) -> Device {
    let mut tree = example();
    let balancer = &mut tree["sluice:ecofilter-balancer"];
    balancer["balancing-method"] = json!(method.as_str());
    let flows = balancer["flow"].as_array_mut().unwrap();
    flows.push(json!({"name": "dns", "priority": 170, "match": {"ip-proto": 17, "dst-port": "53"}, "action": "bypass"}));
    flows.push(
        json!({"name": "own", "priority": 160, "match": {"src-ip": "198.51.100.0/24"}, "action": "bypass"}),
    );
    flows.push(json!({"name": "no-smtp", "priority": 150, "match": {"ip-proto": 6, "dst-port": "25"}, "action": "drop"}));
    assert_eq!(flows.len(), 8);
    device_of(&tree)
}

/// The example site with one flow, which balances, under so many rules of twelve shapes of masks. They balance too,
/// so that all frames go the same way; those of every second session match one.
pub(crate) fn of_shapes(rules: u32) -> Device {
    let mut tree = example();
    let flows = tree["sluice:ecofilter-balancer"]["flow"].as_array_mut().unwrap();
    flows.retain(|flow| flow["name"] == "rest");
    assert_eq!(flows.len(), 1);
    let device = device_of(&tree);
    let updates: Vec<Update> = (0..rules).map(|number| Update::Insert(of_shape(number).entry())).collect();
    device.write(&updates, Atomicity::AllOrNothing).unwrap();
    device
}

/// A rule of one of twelve shapes. Destinations are those of the frames, sources those of every second session.
fn of_shape(number: u32) -> RuleEntry {
    let family = Family::V4;
    let mut matches = RuleMatch::default();
    matches.set_exact(RuleField::IpVersion, 4, family);
    let prefix = |field, address: u32, length: u32, matches: &mut RuleMatch| {
        matches.set(field, address.into(), (u32::MAX << (32 - length)).into());
    };
    let shape = number % 12;
    // Sources of other sessions than the frames' for all but two shapes, lest all frames match the first one.
    let session = number * 2;
    let src = if shape < 2 { 0x0a00_0000 + session % 8192 * 7 } else { 0x2d00_0000 + session * 7 };
    prefix(RuleField::SrcIp, src, if shape < 2 { 32 } else { 32 - shape / 2 }, &mut matches);
    if shape % 2 == 1 {
        prefix(RuleField::DstIp, 0xcb00_7100, 24, &mut matches);
    }
    if shape % 3 == 2 {
        matches.set_exact(RuleField::IpProto, 6, family);
        matches.set_exact(RuleField::HasPorts, 1, family);
        let low = (number % 40_000) as u16;
        matches.dst_port =
            if shape == 2 { PortRange { low, high: low } } else { PortRange { low, high: low + 1_000 } };
    }
    RuleEntry { family, priority: 1_000 + number as i32, matches, action: RuleAction::ToUnit(UnitId(0)) }
}

/// LAN port of the link of [`of_pairs`].
pub(crate) const LAN_OF_PAIRS: PortId = PortId(65 * 4 + 1);

/// One link, and one unit of so many pairs, at most 128; the example site's flows.
pub(crate) fn of_pairs(pairs: u16) -> Device {
    let mut tree = example();
    let port = |name: String, number: u16| json!({"name": name, "number": number / 4, "lane": number % 4});
    let names = |pair| [format!("lan-{pair}"), format!("wan-{pair}")];
    let of_pairs = (0..pairs).flat_map(|pair| {
        let [lan, wan] = names(pair);
        [port(lan, 4 + 2 * pair), port(wan, 4 + 2 * pair + 1)]
    });
    let ports =
        [port("wan".to_owned(), 65 * 4), port("lan".to_owned(), 65 * 4 + 1)].into_iter().chain(of_pairs);
    tree["sluice:port"] = ports.collect();
    let balancer = &mut tree["sluice:ecofilter-balancer"];
    balancer["link"] = json!([{"name": "link1", "lan-port": "lan", "wan-port": "wan"}]);
    balancer["ecofilter-unit"][0]["pair"] = (0..pairs)
        .map(|pair| {
            let [lan, wan] = names(pair);
            json!({"name": format!("pair-{pair}"), "lan-port": lan, "wan-port": wan})
        })
        .collect();
    device_of(&tree)
}
