//! Building an index beside those who write to its table. Why it is right:
//! `docs/decisions/0028-indexes-are-built-beside-writers.md`.
//!
//! 1. A short definition makes the index, empty. From its commit on whoever writes a row keeps its entry, and nobody
//!    finds rows by the index.
//! 2. The table is reserved, so that nobody else defines it, and the entries of all rows are written, by several
//!    threads where there are many: `session/index_filler.rs`.
//! 3. The table is locked. What was in somebody's hands all the time is looked at once more, and a second short
//!    definition says that the index is whole.
//!
//! An index that is not whole is dropped: at once where its building fails, else when the database is opened again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onrush_types::{IndexDefinition, TableDefinition};
use parking_lot::Mutex;

use super::{Database, Table};
use crate::catalog::Waiting;
use crate::error::{Error, Result};
use crate::options::{Background, Durability};
use crate::session::{
    BuiltAgain, IndexFiller, KeyRange, NewIndex, ScanOptions, Session, Transaction, index_with,
};
use crate::transaction::{IndexBuild, IndexBuildState};

/// Leaves of a table that are read from one snapshot: its entries are put in order together.
const LEAVES_OF_A_RANGE: u64 = 256;

/// A further thread pays where there are so many ranges.
const RANGES_OF_A_THREAD: usize = 4;

/// Threads that build an index, unless somebody says how many.
const THREADS_MAX: usize = 4;

/// How an index is built.
#[derive(Clone, Default)]
pub struct IndexBuildOptions {
    /// How many threads read rows and write entries; 0: one for each processor, up to four, as far as the table is
    /// large enough.
    pub threads: usize,
    /// What is asked whether to give up, and told of waits for others.
    pub waiting: Option<Arc<dyn Waiting>>,
    /// How long others are waited for, who use the table; none: until they have ended.
    pub lock_timeout: Option<Duration>,
    /// Whose session it is, for [`Database::index_builds`].
    pub session: u64,
}

impl Database {
    /// Makes an index of a table, while others write to it. Durable when this returns, with the table's new handle;
    /// after a crash before that the index is not there. Whoever has a handle from before, or gets one while the index
    /// is built, can no longer write by it afterwards and gets [`TableChanged`](Error::TableChanged).
    ///
    /// # Errors
    /// As [`create_index`](Self::create_index); [`Interrupted`](Error::Interrupted) and
    /// [`LockTimeout`](Error::LockTimeout) as `options` say. Nothing of the index is left then.
    pub fn build_index(
        &self,
        table: &str,
        index: &NewIndex,
        options: &IndexBuildOptions,
    ) -> Result<Table> {
        // Who looks late relies on an index that is whole.
        if !self.has_rows(table)? || index.deferrable.is_some() {
            return self.define_as(options, |transaction| transaction.create_index(table, index));
        }
        let built = self.define_as(options, |transaction| transaction.begin_index(table, index))?;
        let done = self.complete_index(built, None, options);
        self.or_made_with_table(done, |table| index.is_made(table))
    }

    /// Makes the entries of an index anew, while others write to its table and find rows by the old ones. Returns the
    /// table's new handle.
    ///
    /// # Errors
    /// [`UnknownIndex`](Error::UnknownIndex); as [`build_index`](Self::build_index). Then the old entries stay.
    pub fn rebuild_index(&self, index: &str, options: &IndexBuildOptions) -> Result<Table> {
        let BuiltAgain { built, replaced } =
            self.define_as(options, |transaction| transaction.begin_index_again(index))?;
        let done = self.complete_index(built, Some(replaced), options);
        let is_it = |other: &IndexDefinition| other.name == index && !other.is_building;
        self.or_made_with_table(done, |table| table.indexes().iter().any(is_it))
    }

    /// In front of its second step the table may have been written anew, and all of its indexes with it. Then its
    /// entries are gone, and it is whole.
    fn or_made_with_table(
        &self,
        done: Result<Table>,
        is_made: impl Fn(&TableDefinition) -> bool,
    ) -> Result<Table> {
        let Err(error @ Error::UnknownIndex { .. }) = done else { return done };
        let found = self.tables().into_iter().find(|table| is_made(table));
        found.map_or(Err(error), |table| self.table(table.name()))
    }

    /// Indexes that are being built, and how far they are.
    #[must_use]
    pub fn index_builds(&self) -> Vec<IndexBuildState> {
        self.engine().index_builds.states()
    }

