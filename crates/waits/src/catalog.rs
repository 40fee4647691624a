//! The lists: every wait, latch class, spin, counter and phase there is. Adding one is adding a line.
//!
//! Waits have the name that database people know where the meaning is the same. The sentence of an
//! entry is its documentation here and in every listing made for users.

use serde::{Deserialize, Serialize};

/// Makes an enum out of a list of `Variant = "NAME", Class, "sentence";`.
macro_rules! catalog {
    (
        $(#[$meta:meta])*
        $list:ident: $class:ident {
            $($variant:ident = $name:literal, $kind:ident, $about:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[repr(u8)]
        pub enum $list {
            $(#[doc = $about] #[serde(rename = $name)] $variant,)+
        }

        impl $list {
            /// All of them, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Its class.
            pub const fn class(self) -> $class {
                match self { $(Self::$variant => $class::$kind),+ }
            }

            /// What it means, in one sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about),+ }
            }

            /// Its place in arrays that hold one value for each.
            pub(crate) const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// What a wait is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum WaitClass {
    /// For the log: its ring, its file, its sync.
    Log,
    /// For a latch on something in memory.
    Latch,
    /// For a read or write of a data file.
    Io,
    /// For memory, disk space or an admission permit.
    Resource,
    /// For another transaction.
    Transaction,
    /// For a processor.
    Processor,
    /// For work to do; left out of percentages.
    Idle,
}

catalog! {
    /// Everything a session or background thread can wait for.
    Wait: WaitClass {
        WriteLog = "WRITELOG", Log, "A durable commit waits until its log block is synced.";
        LogBuffer = "LOGBUFFER", Log, "An insert waits for log space: space for its record in the ring.";
        LogSpace = "LOGSPACE", Log,
            "An insert waits for log file space, which a checkpoint must free.";
        LogCompletion = "LOG_COMPLETION", Log,
            "The log writer waits until reserved records have been copied into the ring.";
        DelayedWindow = "DELAYED_WINDOW", Log,
            "A delayed commit waits because older ones are not durable within the declared window.";
        CheckpointLag = "CHECKPOINT_LAG", Log,
            "An insert is slowed down so that the checkpoint can finish before the log is full, or \
             takes longer than `recovery_seconds` to redo.";
        PageLatchEx = "PAGELATCH_EX", Latch,
            "A change waits for exclusive access to a leaf in memory.";
        PageLatchSh = "PAGELATCH_SH", Latch,
            "A reader waits for shared access to a leaf in memory.";
        LatchEx = "LATCH_EX", Latch,
            "A change waits for exclusive access to an inner node or another structure in memory.";
        LatchSh = "LATCH_SH", Latch,
            "A reader waits for a stable view of an inner node or another structure in memory.";
        PageIoLatchEx = "PAGEIOLATCH_EX", Io, "A change waits while its leaf is read from disk.";
        PageIoLatchSh = "PAGEIOLATCH_SH", Io, "A reader waits while its leaf is read from disk.";
        ReadAhead = "READ_AHEAD", Io,
            "A session waits for a leaf that a scan had asked for ahead, and that is being read.";
        StockRead = "STOCK_READ", Io,
            "A session waits while a part of a key range's stock is read from disk.";
        ImageWrite = "IMAGE_WRITE", Io,
            "A checkpoint or eviction waits until leaf images are written.";
        DataSync = "DATA_SYNC", Io,
            "A checkpoint waits until data files or the superblock are synced.";
        CheckpointTurn = "CHECKPOINT_TURN", Io,
            "A checkpoint waits until one that is being taken is over.";
        Admission = "ADMISSION", Resource, "A session waits for an admission permit.";
        FrameFree = "FRAME_FREE", Resource, "A session waits for memory for a leaf.";
        FrontFull = "FRONT_FULL", Resource,
            "A session waits until a key range in front of its stock is flushed.";
        SlotFree = "SLOT_FREE", Resource, "A session waits for a free slot in the data files.";
        KeyLease = "KEY_LEASE", Resource,
            "A session waits until the next range of generated keys is durably its own.";
        TransactionConflict = "TRANSACTION_CONFLICT", Transaction,
            "A statement waits for the outcome of another transaction that changed the same row.";
        LockSchemaExclusive = "LCK_M_SCH_M", Transaction,
            "A definition waits for a table or a name that another transaction uses or defines.";
        LockSchemaShared = "LCK_M_SCH_S", Transaction,
            "A statement waits for the definition of its table that another transaction makes.";
        LockRow = "LCK_M_ROW", Transaction,
            "A statement waits for a row that another transaction has changed or locked, or for an \
             advisory lock.";
        LockReference = "LCK_M_REFERENCE", Transaction,
            "A commit waits for another one that references or removes the same key.";
        SnapshotPrefix = "SNAPSHOT_PREFIX", Transaction,
            "A snapshot waits until its session's last commit is part of the completed prefix.";
        CpuQueue = "CPU_QUEUE", Processor,
            "A session is ready to run, but the processors are busy with others; found by sampling.";
        LogIdle = "LOG_IDLE", Idle, "The log writer has nothing to write.";
        CheckpointIdle = "CHECKPOINT_IDLE", Idle,
            "The checkpointer waits until the next one is due.";
        OnlineRest = "ONLINE_REST", Idle,
            "An online check or backup rests, so that sessions have the processors.";
        BackgroundIdle = "BACKGROUND_IDLE", Idle, "Another background thread has nothing to do.";
    }
}

/// What kind of thing a latch protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum LatchKind {
    /// A leaf: its waits are PAGELATCH_EX and PAGELATCH_SH.
    Page,
    /// Anything else: its waits are LATCH_EX and LATCH_SH.
    Structure,
}

catalog! {
    /// What is behind a latch that threads can collide on.
    LatchClass: LatchKind {
        Leaf = "LEAF", Page, "The rows of one leaf.";
        Inner = "INNER", Structure, "One inner node of a tree.";
        TreeStructure = "TREE_STRUCTURE", Structure, "The shape of one tree: splits and removals.";
        FrameTable = "FRAME_TABLE", Structure, "The table from leaves to their memory.";
        Transaction = "TRANSACTION", Structure, "The state of one transaction.";
        Versions = "VERSIONS", Structure, "The store of previous row versions.";
        KeyGenerator = "KEY_GENERATOR", Structure, "The generator of a column's default keys.";
        LogWriter = "LOG_WRITER", Structure, "The right to write the next log block.";
        Catalog = "CATALOG", Structure, "The tables and their columns.";
    }
}

impl LatchClass {
    /// The wait of those who want to change what is behind a latch of this class.
    pub const fn exclusive_wait(self) -> Wait {
        match self.class() {
            LatchKind::Page => Wait::PageLatchEx,
            LatchKind::Structure => Wait::LatchEx,
        }
    }

    /// The wait of those who want to read what is behind a latch of this class.
    pub const fn shared_wait(self) -> Wait {
        match self.class() {
            LatchKind::Page => Wait::PageLatchSh,
            LatchKind::Structure => Wait::LatchSh,
        }
    }
}

/// What spins: the thing that threads change without a latch around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum SpinKind {
    /// One word that is added to or swapped: others are only delayed by its cache line.
    Word,
    /// A condition that is looked at again and again.
    Condition,
}

catalog! {
    /// The places where threads meet at an atomic word; those of latches stand with the latches.
    Spin: SpinKind {
        LogReservation = "LOG_RESERVATION", Word,
            "Somebody else took log space between the look at the tail and the own addition.";
        CompletedPrefix = "COMPLETED_PREFIX", Condition,
            "Looks at the completed prefix that found a record before it still being copied.";
        CommitGroup = "COMMIT_GROUP", Condition,
            "Looks of commits that wait for a sync; a sleep is a wait in which they did not help.";
        TransactionId = "TRANSACTION_ID", Word,
            "Taking or giving back the number of a transaction of several rows; one row needs none.";
        AdmissionPermit = "ADMISSION_PERMIT", Word,
            "Looks for an admission permit that found the session's own taken.";
    }
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum CounterUnit {
    /// Things that happened.
    Events,
    /// Bytes.
    Bytes,
}

catalog! {
    /// Everything that is counted.
    Counter: CounterUnit {
        Commits = "COMMITS", Events, "Commits of all kinds: the sum of the four below.";
        DurableCommits = "DURABLE_COMMITS", Events,
            "Commits whose session waits until they are durable.";
        DelayedCommits = "DELAYED_COMMITS", Events,
            "Commits acknowledged at once, durable within the declared window.";
        TokenCommits = "TOKEN_COMMITS", Events,
            "Commits for which the program got a token to wait on, or not.";
        UnloggedCommits = "UNLOGGED_COMMITS", Events,
            "Commits of rows of unlogged tables alone, which wait for nothing.";
        Rollbacks = "ROLLBACKS", Events, "Transactions rolled back by their program or client.";
        Conflicts = "CONFLICTS", Events,
            "Transactions refused because another one committed first.";
        SnapshotsGivenUp = "SNAPSHOTS_GIVEN_UP", Events,
            "Snapshots and transactions that hold no old versions any more, because these took too much memory.";
        RowsInserted = "ROWS_INSERTED", Events, "Rows inserted.";
        RowsUpdated = "ROWS_UPDATED", Events, "Rows updated.";
        RowsDeleted = "ROWS_DELETED", Events, "Rows deleted.";
        RowsMoved = "ROWS_MOVED", Events, "Rows moved from one table to another.";
        RowsRead = "ROWS_READ", Events, "Rows returned to readers.";
        DuplicateKeys = "DUPLICATE_KEYS", Events, "Inserts refused because their key was taken.";
        Descents = "DESCENTS", Events,
            "Ways from the root to a leaf: reads, and changes whose session's hint did not hold.";
        DescentRestarts = "DESCENT_RESTARTS", Events,
            "Descents begun again because a node changed meanwhile.";
        SplitsRightEdge = "SPLITS_RIGHT_EDGE", Events,
            "Splits at the right edge, which leave the old leaf full.";
        SplitsLocalRun = "SPLITS_LOCAL_RUN", Events,
            "Splits after the new row of an ascending run.";
        SplitsMiddle = "SPLITS_MIDDLE", Events, "Splits in the middle.";
        SplitsBlockGrant = "SPLITS_BLOCK_GRANT", Events,
            "Splits that open a leaf for a block of generated keys.";
        PagesAllocated = "PAGES_ALLOCATED", Events, "Leaves added to trees.";
        LeavesRemoved = "LEAVES_REMOVED", Events, "Empty leaves taken out of a tree.";
        LeafLoads = "LEAF_LOADS", Events, "Leaves read from disk.";
        LeafLoadBytes = "LEAF_LOAD_BYTES", Bytes, "Bytes of leaves read from disk.";
        LeavesReadAhead = "LEAVES_READ_AHEAD", Events,
            "Leaves read from disk before the scan that asked for them came to them.";
        Evictions = "EVICTIONS", Events, "Leaves dropped from memory.";
        ImagesCheckpoint = "IMAGES_CHECKPOINT", Events, "Leaf images written by checkpoints.";
        ImagesEviction = "IMAGES_EVICTION", Events, "Leaf images written to make space in memory.";
        ImageBytes = "IMAGE_BYTES", Bytes, "Bytes of leaf images written.";
        RangeFlushes = "RANGE_FLUSHES", Events,
            "Times the newest rows of a key range were written into its stock.";
        RangeRowsFlushed = "RANGE_ROWS_FLUSHED", Events, "Rows and removals that this wrote.";
        RangeCompactions = "RANGE_COMPACTIONS", Events, "Times a stock was written anew as a whole.";
        RangeRowsCompacted = "RANGE_ROWS_COMPACTED", Events, "Rows that this wrote.";
        RangesMade = "RANGES_MADE", Events, "Times leaves became a key range with a stock.";
        RangesDivided = "RANGES_DIVIDED", Events, "Times a key range became two.";
        StockReads = "STOCK_READS", Events, "Keys for which a stock was read.";
        StockReadBytes = "STOCK_READ_BYTES", Bytes, "Bytes of stocks read from disk.";
        Checkpoints = "CHECKPOINTS", Events, "Checkpoints installed.";
        SpaceInstalls = "SPACE_INSTALLS", Events,
            "Directories installed between checkpoints, to free the slots of stocks that were written anew.";
        RedoneRecords = "REDONE_RECORDS", Events, "Log records redone by recovery.";
        LogRounds = "LOG_ROUNDS", Events, "Rounds of the log writer: a write, and a sync if due.";
        LogBlocks = "LOG_BLOCKS", Events, "Log blocks written.";
        LogBytes = "LOG_BYTES", Bytes, "Bytes of log written, headers and padding included.";
        LogSyncs = "LOG_SYNCS", Events, "Syncs of the log.";
        LogGrowths = "LOG_GROWTHS", Events, "Log segments made or made ready to be used again.";
        CommitGroups = "COMMIT_GROUPS", Events, "Groups of commits woken together.";
        AdmissionSteals = "ADMISSION_STEALS", Events,
            "Times a session took over an admission permit that another had left.";
        KeyLeases = "KEY_LEASES", Events, "Ranges of generated keys made durable.";
    }
}

impl Counter {
    /// The kinds of commits. [`Counter::Commits`] is their sum, which is taken when numbers are read: an
    /// insert counts one of these and nothing else.
    pub const COMMIT_KINDS: &'static [Counter] = &[
        Counter::DurableCommits,
        Counter::DelayedCommits,
        Counter::TokenCommits,
        Counter::UnloggedCommits,
    ];
}

/// Where a phase's time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum PhaseClass {
    /// Inside an operation of a session.
    Session,
    /// In a background thread.
    Background,
    /// Nowhere: there was nothing to do.
    Idle,
}

catalog! {
    /// The parts of an operation, in the order of an insert, then those of background threads.
    Phase: PhaseClass {
        Statement = "STATEMENT", Session, "Bind values, draw the key and build the row.";
        Seek = "SEEK", Session, "Find and latch the leaf, and look for a duplicate.";
        Reserve = "RESERVE", Session, "Reserve the log sequence number.";
        Write = "WRITE", Session, "Write the row into the leaf.";
        Split = "SPLIT", Session, "Split a full leaf.";
        Copy = "COPY", Session, "Copy the record into the log ring.";
        Commit = "COMMIT", Session, "Commit and return; waiting for durability is WRITELOG.";
        Read = "READ", Session, "Find rows and give them to a reader.";
        LogWrite = "LOG_WRITE", Background,
            "Build and checksum log blocks; the time of the disk is in WRITELOG.";
        Checkpoint = "CHECKPOINT", Background, "Copy, write and install leaf images.";
        Flush = "FLUSH", Background, "Write rows of key ranges into their stocks.";
        Compact = "COMPACT", Background, "Write stocks of key ranges anew.";
        Idle = "IDLE", Idle, "Between the calls of a session: what its client did.";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn assert_unique_names(names: impl Iterator<Item = &'static str>, count: usize) {
        assert_eq!(names.collect::<BTreeSet<_>>().len(), count);
    }

    #[test]
    fn names_are_unique() {
        assert_unique_names(Wait::ALL.iter().map(|entry| entry.name()), Wait::COUNT);
        assert_unique_names(LatchClass::ALL.iter().map(|entry| entry.name()), LatchClass::COUNT);
        assert_unique_names(Spin::ALL.iter().map(|entry| entry.name()), Spin::COUNT);
        assert_unique_names(Counter::ALL.iter().map(|entry| entry.name()), Counter::COUNT);
        assert_unique_names(Phase::ALL.iter().map(|entry| entry.name()), Phase::COUNT);
    }

    #[test]
    fn every_entry_is_at_its_index() {
        for (index, wait) in Wait::ALL.iter().enumerate() {
            assert_eq!(wait.index(), index);
        }
        for (index, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(counter.index(), index);
        }
    }

    #[test]
    fn leaf_latches_wait_under_the_page_latch_names() {
        assert_eq!(LatchClass::Leaf.exclusive_wait().name(), "PAGELATCH_EX");
        assert_eq!(LatchClass::Leaf.shared_wait().name(), "PAGELATCH_SH");
        assert_eq!(LatchClass::Inner.exclusive_wait().name(), "LATCH_EX");
    }
}
