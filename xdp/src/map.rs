//! Maps: what a program and its owner share.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::XdpError;
use crate::sys::{self, MapKind};

/// Sockets (`AF_XDP`) by queue, to redirect frames to.
#[derive(Debug)]
pub struct SocketMap(OwnedFd);

impl SocketMap {
    /// Room for queues 0..`queues`.
    ///
    /// # Errors
    /// No permission, no memory.
    pub fn new(queues: u32) -> Result<Self, XdpError> {
        sys::create_map(MapKind::Socket, "sockets", 4, queues).map(SocketMap)
    }

    /// Frames of this queue go to this socket, which is to be bound to it.
    ///
    /// # Errors
    /// No such queue, or no `AF_XDP` socket.
    pub fn put(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), XdpError> {
        let value = socket.as_raw_fd().to_ne_bytes();
        sys::update(self.0.as_fd(), queue, &value).map_err(of_entry("put a socket into a map", queue))
    }

    /// Frames of this queue go to no socket. Sockets that are closed leave by themselves.
    ///
    /// # Errors
    /// No such queue.
    pub fn take(&self, queue: u32) -> Result<(), XdpError> {
        sys::delete(self.0.as_fd(), queue).map_err(of_entry("take a socket out of a map", queue))
    }
}

/// Interfaces to redirect frames to.
#[derive(Debug)]
pub struct DeviceMap(OwnedFd);

impl DeviceMap {
    /// Room for keys 0..`entries`.
    ///
    /// # Errors
    /// No permission, no memory.
    pub fn new(entries: u32) -> Result<Self, XdpError> {
        sys::create_map(MapKind::Device, "devices", 4, entries).map(DeviceMap)
    }

    /// Frames with this key leave by the interface of this index, of the calling thread's network namespace.
    ///
    /// # Errors
    /// No such key or interface.
    pub fn put(&self, key: u32, interface: u32) -> Result<(), XdpError> {
        let value = interface.to_ne_bytes();
        sys::update(self.0.as_fd(), key, &value).map_err(of_entry("put an interface into a map", key))
    }
}

/// An array of 64-bit words that all CPUs share: settings, which a program reads with
/// [`Assembler::map_value`](crate::Assembler::map_value) at 8 times the index.
#[derive(Debug)]
pub struct WordArray(OwnedFd);

impl WordArray {
    /// Words, all 0.
    ///
    /// # Errors
    /// No permission, no memory.
    pub fn new(words: u32) -> Result<Self, XdpError> {
        // One entry: only there are the words of an array one value, at 8 bytes each.
        sys::create_map(MapKind::Array, "words", words.saturating_mul(8), 1).map(WordArray)
    }

    /// Writes all words. Programs may see some of them before others.
    ///
    /// # Errors
    /// Not as many as it has.
    pub fn set(&self, words: &[u64]) -> Result<(), XdpError> {
        let doing = "write an array of words";
        let size = sys::value_size(self.0.as_fd()).map_err(|error| XdpError::from_system(doing, error))?;
        if words.len() * 8 != size as usize {
            return Err(XdpError::Value {
                doing: doing.to_owned(),
                what: "the number of words",
                actual: words.len(),
                right: (size / 8).to_string(),
            });
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        sys::update(self.0.as_fd(), 0, &bytes).map_err(of_entry(doing, 0))
    }

    /// Reads all words.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn get(&self) -> Result<Vec<u64>, XdpError> {
        let doing = "read an array of words";
        let size = sys::value_size(self.0.as_fd()).map_err(|error| XdpError::from_system(doing, error))?;
        let mut bytes = vec![0; size as usize];
        sys::lookup(self.0.as_fd(), 0, &mut bytes).map_err(of_entry(doing, 0))?;
        Ok(words(&bytes))
    }
}

/// An array of 64-bit words of each CPU: counters, which a program finds with
/// [`helper::MAP_LOOKUP`](crate::helper::MAP_LOOKUP).
#[derive(Debug)]
pub struct PerCpuArray(OwnedFd);

impl PerCpuArray {
    /// Entries of one word for each CPU, all 0.
    ///
    /// # Errors
    /// No permission, no memory.
    pub fn new(entries: u32) -> Result<Self, XdpError> {
        sys::create_map(MapKind::PerCpuArray, "counters", 8, entries).map(PerCpuArray)
    }

    /// An entry's words, one for each CPU that the system could have.
    ///
    /// # Errors
    /// No such entry.
    pub fn get(&self, entry: u32) -> Result<Vec<u64>, XdpError> {
        let mut bytes = vec![0; 8 * sys::possible_cpus()?];
        sys::lookup(self.0.as_fd(), entry, &mut bytes).map_err(of_entry("read a counter", entry))?;
        Ok(words(&bytes))
    }

    /// The sum over all CPUs.
    ///
    /// # Errors
    /// As [`PerCpuArray::get`].
    pub fn sum(&self, entry: u32) -> Result<u64, XdpError> {
        Ok(self.get(entry)?.into_iter().fold(0, u64::wrapping_add))
    }

    /// Writes the same word for every CPU.
    ///
    /// # Errors
    /// No such entry.
    pub fn set(&self, entry: u32, word: u64) -> Result<(), XdpError> {
        let bytes = word.to_ne_bytes().repeat(sys::possible_cpus()?);
        sys::update(self.0.as_fd(), entry, &bytes).map_err(of_entry("write a counter", entry))
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn of_entry(doing: &str, entry: u32) -> impl FnOnce(std::io::Error) -> XdpError {
    move |error| XdpError::from_system(format!("{doing} (entry {entry})"), error)
}

macro_rules! descriptors {
    ($($map:ty),*) => {
        $(impl AsFd for $map {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        })*
    };
}

descriptors!(SocketMap, DeviceMap, WordArray, PerCpuArray);
