//! What the process takes of the machine, looked at from outside, and what it tells of itself.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What the process tells: the first two are as they are now, the rest since its round began.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) leaves: u64,
    pub(crate) slots: u64,
    pub(crate) inserted: u64,
    pub(crate) updated: u64,
    pub(crate) deleted: u64,
    pub(crate) read: u64,
    pub(crate) checkpoints: u64,
    pub(crate) live_rows: u64,
    pub(crate) checks: u64,
    pub(crate) backups: u64,
}

/// One look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Seconds since the run began.
    pub(crate) at: f64,
    /// Its round.
    pub(crate) round: u64,
    /// The round's planned length.
    pub(crate) round_seconds: f64,
    /// How much of the round's planned length is over, 0 to 1.
    pub(crate) part: f64,
    /// Memory of the process that is in use, in bytes.
    pub(crate) resident_bytes: u64,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
    /// Bytes that the file system has given to the data files and all else but the log.
    pub(crate) data_bytes: u64,
    /// The same of the log.
    pub(crate) log_bytes: u64,
    pub(crate) told: Told,
}

/// Looks at a process and at the database's folder; none if the process has just ended.
pub(crate) fn look(process: u32, database: &Path) -> Result<Option<Sample>> {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return Ok(None) };
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    // A process that has ended and is waited for has a status without memory.
    let (Some(resident_kib), Some(threads)) = (number("VmRSS:"), number("Threads:")) else {
        return Ok(None);
    };
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { return Ok(None) };
    let log = database.join("log");
    let log_bytes = if log.exists() { bytes_under(&log)? } else { 0 };
    let all = if database.exists() { bytes_under(database)? } else { 0 };
    Ok(Some(Sample {
        resident_bytes: resident_kib << 10,
        descriptors: descriptors.count() as u64,
        threads,
        data_bytes: all.saturating_sub(log_bytes),
        log_bytes,
        ..Sample::default()
    }))
}

/// Bytes that the files of a folder take of the disk.
fn bytes_under(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry?;
        // Log files come and go.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes +=
            if metadata.is_dir() { bytes_under(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}
