//! Integers as BMv2 computes with them: without bounds; only a field cuts a value to its width.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// An integer of any size. `Big` holds only what `Small` cannot, so that equal integers are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Almost all of them.
    Small(i128),
    /// The rest.
    Big(Box<BigInt>),
}

/// Longest shift that is computed; BMv2 would fill its memory with longer ones.
const LONGEST_SHIFT: u64 = 1 << 16;

impl Default for Value {
    fn default() -> Self {
        Value::ZERO
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Small(value.into())
    }
}

impl From<u128> for Value {
    fn from(value: u128) -> Self {
        i128::try_from(value).map_or_else(|_| Value::Big(Box::new(value.into())), Value::Small)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Small(value.into())
    }
}

impl From<BigInt> for Value {
    fn from(value: BigInt) -> Self {
        i128::try_from(&value).map_or_else(|_| Value::Big(Box::new(value)), Value::Small)
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Small(left), Value::Small(right)) => left.cmp(right),
            _ => self.big().cmp(&other.big()),
        }
    }
}

/// Operations with their short way and the way that always works.
macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident, $checked:ident, $op:tt;)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self, other: &Value) -> Value {
            if let (Value::Small(left), Value::Small(right)) = (self, other)
                && let Some(result) = left.$checked(*right)
            {
                return Value::Small(result);
            }
            (self.big() $op other.big()).into()
        })*
    };
}

macro_rules! bitwise {
    ($($(#[$doc:meta])* $name:ident, $op:tt;)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self, other: &Value) -> Value {
            match (self, other) {
                (Value::Small(left), Value::Small(right)) => Value::Small(left $op right),
                _ => (self.big() $op other.big()).into(),
            }
        })*
    };
}

impl Value {
    /// 0.
    pub(super) const ZERO: Value = Value::Small(0);

    fn big(&self) -> BigInt {
        match self {
            Value::Small(value) => (*value).into(),
            Value::Big(value) => BigInt::clone(value),
        }
    }

