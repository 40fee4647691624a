//! The bounds there are, how a verdict begins, and what to try.

/// What holds inserts back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Commits did not wait for the disk, though they should have.
    NotSynchronous,
    /// The time of a durable write.
    SyncTime,
    /// Delayed commits are not made durable fast enough.
    DelayedWindow,
    /// Space in the log ring.
    LogBuffer,
    /// Space in the log files: checkpoints do not free it fast enough.
    LogSpace,
    /// Many sessions change the same leaf.
    LeafLatch,
    /// Many sessions change the same structure in memory.
    StructureLatch,
    /// Leaves that are read from disk.
    LeafReads,
    /// Memory for leaves.
    Memory,
    /// Reads of stocks: for rows, or to prove that a key is new.
    StockReads,
    /// Flushes and compactions of stocks.
    Flushes,
    /// Leaf images, or space for them in the data files.
    Device,
    /// Ranges of generated keys.
    KeyLease,
    /// Transactions that change the same rows.
    Conflict,
    /// Processors.
    Processor,
    /// Places inside the engine, whose holders do not run all the time.
    Places,
    /// What the device gives back.
    DeviceReads,
    /// Fewer threads of a check than processors.
    FewThreads,
    /// Fewer sessions than processors.
    FewSessions,
    /// One session at a time changes data.
    OneWriter,
    /// No more than one processor is used, and no waits are told.
    OneProcessor,
    /// The drain of a front, which sessions outrun.
    Drain,
    /// Sessions were told to go no faster.
    Pace,
    /// The load generator.
    LoadGenerator,
    /// A wait that is in no list here.
    Other(String),
    /// Nothing that was measured.
    Unknown,
}

/// What advice depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ForAdvice {
    pub(super) is_onrush: bool,
    /// Every commit waits until it is on disk.
    pub(super) is_durable: bool,
    pub(super) sessions: u64,
    pub(super) rows_per_commit: u64,
    pub(super) is_shared_edge: bool,
    /// Sessions are tasks already.
    pub(super) is_tasks: bool,
    /// The key spreads sessions over leaves already.
    pub(super) is_spread: bool,
    /// Keys are drawn at random.
    pub(super) is_random: bool,
    /// Cold key ranges keep their rows in stocks.
    pub(super) keeps_stocks: bool,
    /// The table is too large for twice the memory, too.
    pub(super) is_far_past_memory: bool,
}

impl Cause {
    /// How the sentence begins.
    pub fn headline(&self) -> String {
        let text = match self {
            Cause::NotSynchronous => "Not synchronous, so this says nothing about durable commits",
            Cause::SyncTime => "Bound by the time of a durable write",
            Cause::DelayedWindow => "Bound by the window of delayed commits",
            Cause::LogBuffer => "Bound by space in the log ring",
            Cause::LogSpace => "Bound by checkpoints, which must free the log",
            Cause::LeafLatch => "Bound by a leaf that many sessions change",
            Cause::StructureLatch => "Bound by a structure in memory that many sessions change",
            Cause::LeafReads => "Bound by leaves that are read from disk",
            Cause::Memory => "Bound by memory for leaves",
            Cause::StockReads => "Bound by reads of stocks",
            Cause::Flushes => "Bound by flushes and compactions of stocks",
            Cause::Device => "Bound by writing leaves to the device",
            Cause::KeyLease => "Bound by generated keys",
            Cause::Conflict => "Bound by transactions that change the same rows",
            Cause::Processor => "Bound by the processors",
            Cause::Places => "Bound by places inside the engine, whose holders do not always run",
            Cause::DeviceReads => "Bound by what the device reads",
            Cause::FewThreads => "Bound by the number of threads",
            Cause::FewSessions => "Bound by the number of sessions",
            Cause::OneWriter => "Bound by one writer at a time",
            Cause::OneProcessor => "Uses no more than one processor, and tells no waits",
            Cause::Drain => "Bound by the drain: the front fills faster than it is emptied",
            Cause::Pace => "As fast as it was told to go",
            Cause::LoadGenerator => "The load generator alone",
            Cause::Other(wait) => return format!("Bound by {wait}"),
            Cause::Unknown => "No single bound",
        };
        text.to_owned()
    }

