//! Integers as the protocol's byte strings (P4Runtime, "Bytestrings").
//!
//! Senders use the shortest big-endian form, so that what is read equals what was written. Receivers take
//! any number of leading zero bytes, but neither an empty string nor a value wider than the field.

use thiserror::Error;
use tonic::Code;

/// A byte string that is no value of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BytestringError {
    /// The string has no bytes.
    #[error("empty byte string where a value of {bits} bits belongs; zero is one byte 0x00")]
    Empty {
        /// Width of the field.
        bits: u32,
    },
    /// The value needs more bits than the field has.
    #[error("byte string holds a value of {needed} bits where at most {bits} fit")]
    TooWide {
        /// Width of the field.
        bits: u32,
        /// Width of the value.
        needed: usize,
    },
    /// The field itself is wider than this crate's integers, or has no width.
    #[error("a field of {bits} bits is no integer of 1 to 128 bits")]
    Width {
        /// Width of the field.
        bits: u32,
    },
}

impl BytestringError {
    /// The canonical code a server answers with: `OUT_OF_RANGE`, or `UNIMPLEMENTED` for a width that this
    /// crate does not hold.
    pub fn code(&self) -> Code {
        match self {
            Self::Empty { .. } | Self::TooWide { .. } => Code::OutOfRange,
            Self::Width { .. } => Code::Unimplemented,
        }
    }
}

/// The shortest big-endian form of `value`; zero is one byte.
///
/// ```
/// use p4runtime::bytestring::canonical;
/// assert_eq!(canonical(0), [0x00]);
/// assert_eq!(canonical(0x3064), [0x30, 0x64]);
/// ```
pub fn canonical(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = (value.leading_zeros() / 8) as usize;
    bytes[zeros.min(bytes.len() - 1)..].to_vec()
}

/// Reads a value of a field of `bits` bits, 1 to 128.
///
/// # Errors
/// The string is empty, its value needs more than `bits` bits, or `bits` is out of range.
///
/// ```
/// use p4runtime::bytestring::parse_bytes;
/// assert_eq!(parse_bytes(&[0x00, 0x00, 0x63], 12), Ok(99));
/// assert!(parse_bytes(&[0x10, 0x63], 12).is_err());
/// ```
pub fn parse_bytes(bytes: &[u8], bits: u32) -> Result<u128, BytestringError> {
    if !(1..=128).contains(&bits) {
        return Err(BytestringError::Width { bits });
    }
    if bytes.is_empty() {
        return Err(BytestringError::Empty { bits });
    }
    let needed = match bytes.iter().position(|&b| b != 0) {
        None => return Ok(0),
        Some(first) => (bytes.len() - first) * 8 - bytes[first].leading_zeros() as usize,
    };
    if needed > bits as usize {
        return Err(BytestringError::TooWide { bits, needed });
    }
    Ok(bytes.iter().fold(0, |value, &b| (value << 8) | u128::from(b)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The unsigned rows of the specification's table of valid encodings.
    #[test]
    fn valid_encodings_of_the_specification_are_read() {
        let rows: [(u32, u128, &[u8], bool); 8] = [
            (8, 99, &[0x63], true),
            (16, 99, &[0x00, 0x63], false),
            (16, 99, &[0x63], true),
            (16, 12388, &[0x30, 0x64], true),
            (16, 12388, &[0x00, 0x30, 0x64], false),
            (12, 99, &[0x00, 0x63], false),
            (12, 99, &[0x63], true),
            (12, 99, &[0x00, 0x00, 0x63], false),
        ];
        for (bits, value, bytes, symmetric) in rows {
            assert_eq!(parse_bytes(bytes, bits), Ok(value), "{bytes:02x?} as {bits} bits");
            assert_eq!(canonical(value) == bytes, symmetric, "{bytes:02x?}");
        }
    }

    /// The unsigned rows of the specification's table of invalid encodings.
    #[test]
    fn invalid_encodings_of_the_specification_are_refused() {
        let rows: [(u32, &[u8]); 6] = [
            (8, &[0x01, 0x63]),
            (8, &[]),
            (16, &[0x01, 0x00, 0x63]),
            (12, &[0x10, 0x63]),
            (12, &[0x01, 0x00, 0x63]),
            (12, &[0x00, 0x40, 0x63]),
        ];
        for (bits, bytes) in rows {
            let error = parse_bytes(bytes, bits).unwrap_err();
            assert_eq!(error.code(), Code::OutOfRange, "{bytes:02x?} as {bits} bits");
        }
    }

    #[test]
    fn widths_outside_1_to_128_are_refused() {
        for bits in [0, 129, u32::MAX] {
            assert_eq!(parse_bytes(&[1], bits), Err(BytestringError::Width { bits }));
        }
        assert_eq!(parse_bytes(&[0xff; 16], 128), Ok(u128::MAX));
    }

    proptest! {
        #[test]
        fn canonical_form_is_read_back_and_shortest(value: u128, pad in 0usize..20) {
            let bytes = canonical(value);
            prop_assert!(bytes.len() == 1 || bytes[0] != 0);
            let needed = (128 - value.leading_zeros()).max(1);
            prop_assert_eq!(parse_bytes(&bytes, needed), Ok(value));
            let padded = [vec![0; pad], bytes.clone()].concat();
            prop_assert_eq!(parse_bytes(&padded, needed), Ok(value));
            if needed > 1 {
                prop_assert!(parse_bytes(&padded, needed - 1).is_err());
            }
        }
    }
}
