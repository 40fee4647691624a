//! The client's transaction, settings and prepared statements, and what is asked of the server itself.

use std::sync::Arc;

use sqlparser::ast::DiscardObject;

use super::super::{Answer, Backend};
use crate::error::Result;
use crate::notifications::Change;
use crate::sql::plan::show_columns;
use crate::sql::{
    ConstraintsPlan, ExecutePlan, OutputColumn, PreparePlan, SavepointPlan, SettingChange,
    TransactionModes,
};

#[derive(Clone)]
pub(crate) enum SessionPlan {
    /// What is not said is as the defaults of the session say.
    Begin {
        modes: TransactionModes,
        /// BEGIN or START TRANSACTION.
        tag: &'static str,
    },
    /// Another transaction of the same modes begins, if it `chains`.
    Commit {
        chains: bool,
    },
    Rollback {
        chains: bool,
    },
    Savepoint(SavepointPlan),
    Set(SettingChange),
    /// SET TRANSACTION.
    SetTransaction(TransactionModes),
    /// SET SESSION CHARACTERISTICS: of those that begin later.
    SetTransactions(TransactionModes),
    Show(String),
    /// Forgets prepared statements and settings.
    Discard(DiscardObject),
    Prepare(PreparePlan),
    Execute(ExecutePlan),
    /// Forgets one prepared statement, or all.
    Deallocate(Option<String>),
    Checkpoint,
    /// SET CONSTRAINTS.
    Constraints(ConstraintsPlan),
    /// LISTEN and UNLISTEN.
    Listen(Change),
    /// NOTIFY of a channel, with a payload.
    Notify(String, String),
    /// Done by saying so: the tag.
    Nothing(&'static str),
}

impl SessionPlan {
    pub(super) fn columns(&self) -> Option<Arc<[OutputColumn]>> {
        match self {
            SessionPlan::Show(name) => Some(show_columns(name)),
            _ => None,
        }
    }

    /// Whether a transaction that has failed takes it.
    pub(in crate::execute) fn is_for_failed_transaction(&self) -> bool {
        matches!(
            self,
            SessionPlan::Commit { .. }
                | SessionPlan::Rollback { .. }
                | SessionPlan::Savepoint(SavepointPlan::RollbackTo(_))
        )
    }

    /// What EXECUTE runs is looked at by itself.
    pub(super) fn check_rights(&self, backend: &Backend) -> Result<()> {
        match self {
            SessionPlan::Checkpoint => backend.check_superuser("CHECKPOINT"),
            _ => Ok(()),
        }
    }

    pub(super) fn run(&self, backend: &mut Backend) -> Result<Answer> {
        match self {
            SessionPlan::Begin { modes, tag } => {
                backend.begin(*modes)?;
                Ok(Answer::Done((*tag).into()))
            }
            SessionPlan::Commit { chains: false } => backend.commit(),
            SessionPlan::Rollback { chains: false } => Ok(backend.roll_back()),
            SessionPlan::Commit { chains: true } => backend.chain("COMMIT", Backend::commit),
            SessionPlan::Rollback { chains: true } => {
                backend.chain("ROLLBACK", |backend| Ok(backend.roll_back()))
            }
            SessionPlan::Savepoint(plan) => backend.savepoint(plan),
            SessionPlan::Set(change) => {
                backend.set(change)?;
                Ok(Answer::Done(if change.is_reset { "RESET" } else { "SET" }.into()))
            }
            SessionPlan::SetTransaction(modes) => backend.set_transaction(*modes),
            SessionPlan::SetTransactions(modes) => backend.set_transactions(*modes),
            SessionPlan::Show(name) => backend.show(name),
            SessionPlan::Discard(what) => backend.discard(*what),
            SessionPlan::Prepare(plan) => Ok(Answer::Prepare(Box::new(plan.clone()))),
            SessionPlan::Execute(plan) => Ok(Answer::Execute(Box::new(plan.clone()))),
            SessionPlan::Deallocate(None) => Ok(Answer::Discarded("DEALLOCATE ALL".into())),
            SessionPlan::Deallocate(Some(name)) => Ok(Answer::Deallocated(name.clone())),
            // A checkpoint changes nothing that could be read.
            SessionPlan::Checkpoint => {
                tokio::task::block_in_place(|| backend.database.checkpoint())?;
                Ok(Answer::Done("CHECKPOINT".into()))
            }
            SessionPlan::Constraints(plan) => backend.set_constraints(plan),
            SessionPlan::Listen(change) => {
                backend.control.said.change(change.clone())?;
                let tag = if matches!(change, Change::Listen(_)) { "LISTEN" } else { "UNLISTEN" };
                Ok(Answer::Done(tag.into()))
            }
            SessionPlan::Notify(channel, payload) => {
                backend.control.notify(backend.client.number, channel, payload)?;
                Ok(Answer::Done("NOTIFY".into()))
            }
            SessionPlan::Nothing(tag) => Ok(Answer::Done((*tag).into())),
        }
    }
}
