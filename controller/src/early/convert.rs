//! From the early generation's words to today's tree, as JSON that the schema then checks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use tree::{Kind, NodeId, Schema};

use super::words::Words;

const GROUPS: [&str; 2] = ["balance-groups", "balance-group"];
const FILTER_GROUPS: [&str; 2] = ["filter-group", "filter-groups"];
const FILTERS: [&str; 2] = ["filters", "filter"];
const LINKS: [&str; 2] = ["links", "link"];
const PORTS: [&str; 2] = ["ports", "port"];
const ON: [&str; 4] = ["on", "true", "yes", "enable"];
const OFF: [&str; 4] = ["off", "false", "no", "disable"];

/// What has been made of it so far.
struct Conversion<'a> {
    schema: &'a Schema,
    notes: Vec<String>,
    /// `balancing-method`, and where it was said.
    method: Option<(&'static str, String)>,
    used_groups: BTreeSet<String>,
}

/// Today's tree and what is to be told; `None` where nothing is of the early generation.
pub(super) fn convert(schema: &Schema, words: &Words) -> Option<(Value, Vec<String>)> {
    let mut top: Vec<(&str, &Words)> = Vec::new();
    for (name, below) in &words.0 {
        if name == "ecofilter-balancer" {
            top.extend(below.0.iter().map(|(name, below)| (name.as_str(), below)));
        } else {
            top.push((name, below));
        }
    }
    let is = |names: &[&str]| top.iter().any(|(name, _)| names.contains(name));
    if !is(&GROUPS) && !is(&FILTER_GROUPS) && !is(&FILTERS) {
        return None;
    }
    let all = |names: &[&str]| -> Vec<(&str, &Words)> {
        top.iter()
            .filter(|(name, _)| names.contains(name))
            .flat_map(|(_, below)| below.0.iter().map(|(name, below)| (name.as_str(), below)))
            .collect()
    };
    let mut c = Conversion { schema, notes: Vec::new(), method: None, used_groups: BTreeSet::new() };
    let filter_groups: BTreeMap<&str, &Words> = all(&FILTER_GROUPS).into_iter().collect();
    let ports: Vec<Value> =
        all(&PORTS).into_iter().map(|(name, port)| c.entry(&["port"], "port", name, port)).collect();
    let links: Vec<Value> = all(&LINKS)
        .into_iter()
        .map(|(name, link)| c.entry(&["ecofilter-balancer", "link"], "link", name, link))
        .collect();
    let units: Vec<Value> =
        all(&GROUPS).into_iter().map(|(name, group)| c.group(name, group, &filter_groups)).collect();
    let filters = all(&FILTERS);
    let count = filters.len();
    let flows: Vec<Value> = filters
        .into_iter()
        .enumerate()
        .map(|(place, (name, filter))| c.filter(name, filter, count - place))
        .collect();
    for name in filter_groups.keys().filter(|name| !c.used_groups.contains(**name)).collect::<Vec<_>>() {
        c.notes.push(format!("filter-group {name}: no balance group names it; its pairs are left out"));
    }
    let mut balancer = Map::new();
    let mut rest = Map::new();
    for (name, below) in &top {
        match *name {
            "balancing-as" => c.balancing("", below),
            "balancing-method" | "steering-header" => {
                let value = c.values(&["ecofilter-balancer", name], below, name);
                balancer.insert((*name).to_owned(), value);
            }
            "liveness" => {
                let profiles = below.get("profile").map_or(&[][..], |profiles| &profiles.0);
                let profiles: Vec<Value> = profiles
                    .iter()
                    .map(|(name, profile)| {
                        c.entry(&["liveness", "profile"], "liveness profile", name, profile)
                    })
                    .collect();
                rest.insert("sluice:liveness".to_owned(), json!({ "profile": profiles }));
            }
            name if [&GROUPS[..], &FILTER_GROUPS, &FILTERS, &LINKS, &PORTS]
                .iter()
                .any(|names| names.contains(&name)) => {}
            name => c.notes.push(format!("{name}: has no counterpart and is left out")),
        }
    }
    if let Some((method, _)) = c.method {
        balancer.insert("balancing-method".to_owned(), method.into());
    }
    for (name, list) in [("link", links), ("ecofilter-unit", units), ("flow", flows)] {
        if !list.is_empty() {
            balancer.insert(name.to_owned(), list.into());
        }
    }
    if !ports.is_empty() {
        rest.insert("sluice:port".to_owned(), ports.into());
    }
    rest.insert("sluice:ecofilter-balancer".to_owned(), balancer.into());
    Some((rest.into(), c.notes))
}

