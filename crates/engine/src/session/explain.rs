//! Why a change was refused, in the user's words.

use onrush_log::Lsn;
use onrush_waits::Counter;

use super::session::Session;
use crate::catalog::Table;
use crate::error::Error;
use crate::tree::Refusal;

impl Session {
    /// A refusal in the user's words.
    #[cold]
    pub(super) fn explain(&mut self, table: &Table, refusal: Refusal) -> Error {
        let key = self.encoded.key.clone();
        self.explain_key(table, refusal, &key)
    }

    #[cold]
    pub(super) fn explain_key(&mut self, table: &Table, refusal: Refusal, key: &[u8]) -> Error {
        let name = table.name().to_owned();
        match refusal {
            Refusal::Exists(lsn) => {
                self.worker.recorder.count(Counter::DuplicateKeys, 1);
                if let Err(error) = self.rest_on(Some(lsn)) {
                    return error;
                }
                if table.entry.is_index() {
                    return self.unique_violated(table, key);
                }
                table.duplicate_key(key)
            }
            Refusal::Changed(lsn) => self.conflict(table, key, Some(lsn)),
            Refusal::Missing(lsn) => self.conflict(table, key, lsn),
            // Whoever holds it has not committed, so there is nothing that this rests on.
            Refusal::Held | Refusal::Locked => self.conflict(table, key, None),
            // Nobody knows any more whether somebody was first.
            Refusal::TooOld => self.conflict(table, key, None),
            Refusal::Gone => Error::TableChanged { name },
            Refusal::Blocked(_) | Refusal::MayExist => {
                Error::Internal("a blocked operation was given up".into())
            }
        }
    }

    /// Somebody else has changed the row, in the commit at `lsn` if that is known.
    fn conflict(&mut self, table: &Table, key: &[u8], lsn: Option<Lsn>) -> Error {
        self.worker.recorder.count(Counter::Conflicts, 1);
        if let Err(error) = self.rest_on(lsn) {
            return error;
        }
        Error::Conflict { key: table.describe_key(key), table: self.table_of(table) }
    }

    /// Another row has this key of a unique index.
    #[cold]
    pub(super) fn unique_violated(&self, entries: &Table, key: &[u8]) -> Error {
        Error::UniqueViolated {
            table: self.table_of(entries),
            index: entries.name().to_owned(),
            key: entries.describe_key(key),
        }
    }

    /// The name of the table that a row is of, or an entry.
    pub(super) fn table_of(&self, table: &Table) -> String {
        let of = table.definition().entries_of().map(|of| of.table);
        let indexed = of.and_then(|of| self.worker.engine.catalog.by_id(of));
        indexed.map_or_else(|| table.name().to_owned(), |indexed| indexed.name().to_owned())
    }
}
