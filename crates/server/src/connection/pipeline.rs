//! Pipelines: the statements between two Syncs of the extended protocol are one transaction, unless BEGIN said so
//! before.
//!
//! A client that sends Sync behind each Execute has none: its statement commits by itself, the short way.

use tokio::io::{AsyncRead, AsyncWrite};

use super::extended::Prepared;
use super::{Connection, Stop};
use crate::error::Result;
use crate::execute::Backend;
use crate::execute::plan::{Plan, SessionPlan};
use crate::sql::Parsed;

/// What the transaction of a pipeline is to a statement.
enum Part {
    /// It reads and writes rows, or defines something.
    Of,
    /// BEGIN, COMMIT and ROLLBACK, which take the transaction as theirs.
    Ends,
    /// It is done at once, behind what came before.
    Alone,
}

fn part(statement: &Prepared) -> Part {
    match &statement.plan {
        Plan::Session(
            SessionPlan::Begin { .. } | SessionPlan::Commit { .. } | SessionPlan::Rollback { .. },
        ) => Part::Ends,
        _ if statement.parsed.as_ref().is_some_and(Parsed::is_of_transactions) => Part::Of,
        _ => Part::Alone,
    }
}

/// Before a statement of a pipeline is run. `is_last` if Sync is behind it.
pub(super) fn enter(backend: &mut Backend, statement: &Prepared, is_last: bool) -> Result<()> {
    if backend.is_in_pipeline() {
        return match part(statement) {
            Part::Of | Part::Ends => Ok(()),
            Part::Alone => leave(backend),
        };
    }
    let is_of_rows = statement.parsed.as_ref().is_some_and(Parsed::is_of_rows);
    let commits_by_itself = is_last && !(backend.is_serializable() && is_of_rows);
    if commits_by_itself || backend.is_in_transaction() || !matches!(part(statement), Part::Of) {
        return Ok(());
    }
    backend.begin_pipeline()
}

/// The transaction of a pipeline, if there is one, is committed; if it has failed, rolled back.
fn leave(backend: &mut Backend) -> Result<()> {
    match backend.is_in_pipeline() {
        true => backend.end_pipeline(),
        false => Ok(()),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Sync, or a query of the simple protocol in its place.
    pub(super) fn end_pipeline(&mut self) -> std::result::Result<(), Stop> {
        let ended = leave(&mut self.backend).map_err(Stop::from);
        self.report(ended, false)
    }
}
