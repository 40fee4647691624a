//! What a transaction sees, as a snapshot of its own.

use std::sync::Arc;

use super::snapshot::{HeldLsn, Snapshot};
use super::transaction::Transaction;
use super::worker::Worker;

impl Transaction<'_> {
    /// What this transaction sees now, its own changes included, as a view that goes on while the
    /// transaction makes more changes. It takes a copy of the changes made so far.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// let mut session = db.session()?;
    /// let mut transaction = session.begin()?;
    /// transaction.insert(&notes, &[1i64.into()])?;
    /// let before = transaction.snapshot();
    /// transaction.delete(&notes, &[1i64.into()])?;
    /// assert_eq!(before.scan(&notes, &ScanOptions::default())?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot(&mut self) -> Snapshot {
        let snapshot = self.view();
        self.with_changes(snapshot)
    }

    /// As [`snapshot`](Self::snapshot), to be read where the session is used, and not at the same time: what the reads
    /// wait for counts as the session's, and the snapshot costs less.
    #[must_use]
    pub fn snapshot_here(&mut self) -> Snapshot {
        let recorder = Arc::clone(&self.session.worker.recorder);
        let snapshot = Snapshot::recorded_by(recorder, self.held_or_now());
        self.with_changes(snapshot.with_large(self.large.as_ref().map(|large| large.view())))
    }

    /// A view of this transaction with a copy of its changes.
    fn with_changes(&mut self, view: Snapshot) -> Snapshot {
        self.has_read = true;
        self.session.saw(view.held.lsn());
        let own = self.writes.iter().map(|(row, write)| (row.clone(), write.value.clone()));
        view.with_own(own.collect())
    }

    /// What was committed when this transaction began.
    pub(super) fn view(&self) -> Snapshot {
        let snapshot = Snapshot::new(self.held_or_now());
        snapshot.with_large(self.large.as_ref().map(|large| large.view()))
    }

    fn held_or_now(&self) -> HeldLsn {
        let Worker { engine, recorder, .. } = &self.session.worker;
        let held = self.held.as_ref().map(HeldLsn::again);
        held.unwrap_or_else(|| HeldLsn::open(engine, recorder))
    }
}
