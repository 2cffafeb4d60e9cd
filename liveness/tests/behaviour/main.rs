//! What the supervision does, seen through its public face and under a virtual clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

mod burst;
mod conditions;
mod configuration;
mod cores;
mod freeze;
mod holding;
mod invariants;
mod million;
mod model;
mod page;
mod reference;
mod rig;
mod statistics;
mod suspicion;
mod timing;
mod transitions;
mod units;
mod verdicts;
mod weights;
mod wire;
