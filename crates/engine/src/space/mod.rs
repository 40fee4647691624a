//! Where images go: slots of 16 KiB in one or more data files.
//!
//! Nothing about free space is stored. At open it follows from the directory; while running, a
//! slot is free again when the last [`Slot`] that owns it is dropped: the live leaf, the image
//! being written, the published directory and a running check each keep theirs.
//!
//! Invariants
//! 1. A slot has one [`Slot`] at a time, or is free.
//! 2. Whoever allocates has reserved before, so an allocation always finds a slot: a leaf reserves
//!    when it becomes dirty, so that a checkpoint can always finish.

mod blob;
mod file;
mod slots;

pub(crate) use blob::{Blob, BlobAddress};
pub(crate) use file::{DataFiles, FORMAT_VERSION, data_file_path};
pub(crate) use slots::{Cursor, Purpose, Slot, SlotId, Slots, Space};
