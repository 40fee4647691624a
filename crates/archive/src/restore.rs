//! A database out of its archive: the newest complete backup and all log behind it, proven block by block.
//!
//! 1. Find the history, and its backups.
//! 2. Close the history: whoever was thought lost is refused from then on, and what is there stays all there is.
//! 3. Follow the log from the backup's C on, into segments of a folder beside the new one.
//! 4. Put the pages there, and the superblock last: now it is a backup like any other.
//! 5. [`onrush_backup::restore`] makes a database of it, which checks all of it again and draws a new history.

mod follow;
mod staging;

use std::path::Path;
use std::sync::Arc;

use onrush::Lsn;
use onrush_backup::{BackupError, BackupReport, RestoreOptions};
use onrush_check::{CheckOptions, LogLimit, Progress};
use onrush_files::Disk;
use serde::Serialize;

use crate::error::ArchiveError;
use crate::manifest::{Manifest, complete_backups, read};
use crate::object::{Kind, LogObject};
use crate::store::{Created, Place, history_of};
use follow::follow;
use staging::Staging;

/// What to restore, and how.
#[derive(Clone, Debug)]
pub struct FromArchive {
    /// Up to where.
    pub limit: LogLimit,
    /// Whether to take what is there where something is missing or damaged.
    pub as_far_as_possible: bool,
    /// Whether to close the history in the archive, so that nobody goes on with it. Not for looking into the archive
    /// of a node that lives.
    pub closes: bool,
    /// How to check what is restored.
    pub check: CheckOptions,
}

