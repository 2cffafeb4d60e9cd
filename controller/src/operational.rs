//! The state under the paths of the configuration: what screens show, as the YANG modules have it.
//!
//! Names in the modules are those of `| json`, so nothing is listed here a second time: whatever the module has of an
//! answer goes in.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tree::{Kind, NodeId, Schema, Tree, Type};

use crate::show::Refusal;
use crate::target::Target;
use crate::telemetry::Telemetry;

/// As much of an answer as stands below a node of the schema.
fn part(schema: &Schema, node: NodeId, answer: &Value) -> Value {
    let mut inside = Map::new();
    for child in schema.below(Some(node)) {
        let value = match answer.get(&child.name) {
            // A key has a value always.
            None | Some(Value::Null) if schema.node(node).keys().contains(&child.id) => &json!("none"),
            None | Some(Value::Null) => continue,
            Some(value) => value,
        };
        let value = match (&child.kind, value) {
            (Kind::Container { .. }, value) => part(schema, child.id, value),
            (Kind::List { .. }, Value::Array(items)) => {
                items.iter().map(|item| part(schema, child.id, item)).collect()
            }
            (Kind::Leaf { ty: Type::Decimal { fraction_digits, .. }, .. }, value) => {
                let digits = usize::from(*fraction_digits);
                json!(format!("{:.digits$}", value.as_f64().unwrap_or_default()))
            }
            (_, value) => value.clone(),
        };
        inside.insert(child.name.clone(), value);
    }
    inside.into()
}

/// Entries of a list, each with its name and state.
fn entries<'a>(
    schema: &Schema,
    list: &[&str],
    answers: impl IntoIterator<Item = (&'a str, Value)>,
) -> Vec<Value> {
    let Some(state) = schema.at(list).and_then(|list| schema.child(Some(list.id), "state")) else {
        return Vec::new();
    };
    answers
        .into_iter()
        .map(|(name, answer)| json!({"name": name, "state": part(schema, state.id, &answer)}))
        .collect()
}

fn answer(of: &impl Serialize) -> Result<Value, Refusal> {
    Ok(serde_json::to_value(of)?)
}

impl<T: Target> Telemetry<T> {
    /// State of everything as it is now, in a tree without configuration.
    ///
    /// # Errors
    /// What is known does not follow the modules.
    pub async fn state(&self, schema: &Arc<Schema>) -> Result<Tree, Refusal> {
        let snapshot = self.snapshot(Duration::ZERO).await;
        let flows = self.flows(Duration::ZERO).await;
        let mut balancer = answer(&snapshot.balancer)?;
        let liveness = &snapshot.liveness;
        let mut units = Vec::new();
        for unit in balancer["units"].as_array().into_iter().flatten() {
            let name = unit["name"].as_str().unwrap_or_default();
            let mut pairs = Vec::new();
            for pair in unit["pairs"].as_array().into_iter().flatten() {
                let pair_name = pair["name"].as_str().unwrap_or_default();
                let mut all = pair.clone();
                let measured =
                    liveness.iter().find(|measured| measured.unit == name && measured.pair == pair_name);
                if let (Some(all), Some(measured)) = (all.as_object_mut(), measured) {
                    all.insert("lan-to-wan".to_owned(), answer(&measured.lan_to_wan)?);
                    all.insert("wan-to-lan".to_owned(), answer(&measured.wan_to_lan)?);
                    all.insert("cores".to_owned(), answer(&measured.cores)?);
                    all.insert("ip-probe".to_owned(), answer(&measured.ip_probe)?);
                    all.insert("negative-probe".to_owned(), answer(&measured.negative_probe)?);
                }
                pairs.push((pair_name, all));
            }
            let pairs = entries(schema, &["ecofilter-balancer", "ecofilter-unit", "pair"], pairs);
            let mut entry =
                entries(schema, &["ecofilter-balancer", "ecofilter-unit"], [(name, unit.clone())]);
            for entry in &mut entry {
                entry["pair"] = pairs.clone().into();
            }
            units.append(&mut entry);
        }
        balancer["units"] = Value::Null;
        let mut below = Map::new();
        let list = |of: &[&str], answers: Result<Vec<(String, Value)>, Refusal>| -> Result<Value, Refusal> {
            let answers = answers?;
            let answers = answers.iter().map(|(name, answer)| (name.as_str(), answer.clone()));
            Ok(entries(schema, of, answers).into())
        };
        let ports = list(
            &["port"],
            snapshot.ports.iter().map(|port| Ok((port.name.clone(), answer(port)?))).collect(),
        )?;
        let links = snapshot.links.iter().map(|link| Ok((link.name.clone(), answer(link)?))).collect();
        below.insert("link".to_owned(), list(&["ecofilter-balancer", "link"], links)?);
        let flows = flows.flows.iter().map(|flow| Ok((flow.name.clone(), answer(flow)?))).collect();
        below.insert("flow".to_owned(), list(&["ecofilter-balancer", "flow"], flows)?);
        below.insert("ecofilter-unit".to_owned(), units.into());
        if let Some(state) = schema.at(&["ecofilter-balancer", "state"]) {
            below.insert("state".to_owned(), part(schema, state.id, &balancer));
        }
        let whole = json!({"sluice:port": ports, "sluice:ecofilter-balancer": below});
        tree::json::read_at(schema, &tree::Path::default(), &whole).map_err(|faults| {
            let reasons: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Refusal::State(reasons.join("; "))
        })
    }
}
