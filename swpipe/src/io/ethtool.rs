//! Questions to a driver (`SIOCETHTOOL`, `linux/ethtool.h`).

use std::io;
use std::os::fd::AsRawFd;

use super::error::IoError;
use super::interface::{control_socket, named_request};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a feature's name (`ETH_GSTRING_LEN`).
const NAME: usize = 32;

/// An interface and a socket to ask the driver by. Requests are arrays of 32-bit words, as all of the structures
/// used here are.
pub(super) struct Ethtool {
    request: libc::ifreq,
    socket: std::os::fd::OwnedFd,
    interface: String,
}

impl Ethtool {
    pub(super) fn open(interface: &str) -> Result<Self, IoError> {
        Ok(Ethtool {
            request: named_request(interface)?,
            socket: control_socket(interface)?,
            interface: interface.to_owned(),
        })
    }

    /// The kernel reads and writes `words`; how many, the command and its counts in `words` say.
    ///
    /// # Safety
    /// `words` is at least as long as the command makes the kernel read or write.
    unsafe fn call(&self, words: &mut [u32], doing: &'static str) -> Result<(), IoError> {
        let mut request = self.request;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: an ifreq that points to `words`, long enough by the caller's promise.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        if result < 0 {
            return Err(IoError::from_system(&self.interface, doing, io::Error::last_os_error()));
        }
        Ok(())
    }

    /// Names of the features that this kernel knows, by bit.
    pub(super) fn feature_names(&self) -> Result<Vec<String>, IoError> {
        // struct ethtool_sset_info: cmd, reserved, sset_mask (64 bits), data[1]
        let mask = (1_u64 << ETH_SS_FEATURES).to_ne_bytes();
        let [a, b, c, d, e, f, g, h] = mask;
        let mut info =
            [ETHTOOL_GSSET_INFO, 0, u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]), 0];
        // SAFETY: one set is asked for, so one word of data is written, the fifth.
        unsafe { self.call(&mut info, "count its offloads")? };
        let count = info[4] as usize;
        // struct ethtool_gstrings: cmd, string_set, len, data[len * NAME]
        let mut strings = vec![0_u32; 3 + count * NAME / 4];
        strings[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32]);
        // SAFETY: the kernel writes as many names as it has just counted; their number does not change while it
        // runs.
        unsafe { self.call(&mut strings, "list its offloads")? };
        let bytes: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(bytes.chunks_exact(NAME).map(|raw| text(raw.iter().copied())).collect())
    }

    /// The features that are on, as bits.
    pub(super) fn active_features(&self, count: usize) -> Result<Vec<u32>, IoError> {
        // struct ethtool_gfeatures: cmd, size, then { available, requested, active, never_changed } a block
        let blocks = count.div_ceil(32);
        let mut features = vec![0_u32; 2 + 4 * blocks];
        features[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
        // SAFETY: the kernel writes at most the number of blocks that `size` says.
        unsafe { self.call(&mut features, "read its offloads")? };
        Ok(features[2..].chunks_exact(4).map(|block| block[2]).collect())
    }

    /// Asks for these features to be off; what the driver makes of it, [`Ethtool::active_features`] says.
    pub(super) fn clear_features(&self, count: usize, indexes: &[usize]) -> Result<(), IoError> {
        // struct ethtool_sfeatures: cmd, size, then { valid, requested } a block
        let blocks = count.div_ceil(32);
        let mut features = vec![0_u32; 2 + 2 * blocks];
        features[..2].copy_from_slice(&[ETHTOOL_SFEATURES, blocks as u32]);
        for index in indexes {
            if let Some(valid) = features.get_mut(2 + 2 * (index / 32)) {
                *valid |= 1 << (index % 32);
            }
        }
        // SAFETY: the kernel reads the number of blocks that `size` says.
        unsafe { self.call(&mut features, "turn its offloads off") }
    }

    /// Name of the driver.
    pub(super) fn driver(&self) -> Result<String, IoError> {
        // struct ethtool_drvinfo: cmd, driver[32], four names more, reserved2[12], five counts
        let mut info = [0_u32; 49];
        info[0] = ETHTOOL_GDRVINFO;
        // SAFETY: the kernel writes one such structure, 196 bytes.
        unsafe { self.call(&mut info, "ask for its driver")? };
        Ok(text(info[1..].iter().flat_map(|word| word.to_ne_bytes()).take(NAME)))
    }

    /// How many queues it receives by. One where the driver does not say.
    pub(super) fn receive_queues(&self) -> u32 {
        // struct ethtool_channels: cmd, four greatest counts, then rx, tx, other and combined
        let mut channels = [0_u32; 9];
        channels[0] = ETHTOOL_GCHANNELS;
        // SAFETY: the kernel writes one such structure, 36 bytes.
        match unsafe { self.call(&mut channels, "count its queues") } {
            Ok(()) => (channels[5] + channels[8]).max(1),
            Err(_) => 1,
        }
    }
}

fn text(bytes: impl Iterator<Item = u8>) -> String {
    let text: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&text).into_owned()
}