impl Default for FromArchive {
    fn default() -> FromArchive {
        FromArchive {
            limit: LogLimit::None,
            as_far_as_possible: false,
            closes: true,
            check: CheckOptions::default(),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct FromArchiveReport {
    /// The history that was restored, as a word.
    pub from_history: String,
    /// Every commit of it below is there.
    pub end_lsn: Lsn,
    /// The end of the backup that was taken.
    pub backup_lsn: Lsn,
    /// Objects of the log that were read.
    pub log_objects: u64,
    /// Bytes of log blocks in them.
    pub log_bytes: u64,
    /// Whether the history was closed, now or earlier.
    pub is_closed: bool,
    /// What is missing, where as much as possible was asked for.
    pub missing: Option<String>,
    /// What was made.
    pub database: BackupReport,
}

impl std::fmt::Display for FromArchiveReport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FromArchiveReport { from_history, end_lsn, backup_lsn, log_objects, log_bytes, .. } =
            self;
        writeln!(formatter, "{}", self.database)?;
        writeln!(
            formatter,
            "history {from_history} up to LSN {end_lsn}: a backup up to LSN {backup_lsn}, and {log_objects} objects \
             of log, {:.1} MB; history {} goes on from there",
            *log_bytes as f64 / 1e6,
            self.database.history
        )?;
        if let Some(missing) = &self.missing {
            writeln!(formatter, "not all: {missing}")?;
        }
        write!(
            formatter,
            "{}",
            match self.is_closed {
                true => "the old history is closed: its database archives nothing any more",
                false => "the old history is not closed: its database may go on",
            }
        )
    }
}

/// Makes a database in the new folder `into` of the archive at `place`. Beside it, a folder of the same name and
/// `.from-archive` has what comes from the store meanwhile. Not on a thread of a runtime.
///
/// # Errors
/// No archive, or several; something missing or damaged; a store that is away; a folder that cannot be written.
pub fn restore(
    disk: &Arc<dyn Disk>,
    place: &Place,
    into: &Path,
    options: &FromArchive,
    progress: &Progress,
) -> Result<FromArchiveReport, ArchiveError> {
    if disk.exists(into)? && !disk.list(into)?.is_empty() {
        return Err(BackupError::TargetExists { folder: into.into() }.into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|cause| {
        ArchiveError::Away(crate::StoreError::new("read", &place.to_string(), &cause))
    })?;
    let staging = Staging::new(Arc::clone(disk), into)?;
    let fetched = runtime.block_on(fetch(place, &staging, options));
    let made = fetched.and_then(|fetched| {
        let restore = RestoreOptions {
            check: options.check.clone(),
            limit: options.limit,
            log_folders: Vec::new(),
        };
        let from = staging.folder();
        let database = onrush_backup::restore(Arc::clone(disk), from, into, &restore, progress)?;
        Ok(FromArchiveReport { end_lsn: database.end_lsn, database, ..fetched })
    });
    staging.remove();
    made
}

async fn fetch(
    place: &Place,
    staging: &Staging,
    options: &FromArchive,
) -> Result<FromArchiveReport, ArchiveError> {
    let history = find_history(place).await?;
    let word = format!("{history:032x}");
    let mut backups = fitting_backups(place, history, options).await?;
    if backups.is_empty() {
        let before = match options.limit {
            LogLimit::Lsn(lsn) => Some(lsn),
            _ => None,
        };
        return Err(ArchiveError::NoBackup { history: word, before });
    }
    let is_closed = options.closes && close(place, history).await?;
    // The newest one, unless less will do.
    loop {
        let Some((end, manifest)) = backups.pop() else {
            return Err(ArchiveError::NoBackup { history: word, before: None });
        };
        let fetched = fetch_backup(place, history, staging, (end, &manifest), options).await;
        match fetched {
            Err(ArchiveError::Incomplete { .. } | ArchiveError::Damaged { .. })
                if options.as_far_as_possible && !backups.is_empty() =>
            {
                staging.clear()?;
            }
            fetched => {
                return Ok(FromArchiveReport { is_closed, from_history: word, ..fetched? });
            }
        }
    }
}

/// The pages of a backup and the log behind it.
async fn fetch_backup(
    place: &Place,
    history: u128,
    staging: &Staging,
    (end, manifest): (Lsn, &Manifest),
    options: &FromArchive,
) -> Result<FromArchiveReport, ArchiveError> {
    let name = crate::manifest::manifest_name(end);
    let followed = follow(place, history, manifest.start(&name)?, staging).await?;
    let must_reach = Lsn(manifest.must_reach_lsn);
    if let Some(missing) = &followed.missing
        && (!options.as_far_as_possible || followed.reached.lsn < must_reach)
    {
        return Err(ArchiveError::Incomplete {
            reached: followed.reached.lsn,
            what: missing.clone(),
        });
    }
    staging.put_pages(place, history, &name, manifest).await?;
    staging.finish(&name, manifest)?;
    Ok(FromArchiveReport {
        from_history: String::new(),
        end_lsn: followed.reached.lsn,
        backup_lsn: end,
        log_objects: followed.objects,
        log_bytes: followed.bytes,
        is_closed: false,
        missing: followed.missing,
        database: BackupReport::default(),
    })
}

/// The history that the place names, or the only one that is there.
async fn find_history(place: &Place) -> Result<u128, ArchiveError> {
    let found = place.store.folders("").await?;
    let found: Vec<u128> = found.iter().filter_map(|word| history_of(word)).collect();
    let none = || ArchiveError::NoArchive { place: place.to_string() };
    if let Some(history) = place.history() {
        return found.contains(&history).then_some(history).ok_or_else(none);
    }
    match found[..] {
        [] => Err(none()),
        [history] => Ok(history),
        _ => {
            // Those that were closed have a successor.
            let mut open = Vec::new();
            for history in &found {
                if !is_closed(place, *history).await? {
                    open.push(*history);
                }
            }
            match open[..] {
                [history] => Ok(history),
                _ => {
                    let words: Vec<String> =
                        found.iter().map(|history| format!("{history:032x}")).collect();
                    let (place, found) = (place.to_string(), words.join(", "));
                    Err(ArchiveError::SeveralHistories { place, found })
                }
            }
        }
    }
}

/// The backups that can be restored to the limit, the newest last.
async fn fitting_backups(
    place: &Place,
    history: u128,
    options: &FromArchive,
) -> Result<Vec<(Lsn, Manifest)>, ArchiveError> {
    let ends = complete_backups(&*place.store, &format!("{history:032x}")).await?;
    let mut fitting = Vec::new();
    for end in ends {
        let manifest = match read(place, history, end).await {
            Ok(manifest) => manifest,
            Err(ArchiveError::Damaged { .. }) if options.as_far_as_possible => continue,
            Err(error) => return Err(error),
        };
        let fits = match options.limit {
            LogLimit::None => true,
            LogLimit::Lsn(lsn) => Lsn(manifest.must_reach_lsn) <= lsn,
            LogLimit::TimeUs(time_us) => {
                manifest.must_reach_us.is_some_and(|reached_us| reached_us <= time_us)
            }
        };
        if fits {
            fitting.push((end, manifest));
        }
    }
    Ok(fitting)
}

/// The object with which the log of a history ends; none if there is none.
async fn last_object(place: &Place, history: u128) -> Result<Option<LogObject>, ArchiveError> {
    let listed = place.store.list(&format!("{history:032x}/log")).await?;
    let Some(last) = listed.last() else { return Ok(None) };
    Ok(Some(
        read_object(place, history, short(&last.name)).await?.ok_or_else(|| {
            crate::object::damaged(short(&last.name), "it was listed, and is gone")
        })?,
    ))
}

/// Without the history.
fn short(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, short)| short)
}

async fn read_object(
    place: &Place,
    history: u128,
    name: &str,
) -> Result<Option<LogObject>, ArchiveError> {
    let bytes = place.store.read(&format!("{history:032x}/{name}")).await?;
    bytes.map(|bytes| LogObject::open(name, history, &bytes)).transpose()
}

async fn is_closed(place: &Place, history: u128) -> Result<bool, ArchiveError> {
    let last = last_object(place, history).await?;
    Ok(last.is_some_and(|last| last.kind == Kind::Closed))
}

/// Nothing follows from now on. Whoever goes on meanwhile is followed to where it is.
async fn close(place: &Place, history: u128) -> Result<bool, ArchiveError> {
    let Some(mut last) = last_object(place, history).await? else { return Ok(false) };
    while last.kind != Kind::Closed {
        let marker = LogObject::marker(Kind::Closed, last.database_id, last.to, last.to);
        let name = format!("{history:032x}/{}", marker.name());
        if place.store.create(&name, marker.seal(history)).await? == Created::Created {
            return Ok(true);
        }
        let found = read_object(place, history, &marker.name()).await?;
        last = found
            .ok_or_else(|| crate::StoreError::new("write", &name, &crate::store::CONTRADICTION))?;
    }
    Ok(true)
}
