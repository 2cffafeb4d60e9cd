//! Socket filters in classic BPF (`Documentation/networking/filter.rst`).

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
use libc::{SKF_AD_IFINDEX, SKF_AD_OFF, SKF_AD_PROTOCOL, SKF_AD_VLAN_TAG_PRESENT};

use super::interface::InterfaceIndex;

const LOAD: u16 = (BPF_LD | BPF_W | BPF_ABS) as u16;
const EQUAL: u16 = (BPF_JMP | BPF_JEQ | BPF_K) as u16;
const RETURN: u16 = (BPF_RET | BPF_K) as u16;

const PASS: sock_filter = statement(RETURN, u32::MAX);
const REFUSE: sock_filter = statement(RETURN, 0);

/// Nothing.
pub(super) fn nothing() -> Vec<sock_filter> {
    vec![REFUSE]
}

/// Frames whose outermost tag is not one that the kernel takes out.
pub(super) fn untagged() -> Vec<sock_filter> {
    let mut program = refuse_tagged();
    program.push(PASS);
    program
}

/// Frames of [`untagged`] with this EtherType from these interfaces. Other EtherTypes are refused first: the
/// program runs for every frame of the host.
pub(super) fn untagged_from(
    ethertype: u16,
    interfaces: impl Iterator<Item = InterfaceIndex>,
) -> Vec<sock_filter> {
    let mut program = vec![
        statement(LOAD, auxiliary(SKF_AD_PROTOCOL)),
        sock_filter { code: EQUAL, jt: 1, jf: 0, k: ethertype.into() },
        REFUSE,
    ];
    program.extend(refuse_tagged());
    program.push(statement(LOAD, auxiliary(SKF_AD_IFINDEX)));
    for interface in interfaces {
        program.push(sock_filter { code: EQUAL, jt: 0, jf: 1, k: interface.0 });
        program.push(PASS);
    }
    program.push(REFUSE);
    program
}

fn refuse_tagged() -> Vec<sock_filter> {
    vec![
        statement(LOAD, auxiliary(SKF_AD_VLAN_TAG_PRESENT)),
        sock_filter { code: EQUAL, jt: 1, jf: 0, k: 0 },
        REFUSE,
    ]
}

const fn auxiliary(offset: i32) -> u32 {
    (SKF_AD_OFF + offset) as u32
}

const fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}
