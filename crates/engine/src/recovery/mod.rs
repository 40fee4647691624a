//! Creating a database, and opening one: superblock, directory, log.
//!
//! 1. Lock the folders; read the newer valid superblock.
//! 2. Read root and segments; every slot they name has an owner, all others are free.
//! 3. Build the inner nodes over the leaves, whose rows stay on disk until they are needed.
//! 4. Redo the log from C, in parallel by key (`redo.rs`, `rows.rs`). A record whose row an image has
//!    already changes nothing. A torn tail above what was durable is cut; anything else that does
//!    not check refuses to open.
//! 5. Write a superblock with the same C and the next incarnation; only then append. A checkpoint
//!    follows later, as any other.
//!
//! Nothing is written before step 5, so a database that cannot be opened is as it was.

pub(crate) mod archived;
mod folders;
mod progress;
mod redo;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_files::{Disk, FolderLock, Unfinished};
use onrush_latch::{Admission, available_cpus};
use onrush_log::{Log, LogError, LogOptions, Lsn};
use onrush_types::TableDefinition;
use onrush_waits::{Recorder, Registry, Statistics as Recording};
use serde::{Deserialize, Serialize};

use crate::catalog::TableEntry;
use crate::checkpoint::{
    COUNTER_LIMIT, Checkpointer, Directory, Folders, Restored, Root, Superblock, SuperblockFile,
    WRITERS_MAX, superblock_path, unix_micros,
};
use crate::engine::{Engine, Parts};
use crate::error::{Damage, Error, Result};
use crate::memory::{FramePool, LARGE_PAGE_BYTES};
use crate::options::{BACKGROUND_PERMITS, Background, LargePages, Options};
use crate::space::{DataFiles, Space, data_file_path};
use crate::tree::Tree;
use crate::units::Epoch;
pub use progress::{OpenPhase, OpenProgress, OpenState};
use redo::Redo;

/// How the names of log segments end.
const LOG_SEGMENT_ENDING: &str = ".segment";

/// What opening had to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// Number of the checkpoint that recovery started from; none if there was none yet.
    pub checkpoint: Option<u64>,
    /// Leaves that the directory named.
    pub leaves: u64,
    /// Log records read.
    pub records: u64,
    /// Rows put or removed by them, those that an image had already included.
    pub rows: u64,
    /// Bytes of log records read.
    pub log_bytes: u64,
    /// How long the redo took.
    pub redo_duration: Duration,
    /// How long opening took in all.
    pub duration: Duration,
}

impl RecoveryReport {
    /// Rows redone a second; none where nothing was redone.
    #[must_use]
    pub fn rows_per_s(&self) -> Option<f64> {
        let seconds = self.redo_duration.as_secs_f64();
        (self.rows > 0 && seconds > 0.0).then(|| self.rows as f64 / seconds)
    }

    /// Bytes of log redone a second; none where nothing was redone.
    #[must_use]
    pub fn log_bytes_per_s(&self) -> Option<f64> {
        let seconds = self.redo_duration.as_secs_f64();
        (self.rows > 0 && seconds > 0.0).then(|| self.log_bytes as f64 / seconds)
    }
}

