//! `pg_type`: the types that columns can have, and those of the catalogue itself.

use onrush::{DataType, Row, Value};
use onrush_query::ColumnType;
use postgres_types::Type;

use super::kinds::{BOOL, CHAR, INT2, INT4, NAME, OID, TEXT, TEXTS};
use super::names::{OWNER_OID, PG_CATALOG_OID, PG_TYPE_OID};
use super::{PG_CATALOG, SystemTable, oid};
use crate::values;

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_type",
    columns: &[
        ("oid", OID),
        ("typname", NAME),
        ("typnamespace", OID),
        ("typowner", OID),
        ("typlen", INT2),
        ("typbyval", BOOL),
        ("typtype", CHAR),
        ("typcategory", CHAR),
        ("typispreferred", BOOL),
        ("typisdefined", BOOL),
        ("typdelim", CHAR),
        ("typrelid", OID),
        ("typelem", OID),
        ("typarray", OID),
        ("typinput", TEXT),
        ("typnotnull", BOOL),
        ("typbasetype", OID),
        ("typtypmod", INT4),
        ("typndims", INT4),
        ("typcollation", OID),
        ("typdefault", TEXT),
        ("typacl", TEXTS),
        ("tableoid", OID),
    ],
    rows: |_, _| {
        let arrays = KNOWN.iter().filter_map(|(known, _)| Some((array_of(*known)?, "A")));
        KNOWN.iter().copied().chain(arrays).map(row).collect()
    },
}];

/// Each with the letter of its category.
const KNOWN: &[(ColumnType, &str)] = &[
    (ColumnType::Stored(DataType::Boolean), "B"),
    (ColumnType::Stored(DataType::Bytes), "U"),
    (ColumnType::Char, "Z"),
    (ColumnType::Stored(DataType::Name), "S"),
    (ColumnType::Stored(DataType::Int64), "N"),
    (ColumnType::Stored(DataType::Int16), "N"),
    (ColumnType::Stored(DataType::Int32), "N"),
    (ColumnType::Stored(DataType::Text), "S"),
    (ColumnType::Stored(DataType::Oid), "N"),
    (ColumnType::Stored(DataType::Float32), "N"),
    (ColumnType::Stored(DataType::Float64), "N"),
    (ColumnType::Stored(DataType::Char(1)), "S"),
    (ColumnType::Stored(DataType::Varchar(1)), "S"),
    (ColumnType::Stored(DataType::Date), "D"),
    (ColumnType::Stored(DataType::Time), "D"),
    (ColumnType::Stored(DataType::TimeTz), "D"),
    (ColumnType::Stored(DataType::Timestamp), "D"),
    (ColumnType::Stored(DataType::TimestampTz), "D"),
    (ColumnType::Stored(DataType::Interval), "T"),
    (ColumnType::Stored(DataType::Numeric(None)), "N"),
    (ColumnType::Stored(DataType::Uuid), "U"),
    (ColumnType::Stored(DataType::Json), "U"),
    (ColumnType::Stored(DataType::Jsonb), "U"),
];

fn array_of(column_type: ColumnType) -> Option<ColumnType> {
    match column_type {
        ColumnType::Stored(data_type) => Some(ColumnType::Array(data_type)),
        _ => None,
    }
}

fn row((column_type, category): (ColumnType, &'static str)) -> Row {
    let number = values::oid_of(column_type);
    let name = Type::from_oid(number).map_or(String::new(), |known| known.name().to_owned());
    let size = values::type_size(column_type);
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    let is_text = category == "S";
    let element = match column_type {
        ColumnType::Array(element) => values::oid_of(element),
        _ => 0,
    };
    vec![
        oid(number),
        name.clone().into(),
        oid(PG_CATALOG_OID),
        oid(OWNER_OID),
        Value::Int16(size),
        Value::Boolean((1..=8).contains(&size)),
        "b".into(),
        category.into(),
        no.clone(),
        yes,
        ",".into(),
        oid(0),
        oid(element),
        oid(array_of(column_type).map_or(0, values::oid_of)),
        if element == 0 { format!("{name}in").into() } else { "array_in".into() },
        no,
        oid(0),
        Value::Int32(-1),
        Value::Int32(0),
        oid(if is_text { 100 } else { 0 }),
        Value::Null,
        Value::Null,
        oid(PG_TYPE_OID),
    ]
}
