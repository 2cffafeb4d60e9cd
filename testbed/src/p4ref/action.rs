//! Actions: lists of primitives, compiled once.

use super::calculation::{CalculationId, Calculations};
use super::counter::{CounterArrays, CounterId};
use super::error::LoadError;
use super::expression::{Data, Expression, HeaderRef, Scope, View};
use super::layout::{FieldId, HeaderId, Layout, StackId};
use super::node::Node;
use super::packet::{CloneRequest, Packet, Undefined};
use super::value::Value;

/// Port that BMv2 drops packets by.
pub(super) const DROP_PORT: u64 = 511;

/// Something that can be assigned to.
#[derive(Clone, Debug)]
enum Place {
    Field(FieldId),
    Last(StackId, usize),
    Member(HeaderRef, usize),
}

#[derive(Clone, Debug)]
enum Primitive {
    Assign(Place, Data),
    AssignVarbit(FieldId, FieldId),
    AssignHeader(HeaderRef, HeaderRef),
    AssignStack(StackId, StackId),
    AddHeader(HeaderRef),
    RemoveHeader(HeaderRef),
    Push(StackId, Data),
    Pop(StackId, Data),
    Count(CounterId, Data),
    /// Fields of the standard metadata: egress port and multicast group.
    Drop(Option<FieldId>, Option<FieldId>),
    Clone {
        session: Data,
        fields: Data,
    },
    Hash {
        to: Place,
        base: Data,
        calculation: CalculationId,
        max: Data,
    },
    Exit,
    Jump(usize),
    JumpIfZero(Data, usize),
    Assert(Data, String),
    Nothing,
}

/// An action.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) name: String,
    /// Parameters: name, width in bits.
    pub(super) params: Vec<(String, u32)>,
    primitives: Vec<Primitive>,
}

/// What primitives may name.
#[derive(Clone, Copy)]
pub(super) struct Names<'l> {
    pub(super) layout: &'l Layout,
    pub(super) calculations: &'l Calculations,
    pub(super) counters: &'l CounterArrays,
}

impl Action {
    pub(super) fn load(node: &Node<'_>, names: Names<'_>) -> Result<Self, LoadError> {
        let params = node.get("runtime_data").list()?;
        let params = params
            .iter()
            .map(|param| {
                let bits = param.get("bitwidth").number()?;
                Ok((param.get("name").text()?.to_owned(), u32::try_from(bits).unwrap_or(u32::MAX)))
            })
            .collect::<Result<Vec<_>, LoadError>>()?;
        let name = node.get("name").text()?.to_owned();
        let primitives = Self::primitives(&node.get("primitives").list()?, names, params.len(), &name)?;
        Ok(Action { name, params, primitives })
    }

    /// One primitive of a parser or deparser, as an action without a name.
    pub(super) fn single(node: &Node<'_>, names: Names<'_>, name: &str) -> Result<Self, LoadError> {
        let primitives = Self::primitives(std::slice::from_ref(node), names, 0, name)?;
        Ok(Action { name: name.to_owned(), params: Vec::new(), primitives })
    }

