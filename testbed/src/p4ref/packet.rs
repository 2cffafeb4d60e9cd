//! A packet on its way through the program: header values, validity, what is left of the bytes.

use std::cell::RefCell;
use std::fmt;

use super::bits::{self, Writer};
use super::layout::{FieldId, HeaderId, Layout, StackId};
use super::value::Value;

/// Something that P4 or BMv2 leaves undefined, so that another target may do otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// A field of an invalid header was read outside of a match key or hash. It reads as what was last there
    /// in this packet, or 0; BMv2 finds what an earlier packet left.
    InvalidField(String),
    /// The last element of an empty stack, or an element beyond its end.
    StackElement(String),
    /// A counter's cell beyond its end; nothing is counted.
    CounterCell(String, u64),
    /// A lookahead beyond the packet's end; it ends the parser as P4 says.
    Lookahead,
    /// A varbit field of a negative or absurd length.
    VarbitLength(String),
    /// A shift by a negative or absurd number, or a division that has no result. The result is 0.
    Arithmetic,
    /// An `assert` or `assume` that does not hold; BMv2 ends its process.
    Assertion(String),
    /// A multicast group other than 0; the packet is dropped.
    Multicast(u64),
    /// More parser states than any packet has bytes for, or a clone of a clone without end.
    Endless,
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undefined::InvalidField(name) => write!(f, "{name} was read while its header is invalid"),
            Undefined::StackElement(name) => write!(f, "stack {name} has no such element"),
            Undefined::CounterCell(name, cell) => write!(f, "counter {name} has no cell {cell}"),
            Undefined::Lookahead => f.write_str("lookahead beyond the end of the packet"),
            Undefined::VarbitLength(name) => write!(f, "{name} was extracted with an impossible length"),
            Undefined::Arithmetic => f.write_str("a shift or division without a result"),
            Undefined::Assertion(place) => write!(f, "assertion failed in {place}"),
            Undefined::Multicast(group) => write!(f, "multicast group {group}: there are none"),
            Undefined::Endless => f.write_str("a loop without end"),
        }
    }
}

/// A request to clone.
#[derive(Clone, Copy, Debug)]
pub(super) struct CloneRequest {
    pub(super) session: u32,
    pub(super) fields: usize,
}

/// The packet.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    values: Vec<Value>,
    valid: Vec<bool>,
    /// Width of each header's varbit field.
    varbits: Vec<usize>,
    /// For each stack, how many elements were extracted or pushed.
    next: Vec<usize>,
    bytes: Vec<u8>,
    /// Bytes that the parser took.
    pub(super) parsed: usize,
    /// Length that BMv2 keeps while headers come and go.
    pub(super) length: i64,
    /// Length at ingress: what counters count.
    pub(super) ingress_length: u64,
    pub(super) exit: bool,
    pub(super) clone: Option<CloneRequest>,
    pub(super) parser_error: usize,
    pub(super) checksum_error: bool,
    undefined: RefCell<Vec<Undefined>>,
}

impl Packet {
    pub(super) fn new(layout: &Layout) -> Self {
        Packet {
            values: vec![Value::ZERO; layout.fields.len()],
            valid: layout.headers.iter().map(|header| header.metadata).collect(),
            varbits: vec![0; layout.headers.len()],
            next: vec![0; layout.stacks.len()],
            bytes: Vec::new(),
            parsed: 0,
            length: 0,
            ingress_length: 0,
            exit: false,
            clone: None,
            parser_error: 0,
            checksum_error: false,
            undefined: RefCell::default(),
        }
    }

    /// Puts these bytes in, and everything else back to how it begins.
    pub(super) fn load(&mut self, layout: &Layout, bytes: &[u8]) {
        self.values.fill(Value::ZERO);
        for (valid, header) in self.valid.iter_mut().zip(&layout.headers) {
            *valid = header.metadata;
        }
        self.varbits.fill(0);
        self.next.fill(0);
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.parsed = 0;
        self.length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        self.ingress_length = bytes.len() as u64;
        self.exit = false;
        self.clone = None;
        self.parser_error = 0;
        self.checksum_error = false;
        self.undefined.borrow_mut().clear();
    }

