//! `<rpc-error>` (RFC 6241, 4.3 and appendix A).

use tree::{Path, Schema};

use crate::name::BASE;
use crate::writer::Writer;

/// The layer at which an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Secure transport.
    Transport,
    /// Messages.
    Rpc,
    /// Operations.
    Protocol,
    /// Content.
    Application,
}

impl Layer {
    fn word(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Rpc => "rpc",
            Self::Protocol => "protocol",
            Self::Application => "application",
        }
    }
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Someone else uses it.
    InUse,
    /// A value that is not allowed.
    InvalidValue,
    /// More than can be handled.
    TooBig,
    /// An attribute is missing.
    MissingAttribute,
    /// An attribute's value is not allowed.
    BadAttribute,
    /// An attribute that is not expected.
    UnknownAttribute,
    /// An element is missing.
    MissingElement,
    /// An element's value is not allowed.
    BadElement,
    /// An element that is not expected.
    UnknownElement,
    /// A namespace that is not expected.
    UnknownNamespace,
    /// Not with this user's role.
    AccessDenied,
    /// Someone holds the lock.
    LockDenied,
    /// Nothing left to do it with.
    ResourceDenied,
    /// A rollback was not completed.
    RollbackFailed,
    /// It is there already.
    DataExists,
    /// It is not there.
    DataMissing,
    /// Not in this server.
    OperationNotSupported,
    /// Anything else.
    OperationFailed,
    /// Not a well-formed message; base:1.1 only.
    MalformedMessage,
}

impl Tag {
    /// As it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::InUse => "in-use",
            Self::InvalidValue => "invalid-value",
            Self::TooBig => "too-big",
            Self::MissingAttribute => "missing-attribute",
            Self::BadAttribute => "bad-attribute",
            Self::UnknownAttribute => "unknown-attribute",
            Self::MissingElement => "missing-element",
            Self::BadElement => "bad-element",
            Self::UnknownElement => "unknown-element",
            Self::UnknownNamespace => "unknown-namespace",
            Self::AccessDenied => "access-denied",
            Self::LockDenied => "lock-denied",
            Self::ResourceDenied => "resource-denied",
            Self::RollbackFailed => "rollback-failed",
            Self::DataExists => "data-exists",
            Self::DataMissing => "data-missing",
            Self::OperationNotSupported => "operation-not-supported",
            Self::OperationFailed => "operation-failed",
            Self::MalformedMessage => "malformed-message",
        }
    }
}

/// A part of `<error-info>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Info {
    /// Name of the attribute in question.
    BadAttribute(String),
    /// Name of the element in question.
    BadElement(String),
    /// The namespace in question.
    BadNamespace(String),
    /// Who holds the lock; 0 for someone who is no NETCONF session.
    SessionId(u32),
}

/// Where in the data: an XPath expression, and the prefixes in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPath {
    /// Absolute.
    pub xpath: String,
    /// Prefix and namespace.
    pub namespaces: Vec<(String, String)>,
}

impl ErrorPath {
    /// As RFC 7950 (9.13) writes an instance-identifier, each step with its prefix.
    #[must_use]
    pub fn of(schema: &Schema, path: &Path) -> Self {
        let mut namespaces: Vec<(String, String)> = Vec::new();
        for step in &path.0 {
            let module = schema.module_of(schema.node(step.node));
            if !namespaces.iter().any(|(prefix, _)| *prefix == module.prefix) {
                namespaces.push((module.prefix.clone(), module.namespace.clone()));
            }
        }
        Self { xpath: path.xpath(schema), namespaces }
    }
}

/// One `<rpc-error>`; severity is always `error`, since RFC 6241 defines no warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// Layer.
    pub layer: Layer,
    /// Kind.
    pub tag: Tag,
    /// Of the data model, such as `must-violation`.
    pub app_tag: Option<String>,
    /// Where.
    pub path: Option<Box<ErrorPath>>,
    /// For people.
    pub message: String,
    /// For programs.
    pub info: Vec<Info>,
}

impl RpcError {
    /// An error of the application layer without further particulars.
    #[must_use]
    pub fn new(tag: Tag, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { layer: Layer::Application, tag, app_tag: None, path: None, message, info: Vec::new() }
    }

