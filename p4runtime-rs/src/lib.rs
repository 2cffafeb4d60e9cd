//! P4Runtime and P4Info bindings.
#![forbid(unsafe_code)]

pub mod proto;
