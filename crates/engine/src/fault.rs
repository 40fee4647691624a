//! Faults planted on purpose, so that tests can show that they would notice.
//!
//! Each is one of the traps in the order of events (see `checkpoint/README.md`). Without the
//! feature `planted-faults` the question is the constant `false` and nothing of this is left.

/// A trap that a test can re-introduce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Fault {
    /// No fault.
    None = 0,
    /// C is taken after the epoch switch.
    CAfterEpoch,
    /// E is taken before the walk.
    EBeforeWalk,
    /// The log is not made durable to E before the superblock.
    LogNotToE,
    /// Old slots are freed before the superblock is durable.
    FreeBeforeSuperblock,
    /// Data files are not synced before the superblock.
    NoDataSync,
    /// The directory takes images that are not written yet.
    WalkNoWait,
    /// A split does not give its dirty epoch to the sibling.
    SplitNoEpoch,
    /// A sibling does not share the image.
    SplitNoShare,
    /// A group's record is reserved before its rows are placed.
    GroupReservedFirst,
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
}

#[cfg(feature = "planted-faults")]
mod switch {
    use std::sync::atomic::{AtomicU32, Ordering};

    static PLANTED: AtomicU32 = AtomicU32::new(0);

    /// Plants `fault` in every engine of this process, until the next call.
    pub fn plant(fault: super::Fault) {
        PLANTED.store(fault as u32, Ordering::SeqCst);
    }

    pub(crate) fn planted(fault: super::Fault) -> bool {
        PLANTED.load(Ordering::Relaxed) == fault as u32
    }
}

#[cfg(feature = "planted-faults")]
pub use switch::plant;
#[cfg(feature = "planted-faults")]
pub(crate) use switch::planted;

/// Whether `fault` is planted: never, in this build.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub(crate) const fn planted(_fault: Fault) -> bool {
    false
}
