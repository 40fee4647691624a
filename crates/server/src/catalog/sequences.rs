//! Sequences as PostgreSQL's tools look for them.

use std::fmt::Write;

use onrush::{DataType, Database, SequenceDefinition, Table, Value};
use onrush_query::{Client, SystemFunction};

use super::functions::number;
use super::kinds::{BOOL, INT4, INT8, NAME, OID, TEXT};
use super::names::{self, Naming};
use super::roles::Rights;
use super::{INFORMATION_SCHEMA, PG_CATALOG, SystemTable, oid};
use crate::access::Right;
use crate::execute::{caller_of, seen_by};
use crate::schemas;
use crate::seen::Seen;
use crate::sequences::{Identity, Position, ValueSource};
use crate::sql::Lookup;
use crate::values;

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_sequence",
        columns: &[
            ("seqrelid", OID),
            ("seqtypid", OID),
            ("seqstart", INT8),
            ("seqincrement", INT8),
            ("seqmax", INT8),
            ("seqmin", INT8),
            ("seqcache", INT8),
            ("seqcycle", BOOL),
        ],
        rows: |seen, _| {
            let row = |Shown { number, sequence, .. }: Shown| {
                let mut row = vec![oid(number), oid(values::oid_of(sequence.data_type))];
                row.extend(numbers(&sequence));
                row.extend([sequence.cache.into(), Value::Boolean(sequence.cycles)]);
                row
            };
            all(seen).into_iter().map(row).collect()
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_sequences",
        columns: &[
            ("schemaname", NAME),
            ("sequencename", NAME),
            ("sequenceowner", NAME),
            ("data_type", TEXT),
            ("start_value", INT8),
            ("min_value", INT8),
            ("max_value", INT8),
            ("increment_by", INT8),
            ("cycle", BOOL),
            ("cache_size", INT8),
            ("last_value", INT8),
        ],
        rows: |seen, statement| {
            let rights = Rights::of(seen);
            let row = |Shown { name, sequence, source, .. }: Shown| {
                let (schema, name) = schemas::parts(&name);
                let owner = match &source {
                    ValueSource::Sequence(table) => rights.owner(table),
                    ValueSource::Identity(identity) => rights.owner(&identity.table),
                };
                vec![
                    schema.to_owned().into(),
                    name.to_owned().into(),
                    owner.to_owned().into(),
                    values::type_name(sequence.data_type).into(),
                    sequence.start.into(),
                    sequence.least.into(),
                    sequence.greatest.into(),
                    sequence.increment.into(),
                    Value::Boolean(sequence.cycles),
                    sequence.cache.into(),
                    last_value(&statement.client, &source),
                ]
            };
            all(seen).into_iter().map(row).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "sequences",
        columns: &[
            ("sequence_catalog", NAME),
            ("sequence_schema", NAME),
            ("sequence_name", NAME),
            ("data_type", TEXT),
            ("numeric_precision", INT4),
            ("numeric_precision_radix", INT4),
            ("numeric_scale", INT4),
            ("start_value", TEXT),
            ("minimum_value", TEXT),
            ("maximum_value", TEXT),
            ("increment", TEXT),
            ("cycle_option", TEXT),
        ],
        rows: |seen, statement| {
            let row = |Shown { name, sequence, .. }: Shown| {
                let (schema, name) = schemas::parts(&name);
                let bits = match sequence.data_type {
                    DataType::Int16 => 16,
                    DataType::Int32 => 32,
                    _ => 64,
                };
                let text = |number: i64| Value::from(number.to_string());
                vec![
                    statement.client.database.to_string().into(),
                    schema.to_owned().into(),
                    name.to_owned().into(),
                    values::type_name(sequence.data_type).into(),
                    Value::Int32(bits),
                    Value::Int32(2),
                    Value::Int32(0),
                    text(sequence.start),
                    text(sequence.least),
                    text(sequence.greatest),
                    text(sequence.increment),
                    if sequence.cycles { "YES".into() } else { "NO".into() },
                ]
            };
            // Those of identities are a matter of their columns.
            let is_own = |shown: &Shown| matches!(shown.source, ValueSource::Sequence(_));
            all(seen).into_iter().filter(is_own).map(row).collect()
        },
    },
];

/// A sequence, or the identity of a column, as it is shown.
pub(super) struct Shown {
    pub(super) number: u32,
    /// The engine's name of it.
    name: String,
    pub(super) sequence: SequenceDefinition,
    pub(super) source: ValueSource,
}

