//! One table, and the list of all.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use onrush_latch::lock_counted;
use onrush_log::{LatestLsn, Lsn};
use onrush_types::{ColumnDefinition, DefaultValue, KeyStrategy, Schema, TableDefinition, Value};
use onrush_waits::{LatchClass, Recorder};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::Relations;
use super::{DefinitionLocks, Index, ReferenceLocks, Sequence};
use crate::constraint::{GeneratedColumns, TableChecks, TableDefaults};
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::tree::{Blocked, Refusal, Tree};
use crate::units::ObjectId;

/// A table as long as anyone knows it.
pub(crate) struct TableEntry {
    /// Number of the table, for ever; also its first object.
    pub(crate) id: u32,
    pub(crate) schema: Schema,
    pub(crate) tree: Arc<Tree>,
    /// Column and counter of each generated key. Those of an altered table are those that it had
    /// before.
    sequences: Vec<(usize, Arc<Sequence>)>,
    /// Bytes of a typical row in a leaf; sets how many identity values make a leaf full.
    entry_bytes: AtomicU64,
    /// Held from the draw of a key to its insert where keys must ascend in commit order.
    strict_order: Option<Mutex<()>>,
    checks: Option<TableChecks>,
    defaults: TableDefaults,
    pub(crate) generated: Option<GeneratedColumns>,
    /// Whether rows are written to it: not to views, and to indexes with the rows of their tables alone.
    pub(super) takes_rows: bool,
    pub(super) is_indexed: bool,
    /// Whether its rows reference others.
    pub(super) has_foreign_keys: bool,
    /// Whether a commit looks at its rows once more: it has foreign keys, or UNIQUE constraints that are deferrable.
    pub(super) has_late_looks: bool,
    /// Whether a row that changes or goes has something beside it to look after: entries, or references.
    pub(super) is_linked: bool,
    /// Found when they are first asked for.
    pub(super) indexes: OnceLock<Box<[Index]>>,
    /// Whether values of rows may stand elsewhere.
    pub(super) has_long_values: bool,
    /// Where, found when it is first asked for.
    pub(super) long_values: OnceLock<Arc<TableEntry>>,
    /// Whether there may be pieces of long values in it.
    pub(super) may_have_pieces: AtomicBool,
}

/// An identity that begins anew.
pub(crate) struct Restart {
    known: Arc<Sequence>,
    own: Arc<Sequence>,
    /// The number of its column.
    pub(crate) column: usize,
}

impl Restart {
    /// The mark of its numbers, if that is higher than the one that is known.
    pub(crate) fn higher_mark(&self) -> Option<u64> {
        Some(self.own.reserved()).filter(|own| *own > self.known.reserved())
    }

    /// The transaction has committed: everyone goes on where it stands. Until the next start, from which on numbers go
    /// on at the highest mark that there was.
    pub(crate) fn apply(&self) {
        self.known.go_on_as(&self.own);
    }
}

impl TableEntry {
    /// Whether all rows may be removed at once.
    pub(crate) fn check_may_be_emptied(&self) -> Result<()> {
        let name = || self.name().to_owned();
        match self.schema.definition().appends_only() {
            _ if self.is_index() => Err(Error::IsIndex { name: name() }),
            true => Err(Error::AppendsOnly { name: name() }),
            false => Ok(()),
        }
    }

    /// A table that recovery finds, with its counters.
    pub(crate) fn new(
        id: u32,
        definition: Arc<TableDefinition>,
        tree: Arc<Tree>,
        counters: &[(u32, u64)],
    ) -> Result<TableEntry> {
        let schema = Schema::new(Arc::clone(&definition))?;
        tree.set_version(definition.version());
        TableEntry::around(id, schema, tree, |number| {
            let next = counters.iter().find(|(column, _)| *column as usize == number);
            Arc::new(Sequence::starting_at(next.map_or(0, |(_, next)| *next)))
        })
    }

