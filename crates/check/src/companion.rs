//! Who goes along with a check: takes a copy of what was found sound, and says when to rest.

use onrush_lsn::Lsn;

use std::time::Duration;

pub use crate::decode::record::Change as LogChange;

/// What of the superblock a copy must know.
#[derive(Clone, Copy, Debug)]
pub struct Anchor<'a> {
    /// The newest copy that is whole: 4 KiB.
    pub block: &'a [u8],
    /// Id of the database.
    pub database_id: u128,
    /// The number of the history that goes on in it: another one if it was restored.
    pub history: u128,
    /// Number of the installed checkpoint; none before the first.
    pub checkpoint: Option<u64>,
    /// How many data files there are.
    pub data_files: usize,
    /// C: the LSN that redo starts from.
    pub redo_from_lsn: Lsn,
    /// The log segment that C is in.
    pub redo_from_segment: u64,
    /// E: below it, a database without the log is not what it was.
    pub must_reach_lsn: Lsn,
    /// When what is below E was durable at the latest, in microseconds since 1970; none if nobody knows.
    pub must_reach_us: Option<u64>,
}

/// See the module. Called by all threads of a check, each piece once, in no order, and before the
/// check knows whether all of it is sound. `()` does nothing.
pub trait Companion: Sync {
    /// The superblock; called first.
    fn superblock(&self, _anchor: &Anchor<'_>) {}

    /// The header of a data file, and how many bytes the file has.
    fn data_file(&self, _number: usize, _bytes: u64, _header: &[u8]) {}

    /// Pages of 16 KiB that lie together in a data file: images, or parts of the directory.
    fn pages(&self, _file: usize, _offset: u64, _pages: &[u8]) {}

    /// The header of a log segment, and how many bytes the file has. Its blocks follow.
    fn segment(&self, _number: u64, _bytes: u64, _header: &[u8]) {}

    /// A block of the segment named last. Only the first so many of its record bytes count.
    fn block(&self, _offset: u64, _block: &[u8], _record_bytes: usize) {}

    /// Whether to hand over rows, too; then the log is read before any image.
    fn wants_rows(&self) -> bool {
        false
    }

    /// What the log says of the row with this key, one record after the other.
    fn log_change(&self, _object: u32, _key: &[u8], _change: LogChange<'_>) {}

    /// The rows of the leaf that begins at `low`, as key and value, as its image says; or some of a range with a
    /// stock, from `low` on.
    fn leaf(&self, _object: u32, _low: &[u8], _rows: &mut dyn Iterator<Item = (&[u8], &[u8])>) {}

    /// The log has been read to the end: nothing more of it is needed.
    fn log_is_read(&self) {}

    /// A thread has worked on images for so long since it last called.
    fn rest(&self, _worked: Duration) {}

    /// The same of the log, which should not take long: who appends may wait for its segments.
    fn rest_in_log(&self, _worked: Duration) {}

    /// Whether to stop as soon as possible; the report will be incomplete.
    fn gives_up(&self) -> bool {
        false
    }
}

impl Companion for () {}
