//! Object identifiers.

use std::fmt;
use std::str::FromStr;

/// Sub-identifiers of an object identifier at most (RFC 2578 section 3.5).
pub(crate) const MAX_LENGTH: usize = 128;

/// An object identifier; in the order of a MIB. At most 128 sub-identifiers where it comes from the wire or a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Vec<u32>);

/// A text that is no object identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no object identifier: 1 to 128 numbers of 0..4294967295 with a dot between, such as 1.3.6.1.4.1"
)]
pub struct OidError(String);

impl Oid {
    /// Of its sub-identifiers.
    #[must_use]
    pub fn new(parts: impl Into<Vec<u32>>) -> Self {
        Oid(parts.into())
    }

    /// This one with more sub-identifiers behind it.
    #[must_use]
    pub fn child(&self, parts: impl IntoIterator<Item = u32>) -> Self {
        Oid(self.0.iter().copied().chain(parts).collect())
    }

    /// The sub-identifiers.
    #[must_use]
    pub fn parts(&self) -> &[u32] {
        &self.0
    }

    /// No sub-identifiers: the null object identifier of the wire, which bounds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What follows `base`; `None` where this is not below it.
    #[must_use]
    pub fn below(&self, base: &Oid) -> Option<&[u32]> {
        self.0.strip_prefix(base.0.as_slice())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl FromStr for Oid {
    type Err = OidError;

    fn from_str(text: &str) -> Result<Self, OidError> {
        let parts: Result<Vec<u32>, _> =
            text.strip_prefix('.').unwrap_or(text).split('.').map(str::parse).collect();
        match parts {
            Ok(parts) if parts.len() <= MAX_LENGTH => Ok(Oid(parts)),
            _ => Err(OidError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_and_written() {
        let oid: Oid = ".1.3.6.1.4294967295".parse().unwrap();
        assert_eq!(oid.to_string(), "1.3.6.1.4294967295");
        for wrong in ["", ".", "1..3", "1.3.", "1.-3", "1.4294967296", "1.a"] {
            assert!(wrong.parse::<Oid>().is_err(), "{wrong}");
        }
        assert!("1.".repeat(128).parse::<Oid>().is_err());
        assert!(["1"; 128].join(".").parse::<Oid>().is_ok());
        assert!(["1"; 129].join(".").parse::<Oid>().is_err());
    }

    #[test]
    fn a_subtree_comes_before_what_is_in_it() {
        let oid = |text: &str| text.parse::<Oid>().unwrap();
        assert!(oid("1.3") < oid("1.3.0") && oid("1.3.0") < oid("1.3.0.9") && oid("1.3.9") < oid("1.3.10"));
        assert_eq!(oid("1.3.6.1").below(&oid("1.3")), Some([6, 1].as_slice()));
        assert_eq!(oid("1.3.6.1").below(&oid("1.4")), None);
    }
}
