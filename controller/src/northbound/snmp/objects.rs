//! Where the objects of `configs/mib/SLUICE-MIB.txt` are, and how values are written.

use agentx::{Oid, Value};

/// `sluiceMIB`: what is under `enterprises`, 32473 being the number for documentation (RFC 5612). Whoever has a
/// number of his own puts it here and into the MIB.
const ROOT: [u32; 8] = [1, 3, 6, 1, 4, 1, 32473, 1];

/// The groups below `sluiceObjects`.
pub(super) const SYSTEM: u32 = 1;
pub(super) const LINK: u32 = 2;
pub(super) const UNIT: u32 = 3;
pub(super) const PAIR: u32 = 4;
pub(super) const PATH: u32 = 5;
pub(super) const PORT: u32 = 6;
pub(super) const VERDICT: u32 = 7;
pub(super) const FLOW: u32 = 8;
pub(super) const EVENT: u32 = 9;

pub(super) fn root() -> Oid {
    Oid::new(ROOT)
}

/// Below `sluiceObjects`.
pub(super) fn objects(below: impl IntoIterator<Item = u32>) -> Oid {
    root().child([1].into_iter().chain(below))
}

/// Words and their numbers in an enumeration.
pub(super) type Words = &'static [(&'static str, i32)];

pub(super) const METHODS: Words = &[("layer-3", 1), ("layer-4", 2), ("dst-ip", 3), ("src-ip", 4)];
pub(super) const STEERING: Words = &[("native", 1), ("dot1q", 2)];
pub(super) const STANDINGS: Words = &[("primary", 1), ("backup", 2), ("lost", 3), ("unusable", 4)];
pub(super) const UNIT_STATES: Words = &[("up", 1), ("bypass", 2), ("primary", 3), ("backup", 4)];
pub(super) const UNIT_MODES: Words = &[("auto", 1), ("bypass", 2), ("primary", 3)];
pub(super) const FAIL_ACTIONS: Words = &[("bypass", 1), ("drop", 2)];
pub(super) const PAIR_STATES: Words =
    &[("init", 1), ("up", 2), ("down", 3), ("admin-down", 4), ("draining", 5), ("held", 6)];
pub(super) const ROLES: Words = &[("active", 1), ("spare", 2)];
pub(super) const VERDICTS: Words =
    &[("to-ecofilter", 1), ("return", 2), ("to-controller", 3), ("bypass", 4), ("drop", 5)];
pub(super) const ACTIONS: Words = &[("bypass", 1), ("drop", 2), ("to-ecofilter", 3)];

/// The number of a word; `None` where the MIB does not have it.
pub(super) fn word(text: &str, words: Words) -> Option<Value> {
    words.iter().find(|(word, _)| *word == text).map(|(_, number)| Value::Integer(*number))
}

/// A TruthValue.
pub(super) fn truth(value: bool) -> Option<Value> {
    Some(Value::Integer(if value { 1 } else { 2 }))
}

/// Octets of a DisplayString: 255 at most, ASCII; what is not is a question mark.
pub(super) fn ascii(text: &str) -> Vec<u8> {
    let shown = |letter: char| if (' '..='~').contains(&letter) { letter as u8 } else { b'?' };
    text.chars().take(255).map(shown).collect()
}

pub(super) fn text(text: &str) -> Option<Value> {
    Some(Value::OctetString(ascii(text)))
}

/// Empty where there is none.
pub(super) fn optional(value: Option<&String>) -> Option<Value> {
    text(value.map(String::as_str).unwrap_or_default())
}

pub(super) fn counter(value: u64) -> Option<Value> {
    Some(Value::Counter64(value))
}

/// A Counter32, which begins again after 2^32.
pub(super) fn counter32(value: u64) -> Option<Value> {
    Some(Value::Counter32(value as u32))
}

pub(super) fn gauge(value: u64) -> Option<Value> {
    Some(Value::gauge(value))
}

pub(super) fn stamp(value: u32) -> Option<Value> {
    Some(Value::TimeTicks(value))
}
