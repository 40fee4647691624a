//! The steps of a check, in the order in which they are taken.

pub(crate) mod catalogue;
pub(crate) mod counters;
pub(crate) mod directory;
pub(crate) mod images;
pub(crate) mod large;
pub(crate) mod log;
pub(crate) mod long_values;
pub(crate) mod merge;
pub(crate) mod owners;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod runs;
pub(crate) mod stocks;
pub(crate) mod superblock;
