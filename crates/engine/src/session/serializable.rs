//! Transactions that could have run one after the other; see [`crate::transaction`]'s serial order.

use std::sync::Arc;

use onrush_waits::Phase;

use super::snapshot::HeldLsn;
use super::transaction::Transaction;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::transaction::{ChangedKeys, Entered, ReadSet, Registered};

/// What a serializable transaction has read, and its turn.
pub(super) struct Serializable {
    reads: Arc<ReadSet>,
    registered: Registered,
}

impl Transaction<'_> {
    /// Makes the transaction serializable: all serializable transactions that commit could have run one after the
    /// other, with the same results. The commit fails where others that ran beside this one have changed what it has
    /// read, or have read what it changes, so that there may be no such order; what it has read is then to be
    /// forgotten, also where it was to change nothing. It reads from a new snapshot.
    ///
    /// Keys and ranges of keys are told apart, of tables and of indexes: up to 4,096 keys and 256 ranges of each; who
    /// reads more of one has read all of it.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let on_call = ColumnDefinition::new("on_call", DataType::Boolean);
    /// # let doctors = TableDefinition::builder("doctors").column(id).column(on_call).primary_key(["id"]);
    /// # let doctors = db.create_table(doctors.build()?)?;
    /// let (mut one, mut two) = (db.session()?, db.session()?);
    /// one.insert(&doctors, &[1i64.into(), true.into()])?;
    /// one.insert(&doctors, &[2i64.into(), true.into()])?;
    /// // Each doctor goes home if another one stays.
    /// let (mut first, mut second) = (one.begin()?, two.begin()?);
    /// first.make_serializable()?;
    /// second.make_serializable()?;
    /// assert_eq!(first.get(&doctors, &[2i64.into()])?.expect("is there")[1], true.into());
    /// assert_eq!(second.get(&doctors, &[1i64.into()])?.expect("is there")[1], true.into());
    /// first.update(&doctors, &[1i64.into()], &[("on_call", false.into())])?;
    /// second.update(&doctors, &[2i64.into()], &[("on_call", false.into())])?;
    /// first.commit()?;
    /// assert!(matches!(second.commit(), Err(Error::NotSerializable))); // begin again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A transaction that has read or changed something; a stopped or closed engine.
    pub fn make_serializable(&mut self) -> Result<()> {
        if self.serializable.is_some() {
            return Ok(());
        }
        let has_changed = self.writes.iter().next().is_some() || self.large.is_some();
        if self.has_read || has_changed || self.held.is_none() {
            return Err(Error::Internal("a transaction is serializable too late".into()));
        }
        self.call(Phase::Read, |transaction| {
            let (registered, newest) = transaction.engine().serial_order.register();
            transaction.session.worker.wait_complete(newest);
            transaction.serializable =
                Some(Box::new(Serializable { reads: Arc::default(), registered }));
            let held = transaction.session.hold_now()?;
            transaction.held = Some(transaction.noting(held));
            Ok(())
        })
    }

    /// Notes what a serializable transaction reads from here on.
    pub(super) fn noting(&self, held: HeldLsn) -> HeldLsn {
        let Some(Serializable { reads, registered }) = self.serializable.as_deref() else {
            return held;
        };
        registered.sees_below(held.lsn());
        held.noting(reads)
    }

    /// Before the changes are published: a serializable transaction takes its turn.
    pub(super) fn enter_serial_order(&self) -> Result<Option<Entered>> {
        let Some(Serializable { reads, registered }) = self.serializable.as_deref() else {
            return Ok(None);
        };
        if planted(Fault::SerialOrderNotLooked) {
            return Ok(None);
        }
        let mut changes = ChangedKeys::default();
        for ((object, key), _) in self.writes.iter() {
            changes.add(*object, key);
        }
        if let Some(large) = &self.large {
            large.tables.keys().for_each(|object| changes.add_all(*object));
        }
        for own in self.definitions.iter().flat_map(|own| own.tables()) {
            let [before, now] = [&own.before, &own.now]
                .map(|entry| entry.as_ref().and_then(|entry| entry.tree.object()));
            if let Some(object) = before.filter(|_| before != now) {
                changes.add_all(object);
            }
        }
        registered.enter(reads, changes).map(Some).ok_or(Error::NotSerializable)
    }
}
