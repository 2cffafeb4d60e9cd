//! What follows from a topology: interfaces, MACs, address ranges, routes, and the balancer's configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

use crate::appliance::Side;
use crate::topology::Topology;

/// In the place of the encapsulation number of a source MAC: garbage.
pub const MARK: u8 = 0xee;
/// Bytes that a frame may have beyond the hosts' MTU on a link: two tags.
const TAGS: u32 = 8;
/// The same between the balancer and an appliance: the steering header too.
const STEERED: u32 = TAGS + 4;

/// The MAC of a host interface: locally administered, then side, link, encapsulation.
pub fn mac(side: Side, link: usize, encapsulation: u8) -> [u8; 6] {
    let side = if side == Side::Lan { 1 } else { 2 };
    [0x02, 0x5a, side, link as u8 + 1, encapsulation, 0x01]
}

/// A MAC in the usual notation.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Where one of our hosts sent a frame into the balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The side of the host.
    pub side: Side,
    /// The link's number, from 0.
    pub link: usize,
}

/// Reads a frame's source MAC; None when it is none of ours.
pub fn origin(frame: &[u8]) -> Option<Origin> {
    match frame.get(6..12)? {
        [0x02, 0x5a, side @ (1 | 2), link @ 1..=255, _, 0x01] => Some(Origin {
            side: if *side == 1 { Side::Lan } else { Side::Wan },
            link: usize::from(*link) - 1,
        }),
        _ => None,
    }
}

/// An interface with host addresses: an uplink itself, or the inner interface of tagged hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostInterface {
    /// The link's number.
    pub link: usize,
    /// The number of the encapsulation on that link.
    pub encapsulation: usize,
    /// Tags, outermost first; none: the uplink itself.
    pub tags: Vec<(u16, u16)>,
    /// Interface that has the addresses.
    pub device: String,
    /// The tagger's end of it, for tagged hosts.
    pub tagger: Option<String>,
}

/// Two groups of hosts that talk with each other, and the links that their frames take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// For reports.
    pub name: String,
    /// Number of the path, from 1; part of its addresses.
    pub number: u8,
    /// Number of the interface that LAN hosts send by.
    pub requests: usize,
    /// Number of the interface that WAN hosts send by.
    pub answers: usize,
}

impl Path {
    /// True when requests and answers take the same link.
    pub fn is_symmetric(&self) -> bool {
        self.requests == self.answers
    }

    /// The IPv4 range of a side.
    pub fn prefix4(&self, side: Side) -> String {
        format!("10.{}.0.0/16", self.octet(side))
    }

    /// The IPv6 range of a side.
    pub fn prefix6(&self, side: Side) -> String {
        format!("2001:db8:{:x}::/48", self.octet(side))
    }

    /// Host number `host` of a side.
    pub fn host(&self, side: Side, host: u32, ipv6: bool) -> IpAddr {
        let octet = self.octet(side);
        if ipv6 {
            Ipv6Addr::new(0x2001, 0xdb8, u16::from(octet), 0, 0, 0, 0, host as u16 + 1).into()
        } else {
            // Spread over the third octet too, as subscribers are.
            Ipv4Addr::new(10, octet, (host * 7 % 256) as u8, (host % 250) as u8 + 1).into()
        }
    }

    fn octet(&self, side: Side) -> u8 {
        match side {
            Side::Lan => self.number,
            Side::Wan => self.number + 128,
        }
    }
}

/// A port of the balancer: name and interface are the same word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxPort {
    /// Name in the configuration and of the interface.
    pub name: String,
    /// MTU of the interface and of the port.
    pub mtu: u32,
}

/// The plan of one site.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Interfaces in link and encapsulation order; alike on both sides.
    pub interfaces: Vec<HostInterface>,
    /// Paths; those through one link first.
    pub paths: Vec<Path>,
}

impl Plan {
    /// Derives the plan.
    pub fn new(topology: &Topology) -> Self {
        let mut interfaces = Vec::new();
        for (link, description) in topology.links.iter().enumerate() {
            for (encapsulation, tags) in description.encapsulations.iter().enumerate() {
                let tagged = !tags.tags.is_empty();
                interfaces.push(HostInterface {
                    link,
                    encapsulation,
                    tags: tags.tags.clone(),
                    device: if tagged {
                        format!("in{}-{}", link + 1, encapsulation + 1)
                    } else {
                        uplink(link)
                    },
                    tagger: tagged.then(|| format!("tg{}-{}", link + 1, encapsulation + 1)),
                });
            }
        }
        let mut paths: Vec<Path> = interfaces
            .iter()
            .enumerate()
            .map(|(number, interface)| {
                let encapsulation =
                    topology.links[interface.link].encapsulations[interface.encapsulation].clone();
                Path {
                    name: format!("{} {}", topology.links[interface.link].name, String::from(encapsulation)),
                    number: number as u8 + 1,
                    requests: number,
                    answers: number,
                }
            })
            .collect();
        // Requests by each link, answers by the next one.
        if topology.links.len() > 1 {
            for (link, description) in topology.links.iter().enumerate().take(8) {
                let next = (link + 1) % topology.links.len();
                let first = |wanted: usize| interfaces.iter().position(|interface| interface.link == wanted);
                if let (Some(requests), Some(answers)) = (first(link), first(next)) {
                    paths.push(Path {
                        name: format!("{} out, {} back", description.name, topology.links[next].name),
                        number: paths.len() as u8 + 1,
                        requests,
                        answers,
                    });
                }
            }
        }
        Plan { interfaces, paths }
    }

    /// The interface by which a side of a path sends.
    pub fn sends_by(&self, path: &Path, side: Side) -> &HostInterface {
        match side {
            Side::Lan => &self.interfaces[path.requests],
            Side::Wan => &self.interfaces[path.answers],
        }
    }
}

