//! Transactions that may not write: `transaction_read_only`.

use super::{Answer, Backend};
use crate::error::{Result, SqlError, state};
use crate::sql::{Call, Plan, SchemaPlan};

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
        if !matches!(plan, Plan::Set(_) | Plan::SetTransaction { .. } | Plan::Show(_)) {
            self.settings.has_read = true;
        }
        written_by(plan).map_or(Ok(()), |what| Err(refused(what)))
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

/// What a plan is called that writes something: to tables, or to what is kept of them.
fn written_by(plan: &Plan) -> Option<&'static str> {
    match plan {
        Plan::Insert(_) => Some("INSERT"),
        Plan::Update(_) => Some("UPDATE"),
        Plan::Delete(_) => Some("DELETE"),
        Plan::CopyIn(_) => Some("COPY FROM"),
        Plan::Truncate { .. } => Some("TRUNCATE TABLE"),
        Plan::CreateTable { .. } => Some("CREATE TABLE"),
        Plan::AlterTable(_) => Some("ALTER TABLE"),
        Plan::AlterDatabase(_) => Some("ALTER DATABASE"),
        Plan::DropTables { .. } => Some("DROP TABLE"),
        Plan::DropNothing { tag, .. } => Some(tag),
        Plan::Comment(_) => Some("COMMENT"),
        Plan::Schema(SchemaPlan::Create { .. }) => Some("CREATE SCHEMA"),
        Plan::Schema(SchemaPlan::Drop { .. }) => Some("DROP SCHEMA"),
        Plan::Schema(SchemaPlan::Rename { .. }) => Some("ALTER SCHEMA"),
        Plan::Roles(statement) => Some(statement.tag()),
        Plan::Call(Call::InsertLoop { .. }) => Some("CALL"),
        // A checkpoint changes nothing that could be read.
        Plan::Checkpoint
        | Plan::Call(Call::Check { .. })
        | Plan::Get(_)
        | Plan::Query(_)
        | Plan::Explain(..)
        | Plan::Scalars { .. }
        | Plan::CopyOut(_)
        | Plan::Begin { .. }
        | Plan::Commit
        | Plan::Rollback
        | Plan::Savepoint(_)
        | Plan::Declare(_)
        | Plan::Fetch(_)
        | Plan::CloseCursor(_)
        | Plan::Set(_)
        | Plan::SetTransaction { .. }
        | Plan::Show(_)
        | Plan::Discard { .. }
        | Plan::Prepare(_)
        // What it runs is looked at by itself.
        | Plan::Execute(_)
        | Plan::Deallocate(_)
        | Plan::Nothing(_) => None,
    }
}

fn refused(what: &str) -> SqlError {
    let message = format!("cannot execute {what} in a read-only transaction");
    SqlError::new(state::READ_ONLY_TRANSACTION, message).with_hint(
        "BEGIN READ WRITE begins one that may write; SET default_transaction_read_only = off makes \
         the next ones so.",
    )
}
