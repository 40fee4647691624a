//! The faults that can be planted: each turns one step of the protocol into the mistake that it names.
//!
//! The number is the promise: so many random runs find it, whatever the first seed of the model is.

plants! {
    StockBeforeLeaf, "insert", 5_000,
        "the stock is looked at before the leaf";
    LookupKept, "insert", 5_000,
        "a lookup counts over a changed stock";
    LookupByAddress, "insert", 20_000,
        "a lookup counts for the stock at the same address, the one that was read being freed";
    ConflictWithoutStore, "insert", 50_000,
        "a transaction looks for conflicts in leaf and stock, and the tombstone is merged away";
    DuplicateNotAwaited, "insert", 5_000,
        "the answer *duplicate* does not wait for the row that it rests on";
    AbsentNotAwaited, "insert", 20_000,
        "the answer *no such row* waits for a tombstone that is found, and not for one that is merged away";
    FilterWithoutLastRow, "insert", 2_000,
        "the filter of a base is built without the last row";
    LocatorWithoutTombstones, "insert", 2_000,
        "a locator does not have the tombstones of a fragment";
    LocatorWithoutLastFragment, "insert", 5_000,
        "a group of a locator does not have its last fragment";
    FrozenDroppedEarly, "flush", 5_000,
        "frozen rows are dropped before the stock with them is published";
    FlushLsnAfterFreezing, "flush", 5_000,
        "F is read after the rows are frozen";
    FlushLsnIsTail, "flush", 5_000,
        "F is the log's tail, not the completed prefix";
    FlushLsnTooLow, "flush", 0,
        "F is lower than it could be: redo doubles, and all is well";
    FlushListsLeavesOnce, "flush", 20_000,
        "the leaves of a range are listed once, and a sibling made meanwhile is not frozen";
    IntentsFlushed, "flush", 2_000,
        "intents are flushed as rows";
    CleanWithIntent, "flush", 5_000,
        "a leaf with an open intent counts as clean after a flush";
    PublishedBeforeWritten, "flush", 2_000,
        "a stock is published before its images are written";
    FlushLsnGoesBack, "flush", 0,
        "a flush within redo lowers the flush LSN to where redo has come to";
    LocatorFilledLate, "flush", 5_000,
        "the locator gets its entries after frozen rows are dropped";
    FrozenVersionForgotten, "flush", 20_000,
        "a frozen row that is changed does not go to the version store, and the flush fails";
    RewriteDropsTombstones, "flush", 5_000,
        "a merge of fragments only drops tombstones";
    RewriteForgetsVersions, "flush", 20_000,
        "a small fragment that is written anew forgets a version that a snapshot needs";
    MergeForgetsVersions, "merge", 20_000,
        "a merge drops a version that a snapshot needs";
    MergeHorizonWithoutPrefix, "merge", 50_000,
        "a merge asks for open snapshots only: one that opens later, below a row in flight, finds nothing";
    VersionsKeptLate, "merge", 50_000,
        "versions go to the version store after the stock without them is published";
    ReplacedTombstoneForgotten, "merge", 20_000,
        "a tombstone that an insert replaces in the front does not go to the version store";
    StoreBeforeLeaf, "merge", 20_000,
        "a snapshot looks at the version store before it has the leaf and the stock pointer";
    MergeTakesOlderVersion, "merge", 2_000,
        "a merge takes the older version of a key";
    MergeTakesLaterRun, "merge", 0,
        "a merge takes the version of the later run, not the one with the higher LSN";
    OldStockFreedAtPublish, "merge", 5_000,
        "the slots of a merged stock are free when the new one is published";
    FullKeepsSlots, "merge", 5_000,
        "a merge or flush that finds the disk full keeps its slots";
    FullTakesHalf, "merge", 5_000,
        "a merge or flush that finds the disk full goes on with what it has written";
    ReaderOwnsNoSlots, "merge", 5_000,
        "who reads a stock does not own its slots";
    MergerDiesUnnoticed, "merge", 2_000,
        "a merger dies, and the engine goes on without it";
    StraddlingLeafNotSplit, "ranges", 5_000,
        "a front leaf across the cut belongs to one of the two ranges";
    SplitUnlockedEarly, "ranges", 20_000,
        "a new range may be flushed before all of its leaves look at it";
    JoinTakesHigherFlushLsn, "ranges", 20_000,
        "of two ranges that are joined the higher flush LSN is taken";
    DirtyLeafConverted, "ranges", 5_000,
        "a leaf becomes a front leaf above an image that it has changed since: a delete is undone";
    EmptyLeafWithoutImage, "ranges", 20_000,
        "a base has no entry for an empty leaf, and its neighbour's wider image shows through";
    ImageNotTrimmed, "ranges", 5_000,
        "an image is read without regard to where the next one of its run begins";
    FrontLeafImaged, "ranges", 2_000,
        "the evictor images a front leaf as if it were whole";
    WriteBackSkipsCleanLeaf, "checkpoint", 20_000,
        "a checkpoint does not wait for a flush under way, because the leaf it froze counts as clean";
    ListsTakenOnce, "checkpoint", 5_000,
        "a checkpoint takes the older lists once: the sibling of a leaf that the split of a range cuts is not on them";
    SkippedLeafUnlisted, "checkpoint", 5_000,
        "a leaf of a range that needs no flush is dirty and on no list";
    WriteBackTrustsRunningFlush, "checkpoint", 20_000,
        "a checkpoint takes a flush that was under way for its own";
    FailedFlushUnlisted, "checkpoint", 20_000,
        "a flush that fails leaves its frozen rows in leaves that are on no list";
    StartReadAfterEpoch, "checkpoint", 20_000,
        "C is read after the epoch is raised";
    EndReadBeforeWalk, "checkpoint", 5_000,
        "E is read before the walk";
    LogNotDurableToEnd, "checkpoint", 2_000,
        "a directory is installed before the log is durable to E";
    SpaceLogNotDurableToEnd, "checkpoint", 5_000,
        "a space install is done before the log is durable to its E";
    DataNotSynced, "checkpoint", 2_000,
        "a directory is installed before what it names is synced";
    WalkKeepsWhatItHas, "checkpoint", 20_000,
        "the walk keeps what it has of a range that was split or joined since";
    OldDirectoryFreedEarly, "checkpoint", 5_000,
        "slots of the old directory are free before the new superblock is synced";
    SpaceInstallTakesNewStart, "checkpoint", 2_000,
        "a space install takes a new C";
    RedoReadsStock, "redo", 2_000,
        "redo reads the stock";
    RedoRefusesDuplicate, "redo", 5_000,
        "redo refuses a key that is there";
    RedoFlushTakesLogEnd, "redo", 5_000,
        "a flush within redo takes the end of the log for F, not the place that redo has come to";
    RedoFlushTakesOneWorker, "redo", 5_000,
        "a flush within redo takes the place of one worker for F, and another is behind";
    SharedImageOwnedTwice, "redo", 50_000,
        "recovery gives two leaves that share an image an owner of its slot each";
    FilterNotChecked, "damage", 20_000,
        "a damaged filter is used";
    HeadNotChecked, "damage", 2_000,
        "a damaged head of a fragment is used";
    LargeIntentsFlushedAsRows, "large", 2_000,
        "intents of large transactions are flushed as rows";
    PieceLoggedEarly, "large", 5_000,
        "a piece is logged before its intents stand";
    LastPieceNotLogged, "large", 2_000,
        "a large transaction is committed before its last piece is logged";
    FrozenIntentIgnored, "large", 5_000,
        "who looks at a key does not see an intent that is frozen";
    StockIntentIgnored, "large", 5_000,
        "who looks at a key does not see an open transaction's intent in the stock";
    LocatorWithoutIntents, "large", 5_000,
        "a locator does not have the keys of intents";
    FilterWithoutIntents, "large", 5_000,
        "a filter does not have the keys of intents";
    MergeDropsActive, "large", 5_000,
        "a merge drops the intents of an open transaction";
    MergeDropsRowBelow, "large", 5_000,
        "a merge drops the row below the intent of an open transaction";
    MergeTakesEarlierPiece, "large", 20_000,
        "of two changes by one transaction a merge takes the one in the older run";
    StoreTakesEarlierPiece, "large", 50_000,
        "the version store takes an older change of a transaction after a newer one";
    FrozenOverStore, "large", 50_000,
        "of two changes by one transaction a snapshot reads the frozen one, not the later one in the version store";
    StoreTakesWhatIsNotOlder, "large", 5_000,
        "what redo replaces goes to the version store, and it is as new as what replaces it";
    MergeWithinRedo, "large", 20_000,
        "a merge within redo keeps one of two intents whose outcomes redo has not met";
    ConvertedWithoutNumbers, "large", 20_000,
        "a range that is made of images does not hold the statuses of intents in them";
    StatusForgottenWithStock, "large", 20_000,
        "an outcome is forgotten, and a stock has intents of it";
    ReaderHoldsNoStatus, "large", 50_000,
        "an outcome is forgotten, and a reader has a stock with intents of it";
    StatusForgottenEarly, "large", 20_000,
        "a checkpoint forgets an outcome whose sweep ended after the checkpoint began";
    SpaceInstallForgets, "large", 20_000,
        "a space install does not name outcomes that were swept";
    ResolvedNotDirty, "large", 20_000,
        "a leaf whose intents were resolved is not dirty, and its image still has them";
    NextNumberBeforeWalk, "large", 20_000,
        "a directory has a next number that is lower than one in its images";
    RolledBackNotLogged, "large", 5_000,
        "the record of a commit does not name the pieces that were rolled back";
    RolledBackBeforeRestored, "large", 5_000,
        "pieces count as rolled back before what they replaced is placed again";
    ReplacedNotRestored, "large", 5_000,
        "what rolled-back pieces replaced is not placed again";
    OutcomeBeforeItsRecord, "large", 5_000,
        "recovery takes an outcome from the directory, and its record is not in the log";
    RowRedoneBesideIntent, "large", 20_000,
        "redo places a row and leaves an older intent in the leaf, which is resolved over it";
}
