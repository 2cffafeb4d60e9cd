//! Frames that nobody should send: whole captures, and seeded mutations of frames of every kind that the
//! balancer parses.

use std::path::{Path, PathBuf};

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;

use crate::error::{Doing, Error, Result};
use crate::rng::Rng;

/// Largest frame that is sent, without FCS; fits every link with the smallest MTU that a topology may have.
const LONGEST: usize = 1280 + 14;
/// A frame needs both MACs and an EtherType to leave an interface.
const SHORTEST: usize = 14;

/// The captures in a directory, sorted; None when there is no such directory.
pub fn captures(directory: &Path) -> Option<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "pcap" || ext == "pcapng"))
        .collect();
    found.sort();
    Some(found)
}

/// The frames of a pcap or pcapng file. A file that is broken in the middle gives what is before.
///
/// # Errors
/// [`Error::Input`] when it isn't a capture at all.
pub fn read_capture(file: &Path) -> Result<Vec<Vec<u8>>> {
    let bytes = std::fs::read(file).doing(|| format!("reading {}", file.display()))?;
    let wrong = |error: &dyn std::fmt::Display| Error::Input {
        file: file.display().to_string(),
        reason: error.to_string(),
    };
    let mut frames = Vec::new();
    if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        let mut reader = PcapNgReader::new(bytes.as_slice()).map_err(|error| wrong(&error))?;
        while let Some(Ok(block)) = reader.next_block() {
            if let Some(packet) = block.into_owned().into_enhanced_packet() {
                frames.push(packet.data.into_owned());
            }
        }
    } else {
        let mut reader = PcapReader::new(bytes.as_slice()).map_err(|error| wrong(&error))?;
        while let Some(Ok(packet)) = reader.next_packet() {
            frames.push(packet.data.into_owned());
        }
    }
    Ok(frames)
}

/// Gives a frame our source MAC, and a length that an interface takes and no kernel on the way drops.
pub fn mark(mut frame: Vec<u8>, source: [u8; 6]) -> Vec<u8> {
    frame.truncate(LONGEST);
    if frame.len() < SHORTEST {
        frame.resize(SHORTEST, 0);
    }
    frame[6..12].copy_from_slice(&source);
    // Linux drops a tagged frame with less than 2 bytes after the tag before any packet socket sees it
    // (skb_vlan_untag), which is nobody's fault here.
    let tagged = matches!([frame[12], frame[13]], [0x81, 0x00] | [0x88, 0xa8]);
    if tagged && frame.len() < SHORTEST + 6 {
        frame.resize(SHORTEST + 6, 0);
    }
    frame
}

