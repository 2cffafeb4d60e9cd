//! Data as XML (RFC 7950, 7).

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use roxmltree::{Document, Node as Element, ParsingOptions};

use crate::data::{Data, Entries, Fields, Keys, Slot, Tree, Values};
use crate::defaults::{Defaults, Filled, Shown};
use crate::path::Path;
use crate::read::{DEEPEST, FaultKind, ReadFault, Reading, read_below};
use crate::schema::{Kind, Node, NodeId, Schema, Type};
use crate::value::shown;

/// Namespace of the attribute that marks a default (RFC 6243, 6).
const DEFAULTS_NAMESPACE: &str = "urn:ietf:params:xml:ns:netconf:default:1.0";

/// Reads a whole tree: one element of a module, or several in an element of no module, such as `config`. Attributes
/// other than the mark of a default are refused: they would ask for more than reading.
///
/// # Errors
/// All that is wrong, up to [`MOST_FAULTS`](crate::read::MOST_FAULTS).
pub fn read(schema: &Arc<Schema>, text: &str) -> Result<Tree, Vec<ReadFault>> {
    let syntax = |reason: String| vec![ReadFault::syntax(reason)];
    if too_deep(text) {
        return Err(syntax(format!("is nested deeper than {DEEPEST} levels")));
    }
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(text, options).map_err(|error| syntax(format!("is no XML: {error}")))?;
    let root = document.root_element();
    let namespace = root.tag_name().namespace().unwrap_or_default();
    let of_module = schema.modules.iter().any(|module| module.namespace == namespace);
    read_below(schema, &Path::default(), |reading, _, fields| {
        let mut reader = Reader { reading, strict: true };
        if of_module {
            reader.elements(std::iter::once(root), fields);
        } else {
            reader.attributes(root);
            reader.below(root, fields);
        }
    })
}

/// Reads what is in an element as what is in the node at a path, into a tree that has nothing else. Attributes are
/// left to the caller, and so is how deep the element is. For what an RPC is given, the path of its
/// [`Kind::Input`].
///
/// # Errors
/// As [`read`].
pub fn read_at(schema: &Arc<Schema>, at: &Path, element: Element<'_, '_>) -> Result<Tree, Vec<ReadFault>> {
    read_below(schema, at, |reading, whole, fields| {
        let mut reader = Reader { reading, strict: false };
        match whole {
            // Of a leaf the text is what is in it.
            Some(leaf @ Node { kind: Kind::Leaf { ty, .. }, .. }) => reader.leaf(leaf, ty, element, fields),
            Some(node) => {
                let reason = "is many elements, not what is in one";
                reader.reading.fault_at(FaultKind::Shape, &node.name, reason);
            }
            None => reader.below(element, fields),
        }
    })
}

/// Writes what is in the node at a path, without an element around it: at the top all top-level elements. Of a list
/// or leaf-list as a whole its elements; of a leaf its element.
#[must_use]
pub fn write(tree: &Tree, at: &Path, defaults: Defaults) -> String {
    let trimmed;
    let tree = if defaults == Defaults::Trim {
        trimmed = tree.without_defaults();
        &trimmed
    } else {
        tree
    };
    let filled = Filled::new(&tree.schema, defaults);
    let tagged = defaults == Defaults::Tagged;
    let mut writer = Writer { filled: &filled, tagged, text: String::new(), depth: 0 };
    match (tree.get(at), at.node()) {
        (Some(Data::Fields(fields)), node) => writer.below(node, None, Some(fields)),
        (Some(Data::Entries(entries)), Some(node)) => {
            writer.node(filled.schema.node(node), None, &Shown::Entries(entries));
        }
        (Some(Data::Values(values)), Some(node)) => {
            writer.node(filled.schema.node(node), None, &Shown::Values(values.iter().collect(), false));
        }
        (Some(Data::Leaf(value)), Some(node)) => {
            writer.node(filled.schema.node(node), None, &Shown::Leaf(value, false));
        }
        _ => {}
    }
    writer.text
}

/// A text nests deeper than [`DEEPEST`] levels, in an element around them; it must not get to the parser, which goes
/// into each element by itself. Counts what opens and closes, and is right for every text that is XML.
#[must_use]
pub fn too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let skipped = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")]
            .into_iter()
            .find_map(|(open, close)| rest.strip_prefix(open).map(|rest| (rest, close)));
        if let Some((inner, close)) = skipped {
            rest = inner.split_once(close).map_or("", |(_, rest)| rest);
            continue;
        }
        if rest.starts_with('/') {
            depth = depth.saturating_sub(1);
            continue;
        }
        let mut quote = None;
        let end = rest.char_indices().find(|(_, c)| match quote {
            Some(open) => {
                if *c == open {
                    quote = None;
                }
                false
            }
            None if matches!(c, '"' | '\'') => {
                quote = Some(*c);
                false
            }
            None => *c == '>',
        });
        let (tag, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        if !tag.ends_with('/') {
            depth += 1;
        }
        // An element around the data does not count as one of its levels.
        if depth > DEEPEST + 1 {
            return true;
        }
        rest = after;
    }
    false
}

