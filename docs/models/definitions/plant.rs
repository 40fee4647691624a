//! The faults that can be planted: each turns one step of the protocol into the mistake that it names.
//!
//! `found_within` is the promise: so many random runs find it, whatever the first seed of the model is.

plants! {
    JudgedByOlderSnapshot, "outcome", 2_000,
        "whether a commit took effect is judged by a snapshot that may lie below it";
    RedoByName, "redo", 2_000,
        "redo applies definition entries by name, over a directory that was read later than C";
    RedoBelowE, "redo", 2_000,
        "definition entries below E are redone";
    AlterRedoneBelowE, "redo", 5_000,
        "of the entries below E those of ALTER are redone: an older definition over a newer";
    EndReadBeforeListing, "checkpoint", 5_000,
        "E is read before the tables are listed, outside the mutex";
    EndReadAfterListing, "checkpoint", 2_000,
        "E is read after the tables are listed, outside the mutex";
    ListedWithoutMutex, "checkpoint", 2_000,
        "the checkpoint lists the tables and reads E without the mutex";
    ImagesTakenAfterMutex, "checkpoint", 5_000,
        "images are taken again after E was read";
    LogNotDurableToEnd, "checkpoint", 2_000,
        "the directory is installed before the log is durable to E";
    StartReadAfterDrain, "checkpoint", 2_000,
        "C is read after the leaves were imaged";
    CleanWithIntent, "checkpoint", 5_000,
        "a leaf imaged with an open intent counts as clean";
    EndRaisedAtOpen, "recovery", 2_000,
        "opening writes the end of the log as E over a directory that is older";
    RowsRedoneFirst, "recovery", 2_000,
        "redo applies the rows of a record before its definitions";
    IdReused, "ids", 50_000,
        "the number of a dropped table is given to the next one";
    TruncateKeepsObject, "ids", 2_000,
        "TRUNCATE empties the object instead of taking a new one";
    TwoRecords, "one commit", 2_000,
        "a transaction's definitions and its rows are two records";
    DefinedAtOnce, "one commit", 2_000,
        "CREATE is logged by the statement, and undone by whoever settles later";
    PublishedOutsideMutex, "publish", 5_000,
        "the record is published before the mutex is taken, and applied under it";
    AppliedOutsideMutex, "publish", 5_000,
        "the record is published under the mutex, and applied after it is given back";
    AppliedBeforeVerdict, "publish", 2_000,
        "the catalogue is changed before it is certain that the record is published";
    ApplyFails, "publish", 2_000,
        "applying to the catalogue can fail after the record is published";
    ExistsNotAwaited, "answers", 5_000,
        "the answer `exists` does not wait for the definition that it rests on";
    AbsentNotAwaited, "answers", 5_000,
        "the answers `unknown table` and `no such row` do not wait for what they rest on";
    DuplicateNotAwaited, "answers", 5_000,
        "the answer `duplicate key` does not wait for the row that it rests on";
    GrantsDroppedLater, "grants", 2_000,
        "DROP deletes the grants in a commit after its own";
    GrantsByName, "grants", 2_000,
        "grants are kept by name, and follow a RENAME in a commit of their own";
    GrantWithoutLock, "grants", 5_000,
        "GRANT and COMMENT do not lock the table";
    DropReadsOldSnapshot, "grants", 5_000,
        "DROP looks for the grants by the snapshot of its transaction";
    TouchedByOlderSnapshot, "locks", 5_000,
        "a snapshot reads a table that got its object after it: half of that commit";
    LockWithoutPrefix, "locks", 5_000,
        "who gets a lock does not wait until the prefix has passed the commit of who held it";
    UnlockedBeforePublish, "locks", 2_000,
        "locks are released before the record is published";
    NameNotLocked, "locks", 5_000,
        "a name that a transaction takes is not locked";
    SingleWithoutLook, "locks", 2_000,
        "a single insert looks at the lock of the table before it has latched the leaf";
    DefinedBesideSingles, "locks", 20_000,
        "who locks a table to define it does not wait for single inserts that are under way";
    DefinitionReadBeforeLock, "locks", 5_000,
        "ALTER changes the definition that it read before it waited for the lock";
    OwnRowsKeepVersion, "versions", 2_000,
        "rows that a transaction wrote before its ALTER keep the older version";
    SavepointKeepsDefinitions, "savepoints", 2_000,
        "ROLLBACK TO takes back rows but not definitions";
    CounterNotInCreate, "counters", 20_000,
        "the create entry does not carry the counter";
    CounterNotInDirectory, "counters", 2_000,
        "a directory does not hold the counters";
    CounterRaisedLate, "counters", 20_000,
        "a counter is raised in memory after the record of its reservation, which a checkpoint may leave out";
    SegmentNotPrepared, "log", 2_000,
        "records are written into a log segment before the next one is there";
    GapAccepted, "log", 2_000,
        "a missing log segment below another counts as the end of the log";
    SequenceNotAwaited, "counters", 2_000,
        "a number is handed out before the record of its reservation is durable";
}
