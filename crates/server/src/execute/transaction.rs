//! The states of a client's work: no transaction, one that is open, one that has failed.
//!
//! | state | what ends it |
//! |---|---|
//! | idle: each statement commits by itself | BEGIN |
//! | open: changes are private | COMMIT, ROLLBACK, an error, the client going away |
//! | failed: everything is refused | ROLLBACK, or COMMIT, which rolls back; or ROLLBACK TO, which opens it again |

use std::sync::Arc;

use onrush::{Error, RowLockOutcome, Session, Transaction};
use onrush_query::clock;
use self_cell::{MutBorrow, self_cell};
use tokio::task::block_in_place;

use super::{Answer, Backend, Plan};
use crate::error::{Result, SqlError, state};
use crate::sequences::as_caller;
use crate::sql::{Isolation, TransactionModes};

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
    /// Begins a transaction.
    pub(crate) fn begin(&mut self, modes: TransactionModes) -> Result<()> {
        if std::mem::take(&mut self.is_pipeline) {
            return self.settings.set_modes(modes);
        }
        if self.is_in_transaction() {
            let told = SqlError::new(state::ACTIVE_TRANSACTION, "there is a transaction already");
            self.notices.push(told.warning());
            return self.settings.set_modes(modes);
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
                self.pins = Arc::default();
                clock::begin_transaction();
                self.settings.begin(modes);
                self.is_rolled_back = false;
                Ok(())
            }
            Err((session, error)) => {
                self.work = Work::Idle(Box::new(session.into_inner()));
                Err(error.into())
            }
        }
    }

    /// Begins a transaction that ends with the client's Sync.
    pub(crate) fn begin_pipeline(&mut self) -> Result<()> {
        self.begin(TransactionModes::default())?;
        self.is_pipeline = true;
        Ok(())
    }

    /// Whether the transaction is one that nobody has said BEGIN to.
    pub(crate) fn is_in_pipeline(&self) -> bool {
        self.is_pipeline
    }

    /// Commits the transaction of a pipeline; one that has failed is rolled back.
    pub(crate) fn end_pipeline(&mut self) -> Result<()> {
        self.is_pipeline = false;
        match self.work {
            Work::Open(_) => self.commit().map(drop),
            _ => {
                self.roll_back();
                Ok(())
            }
        }
    }

    /// SET TRANSACTION.
    pub(super) fn set_transaction(&mut self, modes: TransactionModes) -> Result<Answer> {
        if !self.is_in_transaction() {
            let message = "SET TRANSACTION can only be used in transaction blocks";
            self.notices.push(SqlError::new(state::NO_ACTIVE_TRANSACTION, message).warning());
        }
        self.settings.set_modes(modes)?;
        Ok(Answer::Done("SET".into()))
    }

    /// SET SESSION CHARACTERISTICS.
    pub(super) fn set_transactions(&mut self, modes: TransactionModes) -> Result<Answer> {
        self.settings.set_default_modes(modes);
        Ok(Answer::Done("SET".into()))
    }

    /// Commits; what has failed is rolled back, and the tag says so.
    pub(crate) fn commit(&mut self) -> Result<Answer> {
        self.follow_setting();
        self.end_unsaid();
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
        clock::end_transaction();
        self.savepoints.clear();
        self.settings.end(outcome.is_ok());
        self.follow_users();
        if outcome.is_err() {
            self.is_rolled_back = true;
            self.forget_definitions();
            self.control.said.go_back(0);
        }
        outcome?;
        self.end_definitions()?;
        self.end_temporaries();
        Ok(Answer::Done("COMMIT".into()))
    }

    pub(crate) fn roll_back(&mut self) -> Answer {
        self.end_unsaid();
        self.work = match std::mem::replace(&mut self.work, Work::Gone) {
            Work::Open(mut open) | Work::Failed(mut open) => {
                clock::end_transaction();
                if self.has_defined {
                    block_in_place(|| open.roll_back());
                } else {
                    open.roll_back();
                }
                self.savepoints.clear();
                self.settings.end(false);
                self.control.said.go_back(0);
                self.is_rolled_back = true;
                Work::Idle(Box::new(open.into_owner().into_inner()))
            }
            other => {
                self.notices.push(no_transaction());
                other
            }
        };
        self.forget_definitions();
        self.follow_users();
        Answer::Done("ROLLBACK".into())
    }

    /// COMMIT and ROLLBACK with AND CHAIN: `end`s the transaction, and begins one of the same modes.
    pub(crate) fn chain(
        &mut self,
        what: &str,
        end: impl FnOnce(&mut Self) -> Result<Answer>,
    ) -> Result<Answer> {
        if !self.is_in_transaction() || self.is_pipeline {
            let message = format!("{what} AND CHAIN can only be used in transaction blocks");
            return Err(SqlError::new(state::NO_ACTIVE_TRANSACTION, message));
        }
        let modes = self.settings.modes();
        let answer = end(self)?;
        self.end_locks();
        let is_rolled_back = self.is_rolled_back;
        self.begin(modes)?;
        (self.is_rolled_back, self.has_chained) = (is_rolled_back, true);
        Ok(answer)
    }

    /// COMMIT and ROLLBACK end the transaction of a pipeline, and say that nobody has begun it.
    fn end_unsaid(&mut self) {
        if std::mem::take(&mut self.is_pipeline) {
            self.notices.push(no_transaction());
        }
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

    /// Before a statement of an open transaction: it sees what others have committed since, as the isolation says.
    pub(super) fn look_at_others(&mut self) -> Result<()> {
        let Work::Open(open) = &mut self.work else { return Ok(()) };
        let is_first = !std::mem::replace(&mut self.settings.has_begun, true);
        let isolation = self.settings.isolation;
        open.with_dependent_mut(|_, transaction| match (transaction, isolation) {
            (Some(transaction), Isolation::Serializable) if is_first => {
                Ok(transaction.make_serializable()?)
            }
            (Some(transaction), Isolation::RepeatableRead) if is_first => {
                transaction.refresh();
                Ok(())
            }
            (Some(transaction), isolation) if isolation.renews_snapshots() => {
                Ok(transaction.renew_snapshot()?)
            }
            _ => Ok(()),
        })
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
            Work::Idle(session) => by_itself(session, |transaction, _| work(transaction)),
            _ => Err(super::in_failed_transaction()),
        })
    }

    /// As [`in_transaction`](Self::in_transaction), of a statement that changes rows: in a transaction it locks them,
    /// and waits for those that others have locked. Where one was changed since the statement's snapshot it begins
    /// again with a new one, or fails where all statements are to see the same.
    pub(super) fn change_rows<T>(
        &mut self,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let sequences = Arc::clone(&self.sequences);
        let may_renew = self.settings.isolation.renews_snapshots();
        as_caller(&sequences, || match &mut self.work {
            Work::Open(open) => open.with_dependent_mut(|_, transaction| match transaction {
                Some(transaction) => change_locked(transaction, may_renew, &mut work),
                None => Err(SqlError::new(state::INTERNAL, "the transaction is over")),
            }),
            // Nobody is kept waiting by what commits at once, so there is nothing to lock before somebody came first.
            Work::Idle(session) => by_itself(session, |transaction, tries| match tries {
                1 => work(transaction),
                _ => change_locked(transaction, true, &mut work),
            }),
            _ => Err(super::in_failed_transaction()),
        })
    }
}

