//! Requests and what is answered (RFC 2741 section 7.2), without a socket.

use crate::{Binding, Body, ResponseError, SearchRange, Value, View};

/// A response is not longer than this, in octets of varbinds; a GetBulk may be answered with less than it asks for
/// (section 7.2.3.3).
const ENOUGH: usize = 48 * 1024;

/// The response to a request; `None` where none is due. A context other than the default one has no objects.
#[must_use]
pub fn answer(view: &dyn View, request: &Body) -> Option<Body> {
    let (error, index, bindings) = match request {
        Body::Get { context, ranges } => {
            let value = |range: &SearchRange| match context {
                None => view.get(&range.start),
                Some(_) => Value::NoSuchObject,
            };
            let bindings =
                ranges.iter().map(|range| Binding::new(range.start.clone(), value(range))).collect();
            (ResponseError::NONE, 0, bindings)
        }
        Body::GetNext { context, ranges } => {
            let bindings = ranges.iter().map(|range| next(view, context.is_none(), range)).collect();
            (ResponseError::NONE, 0, bindings)
        }
        Body::GetBulk { context, non_repeaters, max_repetitions, ranges } => {
            let bindings = bulk(view, context.is_none(), *non_repeaters, *max_repetitions, ranges);
            (ResponseError::NONE, 0, bindings)
        }
        // Nothing here can be set, whatever it is.
        Body::TestSet { .. } => (ResponseError::NOT_WRITABLE, 1, Vec::new()),
        Body::CommitSet => (ResponseError::COMMIT_FAILED, 1, Vec::new()),
        Body::UndoSet => (ResponseError::UNDO_FAILED, 1, Vec::new()),
        Body::CleanupSet | Body::Response { .. } | Body::Close { .. } => return None,
        // A master agent asks for none of these.
        Body::Open { .. }
        | Body::Register(_)
        | Body::Unregister(_)
        | Body::Notify { .. }
        | Body::Ping { .. }
        | Body::IndexAllocate(_)
        | Body::IndexDeallocate(_)
        | Body::AddAgentCaps { .. }
        | Body::RemoveAgentCaps { .. } => (ResponseError::PROCESSING_ERROR, 0, Vec::new()),
    };
    Some(Body::Response { uptime: 0, error, index, bindings })
}

fn next(view: &dyn View, known: bool, range: &SearchRange) -> Binding {
    let found = if known { view.next(&range.start, range.include) } else { None };
    match found {
        Some(binding) if range.end.is_empty() || binding.name < range.end => binding,
        _ => Binding::new(range.start.clone(), Value::EndOfMibView),
    }
}

fn bulk(
    view: &dyn View,
    known: bool,
    non_repeaters: u16,
    repetitions: u16,
    ranges: &[SearchRange],
) -> Vec<Binding> {
    let (once, repeated) = ranges.split_at(ranges.len().min(non_repeaters.into()));
    let mut bindings: Vec<Binding> = once.iter().map(|range| next(view, known, range)).collect();
    let mut size: usize = bindings.iter().map(octets).sum();
    let mut ranges = repeated.to_vec();
    for _ in 0..repetitions {
        let from = bindings.len();
        for range in &mut ranges {
            let binding = next(view, known, range);
            size += octets(&binding);
            (range.start, range.include) = (binding.name.clone(), false);
            bindings.push(binding);
        }
        if size >= ENOUGH || bindings[from..].iter().all(|binding| binding.value == Value::EndOfMibView) {
            break;
        }
    }
    bindings
}

/// About as many as it has on the wire.
fn octets(binding: &Binding) -> usize {
    let value = match &binding.value {
        Value::OctetString(octets) | Value::Opaque(octets) => octets.len(),
        Value::ObjectIdentifier(oid) => oid.parts().len() * 4,
        _ => 8,
    };
    16 + binding.name.parts().len() * 4 + value
}
