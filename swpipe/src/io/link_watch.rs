//! Carrier of the ports, as the kernel tells it (rtnetlink(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, sendto, socket,
};
use nix::sys::time::TimeSpec;

use super::error::IoError;
use super::interface::InterfaceIndex;

/// `struct nlmsghdr`.
const MESSAGE_HEADER: usize = 16;
/// `struct ifinfomsg`.
const LINK_HEADER: usize = 16;
/// `struct rtattr`.
const ATTRIBUTE_HEADER: usize = 4;
/// `NLM_F_DUMP_INTR`: links changed while they were listed.
const LIST_INTERRUPTED: u16 = 0x10;
/// `IFLA_EXT_MASK` with `RTEXT_FILTER_SKIP_STATS`: a short list.
const EXTENSION_MASK: u16 = 29;
const SKIP_STATISTICS: u32 = 1 << 3;
/// The longest datagram that the kernel makes of a list.
const DATAGRAM: usize = 1 << 16;

/// What a port's interface is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Up, with carrier.
    Up,
    /// Up, without carrier: cable, peer or appliance.
    NoCarrier,
    /// Taken down by an administrator.
    AdminDown,
    /// No interface of that name.
    Absent,
}

/// A port's interface did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// Index in the list that is watched.
    pub port: usize,
    /// What it is now.
    pub state: LinkState,
    /// The interface; another one than before where it was created anew, and then sockets on it are stale.
    pub interface: Option<InterfaceIndex>,
}

/// Watches interfaces by name, in the network namespace that it was opened in.
pub struct LinkWatch {
    socket: OwnedFd,
    ports: Vec<Watched>,
    list: List,
    datagram: Box<[u8]>,
}

struct Watched {
    name: String,
    known: Option<(LinkState, Option<InterfaceIndex>)>,
    /// Seen in the list that is being read.
    listed: bool,
}

/// Where the list of all links is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Read,
    Reading,
    /// Being read, and to be asked for again: something was lost.
    ReadingStale,
}

/// A message about a link.
struct Link<'datagram> {
    index: InterfaceIndex,
    flags: u32,
    name: &'datagram [u8],
}

