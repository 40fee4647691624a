//! `pg_prepared_statements` and `pg_cursors`: what the client that asks has made.

use std::sync::Arc;

use onrush::{Row, Value};
use onrush_query::{Statement, write_array};

use super::kinds::{BOOL, INT8, TEXT, TEXTS, TIMESTAMP};
use super::names::{self, Naming};
use super::{PG_CATALOG, SystemTable};
use crate::execute::control_of;
use crate::seen::Seen;
use crate::session_objects::{SessionObjects, ShownCursor, ShownStatement};

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_prepared_statements",
        columns: &[
            ("name", TEXT),
            ("statement", TEXT),
            ("prepare_time", TIMESTAMP),
            ("parameter_types", TEXTS),
            ("from_sql", BOOL),
            ("generic_plans", INT8),
            ("custom_plans", INT8),
        ],
        rows: statements,
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_cursors",
        columns: &[
            ("name", TEXT),
            ("statement", TEXT),
            ("is_holdable", BOOL),
            ("is_binary", BOOL),
            ("is_scrollable", BOOL),
            ("creation_time", TIMESTAMP),
        ],
        rows: |_, statement| cursors(statement),
    },
];

/// None where no client asks.
fn objects(statement: &Statement) -> Option<Arc<SessionObjects>> {
    control_of(&statement.client).map(|control| Arc::clone(&control.objects))
}

fn statements(seen: &Seen, statement: &Statement) -> Vec<Row> {
    let Some(objects) = objects(statement) else { return Vec::new() };
    let statements = objects.statements.lock();
    let naming = Naming::of(seen, &statement.client);
    let row = |(name, shown): (&String, &ShownStatement)| -> Row {
        let types = shown.parameters.iter().map(|oid| {
            names::type_with(&naming, i64::from(*oid), -1).unwrap_or_else(|| oid.to_string())
        });
        let types: Vec<String> = types.collect();
        vec![
            name.clone().into(),
            shown.text.to_string().into(),
            Value::TimestampTz(shown.made_micros),
            write_array(types.iter().map(|name| Some(name.as_str()))).into(),
            Value::Boolean(shown.is_from_sql),
            // One plan serves all parameters, and how often it did is not counted.
            Value::Int64(0),
            Value::Int64(0),
        ]
    };
    statements.iter().map(row).collect()
}

fn cursors(statement: &Statement) -> Vec<Row> {
    let Some(objects) = objects(statement) else { return Vec::new() };
    let cursors = objects.cursors.lock();
    let row = |(name, shown): (&String, &ShownCursor)| -> Row {
        vec![
            name.clone().into(),
            shown.text.to_string().into(),
            Value::Boolean(shown.is_held),
            Value::Boolean(false),
            Value::Boolean(shown.is_scroll),
            Value::TimestampTz(shown.made_micros),
        ]
    };
    cursors.iter().map(row).collect()
}
