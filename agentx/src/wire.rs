//! Numbers, strings, object identifiers and varbinds on the wire (RFC 2741 section 5).

use crate::oid::MAX_LENGTH;
use crate::{Binding, ByteOrder, Oid, Value};

/// Octets that are no PDU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Ends too early.
    #[error("{what} needs {needed} octets, {left} are left")]
    Truncated {
        /// Of what.
        what: &'static str,
        /// Octets.
        needed: usize,
        /// Octets.
        left: usize,
    },
    /// Another version.
    #[error("AgentX version {0}; this is version 1")]
    Version(u8),
    /// No such type.
    #[error("PDU type {0}; there are 1 to 18")]
    Kind(u8),
    /// A length that no PDU has.
    #[error("payload of {0} octets; it must be a multiple of 4, up to {max}", max = crate::MAX_PAYLOAD)]
    Payload(u32),
    /// Too long.
    #[error("object identifier of {0} sub-identifiers; 128 are the most")]
    Oid(usize),
    /// No such type.
    #[error("value of type {0}, which RFC 2741 does not have")]
    Value(u16),
    /// An IpAddress is four octets.
    #[error("IpAddress of {0} octets instead of 4")]
    IpAddress(usize),
    /// More than the PDU has use for.
    #[error("{0} octets too many")]
    Trailing(usize),
}

const PREFIX: [u32; 4] = [1, 3, 6, 1];

/// Writes one PDU.
pub(crate) struct Writer {
    pub(crate) octets: Vec<u8>,
    pub(crate) order: ByteOrder,
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.octets.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.octets.extend(match self.order {
            ByteOrder::Network => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        });
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.octets.extend(match self.order {
            ByteOrder::Network => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        });
    }

    fn u64(&mut self, value: u64) {
        self.octets.extend(match self.order {
            ByteOrder::Network => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        });
    }

    /// Section 5.3; what is longer than a PDU may be is cut off.
    pub(crate) fn string(&mut self, octets: &[u8]) {
        let octets = &octets[..octets.len().min(crate::MAX_PAYLOAD as usize)];
        self.u32(octets.len() as u32);
        self.octets.extend(octets);
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }

    /// Section 5.1; what is longer than an object identifier may be is cut off.
    pub(crate) fn oid(&mut self, oid: &Oid, include: bool) {
        let parts = &oid.parts()[..oid.parts().len().min(MAX_LENGTH)];
        let (prefix, rest) = match parts.strip_prefix(&PREFIX) {
            Some([prefix @ 1..=255, rest @ ..]) => (*prefix as u8, rest),
            _ => (0, parts),
        };
        self.octets.extend([rest.len() as u8, prefix, u8::from(include), 0]);
        for part in rest {
            self.u32(*part);
        }
    }

    /// Section 5.4.
    pub(crate) fn binding(&mut self, binding: &Binding) {
        let kind = match &binding.value {
            Value::Integer(_) => 2,
            Value::OctetString(_) => 4,
            Value::Null => 5,
            Value::ObjectIdentifier(_) => 6,
            Value::IpAddress(_) => 64,
            Value::Counter32(_) => 65,
            Value::Gauge32(_) => 66,
            Value::TimeTicks(_) => 67,
            Value::Opaque(_) => 68,
            Value::Counter64(_) => 70,
            Value::NoSuchObject => 128,
            Value::NoSuchInstance => 129,
            Value::EndOfMibView => 130,
        };
        self.u16(kind);
        self.u16(0);
        self.oid(&binding.name, false);
        match &binding.value {
            Value::Integer(value) => self.u32(value.cast_unsigned()),
            Value::OctetString(octets) | Value::Opaque(octets) => self.string(octets),
            Value::ObjectIdentifier(oid) => self.oid(oid, false),
            Value::IpAddress(address) => self.string(address),
            Value::Counter32(value) | Value::Gauge32(value) | Value::TimeTicks(value) => self.u32(*value),
            Value::Counter64(value) => self.u64(*value),
            Value::Null | Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView => {}
        }
    }
}

