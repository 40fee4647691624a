//! The settings of an archive.

use std::time::Duration;

use onrush::OnlineOptions;

/// See the module.
#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    /// Log goes to the archive at most so often, unless a commit waits for it: what may be lost with the machine.
    pub interval: Duration,
    /// No object of the log has more bytes of blocks.
    pub object_bytes: usize,
    /// No part of a backup has many more bytes of pages.
    pub part_bytes: usize,
    /// Log that is not archived is let go when it takes more space beside what checkpoints need; the archive then goes
    /// on with a new backup.
    pub log_bytes_max: u64,
    /// A new backup is made when the log behind the newest one has so many bytes of records.
    pub backup_log_bytes: u64,
    /// How a backup goes about it.
    pub online: OnlineOptions,
    /// The pause after the first failure of the store; each further one is twice as long.
    pub pause: Duration,
    /// No pause is longer.
    pub pause_max: Duration,
    /// What is durable is archived at the end, unless that takes longer.
    pub last_wait: Duration,
}

impl Default for ArchiveOptions {
    fn default() -> ArchiveOptions {
        ArchiveOptions {
            interval: Duration::from_secs(1),
            object_bytes: 16 << 20,
            part_bytes: 16 << 20,
            log_bytes_max: 16 << 30,
            backup_log_bytes: 4 << 30,
            online: OnlineOptions {
                compare_rows: false,
                busy_percent: 25,
                ..OnlineOptions::default()
            },
            pause: Duration::from_millis(100),
            pause_max: Duration::from_secs(30),
            last_wait: Duration::from_secs(10),
        }
    }
}
