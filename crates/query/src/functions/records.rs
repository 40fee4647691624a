//! Records: rows as values, their fields, and whether they are NULL.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, StringBuilder};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use onrush::{CompositeType, DataType, Value};
use onrush_types::{ANONYMOUS_MAX, read_record, write_record};

use super::typed::TypedFunction;
use super::{argument_columns, limited, type_name};
use crate::columns::ColumnBuilder;
use crate::error::QueryError;
use crate::numeric::of_text;
use crate::style::by_default;
use crate::text::{read_text, write_text_of, written_plainly};
use crate::types::{ColumnType, column_type, field, planned_field};
use crate::values::value_at;

/// The function that makes a record of values.
pub(crate) const ROW: &str = "row";
/// The function that makes one of names and values in turn.
pub(crate) const RECORD_OF: &str = "record_of";
/// The same of a row that an outer join may not have found: NULL where all values are.
pub(crate) const RECORD_OF_JOINED: &str = "record_of_joined";
/// A field of a record, by its name, while a statement is read; any `numeric` is a decimal there.
pub(crate) const RECORD_FIELD: &str = "record_field";
/// The same once all types are known.
pub(crate) const RECORD_FIELD_AS_IS: &str = "record_field_as_is";
/// A record as text, in the style of the session.
pub(crate) const RECORD_TEXT: &str = "record_text";
/// Whether all fields of a record are NULL.
pub(crate) const RECORD_IS_NULL: &str = "record_is_null";
/// Whether none of them is.
pub(crate) const RECORD_IS_NOT_NULL: &str = "record_is_not_null";

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let text = |_: &[ColumnType]| ColumnType::Stored(DataType::Text);
    let record_text = TypedFunction::new(RECORD_TEXT, text, |given| {
        let ([value], [own]) = (given.values, given.types) else { return Ok(Value::Null) };
        let mut text = String::new();
        write_text_of(value, *own, &mut text)?;
        Ok(Value::from(text))
    });
    let boolean = |_: &[ColumnType]| ColumnType::Stored(DataType::Boolean);
    let is_null = TypedFunction::new(RECORD_IS_NULL, boolean, |given| {
        all_fields(given.values, |field| field.is_none(), true)
    });
    let is_not_null = TypedFunction::new(RECORD_IS_NOT_NULL, boolean, |given| {
        all_fields(given.values, |field| field.is_some(), false)
    });
    let field = |is_planned| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(RecordField { is_planned, signature }))
    };
    let record_of = |form| {
        let signature = Signature::one_of(
            vec![TypeSignature::Nullary, TypeSignature::VariadicAny],
            Volatility::Immutable,
        );
        Arc::new(ScalarUDF::new_from_impl(RecordOf { form, signature }))
    };
    vec![
        record_text.strict().into_udf(),
        is_null.into_udf(),
        is_not_null.into_udf(),
        field(true),
        field(false),
        record_of(Form::Row),
        record_of(Form::Named),
        record_of(Form::Joined),
    ]
}

/// The type of a field of a record that a query makes of a value.
fn field_type(own: ColumnType) -> DataType {
    match own {
        // How many digits some have says nothing.
        ColumnType::Stored(DataType::Decimal { .. } | DataType::Numeric(_)) => {
            DataType::Numeric(None)
        }
        ColumnType::Stored(own) => own,
        ColumnType::Char => DataType::Text,
        ColumnType::Array(element) | ColumnType::Vector(element) => {
            element.array().unwrap_or(DataType::Text)
        }
    }
}

fn all_fields(
    values: &[Value<'_>],
    is_so: fn(Option<&str>) -> bool,
    of_null: bool,
) -> crate::Result<Value<'static>> {
    let [Value::Text(record)] = values else { return Ok(Value::Boolean(of_null)) };
    let fields = read_record(record)
        .map_err(|_| QueryError::Internal { message: "a record is none".to_owned() })?;
    Ok(Value::Boolean(fields.iter().all(|field| is_so(field.as_deref()))))
}