    /// An error of the protocol layer.
    #[must_use]
    pub fn protocol(tag: Tag, message: impl Into<String>) -> Self {
        Self { layer: Layer::Protocol, ..Self::new(tag, message) }
    }

    /// An error of the message layer.
    #[must_use]
    pub fn rpc(tag: Tag, message: impl Into<String>) -> Self {
        Self { layer: Layer::Rpc, ..Self::new(tag, message) }
    }

    /// The role does not allow it.
    #[must_use]
    pub fn access_denied(message: impl Into<String>) -> Self {
        Self::protocol(Tag::AccessDenied, message)
    }

    /// Someone holds the lock: a NETCONF session by its number, anyone else as 0 (RFC 6241, appendix A).
    #[must_use]
    pub fn lock_denied(holder: u32, message: impl Into<String>) -> Self {
        Self::protocol(Tag::LockDenied, message).with(Info::SessionId(holder))
    }

    /// An element that nobody expects there.
    #[must_use]
    pub fn unknown_element(name: &str, message: impl Into<String>) -> Self {
        Self::new(Tag::UnknownElement, message).with(Info::BadElement(name.to_owned()))
    }

    /// An element that must be there.
    #[must_use]
    pub fn missing_element(name: &str, message: impl Into<String>) -> Self {
        Self::protocol(Tag::MissingElement, message).with(Info::BadElement(name.to_owned()))
    }

    /// An element with a wrong value.
    #[must_use]
    pub fn bad_element(name: &str, message: impl Into<String>) -> Self {
        Self::new(Tag::BadElement, message).with(Info::BadElement(name.to_owned()))
    }

    /// With a part of error-info.
    #[must_use]
    pub fn with(mut self, info: Info) -> Self {
        self.info.push(info);
        self
    }

    /// At a place in the data.
    #[must_use]
    pub fn at(mut self, path: ErrorPath) -> Self {
        self.path = Some(Box::new(path));
        self
    }

    /// With the data model's own tag.
    #[must_use]
    pub fn app_tag(mut self, tag: impl Into<String>) -> Self {
        self.app_tag = Some(tag.into());
        self
    }

    /// Writes it; base's namespace is the default one where it stands.
    pub(crate) fn write(&self, out: &mut Writer) {
        out.open("rpc-error");
        out.leaf("error-type", self.layer.word());
        out.leaf("error-tag", self.tag.word());
        out.leaf("error-severity", "error");
        if let Some(tag) = &self.app_tag {
            out.leaf("error-app-tag", tag);
        }
        if let Some(path) = &self.path {
            let attributes: Vec<(String, &str)> = path
                .namespaces
                .iter()
                .map(|(prefix, namespace)| (format!("xmlns:{prefix}"), namespace.as_str()))
                .collect();
            out.leaf_with("error-path", &attributes, &path.xpath);
        }
        out.leaf_with("error-message", &[("xml:lang".to_owned(), "en")], &self.message);
        if !self.info.is_empty() {
            out.open("error-info");
            for info in &self.info {
                match info {
                    Info::BadAttribute(name) => out.leaf("bad-attribute", name),
                    Info::BadElement(name) => out.leaf("bad-element", name),
                    Info::BadNamespace(name) => out.leaf("bad-namespace", name),
                    Info::SessionId(id) => out.leaf("session-id", &id.to_string()),
                }
            }
            out.close("error-info");
        }
        out.close("rpc-error");
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.tag.word(), self.message)?;
        match &self.path {
            Some(path) => write!(f, " at {}", path.xpath),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RpcError {}

/// Why an operation was not done: one error or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub Vec<RpcError>);

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self(vec![error])
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { "; " };
            write!(f, "{between}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// A `<rpc-reply>` with these errors and nothing else.
pub(crate) fn reply(attributes: &str, refusal: &Refusal) -> String {
    let mut out = Writer::default();
    out.raw(&format!("<rpc-reply xmlns=\"{BASE}\"{attributes}>"));
    for error in &refusal.0 {
        error.write(&mut out);
    }
    out.close("rpc-reply");
    out.finish()
}
