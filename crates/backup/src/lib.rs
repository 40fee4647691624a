//! Copies a database, and checks what it copies: a page that is not sound is not copied silently.
//!
//! A backup is one checkpoint and the log behind it, in one folder, which is a database like any
//! other: it can be checked, opened, and backed up. So [`backup`] and [`restore`] are one copy with
//! different limits. What a running database is copied from stands in the engine
//! (`Database::backup`): it keeps one checkpoint as it is until the copy is there.
//!
//! - `copier.rs` goes along with a check ([`onrush_check::Companion`]) and writes what it hands over.
//! - `copy.rs` runs the check, and makes the copy a database only when all of it is durable.
//! - `seal.rs` encodes the few blocks that are not the same in the copy.
//!
//! Invariants
//! 1. The folder of a copy has a superblock only when everything else is durable and was found sound; until then,
//!    from before its first byte, it has the mark of unfinished work ([`onrush_files::unfinished`]).
//! 2. Nothing is written outside of the folder of the copy.

#![forbid(unsafe_code)]

mod copier;
mod copy;
mod error;
mod limit;
mod report;
mod seal;

pub use copier::write_superblock;
pub use copy::{backup, copy, restore};
pub use error::BackupError;
pub use limit::{RestoreOptions, parse_time};
pub use report::BackupReport;