    fn primitives(
        nodes: &[Node<'_>],
        names: Names<'_>,
        params: usize,
        action: &str,
    ) -> Result<Vec<Primitive>, LoadError> {
        let scope = Scope { layout: names.layout, params };
        nodes.iter().map(|node| primitive(node, names, scope, action)).collect()
    }

    /// Runs the primitives. BMv2 goes on to the action's end after `exit`.
    pub(super) fn run(&self, machine: &mut Machine<'_>, args: &[Value]) {
        let mut at = 0;
        // A loop in an action can go on for ever; BMv2 would.
        let mut steps = 0;
        while let Some(primitive) = self.primitives.get(at) {
            at = machine.step(primitive, args).unwrap_or(at + 1);
            steps += 1;
            if steps > 1 << 20 {
                machine.packet.note(Undefined::Endless);
                return;
            }
        }
    }
}

fn place(scope: Scope<'_>, node: &Node<'_>) -> Result<Place, LoadError> {
    match scope.expression(node)? {
        Expression::Data(Data::Field(field)) => Ok(Place::Field(field)),
        Expression::Data(Data::Last(stack, offset)) => Ok(Place::Last(stack, offset)),
        Expression::Data(Data::Member(header, offset)) => Ok(Place::Member(*header, offset)),
        _ => node.wrong("something that can be assigned to"),
    }
}

fn primitive(
    node: &Node<'_>,
    names: Names<'_>,
    scope: Scope<'_>,
    action: &str,
) -> Result<Primitive, LoadError> {
    let layout = names.layout;
    let op = node.get("op").text()?;
    let params = node.get("parameters");
    let one = || params.exactly::<1>("one parameter");
    let two = || params.exactly::<2>("two parameters");
    Ok(match op {
        "assign" | "modify_field" => {
            let [to, from] = two()?;
            Primitive::Assign(place(scope, &to)?, scope.data(&from)?)
        }
        "assign_VL" => {
            let [to, from] = two()?;
            Primitive::AssignVarbit(varbit(layout, &to)?, varbit(layout, &from)?)
        }
        "assign_header" | "copy_header" => {
            let [to, from] = two()?;
            Primitive::AssignHeader(scope.header(&to)?, scope.header(&from)?)
        }
        "assign_header_stack" => {
            let [to, from] = two()?;
            Primitive::AssignStack(scope.stack(&to)?, scope.stack(&from)?)
        }
        "add_header" => Primitive::AddHeader(scope.header(&one()?[0])?),
        "remove_header" => Primitive::RemoveHeader(scope.header(&one()?[0])?),
        "push" | "pop" => {
            let [stack, count] = two()?;
            let (stack, count) = (scope.stack(&stack)?, scope.data(&count)?);
            if op == "push" { Primitive::Push(stack, count) } else { Primitive::Pop(stack, count) }
        }
        "count" => {
            let [array, cell] = two()?;
            Primitive::Count(names.counters.named(&array.get("value"))?, scope.data(&cell)?)
        }
        "mark_to_drop" => {
            let [header] = one()?;
            let HeaderRef::Header(header) = scope.header(&header)? else {
                return header.wrong("the standard metadata");
            };
            Primitive::Drop(of_header(layout, header, "egress_spec"), of_header(layout, header, "mcast_grp"))
        }
        "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
            let [session, fields] = two()?;
            Primitive::Clone { session: scope.data(&session)?, fields: scope.data(&fields)? }
        }
        "modify_field_with_hash_based_offset" => {
            let [to, base, calculation, max] = params.exactly("four parameters")?;
            Primitive::Hash {
                to: place(scope, &to)?,
                base: scope.data(&base)?,
                calculation: names.calculations.named(&calculation.get("value"))?,
                max: scope.data(&max)?,
            }
        }
        "exit" => Primitive::Exit,
        "_jump" => Primitive::Jump(target(&one()?[0])?),
        "_jump_if_zero" => {
            let [condition, to] = two()?;
            Primitive::JumpIfZero(scope.data(&condition)?, target(&to)?)
        }
        "assert" | "assume" => {
            let [condition] = one()?;
            Primitive::Assert(scope.data(&condition)?, action.to_owned())
        }
        "log_msg" | "no_op" => Primitive::Nothing,
        other => return node.get("op").unsupported("primitive", other),
    })
}

fn of_header(layout: &Layout, header: HeaderId, name: &str) -> Option<FieldId> {
    let fields = layout.header(header).fields.clone();
    fields.map(FieldId).find(|field| layout.field(*field).name == name)
}

fn target(node: &Node<'_>) -> Result<usize, LoadError> {
    match node.get("value").hex()?.to_usize() {
        Some(target) => Ok(target),
        None => node.get("value").wrong("the number of a primitive"),
    }
}

fn varbit(layout: &Layout, node: &Node<'_>) -> Result<FieldId, LoadError> {
    let field = layout.named_field(&node.get("value"))?;
    if layout.field(field).varbit { Ok(field) } else { node.wrong("a varbit field") }
}

/// What actions run on.
pub(super) struct Machine<'m> {
    pub(super) layout: &'m Layout,
    pub(super) calculations: &'m Calculations,
    pub(super) counters: &'m mut CounterArrays,
    pub(super) packet: &'m mut Packet,
}

