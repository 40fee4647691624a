//! Creating, dropping and emptying tables: each a record of the log, durable before it is told.

use std::sync::Arc;

use onrush_latch::lock_counted;
use onrush_types::{Schema, TableDefinition};
use onrush_waits::LatchClass;

use super::{Database, Table};
use crate::btree::Tree;
use crate::catalog::TableEntry;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{RecordKind, push_varint};
use crate::units::ObjectId;

impl Database {
    /// Creates a table. Durable when this returns.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// let price = DataType::Decimal { precision: 10, scale: 2 };
    /// let sales = TableDefinition::builder("sales")
    ///     .column(ColumnDefinition::new("id", DataType::Uuid).default_key(KeyStrategy::UuidV7))
    ///     .column(ColumnDefinition::new("shop", DataType::Char(4)).not_null())
    ///     .column(ColumnDefinition::new("day", DataType::Date))
    ///     .column(ColumnDefinition::new("at", DataType::Time))
    ///     .column(ColumnDefinition::new("price", price))
    ///     .primary_key(["id"]);
    /// let sales = db.create_table(sales.build()?)?;
    ///
    /// let (day, at) = (Value::Date(19_844), Value::Time(36_000_000_000)); // 2024-05-01, 10:00
    /// let cents = Value::Decimal(Decimal::new(1999, 2)); // 19.99
    /// let mut session = db.session()?;
    /// let key = session.insert_returning_key(
    ///     &sales,
    ///     &[Value::Default, "N1".into(), day, at, cents.clone()],
    /// )?;
    /// let row = session.get(&sales, &key)?.expect("inserted above");
    /// assert_eq!(row[1], "N1  ".into()); // as wide as declared
    /// assert_eq!((row[2].to_string(), row[3].to_string()), ("2024-05-01".into(), "10:00:00".into()));
    /// assert_eq!(row[4], cents);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Each strategy for keys, with the type it is for:
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// for strategy in KeyStrategy::ALL {
    ///     let id = ColumnDefinition::new("id", strategy.natural_type()).default_key(strategy);
    ///     let table = TableDefinition::builder(strategy.name()).column(id).primary_key(["id"]);
    ///     let table = db.create_table(table.build()?)?;
    ///     let mut session = db.session()?;
    ///     let first = session.insert_returning_key(&table, &[Value::Default])?;
    ///     let second = session.insert_returning_key(&table, &[])?; // the same: nothing is a default
    ///     assert_ne!(first, second);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TableExists`](Error::TableExists); a definition that is not possible.
    pub fn create_table(&self, definition: TableDefinition) -> Result<Table> {
        let engine = self.engine();
        let definition = Arc::new(definition);
        let bytes = definition.to_bytes();
        Schema::new(Arc::clone(&definition))?;
        let prepare = || {
            if engine.catalog.contains(definition.name()) {
                return Err(Error::TableExists { name: definition.name().to_owned() });
            }
            let object = engine.catalog.new_object()?;
            Ok((definition_record(RecordKind::CreateTable, &[object], &bytes), object))
        };
        let entry = self.define(prepare, |object| {
            let tree = Tree::new(engine, object, definition.is_logged());
            let entry = TableEntry::new(object.0, Arc::clone(&definition), tree, &[])?;
            let entry = Arc::new(entry);
            engine.catalog.add(Arc::clone(&entry));
            Ok(entry)
        })?;
        Ok(self.handle(entry))
    }

    /// Drops a table and its rows. Durable when this returns.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let note = ColumnDefinition::new("note", DataType::Text);
    /// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// assert_eq!(db.tables().len(), 1);
    /// db.drop_table("notes")?;
    /// assert!(matches!(db.table("notes"), Err(Error::UnknownTable { .. })));
    /// assert!(matches!(db.session()?.get(&notes, &[1i64.into()]), Err(Error::TableChanged { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable).
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        let prepare = || {
            let entry = engine.catalog.get(name)?;
            let object = entry.tree.object();
            Ok((definition_record(RecordKind::DropTable, &[object], &[]), entry))
        };
        self.define(prepare, |entry| {
            engine.catalog.remove(&entry);
            entry.tree.clear(engine, &engine.recorder, ObjectId(0));
            Ok(())
        })
    }

    /// Removes all rows of a table. Generated keys go on where they were. Durable when this
    /// returns.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let note = ColumnDefinition::new("note", DataType::Text);
    /// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// db.session()?.insert(&notes, &[1i64.into(), "one".into()])?;
    /// db.truncate_table("notes")?;
    /// let notes = db.table("notes")?;
    /// assert_eq!(db.session()?.scan(&notes, &ScanOptions::default())?.count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable).
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        let prepare = || {
            let entry = engine.catalog.get(name)?;
            let (old, new) = (entry.tree.object(), engine.catalog.new_object()?);
            Ok((definition_record(RecordKind::TruncateTable, &[old, new], &[]), (entry, new)))
        };
        self.define(prepare, |(entry, new)| {
            engine.catalog.replace_object(&entry, new);
            entry.tree.clear(engine, &engine.recorder, new);
            Ok(())
        })
    }

    /// Changes the list of tables: the record is appended and the change made under the lock that
    /// a checkpoint takes to read the list, so that a checkpoint has both or neither. Room in the
    /// log is waited for without that lock, because only a checkpoint may be able to make it.
    pub(super) fn define<S, T>(
        &self,
        mut prepare: impl FnMut() -> Result<(Vec<u8>, S)>,
        apply: impl FnOnce(S) -> Result<T>,
    ) -> Result<T> {
        let engine = self.engine();
        let (written, applied) = loop {
            engine.check_open()?;
            let definitions = &engine.catalog.definitions;
            let definitions = lock_counted(definitions, &engine.recorder, LatchClass::Catalog);
            let (record, state) = prepare()?;
            if let Some(written) = engine.try_append(&record, &engine.recorder) {
                break (written, apply(state)?);
            }
            drop(definitions);
            engine.wait_for_room(onrush_log::Log::framed_bytes(record.len()), &engine.recorder)?;
        };
        if !planted(Fault::TableNotDurable) {
            engine.log.wait_durable(written.end, &engine.recorder)?;
        }
        Ok(applied)
    }
}

/// A record about tables: object numbers, then whatever belongs to its kind.
pub(super) fn definition_record(kind: RecordKind, objects: &[ObjectId], rest: &[u8]) -> Vec<u8> {
    let mut record = vec![kind as u8];
    for object in objects {
        push_varint(u64::from(object.0), &mut record);
    }
    record.extend_from_slice(rest);
    record
}