/// FNV-1a; sums of it compare two multisets of frames whatever their order.
pub fn digest(frame: &[u8]) -> u64 {
    frame.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// An endless seeded sequence of broken frames.
#[derive(Debug)]
pub struct Mutations {
    rng: Rng,
    corpus: Vec<Vec<u8>>,
}

impl Mutations {
    /// Mutates the given frames and some of our own.
    pub fn new(seed: u64, mut corpus: Vec<Vec<u8>>) -> Self {
        corpus.extend(own_frames());
        Mutations { rng: Rng::new(seed), corpus }
    }

    /// The next frame. MACs stay, so that it is known where it came from.
    pub fn next_frame(&mut self) -> Vec<u8> {
        let pick = self.rng.below(self.corpus.len() as u64) as usize;
        let mut frame = self.corpus[pick].clone();
        for _ in 0..self.rng.between(1, 4) {
            let length = frame.len() as u64;
            if length <= 12 {
                break;
            }
            let at = self.rng.between(12, length - 1) as usize;
            match self.rng.below(6) {
                0 => frame[at] ^= 1 << self.rng.below(8),
                1 => frame[at] = self.rng.next_u64() as u8,
                2 => frame[at] = if self.rng.below(2) == 0 { 0 } else { 0xff },
                3 => frame.truncate(at.max(SHORTEST)),
                4 => {
                    let again: Vec<u8> =
                        frame[at..].iter().copied().take(self.rng.between(1, 40) as usize).collect();
                    frame.splice(at..at, again);
                }
                _ => {
                    let ethertypes =
                        [0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x9100, 0x8847, 0x8864, 0x88b5, 0x88b6];
                    let value = ethertypes[self.rng.below(ethertypes.len() as u64) as usize];
                    if at + 2 <= frame.len() {
                        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
                    }
                }
            }
        }
        frame
    }
}

/// One frame of each kind that the contract's parser knows, as bytes after the MACs.
fn own_frames() -> Vec<Vec<u8>> {
    let ipv4: &[u8] = &[
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 203, 0, 113, 1, 198, 51, 100, 2, 0, 53, 0, 54, 0, 8, 0, 0,
    ];
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, 24, 0, 64];
    ipv6.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    ipv6.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    ipv6.extend_from_slice(&[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 9, 0, 53, 0, 54, 0, 8, 0, 0]);
    let gre: &[u8] = &[0x45, 0, 0, 52, 0, 1, 0, 0, 64, 47, 0, 0, 203, 0, 113, 3, 198, 51, 100, 4, 0, 0, 8, 0];
    let layers: [&[&[u8]]; 9] = [
        &[&[8, 0], ipv4],
        &[&[0x86, 0xdd], &ipv6],
        &[&[0x81, 0, 0, 100, 8, 0], ipv4],
        &[&[0x88, 0xa8, 0, 17, 0x81, 0, 0, 18, 0x86, 0xdd], &ipv6],
        &[&[0x91, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 0x81, 0, 0, 4, 8, 0], ipv4],
        &[&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], ipv4],
        &[&[0x88, 0x64, 0x11, 0, 0, 9, 0, 30, 0, 0x21], ipv4],
        &[&[8, 0], gre, ipv4],
        &[&[0, 38, 0x42, 0x42, 3], &[0; 40]],
    ];
    layers
        .iter()
        .map(|parts| {
            let mut frame = vec![2, 0x5a, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0];
            frame.extend(parts.iter().copied().flatten());
            frame
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_seeded_and_never_touch_the_macs() {
        let draw = |seed| {
            let mut mutations = Mutations::new(seed, Vec::new());
            (0..2000).map(|_| mutations.next_frame()).collect::<Vec<_>>()
        };
        let frames = draw(3);
        assert_eq!(frames, draw(3));
        assert_ne!(frames, draw(4));
        let pure = own_frames();
        assert!(frames.iter().all(|frame| frame.len() >= 12 && frame[..12] == pure[0][..12]));
        let changed = frames.iter().filter(|frame| !pure.contains(frame)).count();
        assert!(changed > 1900, "only {changed} of 2000 were changed");
    }

    #[test]
    fn marked_frames_fit_an_interface() {
        let source = [2, 0x5a, 1, 1, 0xee, 1];
        assert_eq!(mark(vec![0; 3], source).len(), 14);
        assert_eq!(mark(vec![0; 3000], source).len(), LONGEST);
        let mut half_tag = vec![0; 15];
        half_tag[12] = 0x81;
        assert_eq!(mark(half_tag, source).len(), 20);
    }

    #[test]
    fn digests_of_a_multiset_do_not_depend_on_order() {
        let (a, b) = (digest(b"one"), digest(b"two"));
        assert_eq!(a.wrapping_add(b), b.wrapping_add(a));
        assert_ne!(a, b);
    }

    #[test]
    fn a_capture_cut_in_the_middle_gives_its_beginning() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let file = directory.path().join("cut.pcap");
        let mut bytes =
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
        for _ in 0..2 {
            bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0]);
            bytes.extend_from_slice(&[7; 16]);
        }
        bytes.truncate(bytes.len() - 5);
        std::fs::write(&file, &bytes).expect("write");
        assert_eq!(read_capture(&file).expect("capture"), vec![vec![7; 16]]);
        std::fs::write(&file, b"no capture").expect("write");
        assert!(read_capture(&file).expect_err("refused").to_string().contains("cut.pcap"));
        assert_eq!(captures(directory.path()).map(|found| found.len()), Some(1));
        assert_eq!(captures(&directory.path().join("absent")), None);
    }
}
