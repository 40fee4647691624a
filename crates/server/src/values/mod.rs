//! Values on the wire: which PostgreSQL type a column has, and how its values are written and read
//! in text and in binary.

mod array;
mod decode;
mod encode;
mod formats;
mod key;
mod network;
mod numeric;
mod record;

use onrush::{Clock, DataType, EnumType, Interval, IntervalFields, Numeric, Value};
use onrush_query::ColumnType;
use onrush_query::style::by_default;
use postgres_types::{Kind, Type};

pub(crate) use decode::{Wire, decode};
pub(crate) use encode::{as_of_client, binary};
pub(crate) use formats::Formats;
pub(crate) use key::{constant_key, decode_key, key};
pub(crate) use onrush_query::{write_text, write_text_of, written_plainly};

use crate::catalog::{oid_of as oid_of_table, quoted};
use crate::error::{Result, SqlError, state};
use crate::schemas;

const DAY_MICROS: i64 = 86_400_000_000;

/// The number of the type in `pg_type`.
pub(crate) fn oid_of(column_type: impl Into<ColumnType>) -> u32 {
    wire_type(column_type.into()).oid()
}

/// The type as clients are told it.
pub(crate) fn wire_type(column_type: ColumnType) -> Type {
    match column_type {
        ColumnType::Stored(data_type) => type_of(data_type),
        ColumnType::Char => Type::CHAR,
        ColumnType::Array(element) => array::type_of(element),
        ColumnType::Vector(DataType::Int16) => Type::INT2_VECTOR,
        ColumnType::Vector(_) => Type::OID_VECTOR,
    }
}

/// The type with this number; none where a value of it is read by what it stands beside.
pub(crate) fn column_type_of(oid: u32) -> Option<ColumnType> {
    let known = Type::from_oid(oid)?;
    if let Kind::Array(element) = known.kind() {
        return Some(ColumnType::Array(match column_type_of(element.oid())? {
            ColumnType::Stored(data_type) => data_type,
            ColumnType::Char => DataType::Text,
            ColumnType::Array(_) | ColumnType::Vector(_) => return None,
        }));
    }
    let data_type = match known {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::NUMERIC => DataType::Numeric(None),
        Type::BPCHAR | Type::VARCHAR | Type::TEXT => DataType::Text,
        Type::BYTEA => DataType::Bytes,
        Type::UUID => DataType::Uuid,
        Type::DATE => DataType::Date,
        Type::TIME => DataType::Time,
        Type::TIMESTAMP => DataType::Timestamp,
        Type::TIMESTAMPTZ => DataType::TimestampTz,
        Type::JSON => DataType::Json,
        Type::JSONB => DataType::Jsonb,
        Type::OID => DataType::Oid,
        Type::NAME => DataType::Name,
        Type::INTERVAL => DataType::Interval,
        Type::TIMETZ => DataType::TimeTz,
        Type::INET => DataType::Inet,
        Type::CIDR => DataType::Cidr,
        Type::MACADDR => DataType::MacAddress,
        _ => return None,
    };
    Some(ColumnType::Stored(data_type))
}

/// A type as PostgreSQL writes it.
pub(crate) fn type_name(data_type: DataType) -> String {
    match data_type {
        DataType::Float64 => "double precision".to_owned(),
        DataType::Decimal { precision, scale } => format!("numeric({precision},{scale})"),
        DataType::Char(length) => format!("character({length})"),
        DataType::Varchar(length) => format!("character varying({length})"),
        DataType::Enum(of) => own_type_name(of.name()),
        DataType::Composite(of) if !of.is_anonymous() => own_type_name(of.name()),
        DataType::Array(element) => name_of(ColumnType::Array(*element)),
        DataType::Bytes => "bytea".to_owned(),
        DataType::Time => "time without time zone".to_owned(),
        DataType::TimeTz => "time with time zone".to_owned(),
        DataType::Timestamp => "timestamp without time zone".to_owned(),
        DataType::TimestampTz => "timestamp with time zone".to_owned(),
        DataType::Rounded(clock, digits) => {
            let digits = digits.map_or(String::new(), |digits| format!("({digits})"));
            match clock {
                Clock::TimeTz => format!("time{digits} with time zone"),
                Clock::Time => format!("time{digits} without time zone"),
                Clock::Timestamp => format!("timestamp{digits} without time zone"),
                Clock::TimestampTz => format!("timestamp{digits} with time zone"),
                Clock::Interval(IntervalFields::All) => format!("interval{digits}"),
                Clock::Interval(fields) => format!("interval {}{digits}", fields.name()),
            }
        }
        other => other.to_string(),
    }
}

