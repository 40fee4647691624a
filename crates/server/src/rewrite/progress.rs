//! How far rewrites of tables are, for `onrush.rewrites`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onrush_query::clock::unix_micros;
use parking_lot::Mutex;

/// What a rewrite is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Rows are read from a snapshot and written to the copy.
    Copying,
    /// What was changed meanwhile is done to the copy.
    CatchingUp,
    /// Those who are in the middle of a change, or of another definition, end it.
    Waiting,
    /// The last changes, and the commit.
    Switching,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Copying => "copying",
            Phase::CatchingUp => "catching up",
            Phase::Waiting => "waiting for the lock",
            Phase::Switching => "switching",
        }
    }
}

/// All rewrites that are under way.
#[derive(Default)]
pub(crate) struct Rewrites {
    entries: Mutex<BTreeMap<u64, Arc<RewriteEntry>>>,
    last_number: AtomicU64,
}

/// One rewrite, as others see it.
pub(crate) struct RewriteEntry {
    /// The client that has asked for it.
    pub(crate) client: i32,
    pub(crate) table: String,
    pub(crate) began_micros: i64,
    now: Mutex<State>,
}

/// How far it is.
#[derive(Clone, Copy)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// Rows that were copied.
    pub(crate) rows_done: u64,
    /// Rows that there are to be copied, about; none before that can be told.
    pub(crate) rows_expected: Option<u64>,
    /// How often it has caught up with others.
    pub(crate) rounds: u64,
    /// Rows that others had changed meanwhile, in all rounds.
    pub(crate) rows_caught_up: u64,
}

/// A rewrite's place in the list, until it is dropped.
pub(crate) struct Progress {
    rewrites: Arc<Rewrites>,
    number: u64,
    entry: Arc<RewriteEntry>,
}

impl Rewrites {
    /// A client begins a rewrite of this table. At first it waits for those who define the table.
    pub(crate) fn begin(self: &Arc<Rewrites>, client: i32, table: &str) -> Progress {
        let now = State {
            phase: Phase::Waiting,
            rows_done: 0,
            rows_expected: None,
            rounds: 0,
            rows_caught_up: 0,
        };
        let entry = Arc::new(RewriteEntry {
            client,
            table: table.to_owned(),
            began_micros: unix_micros(),
            now: Mutex::new(now),
        });
        let number = self.last_number.fetch_add(1, Ordering::Relaxed);
        self.entries.lock().insert(number, Arc::clone(&entry));
        Progress { rewrites: Arc::clone(self), number, entry }
    }

    pub(crate) fn all(&self) -> Vec<Arc<RewriteEntry>> {
        self.entries.lock().values().cloned().collect()
    }
}

impl RewriteEntry {
    pub(crate) fn state(&self) -> State {
        *self.now.lock()
    }
}

impl Progress {
    pub(super) fn enter(&self, phase: Phase) {
        self.entry.now.lock().phase = phase;
    }

    /// So many rows more were looked at.
    pub(super) fn add_rows(&self, rows: u64) {
        let mut now = self.entry.now.lock();
        if now.phase == Phase::Copying {
            now.rows_done += rows;
        }
    }

    /// So many of the parts of a table, all with about as many rows, are copied.
    pub(super) fn parts_are_done(&self, done: u64, of: u64) {
        let mut now = self.entry.now.lock();
        now.rows_expected = Some(now.rows_done.saturating_mul(of) / done.max(1));
    }

    pub(super) fn round_is_done(&self, changes: u64) {
        let mut now = self.entry.now.lock();
        now.rounds += 1;
        now.rows_caught_up += changes;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.rewrites.entries.lock().remove(&self.number);
    }
}
