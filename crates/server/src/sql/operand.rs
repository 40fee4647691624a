//! A value in a statement: a constant, a parameter, or one of a few functions.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use bytes::Bytes;
use onrush::{DataType, Table, Uuid, Value};
use onrush_query::ColumnType;
use onrush_query::clock::{now_micros, statement_micros};
use onrush_query::style::{ClientEncoding, now_as};
use sqlparser::ast::{self, CastKind, Expr, UnaryOperator, Visit, Visitor};

use super::functions::{self, Function};
use crate::error::{Result, SqlError, state};
use crate::values::{self, Formats, Wire};

/// Where a value comes from when the statement runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// The column's default.
    Default,
    Constant(Value<'static>),
    /// A parameter, from 0, and the type of the place where it stands.
    Parameter(usize, DataType),
    /// The moment of the statement, as this type.
    Now(DataType),
    /// When the statement began.
    Clock(DataType),
    RandomUuid,
}

/// The types of a statement's parameters, as they are found while it is planned.
#[derive(Clone)]
pub(crate) struct Parameters {
    /// What the client declared; 0 where it left the type open.
    oids: Vec<u32>,
    is_allowed: bool,
    /// Enumerated types that the client declared, and arrays of them, by their numbers.
    enums: Vec<(u32, ColumnType)>,
    /// The domains that the statement casts to.
    domains: Vec<Table>,
    /// The types of users that the columns of a table which it makes are cast to.
    column_types: Vec<Table>,
}

impl Parameters {
    /// For a statement that is prepared, with what the client declared.
    pub(crate) fn declared(oids: Vec<u32>) -> Parameters {
        Parameters {
            oids,
            is_allowed: true,
            enums: Vec::new(),
            domains: Vec::new(),
            column_types: Vec::new(),
        }
    }

    /// Finds what the numbers mean that the client declared and that are of types of users.
    pub(crate) fn find_enums(&mut self, find: impl Fn(u32) -> Option<ColumnType>) {
        let own =
            self.oids.iter().filter(|oid| **oid != 0 && values::column_type_of(**oid).is_none());
        self.enums = own.filter_map(|oid| Some((*oid, find(*oid)?))).collect();
    }

    fn type_of(&self, oid: u32) -> Option<ColumnType> {
        let of_enum = || self.enums.iter().find(|(own, _)| *own == oid);
        values::column_type_of(oid).or_else(|| of_enum().map(|(_, own)| *own))
    }

    /// For a statement without parameters.
    pub(crate) fn none() -> Parameters {
        Parameters { is_allowed: false, ..Parameters::declared(Vec::new()) }
    }

    /// Notes the types of users that the columns of a table are cast to.
    pub(super) fn note_column_types(&mut self, types: Vec<Table>) {
        self.column_types = types;
    }

    /// Those types.
    pub(super) fn take_column_types(&mut self) -> Vec<Table> {
        std::mem::take(&mut self.column_types)
    }

    /// Notes domains that the statement casts to.
    pub(super) fn note_domains(&mut self, domains: Vec<Table>) {
        self.domains.extend(domains);
    }

    /// The domains that the statement casts to.
    pub(crate) fn take_domains(&mut self) -> Vec<Table> {
        std::mem::take(&mut self.domains)
    }

    /// The type that the client declared for a parameter.
    pub(super) fn declared_type(&self, parameter: &ast::Value) -> Option<ColumnType> {
        let ast::Value::Placeholder(name) = parameter else { return None };
        self.type_of(*self.oids.get(index_of(name)?)?)
    }

    fn note(&mut self, name: &str, data_type: DataType) -> Result<usize> {
        let Some(index) = index_of(name) else {
            return Err(SqlError::new(state::SYNTAX_ERROR, format!("{name} is not a parameter")));
        };
        self.note_index(index, data_type.into())?;
        Ok(index)
    }

    /// Parameter `index`, from 0, stands where a value of this type is wanted.
    pub(super) fn note_index(&mut self, index: usize, column_type: ColumnType) -> Result<()> {
        if !self.is_allowed {
            let message = format!("there is no parameter ${}", index + 1);
            return Err(SqlError::new(state::UNDEFINED_PARAMETER, message)
                .with_hint("Parameters belong to prepared statements."));
        }
        if self.oids.len() <= index {
            self.oids.resize(index + 1, 0);
        }
        if self.oids[index] == 0 {
            self.oids[index] = values::oid_of(column_type);
        }
        Ok(())
    }

