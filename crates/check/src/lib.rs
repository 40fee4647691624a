//! Proves that a stored database is sound: by a second code path, with decoders of its own, made
//! from `docs/data-file.md` and `docs/log-format.md` alone. The engine's and the log's decoders are
//! out of reach here, so that an error in them is not repeated.
//!
//! What must hold stands in [`Invariant`], by number. A check goes through it in this order:
//!
//! 1. the superblock, its folders, the headers of the data files (`steps/superblock.rs`);
//! 2. root and catalogue (`steps/catalogue.rs`);
//! 3. the log from the checkpoint on (`steps/log.rs`), beside what follows;
//! 4. for each batch of directory segments: their leaves and fences (`steps/directory.rs`), then the
//!    images in the order of the disk and each of their rows (`steps/images.rs`), in large pieces
//!    that threads take one after the other (`pieces.rs`);
//! 5. the counters behind generated keys, against the highest number that was met.
//!
//! A [`Companion`] goes along: it takes a copy of all that is found sound, which is what a backup is,
//! and says when to rest, for the sake of those who use the database meanwhile.
//!
//! [`salvage()`] hands over what can still be proven good, by the same steps (`salvage/`).
//!
//! Memory: a MiB a thread, one batch of the directory, two bits a slot; nothing grows with the rows.
//!
//! Invariants
//! 1. Nothing is written, but for the lock files of the folders.
//! 2. No input, however damaged, makes a check panic, loop or take memory out of proportion.
//! 3. The loop over the images shares nothing between threads but the number of the next piece.

#![forbid(unsafe_code)]

mod companion;
mod decode;
mod error;
mod finding;
mod findings;
mod generated;
mod invariant;
mod options;
mod pieces;
mod progress;
mod reach;
mod report;
mod run;
mod salvage;
mod source;
mod steps;
mod store;

pub use companion::{Anchor, Companion, LogChange};
pub use error::CheckError;
pub use finding::Finding;
pub use invariant::{Invariant, Severity};
pub use onrush_lsn::Lsn;
pub use options::{CheckOptions, DOP_MAX};
pub use progress::Progress;
pub use reach::{LogReach, foreign_segment, log_reach};
pub use report::{CheckReport, TableReport, checkpoint_words};
pub use run::{check, check_source, lock};
pub use salvage::{Loss, SalvageError, SalvageReport, SalvageTarget, SalvagedTable, salvage};
pub use source::{LogLimit, Source};
