//! Making, renaming and dropping indexes: each a transaction of its own, durable before it is told.

use super::{Database, IndexBuildOptions, Table};
use crate::error::Result;
use crate::session::NewIndex;

impl Database {
    /// Makes an index of a table. Durable when this returns. Others read the table meanwhile and write to it
    /// ([`build_index`](Self::build_index)). Returns the table's new handle: whoever has one from before can no longer
    /// write by it and gets [`TableChanged`](crate::Error::TableChanged).
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let mail = ColumnDefinition::new("mail", DataType::Text);
    /// # let people = TableDefinition::builder("people").column(id).column(mail).primary_key(["id"]);
    /// # db.create_table(people.build()?)?;
    /// let people = db.create_index("people", &NewIndex::new("people_mail", ["mail"]))?;
    /// let mut session = db.session()?;
    /// session.insert(&people, &[1i64.into(), "a@example.com".into()])?;
    ///
    /// let snapshot = session.snapshot()?;
    /// let by_mail = snapshot.index_entries(&people, 0)?; // its key: mail, id
    /// let entries = snapshot.scan(&by_mail, &ScanOptions::default())?;
    /// assert_eq!(entries.collect::<Result<Vec<Row>>>()?, [["a@example.com".into(), 1i64.into()]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownTable`](crate::Error::UnknownTable); [`TableExists`](crate::Error::TableExists) for a name that is
    /// taken; [`UniqueViolated`](crate::Error::UniqueViolated) by the rows that there are; columns that are not there
    /// or have no order.
    pub fn create_index(&self, table: &str, index: &NewIndex) -> Result<Table> {
        self.build_index(table, index, &IndexBuildOptions::default())
    }

    /// Drops an index. Durable when this returns, with the table's new handle.
    ///
    /// # Errors
    /// [`UnknownIndex`](crate::Error::UnknownIndex).
    pub fn drop_index(&self, index: &str) -> Result<Table> {
        self.define(|transaction| transaction.drop_index(index))
    }

    /// Gives an index another name. Durable when this returns, with the table's new handle.
    ///
    /// # Errors
    /// [`UnknownIndex`](crate::Error::UnknownIndex); [`TableExists`](crate::Error::TableExists) for a name that is
    /// taken.
    pub fn rename_index(&self, index: &str, to: &str) -> Result<Table> {
        self.define(|transaction| transaction.rename_index(index, to))
    }
}
