//! Every setting of the engine: unit, default, range and reason.

use std::path::PathBuf;
use std::sync::Arc;

use onrush_latch::{available_cpus, usable_cpus};
use onrush_log::{DelayedWindow, LogOptions, LogWriter};
use onrush_waits::Registry;

use crate::error::{Error, Result};
pub use crate::memory::LargePages;
use crate::memory::MEMORY_BYTES_MIN;
pub use crate::memory::MemoryPlan;
use crate::units::LEAF_BYTES;

/// Background threads that may be inside the engine at the same time.
pub(crate) const BACKGROUND_PERMITS: usize = 1;
/// Frames of leaves, at least.
pub(crate) const FRAMES_MIN: usize = 64;

/// When a commit is acknowledged, and so what it survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Once its log block is synced: it survives a power cut.
    #[default]
    Durable,
    /// At once. It survives the end of the process and a power cut once the declared window has
    /// passed (bytes: always; milliseconds: unless the disk stalls), or a later durable commit is
    /// acknowledged.
    Delayed,
}

/// What happens where many sessions insert ascending keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SequentialKeys {
    /// Each session gets a block of identity values and a leaf of its own for it.
    #[default]
    Blocks,
    /// All sessions draw single values and meet on the last leaf, as in classic engines. For the
    /// study that compares both.
    SharedEdge,
}

/// Whether key ranges that are written to at random places, and are not in memory, keep their rows in a stock on
/// the disk: `docs/past-memory.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PastMemory {
    /// No: each insert into a leaf that is not in memory reads it.
    Off,
    /// Ranges whose leaves are read for inserts again and again get one.
    Auto,
    /// All tables have one from the beginning. For tests.
    Always,
}

/// Who does the work that no session waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Background {
    /// Threads of the engine: log, checkpoints, eviction.
    #[default]
    Threads,
    /// Nobody: sessions write the log themselves, and checkpoints happen when they are called
    /// for. One thread alone then runs the same way every time, which simulation needs.
    Callers,
}

