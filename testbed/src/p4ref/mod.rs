//! The reference interpreter of compiled P4: what p4c makes of a v1model program for BMv2, run in Rust, with
//! P4Runtime in front of it.
//!
//! It is an independent check of the program: it knows the format and BMv2's meaning of it, and of the data plane
//! only what the P4Info says. It is simple rather than fast. Whatever it does not implement is refused by name when
//! a program is loaded, and where a program relies on what P4 or BMv2 leaves undefined, [`Output`] says so.
//!
//! ```
//! use std::sync::Arc;
//! use testbed::p4ref::{Program, Switch, read_info};
//!
//! # fn example(json: &str, info: &str) -> Result<(), testbed::p4ref::LoadError> {
//! let program = Program::load(json, &read_info(info)?)?;
//! let mut switch = Switch::new(Arc::new(program)).with_cpu_port(510);
//! let output = switch.process(1, &[0; 60], 0);
//! println!("{} packets left", output.sent.len());
//! # Ok(())
//! # }
//! ```

mod action;
mod bits;
mod calculation;
mod config;
mod counter;
mod entry;
mod error;
mod expression;
mod info;
mod layout;
mod node;
mod packet;
mod parser;
mod pipeline;
mod program;
mod read;
mod restriction;
pub mod run;
mod server;
mod session;
mod switch;
mod table;
mod value;
mod write;

pub use counter::Count;
pub use error::LoadError;
pub use info::read_info;
pub use packet::Undefined;
pub use program::Program;
pub use server::{Server, Transmit};
pub use switch::{Output, Switch};
