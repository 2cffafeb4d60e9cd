//! `sluiced`: from a site's configuration and the state of its pairs to the tables of a data plane.
//!
//! A change walks [`engine`] (wanted entries) → [`difference`] → [`target`] (P4Runtime write). Pairs are
//! measured by [`keepalives`], on a thread of its own. [`socket`] serves clients; [`show`] answers them.
#![forbid(unsafe_code)]

pub mod access;
pub mod alarm;
pub mod audit;
pub mod carriers;
pub mod clock;
pub mod configuration;
pub mod counted;
pub mod daemon;
pub mod datastore;
pub mod difference;
pub mod early;
pub mod engine;
pub mod event;
pub mod keepalives;
pub mod logging;
pub mod lookup;
pub mod northbound;
pub mod operational;
pub mod session;
pub mod show;
pub mod socket;
pub mod state_dir;
pub mod target;
pub mod telemetry;
pub mod view;
