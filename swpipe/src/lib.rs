//! The software pipeline: Linux interfaces as ports, the contract's frame path, and a P4Runtime server.
#![deny(unsafe_code)]

pub mod capture;
pub mod counters;
pub mod device;
pub mod edit;
pub mod io;
pub mod pipeline;
pub mod replay;
pub mod tables;
