//! All recorders of a database.
//!
//! Invariants
//! 1. A recorder's numbers are in `live` or in `retired`, never in both or in neither: one lock
//!    moves them.
//! 2. Memory grows with the recorders that are alive, not with those that ever were.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::recorder::Numbers;
use crate::totals::Totals;

/// Whether anything is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// Everything in the catalog is recorded.
    #[default]
    On,
    /// Nothing is: no clock is read and nothing counted, so that the cost of recording can be
    /// measured.
    Off,
}

/// A recorder that is alive.
#[derive(Debug)]
struct Live {
    name: String,
    started: Instant,
    numbers: Arc<Numbers>,
}

impl Live {
    fn add_to(&self, totals: &mut Totals) {
        totals.add_numbers(&self.numbers, self.started.elapsed());
    }
}

/// Behind the one lock: taken when a session begins or ends, and by those who sum.
#[derive(Debug, Default)]
struct State {
    next_id: u64,
    live: BTreeMap<u64, Live>,
    retired: Totals,
}

/// What a registry shares with its recorders.
#[derive(Debug)]
pub(crate) struct Shared {
    statistics: Statistics,
    state: Mutex<State>,
}

impl Shared {
    pub(crate) fn is_on(&self) -> bool {
        self.statistics == Statistics::On
    }

    pub(crate) fn enlist(&self, name: &str, numbers: &Arc<Numbers>) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let live =
            Live { name: name.to_owned(), started: Instant::now(), numbers: Arc::clone(numbers) };
        state.live.insert(id, live);
        id
    }

    pub(crate) fn retire(&self, id: u64) {
        let mut state = self.state.lock();
        if let Some(live) = state.live.remove(&id) {
            live.add_to(&mut state.retired);
        }
    }
}

/// All recorders of one database, live and retired. Clones are handles to the same registry.
#[derive(Clone, Debug)]
pub struct Registry {
    shared: Arc<Shared>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry whose recorders record.
    pub fn new() -> Self {
        Self::with_statistics(Statistics::On)
    }

    /// A registry whose recorders record, or do not.
    pub fn with_statistics(statistics: Statistics) -> Self {
        Self { shared: Arc::new(Shared { statistics, state: Mutex::default() }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The sum over all recorders that there are or ever were.
    ///
    /// Numbers written while it sums may or may not be in it, but a later call never returns less.
    pub fn totals(&self) -> Totals {
        let state = self.shared.state.lock();
        let mut totals = state.retired.clone();
        for live in state.live.values() {
            live.add_to(&mut totals);
        }
        totals
    }

    /// The numbers of each live recorder with its name, oldest first.
    pub fn live(&self) -> Vec<(String, Totals)> {
        let state = self.shared.state.lock();
        let each = state.live.values().map(|live| {
            let mut totals = Totals::default();
            live.add_to(&mut totals);
            (live.name.clone(), totals)
        });
        each.collect()
    }
}
