//! What is there for machines: NETCONF.

mod backend;
pub mod listen;
mod notifications;

pub use backend::Northbound;
