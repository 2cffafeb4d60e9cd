//! Capture files: classic pcap and pcapng in, classic pcap out.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

/// A frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Capture time, ns since the epoch; 0 where the file does not tell.
    pub time: u64,
    /// The bytes that were captured.
    pub bytes: Vec<u8>,
}

/// A capture that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The system says no.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Neither pcap nor pcapng.
    #[error("{}: is neither a pcap nor a pcapng file: {reason}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file ends within a record.
    #[error("{}: the file is cut in the middle: it ends within frame {frame} (counting from 0)", .path.display())]
    Cut {
        /// The file.
        path: PathBuf,
        /// Frames before the cut.
        frame: usize,
    },
    /// Not Ethernet.
    #[error("{}: link type {linktype} is not Ethernet (1)", .path.display())]
    LinkType {
        /// The file.
        path: PathBuf,
        /// Its link type.
        linktype: i32,
    },
}

/// Room for one record; larger than any frame that a capture file of sense holds.
const BUFFER: usize = 1 << 20;

/// Time stamps of one pcapng interface.
struct Clock {
    resolution: u64,
    offset: i64,
    linktype: Linktype,
    /// 0 for no limit.
    snap_length: u32,
}

/// What the link type field of a classic pcap file says beside the link type.
#[derive(Clone, Copy, Default)]
struct LinkField {
    linktype: Linktype,
    /// Bytes of FCS behind each frame that was captured whole.
    fcs: usize,
}

impl LinkField {
    /// As libpcap reads it: 26 bits of link type, one that says whether there is an FCS length, and that
    /// length in the upper four, in units of two bytes.
    fn read(field: Linktype) -> Self {
        let bits = field.0 as u32;
        let fcs = if bits & 0x0400_0000 != 0 { (bits >> 28) as usize * 2 } else { 0 };
        LinkField { linktype: Linktype((bits & 0x03ff_ffff) as i32), fcs }
    }
}

/// Reads all frames of a file.
///
/// # Errors
/// The file and what is wrong with it; a file that is cut gives no frames at all.
pub fn read(path: &Path) -> Result<Vec<Captured>, CaptureError> {
    let file = File::open(path).map_err(|source| CaptureError::Io { path: path.to_owned(), source })?;
    read_from(path, file)
}

