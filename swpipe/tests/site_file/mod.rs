//! The example site and the entries that it asks for, all pairs up.
#![allow(dead_code, clippy::unwrap_used, reason = "tests; and each test binary uses its part")]

use std::path::{Path, PathBuf};

use dataplane::entry::Entry;
use site::{Condition, Ids, Site};

pub(crate) fn example_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/examples/site.json")
}

pub(crate) fn example() -> Site {
    Site::from_json(&std::fs::read_to_string(example_path()).unwrap()).unwrap()
}

pub(crate) fn entries_of(site: &Site) -> Vec<Entry> {
    site::desired(site, &Ids::allocate(site, &Ids::default()), &Condition::with_up(site, |_| true))
}

pub(crate) fn example_entries() -> Vec<Entry> {
    entries_of(&example())
}

/// The example site with an interface of the port's own name on every port. Over AF_XDP its ports are narrower: a frame
/// fits into a page there.
pub(crate) fn wired_json() -> serde_json::Value {
    let mut json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(example_path()).unwrap()).unwrap();
    for port in json["sluice:port"].as_array_mut().unwrap() {
        port["interface"] = port["name"].clone();
        if env!("CARGO_CRATE_NAME").ends_with("_af_xdp") {
            port["mtu"] = 1504.into();
        }
    }
    json
}

pub(crate) fn wired() -> Site {
    Site::from_json(&wired_json().to_string()).unwrap()
}
