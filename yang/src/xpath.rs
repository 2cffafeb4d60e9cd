//! XPath 1.0 over data, as NETCONF's filters use it (RFC 6241, 8.9).

use tree::Path;
use yang5::data::{Data, DataParserFlags};

use crate::fault::Fault;
use crate::{Yang, ffi, instance};

/// An expression that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum XpathError {
    /// A prefix that is not declared, or whose namespace no module has.
    #[error("XPath {expression:?}: prefix {prefix:?} stands for no namespace of a module here")]
    Prefix {
        /// The expression.
        expression: String,
        /// The prefix.
        prefix: String,
    },
    /// Not XPath, or no set of nodes.
    #[error("XPath {expression:?}: {reason}")]
    Expression {
        /// The expression.
        expression: String,
        /// What is wrong.
        reason: String,
    },
    /// The data cannot be read.
    #[error("data for XPath: {}", .0.iter().map(Fault::to_string).collect::<Vec<_>>().join("; "))]
    Data(Vec<Fault>),
}

impl Yang {
    /// The nodes that an expression selects in `data`, RFC 7951 JSON of configuration and state as
    /// [`Yang::validate`] takes it, in the order of the data. `prefixes` are prefixes and their XML namespaces, as
    /// declared where the expression stands; a name without a prefix is of the module of the node above it.
    ///
    /// # Errors
    /// An expression that is no XPath, with an undeclared prefix, or whose value is no set of nodes; data that cannot
    /// be read.
    pub fn xpath(
        &self,
        data: &str,
        expression: &str,
        prefixes: &[(String, String)],
    ) -> Result<Vec<Path>, XpathError> {
        let refused = |reason: String| XpathError::Expression { expression: expression.to_owned(), reason };
        if expression.contains('\0') {
            return Err(refused("has a NUL".to_owned()));
        }
        let qualified = self.qualify(expression, prefixes)?;
        let data = self.read(data, DataParserFlags::empty()).map_err(XpathError::Data)?;
        let Some(top) = data.reference() else { return Ok(Vec::new()) };
        ffi::clear_errors(&self.context);
        let found = top.find_xpath(&qualified).map_err(|error| refused(error.to_string()));
        ffi::clear_errors(&self.context);
        Ok(found?.filter_map(|node| instance::path(&self.schema, &node.path())).collect())
    }

    /// Writes names of modules for prefixes.
    fn qualify(&self, expression: &str, prefixes: &[(String, String)]) -> Result<String, XpathError> {
        let mut qualified = String::with_capacity(expression.len());
        let mut rest = expression;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                // A literal, with its quotation marks.
                '"' | '\'' => {
                    rest.get(1..).and_then(|inside| inside.find(first)).map_or(rest.len(), |end| end + 2)
                }
                _ if is_name_start(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
                _ if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            rest = after;
            // `axis::name` has no prefix, `prefix:name` and `prefix:*` do.
            let is_prefix = is_name_start(first)
                && after
                    .strip_prefix(':')
                    .is_some_and(|name| name.starts_with(|c| is_name_start(c) || c == '*'));
            qualified.push_str(if is_prefix {
                self.module_of_prefix(expression, token, prefixes)?
            } else {
                token
            });
        }
        Ok(qualified)
    }

    fn module_of_prefix<'y>(
        &'y self,
        expression: &str,
        prefix: &str,
        prefixes: &[(String, String)],
    ) -> Result<&'y str, XpathError> {
        let namespace =
            prefixes.iter().rev().find(|(declared, _)| declared == prefix).map(|(_, namespace)| namespace);
        let module = namespace
            .and_then(|namespace| self.schema.modules.iter().find(|module| module.namespace == *namespace));
        module.map(|module| module.name.as_str()).ok_or_else(|| XpathError::Prefix {
            expression: expression.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

/// First of an NCName, of those that YANG has.
fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}
