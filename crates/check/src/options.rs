//! What to check and how.

use onrush_files::Disk;

use crate::error::CheckError;

/// The most threads.
pub const DOP_MAX: usize = 256;
/// Threads for each processor that are of use where reads wait for the device: one checks while another
/// reads. More of them only take the processors, and their caches, from each other.
const THREADS_PER_PROCESSOR: usize = 2;

/// What to check and how. The defaults check everything, with a thread a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Threads that check, 1 to [`DOP_MAX`]; more than one for each processor are not started, or more
    /// than two where each read waits for the device.
    pub dop: usize,
    /// Checksums and structure only; rows are not looked at.
    pub physical_only: bool,
    /// Each data file is read from front to back, one read at a time; without, many reads are on their
    /// way in each. For devices that like one stream (classic trace flag 2549).
    pub read_stream_per_file: bool,
    /// All tables as one batch, in the order of the disk: each data file is read once, from front to
    /// back. Takes some 60 bytes of memory for each leaf (classic trace flag 2562). Without, table
    /// after table in batches of bounded size.
    pub one_batch: bool,
    /// Only this table's directory, images and rows; superblock, catalogue and log all the same.
    pub table: Option<String>,
    /// Give up after so many findings.
    pub max_errors: usize,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            dop: processors().min(DOP_MAX),
            physical_only: false,
            read_stream_per_file: false,
            one_batch: false,
            table: None,
            max_errors: 200,
        }
    }
}

impl CheckOptions {
    /// Threads to start on a disk.
    pub(crate) fn threads(&self, disk: &dyn Disk) -> usize {
        let of_use = if disk.reads_wait() { THREADS_PER_PROCESSOR } else { 1 };
        self.dop.min(of_use * processors())
    }

    pub(crate) fn validate(&self) -> Result<(), CheckError> {
        let bad = |message: String| Err(CheckError::BadOption(message));
        if !(1..=DOP_MAX).contains(&self.dop) {
            return bad(format!("dop is 1 to {DOP_MAX}, and {} was given", self.dop));
        }
        if self.max_errors == 0 {
            return bad("max_errors is at least 1".to_owned());
        }
        Ok(())
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use onrush_files::OsDisk;

    use super::*;

    #[test]
    fn threads_that_would_only_be_in_each_others_way_are_not_started() {
        let threads =
            |dop, disk: OsDisk| CheckOptions { dop, ..CheckOptions::default() }.threads(&disk);
        assert_eq!(threads(1, OsDisk::buffered()), 1);
        assert_eq!(threads(DOP_MAX, OsDisk::buffered()), DOP_MAX.min(processors()));
        assert_eq!(threads(DOP_MAX, OsDisk::new()), DOP_MAX.min(2 * processors()));
    }
}
