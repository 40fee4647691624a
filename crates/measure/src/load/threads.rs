//! A thread for each session: it inserts, commits, and sleeps until the commit is acknowledged.

use std::time::{Duration, Instant};

use onrush::{Error, Session, Table};

use super::client::Client;
use super::crowd::Shared;
use super::ledger::Ledger;
use super::{LoadPlan, Tables, rows_of_defaults};
use crate::error::MeasureError;

/// Runs the session of this thread until its rows are in.
pub(super) fn run_session(
    plan: &LoadPlan<'_>,
    shared: &Shared,
    thread: usize,
    ledger: &mut Ledger,
) -> Result<(), MeasureError> {
    let rows = plan.rows_of(thread);
    let mut session = plan.database.session()?;
    session.set_durability(plan.durability);
    let pace = plan.rows_per_s_max.map(|rate| Pace::of(rate / plan.sessions as f64));
    let mut client = plan.client.map(|load| Client::new(load, plan)).transpose()?;
    let mut tables = Tables::of(plan, thread);
    let mut done = 0;
    while done < rows && !shared.is_stopped() {
        let count = plan.rows_per_commit.min(rows - done);
        let committed = match &mut client {
            None => commit(plan, tables.next(), &mut session, count, ledger),
            Some(client) => client.commit(tables.next(), &mut session, ledger),
        };
        let failed = |cause| MeasureError::Session { session: thread, rows: done, cause };
        committed.map_err(failed)?;
        if let Some(client) = &mut client {
            client.read_and_update(tables.current(), &mut session, shared, failed)?;
        }
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

/// Inserts the rows of one transaction and commits it, in as few calls as the plan allows. Of several
/// rows the engine gives none back: they are counted but not remembered.
#[inline]
fn commit(
    plan: &LoadPlan<'_>,
    table: &Table,
    session: &mut Session,
    rows: u64,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let timer = ledger.start_commit();
    if rows == 1 {
        session.insert(table, &[])?;
    } else if plan.rows_per_statement < rows {
        let mut transaction = session.begin()?;
        for _ in 0..rows {
            transaction.insert(table, &[])?;
        }
        transaction.commit()?;
    } else {
        session.insert_many(table, rows_of_defaults(rows))?;
    }
    ledger.committed(timer, rows);
    if rows == 1 {
        let (key, value) = session.last_row();
        ledger.acknowledged(key, value);
    }
    Ok(())
}
