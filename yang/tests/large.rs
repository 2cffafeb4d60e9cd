//! 100,000 flows: nothing of a flow's rules looks at the other flows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod data;

use std::time::Instant;

use data::{BALANCER, EXAMPLE, example, faults, with, yang};
use serde_json::{Value, json};

#[test]
fn a_hundred_thousand_flows_validate() {
    let flows: Value = (0..100_000_u32)
        .map(|n| {
            let [_, a, b, c] = n.to_be_bytes();
            json!({
                "name": format!("f{n}"), "priority": n % 65535 + 1, "apply-to-links": ["link1"],
                "match": {"ip-version": 4, "src-ip": format!("10.{a}.{b}.{c}/32"), "dst-port": "1000-2000", "ip-proto": 6},
                "action": "to-ecofilter", "ecofilter-unit": "main"
            })
        })
        .collect();
    let text = with(example(), &format!("{BALANCER}/flow"), flows.clone()).to_string();
    let start = Instant::now();
    assert_eq!(yang().validate(&text), Ok(()));
    println!("{} octets validated in {:?}; {}", text.len(), start.elapsed(), peak());
    let start = Instant::now();
    let found = faults(&[
        (format!("{BALANCER}/flow"), flows),
        (format!("{BALANCER}/flow/77777/copy"), json!([null])),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].path, "ecofilter-balancer ecofilter-unit main");
    println!("refused in {:?}", start.elapsed());
    assert_eq!(yang().validate(EXAMPLE), Ok(()));
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned()
}
