//! Keys of a terminal, from the bytes that it sends for them.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// The key that deletes backwards.
    Backspace,
    /// Ctrl and a letter.
    Control(char),
    /// None of these.
    Other,
}

/// Keys as they are typed. What came in two parts is put together.
#[derive(Debug, Default)]
pub struct Keyboard {
    part: Vec<u8>,
}

impl Keyboard {
    /// The keys that end with these bytes.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.part.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.part);
        let mut rest = &all[..];
        let mut keys = Vec::new();
        while !rest.is_empty() {
            match first(rest) {
                Some((key, length)) => {
                    keys.push(key);
                    rest = &rest[length..];
                }
                None => {
                    self.part = rest.to_vec();
                    break;
                }
            }
        }
        keys
    }
}

/// The first key and its length; none where more bytes must come.
fn first(bytes: &[u8]) -> Option<(Key, usize)> {
    match bytes {
        // Alone it is the key itself: a terminal sends the rest of a sequence with it.
        [0x1b] => Some((Key::Escape, 1)),
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            match end {
                Some(end) => Some((sequence(&rest[..=end]), end + 3)),
                // No terminal sends so long ones.
                None if rest.len() > 16 => Some((Key::Other, bytes.len())),
                None => None,
            }
        }
        [0x1b, b'O'] => None,
        [0x1b, b'O', last, ..] => Some((sequence(&[*last]), 3)),
        // Alt and a key.
        [0x1b, ..] => Some((Key::Other, 2)),
        [b'\r' | b'\n', ..] => Some((Key::Enter, 1)),
        [0x7f | 0x08, ..] => Some((Key::Backspace, 1)),
        [b'\t', ..] => Some((Key::Char('\t'), 1)),
        [control @ 1..=26, ..] => Some((Key::Control(char::from(control + b'a' - 1)), 1)),
        [0..0x20, ..] => Some((Key::Other, 1)),
        [lead, ..] => {
            let length = match lead {
                0..0x80 => 1,
                0xc0..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0.. => 4,
                _ => return Some((Key::Other, 1)),
            };
            let character =
                std::str::from_utf8(bytes.get(..length)?).ok().and_then(|text| text.chars().next());
            Some(character.map_or((Key::Other, 1), |character| (Key::Char(character), length)))
        }
        [] => None,
    }
}

fn sequence(bytes: &[u8]) -> Key {
    match bytes {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"C" => Key::Right,
        b"D" => Key::Left,
        b"H" | b"1~" | b"7~" => Key::Home,
        b"F" | b"4~" | b"8~" => Key::End,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_keys() {
        let keys = Keyboard::default().read(b"q\x1b[A\x1bOB\x1b[5~\x1b[1;5A\x03\r\x7f\xc3\xa9");
        let expected = [
            Key::Char('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::Other,
            Key::Control('c'),
            Key::Enter,
            Key::Backspace,
            Key::Char('\u{e9}'),
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_key_that_comes_in_parts_is_one_key() {
        let mut keyboard = Keyboard::default();
        assert_eq!(keyboard.read(b"\x1b["), []);
        assert_eq!(keyboard.read(b"6~j"), [Key::PageDown, Key::Char('j')]);
        assert_eq!(keyboard.read(b"\xe2\x82"), []);
        assert_eq!(keyboard.read(b"\xac"), [Key::Char('\u{20ac}')]);
        assert_eq!(keyboard.read(b"\x1b"), [Key::Escape]);
        // Bytes of no encoding are skipped, not waited for.
        assert_eq!(
            keyboard.read(b"\xffq\x80x"),
            [Key::Other, Key::Char('q'), Key::Other, Key::Char('x')][..].to_vec()
        );
    }
}
