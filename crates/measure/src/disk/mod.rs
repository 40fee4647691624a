//! What the device under a folder can do, measured in that folder.
//!
//! - [`sync_time`]: how long one durable 4 KiB write takes. It bounds every synchronous commit.
//! - [`bandwidth`]: sequential writes and random reads. They bound sustained inserts and reads.
//! - [`limits`]: what these figures allow, and so what a result must be held against.

pub mod bandwidth;
pub mod limits;
pub mod sync_time;

use std::path::Path;
use std::time::Duration;

use onrush_files::{DiskError, OsDisk};
use serde::Serialize;

pub use bandwidth::Bandwidth;
pub use limits::commits_per_s_bound;
pub use sync_time::SyncTime;

use crate::machine::FileSystem;
use crate::progress::{Observer, Step};

/// The device under a folder.
#[derive(Clone, Debug, Serialize)]
pub struct DiskReport {
    /// The folder that was measured.
    pub folder: String,
    /// Its file system.
    pub file_system: FileSystem,
    /// A durable write of 4 KiB.
    pub sync: SyncTime,
    /// Sequential writes and random reads.
    pub bandwidth: Bandwidth,
    /// What follows for inserts.
    pub allows: limits::Allowance,
}

/// Measures everything, in a few seconds. Files made for it are removed again.
///
/// # Errors
/// What the disk reports; a full disk above all.
pub fn measure(folder: &Path, observer: &dyn Observer) -> Result<DiskReport, DiskError> {
    let file_system = FileSystem::under(folder)
        .map_err(|error| DiskError::from_io("measure the free space of", folder, error))?;
    let disk = OsDisk::new();
    observer.begin(Step::MeasureSync, None);
    let sync = sync_time::measure(&disk, folder, Duration::from_secs(2))?;
    observer.end();
    observer.begin(Step::MeasureBandwidth, None);
    let bandwidth = bandwidth::measure(&disk, folder, file_system.free_bytes)?;
    observer.end();
    let allows = limits::Allowance::new(&sync, &bandwidth);
    Ok(DiskReport { folder: folder.display().to_string(), file_system, sync, bandwidth, allows })
}

/// A file that is removed when it is not needed any more.
pub(crate) struct ScratchFile<'d> {
    disk: &'d dyn onrush_files::Disk,
    pub(crate) file: std::sync::Arc<dyn onrush_files::DiskFile>,
}

impl<'d> ScratchFile<'d> {
    pub fn new(
        disk: &'d dyn onrush_files::Disk,
        folder: &Path,
        name: &str,
    ) -> Result<ScratchFile<'d>, DiskError> {
        let path = folder.join(format!("onrush-{name}-{}.tmp", std::process::id()));
        let file = disk.open(&path, onrush_files::OpenMode::CreateNew)?;
        Ok(ScratchFile { disk, file })
    }
}

impl Drop for ScratchFile<'_> {
    fn drop(&mut self) {
        // Nothing hangs on it: a file left over says by its name what it is.
        let _ = self.disk.remove(self.file.path());
    }
}
