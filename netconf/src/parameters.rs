//! The parameters of an operation.

use std::borrow::Cow;

use roxmltree::Node;

use crate::backend::Datastore;
use crate::document::{content, elements, namespace};
use crate::error::{Info, RpcError, Tag};
use crate::name::{BASE, WITH_DEFAULTS};
use crate::retrieval::Defaults;

/// An operation's element, whose parameters are all known and there at most once.
pub(crate) struct Parameters<'doc, 'text> {
    operation: Node<'doc, 'text>,
}

impl<'doc, 'text: 'doc> Parameters<'doc, 'text> {
    /// Checks the names; `with-defaults` has a namespace of its own (RFC 6243, 4.5).
    ///
    /// # Errors
    /// A parameter that is unknown or there twice.
    pub(crate) fn of(operation: Node<'doc, 'text>, known: &[&str]) -> Result<Self, RpcError> {
        let name = operation.tag_name().name();
        let mut seen: Vec<&str> = Vec::new();
        for element in elements(operation) {
            let parameter = element.tag_name().name();
            let own = if parameter == "with-defaults" { WITH_DEFAULTS } else { namespace(operation) };
            if !known.contains(&parameter) || namespace(element) != own {
                let message = format!("{name} takes {}, not {parameter}", list(known));
                let error = RpcError::unknown_element(parameter, message);
                return Err(RpcError { layer: crate::Layer::Protocol, ..error });
            }
            if seen.contains(&parameter) {
                return Err(twice(parameter));
            }
            seen.push(parameter);
        }
        Ok(Self { operation })
    }

    pub(crate) fn element(&self, name: &str) -> Option<Node<'doc, 'text>> {
        elements(self.operation).find(|element| element.tag_name().name() == name)
    }

    pub(crate) fn required(&self, name: &str) -> Result<Node<'doc, 'text>, RpcError> {
        self.element(name).ok_or_else(|| missing(self.operation.tag_name().name(), name))
    }

    /// A parameter's text without the blanks around it.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Cow<'doc, str>>, RpcError> {
        self.element(name).map(text).transpose()
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, RpcError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        found.map(Some).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            invalid(name, format!("{name} is one of {}, not {text}", known.join(", ")))
        })
    }

    /// A number from 1 on.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u32>, RpcError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(invalid(name, format!("{name} is a number of 1..4294967295, not {text}"))),
        }
    }

    /// The parameter `with-defaults`.
    pub(crate) fn defaults(&self) -> Result<Defaults, RpcError> {
        let words = [
            ("report-all", Defaults::ReportAll),
            ("report-all-tagged", Defaults::ReportAllTagged),
            ("trim", Defaults::Trim),
            ("explicit", Defaults::Explicit),
        ];
        Ok(self.word("with-defaults", &words)?.unwrap_or_default())
    }

    /// A source or target.
    pub(crate) fn place(&self, name: &str) -> Result<Place<'doc, 'text>, RpcError> {
        let parameter = self.required(name)?;
        let mut inside = elements(parameter);
        let Some(element) = inside.next() else { return Err(missing(name, "running, candidate or startup")) };
        if let Some(second) = inside.next() {
            let message = format!("{name} takes one configuration");
            return Err(RpcError::bad_element(second.tag_name().name(), message));
        }
        let word = element.tag_name().name();
        if namespace(element) == BASE {
            match Datastore::of_word(word) {
                Some(datastore) => {
                    if content(element).is_none_or(|text| !text.trim().is_empty()) {
                        return Err(RpcError::bad_element(word, format!("{word} is empty")));
                    }
                    return Ok(Place::Datastore(datastore));
                }
                None if word == "config" => return Ok(Place::Inline(element)),
                None if word == "url" => {
                    let message = "configurations at a URL are not supported (no capability url)";
                    return Err(RpcError::protocol(Tag::OperationNotSupported, message)
                        .with(Info::BadElement(word.to_owned())));
                }
                None => {}
            }
        }
        let message = format!("{name} is one of running, candidate and startup, not {word}");
        Err(RpcError::unknown_element(word, message))
    }

    /// A source or target that is a datastore.
    pub(crate) fn datastore(&self, name: &str) -> Result<Datastore, RpcError> {
        match self.place(name)? {
            Place::Datastore(datastore) => Ok(datastore),
            Place::Inline(_) => {
                Err(RpcError::bad_element("config", format!("{name} takes no configuration in the message")))
            }
        }
    }
}

/// What a source or target is.
pub(crate) enum Place<'doc, 'text> {
    Datastore(Datastore),
    /// A `<config>` in the message.
    Inline(Node<'doc, 'text>),
}

/// An element's text without the blanks around it.
pub(crate) fn text<'doc>(element: Node<'doc, '_>) -> Result<Cow<'doc, str>, RpcError> {
    let name = element.tag_name().name();
    let text = content(element).ok_or_else(|| RpcError::bad_element(name, format!("{name} takes a text")))?;
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    })
}

pub(crate) fn invalid(name: &str, message: String) -> RpcError {
    RpcError::protocol(Tag::InvalidValue, message).with(Info::BadElement(name.to_owned()))
}

pub(crate) fn missing(operation: &str, name: &str) -> RpcError {
    RpcError::missing_element(name, format!("{operation} needs {name}"))
}

fn twice(name: &str) -> RpcError {
    RpcError::bad_element(name, format!("{name} is there twice"))
}

fn list(known: &[&str]) -> String {
    if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
}
