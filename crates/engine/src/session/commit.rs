//! How the rows of a transaction become one record.
//!
//! 1. Intents are placed in (object, key) order; this may wait and may fail, and nothing is
//!    logged if it does.
//! 2. With only memory copies in between: mark in flight and reserve the LSN, copy the record,
//!    give the verdict, clear the mark.
//! 3. Those who wait for the verdict are woken, the intents become rows, the slot is given back.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_waits::Counter;

use super::transaction::{Transaction, WriteSet};
use super::worker::Worker;
use crate::btree::{Intent, Refusal};
use crate::database::Table;
use crate::error::{Error, Result};
use crate::logging::{group_header, take_varint};

impl Transaction<'_> {
    /// Commits the write set; returns the end of its record, or none if there was nothing.
    pub(super) fn commit_writes(&mut self) -> Result<Option<Lsn>> {
        let writes = std::mem::take(&mut self.writes);
        if writes.is_empty() {
            return Ok(None);
        }
        let record = group_record(&writes);
        let limit = self.session.worker.engine.options.record_bytes_max();
        if record.len() > limit {
            return Err(Error::TransactionTooLarge { bytes: record.len(), limit });
        }
        let since = self.snapshot.as_ref().map(|snapshot| snapshot.lsn);
        let engine = Arc::clone(&self.session.worker.engine);
        let transaction = engine.transactions.begin(&self.session.worker.recorder);
        let committed = self
            .place_intents(&writes, transaction, since)
            .and_then(|()| publish(&mut self.session.worker, transaction, &record));
        if committed.is_err() {
            engine.transactions.decide(transaction, None);
        }
        engine.transactions.announce(&self.session.worker.recorder);
        let folded = fold(&mut self.session.worker, &writes);
        if folded.is_ok() {
            engine.transactions.end(transaction, &self.session.worker.recorder);
        }
        let end = committed?;
        folded?;
        self.session.worker.recorder.count(Counter::RowsInserted, writes.len() as u64);
        if let Some(write) = writes.values().next() {
            self.session.collect_versions(&write.table);
        }
        Ok(Some(end))
    }

    fn place_intents(
        &mut self,
        writes: &WriteSet,
        transaction: u32,
        since: Option<Lsn>,
    ) -> Result<()> {
        for ((object, key), write) in writes {
            let intent = Intent {
                object: *object,
                key,
                value: write.value.as_deref(),
                must_be_absent: write.must_be_absent,
                unchanged_since: since,
                transaction,
            };
            let tree = &write.table.entry.tree;
            let outcome = self
                .session
                .worker
                .inside(|engine, seat| tree.place_intent(engine, seat, &intent))?;
            outcome.map_err(|refusal| self.session.explain_write(&write.table, key, refusal))?;
        }
        Ok(())
    }
}

/// Reserves, copies, decides: the moment of the commit.
fn publish(worker: &mut Worker, transaction: u32, record: &[u8]) -> Result<Lsn> {
    let outcome = worker.inside_with_room(record.len(), |engine, seat| {
        let reservation = engine.log.reserve(seat.place, record.len());
        engine.log.fill(&reservation, &[record]);
        engine.transactions.decide(transaction, Some(reservation.lsn));
        engine.log.complete(seat.place);
        Ok::<_, Refusal>(reservation.end)
    })?;
    outcome.map_err(|refusal| Error::Internal(format!("a commit was refused: {refusal:?}")))
}

/// Turns the intents into rows, or takes them out, as the verdict says.
fn fold(worker: &mut Worker, writes: &WriteSet) -> Result<()> {
    for ((object, key), write) in writes {
        let Table { entry, .. } = &write.table;
        let outcome =
            worker.inside(|engine, seat| entry.tree.fold_key(engine, seat, *object, key))?;
        match outcome {
            // A table that is gone took its intents with it.
            Ok(()) | Err(Refusal::Gone) => {}
            Err(refusal) => {
                return Err(Error::Internal(format!("an intent was not folded: {refusal:?}")));
            }
        }
    }
    Ok(())
}

/// The log record of the whole transaction; a single row needs no group around it.
fn group_record(writes: &WriteSet) -> Vec<u8> {
    if let Some(only) = writes.values().next()
        && writes.len() == 1
    {
        let mut row = only.record.as_slice();
        take_varint(&mut row);
        return row.to_vec();
    }
    let rows: Vec<u8> = writes.values().flat_map(|write| write.record.iter().copied()).collect();
    let mut record = group_header(writes.len(), &rows);
    record.extend_from_slice(&rows);
    record
}
