//! Expressions of a program as SQL, for people and for the catalogue of PostgreSQL. Operands that are
//! operations themselves stand in parentheses.

use std::fmt::Write;

use super::bind;
use super::function::Function;
use super::syntax::{Expression, Syntax};
use super::tree::{Arithmetic, Comparison, Kind, Operation, Truth};
use crate::{TableDefinition, TypeError, Value};

impl Expression {
    /// In SQL, with `$1` for the column of number 0 and so on.
    pub(crate) fn written(&self, table: Option<&TableDefinition>) -> Result<String, TypeError> {
        let mut out = String::new();
        self.write(table, &mut out)?;
        Ok(out)
    }

    fn write(&self, table: Option<&TableDefinition>, out: &mut String) -> Result<(), TypeError> {
        let (operation, operands) = match &self.0 {
            Syntax::Column(name) => {
                let number = match table {
                    Some(table) => table.column_number(table.shown_column_index(name)?),
                    None => return Err(bind::refused("a default looks at no column")),
                };
                // Writing to a string does not fail.
                let _ = write!(out, "${}", number + 1);
                return Ok(());
            }
            Syntax::Value(value) => {
                write_value(value, out);
                return Ok(());
            }
            Syntax::Apply(operation, operands) => (operation, operands.as_slice()),
        };
        match operation {
            Operation::Case => return write_case(operands, table, out),
            Operation::Cast(kind, digits) => {
                out.push_str("CAST(");
                operands[0].write(table, out)?;
                let _ = match digits {
                    Some((precision, scale)) => write!(out, " AS numeric({precision},{scale}))"),
                    None => write!(out, " AS {})", name_of(*kind)),
                };
                return Ok(());
            }
            _ => {}
        }
        let (before, between, after) = frame(operation);
        out.push_str(&before);
        for (position, operand) in operands.iter().enumerate() {
            if position > 0 {
                out.push_str(between);
            }
            let is_inner = between != ", " && operand.is_operator();
            out.push_str(if is_inner { "(" } else { "" });
            operand.write(table, out)?;
            out.push_str(if is_inner { ")" } else { "" });
        }
        out.push_str(&after);
        Ok(())
    }

    fn is_operator(&self) -> bool {
        match &self.0 {
            Syntax::Apply(operation, _) => {
                !matches!(operation, Operation::Case | Operation::Cast(..))
                    && frame(operation).1 != ", "
            }
            Syntax::Value(value) => value.to_string().starts_with('-'),
            Syntax::Column(_) => false,
        }
    }
}

/// What stands in front of the operands of an operation, between them, and behind.
fn frame(operation: &Operation) -> (String, &'static str, String) {
    let between = |between| (String::new(), between, String::new());
    let call = |name: &str| (format!("{name}("), ", ", ")".to_owned());
    let behind = |text: &str| (String::new(), "", text.to_owned());
    match operation {
        Operation::Compare(comparison) => between(match comparison {
            Comparison::Equal => " = ",
            Comparison::NotEqual => " <> ",
            Comparison::Less => " < ",
            Comparison::LessOrEqual => " <= ",
            Comparison::Greater => " > ",
            Comparison::GreaterOrEqual => " >= ",
        }),
        Operation::Distinct => between(" IS DISTINCT FROM "),
        Operation::NotDistinct => between(" IS NOT DISTINCT FROM "),
        Operation::Arithmetic(arithmetic) => between(match arithmetic {
            Arithmetic::Add => " + ",
            Arithmetic::Subtract => " - ",
            Arithmetic::Multiply => " * ",
            Arithmetic::Divide => " / ",
            Arithmetic::Remainder => " % ",
        }),
        Operation::Negate => ("-".to_owned(), "", String::new()),
        Operation::And => between(" AND "),
        Operation::Or => between(" OR "),
        Operation::Not => ("NOT ".to_owned(), "", String::new()),
        Operation::Is(truth) => behind(match truth {
            Truth::Null => " IS NULL",
            Truth::NotNull => " IS NOT NULL",
            Truth::True => " IS TRUE",
            Truth::NotTrue => " IS NOT TRUE",
            Truth::False => " IS FALSE",
            Truth::NotFalse => " IS NOT FALSE",
        }),
        Operation::Coalesce => call("COALESCE"),
        Operation::NullIf => call("NULLIF"),
        Operation::Greatest => call("GREATEST"),
        Operation::Least => call("LEAST"),
        Operation::Shift(by) => behind(&format!(
            " + INTERVAL '{} months {} days {} microseconds'",
            by.months, by.days, by.micros
        )),
        Operation::Matches(pattern) => {
            let operator = if pattern.is_ignoring_case() { "~*" } else { "~" };
            behind(&format!(" {operator} '{}'", pattern.as_str().replace('\'', "''")))
        }
        Operation::Extract(field) => {
            (format!("EXTRACT({} FROM ", field.name()), ", ", ")".to_owned())
        }
        Operation::Truncate(field) => {
            (format!("date_trunc('{}', ", field.name()), ", ", ")".to_owned())
        }
        Operation::Call(Function::Concatenate) => between(" || "),
        Operation::Call(Function::Like) => between(" LIKE "),
        Operation::Call(Function::LikeIgnoringCase) => between(" ILIKE "),
        Operation::Call(function) => call(function.name()),
        Operation::Column(..) | Operation::Constant(..) | Operation::Case | Operation::Cast(..) => {
            between("")
        }
    }
}

fn write_case(
    operands: &[Expression],
    table: Option<&TableDefinition>,
    out: &mut String,
) -> Result<(), TypeError> {
    out.push_str("CASE");
    let (pairs, otherwise) = operands.as_chunks::<2>();
    for [condition, value] in pairs {
        out.push_str(" WHEN ");
        condition.write(table, out)?;
        out.push_str(" THEN ");
        value.write(table, out)?;
    }
    for value in otherwise {
        out.push_str(" ELSE ");
        value.write(table, out)?;
    }
    out.push_str(" END");
    Ok(())
}

fn write_value(value: &Value<'_>, out: &mut String) {
    let type_name = match value {
        Value::Null | Value::Default => {
            out.push_str("NULL");
            return;
        }
        Value::Boolean(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => {
            out.push_str(&value.to_string());
            return;
        }
        Value::Text(text) => {
            let _ = write!(out, "'{}'", text.replace('\'', "''"));
            return;
        }
        other => Kind::of_value(other).map_or("text", name_of),
    };
    let _ = write!(out, "'{value}'::{type_name}");
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Boolean => "boolean",
        Kind::Int16 => "smallint",
        Kind::Int32 => "integer",
        Kind::Int64 => "bigint",
        Kind::Float32 => "real",
        Kind::Float64 => "double precision",
        Kind::Decimal => "numeric",
        Kind::Char => "character",
        Kind::Text => "text",
        Kind::Bytes => "bytea",
        Kind::Uuid => "uuid",
        Kind::Date => "date",
        Kind::Time => "time",
        Kind::Timestamp => "timestamp",
        Kind::TimestampTz => "timestamptz",
        Kind::Json => "json",
        Kind::Opaque => "opaque",
        Kind::Interval => "interval",
        Kind::Numeric => "numeric",
        Kind::TimeTz => "timetz",
    }
}
