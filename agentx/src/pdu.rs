//! PDUs (RFC 2741 section 6).

use std::num::NonZeroU8;

use crate::wire::{Reader, Writer};
use crate::{Binding, DecodeError, Oid};

/// Octets of a header.
pub const HEADER: usize = 20;
/// Octets of a payload that are taken at most; no master agent sends as many.
pub const MAX_PAYLOAD: u32 = 1 << 20;

const VERSION: u8 = 1;
const INSTANCE_REGISTRATION: u8 = 0x01;
const NEW_INDEX: u8 = 0x02;
const ANY_INDEX: u8 = 0x04;
const NON_DEFAULT_CONTEXT: u8 = 0x08;
const NETWORK_BYTE_ORDER: u8 = 0x10;

/// Order of the octets of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The flag NETWORK_BYTE_ORDER is set.
    Network,
    /// It is not.
    Little,
}

/// Types of PDUs, section 6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the RFC's")]
#[repr(u8)]
pub enum Kind {
    Open = 1,
    Close,
    Register,
    Unregister,
    Get,
    GetNext,
    GetBulk,
    TestSet,
    CommitSet,
    UndoSet,
    CleanupSet,
    Notify,
    Ping,
    IndexAllocate,
    IndexDeallocate,
    AddAgentCaps,
    RemoveAgentCaps,
    Response,
}

impl Kind {
    const ALL: [Kind; 18] = [
        Kind::Open,
        Kind::Close,
        Kind::Register,
        Kind::Unregister,
        Kind::Get,
        Kind::GetNext,
        Kind::GetBulk,
        Kind::TestSet,
        Kind::CommitSet,
        Kind::UndoSet,
        Kind::CleanupSet,
        Kind::Notify,
        Kind::Ping,
        Kind::IndexAllocate,
        Kind::IndexDeallocate,
        Kind::AddAgentCaps,
        Kind::RemoveAgentCaps,
        Kind::Response,
    ];
}

/// Why a session ends, section 6.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the RFC's")]
pub enum CloseReason {
    Other,
    ParseError,
    ProtocolError,
    Timeouts,
    Shutdown,
    ByManager,
    /// A number that the RFC does not have.
    Unknown(u8),
}

impl CloseReason {
    fn number(self) -> u8 {
        match self {
            CloseReason::Other => 1,
            CloseReason::ParseError => 2,
            CloseReason::ProtocolError => 3,
            CloseReason::Timeouts => 4,
            CloseReason::Shutdown => 5,
            CloseReason::ByManager => 6,
            CloseReason::Unknown(number) => number,
        }
    }

    fn of(number: u8) -> Self {
        match number {
            1 => CloseReason::Other,
            2 => CloseReason::ParseError,
            3 => CloseReason::ProtocolError,
            4 => CloseReason::Timeouts,
            5 => CloseReason::Shutdown,
            6 => CloseReason::ByManager,
            number => CloseReason::Unknown(number),
        }
    }
}

/// What a response says, sections 6.2.16 and RFC 3416 section 3; any number may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResponseError(pub u16);

impl ResponseError {
    /// All is well.
    pub const NONE: ResponseError = ResponseError(0);
    /// Something else.
    pub const GENERAL: ResponseError = ResponseError(5);
    /// CommitSet without a TestSet that was taken.
    pub const COMMIT_FAILED: ResponseError = ResponseError(14);
    /// UndoSet without anything to undo.
    pub const UNDO_FAILED: ResponseError = ResponseError(15);
    /// The object cannot be set.
    pub const NOT_WRITABLE: ResponseError = ResponseError(17);
    /// There is no such session.
    pub const NOT_OPEN: ResponseError = ResponseError(257);
    /// Somebody else has registered it.
    pub const DUPLICATE_REGISTRATION: ResponseError = ResponseError(263);
    /// The PDU is not understood.
    pub const PARSE_ERROR: ResponseError = ResponseError(266);
    /// Refused.
    pub const REQUEST_DENIED: ResponseError = ResponseError(267);
    /// It went wrong over there.
    pub const PROCESSING_ERROR: ResponseError = ResponseError(268);
}

