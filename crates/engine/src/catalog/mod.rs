//! The tables: definition, rows, and the counters behind generated keys.

mod sequence;
mod table;

pub(crate) use sequence::Sequence;
pub(crate) use table::{Catalog, TableEntry};
