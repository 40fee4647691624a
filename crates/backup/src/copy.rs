//! One copy from its first step to its report.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use onrush_check::{
    CheckOptions, CheckReport, Companion, LogLimit, LogReach, Progress, Source, check_source,
    foreign_segment, lock, log_reach,
};
use onrush_files::{Disk, DiskError, Making, Unfinished};

use crate::copier::Copier;
use crate::error::BackupError;
use crate::limit::{RestoreOptions, time_words};
use crate::report::BackupReport;
use crate::seal::{self, Restored};

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
    let _locks = lock(&disk, folder)?;
    let source = Source::whole(disk, folder).map_err(onrush_check::CheckError::Disk)?;
    copy(&source, into, options, progress, &())
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
    refuse_wrong_logs(&source)?;
    // Before anything is made. Damage is found and told by the copy itself.
    if options.limit != LogLimit::None
        && let Some(reach) = log_reach(&source)?
    {
        check_reach(options.limit, &reach)?;
    }
    copy_as(Making::Restore, &source, into, &options.check, progress, &())
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
    copy_as(Making::Backup, source, into, options, progress, beside)
}

fn copy_as(
    making: Making,
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
    if let Some(unfinished) = Unfinished::of_folder(&*source.disk, into)? {
        return Err(BackupError::TargetUnfinished(unfinished));
    }
    if !is_empty(&*source.disk, into)? {
        return Err(BackupError::TargetExists { folder: into.into() });
    }
    let mark = Unfinished { folder: into.into(), making, from: source.folder.clone() };
    let copier = Copier::new(Arc::clone(&source.disk), into, &mark, beside)?;
    let made = check_source(source, options, progress, &copier)
        .map_err(BackupError::from)
        .and_then(|checked| finish(making, source, &copier, &checked, into, started));
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
    making: Making,
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
    let reach = LogReach {
        must_reach_lsn: anchor.must_reach_lsn,
        must_reach_us: anchor.must_reach_us,
        end_lsn: checked.log_end_lsn,
        end_time_us: checked.log_end_time_us,
        is_cut: checked.log_is_cut,
    };
    check_reach(source.log_limit, &reach)?;
    // The log of the original may go on, or has gone on: what comes now is another one under the same numbers.
    let restored = (making == Making::Restore).then(|| Restored {
        history: uuid::Uuid::new_v4().as_u128(),
        from_history: anchor.history,
        from_lsn: checked.log_end_lsn,
    });
    let mut report = BackupReport {
        folder: into.into(),
        database_id: format!("{:032x}", anchor.database_id),
        history: format!("{:032x}", restored.as_ref().map_or(anchor.history, |it| it.history)),
        checkpoint: checked.checkpoint,
        redo_from_lsn: anchor.redo_from_lsn,
        redo_from_segment: anchor.redo_from_segment,
        must_reach_lsn: anchor.must_reach_lsn,
        must_reach_time: anchor.must_reach_us.and_then(time_words),
        end_lsn: checked.log_end_lsn,
        end_time: checked.log_end_time_us.and_then(time_words),
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
    copier.finish(&manifest, restored.as_ref())?;
    measure(&mut report);
    Ok(report)
}

/// Refuses folders that cannot be what was meant: nothing of them would be read, and nobody would notice.
fn refuse_wrong_logs(source: &Source) -> Result<(), BackupError> {
    for folder in &source.log_folders {
        if !source.disk.exists(folder)? {
            return Err(BackupError::NoLogFolder { folder: folder.clone() });
        }
        if let Some(path) = foreign_segment(source, folder)? {
            return Err(BackupError::ForeignLog { path });
        }
    }
    Ok(())
}

/// Whether images and log are such that there is what was asked for: no image holds anything later, and the
/// log goes as far, so that what is left out is known.
fn check_reach(limit: LogLimit, reach: &LogReach) -> Result<(), BackupError> {
    let LogReach { must_reach_lsn, must_reach_us, end_lsn, end_time_us, is_cut } = *reach;
    let is_early = match limit {
        LogLimit::None => false,
        LogLimit::Lsn(wanted_lsn) => wanted_lsn < must_reach_lsn,
        // Where no block behind the checkpoint is from before the moment, the images alone tell.
        LogLimit::TimeUs(wanted_us) => {
            end_time_us.is_none() && must_reach_us.is_none_or(|reached_us| wanted_us < reached_us)
        }
    };
    if is_early || end_lsn < must_reach_lsn {
        return Err(BackupError::TooEarly { must_reach_lsn, must_reach_us });
    }
    let end_time_us = end_time_us.max(must_reach_us);
    match limit {
        LogLimit::Lsn(wanted_lsn) if end_lsn < wanted_lsn => {
            Err(BackupError::TooLate { wanted_lsn, end_lsn, end_time_us })
        }
        LogLimit::TimeUs(wanted_us) if !is_cut && end_time_us < Some(wanted_us) => {
            Err(BackupError::TimeTooLate { wanted_us, end_lsn, end_time_us })
        }
        _ => Ok(()),
    }
}
