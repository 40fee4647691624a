//! The tables: definition, rows, the counters behind generated keys, and who may define what.

mod handle;
mod index;
mod locks;
mod long_values;
mod reference;
mod reference_locks;
mod relations;
mod sequence;
mod table;

pub use handle::Table;
pub(crate) use index::Index;
pub use locks::Waiting;
pub(crate) use locks::{DefinitionLocks, LockOwner, LockWait, Waiter, WantedRow};
pub(crate) use long_values::{encode_piece, piece_count, piece_key, whole_row};
pub(crate) use reference::{Reference, Referenced, Search};
pub(crate) use reference_locks::{HeldReferences, ReferenceLock, ReferenceLocks, Wanted};
pub(crate) use relations::Relations;
pub(crate) use sequence::Sequence;
pub(crate) use table::{Catalog, CatalogChange, Restart, TableEntry};
