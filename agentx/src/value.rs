//! Values of objects.

use std::time::Duration;

use crate::Oid;

/// A value, or why there is none (RFC 2741 section 5.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// INTEGER, Integer32.
    Integer(i32),
    /// OCTET STRING: octets, whatever they are.
    OctetString(Vec<u8>),
    /// NULL.
    Null,
    /// OBJECT IDENTIFIER.
    ObjectIdentifier(Oid),
    /// IpAddress.
    IpAddress([u8; 4]),
    /// Counter32.
    Counter32(u32),
    /// Gauge32, Unsigned32.
    Gauge32(u32),
    /// TimeTicks, 10 ms; they wrap.
    TimeTicks(u32),
    /// Opaque.
    Opaque(Vec<u8>),
    /// Counter64. Notifications must not have it: SNMPv1 has none.
    Counter64(u64),
    /// No object of this type is here.
    NoSuchObject,
    /// The object has no such instance.
    NoSuchInstance,
    /// Nothing comes after it.
    EndOfMibView,
}

impl Value {
    /// A text as an OCTET STRING.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Value::OctetString(text.as_bytes().to_vec())
    }

    /// A Gauge32 or Unsigned32; the largest where it is larger (RFC 2578 section 7.1.7).
    #[must_use]
    pub fn gauge(value: u64) -> Self {
        Value::Gauge32(u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// TimeTicks of a time; after 497 days they begin again.
    #[must_use]
    pub fn ticks(time: Duration) -> Self {
        Value::TimeTicks((time.as_millis() / 10) as u32)
    }
}

/// A name and its value: a varbind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Of the instance.
    pub name: Oid,
    /// Its value.
    pub value: Value,
}

impl Binding {
    /// Of its parts.
    #[must_use]
    pub fn new(name: Oid, value: Value) -> Self {
        Binding { name, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_wrap_and_gauges_stay_at_the_largest() {
        assert_eq!(Value::ticks(Duration::from_millis(12_345)), Value::TimeTicks(1234));
        assert_eq!(Value::ticks(Duration::from_millis((1 << 32) * 10 + 70)), Value::TimeTicks(7));
        assert_eq!(Value::gauge(7), Value::Gauge32(7));
        assert_eq!(Value::gauge(1 << 40), Value::Gauge32(u32::MAX));
    }
}
