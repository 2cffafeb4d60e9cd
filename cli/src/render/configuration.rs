//! The configuration in braces.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// RFC 7951 JSON as `name value;` and `name { ... }`; entries of a list as `list NAME { ... }`.
pub fn configuration(tree: &Value) -> String {
    let mut text = String::new();
    if let Value::Object(members) = tree {
        block(&mut text, members, 0, None);
    }
    text
}

fn block(text: &mut String, members: &Map<String, Value>, depth: usize, key: Option<&str>) {
    let indent = "    ".repeat(depth);
    for (name, value) in members {
        if Some(name.as_str()) == key {
            continue;
        }
        // The module's name is said once, at the top, and means nothing to the reader.
        let name = name.split_once(':').map_or(name.as_str(), |(_, name)| name);
        match value {
            Value::Object(members) => {
                let _ = writeln!(text, "{indent}{name} {{");
                block(text, members, depth + 1, None);
                let _ = writeln!(text, "{indent}}}");
            }
            Value::Array(entries) if entries.iter().any(Value::is_object) => {
                for members in entries.iter().filter_map(Value::as_object) {
                    match members.get("name") {
                        Some(entry) => {
                            let _ = writeln!(text, "{indent}{name} {} {{", scalar(entry));
                        }
                        None => {
                            let _ = writeln!(text, "{indent}{name} {{");
                        }
                    }
                    block(text, members, depth + 1, Some("name").filter(|key| members.contains_key(*key)));
                    let _ = writeln!(text, "{indent}}}");
                }
            }
            // RFC 7951, 6.9: a leaf of type empty is [null].
            Value::Array(entries) if matches!(entries[..], [Value::Null]) => {
                let _ = writeln!(text, "{indent}{name};");
            }
            Value::Array(entries) => {
                let entries: Vec<String> = entries.iter().map(scalar).collect();
                let _ = writeln!(text, "{indent}{name} [ {} ];", entries.join(" "));
            }
            value => {
                let _ = writeln!(text, "{indent}{name} {};", scalar(value));
            }
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let bare = |c: char| !c.is_whitespace() && !c.is_control() && !"\"\\|{}[];#".contains(c);
            if !text.is_empty() && text.chars().all(bare) {
                return text.clone();
            }
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_lists_leaves_and_leaf_lists() {
        let tree = serde_json::json!({
            "sluice:port": [{"name": "p1", "number": 4, "description": "to the \"edge\""}],
            "sluice:ecofilter-balancer": {
                "balancing-method": "layer-3",
                "flow": [{"name": "rest", "apply-to-links": ["link1", "link2"], "copy": [null],
                          "match": {"dst-ip": "224.0.0.0/4"}}]
            }
        });
        assert_eq!(
            configuration(&tree),
            r#"port p1 {
    number 4;
    description "to the \"edge\"";
}
ecofilter-balancer {
    balancing-method layer-3;
    flow rest {
        apply-to-links [ link1 link2 ];
        copy;
        match {
            dst-ip 224.0.0.0/4;
        }
    }
}
"#
        );
    }
}
