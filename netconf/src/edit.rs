//! XML into a tree: `<edit-config>` (RFC 6241, 7.2; RFC 7950, 7.5.8 to 7.8.6), inline configurations, and what an RPC
//! is given.

use std::collections::HashSet;
use std::sync::Arc;

use roxmltree::Node as Element;
use tree::{Data, Edit, Kind, Node, NodeId, Path, Place, Schema, Tree};

use crate::document::{content, elements, namespace};
use crate::error::{ErrorPath, Info, Refusal, RpcError, Tag};
use crate::name::{BASE, DEFAULT_ATTRIBUTE, YANG};

/// Errors after which even `continue-on-error` gives up.
const MOST_ERRORS: usize = 200;

/// What is done with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Put in beside what is there.
    Merge,
    /// Put in the place of what is there.
    Replace,
    /// Put in where there is nothing.
    Create,
    /// Taken away; it must be there.
    Delete,
    /// Taken away, if it is there.
    Remove,
    /// Nothing, but something may be done with what is below.
    None,
}

impl Operation {
    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "merge" => Self::Merge,
            "replace" => Self::Replace,
            "create" => Self::Create,
            "delete" => Self::Delete,
            "remove" => Self::Remove,
            _ => return None,
        })
    }
}

/// What happens after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterError {
    /// Nothing of the request is done.
    Stop,
    /// The rest is done, and all errors are told.
    Continue,
}

/// Does what the elements below `config` say.
///
/// # Errors
/// What is wrong. With [`AfterError::Stop`] the tree is to be thrown away then.
pub(crate) fn edit(
    tree: &mut Tree,
    config: Element<'_, '_>,
    default: Operation,
    after_error: AfterError,
) -> Result<(), Refusal> {
    let mut editor = Editor {
        schema: Arc::clone(tree.schema()),
        tree,
        after_error,
        operations: true,
        state: false,
        errors: Vec::new(),
    };
    // Err says that it has stopped; the errors are in the editor.
    let _ = editor.children(config, None, &Path::default(), default);
    if editor.errors.is_empty() { Ok(()) } else { Err(Refusal(editor.errors)) }
}

/// A whole configuration in a message.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(schema: &Arc<Schema>, config: Element<'_, '_>) -> Result<Tree, Refusal> {
    let mut tree = Tree::new(Arc::clone(schema));
    read_into(&mut tree, config, None, &Path::default(), false)?;
    Ok(tree)
}

/// The input of an RPC: a tree with the RPC's node on top, its input below.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn input(schema: &Arc<Schema>, rpc: &Node, element: Element<'_, '_>) -> Result<Tree, Refusal> {
    let mut tree = Tree::new(Arc::clone(schema));
    let path = Path::default().child(rpc.id);
    let input = schema.below(Some(rpc.id)).find(|node| node.kind == Kind::Input);
    match input {
        Some(input) => read_into(&mut tree, element, Some(input.id), &path.child(input.id), true)?,
        None => {
            if let Some(extra) = elements(element).next() {
                let name = extra.tag_name().name();
                let message = format!("{} takes nothing, not {name}", rpc.name);
                return Err(RpcError::unknown_element(name, message).into());
            }
        }
    }
    Ok(tree)
}

fn read_into(
    tree: &mut Tree,
    element: Element<'_, '_>,
    parent: Option<NodeId>,
    path: &Path,
    state: bool,
) -> Result<(), Refusal> {
    let mut editor = Editor {
        schema: Arc::clone(tree.schema()),
        tree,
        after_error: AfterError::Stop,
        operations: false,
        state,
        errors: Vec::new(),
    };
    // As above.
    let _ = editor.children(element, parent, path, Operation::Merge);
    if editor.errors.is_empty() { Ok(()) } else { Err(Refusal(editor.errors)) }
}

/// It is over; the errors say why.
struct Stopped;

struct Editor<'tree> {
    schema: Arc<Schema>,
    tree: &'tree mut Tree,
    after_error: AfterError,
    /// Attributes that say what to do are allowed.
    operations: bool,
    /// Nodes that are no configuration are allowed.
    state: bool,
    errors: Vec<RpcError>,
}