    /// A table that an open transaction makes.
    pub(crate) fn private(
        object: ObjectId,
        definition: Arc<TableDefinition>,
        tree: Arc<Tree>,
    ) -> Result<TableEntry> {
        let schema = Schema::new(definition)?;
        tree.set_version(schema.version());
        let entry =
            TableEntry::around(object.number(), schema, tree, |_| Arc::new(Sequence::private()))?;
        entry.may_have_pieces.store(false, Ordering::Relaxed);
        Ok(entry)
    }

    /// The same table, rows and counters with another definition. Whoever has the old one can no
    /// longer write once the tree has the new version.
    pub(crate) fn altered(&self, definition: Arc<TableDefinition>) -> Result<TableEntry> {
        self.with(definition, Arc::clone(&self.tree), || Sequence::starting_at(0))
    }

    /// As [`altered`](Self::altered) for an open transaction: nobody else knows of it.
    pub(crate) fn altered_privately(&self, definition: Arc<TableDefinition>) -> Result<TableEntry> {
        self.tree.note_version(definition.version());
        self.with(definition, Arc::clone(&self.tree), Sequence::private)
    }

    /// The same table and counters with the rows of another tree.
    pub(crate) fn over(&self, tree: &Arc<Tree>) -> Result<TableEntry> {
        self.with(Arc::clone(self.schema.definition()), Arc::clone(tree), Sequence::private)
    }

    /// The same table with the rows of another tree, and identities that begin anew.
    pub(crate) fn begun_anew_over(&self, tree: &Arc<Tree>) -> Result<TableEntry> {
        let definition = self.schema.definition();
        let is_identity = |number: usize| {
            definition.columns().iter().enumerate().any(|(at, column)| {
                let is_it = definition.column_number(at) == number;
                let strategy = &column.default;
                is_it && matches!(strategy, DefaultValue::Key(KeyStrategy::Identity { .. }))
            })
        };
        let schema = Schema::new(Arc::clone(definition))?;
        TableEntry::around(self.id, schema, Arc::clone(tree), |number| {
            let kept = self.numbered_sequence(number).filter(|_| !is_identity(number));
            kept.unwrap_or_else(|| Arc::new(Sequence::private()))
        })
    }

    /// Identities of a table that a transaction has let begin anew: the counter that others know, the transaction's
    /// own, and the column's number.
    pub(crate) fn begun_anew_in(&self, own: &TableEntry) -> Vec<Restart> {
        let restart = |(column, counter): &(usize, Arc<Sequence>)| {
            let number = own.column_number(*column);
            let known = self.numbered_sequence(number)?;
            let is_other = !Arc::ptr_eq(&known, counter) && counter.is_private();
            is_other.then(|| Restart { known, own: Arc::clone(counter), column: number })
        };
        own.sequences.iter().filter_map(restart).collect()
    }

    fn with(
        &self,
        definition: Arc<TableDefinition>,
        tree: Arc<Tree>,
        new_counter: impl Fn() -> Sequence,
    ) -> Result<TableEntry> {
        let schema = Schema::new(definition)?;
        let altered = TableEntry::around(self.id, schema, tree, |number| {
            self.numbered_sequence(number).unwrap_or_else(|| Arc::new(new_counter()))
        })?;
        if let Some(bytes) = self.entry_bytes() {
            altered.note_entry_bytes(bytes.get());
        }
        Ok(altered)
    }

