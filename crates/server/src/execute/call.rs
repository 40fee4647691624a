//! CALL: a check of everything stored, and the server-side loop of the classic study.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onrush::{CheckOptions, CheckProgress, OnlineOptions, Table, Value};
use onrush_lake::drain::attachment::Attachment;

use super::plan::Call;
use super::{Answer, Backend, RowStream};
use crate::access::{Right, is_reserved};
use crate::error::{Result, SqlError, state};
use crate::lake_table::{attachment_of, cut_columns, cut_rows, statement_for};
use crate::sequences::as_caller;
use crate::sql::Bound;

/// Rows that a loop that does not wait inserts before others have a turn: under a millisecond. A session
/// that shares its thread with others from one call to the next pays for that.
const TURN_ROWS: u64 = 1024;
/// Most loops that wait for each commit on a thread of their own. A thread sees the log's progress sooner
/// than a task that shares one; of more than this there would be more switches between threads than commits.
const LOOP_THREADS_MAX: usize = 32;
/// How many have one. Of the process, since it is its processors that they share.
static LOOP_THREADS: AtomicUsize = AtomicUsize::new(0);
/// The shortest and the longest that rows may wait for the lake.
const LAKE_LAG_MIN: Duration = Duration::from_millis(100);
const LAKE_LAG_MAX: Duration = Duration::from_secs(86_400);
/// Most threads of a check.
const CHECK_THREADS_MAX: u64 = 64;

impl Backend {
    pub(super) async fn call(&mut self, call: &Call, bound: &Bound) -> Result<Answer> {
        match call {
            Call::Check { threads } => self.check(&threads.value(bound)?),
            Call::InsertLoop { table, rows, rows_per_commit } => {
                let table = table.value(bound)?;
                let rows = positive("rows", &rows.value(bound)?, u64::MAX)?;
                let rows_per_commit =
                    positive("rows_per_commit", &rows_per_commit.value(bound)?, u64::MAX)?;
                self.insert_loop(table.as_str().unwrap_or_default(), rows, rows_per_commit).await
            }
            Call::LakeAttach { table, lake_table, lag_seconds } => {
                let table = self.of_lake("CALL onrush.lake_attach", &table.value(bound)?)?;
                let lake_table = lake_table.value(bound)?;
                let lag = lag(&lag_seconds.value(bound)?)?;
                let lake_table = lake_table.as_str().unwrap_or_default();
                let waiting = Arc::new(self.patience.clone());
                self.lake.attach(&self.database, &table, (lake_table, lag), waiting).await?;
                Ok(Answer::Done("CALL".into()))
            }
            Call::LakeDetach { table } => {
                let table = self.of_lake("CALL onrush.lake_detach", &table.value(bound)?)?;
                self.lake.detach(&self.database, &table, Arc::new(self.patience.clone()))?;
                Ok(Answer::Done("CALL".into()))
            }
            Call::ArchiveBackup => {
                self.outside_transaction("CALL onrush.archive_backup")?;
                self.check_superuser("CALL onrush.archive_backup")?;
                let archives = Arc::clone(&self.archives);
                self.patience.during(archives.back_up()).await?;
                Ok(Answer::Done("CALL".into()))
            }
            Call::LakeFlush { table } => {
                let table = self.of_lake("CALL onrush.lake_flush", &table.value(bound)?)?;
                self.lake.flush(&self.database, &table).await?;
                Ok(Answer::Done("CALL".into()))
            }
            Call::LakeCut { table } => {
                let (_, attachment) = self.in_lake(&table.value(bound)?)?;
                let (pins, lake) = (Arc::clone(&self.pins), Arc::clone(&self.lake));
                let cut = pins.cut(&lake, &attachment).await?;
                Ok(Answer::rows(RowStream::of_rows(cut_columns(), cut_rows(&cut), "CALL")))
            }
            Call::LakeView { table, engine } => {
                let (table, attachment) = self.in_lake(&table.value(bound)?)?;
                let (pins, lake) = (Arc::clone(&self.pins), Arc::clone(&self.lake));
                let cut = pins.cut(&lake, &attachment).await?;
                let engine = engine.value(bound)?;
                let engine = engine.as_str().unwrap_or_default();
                let statement = statement_for(engine, &cut, &attachment, &table)?;
                Ok(Answer::rows(RowStream::texts("statement", vec![statement], "CALL")))
            }
        }
    }

    /// The table of a procedure of the lake, which takes effect at once.
    fn of_lake(&self, what: &str, name: &Value<'_>) -> Result<Table> {
        self.outside_transaction(what)?;
        self.check_superuser(what)?;
        self.table_called(name)
    }

    /// The table of a name that is given as a text.
    fn table_called(&self, name: &Value<'_>) -> Result<Table> {
        let name = name.as_str().unwrap_or_default();
        let found = self.planner().lookup().written(name);
        if found.is_none() && is_reserved(name) {
            return Err(onrush::Error::UnknownTable { name: name.to_owned() }.into());
        }
        Ok(self.database.table(found.as_deref().unwrap_or(name))?)
    }