/// Creates an empty database; with a mark it is one that is being made of another one.
pub(crate) fn create(
    disk: Arc<dyn Disk>,
    folder: &Path,
    mut options: Options,
    mark: Option<&Unfinished>,
) -> Result<(Arc<Engine>, Vec<FolderLock>)> {
    // Before anything is on the disk, since the system may not have so much.
    let frames = frames(&options)?;
    let folders = chosen_folders(folder, &options);
    folders::refuse_other_files(&*disk, folder, &folders, options.kept_log_folder.as_deref())?;
    disk.create_folder(folder)?;
    mark.map_or(Ok(()), |mark| mark.mark(&*disk))?;
    kept_log_folder(&*disk, folder, &mut options)?;
    disk.create_folder(&folders.log)?;
    for data in &folders.data {
        disk.create_folder(data)?;
    }
    let locks = lock_all(&*disk, folder, &folders)?;
    if disk.exists(&superblock_path(folder))? {
        return Err(Error::AlreadyExists { folder: folder.into() });
    }
    refuse_without_superblock(&disk, folder, &folders)?;
    remove_unfinished(&*disk, &folders)?;
    let database_id = uuid::Uuid::new_v4().as_u128();
    let files = DataFiles::create(&*disk, &folders.data, database_id)?;
    let space = Space::new(files, &[])?;
    let engine =
        build_engine(&disk, options, (database_id, None), (frames, space), Epoch::after(0));
    let log = Log::create(Arc::clone(&disk), log_options(&engine, &folders))?;
    let position = log.position();
    let superblock = Superblock {
        database_id,
        generation: 1,
        checkpoint: 0,
        incarnation: 1,
        start: position,
        end: position.lsn,
        root: None,
        end_us: unix_micros(),
        restored: None,
    };
    let file = SuperblockFile::create(&*disk, folder, &superblock, &folders)?;
    engine.log.set(log);
    engine.resolver.large.end_recovery();
    engine.throttle.set_redo_from(position.lsn);
    let checkpointer = Checkpointer::new(file, superblock, Directory::default(), writers(&engine));
    *engine.checkpointer.lock() = Some(checkpointer);
    Ok((engine, locks))
}

/// Opens an existing database.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    folder: &Path,
    mut options: Options,
    progress: Option<&OpenProgress>,
) -> Result<(Arc<Engine>, Vec<FolderLock>, RecoveryReport)> {
    let started = Instant::now();
    let enter = |phase| progress.into_iter().for_each(|progress| progress.enter(phase));
    enter(OpenPhase::Directory);
    if !disk.exists(folder)? {
        return Err(Error::NotFound { folder: folder.into() });
    }
    folders::refuse_unfinished(&*disk, folder)?;
    if !disk.exists(&superblock_path(folder))? {
        refuse_without_superblock(&disk, folder, &chosen_folders(folder, &options))?;
        return Err(Error::NotFound { folder: folder.into() });
    }
    let own_lock = disk.lock(folder)?;
    let frames = frames(&options)?;
    kept_log_folder(&*disk, folder, &mut options)?;
    let (file, superblock, folders) = SuperblockFile::open(&*disk, folder)?;
    let mut locks = vec![own_lock];
    locks.extend(lock_others(&*disk, folder, &folders)?);
    let database_id = superblock.database_id;
    let files = DataFiles::open(&*disk, &folders.data, database_id)?;
    let mut used = Vec::new();
    let root = match superblock.root {
        Some(address) => Some(Root::read(&files, database_id, address, &mut used)?),
        None => None,
    };
    let space = Space::new(files, &used)?;
    // Leaves are dirty for epochs above the installed checkpoint's.
    let epoch = Epoch::after(superblock.checkpoint);
    let ids = (database_id, superblock.restored);
    let engine = build_engine(&disk, options, ids, (frames, space), epoch);
    let checkpoint = root.as_ref().map(|_| superblock.checkpoint);
    let mut report = RecoveryReport { checkpoint, ..RecoveryReport::default() };
    let directory = match root {
        Some(root) => load_tables(&engine, root, &superblock, &mut report)?,
        None => Directory::default(),
    };
    let redo_started = Instant::now();
    enter(OpenPhase::Redo);
    let archived = match engine.options.archive_log_bytes {
        0 => None,
        _ => archived::read(&*engine.disk, folder, engine.history())?,
    };
    let keep_from = archived.map(|position| position.segment);
    let recovered = redo_log(&engine, (&folders, keep_from), &superblock, progress, &mut report)?;
    report.redo_duration = redo_started.elapsed();
    let last_incarnation = recovered.last_incarnation();
    if last_incarnation >= COUNTER_LIMIT {
        let what = format!("a block of incarnation {last_incarnation}, which no database reaches");
        return Err(Error::DamagedLog(what));
    }
    let incarnation = superblock.incarnation.max(last_incarnation) + 1;
    let generation = superblock.generation + 1;
    let superblock = Superblock { incarnation, generation, ..superblock };
    file.write(&superblock)?;
    engine.log.set(recovered.resume(incarnation)?);
    engine.resolver.large.end_recovery();
    drop_private(&engine);
    engine.throttle.set_redo_from(superblock.start.lsn);
    *engine.checkpointer.lock() =
        Some(Checkpointer::new(file, superblock, directory, writers(&engine)));
    report.duration = started.elapsed();
    enter(OpenPhase::Open);
    Ok((engine, locks, report))
}

