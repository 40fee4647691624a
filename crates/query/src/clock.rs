//! What `now()` and `statement_timestamp()` give: when the client's transaction began, or, outside of one, its
//! statement; and when its statement did. So does the word `now` in quotes.
//!
//! Invariant: each connection is a task with a clock of its own, and what it spawns has a copy: both are scoped with
//! the [style](crate::style).

use std::cell::Cell;
use std::future::Future;
use std::time::{SystemTime, UNIX_EPOCH};

/// In microseconds since 1970.
#[derive(Clone, Default)]
struct Clock {
    /// When the open transaction began.
    transaction: Cell<Option<i64>>,
    /// When the statement did that runs, or ran last.
    statement: Cell<Option<i64>>,
}

tokio::task_local! {
    static CLOCK: Clock;
}

/// Runs something with a copy of the clock that there is.
pub(crate) async fn scoped<F: Future>(work: F) -> F::Output {
    let clock = CLOCK.try_with(Clock::clone).unwrap_or_default();
    CLOCK.scope(clock, work).await
}

/// The same at once.
pub(crate) fn sync_scoped<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let clock = CLOCK.try_with(Clock::clone).unwrap_or_default();
    move || CLOCK.sync_scope(clock, work)
}

/// A transaction begins, with its first statement.
pub fn begin_transaction() {
    let began = statement_micros();
    // Without a connection nobody asks twice.
    let _ = CLOCK.try_with(|clock| clock.transaction.set(Some(began)));
}

/// The transaction is over.
pub fn end_transaction() {
    let _ = CLOCK.try_with(|clock| clock.transaction.set(None));
}

/// A statement begins.
pub fn begin_statement(micros: i64) {
    let _ = CLOCK.try_with(|clock| clock.statement.set(Some(micros)));
}

/// `now()`.
#[must_use]
pub fn now_micros() -> i64 {
    let transaction = CLOCK.try_with(|clock| clock.transaction.get()).ok().flatten();
    transaction.unwrap_or_else(statement_micros)
}

/// `statement_timestamp()`.
#[must_use]
pub fn statement_micros() -> i64 {
    let statement = CLOCK.try_with(|clock| clock.statement.get()).ok().flatten();
    statement.unwrap_or_else(unix_micros)
}

/// In microseconds since 1970.
#[must_use]
pub fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