/// Reads elements.
struct Reader<'r, 's> {
    reading: &'r mut Reading<'s>,
    /// Attributes are faults.
    strict: bool,
}

impl<'s> Reader<'_, 's> {
    fn below(&mut self, element: Element<'_, '_>, into: &mut Fields) {
        let text: String = element.children().filter_map(|child| text_of(&child)).collect();
        if !text.trim().is_empty() {
            let reason = format!("must hold elements alone (got {})", shown(text.trim()));
            self.reading.fault(FaultKind::Shape, reason);
        }
        self.elements(element.children().filter(Element::is_element), into);
    }

    fn elements<'x>(&mut self, elements: impl Iterator<Item = Element<'x, 'x>>, into: &mut Fields) {
        let mut seen: HashSet<NodeId> = HashSet::new();
        let mut values: Vec<(&'s Node, Vec<Arc<str>>, HashSet<Arc<str>>)> = Vec::new();
        for element in elements {
            if self.reading.is_over() {
                return;
            }
            let Some(node) = self.named(element) else { continue };
            self.attributes(element);
            match &node.kind {
                Kind::List { .. } => self.entry(node, element, into),
                Kind::LeafList { ty, .. } => {
                    let Some(value) = self.value(node, ty, element) else { continue };
                    let at = values.iter().position(|(own, ..)| own.id == node.id).unwrap_or_else(|| {
                        values.push((node, Vec::new(), HashSet::new()));
                        values.len() - 1
                    });
                    let (_, all, known) = &mut values[at];
                    let value: Arc<str> = value.into();
                    if node.config && !known.insert(Arc::clone(&value)) {
                        let reason = format!("has {} twice", shown(&value));
                        self.reading.fault_at(FaultKind::Twice, &node.name, reason);
                    } else {
                        all.push(value);
                    }
                }
                _ if !seen.insert(node.id) => {
                    self.reading.fault_at(FaultKind::Twice, &node.name, "is given twice");
                }
                Kind::Leaf { ty, .. } => self.leaf(node, ty, element, into),
                _ => {
                    let mut fields = Fields::default();
                    self.inside(node.id, Arc::default(), |reader| reader.below(element, &mut fields));
                    self.reading.container(node, fields, into);
                }
            }
        }
        for (node, all, _) in values {
            Values::put(node, all, into);
        }
    }

    fn inside(&mut self, node: NodeId, keys: Keys, read: impl FnOnce(&mut Reader<'_, 's>)) {
        let strict = self.strict;
        self.reading.inside(node, keys, |reading| read(&mut Reader { reading, strict }));
    }

    /// The node that an element's name means; of its parent's module where it has no namespace, which libyang's own
    /// XML does not need but people's often does.
    fn named(&mut self, element: Element<'_, '_>) -> Option<&'s Node> {
        let schema = self.reading.schema;
        let name = element.tag_name();
        let parent = self.reading.at.node();
        let mut below = schema.below(parent).filter(|node| node.name == name.name());
        let Some(namespace) = name.namespace().filter(|namespace| !namespace.is_empty()) else {
            if let (Some(first), None) = (below.next(), below.next()) {
                return Some(first);
            }
            self.reading.unknown(name.name());
            return None;
        };
        if let Some(node) = below.find(|node| schema.module_of(node).namespace == namespace) {
            return Some(node);
        }
        if schema.modules.iter().any(|module| module.namespace == namespace) {
            self.reading.unknown(name.name());
        } else {
            let reason = match schema.below(parent).find(|node| node.name == name.name()) {
                Some(node) => format!(
                    "is of the namespace {}, which no module has; expected {}",
                    shown(namespace),
                    schema.module_of(node).namespace
                ),
                None => format!("is of the namespace {}, which no module has", shown(namespace)),
            };
            self.reading.fault_at(FaultKind::Namespace, name.name(), reason);
        }
        None
    }

    fn attributes(&mut self, element: Element<'_, '_>) {
        if !self.strict {
            return;
        }
        for attribute in element.attributes() {
            if attribute.namespace() != Some(DEFAULTS_NAMESPACE) {
                let reason =
                    format!("has the attribute {}, which means nothing here", shown(attribute.name()));
                self.reading.fault_at(FaultKind::Attribute, element.tag_name().name(), reason);
            }
        }
    }

    fn leaf(&mut self, node: &'s Node, ty: &Type, element: Element<'_, '_>, into: &mut Fields) {
        let Some(value) = self.value(node, ty, element) else { return };
        match self.reading.key_of(node.id) {
            Some(key) if *key == *value => {}
            Some(key) => {
                let reason = format!("must be {}, as its entry (got {})", shown(key), shown(&value));
                self.reading.fault_at(FaultKind::Value, &node.name, reason);
            }
            None => into.put(node.id, Slot::Leaf(value.into())),
        }
    }

    /// The canonical value of a leaf or leaf-list.
    fn value(&mut self, node: &Node, ty: &Type, element: Element<'_, '_>) -> Option<String> {
        if let Some(inner) = element.children().find(Element::is_element) {
            let reason = format!("must be a value (got the element {})", shown(inner.tag_name().name()));
            self.reading.fault_at(FaultKind::Shape, &node.name, reason);
            return None;
        }
        let value = checked(self.reading.schema, ty, element);
        value.map_err(|reason| self.reading.fault_at(FaultKind::Value, &node.name, reason)).ok()
    }

    fn entry(&mut self, list: &'s Node, element: Element<'_, '_>, into: &mut Fields) {
        let keys = self.keys(list, element, into);
        let Some(keys) = keys else { return };
        if into.slot(list.id).is_none() {
            into.put(list.id, Slot::Entries(Arc::default()));
        }
        let Some(Slot::Entries(entries)) = into.slot_mut(list.id) else { return };
        let entries: &mut Entries = Arc::make_mut(entries);
        if entries.get(&keys).is_some() {
            return self
                .inside(list.id, keys, |reader| reader.reading.fault(FaultKind::Twice, "is given twice"));
        }
        let fields = entries.entry(list, &keys);
        self.inside(list.id, keys, |reader| reader.below(element, Arc::make_mut(fields)));
    }

    fn keys(&mut self, list: &Node, element: Element<'_, '_>, into: &Fields) -> Option<Keys> {
        let schema = self.reading.schema;
        if list.keys().is_empty() {
            let position = into.list(list.id).map_or(0, Entries::len) + 1;
            return Some(Arc::new([position.to_string().into()]));
        }
        let mut keys: Vec<Box<str>> = Vec::with_capacity(list.keys().len());
        for key in list.keys() {
            let key = schema.node(*key);
            let namespace = &schema.module_of(key).namespace;
            let own = |child: &Element<'_, '_>| {
                let name = child.tag_name();
                name.name() == key.name
                    && name.namespace().is_none_or(|own| own.is_empty() || own == namespace)
            };
            let found = element.children().filter(Element::is_element).find(own);
            let (Some(found), Some(ty)) = (found, key.ty()) else {
                self.reading.fault_at(
                    FaultKind::Missing,
                    &list.name,
                    format!("an entry lacks its key {}", key.name),
                );
                return None;
            };
            match checked(schema, ty, found) {
                Ok(value) => keys.push(value.into()),
                Err(reason) => {
                    let reason = format!("{} of an entry {reason}", key.name);
                    self.reading.fault_at(FaultKind::Value, &list.name, reason);
                    return None;
                }
            }
        }
        Some(keys.into())
    }
}

