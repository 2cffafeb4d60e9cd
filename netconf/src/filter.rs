//! Subtree filters (RFC 6241, 6), made ready for a schema.

use std::collections::{BTreeMap, HashMap};

use roxmltree::Node as Element;
use tree::{Keys, Kind, Node, NodeId, Schema};

use crate::document::{content, elements, namespace};
use crate::error::{Info, RpcError, Tag};

/// Elements that a filter may have.
const MOST_ELEMENTS: usize = 20_000;

/// Containment nodes of one name beside one another that do not name an entry by all its keys: each entry is
/// compared with each of them.
const MOST_SEARCHES: usize = 64;

/// A set of siblings in a filter (6.2.5).
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    /// Something is asked of them that nothing here can be.
    never: bool,
    /// Content match nodes, which must all hold.
    conditions: Vec<Condition>,
    /// There are other nodes than content match nodes.
    others: bool,
    /// Selection and containment nodes.
    picks: BTreeMap<NodeId, Pick>,
}

/// A content match node: one of the nodes has the value.
#[derive(Debug)]
struct Condition {
    /// Each with the value as its type writes it.
    values: Vec<(NodeId, String)>,
}

/// What is selected of a node.
#[derive(Debug, Default)]
pub(crate) struct Pick {
    /// All of it.
    pub(crate) whole: bool,
    /// What these let through.
    pub(crate) searches: Vec<Siblings>,
    /// Of the entry with these keys, what these let through.
    pub(crate) by_keys: HashMap<Keys, Vec<Siblings>>,
}

impl Siblings {
    /// The filter below a `<filter>` element.
    ///
    /// # Errors
    /// Where it is too big.
    pub(crate) fn of(schema: &Schema, filter: Element<'_, '_>) -> Result<Self, RpcError> {
        let most = filter.descendants().filter(Element::is_element).take(MOST_ELEMENTS + 2).count();
        if most > MOST_ELEMENTS + 1 {
            return Err(too_big(format!("a filter has more than {MOST_ELEMENTS} elements")));
        }
        Self::below(schema, None, filter)
    }

    fn below(schema: &Schema, parent: Option<NodeId>, filter: Element<'_, '_>) -> Result<Self, RpcError> {
        let mut siblings = Self::default();
        for element in elements(filter) {
            // Nothing here has attributes to match (6.2.2).
            let attributed = element.attributes().len() > 0;
            let (name, space) = (element.tag_name().name(), namespace(element));
            let nodes = schema.below(parent).filter(|node| {
                // Without a namespace, any will do (6.2.1).
                !attributed
                    && node.name == name
                    && !matches!(node.kind, Kind::Rpc)
                    && (space.is_empty() || schema.module_of(node).namespace == space)
            });
            match content(element) {
                None => siblings.contain(schema, nodes, element)?,
                Some(text) if text.trim().is_empty() => {
                    siblings.others = true;
                    for node in nodes {
                        siblings.picks.entry(node.id).or_default().whole = true;
                    }
                }
                Some(text) => siblings.compare(nodes, text.trim()),
            }
        }
        Ok(siblings)
    }

    fn compare<'schema>(&mut self, nodes: impl Iterator<Item = &'schema Node>, text: &str) {
        let value = |node: &Node| {
            let ty = node.ty()?;
            // An identity may stand without its module.
            let full = match ty {
                tree::Type::Identity(words) => {
                    let bare = text.rsplit_once(':').map_or(text, |(_, bare)| bare);
                    let fits = |word: &&tree::schema::Word| {
                        word.name.rsplit_once(':').is_some_and(|(_, name)| name == bare)
                    };
                    words.iter().find(fits).map(|word| word.name.clone())
                }
                ty => ty.check(text).ok(),
            };
            Some((node.id, full.unwrap_or_else(|| text.to_owned())))
        };
        let values: Vec<_> = nodes.filter_map(value).collect();
        self.never |= values.is_empty();
        self.conditions.push(Condition { values });
    }

    fn contain<'schema>(
        &mut self,
        schema: &Schema,
        nodes: impl Iterator<Item = &'schema Node>,
        element: Element<'_, '_>,
    ) -> Result<(), RpcError> {
        self.others = true;
        for node in nodes.filter(|node| node.ty().is_none()) {
            let inner = Self::below(schema, Some(node.id), element)?;
            if inner.never {
                continue;
            }
            let pick = self.picks.entry(node.id).or_default();
            match inner.keys(node) {
                Some(keys) => pick.by_keys.entry(keys).or_default().push(inner),
                None => pick.searches.push(inner),
            }
            let by_one_key = pick.by_keys.values().map(Vec::len).max().unwrap_or(0);
            if pick.searches.len() + by_one_key > MOST_SEARCHES {
                let message =
                    format!("a filter has more than {MOST_SEARCHES} {} that do not name an entry", node.name);
                return Err(too_big(message));
            }
        }
        Ok(())
    }

    /// The entry of a list that its conditions leave, if that is one at most.
    fn keys(&self, list: &Node) -> Option<Keys> {
        if list.keys().is_empty() {
            return None;
        }
        let value = |key: &NodeId| {
            self.conditions.iter().find_map(|condition| match &condition.values[..] {
                [(node, value)] if node == key => Some(value.as_str().into()),
                _ => None,
            })
        };
        list.keys().iter().map(value).collect::<Option<Vec<Box<str>>>>().map(Into::into)
    }

    /// Whether all conditions hold, by the values that a node has.
    pub(crate) fn hold(&self, has: impl Fn(NodeId, &str) -> bool) -> bool {
        let holds = |condition: &Condition| condition.values.iter().any(|(node, value)| has(*node, value));
        !self.never && self.conditions.iter().all(holds)
    }

    /// Nothing but conditions, so that all of the parent is selected (6.2.5). A filter without anything selects nothing.
    pub(crate) fn select_all(&self) -> bool {
        !self.others && !self.conditions.is_empty()
    }

    /// A condition asks for this value.
    pub(crate) fn compares(&self, node: NodeId, value: &str) -> bool {
        let values = self.conditions.iter().flat_map(|condition| &condition.values);
        values.into_iter().any(|(own, wanted)| *own == node && wanted == value)
    }

    pub(crate) fn pick(&self, node: NodeId) -> Option<&Pick> {
        self.picks.get(&node)
    }
}

fn too_big(message: String) -> RpcError {
    RpcError::protocol(Tag::TooBig, message).with(Info::BadElement("filter".to_owned()))
}
