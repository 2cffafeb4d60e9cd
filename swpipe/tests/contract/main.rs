//! "What happens to a frame", sentence by sentence, on a programmed device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

#[allow(dead_code, reason = "shared with the tests of the model")]
#[path = "../../../dataplane/tests/contract/frames.rs"]
mod frames;
mod reference;
mod rig;
mod steps;