/// Text and CDATA; not what comments and processing instructions say.
fn text_of(node: &Element<'_, '_>) -> Option<String> {
    node.text().filter(|_| node.is_text()).map(str::to_owned)
}

/// The canonical value in an element.
fn checked(schema: &Schema, ty: &Type, element: Element<'_, '_>) -> Result<String, String> {
    let text: String = element.children().filter_map(|child| text_of(&child)).collect();
    // Blanks around a number or a word are the layout's.
    let trimmed = text.trim();
    let value = ty.check(&text).or_else(|reason| {
        ty.check(trimmed).or_else(|_| identity(schema, ty, element, trimmed)).or(Err(reason))
    })?;
    // Prefixes stand for modules (RFC 7950, 9.10.3 and 9.13.2).
    match ty.taking(&value) {
        Type::InstanceIdentifier => ty.check(&modules_for_prefixes(schema, element, trimmed)),
        Type::Identity(_) => identity(schema, ty, element, trimmed).or(Ok(value)),
        _ => Ok(value),
    }
}

/// A text with the modules' names for the prefixes that the element knows; not within quotes.
fn modules_for_prefixes(schema: &Schema, element: Element<'_, '_>, text: &str) -> String {
    renamed(text, |prefix| module_of(schema, element.lookup_namespace_uri(Some(prefix))?))
}