    /// Hexadecimal as the format has it: an optional sign, an optional `0x`, digits.
    pub(super) fn parse(text: &str) -> Option<Value> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        if digits.is_empty() || digits.starts_with(['-', '+']) {
            return None;
        }
        let value = BigInt::parse_bytes(digits.as_bytes(), 16)?;
        Some(if negative { -value } else { value }.into())
    }

    arithmetic! {
        /// Sum.
        plus, checked_add, +;
        /// Difference.
        minus, checked_sub, -;
        /// Product.
        times, checked_mul, *;
    }

    bitwise! {
        /// Both, in two's complement without end.
        and, &;
        /// Either.
        or, |;
        /// One of both.
        xor, ^;
    }

    /// Quotient; `None` unless the dividend is at least 0 and the divisor above 0.
    pub(super) fn divided(&self, other: &Value) -> Option<Value> {
        (*self >= Value::ZERO && *other > Value::ZERO).then(|| match (self, other) {
            (Value::Small(left), Value::Small(right)) => Value::Small(left / right),
            _ => (self.big() / other.big()).into(),
        })
    }

    /// Remainder; `None` unless the dividend is at least 0 and the divisor above 0.
    pub(super) fn modulo(&self, other: &Value) -> Option<Value> {
        (*self >= Value::ZERO && *other > Value::ZERO).then(|| match (self, other) {
            (Value::Small(left), Value::Small(right)) => Value::Small(left % right),
            _ => (self.big() % other.big()).into(),
        })
    }

    /// All bits inverted, in two's complement without end.
    pub(super) fn inverted(&self) -> Value {
        match self {
            Value::Small(value) => Value::Small(!value),
            Value::Big(value) => (!BigInt::clone(value)).into(),
        }
    }

    fn shift(by: &Value) -> Option<u64> {
        match by {
            Value::Small(by) => u64::try_from(*by).ok().filter(|by| *by <= LONGEST_SHIFT),
            Value::Big(_) => None,
        }
    }

    /// Shifted towards the high end; `None` for a shift that is negative or longer than 65,536.
    pub(super) fn shifted_left(&self, by: &Value) -> Option<Value> {
        let by = Self::shift(by)?;
        if let Value::Small(value) = self
            && by < 127
            && (*value << by) >> by == *value
        {
            return Some(Value::Small(value << by));
        }
        Some((self.big() << by).into())
    }

    /// Shifted towards the low end, rounding down; `None` for a shift that is negative or longer than 65,536.
    pub(super) fn shifted_right(&self, by: &Value) -> Option<Value> {
        let by = Self::shift(by)?;
        Some(match self {
            Value::Small(value) => Value::Small(value >> by.min(127)),
            Value::Big(value) => (BigInt::clone(value) >> by).into(),
        })
    }

    /// The lowest `bits` bits, as an unsigned field keeps them.
    pub(super) fn low_bits(&self, bits: u32) -> Value {
        match self {
            Value::Small(value) if bits < 128 => Value::Small(value & (i128::MAX >> (127 - bits))),
            Value::Small(value) if *value >= 0 => self.clone(),
            _ => (self.big() & ((BigInt::from(1) << bits) - 1_i32)).into(),
        }
    }

    /// The lowest `bits` bits as two's complement, as a signed field keeps them.
    pub(super) fn signed_bits(&self, bits: u32) -> Value {
        let low = self.low_bits(bits);
        let one = Value::Small(1);
        let half = one.shifted_left(&Value::from(u64::from(bits.saturating_sub(1)))).unwrap_or_default();
        if low >= half { low.minus(&half).minus(&half) } else { low }
    }

    /// The nearest value from `low` to `high`.
    pub(super) fn within(self, low: Value, high: Value) -> Value {
        self.clamp(low, high)
    }

    /// The lowest 64 bits.
    pub(super) fn low_u64(&self) -> u64 {
        self.low_u128() as u64
    }

    /// The lowest 128 bits.
    #[allow(clippy::cast_sign_loss, reason = "two's complement is what is wanted")]
    pub(super) fn low_u128(&self) -> u128 {
        match self {
            Value::Small(value) => *value as u128,
            Value::Big(value) => {
                let low: BigInt = BigInt::clone(value) & BigInt::from(u128::MAX);
                u128::try_from(&low).unwrap_or_default()
            }
        }
    }

    /// The value itself, where it fits.
    pub(super) fn to_usize(&self) -> Option<usize> {
        match self {
            Value::Small(value) => usize::try_from(*value).ok(),
            Value::Big(_) => None,
        }
    }

    /// Big-endian bytes of a value that is not negative.
    pub(super) fn from_bytes(bytes: &[u8]) -> Value {
        BigInt::from_bytes_be(Sign::Plus, bytes).into()
    }

    /// The lowest `8 * count` bits as big-endian bytes.
    pub(super) fn to_bytes(&self, count: usize) -> Vec<u8> {
        let low = self.low_bits(u32::try_from(count * 8).unwrap_or(u32::MAX));
        let (_, bytes) = low.big().to_bytes_be();
        let skip = bytes.len().saturating_sub(count);
        let mut out = vec![0; count.saturating_sub(bytes.len())];
        out.extend_from_slice(bytes.get(skip..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(text: &str) -> Value {
        Value::parse(text).unwrap()
    }

    #[test]
    fn hexadecimal_has_sign_and_prefix_or_not() {
        assert_eq!(hex("0x4d"), Value::Small(77));
        assert_eq!(hex("ab"), Value::Small(171));
        assert_eq!(hex("-0x1"), Value::Small(-1));
        assert_eq!(hex("0xffffffffffffffffffffffffffffffff"), Value::from(u128::MAX));
        for wrong in ["", "0x", "-", "xyz", "--1", "0x-1"] {
            assert_eq!(Value::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_leave_128_bits_and_come_back() {
        let top = Value::from(u128::MAX);
        let sum = top.plus(&top);
        assert!(matches!(sum, Value::Big(_)));
        assert_eq!(sum.minus(&top), top);
        assert_eq!(top.minus(&top), Value::ZERO);
        assert_eq!(
            top.shifted_left(&Value::Small(8)).unwrap().shifted_right(&Value::Small(8)),
            Some(top.clone())
        );
        assert_eq!(top.shifted_left(&Value::Small(8)).unwrap().low_bits(16), hex("0xff00"));
    }

    #[test]
    fn widths_cut_as_two_s_complement() {
        assert_eq!(Value::Small(-1).low_bits(8), Value::Small(255));
        assert_eq!(Value::Small(-1).low_bits(128), Value::from(u128::MAX));
        assert_eq!(Value::Small(-1).low_bits(0), Value::ZERO);
        // The examples of the format's documentation for `two_comp_mod`.
        assert_eq!(Value::Small(257).signed_bits(8), Value::Small(1));
        assert_eq!(Value::Small(-129).signed_bits(8), Value::Small(127));
        assert_eq!(Value::Small(128).signed_bits(8), Value::Small(-128));
    }

    #[test]
    fn shifts_and_divisions_without_meaning_have_no_result() {
        assert_eq!(Value::Small(1).shifted_left(&Value::Small(-1)), None);
        assert_eq!(Value::Small(1).shifted_left(&Value::Small(1 << 17)), None);
        assert_eq!(Value::Small(-8).shifted_right(&Value::Small(1)), Some(Value::Small(-4)));
        assert_eq!(Value::Small(1).divided(&Value::ZERO), None);
        assert_eq!(Value::Small(-1).modulo(&Value::Small(2)), None);
    }

    proptest! {
        #[test]
        fn short_and_long_ways_agree(left: i128, right: i128, bits in 1u32..200) {
            let (a, b) = (Value::Small(left), Value::Small(right));
            prop_assert_eq!(a.plus(&b), Value::from(BigInt::from(left) + right));
            prop_assert_eq!(a.minus(&b), Value::from(BigInt::from(left) - right));
            prop_assert_eq!(a.times(&b), Value::from(BigInt::from(left) * right));
            prop_assert_eq!(a.and(&b), Value::from(BigInt::from(left) & BigInt::from(right)));
            prop_assert_eq!(a.low_bits(bits), Value::from(BigInt::from(left) & ((BigInt::from(1) << bits) - 1)));
            let by = Value::from(u64::from(bits));
            prop_assert_eq!(a.shifted_left(&by), Some(Value::from(BigInt::from(left) << bits)));
            prop_assert_eq!(a.shifted_right(&by), Some(Value::from(BigInt::from(left) >> bits)));
        }

        #[test]
        fn bytes_come_back(value: u128, more in 0usize..4) {
            let bytes = Value::from(value).to_bytes(16 + more);
            prop_assert_eq!(bytes.len(), 16 + more);
            prop_assert_eq!(Value::from_bytes(&bytes), Value::from(value));
        }
    }
}
