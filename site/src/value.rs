//! Values of match conditions: numbers, ranges, MACs and addresses with masks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dataplane::tables::{Masked, PortRange};

use crate::tree::Number;

/// A number within bounds, decimal or 0x....
pub(crate) fn number(text: &Number, low: u64, high: u64) -> Result<u64, String> {
    let wanted = || format!("must be a number {low}..{high}");
    let value = match text {
        Number::Integer(value) => u64::try_from(*value).map_err(|_| wanted())?,
        Number::Text(text) => parse_number(text).ok_or_else(wanted)?,
    };
    if (low..=high).contains(&value) { Ok(value) } else { Err(wanted()) }
}

/// Digits alone: the parsers of the standard library take a sign too.
fn is_number(digits: &str, radix: u32) -> bool {
    !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
}

fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if is_number(digits, radix) { u64::from_str_radix(digits, radix).ok() } else { None }
}

/// `179` or `1024-65535`.
pub(crate) fn port_range(text: &Number) -> Result<PortRange, String> {
    let wanted = || "must be a port 0..65535 or a range such as 1024-65535".to_owned();
    let text = text.to_string();
    let port = |part: &str| {
        let part = part.trim();
        part.parse::<u16>().ok().filter(|_| is_number(part, 10)).ok_or_else(wanted)
    };
    let (low, high) = match text.split_once('-').or_else(|| text.split_once("..")) {
        Some((low, high)) => (port(low)?, port(high)?),
        None => (port(&text)?, port(&text)?),
    };
    if low > high {
        return Err(format!("the range ends at {high}, below its start {low}"));
    }
    Ok(PortRange { low, high })
}

/// `00:11:22:33:44:55`, alone or with `/ff:ff:ff:00:00:00` or a prefix length 0..48.
pub(crate) fn mac(text: &str) -> Result<Masked, String> {
    let wanted = || "must be a MAC such as 00:11:22:33:44:55, alone or with /mask".to_owned();
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => {
            let mask = match mask.parse::<u32>() {
                Ok(length @ 0..=48) if is_number(mask, 10) => {
                    ((1u128 << 48) - 1) & !((1u128 << (48 - length)) - 1)
                }
                _ => mac_number(mask).ok_or_else(wanted)?,
            };
            (mac_number(address).ok_or_else(wanted)?, mask)
        }
        None => (mac_number(text).ok_or_else(wanted)?, (1 << 48) - 1),
    };
    inside(address, mask)
}

fn mac_number(text: &str) -> Option<u128> {
    let mut number = 0;
    let mut octets = 0;
    for octet in text.split([':', '-']) {
        if octet.len() > 2 || !is_number(octet, 16) {
            return None;
        }
        number = number << 8 | u128::from_str_radix(octet, 16).ok()?;
        octets += 1;
    }
    (octets == 6).then_some(number)
}

/// An address condition with its family's version, 4 or 6.
pub(crate) fn address(text: &str) -> Result<(u8, Masked), String> {
    let wanted = || {
        "must be an address, a prefix such as 10.0.0.0/8, or address/mask such as 10.0.0.1/255.0.0.255"
            .to_owned()
    };
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wanted())?;
    let (version, value, bits) = match address {
        IpAddr::V4(v4) => (4, u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (6, u128::from(v6), 128),
    };
    let all = dataplane::schema::all_ones(bits);
    let mask = match mask {
        None => all,
        Some(length) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            let length: u32 = length.parse().map_err(|_| wanted())?;
            if length > bits {
                return Err(format!("prefix length must be 0..{bits}"));
            }
            let host = bits - length;
            if host >= 128 { 0 } else { all & !((1u128 << host) - 1) }
        }
        Some(mask) if version == 4 => u128::from(u32::from(mask.parse::<Ipv4Addr>().map_err(|_| wanted())?)),
        Some(mask) => u128::from(mask.parse::<Ipv6Addr>().map_err(|_| wanted())?),
    };
    inside(value, mask).map(|masked| (version, masked))
}

fn inside(value: u128, mask: u128) -> Result<Masked, String> {
    if value & !mask != 0 {
        return Err("has bits outside its mask: those could never match".to_owned());
    }
    Ok(Masked { value, mask })
}
