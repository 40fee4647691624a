//! The faults that can be planted in the engine, and how each is found.

use onrush::Fault;

/// Every fault.
pub const ALL: [Fault; 21] = [
    Fault::CAfterEpoch,
    Fault::EBeforeWalk,
    Fault::LogNotToE,
    Fault::FreeBeforeSuperblock,
    Fault::NoDataSync,
    Fault::WalkNoWait,
    Fault::SplitNoEpoch,
    Fault::SplitNoShare,
    Fault::GroupReservedFirst,
    Fault::LessOrEqualVisible,
    Fault::CleanWithIntent,
    Fault::IntentImaged,
    Fault::NoTrim,
    Fault::DuplicateNoWait,
    Fault::RecycleToE,
    Fault::DirtyNoList,
    Fault::AcknowledgeEarly,
    Fault::SegmentNotRewritten,
    Fault::ParityLists,
    Fault::DropUnwritten,
    Fault::ListsTakenOnce,
];
