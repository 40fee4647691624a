//! Records: casts to and from composite types, their fields, and whether they are NULL.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use onrush::{CompositeType, DataType};

use std::sync::Arc;

use super::{call, field_of, read};
use crate::error::QueryError;
use crate::functions::{
    RECORD_FIELD_AS_IS, RECORD_IS_NOT_NULL, RECORD_IS_NULL, RECORD_TEXT, ROW, named,
    parse_function, type_name,
};
use crate::types::{ColumnType, column_type, field};

/// The composite type of a value.
pub(super) fn composite(value: &Expr, schema: &DFSchema) -> Option<CompositeType> {
    match column_type(&*field_of(value, schema)?) {
        ColumnType::Stored(DataType::Composite(of)) => Some(of),
        _ => None,
    }
}

/// A field of a record, now that the type of that is known.
pub(super) fn read_field(mut call: ScalarFunction) -> Result<Expr> {
    call.func = named(RECORD_FIELD_AS_IS)?;
    Ok(Expr::ScalarFunction(call))
}

/// A cast to a composite type: of text, of NULL, or of a record, field by field.
pub(super) fn cast_to(
    cast: Cast,
    from: &ArrowType,
    of: CompositeType,
    schema: &DFSchema,
) -> Result<Expr> {
    let is_open = matches!(&*cast.expr, Expr::Placeholder(open) if open.field.is_none());
    if *from == ArrowType::Null || is_open {
        return Ok(Expr::Cast(cast));
    }
    if let Some(own) = composite(&cast.expr, schema) {
        return match () {
            // Any record is one of no declared type.
            () if own == of || of.is_anonymous() => Ok(*cast.expr),
            () if own.fields().len() == of.fields().len() => {
                let record = fields_cast(*cast.expr, of, schema)?;
                Ok(call(parse_function(DataType::Composite(of)), vec![record]))
            }
            () => {
                let is_short = own.fields().len() < of.fields().len();
                let (to, own) = (DataType::Composite(of), DataType::Composite(own));
                let [to, own] = [to, own].map(|own| type_name(own.into()));
                let message = format!("cannot cast type {own} to {to}");
                let detail = match is_short {
                    true => "Input has too few columns.",
                    false => "Input has too many columns.",
                };
                Err(QueryError::refused("42846", message).detail(detail).into())
            }
        };
    }
    let own = field_of(&cast.expr, schema).map(|field| column_type(&field));
    match own {
        Some(ColumnType::Stored(own)) if own.is_text() => {
            if let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*cast.expr
                && let Some(value) = read(written, &cast.field)?
            {
                // The value alone does not say which type it is of.
                let literal = Box::new(Expr::Literal(value, None));
                return Ok(Expr::Cast(Cast { expr: literal, field: cast.field }));
            }
            Ok(call(parse_function(DataType::Composite(of)), vec![*cast.expr]))
        }
        own => {
            let own = own.map_or_else(|| "unknown".to_owned(), type_name);
            let to = type_name(DataType::Composite(of).into());
            let message = format!("cannot cast type {own} to {to}");
            Err(QueryError::refused("42846", message).into())
        }
    }
}

/// A row that a query makes, each of whose fields is cast to that of a type.
fn fields_cast(record: Expr, of: CompositeType, schema: &DFSchema) -> Result<Expr> {
    let Expr::ScalarFunction(mut made) = record else { return Ok(record) };
    if made.func.name() != ROW || made.args.len() != of.fields().len() {
        return Ok(Expr::ScalarFunction(made));
    }
    for (given, (_, data_type)) in made.args.iter_mut().zip(of.fields()) {
        let field = Arc::new(field("", (*data_type).into(), true));
        let expr = Box::new(std::mem::take(given));
        *given = super::casts::typed(Cast { expr, field }, schema)?;
    }
    Ok(Expr::ScalarFunction(made))
}

/// What is cast to another type than a composite one: a record as text, which is all that it may become.
pub(super) fn cast_from(cast: Cast, schema: &DFSchema) -> Result<Cast> {
    let Some(of) = composite(&cast.expr, schema) else { return Ok(cast) };
    match column_type(&cast.field) {
        ColumnType::Stored(to) if to.is_text() => {
            Ok(Cast { expr: Box::new(call(named(RECORD_TEXT)?, vec![*cast.expr])), ..cast })
        }
        to => {
            let own = type_name(DataType::Composite(of).into());
            let message = format!("cannot cast type {own} to {}", type_name(to));
            Err(QueryError::refused("42846", message).into())
        }
    }
}

/// `record IS NULL`, which asks for each of its fields.
pub(super) fn null_test(expression: Expr, schema: &DFSchema) -> Result<Expr> {
    let (Expr::IsNull(value) | Expr::IsNotNull(value)) = &expression else { return Ok(expression) };
    if composite(value, schema).is_none() {
        return Ok(expression);
    }
    let name = match &expression {
        Expr::IsNull(_) => RECORD_IS_NULL,
        _ => RECORD_IS_NOT_NULL,
    };
    Ok(call(named(name)?, vec![(**value).clone()]))
}

/// Refuses what is compared with each other where fields are of other types.
pub(super) fn check_alike(one: CompositeType, other: CompositeType) -> Result<()> {
    let refuse = |state, message| Err(QueryError::refused(state, message).into());
    if one.fields().len() != other.fields().len() {
        return refuse(
            "42804",
            "cannot compare record types with different numbers of columns".to_owned(),
        );
    }
    let pairs = one.fields().iter().zip(other.fields());
    for (at, ((_, one), (_, other))) in pairs.enumerate() {
        let [one, other] = [*one, *other].map(|own| type_name(own.into()));
        if one != other {
            return refuse(
                "42804",
                format!(
                    "cannot compare dissimilar column types {one} and {other} at record column {}",
                    at + 1
                ),
            );
        }
    }
    Ok(())
}
