//! What a transaction defines: tables that it creates, alters, empties and drops, seen by itself alone
//! until it commits.
//!
//! A new table, and one that was emptied, has a tree of its own from the start, which nobody else knows.
//! Definitions and rows are one record; how it is published stands in `commit_definitions.rs`.
//!
//! Invariants
//! 1. A table that is altered, emptied or dropped is locked from the call to the end of the transaction,
//!    and so is a name that a table gets: what the call was allowed to do the commit may do, too. Who goes
//!    back to a savepoint gives back what was locked since.
//! 2. Trees that no commit has given to a table are cleared when the transaction ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onrush_types::{NeedsNoRows, Schema, TableChange, TableDefinition};
use onrush_waits::Recorder;

use super::ScanOptions;
use super::indexes::check_is_table;
use super::snapshot::{HeldLsn, Snapshot};
use super::transaction::Transaction;
use super::worker::Worker;
use super::write_set::Writes;
use crate::catalog::{LockOwner, Table, TableEntry};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::tree::Tree;
use crate::units::ObjectId;

/// What becomes of the identities of a table that is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identities {
    /// They go on where they are.
    GoOn,
    /// They begin anew.
    BeginAnew,
}

/// See the module. Dropped, it gives everything back that no commit has taken.
pub(super) struct OwnDefinitions {
    engine: Arc<Engine>,
    recorder: Arc<Recorder>,
    pub(super) owner: LockOwner,
    /// Trees of other tables that it holds shared.
    shared: Vec<Arc<Tree>>,
    /// Tables that it has stopped, and their trees.
    pub(super) stopped: Vec<(u32, Arc<Tree>)>,
    /// Trees that it has made.
    made: Vec<Arc<Tree>>,
    /// What has become of tables, by number.
    tables: Defined,
    /// Tables that it has made to take the place of others, and that have no name before they do.
    substitutes: Vec<Arc<TableEntry>>,
    /// Names that it has locked.
    pub(super) names: Vec<String>,
    /// What it was at savepoints.
    savepoints: Vec<Remembered>,
}

/// The definitions of a transaction at a savepoint.
#[derive(Default)]
struct Remembered {
    savepoint: u64,
    tables: Defined,
    /// How many tables it had stopped, and names locked.
    stopped: usize,
    names: usize,
}

type Defined = BTreeMap<u32, OwnTable>;

/// One table before the transaction, and as it leaves it.
#[derive(Clone)]
pub(super) struct OwnTable {
    /// None for a table that it has created.
    pub(super) before: Option<Arc<TableEntry>>,
    /// None for one that it has dropped.
    pub(super) now: Option<Arc<TableEntry>>,
}

impl Remembered {
    /// At a savepoint before the first definition.
    fn of_nothing(savepoint: u64) -> Remembered {
        Remembered { savepoint, ..Remembered::default() }
    }
}

impl OwnDefinitions {
    fn new(engine: &Arc<Engine>, recorder: &Arc<Recorder>, number: u64) -> OwnDefinitions {
        OwnDefinitions {
            engine: Arc::clone(engine),
            recorder: Arc::clone(recorder),
            owner: LockOwner::new(number),
            shared: Vec::new(),
            stopped: Vec::new(),
            made: Vec::new(),
            tables: Defined::new(),
            substitutes: Vec::new(),
            names: Vec::new(),
            savepoints: Vec::new(),
        }
    }

    /// What the transaction has made of each table that it has defined.
    pub(super) fn tables(&self) -> impl Iterator<Item = &OwnTable> {
        self.tables.values()
    }

    /// Whether the commit has anything to define.
    pub(super) fn is_defining(&self) -> bool {
        let is_defined = |own: &OwnTable| own.before.is_some() || own.now.is_some();
        self.tables().any(is_defined) || !self.substitutes.is_empty()
    }

    /// Whether the transaction has created, altered, emptied or dropped the table.
    pub(super) fn defines(&self, table: u32) -> bool {
        self.tables.contains_key(&table)
    }

