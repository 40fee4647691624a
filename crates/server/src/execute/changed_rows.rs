//! The rows that a statement has changed: it changes none a second time.

use std::collections::HashSet;

use onrush::{Table, Value};

use crate::error::Result;

/// Rows of tables, by their keys.
#[derive(Default)]
pub(super) struct ChangedRows(HashSet<(u32, Vec<u8>)>);

impl ChangedRows {
    /// Whether it was not among them yet.
    pub(super) fn add(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        Ok(self.0.insert(row(table, key)?))
    }

    /// As [`add`](Self::add), by the bytes of the key.
    pub(super) fn add_bytes(&mut self, table: &Table, key: &[u8]) {
        self.0.insert((table.id(), key.to_vec()));
    }

    pub(super) fn contains(&self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        Ok(self.0.contains(&row(table, key)?))
    }
}

fn row(table: &Table, key: &[Value<'_>]) -> Result<(u32, Vec<u8>)> {
    let mut bytes = Vec::new();
    table.schema().encode_key(key, &mut bytes)?;
    Ok((table.id(), bytes))
}
