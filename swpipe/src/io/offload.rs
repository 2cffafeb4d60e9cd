//! Offloads off: a port hands over and sends frames as they are on the wire (ethtool's feature requests).

use super::error::IoError;
use super::ethtool::Ethtool;

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
