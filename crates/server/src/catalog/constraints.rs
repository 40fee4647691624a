//! `pg_constraint`: primary keys, UNIQUE, CHECK and FOREIGN KEY constraints.

use onrush::{CheckConstraint, Row, Table, Value};

use super::indexes::{self, Index};
use super::kinds::{BOOL, CHAR, INT2S, NAME, OID, TEXT};
use super::{PG_CATALOG, SystemTable, domains, foreign_keys, names, oid};

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_constraint",
    columns: &[
        ("oid", OID),
        ("conname", NAME),
        ("connamespace", OID),
        ("contype", CHAR),
        ("condeferrable", BOOL),
        ("condeferred", BOOL),
        ("convalidated", BOOL),
        ("conrelid", OID),
        ("contypid", OID),
        ("conindid", OID),
        ("conparentid", OID),
        ("confrelid", OID),
        ("confupdtype", CHAR),
        ("confdeltype", CHAR),
        ("confmatchtype", CHAR),
        ("conislocal", BOOL),
        ("conkey", INT2S),
        ("confkey", INT2S),
        ("conbin", TEXT),
    ],
    rows: |seen, _| {
        let others = seen.tables().iter().flat_map(constraints).collect::<Vec<_>>();
        let of_domains = seen.domains().iter().flat_map(domains::constraints).collect::<Vec<_>>();
        let others = others.into_iter().chain(of_domains);
        others.chain(foreign_keys::all(seen).iter().map(foreign_key)).collect()
    },
}];

/// Where `condeferrable` and `condeferred` stand.
const DEFERRABLE: usize = 4;
const DEFERRED: usize = 5;
/// Where `convalidated` stands.
const VALIDATED: usize = 6;

fn foreign_key(key: &foreign_keys::Key) -> Row {
    let yes = Value::Boolean(true);
    let numbers = |table: &Table, columns: Vec<usize>| -> Value<'static> {
        let number = |column: &usize| names::column_number(table.definition(), *column).to_string();
        format!("{{{}}}", columns.iter().map(number).collect::<Vec<_>>().join(",")).into()
    };
    vec![
        oid(key.number()),
        key.definition.name.clone().into(),
        oid(names::schema_of(&key.table)),
        "f".into(),
        Value::Boolean(key.is_deferrable()),
        Value::Boolean(key.is_deferred()),
        Value::Boolean(key.definition.is_validated),
        oid(names::table_oid(&key.table)),
        oid(0),
        oid(key.referenced_index().0),
        oid(0),
        oid(names::table_oid(&key.referenced)),
        foreign_keys::letter(key.definition.on_update).into(),
        foreign_keys::letter(key.definition.on_delete).into(),
        if key.definition.is_match_full { "f" } else { "s" }.into(),
        yes,
        numbers(&key.table, key.columns()),
        numbers(&key.referenced, key.referenced_columns()),
        Value::Null,
    ]
}

/// The primary key, if there is one, UNIQUE constraints and checks.
fn constraints(table: &Table) -> Vec<Row> {
    let definition = table.definition();
    let row = |oid_of_it: u32, name: String, kind: &'static str, index: u32, columns: String| {
        let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
        vec![
            oid(oid_of_it),
            name.into(),
            oid(names::schema_of(table)),
            kind.into(),
            no.clone(),
            no,
            yes.clone(),
            oid(names::table_oid(table)),
            oid(0),
            oid(index),
            oid(0),
            oid(0),
            " ".into(),
            " ".into(),
            " ".into(),
            yes,
            format!("{{{columns}}}").into(),
            Value::Null,
            Value::Null,
        ]
    };
    let check = |check: &CheckConstraint| {
        let positions = check.columns.iter().filter_map(|it| definition.column_with_number(*it));
        let number = |column| names::column_number(definition, column).to_string();
        let numbers: Vec<String> = positions.map(number).collect();
        let (number, name) = (names::constraint_oid(table, &check.name), check.name.clone());
        let mut row = row(number, name, "c", 0, numbers.join(","));
        row[VALIDATED] = Value::Boolean(check.is_validated);
        row
    };
    let unique = |index: &Index| {
        let kind = if index.is_primary { "p" } else { "u" };
        let numbers = index.numbers(definition).join(",");
        let mut row = row(index.constraint?, index.name.clone(), kind, index.number, numbers);
        if let Some(of) = index.deferrable {
            (row[DEFERRABLE], row[DEFERRED]) =
                (Value::Boolean(true), Value::Boolean(of.is_deferred));
        }
        Some(row)
    };
    let indexes = indexes::all(table);
    indexes.iter().filter_map(unique).chain(definition.checks().iter().map(check)).collect()
}