    fn around(
        id: u32,
        schema: Schema,
        tree: Arc<Tree>,
        sequence: impl Fn(usize) -> Arc<Sequence>,
    ) -> Result<TableEntry> {
        let definition = Arc::clone(schema.definition());
        let sequences = definition
            .columns()
            .iter()
            .enumerate()
            .filter(|(_, column)| matches!(column.default, DefaultValue::Key(_)))
            .map(|(index, _)| (index, sequence(definition.column_number(index))))
            .collect();
        let entry_bytes = AtomicU64::new(0);
        let strict = |column: &ColumnDefinition| {
            let DefaultValue::Key(strategy) = &column.default else { return false };
            matches!(strategy, KeyStrategy::Identity { strict: true, .. })
        };
        let strict_order = definition.columns().iter().any(strict).then(|| Mutex::new(()));
        let checks = TableChecks::of(&definition);
        let defaults = TableDefaults::of(&definition);
        let generated = GeneratedColumns::of(&definition);
        Ok(TableEntry {
            id,
            schema,
            tree,
            sequences,
            entry_bytes,
            strict_order,
            checks,
            defaults,
            generated,
            takes_rows: definition.view().is_none()
                && !definition.is_type()
                && definition.entries_of().is_none(),
            is_indexed: !definition.indexes().is_empty(),
            has_foreign_keys: !definition.foreign_keys().is_empty(),
            has_late_looks: !definition.foreign_keys().is_empty()
                || definition.indexes().iter().any(|index| index.deferrable.is_some()),
            is_linked: !definition.indexes().is_empty() || definition.is_linked(),
            indexes: OnceLock::new(),
            has_long_values: definition.long_values().is_some(),
            long_values: OnceLock::new(),
            may_have_pieces: AtomicBool::new(true),
        })
    }

    /// Whose rows the tree has now.
    ///
    /// # Errors
    /// The table was dropped.
    #[inline]
    pub(crate) fn object(&self) -> Result<ObjectId> {
        self.tree.object().ok_or_else(|| Error::TableChanged { name: self.name().to_owned() })
    }

    /// Whether the table is there and was not altered since this entry was made.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        self.tree.object().is_some() && self.tree.version() == self.schema.version()
    }

    /// Inside, before a row of this definition is written: whether it is still the table's.
    #[inline]
    pub(crate) fn check_version(&self) -> std::result::Result<(), Refusal> {
        if self.tree.takes(self.schema.version()) { Ok(()) } else { Err(self.version_refusal()) }
    }

    #[cold]
    fn version_refusal(&self) -> Refusal {
        if self.tree.is_stopped() { Blocked::Definition(self.id).into() } else { Refusal::Gone }
    }

    /// As [`check_version`](Self::check_version) of one who shares the tree: a definition that has
    /// stopped it waits for him.
    pub(crate) fn check_shared_version(&self) -> std::result::Result<(), Refusal> {
        if self.tree.version() == self.schema.version() { Ok(()) } else { Err(Refusal::Gone) }
    }

    /// Whether the checks let a row pass. Outside: it may take its time.
    #[inline]
    pub(crate) fn check_row(&self, relations: &Relations, key: &[u8], row: &[u8]) -> Result<()> {
        match &self.checks {
            None => Ok(()),
            Some(checks) => checks.check(&relations.expression_compiler, &self.schema, key, row),
        }
    }

    /// What rows that are there must meet of it, and did not have to meet of the definition that was there before.
    pub(crate) fn checks_since(&self, before: &TableEntry) -> Option<TableChecks> {
        TableChecks::new_in(self.schema.definition(), before.schema.definition())
    }

    /// The next value of a default that is an expression.
    #[cold]
    pub(crate) fn default_value(
        &self,
        relations: &Relations,
        column: usize,
        now_micros: i64,
    ) -> Result<Value<'static>> {
        self.defaults.value(
            &relations.expression_compiler,
            self.schema.definition(),
            column,
            now_micros,
        )
    }

    /// The number by which the log and checkpoints know a column.
    pub(crate) fn column_number(&self, column: usize) -> usize {
        self.schema.definition().column_number(column)
    }

    pub(crate) fn name(&self) -> &str {
        self.schema.name()
    }

    /// The counter behind a generated column.
    pub(crate) fn sequence(&self, column: usize) -> Option<&Sequence> {
        self.sequences.iter().find(|(own, _)| *own == column).map(|(_, sequence)| &**sequence)
    }

    /// The counter behind the column of this number.
    pub(crate) fn numbered_sequence(&self, number: usize) -> Option<Arc<Sequence>> {
        let own = |(column, _): &&(usize, Arc<Sequence>)| self.column_number(*column) == number;
        self.sequences.iter().find(own).map(|(_, sequence)| Arc::clone(sequence))
    }

    /// Columns whose counters nobody else knows, by number, and their marks.
    pub(crate) fn private_counters(&self) -> Vec<(usize, u64)> {
        let private = self.sequences.iter().filter(|(_, sequence)| sequence.is_private());
        let counter = |(column, sequence): &(usize, Arc<Sequence>)| {
            (self.column_number(*column), sequence.reserved())
        };
        private.map(counter).collect()
    }

    /// Columns with a counter, by number, and the marks below which numbers may have been handed out.
    pub(crate) fn counters(&self) -> Vec<(u32, u64)> {
        if planted(Fault::CounterNotStored) {
            return Vec::new();
        }
        self.sequences
            .iter()
            .map(|(column, sequence)| (self.column_number(*column) as u32, sequence.reserved()))
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

    /// Bytes of a typical row in a leaf; none if none is known.
    pub(crate) fn entry_bytes(&self) -> Option<NonZero<usize>> {
        NonZero::new(self.entry_bytes.load(Ordering::Relaxed) as usize)
    }
}