/// The settings of a database. All but the paths may differ from one opening to the next.
///
/// ```
/// use onrush::{Durability, Options};
/// let options = Options { durability: Durability::Delayed, ..Options::default() };
/// assert_eq!(options.delayed_window_ms, 10);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Folders of the data files, one file each, 1 to 16. Empty: one file in the database folder.
    /// Fixed when the database is created. More devices: more bandwidth for checkpoints.
    pub data_folders: Vec<PathBuf>,
    /// Folder of the log. None: `log` in the database folder. Fixed when the database is created.
    /// A device of its own keeps commits away from checkpoint writes.
    pub log_folder: Option<PathBuf>,
    /// Where log segments that no checkpoint needs are moved, for restores to a point in time after a
    /// backup: a folder on the log's file system, of this database alone. None: they are used again,
    /// which is cheaper. With it, what is no longer wanted there is yours to remove.
    pub kept_log_folder: Option<PathBuf>,
    /// Log that is kept beyond `log_capacity_bytes` for whoever archives it, in bytes, from one opening to the next,
    /// too. It is let go when more of it is not archived: the archive then begins anew with a backup. 0: none is kept.
    /// Not without an archive, since nobody would let it go.
    pub archive_log_bytes: u64,
    /// Largest log block in bytes, 512 to 1 MiB. A larger block carries more commits a checksum.
    pub log_block_bytes_max: usize,
    /// Log space in bytes. When it is used up, inserts wait for a checkpoint.
    pub log_capacity_bytes: u64,
    /// Size of one log segment file in bytes, a multiple of 4096.
    pub log_segment_bytes: u64,
    /// Memory between inserters and the log device in bytes, a power of two. A record of the log takes
    /// at most an eighth of it.
    pub log_ring_bytes: usize,
    /// Changes of an open transaction that are kept in memory, in bytes, 1 to 1 GiB and never more than a
    /// sixteenth of the log ring. With more it is a large one: it writes them to leaves and log before it
    /// commits, and may become as large as the disk. More: larger transactions commit as one record, which
    /// costs less and takes more memory.
    pub large_transaction_bytes: usize,
    /// Changes of all open transactions that are kept in memory, in bytes, at least 64 KiB. When they are used up,
    /// the transaction that grows writes its changes to leaves and log at once, as one with more than
    /// `large_transaction_bytes` does. More: more transactions at a time commit as one record.
    pub open_transactions_bytes: u64,
    /// Memory for what rows were before, of all tables, for open snapshots and transactions, in bytes, at least
    /// 4096. When it is used up the oldest snapshot is given up: where something has gone that it may have seen it
    /// is told `SnapshotTooOld`. More: old snapshots last longer while rows are changed.
    pub old_versions_bytes: u64,
    /// Durability of transactions that do not choose for themselves.
    pub durability: Durability,
    /// Delayed commits: the sync is issued within so many milliseconds, at least 1.
    pub delayed_window_ms: u64,
    /// Delayed commits: never more than so many bytes of acknowledged log are not durable.
    pub delayed_window_bytes: u64,
    /// How long a durable commit may poll, in microseconds, before it sleeps; 0: never. Only while
    /// more sessions wait in threads than there are processors, where being woken takes longer than
    /// the sync. It gives its processor to any thread that wants it at each look, so what it costs is
    /// processor time that nobody else asked for.
    pub commit_polling_us: u64,
    /// Memory of the whole process in bytes, at least 64 MiB, divided by [`Options::within`]. As tables
    /// grow, what all their leaves need takes from the memory for leaves. None: no such bound.
    pub memory_bytes: Option<u64>,
    /// Memory for leaves in bytes, at least 64 leaves of 16 KiB, and for what is known of stocks, for which leaves give
    /// way down to a quarter of it. Tables may be much larger.
    pub leaf_memory_bytes: usize,
    /// Whether all memory for leaves is touched at open: opening takes a while longer (about a
    /// second for each few GiB), and no insert pays for the first touch.
    pub prefault_leaf_memory: bool,
    /// A checkpoint starts after so many bytes of log. Longer intervals write less when keys are
    /// random; recovery then takes longer.
    pub checkpoint_log_bytes: u64,
    /// A checkpoint starts after so many seconds if anything has changed. 0: never by time.
    pub checkpoint_seconds: u64,
    /// Redoing the log after a crash takes about so many seconds at most, at the rate of the redo of this
    /// opening, or at 32 MiB of log a second where it was too short to be measured. A checkpoint starts when half
    /// of that log has come together; inserts slow down (wait `CHECKPOINT_LAG`) where the rest comes before it
    /// ends. Shorter: more checkpoints under load, and inserts at the pace of the disk sooner. 0: no such limit.
    pub recovery_seconds: u64,
    /// Large pages for the memory of leaves.
    pub large_pages: LargePages,
    /// Processors that the engine's own threads may use, bit 0 for the first; at least one of them
    /// must be there. None: all.
    pub cpu_mask: Option<u64>,
    /// How many processors sessions and commits reckon with. None: as many as this process may use.
    pub processors: Option<usize>,
    /// Processors that sessions leave free: so many fewer are inside the engine at a time.
    pub cpus_kept_free: usize,
    /// Processor of the log writer, one that there is. None: the system chooses.
    pub log_writer_cpu: Option<usize>,
    /// What happens where many sessions insert ascending keys.
    pub sequential_keys: SequentialKeys,
    /// Whether log records leave out columns that have their constant default.
    pub elide_defaults: bool,
    /// Generated keys are handed out only below a durable mark that is moved this far ahead.
    pub key_reserve: u64,
    /// Whether waits and phases are timed. False: no clock is read for them, and counters alone go on.
    pub record_times: bool,
    /// Who does the work that no session waits for.
    pub background: Background,
    /// What becomes of tables that are larger than memory and whose keys come in no order.
    pub past_memory: PastMemory,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            data_folders: Vec::new(),
            log_folder: None,
            kept_log_folder: None,
            archive_log_bytes: 0,
            log_block_bytes_max: 1 << 20,
            log_capacity_bytes: 4 << 30,
            log_segment_bytes: 64 << 20,
            log_ring_bytes: 64 << 20,
            large_transaction_bytes: 1 << 20,
            open_transactions_bytes: 256 << 20,
            old_versions_bytes: 256 << 20,
            durability: Durability::Durable,
            delayed_window_ms: 10,
            delayed_window_bytes: 16 << 20,
            commit_polling_us: 1000,
            memory_bytes: None,
            leaf_memory_bytes: 1 << 30,
            prefault_leaf_memory: false,
            checkpoint_log_bytes: 1 << 30,
            checkpoint_seconds: 60,
            recovery_seconds: 30,
            large_pages: LargePages::Try,
            cpu_mask: None,
            processors: None,
            cpus_kept_free: 0,
            log_writer_cpu: None,
            sequential_keys: SequentialKeys::Blocks,
            elide_defaults: true,
            key_reserve: 1 << 20,
            record_times: true,
            background: Background::Threads,
            past_memory: PastMemory::Auto,
        }
    }
}

