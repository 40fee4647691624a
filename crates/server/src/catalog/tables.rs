//! `pg_class` and what belongs to it: schemas, tables, columns, keys, databases, sessions.

use onrush::{ColumnDefinition, DataType, DefaultValue, Row, Table, Value, ViewRows};
use onrush_query::{ColumnType, Statement};

use super::indexes::Key;
use super::kinds::{BOOL, CHAR, INT2, INT4, NAME, OID, REAL, TEXT, TEXTS};
use super::names::{self, Naming, OWNER_OID};
use super::roles::{Rights, owner_oid};
use super::{PG_CATALOG, SystemTable, indexes, oid};
use crate::schemas;
use crate::seen::Seen;
use crate::sequences::Identity;
use crate::{values, views};

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_namespace",
        columns: &[("oid", OID), ("nspname", NAME), ("nspowner", OID), ("nspacl", TEXTS)],
        rows: |seen, _| namespaces(seen),
    },
    // What was granted before anybody granted anything.
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_init_privs",
        columns: &[
            ("objoid", OID),
            ("classoid", OID),
            ("objsubid", INT4),
            ("privtype", CHAR),
            ("initprivs", TEXTS),
        ],
        rows: |_, _| {
            let of_public = (oid(names::schema_oid(schemas::PUBLIC)), oid(names::PG_NAMESPACE_OID));
            let rights = Rights::at_first_on_public();
            vec![vec![of_public.0, of_public.1, Value::Int32(0), "i".into(), rights]]
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_class",
        columns: &[
            ("oid", OID),
            ("relname", NAME),
            ("relnamespace", OID),
            ("reltype", OID),
            ("reloftype", OID),
            ("relowner", OID),
            ("relam", OID),
            ("relfilenode", OID),
            ("reltablespace", OID),
            ("relpages", INT4),
            ("reltuples", REAL),
            ("relallvisible", INT4),
            ("reltoastrelid", OID),
            ("relhasindex", BOOL),
            ("relisshared", BOOL),
            ("relpersistence", CHAR),
            ("relkind", CHAR),
            ("relnatts", INT2),
            ("relchecks", INT2),
            ("relhasrules", BOOL),
            ("relhastriggers", BOOL),
            ("relhassubclass", BOOL),
            ("relrowsecurity", BOOL),
            ("relforcerowsecurity", BOOL),
            ("relispopulated", BOOL),
            ("relreplident", CHAR),
            ("relispartition", BOOL),
            ("relacl", TEXTS),
            ("reloptions", TEXTS),
            ("relpartbound", TEXT),
            // Of PostgreSQL's transactions, which there are none of.
            ("relfrozenxid", INT4),
            ("relminmxid", INT4),
        ],
        rows: |seen, _| {
            let rights = Rights::of(seen);
            let composites = seen.composite_types();
            let all = seen.relations();
            let all = all.iter().chain(composites.iter().map(|(table, _)| table));
            all.flat_map(|table| classes(table, &rights)).collect()
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_attribute",
        columns: &[
            ("attrelid", OID),
            ("attname", NAME),
            ("atttypid", OID),
            ("attstattarget", INT4),
            ("attlen", INT2),
            ("attnum", INT2),
            ("attndims", INT4),
            ("atttypmod", INT4),
            ("attnotnull", BOOL),
            ("atthasdef", BOOL),
            ("atthasmissing", BOOL),
            ("attidentity", CHAR),
            ("attgenerated", CHAR),
            ("attisdropped", BOOL),
            ("attislocal", BOOL),
            ("attinhcount", INT4),
            ("attcollation", OID),
            ("attstorage", CHAR),
            ("attcompression", CHAR),
            ("attacl", TEXTS),
            ("attoptions", TEXTS),
            ("attfdwoptions", TEXTS),
            ("attalign", CHAR),
            ("attmissingval", TEXT),
        ],
        rows: |seen, statement| {
            let naming = Naming::of(seen, &statement.client);
            let composites = seen.composite_types();
            let all = seen.relations();
            let all = all.iter().chain(composites.iter().map(|(table, _)| table));
            all.flat_map(|table| attributes(&naming, table)).collect()
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_attrdef",
        columns: &[("oid", OID), ("adrelid", OID), ("adnum", INT2), ("adbin", TEXT)],
        rows: |seen, statement| {
            let naming = Naming::of(seen, &statement.client);
            seen.tables().iter().flat_map(|table| defaults(&naming, table)).collect()
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_database",
        columns: &[
            ("oid", OID),
            ("datname", NAME),
            ("datdba", OID),
            ("encoding", INT4),
            ("datlocprovider", CHAR),
            ("datistemplate", BOOL),
            ("datallowconn", BOOL),
            ("datconnlimit", INT4),
            ("dattablespace", OID),
            ("datcollate", TEXT),
            ("datctype", TEXT),
            ("daticulocale", TEXT),
            ("datcollversion", TEXT),
            ("datfrozenxid", INT4),
            ("datminmxid", INT4),
            ("datacl", TEXTS),
        ],
        rows: |_, statement| vec![database_row(statement)],
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_tablespace",
        columns: &[
            ("oid", OID),
            ("spcname", NAME),
            ("spcowner", OID),
            ("spcacl", TEXTS),
            ("spcoptions", TEXTS),
        ],
        rows: |_, _| {
            let (number, owner) = (oid(names::TABLESPACE_OID), oid(OWNER_OID));
            vec![vec![number, "pg_default".into(), owner, Value::Null, Value::Null]]
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_am",
        columns: &[("oid", OID), ("amname", NAME), ("amhandler", TEXT), ("amtype", CHAR)],
        rows: |_, _| {
            let method = |number, name: &'static str, kind: &'static str| {
                vec![oid(number), name.into(), Value::Null, kind.into()]
            };
            vec![
                // PostgreSQL's name for it, which dumps say.
                method(names::ACCESS_METHOD_OID, "heap", "t"),
                method(names::BTREE_OID, "btree", "i"),
            ]
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_tables",
        columns: &[
            ("schemaname", NAME),
            ("tablename", NAME),
            ("tableowner", NAME),
            ("tablespace", NAME),
            ("hasindexes", BOOL),
            ("hasrules", BOOL),
            ("hastriggers", BOOL),
            ("rowsecurity", BOOL),
        ],
        rows: |seen, _| {
            let rights = Rights::of(seen);
            let row = |table: &Table| {
                let no = Value::Boolean(false);
                let (schema, name) = schemas::parts(table.name());
                vec![
                    schema.to_owned().into(),
                    name.to_owned().into(),
                    rights.owner(table).to_owned().into(),
                    Value::Null,
                    Value::Boolean(!indexes::all(table).is_empty()),
                    no.clone(),
                    no.clone(),
                    no,
                ]
            };
            let tables = seen.tables().into_iter();
            let tables = tables.filter(|table| views::is_plain_table(table.definition()));
            tables.map(|table| row(&table)).collect()
        },
    },
];

fn namespaces(seen: &Seen) -> Vec<Row> {
    let rights = Rights::of(seen);
    let row = |(number, name): (u32, String)| {
        let owner = owner_oid(rights.shown_schema_owner(&name));
        let shown = rights.on_schema(&name);
        vec![oid(number), name.into(), oid(owner), shown]
    };
    names::all_schemas(seen).into_iter().map(row).collect()
}

/// A table, its primary key if it has one, and its indexes.
fn classes(table: &Table, rights: &Rights) -> Vec<Row> {
    let definition = table.definition();
    let all = indexes::all(table);
    let materialized = definition.materialized_view();
    let is_populated = materialized.is_some_and(|view| view.rows == ViewRows::Kept);
    let count = |columns: usize| Value::Int16(i16::try_from(columns).unwrap_or(i16::MAX));
    let class = |number, name: String, method, kind: &'static str, columns: usize| {
        let is_table = matches!(kind, "r" | "m");
        let no = Value::Boolean(false);
        vec![
            oid(number),
            name.into(),
            oid(names::schema_of(table)),
            oid(0),
            oid(0),
            oid(owner_oid(rights.owner(table))),
            oid(method),
            oid(number),
            oid(0),
            Value::Int32(0),
            Value::Float32(-1.0),
            Value::Int32(0),
            oid(0),
            Value::Boolean(is_table && !all.is_empty()),
            no.clone(),
            persistence(table).into(),
            kind.into(),
            count(columns),
            if is_table { count(definition.checks().len()) } else { Value::Int16(0) },
            // The rule that a view is.
            Value::Boolean(matches!(kind, "v" | "m")),
            // By which psql looks for foreign keys.
            Value::Boolean(is_table && definition.is_linked()),
            no.clone(),
            no.clone(),
            no.clone(),
            Value::Boolean(kind != "m" || is_populated),
            if is_table { "d".into() } else { "n".into() },
            no,
            if number == names::table_oid(table) { rights.on(table) } else { Value::Null },
            Value::Null,
            Value::Null,
            Value::Int32(0),
            Value::Int32(0),
        ]
    };
    let own = names::table_oid(table);
    let name = schemas::own_name(table.name()).to_owned();
    let columns = definition.columns().len();
    if definition.sequence().is_some() {
        return vec![class(own, name, 0, "S", definition.shown_columns().count())];
    }
    if definition.view().is_some() {
        return vec![class(own, name, 0, "v", definition.shown_columns().count())];
    }
    if definition.is_composite() {
        let mut row = class(own, name, 0, "c", definition.shown_columns().count());
        // The type that it is the relation of has its number.
        row[3] = oid(own);
        return vec![row];
    }
    let kind = if materialized.is_some() { "m" } else { "r" };
    let mut classes = vec![class(own, name, names::ACCESS_METHOD_OID, kind, columns)];
    for identity in Identity::all(table) {
        let name = schemas::own_name(&identity.name()).to_owned();
        classes.push(class(names::identity_oid(&identity), name, 0, "S", 3));
    }
    for index in &all {
        let (name, columns) = (index.name.clone(), index.all_keys().len());
        classes.push(class(index.number, name, names::BTREE_OID, "i", columns));
    }
    classes
}

fn persistence(table: &Table) -> &'static str {
    match (names::is_temporary(table), table.definition().is_logged()) {
        (true, _) => "t",
        (false, true) => "p",
        (false, false) => "u",
    }
}

/// The columns of a table, and those of its primary key and its indexes.
fn attributes(naming: &Naming<'_>, table: &Table) -> Vec<Row> {
    let definition = table.definition();
    let row = |owner: u32, at: usize, key: &Key| {
        let is_own = owner == names::table_oid(table);
        let no = Value::Boolean(false);
        let (column, data_type, is_key) = match key {
            Key::Column(position) => (
                &definition.columns()[*position],
                views::column_type(definition, *position),
                definition.primary_key().contains(position),
            ),
            Key::Expression(_, data_type) => {
                (&ColumnDefinition::new(key.name(table), *data_type), (*data_type).into(), false)
            }
        };
        let collation = match data_type {
            // Names are compared by their bytes.
            ColumnType::Stored(DataType::Name) => 950,
            ColumnType::Stored(data_type) if data_type.is_text() => 100,
            _ => 0,
        };
        let domain = column.domain.as_ref().filter(|_| is_own);
        let is_wide = values::type_size(data_type) < 0;
        let is_generated = matches!(column.default, DefaultValue::Generated(_));
        vec![
            oid(owner),
            column.name.clone().into(),
            oid(domain.map_or_else(|| values::oid_of(data_type), |of| names::oid_of(of.number))),
            Value::Int32(-1),
            Value::Int16(values::type_size(data_type)),
            Value::Int16(i16::try_from(at + 1).unwrap_or(i16::MAX)),
            Value::Int32(0),
            Value::Int32(domain.map_or_else(|| values::type_modifier(data_type), |_| -1)),
            Value::Boolean(is_own && (is_key || !column.nullable)),
            Value::Boolean(is_own && (names::default_of(naming, column).is_some() || is_generated)),
            no.clone(),
            match is_own && names::is_identity(column) {
                true if column.is_always_generated => "a".into(),
                true => "d".into(),
                false => "".into(),
            },
            if is_own && is_generated { "s".into() } else { "".into() },
            no.clone(),
            Value::Boolean(true),
            Value::Int32(0),
            oid(collation),
            if is_wide { "x".into() } else { "p".into() },
            "".into(),
            Value::Null,
            Value::Null,
            Value::Null,
            "i".into(),
            Value::Null,
        ]
    };
    let shown = definition.shown_columns().enumerate();
    let own = shown.map(|(at, position)| row(names::table_oid(table), at, &Key::Column(position)));
    let of_index = |index: indexes::Index| {
        let keys = index.all_keys().into_iter().enumerate();
        keys.map(move |(at, key)| (index.number, at, key))
    };
    let of_indexes = indexes::all(table).into_iter().flat_map(of_index);
    own.chain(of_indexes.map(|(number, at, key)| row(number, at, &key))).collect()
}

fn defaults(naming: &Naming<'_>, table: &Table) -> Vec<Row> {
    let definition = table.definition();
    let row = |position: usize| {
        let default = names::default_of(naming, &definition.columns()[position])
            .or_else(|| names::generated_as(definition, position))?;
        let own = names::table_oid(table);
        let number = names::column_number(definition, position);
        let default_number = names::default_oid(table, position);
        Some(vec![oid(default_number), oid(own), Value::Int16(number), default.into()])
    };
    definition.shown_columns().filter_map(row).collect()
}

fn database_row(statement: &Statement) -> Row {
    const UTF8: i32 = 6;
    vec![
        oid(names::DATABASE_OID),
        statement.client.database.to_string().into(),
        oid(OWNER_OID),
        Value::Int32(UTF8),
        "c".into(),
        Value::Boolean(false),
        Value::Boolean(true),
        Value::Int32(-1),
        oid(names::TABLESPACE_OID),
        "C".into(),
        "C".into(),
        Value::Null,
        Value::Null,
        Value::Int32(0),
        Value::Int32(0),
        Value::Null,
    ]
}
