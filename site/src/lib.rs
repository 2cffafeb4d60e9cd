//! A site's configuration: the tree as RFC 7951 JSON, the rules that it must keep, and the table entries
//! that it asks the data plane for.
//!
//! [`Site::from_json`] reads and checks, [`Ids`] gives links, units, pairs and rules their numbers, and
//! [`desired`] computes the entries. All of it is pure.
#![forbid(unsafe_code)]

mod check;
mod desired;
mod effects;
mod fault;
mod flow;
mod ids;
mod order;
mod profile;
mod room;
mod tree;
mod value;

pub use check::{FailAction, FlowPart, Flows, Link, PairConfig, PairRole, Port, Site, Unit, Warning};
pub use desired::{
    BucketNow, Condition, UnitForwarding, buckets_now, changed_flows, core_down, desired, desired_but_rules,
    rules, rules_of, states,
};
pub use fault::{Fault, SiteError};
pub use flow::{Flow, FlowAction};
pub use ids::{Ids, PairName};
pub use profile::{HoldDown, ProfileConfig, Reference, UdpProbe};
pub use tree::Admin;