/// Does `work`, which is told how often it was tried, in a transaction of its own.
fn by_itself<T>(
    session: &mut Session,
    mut work: impl FnMut(&mut Transaction<'_>, usize) -> Result<T>,
) -> Result<T> {
    let mut tries = 0;
    loop {
        tries += 1;
        let mut transaction = session.begin()?;
        let done = match work(&mut transaction, tries) {
            // A new snapshot is as good: nothing has been told or written.
            Err(error) if error.is_too_old() && tries < TRIES => continue,
            other => other?,
        };
        match transaction.commit().map_err(SqlError::from) {
            Ok(()) => return Ok(done),
            Err(error) if (error.is_conflict() || error.is_duplicate_key()) && tries < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

fn change_locked<T>(
    transaction: &mut Transaction<'_>,
    may_renew: bool,
    work: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
) -> Result<T> {
    let mut tries = 0;
    loop {
        tries += 1;
        let before = transaction.statement_savepoint();
        let done = work(transaction).and_then(|done| {
            // What follows from the change is locked, too.
            transaction.lock_referenced_rows()?;
            transaction.settle_references()?;
            Ok((done, transaction.lock_changed_rows(before)?))
        });
        match done {
            Ok((_, RowLockOutcome::Changed)) if !may_renew => return Err(changed_meanwhile()),
            Ok((_, RowLockOutcome::Changed)) => {}
            Ok((done, _)) => {
                transaction.release(before)?;
                return Ok(done);
            }
            Err(error)
                if may_renew && (error.is_conflict() || error.is_too_old()) && tries < TRIES => {}
            Err(error) => return Err(error),
        }
        transaction.rollback_to(before)?;
        transaction.release(before)?;
        transaction.renew_snapshot()?;
    }
}

/// A row that is to be changed, or locked, is not as the transaction sees it.
pub(super) fn changed_meanwhile() -> SqlError {
    SqlError::new(
        state::SERIALIZATION_FAILURE,
        "could not serialize access due to concurrent update",
    )
    .with_hint("Begin the transaction again.")
}

fn no_transaction() -> SqlError {
    SqlError::new(state::NO_ACTIVE_TRANSACTION, "there is no transaction in progress").warning()
}
