//! All recorders of a database.
//!
//! Invariants
//! 1. A recorder's numbers are in `live` or in `retired`, never in both or in neither: one lock
//!    moves them.
//! 2. Memory grows with the recorders that are alive, not with those that ever were.
//! 3. Recorders are never set back: a reset remembers what they said, and subtracts it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::catalog::Wait;
use crate::numbers::Numbers;
use crate::recorder::{Recorder, nanos_of};
use crate::totals::{Totals, WaitTotal};

/// Whether anything is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// Everything in the catalog is recorded.
    #[default]
    On,
    /// No wait, no time, no clock is read; counters go on.
    Off,
}

/// Whose numbers a recorder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecorderKind {
    /// A session: its time is phases, waits, and what its client did between calls.
    Session,
    /// A background thread, a snapshot, or the engine itself.
    Background,
}

/// Whose a session is, as the program says that lets it in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionClient {
    /// What the client calls itself; may be empty.
    pub application: String,
    /// The role that it has come in as.
    pub user: String,
    /// Where it comes from.
    pub address: String,
}

/// A recorder that is alive, and everything in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveTotals {
    /// Its number, which no other recorder of the database ever has.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub kind: RecorderKind,
    /// What it waits for at this moment, if it does.
    pub waits_now: Option<Wait>,
    /// Its numbers since it began, or since the last reset.
    pub totals: Totals,
}

/// A recorder that is alive, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSummary {
    /// Its number, which no other recorder of the database ever has.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub kind: RecorderKind,
    /// Whose the session is, if anybody has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<SessionClient>,
    /// What it waits for at this moment, if it does.
    pub waits_now: Option<Wait>,
    /// How long it exists, in nanoseconds.
    pub lifetime_nanos: u64,
    /// Calls begun.
    pub calls: u64,
    /// Waits that are over, as in [`Totals`]; those without any time are left out.
    pub waits: Vec<WaitTotal>,
}

impl LiveSummary {
    /// What to call it in a listing: application, user and address of the client, or its name.
    #[must_use]
    pub fn title(&self) -> String {
        let Some(client) = &self.client else { return self.name.clone() };
        let application = match client.application.as_str() {
            "" => &self.name,
            application => application,
        };
        format!("{application} {}@{}", client.user, client.address)
    }
}

#[derive(Debug)]
struct Live {
    name: String,
    client: Option<SessionClient>,
    kind: RecorderKind,
    started: Instant,
    numbers: Arc<Numbers>,
    /// What it said at the last reset.
    before_reset: Option<Box<Totals>>,
}

impl Live {
    fn add_to(&self, totals: &mut Totals) {
        totals.add_numbers(&self.numbers, self.kind, self.started.elapsed());
    }

    fn totals(&self, id: u64) -> LiveTotals {
        let mut totals = Totals::default();
        self.add_to(&mut totals);
        if let Some(before) = &self.before_reset {
            totals = totals.since(before);
        }
        let waits_now = self.numbers.waits_now();
        LiveTotals { id, name: self.name.clone(), kind: self.kind, waits_now, totals }
    }

    fn summary(&self, id: u64) -> LiveSummary {
        let waits = Wait::ALL.iter().map(|wait| WaitTotal::of(*wait, &self.numbers));
        LiveSummary {
            id,
            name: self.name.clone(),
            kind: self.kind,
            client: self.client.clone(),
            waits_now: self.numbers.waits_now(),
            lifetime_nanos: nanos_of(self.started.elapsed()),
            calls: self.numbers.sampling.calls.get(),
            waits: waits.filter(|total| total.nanos > 0).collect(),
        }
    }
}

/// Behind the one lock: taken when a session begins or ends, and by those who sum.
#[derive(Debug, Default)]
struct State {
    next_id: u64,
    live: BTreeMap<u64, Live>,
    retired: Totals,
    /// The sum at the last reset.
    before_reset: Option<Box<Totals>>,
}

impl State {
    fn sum(&self) -> Totals {
        let mut totals = self.retired.clone();
        for live in self.live.values() {
            live.add_to(&mut totals);
        }
        totals
    }
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

    pub(crate) fn enlist(&self, name: &str, kind: RecorderKind, numbers: &Arc<Numbers>) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let live = Live {
            name: name.to_owned(),
            client: None,
            kind,
            started: Instant::now(),
            numbers: Arc::clone(numbers),
            before_reset: None,
        };
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

    /// The sum over all recorders that there are or ever were, since the last reset.
    ///
    /// Numbers written while it sums may or may not be in it, but without a reset in between a
    /// later call never returns lower counts.
    pub fn totals(&self) -> Totals {
        let state = self.shared.state.lock();
        let totals = state.sum();
        match &state.before_reset {
            Some(before) => totals.since(before),
            None => totals,
        }
    }

    /// Each live recorder, oldest first.
    pub fn live(&self) -> Vec<LiveTotals> {
        let state = self.shared.state.lock();
        state.live.iter().map(|(id, live)| live.totals(*id)).collect()
    }

    /// A live recorder of this registry.
    ///
    /// # Panics
    /// If it is another registry's.
    pub fn live_one(&self, recorder: &Recorder) -> LiveTotals {
        let state = self.shared.state.lock();
        let live = state.live.get(&recorder.id()).expect("a recorder is live until it is dropped");
        live.totals(recorder.id())
    }

    /// Each live recorder in short, oldest first. Resets do not matter to it.
    pub fn summaries(&self) -> Vec<LiveSummary> {
        let state = self.shared.state.lock();
        state.live.iter().map(|(id, live)| live.summary(*id)).collect()
    }

    /// Says whose the session with this number is. Without one of that number nothing happens.
    pub fn set_client(&self, id: u64, client: SessionClient) {
        if let Some(live) = self.shared.state.lock().live.get_mut(&id) {
            live.client = Some(client);
        }
    }

    /// How many live recorders wait for one of these at this moment.
    pub fn waiting_now(&self, waits: &[Wait]) -> u64 {
        let state = self.shared.state.lock();
        let is_one =
            |live: &&Live| live.numbers.waits_now().is_some_and(|now| waits.contains(&now));
        state.live.values().filter(is_one).count() as u64
    }

    /// From now on sums begin at nothing.
    pub fn reset(&self) {
        let mut state = self.shared.state.lock();
        state.before_reset = Some(Box::new(state.sum()));
        for live in state.live.values_mut() {
            let mut totals = Totals::default();
            live.add_to(&mut totals);
            live.before_reset = Some(Box::new(totals));
        }
    }
}