    /// Whether the transaction keeps others from defining the table, so that it must not wait for them.
    pub(super) fn holds(&self, table: u32) -> bool {
        self.owner.shared.contains(&table) || self.is_substitute(table) || self.has_locked(table)
    }

    /// Whether nobody else writes to the table or defines it.
    pub(super) fn has_locked(&self, table: u32) -> bool {
        let is_stopped = |(stopped, _): &(u32, Arc<Tree>)| *stopped == table;
        self.defines(table) || self.stopped.iter().any(is_stopped)
    }

    fn is_substitute(&self, table: u32) -> bool {
        self.substitutes.iter().any(|substitute| substitute.id == table)
    }

    /// A table takes the place of `entry`, which is dropped. False if it was not made for that.
    pub(super) fn substitute(&mut self, entry: &Arc<TableEntry>, by: &Arc<TableEntry>) -> bool {
        let Some(at) = self.substitutes.iter().position(|known| Arc::ptr_eq(known, by)) else {
            return false;
        };
        let substitute = self.substitutes.swap_remove(at);
        self.put(entry, None);
        let pieces = self.substitutes.iter().position(|of| of.is_index_of(substitute.id));
        let pieces = pieces.map(|at| self.substitutes.swap_remove(at));
        [Some(substitute), pieces].iter().flatten().for_each(|new| self.add_new(new));
        true
    }

    /// Whether the rows of the table are in a tree that the transaction has made.
    pub(super) fn has_made(&self, tree: &Arc<Tree>) -> bool {
        self.made.iter().any(|made| Arc::ptr_eq(made, tree))
    }

    /// Whether the rows of the table are kept in memory until the commit: it was altered, and only the commit
    /// tells what the rows mean.
    pub(super) fn keeps_in_memory(&self, table: &TableEntry) -> bool {
        self.defines(table.id) && !self.has_made(&table.tree)
    }

    /// Whether rows of this object are of no use: the transaction has emptied or dropped the table.
    pub(super) fn has_left(&self, table: u32, object: ObjectId) -> bool {
        let Some(own) = self.tables.get(&table) else { return self.is_substitute(table) };
        own.now.as_ref().is_none_or(|now| now.tree.object() != Some(object))
    }

    /// Tables have the trees now that the transaction has made for them.
    pub(super) fn keep_trees(&mut self) {
        let used = |tree: &Arc<Tree>| {
            let now = self.tables.values().filter_map(|own| own.now.as_ref());
            now.into_iter().any(|now| Arc::ptr_eq(&now.tree, tree))
        };
        self.made = std::mem::take(&mut self.made).into_iter().filter(|tree| !used(tree)).collect();
    }

    pub(super) fn set_savepoint(&mut self, savepoint: u64) {
        let (tables, stopped, names) = (self.tables.clone(), self.stopped.len(), self.names.len());
        self.savepoints.push(Remembered { savepoint, tables, stopped, names });
    }

    pub(super) fn roll_back_to(&mut self, number: u64) {
        let at = self.savepoints.iter().position(|known| known.savepoint == number);
        // None: it was set before the first definition.
        self.savepoints.truncate(at.map_or(0, |at| at + 1));
        let before = Remembered::default();
        let Remembered { tables, stopped, names, .. } = self.savepoints.last().unwrap_or(&before);
        self.tables = tables.clone();
        let stopped = self.stopped.split_off(*stopped);
        let names = self.names.split_off(*names);
        self.give_back(stopped, &names);
    }

    pub(super) fn release(&mut self, number: u64) {
        let at = self.savepoints.iter().position(|known| known.savepoint == number);
        self.savepoints.truncate(at.unwrap_or(0));
    }

    /// Others may write to these tables again, and use these names.
    pub(super) fn give_back(&self, stopped: Vec<(u32, Arc<Tree>)>, names: &[String]) {
        let tables: Vec<u32> = stopped.iter().map(|(table, _)| *table).collect();
        stopped.into_iter().for_each(|(_, tree)| tree.resume());
        self.engine.catalog.locks.release_only(&self.owner, &tables, names);
    }