impl Conversion<'_> {
    fn node(&self, names: &[&str]) -> Option<NodeId> {
        self.schema.at(names).map(|node| node.id)
    }

    /// An entry of a list whose leaves have kept their names.
    fn entry(&mut self, list: &[&str], what: &str, name: &str, words: &Words) -> Value {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), name.into());
        for (leaf, below) in &words.0 {
            self.leaf(list, &format!("{what} {name}"), leaf, below, &mut entry);
        }
        entry.into()
    }

    /// A leaf that has kept its name; anything else is told.
    fn leaf(
        &mut self,
        parent: &[&str],
        path: &str,
        leaf: &str,
        words: &Words,
        into: &mut Map<String, Value>,
    ) {
        let node =
            self.node(parent).and_then(|id| self.schema.child(Some(id), leaf)).filter(|node| node.config);
        match node.map(|node| &node.kind) {
            Some(Kind::LeafList { .. }) => {
                into.insert(leaf.to_owned(), words.words().collect());
            }
            Some(Kind::Leaf { .. }) => match words.value() {
                Some(value) => {
                    into.insert(leaf.to_owned(), value.into());
                    for extra in words.words().skip(1) {
                        self.notes.push(format!("{path} {leaf}: {extra} is left out; it takes one value"));
                    }
                }
                // A leaf that says something by its being there.
                None => {
                    into.insert(leaf.to_owned(), json!([null]));
                }
            },
            _ => self.notes.push(format!("{path} {leaf}: has no counterpart and is left out")),
        }
    }

    /// A leaf or a container of leaves that has kept its name.
    fn values(&mut self, at: &[&str], words: &Words, path: &str) -> Value {
        let is_leaf = self.schema.at(at).is_some_and(|node| matches!(node.kind, Kind::Leaf { .. }));
        if is_leaf {
            return words.value().map_or(json!([null]), Value::from);
        }
        let mut inside = Map::new();
        for (leaf, below) in &words.0 {
            self.leaf(at, path, leaf, below, &mut inside);
        }
        inside.into()
    }

    fn balancing(&mut self, path: &str, words: &Words) {
        let said = words.value().unwrap_or_default();
        let path = format!("{path} balancing-as {said}").trim().to_owned();
        let method = match said {
            "mag-hash" | "layer-3" | "l3" => "layer-3",
            "layer-4" | "l4" => "layer-4",
            "src-ip" => "src-ip",
            "dst-ip" => "dst-ip",
            _ => {
                self.notes.push(format!("{path}: has no counterpart; balancing-method stays layer-3"));
                return;
            }
        };
        match &self.method {
            Some((other, at)) if *other != method => self.notes.push(format!(
                "{path}: there is one balancing-method for all units, and {at} has made it {other}"
            )),
            _ => self.method = Some((method, path)),
        }
    }

    fn group(&mut self, name: &str, group: &Words, filter_groups: &BTreeMap<&str, &Words>) -> Value {
        let list = ["ecofilter-balancer", "ecofilter-unit"];
        let path = format!("balance-groups {name}");
        let mut unit = Map::new();
        unit.insert("name".to_owned(), name.into());
        let mut pairs = Vec::new();
        let mut named = Vec::new();
        for (word, below) in &group.0 {
            match word.as_str() {
                "balancing-as" => self.balancing(&path, below),
                "nat-unit-queues" => {
                    unit.insert("cores".to_owned(), below.value().unwrap_or_default().into());
                }
                "rebalance" => {
                    let switch = match below.value() {
                        None => "on",
                        Some(word) if ON.contains(&word) => "on",
                        Some(word) if OFF.contains(&word) => "off",
                        Some(word) => {
                            self.notes.push(format!(
                                "{path} rebalance {word}: is neither on nor off; taken as off"
                            ));
                            "off"
                        }
                    };
                    unit.insert("rebalance".to_owned(), switch.into());
                }
                "filter-group" | "filter-groups" => named.extend(below.words()),
                "filter" | "pair" | "pairs" => {
                    for (pair, ports) in &below.0 {
                        pairs.push(self.pair(&path, pair, ports));
                    }
                }
                leaf => self.leaf(&list, &path, leaf, below, &mut unit),
            }
        }
        // A filter group of the group's own name needs no naming.
        if named.is_empty() && pairs.is_empty() && filter_groups.contains_key(name) {
            named.push(name);
        }
        for filter_group in named {
            match filter_groups.get(filter_group) {
                Some(members) => {
                    self.used_groups.insert(filter_group.to_owned());
                    let path = format!("filter-group {filter_group}");
                    for (word, below) in &members.0 {
                        if matches!(word.as_str(), "filter" | "filters" | "pair" | "pairs") {
                            for (pair, ports) in &below.0 {
                                pairs.push(self.pair(&path, pair, ports));
                            }
                        } else if below.get("lan-port").is_some() || below.get("wan-port").is_some() {
                            pairs.push(self.pair(&path, word, below));
                        } else {
                            self.notes.push(format!("{path} {word}: has no counterpart and is left out"));
                        }
                    }
                }
                None => self
                    .notes
                    .push(format!("{path} filter-group {filter_group}: there is no such filter group")),
            }
        }
        if !pairs.is_empty() {
            unit.insert("pair".to_owned(), pairs.into());
        }
        unit.into()
    }

    fn pair(&mut self, path: &str, name: &str, words: &Words) -> Value {
        self.entry(&["ecofilter-balancer", "ecofilter-unit", "pair"], &format!("{path} filter"), name, words)
    }

    fn filter(&mut self, name: &str, filter: &Words, place: usize) -> Value {
        let list = ["ecofilter-balancer", "flow"];
        let conditions = ["ecofilter-balancer", "flow", "match"];
        let path = format!("filters {name}");
        let mut flow = Map::new();
        flow.insert("name".to_owned(), name.into());
        let mut matches = Map::new();
        let mut action = None;
        for (word, below) in &filter.0 {
            match word.as_str() {
                "match" => {
                    for (leaf, value) in &below.0 {
                        self.leaf(&conditions, &format!("{path} match"), leaf, value, &mut matches);
                    }
                }
                "apply-to-links" if below.words().eq(["all"]) => {}
                "action" => {
                    for (word, below) in &below.0 {
                        self.action(&path, word, below, &mut action, &mut flow);
                    }
                }
                "bypass" | "drop" | "to-balance-group" | "copy" => {
                    self.action(&path, word, below, &mut action, &mut flow);
                }
                leaf if self
                    .schema
                    .at(&conditions)
                    .is_some_and(|node| self.schema.child(Some(node.id), leaf).is_some()) =>
                {
                    self.leaf(&conditions, &path, leaf, below, &mut matches);
                }
                leaf => self.leaf(&list, &path, leaf, below, &mut flow),
            }
        }
        match action {
            Some(action) => {
                flow.insert("action".to_owned(), action.into());
            }
            None => {
                self.notes.push(format!("{path}: has no action that is known here; it bypasses"));
                flow.insert("action".to_owned(), "bypass".into());
            }
        }
        if !flow.contains_key("priority") {
            self.notes.push(format!("{path}: has no priority; {place} by its place, earlier ones win"));
            flow.insert("priority".to_owned(), place.into());
        }
        if !matches.is_empty() {
            flow.insert("match".to_owned(), matches.into());
        }
        flow.into()
    }

    fn action(
        &mut self,
        path: &str,
        word: &str,
        below: &Words,
        action: &mut Option<&'static str>,
        flow: &mut Map<String, Value>,
    ) {
        match word {
            "bypass" => *action = Some("bypass"),
            "drop" => *action = Some("drop"),
            "to-balance-group" => {
                *action = Some("to-ecofilter");
                flow.insert("ecofilter-unit".to_owned(), below.value().unwrap_or_default().into());
                if below.0.iter().any(|(word, inner)| word == "copy" || inner.get("copy").is_some()) {
                    flow.insert("copy".to_owned(), json!([null]));
                }
            }
            "copy" => {
                flow.insert("copy".to_owned(), json!([null]));
            }
            other => self.notes.push(format!("{path} action {other}: has no counterpart and is left out")),
        }
    }
}
