//! Expressions: compiled once, typed as BMv2 types them, evaluated on a packet.

use super::error::LoadError;
use super::layout::{FieldId, HeaderId, Layout, Named, StackId};
use super::node::Node;
use super::packet::{Packet, Undefined};
use super::value::Value;

/// An expression that gives an integer.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Const(Value),
    Field(FieldId),
    /// A field of a stack's last element, by its place in the header.
    Last(StackId, usize),
    /// A field of an element, by its place in the header.
    Member(Box<HeaderRef>, usize),
    /// A parameter of the action.
    Param(usize),
    Binary(Binary, Box<Data>, Box<Data>),
    Inverted(Box<Data>),
    FromBool(Box<Bool>),
    LastIndex(StackId),
    Size(StackId),
    Choice(Box<Bool>, Box<Data>, Box<Data>),
}

/// Operations of two integers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binary {
    Plus,
    Minus,
    Times,
    Divided,
    Modulo,
    Left,
    Right,
    And,
    Or,
    Xor,
    /// The left one as two's complement of a width.
    Signed,
    /// The left one, kept within the bounds of an unsigned width.
    Saturated,
    /// The left one, kept within the bounds of a signed width.
    SignedSaturated,
}

/// An expression that gives true or false.
#[derive(Clone, Debug)]
pub(super) enum Bool {
    Const(bool),
    Compare(Compare, Box<Data>, Box<Data>),
    Same(Box<Bool>, Box<Bool>),
    SameHeader(Box<HeaderRef>, Box<HeaderRef>),
    And(Box<Bool>, Box<Bool>),
    Or(Box<Bool>, Box<Bool>),
    Not(Box<Bool>),
    Valid(Box<HeaderRef>),
    FromData(Box<Data>),
    Choice(Box<Bool>, Box<Bool>, Box<Bool>),
}

/// Comparisons.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compare {
    Equal,
    Less,
    Greater,
}

/// An expression that gives a header.
#[derive(Clone, Debug)]
pub(super) enum HeaderRef {
    Header(HeaderId),
    Element(StackId, Data),
    Choice(Bool, Box<HeaderRef>, Box<HeaderRef>),
}

/// Any expression.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Data(Data),
    Bool(Bool),
    Header(HeaderRef),
    Stack(StackId),
}

/// What an expression may name besides headers: parameters of the action it is in.
#[derive(Clone, Copy)]
pub(super) struct Scope<'l> {
    pub(super) layout: &'l Layout,
    pub(super) params: usize,
}

