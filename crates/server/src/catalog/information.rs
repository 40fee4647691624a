//! `information_schema`: what the standard says about tables.

use onrush::{CheckConstraint, Clock, DataType, IntervalFields, Row, Table, Value};
use onrush_query::{ColumnType, Statement};

use super::indexes::{self, Index};
use super::kinds::{INT4, NAME, TEXT};
use super::names::{self, Naming};
use super::roles::Rights;
use super::{INFORMATION_SCHEMA, SystemTable, domains, foreign_keys};
use crate::schemas;
use crate::seen::Seen;
use crate::sql::{Updatable, check_as_shown};
use crate::{values, views};

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "schemata",
        columns: &[("catalog_name", NAME), ("schema_name", NAME), ("schema_owner", NAME)],
        rows: |known, statement| {
            let rights = Rights::of(known);
            let row = |(_, schema): (u32, String)| {
                let owner = rights.schema_owner(&schema).to_owned();
                vec![database(statement), schema.into(), owner.into()]
            };
            names::all_schemas(known).into_iter().map(row).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "tables",
        columns: &[
            ("table_catalog", NAME),
            ("table_schema", NAME),
            ("table_name", NAME),
            ("table_type", TEXT),
            ("is_insertable_into", TEXT),
        ],
        rows: |seen, statement| {
            let row = |table: &Table| {
                let mut row = place(table, statement);
                let is_view = table.definition().view().is_some();
                let kind = match (is_view, names::is_temporary(table)) {
                    (true, _) => "VIEW",
                    (_, true) => "LOCAL TEMPORARY",
                    _ => "BASE TABLE",
                };
                let is_written = !is_view || Updatable::of(seen, table).is_ok();
                row.extend([kind.into(), word(is_written)]);
                row
            };
            tables_and_views(seen).iter().map(row).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "columns",
        columns: &[
            ("table_catalog", NAME),
            ("table_schema", NAME),
            ("table_name", NAME),
            ("column_name", NAME),
            ("ordinal_position", INT4),
            ("column_default", TEXT),
            ("is_nullable", TEXT),
            ("data_type", TEXT),
            ("character_maximum_length", INT4),
            ("numeric_precision", INT4),
            ("numeric_scale", INT4),
            ("datetime_precision", INT4),
            ("interval_type", TEXT),
            ("udt_name", NAME),
            ("is_identity", TEXT),
            ("identity_generation", TEXT),
            ("is_generated", TEXT),
            ("generation_expression", TEXT),
            ("is_updatable", TEXT),
            ("domain_catalog", NAME),
            ("domain_schema", NAME),
            ("domain_name", NAME),
        ],
        rows: |seen, statement| {
            let rows = |table: &Table| columns(seen, table, statement);
            tables_and_views(seen).iter().flat_map(rows).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "table_constraints",
        columns: &[
            ("constraint_catalog", NAME),
            ("constraint_schema", NAME),
            ("constraint_name", NAME),
            ("table_catalog", NAME),
            ("table_schema", NAME),
            ("table_name", NAME),
            ("constraint_type", TEXT),
            ("is_deferrable", TEXT),
            ("initially_deferred", TEXT),
            ("enforced", TEXT),
        ],
        rows: |seen, statement| {
            let rows = |table: &Table| constraints(seen, table, statement);
            seen.tables().iter().flat_map(rows).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "check_constraints",
        columns: &[
            ("constraint_catalog", NAME),
            ("constraint_schema", NAME),
            ("constraint_name", NAME),
            ("check_clause", TEXT),
        ],
        rows: |seen, statement| {
            let rows = |table: &Table| checks(table, statement);
            let mut all: Vec<Row> = seen.tables().iter().flat_map(rows).collect();
            all.extend(seen.domains().iter().flat_map(rows));
            all
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "key_column_usage",
        columns: &[
            ("constraint_catalog", NAME),
            ("constraint_schema", NAME),
            ("constraint_name", NAME),
            ("table_catalog", NAME),
            ("table_schema", NAME),
            ("table_name", NAME),
            ("column_name", NAME),
            ("ordinal_position", INT4),
            ("position_in_unique_constraint", INT4),
        ],
        rows: |seen, statement| {
            let rows = |table: &Table| key_usage(seen, table, statement);
            seen.tables().iter().flat_map(rows).collect()
        },
    },
];

fn database(statement: &Statement) -> Value<'static> {
    statement.client.database.to_string().into()
}

/// Where a table is.
pub(super) fn place(table: &Table, statement: &Statement) -> Row {
    let (schema, name) = schemas::parts(table.name());
    vec![database(statement), schema.to_owned().into(), name.to_owned().into()]
}

/// Where a constraint of a table is.
pub(super) fn constraint(table: &Table, name: String, statement: &Statement) -> Row {
    vec![database(statement), schemas::parts(table.name()).0.to_owned().into(), name.into()]
}

fn constraints(seen: &Seen, table: &Table, statement: &Statement) -> Vec<Row> {
    let row = |name: String, kind: &'static str, is_deferrable: bool, is_deferred: bool| {
        let mut row = constraint(table, name, statement);
        row.extend(place(table, statement));
        row.extend([kind.into(), word(is_deferrable), word(is_deferred), word(true)]);
        row
    };
    let checks = table.definition().checks().iter();
    let checks = checks.map(|check| row(check.name.clone(), "CHECK", false, false));
    let foreign = |key: foreign_keys::Key| {
        let (is_deferrable, is_deferred) = (key.is_deferrable(), key.is_deferred());
        row(key.definition.name, "FOREIGN KEY", is_deferrable, is_deferred)
    };
    let foreign = foreign_keys::of(seen, table).into_iter().map(foreign);
    let unique = |index: &Index| {
        let kind = if index.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        let is_deferred = index.deferrable.is_some_and(|of| of.is_deferred);
        let is_deferrable = index.deferrable.is_some();
        index.constraint.map(|_| row(index.name.clone(), kind, is_deferrable, is_deferred))
    };
    let indexes = indexes::all(table);
    indexes.iter().filter_map(unique).chain(checks).chain(foreign).collect()
}

fn checks(table: &Table, statement: &Statement) -> Vec<Row> {
    let definition = table.definition();
    let row = |check: &CheckConstraint| {
        let shown = check_as_shown(definition, check, false);
        let mut row = constraint(table, check.name.clone(), statement);
        row.push(shown.strip_prefix("CHECK ").unwrap_or(&shown).to_owned().into());
        row
    };
    definition.checks().iter().map(row).collect()
}

fn word(is_so: bool) -> Value<'static> {
    if is_so { "YES".into() } else { "NO".into() }
}

