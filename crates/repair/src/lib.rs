//! Writes what can still be proven good of a damaged database into a new one, and lists what is lost.
//!
//! What is good says [`onrush_check::salvage()`], which reads with decoders of its own; here its rows go
//! through the engine's public calls into a new database (`writer.rs`), which is then checked and
//! counted (`run.rs`).
//!
//! Invariants
//! 1. Nothing is written to the damaged database, but for the lock files of its folders.
//! 2. Nothing that exists is overwritten: the new folder must not be there.
//! 3. Every row of the new database was committed in the damaged one.
//! 4. What is lost is in the report: without a loss in it, the new database has all rows.
//! 5. From before its first byte until it has been checked and counted, the new folder has the mark of unfinished
//!    work ([`onrush_files::unfinished`]): cut off, it is no database that opens.

#![forbid(unsafe_code)]

mod error;
mod long_values;
mod options;
mod progress;
mod report;
mod run;
mod writer;

pub use error::RepairError;
pub use options::RepairOptions;
pub use progress::RepairProgress;
pub use report::{Outcome, RepairReport, RepairedTable};
pub use run::repair;