impl Scope<'_> {
    pub(super) fn data(&self, node: &Node<'_>) -> Result<Data, LoadError> {
        match self.expression(node)? {
            Expression::Data(data) => Ok(data),
            _ => node.wrong("an expression that gives an integer"),
        }
    }

    pub(super) fn bool(&self, node: &Node<'_>) -> Result<Bool, LoadError> {
        match self.expression(node)? {
            Expression::Bool(bool) => Ok(bool),
            _ => node.wrong("an expression that gives true or false"),
        }
    }

    pub(super) fn header(&self, node: &Node<'_>) -> Result<HeaderRef, LoadError> {
        match self.expression(node)? {
            Expression::Header(header) => Ok(header),
            _ => node.wrong("an expression that gives a header"),
        }
    }

    pub(super) fn stack(&self, node: &Node<'_>) -> Result<StackId, LoadError> {
        match self.expression(node)? {
            Expression::Stack(stack) => Ok(stack),
            _ => node.wrong("a header stack"),
        }
    }

    pub(super) fn expression(&self, node: &Node<'_>) -> Result<Expression, LoadError> {
        let value = node.get("value");
        match node.get("type").text()? {
            // p4c wraps an expression in another one where an action takes it.
            "expression" if !value.get("type").is_null() => self.expression(&value),
            "expression" => self.operation(&value),
            "field" => Ok(Expression::Data(match self.layout.named(&value)? {
                Named::Field(field) => Data::Field(field),
                Named::Valid(header) => {
                    Data::FromBool(Box::new(Bool::Valid(Box::new(HeaderRef::Header(header)))))
                }
            })),
            "hexstr" => Ok(Expression::Data(Data::Const(value.hex()?))),
            "bool" => Ok(Expression::Bool(Bool::Const(value.flag()?))),
            "local" | "runtime_data" => {
                let index = value.number()?;
                if index >= self.params {
                    return Err(value.unknown("parameter", index.to_string()));
                }
                Ok(Expression::Data(Data::Param(index)))
            }
            "header" => Ok(Expression::Header(HeaderRef::Header(self.layout.named_header(&value)?))),
            "header_stack" => Ok(Expression::Stack(self.layout.named_stack(&value)?)),
            "stack_field" => {
                let (stack, offset) = self.layout.stack_field(&value)?;
                Ok(Expression::Data(Data::Last(stack, offset)))
            }
            other => node.unsupported("type of value", other),
        }
    }

    fn operation(&self, node: &Node<'_>) -> Result<Expression, LoadError> {
        let (left, right) = (node.get("left"), node.get("right"));
        let data = |node: &Node<'_>| self.data(node).map(Box::new);
        let bool = |node: &Node<'_>| self.bool(node).map(Box::new);
        let binary = |op| Ok(Expression::Data(Data::Binary(op, data(&left)?, data(&right)?)));
        let compare = |op, negated: bool| {
            let bool = Bool::Compare(op, data(&left)?, data(&right)?);
            Ok(Expression::Bool(if negated { Bool::Not(Box::new(bool)) } else { bool }))
        };
        match node.get("op").text()? {
            // A sign without a left side.
            "+" if left.is_null() => Ok(Expression::Data(self.data(&right)?)),
            "-" if left.is_null() => Ok(Expression::Data(Data::Binary(
                Binary::Minus,
                Box::new(Data::Const(Value::ZERO)),
                data(&right)?,
            ))),
            "+" => binary(Binary::Plus),
            "-" => binary(Binary::Minus),
            "*" => binary(Binary::Times),
            "/" => binary(Binary::Divided),
            "%" => binary(Binary::Modulo),
            "<<" => binary(Binary::Left),
            ">>" => binary(Binary::Right),
            "&" => binary(Binary::And),
            "|" => binary(Binary::Or),
            "^" => binary(Binary::Xor),
            "two_comp_mod" => binary(Binary::Signed),
            "usat_cast" => binary(Binary::Saturated),
            "sat_cast" => binary(Binary::SignedSaturated),
            "~" => Ok(Expression::Data(Data::Inverted(data(&right)?))),
            "<" => compare(Compare::Less, false),
            ">" => compare(Compare::Greater, false),
            "<=" => compare(Compare::Greater, true),
            ">=" => compare(Compare::Less, true),
            "==" => self.equal(&left, &right).map(Expression::Bool),
            "!=" => Ok(Expression::Bool(Bool::Not(Box::new(self.equal(&left, &right)?)))),
            "and" => Ok(Expression::Bool(Bool::And(bool(&left)?, bool(&right)?))),
            "or" => Ok(Expression::Bool(Bool::Or(bool(&left)?, bool(&right)?))),
            "not" => Ok(Expression::Bool(Bool::Not(bool(&right)?))),
            "valid" => Ok(Expression::Bool(Bool::Valid(Box::new(self.header(&right)?)))),
            "d2b" => Ok(Expression::Bool(Bool::FromData(data(&right)?))),
            "b2d" => Ok(Expression::Data(Data::FromBool(bool(&right)?))),
            "?" => self.choice(node),
            "dereference_header_stack" | "dereference_stack" => {
                Ok(Expression::Header(HeaderRef::Element(self.stack(&left)?, self.data(&right)?)))
            }
            "access_field" => {
                let header = self.header(&left)?;
                let offset = right.number()?;
                if self.first(&header).and_then(|first| self.layout.header(first).field(offset)).is_none() {
                    return Err(right.unknown("field number", offset.to_string()));
                }
                Ok(Expression::Data(Data::Member(Box::new(header), offset)))
            }
            "last_stack_index" => Ok(Expression::Data(Data::LastIndex(self.stack(&right)?))),
            "size_stack" => Ok(Expression::Data(Data::Size(self.stack(&right)?))),
            other => node.get("op").unsupported("operation", other),
        }
    }

    /// Some header that the expression can give; all have the same fields.
    fn first(&self, header: &HeaderRef) -> Option<HeaderId> {
        match header {
            HeaderRef::Header(header) => Some(*header),
            HeaderRef::Element(stack, _) => self.layout.stack(*stack).headers.first().copied(),
            HeaderRef::Choice(_, left, _) => self.first(left),
        }
    }

    fn equal(&self, left: &Node<'_>, right: &Node<'_>) -> Result<Bool, LoadError> {
        match (self.expression(left)?, self.expression(right)?) {
            (Expression::Data(left), Expression::Data(right)) => {
                Ok(Bool::Compare(Compare::Equal, Box::new(left), Box::new(right)))
            }
            (Expression::Bool(left), Expression::Bool(right)) => {
                Ok(Bool::Same(Box::new(left), Box::new(right)))
            }
            (Expression::Header(left), Expression::Header(right)) => {
                Ok(Bool::SameHeader(Box::new(left), Box::new(right)))
            }
            _ => left.wrong("two sides of the same type"),
        }
    }

    fn choice(&self, node: &Node<'_>) -> Result<Expression, LoadError> {
        let condition = self.bool(&node.get("cond"))?;
        let (left, right) = (node.get("left"), node.get("right"));
        match (self.expression(&left)?, self.expression(&right)?) {
            (Expression::Data(left), Expression::Data(right)) => {
                Ok(Expression::Data(Data::Choice(Box::new(condition), Box::new(left), Box::new(right))))
            }
            (Expression::Bool(left), Expression::Bool(right)) => {
                Ok(Expression::Bool(Bool::Choice(Box::new(condition), Box::new(left), Box::new(right))))
            }
            (Expression::Header(left), Expression::Header(right)) => {
                Ok(Expression::Header(HeaderRef::Choice(condition, Box::new(left), Box::new(right))))
            }
            _ => node.wrong("two sides of the same type"),
        }
    }
}