impl std::fmt::Display for ResponseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.0 {
            0 => "noError",
            5 => "genErr",
            14 => "commitFailed",
            15 => "undoFailed",
            17 => "notWritable",
            256 => "openFailed",
            257 => "notOpen",
            258 => "indexWrongType",
            259 => "indexAlreadyAllocated",
            260 => "indexNoneAvailable",
            261 => "indexNotAllocated",
            262 => "unsupportedContext",
            263 => "duplicateRegistration",
            264 => "unknownRegistration",
            265 => "unknownAgentCaps",
            266 => "parseError",
            267 => "requestDenied",
            268 => "processingError",
            other => return write!(f, "error {other}"),
        };
        f.write_str(name)
    }
}

/// A subtree for this session, section 6.2.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Of the default context without it.
    pub context: Option<Vec<u8>>,
    /// Seconds to answer in; 0 for the session's. Not in an Unregister.
    pub timeout: u8,
    /// The lower is preferred; 127 is usual.
    pub priority: u8,
    /// The subtree.
    pub subtree: Oid,
    /// Which sub-identifier, from 1, runs up to which number.
    pub range: Option<(NonZeroU8, u32)>,
    /// One instance and no subtree. Not in an Unregister.
    pub instance: bool,
}

/// From where to where, section 5.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRange {
    /// From here.
    pub start: Oid,
    /// The start itself counts too.
    pub include: bool,
    /// Before here; empty for anything.
    pub end: Oid,
}

/// Indexes to be set apart, sections 6.2.13 and 6.2.14.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexes {
    /// Of the default context without it.
    pub context: Option<Vec<u8>>,
    /// One that was never used.
    pub new: bool,
    /// Any that is not in use.
    pub any: bool,
    /// Which.
    pub bindings: Vec<Binding>,
}

/// What a PDU says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the RFC's; context: the default one without it")]
pub enum Body {
    /// Seconds to answer in; who it is.
    Open {
        timeout: u8,
        id: Oid,
        description: Vec<u8>,
    },
    Close {
        reason: CloseReason,
    },
    Register(Registration),
    Unregister(Registration),
    Get {
        context: Option<Vec<u8>>,
        ranges: Vec<SearchRange>,
    },
    GetNext {
        context: Option<Vec<u8>>,
        ranges: Vec<SearchRange>,
    },
    GetBulk {
        context: Option<Vec<u8>>,
        non_repeaters: u16,
        max_repetitions: u16,
        ranges: Vec<SearchRange>,
    },
    TestSet {
        context: Option<Vec<u8>>,
        bindings: Vec<Binding>,
    },
    CommitSet,
    UndoSet,
    CleanupSet,
    Notify {
        context: Option<Vec<u8>>,
        bindings: Vec<Binding>,
    },
    Ping {
        context: Option<Vec<u8>>,
    },
    IndexAllocate(Indexes),
    IndexDeallocate(Indexes),
    AddAgentCaps {
        context: Option<Vec<u8>>,
        id: Oid,
        description: Vec<u8>,
    },
    RemoveAgentCaps {
        context: Option<Vec<u8>>,
        id: Oid,
    },
    /// The master agent's sysUpTime in 10 ms; the error and, from 1, the binding that it is about.
    Response {
        uptime: u32,
        error: ResponseError,
        index: u16,
        bindings: Vec<Binding>,
    },
}

