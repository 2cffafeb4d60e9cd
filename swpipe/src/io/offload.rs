//! Offloads off: a port hands over and sends frames as they are on the wire (ethtool's feature requests).

use std::io;
use std::os::fd::AsRawFd;

use super::error::IoError;
use super::interface::{control_socket, named_request};

/// Features by the kernel's names (`net/ethtool/common.c`) that must be off. With one of them on, a port would
/// hand over frames that were not on the wire.
const MUST_BE_OFF: &[&str] = &[
    // merge received frames
    "rx-gro",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-lro",
    // strip tags
    "rx-vlan-hw-parse",
    "rx-vlan-stag-hw-parse",
    // leave checksums unfinished
    "tx-checksum-ipv4",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv6",
    "tx-checksum-sctp",
    "tx-checksum-fcoe-crc",
    // send super-frames
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-accecn-segmentation",
    "tx-udp-segmentation",
    "tx-gso-list",
];

/// Features that go off where they can: tag filters, which drivers suspend anyway on a promiscuous interface, and
/// what concerns the host's own stack alone, which sends nothing here.
const BETTER_OFF: &[&str] = &[
    "rx-vlan-filter",
    "rx-vlan-stag-filter",
    "tx-vlan-hw-insert",
    "tx-vlan-stag-hw-insert",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-sctp-segmentation",
    "tx-esp-segmentation",
    "tx-fcoe-segmentation",
];

/// Offloads that alter frames and that the driver does not turn off.
#[derive(Debug, thiserror::Error)]
#[error(
    "interface {interface}: these offloads alter frames and cannot be turned off: {}; use another interface (`ethtool -k {interface}` shows them as [fixed])",
    features.join(", ")
)]
pub struct OffloadError {
    /// Name of the interface.
    pub interface: String,
    /// The kernel's names of the features.
    pub features: Vec<String>,
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a feature's name (`ETH_GSTRING_LEN`).
const NAME: usize = 32;

/// Turns off what would merge, strip or leave frames unfinished on the interface.
///
/// A veth port receives what its peer sends as the peer's stack made it: the peer's own transmit offloads decide
/// whether super-frames and unfinished checksums arrive, and nothing on this end changes that. Receivers count both.
///
/// # Errors
/// Such an offload stays on, no such interface, or no permission.
pub fn turn_off(interface: &str) -> Result<(), IoError> {
    let device = Ethtool::open(interface)?;
    let names = device.feature_names()?;
    let active = device.active_features(names.len())?;
    let is_in =
        |list: &[&str], index: usize| names.get(index).is_some_and(|name| list.contains(&name.as_str()));
    let wanted: Vec<usize> = (0..names.len())
        .filter(|&index| bit(&active, index) && (is_in(MUST_BE_OFF, index) || is_in(BETTER_OFF, index)))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    device.clear_features(names.len(), &wanted)?;
    let active = device.active_features(names.len())?;
    let features: Vec<String> = (0..names.len())
        .filter(|&index| bit(&active, index) && is_in(MUST_BE_OFF, index))
        .filter_map(|index| names.get(index).cloned())
        .collect();
    if features.is_empty() {
        Ok(())
    } else {
        Err(OffloadError { interface: interface.to_owned(), features }.into())
    }
}

fn bit(words: &[u32], index: usize) -> bool {
    words.get(index / 32).is_some_and(|word| word & (1 << (index % 32)) != 0)
}

/// An interface and a socket to ask the driver by. Requests are arrays of 32-bit words, as all of the structures
/// used here are.
struct Ethtool {
    request: libc::ifreq,
    socket: std::os::fd::OwnedFd,
    interface: String,
}

impl Ethtool {
    fn open(interface: &str) -> Result<Self, IoError> {
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
    fn feature_names(&self) -> Result<Vec<String>, IoError> {
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
        let name = |raw: &[u8]| {
            let text: Vec<u8> = raw.iter().copied().take_while(|&byte| byte != 0).collect();
            String::from_utf8_lossy(&text).into_owned()
        };
        Ok(bytes.chunks_exact(NAME).map(name).collect())
    }

    /// The features that are on, as bits.
    fn active_features(&self, count: usize) -> Result<Vec<u32>, IoError> {
        // struct ethtool_gfeatures: cmd, size, then { available, requested, active, never_changed } a block
        let blocks = count.div_ceil(32);
        let mut features = vec![0_u32; 2 + 4 * blocks];
        features[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
        // SAFETY: the kernel writes at most the number of blocks that `size` says.
        unsafe { self.call(&mut features, "read its offloads")? };
        Ok(features[2..].chunks_exact(4).map(|block| block[2]).collect())
    }

    /// Asks for these features to be off; what the driver makes of it, [`Ethtool::active_features`] says.
    fn clear_features(&self, count: usize, indexes: &[usize]) -> Result<(), IoError> {
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
}