    pub(super) fn clear_metadata(&mut self, layout: &Layout) {
        for header in layout.headers.iter().filter(|header| header.metadata) {
            self.values[header.fields.clone()].fill(Value::ZERO);
        }
    }

    pub(super) fn note(&self, undefined: Undefined) {
        let mut list = self.undefined.borrow_mut();
        // A list of a thousand equal findings says nothing more.
        if list.len() < 64 {
            list.push(undefined);
        }
    }

    pub(super) fn take_undefined(&self) -> Vec<Undefined> {
        self.undefined.take()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(self.parsed..).unwrap_or_default()
    }

    pub(super) fn is_valid(&self, header: HeaderId) -> bool {
        self.valid[header.0]
    }

    /// A field's value, whatever its header is.
    pub(super) fn raw(&self, field: FieldId) -> &Value {
        &self.values[field.0]
    }

    /// A field's value in an expression. BMv2 does not look at the header's validity there.
    pub(super) fn read(&self, layout: &Layout, field: FieldId) -> &Value {
        if !self.is_valid(layout.field(field).header) {
            self.note(Undefined::InvalidField(layout.field_name(field)));
        }
        self.raw(field)
    }

    /// Bits that the field has now.
    pub(super) fn width(&self, layout: &Layout, field: FieldId) -> usize {
        let layout_field = layout.field(field);
        if layout_field.varbit { self.varbits[layout_field.header.0] } else { layout_field.width as usize }
    }

    /// Writes a field, cut to its width.
    pub(super) fn write(&mut self, layout: &Layout, field: FieldId, value: &Value) {
        let width = u32::try_from(self.width(layout, field)).unwrap_or(u32::MAX);
        self.values[field.0] =
            if layout.field(field).signed { value.signed_bits(width) } else { value.low_bits(width) };
    }

    /// Copies a varbit field, its width included.
    pub(super) fn write_varbit(&mut self, layout: &Layout, to: FieldId, from: FieldId) {
        let width = self.width(layout, from);
        self.varbits[layout.field(to).header.0] = width;
        let value = self.read(layout, from).clone();
        self.write(layout, to, &value);
    }

    /// Bytes that the header takes in the packet now.
    pub(super) fn header_bytes(&self, layout: &Layout, header: HeaderId) -> usize {
        (layout.header(header).fixed_bits + self.varbits[header.0]) / 8
    }

    /// Reads a header from the bytes at `at`; the caller has checked that they are there.
    pub(super) fn extract(&mut self, layout: &Layout, header: HeaderId, at: usize, varbits: usize) {
        self.varbits[header.0] = varbits;
        let mut bit = at * 8;
        for index in layout.header(header).fields.clone() {
            let width = self.width(layout, FieldId(index));
            let value = bits::read(&self.bytes, bit, width);
            bit += width;
            self.values[index] =
                if layout.fields[index].signed { value.signed_bits(width as u32) } else { value };
        }
        self.valid[header.0] = true;
    }

    /// Appends a header's fields.
    pub(super) fn emit(&self, layout: &Layout, header: HeaderId, out: &mut Writer) {
        for index in layout.header(header).fields.clone() {
            out.push(&self.values[index], self.width(layout, FieldId(index)));
        }
    }

    /// BMv2 clears a header that becomes valid by this, and leaves a valid one as it is.
    pub(super) fn add_header(&mut self, layout: &Layout, header: HeaderId) {
        if self.is_valid(header) {
            return;
        }
        self.values[layout.header(header).fields.clone()].fill(Value::ZERO);
        self.valid[header.0] = true;
        self.length += self.header_bytes(layout, header) as i64;
    }

    pub(super) fn remove_header(&mut self, layout: &Layout, header: HeaderId) {
        if self.is_valid(header) {
            self.length -= self.header_bytes(layout, header) as i64;
            self.valid[header.0] = layout.header(header).metadata;
        }
    }

