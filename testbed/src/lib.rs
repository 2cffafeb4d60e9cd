//! The test bed: topologies in network namespaces, emulated and real appliances, traffic, faults, and the
//! scenarios that check what the balancer promises.
//!
//! A [`topology::Topology`] gives a [`plan::Plan`]; [`lab::Lab`] builds it; [`scenarios`] drive it and write their
//! findings into a [`check::Findings`].

pub mod agent;
pub mod appliance;
pub mod bench;
pub mod bridge;
pub mod check;
pub mod clock;
pub mod differential;
pub mod edge;
pub mod error;
pub mod frame;
pub mod garbage;
pub mod lab;
pub mod netns;
pub mod p4ref;
pub mod plan;
pub mod plane;
pub mod raw;
pub mod rng;
pub mod scenario;
pub mod scenarios;
pub mod screen;
pub mod sluice;
pub mod topology;
pub mod traffic;
pub mod wire;
