//! How a large transaction goes back to a savepoint: it looks for what its later pieces have placed, gives each
//! key back what was there before, and logs that as pieces of its own.

use std::sync::Arc;

use super::row_record::framed_row;
use super::transaction::Transaction;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::logging::RecordKind;
use crate::node::leaf::LargeOwner;
use crate::tree::{OwnIntent, Refusal};

impl Transaction<'_> {
    /// Takes back the pieces behind a savepoint.
    pub(super) fn undo_pieces(&mut self, savepoint: u64) -> Result<()> {
        let Some(large) = &mut self.large else { return Ok(()) };
        let Some(at) = large.marks.iter().position(|mark| mark.savepoint == savepoint) else {
            return Ok(());
        };
        large.marks.truncate(at + 1);
        let (mark, tally) = (large.marks[at].piece, large.marks[at].tally);
        let tables: Vec<Table> = large.tables.values().cloned().collect();
        let undone = tables.iter().try_for_each(|table| self.undo_table(table, mark));
        if let Some(large) = &mut self.large {
            large.tally = tally;
            large.failure = undone.clone().err();
        }
        undone
    }

    /// Forgets a savepoint and those behind it.
    pub(super) fn release_marks(&mut self, savepoint: u64) {
        let Some(large) = &mut self.large else { return };
        if let Some(at) = large.marks.iter().position(|mark| mark.savepoint == savepoint) {
            large.marks.truncate(at);
        }
    }

    fn undo_table(&mut self, table: &Table, mark: u32) -> Result<()> {
        let Some(large) = &self.large else { return Ok(()) };
        let (id, versions) = (large.id, Arc::clone(&large.versions));
        let (tree, object) = (&table.entry.tree, table.entry.object()?);
        let limit = self.session.worker.engine.options.piece_bytes_max();
        let (mut at, mut records, mut bytes) = (Some(Vec::new()), Vec::new(), 0);
        while let Some(low) = at {
            let from = LargeOwner { id, piece: mark };
            let found = self
                .session
                .worker
                .inside(|engine, seat| tree.own_keys(engine, seat, object, &low, from))?;
            let (keys, next) = found.map_err(|refusal| undo_refused(table, refusal))?;
            for key in keys {
                let restored = self.session.worker.inside(|engine, seat| {
                    let before = versions.before(engine, (object, &key), mark)?;
                    let before = before.map(|(piece, value)| OwnIntent { piece, value });
                    tree.restore_intent(engine, seat, object, &key, id, before.as_ref())?;
                    Ok(before)
                })?;
                let before = restored.map_err(|refusal| undo_refused(table, refusal))?;
                let (kind, body) = match before.as_ref().map(|before| before.value.as_deref()) {
                    Some(Some(value)) => (RecordKind::Put, value),
                    Some(None) => (RecordKind::Remove, &[][..]),
                    None => (RecordKind::TakeBack, &[][..]),
                };
                let record = framed_row(table, kind, object, &key, body);
                bytes += record.len();
                records.push(record);
                if bytes >= limit {
                    self.log_records(&std::mem::take(&mut records))?;
                    bytes = 0;
                }
            }
            at = next;
        }
        self.log_records(&records)
    }

    fn log_records(&mut self, records: &[Vec<u8>]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.log_piece(&records.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

fn undo_refused(table: &Table, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Gone => Error::TableChanged { name: table.name().to_owned() },
        other => Error::Internal(format!("a savepoint was refused: {other:?}")),
    }
}
