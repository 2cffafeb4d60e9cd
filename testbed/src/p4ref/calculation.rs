//! Hashes over fields, and the checksums that use them.

use std::collections::HashMap;

use super::bits::Writer;
use super::error::LoadError;
use super::expression::{Bool, Scope, View};
use super::layout::{FieldId, HeaderId, Layout};
use super::node::Node;
use super::packet::Packet;
use super::value::Value;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Crc32,
    Crc16,
    /// Internet checksum.
    Csum16,
    /// The first 64 bits.
    Identity,
    Xor16,
}

impl Algorithm {
    /// The `custom` ones have the plain ones' polynomials until someone changes them, which P4Runtime cannot.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "crc32" | "crc32_custom" => Algorithm::Crc32,
            "crc16" | "crc16_custom" => Algorithm::Crc16,
            "csum16" | "cksum16" => Algorithm::Csum16,
            "identity" => Algorithm::Identity,
            "xor16" => Algorithm::Xor16,
            _ => return None,
        })
    }

    fn of(self, bytes: &[u8]) -> u64 {
        match self {
            Algorithm::Crc32 => crc32fast::hash(bytes).into(),
            Algorithm::Crc16 => crc16(bytes).into(),
            Algorithm::Csum16 => csum16(bytes).into(),
            Algorithm::Identity => {
                bytes.iter().take(8).fold(0, |value, byte| (value << 8) | u64::from(*byte))
            }
            Algorithm::Xor16 => words(bytes).fold(0, |value, word| value ^ word).into(),
        }
    }
}

/// 16-bit words, the last one filled up with zeros.
fn words(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or_default()]))
}

/// RFC 1071.
fn csum16(bytes: &[u8]) -> u16 {
    let mut sum: u64 = words(bytes).map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// CRC-16/ARC: reflected polynomial 0x8005, initial value 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8)
            .fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xa001 } else { crc >> 1 })
    })
}

#[derive(Clone, Debug)]
enum Input {
    Field(FieldId),
    Const(Value, usize),
    Header(HeaderId),
}

/// A hash and what it is taken over.
#[derive(Clone, Debug)]
pub(super) struct Calculation {
    algorithm: Algorithm,
    input: Vec<Input>,
    payload: bool,
}

/// Place in the list of calculations.
#[derive(Clone, Copy, Debug)]
pub(super) struct CalculationId(pub(super) usize);

/// All calculations.
#[derive(Debug, Default)]
pub(super) struct Calculations {
    list: Vec<Calculation>,
    names: HashMap<String, CalculationId>,
}

impl Calculations {
    pub(super) fn load(root: &Node<'_>, layout: &Layout) -> Result<Self, LoadError> {
        let mut all = Calculations::default();
        for node in root.get("calculations").list()? {
            let algo = node.get("algo");
            let Some(algorithm) = Algorithm::named(algo.text()?) else {
                return algo.unsupported("hash algorithm", algo.text()?);
            };
            let mut calculation = Calculation { algorithm, input: Vec::new(), payload: false };
            for input in node.get("input").list()? {
                let value = input.get("value");
                match input.get("type").text()? {
                    "field" => calculation.input.push(Input::Field(layout.named_field(&value)?)),
                    "hexstr" => {
                        let bits = input.get("bitwidth").number()?;
                        calculation.input.push(Input::Const(value.hex()?, bits));
                    }
                    "header" => calculation.input.push(Input::Header(layout.named_header(&value)?)),
                    "payload" => calculation.payload = true,
                    other => return input.unsupported("input of a calculation", other),
                }
            }
            let id = CalculationId(all.list.len());
            all.names.insert(node.get("name").text()?.to_owned(), id);
            all.list.push(calculation);
        }
        Ok(all)
    }

    pub(super) fn named(&self, node: &Node<'_>) -> Result<CalculationId, LoadError> {
        let name = node.text()?;
        self.names.get(name).copied().ok_or_else(|| node.unknown("calculation", name))
    }

