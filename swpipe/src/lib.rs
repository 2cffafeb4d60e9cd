//! The software pipeline: Linux interfaces as ports, the contract's frame path, and a P4Runtime server.

#![deny(unsafe_code)]

pub mod io;