/// A record of a type in the style of the session.
///
/// # Errors
/// Text that is none.
pub(crate) fn styled_record(of: CompositeType, record: &str) -> crate::Result<String> {
    let mut fields = of.read(record).map_err(|fault| malformed(record, fault.to_string()))?;
    for ((_, data_type), field) in of.fields().iter().zip(&mut fields) {
        let Some(written) = field else { continue };
        let value = by_default(|| read_text(*data_type, written).map(Value::into_owned))?;
        let mut text = String::new();
        write_text_of(&value, (*data_type).into(), &mut text)?;
        *field = Some(text.into());
    }
    Ok(write_record(fields.iter().map(Option::as_deref)))
}

/// Reads a record of a type as someone wrote it, into the text that is kept.
///
/// # Errors
/// Text that is none; one of more or fewer fields.
pub(crate) fn read_composite(of: CompositeType, written: &str) -> crate::Result<String> {
    if of.is_anonymous() {
        let message = "input of anonymous composite types is not implemented";
        return Err(QueryError::refused("0A000", message));
    }
    let fields = of.read(written).map_err(|fault| malformed(written, fault.to_string()))?;
    let given = read_record(written).map_or(0, |fields| fields.len());
    if given < of.fields().len() {
        return Err(malformed(written, "Too few columns.".to_owned()));
    }
    let mut read = Vec::with_capacity(fields.len());
    for ((_, data_type), field) in of.fields().iter().zip(fields) {
        read.push(match field {
            Some(text) => Some(field_text(*data_type, &text)?),
            None => None,
        });
    }
    Ok(write_record(read.iter().map(Option::as_deref)))
}

/// A field as it is kept: with the digits and the blanks of its type.
///
/// # Errors
/// Text that is none of the type.
pub(crate) fn field_text(data_type: DataType, text: &str) -> crate::Result<String> {
    Ok(match data_type {
        DataType::Decimal { precision, scale } => {
            let limits = (u16::from(precision), i16::from(scale));
            written_plainly(&Value::Numeric(limited(of_text(text)?, Some(limits))?))
        }
        DataType::Char(length) => {
            let text = text.trim_end_matches(' ');
            let (length, count) = (usize::from(length), text.chars().count());
            if count > length {
                let message = format!("value too long for type character({length})");
                return Err(QueryError::refused("22001", message));
            }
            format!("{text}{}", " ".repeat(length - count))
        }
        DataType::Varchar(length) if text.chars().count() > length as usize => {
            let message = format!("value too long for type character varying({length})");
            return Err(QueryError::refused("22001", message));
        }
        other => written_plainly(&read_text(other, text)?),
    })
}

fn malformed(written: &str, why: String) -> QueryError {
    let shown: String = written.chars().take(80).collect();
    QueryError::refused("22P02", format!("malformed record literal: \"{shown}\"")).detail(why)
}

/// A field of a record, whose type is that of the field.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RecordField {
    is_planned: bool,
    signature: Signature,
}

/// The number and the type of a field of a composite type.
fn field_of(own: ColumnType, name: &str) -> crate::Result<(usize, CompositeType)> {
    let ColumnType::Stored(DataType::Composite(of)) = own else {
        let own = type_name(own);
        let message =
            format!("column notation .{name} applied to type {own}, which is not a composite type");
        return Err(QueryError::refused("42809", message));
    };
    let missing = || {
        let message = match of.is_anonymous() {
            true => format!("could not identify column \"{name}\" in record data type"),
            false => format!("column \"{name}\" not found in data type {}", type_name(own)),
        };
        QueryError::refused("42703", message)
    };
    let at = of.fields().iter().position(|(own, _)| **own == *name).ok_or_else(missing)?;
    Ok((at, of))
}

