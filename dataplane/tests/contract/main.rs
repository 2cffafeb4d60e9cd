//! The sentences of the data-plane contract that need no device: parse, hash, buckets, headers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

mod buckets;
mod frames;
mod hash;
mod keep_alive;
mod limits;
mod other_reader;
mod parse;
mod probe;
mod restrictions;
mod steering;
