//! Many sessions on one thread: each has one commit on its way, as a token, and none sleeps.
//!
//! The thread goes round its sessions. Their commits become durable in the order in which it made
//! them, so the oldest one tells whether anybody can go on. While it is not durable the thread writes
//! the log itself, and if somebody else is just doing that, it looks again: it is there for its
//! sessions only, and the wake-up from a sleep costs as much as half a sync.

use std::time::Instant;

use onrush::{CommitToken, Durability, Error, Session, Table};

use super::crowd::Shared;
use super::ledger::Ledger;
use super::{LoadPlan, Tables, rows_of_defaults};
use crate::error::MeasureError;

/// One session and where it stands.
struct Task<'d> {
    session: Session,
    tables: Tables<'d>,
    number: usize,
    rows_left: u64,
    on_its_way: Option<OnItsWay>,
}

impl<'d> Task<'d> {
    fn new(plan: &LoadPlan<'d>, number: usize) -> Result<Task<'d>, Error> {
        let mut session = plan.database.session()?;
        session.set_durability(plan.durability);
        let tables = Tables::of(plan, number);
        Ok(Task { session, tables, number, rows_left: plan.rows_of(number), on_its_way: None })
    }

    /// Its commit is not durable yet.
    #[inline]
    fn is_waiting(&self) -> bool {
        self.on_its_way.as_ref().is_some_and(|commit| !commit.token.is_durable())
    }

    /// Its commit, if it had one on its way, is durable, and the session goes on `now`.
    #[inline]
    fn acknowledge(&mut self, now: Instant, ledger: &mut Ledger) {
        if let Some(commit) = self.on_its_way.take() {
            ledger.committed_at(now, commit.started, commit.rows);
            self.session.waited_for_commit(now - commit.inserted);
        }
    }

    fn is_done(&self) -> bool {
        self.rows_left == 0 && self.on_its_way.is_none()
    }
}

/// A commit that is not durable yet. It is timed like every durable one.
struct OnItsWay {
    token: CommitToken,
    started: Instant,
    inserted: Instant, // from here on the session waits
    rows: u64,
}

/// Runs this thread's sessions, every n-th of all, until their rows are acknowledged.
pub(super) fn run_sessions(
    plan: &LoadPlan<'_>,
    shared: &Shared,
    thread: usize,
    ledger: &mut Ledger,
) -> Result<(), MeasureError> {
    let mut tasks: Vec<Task<'_>> = (thread..plan.sessions)
        .step_by(plan.threads())
        .map(|number| Task::new(plan, number))
        .collect::<Result<_, Error>>()?;
    let mut rows_done = 0;
    let mut oldest = 0;
    while !tasks.is_empty() && !shared.is_stopped() {
        if tasks[oldest].is_waiting() {
            make_durable(plan)?;
            continue;
        }
        let mut now = Instant::now();
        let mut is_any_done = false;
        for _ in 0..tasks.len() {
            let task = &mut tasks[oldest];
            if task.is_waiting() {
                break;
            }
            task.acknowledge(now, ledger);
            let rows = plan.rows_per_commit.min(task.rows_left);
            if rows > 0 {
                now = insert(plan, task, rows, now, ledger).map_err(|cause| {
                    MeasureError::Session {
                        session: task.number,
                        rows: plan.rows_of(task.number) - task.rows_left,
                        cause,
                    }
                })?;
                rows_done += rows;
            }
            is_any_done |= task.is_done();
            oldest = if oldest + 1 == tasks.len() { 0 } else { oldest + 1 };
        }
        shared.report(thread, rows_done);
        if is_any_done {
            tasks.rotate_left(oldest);
            tasks.retain(|task| !task.is_done());
            oldest = 0;
        }
    }
    // When time was up: what is on its way is part of the load.
    for task in &mut tasks {
        if let Some(commit) = &task.on_its_way {
            commit.token.wait()?;
            task.acknowledge(Instant::now(), ledger);
        }
    }
    Ok(())
}

/// Inserts rows of the session and commits them; they are on their way then, or acknowledged at once
/// where commits are delayed. It is `now`; returns when it is afterwards: one look at the clock ends one
/// session's turn and begins the next one's.
#[inline]
fn insert(
    plan: &LoadPlan<'_>,
    task: &mut Task<'_>,
    rows: u64,
    now: Instant,
    ledger: &mut Ledger,
) -> Result<Instant, Error> {
    let is_durable = plan.durability == Durability::Durable;
    let timer = if is_durable { Some(now) } else { ledger.start_commit() };
    let token = commit(plan, task.tables.next(), &mut task.session, rows, ledger)?;
    task.rows_left -= rows;
    let Some(token) = token else {
        ledger.committed(timer, rows);
        return Ok(now);
    };
    let inserted = Instant::now();
    task.on_its_way = Some(OnItsWay { token, started: now, inserted, rows });
    Ok(inserted)
}

/// One commit; a token if it must still become durable. The rows of a transaction of several are
/// counted but not remembered.
fn commit(
    plan: &LoadPlan<'_>,
    table: &Table,
    session: &mut Session,
    rows: u64,
    ledger: &mut Ledger,
) -> Result<Option<CommitToken>, Error> {
    let is_durable = plan.durability == Durability::Durable;
    if rows == 1 {
        let token = match is_durable {
            true => Some(session.insert_token(table, &[])?),
            false => session.insert(table, &[]).map(|()| None)?,
        };
        let (key, value) = session.last_row();
        ledger.acknowledged(key, value);
        return Ok(token);
    }
    let defaults = rows_of_defaults(rows);
    match is_durable {
        true => session.insert_many_token(table, defaults).map(Some),
        false => session.insert_many(table, defaults).map(|()| None),
    }
}

/// None of the tasks can go on: writes the log, or lets whoever is writing it have the processor.
fn make_durable(plan: &LoadPlan<'_>) -> Result<(), MeasureError> {
    plan.database.write_log()?;
    std::thread::yield_now();
    Ok(())
}
