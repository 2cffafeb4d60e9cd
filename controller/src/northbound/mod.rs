//! What is there for machines: NETCONF, SNMP.

mod backend;
pub mod listen;
mod notifications;
pub mod snmp;

pub use backend::Northbound;
