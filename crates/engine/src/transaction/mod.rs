//! What all transactions and snapshots together may take in memory, in which order serializable ones could have run,
//! and how far indexes are that are being built.

mod index_builds;
mod old_versions;
mod open_changes;
mod serial_order;
#[cfg(test)]
mod serial_order_test;

pub(crate) use index_builds::{IndexBuild, IndexBuilds};
pub use index_builds::{IndexBuildPhase, IndexBuildState};
pub(crate) use old_versions::make_space;
pub(crate) use open_changes::{OpenChanges, STEP_BYTES};
pub(crate) use serial_order::{ChangedKeys, Entered, ReadSet, Registered, SerialOrder};