/// An own type as it is called in statements, with its schema unless that is `public`.
fn own_type_name(name: &str) -> String {
    match schemas::parts(name) {
        (schemas::PUBLIC, own) => quoted(own),
        (schema, own) => format!("{}.{}", quoted(schema), quoted(own)),
    }
}

/// A type of a column of an answer as PostgreSQL writes it.
pub(crate) fn name_of(column_type: ColumnType) -> String {
    match column_type {
        ColumnType::Stored(data_type) => type_name(data_type),
        ColumnType::Char => "\"char\"".to_owned(),
        ColumnType::Vector(DataType::Int16) => "int2vector".to_owned(),
        ColumnType::Vector(_) => "oidvector".to_owned(),
        ColumnType::Array(element) => {
            let element = type_name(element);
            format!("{}[]", element.split('(').next().unwrap_or_default())
        }
    }
}

/// The type without digits and lengths.
pub(crate) fn plain_name_of(column_type: impl Into<ColumnType>) -> String {
    match column_type.into() {
        ColumnType::Stored(data_type @ (DataType::Enum(_) | DataType::Composite(_))) => {
            type_name(data_type)
        }
        ColumnType::Stored(data_type) => {
            let name = type_name(data_type.unrounded());
            name.split('(').next().unwrap_or_default().to_owned()
        }
        other => name_of(other),
    }
}

/// The PostgreSQL type of a column.
pub(crate) fn type_of(data_type: DataType) -> Type {
    match data_type {
        DataType::Boolean => Type::BOOL,
        DataType::Int16 => Type::INT2,
        DataType::Int32 => Type::INT4,
        DataType::Int64 => Type::INT8,
        DataType::Float32 => Type::FLOAT4,
        DataType::Float64 => Type::FLOAT8,
        DataType::Decimal { .. } | DataType::Numeric(_) => Type::NUMERIC,
        DataType::Char(_) => Type::BPCHAR,
        DataType::Varchar(_) => Type::VARCHAR,
        DataType::Text => Type::TEXT,
        DataType::Bytes => Type::BYTEA,
        DataType::Uuid => Type::UUID,
        DataType::Date => Type::DATE,
        DataType::Time => Type::TIME,
        DataType::Timestamp => Type::TIMESTAMP,
        DataType::TimestampTz => Type::TIMESTAMPTZ,
        DataType::Json => Type::JSON,
        DataType::Jsonb => Type::JSONB,
        DataType::Interval => Type::INTERVAL,
        DataType::TimeTz => Type::TIMETZ,
        DataType::Inet => Type::INET,
        DataType::Cidr => Type::CIDR,
        DataType::MacAddress => Type::MACADDR,
        DataType::Name => Type::NAME,
        DataType::Oid => Type::OID,
        DataType::Rounded(clock, _) => type_of(clock.data_type()),
        DataType::Enum(of) => enum_type(of),
        DataType::Composite(of) => record::type_of(of),
        DataType::Array(element) => array::type_of(*element),
    }
}

/// An enumerated type as clients are told it.
fn enum_type(of: EnumType) -> Type {
    let (schema, own) = schemas::parts(of.name());
    let labels = of.labels().iter().map(|(_, label)| label.to_owned());
    Type::new(own.to_owned(), enum_oid(of), Kind::Enum(labels.collect()), schema.to_owned())
}

