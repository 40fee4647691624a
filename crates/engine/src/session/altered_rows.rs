//! Whether the rows that there are suit what a table is to become. They are looked at once, while nobody else
//! writes to the table.

use std::sync::Arc;

use onrush_types::Schema;

use super::ScanOptions;
use super::transaction::Transaction;
use crate::catalog::TableEntry;
use crate::error::{Error, Result};

impl Transaction<'_> {
    /// Looks at all rows if a column that may be NULL must not be any more. Nobody else writes to the table.
    pub(super) fn check_nulls(&self, entry: &Arc<TableEntry>, altered: &TableEntry) -> Result<()> {
        let (old, new) = (entry.schema.definition(), altered.schema.definition());
        let column_of = |at: usize| {
            let number = new.column_number(at);
            (0..old.columns().len()).find(|old_at| old.column_number(*old_at) == number)
        };
        let is_forbidden = |at: &usize| old.columns()[*at].nullable;
        let forbidden: Vec<usize> = (0..new.columns().len())
            .filter(|at| !new.columns()[*at].nullable)
            .filter_map(column_of)
            .filter(is_forbidden)
            .collect();
        if forbidden.is_empty() {
            return Ok(());
        }
        let table = self.handle(Arc::clone(entry));
        let mut outcome: Result<()> = Ok(());
        self.newest_snapshot().scan(&table, &ScanOptions::default())?.visit_raw(|key, row| {
            if outcome.is_ok() {
                outcome = check_row_nulls(&entry.schema, &forbidden, (key, row));
            }
        })?;
        outcome
    }

    /// Looks at all rows as those conditions of `altered` do that it has and the table had not. Nobody else writes to
    /// the table.
    pub(super) fn check_rows(&self, entry: &Arc<TableEntry>, altered: &TableEntry) -> Result<()> {
        let Some(new) = altered.checks_since(entry) else { return Ok(()) };
        let (compiler, schema) = (&self.engine().expression_compiler, &altered.schema);
        let table = self.handle(Arc::clone(entry));
        let mut outcome = Ok(());
        self.newest_snapshot().scan(&table, &ScanOptions::default())?.visit_raw(|key, row| {
            if outcome.is_ok() {
                outcome = new.check(compiler, schema, key, row);
            }
        })?;
        outcome.map_err(|error| match error {
            Error::CheckViolated { table, constraint } => {
                Error::RowsViolateCheck { table, constraint }
            }
            Error::DomainViolated(violation) => Error::RowsViolateDomain(violation),
            other => other,
        })
    }
}

fn check_row_nulls(schema: &Schema, forbidden: &[usize], (key, row): (&[u8], &[u8])) -> Result<()> {
    let view = schema.view(key, row)?;
    for column in forbidden {
        if view.column(*column)?.is_null() {
            let column = schema.definition().columns()[*column].name.clone();
            return Err(Error::RowsHoldNull { table: schema.name().to_owned(), column });
        }
    }
    Ok(())
}
