//! redb: a copy-on-write B+tree with one writer at a time.

use std::path::Path;

use crate::error::LabError;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
};

use super::embedded::{Embedded, Refusal, Store, StoreSession, impossible};
use super::record::{CounterRecord, Snapshot};
use super::rows::Row;
use super::{Instance, Target};
use crate::study::{Setting, Settings, TargetShown};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("my_big_table");

/// redb.
pub(super) struct Redb;

impl Target for Redb {
    fn name(&self) -> &'static str {
        Tree::NAME
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        impossible::<Tree>(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let durability = if settings.is_durable() { "Immediate" } else { "None" };
        let settings = [
            ("durability", durability.to_owned()),
            ("cache_size", settings.number(Setting::CacheBytes).to_string()),
        ];
        Ok(TargetShown::of(version("redb"), settings))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Embedded::<Tree>::prepare(settings, folder)?))
    }
}

/// The version of a crate that does not tell its own, as the lock file has it.
pub(super) fn version(name: &str) -> String {
    let lock = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let rest = lock.split_once(&entry).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once('"')).map(|(version, _)| version);
    found.unwrap_or("unknown").to_owned()
}

struct Tree {
    database: Database,
    /// With a table of entries each.
    indexed: &'static [&'static str],
}

/// Where the entries of a column's index are.
fn entries_of(column: &'static str) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(column)
}

impl Store for Tree {
    const NAME: &'static str = "redb";
    const READS_AND_UPDATES: bool = true;
    const CHECK_DEPTH: Option<&'static str> = Some("physical");
    type Session<'s> = Writer<'s>;

    fn open(folder: &Path, settings: &Settings) -> Result<Self, Refusal> {
        let mut builder = Database::builder();
        builder.set_cache_size(settings.size(Setting::CacheBytes));
        let database = builder.create(folder.join("data.redb"))?;
        let transaction = database.begin_write()?;
        transaction.open_table(TABLE)?;
        let indexed = settings.indexed_columns();
        for column in indexed {
            transaction.open_table(entries_of(column))?;
        }
        transaction.commit()?;
        Ok(Tree { database, indexed })
    }

    fn session(&self, is_durable: bool) -> Result<Writer<'_>, Refusal> {
        let durability = if is_durable { Durability::Immediate } else { Durability::None };
        Ok(Writer { store: self, durability })
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal> {
        let transaction = self.database.begin_read()?;
        for row in transaction.open_table(TABLE)?.iter()? {
            let (key, value) = row?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn count_entries(&self) -> Result<Vec<u64>, Refusal> {
        let transaction = self.database.begin_read()?;
        let count =
            |column: &&'static str| Ok(transaction.open_table(entries_of(column))?.len()?);
        self.indexed.iter().map(count).collect()
    }

    /// Walks the whole tree: before and after a load, not during it.
    fn snapshot(&self) -> Snapshot {
        let told = self.database.begin_write().map_err(Refusal::from);
        let told = told.and_then(|transaction| Ok(transaction.stats()?));
        // A tree that cannot be walked is told of by the load or by the comparison.
        let Ok(tree) = told else { return Snapshot::default() };
        let counters = vec![
            CounterRecord::level("TREE_HEIGHT", "1", u64::from(tree.tree_height())),
            CounterRecord::level("BRANCH_PAGES", "pages", tree.branch_pages()),
            CounterRecord::level("LEAF_PAGES", "pages", tree.leaf_pages()),
            CounterRecord::level("ALLOCATED_PAGES", "pages", tree.allocated_pages()),
            CounterRecord::level("STORED_BYTES", "bytes", tree.stored_bytes()),
            CounterRecord::level("METADATA_BYTES", "bytes", tree.metadata_bytes()),
            CounterRecord::level("FRAGMENTED_BYTES", "bytes", tree.fragmented_bytes()),
        ];
        Snapshot { counters, ..Snapshot::default() }
    }

    fn check(&mut self) -> Result<u64, Refusal> {
        let statistics = self.database.begin_write()?.stats()?;
        match self.database.check_integrity()? {
            true => Ok(statistics.allocated_pages() * statistics.page_size() as u64),
            false => Err("check_integrity found damage".into()),
        }
    }

    fn settle(&self) -> Result<(), Refusal> {
        let transaction = self.database.begin_write()?;
        Ok(transaction.commit()?)
    }
}

struct Writer<'s> {
    store: &'s Tree,
    durability: Durability,
}

impl StoreSession for Writer<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), Refusal> {
        let mut transaction = self.store.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        let mut table = transaction.open_table(TABLE)?;
        for row in rows {
            table.insert(row.key_bytes(), row.value_bytes())?;
        }
        drop(table);
        for column in self.store.indexed {
            let mut entries = transaction.open_table(entries_of(column))?;
            for row in rows {
                entries.insert(row.entry(column).as_bytes(), [].as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, key: &[u8]) -> Result<bool, Refusal> {
        let transaction = self.store.database.begin_read()?;
        Ok(transaction.open_table(TABLE)?.get(key)?.is_some())
    }
}
