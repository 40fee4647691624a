//! DECLARE, FETCH and CLOSE: a query begins whose rows are asked for later, in pieces.

use super::super::{Answer, Backend, Declared};
use crate::error::{Result, SqlError, state};
use crate::seen::Seen;
use crate::sql::{Bound, DeclarePlan, FetchPlan};

#[derive(Clone)]
pub(crate) enum CursorPlan {
    Declare(DeclarePlan),
    Fetch(FetchPlan),
    /// Of one cursor, or of all.
    Close(Option<String>),
}

impl CursorPlan {
    pub(super) fn is_stale(&self, seen: &Seen) -> bool {
        matches!(self, CursorPlan::Declare(declared) if declared.query.is_stale(seen))
    }

    pub(super) fn check_rights(&self, backend: &Backend) -> Result<()> {
        match self {
            CursorPlan::Declare(declared) => declared.query.check_rights(backend),
            CursorPlan::Fetch(_) | CursorPlan::Close(_) => Ok(()),
        }
    }

    pub(super) fn run(&self, backend: &mut Backend, bound: &Bound) -> Result<Answer> {
        match self {
            CursorPlan::Declare(declared) if !declared.is_held && !backend.is_in_transaction() => {
                let message = "DECLARE CURSOR can only be used in transaction blocks";
                let error = SqlError::new(state::NO_ACTIVE_TRANSACTION, message);
                Err(error.with_hint("BEGIN first, or DECLARE it WITH HOLD."))
            }
            CursorPlan::Declare(declared) => {
                let rows = declared.query.run(backend, bound)?;
                let rows = match &declared.keyed {
                    Some(keyed) => rows.with_keys_behind(keyed.visible),
                    None => rows,
                };
                Ok(Answer::Declared(Declared {
                    name: declared.name.clone(),
                    rows: Box::new(rows),
                    keyed: declared.keyed.clone(),
                    scroll: declared.scroll,
                    is_held: declared.is_held,
                }))
            }
            CursorPlan::Fetch(plan) => Ok(Answer::Fetch(plan.clone())),
            CursorPlan::Close(name) => Ok(Answer::ClosedCursor(name.clone())),
        }
    }
}
