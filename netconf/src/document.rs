//! XML in, within limits that keep a parse linear in time and bounded in memory.

use std::borrow::Cow;

use roxmltree::{Document, Node, ParsingOptions};

use crate::error::{Layer, RpcError, Tag};

/// What a message may have at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlLimits {
    /// Elements inside one another.
    pub depth: usize,
    /// Attributes of one element, declarations of namespaces among them.
    pub attributes: usize,
    /// Namespaces declared by an element and those around it.
    pub namespaces: usize,
    /// Elements, texts and comments in all.
    pub nodes: u32,
}

impl Default for XmlLimits {
    fn default() -> Self {
        Self { depth: 256, attributes: 64, namespaces: 64, nodes: 4_000_000 }
    }
}

/// Reads a document. There are no entities and no DTD (RFC 6241, 3: a DTD is not allowed).
///
/// # Errors
/// `malformed-message` where it is no XML, `too-big` beyond a limit.
pub(crate) fn parse<'text>(text: &'text str, limits: &XmlLimits) -> Result<Document<'text>, RpcError> {
    measure(text, limits)?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: limits.nodes, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| match error {
        roxmltree::Error::NodesLimitReached => {
            too_big(format!("the message has more than {} elements and texts", limits.nodes))
        }
        error => malformed(error.to_string()),
    })
}

pub(crate) fn malformed(reason: impl std::fmt::Display) -> RpcError {
    RpcError::rpc(Tag::MalformedMessage, format!("not a well-formed message: {reason}"))
}

fn too_big(reason: String) -> RpcError {
    RpcError { layer: Layer::Rpc, ..RpcError::new(Tag::TooBig, reason) }
}

/// Depth, attributes and namespaces, without taking memory for any of it.
fn measure(text: &str, limits: &XmlLimits) -> Result<(), RpcError> {
    let bytes = text.as_bytes();
    // Namespaces declared by each open element.
    let mut open: Vec<usize> = Vec::new();
    let mut declared = 0;
    let mut at = 0;
    if bytes.contains(&0) {
        return Err(malformed("a NUL character"));
    }
    while let Some(next) = text.get(at..).and_then(|rest| rest.find('<')) {
        at += next;
        let rest = text.get(at..).unwrap_or_default();
        let skip = |end: &str, from: usize| {
            let found = rest.get(from..).and_then(|rest| rest.find(end));
            found.map(|found| from + found + end.len()).ok_or_else(|| malformed(format!("{end} is missing")))
        };
        at += if rest.starts_with("<!--") {
            skip("-->", 4)?
        } else if rest.starts_with("<![CDATA[") {
            skip("]]>", 9)?
        } else if rest.starts_with("<?") {
            skip("?>", 2)?
        } else if rest.starts_with("<!") {
            return Err(malformed("a document type is not allowed"));
        } else if rest.starts_with("</") {
            declared -= open.pop().ok_or_else(|| malformed("an element ends that did not begin"))?;
            skip(">", 2)?
        } else {
            let tag = start_tag(rest)?;
            if tag.attributes > limits.attributes {
                return Err(too_big(format!("an element has more than {} attributes", limits.attributes)));
            }
            if declared + tag.namespaces > limits.namespaces {
                return Err(too_big(format!("more than {} namespaces in one another", limits.namespaces)));
            }
            if open.len() >= limits.depth {
                return Err(too_big(format!("elements are nested more than {} deep", limits.depth)));
            }
            if !tag.empty {
                open.push(tag.namespaces);
                declared += tag.namespaces;
            }
            tag.length
        };
    }
    Ok(())
}

struct StartTag {
    length: usize,
    attributes: usize,
    namespaces: usize,
    empty: bool,
}

fn start_tag(text: &str) -> Result<StartTag, RpcError> {
    let mut tag = StartTag { length: 0, attributes: 0, namespaces: 0, empty: false };
    let mut quote = None;
    // Where the word before an `=` begins.
    let mut word = 0;
    let mut before = b' ';
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        match (quote, byte) {
            (Some(mark), _) if mark == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'=') => {
                tag.attributes += 1;
                if text.get(word..at).is_some_and(|name| name.starts_with("xmlns")) {
                    tag.namespaces += 1;
                }
            }
            (None, b'>') => {
                tag.length = at + 1;
                tag.empty = before == b'/';
                return Ok(tag);
            }
            (None, _) => {
                let blank = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
                if blank(before) && !blank(byte) {
                    word = at;
                }
            }
        }
        before = byte;
    }
    Err(malformed("an element's tag does not end"))
}

/// An element's text, however it is cut by comments; `None` where it has elements.
pub(crate) fn content<'doc>(node: Node<'doc, '_>) -> Option<Cow<'doc, str>> {
    let mut texts = Cow::Borrowed("");
    for child in node.children() {
        if child.is_element() {
            return None;
        }
        if let Some(text) = child.text().filter(|_| child.is_text()) {
            if texts.is_empty() {
                texts = Cow::Borrowed(text);
            } else {
                texts.to_mut().push_str(text);
            }
        }
    }
    Some(texts)
}

/// An element's namespace, empty where it has none.
pub(crate) fn namespace<'doc>(node: Node<'doc, '_>) -> &'doc str {
    node.tag_name().namespace().unwrap_or_default()
}

/// The elements below an element.
pub(crate) fn elements<'doc, 'text: 'doc>(
    node: Node<'doc, 'text>,
) -> impl Iterator<Item = Node<'doc, 'text>> {
    node.children().filter(Node::is_element)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Option<Tag> {
        let limits = XmlLimits { depth: 3, attributes: 4, namespaces: 3, nodes: 50 };
        parse(text, &limits).err().map(|error| error.tag)
    }

    #[test]
    fn limits_are_exact() {
        assert_eq!(fault("<a><b><c/></b></a>"), None);
        assert_eq!(fault("<a><b><c><d/></c></b></a>"), Some(Tag::TooBig));
        assert_eq!(fault("<a b='1' c='=' d = '2' e=\"3\"/>"), None);
        assert_eq!(fault("<a b='1' c='2' d='3' e='4' f='5'/>"), Some(Tag::TooBig));
        assert_eq!(fault("<a xmlns='a' xmlns:b='b'><b xmlns:c='c'/><b xmlns='d'/></a>"), None);
        assert_eq!(fault("<a xmlns='a'\nxmlns:b='b'><b xmlns:c='c' xmlns='d'/></a>"), Some(Tag::TooBig));
        assert_eq!(fault(&format!("<a>{}</a>", "<b/>".repeat(60))), Some(Tag::TooBig));
    }

    #[test]
    fn document_types_and_entities_are_refused() {
        let billion = "<!DOCTYPE a [<!ENTITY b \"cc\">]><a>&b;</a>";
        for text in [
            billion,
            "<a>&b;</a>",
            "<a>\0</a>",
            "<a",
            "<a>",
            "</a>",
            "<a/><b/>",
            "",
            "<!-- ",
            "<a><![CDATA[x</a>",
        ] {
            assert_eq!(fault(text), Some(Tag::MalformedMessage), "{text}");
        }
        assert_eq!(fault("<?xml version='1.0'?><!-- <a b='> --><a><![CDATA[<b><c><d><e>]]>&lt;</a>"), None);
    }

    #[test]
    fn text_is_whole_though_comments_cut_it() {
        let document = Document::parse("<a>on<!-- -->e<![CDATA[ ]]>&amp;<?pi?>two</a>").unwrap();
        assert_eq!(content(document.root_element()).as_deref(), Some("one &two"));
    }
}