fn tables_and_views(seen: &Seen) -> Vec<Table> {
    let mut all = seen.relations();
    let is_shown = |table: &Table| {
        let definition = table.definition();
        definition.sequence().is_none() && definition.materialized_view().is_none()
    };
    all.retain(is_shown);
    all
}

/// As [`type_columns`] of a type of a user.
pub(super) fn of_user() -> Vec<Value<'static>> {
    let unknown = [const { Value::Null }; 5];
    std::iter::once("USER-DEFINED".into()).chain(unknown).collect()
}

pub(super) fn own_name(table: &Table) -> String {
    schemas::own_name(table.name()).to_owned()
}

/// What the standard tells of a type: its name, length, digits and fields.
pub(super) fn type_columns(column_type: ColumnType) -> Vec<Value<'static>> {
    let number = |number: i32| Value::Int32(number);
    let own = match column_type {
        ColumnType::Stored(data_type) => Some(data_type),
        _ => None,
    };
    let (length, precision, scale) = match own.unwrap_or(DataType::Text) {
        DataType::Char(bytes) => (number(i32::from(bytes)), Value::Null, Value::Null),
        DataType::Varchar(characters) => {
            (number(characters.cast_signed()), Value::Null, Value::Null)
        }
        DataType::Decimal { precision, scale } => {
            (Value::Null, number(i32::from(precision)), number(i32::from(scale)))
        }
        DataType::Numeric(Some((precision, scale))) => {
            // As PostgreSQL has it of a scale below zero.
            (Value::Null, number(i32::from(precision)), number(i32::from(scale) & 0x7FF))
        }
        DataType::Int16 => (Value::Null, number(16), number(0)),
        DataType::Int32 => (Value::Null, number(32), number(0)),
        DataType::Int64 => (Value::Null, number(64), number(0)),
        _ => (Value::Null, Value::Null, Value::Null),
    };
    let written = match column_type {
        ColumnType::Array(_) => "ARRAY".to_owned(),
        ColumnType::Stored(DataType::Enum(_) | DataType::Composite(_)) => "USER-DEFINED".to_owned(),
        ColumnType::Stored(data_type) => values::type_name(data_type.unrounded()),
        other => values::name_of(other),
    };
    let plain = written.split('(').next().unwrap_or_default().to_owned();
    vec![
        plain.into(),
        length,
        precision,
        scale,
        own.and_then(digits_of_seconds).map_or(Value::Null, number),
        own.and_then(interval_type).map_or(Value::Null, Value::from),
    ]
}

