//! Transactions that may not write: `transaction_read_only`.

use super::{Backend, Plan};
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
    pub(super) fn check_read_only(&self, plan: &Plan) -> Result<()> {
        if !self.settings.is_read_only {
            return Ok(());
        }
        plan.writes().map_or(Ok(()), |what| Err(refused(what)))
    }
}

fn refused(what: &str) -> SqlError {
    let message = format!("cannot execute {what} in a read-only transaction");
    SqlError::new(state::READ_ONLY_TRANSACTION, message).with_hint(
        "BEGIN READ WRITE begins one that may write; SET default_transaction_read_only = off makes \
         the next ones so.",
    )
}
