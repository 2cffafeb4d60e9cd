//! `sluiced`: from a site's configuration and the state of its pairs to the tables of a data plane.
//!
//! A change walks [`engine`] (wanted entries) → [`difference`] → [`target`] (P4Runtime write). Pairs are
//! measured by [`keepalives`], on a thread of its own. [`socket`] serves clients; [`show`] answers them.
#![forbid(unsafe_code)]

pub mod alarm;
pub mod clock;
pub mod counted;
pub mod daemon;
pub mod difference;
pub mod engine;
pub mod event;
pub mod keepalives;
pub mod lookup;
pub mod show;
pub mod socket;
pub mod state_dir;
pub mod target;
pub mod view;