impl Body {
    /// Its type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Body::Open { .. } => Kind::Open,
            Body::Close { .. } => Kind::Close,
            Body::Register(_) => Kind::Register,
            Body::Unregister(_) => Kind::Unregister,
            Body::Get { .. } => Kind::Get,
            Body::GetNext { .. } => Kind::GetNext,
            Body::GetBulk { .. } => Kind::GetBulk,
            Body::TestSet { .. } => Kind::TestSet,
            Body::CommitSet => Kind::CommitSet,
            Body::UndoSet => Kind::UndoSet,
            Body::CleanupSet => Kind::CleanupSet,
            Body::Notify { .. } => Kind::Notify,
            Body::Ping { .. } => Kind::Ping,
            Body::IndexAllocate(_) => Kind::IndexAllocate,
            Body::IndexDeallocate(_) => Kind::IndexDeallocate,
            Body::AddAgentCaps { .. } => Kind::AddAgentCaps,
            Body::RemoveAgentCaps { .. } => Kind::RemoveAgentCaps,
            Body::Response { .. } => Kind::Response,
        }
    }

    /// What a request wants to read; `None` where it is no Get, GetNext or GetBulk.
    #[must_use]
    pub fn asked(&self) -> Option<&[SearchRange]> {
        match self {
            Body::Get { ranges, .. } | Body::GetNext { ranges, .. } | Body::GetBulk { ranges, .. } => {
                Some(ranges)
            }
            _ => None,
        }
    }

    fn context(&self) -> Option<&[u8]> {
        match self {
            Body::Register(registration) | Body::Unregister(registration) => registration.context.as_deref(),
            Body::IndexAllocate(indexes) | Body::IndexDeallocate(indexes) => indexes.context.as_deref(),
            Body::Get { context, .. }
            | Body::GetNext { context, .. }
            | Body::GetBulk { context, .. }
            | Body::TestSet { context, .. }
            | Body::Notify { context, .. }
            | Body::Ping { context }
            | Body::AddAgentCaps { context, .. }
            | Body::RemoveAgentCaps { context, .. } => context.as_deref(),
            Body::Open { .. }
            | Body::Close { .. }
            | Body::CommitSet
            | Body::UndoSet
            | Body::CleanupSet
            | Body::Response { .. } => None,
        }
    }

    fn flags(&self) -> u8 {
        match self {
            Body::Register(registration) if registration.instance => INSTANCE_REGISTRATION,
            Body::IndexAllocate(indexes) | Body::IndexDeallocate(indexes) => {
                u8::from(indexes.new) * NEW_INDEX + u8::from(indexes.any) * ANY_INDEX
            }
            _ => 0,
        }
    }
}

/// A header, section 6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Of the body.
    pub kind: Kind,
    flags: u8,
    /// Of the session.
    pub session: u32,
    /// Of the SNMP request.
    pub transaction: u32,
    /// A response has its request's.
    pub packet: u32,
    /// Octets that follow.
    pub payload: usize,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`DecodeError`]: another version, an unknown type, or a length that no PDU has. Where the next PDU begins is
    /// then not known.
    pub fn decode(octets: &[u8; HEADER]) -> Result<Self, DecodeError> {
        let [version, number, flags, _, rest @ ..] = octets;
        if *version != VERSION {
            return Err(DecodeError::Version(*version));
        }
        let kind = *Kind::ALL.get(usize::from(*number).wrapping_sub(1)).ok_or(DecodeError::Kind(*number))?;
        let mut reader = Reader { octets: rest, order: order(*flags) };
        let (session, transaction) = (reader.u32("a session id")?, reader.u32("a transaction id")?);
        let (packet, payload) = (reader.u32("a packet id")?, reader.u32("a payload length")?);
        if payload > MAX_PAYLOAD || payload % 4 != 0 {
            return Err(DecodeError::Payload(payload));
        }
        Ok(Header { kind, flags: *flags, session, transaction, packet, payload: payload as usize })
    }

    /// In which its numbers are.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        order(self.flags)
    }

    /// Reads the body behind this header.
    ///
    /// # Errors
    /// [`DecodeError`]: what is wrong with it.
    pub fn body(&self, payload: &[u8]) -> Result<Body, DecodeError> {
        let mut reader = Reader { octets: payload, order: self.order() };
        let body = read(self.kind, self.flags, &mut reader)?;
        reader.end()?;
        Ok(body)
    }
}

fn order(flags: u8) -> ByteOrder {
    if flags & NETWORK_BYTE_ORDER == 0 { ByteOrder::Little } else { ByteOrder::Network }
}

