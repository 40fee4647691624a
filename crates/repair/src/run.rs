//! One repair from its first step to its report.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use onrush_check::{CheckOptions, Progress, SalvageReport, Source, check_source, salvage};
use onrush_files::unfinished::unmark;
use onrush_files::{Disk, Making, Unfinished};

use crate::error::RepairError;
use crate::options::RepairOptions;
use crate::progress::RepairProgress;
use crate::report::{Outcome, RepairReport, RepairedTable};
use crate::writer::Writer;

/// Salvages the database in `folder`, which nobody may have open, into a new one in `into`, which is
/// made. The new database is durable, closed and checked when this returns.
///
/// # Errors
/// A folder `into` that exists or lies in the damaged database; no database, one that is open, one of
/// a newer format, no such table; a new database that cannot be written, or is not what was written.
pub fn repair(
    disk: Arc<dyn Disk>,
    folder: &Path,
    into: &Path,
    options: &RepairOptions,
    progress: &RepairProgress,
) -> Result<RepairReport, RepairError> {
    if into.starts_with(folder) {
        return Err(RepairError::TargetInside { folder: into.into() });
    }
    if disk.exists(into)? {
        return Err(RepairError::TargetExists { folder: into.into() });
    }
    let started = Instant::now();
    let mark = Unfinished { folder: into.into(), making: Making::Repair, from: folder.into() };
    let mut writer = Writer::new(Arc::clone(&disk), mark, &options.engine, progress);
    let salvaged =
        salvage(Arc::clone(&disk), folder, &options.tables, &progress.read, &mut writer)?;
    let has_tables = !salvaged.tables.is_empty();
    let mut report = RepairReport {
        outcome: outcome_of(&salvaged, has_tables),
        into: into.into(),
        salvaged,
        ..RepairReport::default()
    };
    let written = if report.outcome == Outcome::NothingSalvaged {
        None
    } else {
        writer.finish(&mut report.salvaged.losses)?
    };
    report.outcome = outcome_of(&report.salvaged, has_tables);
    if let Some(written) = written {
        verify(Arc::clone(&disk), into, &written)?;
        unmark(&*disk, into)?;
        report.repaired = written;
    }
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

fn outcome_of(salvaged: &SalvageReport, has_tables: bool) -> Outcome {
    match (salvaged.losses.is_empty(), has_tables) {
        (true, _) => Outcome::NothingLost,
        (false, true) => Outcome::SomethingLost,
        (false, false) => Outcome::NothingSalvaged,
    }
}

/// Checks the new database, and that it has as many rows as were written.
fn verify(
    disk: Arc<dyn Disk>,
    folder: &Path,
    written: &[RepairedTable],
) -> Result<(), RepairError> {
    // Nobody else opens it: the mark is still there, so nothing has to be locked.
    let source = Source::whole(disk, folder)?;
    let checked = check_source(&source, &CheckOptions::default(), &Progress::default(), &())?;
    if !checked.is_sound() {
        return Err(RepairError::NotVerified(checked.to_string()));
    }
    for table in written {
        let found = checked.tables.iter().find(|found| found.name == table.name);
        let rows = found.map_or(0, |found| found.rows);
        if rows != table.rows {
            let RepairedTable { name, rows: expected, .. } = table;
            let words = format!("table {name} has {rows} rows, and {expected} were written");
            return Err(RepairError::NotVerified(words));
        }
    }
    Ok(())
}
