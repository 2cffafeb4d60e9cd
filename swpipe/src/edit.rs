//! The steering header on its way in and out of a frame.

use dataplane::steering::{STEERING_HEADER, STEERING_OFFSET};

use crate::io::Edit;

/// The frame as it leaves. Allocates: for replay and tests, not for the frame path.
#[must_use]
pub fn edited(frame: &[u8], edit: Edit) -> Vec<u8> {
    let (macs, rest) = frame.split_at(STEERING_OFFSET.min(frame.len()));
    match edit {
        Edit::Keep => frame.to_vec(),
        Edit::Push(header) => [macs, &header, rest].concat(),
        Edit::Pop => [macs, rest.get(STEERING_HEADER..).unwrap_or(&[])].concat(),
    }
}
