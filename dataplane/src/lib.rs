//! The pure model of the data plane: what a frame means and where it goes, without any I/O.
//!
//! Both sides of the wire use it: the software pipeline to forward frames, the controller to compute
//! the same answers for `lookup`, and tests to compare either with the P4 program. The law is the
//! data-plane contract; where a function implements one of its sections, the comment names it.
//!
//! ```
//! use dataplane::{hash, parse, Method, Side};
//!
//! # let frame = [0u8; 60];
//! let parsed = parse(&frame);
//! if let Some(session) = &parsed.session {
//!     println!("bucket {}", hash(session, Method::Layer3, Side::Lan) & 1023);
//! }
//! ```
#![forbid(unsafe_code)]

pub mod buckets;
pub mod describe;
pub mod entry;
pub mod frame;
pub mod hash;
pub mod ids;
pub mod keepalive;
pub mod probe;
pub mod schema;
pub mod steering;
pub mod tables;
pub mod target;
pub mod verdict;

pub use buckets::{BucketTable, UnitShape};
pub use frame::{Addresses, NotIp, Parsed, Session, parse};
pub use hash::{Method, hash};
pub use ids::{BucketIndex, Core, LinkIndex, Nanos, PairId, PortId, Side, UnitId};
pub use steering::{SteeringHeader, SteeringMode};
pub use verdict::{Reason, Verdict};