/// Reads one payload.
pub(crate) struct Reader<'a> {
    pub(crate) octets: &'a [u8],
    pub(crate) order: ByteOrder,
}

impl<'a> Reader<'a> {
    fn take(&mut self, what: &'static str, needed: usize) -> Result<&'a [u8], DecodeError> {
        match self.octets.split_at_checked(needed) {
            Some((taken, rest)) => {
                self.octets = rest;
                Ok(taken)
            }
            None => Err(DecodeError::Truncated { what, needed, left: self.octets.len() }),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(what, N)?);
        Ok(array)
    }

    pub(crate) fn quad(&mut self, what: &'static str) -> Result<[u8; 4], DecodeError> {
        self.array(what)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        let octets = self.array(what)?;
        Ok(match self.order {
            ByteOrder::Network => u16::from_be_bytes(octets),
            ByteOrder::Little => u16::from_le_bytes(octets),
        })
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        let octets = self.array(what)?;
        Ok(match self.order {
            ByteOrder::Network => u32::from_be_bytes(octets),
            ByteOrder::Little => u32::from_le_bytes(octets),
        })
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let octets = self.array(what)?;
        Ok(match self.order {
            ByteOrder::Network => u64::from_be_bytes(octets),
            ByteOrder::Little => u64::from_le_bytes(octets),
        })
    }

    pub(crate) fn string(&mut self, what: &'static str) -> Result<Vec<u8>, DecodeError> {
        let length = self.u32(what)? as usize;
        let octets = self.take(what, length)?.to_vec();
        self.take(what, length.next_multiple_of(4) - length)?;
        Ok(octets)
    }

    /// With its include field.
    pub(crate) fn oid(&mut self, what: &'static str) -> Result<(Oid, bool), DecodeError> {
        let [count, prefix, include, _] = self.array(what)?;
        let mut parts = if prefix == 0 { Vec::new() } else { [&PREFIX[..], &[prefix.into()]].concat() };
        let length = parts.len() + usize::from(count);
        if length > MAX_LENGTH {
            return Err(DecodeError::Oid(length));
        }
        for _ in 0..count {
            parts.push(self.u32(what)?);
        }
        Ok((Oid::new(parts), include != 0))
    }

    fn binding(&mut self) -> Result<Binding, DecodeError> {
        let kind = self.u16("a varbind's type")?;
        self.u16("a varbind's reserved field")?;
        let name = self.oid("a varbind's name")?.0;
        let what = "a varbind's value";
        let value = match kind {
            2 => Value::Integer(self.u32(what)?.cast_signed()),
            4 => Value::OctetString(self.string(what)?),
            5 => Value::Null,
            6 => Value::ObjectIdentifier(self.oid(what)?.0),
            64 => {
                let octets = self.string(what)?;
                Value::IpAddress(
                    octets.as_slice().try_into().map_err(|_| DecodeError::IpAddress(octets.len()))?,
                )
            }
            65 => Value::Counter32(self.u32(what)?),
            66 => Value::Gauge32(self.u32(what)?),
            67 => Value::TimeTicks(self.u32(what)?),
            68 => Value::Opaque(self.string(what)?),
            70 => Value::Counter64(self.u64(what)?),
            128 => Value::NoSuchObject,
            129 => Value::NoSuchInstance,
            130 => Value::EndOfMibView,
            other => return Err(DecodeError::Value(other)),
        };
        Ok(Binding { name, value })
    }

    /// All that is left.
    pub(crate) fn bindings(&mut self) -> Result<Vec<Binding>, DecodeError> {
        let mut bindings = Vec::new();
        while !self.octets.is_empty() {
            bindings.push(self.binding()?);
        }
        Ok(bindings)
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.octets.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.octets.len())) }
    }
}
