//! LMDB, by heed: a memory-mapped B+tree with one writer at a time and no log.

use std::path::Path;

use crate::error::LabError;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};

use super::embedded::{Embedded, Refusal, Store, StoreSession, impossible};
use super::record::{CounterRecord, Snapshot};
use super::rows::Row;
use super::{Instance, Target};
use crate::study::{Setting, Settings, TargetShown};

/// Space of the map for each row, generously; pages that are not used take nothing.
const MAP_BYTES_PER_ROW: u64 = 1024;
/// Space of the map at least.
const MAP_BYTES_MIN: u64 = 4 << 30;

/// LMDB.
pub(super) struct Lmdb;

impl Target for Lmdb {
    fn name(&self) -> &'static str {
        Mapped::NAME
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        impossible::<Mapped>(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let sync = if settings.is_durable() { "every commit" } else { "MDB_NOSYNC" };
        let settings = [
            ("sync", sync.to_owned()),
            ("map_size", map_bytes(settings).to_string()),
            ("flags", "MDB_NOTLS".to_owned()),
            ("memory", "the system's page cache".to_owned()),
        ];
        let (major, minor, patch) =
            (heed::lmdb_version().major, heed::lmdb_version().minor, heed::lmdb_version().patch);
        Ok(TargetShown::of(format!("{major}.{minor}.{patch}"), settings))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Embedded::<Mapped>::prepare(settings, folder)?))
    }
}

fn map_bytes(settings: &Settings) -> u64 {
    let rows = settings.rows()
        + settings.number(Setting::PreloadRows)
        + settings.number(Setting::WarmupRows);
    let bytes = rows.saturating_mul(MAP_BYTES_PER_ROW).max(MAP_BYTES_MIN);
    bytes.next_multiple_of(1 << 20)
}

struct Mapped {
    env: Env<WithoutTls>,
    table: Database<Bytes, Bytes>,
    /// Columns and where their entries are.
    indexes: Vec<(&'static str, Database<Bytes, Bytes>)>,
}

impl Store for Mapped {
    const NAME: &'static str = "lmdb";
    const READS_AND_UPDATES: bool = true;
    const HAS_STATISTICS: bool = true;
    type Session<'s> = Writer<'s>;

    fn open(folder: &Path, settings: &Settings) -> Result<Self, Refusal> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(usize::try_from(map_bytes(settings))?);
        let columns = settings.indexed_columns();
        options.max_dbs(u32::try_from(1 + columns.len())?);
        // SAFETY: the flag is sound while nobody else changes the file; it lies in a folder that
        // was made for this instance, is opened once at a time, and removed after it.
        let env = unsafe {
            if !settings.is_durable() {
                options.flags(EnvFlags::NO_SYNC);
            }
            options.open(folder)?
        };
        let mut transaction = env.write_txn()?;
        // The names of trees are keys of the one without a name.
        let name = (!columns.is_empty()).then_some("my_big_table");
        let table = env.create_database(&mut transaction, name)?;
        let mut indexes = Vec::new();
        for column in columns {
            indexes.push((*column, env.create_database(&mut transaction, Some(column))?));
        }
        transaction.commit()?;
        Ok(Mapped { env, table, indexes })
    }

    fn session(&self, _is_durable: bool) -> Result<Writer<'_>, Refusal> {
        Ok(Writer(self))
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal> {
        let transaction = self.env.read_txn()?;
        for row in self.table.iter(&transaction)? {
            let (key, value) = row?;
            visit(key, value);
        }
        Ok(())
    }

    fn count_entries(&self) -> Result<Vec<u64>, Refusal> {
        let transaction = self.env.read_txn()?;
        self.indexes.iter().map(|(_, index)| Ok(index.len(&transaction)?)).collect()
    }

    fn snapshot(&self) -> Snapshot {
        let info = self.env.info();
        let level = |name, unit, value| CounterRecord::level(name, unit, value as u64);
        let mut counters = vec![
            CounterRecord::counted("TRANSACTIONS", "1", info.last_txn_id as u64),
            level("FILE_PAGES", "pages", info.last_page_number),
            level("READERS", "1", info.number_of_readers as usize),
        ];
        let tree = self.env.read_txn().and_then(|transaction| self.table.stat(&transaction));
        if let Ok(tree) = tree {
            counters.push(level("TREE_DEPTH", "1", tree.depth as usize));
            counters.push(level("BRANCH_PAGES", "pages", tree.branch_pages));
            counters.push(level("LEAF_PAGES", "pages", tree.leaf_pages));
        }
        Snapshot { counters, ..Snapshot::default() }
    }

    fn settle(&self) -> Result<(), Refusal> {
        Ok(self.env.force_sync()?)
    }
}

struct Writer<'s>(&'s Mapped);

impl StoreSession for Writer<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), Refusal> {
        let mut transaction = self.0.env.write_txn()?;
        for row in rows {
            self.0.table.put(&mut transaction, row.key_bytes(), row.value_bytes())?;
            for (column, index) in &self.0.indexes {
                index.put(&mut transaction, row.entry(column).as_bytes(), &[])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, key: &[u8]) -> Result<bool, Refusal> {
        let transaction = self.0.env.read_txn()?;
        let value = self.0.table.get(&transaction, key)?;
        // The value lies in the map: its first byte brings its page in.
        Ok(value.is_some_and(|bytes| std::hint::black_box(bytes.first()).is_some()))
    }
}