/// The folders that the settings choose for a new database.
fn chosen_folders(folder: &Path, options: &Options) -> Folders {
    let inside = |path: &PathBuf| folder.join(path);
    let data = if options.data_folders.is_empty() {
        vec![folder.to_owned()]
    } else {
        options.data_folders.iter().map(inside).collect()
    };
    let log = options.log_folder.as_ref().map_or_else(|| folder.join("log"), inside);
    Folders { data, log }
}

fn lock_all(disk: &dyn Disk, folder: &Path, folders: &Folders) -> Result<Vec<FolderLock>> {
    let mut locks = vec![disk.lock(folder)?];
    locks.extend(lock_others(disk, folder, folders)?);
    Ok(locks)
}

/// Locks the folders of data and log, each once.
fn lock_others(disk: &dyn Disk, folder: &Path, folders: &Folders) -> Result<Vec<FolderLock>> {
    let mut others: Vec<&PathBuf> = folders.data.iter().chain([&folders.log]).collect();
    others.sort();
    others.dedup();
    let others = others.into_iter().filter(|other| *other != folder);
    others.map(|other| Ok(disk.lock(other)?)).collect()
}

/// A creation that is cut off before its superblock leaves data files and a log with nothing in them. Where
/// there is something, the superblock was lost, and with it the way to rows that must not be removed.
fn refuse_without_superblock(disk: &Arc<dyn Disk>, folder: &Path, folders: &Folders) -> Result<()> {
    let refuse = |filled: &Path| {
        let what = format!("there is no superblock, but {} holds data", filled.display());
        Err(Error::Damaged(Damage::new(&superblock_path(folder), 0, &what)))
    };
    for (number, folder) in folders.data.iter().enumerate() {
        let path = data_file_path(folder, number);
        if disk.exists(&path)? && !DataFiles::is_as_created(&**disk, &path)? {
            return refuse(&path);
        }
    }
    if disk.exists(&folders.log)? && Log::holds_blocks(Arc::clone(disk), &folders.log)? {
        return refuse(&folders.log);
    }
    Ok(())
}

/// Without a superblock there is no database: what a creation that was cut off left is removed.
fn remove_unfinished(disk: &dyn Disk, folders: &Folders) -> Result<()> {
    for (number, folder) in folders.data.iter().enumerate() {
        let path = data_file_path(folder, number);
        if disk.exists(&path)? {
            disk.remove(&path)?;
        }
    }
    for name in disk.list(&folders.log)? {
        if name.ends_with(LOG_SEGMENT_ENDING) {
            disk.remove(&folders.log.join(name))?;
        }
    }
    Ok(())
}

fn build_engine(
    disk: &Arc<dyn Disk>,
    options: Options,
    (database_id, restored): (u128, Option<Restored>),
    (frames, space): (FramePool, Arc<Space>),
    epoch: Epoch,
) -> Arc<Engine> {
    let times = if options.record_times { Recording::On } else { Recording::Off };
    let registry = Arc::new(Registry::with_statistics(times));
    let recorder = Recorder::new(&registry, "engine");
    let admission = Admission::new(options.permits(), BACKGROUND_PERMITS);
    Arc::new(Engine::new(Parts {
        options,
        disk: Arc::clone(disk),
        database_id,
        registry,
        recorder,
        admission,
        frames,
        space,
        epoch,
        restored,
    }))
}