    /// Assigns a whole header: an invalid one makes the other invalid. BMv2's length does not change.
    pub(super) fn assign_header(&mut self, layout: &Layout, to: HeaderId, from: HeaderId) {
        if !self.is_valid(from) {
            self.valid[to.0] = layout.header(to).metadata;
            return;
        }
        self.valid[to.0] = true;
        self.varbits[to.0] = self.varbits[from.0];
        let targets = layout.header(to).fields.clone();
        for (to, from) in targets.zip(layout.header(from).fields.clone()) {
            self.values[to] = self.values[from].clone();
        }
    }

    pub(super) fn headers_equal(&self, layout: &Layout, left: HeaderId, right: HeaderId) -> bool {
        let (l, r) = (layout.header(left), layout.header(right));
        l.kind == r.kind
            && self.is_valid(left)
            && self.is_valid(right)
            && self.varbits[left.0] == self.varbits[right.0]
            && self.values[l.fields.clone()] == self.values[r.fields.clone()]
    }

    pub(super) fn stack_size(&self, stack: StackId) -> usize {
        self.next[stack.0]
    }

    /// The element that the next extraction fills; `None` if the stack is full.
    pub(super) fn stack_next(&self, layout: &Layout, stack: StackId) -> Option<HeaderId> {
        layout.stack(stack).headers.get(self.next[stack.0]).copied()
    }

    /// The element that was filled last.
    pub(super) fn stack_last(&self, layout: &Layout, stack: StackId) -> Option<HeaderId> {
        let last = self.next[stack.0].checked_sub(1);
        let found = last.and_then(|last| layout.stack(stack).headers.get(last).copied());
        if found.is_none() {
            self.note(Undefined::StackElement(layout.stack(stack).name.clone()));
        }
        found
    }

    pub(super) fn stack_element(&self, layout: &Layout, stack: StackId, index: &Value) -> Option<HeaderId> {
        let found = index.to_usize().and_then(|index| layout.stack(stack).headers.get(index).copied());
        if found.is_none() {
            self.note(Undefined::StackElement(layout.stack(stack).name.clone()));
        }
        found
    }

    /// One more element was extracted.
    pub(super) fn stack_filled(&mut self, stack: StackId) {
        self.next[stack.0] += 1;
    }

    pub(super) fn assign_stack(&mut self, layout: &Layout, to: StackId, from: StackId) {
        self.next[to.0] = self.next[from.0];
        let pairs = layout.stack(to).headers.iter().zip(&layout.stack(from).headers);
        for (to, from) in pairs {
            self.assign_header(layout, *to, *from);
        }
    }

    fn swap(&mut self, layout: &Layout, left: HeaderId, right: HeaderId) {
        let fields = layout.header(left).fields.clone().zip(layout.header(right).fields.clone());
        for (left, right) in fields {
            self.values.swap(left, right);
        }
        self.valid.swap(left.0, right.0);
        self.varbits.swap(left.0, right.0);
    }

    /// Shifts a stack's elements towards its end; the first ones become invalid (P4, "push_front").
    pub(super) fn push(&mut self, layout: &Layout, stack: StackId, count: usize) {
        let headers = &layout.stack(stack).headers;
        self.next[stack.0] = self.next[stack.0].saturating_add(count).min(headers.len());
        for index in (count..headers.len()).rev() {
            self.swap(layout, headers[index], headers[index - count]);
        }
        for header in headers.iter().take(count) {
            self.valid[header.0] = false;
        }
    }

    /// Shifts a stack's elements towards its begin; the last ones become invalid (P4, "pop_front").
    pub(super) fn pop(&mut self, layout: &Layout, stack: StackId, count: usize) {
        let headers = &layout.stack(stack).headers;
        self.next[stack.0] = self.next[stack.0].saturating_sub(count);
        for index in 0..headers.len().saturating_sub(count) {
            self.swap(layout, headers[index], headers[index + count]);
        }
        for header in headers.iter().rev().take(count) {
            self.valid[header.0] = false;
        }
    }
}
