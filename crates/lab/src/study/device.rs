//! What the device under a folder has done, by the kernel's own count: the only count of syncs that
//! is the same for every target. Everything on the machine that uses the device is in it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::study::outcome::DeviceUse;

/// The kernel counts in sectors of this size, whatever the device's own is.
const SECTOR_BYTES: f64 = 512.0;

/// Counts since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceCount {
    sectors_read: u64,
    writes: u64,
    sectors_written: u64,
    syncs: u64,
}

impl DeviceCount {
    /// Of the device under a folder; None where the kernel does not tell.
    pub(super) fn under(folder: &Path) -> Option<DeviceCount> {
        let device = fs::metadata(folder).ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        counts_of(&fs::read_to_string("/proc/diskstats").ok()?, major, minor)
    }

    /// What was done in between.
    pub(super) fn since(&self, earlier: &DeviceCount, elapsed: Duration) -> DeviceUse {
        let mb_per_s = |sectors: u64| {
            sectors as f64 * SECTOR_BYTES / 1e6 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
        };
        DeviceUse {
            write_mb_per_s: mb_per_s(self.sectors_written.saturating_sub(earlier.sectors_written)),
            read_mb_per_s: mb_per_s(self.sectors_read.saturating_sub(earlier.sectors_read)),
            writes: self.writes.saturating_sub(earlier.writes),
            syncs: self.syncs.saturating_sub(earlier.syncs),
        }
    }
}

/// The columns of `/proc/diskstats`: two numbers, a name, then counts of which the sixth sector
/// read, the fifth write, the seventh sector written, and since Linux 5.5 the sixteenth, syncs.
fn counts_of(diskstats: &str, major: u32, minor: u32) -> Option<DeviceCount> {
    let line = diskstats.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let is_it = words.next()? == major.to_string() && words.next()? == minor.to_string();
        is_it.then(|| words.skip(1).filter_map(|word| word.parse().ok()).collect::<Vec<u64>>())
    })?;
    Some(DeviceCount {
        sectors_read: *line.get(2)?,
        writes: *line.get(4)?,
        sectors_written: *line.get(6)?,
        syncs: *line.get(15)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISKSTATS: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 763 54 3388 360 562 20 7080 1855 0 888 572 202 2 598 139 233 128
";

    #[test]
    fn the_right_line_and_columns_are_read() {
        let count = counts_of(DISKSTATS, 254, 0).unwrap();
        let expected =
            DeviceCount { sectors_read: 3388, writes: 562, sectors_written: 7080, syncs: 233 };
        assert_eq!(count, expected);
        assert_eq!(counts_of(DISKSTATS, 8, 0), None);
        assert_eq!(counts_of("254 0 vda 1 2 3", 254, 0), None);
    }

    #[test]
    fn a_difference_is_in_bytes_a_second() {
        let later = DeviceCount { sectors_written: 2_000_000, syncs: 7, ..Default::default() };
        let used = later.since(&DeviceCount::default(), Duration::from_secs(2));
        assert!((used.write_mb_per_s - 512.0).abs() < 1e-9);
        assert_eq!(used.syncs, 7);
    }
}