impl ScalarUDFImpl for RecordField {
    fn name(&self) -> &str {
        if self.is_planned { RECORD_FIELD } else { RECORD_FIELD_AS_IS }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        internal_err!("only its arguments tell the type of a field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [record, _] = args.arg_fields else { return internal_err!("{CALL}") };
        let name = constant(args.scalar_arguments.get(1).copied().flatten())?;
        if let ArrowType::Struct(fields) = record.data_type() {
            return match fields.find(name) {
                Some((_, field)) => Ok(Arc::clone(field)),
                None => internal_err!("a row of the catalogue has no field {name}"),
            };
        }
        let (at, of) = field_of(column_type(record), name)?;
        let field = if self.is_planned { planned_field } else { field };
        Ok(Arc::new(field(name, of.fields()[at].1.into(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [given, ColumnarValue::Scalar(name)] = args.args.as_slice() else {
            return internal_err!("{CALL}");
        };
        let (given, name) = (given.to_array(args.number_rows)?, constant(Some(name))?);
        if let Some(rows) = given.as_struct_opt() {
            return match rows.column_by_name(name) {
                Some(column) => Ok(ColumnarValue::Array(Arc::clone(column))),
                None => internal_err!("a row of the catalogue has no field {name}"),
            };
        }
        let (at, of) = field_of(column_type(&args.arg_fields[0]), name)?;
        let data_type = of.fields()[at].1;
        let records = given.as_string_opt::<i32>();
        let mut made = ColumnBuilder::new(data_type.into(), args.number_rows)?;
        for row in 0..args.number_rows {
            let record = records.filter(|all| all.is_valid(row)).map(|all| all.value(row));
            let fields = record.map(|record| {
                of.read(record).map_err(|fault| malformed(record, fault.to_string()))
            });
            let text = fields.transpose()?.and_then(|mut fields| fields.swap_remove(at));
            let read =
                |text: &str| by_default(|| read_text(data_type, text).map(Value::into_owned));
            let value = text.as_deref().map(read).transpose()?;
            made.append(&value.unwrap_or(Value::Null))?;
        }
        Ok(ColumnarValue::Array(made.finish()))
    }
}

const CALL: &str = "record_field is told a record and the name of a field";

fn constant(given: Option<&ScalarValue>) -> Result<&str> {
    match given {
        Some(ScalarValue::Utf8(Some(text))) => Ok(text),
        _ => internal_err!("the name of a field is a constant"),
    }
}

/// What a record is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// Values.
    Row,
    /// Names and values in turn.
    Named,
    /// The same, NULL where all values are.
    Joined,
}

/// A record of values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RecordOf {
    form: Form,
    signature: Signature,
}

impl ScalarUDFImpl for RecordOf {
    fn name(&self) -> &str {
        match self.form {
            Form::Row => ROW,
            Form::Named => RECORD_OF,
            Form::Joined => RECORD_OF_JOINED,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let own = |given: &FieldRef| field_type(column_type(given));
        let of = match self.form {
            Form::Row => CompositeType::anonymous(args.arg_fields.iter().map(own)),
            Form::Named | Form::Joined => {
                let mut fields = Vec::with_capacity(args.arg_fields.len() / 2);
                for (at, value) in args.arg_fields.iter().enumerate().skip(1).step_by(2) {
                    let name = constant(args.scalar_arguments.get(at - 1).copied().flatten())?;
                    fields.push((name.into(), own(value)));
                }
                CompositeType::named(fields)
            }
        };
        let of = of.ok_or_else(|| {
            let message = format!(
                "queries have made {ANONYMOUS_MAX} kinds of rows already, which the server keeps as long as it runs"
            );
            QueryError::refused("54000", message).hint("Declare a type for rows, and cast to it.")
        })?;
        Ok(Arc::new(field(self.name(), DataType::Composite(of).into(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut columns = argument_columns(&args)?;
        if self.form != Form::Row {
            columns = columns.into_iter().skip(1).step_by(2).collect();
        }
        let mut made = StringBuilder::with_capacity(args.number_rows, args.number_rows * 16);
        let mut fields = Vec::with_capacity(columns.len());
        for row in 0..args.number_rows {
            fields.clear();
            for (values, own) in &columns {
                let value = value_at(values, row, *own)?;
                fields.push((!value.is_null()).then(|| written_plainly(&value)));
            }
            match self.form == Form::Joined && fields.iter().all(Option::is_none) {
                true => made.append_null(),
                false => made.append_value(write_record(fields.iter().map(Option::as_deref))),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(made.finish())))
    }
}