/// An identity with its module's name; without a prefix it is of the namespace around it (RFC 7950, 9.10.3).
fn identity(schema: &Schema, ty: &Type, element: Element<'_, '_>, text: &str) -> Result<String, String> {
    let qualified = if text.contains(':') {
        modules_for_prefixes(schema, element, text)
    } else {
        let around = element.lookup_namespace_uri(None).and_then(|namespace| module_of(schema, namespace));
        around.map_or_else(|| text.into(), |module| format!("{module}:{text}"))
    };
    ty.check(&qualified)
}

fn module_of(schema: &Schema, namespace: &str) -> Option<String> {
    schema.modules.iter().find(|module| module.namespace == namespace).map(|module| module.name.clone())
}

/// A text with other prefixes before the names in it; not within quotes.
fn renamed(text: &str, mut prefix: impl FnMut(&str) -> Option<String>) -> String {
    let mut renamed = String::with_capacity(text.len());
    let mut word = String::new();
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) => {
                if c == open {
                    quote = None;
                }
            }
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == ':' => word = prefix(&word).unwrap_or(word),
            None if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') => {
                word.push(c);
                continue;
            }
            None => {}
        }
        renamed.push_str(&word);
        word.clear();
        renamed.push(c);
    }
    renamed.push_str(&word);
    renamed
}

/// Writes elements.
struct Writer<'a> {
    filled: &'a Filled<'a>,
    tagged: bool,
    text: String,
    depth: usize,
}

impl<'a> Writer<'a> {
    /// What is below a node, in an element of a module; `None` where the element isn't written.
    fn below(&mut self, parent: Option<NodeId>, module: Option<&str>, fields: Option<&'a Fields>) {
        for (id, shown) in self.filled.below(parent, fields) {
            self.node(self.filled.schema.node(id), module, &shown);
        }
    }

    fn node(&mut self, node: &Node, module: Option<&str>, shown: &Shown<'a>) {
        match shown {
            Shown::Leaf(value, default) => self.leaf(node, module, value, *default),
            Shown::Values(values, default) => {
                for value in values {
                    self.leaf(node, module, value, *default);
                }
            }
            Shown::Fields(fields) => self.element(node, module, *fields),
            Shown::Entries(entries) => {
                for (_, fields) in entries.iter() {
                    self.element(node, module, Some(fields));
                }
            }
        }
    }

    /// A container or an entry.
    fn element(&mut self, node: &Node, module: Option<&str>, fields: Option<&'a Fields>) {
        self.open(node, module);
        self.text.push_str(">\n");
        let from = self.text.len();
        self.depth += 1;
        let namespace = &self.filled.schema.module_of(node).namespace;
        self.below(Some(node.id), Some(namespace), fields);
        self.depth -= 1;
        if self.text.len() == from {
            self.text.truncate(from - ">\n".len());
            self.text.push_str("/>\n");
            return;
        }
        self.indent();
        let _ = writeln!(self.text, "</{}>", node.name);
    }

    fn leaf(&mut self, node: &Node, module: Option<&str>, value: &str, default: bool) {
        self.open(node, module);
        if default && self.tagged {
            let _ = write!(self.text, " xmlns:wd=\"{DEFAULTS_NAMESPACE}\" wd:default=\"true\"");
        }
        if let Some(Type::Identity(_) | Type::InstanceIdentifier) = node.ty().map(|ty| ty.taking(value)) {
            let schema = self.filled.schema;
            let mut named: Vec<&str> = Vec::new();
            renamed(value, |prefix| {
                let module = schema.modules.iter().find(|module| module.name == prefix)?;
                if !named.contains(&prefix) {
                    named.push(&module.name);
                    let _ = write!(self.text, " xmlns:{}=\"{}\"", module.name, escaped(&module.namespace));
                }
                None
            });
        }
        if value.is_empty() {
            self.text.push_str("/>\n");
        } else {
            let _ = writeln!(self.text, ">{}</{}>", escaped(value), node.name);
        }
    }

    /// An element's name, and its namespace where it is another than around it.
    fn open(&mut self, node: &Node, around: Option<&str>) {
        self.indent();
        let namespace = &self.filled.schema.module_of(node).namespace;
        let _ = write!(self.text, "<{}", node.name);
        if around != Some(namespace) {
            let _ = write!(self.text, " xmlns=\"{}\"", escaped(namespace));
        }
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
    }
}

/// Text of an element or attribute. A carriage return would be read as a line end (XML 1.0, 2.11).
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '>', '&', '"', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\r' => escaped.push_str("&#13;"),
            _ => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}
