//! The whole server on a disk that loses power, judged by what its clients have written down themselves.
//!
//! Beside the life of an insert: nothing here runs in production. The simulator (`onrush-sim`) shows that the engine
//! loses nothing; this shows it of everything that a client of the server can say: definitions, grants, comments,
//! COPY, pipelines, savepoints, and answers that rest on what others did.
//!
//! - [`wire`]: a client of the protocol that never waits by itself. [`statement`]: what clients send.
//! - [`state`], [`model`], `effect`, `answers`: what must come of it, by an account that knows nothing of the engine.
//! - [`kinds`], [`generate`]: which statements, drawn from numbers and from the model.
//! - [`round`]: a server in this process and its clients, one statement at a time. [`history`]: what was sent and
//!   acknowledged, and so what a cut may leave.
//! - [`look`]: a server started on what a cut has left, seen through the wire. [`cuts`]: where the power is cut.
//! - [`lists`]: a crowd of transactions at once. [`cycles`]: which of them snapshot isolation forbids.
//! - [`kill`]: a server of its own process, killed while clients work.
//!
//! Invariant: what a round does follows from its seed, so that a failure can be run again.

mod answers;
pub mod cuts;
pub mod cycles;
mod effect;
pub mod generate;
pub mod history;
pub mod kill;
pub mod kinds;
pub mod lists;
pub mod look;
pub mod model;
pub mod round;
pub mod state;
pub mod statement;
pub mod summary;
pub mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cuts::Budget;
use history::{Checked, Violation};
use onrush_sim::FaultError;
use round::Plan;
use summary::Summary;

/// Runs one round and cuts its power. A panic is a violation, too.
///
/// # Errors
/// The first violation.
pub fn prove(plan: Plan, budget: Budget, summary: &mut Summary) -> Checked<()> {
    summary.rounds += 1;
    let work = || {
        let round = round::run(plan)?;
        summary.statements += round.statements;
        summary.refused += round.refused;
        summary.visits += round.visits;
        summary.overtaken += round.overtaken;
        summary.left_waiting += round.left_waiting;
        summary.commits += round.history.commits.len() as u64;
        let is_read_only = plan.fault.is_some_and(|fault| fault.error == FaultError::ReadOnly);
        if is_read_only {
            look::prove_refused_while_read_only(&round.disk)?;
        }
        let outcome = cuts::cut(&round, budget, summary);
        outcome.map_err(|Violation(text)| {
            let marks: Vec<String> = round.history.marks.iter().map(ToString::to_string).collect();
            Violation(format!("{text}\n  what was sent:\n    {}", marks.join("\n    ")))
        })
    };
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Violation(format!("panic: {}", text.unwrap_or("without words"))))
    });
    summary.failed += u64::from(outcome.is_err());
    outcome
}