/// The number of an enumerated type in `pg_type`.
pub(crate) fn enum_oid(of: EnumType) -> u32 {
    // What stands for a type that is not known any more is a text to clients.
    if of.id() == 0 { Type::TEXT.oid() } else { oid_of_table(of.id()) }
}

/// Bytes of a value in `pg_type`, -1 where they vary.
pub(crate) fn type_size(column_type: ColumnType) -> i16 {
    let data_type = match column_type {
        ColumnType::Stored(data_type) => data_type,
        ColumnType::Char => return 1,
        ColumnType::Array(_) | ColumnType::Vector(_) => return -1,
    };
    match data_type.unrounded() {
        DataType::Boolean => 1,
        DataType::Int16 => 2,
        DataType::Int32
        | DataType::Float32
        | DataType::Date
        | DataType::Oid
        | DataType::Enum(_) => 4,
        DataType::Name => 64,
        DataType::Int64
        | DataType::Float64
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampTz => 8,
        DataType::MacAddress => 6,
        DataType::TimeTz => 12,
        DataType::Uuid | DataType::Interval => 16,
        _ => -1,
    }
}

/// The modifier in `pg_attribute`: length or precision, with 4 added as PostgreSQL does; -1 for none.
pub(crate) fn type_modifier(column_type: ColumnType) -> i32 {
    let (ColumnType::Stored(data_type) | ColumnType::Array(data_type)) = column_type else {
        return -1;
    };
    match data_type {
        DataType::Char(length) => i32::from(length) + 4,
        DataType::Varchar(length) => length.cast_signed() + 4,
        DataType::Decimal { precision, scale } => {
            (i32::from(precision) << 16 | i32::from(scale)) + 4
        }
        DataType::Rounded(Clock::Interval(fields), digits) => {
            i32::from(bits_of_fields(fields)) << 16 | digits.map_or(0xFFFF, i32::from)
        }
        DataType::Rounded(_, digits) => digits.map_or(-1, i32::from),
        // The scale has eleven bits, one of them for its sign.
        DataType::Numeric(Some((precision, scale))) => {
            (i32::from(precision) << 16 | (i32::from(scale) & 0x7FF)) + 4
        }
        _ => -1,
    }
}

/// The fields of an interval in a modifier.
fn bits_of_fields(fields: IntervalFields) -> u16 {
    const YEAR: u16 = 1 << 2;
    const MONTH: u16 = 1 << 1;
    const DAY: u16 = 1 << 3;
    const HOUR: u16 = 1 << 10;
    const MINUTE: u16 = 1 << 11;
    const SECOND: u16 = 1 << 12;
    match fields {
        IntervalFields::All => 0x7FFF,
        IntervalFields::Year => YEAR,
        IntervalFields::Month => MONTH,
        IntervalFields::YearToMonth => YEAR | MONTH,
        IntervalFields::Day => DAY,
        IntervalFields::Hour => HOUR,
        IntervalFields::DayToHour => DAY | HOUR,
        IntervalFields::Minute => MINUTE,
        IntervalFields::DayToMinute => DAY | HOUR | MINUTE,
        IntervalFields::HourToMinute => HOUR | MINUTE,
        IntervalFields::Second => SECOND,
        IntervalFields::DayToSecond => DAY | HOUR | MINUTE | SECOND,
        IntervalFields::HourToSecond => HOUR | MINUTE | SECOND,
        IntervalFields::MinuteToSecond => MINUTE | SECOND,
    }
}

