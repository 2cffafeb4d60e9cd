//! What the supervision does, seen through its public face and under a virtual clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

mod configuration;
mod freeze;
mod invariants;
mod model;
mod rig;
mod statistics;
mod suspicion;
mod timing;
mod transitions;
mod units;
mod verdicts;
mod wire;
