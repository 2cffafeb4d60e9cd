//! Answers as text.
//!
//! Tables fit 80 columns unless names are long; cells never hold blanks except in the last column, so
//! that scripts can cut them. `-` is an empty cell. Nothing is ever cut off.

mod candidate;
mod configuration;
mod quantity;
mod screen;
mod table;

pub use candidate::*;
pub use configuration::{configuration, directory};
pub use quantity::{bytes, count, duration, percent, rate, time};
pub use screen::*;
pub use table::{Cell, Fields, Style, Table, Tone, brief, harmless, harmless_lines};
