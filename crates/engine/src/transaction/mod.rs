//! Transactions of several rows, snapshots, and the older versions they need.

mod large;
mod old_versions;
mod open_changes;
mod own_versions;
mod snapshots;
mod states;
mod versions;

pub(crate) use large::{LargeTable, LargeTransactions};
pub(crate) use old_versions::{OldVersions, make_room};
pub(crate) use open_changes::{OpenChanges, STEP_BYTES};
pub(crate) use own_versions::{OwnValue, OwnVersions};
pub(crate) use snapshots::Snapshots;
pub(crate) use states::{TransactionState, TransactionStates};
pub(crate) use versions::{OldVersion, VersionStore};
