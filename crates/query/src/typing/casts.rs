//! Casts: text is read and values are written as PostgreSQL does, numbers are rounded to whole ones.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::math;
use datafusion::functions_nested::string::array_to_string_udf;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable};
use onrush::{DataType, EnumType};

use super::vectors::is_vector;
use super::{call, intervals, networks, numerics, read, records};
use crate::enumeration::ENUM_BYTES;
use crate::error::QueryError;
use crate::functions::{
    CHAR_OF, NAMES_OF, NETWORK_SHOW, OID_OF, named, of_elements, parse_function, read_interval,
    round_to_even, text_function, type_name,
};
use crate::numeric;
use crate::text::read_text;
use crate::types::{ColumnType, MAC_ADDRESS_BYTES, TIME_TZ_BYTES, arrow_type, column_type, field};
use crate::values::scalar;

/// A cast that reads, writes and rounds as PostgreSQL does.
pub(crate) fn typed(cast: Cast, schema: &DFSchema) -> Result<Expr> {
    let to = cast.field.data_type().clone();
    let from = match cast.expr.get_type(schema) {
        Ok(from) => from,
        Err(_) => return Ok(Expr::Cast(cast)),
    };
    if let ColumnType::Stored(rounded @ DataType::Rounded(..)) = column_type(&cast.field) {
        return rounded_cast(cast, &from, rounded, schema);
    }
    if let ColumnType::Stored(DataType::Enum(of)) = column_type(&cast.field) {
        return enum_cast(cast, &from, of, schema);
    }
    if let ColumnType::Stored(DataType::Composite(of)) = column_type(&cast.field) {
        return records::cast_to(cast, &from, of, schema);
    }
    let cast = records::cast_from(cast, schema)?;
    if let Some(cast) = numerics::cast_to_number(&cast, &from)? {
        return Ok(cast);
    }
    let is_text = |arrow: &ArrowType| {
        matches!(arrow, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View)
    };
    match (is_text(&from), is_text(&to)) {
        (true, false) => {
            if let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*cast.expr
                && let Some(value) = read(written, &cast.field)?
            {
                let value = Expr::Literal(value, None);
                return match column_type(&cast.field) {
                    ColumnType::Array(DataType::Name) => Ok(call(named(NAMES_OF)?, vec![value])),
                    _ => Ok(value),
                };
            }
            if let ColumnType::Array(element) = column_type(&cast.field)
                && matches!(to, ArrowType::List(_))
            {
                // DataFusion would make an array of the whole text.
                let Some(array) = element.array() else {
                    let message = "a cast of computed text to an array of this type".to_owned();
                    return Err(QueryError::NotSupported { message }.into());
                };
                return Ok(call(parse_function(array), vec![*cast.expr]));
            }
            if matches!(to, ArrowType::Interval(_)) {
                return Ok(call(read_interval(), vec![*cast.expr]));
            }
            let target = crate::types::plain_type(&to);
            let is_own = matches!(
                target,
                DataType::Uuid
                    | DataType::Bytes
                    | DataType::Boolean
                    | DataType::Timestamp
                    | DataType::TimestampTz
                    | DataType::Time
                    | DataType::TimeTz
                    | DataType::Date
                    | DataType::Inet
                    | DataType::Cidr
                    | DataType::MacAddress
            );
            if is_own && to == crate::types::arrow_type(ColumnType::Stored(target)) {
                return Ok(call(parse_function(target), vec![*cast.expr]));
            }
            Ok(Expr::Cast(cast))
        }
        (_, true) if column_type(&cast.field) == ColumnType::Char => {
            Ok(call(named(CHAR_OF)?, vec![*cast.expr]))
        }
        (_, true) if is_vector(&cast.expr, schema) => {
            let blank = Expr::Literal(ScalarValue::from(" "), None);
            Ok(as_plain_text(call(array_to_string_udf(), vec![*cast.expr, blank])))
        }
        (_, true) => {
            let is_own = matches!(
                from,
                ArrowType::FixedSizeBinary(16 | TIME_TZ_BYTES | ENUM_BYTES | MAC_ADDRESS_BYTES)
                    | numeric::ANY
                    | ArrowType::Binary
                    | ArrowType::Float32
                    | ArrowType::Float64
                    | ArrowType::Timestamp(TimeUnit::Microsecond, _)
                    | ArrowType::Date32
                    | ArrowType::Time64(TimeUnit::Microsecond)
                    | ArrowType::List(_)
                    | ArrowType::Interval(_)
            );
            let inner = match is_own {
                _ if networks::is_address(&from) => call(named(NETWORK_SHOW)?, vec![*cast.expr]),
                true => call(text_function(), vec![*cast.expr.clone()]),
                false => Expr::Cast(cast.clone()),
            };
            Ok(match column_type(&cast.field) {
                ColumnType::Stored(target @ (DataType::Char(_) | DataType::Varchar(_))) => {
                    let length = match target {
                        DataType::Char(length) => i64::from(length),
                        DataType::Varchar(length) => i64::from(length),
                        _ => i64::MAX,
                    };
                    let left = datafusion::functions::unicode::left();
                    let length = Expr::Literal(ScalarValue::Int64(Some(length)), None);
                    let cut = call(left, vec![inner, length]);
                    match target {
                        // Without the blanks that it is filled up with when it is shown.
                        DataType::Char(_) => {
                            let rtrim = datafusion::functions::string::rtrim();
                            let expr = Box::new(call(rtrim, vec![cut]));
                            Expr::Cast(Cast { expr, field: cast.field })
                        }
                        _ => cut,
                    }
                }
                ColumnType::Stored(DataType::Text) if is_text(&from) => as_plain_text(inner),
                ColumnType::Stored(DataType::Name) => {
                    call(parse_function(DataType::Name), vec![inner])
                }
                ColumnType::Stored(target @ (DataType::Json | DataType::Jsonb)) => {
                    call(parse_function(target), vec![inner])
                }
                _ => inner,
            })
        }
        (false, false) => {
            if depth(&from) > 1 && depth(&to) == 1 {
                let message = "a cast of an array of arrays is not supported".to_owned();
                return Err(QueryError::NotSupported { message }.into());
            }
            if column_type(&cast.field) == ColumnType::Array(DataType::Name) {
                return Ok(call(named(NAMES_OF)?, vec![*cast.expr]));
            }
            if let Some(own) = of_elements(&cast, &from, typed)? {
                return Ok(own);
            }
            if column_type(&cast.field) == ColumnType::Stored(DataType::Oid)
                && from.is_integer()
                && !is_oid(&cast.expr, schema)
            {
                return Ok(call(named(OID_OF)?, vec![*cast.expr]));
            }
            if let Some(cast) = networks::cast(&cast.expr, &from, &to)? {
                return Ok(cast);
            }
            refuse_bytes(&cast, &from, schema)?;
            if let Some(function) = intervals::cast(&from, &to) {
                return Ok(call(function, vec![*cast.expr]));
            }
            let rounds = to.is_integer() && (from.is_floating() || from.is_decimal());
            if rounds {
                let round = if from.is_floating() { round_to_even() } else { math::round() };
                let rounded = call(round, vec![*cast.expr]);
                return Ok(Expr::Cast(Cast { expr: Box::new(rounded), field: cast.field }));
            }
            Ok(Expr::Cast(cast))
        }
    }
}

