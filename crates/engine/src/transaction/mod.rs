//! Transactions of several rows, snapshots, and the older versions they need.

mod snapshots;
mod states;
mod versions;

pub(crate) use snapshots::Snapshots;
pub(crate) use states::{TransactionState, TransactionStates};
pub(crate) use versions::{OldVersion, VersionStore};
