//! The server's side of the archive: the archiver of its database, and commits that wait for it.

use std::future::Future;
use std::time::Duration;

use onrush::{Database, Lsn, Row, Value};
use onrush_archive::{Archive, ArchiveError, ArchiveOptions, ArchiveState, Place};

use crate::error::{Result, SqlError, state};
use crate::listener::ServerError;

/// Where a database is archived, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveTarget {
    /// `file:///folder` or `s3://bucket/prefix`.
    pub url: String,
    /// What may be lost with the machine.
    pub interval: Duration,
}

/// The archive of a server; none where none is configured.
pub(crate) struct Archives {
    archive: Option<Archive>,
    place: String,
}

impl Archives {
    pub(crate) fn start(
        database: &Database,
        target: Option<&ArchiveTarget>,
    ) -> std::result::Result<Archives, ServerError> {
        let Some(ArchiveTarget { url, interval }) = target else {
            return Ok(Archives { archive: None, place: String::new() });
        };
        let options = ArchiveOptions {
            interval: *interval,
            log_bytes_max: database.options().archive_log_bytes,
            ..ArchiveOptions::default()
        };
        let archive = Archive::start(database, &Place::of_url(url)?, options)?;
        Ok(Archives { archive: Some(archive), place: url.clone() })
    }

    /// Whether commits can wait for it.
    pub(crate) fn is_there(&self) -> bool {
        self.archive.is_some()
    }

    /// Archives what is durable, within its time, and ends.
    pub(crate) fn stop(&self) {
        if let Some(archive) = &self.archive {
            archive.stop();
        }
    }

    /// Returns when every commit below `lsn`, which is durable, would survive the loss of this machine.
    pub(crate) fn wait(&self, lsn: Lsn) -> Option<impl Future<Output = Result<()>> + Send + use<>> {
        let archive = self.archive.as_ref()?;
        if archive.is_safe(lsn) {
            return None;
        }
        let wait = archive.wait(lsn);
        Some(async move { wait.await.map_err(|error| not_archived(&error)) })
    }

    /// Makes a backup now.
    pub(crate) async fn back_up(&self) -> Result<Lsn> {
        let Some(archive) = &self.archive else {
            let message = "this server has no archive";
            return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("Start it with --archive URL; see docs/backup.md."));
        };
        Ok(archive.back_up().await?)
    }

    /// One row, if there is an archive.
    pub(crate) fn rows(&self, database: &Database) -> Vec<Row> {
        let rows = self.archive.iter().map(|archive| self.row(database, &archive.state()));
        rows.collect()
    }

    fn row(&self, database: &Database, state: &ArchiveState) -> Row {
        let count = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
        vec![
            self.place.clone().into(),
            format!("{:032x}", database.id()).into(),
            state.phase.word().into(),
            state.cause.clone().map_or(Value::Null, Value::from),
            count(state.archived_lsn.0),
            count(state.safe_lsn.0),
            count(database.durable_lsn().0),
            count(state.behind_bytes),
            Value::Float64(state.behind.as_secs_f64()),
            count(state.held_bytes),
            count(state.totals.objects),
            count(state.totals.bytes),
            count(state.totals.backups),
            state.newest_backup.map_or(Value::Null, |end| count(end.0)),
            count(state.totals.gaps),
        ]
    }
}

fn not_archived(error: &ArchiveError) -> SqlError {
    let message = format!("the commit is durable here and not in the archive: {error}");
    SqlError::new(state::TRANSACTION_RESOLUTION_UNKNOWN, message).with_hint(
        "It would be lost with this machine. onrush.archive says how the archive is; SET synchronous_commit = on \
         does not wait for it.",
    )
}

impl From<ArchiveError> for SqlError {
    fn from(error: ArchiveError) -> SqlError {
        let code = match &error {
            ArchiveError::Away(_) => state::CONNECTION_FAILURE,
            ArchiveError::Fenced { .. } => state::NOT_IN_PREREQUISITE_STATE,
            ArchiveError::Stopped => state::ADMIN_SHUTDOWN,
            ArchiveError::DatabaseDamaged(_) | ArchiveError::Damaged { .. } => {
                state::DATA_CORRUPTED
            }
            _ => state::INTERNAL,
        };
        SqlError::new(code, error.to_string())
    }
}
