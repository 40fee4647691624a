//! What a power cut leaves: the modes, from the most forgetful disk to the most faithful one, and
//! the nasty ones between.
//!
//! Invariants, for every mode
//! 1. Content that was synced, and names whose folder was synced, are there, unless something newer
//!    replaced them.
//! 2. Nothing is there that was never written, but for [`CrashMode::Garbage`] inside unsynced
//!    writes.
//! 3. Space that a file gained without its bytes reads as zeros.

/// What happens to everything that was not synced when the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CrashMode {
    /// Content and names are as last synced. The strictest disk that keeps its promises.
    AllLost,
    /// Everything had just reached the disk.
    AllKept,
    /// Content is kept, new names are lost: files that were written but whose folder was not
    /// synced.
    NamesLost,
    /// Names are kept, content is lost: for example a rename that overtakes the bytes of the file.
    ContentLost,
    /// Each write, length and name is kept or lost by itself: the device reorders.
    Subset,
    /// As `Subset`, but each sector of 512 bytes of a write is new or old by itself.
    TornSectors,
    /// As `Subset`, but each block of 4096 bytes of a write is new or old by itself.
    TornBlocks,
    /// Files have their new length, but the bytes of unsynced writes are lost: zeros where the file
    /// grew.
    ZeroGrowth,
    /// Each sector of an unsynced write is new, old, or neither. A sector that is written with the
    /// bytes it already has stays: devices are trusted so far.
    Garbage,
}

impl CrashMode {
    /// Every mode.
    pub const ALL: [CrashMode; 9] = [
        CrashMode::AllLost,
        CrashMode::AllKept,
        CrashMode::NamesLost,
        CrashMode::ContentLost,
        CrashMode::Subset,
        CrashMode::TornSectors,
        CrashMode::TornBlocks,
        CrashMode::ZeroGrowth,
        CrashMode::Garbage,
    ];

    /// Whether different seeds give different images.
    pub fn is_random(self) -> bool {
        match self {
            CrashMode::AllLost
            | CrashMode::AllKept
            | CrashMode::NamesLost
            | CrashMode::ContentLost => false,
            CrashMode::Subset
            | CrashMode::TornSectors
            | CrashMode::TornBlocks
            | CrashMode::ZeroGrowth
            | CrashMode::Garbage => true,
        }
    }

    pub(super) fn content_fate(self) -> ContentFate {
        match self {
            CrashMode::AllLost | CrashMode::ContentLost => ContentFate::Lost,
            CrashMode::AllKept | CrashMode::NamesLost => ContentFate::Kept,
            CrashMode::Subset => ContentFate::Subset,
            CrashMode::TornSectors => ContentFate::TornSectors,
            CrashMode::TornBlocks => ContentFate::TornBlocks,
            CrashMode::ZeroGrowth => ContentFate::OnlyGrowth,
            CrashMode::Garbage => ContentFate::Garbage,
        }
    }

    pub(super) fn names_fate(self) -> NamesFate {
        match self {
            CrashMode::AllLost | CrashMode::NamesLost => NamesFate::Lost,
            CrashMode::AllKept | CrashMode::ContentLost => NamesFate::Kept,
            CrashMode::Subset
            | CrashMode::TornSectors
            | CrashMode::TornBlocks
            | CrashMode::ZeroGrowth
            | CrashMode::Garbage => NamesFate::Subset,
        }
    }
}

/// What becomes of unsynced changes of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentFate {
    Lost,
    Kept,
    Subset,
    TornSectors,
    TornBlocks,
    OnlyGrowth,
    Garbage,
}

/// What becomes of unsynced changes of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamesFate {
    Lost,
    Kept,
    Subset,
}
