//! Bucket tables (contract, "Buckets"): which pair and core serve a bucket, as a pure function of the
//! unit's configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::hash::Method;
use crate::ids::Core;

/// Fewest buckets of a unit.
pub const MIN_BUCKETS: u32 = 1024;
/// Most buckets of a unit.
pub const MAX_BUCKETS: u32 = 65536;
/// Most cores behind a pair.
pub const MAX_CORES: u16 = 256;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const WEIGHT_STEP: u64 = 0xD1B5_4A32_D192_ED03;

/// FNV-1a, 64 bits.
fn name64(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A number that tells buckets apart without an order that anything else has: those with the smallest ones are bypassed
/// first where a unit sheds load.
#[must_use]
pub fn scatter(bucket: u64) -> u64 {
    mix64(bucket.wrapping_mul(GOLDEN) ^ GOLDEN)
}

/// The splitmix64 finaliser.
fn mix64(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// What of a unit's configuration the table depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitShape {
    /// Name and weight (1..=100) of the active pairs; their order does not matter.
    pub active: BTreeMap<String, u8>,
    /// Names of the spare pairs.
    pub spares: BTreeSet<String>,
    /// Worker cores behind each pair, 1..=256.
    pub cores: u16,
    /// Number of buckets, where it is set by hand.
    pub buckets: Option<u32>,
}

/// A unit's shape that gives no table.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// No active pair.
    #[error("the unit has no active pair; it needs at least one")]
    NoPair,
    /// Not 1..=256 cores.
    #[error("cores is {0}; it must be 1..256")]
    Cores(u16),
    /// Not a power of two within the bounds.
    #[error("buckets is {0}; it must be a power of two within 1024..65536")]
    Buckets(u32),
    /// Fewer buckets than the weights of the pairs need.
    #[error("pair {0} has weight 0; it must be 1..100")]
    Weight(String),
}

impl UnitShape {
    /// Number of buckets: as set, else the smallest power of two >= 32 x pairs x cores within 1024..=65536.
    #[must_use]
    pub fn bucket_count(&self) -> u32 {
        self.buckets.unwrap_or_else(|| {
            let wanted = 32 * u64::from(self.cores) * self.active.len() as u64;
            let bounded = wanted.clamp(u64::from(MIN_BUCKETS), u64::from(MAX_BUCKETS)) as u32;
            bounded.next_power_of_two()
        })
    }
}

/// Home pair and core of every bucket of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketTable {
    names: Vec<String>,
    weights: Vec<u8>,
    home: Vec<u16>,
    core: Vec<u8>,
}

impl BucketTable {
    /// Builds the home table: weighted Maglev over the active pairs in the order of their names.
    ///
    /// # Errors
    /// No active pair, `cores` or `buckets` out of range, or a weight of 0.
    pub fn build(shape: &UnitShape) -> Result<Self, ShapeError> {
        if shape.active.is_empty() {
            return Err(ShapeError::NoPair);
        }
        if !(1..=MAX_CORES).contains(&shape.cores) {
            return Err(ShapeError::Cores(shape.cores));
        }
        let n = shape.bucket_count();
        if !n.is_power_of_two() || !(MIN_BUCKETS..=MAX_BUCKETS).contains(&n) {
            return Err(ShapeError::Buckets(n));
        }
        if let Some((name, _)) = shape.active.iter().find(|(_, weight)| **weight == 0) {
            return Err(ShapeError::Weight(name.clone()));
        }
        let names: Vec<String> = shape.active.keys().cloned().collect();
        let weights: Vec<u8> = shape.active.values().copied().collect();
        let home = maglev(&names, &weights, n);
        let mut next_core = vec![0u16; names.len()];
        let core = home
            .iter()
            .map(|pair| match next_core.get_mut(usize::from(*pair)) {
                Some(next) => {
                    let core = *next;
                    *next = (*next + 1) % shape.cores;
                    core as u8
                }
                None => 0,
            })
            .collect();
        Ok(BucketTable { names, weights, home, core })
    }

    /// Number of buckets, a power of two.
    #[must_use]
    pub fn len(&self) -> usize {
        self.home.len()
    }