impl LinkWatch {
    /// Begins to watch; [`LinkWatch::wait`] reports every port's state once, and then each change.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open<Name: AsRef<str>>(interfaces: &[Name]) -> Result<Self, IoError> {
        let names: Vec<&str> = interfaces.iter().map(AsRef::as_ref).collect();
        let say = |error: Errno| IoError::from_system(&names.join(", "), "watch the links", error.into());
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkRoute,
        )
        .map_err(say)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, libc::RTMGRP_LINK.unsigned_abs())).map_err(say)?;
        let ports = names
            .iter()
            .map(|name| Watched { name: (*name).to_owned(), known: None, listed: false })
            .collect();
        let mut watch =
            LinkWatch { socket, ports, list: List::Read, datagram: vec![0; DATAGRAM].into_boxed_slice() };
        watch.ask_for_list().map_err(say)?;
        Ok(watch)
    }

    /// Name of a watched port's interface.
    #[must_use]
    pub fn name(&self, port: usize) -> Option<&str> {
        self.ports.get(port).map(|port| port.name.as_str())
    }

    /// Descriptor that polls readable when something changed.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits at most `timeout` (`None`: as long as it takes) and hands over what changed; how many changes.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&mut self, timeout: Option<Duration>, take: &mut dyn FnMut(LinkChange)) -> io::Result<usize> {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut polled, timeout.map(TimeSpec::from_duration), None) {
            Ok(0) | Err(Errno::EINTR) => return Ok(0),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut changes = 0;
        let mut count = |change| {
            changes += 1;
            take(change);
        };
        loop {
            match recvfrom::<NetlinkAddr>(self.socket.as_raw_fd(), &mut self.datagram) {
                // Other processes may write to this socket too; only the kernel has address 0.
                Ok((length, Some(from))) if from.pid() == 0 => self.read(length, &mut count)?,
                Ok(_) => {}
                Err(Errno::EAGAIN) => return Ok(changes),
                Err(Errno::EINTR) => {}
                // Messages were lost: only the whole list tells what is now.
                Err(Errno::ENOBUFS) => match self.list {
                    List::Read => self.ask_for_list()?,
                    List::Reading | List::ReadingStale => self.list = List::ReadingStale,
                },
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn ask_for_list(&mut self) -> Result<(), Errno> {
        let length = MESSAGE_HEADER + LINK_HEADER + ATTRIBUTE_HEADER + 4;
        let mut request = Vec::with_capacity(length);
        request.extend((length as u32).to_ne_bytes());
        request.extend(libc::RTM_GETLINK.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        // sequence, port; and an ifinfomsg that asks for every link
        request.extend([0; 8 + LINK_HEADER]);
        request.extend(((ATTRIBUTE_HEADER + 4) as u16).to_ne_bytes());
        request.extend(EXTENSION_MASK.to_ne_bytes());
        request.extend(SKIP_STATISTICS.to_ne_bytes());
        sendto(self.socket.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        for port in &mut self.ports {
            port.listed = false;
        }
        self.list = List::Reading;
        Ok(())
    }

    /// Reads the messages of a datagram of `length` bytes.
    fn read(&mut self, length: usize, take: &mut dyn FnMut(LinkChange)) -> io::Result<()> {
        // Taken out for the time of reading: the messages refer into it.
        let datagram = std::mem::take(&mut self.datagram);
        let mut rest = &datagram[..length.min(datagram.len())];
        let mut result = Ok(());
        while let Some((message, after)) = split_message(rest) {
            rest = after;
            if message.flags & LIST_INTERRUPTED != 0 && self.list == List::Reading {
                self.list = List::ReadingStale;
            }
            match message.kind {
                libc::RTM_NEWLINK => {
                    if let Some(link) = Link::read(message.body) {
                        self.see(&link, take);
                    }
                }
                libc::RTM_DELLINK => {
                    if let Some(link) = Link::read(message.body) {
                        self.lose(link.index, take);
                    }
                }
                kind if i32::from(kind) == libc::NLMSG_DONE => {
                    let stale = self.list == List::ReadingStale;
                    self.list = List::Read;
                    if stale {
                        result = self.ask_for_list().map_err(io::Error::from);
                    } else {
                        self.miss_unlisted(take);
                    }
                }
                kind if i32::from(kind) == libc::NLMSG_ERROR => {
                    let code = message.body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    if code != 0 {
                        result = Err(io::Error::from_raw_os_error(-code));
                    }
                }
                _ => {}
            }
        }
        self.datagram = datagram;
        result
    }

    fn see(&mut self, link: &Link<'_>, take: &mut dyn FnMut(LinkChange)) {
        let state = link.state();
        for (at, port) in self.ports.iter_mut().enumerate() {
            if port.name.as_bytes() == link.name {
                port.listed = true;
                port.turn(at, state, Some(link.index), take);
            } else if port.is(link.index) {
                // Renamed.
                port.turn(at, LinkState::Absent, None, take);
            }
        }
    }

    fn lose(&mut self, index: InterfaceIndex, take: &mut dyn FnMut(LinkChange)) {
        for (at, port) in self.ports.iter_mut().enumerate() {
            if port.is(index) {
                port.turn(at, LinkState::Absent, None, take);
            }
        }
    }

    fn miss_unlisted(&mut self, take: &mut dyn FnMut(LinkChange)) {
        for (at, port) in self.ports.iter_mut().enumerate() {
            if !port.listed {
                port.turn(at, LinkState::Absent, None, take);
            }
        }
    }
}

impl Watched {
    fn is(&self, index: InterfaceIndex) -> bool {
        self.known.is_some_and(|(_, known)| known == Some(index))
    }

    fn turn(
        &mut self,
        port: usize,
        state: LinkState,
        interface: Option<InterfaceIndex>,
        take: &mut dyn FnMut(LinkChange),
    ) {
        if self.known != Some((state, interface)) {
            self.known = Some((state, interface));
            take(LinkChange { port, state, interface });
        }
    }
}

/// A netlink message.
struct Message<'datagram> {
    kind: u16,
    flags: u16,
    body: &'datagram [u8],
}

/// The first message, and what follows it.
fn split_message(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let message = Message {
        kind: u16_at(bytes, 4)?,
        flags: u16_at(bytes, 6)?,
        body: bytes.get(MESSAGE_HEADER..length)?,
    };
    Some((message, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

impl<'datagram> Link<'datagram> {
    /// A message about a link itself; those about a bridge's ports have another family and say nothing here.
    fn read(body: &'datagram [u8]) -> Option<Self> {
        if i32::from(*body.first()?) != libc::AF_UNSPEC {
            return None;
        }
        let index = InterfaceIndex(u32_at(body, 4)?);
        let flags = u32_at(body, 8)?;
        let mut rest = body.get(LINK_HEADER..)?;
        while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
            let length = usize::from(length);
            let value = rest.get(ATTRIBUTE_HEADER..length)?;
            if kind == libc::IFLA_IFNAME {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                return Some(Link { index, flags, name });
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        None
    }

    fn state(&self) -> LinkState {
        let carrier = (libc::IFF_LOWER_UP | libc::IFF_RUNNING).unsigned_abs();
        if self.flags & libc::IFF_UP.unsigned_abs() == 0 {
            LinkState::AdminDown
        } else if self.flags & carrier == carrier {
            LinkState::Up
        } else {
            LinkState::NoCarrier
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}
