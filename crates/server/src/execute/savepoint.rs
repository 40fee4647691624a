//! SAVEPOINT, ROLLBACK TO, RELEASE: the way back inside a transaction, also out of one that failed.

use onrush::{Savepoint, Transaction};

use super::transaction::Work;
use super::{Answer, Backend, Settings};
use crate::error::{Result, SqlError, state};
use crate::sql::SavepointPlan;

/// A savepoint under the name that the client gave it. A later one of the same name hides it.
pub(super) struct NamedSavepoint {
    name: String,
    savepoint: Savepoint,
    /// As they were: they go back, too.
    settings: Settings,
    /// How much was said to others.
    said: usize,
}

impl Backend {
    pub(super) fn savepoint(&mut self, plan: &SavepointPlan) -> Result<Answer> {
        if !self.is_in_transaction() {
            let what = match plan {
                SavepointPlan::Set(_) => "SAVEPOINT",
                SavepointPlan::RollbackTo(_) => "ROLLBACK TO SAVEPOINT",
                SavepointPlan::Release(_) => "RELEASE SAVEPOINT",
            };
            let message = format!("{what} can only be used in transaction blocks");
            let error = SqlError::new(state::NO_ACTIVE_TRANSACTION, message);
            return Err(error.with_hint("BEGIN first."));
        }
        match plan {
            SavepointPlan::Set(name) => {
                // From here on the transaction sees what it sees: going back does not make it another one.
                self.look_at_others()?;
                let savepoint = self.in_open_transaction(|open| Ok(open.savepoint()))?;
                let settings = self.settings.clone();
                let (name, said) = (name.clone(), self.control.said.length());
                self.savepoints.push(NamedSavepoint { name, savepoint, settings, said });
                Ok(Answer::Done("SAVEPOINT".into()))
            }
            SavepointPlan::RollbackTo(name) => {
                let index = self.savepoint_named(name)?;
                let savepoint = self.savepoints[index].savepoint;
                self.in_open_transaction(|open| Ok(open.rollback_to(savepoint)?))?;
                self.settings = self.savepoints[index].settings.clone();
                self.control.said.go_back(self.savepoints[index].said);
                self.follow_users();
                self.savepoints.truncate(index + 1);
                self.work.recover();
                self.look_again()?;
                self.sequences.go_back(&self.seen);
                Ok(Answer::Done("ROLLBACK".into()))
            }
            SavepointPlan::Release(name) => {
                let index = self.savepoint_named(name)?;
                let savepoint = self.savepoints[index].savepoint;
                self.in_open_transaction(|open| Ok(open.release(savepoint)?))?;
                // What the part was to read only ends with it; other settings stay.
                self.settings.is_read_only = self.savepoints[index].settings.is_read_only;
                self.savepoints.truncate(index);
                Ok(Answer::Done("RELEASE".into()))
            }
        }
    }

    fn savepoint_named(&self, name: &str) -> Result<usize> {
        self.savepoints.iter().rposition(|known| known.name == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(state::INVALID_SAVEPOINT, message)
        })
    }

    /// Does `work` in the transaction, even if it has failed.
    fn in_open_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let (Work::Open(open) | Work::Failed(open)) = &mut self.work else {
            return Err(SqlError::new(state::INTERNAL, "there is no transaction"));
        };
        open.with_dependent_mut(|_, transaction| match transaction {
            Some(transaction) => work(transaction),
            None => Err(SqlError::new(state::INTERNAL, "the transaction is over")),
        })
    }
}

impl Work {
    /// A transaction that failed goes on.
    fn recover(&mut self) {
        *self = match std::mem::replace(self, Work::Gone) {
            Work::Failed(open) => Work::Open(open),
            other => other,
        };
    }
}
