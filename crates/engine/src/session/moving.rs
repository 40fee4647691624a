//! Rows from one table to another, in bulk: a transaction that deletes them here and inserts them
//! there, from bytes to bytes.

use onrush_types::{Schema, TableDefinition};
use onrush_waits::{Counter, Phase};

use super::ScanOptions;
use super::row_record::{elided_kind, framed_row};
use super::session::Session;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::write_set::Write;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::logging::RecordKind;
use crate::units::ObjectId;

/// More than a group takes in front of its rows.
const GROUP_HEADER_BYTES_MAX: usize = 32;

impl Session {
    /// Moves the first rows of `front`, in key order and at most `rows_max` of them, to `target`,
    /// as one transaction: a snapshot sees each row in one of the two, never in both or neither.
    /// Returns how many there were; fewer than `rows_max` also when more would not fit into one
    /// log record. Waits as the session's durability says.
    ///
    /// Of a table that is not logged to one that is: after a crash `front` is empty, and `target`
    /// has the rows of this call if the call was durable, else all or none of them.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// let table = |name| {
    ///     TableDefinition::builder(name)
    ///         .column(ColumnDefinition::new("id", DataType::Int64).not_null())
    ///         .primary_key(["id"])
    /// };
    /// let front = db.create_table(table("front").unlogged().build()?)?;
    /// let target = db.create_table(table("target").build()?)?;
    /// let mut session = db.session()?;
    /// for id in 0..10i64 {
    ///     session.insert(&front, &[id.into()])?; // waits for no disk
    /// }
    /// assert_eq!(session.move_rows(&front, &target, 7)?, 7); // one sync
    /// assert_eq!(session.scan(&front, &ScanOptions::default())?.count(), 3);
    /// assert_eq!(session.scan(&target, &ScanOptions::default())?.count(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TablesDiffer`](Error::TablesDiffer); [`DuplicateKey`](Error::DuplicateKey) when `target`
    /// has a row with one of the keys; [`Conflict`](Error::Conflict) when somebody changed one of
    /// the rows meanwhile; the errors of a commit. But for *outcome unknown* nothing was moved.
    pub fn move_rows(&mut self, front: &Table, target: &Table, rows_max: u64) -> Result<u64> {
        check_alike(front, target)?;
        self.move_from(front, target, &mut Vec::new(), rows_max)
    }

    /// As [`move_rows`](Self::move_rows) of alike tables, from the key bytes `from` on, which are
    /// behind the last row afterwards.
    pub(crate) fn move_from(
        &mut self,
        front: &Table,
        target: &Table,
        from: &mut Vec<u8>,
        rows_max: u64,
    ) -> Result<u64> {
        front.check_changeable()?;
        self.call(Phase::Commit, |session| {
            let snapshot = Snapshot::new(session.hold_now()?);
            let options = ScanOptions { limit: Some(rows_max), ..ScanOptions::default() };
            let mut scan = snapshot.scan(front, &options)?.starting_at(from);
            let limit = session.worker.engine.options.record_bytes_max();
            let mut left = limit.saturating_sub(GROUP_HEADER_BYTES_MAX);
            let mut transaction = Transaction::new(session, Some(snapshot.held));
            let (mut rows, mut last) = (0, Vec::new());
            while let Some(moved) =
                scan.with_next(|key, value| transaction.one_move(front, target, key, value))?
            {
                let Some(moved) = moved? else {
                    // One that points elsewhere is moved by itself, however large that makes the transaction.
                    rows += 1;
                    last.clone_from(&transaction.session.encoded.key);
                    break;
                };
                // Of a row that does not fit by itself the commit will say so.
                if rows > 0 && moved.record_bytes() > left {
                    break;
                }
                left = left.saturating_sub(moved.record_bytes());
                rows += 1;
                moved.key.clone_into(&mut last);
                transaction.add_move(moved);
            }
            let committed = transaction.commit_writes();
            drop(transaction);
            if let Some(commit) = committed? {
                session.worker.recorder.count(Counter::RowsMoved, rows);
                // The next key in byte order.
                last.push(0);
                *from = last;
                session.acknowledge(commit.end, commit.logged)?;
            }
            Ok(rows)
        })
    }
}

impl Transaction<'_> {
    /// What moving one row means. None for one with long values, which is moved already.
    fn one_move(
        &mut self,
        front: &Table,
        target: &Table,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Move>> {
        if Schema::is_wide(value) {
            self.put_long(target, (key, value))?;
            self.remove_long_values(front, (key, value))?;
            self.put_removal(front, key)?;
            key.clone_into(&mut self.session.encoded.key);
            return Ok(None);
        }
        let (from, to) = (front.entry.object()?, target.entry.object()?);
        let gone = framed_row(front, RecordKind::Remove, from, key, &[]);
        let schema = &target.entry.schema;
        // One of an earlier version goes as it is: its columns need not be today's.
        let is_of_today = Schema::row_version(value) == Some(schema.version());
        let there = if self.session.worker.engine.options.elide_defaults && is_of_today {
            let elided = &mut self.session.encoded.elided;
            elided.clear();
            schema.elide_row(value, elided);
            framed_row(target, elided_kind(schema), to, key, elided)
        } else {
            framed_row(target, RecordKind::Put, to, key, value)
        };
        let unchanged_since = self.rests_on();
        let write = |table: &Table, value: Option<&[u8]>, record| {
            let must_be_absent = value.is_some();
            let value = value.map(<[u8]>::to_vec);
            Write { table: table.clone(), value, must_be_absent, unchanged_since, record }
        };
        let (gone, there) = (write(front, None, gone), write(target, Some(value), there));
        Ok(Some(Move { key: key.to_vec(), gone: (from, gone), there: (to, there) }))
    }

    fn add_move(&mut self, Move { key, gone, there }: Move) {
        self.writes.put((gone.0, key.clone()), gone.1);
        self.writes.put((there.0, key), there.1);
    }
}

/// One row's deletion and insertion.
struct Move {
    key: Vec<u8>,
    gone: (ObjectId, Write),
    there: (ObjectId, Write),
}

impl Move {
    fn record_bytes(&self) -> usize {
        self.gone.1.record.len() + self.there.1.record.len()
    }
}

/// Rows are moved as they are stored, so the tables must store them in the same way.
pub(crate) fn check_alike(front: &Table, target: &Table) -> Result<()> {
    let (from, to) = (front.definition(), target.definition());
    let reason = if front.entry.id == target.entry.id {
        "they are the same table"
    } else if front.entry.is_indexed() || target.entry.is_indexed() {
        "rows of a table with indexes are not moved"
    } else if from.columns().len() != to.columns().len() || !same_columns(from, to) {
        "columns must agree in name, type and NOT NULL; defaults may differ"
    } else if from.primary_key() != to.primary_key() {
        "they have different primary keys"
    } else if from.version() != to.version() || from.history() != to.history() {
        "their definitions have different versions, or came to them in different ways"
    } else if !to.checks().iter().all(|check| from.checks().contains(check)) {
        "rows of the first need not meet the CHECK constraints of the second"
    } else {
        return Ok(());
    };
    let (front, target) = (front.name().to_owned(), target.name().to_owned());
    Err(Error::TablesDiffer { front, target, reason: reason.to_owned() })
}

fn same_columns(from: &TableDefinition, to: &TableDefinition) -> bool {
    from.columns().iter().zip(to.columns()).all(|(from, to)| {
        from.name == to.name && from.data_type == to.data_type && from.nullable == to.nullable
    })
}
