//! The tables that a session has written to, each with what it remembers of it.
//!
//! Invariants
//! 1. An index is that of the same table until a context is added.
//! 2. Of more than 16 contexts, those of tables that are gone, or have another definition by now, are let go of before
//!    their number has doubled.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use super::context::TableContext;
use super::session::Session;
use crate::catalog::{Table, TableEntry};
use crate::error::Result;

/// So many contexts are kept before anybody looks whether their tables are still there.
const SWEPT_FROM: usize = 16;

/// See the module.
pub(super) struct Contexts {
    all: Vec<TableContext>,
    /// By the address of the entry, which its context keeps in place.
    by_entry: HashMap<usize, usize>,
    /// Looked at first: most rows go to the table of the row before.
    last: usize,
    sweep_at: usize,
}

impl Contexts {
    pub(super) fn new() -> Contexts {
        Contexts { all: Vec::new(), by_entry: HashMap::new(), last: 0, sweep_at: SWEPT_FROM }
    }

    #[inline]
    fn find(&mut self, entry: &Arc<TableEntry>) -> Option<usize> {
        if self.all.get(self.last).is_some_and(|context| Arc::ptr_eq(&context.table, entry)) {
            return Some(self.last);
        }
        self.last = *self.by_entry.get(&address(entry))?;
        Some(self.last)
    }

    fn add(&mut self, context: TableContext) -> usize {
        if self.all.len() >= self.sweep_at {
            self.sweep();
        }
        self.last = self.all.len();
        self.by_entry.insert(address(&context.table), self.last);
        self.all.push(context);
        self.last
    }

    /// Lets go of those whose tables are gone or were altered, by this session's own transaction, too: what they have
    /// is made again when it is asked for.
    fn sweep(&mut self) {
        self.all.retain_mut(|context| {
            let is_current = context.table.is_current();
            if !is_current {
                context.give_back();
            }
            is_current
        });
        let numbered = self.all.iter().enumerate();
        self.by_entry = numbered.map(|(index, context)| (address(&context.table), index)).collect();
        self.sweep_at = SWEPT_FROM.max(2 * self.all.len());
    }
}

impl Index<usize> for Contexts {
    type Output = TableContext;

    fn index(&self, index: usize) -> &TableContext {
        &self.all[index]
    }
}

impl IndexMut<usize> for Contexts {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut TableContext {
        &mut self.all[index]
    }
}

impl Drop for Contexts {
    fn drop(&mut self) {
        for context in &mut self.all {
            context.give_back();
        }
    }
}

fn address(entry: &Arc<TableEntry>) -> usize {
    Arc::as_ptr(entry).addr()
}

impl Session {
    /// Index of what this session remembers of the table.
    #[inline]
    pub(super) fn context(&mut self, table: &Table) -> Result<usize> {
        match self.contexts.find(&table.entry) {
            Some(index) => Ok(index),
            None => self.new_context(table),
        }
    }

    #[cold]
    fn new_context(&mut self, table: &Table) -> Result<usize> {
        table.check_database(self.worker.engine.database_id)?;
        table.check_writable()?;
        table.entry.object()?;
        let context = TableContext::new(Arc::clone(&table.entry), &self.worker)?;
        Ok(self.contexts.add(context))
    }
}

#[cfg(test)]
mod tests {
    use onrush_types::{ColumnDefinition, DataType, KeyStrategy, TableDefinition};

    use crate::{Database, Options};

    fn definition(name: &str) -> TableDefinition {
        let key = KeyStrategy::Identity { start: 1, strict: false };
        let id = ColumnDefinition::new("id", DataType::Int64).default_key(key);
        TableDefinition::builder(name).column(id).primary_key(["id"]).build().unwrap()
    }

    #[test]
    fn a_session_lets_go_of_tables_that_were_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
        let kept = database.create_table(definition("kept")).unwrap();
        let mut session = database.session().unwrap();
        for _ in 0..200 {
            let passing = database.create_table(definition("passing")).unwrap();
            session.insert(&passing, &[]).unwrap();
            session.insert(&kept, &[]).unwrap();
            database.drop_table("passing").unwrap();
            assert!(session.contexts.all.len() <= 2 * super::SWEPT_FROM);
        }
        let row = session.get(&kept, &[onrush_types::Value::Int64(200)]).unwrap();
        assert!(row.is_some(), "its identity went on where it was");
    }
}