    /// Of parameters that a part of a statement does not have, what was known before it is known again.
    pub(super) fn forget_others(&mut self, before: &Parameters, part: &impl Visit) {
        let mut mentioned = Mentioned(HashSet::new());
        let _ = part.visit(&mut mentioned);
        for (index, oid) in self.oids.iter_mut().enumerate() {
            if !mentioned.0.contains(&index) {
                *oid = before.oids.get(index).copied().unwrap_or(0);
            }
        }
    }

    /// The types as far as they are known.
    pub(super) fn column_types(&self) -> Vec<Option<ColumnType>> {
        self.oids.iter().map(|oid| self.type_of(*oid)).collect()
    }

    /// The type of each parameter.
    pub(crate) fn into_oids(self) -> Result<Vec<u32>> {
        match self.oids.iter().position(|oid| *oid == 0) {
            None => Ok(self.oids),
            Some(index) => {
                let message = format!("the type of parameter ${} is not known", index + 1);
                Err(SqlError::new(state::INDETERMINATE_DATATYPE, message))
            }
        }
    }
}

/// The parameters that stand in a part of a statement.
struct Mentioned(HashSet<usize>);

impl Visitor for Mentioned {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ast::ValueWithSpan) -> ControlFlow<()> {
        if let ast::Value::Placeholder(name) = &value.value {
            self.0.extend(index_of(name));
        }
        ControlFlow::Continue(())
    }
}

/// `$1` is the first, 0.
fn index_of(name: &str) -> Option<usize> {
    let number = name.strip_prefix('$')?.parse::<u16>().ok()?;
    usize::from(number).checked_sub(1)
}

/// The parameters of one execution: the bytes of the message, and where each value is in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    pub(crate) message: Bytes,
    /// None is NULL.
    pub(crate) values: Vec<Option<Range<usize>>>,
    pub(crate) formats: Formats,
    pub(crate) oids: Arc<[u32]>,
    /// Of texts among the values.
    pub(crate) encoding: ClientEncoding,
}

impl Bound {
    /// Of a statement without parameters.
    pub(crate) fn none() -> Bound {
        Bound::default()
    }

    pub(crate) fn value(&self, index: usize, target: DataType) -> Result<Value<'_>> {
        self.wire(index).map_or(Ok(Value::Null), |wire| values::decode(wire, target))
    }

    /// The parameter; none for NULL.
    fn wire(&self, index: usize) -> Option<Wire<'_>> {
        let range = self.values.get(index)?.as_ref()?;
        Some(Wire {
            bytes: &self.message[range.clone()],
            is_binary: self.formats.is_binary(index),
            oid: self.oids.get(index).copied().unwrap_or(0),
            encoding: self.encoding,
        })
    }
}

