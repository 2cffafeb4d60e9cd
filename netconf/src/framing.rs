//! Where a message ends on the wire: `]]>]]>` of RFC 4742 until the hellos are exchanged, chunks of RFC 6242
//! after them where both sides speak base:1.1.

use thiserror::Error;

/// What follows each message of base:1.0.
pub const END_OF_MESSAGE: &[u8] = b"]]>]]>";

/// How messages are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `]]>]]>` behind each message (RFC 6242, 4.3).
    EndOfMessage,
    /// Chunks with their length in front (RFC 6242, 4.2).
    Chunked,
}

/// Why what arrives is not a message. There is no way back into step: the session ends (RFC 6242, 4.2).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FramingFault {
    /// A message is longer than allowed.
    #[error("a message is longer than {limit} bytes")]
    TooLong {
        /// Bytes that it may have.
        limit: usize,
    },
    /// Something else where a chunk should begin.
    #[error("chunked framing: {found:?} where {expected} should be")]
    NotAChunk {
        /// The byte that was found.
        found: char,
        /// What would be right.
        expected: &'static str,
    },
    /// A chunk's length is 0, has zeros in front, or does not fit 32 bits.
    #[error("chunked framing: a chunk's length must be 1..4294967295 without zeros in front")]
    ChunkLength,
    /// The end of chunks without any.
    #[error("chunked framing: a message needs at least one chunk")]
    NoChunk,
}

/// Takes bytes as they arrive, gives messages.
#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    limit: usize,
    /// Arrived, not yet looked at from `at`.
    input: Vec<u8>,
    at: usize,
    /// Of `input`, known to hold no end of a message.
    searched: usize,
    /// Chunks of the message so far.
    message: Vec<u8>,
    chunk: Chunk,
}

/// Where in the chunked framing the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// Before the line feed of a chunk's header.
    LineFeed { any: bool },
    /// Before the header's `#`.
    Hash { any: bool },
    /// Before the first digit, or the second `#` of the end.
    First { any: bool },
    /// Among the digits.
    Length(u64),
    /// In the data.
    Data(u64),
    /// Before the line feed that ends the message.
    End,
}