fn columns(seen: &Seen, table: &Table, statement: &Statement) -> Vec<Row> {
    let naming = Naming::of(seen, &statement.client);
    let definition = table.definition();
    let is_written = definition.view().is_none() || Updatable::of(seen, table).is_ok();
    let number = |number: i32| Value::Int32(number);
    let row = |(at, position): (usize, usize)| {
        let column = &definition.columns()[position];
        let column_type = views::column_type(definition, position);
        let is_key = definition.primary_key().contains(&position);
        let generated = names::generated_as(definition, position);
        let domain = column.domain.as_ref().and_then(|of| seen.numbered(of.number));
        let mut row = place(table, statement);
        row.extend([
            column.name.clone().into(),
            number(i32::try_from(at + 1).unwrap_or(i32::MAX)),
            names::default_of(&naming, column).map_or(Value::Null, Value::from),
            word(column.nullable && !is_key && !domain.as_ref().is_some_and(domains::refuses_null)),
        ]);
        let over = domain.as_ref().and_then(|domain| domains::over(seen, domain));
        row.extend(over.as_ref().map_or_else(|| type_columns(column_type), |_| of_user()));
        row.extend([
            over.map_or_else(|| names::udt_name(column_type), |over| own_name(&over)).into(),
            word(names::is_identity(column)),
            match names::is_identity(column) {
                true if column.is_always_generated => "ALWAYS".into(),
                true => "BY DEFAULT".into(),
                false => Value::Null,
            },
            if generated.is_some() { "ALWAYS".into() } else { "NEVER".into() },
            generated.map_or(Value::Null, Value::from),
            word(is_written),
        ]);
        let nowhere = || vec![Value::Null, Value::Null, Value::Null];
        row.extend(domain.map_or_else(nowhere, |domain| place(&domain, statement)));
        row
    };
    definition.shown_columns().enumerate().map(row).collect()
}

/// How many digits behind the point the seconds of a type have.
fn digits_of_seconds(data_type: DataType) -> Option<i32> {
    match data_type {
        DataType::Rounded(_, digits) => Some(digits.map_or(6, i32::from)),
        DataType::Date => Some(0),
        DataType::Time
        | DataType::TimeTz
        | DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Interval => Some(6),
        _ => None,
    }
}

/// The fields of an interval, as they are told.
fn interval_type(data_type: DataType) -> Option<String> {
    match data_type {
        DataType::Rounded(Clock::Interval(fields), digits) if fields != IntervalFields::All => {
            let digits = digits.map_or(String::new(), |digits| format!("({digits})"));
            Some(format!("{}{digits}", fields.name()).to_uppercase())
        }
        _ => None,
    }
}

fn key_usage(seen: &Seen, table: &Table, statement: &Statement) -> Vec<Row> {
    let definition = table.definition();
    let row = |name: &str, column: usize, number: i32, in_unique: Value<'static>| {
        let mut row = constraint(table, name.to_owned(), statement);
        row.extend(place(table, statement));
        row.extend([definition.columns()[column].name.clone().into(), Value::Int32(number)]);
        row.push(in_unique);
        row
    };
    let rows = |index: Index| {
        let columns = index.columns().into_iter().zip(1..);
        let row = |(column, number)| row(&index.name, column, number, Value::Null);
        columns.map(row).collect::<Vec<_>>()
    };
    let foreign = |key: foreign_keys::Key| {
        let in_key = key.positions_in_key();
        let columns = key.columns().into_iter().zip(in_key).zip(1..);
        let name = &key.definition.name;
        let row = |((column, place), number)| row(name, column, number, Value::Int32(place));
        columns.map(row).collect::<Vec<_>>()
    };
    let indexes = indexes::all(table).into_iter().filter(|index| index.constraint.is_some());
    let foreign = foreign_keys::of(seen, table).into_iter().flat_map(foreign);
    indexes.flat_map(rows).chain(foreign).collect()
}
