//! Views of users: `pg_views`, `pg_matviews` and `information_schema.views`, and `pg_get_viewdef`.

use onrush::{Database, Row, Table, Value, ViewRows};
use onrush_query::{Client, Statement, SystemFunction};

use super::functions::number;
use super::information::place;
use super::kinds::{BOOL, CHAR, NAME, OID, TEXT};
use super::names::{self, Naming};
use super::roles::Rights;
use super::{INFORMATION_SCHEMA, PG_CATALOG, SystemTable, oid};
use crate::execute::seen_by;
use crate::schemas;
use crate::seen::Seen;
use crate::sql::{Lookup, Updatable, view_as_shown};

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_views",
        columns: &[
            ("schemaname", NAME),
            ("viewname", NAME),
            ("viewowner", NAME),
            ("definition", TEXT),
        ],
        rows: |seen, statement| {
            let rights = Rights::of(seen);
            let row = |view: &Table| {
                let owner = rights.owner(view).to_owned();
                let (schema, name) = schemas::parts(view.name());
                let definition = shown(seen, &statement.client, view);
                vec![schema.to_owned().into(), name.to_owned().into(), owner.into(), definition]
            };
            seen.views().iter().map(row).collect()
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_matviews",
        columns: &[
            ("schemaname", NAME),
            ("matviewname", NAME),
            ("matviewowner", NAME),
            ("tablespace", NAME),
            ("hasindexes", BOOL),
            ("ispopulated", BOOL),
            ("definition", TEXT),
        ],
        rows: |seen, statement| {
            let rights = Rights::of(seen);
            let row = |table: &Table| {
                let view = table.definition().materialized_view()?;
                let (schema, name) = schemas::parts(table.name());
                Some(vec![
                    schema.to_owned().into(),
                    name.to_owned().into(),
                    rights.owner(table).to_owned().into(),
                    Value::Null,
                    Value::Boolean(!table.definition().indexes().is_empty()),
                    Value::Boolean(view.rows == ViewRows::Kept),
                    shown(seen, &statement.client, table),
                ])
            };
            seen.tables().iter().filter_map(row).collect()
        },
    },
    // A view is a rule.
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_rewrite",
        columns: &[
            ("oid", OID),
            ("rulename", NAME),
            ("ev_class", OID),
            ("ev_type", CHAR),
            ("ev_enabled", CHAR),
            ("is_instead", BOOL),
        ],
        rows: |seen, _| {
            let is_view = |table: &Table| table.definition().any_view().is_some();
            let row = |view: Table| -> Row {
                let (rule, own) = (oid(names::rule_oid(&view)), oid(names::table_oid(&view)));
                vec![rule, "_RETURN".into(), own, "1".into(), "O".into(), Value::Boolean(true)]
            };
            seen.relations().into_iter().filter(is_view).map(row).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "views",
        columns: &[
            ("table_catalog", NAME),
            ("table_schema", NAME),
            ("table_name", NAME),
            ("view_definition", TEXT),
            ("check_option", TEXT),
            ("is_updatable", TEXT),
            ("is_insertable_into", TEXT),
            ("is_trigger_updatable", TEXT),
            ("is_trigger_deletable", TEXT),
            ("is_trigger_insertable_into", TEXT),
        ],
        rows: |seen, statement| {
            seen.views().iter().map(|view| row(seen, statement, view)).collect()
        },
    },
];

fn row(seen: &Seen, statement: &Statement, view: &Table) -> Row {
    let mut row = place(view, statement);
    row.push(shown(seen, &statement.client, view));
    let is_updatable = if Updatable::of(seen, view).is_ok() { "YES" } else { "NO" };
    row.extend(["NONE", is_updatable, is_updatable, "NO", "NO", "NO"].map(Value::from));
    row
}

/// The query of a view as a client sees it; NULL where it cannot be told.
fn shown(seen: &Seen, client: &Client, view: &Table) -> Value<'static> {
    let path = client.schemas();
    let is_visible = |table: &Table| names::is_visible(seen, &path, table);
    view_as_shown(seen, view, is_visible).map_or(Value::Null, Value::from)
}

pub(super) fn functions(database: &Database) -> [SystemFunction; 2] {
    let (of_views, of_rules) = (database.clone(), database.clone());
    let is_view = |table: &Table| table.definition().any_view().is_some();
    [
        SystemFunction::of_client("pg_get_viewdef", TEXT, move |client, given| {
            let seen = seen_by(client, &of_views);
            let found = match given.first() {
                Some(Value::Text(name)) => {
                    let lookup = Lookup { seen: &seen, path: &client.schemas() };
                    lookup.written(name).and_then(|name| seen.table(&name).ok())
                }
                _ => number(given, 0).and_then(|oid| names::table_with(&seen, oid)),
            };
            let view = found.filter(is_view);
            view.map_or(Value::Null, |view| shown(&seen, client, &view))
        }),
        SystemFunction::of_client("pg_get_ruledef", TEXT, move |client, given| {
            let (seen, wanted) = (seen_by(client, &of_rules), number(given, 0));
            let is_its = |view: &Table| Some(i64::from(names::rule_oid(view))) == wanted;
            let found = seen.relations().into_iter().find(|table| is_view(table) && is_its(table));
            let Some(view) = found else { return Value::Null };
            let Value::Text(query) = shown(&seen, client, &view) else { return Value::Null };
            let name = Naming::of(&seen, client).relation(&view);
            format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {query}").into()
        }),
    ]
}
