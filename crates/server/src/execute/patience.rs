//! How long a statement may go on, and may wait for the definitions of other transactions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use onrush::Waiting;
use onrush_query::Rows;
use parking_lot::Mutex;

use crate::clients::Signals;
use crate::connection::Line;
use crate::error::{Result, SqlError, state};

/// How often somebody who waits for rows looks whether the statement must be given up: a cancel
/// request only sets a flag.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long a statement may go on. All clones are of the same client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    /// What others want of the client.
    pub(crate) signals: Arc<Signals>,
    limits: Arc<Mutex<Limits>>,
    /// The client's socket.
    line: Option<Arc<Line>>,
}

#[derive(Debug, Default)]
struct Limits {
    /// When the statement must be over.
    deadline: Option<Instant>,
    /// `lock_timeout`; zero is none.
    lock_timeout: Duration,
    /// While it waits for another transaction: when it must have got what it waits for.
    lock_deadline: Option<Instant>,
    /// Whether the statement is given up when the client hangs up.
    needs_client: bool,
}

impl Patience {
    pub(crate) fn with(line: Option<Arc<Line>>) -> Patience {
        Patience { line, ..Patience::default() }
    }

    /// The running statement is given up when the client hangs up, too. Others go on: what they do was
    /// asked for, and a client may have said all that it has to say.
    pub(super) fn end_with_client(&self) {
        self.limits.lock().needs_client = true;
    }

    pub(super) fn begin(&self, timeout: Duration, lock_timeout: Duration) {
        self.signals.is_cancelled.store(false, Ordering::Relaxed);
        let deadline = in_time(timeout);
        *self.limits.lock() = Limits { deadline, lock_timeout, ..Limits::default() };
    }

    /// Whether the running statement must be given up.
    pub(crate) fn check(&self) -> Result<()> {
        if self.signals.is_ended() {
            return Err(ended());
        }
        if self.signals.is_cancelled.load(Ordering::Relaxed) {
            let message = "canceling statement due to user request";
            return Err(SqlError::new(state::QUERY_CANCELED, message));
        }
        let needs_client = self.limits.lock().needs_client;
        if needs_client && self.line.as_ref().is_some_and(|line| line.is_cut()) {
            let message = "the client has gone, and the statement was given up";
            return Err(SqlError::new(state::QUERY_CANCELED, message));
        }
        if is_over(self.limits.lock().deadline) {
            let message = "canceling statement due to statement timeout";
            return Err(SqlError::new(state::QUERY_CANCELED, message));
        }
        Ok(())
    }

    /// Sleeps, as long as the statement may go on. Other clients of this thread go on on another one.
    pub(crate) fn sleep(&self, length: Duration) -> Result<()> {
        let until = Instant::now() + length;
        tokio::task::block_in_place(|| {
            loop {
                self.check()?;
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(());
                }
                std::thread::sleep(left.min(LOOK_AGAIN));
            }
        })
    }

    /// Why the engine was told to give up what it waited for.
    pub(crate) fn given_up(&self) -> SqlError {
        let of_lock = || {
            let message = "canceling statement due to lock timeout";
            SqlError::new(state::LOCK_NOT_AVAILABLE, message)
        };
        self.check().err().unwrap_or_else(of_lock)
    }

    /// Waits for something that others do, as long as the statement may go on.
    pub(crate) async fn during<T>(&self, wait: impl Future<Output = Result<T>>) -> Result<T> {
        let mut wait = std::pin::pin!(wait);
        loop {
            match tokio::time::timeout(LOOK_AGAIN, &mut wait).await {
                Ok(done) => return done,
                Err(_) => self.check()?,
            }
        }
    }

    /// Waits for more rows, as long as the statement may go on. False at the end.
    pub(crate) async fn wait(&self, rows: &mut Rows) -> Result<bool> {
        loop {
            match tokio::time::timeout(LOOK_AGAIN, rows.wait()).await {
                Ok(more) => return Ok(more?),
                Err(_) => self.check()?,
            }
        }
    }
}

impl Waiting for Patience {
    fn is_interrupted(&self) -> bool {
        let is_late = || is_over(self.limits.lock().lock_deadline);
        self.check().is_err() || is_late()
    }

    /// Other clients of this thread go on on another one.
    fn run(&self, wait: &mut dyn FnMut()) {
        let lock_timeout = self.limits.lock().lock_timeout;
        self.limits.lock().lock_deadline = in_time(lock_timeout);
        tokio::task::block_in_place(wait);
    }
}

/// The client is sent away.
pub(crate) fn ended() -> SqlError {
    let message = "terminating connection due to administrator command";
    SqlError::new(state::ADMIN_SHUTDOWN, message).fatal()
}

/// When a time from now on is over; zero never is.
fn in_time(timeout: Duration) -> Option<Instant> {
    (!timeout.is_zero()).then(|| Instant::now() + timeout)
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}
