//! Where a measurement was made: processors, system, file system, free space.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::units;

/// The machine, as far as it says what a figure is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Processors this process may use.
    pub cpus: usize,
    /// The processor's name.
    pub cpu_name: String,
    /// Memory in bytes; 0 where unknown.
    pub memory_bytes: u64,
    /// Operating system and its version.
    pub system: String,
}

impl Machine {
    /// This machine.
    pub fn this() -> Machine {
        let cpu_name = value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
        let memory_kib = value_of("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            cpus: cpus(),
            cpu_name,
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            system: format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned(),
        }
    }
}

/// Processors this process may use.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Makes this thread, and those it starts, keep to one processor: the n-th it may use, in turn.
///
/// # Errors
/// The system does not permit it.
pub fn keep_to_processor(number: usize) -> Result<(), MeasureError> {
    let refused = |error: rustix::io::Errno| MeasureError::Pinning(error.to_string());
    let allowed = rustix::thread::sched_getaffinity(None).map_err(refused)?;
    let usable: Vec<usize> =
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let Some(cpu) = usable.get(number % usable.len().max(1)) else { return Ok(()) };
    let mut own = rustix::thread::CpuSet::new();
    own.set(*cpu);
    rustix::thread::sched_setaffinity(None, &own).map_err(refused)
}

/// Whether this process may tie its threads to processors.
///
/// # Errors
/// The system does not permit it: what it said, and the cure.
pub fn may_pin() -> Result<(), MeasureError> {
    let refused = |error: rustix::io::Errno| MeasureError::Pinning(error.to_string());
    let allowed = rustix::thread::sched_getaffinity(None).map_err(refused)?;
    rustix::thread::sched_setaffinity(None, &allowed).map_err(refused)
}

/// Bytes of large pages that are reserved and free.
pub fn large_page_bytes_free() -> u64 {
    let number = |name: &str| {
        let text = value_of("/proc/meminfo", name)?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    let (pages, kib) = (number("HugePages_Free"), number("Hugepagesize"));
    pages.unwrap_or(0) * kib.unwrap_or(0) * 1024
}

/// Bytes of this process's memory that lie in large pages, be they reserved or put together by the
/// system; 0 where it does not tell.
pub fn large_page_bytes_used() -> u64 {
    large_page_bytes(&fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default())
}

fn large_page_bytes(rollup: &str) -> u64 {
    let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let is_large = |line: &&str| {
        ["AnonHugePages:", "Private_Hugetlb:", "Shared_Hugetlb:"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    rollup.lines().filter(is_large).filter_map(kib).sum::<u64>() * 1024
}

/// What is missing of so many bytes of large pages, and how to get them; ends where a caller names the
/// setting that does without. None if they are there.
pub fn large_pages_missing(bytes: u64) -> Option<String> {
    let free = large_page_bytes_free();
    (free < bytes).then(|| {
        format!(
            "needs {} of large pages, and {} are reserved and free: as root, write the number of \
             pages to /proc/sys/vm/nr_hugepages; or set",
            units::bytes(bytes),
            units::bytes(free)
        )
    })
}

/// Bytes that this process has caused to be written to devices so far; 0 where the system does not tell.
pub fn written_bytes() -> u64 {
    value_of("/proc/self/io", "write_bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// The most memory that this process has had since [`forget_memory_peak`]; 0 where the system does not
/// tell.
pub fn memory_bytes_peak() -> u64 {
    let text = value_of("/proc/self/status", "VmHWM");
    let kib = text.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// From now on [`memory_bytes_peak`] counts anew, where the system can.
pub fn forget_memory_peak() {
    const PEAK: &str = "5";
    let _ = fs::write("/proc/self/clear_refs", PEAK);
}

fn value_of(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Processor time that this process has used so far, all its threads together.
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The file system under a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Its type: `ext4`, `xfs`, `tmpfs`, ...
    pub kind: String,
    /// The device or whatever else is mounted.
    pub device: String,
    /// Space that this user may still take, in bytes.
    pub free_bytes: u64,
}

impl FileSystem {
    /// The file system under `path`, or under the nearest folder above it that exists.
    ///
    /// # Errors
    /// What the system reports when asked for the free space.
    pub fn under(path: &Path) -> std::io::Result<FileSystem> {
        let folder = existing_folder(path)?;
        let space = rustix::fs::statvfs(&folder)?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (kind, device) = mount_of(&mounts, &folder)
            .unwrap_or_else(|| ("unknown".to_owned(), "unknown".to_owned()));
        Ok(FileSystem { kind, device, free_bytes: space.f_bavail.saturating_mul(space.f_frsize) })
    }

    /// Whether it lives in memory, where a sync costs nothing and nothing survives a power cut.
    pub fn is_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs" | "devtmpfs")
    }
}

/// The nearest folder at or above `path` that exists, as a full path.
fn existing_folder(path: &Path) -> std::io::Result<PathBuf> {
    let full = std::path::absolute(path)?;
    let found = full.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    found.canonicalize()
}

/// Type and device of the last mount whose place is the longest that `folder` starts with.
fn mount_of(mountinfo: &str, folder: &Path) -> Option<(String, String)> {
    let mut best: Option<(usize, String, String)> = None;
    for line in mountinfo.lines() {
        let Some((front, back)) = line.split_once(" - ") else { continue };
        let Some(place) = front.split(' ').nth(4) else { continue };
        let place = place.replace("\\040", " ");
        let mut words = back.split(' ');
        let (Some(kind), Some(device)) = (words.next(), words.next()) else { continue };
        let is_longer = best.as_ref().is_none_or(|(length, ..)| place.len() >= *length);
        if folder.starts_with(&place) && is_longer {
            best = Some((place.len(), kind.to_owned(), device.to_owned()));
        }
    }
    best.map(|(_, kind, device)| (kind, device))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /dev/shm rw - tmpfs shm rw
24 22 254:16 / /mnt/my\\040disk rw - xfs /dev/vdb rw
";

    #[test]
    fn a_folder_belongs_to_the_longest_mount_above_it() {
        let kind = |path: &str| mount_of(MOUNTS, Path::new(path)).map(|(kind, _)| kind);
        assert_eq!(kind("/home/me").as_deref(), Some("ext4"));
        assert_eq!(kind("/dev/shm/x").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/dev/shmoo").as_deref(), Some("ext4"));
        assert_eq!(kind("/mnt/my disk/db").as_deref(), Some("xfs"));
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    #[test]
    fn a_folder_that_does_not_exist_yet_is_looked_up_by_the_one_above() {
        let folder = tempfile::tempdir().unwrap();
        let here = FileSystem::under(folder.path()).unwrap();
        let below = FileSystem::under(&folder.path().join("not/yet")).unwrap();
        assert_eq!(here.device, below.device);
        assert!(here.free_bytes > 0);
    }

    #[test]
    fn large_pages_are_summed_whoever_put_them_together() {
        let rollup = "Rss:  9000 kB\nAnonHugePages:   4096 kB\nShmemPmdMapped:  8 kB\n\
                      Shared_Hugetlb:  0 kB\nPrivate_Hugetlb:   2048 kB\n";
        assert_eq!(large_page_bytes(rollup), 6 << 20);
        assert_eq!(large_page_bytes(""), 0);
    }

    #[test]
    fn processor_time_goes_forward() {
        let before = cpu_time();
        let sum = (0..2_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        assert!(cpu_time() > before, "{sum}");
    }
}
