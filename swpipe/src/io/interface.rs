//! Interfaces by name: index, MTU, flags (netdevice(7)).

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::error::IoError;

/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;

/// The kernel's number of an interface; a new one whenever an interface is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceIndex(pub u32);

/// An interface of the calling thread's network namespace.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: InterfaceIndex,
    /// Its MTU: bytes after the Ethernet header.
    pub mtu: u32,
}

impl Interface {
    /// Looks an Ethernet interface up.
    ///
    /// # Errors
    /// None of that name, or no Ethernet interface.
    pub fn find(name: &str) -> Result<Self, IoError> {
        let mut request = Request::new(name)?;
        // SIOCGIFINDEX and the others fill the member of the union that is read after them.
        request.call(libc::SIOCGIFINDEX, "look it up")?;
        // SAFETY: set by the call above; an integer.
        let index = unsafe { request.raw.ifr_ifru.ifru_ifindex };
        request.call(libc::SIOCGIFMTU, "read its MTU")?;
        // SAFETY: set by the call above; an integer.
        let mtu = unsafe { request.raw.ifr_ifru.ifru_mtu };
        request.call(libc::SIOCGIFHWADDR, "read its hardware type")?;
        // SAFETY: set by the call above; integers.
        let kind = unsafe { request.raw.ifr_ifru.ifru_hwaddr.sa_family };
        if kind != ETHERNET {
            return Err(IoError::NotEthernet { interface: name.to_owned(), kind });
        }
        Ok(Interface {
            name: name.to_owned(),
            index: InterfaceIndex(index.unsigned_abs()),
            mtu: mtu.unsigned_abs(),
        })
    }

    /// The interface, if it carries frames of `mtu` bytes after the Ethernet header.
    ///
    /// # Errors
    /// As [`Interface::find`], `mtu` out of range, or an interface with a smaller MTU.
    pub fn find_with_mtu(name: &str, mtu: u32) -> Result<Self, IoError> {
        if !(super::MTU_MIN..=super::MTU_MAX).contains(&mtu) {
            return Err(IoError::MtuRange { interface: name.to_owned(), mtu });
        }
        let found = Self::find(name)?;
        if found.mtu < mtu {
            return Err(IoError::InterfaceMtu { interface: found.name, actual: found.mtu, wanted: mtu });
        }
        Ok(found)
    }

    /// Raises the MTU to `mtu` where it is smaller; what it was. Stays so after this process ends.
    ///
    /// # Errors
    /// As [`Interface::find_with_mtu`]; [`IoError::InterfaceMtu`] where the interface does not go that far.
    pub fn raise_mtu(name: &str, mtu: u32) -> Result<u32, IoError> {
        let found = Self::find(name)?;
        if found.mtu >= mtu {
            return Ok(found.mtu);
        }
        match Self::set_mtu(name, mtu) {
            Err(IoError::System { .. }) => {
                Err(IoError::InterfaceMtu { interface: found.name, actual: found.mtu, wanted: mtu })
            }
            other => other.map(|()| found.mtu),
        }
    }

    /// Sets the MTU. Stays so after this process ends.
    ///
    /// # Errors
    /// No such interface, no permission, or an MTU that it cannot have.
    pub fn set_mtu(name: &str, mtu: u32) -> Result<(), IoError> {
        let mut request = Request::new(name)?;
        request.raw.ifr_ifru.ifru_mtu = i32::try_from(mtu).unwrap_or(i32::MAX);
        request.call(libc::SIOCSIFMTU, "set its MTU")
    }

    /// Brings it up as a wire: the host's own stack neither answers nor announces anything on it (no ARP, and
    /// no IPv6 where the system has it). Stays so after this process ends.
    ///
    /// # Errors
    /// No permission, or the interface is gone.
    pub fn bring_up(&self) -> Result<(), IoError> {
        // Before it is up: neighbour discovery would begin at once. A system without IPv6 has no such file.
        let switch = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.name);
        match std::fs::write(&switch, "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(interface = %self.name, %error, "cannot switch IPv6 off; the host's neighbour discovery will be seen on this port");
            }
            _ => {}
        }
        let mut request = Request::new(&self.name)?;
        request.call(libc::SIOCGIFFLAGS, "read its flags")?;
        // SAFETY: set by the call above; an integer.
        let flags = unsafe { request.raw.ifr_ifru.ifru_flags };
        request.raw.ifr_ifru.ifru_flags = flags | (libc::IFF_UP | libc::IFF_NOARP) as i16;
        request.call(libc::SIOCSIFFLAGS, "bring it up")
    }
}

/// An interface request (`struct ifreq`) and a socket of the namespace to ask by.
struct Request {
    raw: libc::ifreq,
    socket: std::os::fd::OwnedFd,
    name: String,
}

impl Request {
    fn new(name: &str) -> Result<Self, IoError> {
        let raw = named_request(name)?;
        let socket = control_socket(name)?;
        Ok(Request { raw, socket, name: name.to_owned() })
    }

    fn call(&mut self, request: libc::c_ulong, doing: &'static str) -> Result<(), IoError> {
        // SAFETY: every request made here reads and writes one ifreq, which `raw` is.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), request as _, &raw mut self.raw) };
        if result < 0 {
            return Err(IoError::from_system(&self.name, doing, io::Error::last_os_error()));
        }
        Ok(())
    }
}

/// A socket for interface requests.
pub(super) fn control_socket(name: &str) -> Result<std::os::fd::OwnedFd, IoError> {
    socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|errno| IoError::from_system(name, "open a control socket", errno.into()))
}

/// An `ifreq` with nothing but the name.
pub(super) fn named_request(name: &str) -> Result<libc::ifreq, IoError> {
    // SAFETY: all-zero bytes are an ifreq: an empty name and a union of integers and arrays.
    let mut raw: libc::ifreq = unsafe { std::mem::zeroed() };
    // The kernel's names have at most 15 bytes: the last one stays zero.
    if name.is_empty() || name.len() >= raw.ifr_name.len() || name.contains('\0') {
        return Err(IoError::NoInterface { interface: name.to_owned() });
    }
    for (to, from) in raw.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(raw)
}
