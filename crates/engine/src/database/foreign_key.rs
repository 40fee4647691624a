//! Making, changing and dropping foreign keys: each a transaction of its own, durable before it is told.

use super::{Database, Table};
use crate::error::Result;
use crate::session::NewForeignKey;

impl Database {
    /// Makes a foreign key of a table: each of its rows names a row of the referenced table, or has a NULL. Durable
    /// when this returns, with the table's new handle: whoever has one from before can no longer write by it, nor by
    /// one of the referenced table, and gets [`TableChanged`](crate::Error::TableChanged).
    ///
    /// References are looked at when a transaction commits, or earlier, where it asks to
    /// [settle](crate::Transaction::settle_references) them. Give the referencing columns an index, or make them the
    /// first of the primary key: without, deleting a referenced row reads all rows of the table.
    ///
    /// # Errors
    /// See [`Transaction::add_foreign_key`](crate::Transaction::add_foreign_key).
    pub fn add_foreign_key(&self, table: &str, foreign_key: &NewForeignKey) -> Result<Table> {
        self.define(|transaction| transaction.add_foreign_key(table, foreign_key))
    }

    /// Drops a foreign key. Durable when this returns, with the table's new handle.
    ///
    /// # Errors
    /// No such table or foreign key.
    pub fn drop_foreign_key(&self, table: &str, name: &str) -> Result<Table> {
        self.define(|transaction| transaction.drop_foreign_key(table, name))
    }
}
