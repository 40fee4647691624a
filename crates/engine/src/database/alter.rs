//! Altering a table: a record of the log, whatever the table holds. Rows stay as they are; each names
//! the version that it was written with, and is read as one of the newest. Why:
//! `docs/decisions/0006-altering-a-table-rewrites-nothing.md`.
//!
//! Invariants
//! 1. Rows of a version come after its record in the log, and whoever writes looks inside whether his
//!    version is still the newest: [`TableEntry::check_version`](crate::catalog::TableEntry::check_version).
//! 2. A change that suits only an empty table, or needs every row to meet a CHECK constraint, looks at the
//!    rows while nobody else writes, and lets nobody write before its record is in the log.

use onrush_types::TableChange;

use super::{Database, Table};
use crate::error::Result;

impl Database {
    /// Changes a table: all of `changes`, in their order, or none. Durable when this returns. It takes
    /// the same time for a table of any size: no row is written. Sessions go on; whoever has a handle
    /// from before can no longer write by it and gets [`TableChanged`](crate::Error::TableChanged), also when
    /// he meets rows that are newer than his handle. The new handle is returned.
    ///
    /// Rows that are there hold a new column's constant default, the moment of this call where its
    /// default is now, else NULL. Space of a dropped column comes back as rows are changed.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
    /// # let old = db.create_table(notes.build()?)?;
    /// let mut session = db.session()?;
    /// session.insert(&old, &[1i64.into()])?;
    /// let stars = ColumnDefinition::new("stars", DataType::Int32).not_null().default_value(3i32);
    /// let notes = db.alter_table("notes", &[TableChange::AddColumn(stars)])?;
    /// assert_eq!(session.get(&notes, &[1i64.into()])?.expect("is there")[1], 3i32.into());
    /// session.insert(&notes, &[2i64.into(), 5i32.into()])?;
    /// assert!(matches!(session.insert(&old, &[3i64.into()]), Err(Error::TableChanged { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownTable`](crate::Error::UnknownTable); [`TableExists`](crate::Error::TableExists) for a new name that
    /// is taken; [`RowsInTheWay`](crate::Error::RowsInTheWay) for a column without a value for the rows that
    /// there are; [`RowsViolateCheck`](crate::Error::RowsViolateCheck); what
    /// [`TableDefinition::altered`](crate::TableDefinition::altered) refuses.
    pub fn alter_table(&self, name: &str, changes: &[TableChange]) -> Result<Table> {
        self.define(|transaction| transaction.alter_table(name, changes))
    }
}