impl Options {
    /// Settings for tiny databases: a few MiB of memory and log in all. For tests and simulation.
    #[must_use]
    pub fn small() -> Options {
        Options {
            log_block_bytes_max: 64 << 10,
            log_capacity_bytes: 4 << 20,
            log_segment_bytes: 64 << 10,
            log_ring_bytes: 256 << 10,
            leaf_memory_bytes: 256 * LEAF_BYTES,
            checkpoint_log_bytes: 1 << 20,
            checkpoint_seconds: 0,
            large_pages: LargePages::Off,
            key_reserve: 1024,
            ..Options::default()
        }
    }

    /// Settings for a process that takes `memory_bytes` in all. Fields that are set afterwards go
    /// before what this chose.
    ///
    /// ```
    /// use onrush::Options;
    /// let options = Options::within(1 << 30);
    /// assert!(options.leaf_memory_bytes + options.log_ring_bytes < 1 << 30);
    /// ```
    #[must_use]
    pub fn within(memory_bytes: u64) -> Options {
        Options::default().divided(memory_bytes)
    }

    /// These settings, with the parts of `memory_bytes` that the engine has.
    #[must_use]
    pub fn divided(self, memory_bytes: u64) -> Options {
        let plan = MemoryPlan::of(memory_bytes);
        // What does not fit the machine's word is refused when it is mapped.
        let word = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Options {
            memory_bytes: Some(memory_bytes),
            leaf_memory_bytes: word(plan.leaves),
            log_ring_bytes: word(plan.log_ring),
            open_transactions_bytes: plan.transactions,
            old_versions_bytes: plan.old_versions,
            ..self
        }
    }

    /// How many sessions may be inside the engine at a time: one more than there are processors
    /// for them.
    pub(crate) fn permits(&self) -> usize {
        self.processors().saturating_sub(self.cpus_kept_free).max(1).saturating_add(1)
    }

    fn processors(&self) -> usize {
        self.processors.unwrap_or_else(available_cpus)
    }

    pub(crate) fn frames(&self) -> usize {
        self.leaf_memory_bytes / LEAF_BYTES
    }

    /// Memory of each of the two batches of rows in which the log is redone: the larger, the more rows of
    /// a leaf are redone together.
    pub(crate) fn redo_batch_bytes(&self) -> usize {
        let work = self.memory_bytes.map(|memory| MemoryPlan::of(memory).work as usize / 2);
        work.unwrap_or(self.leaf_memory_bytes / 32).clamp(256 << 10, 128 << 20)
    }

