//! A thread for each session: it inserts, commits, and sleeps until the commit is acknowledged.

use std::time::{Duration, Instant};

use onrush::{Error, Session};

use super::crowd::Shared;
use super::ledger::Ledger;
use super::{LoadPlan, rows_of_defaults};
use crate::error::LabError;

/// Runs the session of this thread until its rows are in.
pub(super) fn run_session(
    plan: &LoadPlan<'_>,
    shared: &Shared,
    thread: usize,
    ledger: &mut Ledger,
) -> Result<(), LabError> {
    let rows = plan.rows_of(thread);
    let mut session = plan.database.session()?;
    session.set_durability(plan.durability);
    let pace = plan.rows_per_s_max.map(|rate| Pace::of(rate / plan.sessions as f64));
    let mut done = 0;
    while done < rows && !shared.is_stopped() {
        let count = plan.rows_per_commit.min(rows - done);
        let outcome = if count == 1 {
            insert_one(plan, &mut session, ledger)
        } else if plan.rows_per_statement < count {
            insert_by_statements(plan, &mut session, count, ledger)
        } else {
            insert_several(plan, &mut session, count, ledger)
        };
        outcome.map_err(|cause| LabError::Session { session: thread, rows: done, cause })?;
        done += count;
        shared.report(thread, done);
        if let Some(pace) = &pace {
            pace.wait(done);
        }
    }
    Ok(())
}

/// A session that inserts no faster than it is told.
struct Pace {
    started: Instant,
    rows_per_s: f64,
}

impl Pace {
    fn of(rows_per_s: f64) -> Pace {
        Pace { started: Instant::now(), rows_per_s }
    }

    /// Sleeps until the next row after `done` is due.
    fn wait(&self, done: u64) {
        let due = Duration::from_secs_f64(done as f64 / self.rows_per_s);
        let early = due.saturating_sub(self.started.elapsed());
        // Sleeping takes longer than asked for: many short sleeps would make the session too slow.
        if early >= Duration::from_millis(1) {
            std::thread::sleep(early);
        }
    }
}

#[inline]
fn insert_one(
    plan: &LoadPlan<'_>,
    session: &mut Session,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let timer = ledger.start_commit();
    session.insert(plan.table, &[])?;
    ledger.committed(timer, 1);
    let (key, value) = session.last_row();
    ledger.acknowledged(key, value);
    Ok(())
}

/// A transaction of several rows, one call; the time of a commit is the time of that call. The
/// engine does not give back the rows, so they are counted but not remembered.
fn insert_several(
    plan: &LoadPlan<'_>,
    session: &mut Session,
    count: u64,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let timer = ledger.start_commit();
    session.insert_many(plan.table, rows_of_defaults(count))?;
    ledger.committed(timer, count);
    Ok(())
}

/// A transaction of several calls.
fn insert_by_statements(
    plan: &LoadPlan<'_>,
    session: &mut Session,
    count: u64,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let timer = ledger.start_commit();
    let mut transaction = session.begin()?;
    for _ in 0..count {
        transaction.insert(plan.table, &[])?;
    }
    transaction.commit()?;
    ledger.committed(timer, count);
    Ok(())
}
