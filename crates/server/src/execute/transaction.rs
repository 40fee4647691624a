//! The states of a client's work: no transaction, one that is open, one that has failed.
//!
//! | state | what ends it |
//! |---|---|
//! | idle: each statement commits by itself | BEGIN |
//! | open: changes are private | COMMIT, ROLLBACK, an error, the client going away |
//! | failed: everything is refused | ROLLBACK, or COMMIT, which rolls back; or ROLLBACK TO, which opens it again |

use std::sync::Arc;

use onrush::{Error, Session, Transaction};
use self_cell::{MutBorrow, self_cell};
use tokio::task::block_in_place;

use super::{Answer, Backend, Plan};
use crate::error::{Result, SqlError, state};
use crate::sequences::as_caller;

/// How often a statement that commits by itself is run again when another one came first.
const TRIES: usize = 100;

/// None once it has been committed, or has failed without a savepoint to go back to.
type Ongoing<'s> = Option<Transaction<'s>>;

self_cell! {
    /// A transaction together with the session that it borrows.
    pub(crate) struct OpenTransaction {
        owner: MutBorrow<Session>,
        #[not_covariant]
        dependent: Ongoing,
    }
}

impl OpenTransaction {
    /// Rolls the transaction back, unless that was done.
    fn roll_back(&mut self) {
        self.with_dependent_mut(|_, transaction| transaction.take().map(Transaction::rollback));
    }
}

/// What a client has going on.
pub(crate) enum Work {
    Idle(Box<Session>),
    Open(OpenTransaction),
    Failed(OpenTransaction),
    /// The engine refused to go on.
    Gone,
}

impl Work {
    /// An open transaction fails; everything else stays. It is kept where there is a savepoint to
    /// go back to.
    pub(super) fn fail(&mut self, is_kept: bool) {
        *self = match std::mem::replace(self, Work::Gone) {
            Work::Open(mut open) => {
                if !is_kept {
                    open.roll_back();
                }
                Work::Failed(open)
            }
            other => other,
        };
    }

    /// What a client leaves open when it goes is rolled back, and counted.
    pub(super) fn end(&mut self) {
        if let Work::Open(open) | Work::Failed(open) = self {
            open.roll_back();
        }
    }
}

impl Backend {
    /// Begins a transaction, which only reads where that is said, or is the default and nothing is
    /// said.
    pub(crate) fn begin(&mut self, is_read_only: Option<bool>) -> Result<Answer> {
        if self.is_in_transaction() {
            let told = SqlError::new(state::ACTIVE_TRANSACTION, "there is a transaction already");
            self.notices.push(told.warning());
            is_read_only.map_or(Ok(()), |is| self.settings.set_read_only(is))?;
            return Ok(Answer::Done("BEGIN".into()));
        }
        let Work::Idle(session) = std::mem::replace(&mut self.work, Work::Gone) else {
            return Err(SqlError::new(state::INTERNAL, "a transaction begins in no state"));
        };
        let begun = OpenTransaction::try_new_or_recover(MutBorrow::new(*session), |session| {
            session.borrow_mut().begin().map(Some)
        });
        match begun {
            Ok(open) => {
                self.work = Work::Open(open);
                self.settings.begin(is_read_only);
                self.is_rolled_back = false;
                Ok(Answer::Done("BEGIN".into()))
            }
            Err((session, error)) => {
                self.work = Work::Idle(Box::new(session.into_inner()));
                Err(error.into())
            }
        }
    }

    /// Commits; what has failed is rolled back, and the tag says so.
    pub(crate) fn commit(&mut self) -> Result<Answer> {
        self.follow_setting();
        let mut open = match std::mem::replace(&mut self.work, Work::Gone) {
            Work::Open(open) => open,
            other => {
                self.work = other;
                if !self.is_in_transaction() {
                    self.notices.push(no_transaction());
                    return Ok(Answer::Done("COMMIT".into()));
                }
                return Ok(self.roll_back());
            }
        };
        let moved = self.sequences.moved(&self.seen);
        let mut commit = || {
            open.with_dependent_mut(|_, transaction| {
                let Some(mut transaction) = transaction.take() else { return Ok(()) };
                for (sequence, position) in &moved {
                    transaction.upsert(sequence, &position.row())?;
                }
                transaction.commit()
            })
        };
        // Rows of tables that are dropped may be many.
        let outcome = if self.has_defined { block_in_place(commit) } else { commit() };
        let session = open.into_owner().into_inner();
        self.work = Work::Idle(Box::new(session));
        self.savepoints.clear();
        self.settings.end(outcome.is_ok());
        if outcome.is_err() {
            self.is_rolled_back = true;
            self.forget_definitions();
        }
        outcome?;
        self.end_definitions()?;
        self.end_temporaries();
        Ok(Answer::Done("COMMIT".into()))
    }

    pub(crate) fn roll_back(&mut self) -> Answer {
        self.work = match std::mem::replace(&mut self.work, Work::Gone) {
            Work::Open(mut open) | Work::Failed(mut open) => {
                if self.has_defined {
                    block_in_place(|| open.roll_back());
                } else {
                    open.roll_back();
                }
                self.savepoints.clear();
                self.settings.end(false);
                self.is_rolled_back = true;
                Work::Idle(Box::new(open.into_owner().into_inner()))
            }
            other => {
                self.notices.push(no_transaction());
                other
            }
        };
        self.forget_definitions();
        Answer::Done("ROLLBACK".into())
    }

    /// Before a plan of the open transaction is run: waits where another transaction defines the table that it
    /// writes to, and keeps it from being defined from then on. The plan may be an old one then.
    pub(crate) fn meet_definitions(&mut self, plan: &Plan) -> Result<()> {
        let Some(table) = plan.written_table().filter(|table| table.is_being_defined()) else {
            return Ok(());
        };
        let Work::Open(open) = &mut self.work else { return Ok(()) };
        let met = open.with_dependent_mut(|_, transaction| {
            let Some(transaction) = transaction else { return Ok(()) };
            let held = transaction.hold_table(table);
            // What was waited for is seen, if nothing else was before.
            transaction.refresh();
            held
        });
        match met {
            Ok(()) | Err(Error::TableChanged { .. }) => {
                self.look_if_old();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Does `work` in the open transaction, or in one of its own that is committed and, when another
    /// transaction came first, tried again.
    pub(super) fn in_transaction<T>(
        &mut self,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let sequences = Arc::clone(&self.sequences);
        as_caller(&sequences, || match &mut self.work {
            Work::Open(open) => open.with_dependent_mut(|_, transaction| match transaction {
                Some(transaction) => work(transaction),
                None => Err(SqlError::new(state::INTERNAL, "the transaction is over")),
            }),
            Work::Idle(session) => {
                let mut tries = 0;
                loop {
                    tries += 1;
                    let mut transaction = session.begin()?;
                    let done = match work(&mut transaction) {
                        // A new snapshot is as good: nothing has been told or written.
                        Err(error) if error.is_too_old() && tries < TRIES => continue,
                        other => other?,
                    };
                    match transaction.commit().map_err(SqlError::from) {
                        Ok(()) => break Ok(done),
                        Err(error)
                            if (error.is_conflict() || error.is_duplicate_key())
                                && tries < TRIES => {}
                        Err(error) => break Err(error),
                    }
                }
            }
            _ => Err(super::in_failed_transaction()),
        })
    }
}

fn no_transaction() -> SqlError {
    SqlError::new(state::NO_ACTIVE_TRANSACTION, "there is no transaction in progress").warning()
}