/// What an expression is evaluated on.
#[derive(Clone, Copy)]
pub(super) struct View<'p> {
    pub(super) layout: &'p Layout,
    pub(super) packet: &'p Packet,
    pub(super) params: &'p [Value],
}

impl View<'_> {
    pub(super) fn data(&self, data: &Data) -> Value {
        match data {
            Data::Const(value) => value.clone(),
            Data::Field(field) => self.packet.read(self.layout, *field).clone(),
            Data::Last(stack, offset) => self.member(self.packet.stack_last(self.layout, *stack), *offset),
            Data::Member(header, offset) => self.member(self.header(header), *offset),
            Data::Param(index) => self.params.get(*index).cloned().unwrap_or_default(),
            Data::Binary(op, left, right) => self.binary(*op, &self.data(left), &self.data(right)),
            Data::Inverted(data) => self.data(data).inverted(),
            Data::FromBool(bool) => self.bool(bool).into(),
            Data::LastIndex(stack) => Value::Small(self.packet.stack_size(*stack) as i128 - 1),
            Data::Size(stack) => Value::Small(self.packet.stack_size(*stack) as i128),
            Data::Choice(condition, left, right) => {
                self.data(if self.bool(condition) { left } else { right })
            }
        }
    }

    fn member(&self, header: Option<HeaderId>, offset: usize) -> Value {
        let field = header.and_then(|header| self.layout.header(header).field(offset));
        field.map(|field| self.packet.read(self.layout, field).clone()).unwrap_or_default()
    }

    fn binary(&self, op: Binary, left: &Value, right: &Value) -> Value {
        let defined = |result: Option<Value>| {
            result.unwrap_or_else(|| {
                self.packet.note(Undefined::Arithmetic);
                Value::ZERO
            })
        };
        let width = || u32::try_from(right.low_u64()).unwrap_or(u32::MAX).min(1 << 16);
        let power = |bits: u32| defined(Value::Small(1).shifted_left(&Value::from(u64::from(bits))));
        match op {
            Binary::Plus => left.plus(right),
            Binary::Minus => left.minus(right),
            Binary::Times => left.times(right),
            Binary::Divided => defined(left.divided(right)),
            Binary::Modulo => defined(left.modulo(right)),
            Binary::Left => defined(left.shifted_left(right)),
            Binary::Right => defined(left.shifted_right(right)),
            Binary::And => left.and(right),
            Binary::Or => left.or(right),
            Binary::Xor => left.xor(right),
            Binary::Signed => left.signed_bits(width()),
            Binary::Saturated => left.clone().within(Value::ZERO, power(width()).minus(&Value::Small(1))),
            Binary::SignedSaturated => {
                let half = power(width().saturating_sub(1));
                left.clone().within(Value::ZERO.minus(&half), half.minus(&Value::Small(1)))
            }
        }
    }

    /// BMv2 evaluates both sides of `and` and `or`; as nothing here has an effect, stopping early gives the
    /// same, and a field that is guarded by its header's validity is not read.
    pub(super) fn bool(&self, bool: &Bool) -> bool {
        match bool {
            Bool::Const(value) => *value,
            Bool::Compare(op, left, right) => {
                let (left, right) = (self.data(left), self.data(right));
                match op {
                    Compare::Equal => left == right,
                    Compare::Less => left < right,
                    Compare::Greater => left > right,
                }
            }
            Bool::Same(left, right) => self.bool(left) == self.bool(right),
            Bool::SameHeader(left, right) => match (self.header(left), self.header(right)) {
                (Some(left), Some(right)) => self.packet.headers_equal(self.layout, left, right),
                _ => false,
            },
            Bool::And(left, right) => self.bool(left) && self.bool(right),
            Bool::Or(left, right) => self.bool(left) || self.bool(right),
            Bool::Not(bool) => !self.bool(bool),
            Bool::Valid(header) => self.header(header).is_some_and(|header| self.packet.is_valid(header)),
            Bool::FromData(data) => self.data(data) != Value::ZERO,
            Bool::Choice(condition, left, right) => {
                self.bool(if self.bool(condition) { left } else { right })
            }
        }
    }

    pub(super) fn header(&self, header: &HeaderRef) -> Option<HeaderId> {
        match header {
            HeaderRef::Header(header) => Some(*header),
            HeaderRef::Element(stack, index) => {
                self.packet.stack_element(self.layout, *stack, &self.data(index))
            }
            HeaderRef::Choice(condition, left, right) => {
                self.header(if self.bool(condition) { left } else { right })
            }
        }
    }
}
