//! The second back end: pnet's portable datalink, one system call a frame.
//!
//! pnet reads frames without the kernel's auxiliary data, and Linux moves the outermost tag (0x8100, 0x88a8) of
//! every frame there, whatever the interface's offloads. A frame without its tag is another frame, so tagged
//! ones are not received at all rather than sent on without it; a port says so when it is opened.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use pnet::datalink::{Channel, Config, DataLinkReceiver, DataLinkSender, NetworkInterface, channel};

use super::error::IoError;
use super::interface::Interface;
use super::socket::PacketSocket;
use super::{BATCH, Edit, Frame, Receiver, Sender, filter};

/// Longer than every super-frame (64 KiB and headers): a frame that fills it may have been cut.
const READ_BUFFER: usize = (1 << 16) + 256;
/// Both MACs.
const MACS: usize = 12;
/// The steering header.
const TAG: usize = 4;
/// Ethernet header, and a tag.
const BEYOND_MTU: usize = 18;
/// Frames that may wait in the socket, in bytes.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;

/// Opens the receiving half; it takes nothing before it is released.
///
/// # Errors
/// No permission, or the interface is gone.
pub fn receiver(interface: &Interface) -> Result<DatalinkReceiver, IoError> {
    let say = |doing| move |error: io::Error| IoError::from_system(&interface.name, doing, error);
    let socket = PacketSocket::open().map_err(say("open a packet socket"))?;
    socket.ignore_outgoing().map_err(say("leave outgoing frames out"))?;
    socket.attach_filter(&mut filter::nothing()).map_err(say("hold frames back"))?;
    socket.set_receive_buffer(RECEIVE_BUFFER).map_err(say("enlarge the receive buffer"))?;
    let (handle, _, channel) = open(interface, socket, true, 0).map_err(say("open pnet's datalink"))?;
    Ok(DatalinkReceiver { channel, socket: handle, truncated: 0 })
}

/// Opens a sending half; every worker has its own.
///
/// # Errors
/// No permission, or the interface is gone.
pub fn sender(interface: &Interface, mtu: u32) -> Result<DatalinkSender, IoError> {
    let say = |doing| move |error: io::Error| IoError::from_system(&interface.name, doing, error);
    let socket = PacketSocket::open().map_err(say("open a packet socket"))?;
    // pnet binds it to every protocol, and nobody would read it.
    socket.attach_filter(&mut filter::nothing()).map_err(say("filter a sending socket"))?;
    let room = mtu as usize + BEYOND_MTU;
    let (_, channel, _) = open(interface, socket, false, room).map_err(say("open pnet's datalink"))?;
    Ok(DatalinkSender { channel })
}

type Halves = (PacketSocket, Box<dyn DataLinkSender>, Box<dyn DataLinkReceiver>);

/// Gives the socket to pnet; a handle of the same socket stays for what pnet has no call for.
fn open(interface: &Interface, socket: PacketSocket, promiscuous: bool, room: usize) -> io::Result<Halves> {
    let handle = socket.try_clone()?;
    let config = Config {
        read_timeout: Some(Duration::ZERO),
        write_timeout: Some(Duration::ZERO),
        read_buffer_size: READ_BUFFER,
        write_buffer_size: room,
        promiscuous,
        // pnet closes it, also where it fails.
        socket_fd: Some(OwnedFd::from(socket).into_raw_fd()),
        ..Config::default()
    };
    let named = NetworkInterface {
        name: interface.name.clone(),
        description: String::new(),
        index: interface.index.0,
        mac: None,
        ips: Vec::new(),
        flags: 0,
    };
    match channel(&named, config)? {
        Channel::Ethernet(sender, receiver) => Ok((handle, sender, receiver)),
        _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
    }
}

/// The receiving half of a port.
pub struct DatalinkReceiver {
    channel: Box<dyn DataLinkReceiver>,
    socket: PacketSocket,
    truncated: u64,
}

impl Receiver for DatalinkReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(&[Frame<'_>])) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            match self.channel.next() {
                Ok(bytes) if bytes.len() == READ_BUFFER => self.truncated += 1,
                Ok(bytes) => {
                    take(&[Frame { bytes }]);
                    taken += 1;
                }
                Err(error) => {
                    // The interface went down: the pending error would make every poll return at once.
                    if error.kind() != io::ErrorKind::TimedOut {
                        self.socket.clear_error();
                    }
                    break;
                }
            }
        }
        taken
    }

    fn hold(&mut self) -> io::Result<()> {
        self.socket.attach_filter(&mut filter::nothing())
    }

    fn release(&mut self) -> io::Result<()> {
        self.socket.attach_filter(&mut filter::untagged())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn missed(&mut self) -> u64 {
        self.socket.take_drops()
    }

    fn truncated(&mut self) -> u64 {
        std::mem::take(&mut self.truncated)
    }
}

/// A sending half of a port.
pub struct DatalinkSender {
    channel: Box<dyn DataLinkSender>,
}

impl Sender for DatalinkSender {
    fn send(&mut self, frame: &[u8], edit: Edit) -> bool {
        let Some((macs, rest)) = frame.split_at_checked(MACS) else {
            return false;
        };
        let (tag, rest): (&[u8], &[u8]) = match &edit {
            Edit::Keep => (&[], rest),
            Edit::Push(tag) => (tag, rest),
            Edit::Pop => match rest.get(TAG..) {
                Some(rest) => (&[], rest),
                None => return false,
            },
        };
        let sent = self.channel.build_and_send(1, MACS + tag.len() + rest.len(), &mut |out| {
            for (to, from) in out.iter_mut().zip(macs.iter().chain(tag).chain(rest)) {
                *to = *from;
            }
        });
        matches!(sent, Some(Ok(())))
    }

    fn flush(&mut self) {}
}
