//! The appliance that nobody here wrote: a Linux bridge per pair whose nftables rules let through what connection
//! tracking calls established, or new and in order.

use std::process::Command;

use crate::appliance::PairPorts;
use crate::error::Result;
use crate::netns::{Run, feed};

/// How the kernel tracks connections on a bridge here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// nf_conntrack_bridge: a table of family `bridge`.
    Bridge,
    /// br_netfilter: bridged packets pass the `inet` forward chain.
    Netfilter,
}

/// What the rules counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets of established and related connections.
    pub established: u64,
    /// Packets that began a connection.
    pub begun: u64,
    /// Packets dropped: invalid, or new out of order.
    pub dropped: u64,
}

fn rules(tracking: Tracking) -> String {
    let (family, tcp, first) = match tracking {
        // In the bridge family other EtherTypes reach the chain too; keep-alives and ARP aren't its business.
        Tracking::Bridge => {
            ("bridge", "meta l4proto tcp ", "    meta protocol != { ip, ip6, vlan, 8021ad } accept\n")
        }
        Tracking::Netfilter => ("inet", "", ""),
    };
    format!(
        "table {family} sluice {{
  counter established {{ }}
  counter begun {{ }}
  counter dropped {{ }}
  chain forward {{
    type filter hook forward priority 0; policy drop;
{first}    ct state established,related counter name established accept
    ct state new meta l4proto != tcp counter name begun accept
    ct state new {tcp}tcp flags & (fin|syn|rst|ack) == syn counter name begun accept
    counter name dropped drop
  }}
}}
"
    )
}

fn load(run: &Run, namespace: &str, tracking: Tracking) -> Result<()> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &run.name(namespace), "nft", "-f", "-"]);
    feed(command, &rules(tracking)).map(drop)
}

/// Builds the bridges of one appliance in its namespace. `liberal` accepts TCP outside the tracked window, as an
/// appliance must that isn't shown every segment (while its share is bypassed).
///
/// # Errors
/// When the kernel can track connections in neither way.
pub fn build(run: &Run, namespace: &str, pairs: &[PairPorts], liberal: bool) -> Result<Tracking> {
    let mut lines = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        let bridge = format!("br{number}");
        lines.push(format!("link add {bridge} type bridge stp_state 0 mcast_snooping 0 forward_delay 0"));
        for port in [&pair.lan, &pair.wan] {
            lines.push(format!("link set dev {port} master {bridge}"));
        }
        lines.push(format!("link set dev {bridge} up"));
    }
    run.ip(Some(namespace), &lines)?;
    let tracking = if vlan_tracking_works(run, namespace) {
        Tracking::Bridge
    } else {
        load(run, namespace, Tracking::Netfilter)?;
        run.set_parameters(
            namespace,
            &[
                ("net/bridge/bridge-nf-call-iptables", "1"),
                ("net/bridge/bridge-nf-call-ip6tables", "1"),
                ("net/bridge/bridge-nf-call-arptables", "0"),
                ("net/bridge/bridge-nf-filter-vlan-tagged", "1"),
            ],
        )?;
        Tracking::Netfilter
    };
    set_liberal(run, namespace, liberal)?;
    Ok(tracking)
}

/// nf_conntrack_bridge looks at untagged frames only, and ours wear the steering tag: br_netfilter comes first
/// wherever the kernel has it.
fn vlan_tracking_works(run: &Run, namespace: &str) -> bool {
    let has_netfilter = run
        .inside(namespace, || {
            Ok(std::path::Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists())
        })
        .unwrap_or(false);
    !has_netfilter && load(run, namespace, Tracking::Bridge).is_ok()
}

/// Strict or liberal about TCP windows; never picks up a connection in its middle.
///
/// # Errors
/// When connection tracking isn't there.
pub fn set_liberal(run: &Run, namespace: &str, liberal: bool) -> Result<()> {
    run.set_parameters(
        namespace,
        &[
            ("net/netfilter/nf_conntrack_tcp_loose", "0"),
            ("net/netfilter/nf_conntrack_tcp_be_liberal", if liberal { "1" } else { "0" }),
        ],
    )
}

/// Reads the counters.
///
/// # Errors
/// When nft fails.
pub fn counted(run: &Run, namespace: &str) -> Result<Counted> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &run.name(namespace), "nft", "-j", "list", "counters"]);
    Ok(read_counters(&feed(command, "")?))
}

fn read_counters(json: &str) -> Counted {
    let listed: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let packets = |name: &str| {
        let counters = listed["nftables"].as_array().into_iter().flatten().map(|entry| &entry["counter"]);
        let found = counters.filter(|counter| counter["name"] == name);
        found.filter_map(|counter| counter["packets"].as_u64()).sum()
    };
    Counted { established: packets("established"), begun: packets("begun"), dropped: packets("dropped") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name() {
        let json = r#"{"nftables": [{"metainfo": {}},
            {"counter": {"family": "inet", "name": "begun", "packets": 3, "bytes": 1}},
            {"counter": {"family": "inet", "name": "dropped", "packets": 4, "bytes": 1}}]}"#;
        assert_eq!(read_counters(json), Counted { established: 0, begun: 3, dropped: 4 });
        assert_eq!(read_counters("nonsense"), Counted::default());
    }
}
