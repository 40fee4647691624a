//! Defaults of columns as bytes.

use super::{Input, push_form, push_short, push_value, read_form, row_expressions};
use crate::row::field;
use crate::schema::{ColumnDefinition, ComputedDefault, DefaultValue};
use crate::{DataType, KeyStrategy, Value};

pub(super) fn push_default(column: &ColumnDefinition, out: &mut Vec<u8>) {
    match &column.default {
        DefaultValue::None => out.push(0),
        DefaultValue::Constant(value) if value.is_null() => out.push(4),
        DefaultValue::Constant(value) => {
            out.push(1);
            push_value(column, value, out);
        }
        DefaultValue::Now => out.push(2),
        DefaultValue::Expression(ComputedDefault { expression, form }) => {
            out.push(match form {
                Some(_) => 6,
                None if column.is_always_generated => 8,
                None => 5,
            });
            push_short(expression.as_bytes(), out);
            if form.is_some() {
                push_form(form.as_deref(), out);
            }
        }
        DefaultValue::Generated(generated) => {
            out.push(9);
            row_expressions::push(generated, out);
        }
        DefaultValue::Key(strategy) => {
            out.push(if column.is_always_generated { 7 } else { 3 });
            push_strategy(*strategy, out);
        }
    }
}

fn push_strategy(strategy: KeyStrategy, out: &mut Vec<u8>) {
    match strategy {
        KeyStrategy::Identity { start, strict } => {
            out.push(1);
            out.extend_from_slice(&start.to_le_bytes());
            out.push(u8::from(strict));
        }
        KeyStrategy::UuidV4 => out.push(2),
        KeyStrategy::UuidV7 => out.push(3),
        KeyStrategy::SequentialGuid => out.push(4),
        KeyStrategy::SessionOffset => out.push(5),
        KeyStrategy::NodeOffset { node } => {
            out.push(6);
            out.extend_from_slice(&node.to_le_bytes());
        }
        KeyStrategy::BitReversed => out.push(7),
        KeyStrategy::HashPrefix => out.push(8),
    }
}

/// The default, and whether its key must be left to be made.
pub(super) fn read_default(
    data_type: DataType,
    input: &mut Input<'_>,
) -> Result<(DefaultValue, bool), &'static str> {
    let tag = input.u8()?;
    let default = match tag {
        0 => DefaultValue::None,
        1 => DefaultValue::Constant(field::read(data_type, input.short()?)?.into_owned()),
        2 => DefaultValue::Now,
        3 | 7 => DefaultValue::Key(read_strategy(input)?),
        4 => DefaultValue::Constant(Value::Null),
        5 | 8 => {
            DefaultValue::Expression(ComputedDefault { expression: input.name()?, form: None })
        }
        6 => {
            let (expression, form) = (input.name()?, read_form(input)?);
            if form.is_none() {
                return Err("a default that has a form has none");
            }
            DefaultValue::Expression(ComputedDefault { expression, form })
        }
        9 => DefaultValue::Generated(row_expressions::read(input)?),
        _ => return Err("a default is not known"),
    };
    Ok((default, matches!(tag, 7..=9)))
}

fn read_strategy(input: &mut Input<'_>) -> Result<KeyStrategy, &'static str> {
    Ok(match input.u8()? {
        1 => KeyStrategy::Identity {
            start: i64::from_le_bytes(input.array()?),
            strict: input.flag()?,
        },
        2 => KeyStrategy::UuidV4,
        3 => KeyStrategy::UuidV7,
        4 => KeyStrategy::SequentialGuid,
        5 => KeyStrategy::SessionOffset,
        6 => KeyStrategy::NodeOffset { node: u32::from_le_bytes(input.array()?) },
        7 => KeyStrategy::BitReversed,
        8 => KeyStrategy::HashPrefix,
        _ => return Err("a key strategy is not known"),
    })
}
