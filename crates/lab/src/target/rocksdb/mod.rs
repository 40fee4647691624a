//! RocksDB: a log-structured merge tree; writers queue up, and the first one writes the log for
//! all.

mod statistics;

use std::path::Path;

use crate::error::LabError;
use ::rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, DB, IteratorMode, Options, WriteBatch, WriteOptions,
};
use onrush_measure::machine::cpus;

use self::statistics::{Timer, Waited};
use crate::study::{Setting, Settings, TargetShown};
use crate::target::embedded::{Embedded, Refusal, Store, StoreSession, impossible};
use crate::target::record::Snapshot;
use crate::target::redb::version;
use crate::target::rows::Row;
use crate::target::{Instance, Target};

/// Four memtables of this size: level 0 is written in large files.
const WRITE_BUFFER_BYTES: usize = 128 << 20;

/// RocksDB.
pub(in crate::target) struct RocksDb;

impl Target for RocksDb {
    fn name(&self) -> &'static str {
        Merged::NAME
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        impossible::<Merged>(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let settings = [
            ("WriteOptions.sync", settings.is_durable().to_string()),
            ("write_buffer_size", WRITE_BUFFER_BYTES.to_string()),
            ("max_write_buffer_number", "4".to_owned()),
            ("max_background_jobs", cpus().to_string()),
            ("block_cache", settings.number(Setting::CacheBytes).to_string()),
            ("allow_concurrent_memtable_write", "true".to_owned()),
            ("compression", "none".to_owned()),
            ("statistics", "tickers; perf context of one commit in 64".to_owned()),
        ];
        Ok(TargetShown::of(format!("crate {}", version("rocksdb")), settings))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Embedded::<Merged>::prepare(settings, folder)?))
    }
}

struct Merged {
    database: DB,
    /// With a column family of entries each.
    indexed: &'static [&'static str],
    /// As it was opened with: its statistics are read by them.
    options: Options,
    waited: Waited,
}

impl Store for Merged {
    const NAME: &'static str = "rocksdb";
    const READS_AND_UPDATES: bool = true;
    const HAS_STATISTICS: bool = true;
    type Session<'s> = Writer<'s>;

    fn open(folder: &Path, settings: &Settings) -> Result<Self, Refusal> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(settings.size(Setting::CacheBytes)));
        let mut options = Options::default();
        options.create_if_missing(true);
        options.increase_parallelism(i32::try_from(cpus())?);
        options.set_write_buffer_size(WRITE_BUFFER_BYTES);
        options.set_max_write_buffer_number(4);
        options.set_allow_concurrent_memtable_write(true);
        options.set_block_based_table_factory(&blocks);
        statistics::switch_on(&mut options);
        options.create_missing_column_families(true);
        let indexed = settings.indexed_columns();
        let families = ["default"].iter().chain(indexed).map(|name| (*name, options.clone()));
        let database = DB::open_cf_with_opts(&options, folder.join("data"), families)?;
        Ok(Merged { database, indexed, options, waited: Waited::default() })
    }

    fn session(&self, is_durable: bool) -> Result<Writer<'_>, Refusal> {
        let mut options = WriteOptions::default();
        options.set_sync(is_durable);
        let family = |column: &&'static str| Some((*column, self.database.cf_handle(column)?));
        let indexes: Option<Vec<_>> = self.indexed.iter().map(family).collect();
        let indexes = indexes.ok_or("the column family of an index is not there")?;
        Ok(Writer { database: &self.database, indexes, options, timer: Timer::new(&self.waited) })
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal> {
        for row in self.database.iterator(IteratorMode::Start) {
            let (key, value) = row?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn count_entries(&self) -> Result<Vec<u64>, Refusal> {
        let count = |column: &&str| {
            let family = self.database.cf_handle(column).ok_or("a column family is not there")?;
            let entries = self.database.iterator_cf(family, IteratorMode::Start);
            Ok(entries.map(|entry| entry.map(|_| 1)).sum::<Result<u64, _>>()?)
        };
        self.indexed.iter().map(count).collect()
    }

    fn settle(&self) -> Result<(), Refusal> {
        Ok(self.database.flush_wal(true)?)
    }

    fn snapshot(&self) -> Snapshot {
        self.waited.snapshot(&self.options)
    }
}

struct Writer<'s> {
    database: &'s DB,
    /// Columns and where their entries are.
    indexes: Vec<(&'static str, &'s ColumnFamily)>,
    options: WriteOptions,
    timer: Timer<'s>,
}

impl StoreSession for Writer<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), Refusal> {
        let Writer { database, indexes, options, timer } = self;
        if let ([row], []) = (rows, indexes.as_slice()) {
            let (key, value) = (row.key_bytes(), row.value_bytes());
            return Ok(timer.time(|| database.put_opt(key, value, options))?);
        }
        let mut batch = WriteBatch::default();
        for row in rows {
            batch.put(row.key_bytes(), row.value_bytes());
            for (column, family) in &*indexes {
                batch.put_cf(family, row.entry(column).as_bytes(), []);
            }
        }
        Ok(timer.time(|| database.write_opt(batch, options))?)
    }

    fn read(&mut self, key: &[u8]) -> Result<bool, Refusal> {
        Ok(self.database.get_pinned(key)?.is_some())
    }
}
