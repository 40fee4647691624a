//! The load: many sessions, each inserting rows of defaults and committing them.
//!
//! - [`crowd`]: threads that start together and stop together, whatever they do.
//! - [`threads`]: a thread for each session, which sleeps until its commit is durable.
//! - [`tasks`]: many sessions on one thread a processor, each with one commit on its way.
//! - [`client`]: a session that brings its keys, and reads and updates rows of its own.
//! - [`client_keys`]: those keys. [`mix`]: which of its rows a session reads or updates, and when.
//! - [`ledger`]: what a thread remembers of the rows that were acknowledged to it.
//!
//! Invariants
//! 1. Either way a session has at most one commit that is not acknowledged, so that results compare
//!    with the bound N/F.
//! 2. The clock runs from the first session's start until the last acknowledgement.
//! 3. A load in which any session failed has no result: the first error is returned.

mod client;
pub mod client_keys;
pub mod crowd;
pub mod ledger;
pub mod mix;
mod tasks;
mod threads;

use std::time::Duration;

use onrush::{Database, Durability, KeyStrategy, Table, Value};

use crate::classic_table::NumberColumns;
use crate::error::MeasureError;
use crate::machine::cpus;
use crate::progress::{Observer, Step};
use crate::settings::Driver;
use client_keys::{KeySpread, Numbers};
use crowd::Crowd;
use ledger::{Ledger, LedgerKind};
use mix::Mix;

/// What to load.
#[derive(Clone)]
pub(crate) struct LoadPlan<'d> {
    pub(crate) database: &'d Database,
    /// Each session goes round them.
    pub(crate) tables: &'d [Table],
    pub(crate) rows: u64,
    pub(crate) sessions: usize,
    pub(crate) rows_per_commit: u64,
    pub(crate) rows_per_statement: u64,
    pub(crate) durability: Durability,
    pub(crate) driver: Driver,
    pub(crate) ledger: LedgerKind,
    pub(crate) step: Step,
    pub(crate) is_pinned: bool,
    pub(crate) time_max: Option<Duration>,
    /// All sessions together insert no more; None: as many as they can. For threads only.
    pub(crate) rows_per_s_max: Option<f64>,
    /// Where sessions bring their keys; else the engine makes them. For threads and single rows only.
    pub(crate) client: Option<ClientLoad>,
    /// Where their keys come from.
    pub(crate) numbers: &'d Numbers,
}

/// A load by clients that know the keys of their rows.
#[derive(Clone, Copy, Debug)]
pub struct ClientLoad {
    /// How keys are made.
    pub key: KeyStrategy,
    /// How they lie in the key space.
    pub spread: KeySpread,
    /// What the rows hold besides.
    pub numbers: NumberColumns,
    /// What is done beside inserts.
    pub mix: Mix,
}

/// What was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// From the first insert to the last acknowledgement.
    pub elapsed: Duration,
    /// Processor time of the whole process meanwhile.
    pub cpu: Duration,
    /// What was acknowledged.
    pub ledger: Ledger,
}

/// Rows of one of several sessions: the first ones take what does not divide.
pub fn rows_of(rows: u64, sessions: usize, session: usize) -> u64 {
    let (sessions, session) = (sessions as u64, session as u64);
    rows / sessions + u64::from(session < rows % sessions)
}

impl LoadPlan<'_> {
    fn rows_of(&self, session: usize) -> u64 {
        rows_of(self.rows, self.sessions, session)
    }

    fn threads(&self) -> usize {
        match self.driver {
            Driver::Threads => self.sessions,
            Driver::Tasks => self.sessions.min(cpus()),
        }
    }
}

/// Runs the load and waits until every row is acknowledged.
pub(crate) fn run(plan: &LoadPlan<'_>, observer: &dyn Observer) -> Result<Loaded, MeasureError> {
    let crowd = Crowd {
        threads: plan.threads(),
        rows: plan.rows,
        ledger: plan.ledger,
        step: plan.step,
        is_pinned: plan.is_pinned,
        time_max: plan.time_max,
    };
    crowd::run(crowd, observer, &|shared, thread, ledger| match plan.driver {
        Driver::Threads => threads::run_session(plan, shared, thread, ledger),
        Driver::Tasks => tasks::run_sessions(plan, shared, thread, ledger),
    })
}

/// The tables of a load, one after the other and round again.
struct Tables<'d> {
    all: &'d [Table],
    next: usize,
}

impl<'d> Tables<'d> {
    /// Sessions begin at different ones.
    fn of(plan: &LoadPlan<'d>, session: usize) -> Tables<'d> {
        Tables { all: plan.tables, next: session % plan.tables.len() }
    }

    #[inline]
    fn next(&mut self) -> &'d Table {
        let table = &self.all[self.next];
        self.next = if self.next + 1 == self.all.len() { 0 } else { self.next + 1 };
        table
    }

    /// The one that [`next`](Self::next) gave last.
    #[inline]
    fn current(&self) -> &'d Table {
        &self.all[self.next.checked_sub(1).unwrap_or(self.all.len() - 1)]
    }
}

/// So many rows in which every column is its default.
fn rows_of_defaults(count: u64) -> impl Iterator<Item = &'static [Value<'static>]> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    std::iter::repeat_n([].as_slice(), count)
}
