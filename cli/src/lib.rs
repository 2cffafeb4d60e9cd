//! `sluice`: the operator's command line.
//!
//! A line goes through [`token`], [`grammar`] with the table in [`commands`], [`execute`] which asks
//! sluiced by a [`session`], [`render`], [`filter`] and [`terminal`].
#![forbid(unsafe_code)]

pub mod commands;
mod configuration;
pub mod desk;
pub mod execute;
pub mod filter;
pub mod grammar;
pub mod help;
pub mod monitor;
pub mod ping;
pub mod render;
pub mod screen;
pub mod script;
pub mod session;
pub mod shell;
pub mod terminal;
pub mod token;
pub mod words;
