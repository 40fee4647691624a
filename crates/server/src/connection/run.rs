//! Statements are run: those of simple queries and those of portals the same way.

use std::sync::Arc;

use pgwire::messages::extendedquery::PortalSuspended;
use pgwire::messages::response::EmptyQueryResponse;
use tokio::io::{AsyncRead, AsyncWrite};

use super::extended::Prepared;
use super::portal::State;
use super::{Connection, Stop};
use crate::error::{Result, SqlError, state};
use crate::execute::{Answer, RowStream};
use crate::sql::{Bound, ExecutePlan, Parameters};
use crate::values::Formats;

/// How often a statement is planned anew because its tables were altered just then.
const PLANS_MAX: usize = 100;

/// How a client wants the answer.
pub(super) struct Manner<'f> {
    pub(super) formats: &'f Formats,
    pub(super) rows_max: Option<u64>,
    /// In a simple query: the client is told of the columns with the rows, and of none before.
    pub(super) is_simple: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Runs a statement and answers, up to as many rows as are wanted. It is planned anew if its tables were altered.
    pub(super) async fn run(
        &mut self,
        statement: &mut Arc<Prepared>,
        bound: &Bound,
        manner: &Manner<'_>,
    ) -> std::result::Result<State, Stop> {
        if statement.parsed.is_none() {
            self.wire.put(&EmptyQueryResponse::new());
            return Ok(State::New);
        }
        self.backend.meet_definitions(&statement.plan)?;
        if statement.is_stale(&self.backend) {
            *statement = self.plan_again(statement, manner.is_simple)?;
        }
        if statement.plan.is_commit() {
            self.keep_held_cursors().await?;
        }
        // Before it runs: a COMMIT that fails has no transaction any more, and is not run again.
        let is_alone = !self.backend.is_in_transaction();
        let mut tries = 0;
        let answer = loop {
            tries += 1;
            match self.backend.execute(&statement.plan, bound).await {
                // At this very moment.
                Err(error) if error.is_table_changed() && is_alone && tries < PLANS_MAX => {
                    *statement = self.plan_again(statement, manner.is_simple)?;
                }
                other => break other?,
            }
        };
        let answer = match answer {
            Answer::Execute(plan) => {
                let (prepared, bound) = self.bind_text(&plan)?;
                self.backend.execute(&prepared.plan, &bound).await?
            }
            other => other,
        };
        if matches!(answer, Answer::Done(_)) {
            self.end_cursors();
        }
        self.answer(answer, manner).await
    }

    pub(super) async fn answer(
        &mut self,
        answer: Answer,
        manner: &Manner<'_>,
    ) -> std::result::Result<State, Stop> {
        match answer {
            Answer::Done(tag) => self.complete(tag),
            Answer::Discarded(tag) => {
                self.forget_statements();
                if tag == "DISCARD ALL" {
                    self.cursors.clear();
                    self.note_cursors();
                }
                self.complete(tag);
            }
            Answer::Deallocated(name) => self.deallocate(&name)?,
            Answer::Declared(declared) => self.declare(declared).await?,
            Answer::ClosedCursor(name) => self.close_cursor(name.as_deref())?,
            Answer::Fetch(fetch) => {
                let columns = self.cursors.columns(&fetch.name).filter(|_| !fetch.is_move);
                if let (true, Some(columns)) = (manner.is_simple, columns) {
                    self.row_description(&columns, manner.formats)?;
                }
                self.fetch(&fetch, manner.formats).await?;
            }
            Answer::Prepare(plan) => self.prepare_text(*plan)?,
            // PREPARE takes none, so there is none.
            Answer::Execute(_) => {
                return Err(SqlError::new(state::INTERNAL, "EXECUTE runs no EXECUTE").into());
            }
            Answer::Rows(rows) => {
                if manner.is_simple {
                    self.row_description(rows.columns(), manner.formats)?;
                }
                return self.go_on(rows, manner.formats, manner.rows_max).await;
            }
            Answer::CopyIn(copy) => self.copy_in(&copy).await?,
            Answer::CopyOut(format, rows) => self.copy_out(&format, *rows).await?,
        }
        Ok(State::Done)
    }

    /// Sends rows that are there, or come, up to as many as are wanted.
    pub(super) async fn go_on(
        &mut self,
        mut rows: Box<RowStream>,
        formats: &Formats,
        rows_max: Option<u64>,
    ) -> std::result::Result<State, Stop> {
        if self.rows(&mut rows, formats, rows_max).await? {
            self.wire.put(&PortalSuspended::new());
            return Ok(State::Open(rows));
        }
        self.complete(rows.tag());
        Ok(State::Done)
    }

    /// A table was altered, or dropped and perhaps created again, since the statement was planned. The client may
    /// have been told of the columns, unless the statement `is_simple`.
    fn plan_again(&self, old: &Prepared, is_simple: bool) -> Result<Arc<Prepared>> {
        let text = (Arc::clone(&old.text), old.parsed_bytes);
        let parameters = match is_simple {
            true => Parameters::none(),
            false => Parameters::declared(old.oids.to_vec()),
        };
        let fresh = self.prepare(old.parsed.clone(), text, parameters);
        let fresh = fresh.map_err(|error| match is_simple {
            true => error,
            // It was prepared from another text than is run now.
            false => error.without_place(),
        })?;
        if !is_simple && (fresh.oids != old.oids || fresh.described() != old.described()) {
            let message = "cached plan must not change result type";
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message)
                .with_hint("A table was altered: prepare the statement again.")
                .told_by("RevalidateCachedQuery"));
        }
        Ok(Arc::new(fresh))
    }

    /// The statement of an EXECUTE, planned anew if its tables were altered, and its arguments.
    fn bind_text(&mut self, plan: &ExecutePlan) -> Result<(Arc<Prepared>, Bound)> {
        let mut prepared = Arc::clone(self.statement(&plan.name)?);
        if prepared.is_stale(&self.backend) {
            prepared = self.plan_again(&prepared, false)?;
            self.keep_statement(plan.name.clone(), Arc::clone(&prepared))?;
        }
        let bound = plan.bind(&prepared.oids)?;
        Ok((prepared, bound))
    }
}
