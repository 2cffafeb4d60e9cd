//! Lines of the engineer: what the words of `set`, `del`, `show` and `edit` mean, and what may follow them.
//!
//! Names may be shortened as long as they mean one thing, and so may the words of enumerations; other values not.
//! After the value of a leaf more leaves of the same container may follow, then of those around it, out to the
//! innermost entry of a list: `flow bgp match ip-proto 6 dst-port 179 action bypass`.

use std::fmt;
use std::sync::Arc;

use crate::data::{Keys, stands_alone};
use crate::edit::{Edit, check_keys};
use crate::path::Path;
use crate::schema::{Kind, Node, NodeId, Schema, Type};
use crate::value::shown;

/// What a line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Sets leaves, adds values, makes entries.
    Set,
    /// Removes a leaf, a value, an entry, or all that is in a container or list.
    Del,
    /// Names anything.
    Show,
    /// Names a container or an entry.
    Edit,
}

/// A word that cannot stand where it does, or one that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordFault {
    /// Which, from 0; the number of words where one is missing.
    pub word: usize,
    /// What is wrong with it.
    pub message: String,
    /// What could stand there: words, and types in words such as `1..65`.
    pub expected: Vec<String>,
}

impl fmt::Display for WordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.expected.is_empty() {
            return Ok(());
        }
        write!(f, "; expected {}", self.expected.join(", "))
    }
}

impl std::error::Error for WordFault {}

/// Something that may be the next word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The word, or what stands for one: `<1..65>`, `<name>`, `<cr>`.
    pub text: String,
    /// What it means.
    pub help: String,
    /// What it is.
    pub kind: CandidateKind,
    /// The text is the word itself.
    pub literal: bool,
}

/// What a [`Candidate`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidateKind {
    /// The name of a node.
    Keyword(NodeId),
    /// One of the words that a value may be, or `[` or `]` around values.
    Word,
    /// Any value that the type of this leaf or leaf-list takes.
    Value(NodeId),
    /// A key of an entry: those that are there come from [`Tree::keys`](crate::Tree::keys).
    Key {
        /// The list as a whole.
        list: Path,
        /// The keys before this one.
        given: Vec<Box<str>>,
    },
    /// A value of another leaf, or one that is there: they come from [`Tree::values`](crate::Tree::values).
    Reference {
        /// That leaf or leaf-list; a step to a list without keys stands for all its entries.
        leaf: Path,
    },
    /// The line may end here.
    End,
}

/// What the words of `set` say, from `at` on.
///
/// # Errors
/// The first word that is wrong or missing.
pub fn set(schema: &Schema, at: &Path, words: &[&str]) -> Result<Vec<Edit>, WordFault> {
    let walk = Walk::along(schema, at, words, Verb::Set, true)?;
    let mut edits = walk.edits;
    edits.extend(walk.pending.map(|path| Edit::Set(path, None)));
    Ok(edits)
}

/// What the words of `del` say, from `at` on.
///
/// # Errors
/// The first word that is wrong or missing.
pub fn del(schema: &Schema, at: &Path, words: &[&str]) -> Result<Vec<Edit>, WordFault> {
    let walk = Walk::along(schema, at, words, Verb::Del, true)?;
    let mut edits = walk.edits;
    edits.extend(walk.pending.map(Edit::Delete));
    Ok(edits)
}

/// What the words of `show` name, from `at` on; `at` itself without words.
///
/// # Errors
/// The first word that is wrong or missing.
pub fn show(schema: &Schema, at: &Path, words: &[&str]) -> Result<Path, WordFault> {
    let walk = Walk::along(schema, at, words, Verb::Show, true)?;
    Ok(walk.pending.unwrap_or_else(|| at.clone()))
}

/// The container or entry that the words of `edit` name, from `at` on.
///
/// # Errors
/// The first word that is wrong or missing.
pub fn edit(schema: &Schema, at: &Path, words: &[&str]) -> Result<Path, WordFault> {
    let walk = Walk::along(schema, at, words, Verb::Edit, true)?;
    Ok(walk.pending.unwrap_or_else(|| at.clone()))
}

/// What may follow some words, all of which are complete.
///
/// # Errors
/// The first word that is wrong.
pub fn following(
    schema: &Schema,
    at: &Path,
    words: &[&str],
    verb: Verb,
) -> Result<Vec<Candidate>, WordFault> {
    Walk::along(schema, at, words, verb, false).map(|walk| walk.candidates())
}