/// Whether an expression is the word DEFAULT.
pub(super) fn is_default(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

impl Operand {
    /// Reads an expression that stands where a value of `target` is wanted.
    pub(crate) fn new(
        expression: &Expr,
        target: DataType,
        parameters: &mut Parameters,
    ) -> Result<Operand> {
        match expression {
            Expr::Nested(inner) => Operand::new(inner, target, parameters),
            expression if is_default(expression) => Ok(Operand::Default),
            Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(name) => {
                    Ok(Operand::Parameter(parameters.note(name, target)?, target))
                }
                literal => constant(literal, target).map(Operand::Constant).map_err(|error| {
                    // What is too long is told of the column, not of the text.
                    if error.state == state::STRING_TOO_LONG { error } else { error.at(value.span) }
                }),
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
                Expr::Value(ast::ValueWithSpan {
                    value: ast::Value::Number(digits, _), ..
                }) => {
                    let written = format!("-{digits}");
                    let value = values::read_number(target, &written)?;
                    Ok(Operand::Constant(value.into_owned()))
                }
                _ => Err(too_much(expression)),
            },
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, ..
            } => {
                let through = super::create::data_type("the cast", data_type)?;
                match Operand::new(expr, through, parameters)? {
                    Operand::Parameter(index, _) => Ok(Operand::Parameter(index, target)),
                    Operand::Constant(value) => {
                        let value = values::coerce(value, through)?;
                        Ok(Operand::Constant(values::coerce(value, target)?.into_owned()))
                    }
                    other if through == target => Ok(other),
                    _ => Err(too_much(expression)),
                }
            }
            Expr::TypedString(typed) => {
                let through = super::create::data_type("the constant", &typed.data_type)?;
                let value = constant(&typed.value.value, through)?;
                Ok(Operand::Constant(values::coerce(value, target)?.into_owned()))
            }
            Expr::Function(call) => match functions::of(call)? {
                Function::Now if now_as(target, 0).is_some() => Ok(Operand::Now(target)),
                Function::Clock if now_as(target, 0).is_some() => Ok(Operand::Clock(target)),
                Function::RandomUuid if target == DataType::Uuid => Ok(Operand::RandomUuid),
                // As text, say.
                _ => Err(too_much(expression)),
            },
            _ => Err(too_much(expression)),
        }
    }

    /// As [`new`](Self::new); none for an expression that is more than one value.
    pub(crate) fn if_simple(
        expression: &Expr,
        target: DataType,
        parameters: &mut Parameters,
    ) -> Result<Option<Operand>> {
        let mut tried = parameters.clone();
        match Operand::new(expression, target, &mut tried) {
            Ok(operand) => {
                *parameters = tried;
                Ok(Some(operand))
            }
            Err(error) if error.is_beyond_the_short_way() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether it is NULL in one execution.
    pub(crate) fn is_null(&self, bound: &Bound) -> bool {
        match self {
            Operand::Constant(value) => value.is_null(),
            Operand::Parameter(index, _) => bound.wire(*index).is_none(),
            _ => false,
        }
    }

    /// The value, for one execution.
    pub(crate) fn value<'b>(&'b self, bound: &'b Bound) -> Result<Value<'b>> {
        match self {
            Operand::Default => Ok(Value::Default),
            Operand::Constant(value) => Ok(value.borrowed()),
            Operand::Parameter(index, target) => bound.value(*index, *target),
            Operand::Now(data_type) => timestamp(now_micros(), *data_type),
            Operand::Clock(data_type) => timestamp(statement_micros(), *data_type),
            Operand::RandomUuid => Ok(Value::Uuid(Uuid::new_v4())),
        }
    }
}

fn timestamp(micros: i64, data_type: DataType) -> Result<Value<'static>> {
    now_as(data_type, micros).ok_or_else(|| {
        let message = format!("now() is not a value of type {data_type}");
        SqlError::new(state::DATATYPE_MISMATCH, message)
    })
}

/// The values of a key, for one execution; none if no row can have it. Nothing equals NULL.
pub(crate) fn key_of<'b>(
    operands: &'b [Operand],
    bound: &'b Bound,
) -> Result<Option<Vec<Value<'b>>>> {
    let mut key = Vec::with_capacity(operands.len());
    for operand in operands {
        let value = match operand {
            Operand::Parameter(index, target) => match bound.wire(*index) {
                Some(wire) => values::decode_key(wire, *target)?,
                None => None,
            },
            other => Some(other.value(bound)?),
        };
        match value {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => key.push(value),
        }
    }
    Ok(Some(key))
}

/// Whether it is `numeric` without a number of digits.
pub(super) fn any_numeric(data_type: &ast::DataType) -> bool {
    use ast::DataType::{Dec, Decimal, Numeric};
    use ast::ExactNumberInfo::None;
    matches!(data_type, Numeric(None) | Decimal(None) | Dec(None))
}

/// A literal as a value of `target`.
pub(crate) fn constant(literal: &ast::Value, target: DataType) -> Result<Value<'static>> {
    match literal {
        ast::Value::Null => Ok(Value::Null),
        ast::Value::Boolean(value) => {
            Ok(values::coerce(Value::Boolean(*value), target)?.into_owned())
        }
        ast::Value::Number(digits, _) => Ok(values::read_number(target, digits)?.into_owned()),
        ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => {
            read(text, target)
        }
        ast::Value::DollarQuotedString(text) => read(&text.value, target),
        other => Err(SqlError::not_supported(
            format!("the constant {other}"),
            "Write it in single quotes.",
        )),
    }
}

fn read(written: &str, target: DataType) -> Result<Value<'static>> {
    Ok(values::read(target, written)?.into_owned())
}

fn too_much(expression: &Expr) -> SqlError {
    let what: String = expression.to_string().chars().take(80).collect();
    SqlError::not_supported(
        format!("the expression {what} in this place"),
        "Give a constant, a parameter such as $1, DEFAULT, now() or gen_random_uuid().",
    )
}