pub(super) fn all(seen: &Seen) -> Vec<Shown> {
    let sequence = |table: Table| {
        Some(Shown {
            number: names::table_oid(&table),
            name: table.name().to_owned(),
            sequence: table.definition().sequence()?.clone(),
            source: ValueSource::Sequence(table),
        })
    };
    let identity = |identity: Identity| Shown {
        number: names::identity_oid(&identity),
        name: identity.name(),
        sequence: identity.definition(),
        source: ValueSource::Identity(identity),
    };
    let tables = seen.tables();
    let identities = tables.iter().flat_map(Identity::all).map(identity);
    seen.sequences().into_iter().filter_map(sequence).chain(identities).collect()
}

/// Start, increment, and both limits, in the order of `pg_sequence`.
fn numbers(sequence: &SequenceDefinition) -> [Value<'static>; 4] {
    let SequenceDefinition { start, increment, greatest, least, .. } = sequence;
    [start, increment, greatest, least].map(|number| Value::Int64(*number))
}

/// The value that was given last; NULL where none was, or where the client may not know.
fn last_value(client: &Client, source: &ValueSource) -> Value<'static> {
    let Some(session) = caller_of(client) else { return Value::Null };
    let allowed = match source {
        ValueSource::Sequence(table) => session.check(&[Right::Usage, Right::Select], table),
        ValueSource::Identity(identity) => session.check(&[Right::Select], &identity.table),
    };
    if allowed.is_err() {
        return Value::Null;
    }
    match session.position(source) {
        Ok(Position { last, is_called: true, .. }) => Value::Int64(last),
        _ => Value::Null,
    }
}

/// A default as it is shown, with the names of the sequences that it uses. None if it uses none.
pub(super) fn shown(naming: &Naming<'_>, expression: &str) -> Option<String> {
    const CALLS: [&str; 3] = ["nextval(", "currval(", "setval("];
    let first = |text: &str| {
        let found = CALLS.iter().filter_map(|call| Some((text.find(call)?, call.len())));
        found.min().map(|(at, length)| at + length)
    };
    first(expression)?;
    let (mut rest, mut shown) = (expression, String::new());
    while let Some(at) = first(rest) {
        let (before, behind) = rest.split_at(at);
        let end = behind.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(behind.len());
        let table =
            behind[..end].parse().ok().and_then(|number| names::table_with(naming.seen, number));
        shown.push_str(before);
        match table {
            Some(table) => {
                let name = naming.relation(&table).replace('\'', "''");
                let _ = write!(shown, "'{name}'::regclass");
            }
            None => shown.push_str(&behind[..end]),
        }
        rest = &behind[end..];
    }
    shown.push_str(rest);
    let is_call = CALLS.iter().any(|call| expression.starts_with(call))
        && expression.find(')') == Some(expression.len() - 1);
    Some(if is_call { shown } else { format!("({shown})") })
}

pub(super) fn functions(database: &Database) -> Vec<SystemFunction> {
    let (owned, standing) = (database.clone(), database.clone());
    vec![
        SystemFunction::fallible_of_client("pg_get_serial_sequence", TEXT, move |client, given| {
            let [Value::Text(table), Value::Text(column)] = given else { return Ok(Value::Null) };
            let seen = seen_by(client, &owned);
            let lookup = Lookup { seen: &seen, path: &client.schemas() };
            let found = lookup.written(table).and_then(|name| seen.table(&name).ok());
            let Some(found) = found else {
                let message = format!("relation \"{table}\" does not exist");
                return Err(onrush_query::QueryError::refused("42P01", message));
            };
            let definition = found.definition();
            let Ok(at) = definition.shown_column_index(column) else {
                let relation = schemas::own_name(found.name());
                let message =
                    format!("column \"{column}\" of relation \"{relation}\" does not exist");
                return Err(onrush_query::QueryError::refused("42703", message));
            };
            let is_its = |sequence: &SequenceDefinition| {
                sequence.owner.is_some_and(|owner| {
                    owner.table == found.id()
                        && usize::from(owner.column) == definition.column_number(at)
                })
            };
            let sequence = all(&seen).into_iter().find(|it| is_its(&it.sequence));
            Ok(sequence.map_or(Value::Null, |Shown { name, .. }| {
                let (schema, name) = schemas::parts(&name);
                format!("{}.{}", names::quoted(schema), names::quoted(name)).into()
            }))
        }),
        SystemFunction::of_client("pg_sequence_last_value", INT8, move |client, given| {
            let seen = seen_by(client, &standing);
            let is_it = |it: &Shown| Some(i64::from(it.number)) == number(given, 0);
            let found = all(&seen).into_iter().find(is_it);
            found.map_or(Value::Null, |it| last_value(client, &it.source))
        }),
    ]
}
