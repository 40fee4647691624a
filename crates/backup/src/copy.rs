//! One copy from its first step to its report.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use onrush_check::{
    CheckOptions, CheckReport, Companion, LogLimit, Progress, Source, check_source, lock,
};
use onrush_files::{Disk, DiskError};

use crate::copier::{Copier, OwnAnchor};
use crate::error::BackupError;
use crate::limit::{RestoreOptions, time_words};
use crate::report::BackupReport;
use crate::seal;

/// Copies the database in `folder`, which nobody may have open, into the new folder `into`.
///
/// # Errors
/// See [`BackupError`].
pub fn backup(
    disk: Arc<dyn Disk>,
    folder: &Path,
    into: &Path,
    options: &CheckOptions,
    progress: &Progress,
) -> Result<BackupReport, BackupError> {
    let options = RestoreOptions { check: options.clone(), ..RestoreOptions::default() };
    restore(disk, folder, into, &options, progress)
}

/// Makes a database in the new folder `into` of the backup in `folder`: as it was when the backup
/// was taken, or at another moment that the log reaches to.
///
/// # Errors
/// See [`BackupError`].
pub fn restore(
    disk: Arc<dyn Disk>,
    folder: &Path,
    into: &Path,
    options: &RestoreOptions,
    progress: &Progress,
) -> Result<BackupReport, BackupError> {
    let _locks = lock(&disk, folder)?;
    let source = Source::whole(disk, folder).map_err(onrush_check::CheckError::Disk)?;
    let source =
        Source { log_folders: options.log_folders.clone(), log_limit: options.limit, ..source };
    copy(&source, into, &options.check, progress, &())
}

/// Copies what `source` says; whoever calls keeps it as it is meanwhile. `beside` says when to rest.
///
/// # Errors
/// See [`BackupError`].
pub fn copy(
    source: &Source,
    into: &Path,
    options: &CheckOptions,
    progress: &Progress,
    beside: &dyn Companion,
) -> Result<BackupReport, BackupError> {
    let started = Instant::now();
    if options.table.is_some() {
        return Err(BackupError::BadOption("a copy has all tables".to_owned()));
    }
    if into.starts_with(&source.folder) {
        return Err(BackupError::TargetInside { folder: into.into() });
    }
    if !is_empty(&*source.disk, into)? {
        return Err(BackupError::TargetExists { folder: into.into() });
    }
    let copier = Copier::new(Arc::clone(&source.disk), into, beside)?;
    let made = check_source(source, options, progress, &copier)
        .map_err(BackupError::from)
        .and_then(|checked| finish(source, &copier, &checked, into, started));
    if made.is_err() {
        copier.remove_all();
    }
    made
}

/// Whether nothing but an empty log folder is there.
fn is_empty(disk: &dyn Disk, folder: &Path) -> Result<bool, DiskError> {
    if !disk.exists(folder)? {
        return Ok(true);
    }
    let names = disk.list(folder)?;
    Ok(match names.as_slice() {
        [] => true,
        [only] if only == seal::LOG_FOLDER => disk.list(&folder.join(only))?.is_empty(),
        _ => false,
    })
}

fn finish(
    source: &Source,
    copier: &Copier<'_>,
    checked: &CheckReport,
    into: &Path,
    started: Instant,
) -> Result<BackupReport, BackupError> {
    copier.failure()?;
    let Some(anchor) = copier.anchor().filter(|_| checked.is_sound()) else {
        return Err(BackupError::Damaged(Box::new(checked.clone())));
    };
    reaches(source, anchor, checked)?;
    let mut report = BackupReport {
        folder: into.into(),
        database_id: format!("{:032x}", anchor.database_id),
        checkpoint: checked.checkpoint,
        redo_from_lsn: anchor.redo_from_lsn,
        redo_from_segment: anchor.redo_from_segment,
        must_reach_lsn: anchor.must_reach_lsn,
        end_lsn: checked.log_end_lsn,
        end_time: time_words(checked.log_end_time_us),
        tables: checked.tables.clone(),
        log_records: checked.log_records,
        rows_checked: !checked.physical_only,
        ..BackupReport::default()
    };
    let measure = |report: &mut BackupReport| {
        report.written_bytes = copier.written_bytes();
        report.seconds = started.elapsed().as_secs_f64();
        report.mb_per_s = report.written_bytes as f64 / 1e6 / report.seconds.max(1e-9);
    };
    measure(&mut report);
    let manifest = serde_json::to_vec_pretty(&report).unwrap_or_default();
    copier.finish(&manifest)?;
    measure(&mut report);
    Ok(report)
}

/// Whether the log that was copied goes far enough, and as far as was asked for.
fn reaches(source: &Source, anchor: &OwnAnchor, checked: &CheckReport) -> Result<(), BackupError> {
    let end_lsn = checked.log_end_lsn;
    let must_reach_lsn = anchor.must_reach_lsn;
    let is_early = match source.log_limit {
        LogLimit::None => false,
        LogLimit::Lsn(wanted_lsn) => wanted_lsn < must_reach_lsn,
        // Without a block from before the moment nobody knows whether the images are older.
        LogLimit::TimeUs(_) => checked.log_is_cut && checked.log_end_time_us == 0,
    };
    if is_early || end_lsn < must_reach_lsn {
        return Err(BackupError::TooEarly { must_reach_lsn });
    }
    match source.log_limit {
        LogLimit::Lsn(wanted_lsn) if end_lsn < wanted_lsn => {
            Err(BackupError::TooLate { wanted_lsn, end_lsn, end_time_us: checked.log_end_time_us })
        }
        _ => Ok(()),
    }
}
