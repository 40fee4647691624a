//! Foreign keys as the catalogue shows them: their definitions, `referential_constraints` and
//! `constraint_column_usage`.

use onrush::{Deferral, ForeignKey, ReferentialAction, Row, Table};
use onrush_query::Statement;
use onrush_types::ReferencedKey;

use super::indexes::{self, column_name};
use super::kinds::{NAME, TEXT};
use super::{INFORMATION_SCHEMA, SystemTable, information, names};
use crate::schemas;
use crate::seen::Seen;

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "referential_constraints",
        columns: &[
            ("constraint_catalog", NAME),
            ("constraint_schema", NAME),
            ("constraint_name", NAME),
            ("unique_constraint_catalog", NAME),
            ("unique_constraint_schema", NAME),
            ("unique_constraint_name", NAME),
            ("match_option", TEXT),
            ("update_rule", TEXT),
            ("delete_rule", TEXT),
        ],
        rows: |seen, statement| all(seen).iter().map(|key| key.row(statement)).collect(),
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "constraint_column_usage",
        columns: &[
            ("table_catalog", NAME),
            ("table_schema", NAME),
            ("table_name", NAME),
            ("column_name", NAME),
            ("constraint_catalog", NAME),
            ("constraint_schema", NAME),
            ("constraint_name", NAME),
        ],
        rows: |seen, statement| {
            let of_keys = all(seen).into_iter().flat_map(|key| key.used(statement));
            let tables = seen.tables();
            let of_indexes = tables.iter().flat_map(|table| {
                let indexes = indexes::all(table).into_iter();
                indexes.filter(|index| index.constraint.is_some()).flat_map(|index| {
                    usage((table, &index.columns()), (table, index.name), statement)
                })
            });
            let of_checks = tables.iter().flat_map(|table| {
                table.definition().checks().iter().flat_map(|check| {
                    let numbers = check.columns.iter();
                    let column = |number: &u16| table.definition().column_with_number(*number);
                    let columns: Vec<usize> = numbers.filter_map(column).collect();
                    usage((table, &columns), (table, check.name.clone()), statement)
                })
            });
            of_keys.chain(of_indexes).chain(of_checks).collect()
        },
    },
];

/// Columns of a table that a constraint of another one, or of the same, uses.
fn usage(
    (table, columns): (&Table, &[usize]),
    (of, name): (&Table, String),
    statement: &Statement,
) -> Vec<Row> {
    let row = |column: &usize| {
        let mut row = information::place(table, statement);
        row.push(table.definition().columns()[*column].name.clone().into());
        row.extend(information::constraint(of, name.clone(), statement));
        row
    };
    columns.iter().map(row).collect()
}

/// A foreign key, with the tables on its sides.
pub(super) struct Key {
    pub(super) table: Table,
    pub(super) referenced: Table,
    pub(super) definition: ForeignKey,
}

/// All foreign keys.
pub(super) fn all(seen: &Seen) -> Vec<Key> {
    seen.tables().iter().flat_map(|table| of(seen, table)).collect()
}

/// Those of a table.
pub(super) fn of(seen: &Seen, table: &Table) -> Vec<Key> {
    let foreign_keys = table.definition().foreign_keys();
    if foreign_keys.is_empty() {
        return Vec::new();
    }
    let tables = seen.tables();
    let key = |definition: &ForeignKey| {
        let referenced = tables.iter().find(|other| other.id() == definition.referenced_table)?;
        let (table, referenced) = (table.clone(), referenced.clone());
        Some(Key { table, referenced, definition: definition.clone() })
    };
    foreign_keys.iter().filter_map(key).collect()
}

impl Key {
    pub(super) fn number(&self) -> u32 {
        names::constraint_oid(&self.table, &self.definition.name)
    }

    /// Positions of its columns.
    pub(super) fn columns(&self) -> Vec<usize> {
        self.definition.positions(self.table.definition()).unwrap_or_default()
    }

    /// Positions of the referenced columns.
    pub(super) fn referenced_columns(&self) -> Vec<usize> {
        let referenced = self.referenced.definition();
        let numbers = self.definition.referenced_columns.iter();
        numbers.filter_map(|number| referenced.column_with_number(*number)).collect()
    }

    /// The number and the name of the index that it references.
    pub(super) fn referenced_index(&self) -> (u32, String) {
        match self.definition.referenced_key(self.referenced.definition()) {
            Some(ReferencedKey::Unique(index)) => {
                (names::entries_oid(index.entries), schemas::own_name(&index.name).to_owned())
            }
            _ => (names::key_oid(&self.referenced), names::key_name(&self.referenced)),
        }
    }

    /// For each column the place, from 1, of the referenced one in the referenced key.
    pub(super) fn positions_in_key(&self) -> Vec<i32> {
        let referenced = self.referenced.definition();
        let key = self.definition.referenced_key(referenced);
        let order = key.and_then(|key| self.definition.in_key_order(referenced, key).ok());
        let order = order.unwrap_or_default();
        let place = |column: usize| order.iter().position(|own| *own == column);
        let number = |place: Option<usize>| place.map_or(0, |place| place as i32 + 1);
        (0..self.definition.columns.len()).map(|column| number(place(column))).collect()
    }

    pub(super) fn is_deferrable(&self) -> bool {
        self.definition.deferral != Deferral::NotDeferrable
    }

    pub(super) fn is_deferred(&self) -> bool {
        self.definition.deferral == Deferral::InitiallyDeferred
    }

    /// What `pg_get_constraintdef` shows of it; `referenced` is what the referenced table is called.
    pub(super) fn shown(&self, referenced: &str) -> String {
        let names = |table: &Table, columns: Vec<usize>| {
            let names: Vec<String> = columns.iter().map(|at| column_name(table, *at)).collect();
            names.join(", ")
        };
        let mut shown = format!(
            "FOREIGN KEY ({}) REFERENCES {referenced}({})",
            names(&self.table, self.columns()),
            names(&self.referenced, self.referenced_columns())
        );
        let ForeignKey { on_delete, on_update, .. } = &self.definition;
        if self.definition.is_match_full {
            shown.push_str(" MATCH FULL");
        }
        for (event, action) in [("UPDATE", on_update), ("DELETE", on_delete)] {
            if *action != ReferentialAction::NoAction {
                shown.push_str(&format!(" ON {event} {}", rule(*action)));
            }
        }
        if self.is_deferrable() {
            shown.push_str(" DEFERRABLE");
        }
        if self.is_deferred() {
            shown.push_str(" INITIALLY DEFERRED");
        }
        if !self.definition.is_validated {
            shown.push_str(" NOT VALID");
        }
        shown
    }

    fn row(&self, statement: &Statement) -> Row {
        let mut row = information::constraint(&self.table, self.definition.name.clone(), statement);
        let index = self.referenced_index().1;
        row.extend(information::constraint(&self.referenced, index, statement));
        row.push(if self.definition.is_match_full { "FULL" } else { "NONE" }.into());
        row.push(rule(self.definition.on_update).into());
        row.push(rule(self.definition.on_delete).into());
        row
    }

    fn used(&self, statement: &Statement) -> Vec<Row> {
        let name = self.definition.name.clone();
        usage((&self.referenced, &self.referenced_columns()), (&self.table, name), statement)
    }
}

fn rule(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

/// As `pg_constraint` has it.
pub(super) fn letter(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "a",
        ReferentialAction::Restrict => "r",
        ReferentialAction::Cascade => "c",
        ReferentialAction::SetNull => "n",
        ReferentialAction::SetDefault => "d",
    }
}
