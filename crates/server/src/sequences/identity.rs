//! The sequence that a column's identity is shown as: called by table and column, `t_id_seq`, and owned by the column.
//! It is no object: its numbers are those of the engine's own counter, of which each session takes a block.
//!
//! Invariant: a table or a sequence that is called so hides it.

use onrush::{DataType, DefaultValue, KeyStrategy, SequenceDefinition, SequenceOwner, Table};

use super::position::Position;
use crate::schemas;

/// An identity column.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) table: Table,
    /// By its position.
    pub(crate) column: usize,
    start: i64,
}

impl Identity {
    /// The identity columns of a table that SQL shows.
    pub(crate) fn all(table: &Table) -> Vec<Identity> {
        let columns = table.definition().shown_columns();
        columns.filter_map(|column| Identity::of(table, column)).collect()
    }

    fn of(table: &Table, column: usize) -> Option<Identity> {
        match table.definition().columns().get(column)?.default {
            DefaultValue::Key(KeyStrategy::Identity { start, .. }) => {
                Some(Identity { table: table.clone(), column, start })
            }
            _ => None,
        }
    }

    /// The one that the sequence of this name of the engine's is of, among the tables that `find` finds by theirs.
    pub(crate) fn named(name: &str, find: impl Fn(&str) -> Option<Table>) -> Option<Identity> {
        let (schema, own) = schemas::parts(name);
        let words = own.strip_suffix("_seq")?;
        words.match_indices('_').find_map(|(at, _)| {
            let table = find(&schemas::joined(schema, &words[..at]))?;
            let column = table.definition().shown_column_index(&words[at + 1..]).ok()?;
            Identity::of(&table, column)
        })
    }

    /// The engine's name that its sequence would have.
    pub(crate) fn name(&self) -> String {
        let (schema, table) = schemas::parts(self.table.name());
        let column = &self.table.definition().columns()[self.column].name;
        schemas::joined(schema, &format!("{table}_{column}_seq"))
    }

    /// The column's number, which it keeps.
    pub(crate) fn number(&self) -> usize {
        self.table.definition().column_number(self.column)
    }

    /// Its sequence, as it would be defined.
    pub(crate) fn definition(&self) -> SequenceDefinition {
        let data_type = self.table.definition().columns()[self.column].data_type;
        SequenceDefinition {
            data_type,
            start: self.start,
            increment: 1,
            least: self.start.min(1),
            greatest: match data_type {
                DataType::Int16 => i16::MAX.into(),
                DataType::Int32 => i32::MAX.into(),
                _ => i64::MAX,
            },
            cache: 1,
            cycles: false,
            generation: 0,
            owner: u16::try_from(self.number())
                .ok()
                .map(|column| SequenceOwner { table: self.table.id(), column }),
        }
    }

    /// Where its counter stands; what sessions have taken ahead is given.
    pub(crate) fn position(&self) -> Position {
        let next = self.table.next_free_identity(self.column).unwrap_or_default();
        let last = i64::try_from(next - 1).unwrap_or(i64::MAX);
        match last < self.start {
            true => Position::before(self.start),
            false => Position { last, is_called: true, logged: 0 },
        }
    }
}

/// What gives values: a sequence, or the identity of a column.
#[derive(Clone)]
pub(crate) enum ValueSource {
    Sequence(Table),
    Identity(Identity),
}
