//! The tree as it is written: RFC 7951 JSON, defaults filled in, nothing checked yet.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use dataplane::Method;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tree {
    #[serde(rename = "sluice:port", alias = "port", default)]
    pub(crate) port: Vec<PortTree>,
    #[serde(rename = "sluice:liveness", alias = "liveness", default)]
    pub(crate) liveness: LivenessTree,
    #[serde(rename = "sluice:ecofilter-balancer", alias = "ecofilter-balancer", default)]
    pub(crate) balancer: BalancerTree,
    // The controller's own.
    #[serde(rename = "sluice:snmp", alias = "snmp", default)]
    _snmp: Option<Value>,
    #[serde(rename = "sluice:prometheus", alias = "prometheus", default)]
    _prometheus: Option<Value>,
    #[serde(rename = "sluice:logger", alias = "logger", default)]
    _logger: Option<Value>,
    #[serde(rename = "sluice:access", alias = "access", default)]
    _access: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PortTree {
    pub(crate) name: String,
    pub(crate) number: i64,
    #[serde(default)]
    pub(crate) lane: i64,
    pub(crate) speed: Option<String>,
    #[serde(default = "default_mtu")]
    pub(crate) mtu: i64,
    pub(crate) description: Option<String>,
    pub(crate) interface: Option<String>,
}

fn default_mtu() -> i64 {
    9000
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LivenessTree {
    #[serde(default)]
    pub(crate) profile: Vec<ProfileTree>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProfileTree {
    pub(crate) name: String,
    pub(crate) initial_delay: Option<i64>,
    pub(crate) interval: Option<i64>,
    pub(crate) probes_down_count: Option<i64>,
    pub(crate) probes_up_count: Option<i64>,
    pub(crate) max_delay: Option<i64>,
    pub(crate) active_pairs: Option<i64>,
    pub(crate) mode: Option<String>,
    pub(crate) sampling_count: Option<i64>,
    pub(crate) suspend_limit: Option<i64>,
    pub(crate) reference: Option<String>,
    pub(crate) reference_lan_port: Option<String>,
    pub(crate) reference_wan_port: Option<String>,
    pub(crate) hold_down: Option<Switch>,
    pub(crate) hold_down_window: Option<i64>,
    pub(crate) hold_down_base: Option<i64>,
    pub(crate) hold_down_ceiling: Option<i64>,
    pub(crate) probe_cores: Option<Switch>,
    pub(crate) ip_probe: Option<UdpProbeTree>,
    pub(crate) negative_probe: Option<UdpProbeTree>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct UdpProbeTree {
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) source_port: Option<i64>,
    pub(crate) destination_port: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct BalancerTree {
    #[serde(default)]
    pub(crate) balancing_method: Method,
    #[serde(default)]
    pub(crate) steering_header: SteeringTree,
    #[serde(default)]
    pub(crate) link: Vec<LinkTree>,
    #[serde(default)]
    pub(crate) ecofilter_unit: Vec<UnitTree>,
    #[serde(default)]
    pub(crate) flow: Vec<FlowTree>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SteeringTree {
    pub(crate) mode: Option<String>,
    pub(crate) tpid: Option<Number>,
    pub(crate) base_vid: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct LinkTree {
    pub(crate) name: String,
    pub(crate) lan_port: String,
    pub(crate) wan_port: String,
    pub(crate) description: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct UnitTree {
    pub(crate) name: String,
    #[serde(default = "one")]
    pub(crate) cores: i64,
    pub(crate) liveness_profile: Option<String>,
    pub(crate) rebalance: Option<Switch>,
    pub(crate) buckets: Option<i64>,
    pub(crate) fail_action: Option<String>,
    pub(crate) backup: Option<String>,
    pub(crate) shed: Option<i64>,
    #[serde(default)]
    pub(crate) pair: Vec<PairTree>,
}

fn one() -> i64 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PairTree {
    pub(crate) name: String,
    pub(crate) lan_port: String,
    pub(crate) wan_port: String,
    #[serde(default)]
    pub(crate) weight: WeightTree,
    pub(crate) role: Option<String>,
    pub(crate) admin: Option<Admin>,
}

/// `weight` of a pair: a number, or `auto`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum WeightTree {
    Number(i64),
    Word(String),
}

impl Default for WeightTree {
    fn default() -> Self {
        WeightTree::Number(1)
    }
}

impl std::fmt::Display for WeightTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WeightTree::Number(number) => number.fmt(f),
            WeightTree::Word(word) => f.write_str(word),
        }
    }
}

/// `admin` of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Admin {
    /// In service when its keep-alives say so.
    #[default]
    Up,
    /// Out of service.
    Down,
    /// Keeps its own buckets, takes none of others.
    Drain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FlowTree {
    pub(crate) name: String,
    pub(crate) priority: i64,
    #[serde(default)]
    pub(crate) apply_to_links: Vec<String>,
    #[serde(rename = "match", default)]
    pub(crate) matches: MatchTree,
    pub(crate) action: String,
    pub(crate) ecofilter_unit: Option<String>,
    #[serde(default, deserialize_with = "presence")]
    pub(crate) copy: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct MatchTree {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vlan0_tag: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vlan1_tag: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vlan2_tag: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vlan_depth: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mpls_depth: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packet_type: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) llc_dsap: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) llc_ssap: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) src_mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dst_mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip_version: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) src_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dst_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip_proto: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) src_port: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dst_port: Option<Number>,
}

/// A number, or a string that says one (decimal or 0x...), or a range of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Integer(i64),
    Text(String),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Integer(number) => number.fmt(f),
            Number::Text(text) => f.write_str(text),
        }
    }
}

/// A leaf of type empty: `[null]` (RFC 7951, 6.9); `true` and `false` are taken too.
fn presence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Bool(set) => Ok(set),
        Value::Array(items) if items == [Value::Null] => Ok(true),
        _ => Err(de::Error::custom("a leaf of type empty is written [null]")),
    }
}

/// Makes sure that no list stands in place of an object: the derived readers would take its items for the
/// members in their order, and an empty one for a site without anything.
pub(crate) fn objects(value: &Value, path: &str) -> Result<(), String> {
    const CONTAINERS: [&str; 6] =
        ["liveness", "ecofilter-balancer", "steering-header", "match", "ip-probe", "negative-probe"];
    let refusal = |path: &str| {
        let at = if path.is_empty() { String::new() } else { format!("at {path}: ") };
        Err(format!("{at}a list stands where an object belongs"))
    };
    match value {
        Value::Array(_) if path.is_empty() => refusal(path),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            let path = format!("{path}[{index}]");
            if item.is_array() { refusal(&path) } else { objects(item, &path) }
        }),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let plain = name.strip_prefix("sluice:").unwrap_or(name);
            if CONTAINERS.contains(&plain) && member.is_array() {
                refusal(&path)
            } else {
                objects(member, &path)
            }
        }),
        _ => Ok(()),
    }
}
