//! `sluice`: the operator's command line.
//!
//! A line goes through [`token`], [`grammar`] with the table in [`commands`], [`execute`] which asks
//! sluiced by a [`session`], [`render`], [`filter`] and [`terminal`].
#![forbid(unsafe_code)]

pub mod commands;
pub mod execute;
pub mod filter;
pub mod grammar;
pub mod help;
pub mod monitor;
pub mod render;
pub mod script;
pub mod session;
pub mod shell;
pub mod terminal;
pub mod token;
