//! What `now()` and `statement_timestamp()` give: when the client's transaction began, or, outside of one, its
//! statement; and when its statement did.
//!
//! Invariant: each connection is a task with a clock of its own.

use std::cell::Cell;
use std::future::Future;

use crate::sql::unix_micros;

/// In microseconds since 1970.
#[derive(Default)]
struct Clock {
    /// When the open transaction began.
    transaction: Cell<Option<i64>>,
    /// When the statement did that runs, or ran last.
    statement: Cell<Option<i64>>,
}

tokio::task_local! {
    static CLOCK: Clock;
}

/// Runs a connection with a clock of its own.
pub(crate) async fn scoped<F: Future>(connection: F) -> F::Output {
    CLOCK.scope(Clock::default(), connection).await
}

/// A transaction begins, with its first statement.
pub(crate) fn begin_transaction() {
    let began = statement_micros();
    // Without a connection nobody asks twice.
    let _ = CLOCK.try_with(|clock| clock.transaction.set(Some(began)));
}

/// The transaction is over.
pub(crate) fn end_transaction() {
    let _ = CLOCK.try_with(|clock| clock.transaction.set(None));
}

/// A statement begins.
pub(crate) fn begin_statement(micros: i64) {
    let _ = CLOCK.try_with(|clock| clock.statement.set(Some(micros)));
}

/// `now()`.
pub(crate) fn now_micros() -> i64 {
    let transaction = CLOCK.try_with(|clock| clock.transaction.get()).ok().flatten();
    transaction.unwrap_or_else(statement_micros)
}

/// `statement_timestamp()`.
pub(crate) fn statement_micros() -> i64 {
    let statement = CLOCK.try_with(|clock| clock.statement.get()).ok().flatten();
    statement.unwrap_or_else(unix_micros)
}