/// What a commit changes in the list of tables: one table, before and after.
pub(crate) struct CatalogChange {
    /// None for a new table.
    pub(crate) old: Option<Arc<TableEntry>>,
    /// None for one that is dropped.
    pub(crate) new: Option<Arc<TableEntry>>,
}

impl CatalogChange {
    /// The numbers of the entries of indexes that were being built before, and are whole.
    pub(crate) fn built_indexes(&self) -> Vec<u32> {
        let (Some(old), Some(new)) = (&self.old, &self.new) else { return Vec::new() };
        let before = old.schema.definition().indexes();
        let was_building =
            |entries: u32| before.iter().any(|index| index.entries == entries && index.is_building);
        let now = new.schema.definition().indexes().iter();
        let built = now.filter(|index| !index.is_building && was_building(index.entries));
        built.map(|index| index.entries).collect()
    }
}

/// All tables, by name and by object.
pub(crate) struct Catalog {
    tables: RwLock<Tables>,
    /// How often a name came to mean something else.
    version: AtomicU64,
    /// Behind the commit that last changed the list; what names mean rests on it.
    changed_at: LatestLsn,
    /// Objects below were handed out; never goes back.
    next_object: AtomicU32,
    /// Held while a commit changes the list, from its LSN on, and while a checkpoint looks at it and
    /// takes E: so E tells which definitions the directory holds.
    pub(crate) definitions: Mutex<()>,
    /// What open transactions have taken for their definitions.
    pub(crate) locks: DefinitionLocks,
    /// Of commits whose references are looked at.
    pub(crate) reference_locks: Arc<ReferenceLocks>,
}

impl Default for Catalog {
    fn default() -> Self {
        let next_object = AtomicU32::new(1);
        Catalog {
            tables: RwLock::default(),
            version: AtomicU64::new(0),
            changed_at: LatestLsn::default(),
            next_object,
            definitions: Mutex::new(()),
            locks: DefinitionLocks::default(),
            reference_locks: Arc::default(),
        }
    }
}

#[derive(Default)]
struct Tables {
    by_name: BTreeMap<String, Arc<TableEntry>>,
    by_id: HashMap<u32, Arc<TableEntry>>,
    by_object: HashMap<ObjectId, Arc<TableEntry>>,
    /// Objects that open large transactions have made and written to: in no list of tables, but checkpoints
    /// image them, since the log behind C has only a part of their rows.
    private: BTreeMap<ObjectId, Arc<TableEntry>>,
}

impl Catalog {
    pub(crate) fn get(&self, name: &str) -> Result<Arc<TableEntry>> {
        let tables = self.tables.read();
        tables.by_name.get(name).cloned().ok_or_else(|| Error::UnknownTable { name: name.into() })
    }

    pub(crate) fn by_object(&self, object: ObjectId) -> Option<Arc<TableEntry>> {
        self.tables.read().by_object.get(&object).cloned()
    }

