//! Transactions that may not write: `transaction_read_only`.

use super::{Answer, Backend, Plan};
use crate::error::{Result, SqlError, state};

impl Backend {
    /// Refuses to write in a transaction that is to read only.
    pub(super) fn check_may_write(&self, what: &str) -> Result<()> {
        match self.settings.is_read_only {
            true => Err(refused(what)),
            false => Ok(()),
        }
    }

    /// Refuses a plan that writes in a transaction that is to read only.
    pub(super) fn check_read_only(&mut self, plan: &Plan) -> Result<()> {
        if !self.settings.is_read_only {
            return Ok(());
        }
        if !matches!(plan, Plan::Session(plan) if plan.is_of_settings()) {
            self.settings.has_read = true;
        }
        plan.writes().map_or(Ok(()), |what| Err(refused(what)))
    }

    /// SET TRANSACTION.
    pub(super) fn set_transaction(&mut self, is_read_only: Option<bool>) -> Result<Answer> {
        if !self.is_in_transaction() {
            let message = "SET TRANSACTION can only be used in transaction blocks";
            self.notices.push(SqlError::new(state::NO_ACTIVE_TRANSACTION, message).warning());
        } else if let Some(is_read_only) = is_read_only {
            self.settings.set_read_only(is_read_only)?;
        }
        Ok(Answer::Done("SET".into()))
    }
}

fn refused(what: &str) -> SqlError {
    let message = format!("cannot execute {what} in a read-only transaction");
    SqlError::new(state::READ_ONLY_TRANSACTION, message).with_hint(
        "BEGIN READ WRITE begins one that may write; SET default_transaction_read_only = off makes \
         the next ones so.",
    )
}
