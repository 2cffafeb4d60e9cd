//! The software pipeline: Linux interfaces as ports, the contract's frame path, and a P4Runtime server.
//!
//! A frame's way: [`io`] (port in) -> [`worker`] -> [`pipeline`] (parse, rules, hash, bucket, state, header) ->
//! [`io`] (port out). A change's way: [`server`] (P4Runtime write) -> [`device`] -> [`tables`] (snapshot).
//! [`run`] puts both together; [`replay`] walks the first without an interface.
#![deny(unsafe_code)]

pub mod batch;
pub mod capture;
pub mod counters;
#[allow(unsafe_code)]
pub mod cpu;
pub mod device;
pub mod edit;
pub mod flow_cache;
pub mod headers;
pub mod io;
pub mod packet_io;
pub mod pipeline;
pub mod port_links;
pub mod port_set;
#[allow(unsafe_code)]
mod prefetch;
pub mod priority;
pub mod replay;
pub mod run;
pub mod server;
pub mod shared_set;
pub mod tables;
mod word_hash;
pub mod worker;