/// Refuses a cast to a type whose values are bytes of a length of their own, of anything but text.
fn refuse_bytes(cast: &Cast, from: &ArrowType, schema: &DFSchema) -> Result<()> {
    let ColumnType::Stored(
        wanted @ (DataType::Uuid | DataType::Inet | DataType::Cidr | DataType::MacAddress),
    ) = column_type(&cast.field)
    else {
        return Ok(());
    };
    let is_known = !matches!(from, ArrowType::Null) && *from != arrow_type(wanted.into());
    match cast.expr.to_field(schema) {
        Ok((_, own)) if is_known => {
            let own = type_name(column_type(&own));
            let message = format!("cannot cast type {own} to {wanted}");
            Err(QueryError::refused("42846", message).into())
        }
        _ => Ok(()),
    }
}

/// A cast to an enumerated type, of text or of the same type.
fn enum_cast(cast: Cast, from: &ArrowType, of: EnumType, schema: &DFSchema) -> Result<Expr> {
    let is_null = *from == ArrowType::Null;
    if is_null || matches!(&*cast.expr, Expr::Placeholder(open) if open.field.is_none()) {
        return Ok(Expr::Cast(cast));
    }
    let own = cast.expr.to_field(schema).ok().map(|(_, field)| column_type(&field));
    match own {
        Some(ColumnType::Stored(DataType::Enum(own))) if own.id() == of.id() => Ok(*cast.expr),
        Some(ColumnType::Stored(own)) if own.is_text() => {
            if let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*cast.expr
                && let Some(value) = read(written, &cast.field)?
            {
                // The value alone does not say to a client which type it is of.
                let literal = Box::new(Expr::Literal(value, None));
                return Ok(Expr::Cast(Cast { expr: literal, field: cast.field }));
            }
            Ok(call(parse_function(DataType::Enum(of)), vec![*cast.expr]))
        }
        own => {
            let own = own.map_or_else(|| "unknown".to_owned(), type_name);
            let message = format!("cannot cast type {own} to {}", of.name());
            Err(QueryError::refused("42846", message).into())
        }
    }
}

fn is_oid(value: &Expr, schema: &DFSchema) -> bool {
    let field = value.to_field(schema);
    field.is_ok_and(|(_, field)| column_type(&field) == ColumnType::Stored(DataType::Oid))
}

/// A cast to a type of fewer digits.
fn rounded_cast(
    cast: Cast,
    from: &ArrowType,
    rounded: DataType,
    schema: &DFSchema,
) -> Result<Expr> {
    if let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*cast.expr {
        // What the number at its end counts, the type says.
        let value = read_text(rounded, written)?;
        return Ok(Expr::Literal(scalar(&value, rounded.into())?, None));
    }
    let plain = ColumnType::Stored(rounded.unrounded());
    let given = match *from == arrow_type(plain) {
        true => *cast.expr,
        false => typed(Cast { expr: cast.expr, field: Arc::new(field("", plain, true)) }, schema)?,
    };
    Ok(call(parse_function(rounded), vec![given]))
}

/// A text that is nothing else: a cast to a field without a name would leave the note of `char(n)` or `jsonb` on it.
fn as_plain_text(text: Expr) -> Expr {
    let field = match text {
        Expr::Cast(Cast { expr, .. }) => return plain_cast(expr),
        other => Box::new(other),
    };
    plain_cast(field)
}

fn plain_cast(expr: Box<Expr>) -> Expr {
    let field = Arc::new(Field::new("text", ArrowType::Utf8, true));
    Expr::Cast(Cast { expr, field })
}

/// How many arrays are inside of each other.
fn depth(arrow: &ArrowType) -> usize {
    match arrow {
        ArrowType::List(inner)
        | ArrowType::LargeList(inner)
        | ArrowType::FixedSizeList(inner, _) => 1 + depth(inner.data_type()),
        _ => 0,
    }
}