/// What an element's attributes say.
#[derive(Default)]
struct Attributes<'doc> {
    operation: Option<Operation>,
    insert: Option<&'doc str>,
    key: Option<&'doc str>,
    value: Option<&'doc str>,
    /// The value is the default and is not to be kept (RFC 6243, 4.5.2).
    default: bool,
}

impl Editor<'_> {
    fn children(
        &mut self,
        element: Element<'_, '_>,
        parent: Option<NodeId>,
        path: &Path,
        inherited: Operation,
    ) -> Result<(), Stopped> {
        let schema = Arc::clone(&self.schema);
        let keys = parent.map_or(&[][..], |parent| schema.node(parent).keys());
        // Leaves and containers are there once; entries and values each once.
        let mut seen: HashSet<NodeId> = HashSet::new();
        for child in element.children() {
            let done = if child.is_element() {
                self.child(child, &schema, parent, path, inherited, keys, &mut seen)
            } else if child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty()) {
                let name = element.tag_name().name();
                Err(self.at(path, RpcError::bad_element(name, format!("{name} takes elements, not a text"))))
            } else {
                Ok(())
            };
            if let Err(error) = done {
                self.errors.push(error);
            }
            let full = self.errors.len() >= MOST_ERRORS;
            if full || (self.after_error == AfterError::Stop && !self.errors.is_empty()) {
                return Err(Stopped);
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "one step of the recursion above")]
    fn child(
        &mut self,
        element: Element<'_, '_>,
        schema: &Schema,
        parent: Option<NodeId>,
        path: &Path,
        inherited: Operation,
        keys: &[NodeId],
        seen: &mut HashSet<NodeId>,
    ) -> Result<(), RpcError> {
        let node = self.node(schema, element, parent, path)?;
        let here = path.child(node.id);
        let attributes = self.attributes(element, node, &here)?;
        let once = !matches!(node.kind, Kind::List { .. } | Kind::LeafList { .. });
        if once && !seen.insert(node.id) {
            let message = format!("{} is there twice", node.name);
            return Err(self.at(&here, RpcError::bad_element(&node.name, message)));
        }
        let operation = attributes.operation.unwrap_or(inherited);
        match &node.kind {
            Kind::Leaf { .. } if keys.contains(&node.id) => {
                // The entry was made with it.
                if matches!(attributes.operation, Some(Operation::Delete | Operation::Remove)) {
                    let message = format!("{} is a key: delete the entry instead", node.name);
                    let error = RpcError::new(Tag::BadAttribute, message);
                    let error = error.with(Info::BadAttribute("operation".to_owned()));
                    return Err(self.at(&here, error.with(Info::BadElement(node.name.clone()))));
                }
                Ok(())
            }
            Kind::Leaf { .. } => self.leaf(element, node, &here, operation, &attributes),
            Kind::LeafList { .. } => self.value(element, node, path, operation, &attributes),
            Kind::List { .. } => self.entry(element, schema, node, path, operation, &attributes),
            _ => {
                let exists = self.tree.contains(&here);
                self.container(element, node, &here, operation, exists)
            }
        }
    }

    /// The schema's node for an element.
    fn node<'schema>(
        &self,
        schema: &'schema Schema,
        element: Element<'_, '_>,
        parent: Option<NodeId>,
        path: &Path,
    ) -> Result<&'schema Node, RpcError> {
        let (name, space) = (element.tag_name().name(), namespace(element));
        let found =
            schema.below(parent).find(|node| node.name == name && schema.module_of(node).namespace == space);
        let special = |node: &Node| matches!(node.kind, Kind::Rpc | Kind::Notification);
        if let Some(node) = found.filter(|node| !special(node)) {
            if node.config || self.state {
                return Ok(node);
            }
            let message = format!("{name} is state and cannot be configured");
            return Err(self.at(&path.child(node.id), RpcError::unknown_element(name, message)));
        }
        if !schema.modules.iter().any(|module| module.namespace == space) {
            let message = match space {
                "" => format!("{name} has no namespace"),
                space => format!("no module has the namespace {space}"),
            };
            let error = RpcError::new(Tag::UnknownNamespace, message)
                .with(Info::BadElement(name.to_owned()))
                .with(Info::BadNamespace(space.to_owned()));
            return Err(self.at(path, error));
        }
        let above = parent.map_or("at the top", |parent| &schema.node(parent).name);
        let message = match parent {
            Some(_) => format!("there is no {name} in {above}"),
            None => format!("there is no {name} at the top"),
        };
        Err(self.at(path, RpcError::unknown_element(name, message)))
    }

    fn attributes<'doc>(
        &self,
        element: Element<'doc, '_>,
        node: &Node,
        here: &Path,
    ) -> Result<Attributes<'doc>, RpcError> {
        let mut attributes = Attributes::default();
        for attribute in element.attributes() {
            let (space, name, value) =
                (attribute.namespace().unwrap_or_default(), attribute.name(), attribute.value());
            let fault = |tag, message: String| {
                let error = RpcError::new(tag, message).with(Info::BadAttribute(name.to_owned()));
                self.at(here, error.with(Info::BadElement(node.name.clone())))
            };
            match (space, name) {
                (BASE, "operation") if self.operations => {
                    let words = "merge, replace, create, delete or remove";
                    let operation = Operation::of_word(value).ok_or_else(|| {
                        fault(Tag::BadAttribute, format!("operation is {words}, not {value}"))
                    })?;
                    attributes.operation = Some(operation);
                }
                (YANG, "insert" | "key" | "value") if self.operations && ordered_by_user(node) => {
                    match name {
                        "insert" => attributes.insert = Some(value),
                        "key" => attributes.key = Some(value),
                        _ => attributes.value = Some(value),
                    }
                }
                (DEFAULT_ATTRIBUTE, "default") => attributes.default = matches!(value, "true" | "1"),
                ("http://www.w3.org/XML/1998/namespace", _) => {}
                _ => {
                    let message = match (space, name) {
                        ("", "operation") => {
                            format!("the attribute operation needs the namespace {BASE}, as in nc:operation")
                        }
                        (BASE, "operation") => "operations are for edit-config".to_owned(),
                        _ => format!("{} has no attribute {name}", node.name),
                    };
                    return Err(fault(Tag::UnknownAttribute, message));
                }
            }
        }
        Ok(attributes)
    }

    fn leaf(
        &mut self,
        element: Element<'_, '_>,
        node: &Node,
        here: &Path,
        operation: Operation,
        attributes: &Attributes<'_>,
    ) -> Result<(), RpcError> {
        let exists = self.tree.contains(here);
        let operation =
            if attributes.default { self.to_default(element, node, here, operation)? } else { operation };
        match operation {
            Operation::None if exists => return Ok(()),
            Operation::Delete | Operation::None if !exists => return Err(self.missing(node, here)),
            Operation::Delete | Operation::Remove => {
                self.tree.remove(here);
                return Ok(());
            }
            Operation::Create if exists => return Err(self.exists(node, here)),
            _ => {}
        }
        let text = self.checked(element, node, here)?;
        self.set(node, here, Some(&text))
    }

    /// A value that says it is the default is taken away (RFC 6243, 4.5.2), whatever was to be done with it.
    fn to_default(
        &self,
        element: Element<'_, '_>,
        node: &Node,
        here: &Path,
        operation: Operation,
    ) -> Result<Operation, RpcError> {
        let text = self.checked(element, node, here)?;
        let Kind::Leaf { default: Some(default), .. } = &node.kind else {
            let message = format!("{} has no default", node.name);
            return Err(self.at(here, RpcError::new(Tag::InvalidValue, message)));
        };
        if *default != text {
            let message = format!("the default of {} is {default}, not {text}", node.name);
            return Err(self.at(here, RpcError::new(Tag::InvalidValue, message)));
        }
        let sets = matches!(operation, Operation::Merge | Operation::Replace | Operation::Create);
        Ok(if sets { Operation::Remove } else { operation })
    }

    fn value(
        &mut self,
        element: Element<'_, '_>,
        node: &Node,
        path: &Path,
        operation: Operation,
        attributes: &Attributes<'_>,
    ) -> Result<(), RpcError> {
        let list = path.child(node.id);
        // RFC 7950, 7.7.9, and what clients do: without a value, all of them are meant.
        let empty = content(element).is_some_and(|text| text.trim().is_empty());
        let taken = matches!(operation, Operation::Delete | Operation::Remove);
        if taken && empty && node.ty().is_some_and(|ty| ty.check("").is_err()) {
            if !self.tree.remove(&list) && operation == Operation::Delete {
                return Err(self.missing(node, &list));
            }
            return Ok(());
        }
        let text = self.checked(element, node, &list)?;
        let here = path.value(node.id, &text);
        let exists = self.tree.contains(&here);
        match operation {
            Operation::None if exists => return Ok(()),
            Operation::Delete | Operation::None if !exists => return Err(self.missing(node, &here)),
            Operation::Delete | Operation::Remove => {
                self.tree.remove(&here);
                return Ok(());
            }
            Operation::Create if exists => return Err(self.exists(node, &here)),
            _ => {}
        }
        self.set(node, &list, Some(&text))?;
        self.place(element, node, &here, attributes)
    }

    fn entry(
        &mut self,
        element: Element<'_, '_>,
        schema: &Schema,
        node: &Node,
        path: &Path,
        operation: Operation,
        attributes: &Attributes<'_>,
    ) -> Result<(), RpcError> {
        let list = path.child(node.id);
        let here = if node.keys().is_empty() {
            let position = self.tree.entries(&list).count() + 1;
            path.entry(node.id, [position.to_string()])
        } else {
            path.entry(node.id, self.keys(element, schema, node, &list)?)
        };
        let exists = self.tree.contains(&here);
        self.container(element, node, &here, operation, exists)?;
        if matches!(operation, Operation::Merge | Operation::Replace | Operation::Create) {
            self.place(element, node, &here, attributes)?;
        }
        Ok(())
    }

    /// The values of an entry's keys, in the order of the schema.
    fn keys(
        &self,
        element: Element<'_, '_>,
        schema: &Schema,
        list: &Node,
        path: &Path,
    ) -> Result<Vec<String>, RpcError> {
        let mut values = Vec::with_capacity(list.keys().len());
        for key in list.keys() {
            let key = schema.node(*key);
            let space = &schema.module_of(key).namespace;
            let mut given = elements(element)
                .filter(|child| child.tag_name().name() == key.name && namespace(*child) == space);
            let Some(first) = given.next() else {
                let message = format!("an entry of {} needs its key {}", list.name, key.name);
                let error = RpcError::new(Tag::MissingElement, message);
                return Err(self.at(path, error.with(Info::BadElement(key.name.clone()))));
            };
            if given.next().is_some() {
                let message = format!("the key {} of an entry of {} is there twice", key.name, list.name);
                return Err(self.at(path, RpcError::bad_element(&key.name, message)));
            }
            values.push(self.checked(first, key, &path.child(key.id))?);
        }
        Ok(values)
    }

    /// A container or an entry: itself, then what is in it.
    fn container(
        &mut self,
        element: Element<'_, '_>,
        node: &Node,
        here: &Path,
        operation: Operation,
        exists: bool,
    ) -> Result<(), RpcError> {
        // A container that means nothing by itself is always there (RFC 7950, 7.5.8).
        let implicit = matches!(node.kind, Kind::Container { presence: false });
        match operation {
            Operation::Delete if !exists => return Err(self.missing(node, here)),
            Operation::Delete | Operation::Remove => {
                self.tree.remove(here);
                return Ok(());
            }
            Operation::Create if exists => return Err(self.exists(node, here)),
            Operation::None if !exists && !implicit => return Err(self.missing(node, here)),
            Operation::None => {}
            Operation::Replace => {
                self.empty(node, here);
                self.set(node, here, None)?;
            }
            Operation::Merge | Operation::Create => self.set(node, here, None)?,
        }
        // What is in something that was just created or emptied is put in, not created once more.
        let within = if operation == Operation::Create { Operation::Merge } else { operation };
        // The errors are taken down; the caller looks whether to stop.
        let _ = self.children(element, Some(node.id), here, within);
        Ok(())
    }

    /// Takes away what is in a container or entry, so that an entry keeps its place.
    fn empty(&mut self, node: &Node, here: &Path) {
        let Some(Data::Fields(fields)) = self.tree.get(here) else { return };
        let inside: Vec<NodeId> = fields.iter().map(|(id, _)| id).collect();
        for id in inside.into_iter().filter(|id| !node.keys().contains(id)) {
            self.tree.remove(&here.child(id));
        }
    }

    /// Moves what `insert` says (RFC 7950, 7.7.9 and 7.8.6).
    fn place(
        &mut self,
        element: Element<'_, '_>,
        node: &Node,
        here: &Path,
        attributes: &Attributes<'_>,
    ) -> Result<(), RpcError> {
        let Some(insert) = attributes.insert else { return Ok(()) };
        let list = matches!(node.kind, Kind::List { .. });
        let (name, given) = if list { ("key", attributes.key) } else { ("value", attributes.value) };
        let fault = |tag, name: &str, message: String| {
            let error = RpcError::new(tag, message).with(Info::BadAttribute(name.to_owned()));
            self.at(here, error.with(Info::BadElement(node.name.clone())))
        };
        let place = match insert {
            "first" => Place::First,
            "last" => Place::Last,
            "before" | "after" => {
                let given = given.ok_or_else(|| {
                    fault(
                        Tag::MissingAttribute,
                        name,
                        format!("insert=\"{insert}\" needs the attribute {name}"),
                    )
                })?;
                let keys =
                    if list { self.beside(element, node, given) } else { self.beside_value(node, given) };
                let keys = keys.map_err(|reason| fault(Tag::BadAttribute, name, reason))?;
                let other = match here.parent() {
                    Some(parent) => parent.step(node.id, Arc::clone(&keys)),
                    None => Path::default(),
                };
                if !self.tree.contains(&other) {
                    let message = format!("{given} is not there to stand beside");
                    return Err(fault(Tag::BadAttribute, name, message).app_tag("missing-instance"));
                }
                if other == *here {
                    return Ok(());
                }
                if insert == "before" { Place::Before(keys) } else { Place::After(keys) }
            }
            other => {
                let message = format!("insert is first, last, before or after, not {other}");
                return Err(fault(Tag::BadAttribute, "insert", message));
            }
        };
        let moved = self.tree.apply(&Edit::Place(here.clone(), place));
        moved.map(drop).map_err(|fault| self.at(here, RpcError::new(Tag::OperationFailed, fault.to_string())))
    }

    /// The keys in `[prefix:name='value']...`.
    fn beside(&self, element: Element<'_, '_>, list: &Node, text: &str) -> Result<tree::Keys, String> {
        let wrong = || format!("the attribute key is like [prefix:name='value'], not {text}");
        let mut values: Vec<Option<Box<str>>> = vec![None; list.keys().len()];
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, behind) =
                rest.strip_prefix('[').and_then(|rest| rest.split_once('=')).ok_or_else(wrong)?;
            let behind = behind.trim_start();
            let quote =
                behind.chars().next().filter(|quote| matches!(quote, '\'' | '"')).ok_or_else(wrong)?;
            let (value, behind) =
                behind.get(1..).and_then(|rest| rest.split_once(quote)).ok_or_else(wrong)?;
            rest = behind.trim_start().strip_prefix(']').ok_or_else(wrong)?.trim_start();
            let (prefix, name) = name
                .trim()
                .split_once(':')
                .map_or((None, name.trim()), |(prefix, name)| (Some(prefix), name));
            if let Some(prefix) = prefix
                && element.lookup_namespace_uri(Some(prefix))
                    != Some(self.schema.module_of(list).namespace.as_str())
            {
                return Err(format!("the prefix {prefix} in {text} is not that of {}", list.name));
            }
            let at = list.keys().iter().position(|key| self.schema.node(*key).name == name);
            let at = at.ok_or_else(|| format!("{name} is no key of {}", list.name))?;
            let ty = list.keys().get(at).and_then(|key| self.schema.node(*key).ty());
            let value = ty.map_or(Ok(value.to_owned()), |ty| ty.check(value))?;
            if let Some(slot) = values.get_mut(at) {
                *slot = Some(value.into());
            }
        }
        values.into_iter().collect::<Option<Vec<_>>>().map(Into::into).ok_or_else(wrong)
    }

    fn beside_value(&self, node: &Node, text: &str) -> Result<tree::Keys, String> {
        let value = node.ty().map_or(Ok(text.to_owned()), |ty| ty.check(text))?;
        Ok(Arc::new([value.into()]))
    }

    /// An element's text as its type writes it.
    fn checked(&self, element: Element<'_, '_>, node: &Node, here: &Path) -> Result<String, RpcError> {
        let Some(text) = content(element) else {
            let name = elements(element).next().map_or("", |child| child.tag_name().name());
            let message = format!("{} takes a value, not elements", node.name);
            return Err(self.at(here, RpcError::unknown_element(name, message)));
        };
        let Some(ty) = node.ty() else { return Ok(text.into_owned()) };
        let text = by_module(&self.schema, element, ty, &text);
        // Blanks around numbers and words mean nothing (RFC 7950, 9.2.1 by XML Schema's whitespace facet); those of a
        // string do.
        ty.check(&text).or_else(|reason| ty.check(text.trim()).map_err(|_| reason)).map_err(|reason| {
            let message = format!("{}: {reason}", node.name);
            let error = RpcError::new(Tag::InvalidValue, message);
            self.at(here, error.with(Info::BadElement(node.name.clone())))
        })
    }

    fn set(&mut self, node: &Node, path: &Path, value: Option<&str>) -> Result<(), RpcError> {
        self.tree.set(path, value).map(drop).map_err(|fault| {
            let error = RpcError::new(Tag::InvalidValue, fault.to_string());
            self.at(path, error.with(Info::BadElement(node.name.clone())))
        })
    }

    fn at(&self, path: &Path, error: RpcError) -> RpcError {
        error.at(ErrorPath::of(&self.schema, path))
    }

    fn missing(&self, node: &Node, path: &Path) -> RpcError {
        self.at(
            path,
            RpcError::new(Tag::DataMissing, format!("{} is not there", path_words(&self.schema, node, path))),
        )
    }

    fn exists(&self, node: &Node, path: &Path) -> RpcError {
        let message = format!("{} is there already", path_words(&self.schema, node, path));
        self.at(path, RpcError::new(Tag::DataExists, message))
    }
}

fn path_words(schema: &Schema, node: &Node, path: &Path) -> String {
    let words = path.words(schema);
    if words.is_empty() { node.name.clone() } else { words }
}

/// An identity with its module's name in the place of the message's prefix (RFC 7951, 6.8 is how trees keep it).
fn by_module<'text>(
    schema: &Schema,
    element: Element<'_, '_>,
    ty: &tree::Type,
    text: &'text str,
) -> std::borrow::Cow<'text, str> {
    use std::borrow::Cow;
    let tree::Type::Identity(words) = ty else { return Cow::Borrowed(text) };
    let text = text.trim();
    let (prefix, name) = text.split_once(':').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let space = element.lookup_namespace_uri(prefix);
    let module = schema.modules.iter().find(|module| Some(module.namespace.as_str()) == space);
    let full = module.map(|module| format!("{}:{name}", module.name));
    match full {
        Some(full) if words.iter().any(|word| word.name == full) => Cow::Owned(full),
        _ => Cow::Borrowed(text),
    }
}

fn ordered_by_user(node: &Node) -> bool {
    matches!(
        node.kind,
        Kind::List { ordered_by_user: true, .. } | Kind::LeafList { ordered_by_user: true, .. }
    )
}
