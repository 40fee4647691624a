//! Indexes as the catalogue shows them, primary keys among them: `pg_index`, `pg_indexes`, and their definitions.

use onrush::{
    DataType, DeferrableUnique, IndexDefinition, Indexed, IndexedExpression, KeyOrder, Row, Table,
    TableDefinition, Uniqueness, Value,
};

use super::kinds::{BOOL, INT2, INT2_VECTOR, NAME, OID, OID_VECTOR, TEXT};
use super::{PG_CATALOG, SystemTable, names, oid};
use crate::schemas;
use crate::seen::Seen;
use crate::sql::expression_as_shown;

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
                        index.definition(table, false).into(),
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
    /// What is indexed, and the order of each.
    keys: Vec<(Key, KeyOrder)>,
    /// Which rows are, as it is kept; none: all.
    predicate: Option<String>,
    /// Positions of the included ones.
    pub(super) included: Vec<usize>,
    uniqueness: Uniqueness,
    /// Whether rows may have the same keys for a while, and whether until the commit.
    pub(super) deferrable: Option<DeferrableUnique>,
    pub(super) is_primary: bool,
    /// Whether rows may still lack their entries.
    is_building: bool,
    /// The number of the constraint that it was made for.
    pub(super) constraint: Option<u32>,
}

/// What an index has.
#[derive(Clone)]
pub(super) enum Key {
    /// The position of a column in the table.
    Column(usize),
    /// An expression as it is kept, and the type of what it comes to.
    Expression(String, DataType),
}

impl Key {
    /// What the index's own column is called.
    pub(super) fn name(&self, table: &Table) -> String {
        match self {
            Key::Column(position) => table.definition().columns()[*position].name.clone(),
            Key::Expression(kept, _) => {
                let shown = expression_as_shown(table.definition(), kept, false);
                called_function(&shown).map_or_else(|| "expr".to_owned(), str::to_lowercase)
            }
        }
    }

    /// As it stands in a definition, with every operation in parentheses, or, for people, only where they must be.
    pub(super) fn shown(&self, table: &Table, is_pretty: bool) -> String {
        match self {
            Key::Column(position) => column_name(table, *position),
            Key::Expression(kept, _) => {
                let shown = expression_as_shown(table.definition(), kept, is_pretty);
                match called_function(&shown) {
                    Some(_) => shown,
                    None => format!("({shown})"),
                }
            }
        }
    }

    /// The column's number, or 0.
    fn number(&self, table: &TableDefinition) -> String {
        match self {
            Key::Column(position) => names::column_number(table, *position).to_string(),
            Key::Expression(..) => "0".to_owned(),
        }
    }
}