    /// The largest log record in bytes.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.log_ring_bytes / 8
    }

    /// What a transaction keeps in memory before it is a large one, and so about what one of its pieces takes.
    pub(crate) fn piece_bytes_max(&self) -> usize {
        self.large_transaction_bytes.min(self.record_bytes_max() / 2)
    }

    /// What they say of the log. Its folder, database and registry are for the caller to fill in.
    pub(crate) fn of_log(&self) -> LogOptions {
        let permits = self.permits() + BACKGROUND_PERMITS;
        LogOptions {
            ring_bytes: self.log_ring_bytes,
            segment_bytes: self.log_segment_bytes,
            block_bytes_max: self.log_block_bytes_max,
            capacity_bytes: self.log_capacity_bytes,
            record_bytes_max: self.record_bytes_max() + 16,
            kept_folder: self.kept_log_folder.clone(),
            window: DelayedWindow {
                milliseconds: self.delayed_window_ms,
                bytes: self.delayed_window_bytes,
            },
            commit_polling_us: self.commit_polling_us,
            processors: self.processors(),
            writer: match self.background {
                Background::Threads => LogWriter::Thread { cpu: self.log_writer_cpu },
                Background::Callers => LogWriter::Callers,
            },
            ..LogOptions::new(PathBuf::new(), 0, permits, Arc::new(Registry::new()))
        }
    }

    /// Checks every setting against its range, as opening and creating a database do first. For whoever
    /// wants to know before.
    ///
    /// ```
    /// use onrush::Options;
    /// let options = Options { log_capacity_bytes: 1 << 20, ..Options::default() };
    /// assert!(options.validate().unwrap_err().to_string().contains("log_capacity_bytes"));
    /// ```
    ///
    /// # Errors
    /// The first setting that is out of its range, with that range.
    pub fn validate(&self) -> Result<()> {
        let Options {
            data_folders,
            log_folder: _,
            kept_log_folder: _,
            archive_log_bytes: _,
            log_block_bytes_max,
            log_capacity_bytes,
            log_segment_bytes,
            log_ring_bytes,
            large_transaction_bytes,
            open_transactions_bytes,
            old_versions_bytes,
            durability: _,
            delayed_window_ms,
            delayed_window_bytes,
            commit_polling_us: _,
            memory_bytes,
            leaf_memory_bytes,
            prefault_leaf_memory: _,
            checkpoint_log_bytes,
            checkpoint_seconds: _,
            recovery_seconds: _,
            large_pages: _,
            cpu_mask,
            processors,
            cpus_kept_free: _,
            log_writer_cpu,
            sequential_keys: _,
            elide_defaults: _,
            key_reserve,
            record_times: _,
            background: _,
            past_memory: _,
        } = self;
        let check = |holds: bool, setting: &'static str, given: String, reason: &str| {
            if holds {
                return Ok(());
            }
            Err(Error::BadOption { setting, given, reason: reason.into() })
        };
        let files = data_folders.len();
        check(files <= 16, "data_folders", format!("{files} folders"), "at most 16 data files")?;
        check(
            processors.is_none_or(|processors| (1..=4000).contains(&processors)),
            "processors",
            processors.unwrap_or(0).to_string(),
            "1 to 4000",
        )?;
        check(
            (512..=1 << 20).contains(log_block_bytes_max),
            "log_block_bytes_max",
            size(*log_block_bytes_max as u64),
            "a log block has 512 bytes to 1 MiB",
        )?;
        check(
            log_ring_bytes.is_power_of_two() && *log_ring_bytes >= 64 << 10,
            "log_ring_bytes",
            size(*log_ring_bytes as u64),
            "a power of two, at least 64 KiB",
        )?;
        check(
            (1..=1 << 30).contains(large_transaction_bytes),
            "large_transaction_bytes",
            size(*large_transaction_bytes as u64),
            "1 byte to 1 GiB",
        )?;
        check(
            *open_transactions_bytes >= 64 << 10,
            "open_transactions_bytes",
            size(*open_transactions_bytes),
            "at least 64 KiB",
        )?;
        check(
            *old_versions_bytes >= 4096,
            "old_versions_bytes",
            size(*old_versions_bytes),
            "at least 4096 bytes",
        )?;
        check(
            *log_segment_bytes >= 64 << 10 && log_segment_bytes.is_multiple_of(4096),
            "log_segment_bytes",
            size(*log_segment_bytes),
            "a multiple of 4096, at least 64 KiB",
        )?;
        let least = (*log_ring_bytes as u64)
            .saturating_mul(2)
            .saturating_add(log_segment_bytes.saturating_mul(8))
            .max(self.of_log().capacity_bytes_min());
        check(
            *log_capacity_bytes >= least,
            "log_capacity_bytes",
            size(*log_capacity_bytes),
            &format!(
                "at least twice the ring and eight segments, more where many processors share a small ring: {}",
                size(least)
            ),
        )?;
        // What else the log wants of them: before anything is made.
        self.of_log().validate()?;
        check(*delayed_window_ms >= 1, "delayed_window_ms", "0".into(), "at least 1 millisecond")?;
        check(
            *delayed_window_bytes >= 4096,
            "delayed_window_bytes",
            size(*delayed_window_bytes),
            "at least 4096 bytes",
        )?;
        check(
            *leaf_memory_bytes >= FRAMES_MIN * LEAF_BYTES,
            "leaf_memory_bytes",
            size(*leaf_memory_bytes as u64),
            "at least 64 leaves of 16 KiB, 1 MiB",
        )?;
        if let Some(memory) = *memory_bytes {
            let parts = (*leaf_memory_bytes as u64).saturating_add(*log_ring_bytes as u64);
            check(
                memory >= MEMORY_BYTES_MIN.max(parts),
                "memory_bytes",
                size(memory),
                &format!("at least 64 MiB, and no less than leaves and log ring together: {parts}"),
            )?;
        }
        check(
            *checkpoint_log_bytes >= 4096,
            "checkpoint_log_bytes",
            size(*checkpoint_log_bytes),
            "at least 4096 bytes",
        )?;
        check(*cpu_mask != Some(0), "cpu_mask", "0".into(), "at least one processor")?;
        check(*key_reserve >= 1, "key_reserve", key_reserve.to_string(), "at least 1")?;
        let names_processors = cpu_mask.is_some() || log_writer_cpu.is_some();
        match names_processors.then(usable_cpus).flatten() {
            Some(usable) => self.check_processors(&usable),
            None => Ok(()),
        }
    }

    /// Whether the processors that are named are among the `usable` ones.
    fn check_processors(&self, usable: &[usize]) -> Result<()> {
        let missing = |setting, given| {
            let numbers: Vec<String> = usable.iter().map(usize::to_string).collect();
            let numbers = numbers.join(", ");
            let reason = format!("there is no such processor; this process has {numbers}");
            Err(Error::BadOption { setting, given, reason })
        };
        let is_in = |mask: u64| usable.iter().any(|cpu| *cpu < 64 && mask >> cpu & 1 == 1);
        if let Some(mask) = self.cpu_mask.filter(|mask| !is_in(*mask)) {
            return missing("cpu_mask", format!("{mask:#x}"));
        }
        match self.log_writer_cpu.filter(|cpu| !usable.contains(cpu)) {
            Some(cpu) => missing("log_writer_cpu", cpu.to_string()),
            None => Ok(()),
        }
    }
}

