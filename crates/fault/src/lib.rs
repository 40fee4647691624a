//! Faults planted on purpose, so that tests can show that they would notice.
//!
//! Each puts a trap back that the engine or the log avoids: an order of events (see
//! `crates/engine/src/checkpoint/README.md`), a sync, a check. Without the feature
//! `planted-faults` the question is the constant `false` and nothing of this is left.
//!
//! Whoever would make the mistake asks whether it is planted. Of mistakes that are a call of the disk left out, made
//! elsewhere or taken for a good one, the simulator's disk asks (`crates/sim/src/disk/planted.rs`), and the engine has
//! no code for them. The others no disk can make: it is told what is written, and neither in which order it was
//! decided nor who was told of it.

macro_rules! faults {
    ($($(#[$text:meta])+ $name:ident,)+) => {
        /// A trap that a test can put back.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub enum Fault {
            /// No fault.
            None = 0,
            $($(#[$text])+ $name,)+
        }

        impl Fault {
            /// Every fault, in order.
            pub const ALL: &[Fault] = &[$(Fault::$name,)+];
        }
    };
}

faults! {
    /// C is taken after the epoch switch.
    CAfterEpoch,
    /// E is taken before the walk.
    EBeforeWalk,
    /// The log is not made durable to E before the superblock.
    LogNotToE,
    /// Old slots are freed before the superblock is durable.
    FreeBeforeSuperblock,
    /// A space install takes a new C: what is above the old one and not written back is not redone.
    SpaceInstallTakesNewC,
    /// A space install does not make the log durable to its E.
    SpaceInstallNotToE,
    /// Data files are not synced before the superblock.
    NoDataSync,
    /// The directory takes images that are not written yet.
    WalkNoWait,
    /// A split does not give its dirty epoch to the sibling.
    SplitNoEpoch,
    /// A sibling does not share the image.
    SplitNoShare,
    /// A snapshot sees its own LSN (`<=` for visible).
    LessOrEqualVisible,
    /// A leaf with an unresolved intent becomes clean when imaged.
    CleanWithIntent,
    /// Rows of unresolved intents get into images.
    IntentImaged,
    /// Loaded images are not trimmed to the leaf's fences.
    NoTrim,
    /// A durable answer does not wait for the rows that it rests on.
    DuplicateNoWait,
    /// The log is recycled up to E instead of C.
    RecycleToE,
    /// A clean leaf that becomes dirty is not put on a list.
    DirtyNoList,
    /// A durable commit is acknowledged before its sync.
    AcknowledgeEarly,
    /// Directory segments whose entries changed without a new image are not rewritten.
    SegmentNotRewritten,
    /// The epochs' lists are kept by parity.
    ParityLists,
    /// An image is dropped from memory before it is written.
    DropUnwritten,
    /// A checkpoint takes the lists once, not until they are empty.
    ListsTakenOnce,
    /// A leaf that takes the range of an empty neighbour keeps an image with the neighbour's rows.
    MergeKeepsImage,
    /// Such a leaf is imaged by the next checkpoint only.
    MergeImagedLate,
    /// The log is written without a sync.
    LogNotSynced,
    /// A failed write of the log is taken for a good one.
    LogErrorIgnored,
    /// The names of log segments are not synced.
    SegmentNameNotSynced,
    /// The reader of the log takes blocks of another incarnation or predecessor.
    ChainUnchecked,
    /// Damage in the log below what was durable is taken for a torn tail.
    RotTakenForTear,
    /// What recovery has read of the log's end stays where it may be in the cache only.
    UnprovenNotRewritten,
    /// The round for delayed commits begins at four times its deadline.
    WindowTooLong,
    /// Delayed commits do not wait when the bytes of the window are used up.
    WindowBytesIgnored,
    /// Delayed commits do not wait when the disk has stalled.
    StallIgnored,
    /// The superblock is written without a sync.
    SuperblockNotSynced,
    /// Every superblock goes to the same copy.
    SuperblockOneCopy,
    /// A new database's superblock file gets its name before it is synced.
    CreationNotSynced,
    /// The name of a new database's superblock file is not synced.
    CreationNameNotSynced,
    /// Generated numbers are handed out before their mark is durable.
    CounterNotDurable,
    /// Checkpoints forget the marks of generated numbers.
    CounterNotStored,
    /// Recovery does not remove removed rows.
    RemoveNotRedone,
    /// Recovery does not truncate truncated tables.
    TruncateNotRedone,
    /// E is taken after the list of tables, not with it: a definition between the two is in neither.
    EAfterList,
    /// The definitions of a transaction are logged before its rows, in a record of their own.
    DefinitionsApart,
    /// Recovery does not alter altered tables.
    AlterNotRedone,
    /// A clean close does not make delayed commits durable.
    CloseNotDurable,
    /// A new table is reported before it is durable.
    TableNotDurable,
    /// A transaction may change a row that was changed since its snapshot.
    ConflictIgnored,
    /// A leaf that was found without the inner nodes is not asked whether it still holds the key.
    FencesUnchecked,
    /// A session's snapshot does not wait until its own last commit is in the completed prefix.
    OwnCommitUnseen,
    /// The server sends answers before the commits that they rest on are durable.
    AnswerNotAwaited,
    /// The engine panics under the latch of a leaf, its LSN reserved and its record not copied.
    PanicInWrite,
    /// The engine panics under the latch of a leaf in which a transaction has placed an intent.
    PanicInCommit,
    /// A checkpoint panics under the latch of a leaf.
    PanicInCheckpoint,
    /// The directory does not hold the outcomes of large transactions.
    StatusesNotStored,
    /// The outcome of a large transaction is forgotten although leaves hold intents of it.
    StatusForgottenEarly,
    /// A large transaction without an outcome is taken for a committed one.
    LargeAbortedAsCommitted,
    /// An object that a large transaction has made is not made again by redo.
    PrivateObjectNotRedone,
    /// The pieces of large transactions are not redone.
    PieceNotRedone,
    /// The commit of a large transaction is not logged.
    LargeCommitNotLogged,
    /// A leaf from which the intents of large transactions are taken does not become dirty.
    SweepNotDirty,
    /// A snapshot that was given up is not told that what it may have seen has gone.
    GivenUpSnapshotUnnoticed,
    /// A flush drops rows from front leaves before the stock with them is published.
    ShedBeforePublish,
    /// A flush drops a row that an intent is on.
    ShedUnderIntent,
    /// A flush writes no removals.
    RemovalsNotFlushed,
    /// A fragment's keys are not in the locator.
    FragmentNotLocated,
    /// The filter of a base lacks the last key.
    FilterLacksKey,
    /// A stock says that more of the log is in it than is.
    FlushLsnTooHigh,
    /// Of a key in two runs that of the older one counts.
    OlderRunWins,
    /// An outcome is forgotten while a stock has intents of its transaction.
    StocksNotSwept,
    /// What a large transaction has taken back shows through from the stock.
    TakenBackShowsThrough,
    /// What a large transaction has taken back hides, once redone, the row of the stock.
    RedoneTakeBackHides,
    /// A compaction leaves the newest fragment out.
    CompactionLacksFragment,
    /// A range is divided without a cut of the leaf across.
    DividedWithoutCut,
    /// The evictor images a front leaf as if it were a whole one.
    FrontLeafImaged,
    /// A redone removal of a key that is not in its front leaf is left out.
    RedoneRemovalLost,
    /// A row that is changed leaves its old entry in an index.
    OldEntryKept,
    /// A new row of a table with an index that is being built gets no entry in it.
    BuiltIndexMissed,
    /// A removal of an entry that an index which is being built has not got yet leaves no trace.
    RemovalLeavesNoTrace,
    /// A row that is changed gets no new entry in an index.
    EntryLeftOut,
    /// A long value is stored without its first piece.
    PieceLeftOut,
    /// The pieces of a row that is changed or removed stay.
    PieceKept,
    /// A commit looks at referenced keys without locking them.
    ReferencesNotLocked,
    /// A row is changed though another transaction has locked it.
    RowLockIgnored,
    /// A serializable transaction commits without a look at what others have changed.
    SerialOrderNotLooked,
    /// A commit into the lake is tried, and tried again, on whatever it finds.
    LakeUnguarded,
    /// A commit into the lake whose answer is an error counts as not applied.
    LakeAnswerBelieved,
    /// A claim in the lake sets the mark without a snapshot.
    LakeClaimWithoutSnapshot,
    /// The lake's marks are those of the newest snapshot.
    LakeMarkOfSnapshot,
    /// Files are deleted when the lake refuses their commit.
    LakeFilesDeleted,
    /// A claim in the lake keeps the nonce that it finds.
    LakeNonceKept,
    /// Rows and mark come into the lake by two commits.
    LakeMarkApart,
    /// A mark of the lake is moved wherever it is.
    LakeMarkMovedBlindly,
    /// What is to come into the lake is noted as confirmed before it is there.
    LakeConfirmedEarly,
    /// What is asked of the lake is not noted before.
    LakeAskNotNoted,
    /// A range that the lake has not taken is given up for a longer one.
    LakeRangeGrows,
    /// A restored database does not close the node that was lost.
    LakeLostNodeLeftOpen,
    /// A restored database goes on at the mark of the lost node, whatever was restored.
    LakeGoesOnAtMark,
    /// A restored database goes on where it was restored to, whatever is in the lake.
    LakeGoesOnAtEnd,
}

#[cfg(feature = "planted-faults")]
mod switch {
    use std::sync::atomic::{AtomicU32, Ordering};

    static PLANTED: AtomicU32 = AtomicU32::new(0);

    /// Plants `fault` in every engine of this process, until the next call.
    pub fn plant(fault: super::Fault) {
        PLANTED.store(fault as u32, Ordering::SeqCst);
    }

    /// Whether `fault` is planted.
    pub fn planted(fault: super::Fault) -> bool {
        PLANTED.load(Ordering::Relaxed) == fault as u32
    }
}

#[cfg(feature = "planted-faults")]
pub use switch::{plant, planted};

/// Whether `fault` is planted: never, in this build.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
#[must_use]
pub const fn planted(_fault: Fault) -> bool {
    false
}

/// Panics if `fault` is planted, without a message.
#[inline(always)]
pub fn panic_if_planted(fault: Fault) {
    if planted(fault) {
        std::panic::resume_unwind(Box::new("a planted fault"));
    }
}
