//! The [`Schema`] from what libyang compiled.

use std::collections::HashMap;

use tree::schema::{Module, ModuleId, Must, Pattern, Word};
use tree::{Kind, Node, NodeId, Schema, Type};
use yang5::schema::{SchemaModule, SchemaNodeKind, SchemaPathFormat};

use crate::ffi;
use crate::statement::{self, Statement};

/// Collects modules. Leafrefs are resolved at the end, since they may point forwards.
#[derive(Default)]
pub(crate) struct Builder {
    schema: Schema,
    /// Names of keys by libyang's path of the list.
    keys: HashMap<String, Vec<String>>,
}

/// Stands for a leafref's target until all nodes are known.
const UNRESOLVED: NodeId = NodeId(u16::MAX);

impl Builder {
    /// Takes a module; one without data, RPCs and notifications only serves others.
    pub(crate) fn module(&mut self, module: &SchemaModule<'_>) -> Result<(), String> {
        if module.traverse().next().is_none() {
            return Ok(());
        }
        // libyang prints keys without a blank between them.
        for node in module.traverse().filter(|node| node.kind() == SchemaNodeKind::List) {
            let keys = node.list_keys().map(|key| key.name().to_owned()).collect();
            self.keys.insert(node.path(SchemaPathFormat::DATA), keys);
        }
        let id = ModuleId(u16::try_from(self.schema.modules.len()).map_err(|_| "too many modules")?);
        self.schema.modules.push(Module {
            name: module.name().to_owned(),
            namespace: module.namespace().to_owned(),
            prefix: module.prefix().to_owned(),
            revision: module.revision().map(str::to_owned),
        });
        let text = statement::read(&ffi::compiled(module)?)?;
        for statement in &text.below {
            if let Some(node) = self.node(statement, id, None, &format!("/{}:", module.name()))? {
                self.schema.roots.push(node);
            }
        }
        Ok(())
    }

    /// All of it.
    pub(crate) fn finish(mut self) -> Result<Schema, String> {
        for index in 0..self.schema.nodes.len() {
            let id = NodeId(u16::try_from(index).map_err(|_| "too many nodes")?);
            let mut kind = self.schema.node(id).kind.clone();
            if let Kind::Leaf { ty, .. } | Kind::LeafList { ty, .. } = &mut kind {
                self.resolve(ty, id)?;
                if let Some(node) = self.schema.nodes.get_mut(index) {
                    node.kind = kind;
                }
            }
        }
        Ok(self.schema)
    }

    fn resolve(&self, ty: &mut Type, at: NodeId) -> Result<(), String> {
        match ty {
            Type::Leafref { target, path, ty, .. } => {
                *target = self.target(path, at).ok_or_else(|| format!("leafref {path:?} leads nowhere"))?;
                self.resolve(ty, at)
            }
            Type::Union(types) => types.iter_mut().try_for_each(|ty| self.resolve(ty, at)),
            _ => Ok(()),
        }
    }

    /// The leaf that a leafref's path leads to (RFC 7950, 9.9.2).
    fn target(&self, path: &str, from: NodeId) -> Option<NodeId> {
        let mut at = if path.starts_with('/') { None } else { Some(from) };
        for step in without_predicates(path).split('/').filter(|step| !step.is_empty()) {
            if step == ".." {
                at = self.schema.node(at?).parent;
                continue;
            }
            let name = step.rsplit(':').next().unwrap_or(step);
            at = Some(self.schema.child(at, name)?.id);
        }
        at.filter(|id| self.schema.node(*id).ty().is_some())
    }

    /// Adds the node of a statement and all below it; `None` for a statement that is no node. `path` is libyang's, up
    /// to the name.
    fn node(
        &mut self,
        statement: &Statement,
        module: ModuleId,
        parent: Option<NodeId>,
        path: &str,
    ) -> Result<Option<NodeId>, String> {
        let path = format!("{path}{}", statement.argument);
        let fail = |reason: String| format!("{path}: {reason}");
        let kind = match statement.keyword.as_str() {
            "container" => Kind::Container { presence: statement.get("presence").is_some() },
            "list" => Kind::List {
                keys: Vec::new(),
                ordered_by_user: statement.argument_of("ordered-by") == Some("user"),
                min: elements(statement, "min-elements").unwrap_or(0),
                max: elements(statement, "max-elements"),
            },
            "leaf" => Kind::Leaf {
                ty: type_of(statement).map_err(fail)?,
                default: statement.argument_of("default").map(str::to_owned),
                mandatory: statement.argument_of("mandatory") == Some("true"),
                units: statement.argument_of("units").map(str::to_owned),
            },
            "leaf-list" => Kind::LeafList {
                ty: type_of(statement).map_err(fail)?,
                defaults: statement.all("default").map(|default| default.argument.clone()).collect(),
                units: statement.argument_of("units").map(str::to_owned),
                ordered_by_user: statement.argument_of("ordered-by") == Some("user"),
                min: elements(statement, "min-elements").unwrap_or(0),
                max: elements(statement, "max-elements"),
            },
            "rpc" => Kind::Rpc,
            "input" => Kind::Input,
            "output" => Kind::Output,
            "notification" => Kind::Notification,
            // Data of a case stand where the choice stands.
            "choice" | "case" | "action" | "anydata" | "anyxml" => {
                return Err(fail(format!("{} is not used in these modules", statement.keyword)));
            }
            _ => return Ok(None),
        };
        let id = NodeId(u16::try_from(self.schema.nodes.len()).map_err(|_| "too many nodes")?);
        let name = if statement.argument.is_empty() { &statement.keyword } else { &statement.argument };
        self.schema.nodes.push(Node {
            id,
            parent,
            module,
            name: name.clone(),
            config: statement.argument_of("config") == Some("true"),
            description: statement.prose("description").unwrap_or_default(),
            musts: statement.all("must").map(must).collect(),
            whens: statement.all("when").map(|when| when.argument.clone()).collect(),
            children: Vec::new(),
            kind,
        });
        let below = if path.ends_with('/') { path.clone() } else { format!("{path}/") };
        let mut children = Vec::new();
        for statement in &statement.below {
            children.extend(self.node(statement, module, Some(id), &below)?);
        }
        if statement.keyword == "rpc" {
            // One without parameters is not printed.
            for keyword in ["input", "output"] {
                if statement.get(keyword).is_none() {
                    let empty =
                        Statement { keyword: keyword.to_owned(), argument: String::new(), below: Vec::new() };
                    children.extend(self.node(&empty, module, Some(id), &below)?);
                }
            }
        }
        let keys = match self.keys.get(&path) {
            Some(names) if statement.keyword == "list" => names
                .iter()
                .map(|name| children.iter().copied().find(|child| self.schema.node(*child).name == *name))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| format!("{path}: a key is missing"))?,
            _ => Vec::new(),
        };
        if let Some(node) = self.schema.nodes.get_mut(usize::from(id.0)) {
            node.children = children;
            if let Kind::List { keys: none, .. } = &mut node.kind {
                *none = keys;
            }
        }
        Ok(Some(id))
    }
}

