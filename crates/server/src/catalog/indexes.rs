//! Indexes as the catalogue shows them, primary keys among them: `pg_index`, `pg_indexes`, and their definitions.

use onrush::{IndexDefinition, KeyOrder, Row, Table, Uniqueness, Value};

use super::kinds::{BOOL, INT2, INT2_VECTOR, NAME, OID, OID_VECTOR, TEXT};
use super::{PG_CATALOG, SystemTable, names, oid};
use crate::schemas;
use crate::seen::Seen;

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_index",
        columns: &[
            ("indexrelid", OID),
            ("indrelid", OID),
            ("indnatts", INT2),
            ("indnkeyatts", INT2),
            ("indisunique", BOOL),
            ("indnullsnotdistinct", BOOL),
            ("indisprimary", BOOL),
            ("indisexclusion", BOOL),
            ("indimmediate", BOOL),
            ("indisclustered", BOOL),
            ("indisvalid", BOOL),
            ("indcheckxmin", BOOL),
            ("indisready", BOOL),
            ("indislive", BOOL),
            ("indisreplident", BOOL),
            ("indkey", INT2_VECTOR),
            ("indcollation", OID_VECTOR),
            ("indclass", OID_VECTOR),
            ("indoption", INT2_VECTOR),
            ("indexprs", TEXT),
            ("indpred", TEXT),
        ],
        rows: |seen, _| {
            let rows = |table: &Table| {
                let row = |index: &Index| row(table, index);
                all(table).iter().map(row).collect::<Vec<_>>()
            };
            seen.tables().iter().flat_map(rows).collect()
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_indexes",
        columns: &[
            ("schemaname", NAME),
            ("tablename", NAME),
            ("indexname", NAME),
            ("tablespace", NAME),
            ("indexdef", TEXT),
        ],
        rows: |seen, _| {
            let rows = |table: &Table| {
                let (schema, name) = schemas::parts(table.name());
                let row = |index: &Index| {
                    vec![
                        schema.to_owned().into(),
                        name.to_owned().into(),
                        index.name.clone().into(),
                        Value::Null,
                        index.definition(table).into(),
                    ]
                };
                all(table).iter().map(row).collect::<Vec<_>>()
            };
            seen.tables().iter().flat_map(rows).collect()
        },
    },
];

/// A primary key or an index.
pub(super) struct Index {
    pub(super) number: u32,
    /// In the schema of its table.
    pub(super) name: String,
    /// Positions of the indexed columns in the table, and their order.
    pub(super) columns: Vec<(usize, KeyOrder)>,
    /// Positions of the included ones.
    pub(super) included: Vec<usize>,
    uniqueness: Uniqueness,
    pub(super) is_primary: bool,
    /// The number of the constraint that it was made for.
    pub(super) constraint: Option<u32>,
}

/// The primary key of a table, if it has one, and its indexes.
pub(super) fn all(table: &Table) -> Vec<Index> {
    let definition = table.definition();
    let primary = names::has_key(table).then(|| Index {
        number: names::key_oid(table),
        name: names::key_name(table),
        columns: names::key(table).iter().map(|at| (*at, KeyOrder::ASCENDING)).collect(),
        included: Vec::new(),
        uniqueness: Uniqueness::NullsDistinct,
        is_primary: true,
        constraint: Some(names::key_oid(table)),
    });
    let secondary = |index: &IndexDefinition| Index {
        number: names::entries_oid(index.entries),
        name: schemas::own_name(&index.name).to_owned(),
        columns: index
            .columns
            .iter()
            .filter_map(|it| Some((definition.column_with_number(it.number)?, it.order)))
            .collect(),
        included: index
            .included
            .iter()
            .filter_map(|number| definition.column_with_number(*number))
            .collect(),
        uniqueness: index.uniqueness,
        is_primary: false,
        constraint: index.is_constraint.then(|| names::entries_oid(index.entries) + 1),
    };
    primary.into_iter().chain(definition.indexes().iter().map(secondary)).collect()
}

/// The index with a number, and its table.
pub(super) fn with(seen: &Seen, number: i64) -> Option<(Table, Index)> {
    seen.tables().into_iter().find_map(|table| {
        let index = all(&table).into_iter().find(|index| i64::from(index.number) == number)?;
        Some((table, index))
    })
}

