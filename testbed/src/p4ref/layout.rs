//! Headers, stacks and fields of a program.

use std::collections::HashMap;
use std::ops::Range;

use super::error::LoadError;
use super::node::Node;

/// A header instance; metadata are headers too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeaderId(pub(super) usize);
/// A field of a header instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FieldId(pub(super) usize);
/// A header stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackId(pub(super) usize);

/// A field.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// Width in bits; 0 for a varbit field, whose width the packet has.
    pub(super) width: u32,
    pub(super) signed: bool,
    pub(super) varbit: bool,
    pub(super) header: HeaderId,
}

/// A header instance.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) kind: String,
    /// Never invalid, cleared for each packet.
    pub(super) metadata: bool,
    /// Its fields in the list of all of them.
    pub(super) fields: Range<usize>,
    pub(super) varbit: Option<FieldId>,
    /// Bits without the varbit field.
    pub(super) fixed_bits: usize,
    /// Bytes at most; 0 without a varbit field.
    pub(super) max_bytes: usize,
}

impl Header {
    /// The field at a place within the header.
    pub(super) fn field(&self, offset: usize) -> Option<FieldId> {
        let index = self.fields.start + offset;
        self.fields.contains(&index).then_some(FieldId(index))
    }
}

/// A header stack.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub(super) name: String,
    pub(super) headers: Vec<HeaderId>,
}

/// What a `field` of the JSON names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Field(FieldId),
    /// The hidden field `$valid$`.
    Valid(HeaderId),
}

/// All headers, stacks and fields, by number and by name.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) headers: Vec<Header>,
    pub(super) fields: Vec<Field>,
    pub(super) stacks: Vec<Stack>,
    header_names: HashMap<String, HeaderId>,
    stack_names: HashMap<String, StackId>,
    aliases: HashMap<String, FieldId>,
}

struct Kind {
    fields: Vec<(String, u32, bool, bool)>,
    max_bytes: usize,
}

impl Layout {
    pub(super) fn load(root: &Node<'_>) -> Result<Self, LoadError> {
        for (key, kind) in [
            ("header_union_types", "header union type"),
            ("header_unions", "header union"),
            ("header_union_stacks", "header union stack"),
        ] {
            root.get(key).none_of(kind)?;
        }
        let mut kinds = HashMap::new();
        for node in root.get("header_types").list()? {
            kinds.insert(node.get("name").text()?, kind(&node)?);
        }
        let mut layout = Layout::default();
        let mut ids = HashMap::new();
        for node in root.get("headers").list()? {
            let name = node.get("name").text()?;
            let type_name = node.get("header_type").text()?;
            let kind = kinds
                .get(type_name)
                .ok_or_else(|| node.get("header_type").unknown("header type", type_name))?;
            let header = layout.add_header(name, type_name, kind, node.get("metadata").flag_or(false)?);
            ids.insert(node.get("id").number()?, header);
        }
        for node in root.get("header_stacks").list()? {
            let headers = node.get("header_ids").list()?;
            let headers = headers
                .iter()
                .map(|id| {
                    let number = id.number()?;
                    ids.get(&number).copied().ok_or_else(|| id.unknown("header id", number.to_string()))
                })
                .collect::<Result<Vec<_>, _>>()?;
            if headers.is_empty() {
                return node.get("header_ids").wrong("at least one header");
            }
            let name = node.get("name").text()?.to_owned();
            layout.stack_names.insert(name.clone(), StackId(layout.stacks.len()));
            layout.stacks.push(Stack { name, headers });
        }
        for node in root.get("field_aliases").list()? {
            let [alias, target] = node.exactly("an alias and what it means")?;
            let Named::Field(field) = layout.named(&target)? else {
                return target.wrong("a field that can be written");
            };
            layout.aliases.insert(alias.text()?.to_owned(), field);
        }
        Ok(layout)
    }

    fn add_header(&mut self, name: &str, kind_name: &str, kind: &Kind, metadata: bool) -> HeaderId {
        let header = HeaderId(self.headers.len());
        let start = self.fields.len();
        let mut varbit = None;
        for (field, width, signed, is_varbit) in &kind.fields {
            if *is_varbit {
                varbit = Some(FieldId(self.fields.len()));
            }
            self.fields.push(Field {
                name: field.clone(),
                width: *width,
                signed: *signed,
                varbit: *is_varbit,
                header,
            });
        }
        self.headers.push(Header {
            name: name.to_owned(),
            kind: kind_name.to_owned(),
            metadata,
            fields: start..self.fields.len(),
            varbit,
            fixed_bits: kind.fields.iter().map(|field| field.1 as usize).sum(),
            max_bytes: kind.max_bytes,
        });
        self.header_names.insert(name.to_owned(), header);
        header
    }

