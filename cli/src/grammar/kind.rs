//! Values: reading them, and what they can be.

use std::net::IpAddr;

use regex::Regex;

use super::{Args, Argument, Kind, Names};
use crate::commands::{ALIASES, PROTOCOLS};
use crate::render::brief;

impl Kind {
    /// Reads a value.
    ///
    /// # Errors
    /// Says what the value is not.
    pub fn read(&self, text: &str) -> Result<Argument, String> {
        let said = brief(text);
        let number = |min: u64, max: u64| match text.parse::<u64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(format!("\"{said}\" is not a number from {min} to {max}")),
        };
        match self {
            Kind::Name(_) => {
                let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
                if (1..=63).contains(&text.len()) && text.chars().all(valid) {
                    Ok(Argument::Text(text.into()))
                } else {
                    Err(format!("\"{said}\" is not a name; a name is 1 to 63 letters, digits, - _ ."))
                }
            }
            Kind::Number { min, max } => number(*min, *max).map(Argument::Number),
            Kind::Address => match text.parse::<IpAddr>() {
                Ok(address) => Ok(Argument::Text(address.to_string())),
                Err(_) => Err(format!("\"{said}\" is not an IPv4 or IPv6 address")),
            },
            Kind::Protocol => match PROTOCOLS.iter().find(|(name, ..)| *name == text) {
                Some((_, number, _)) => Ok(Argument::Number(u64::from(*number))),
                None => number(0, 255).map(Argument::Number).map_err(|_| {
                    format!("\"{said}\" is not a protocol; expected 0 to 255 or a name such as tcp")
                }),
            },
            Kind::Vlans => text
                .split(',')
                .map(|id| id.parse().ok().filter(|id| *id < 4096))
                .collect::<Option<Vec<u16>>>()
                .map(Argument::Numbers)
                .ok_or_else(|| {
                    format!("\"{said}\" is not a list of VLAN ids; expected 0 to 4095, separated by commas")
                }),
            Kind::Choice(choices) => {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                match resolve(text, &words) {
                    Found::One(index) => Ok(Argument::Text(words[index].into())),
                    Found::Many(some) => Err(format!("\"{said}\" is ambiguous: {}", some.join(", "))),
                    Found::None => Err(format!("\"{said}\" is not one of: {}", words.join(", "))),
                }
            }
            Kind::File if text.is_empty() => Err("a file needs a name".into()),
            Kind::Beginning(_) if text.is_empty() => Err("every name begins with nothing".into()),
            Kind::File | Kind::Text | Kind::Beginning(_) => Ok(Argument::Text(text.into())),
            Kind::Pattern => Regex::new(text).map(Argument::Pattern).map_err(|error| {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default().trim();
                format!("\"{said}\" is not a regular expression: {}", reason.trim_start_matches("error: "))
            }),
        }
    }

    /// What the value can be now, with what each means where that differs.
    pub(super) fn candidates(
        &self,
        partial: &str,
        args: &Args,
        names: &dyn Names,
    ) -> Vec<(String, Option<String>)> {
        match self {
            Kind::Name(source) | Kind::Beginning(source) => {
                names.names(*source, args).into_iter().map(|name| (name, None)).collect()
            }
            Kind::Protocol => PROTOCOLS
                .iter()
                .map(|(name, number, help)| (String::from(*name), Some(format!("{help}, {number}"))))
                .collect(),
            Kind::Choice(choices) => {
                choices.iter().map(|(word, help)| (String::from(*word), Some(String::from(*help)))).collect()
            }
            Kind::File => files(partial).into_iter().map(|file| (file, None)).collect(),
            Kind::Number { .. } | Kind::Address | Kind::Vlans | Kind::Text | Kind::Pattern => Vec::new(),
        }
    }

    /// All values are listed: no placeholder is needed.
    pub(super) fn closed(&self) -> bool {
        matches!(self, Kind::Choice(_))
    }
}

/// Files and directories that begin with what was typed.
fn files(partial: &str) -> Vec<String> {
    let (directory, _) = partial.rfind('/').map_or(("", partial), |at| partial.split_at(at + 1));
    let Ok(entries) = std::fs::read_dir(if directory.is_empty() { "." } else { directory }) else {
        return Vec::new();
    };
    let mut files: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{directory}{}{slash}", entry.file_name().to_str()?))
        })
        .collect();
    files.sort();
    files
}

pub(super) enum Found {
    One(usize),
    Many(Vec<&'static str>),
    None,
}

/// The word that `text` is or stands for, or is the only beginning of.
pub(super) fn resolve(text: &str, words: &[&'static str]) -> Found {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == text).map_or(text, |(_, word)| *word);
    if let Some(index) = words.iter().position(|word| *word == alias) {
        return Found::One(index);
    }
    let begin: Vec<usize> =
        (0..words.len()).filter(|index| !text.is_empty() && words[*index].starts_with(text)).collect();
    match begin[..] {
        [] => Found::None,
        [index] => Found::One(index),
        _ => Found::Many(begin.iter().map(|index| words[*index]).collect()),
    }
}