fn read_from(path: &Path, file: impl Read + Send) -> Result<Vec<Captured>, CaptureError> {
    let mut frames = Vec::new();
    let format = |reason: &dyn std::fmt::Debug| CaptureError::Format {
        path: path.to_owned(),
        reason: format!("{reason:?}"),
    };
    let mut reader = create_reader(BUFFER, file).map_err(|error| match error {
        PcapError::Incomplete(_) | PcapError::Eof | PcapError::UnexpectedEof => {
            CaptureError::Cut { path: path.to_owned(), frame: 0 }
        }
        error => format(&error),
    })?;
    let mut clocks: Vec<Clock> = Vec::new();
    let mut nanoseconds = false;
    let mut link = LinkField::default();
    loop {
        match reader.next() {
            Ok((length, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        link = LinkField::read(header.network);
                        ethernet(path, link.linktype)?;
                        nanoseconds = header.is_nanosecond_precision();
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let fraction = u64::from(packet.ts_usec) * if nanoseconds { 1 } else { 1000 };
                        let whole = packet.caplen >= packet.origlen;
                        let fcs = if whole { link.fcs } else { 0 };
                        let bytes = packet.data.get(..packet.data.len().saturating_sub(fcs));
                        frames.push(Captured {
                            time: u64::from(packet.ts_sec) * 1_000_000_000 + fraction,
                            bytes: bytes.unwrap_or_default().to_vec(),
                        });
                    }
                    PcapBlockOwned::NG(block) => ng_block(path, &block, &mut clocks, &mut frames)?,
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(frames),
            Err(PcapError::Incomplete(_)) => {
                if reader.reader_exhausted() {
                    return Err(CaptureError::Cut { path: path.to_owned(), frame: frames.len() });
                }
                reader.refill().map_err(|error| format(&error))?;
            }
            Err(PcapError::UnexpectedEof) => {
                return Err(CaptureError::Cut { path: path.to_owned(), frame: frames.len() });
            }
            Err(error) => return Err(format(&error)),
        }
    }
}

fn ethernet(path: &Path, linktype: Linktype) -> Result<(), CaptureError> {
    if linktype == Linktype::ETHERNET {
        return Ok(());
    }
    Err(CaptureError::LinkType { path: path.to_owned(), linktype: linktype.0 })
}

fn ng_block(
    path: &Path,
    block: &Block<'_>,
    clocks: &mut Vec<Clock>,
    frames: &mut Vec<Captured>,
) -> Result<(), CaptureError> {
    match block {
        Block::SectionHeader(_) => clocks.clear(),
        Block::InterfaceDescription(interface) => clocks.push(Clock {
            resolution: interface.ts_resolution().unwrap_or(1_000_000),
            offset: interface.ts_offset(),
            linktype: interface.linktype,
            snap_length: interface.snaplen,
        }),
        Block::EnhancedPacket(packet) => {
            let clock = clocks.get(packet.if_id as usize).ok_or_else(|| CaptureError::Format {
                path: path.to_owned(),
                reason: format!(
                    "frame {} names interface {}, which is not described",
                    frames.len(),
                    packet.if_id
                ),
            })?;
            ethernet(path, clock.linktype)?;
            let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
            let ns = ticks * 1_000_000_000 / u128::from(clock.resolution.max(1));
            let time = (ns as i128) + i128::from(clock.offset) * 1_000_000_000;
            let bytes = packet.packet_data().get(..packet.caplen as usize).unwrap_or(packet.packet_data());
            frames.push(Captured { time: u64::try_from(time).unwrap_or(0), bytes: bytes.to_vec() });
        }
        Block::SimplePacket(packet) => {
            // It has no captured length: the original one, bounded by the interface's snap length.
            let mut length = packet.origlen;
            if let Some(clock) = clocks.first() {
                ethernet(path, clock.linktype)?;
                if clock.snap_length != 0 {
                    length = length.min(clock.snap_length);
                }
            }
            let data = packet.raw_packet_data();
            let bytes = data.get(..length as usize).unwrap_or(data);
            frames.push(Captured { time: 0, bytes: bytes.to_vec() });
        }
        _ => {}
    }
    Ok(())
}

/// Writes a classic pcap file of Ethernet frames.
pub struct CaptureFile {
    path: PathBuf,
    file: BufWriter<File>,
    nanoseconds: bool,
}

impl CaptureFile {
    /// Creates the file; time stamps have nanoseconds where `nanoseconds`, else microseconds.
    ///
    /// # Errors
    /// [`CaptureError::Io`].
    pub fn create(path: &Path, nanoseconds: bool) -> Result<Self, CaptureError> {
        let create = || {
            let mut file = BufWriter::new(File::create(path)?);
            let magic: u32 = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
            file.write_all(&magic.to_le_bytes())?;
            file.write_all(&2u16.to_le_bytes())?;
            file.write_all(&4u16.to_le_bytes())?;
            file.write_all(&[0; 8])?;
            file.write_all(&262_144u32.to_le_bytes())?;
            file.write_all(&1u32.to_le_bytes())?;
            Ok(file)
        };
        let file = create().map_err(|source| CaptureError::Io { path: path.to_owned(), source })?;
        Ok(CaptureFile { path: path.to_owned(), file, nanoseconds })
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// [`CaptureError::Io`].
    pub fn append(&mut self, time: u64, frame: &[u8]) -> Result<(), CaptureError> {
        let seconds = (time / 1_000_000_000) as u32;
        let fraction = (time % 1_000_000_000) as u32 / if self.nanoseconds { 1 } else { 1000 };
        let length = frame.len() as u32;
        let mut write = || {
            for word in [seconds, fraction, length, length] {
                self.file.write_all(&word.to_le_bytes())?;
            }
            self.file.write_all(frame)
        };
        write().map_err(|source| CaptureError::Io { path: self.path.clone(), source })
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// [`CaptureError::Io`].
    pub fn finish(mut self) -> Result<(), CaptureError> {
        self.file.flush().map_err(|source| CaptureError::Io { path: self.path.clone(), source })
    }
}
