//! Indexes that are being built, and how far they are, for who asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

/// What is done for an index that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexBuildPhase {
    /// Waiting for those who write to the table as it is without the index.
    Beginning,
    /// Reading rows and writing their entries, beside those who write to the table.
    Filling,
    /// Waiting for those who write to the table, to say that the index is whole.
    Finishing,
}

/// How far an index is that is being built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexBuildState {
    /// The session that it is built for, as [`IndexBuildOptions`](crate::IndexBuildOptions) say.
    pub session: u64,
    /// The number of the table.
    pub table: u32,
    /// The number of the entries of the index; 0 before there are some.
    pub entries: u32,
    /// Whether it takes the place of an index.
    pub is_again: bool,
    /// What is done.
    pub phase: IndexBuildPhase,
    /// About how many leaves of the table there are to be read.
    pub leaves: u64,
    /// How many of them were read.
    pub leaves_done: u64,
    /// Rows that were read.
    pub rows_done: u64,
}

/// One of them.
pub(crate) struct IndexBuild {
    session: u64,
    table: u32,
    entries: u32,
    is_again: bool,
    phase: AtomicU8,
    leaves: AtomicU64,
    leaves_done: AtomicU64,
    rows_done: AtomicU64,
    /// Whether it has failed, so that all who build it stop. Set once.
    has_failed: AtomicBool,
}

impl IndexBuild {
    pub(crate) fn new(session: u64, (table, entries): (u32, u32), is_again: bool) -> IndexBuild {
        IndexBuild {
            session,
            table,
            entries,
            is_again,
            phase: AtomicU8::new(IndexBuildPhase::Beginning as u8),
            leaves: AtomicU64::new(0),
            leaves_done: AtomicU64::new(0),
            rows_done: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    pub(crate) fn begin_filling(&self, leaves: u64) {
        self.leaves.store(leaves, Ordering::Relaxed);
        self.phase.store(IndexBuildPhase::Filling as u8, Ordering::Relaxed);
    }

    pub(crate) fn begin_finishing(&self) {
        self.phase.store(IndexBuildPhase::Finishing as u8, Ordering::Relaxed);
    }

    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows_done.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn add_leaves(&self, leaves: u64) {
        self.leaves_done.fetch_add(leaves, Ordering::Relaxed);
    }

    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn state(&self) -> IndexBuildState {
        let phases =
            [IndexBuildPhase::Beginning, IndexBuildPhase::Filling, IndexBuildPhase::Finishing];
        IndexBuildState {
            session: self.session,
            table: self.table,
            entries: self.entries,
            is_again: self.is_again,
            phase: phases[usize::from(self.phase.load(Ordering::Relaxed))],
            leaves: self.leaves.load(Ordering::Relaxed),
            leaves_done: self.leaves_done.load(Ordering::Relaxed),
            rows_done: self.rows_done.load(Ordering::Relaxed),
        }
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct IndexBuilds(Mutex<Vec<Arc<IndexBuild>>>);

impl IndexBuilds {
    /// One more, until [`remove`](Self::remove).
    pub(crate) fn add(&self, build: IndexBuild) -> Arc<IndexBuild> {
        let build = Arc::new(build);
        self.0.lock().push(Arc::clone(&build));
        build
    }

    pub(crate) fn remove(&self, build: &Arc<IndexBuild>) {
        self.0.lock().retain(|other| !Arc::ptr_eq(other, build));
    }

    pub(crate) fn states(&self) -> Vec<IndexBuildState> {
        self.0.lock().iter().map(|build| build.state()).collect()
    }
}