/// So many bytes, in the largest unit that they are a whole number of.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = |(_, shift): &&(&str, u32)| bytes > 0 && bytes.is_multiple_of(1 << *shift);
    match units.iter().find(whole) {
        Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_unit() {
        let sizes = [0, 100_000, 4096, 3 << 20, 2 << 30].map(size);
        assert_eq!(sizes, ["0 bytes", "100000 bytes", "4 KiB", "3 MiB", "2 GiB"]);
    }

    #[test]
    fn a_log_too_small_for_its_ring_is_refused_under_the_name_of_the_setting() {
        let options = Options { log_capacity_bytes: (640 << 20) - 4096, ..Options::default() };
        let message = options.validate().unwrap_err().to_string();
        assert!(message.contains("log_capacity_bytes is 655356 KiB"), "{message}");
        assert!(message.contains("at least twice the ring and eight segments"), "{message}");
    }

    #[test]
    fn the_defaults_are_valid() {
        Options::default().validate().unwrap();
        Options::small().validate().unwrap();
    }

    #[test]
    fn settings_within_a_memory_are_valid_and_refused_where_a_part_is_larger_than_all() {
        for memory in [64 << 20, 1 << 30, 24 << 30] {
            Options::within(memory).validate().unwrap();
        }
        let too_much = Options { leaf_memory_bytes: 2 << 30, ..Options::within(1 << 30) };
        let message = too_much.validate().unwrap_err().to_string();
        assert!(message.contains("memory_bytes"), "{message}");
    }

    #[test]
    fn a_setting_out_of_range_is_named() {
        let options = Options { log_block_bytes_max: 100, ..Options::default() };
        let message = options.validate().unwrap_err().to_string();
        assert!(message.contains("log_block_bytes_max") && message.contains("512"), "{message}");
    }

    #[test]
    fn sessions_leave_free_as_many_processors_as_they_are_told_and_keep_one() {
        let permits = |cpus_kept_free| Options { cpus_kept_free, ..Options::default() }.permits();
        let all = available_cpus();
        assert_eq!((permits(0), permits(all - 1), permits(all + 7)), (all + 1, 2, 2));
    }

    #[test]
    fn processors_that_there_are_not_are_named_with_those_that_there_are() {
        let of =
            |cpu_mask, log_writer_cpu| Options { cpu_mask, log_writer_cpu, ..Options::default() };
        for good in [of(Some(0b110), None), of(Some(u64::MAX), Some(4)), of(None, None)] {
            good.check_processors(&[2, 4]).unwrap();
        }
        for bad in [of(Some(0b1011), None), of(Some(1 << 63), None), of(Some(0b100), Some(3))] {
            let message = bad.check_processors(&[2, 4]).unwrap_err().to_string();
            assert!(message.contains("this process has 2, 4"), "{message}");
        }
    }
}