    /// What to try.
    pub(super) fn change(&self, about: &ForAdvice) -> String {
        let text = match self {
            Cause::NotSynchronous => {
                "Compare it with delayed durability only, or insert through the wire, one commit \
                 a call"
            }
            Cause::SyncTime => return sync_time_change(about),
            Cause::DelayedWindow => {
                "Try a larger `delayed_window_ms` or `delayed_window_bytes`, or a device for the \
                 log alone (`log_folder`)"
            }
            Cause::LogBuffer => {
                "Try a larger log ring, a larger `log_block_bytes_max`, or a faster device for the \
                 log (`log_folder`)"
            }
            Cause::LogSpace => {
                "Try a larger `log_capacity_bytes`, or earlier checkpoints \
                 (`checkpoint_log_bytes`), or a faster device for the data"
            }
            Cause::LeafLatch if about.is_shared_edge => {
                "Try `sequential_keys = \"blocks\"`, which gives each session a leaf of its own"
            }
            Cause::LeafLatch if about.is_spread => {
                "Try more rows per statement and commit, or fewer sessions at once"
            }
            Cause::LeafLatch => {
                "Try a key that spreads sessions over leaves: `session-offset`, or `uuid-v4`"
            }
            Cause::StructureLatch => "Try rows in larger transactions, or fewer sessions at once",
            Cause::LeafReads | Cause::Memory if about.is_random && !about.keeps_stocks => {
                "Try `past_memory = \"auto\"`, with which an insert at a random key reads nothing"
            }
            Cause::LeafReads | Cause::Memory if about.is_far_past_memory => {
                "Try a key that fills leaves one after another, such as `session-offset`: the table is so much \
                 larger than the memory that twice the memory would not hold it"
            }
            Cause::LeafReads => {
                "Try a larger `cache_bytes`, or a key whose inserts meet the same leaves again: \
                 `session-offset`"
            }
            Cause::Memory => {
                "Try a larger `cache_bytes`, or a key that fills leaves one after another: \
                 `session-offset`"
            }
            Cause::StockReads => {
                "Try more sessions, whose reads go on side by side; more devices (`data_folders`); for inserts a key \
                 that the engine draws, which is drawn again where a read would have to prove it new"
            }
            Cause::Flushes => {
                "Try more processors or devices (`data_folders`), a narrower row, or a key that fills leaves one \
                 after another: `session-offset`"
            }
            Cause::Device => {
                "Try more devices (`data_folders`), the log on a device of its own \
                 (`log_folder`), or a narrower row"
            }
            Cause::KeyLease => "Try `session-offset` or `uuid-v4`, which lease no ranges",
            Cause::Conflict => "Try to let each session change rows of its own",
            Cause::Processor => return processor_change(about),
            Cause::Places => {
                "See whether other programs use the processors; else try more rows per statement \
                 and commit, so that a place is taken less often"
            }
            Cause::DeviceReads => {
                "Try more devices (`data_folders`); more threads do not make a device faster"
            }
            Cause::FewThreads => "Try as many threads as processors",
            Cause::FewSessions => "Try as many sessions as processors, or more",
            Cause::OneWriter => {
                "Try more rows per commit; more sessions do not help a store that writes one \
                 transaction at a time"
            }
            Cause::OneProcessor => {
                "One writer at a time looks like this, and so do processors that other programs \
                 use; try one session: if it is as fast, more rows per commit help, and more \
                 sessions do not"
            }
            Cause::Drain => {
                "Insert into the logged table itself, with delayed durability; or use the front for \
                 bursts only, with memory for what they leave"
            }
            Cause::Pace => "Nothing to change; for the most it can do, leave `rows_per_s_max` out",
            Cause::LoadGenerator => "Nothing to change: no target can be faster than this",
            Cause::Other(_) => "See this wait in the target's own manual",
            Cause::Unknown => "Try more sessions, and a longer load",
        };
        format!("{text}.")
    }
}

fn sync_time_change(about: &ForAdvice) -> String {
    let more = match about.rows_per_commit {
        1 => "more rows per commit",
        _ => "still more rows per commit",
    };
    let sessions = match (about.sessions, about.is_onrush) {
        (0..=1, _) => "more sessions, whose commits share a sync",
        (_, true) if !about.is_tasks => "more sessions as tasks (`driver = \"tasks\"`)",
        _ => "more sessions",
    };
    let delayed = if about.is_durable { "delayed durability; " } else { "" };
    format!("Try {sessions}; {more}; {delayed}or a device with a shorter sync.")
}

fn processor_change(about: &ForAdvice) -> String {
    if about.is_shared_edge && about.sessions > 1 {
        return "Try `sequential_keys = \"blocks\"`, which gives each session a leaf of its own; then more \
                rows per statement and commit, or more processors."
            .into();
    }
    match about.rows_per_commit {
        1 => "Try more rows per statement and commit, a narrower key, or more processors.".into(),
        _ => "Try a narrower key, fewer columns, or more processors.".into(),
    }
}
