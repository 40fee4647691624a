//! What statements do, ready to run, in four families. Each has a file that says what its plans are
//! called, who may run them, which columns their answers have, and how they are run.

mod cursors;
mod definitions;
mod operands;
mod rights;
mod rows;
mod session;

use std::sync::Arc;

use onrush::Table;

pub(crate) use cursors::CursorPlan;
pub(crate) use definitions::{DefinitionPlan, SchemaElements};
pub(crate) use rows::{Call, Explained, RowsPlan, SelectPlan, StepPlan, StepsPlan, WritePlan};
pub(crate) use session::SessionPlan;

use super::{Answer, Backend};
use crate::error::Result;
use crate::seen::Seen;
use crate::sql::{Bound, OutputColumn};

/// What a statement does.
#[derive(Clone)]
pub(crate) enum Plan {
    /// Rows are read or written.
    Rows(RowsPlan),
    /// Tables, schemas, roles and what is kept of them are defined.
    Definition(DefinitionPlan),
    /// The client's transaction, settings and prepared statements.
    Session(SessionPlan),
    /// Rows are asked for in pieces.
    Cursor(CursorPlan),
}

impl Plan {
    /// The columns of the answer, where rows are part of it.
    pub(crate) fn columns(&self) -> Option<Arc<[OutputColumn]>> {
        match self {
            Plan::Rows(plan) => plan.columns(),
            Plan::Session(plan) => plan.columns(),
            Plan::Definition(_) | Plan::Cursor(_) => None,
        }
    }

    /// Whether a table that it was made for was altered or dropped since.
    pub(crate) fn is_stale(&self, seen: &Seen) -> bool {
        match self {
            Plan::Rows(plan) => plan.is_stale(seen),
            Plan::Cursor(plan) => plan.is_stale(seen),
            Plan::Definition(plan) => plan.is_stale(seen),
            Plan::Session(_) => false,
        }
    }

    pub(crate) fn is_commit(&self) -> bool {
        matches!(self, Plan::Session(SessionPlan::Commit { .. }))
    }

    /// The table whose rows it writes, if it is one that writes rows.
    pub(crate) fn written_table(&self) -> Option<&Table> {
        match self {
            Plan::Rows(plan) => plan.written_table(),
            _ => None,
        }
    }

    /// Whether it reads or writes rows of tables, and nothing but them and its text says how.
    pub(crate) fn is_of_rows(&self) -> bool {
        matches!(self, Plan::Rows(RowsPlan::Select(SelectPlan::Get(_)) | RowsPlan::Write(_)))
    }

    /// What it is called if it writes something: to tables, or to what is kept of them.
    pub(super) fn writes(&self) -> Option<&'static str> {
        match self {
            Plan::Rows(plan) => plan.writes(),
            // Which writes nothing.
            Plan::Definition(DefinitionPlan::Lock(_)) => None,
            Plan::Definition(plan) => Some(plan.tag()),
            Plan::Session(_) | Plan::Cursor(_) => None,
        }
    }

    /// Refuses a plan that the client's role may not run.
    pub(super) fn check_rights(&self, backend: &Backend) -> Result<()> {
        match self {
            Plan::Rows(plan) => plan.check_rights(backend),
            Plan::Definition(plan) => plan.check_rights(backend),
            Plan::Session(plan) => plan.check_rights(backend),
            Plan::Cursor(plan) => plan.check_rights(backend),
        }
    }

    pub(super) async fn run(&self, backend: &mut Backend, bound: &Bound) -> Result<Answer> {
        match self {
            Plan::Rows(plan) => plan.run(backend, bound).await,
            Plan::Definition(plan) => plan.run(backend, bound),
            Plan::Session(plan) => plan.run(backend),
            Plan::Cursor(plan) => plan.run(backend, bound),
        }
    }
}
