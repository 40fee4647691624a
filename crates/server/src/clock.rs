//! What `now()` gives: when the client's transaction began, or, outside of one, the time of day.
//!
//! Invariant: each connection is a task with a clock of its own.

use std::cell::Cell;
use std::future::Future;

use crate::sql::unix_micros;

tokio::task_local! {
    /// When the open transaction began, in microseconds since 1970.
    static BEGAN_MICROS: Cell<Option<i64>>;
}

/// Runs a connection with a clock of its own.
pub(crate) async fn scoped<F: Future>(connection: F) -> F::Output {
    BEGAN_MICROS.scope(Cell::new(None), connection).await
}

/// A transaction begins.
pub(crate) fn begin() {
    set(Some(unix_micros()));
}

/// The transaction is over.
pub(crate) fn end() {
    set(None);
}

fn set(began: Option<i64>) {
    // Without a connection nobody asks twice.
    let _ = BEGAN_MICROS.try_with(|clock| clock.set(began));
}

/// `now()`, in microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    BEGAN_MICROS.try_with(Cell::get).ok().flatten().unwrap_or_else(unix_micros)
}
