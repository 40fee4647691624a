//! Many sessions on one thread: each has one commit on its way, as a token, and none sleeps.
//!
//! The thread goes round its sessions. One whose commit is durable inserts its next row; if none
//! is, the thread writes the log itself, and if somebody else is just doing that, it looks again:
//! it is there for its sessions only, and the wake-up from a sleep costs as much as half a sync.

use std::time::Instant;

use onrush::{CommitToken, Durability, Error, Session};

use super::crowd::Shared;
use super::ledger::Ledger;
use super::{LoadPlan, rows_of_defaults};
use crate::error::LabError;

/// One session and where it stands.
struct Task {
    session: Session,
    number: usize,
    rows_left: u64,
    on_its_way: Option<OnItsWay>,
}

impl Task {
    fn new(plan: &LoadPlan<'_>, number: usize) -> Result<Task, Error> {
        let mut session = plan.database.session()?;
        session.set_durability(plan.durability);
        Ok(Task { session, number, rows_left: plan.rows_of(number), on_its_way: None })
    }
}

/// A commit that is not durable yet. It is timed like every durable one.
struct OnItsWay {
    token: CommitToken,
    started: Option<Instant>,
    inserted: Instant, // from here on the session waits
    rows: u64,
}

impl OnItsWay {
    /// Its session may go on. Returns when that was: the next commit begins with it.
    #[inline]
    fn end(self, session: &Session, ledger: &mut Ledger) -> Option<Instant> {
        let ended = ledger.committed(self.started, self.rows)?;
        session.waited_for_commit(ended - self.inserted);
        Some(ended)
    }
}

/// Runs this thread's sessions, every n-th of all, until their rows are acknowledged.
pub(super) fn run_sessions(
    plan: &LoadPlan<'_>,
    shared: &Shared,
    thread: usize,
    ledger: &mut Ledger,
) -> Result<(), LabError> {
    let mut tasks: Vec<Task> = (thread..plan.sessions)
        .step_by(plan.threads())
        .map(|number| Task::new(plan, number))
        .collect::<Result<_, Error>>()?;
    let mut rows_done = 0;
    let mut first = 0;
    while !tasks.is_empty() && !shared.is_stopped() {
        // Whoever comes last may miss the sync that the others share: each in its turn.
        first = (first + 1) % tasks.len();
        let (later, sooner) = tasks.split_at_mut(first);
        let mut rows_begun = 0;
        for task in sooner.iter_mut().chain(later) {
            rows_begun += step(plan, task, ledger).map_err(|cause| LabError::Session {
                session: task.number,
                rows: plan.rows_of(task.number) - task.rows_left,
                cause,
            })?;
        }
        rows_done += rows_begun;
        shared.report(thread, rows_done);
        tasks.retain(|task| task.rows_left > 0 || task.on_its_way.is_some());
        if rows_begun == 0 {
            make_durable(plan)?;
        }
    }
    // When time was up: what is on its way is part of the load.
    for task in &mut tasks {
        if let Some(commit) = task.on_its_way.take() {
            commit.token.wait()?;
            commit.end(&task.session, ledger);
        }
    }
    Ok(())
}

/// Gives the session its turn. Returns how many rows it inserted.
#[inline]
fn step(plan: &LoadPlan<'_>, task: &mut Task, ledger: &mut Ledger) -> Result<u64, Error> {
    let ended = match task.on_its_way.take_if(|commit| commit.token.is_durable()) {
        Some(commit) => commit.end(&task.session, ledger),
        None if task.on_its_way.is_some() => return Ok(0),
        None => None,
    };
    let rows = plan.rows_per_commit.min(task.rows_left);
    if rows == 0 {
        return Ok(0);
    }
    let started = ended.or_else(|| ledger.start_commit());
    let token = insert(plan, &mut task.session, rows, ledger)?;
    task.rows_left -= rows;
    match token {
        Some(token) => {
            task.on_its_way = Some(OnItsWay { token, started, inserted: Instant::now(), rows });
        }
        None => {
            ledger.committed(started, rows);
        }
    }
    Ok(rows)
}

/// Inserts and commits; a token if the commit must still become durable. The rows of a
/// transaction of several are counted but not remembered.
fn insert(
    plan: &LoadPlan<'_>,
    session: &mut Session,
    rows: u64,
    ledger: &mut Ledger,
) -> Result<Option<CommitToken>, Error> {
    let is_durable = plan.durability == Durability::Durable;
    if rows == 1 {
        let token = match is_durable {
            true => Some(session.insert_token(plan.table, &[])?),
            false => session.insert(plan.table, &[]).map(|()| None)?,
        };
        let (key, value) = session.last_row();
        ledger.acknowledged(key, value);
        return Ok(token);
    }
    let defaults = rows_of_defaults(rows);
    match is_durable {
        true => session.insert_many_token(plan.table, defaults).map(Some),
        false => session.insert_many(plan.table, defaults).map(|()| None),
    }
}

/// None of the tasks can go on: writes the log, or lets whoever is writing it have the processor.
fn make_durable(plan: &LoadPlan<'_>) -> Result<(), LabError> {
    plan.database.write_log()?;
    std::thread::yield_now();
    Ok(())
}
