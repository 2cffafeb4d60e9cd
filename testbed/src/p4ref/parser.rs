//! The parser.

use std::collections::HashMap;

use super::action::{Action, Machine, Names};
use super::bits;
use super::error::LoadError;
use super::expression::{Bool, Data, Scope, View};
use super::layout::{FieldId, HeaderId, Layout, Named, StackId};
use super::node::Node;
use super::packet::{Packet, Undefined};
use super::value::Value;

/// States that one packet may visit: more than a jumbo frame has bytes.
const STEPS: usize = 1 << 14;

/// Errors of the core library, as the program numbers them.
#[derive(Clone, Copy, Debug)]
struct Errors {
    no_error: usize,
    packet_too_short: usize,
    stack_out_of_bounds: usize,
    header_too_short: usize,
    invalid_argument: usize,
}

impl Errors {
    /// Those that the program does not name get numbers after the others, as in BMv2.
    fn load(root: &Node<'_>) -> Result<Self, LoadError> {
        let mut numbers = HashMap::new();
        for node in root.get("errors").list()? {
            let [name, number] = node.exactly("an error and its number")?;
            numbers.insert(name.text()?, number.number()?);
        }
        let mut next = numbers.values().max().map_or(0, |last| last + 1);
        let mut of = |name| {
            *numbers.entry(name).or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
        Ok(Errors {
            no_error: of("NoError"),
            packet_too_short: of("PacketTooShort"),
            stack_out_of_bounds: of("StackOutOfBounds"),
            header_too_short: of("HeaderTooShort"),
            invalid_argument: of("ParserInvalidArgument"),
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Header(HeaderId),
    Stack(StackId),
}

#[derive(Debug)]
enum Op {
    Extract(Target),
    ExtractVarbit(Target, Data),
    Set(FieldId, Data),
    SetLookahead(FieldId, usize, usize),
    Verify(Bool, Data),
    /// Bits.
    Advance(Data),
    Run(Action),
}

#[derive(Debug)]
enum Key {
    Data(Data),
    Lookahead(usize, usize),
}

#[derive(Debug)]
struct Case {
    /// Value and mask for each element of the key.
    wanted: Vec<(u128, u128)>,
    next: Option<usize>,
}

#[derive(Debug)]
struct State {
    ops: Vec<Op>,
    key: Vec<Key>,
    cases: Vec<Case>,
    otherwise: Option<usize>,
}

/// The parser.
#[derive(Debug)]
pub(super) struct Parser {
    states: Vec<State>,
    first: Option<usize>,
    errors: Errors,
}

impl Parser {
    pub(super) fn load(root: &Node<'_>, names: Names<'_>) -> Result<Self, LoadError> {
        let errors = Errors::load(root)?;
        let [node] = root.get("parsers").exactly("one parser")?;
        let nodes = node.get("parse_states").list()?;
        let mut numbers = HashMap::new();
        for (number, state) in nodes.iter().enumerate() {
            numbers.insert(state.get("name").text()?, number);
        }
        let number = |node: &Node<'_>| match node.maybe_text()? {
            None => Ok(None),
            Some(name) => match numbers.get(name) {
                Some(number) => Ok(Some(*number)),
                None => Err(node.unknown("parser state", name)),
            },
        };
        let states =
            nodes.iter().map(|state| State::load(state, names, number)).collect::<Result<Vec<_>, _>>()?;
        Ok(Parser { states, first: number(&node.get("init_state"))?, errors })
    }

    /// Parses the packet. An error ends it; what was extracted stays, and the rest is payload.
    pub(super) fn parse(&self, machine: &mut Machine<'_>) {
        machine.packet.parser_error = self.errors.no_error;
        let mut at = 0;
        let mut next = self.first;
        let mut steps = 0;
        while let Some(state) = next.and_then(|number| self.states.get(number)) {
            match state.run(machine, &mut at, &self.errors) {
                Ok(following) => next = following,
                Err(error) => {
                    machine.packet.parser_error = error;
                    break;
                }
            }
            steps += 1;
            if steps > STEPS {
                machine.packet.note(Undefined::Endless);
                break;
            }
        }
        machine.packet.parsed = at;
    }
}

/// Width in bits of an element of a key.
fn key_bits(layout: &Layout, node: &Node<'_>) -> Result<(Key, usize), LoadError> {
    let value = node.get("value");
    let (key, bits) = match node.get("type").text()? {
        "field" => match layout.named(&value)? {
            Named::Field(field) => (Key::Data(Data::Field(field)), layout.field(field).width as usize),
            Named::Valid(_) => return value.unsupported("part of a select", "$valid$"),
        },
        "stack_field" => {
            let (stack, offset) = layout.stack_field(&value)?;
            let first = layout.stack(stack).headers.first().copied();
            let field = first.and_then(|header| layout.header(header).field(offset));
            let bits = field.map_or(0, |field| layout.field(field).width as usize);
            (Key::Data(Data::Last(stack, offset)), bits)
        }
        "lookahead" => {
            let [offset, bits] = value.exactly("an offset and a width")?;
            let (offset, bits) = (offset.number()?, bits.number()?);
            (Key::Lookahead(offset, bits), bits)
        }
        other => return node.unsupported("part of a select", other),
    };
    if !(1..=128).contains(&bits) {
        return node.unsupported("part of a select", format!("of {bits} bits"));
    }
    Ok((key, bits))
}

/// Splits a padded value or mask into the elements of the key.
fn split(node: &Node<'_>, widths: &[usize]) -> Result<Vec<u128>, LoadError> {
    let text = node.text()?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let total: usize = widths.iter().map(|bits| bits.div_ceil(8)).sum();
    if digits.len() != 2 * total {
        return node.wrong("a value with as many bytes as the key");
    }
    let value = node.hex()?;
    let bytes = value.to_bytes(total);
    let mut rest = bytes.as_slice();
    Ok(widths
        .iter()
        .map(|bits| {
            let (element, others) = rest.split_at(bits.div_ceil(8));
            rest = others;
            Value::from_bytes(element).low_u128()
        })
        .collect())
}

impl State {
    fn load(
        node: &Node<'_>,
        names: Names<'_>,
        number: impl Fn(&Node<'_>) -> Result<Option<usize>, LoadError>,
    ) -> Result<Self, LoadError> {
        let ops = node.get("parser_ops").list()?;
        let ops = ops.iter().map(|op| Op::load(op, names)).collect::<Result<Vec<_>, _>>()?;
        let mut key = Vec::new();
        let mut widths = Vec::new();
        for element in node.get("transition_key").list()? {
            let (element, bits) = key_bits(names.layout, &element)?;
            key.push(element);
            widths.push(bits);
        }
        let mut cases = Vec::new();
        let mut otherwise = None;
        for transition in node.get("transitions").list()? {
            let next = number(&transition.get("next_state"))?;
            match transition.get("type").text()? {
                "default" => otherwise = next,
                "hexstr" => {
                    let values = split(&transition.get("value"), &widths)?;
                    let mask = transition.get("mask");
                    let masks =
                        if mask.is_null() { vec![u128::MAX; values.len()] } else { split(&mask, &widths)? };
                    let wanted = values.into_iter().zip(masks).map(|(value, mask)| (value & mask, mask));
                    cases.push(Case { wanted: wanted.collect(), next });
                }
                other => return transition.unsupported("type of transition", other),
            }
        }
        Ok(State { ops, key, cases, otherwise })
    }

    fn run(
        &self,
        machine: &mut Machine<'_>,
        at: &mut usize,
        errors: &Errors,
    ) -> Result<Option<usize>, usize> {
        for op in &self.ops {
            op.run(machine, at, errors)?;
        }
        if self.key.is_empty() {
            return Ok(self.otherwise);
        }
        let (layout, packet) = (machine.layout, &*machine.packet);
        let view = View { layout, packet, params: &[] };
        let key = self
            .key
            .iter()
            .map(|key| match key {
                Key::Data(Data::Last(stack, _)) if packet.stack_size(*stack) == 0 => {
                    packet.note(Undefined::StackElement(layout.stack(*stack).name.clone()));
                    Err(errors.stack_out_of_bounds)
                }
                Key::Data(data) => Ok(view.data(data).low_u128()),
                // BMv2 reads past the end here without looking; P4 says that this is an error.
                Key::Lookahead(offset, bits) => {
                    lookahead(packet, *at, *offset, *bits, errors).map(|value| value.low_u128())
                }
            })
            .collect::<Result<Vec<u128>, usize>>()?;
        let found = self.cases.iter().find(|case| {
            case.wanted.iter().zip(&key).all(|((value, mask), element)| element & mask == *value)
        });
        Ok(found.map_or(self.otherwise, |case| case.next))
    }
}

/// P4, "lookahead": an error where the packet is too short. BMv2 looks at the width alone in an assignment and
/// not at all in a select, so the rest is noted.
fn lookahead(
    packet: &Packet,
    at: usize,
    offset: usize,
    bits: usize,
    errors: &Errors,
) -> Result<Value, usize> {
    if (at * 8 + offset + bits).div_ceil(8) > packet.bytes().len() {
        packet.note(Undefined::Lookahead);
        return Err(errors.packet_too_short);
    }
    Ok(bits::read(packet.bytes(), at * 8 + offset, bits))
}

impl Op {
    fn load(node: &Node<'_>, names: Names<'_>) -> Result<Self, LoadError> {
        let layout = names.layout;
        let scope = Scope { layout, params: 0 };
        let params = node.get("parameters");
        Ok(match node.get("op").text()? {
            "extract" => {
                let [target] = params.exactly("one parameter")?;
                let (to, varbit) = extract_target(layout, &target)?;
                if varbit {
                    return target.unsupported("extraction of a varbit header", "without a length");
                }
                Op::Extract(to)
            }
            "extract_VL" => {
                let [target, length] = params.exactly("two parameters")?;
                let (to, varbit) = extract_target(layout, &target)?;
                if !varbit {
                    return target.wrong("a header with a varbit field");
                }
                Op::ExtractVarbit(to, scope.data(&length)?)
            }
            "set" => {
                let [to, from] = params.exactly("two parameters")?;
                if to.get("type").text()? != "field" {
                    return to.wrong("a field");
                }
                let to = layout.named_field(&to.get("value"))?;
                match from.get("type").text()? {
                    "lookahead" => {
                        let [offset, bits] = from.get("value").exactly("an offset and a width")?;
                        Op::SetLookahead(to, offset.number()?, bits.number()?)
                    }
                    "field" if layout.field(to).varbit => {
                        return from.unsupported("assignment in a parser", "of a varbit field");
                    }
                    _ => Op::Set(to, scope.data(&from)?),
                }
            }
            "verify" => {
                let [condition, error] = params.exactly("two parameters")?;
                Op::Verify(scope.bool(&condition)?, scope.data(&error)?)
            }
            "advance" => Op::Advance(scope.data(&params.exactly::<1>("one parameter")?[0])?),
            "shift" => {
                let bytes = params.exactly::<1>("one parameter")?[0].number()?;
                Op::Advance(Data::Const(Value::Small(8 * bytes as i128)))
            }
            "primitive" => {
                let [primitive] = params.exactly("one primitive")?;
                Op::Run(Action::single(&primitive, names, "the parser")?)
            }
            other => return node.get("op").unsupported("parser operation", other),
        })
    }

    fn run(&self, machine: &mut Machine<'_>, at: &mut usize, errors: &Errors) -> Result<(), usize> {
        let layout = machine.layout;
        let view = View { layout, packet: machine.packet, params: &[] };
        let left = machine.packet.bytes().len() - *at;
        match self {
            Op::Extract(target) => {
                let header = target.header(layout, machine.packet, errors)?;
                let bytes = layout.header(header).fixed_bits / 8;
                if bytes > left {
                    return Err(errors.packet_too_short);
                }
                machine.packet.extract(layout, header, *at, 0);
                *at += bytes;
                target.filled(machine.packet);
            }
            Op::ExtractVarbit(target, length) => {
                let length = view.data(length);
                let header = target.header(layout, machine.packet, errors)?;
                let kind = layout.header(header);
                // BMv2 takes the length as 32 bits with a sign.
                let Some(varbits) = length.to_usize().filter(|bits| i32::try_from(*bits).is_ok()) else {
                    machine.packet.note(Undefined::VarbitLength(kind.name.clone()));
                    return Err(errors.header_too_short);
                };
                if varbits % 8 != 0 {
                    return Err(errors.invalid_argument);
                }
                let bytes = (kind.fixed_bits + varbits) / 8;
                if bytes > left {
                    return Err(errors.packet_too_short);
                }
                if kind.max_bytes != 0 && bytes > kind.max_bytes {
                    return Err(errors.header_too_short);
                }
                machine.packet.extract(layout, header, *at, varbits);
                *at += bytes;
                target.filled(machine.packet);
            }
            Op::Set(to, from) => {
                let value = view.data(from);
                machine.packet.write(layout, *to, &value);
            }
            Op::SetLookahead(to, offset, bits) => {
                let value = lookahead_assigned(machine.packet, *at, *offset, *bits, errors)?;
                machine.packet.write(layout, *to, &value);
            }
            Op::Verify(condition, error) => {
                if !view.bool(condition) {
                    return Err(view.data(error).to_usize().unwrap_or_default());
                }
            }
            Op::Advance(bits) => {
                let bits = view.data(bits).to_usize();
                let Some(bits) = bits else {
                    return Err(errors.packet_too_short);
                };
                if bits % 8 != 0 {
                    return Err(errors.invalid_argument);
                }
                if bits / 8 > left {
                    return Err(errors.packet_too_short);
                }
                *at += bits / 8;
            }
            Op::Run(action) => action.run(machine, &[]),
        }
        Ok(())
    }
}

/// A lookahead that is assigned: where BMv2 has the same error, nothing is noted.
fn lookahead_assigned(
    packet: &Packet,
    at: usize,
    offset: usize,
    bits: usize,
    errors: &Errors,
) -> Result<Value, usize> {
    if packet.bytes().len() - at < bits.div_ceil(8) {
        return Err(errors.packet_too_short);
    }
    lookahead(packet, at, offset, bits, errors)
}

fn extract_target(layout: &Layout, node: &Node<'_>) -> Result<(Target, bool), LoadError> {
    let value = node.get("value");
    let (target, header) = match node.get("type").text()? {
        "regular" => {
            let header = layout.named_header(&value)?;
            (Target::Header(header), Some(header))
        }
        "stack" => {
            let stack = layout.named_stack(&value)?;
            (Target::Stack(stack), layout.stack(stack).headers.first().copied())
        }
        other => return node.unsupported("target of an extraction", other),
    };
    let bits = header.map_or(0, |header| layout.header(header).fixed_bits);
    if bits % 8 != 0 {
        return value.wrong("a header of whole bytes");
    }
    Ok((target, header.is_some_and(|header| layout.header(header).varbit.is_some())))
}

impl Target {
    fn header(self, layout: &Layout, packet: &Packet, errors: &Errors) -> Result<HeaderId, usize> {
        match self {
            Target::Header(header) => Ok(header),
            Target::Stack(stack) => packet.stack_next(layout, stack).ok_or(errors.stack_out_of_bounds),
        }
    }

    fn filled(self, packet: &mut Packet) {
        if let Target::Stack(stack) = self {
            packet.stack_filled(stack);
        }
    }
}
