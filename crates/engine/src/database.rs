//! An open database: tables, sessions, checkpoints, close. The one file that sees all layers.
//! Creating and dropping tables: `database/define.rs`, altering them: `database/alter.rs`, building indexes:
//! `database/build.rs`, statistics: `database/observe.rs`.

mod alter;
mod archive;
mod build;
mod define;
mod foreign_key;
mod index;
mod observe;

pub use build::IndexBuildOptions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use onrush_files::{Disk, OsDisk, StickyDisk, Unfinished};
use onrush_log::Lsn;
use onrush_types::TableDefinition;
use parking_lot::Mutex;

use crate::background;
use crate::catalog::{Table, TableEntry};
use crate::checkpoint::RestoredFrom;
use crate::checkpoint::{self, CheckpointReport};
use crate::constraint::ExpressionCompiler;
use crate::drain::{Drain, DrainOptions};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::options::Options;
use crate::recovery::{self, OpenProgress, RecoveryReport};
use crate::session::Session;
use crate::statistics::Observer;

/// An open database. A handle: clones are the same database, and it may be used from any number
/// of threads.
///
/// When the last handle is dropped without [`close`](Self::close), everything committed is made
/// durable all the same, but no checkpoint is taken, so the next open has more log to read.
///
/// ```
/// use onrush::{Database, Options};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop");
/// # let options = Options::small();
/// let db = Database::open_or_create(&path, options.clone())?;
/// let also_db = db.clone(); // for another thread
/// assert!(also_db.tables().is_empty());
/// db.close()?;
/// assert!(also_db.session().is_err());
///
/// drop(also_db); // one opener at a time
/// let db = Database::open(&path, options)?;
/// assert_eq!(db.recovery().records, 0); // it was closed, so there was nothing to redo
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Arc<Engine>,
    /// As the caller gave it: what goes wrong with a backup's folder does not stop the engine.
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    background: Mutex<Vec<JoinHandle<()>>>,
    observer: Arc<Observer>,
    /// Held until the last handle is gone.
    _locks: Vec<onrush_files::FolderLock>,
}

impl Database {
    /// Creates a database in `folder`, which is created if it is missing.
    ///
    /// # Errors
    /// [`AlreadyExists`](Error::AlreadyExists); a setting out of range; a folder that cannot be
    /// written.
    pub fn create(folder: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::create_on(Arc::new(OsDisk::new()), folder, options)
    }

