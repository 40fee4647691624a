//! The numbers behind generated keys, moved by hand: for programs that bring keys of their own.

use std::sync::Arc;

use onrush_types::{DataType, DefaultValue, KeyStrategy, TypeError};

use super::generated::GeneratedValues;
use super::session::Session;
use super::transaction::Transaction;
use crate::catalog::{Sequence, Table};
use crate::error::{Error, Result};

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

impl Session {
    /// Sets the counter of an identity column so that its next value is this one, for all sessions and at once,
    /// also where it stood beyond. Durable when this returns; but a value that is less than those that were handed
    /// out counts until the next start only, from which on values go on where they were. False if the column is no
    /// identity.
    ///
    /// # Errors
    /// As [`skip_numbers`](Self::skip_numbers); a value before the identity's start.
    pub fn restart_identity(&mut self, table: &Table, column: usize, next: i64) -> Result<bool> {
        let Some((sequence, start)) = self.identity(table, column)? else { return Ok(false) };
        let number = i128::from(next) - i128::from(start);
        let number = u64::try_from(number).map_err(|_| {
            Error::Internal(format!("an identity that starts with {start} cannot go on at {next}"))
        })?;
        let entry = &table.entry;
        let place = (entry.id, entry.column_number(column));
        self.worker.release();
        sequence.restart_at(&**self.worker.engine, place, number, &self.worker.recorder)?;
        Ok(true)
    }

    /// Takes the value of an identity column that the next row of this session would get, which no row gets by itself
    /// then. None if the column is no identity.
    ///
    /// # Errors
    /// As [`skip_numbers`](Self::skip_numbers); [`TypeError::KeysExhausted`] at the end of its type.
    pub fn next_identity(&mut self, table: &Table, column: usize) -> Result<Option<i64>> {
        if self.identity(table, column)?.is_none() {
            return Ok(None);
        }
        let context = self.context(table)?;
        let value = self.contexts[context].generated(&mut self.worker, column)?;
        Ok(value.as_i64())
    }

    /// Draws a value of an identity column from its counter, whatever this session has taken of it before; no row
    /// gets it by itself then. None if the column is no identity.
    ///
    /// # Errors
    /// As [`skip_numbers`](Self::skip_numbers); [`TypeError::KeysExhausted`] at the end of its type.
    pub fn draw_identity(&mut self, table: &Table, column: usize) -> Result<Option<i64>> {
        let Some((sequence, start)) = self.identity(table, column)? else { return Ok(None) };
        let entry = &table.entry;
        let place = (entry.id, entry.column_number(column));
        self.worker.release();
        let (engine, recorder) = (&**self.worker.engine, &self.worker.recorder);
        let numbers = sequence.lease(engine, place, 1, recorder, |_| Ok(()))?;
        let value = i64::try_from(i128::from(start) + i128::from(numbers.start));
        let greatest = match table.definition().columns()[column].data_type {
            DataType::Int16 => i64::from(i16::MAX),
            DataType::Int32 => i64::from(i32::MAX),
            _ => i64::MAX,
        };
        match value {
            Ok(value) if value <= greatest && !numbers.is_empty() => Ok(Some(value)),
            _ => Err(TypeError::KeysExhausted {
                column: table.definition().column_name(column),
                strategy: KeyStrategy::Identity { start, strict: false },
                reason: "all keys of its range are handed out; use a wider integer type".into(),
            }
            .into()),
        }
    }

    /// What this session was given of identity columns.
    #[must_use]
    pub fn generated_values(&self) -> Arc<GeneratedValues> {
        Arc::clone(&self.worker.generated)
    }

    /// The counter of an identity column, and its first value.
    fn identity<'t>(&self, table: &'t Table, column: usize) -> Result<Option<(&'t Sequence, i64)>> {
        let engine = &self.worker.engine;
        table.check_database(engine.database_id)?;
        engine.check_open()?;
        let default = table.definition().columns().get(column).map(|column| &column.default);
        let Some(DefaultValue::Key(KeyStrategy::Identity { start, .. })) = default else {
            return Ok(None);
        };
        Ok(table.entry.sequence(column).map(|sequence| (sequence, *start)))
    }
}

impl Table {
    /// The value of an identity column that comes next when all that sessions have taken are used up; none if the
    /// column is no identity.
    #[must_use]
    pub fn next_free_identity(&self, column: usize) -> Option<i128> {
        let default = &self.definition().columns().get(column)?.default;
        let DefaultValue::Key(KeyStrategy::Identity { start, .. }) = default else { return None };
        let sequence = self.entry.sequence(column)?;
        Some(i128::from(*start) + i128::from(sequence.handed_out()))
    }
}

impl Transaction<'_> {
    /// As [`Session::next_identity`].
    ///
    /// # Errors
    /// As [`Session::next_identity`].
    pub fn next_identity(&mut self, table: &Table, column: usize) -> Result<Option<i64>> {
        self.session.next_identity(table, column)
    }

    /// As [`Session::skip_numbers`]. Of a table that the transaction has made the number is committed with
    /// it.
    ///
    /// # Errors
    /// As [`Session::skip_numbers`].
    pub fn skip_numbers(&mut self, table: &Table, column: &str, next: u64) -> Result<bool> {
        self.session.skip_numbers(table, column, next)
    }
}
