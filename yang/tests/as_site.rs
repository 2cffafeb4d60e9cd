//! The modules take what the rest of the suite takes, and refuse what it refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod data;

use data::{BALANCER, EXAMPLE, example, faults, with, yang};
use proptest::prelude::*;
use serde_json::{Value, json};
use site::{Site, SiteError};

#[test]
fn the_example_site_is_valid() {
    assert_eq!(yang().validate(EXAMPLE), Ok(()));
    assert_eq!(yang().validate("{}"), Ok(()));
}

/// A flow with these conditions; whether each of the two takes it, and what the site says.
fn verdicts(matches: &Value) -> (bool, bool, String) {
    let flow = json!({"name": "new", "priority": 7, "match": matches, "action": "bypass"});
    let tree = with(example(), &format!("{BALANCER}/flow/-"), flow).to_string();
    let site = match Site::from_json(&tree) {
        Ok(_) => None,
        Err(SiteError::Faults(faults)) => {
            Some(faults.into_iter().map(|fault| fault.reason).collect::<String>())
        }
        Err(error) => panic!("{error}"),
    };
    (yang().validate(&tree).is_ok(), site.is_none(), site.unwrap_or_default())
}

/// What YANG cannot say: a mask as a number.
const MASK: &str = "has bits outside its mask";

#[test]
fn values_in_all_their_forms_are_taken() {
    for matches in [
        json!({"packet-type": 2054}),
        json!({"packet-type": "0x0806"}),
        json!({"packet-type": "0X806"}),
        json!({"vlan0-tag": 0, "vlan1-tag": 4095, "vlan2-tag": "0x64", "vlan-depth": 3, "mpls-depth": 6}),
        json!({"llc-dsap": "0xAA", "llc-ssap": 170}),
        json!({"dst-port": 179, "src-port": "179"}),
        json!({"dst-port": "179-179", "src-port": "0 .. 65535"}),
        json!({"ip-version": 4, "src-ip": "10.0.0.0/8", "dst-ip": "10.0.0.0/255.0.0.0"}),
        json!({"src-ip": "2001:db8::/32", "dst-ip": "2001:0DB8::/ffff:ffff::"}),
        json!({"src-ip": "0.0.0.0/0", "dst-ip": "10.0.0.1/255.0.0.255"}),
        json!({"src-ip": "::/0", "dst-ip": "::ffff:10.1.2.3"}),
        json!({"src-ip": "::1:2:3:4:5:6:7", "dst-ip": "1:2:3:4:5:6:7:8/128"}),
        json!({"src-mac": "02:aa:bb:00:00:00/24", "dst-mac": "2-AA-BB-0-0-0/ff:ff:ff:00:00:00"}),
        json!({"ip-proto": 255}),
        json!({}),
    ] {
        assert_eq!(verdicts(&matches), (true, true, String::new()), "{matches}");
    }
}

#[test]
fn profiles_and_headers_are_taken() {
    for (pointer, value) in [
        ("/sluice:liveness/profile/0/mode", json!("standard")),
        ("/sluice:liveness/profile/0/reference", json!("none")),
        ("/sluice:liveness/profile/0/hold-down", json!("off")),
        ("/sluice:liveness/profile/0/probe-cores", json!("off")),
        ("/sluice:liveness/profile/0/suspend-limit", json!(0)),
        ("/sluice:liveness/profile", json!([])),
        ("/sluice:ecofilter-balancer/ecofilter-unit/0/shed", json!(0)),
        ("/sluice:ecofilter-balancer/steering-header", json!({"mode": "dot1q"})),
        (
            "/sluice:ecofilter-balancer/steering-header",
            json!({"mode": "dot1q", "tpid": 0x9100, "base-vid": 4093}),
        ),
        ("/sluice:ecofilter-balancer/steering-header", json!({"tpid": "0x0901"})),
        ("/sluice:ecofilter-balancer/flow/4/copy", json!([null])),
        ("/sluice:ecofilter-balancer/flow/3/apply-to-links", json!(["link2", "link1"])),
    ] {
        let tree = with(example(), pointer, value.clone()).to_string();
        assert!(Site::from_json(&tree).is_ok(), "{pointer} {value}");
        assert_eq!(faults(&[(pointer.to_owned(), value)]), [], "{pointer}");
    }
}

#[test]
fn every_forbidden_ethertype_of_the_header_is_refused_in_every_form() {
    for mode in ["native", "dot1q"] {
        for tpid in 0x0600..=0xffff_u16 {
            // All near those that matter, a few of the others.
            if ![0x08, 0x81, 0x86, 0x88, 0x91].contains(&(tpid >> 8)) && tpid % 0x500 != 0 {
                continue;
            }
            for form in [
                json!(tpid),
                json!(format!("{tpid:#06x}")),
                json!(format!("0X{tpid:X}")),
                json!(format!("0x00{tpid:04x}")),
            ] {
                let header = json!({"mode": mode, "tpid": form});
                let tree = json!({"sluice:ecofilter-balancer": {"steering-header": header}}).to_string();
                assert_eq!(yang().validate(&tree).is_ok(), Site::from_json(&tree).is_ok(), "{tree}");
            }
        }
    }
}

const SEEDS: [(&str, &[&str], &str); 5] = [
    (
        "src-mac",
        &["00:11:22:33:44:55", "02-aa-bb-00-00-00/24", "02:aa:bb:0:0:0/ff:ff:ff:00:00:00"],
        "0159af:-/g ",
    ),
    ("src-ip", &["10.1.2.3", "10.0.0.0/8", "10.0.0.1/255.0.0.255", "0.0.0.0/00"], "0123459./: "),
    (
        "dst-ip",
        &[
            "2001:db8::/32",
            "::",
            "::1",
            "1:2:3:4:5:6:7:8",
            "::ffff:10.0.0.1",
            "1::8/ffff::ffff",
            "1:2:3:4:5:6:1.2.3.4/128",
        ],
        "0128f:./ ",
    ),
    ("src-port", &["1024-65535", "0..7", "10 - 20"], "0156-. "),
    ("packet-type", &["0x0800", "0x600", "0XFFFF"], "0xX6fF "),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A few characters of a good value are others: both take it, or both refuse it.
    #[test]
    fn a_value_is_taken_by_both_or_by_none(
        leaf in 0..SEEDS.len(),
        seed in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3_u8), 0..3),
    ) {
        let (leaf, seeds, alphabet) = SEEDS[leaf];
        let mut text: Vec<char> = seeds[seed.index(seeds.len())].chars().collect();
        for (place, letter, edit) in edits {
            let letter = alphabet.chars().nth(letter.index(alphabet.len())).unwrap();
            let at = place.index(text.len() + 1);
            match edit {
                0 => text.insert(at, letter),
                1 => text.splice(at..(at + 1).min(text.len()), [letter]).for_each(drop),
                _ => text.splice(at..(at + 1).min(text.len()), []).for_each(drop),
            }
        }
        let text: String = text.into_iter().collect();
        // A plain number is one in JSON too, once the tree has read it.
        prop_assume!(text.parse::<u32>().is_err());
        let (yang, site, reason) = verdicts(&json!({leaf: text}));
        prop_assert!(yang == site || (yang && reason.contains(MASK)), "{leaf} {text:?}: yang {yang}, site {site} {reason}");
    }
}
