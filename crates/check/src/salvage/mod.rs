//! What of a damaged database can still be proven good, handed over row by row. Nothing is written
//! here, and nothing is guessed: a row counts when its image or its log record passes every test that
//! the check has.
//!
//! 1. The newest whole superblock whose root can be read (`start.rs`).
//! 2. The log once: where its good part ends, which tables there are then (`survey.rs`).
//! 3. The images of those tables, leaf by leaf in key order (`images.rs`).
//! 4. The log again: what it changes (`changes.rs`).
//! 5. The counters behind generated keys, beyond all that was met.

mod changes;
mod images;
mod report;
mod start;
mod survey;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use onrush_files::Disk;

pub use report::{Loss, SalvageReport};

use crate::decode::superblock::FILE_NAME;
use crate::error::CheckError;
use crate::findings::Findings;
use crate::progress::Progress;
use crate::run::refuse_unfinished;
use crate::salvage::changes::Changes;
use crate::salvage::images::Images;
use crate::salvage::start::Start;
use crate::salvage::survey::{Survey, Wanted};
use crate::steps::catalogue::Catalogue;
use crate::steps::large::LargeStatuses;
use crate::steps::log;
use crate::store::Store;

/// Takes what is salvaged. Tables are named by their place in the list given to
/// [`begin`](Self::begin).
pub trait SalvageTarget {
    /// What can go wrong there; it ends the salvage.
    type Error;

    /// The tables that will follow; called once, before anything else. Not called, and nothing
    /// else, where no table could be found and something is lost.
    ///
    /// # Errors
    /// The target's.
    fn begin(&mut self, tables: &[SalvagedTable]) -> Result<(), Self::Error>;

    /// Makes a whole row of its elided form, in place of what is in `row`; false if that cannot be.
    /// `names_version`: whether the elided form begins with its version.
    fn expand(
        &mut self,
        table: usize,
        elided: &[u8],
        names_version: bool,
        row: &mut Vec<u8>,
    ) -> bool;

    /// A row of an image. Of each table in key order, each key once unless the directory is damaged.
    ///
    /// # Errors
    /// The target's.
    fn image_row(&mut self, table: usize, key: &[u8], row: &[u8]) -> Result<(), Self::Error>;

    /// A row of the log, new or in place of the one with its key. After all rows of images.
    ///
    /// # Errors
    /// The target's.
    fn put(&mut self, table: usize, key: &[u8], row: &[u8]) -> Result<(), Self::Error>;

    /// The log removes a row, if it is there.
    ///
    /// # Errors
    /// The target's.
    fn remove(&mut self, table: usize, key: &[u8]) -> Result<(), Self::Error>;

    /// Numbers of a generated column below `next` are or were in use. Last of all.
    ///
    /// # Errors
    /// The target's.
    fn counter(&mut self, table: usize, column: &str, next: u64) -> Result<(), Self::Error>;
}

/// A table that is salvaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvagedTable {
    /// The name.
    pub name: String,
    /// The number by which definitions of other tables name it.
    pub number: u32,
    /// The table definition, as stored.
    pub definition: Vec<u8>,
}

/// Why a salvage ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SalvageError<E> {
    /// The database could not be looked at.
    #[error(transparent)]
    Source(CheckError),
    /// The target refused.
    #[error("{0}")]
    Target(E),
}

impl<E> From<CheckError> for SalvageError<E> {
    fn from(error: CheckError) -> SalvageError<E> {
        SalvageError::Source(error)
    }
}

/// Hands everything that can be proven good to `target`: of all tables, or of those named. Nobody may
/// have the database open; its folders are locked as long, and nothing else in them is written.
///
/// # Errors
/// No database, one that is open, one of a newer format, no such table; an error of the target.
/// Whatever is wrong with the data is in the report.
pub fn salvage<T: SalvageTarget>(
    disk: Arc<dyn Disk>,
    folder: &Path,
    tables: &[String],
    progress: &Progress,
    target: &mut T,
) -> Result<SalvageReport, SalvageError<T::Error>> {
    refuse_unfinished(&*disk, folder)?;
    let exists = |path: &Path| disk.exists(path).map_err(CheckError::from);
    if !exists(folder)? || !exists(&folder.join(FILE_NAME))? {
        return Err(CheckError::NotFound { folder: folder.into() }.into());
    }
    let _own_lock = disk.lock(folder).map_err(CheckError::from)?;
    let findings = Findings::new(usize::MAX);
    let mut report = SalvageReport::default();
    let start = Start::find(&disk, folder, &findings, progress, &mut report)?;
    report.take(&findings);
    let Some(start) = start else { return Ok(report) };
    let _locks = start.lock_others(folder)?;
    salvage_store(&start.store, &start.catalogue, tables, target, &mut report)?;
    Ok(report)
}

fn salvage_store<T: SalvageTarget>(
    store: &Store<'_>,
    catalogue: &Catalogue,
    tables: &[String],
    target: &mut T,
    report: &mut SalvageReport,
) -> Result<(), SalvageError<T::Error>> {
    let mut survey = Survey::new(catalogue);
    let log = log::check(store, Some(&mut survey));
    let end = survey.end.unwrap_or(log.end);
    report.take_log(store.findings, end, log.proven);
    let mut wanted = Wanted::new(catalogue, survey, tables)?;
    if wanted.tables.is_empty() && !report.losses.is_empty() {
        return Ok(());
    }
    report.begin(&wanted);
    target.begin(&wanted.described()).map_err(SalvageError::Target)?;
    let mut newer = HashSet::new();
    let statuses = LargeStatuses::read(store, catalogue, Some(end));
    let mut images = Images::new(store, catalogue, (end, &statuses), &mut newer);
    for table in 0..wanted.tables.len() {
        images.hand_over(&mut wanted, table, target, report).map_err(SalvageError::Target)?;
    }
    Changes::hand_over(store, &mut wanted, &newer, (end, &statuses), target, report)
        .map_err(SalvageError::Target)?;
    for (number, table) in wanted.tables.iter().enumerate() {
        for (column, next) in table.counters() {
            target.counter(number, column, next).map_err(SalvageError::Target)?;
        }
    }
    Ok(())
}