fn read(kind: Kind, flags: u8, reader: &mut Reader<'_>) -> Result<Body, DecodeError> {
    let set = |flag: u8| flags & flag != 0;
    let has_context = !matches!(
        kind,
        Kind::Open | Kind::Close | Kind::CommitSet | Kind::UndoSet | Kind::CleanupSet | Kind::Response
    );
    let context =
        if has_context && set(NON_DEFAULT_CONTEXT) { Some(reader.string("a context")?) } else { None };
    Ok(match kind {
        Kind::Open => {
            let [timeout, ..] = reader.quad("a timeout")?;
            let id = reader.oid("an id")?.0;
            Body::Open { timeout, id, description: reader.string("a description")? }
        }
        Kind::Close => Body::Close { reason: CloseReason::of(reader.quad("a reason")?[0]) },
        Kind::Register | Kind::Unregister => {
            let [timeout, priority, range, _] = reader.quad("a registration")?;
            let subtree = reader.oid("a subtree")?.0;
            let range = match NonZeroU8::new(range) {
                Some(range) => Some((range, reader.u32("an upper bound")?)),
                None => None,
            };
            let instance = kind == Kind::Register && set(INSTANCE_REGISTRATION);
            let timeout = if kind == Kind::Register { timeout } else { 0 };
            let registration = Registration { context, timeout, priority, subtree, range, instance };
            if kind == Kind::Register { Body::Register(registration) } else { Body::Unregister(registration) }
        }
        Kind::Get => Body::Get { context, ranges: ranges(reader)? },
        Kind::GetNext => Body::GetNext { context, ranges: ranges(reader)? },
        Kind::GetBulk => {
            let (non_repeaters, max_repetitions) =
                (reader.u16("non_repeaters")?, reader.u16("max_repetitions")?);
            Body::GetBulk { context, non_repeaters, max_repetitions, ranges: ranges(reader)? }
        }
        Kind::TestSet => Body::TestSet { context, bindings: reader.bindings()? },
        Kind::CommitSet => Body::CommitSet,
        Kind::UndoSet => Body::UndoSet,
        Kind::CleanupSet => Body::CleanupSet,
        Kind::Notify => Body::Notify { context, bindings: reader.bindings()? },
        Kind::Ping => Body::Ping { context },
        Kind::IndexAllocate | Kind::IndexDeallocate => {
            let (new, any) = (set(NEW_INDEX), set(ANY_INDEX));
            let indexes = Indexes { context, new, any, bindings: reader.bindings()? };
            if kind == Kind::IndexAllocate {
                Body::IndexAllocate(indexes)
            } else {
                Body::IndexDeallocate(indexes)
            }
        }
        Kind::AddAgentCaps => {
            let id = reader.oid("an id")?.0;
            Body::AddAgentCaps { context, id, description: reader.string("a description")? }
        }
        Kind::RemoveAgentCaps => Body::RemoveAgentCaps { context, id: reader.oid("an id")?.0 },
        Kind::Response => {
            let uptime = reader.u32("sysUpTime")?;
            let (error, index) = (ResponseError(reader.u16("an error")?), reader.u16("an index")?);
            Body::Response { uptime, error, index, bindings: reader.bindings()? }
        }
    })
}

fn ranges(reader: &mut Reader<'_>) -> Result<Vec<SearchRange>, DecodeError> {
    let mut ranges = Vec::new();
    while !reader.octets.is_empty() {
        let (start, include) = reader.oid("a range's start")?;
        let (end, _) = reader.oid("a range's end")?;
        ranges.push(SearchRange { start, include, end });
    }
    Ok(ranges)
}

/// A PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Of its numbers.
    pub order: ByteOrder,
    /// Of the session; 0 in an Open.
    pub session: u32,
    /// Of the SNMP request.
    pub transaction: u32,
    /// A response has its request's.
    pub packet: u32,
    /// What it says.
    pub body: Body,
}

