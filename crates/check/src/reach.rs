//! How far the log of a database goes, and from where: what a restore has to know before it makes anything.

use std::path::{Path, PathBuf};

use onrush_files::{AlignedBuffer, Disk, OpenMode};
use onrush_lsn::Lsn;

use crate::decode::block::{UNIT_BYTES, is_segment_of_another, segment_number};
use crate::error::CheckError;
use crate::findings::Findings;
use crate::invariant::Severity;
use crate::progress::Progress;
use crate::source::{LogLimit, Source};
use crate::steps::log;
use crate::steps::records::Records;
use crate::steps::superblock::{self, Contents};
use crate::store::Store;

/// What images and log hold, as far as superblock and log say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogReach {
    /// E: the images hold what is below, so that there is no way back to before it.
    pub must_reach_lsn: Lsn,
    /// When what is below E was durable at the latest, in microseconds since 1970; none if nobody knows.
    pub must_reach_us: Option<u64>,
    /// The end of the last whole record up to the limit.
    pub end_lsn: Lsn,
    /// When the last block up to the limit was built, in microseconds since 1970; none if there is none
    /// behind the checkpoint.
    pub end_time_us: Option<u64>,
    /// Whether there is log behind the limit.
    pub is_cut: bool,
}

/// Reads superblock and log of `source` up to its limit. None where they are damaged: a check tells how.
///
/// # Errors
/// A newer format; a superblock that cannot be read.
pub fn log_reach(source: &Source) -> Result<Option<LogReach>, CheckError> {
    let findings = Findings::new(usize::MAX);
    let contents = superblock::read(&*source.superblock, &source.folder, &findings)?;
    let Some(Contents { copies, folders: Some(folders), .. }) = contents else { return Ok(None) };
    let superblock = copies[0];
    let progress = Progress::default();
    let store = Store {
        disk: source.disk.clone(),
        superblock,
        log_folders: source.log_folders.iter().chain([&folders.log]).cloned().collect(),
        log_limit: source.log_limit,
        durable_lsn: source.durable_lsn,
        folders,
        files: Vec::new(),
        findings: &findings,
        progress: &progress,
        companion: &(),
    };
    let tally = log::check(&store, None::<&mut Records<'_>>);
    let is_damaged =
        findings.into_sorted().iter().any(|finding| finding.severity == Severity::Damage);
    Ok((!is_damaged).then_some(LogReach {
        must_reach_lsn: superblock.end,
        must_reach_us: superblock.end_us,
        end_lsn: tally.end,
        end_time_us: tally.end_time_us,
        is_cut: tally.is_cut && source.log_limit != LogLimit::None,
    }))
}

/// A log segment in `folder` that is of another database than `source` and stands where the log of `source`
/// would go on: none of what `source` needs is there.
///
/// # Errors
/// What cannot be read.
pub fn foreign_segment(source: &Source, folder: &Path) -> Result<Option<PathBuf>, CheckError> {
    let findings = Findings::new(usize::MAX);
    let contents = superblock::read(&*source.superblock, &source.folder, &findings)?;
    let Some(Contents { copies, .. }) = contents else { return Ok(None) };
    let own = copies[0];
    let disk: &dyn Disk = &*source.disk;
    let names = disk.list(folder)?;
    let is_needed =
        |name: &&String| segment_number(name).is_some_and(|number| number >= own.start.segment);
    for name in names.iter().filter(is_needed) {
        let path = folder.join(name);
        let file = disk.open(&path, OpenMode::ReadOnly)?;
        let mut header = AlignedBuffer::new(UNIT_BYTES);
        if file.len()? >= UNIT_BYTES as u64 {
            file.read_at(&mut header, 0)?;
        }
        if is_segment_of_another(&header, own.database_id) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
