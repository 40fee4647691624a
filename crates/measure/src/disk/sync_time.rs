//! How long the device takes to make 4 KiB durable: the F of every bound N/F.

use std::path::Path;
use std::time::{Duration, Instant};

use onrush_files::{AlignedBuffer, BLOCK_BYTES, Disk, DiskError};
use serde::{Deserialize, Serialize};

use super::ScratchFile;

/// Overwritten in turn, so that neither allocation nor the file's length is part of the time.
const FILE_BYTES: usize = 4 << 20;
/// So many writes at least, however slow the device is.
const SAMPLES_MIN: usize = 32;
/// So many at most: more tell nothing new.
const SAMPLES_MAX: usize = 50_000;

/// Times of a durable 4 KiB overwrite in a zero-filled file, one at a time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncTime {
    /// The middle one.
    pub p50_us: f64,
    /// The 99th of a hundred.
    pub p99_us: f64,
    /// The average, which bounds a closed loop.
    pub mean_us: f64,
    /// Writes measured.
    pub samples: usize,
}

impl SyncTime {
    /// Of any number of samples.
    fn of(mut nanos: Vec<u64>) -> SyncTime {
        nanos.sort_unstable();
        let at = |percent: usize| {
            let index = (nanos.len() * percent / 100).min(nanos.len().saturating_sub(1));
            nanos.get(index).map_or(0.0, |value| *value as f64 / 1e3)
        };
        let sum: u64 = nanos.iter().sum();
        SyncTime {
            p50_us: at(50),
            p99_us: at(99),
            mean_us: sum as f64 / 1e3 / nanos.len().max(1) as f64,
            samples: nanos.len(),
        }
    }

    /// The better of two measurements. For a device that drifted between them: a bound made of it
    /// does not flatter.
    #[must_use]
    pub fn better(self, other: SyncTime) -> SyncTime {
        if other.p50_us < self.p50_us { other } else { self }
    }
}

/// Measures for about `budget`, in `folder`.
///
/// # Errors
/// What the disk reports.
pub fn measure(disk: &dyn Disk, folder: &Path, budget: Duration) -> Result<SyncTime, DiskError> {
    let scratch = ScratchFile::new(disk, folder, "sync")?;
    scratch.file.allocate(FILE_BYTES as u64)?;
    scratch.file.write_at(&AlignedBuffer::new(FILE_BYTES), 0)?;
    scratch.file.sync()?;
    let block = AlignedBuffer::from_bytes(&[0xA5; BLOCK_BYTES]);
    let mut nanos = Vec::new();
    let started = Instant::now();
    while nanos.len() < SAMPLES_MAX {
        if nanos.len() >= SAMPLES_MIN && started.elapsed() > budget {
            break;
        }
        let offset = nanos.len() * BLOCK_BYTES % FILE_BYTES;
        let before = Instant::now();
        scratch.file.write_at_durable(&block, offset as u64)?;
        nanos.push(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(SyncTime::of(nanos))
}

#[cfg(test)]
mod tests {
    use onrush_files::MemoryDisk;

    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let time = SyncTime::of((1..=100).rev().map(|n| n * 1000).collect());
        assert_eq!((time.p50_us, time.p99_us, time.samples), (51.0, 100.0, 100));
        assert!((time.mean_us - 50.5).abs() < 1e-9);
        assert_eq!(SyncTime::of(Vec::new()).samples, 0);
    }

    #[test]
    fn measuring_leaves_no_file_behind() {
        let disk = MemoryDisk::new();
        let folder = Path::new("/db");
        disk.create_folder(folder).unwrap();
        let time = measure(&disk, folder, Duration::from_millis(1)).unwrap();
        assert!(time.samples >= SAMPLES_MIN);
        assert_eq!(disk.list(folder).unwrap(), Vec::<String>::new());
    }
}
