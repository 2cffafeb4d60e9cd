//! Keep-alive supervision of pairs and units: when to send, what an answer means, what changed.
//!
//! Sans-IO: [`Supervision`] never reads a clock or a socket. It is told the time, the configuration, the carrier
//! of ports and the keep-alives that came back, and it answers which keep-alives to send, which pairs and units
//! changed state and when it wants to be asked again. The rules are those of `docs` page *Liveness*.
//!
//! A turn of the loop around it:
//!
//! ```
//! use liveness::{Nanos, PairConfig, PairKey, Profile, Supervision, UnitConfig, UnitKey};
//!
//! let mut supervision = Supervision::new();
//! let pairs = vec![PairConfig::new(PairKey(7))];
//! let unit = UnitConfig::new(UnitKey(1), Profile::default(), pairs);
//! supervision.configure(&[unit], Nanos::ZERO)?;
//!
//! let due = supervision.next_deadline().ok_or("a configured pair has a next keep-alive")?;
//! // Wait until `due` or until something arrives; hand over everything that arrived; only then:
//! let actions = supervision.poll(due);
//! assert_eq!(actions.probes.len(), 2); // one per direction
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod cores;
mod cost;
mod dice;
mod direction;
mod event;
mod flight;
mod histogram;
mod hold;
mod id;
pub mod matrix;
mod pair;
mod path;
mod profile;
mod reference;
mod samples;
mod stream;
mod supervision;
mod suspicion;
mod time;
mod unit;
pub mod weights;

pub use cores::{CoreState, CoreStatus};
pub use cost::cost;
pub use direction::{Direction, PerDirection, Side};
pub use event::{
    Actions, CablingFault, CoreTransition, Event, Fault, HoldChange, HoldNotice, PairTransition, Probe,
    ProbeKind, Reason, ReferenceProbe, SuspicionChange, SuspicionNotice, UnitReason, UnitTransition,
};
pub use histogram::{BOUNDS, Histogram};
pub use hold::HoldStatus;
pub use id::{PairKey, ReferenceKey, UnitKey};
pub use matrix::{Frames, Probes};
pub use pair::{Admin, Carrier, Initial, PairConfig, PairState, PairStatus, Role};
pub use path::{Counters, NegativeStatus, PathStatus, Rejection, Tally, Verdict};
pub use profile::{HoldDown, ProbeMode, Profile, ProfileError, ProfileSettings};
pub use reference::ReferenceStatus;
pub use samples::{Delay, Statistics};
pub use supervision::{ConfigureError, GAP_TOLERANCE, Supervision, UnknownPair, UnknownReference};
pub use suspicion::Suspicion;
pub use time::Nanos;
pub use unit::{UnitConfig, UnitMode, UnitState, UnitStatus};