impl Decoder {
    /// Begins with `]]>]]>`, as every session does. A message longer than `limit` bytes is a fault.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            framing: Framing::EndOfMessage,
            limit,
            input: Vec::new(),
            at: 0,
            searched: 0,
            message: Vec::new(),
            chunk: Chunk::LineFeed { any: false },
        }
    }

    /// What has not been taken yet, and all that follows, is in chunks.
    pub fn switch_to_chunks(&mut self) {
        self.framing = Framing::Chunked;
    }

    /// How messages are told apart now.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Takes what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// The next complete message.
    ///
    /// # Errors
    /// When what arrived is no message, and ever after.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, FramingFault> {
        match self.framing {
            Framing::EndOfMessage => self.take_delimited(),
            Framing::Chunked => self.take_chunked(),
        }
    }

    fn take_delimited(&mut self) -> Result<Option<Vec<u8>>, FramingFault> {
        let unread = self.input.get(self.at..).unwrap_or_default();
        let found = find(unread, END_OF_MESSAGE, self.searched);
        let length = found.unwrap_or_else(|| unread.len().saturating_sub(END_OF_MESSAGE.len() - 1));
        if length > self.limit {
            return Err(FramingFault::TooLong { limit: self.limit });
        }
        if found.is_none() {
            self.searched = length;
            return Ok(None);
        }
        let message = unread.get(..length).unwrap_or_default().to_vec();
        self.at += length + END_OF_MESSAGE.len();
        self.searched = 0;
        self.release();
        Ok(Some(message))
    }

    fn take_chunked(&mut self) -> Result<Option<Vec<u8>>, FramingFault> {
        while let Some(&byte) = self.input.get(self.at) {
            let wrong = |expected| FramingFault::NotAChunk { found: char::from(byte), expected };
            self.chunk = match (self.chunk, byte) {
                (Chunk::Data(left), _) => {
                    let unread = self.input.get(self.at..).unwrap_or_default();
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(unread.len());
                    self.message.extend_from_slice(unread.get(..here).unwrap_or_default());
                    self.at += here;
                    match left - here as u64 {
                        0 => self.chunk = Chunk::LineFeed { any: true },
                        left => self.chunk = Chunk::Data(left),
                    }
                    continue;
                }
                (Chunk::LineFeed { any }, b'\n') => Chunk::Hash { any },
                (Chunk::LineFeed { .. }, _) => return Err(wrong("a line feed before a chunk")),
                (Chunk::Hash { any }, b'#') => Chunk::First { any },
                (Chunk::Hash { .. }, _) => return Err(wrong("# before a chunk's length")),
                (Chunk::First { .. }, b'1'..=b'9') => Chunk::Length(u64::from(byte - b'0')),
                (Chunk::First { .. }, b'0') => return Err(FramingFault::ChunkLength),
                (Chunk::First { any: true }, b'#') => Chunk::End,
                (Chunk::First { any: false }, b'#') => return Err(FramingFault::NoChunk),
                (Chunk::First { .. }, _) => return Err(wrong("a chunk's length")),
                (Chunk::Length(length), b'0'..=b'9') => {
                    let length = length * 10 + u64::from(byte - b'0');
                    if length > u64::from(u32::MAX) {
                        return Err(FramingFault::ChunkLength);
                    }
                    Chunk::Length(length)
                }
                (Chunk::Length(length), b'\n') => {
                    if length.saturating_add(self.message.len() as u64) > self.limit as u64 {
                        return Err(FramingFault::TooLong { limit: self.limit });
                    }
                    Chunk::Data(length)
                }
                (Chunk::Length(_), _) => return Err(wrong("a line feed behind a chunk's length")),
                (Chunk::End, b'\n') => {
                    self.at += 1;
                    self.chunk = Chunk::LineFeed { any: false };
                    self.release();
                    return Ok(Some(std::mem::take(&mut self.message)));
                }
                (Chunk::End, _) => return Err(wrong("a line feed behind the last ##")),
            };
            self.at += 1;
        }
        Ok(None)
    }

    /// Gives the room of a long message back.
    fn release(&mut self) {
        if self.at == self.input.len() {
            self.at = 0;
            self.input.clear();
            self.input.shrink_to(64 * 1024);
        }
    }
}

