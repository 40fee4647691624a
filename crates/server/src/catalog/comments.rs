//! What COMMENT ON says, as PostgreSQL's tools ask for it.

use onrush::{Database, Row, Table, Value};
use onrush_query::{Statement, SystemFunction};

use super::functions::number;
use super::kinds::{INT4, OID, TEXT};
use super::{PG_CATALOG, SystemTable, indexes, names, oid};
use crate::comments::{self, ConstraintComment, Place};
use crate::execute::seen_by;
use crate::schemas;
use crate::seen::Seen;

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_description",
    columns: &[("objoid", OID), ("classoid", OID), ("objsubid", INT4), ("description", TEXT)],
    rows: descriptions,
}];

/// What PostgreSQL says of the schema `public` in every database.
const OF_PUBLIC: &str = "standard public schema";

fn descriptions(seen: &Seen, _: &Statement) -> Vec<Row> {
    // Of a database that has stopped nothing is told.
    let (said, of_constraints) =
        (seen.comments().unwrap_or_default(), seen.constraint_comments().unwrap_or_default());
    let of_public = vec![
        oid(names::schema_oid(schemas::PUBLIC)),
        oid(names::PG_NAMESPACE_OID),
        Value::Int32(0),
        OF_PUBLIC.into(),
    ];
    if said.is_empty() && of_constraints.is_empty() {
        return vec![of_public];
    }
    let of_table = |table: &Table| -> Vec<Row> {
        let text = |place: Place| said.iter().find(|it| it.place == place).map(|it| &it.text);
        let row = |(object, class, number): (u32, u32, i32), text: &String| -> Row {
            vec![oid(object), oid(class), Value::Int32(number), text.clone().into()]
        };
        let whole = names::table_oid(table);
        let definition = table.definition();
        let columns = definition.shown_columns().filter_map(|column| {
            let number = names::column_number(definition, column).into();
            let text = text(comments::place(table, Some(column)))?;
            Some(row((whole, names::PG_CLASS_OID, number), text))
        });
        let others = objects(table).into_iter().filter_map(|object| {
            let text = match &object.of {
                Of::Place(place) => text(*place)?,
                Of::Constraint(name) => constraint_text(&of_constraints, table, name)?,
            };
            Some(row((object.number, object.class, 0), text))
        });
        others.chain(columns).collect()
    };
    let types = seen.own_types();
    seen.relations().iter().chain(&types).flat_map(of_table).chain([of_public]).collect()
}

/// Something of a table that has a number of its own in a catalogue table, and where its comment is kept.
struct Object {
    number: u32,
    class: u32,
    of: Of,
}

enum Of {
    Place(Place),
    /// A CHECK constraint or a foreign key.
    Constraint(String),
}

/// The table or type, its indexes and its constraints.
fn objects(table: &Table) -> Vec<Object> {
    let definition = table.definition();
    let place =
        |number: u32, class: u32, place: Place| Object { number, class, of: Of::Place(place) };
    let is_type = definition.is_type();
    let class = if is_type { names::PG_TYPE_OID } else { names::PG_CLASS_OID };
    let mut all = vec![place(names::table_oid(table), class, comments::place(table, None))];
    let indexes = if is_type { Vec::new() } else { indexes::all(table) };
    for index in indexes {
        let mut known = definition.indexes().iter();
        let known = known.find(|it| !index.is_primary && schemas::own_name(&it.name) == index.name);
        let at = comments::index_place(table, known);
        all.push(place(index.number, names::PG_CLASS_OID, at));
        if let Some(number) = index.constraint {
            let at = comments::key_constraint_place(table, known);
            all.push(place(number, names::PG_CONSTRAINT_OID, at));
        }
    }
    let checks = definition.checks().iter().map(|check| &check.name);
    let named = checks.chain(definition.foreign_keys().iter().map(|key| &key.name));
    all.extend(named.map(|name| Object {
        number: names::constraint_oid(table, name),
        class: names::PG_CONSTRAINT_OID,
        of: Of::Constraint(name.clone()),
    }));
    all
}

fn constraint_text<'c>(
    said: &'c [ConstraintComment],
    table: &Table,
    name: &str,
) -> Option<&'c String> {
    let is_it = |it: &&ConstraintComment| it.table == i64::from(table.id()) && it.name == name;
    said.iter().find(is_it).map(|it| &it.text)
}

/// `obj_description` and `col_description`.
pub(super) fn functions(database: &Database) -> Vec<SystemFunction> {
    let (one, other) = (database.clone(), database.clone());
    vec![
        SystemFunction::of_client("obj_description", TEXT, move |client, given| {
            let seen = seen_by(client, &one);
            let class = given.get(1).map(|name| name.as_str().and_then(names::catalogue_oid));
            number(given, 0)
                .and_then(|oid| of_object(&seen, oid, class))
                .map_or(Value::Null, Value::from)
        }),
        SystemFunction::of_client("col_description", TEXT, move |client, given| {
            let seen = seen_by(client, &other);
            let place = number(given, 0).zip(number(given, 1));
            let told = place.and_then(|(table, column)| of_column(&seen, table, column));
            told.map_or(Value::Null, Value::from)
        }),
    ]
}

/// The comment of what has a number in one catalogue table, or with none given in any.
fn of_object(seen: &Seen, number: i64, class: Option<Option<i64>>) -> Option<String> {
    let is_it = |object: &Object| {
        i64::from(object.number) == number
            && class.is_none_or(|class| class == Some(object.class.into()))
    };
    if number == i64::from(names::schema_oid(schemas::PUBLIC)) {
        let is_it = class.is_none_or(|class| class == Some(names::PG_NAMESPACE_OID.into()));
        return is_it.then(|| OF_PUBLIC.to_owned());
    }
    // What has a number of its own is a table's; of the others any may be.
    let tables = match (names::table_with(seen, number), class) {
        (Some(table), Some(class)) if class == Some(names::PG_CLASS_OID.into()) => vec![table],
        _ => [seen.relations(), seen.own_types()].concat(),
    };
    tables.iter().find_map(|table| {
        let mut found = objects(table).into_iter().filter(is_it);
        found.find_map(|object| match &object.of {
            Of::Place(place) => seen.comment(*place).ok()?,
            Of::Constraint(name) => {
                constraint_text(&seen.constraint_comments().ok()?, table, name).cloned()
            }
        })
    })
}

/// The comment of a column by its number.
fn of_column(seen: &Seen, table: i64, number: i64) -> Option<String> {
    let table = names::table_with(seen, table)?;
    let column = names::column_with_number(table.definition(), number)?;
    seen.comment(comments::place(&table, Some(column))).ok()?
}
