//! The numbers behind generated keys, moved by hand: for programs that bring keys of their own.

use super::session::Session;
use super::transaction::Transaction;
use crate::catalog::Table;
use crate::error::Result;

impl Session {
    /// Lets a generated column go on at number `next`, if it does not stand beyond it already: after
    /// rows were inserted with keys that the strategy would make later. Of an identity column the
    /// number is the value less its start. Durable when this returns. False if the column has no
    /// generated values.
    ///
    /// Sessions that have drawn a block of numbers already use it up first, so move the counter
    /// before sessions insert.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// let identity = KeyStrategy::Identity { start: 1, strict: false };
    /// let id = ColumnDefinition::new("id", DataType::Int64).default_key(identity);
    /// let table =
    ///     db.create_table(TableDefinition::builder("t").column(id).primary_key(["id"]).build()?)?;
    /// let mut session = db.session()?;
    /// session.insert(&table, &[500i64.into()])?;
    /// assert!(session.skip_numbers(&table, "id", 500)?);
    /// assert_eq!(session.insert_returning_key(&table, &[Value::Default])?[0], 501i64.into());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No such column; a table of another database; the errors of a durable commit.
    pub fn skip_numbers(&mut self, table: &Table, column: &str, next: u64) -> Result<bool> {
        let engine = &self.worker.engine;
        table.check_database(engine.database_id)?;
        engine.check_open()?;
        let entry = &table.entry;
        let column = table.definition().column_index(column)?;
        let Some(sequence) = entry.sequence(column) else { return Ok(false) };
        let column = (entry.id, entry.column_number(column));
        sequence.skip_to(&***engine, column, next, &self.worker.recorder)?;
        Ok(true)
    }
}

impl Transaction<'_> {
    /// As [`Session::skip_numbers`]. Of a table that the transaction has made the number is committed with
    /// it.
    ///
    /// # Errors
    /// As [`Session::skip_numbers`].
    pub fn skip_numbers(&mut self, table: &Table, column: &str, next: u64) -> Result<bool> {
        self.session.skip_numbers(table, column, next)
    }
}