impl Machine<'_> {
    fn view<'a>(&'a self, params: &'a [Value]) -> View<'a> {
        View { layout: self.layout, packet: self.packet, params }
    }

    fn write(&mut self, place: &Place, args: &[Value], value: &Value) {
        let in_header = |header: Option<HeaderId>, offset: &usize| {
            header.and_then(|header| self.layout.header(header).field(*offset))
        };
        let field = match place {
            Place::Field(field) => Some(*field),
            Place::Last(stack, offset) => in_header(self.packet.stack_last(self.layout, *stack), offset),
            Place::Member(header, offset) => in_header(self.view(args).header(header), offset),
        };
        if let Some(field) = field {
            self.packet.write(self.layout, field, value);
        }
    }

    /// Runs a primitive; the number of the next one where that is another than the following.
    fn step(&mut self, primitive: &Primitive, args: &[Value]) -> Option<usize> {
        let layout = self.layout;
        match primitive {
            Primitive::Assign(to, from) => {
                let value = self.view(args).data(from);
                self.write(to, args, &value);
            }
            Primitive::AssignVarbit(to, from) => self.packet.write_varbit(layout, *to, *from),
            Primitive::AssignHeader(to, from) => {
                let view = self.view(args);
                if let (Some(to), Some(from)) = (view.header(to), view.header(from)) {
                    self.packet.assign_header(layout, to, from);
                }
            }
            Primitive::AssignStack(to, from) => self.packet.assign_stack(layout, *to, *from),
            Primitive::AddHeader(header) => {
                if let Some(header) = self.view(args).header(header) {
                    self.packet.add_header(layout, header);
                }
            }
            Primitive::RemoveHeader(header) => {
                if let Some(header) = self.view(args).header(header) {
                    self.packet.remove_header(layout, header);
                }
            }
            Primitive::Push(stack, count) => {
                let count = self.view(args).data(count).to_usize().unwrap_or(usize::MAX);
                self.packet.push(layout, *stack, count);
            }
            Primitive::Pop(stack, count) => {
                let count = self.view(args).data(count).to_usize().unwrap_or(usize::MAX);
                self.packet.pop(layout, *stack, count);
            }
            Primitive::Count(array, cell) => {
                // BMv2 takes the index as 32 bits.
                let cell = self.view(args).data(cell).low_u64() & 0xffff_ffff;
                if !self.counters.count(*array, cell, self.packet.ingress_length) {
                    let name = self.counters.name(*array).to_owned();
                    self.packet.note(Undefined::CounterCell(name, cell));
                }
            }
            Primitive::Drop(port, group) => {
                for (field, value) in [(port, DROP_PORT), (group, 0)] {
                    if let Some(field) = field {
                        self.packet.write(layout, *field, &value.into());
                    }
                }
            }
            Primitive::Clone { session, fields } => {
                let view = self.view(args);
                // BMv2 keeps 15 bits of the session.
                let session = (view.data(session).low_u64() & 0x7fff) as u32;
                let fields = view.data(fields).to_usize().unwrap_or(usize::MAX);
                self.packet.clone = Some(CloneRequest { session, fields });
            }
            Primitive::Hash { to, base, calculation, max } => {
                let view = self.view(args);
                let (base, max) = (view.data(base).low_u64(), view.data(max).low_u64());
                let hash = self.calculations.output(*calculation, layout, self.packet);
                // BMv2 takes a maximum of 0 as 1, and the sum modulo 2^64.
                let value = (hash % max.max(1)).wrapping_add(base);
                self.write(to, args, &value.into());
            }
            Primitive::Exit => self.packet.exit = true,
            Primitive::Jump(to) => return Some(*to),
            Primitive::JumpIfZero(condition, to) => {
                if self.view(args).data(condition) == Value::ZERO {
                    return Some(*to);
                }
            }
            Primitive::Assert(condition, action) => {
                if self.view(args).data(condition) == Value::ZERO {
                    self.packet.note(Undefined::Assertion(action.clone()));
                }
            }
            Primitive::Nothing => {}
        }
        None
    }
}