impl Pdu {
    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut flags = self.body.flags();
        if self.order == ByteOrder::Network {
            flags |= NETWORK_BYTE_ORDER;
        }
        if self.body.context().is_some() {
            flags |= NON_DEFAULT_CONTEXT;
        }
        let mut writer = Writer { octets: Vec::with_capacity(256), order: self.order };
        writer.octets.extend([VERSION, self.body.kind() as u8, flags, 0]);
        for number in [self.session, self.transaction, self.packet, 0] {
            writer.u32(number);
        }
        if let Some(context) = self.body.context() {
            writer.string(context);
        }
        write(&self.body, &mut writer);
        let payload = (writer.octets.len() - HEADER) as u32;
        let mut length = Writer { octets: Vec::new(), order: self.order };
        length.u32(payload);
        writer.octets[HEADER - 4..HEADER].copy_from_slice(&length.octets);
        writer.octets
    }

    /// Reads one PDU.
    ///
    /// # Errors
    /// [`DecodeError`]: what is wrong with it.
    pub fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let (header, payload) = octets.split_first_chunk::<HEADER>().ok_or(DecodeError::Truncated {
            what: "a header",
            needed: HEADER,
            left: octets.len(),
        })?;
        let header = Header::decode(header)?;
        if payload.len() < header.payload {
            let (needed, left) = (header.payload, payload.len());
            return Err(DecodeError::Truncated { what: "a payload", needed, left });
        }
        if payload.len() > header.payload {
            return Err(DecodeError::Trailing(payload.len() - header.payload));
        }
        Ok(Pdu {
            order: header.order(),
            session: header.session,
            transaction: header.transaction,
            packet: header.packet,
            body: header.body(payload)?,
        })
    }
}

fn write(body: &Body, writer: &mut Writer) {
    let quad = |writer: &mut Writer, octets: [u8; 4]| octets.into_iter().for_each(|octet| writer.u8(octet));
    let ranges = |writer: &mut Writer, ranges: &[SearchRange]| {
        for range in ranges {
            writer.oid(&range.start, range.include);
            writer.oid(&range.end, false);
        }
    };
    let bindings = |writer: &mut Writer, bindings: &[Binding]| {
        bindings.iter().for_each(|binding| writer.binding(binding));
    };
    match body {
        Body::Open { timeout, id, description } => {
            quad(writer, [*timeout, 0, 0, 0]);
            writer.oid(id, false);
            writer.string(description);
        }
        Body::Close { reason } => quad(writer, [reason.number(), 0, 0, 0]),
        Body::Register(registration) | Body::Unregister(registration) => {
            let timeout = if matches!(body, Body::Register(_)) { registration.timeout } else { 0 };
            let range = registration.range.map_or(0, |(range, _)| range.get());
            quad(writer, [timeout, registration.priority, range, 0]);
            writer.oid(&registration.subtree, false);
            if let Some((_, bound)) = registration.range {
                writer.u32(bound);
            }
        }
        Body::Get { ranges: list, .. } | Body::GetNext { ranges: list, .. } => ranges(writer, list),
        Body::GetBulk { non_repeaters, max_repetitions, ranges: list, .. } => {
            writer.u16(*non_repeaters);
            writer.u16(*max_repetitions);
            ranges(writer, list);
        }
        Body::TestSet { bindings: list, .. } | Body::Notify { bindings: list, .. } => bindings(writer, list),
        Body::IndexAllocate(indexes) | Body::IndexDeallocate(indexes) => bindings(writer, &indexes.bindings),
        Body::CommitSet | Body::UndoSet | Body::CleanupSet | Body::Ping { .. } => {}
        Body::AddAgentCaps { id, description, .. } => {
            writer.oid(id, false);
            writer.string(description);
        }
        Body::RemoveAgentCaps { id, .. } => writer.oid(id, false),
        Body::Response { uptime, error, index, bindings: list } => {
            writer.u32(*uptime);
            writer.u16(error.0);
            writer.u16(*index);
            bindings(writer, list);
        }
    }
}
