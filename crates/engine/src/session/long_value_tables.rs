//! The tables that keep long values, as a transaction makes them: with their table, or when it gets its first column
//! whose values may be long.

use std::sync::Arc;

use onrush_types::TableDefinition;

use super::transaction::Transaction;
use crate::catalog::{Table, TableEntry};
use crate::error::{Error, Result};

impl Transaction<'_> {
    /// As [`create_table`](Self::create_table), of a table that has none for long values before one
    /// [is added](Self::add_long_values): for a database that is made of another one, whose tables keep their numbers.
    ///
    /// # Errors
    /// As [`create_table`](Self::create_table).
    pub fn create_table_alone(&mut self, definition: TableDefinition) -> Result<Table> {
        self.engine().check_open()?;
        let definition = Arc::new(definition.standing_alone());
        self.lock_free_name(definition.name())?;
        let entry = self.make_table(definition)?;
        self.own_definitions().add_new(&entry);
        Ok(self.handle(entry))
    }

    /// Gives a table of this transaction one for its long values, if its rows may have such.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable); those of waiting for who uses it.
    pub fn add_long_values(&mut self, name: &str) -> Result<()> {
        let entry = self.lock_for_index(name)?;
        let definition = Arc::clone(entry.schema.definition());
        let number = self.give_pieces(&entry, definition)?.long_values();
        if number == entry.schema.definition().long_values() {
            return Ok(());
        }
        self.put_definition(&entry, |table| Ok(table.with_long_values(number))).map(drop)
    }

    /// A table of the transaction's alone, and the one of its long values, if rows may have such.
    pub(super) fn make_table_and_pieces(
        &mut self,
        definition: TableDefinition,
    ) -> Result<(Arc<TableEntry>, Option<Arc<TableEntry>>)> {
        if !definition.may_have_long_values() {
            return Ok((self.make_table(Arc::new(definition))?, None));
        }
        let object = self.engine().catalog.new_object()?;
        let pieces = self.make_pieces(&definition, object.number())?;
        let definition = definition.with_long_values(Some(pieces.id));
        let entry = self.make_table_of(object, Arc::new(definition))?;
        entry.long_values(|_| Some(Arc::clone(&pieces)))?;
        Ok((entry, Some(pieces)))
    }

    /// The table of the long values of another, by its number.
    fn make_pieces(&mut self, of: &TableDefinition, table: u32) -> Result<Arc<TableEntry>> {
        let mut name = format!("onrush_long_values_{table}");
        loop {
            match self.lock_free_name(&name) {
                Err(Error::TableExists { .. }) => name.push('_'),
                locked => break locked?,
            }
        }
        self.make_table(Arc::new(of.long_values_definition(&name, table)?))
    }

    /// The new definition of a table, with one for its long values if rows may have such now.
    pub(super) fn give_pieces(
        &mut self,
        entry: &TableEntry,
        definition: Arc<TableDefinition>,
    ) -> Result<Arc<TableDefinition>> {
        if entry.has_long_values() || !definition.may_have_long_values() {
            return Ok(definition);
        }
        let pieces = self.make_pieces(&definition, entry.id)?;
        self.own_definitions().add_new(&pieces);
        let definition = TableDefinition::clone(&definition).with_long_values(Some(pieces.id));
        Ok(Arc::new(definition))
    }
}
