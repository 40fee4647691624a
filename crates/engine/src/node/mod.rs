//! The bytes of a node: rows in a leaf, separators in an inner node. Nothing here knows a latch
//! guard, the log or the disk.

pub(crate) mod fence;
pub(crate) mod fingerprint;
pub(crate) mod inner;
pub(crate) mod leaf;
mod stamp;
