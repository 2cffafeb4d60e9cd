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

mod direction;
mod event;
mod flight;
mod id;
mod pair;
mod path;
mod profile;
mod samples;
mod supervision;
mod suspicion;
mod time;
mod unit;

pub use direction::{Direction, PerDirection, Side};
pub use event::{
    Actions, CablingFault, Event, Fault, PairTransition, Probe, Reason, SuspicionChange, SuspicionNotice,
    UnitReason, UnitTransition,
};
pub use id::{PairKey, UnitKey};
pub use pair::{Admin, Carrier, Initial, PairConfig, PairState, PairStatus, Role};
pub use path::{Counters, PathStatus, Rejection, Tally, Verdict};
pub use profile::{Profile, ProfileError, ProfileSettings};
pub use samples::{Delay, Statistics};
pub use supervision::{ConfigureError, GAP_TOLERANCE, Supervision, UnknownPair};
pub use suspicion::Suspicion;
pub use time::Nanos;
pub use unit::{UnitConfig, UnitMode, UnitState, UnitStatus};
