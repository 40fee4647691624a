//! One check from its first step to its report.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use onrush_files::{Disk, FolderLock, Unfinished};

use crate::companion::Companion;
use crate::decode::superblock::{FILE_NAME, Folders};
use crate::error::CheckError;
use crate::findings::Findings;
use crate::options::CheckOptions;
use crate::pieces::{self, Piece, Pieces};
use crate::progress::Progress;
use crate::report::{CheckReport, TableReport};
use crate::source::Source;
use crate::steps::catalogue::{self, Catalogue, CatalogueTable};
use crate::steps::counters;
use crate::steps::directory::{self, Batch, Wanted};
use crate::steps::images::{ImageChecker, Tally};
use crate::steps::large::LargeStatuses;
use crate::steps::log::{self, LogTally};
use crate::steps::long_values;
use crate::steps::owners::Owners;
use crate::steps::records::Records;
use crate::steps::stocks::Stocks;
use crate::steps::superblock::{self, Contents};
use crate::store::Store;

/// Directory segments of a batch, about 64 Ki leaves: a GiB of images.
const BATCH_SEGMENTS: usize = 256;

/// Checks the database in `folder`, which nobody may have open. Its folders are locked as long.
///
/// # Errors
/// No database, one that is open, one of a newer format, no such table, an option out of range.
/// Whatever is wrong with the data is in the report.
pub fn check(
    disk: Arc<dyn Disk>,
    folder: &Path,
    options: &CheckOptions,
    progress: &Progress,
) -> Result<CheckReport, CheckError> {
    let _locks = lock(&disk, folder)?;
    check_source(&Source::whole(disk, folder)?, options, progress, &())
}

/// Refuses a folder with a mark: what is there is a part of a database, however sound.
pub(crate) fn refuse_unfinished(disk: &dyn Disk, folder: &Path) -> Result<(), CheckError> {
    match Unfinished::of_folder(disk, folder)? {
        Some(unfinished) => Err(CheckError::Unfinished(unfinished)),
        None => Ok(()),
    }
}

/// Locks all folders of the database in `folder`, as long as the result lives.
///
/// # Errors
/// No database, one that is open or not finished, one of a newer format.
pub fn lock(disk: &Arc<dyn Disk>, folder: &Path) -> Result<Vec<FolderLock>, CheckError> {
    refuse_unfinished(&**disk, folder)?;
    if !disk.exists(folder)? || !disk.exists(&folder.join(FILE_NAME))? {
        return Err(CheckError::NotFound { folder: folder.into() });
    }
    let mut locks = vec![disk.lock(folder)?];
    let file = Source::whole(Arc::clone(disk), folder)?.superblock;
    // What cannot be read is said when it is checked.
    let unheard = Findings::new(usize::MAX);
    if let Some(folders) = superblock::read(&*file, folder, &unheard)?.and_then(|it| it.folders) {
        locks.extend(lock_others(&**disk, folder, &folders)?);
    }
    Ok(locks)
}

/// Checks what `source` says; whoever calls keeps it as it is meanwhile.
///
/// # Errors
/// As [`check`].
pub fn check_source(
    source: &Source,
    options: &CheckOptions,
    progress: &Progress,
    companion: &dyn Companion,
) -> Result<CheckReport, CheckError> {
    options.validate()?;
    let started = Instant::now();
    let findings = Findings::new(options.max_errors);
    let mut report = CheckReport {
        dop: options.threads(&*source.disk),
        physical_only: options.physical_only,
        ..CheckReport::default()
    };
    let Source { disk, folder, log_folders, log_limit, durable_lsn, .. } = source;
    let contents = superblock::read(&*source.superblock, folder, &findings)?;
    if let Some(Contents { copies, folders: Some(folders), newest_block }) = contents {
        let superblock = copies[0];
        companion.superblock(&superblock::anchor(&superblock, &folders, &newest_block));
        let files = superblock::open_data_files(disk, &superblock, &folders, &findings, companion)?;
        let store = Store {
            disk: Arc::clone(disk),
            superblock,
            log_folders: log_folders.iter().chain([&folders.log]).cloned().collect(),
            log_limit: *log_limit,
            durable_lsn: *durable_lsn,
            folders,
            files,
            findings: &findings,
            progress,
            companion,
        };
        check_store(&store, options, &mut report)?;
    }
    report.complete &= !findings.is_full() && !companion.gives_up() && !progress.is_cancelled();
    report.findings = findings.into_sorted();
    report.set_duration(started.elapsed());
    Ok(report)
}

/// Locks the folders of data and log, each once. One that is missing has its finding later.
pub(crate) fn lock_others(
    disk: &dyn Disk,
    folder: &Path,
    folders: &Folders,
) -> Result<Vec<FolderLock>, CheckError> {
    let mut others: Vec<_> = folders.data.iter().chain([&folders.log]).collect();
    others.sort();
    others.dedup();
    let mut locks = Vec::new();
    for other in others {
        if other != folder && disk.exists(other)? {
            locks.push(disk.lock(other)?);
        }
    }
    Ok(locks)
}

