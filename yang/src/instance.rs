//! Instance identifiers as libyang writes them, such as `/sluice:port[name='p1']/mtu`.

use std::sync::Arc;

use tree::{Kind, NodeId, Path, Schema, Step};

/// One step: the name without its module, and `name='value'` of its predicates.
struct Token<'t> {
    name: &'t str,
    predicates: Vec<(&'t str, &'t str)>,
}

/// Splits an instance identifier (RFC 7950, 9.13).
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.strip_prefix('/')?;
        let end = rest.find(['/', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end)?;
        rest = after;
        let mut predicates = Vec::new();
        while let Some(inside) = rest.strip_prefix('[') {
            let (key, value) = inside.split_once('=')?;
            let quote = value.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
            let (value, after) = value.get(1..)?.split_once(quote)?;
            predicates.push((plain(key), value));
            rest = after.strip_prefix(']')?;
        }
        tokens.push(Token { name: plain(name), predicates });
    }
    Some(tokens)
}

/// A name without its module's.
fn plain(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, name)| name)
}

/// The path that an instance identifier stands for; `None` where it is none of the schema's, or names a list's entry
/// by something else than its keys.
pub(crate) fn path(schema: &Schema, text: &str) -> Option<Path> {
    let mut steps = Vec::new();
    let mut at: Option<NodeId> = None;
    for token in tokens(text)? {
        let node = match at.map(|id| schema.node(id)) {
            // The nodes of an RPC stand below its input.
            Some(rpc) if rpc.kind == Kind::Rpc => {
                let below = schema.below(at).find_map(|group| schema.child(Some(group.id), token.name))?;
                steps.push(Step { node: below.parent?, keys: Arc::from([]) });
                below
            }
            _ => schema.child(at, token.name)?,
        };
        let value = |name: &str| {
            token.predicates.iter().find(|(key, _)| *key == name).map(|(_, value)| Box::<str>::from(*value))
        };
        let keys: Arc<[Box<str>]> = match &node.kind {
            _ if token.predicates.is_empty() => Arc::from([]),
            Kind::List { keys, .. } => {
                keys.iter().map(|key| value(&schema.node(*key).name)).collect::<Option<_>>()?
            }
            Kind::LeafList { .. } => Arc::from([value(".")?]),
            _ => return None,
        };
        steps.push(Step { node: node.id, keys });
        at = Some(node.id);
    }
    Some(Path(steps))
}

/// The words of a `set` line for a path: names, and keys after the names of lists. The value of a leaf-list is no part
/// of it.
pub(crate) fn words(schema: &Schema, path: &Path) -> String {
    let mut words: Vec<&str> = Vec::new();
    for step in &path.0 {
        let node = schema.node(step.node);
        if matches!(node.kind, Kind::Input | Kind::Output) {
            continue;
        }
        words.push(&node.name);
        if matches!(node.kind, Kind::List { .. }) {
            words.extend(step.keys.iter().map(|key| &**key));
        }
    }
    words.join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::Yang;

    #[test]
    fn an_instance_identifier_is_a_path() {
        let yang = Yang::load().unwrap();
        for (text, expected) in [
            ("/sluice:port[name='p1']/mtu", Some("port p1 mtu")),
            ("/sluice:ecofilter-balancer/link[name=\"it's\"]", Some("ecofilter-balancer link it's")),
            (
                "/sluice:ecofilter-balancer/flow[name='a/[b]']/apply-to-links[.='l1']",
                Some("ecofilter-balancer flow a/[b] apply-to-links"),
            ),
            (
                "/sluice:ecofilter-balancer/link[name='l']/state/verdicts[reason='r'][verdict='v']/packets",
                Some("ecofilter-balancer link l state verdicts v r packets"),
            ),
            ("/sluice:lookup/src", Some("lookup src")),
            ("/sluice:lookup/out-port", Some("lookup out-port")),
            ("/sluice:port", Some("port")),
            ("/sluice:nothing", None),
            ("/sluice:port[mtu='9000']", None),
            ("/sluice:port[name='p1'", None),
            ("port", None),
        ] {
            let words = path(yang.schema(), text).map(|path| words(yang.schema(), &path));
            assert_eq!(words.as_deref(), expected, "{text}");
        }
    }
}