    /// A table always has buckets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.home.is_empty()
    }

    /// Home pair and core of each bucket, in order.
    pub fn home(&self) -> impl Iterator<Item = (&str, Core)> {
        self.home.iter().zip(&self.core).map(|(pair, core)| (self.name(*pair), Core(*core)))
    }

    /// Buckets that have their home at each pair.
    #[must_use]
    pub fn shares(&self) -> BTreeMap<&str, usize> {
        let mut shares: BTreeMap<&str, usize> = self.names.iter().map(|name| (name.as_str(), 0)).collect();
        for pair in &self.home {
            *shares.entry(self.name(*pair)).or_default() += 1;
        }
        shares
    }

    fn name(&self, pair: u16) -> &str {
        self.names.get(usize::from(pair)).map_or("", String::as_str)
    }

    /// The pair that serves each bucket with `rebalance on`, in bucket order.
    ///
    /// `up` says whether an active pair is up, `target` whether it may take buckets of others (a draining
    /// pair may not), `stand_ins` which spare stands in for which down pair. A bucket of a down pair that
    /// nobody can take keeps its home.
    pub fn now<'t>(
        &'t self,
        up: impl Fn(&str) -> bool,
        target: impl Fn(&str) -> bool,
        stand_ins: &'t BTreeMap<String, String>,
    ) -> Vec<&'t str> {
        let is_up: Vec<bool> = self.names.iter().map(|name| up(name)).collect();
        let stand_in: Vec<Option<&str>> =
            self.names.iter().map(|name| stand_ins.get(name).map(String::as_str)).collect();
        let candidates: Vec<(&str, u64, u8)> = self
            .names
            .iter()
            .zip(&is_up)
            .zip(&self.weights)
            .filter(|((name, up), _)| **up && target(name))
            .map(|((name, _), weight)| (name.as_str(), name64(name), *weight))
            .collect();
        self.home
            .iter()
            .enumerate()
            .map(|(bucket, pair)| {
                let index = usize::from(*pair);
                if is_up.get(index).copied().unwrap_or(false) {
                    return self.name(*pair);
                }
                if let Some(spare) = stand_in.get(index).copied().flatten() {
                    return spare;
                }
                rendezvous(&candidates, bucket as u64).unwrap_or_else(|| self.name(*pair))
            })
            .collect()
    }

    /// `balancing-config-hash` of the unit, 64 hex digits.
    #[must_use]
    pub fn config_hash(&self, method: Method) -> String {
        let mut sha = Sha256::new();
        sha.update(format!("{method}\n"));
        for (pair, core) in self.home() {
            sha.update(format!("{pair} {core}\n"));
        }
        hex(&sha.finalize())
    }
}

/// Which spare stands in for which down pair (contract, "Buckets").
///
/// What stood in before and still can (`previous`: the pair is still down, the spare still up) stays;
/// free spares go to the other down pairs, both in name order.
#[must_use]
pub fn stand_ins(
    shape: &UnitShape,
    previous: &BTreeMap<String, String>,
    up: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    let mut assigned: BTreeMap<String, String> = previous
        .iter()
        .filter(|(pair, spare)| {
            shape.active.contains_key(*pair) && !up(pair) && shape.spares.contains(*spare) && up(spare)
        })
        .map(|(pair, spare)| (pair.clone(), spare.clone()))
        .collect();
    let taken: BTreeSet<String> = assigned.values().cloned().collect();
    let mut free = shape.spares.iter().filter(|spare| up(spare) && !taken.contains(*spare));
    for pair in shape.active.keys() {
        if !up(pair) && !assigned.contains_key(pair) {
            match free.next() {
                Some(spare) => assigned.insert(pair.clone(), spare.clone()),
                None => break,
            };
        }
    }
    assigned
}

/// `balancing-config-hash` of the device: over the units' digests in the order of their names.
pub fn device_hash<'d>(unit_digests: impl Iterator<Item = &'d str>) -> String {
    let mut sha = Sha256::new();
    for digest in unit_digests {
        sha.update(digest);
        sha.update("\n");
    }
    hex(&sha.finalize())
}

fn maglev(names: &[String], weights: &[u8], n: u32) -> Vec<u16> {
    const FREE: u16 = u16::MAX;
    struct Walk {
        pair: u16,
        weight: u8,
        position: u64,
        skip: u64,
    }
    let mask = u64::from(n) - 1;
    let mut walks: Vec<Walk> = names
        .iter()
        .zip(weights)
        .zip(0u16..)
        .map(|((name, weight), pair)| {
            let base = name64(name);
            Walk {
                pair,
                weight: *weight,
                position: mix64(base) & mask,
                skip: (mix64(base.wrapping_add(GOLDEN)) & mask) | 1,
            }
        })
        .collect();
    let mut home = vec![FREE; n as usize];
    let mut left = n;
    while left > 0 {
        for walk in &mut walks {
            let mut wanted = walk.weight;
            while wanted > 0 && left > 0 {
                // The skip is odd and n a power of two, so the walk meets every bucket.
                if let Some(bucket) = home.get_mut(walk.position as usize).filter(|bucket| **bucket == FREE) {
                    *bucket = walk.pair;
                    wanted -= 1;
                    left -= 1;
                }
                walk.position = (walk.position + walk.skip) & mask;
            }
        }
    }
    home
}

fn rendezvous<'t>(candidates: &[(&'t str, u64, u8)], bucket: u64) -> Option<&'t str> {
    let place = bucket.wrapping_mul(GOLDEN);
    let mut best: Option<(u64, &str)> = None;
    for (name, base, weight) in candidates {
        let score = (0..u64::from(*weight))
            .map(|k| mix64(base.wrapping_add(k.wrapping_mul(WEIGHT_STEP)).wrapping_add(place)))
            .max()
            .unwrap_or(0);
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
