//! bpf(2): its commands and the structures that they read (`linux/bpf.h`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::assembler::Instruction;
use crate::error::XdpError;
use crate::program::LiveRun;

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
const PROGRAM_TEST_RUN: i32 = 10;
const OBJECT_INFO: i32 = 15;
const LINK_CREATE: i32 = 28;
const LINK_UPDATE: i32 = 29;

/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`.
pub(crate) const GENERIC: u32 = 1 << 1;
pub(crate) const NATIVE: u32 = 1 << 2;

const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
const LIVE_FRAMES: u32 = 1 << 1;
/// Bytes of a name with the zero at its end (`BPF_OBJ_NAME_LEN`).
const NAME: usize = 16;
/// Room for the verifier's reasons, and how much of their end is told.
const LOG: usize = 1 << 20;
const LOG_TOLD: usize = 2000;
/// No helper that programs of other licenses may not call is offered here.
const LICENSE: &std::ffi::CStr = c"Apache-2.0";

/// Kinds of maps (`enum bpf_map_type`).
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum MapKind {
    Array = 2,
    PerCpuArray = 6,
    Device = 14,
    Socket = 17,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; NAME],
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    verdict: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

/// `struct xdp_md`.
#[repr(C)]
#[derive(Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    interface: u32,
    queue: u32,
    egress_interface: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkUpdate {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

#[repr(C)]
#[derive(Default)]
struct ObjectInfo {
    object: u32,
    length: u32,
    info: u64,
}

/// The first members of `struct bpf_map_info`; the kernel writes as many as there is room for.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
}

/// One command; what it answers.
///
/// # Safety
/// `Attributes` is the command's structure, without padding, and what it points to is there in the sizes that it says.
unsafe fn bpf<Attributes>(command: i32, attributes: &mut Attributes) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes size_of::<Attributes>() bytes, and what they point to by the caller's promise.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            libc::c_long::from(command),
            std::ptr::from_mut(attributes),
            size_of::<Attributes>(),
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer as i32)
}

/// A command that answers with a descriptor.
///
/// # Safety
/// As [`bpf`], and the command is one of those.
unsafe fn bpf_open<Attributes>(command: i32, attributes: &mut Attributes) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's promise; a descriptor that is answered is open and nobody else's, and the kernel makes
    // all of this family close-on-exec.
    unsafe { bpf(command, attributes).map(|descriptor| OwnedFd::from_raw_fd(descriptor)) }
}

fn descriptor(of: BorrowedFd<'_>) -> u32 {
    of.as_raw_fd().unsigned_abs()
}

/// Letters, digits and underscores, cut to the kernel's length.
fn short(name: &str) -> [u8; NAME] {
    let mut short = [0; NAME];
    for (to, from) in short.iter_mut().take(NAME - 1).zip(name.bytes()) {
        *to = if from.is_ascii_alphanumeric() { from } else { b'_' };
    }
    short
}

/// A map with 32-bit keys.
pub(crate) fn create_map(
    kind: MapKind,
    name: &str,
    value_size: u32,
    entries: u32,
) -> Result<OwnedFd, XdpError> {
    let mut attributes = MapCreate {
        kind: kind as u32,
        key_size: 4,
        value_size,
        entries,
        name: short(name),
        ..MapCreate::default()
    };
    // SAFETY: the command's structure; it points nowhere.
    unsafe { bpf_open(MAP_CREATE, &mut attributes) }
        .map_err(|error| XdpError::from_system(format!("create a map of {entries} {name}"), error))
}

/// Bytes of a map's values.
pub(crate) fn value_size(map: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = MapInfo::default();
    let mut attributes = ObjectInfo {
        object: descriptor(map),
        length: size_of::<MapInfo>() as u32,
        info: (&raw mut info) as u64,
    };
    // SAFETY: the command's structure; it points to `info` and says its size.
    unsafe { bpf(OBJECT_INFO, &mut attributes) }?;
    Ok(info.value_size)
}

/// Reads the value of a key; the buffer has the size that the kernel writes for maps of this kind.
pub(crate) fn lookup(map: BorrowedFd<'_>, key: u32, value: &mut [u8]) -> io::Result<()> {
    let mut attributes = Element {
        map: descriptor(map),
        key: (&raw const key) as u64,
        value: value.as_mut_ptr() as u64,
        ..Element::default()
    };
    // SAFETY: the command's structure; it points to a key and a value of the map's sizes: callers are the typed maps.
    unsafe { bpf(MAP_LOOKUP, &mut attributes) }.map(drop)
}

/// Writes the value of a key, likewise.
pub(crate) fn update(map: BorrowedFd<'_>, key: u32, value: &[u8]) -> io::Result<()> {
    let mut attributes = Element {
        map: descriptor(map),
        key: (&raw const key) as u64,
        value: value.as_ptr() as u64,
        ..Element::default()
    };
    // SAFETY: as for `lookup`; the kernel reads the value.
    unsafe { bpf(MAP_UPDATE, &mut attributes) }.map(drop)
}

/// Removes a key.
pub(crate) fn delete(map: BorrowedFd<'_>, key: u32) -> io::Result<()> {
    let mut attributes = Element { map: descriptor(map), key: (&raw const key) as u64, ..Element::default() };
    // SAFETY: the command's structure; it points to a key of the map's size.
    unsafe { bpf(MAP_DELETE, &mut attributes) }.map(drop)
}

/// Loads an XDP program; a second time with a log where the kernel refuses it.
pub(crate) fn load(name: &str, code: &[Instruction]) -> Result<OwnedFd, XdpError> {
    let with = |log: &mut [u8]| {
        let is_logged = !log.is_empty();
        let mut attributes = ProgramLoad {
            kind: PROGRAM_TYPE_XDP,
            count: code.len() as u32,
            code: code.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: is_logged.into(),
            log_size: log.len() as u32,
            log: if is_logged { log.as_mut_ptr() as u64 } else { 0 },
            name: short(name),
            attach_type: ATTACH_TYPE_XDP,
            ..ProgramLoad::default()
        };
        // SAFETY: the command's structure; it points to the code, the license and the log, and says their sizes.
        unsafe { bpf_open(PROGRAM_LOAD, &mut attributes) }
    };
    let source = match with(&mut []) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    let doing = || format!("load the XDP program {name}");
    if source.raw_os_error() == Some(libc::EPERM) {
        return Err(XdpError::from_system(doing(), source));
    }
    let mut log = vec![0; LOG];
    match with(&mut log) {
        Ok(program) => Ok(program),
        Err(source) => {
            let text: Vec<u8> = log.into_iter().take_while(|byte| *byte != 0).collect();
            let told = text.get(text.len().saturating_sub(LOG_TOLD)..).unwrap_or_default();
            let log = String::from_utf8_lossy(told).trim().to_owned();
            Err(XdpError::Rejected { program: name.to_owned(), source, log })
        }
    }
}

/// Attaches an XDP program.
pub(crate) fn link(program: BorrowedFd<'_>, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut attributes =
        LinkCreate { program: descriptor(program), interface, attach_type: ATTACH_TYPE_XDP, flags };
    // SAFETY: the command's structure; it points nowhere.
    unsafe { bpf_open(LINK_CREATE, &mut attributes) }
}

/// Changes the program of a link.
pub(crate) fn replace(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes =
        LinkUpdate { link: descriptor(link), program: descriptor(program), ..LinkUpdate::default() };
    // SAFETY: the command's structure; it points nowhere.
    unsafe { bpf(LINK_UPDATE, &mut attributes) }.map(drop)
}

/// Runs a program once over a copy; the verdict, and the copy.
pub(crate) fn trial_run(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    // A program makes a frame longer by its head room at most.
    let mut out = vec![0; frame.len() + 256];
    let mut attributes = TestRun {
        program: descriptor(program),
        size_in: frame.len() as u32,
        size_out: out.len() as u32,
        data_in: frame.as_ptr() as u64,
        data_out: out.as_mut_ptr() as u64,
        repeat: 1,
        ..TestRun::default()
    };
    // SAFETY: the command's structure; it points to both frames and says their sizes.
    unsafe { bpf(PROGRAM_TEST_RUN, &mut attributes) }?;
    out.truncate(attributes.size_out as usize);
    Ok((attributes.verdict, out))
}

/// Runs a program over live frames.
pub(crate) fn live_run(program: BorrowedFd<'_>, frame: &[u8], how: &LiveRun) -> io::Result<()> {
    let context = Context {
        data_end: frame.len() as u32,
        interface: how.interface.get(),
        queue: how.queue,
        ..Context::default()
    };
    let mut attributes = TestRun {
        program: descriptor(program),
        size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat: how.frames,
        context_size_in: size_of::<Context>() as u32,
        context_in: (&raw const context) as u64,
        flags: LIVE_FRAMES,
        batch: how.batch,
        ..TestRun::default()
    };
    // SAFETY: the command's structure; it points to the frame and the context, and says their sizes.
    unsafe { bpf(PROGRAM_TEST_RUN, &mut attributes) }.map(drop)
}

/// CPUs that the system could have: what a per-CPU map has values for.
pub(crate) fn possible_cpus() -> Result<usize, XdpError> {
    let path = "/sys/devices/system/cpu/possible";
    let doing = || format!("read {path}");
    let text = std::fs::read_to_string(path).map_err(|source| XdpError::System { doing: doing(), source })?;
    // "0", "0-7", "0,2-3": one more than the last number.
    let last = text.trim().rsplit(['-', ',']).next().and_then(|number| number.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| XdpError::System {
        doing: doing(),
        source: io::Error::new(io::ErrorKind::InvalidData, format!("{:?} is no list of CPUs", text.trim())),
    })
}
