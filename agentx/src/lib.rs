//! AgentX (RFC 2741), the subagent's side: objects that can be read and notifications, under any master agent such
//! as net-snmp's snmpd.
//!
//! [`Pdu`] is the codec and touches no socket. [`View`] is what there is to read; [`Objects`] of [`Table`]s is one.
//! [`Subagent`] keeps a session with the master agent, whatever becomes of it meanwhile.
#![forbid(unsafe_code)]

mod answer;
mod oid;
mod outbox;
mod pdu;
mod session;
mod subagent;
mod value;
mod view;
mod wire;

pub use answer::answer;
pub use oid::{Oid, OidError};
pub use outbox::Notification;
pub use pdu::{
    Body, ByteOrder, CloseReason, HEADER, Header, Indexes, Kind, MAX_PAYLOAD, Pdu, Registration,
    ResponseError, SearchRange,
};
pub use session::{Ended, Master, Source};
pub use subagent::{Address, AddressError, Settings, State, Subagent};
pub use value::{Binding, Value};
pub use view::{Column, Objects, Table, View};
pub use wire::DecodeError;