    /// Keeps others from defining the tables of a write set, until the transaction ends. Others may wait for
    /// what it holds, so here a circle is found.
    pub(super) fn hold_written(&mut self, worker: &mut Worker, writes: &Writes) -> Result<()> {
        let mut last = None;
        for (row, write) in writes {
            if last.replace(row.0) != Some(row.0) && !self.holds(write.table.id()) {
                self.share(worker, &write.table.entry)?;
            }
        }
        Ok(())
    }

    /// Shares a table, once nobody else defines it.
    pub(super) fn share(&mut self, worker: &mut Worker, entry: &Arc<TableEntry>) -> Result<()> {
        worker.release();
        let locks = &worker.engine.catalog.locks;
        locks.share(&worker.waiter(), &mut self.owner, entry)?;
        self.shared.push(Arc::clone(&entry.tree));
        Ok(())
    }

    /// The table of a name as the transaction sees it; None if it has nothing to say of it.
    fn find(&self, name: &str) -> Option<&Arc<TableEntry>> {
        self.tables().filter_map(|own| own.now.as_ref()).find(|now| now.name() == name)
    }

    /// What the transaction has made of the table of this number.
    pub(super) fn by_id(&self, id: u32) -> Option<Arc<TableEntry>> {
        self.tables.get(&id).and_then(|own| own.now.clone())
    }

    /// Whether nobody else has ever known the table.
    pub(super) fn has_created(&self, table: u32) -> bool {
        self.tables.get(&table).is_some_and(|own| own.before.is_none())
    }

    /// A table that there was not before.
    pub(super) fn add_new(&mut self, entry: &Arc<TableEntry>) {
        let own = OwnTable { before: None, now: Some(Arc::clone(entry)) };
        self.tables.insert(entry.id, own);
    }

    pub(super) fn put(&mut self, entry: &Arc<TableEntry>, now: Option<Arc<TableEntry>>) {
        let before = || OwnTable { before: Some(Arc::clone(entry)), now: None };
        self.tables.entry(entry.id).or_insert_with(before).now = now;
    }
}

impl Drop for OwnDefinitions {
    fn drop(&mut self) {
        for tree in self.made.drain(..) {
            tree.clear(&self.engine, &self.recorder, None);
        }
        for (_, tree) in self.stopped.drain(..) {
            tree.resume();
        }
        let locks = &self.engine.catalog.locks;
        locks.release(&self.owner);
        for tree in self.shared.drain(..) {
            locks.unshare(&tree);
        }
    }
}