    pub(crate) fn by_id(&self, id: u32) -> Option<Arc<TableEntry>> {
        self.tables.read().by_id.get(&id).cloned()
    }

    /// All tables, by name.
    pub(crate) fn all(&self) -> Vec<Arc<TableEntry>> {
        self.tables.read().by_name.values().cloned().collect()
    }

    /// All tables but the entries of indexes, by name.
    pub(crate) fn all_but_entries(&self) -> Vec<Arc<TableEntry>> {
        let tables = self.tables.read();
        tables.by_name.values().filter(|entry| !entry.is_index()).cloned().collect()
    }

    /// Grows with every table that is created, altered or dropped.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Makes all changes at one moment: who asks for a table gets the new one, and who has an old one can
    /// no longer write.
    pub(crate) fn apply(&self, changes: &[CatalogChange]) {
        let mut tables = self.tables.write();
        // All that go before any that come: names may change hands.
        for old in changes.iter().filter_map(|change| change.old.as_ref()) {
            tables.by_name.remove(old.name());
            tables.by_id.remove(&old.id);
            tables.by_object.retain(|_, other| other.id != old.id);
        }
        for new in changes.iter().filter_map(|change| change.new.as_ref()) {
            tables.by_name.insert(new.name().to_owned(), Arc::clone(new));
            tables.by_id.insert(new.id, Arc::clone(new));
            if let Some(object) = new.tree.object() {
                tables.by_object.insert(object, Arc::clone(new));
            }
            new.sequences.iter().for_each(|(_, sequence)| sequence.publish());
            new.tree.set_version(new.schema.version());
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Behind the commit that last changed what a name means; none since the database was opened: then it is
    /// durable.
    pub(crate) fn changed_at(&self) -> Option<Lsn> {
        self.changed_at.get()
    }

    /// The commit that ends here has changed the list.
    pub(crate) fn set_changed_at(&self, end: Lsn) {
        self.changed_at.advance(end);
    }

    pub(crate) fn add(&self, table: Arc<TableEntry>) {
        self.apply(&[CatalogChange { old: None, new: Some(table) }]);
    }

    /// Rows of an object are on their way into a tree that no table has yet.
    pub(crate) fn expect(&self, table: &Arc<TableEntry>) {
        if let Some(object) = table.tree.object() {
            self.tables.write().by_object.insert(object, Arc::clone(table));
        }
    }

    /// An open large transaction writes to an object that it has made.
    pub(crate) fn keep_private(&self, table: &Arc<TableEntry>) {
        self.expect(table);
        if let Some(object) = table.tree.object() {
            self.tables.write().private.insert(object, Arc::clone(table));
        }
    }

    /// The object is a table's now, or nobody's. The caller holds the lock that a checkpoint takes to read the
    /// list, if there can be one.
    pub(crate) fn release_private(&self, object: ObjectId) -> Option<Arc<TableEntry>> {
        self.tables.write().private.remove(&object)
    }

    /// The objects that open large transactions have made and written to.
    pub(crate) fn all_private(&self) -> Vec<Arc<TableEntry>> {
        self.tables.read().private.values().cloned().collect()
    }

    /// They do not come.
    pub(crate) fn expect_no_longer(&self, object: ObjectId) {
        self.tables.write().by_object.remove(&object);
    }

    /// An object number that was never used. The last one is kept back, so that there is always a
    /// next.
    pub(crate) fn new_object(&self) -> Result<ObjectId> {
        let next = |object: u32| (object < u32::MAX).then(|| object + 1);
        let object = self.next_object.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        object.ok().and_then(ObjectId::new).ok_or(Error::TableNumbersUsedUp)
    }

    pub(crate) fn next_object(&self) -> u32 {
        self.next_object.load(Ordering::Acquire)
    }

    /// Objects up to here were handed out before.
    pub(crate) fn raise_next_object(&self, next: u32) {
        self.next_object.fetch_max(next, Ordering::AcqRel);
    }
}