    /// Drops indexes that were being built when the database was last open.
    pub(super) fn drop_unfinished_indexes(&self) -> Result<()> {
        for table in self.tables() {
            for index in table.indexes().iter().filter(|index| index.is_building) {
                match self.drop_index(&index.name) {
                    // Nobody finds rows by it, and the next opener tries again.
                    Ok(_) | Err(Error::DiskFull { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Whether there may be something to do: else the index is made as any other definition.
    fn has_rows(&self, table: &str) -> Result<bool> {
        let table = self.table(table)?;
        let first = ScanOptions { limit: Some(1), ..ScanOptions::default() };
        let mut rows = 0;
        match self.session()?.scan(&table, &first)?.visit_raw(|_, _| rows += 1) {
            // It is another one now.
            Err(Error::TableChanged { .. }) => Ok(true),
            looked => looked.map(|_| rows > 0),
        }
    }

    fn define_as<T>(
        &self,
        options: &IndexBuildOptions,
        define: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.define_by(&mut self.building_session(options), define)
    }

    fn building_session(&self, options: &IndexBuildOptions) -> Session {
        let mut session = Session::for_definitions(self.engine());
        session.set_waiting(options.waiting.clone());
        session.set_lock_timeout(options.lock_timeout);
        session
    }

    /// Fills the index with these entries and says that it is whole, or drops it.
    fn complete_index(
        &self,
        built: u32,
        replaced: Option<u32>,
        options: &IndexBuildOptions,
    ) -> Result<Table> {
        let done = self.fill_and_finish(built, replaced, options);
        if done.is_err() && self.check_running().is_ok() {
            // Somebody may have dropped it, or its table.
            match self.define(|transaction| transaction.drop_index_with(built)) {
                Ok(_) | Err(Error::UnknownIndex { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        done
    }

    fn fill_and_finish(
        &self,
        built: u32,
        replaced: Option<u32>,
        options: &IndexBuildOptions,
    ) -> Result<Table> {
        let mut session = self.building_session(options);
        let mut holder = session.begin_unseeing();
        let (name, table) = loop {
            let name = holder.table_of_entries(built)?;
            match holder.reserve_table(&name) {
                // It got another name meanwhile.
                Err(Error::UnknownTable { .. }) => {}
                reserved => break (name, reserved?),
            }
        };
        let position = index_with(table.definition(), built)?;
        let builds = &self.engine().index_builds;
        let build = IndexBuild::new(options.session, (table.id(), built), replaced.is_some());
        let build = Running { database: self, build: builds.add(build) };
        let left = self.fill(&table, position, &build.build, options)?;
        build.build.begin_finishing();
        holder.lock_table(&name)?;
        let mut filler = IndexFiller::new(self.engine(), &table, position, &build.build)?;
        for range in &left {
            if !filler.fill(range)? {
                return Err(Error::Internal("an entry was in the way of its own row".into()));
            }
        }
        filler.check_not_doubled()?;
        let table = holder.finish_index(&name, built, replaced)?;
        holder.commit_as(Durability::Durable)?;
        Ok(table)
    }

    /// Writes the entries of all rows, and returns the ranges in which some are left.
    fn fill(
        &self,
        table: &Table,
        position: usize,
        build: &Arc<IndexBuild>,
        options: &IndexBuildOptions,
    ) -> Result<Vec<KeyRange>> {
        let snapshot = self.session()?.snapshot()?;
        let leaves = snapshot.leaves_about(table, &ScanOptions::default())?;
        let parts = usize::try_from(leaves.div_ceil(LEAVES_OF_A_RANGE)).unwrap_or(usize::MAX);
        let ranges = snapshot.key_ranges(table, &ScanOptions::default(), parts.max(1))?;
        drop(snapshot);
        build.begin_filling(leaves);
        let work = Work {
            leaves: leaves / ranges.len() as u64,
            ranges: &ranges,
            next: AtomicUsize::new(0),
            left: Mutex::default(),
            failure: Mutex::default(),
        };
        let fill = |waiting: Option<&dyn Waiting>| {
            let outcome = IndexFiller::new(self.engine(), table, position, build)
                .and_then(|filler| work.fill(filler, build, waiting));
            if let Err(error) = outcome {
                work.fail(build, error);
            }
        };
        std::thread::scope(|scope| {
            for number in 1..self.threads_for(&ranges, options) {
                let name = format!("onrush-index-{number}");
                let started =
                    std::thread::Builder::new().name(name).spawn_scoped(scope, || fill(None));
                // Fewer do it, too.
                drop(started);
            }
            fill(options.waiting.as_deref());
        });
        match work.failure.into_inner() {
            Some(failure) => Err(failure),
            None => Ok(work.left.into_inner()),
        }
    }

    fn threads_for(&self, ranges: &[KeyRange], options: &IndexBuildOptions) -> usize {
        if self.options().background == Background::Callers {
            return 1;
        }
        match options.threads {
            0 => {
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                processors.min(THREADS_MAX).min(ranges.len() / RANGES_OF_A_THREAD).max(1)
            }
            threads => threads.min(ranges.len()),
        }
    }
}

/// A build that others are told of.
struct Running<'d> {
    database: &'d Database,
    build: Arc<IndexBuild>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.database.engine().index_builds.remove(&self.build);
    }
}

/// What the threads that fill an index share.
struct Work<'r> {
    ranges: &'r [KeyRange],
    /// Leaves of a range, about.
    leaves: u64,
    /// The next range that nobody has taken.
    next: AtomicUsize,
    /// Ranges with rows whose entries could not be written.
    left: Mutex<Vec<KeyRange>>,
    /// The first.
    failure: Mutex<Option<Error>>,
}

impl Work<'_> {
    fn fill(
        &self,
        mut filler: IndexFiller,
        build: &IndexBuild,
        waiting: Option<&dyn Waiting>,
    ) -> Result<()> {
        while let Some(range) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if build.has_failed() {
                return Ok(());
            }
            if waiting.is_some_and(Waiting::is_interrupted) {
                return Err(Error::Interrupted);
            }
            if !filler.fill(range)? {
                self.left.lock().push(range.clone());
            }
            build.add_leaves(self.leaves);
        }
        filler.check_not_doubled()
    }

    fn fail(&self, build: &IndexBuild, error: Error) {
        build.fail();
        self.failure.lock().get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use onrush_types::{ColumnDefinition, DataType, Value};

    use super::*;
    use crate::Options;

    /// `notes (id, number)` with ten rows.
    fn notes() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().expect("a folder");
        let db = Database::create(folder.path().join("db"), Options::small()).expect("created");
        let notes = TableDefinition::builder("notes")
            .column(ColumnDefinition::new("id", DataType::Int64).not_null())
            .column(ColumnDefinition::new("number", DataType::Int64))
            .primary_key(["id"]);
        let table = db.create_table(notes.build().expect("sound")).expect("created");
        insert(&db, &table);
        (folder, db)
    }

    fn insert(db: &Database, table: &Table) {
        let mut session = db.session().expect("open");
        for id in 0..10 {
            session.insert(table, &[Value::Int64(id), Value::Int64(-id)]).expect("inserted");
        }
    }

    /// Writes the table anew, without rows.
    fn replace(db: &Database) {
        let table = db.table("notes").expect("there");
        let mut session = db.session().expect("open");
        let mut transaction = session.begin().expect("begun");
        let definition = TableDefinition::builder("notes")
            .column(table.definition().columns()[0].clone())
            .column(table.definition().columns()[1].clone());
        let definition = definition.primary_key(["id"]).build().expect("sound");
        let substitute = transaction.create_substitute(definition).expect("made");
        transaction.replace_table(&table, &substitute).expect("replaced");
        transaction.commit().expect("committed");
    }

    fn indexes(db: &Database) -> Vec<(String, bool)> {
        let table = db.table("notes").expect("there");
        let indexes = table.definition().indexes().iter();
        indexes.map(|index| (index.name.clone(), index.is_building)).collect()
    }

    #[test]
    fn an_index_is_made_by_whoever_writes_its_table_anew_before_it_is_filled() {
        let (_folder, db) = notes();
        let (index, options) = (NewIndex::new("by_number", ["number"]), <_>::default());
        let begun = db.define_as(&options, |transaction| transaction.begin_index("notes", &index));
        replace(&db);
        let done = db.complete_index(begun.expect("begun"), None, &options);
        assert!(matches!(done, Err(Error::UnknownIndex { .. })));
        let made = db.or_made_with_table(done, |table| index.is_made(table)).expect("made");
        insert(&db, &made);
        assert_eq!(indexes(&db), [("by_number".to_owned(), false)]);
    }

    #[test]
    fn what_was_to_take_the_place_of_an_index_goes_when_its_table_is_written_anew() {
        let (_folder, db) = notes();
        db.create_index("notes", &NewIndex::new("by_number", ["number"])).expect("made");
        let options = IndexBuildOptions::default();
        let begun =
            db.define_as(&options, |transaction| transaction.begin_index_again("by_number"));
        replace(&db);
        assert_eq!(indexes(&db), [("by_number".to_owned(), false)]);
        let BuiltAgain { built, replaced } = begun.expect("begun");
        let done = db.complete_index(built, Some(replaced), &options);
        assert!(matches!(done, Err(Error::UnknownIndex { .. })));
    }
}