impl Transaction<'_> {
    /// The table of this name: as the transaction has defined it, else as it was committed last.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable).
    pub fn table(&self, name: &str) -> Result<Table> {
        let entry = self.entry(name)?;
        check_is_table(&entry)?;
        Ok(self.handle(entry))
    }

    pub(super) fn entry(&self, name: &str) -> Result<Arc<TableEntry>> {
        let unknown = || Error::UnknownTable { name: name.into() };
        let Some(own) = &self.definitions else { return self.engine().catalog.get(name) };
        if let Some(entry) = own.find(name) {
            return Ok(Arc::clone(entry));
        }
        let committed = self.engine().catalog.get(name)?;
        if own.defines(committed.id) { Err(unknown()) } else { Ok(committed) }
    }

    /// The definitions of all tables that the transaction sees, by name.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<TableDefinition>> {
        let committed = self.engine().catalog.all_but_entries();
        let definition = |entry: &Arc<TableEntry>| Arc::clone(entry.schema.definition());
        let Some(own) = &self.definitions else {
            return committed.iter().map(definition).collect();
        };
        let others = committed.iter().filter(|entry| !own.defines(entry.id));
        let own = own.tables().filter_map(|own| own.now.as_ref()).filter(|now| !now.is_index());
        let mut tables: Vec<_> = others.chain(own).map(definition).collect();
        tables.sort_by(|a, b| a.name().cmp(b.name()));
        tables
    }

    /// Whether the transaction has created, altered, emptied or dropped a table, so that what it finds
    /// under a name may be its own.
    #[must_use]
    pub fn has_definitions(&self) -> bool {
        self.definitions.as_ref().is_some_and(|own| own.is_defining())
    }

    /// Creates a table, for this transaction alone until it commits.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]).build()?;
    /// let mut session = db.session()?;
    /// let mut transaction = session.begin()?;
    /// let table = transaction.create_table(notes)?;
    /// transaction.insert(&table, &[1i64.into()])?;
    /// assert!(db.table("notes").is_err());
    /// transaction.commit()?; // the table and its row, or neither
    /// assert!(session.get(&db.table("notes")?, &[1i64.into()])?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TableExists`](Error::TableExists); a definition that is not possible; those of waiting for
    /// another transaction that gives a table this name.
    pub fn create_table(&mut self, definition: TableDefinition) -> Result<Table> {
        self.engine().check_open()?;
        let definition = definition.standing_alone();
        Schema::new(Arc::new(definition.clone()))?;
        self.lock_free_name(definition.name())?;
        let (entry, pieces) = self.make_table_and_pieces(definition)?;
        for new in [Some(&entry), pieces.as_ref()].into_iter().flatten() {
            self.own_definitions().add_new(new);
        }
        Ok(self.handle(entry))
    }

    /// As [`create_table`](Self::create_table), of a table that is found by no name before it
    /// [takes the place](Self::replace_table) of the one that has its name now.
    ///
    /// # Errors
    /// A definition that is not possible.
    pub fn create_substitute(&mut self, definition: TableDefinition) -> Result<Table> {
        self.engine().check_open()?;
        let definition = definition.standing_alone();
        Schema::new(Arc::new(definition.clone()))?;
        let (entry, pieces) = self.make_table_and_pieces(definition)?;
        let new = [Some(Arc::clone(&entry)), pieces].into_iter().flatten();
        self.own_definitions().substitutes.extend(new);
        Ok(self.handle(entry))
    }

    /// A table of the transaction's alone, which is in no list yet.
    pub(super) fn make_table(
        &mut self,
        definition: Arc<TableDefinition>,
    ) -> Result<Arc<TableEntry>> {
        let object = self.engine().catalog.new_object()?;
        self.make_table_of(object, definition)
    }

    /// As [`make_table`](Self::make_table), with the number of an object.
    pub(super) fn make_table_of(
        &mut self,
        object: ObjectId,
        definition: Arc<TableDefinition>,
    ) -> Result<Arc<TableEntry>> {
        let engine = Arc::clone(self.engine());
        let tree = Arc::new(Tree::new(&engine, object, definition.is_logged()));
        self.own_definitions().made.push(Arc::clone(&tree));
        Ok(Arc::new(TableEntry::private(object, definition, tree)?))
    }

    /// Drops a table and its rows: for everyone else when the transaction commits.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable); [`TableReferenced`](Error::TableReferenced); those of waiting for who
    /// uses it.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        let entry = self.lock_entry(name)?;
        entry.check_may_be_emptied()?;
        self.check_unreferenced(&entry)?;
        for index in entry.schema.definition().indexes() {
            self.drop_entries(index.entries);
        }
        if let Some(pieces) = entry.schema.definition().long_values() {
            self.drop_entries(pieces);
        }
        self.own_definitions().put(&entry, None);
        Ok(())
    }

    /// Removes all rows of a table: for everyone else when the transaction commits. Generated keys go on
    /// where they were. Returns the handle by which this transaction goes on.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable); [`TableReferenced`](Error::TableReferenced) by rows of another table;
    /// those of waiting for who uses it.
    pub fn truncate_table(&mut self, name: &str) -> Result<Table> {
        let entry = self.lock_entry(name)?;
        entry.check_may_be_emptied()?;
        self.check_rows_unreferenced(&entry, &[])?;
        self.empty_table(&entry, Identities::GoOn)
    }

    /// Removes all rows of several tables, which may reference each other, as
    /// [`truncate_table`](Self::truncate_table) does; their identities go on, or begin anew. These do so for everyone
    /// when the transaction commits, until the next start, from which on they go on behind the highest that was
    /// ever reached.
    ///
    /// # Errors
    /// As [`truncate_table`](Self::truncate_table); a table of others than these whose rows reference one of them.
    pub fn truncate_tables(&mut self, names: &[String], identities: Identities) -> Result<()> {
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            entries.push(self.lock_entry(name)?);
        }
        for entry in &entries {
            entry.check_may_be_emptied()?;
            self.check_rows_unreferenced(entry, names)?;
        }
        entries.iter().try_for_each(|entry| self.empty_table(entry, identities).map(drop))
    }

    fn empty_table(&mut self, entry: &Arc<TableEntry>, identities: Identities) -> Result<Table> {
        let definition = entry.schema.definition();
        let entries = definition.indexes().iter().map(|index| index.entries);
        for beside in entries.chain(definition.long_values()) {
            if let Some(entries) = self.as_seen(beside) {
                let emptied = self.emptied(&entries, Identities::GoOn)?;
                self.own_definitions().put(&entries, Some(emptied));
            }
        }
        let emptied = self.emptied(entry, identities)?;
        self.put_indexed(entry, &emptied)?;
        Ok(self.handle(emptied))
    }

    /// The same table without rows, in a tree of its own.
    fn emptied(&mut self, entry: &TableEntry, identities: Identities) -> Result<Arc<TableEntry>> {
        let engine = Arc::clone(self.engine());
        let tree = Tree::new(&engine, engine.catalog.new_object()?, entry.tree.is_logged());
        tree.set_version(entry.schema.version());
        let tree = Arc::new(tree);
        self.own_definitions().made.push(Arc::clone(&tree));
        Ok(Arc::new(match identities {
            Identities::GoOn => entry.over(&tree)?,
            Identities::BeginAnew => entry.begun_anew_over(&tree)?,
        }))
    }

    /// Changes a table: all of `changes`, in their order, or none; for everyone else when the transaction
    /// commits. See [`Database::alter_table`](crate::Database::alter_table). Returns the handle by which
    /// this transaction goes on.
    ///
    /// # Errors
    /// As [`Database::alter_table`](crate::Database::alter_table); those of waiting for who uses it.
    pub fn alter_table(&mut self, name: &str, changes: &[TableChange]) -> Result<Table> {
        if changes.is_empty() {
            return self.table(name);
        }
        let entry = self.entry(name)?;
        let needs_none = changes.iter().find_map(needs_no_rows);
        let in_the_way = |(column, reason): (&str, NeedsNoRows)| {
            let (table, column) = (name.to_owned(), column.to_owned());
            Error::RowsInTheWay { table, column, reason }
        };
        // Nobody need stop for a table that plainly has rows.
        if let Some(needs) = needs_none
            && self.has_rows(&entry)?
        {
            return Err(in_the_way(needs));
        }
        check_is_table(&entry)?;
        altered_definition(&entry, changes)?;
        let entry = self.lock_entry(name)?;
        let definition = self.give_pieces(&entry, altered_definition(&entry, changes)?)?;
        let altered = Arc::new(entry.altered_privately(definition)?);
        if let Some(needs) = needs_none
            && self.has_rows(&entry)?
        {
            return Err(in_the_way(needs));
        }
        let adds_conditions = |change: &TableChange| {
            matches!(
                change,
                TableChange::AddCheck(_)
                    | TableChange::ValidateCheck { .. }
                    | TableChange::SetDomainOfColumns(_)
            )
        };
        if changes.iter().any(adds_conditions) {
            self.check_rows(&entry, &altered)?;
        }
        self.check_nulls(&entry, &altered)?;
        if altered.name() != entry.name() {
            self.lock_free_name(altered.name())?;
        }
        for change in changes.iter().filter(|it| matches!(it, TableChange::SetLabelsOfColumns(_))) {
            self.alter_entries(&entry, change)?;
        }
        self.put_indexed(&entry, &altered)?;
        Ok(self.handle(altered))
    }

    /// Everything committed now, and the transaction's own changes: what a definition has to look at, whatever
    /// the transaction reads otherwise.
    #[must_use]
    pub fn newest_snapshot(&self) -> Snapshot {
        let worker = &self.session.worker;
        // Those who have given a lock back may have committed just now.
        worker.wait_complete(worker.engine.log.tail());
        let held = HeldLsn::open(&worker.engine, &worker.recorder);
        let own = self.writes.iter().map(|(row, write)| (row.clone(), write.value.clone()));
        let large = self.large.as_ref().map(|large| large.view());
        Snapshot::new(held).with_large(large).with_own(own.collect())
    }

    /// Reads from a snapshot taken now, from here on, if the transaction has neither read nor changed
    /// anything yet but in tables that it has made itself; else nothing happens. So what it waited for before
    /// its first statement is seen, and what was replaced meanwhile need not be kept for it.
    pub fn refresh(&mut self) {
        // What a serializable transaction has read is what it goes on with, also where it was to insert.
        let is_fixed = self.has_read || self.serializable.is_some();
        if is_fixed || self.held.is_none() || self.has_changed_others() {
            return;
        }
        let worker = &self.session.worker;
        worker.wait_complete(worker.engine.log.tail());
        self.held = Some(HeldLsn::open(&worker.engine, &worker.recorder));
    }

    /// Whether it has written to a table that others know.
    fn has_changed_others(&self) -> bool {
        let mut written = self.writes.iter().map(|(_, write)| &write.table);
        let mut spilled = self.large.iter().flat_map(|large| large.tables.values());
        written.any(|table| !self.has_made(table)) || spilled.any(|table| !self.has_made(table))
    }

    /// Whether nobody else knows the rows of the table.
    pub(super) fn has_made(&self, table: &Table) -> bool {
        self.definitions.as_ref().is_some_and(|own| own.has_made(&table.entry.tree))
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.session.worker.engine
    }

    pub(super) fn handle(&self, entry: Arc<TableEntry>) -> Table {
        Table { entry, database_id: self.engine().database_id }
    }

    pub(super) fn own_definitions(&mut self) -> &mut OwnDefinitions {
        let worker = &self.session.worker;
        let savepoints = &self.writes;
        self.definitions.get_or_insert_with(|| {
            let mut own = OwnDefinitions::new(&worker.engine, &worker.recorder, worker.number());
            own.savepoints = savepoints.savepoints().map(Remembered::of_nothing).collect();
            Box::new(own)
        })
    }

    pub(super) fn has_rows(&self, entry: &Arc<TableEntry>) -> Result<bool> {
        let one = ScanOptions { limit: Some(1), ..ScanOptions::default() };
        let table = self.handle(Arc::clone(entry));
        self.newest_snapshot().scan(&table, &one)?.visit_raw(|_, _| {}).map(|rows| rows > 0)
    }
}

/// The new column of a change that suits only a table without rows, and why.
fn needs_no_rows(change: &TableChange) -> Option<(&str, NeedsNoRows)> {
    match change {
        TableChange::AddColumn(column) => Some((&column.name, change.needs_no_rows()?)),
        _ => None,
    }
}

/// The definition of the table after the changes, made now.
fn altered_definition(entry: &TableEntry, changes: &[TableChange]) -> Result<Arc<TableDefinition>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    // Versions that were taken back are not given again.
    let highest = entry.tree.highest_version();
    let mut definition = TableDefinition::clone(entry.schema.definition()).raised_to(highest);
    for change in changes {
        definition = definition.altered(change, unix_micros)?;
    }
    Ok(Arc::new(definition))
}
