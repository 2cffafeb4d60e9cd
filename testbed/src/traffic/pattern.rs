//! The bytes that sessions carry: a seeded sequence, so that both ends know every byte that must come.

/// One direction of one round of one session.
#[derive(Debug, Clone)]
pub struct Pattern {
    state: u64,
    word: [u8; 8],
    used: usize,
}

impl Pattern {
    /// The sequence of `session`, `round`, and direction (`up`: from the one that connected).
    pub fn new(session: u64, round: u32, up: bool) -> Self {
        let state = (session << 33) ^ (u64::from(round) << 1) ^ u64::from(up);
        Pattern { state: state.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, word: [0; 8], used: 8 }
    }

    fn next_byte(&mut self) -> u8 {
        if self.used == 8 {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.word = self.state.to_le_bytes();
            self.used = 0;
        }
        let byte = self.word[self.used];
        self.used += 1;
        byte
    }

    /// Writes the next bytes of the sequence.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.next_byte();
        }
    }

    /// Compares with the next bytes of the sequence; the place of the first wrong one.
    ///
    /// # Errors
    /// The offset within `bytes`.
    pub fn verify(&mut self, bytes: &[u8]) -> Result<(), usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if *byte != self.next_byte() {
                return Err(at);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_writes_the_other_verifies_in_any_pieces() {
        let mut bytes = vec![0; 1000];
        Pattern::new(5, 2, true).fill(&mut bytes);
        let mut reader = Pattern::new(5, 2, true);
        for piece in bytes.chunks(7) {
            assert_eq!(reader.verify(piece), Ok(()));
        }
    }

    #[test]
    fn a_flipped_bit_or_another_session_is_noticed() {
        let mut bytes = vec![0; 100];
        Pattern::new(5, 2, true).fill(&mut bytes);
        bytes[63] ^= 1;
        assert_eq!(Pattern::new(5, 2, true).verify(&bytes), Err(63));
        for other in [Pattern::new(6, 2, true), Pattern::new(5, 3, true), Pattern::new(5, 2, false)] {
            assert!(other.clone().verify(&bytes).is_err(), "{other:?}");
        }
    }
}
