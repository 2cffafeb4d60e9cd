//! Fields in bytes: most significant bit first, without padding between fields.

use super::value::Value;

/// The `count` bits at bit `at`. Bits beyond the end are zero; callers check lengths where these have a meaning.
pub(super) fn read(bytes: &[u8], at: usize, count: usize) -> Value {
    if count > 128 {
        // The first, shorter piece leaves whole bytes for the rest.
        let first = count % 8;
        let mut aligned = Vec::with_capacity(count / 8 + 1);
        if first > 0 {
            aligned.push(read(bytes, at, first).low_u64() as u8);
        }
        for byte in 0..count / 8 {
            aligned.push(read(bytes, at + first + 8 * byte, 8).low_u64() as u8);
        }
        return Value::from_bytes(&aligned);
    }
    let byte = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let mut value: u128 = 0;
    let mut have = 0;
    let mut position = at;
    while have < count {
        let inside = position % 8;
        let take = (8 - inside).min(count - have);
        let piece = (byte(position / 8) >> (8 - inside - take)) & (0xff >> (8 - take));
        value = (value << take) | u128::from(piece);
        have += take;
        position += take;
    }
    value.into()
}

/// Collects fields.
#[derive(Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    bits: usize,
}

impl Writer {
    /// Appends the lowest `count` bits of a value.
    pub(super) fn push(&mut self, value: &Value, count: usize) {
        if count > 128 {
            let bytes = value.to_bytes(count.div_ceil(8));
            let first = count % 8;
            let (head, rest) = bytes.split_at(usize::from(first > 0));
            for byte in head {
                self.push_bits((*byte).into(), first);
            }
            for byte in rest {
                self.push_bits((*byte).into(), 8);
            }
            return;
        }
        self.push_bits(value.low_u128(), count);
    }

    fn push_bits(&mut self, value: u128, count: usize) {
        let mut left = count;
        while left > 0 {
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let room = 8 - self.bits % 8;
            let take = room.min(left);
            let piece = (value >> (left - take)) as u8 & (0xff >> (8 - take));
            if let Some(last) = self.bytes.last_mut() {
                *last |= piece << (room - take);
            }
            self.bits += take;
            left -= take;
        }
    }

    /// Appends whole bytes after the last full one.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bits = self.bytes.len() * 8;
    }

    /// The bytes; the last one is filled up with zeros.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_do_not_begin_at_bytes() {
        let bytes = [0b0100_0101, 0xab, 0xcd];
        assert_eq!(read(&bytes, 0, 4), Value::Small(4));
        assert_eq!(read(&bytes, 4, 4), Value::Small(5));
        assert_eq!(read(&bytes, 4, 12), Value::Small(0x5ab));
        assert_eq!(read(&bytes, 20, 8), Value::Small(0xd0));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(widths in proptest::collection::vec((1usize..200, any::<[u8; 25]>()), 1..12)) {
            let mut writer = Writer::default();
            let fields: Vec<(usize, Value)> = widths
                .iter()
                .map(|(width, bytes)| (*width, Value::from_bytes(bytes).low_bits(*width as u32)))
                .collect();
            for (width, value) in &fields {
                writer.push(value, *width);
            }
            let bytes = writer.finish();
            let mut at = 0;
            for (width, value) in &fields {
                prop_assert_eq!(&read(&bytes, at, *width), value);
                at += width;
            }
            prop_assert_eq!(bytes.len(), at.div_ceil(8));
        }
    }
}
