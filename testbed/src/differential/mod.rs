//! The differential test: the software pipeline and the compiled P4 program get the same tables and the same frames,
//! and must give the same answers, byte for byte and counter for counter.
//!
//! Tables ([`contents`]) and frames ([`frames`], [`traffic`]) come from a seed; [`compare`] puts two data planes
//! ([`plane`]) side by side; a difference is shrunk ([`shrink`]) and written as a vector file ([`vector`]).

pub mod bmv2;
pub mod bytes;
pub mod command;
pub mod compare;
pub mod contents;
pub mod coverage;
pub mod entry_text;
pub mod frames;
pub mod plane;
pub mod reference;
mod rules;
pub mod run;
pub mod shrink;
pub mod software;
pub mod traffic;
pub mod vector;
mod wire;
