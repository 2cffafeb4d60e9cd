//! Targets: what a data plane of this project can do and how it differs from the contract's ideal.
//!
//! A profile is a description only. The software pipeline follows it, the controller allows for it.

use std::fmt;
use std::str::FromStr;

use crate::frame::ParseLimits;
use crate::ids::PortId;
use crate::schema::Table;
use crate::tables::Family;

/// A target by its limits.
#[derive(Debug, PartialEq, Eq)]
pub struct TargetProfile {
    /// Name on the command line.
    pub name: &'static str,
    /// Architecture that the P4Info names.
    pub architecture: &'static str,
    /// Port that packets of the controller come and go by; no other port may have its number. A packet-out by it
    /// comes straight back as packet-in.
    pub cpu_port: PortId,
    /// Steps of the clock that keep-alives are stamped by, ns.
    pub clock_resolution: u64,
    /// How far a frame is parsed.
    pub parse: ParseLimits,
    /// What counters of bytes are off by.
    pub counted: CountedBytes,
    /// What a write can be.
    pub writes: Writes,
    /// Entries come back with the metadata that they were written with.
    pub keeps_metadata: bool,
    sizes: Sizes,
}

/// Bytes by which a target's counters exceed the frame as it is on the link.
///
/// Targets that count a frame's length at ingress count there what is popped before egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedBytes {
    /// For each frame that comes back from a pair, bytes of the steering header: in `link_out`, in `port_out`
    /// of link ports, and in `pair_verdicts` and `verdicts` where the reason is one that only a frame with a
    /// steering header can have.
    pub returned: u64,
    /// For each packet of the controller, bytes of the `packet_out` header: in `port_out` and `probes_out`.
    pub packet_out: u64,
}

/// What a write can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// A batch is done whole or not at all; else each of its updates stands for itself.
    pub all_or_nothing: bool,
    /// Updates in one request.
    pub updates: usize,
    /// Bytes in one request.
    pub bytes: usize,
}

/// Entries that fit where it is not what the schema says.
#[derive(Debug, PartialEq, Eq)]
struct Sizes {
    rules_v4: Option<usize>,
    rules_v6: Option<usize>,
    buckets: Option<usize>,
}

const AS_THE_SCHEMA: Sizes = Sizes { rules_v4: None, rules_v6: None, buckets: None };

/// The software pipeline.
pub static SWPIPE: TargetProfile = TargetProfile {
    name: "swpipe",
    architecture: "v1model",
    // BMv2's; packets take a way of their own, and only those of the controller to itself name it.
    cpu_port: PortId(510),
    clock_resolution: 1,
    parse: ParseLimits::NONE,
    counted: CountedBytes { returned: 0, packet_out: 0 },
    // One snapshot holds a batch of any size; its server takes messages of 64 MiB.
    writes: Writes { all_or_nothing: true, updates: 1 << 20, bytes: 60 << 20 },
    keeps_metadata: true,
    sizes: AS_THE_SCHEMA,
};

/// BMv2's `simple_switch_grpc` with PI.
pub static BMV2: TargetProfile = TargetProfile {
    name: "bmv2",
    architecture: "v1model",
    // Of its own choice (--cpu-port); 511 is its drop port.
    cpu_port: PortId(510),
    // v1model's time stamps are microseconds (p4c, v1model.p4, standard_metadata_t).
    clock_resolution: 1000,
    parse: ParseLimits::NONE,
    // `packet_length` is taken at ingress, with the packet_out header (behavioral-model, simple_switch.cpp).
    counted: CountedBytes { returned: 4, packet_out: 2 },
    // PI answers UNIMPLEMENTED to anything but CONTINUE_ON_ERROR (PI, device_mgr.cpp) and reports a failed batch
    // in one header, so batches stay small; gRPC's own limit is 4 MiB.
    writes: Writes { all_or_nothing: false, updates: 512, bytes: 3 << 20 },
    keeps_metadata: true,
    sizes: AS_THE_SCHEMA,
};

/// Tofino 1.
pub static TOFINO1: TargetProfile = TargetProfile {
    name: "tofino1",
    architecture: "tna",
    // The PCIe port, port 64 of pipe 1 (Open Tofino, "Tofino native architecture").
    cpu_port: PortId(192),
    clock_resolution: 1,
    // What its parser skips it cannot send out again, and it has 256 rows (docs/p4.md, "Limits of Tofino 1").
    parse: ParseLimits {
        ipv4_options: 10,
        inner_ipv4_options: 0,
        ipv6_extension: 8,
        inner_ipv6_extensions: 0,
    },
    // TNA's `count` takes what is to be left out (tna.p4, `adjust_byte_count`).
    counted: CountedBytes { returned: 0, packet_out: 0 },
    writes: Writes { all_or_nothing: false, updates: 512, bytes: 3 << 20 },
    // A server that rebuilds entries from the chip has no place for it.
    keeps_metadata: false,
    sizes: Sizes { rules_v4: Some(2048), rules_v6: Some(512), buckets: Some(131_072) },
};

/// All profiles.
pub static ALL: [&TargetProfile; 3] = [&SWPIPE, &BMV2, &TOFINO1];

impl TargetProfile {
    /// Entries of a table that surely fit.
    #[must_use]
    pub fn table_size(&self, table: &Table) -> usize {
        let size = match table.id {
            id if id == Family::V4.table() => self.sizes.rules_v4,
            id if id == Family::V6.table() => self.sizes.rules_v6,
            id if id == crate::tables::BUCKETS.id => self.sizes.buckets,
            _ => None,
        };
        size.unwrap_or(table.size)
    }
}

impl fmt::Display for TargetProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A name that is no target's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no target; there are swpipe, bmv2 and tofino1")]
pub struct UnknownTarget(String);

impl FromStr for &'static TargetProfile {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        ALL.iter().find(|profile| profile.name == name).copied().ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;

    #[test]
    fn profiles_are_found_by_their_names() {
        for profile in ALL {
            assert_eq!(profile.name.parse(), Ok(profile));
        }
        let error = "tofino".parse::<&TargetProfile>().unwrap_err().to_string();
        assert!(error.contains("tofino1"), "{error}");
    }

    #[test]
    fn no_profile_has_more_room_than_the_schema_or_none() {
        for profile in ALL {
            for table in tables::ALL {
                let size = profile.table_size(table);
                assert!((1..=table.size).contains(&size), "{profile}: {} {size}", table.name);
            }
        }
        assert_eq!(TOFINO1.table_size(&tables::BUCKETS), 131_072);
        assert_eq!(TOFINO1.table_size(&tables::PAIR_PORTS), 1024);
    }

    #[test]
    fn cpu_ports_are_ports_of_the_data_plane() {
        for profile in ALL {
            assert!(profile.cpu_port.index() < crate::schema::counters::PORTS);
        }
    }
}
