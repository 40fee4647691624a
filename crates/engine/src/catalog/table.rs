//! One table, and the list of all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use onrush_latch::lock_counted;
use onrush_types::{ColumnDefinition, DefaultValue, KeyStrategy, Schema, TableDefinition};
use onrush_waits::{LatchClass, Recorder};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::Sequence;
use crate::btree::Tree;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::units::ObjectId;

/// A table as long as anyone knows it.
pub(crate) struct TableEntry {
    /// Number of the table, for ever; also its first object.
    pub(crate) id: u32,
    pub(crate) schema: Schema,
    pub(crate) tree: Arc<Tree>,
    /// Column and counter of each generated key.
    sequences: Vec<(usize, Sequence)>,
    /// Bytes of a typical row in a leaf; sets how many identity values make a leaf full.
    entry_bytes: AtomicU64,
    /// Held from the draw of a key to its insert where keys must ascend in commit order.
    strict_order: Option<Mutex<()>>,
}

impl TableEntry {
    pub(crate) fn new(
        id: u32,
        definition: Arc<TableDefinition>,
        tree: Tree,
        counters: &[(u32, u64)],
    ) -> Result<TableEntry> {
        let schema = Schema::new(Arc::clone(&definition))?;
        let sequences = definition
            .columns()
            .iter()
            .enumerate()
            .filter(|(_, column)| matches!(column.default, DefaultValue::Key(_)))
            .map(|(index, _)| {
                let next = counters.iter().find(|(column, _)| *column as usize == index);
                (index, Sequence::starting_at(next.map_or(0, |(_, next)| *next)))
            })
            .collect();
        let entry_bytes = AtomicU64::new(0);
        let strict = |column: &ColumnDefinition| {
            let DefaultValue::Key(strategy) = &column.default else { return false };
            matches!(strategy, KeyStrategy::Identity { strict: true, .. })
        };
        let strict_order = definition.columns().iter().any(strict).then(|| Mutex::new(()));
        Ok(TableEntry { id, schema, tree: Arc::new(tree), sequences, entry_bytes, strict_order })
    }

    pub(crate) fn name(&self) -> &str {
        self.schema.name()
    }

    /// The counter behind a generated column.
    pub(crate) fn sequence(&self, column: usize) -> Option<&Sequence> {
        self.sequences.iter().find(|(own, _)| *own == column).map(|(_, sequence)| sequence)
    }

    /// Columns with a counter, and the marks below which numbers may have been handed out.
    pub(crate) fn counters(&self) -> Vec<(u32, u64)> {
        if planted(Fault::CounterNotStored) {
            return Vec::new();
        }
        self.sequences
            .iter()
            .map(|(column, sequence)| (*column as u32, sequence.reserved()))
            .collect()
    }

    /// Keeps other inserts out where keys must ascend in commit order.
    #[inline]
    pub(crate) fn strict_order(&self, recorder: &Recorder) -> Option<MutexGuard<'_, ()>> {
        let order = self.strict_order.as_ref()?;
        Some(lock_counted(order, recorder, LatchClass::KeyGenerator))
    }

    /// Remembers how large rows are, from one of them.
    #[inline]
    pub(crate) fn note_entry_bytes(&self, bytes: usize) {
        if self.entry_bytes.load(Ordering::Relaxed) != bytes as u64 {
            self.entry_bytes.store(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Bytes of a typical row in a leaf, 0 if none is known.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.entry_bytes.load(Ordering::Relaxed) as usize
    }
}

/// All tables, by name and by object.
pub(crate) struct Catalog {
    tables: RwLock<Tables>,
    /// Objects below were handed out; never goes back.
    next_object: AtomicU32,
    /// Held while tables are created, dropped or truncated, and while a checkpoint looks at them.
    pub(crate) definitions: Mutex<()>,
}

impl Default for Catalog {
    fn default() -> Self {
        let next_object = AtomicU32::new(1);
        Catalog { tables: RwLock::default(), next_object, definitions: Mutex::new(()) }
    }
}

#[derive(Default)]
struct Tables {
    by_name: BTreeMap<String, Arc<TableEntry>>,
    by_object: HashMap<ObjectId, Arc<TableEntry>>,
}

impl Catalog {
    pub(crate) fn get(&self, name: &str) -> Result<Arc<TableEntry>> {
        let tables = self.tables.read();
        tables.by_name.get(name).cloned().ok_or_else(|| Error::UnknownTable { name: name.into() })
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tables.read().by_name.contains_key(name)
    }

    pub(crate) fn by_object(&self, object: ObjectId) -> Option<Arc<TableEntry>> {
        self.tables.read().by_object.get(&object).cloned()
    }

    pub(crate) fn by_id(&self, id: u32) -> Option<Arc<TableEntry>> {
        self.tables.read().by_name.values().find(|table| table.id == id).cloned()
    }

    /// All tables, by name.
    pub(crate) fn all(&self) -> Vec<Arc<TableEntry>> {
        self.tables.read().by_name.values().cloned().collect()
    }

    pub(crate) fn add(&self, table: Arc<TableEntry>) {
        let mut tables = self.tables.write();
        tables.by_object.insert(table.tree.object(), Arc::clone(&table));
        tables.by_name.insert(table.name().to_owned(), table);
    }

    pub(crate) fn remove(&self, table: &TableEntry) {
        let mut tables = self.tables.write();
        tables.by_name.remove(table.name());
        tables.by_object.retain(|_, other| other.id != table.id);
    }

    /// The table's rows are those of another object from now on.
    pub(crate) fn replace_object(&self, table: &Arc<TableEntry>, new: ObjectId) {
        let mut tables = self.tables.write();
        tables.by_object.retain(|_, other| other.id != table.id);
        tables.by_object.insert(new, Arc::clone(table));
    }

    /// An object number that was never used. The last one is kept back, so that there is always a
    /// next.
    pub(crate) fn new_object(&self) -> Result<ObjectId> {
        let next = |object: u32| (object < u32::MAX).then(|| object + 1);
        let object = self.next_object.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        object.map(ObjectId).map_err(|_| Error::TableNumbersUsedUp)
    }

    pub(crate) fn next_object(&self) -> u32 {
        self.next_object.load(Ordering::Acquire)
    }

    /// Objects up to here were handed out before.
    pub(crate) fn raise_next_object(&self, next: u32) {
        self.next_object.fetch_max(next, Ordering::AcqRel);
    }
}
