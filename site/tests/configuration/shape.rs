//! RFC 7951: the forms in which a value may be written, and no text that makes the reader panic.

use dataplane::{Method, SteeringMode};
use proptest::prelude::*;
use serde_json::{Value, json};
use site::{FlowAction, Ids, Site};

use crate::{BALANCER, EXAMPLE, example, good, with};

fn at(rest: &str) -> String {
    format!("{BALANCER}{rest}")
}

#[test]
fn the_example_site_reads_as_written() {
    let site = Site::from_json(EXAMPLE).unwrap();
    assert_eq!((site.ports.len(), site.links.len(), site.units.len(), site.flows.len()), (10, 2, 1, 5));
    assert_eq!((site.method, site.steering), (Method::Layer3, SteeringMode::Native { tpid: 0x88b6 }));
    let unit = &site.units["main"];
    assert_eq!((unit.cores, unit.rebalance, unit.pairs.len()), (17, false, 3));
    assert_eq!(site.ports["p4-2"].id.0, 18);
    assert_eq!(site.ports["p10"].mtu, 9000);
    assert_eq!(unit.shape().bucket_count(), 2048);
}

#[test]
fn nothing_at_all_is_a_site() {
    let site = good(&json!({}));
    assert_eq!((site.links.len(), site.units.len()), (0, 0));
    assert!(site.profiles.contains_key("default"));
}

#[test]
fn names_may_be_qualified_at_the_top_only() {
    let plain: serde_json::Map<String, Value> = example()
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.strip_prefix("sluice:").unwrap().to_owned(), value.clone()))
        .collect();
    let plain = good(&Value::Object(plain));
    assert_eq!(plain, good(&example()));
    let twice = with(example(), "/port", json!([]));
    assert!(Site::from_json(&twice.to_string()).is_err());
}

/// What the one flow of the example with these conditions asks for.
fn asked(matches: Value) -> Vec<(dataplane::tables::Family, dataplane::tables::RuleMatch)> {
    let tree = with(example(), &at("/flow/0/match"), matches);
    good(&tree).flows["bgp"].matches.clone()
}

#[test]
fn one_value_in_several_forms_is_one_condition() {
    let same: [&[Value]; 8] = [
        &[
            json!({"packet-type": 2054}),
            json!({"packet-type": "2054"}),
            json!({"packet-type": "0x0806"}),
            json!({"packet-type": "0X806"}),
        ],
        &[json!({"vlan0-tag": 100}), json!({"vlan0-tag": "100"}), json!({"vlan0-tag": "0x64"})],
        &[
            json!({"dst-port": 179}),
            json!({"dst-port": "179"}),
            json!({"dst-port": "179-179"}),
            json!({"dst-port": "179..179"}),
        ],
        &[json!({"ip-version": 4}), json!({"ip-version": "4"})],
        &[json!({"src-ip": "10.0.0.0/8"}), json!({"src-ip": "10.0.0.0/255.0.0.0"})],
        &[json!({"src-ip": "2001:db8::/32"}), json!({"src-ip": "2001:0DB8::/ffff:ffff::"})],
        &[
            json!({"src-ip": "10.1.2.3"}),
            json!({"src-ip": "10.1.2.3/32"}),
            json!({"src-ip": "10.1.2.3/255.255.255.255"}),
        ],
        &[
            json!({"src-mac": "02:aa:bb:00:00:00/24"}),
            json!({"src-mac": "02-AA-BB-00-00-00/ff:ff:ff:00:00:00"}),
        ],
    ];
    for forms in same {
        for form in forms {
            assert_eq!(asked(form.clone()), asked(forms[0].clone()), "{form}");
        }
    }
}

#[test]
fn a_leaf_of_type_empty_is_null_in_a_list() {
    let copy = |written: Option<Value>| {
        let tree = match written {
            Some(value) => with(example(), &at("/flow/4/copy"), value),
            None => example(),
        };
        matches!(good(&tree).flows["rest"].action, FlowAction::ToUnit { copy: true, .. })
    };
    assert!(copy(Some(json!([null]))));
    assert!(copy(Some(json!(true))));
    assert!(!copy(Some(json!(false))));
    assert!(!copy(None));
}

#[test]
fn no_links_in_apply_to_links_means_all() {
    let entries = |links: Option<Value>| {
        let tree = match links {
            Some(links) => with(example(), &at("/flow/4/apply-to-links"), links),
            None => example(),
        };
        let site = good(&tree);
        let entries =
            site::desired(&site, &Ids::allocate(&site, &Ids::default()), &site::Condition::default());
        entries.iter().filter(|entry| entry.metadata == b"rest").count()
    };
    assert_eq!(entries(None), 2);
    assert_eq!(entries(Some(json!([]))), 2);
    assert_eq!(entries(Some(json!(["link2"]))), 2);
    assert_eq!(entries(Some(json!(["link2", "link1"]))), 4);
}

#[test]
fn twenty_thousand_mutations_of_the_example_never_panic() {
    let tokens: Vec<&str> = vec![
        "null",
        "-1",
        "0",
        "1e99",
        "\"\"",
        "[]",
        "{}",
        "true",
        "99999999999999999999",
        "\"\\u0000\"",
        "[null]",
        "0.5",
    ];
    let mut seed = 0x5eed_u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let bytes = EXAMPLE.as_bytes();
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut text = bytes.to_vec();
        for _ in 0..=next(3) {
            let from = next(text.len());
            let to = (from + next(12)).min(text.len());
            match next(5) {
                0 => text[from] = next(256) as u8,
                1 => drop(text.drain(from..to)),
                2 => {
                    let part = text[from..to].to_vec();
                    let place = next(text.len());
                    text.splice(place..place, part);
                }
                3 => {
                    let token = tokens[next(tokens.len())];
                    text.splice(from..to, token.bytes());
                }
                // A value for another one: the likeliest way to stay JSON.
                _ => {
                    let colon = text.iter().skip(from).position(|byte| *byte == b':').map(|at| from + at + 1);
                    if let Some(start) = colon {
                        let end = text
                            .iter()
                            .skip(start)
                            .position(|byte| b",}".contains(byte))
                            .map_or(start, |at| start + at);
                        let token = tokens[next(tokens.len())];
                        text.splice(start..end, token.bytes());
                    }
                }
            }
            if text.is_empty() {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text);
        match Site::from_json(&text) {
            Ok(site) => {
                accepted += 1;
                let ids = Ids::allocate(&site, &Ids::default());
                let _ = site::desired(&site, &ids, &site::Condition::with_up(&site, |_| true));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(accepted > 100, "{accepted} of 20000: the mutations are too wild to test anything");
}

proptest! {
    #[test]
    fn any_text_in_any_match_leaf_is_read_or_refused(
        leaf in prop::sample::select(&["vlan0-tag", "packet-type", "src-mac", "dst-mac", "src-ip", "dst-ip", "src-port", "ip-proto"][..]),
        text in prop_oneof!["[0-9a-f:./x-]{0,40}", ".{0,12}"],
    ) {
        let tree = with(example(), &at("/flow/0/match"), json!({leaf: text}));
        let _ = Site::from_json(&tree.to_string());
    }
}
