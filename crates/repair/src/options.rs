//! What to repair and how.

use onrush::Options;

/// What to repair and how. The default takes all tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepairOptions {
    /// Only these tables; empty: all.
    pub tables: Vec<String>,
    /// Settings of the new database, its data and log folders among them.
    pub engine: Options,
}