/// The type of times or intervals with this modifier.
pub(crate) fn with_modifier(data_type: DataType, modifier: i64) -> Option<DataType> {
    let clock = match data_type {
        DataType::Time => Clock::Time,
        DataType::TimeTz => Clock::TimeTz,
        DataType::Timestamp => Clock::Timestamp,
        DataType::TimestampTz => Clock::TimestampTz,
        DataType::Interval => {
            let is_it =
                |fields: &IntervalFields| i64::from(bits_of_fields(*fields)) == modifier >> 16;
            Clock::Interval(IntervalFields::EACH.into_iter().find(is_it)?)
        }
        _ => return None,
    };
    let digits = match (clock, modifier & 0xFFFF) {
        (Clock::Interval(_), 0xFFFF) => None,
        (_, digits) => Some(u8::try_from(digits).ok()?),
    };
    Some(DataType::Rounded(clock, digits))
}

/// Reads text as PostgreSQL does: numbers are rounded to what a numeric column keeps.
pub(crate) fn read(data_type: DataType, written: &str) -> Result<Value<'_>> {
    if let DataType::Decimal { precision, scale } = data_type
        && let Some(value) = numeric::read_into(written, precision, scale)
    {
        return value;
    }
    if let DataType::Numeric(limits) = data_type {
        return numeric::read_any(written, limits);
    }
    if let DataType::Array(element) = data_type {
        return array::read_elements(written, *element).map(Value::from);
    }
    Ok(onrush_query::read_text(data_type, written)?)
}

/// Reads a number of a statement, which is rounded where a column has whole ones.
pub(crate) fn read_number(data_type: DataType, written: &str) -> Result<Value<'_>> {
    let is_whole = matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64);
    if data_type.unrounded() == DataType::Interval {
        return Err(no_interval(numeric::kind_of(written)));
    }
    if is_whole
        && written.contains(['.', 'e', 'E'])
        && let Ok(value) = written.parse::<Numeric>()
    {
        return numeric::whole_of_any(&value, data_type);
    }
    // As its type shows it: without zeros in front, and in full.
    if data_type.is_text()
        && let Ok(value) = written.parse::<Numeric>()
    {
        return Ok(read(data_type, &value.to_string())?.into_owned());
    }
    match read(data_type, written) {
        Err(error) if is_whole && error.state == state::NUMERIC_OUT_OF_RANGE => {
            let message = format!("{data_type} out of range");
            Err(SqlError::new(state::NUMERIC_OUT_OF_RANGE, message))
        }
        other => other,
    }
}