    /// A table that may be read, and where its rows go.
    fn in_lake(&self, name: &Value<'_>) -> Result<(Table, Attachment)> {
        let table = self.table_called(name)?;
        self.check_right(Right::Select, &table)?;
        let attachment = attachment_of(&self.database, &table)?;
        Ok((table, attachment))
    }

    fn check(&mut self, threads: &Value<'_>) -> Result<Answer> {
        self.outside_transaction("CALL onrush.check")?;
        let dop = positive("dop", threads, CHECK_THREADS_MAX)?;
        let check = CheckOptions {
            dop: usize::try_from(dop).unwrap_or(1),
            ..OnlineOptions::default().check
        };
        let options = OnlineOptions { check, ..OnlineOptions::default() };
        let progress = CheckProgress::default();
        let run = || self.database.check(&options, &progress);
        let report = tokio::task::block_in_place(run)?;
        if !report.is_sound() {
            return Err(SqlError::new(state::DATA_CORRUPTED, report.to_string()));
        }
        let lines = report.to_string().lines().map(str::to_owned).collect();
        Ok(Answer::rows(RowStream::texts("check", lines, "CALL")))
    }

    /// Inserts rows of defaults, so many a commit, and waits for each commit as the session's
    /// `synchronous_commit` says.
    async fn insert_loop(&mut self, name: &str, rows: u64, rows_per_commit: u64) -> Result<Answer> {
        self.outside_transaction("CALL onrush.insert_loop")?;
        let found = self.planner().lookup().written(name);
        let table = found.as_deref().unwrap_or(name);
        let table = self.database.table(table)?;
        let waits = self.settings.is_durable && table.definition().is_logged();
        let is_local = waits && !self.settings.waits_for_archive;
        if is_local && let Some(_thread) = LoopThread::take() {
            let run = || self.insert_on_thread(&table, rows, rows_per_commit);
            return tokio::task::block_in_place(run);
        }
        let (mut left, mut turn) = (rows, 0);
        while left > 0 {
            let now = left.min(rows_per_commit);
            let batch = (0..now).map(|_| &[] as &[Value<'static>]);
            let sequences = Arc::clone(&self.sequences);
            let session = self.idle()?;
            as_caller(&sequences, || match now {
                1 => session.insert(&table, &[]),
                _ => session.insert_many(&table, batch),
            })?;
            match session.take_rest().filter(|_| waits) {
                Some(commit) => {
                    let lsn = commit.lsn();
                    commit.wait_async().await?;
                    if self.settings.waits_for_archive
                        && let Some(archived) = self.archives.wait(lsn)
                    {
                        self.patience.during(archived).await?;
                    }
                }
                None => turn += now,
            }
            left -= now;
            if waits || turn >= TURN_ROWS {
                self.patience.check()?;
            }
            if turn >= TURN_ROWS {
                turn = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(Answer::Done("CALL".into()))
    }

    /// The loop as a thread does it.
    fn insert_on_thread(
        &mut self,
        table: &Table,
        rows: u64,
        rows_per_commit: u64,
    ) -> Result<Answer> {
        let sequences = Arc::clone(&self.sequences);
        let mut left = rows;
        while left > 0 {
            let now = left.min(rows_per_commit);
            let session = self.idle()?;
            session.set_waits_later(false);
            let inserted = as_caller(&sequences, || match now {
                1 => session.insert(table, &[]),
                _ => session.insert_many(table, (0..now).map(|_| &[] as &[Value<'static>])),
            });
            // As the server's other statements have it.
            session.set_waits_later(true);
            inserted?;
            left -= now;
            self.patience.check()?;
        }
        Ok(Answer::Done("CALL".into()))
    }
}

/// The right to a thread, as long as it is held.
struct LoopThread;

impl LoopThread {
    fn take() -> Option<LoopThread> {
        let one_more = |taken| (taken < LOOP_THREADS_MAX).then_some(taken + 1);
        // Only a number: nothing else is told by it.
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        LOOP_THREADS.fetch_update(set, fetch, one_more).ok().map(|_| LoopThread)
    }
}

impl Drop for LoopThread {
    fn drop(&mut self) {
        LOOP_THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lag(seconds: &Value<'_>) -> Result<Duration> {
    let given = match seconds {
        Value::Float64(seconds) => Some(*seconds),
        seconds => seconds.as_i64().map(|seconds| seconds as f64),
    };
    let lag = given.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    lag.filter(|lag| (LAKE_LAG_MIN..=LAKE_LAG_MAX).contains(lag)).ok_or_else(|| {
        let message = format!("lag_seconds must be 0.1 to 86400, and {seconds} was given");
        SqlError::new(state::INVALID_PARAMETER_VALUE, message)
    })
}

fn positive(name: &str, value: &Value<'_>, most: u64) -> Result<u64> {
    let number = value.as_i64().and_then(|number| u64::try_from(number).ok());
    number.filter(|number| (1..=most).contains(number)).ok_or_else(|| {
        let message = format!("{name} must be a number from 1 on, and {value} was given");
        SqlError::new(state::INVALID_PARAMETER_VALUE, message)
    })
}