/// What a word may be.
enum Expect<'a> {
    /// The name of a node in the innermost of some containers, or in those around it.
    Name {
        /// The innermost.
        inner: Path,
        /// Steps of the outermost.
        outer: usize,
    },
    /// A key of an entry of a list.
    Key { list: &'a Node, at: Path, given: Vec<Box<str>> },
    /// The value of a leaf.
    Value { leaf: &'a Node, ty: &'a Type, at: Path },
    /// A value of a leaf-list, or `[` before several.
    Values { list: &'a Node, ty: &'a Type, at: Path },
    /// A value of a leaf-list, or `]` where there is one.
    Bracket { list: &'a Node, ty: &'a Type, at: Path, any: bool },
    /// Nothing.
    Nothing,
}

/// A line under way.
struct Walk<'a> {
    schema: &'a Schema,
    at: &'a Path,
    verb: Verb,
    expect: Expect<'a>,
    /// The line may end here.
    may_end: bool,
    edits: Vec<Edit>,
    /// What the line names so far, where an edit does not say it.
    pending: Option<Path>,
    /// Leaves that the line has set.
    given: Vec<Path>,
}

impl<'a> Walk<'a> {
    /// Follows words; a whole line must not lack one.
    fn along(
        schema: &'a Schema,
        at: &'a Path,
        words: &[&str],
        verb: Verb,
        whole: bool,
    ) -> Result<Self, WordFault> {
        let mut walk = Self {
            schema,
            at,
            verb,
            expect: Expect::Name { inner: at.clone(), outer: at.0.len() },
            may_end: verb == Verb::Show,
            edits: Vec::new(),
            pending: None,
            given: Vec::new(),
        };
        for (n, word) in words.iter().enumerate() {
            let last = whole && n + 1 == words.len();
            walk.take(word, last).map_err(|(message, expected)| WordFault { word: n, message, expected })?;
        }
        if whole && !walk.may_end {
            let message = match words.last() {
                Some(last) => format!("something must follow {}", shown(last)),
                None => "something must follow".into(),
            };
            return Err(WordFault { word: words.len(), message, expected: walk.expected() });
        }
        Ok(walk)
    }

    fn take(&mut self, word: &str, last: bool) -> Result<(), (String, Vec<String>)> {
        match std::mem::replace(&mut self.expect, Expect::Nothing) {
            Expect::Name { inner, outer } => {
                let (at, node) = self.named(&inner, outer, word)?;
                self.name(at, node)
            }
            Expect::Key { list, at, given } => self.key(list, at, given, word),
            Expect::Value { leaf, ty, at } => {
                let value = value_of(leaf, ty, word)?;
                self.leaf(at.child(leaf.id), Some(value));
                self.after(at);
                Ok(())
            }
            Expect::Values { list, ty, at } => {
                // Alone at the end of a line it is a value.
                if word == "[" && !last {
                    self.may_end = false;
                    self.expect = Expect::Bracket { list, ty, at, any: false };
                    return Ok(());
                }
                self.value(list, ty, &at, word)?;
                self.after(at);
                Ok(())
            }
            Expect::Bracket { list, ty, at, any } => {
                if word == "]" && any {
                    self.after(at);
                    return Ok(());
                }
                self.value(list, ty, &at, word)?;
                self.expect = Expect::Bracket { list, ty, at, any: true };
                Ok(())
            }
            Expect::Nothing => Err((format!("nothing may follow, but {} does", shown(word)), Vec::new())),
        }
    }

    /// A node that the line may name.
    fn may_name(&self, node: &Node, parent: Option<NodeId>) -> bool {
        // What stands below what is no configuration is none either, and is meant to be named.
        let state = self.at.node().is_some_and(|at| !self.schema.node(at).config);
        let kind = match node.kind {
            Kind::Rpc | Kind::Notification => false,
            Kind::Leaf { .. } | Kind::LeafList { .. } => self.verb != Verb::Edit,
            _ => true,
        };
        let key = parent.is_some_and(|parent| self.schema.node(parent).keys().contains(&node.id));
        kind && !key && (node.config || state)
    }