/// The value as one that a column of `data_type` takes: what widens without loss is left to the
/// engine, numbers are rounded, everything else goes through its text.
pub(crate) fn coerce(value: Value<'_>, data_type: DataType) -> Result<Value<'_>> {
    if let DataType::Rounded(clock, _) = data_type {
        return Ok(data_type.rounded(coerce(value, clock.data_type())?));
    }
    let is_whole = matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64);
    match (&value, data_type) {
        (Value::Decimal(value), DataType::Decimal { precision, scale }) => {
            return numeric::rounded(*value, precision, scale);
        }
        (Value::Decimal(value), _) if is_whole => return numeric::whole(*value, data_type),
        (Value::Numeric(value), DataType::Decimal { precision, scale }) => {
            return numeric::small(value, precision, scale);
        }
        (Value::Numeric(value), _) if is_whole => return numeric::whole_of_any(value, data_type),
        (Value::Numeric(value), DataType::Float64) => return Ok(Value::Float64(value.to_f64())),
        (Value::Float32(value), DataType::Numeric(limits)) => {
            return numeric::limited(&Numeric::from_f32(*value), limits);
        }
        (Value::Float64(value), DataType::Numeric(limits)) => {
            return numeric::limited(&Numeric::from_f64(*value), limits);
        }
        (value, DataType::Numeric(limits)) if let Some(number) = value.as_numeric() => {
            return numeric::limited(&number, limits);
        }
        (Value::Float32(value), _) if is_whole => {
            return numeric::whole_of_float(f64::from(*value), data_type);
        }
        (Value::Float64(value), _) if is_whole => {
            return numeric::whole_of_float(*value, data_type);
        }
        _ => {}
    }
    if data_type == DataType::Name && !matches!(value, Value::Null | Value::Default) {
        let text = match &value {
            Value::Text(text) => onrush_query::name_of(text).to_owned(),
            other => onrush_query::name_of(&written_plainly(other)).to_owned(),
        };
        return Ok(Value::from(text));
    }
    if fits_as_it_is(&value, data_type) {
        return Ok(value);
    }
    if let (Value::Int64(_), DataType::Oid) = (&value, data_type) {
        return Err(SqlError::new(state::NUMERIC_OUT_OF_RANGE, "OID out of range"));
    }
    if data_type == DataType::Interval {
        match value {
            Value::Time(micros) => return Ok(Interval::of_micros(micros).into()),
            Value::Text(_) => {}
            other => return Err(no_interval(other.kind())),
        }
    }
    if let (Value::Interval(interval), DataType::Time) = (&value, data_type) {
        return Ok(Value::Time(interval.micros.rem_euclid(DAY_MICROS)));
    }
    if let (Value::Inet(address), DataType::Cidr) = (&value, data_type) {
        return Ok(Value::Cidr(address.network()));
    }
    if let Some(moved) = onrush_query::style::coerce_timestamp(&value, data_type)? {
        return Ok(moved);
    }
    // As text an address shows the length of its network, whatever it is.
    if let (Value::Inet(address), true) = (&value, data_type.is_text()) {
        return Ok(Value::from(format!("{address:#}")));
    }
    // As a text it is the whole word, which is cut or refused as others are.
    if let (Value::Boolean(is_true), true) = (&value, data_type.is_text()) {
        return Ok(Value::from(if *is_true { "true" } else { "false" }));
    }
    if data_type.is_text() {
        let mut text = String::new();
        // Memory takes what there is.
        let _ = write_text(&value, &mut text);
        return Ok(Value::from(text));
    }
    let written = match &value {
        Value::Text(text) => return Ok(read(data_type, text)?.into_owned()),
        other => written_plainly(other),
    };
    by_default(|| Ok(read(data_type, &written)?.into_owned()))
}

fn no_interval(kind: &str) -> SqlError {
    let message = format!("column is of type interval but expression is of type {kind}");
    SqlError::new(state::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression.")
}

fn fits_as_it_is(value: &Value<'_>, data_type: DataType) -> bool {
    match (value, data_type) {
        (Value::Null | Value::Default, _)
        | (Value::Boolean(_), DataType::Boolean)
        | (Value::Int16(_), DataType::Int16 | DataType::Int32 | DataType::Int64)
        | (Value::Int32(_), DataType::Int32 | DataType::Int64)
        | (Value::Int64(_), DataType::Int64)
        | (Value::Int16(_) | Value::Int32(_) | Value::Int64(_), DataType::Decimal { .. })
        | (Value::Float32(_), DataType::Float32)
        | (Value::Float64(_), DataType::Float64)
        | (Value::Bytes(_), DataType::Bytes)
        | (Value::Uuid(_), DataType::Uuid)
        | (Value::Date(_), DataType::Date)
        | (Value::Time(_), DataType::Time)
        | (Value::Timestamp(_), DataType::Timestamp)
        | (Value::TimestampTz(_), DataType::TimestampTz)
        | (Value::Interval(_), DataType::Interval)
        | (Value::TimeTz(_), DataType::TimeTz)
        | (Value::Inet(_) | Value::Cidr(_), DataType::Inet)
        | (Value::Cidr(_), DataType::Cidr)
        | (Value::MacAddress(_), DataType::MacAddress) => true,
        // Of whole numbers those of 32 bits have a sign, which is none there.
        (Value::Int16(0..) | Value::Int32(0..) | Value::Int64(0..=0xFFFF_FFFF), DataType::Oid) => {
            true
        }
        (Value::Text(_), other) => other.is_text(),
        _ => false,
    }
}