    /// The hash. BMv2 leaves out fields of invalid headers, and what follows moves up; after the last field the
    /// byte is filled up with zeros.
    pub(super) fn output(&self, id: CalculationId, layout: &Layout, packet: &Packet) -> u64 {
        let calculation = &self.list[id.0];
        let mut buffer = Writer::default();
        for input in &calculation.input {
            match input {
                Input::Field(field) => {
                    if packet.is_valid(layout.field(*field).header) {
                        buffer.push(packet.raw(*field), packet.width(layout, *field));
                    }
                }
                Input::Const(value, bits) => buffer.push(value, *bits),
                Input::Header(header) => {
                    if packet.is_valid(*header) {
                        packet.emit(layout, *header, &mut buffer);
                    }
                }
            }
        }
        if calculation.payload {
            buffer.extend(packet.payload());
        }
        calculation.algorithm.of(&buffer.finish())
    }
}

/// A checksum that is verified after the parser, or written before the deparser, or both.
#[derive(Debug)]
pub(super) struct Checksum {
    target: FieldId,
    calculation: CalculationId,
    condition: Option<Bool>,
    verify: bool,
    update: bool,
}

impl Checksum {
    pub(super) fn load_all(
        root: &Node<'_>,
        layout: &Layout,
        calculations: &Calculations,
    ) -> Result<Vec<Self>, LoadError> {
        let scope = Scope { layout, params: 0 };
        let load = |node: &Node<'_>| {
            let kind = node.get("type").text()?;
            if kind != "generic" {
                return node.get("type").unsupported("type of checksum", kind);
            }
            let condition = node.get("if_cond");
            Ok(Checksum {
                target: layout.named_field(&node.get("target"))?,
                calculation: calculations.named(&node.get("calculation"))?,
                condition: if condition.is_null() { None } else { Some(scope.bool(&condition)?) },
                verify: node.get("verify").flag_or(true)?,
                update: node.get("update").flag_or(true)?,
            })
        };
        root.get("checksums").list()?.iter().map(load).collect()
    }

    fn applies(&self, layout: &Layout, packet: &Packet) -> bool {
        let view = View { layout, packet, params: &[] };
        self.condition.as_ref().is_none_or(|condition| view.bool(condition))
    }

    /// Whether the target has the right value. BMv2 skips a checksum whose target's header is invalid.
    pub(super) fn is_right(&self, layout: &Layout, calculations: &Calculations, packet: &Packet) -> bool {
        if !self.verify || !packet.is_valid(layout.field(self.target).header) || !self.applies(layout, packet)
        {
            return true;
        }
        calculations.output(self.calculation, layout, packet) == packet.raw(self.target).low_u64()
    }

    /// Writes the target, if this checksum is one of the deparser's and its condition holds.
    pub(super) fn update(&self, layout: &Layout, calculations: &Calculations, packet: &mut Packet) {
        if self.update && self.applies(layout, packet) {
            let value = calculations.output(self.calculation, layout, packet);
            packet.write(layout, self.target, &value.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_algorithms() {
        let text = b"123456789";
        assert_eq!(Algorithm::Crc32.of(text), 0xcbf4_3926);
        assert_eq!(Algorithm::Crc16.of(text), 0xbb3d);
        assert_eq!(Algorithm::Identity.of(text), 0x3132_3334_3536_3738);
        assert_eq!(Algorithm::Xor16.of(&[1, 2, 3]), 0x0202);
        assert_eq!(Algorithm::named("random"), None);
    }

    /// RFC 1071, section 3: the sum of the example is 0xddf2.
    #[test]
    fn internet_checksum_of_the_rfc() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Algorithm::Csum16.of(&bytes), 0x220d);
        assert_eq!(csum16(&[0xff]), !0xff00);
        assert_eq!(csum16(&[]), 0xffff);
    }
}
