//! P4Runtime and P4Info bindings: the protocol's messages, a client's session, what a server needs.
//!
//! - [`proto`]: every message of P4Runtime 1.x and the gRPC service, wire compatible with the published ones.
//! - [`client`]: a session with arbitration, batched writes with an error for each update, reads, packets;
//!   and a supervisor that keeps a session up.
//! - [`server`]: the service trait, arbitration by the protocol's rules, the clients' streams.
//! - [`entry`]: the data plane's table entries on the wire, both ways, and its P4Info.
//! - [`bytestring`], [`metadata`], [`Fault`], [`WriteErrors`]: what both sides agree on.
//!
//! A controller that keeps a device under its control:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use p4runtime::ElectionId;
//! use p4runtime::client::{Atomicity, Options, Retry, Supervisor, Target};
//! use p4runtime::proto::p4::v1::{TableEntry, Update};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let target: Target = "unix:/run/sluice/p4.sock".parse()?;
//! let options = Options::new(1, Some(ElectionId(1)));
//! let (supervisor, uplink, mut inbox) = Supervisor::new(target, options, Retry::default());
//! tokio::spawn(supervisor.run());
//!
//! let session = uplink.wait_primary(Duration::from_secs(10)).await?;
//! let entry = TableEntry { table_id: 0x0200_0001, ..Default::default() };
//! if let Err(error) = session.write(vec![Update::insert(entry)], Atomicity::ContinueOnError).await {
//!     for rejection in &error.rejections {
//!         println!("update {}: {:?}", rejection.index, rejection.fault.code());
//!     }
//! }
//! while let Some(packet) = inbox.packets.recv().await {
//!     println!("{} bytes, {} dropped so far", packet.payload.len(), inbox.dropped.packets());
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod bytestring;
pub mod client;
mod election;
mod entity;
pub mod entry;
mod fault;
pub mod metadata;
pub mod proto;
pub mod server;

pub use election::ElectionId;
pub use fault::{DetailsError, Fault, Rejection, WriteErrors, rejections};
