//! What is there for machines: NETCONF, SNMP, metrics for Prometheus, the gRPC status service.

mod backend;
pub mod certificate;
pub mod listen;
mod listeners;
pub mod metrics;
mod notifications;
pub mod snmp;
pub mod status;
mod tls;

pub use backend::Northbound;