fn check_store(
    store: &Store<'_>,
    options: &CheckOptions,
    report: &mut CheckReport,
) -> Result<(), CheckError> {
    report.checkpoint = store.superblock.checkpoint;
    let mut owners = Owners::new(store);
    let Some(catalogue) = catalogue::read(store, &mut owners) else { return Ok(()) };
    let wanted = wanted_segments(store, &catalogue, options.table.as_deref())?;
    // Who takes rows must know what of large transactions counts.
    let statuses =
        store.companion.wants_rows().then(|| LargeStatuses::read(store, &catalogue, None));
    let statuses = statuses.as_ref();
    let mut records = Records::new(&catalogue, store.companion, statuses);
    let mut tally = Tally::new(&catalogue);
    let mut leaves = vec![0; catalogue.tables.len()];
    let log_records = (!options.physical_only).then_some(&mut records);
    let log = std::thread::scope(|scope| {
        let log = || {
            let tally = log::check(store, log_records);
            store.companion.log_is_read();
            tally
        };
        let mut check_tables = || {
            let batches = batches(&wanted, options.one_batch);
            for batch in batches {
                check_batch(
                    store,
                    options,
                    &catalogue,
                    &mut owners,
                    (batch, statuses),
                    &mut tally,
                    &mut leaves,
                );
            }
        };
        if options.dop == 1 || store.companion.wants_rows() {
            let log = log();
            check_tables();
            return log;
        }
        let log = scope.spawn(log);
        check_tables();
        log.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if !options.physical_only {
        counters::check(store, &catalogue, &records, &tally);
    }
    let mut tables = catalogue.tables.iter().zip(&tally.tables);
    let is_pieces = |table: &CatalogueTable| table.plan.as_ref().is_some_and(|it| it.is_pieces);
    let has_pieces = records.has_pieces
        || tables.any(|(table, tally)| is_pieces(table) && tally.rows + tally.undecided > 0);
    // The log of an open database goes on, and may be used again once it was read: that is compared by who has it open.
    let is_closed = store.durable_lsn.is_none();
    if has_pieces && is_closed && !options.physical_only && options.table.is_none() {
        long_values::check(store, options, &catalogue);
    }
    fill_report(report, &catalogue, &tally, &leaves, log, records.count);
    Ok(())
}

/// All segments of the tables that are to be checked.
fn wanted_segments(
    store: &Store<'_>,
    catalogue: &Catalogue,
    only: Option<&str>,
) -> Result<Vec<Wanted>, CheckError> {
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    if let Some(name) = only
        && !catalogue
            .tables
            .iter()
            .any(|table| !catalogue.is_private(table) && is_wanted(&table.name()))
    {
        let known: Vec<String> = catalogue.tables.iter().map(|table| table.name()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(CheckError::UnknownTable { name: name.to_owned(), known });
    }
    let mut wanted = Vec::new();
    for (index, table) in catalogue.tables.iter().enumerate() {
        if !is_wanted(&table.name()) {
            continue;
        }
        directory::check_lows(store, table);
        for (number, segment) in table.root.segments.iter().enumerate() {
            let image_bytes = directory::estimated_image_bytes(&segment.low, segment.place);
            store.progress.add_total(segment.place.bytes.min(1 << 32) + image_bytes);
            wanted.push((index, number));
        }
    }
    Ok(wanted)
}

/// Table by table in batches of bounded size, or everything at once.
fn batches(wanted: &[Wanted], one_batch: bool) -> Vec<&[Wanted]> {
    if one_batch {
        return vec![wanted];
    }
    wanted
        .chunk_by(|(left, _), (right, _)| left == right)
        .flat_map(|table| table.chunks(BATCH_SEGMENTS))
        .collect()
}

fn check_batch(
    store: &Store<'_>,
    options: &CheckOptions,
    catalogue: &Catalogue,
    owners: &mut Owners,
    (wanted, statuses): (&[Wanted], Option<&LargeStatuses>),
    tally: &mut Tally,
    leaves: &mut [u64],
) {
    if store.gives_up() {
        return;
    }
    let dop = options.threads(&*store.disk);
    let batch = Batch::read(store, owners, catalogue, wanted, dop);
    batch.leaves().for_each(|(table, count)| leaves[table] += count);
    let pieces = pieces::cut(&batch.images, |named| named.slot);
    let checker = || ImageChecker {
        store,
        catalogue,
        batch: &batch,
        physical_only: options.physical_only,
        statuses,
        tally: Tally::new(catalogue),
    };
    let threads = dop.min(pieces.len()).max(1);
    let mut checkers: Vec<ImageChecker<'_>> = (0..threads).map(|_| checker()).collect();
    let file = |piece: &Piece| batch.images[piece.start].slot.file();
    let left = match options.read_stream_per_file {
        true => Pieces::per_file(&pieces, file),
        false => Pieces::any(&pieces),
    };
    pieces::check_all(&mut checkers, &pieces, &left);
    checkers.iter().for_each(|checker| tally.add(&checker.tally));
    let physical_only = options.physical_only;
    let stocks = Stocks { store, catalogue, batch: &batch, physical_only, statuses };
    stocks.check(dop, &Mutex::new(owners), tally);
}

fn fill_report(
    report: &mut CheckReport,
    catalogue: &Catalogue,
    tally: &Tally,
    leaves: &[u64],
    log: LogTally,
    log_records: u64,
) {
    let tables = catalogue.tables.iter().zip(&tally.tables).zip(leaves);
    report.tables = tables
        .filter(|((table, _), _)| !catalogue.is_private(table))
        .map(|((table, tally), leaves)| TableReport {
            name: table.name(),
            leaves: *leaves,
            images: tally.images,
            rows: tally.rows,
            undecided: tally.undecided,
        })
        .collect();
    report.log_bytes = log.bytes;
    report.log_records = log_records;
    report.log_end_lsn = log.end;
    report.log_end_time_us = log.end_time_us;
    report.log_is_cut = log.is_cut;
    report.read_bytes = tally.read_bytes + log.bytes;
    report.complete = true;
}