/// A link's uplink in a host namespace.
pub fn uplink(link: usize) -> String {
    format!("up{}", link + 1)
}

/// A link's port at the balancer.
pub fn link_port(topology: &Topology, link: usize, side: Side) -> BoxPort {
    BoxPort { name: format!("l{}{}", link + 1, side_text(side)), mtu: topology.mtu + TAGS }
}

/// A pair's port at the balancer; `pair` counts over all units. Its cable's other end has the same name.
pub fn pair_port(topology: &Topology, pair: usize, side: Side) -> BoxPort {
    BoxPort { name: format!("p{}{}", pair + 1, side_text(side)), mtu: topology.mtu + STEERED }
}

fn side_text(side: Side) -> &'static str {
    match side {
        Side::Lan => "lan",
        Side::Wan => "wan",
    }
}

/// Lanes of a port; the data plane counts them through from port 0.
pub const LANES: usize = 4;

/// All ports of the balancer, links first.
pub fn box_ports(topology: &Topology) -> Vec<BoxPort> {
    let links =
        (0..topology.links.len()).flat_map(|link| sides().map(move |side| link_port(topology, link, side)));
    let pairs =
        (0..topology.pairs().count()).flat_map(|p| sides().map(move |side| pair_port(topology, p, side)));
    links.chain(pairs).collect()
}

/// LAN, WAN.
pub fn sides() -> std::array::IntoIter<Side, 2> {
    [Side::Lan, Side::Wan].into_iter()
}

/// The balancer's configuration as RFC 7951 JSON.
pub fn site_configuration(topology: &Topology) -> Value {
    let ports: Vec<Value> = box_ports(topology)
        .iter()
        .enumerate()
        .map(|(index, port)| {
            json!({"name": port.name, "number": index / LANES + 1, "lane": index % LANES, "speed": "10g",
                   "mtu": port.mtu, "interface": port.name})
        })
        .collect();
    let links: Vec<Value> = topology
        .links
        .iter()
        .enumerate()
        .map(|(index, link)| {
            json!({"name": link.name, "lan-port": link_port(topology, index, Side::Lan).name,
                   "wan-port": link_port(topology, index, Side::Wan).name})
        })
        .collect();
    let mut number = 0;
    let mut units = Vec::new();
    for unit in &topology.units {
        let mut pairs = Vec::new();
        for pair in &unit.pairs {
            pairs.push(json!({"name": pair.name, "weight": pair.weight, "role": pair.role,
                              "lan-port": pair_port(topology, number, Side::Lan).name,
                              "wan-port": pair_port(topology, number, Side::Wan).name}));
            number += 1;
        }
        units.push(json!({"name": unit.name, "cores": unit.cores, "liveness-profile": "default",
                          "rebalance": unit.rebalance, "pair": pairs}));
    }
    let mut profile = Map::new();
    profile.insert("name".into(), json!("default"));
    profile.extend(topology.liveness.clone());
    let flows = if topology.flows.is_empty() {
        vec![json!({"name": "rest", "priority": 1, "action": "to-ecofilter",
                    "ecofilter-unit": topology.units[0].name})]
    } else {
        topology.flows.clone()
    };
    json!({
        "sluice:port": ports,
        "sluice:liveness": {"profile": [profile]},
        "sluice:ecofilter-balancer": {
            "balancing-method": topology.balancing_method,
            "steering-header": {"mode": topology.steering.name()},
            "link": links,
            "ecofilter-unit": units,
            "flow": flows,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path as File;

    use super::*;

    fn tagged() -> Topology {
        Topology::load(File::new("tagged")).expect("shipped")
    }

    #[test]
    fn origin_reads_what_mac_writes() {
        for side in sides() {
            for link in [0, 1, 59] {
                let mut frame = vec![0; 14];
                frame[6..12].copy_from_slice(&mac(side, link, 3));
                assert_eq!(origin(&frame), Some(Origin { side, link }));
            }
        }
        assert_eq!(origin(&[0; 14]), None);
        assert_eq!(origin(&[0; 5]), None);
        assert_eq!(mac_text(mac(Side::Wan, 1, 0)), "02:5a:02:02:00:01");
    }

    #[test]
    fn every_encapsulation_has_a_path_and_links_cross() {
        let plan = Plan::new(&tagged());
        let names: Vec<&str> = plan.paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "link1 untagged",
                "link1 vlan 100",
                "link1 qinq 200.300",
                "link2 vlan 101",
                "link2 802.1ad 17.17",
                "link1 out, link2 back",
                "link2 out, link1 back"
            ]
        );
        assert_eq!(plan.interfaces[0].device, "up1");
        assert_eq!(plan.interfaces[1].tagger.as_deref(), Some("tg1-2"));
    }

    #[test]
    fn hosts_of_all_paths_are_distinct_and_in_their_range() {
        let plan = Plan::new(&tagged());
        let mut seen = BTreeSet::new();
        for path in &plan.paths {
            for side in sides() {
                for host in 0..200 {
                    for ipv6 in [false, true] {
                        assert!(seen.insert(path.host(side, host, ipv6)), "{path:?} {host}");
                    }
                }
            }
        }
        assert_eq!(plan.paths[1].prefix4(Side::Wan), "10.130.0.0/16");
        assert_eq!(plan.paths[1].prefix6(Side::Lan), "2001:db8:2::/48");
    }

    #[test]
    fn configuration_uses_every_port_once() {
        let topology = tagged();
        let site = site_configuration(&topology).to_string();
        for port in box_ports(&topology) {
            let quoted = format!("\"{}\"", port.name);
            assert_eq!(site.matches(&quoted).count(), 3, "{quoted}: name, interface and one use");
        }
    }
}
