//! What all transactions and snapshots together may take in memory.

mod old_versions;
mod open_changes;

pub(crate) use old_versions::make_space;
pub(crate) use open_changes::{OpenChanges, STEP_BYTES};