    /// Where a name may stand, the innermost place first, and what it may be there.
    fn names(&self, inner: &Path, outer: usize) -> impl Iterator<Item = (usize, &'a Node)> {
        let schema = self.schema;
        let nodes: Vec<Option<NodeId>> =
            (0..=inner.0.len()).map(|steps| steps.checked_sub(1).map(|n| inner.0[n].node)).collect();
        (outer..=inner.0.len()).rev().flat_map(move |steps| {
            let parent = nodes.get(steps).copied().flatten();
            schema
                .below(parent)
                .filter(move |node| self.may_name(node, parent))
                .map(move |node| (steps, node))
        })
    }

    fn named(
        &self,
        inner: &Path,
        outer: usize,
        word: &str,
    ) -> Result<(Path, &'a Node), (String, Vec<String>)> {
        let found = |(steps, node): (usize, &'a Node)| (Path(inner.0[..steps].to_vec()), node);
        if let Some(exact) = self.names(inner, outer).find(|(_, node)| node.name == word) {
            return Ok(found(exact));
        }
        let mut begun = self
            .names(inner, outer)
            .filter(|(_, node)| !word.is_empty() && node.name.starts_with(word))
            .peekable();
        let Some((steps, _)) = begun.peek().copied() else {
            return Err((format!("{} is not known here", shown(word)), self.names_only(inner, outer)));
        };
        let begun: Vec<_> = begun.take_while(|(place, _)| *place == steps).collect();
        match &*begun {
            [one] => Ok(found(*one)),
            several => {
                let names = several.iter().map(|(_, node)| node.name.clone()).collect();
                Err((format!("{} could be several things", shown(word)), names))
            }
        }
    }

    fn names_only(&self, inner: &Path, outer: usize) -> Vec<String> {
        self.names(inner, outer).map(|(_, node)| node.name.clone()).collect()
    }

    /// A node is named.
    fn name(&mut self, at: Path, node: &'a Node) -> Result<(), (String, Vec<String>)> {
        let path = at.child(node.id);
        let naming = self.verb != Verb::Set;
        self.pending = naming.then(|| path.clone());
        self.may_end = naming;
        match &node.kind {
            Kind::Leaf { ty, .. } if self.verb == Verb::Set => {
                if self.given.contains(&path) {
                    return Err((format!("{} is given twice", node.name), Vec::new()));
                }
                if *ty == Type::Empty {
                    self.leaf(path, None);
                    self.after(at);
                } else {
                    self.expect = Expect::Value { leaf: node, ty, at };
                }
            }
            Kind::LeafList { ty, .. } if matches!(self.verb, Verb::Set | Verb::Del) => {
                self.expect = Expect::Values { list: node, ty, at };
            }
            Kind::Leaf { .. } | Kind::LeafList { .. } => {}
            Kind::List { .. } => {
                self.may_end &= self.verb != Verb::Edit;
                self.expect = Expect::Key { list: node, at, given: Vec::new() };
            }
            _ if self.verb == Verb::Set && stands_alone(node) => {
                self.pending = Some(path.clone());
                self.after(path);
            }
            _ => self.expect = Expect::Name { outer: path.0.len(), inner: path },
        }
        Ok(())
    }

    fn key(
        &mut self,
        list: &'a Node,
        at: Path,
        mut given: Vec<Box<str>>,
        word: &str,
    ) -> Result<(), (String, Vec<String>)> {
        match list.keys().get(given.len()).map(|key| self.schema.node(*key)) {
            Some(key) => match key.ty() {
                Some(ty) => given.push(value_of(key, ty, word)?.into()),
                None => given.push(word.into()),
            },
            None => {
                given.push(word.into());
                check_keys(self.schema, list, &given)
                    .map_err(|(_, reason)| (format!("{} {reason}", list.name), vec!["a position".into()]))?;
            }
        }
        if given.len() < list.keys().len() {
            self.may_end = false;
            self.expect = Expect::Key { list, at, given };
            return Ok(());
        }
        let entry = at.entry(list.id, given);
        self.pending = Some(entry.clone());
        self.may_end = true;
        self.expect = Expect::Name { outer: entry.0.len(), inner: entry };
        Ok(())
    }

    /// A value of a leaf-list.
    fn value(&mut self, list: &Node, ty: &Type, at: &Path, word: &str) -> Result<(), (String, Vec<String>)> {
        let value = value_of(list, ty, word)?;
        self.pending = None;
        let path = at.value(list.id, &value);
        self.edits.push(if self.verb == Verb::Del { Edit::Delete(path) } else { Edit::Set(path, None) });
        Ok(())
    }

    /// A leaf is set.
    fn leaf(&mut self, path: Path, value: Option<String>) {
        self.given.push(path.clone());
        self.edits.push(Edit::Set(path, value));
    }

    /// Something in a container is said in full: more of it may follow, or of those around it.
    fn after(&mut self, inner: Path) {
        self.may_end = true;
        if self.verb != Verb::Set {
            return;
        }
        let entry = inner.0.iter().rposition(|step| !step.keys.is_empty()).map_or(1, |n| n + 1);
        let outer = entry.max(self.at.0.len());
        if outer <= inner.0.len() {
            self.expect = Expect::Name { inner, outer };
        }
    }

    /// What may follow, as a fault says it.
    fn expected(&self) -> Vec<String> {
        self.candidates()
            .into_iter()
            .filter(|candidate| candidate.kind != CandidateKind::End)
            .map(|candidate| if candidate.literal { candidate.text } else { candidate.help })
            .collect()
    }

    fn candidates(&self) -> Vec<Candidate> {
        let mut all = Vec::new();
        match &self.expect {
            Expect::Name { inner, outer } => {
                for (steps, node) in self.names(inner, *outer) {
                    let path = Path(inner.0[..steps].to_vec()).child(node.id);
                    let known = |candidate: &Candidate| candidate.text == node.name;
                    if !self.given.contains(&path) && !all.iter().any(known) {
                        all.push(Candidate {
                            text: node.name.clone(),
                            help: node.description.clone(),
                            kind: CandidateKind::Keyword(node.id),
                            literal: true,
                        });
                    }
                }
            }
            Expect::Key { list, at, given } => self.key_candidates(list, at, given, &mut all),
            Expect::Value { leaf, ty, at } => {
                value_candidates(self.schema, leaf, ty, at, &mut all);
            }
            Expect::Values { list, ty, at } => {
                self.values_candidates(list, ty, at, &mut all);
                all.push(bracket("[", "begins several values, which ] ends"));
            }
            Expect::Bracket { list, ty, at, any } => {
                self.values_candidates(list, ty, at, &mut all);
                if *any {
                    all.push(bracket("]", "ends the values"));
                }
            }
            Expect::Nothing => {}
        }
        if self.may_end {
            let help = "the line may end here".into();
            all.push(Candidate { text: "<cr>".into(), help, kind: CandidateKind::End, literal: false });
        }
        all
    }

    fn key_candidates(&self, list: &Node, at: &Path, given: &[Box<str>], all: &mut Vec<Candidate>) {
        let key = list.keys().get(given.len()).map(|key| self.schema.node(*key));
        let name = key.map_or("position", |key| key.name.as_str());
        if let Some(ty) = key.and_then(Node::ty) {
            word_candidates(ty, all);
        }
        let help = match key {
            Some(key) if !key.description.is_empty() => key.description.clone(),
            _ => format!("{name} of the {}", list.name),
        };
        all.push(Candidate {
            text: format!("<{name}>"),
            help,
            kind: CandidateKind::Key { list: at.child(list.id), given: given.to_vec() },
            literal: false,
        });
        // A key may be a name from elsewhere.
        if let (Some(key), Verb::Set) = (key, self.verb)
            && let Some(ty) = key.ty()
        {
            all.extend(reference(self.schema, ty, at));
        }
    }

    fn values_candidates(&self, list: &Node, ty: &Type, at: &Path, all: &mut Vec<Candidate>) {
        if self.verb == Verb::Set {
            return value_candidates(self.schema, list, ty, at, all);
        }
        all.push(Candidate {
            text: format!("<{}>", list.name),
            help: ty.expected(),
            kind: CandidateKind::Reference { leaf: at.child(list.id) },
            literal: false,
        });
    }
}

fn bracket(text: &str, help: &str) -> Candidate {
    Candidate { text: text.into(), help: help.into(), kind: CandidateKind::Word, literal: true }
}

/// The canonical value that a word means; enumerations also by the beginning of a word.
fn value_of(node: &Node, ty: &Type, word: &str) -> Result<String, (String, Vec<String>)> {
    ty.check(word).or_else(|reason| {
        let mut begun = Vec::new();
        if !word.is_empty() {
            words_of(ty, &mut |name, _| {
                if name.starts_with(word) && !begun.iter().any(|known| known == name) {
                    begun.push(name.to_owned());
                }
            });
        }
        match (begun.pop(), begun.pop()) {
            (Some(only), None) => Ok(only),
            (Some(last), Some(other)) => {
                begun.extend([other, last]);
                Err((format!("{} {} could be several things", node.name, shown(word)), begun))
            }
            (None, _) => Err((format!("{} {reason}", node.name), vec![ty.expected()])),
        }
    })
}

/// The words that a value may be, with their meaning.
fn words_of(ty: &Type, each: &mut impl FnMut(&str, &str)) {
    match ty {
        Type::Enumeration(words) | Type::Identity(words) | Type::Bits(words) => {
            for word in words {
                each(&word.name, &word.description);
            }
        }
        Type::Boolean => {
            each("true", "");
            each("false", "");
        }
        Type::Union(members) => {
            for member in members {
                words_of(member, each);
            }
        }
        _ => {}
    }
}

fn word_candidates(ty: &Type, all: &mut Vec<Candidate>) {
    words_of(ty, &mut |text, help| {
        if !all.iter().any(|candidate| candidate.text == text) {
            all.push(Candidate {
                text: text.into(),
                help: help.into(),
                kind: CandidateKind::Word,
                literal: true,
            });
        }
    });
}

/// What a leaf takes: words, and one candidate for each type that takes more than these.
fn value_candidates(schema: &Schema, node: &Node, ty: &Type, at: &Path, all: &mut Vec<Candidate>) {
    word_candidates(ty, all);
    all.extend(reference(schema, ty, at));
    let units = match &node.kind {
        Kind::Leaf { units: Some(units), .. } | Kind::LeafList { units: Some(units), .. } => {
            format!(", {units}")
        }
        _ => String::new(),
    };
    open(ty, &mut |member| {
        let expected = member.expected();
        let range = matches!(member, Type::Integer { .. } | Type::Decimal { .. });
        let text = if range { format!("<{expected}>") } else { format!("<{}>", node.name) };
        let help = format!("{expected}{units}");
        if !all.iter().any(|candidate| candidate.text == text && candidate.help == help) {
            all.push(Candidate { text, help, kind: CandidateKind::Value(node.id), literal: false });
        }
    });
}

/// The types in a type that take more than some words and references.
fn open<'a>(ty: &'a Type, each: &mut impl FnMut(&'a Type)) {
    match ty {
        Type::Enumeration(_) | Type::Identity(_) | Type::Boolean | Type::Leafref { .. } | Type::Empty => {}
        Type::Union(members) => {
            for member in members {
                open(member, each);
            }
        }
        _ => each(ty),
    }
}

/// Where the values of references come from, for a leaf in a container or entry.
fn reference(schema: &Schema, ty: &Type, at: &Path) -> Vec<Candidate> {
    match ty {
        Type::Leafref { target, path, .. } => {
            let leaf = target_of(schema, *target, path, at);
            let name = &schema.node(*target).name;
            vec![Candidate {
                text: format!("<{name}>"),
                help: ty.expected(),
                kind: CandidateKind::Reference { leaf },
                literal: false,
            }]
        }
        Type::Union(members) => members.iter().flat_map(|member| reference(schema, member, at)).collect(),
        _ => Vec::new(),
    }
}

/// The leaf that a reference from within `at` leads to. A path that goes up stays in the entries that it shares
/// with `at`; one from the top goes through all.
fn target_of(schema: &Schema, target: NodeId, path: &str, at: &Path) -> Path {
    let mut nodes = Vec::new();
    let mut node = Some(target);
    while let Some(id) = node {
        nodes.push(id);
        node = schema.node(id).parent;
    }
    let mut shared = !path.trim_start().starts_with('/');
    let mut leaf = Path::default();
    for (n, id) in nodes.into_iter().rev().enumerate() {
        let own = at.0.get(n).filter(|step| step.node == id);
        shared &= own.is_some();
        let keys: Keys = own.filter(|_| shared).map_or_else(Arc::default, |step| Arc::clone(&step.keys));
        leaf = leaf.step(id, keys);
    }
    leaf
}
