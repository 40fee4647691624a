//! What belongs to sequences and what they belong to, in the definitions that a transaction sees.

use onrush::{
    ColumnDefinition, Database, DefaultValue, SequenceDefinition, SequenceOwner, Table,
    TableChange, TableDefinition, Transaction,
};

use super::client::{caller, definition};
use super::position::Position;
use crate::error::{Result, SqlError, state};
use crate::execute::drop_table;

/// The tables that a transaction sees, sequences too.
fn tables(transaction: &Transaction<'_>) -> Vec<Table> {
    let definitions = transaction.tables();
    let names = definitions.iter().map(|definition| definition.name());
    // One that was dropped just now is left out.
    names.filter_map(|name| transaction.table(name).ok()).collect()
}

/// The table with this number of the engine's.
pub(crate) fn table_with_id(database: &Database, number: u32) -> Option<Table> {
    let names = database.tables().into_iter();
    names.filter_map(|it| database.table(it.name()).ok()).find(|table| table.id() == number)
}

/// Whether a column's default asks a sequence for its values, by the number that defaults know it by.
pub(crate) fn uses(column: &ColumnDefinition, number: u32) -> bool {
    let DefaultValue::Expression(computed) = &column.default else { return false };
    let oid = crate::catalog::oid_of(number);
    computed.form.is_none()
        && ["nextval", "currval", "setval"].iter().any(|function| {
            let called = format!("{function}({oid}");
            let mut found = computed.expression.match_indices(&called);
            found.any(|(at, _)| computed.expression[at + called.len()..].starts_with([')', ',']))
        })
}

/// The tables, and of each a column, whose default uses a sequence.
pub(crate) fn dependents(transaction: &Transaction<'_>, number: u32) -> Vec<(Table, usize)> {
    let mut found = Vec::new();
    for table in tables(transaction) {
        let columns = table.definition().columns().iter().enumerate();
        for (at, _) in columns.filter(|(_, column)| uses(column, number)) {
            found.push((table.clone(), at));
        }
    }
    found
}

/// Sequences that a table owns, or one of its columns, by its number.
pub(crate) fn owned_by(
    transaction: &Transaction<'_>,
    table: u32,
    column: Option<u16>,
) -> Vec<Table> {
    let is_owned = |sequence: &Table| {
        let owner = sequence.definition().sequence().and_then(|sequence| sequence.owner);
        owner.is_some_and(|owner| {
            owner.table == table && column.is_none_or(|column| owner.column == column)
        })
    };
    tables(transaction).into_iter().filter(is_owned).collect()
}

/// A table is dropped, or one of its columns, by its number: so are the sequences that it owns.
pub(crate) fn drop_owned(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: u32,
    column: Option<u16>,
) -> onrush::Result<()> {
    for sequence in owned_by(transaction, table, column) {
        drop_table(database, transaction, sequence.name())?;
    }
    Ok(())
}

/// The rows of a table go into another one: so do the sequences that it owns.
pub(crate) fn move_owned(
    transaction: &mut Transaction<'_>,
    (from, to): (&Table, &Table),
) -> Result<()> {
    for table in owned_by(transaction, from.id(), None) {
        let owner = table.definition().sequence().and_then(|sequence| sequence.owner);
        let number = owner.map(|owner| owner.column);
        let position = number.and_then(|number| from.definition().column_with_number(number));
        let name = position.map(|position| from.definition().columns()[position].name.as_str());
        let owner = match name.map(|name| to.definition().column_index(name)) {
            Some(Ok(at)) => {
                let column = u16::try_from(to.definition().column_number(at)).unwrap_or(u16::MAX);
                Some(SequenceOwner { table: to.id(), column })
            }
            _ => None,
        };
        alter(transaction, table.name(), |sequence, position| {
            let sequence = SequenceDefinition { owner, ..sequence.clone() };
            Ok(Altered { sequence, name: None, position })
        })?;
    }
    Ok(())
}

/// Makes a sequence in the transaction.
pub(crate) fn create(
    transaction: &mut Transaction<'_>,
    definition: TableDefinition,
) -> onrush::Result<Table> {
    let start = definition.sequence().map(|sequence| (sequence.start, sequence.generation));
    let table = transaction.create_table(definition)?;
    if let Some((start, generation)) = start {
        let position = Position::before(start);
        transaction.insert(&table, &position.row())?;
        if let Some(client) = caller() {
            client.own(&table, generation, position);
        }
    }
    Ok(table)
}

/// What a sequence is to be.
pub(crate) struct Altered {
    pub(crate) sequence: SequenceDefinition,
    /// Its new name, if it gets one.
    pub(crate) name: Option<String>,
    pub(crate) position: Position,
}

/// Makes another one of a sequence: what `change` makes of it and of where it stands. Others are given no values from
/// here on until the transaction is over.
pub(crate) fn alter(
    transaction: &mut Transaction<'_>,
    name: &str,
    change: impl FnOnce(&SequenceDefinition, Position) -> Result<Altered>,
) -> Result<Table> {
    let Some(client) = caller() else {
        return Err(SqlError::new(state::INTERNAL, "a sequence is altered for nobody"));
    };
    let table = transaction.lock_table(name)?;
    let known = client.standing_at(transaction, &table)?;
    let Altered { sequence, name: to, position } = change(definition(&table)?, known)?;
    let generation = sequence.generation.wrapping_add(1);
    let mut changes = vec![TableChange::SetSequence(SequenceDefinition { generation, ..sequence })];
    changes.extend(to.map(|to| TableChange::Rename { to }));
    let table = transaction.alter_table(name, &changes)?;
    // A row of its own: that of before may have been raised since the transaction began.
    let table = transaction.truncate_table(table.name())?;
    transaction.insert(&table, &position.row())?;
    client.own(&table, generation, position);
    Ok(table)
}

/// Gives a sequence another name.
pub(crate) fn rename(transaction: &mut Transaction<'_>, name: &str, to: String) -> Result<()> {
    alter(transaction, name, |sequence, position| {
        Ok(Altered { sequence: sequence.clone(), name: Some(to), position })
    })?;
    Ok(())
}
