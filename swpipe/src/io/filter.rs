//! Socket filters in classic BPF (`Documentation/networking/filter.rst`).

use dataplane::keepalive::KEEP_ALIVE_ETHERTYPE;
use dataplane::{LinkIndex, SteeringMode};
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_H, BPF_JA, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter,
};
use libc::{SKF_AD_IFINDEX, SKF_AD_OFF, SKF_AD_PROTOCOL, SKF_AD_VLAN_TAG_PRESENT};

use super::interface::InterfaceIndex;

const LOAD: u16 = (BPF_LD | BPF_W | BPF_ABS) as u16;
const LOAD_HALF: u16 = (BPF_LD | BPF_H | BPF_ABS) as u16;
const AND: u16 = (BPF_ALU | BPF_AND | BPF_K) as u16;
const EQUAL: u16 = (BPF_JMP | BPF_JEQ | BPF_K) as u16;
const JUMP: u16 = (BPF_JMP | BPF_JA) as u16;
const RETURN: u16 = (BPF_RET | BPF_K) as u16;

/// `linux/filter.h`: the tag that the kernel took out, and its TPID.
const SKF_AD_VLAN_TAG: i32 = 44;
const SKF_AD_VLAN_TPID: i32 = 60;

const PASS: sock_filter = statement(RETURN, u32::MAX);
const REFUSE: sock_filter = statement(RETURN, 0);

/// Steering headers of the controller's probes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeHeaders {
    /// Format of steering headers.
    pub mode: SteeringMode,
    /// Link indices that frames to the controller name, ascending.
    pub indices: Vec<LinkIndex>,
}

impl ProbeHeaders {
    pub(super) const fn tpid(&self) -> u16 {
        match self.mode {
            SteeringMode::Native { tpid } | SteeringMode::Dot1q { tpid, .. } => tpid,
        }
    }

    /// The second half of a header under the mask is the base and a link index.
    pub(super) const fn second(&self) -> (u32, u32) {
        match self.mode {
            SteeringMode::Native { .. } => (0xff, 0),
            SteeringMode::Dot1q { base_vid, .. } => (0xfff, base_vid as u32),
        }
    }

    /// The second half of a header under this mask is one of these values.
    fn seconds(&self) -> (u32, impl Iterator<Item = u32>) {
        let (mask, base) = self.second();
        let values = self.indices.iter().map(move |index| base + u32::from(index.0));
        (mask, values.filter(move |value| *value <= mask))
    }
}

/// Nothing.
pub(super) fn nothing() -> Vec<sock_filter> {
    vec![REFUSE]
}

/// Frames whose outermost tag is not one that the kernel takes out.
pub(super) fn untagged() -> Vec<sock_filter> {
    vec![
        statement(LOAD, auxiliary(SKF_AD_VLAN_TAG_PRESENT)),
        sock_filter { code: EQUAL, jt: 1, jf: 0, k: 0 },
        REFUSE,
        PASS,
    ]
}

/// Keep-alives from these interfaces: plain ones without a tag that the kernel takes out, and what has the steering
/// header of a probe, wherever the kernel has put it. The interface is looked at last: the program runs for every
/// frame of the host.
pub(super) fn keep_alives(
    probes: &ProbeHeaders,
    interfaces: impl Iterator<Item = InterfaceIndex>,
) -> Vec<sock_filter> {
    let untagged = untagged_keep_alives(probes);
    let tagged = header_of(
        probes,
        statement(LOAD, auxiliary(SKF_AD_VLAN_TPID)),
        statement(LOAD, auxiliary(SKF_AD_VLAN_TAG)),
        // Only the part for frames without a tag is between here and the interfaces.
        untagged.len(),
    );
    let mut program = vec![
        statement(LOAD, auxiliary(SKF_AD_VLAN_TAG_PRESENT)),
        sock_filter { code: EQUAL, jt: 0, jf: 1, k: 0 },
        jump(tagged.len()),
    ];
    program.extend(tagged);
    program.extend(untagged);
    program.push(statement(LOAD, auxiliary(SKF_AD_IFINDEX)));
    for interface in interfaces {
        program.push(sock_filter { code: EQUAL, jt: 0, jf: 1, k: interface.0 });
        program.push(PASS);
    }
    program.push(REFUSE);
    program
}

/// Frames without a tag that the kernel takes out: goes on behind its end where one is a keep-alive, refuses all else.
fn untagged_keep_alives(probes: &ProbeHeaders) -> Vec<sock_filter> {
    let steered = header_of(probes, statement(LOAD_HALF, 12), statement(LOAD_HALF, 14), 0);
    let mut program = vec![
        statement(LOAD, auxiliary(SKF_AD_PROTOCOL)),
        sock_filter { code: EQUAL, jt: 0, jf: 1, k: KEEP_ALIVE_ETHERTYPE.into() },
        jump(steered.len()),
    ];
    program.extend(steered);
    program
}

/// Goes on `beyond` statements behind its end where the header is a probe's; refuses all else.
fn header_of(
    probes: &ProbeHeaders,
    load_tpid: sock_filter,
    load_second: sock_filter,
    beyond: usize,
) -> Vec<sock_filter> {
    let (mask, values) = probes.seconds();
    let values: Vec<u32> = values.collect();
    let mut program = vec![
        load_tpid,
        sock_filter { code: EQUAL, jt: 1, jf: 0, k: probes.tpid().into() },
        REFUSE,
        load_second,
        statement(AND, mask),
    ];
    for (at, value) in values.iter().enumerate() {
        program.push(sock_filter { code: EQUAL, jt: 0, jf: 1, k: *value });
        // Over the other values' two statements each and the refusal.
        program.push(jump((values.len() - at - 1) * 2 + 1 + beyond));
    }
    program.push(REFUSE);
    program
}

const fn jump(over: usize) -> sock_filter {
    statement(JUMP, over as u32)
}

const fn auxiliary(offset: i32) -> u32 {
    (SKF_AD_OFF + offset) as u32
}

const fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}