    pub(super) fn header(&self, id: HeaderId) -> &Header {
        &self.headers[id.0]
    }

    pub(super) fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.0]
    }

    pub(super) fn stack(&self, id: StackId) -> &Stack {
        &self.stacks[id.0]
    }

    /// A field's full name.
    pub(super) fn field_name(&self, id: FieldId) -> String {
        let field = self.field(id);
        format!("{}.{}", self.header(field.header).name, field.name)
    }

    pub(super) fn named_header(&self, node: &Node<'_>) -> Result<HeaderId, LoadError> {
        let name = node.text()?;
        self.header_names.get(name).copied().ok_or_else(|| node.unknown("header", name))
    }

    pub(super) fn named_stack(&self, node: &Node<'_>) -> Result<StackId, LoadError> {
        let name = node.text()?;
        self.stack_names.get(name).copied().ok_or_else(|| node.unknown("header stack", name))
    }

    /// What `[header, field]` names.
    pub(super) fn named(&self, node: &Node<'_>) -> Result<Named, LoadError> {
        let [header, field] = node.exactly("a header's and a field's name")?;
        let id = self.named_header(&header)?;
        let name = field.text()?;
        if name == "$valid$" {
            return Ok(Named::Valid(id));
        }
        self.find(id, name).map(Named::Field).ok_or_else(|| field.unknown("field", name))
    }

    fn find(&self, header: HeaderId, name: &str) -> Option<FieldId> {
        self.header(header).fields.clone().map(FieldId).find(|id| self.field(*id).name == name)
    }

    /// What `[header, field]` names, if that can be written.
    pub(super) fn named_field(&self, node: &Node<'_>) -> Result<FieldId, LoadError> {
        match self.named(node)? {
            Named::Field(field) => Ok(field),
            Named::Valid(_) => node.unsupported("use of the field", "$valid$"),
        }
    }

    /// Stack and place within its headers of `[stack, field]`.
    pub(super) fn stack_field(&self, node: &Node<'_>) -> Result<(StackId, usize), LoadError> {
        let [stack, field] = node.exactly("a stack's and a field's name")?;
        let id = self.named_stack(&stack)?;
        let name = field.text()?;
        let first = self.stack(id).headers.first().copied();
        let first = first.ok_or_else(|| stack.unknown("element of stack", self.stack(id).name.clone()))?;
        let field_id = self.find(first, name).ok_or_else(|| field.unknown("field", name))?;
        Ok((id, field_id.0 - self.header(first).fields.start))
    }

    /// A field that the target itself reads or writes, by its alias or its own name.
    pub(super) fn intrinsic(&self, header: &str, field: &str) -> Option<FieldId> {
        self.aliases
            .get(&format!("{header}.{field}"))
            .copied()
            .or_else(|| self.find(*self.header_names.get(header)?, field))
    }
}

fn kind(node: &Node<'_>) -> Result<Kind, LoadError> {
    let name = node.get("name").text()?;
    let mut fields = Vec::new();
    for field in node.get("fields").list()? {
        let parts = field.list()?;
        let (Some(name), Some(width)) = (parts.first(), parts.get(1)) else {
            return field.wrong("a name and a width");
        };
        let signed = parts.get(2).map_or(Ok(false), |signed| signed.flag_or(false))?;
        if parts.get(3).map_or(Ok(false), |saturating| saturating.flag_or(false))? {
            return field.unsupported("saturating field", name.text()?);
        }
        if width.is_text() {
            if width.text()? != "*" {
                return width.wrong("a width in bits or `*`");
            }
            if fields.iter().any(|(_, _, _, varbit)| *varbit) {
                return field.unsupported("second varbit field", name.text()?);
            }
            fields.push((name.text()?.to_owned(), 0, signed, true));
        } else {
            let bits = u32::try_from(width.number()?).ok().filter(|bits| *bits > u32::from(signed));
            let Some(bits) = bits else { return width.wrong("a width in bits") };
            fields.push((name.text()?.to_owned(), bits, signed, false));
        }
    }
    if !node.get("length_exp").is_null() {
        return node.get("length_exp").unsupported("length expression of header type", name);
    }
    let max = node.get("max_length");
    Ok(Kind { fields, max_bytes: if max.is_null() { 0 } else { max.number()? } })
}
