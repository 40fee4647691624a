//! fjall: a log-structured merge tree with one journal, which sessions write under a lock.

use std::path::Path;

use crate::error::LabError;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::embedded::{Embedded, Refusal, Store, StoreSession, impossible};
use super::record::{CounterRecord, Snapshot};
use super::redb::version;
use super::rows::Row;
use super::{Instance, Target};
use crate::study::{Setting, Settings, TargetShown};

/// fjall.
pub(super) struct Fjall;

impl Target for Fjall {
    fn name(&self) -> &'static str {
        Merged::NAME
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        impossible::<Merged>(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let persist = if settings.is_durable() { "SyncData" } else { "none: to the system only" };
        let settings = [
            ("persist", persist.to_owned()),
            ("cache_size", settings.number(Setting::CacheBytes).to_string()),
            ("compression", "none".to_owned()),
        ];
        Ok(TargetShown::of(version("fjall"), settings))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Embedded::<Merged>::prepare(settings, folder)?))
    }
}

struct Merged {
    database: Database,
    table: Keyspace,
    /// Columns and where their entries are.
    indexes: Vec<(&'static str, Keyspace)>,
}

impl Store for Merged {
    const NAME: &'static str = "fjall";
    const READS_AND_UPDATES: bool = true;
    const HAS_STATISTICS: bool = true;
    type Session<'s> = Writer<'s>;

    fn open(folder: &Path, settings: &Settings) -> Result<Self, Refusal> {
        let builder = Database::builder(folder.join("data"));
        let database = builder.cache_size(settings.number(Setting::CacheBytes)).open()?;
        let table = database.keyspace("my_big_table", KeyspaceCreateOptions::default)?;
        let keyspace = |column: &&'static str| {
            Ok::<_, Refusal>((*column, database.keyspace(column, KeyspaceCreateOptions::default)?))
        };
        let indexes = settings.indexed_columns().iter().map(keyspace).collect::<Result<_, _>>()?;
        Ok(Merged { database, table, indexes })
    }

    fn session(&self, is_durable: bool) -> Result<Writer<'_>, Refusal> {
        Ok(Writer { store: self, is_durable })
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal> {
        for row in self.table.iter() {
            let (key, value) = row.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn count_entries(&self) -> Result<Vec<u64>, Refusal> {
        let counts = self.indexes.iter().map(|(_, index)| Ok(u64::try_from(index.len()?)?));
        counts.collect()
    }

    fn snapshot(&self) -> Snapshot {
        let Merged { database, table, .. } = self;
        let compacting_ms =
            u64::try_from(database.time_compacting().as_millis()).unwrap_or(u64::MAX);
        let level = |name, unit, value| CounterRecord::level(name, unit, value as u64);
        let counters = vec![
            CounterRecord::counted("COMPACTIONS", "1", database.compactions_completed() as u64),
            CounterRecord::counted("COMPACTION_TIME", "ms", compacting_ms),
            level("COMPACTIONS_RUNNING", "1", database.active_compactions()),
            level("MEMTABLES_WAITING", "1", database.outstanding_flushes()),
            level("JOURNALS", "1", database.journal_count()),
            level("TABLES", "1", table.table_count()),
            level("TABLES_LEVEL_0", "1", table.l0_table_count()),
            CounterRecord::level("MEMTABLE_BYTES", "bytes", database.write_buffer_size()),
            CounterRecord::level("TABLE_BYTES", "bytes", table.disk_space()),
        ];
        Snapshot { counters, ..Snapshot::default() }
    }

    fn settle(&self) -> Result<(), Refusal> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}

struct Writer<'s> {
    store: &'s Merged,
    is_durable: bool,
}

impl StoreSession for Writer<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), Refusal> {
        let Merged { database, table, indexes } = self.store;
        if let ([row], []) = (rows, indexes.as_slice()) {
            table.insert(row.key_bytes(), row.value_bytes())?;
        } else {
            let mut batch = database.batch();
            for row in rows {
                batch.insert(table, row.key_bytes(), row.value_bytes());
                for (column, index) in indexes {
                    batch.insert(index, row.entry(column).as_bytes(), []);
                }
            }
            batch.commit()?;
        }
        if self.is_durable {
            database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn read(&mut self, key: &[u8]) -> Result<bool, Refusal> {
        Ok(self.store.table.get(key)?.is_some())
    }
}
