//! What a wait means: Onrush's own, and those of the baselines under the names that they have there.
//!
//! PostgreSQL has changed how its names are written between versions: case does not matter.

use super::cause::Cause;
use crate::target::record::WaitRecord;

/// What decides what a stage of a statement means: sessions were seen in it, and it is not known
/// whether they waited there or worked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// It is Onrush's, embedded or over its protocol.
    pub(super) is_onrush: bool,
    /// Every commit waits until it is on disk.
    pub(super) is_durable: bool,
    /// The processors have no time left.
    pub(super) is_busy: bool,
}

/// Each name with its cause.
const WAITS: &[(&str, Cause)] = &[
    // Onrush, and SQL Server where it has the same.
    ("WRITELOG", Cause::SyncTime),
    ("DELAYED_WINDOW", Cause::DelayedWindow),
    ("LOGBUFFER", Cause::LogBuffer),
    ("LOGSPACE", Cause::LogSpace),
    ("CHECKPOINT_LAG", Cause::LogSpace),
    ("PAGELATCH_EX", Cause::LeafLatch),
    ("PAGELATCH_SH", Cause::LeafLatch),
    ("LATCH_EX", Cause::StructureLatch),
    ("LATCH_SH", Cause::StructureLatch),
    ("PAGEIOLATCH_EX", Cause::LeafReads),
    ("PAGEIOLATCH_SH", Cause::LeafReads),
    ("READ_AHEAD", Cause::LeafReads),
    ("STOCK_READ", Cause::StockReads),
    ("FRAME_FREE", Cause::Memory),
    ("FRONT_FULL", Cause::Flushes),
    ("IMAGE_WRITE", Cause::Device),
    ("SLOT_FREE", Cause::Device),
    ("KEY_LEASE", Cause::KeyLease),
    ("TRANSACTION_CONFLICT", Cause::Conflict),
    ("LCK_M_SCH_M", Cause::Conflict),
    ("LCK_M_SCH_S", Cause::Conflict),
    ("LCK_M_ROW", Cause::Conflict),
    ("LCK_M_REFERENCE", Cause::Conflict),
    ("ADMISSION", Cause::Places),
    // Others have reserved log and not filled it yet: they do not run.
    ("SNAPSHOT_PREFIX", Cause::Places),
    ("CPU_QUEUE", Cause::Processor),
    ("SOS_SCHEDULER_YIELD", Cause::Processor),
    // PostgreSQL.
    ("WALSync", Cause::SyncTime),
    ("WALWrite", Cause::SyncTime),
    ("WALInitWrite", Cause::SyncTime),
    ("WALInitSync", Cause::SyncTime),
    ("WALBufMapping", Cause::LogBuffer),
    ("BufferContent", Cause::LeafLatch),
    ("BufferPin", Cause::LeafLatch),
    ("BufferIO", Cause::LeafReads),
    ("DataFileRead", Cause::LeafReads),
    ("DataFileWrite", Cause::Device),
    ("DataFileExtend", Cause::Device),
    ("DataFileSync", Cause::Device),
    ("DataFileFlush", Cause::Device),
    ("extend", Cause::StructureLatch),
    ("transactionid", Cause::Conflict),
    ("tuple", Cause::Conflict),
    ("running", Cause::Processor),
    // MariaDB.
    ("innodb/innodb_log_file", Cause::SyncTime),
    ("sql/binlog", Cause::SyncTime),
    ("innodb/innodb_data_file", Cause::Device),
    ("innodb/log_sys_mutex", Cause::LogBuffer),
    ("innodb/index_tree_rw_lock", Cause::LeafLatch),
    // RocksDB: who cannot lead the writes of a group waits for the one that does.
    ("write_delay_time", Cause::Device),
    ("db_condition_wait_nanos", Cause::Device),
    ("db_mutex_lock_nanos", Cause::StructureLatch),
];

/// What is left under its class.
const GROUPS: &[(&str, Cause)] = &[
    ("LWLock", Cause::StructureLatch),
    ("Lock", Cause::Conflict),
    ("IO", Cause::Device),
    ("CPU", Cause::Processor),
    ("wait/synch/mutex", Cause::StructureLatch),
    ("wait/synch/rwlock", Cause::StructureLatch),
    ("wait/synch/sxlock", Cause::StructureLatch),
    ("wait/synch/cond", Cause::StructureLatch),
    ("wait/io/file", Cause::Device),
    ("wait/lock/table", Cause::Conflict),
    ("wait/lock/metadata", Cause::Conflict),
];

/// Stages in which a commit ends: of durable ones, the log is waited for here. MariaDB sends its
/// answer in the stage that it calls "Updating status", once the log is written as far as it must.
const OF_COMMIT: &[&str] = &["Commit", "Commit_implicit", "Updating status", "Query end"];

/// Waits of a RocksDB write for its turn and for the log.
const OF_LEADER: &[&str] = &["write_pre_and_post_process_time", "write_wal_time"];

/// Where a session of Onrush waits until its commits are on disk. One that has not asked for that
/// waits there only once, when all is inserted: the end of the load, and nothing that held it back.
const AT_THE_END: &str = "WRITELOG";

/// Waits of background threads: they say nothing about sessions.
const BACKGROUND: &[&str] = &["LOG_COMPLETION", "DATA_SYNC", "CHECKPOINT_TURN"];

impl Cause {
    /// What a wait of a session means; None for waits that hold no insert back: those of background
    /// threads, and the end of a load that is not durable.
    pub(super) fn of_wait(wait: &WaitRecord, load: Load) -> Option<Cause> {
        let is = |name: &str| wait.name.eq_ignore_ascii_case(name);
        if BACKGROUND.iter().any(|name| is(name)) {
            return None;
        }
        if load.is_onrush && !load.is_durable && is(AT_THE_END) {
            return None;
        }
        if wait.group == "processlist" {
            return Some(of_stage(OF_COMMIT.iter().any(|name| is(name)), load));
        }
        if OF_LEADER.iter().any(|name| is(name)) {
            return Some(if load.is_durable { Cause::SyncTime } else { Cause::OneWriter });
        }
        let known = WAITS.iter().find(|(name, _)| is(name));
        let known = known.or_else(|| GROUPS.iter().find(|(group, _)| wait.group == *group));
        Some(known.map_or_else(|| Cause::Other(wait.name.clone()), |(_, cause)| cause.clone()))
    }
}

fn of_stage(is_commit: bool, load: Load) -> Cause {
    match load {
        Load { is_durable: true, .. } if is_commit => Cause::SyncTime,
        Load { is_busy: true, .. } => Cause::Processor,
        _ => Cause::StructureLatch,
    }
}