/// A path without its `[...]`.
fn without_predicates(path: &str) -> String {
    let mut depth = 0_u32;
    path.chars()
        .filter(|character| {
            match character {
                '[' => depth += 1,
                ']' => {
                    depth = depth.saturating_sub(1);
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .collect()
}

/// A number of elements; `None` where there is no bound, which libyang prints as the largest number.
fn elements(statement: &Statement, keyword: &str) -> Option<u32> {
    statement.argument_of(keyword)?.parse().ok().filter(|number| *number != u32::MAX)
}

fn must(statement: &Statement) -> Must {
    Must {
        condition: statement.argument.clone(),
        message: statement.prose("error-message"),
        app_tag: statement.argument_of("error-app-tag").map(str::to_owned),
    }
}

fn word(statement: &Statement) -> Word {
    Word { name: statement.argument.clone(), description: statement.prose("description").unwrap_or_default() }
}

fn type_of(statement: &Statement) -> Result<Type, String> {
    let ty = statement.get("type").ok_or("has no type")?;
    let bounds = |keyword: &str| ty.get(keyword).map(ranges).transpose();
    let message = |keyword: &str| ty.get(keyword).and_then(|statement| statement.prose("error-message"));
    let lengths = || {
        let parts = bounds("length")?.unwrap_or_default();
        let number = |bound: i128| u64::try_from(bound).map_err(|_| format!("length {bound}"));
        parts
            .into_iter()
            .map(|(low, high)| Ok((number(low)?, number(high)?)))
            .collect::<Result<Vec<_>, String>>()
    };
    Ok(match ty.argument.as_str() {
        "decimal64" => {
            let digits = ty.argument_of("fraction-digits").and_then(|digits| digits.parse().ok());
            Type::Decimal {
                fraction_digits: digits.ok_or("has no fraction-digits")?,
                ranges: bounds("range")?.unwrap_or_else(|| vec![(i64::MIN.into(), i64::MAX.into())]),
            }
        }
        "string" => Type::String {
            lengths: lengths()?,
            patterns: ty.all("pattern").map(pattern).collect(),
            message: message("length"),
        },
        "enumeration" => Type::Enumeration(ty.all("enum").map(word).collect()),
        "bits" => Type::Bits(ty.all("bit").map(word).collect()),
        "boolean" => Type::Boolean,
        "empty" => Type::Empty,
        "binary" => Type::Binary { lengths: lengths()? },
        "leafref" => Type::Leafref {
            target: UNRESOLVED,
            path: ty.argument_of("path").unwrap_or_default().to_owned(),
            require_instance: ty.argument_of("require-instance") != Some("false"),
            ty: Box::new(type_of(ty)?),
        },
        "union" => Type::Union(
            ty.all("type")
                .map(|member| type_of(&Statement { below: vec![member.clone()], ..Statement::default() }))
                .collect::<Result<_, _>>()?,
        ),
        "instance-identifier" => Type::InstanceIdentifier,
        name => {
            let (signed, width) = match name.strip_prefix("uint") {
                Some(width) => (false, width),
                None => (true, name.strip_prefix("int").ok_or_else(|| format!("no such type: {name}"))?),
            };
            let bits: u8 = width.parse().map_err(|_| format!("no such type: {name}"))?;
            let all = if signed {
                (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
            } else {
                (0, (1_i128 << bits) - 1)
            };
            Type::Integer {
                bits,
                signed,
                ranges: bounds("range")?.unwrap_or_else(|| vec![all]),
                message: message("range"),
            }
        }
    })
}

fn pattern(statement: &Statement) -> Pattern {
    Pattern {
        regex: statement.argument.clone(),
        inverted: statement.argument_of("modifier") == Some("invert-match"),
        message: statement.prose("error-message"),
    }
}

/// `1..65 | 70`.
fn ranges(statement: &Statement) -> Result<Vec<(i128, i128)>, String> {
    let number = |text: &str| text.trim().parse().map_err(|_| format!("{text:?} is no number"));
    statement
        .argument
        .split('|')
        .map(|part| match part.split_once("..") {
            Some((low, high)) => Ok((number(low)?, number(high)?)),
            None => number(part).map(|only| (only, only)),
        })
        .collect()
}
