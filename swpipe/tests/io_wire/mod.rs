//! What the tests of ports share: a network namespace of the test's own, and hosts that read and write raw
//! frames by plain sockets, apart from the code under test.
#![allow(dead_code, clippy::expect_used, reason = "tests; and each test binary uses its part")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use swpipe::io::{Backend, Receiver};

/// How long a test waits for what must come.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
/// How long a test looks for what must not come.
pub(crate) const SILENCE: Duration = Duration::from_millis(50);

/// The back end that the tests of pipelines run over: AF_XDP in those named after it.
pub(crate) fn backend() -> Backend {
    if env!("CARGO_CRATE_NAME").ends_with("_af_xdp") { Backend::AfXdp } else { Backend::default() }
}

/// A great MTU that it carries; over veth, a page less what XDP needs.
pub(crate) fn great_mtu() -> u32 {
    if backend() == Backend::AfXdp { 3400 } else { 9216 }
}

/// Runs `test` on a thread in a network namespace of its own, which ends with it.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED, NOTHING WAS TESTED: needs root for a network namespace");
        return;
    }
    let thread = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("a network namespace");
        // Neighbour discovery would mix with the frames of the test.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Enters the namespace of `fd` on the calling thread.
pub(crate) fn enter(namespace: impl AsFd) {
    nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).expect("enter the namespace");
}

/// Runs a command in the namespace of the calling thread; what it prints.
pub(crate) fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().expect("a command")).args(words).output().expect("run it");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A veth pair, both ends up. `host` has its transmit offloads off, as test hosts must.
pub(crate) fn wire(host: &str, port: &str, mtu: u32) {
    run(&format!("ip link add {host} mtu {mtu} type veth peer name {port} mtu {mtu}"));
    run(&format!("ethtool -K {host} tx off tso off gso off gro off txvlan off"));
    run(&format!("ip link set {host} up"));
    run(&format!("ip link set {port} up"));
    settle(host);
    settle(port);
}

/// Waits until the kernel has taken note of an interface's carrier: until then it drops what a host sends.
pub(crate) fn settle(interface: &str) {
    let until = Instant::now() + DEADLINE;
    while !run(&format!("ip -o link show {interface}")).contains("state UP") {
        assert!(Instant::now() < until, "{interface} does not come up");
    }
}

/// Waits until `descriptor` is readable or the deadline is over.
pub(crate) fn readable(descriptor: impl AsFd, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
    let mut polled = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, timeout).unwrap_or(0) > 0
}

/// Takes `count` frames from a receiver, or panics after the deadline with what has come.
pub(crate) fn take(receiver: &mut dyn Receiver, count: usize) -> Vec<Vec<u8>> {
    let until = Instant::now() + DEADLINE;
    let mut frames = Vec::new();
    while frames.len() < count {
        receiver.receive(&mut |batch| frames.extend(batch.iter().map(|frame| frame.bytes.to_vec())));
        if frames.len() < count {
            assert!(Instant::now() < until, "{} of {count} frames came", frames.len());
            readable(receiver.descriptor().expect("a descriptor"), until);
        }
    }
    frames
}

/// Whether the receiver hands nothing over for a while.
pub(crate) fn silent(receiver: &mut dyn Receiver) -> bool {
    let until = Instant::now() + SILENCE;
    let mut seen = 0;
    while Instant::now() < until && seen == 0 {
        seen += receiver.receive(&mut |_| {});
        readable(receiver.descriptor().expect("a descriptor"), until);
    }
    seen == 0
}

/// A host's raw socket on an interface.
pub(crate) struct Host {
    socket: OwnedFd,
    address: libc::sockaddr_ll,
}

impl Host {
    pub(crate) fn on(interface: &str) -> Self {
        let index = nix::net::if_::if_nametoindex(interface).expect("the interface");
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol,
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: [0; 8],
        };
        // SAFETY: no pointers but to locals that outlive the calls.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0);
            let one: libc::c_int = 1;
            let large: libc::c_int = 64 << 20;
            let size = size_of::<libc::c_int>() as u32;
            for (level, option, value) in [
                (libc::SOL_PACKET, libc::PACKET_AUXDATA, &one),
                (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one),
                (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &large),
            ] {
                assert_eq!(libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), size), 0);
            }
            let request = libc::packet_mreq {
                mr_ifindex: index as i32,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            let joined = libc::setsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as u32,
            );
            assert_eq!(joined, 0);
            let bound = libc::bind(fd, (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32);
            assert_eq!(bound, 0);
            OwnedFd::from_raw_fd(fd)
        };
        Host { socket, address }
    }

    pub(crate) fn try_send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: buffer and address are whole.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const self.address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        self.try_send(frame).expect("send");
    }

    /// The next frame, its tag put back; `None` when none comes in time.
    pub(crate) fn receive(&self, within: Duration) -> Option<Vec<u8>> {
        if !readable(&self.socket, Instant::now() + within) {
            return None;
        }
        let mut buffer = vec![0_u8; 70_000];
        let mut control = [0_u64; 16];
        let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: the message points to locals of the lengths given; control messages are read by the macros.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut vector;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            let length = libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT);
            buffer.truncate(usize::try_from(length).ok()?);
            let mut at = libc::CMSG_FIRSTHDR(&raw const message);
            while !at.is_null() {
                if (*at).cmsg_level == libc::SOL_PACKET && (*at).cmsg_type == libc::PACKET_AUXDATA {
                    let data = libc::CMSG_DATA(at).cast::<libc::tpacket_auxdata>().read_unaligned();
                    if data.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                        let tag = [data.tp_vlan_tpid.to_be_bytes(), data.tp_vlan_tci.to_be_bytes()].concat();
                        buffer.splice(12..12, tag);
                    }
                }
                at = libc::CMSG_NXTHDR(&raw const message, at);
            }
        }
        Some(buffer)
    }
}

/// A frame of `length` bytes of an unassigned EtherType, filled so that no two offsets look alike.
pub(crate) fn frame(length: usize, seed: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb7];
    frame.extend((14..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed));
    frame
}

/// The frame with `tags` (TPID and TCI) behind its MACs.
pub(crate) fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut out = frame[..12].to_vec();
    for (tpid, tci) in tags {
        out.extend(tpid.to_be_bytes());
        out.extend(tci.to_be_bytes());
    }
    out.extend(&frame[12..]);
    out
}
