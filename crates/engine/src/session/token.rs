//! A commit whose durability is waited for later, or by somebody else.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use onrush_log::Lsn;
use onrush_waits::{Recorder, Wait};

use super::session::Session;
use crate::engine::Engine;
use crate::error::Result;

/// A session's own handle to the engine, so that making a token touches no memory that sessions
/// share.
#[repr(align(128))] // each token counts: no other session's count is on these lines
pub(crate) struct TokenSource {
    pub(crate) engine: Arc<Engine>,
    /// Of the session, as long as there is one.
    pub(crate) recorder: Weak<Recorder>,
}

/// A commit that has happened and will be durable. Waiting is optional: dropping the token changes
/// nothing.
///
/// It can be waited for in four ways: [`wait`](Self::wait) blocks, `.await` does not,
/// [`wait_async`](Self::wait_async) does not either and counts the time as the session's, and
/// [`is_durable`](Self::is_durable) only asks.
///
/// ```
/// # use onrush::*;
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::create(folder.path().join("db"), Options::small())?;
/// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
/// # let note = ColumnDefinition::new("note", DataType::Text);
/// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
/// # let notes = db.create_table(notes.build()?)?;
/// let mut session = db.session()?;
/// let first = session.insert_token(&notes, &[1i64.into(), "first".into()])?;
/// let second = session.insert_token(&notes, &[2i64.into(), "second".into()])?;
/// second.wait()?; // one sync for both
/// assert!(first.is_durable());
///
/// async fn wait_for_both(first: CommitToken, second: CommitToken) -> onrush::Result<()> {
///     first.await?;
///     second.await
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CommitToken {
    source: Arc<TokenSource>,
    end: Lsn,
}

impl CommitToken {
    pub(crate) fn new(source: &Arc<TokenSource>, end: Lsn) -> CommitToken {
        CommitToken { source: Arc::clone(source), end }
    }

    /// Position in the log, in bytes, up to which all must be durable for this commit to be.
    /// Commits with lower positions are durable no later.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.end
    }

    /// Whether the commit survives a power cut now.
    #[inline]
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.source.engine.log.durable() >= self.end
    }

    /// Blocks until the commit is durable.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown) when the log failed first.
    pub fn wait(&self) -> Result<()> {
        let engine = &self.source.engine;
        if self.is_durable() {
            return Ok(());
        }
        Ok(engine.log.wait_durable(self.end, &engine.recorder)?)
    }

    /// Waits as `.await` does. The time is counted as a wait of the session that the token is from,
    /// `WRITELOG`, so it must not be used meanwhile. That takes two readings of the clock.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](crate::Error::OutcomeUnknown) when the log failed first.
    pub async fn wait_async(self) -> Result<()> {
        if self.is_durable() {
            return Ok(());
        }
        let recorder = self.source.recorder.upgrade();
        let _waiting = recorder.map(|recorder| recorder.task_wait(Wait::WriteLog));
        self.await
    }
}

impl Session {
    /// A token for the newest commit that this session made or that one of its answers rested on,
    /// such as *that key is taken*. For programs that let a session commit without waiting and wait
    /// before they pass its answers on.
    #[must_use]
    pub fn newest_token(&self) -> CommitToken {
        let newest = self.last_commit.max(self.last_seen);
        // Where there is none, there is nothing to wait for.
        CommitToken::new(&self.source, newest.unwrap_or(Lsn::ZERO))
    }

    /// Counts a wait for a commit as the session's, `WRITELOG`, for programs that ask
    /// [`CommitToken::is_durable`] again and again between two calls instead of awaiting a token: the
    /// engine does not see them wait. Reads no clock.
    pub fn waited_for_commit(&self, time: Duration) {
        self.worker.recorder.waited(Wait::WriteLog, time, Duration::ZERO);
    }
}

impl std::fmt::Debug for CommitToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitToken").field("lsn", &self.end).finish()
    }
}

impl Future for CommitToken {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.is_durable() {
            return Poll::Ready(Ok(()));
        }
        match self.source.engine.log.register_waker(self.end, context.waker()) {
            Some(outcome) => Poll::Ready(outcome.map_err(Into::into)),
            None => Poll::Pending,
        }
    }
}