    /// Opens the database in `folder`: after a crash this redoes the log from the last checkpoint.
    ///
    /// # Errors
    /// [`NotFound`](Error::NotFound); [`InUse`](Error::InUse) when it is open elsewhere, in this
    /// process or another; [`Damaged`](Error::Damaged) and [`DamagedLog`](Error::DamagedLog),
    /// then nothing was changed; [`FutureFormat`](Error::FutureFormat).
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::open_on(Arc::new(OsDisk::new()), folder, options)
    }

    /// Whether [`open_or_create`](Self::open_or_create) would make a database in `folder`, as far as names tell:
    /// there is none.
    ///
    /// # Errors
    /// A folder that cannot be looked at.
    pub fn is_missing(folder: impl AsRef<Path>) -> Result<bool> {
        Ok(!OsDisk::new().exists(&checkpoint::superblock_path(folder.as_ref()))?)
    }

    /// Opens the database in `folder`, or creates one if there is none.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`create`](Self::create).
    pub fn open_or_create(folder: impl AsRef<Path>, options: Options) -> Result<Database> {
        match Database::open(folder.as_ref(), options.clone()) {
            Err(Error::NotFound { .. }) => Database::create(folder, options),
            other => other,
        }
    }

    /// As [`create`](Self::create), on a disk of the caller's.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_on(
        disk: Arc<dyn Disk>,
        folder: impl AsRef<Path>,
        options: Options,
    ) -> Result<Database> {
        Database::create_told(disk, folder.as_ref(), options, None)
    }

    /// As [`create_on`](Self::create_on), a database that is being made of another one: its folder has the mark
    /// until whoever makes it is sure of what it holds, and takes the mark away
    /// ([`onrush_files::unfinished::unmark`]). Until then nobody else opens it, or takes it for whole.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_marked_on(
        disk: Arc<dyn Disk>,
        mark: &Unfinished,
        options: Options,
    ) -> Result<Database> {
        Database::create_told(disk, &mark.folder, options, Some(mark))
    }

    fn create_told(
        disk: Arc<dyn Disk>,
        folder: &Path,
        options: Options,
        mark: Option<&Unfinished>,
    ) -> Result<Database> {
        options.validate()?;
        let folder = absolute(folder)?;
        let sticky = Arc::new(StickyDisk::new(Arc::clone(&disk)));
        let (engine, locks) = recovery::create(sticky, &folder, options, mark)?;
        Ok(Database::start(engine, disk, folder, locks, RecoveryReport::default()))
    }

    /// As [`open`](Self::open), on a disk of the caller's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        disk: Arc<dyn Disk>,
        folder: impl AsRef<Path>,
        options: Options,
    ) -> Result<Database> {
        Database::open_told(disk, folder, options, None)
    }

    /// As [`open`](Self::open), telling another thread how far the redo of the log is.
    ///
    /// ```
    /// # fn main() -> onrush::Result<()> {
    /// # let folder = std::env::temp_dir().join(format!("onrush-observed-{}", std::process::id()));
    /// # onrush::Database::create(&folder, onrush::Options::small())?.close()?;
    /// use onrush::{Database, OpenPhase, OpenProgress, Options};
    /// let progress = OpenProgress::default();
    /// let db = std::thread::scope(|scope| {
    ///     let opening = scope.spawn(|| {
    ///         Database::open_observed(&folder, Options::small(), &progress)
    ///     });
    ///     let state = progress.state(); // as often as one likes
    ///     println!("{:?}: {} of {} bytes", state.phase, state.redone_bytes, state.redo_bytes);
    ///     opening.join().expect("opening does not panic")
    /// })?;
    /// assert_eq!(progress.state().phase, OpenPhase::Open);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_observed(
        folder: impl AsRef<Path>,
        options: Options,
        progress: &OpenProgress,
    ) -> Result<Database> {
        Database::open_told(Arc::new(OsDisk::new()), folder, options, Some(progress))
    }

    fn open_told(
        disk: Arc<dyn Disk>,
        folder: impl AsRef<Path>,
        options: Options,
        progress: Option<&OpenProgress>,
    ) -> Result<Database> {
        options.validate()?;
        let folder = absolute(folder.as_ref())?;
        let sticky = Arc::new(StickyDisk::new(Arc::clone(&disk)));
        let (engine, locks, report) = recovery::open(sticky, &folder, options, progress)?;
        let database = Database::start(engine, disk, folder, locks, report);
        database.drop_unfinished_indexes()?;
        Ok(database)
    }

    fn start(
        engine: Arc<Engine>,
        disk: Arc<dyn Disk>,
        folder: PathBuf,
        locks: Vec<onrush_files::FolderLock>,
        recovery: RecoveryReport,
    ) -> Database {
        let observer = Arc::new(Observer::new(Arc::clone(&engine), recovery));
        let background = Mutex::new(background::start(&observer));
        let shared = Shared { engine, disk, folder, background, observer, _locks: locks };
        Database { shared: Arc::new(shared) }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.shared.disk
    }

    /// The number of the database's history, drawn when the database was created. Its backups have it, too; what is
    /// [restored](Self::restored_from) of one has a history of its own, since its log goes another way from there on.
    #[must_use]
    pub fn id(&self) -> u128 {
        self.engine().history()
    }

    /// The number that stands in all files of the database: drawn when it was created, and kept by whatever is made of
    /// its backups.
    #[must_use]
    pub fn file_id(&self) -> u128 {
        self.engine().database_id
    }

    /// The history that this database goes on from, and how far it had it; none in one that was created.
    #[must_use]
    pub fn restored_from(&self) -> Option<RestoredFrom> {
        self.engine().restored.map(|restored| restored.from)
    }

    /// The folder of the database.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// A new session, for one thread or task.
    ///
    /// # Errors
    /// A stopped or closed engine.
    pub fn session(&self) -> Result<Session> {
        self.check_running()?;
        Ok(Session::new(self.engine()))
    }

    /// Whether the database takes work. Costs nothing, so it may be asked often.
    ///
    /// # Errors
    /// [`Closed`](Error::Closed); [`Stopped`](Error::Stopped) with the cause.
    pub fn check_running(&self) -> Result<()> {
        self.engine().check_readable()
    }

    /// Says who understands the expressions of CHECK constraints and of defaults that are not in the form
    /// which the engine evaluates, in place of who did before. Without one nothing is written to tables
    /// that have such checks, and a column with such a default must be given a value.
    pub fn set_expression_compiler(&self, compiler: Arc<dyn ExpressionCompiler>) {
        self.engine().expression_compiler.set(compiler);
    }

    /// Takes rows as meeting the conditions of their tables, from before the first one is written: of whoever copies
    /// tables with their definitions. A domain's condition that is not validated may be one that old rows do not meet.
    #[doc(hidden)]
    pub fn ask_no_checks(&self) {
        self.engine().expression_compiler.ask_no_checks();
    }

    /// Starts a thread that moves the rows of `front` to `target` all the time, each exactly once:
    /// a short while after its insert a row is in `target` instead.
    ///
    /// # Errors
    /// [`TablesDiffer`](Error::TablesDiffer); a stopped or closed engine.
    pub fn start_drain(
        &self,
        front: &Table,
        target: &Table,
        options: DrainOptions,
    ) -> Result<Drain> {
        Drain::start(self.session()?, front, target, options)
    }

    fn handle(&self, entry: Arc<TableEntry>) -> Table {
        Table { entry, database_id: self.engine().database_id }
    }

    /// The table of this name.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable); [`IsIndex`](Error::IsIndex).
    pub fn table(&self, name: &str) -> Result<Table> {
        let entry = self.engine().catalog.get(name)?;
        match entry.is_index() {
            true => Err(Error::IsIndex { name: name.to_owned() }),
            false => Ok(self.handle(entry)),
        }
    }

    /// The table whose [`id`](Table::id) is this number; none if there is none, or an index has it.
    #[must_use]
    pub fn table_numbered(&self, number: u32) -> Option<Table> {
        let entry = self.engine().catalog.by_id(number)?;
        (!entry.is_index()).then(|| self.handle(entry))
    }

    /// A number that grows with every table that is created, altered or dropped: while it is the same,
    /// what a name was found to mean is what it means.
    #[must_use]
    pub fn definitions_version(&self) -> u64 {
        self.engine().catalog.version()
    }

    /// The definitions of all tables, by name.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<TableDefinition>> {
        let tables = self.engine().catalog.all_but_entries();
        tables.iter().map(|table| Arc::clone(table.schema.definition())).collect()
    }

    /// Returns when everything committed so far, by any session, is durable.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](Error::OutcomeUnknown).
    pub fn barrier(&self) -> Result<()> {
        let engine = self.engine();
        Ok(engine.log.wait_durable(engine.log.tail(), &engine.recorder)?)
    }

    /// Writes the log once for whoever waits, unless somebody is writing. For programs that hold
    /// [`CommitToken`](crate::CommitToken)s and have nothing else to do: no thread needs to sleep.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](Error::OutcomeUnknown).
    pub fn write_log(&self) -> Result<()> {
        let engine = self.engine();
        engine.log.write_now(&engine.recorder)?;
        Ok(())
    }

    /// How many [`CommitToken`](crate::CommitToken)s are awaited at this moment. With
    /// [`Background::Callers`](crate::Background::Callers) they wait until somebody
    /// [writes the log](Self::write_log).
    #[must_use]
    pub fn awaited_commits(&self) -> usize {
        self.engine().log.waiting_futures()
    }

    /// Whether memory for leaves is being made free at this moment: whoever needs some now may have to wait
    /// until that is done. With [`Background::Callers`](crate::Background::Callers) a program that does
    /// something in the middle of a call of its disk must not wait for itself.
    pub fn is_evicting(&self) -> bool {
        self.engine().is_evicting()
    }

    /// With [`Background::Callers`](crate::Background::Callers): how late it is, by any clock that
    /// does not go back. Delayed commits are as old as it says. With threads it is ignored.
    pub fn set_time(&self, now: Duration) {
        self.engine().log.set_time(now);
    }

    /// With [`Background::Callers`](crate::Background::Callers), what the log's thread does
    /// otherwise: makes delayed commits durable whose window asks for it, by the time that
    /// [`set_time`](Self::set_time) was told. Returns after how much time to call again; `None`:
    /// no delayed commit waits. Whoever never calls it has a window in bytes only.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier).
    pub fn write_due(&self) -> Result<Option<Duration>> {
        let engine = self.engine();
        Ok(engine.log.write_due(&engine.recorder)?)
    }

    /// Position in the log, in bytes, below which everything is durable.
    #[must_use]
    pub fn durable_lsn(&self) -> Lsn {
        self.engine().log.durable()
    }

    /// Takes a checkpoint now: the next open redoes only what is committed after this call began.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let note = ColumnDefinition::new("note", DataType::Text);
    /// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// db.session()?.insert(&notes, &[1i64.into(), "one".into()])?;
    /// db.checkpoint()?;
    /// drop((notes, db)); // as a crash would, without closing
    /// let db = Database::open(folder.path().join("db"), Options::small())?;
    /// assert_eq!(db.recovery().rows, 0); // nothing to redo
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DiskFull`](Error::DiskFull): the old checkpoint stands. A failed write stops the engine.
    pub fn checkpoint(&self) -> Result<CheckpointReport> {
        self.engine().check_open()?;
        checkpoint::run(self.engine(), &self.engine().recorder)
    }

    /// Flushes the range with the most rows in front of its stock, as the engine's threads do where memory is short.
    ///
    /// # Errors
    /// A full disk; a failed write stops the engine.
    #[doc(hidden)]
    pub fn flush_range(&self) -> Result<()> {
        self.engine().check_open()?;
        checkpoint::flush_fullest(self.engine(), &self.engine().recorder)
    }

    /// Frees the slots of stocks that were written anew since the last checkpoint, as the engine's thread does where
    /// they are many; false if there was nothing to free, or a checkpoint is being taken.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    #[doc(hidden)]
    pub fn install_space(&self) -> Result<bool> {
        self.engine().check_open()?;
        checkpoint::install_space(self.engine(), &self.engine().recorder)
    }

    /// What opening this database had to do.
    #[must_use]
    pub fn recovery(&self) -> &RecoveryReport {
        self.shared.observer.recovery()
    }

    /// The settings.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.engine().options
    }

    /// Closes the database: everything committed is durable and checkpointed when this returns.
    /// Other handles and sessions get [`Closed`](Error::Closed) from then on.
    ///
    /// # Errors
    /// A failed write or sync; a full disk, then all commits are durable but not checkpointed.
    pub fn close(self) -> Result<()> {
        self.shared.shut_down(true)
    }
}

impl Shared {
    fn shut_down(&self, with_checkpoint: bool) -> Result<()> {
        let engine = &self.engine;
        if !engine.start_close() {
            return Ok(());
        }
        for thread in self.background.lock().drain(..) {
            thread.thread().unpark();
            if thread.join().is_err() {
                engine.stop_for("a background thread panicked");
            }
        }
        if !engine.read_ahead.stop() {
            engine.stop_for("a reader panicked");
        }
        if engine.has_failed() {
            return engine.check_open();
        }
        let tail = engine.log.tail();
        if !planted(Fault::CloseNotDurable) {
            engine.log.wait_durable(tail, &engine.recorder)?;
        }
        let checkpointed = if with_checkpoint {
            checkpoint::run(engine, &engine.recorder).map(|_| ())
        } else {
            Ok(())
        };
        engine.log.close(&engine.recorder)?;
        checkpointed
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Errors have nobody to go to here; `close` is for those who want to know.
        let _ = self.shut_down(false);
    }
}

pub(crate) fn absolute(folder: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(folder)
        .map_err(|error| Error::Disk(onrush_files::DiskError::from_io("resolve", folder, error)))
}