/// The index of a name of the engine's, and its table.
pub(super) fn named(seen: &Seen, name: &str) -> Option<(Table, Index)> {
    let (schema, own) = schemas::parts(name);
    let in_schema = seen.tables().into_iter().filter(|it| schemas::parts(it.name()).0 == schema);
    in_schema.into_iter().find_map(|table| {
        let index = all(&table).into_iter().find(|index| index.name == own)?;
        Some((table, index))
    })
}

impl Index {
    /// Positions of all of its columns, the indexed ones first.
    pub(super) fn all_columns(&self) -> Vec<usize> {
        let indexed = self.columns.iter().map(|(column, _)| *column);
        indexed.chain(self.included.iter().copied()).collect()
    }

    /// Positions of the indexed columns, from 1.
    pub(super) fn numbers(&self) -> Vec<String> {
        self.columns.iter().map(|(column, _)| (column + 1).to_string()).collect()
    }

    /// What `pg_get_indexdef` shows.
    pub(super) fn definition(&self, table: &Table) -> String {
        let unique = if self.uniqueness == Uniqueness::NotUnique { "" } else { "UNIQUE " };
        let (schema, name) = schemas::parts(table.name());
        let (schema, name) = (names::quoted(schema), names::quoted(name));
        let column = |(at, order): &(usize, KeyOrder)| {
            let order = match (order.descending, order.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            format!("{}{order}", column_name(table, *at))
        };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        format!(
            "CREATE {unique}INDEX {index} ON {schema}.{name} USING btree ({columns}){included}{nulls}",
            index = names::quoted(&self.name),
            columns = columns.join(", "),
            included = self.include_clause(table),
            nulls = match self.uniqueness {
                Uniqueness::NullsEqual => " NULLS NOT DISTINCT",
                Uniqueness::NotUnique | Uniqueness::NullsDistinct => "",
            }
        )
    }

    /// What `pg_get_constraintdef` shows of the constraint that it was made for.
    pub(super) fn constraint_definition(&self, table: &Table) -> String {
        let kind = match (self.is_primary, self.uniqueness) {
            (true, _) => "PRIMARY KEY",
            (false, Uniqueness::NullsEqual) => "UNIQUE NULLS NOT DISTINCT",
            (false, _) => "UNIQUE",
        };
        let columns: Vec<String> =
            self.columns.iter().map(|(at, _)| column_name(table, *at)).collect();
        format!("{kind} ({}){}", columns.join(", "), self.include_clause(table))
    }

    fn include_clause(&self, table: &Table) -> String {
        if self.included.is_empty() {
            return String::new();
        }
        let included: Vec<String> =
            self.included.iter().map(|at| column_name(table, *at)).collect();
        format!(" INCLUDE ({})", included.join(", "))
    }
}

pub(super) fn column_name(table: &Table, position: usize) -> String {
    names::quoted(&table.definition().columns()[position].name)
}

fn row(table: &Table, index: &Index) -> Row {
    let count = |columns: usize| Value::Int16(i16::try_from(columns).unwrap_or(i16::MAX));
    let array = |each: Vec<String>| Value::from(format!("{{{}}}", each.join(",")));
    let numbers = index.all_columns().iter().map(|at| (at + 1).to_string()).collect();
    let option = |(_, order): &(usize, KeyOrder)| {
        (u8::from(order.descending) | u8::from(order.nulls_first) << 1).to_string()
    };
    let zeros = || array(vec!["0".to_owned(); index.columns.len()]);
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    vec![
        oid(index.number),
        oid(names::table_oid(table)),
        count(index.all_columns().len()),
        count(index.columns.len()),
        Value::Boolean(index.uniqueness != Uniqueness::NotUnique),
        Value::Boolean(index.uniqueness == Uniqueness::NullsEqual),
        Value::Boolean(index.is_primary),
        no.clone(),
        yes.clone(),
        no.clone(),
        yes.clone(),
        no.clone(),
        yes.clone(),
        yes,
        no,
        array(numbers),
        zeros(),
        zeros(),
        array(index.columns.iter().map(option).collect()),
        Value::Null,
        Value::Null,
    ]
}