/// The name of the function of which the whole expression is a call.
fn called_function(shown: &str) -> Option<&str> {
    let (name, rest) = shown.split_once('(')?;
    let is_name = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
    let mut depth = 1;
    let end = rest.char_indices().find(|(_, character)| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    (is_name && end.is_some_and(|(at, _)| at + 1 == rest.len())).then_some(name)
}

/// The primary key of a table, if it has one, and its indexes.
pub(super) fn all(table: &Table) -> Vec<Index> {
    let definition = table.definition();
    let primary = names::has_key(table).then(|| Index {
        number: names::key_oid(table),
        name: names::key_name(table),
        keys: names::key(table).iter().map(|at| (Key::Column(*at), KeyOrder::ASCENDING)).collect(),
        predicate: None,
        included: positions(definition, definition.key_included()),
        uniqueness: Uniqueness::NullsDistinct,
        deferrable: None,
        is_primary: true,
        is_building: false,
        constraint: Some(names::key_oid(table)),
    });
    let key = |index: &IndexDefinition, of: Indexed| match of {
        Indexed::Column(number) => definition.column_with_number(number).map(Key::Column),
        Indexed::Expression(at) => {
            let IndexedExpression { of, data_type } = index.expressions.get(usize::from(at))?;
            Some(Key::Expression(of.expression.clone(), *data_type))
        }
    };
    let secondary = |index: &IndexDefinition| Index {
        number: names::entries_oid(index.entries),
        name: schemas::own_name(&index.name).to_owned(),
        keys: index.columns.iter().filter_map(|it| Some((key(index, it.of)?, it.order))).collect(),
        predicate: index.predicate.as_ref().map(|of| of.expression.clone()),
        included: positions(definition, &index.included),
        uniqueness: match index.deferrable {
            None => index.uniqueness,
            Some(of) if of.nulls_equal => Uniqueness::NullsEqual,
            Some(_) => Uniqueness::NullsDistinct,
        },
        deferrable: index.deferrable,
        is_primary: false,
        is_building: index.is_building,
        constraint: index.is_constraint.then(|| names::entries_oid(index.entries) + 1),
    };
    primary.into_iter().chain(definition.indexes().iter().map(secondary)).collect()
}

fn positions(table: &TableDefinition, numbers: &[u16]) -> Vec<usize> {
    numbers.iter().filter_map(|number| table.column_with_number(*number)).collect()
}

/// The index with a number, and its table.
pub(super) fn with(seen: &Seen, number: i64) -> Option<(Table, Index)> {
    let table = names::table_with(seen, number)?;
    let index = all(&table).into_iter().find(|index| i64::from(index.number) == number)?;
    Some((table, index))
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
    /// All that it has, what it is ordered by first.
    pub(super) fn all_keys(&self) -> Vec<Key> {
        let indexed = self.keys.iter().map(|(key, _)| key.clone());
        indexed.chain(self.included.iter().copied().map(Key::Column)).collect()
    }

    /// Positions of the indexed columns.
    pub(super) fn columns(&self) -> Vec<usize> {
        let column = |(key, _): &(Key, KeyOrder)| match key {
            Key::Column(position) => Some(*position),
            Key::Expression(..) => None,
        };
        self.keys.iter().filter_map(column).collect()
    }

    /// The numbers of the indexed columns.
    pub(super) fn numbers(&self, table: &TableDefinition) -> Vec<String> {
        self.keys.iter().map(|(key, _)| key.number(table)).collect()
    }

    /// What `pg_get_indexdef` shows.
    pub(super) fn definition(&self, table: &Table, is_pretty: bool) -> String {
        let unique = if self.uniqueness == Uniqueness::NotUnique { "" } else { "UNIQUE " };
        let (schema, name) = schemas::parts(table.name());
        let (schema, name) = (names::quoted(schema), names::quoted(name));
        let column = |(key, order): &(Key, KeyOrder)| {
            let order = match (order.descending, order.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            format!("{}{order}", key.shown(table, is_pretty))
        };
        let columns: Vec<String> = self.keys.iter().map(column).collect();
        format!(
            "CREATE {unique}INDEX {index} ON {schema}.{name} USING btree ({columns}){included}{nulls}{predicate}",
            index = names::quoted(&self.name),
            columns = columns.join(", "),
            included = self.include_clause(table),
            nulls = match self.uniqueness {
                Uniqueness::NullsEqual => " NULLS NOT DISTINCT",
                Uniqueness::NotUnique | Uniqueness::NullsDistinct => "",
            },
            predicate = match &self.predicate {
                Some(kept) => {
                    let shown = expression_as_shown(table.definition(), kept, is_pretty);
                    format!(" WHERE {shown}")
                }
                None => String::new(),
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
            self.keys.iter().map(|(key, _)| key.shown(table, false)).collect();
        let deferrable = match self.deferrable {
            None => "",
            Some(of) if of.is_deferred => " DEFERRABLE INITIALLY DEFERRED",
            Some(_) => " DEFERRABLE",
        };
        format!("{kind} ({}){}{deferrable}", columns.join(", "), self.include_clause(table))
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
    let numbers = index.all_keys().iter().map(|key| key.number(table.definition())).collect();
    let expression = |(key, _): &(Key, KeyOrder)| match key {
        Key::Expression(kept, _) => Some(expression_as_shown(table.definition(), kept, false)),
        Key::Column(_) => None,
    };
    let expressions: Vec<String> = index.keys.iter().filter_map(expression).collect();
    let option = |(_, order): &(Key, KeyOrder)| {
        (u8::from(order.descending) | u8::from(order.nulls_first) << 1).to_string()
    };
    let zeros = || array(vec!["0".to_owned(); index.keys.len()]);
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    vec![
        oid(index.number),
        oid(names::table_oid(table)),
        count(index.all_keys().len()),
        count(index.keys.len()),
        Value::Boolean(index.uniqueness != Uniqueness::NotUnique),
        Value::Boolean(index.uniqueness == Uniqueness::NullsEqual),
        Value::Boolean(index.is_primary),
        no.clone(),
        Value::Boolean(index.deferrable.is_none()),
        no.clone(),
        Value::Boolean(!index.is_building),
        no.clone(),
        yes.clone(),
        yes,
        no,
        array(numbers),
        zeros(),
        zeros(),
        array(index.keys.iter().map(option).collect()),
        match expressions.is_empty() {
            true => Value::Null,
            false => expressions.join(", ").into(),
        },
        match &index.predicate {
            Some(kept) => expression_as_shown(table.definition(), kept, false).into(),
            None => Value::Null,
        },
    ]
}