/// Where `needle` begins in `hay`, not before `from`.
fn find(hay: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let first = *needle.first()?;
    let mut at = from;
    while let Some(next) = hay.get(at..)?.iter().position(|byte| *byte == first) {
        at += next;
        if hay.get(at..)?.starts_with(needle) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// What goes in front of a part of a message, and behind the last.
#[must_use]
pub fn header(framing: Framing, length: usize) -> Vec<u8> {
    match framing {
        Framing::EndOfMessage => Vec::new(),
        Framing::Chunked => format!("\n#{length}\n").into_bytes(),
    }
}

/// What ends a message.
#[must_use]
pub fn trailer(framing: Framing) -> &'static [u8] {
    match framing {
        Framing::EndOfMessage => END_OF_MESSAGE,
        Framing::Chunked => b"\n##\n",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoder(framing: Framing) -> Decoder {
        let mut decoder = Decoder::new(1000);
        if framing == Framing::Chunked {
            decoder.switch_to_chunks();
        }
        decoder
    }

    /// All messages, and the fault that ended them.
    fn decode(framing: Framing, wire: &[u8], pieces: &[usize]) -> (Vec<Vec<u8>>, Option<FramingFault>) {
        let mut decoder = decoder(framing);
        let mut messages = Vec::new();
        let mut rest = wire;
        let mut pieces = pieces.iter().cycle();
        while !rest.is_empty() {
            let length = pieces.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
            decoder.push(&rest[..length]);
            rest = &rest[length..];
            loop {
                match decoder.take() {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => break,
                    Err(fault) => return (messages, Some(fault)),
                }
            }
        }
        (messages, None)
    }

    fn encode(framing: Framing, message: &[u8], chunk: usize) -> Vec<u8> {
        let mut wire = Vec::new();
        for part in message.chunks(chunk) {
            wire.extend(header(framing, part.len()));
            wire.extend(part);
        }
        wire.extend(trailer(framing));
        wire
    }

    #[test]
    fn a_chunked_example_of_rfc_6242() {
        let wire = b"\n#4\n<rpc\n#18\n message-id=\"102\"\n\n#79\n     xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n  <close-session/>\n</rpc>\n##\n";
        let (messages, fault) = decode(Framing::Chunked, wire, &[]);
        assert_eq!(fault, None);
        let expected = "<rpc message-id=\"102\"\n     xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n  <close-session/>\n</rpc>";
        assert_eq!(messages, [expected.as_bytes()]);
    }

    #[test]
    fn wrong_chunks_are_told_by_what_is_wrong() {
        let fault = |wire: &[u8]| decode(Framing::Chunked, wire, &[1]).1;
        assert_eq!(fault(b"\n#0\n"), Some(FramingFault::ChunkLength));
        assert_eq!(fault(b"\n#04\nabcd"), Some(FramingFault::ChunkLength));
        assert_eq!(fault(b"\n#4294967296\n"), Some(FramingFault::ChunkLength));
        assert_eq!(fault(b"\n##\n"), Some(FramingFault::NoChunk));
        assert_eq!(fault(b"\n#1001\n"), Some(FramingFault::TooLong { limit: 1000 }));
        assert_eq!(fault(b"\n#999\n"), None);
        assert!(matches!(fault(b"<hello/>"), Some(FramingFault::NotAChunk { found: '<', .. })));
        assert!(matches!(fault(b"\n#4\nabcdX"), Some(FramingFault::NotAChunk { found: 'X', .. })));
        assert!(matches!(fault(b"\n#4\nabcd\n##X"), Some(FramingFault::NotAChunk { found: 'X', .. })));
    }

    #[test]
    fn a_message_without_an_end_is_refused_at_the_limit() {
        assert_eq!(decode(Framing::EndOfMessage, &[b'a'; 1005], &[7]).1, None);
        let fault = Some(FramingFault::TooLong { limit: 1000 });
        assert_eq!(decode(Framing::EndOfMessage, &[b'a'; 1006], &[7]).1, fault);
        // Chunks that are short each, but long together.
        let wire = encode(Framing::Chunked, &[b'a'; 1001], 500);
        assert_eq!(decode(Framing::Chunked, &wire, &[7]).1, fault);
    }

    #[test]
    fn chunks_may_follow_the_hello_in_one_packet() {
        let mut decoder = Decoder::new(1000);
        decoder.push(b"<hello/>]]>]]>\n#6\n<rpc/>\n##\n");
        assert_eq!(decoder.take(), Ok(Some(b"<hello/>".to_vec())));
        decoder.switch_to_chunks();
        assert_eq!(decoder.take(), Ok(Some(b"<rpc/>".to_vec())));
        assert_eq!(decoder.take(), Ok(None));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_however_it_is_cut(
            messages in prop::collection::vec(prop::collection::vec(b'\n'..=b'b', 1..200), 0..8),
            chunk in 1_usize..50,
            pieces in prop::collection::vec(1_usize..60, 1..10),
            chunked in any::<bool>(),
        ) {
            let framing = if chunked { Framing::Chunked } else { Framing::EndOfMessage };
            let messages: Vec<Vec<u8>> = messages
                .into_iter()
                .map(|message| message.into_iter().filter(|byte| chunked || *byte != b'>').collect::<Vec<u8>>())
                .filter(|message| !message.is_empty())
                .collect();
            let wire: Vec<u8> = messages.iter().flat_map(|message| encode(framing, message, chunk)).collect();
            let (decoded, fault) = decode(framing, &wire, &pieces);
            prop_assert_eq!(fault, None);
            prop_assert_eq!(decoded, messages);
        }

        #[test]
        fn any_bytes_give_the_same_however_they_are_cut(
            wire in prop::collection::vec(prop::sample::select(&b"\n#0123]>a"[..]), 0..300),
            pieces in prop::collection::vec(1_usize..9, 1..10),
            chunked in any::<bool>(),
        ) {
            let framing = if chunked { Framing::Chunked } else { Framing::EndOfMessage };
            prop_assert_eq!(decode(framing, &wire, &pieces), decode(framing, &wire, &[]));
        }
    }
}