/// The memory for leaves.
fn frames(options: &Options) -> Result<FramePool> {
    let Options { large_pages, leaf_memory_bytes, prefault_leaf_memory, .. } = *options;
    let frames = FramePool::new(options.frames(), large_pages, prefault_leaf_memory);
    frames.map_err(|error| match large_pages {
        LargePages::Require => Error::BadOption {
            setting: "large_pages",
            given: "require".into(),
            reason: format!(
                "the system has not {pages} free large pages of 2 MiB for the {leaf_memory_bytes} \
                 bytes of leaf_memory_bytes ({error}); reserve them, as root, by writing at least \
                 {pages} to /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages, or set \
                 large_pages to try",
                pages = leaf_memory_bytes.div_ceil(LARGE_PAGE_BYTES),
            ),
        },
        LargePages::Off | LargePages::Try => Error::BadOption {
            setting: "leaf_memory_bytes",
            given: leaf_memory_bytes.to_string(),
            reason: format!("the system does not give so much memory ({error}); take less"),
        },
    })
}

/// The folder for kept segments, made if it is missing.
fn kept_log_folder(disk: &dyn Disk, folder: &Path, options: &mut Options) -> Result<()> {
    if let Some(kept) = &mut options.kept_log_folder {
        *kept = folder.join(&*kept);
        disk.create_folder(kept)?;
    }
    Ok(())
}

fn log_options(engine: &Engine, folders: &Folders) -> LogOptions {
    LogOptions {
        folder: folders.log.clone(),
        database_id: engine.database_id,
        permits: engine.admission.permits(),
        registry: Arc::clone(&engine.registry),
        ..engine.options.of_log()
    }
}

/// Threads that write the images of a checkpoint: two keep a device busy, one copying while the
/// other waits.
fn writers(engine: &Engine) -> usize {
    match engine.options.background {
        Background::Threads => available_cpus().min(WRITERS_MAX),
        Background::Callers => 1,
    }
}

/// Tables, leaves and inner nodes from the directory.
fn load_tables(
    engine: &Arc<Engine>,
    root: Root,
    superblock: &Superblock,
    report: &mut RecoveryReport,
) -> Result<Directory> {
    let (start, end) = (superblock.start.lsn, superblock.end);
    let (directory, tables, mut large) = root.adopt(&engine.space, end);
    // Pieces of others are redone before their outcome, which the log has, too.
    large.committed.retain(|(_, lsn, _)| *lsn < start);
    engine.resolver.large.restore(large);
    engine.catalog.raise_next_object(directory.next_object());
    for table in tables {
        report.leaves += table.leaves.len() as u64;
        let definition = Arc::new(TableDefinition::from_bytes(&table.definition)?);
        let tree = Tree::build(engine, table.object, table.leaves, definition.is_logged());
        let entry = TableEntry::new(table.id, definition, Arc::new(tree), &table.counters)?;
        match directory.is_private(table.object) {
            true => engine.catalog.keep_private(&Arc::new(entry)),
            false => engine.catalog.add(Arc::new(entry)),
        }
    }
    Ok(directory)
}

/// Objects of large transactions that were never committed.
fn drop_private(engine: &Engine) {
    for entry in engine.catalog.all_private() {
        if let Some(object) = entry.tree.object() {
            engine.catalog.release_private(object);
            engine.catalog.expect_no_longer(object);
        }
        entry.tree.clear(engine, &engine.recorder, None);
    }
}

fn redo_log(
    engine: &Arc<Engine>,
    (folders, keep_from_segment): (&Folders, Option<u64>),
    superblock: &Superblock,
    progress: Option<&OpenProgress>,
    report: &mut RecoveryReport,
) -> Result<onrush_log::RecoveredLog> {
    let mut redo = Redo::start(engine, superblock.end);
    let mut failure = None;
    let mut apply = |lsn: Lsn, payload: &[u8]| {
        redo.record(lsn, payload).map_err(|error| {
            let cause = LogError::Apply(Arc::new(error.clone()));
            failure = Some(error);
            cause
        })
    };
    let recovered = Log::recover(
        Arc::clone(&engine.disk),
        LogOptions {
            progress: progress.map(|progress| Arc::clone(&progress.log)),
            keep_from_segment,
            ..log_options(engine, folders)
        },
        superblock.start,
        superblock.end,
        &mut apply,
    );
    let finished = redo.finish();
    if let Some(error) = failure {
        return Err(error);
    }
    let recovered = recovered?;
    let totals = finished?;
    report.records = totals.records;
    report.rows = totals.rows;
    report.log_bytes = recovered.end() - superblock.start.lsn;
    Ok(recovered)
}
