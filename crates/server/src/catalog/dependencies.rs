//! `pg_depend`: what cannot be without something else. Dumps are put in order by it.

use onrush::{Row, SequenceOwner, Table, Value};

use super::kinds::{CHAR, INT4, OID};
use super::names::{
    self, PG_ATTRDEF_OID, PG_CLASS_OID, PG_CONSTRAINT_OID, PG_REWRITE_OID, PG_TYPE_OID,
};
use super::sequences::Shown;
use super::{PG_CATALOG, SystemTable, foreign_keys, indexes, oid, sequences};
use crate::own_types;
use crate::seen::Seen;
use crate::sequences::ValueSource;

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_depend",
    columns: &[
        ("classid", OID),
        ("objid", OID),
        ("objsubid", INT4),
        ("refclassid", OID),
        ("refobjid", OID),
        ("refobjsubid", INT4),
        ("deptype", CHAR),
    ],
    rows: |seen, _| {
        let mut rows = of_views(seen);
        rows.extend(of_sequences(seen));
        rows.extend(of_keys(seen));
        rows.extend(of_types(seen));
        rows
    },
}];

/// One thing on another, or on a column of that; each by the catalogue that it is in and its number there.
fn row(
    [class, object]: [u32; 2],
    [on_class, on]: [u32; 2],
    column: i16,
    kind: &'static str,
) -> Row {
    let (class, object) = (oid(class), oid(object));
    let (on_class, on) = (oid(on_class), oid(on));
    vec![class, object, Value::Int32(0), on_class, on, Value::Int32(column.into()), kind.into()]
}

/// The rule that a view is on the view, and on what it reads.
fn of_views(seen: &Seen) -> Vec<Row> {
    let mut rows = Vec::new();
    for view in seen.relations() {
        let Some(kept) = view.definition().any_view() else { continue };
        let rule = [PG_REWRITE_OID, names::rule_oid(&view)];
        rows.push(row(rule, [PG_CLASS_OID, names::table_oid(&view)], 0, "i"));
        for source in &kept.sources {
            let Some(table) = seen.numbered(source.table) else { continue };
            let (definition, on) = (table.definition(), [PG_CLASS_OID, names::table_oid(&table)]);
            let used = source.used.iter().filter_map(|it| definition.column_with_number(*it));
            let used: Vec<i16> = used.map(|at| names::column_number(definition, at)).collect();
            match used.is_empty() {
                true => rows.push(row(rule, on, 0, "n")),
                false => rows.extend(used.into_iter().map(|column| row(rule, on, column, "n"))),
            }
        }
    }
    rows
}

/// A sequence on the column that owns it, and a default on the sequence that it uses.
fn of_sequences(seen: &Seen) -> Vec<Row> {
    let mut rows = Vec::new();
    let tables = seen.tables();
    for Shown { number, sequence: definition, source, .. } in sequences::all(seen) {
        if let Some(SequenceOwner { table, column }) = definition.owner
            && let Some(table) = tables.iter().find(|it| it.id() == table)
            && let Some(at) = table.definition().column_with_number(column)
        {
            let on = [PG_CLASS_OID, names::table_oid(table)];
            let kind = if matches!(source, ValueSource::Identity(_)) { "i" } else { "a" };
            let column = names::column_number(table.definition(), at);
            rows.push(row([PG_CLASS_OID, number], on, column, kind));
        }
        let ValueSource::Sequence(sequence) = source else { continue };
        for table in &tables {
            for (at, column) in table.definition().columns().iter().enumerate() {
                if crate::sequences::uses(column, sequence.id()) {
                    let default = [PG_ATTRDEF_OID, names::default_oid(table, at)];
                    rows.push(row(default, [PG_CLASS_OID, number], 0, "n"));
                }
            }
        }
    }
    rows
}

/// A domain on the type that it is over and on what its default asks for; the relation of a composite type on that, and
/// on the types of its fields; columns on their domains.
fn of_types(seen: &Seen) -> Vec<Row> {
    let mut rows = Vec::new();
    for domain in seen.domains() {
        let own = [PG_TYPE_OID, names::table_oid(&domain)];
        let value = super::domains::value(&domain);
        let over = match (&value.domain, value.data_type) {
            (Some(of), _) => Some(of.number),
            (None, data_type) => own_types::number_of(data_type),
        };
        rows.extend(over.map(|over| row(own, [PG_TYPE_OID, names::oid_of(over)], 0, "n")));
        let sequences = seen.sequences().into_iter();
        for sequence in sequences.filter(|it| crate::sequences::uses(value, it.id())) {
            rows.push(row(own, [PG_CLASS_OID, names::table_oid(&sequence)], 0, "n"));
        }
    }
    for (of, _) in seen.composite_types() {
        let (own, relation) = (names::table_oid(&of), [PG_CLASS_OID, names::table_oid(&of)]);
        rows.push(row(relation, [PG_TYPE_OID, own], 0, "i"));
        for at in of.definition().shown_columns() {
            let data_type = of.definition().columns()[at].data_type;
            let Some(number) = own_types::number_of(data_type) else { continue };
            rows.push(row(relation, [PG_TYPE_OID, names::oid_of(number)], 0, "n"));
        }
    }
    for table in seen.tables() {
        for at in table.definition().shown_columns() {
            let Some(of) = &table.definition().columns()[at].domain else { continue };
            let own = [PG_CLASS_OID, names::table_oid(&table)];
            let mut one = row(own, [PG_TYPE_OID, names::oid_of(of.number)], 0, "n");
            one[2] = Value::Int32(names::column_number(table.definition(), at).into());
            rows.push(one);
        }
    }
    rows
}

/// An index on the constraint that it was made for, and a foreign key on the index that it looks into.
fn of_keys(seen: &Seen) -> Vec<Row> {
    let of_index = |table: Table| {
        let indexes = indexes::all(&table).into_iter();
        let made_for = |index: indexes::Index| Some((index.number, index.constraint?));
        let made_for: Vec<(u32, u32)> = indexes.filter_map(made_for).collect();
        made_for.into_iter().map(|(index, constraint)| {
            row([PG_CLASS_OID, index], [PG_CONSTRAINT_OID, constraint], 0, "i")
        })
    };
    let of_foreign_key = |key: foreign_keys::Key| {
        let own = [PG_CONSTRAINT_OID, key.number()];
        row(own, [PG_CLASS_OID, key.referenced_index().0], 0, "n")
    };
    let foreign_keys = foreign_keys::all(seen).into_iter().map(of_foreign_key);
    seen.tables().into_iter().flat_map(of_index).chain(foreign_keys).collect()
}
